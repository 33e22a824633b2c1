//! Making an engine: over new members, and over those that carry an array already.

use std::sync::Arc;
use std::time::Instant;

use raidlab_core::consistency::{Allow, AssembleError, Found, MetaArea, Unusable, Unused, Wanted};
use raidlab_core::contract::{Input, MemberBits, MetaIo, Record};
use raidlab_core::policy::ReadPolicy;
use raidlab_core::{
    Array, Config, ConfigError, Consistency, Layout, Limits, MemberConfig, MemberIndex,
    MemberTotals, Nanos, Sector, Sectors, Settings, Time, Volume,
};
use raidlab_metadata::md::journal::Replayed;

use super::headers::{Headers, LogPlaces};
use super::{Engine, Wait};
use crate::buffers::Buffers;
use crate::compute::Computer;
use crate::device::ReadHold;
use crate::error::{EngineError, EngineErrorKind};
use crate::member::{Hub, Member};
use crate::metadata::{Form, Metadata, look, random};

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
    /// A layout with the default read policy, limits and settings; but that writes wait for a minute where the
    /// filesystem of a member has no room, as thin volumes do in Linux.
    pub fn new(layout: Layout) -> Self {
        let (read_policy, limits) = (ReadPolicy::default(), Limits::default());
        let room_wait = Some(Nanos::from_millis(60_000));
        let settings = Settings { room_wait, ..Settings::default() };
        Self { layout, read_policy, limits, settings }
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

    pub(super) fn wanted(&self) -> Wanted {
        Wanted {
            layout: self.layout.clone(),
            read_policy: self.read_policy,
            traits: Vec::new(),
            limits: self.limits,
            settings: self.settings,
        }
    }

    /// A log device is given for an array that has one.
    fn check_journal(&self, journal: Option<&Member>) -> Result<(), EngineError> {
        let is_used = matches!(self.settings.consistency, Consistency::Journal { .. });
        if journal.is_none() || is_used {
            return Ok(());
        }
        let reason = "a log device is given, but the consistency is not `journal`";
        Err(EngineError::new(EngineErrorKind::Config, MAKE, reason))
    }
}

/// Sectors that a log device must have: the journal, and its own superblocks behind. `None` for an array
/// without one.
pub fn log_device_sectors(consistency: Consistency) -> Option<Sectors> {
    let behind = MetaArea { used: true, ..MetaArea::default() };
    match consistency {
        Consistency::Journal { sectors } => Some(sectors + behind.sectors()),
        _ => None,
    }
}

/// How an array that was found on its members began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beginning {
    /// Members that are out of service, and why.
    pub unused: Vec<Unused>,
    /// Why the log device is given up, if it is.
    pub journal_lost: Option<Unusable>,
    /// Sectors of each member (of the array, on mirrors) that are made consistent.
    pub resync: Sectors,
    /// Rows that stood in a journal of md's, and were written out before.
    pub replayed: Replayed,
}

const MAKE: &str = "make the array";
const ASSEMBLE: &str = "assemble the array";

pub(super) fn impossible(error: &ConfigError) -> EngineError {
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
    config.check_journal(journal)?;
    if !consistency.has_superblocks() {
        return Ok((core, MetaArea::default()));
    }
    let volume = Volume::new(&core).map_err(|error| impossible(&error))?;
    let area = MetaArea::of_volume(&volume, &core);
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
        let most = MetaArea::journal(there);
        let block = core.members.iter().map(|member| member.logical_block).max().unwrap_or(1);
        if let Some(device) = journal.filter(|device| device.config().logical_block > block) {
            let own = device.config().logical_block;
            let reason = format!(
                "the log device works in blocks of {own} sectors, the members in blocks of {block}"
            );
            return Err(EngineError::new(EngineErrorKind::Config, MAKE, reason));
        }
        if most < sectors {
            let reason = format!(
                "a log device of {there} has room for a journal of {most}, asked for is one of {sectors}"
            );
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
        let array = Volume::new(&core).map_err(|error| impossible(&error))?;
        let mut engine = Self::build(config, &core, array, (members, journal))?;
        if area.used {
            engine.metadata = Some(engine.new_metadata(random()?, &core, &area)?);
            engine.write_first_superblocks()?;
        }
        Ok(engine)
    }

    /// The array that its members carry, as far as they are there (`None`: missing). What there is of it is
    /// told by [`beginning`](Self::beginning).
    ///
    /// What must be made consistent is begun at once and goes on while the engine is used.
    ///
    /// # Errors
    /// [`EngineErrorKind::Assemble`] when too little is there, what is there does not belong together, halves
    /// have diverged, or `allow` must say more; [`EngineErrorKind::Config`] when the array was made with other
    /// parameters, and as [`new`](Self::new).
    pub fn assemble(
        config: &EngineConfig,
        members: Vec<Option<Member>>,
        journal: Option<Member>,
        allow: Allow,
    ) -> Result<Self, EngineError> {
        let wrong = |reason: String| EngineError::new(EngineErrorKind::Config, ASSEMBLE, reason);
        if !config.settings.consistency.has_superblocks() {
            let reason = "with consistency `none` members carry no metadata; make it anew";
            return Err(wrong(reason.into()));
        }
        if config.layout.inner.is_some() {
            return Err(wrong(
                "nested levels of one engine carry no metadata: make it anew, or an array over `LowerArray`s".into(),
            ));
        }
        config.check_journal(journal.as_ref())?;
        let (given, count) = (members.len(), config.layout.members);
        if given != usize::from(count) {
            return Err(wrong(format!("{given} places are given for {count} members")));
        }
        let mut devices: Vec<Member> =
            members.into_iter().chain([journal]).map(|one| one.unwrap_or(Member::Absent)).collect();
        let mut looked: Vec<_> = devices.iter_mut().map(|one| look(&Form::Own, one)).collect();
        // Logs are long: there is one copy of what was found in them.
        let mut members: Vec<_> =
            looked.iter_mut().map(|one| std::mem::take(&mut one.examined)).collect();
        let journal = members.pop().unwrap_or_default();
        let found = Found { members, journal, nonce: u64::from_le_bytes(random()?) };
        let assembled = Array::assemble(&config.wanted(), &found, allow)
            .map_err(|error| cannot(&error, &devices))?;
        let journal = devices.pop();
        let (core, area) = (&assembled.config, &assembled.area);
        let mut engine = {
            let array = Volume::Flat(assembled.array);
            Self::build(config, core, array, (devices, journal))?
        };
        let mut metadata = engine.new_metadata(assembled.identity, core, area)?;
        let numbers = (0..count).chain([2 * count]).map(MemberIndex);
        let examined = found.members.into_iter().chain([found.journal]);
        for (device, (mut looked, examined)) in numbers.zip(looked.into_iter().zip(examined)) {
            looked.examined = examined;
            metadata.records.know(device, &looked);
        }
        engine.metadata = Some(metadata);
        let (unused, journal_lost) = (assembled.unused, assembled.journal_lost);
        engine.beginning =
            Beginning { unused, journal_lost, resync: assembled.resync, ..Beginning::default() };
        // The array begins with outputs.
        engine.turn(Wait::No);
        engine.hand_in(Input::Wake);
        engine.turn(Wait::No);
        engine.check_fault()?;
        Ok(engine)
    }

    /// An array that is only read, whatever keeps its metadata: members that are missing are `None`, and `config` says
    /// how much each has; `bad` are ranges of members that must not be read. Nothing is written, not even to mend what
    /// cannot be read, and changes are refused; open files with [`FileOptions::read_only`] so that nothing can be.
    ///
    /// [`FileOptions::read_only`]: crate::FileOptions::read_only
    ///
    /// # Errors
    /// [`EngineErrorKind::Config`] when layout, members or limits cannot be, or too many members are missing;
    /// [`EngineErrorKind::NoMemory`].
    pub fn read_only(
        config: &Config,
        members: Vec<Option<Member>>,
        bad: &[(MemberIndex, Sector, Sectors)],
    ) -> Result<Self, EngineError> {
        let mut failed: MemberBits = [0; 2];
        for (index, _) in members.iter().enumerate().filter(|(_, member)| member.is_none()) {
            if let Some(word) = failed.get_mut(index / 64) {
                *word |= 1 << (index % 64);
            }
        }
        let array = Array::read_only(config, failed, bad).map_err(|error| impossible(&error))?;
        let Config { layout, read_policy, limits, settings, .. } = config.clone();
        let own = EngineConfig { layout, read_policy, limits, settings };
        let members = members.into_iter().map(|one| one.unwrap_or(Member::Absent)).collect();
        Self::build(&own, config, Volume::Flat(array), (members, None))
    }

    /// Keeps these as long as it lives.
    pub fn keep(&mut self, holds: Vec<ReadHold>) {
        self.held.extend(holds);
    }

    /// How the array began that was found on its members; of a new one nothing is told.
    pub fn beginning(&self) -> &Beginning {
        &self.beginning
    }

    fn new_metadata(
        &self,
        identity: [u8; 16],
        core: &Config,
        area: &MetaArea,
    ) -> Result<Metadata, EngineError> {
        let blocks = core.limits.ios.max(8 * self.count as u32 + 8);
        Metadata::new(identity, core, area, (blocks, Form::Own))
    }

    pub(super) fn build(
        config: &EngineConfig,
        core: &Config,
        array: Volume,
        (mut members, journal): (Vec<Member>, Option<Member>),
    ) -> Result<Self, EngineError> {
        let count = members.len();
        let requests = config.limits.requests as usize;
        let ios = config.limits.ios.max(8 * count as u32 + 8) as usize;
        let hub = Arc::new(Hub::new(ios));
        members.extend((0..count).map(|_| Member::Absent).chain(journal.or(Some(Member::Absent))));
        let mut ring = None;
        members.iter_mut().for_each(|member| member.connect(&hub, &mut ring, ios));
        let has_files = members.iter().any(Member::answers_later);
        let mut engine = Self {
            buffers: Buffers::for_members(array.scratch(), &members)?,
            array,
            ring,
            starts: vec![0; members.len()],
            logs: LogPlaces::default(),
            headers: Headers::default(),
            turns: std::iter::repeat_with(Default::default).take(members.len()).collect(),
            spares: Vec::new(),
            spare_numbers: Vec::new(),
            members,
            count,
            block: core.members.iter().map(|member| member.logical_block).max().unwrap_or(1),
            retired: Vec::new(),
            metadata: None,
            beginning: Beginning::default(),
            held: Vec::new(),
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
            has_files: false,
            in_flight: Vec::with_capacity(ios),
            free_tickets: Vec::with_capacity(ios),
            spare_pieces: Vec::new(),
            spare_bounces: Vec::new(),
            stalled: Vec::new(),
            queued: 0,
            last_queued: 0,
            at_threads: 0,
            doubts: 0,
            dead: vec![false; 2 * count + 1],
            finished: Vec::with_capacity(ios),
            recorded: None,
            totals: MemberTotals::default(),
            bounce: None,
        };
        if has_files {
            engine.expect_files();
        }
        Ok(engine)
    }

    /// Takes the memory that lists of pieces of I/Os at file members need, if that was not done before.
    pub(super) fn expect_files(&mut self) {
        if !std::mem::replace(&mut self.has_files, true) {
            // A record, the segment that a list starts with, and those linked to it.
            let most = self.array.most_segments() as usize + 2;
            self.spare_pieces = (0..self.ios).map(|_| Vec::with_capacity(most)).collect();
        }
    }

    /// Makes all that lies behind the data of the devices of a new array known, durably: zeroes, and its
    /// superblock in both places.
    fn write_first_superblocks(&mut self) -> Result<(), EngineError> {
        // With metadata it is of one level.
        let Some(superblock) = self.array.flat().map(Array::superblock) else { return Ok(()) };
        for index in (0..self.count).chain([2 * self.count]) {
            let member = MemberIndex(index as u16);
            let Some(metadata) = &mut self.metadata else { continue };
            let device = &mut self.members[index];
            if matches!(device, Member::Absent) {
                continue;
            }
            let places = metadata.records.blank(member, device.config().sectors);
            let (from, len) = places.behind_data();
            device.zero_direct("clear what is behind a member's data", from, len, true)?;
            metadata.records.set_places(member, places);
            let record = Record::Superblock(superblock);
            let meta = MetaIo { member, record, fua: true, ..Self::no_meta() };
            for _ in 0..2 {
                self.write_record_now(&meta)?;
            }
        }
        Ok(())
    }
}

/// Why an array does not start, with the files of the devices that are to blame; the log device is the last.
pub(super) fn cannot(error: &AssembleError, devices: &[Member]) -> EngineError {
    let path = |index: usize| match devices.get(index) {
        Some(Member::File(file)) => Some(file.path()),
        _ => None,
    };
    let (kind, blamed) = match error {
        AssembleError::Config(error) => return impossible(error),
        AssembleError::Parameter { .. } => (EngineErrorKind::Config, &[][..]),
        AssembleError::NoSuperblock(unused)
        | AssembleError::Missing(unused)
        | AssembleError::TooFew(unused)
        | AssembleError::DirtyDegraded { missing: unused, .. } => {
            (EngineErrorKind::Assemble, &unused[..])
        }
        AssembleError::SeveralArrays { .. } | AssembleError::Diverged { .. } => {
            (EngineErrorKind::Assemble, &[][..])
        }
        AssembleError::JournalLost { .. } => {
            let cannot = EngineError::new(EngineErrorKind::Assemble, ASSEMBLE, error.to_string());
            return match path(devices.len() - 1) {
                Some(path) => cannot.at_path(path),
                None => cannot,
            };
        }
    };
    let files = blamed.iter().filter_map(|one| Some((one.member, path(one.member.at())?)));
    let files: Vec<_> =
        files.map(|(member, path)| format!("member {member} is {}", path.display())).collect();
    let named = if files.is_empty() { String::new() } else { format!(" ({})", files.join(", ")) };
    EngineError::new(kind, ASSEMBLE, format!("{error}{named}"))
}
