//! `raidlab array create` of nested levels: md stacks devices, so each lower array is an array of its own on its
//! files, and the upper one's superblocks lie in what the lower ones hold.

use std::path::{Path, PathBuf};

use raidlab_core::{Layout, Sector, Sectors};
use raidlab_engine::{Engine, FileMember, FileOptions, MdOptions, Member};
use raidlab_metadata::md::{Allowed, Creation, Made, Plan, Version, assemble, inspect};
use raidlab_metadata::{Source, Unreadable};

use super::args::{BitmapChoice, Create, Policy};
use super::create;
use super::status::capacity;
use super::targets::{Target, approve, targets};
use crate::failure::Failure;
use crate::output;

/// A lower array that is to be made.
struct Floor {
    creation: Creation,
    plan: Plan,
    targets: Vec<Option<Target>>,
    options: Create,
}

pub(super) fn run(options: &Create, layout: &Layout) -> Result<(), Failure> {
    check(options)?;
    let Some(inner) = layout.inner.as_deref() else {
        return Err(Failure::input(format!("{layout} has one floor")));
    };
    let mut targets = targets(options)?.into_iter();
    let mut floors = Vec::new();
    for number in 0..usize::from(layout.members) {
        let own: Vec<_> = targets.by_ref().take(usize::from(inner.members)).collect();
        let first = number * usize::from(inner.members);
        let paths = &options.members[first..first + own.len()];
        floors.push(floor(options, inner, (number, paths), own)?);
    }
    let upper = upper_options(options, layout, &floors);
    let creation = above(&upper, layout.upper(), &floors)?;
    let plan = creation.plan().map_err(Failure::input)?;
    let given: Vec<_> =
        floors.iter().flatten().flat_map(|floor| &floor.targets).flatten().collect();
    let writes = approve(options, &given)?;
    if writes {
        make(&mut floors, &plan)?;
    }
    let mut text = String::new();
    for floor in floors.iter().flatten() {
        text.push_str(&create::told(&floor.options, writes, &floor.creation, &floor.plan));
        text.push('\n');
    }
    text.push_str(&create::told(&upper, writes, &creation, &plan));
    output::print(&text)
}

/// What belongs to one array, and is not said of which.
fn check(options: &Create) -> Result<(), Failure> {
    let is_one = matches!(options.consistency, Some(Policy::Ppl | Policy::Journal));
    for (flag, is_given) in [
        ("--consistency ppl or journal", is_one),
        ("--spare", !options.spare.is_empty()),
        ("--size", options.size.is_some()),
        ("--data-offset", options.data_offset.is_some()),
        ("--ppl", options.ppl),
        ("--write-journal", options.write_journal.is_some()),
    ] {
        if is_given {
            let what = "belongs to one array, and nested levels are several";
            return Err(Failure::input(format!("{flag} {what}: leave it out")));
        }
    }
    if options.version() == Version::V0_90 {
        let what =
            "names no arrays, so that none could be told from the others: use 1.0, 1.1 or 1.2";
        return Err(Failure::input(format!("--metadata 0.90 {what}")));
    }
    Ok(())
}

/// The options of one array of several. A bitmap has only who has redundancy.
fn of_one(options: &Create, layout: &Layout, name: String, members: Vec<PathBuf>) -> Create {
    let bitmap = match layout.survives() {
        0 => BitmapChoice::None,
        _ => options.bitmap,
    };
    Create { bitmap, members, name: Some(name), uuid: None, ..options.clone() }
}

/// A lower array; `None` where all its members are missing.
fn floor(
    options: &Create,
    layout: &Layout,
    (number, paths): (usize, &[PathBuf]),
    targets: Vec<Option<Target>>,
) -> Result<Option<Floor>, Failure> {
    if targets.iter().all(Option::is_none) {
        return Ok(None);
    }
    let name = options.name.as_deref().unwrap_or("array");
    let options = of_one(options, layout, format!("{name}-{number}"), paths.to_vec());
    let creation = create::creation(&options, layout.clone(), &targets, (&[], None))?;
    let plan = creation.plan().map_err(Failure::input)?;
    Ok(Some(Floor { creation, plan, targets, options }))
}

fn upper_options(options: &Create, layout: &Layout, floors: &[Option<Floor>]) -> Create {
    let name = |floor: &Option<Floor>| match floor {
        Some(floor) => PathBuf::from(floor.options.name.as_deref().unwrap_or_default()),
        None => PathBuf::from(create::MISSING),
    };
    let names = floors.iter().map(name).collect();
    let own = options.name.clone().unwrap_or_else(|| "array".into());
    Create { uuid: options.uuid, ..of_one(options, &layout.upper(), own, names) }
}

/// The upper array, over what the lower ones will hold.
fn above(options: &Create, layout: Layout, floors: &[Option<Floor>]) -> Result<Creation, Failure> {
    let device = |floor: &Floor| create::device(holds(&floor.creation, &floor.plan)?);
    let devices = floors.iter().map(|floor| floor.as_ref().map(device).transpose());
    let devices = devices.collect::<Result<Vec<_>, Failure>>()?;
    let none: Vec<Option<Target>> = devices.iter().map(|_| None).collect();
    Ok(Creation { devices, ..create::creation(options, layout, &none, (&[], None))? })
}

/// How long the array will be.
pub(super) fn holds(creation: &Creation, plan: &Plan) -> Result<Sectors, Failure> {
    let made = plan.members.iter().zip(&creation.devices);
    let made = made.filter_map(|(made, device)| Some((made.as_ref()?, device.as_ref()?)));
    let inspected: Vec<_> =
        made.map(|(made, device)| inspect(&mut Blank { made, sectors: device.sectors })).collect();
    // Its log device is no part of what it holds.
    let allowed = Allowed { dirty_degraded: true, ignore_journal: true, ..Allowed::default() };
    let assembly = assemble(&inspected, &allowed).map_err(Failure::input)?;
    let sectors = Sectors::from_bytes(capacity(&assembly));
    sectors.ok_or_else(|| Failure::failed("an array does not end with a sector"))
}

impl Floor {
    fn there(&self) -> impl Iterator<Item = (&Target, &Made)> {
        let all = self.targets.iter().zip(&self.plan.members);
        all.filter_map(|(target, made)| Some((target.as_ref()?, made.as_ref()?)))
    }

    /// Writes what makes the array above of it, through the array itself.
    fn write_above(&self, made: &Made) -> Result<(), Failure> {
        let devices = self.there().map(|(target, _)| {
            let member = FileMember::open(&target.path, FileOptions::default());
            member.map(Member::from).map_err(Failure::failed)
        });
        let devices = devices.collect::<Result<Vec<_>, _>>()?;
        let allowed = Allowed { dirty_degraded: true, ..Allowed::default() };
        let wanted = MdOptions { allowed, run: true, ..MdOptions::default() };
        let (mut engine, _) = Engine::assemble_md(devices, &wanted)?;
        for (at, bytes) in &made.pieces {
            engine.write_at(*at, bytes)?;
            // The superblock is the last.
            engine.flush()?;
        }
        engine.stop().map_err(Failure::failed)
    }
}

/// Writes the lower arrays, then the upper one through them; when that fails what was made goes again.
fn make(floors: &mut [Option<Floor>], plan: &Plan) -> Result<(), Failure> {
    let there: Vec<_> = floors.iter().flatten().flat_map(Floor::there).collect();
    there.iter().try_for_each(|(target, _)| target.clear_old())?;
    let pieces: Vec<_> = there
        .iter()
        .map(|(target, made)| (target.path.as_path(), &target.file, *made))
        .collect::<Vec<(&Path, _, _)>>();
    create::write(&pieces)?;
    for target in floors.iter_mut().flatten().flat_map(|floor| &mut floor.targets).flatten() {
        // From here on the arrays have them.
        target.claim = None;
    }
    let above = floors.iter().zip(&plan.members);
    let mut above = above.filter_map(|(floor, made)| Some((floor.as_ref()?, made.as_ref()?)));
    let written = above.try_for_each(|(floor, made)| floor.write_above(made));
    if written.is_err() {
        for (target, made) in floors.iter().flatten().flat_map(Floor::there) {
            // The first error is the one to tell.
            let _ = create::clear(&target.file, Sector(made.superblock.super_offset));
        }
    }
    written
}

/// A device on which nothing stands but what makes it a member.
struct Blank<'a> {
    made: &'a Made,
    sectors: Sectors,
}

impl Source for Blank<'_> {
    fn sectors(&self) -> Sectors {
        self.sectors
    }

    fn logical_block(&self) -> u32 {
        1
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        into.fill(0);
        let (from, to) = (at.bytes(), at.bytes() + into.len() as u64);
        for (start, bytes) in &self.made.pieces {
            let (start, end) = (start.bytes(), start.bytes() + bytes.len() as u64);
            let (first, last) = (from.max(start), to.min(end));
            if first < last {
                into[(first - from) as usize..(last - from) as usize]
                    .copy_from_slice(&bytes[(first - start) as usize..(last - start) as usize]);
            }
        }
        Ok(())
    }
}
