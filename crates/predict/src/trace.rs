//! Where requests to drives are written to, a line each, by cells that run on any thread.

use std::fmt;
use std::io::{self, Write};
use std::sync::Mutex;

use raidlab_sim::World;

/// A file of requests: under a line for each run, which begins with `#`, a line for each request.
pub struct Trace(Mutex<Box<dyn Write + Send>>);

impl Trace {
    /// Writes to `to`.
    pub fn new(to: impl Write + Send + 'static) -> Self {
        Self(Mutex::new(Box::new(to)))
    }

    /// Adds the requests of a run, all at once.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn add(&self, title: &str, seed: u64, requests: &[u8]) -> io::Result<()> {
        let mut to = self.0.lock().map_err(|_| io::Error::other("a thread has failed"))?;
        writeln!(to, "# {title}, seed {seed}")?;
        to.write_all(requests)
    }

    /// Adds the requests that a world has kept ([`World::start_trace`]).
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn add_kept(&self, title: &str, seed: u64, world: &mut World) -> io::Result<()> {
        let mut lines = Vec::new();
        while let Some(request) = world.next_traced() {
            writeln!(lines, "{request}")?;
        }
        self.add(title, seed, &lines)
    }

    /// Writes what is still in memory.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> io::Result<()> {
        let to = self.0.into_inner();
        to.map_err(|_| io::Error::other("a thread has failed"))?.flush()
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trace")
    }
}
