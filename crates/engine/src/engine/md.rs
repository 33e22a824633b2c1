//! Arrays of Linux md, which are written as md writes them.

use raidlab_core::consistency::{Allow, Assembled};
use raidlab_core::contract::{Input, IoOp, IoOutcome, MemberBits};
use raidlab_core::geometry::Geometry;
use raidlab_core::policy::ReadPolicy;
use raidlab_core::{
    Array, Config, Consistency, Limits, MemberConfig, MemberIndex, SECTOR_BYTES, Sector, Sectors,
    Settings, Volume,
};
use raidlab_metadata::geom::Geom;
use raidlab_metadata::md::journal::{MOST_HEADS, PAGE, Replay, ReplayError, Replayed};
use raidlab_metadata::md::{
    Allowed, Cannot, Inspected, Joined, Kept, Md, Out, Purpose, Why, bad_blocks, inspect,
    keeps_bad_blocks, not_used, unlike_bitmaps,
};
use raidlab_metadata::{Looked, Places};

use super::headers::LogPlaces;
use super::journal_lost::join_or_give_up;
use super::journal_replay::{Devices, not_replayed, record_failure};
use super::setup::{Beginning, EngineConfig, cannot, impossible};
use super::{Engine, Wait};
use crate::buffers::{Area, Piece};
use crate::error::{EngineError, EngineErrorKind};
use crate::member::{Member, Submission};
use crate::metadata::{Form, Metadata, look, random};

const ASSEMBLE: &str = "assemble the md array";

/// What is to be allowed and set of an md array that is started to be written.
#[derive(Clone, Debug, Default)]
pub struct MdOptions {
    /// What the administrator allows.
    pub allowed: Allowed,
    /// Start although members are missing that the newest superblock has in service.
    pub run: bool,
    /// What it does about errors, and how fast background work goes; what keeps it consistent comes from the members.
    pub settings: Settings,
    /// Which copy a read takes.
    pub read_policy: ReadPolicy,
    /// How much at once.
    pub limits: Limits,
}

/// What was found of an md array.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MdFound {
    /// Who is a member, and why others are not.
    pub joined: Joined,
    /// What each device carries, in the order given.
    pub inspected: Vec<Inspected>,
}

impl Engine {
    /// An md array on these devices, in any order, which is written from now on: superblocks and bitmap as md has them.
    /// Members are whole devices, opened from their first sector to their last; what is given and is no member is let
    /// go, but for spares, which are kept.
    ///
    /// # Errors
    /// [`EngineErrorKind::Assemble`] when too little is there, or `options` must allow more;
    /// [`EngineErrorKind::NotSupported`] for what is only read; as [`Engine::assemble`].
    pub fn assemble_md(
        mut devices: Vec<Member>,
        options: &MdOptions,
    ) -> Result<(Self, MdFound), EngineError> {
        let inspected: Vec<Inspected> = devices.iter_mut().map(|one| inspect(one)).collect();
        let mut joined = join_or_give_up(&inspected, &mut devices, &options.allowed)
            .map_err(|why| not_begun(&why, (&inspected, &devices), &options.allowed))?;
        let numbers = joined.spare_numbers(&inspected);
        let mut devices: Vec<Option<Member>> = devices.into_iter().map(Some).collect();
        let mut take = |given: usize| devices.get_mut(given).and_then(Option::take);
        let mut members: Vec<Member> = joined
            .order
            .iter()
            .map(|given| given.and_then(&mut take).unwrap_or(Member::Absent))
            .collect();
        let mut log = joined.journal.and_then(&mut take);
        let mut engine = if joined.consistency == Consistency::None {
            Self::unrecorded_md(&joined, members, options)?
        } else {
            match Decided::new((&joined, &inspected), (&mut members, &mut log), options) {
                Ok(decided) => Self::recorded_md(&joined, (members, log), decided)?,
                Err(NotDecided::Error(error)) => {
                    let device = |given: usize| devices.get(given)?.as_ref();
                    return Err(error.and(&unused(&joined.out, device)));
                }
                Err(NotDecided::Again) => {
                    put_back(&joined, &mut devices, (members, log));
                    let devices = devices.into_iter().map(|one| one.unwrap_or(Member::Absent));
                    return Self::assemble_md(devices.collect(), options);
                }
                Err(NotDecided::Member(place, error)) => {
                    let failed = Failed { place, error };
                    failed.tell((&joined, &inspected), (&mut members, &mut log))?;
                    put_back(&joined, &mut devices, (members, log));
                    return failed.assemble_without(&joined, devices, options);
                }
            }
        };
        engine.keep_spares(&mut joined, numbers, &mut devices);
        let replacement = joined.replacement;
        let mut found = MdFound { joined, inspected };
        if let Some(((given, of), device)) =
            replacement.and_then(|(given, of)| Some(((given, of), devices.get_mut(given)?.take()?)))
        {
            engine.resume_replacement((given, of), device, &mut found);
        }
        // The array begins with outputs.
        engine.turn(Wait::No);
        engine.hand_in(Input::Wake);
        engine.turn(Wait::No);
        engine.check_fault()?;
        Ok((engine, found))
    }

    /// Keeps the spares that were found, each with the number that it alone has; those that the array could not use are
    /// told among those that are out.
    fn keep_spares(
        &mut self,
        joined: &mut Joined,
        numbers: Vec<Option<u16>>,
        devices: &mut [Option<Member>],
    ) {
        for (given, number) in std::mem::take(&mut joined.spares).into_iter().zip(numbers) {
            let Some(spare) = devices.get_mut(given).and_then(Option::take) else { continue };
            let block = spare.config().logical_block;
            if block > self.block {
                let out = joined.out.iter_mut().filter(|out| out.given == given);
                let (what, array) = ("a spare that works in blocks of", self.block);
                let why = format!("{what} {block} sectors, and the array in blocks of {array}");
                out.for_each(|out| out.why = Why::NoSpare(why.clone()));
                continue;
            }
            joined.spares.push(given);
            self.spares.push(spare);
            self.spare_numbers.push(number);
            if let (Some(metadata), Some(number)) = (&mut self.metadata, number) {
                metadata.records.device_numbers().add_spare(number);
            }
        }
    }

    /// An array without redundancy: its superblocks never change.
    fn unrecorded_md(
        joined: &Joined,
        devices: Vec<Member>,
        options: &MdOptions,
    ) -> Result<Self, EngineError> {
        let member = |(device, sectors): (&Member, Sectors)| {
            let block = device.config().logical_block;
            let whole = sectors.0 / u64::from(block) * u64::from(block);
            MemberConfig { sectors: Sectors(whole), logical_block: block }
        };
        let sizes = (0..devices.len()).map(|place| joined.sectors(place));
        let own = config(joined, options, false);
        let core = Config {
            layout: own.layout.clone(),
            members: devices.iter().zip(sizes).map(member).collect(),
            read_policy: own.read_policy,
            traits: Vec::new(),
            limits: own.limits,
            settings: own.settings,
        };
        let array = Array::new(&core).map_err(|error| impossible(&error))?;
        let mut engine = Self::build(&own, &core, Volume::Flat(array), (devices, None))?;
        for (start, data) in engine.starts.iter_mut().zip(&joined.starts) {
            *start = data.0;
        }
        Ok(engine)
    }

    fn recorded_md(
        joined: &Joined,
        (devices, log): (Vec<Member>, Option<Member>),
        decided: Decided,
    ) -> Result<Self, EngineError> {
        let Decided { own, form, nonce, mut looked, assembled, journal, replayed } = decided;
        let (core, area) = (&assembled.config, &assembled.area);
        looked.resize_with(2 * devices.len(), || None);
        looked.push(journal);
        let array = Volume::Flat(assembled.array);
        let mut engine = Self::build(&own, core, array, (devices, log))?;
        let blocks = core.limits.ios.max(8 * engine.count as u32 + 8);
        let mut metadata = Metadata::new(assembled.identity, core, area, (blocks, form))?;
        metadata.records.begin_generation(nonce.max(1));
        for (place, looked) in (0..).map(MemberIndex).zip(&looked) {
            if let Some(looked) = looked {
                metadata.records.know(place, looked);
            }
        }
        if let Some(number) = joined.former_journal {
            metadata.records.device_numbers().add_faulty(number);
        }
        if joined.log_header.is_some() {
            let start = |place| {
                let kept = metadata.records.places(MemberIndex(place)).md();
                kept.and_then(Kept::ppl).map_or(0, |ppl| ppl.start().0)
            };
            let starts = (0..engine.count as u16).map(start).collect();
            engine.logs = LogPlaces { from: joined.sectors(0).0, starts };
        }
        engine.metadata = Some(metadata);
        for (start, data) in engine.starts.iter_mut().zip(&joined.starts) {
            *start = data.0;
        }
        engine.beginning = Beginning {
            unused: assembled.unused,
            resync: assembled.resync,
            replayed,
            ..Beginning::default()
        };
        Ok(engine)
    }

    /// Where the data of a place start, by what is known of its device.
    pub(super) fn note_start(&mut self, place: MemberIndex) {
        let known = self.metadata.as_ref().and_then(|one| one.records.places(place).md());
        if let Some(kept) = known {
            self.starts[place.at()] = kept.data_start().0;
        }
    }

    /// Spares that wait for a member to fail.
    pub fn spares(&self) -> &[Member] {
        &self.spares
    }

    /// Makes a device a spare of an md array: it takes the place of a member that fails, at
    /// [`use_spare`](Self::use_spare). Old metadata on it are wiped.
    ///
    /// # Errors
    /// [`EngineErrorKind::NotSupported`] for an array without md's metadata; as [`Engine::add`].
    pub fn add_spare(&mut self, device: Member) -> Result<(), EngineError> {
        const OPERATION: &str = "add a spare";
        let Some(Form::Md(md)) = self.metadata.as_ref().map(|one| one.form) else {
            let reason = "only arrays of md with redundancy have spares";
            return Err(EngineError::new(EngineErrorKind::NotSupported, OPERATION, reason));
        };
        self.check_block(&device, OPERATION)?;
        // Its place is known when it is used.
        let (mut device, _, places) = self.prepare_known(MemberIndex(0), device, OPERATION)?;
        let mut number = None;
        if let (Some(metadata), Some(mut places)) = (&mut self.metadata, places)
            && let Some((at, bytes)) = md.spare(&mut places, metadata.records.device_numbers())
        {
            number = places.md().map(Kept::number);
            if let Err(error) = write(&mut device, at, &bytes, OPERATION) {
                self.forget_spare(number);
                return Err(error);
            }
        }
        self.spares.push(device);
        self.spare_numbers.push(number);
        Ok(())
    }

    /// Puts a spare into the place of a member that is out of service, if there are both; gives the place.
    ///
    /// # Errors
    /// As [`Engine::add`]; the spare is gone then.
    pub fn use_spare(&mut self) -> Result<Option<MemberIndex>, EngineError> {
        if self.spares.is_empty() || !self.background.is_empty() || self.is_read_only() {
            return Ok(None);
        }
        let failed = (0..self.count as u16).map(MemberIndex).find(|one| self.array.is_failed(*one));
        let Some(member) = failed.filter(|member| !self.hangs(*member)) else { return Ok(None) };
        let Some(spare) = self.take_spare(0) else { return Ok(None) };
        self.add(member, spare)?;
        Ok(Some(member))
    }

    /// The number of a spare is free, for itself, too.
    fn forget_spare(&mut self, number: Option<u16>) {
        if let (Some(metadata), Some(number)) = (&mut self.metadata, number) {
            metadata.records.device_numbers().remove_spare(number);
        }
    }

    /// Takes a spare away, by its place among [`spares`](Self::spares).
    pub fn take_spare(&mut self, index: usize) -> Option<Member> {
        let spare = (index < self.spares.len()).then(|| self.spares.remove(index))?;
        let number = self.spare_numbers.remove(index);
        self.forget_spare(number);
        Some(spare)
    }

    fn is_read_only(&self) -> bool {
        self.array.status().stopped
    }

    /// Makes a fresh device ready for a place of an array of md's, or of GEOM.
    pub(super) fn prepare_known(
        &mut self,
        place: MemberIndex,
        mut device: Member,
        operation: &'static str,
    ) -> Result<(Member, Sectors, Option<Places>), EngineError> {
        let Some(metadata) = &mut self.metadata else {
            return Ok((device, Sectors::ZERO, None));
        };
        let serving =
            (0..self.count as u16).map(MemberIndex).find(|one| !self.array.is_failed(*one));
        let model = metadata.records.places(serving.unwrap_or(MemberIndex(0))).clone();
        let ready = match metadata.form {
            Form::Md(md) => {
                md.ready(&mut device, &model, metadata.records.device_numbers(), random()?)
            }
            Form::Geom => {
                let others = (0..self.count as u16).map(MemberIndex).filter(|one| *one != place);
                let disk_of = |one| Some(metadata.records.places(one).geom()?.label().disk);
                let others: Vec<u32> = others.filter_map(disk_of).collect();
                let disk = u32::from_le_bytes(random()?);
                Geom.ready(&mut device, &model, (place.0, disk), &others)
            }
            Form::Own => Err("its metadata are the own ones".into()),
        };
        let ready = ready.map_err(|reason| {
            on(EngineError::new(EngineErrorKind::Config, operation, reason), &device)
        })?;
        for (at, bytes) in &ready.pieces {
            write(&mut device, *at, bytes, operation)?;
        }
        Ok((device, ready.data, Some(ready.places)))
    }
}

/// Writes bytes to a device, durably.
pub(super) fn write(
    device: &mut Member,
    at: Sector,
    bytes: &[u8],
    operation: &'static str,
) -> Result<(), EngineError> {
    put(device, (at, bytes), true, operation)
}

/// The same; unless `fua`, durable with the next flush only.
pub(super) fn put(
    device: &mut Member,
    (at, bytes): (Sector, &[u8]),
    fua: bool,
    operation: &'static str,
) -> Result<(), EngineError> {
    let mut area = Area::new(bytes.len())?;
    area.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
    let len = Sectors(bytes.len() as u64 / SECTOR_BYTES);
    let submission = Submission { op: IoOp::Write, at, len, fua, flush_first: false };
    let piece = Piece { start: area.start(), len: bytes.len() };
    let outcome: IoOutcome = device.write_now(&submission, piece);
    device.direct(outcome, operation, at)
}

/// An array that is about to start, by what was found on its devices.
struct Decided {
    own: EngineConfig,
    form: Form,
    /// What tells this start from others.
    nonce: u64,
    looked: Vec<Option<Looked>>,
    assembled: Assembled,
    /// What the log device carries, now that its journal was replayed.
    journal: Option<Looked>,
    replayed: Replayed,
}

/// Why it does not start.
enum NotDecided {
    Error(EngineError),
    /// Superblocks had members in service without which the journal is to be replayed, and say now that they are not.
    Again,
    /// This member failed while the journal was replayed, and is not needed.
    Member(usize, EngineError),
}

impl From<EngineError> for NotDecided {
    fn from(error: EngineError) -> Self {
        Self::Error(error)
    }
}

impl Decided {
    fn new(
        (joined, inspected): (&Joined, &[Inspected]),
        (devices, log): (&mut [Member], &mut Option<Member>),
        options: &MdOptions,
    ) -> Result<Self, NotDecided> {
        let block = block(devices.iter().chain(&*log), log.is_some()).max(joined.block);
        let md = Md { block };
        let form = if joined.geom.is_some() { Form::Geom } else { Form::Md(md) };
        let mut looked: Vec<Option<Looked>> = devices
            .iter_mut()
            .map(|one| (!matches!(one, Member::Absent)).then(|| look(&form, one)))
            .collect();
        for (place, (one, device)) in looked.iter().zip(&*devices).enumerate() {
            let Some(one) = one else { continue };
            joined.check(place, &one.places).map_err(|why| on(not_joined(&why), device))?;
        }
        let nonce = u64::from_le_bytes(random()?);
        let found = joined.found(&mut looked, block, nonce);
        let without = if options.run { joined.absent } else { [0; 2] };
        let dirty_degraded = options.allowed.dirty_degraded;
        let allow = Allow { without, dirty_degraded, ..Allow::default() };
        let own = config(joined, options, keeps_bad_blocks(&looked));
        let mut wanted = own.wanted();
        wanted.traits.clone_from(&joined.traits);
        let assembled = Array::assemble(&wanted, &found, allow).map_err(|error| {
            match joined.short_bitmap(inspected, &found, &error) {
                Some((place, why)) => on(not_joined(&why), &devices[place]),
                None => cannot(&error, devices),
            }
        })?;
        let (mut journal, mut replayed) = (None, Replayed::default());
        if let Some(log) = log {
            let out = out_of_service(&assembled);
            let untold = joined.untold(inspected, out);
            for number in &untold {
                let told = tell_failed((devices, &mut *log), *number);
                told.map_err(|(place, error)| match place {
                    Some(place) if survives(joined, &assembled, out, place) => {
                        NotDecided::Member(place, error)
                    }
                    _ => error.into(),
                })?;
            }
            if !untold.is_empty() {
                return Err(NotDecided::Again);
            }
            let (looked, rows) = replay(joined, (devices, log), &assembled, md)?;
            (journal, replayed) = (Some(looked), rows);
        }
        Ok(Self { own, form, nonce, looked, assembled, journal, replayed })
    }
}

/// Members that are out of service.
fn out_of_service(assembled: &Assembled) -> MemberBits {
    let mut out = [0; 2];
    for one in &assembled.unused {
        out[one.member.at() / 64] |= 1 << (one.member.at() % 64);
    }
    out
}

/// Has all devices that are there know that the one with this number is out of service; if one of them fails, which
/// member that is.
fn tell_failed(
    (members, log): (&mut [Member], &mut Member),
    number: u16,
) -> Result<(), (Option<usize>, EngineError)> {
    let md = Md { block: block(members.iter().chain([&*log]), true) };
    let is_there = |(_, one): &(usize, &mut Member)| !matches!(one, Member::Absent);
    let (places, there): (Vec<usize>, Vec<&mut Member>) =
        members.iter_mut().enumerate().filter(is_there).unzip();
    record_failure(md, there.into_iter().chain([log]), number)
        .map_err(|(device, error)| (places.get(device).copied(), error))
}

/// Replays the journal of an array that is about to start; what its log device carries then.
fn replay(
    joined: &Joined,
    (members, log): (&mut [Member], &mut Member),
    assembled: &Assembled,
    md: Md,
) -> Result<(Looked, Replayed), NotDecided> {
    let not_written = |what: &str| not_joined(&Cannot::NotWritten(what.into()));
    let Geometry::Parity(geometry) = assembled.array.geometry() else {
        return Err(not_written("it has a journal, and no parity").into());
    };
    let out = out_of_service(assembled);
    let number = u32::from_le_bytes(random()?);
    let devices = Devices { members, log: &mut *log };
    let (looked, replayed) = match (Replay { joined, geometry, out, devices, md }).run(number) {
        Ok(done) => done,
        Err(ReplayError::Member(place, error)) if survives(joined, assembled, out, place) => {
            return Err(NotDecided::Member(place, error));
        }
        Err(error) => {
            let seen = inspect(log);
            return Err(not_replayed(error, log, seen.superblock()).into());
        }
    };
    match looked.places.md().and_then(Kept::journal) {
        Some(_) => Ok((looked, replayed)),
        None => Err(not_written("its journal has no room").into()),
    }
}

/// Whether an array has all that it holds without a member more; those that are being rebuilt do not help.
fn survives(joined: &Joined, assembled: &Assembled, out: MemberBits, place: usize) -> bool {
    let mut missing = out;
    let incomplete = (0..joined.order.len()).filter(|one| joined.filled_to(*one) < u64::MAX);
    for one in incomplete.chain([place]) {
        missing[one / 64] |= 1 << (one % 64);
    }
    !assembled.array.is_lost_without(missing)
}

/// A member that failed while the journal was replayed.
struct Failed {
    place: usize,
    error: EngineError,
}

impl Failed {
    /// Has all others know it.
    fn tell(
        &self,
        (joined, inspected): (&Joined, &[Inspected]),
        (members, log): (&mut [Member], &mut Option<Member>),
    ) -> Result<(), EngineError> {
        let given = joined.order[self.place];
        let superblock = given.and_then(|given| inspected[given].superblock());
        let number = superblock.map_or(0, |one| one.number) as u16;
        members[self.place] = Member::Absent;
        let Some(log) = log else { return Ok(()) };
        tell_failed((members, log), number).map_err(|(_, error)| error)
    }

    /// Starts the array without it.
    fn assemble_without(
        self,
        joined: &Joined,
        devices: Vec<Option<Member>>,
        options: &MdOptions,
    ) -> Result<(Engine, MdFound), EngineError> {
        let devices = devices.into_iter().map(|one| one.unwrap_or(Member::Absent)).collect();
        let (engine, mut found) = Engine::assemble_md(devices, options)?;
        let of = joined.order[self.place];
        if let Some(out) = found.joined.out.iter_mut().find(|out| Some(out.given) == of) {
            out.place = Some(self.place as u16);
            out.why = Why::FailedReplay(self.error.to_string());
        }
        Ok((engine, found))
    }
}

/// Puts devices back where they were given.
fn put_back(
    joined: &Joined,
    devices: &mut [Option<Member>],
    (members, log): (Vec<Member>, Option<Member>),
) {
    let taken = joined.order.iter().zip(members.into_iter().map(Some));
    for (given, member) in taken.chain([(&joined.journal, log)]) {
        if let Some(given) = given {
            devices[*given] = member;
        }
    }
}

/// Sectors that all of these devices read and write together; a journal is of whole pages.
pub(super) fn block<'a>(devices: impl Iterator<Item = &'a Member>, has_journal: bool) -> u32 {
    let least = if has_journal { PAGE as u32 } else { 1 };
    devices.map(|one| one.config().logical_block).max().unwrap_or(1).max(least)
}

fn config(joined: &Joined, options: &MdOptions, keeps_bad_blocks: bool) -> EngineConfig {
    let log_header = joined.log_header;
    // What one plan logs fits into the journal.
    let roles = u64::from(joined.layout.members);
    let in_journal = match joined.consistency {
        Consistency::Journal { sectors } => {
            1 << (sectors.0.saturating_sub(MOST_HEADS * PAGE) / roles).max(PAGE).ilog2()
        }
        _ => u64::MAX,
    };
    // What one plan logs fits into a header.
    let most = log_header.map_or(u64::MAX, |most| 1 << most.0.max(1).ilog2());
    let plan_rows = Sectors(options.settings.plan_rows.0.min(most).min(in_journal));
    let consistency = joined.consistency;
    let most_bad_blocks = options.settings.most_bad_blocks.min(bad_blocks::ROOM);
    let own = Settings { consistency, log_header, plan_rows, ..options.settings };
    let settings = Settings { keeps_bad_blocks, most_bad_blocks, packed_bitmap: true, ..own };
    let (read_policy, limits) = (options.read_policy, options.limits);
    EngineConfig { layout: joined.layout.clone(), read_policy, limits, settings }
}

fn not_joined(why: &Cannot) -> EngineError {
    let kind = match why {
        Cannot::NotWritten(_) | Cannot::Obstacle(_) | Cannot::BitmapsUnlike(_) => {
            EngineErrorKind::NotSupported
        }
        _ => EngineErrorKind::Assemble,
    };
    EngineError::new(kind, ASSEMBLE, why.to_string())
}

/// Why it does not begin, with what was given and is not used.
fn not_begun(
    why: &Cannot,
    (inspected, devices): (&[Inspected], &[Member]),
    allowed: &Allowed,
) -> EngineError {
    let out = not_used(inspected, allowed, Purpose::Write, why);
    let error = match why {
        Cannot::Bitmap(given) | Cannot::BitmapDamaged(given, _) => {
            on(not_joined(why), &devices[*given])
        }
        Cannot::BitmapsUnlike(heads) => {
            let named = |given: usize| match &devices[given] {
                Member::File(file) => file.path().display().to_string(),
                _ => format!("device {} of those given", given + 1),
            };
            let what = unlike_bitmaps(heads, named);
            EngineError::new(EngineErrorKind::NotSupported, ASSEMBLE, what)
        }
        _ => not_joined(why),
    };
    error.and(&unused(&out, |given| devices.get(given)))
}

/// What was given and is no member, with the reasons, a line each: the core knows of these only that their places are
/// empty.
fn unused<'a>(out: &[Out], device: impl Fn(usize) -> Option<&'a Member>) -> String {
    let line = |one: &Out| match device(one.given) {
        Some(Member::File(file)) => one.told(&file.path().display()),
        _ => one.told(&format_args!("device {} of those given", one.given + 1)),
    };
    let out = out.iter().filter(|one| one.why != Why::Spare);
    out.map(|one| format!("\n  not used: {}", line(one))).collect()
}

/// The same with the file of a device.
pub(super) fn on(error: EngineError, device: &Member) -> EngineError {
    match device {
        Member::File(file) => error.at_path(file.path()),
        _ => error,
    }
}
