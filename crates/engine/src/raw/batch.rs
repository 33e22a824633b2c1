//! What a process will do next, prepared outside the timed span.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use raidlab_core::Time;
use raidlab_core::contract::{RequestId, RequestOp, Token};
use raidlab_workload::raw::{Op, OpResult};

use super::pattern::{self, BLOCK, POISON};
use super::{RawTarget, Source};
use crate::error::{EngineError, EngineErrorKind};

/// The most operations of one process in a batch, whatever their size.
const MOST_PREPARED: usize = 1 << 16;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read,
    Write {
        /// Its number, which goes into the pattern.
        version: u32,
    },
    Sync,
}

/// An operation with its place in the process's buffer; all in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prepared {
    pub(super) action: Action,
    pub(super) at: u64,
    pub(super) len: u64,
    pub(super) offset: u64,
    /// Reads, once submitted: where the versions it must find begin.
    pub(super) expected: usize,
}

/// An operation under way.
#[derive(Debug)]
pub(super) struct Flying {
    pub(super) id: RequestId,
    pub(super) client: usize,
    pub(super) op: RequestOp,
    pub(super) next: Prepared,
    pub(super) since: Instant,
}

impl Flying {
    /// Whether `other` must wait for this one: they overlap and one is a write.
    pub(super) fn conflicts(&self, other: &Prepared) -> bool {
        let both_read = self.next.action == Action::Read && other.action == Action::Read;
        !both_read && self.next.at < other.at + other.len && other.at < self.next.at + self.next.len
    }
}

/// A process and its share of the memory.
#[derive(Debug)]
pub(super) struct Client<'a, S> {
    source: &'a mut S,
    share: u64,
    capacity: u64,
    last: OpResult,
    /// An operation that was generated and did not fit any more.
    held: Option<Op>,
    ended: bool,
    pub(super) token: Option<Token>,
    pub(super) prepared: Vec<Prepared>,
    /// Operations below were submitted.
    pub(super) cursor: usize,
    /// Its end was noted.
    pub(super) reported: bool,
}

impl<'a, S> Client<'a, S> {
    pub(super) fn new(source: &'a mut S, share: u64, capacity: u64) -> Self {
        Self {
            source,
            share,
            capacity,
            last: OpResult::Start,
            held: None,
            ended: false,
            token: None,
            prepared: Vec::new(),
            cursor: 0,
            reported: false,
        }
    }

    /// Whether a prepared operation is left.
    pub(super) fn has_next(&self) -> bool {
        self.cursor < self.prepared.len()
    }

    /// Whether all it ever wanted was submitted.
    pub(super) fn is_done(&self) -> bool {
        self.ended && !self.has_next()
    }

    /// The next operation as bytes, checked.
    fn checked(&self, op: Op) -> Result<Option<(Op, u64, u64)>, EngineError> {
        let (at, len) = match op {
            Op::Read { at, len } | Op::Write { at, len } => (at, len),
            Op::Sync => (0, 0),
            Op::Done => return Ok(None),
        };
        let wrong =
            |kind, reason| Err(EngineError::new(kind, "run a workload", reason).at_offset(at));
        if !at.is_multiple_of(BLOCK) || !len.is_multiple_of(BLOCK) {
            let reason = format!("{len} bytes: the raw target works in whole blocks of 4 KiB");
            return wrong(EngineErrorKind::NotSupported, reason);
        }
        if at.checked_add(len).is_none_or(|end| end > self.capacity) {
            let reason = format!("{len} bytes pass the end of the array, {} bytes", self.capacity);
            return wrong(EngineErrorKind::InvalidRequest, reason);
        }
        Ok(Some((op, at, len)))
    }
}

impl RawTarget {
    /// Prepares a process's next operations, up to its share of the memory.
    ///
    /// What the last batch left over comes first; its data are made anew at another place.
    pub(super) fn prepare<S: Source>(
        &mut self,
        client: &mut Client<'_, S>,
        now: Time,
        cancel: &AtomicBool,
    ) -> Result<(), EngineError> {
        let mut left = client.prepared.split_off(client.cursor);
        client.prepared.clear();
        client.cursor = 0;
        let mut used = 0;
        for mut prepared in left.drain(..) {
            prepared.offset = used;
            used += prepared.len;
            self.put(client, prepared)?;
        }
        while !client.ended {
            if cancel.load(Ordering::Relaxed) {
                return Err(EngineError::cancelled("prepare a workload"));
            }
            let op = client.held.take().unwrap_or_else(|| client.source.next(now, client.last));
            client.last = OpResult::Done;
            let Some((op, at, len)) = client.checked(op)? else {
                client.ended = true;
                break;
            };
            let full = client.prepared.len() >= MOST_PREPARED;
            if full || (used > 0 && used + len > client.share) {
                client.held = Some(op);
                break;
            }
            if len > client.share {
                // One operation is larger than the share: the buffer grows to hold it.
                client.share = len;
                if let Some(token) = client.token.take() {
                    self.engine.release(token)?;
                }
            }
            let action = match op {
                Op::Read { .. } => Action::Read,
                Op::Write { .. } => Action::Write { version: self.new_version()? },
                Op::Sync | Op::Done => Action::Sync,
            };
            self.put(client, Prepared { action, at, len, offset: used, expected: 0 })?;
            used += len;
        }
        Ok(())
    }

    fn new_version(&mut self) -> Result<u32, EngineError> {
        self.next_version = self.next_version.checked_add(1).ok_or_else(|| {
            let reason = "more than 4,294,967,295 writes to one target";
            EngineError::new(EngineErrorKind::NotSupported, "prepare a workload", reason)
        })?;
        Ok(self.next_version)
    }

    /// Makes the data of an operation, or poisons where they will be read to.
    fn put<S>(
        &mut self,
        client: &mut Client<'_, S>,
        prepared: Prepared,
    ) -> Result<(), EngineError> {
        if prepared.len > 0 {
            let token = match client.token {
                Some(token) => token,
                None => self.engine.allocate(client.share)?,
            };
            client.token = Some(token);
            let from = prepared.offset as usize;
            let bytes = &mut self.engine.bytes_mut(token)?[from..from + prepared.len as usize];
            match prepared.action {
                Action::Write { version } => {
                    let blocks = bytes.chunks_exact_mut(BLOCK as usize);
                    for (at, block) in (prepared.at..).step_by(BLOCK as usize).zip(blocks) {
                        pattern::fill(at, version, block);
                    }
                }
                _ => bytes.fill(POISON),
            }
        }
        client.prepared.push(prepared);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_overlaps_with_a_write_wait() {
        let prepared = |action, at, len| Prepared { action, at, len, offset: 0, expected: 0 };
        let write = Action::Write { version: 1 };
        let flying = |action| Flying {
            id: RequestId(1),
            client: 0,
            op: RequestOp::Write,
            next: prepared(action, 8192, 8192),
            since: Instant::now(),
        };
        assert!(flying(write).conflicts(&prepared(Action::Read, 12288, 4096)));
        assert!(flying(write).conflicts(&prepared(write, 4096, 8192)));
        assert!(flying(Action::Read).conflicts(&prepared(write, 0, 1 << 20)));
        assert!(!flying(Action::Read).conflicts(&prepared(Action::Read, 8192, 8192)));
        assert!(!flying(write).conflicts(&prepared(write, 16384, 4096)));
        assert!(!flying(write).conflicts(&prepared(write, 4096, 4096)));
        assert!(!flying(write).conflicts(&prepared(Action::Sync, 0, 0)));
    }
}
