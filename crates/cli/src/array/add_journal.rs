//! `raidlab array add --journal`: a journal for an array that has none and does not run.

use std::path::{Path, PathBuf};

use raidlab_core::{Sectors, Size};
use raidlab_engine::{Member, add_md_journal};
use raidlab_metadata::md::AddedJournal;

use super::disk::look;
use super::examine::uuid;
use super::running::args::Add;
use super::running::{consent, device, not_itself};
use crate::failure::Failure;
use crate::output;

pub(super) fn run(options: &Add, log: &Path) -> Result<(), Failure> {
    let first = PathBuf::from(&options.running.array);
    let paths: Vec<PathBuf> = [first].into_iter().chain(options.devices.iter().cloned()).collect();
    if let [only] = paths.as_slice() {
        let log = log.display();
        return Err(Failure::input(format!(
            "--journal: an array gets a journal while it does not run: stop {}, and give all its members, as in \
             `raidlab array add --journal {log} MEMBER MEMBER MEMBER`",
            only.display()
        )));
    }
    let array = paths.iter().find_map(|path| Some(look(path).ok()?.superblock()?.array));
    let mut members = paths.iter().map(|path| device(path)).collect::<Result<Vec<Member>, _>>()?;
    not_itself(log)?;
    consent(log, options.overwrite, &array.unwrap_or_default())?;
    let mut log_device = device(log)?;
    let added = add_md_journal(&mut members, &mut log_device, options.destructive);
    let added = added.map_err(Failure::failed)?;
    output::print(&told(options.destructive, (&paths, log), &added))
}

fn told(is_done: bool, (paths, log): (&[PathBuf], &Path), added: &AddedJournal) -> String {
    let joined = &added.joined;
    let has = if is_done { "has a journal now" } else { "would get a journal" };
    let mut text =
        format!("{}: {}, UUID {}, {has}\n", joined.name, joined.layout, uuid(&joined.array));
    let places = joined.order.iter().enumerate();
    for (place, path) in places.filter_map(|(place, given)| Some((place, paths.get((*given)?)?))) {
        text.push_str(&format!("  member {place}  {}\n", path.display()));
    }
    for path in joined.spares.iter().filter_map(|given| paths.get(*given)) {
        text.push_str(&format!("  spare     {}\n", path.display()));
    }
    let size = Size(Sectors(added.superblock.data_size).bytes());
    text.push_str(&format!("  journal   {}  {size}\n", log.display()));
    for out in joined.out.iter().filter(|out| !joined.spares.contains(&out.given)) {
        text.push_str(&format!("  not used  {}\n", out.told(&paths[out.given].display())));
    }
    if !is_done {
        text.push_str(
            "nothing was written; --destructive does it, and what is on the log device is lost\n",
        );
    }
    text
}
