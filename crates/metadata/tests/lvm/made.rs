//! Physical volumes in memory with a RAID volume on them.

#[path = "../md/memory.rs"]
mod memory;

use raidlab_metadata::lvm::{Device, Group, Member, Members, Untold, Volume, look};
use raidlab_metadata::md::{Allowed, Assembly, Cannot, Inspected, assemble};

pub(crate) use memory::Disk;

/// Where the area of metadata begins, and its bytes; the first extent, and sectors of one.
pub(crate) const AREA: usize = 4096;
pub(crate) const ROOM: usize = 16 << 10;
pub(crate) const START: u64 = 64;
pub(crate) const EXTENT: u64 = 16;
/// Extents of a physical volume.
pub(crate) const EXTENTS: u64 = 10;
/// How many there are.
pub(crate) const COUNT: usize = 4;

/// Bit by bit from the polynomial, as LVM begins it.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = 0xf597_a6cf_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    crc
}

pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// The identity of a physical volume, without and with hyphens.
pub(crate) fn id(of: usize) -> (String, String) {
    let plain = format!("PV{of}abcDEFghi0123456789jklMNOpqrst");
    let plain = &plain[..32];
    let mut parts = Vec::new();
    let mut from = 0;
    for len in [6, 4, 4, 4, 4, 4, 6] {
        parts.push(&plain[from..from + len]);
        from += len;
    }
    (plain.to_owned(), parts.join("-"))
}

/// A volume of the group: `raids` and the ranges of each image as physical volume, first extent and extents. The
/// metadata of image `n` are extent `meta` of the physical volume that it begins on.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) kind: &'static str,
    pub(crate) seqno: u64,
    /// Extents of the volume.
    pub(crate) extents: u64,
    pub(crate) images: Vec<Vec<(usize, u64, u64)>>,
    pub(crate) flags: &'static str,
    pub(crate) image_flags: [&'static str; 5],
    pub(crate) segment: &'static str,
}

impl Made {
    /// A raid5 on the first three physical volumes, of two extents each.
    pub(crate) fn raid5() -> Self {
        Self {
            kind: "raid5_ls",
            seqno: 7,
            extents: 4,
            images: (0..3).map(|on| vec![(on, 1, 2)]).collect(),
            flags: "",
            image_flags: [""; 5],
            segment: "",
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "vg {{\nid = \"GROUP\"\nseqno = {}\nstatus = [\"READ\"]\nextent_size = {EXTENT}\nphysical_volumes {{\n",
            self.seqno
        );
        for of in 0..COUNT {
            text += &format!(
                "pv{of} {{\nid = \"{}\"\ndevice = \"/dev/{of}\"\nflags = []\n\
                 pe_start = {START}\npe_count = {EXTENTS}\n}}\n",
                id(of).1
            );
        }
        let count = self.images.len();
        let raids: Vec<String> =
            (0..count).map(|n| format!("\"lv_rmeta_{n}\", \"lv_rimage_{n}\"")).collect();
        text += &format!(
            "}}\nlogical_volumes {{\nlv {{\nid = \"VOLUME-0123456789\"\nstatus = [\"READ\"{}]\nsegment1 {{\n\
             start_extent = 0\nextent_count = {}\ntype = \"{}\"\ndevice_count = {count}\nstripe_size = 8\n{}\
             raids = [{}]\n}}\n}}\n",
            self.flags,
            self.extents,
            self.kind,
            self.segment,
            raids.join(", ")
        );
        for (n, image) in self.images.iter().enumerate() {
            text += &format!(
                "lv_rimage_{n} {{\nid = \"IMAGE{n}-0123456789\"\nstatus = [\"READ\"{}]\n",
                self.image_flags[n]
            );
            let mut start = 0;
            for (part, (on, from, extents)) in image.iter().enumerate() {
                text += &segment(part + 1, start, *extents, *on, *from);
                start += extents;
            }
            text += &format!(
                "}}\nlv_rmeta_{n} {{\nid = \"META{n}\"\n{}}}\n",
                segment(1, 0, 1, image[0].0, 0)
            );
        }
        text + "}\n}\n"
    }

    /// All physical volumes, with these superblocks and numbers of bits set on the members.
    pub(crate) fn disks(&self, members: &[Dm]) -> Vec<Disk> {
        let mut disks: Vec<Disk> = (0..COUNT).map(|of| physical(of, &self.text(), 600)).collect();
        for (image, one) in self.images.iter().zip(members) {
            let at = START as usize * 512;
            let disk = &mut disks[image[0].0].0;
            disk[at..at + (EXTENT * 512) as usize].copy_from_slice(&one.bytes());
        }
        disks
    }
}

fn segment(number: usize, start: u64, extents: u64, on: usize, from: u64) -> String {
    format!(
        "segment{number} {{\nstart_extent = {start}\nextent_count = {extents}\ntype = \"striped\"\nstripe_count = 1\n\
         stripes = [\"pv{on}\", {from}]\n}}\n"
    )
}

/// A physical volume whose text begins so many bytes behind the start of its area.
pub(crate) fn physical(of: usize, text: &str, offset: usize) -> Disk {
    let mut bytes = vec![0; ((START + EXTENT * EXTENTS) * 512) as usize];
    put(&mut bytes, 512, b"LABELONE");
    put(&mut bytes, 520, &1_u64.to_le_bytes());
    put(&mut bytes, 532, &32_u32.to_le_bytes());
    put(&mut bytes, 536, b"LVM2 001");
    put(&mut bytes, 544, id(of).0.as_bytes());
    let places = [START * 512, 0, 0, 0, AREA as u64, ROOM as u64, 0, 0];
    for (n, place) in places.iter().enumerate() {
        put(&mut bytes, 584 + 8 * n, &place.to_le_bytes());
    }
    let mut text = text.as_bytes().to_vec();
    text.push(0);
    put(&mut bytes, AREA + 4, b" LVM2 x[5A%r0N*>");
    put(&mut bytes, AREA + 20, &1_u32.to_le_bytes());
    for (n, word) in [AREA, ROOM, offset, text.len()].iter().enumerate() {
        put(&mut bytes, AREA + 24 + 8 * n, &(*word as u64).to_le_bytes());
    }
    put(&mut bytes, AREA + 56, &checksum(&text).to_le_bytes());
    let to_end = text.len().min(ROOM - offset);
    put(&mut bytes, AREA + offset, &text[..to_end]);
    put(&mut bytes, AREA + 512, &text[to_end..]);
    seal(&mut bytes);
    Disk(bytes)
}

/// Puts the checksums of label and area right.
pub(crate) fn seal(bytes: &mut [u8]) {
    let label = checksum(&bytes[532..1024]);
    put(bytes, 528, &label.to_le_bytes());
    let area = checksum(&bytes[AREA + 4..AREA + 512]);
    put(bytes, AREA, &area.to_le_bytes());
}

/// What stands in the metadata of an image.
#[derive(Clone)]
pub(crate) struct Dm {
    pub(crate) place: u32,
    pub(crate) members: u32,
    pub(crate) shape: (u32, u32, u32),
    pub(crate) events: u64,
    pub(crate) failed: u64,
    pub(crate) rebuilt: u64,
    pub(crate) synced: u64,
    pub(crate) flags: u32,
    pub(crate) incompatible: u32,
    pub(crate) sectors: u64,
    /// Bits that are set in the bitmap, of which each stands for 8 sectors.
    pub(crate) bits: u32,
    pub(crate) bitmap_events: u64,
    pub(crate) bitmap_state: u8,
}

impl Dm {
    pub(crate) fn new(place: u32, members: u32) -> Self {
        Self {
            place,
            members,
            shape: (5, 2, 8),
            events: 20,
            failed: 0,
            rebuilt: u64::MAX,
            synced: u64::MAX,
            flags: 0,
            incompatible: 0,
            sectors: 2 * EXTENT,
            bits: 0,
            bitmap_events: 20,
            bitmap_state: 0,
        }
    }

    pub(crate) fn all(members: u32) -> Vec<Self> {
        (0..members).map(|place| Self::new(place, members)).collect()
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; (EXTENT * 512) as usize];
        put(&mut bytes, 0, b"DmRd");
        for (at, word) in [(4, 1), (8, self.members), (12, self.place)] {
            put(&mut bytes, at, &word.to_le_bytes());
        }
        for (at, word) in [
            (16, self.events),
            (24, self.failed),
            (32, self.rebuilt),
            (40, self.synced),
            (112, self.sectors),
        ] {
            put(&mut bytes, at, &word.to_le_bytes());
        }
        let (level, layout, chunk) = self.shape;
        for (at, word) in
            [(48, level), (52, layout), (56, chunk), (60, self.flags), (144, self.incompatible)]
        {
            put(&mut bytes, at, &word.to_le_bytes());
        }
        put(&mut bytes, 4096, b"bitm");
        put(&mut bytes, 4100, &4_u32.to_le_bytes());
        put(&mut bytes, 4096 + 24, &self.bitmap_events.to_le_bytes());
        put(&mut bytes, 4096 + 40, &(2 * EXTENT).to_le_bytes());
        bytes[4096 + 48] = self.bitmap_state;
        put(&mut bytes, 4096 + 52, &4096_u32.to_le_bytes());
        // Those behind the last one that counts are set, as the kernel leaves them.
        bytes[4096 + 256..][..512].fill(0xff);
        bytes[4096 + 256] = 0xf0 | ((1_u8 << self.bits) - 1);
        bytes
    }
}

/// The group that the newest of these devices has.
pub(crate) fn group(disks: &mut [Disk]) -> Option<Group> {
    let groups = disks.iter_mut().filter_map(|disk| look(disk)?.group);
    groups.max_by_key(|group| group.seqno)
}

/// The one volume that can be told of.
pub(crate) fn volume(disks: &mut [Disk]) -> Result<Volume, String> {
    let group = group(disks).ok_or("no group")?;
    let mut all = group.volumes();
    all.pop().ok_or("no volume")?.1
}

/// The members of the volume, and what else was given.
pub(crate) fn found(disks: &mut [Disk]) -> Result<Members, Untold> {
    let volume = volume(disks).map_err(Untold::Why)?;
    let devices = disks.iter_mut().map(|disk| {
        let seen = look(disk).unwrap_or_default();
        Device { id: seen.id, seqno: seen.group.map(|group| group.seqno), source: disk }
    });
    let mut devices: Vec<_> = devices.collect();
    volume.members(&mut devices)
}

/// The members of the volume.
pub(crate) fn members(disks: &mut [Disk]) -> Result<Vec<Member>, String> {
    found(disks).map(|found| found.members).map_err(|untold| untold.to_string())
}

/// What they say of it.
pub(crate) fn told(disks: &mut [Disk]) -> Result<Vec<Inspected>, String> {
    Ok(members(disks)?.into_iter().map(|one| one.inspected).collect())
}

pub(crate) fn assembled(disks: &mut [Disk]) -> Result<Assembly, Cannot> {
    assemble(&told(disks).expect("can be told"), &Allowed::default())
}
