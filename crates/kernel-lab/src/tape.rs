//! What a guest said and what it was told, kept so that a lab can be tried without a kernel.
//!
//! A tape is text. Each line begins with a letter; numbers are decimal, bytes hexadecimal with `.` for a zero and `:`
//! for four:
//!
//! | line | |
//! |---|---|
//! | `C bytes` | the guest says a message of the clock |
//! | `D drive bytes` | it says a message of a drive's driver: head and payload |
//! | `B drive bytes` | it answers an interrupt |
//! | `P at bytes`, `M drive address bytes` | what then stands in the clock's page and its memory, where the lab looks |
//! | `c bytes`, `g bytes` | it is told a message of the clock; `g` with the page |
//! | `d drive bytes`, `b drive bytes` | it is told something by a drive: an answer, an interrupt |
//! | `p at bytes`, `m drive address bytes` | the lab writes to page or memory |
//! | `o drive address length` | the lab writes the contents of a read, of which only the place is kept |
//! | `x record` | a request is done, as in a trace |
//!
//! Contents of writes are not kept either: in a replay they are zeroes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::bus::{Bus, Record};
use crate::clock::{Message, PAGE_BYTES};
use crate::failure::Failure;
use crate::lab::Lab;
use crate::vhost::{CALL_ANSWER_BYTES, HEAD_BYTES, Head, Request};

/// Something that the guest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A message of the clock.
    Clock([u8; Message::BYTES]),
    /// A message of a drive's driver: head and payload.
    Drive(usize, [u8; HEAD_BYTES], Vec<u8>),
    /// The answer to an interrupt of a drive.
    Answer(usize, [u8; CALL_ANSWER_BYTES]),
}

impl Said {
    /// Hands it to a lab.
    ///
    /// # Errors
    /// As those of the lab.
    pub fn to(&self, lab: &mut Lab, bus: &mut dyn Bus) -> Result<(), Failure> {
        match self {
            Self::Clock(raw) => lab.clock_message(bus, Message::decode(*raw)),
            Self::Drive(drive, head, payload) => {
                let head = Head::decode(*head)?;
                lab.drive_message(bus, *drive, head, &Request::decode(head, payload)?)
            }
            Self::Answer(drive, raw) => lab.call_answer(bus, *drive, *raw),
        }
    }

    fn line(&self) -> String {
        match self {
            Self::Clock(raw) => format!("C {}", hex(raw)),
            Self::Drive(drive, head, payload) => {
                format!("D {drive} {}{}", hex(head), hex(payload))
            }
            Self::Answer(drive, raw) => format!("B {drive} {}", hex(raw)),
        }
    }

    fn of(line: &str) -> Option<Self> {
        let (letter, rest) = line.split_once(' ')?;
        if letter == "C" {
            return Some(Self::Clock(bytes(rest)?.try_into().ok()?));
        }
        let (drive, raw) = rest.split_once(' ')?;
        let (drive, raw) = (drive.parse().ok()?, bytes(raw)?);
        match letter {
            "D" => {
                let (head, payload) = raw.split_first_chunk()?;
                Some(Self::Drive(drive, *head, payload.to_vec()))
            }
            "B" => Some(Self::Answer(drive, raw.try_into().ok()?)),
            _ => None,
        }
    }
}

/// Places in memory that a tape tells apart: the clock's page, or the memory that a drive sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Space {
    Page,
    Drive(usize),
}

impl Space {
    fn line(self, [page, memory]: [char; 2], at: u64, raw: &[u8]) -> String {
        match self {
            Self::Page => format!("{page} {at} {}", hex(raw)),
            Self::Drive(drive) => format!("{memory} {drive} {at} {}", hex(raw)),
        }
    }
}

/// Writes a tape while a guest is served.
#[derive(Debug, Default)]
pub struct Tape {
    text: String,
    /// Where the lab has written since the guest spoke last: what it reads there is its own.
    written: BTreeSet<(Space, u64)>,
}

impl Tape {
    /// The guest says something, upon which the lab is to be reached by [`on`](Self::on).
    pub fn says(&mut self, said: &Said) {
        self.written.clear();
        self.add(&said.line());
    }

    /// A bus whose traffic is kept.
    pub fn on<'a>(&'a mut self, bus: &'a mut dyn Bus) -> impl Bus + 'a {
        Recorder { tape: self, bus }
    }

    /// The tape so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn add(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    fn loaded(&mut self, space: Space, at: u64, raw: &[u8]) {
        let own = |at| self.written.contains(&(space, at));
        if !(at..at + raw.len() as u64).any(own) {
            self.add(&space.line(['P', 'M'], at, raw));
        }
    }

    fn stored(&mut self, space: Space, at: u64, raw: &[u8]) {
        self.written.extend((at..at + raw.len() as u64).map(|at| (space, at)));
        self.add(&space.line(['p', 'm'], at, raw));
    }
}

struct Recorder<'a> {
    tape: &'a mut Tape,
    bus: &'a mut dyn Bus,
}

impl Bus for Recorder<'_> {
    fn send_clock(&mut self, message: Message) -> Result<(), Failure> {
        self.tape.add(&format!("c {}", hex(&message.encode())));
        self.bus.send_clock(message)
    }

    fn send_clock_with_page(&mut self, message: Message) -> Result<(), Failure> {
        self.tape.add(&format!("g {}", hex(&message.encode())));
        self.bus.send_clock_with_page(message)
    }

    fn send_drive(&mut self, drive: usize, message: &[u8]) -> Result<(), Failure> {
        self.tape.add(&format!("d {drive} {}", hex(message)));
        self.bus.send_drive(drive, message)
    }

    fn send_back(&mut self, drive: usize, message: &[u8]) -> Result<(), Failure> {
        self.tape.add(&format!("b {drive} {}", hex(message)));
        self.bus.send_back(drive, message)
    }

    fn load_page(&mut self, at: usize, into: &mut [u8]) -> Result<(), Failure> {
        self.bus.load_page(at, into)?;
        self.tape.loaded(Space::Page, at as u64, into);
        Ok(())
    }

    fn store_page(&mut self, at: usize, from: &[u8]) -> Result<(), Failure> {
        self.tape.stored(Space::Page, at as u64, from);
        self.bus.store_page(at, from)
    }

    fn load(&mut self, drive: usize, address: u64, into: &mut [u8]) -> Result<(), Failure> {
        self.bus.load(drive, address, into)?;
        self.tape.loaded(Space::Drive(drive), address, into);
        Ok(())
    }

    fn store(&mut self, drive: usize, address: u64, from: &[u8]) -> Result<(), Failure> {
        self.tape.stored(Space::Drive(drive), address, from);
        self.bus.store(drive, address, from)
    }

    fn load_contents(
        &mut self,
        drive: usize,
        address: u64,
        into: &mut [u8],
    ) -> Result<(), Failure> {
        self.bus.load_contents(drive, address, into)
    }

    fn store_contents(&mut self, drive: usize, address: u64, from: &[u8]) -> Result<(), Failure> {
        self.tape.add(&format!("o {drive} {address} {}", from.len()));
        self.bus.store_contents(drive, address, from)
    }

    fn done(&mut self, record: &Record) {
        self.tape.add(&format!("x {record}"));
        self.bus.done(record);
    }
}

/// Says to a lab what a guest said, and compares what it does with what the guest was told then: messages and requests
/// in their order, memory by what stands there afterwards. Gives how many requests were done.
///
/// # Errors
/// The number of the first line at which the guest says something upon which the lab does something else, with both.
pub fn replay(tape: &str, lab: &mut Lab) -> Result<usize, String> {
    let mut guest = Player::default();
    let mut lines = tape.lines().enumerate().peekable();
    let mut requests = 0;
    while let Some((number, line)) = lines.next() {
        let at = |what: String| format!("line {}: {line}: {what}", number + 1);
        let said = Said::of(line).ok_or_else(|| at("not what a guest says".to_owned()))?;
        let mut expected = Player::default();
        while let Some((number, line)) =
            lines.next_if(|(_, line)| !line.starts_with(['C', 'D', 'B']))
        {
            let taken = guest.takes(line, &mut expected);
            taken.ok_or_else(|| format!("line {}: {line}: not a line of a tape", number + 1))?;
        }
        (guest.told, guest.stored) = (Vec::new(), BTreeMap::new());
        said.to(lab, &mut guest).map_err(|failure| at(failure.to_string()))?;
        if guest.told != expected.told || guest.stored != expected.stored {
            return Err(at(format!(
                "the guest was told {:#?} and found {:?}, and now {:#?} and {:?}",
                expected.told, expected.stored, guest.told, guest.stored
            )));
        }
        requests += guest.told.iter().filter(|line| line.starts_with('x')).count();
    }
    Ok(requests)
}

/// A guest that was recorded: its memory as far as it is known, and what it is told.
#[derive(Default)]
struct Player {
    memory: BTreeMap<(Space, u64), u8>,
    told: Vec<String>,
    stored: BTreeMap<(Space, u64), u8>,
}

impl Player {
    /// Takes a line about the guest's memory, or puts one about what it was told to `expected`.
    fn takes(&mut self, line: &str, expected: &mut Self) -> Option<()> {
        let mut words = line.split(' ');
        let letter = words.next()?;
        let space = match letter {
            "P" | "p" => Space::Page,
            "M" | "m" => Space::Drive(words.next()?.parse().ok()?),
            "c" | "g" | "d" | "b" | "o" | "x" => {
                expected.told.push(line.to_owned());
                return Some(());
            }
            _ => return None,
        };
        let (at, raw) = (words.next()?.parse().ok()?, bytes(words.next()?)?);
        let into =
            if matches!(letter, "P" | "M") { &mut self.memory } else { &mut expected.stored };
        put(into, space, at, &raw);
        Some(())
    }

    fn store(&mut self, space: Space, at: u64, raw: &[u8]) {
        put(&mut self.memory, space, at, raw);
        put(&mut self.stored, space, at, raw);
    }

    fn load(&mut self, space: Space, at: u64, into: &mut [u8]) -> Result<(), Failure> {
        let length = into.len();
        for (byte, at) in into.iter_mut().zip(at..) {
            let found = self.memory.get(&(space, at));
            *byte = *found.ok_or(Failure::Address { address: at, length })?;
        }
        Ok(())
    }
}

fn put(into: &mut BTreeMap<(Space, u64), u8>, space: Space, at: u64, raw: &[u8]) {
    into.extend((at..).zip(raw).map(|(at, byte)| ((space, at), *byte)));
}

impl Bus for Player {
    fn send_clock(&mut self, message: Message) -> Result<(), Failure> {
        self.told.push(format!("c {}", hex(&message.encode())));
        Ok(())
    }

    fn send_clock_with_page(&mut self, message: Message) -> Result<(), Failure> {
        // A new page is all zeroes, but for what the lab has written by now.
        for at in 0..PAGE_BYTES as u64 {
            self.memory.entry((Space::Page, at)).or_insert(0);
        }
        self.told.push(format!("g {}", hex(&message.encode())));
        Ok(())
    }

    fn send_drive(&mut self, drive: usize, message: &[u8]) -> Result<(), Failure> {
        self.told.push(format!("d {drive} {}", hex(message)));
        Ok(())
    }

    fn send_back(&mut self, drive: usize, message: &[u8]) -> Result<(), Failure> {
        self.told.push(format!("b {drive} {}", hex(message)));
        Ok(())
    }

    fn load_page(&mut self, at: usize, into: &mut [u8]) -> Result<(), Failure> {
        self.load(Space::Page, at as u64, into)
    }

    fn store_page(&mut self, at: usize, from: &[u8]) -> Result<(), Failure> {
        self.store(Space::Page, at as u64, from);
        Ok(())
    }

    fn load(&mut self, drive: usize, address: u64, into: &mut [u8]) -> Result<(), Failure> {
        self.load(Space::Drive(drive), address, into)
    }

    fn store(&mut self, drive: usize, address: u64, from: &[u8]) -> Result<(), Failure> {
        self.store(Space::Drive(drive), address, from);
        Ok(())
    }

    fn load_contents(&mut self, _: usize, _: u64, into: &mut [u8]) -> Result<(), Failure> {
        into.fill(0);
        Ok(())
    }

    fn store_contents(&mut self, drive: usize, address: u64, from: &[u8]) -> Result<(), Failure> {
        self.told.push(format!("o {drive} {address} {}", from.len()));
        Ok(())
    }

    fn done(&mut self, record: &Record) {
        self.told.push(format!("x {record}"));
    }
}

/// Bytes as they stand on a tape. Most are zero: one is a point, four are a colon.
fn hex(raw: &[u8]) -> String {
    raw.iter().fold(String::with_capacity(2 * raw.len()), |mut text, byte| {
        match byte {
            0 if text.ends_with("...") => {
                text.truncate(text.len() - 3);
                text.push(':');
            }
            0 => text.push('.'),
            // Writing to a string cannot fail.
            byte => _ = write!(text, "{byte:02x}"),
        }
        text
    })
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let mut raw = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '.' | ':' => {
                raw.resize(raw.len() + if first == ':' { 4 } else { 1 }, 0);
                1
            }
            _ => {
                raw.push(u8::from_str_radix(rest.get(..2)?, 16).ok()?);
                2
            }
        };
        rest = &rest[length..];
    }
    Some(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_they_were_written() {
        for (raw, text) in [
            (&[][..], ""),
            (&[0, 0, 0], "..."),
            (&[0; 9], "::."),
            (&[1, 0, 0, 0, 0, 0xab, 0], "01:ab."),
        ] {
            assert_eq!((hex(raw).as_str(), bytes(text).as_deref()), (text, Some(raw)));
        }
        for wrong in ["0", "0g", ".1", "a\u{e9}"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
