//! Containers of DDF: which header, which disk and which part is believed; and any bytes at all, under right checksums.

use raidlab_core::{Sector, Sectors};
use raidlab_metadata::md::ddf::{Array, Ddf, arrays, look};
use raidlab_metadata::md::{Allowed, Cannot, Inspected, Role, assemble, inspect};

use crate::device::{Disk, Numbers, SECTORS};

/// Where the primary header stands, and the secondary one.
const HEADERS: [u64; 2] = [1000, 2000];
/// Parts behind a header: first sector, sectors, and what they begin with.
const PARTS: [(u32, u32, u32); 4] =
    [(1, 1, 0x2222_2222), (2, 1, 0xdddd_dddd), (3, 4, 0xeeee_eeee), (7, 1, 0x3333_3333)];
/// Parts that a configuration has room for; a record of two sectors.
const MOST: usize = 16;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Bit by bit from the polynomial.
fn seal(bytes: &mut [u8]) {
    put(bytes, 4, &[0xff; 4]);
    let mut crc = 0_u32;
    for byte in &*bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    put(bytes, 4, &crc.to_be_bytes());
}

/// One of four disks of a container with a raid5 of all and a raid10, each of 100 sectors of a disk.
struct Made {
    own: u32,
    sequence: u32,
    /// States of the disks.
    states: [u16; 4],
    /// State of the arrays.
    array: u8,
    open: bool,
}

impl Made {
    fn new(own: u32) -> Self {
        Self { own, sequence: 5, states: [1; 4], array: 0, open: false }
    }

    fn configuration(&self, raid10: bool) -> Vec<u8> {
        let mut record = vec![0xff; 1024];
        put(&mut record, 0, &PARTS[2].2.to_be_bytes());
        put(&mut record, 8, &[if raid10 { 2 } else { 1 }; 24]);
        put(&mut record, 36, &self.sequence.to_be_bytes());
        let count: u16 = if raid10 { 2 } else { 4 };
        put(&mut record, 64, &count.to_be_bytes());
        // A chunk of 8 sectors; raid1 twice, striped, or raid5 as Linux has it.
        let mirror = (self.own / 2) as u8;
        put(&mut record, 66, &if raid10 { [3, 1, 0, 2, mirror, 0] } else { [3, 5, 3, 1, 0, 0xff] });
        put(&mut record, 72, &100_u64.to_be_bytes());
        for part in 0..count {
            let disk = u32::from(part) + if raid10 { 2 * u32::from(mirror) } else { 0 };
            let (reference, at) = (0x100 + disk, if raid10 { 200_u64 } else { 50 });
            put(&mut record, 512 + 4 * usize::from(part), &reference.to_be_bytes());
            put(&mut record, 512 + 4 * MOST + 8 * usize::from(part), &at.to_be_bytes());
        }
        record
    }

    fn header(&self, kind: u8) -> Vec<u8> {
        let mut header = vec![0xff; 512];
        put(&mut header, 0, &0xde11_de11_u32.to_be_bytes());
        put(&mut header, 8, &[9; 24]);
        put(&mut header, 40, &self.sequence.to_be_bytes());
        header[48] = self.open.into();
        put(&mut header, 96, &HEADERS[0].to_be_bytes());
        put(&mut header, 104, &HEADERS[1].to_be_bytes());
        header[112] = kind;
        put(&mut header, 134, &2_u16.to_be_bytes());
        put(&mut header, 136, &(MOST as u16).to_be_bytes());
        for (n, (at, sectors, _)) in PARTS.iter().enumerate() {
            put(&mut header, [200, 208, 216, 224][n], &at.to_be_bytes());
            put(&mut header, [204, 212, 220, 228][n], &sectors.to_be_bytes());
        }
        header
    }

    fn part(&self, n: usize) -> Vec<u8> {
        let mut bytes = vec![0xff; 512 * PARTS[n].1 as usize];
        put(&mut bytes, 0, &PARTS[n].2.to_be_bytes());
        match n {
            0 => (0..4_u32).for_each(|disk| {
                let at = 64 + 64 * disk as usize;
                put(&mut bytes, at, &[disk as u8; 24]);
                put(&mut bytes, at + 24, &(0x100 + disk).to_be_bytes());
                put(&mut bytes, at + 30, &self.states[disk as usize].to_be_bytes());
            }),
            1 => [1_u8, 2].iter().for_each(|array| {
                let at = 64 * usize::from(*array);
                put(&mut bytes, at, &[*array; 24]);
                put(&mut bytes, at + 32, &[self.array, 2]);
                put(&mut bytes, at + 48, &[b'a' + array, 0]);
            }),
            2 => bytes = [self.configuration(false), self.configuration(true)].concat(),
            _ => put(&mut bytes, 32, &(0x100 + self.own).to_be_bytes()),
        }
        bytes
    }

    /// Writes it behind these headers; `change` is done to each piece before it is sealed.
    fn write(&self, headers: &[usize], change: &mut dyn FnMut(&mut [u8])) -> Disk {
        let mut disk = Disk(vec![0; SECTORS as usize * 512]);
        let mut store = |at: u64, mut bytes: Vec<u8>, record: usize| {
            change(&mut bytes);
            bytes.chunks_mut(record).for_each(seal);
            put(&mut disk.0, at as usize * 512, &bytes);
        };
        store(SECTORS - 1, self.header(0), 512);
        for which in headers {
            store(HEADERS[*which], self.header(*which as u8 + 1), 512);
            for (n, (at, sectors, _)) in PARTS.iter().enumerate() {
                let record = if n == 2 { 1024 } else { 512 * *sectors as usize };
                store(HEADERS[*which] + u64::from(*at), self.part(n), record);
            }
        }
        disk
    }

    fn disk(&self) -> Disk {
        self.write(&[0, 1], &mut |_| {})
    }

    fn ddf(&self) -> Ddf {
        look(&mut self.disk()).expect("whole")
    }
}

/// Sectors beyond those of any disk are damage, of a part as of where it begins.
#[test]
fn sectors_that_no_disk_has_are_damage() {
    let one = Made::new(0);
    for (at, field) in [(72, "size"), (512 + 4 * MOST, "first sector")] {
        let mut disk = one.write(&[0, 1], &mut |bytes| {
            if bytes.len() == 2048 {
                put(bytes, at, &0x7fff_ffff_0000_0000_u64.to_be_bytes());
            }
        });
        let found = look(&mut disk).expect("its headers are whole");
        assert_eq!(found.configurations.len(), 1, "{field}: the other array's");
    }
    // Of a place without a disk nothing is said.
    let mut disk = one.write(&[0, 1], &mut |bytes| {
        if bytes.len() == 2048 {
            put(bytes, 512 + 4, &[0xff; 4]);
            put(bytes, 512 + 4 * MOST + 8, &[0xff; 8]);
        }
    });
    let found = look(&mut disk).expect("its headers are whole");
    assert_eq!(found.configurations.len(), 2, "what stands beside an empty place is nobody's");
}

/// The array of a name, and what each disk says of it.
fn told(all: &[Ddf], name: &str) -> (Array, Vec<Inspected>) {
    let found = arrays(&all.iter().collect::<Vec<_>>());
    let (_, array) = found.into_iter().find(|(disk, _)| disk.name == name).expect("there");
    let array = array.expect("can be read");
    let told = all.iter().map(|one| array.on(one, Sectors(SECTORS))).collect();
    (array, told)
}

#[test]
fn disks_tell_their_places_in_both_arrays() {
    let all: Vec<Ddf> = [2, 0, 3, 1].map(|own| Made::new(own).ddf()).into();
    for (name, level, layout, offset) in [("b", 5, 2, 50), ("c", 10, 0x102, 200)] {
        let (array, told) = told(&all, name);
        assert_eq!((array.level, array.layout, array.chunk, array.size), (level, layout, 8, 100));
        let assembly = assemble(&told, &Allowed::default()).expect("all are there");
        let given: Vec<_> = assembly.places.iter().map(|place| place.given).collect();
        assert_eq!(given, [Some(1), Some(3), Some(0), Some(2)], "{name}");
        assert!(assembly.places.iter().all(|place| place.data_offset == Sectors(offset)));
        assert!(assembly.clean);
    }
    // A mirror of the raid10 of which no disk is there: its places are not known, nor needed.
    let (array, told) = told(&all[..1], "c");
    assert_eq!(array.members.iter().filter(|member| member.is_some()).count(), 2);
    assert!(matches!(assemble(&told, &Allowed::default()), Err(Cannot::TooFew { .. })));
}

#[test]
fn the_newest_whole_header_that_is_not_open_counts() {
    let (old, new) = (Made::new(0), Made { sequence: 9, ..Made::new(0) });
    let both = |primary: &Made, secondary: &Made| {
        let mut disk = primary.write(&[0], &mut |_| {});
        let other = secondary.write(&[1], &mut |_| {});
        let (from, to) = (HEADERS[1] as usize * 512, (HEADERS[1] as usize + 8) * 512);
        disk.0[from..to].copy_from_slice(&other.0[from..to]);
        disk
    };
    let found = |disk: &mut Disk| look(disk).map(|ddf| (ddf.sequence, ddf.at));
    let [first, second] = HEADERS.map(Sector);
    assert_eq!(found(&mut both(&old, &new)), Some((9, second)));
    assert_eq!(found(&mut both(&new, &old)), Some((9, first)));
    assert_eq!(found(&mut both(&old, &old)), Some((5, first)));
    let open = Made { open: true, ..Made { sequence: 9, ..Made::new(0) } };
    assert_eq!(found(&mut both(&open, &old)), Some((5, second)));
    // A part behind the newer one is torn.
    let mut torn = both(&new, &old);
    torn.0[(HEADERS[0] as usize + 1) * 512 + 100] ^= 1;
    assert_eq!(found(&mut torn), Some((5, second)));
    // Nothing says where to look.
    let mut lost = both(&new, &new);
    let last = lost.0.len() - 512;
    lost.0[last + 9] ^= 1;
    assert_eq!(found(&mut lost), None);
}

#[test]
fn who_is_not_in_service_as_the_newest_says_is_out() {
    // 1 in service, 2 failed, 4 being rebuilt, 64 missing; 16 only warns.
    for (state, is_in) in
        [(1, true), (1 | 16, true), (3, false), (5, false), (65, false), (0, false)]
    {
        let made = |own| Made { states: [1, 1, state, 1], sequence: 6, ..Made::new(own) };
        // The third knows nothing of it.
        let all: Vec<Ddf> = [made(0), made(1), Made::new(2), made(3)].map(|one| one.ddf()).into();
        for name in ["b", "c"] {
            let (_, told) = told(&all, name);
            let assembly = assemble(&told, &Allowed::default()).expect("one may be lost");
            assert_eq!(assembly.places[2].given.is_some(), is_in, "{name}, state {state}");
        }
    }
    // Parity that may be wrong is not used unasked.
    let dirty = |own| Made { array: 16, ..Made::new(own) };
    let all: Vec<Ddf> = [0, 1, 3].map(|own| dirty(own).ddf()).into();
    let (_, told) = told(&all, "b");
    assert_eq!(assemble(&told, &Allowed::default()).unwrap_err(), Cannot::DirtyDegraded(vec![2]));
}

#[test]
fn any_bytes_under_right_checksums_are_answered() {
    let mut numbers = Numbers(7);
    let (mut read, mut put_together) = (0, 0);
    for round in 0..4000_u32 {
        let all: Vec<Inspected> = (0..4)
            .map(|own| {
                let mut change = |bytes: &mut [u8]| {
                    for _ in 0..numbers.next() % 3 {
                        let at = numbers.next() as usize % bytes.len();
                        bytes[at] = [0, 1, 0xff, numbers.next() as u8][numbers.next() as usize % 4];
                    }
                };
                inspect(&mut Made::new(own).write(&[0, 1], &mut change))
            })
            .collect();
        let found: Vec<&Ddf> = all.iter().filter_map(|one| one.ddf.as_deref()).collect();
        read += found.len();
        for (_, array) in arrays(&found) {
            let Ok(array) = array else { continue };
            let told: Vec<_> = found.iter().map(|one| array.on(one, Sectors(SECTORS))).collect();
            let Ok(assembly) = assemble(&told, &Allowed::default()) else { continue };
            put_together += 1;
            for (n, place) in assembly.places.iter().enumerate() {
                let Some(given) = place.given else { continue };
                let own = told[given].superblock().expect("in service");
                assert_eq!(own.role(), Role::Member(n as u16), "round {round}");
                let end = place.data_offset.0 + place.sectors.0;
                assert!(end <= SECTORS, "round {round}: {end}");
            }
        }
    }
    // The changes are not so many that nothing is left to look at.
    assert!(read > 8000 && put_together > 2000, "{read}, {put_together}");
}
