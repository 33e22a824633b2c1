//! Measured traces: one request a line, with the response time that was measured.

use raidlab_core::units::{Nanos, Sector};

use crate::drive::DriveOp;
use crate::error::{ModelError, ModelErrorKind};

/// A measured request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Read or write.
    pub op: DriveOp,
    /// First sector.
    pub at: Sector,
    /// Length in sectors of 512 bytes.
    pub len: u32,
    /// Measured response time.
    pub response: Nanos,
    /// From its completion to the issue of the next request.
    pub delay: Nanos,
}

/// The longest time in a trace: a minute.
const LONGEST_US: f64 = 60e6;

/// Reads a trace: lines of `R|W Hit|Miss SECTOR SECTORS RESPONSE_US DELAY_US`. `path` names it in
/// errors; `capacity` is what the drive holds, in sectors.
///
/// # Errors
/// On a line with other columns, a sector beyond the drive, a length of 0, a time that is negative,
/// not a number or above a minute: with line, column and what would be right. Also without requests.
pub fn parse_requests(text: &str, path: &str, capacity: u64) -> Result<Vec<Measured>, ModelError> {
    let mut requests = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        requests.push(request(line, &Place { path, line: index + 1 }, capacity)?);
    }
    if requests.is_empty() {
        let reason = "the trace holds no request; a line is `R Hit 265552 2 14901.0 4757.7`";
        return Err(ModelError::new(ModelErrorKind::Missing, path, reason));
    }
    Ok(requests)
}

struct Place<'a> {
    path: &'a str,
    line: usize,
}

impl Place<'_> {
    fn error(&self, kind: ModelErrorKind, key: &str, reason: String) -> ModelError {
        ModelError::new(kind, self.path, reason).at_line(self.line).for_key(key)
    }

    fn time(&self, key: &str, text: &str) -> Result<Nanos, ModelError> {
        match text.parse::<f64>() {
            Ok(time) if (0.0..=LONGEST_US).contains(&time) => Ok(Nanos((time * 1e3 + 0.5) as u64)),
            _ => {
                let reason = format!("must be a time from 0 to 60000000 microseconds, not {text}");
                Err(self.error(ModelErrorKind::OutOfRange, key, reason))
            }
        }
    }

    fn count(&self, key: &str, text: &str) -> Result<u64, ModelError> {
        text.parse().map_err(|_| {
            let reason = format!("must be a whole number of sectors, not {text}");
            self.error(ModelErrorKind::WrongType, key, reason)
        })
    }
}

fn request(line: &str, place: &Place<'_>, capacity: u64) -> Result<Measured, ModelError> {
    let mut columns = [""; 6];
    let mut found = 0;
    for (index, column) in line.split_ascii_whitespace().enumerate() {
        if let Some(slot) = columns.get_mut(index) {
            *slot = column;
        }
        found = index + 1;
    }
    if found != columns.len() {
        let reason = format!(
            "must have 6 columns (R or W, Hit or Miss, first sector, sectors, response and delay in \
             microseconds), not {found}"
        );
        return Err(place.error(ModelErrorKind::Syntax, "line", reason));
    }
    let [op, _, at, len, response, delay] = columns;
    let op = match op {
        "R" => DriveOp::Read,
        "W" => DriveOp::Write,
        other => {
            let reason = format!("must be R or W, not {other}");
            return Err(place.error(ModelErrorKind::OutOfRange, "operation", reason));
        }
    };
    let at = place.count("first sector", at)?;
    let len = place.count("sectors", len)?;
    if !(1..=1 << 16).contains(&len) {
        let reason = format!("must be from 1 to 65536, not {len}");
        return Err(place.error(ModelErrorKind::OutOfRange, "sectors", reason));
    }
    if at.checked_add(len).is_none_or(|end| end > capacity) {
        let reason =
            format!("{len} sectors from {at} are beyond the drive, which holds {capacity} sectors");
        return Err(place.error(ModelErrorKind::OutOfRange, "first sector", reason));
    }
    let response = place.time("response time", response)?;
    let delay = place.time("delay", delay)?;
    Ok(Measured { op, at: Sector(at), len: len as u32, response, delay })
}
