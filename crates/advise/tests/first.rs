//! What is said first, and how surely: the question itself, before a recommendation.

use raidlab_advise::{
    Advice, Among, InTurn, Lean, Objective, Profile, Software, Wanted, advise, candidates, checks,
    commands_of, first, in_words, warnings,
};
use raidlab_core::Sectors;

const TB: u64 = 1_000_000_000_000;

fn wanted(drives: u16, drive: &str, work: &str, among: &[&str]) -> Wanted {
    let drive = raidlab_models::load(drive).expect("compiled in");
    let mut wanted = Wanted::new(drives..=drives, drive, Profile::named(work).expect("there"));
    let named = |name: &&str| match name.parse() {
        Ok(level) => Among::Level(level),
        Err(_) => Among::Layout(name.parse().expect("a layout")),
    };
    wanted.among = among.iter().map(named).collect();
    wanted.chunks = vec![Sectors(1024)];
    wanted.requests = 600;
    wanted
}

fn advised(wanted: &Wanted) -> Advice {
    advise(wanted, &InTurn).unwrap_or_else(|error| panic!("{error:?}"))
}

fn said_first(wanted: &Wanted) -> String {
    first(wanted, &advised(wanted)).join("\n")
}

/// Speed, p99, space, drives for the same space, risk, what is survived: of what was named, with figures.
#[test]
fn what_is_named_is_compared_before_anything_else() {
    let mut asked = wanted(8, "dc-6tb-7200", "vm", &["raid6", "raid10"]);
    asked.spares = 0;
    let told = said_first(&asked);
    for part in [
        "against raid6(8): ",
        " I/O/s); p99 with a drive missing ",
        " % less space (24.0 TB against 36.0 TB); raid6(6) has 24.0 TB with 2 drives fewer",
        "times as often (1 in ",
        "against less than 1 in 100,000)",
        "raid6(8) always; of 3 drives that fail at once: raid10(8) 4 times in 7, raid6(8) never",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // Nobody named anything, and there are many: the table is the answer.
    assert_eq!(said_first(&wanted(4, "nas-8tb-7200", "nas", &[])), "");
}

/// A spare is compared where it gives the space of the other: what people mean by "raid5 and a spare, or raid6".
#[test]
fn a_spare_is_compared_with_what_gives_the_same_space() {
    let told = said_first(&wanted(6, "nas-8tb-7200", "surveillance", &["raid5", "raid6"]));
    assert!(
        told.contains("raid6(6) against raid5(5) + spare: both keep up; the same space"),
        "{told}"
    );
    assert!(!told.contains("raid6(5) + spare"), "{told}");
    assert!(told.starts_with("raid6(6) keeps up with 16 streams of together 8.0 MB/s"), "{told}");
}

#[test]
fn a_verdict_has_grades() {
    let asked = wanted(4, "nas-8tb-7200", "nas", &["raid5(4)", "raid6(4)"]);
    let mut advice = advised(&asked);
    advice.front = vec![0, 1];
    for (sure, lean) in [
        (0.51, Lean::TossUp),
        (0.60, Lean::TossUp),
        (0.61, Lean::Leaning),
        (0.79, Lean::Leaning),
        (0.80, Lean::Probably),
        (0.94, Lean::Probably),
        (0.95, Lean::Plain),
    ] {
        advice.verdict.sure = sure;
        assert_eq!(advice.lean(), lean, "{sure}");
    }
    // Of a toss-up there is no single command; of a lean there is.
    let made = |advice: &Advice| {
        let all = commands_of(&asked, advice).into_iter();
        all.filter(|line| line.starts_with("mdadm")).count()
    };
    advice.verdict.sure = 0.52;
    assert_eq!(made(&advice), 2);
    advice.verdict.sure = 0.7;
    assert_eq!(made(&advice), 1);
    // Whom another dominates is no rival.
    advice.front = vec![0];
    assert_eq!(advice.lean(), Lean::Plain);
}

#[test]
fn who_has_zfs_is_told_first_what_md_s_figures_are_not() {
    let mut asked = wanted(4, "nas-8tb-7200", "vm", &["raid10(4)", "raid6(4)"]);
    asked.software = Software::Zfs;
    let advice = advised(&asked);
    let told = first(&asked, &advice);
    assert!(told[0].starts_with("In ZFS each block that is read takes all drives"), "{told:?}");
    assert!(told[0].contains("take mirrors"), "{told:?}");
    let commands = commands_of(&asked, &advice).join("\n");
    assert!(commands.contains("zpool create") && !commands.contains("mdadm"), "{commands}");
    // No write hole, and no copies that ZFS does not have.
    assert!(!warnings(&asked, &advice).join("\n").contains("write hole"));
    assert!(checks(&asked, &advice).join("\n").contains("zpool scrub"));
    asked.among = Vec::new();
    let all = candidates(&asked);
    assert!(all.all.iter().all(|one| one.layout.far == 1));
    assert!(all.dropped.iter().any(|one| one.reason == "have no counterpart in ZFS"));
}

#[test]
fn growing_is_answered_first() {
    let mut asked = wanted(2, "nas-4tb-5400", "nas", &["raid1"]);
    asked.later = Some(3);
    let advice = advised(&asked);
    let told = first(&asked, &advice);
    assert!(
        told[0].starts_with("Yes, raid1(2) grows to 3 drives with md, all of them"),
        "{told:?}"
    );
    // It has parity then, whatever it has now.
    let told = warnings(&asked, &advice).join("\n");
    assert!(told.contains("Once it is raid5(3) it has parity"), "{told}");
    asked.software = Software::Zfs;
    asked.drives = 3..=3;
    asked.later = Some(6);
    asked.among = vec![Among::Level(raidlab_core::Level::Raid5)];
    let told = said_first(&asked);
    assert!(
        told.contains("widened by one drive after the other") && told.contains("raid5(6) 83 %"),
        "{told}"
    );
}

#[test]
fn the_space_of_unequal_drives_is_explained() {
    let mut asked = wanted(4, "nas-8tb-7200", "nas", &["raid5"]);
    asked.spares = 0;
    asked.sizes = [4, 4, 8, 8].map(|size| Sectors(size * TB / 512)).to_vec();
    let told = said_first(&asked);
    for part in [
        "raid5(4) has 12.0 TB: 24.0 TB of drives, less 8.0 TB beyond the smallest one, less 4.0 TB of parity",
        "raid1(2) over the rest of the larger drives, adds 4.0 TB",
        "(2 x 4.0 TB, 2 x 8.0 TB), joined by LVM or --level=linear, have 12.0 TB, as much",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn a_bad_batch_is_told_of() {
    let asked = wanted(4, "nas-8tb-7200", "nas", &["raid5(4)", "raid6(4)"]);
    let advice = advised(&asked);
    for (one, batch) in advice.finalists.iter().zip(&advice.batches) {
        let name = &one.candidate;
        assert!(batch.bad > 10.0 * one.risk, "{name}: {batch:?} {}", one.risk);
        assert!(batch.mixed < 1.2 * one.risk.max(1e-5), "{name}: {batch:?} {}", one.risk);
    }
    let told = warnings(&asked, &advice).join("\n");
    assert!(
        told.contains("with drives of mixed batches") && told.contains("of a bad one (10 times")
    );
}

/// Half a gigabyte a second for a third of the time is more than what such a drive holds in a day.
#[test]
fn what_ssds_are_written_is_told_in_what_they_hold() {
    let mut asked = wanted(4, "ssd-sata-1tb", "capture", &["raid0(4)"]);
    asked.limits.survive = 0;
    let advice = advised(&asked);
    let told = warnings(&asked, &advice).join("\n");
    let wear = told.lines().find(|line| line.starts_with("Wear: ")).expect("is told");
    let times: f64 = wear
        .split(" times what it holds")
        .next()
        .and_then(|head| head.rsplit(' ').next()?.parse().ok())
        .expect("a number");
    // The rate of the array, shared out, for 30 % of a day.
    let rate = advice.finalists[0].median(|run| run.speed(&asked, raidlab_study::State::Healthy));
    let each = rate.expect("a rate") / 4.0 * 0.3 * 86_400.0 / 1e12;
    assert!((times / each - 1.0).abs() < 0.1 && times > 5.0, "{times} {each}");
    assert!(told.contains("no protection against power loss"), "{told}");
    assert!(!checks(&asked, &advice).join("\n").contains("monthly"));
    // Recorders never stop: what hard disks are rated for a year.
    let asked = wanted(4, "nas-8tb-7200", "surveillance", &["raid1(4)"]);
    let told = warnings(&asked, &advised(&asked)).join("\n");
    assert!(told.contains("yearly workload of its sheet"), "{told}");
}

#[test]
fn parity_of_what_is_written_in_order_is_explained() {
    let mut asked = wanted(4, "nas-8tb-7200", "capture", &["raid0(4)", "raid5(4)"]);
    asked.limits.survive = 0;
    let told = said_first(&asked);
    assert!(told.contains("raid5(4) gives up 1 drive of 4 for surviving as many"), "{told}");
}

#[test]
fn single_parity_over_much_names_double_parity() {
    let named = |drives: u16, drive: &str, among: &str| {
        let mut asked = wanted(drives, drive, "nas", &[among]);
        asked.spares = 0;
        warnings(&asked, &advised(&asked)).join("\n").contains("on the same")
    };
    assert!(named(4, "nas-8tb-7200", "raid5") && named(7, "nas-4tb-5400", "raid5"));
    assert!(!named(4, "nas-4tb-5400", "raid5") && !named(4, "nas-8tb-7200", "raid6"));
}

#[test]
fn a_system_boots_from_either_drive() {
    let asked = wanted(2, "ssd-sata-960gb-dc", "boot", &["raid1(2)"]);
    let advice = advised(&asked);
    let checks = checks(&asked, &advice).join("\n");
    assert!(
        checks.contains("EFI system partition") && checks.contains("--metadata=1.0"),
        "{checks}"
    );
    assert!(commands_of(&asked, &advice)[0].ends_with("<2 partitions>"));
    let told = first(&asked, &advice).join("\n");
    assert!(told.contains("1 stream of 0.1 MB/s") && told.contains("of mixed batches"), "{told}");
}

#[test]
fn named_chunks_all_have_figures() {
    let mut asked = wanted(2, "ssd-nvme4-2tb-dc", "database", &["raid0(2)"]);
    asked.limits.survive = 0;
    asked.chunks = [8, 128, 1024].map(Sectors).to_vec();
    let advice = advised(&asked);
    assert_eq!(advice.variants.len(), 2, "{:?}", advice.variants);
}

#[test]
fn work_of_parts_tells_who_is_best_at_each() {
    let asked = wanted(4, "nas-8tb-7200", "backup", &["raid6(4)", "raid10(4)"]);
    let advice = advised(&asked);
    for when in ["if writing counts most", "if verifying counts most"] {
        assert!(advice.changes.iter().any(|one| one.when == when), "{:?}", advice.changes);
    }
    let [one, other] = &advice.finalists[..] else { panic!("two of them") };
    let told = in_words(&asked, Objective::Speed, one, other);
    assert!(told.contains("writing ") && told.contains(" and verifying "), "{told}");
}
