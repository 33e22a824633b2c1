//! A split virtqueue in the guest's memory, from the drive's side.

use crate::bus::Bus;
use crate::failure::Failure;

/// A descriptor goes on with another one.
const NEXT: u16 = 1;
/// The drive writes the memory of this descriptor.
const WRITABLE: u16 = 2;
/// The descriptor's memory is a table of descriptors.
const INDIRECT: u16 = 4;
/// The guest does not want to be interrupted.
const NO_INTERRUPT: u16 = 1;

const DESCRIPTOR_BYTES: u64 = 16;
/// A chain with more parts goes round in a circle.
const MOST_PARTS: usize = 4096;
/// The longest queue there is.
const MOST_ENTRIES: u32 = 1 << 15;

/// A piece of the guest's memory that belongs to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its guest-physical address.
    pub address: u64,
    /// Its length in bytes.
    pub length: u32,
    /// Whether the drive writes it.
    pub writable: bool,
}

/// A request as the guest put it on the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The number by which it goes back.
    pub head: u16,
    /// Its memory, in order.
    pub parts: Vec<Part>,
}

/// The queue of a drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Virtqueue {
    entries: u16,
    descriptors: u64,
    available: u64,
    used: u64,
    /// The next entry to take.
    next: u16,
    /// The next entry to give back.
    given: u16,
}

impl Virtqueue {
    /// A queue of this many entries, whose place is not known yet.
    pub fn of(entries: u32) -> Result<Self, Failure> {
        if !entries.is_power_of_two() || entries > MOST_ENTRIES {
            return Err(Failure::Protocol(format!("a queue of {entries} entries")));
        }
        Ok(Self { entries: entries as u16, ..Self::default() })
    }

    /// Says where its three tables lie in the guest's memory.
    pub fn place(&mut self, descriptors: u64, available: u64, used: u64) {
        (self.descriptors, self.available, self.used) = (descriptors, available, used);
    }

    /// Says with which entry it begins.
    pub fn begin_at(&mut self, entry: u16) {
        (self.next, self.given) = (entry, entry);
    }

    /// Takes the next request that the guest has put there.
    pub fn take(&mut self, bus: &mut dyn Bus, drive: usize) -> Result<Option<Chain>, Failure> {
        if self.entries == 0 {
            return Err(Failure::Protocol("a kick of a queue without entries".to_owned()));
        }
        if load_u16(bus, drive, self.available + 2)? == self.next {
            return Ok(None);
        }
        let slot = u64::from(self.next % self.entries);
        let head = load_u16(bus, drive, self.available + 4 + 2 * slot)?;
        self.next = self.next.wrapping_add(1);
        Ok(Some(Chain { head, parts: self.parts(bus, drive, head)? }))
    }

    fn parts(&self, bus: &mut dyn Bus, drive: usize, head: u16) -> Result<Vec<Part>, Failure> {
        let mut parts = Vec::with_capacity(8);
        let (mut table, mut entries) = (self.descriptors, u32::from(self.entries));
        let mut index = head;
        for _ in 0..MOST_PARTS {
            if u32::from(index) >= entries {
                let text = format!("descriptor {index} of a table of {entries}");
                return Err(Failure::Protocol(text));
            }
            let mut raw = [0; DESCRIPTOR_BYTES as usize];
            bus.load(drive, table + DESCRIPTOR_BYTES * u64::from(index), &mut raw)?;
            let [a, b, c, d, e, f, g, h, l0, l1, l2, l3, f0, f1, n0, n1] = raw;
            let address = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            let length = u32::from_le_bytes([l0, l1, l2, l3]);
            let flags = u16::from_le_bytes([f0, f1]);
            if flags & INDIRECT != 0 {
                (table, entries, index) = (address, length / DESCRIPTOR_BYTES as u32, 0);
                continue;
            }
            parts.push(Part { address, length, writable: flags & WRITABLE != 0 });
            if flags & NEXT == 0 {
                return Ok(parts);
            }
            index = u16::from_le_bytes([n0, n1]);
        }
        Err(Failure::Protocol(format!("the chain of descriptor {head} does not end")))
    }

    /// Gives a request back, of which the drive has written so many bytes.
    pub fn give(
        &mut self,
        bus: &mut dyn Bus,
        drive: usize,
        head: u16,
        written: u32,
    ) -> Result<(), Failure> {
        let slot = u64::from(self.given % self.entries);
        let mut element = [0; 8];
        element[..2].copy_from_slice(&head.to_le_bytes());
        element[4..].copy_from_slice(&written.to_le_bytes());
        bus.store(drive, self.used + 4 + 8 * slot, &element)?;
        self.given = self.given.wrapping_add(1);
        bus.store(drive, self.used + 2, &self.given.to_le_bytes())
    }

    /// Whether the guest wants to be interrupted for what was given back.
    pub fn wants_interrupt(&self, bus: &mut dyn Bus, drive: usize) -> Result<bool, Failure> {
        Ok(load_u16(bus, drive, self.available)? & NO_INTERRUPT == 0)
    }
}

fn load_u16(bus: &mut dyn Bus, drive: usize, address: u64) -> Result<u16, Failure> {
    let mut raw = [0; 2];
    bus.load(drive, address, &mut raw)?;
    Ok(u16::from_le_bytes(raw))
}

#[cfg(test)]
#[path = "virtqueue/tests.rs"]
mod tests;
