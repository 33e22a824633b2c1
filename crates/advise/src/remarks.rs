//! What a reader must know beside the numbers: warnings by rule, what to check first, commands.

use raidlab_core::{Layout, Level, SECTOR_BYTES, Size};
use raidlab_models::{DriveKind, Status};
use raidlab_risk::prior::Class;
use raidlab_risk::words;

use crate::candidate::{Candidate, Mode, modes, terabytes};
use crate::decide::{Advice, Lean};
use crate::growth::Growth;
use crate::objectives::LEAST_RISK;
use crate::profile::{BOOT, Counted};
use crate::risks::BAD_BATCH;
use crate::search::Finalist;
use crate::software::{Software, zpool};
use crate::wanted::Wanted;
use crate::wear;

/// Drives from which on a failed one is likely while one is being rebuilt or waited for.
const WIDE: u16 = 12;
/// From this size on latent errors of a whole drive matter while it is read.
const LARGE: u64 = 4_000_000_000_000;
/// Personalities of filebench that wait until their writes are durable.
const FLUSHING: [&str; 2] = ["varmail", "oltp"];

/// What a reader must be warned of.
pub fn warnings(wanted: &Wanted, advice: &Advice) -> Vec<String> {
    let mut told = Vec::new();
    let pick = &advice.finalists[advice.verdict.pick].candidate;
    let shown = || advice.finalists.iter().map(|one| &one.candidate);
    let wear = wear::in_words(wanted, advice);
    if shown().any(|one| one.layout.survives() == 0) {
        told.push(
            "Without redundancy one failed drive loses everything: keep nothing there that is nowhere else."
                .into(),
        );
    }
    told.extend(wear);
    told.push(
        "RAID is not a backup: it does not help against deletion, ransomware, fire, theft, software.".into(),
    );
    told.extend(double_parity(wanted, advice));
    told.extend(of_levels(wanted, pick, shown()));
    told.extend(becomes(wanted, advice));
    told.extend(far_on_ssds(wanted, advice));
    told.extend(of_drives(wanted, advice, shown().any(|one| one.layout.has_parity())));
    if !wanted.sizes.is_empty() {
        told.extend(unequal(wanted));
    }
    if wanted.busy >= 1.0 {
        told.push(
            "The work never stops, so each rebuild goes on beside it: see p99 while rebuilding. md gives it \
             dev.raid.speed_limit_min at least, which can be raised (raidlab throttle)."
                .into(),
        );
    }
    told
}

fn of_levels<'a>(
    wanted: &Wanted,
    pick: &Candidate,
    shown: impl Iterator<Item = &'a Candidate> + Clone,
) -> Vec<String> {
    let mut told = Vec::new();
    if shown.clone().any(|one| one.spares > 0) {
        told.push(
            "A spare spares the wait for a person, no more: while it is rebuilt, raid5 survives no other loss, raid6 \
             one. Parity on all drives protects at once."
                .into(),
        );
    }
    if let Some(one) = shown.clone().find(|one| is_single_parity(one))
        && wanted.member().bytes() >= LARGE
    {
        told.push(large_single(wanted, one));
    }
    if shown.clone().any(|one| one.layout.has_parity()) && wanted.software != Software::Zfs {
        told.push(
            "Parity has the write hole: a crash while a drive is missing may tear stripes. On raid5 \
             --consistency-policy=ppl closes it, in place of a bitmap; on raid5 and raid6 a journal does \
             (--write-journal, on a mirror of SSDs). A UPS helps against power cuts only."
                .into(),
        );
    }
    // Who has ZFS is told first.
    if shown.clone().any(|one| one.layout.has_parity()) && wanted.software != Software::Zfs {
        told.push(
            "These are levels of Linux md. RAIDZ is not modelled: there each small read takes all drives of a vdev, so \
             random reads are about one drive's, where md's raid5 and raid6 read one drive each."
                .into(),
        );
    }
    if pick.layout.inner.is_none() && pick.layout.has_parity() && pick.layout.members > WIDE {
        told.push(format!(
            "{} drives in one group: a rebuild reads all of them.",
            pick.layout.members
        ));
    }
    if *wanted.drives.end() != *wanted.drives.start() {
        told.push(
            "The width is what space, speed and risk make it; md has no rule of 2^n drives with data. What helps \
             parity is a stripe (chunk times drives with data) that the writes fill, for then none of it is read \
             first: a width whose stripe divides the writes may be a little ahead of its neighbours."
                .into(),
        );
    }
    told
}

/// Whether a lost drive leaves no parity to spare.
fn is_single_parity(one: &Candidate) -> bool {
    one.layout.survives() == 1 && one.layout.has_parity()
}

/// Bits that a drive's sheet has read for each one that cannot be: what rules of thumb about rebuilds count by.
const BITS_BY_SHEET: f64 = 1e15;

/// What is warned of single parity over large drives, with what the sheet would say of a rebuild.
fn large_single(wanted: &Wanted, one: &Candidate) -> String {
    // A rebuild reads the other members of the one array that the drive is of.
    let group = one.layout.inner.as_deref().unwrap_or(&one.layout);
    let read = wanted.member().bytes() * u64::from(group.members.saturating_sub(1));
    let meets = -libm::expm1(-(read as f64 * 8.0) / BITS_BY_SHEET);
    format!(
        "Single parity and large drives: with a drive missing each latent defect on the others loses a sector, and the \
         array too where a drive hangs on it or has many. Defects are counted by drive and year (3 of 100 hard disks \
         in a year), as they were measured, not by bytes, so larger drives are no likelier to have one. By the sheet's \
         1 in 10^15 bits a rebuild of {one}, which reads {}, would meet one in {:.0} of 100 times, which users do not \
         see. Scrub monthly.",
        terabytes(read),
        meets * 100.0
    )
}

/// Where copies lie on SSDs makes a difference to one stream only, which small requests do not have.
fn far_on_ssds(wanted: &Wanted, advice: &Advice) -> Option<String> {
    let is_far = |one: &Finalist| one.candidate.layout.far > 1;
    let is_ssd = matches!(wanted.drive.kind, DriveKind::Ssd(_));
    let is_small = wanted.profile.parts.iter().all(|part| part.counted == Counted::Operations);
    (is_ssd && is_small && advice.finalists.iter().any(is_far)).then(|| {
        "Far and offset copies are there for one stream that is read, which far reads from all drives as raid0 does; \
         this work has none. --work media --streams 1 asks about that."
            .to_owned()
    })
}

fn of_drives(wanted: &Wanted, advice: &Advice, parity: bool) -> Vec<String> {
    let mut told = Vec::new();
    let drive = &wanted.drive;
    match &drive.kind {
        DriveKind::Smr(_) => told.push(
            "Shingled drives: a rebuild that is not in order takes days (RAIDZ1 of 4 x 4 TB: over 9 days against \
             16 h). Use drives of conventional recording in arrays."
                .into(),
        ),
        DriveKind::HardDisk(_) => told.push(
            "Check by its model that the drive is no shingled one (SMR), as WD40EFAX is, which was sold for NAS: the \
             kernel does not know, and a rebuild of one may take days (RAIDZ1 of 4 x 4 TB: over 9 days against 16 h)."
                .into(),
        ),
        DriveKind::Ssd(spec) => {
            if parity {
                told.push(
                    "Parity on SSDs: small writes are written twice or more, which wears them; md computes it in \
                     one thread an array unless group_thread_cnt and stripe_cache_size are raised, which may hold \
                     fast SSDs back and is not modelled here."
                        .into(),
                );
            }
            told.push(
                "SSDs of one model and firmware may fail together after the same hours: update the firmware; different \
                 models in a mirror cost nothing but the slower one's speed."
                    .into(),
            );
            let protected = spec.figures().power_loss_protection;
            let flushes =
                wanted.profile.flushes() || FLUSHING.contains(&wanted.profile.name.as_str());
            if !protected {
                let waits = if flushes { ", and each flush of this work waits for the flash" } else { "" };
                told.push(format!(
                    "This SSD has no protection against power loss: what it has taken and not yet written to flash \
                     may be gone with the power{waits}."
                ));
            }
            told.push(format!(
                "That an SSD loses a sector is a guess for this drive ({}).",
                Class::Ssd.defects_source()
            ));
        }
    }
    told.push(batch(advice));
    let all = drive.figures.len();
    let measured = drive.figures.iter().filter(|one| one.status == Status::Measured).count();
    if measured * 2 < all {
        told.push(format!(
            "The drive is modelled by its sheet and estimates ({measured} of {all} figures measured): speeds may be \
             30 % off; ratios are better known."
        ));
    }
    told
}

/// What a batch makes of the recommendation.
fn batch(advice: &Advice) -> String {
    let at = advice.verdict.pick;
    let (pick, batch) = (&advice.finalists[at].candidate, &advice.batches[at]);
    let chance = words::chance;
    let odds = match pick.layout.survives() {
        0 => String::new(),
        _ => format!(
            " {pick} is lost {} with drives of mixed batches, {} with drives of one batch of which nothing is known, \
             {} of a bad one ({BAD_BATCH} times the failures).",
            chance(batch.mixed),
            chance(advice.risks[at].array.central),
            chance(batch.bad)
        ),
    };
    format!(
        "Drives of one batch may fail close together: the risk has a batch factor and a common cause, and what is not \
         known of both is in its range.{odds} Mixing batches and makers helps; mirrors are hit by it as parity is. \
         Many drives that drop out at once are rather a power supply, a cable or a controller: make nothing anew \
         before these are checked."
    )
}

/// What the recommendation is warned of once it has grown: it may have parity then and none now.
fn becomes(wanted: &Wanted, advice: &Advice) -> Option<String> {
    wanted.later?;
    let (at, growth) = advice.growths.iter().find(|(at, _)| *at == advice.verdict.pick)?;
    let now = &advice.finalists[*at].candidate.layout;
    match growth {
        Growth::Reshape { layout, .. } if layout.has_parity() && !now.has_parity() => {
            Some(format!(
                "Once it is {layout} it has parity: small writes read first, a crash while a drive is missing may tear \
                 stripes (--consistency-policy=ppl closes that, on raid5), and all drives are read by a rebuild. Ask \
                 again with --among '{layout}' for its speed."
            ))
        }
        _ => None,
    }
}

/// Members from which on single parity is wide.
const WIDE_SINGLE: u16 = 6;
/// Bytes of a drive from which on single parity is not what is usual.
const LARGE_SINGLE: u64 = 8_000_000_000_000;

/// What double parity on the same drives would give, where the recommendation has single parity and much to lose. By
/// its structure alone: it may have been left out.
fn double_parity(wanted: &Wanted, advice: &Advice) -> Option<String> {
    let pick = &advice.finalists[advice.verdict.pick];
    let layout = &pick.candidate.layout;
    let is_single = layout.level == Level::Raid5 && layout.inner.is_none();
    let is_much = layout.members > WIDE_SINGLE || wanted.member().bytes() >= LARGE_SINGLE;
    let double = Layout::new(Level::Raid6, pick.candidate.drives());
    // Where other causes dominate, more parity helps against nothing that is told.
    let is_told = pick.risk >= LEAST_RISK;
    if !(is_single && is_much && is_told) || double.check().is_err() {
        return None;
    }
    let double = Candidate { layout: double, spares: 0, mode: Mode::None };
    let usable = terabytes(double.usable(wanted.member())?);
    let here = terabytes(pick.usable);
    let drives = double.drives();
    Some(format!(
        "Among all levels, single parity over {} drives of {} is what raid6 is for: {double} on the same {drives} \
         survives any two, with {usable} instead of {here}.",
        layout.members,
        terabytes(wanted.member().bytes())
    ))
}

fn unequal(wanted: &Wanted) -> Vec<String> {
    let least = wanted.member().bytes();
    let unused: u64 = wanted.sizes.iter().map(|size| size.bytes() - least).sum();
    if unused == 0 {
        return Vec::new();
    }
    vec![format!(
        "Each array uses as much of each drive as the smallest has, {}: {} are unused. A parity drive need not be \
         larger than the others; a second array over the rest of the larger ones can use it.",
        terabytes(least),
        terabytes(unused)
    )]
}

/// Whether a system is to boot from mirrors of it.
fn is_boot(wanted: &Wanted) -> bool {
    wanted.profile.name == BOOT && wanted.software == Software::Md
}

/// What a mirror needs that a system boots from.
const BOOTS: [&str; 3] = [
    "that each drive has an EFI system partition, as firmware reads no array: a copy of it on both, or a raid1 of them \
     with --metadata=1.0, whose own data are at the end, so that it looks like a plain filesystem",
    "that the boot loader is installed on both, with an entry of the firmware for each (grub-install, efibootmgr)",
    "that the system boots with either drive taken out",
];

/// What to check before anything is bought or made.
pub fn checks(wanted: &Wanted, advice: &Advice) -> Vec<String> {
    let mut told = vec!["that backups can be restored".to_owned()];
    let pick = &advice.finalists[advice.verdict.pick].candidate;
    if pick.layout.survives() > 0 {
        if !matches!(wanted.drive.kind, DriveKind::Ssd(_)) {
            told.push(
                "that SATA drives give up on a bad sector within seconds, set at each start (smartctl -l \
                 scterc,70,70); where one refuses, that the kernel waits for it (echo 180 \
                 >/sys/block/DRIVE/device/timeout): after 30 s it resets the drive, and md drops it"
                    .to_owned(),
            );
        }
        let runs = match wanted.software {
            Software::Zfs => "that zpool scrub runs every month",
            Software::FilePool => "that the pool is checked every month",
            Software::Controller => {
                "that the controller's patrol read or consistency check runs every month"
            }
            Software::Md => "that a monthly check runs (Debian: /etc/cron.d/mdadm)",
        };
        told.push(format!("{runs} and that its mail reaches somebody"));
        told.push("which slot is which drive: label them by serial number".to_owned());
    }
    if is_boot(wanted) {
        told.extend(BOOTS.map(str::to_owned));
    }
    if wanted.profile.parts.iter().any(|part| !matches!(part.counted, Counted::Megabytes)) {
        told.push(format!(
            "the work itself: this is `{}`; --study takes your own, and raidlab compare runs it on the drives (--on)",
            wanted.profile.name
        ));
    }
    told
}

/// The commands that make what is advised; of a toss-up both, each under its name.
pub fn commands_of(wanted: &Wanted, advice: &Advice) -> Vec<String> {
    let pick = &advice.finalists[advice.verdict.pick].candidate;
    // Of nested arrays nothing is modelled.
    let is_measured = !modes(&pick.layout).is_empty();
    let mode = is_measured.then(|| advice.kept(wanted));
    let made = |one: &Candidate, mode: Option<Mode>| match wanted.software {
        Software::Zfs => vec![zpool(one)],
        // The array is over a partition of each: another one is firmware's.
        Software::Md if is_boot(wanted) => {
            let all = commands(one, mode).into_iter();
            all.map(|line| line.replace(" drives>", " partitions>")).collect()
        }
        Software::Md | Software::FilePool | Software::Controller => commands(one, mode),
    };
    let first = made(pick, mode);
    let Some(next) = advice.verdict.next.filter(|_| advice.lean() == Lean::TossUp) else {
        return first;
    };
    let next = &advice.finalists[next].candidate;
    // What a bitmap costs there was not measured, but where the work leaves time for it anyway.
    let is_free = |mode: &Mode| wanted.is_paced() && modes(&next.layout).contains(mode);
    let mode = mode.filter(is_free);
    let titled = |one: &Candidate| vec![format!("# either {one}")];
    [titled(pick), first, vec![format!("# or {next}")], made(next, mode)].concat()
}

/// The commands that make a candidate, kept consistent in a way: of mdadm on devices, of raidlab on files. Without a
/// way nothing was measured of any, so mdadm decides about a bitmap.
pub fn commands(candidate: &Candidate, mode: impl Into<Option<Mode>>) -> Vec<String> {
    let (layout, mode) = (&candidate.layout, mode.into());
    let mut all = Vec::new();
    if mode.is_none() && layout.survives() > 0 {
        all.push(UNMEASURED.to_owned());
    }
    if let Some(inner) = &layout.inner {
        all.extend(nested(candidate, inner, mode));
        return all;
    }
    if layout.level == Level::Linear && layout.members == 1 {
        return vec!["# one drive alone needs no array".to_owned()];
    }
    all.push(create("/dev/md0", layout, mode, candidate.spares));
    let files: Vec<String> = (0..layout.drives()).map(|at| format!("drive{at}.img")).collect();
    if mode != Some(Mode::PartialParity) && candidate.spares == 0 {
        all.push(format!(
            "raidlab array create '{layout}' {}   # to try it on files",
            files.join(" ")
        ));
    }
    all
}

/// Said where no bitmap was compared.
const UNMEASURED: &str =
    "# the figures are without a bitmap, and what one costs here was not measured: mdadm decides";

/// The commands for an array of arrays, with the spares dealt out, as each is a spare of one array.
fn nested(candidate: &Candidate, inner: &Layout, mode: Option<Mode>) -> Vec<String> {
    let (outer, spares) = (candidate.layout.upper(), candidate.spares);
    let arrays = outer.members;
    let names: Vec<String> = (1..=arrays).map(|array| format!("/dev/md{array}")).collect();
    let of = |array: u16| spares / arrays + u16::from(array < spares % arrays);
    let mut all: Vec<String> =
        names.iter().zip(0..).map(|(name, array)| create(name, inner, mode, of(array))).collect();
    all.push(format!(
        "mdadm --create /dev/md0 --level={} --raid-devices={arrays}{} {}",
        outer.level.md_name().unwrap_or("0"),
        chunk(&outer),
        names.join(" ")
    ));
    if spares > 0 {
        all.push(format!(
            "# in mdadm.conf, on the ARRAY lines of {} (mdadm --detail --scan): spare-group=md0",
            names.join(" ")
        ));
        all.push(
            "mdadm --monitor --scan --syslog --daemonise   # gives a spare to whichever loses a drive"
                .to_owned(),
        );
    }
    all
}

fn chunk(layout: &Layout) -> String {
    match layout.level.has_chunks() {
        true => format!(" --chunk={}K", layout.chunk.0 * SECTOR_BYTES / 1_024),
        false => String::new(),
    }
}

fn create(name: &str, layout: &Layout, mode: Option<Mode>, spares: u16) -> String {
    let level = layout.level.md_name().unwrap_or("linear");
    let mut text =
        format!("mdadm --create {name} --level={level} --raid-devices={}", layout.members);
    text += &chunk(layout);
    if layout.level == Level::Raid10 {
        let copies = match (layout.far, layout.offset) {
            (1, _) => format!("n{}", layout.near),
            (far, true) => format!("o{far}"),
            (far, false) => format!("f{far}"),
        };
        text += &format!(" --layout={copies}");
    }
    match mode {
        Some(Mode::Bitmap) => text += " --bitmap=internal",
        Some(Mode::PartialParity) => text += " --consistency-policy=ppl",
        Some(Mode::None) if layout.survives() > 0 => text += " --bitmap=none",
        Some(Mode::None) | None => {}
    }
    if spares > 0 {
        text += &format!(" --spare-devices={spares}");
    }
    let count = layout.members + spares;
    text + &format!(" <{count} drives>")
}

/// What growing a layout comes to, in words.
pub fn growth_in_words(name: &str, growth: &Growth, years: f64) -> String {
    match growth {
        Growth::Not { reason } => format!("{name} does not grow: {reason}"),
        Growth::Reshape { layout, usable, hours: (least, most), risk, then, commands } => format!(
            "{name} grows to {layout}, {}: md reshapes it, drives added at once, in {} to {} (the longer as measured \
             of an old array of 1 TB drives: md's reshape is slow). Back up first: a crash or a cable is likelier to \
             end a reshape badly than a drive. It stays {}; losing it meanwhile by drives that fail: {}; losing \
             {layout} in {}: {}. {}; then grow the filesystem",
            terabytes(*usable),
            days(*least),
            days(*most),
            if layout.survives() == 0 { "usable" } else { "redundant and usable" },
            words::chance(*risk),
            years_in_words(years),
            words::chance(*then),
            commands.join("; ")
        ),
    }
}

/// Years in words, with what they have behind the point.
pub fn years_in_words(years: f64) -> String {
    // Without what went wrong in the last digits on the way through hours.
    let years = (years * 1e6).round() / 1e6;
    format!("{years} {}", if years == 1.0 { "year" } else { "years" })
}

/// Hours in words.
pub fn days(hours: f64) -> String {
    match hours {
        hours if hours < 1.0 => format!("{:.0} min", hours * 60.0),
        hours if hours < 72.0 => format!("{hours:.0} h"),
        hours => format!("{:.0} days", hours / 24.0),
    }
}

/// A chunk in words.
pub fn chunk_in_words(candidate: &Candidate) -> String {
    let floor = candidate.layout.floors().find(|floor| floor.level.has_chunks());
    floor.map_or_else(String::new, |floor| Size(floor.chunk.bytes()).to_string())
}

#[cfg(test)]
mod tests {
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
            of("raid1(2)", 0, Mode::Bitmap)
                .contains("--raid-devices=2 --bitmap=internal <2 drives>")
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
            large.contains(
                "raid6(4) on the same 4 survives any two, with 16.0 TB instead of 24.0 TB"
            ),
            "{large}"
        );
        let spare = told("nas-8tb-7200", "raid5(4) + spare").expect("8 TB");
        assert!(
            spare.contains(
                "raid6(5) on the same 5 survives any two, with 24.0 TB instead of 24.0 TB"
            ),
            "{spare}"
        );
        assert!(
            told("ssd-sata-1tb", "raid5(7)").is_some()
                && told("ssd-sata-1tb", "raid5(6)").is_none()
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
            let of =
                |one: &&str| made_up::finalist(&wanted, one, &[1], [Some(1), Some(1)]).candidate;
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
            let of =
                |one: &&str| made_up::finalist(&wanted, one, &[1], [Some(1), Some(1)]).candidate;
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
}
