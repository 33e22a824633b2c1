//! Disks of arrays of GEOM.

use raidlab_core::consistency::{Allow, Wanted};
use raidlab_core::contract::{MetaIo, Record, SegmentList, Superblock};
use raidlab_core::{Array, Config, Consistency, MemberIndex, Sector, Sectors};
use raidlab_metadata::geom::{Beside, Damage, Geom, Kind, Label, Seen, look};
use raidlab_metadata::md::{Allowed, Cannot, Inspected, Joined, assemble, inspect, join};
use raidlab_metadata::{MetadataFormat, RecordWriter};

use crate::disk::{Disk, SECTOR};
use crate::script::Script;

const SECTORS: usize = 96;
/// The most fields, or bytes, of a label that are changed.
const MOST_CHANGES: usize = 8;

/// A label as FreeBSD might have written it to a device of so many bytes.
fn label(kind: Kind, number: u16, members: u16, sector: usize) -> Label {
    let used = ((SECTORS * SECTOR - sector) / 4096 * 4096) as u64;
    let data = if kind == Kind::Raid3 { u64::from(members) - 1 } else { 1 };
    let of_copies = u64::from(kind.is_redundant());
    Label {
        kind,
        version: kind.versions().1,
        name: "fuzz".into(),
        id: 7,
        disk: if kind == Kind::Mirror { number.into() } else { 0 },
        number: if kind == Kind::Mirror { 0 } else { number },
        members,
        genid: of_copies as u32,
        syncid: of_copies as u32,
        priority: 0,
        slice: 0,
        balance: 0,
        stripe: if kind == Kind::Stripe { 4096 } else { 0 },
        array_bytes: used * data * of_copies,
        sector_bytes: (sector as u64 * data * of_copies) as u32,
        sync_offset: 0,
        array_flags: 0,
        device_flags: 0,
        provider: String::new(),
        provider_bytes: (SECTORS * SECTOR) as u64,
    }
}

/// Changes a field to anything; only those that the class has.
fn change(script: &mut Script<'_>, label: &mut Label) {
    let (what, value) = (script.below(16), script.below(1 << 16) as u32);
    let small = value % 8;
    let is_redundant = label.kind.is_redundant();
    match (what, label.kind) {
        (0, _) => label.id = small,
        (1, Kind::Mirror) => label.members = (value % 256) as u16,
        (1, _) => label.members = value as u16,
        (2, Kind::Mirror) => label.disk = small,
        (2, _) => label.number = small as u16,
        (3 | 4, _) if is_redundant => label.genid = small,
        (5 | 6, _) if is_redundant => label.syncid = small,
        (7 | 8, _) if is_redundant => label.device_flags = u64::from(value % 256),
        (9, Kind::Mirror) => label.priority = small as u8,
        (10, Kind::Stripe) => label.stripe = 1 << (value % 32),
        (11, _) if is_redundant => label.array_bytes = script.word(),
        (12, _) if is_redundant => label.sector_bytes = value,
        (13, _) if is_redundant => label.array_flags = u64::from(small),
        (14, _) => label.provider_bytes = u64::from(value) * u64::from(small),
        (15, _) => label.name = "other".into(),
        _ => {}
    }
}

/// A device with a label, some fields of it changed under a right checksum, then some bytes.
fn device(script: &mut Script<'_>, kind: Kind, members: u16) -> Vec<u8> {
    let sector = if script.below(4) == 0 { 4096 } else { SECTOR };
    let number = script.below(usize::from(members)) as u16;
    let mut label = label(kind, number, members, sector);
    for _ in 0..script.below(MOST_CHANGES) {
        change(script, &mut label);
    }
    let written = label.bytes();
    match Label::parse(kind, &written) {
        Ok(read) => assert_eq!(read, label, "read as it was written"),
        Err(damage) => assert!(matches!(damage, Damage::Field(..)), "{damage} {label:?}"),
    }
    let mut bytes = vec![0; SECTORS * SECTOR];
    let at = bytes.len() - sector;
    bytes[at..][..SECTOR].copy_from_slice(&written);
    if script.below(3) == 2 {
        let [epoch, left, out] = [3, 6, 3].map(|most| script.below(most) as u16);
        Beside { epoch: epoch.into(), left, out }.put(&mut bytes[at..]);
    }
    for _ in 0..script.below(2 * MOST_CHANGES) / MOST_CHANGES * script.below(MOST_CHANGES) {
        bytes[at + script.below(140)] = script.byte();
    }
    bytes.truncate((SECTORS - script.below(SECTORS) * usize::from(script.below(16) == 1)) * SECTOR);
    bytes
}

fn whole(one: &Inspected) -> Option<&Label> {
    one.geom.as_ref().and_then(|seen| seen.whole())
}

/// Up to six devices that are, or look like, of an array of any class. A label is read as it was written; what is put
/// in service is of one array, of the newest state, in its place, wholly on its device, and there are as many as
/// needed. What can be written is: labels of one state, which are read again, and start the same array.
pub fn geom(data: &[u8]) {
    let mut script = Script::new(data);
    let kind = Kind::ALL[script.below(4)];
    let members = if kind == Kind::Raid3 { [3, 5][script.below(2)] } else { 1 + script.below(4) };
    let allowed = Allowed { dirty_degraded: script.flag(), ..Allowed::default() };
    let count = 1 + script.below(6);
    let mut disks: Vec<Disk> =
        (0..count).map(|_| Disk(device(&mut script, kind, members as u16))).collect();
    let all: Vec<Inspected> = disks.iter_mut().map(|disk| inspect(disk)).collect();
    if let Ok(joined) = join(&all, &allowed) {
        start(&mut disks, &joined, &allowed);
    }
    match assemble(&all, &allowed) {
        Ok(assembly) => {
            let array = Array::read_only(&assembly.config(), assembly.failed(), &[]);
            assert!(array.is_ok(), "{assembly:?}");
            let mut seen = vec![false; all.len()];
            for (place, member) in (0..).zip(&assembly.places) {
                let Some(given) = member.given else { continue };
                assert!(!std::mem::replace(&mut seen[given], true), "once");
                let one = whole(&all[given]).expect("a whole label");
                assert_eq!(one.array(), assembly.array);
                assert!(one.kind == Kind::Mirror || one.number == place);
                let (genid, syncid) = assembly.geom.and_then(|one| one.newest).unwrap_or_default();
                // Of a graid3 one that was not told yet is in service, too.
                let is_next = one.kind == Kind::Raid3 && one.syncid.checked_add(1) == Some(syncid);
                assert!(one.genid == genid && (one.syncid == syncid || is_next));
                let flags = one.flags();
                assert!(
                    !flags.synchronizing && !flags.force_sync && !flags.inactive && !flags.broken
                );
                let sector = all[given].geom.as_deref().map_or(0, |seen: &Seen| seen.sector.0);
                assert!(
                    member.sectors.0 + sector <= all[given].sectors.0,
                    "data lie before the label"
                );
            }
            assert_eq!(seen.iter().filter(|used| !**used).count(), assembly.out.len());
        }
        Err(Cannot::NoLabel(out)) => assert_eq!(out.len(), all.len()),
        Err(_) => {}
    }
}

/// Starts an array with labels that change, and tells its members that writes are under way.
fn start(disks: &mut [Disk], joined: &Joined, allowed: &Allowed) {
    if joined.consistency != Consistency::Resync {
        return;
    }
    let mut looked: Vec<_> =
        joined.order.iter().map(|one| one.map(|one| Geom.examine(&mut disks[one]))).collect();
    let found = joined.found(&mut looked, joined.block, 1);
    let mut config = Config::uniform(joined.layout.clone(), Sectors::ZERO);
    config.settings.consistency = joined.consistency;
    let (without, dirty_degraded) = (joined.absent, allowed.dirty_degraded);
    let allow = Allow { without, dirty_degraded, ..Allow::default() };
    let Ok(assembled) = Array::assemble(&Wanted::from(&config), &found, allow) else { return };
    let mut writer = RecordWriter::new(assembled.identity, &assembled.config, &assembled.area);
    writer.begin_generation(1);
    for (member, looked) in (0..).map(MemberIndex).zip(&looked) {
        looked.iter().for_each(|looked| drop(writer.know(member, looked)));
    }
    let newest = assembled.array.superblock();
    let said = Superblock { events: newest.events + 1, clean: false, ..newest };
    let mut ages = Vec::new();
    for (member, disk) in (0..).map(MemberIndex).zip(&joined.order) {
        let Some(disk) = disk.map(|disk| &mut disks[disk]) else { continue };
        let (record, at, payload) = (Record::Superblock(said), Sector(0), SegmentList::EMPTY);
        let meta = MetaIo { member, record, at, payload, flush: false, fua: true };
        let mut head = vec![0; Geom.head()];
        let put = writer.encode(&Geom, &mut head, &meta, (0, 0, &mut std::iter::empty()));
        let put = put.expect("each member has a label");
        disk.0[put.at.bytes() as usize..][..put.bytes].copy_from_slice(&head[..put.bytes]);
        let seen = look(disk).expect("a label");
        let one = seen.whole().expect("which is whole");
        let flags = one.flags();
        assert!(flags.dirty != flags.synchronizing && seen.beside.is_some());
        assert_eq!(flags.force_sync, flags.synchronizing && one.array_flags & 1 == 1);
        ages.push((one.genid, one.syncid));
    }
    assert!(ages.windows(2).all(|pair| pair[0] == pair[1]), "one state: {ages:?}");
    let all: Vec<Inspected> = disks.iter_mut().map(|disk| inspect(disk)).collect();
    let again = join(&all, allowed).expect("it starts again");
    assert_eq!(again.array, joined.array);
    let count = |one: &Joined| one.order.iter().flatten().count();
    assert_eq!(count(&again), count(joined), "with as many");
}
