//! io_uring: what is started waits in the ring until the process waits for one or does something else,
//! so that one system call both starts and waits.

use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, Probe, opcode, types};
use raidlab_workload::MOST_STARTED;

use super::{Answer, Job};

/// How many may wait in the ring before the system is called.
const ENTRIES: u32 = 256;

/// A ring; used by the thread that made it only.
pub(super) struct Ring(IoUring);

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Ring").finish_non_exhaustive()
    }
}

impl Ring {
    /// A ring, when the system permits one and can read and write through it.
    pub(super) fn new() -> io::Result<Self> {
        // Linux 6.1 on: one thread uses it, and completions need not interrupt that thread.
        let mut modern = IoUring::builder();
        modern.setup_single_issuer().setup_defer_taskrun().setup_cqsize(MOST_STARTED);
        let mut plain = IoUring::builder();
        plain.setup_cqsize(MOST_STARTED);
        let ring: IoUring = modern.build(ENTRIES).or_else(|_| plain.build(ENTRIES))?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) || !probe.is_supported(opcode::Write::CODE) {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        Ok(Self(ring))
    }

    /// Puts a job into the ring.
    ///
    /// # Safety
    /// The job's memory and file stay valid, and the memory in nobody else's use, until its answer.
    pub(super) unsafe fn start(&mut self, job: &Job) -> io::Result<()> {
        let file = types::Fd(job.file.as_raw_fd());
        // Lengths were checked: an operation moves less than 2 GiB.
        let len = job.piece.len as u32;
        let entry = if job.write {
            opcode::Write::new(file, job.piece.start, len).offset(job.at).build()
        } else {
            opcode::Read::new(file, job.piece.start, len).offset(job.at).build()
        };
        let entry = entry.user_data(u64::from(job.flight));
        if self.0.submission().is_full() {
            self.submit()?;
        }
        // SAFETY: memory and file stay valid, as the caller promises.
        let pushed = unsafe { self.0.submission().push(&entry) };
        pushed.map_err(|_| io::Error::from_raw_os_error(libc::EBUSY))
    }

    /// Hands all that waits in the ring to the system.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        while !self.0.submission().is_empty() {
            match self.0.submit() {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next answer. An interrupted wait is an error, so that the caller can look at its flags.
    pub(super) fn wait(&mut self) -> io::Result<Answer> {
        loop {
            if !self.0.submission().is_empty() {
                // Answers that are there make this return at once.
                self.0.submit_and_wait(1)?;
            }
            if let Some(answer) = self.0.completion().next() {
                let flight = answer.user_data() as u32;
                return Ok(Answer { flight, result: i64::from(answer.result()) });
            }
            self.0.submit_and_wait(1)?;
        }
    }
}
