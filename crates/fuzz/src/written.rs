//! Records written to the members of an array and read back, in every format.

use raidlab_core::consistency::{ArrayId, Finding, MetaArea};
use raidlab_core::contract::{MemberBits, MetaIo, Record, SegmentList, Superblock};
use raidlab_core::{Config, Consistency, Layout, MemberIndex, Sector, Sectors};
use raidlab_metadata::md::{ALL, Bitmap, BitmapSeen, Creation, Md, Version, WantedBitmap, inspect};
use raidlab_metadata::{Looked, MetadataFormat, Own, RecordWriter};

use crate::device::{Device, SECTOR};
use crate::script::Script;

const ARRAY: ArrayId = [7; 16];
/// Sectors of a member: as few as md makes arrays of, and as many as have room for records.
const OF_MD: u64 = 8192;
const OF_OWN: u64 = 256;
/// The most steps of a script.
const MOST_STEPS: usize = 48;
/// Sectors that a bit of the bitmap stands for.
const CHUNK: u64 = 8;
/// A byte that nobody writes.
const NOT_OURS: u8 = 0xa5;

/// What is known of a member.
#[derive(Clone, Debug, Default)]
struct Written {
    superblock: Option<Superblock>,
    pages: Vec<Option<u64>>,
    /// Sectors of which the last bytes are nobody's, and from which byte on.
    not_ours: Vec<(u64, usize)>,
}

/// An array, its members, and what was written to them.
struct Members<'a> {
    version: Option<Version>,
    has_bitmap: bool,
    writer: RecordWriter,
    disks: Vec<Device<'a>>,
    written: Vec<Written>,
    /// Devices so far: the identity of the next.
    devices: u8,
}

/// Superblocks and pages of the bitmap are written to the members of an array as the core hands them over, fresh
/// devices come in places of members, and writing goes on by what is found. What is read back is what was written, as
/// far as the format can say it; bytes that nobody understands stay.
pub fn written(data: &[u8]) {
    let mut script = Script::new(data);
    let names = ["raid1(3)", "raid5(3) chunk=4K", "raid6(4) chunk=4K", "raid10(4) chunk=4K"];
    let version = [None, Some(0), Some(1), Some(2), Some(3)][script.below(5)];
    let version = version.map(|index| Version::ALL[index]);
    let layout: Layout = names[script.below(names.len())].parse().expect("a layout");
    let image = vec![0; (if version.is_some() { OF_MD } else { OF_OWN } * SECTOR as u64) as usize];
    let Some(mut members) = Members::new(version, &layout, script.flag(), &image) else { return };
    for _ in 0..MOST_STEPS {
        if script.is_over() {
            break;
        }
        members.step(&mut script);
        members.judge();
    }
}

impl<'a> Members<'a> {
    fn new(
        version: Option<Version>,
        layout: &Layout,
        has_bitmap: bool,
        image: &'a [u8],
    ) -> Option<Self> {
        let members = layout.members;
        let mut disks = vec![Device::new(image); usize::from(members)];
        let mut written = vec![Written::default(); usize::from(members)];
        let mut data = Sectors(128);
        if let Some(version) = version {
            let device = |place: u16| {
                let (sectors, id) = (Sectors(OF_MD), [place as u8 + 1; 16]);
                Some(raidlab_metadata::md::Device { sectors, id })
            };
            let creation = Creation {
                version,
                devices: (0..members).map(device).collect(),
                spares: Vec::new(),
                layout: layout.clone(),
                bitmap: if has_bitmap { WantedBitmap::Internal } else { WantedBitmap::None },
                ppl: false,
                journal: None,
                assume_clean: true,
                data_offset: None,
                size: None,
                array: ARRAY,
                name: if version == Version::V0_90 { "md7".into() } else { "fuzz".into() },
                now: 1,
            };
            let plan = creation.plan().ok()?;
            data = plan.size;
            for ((disk, made), known) in disks.iter_mut().zip(&plan.members).zip(&mut written) {
                let made = made.as_ref()?;
                for (at, bytes) in &made.pieces {
                    put(disk, known, at.0, bytes, made.superblock.len());
                }
            }
        }
        let chunk = Sectors(CHUNK);
        let consistency =
            if has_bitmap { Consistency::Bitmap { chunk } } else { Consistency::Resync };
        let mut config = Config::uniform(layout.clone(), data);
        config.settings.consistency = consistency;
        let array = raidlab_core::Array::new(&config).ok()?;
        let area = MetaArea::of(&array, consistency, data);
        let writer = RecordWriter::new(ARRAY, &config, &area);
        let devices = members as u8;
        let mut all = Self { version, has_bitmap, writer, disks, written, devices };
        for member in 0..members {
            all.begin(MemberIndex(member));
        }
        Some(all)
    }

    fn md(&self) -> Option<Md> {
        self.version.map(|_| Md { block: 1 })
    }

    /// A member of a new array: its pages are what stands there.
    fn begin(&mut self, member: MemberIndex) {
        if self.version.is_none() {
            let total = Sectors(self.disks[member.at()].sectors);
            self.writer.set_places(member, self.writer.blank(member, total));
            let mut head = vec![0; Own.head()];
            for at in Own.superblocks(total) {
                self.writer.encode_vacant(&mut head, member, at);
                self.disks[member.at()].write(at.0, &head);
            }
            self.written[member.at()].pages = vec![None; usize::from(self.has_bitmap)];
            return;
        }
        let looked = self.look(member);
        let pages = looked.examined.bitmap.iter();
        self.written[member.at()].pages = pages.map(|page| page.whole().copied()).collect();
        self.writer.know(member, &looked);
    }

    fn look(&mut self, member: MemberIndex) -> Looked {
        match self.md() {
            Some(md) => md.examine(&mut self.disks[member.at()]),
            None => Own.examine(&mut self.disks[member.at()]),
        }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let member = MemberIndex(script.below(self.disks.len()) as u16);
        match script.below(8) {
            0..4 => {
                let said = self.said(script);
                self.write(member, Record::Superblock(said));
                self.written[member.at()].superblock = Some(said);
            }
            4 | 5 => {
                let pages = self.written[member.at()].pages.len();
                if pages > 0 {
                    let (page, bits) = (script.below(pages), script.word());
                    self.write(member, Record::BitmapPage { page: page as u32, bits });
                    self.written[member.at()].pages[page] = Some(bits);
                }
            }
            6 => self.exchange(member),
            // It goes on being written by what is found on it.
            _ => {
                let looked = self.look(member);
                if looked.examined.superblock.whole().is_some() {
                    self.writer.know(member, &looked);
                }
            }
        }
    }

    /// A state of the array that the core may hand over.
    fn said(&self, script: &mut Script<'_>) -> Superblock {
        let all = (1 << self.disks.len()) - 1;
        let failed = u64::from(script.byte()) & all;
        let rebuilding = u64::from(script.byte()) & all & !failed;
        let flags = script.byte();
        let place =
            |script: &mut Script<'_>| Sector(if script.flag() { ALL } else { script.word() >> 10 });
        let is_rebuilding = rebuilding != 0;
        Superblock {
            // Beyond 2^62 the own format takes no number for one.
            events: 1 + script.word() / 8,
            failed: [failed, 0],
            rebuilding: [rebuilding, 0],
            clean: flags & 1 == 1,
            by_bitmap: flags & 2 != 0 && is_rebuilding && self.has_bitmap,
            synced_to: place(script),
            rebuilt_to: if is_rebuilding { Sector(script.word() >> 10) } else { Sector(0) },
            bitmap_since: script.word() / 8,
            ..Superblock::default()
        }
    }

    fn write(&mut self, member: MemberIndex, record: Record) {
        let (at, payload) = (Sector(0), SegmentList::EMPTY);
        let meta = MetaIo { member, record, at, payload, flush: false, fua: true };
        let md = self.md();
        let format: &dyn MetadataFormat = md.as_ref().map_or(&Own, |md| md);
        let mut head = vec![0; format.head()];
        for part in 0.. {
            let none = (part, 0, &mut std::iter::empty() as &mut dyn Iterator<Item = &[u8]>);
            let put = self.writer.encode(format, &mut head, &meta, none).expect("it has room");
            self.disks[member.at()].write(put.at.0, &head[..put.bytes]);
            if !put.more {
                return;
            }
        }
    }

    /// A fresh device in the place of a member, made like another one.
    fn exchange(&mut self, member: MemberIndex) {
        let (mut known, mut fresh) = (Written::default(), Device::new(self.disks[0].image));
        let Some(md) = self.md() else {
            self.disks[member.at()] = fresh;
            self.written[member.at()] = known;
            return self.begin(member);
        };
        let model = MemberIndex((member.0 + 1) % self.disks.len() as u16);
        self.devices = self.devices.wrapping_add(1);
        let model_of = self.writer.places(model).clone();
        let numbers = self.writer.device_numbers();
        // There are only so many numbers, of version 0.90.
        let Ok(ready) = md.ready(&mut fresh, &model_of, numbers, [self.devices; 16]) else {
            return;
        };
        for (at, bytes) in &ready.pieces {
            fresh.write(at.0, bytes);
        }
        known.pages.clone_from(&self.written[model.at()].pages);
        self.disks[member.at()] = fresh;
        self.written[member.at()] = known;
        self.writer.set_places(member, ready.places);
    }

    fn judge(&mut self) {
        for member in (0..self.disks.len()).map(|member| MemberIndex(member as u16)) {
            let looked = self.look(member);
            let known = &self.written[member.at()];
            for (at, from) in &known.not_ours {
                let rest = &self.disks[member.at()].sector(*at)[*from..];
                assert!(rest.iter().all(|byte| *byte == NOT_OURS), "{member}: {at}");
            }
            let Some(said) = known.superblock else { continue };
            let found = looked.examined.superblock.whole().map(|carried| carried.superblock);
            let is = |bits: MemberBits| bits[0] >> member.0 & 1 == 1;
            match self.version {
                None => assert_eq!(found, Some(said)),
                Some(Version::V0_90) if is(said.failed) || is(said.rebuilding) => {
                    assert_eq!(looked.examined.superblock, Finding::Blank, "{member}: {said:?}");
                    continue;
                }
                Some(_) if is(said.failed) => {
                    assert_eq!(looked.examined.superblock, Finding::Blank, "{member}: {said:?}");
                    continue;
                }
                Some(version) => {
                    let found = found.unwrap_or_else(|| panic!("{member}: {:?}", looked.examined));
                    assert_eq!(found, self.as_md_says(version, member, &said, &found));
                    self.judge_head(member, &said);
                }
            }
            let pages = looked.examined.bitmap.iter().zip(&known.pages);
            for (found, bits) in pages.filter_map(|(found, bits)| Some((found, (*bits)?))) {
                assert_eq!(found, &Finding::Whole(bits), "{member}");
            }
        }
    }

    /// The head of a bitmap is of the same state as the superblock.
    fn judge_head(&self, member: MemberIndex, said: &Superblock) {
        let seen = inspect(&mut self.disks[member.at()].clone()).bitmap;
        let events = match seen {
            BitmapSeen::Found(head, Some(_)) => Some((head.events, head.events_cleared)),
            _ => None,
        };
        let due = (said.events, said.bitmap_since.min(said.events));
        assert_eq!(events, self.has_bitmap.then_some(due), "{member}: {said:?}");
    }

    /// What of a state is told by md's superblock of a member in service; a history is that of the format.
    fn as_md_says(
        &self,
        version: Version,
        member: MemberIndex,
        said: &Superblock,
        found: &Superblock,
    ) -> Superblock {
        let is_rebuilt = said.rebuilding[0] >> member.0 & 1 == 1;
        let is_v0 = version == Version::V0_90;
        let synced = match said.synced_to.0 {
            to if !said.clean => (to, 0),
            ALL => (ALL, ALL),
            to if is_v0 => (to, u64::from(u32::try_from(to).unwrap_or(0))),
            to => (to, to),
        };
        let out = if is_v0 { said.failed[0] | said.rebuilding[0] } else { said.failed[0] };
        Superblock {
            events: said.events,
            failed: [out, 0],
            rebuilding: [u64::from(is_rebuilt) << member.0, 0],
            clean: synced.1 > 0,
            by_bitmap: is_rebuilt && said.by_bitmap,
            synced_to: Sector(synced.1),
            rebuilt_to: if is_rebuilt { said.rebuilt_to } else { Sector(0) },
            bitmap_since: if self.has_bitmap {
                said.bitmap_since.min(said.events)
            } else {
                said.events
            },
            ..*found
        }
    }
}

/// A piece of a new array, with what is not the program's where the format leaves it alone.
fn put(disk: &mut Device<'_>, known: &mut Written, at: u64, bytes: &[u8], superblock: usize) {
    let mut bytes = bytes.to_vec();
    if let Some(head) = Bitmap::parse(&bytes) {
        // As many bits as make pages in more than one sector.
        Bitmap { chunk: SECTOR as u32, ..head }.emit(&mut bytes);
    } else if superblock < SECTOR && bytes.len() >= SECTOR && bytes[..4] == [0xfc, 0x4e, 0x2b, 0xa9]
    {
        bytes[superblock..SECTOR].fill(NOT_OURS);
        known.not_ours.push((at, superblock));
    }
    disk.write(at, &bytes);
}
