//! A guest for tests: its memory is a vector, and what it is sent is kept.

use crate::bus::{Bus, Record};
use crate::clock::{Message, PAGE_BYTES};
use crate::failure::Failure;

/// Something that the guest was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Clock([u8; Message::BYTES]),
    ClockWithPage([u8; Message::BYTES]),
    Drive(usize, Vec<u8>),
    Back(usize, Vec<u8>),
}

pub(crate) struct FakeBus {
    pub(crate) memory: Vec<u8>,
    pub(crate) page: Vec<u8>,
    pub(crate) sent: Vec<Sent>,
    pub(crate) records: Vec<Record>,
}

impl FakeBus {
    pub(crate) fn new() -> Self {
        let (memory, page) = (vec![0; 1 << 20], vec![0; PAGE_BYTES]);
        Self { memory, page, sent: Vec::new(), records: Vec::new() }
    }

    /// What was sent since this was asked last.
    pub(crate) fn take_sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    fn range(&mut self, address: u64, length: usize) -> Result<&mut [u8], Failure> {
        let range = self.memory.get_mut(address as usize..).and_then(|rest| rest.get_mut(..length));
        range.ok_or(Failure::Address { address, length })
    }
}

impl Bus for FakeBus {
    fn send_clock(&mut self, message: Message) -> Result<(), Failure> {
        self.sent.push(Sent::Clock(message.encode()));
        Ok(())
    }

    fn send_clock_with_page(&mut self, message: Message) -> Result<(), Failure> {
        self.sent.push(Sent::ClockWithPage(message.encode()));
        Ok(())
    }

    fn send_drive(&mut self, drive: usize, message: &[u8]) -> Result<(), Failure> {
        self.sent.push(Sent::Drive(drive, message.to_vec()));
        Ok(())
    }

    fn send_back(&mut self, drive: usize, message: &[u8]) -> Result<(), Failure> {
        self.sent.push(Sent::Back(drive, message.to_vec()));
        Ok(())
    }

    fn load_page(&mut self, at: usize, into: &mut [u8]) -> Result<(), Failure> {
        into.copy_from_slice(&self.page[at..at + into.len()]);
        Ok(())
    }

    fn store_page(&mut self, at: usize, from: &[u8]) -> Result<(), Failure> {
        self.page[at..at + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn load(&mut self, _: usize, address: u64, into: &mut [u8]) -> Result<(), Failure> {
        into.copy_from_slice(self.range(address, into.len())?);
        Ok(())
    }

    fn store(&mut self, _: usize, address: u64, from: &[u8]) -> Result<(), Failure> {
        self.range(address, from.len())?.copy_from_slice(from);
        Ok(())
    }

    fn done(&mut self, record: &Record) {
        self.records.push(*record);
    }
}
