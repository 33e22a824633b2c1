//! What modelled results say besides their cells, and what a cell of a modelled study depends on.

use raidlab_core::Nanos;
use raidlab_models::Status;
use raidlab_predict::{Conditions, Modelled};
use raidlab_results::trust::{Traits, Trust};
use raidlab_sim::HostCosts;
use raidlab_study::{Runner, Sample, Study, cells, parse};
use raidlab_workload::Setting;

fn study(head: &str, layouts: &str, workloads: &str) -> Study {
    let text = format!(
        "title = \"t\"\n{head}\n\
         drives = [{{ name = \"d\", model = \"nas-8tb-7200\", count = 4 }},\n\
                   {{ name = \"f\", model = \"ssd-nvme4-2tb\", count = 3 }}]\n\
         layouts = [{layouts}]\nworkloads = [{workloads}]\n"
    );
    parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn modelled(study: &Study) -> Modelled<'_> {
    Modelled::new(study, HostCosts::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn sample(study: &Study, cell: usize, seed: u64) -> Sample {
    let key = cells(study).swap_remove(cell);
    modelled(study).run(&key, 0, seed).unwrap_or_else(|error| panic!("{error}"))
}

const MIRROR: &str = "{ level = \"raid1\", members = 2, drives = \"d\" }";
const STRIPE: &str = "{ level = \"raid0\", members = 4, chunk = \"64KiB\", drives = \"d\" }";
const PARITY: &str = "level = \"raid5\", members = 4, drives = \"d\"";
const READ: &str = "{ kind = \"dd-read\", size = \"6MiB\" }";

#[test]
fn documents_say_which_drives_there_were_and_whence_their_figures_are() {
    let study = study("", MIRROR, READ);
    let modelled = modelled(&study);
    let said = Conditions::of(&modelled);
    assert_eq!(
        said.host["drives d"],
        "4 x 8 TB 7,200 rpm NAS drive (Ultrastar 7K8 class) (nas-8tb-7200)"
    );
    assert!(
        said.host["drives f"].starts_with("3 x ")
            && said.host["drives f"].ends_with("(ssd-nvme4-2tb)")
    );
    for drive in modelled.drives() {
        let count =
            |status: Status| drive.figures.iter().filter(|one| one.status == status).count();
        let [sheet, measured, estimates] =
            [Status::DataSheet, Status::Measured, Status::Estimate].map(count);
        assert_eq!(sheet + measured + estimates, drive.figures.len());
        let is = format!("{sheet} data sheet, {measured} measured, {estimates} estimate");
        assert_eq!(said.settings[&format!("figures of {}", drive.name)], is);
    }
    assert_eq!(said.capacities.len(), 1);
    let cpu = |request, parity_rate| {
        let costs = HostCosts { request: Nanos(request), parity_rate };
        let modelled = Modelled::new(&study, costs).expect("modelled");
        Conditions::of(&modelled).host["modelled cpu"].clone()
    };
    assert_eq!(cpu(2_500, 4_500_000_000), "2.5 us a request, parity of 4.5 GB/s");
    assert_eq!(cpu(0, u64::MAX), "requests and parity take no time");
}

#[test]
fn documents_say_how_far_off_hosts_like_theirs_are() {
    let groups = &Trust::recorded().groups;
    let name = |filesystem| {
        let traits = Traits { filesystem: Some(filesystem), ..Traits::default() };
        &*groups.iter().find(|one| one.traits == traits).expect("a group").name
    };
    let said = |head: &str| {
        let study = study(head, MIRROR, READ);
        let conditions = Conditions::of(&modelled(&study));
        (conditions.warnings[1].clone(), conditions.settings["target"].clone())
    };
    let (raw, target) = said("host = { kernel = \"linux-6.12\" }");
    let (on_files, host) = said(
        "filesystem = \"native\"\nhost = { kernel = \"linux-6.12\", memory = \"2GiB\", cache = \"1GiB\" }",
    );
    let place = |text: &str, filesystem| text.find(name(filesystem)).expect("the group is named");
    assert!(place(&raw, false) < place(&raw, true), "its own group comes first: {raw}");
    assert!(place(&on_files, true) < place(&on_files, false), "{on_files}");
    assert!(target.starts_with("raw: "), "{target}");
    assert!(host.ends_with("a page cache of 1GiB"), "{host}");
    let (_, host) =
        said("filesystem = \"native\"\nhost = { kernel = \"linux-6.12\", memory = \"2GiB\" }");
    assert!(host.ends_with("a page cache of 2GiB"), "all memory unless said: {host}");
    let (none, _) = said("");
    assert!(none.starts_with("not checked against a kernel"), "{none}");
}

/// Each drive stands at an angle of its own, drawn from the seed of the run.
#[test]
fn each_drive_and_each_seed_has_its_own_angle() {
    let study = study("", STRIPE, READ);
    let busy = |seed| {
        let busy = sample(&study, 0, seed).detail.busy;
        let members = busy.into_iter().filter(|(name, _)| name.starts_with("member"));
        members.map(|(_, share)| (share * 1e9) as u64).collect::<Vec<_>>()
    };
    let one = busy(1);
    let mut different = one.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!((one.len(), different.len()), (4, 4), "{one:?}");
    assert_eq!(one, busy(1));
    assert_ne!(one, busy(2));
}

/// What members did counts from the begin of what is run, and the CPU of a second run on a world is that of both.
#[test]
fn members_totals_are_those_of_the_run() {
    let study = study("", MIRROR, READ);
    let modelled = modelled(&study);
    let mut world = modelled.world(0, 1).expect("a world");
    let mut run = || {
        let workload = &*study.workloads[0].workload;
        let record = modelled.record_on(&mut world, workload, Setting::new(1, 1));
        record.expect("a run").members.expect("counted").bytes_read
    };
    assert_eq!((run(), run()), (6 << 20, 6 << 20));
}

/// A workload's `read_ahead` takes the place of its host's: the same as a host that has it.
#[test]
fn the_read_ahead_of_a_workload_counts_before_the_host_s() {
    let rate = |host: &str, own: &str| {
        let head = format!(
            "filesystem = \"native\"\nhost = {{ kernel = \"linux-6.12\", read_ahead = \"{host}\" }}"
        );
        let own = if own.is_empty() { String::new() } else { format!(", read_ahead = \"{own}\"") };
        let work = format!("{{ kind = \"dd-read\", size = \"16MiB\", block = \"4KiB\"{own} }}");
        sample(&study(&head, STRIPE, &work), 0, 1).values
    };
    let (short, long) = (rate("4KiB", ""), rate("4MiB", ""));
    assert_ne!(short, long);
    assert_eq!(rate("4KiB", "4MiB"), long);
    assert_eq!(rate("4MiB", "4KiB"), short);
}

/// A layout's own host brings its own processor, and other layouts have the study's.
#[test]
fn the_cpu_of_a_layout_is_that_of_its_host() {
    let host = |processor: &str| {
        format!("host = {{ kernel = \"linux-6.12\", processor = \"{processor}\" }}")
    };
    let (slow, fast) = (host("pentium3-860"), host("xeon-2330-quad"));
    let work = "{ kind = \"dd-write\", size = \"8MiB\" }";
    let cpu =
        |head: &str, layouts: &str, cell| sample(&study(head, layouts, work), cell, 1).system_cpu_s;
    let plain = format!("{{ {PARITY}, name = \"plain\" }}");
    let both = format!("{plain}, {{ {PARITY}, name = \"own\", {slow} }}");
    let (of_slow, of_fast) = (cpu(&slow, &plain, 0), cpu(&fast, &plain, 0));
    assert!(of_slow > of_fast, "{of_slow:?} and {of_fast:?}");
    assert_eq!(cpu(&fast, &both, 0), of_fast);
    assert_eq!(cpu(&fast, &both, 1), of_slow);
}

/// On several cores the CPU that the system used is that of all of them, and of what processes used the whole.
#[test]
fn the_cpu_of_a_system_is_that_of_all_its_cores() {
    let head =
        "processes = [2]\nfilesystem = \"native\"\nhost = { kernel = \"linux-6.12\", cores = 2}";
    let work = "{ kind = \"dd-read\", size = \"64MiB\" }";
    let sample = sample(&study(head, MIRROR, work), 0, 1);
    let (system, own) =
        (sample.system_cpu_s.expect("modelled"), sample.process_cpu_s.expect("modelled"));
    assert!(own > 0.0 && system >= own - 1e-9, "{system} s of which {own} s of processes");
    let cores: Vec<f64> =
        sample.detail.busy.iter().filter(|one| one.0.starts_with("cpu")).map(|one| one.1).collect();
    assert_eq!(cores.len(), 2);
    assert!(cores.iter().all(|share| *share > 0.0), "both work: {cores:?}");
    let elapsed = system / cores.iter().sum::<f64>();
    assert!((elapsed / sample.last_done.as_secs() - 1.0).abs() < 0.05, "{elapsed} s");
}

/// How far a rebuild is rises while it lasts.
#[test]
fn what_is_rebuilt_rises_with_time() {
    let head = "states = [\"rebuilding\"]\nmember_size = \"1GiB\"\npacing = { least = \"1GB/s\", most = \"1GB/s\" }";
    let study = study(head, MIRROR, "{ kind = \"random-read\", size = \"4MiB\" }");
    let loaded = sample(&study, 0, 1);
    let series = loaded.detail.series.expect("a series");
    let done: Vec<u32> = series.bins().iter().filter_map(|bin| bin.rebuilt).collect();
    assert!(done.len() > 3 && done.is_sorted(), "{done:?}");
    assert!(done[0] < done[done.len() - 1], "{done:?}");
}

/// A rebuild alone of a `member_size` runs to its end, however large that is; its CPU and its bottleneck are told.
#[test]
fn a_rebuild_of_a_member_size_ends() {
    let head = "states = [\"rebuilding\"]\nmember_size = \"9GiB\"\npacing = { least = \"9GB/s\", most = \"9GB/s\" }";
    let flash = "{ level = \"raid5\", members = 3, chunk = \"4MiB\", drives = \"f\" }";
    let study = study(head, flash, "{ kind = \"random-read\", size = \"64KiB\" }");
    let alone = cells(&study).len() - 1;
    let sample = sample(&study, alone, 1);
    let rebuild = sample.rebuild.expect("a rebuild");
    assert_eq!(rebuild.done.to_bits(), 1.0_f64.to_bits());
    assert_eq!(sample.values, [Some(rebuild.elapsed.as_secs())]);
    assert!(sample.system_cpu_s.is_some_and(|used| used > 0.0));
    let most = sample.detail.busy.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    assert_eq!(sample.bottleneck, most);
}

/// What of a run's warnings is about the drives' caches.
fn of_caches(drive: &str, workload: &str) -> Vec<String> {
    let text = format!(
        "title = \"t\"\nprocesses = [16]\ndrives = [{{ name = \"d\", model = \"{drive}\", count = 4 }}]\n\
         layouts = [{{ level = \"raid0\", members = 2 }}]\nworkloads = [{{ {workload} }}]\n"
    );
    let study = parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
    sample(&study, 0, 1).warnings
}

/// 16 processes write 4 MiB each, 32 MiB for each of two members: a write buffer, which capacitors save.
#[test]
fn what_fits_the_write_buffers_of_ssds_is_said() {
    let write = |size: &str| format!("kind = \"random-write\", size = \"{size}\"");
    let said = of_caches("ssd-nvme4-2tb-dc", &write("4MiB"));
    let [said] = &said[..] else { panic!("{said:?}") };
    let start = "each member wrote 32 MiB, and the write buffer of ssd-nvme4-2tb-dc holds 32 MiB: ";
    assert!(said.starts_with(start) && said.contains(" 96 MiB, or more"), "{said}");
    let none: [String; 0] = [];
    assert_eq!(of_caches("ssd-nvme4-2tb-dc", &write("12MiB")), none, "three times as much");
    assert_eq!(of_caches("ssd-nvme4-2tb-dc", "kind = \"random-read\", size = \"1MiB\""), none);
    // The flush at its end waits for the flash, which the figure has in it.
    assert_eq!(of_caches("ssd-nvme4-2tb", &write("1MiB")), none);
    // A write at a time, each flushed: the flash has time for all of it, however often it is written again.
    let slow = "kind = \"fio\", rw = \"randwrite\", bs = \"4k\", size = \"1g\", number_ios = 20, fsync = 1, \
                thinktime = 1000";
    assert_eq!(of_caches("ssd-nvme4-2tb-dc", slow), none);
    assert_eq!(of_caches("nas-8tb-7200", &write("64KiB")), none, "no SSD");
}

#[test]
fn what_fits_the_media_caches_of_shingled_drives_is_said() {
    let said = of_caches("smr-8tb-5400", "kind = \"random-write\", size = \"256KiB\"");
    let [said] = &said[..] else { panic!("{said:?}") };
    let start = "each member wrote 2 MiB, and writes out of order go to the media cache of smr-8tb-5400, a shingled \
                 drive, which had room for them (25 GiB, 250000 writes): beyond that they wait until zones of 32 MiB";
    assert!(said.starts_with(start), "{said}");
    let none: [String; 0] = [];
    assert_eq!(of_caches("smr-8tb-5400", "kind = \"random-read\", size = \"64KiB\""), none);
}

/// One member is left, which wrote all of it; what a rebuild writes is nobody's work.
#[test]
fn members_that_are_lost_and_rebuilds_wrote_nothing() {
    let said = |state: &str| {
        let head = format!("processes = [16]\nstates = [\"{state}\"]\nmember_size = \"1GiB\"");
        let drives = "drives = [{ name = \"d\", model = \"ssd-nvme4-2tb-dc\", count = 2 }]";
        let text = format!(
            "title = \"t\"\n{head}\n{drives}\nlayouts = [{{ level = \"raid1\", members = 2 }}]\n\
             workloads = [{{ kind = \"random-write\", size = \"1MiB\" }}]\n"
        );
        let study = parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
        let told = sample(&study, 0, 1).warnings;
        let told: Vec<&String> =
            told.iter().filter(|one| one.starts_with("each member wrote")).collect();
        told.first().map(|one| one.split(',').next().unwrap_or_default().to_owned())
    };
    for state in ["healthy", "degraded"] {
        assert_eq!(said(state).as_deref(), Some("each member wrote 16 MiB"), "{state}");
    }
    // What the rebuild has begun and not done is not told apart.
    assert_eq!(said("rebuilding").as_deref(), Some("each member wrote 17 MiB"));
}

/// Five drives are simulated where four are members and the journal has one of its own.
#[test]
fn a_journals_own_drive_is_counted() {
    let said = |members: u16| {
        let journal = format!(
            "{{ level = \"raid5\", members = {members}, drives = \"d\", consistency = \"journal\" }}"
        );
        let study = study("", &journal, READ);
        Conditions::of(&modelled(&study)).host["drives d"].clone()
    };
    let title = "4 x 8 TB 7,200 rpm NAS drive (Ultrastar 7K8 class) (nas-8tb-7200)";
    let more = said(4);
    assert!(
        more.starts_with(&format!("{title}, and one more for the journal of raid5(4)")),
        "{more}"
    );
    assert_eq!(said(3), title, "one of the four is the journal's");
}
