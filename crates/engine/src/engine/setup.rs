//! Making an engine: over new members, and over those that carry an array already.

use std::sync::Arc;
use std::time::Instant;

use raidlab_core::consistency::{Allow, AssembleError, Found, MetaArea};
use raidlab_core::contract::{Input, MetaIo, Record};
use raidlab_core::policy::ReadPolicy;
use raidlab_core::{
    Array, Config, ConfigError, Consistency, Layout, Limits, MemberConfig, MemberIndex,
    MemberTotals, Sectors, Settings, Time,
};

use super::{Engine, Wait};
use crate::buffers::Buffers;
use crate::compute::Computer;
use crate::error::{EngineError, EngineErrorKind};
use crate::member::{Hub, Member};
use crate::metadata::{FORMAT, Metadata};
use raidlab_metadata::{ArrayId, Examined, Places};

/// What an engine's array is, besides its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Level and parameters.
    pub layout: Layout,
    /// Which copy a read takes.
    pub read_policy: ReadPolicy,
    /// How much at once.
    pub limits: Limits,
    /// How it keeps redundancy consistent, and what it does about errors. With any consistency but
    /// `None` the members carry metadata behind their data.
    pub settings: Settings,
}

impl EngineConfig {
    /// A layout with the default read policy, limits and settings.
    pub fn new(layout: Layout) -> Self {
        let (read_policy, limits) = (ReadPolicy::default(), Limits::default());
        Self { layout, read_policy, limits, settings: Settings::default() }
    }

    fn core(&self, members: Vec<MemberConfig>) -> Config {
        Config {
            layout: self.layout.clone(),
            members,
            read_policy: self.read_policy,
            traits: Vec::new(),
            limits: self.limits,
            settings: self.settings,
        }
    }
}

const MAKE: &str = "make the array";
const ASSEMBLE: &str = "assemble the array";

fn impossible(error: &ConfigError) -> EngineError {
    let reason = format!("{}: {}", error.key, error.reason);
    EngineError::new(EngineErrorKind::Config, MAKE, reason)
}

/// The core's configuration with what records take taken off the members, and how much that is.
fn plan(
    config: &EngineConfig,
    totals: &[MemberConfig],
    journal: Option<&Member>,
) -> Result<(Config, MetaArea), EngineError> {
    let mut core = config.core(totals.to_vec());
    let consistency = config.settings.consistency;
    if journal.is_some() && !matches!(consistency, Consistency::Journal { .. }) {
        let reason = "a log device is given, but the consistency is not `journal`";
        return Err(EngineError::new(EngineErrorKind::Config, MAKE, reason));
    }
    if !consistency.has_superblocks() {
        return Ok((core, MetaArea::default()));
    }
    let largest = totals.iter().map(|member| member.sectors).max().unwrap_or(Sectors::ZERO);
    let array = Array::new(&core).map_err(|error| impossible(&error))?;
    let area = MetaArea::of(&array, consistency, largest);
    for (index, member) in core.members.iter_mut().enumerate() {
        member.sectors = area.data(member.sectors, member.logical_block).ok_or_else(|| {
            let reason = format!(
                "member {index} has {}, its metadata alone need {}",
                member.sectors,
                area.sectors()
            );
            EngineError::new(EngineErrorKind::Config, MAKE, reason)
        })?;
    }
    if let Consistency::Journal { sectors } = consistency {
        let there = journal.map_or(Sectors::ZERO, |device| device.config().sectors);
        let block = core.members.iter().map(|member| member.logical_block).max().unwrap_or(1);
        if let Some(device) = journal.filter(|device| device.config().logical_block > block) {
            let own = device.config().logical_block;
            let reason = format!(
                "the log device works in blocks of {own} sectors, the members in blocks of {block}"
            );
            return Err(EngineError::new(EngineErrorKind::Config, MAKE, reason));
        }
        if there < sectors {
            let reason = format!("the journal needs a log device of {sectors}, given is {there}");
            return Err(EngineError::new(EngineErrorKind::Config, MAKE, reason));
        }
    }
    Ok((core, area))
}

impl Engine {
    /// A new array over these members, in order. Its redundancy is taken to be consistent. With any
    /// consistency but `None` a superblock is written to every member first.
    ///
    /// # Errors
    /// [`EngineErrorKind::Config`] when layout, members or limits cannot be, with the parameter that is
    /// wrong; [`EngineErrorKind::NoMemory`]; a member's error when a superblock cannot be written.
    pub fn new(config: &EngineConfig, members: Vec<Member>) -> Result<Self, EngineError> {
        Self::with_journal(config, members, None)
    }

    /// The same with a log device, for [`Consistency::Journal`].
    ///
    /// # Errors
    /// As [`new`](Self::new); [`EngineErrorKind::Config`] when the log device is too small.
    pub fn with_journal(
        config: &EngineConfig,
        members: Vec<Member>,
        journal: Option<Member>,
    ) -> Result<Self, EngineError> {
        let totals: Vec<MemberConfig> = members.iter().map(Member::config).collect();
        let (core, area) = plan(config, &totals, journal.as_ref())?;
        let array = Array::new(&core).map_err(|error| impossible(&error))?;
        let mut engine = Self::build(config, &core, array, (members, journal))?;
        if area.used {
            let blank = |n: usize| Places::blank(totals[n].sectors, core.members[n].sectors, &area);
            let devices = (0..totals.len()).map(blank).collect();
            engine.attach_metadata(config, Metadata::identity(), 0, area, devices)?;
            engine.write_first_superblocks()?;
        }
        Ok(engine)
    }

    /// The array that its members carry, as far as they are there (`None`: missing).
    ///
    /// What must be made consistent is begun at once and goes on while the engine is used.
    ///
    /// # Errors
    /// [`EngineErrorKind::Assemble`] when too little is there, halves have diverged, or `allow` must say
    /// more; [`EngineErrorKind::Member`] when a member belongs to another array or place;
    /// [`EngineErrorKind::Config`] as [`new`](Self::new).
    pub fn assemble(
        config: &EngineConfig,
        members: Vec<Option<Member>>,
        journal: Option<Member>,
        allow: Allow,
    ) -> Result<Self, EngineError> {
        if !config.settings.consistency.has_superblocks() {
            let reason = "with consistency `none` members carry no metadata; make it anew";
            return Err(EngineError::new(EngineErrorKind::Config, ASSEMBLE, reason));
        }
        let mut members: Vec<Member> =
            members.into_iter().map(|member| member.unwrap_or(Member::Absent)).collect();
        let mut found = Vec::with_capacity(members.len());
        for member in &mut members {
            found.push(if is_there(member) { FORMAT.examine(member) } else { None });
        }
        let identity = check_found(&found, &config.layout)?;
        let (core, area) = plan_found(config, &members, &found)?;
        let mut journal = journal;
        let (mut facts, sequence) = gather(&mut members, &mut journal, (&found, &area, identity))?;
        if let Consistency::Journal { sectors } = config.settings.consistency {
            let large = |device: &Member| device.config().sectors >= sectors;
            facts.journal = journal.as_ref().is_some_and(large);
        }
        let array = Array::assemble(&core, &facts, allow).map_err(|error| cannot(&error))?;
        let devices = members.iter().zip(&found).zip(&core.members).map(|((member, one), core)| {
            let total = member.config().sectors;
            match one {
                Some(one) => Places::found(total, core.sectors, &area, one),
                None => Places::blank(total, core.sectors, &area),
            }
        });
        let devices = devices.collect();
        let mut engine = Self::build(config, &core, array, (members, journal))?;
        engine.attach_metadata(config, identity, sequence, area, devices)?;
        // The array begins with outputs.
        engine.turn(Wait::No);
        engine.hand_in(Input::Wake);
        engine.turn(Wait::No);
        engine.check_fault()?;
        Ok(engine)
    }

    fn attach_metadata(
        &mut self,
        config: &EngineConfig,
        identity: ArrayId,
        sequence: u64,
        area: MetaArea,
        members: Vec<Places>,
    ) -> Result<(), EngineError> {
        let count = members.len();
        let mut devices = members;
        let spare = Places::blank(Sectors::ZERO, Sectors::ZERO, &area);
        devices.resize(2 * count, spare);
        let journal = self.members.last().map_or(Sectors::ZERO, |one| one.config().sectors);
        devices.push(Places::log_device(journal));
        let layout = config.layout.to_string();
        let blocks = config.limits.ios.max(8 * count as u32 + 8);
        self.metadata = Some(Metadata::new(identity, sequence, area, layout, (devices, blocks))?);
        Ok(())
    }

    fn build(
        config: &EngineConfig,
        core: &Config,
        array: Array,
        (mut members, journal): (Vec<Member>, Option<Member>),
    ) -> Result<Self, EngineError> {
        let count = members.len();
        let requests = config.limits.requests as usize;
        let ios = config.limits.ios.max(8 * count as u32 + 8) as usize;
        let hub = Arc::new(Hub::new(ios));
        members.resize_with(2 * count, || Member::Absent);
        members.push(journal.unwrap_or(Member::Absent));
        let mut ring = None;
        for member in &mut members {
            if let Member::File(file) = member {
                file.connect(&hub, &mut ring, ios);
            }
        }
        let has_files = members.iter().any(|member| matches!(member, Member::File(_)));
        let mut engine = Self {
            buffers: Buffers::for_members(array.scratch(), &members)?,
            array,
            ring,
            members,
            count,
            block: core.members.iter().map(|member| member.logical_block).max().unwrap_or(1),
            retired: Vec::new(),
            metadata: None,
            deadline: config.settings.deadline.is_some(),
            computer: Computer::default(),
            hub,
            started: Instant::now(),
            now: Time::ZERO,
            undrained: false,
            wake: None,
            pending: Vec::with_capacity(requests),
            free: Vec::with_capacity(requests),
            outstanding: 0,
            replies: Vec::with_capacity(requests),
            events: Vec::new(),
            background: Vec::new(),
            fault: None,
            completions: Vec::with_capacity(ios),
            computed: Vec::with_capacity(config.limits.plans as usize),
            ios,
            flights: Vec::with_capacity(ios),
            free_tickets: Vec::with_capacity(ios),
            spare_pieces: Vec::new(),
            spare_bounces: Vec::new(),
            stalled: Vec::new(),
            queued: 0,
            last_queued: 0,
            at_threads: 0,
            finished: Vec::with_capacity(ios),
            recorded: None,
            totals: MemberTotals::default(),
            bounce: None,
        };
        if has_files {
            engine.stock_pieces();
        }
        Ok(engine)
    }

    /// Takes the memory that lists of pieces of I/Os at file members need, if that was not done before.
    pub(super) fn stock_pieces(&mut self) {
        if self.spare_pieces.capacity() == 0 {
            // A record, the segment that a list starts with, and those linked to it.
            let most = self.array.most_segments() as usize + 2;
            self.spare_pieces = (0..self.ios).map(|_| Vec::with_capacity(most)).collect();
        }
    }

    /// Writes the superblock of a new array to all its members, durably.
    fn write_first_superblocks(&mut self) -> Result<(), EngineError> {
        let superblock = self.array.superblock();
        for index in 0..self.count {
            let member = MemberIndex(index as u16);
            let record = Record::Superblock(superblock);
            let meta = MetaIo { member, record, fua: true, ..Self::no_meta() };
            self.write_record_now(&meta)?;
        }
        Ok(())
    }
}

fn is_there(member: &Member) -> bool {
    !matches!(member, Member::Absent)
}

fn cannot(error: &AssembleError) -> EngineError {
    match error {
        AssembleError::Config(error) => impossible(error),
        other => EngineError::new(EngineErrorKind::Assemble, ASSEMBLE, other.to_string()),
    }
}

/// All that was found belongs to one array of this layout, each in its place; gives its identity.
fn check_found(found: &[Option<Examined>], layout: &Layout) -> Result<ArrayId, EngineError> {
    let wrong = |reason: String| Err(EngineError::new(EngineErrorKind::Member, ASSEMBLE, reason));
    let mut identity = None;
    for (index, one) in found.iter().enumerate() {
        let Some(one) = one else { continue };
        if *identity.get_or_insert(one.array) != one.array {
            return wrong(format!("member {index} belongs to another array than those before it"));
        }
        if one.layout != layout.to_string() {
            let text = &one.layout;
            return wrong(format!("member {index} belongs to an array {text}, not {layout}"));
        }
        if usize::from(one.device) != index {
            let replaces = usize::from(one.device).checked_sub(found.len());
            return wrong(match replaces {
                Some(of) if of < found.len() => format!(
                    "given as member {index} is a replacement of member {of} that was not finished"
                ),
                _ => format!("given as member {index} is member {} of the array", one.device),
            });
        }
    }
    // Without any the core says what is wrong.
    Ok(identity.unwrap_or_default())
}

/// As [`plan`], from what the superblocks say; a member that is missing is taken to be as large as the
/// smallest.
fn plan_found(
    config: &EngineConfig,
    members: &[Member],
    found: &[Option<Examined>],
) -> Result<(Config, MetaArea), EngineError> {
    let there = || found.iter().flatten();
    let Some(smallest) = there().map(|one| one.data).min() else {
        return Err(cannot(&AssembleError::NoSuperblock));
    };
    let area = there().next().map_or(MetaArea::default(), |one| MetaArea {
        log: one.log,
        pages: one.pages,
        used: true,
    });
    let known = members.iter().zip(found).map(|(member, one)| MemberConfig {
        sectors: one.as_ref().map_or(smallest, |one| one.data),
        logical_block: member.config().logical_block,
    });
    let core = config.core(known.collect());
    let array = Array::new(&core).map_err(|error| impossible(&error))?;
    let log = array.log_sectors(MemberIndex(0));
    if there().next().is_some() && log != area.log {
        let reason = format!("the members have a log of {}, not of {log}", area.log);
        return Err(EngineError::new(EngineErrorKind::Config, ASSEMBLE, reason));
    }
    Ok((core, area))
}

/// Everything that stands on the devices, and the largest sequence.
fn gather(
    members: &mut [Member],
    journal: &mut Option<Member>,
    (found, area, identity): (&[Option<Examined>], &MetaArea, ArrayId),
) -> Result<(Found, u64), EngineError> {
    let mut all = Found::default();
    let mut last = 0;
    for (index, (member, one)) in members.iter_mut().zip(found).enumerate() {
        all.superblocks.push(one.as_ref().map(|one| one.superblock));
        all.bitmaps.push(one.as_ref().map(|one| one.bitmap.clone()).unwrap_or_default());
        let Some(one) = one else { continue };
        last = last.max(one.sequence);
        if area.log > Sectors::ZERO {
            let index = MemberIndex(index as u16);
            let range = (raidlab_core::Sector(one.data.0), area.log);
            let (entries, sequence) = FORMAT.examine_log(member, (index, identity), range);
            all.log.extend(entries);
            last = last.max(sequence);
        }
    }
    if let Some(device) = journal {
        let index = MemberIndex(2 * members.len() as u16);
        let range = (raidlab_core::Sector(0), device.config().sectors);
        let (entries, sequence) = FORMAT.examine_log(device, (index, identity), range);
        all.log.extend(entries);
        all.journal = true;
        last = last.max(sequence);
    }
    Ok((all, last))
}
