//! An array that is found on its members, opened for reading only.

use std::path::{Path, PathBuf};

use raidlab_core::Sectors;
use raidlab_engine::{Engine, FileMember, FileOptions, Member};
use raidlab_metadata::md::{Allowed, Assembly, Cannot, Inspected, Out, assemble};

use super::args::Members;
use super::disk::look;
use crate::failure::Failure;

/// What was found on the devices that were given.
pub(super) struct Found {
    pub(super) paths: Vec<PathBuf>,
    pub(super) inspected: Vec<Inspected>,
    pub(super) decision: Result<Assembly, Cannot>,
}

impl Found {
    /// Looks at all devices, and decides.
    pub(super) fn new(options: &Members) -> Result<Self, Failure> {
        let paths = options.members.clone();
        for path in &options.without {
            if !paths.contains(path) {
                let what = "is not among the members given, so it cannot be left out";
                return Err(Failure::input(format!("--without: {} {what}", path.display())));
            }
        }
        let inspected = paths.iter().map(|path| look(path)).collect::<Result<Vec<_>, _>>()?;
        let without =
            (0..paths.len()).filter(|one| options.without.contains(&paths[*one])).collect();
        let (dirty_degraded, ignore_journal) =
            (options.allow_dirty_degraded, options.ignore_journal);
        let allowed = Allowed { dirty_degraded, ignore_journal, without, zones: options.zones };
        let decision = assemble(&inspected, &allowed);
        Ok(Self { paths, inspected, decision })
    }

    /// What is to be assembled.
    pub(super) fn assembly(&self) -> Result<&Assembly, Failure> {
        self.decision.as_ref().map_err(|cannot| Failure::failed(self.why(cannot)))
    }

    /// Why there is no array, with what is to be said of each device.
    pub(super) fn why(&self, cannot: &Cannot) -> String {
        let out = match cannot {
            Cannot::NoMember(out) | Cannot::TooFew { out, .. } => &out[..],
            _ => &[],
        };
        let lines = out.iter().map(|out| format!("\n  {}", self.told(out)));
        let halves = match cannot {
            Cannot::Diverged(one, other) => {
                let names = |of: &[usize]| {
                    let names: Vec<_> =
                        of.iter().map(|one| self.paths[*one].display().to_string()).collect();
                    names.join(", ")
                };
                format!("\n  newer: {}\n  other: {}", names(one), names(other))
            }
            _ => String::new(),
        };
        format!("{cannot}{}{halves}", lines.collect::<String>())
    }

    /// A device that is not in service, in words.
    pub(super) fn told(&self, out: &Out) -> String {
        let of = out.place.map_or_else(String::new, |place| format!(" (member {place})"));
        format!("{}{of}: {}", self.paths[out.given].display(), out.why)
    }

    /// The array, for reading. Its members are open for reading only.
    pub(super) fn engine(&self) -> Result<Engine, Failure> {
        let assembly = self.assembly()?;
        let open = |(given, data_offset, sectors): (Option<usize>, Sectors, Sectors)| {
            given.map(|given| member(&self.paths[given], data_offset, sectors)).transpose()
        };
        let places = assembly.places.iter().map(|one| (one.given, one.data_offset, one.sectors));
        let members = places.map(open).collect::<Result<Vec<_>, _>>()?;
        let bad: Vec<_> = assembly.places.iter().flat_map(|one| one.bad.iter().copied()).collect();
        Engine::read_only(&assembly.config(), members, &bad).map_err(Failure::failed)
    }
}

fn member(path: &Path, data_offset: Sectors, sectors: Sectors) -> Result<Member, Failure> {
    // Through the page cache: any sector may be read alone.
    let options = FileOptions {
        data_offset,
        sectors: Some(sectors),
        direct: false,
        read_only: true,
        ..FileOptions::default()
    };
    FileMember::open(path, options).map(Member::from).map_err(Failure::failed)
}
