//! Cells on real members: set up, fill, run, verify.

use std::sync::atomic::AtomicBool;

use raidlab_core::contract::{Pacing, Work};
use raidlab_core::{Config, Limits, MemberIndex, Sectors, Time, Volume};
use raidlab_engine::{
    CacheState, Engine, EngineConfig, EngineError, EngineErrorKind, FileMember, FileOptions,
    MdOptions, Member, Mismatch,
};
use raidlab_random::mix;
use raidlab_study::{
    CellKey, Rebuild, Runner, Sample, State, Study, StudyErrorKind, cell_title, lost_member,
};
use raidlab_targets::{Filesystem, MountedArray, RawResult, RawTarget};
use raidlab_workload::raw::RawPlan;
use raidlab_workload::{Kind, Setting, Simple, Workload, WorkloadError};

use crate::drives::Drives;
use crate::error::MeasureError;
use crate::fill::{BLOCK, Before, Filling, filled, plan};
use crate::format::MemberFormat;
use crate::memory;
use crate::mounted::{differing, on_array};
use crate::sizes::Sizes;

/// Memory for filling, which is not timed, in bytes: little, so that it stays in the cache.
const FILL_MEMORY: u64 = 12 << 20;
/// The most memory for the operations of a run, in bytes.
const RUN_MEMORY: u64 = 256 << 20;
/// What a probe of the drives writes, in bytes.
const PROBE_BYTES: u64 = 512 << 10;

/// Runs cells on the members.
pub(super) struct Cells<'a> {
    study: &'a Study,
    drives: &'a Drives,
    sizes: &'a Sizes,
    cancel: &'a AtomicBool,
    /// Where workloads run on one.
    cache: Option<CacheState>,
    before: Before,
    /// Superblocks of md's were written.
    has_superblocks: bool,
}

/// Why a cell gave no sample.
enum CellError {
    Engine(EngineError),
    /// The workload cannot be on this array.
    Workload(WorkloadError),
    /// The run took no time the clock can tell.
    NoTime,
    /// Wrong bytes on members, found after the run.
    Wrong(Vec<Mismatch>),
    /// Copies or parity differ after the run, in so many sectors.
    Differing(Sectors),
    /// The rebuild after the run did not come to its end.
    NotRebuilt,
}

impl From<EngineError> for CellError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl<'a> Cells<'a> {
    pub(super) fn new(
        study: &'a Study,
        drives: &'a Drives,
        sizes: &'a Sizes,
        cancel: &'a AtomicBool,
    ) -> Self {
        Self {
            study,
            drives,
            sizes,
            cancel,
            cache: None,
            before: Before::Unknown,
            has_superblocks: false,
        }
    }

    /// What a layout's cells run on, where that is no raw array.
    fn filesystem(&self, layout: usize) -> Option<Filesystem> {
        self.study.filesystem_of(layout).and_then(Filesystem::from_name)
    }

    /// What the members turned out to be; `None` before the first was opened.
    pub(super) fn cache(&self) -> Option<CacheState> {
        self.cache
    }

    /// Plans every layout once on the members as they are, so that what cannot be shows before
    /// hours of work.
    pub(super) fn check(&mut self) -> Result<(), MeasureError> {
        if self.study.filesystem.is_some() && self.study.states.contains(&State::Rebuilding) {
            let reason = "`rebuilding` on a filesystem is not supported on real drives; leave it out, \
                          or leave `filesystem` out";
            return Err(MeasureError::input(format!("states: {reason}")));
        }
        for layout in 0..self.study.layouts.len() {
            if let Some(filesystem) = self.filesystem(layout) {
                // Before anything is written to the members.
                MountedArray::check_host(filesystem).map_err(MeasureError::failed)?;
            }
            let members = self.members(layout).map_err(MeasureError::failed)?;
            let named = &self.study.layouts[layout];
            let config = Config {
                layout: named.layout.clone(),
                members: members.iter().map(Member::config).collect(),
                read_policy: named.read_policy,
                traits: Vec::new(),
                limits: Limits::default(),
                settings: named.settings,
            };
            Volume::new(&config).map_err(|error| {
                let kind = StudyErrorKind::ImpossibleLayout;
                let place = ("layouts", layout, error.key);
                let reason = format!("{} (members are {} here)", error.reason, self.drives.what());
                MeasureError::input(self.study.origin.error(kind, place, reason))
            })?;
        }
        Ok(())
    }

    /// Writes member files throughout once, where that is less than what cells then need not fill.
    pub(super) fn write_throughout(&mut self) -> Result<(), MeasureError> {
        let Drives::Files(directory) = self.drives else { return Ok(()) };
        if self.study.filesystem.is_some() {
            return Ok(());
        }
        let filling = |before| Filling::after(self.study, self.sizes, before).ok();
        let both = filling(Before::Unknown).zip(filling(Before::WrittenThroughout));
        // A workload that cannot be planned is told with its cell.
        let Some((otherwise, then)) = both else { return Ok(()) };
        let least = self.sizes.file.saturating_mul(directory.members() as u64);
        if otherwise.bytes.saturating_sub(then.bytes) <= least {
            return Ok(());
        }
        let written = directory.write_throughout(self.cancel);
        written.map_err(|error| match error.kind() {
            EngineErrorKind::Cancelled => MeasureError::Interrupted,
            _ => MeasureError::failed(error),
        })?;
        self.before = Before::WrittenThroughout;
        Ok(())
    }

    fn options(&self, layout: usize) -> FileOptions {
        FileOptions { sectors: Some(self.sizes.members[layout]), ..Default::default() }
    }

    fn members(&mut self, layout: usize) -> Result<Vec<Member>, EngineError> {
        let options = self.options(layout);
        let mut members = Vec::new();
        for index in 0..self.study.layouts[layout].layout.drives() {
            let (file, path) = self.drives.member(layout, index)?;
            let member = FileMember::new(file, &path, options)?;
            if self.cache != Some(CacheState::Buffered) {
                self.cache = Some(member.cache_state());
            }
            members.push(Member::File(Box::new(member)));
        }
        Ok(members)
    }

    fn target(&mut self, layout: usize) -> Result<RawTarget, EngineError> {
        RawTarget::new(self.engine(layout)?, false)
    }

    fn engine(&mut self, layout: usize) -> Result<Engine, EngineError> {
        let members = self.members(layout)?;
        let named = &self.study.layouts[layout];
        let format = &self.sizes.formats[layout];
        let mut journal = None;
        if let Some(sectors) = format.log_sectors(named.settings.consistency) {
            let (file, path) = self.drives.journal()?;
            let options = FileOptions { sectors: Some(sectors), ..Default::default() };
            journal = Some(Member::File(Box::new(FileMember::new(file, &path, options)?)));
        }
        let (settings, read_policy) = (named.settings, named.read_policy);
        if let MemberFormat::Md(members_of_md) = format {
            self.has_superblocks = true;
            let options = MdOptions { settings, read_policy, ..MdOptions::default() };
            return Engine::new_md(&members_of_md.creation, members, journal, &options);
        }
        // What a cell before it left is not to be taken for an array once the study is killed.
        self.clear_superblocks()?;
        let mut config = EngineConfig::new(named.layout.clone());
        (config.settings, config.read_policy) = (settings, read_policy);
        Engine::with_journal(&config, members, journal)
    }

    /// Takes superblocks of md's off devices again.
    pub(super) fn clear_superblocks(&mut self) -> Result<(), EngineError> {
        if std::mem::take(&mut self.has_superblocks) {
            self.drives.clear_superblocks()
        } else {
            Ok(())
        }
    }

    /// The drive that takes a failed member's place.
    fn spare(&self, layout: usize) -> Result<Member, EngineError> {
        let (file, path) = self.drives.spare()?;
        let member = FileMember::new(file, &path, self.options(layout))?;
        Ok(Member::File(Box::new(member)))
    }

    /// How many blocks of 4 KiB a second the first layout takes at random places, with the flush at
    /// the end.
    pub(super) fn probe(&mut self) -> Result<f64, MeasureError> {
        let workload = Simple::new(Kind::RandomWrite, PROBE_BYTES);
        let mut measure = || {
            let mut target = self.target(0)?;
            let space = target.engine().array().capacity().bytes();
            let plan = plan(&workload, space, 1, self.study.seed).map_err(CellError::Workload)?;
            Ok(target.run(plan, self.cancel)?)
        };
        let probing =
            |what: &str| MeasureError::failed(format!("probing how fast the drives are{what}"));
        let run = measure().map_err(|trouble| match trouble {
            CellError::Engine(error) if error.kind() == EngineErrorKind::Cancelled => {
                MeasureError::Interrupted
            }
            CellError::Engine(error) => probing(&format!(": {error}")),
            CellError::Workload(error) => probing(&format!(": {error}")),
            _ => probing(" failed"),
        })?;
        let rate = workload.values(&run.record)[0];
        rate.ok_or_else(|| MeasureError::failed("probing how fast the drives are took no time"))
    }

    fn cell(&mut self, key: &CellKey, seed: u64) -> Result<Sample, CellError> {
        if let (Some(filesystem), Some(spec)) =
            (self.filesystem(key.layout), key.workload(self.study))
        {
            return self.cell_on_filesystem(key, seed, filesystem, &*spec.workload);
        }
        // Layouts share seeds, and members.
        let salt = mix(&[seed, key.layout as u64]);
        let mut target = self.target(key.layout)?.salted(salt);
        let Some(spec) = key.workload(self.study) else {
            return self.rebuild_alone(&mut target, key);
        };
        let workload = &*spec.workload;
        let capacity = target.engine().array().capacity();
        let layout = &self.study.layouts[key.layout].layout;
        let planned = || plan(workload, capacity.bytes(), key.processes, seed);
        target.set_memory(FILL_MEMORY);
        let planned_once = planned().map_err(CellError::Workload)?;
        let filled = filled(planned_once, (layout, key.state), capacity, self.before);
        target.fill_all(&filled, self.cancel)?;
        let plan = planned().map_err(CellError::Workload)?;
        let all: u64 = plan.extents.iter().map(|(start, end)| end - start).sum();
        let each = all.saturating_add(BLOCK).saturating_mul(2);
        target.set_memory(each.min(RUN_MEMORY));
        let (run, rebuild) = self.run_in_state(&mut target, key, plan)?;
        self.verify(&mut target)?;
        if key.state != State::Healthy {
            self.make_whole(&mut target, key)?;
            self.verify(&mut target)?;
        }
        let sample = Sample::of(workload, &run.record).ok_or(CellError::NoTime)?;
        Ok(Sample { rebuild, ..sample })
    }

    /// A cell on a filesystem that is made for it.
    fn cell_on_filesystem(
        &mut self,
        key: &CellKey,
        seed: u64,
        filesystem: Filesystem,
        workload: &dyn Workload,
    ) -> Result<Sample, CellError> {
        let mut engine = self.engine(key.layout)?;
        engine.clear_members()?;
        if key.state == State::Degraded {
            let member = lost_member(engine.array().geometry());
            engine.fail(member)?;
            engine.take_events();
        }
        let host_memory = memory::host_memory();
        let setting = Setting { host_memory, ..Setting::new(key.processes, seed) };
        let plan = workload.plan(&setting).map_err(CellError::Workload)?;
        let outcome =
            on_array(engine, &self.drives.mount_place(), filesystem, plan, self.cancel, &|_| ())?;
        match outcome.differing {
            Some(sectors) if sectors != Sectors::ZERO => Err(CellError::Differing(sectors)),
            _ => Sample::of(workload, &outcome.record).ok_or(CellError::NoTime),
        }
    }

    /// Runs the processes, the array in the cell's state.
    fn run_in_state(
        &self,
        target: &mut RawTarget,
        key: &CellKey,
        plan: RawPlan,
    ) -> Result<(RawResult, Option<Rebuild>), CellError> {
        if key.state == State::Healthy {
            return Ok((target.run(plan, self.cancel)?, None));
        }
        let member = lose(target)?;
        if key.state == State::Degraded {
            return Ok((target.run(plan, self.cancel)?, None));
        }
        let mut spare = Some(self.spare(key.layout)?);
        let mut began = Time::ZERO;
        let run = target.run_beginning(plan, self.cancel, &mut |engine| {
            began = engine.clock();
            spare.take().map_or(Ok(()), |spare| engine.add(member, spare))
        })?;
        // It stands still while batches are prepared and verified, which no clock of the run counts.
        let rebuild = progress(target.engine_mut(), began, |at| run.timed_up_to(at));
        Ok((run, rebuild))
    }

    /// A rebuild while nothing else goes on, from the fresh drive to the end.
    fn rebuild_alone(&self, target: &mut RawTarget, key: &CellKey) -> Result<Sample, CellError> {
        let capacity = target.engine().array().capacity().bytes();
        target.set_memory(FILL_MEMORY);
        target.fill(0, capacity / BLOCK * BLOCK, self.cancel)?;
        let member = lose(target)?;
        let spare = self.spare(key.layout)?;
        let engine = target.engine_mut();
        let began = engine.clock();
        engine.add(member, spare)?;
        engine.finish_background(self.cancel)?;
        let rebuild = progress(engine, began, |at| at).ok_or(CellError::NoTime)?;
        self.verify(target)?;
        let (value, _) = rebuild.seconds().ok_or(CellError::NoTime)?;
        Ok(Sample::of_rebuild(value, rebuild))
    }

    /// Rebuilds what is missing to its end, untimed and as fast as it goes.
    fn make_whole(&self, target: &mut RawTarget, key: &CellKey) -> Result<(), CellError> {
        let engine = target.engine_mut();
        engine.pace(Pacing::between(u64::MAX, u64::MAX))?;
        if key.state == State::Degraded {
            let member = lost_member(engine.array().geometry());
            engine.add(member, self.spare(key.layout)?)?;
        }
        engine.finish_background(self.cancel)?;
        let member = lost_member(engine.array().geometry());
        if engine.array().is_failed(member) {
            return Err(CellError::NotRebuilt);
        }
        Ok(())
    }

    /// Every byte and all redundancy of the members in service.
    fn verify(&self, target: &mut RawTarget) -> Result<(), CellError> {
        let wrong = target.verify_members(self.cancel)?;
        if wrong.is_empty() { Ok(()) } else { Err(CellError::Wrong(wrong)) }
    }
}

/// Takes the member out of service that states besides `healthy` do without.
fn lose(target: &mut RawTarget) -> Result<MemberIndex, EngineError> {
    let engine = target.engine_mut();
    let member = lost_member(engine.array().geometry());
    engine.fail(member)?;
    engine.take_events();
    Ok(member)
}

/// What the rebuild that began at `began` did up to now; `None` when there was none. `counted` says what counts of the
/// time up to some time on the engine's clock.
fn progress(engine: &mut Engine, began: Time, counted: impl Fn(Time) -> Time) -> Option<Rebuild> {
    let events = engine.take_timed_events();
    let status = engine.array().status().work;
    let under_way = status.filter(|status| matches!(status.work, Work::Rebuild(_)));
    let events = events.iter().map(|(at, event)| (counted(*at), event));
    Rebuild::up_to(counted(engine.clock()), counted(began), events, under_way)
}

impl Runner for Cells<'_> {
    type Error = MeasureError;

    fn is_stop(error: &MeasureError) -> bool {
        *error == MeasureError::Interrupted
    }

    fn run(&mut self, key: &CellKey, round: u32, seed: u64) -> Result<Sample, MeasureError> {
        let title = format!("round {}: {}", round + 1, cell_title(self.study, key));
        let wrong_bytes = |when: &str, wrong: &[Mismatch]| {
            let lines: Vec<_> = wrong.iter().map(|one| format!("\n  {one}")).collect();
            MeasureError::failed(format!("{title}: wrong bytes {when}:{}", lines.concat()))
        };
        self.cell(key, seed).map_err(|trouble| match trouble {
            CellError::Workload(error) => MeasureError::input(format!("{title}: {error}")),
            CellError::Wrong(wrong) => wrong_bytes("found on members after the run", &wrong),
            CellError::Differing(sectors) => {
                MeasureError::failed(format!("{title}: {}", differing(sectors)))
            }
            CellError::NoTime => {
                MeasureError::failed(format!("{title}: took no time; use a larger --size"))
            }
            CellError::NotRebuilt => {
                MeasureError::failed(format!("{title}: the lost member could not be rebuilt"))
            }
            CellError::Engine(error) => match (error.kind(), error.mismatch()) {
                (EngineErrorKind::Cancelled, _) => MeasureError::Interrupted,
                (_, Some(mismatch)) => wrong_bytes("were read", std::slice::from_ref(mismatch)),
                _ => MeasureError::failed(format!("{title}: {error}")),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::AtomicBool;

    use raidlab_core::Sector;
    use raidlab_targets::RunDirectory;

    use super::*;

    static GO: AtomicBool = AtomicBool::new(false);
    const BLOCK: u64 = 4096;

    /// Of which members the first blocks come when they are read one after the other, by what is put there.
    fn members_read(engine: &mut Engine, files: &RunDirectory) -> Vec<u8> {
        for member in 0..2 {
            let at = engine.data_start(MemberIndex(member)).bytes();
            let file = files.open_member(member).expect("a member");
            file.write_all_at(&[b'a' + member as u8; 16 * BLOCK as usize], at).expect("written");
            file.sync_all().expect("synced");
        }
        let read = |block| {
            let mut bytes = [0; BLOCK as usize];
            engine.read_at(Sector(block * BLOCK / 512), &mut bytes).expect("read");
            bytes[0]
        };
        (0..16).map(read).collect()
    }

    /// Arrays on member files have the sizes that were planned, though files are as large as the largest member, and
    /// keep redundancy and choose copies as the study says, with md's metadata and without.
    #[test]
    fn arrays_are_those_of_the_study() {
        let turns = "policy = \"gmirror-round-robin\"";
        let resync = "consistency = \"resync\"";
        let layouts = [
            "level = \"single\"".to_string(),
            "level = \"raid0\", members = 2".into(),
            format!("level = \"raid3\", members = 3, {resync}"),
            format!("level = \"raid5\", members = 3, {resync}"),
            "level = \"raid1\", members = 2".into(),
            format!("level = \"raid1\", members = 2, {resync}"),
            format!("level = \"raid1\", members = 2, {turns}"),
            format!("level = \"raid1\", members = 2, {turns}, {resync}"),
        ];
        let all: Vec<String> = layouts.iter().map(|layout| format!("{{ {layout} }}")).collect();
        let text = format!(
            "title = \"t\"\nprocesses = [1]\nlayouts = [{}]\n\
             drives = [{{ name = \"d\", model = \"nas-8tb-7200\", count = 3 }}]\n\
             workloads = [{{ kind = \"dd-read\", size = \"1MiB\", block = \"64KiB\" }}]\n",
            all.join(", ")
        );
        let study = raidlab_study::parse(&text, "study.toml").expect("a study");
        let sizes = Sizes::of(&study).expect("sizes");
        let made = RunDirectory::create(&std::env::temp_dir(), 3, sizes.file).expect("files");
        let drives = Drives::Files(made);
        let mut cells = Cells::new(&study, &drives, &sizes, &GO);
        let Drives::Files(files) = &drives else { unreachable!("files") };
        for (index, layout) in layouts.iter().enumerate() {
            let mut engine = cells.engine(index).expect(layout);
            assert_eq!(engine.array().capacity(), sizes.capacities[index], "{layout}");
            let wanted = study.layouts[index].settings.consistency;
            let Volume::Flat(array) = engine.array() else { panic!("{layout}: one level") };
            assert_eq!(array.consistency(), wanted, "{layout}");
            if layout.contains("raid1") {
                let read = members_read(&mut engine, files);
                let takes_turns = read.contains(&b'a') && read.contains(&b'b');
                assert_eq!(takes_turns, layout.contains(turns), "{layout}: {read:?}");
            }
        }
    }
}
