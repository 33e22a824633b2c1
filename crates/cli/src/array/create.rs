//! `raidlab array create`: a new md array on files or block devices.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use raidlab_core::{Layout, Sector, Sectors, Size};
use raidlab_metadata::md::{Creation, Device, LogDevice, Made, Plan, Version, WantedBitmap};

use super::args::{BitmapChoice, Create, Metadata, Policy};
use super::examine::{hostname, uuid};
use super::targets::{Target, approve, target, targets};
use super::{create_nested, geom};
use crate::failure::Failure;
use crate::output;

/// What stands for a member that is not there.
pub(super) const MISSING: &str = "missing";
/// Bytes that are cleared of a superblock that is there.
const CLEARED: usize = 4096;

pub(super) fn run(options: &Create) -> Result<(), Failure> {
    check_names(options)?;
    let options = &by_policy(options)?;
    let layout = layout(options)?;
    if options.metadata == Metadata::Geom {
        return geom::create(options, layout);
    }
    if layout.inner.is_some() {
        return create_nested::run(options, &layout);
    }
    let targets = targets(options)?;
    let claimed = |path: &PathBuf| target(path, options);
    let spares = options.spare.iter().map(claimed).collect::<Result<Vec<_>, _>>()?;
    let log = options.write_journal.as_ref().map(claimed).transpose()?;
    let given: Vec<_> = targets.iter().flatten().chain(&spares).chain(&log).collect();
    let creation = creation(options, layout, &targets, (&spares, log.as_ref()))?;
    let plan = creation.plan().map_err(Failure::input)?;
    let writes = approve(options, &given)?;
    if writes {
        let members = targets.iter().zip(&plan.members);
        let members = members.filter_map(|(target, made)| Some((target.as_ref()?, made.as_ref()?)));
        let others = spares.iter().zip(&plan.spares).chain(log.iter().zip(&plan.journal));
        let all: Vec<_> = members.chain(others).collect();
        all.iter().try_for_each(|(target, _)| target.clear_old())?;
        let pieces: Vec<_> =
            all.iter().map(|(target, made)| (target.path.as_path(), &target.file, *made)).collect();
        write(&pieces)?;
    }
    output::print(&told(options, writes, &creation, &plan))
}

/// The same options with those that `--consistency` stands for; what says something else is refused.
fn by_policy(options: &Create) -> Result<Create, Failure> {
    let mut resolved = options.clone();
    let Some(policy) = options.consistency else { return Ok(resolved) };
    let (bitmap, name) = (options.bitmap, policy.name());
    for (flag, is_given) in [
        ("--bitmap internal", bitmap == BitmapChoice::Internal && policy != Policy::Bitmap),
        ("--bitmap none", bitmap == BitmapChoice::None && policy == Policy::Bitmap),
        ("--ppl", options.ppl && policy != Policy::Ppl),
        ("--write-journal", options.write_journal.is_some() && policy != Policy::Journal),
    ] {
        if is_given {
            let what = "cannot both be: leave one of them out";
            return Err(Failure::input(format!("--consistency {name} and {flag} {what}")));
        }
    }
    match policy {
        Policy::Resync => resolved.bitmap = BitmapChoice::None,
        Policy::Bitmap => resolved.bitmap = BitmapChoice::Internal,
        Policy::Ppl => resolved.ppl = true,
        Policy::Journal if options.write_journal.is_none() => {
            let what = "needs a log device: name it by --write-journal FILE";
            return Err(Failure::input(format!("--consistency journal {what}")));
        }
        Policy::Journal => {}
    }
    Ok(resolved)
}

/// Names that programs and files of lines could not take are refused.
fn check_names(options: &Create) -> Result<(), Failure> {
    let given = [("--name", &options.name), ("--homehost", &options.homehost)];
    for (flag, name) in given.into_iter().filter_map(|(flag, name)| Some((flag, name.as_ref()?))) {
        let wrong = |what: &str| {
            let shown = raidlab_metadata::printable(name.as_bytes());
            Err(Failure::input(format!("{flag} \"{shown}\": {what}")))
        };
        if name.is_empty() && flag == "--name" {
            return wrong("a name has at least one letter; leave the flag out for \"array\"");
        }
        if name.chars().any(char::is_control) {
            return wrong("control characters cannot be in a name: leave them out");
        }
        if name.contains('/') {
            return wrong("the name becomes that of a device and of a socket: leave out '/'");
        }
    }
    Ok(())
}

/// The layout, with as many members as there are files unless it says how many.
fn layout(options: &Create) -> Result<Layout, Failure> {
    let text = options.layout.trim();
    let (level, rest) = text.split_once(' ').unwrap_or((text, ""));
    let text = match level.contains('(') {
        true => text.to_owned(),
        false => format!("{level}({}) {rest}", options.members.len()),
    };
    let layout: Layout = text.parse().map_err(Failure::input)?;
    if usize::from(layout.drives()) != options.members.len() {
        let (needed, given) = (layout.drives(), options.members.len());
        return Err(Failure::input(format!("{layout} has {needed} members, {given} are given")));
    }
    Ok(layout)
}

pub(super) fn creation(
    options: &Create,
    layout: Layout,
    targets: &[Option<Target>],
    (spares, log): (&[Target], Option<&Target>),
) -> Result<Creation, Failure> {
    let sectors = |flag: &str, size: Option<Size>| {
        let whole = |size: Size| {
            Sectors::from_bytes(size.0).ok_or_else(|| {
                Failure::input(format!("--{flag}: {size} is not a multiple of 512 bytes"))
            })
        };
        size.map(whole).transpose()
    };
    let device = |target: &Target| device(target.sectors);
    let log_device = |target: &Target| log_device(device(target)?);
    let name = name(options)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Ok(Creation {
        version: options.version(),
        devices: targets
            .iter()
            .map(|target| target.as_ref().map(device).transpose())
            .collect::<Result<_, Failure>>()?,
        spares: spares.iter().map(device).collect::<Result<_, Failure>>()?,
        bitmap: match options.bitmap {
            BitmapChoice::Auto => WantedBitmap::Auto,
            BitmapChoice::None => WantedBitmap::None,
            BitmapChoice::Internal => WantedBitmap::Internal,
        },
        ppl: options.ppl,
        journal: log.map(log_device).transpose()?,
        assume_clean: options.assume_clean,
        data_offset: sectors("data-offset", options.data_offset)?,
        size: sectors("size", options.size)?,
        array: options.uuid.map_or_else(random, Ok)?,
        name,
        now,
        layout,
    })
}

/// The array's name behind that of its host. Version 0.90 has neither.
pub(super) fn name(options: &Create) -> Result<String, Failure> {
    let name = |default: &str| options.name.clone().unwrap_or_else(|| default.to_owned());
    if options.version() == Version::V0_90 {
        return match &options.homehost {
            Some(host) if !host.is_empty() => Err(Failure::input(format!(
                "--homehost {host}: version 0.90 has no place for a host"
            ))),
            _ => Ok(name("md127")),
        };
    }
    let homehost = options.homehost.clone().unwrap_or_else(hostname);
    let name = name("array");
    Ok(of_host(&homehost, &name))
}

/// A name behind that of a host, if there is one.
pub(super) fn of_host(host: &str, name: &str) -> String {
    if host.is_empty() { name.to_owned() } else { format!("{host}:{name}") }
}

/// A device of a new array, with an identity by chance.
pub(super) fn device(sectors: Sectors) -> Result<Device, Failure> {
    Ok(Device { sectors, id: random()? })
}

/// The same with the first number of its journal.
pub(super) fn log_device(device: Device) -> Result<LogDevice, Failure> {
    let [a, b, c, d, ..] = random()?;
    Ok(LogDevice { device, first: u32::from_le_bytes([a, b, c, d]) })
}

/// Random bytes of the system's.
pub(super) fn random() -> Result<[u8; 16], Failure> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Failure::failed(format!("/dev/urandom: {error}")))?;
    Ok(bytes)
}

pub(super) fn clear(file: &File, at: Sector) -> io::Result<()> {
    file.write_all_at(&[0; CLEARED], at.bytes())
}

/// Writes everything of a new array, each device by its path, superblocks last; when that fails what was made of
/// them goes again.
pub(super) fn write(all: &[(&Path, &File, &Made)]) -> Result<(), Failure> {
    let failed =
        |path: &Path, error: io::Error| Failure::failed(format!("{}: {error}", path.display()));
    for (path, file, made) in all {
        let beside = made.pieces.split_last().map_or(&[][..], |(_, beside)| beside);
        let written =
            beside.iter().try_for_each(|(at, bytes)| file.write_all_at(bytes, at.bytes()));
        written.and_then(|()| file.sync_all()).map_err(|error| failed(path, error))?;
    }
    let superblocks = all.iter().try_for_each(|(path, file, made)| {
        let Some((at, bytes)) = made.pieces.last() else { return Ok(()) };
        let written = file.write_all_at(bytes, at.bytes());
        written.and_then(|()| file.sync_all()).map_err(|error| failed(path, error))
    });
    if superblocks.is_err() {
        for (_, file, made) in all {
            // The first error is the one to tell.
            let _ = clear(file, Sector(made.superblock.super_offset));
        }
    }
    superblocks
}

pub(super) fn told(options: &Create, writes: bool, creation: &Creation, plan: &Plan) -> String {
    let made = if writes { "made" } else { "would be made" };
    let mut text = format!(
        "{}: {} of version {}, UUID {}, {made}\n",
        creation.name,
        creation.layout,
        creation.version,
        uuid(&creation.array)
    );
    let used = match plan.size {
        Sectors::ZERO => "each used to its end".to_owned(),
        size => format!("{} of each used", Size(size.bytes())),
    };
    text.push_str(&format!(
        "data start at {} of each member, {used}\n",
        Size(plan.data_offset.bytes())
    ));
    if let Ok(holds) = create_nested::holds(creation, plan) {
        let chunk = Size(creation.layout.chunk.bytes());
        let chunks = match creation.layout.level.has_chunks() {
            true => format!(", in chunks of {chunk}"),
            false => String::new(),
        };
        text.push_str(&format!("the array holds {}{chunks}\n", Size(holds.bytes())));
    }
    if let Some(bitmap) = &plan.bitmap {
        let bits = bitmap.bits().unwrap_or(0);
        text.push_str(&format!("bitmap: {bits} bits of {} each\n", Size(u64::from(bitmap.chunk))));
    }
    for (place, path) in options.members.iter().enumerate() {
        text.push_str(&format!("  member {place}  {}\n", path.display()));
    }
    for path in &options.spare {
        text.push_str(&format!("  spare     {}\n", path.display()));
    }
    if let (Some(path), Some(log)) = (&options.write_journal, &plan.journal) {
        let size = Size(Sectors(log.superblock.data_size).bytes());
        text.push_str(&format!("  journal   {}  {size}\n", path.display()));
    }
    text.push_str(begins(creation));
    if matches!(creation.version, Version::V0_90 | Version::V1_0) && !writes {
        text.push_str("the superblock is at the end: a file must not be lengthened afterwards\n");
    }
    text
}

/// What md does first.
pub(super) fn begins(creation: &Creation) -> &'static str {
    let parities = usize::from(creation.layout.parities());
    let missing = creation.devices.iter().filter(|device| device.is_none()).count();
    if creation.layout.survives() == 0 {
        ""
    } else if missing > 0 && !creation.spares.is_empty() {
        "md begins with a rebuild onto a spare, in the place of a missing member\n"
    } else if creation.assume_clean {
        "redundancy is taken to be consistent: md begins neither rebuild nor resync\n"
    } else if parities > 0 && missing == parities {
        "no member more may be lost: md begins neither rebuild nor resync\n"
    } else if creation.begins_with_rebuild() {
        "md begins with a rebuild of the last member that is there\n"
    } else {
        "md begins with a resync\n"
    }
}
