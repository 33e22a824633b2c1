//! What the kernel is told of a drive: by virtio when it is found, by the guest's first program before it is used.

use raidlab_models::{DriveKind, DriveSpec};

/// Features of a virtio block device.
mod feature {
    pub(super) const MOST_SEGMENTS: u64 = 1 << 2;
    pub(super) const BLOCK_SIZE: u64 = 1 << 6;
    pub(super) const FLUSH: u64 = 1 << 9;
    pub(super) const TOPOLOGY: u64 = 1 << 10;
    /// Known to our kernels only: `kernel/virtio-blk-fua-*.patch`.
    pub(super) const FUA: u64 = 1 << 23;
    pub(super) const INDIRECT: u64 = 1 << 28;
    pub(super) const VERSION_1: u64 = 1 << 32;
}

const LOGICAL_BLOCK: u32 = 512;

/// Which scheduler stands before a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// None at all.
    None,
    /// mq-deadline.
    Deadline,
    /// BFQ.
    Bfq,
    /// Kyber.
    Kyber,
}

impl Scheduler {
    /// Every one, with the kernel's name for it.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::None, "none"),
        (Self::Deadline, "mq-deadline"),
        (Self::Bfq, "bfq"),
        (Self::Kyber, "kyber"),
    ];

    /// The kernel's name for it.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(one, _)| *one == self).map_or("none", |(_, name)| name)
    }
}

/// What the kernel knows of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its size in bytes, whole sectors.
    pub bytes: u64,
    /// Whether it turns. raid1 remembers it when a member is added.
    pub rotational: bool,
    /// The unit it writes in, in bytes: a power of two, 512 or more.
    pub physical_block: u32,
    /// The size of requests that suits it best, in bytes; 0 for none.
    pub optimal_io: u32,
    /// Whether writes are done before they are on the medium.
    pub write_cache: bool,
    /// Whether single writes can be asked to be on the medium when they are done.
    pub fua: bool,
    /// The scheduler before it.
    pub scheduler: Scheduler,
    /// The latency that write-back throttling aims at, in microseconds; 0 turns it off.
    pub throttling_micros: u32,
    /// The most pieces of memory of a request.
    pub segments: u32,
}

impl Class {
    /// A drive without properties, of this size: what closed forms are compared with.
    pub fn plain(bytes: u64) -> Self {
        Self {
            bytes,
            rotational: true,
            physical_block: LOGICAL_BLOCK,
            optimal_io: 0,
            write_cache: false,
            fua: false,
            scheduler: Scheduler::None,
            throttling_micros: 0,
            segments: 128,
        }
    }

    /// What Linux makes of a drive of this kind on its own bus. Disks over
    /// 2 TB write in 4 KiB. The latencies are those of `block/blk-wbt.c`, the pieces those of `nvme` and `ahci`.
    pub fn of(spec: &DriveSpec) -> Self {
        let turns = !matches!(spec.kind, DriveKind::Ssd(_));
        let nvme = spec.is_nvme();
        let large = turns && spec.capacity.bytes() > 2_200_000_000_000;
        Self {
            rotational: turns,
            physical_block: if large { 4096 } else { LOGICAL_BLOCK },
            write_cache: true,
            fua: spec.has_fua(),
            scheduler: if nvme { Scheduler::None } else { Scheduler::Deadline },
            throttling_micros: if turns { 75_000 } else { 2_000 },
            segments: spec.most_pieces(),
            ..Self::plain(spec.capacity.bytes())
        }
    }

    /// The same behind another scheduler, with what follows from it: BFQ turns write-back throttling off, as it is in
    /// the way of its own.
    #[must_use]
    pub fn with_scheduler(self, scheduler: Scheduler) -> Self {
        let is_off = scheduler == Scheduler::Bfq;
        let throttling_micros = if is_off { 0 } else { self.throttling_micros };
        Self { scheduler, throttling_micros, ..self }
    }

    /// What the device offers.
    pub(crate) fn features(&self) -> u64 {
        let always = feature::MOST_SEGMENTS
            | feature::BLOCK_SIZE
            | feature::TOPOLOGY
            | feature::INDIRECT
            | feature::VERSION_1;
        let cache = if self.write_cache { feature::FLUSH } else { 0 };
        let fua = if self.fua && self.write_cache { feature::FUA } else { 0 };
        always | cache | fua
    }

    /// `struct virtio_blk_config`.
    pub(crate) fn configuration(&self) -> [u8; 60] {
        let mut raw = [0; 60];
        raw[0..8].copy_from_slice(&(self.bytes / 512).to_le_bytes());
        raw[12..16].copy_from_slice(&self.segments.to_le_bytes());
        raw[20..24].copy_from_slice(&LOGICAL_BLOCK.to_le_bytes());
        raw[24] = (self.physical_block / LOGICAL_BLOCK).trailing_zeros() as u8;
        // The smallest request without penalty is a physical block.
        let least = (self.physical_block / LOGICAL_BLOCK) as u16;
        raw[26..28].copy_from_slice(&least.to_le_bytes());
        raw[28..32].copy_from_slice(&(self.optimal_io / LOGICAL_BLOCK).to_le_bytes());
        raw[32] = self.write_cache.into();
        raw
    }

    /// What is written under `/sys/block/NAME/queue`, in this order: whether it turns may change the defaults of the
    /// others, and the scheduler may turn throttling off.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![
            ("rotational", u8::from(self.rotational).to_string()),
            ("scheduler", self.scheduler.name().to_owned()),
        ];
        let throttling = |micros: u32| ("wbt_lat_usec", micros.to_string());
        if self.scheduler != Scheduler::Bfq {
            settings.push(throttling(self.throttling_micros));
        } else if self.throttling_micros > 0 {
            // BFQ leaves the latency as it was, and to write what is there changes nothing: it would stay off.
            settings.extend([throttling(0), throttling(self.throttling_micros)]);
        }
        settings
    }

    /// What must then be found there, with what virtio told.
    pub fn readings(&self) -> Vec<(&'static str, String)> {
        let physical = self.physical_block.to_string();
        let cache = if self.write_cache { "write back" } else { "write through" };
        let mut readings = vec![
            ("rotational", u8::from(self.rotational).to_string()),
            ("wbt_lat_usec", self.throttling_micros.to_string()),
            ("physical_block_size", physical.clone()),
            ("minimum_io_size", physical),
            ("optimal_io_size", self.optimal_io.to_string()),
            ("write_cache", cache.to_owned()),
            ("fua", u8::from(self.fua && self.write_cache).to_string()),
            ("max_segments", self.segments.to_string()),
        ];
        // Kernels list the others in different orders.
        readings.push(("scheduler", format!("[{}]", self.scheduler.name())));
        readings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_models::load;

    #[test]
    fn kinds_of_drives_differ_as_their_buses_do() {
        let class = |name| Class::of(&load(name).expect("is compiled in"));
        let [disk, old, sas, sata, nvme] =
            ["nas-8tb-7200", "sata-160gb-7200", "sas-146gb-10k", "ssd-sata-1tb", "ssd-nvme4-2tb"]
                .map(class);
        assert!(disk.rotational && old.rotational && sas.rotational);
        assert!(!sata.rotational && !nvme.rotational);
        assert_eq!(
            [disk.physical_block, old.physical_block, sata.physical_block],
            [4096, 512, 512]
        );
        assert_eq!([&disk, &sas, &sata, &nvme].map(|one| one.fua), [false, true, false, true]);
        assert_eq!((sata.scheduler, nvme.scheduler), (Scheduler::Deadline, Scheduler::None));
        assert_eq!((disk.throttling_micros, nvme.throttling_micros), (75_000, 2_000));
        assert_eq!((disk.segments, nvme.segments), (168, 127));
    }

    #[test]
    fn bfq_turns_throttling_off_unless_it_is_asked_for() {
        let plain = Class { throttling_micros: 75_000, ..Class::plain(1 << 30) };
        let written = |class: &Class| -> Vec<String> {
            let settings = class.settings().into_iter();
            settings.filter(|(name, _)| *name == "wbt_lat_usec").map(|(_, value)| value).collect()
        };
        for scheduler in [Scheduler::None, Scheduler::Deadline, Scheduler::Kyber] {
            let class = plain.clone().with_scheduler(scheduler);
            assert_eq!((class.scheduler, class.throttling_micros), (scheduler, 75_000));
            assert_eq!(written(&class), ["75000"]);
        }
        let bfq = plain.with_scheduler(Scheduler::Bfq);
        assert!(bfq.readings().contains(&("wbt_lat_usec", "0".to_owned())));
        // The kernel has done it, and turns it on again when a script takes another scheduler.
        assert!(written(&bfq).is_empty());
        let asked = Class { throttling_micros: 75_000, ..bfq };
        assert_eq!(written(&asked), ["0", "75000"]);
    }

    #[test]
    fn the_configuration_space_tells_size_and_topology() {
        let class = Class { physical_block: 4096, optimal_io: 1 << 20, ..Class::plain(1 << 30) };
        let raw = class.configuration();
        assert_eq!(raw[0..8], (1_u64 << 21).to_le_bytes());
        assert_eq!((raw[24], raw[26], raw[32]), (3, 8, 0));
        assert_eq!(raw[28..32], 2048_u32.to_le_bytes());
        assert_eq!(class.features() & feature::FLUSH, 0);
    }

    #[test]
    fn fua_is_offered_with_a_cache_only() {
        let class = Class { fua: true, ..Class::plain(1 << 30) };
        assert_eq!(class.features() & feature::FUA, 0);
        let class = Class { write_cache: true, ..class };
        assert_ne!(class.features() & feature::FUA, 0);
    }
}
