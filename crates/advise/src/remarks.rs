//! What a reader must know beside the numbers: warnings by rule, what to check first, commands.

use raidlab_core::{Layout, Level, SECTOR_BYTES, Size};
use raidlab_models::{DriveKind, Status};
use raidlab_risk::prior::Class;
use raidlab_risk::words;

use crate::candidate::{Candidate, Mode, modes, terabytes};
use crate::decide::{Advice, Lean};
use crate::growth::Growth;
use crate::objectives::LEAST_RISK;
use crate::profile::{BOOT, Counted, Part};
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
    told.extend(past_the_page_cache(wanted, advice));
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

/// Cameras are written on the array itself, a request at a time, which fills no row of parity; files that go through a
/// page cache do.
fn past_the_page_cache(wanted: &Wanted, advice: &Advice) -> Option<String> {
    let is_asked = wanted.profile.parts.iter().any(Part::writes_past_the_cache);
    let has_parity = advice.finalists.iter().any(|one| one.candidate.layout.has_parity());
    (is_asked && has_parity).then(|| {
        "Streams are written here past the page cache, each request by itself, so that levels with parity read first \
         what a request does not fill. A recorder that writes files leaves whole rows to the kernel: raid5 and raid6 \
         have more to spare then than told here."
            .to_owned()
    })
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
        // Drives of SAS were never sold that way.
        DriveKind::HardDisk(_) if drive.is_sas() => {}
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
        if !matches!(wanted.drive.kind, DriveKind::Ssd(_)) && !wanted.drive.is_sas() {
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
pub(crate) mod tests;
