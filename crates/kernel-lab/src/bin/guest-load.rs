//! A load for guests of the kernel lab: requests of one size to a drive, an array or a file, so many at once, by
//! io_uring.
//!
//! One system call hands over as many requests as have ended, so that a deep queue costs little. Statically linked it
//! needs nothing of the guest.

use std::fs::{File, OpenOptions};
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;
use std::time::Instant;

use io_uring::{IoUring, opcode, squeue, types};

const USAGE: &str = "\
usage: guest-load read|write FILE [KEY=VALUE...]

  block=4096    bytes of a request        depth=32      requests at once
  count=10000   requests in all           span=BYTES    of the file, from its start; if not said, all of it
  order=random  or sequential             seed=1        of a random order
  cache=0       1: through the page cache
  batch=1       new requests are sent when so many have ended, by one call: less work, and a depth that varies

Prints: requests, nanoseconds in all, nanoseconds of a request in the mean, and of the longest.
";

/// Memory of requests begins at multiples of this, as direct I/O wants it.
const ALIGNMENT: usize = 4096;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = Load::parse(&words).and_then(|load| load.run());
    match done {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("guest-load: {error}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

type Error = Box<dyn std::error::Error>;

#[derive(Debug, PartialEq, Eq)]
struct Load {
    writes: bool,
    file: String,
    block: usize,
    depth: usize,
    batch: usize,
    count: u64,
    span: Option<u64>,
    random: bool,
    seed: u64,
    cache: bool,
}

impl Load {
    fn parse(words: &[String]) -> Result<Self, Error> {
        let [direction, file, rest @ ..] = words else { return Err("what, and where?".into()) };
        let mut load = Self {
            writes: match direction.as_str() {
                "read" => false,
                "write" => true,
                other => return Err(format!("{other}: neither read nor write").into()),
            },
            file: file.clone(),
            block: 4096,
            depth: 32,
            batch: 1,
            count: 10_000,
            span: None,
            random: true,
            seed: 1,
            cache: false,
        };
        for word in rest {
            let wrong = || format!("{word}: not understood");
            let (key, value) = word.split_once('=').ok_or_else(wrong)?;
            match (key, value) {
                ("block", _) => load.block = value.parse()?,
                ("depth", _) => load.depth = value.parse()?,
                ("batch", _) => load.batch = value.parse()?,
                ("count", _) => load.count = value.parse()?,
                ("span", _) => load.span = Some(value.parse()?),
                ("seed", _) => load.seed = value.parse()?,
                ("order", "random" | "sequential") => load.random = value == "random",
                ("cache", "0" | "1") => load.cache = value == "1",
                _ => return Err(wrong().into()),
            }
        }
        let fits = (512..=1 << 26).contains(&load.block) && load.block.is_multiple_of(512);
        if !fits || !(1..=1024).contains(&load.depth) || !(1..=load.depth).contains(&load.batch) {
            return Err("block: 512 bytes to 64 MiB; depth: 1 to 1024; batch: at most depth".into());
        }
        Ok(load)
    }

    fn open(&self) -> Result<(File, u64), Error> {
        let mut options = OpenOptions::new();
        options.read(!self.writes).write(self.writes);
        if !self.cache {
            options.custom_flags(libc::O_DIRECT);
        }
        let file = options.open(&self.file).map_err(|error| format!("{}: {error}", self.file))?;
        // The size of a device is where its end is.
        let end = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))?;
        let blocks = self.span.unwrap_or(end).min(end) / self.block as u64;
        if blocks == 0 {
            return Err(format!("{}: has no room for a block", self.file).into());
        }
        Ok((file, blocks))
    }

    fn run(&self) -> Result<String, Error> {
        let (file, blocks) = self.open()?;
        // Not given back where something fails: the kernel may still be at work on it.
        let mut memory = ManuallyDrop::new(vec![0_u8; self.block * self.depth + ALIGNMENT]);
        let first = memory.as_ptr().align_offset(ALIGNMENT);
        let mut slots: Vec<&mut [u8]> =
            memory[first..].chunks_exact_mut(self.block).take(self.depth).collect();
        let mut places = Places { next: 0, state: self.seed, blocks, random: self.random };
        let mut ring = IoUring::new(self.depth.next_power_of_two() as u32)?;
        let (mut sent, mut done, mut total, mut longest) = (0_u64, 0_u64, 0, 0);
        let began = Instant::now();
        let mut since = vec![began; self.depth];
        let mut free: Vec<usize> = (0..self.depth).rev().collect();
        while done < self.count {
            let now = Instant::now();
            while sent < self.count
                && let Some(slot) = free.pop()
            {
                let entry = self.entry(&file, slots[slot], places.next_block());
                since[slot] = now;
                // SAFETY: the entry's memory is the slot's, which is not given back before all entries have ended and
                // in no other entry until this one has, as its number was taken from `free`; the kernel holds the file.
                unsafe { ring.submission().push(&entry.user_data(slot as u64))? };
                sent += 1;
            }
            let under_way = (sent - done) as usize;
            ring.submit_and_wait(self.batch.min(under_way))?;
            let now = Instant::now();
            for ended in ring.completion() {
                if ended.result() != self.block as i32 {
                    let text = format!("{}: {} of a request", self.file, ended.result());
                    return Err(text.into());
                }
                let slot = ended.user_data() as usize;
                let took = now.duration_since(since[slot]).as_nanos();
                (done, total, longest) = (done + 1, total + took, longest.max(took));
                free.push(slot);
            }
        }
        let all = began.elapsed().as_nanos();
        drop(ManuallyDrop::into_inner(memory));
        Ok(format!("{done} {all} {} {longest}", total / u128::from(done.max(1))))
    }

    fn entry(&self, file: &File, slot: &mut [u8], block: u64) -> squeue::Entry {
        let (file, length) = (types::Fd(file.as_raw_fd()), self.block as u32);
        let offset = block * self.block as u64;
        if self.writes {
            opcode::Write::new(file, slot.as_ptr(), length).offset(offset).build()
        } else {
            opcode::Read::new(file, slot.as_mut_ptr(), length).offset(offset).build()
        }
    }
}

/// Where requests go.
struct Places {
    next: u64,
    state: u64,
    blocks: u64,
    random: bool,
}

impl Places {
    fn next_block(&mut self) -> u64 {
        if !self.random {
            let block = self.next % self.blocks;
            self.next += 1;
            return block;
        }
        // SplitMix64; the bias of the remainder is beyond what a drive could show.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % self.blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Load, String> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        Load::parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let right =
            load("write /dev/vda block=512 depth=1 order=sequential cache=1").expect("is right");
        assert!(right.writes && right.cache && !right.random && right.block == 512);
        for wrong in
            ["read", "erase x", "read x block=100", "read x depth=0", "read x order=up", "read x a"]
        {
            assert!(load(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn all_blocks_are_met_in_order_or_by_chance() {
        let mut places = Places { next: 0, state: 1, blocks: 4, random: false };
        let order: Vec<u64> = (0..5).map(|_| places.next_block()).collect();
        assert_eq!(order, [0, 1, 2, 3, 0]);
        let mut places = Places { random: true, ..places };
        let met: std::collections::BTreeSet<u64> = (0..100).map(|_| places.next_block()).collect();
        assert_eq!(met.len(), 4);
    }

    #[test]
    fn a_file_is_written_and_read() {
        let path = std::env::temp_dir().join(format!("guest-load-{}", std::process::id()));
        std::fs::write(&path, vec![1; 1 << 16]).expect("can be written");
        let text =
            |direction: &str| format!("{direction} {} count=50 depth=8 cache=1", path.display());
        let line = load(&text("write")).expect("is right").run().expect("goes well");
        assert!(line.starts_with("50 "), "{line}");
        assert_eq!(std::fs::metadata(&path).expect("is there").len(), 1 << 16);
        let line = load(&text("read")).expect("is right").run().expect("goes well");
        assert_eq!(line.split(' ').count(), 4, "{line}");
        std::fs::remove_file(&path).expect("is there");
    }
}
