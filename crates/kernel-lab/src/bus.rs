//! What lies between the lab and its guest: messages, and the memory both see.

use std::fmt;

use raidlab_core::units::Time;

use crate::clock::Message;
use crate::failure::Failure;

/// How the lab reaches the guest. The guest is at rest whenever a method is called: it waits for the clock or for an
/// answer, so nothing it shares changes meanwhile.
pub trait Bus {
    /// Sends a message of the clock.
    fn send_clock(&mut self, message: Message) -> Result<(), Failure>;

    /// Sends the answer to the first message of the clock, with the shared page and a file for a log beside it.
    fn send_clock_with_page(&mut self, message: Message) -> Result<(), Failure>;

    /// Sends an answer to the driver of a drive.
    fn send_drive(&mut self, drive: usize, message: &[u8]) -> Result<(), Failure>;

    /// Sends a message the other way: from a drive to its driver.
    fn send_back(&mut self, drive: usize, message: &[u8]) -> Result<(), Failure>;

    /// Reads from the page that is shared with the clock; as many bytes as `into` has.
    fn load_page(&mut self, at: usize, into: &mut [u8]) -> Result<(), Failure>;

    /// Writes to the page that is shared with the clock.
    fn store_page(&mut self, at: usize, from: &[u8]) -> Result<(), Failure>;

    /// Reads the guest's memory as its queues see it: descriptors and headers.
    fn load(&mut self, drive: usize, address: u64, into: &mut [u8]) -> Result<(), Failure>;

    /// Writes the guest's memory: entries of queues, and what a request has to say.
    fn store(&mut self, drive: usize, address: u64, from: &[u8]) -> Result<(), Failure>;

    /// Reads the contents of a write, which lie in the guest's memory too: apart for who keeps all but these.
    fn load_contents(
        &mut self,
        drive: usize,
        address: u64,
        into: &mut [u8],
    ) -> Result<(), Failure> {
        self.load(drive, address, into)
    }

    /// Writes what a read found.
    fn store_contents(&mut self, drive: usize, address: u64, from: &[u8]) -> Result<(), Failure> {
        self.store(drive, address, from)
    }

    /// A request is done.
    fn done(&mut self, record: &Record);
}

/// A request as the kernel sent it: what the trace holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When the kernel handed it to the drive.
    pub arrived: Time,
    /// When the drive was done with it.
    pub ended: Time,
    /// Which drive, from 0.
    pub drive: usize,
    /// What it asked for.
    pub operation: Operation,
    /// The first sector.
    pub sector: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// How many requests the drive had before it.
    pub depth: usize,
    /// Whether it went well.
    pub succeeded: bool,
}

/// A line of a trace; a request that failed has an exclamation mark behind its letter.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { arrived, ended, drive, operation, sector, bytes, depth, succeeded } = self;
        let (letter, failed) = (operation.letter(), if *succeeded { "" } else { "!" });
        write!(f, "{} {} {drive} {letter}{failed} {sector} {bytes} {depth}", arrived.0, ended.0)
    }
}

/// What a request asks of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read a range.
    Read,
    /// Write a range.
    Write,
    /// Write a range, done when it is on the medium.
    WriteThrough,
    /// Done when all writes that were done before are on the medium.
    Flush,
    /// Tell the drive's name, which takes no time.
    Identify,
    /// Something that the drive does not have.
    Unknown,
}

impl Operation {
    /// The letter that stands for it in a trace.
    pub fn letter(self) -> char {
        match self {
            Self::Read => 'R',
            Self::Write => 'W',
            Self::WriteThrough => 'U',
            Self::Flush => 'F',
            Self::Identify => 'I',
            Self::Unknown => '?',
        }
    }
}
