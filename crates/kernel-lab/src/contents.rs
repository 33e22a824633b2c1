//! What stands on a drive. Memory is taken in pieces of 64 KiB, each when something in it is first written that is not
//! zero, so drives have their real sizes. A piece is never given back, also when it is zero again.

use std::collections::BTreeMap;

use crate::bus::Bus;
use crate::failure::Failure;
use crate::virtqueue::Part;

/// Memory is set aside in pieces of this size.
const PIECE: usize = 64 << 10;

static ZEROES: [u8; PIECE] = [0; PIECE];

/// Memory that all drives of a lab may fill together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    limit: u64,
    used: u64,
}

impl Room {
    /// Room for so many bytes.
    pub fn of(limit: u64) -> Self {
        Self { limit, used: 0 }
    }

    /// How many bytes are used.
    pub fn used(&self) -> u64 {
        self.used
    }

    fn take(&mut self, bytes: u64) -> Result<(), Failure> {
        if self.used + bytes > self.limit {
            return Err(Failure::Full { limit: self.limit });
        }
        self.used += bytes;
        Ok(())
    }
}

/// The contents of one drive.
#[derive(Default)]
pub struct Contents {
    pieces: BTreeMap<u64, Box<[u8]>>,
    /// Where what may turn out to be zeroes is put first.
    scratch: Vec<u8>,
}

impl Contents {
    /// Moves a range of the drive to a part of the guest's memory.
    pub(crate) fn read(
        &self,
        bus: &mut dyn Bus,
        drive: usize,
        at: u64,
        part: Part,
    ) -> Result<(), Failure> {
        for (number, within, done, length) in split(at, part.length) {
            let piece = self.pieces.get(&number).map_or(&ZEROES[..], |piece| &piece[..]);
            bus.store_contents(drive, part.address + done, &piece[within..within + length])?;
        }
        Ok(())
    }

    /// Moves a part of the guest's memory to a range of the drive.
    pub(crate) fn write(
        &mut self,
        bus: &mut dyn Bus,
        room: &mut Room,
        (drive, at, part): (usize, u64, Part),
    ) -> Result<(), Failure> {
        for (number, within, done, length) in split(at, part.length) {
            let address = part.address + done;
            if let Some(piece) = self.pieces.get_mut(&number) {
                bus.load_contents(drive, address, &mut piece[within..within + length])?;
                continue;
            }
            self.scratch.resize(PIECE, 0);
            let scratch = &mut self.scratch[..length];
            bus.load_contents(drive, address, scratch)?;
            if *scratch != ZEROES[..length] {
                room.take(PIECE as u64)?;
                let mut piece = vec![0; PIECE].into_boxed_slice();
                piece[within..within + length].copy_from_slice(scratch);
                self.pieces.insert(number, piece);
            }
        }
        Ok(())
    }
}

/// The pieces that a range touches: number, place within it, place within the range, length.
fn split(at: u64, length: u32) -> impl Iterator<Item = (u64, usize, u64, usize)> {
    let (end, mut next) = (at + u64::from(length), at);
    std::iter::from_fn(move || {
        let within = (next % PIECE as u64) as usize;
        let length = (end - next).min((PIECE - within) as u64) as usize;
        let found = (next / PIECE as u64, within, next - at, length);
        next += length as u64;
        (length > 0).then_some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeBus;

    fn part(address: u64, length: u32) -> Part {
        Part { address, length, writable: true }
    }

    #[test]
    fn a_range_is_split_where_pieces_end() {
        let found: Vec<_> = split(PIECE as u64 - 512, 1024).collect();
        assert_eq!(found, [(0, PIECE - 512, 0, 512), (1, 0, 512, 512)]);
        assert_eq!(split(512, 0).count(), 0);
    }

    #[test]
    fn what_was_written_is_read_and_the_rest_is_zero() {
        let mut bus = FakeBus::new();
        let (mut contents, mut room) = (Contents::default(), Room::of(1 << 20));
        let at = PIECE as u64 - 512;
        bus.memory[0..1024].fill(7);
        contents.write(&mut bus, &mut room, (0, at, part(0, 1024))).expect("there is room");
        contents.read(&mut bus, 0, at - 512, part(2048, 2048)).expect("is in memory");
        assert_eq!(bus.memory[2048..2560], [0; 512]);
        assert_eq!(bus.memory[2560..3584], [7; 1024]);
        assert_eq!(bus.memory[3584..4096], [0; 512]);
        assert_eq!(room.used(), 2 * PIECE as u64);
    }

    #[test]
    fn zeroes_take_no_room_but_overwrite_what_was_there() {
        let mut bus = FakeBus::new();
        let (mut contents, mut room) = (Contents::default(), Room::of(PIECE as u64));
        contents.write(&mut bus, &mut room, (0, 1 << 40, part(0, 4096))).expect("needs no room");
        assert_eq!(room.used(), 0);
        bus.memory[0..512].fill(7);
        contents.write(&mut bus, &mut room, (0, 0, part(0, 512))).expect("there is room");
        bus.memory[0..512].fill(0);
        contents.write(&mut bus, &mut room, (0, 0, part(0, 512))).expect("needs no room");
        assert_eq!(room.used(), PIECE as u64, "a piece is never given back");
        bus.memory[0..512].fill(9);
        contents.read(&mut bus, 0, 0, part(0, 512)).expect("is in memory");
        assert_eq!(bus.memory[0..512], [0; 512]);
        bus.memory[0] = 1;
        let failure = contents.write(&mut bus, &mut room, (0, 1 << 40, part(0, 512)));
        assert!(matches!(failure, Err(Failure::Full { limit: 65536 })), "{failure:?}");
    }
}
