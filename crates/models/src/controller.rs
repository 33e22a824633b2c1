//! Controllers that show the host one disk: firmware RAID and caching array controllers.
//!
//! The array itself is computed by the core as anywhere else; a controller is what stands in front of
//! it. Requests of the host are cut to the controller's `longest`, wait in the host's one request
//! queue with its scheduler, and go to the array so many at once as the controller takes
//! (`outstanding`), each after some of the controller's time. Members have no queue of the host.
//!
//! * **Firmware RAID** ("BIOS" mode of cards and chipsets) takes one request: the next one goes out only
//!   when all pieces of the one before are back. Data pass through: the drives take a write while it
//!   still comes from the host.
//!   How much of it is under way at once may be bounded (`write_buffer`), and firmware may switch devices
//!   of a PATA channel faster or slower than a driver (`switch`).
//! * **Write-through**: drive write caches are off, so a write is answered when it is on the media. What
//!   was read or written before has passed by then: each request loses about a turn.
//! * **Posted writes** (cache with battery): a write is answered when the cache has it; a flush has
//!   nothing to wait for. Dirty data go to the array in ascending order, over and over, in pieces
//!   cut at multiples of `destage` (so that full stripes are written as such), a few at a time, as
//!   long as there are any. When the cache is full, writes wait in order for room. Reads of data that
//!   are all in the cache are answered from it. Drive write caches are off here as well.
//!
//! **Left out**: a cache of read data and reading ahead (the drives' own count), the reduction of
//! posting while the battery charges, discards (they pass the controller by).

mod state;

use raidlab_core::units::{Nanos, Sectors};

use crate::queue::{QueueSpec, Scheduler};
use crate::spec::BadFigure;
pub use state::{Controller, ControllerInput, ControllerOutput};

/// What a controller does with writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritePolicy {
    /// It passes them on; the drives' own write caches are as the drives have them.
    Pass,
    /// Drive write caches are off: a write is answered when it is on the media.
    Through,
    /// A cache with battery: a write is answered when the cache has it.
    Posted {
        /// What the cache holds of written data.
        capacity: Sectors,
        /// How many separate ranges these may form.
        extents: u32,
    },
}

/// A controller's figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerSpec {
    /// Its name in results.
    pub name: String,
    /// Requests of the host that it works on at once, from 1 to 4,096.
    pub outstanding: u32,
    /// The longest request, at least 4 KiB.
    pub longest: Sectors,
    /// The controller's time for each request, one after another; at most 1 s.
    pub request: Nanos,
    /// Bytes of parity operands that the controller itself reads a second, from 1 MB/s; none: the host's CPU
    /// computes parity.
    pub parity_rate: Option<u64>,
    /// What its own firmware takes to switch between the devices of a PATA channel, in place of what the
    /// host's driver takes; at most 1 s.
    pub switch: Option<Nanos>,
    /// Written data that it has under way to the drives at most; more wait, but for one request. At
    /// least 4 KiB; none: as many as `outstanding` requests are. Of no use for posted writes.
    pub write_buffer: Option<Sectors>,
    /// What it does with writes.
    pub writes: WritePolicy,
    /// Posted writes: they go to the array in pieces of at most this; a world rounds it down to
    /// full stripes. At least 4 KiB.
    pub destage: Sectors,
    /// Posted writes: how many of these are under way at once, from 1 to 256.
    pub destages: u32,
    /// The scheduler of the host's request queue for the one disk.
    pub scheduler: Scheduler,
}

impl ControllerSpec {
    /// Firmware RAID: one request at a time, 128 KiB at most (256 sectors of an 8-bit sector count:
    /// ATA-5), the drives' caches as they are.
    fn firmware(name: &str, request: Nanos) -> Self {
        Self {
            name: name.to_owned(),
            outstanding: 1,
            longest: Sectors(256),
            request,
            parity_rate: None,
            switch: None,
            write_buffer: None,
            writes: WritePolicy::Pass,
            destage: Sectors(256),
            destages: 1,
            scheduler: Scheduler::Noop,
        }
    }

    /// An ITE8212 in its BIOS mode: an 8-bit processor on the card runs the array; 0.2 ms a request
    /// (estimate).
    pub fn ite8212_bios(name: &str) -> Self {
        Self::firmware(name, Nanos::from_micros(200))
    }

    /// A mirror of a chipset's or card's BIOS (nVidia, Promise), which the host's driver carries out:
    /// one request at a time, 20 us each (estimate: as a request of any driver).
    pub fn bios_mirror(name: &str) -> Self {
        Self::firmware(name, Nanos::from_micros(20))
    }

    /// An HP Smart Array E200i with 128 MB. Without battery it posts no writes, and drive write caches
    /// are off either way (HP's data sheet). With battery three quarters of the memory hold written data
    /// (estimate; the ratio of the family can be set). 64 requests at once, 128 KiB each, 0.1 ms a
    /// request, parity at 200 MB/s of operands (estimates).
    pub fn smart_array_e200i(name: &str, has_battery: bool) -> Self {
        let posted = WritePolicy::Posted { capacity: Sectors(96 << 11), extents: 4_096 };
        Self {
            outstanding: 64,
            parity_rate: Some(200_000_000),
            writes: if has_battery { posted } else { WritePolicy::Through },
            destage: Sectors(512),
            destages: 16,
            ..Self::firmware(name, Nanos::from_micros(100))
        }
    }

    /// The same with another number of requests at once: how firmware RAID is compared with one that
    /// takes many.
    #[must_use]
    pub fn with_outstanding(self, outstanding: u32) -> Self {
        Self { outstanding, ..self }
    }

    /// The same with another way to treat writes.
    #[must_use]
    pub fn with_writes(self, writes: WritePolicy) -> Self {
        Self { writes, ..self }
    }

    /// The same with another scheduler in front.
    #[must_use]
    pub fn with_scheduler(self, scheduler: Scheduler) -> Self {
        Self { scheduler, ..self }
    }

    /// The same with another longest request.
    #[must_use]
    pub fn with_longest(self, longest: Sectors) -> Self {
        Self { longest, ..self }
    }

    /// The request queue in front: the scheduler's, with the controller's limits.
    pub fn queue(&self) -> QueueSpec {
        self.limit(self.scheduler.spec(self.outstanding))
    }

    /// A queue within the controller's limits.
    pub(crate) fn limit(&self, queue: QueueSpec) -> QueueSpec {
        let longest = queue.longest.min(self.longest);
        QueueSpec { depth: self.outstanding, longest, ..queue }
    }

    /// Whether the drives answer writes only from the media.
    pub fn writes_through(&self) -> bool {
        self.writes != WritePolicy::Pass
    }

    /// Checks the figures.
    ///
    /// # Errors
    /// Names the first that cannot be.
    pub fn check(&self) -> Result<(), BadFigure> {
        let name = &self.name;
        let wrong = |key, reason: String| {
            let reason = format!("{name}: {reason}");
            Err(BadFigure { key, contradicts: false, reason })
        };
        if name.is_empty() {
            return wrong("name", "a controller needs a name".into());
        }
        if !(1..=4_096).contains(&self.outstanding) {
            return wrong("outstanding", format!("{}; must be 1 to 4,096", self.outstanding));
        }
        for (key, length) in [("longest", self.longest), ("destage", self.destage)] {
            if !(8..=1 << 20).contains(&length.0) {
                return wrong(key, format!("{length}; must be 4 KiB to 512 MiB"));
            }
        }
        if self.switch.is_some_and(|switch| switch.0 > 1_000_000_000) {
            return wrong("switch", "must be at most 1,000 ms".into());
        }
        if let Some(buffer) = self.write_buffer
            && !(8..=1 << 20).contains(&buffer.0)
        {
            return wrong("write_buffer", format!("{buffer}; must be 4 KiB to 512 MiB"));
        }
        if self.request.0 > 1_000_000_000 {
            return wrong("request", "must be at most 1,000 ms".into());
        }
        if self.parity_rate.is_some_and(|rate| rate < 1_000_000) {
            return wrong("parity_rate", "must be at least 1 MB/s".into());
        }
        if !(1..=256).contains(&self.destages) {
            return wrong("destages", format!("{}; must be 1 to 256", self.destages));
        }
        let WritePolicy::Posted { capacity, extents } = self.writes else { return Ok(()) };
        if capacity < self.longest || capacity.0 > 1 << 40 {
            return wrong(
                "capacity",
                format!("{capacity}; must hold a request of {}", self.longest),
            );
        }
        if !(1..=1 << 20).contains(&extents) {
            return wrong("extents", format!("{extents}; must be 1 to 1,048,576"));
        }
        Ok(())
    }
}
