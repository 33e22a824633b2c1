//! How large arrays on member files and their members are.

use raidlab_core::consistency::MetaArea;
use raidlab_core::{Config, ConfigError, Layout, SECTOR_BYTES, Sectors, Volume};
use raidlab_engine::log_device_sectors;
use raidlab_study::{
    DriveSource, NamedLayout, State, Study, StudyError, StudyErrorKind, filesystem_room,
};
use raidlab_targets::{Extra, Filesystem, RawTarget};
use raidlab_workload::Setting;

/// Member files whose size the study leaves open are a multiple of this, in bytes.
const ROUND: u64 = 1 << 20;
/// Arrays whose size the study leaves open are at least this large, in bytes: random places of less
/// would lie in the caches of any drive.
const SMALLEST_ARRAY: u64 = 64 << 20;
/// Real members are read and written in whole blocks of this many sectors.
const BLOCK: u32 = (RawTarget::BLOCK / SECTOR_BYTES) as u32;

/// How large the arrays and their members are.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// Bytes of each member file.
    pub file: u64,
    /// The study says how large files are.
    pub given: bool,
    /// Sectors of each member, by layout.
    pub members: Vec<Sectors>,
    /// Sectors of each array, by layout.
    pub capacities: Vec<Sectors>,
}

impl Sizes {
    /// Files besides the members.
    pub fn extra(&self, study: &Study) -> Extra {
        let is_sound = study.states.iter().all(|state| *state == State::Healthy);
        let journals = study
            .layouts
            .iter()
            .filter_map(|named| log_device_sectors(named.settings.consistency).map(Sectors::bytes));
        Extra { spare: (!is_sound).then_some(self.file), journal: journals.max() }
    }

    /// For groups of files the size they give; else such that each array just holds every workload,
    /// and all arrays are of about one size.
    ///
    /// # Errors
    /// When a layout is impossible on such members, or a workload does not fit; with file, line and key.
    pub fn of(study: &Study) -> Result<Self, StudyError> {
        Self::on(study, false)
    }

    /// The same for devices: `member_size` is how much of each is used, be it more than is needed.
    /// [`whole_members`] says how much that may be.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn on_devices(study: &Study) -> Result<Self, StudyError> {
        Self::on(study, true)
    }

    fn on(study: &Study, on_devices: bool) -> Result<Self, StudyError> {
        let needed = needed(study)?;
        let mut sizes = Self { file: 0, given: false, members: Vec::new(), capacities: Vec::new() };
        for (index, named) in study.layouts.iter().enumerate() {
            let impossible = |error: ConfigError| {
                let place = ("layouts", index, error.key);
                study.origin.error(StudyErrorKind::ImpossibleLayout, place, error.reason)
            };
            let member = match study.drives[named.drives].source {
                DriveSource::File(size) => {
                    sizes.given = true;
                    Sectors(size.0 / SECTOR_BYTES)
                }
                DriveSource::Model(_) => member_for(named, needed).map_err(impossible)?,
            };
            let member = match (study.member_size, on_devices) {
                (Some(size), true) => size,
                (Some(most), false) => most.min(member),
                (None, _) => member,
            };
            let capacity = capacity(named, member).map_err(impossible)?;
            sizes.file = sizes.file.max(member.bytes());
            sizes.members.push(member);
            sizes.capacities.push(capacity);
        }
        let blocks: Vec<u32> =
            study.layouts.iter().map(|named| smallest_request(&named.layout)).collect();
        let memory = crate::memory::host_memory();
        study.check_capacity(&sizes.capacities, &blocks, |_| memory)?;
        Ok(sizes)
    }
}

/// How much of devices of these sizes, in bytes, arrays use: all of the smallest, in whole MiB. `None` where the study
/// says how much, or cells are about more than the places that their processes touch: filesystems are made and
/// rebuilds go all over members, for each cell.
pub fn whole_members(study: &Study, devices: &[u64]) -> Option<Sectors> {
    let is_open = study.member_size.is_none()
        && study.filesystem.is_none()
        && study.states.iter().all(|state| *state == State::Healthy)
        && study.drives.iter().all(|group| matches!(group.source, DriveSource::Model(_)));
    let smallest = devices.iter().min().filter(|_| is_open)?;
    Some(Sectors(smallest / ROUND * ROUND / SECTOR_BYTES)).filter(|sectors| sectors.0 > 0)
}

/// The smallest request of an array, in sectors: both are powers of two.
pub(super) fn smallest_request(layout: &Layout) -> u32 {
    BLOCK.max(layout.sectors_at_once())
}

/// The capacity over members of this size, behind whose data log and metadata lie.
fn capacity(named: &NamedLayout, member: Sectors) -> Result<Sectors, ConfigError> {
    let mut config = Config::uniform(named.layout.clone(), member);
    (config.settings, config.read_policy) = (named.settings, named.read_policy);
    let volume = Volume::new(&config)?;
    let area = MetaArea::of_volume(&volume, &config);
    if !area.used {
        return Ok(volume.capacity());
    }
    let Some(data) = area.data(member, BLOCK) else { return Ok(Sectors::ZERO) };
    config.members.iter_mut().for_each(|member| member.sectors = data);
    // What is left may be too little for any stripe.
    Ok(Volume::new(&config).map_or(Sectors::ZERO, |array| array.capacity()))
}

/// Bytes an array must have for every workload.
fn needed(study: &Study) -> Result<u64, StudyError> {
    let mut most = SMALLEST_ARRAY;
    for (index, spec) in study.workloads.iter().enumerate() {
        for &processes in study.processes_of(spec) {
            let room = match &study.filesystem {
                None => spec.workload.raw_room(processes),
                Some(name) => {
                    let least = Filesystem::from_name(name).map_or(0, Filesystem::least_bytes);
                    let host_memory = crate::memory::host_memory();
                    let setting = Setting { host_memory, ..Setting::new(processes, study.seed) };
                    spec.workload.plan(&setting).map(|plan| filesystem_room(plan.room).max(least))
                }
            };
            let room = room.map_err(|error| {
                let place = ("workloads", index, &*error.key);
                study.origin.error(StudyErrorKind::WrongValue, place, error.reason)
            })?;
            most = most.max(room);
        }
    }
    Ok(most)
}

/// The smallest member, in whole MiB and chunks, with which the array holds `needed` bytes.
///
/// # Errors
/// When there can be no such array.
pub fn member_for(named: &NamedLayout, needed: u64) -> Result<Sectors, ConfigError> {
    let chunk = named.layout.floors().map(|floor| floor.chunk.bytes()).max().unwrap_or(0);
    let step = ROUND.max(chunk).next_multiple_of(ROUND) / SECTOR_BYTES;
    // What lies behind the data comes on top.
    let mut config = Config::uniform(named.layout.clone(), Sectors(needed / SECTOR_BYTES + step));
    config.settings = named.settings;
    let area = MetaArea::of_volume(&Volume::new(&config)?, &config);
    let most = needed / SECTOR_BYTES + area.sectors().0;
    let (mut low, mut high) = (0, most / step + 1);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        let enough = capacity(named, Sectors(middle * step))?.bytes() >= needed;
        if enough { high = middle } else { low = middle }
    }
    Ok(Sectors(high * step))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(changes: &[(&str, &str)]) -> Study {
        let mut text = raidlab_study::default_study().to_string();
        for (old, new) in changes {
            assert!(text.contains(old), "{old}");
            text = text.replace(old, new);
        }
        raidlab_study::parse(&text, "study.toml").expect("a study")
    }

    #[test]
    fn every_array_just_holds_every_workload() {
        for changes in [&[][..], &[("4GiB", "10MiB")], &[("4GiB", "6MiB"), ("100%", "7%")]] {
            let study = study(changes);
            let sizes = Sizes::of(&study).expect("sizes");
            let needed = needed(&study).expect("sizes");
            assert_eq!(
                (sizes.members.len(), sizes.capacities.len()),
                (9, 9),
                "one for each layout"
            );
            let largest = sizes.members.iter().map(|member| member.bytes()).max();
            assert_eq!(
                (Some(sizes.file), sizes.given),
                (largest, false),
                "files are as large as the largest member"
            );
            for (named, (member, capacity)) in
                study.layouts.iter().zip(sizes.members.iter().zip(&sizes.capacities))
            {
                assert!(capacity.bytes() >= needed, "{} holds too little", named.name);
                let smaller = Sectors(member.0 - ROUND / SECTOR_BYTES);
                let less = super::capacity(named, smaller).expect("possible");
                assert!(less.bytes() < needed, "{} is larger than it must be", named.name);
            }
        }
    }

    #[test]
    fn a_span_in_bytes_is_held() {
        let study = study(&[("span = \"100%\"", "span = \"1GiB\""), ("4GiB", "12MiB")]);
        let sizes = Sizes::of(&study).expect("sizes");
        assert_eq!(sizes.capacities.len(), 9);
        assert!(sizes.capacities.iter().all(|capacity| capacity.bytes() >= 1 << 30));
    }

    #[test]
    fn a_member_size_is_used_wholly_on_devices() {
        let study = study(&[("seed = 1 ", "seed = 1\nmember_size = \"3GiB\" "), ("4GiB", "6MiB")]);
        let sizes = Sizes::on_devices(&study).expect("sizes");
        assert_eq!((&sizes.members[..], sizes.file), (&[Sectors(6 << 20); 9][..], 3 << 30));
        let files = Sizes::of(&study).expect("sizes");
        assert!(files.members.iter().all(|member| member.bytes() < 3 << 30), "{:?}", files.members);
    }

    #[test]
    fn devices_are_used_wholly_unless_cells_go_all_over_them() {
        let devices = [8_000_000_000_000, 4_000_000_000_000, 6_000_000_000_000];
        let whole = |changes: &[(&str, &str)]| whole_members(&study(changes), &devices);
        assert_eq!(whole(&[]), Some(Sectors(4_000_000_000_000 / ROUND * ROUND / 512)));
        for changes in [
            ("seed = 1 ", "seed = 1\nmember_size = \"3GiB\" "),
            ("seed = 1 ", "seed = 1\nstates = [\"healthy\", \"degraded\"] "),
            ("model = \"nas-8tb-7200\"", "file = \"1GiB\""),
        ] {
            assert_eq!(whole(&[changes]), None, "{changes:?}");
        }
        let mut on_filesystem = study(&[]);
        on_filesystem.filesystem = Some("ext4".into());
        assert_eq!(whole_members(&on_filesystem, &devices), None);
        assert_eq!(whole_members(&study(&[]), &[]), None);
        assert_eq!(whole_members(&study(&[]), &[ROUND - 512]), None, "not a MiB");
        let more = "[[layouts]]\nlevel = \"single\"\nname = \"of files\"\ndrives = \"files\"\n";
        let text = raidlab_study::default_study().to_string()
            + "\n[[drives]]\nname = \"files\"\nfile = \"8GiB\"\ncount = 1\n"
            + more;
        let mixed = raidlab_study::parse(&text, "study.toml").expect("a study");
        assert_eq!(whole_members(&mixed, &devices), None, "one group is of files");
    }

    #[test]
    fn what_is_given_is_used_and_checked() {
        let files = study(&[("model = \"nas-8tb-7200\"", "file = \"80MiB\""), ("4GiB", "6MiB")]);
        let sizes = Sizes::of(&files).expect("sizes");
        assert_eq!(
            (sizes.given, sizes.file, &sizes.members[..]),
            (true, 80 << 20, &[Sectors(160 << 10); 9][..])
        );
        let small =
            study(&[("seed = 1 ", "seed = 1\nmember_size = \"64MiB\" "), ("4GiB", "100MiB")]);
        assert_eq!(
            Sizes::on_devices(&small).expect_err("too small").kind,
            StudyErrorKind::DoesNotFit
        );
    }

    /// A file more than the members stands by only where one of them fails.
    #[test]
    fn a_spare_is_there_where_a_member_fails() {
        let spare = |states: &str| {
            let study = study(&[
                ("seed = 1 ", &format!("seed = 1\nstates = [{states}] ")),
                ("4GiB", "6MiB"),
            ]);
            let sizes = Sizes::of(&study).expect("sizes");
            (sizes.extra(&study).spare, sizes.file)
        };
        assert_eq!(spare("\"healthy\"").0, None);
        for states in ["\"degraded\"", "\"healthy\", \"rebuilding\""] {
            let (spare, file) = spare(states);
            assert_eq!(spare, Some(file), "{states}");
        }
    }

    /// Log and metadata lie behind the data, and whole chunks are used.
    #[test]
    fn members_have_room_for_what_lies_behind_the_data() {
        let named = |more: &str| {
            let text = format!(
                "title = \"t\"\ndrives = [{{ name = \"d\", model = \"nas-8tb-7200\", count = 4 }}]\n\
                 layouts = [{{ level = \"raid5\", members = 4{more} }}]\n\
                 workloads = [{{ kind = \"dd-read\", size = \"1MiB\" }}]\n"
            );
            raidlab_study::parse(&text, "study.toml").expect("a study").layouts.remove(0)
        };
        let needed = 96 << 20;
        let member = |more: &str| member_for(&named(more), needed).expect("possible").bytes();
        assert_eq!(member(""), 32 << 20, "a third of it on each of three, no more");
        assert_eq!(
            member_for(&named(""), 100 << 20).expect("possible").bytes(),
            34 << 20,
            "whole MiB"
        );
        let chunks = named(", chunk = \"16MiB\"");
        assert_eq!(
            member_for(&chunks, 100 << 20).expect("possible").bytes(),
            48 << 20,
            "whole chunks"
        );
        for mode in ["resync", "bitmap", "ppl"] {
            let more = format!(", consistency = \"{mode}\"");
            let named = named(&more);
            let size = Sectors(64 << 11);
            assert!(member(&more) > 32 << 20, "{mode}");
            let less = capacity(&named, size).expect("possible");
            assert!(
                less.bytes() < 3 * (64 << 20) && less.bytes() > 3 * (40 << 20),
                "{mode}: {less:?}"
            );
        }
        assert_eq!(
            capacity(&named(""), Sectors(64 << 11)).expect("possible").bytes(),
            3 * (64 << 20)
        );
    }

    /// One file does for all layouts with a journal, wherever they stand among the others.
    #[test]
    fn the_journal_is_as_large_as_the_largest_that_any_layout_wants() {
        let layout = |size: Option<&str>| {
            let journal = size.map_or_else(String::new, |size| {
                format!("name = \"{size}\"\nconsistency = \"journal\"\njournal_size = \"{size}\"\n")
            });
            format!("\n[[layouts]]\nlevel = \"raid5\"\nmembers = 3\nchunk = \"64KiB\"\n{journal}")
        };
        let journal = |sizes: &[Option<&str>]| {
            let mut text = raidlab_study::default_study().to_string();
            sizes.iter().for_each(|size| text.push_str(&layout(*size)));
            let study = raidlab_study::parse(&text, "study.toml").expect("a study");
            Sizes::of(&study).expect("sizes").extra(&study).journal
        };
        let (small, large, none) = (Some("8MiB"), Some("64MiB"), None);
        assert_eq!(journal(&[none]), None);
        assert!(journal(&[small]) < journal(&[large]) && journal(&[large]) >= Some(64 << 20));
        for sizes in [[none, small, large], [small, large, none], [large, small, none]] {
            assert_eq!(journal(&sizes), journal(&[large]), "{sizes:?}");
        }
    }

    #[test]
    fn files_that_are_too_small_are_told_with_the_line() {
        let study = study(&[("model = \"nas-8tb-7200\"", "file = \"256KiB\"")]);
        let error = Sizes::of(&study).expect_err("no sizes").to_string();
        assert!(error.starts_with("study.toml:"), "{error}");
        assert!(error.contains("layouts.members: member 0 has room for 256KiB only"), "{error}");
    }
}
