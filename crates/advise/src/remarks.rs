//! What a reader must know beside the numbers: warnings by rule, what to check first, commands.

use raidlab_core::{Level, SECTOR_BYTES, Size};
use raidlab_models::{DriveKind, Status};

use crate::candidate::{Candidate, Mode, terabytes};
use crate::decide::Advice;
use crate::growth::Growth;
use crate::profile::Counted;
use crate::wanted::Wanted;

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
    if shown().any(|one| one.layout.survives() == 0) {
        told.push(
            "Without redundancy one failed drive loses everything: keep nothing there that is nowhere else."
                .into(),
        );
    }
    told.push(
        "RAID is not a backup: it does not help against deletion, ransomware, fire, theft, software.".into(),
    );
    told.extend(of_levels(wanted, pick, shown()));
    told.extend(of_drives(wanted, shown().any(|one| one.layout.has_parity())));
    if !wanted.sizes.is_empty() {
        told.extend(unequal(wanted));
    }
    if wanted.busy >= 1.0 {
        told.push(
            "The work never stops, so each rebuild goes on beside it: see p99 while rebuilding."
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
    let single = |one: &Candidate| one.layout.survives() == 1 && one.layout.has_parity();
    if shown.clone().any(single) && wanted.member().bytes() >= LARGE {
        told.push(
            "Single parity and large drives: with a drive missing each latent defect on the others loses a sector, and \
             the array too where a drive hangs on it or has many. Defects are counted by drive and year (3 of 100 hard \
             disks in a year), as they were measured, not by bytes, so larger drives are no likelier to have one. By \
             the sheet's 1 in 10^15 bits a rebuild that reads 36 TB would meet one in four times, which users do not \
             see. Scrub monthly."
                .into(),
        );
    }
    if shown.clone().any(|one| one.layout.has_parity()) {
        told.push(
            "Parity has the write hole: a crash while a drive is missing may tear stripes. On raid5 \
             --consistency-policy=ppl closes it, in place of a bitmap; on raid5 and raid6 a journal does \
             (--write-journal, on a mirror of SSDs). A UPS helps against power cuts only."
                .into(),
        );
    }
    if shown.clone().any(|one| one.layout.has_parity()) {
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
            "The width is what space, speed and risk make it; 2^n drives with data have no advantage with md's \
             chunks."
                .into(),
        );
    }
    told
}

fn of_drives(wanted: &Wanted, parity: bool) -> Vec<String> {
    let mut told = Vec::new();
    let drive = &wanted.drive;
    match &drive.kind {
        DriveKind::Smr(_) => told.push(
            "Shingled drives: a rebuild that is not in order takes days (RAIDZ1 of 4 x 4 TB: over 9 days against 16 h).\
              Use drives of conventional recording in arrays."
                .into(),
        ),
        DriveKind::HardDisk(_) => told.push(
            "Check by its model that the drive is no shingled one (SMR): the kernel does not know, and a rebuild of \
             one may take days."
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
            if !protected && flushes {
                told.push(
                    "This SSD has no protection against power loss: each flush waits for the flash.".into(),
                );
            }
        }
    }
    told.push(
        "Drives of one batch may fail close together: the risk has a batch factor and a common cause, and what is not \
         known of both is in its range. Mixing batches and makers helps; mirrors are hit by it as parity is. Many \
         drives that drop out at once are rather a power supply, a cable or a controller: make nothing anew before \
         these are checked."
            .into(),
    );
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
        told.push(
            "that a monthly check runs (Debian: /etc/cron.d/mdadm) and that its mail reaches somebody".to_owned(),
        );
        told.push("which slot is which drive: label them by serial number".to_owned());
    }
    if wanted.profile.parts.iter().any(|part| !matches!(part.counted, Counted::Megabytes)) {
        told.push(format!(
            "the work itself: this is `{}`; --study takes your own, and raidlab compare runs it on the drives (--on)",
            wanted.profile.name
        ));
    }
    told
}

/// The commands that make a candidate, kept consistent in a way: of mdadm on devices, of raidlab on files.
pub fn commands(candidate: &Candidate, mode: Mode) -> Vec<String> {
    let layout = &candidate.layout;
    if let Some(inner) = &layout.inner {
        let mut all = Vec::new();
        for array in 1..=layout.members {
            let spare = u16::from(array <= candidate.spares);
            all.push(create(&format!("/dev/md{array}"), inner, mode, spare));
        }
        let names: Vec<String> =
            (1..=layout.members).map(|array| format!("/dev/md{array}")).collect();
        let outer = layout.upper();
        all.push(format!(
            "mdadm --create /dev/md0 --level={} --raid-devices={}{} {}",
            outer.level.md_name().unwrap_or("0"),
            outer.members,
            chunk(&outer),
            names.join(" ")
        ));
        return all;
    }
    if layout.level == Level::Linear && layout.members == 1 {
        return vec!["# one drive alone needs no array".to_owned()];
    }
    let mut all = vec![create("/dev/md0", layout, mode, candidate.spares)];
    let files: Vec<String> = (0..layout.drives()).map(|at| format!("drive{at}.img")).collect();
    if mode != Mode::PartialParity && candidate.spares == 0 {
        all.push(format!(
            "raidlab array create '{layout}' {}   # to try it on files",
            files.join(" ")
        ));
    }
    all
}

fn chunk(layout: &raidlab_core::Layout) -> String {
    match layout.level.has_chunks() {
        true => format!(" --chunk={}K", layout.chunk.0 * SECTOR_BYTES / 1_024),
        false => String::new(),
    }
}

fn create(name: &str, layout: &raidlab_core::Layout, mode: Mode, spares: u16) -> String {
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
        Mode::Bitmap => text += " --bitmap=internal",
        Mode::PartialParity => text += " --consistency-policy=ppl",
        Mode::None if layout.survives() > 0 => text += " --bitmap=none",
        Mode::None => {}
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
             end a reshape badly than a drive. It stays redundant and usable; losing it meanwhile by drives that fail: \
             {}; losing {layout} in {:.0} years: {}. {}; then grow the filesystem",
            terabytes(*usable),
            days(*least),
            days(*most),
            raidlab_risk::words::chance(*risk),
            years,
            raidlab_risk::words::chance(*then),
            commands.join("; ")
        ),
    }
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
    use super::*;

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
}
