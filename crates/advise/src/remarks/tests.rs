//! Warnings, checks and commands by rule.

use raidlab_core::Sectors;

use super::*;
use crate::made_up;

fn candidate(layout: &str, spares: u16, mode: Mode) -> Candidate {
    Candidate { layout: layout.parse().expect("a layout"), spares, mode }
}

#[test]
fn commands_are_mdadm_s() {
    let of = |layout: &str, spares, mode| {
        commands(&candidate(layout, spares, Mode::None), mode)[0].clone()
    };
    assert_eq!(
        of("raid6(5) chunk=64K", 1, Mode::Bitmap),
        "mdadm --create /dev/md0 --level=6 --raid-devices=5 --chunk=64K --bitmap=internal --spare-devices=1 \
         <6 drives>"
    );
    assert!(
        of("raid10(4) far2", 0, Mode::Bitmap)
            .contains("--level=10 --raid-devices=4 --chunk=512K --layout=f2")
    );
    assert!(of("raid10(4) offset2", 0, Mode::Bitmap).contains("--layout=o2"));
    assert!(of("raid5(4)", 0, Mode::PartialParity).contains("--consistency-policy=ppl"));
    assert!(
        of("raid1(2)", 0, Mode::Bitmap).contains("--raid-devices=2 --bitmap=internal <2 drives>")
    );
    assert!(of("raid1(2)", 0, Mode::None).contains("--bitmap=none"));
    assert!(!of("raid0(2)", 0, Mode::None).contains("bitmap"));
    let nested = commands(&candidate("raid5+0(2x3)", 0, Mode::None), Mode::Bitmap);
    assert_eq!(nested.len(), 3);
    assert!(nested[0].contains("--bitmap=internal"));
    assert!(
        nested[2].ends_with("--level=0 --raid-devices=2 --chunk=512K /dev/md1 /dev/md2"),
        "{}",
        nested[2]
    );
}

#[test]
fn growing_is_told_as_it_is() {
    let told = |layout: &str, years: f64| {
        let growth = Growth::Reshape {
            layout: layout.parse().expect("a layout"),
            usable: 8_000_000_000_000,
            hours: (10.0, 100.0),
            risk: 1e-3,
            then: 1e-2,
            commands: vec!["mdadm".to_owned()],
        };
        growth_in_words("it", &growth, years)
    };
    let (bare, kept) = (told("raid0(5)", 2.5), told("raid5(5)", 0.4));
    assert!(
        bare.contains("It stays usable; losing it meanwhile") && !bare.contains("redundant"),
        "{bare}"
    );
    assert!(bare.contains("losing raid0(5) in 2.5 years: "), "{bare}");
    assert!(kept.contains("It stays redundant and usable; losing it meanwhile"), "{kept}");
    assert!(kept.contains("losing raid5(5) in 0.4 years: "), "{kept}");
    let years = [1.0, 5.0, 0.1 * 3.0].map(years_in_words);
    assert_eq!(years, ["1 year", "5 years", "0.3 years"]);
}

/// Nothing is left over: each spare is some array's, and mdadm is told to lend it.
#[test]
fn all_spares_of_nested_arrays_are_made() {
    for (layout, spares, each) in [
        ("raid5+0(2x3)", 1, &[1, 0][..]),
        ("raid5+0(2x3)", 3, &[2, 1]),
        ("raid6+0(3x4)", 2, &[1, 1, 0]),
        ("raid6+0(3x4)", 7, &[3, 2, 2]),
    ] {
        let one = candidate(layout, spares, Mode::None);
        let told = commands(&one, Mode::Bitmap);
        let drives = |line: &String| -> Option<u16> {
            line.rsplit_once('<')?.1.strip_suffix(" drives>")?.parse().ok()
        };
        assert_eq!(told.iter().filter_map(drives).sum::<u16>(), one.drives(), "{told:?}");
        for (line, spares) in told.iter().zip(each) {
            let flag = format!("--spare-devices={spares} ");
            assert_eq!(line.contains(&flag), *spares > 0, "{line}");
        }
        assert!(told.iter().any(|line| line.contains("spare-group=md0")), "{told:?}");
        assert!(told.iter().any(|line| line.starts_with("mdadm --monitor")), "{told:?}");
    }
    let none = commands(&candidate("raid5+0(2x3)", 0, Mode::None), Mode::Bitmap);
    assert!(!none.iter().any(|line| line.contains("spare")), "{none:?}");
}

/// A flag is a decision: where no bitmap was compared there is none, and a line says so.
#[test]
fn nothing_is_decided_of_bitmaps_that_were_not_compared() {
    let wanted = made_up::wanted(6, "nas-8tb-7200", "vm");
    let of = |names: [&str; 2], sure: f64| {
        let all = names.map(|one| made_up::finalist(&wanted, one, &[1], [Some(1), Some(1)]));
        let mut advice = made_up::advice(all.to_vec());
        advice.verdict.sure = sure;
        commands_of(&wanted, &advice)
    };
    let nested = of(["raid5+0(2x3)", "raid6(6)"], 0.99);
    assert_eq!(nested[0], UNMEASURED);
    assert!(!nested.join("\n").contains("--bitmap"), "{nested:?}");
    let both = of(["raid10(6)", "raid6(6)"], 0.5);
    let second = both.iter().position(|line| line == "# or raid6(6)").expect("a toss-up");
    assert!(both[..second].join("\n").contains("--bitmap=none"), "{both:?}");
    assert_eq!(both[second + 1], UNMEASURED);
    assert!(!both[second..].join("\n").contains("--bitmap"), "{both:?}");
    let bare = of(["raid0(6)", "raid6(6)"], 0.99);
    assert!(bare[0].starts_with("mdadm --create"), "{bare:?}");
}

/// Of single parity over more than six members or over drives of 8 TB, and of nothing else.
#[test]
fn double_parity_is_named_where_single_has_much_to_lose() {
    let told = |drive: &str, layout: &str| {
        let wanted = made_up::wanted(9, drive, "vm");
        let one = made_up::finalist(&wanted, layout, &[1], [Some(1), Some(1)]);
        double_parity(&wanted, &made_up::advice(vec![one]))
    };
    let large = told("nas-8tb-7200", "raid5(4)").expect("8 TB");
    assert!(large.contains("single parity over 4 drives of 8.0 TB"), "{large}");
    assert!(
        large.contains("raid6(4) on the same 4 survives any two, with 16.0 TB instead of 24.0 TB"),
        "{large}"
    );
    let spare = told("nas-8tb-7200", "raid5(4) + spare").expect("8 TB");
    assert!(
        spare.contains("raid6(5) on the same 5 survives any two, with 24.0 TB instead of 24.0 TB"),
        "{spare}"
    );
    assert!(
        told("ssd-sata-1tb", "raid5(7)").is_some() && told("ssd-sata-1tb", "raid5(6)").is_none()
    );
    let wanted = made_up::wanted(4, "nas-8tb-7200", "vm");
    let one = made_up::finalist(&wanted, "raid5(4)", &[1], [Some(1), Some(1)]);
    let at_floor = Finalist { risk: LEAST_RISK / 2.0, ..one };
    let told_of = double_parity(&wanted, &made_up::advice(vec![at_floor]));
    assert_eq!(told_of, None, "other causes dominate");
    for other in ["raid6(8)", "raid4(8)", "raid5+0(2x4)", "raid10(8)", "raid5(3)"] {
        assert_eq!(
            told("nas-8tb-7200", other),
            None,
            "{other}: no raid5 of its own, or too few for raid6"
        );
    }
}

#[test]
fn levels_are_warned_of_where_they_are_shown() {
    let told = |drive: &str, shown: &[&str]| {
        let wanted = made_up::wanted(14, drive, "vm");
        let of = |one: &&str| made_up::finalist(&wanted, one, &[1], [Some(1), Some(1)]).candidate;
        let all: Vec<Candidate> = shown.iter().map(of).collect();
        let told = of_levels(&wanted, &all[0], all.iter());
        [
            "A spare spares",
            "Single parity and large",
            "write hole",
            "RAIDZ is not modelled",
            "in one group",
            "The width is",
        ]
        .map(|begin| told.iter().any(|one| one.contains(begin)))
    };
    let (yes, no) = (true, false);
    assert_eq!(told("nas-8tb-7200", &["raid10(8)"]), [no; 6]);
    assert_eq!(told("nas-8tb-7200", &["raid10(8)", "raid5(4)"]), [no, yes, yes, yes, no, no]);
    assert_eq!(told("ssd-sata-1tb", &["raid5(4)"]), [no, no, yes, yes, no, no], "1 TB");
    assert_eq!(told("desktop-2tb-7200", &["raid5(4)"]), [no, no, yes, yes, no, no], "2 TB");
    assert_eq!(told("nas-4tb-5400", &["raid5(4)"]), [no, yes, yes, yes, no, no], "4 TB");
    assert_eq!(told("nas-8tb-7200", &["raid6(12)"]), [no, no, yes, yes, no, no]);
    assert_eq!(told("nas-8tb-7200", &["raid6(13)"]), [no, no, yes, yes, yes, no]);
    assert_eq!(told("nas-8tb-7200", &["raid6+0(2x7)"])[4], no, "two groups");
    assert_eq!(told("nas-8tb-7200", &["raid1(2) + spare"]), [yes, no, no, no, no, no]);
}

/// By the array that is asked about: 1 in 10^15 bits, each with the same chance.
#[test]
fn what_a_sheet_says_of_a_rebuild_is_of_the_array_asked_about() {
    let told = |drive: &str, size: Option<u64>, shown: &[&str]| {
        let mut wanted = made_up::wanted(14, drive, "vm");
        let bytes = size.map(|terabytes| terabytes * 1_000_000_000_000);
        wanted.sizes = bytes.map(|bytes| vec![Sectors(bytes / 512); 14]).unwrap_or_default();
        let of = |one: &&str| made_up::finalist(&wanted, one, &[1], [Some(1), Some(1)]).candidate;
        let all: Vec<Candidate> = shown.iter().map(of).collect();
        let told = of_levels(&wanted, &all[0], all.iter());
        told.into_iter().find(|one| one.contains("By the sheet's")).unwrap_or_default()
    };
    for (size, shown, expected) in [
        (12, &["raid5(4)"][..], "raid5(4), which reads 36.0 TB, would meet one in 25 of 100"),
        (12, &["raid6(4)", "raid5(4)"], "raid5(4), which reads 36.0 TB"),
        (4, &["raid5(3)"], "raid5(3), which reads 8.0 TB, would meet one in 6 of 100"),
        (24, &["raid5(9)"], "raid5(9), which reads 192.0 TB, would meet one in 78 of 100"),
        // A group reads itself, the other groups and the spare nothing.
        (8, &["raid5+0(2x4)"], "raid5+0(2x4), which reads 24.0 TB, would meet one in 17 of"),
        (8, &["raid5(4) + spare"], "which reads 24.0 TB"),
    ] {
        let told = told("dc-24tb-7200", Some(size), shown);
        assert!(told.contains(expected), "{size} TB, {shown:?}: {told}");
    }
    assert!(told("nas-8tb-7200", None, &["raid5(4)"]).contains("which reads 24.0 TB"));
    assert_eq!(told("nas-8tb-7200", None, &["raid6(4)"]), "", "two may be lost");
}

#[test]
fn far_copies_on_ssds_are_for_streams() {
    let told = |drive: &str, work: &str, layout: &str| {
        let wanted = made_up::wanted(4, drive, work);
        let one = made_up::finalist(&wanted, layout, &[1], [Some(1), Some(1)]);
        far_on_ssds(&wanted, &made_up::advice(vec![one])).is_some()
    };
    assert!(told("ssd-sata-1tb", "vm", "raid10(4) far2"));
    assert!(
        !told("ssd-sata-1tb", "vm", "raid10(4)")
            && !told("ssd-sata-1tb", "media", "raid10(4) far2")
    );
    assert!(!told("nas-8tb-7200", "vm", "raid10(4) far2"));
}

/// Only of parity, where streams are written on the array itself: not of files.
#[test]
fn what_a_page_cache_would_change_is_told_of_streams_without_one() {
    let told = |work: &str, layouts: &[&str]| {
        let wanted = made_up::wanted(8, "nas-8tb-7200", work);
        let finalists =
            layouts.iter().map(|one| made_up::finalist(&wanted, one, &[1], [Some(1); 2])).collect();
        past_the_page_cache(&wanted, &made_up::advice(finalists)).is_some()
    };
    let both = ["raid6(8)", "raid10(8)"];
    assert!(told("surveillance", &both) && told("surveillance", &["raid5(8)"]));
    assert!(!told("surveillance", &["raid10(8)"]));
    for work in ["nas", "media", "capture", "backup", "vm", "database", "fileserver"] {
        assert!(!told(work, &both), "{work}");
    }
}

#[test]
fn what_unequal_drives_leave_unused_is_summed() {
    let mut wanted = made_up::wanted(3, "nas-8tb-7200", "vm");
    let terabytes = |count: u64| Sectors(count * 1_000_000_000_000 / 512);
    wanted.sizes = [4, 6, 8].map(terabytes).to_vec();
    let [told] = &unequal(&wanted)[..] else { panic!("one") };
    assert!(told.contains("as the smallest has, 4.0 TB: 6.0 TB are unused"), "{told}");
    wanted.sizes = [4, 4, 4].map(terabytes).to_vec();
    assert!(unequal(&wanted).is_empty());
}

#[test]
fn warnings_begin_with_what_is_lost_first() {
    let told = |drive: &str, work: &str, layout: &str| {
        let wanted = made_up::wanted(4, drive, work);
        let one = made_up::finalist(&wanted, layout, &[100], [Some(1), Some(1)]);
        let mut advice = made_up::advice(vec![one]);
        advice.batches = vec![crate::risks::Batch { bad: 0.1, mixed: 0.01 }];
        warnings(&wanted, &advice)
    };
    let bare = told("ssd-sata-1tb", "vm", "raid0(4)");
    assert!(bare[0].starts_with("Without redundancy one failed drive"), "{bare:?}");
    assert!(
        bare[1].starts_with("Wear:") && bare[2].starts_with("RAID is not a backup"),
        "{bare:?}"
    );
    let disks = told("nas-8tb-7200", "vm", "raid0(4)");
    assert!(disks[1].starts_with("RAID is not a backup"), "{disks:?}");
    assert!(!disks.iter().any(|one| one.contains("Each array uses as much")), "equal drives");
}

/// What mdadm calls the copies of raid10, and all of what a nested array is made of.
#[test]
fn layouts_are_called_as_mdadm_calls_them() {
    let of = |layout: &str, mode| commands(&candidate(layout, 0, Mode::None), mode)[0].clone();
    for (layout, flags) in [
        (
            "raid10(4)",
            "--level=10 --raid-devices=4 --chunk=512K --layout=n2 --bitmap=none <4 drives>",
        ),
        (
            "raid10(6) near3",
            "--level=10 --raid-devices=6 --chunk=512K --layout=n3 --bitmap=none <6 drives>",
        ),
        (
            "raid10(5) far3",
            "--level=10 --raid-devices=5 --chunk=512K --layout=f3 --bitmap=none <5 drives>",
        ),
        (
            "raid6(4) chunk=1MiB",
            "--level=6 --raid-devices=4 --chunk=1024K --bitmap=none <4 drives>",
        ),
        ("raid0(3) chunk=64K", "--level=0 --raid-devices=3 --chunk=64K <3 drives>"),
    ] {
        assert_eq!(of(layout, Mode::None), format!("mdadm --create /dev/md0 {flags}"));
    }
    let nested = commands(&candidate("raid6+0(3x4) chunk=64K", 0, Mode::None), Mode::None);
    let lower = |name: u16| {
        format!(
            "mdadm --create /dev/md{name} --level=6 --raid-devices=4 --chunk=64K --bitmap=none <4 drives>"
        )
    };
    assert_eq!(nested[..3], [1, 2, 3].map(lower));
    assert!(nested[3].starts_with("mdadm --create /dev/md0 --level=0 --raid-devices=3 --chunk="));
    assert!(nested[3].ends_with(" /dev/md1 /dev/md2 /dev/md3"), "{}", nested[3]);
    let on_files = &commands(&candidate("raid5(3)", 0, Mode::None), Mode::None)[1];
    assert!(
        on_files.starts_with("raidlab array create 'raid5(3)' drive0.img drive1.img drive2.img ")
    );
    let alone = commands(&candidate("single", 0, Mode::None), Mode::None);
    assert_eq!(alone, ["# one drive alone needs no array"]);
    let chunk = |layout: &str| chunk_in_words(&candidate(layout, 0, Mode::None));
    assert_eq!(
        ["raid5(4)", "raid5(4) chunk=64K", "raid6+0(3x4) chunk=1M", "raid1(2)"].map(chunk),
        ["512KiB", "64KiB", "1MiB", ""]
    );
}

#[test]
fn hours_are_told_as_people_count_them() {
    let told = [0.5, 0.999, 1.0, 71.4, 72.0, 96.0, 240.0].map(days);
    assert_eq!(told, ["30 min", "60 min", "1 h", "71 h", "3 days", "4 days", "10 days"]);
}

/// Each figure of growing in its own place: the fewest hours first, the chance meanwhile before the one afterwards.
#[test]
fn growing_has_each_figure_in_its_place() {
    let growth = Growth::Reshape {
        layout: "raid5(6)".parse().expect("a layout"),
        usable: 40_000_000_000_000,
        hours: (10.0, 100.0),
        risk: 1e-3,
        then: 1e-2,
        commands: vec!["mdadm --one".to_owned(), "mdadm --two".to_owned()],
    };
    let told = growth_in_words("raid5(4)", &growth, 5.0);
    for part in [
        "raid5(4) grows to raid5(6), 40.0 TB: ",
        " in 10 h to 4 days (the longer as measured",
        "losing it meanwhile by drives that fail: 1 in 1,000; losing raid5(6) in 5 years: 1 in 100. ",
        "mdadm --one; mdadm --two; then grow the filesystem",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let not = Growth::Not { reason: "far".to_owned() };
    assert_eq!(growth_in_words("it", &not, 1.0), "it does not grow: far");
}

/// Chances of a mission of which only that of losing the array counts.
pub(crate) fn mission(central: f64) -> raidlab_risk::Mission {
    let array = raidlab_risk::Within { central, low: central / 2.0, high: central * 2.0 };
    raidlab_risk::Mission { outcome: raidlab_risk::Outcome::default(), array, sector: array }
}

/// Mixed batches are the better ones, the one of which nothing is known is in between.
#[test]
fn batches_are_told_from_the_best_to_the_worst() {
    let wanted = made_up::wanted(4, "ssd-sata-1tb", "vm");
    let of = |layout: &str| {
        let one = made_up::finalist(&wanted, layout, &[1], [Some(1), Some(1)]);
        let mut advice = made_up::advice(vec![one]);
        advice.batches = vec![crate::risks::Batch { bad: 0.1, mixed: 0.001 }];
        advice.risks = vec![mission(0.01)];
        advice
    };
    let told = batch(&of("raid5(4)"));
    let chances = "raid5(4) is lost 1 in 1,000 with drives of mixed batches, 1 in 100 with drives of one batch of \
                   which nothing is known, 1 in 10 of a bad one (10 times the failures).";
    assert!(told.contains(chances), "{told}");
    assert!(!batch(&of("raid0(4)")).contains("is lost"), "nothing to hold it against");
    let mirror = crate::first::first(&wanted, &of("raid1(4)")).join("\n");
    assert!(
        mirror.contains("1 in 1,000 of mixed batches, 1 in 10 of a bad one (10 times"),
        "{mirror}"
    );
    assert!(!crate::first::first(&wanted, &of("raid5(4)")).join("\n").contains("mixed batches"));
}

/// Warnings that hang on how the question was asked.
#[test]
fn warnings_follow_the_question() {
    let [disk, ssd, protected] = ["nas-8tb-7200", "ssd-sata-1tb", "ssd-nvme4-2tb-dc"]
        .map(|drive| made_up::wanted(8, drive, "vm"));
    let told = |change: &dyn Fn(&mut Wanted), wanted: &Wanted, layout: &str| {
        let mut wanted = wanted.clone();
        change(&mut wanted);
        let one = made_up::finalist(&wanted, layout, &[1], [Some(1), Some(1)]);
        let mut advice = made_up::advice(vec![one]);
        advice.batches = vec![crate::risks::Batch { bad: 0.1, mixed: 0.01 }];
        advice.risks = vec![mission(0.01)];
        (warnings(&wanted, &advice).join("\n"), checks(&wanted, &advice).join("\n"))
    };
    let nothing = |_: &mut Wanted| {};
    let range = |wanted: &mut Wanted| wanted.drives = 4..=8;
    assert!(told(&range, &disk, "raid6(8)").0.contains("no rule of 2^n drives"));
    assert!(!told(&nothing, &disk, "raid6(8)").0.contains("no rule of 2^n drives"));
    for (busy, is_told) in [(1.0, true), (0.99, false)] {
        let found = told(&|wanted| wanted.busy = busy, &disk, "raid6(8)").0;
        assert_eq!(found.contains("The work never stops"), is_told, "{busy}");
    }
    assert!(told(&nothing, &disk, "raid6(8)").0.contains("no shingled one (SMR)"));
    // Neither shingled models nor SATA's way to give up are a matter of drives of SAS.
    let (warned, checked) = told(&nothing, &made_up::wanted(8, "sas-146gb-10k", "vm"), "raid6(8)");
    assert!(!warned.contains("shingled") && !checked.contains("scterc"), "{warned} {checked}");
    let flash = told(&nothing, &ssd, "raid6(8)").0;
    assert!(
        flash.contains("Parity on SSDs") && flash.contains("each flush of this work waits"),
        "{flash}"
    );
    let mirrors = told(&nothing, &ssd, "raid10(8)").0;
    assert!(!mirrors.contains("Parity on SSDs") && !mirrors.contains("shingled"), "{mirrors}");
    assert!(!told(&nothing, &protected, "raid10(8)").0.contains("no protection against power"));
    // Nobody scrubs what has no redundancy, nor waits for a sector of it.
    let (redundant, bare) =
        (told(&nothing, &disk, "raid6(8)").1, told(&nothing, &disk, "raid0(8)").1);
    for of_redundancy in ["scterc,70,70", "monthly", "label them by serial"] {
        assert!(redundant.contains(of_redundancy) && !bare.contains(of_redundancy), "{bare}");
    }
    assert!(bare.contains("backups can be restored"));
}

/// What a drive's sheet is worth, what the work is an estimate of, and what can be tried on files.
#[test]
fn remarks_are_of_the_drive_and_the_work_at_hand() {
    for drive in ["nas-8tb-7200", "ssd-sata-1tb", "ssd-nvme4-2tb-dc"] {
        for (work, is_estimate) in [("vm", true), ("nas", false)] {
            let wanted = made_up::wanted(4, drive, work);
            let one = made_up::finalist(&wanted, "raid10(4)", &[1], [Some(1), Some(1)]);
            let mut advice = made_up::advice(vec![one]);
            advice.batches = vec![crate::risks::Batch { bad: 0.1, mixed: 0.01 }];
            advice.risks = vec![mission(0.01)];
            let figures = &wanted.drive.figures;
            let measured = figures.iter().filter(|one| one.status == Status::Measured).count();
            let told = of_drives(&wanted, &advice, false).join("\n");
            let sheet = format!("({measured} of {} figures measured)", figures.len());
            assert_eq!(told.contains(&sheet), 2 * measured < figures.len(), "{drive}: {told}");
            let checked = checks(&wanted, &advice).join("\n");
            assert_eq!(checked.contains(&format!("this is `{work}`")), is_estimate, "{checked}");
        }
    }
    let on_files = |layout: &str, spares, mode| {
        let all = commands(&candidate(layout, spares, Mode::None), mode);
        all.iter().any(|line| line.starts_with("raidlab array create"))
    };
    assert!(on_files("raid5(3)", 0, Mode::Bitmap) && on_files("raid0(2)", 0, Mode::None));
    assert!(
        !on_files("raid5(3)", 0, Mode::PartialParity) && !on_files("raid5(3)", 1, Mode::Bitmap)
    );
    let ppl = commands(&candidate("raid5(3)", 0, Mode::None), Mode::PartialParity);
    assert_eq!(
        ppl,
        [
            "mdadm --create /dev/md0 --level=5 --raid-devices=3 --chunk=512K --consistency-policy=ppl <3 drives>"
        ]
    );
}

/// Who has ZFS is told of RAIDZ first, and of no write hole.
#[test]
fn warnings_know_what_runs_the_array() {
    let mut wanted = made_up::wanted(8, "nas-8tb-7200", "vm");
    let one = made_up::finalist(&wanted, "raid6(8)", &[1], [Some(1), Some(1)]).candidate;
    let mut told = |software| {
        wanted.software = software;
        let told = of_levels(&wanted, &one, std::iter::once(&one)).join("\n");
        ["RAIDZ is not modelled", "write hole"].map(|words| told.contains(words))
    };
    assert_eq!((told(Software::Md), told(Software::Zfs)), ([true; 2], [false; 2]));
}

/// Work at its own rate leaves time for a bitmap, where one was compared and where md has one.
#[test]
fn a_second_choice_has_a_bitmap_where_that_is_free() {
    let second = |work: &str, name: &str| {
        let wanted = made_up::wanted(6, "nas-8tb-7200", work);
        let of = |name: &str| made_up::finalist(&wanted, name, &[10], [Some(1), Some(1)]);
        let mut advice = made_up::advice(vec![of("raid6(6)"), of(name)]);
        advice.verdict.sure = 0.5;
        let mode = Mode::Bitmap;
        advice.consistency = vec![crate::decide::Consistency { mode, speed: 0.99, tail: 1.01 }];
        let all = commands_of(&wanted, &advice);
        let at = all.iter().position(|line| line.starts_with("# or ")).expect("a toss-up");
        assert!(all[..at].join("\n").contains("--bitmap=internal"), "{all:?}");
        all[at..].join("\n")
    };
    assert!(second("surveillance", "raid10(6)").contains("--bitmap=internal"));
    // What one costs there was not measured.
    for other in [second("surveillance", "raid5+0(2x3)"), second("vm", "raid10(6)")] {
        assert!(other.contains(UNMEASURED) && !other.contains("--bitmap"), "{other}");
    }
}

/// Streams are told together with what they ask for, and that others keep up where there are any.
#[test]
fn keeping_up_is_told_with_what_is_asked_for() {
    let mut wanted = made_up::wanted(6, "nas-8tb-7200", "surveillance");
    let mut told = |streams: u32, layouts: &[&str]| {
        wanted.streams = streams;
        let of = |one: &&str| made_up::finalist(&wanted, one, &[10], [Some(1), Some(1)]);
        let mut advice = made_up::advice(layouts.iter().map(of).collect());
        advice.risks = vec![mission(0.01); layouts.len()];
        crate::first::first(&wanted, &advice)[0].clone()
    };
    let alone = told(1, &["raid0(6)"]);
    assert!(
        alone.starts_with("raid0(6) keeps up with 1 stream of 0.5 MB/s. A stream here waits"),
        "{alone}"
    );
    let many = told(64, &["raid6(6)", "raid10(6)"]);
    let expected = "raid6(6) keeps up with 64 streams of together 32.0 MB/s, also with a drive missing and while it is \
                    rebuilding: each has its full rate, as fewer would have; so does every layout below. A";
    assert!(many.starts_with(expected), "{many}");
}
