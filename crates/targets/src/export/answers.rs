//! What is done about a message: answered at once, or only when the array has done something. No I/O.

use super::protocol::{self, Ask, LEAST_ROOM, LONGEST};

/// The file that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Its bytes.
    pub size: u64,
    /// Bytes of the array's block.
    pub block: u64,
    /// How it is opened.
    pub open_flags: u32,
}

/// Bytes of the buffer that a message needs in which whole blocks are read and written: the longest payload with the
/// rest of the blocks that it begins and ends in.
pub fn room(block: u64) -> u64 {
    u64::from(LONGEST) + block.max(LEAST_ROOM as u64)
}

/// What is done about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing: there is no answer.
    Nothing,
    /// An answer with this body.
    Answer(Vec<u8>),
    /// An answer that says an error, a number from `errno.h`.
    Refuse(i32),
    /// These bytes are read first: from where, and how many.
    Read(u64, u64),
    /// Its payload is written first; and made durable.
    Write(u64, u64, bool),
    /// These bytes become zeroes first.
    Zero(u64, u64),
    /// All that was written becomes durable first.
    Sync,
}

/// Decides about a message with so many bytes of payload behind the head of a write.
pub fn decide(ask: Ask, served: &Served, payload: usize) -> Decision {
    let Served { size, block, .. } = *served;
    let is_beyond = |offset: u64, len| offset.checked_add(len).is_none_or(|end| end > size);
    match ask {
        Ask::Read { offset, len } => {
            let most = size.saturating_sub(offset).min(u64::from(LONGEST));
            match most.min(len.into()) {
                0 => Decision::Answer(Vec::new()),
                len => Decision::Read(offset, len),
            }
        }
        Ask::Write { len, .. } if len as usize > payload || len > LONGEST => {
            Decision::Refuse(libc::EINVAL)
        }
        Ask::Write { offset, len, .. } if is_beyond(offset, len.into()) => {
            Decision::Refuse(libc::ENOSPC)
        }
        Ask::Write { len: 0, .. } => Decision::Answer(protocol::written(0).to_vec()),
        Ask::Write { offset, len, durable } => {
            // Where the kernel keeps pages it asks for a sync behind it itself.
            let keeps = served.open_flags & protocol::OPEN_DIRECT == 0;
            Decision::Write(offset, len.into(), durable && !keeps)
        }
        Ask::Zero { offset, len } => {
            let is_whole = offset.is_multiple_of(block) && len.is_multiple_of(block);
            if is_beyond(offset, len) || !is_whole || len == 0 {
                Decision::Refuse(libc::EOPNOTSUPP)
            } else {
                Decision::Zero(offset, len)
            }
        }
        Ask::Sync => Decision::Sync,
        Ask::Nothing => Decision::Nothing,
        other => describe(other, served).map_or_else(Decision::Refuse, Decision::Answer),
    }
}

/// Answers questions about the directory and its file.
fn describe(ask: Ask, served: &Served) -> Result<Vec<u8>, i32> {
    let (size, block) = (served.size, served.block.max(4096) as u32);
    match ask {
        Ask::Init { minor, flags } => {
            protocol::agree(minor, flags).map(|agreed| agreed.body).ok_or(libc::EPROTO)
        }
        Ask::Lookup { known: true } => Ok(protocol::entry(size, block)),
        Ask::Lookup { known: false } => Err(libc::ENOENT),
        Ask::Attributes { node } | Ask::Change { node, size: None } => {
            protocol::attribute_body(node, size, block).ok_or(libc::ENOENT)
        }
        Ask::Change { size: Some(_), .. } => Err(libc::EPERM),
        Ask::Open { node } if protocol::is_file(node) => Ok(protocol::open_body(served.open_flags)),
        Ask::Open { .. } => Err(libc::EISDIR),
        Ask::OpenDirectory => Ok(protocol::open_body(0)),
        Ask::List { from, room } => Ok(protocol::list(from, room)),
        Ask::Close | Ask::Destroy => Ok(Vec::new()),
        Ask::Room => Ok(protocol::room(size, block)),
        Ask::Allocate => Err(libc::EOPNOTSUPP),
        _ => Err(libc::ENOSYS),
    }
}

#[cfg(test)]
mod tests {
    use super::super::requests::Span;
    use super::*;

    #[test]
    fn a_buffer_has_room_for_the_blocks_around_the_longest_payload() {
        for block in (9..=16).map(|bits| 1 << bits) {
            let served = Served { size: 64 << 20, block, open_flags: 0 };
            for offset in [0, 1, block - 1, 5 * block + block / 2] {
                for len in [LONGEST, LONGEST - 1, LONGEST - block as u32 + 1] {
                    let write = Ask::Write { offset, len, durable: true };
                    let decided = decide(write, &served, LONGEST as usize);
                    assert_eq!(decided, Decision::Write(offset, len.into(), false));
                    let direct = Served { open_flags: protocol::OPEN_DIRECT, ..served };
                    let decided = decide(write, &direct, LONGEST as usize);
                    assert_eq!(decided, Decision::Write(offset, len.into(), true));
                    let span = Span { offset, len: len.into(), block };
                    assert!(span.whole() <= room(block), "{span:?}");
                }
            }
        }
    }
}
