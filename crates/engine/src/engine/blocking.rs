//! Calls that wait for their answer, for tests and tools. They copy through a buffer of their own.

use raidlab_core::contract::{IoOp, Outcome, Segment, Token};
use raidlab_core::{SECTOR_BYTES, Sector, Sectors};

use super::{Engine, EngineError, EngineErrorKind};

/// The longest single request of a blocking call, in bytes; longer ones are done in parts.
const LONGEST: usize = 64 << 20;

impl Engine {
    /// Reads from the array.
    ///
    /// # Errors
    /// [`EngineErrorKind::InvalidRequest`] when the range is misaligned or does not lie within the
    /// array; [`EngineErrorKind::MediaError`] or [`EngineErrorKind::ArrayFailed`] when the data are lost;
    /// [`EngineErrorKind::Busy`] while other requests are outstanding.
    pub fn read_at(&mut self, at: Sector, into: &mut [u8]) -> Result<(), EngineError> {
        let mut at = at;
        for part in into.chunks_mut(LONGEST) {
            let len = whole_sectors(at, part.len())?;
            let token = self.bounce(part.len() as u64)?;
            self.blocking(IoOp::Read, at, &[segment(token, len)], false)?;
            part.copy_from_slice(&self.buffers.bytes(token)?[..part.len()]);
            at += len;
        }
        Ok(())
    }

    /// Writes to the array.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at); [`EngineErrorKind::NoRoom`] when the filesystem of a member has no room.
    pub fn write_at(&mut self, at: Sector, from: &[u8]) -> Result<(), EngineError> {
        let mut at = at;
        for part in from.chunks(LONGEST) {
            let len = whole_sectors(at, part.len())?;
            let token = self.bounce(part.len() as u64)?;
            self.buffers.bytes_mut(token)?[..part.len()].copy_from_slice(part);
            self.blocking(IoOp::Write, at, &[segment(token, len)], false)?;
            at += len;
        }
        Ok(())
    }

    /// Makes everything written before durable.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    pub fn flush(&mut self) -> Result<(), EngineError> {
        self.blocking(IoOp::Flush, Sector(0), &[], false)
    }

    /// Submits one request, which must be the only one, and waits for its answer.
    fn blocking(
        &mut self,
        op: IoOp,
        at: Sector,
        segments: &[Segment],
        fua: bool,
    ) -> Result<(), EngineError> {
        if self.outstanding > 0 {
            let reason = format!("{} other requests are outstanding", self.outstanding);
            return Err(EngineError::new(EngineErrorKind::Busy, "run a blocking request", reason));
        }
        self.submit(op, at, segments, fua)?;
        let mut replies = Vec::with_capacity(1);
        self.run_until_idle(&mut replies)?;
        let checked = replies.iter().try_for_each(|reply| check_outcome(reply.outcome, op, at));
        checked.map_err(|error| self.explain(error))
    }

    /// The buffer of the blocking calls, at least this long.
    fn bounce(&mut self, bytes: u64) -> Result<Token, EngineError> {
        if let Some((token, len)) = self.bounce {
            if len >= bytes {
                return Ok(token);
            }
            self.buffers.release(token)?;
            self.bounce = None;
        }
        let len = bytes.next_power_of_two().max(64 << 10);
        let token = self.buffers.allocate(len)?;
        self.bounce = Some((token, len));
        Ok(token)
    }
}

fn segment(token: Token, len: Sectors) -> Segment {
    Segment { token, offset: 0, len: len.0 as u32 }
}

fn whole_sectors(at: Sector, bytes: usize) -> Result<Sectors, EngineError> {
    Sectors::from_bytes(bytes as u64).ok_or_else(|| {
        let reason =
            format!("{bytes} bytes are not a multiple of the sector ({SECTOR_BYTES} bytes)");
        EngineError::new(EngineErrorKind::InvalidRequest, "read or write the array", reason)
            .at_offset(at.bytes())
    })
}

/// An outcome of a request as an error of this crate.
///
/// # Errors
/// Whatever is not [`Outcome::Done`], with `op` and the offset of `at`.
pub fn check_outcome(outcome: Outcome, op: IoOp, at: Sector) -> Result<(), EngineError> {
    let (kind, reason) = match outcome {
        Outcome::Done => return Ok(()),
        Outcome::Misaligned => (
            EngineErrorKind::InvalidRequest,
            "start and length must be multiples of the array's logical block".to_string(),
        ),
        Outcome::OutOfRange => {
            (EngineErrorKind::InvalidRequest, "the range does not lie within the array".into())
        }
        Outcome::BadSegments => (
            EngineErrorKind::InvalidRequest,
            "the segments are too many or not as long as the request".into(),
        ),
        Outcome::MediaError { first_bad } => (
            EngineErrorKind::MediaError,
            format!("no copy of {first_bad} of the array can be read"),
        ),
        Outcome::ArrayFailed => {
            (EngineErrorKind::ArrayFailed, "more members are lost than the level survives".into())
        }
        Outcome::Inconsistent => (
            EngineErrorKind::MediaError,
            "parity that is needed was not made consistent after an unclean stop".into(),
        ),
        Outcome::Stopped => (EngineErrorKind::Stopped, "the array was stopped".into()),
        Outcome::Busy => (EngineErrorKind::Busy, "the array takes no more requests now".into()),
        Outcome::ComputeFailed => (EngineErrorKind::Internal, "computing parity failed".into()),
        Outcome::NotSupported => {
            (EngineErrorKind::NotSupported, "this version does not carry out the operation".into())
        }
    };
    let operation = match op {
        IoOp::Read => "read the array",
        IoOp::Write => "write the array",
        IoOp::Flush => "flush the array",
        IoOp::Discard => "discard a range of the array",
        IoOp::WriteZeroes => "zero a range of the array",
    };
    Err(EngineError::new(kind, operation, reason).at_offset(at.bytes()))
}
