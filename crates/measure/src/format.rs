//! What the members of a study's arrays carry besides data: the one place where that is decided.
//!
//! Metadata 1.2 of Linux md wherever md has such an array, so that what is measured is the array that would be handed
//! over: data lie where md would have them, and the records that go with writes are md's. Where it has none, raidlab's
//! own format serves arrays that keep records, and those that keep none carry nothing.

use std::fmt;

use raidlab_core::{Consistency, Sectors};
use raidlab_engine::log_device_sectors;
use raidlab_metadata::md::{Creation, Device, LogDevice, Version, WantedBitmap};
use raidlab_study::NamedLayout;

/// What an array on real members is called, so that one that a killed run left on devices tells where it is from.
const NAME: &str = "raidlab-study";
/// Sectors of the journal's blocks.
const PAGE: u64 = 8;

/// What the members of an array carry besides data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberFormat {
    /// Metadata 1.2 of Linux md.
    Md(Box<MdMembers>),
    /// raidlab's own metadata; why not md's.
    Own(String),
    /// Nothing; why not md's metadata.
    Nothing(String),
}

/// Members that carry md's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MdMembers {
    /// The array, without identities.
    pub creation: Creation,
    /// Where data start on each member.
    pub data_offset: Sectors,
    /// Sectors of data on each member.
    pub data: Sectors,
    /// Sectors of the log device.
    pub log: Option<Sectors>,
}

impl MemberFormat {
    /// What members of so many sectors carry.
    pub fn of(named: &NamedLayout, member: Sectors) -> Self {
        match MdMembers::new(named, member) {
            Ok(members) => Self::Md(Box::new(members)),
            Err(why) if named.settings.consistency.has_superblocks() => Self::Own(why),
            Err(why) => Self::Nothing(why),
        }
    }

    /// Sectors that a log device must have; `None` where there is none.
    pub fn log_sectors(&self, consistency: Consistency) -> Option<Sectors> {
        match self {
            Self::Md(members) => members.log,
            Self::Own(_) | Self::Nothing(_) => log_device_sectors(consistency),
        }
    }

    /// Whether md's superblocks are on members while the array is used.
    pub const fn is_md(&self) -> bool {
        matches!(self, Self::Md(_))
    }
}

impl fmt::Display for MemberFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Md(_) => f.write_str("Linux md 1.2"),
            Self::Own(why) => write!(f, "raidlab's own ({why})"),
            Self::Nothing(why) => write!(f, "none ({why})"),
        }
    }
}

impl MdMembers {
    /// The array on members of so many sectors; else why md has none such.
    fn new(named: &NamedLayout, member: Sectors) -> Result<Self, String> {
        let (layout, consistency) = (&named.layout, named.settings.consistency);
        if layout.drives() == 1 {
            return Err("a single drive is no array".into());
        }
        if consistency == Consistency::None && layout.survives() > 0 {
            return Err("md always records whether redundancy is consistent".into());
        }
        let devices = vec![member; layout.members.into()];
        let without = md_creation(named, &devices, None);
        let plan = without.plan().map_err(|error| error.to_string())?;
        let (creation, log) = match consistency {
            Consistency::Journal { sectors } => {
                let log = Sectors((plan.data_offset + sectors).0.next_multiple_of(PAGE));
                (md_creation(named, &devices, Some(log)), Some(log))
            }
            _ => (without, None),
        };
        let plan = creation.plan().map_err(|error| error.to_string())?;
        let data = match plan.size {
            Sectors::ZERO => member - plan.data_offset,
            size => size,
        };
        Ok(Self { creation, data_offset: plan.data_offset, data, log })
    }
}

/// A layout of a study as an array of md's on these devices, each of so many sectors, and on a log device where one is
/// given: redundancy is kept consistent in md's way as the study says. Identities are left out, and redundancy is taken
/// to be consistent.
pub fn md_creation(named: &NamedLayout, devices: &[Sectors], log: Option<Sectors>) -> Creation {
    let device = |sectors| Device { sectors, id: [0; 16] };
    let consistency = named.settings.consistency;
    Creation {
        layout: named.layout.clone(),
        version: Version::V1_2,
        devices: devices.iter().map(|sectors| Some(device(*sectors))).collect(),
        spares: Vec::new(),
        bitmap: match consistency {
            Consistency::Bitmap { chunk } => WantedBitmap::Chunk(chunk),
            _ => WantedBitmap::None,
        },
        ppl: matches!(consistency, Consistency::PartialParity { .. }),
        journal: log.map(|sectors| LogDevice { device: device(sectors), first: 0 }),
        assume_clean: true,
        data_offset: None,
        size: None,
        array: [0; 16],
        name: NAME.into(),
        now: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Layouts of a study, a line for each.
    fn layouts(lines: &[&str]) -> Vec<NamedLayout> {
        let all: Vec<String> = lines.iter().map(|line| format!("{{ {line} }}")).collect();
        let text = format!(
            "title = \"t\"\ndrives = [{{ name = \"d\", file = \"64MiB\", count = 8 }}]\n\
             layouts = [{}]\nworkloads = [{{ kind = \"dd-read\", size = \"1MiB\" }}]\n",
            all.join(", ")
        );
        raidlab_study::parse(&text, "study.toml").expect("a study").layouts
    }

    fn format(line: &str) -> MemberFormat {
        MemberFormat::of(&layouts(&[line])[0], Sectors(64 << 11))
    }

    /// Every level of md's, in each mode that the level has, carries md's metadata.
    #[test]
    fn what_md_has_is_kept_as_md_keeps_it() {
        let mut seen = 0;
        for level in [
            "level = \"raid1\", members = 3",
            "level = \"raid10\", members = 4, far = 2",
            "level = \"raid10\", members = 5, offset = 2",
            "level = \"raid4\", members = 4",
            "level = \"raid5\", members = 3",
            "level = \"raid5\", members = 5, rotation = \"parity-first\"",
            "level = \"raid6\", members = 6, rotation = \"right-asymmetric\"",
        ] {
            let modes: &[&str] = match level {
                level if level.contains("raid5") => &["resync", "bitmap", "ppl", "journal"],
                level if level.contains("raid4") || level.contains("raid6") => {
                    &["resync", "bitmap", "journal"]
                }
                _ => &["resync", "bitmap"],
            };
            for mode in modes {
                let size = if *mode == "journal" { ", journal_size = \"8MiB\"" } else { "" };
                let line = format!("{level}, consistency = \"{mode}\"{size}");
                let found = format(&line);
                let MemberFormat::Md(members) = &found else { panic!("{line}: {found}") };
                assert_eq!(members.log.is_some(), *mode == "journal", "{line}");
                assert!(members.data + members.data_offset <= Sectors(64 << 11), "{line}");
                seen += 1;
            }
        }
        assert_eq!(seen, 20);
        for line in ["level = \"raid0\", members = 2", "level = \"linear\", members = 3"] {
            assert!(format(line).is_md(), "{line}: md's superblocks never change");
        }
    }

    #[test]
    fn what_md_does_not_have_says_why() {
        for (line, told) in [
            ("level = \"single\"", "none (a single drive is no array)"),
            (
                "level = \"raid5\", members = 3",
                "none (md always records whether redundancy is consistent)",
            ),
            (
                "level = \"raid3\", members = 3, consistency = \"resync\"",
                "raidlab's own (Linux md has no raid3)",
            ),
            (
                "level = \"raid5+0\", arrays = 2, members = 6",
                "none (md always records whether redundancy is consistent)",
            ),
        ] {
            assert_eq!(format(line).to_string(), told, "{line}");
        }
        let chunk = "level = \"raid10\", members = 4, chunk = \"2KiB\", consistency = \"resync\"";
        assert!(format(chunk).to_string().contains("md takes no chunk of 2KiB"));
        let small = &layouts(&["level = \"raid5\", members = 3, consistency = \"ppl\""])[0];
        let told = MemberFormat::of(small, Sectors(2 << 11)).to_string();
        assert!(told.starts_with("raidlab's own (a member of 2MiB is too small"), "{told}");
    }

    /// The study's own chunk of the bitmap, and its journal behind where members' data start.
    #[test]
    fn md_keeps_it_consistent_as_the_study_says() {
        let of = |line: &str| match format(line) {
            MemberFormat::Md(members) => members,
            other => panic!("{line}: {other}"),
        };
        // A mode has its own records and no others.
        for (mode, records) in [
            ("resync", [false; 3]),
            ("bitmap", [true, false, false]),
            ("ppl", [false, true, false]),
            ("journal", [false, false, true]),
        ] {
            let line = format!("level = \"raid5\", members = 3, consistency = \"{mode}\"");
            let creation = of(&line).creation;
            let has_bitmap = creation.bitmap != WantedBitmap::None;
            assert_eq!([has_bitmap, creation.ppl, creation.journal.is_some()], records, "{mode}");
            assert!(creation.assume_clean, "{mode}: members are filled before");
        }
        let bitmap = "consistency = \"bitmap\", bitmap_chunk = \"1MiB\"";
        let members = of(&format!("level = \"raid1\", members = 2, {bitmap}"));
        let plan = members.creation.plan().expect("possible");
        assert_eq!(plan.bitmap.map(|bitmap| bitmap.chunk), Some(1 << 20));
        let journal = "consistency = \"journal\", journal_size = \"16MiB\"";
        let members = of(&format!("level = \"raid6\", members = 4, {journal}"));
        assert_eq!(members.log, Some(members.data_offset + Sectors(16 << 11)));
        let plan = members.creation.plan().expect("possible");
        let log = plan.journal.expect("a log device").superblock;
        assert_eq!(log.data_size, 16 << 11);
    }
}
