//! Paths between host and drives: PATA channels, links, buses, the memory of an old host.
//!
//! A path is a row of links, from the host to a drive. What is modelled of each:
//!
//! * A **PATA channel** has two devices and serves one command at a time. The selected device owns the
//!   channel from command to completion: media wait and transfer, without disconnect. A write that
//!   the drive's buffer took and a read that hits end soon, others when the medium has passed. When the
//!   other device is selected, the command begins `switch` later. Commands wait in the order in which
//!   they came.
//! * A **link** (SATA, SAS) lets commands of its drives be under way side by side; their transfers go
//!   one after another.
//! * A **bus** (PCI) does the same for all drives behind it, with a cost to turn its direction.
//! * The **memory path** of an old host - memory, chipset, front-side bus - is one link for every
//!   byte between memory and devices and for every copy of the CPU ([`Paths::copy`]). A write to n
//!   mirrors passes it n times, because n member writes do. While the CPU copies for a lone reader, reads
//!   under way on PATA channels may be held up ([`Paths::pause`]).
//!
//! **Approximation.** Transfers pass all links of a route at once (cut-through). Each link is
//! occupied for overhead and bytes / rate, in the order in which commands begin (writes) or end on the
//! medium (reads), and a command completes when both drive and path are done. A write's transfer
//! begins when the most backlogged link comes to it, and only then does the drive see the command. A
//! read's transfer is placed as early as the drive can have begun with the command, since data cross
//! while the medium still delivers. So loads and rates are exact and a saturated link paces its
//! drives exactly; what is lost is waiting at a link that is *not* saturated: a read may end too early
//! by at most the transfers of the other drives that pass at the same moment (128 KiB at 100 MB/s:
//! 1.3 ms), and one burst's latency per link (microseconds) is left out.
//!
//! **Left out**: sharing of a request queue's merging while a PATA command waits for its channel (it
//! counts as sent), priorities of a bus's arbiter, retries.

mod state;

use raidlab_core::units::Nanos;

use crate::spec::BadFigure;
pub use state::{PathInput, PathOutput, Paths};

/// What a link of a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkKind {
    /// A PATA channel: one command at a time, held from command to completion.
    PataChannel,
    /// A serial link to a drive, or to several behind an expander.
    Link,
    /// A bus that the transfers of several drives share.
    Bus,
    /// Memory, chipset and CPU copies of a host as one link.
    Memory,
}

impl LinkKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::PataChannel, Self::Link, Self::Bus, Self::Memory];

    /// The name: `pata-channel`, `link`, `bus`, `memory`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PataChannel => "pata-channel",
            Self::Link => "link",
            Self::Bus => "bus",
            Self::Memory => "memory",
        }
    }
}

/// A link of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Its name in results; no two of a host are the same.
    pub name: String,
    /// What it is.
    pub kind: LinkKind,
    /// Net payload rate in bytes per second, 1 MB/s to 1 TB/s.
    pub rate: u64,
    /// Occupied per command besides the bytes, at most 1 s. On a PATA channel before the drive sees the
    /// command.
    pub overhead: Nanos,
    /// PATA channels: what a command waits when the one before went to the other device; at most 1 s. Behind
    /// a controller whose firmware has [one of its own](crate::ControllerSpec::switch), that counts.
    pub switch: Nanos,
    /// Buses: occupied more when the transfer before went the other way; at most 1 s.
    pub turn: Nanos,
}

/// A kind of link that is known by name: makes one of this name.
type Preset = fn(&str) -> LinkSpec;

impl LinkSpec {
    /// The links whose figures are known, by what they are called in files and on command lines.
    pub const PRESETS: [(&str, Preset); 5] = [
        ("pata-udma100", Self::pata_udma100),
        ("sata-150", Self::sata_150),
        ("sata-300", Self::sata_300),
        ("sas-300", Self::sas_300),
        ("pci-32-33", Self::pci_32_33),
    ];

    fn new(name: &str, kind: LinkKind, rate: u64, overhead: Nanos) -> Self {
        let name = name.to_owned();
        Self { name, kind, rate, overhead, switch: Nanos::ZERO, turn: Nanos::ZERO }
    }

    /// A PATA channel in UDMA mode 5: 85 MB/s (100 on the cable, 80 to 90 net: estimate), 10 us to
    /// write the registers of a command (eight PIO writes of about 1 us: estimate), 1 ms to switch to
    /// the other device (estimate: two drives on a channel of an ITE8212 read 64 KiB chunks 1 ms
    /// slower each than the transfer takes).
    pub fn pata_udma100(name: &str) -> Self {
        let overhead = Nanos::from_micros(10);
        let switch = Nanos::from_millis(1);
        Self { switch, ..Self::new(name, LinkKind::PataChannel, 85_000_000, overhead) }
    }

    /// A SATA link of 1.5 Gb/s: 150 MB/s behind 8b/10b coding, 135 net of frames and primitives
    /// (estimate), 2 us a command for its frames (estimate).
    pub fn sata_150(name: &str) -> Self {
        Self::new(name, LinkKind::Link, 135_000_000, Nanos::from_micros(2))
    }

    /// A SATA link of 3 Gb/s: 300 MB/s behind 8b/10b coding, 270 net (estimate), 2 us a command.
    pub fn sata_300(name: &str) -> Self {
        Self::new(name, LinkKind::Link, 270_000_000, Nanos::from_micros(2))
    }

    /// A SAS link of 3 Gb/s: 300 MB/s behind 8b/10b coding, 280 net (estimate: frames of 1 KiB carry
    /// 60 bytes besides), 2 us a command.
    pub fn sas_300(name: &str) -> Self {
        Self::new(name, LinkKind::Link, 280_000_000, Nanos::from_micros(2))
    }

    /// A PCI bus of 32 bits and 33 MHz: 133 MB/s peak, 100 net (80 to 110 in one direction: estimate), 2
    /// us a command for arbitration and descriptors (estimate), 1 us to turn (estimate).
    pub fn pci_32_33(name: &str) -> Self {
        let turn = Nanos::from_micros(1);
        Self { turn, ..Self::new(name, LinkKind::Bus, 100_000_000, Nanos::from_micros(2)) }
    }

    /// Any bus that passes so many bytes per second, such as a controller's own memory.
    pub fn bus(name: &str, rate: u64) -> Self {
        Self::new(name, LinkKind::Bus, rate, Nanos::ZERO)
    }

    /// The memory path of a host. There is no default rate: an old host's copies run at some hundred
    /// MB/s, a present one's at 10 GB/s.
    pub fn memory(name: &str, rate: u64) -> Self {
        Self::new(name, LinkKind::Memory, rate, Nanos::ZERO)
    }

    /// The same with another rate, in bytes per second.
    #[must_use]
    pub fn with_rate(self, rate: u64) -> Self {
        Self { rate, ..self }
    }

    /// The same with another cost to switch between devices.
    #[must_use]
    pub fn with_switch(self, switch: Nanos) -> Self {
        Self { switch, ..self }
    }

    /// The same with another cost per command.
    #[must_use]
    pub fn with_overhead(self, overhead: Nanos) -> Self {
        Self { overhead, ..self }
    }

    fn check(&self) -> Result<(), BadFigure> {
        const SECOND: u64 = 1_000_000_000;
        let name = &self.name;
        if name.is_empty() {
            return wrong("name", "a link of a path needs a name".into());
        }
        if !(1_000_000..=1_000_000_000_000).contains(&self.rate) {
            let rate = self.rate;
            return wrong("rate", format!("{name}: {rate} bytes/s; must be 1 MB/s to 1 TB/s"));
        }
        let times = [("overhead", self.overhead), ("switch", self.switch), ("turn", self.turn)];
        if let Some((key, time)) = times.into_iter().find(|(_, time)| time.0 > SECOND) {
            return wrong(
                key,
                format!("{name}: {} ms; must be at most 1,000 ms", time.0 / 1_000_000),
            );
        }
        if self.switch.0 > 0 && self.kind != LinkKind::PataChannel {
            return wrong("switch", format!("{name}: only a PATA channel switches devices"));
        }
        if self.turn.0 > 0 && self.kind != LinkKind::Bus {
            return wrong("turn", format!("{name}: only a bus has a cost to turn"));
        }
        Ok(())
    }
}

fn wrong<T>(key: &'static str, reason: String) -> Result<T, BadFigure> {
    Err(BadFigure { key, contradicts: false, reason })
}

/// The paths of a host: its links, and which of them lie between it and each drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathSpec {
    /// The links.
    pub links: Vec<LinkSpec>,
    /// For each drive, in the order of the array's members (log device last), positions in `links`
    /// from host to drive. An empty route is a drive without limits but its own.
    pub routes: Vec<Vec<usize>>,
    /// With a controller that shows one disk: what lies between host and controller; requests of the
    /// host pass it once, whatever the array makes of them.
    pub host: Vec<usize>,
}

impl PathSpec {
    /// Every drive has a link of its own.
    pub fn each_its_own(drives: usize, link: impl Fn(usize) -> LinkSpec) -> Self {
        let routes = (0..drives).map(|drive| vec![drive]).collect();
        Self { links: (0..drives).map(link).collect(), routes, host: Vec::new() }
    }

    /// Drives on shared links: `of` says which for each drive.
    pub fn shared(links: Vec<LinkSpec>, of: &[usize]) -> Self {
        let routes = of.iter().map(|link| vec![*link]).collect();
        Self { links, routes, host: Vec::new() }
    }

    /// Puts a link, such as a bus or the memory path, between the host and all drives.
    #[must_use]
    pub fn behind(mut self, link: LinkSpec) -> Self {
        self.links.push(link);
        let last = self.links.len() - 1;
        self.routes.iter_mut().for_each(|route| route.insert(0, last));
        self
    }

    /// Puts a link between the host and a controller that shows one disk.
    #[must_use]
    pub fn behind_host(mut self, link: LinkSpec) -> Self {
        self.links.push(link);
        self.host.insert(0, self.links.len() - 1);
        self
    }

    /// The same without the link of this name: nothing waits for it and nothing is counted.
    ///
    /// # Errors
    /// When no link has the name; says which there are.
    pub fn without(&self, name: &str) -> Result<Self, BadFigure> {
        if !self.links.iter().any(|link| link.name == name) {
            let known: Vec<&str> = self.links.iter().map(|one| one.name.as_str()).collect();
            let known = known.join(", ");
            return wrong("links", format!("there is no link `{name}`; there are: {known}"));
        }
        Ok(self.retain(|link| link.name != name))
    }

    /// The same without any link of a kind.
    #[must_use]
    pub fn without_kind(&self, kind: LinkKind) -> Self {
        self.retain(|link| link.kind != kind)
    }

    /// The same with channels that switch between their devices at no cost.
    #[must_use]
    pub fn without_switching(&self) -> Self {
        let mut spec = self.clone();
        spec.links.iter_mut().for_each(|link| link.switch = Nanos::ZERO);
        spec
    }

    fn retain(&self, keep: impl Fn(&LinkSpec) -> bool) -> Self {
        // The new position of each link that stays.
        let mut count = 0;
        let places: Vec<Option<usize>> = self
            .links
            .iter()
            .map(|link| {
                keep(link).then(|| {
                    count += 1;
                    count - 1
                })
            })
            .collect();
        let moved = |route: &Vec<usize>| -> Vec<usize> {
            // What points nowhere stays wrong for `check` to find.
            let place = |link: &usize| places.get(*link).copied().unwrap_or(Some(usize::MAX));
            route.iter().filter_map(place).collect()
        };
        Self {
            links: self.links.iter().filter(|link| keep(link)).cloned().collect(),
            routes: self.routes.iter().map(moved).collect(),
            host: moved(&self.host),
        }
    }

    /// Checks that the paths can be, for so many drives.
    ///
    /// # Errors
    /// Names the first figure, link or route that cannot be.
    pub fn check(&self, drives: usize) -> Result<(), BadFigure> {
        for (index, link) in self.links.iter().enumerate() {
            link.check()?;
            if self.links[..index].iter().any(|one| one.name == link.name) {
                return wrong("name", format!("two links are called `{}`", link.name));
            }
        }
        let memories = self.links.iter().filter(|one| one.kind == LinkKind::Memory).count();
        if memories > 1 {
            return wrong("links", "a host has one memory path, not several".into());
        }
        if self.routes.len() != drives {
            let routes = self.routes.len();
            return wrong("routes", format!("{routes} routes for {drives} drives"));
        }
        for (drive, route) in self.routes.iter().enumerate() {
            self.check_route(&format!("the route of drive {drive}"), route)?;
        }
        self.check_route("the route to the controller", &self.host)?;
        if self.channels(&self.host).count() > 0 {
            return wrong("host", "a PATA channel leads to drives, not to a controller".into());
        }
        for channel in 0..self.links.len() {
            let on = self.routes.iter().filter(|route| route.contains(&channel)).count();
            if self.links[channel].kind == LinkKind::PataChannel && on > 2 {
                let name = &self.links[channel].name;
                return wrong("routes", format!("{name}: {on} drives; a PATA channel takes 2"));
            }
        }
        Ok(())
    }

    fn channels<'a>(&'a self, route: &'a [usize]) -> impl Iterator<Item = &'a usize> {
        let kind = |link: &usize| self.links.get(*link).map(|one| one.kind);
        route.iter().filter(move |link| kind(link) == Some(LinkKind::PataChannel))
    }

    fn check_route(&self, which: &str, route: &[usize]) -> Result<(), BadFigure> {
        let count = self.links.len();
        if let Some(link) = route.iter().find(|link| **link >= count) {
            return wrong("routes", format!("{which}: link {link} of {count}"));
        }
        let twice = |(at, link): (usize, &usize)| route[..at].contains(link);
        if let Some((_, link)) = route.iter().enumerate().find(|one| twice(*one)) {
            let name = &self.links[*link].name;
            return wrong("routes", format!("{which} passes `{name}` twice"));
        }
        if self.channels(route).count() > 1 {
            return wrong("routes", format!("{which} passes two PATA channels"));
        }
        Ok(())
    }
}
