//! How large arrays on member files and their members are.

use raidlab_core::consistency::MetaArea;
use raidlab_core::{Config, ConfigError, Layout, SECTOR_BYTES, Sectors, Volume};
use raidlab_study::{
    DriveSource, NamedLayout, State, Study, StudyError, StudyErrorKind, filesystem_room,
};
use raidlab_targets::{Extra, Filesystem, RawTarget};
use raidlab_workload::Setting;

use crate::format::MemberFormat;

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
    /// What members carry besides data, by layout.
    pub formats: Vec<MemberFormat>,
}

impl Sizes {
    /// Files besides the members.
    pub fn extra(&self, study: &Study) -> Extra {
        let is_sound = study.states.iter().all(|state| *state == State::Healthy);
        let journals = study.layouts.iter().zip(&self.formats).filter_map(|(named, format)| {
            format.log_sectors(named.settings.consistency).map(Sectors::bytes)
        });
        Extra { spare: (!is_sound).then_some(self.file), journal: journals.max() }
    }

    /// Sectors of members with which modelled arrays, whose log and metadata lie behind the data, have the same
    /// capacities, by layout.
    ///
    /// # Errors
    /// When a layout is impossible.
    pub fn modelled(&self, study: &Study) -> Result<Vec<Sectors>, ConfigError> {
        let all = study.layouts.iter().zip(&self.formats).zip(&self.members);
        all.map(|((named, format), member)| match format {
            MemberFormat::Own(_) | MemberFormat::Nothing(_) => Ok(*member),
            MemberFormat::Md(members) => {
                let data = in_blocks(members.data);
                let behind = |member| -> Result<Sectors, ConfigError> {
                    let config = config(named, member);
                    let volume = Volume::new(&config)?;
                    Ok(MetaArea::of_volume(&volume, &config).sectors())
                };
                // How much a bitmap takes depends on how large the member is.
                Ok(data + behind(data + behind(data)?)?)
            }
        })
        .collect()
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
        let mut sizes = Self {
            file: 0,
            given: false,
            members: Vec::new(),
            capacities: Vec::new(),
            formats: Vec::new(),
        };
        for (index, named) in study.layouts.iter().enumerate() {
            let impossible = |error: ConfigError| {
                let place = ("layouts", index, error.key);
                study.origin.error(StudyErrorKind::ImpossibleLayout, place, error.reason)
            };
            let member = match smallest_file(study, named) {
                Some(size) => {
                    sizes.given = true;
                    size
                }
                None => least_member(needed, named, MemberFormat::of).map_err(impossible)?,
            };
            let member = match (study.member_size, on_devices) {
                (Some(size), true) => size,
                (Some(most), false) => most.min(member),
                (None, _) => member,
            };
            let format = MemberFormat::of(named, member);
            let capacity = capacity(named, member, &format).map_err(impossible)?;
            sizes.formats.push(format);
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

/// The smallest size that a group of files which a layout has members of gives, as arrays use of each member what the
/// smallest has. `None` where all of them leave it open.
fn smallest_file(study: &Study, named: &NamedLayout) -> Option<Sectors> {
    let size = |place: u16| match study.drives[named.group(place.into())].source {
        DriveSource::File(size) => Some(Sectors(size.0 / SECTOR_BYTES)),
        DriveSource::Model(_) => None,
    };
    (0..named.layout.drives()).filter_map(size).min()
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

fn config(named: &NamedLayout, member: Sectors) -> Config {
    let mut config = Config::uniform(named.layout.clone(), member);
    (config.settings, config.read_policy) = (named.settings, named.read_policy);
    config
}

/// What is used of so many sectors: whole blocks.
fn in_blocks(sectors: Sectors) -> Sectors {
    let block = u64::from(BLOCK);
    Sectors(sectors.0 / block * block)
}

/// The capacity over members of this size, with what they carry besides data.
fn capacity(
    named: &NamedLayout,
    member: Sectors,
    format: &MemberFormat,
) -> Result<Sectors, ConfigError> {
    let mut config = config(named, member);
    let volume = Volume::new(&config)?;
    let data = match format {
        MemberFormat::Nothing(_) => return Ok(volume.capacity()),
        MemberFormat::Md(members) => Some(in_blocks(members.data)),
        MemberFormat::Own(_) => MetaArea::of_volume(&volume, &config).data(member, BLOCK),
    };
    let Some(data) = data else { return Ok(Sectors::ZERO) };
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
                Some(_) => {
                    let least = |layout| {
                        let filesystem =
                            study.filesystem_of(layout).and_then(Filesystem::from_name);
                        filesystem.map_or(0, Filesystem::least_bytes)
                    };
                    let least = (0..study.layouts.len()).map(least).max().unwrap_or(0);
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

/// The smallest member, in whole MiB and chunks, with which the array holds `needed` bytes, where members carry nothing
/// but data.
///
/// # Errors
/// When there can be no such array.
pub fn member_for(named: &NamedLayout, needed: u64) -> Result<Sectors, ConfigError> {
    least_member(needed, named, |_, _| MemberFormat::Nothing(String::new()))
}

/// The same with what members of a size carry besides.
fn least_member(
    needed: u64,
    named: &NamedLayout,
    format: impl Fn(&NamedLayout, Sectors) -> MemberFormat,
) -> Result<Sectors, ConfigError> {
    let chunk = named.layout.floors().map(|floor| floor.chunk.bytes()).max().unwrap_or(0);
    let step = ROUND.max(chunk).next_multiple_of(ROUND) / SECTOR_BYTES;
    let is_enough = |steps: u64| {
        let member = Sectors(steps * step);
        capacity(named, member, &format(named, member)).map(|all| all.bytes() >= needed)
    };
    let (mut low, mut high) = (0, needed / SECTOR_BYTES / step + 1);
    // What lies beside the data comes on top: a gigabyte at most, and a share of the member.
    for _ in 0..32 {
        if is_enough(high)? {
            break;
        }
        (low, high) = (high, 2 * high);
    }
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if is_enough(middle)? { high = middle } else { low = middle }
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
                let less = super::capacity(named, smaller, &MemberFormat::of(named, smaller));
                let less = less.expect("possible");
                assert!(less.bytes() < needed, "{} is larger than it must be", named.name);
            }
        }
    }

    /// For the largest workload with the most processes, wherever they stand, and at least 64 MiB.
    #[test]
    fn arrays_hold_the_largest_workload_of_most_processes() {
        let member = |processes: &str, sizes: [u32; 2]| {
            let workloads = sizes.map(|mib| {
                format!("{{ kind = \"dd-read\", name = \"{mib}\", size = \"{mib}MiB\", block = \"1MiB\" }}")
            });
            let text = format!(
                "title = \"t\"\nprocesses = [{processes}]\nworkloads = [{}]\n\
                 drives = [{{ name = \"d\", model = \"nas-8tb-7200\", count = 1 }}]\n\
                 layouts = [{{ level = \"single\" }}]\n",
                workloads.join(", ")
            );
            let study = raidlab_study::parse(&text, "study.toml").expect("a study");
            Sizes::of(&study).expect("sizes").members[0].bytes() >> 20
        };
        // A file may be put off its place by a block.
        for (processes, sizes) in [("1, 4", [50, 5]), ("4, 1", [5, 50]), ("2, 4, 3", [50, 7])] {
            let mib = member(processes, sizes);
            assert!((200..=204).contains(&mib), "{processes} {sizes:?}: {mib}");
        }
        assert_eq!(member("1, 2", [1, 2]), 64);
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

    /// The study's groups of files: 8 GiB and 2 GiB.
    #[test]
    fn arrays_use_what_the_smallest_member_has() {
        let text = raidlab_study::default_study().to_string()
            + "\n[[drives]]\nname = \"large\"\nfile = \"8GiB\"\ncount = 2\n\
               [[drives]]\nname = \"small\"\nfile = \"2GiB\"\ncount = 1\n\
               [[layouts]]\nlevel = \"raid1\"\nmembers = 2\nname = \"unequal\"\n\
               drives = [\"large\", \"small\"]\n\
               [[layouts]]\nlevel = \"raid1\"\nmembers = 2\nname = \"equal\"\ndrives = \"large\"\n";
        let text = text.replace("4GiB", "6MiB");
        let study = raidlab_study::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
        for sizes in [Sizes::of(&study), Sizes::on_devices(&study)] {
            let members = sizes.expect("sizes").members;
            assert_eq!(members[members.len() - 2..], [Sectors(4 << 20), Sectors(16 << 20)]);
        }
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
        let member = |more: &str| {
            least_member(needed, &named(more), MemberFormat::of).expect("possible").bytes()
        };
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
            let format = MemberFormat::of(&named, size);
            assert!(format.is_md(), "{mode}: {format}");
            let less = capacity(&named, size, &format).expect("possible");
            assert!(
                less.bytes() < 3 * (64 << 20) && less.bytes() > 3 * (40 << 20),
                "{mode}: {less:?}"
            );
        }
        let plain = MemberFormat::of(&named(""), Sectors(64 << 11));
        assert_eq!(
            capacity(&named(""), Sectors(64 << 11), &plain).expect("possible").bytes(),
            3 * (64 << 20),
            "{plain}"
        );
    }

    /// Modelled arrays keep their records behind the data, real ones as md does: both are as large.
    #[test]
    fn modelled_arrays_are_as_large_as_real_ones() {
        let layouts = ["none", "resync", "bitmap", "ppl", "journal"]
            .map(|mode| format!("level = \"raid5\", members = 4, consistency = \"{mode}\""));
        let others = [
            "level = \"raid0\", members = 3, chunk = \"64KiB\"",
            "level = \"linear\", members = 2",
            "level = \"raid1\", members = 2, consistency = \"bitmap\", bitmap_chunk = \"64KiB\"",
            "level = \"raid10\", members = 5, consistency = \"bitmap\", bitmap_chunk = \"64KiB\"",
        ];
        for layout in layouts.iter().map(String::as_str).chain(others) {
            let text = format!(
                "title = \"t\"\nmember_size = \"700MiB\"\n\
                 drives = [{{ name = \"d\", model = \"nas-8tb-7200\", count = 5 }}]\n\
                 layouts = [{{ {layout} }}]\nworkloads = [{{ kind = \"dd-read\", size = \"1MiB\" }}]\n"
            );
            let study = raidlab_study::parse(&text, "study.toml").expect(layout);
            let sizes = Sizes::on_devices(&study).expect(layout);
            let modelled = sizes.modelled(&study).expect(layout)[0];
            let config = config(&study.layouts[0], modelled);
            let area = MetaArea::of_volume(&Volume::new(&config).expect(layout), &config);
            let data = if area.used { area.data(modelled, BLOCK).expect(layout) } else { modelled };
            let array = Volume::new(&super::config(&study.layouts[0], data)).expect(layout);
            assert_eq!(array.capacity(), sizes.capacities[0], "{layout}: {}", sizes.formats[0]);
        }
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
