//! vhost-user as `virtio_uml` speaks it: one queue, notifications in band, every message acknowledged.
//!
//! A message is a head of 12 bytes (request, flags, length of what follows) and its payload, in native order.

use crate::failure::Failure;

/// How long the head of a message is.
pub const HEAD_BYTES: usize = 12;
/// More than any message has, so that a broken length is found before memory is set aside for it.
const MOST_PAYLOAD: u32 = 4096;

const VERSION: u32 = 1;
const IS_REPLY: u32 = 1 << 2;
const NEEDS_REPLY: u32 = 1 << 3;

/// Acknowledgements, the way back, the configuration space, notifications in band.
const PROTOCOL_FEATURES: u64 = 1 << 3 | 1 << 5 | 1 << 9 | 1 << 14;
/// That there are such features.
const HAS_PROTOCOL_FEATURES: u64 = 1 << 30;

/// An interrupt, on the way back: a queue has been given something.
const CALL: u32 = 4;
/// The answer to it: a head and eight bytes.
pub const CALL_ANSWER_BYTES: usize = HEAD_BYTES + 8;

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    request: u32,
    flags: u32,
    length: u32,
}

impl Head {
    /// Reads one.
    pub fn decode(raw: [u8; HEAD_BYTES]) -> Result<Self, Failure> {
        let words = Words(&raw);
        let head = Self { request: words.u32(0)?, flags: words.u32(4)?, length: words.u32(8)? };
        if head.flags & 3 != VERSION || head.length > MOST_PAYLOAD {
            return Err(Failure::Protocol(format!("a message of a drive's driver with {head:?}")));
        }
        Ok(head)
    }

    /// How many bytes follow.
    pub fn payload_bytes(self) -> usize {
        self.length as usize
    }

    /// Whether the guest waits for an acknowledgement.
    pub fn needs_reply(self) -> bool {
        self.flags & NEEDS_REPLY != 0
    }

    /// The acknowledgement of it.
    pub fn acknowledgement(self) -> Vec<u8> {
        reply(self.request, &0_u64.to_ne_bytes())
    }
}

/// A region of the guest's memory; its file comes with the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The guest-physical address at which it begins.
    pub address: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Where it begins in its file.
    pub offset: u64,
}

/// What the driver of a drive says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Which features are there?
    GetFeatures,
    /// These are used.
    SetFeatures(u64),
    /// Which features of the protocol are there?
    GetProtocolFeatures,
    /// The configuration space, from an offset on.
    GetConfiguration {
        /// The first byte asked for.
        offset: u32,
        /// How many.
        length: u32,
        /// Given back as it is.
        flags: u32,
    },
    /// The guest's memory; one descriptor each comes with it.
    SetMemory(Vec<Region>),
    /// How long the queue is.
    SetQueueLength(u32),
    /// Where it lies: descriptors, available and used ring.
    SetQueuePlace {
        /// The table of descriptors.
        descriptors: u64,
        /// What the guest puts there.
        available: u64,
        /// What goes back to it.
        used: u64,
    },
    /// The first entry.
    SetQueueStart(u16),
    /// Which file the drive's own messages go to; a descriptor comes with it.
    SetWayBack,
    /// There is something in the queue.
    Kick,
    /// Something that changes nothing here.
    Other,
}

impl Request {
    /// Reads the payload of a message.
    pub fn decode(head: Head, payload: &[u8]) -> Result<Self, Failure> {
        let words = Words(payload);
        Ok(match head.request {
            1 => Self::GetFeatures,
            2 => Self::SetFeatures(words.u64(0)?),
            // Owner, protocol features and which queues are on: as offered.
            3 | 4 | 16 | 18 => Self::Other,
            5 => Self::SetMemory(regions(words)?),
            8 => Self::SetQueueLength(words.u32(4)?),
            9 => Self::SetQueuePlace {
                descriptors: words.u64(8)?,
                used: words.u64(16)?,
                available: words.u64(24)?,
            },
            10 => Self::SetQueueStart(words.u32(4)? as u16),
            15 => Self::GetProtocolFeatures,
            21 => Self::SetWayBack,
            24 => Self::GetConfiguration {
                offset: words.u32(0)?,
                length: words.u32(4)?,
                flags: words.u32(8)?,
            },
            35 => Self::Kick,
            other => {
                return Err(Failure::Protocol(format!("message {other} of a drive's driver")));
            }
        })
    }
}

fn regions(words: Words<'_>) -> Result<Vec<Region>, Failure> {
    let region = |index: u32| {
        let at = 8 + 32 * index as usize;
        let (address, length) = (words.u64(at)?, words.u64(at + 8)?);
        Ok(Region { address, length, offset: words.u64(at + 24)? })
    };
    // A count that is not true asks for words that are not there.
    (0..words.u32(0)?).map(region).collect()
}

/// The answer to [`Request::GetFeatures`]: what the block device has, and that the protocol has features.
pub fn features(of_the_device: u64) -> Vec<u8> {
    reply(1, &(of_the_device | HAS_PROTOCOL_FEATURES).to_ne_bytes())
}

/// The answer to [`Request::GetProtocolFeatures`].
pub fn protocol_features() -> Vec<u8> {
    reply(15, &PROTOCOL_FEATURES.to_ne_bytes())
}

/// The answer to [`Request::GetConfiguration`]; beyond the space are zeroes.
pub fn configuration(space: &[u8], offset: u32, length: u32, flags: u32) -> Vec<u8> {
    let mut payload = Vec::with_capacity(HEAD_BYTES + length as usize);
    [offset, length, flags].iter().for_each(|word| payload.extend(word.to_ne_bytes()));
    let from = space.iter().copied().chain(std::iter::repeat(0)).skip(offset as usize);
    payload.extend(from.take(length.min(MOST_PAYLOAD) as usize));
    reply(24, &payload)
}

/// An interrupt for the drive's queue, to be answered.
pub fn call() -> Vec<u8> {
    message(CALL, VERSION | NEEDS_REPLY, &[0; 8])
}

/// Checks the answer to an interrupt.
pub fn check_call_answer(raw: [u8; CALL_ANSWER_BYTES]) -> Result<(), Failure> {
    let words = Words(&raw);
    let expected = (CALL, VERSION | IS_REPLY, 8, 0);
    let found = (words.u32(0)?, words.u32(4)?, words.u32(8)?, words.u64(HEAD_BYTES)?);
    if found == expected {
        return Ok(());
    }
    Err(Failure::Protocol(format!("an interrupt answered by {found:?} instead of {expected:?}")))
}

fn reply(request: u32, payload: &[u8]) -> Vec<u8> {
    message(request, VERSION | IS_REPLY, payload)
}

fn message(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut raw = Vec::with_capacity(HEAD_BYTES + payload.len());
    let head = [request, flags, payload.len() as u32];
    head.iter().for_each(|word| raw.extend(word.to_ne_bytes()));
    raw.extend_from_slice(payload);
    raw
}

/// Numbers in a payload.
#[derive(Clone, Copy)]
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn array<const N: usize>(self, at: usize) -> Result<[u8; N], Failure> {
        let found = self.0.get(at..).and_then(|rest| rest.first_chunk());
        found.copied().ok_or_else(|| {
            let text = format!("{N} bytes at {at} of a message of {}", self.0.len());
            Failure::Protocol(text)
        })
    }

    fn u32(self, at: usize) -> Result<u32, Failure> {
        self.array(at).map(u32::from_ne_bytes)
    }

    fn u64(self, at: usize) -> Result<u64, Failure> {
        self.array(at).map(u64::from_ne_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(request: u32, flags: u32, length: u32) -> Head {
        let mut raw = [0; HEAD_BYTES];
        for (at, word) in [request, flags, length].into_iter().enumerate() {
            raw[4 * at..][..4].copy_from_slice(&word.to_ne_bytes());
        }
        Head::decode(raw).expect("a head")
    }

    #[test]
    fn a_head_of_another_version_or_with_a_broken_length_is_refused() {
        let raw = |words: [u32; 3]| {
            let mut raw = [0; HEAD_BYTES];
            raw.chunks_mut(4)
                .zip(words)
                .for_each(|(to, word)| to.copy_from_slice(&word.to_ne_bytes()));
            raw
        };
        assert!(Head::decode(raw([1, 1 | NEEDS_REPLY, 8])).is_ok_and(Head::needs_reply));
        assert!(Head::decode(raw([1, 2, 8])).is_err());
        assert!(Head::decode(raw([1, 1, 1 << 20])).is_err());
    }

    #[test]
    fn the_places_of_a_queue_are_told_apart() {
        let mut payload = vec![0; 40];
        for (at, value) in [(8, 1_u64), (16, 2), (24, 3)] {
            payload[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let place = Request::decode(head(9, 1, 40), &payload).expect("is whole");
        assert_eq!(place, Request::SetQueuePlace { descriptors: 1, used: 2, available: 3 });
        assert!(Request::decode(head(9, 1, 24), &payload[..24]).is_err());
    }

    #[test]
    fn regions_are_as_many_as_the_message_holds() {
        let mut payload = vec![0; 8 + 64];
        payload[0] = 2;
        for (at, value) in [(8, 0_u64), (16, 10), (32, 5), (40, 20), (48, 30), (64, 7)] {
            payload[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let memory = Request::decode(head(5, 1, 72), &payload).expect("is whole");
        let first = Region { address: 0, length: 10, offset: 5 };
        let second = Region { address: 20, length: 30, offset: 7 };
        assert_eq!(memory, Request::SetMemory(vec![first, second]));
        payload[0] = 3;
        assert!(Request::decode(head(5, 1, 72), &payload).is_err());
    }

    #[test]
    fn configuration_goes_back_behind_its_head_and_ends_in_zeroes() {
        let raw = configuration(&[1, 2, 3], 1, 4, 9);
        assert_eq!(raw[..HEAD_BYTES], message(24, 5, &[0; 16])[..HEAD_BYTES]);
        assert_eq!(raw[HEAD_BYTES..][..12], [1, 0, 0, 0, 4, 0, 0, 0, 9, 0, 0, 0]);
        assert_eq!(raw[24..], [2, 3, 0, 0]);
    }

    #[test]
    fn an_interrupt_is_answered_by_a_zero() {
        let answer = |flags, value: u64| {
            let raw = message(CALL, flags, &value.to_ne_bytes());
            check_call_answer(raw.try_into().expect("is as long"))
        };
        assert!(answer(5, 0).is_ok());
        assert!(answer(5, 1).is_err() && answer(1, 0).is_err());
        assert_eq!(call().len(), CALL_ANSWER_BYTES);
    }

    #[test]
    fn messages_that_are_not_known_are_said() {
        let failure = Request::decode(head(36, 1, 0), &[]).expect_err("is not known");
        assert!(failure.to_string().contains("message 36"), "{failure}");
    }
}
