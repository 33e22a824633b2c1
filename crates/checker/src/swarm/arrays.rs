//! Random arrays.

use raidlab_core::contract::{Pacing, PacingRule};
use raidlab_core::policy::ReadPolicy;
use raidlab_core::{
    Config, Consistency, Layout, Level, Limits, Nanos, Redundancy, Rotation, Sectors, Settings, Tie,
};

use raidlab_core::layout::MOST_MEMBERS;
use raidlab_metadata::md::Version;

use super::Options;
use crate::device::{Format, MOST_PARTIAL_PARITY, SEVERAL};
use raidlab_random::SplitMix64;

/// A consistency mode without its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// [`Consistency::None`].
    None,
    /// [`Consistency::Resync`].
    Resync,
    /// [`Consistency::Bitmap`].
    Bitmap,
    /// [`Consistency::PartialParity`].
    PartialParity,
    /// [`Consistency::Journal`].
    Journal,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::None, Self::Resync, Self::Bitmap, Self::PartialParity, Self::Journal];

    /// The name that commands and studies take.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Resync => "resync",
            Self::Bitmap => "bitmap",
            Self::PartialParity => "ppl",
            Self::Journal => "journal",
        }
    }

    /// The mode of a setting.
    #[must_use]
    pub const fn of(consistency: Consistency) -> Self {
        match consistency {
            Consistency::None => Self::None,
            Consistency::Resync => Self::Resync,
            Consistency::Bitmap { .. } => Self::Bitmap,
            Consistency::PartialParity { .. } => Self::PartialParity,
            Consistency::Journal { .. } => Self::Journal,
        }
    }

    /// Whether a level can have it.
    #[must_use]
    pub const fn fits(self, level: Level) -> bool {
        match self {
            Self::None => true,
            Self::Resync | Self::Bitmap => level.is_redundant(),
            Self::PartialParity => level.has_partial_parity(),
            Self::Journal => level.has_stripes(),
        }
    }
}

/// Levels that the swarm has, those with copies first: those with redundancy. A seed's array depends on their order.
pub(crate) fn levels() -> impl Iterator<Item = Level> {
    let with_parity = |level: &Level| matches!(level.redundancy(), Redundancy::Parity(_));
    let copies = Level::ALL.into_iter().filter(move |level| !with_parity(level));
    let parity = Level::ALL.into_iter().filter(with_parity);
    copies.filter(|level| level.is_redundant()).chain(parity)
}

/// How an array is out of the ordinary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ordinary,
    /// Members of 4,096-byte blocks.
    LargeBlock,
    /// 11 to 128 members.
    Many,
    /// Chunks of 2 MiB.
    LargeChunk,
}

/// Members at most that are not many.
const FEW: u16 = 10;

/// Sectors of a chunk of 2 MiB: two plans' worth.
const LARGE_CHUNK: u64 = 4096;

impl Kind {
    fn draw(random: &mut SplitMix64, level: Level) -> Self {
        let stripes = level.has_stripes();
        match random.below(1000) {
            0..60 => Self::LargeBlock,
            60..85 if !level.is_cut_by_sectors() => Self::Many,
            85..88 if stripes => Self::LargeChunk,
            // With a log of partial parity as a rule.
            88..98 if level.has_partial_parity() => Self::LargeChunk,
            _ => Self::Ordinary,
        }
    }

    const fn block(self) -> u64 {
        if matches!(self, Self::LargeBlock) { 8 } else { 1 }
    }
}

/// An array by the options and the dice.
pub(super) fn draw(random: &mut SplitMix64, options: &Options) -> Config {
    let has = |level: Level, mode: Mode| {
        let layout = Layout::new(level, level.fewest_members().max(3));
        options.format.is_none_or(|format| format.has(&layout, crate::part::consistency(mode)))
    };
    let wanted = |level: &Level| {
        options.level.is_none_or(|only| only == *level)
            && options.mode.is_none_or(|mode| mode.fits(*level))
            && Mode::ALL.into_iter().any(|mode| has(*level, mode))
    };
    let levels: Vec<Level> = levels().filter(wanted).collect();
    let level = match levels.len() {
        0 => Level::Raid5,
        count => levels[random.below(count as u64) as usize],
    };
    let kind = match Kind::draw(random, level) {
        // Version 0.90 has no room for so many.
        Kind::Many if options.format == Some(Format::Md(Version::V0_90)) => Kind::Ordinary,
        kind => kind,
    };
    let mut layout = layout(random, level, kind);
    if let (Some(Format::Md(_)), Some(Mode::PartialParity)) = (options.format, options.mode) {
        layout.members = layout.members.min(MOST_PARTIAL_PARITY);
    }
    let chunk = layout.chunk.0.max(1);
    let stripes = if kind == Kind::LargeChunk { 1 } else { 2 + random.below(3) };
    let rows = chunk * u64::from(layout.far) * stripes;
    let sectors = if level.has_chunks() { rows } else { (4 + random.below(12)) * kind.block() };
    // One stripe more where a format cannot say so little.
    let granule = options.format.map_or(1, Format::granule);
    let step = if level.has_chunks() { rows / stripes } else { kind.block() };
    let sectors = if sectors.is_multiple_of(granule) { sectors } else { sectors + step };
    let modes: Vec<Mode> = Mode::ALL
        .into_iter()
        .filter(|mode| mode.fits(level) && options.mode.is_none_or(|only| only == *mode))
        .filter(|mode| has(level, *mode))
        // md has logs of partial parity of so many members only.
        .filter(|mode| {
            options.format.is_none_or(|one| one.has(&layout, crate::part::consistency(*mode)))
        })
        .collect();
    let mode = match modes.len() {
        0 => Mode::None,
        _ if kind == Kind::LargeChunk && modes.contains(&Mode::PartialParity) => {
            Mode::PartialParity
        }
        count => modes[random.below(count as u64) as usize],
    };
    let mut config = Config::uniform(layout, Sectors(sectors));
    for member in &mut config.members {
        member.logical_block = kind.block() as u32;
    }
    config.limits = Limits {
        requests: 2 + random.below(7) as u32,
        segments: 1 + random.below(4) as u32,
        ios: 1,
        plans: 1 + random.below(4) as u32,
        windows: 1 + random.below(3) as u32,
    };
    config.settings = settings(random, mode, kind, &config.layout);
    if let (Some(Format::Md(_)), Mode::PartialParity) = (options.format, mode) {
        config.settings.log_header = Some(log_header(random, config.settings.plan_rows));
    }
    config.read_policy = policy(random, level);
    config
}

/// What a header of md's log of partial parity has: several of them, or one in a small log.
fn log_header(random: &mut SplitMix64, plan_rows: Sectors) -> Sectors {
    let few = Sectors(8 << random.below(3));
    if random.chance(60) || plan_rows > few { SEVERAL } else { few }
}

/// The longest request, in sectors.
pub(super) fn longest(config: &Config) -> u32 {
    match config.members.first().map_or(1, |member| member.logical_block) {
        1 if config.layout.chunk.0 >= LARGE_CHUNK => 256,
        1 => 32,
        block => 16 * block,
    }
}

fn layout(random: &mut SplitMix64, level: Level, kind: Kind) -> Layout {
    let chunk = match kind {
        Kind::LargeChunk => Sectors(LARGE_CHUNK),
        Kind::Many => Sectors(1 << random.below(2)),
        _ => Sectors(kind.block() << random.below(3)),
    };
    let below = |random: &mut SplitMix64, from: u16, count: u64| match kind {
        Kind::Many if random.chance(60) => FEW + 1 + random.below(14) as u16,
        Kind::Many => FEW + 1 + random.below(u64::from(MOST_MEMBERS - FEW)) as u16,
        _ => from + random.below(count) as u16,
    };
    match level.redundancy() {
        Redundancy::Mirror => Layout::new(level, below(random, level.fewest_members(), 3)),
        _ if level.is_cut_by_sectors() => Layout::new(level, level.fewest_members()),
        Redundancy::Copies => {
            // md's chunk is a power of two.
            let layout = match random.below(3) {
                0 => Layout::new(level, below(random, 3, 3)).with_near(2),
                1 => Layout::new(level, below(random, 2, 3)).with_near(1).with_far(2),
                _ => Layout::new(level, below(random, 2, 3))
                    .with_near(1)
                    .with_far(2)
                    .with_offset(true),
            };
            layout.with_chunk(chunk)
        }
        Redundancy::None | Redundancy::Parity(_) => {
            let from = level.fewest_members();
            let layout = Layout::new(level, below(random, from, 3)).with_chunk(chunk);
            let rotations = level.rotations();
            match rotations.len() {
                0 => layout,
                count => {
                    let rotation: Rotation = rotations[random.below(count as u64) as usize];
                    let turned = layout.clone().with_rotation(rotation);
                    if turned.check().is_ok() { turned } else { layout }
                }
            }
        }
    }
}

/// How many rows a plan holds: for some arrays fewer than a chunk has.
fn plan_rows(random: &mut SplitMix64, kind: Kind, chunk: u64) -> Sectors {
    let most = Settings::default().plan_rows;
    if kind == Kind::LargeChunk || chunk <= kind.block() || !random.chance(40) {
        return most;
    }
    let fewer = (chunk / kind.block()).ilog2();
    Sectors(kind.block() << random.below(u64::from(fewer)))
}

fn settings(random: &mut SplitMix64, mode: Mode, kind: Kind, layout: &Layout) -> Settings {
    let (chunk, members) = (layout.chunk.0.max(1), u64::from(layout.members));
    let plan_rows = plan_rows(random, kind, chunk);
    let bit_least = if kind == Kind::LargeChunk { 64 } else { 1 };
    let consistency = match mode {
        Mode::None => Consistency::None,
        Mode::Resync => Consistency::Resync,
        Mode::Bitmap => Consistency::Bitmap { chunk: Sectors(bit_least << random.below(4)) },
        Mode::PartialParity => Consistency::PartialParity { slots: 6 + random.below(6) as u32 },
        Mode::Journal => {
            // Room for two to five of the largest entries.
            let largest = 8 + plan_rows.0.min(chunk) * members;
            let sectors = largest * (2 + random.below(4)) + 8;
            Consistency::Journal { sectors: Sectors(sectors.next_multiple_of(kind.block())) }
        }
    };
    let ties = [Tie::ReconstructWrite, Tie::ReadModifyWrite, Tie::NeverModify];
    Settings {
        consistency,
        deadline: random.chance(30).then_some(Nanos(50_000_000)),
        heal_tries: 1 + random.below(2) as u8,
        most_corrected: if random.chance(20) { 2 } else { 20 },
        most_bad_blocks: if random.chance(20) { 1 } else { 8 },
        pacing: Pacing {
            rule: match random.chance(20).then(|| 10 + random.below(91) as u8) {
                // A few by depth, down to one stripe at a time.
                Some(number) if number.is_multiple_of(4) => {
                    PacingRule::Depth(u16::from(number / 4 - 2))
                }
                Some(number) if number.is_multiple_of(6) => {
                    PacingRule::Ranges { used: u16::from(number / 18), unused: 6 }
                }
                Some(number) if number.is_multiple_of(2) => PacingRule::Single(number),
                Some(share) => PacingRule::Share(share),
                None => PacingRule::Activity,
            },
            ..Pacing::default()
        },
        tie: ties[random.below(3) as usize],
        cached_stripes: if random.chance(30) { 1 + random.below(3) as u32 } else { 0 },
        plan_rows,
        room_wait: random.chance(50).then_some(Nanos::from_millis(5000)),
        ..Settings::default()
    }
}

fn policy(random: &mut SplitMix64, level: Level) -> ReadPolicy {
    if level.redundancy() != Redundancy::Mirror || random.chance(50) {
        return ReadPolicy::default();
    }
    [ReadPolicy::GmirrorRoundRobin, ReadPolicy::Md26][random.below(2) as usize]
}

/// An array in words, for messages.
#[must_use]
pub fn describe(config: &Config) -> String {
    let settings = &config.settings;
    format!(
        "{} of {} sectors in blocks of {}, {:?}, {:?}, {:?}, {:?}, cached stripes {}, deadline {:?}, \
         waits {:?} for room, {} rows a plan",
        config.layout,
        config.members.first().map_or(0, |member| member.sectors.0),
        config.members.first().map_or(1, |member| member.logical_block),
        settings.consistency,
        config.read_policy,
        config.limits,
        settings.tie,
        settings.cached_stripes,
        settings.deadline,
        settings.room_wait,
        settings.plan_rows.0,
    )
}
