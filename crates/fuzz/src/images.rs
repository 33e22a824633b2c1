//! What stands on the devices of arrays at moments of their lives, as the engine wrote it.
//!
//! Identities and the numbers of epochs are random, so that no two arrays have the same; here each is another number
//! that is the same in every process, or no input would do twice what it did once.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use raidlab_core::consistency::{Allow, MetaArea};
use raidlab_core::contract::Pacing;
use raidlab_core::{Consistency, Layout, Level, MemberIndex, Nanos, Sector, Sectors};
use raidlab_engine::{Engine, EngineConfig, Member, MemoryMember, log_device_sectors};

use crate::device::{self, SECTOR};

/// Sectors of each member.
pub(crate) const TOTAL: Sectors = Sectors(800);
/// Where the identity of the array lies in a record, and which words of a superblock are the names of epochs.
const IDENTITY: std::ops::Range<usize> = 16..32;
const EPOCHS: [usize; 6] = [11, 13, 15, 17, 19, 21];
static RUNNING: AtomicBool = AtomicBool::new(false);

/// What every device of an array holds, the log device last, if there is one.
pub(crate) type Images = Vec<Vec<u8>>;

/// Moments in the life of an array, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// It was made.
    Made,
    /// It was written to, and not stopped.
    Written,
    /// It was stopped.
    Stopped,
    /// It went on without member 0.
    Degraded,
    /// Member 0 is back, and the array stopped.
    Back,
    /// After [`Moment::Written`] it went on without member 0, another time than the one above.
    OtherHalf,
    /// After [`Moment::Written`] it went on without member 1.
    FirstHalf,
}

impl Moment {
    pub(crate) const ALL: [Self; 7] = [
        Self::Made,
        Self::Written,
        Self::Stopped,
        Self::Degraded,
        Self::Back,
        Self::OtherHalf,
        Self::FirstHalf,
    ];

    /// Which of the histories with writes that the others know nothing of a member belongs to; none before they parted,
    /// nor one that was left out of its.
    pub(crate) fn history(self, member: usize) -> Option<u8> {
        match self {
            Self::Degraded | Self::Back => Some(0),
            Self::OtherHalf => (member != 0).then_some(1),
            Self::FirstHalf => (member != 1).then_some(2),
            Self::Made | Self::Written | Self::Stopped => None,
        }
    }
}

/// An array.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) config: EngineConfig,
    /// By [`Moment::ALL`].
    pub(crate) moments: Vec<Images>,
    /// Of each device the sectors in which records stand at some moment.
    pub(crate) records: Vec<Vec<u64>>,
}

/// All arrays.
pub(crate) fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES
        .get_or_init(|| (1..).zip(configs()).map(|(number, config)| case(number, config)).collect())
}

fn configs() -> [EngineConfig; 6] {
    let bitmap = Consistency::Bitmap { chunk: Sectors(64) };
    let journal = Consistency::Journal { sectors: Sectors(512) };
    [
        config(Level::Raid1, 2, Consistency::Resync),
        config(Level::Raid1, 3, bitmap),
        config(Level::Raid10, 4, bitmap),
        config(Level::Raid5, 4, Consistency::PartialParity { slots: 6 }),
        config(Level::Raid5, 3, journal),
        config(Level::Raid6, 5, bitmap),
    ]
}

fn config(level: Level, members: u16, consistency: Consistency) -> EngineConfig {
    let layout = Layout::new(level, members);
    let layout = if level.has_chunks() { layout.with_chunk(Sectors(16)) } else { layout };
    let mut config = EngineConfig::new(layout);
    config.settings.consistency = consistency;
    config.settings.pacing = Pacing::between(u64::MAX, u64::MAX);
    // Never while a moment is made: that would be by the clock.
    config.settings.clean_after = Nanos::from_millis(3_600_000);
    config.limits.plans = 4;
    config.limits.requests = 8;
    config.limits.ios = 128;
    config
}

fn case(number: u8, config: EngineConfig) -> Case {
    let mut engine = new(&config);
    let made = images(&mut engine);
    write(&mut engine, 1);
    let written = images(&mut engine);
    engine.stop().expect("it stops");
    let stopped = images(&mut engine);
    let mut engine = start(&config, &stopped, &[]);
    engine.fail(MemberIndex(0)).expect("it goes on without");
    write(&mut engine, 2);
    let degraded = images(&mut engine);
    if engine.re_add(MemberIndex(0), None).is_err() {
        let fresh = Member::Memory(MemoryMember::new(TOTAL).expect("there is memory"));
        engine.add(MemberIndex(0), fresh).expect("a fresh one is taken");
    }
    engine.finish_background(&RUNNING).expect("it is rebuilt");
    engine.stop().expect("it stops");
    let back = images(&mut engine);
    let half = |without: usize| {
        let mut engine = start(&config, &written, &[without]);
        write(&mut engine, 3);
        let mut half = images(&mut engine);
        // The drive that was left out stays as it was.
        half.insert(without, written[without].clone());
        half
    };
    let mut moments = vec![made, written.clone(), stopped, degraded, back, half(0), half(1)];
    rename(number, &mut moments);
    let records = (0..moments[0].len()).map(|device| records(&moments, device)).collect();
    Case { config, moments, records }
}

fn new(config: &EngineConfig) -> Engine {
    let memory = |total| Member::Memory(MemoryMember::new(total).expect("there is memory"));
    let members = (0..config.layout.members).map(|_| memory(TOTAL)).collect();
    let journal = log_device_sectors(config.settings.consistency).map(memory);
    Engine::with_journal(config, members, journal).expect("it is made")
}

fn write(engine: &mut Engine, seed: u8) {
    for at in (0..200).step_by(37) {
        engine.write_at(Sector(at), &[at as u8 ^ seed; 11 * SECTOR]).expect("it is written");
    }
    engine.flush().expect("it is durable");
}

fn images(engine: &mut Engine) -> Images {
    let count = engine.members().len() as u16;
    let devices = (0..count).chain([2 * count]).map(MemberIndex);
    let image = |member| match engine.member_mut(member) {
        Some(Member::Memory(member)) => Some(member.bytes().to_vec()),
        _ => None,
    };
    devices.filter_map(image).collect()
}

/// Starts an array without some of its members, which is allowed.
fn start(config: &EngineConfig, images: &Images, without: &[usize]) -> Engine {
    let given = images.iter().enumerate();
    let given: Vec<_> =
        given.map(|(device, image)| (!without.contains(&device)).then_some(&image[..])).collect();
    let without = without.iter().fold(0, |set, member| set | 1 << member);
    let allow = Allow { dirty_degraded: true, without: [without, 0], ..Allow::default() };
    assemble(config, &given, allow).expect("it starts")
}

/// The array of these devices, the log device last if it has one, as the engine starts it.
pub(crate) fn assemble(
    config: &EngineConfig,
    images: &[Option<&[u8]>],
    allow: Allow,
) -> Result<Engine, raidlab_engine::EngineError> {
    let member = |image: &Option<&[u8]>| {
        let image = (*image)?;
        let mut member = MemoryMember::new(Sectors((image.len() / SECTOR) as u64)).ok()?;
        member.bytes_mut().copy_from_slice(image);
        Some(Member::Memory(member))
    };
    let mut devices: Vec<_> = images.iter().map(member).collect();
    let journal = devices.split_off(usize::from(config.layout.members)).pop().flatten();
    Engine::assemble(config, devices, journal, allow)
}

/// Gives the array another identity, and its epochs other names.
fn rename(number: u8, moments: &mut [Images]) {
    let mut names = vec![0];
    for sector in moments.iter_mut().flatten().flat_map(|image| image.chunks_exact_mut(SECTOR)) {
        if !device::is_record(sector) {
            continue;
        }
        sector[IDENTITY].fill(number);
        let is_superblock = sector[12] == 1;
        for word in EPOCHS.into_iter().filter(|_| is_superblock) {
            let name = device::word(sector, word);
            let known = names.iter().position(|known| *known == name);
            let new = known.unwrap_or(names.len());
            if known.is_none() {
                names.push(name);
            }
            device::forge(sector, 8 * word, &(new as u64).to_le_bytes());
        }
        device::seal(sector);
    }
}

fn records(moments: &[Images], device: usize) -> Vec<u64> {
    let sectors = (moments[0][device].len() / SECTOR) as u64;
    let is_record = |at: &u64| {
        let from = *at as usize * SECTOR;
        moments.iter().any(|images| device::is_record(&images[device][from..][..SECTOR]))
    };
    let superblocks = [0, 1].map(|place| MetaArea::superblock(Sectors(sectors), place).0);
    // Those of the superblock first: they decide most.
    let others = (0..sectors).filter(|at| !superblocks.contains(at) && is_record(at));
    superblocks.into_iter().chain(others).collect()
}
