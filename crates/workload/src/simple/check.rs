//! Whether a workload makes sense, and whether it fits on an array.

use raidlab_core::{SECTOR_BYTES, Sectors, Size};

use super::{Simple, Span};
use crate::error::{WorkloadError, WorkloadErrorKind as Kind};

/// The largest block of one operation: 1 GiB. Every process holds one block in memory.
pub const LARGEST_BLOCK: u64 = 1 << 30;

/// The most processes a workload may have.
pub const MOST_PROCESSES: u32 = 4096;

impl Simple {
    /// Checks what can be checked without an array.
    ///
    /// # Errors
    /// Names the parameter that is wrong and says what would be right.
    pub fn check_parameters(&self) -> Result<(), WorkloadError> {
        if self.block > LARGEST_BLOCK {
            let reason =
                format!("{} is too large; at most {}", Size(self.block), Size(LARGEST_BLOCK));
            return Err(WorkloadError::new(Kind::Block, "block", reason));
        }
        self.check_alignment(SECTOR_BYTES, "the sector (512 bytes)")?;
        let wrong_span = match self.span {
            Span::Percent(percent) => !(1..=100).contains(&percent),
            Span::Bytes(bytes) => bytes == 0,
            Span::Together if self.kind.is_random() => {
                let reason =
                    "random places have no files to lie together; write a percentage or a size";
                return Err(WorkloadError::new(Kind::Span, "span", reason));
            }
            Span::Together => false,
        };
        if wrong_span {
            let reason = format!("{} must be from 1 % to 100 %, or a size", self.span);
            return Err(WorkloadError::new(Kind::Span, "span", reason));
        }
        Ok(())
    }

    /// Checks that `processes` processes fit on an array of `capacity` that reads and writes
    /// whole blocks of `logical_block_sectors` sectors.
    ///
    /// # Errors
    /// Names the parameter that is wrong and says what would be right.
    pub fn check(
        &self,
        capacity: Sectors,
        processes: u32,
        logical_block_sectors: u32,
    ) -> Result<(), WorkloadError> {
        self.check_parameters()?;
        if !(1..=MOST_PROCESSES).contains(&processes) {
            let reason = format!("from 1 to {MOST_PROCESSES} processes, not {processes}");
            return Err(WorkloadError::new(Kind::Processes, "processes", reason));
        }
        let logical = u64::from(logical_block_sectors.max(1)) * SECTOR_BYTES;
        self.check_alignment(logical, &format!("the array's block ({})", Size(logical)))?;
        let span = self.span_bytes(capacity, processes);
        if span > capacity.bytes() && self.span == Span::Together {
            let each = capacity.bytes() / u64::from(processes);
            let room = each / self.block * self.block;
            return Err(self.too_large(processes, &format!("the array's {capacity}"), room));
        }
        if span > capacity.bytes() {
            let reason = format!("{} is more than the array's {capacity}", Size(span));
            return Err(WorkloadError::new(Kind::Span, "span", reason));
        }
        self.check_room(capacity, span, processes, logical)
    }

    /// Blocks and sizes are whole multiples of `unit` bytes; a random workload moves whole blocks.
    fn check_alignment(&self, unit: u64, name: &str) -> Result<(), WorkloadError> {
        if self.block == 0 || !self.block.is_multiple_of(unit) {
            let reason = format!("{} is not a multiple of {name}", Size(self.block));
            return Err(WorkloadError::new(Kind::Block, "block", reason));
        }
        let (unit, name) = if self.kind.is_random() {
            (self.block, format!("the block ({})", Size(self.block)))
        } else {
            (unit, name.to_string())
        };
        if self.size == 0 || !self.size.is_multiple_of(unit) {
            let reason = format!("{} is not a multiple of {name}", Size(self.size));
            return Err(WorkloadError::new(Kind::Size, "size", reason));
        }
        Ok(())
    }

    /// Where file `index` of `processes` starts in a span: evenly spread, rounded down to a block.
    const fn start(&self, span: u64, processes: u32, index: u32) -> u64 {
        let even = (span as u128 * index as u128 / processes as u128) as u64;
        even / self.block * self.block
    }

    /// Each file ends before the next one starts, the last one before the span ends.
    fn check_room(
        &self,
        capacity: Sectors,
        span: u64,
        processes: u32,
        unit: u64,
    ) -> Result<(), WorkloadError> {
        let part = format!("{} of the array's {capacity}", Size(span));
        let does_not_fit = |key, reason| Err(WorkloadError::new(Kind::DoesNotFit, key, reason));
        if self.kind.is_random() {
            if span >= self.block {
                return Ok(());
            }
            let block = Size(self.block);
            return does_not_fit("span", format!("{part} are less than one block of {block}"));
        }
        // Rounding down to blocks makes the gaps differ by up to a block, so look at all of them.
        let starts = (0..processes).map(|index| self.start(span, processes, index));
        let ends = (1..processes).map(|index| self.start(span, processes, index)).chain([span]);
        let room =
            starts.zip(ends).map(|(start, end)| end.saturating_sub(start)).min().unwrap_or(0);
        if room >= self.size {
            return Ok(());
        }
        Err(self.too_large(processes, &part, room / unit * unit))
    }

    /// The files do not fit in a part of the array, in which `most` bytes of each would.
    fn too_large(&self, processes: u32, part: &str, most: u64) -> WorkloadError {
        let right = match most {
            0 => "use larger members, fewer processes or a smaller block".to_string(),
            most => format!("at most {} per process", Size(most)),
        };
        let files = if processes == 1 { "file" } else { "files" };
        let size = Size(self.size);
        let reason = format!("{processes} {files} of {size} do not fit in {part}; {right}");
        WorkloadError::new(Kind::DoesNotFit, "size", reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simple::Kind as What;

    const CAPACITY: Sectors = Sectors(1 << 11); // 1 MiB

    fn spec(kind: What, block: u64, size: u64) -> Simple {
        Simple { block, ..Simple::new(kind, size) }
    }

    #[test]
    fn bad_parameters_are_named() {
        let random = |block, size| spec(What::RandomRead, block, size);
        let dd = |block, size| spec(What::DdWrite, block, size);
        let span = |span| Simple { span, ..dd(4096, 4096) };
        for (spec, kind, words) in [
            (dd(1000, 4096), Kind::Block, "1000B is not a multiple of the sector"),
            (dd(0, 4096), Kind::Block, "not a multiple"),
            (dd(2 << 30, 4 << 30), Kind::Block, "2GiB is too large; at most 1GiB"),
            (dd(4096, 0), Kind::Size, "0B is not a multiple"),
            (dd(4096, 100), Kind::Size, "100B is not a multiple of the sector (512 bytes)"),
            (random(4096, 4096 + 512), Kind::Size, "not a multiple of the block (4KiB)"),
            (span(Span::Percent(0)), Kind::Span, "0 % must be from 1 % to 100 %"),
            (span(Span::Percent(101)), Kind::Span, "101 % must be"),
            (span(Span::Bytes(0)), Kind::Span, "0B must be"),
        ] {
            let error = spec.check_parameters().unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(spec.check(CAPACITY, 1, 1), Err(error));
        }
    }

    #[test]
    fn what_does_not_fit_says_what_would() {
        let dd = |size| spec(What::DdWrite, 64 << 10, size);
        // 1 MiB in 3: starts at 0, 320 KiB (of 341) and 640 KiB (of 682); the last has 384 KiB.
        assert_eq!(dd(320 << 10).check(CAPACITY, 3, 1), Ok(()));
        let error = dd(324 << 10).check(CAPACITY, 3, 1).unwrap_err();
        assert_eq!((error.kind, error.key.as_str()), (Kind::DoesNotFit, "size"));
        let words =
            "3 files of 324KiB do not fit in 1MiB of the array's 1MiB; at most 320KiB per process";
        assert_eq!(error.reason, words);
        assert_eq!(dd(1 << 20).check(CAPACITY, 1, 1), Ok(()));
        assert_eq!(dd(1 << 20).check(CAPACITY, 2, 1).unwrap_err().kind, Kind::DoesNotFit);
        let crowded = dd(512).check(CAPACITY, 17, 1).unwrap_err();
        assert!(crowded.reason.contains("fewer processes"), "{crowded}");

        let half = Simple { span: Span::Percent(50), ..dd(768 << 10) };
        assert!(
            half.check(CAPACITY, 1, 1).unwrap_err().reason.contains("fit in 512KiB of the array's")
        );
        let beyond = Simple { span: Span::Bytes(2 << 20), ..dd(4096) };
        assert_eq!(beyond.check(CAPACITY, 1, 1).unwrap_err().kind, Kind::Span);
        let tiny = Simple { span: Span::Bytes(2048), ..spec(What::RandomRead, 4096, 4096) };
        assert_eq!(tiny.check(CAPACITY, 1, 1).unwrap_err().key, "span");
        for processes in [0, MOST_PROCESSES + 1] {
            assert_eq!(dd(512).check(CAPACITY, processes, 1).unwrap_err().kind, Kind::Processes);
        }
    }

    #[test]
    fn requests_respect_the_block_of_the_array() {
        let small = spec(What::DdWrite, 512, 4096);
        assert_eq!(small.check(CAPACITY, 1, 1), Ok(()));
        let error = small.check(CAPACITY, 1, 8).unwrap_err();
        assert_eq!(error.reason, "512B is not a multiple of the array's block (4KiB)");
    }
}
