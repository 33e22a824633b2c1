//! Labels of GEOM: read at the offsets of the published table, by an encoder that knows nothing of the one under test;
//! who is believed; and any bytes at all.

#[path = "md/memory.rs"]
mod memory;

use std::process::{Command, Stdio};

use raidlab_core::{Layout, Level, Sector, Sectors};
use raidlab_metadata::geom::{Creation, Damage, Kind, Label, look};
use raidlab_metadata::md::{Allowed, Assembly, Cannot, Inspected, Why, assemble, inspect, join};

use memory::Disk;

const SECTORS: u64 = 64;
const BYTES: u64 = SECTORS * 512;
const DIRTY: u64 = 1;
const SYNCHRONIZING: u64 = 2;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// MD5 as RFC 1321 has it.
fn md5(message: &[u8]) -> [u8; 16] {
    const TURNS: [[u32; 4]; 4] =
        [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut bytes = message.to_vec();
    bytes.push(0x80);
    bytes.resize(bytes.len().next_multiple_of(64) + if bytes.len() % 64 > 56 { 64 } else { 0 }, 0);
    let end = bytes.len() - 8;
    put(&mut bytes, end, &(8 * message.len() as u64).to_le_bytes());
    for block in bytes.chunks(64) {
        let word = |n: usize| u32::from_le_bytes(block[4 * n..4 * n + 4].try_into().unwrap());
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64 {
            let (mixed, n) = match step / 16 {
                0 => (b & c | !b & d, step),
                1 => (d & b | !d & c, (5 * step + 1) % 16),
                2 => (b ^ c ^ d, (3 * step + 5) % 16),
                _ => (c ^ (b | !d), 7 * step % 16),
            };
            let sine = ((step as f64 + 1.0).sin().abs() * 4_294_967_296.0) as u32;
            let sum = a.wrapping_add(mixed).wrapping_add(sine).wrapping_add(word(n));
            (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(TURNS[step / 16][step % 4])));
        }
        for (word, add) in state.iter_mut().zip([a, b, c, d]) {
            *word = word.wrapping_add(add);
        }
    }
    let mut hash = [0; 16];
    state.iter().enumerate().for_each(|(n, word)| put(&mut hash, 4 * n, &word.to_le_bytes()));
    hash
}

#[test]
fn the_md5_of_these_tests_is_that_of_the_rfc() {
    let hex = |bytes: [u8; 16]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(md5(b"")), "d41d8cd98f00b204e9800998ecf8427e");
    assert_eq!(hex(md5(b"message digest")), "f96b697d7cb7938d525a2f31aaf161d0");
    let digits = b"1234567890".repeat(8);
    assert_eq!(hex(md5(&digits)), "57edf4a22be3c955ac49da2e2107b67a");
}

/// One device of an array, as the table has it.
#[derive(Clone)]
struct Made {
    kind: Kind,
    version: u32,
    id: u32,
    number: u16,
    members: u16,
    genid: u32,
    syncid: u32,
    priority: u8,
    flags: u64,
    offset: u64,
    /// Bytes of the device's sectors.
    sector: u64,
    bytes: u64,
}

impl Made {
    fn new(kind: Kind, number: u16, members: u16) -> Self {
        Self {
            kind,
            version: [4, 5, 3, 4][kind as usize],
            id: 0x1122_3344,
            number,
            members,
            genid: 3,
            syncid: 7,
            priority: number as u8,
            flags: 0,
            offset: 0,
            sector: 512,
            bytes: BYTES,
        }
    }

    /// Offsets of the newest versions; genid and the size of the provider are cut out of older ones.
    fn label(&self) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        put(&mut bytes, 0, self.kind.magic().as_bytes());
        put(&mut bytes, 16, &self.version.to_le_bytes());
        put(&mut bytes, 20, b"data");
        put(&mut bytes, 36, &self.id.to_le_bytes());
        let data = u64::from(self.members) - 1;
        let used = self.bytes - self.sector;
        let (hash, provsize, genid) = match self.kind {
            Kind::Mirror => {
                put(&mut bytes, 40, &(0x100 + u32::from(self.number)).to_le_bytes());
                bytes[44] = self.members as u8;
                put(&mut bytes, 45, &self.genid.to_le_bytes());
                put(&mut bytes, 49, &self.syncid.to_le_bytes());
                bytes[53] = self.priority;
                put(&mut bytes, 54, &4096_u32.to_le_bytes());
                bytes[58] = 2;
                put(&mut bytes, 59, &used.to_le_bytes());
                put(&mut bytes, 67, &(self.sector as u32).to_le_bytes());
                put(&mut bytes, 71, &self.offset.to_le_bytes());
                put(&mut bytes, 87, &self.flags.to_le_bytes());
                (Some(119), 111, 45)
            }
            Kind::Raid3 => {
                put(&mut bytes, 40, &self.number.to_le_bytes());
                put(&mut bytes, 42, &self.members.to_le_bytes());
                put(&mut bytes, 44, &self.genid.to_le_bytes());
                put(&mut bytes, 48, &self.syncid.to_le_bytes());
                put(&mut bytes, 52, &(used * data).to_le_bytes());
                put(&mut bytes, 60, &((self.sector * data) as u32).to_le_bytes());
                put(&mut bytes, 64, &self.offset.to_le_bytes());
                put(&mut bytes, 80, &self.flags.to_le_bytes());
                (Some(112), 104, 44)
            }
            Kind::Stripe | Kind::Concat => {
                put(&mut bytes, 40, &self.number.to_le_bytes());
                put(&mut bytes, 42, &self.members.to_le_bytes());
                if self.kind == Kind::Stripe {
                    put(&mut bytes, 44, &4096_u32.to_le_bytes());
                }
                (None, if self.kind == Kind::Stripe { 64 } else { 60 }, 0)
            }
        };
        put(&mut bytes, provsize, &self.bytes.to_le_bytes());
        let mut end = hash.unwrap_or(provsize + 8);
        let (first_genid, first_size) = [(2, 3), (3, 4), (0, 3), (0, 4)][self.kind as usize];
        if self.version < first_size {
            bytes.drain(provsize..provsize + 8);
            end -= 8;
        }
        if self.version < first_genid {
            bytes.drain(genid..genid + 4);
            end -= 4;
        }
        bytes.truncate(end);
        if hash.is_some() {
            bytes.extend(md5(&bytes));
        }
        bytes
    }

    fn disk(&self) -> Disk {
        let mut disk = Disk(vec![0; self.bytes as usize]);
        put(&mut disk.0, (self.bytes - self.sector) as usize, &self.label());
        disk
    }

    fn inspected(&self) -> Inspected {
        inspect(&mut self.disk())
    }
}

fn all(made: &[Made]) -> Vec<Inspected> {
    made.iter().map(Made::inspected).collect()
}

fn found(made: &[Made]) -> Result<Assembly, Cannot> {
    assemble(&all(made), &Allowed::default())
}

fn given(assembly: &Assembly) -> Vec<Option<usize>> {
    assembly.places.iter().map(|place| place.given).collect()
}

fn set(kind: Kind, members: u16) -> Vec<Made> {
    (0..members).map(|number| Made::new(kind, number, members)).collect()
}

fn why(assembly: &Assembly, given: usize) -> String {
    let out = assembly.out.iter().find(|out| out.given == given);
    out.unwrap_or_else(|| panic!("{given} is in service")).why.to_string()
}

#[test]
fn every_field_stands_where_the_table_has_it() {
    for kind in Kind::ALL {
        let (first, last) = kind.versions();
        for version in first..=last {
            let flags = if kind.is_redundant() { DIRTY | SYNCHRONIZING } else { 0 };
            let offset = if kind.is_redundant() { 1024 } else { 0 };
            let made = Made { version, flags, offset, ..Made::new(kind, 1, 3) };
            let seen = look(&mut made.disk()).expect("a label");
            assert_eq!(
                (seen.at, seen.sector),
                (Sector(SECTORS - 1), Sectors(1)),
                "{kind:?} {version}"
            );
            let one =
                seen.whole().unwrap_or_else(|| panic!("{kind:?} {version}: {:?}", seen.damage));
            assert_eq!(
                (one.kind, one.version, &*one.name, one.id),
                (kind, version, "data", 0x1122_3344)
            );
            assert_eq!((one.members, one.device_flags, one.sync_offset), (3, flags, offset));
            assert_eq!(
                one.provider_bytes,
                if version >= [3, 4, 3, 4][kind as usize] { BYTES } else { 0 }
            );
            if kind.is_redundant() {
                let genid = if version >= [2, 3][kind as usize] { 3 } else { 0 };
                assert_eq!((one.genid, one.syncid), (genid, 7), "{kind:?} {version}");
                let data = if kind == Kind::Raid3 { 2 } else { 1 };
                assert_eq!(
                    (one.array_bytes, one.sector_bytes),
                    ((BYTES - 512) * data, 512 * data as u32)
                );
            }
            match kind {
                Kind::Mirror => assert_eq!(
                    (one.disk, one.priority, one.slice, one.balance),
                    (0x101, 1, 4096, 2)
                ),
                _ => assert_eq!(one.number, 1),
            }
            assert_eq!(
                one.bytes()[..made.label().len()],
                made.label(),
                "{kind:?} {version} is written as it was read"
            );
        }
        for version in [last + 1, u32::MAX].into_iter().chain(first.checked_sub(1)) {
            let seen =
                look(&mut Made { version, ..Made::new(kind, 1, 3) }.disk()).expect("a label");
            assert_eq!(seen.damage, Some(Damage::Version(kind, version)));
        }
    }
}

/// Another program's opinion of the bytes, where there is one.
#[test]
fn python_agrees_on_the_md5_and_the_numbers_of_a_mirror() {
    let script = "import hashlib,struct,sys\n\
                  b=sys.stdin.buffer.read()\n\
                  f=struct.unpack('<16sI16sIIBIIBIBQIQQQ16sQ16s',b[:135])\n\
                  assert f[-1]==hashlib.md5(b[:119]).digest()\n\
                  print(f[1],f[2].rstrip(b'\\0').decode(),f[5],f[6],f[7],f[8],f[11],f[12],f[17])";
    let command = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = command else { return };
    let one =
        look(&mut Made::new(Kind::Mirror, 1, 2).disk()).and_then(|seen| seen.label).expect("whole");
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &one.bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "4 data 2 3 7 1 32256 512 32768");
}

#[test]
fn devices_come_into_their_places() {
    for (kind, members, layout, used) in [
        (Kind::Mirror, 3, "raid1(3)", 63),
        (Kind::Raid3, 5, "raid3(5)", 63),
        (Kind::Stripe, 3, "raid0(3) chunk=4K", 56),
        (Kind::Concat, 3, "linear(3)", 63),
    ] {
        let mut made = set(kind, members);
        made.reverse();
        let assembly = found(&made).expect("all are there");
        let order: Vec<_> = (0..usize::from(members)).rev().map(Some).collect();
        assert_eq!(given(&assembly), order, "{kind:?}");
        assert_eq!(assembly.layout.to_string(), layout);
        assert!(assembly.places.iter().all(|place| place.sectors == Sectors(used)));
        assert_eq!((assembly.clean, assembly.missing().len()), (true, 0));
        let survives = match kind {
            Kind::Mirror => 2,
            Kind::Raid3 => 1,
            Kind::Stripe | Kind::Concat => 0,
        };
        for lost in 1..usize::from(members) {
            let rest = &made[lost..];
            match found(rest) {
                Ok(assembly) => {
                    assert!(lost <= survives && assembly.missing().len() == lost, "{kind:?}")
                }
                Err(Cannot::TooFew { missing, .. }) => {
                    assert!(lost > survives && missing.len() == lost, "{kind:?}")
                }
                Err(other) => panic!("{kind:?}: {other}"),
            }
        }
    }
    // A mirror or a stripe of one is that device.
    for kind in [Kind::Mirror, Kind::Stripe, Kind::Concat] {
        assert_eq!(found(&set(kind, 1)).expect("one").layout.to_string(), "single");
    }
    assert!(matches!(found(&set(Kind::Raid3, 4)), Err(Cannot::Obstacle(_))), "2^k + 1 only");
}

#[test]
fn unequal_devices_of_stripes_and_concatenations_are_used_as_geom_does() {
    let mut stripe = set(Kind::Stripe, 3);
    (stripe[0].bytes, stripe[2].bytes) = (BYTES + 4096, 41 * 512);
    let sizes = |made: &[Made]| -> Vec<u64> {
        found(made).expect("whole").places.iter().map(|place| place.sectors.0).collect()
    };
    assert_eq!(sizes(&stripe), [40, 40, 40]);
    let mut concat = set(Kind::Concat, 3);
    (concat[0].bytes, concat[2].bytes) = (BYTES + 512, 41 * 512);
    assert_eq!(sizes(&concat), [64, 63, 40]);
}

#[test]
fn sectors_of_4096_bytes() {
    for kind in Kind::ALL {
        let made: Vec<_> =
            set(kind, 3).into_iter().map(|one| Made { sector: 4096, ..one }).collect();
        let seen = look(&mut made[0].disk()).expect("a label");
        assert_eq!((seen.at, seen.sector, seen.damage), (Sector(56), Sectors(8), None));
        let assembly = found(&made).expect("whole");
        assert_eq!(assembly.places[1].sectors, Sectors(56));
        assert_eq!(assembly.block, if kind == Kind::Raid3 { 8 } else { 1 });
    }
}

/// What begins as a label at the end of a last sector of 4096 bytes is none of that device.
#[test]
fn what_can_be_used_counts_of_two_places() {
    for kind in Kind::ALL {
        let mut disk = Made { sector: 4096, ..Made::new(kind, 0, 3) }.disk();
        let mut other = Made { bytes: BYTES + 512, ..Made::new(kind, 1, 3) }.label();
        other.resize(512, 0);
        put(&mut disk.0, BYTES as usize - 512, &other);
        let seen = look(&mut disk).expect("a label");
        assert_eq!((seen.at, seen.damage), (Sector(56), None), "{kind:?}");
    }
}

/// Labels count in 32 bits: what is written goes on from what stands there.
#[test]
fn labels_that_count_too_far_are_read_only() {
    for kind in [Kind::Mirror, Kind::Raid3] {
        for (genid, syncid, is_written) in
            [(9, 9, true), (u32::MAX, 1, false), (u32::MAX, u32::MAX, false), (1, u32::MAX, true)]
        {
            let made: Vec<Made> =
                set(kind, 3).into_iter().map(|one| Made { genid, syncid, ..one }).collect();
            let joined = join(&all(&made), &Allowed::default());
            let told = format!("{kind:?} {genid} {syncid}: {joined:?}");
            assert_eq!(joined.is_ok(), is_written, "{told}");
            assert!(is_written || told.contains("labels have the genid"), "{told}");
            assert!(found(&made).is_ok(), "{told}");
        }
    }
}

#[test]
fn the_highest_genid_and_then_the_highest_syncid_count() {
    for kind in [Kind::Mirror, Kind::Raid3] {
        let mut made = set(kind, 3);
        made[1].syncid = 6;
        let assembly = found(&made).expect("one may be lost");
        assert_eq!(
            given(&assembly),
            if kind == Kind::Mirror { [Some(0), Some(2), None] } else { [Some(0), None, Some(2)] }
        );
        assert_eq!(why(&assembly, 1), "out of date: its syncid is 6, the newest 7");
        // A higher syncid of an older generation is nothing.
        (made[1].genid, made[1].syncid) = (2, 9);
        assert_eq!(why(&found(&made).unwrap(), 1), "out of date: its genid is 2, the newest 3");
        // One that is being made anew knows of the newest, too.
        made[0].genid = 2;
        made[2].flags = SYNCHRONIZING;
        made[2].offset = 4096;
        let Err(Cannot::TooFew { missing, out, .. }) = found(&made) else { panic!("{kind:?}") };
        assert_eq!((missing.len(), out.len()), (3, 3));
        assert!(
            out[2]
                .why
                .to_string()
                .contains("being synchronised: its label says that it is good up to byte 4096")
        );
    }
}

#[test]
fn flags_say_who_is_not_in_service() {
    let with = |kind, flags| {
        let mut made = set(kind, 3);
        made[1].flags = flags;
        why(&found(&made).expect("one may be lost"), 1)
    };
    for (flags, word) in
        [(2, "being synchronised"), (4, "to be synchronised"), (8, "deactivated"), (32, "broken")]
    {
        assert!(with(Kind::Mirror, flags).starts_with(word), "{flags}");
    }
    for (flags, word) in [(2, "being synchronised"), (4, "to be synchronised"), (16, "broken")] {
        assert!(with(Kind::Raid3, flags).starts_with(word), "{flags}");
    }
    // Who was taken out says nothing of who is the newest.
    let mut made = set(Kind::Mirror, 3);
    (made[1].flags, made[1].syncid) = (8, 9);
    assert_eq!(found(&made).expect("two").missing().len(), 1);
    // Hardcoded: 16 of a mirror, 8 of a graid3.
    for (kind, flags) in [(Kind::Mirror, 16), (Kind::Raid3, 8)] {
        let mut made = set(kind, 3);
        made[1].flags = flags;
        assert!(found(&made).expect("in service").missing().is_empty());
        let seen = look(&mut made[1].disk()).and_then(|seen| seen.label).expect("whole");
        assert_eq!(seen.flags().names(), "HARDCODED");
    }
    let seen =
        look(&mut Made { flags: 128, ..Made::new(Kind::Mirror, 0, 2) }.disk()).expect("a label");
    assert!(
        matches!(seen.damage, Some(Damage::Field(Kind::Mirror, _))),
        "a flag that is not known"
    );
}

#[test]
fn what_was_being_written_is_read_as_freebsd_would_make_it() {
    let mut mirror = set(Kind::Mirror, 3);
    mirror[0].flags = DIRTY;
    let assembly = found(&mirror).expect("two are clean");
    assert_eq!((given(&assembly), assembly.clean), (vec![Some(1), Some(2), None], true));
    // All are dirty: the one with the highest priority is read, the others only where it cannot be.
    mirror.iter_mut().for_each(|one| one.flags = DIRTY);
    mirror[2].priority = 200;
    let assembly = found(&mirror).expect("whole");
    assert_eq!((given(&assembly), assembly.clean), (vec![Some(0), Some(1), Some(2)], false));
    assert_eq!(assembly.last, [0b011, 0]);
    let mut raid3 = set(Kind::Raid3, 3);
    raid3[1].flags = DIRTY;
    let assembly = found(&raid3).expect("parity is right");
    assert_eq!((given(&assembly), assembly.clean), (vec![Some(0), None, Some(2)], true));
    raid3.iter_mut().for_each(|one| one.flags = DIRTY);
    let assembly = found(&raid3).expect("data are there");
    assert_eq!((assembly.missing().len(), assembly.clean), (0, false));
    assert_eq!(found(&raid3[1..]).unwrap_err(), Cannot::DirtyDegraded(vec![0]));
    let allowed = Allowed { dirty_degraded: true, ..Allowed::default() };
    assert!(assemble(&all(&raid3[1..]), &allowed).is_ok());
    assert!(found(&raid3[..2]).is_ok(), "without parity nothing is computed");
}

#[test]
fn devices_that_do_not_belong_together() {
    let mut made = set(Kind::Mirror, 2);
    made.push(Made { id: 5, ..Made::new(Kind::Mirror, 0, 2) });
    made.push(Made::new(Kind::Stripe, 0, 2));
    let assembly = found(&made).expect("two of one");
    assert_eq!(why(&assembly, 2), "of another array (data)");
    assert_eq!(why(&assembly, 3), "of another array (data)");
    assert!(matches!(found(&made[1..3]), Err(Cannot::SeveralArrays(_))));
    // Given twice.
    let assembly = found(&[made[0].clone(), made[0].clone()]).expect("one of two");
    assert_eq!(assembly.out[0].why, Why::Copy(0));
    let stripe = set(Kind::Stripe, 2);
    let twice = [stripe[0].clone(), stripe[1].clone(), stripe[1].clone()];
    let Err(Cannot::TooFew { missing, out, .. }) = found(&twice) else {
        panic!("two say they are 1")
    };
    assert_eq!((missing, &out[0].why), (vec![1], &Why::Contested(1)));
    // More than it has, each with a number of its own.
    let mut three = set(Kind::Mirror, 3);
    three.iter_mut().for_each(|one| one.members = 2);
    assert!(
        found(&three)
            .unwrap_err()
            .to_string()
            .starts_with("3 devices say that they are in service")
    );
    // Another shape than the others.
    let mut shapes = set(Kind::Mirror, 3);
    shapes[2].members = 4;
    assert!(why(&found(&shapes).expect("two"), 2).starts_with("its label says 4 devices"));
    // One without a label, one left out.
    let mut with = all(&set(Kind::Mirror, 3));
    with[0] = inspect(&mut Disk(vec![0; BYTES as usize]));
    let allowed = Allowed { without: vec![1], ..Allowed::default() };
    let assembly = assemble(&with, &allowed).expect("one");
    assert_eq!(why(&assembly, 0), "no GEOM label in its last sector");
    assert_eq!(why(&assembly, 1), "left out as asked");
}

#[test]
fn a_label_of_another_size_or_a_torn_one_is_not_used() {
    for kind in Kind::ALL {
        // A disk that ends with a partition, and a copy that is too short.
        let mut disk = vec![0; 4096];
        disk.extend(Made::new(kind, 0, 3).disk().0);
        let seen = look(&mut Disk(disk)).expect("a label");
        let damage = seen.damage.expect("not this disk's").to_string();
        assert!(
            damage.contains("a partition that ends where the disk does, from byte 4096 on"),
            "{damage}"
        );
        let short = Made::new(kind, 0, 3).disk().0.split_off(4096);
        let seen = look(&mut Disk(short)).expect("a label");
        assert!(
            seen.damage
                .expect("not this one's")
                .to_string()
                .ends_with("or a copy on a smaller one")
        );
        let mut cut = Made::new(kind, 0, 3).disk();
        cut.0.truncate(BYTES as usize - 512);
        assert_eq!(look(&mut cut), None);
    }
    for kind in [Kind::Mirror, Kind::Raid3] {
        let len = Made::new(kind, 0, 3).label().len();
        for at in 20..len {
            let mut disk = Made::new(kind, 0, 3).disk();
            disk.0[BYTES as usize - 512 + at] ^= 4;
            assert_eq!(
                look(&mut disk).expect("a label").damage,
                Some(Damage::Checksum(kind)),
                "{at}"
            );
        }
        // Older labels do not say how large the device is, but how much of it is used.
        let version = [2, 3][kind as usize];
        let mut short = Made { version, ..Made::new(kind, 0, 3) }.disk().0;
        short.drain(..512);
        let damage = look(&mut Disk(short)).expect("a label").damage;
        assert!(matches!(damage, Some(Damage::CutOff { .. })), "{damage:?}");
    }
    let damaged = [Made::new(Kind::Mirror, 0, 2).disk(), Made::new(Kind::Mirror, 1, 2).disk()].map(
        |mut disk| {
            disk.0[BYTES as usize - 400] ^= 1;
            inspect(&mut disk)
        },
    );
    assert!(
        matches!(assemble(&damaged, &Allowed::default()), Err(Cannot::NoLabel(out)) if out.len() == 2)
    );
}

#[test]
fn labels_without_a_checksum_are_taken_only_where_all_is_possible() {
    let with = |kind: Kind, at: usize, value: &[u8]| {
        let mut disk = Made::new(kind, 1, 3).disk();
        put(&mut disk.0, BYTES as usize - 512 + at, value);
        look(&mut disk).expect("a label").damage
    };
    for kind in [Kind::Stripe, Kind::Concat] {
        for (at, value) in [(20, &[0][..]), (20, &[0xff; 16]), (40, &[3, 0]), (42, &[0, 0])] {
            assert!(matches!(with(kind, at, value), Some(Damage::Field(..))), "{kind:?} {at}");
        }
        let provider = if kind == Kind::Stripe { 48 } else { 44 };
        assert!(matches!(with(kind, provider, &[1]), Some(Damage::Field(..))));
        assert!(matches!(with(kind, provider + 16, &[1]), Some(Damage::Size { .. })));
    }
    for stripe in [0_u32, 256, 4095, 3 << 12] {
        assert!(
            matches!(with(Kind::Stripe, 44, &stripe.to_le_bytes()), Some(Damage::Field(..))),
            "{stripe}"
        );
    }
    let stripe = with(Kind::Stripe, 44, &(1_u32 << 20).to_le_bytes());
    assert!(matches!(stripe, Some(Damage::CutOff { .. })), "longer than the device");
}

#[test]
fn new_labels_are_those_of_the_table() {
    for (kind, level) in [
        (Kind::Mirror, Level::Raid1),
        (Kind::Raid3, Level::Raid3),
        (Kind::Stripe, Level::Raid0),
        (Kind::Concat, Level::Linear),
    ] {
        for sector in [512, 4096] {
            let mut layout = Layout::new(level, 3);
            if kind == Kind::Stripe {
                layout = layout.with_chunk(Sectors(8));
            }
            let devices = (0..3).map(|number| (Sectors(SECTORS), 0x100 + number)).collect();
            let sectors = Sectors(sector / 512);
            let creation =
                Creation { layout, name: "data".into(), id: 0x1122_3344, devices, sector: sectors };
            let made = creation.labels().expect("can be");
            for (number, label) in (0..).zip(&made.labels) {
                let same = Made {
                    genid: 0,
                    syncid: 1,
                    priority: number as u8,
                    sector,
                    ..Made::new(kind, number, 3)
                };
                assert_eq!(label.bytes()[..same.label().len()], same.label(), "{kind:?} {sector}");
            }
            let long = Creation { name: "a name too long.".into(), ..creation.clone() };
            assert!(long.labels().unwrap_err().contains("is no name of a GEOM array"));
            let raid5 = Creation { layout: Layout::new(Level::Raid5, 3), ..creation };
            assert!(raid5.labels().unwrap_err().starts_with("GEOM has no raid5"));
        }
    }
}

#[test]
fn any_bytes_are_answered() {
    let mut state = 7_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let (mut whole, mut put_together) = (0, 0);
    for round in 0..4000 {
        let kind = Kind::ALL[round % 4];
        let devices: Vec<Inspected> = set(kind, 3)
            .iter()
            .map(|made| {
                let mut label = made.label();
                let hashed = label.len() - if kind.is_redundant() { 16 } else { 0 };
                for _ in 0..next() % 3 {
                    label[16 + next() % (hashed - 16)] = [0, 1, 2, 0xff, next() as u8][next() % 5];
                }
                if kind.is_redundant() {
                    let hash = md5(&label[..hashed]);
                    put(&mut label, hashed, &hash);
                }
                let mut disk = Disk(vec![0; BYTES as usize]);
                put(&mut disk.0, BYTES as usize - 512, &label);
                inspect(&mut disk)
            })
            .collect();
        let read = |one: &&Inspected| one.geom.as_ref().is_some_and(|seen| seen.whole().is_some());
        whole += devices.iter().filter(read).count();
        if let Ok(joined) = join(&devices, &Allowed::default()) {
            assert_eq!(joined.order.len(), usize::from(joined.layout.members), "round {round}");
        }
        let Ok(assembly) = assemble(&devices, &Allowed::default()) else { continue };
        put_together += 1;
        for place in &assembly.places {
            let Some(given) = place.given else { continue };
            let label: &Label =
                devices[given].geom.as_ref().and_then(|seen| seen.whole()).expect("in service");
            assert_eq!(label.array(), assembly.array, "round {round}");
            assert!(place.sectors.0 < SECTORS, "round {round}");
        }
    }
    // The changes are not so many that nothing is left to look at.
    assert!(whole > 6000 && put_together > 1500, "{whole}, {put_together}");
}
