//! States that an array's devices are found in: each condition alone, each two of them together, in versions 1.2 and
//! 0.90.

use super::asked::{Asked, BYTES, Device};
use crate::made::{creation, name};
use raidlab_core::Sectors;
use raidlab_metadata::md::{Creation, Features, Role, Superblock, Version};

/// What has become of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// Not there; the others have it in service.
    Missing,
    /// Not there, as the others say.
    Gone,
    /// One event behind: the power failed when the others had been told of a state.
    Behind,
    /// Two events behind, and the others have it in service.
    Stale,
    /// The others call it faulty, and have gone on.
    Failed,
    /// The others call it faulty, and the power failed right then.
    JustFailed,
    /// A rebuild of it has come halfway.
    HalfRebuilt,
}

impl Condition {
    const ALL: [Self; 7] = [
        Self::Missing,
        Self::Gone,
        Self::Behind,
        Self::Stale,
        Self::Failed,
        Self::JustFailed,
        Self::HalfRebuilt,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Gone => "gone",
            Self::Behind => "one behind",
            Self::Stale => "two behind",
            Self::Failed => "failed",
            Self::JustFailed => "just failed",
            Self::HalfRebuilt => "half rebuilt",
        }
    }
}

/// How consistent the redundancy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Redundancy {
    Clean,
    /// Writes were under way.
    Dirty,
    /// Stopped cleanly in the middle of a resync.
    HalfResynced,
}

/// Halves that each went on without the other, with so many more events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Halves {
    events: [u64; 2],
    of: [&'static [usize]; 2],
}

/// A layout, which members a condition alone and two conditions are tried on, and how it falls into halves that can
/// each go on.
struct Shape {
    layout: &'static str,
    alone: &'static [usize],
    pairs: &'static [[usize; 2]],
    halves: [&'static [usize]; 2],
}

const NO_HALVES: [&[usize]; 2] = [&[], &[]];

const SHAPES: [Shape; 6] = [
    Shape { layout: "raid1(2)", alone: &[1], pairs: &[[1, 0]], halves: [&[0], &[1]] },
    Shape { layout: "raid1(3)", alone: &[2], pairs: &[[2, 0]], halves: [&[0, 1], &[2]] },
    // P is on the last.
    Shape {
        layout: "raid4(3) chunk=64K",
        alone: &[2, 0],
        pairs: &[[2, 0], [0, 2], [1, 0]],
        halves: NO_HALVES,
    },
    Shape { layout: "raid5(3) chunk=64K", alone: &[2], pairs: &[[2, 0]], halves: NO_HALVES },
    Shape {
        layout: "raid6(4) chunk=64K",
        alone: &[3],
        pairs: &[[3, 0]],
        halves: [&[0, 1], &[2, 3]],
    },
    // Copies are on 0 and 1, and on 2 and 3.
    Shape {
        layout: "raid10(4) chunk=64K",
        alone: &[3],
        pairs: &[[3, 0], [1, 0]],
        halves: [&[0, 2], &[1, 3]],
    },
];

/// A state.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) version: Version,
    pub(super) layout: &'static str,
    pub(super) conditions: Vec<(usize, Condition)>,
    pub(super) redundancy: Redundancy,
    pub(super) halves: Option<Halves>,
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let layout = self.layout.split(' ').next().unwrap_or_default();
        write!(f, "{} {layout}:", self.version)?;
        let mut comma = "";
        if let Some(halves) = self.halves {
            let of = halves.of.map(|of| of.iter().map(usize::to_string).collect::<String>());
            let equal = if halves.events[0] == halves.events[1] { "equal " } else { "" };
            write!(f, " {equal}halves {}", of.join("|"))?;
            comma = ",";
        }
        for (place, condition) in &self.conditions {
            write!(f, "{comma} {place} {}", condition.name())?;
            comma = ",";
        }
        match self.redundancy {
            Redundancy::Clean if comma.is_empty() => f.write_str(" nothing"),
            Redundancy::Clean => Ok(()),
            Redundancy::Dirty => write!(f, "{comma} dirty"),
            Redundancy::HalfResynced => write!(f, "{comma} half resynced"),
        }
    }
}

/// All states of a version that there can be, and their devices.
pub(super) fn all(version: Version) -> Vec<(State, Asked)> {
    let mut all = Vec::new();
    for shape in &SHAPES {
        for state in [of_members(shape, version), of_halves(shape, version)].concat() {
            if let Some(asked) = Story::tell(&state, all.len() as u8) {
                all.push((state, asked));
            }
        }
    }
    all
}

/// Each condition alone, each with redundancy that is not consistent, and each with each.
fn of_members(shape: &Shape, version: Version) -> Vec<State> {
    let state = |conditions, redundancy| State {
        version,
        layout: shape.layout,
        conditions,
        redundancy,
        halves: None,
    };
    let mut states = Vec::new();
    for redundancy in [Redundancy::Clean, Redundancy::Dirty, Redundancy::HalfResynced] {
        states.push(state(Vec::new(), redundancy));
        for place in shape.alone {
            let one = |condition| state(vec![(*place, condition)], redundancy);
            states.extend(Condition::ALL.map(one));
        }
    }
    for [one, other] in shape.pairs {
        for (index, first) in Condition::ALL.into_iter().enumerate() {
            states.extend(
                Condition::ALL[index..]
                    .iter()
                    .map(|second| state(vec![(*one, first), (*other, *second)], Redundancy::Clean)),
            );
        }
    }
    states
}

/// Halves alone, with each condition of a member of either, and dirty.
fn of_halves(shape: &Shape, version: Version) -> Vec<State> {
    let of = shape.halves;
    let Some(last) = of.iter().map(|half| half.last().copied()).collect::<Option<Vec<_>>>() else {
        return Vec::new();
    };
    let mut states = Vec::new();
    for events in [[20, 10], [20, 20]] {
        let state = |conditions, redundancy| State {
            version,
            layout: shape.layout,
            conditions,
            redundancy,
            halves: Some(Halves { events, of }),
        };
        states.push(state(Vec::new(), Redundancy::Clean));
        states.push(state(Vec::new(), Redundancy::Dirty));
        for place in &last {
            states.extend(Condition::ALL.map(|one| state(vec![(*place, one)], Redundancy::Clean)));
        }
    }
    states
}

/// What happens to the devices of an array, one thing after the other.
struct Story {
    all: Vec<Superblock>,
    given: Vec<bool>,
    /// Which half each belongs to: what happens in one the other does not hear of.
    half: Vec<usize>,
    /// Whether it hears of what happens.
    hears: Vec<bool>,
    /// What stood on each before the last event, where that changed more than the events.
    before: Vec<Option<Superblock>>,
    /// Who is being rebuilt.
    rebuilt: Vec<usize>,
}

impl Story {
    /// The devices of a state, if there can be such a one.
    fn tell(state: &State, id: u8) -> Option<Asked> {
        let creation = creation(state.layout.parse().unwrap(), BYTES / 512);
        let version = state.version;
        let data_offset = (version != Version::V0_90).then_some(Sectors(256));
        let array = [id, 1].repeat(8).try_into().unwrap();
        let creation = Creation { array, version, data_offset, name: name(version), ..creation };
        let made = creation.plan().unwrap().members;
        let all: Vec<Superblock> = made.into_iter().flatten().map(|one| one.superblock).collect();
        let members = all.len();
        let mut story = Self {
            all,
            given: vec![true; members],
            half: vec![0; members],
            hears: vec![true; members],
            before: vec![None; members],
            rebuilt: Vec::new(),
        };
        story.all.iter_mut().for_each(|one| one.events = 100);
        if let Some(halves) = state.halves {
            story.fall_apart(halves);
        }
        // Who is behind missed the last event.
        let is_behind = |of: &Condition| matches!(of, Condition::Behind | Condition::Stale);
        for late in [false, true] {
            for (place, condition) in &state.conditions {
                if is_behind(condition) == late {
                    story.befall(*place, *condition)?;
                }
            }
        }
        story.leave_redundancy(state.redundancy);
        if !story.hears.contains(&true) || !story.given.contains(&true) {
            return None;
        }
        for one in &mut story.all {
            let events = one.events;
            if let Some(v0) = &mut one.v0 {
                v0.checkpoint = events;
            }
        }
        Some(Asked {
            devices: story.all.iter().map(|one| Device::new(one, version, false)).collect(),
            given: (0..members).filter(|place| story.given[*place]).collect(),
        })
    }

    fn fall_apart(&mut self, halves: Halves) {
        for (half, places) in halves.of.iter().enumerate() {
            for place in *places {
                self.half[*place] = half;
                self.all[*place].events += halves.events[half];
                halves.of[1 - half].iter().for_each(|gone| call_gone(&mut self.all[*place], *gone));
            }
        }
    }

    fn befall(&mut self, place: usize, condition: Condition) -> Option<()> {
        match condition {
            Condition::Missing => self.given[place] = false,
            Condition::Gone => {
                self.go_on_without(place, 2)?;
                self.given[place] = false;
            }
            Condition::Behind | Condition::Stale => {
                match self.before[place].take() {
                    Some(before) => self.all[place] = before,
                    None => self.all[place].events -= 1,
                }
                self.all[place].events -= u64::from(condition == Condition::Stale);
                self.hears[place] = false;
            }
            Condition::Failed => self.go_on_without(place, 20)?,
            Condition::JustFailed => self.go_on_without(place, 1)?,
            Condition::HalfRebuilt => self.rebuild_halfway(place)?,
        }
        Some(())
    }

    /// All others of its half say that it is gone, with so many more events.
    fn go_on_without(&mut self, gone: usize, events: u64) -> Option<()> {
        self.hears[gone] = false;
        let (half, hears) = (self.half[gone], self.hears.clone());
        let places = (0..self.all.len()).filter(|place| hears[*place] && self.half[*place] == half);
        let others: Vec<_> = places.collect();
        for place in &others {
            self.before[*place] = (events == 1).then(|| self.all[*place].clone());
            self.all[*place].events += events;
            call_gone(&mut self.all[*place], gone);
        }
        (!others.is_empty()).then_some(())
    }

    /// Somebody has what it is rebuilt from.
    fn rebuild_halfway(&mut self, place: usize) -> Option<()> {
        let half = self.half[place];
        let number = self.all.len() + self.rebuilt.len();
        self.rebuilt.push(place);
        let mut of_half = (0..self.all.len()).filter(|other| self.half[*other] == half);
        of_half.find(|other| !self.rebuilt.contains(other))?;
        let one = &mut self.all[place];
        if one.v0.is_none() {
            (one.features, one.recovery) = (Features::RECOVERY, 256);
            return Some(());
        }
        // A member that is being rebuilt is a spare.
        for other in (0..self.all.len()).filter(|other| self.half[*other] == half) {
            if !self.hears[other] && other != place {
                continue;
            }
            call_gone(&mut self.all[other], place);
            let v0 = self.all[other].v0.as_mut().expect("of version 0.90");
            let line = &mut v0.table[number];
            (line.number, line.place, line.state) = (number as u32, number as u32, 0);
            if other == place {
                v0.own = v0.table[number];
            }
        }
        Some(())
    }

    fn leave_redundancy(&mut self, redundancy: Redundancy) {
        let to = match redundancy {
            Redundancy::Clean => return,
            Redundancy::Dirty => 0,
            Redundancy::HalfResynced => 256,
        };
        for (one, _) in self.all.iter_mut().zip(&self.hears).filter(|(_, hears)| **hears) {
            match &mut one.v0 {
                Some(v0) => (v0.state, v0.resync) = (0, to as u32),
                None => one.resync = to,
            }
        }
    }
}

/// The superblock says that this member is gone.
fn call_gone(one: &mut Superblock, gone: usize) {
    match &mut one.v0 {
        // As the kernel has it of the first one.
        Some(v0) => v0.table[gone].state = if gone == 0 { 8 } else { 9 },
        None => one.roles[gone] = Role::Faulty,
    }
}
