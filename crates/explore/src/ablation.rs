//! A study without one of its mechanisms, to show what that mechanism does.

use std::fmt;
use std::str::FromStr;

use raidlab_core::{Nanos, Sectors};
use raidlab_models::host::{HostSpec, Mechanism};
use raidlab_models::{
    ControllerSpec, DriveKind, DriveSpec, HardDiskFigures, HardDiskSpec, LinkKind, PathSpec,
    ReadAhead, Scheduler, WritePolicy,
};
use raidlab_sim::HostCosts;
use raidlab_study::{Study, did_you_mean};

use raidlab_predict::Modelled;

/// Requests at once of a controller that is not limited to one: as many as tagged command queueing has
/// tags.
const MANY_REQUESTS: u32 = 64;

/// The rate of a channel whose rate limits nothing, in bytes per second: the highest a link may have.
const NO_LIMIT: u64 = 1_000_000_000_000;

/// A mechanism of the models that can be left out, or a cost that can be changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ablation {
    /// A mechanism of the host.
    Host(Mechanism),
    /// All links of a kind between host and drives.
    Servers(LinkKind),
    /// One link between host and drives, by its name in the study.
    Link(String),
    /// The rate of PATA channels, which then only let one command through at a time.
    ChannelRate,
    /// That a PATA channel belongs to one command from its start to its end; its rate stays.
    ChannelHold,
    /// What a PATA channel waits when the other device is selected.
    ChannelSwitch,
    /// Controllers: the host runs the array itself.
    Controller,
    /// That a controller takes one request at a time.
    OneRequest,
    /// That a controller keeps the drives' write caches off.
    WriteThrough,
    /// A controller's own time for each request.
    ControllerTime,
    /// A controller's longest request.
    RequestLimit,
    /// The CPU time of parity, of host or controller, as so many tenths of what it is.
    ParityCost {
        /// 0 for free, 10 for unchanged.
        tenths: u32,
    },
    /// The CPU time of a request to a drive.
    RequestCost,
    /// The drives' write caches.
    DriveWriteCache,
    /// What drives read ahead by themselves.
    DriveReadAhead,
    /// Drives working on several commands at once.
    CommandQueue,
    /// The scheduler of request queues: requests go first come, first served, with merging.
    Scheduler,
}

impl Ablation {
    /// Factors of the parity cost that are tried, in tenths: x0 to x10.
    pub const PARITY_FACTORS: [u32; 6] = [0, 5, 10, 20, 50, 100];

    /// All that are named without a study: every one but single links, parity as free.
    pub fn all() -> Vec<Self> {
        let host = Mechanism::ALL.map(Self::Host);
        let kinds = LinkKind::ALL.map(Self::Servers);
        let further = [
            Self::ChannelRate,
            Self::ChannelHold,
            Self::ChannelSwitch,
            Self::Controller,
            Self::OneRequest,
            Self::WriteThrough,
            Self::ControllerTime,
            Self::RequestLimit,
            Self::ParityCost { tenths: 0 },
            Self::RequestCost,
            Self::DriveWriteCache,
            Self::DriveReadAhead,
            Self::CommandQueue,
            Self::Scheduler,
        ];
        host.into_iter().chain(kinds).chain(further).collect()
    }

    /// What is missing or changed, in words.
    pub fn meaning(&self) -> String {
        let text = match self {
            Self::Host(mechanism) => return of_host(*mechanism).into(),
            Self::Servers(kind) => {
                return format!("every {kind} carries data in no time", kind = kind_name(*kind));
            }
            Self::Link(name) => return format!("the path `{name}` carries data in no time"),
            Self::ChannelRate => "PATA channels carry any rate, one command at a time",
            Self::ChannelHold => "a PATA channel serves the commands of both its drives at once",
            Self::ChannelSwitch => "PATA channels change devices at no cost",
            Self::Controller => "no controller: the host runs the array itself",
            Self::OneRequest => "controllers take 64 requests at once, not one",
            Self::WriteThrough => "controllers leave the drives' write caches on",
            Self::ControllerTime => "controllers take no time of their own",
            Self::RequestLimit => "controllers take requests of any length",
            Self::ParityCost { tenths: 0 } => "parity takes no CPU time",
            Self::ParityCost { tenths } => {
                return format!("parity takes {} times its CPU time", factor(*tenths));
            }
            Self::RequestCost => "requests to drives take no CPU time",
            Self::DriveWriteCache => "drives answer writes only once they are on the medium",
            Self::DriveReadAhead => "drives read nothing ahead",
            Self::CommandQueue => "drives take one command at a time",
            Self::Scheduler => "request queues serve first come, first served, with merging",
        };
        text.into()
    }

    fn host(&self, host: HostSpec) -> HostSpec {
        match self {
            Self::Host(mechanism) => host.without(*mechanism),
            _ => host,
        }
    }

    fn controller(&self, controller: ControllerSpec) -> Option<ControllerSpec> {
        let firmware = controller.outstanding == 1;
        let through = controller.writes == WritePolicy::Through;
        Some(match self {
            Self::Controller => return None,
            Self::OneRequest if firmware => controller.with_outstanding(MANY_REQUESTS),
            Self::WriteThrough if through => controller.with_writes(WritePolicy::Pass),
            Self::ChannelSwitch => ControllerSpec { switch: None, ..controller },
            Self::ControllerTime => ControllerSpec { request: Nanos::ZERO, ..controller },
            Self::RequestLimit => controller.with_longest(Sectors(1 << 20)),
            Self::ParityCost { tenths } => ControllerSpec {
                parity_rate: controller.parity_rate.map(|rate| slower(rate, *tenths)),
                ..controller
            },
            _ => controller,
        })
    }

    fn paths(&self, paths: &PathSpec) -> Result<PathSpec, String> {
        let mut changed = match self {
            Self::Servers(kind) => paths.without_kind(*kind),
            Self::Link(name) => paths.without(name).map_err(|error| error.reason)?,
            Self::ChannelSwitch => paths.without_switching(),
            _ => paths.clone(),
        };
        let channels = changed.links.iter_mut().filter(|one| one.kind == LinkKind::PataChannel);
        match self {
            Self::ChannelRate => channels.for_each(|one| one.rate = NO_LIMIT),
            Self::ChannelHold => channels.for_each(|one| {
                one.kind = LinkKind::Link;
                one.switch = Nanos::ZERO;
            }),
            _ => {}
        }
        Ok(changed)
    }

    /// The same drive without the mechanism; other drives than hard disks stay as they are.
    fn drive(&self, mut drive: DriveSpec) -> DriveSpec {
        if let DriveKind::HardDisk(disk) = &drive.kind
            // What only switches caches and queues off stays a drive that can be.
            && let Ok(changed) = HardDiskSpec::new(self.figures(disk.figures()))
        {
            drive.kind = DriveKind::HardDisk(changed);
        }
        drive
    }

    fn figures(&self, figures: &HardDiskFigures) -> HardDiskFigures {
        let mut changed = figures.clone();
        match self {
            Self::DriveWriteCache => {
                changed.write_cache = false;
                changed.cache.immediate_report = false;
            }
            Self::DriveReadAhead => {
                changed.cache.read_ahead = ReadAhead::None;
                changed.cache.whole_track = false;
                changed.cache.hold = Sectors(0);
            }
            Self::CommandQueue => changed.queue_depth = 1,
            _ => {}
        }
        changed
    }

    /// What the host's CPU costs then.
    fn costs(&self, costs: HostCosts) -> HostCosts {
        match self {
            Self::ParityCost { tenths } => {
                HostCosts { parity_rate: slower(costs.parity_rate, *tenths), ..costs }
            }
            Self::RequestCost => HostCosts { request: Nanos::ZERO, ..costs },
            _ => costs,
        }
    }

    /// Whether a study has the mechanism, so that its cells may move.
    pub fn is_in(&self, modelled: &Modelled<'_>) -> bool {
        let study = modelled.study();
        if let Self::ParityCost { tenths } = self {
            return *tenths != 10 && study.layouts.iter().any(|one| one.layout.has_parity());
        }
        let changed = self.out_of_drives(modelled.clone());
        self.out_of_study(study).is_ok_and(|one| one != *study)
            || changed.drives() != modelled.drives()
            || changed.costs() != modelled.costs()
    }
}

/// A rate at which the same takes so many tenths of its time.
fn slower(rate: u64, tenths: u32) -> u64 {
    let slower = u128::from(rate) * 10 / u128::from(tenths.max(1));
    if tenths == 0 { u64::MAX } else { slower.clamp(1, u128::from(u64::MAX)) as u64 }
}

/// `0.5`, `10`.
fn factor(tenths: u32) -> String {
    if tenths.is_multiple_of(10) {
        (tenths / 10).to_string()
    } else {
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}

fn kind_name(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::PataChannel => "pata-channel",
        LinkKind::Link => "link",
        LinkKind::Bus => "bus",
        LinkKind::Memory => "memory-path",
    }
}

fn of_host(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::ReadAhead => "the host reads nothing ahead",
        Mechanism::ArrayReadAhead => "the host reads no further ahead on arrays than on a drive",
        Mechanism::Journal => "the filesystem has no journal",
        Mechanism::BlockGroups => "directories are not spread over block groups",
        Mechanism::IndirectBlocks => "files have no indirect blocks",
        Mechanism::Reservation => "growing files keep no room for themselves",
        Mechanism::DelayedAllocation => "places are chosen when data come, not when they go",
        Mechanism::Barriers => "the caches of drives are not flushed",
        Mechanism::DirtyLimit => "writers wait only when memory is full",
        Mechanism::Expiry => "nothing is written back for its age",
        Mechanism::CopyCost => "copying takes no CPU time",
        Mechanism::CallCost => "calls take no CPU time",
        Mechanism::AccessTimes => "reading a file does not change its inode",
        Mechanism::LoneReader => "a lone reader copies while its transfers go on",
    }
}

impl Ablation {
    /// The same study without the mechanism in its host, paths or controllers. What its drives and CPU do
    /// without it is up to [`out_of_drives`](Self::out_of_drives).
    ///
    /// # Errors
    /// When it names a path that the study does not have; says which there are.
    pub fn out_of_study(&self, study: &Study) -> Result<Study, String> {
        let mut changed = study.clone();
        let of_layouts = changed.layouts.iter_mut().filter_map(|layout| layout.host.as_mut());
        for host in changed.host.iter_mut().chain(of_layouts) {
            host.spec = self.host(host.spec);
        }
        let spec = |routes| PathSpec { links: study.paths.clone(), routes, host: Vec::new() };
        changed.paths = self.paths(&spec(Vec::new()))?.links;
        for layout in &mut changed.layouts {
            let hardware = &mut layout.hardware;
            hardware.routes = self.paths(&spec(std::mem::take(&mut hardware.routes)))?.routes;
            hardware.controller = hardware.controller.take().and_then(|one| self.controller(one));
        }
        if *self == Self::Scheduler {
            for drives in &mut changed.drives {
                drives.scheduler = Some(Scheduler::Noop);
            }
        }
        Ok(changed)
    }

    /// A modelled study without the mechanism in its drives and its CPU.
    #[must_use]
    pub fn out_of_drives<'a>(&self, modelled: Modelled<'a>) -> Modelled<'a> {
        modelled.with(|drive| self.drive(drive), |costs| self.costs(costs))
    }
}

impl fmt::Display for Ablation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Host(mechanism) => mechanism.name(),
            Self::Servers(kind) => kind_name(*kind),
            Self::Link(name) => return write!(f, "path:{name}"),
            Self::ChannelRate => "channel-rate",
            Self::ChannelHold => "channel-hold",
            Self::ChannelSwitch => "channel-switch",
            Self::Controller => "controller",
            Self::OneRequest => "one-request-at-a-time",
            Self::WriteThrough => "write-through",
            Self::ControllerTime => "controller-time",
            Self::RequestLimit => "request-limit",
            Self::ParityCost { tenths: 0 } => "parity-cost",
            Self::ParityCost { tenths } => return write!(f, "parity-cost=x{}", factor(*tenths)),
            Self::RequestCost => "request-cost",
            Self::DriveWriteCache => "drive-write-cache",
            Self::DriveReadAhead => "drive-read-ahead",
            Self::CommandQueue => "command-queue",
            Self::Scheduler => "scheduler",
        };
        f.write_str(name)
    }
}

impl FromStr for Ablation {
    type Err = String;

    /// Reads a name; the error says which there are.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix("path:") {
            return Ok(Self::Link(name.to_string()));
        }
        if let Some(times) = text.strip_prefix("parity-cost=x") {
            let tenths = times.parse::<f64>().map(|times| (times * 10.0).round());
            return match tenths {
                Ok(tenths) if (0.0..=1000.0).contains(&tenths) => {
                    Ok(Self::ParityCost { tenths: tenths as u32 })
                }
                _ => Err(format!("`{text}`: a factor from x0 to x100, such as parity-cost=x2")),
            };
        }
        let all = Self::all();
        all.iter().find(|one| one.to_string() == text).cloned().ok_or_else(|| {
            let names: Vec<String> = all.iter().map(ToString::to_string).collect();
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            let hint = did_you_mean(text, &known);
            let known = known.join(", ");
            format!(
                "`{text}` is no mechanism{hint}; known: {known}, parity-cost=xN, path:NAME (a path of \
                 the study)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = "title = \"a card\"\nfilesystem = \"native\"\n\
        host = { kernel = \"linux-2.6.20\", processor = \"sempron-2600\" }\n\
        [[paths]]\nname = \"one\"\nkind = \"pata-udma100\"\n\
        [[paths]]\nname = \"pci\"\nkind = \"pci-32-33\"\n\
        [[drives]]\nname = \"disk\"\nmodel = \"pata-80gb-7200\"\ncount = 2\n\
        [[layouts]]\nlevel = \"raid0\"\nmembers = 2\nroute = [\"pci\", \"one\"]\n\
        controller = \"ite8212-bios\"\n\
        [[workloads]]\nkind = \"cp-null\"\nsize = \"4MiB\"\n\
        [[parameters]]\nof = \"controller ite8212-bios\"\nproperty = \"switch\"\n\
        value = { us = 250 }\nsource = \"a test\"\n";

    fn card() -> Study {
        raidlab_study::parse(CARD, "card.toml").expect("a study")
    }

    /// Neither channels nor the controller that has a switch of its own cost anything then.
    #[test]
    fn nothing_switches_without_switching() {
        let study = card();
        let switches = |study: &Study| {
            let own = study.layouts[0].hardware.controller.as_ref().map(|one| one.switch);
            (own, study.paths.iter().map(|one| one.switch).max())
        };
        let some = |us| Some(Nanos::from_micros(us));
        assert_eq!(switches(&study), (Some(some(250)), some(1_000)));
        let without = Ablation::ChannelSwitch.out_of_study(&study).expect("can be");
        assert_eq!(switches(&without), (Some(None), some(0)));
    }

    /// Each ablation changes one figure of a controller, and those of other things none.
    #[test]
    fn a_controller_loses_one_thing_at_a_time() {
        let own = card().layouts[0].hardware.controller.clone().expect("a controller");
        let own = ControllerSpec {
            outstanding: 1,
            longest: Sectors(256),
            request: Nanos::from_micros(100),
            parity_rate: Some(100_000_000),
            writes: WritePolicy::Through,
            ..own
        };
        let without = |ablation: Ablation| ablation.controller(own.clone());
        let same = || own.clone();
        let parity = |rate| Some(ControllerSpec { parity_rate: Some(rate), ..same() });
        for (ablation, expected) in [
            (Ablation::Controller, None),
            (Ablation::OneRequest, Some(ControllerSpec { outstanding: 64, ..same() })),
            (Ablation::WriteThrough, Some(ControllerSpec { writes: WritePolicy::Pass, ..same() })),
            (Ablation::ChannelSwitch, Some(ControllerSpec { switch: None, ..same() })),
            (Ablation::ControllerTime, Some(ControllerSpec { request: Nanos::ZERO, ..same() })),
            // Half a GiB: no request of a workload is as long.
            (Ablation::RequestLimit, Some(ControllerSpec { longest: Sectors(1 << 20), ..same() })),
            (Ablation::ParityCost { tenths: 0 }, parity(u64::MAX)),
            (Ablation::ParityCost { tenths: 5 }, parity(200_000_000)),
            (Ablation::ParityCost { tenths: 20 }, parity(50_000_000)),
            (Ablation::ChannelRate, Some(same())),
            (Ablation::ChannelHold, Some(same())),
            (Ablation::RequestCost, Some(same())),
            (Ablation::DriveWriteCache, Some(same())),
            (Ablation::CommandQueue, Some(same())),
            (Ablation::Scheduler, Some(same())),
            (Ablation::Servers(LinkKind::Bus), Some(same())),
        ] {
            assert_eq!(without(ablation.clone()), expected, "{ablation}");
        }
        // What is no firmware of one request, and what passes writes on or posts them, is left as it is.
        for other in [
            ControllerSpec { outstanding: 2, ..same() },
            ControllerSpec { writes: WritePolicy::Pass, ..same() },
            ControllerSpec {
                writes: WritePolicy::Posted { capacity: Sectors(4096), extents: 16 },
                ..same()
            },
        ] {
            let left = |ablation: Ablation| ablation.controller(other.clone());
            match other.outstanding {
                1 => assert_eq!(left(Ablation::WriteThrough), Some(other.clone())),
                _ => assert_eq!(left(Ablation::OneRequest), Some(other.clone())),
            }
        }
        let none = ControllerSpec { parity_rate: None, ..same() };
        let left = Ablation::ParityCost { tenths: 5 }.controller(none.clone());
        assert_eq!(left, Some(none), "the host computes parity");
    }

    /// Of links only those of the kind are changed, and of these only what is named.
    #[test]
    fn channels_lose_one_thing_at_a_time() {
        let study = card();
        let (channel, bus) = (study.paths[0].clone(), study.paths[1].clone());
        assert_eq!([channel.kind, bus.kind], [LinkKind::PataChannel, LinkKind::Bus]);
        assert!(channel.switch > Nanos::ZERO && channel.rate < NO_LIMIT);
        let links = |ablation: Ablation| ablation.out_of_study(&study).expect("can be").paths;
        let same = || channel.clone();
        let fast = raidlab_models::LinkSpec { rate: 1_000_000_000_000, ..same() };
        assert_eq!(links(Ablation::ChannelRate), [fast, bus.clone()]);
        let (kind, switch) = (LinkKind::Link, Nanos::ZERO);
        let shared = raidlab_models::LinkSpec { kind, switch, ..same() };
        assert_eq!(links(Ablation::ChannelHold), [shared, bus.clone()]);
        let switched = raidlab_models::LinkSpec { switch, ..same() };
        assert_eq!(links(Ablation::ChannelSwitch), [switched, bus.clone()]);
        assert_eq!(links(Ablation::Servers(LinkKind::Bus)), [same()]);
        assert_eq!(links(Ablation::Link("one".into())), std::slice::from_ref(&bus));
        assert_eq!(links(Ablation::Scheduler), [same(), bus]);
    }

    #[test]
    fn a_drive_loses_one_thing_at_a_time() {
        let drive = raidlab_models::load("sata-250gb-7200").expect("compiled in");
        let DriveKind::HardDisk(disk) = &drive.kind else { unreachable!("a disk") };
        let mut all = disk.figures().clone();
        (all.write_cache, all.queue_depth) = (true, 32);
        (all.cache.immediate_report, all.cache.whole_track) = (true, true);
        (all.cache.hold, all.cache.read_ahead) = (Sectors(64), ReadAhead::Stream);
        let without = |ablation: Ablation, change: &dyn Fn(&mut HardDiskFigures)| {
            let mut expected = all.clone();
            change(&mut expected);
            assert_eq!(ablation.figures(&all), expected, "{ablation}");
        };
        without(Ablation::DriveWriteCache, &|disk| {
            disk.write_cache = false;
            disk.cache.immediate_report = false;
        });
        without(Ablation::DriveReadAhead, &|disk| {
            disk.cache.read_ahead = ReadAhead::None;
            disk.cache.whole_track = false;
            disk.cache.hold = Sectors(0);
        });
        without(Ablation::CommandQueue, &|disk| disk.queue_depth = 1);
        without(Ablation::Scheduler, &|_| {});
        without(Ablation::RequestCost, &|_| {});
    }

    #[test]
    fn costs_of_the_cpu_are_changed_by_their_factor() {
        let own = HostCosts { request: Nanos::from_micros(5), parity_rate: 8_000_000_000 };
        let costs = |ablation: Ablation| ablation.costs(own);
        let parity = |tenths| costs(Ablation::ParityCost { tenths });
        for (tenths, rate) in
            [(0, u64::MAX), (1, 80_000_000_000), (10, 8_000_000_000), (100, 800_000_000)]
        {
            assert_eq!(parity(tenths), HostCosts { parity_rate: rate, ..own }, "{tenths} tenths");
        }
        let free = HostCosts { request: Nanos::ZERO, ..own };
        assert_eq!((costs(Ablation::RequestCost), costs(Ablation::ControllerTime)), (free, own));
    }

    #[test]
    fn factors_are_read_and_shown_in_tenths() {
        for (text, tenths, shown) in [
            ("parity-cost=x0.5", 5, "parity-cost=x0.5"),
            ("parity-cost=x1.5", 15, "parity-cost=x1.5"),
            ("parity-cost=x1.46", 15, "parity-cost=x1.5"),
            ("parity-cost=x100", 1000, "parity-cost=x100"),
            ("parity-cost=x0", 0, "parity-cost"),
        ] {
            let read: Ablation = text.parse().expect("a factor");
            assert_eq!(read, Ablation::ParityCost { tenths }, "{text}");
            assert_eq!(read.to_string(), shown);
        }
        for wrong in ["parity-cost=x100.1", "parity-cost=x-1", "parity-cost=x", "parity-cost=xNaN"]
        {
            assert!(wrong.parse::<Ablation>().is_err(), "{wrong}");
        }
    }

    /// An ablation is of a study that has the mechanism: in its links, drives, costs or controllers.
    #[test]
    fn a_study_is_said_to_have_what_it_has() {
        let study = card();
        let modelled = Modelled::new(&study, HostCosts::default()).expect("it fits");
        for (ablation, expected) in [
            (Ablation::ChannelSwitch, true),
            (Ablation::Controller, true),
            (Ablation::OneRequest, true),
            (Ablation::RequestCost, true),
            (Ablation::DriveReadAhead, true),
            (Ablation::Servers(LinkKind::Bus), true),
            (Ablation::Servers(LinkKind::Memory), false),
            (Ablation::WriteThrough, false),
            // A raid0 has none.
            (Ablation::ParityCost { tenths: 0 }, false),
        ] {
            assert_eq!(ablation.is_in(&modelled), expected, "{ablation}");
        }
        let mirror = CARD.replace("controller = \"ite8212-bios\"\n", "");
        let parity = mirror.replace("raid0", "raid5").replace("members = 2", "members = 3");
        let parity =
            parity.replace("count = 2", "count = 3").replace("[\"pci\", \"one\"]", "[\"pci\"]");
        let parity = &parity[..parity.find("[[parameters]]").expect("there")];
        let study = raidlab_study::parse(parity, "parity.toml").expect("a study");
        let modelled = Modelled::new(&study, HostCosts::default()).expect("it fits");
        let has = |tenths| Ablation::ParityCost { tenths }.is_in(&modelled);
        assert_eq!((has(0), has(10), has(20)), (true, false, true));
        assert!(!Ablation::Controller.is_in(&modelled));
    }
}
