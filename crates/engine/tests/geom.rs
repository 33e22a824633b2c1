//! Arrays of FreeBSD's GEOM on members in memory, which are written: where every byte goes, by the rule of each class
//! written down once more, and what becomes of labels.

use std::sync::atomic::AtomicBool;

use raidlab_core::{Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, EngineErrorKind, MdOptions, Member, MemoryMember};
use raidlab_metadata::geom::Creation;

use crate::made::pattern;

/// What no array has written.
const NOTHING: u8 = 0xee;

/// A new array on devices of so many sectors, of which a sector of each has so many.
fn created(layout: &str, sizes: &[u64], sector: u64) -> Vec<Vec<u8>> {
    let layout = match layout {
        "raid1(1)" => Layout::new(Level::Raid1, 1),
        layout => layout.parse().unwrap(),
    };
    let creation = Creation {
        layout,
        name: "gm0".into(),
        id: 9,
        devices: sizes.iter().zip(1..).map(|(size, disk)| (Sectors(*size), disk)).collect(),
        sector: Sectors(sector),
    };
    let labels = creation.labels().unwrap().labels;
    let image = |(size, label): (&u64, raidlab_metadata::geom::Label)| {
        let mut bytes = vec![NOTHING; *size as usize * 512];
        let at = bytes.len() - sector as usize * 512;
        bytes[at..at + 512].copy_from_slice(&label.bytes());
        bytes
    };
    sizes.iter().zip(labels).map(image).collect()
}

fn with(bytes: &[u8]) -> Member {
    let mut member = MemoryMember::new(Sectors(bytes.len() as u64 / 512)).unwrap();
    member.bytes_mut().copy_from_slice(bytes);
    Member::Memory(member)
}

fn assemble(images: &[Vec<u8>]) -> Result<Engine, raidlab_engine::EngineError> {
    let devices = images.iter().map(|image| with(image)).collect();
    Engine::assemble_md(devices, &MdOptions::default()).map(|(engine, _)| engine)
}

fn contents(engine: &Engine) -> Vec<Vec<u8>> {
    let bytes = |member: &Member| match member {
        Member::Memory(memory) => memory.bytes().to_vec(),
        _ => unreachable!("in memory"),
    };
    engine.members().iter().filter(|one| matches!(one, Member::Memory(_))).map(bytes).collect()
}

/// The device and sector of each sector of a gstripe with stripes of so many, or of a gconcat without.
fn places(sizes: &[u64], sector: u64, stripe: Option<u64>) -> Vec<(usize, u64)> {
    let room: Vec<u64> = sizes.iter().map(|size| size - sector).collect();
    let Some(stripe) = stripe else {
        let of = |(device, room): (usize, &u64)| (0..*room).map(move |at| (device, at));
        return room.iter().enumerate().flat_map(of).collect();
    };
    let rows = room.iter().min().unwrap() / stripe;
    let count = room.len();
    let place = |at: u64| {
        let unit = at / stripe;
        ((unit as usize) % count, unit / count as u64 * stripe + at % stripe)
    };
    (0..rows * stripe * count as u64).map(place).collect()
}

/// Written to its very end, and in the midst; each byte is where the class has it, and none of what is not the array's
/// has changed, above all no label.
#[test]
fn arrays_without_redundancy_are_written_up_to_their_labels() {
    for (layout, sizes, sector, stripe) in [
        ("raid0(3) chunk=4K", &[128, 100, 130][..], 1, Some(8)),
        ("raid0(2) chunk=64K", &[600; 2], 1, Some(128)),
        ("raid0(2) chunk=4K", &[128; 2], 8, Some(8)),
        ("linear(3)", &[40, 129, 66], 1, None),
        ("linear(2)", &[64, 48], 8, None),
        ("raid1(1)", &[64], 1, None),
    ] {
        let images = created(layout, sizes, sector);
        let places = places(sizes, sector, stripe);
        let mut engine = assemble(&images).unwrap_or_else(|why| panic!("{layout}: {why}"));
        assert_eq!(engine.array().capacity(), Sectors(places.len() as u64), "{layout}");
        let data = pattern(places.len() * 512, 3);
        engine.write_at(Sector(0), &data).unwrap();
        let end = places.len() as u64 - 5;
        let last = pattern(5 * 512, 4);
        engine.write_at(Sector(end), &last).unwrap();
        engine.stop().unwrap();
        let written = [&data[..end as usize * 512], &last].concat();
        let mut expected = images;
        for ((device, at), sector) in places.iter().zip(written.chunks(512)) {
            expected[*device][*at as usize * 512..][..512].copy_from_slice(sector);
        }
        let after = contents(&engine);
        for (device, (after, expected)) in after.iter().zip(&expected).enumerate() {
            let differs = after.iter().zip(expected).position(|(one, other)| one != other);
            assert_eq!(differs, None, "{layout}: device {device}");
        }
        // Given in any order it is found again.
        let reversed: Vec<_> = after.into_iter().rev().collect();
        let mut engine = assemble(&reversed).unwrap();
        let mut back = vec![0; written.len()];
        engine.read_at(Sector(0), &mut back).unwrap();
        assert!(back == written, "{layout}");
    }
}

#[test]
fn an_array_without_redundancy_needs_all_of_its_devices() {
    for layout in ["raid0(3) chunk=4K", "linear(3)"] {
        let mut images = created(layout, &[64; 3], 1);
        images.remove(1);
        let error = assemble(&images).unwrap_err();
        assert_eq!(error.kind(), EngineErrorKind::Assemble, "{layout}");
        assert!(error.to_string().contains("without member 1"), "{layout}: {error}");
    }
}

/// A disk that was a copy of a member which is in service is another one when it is added: two with one number would be
/// one member.
#[test]
fn a_copy_of_a_member_is_added_as_a_disk_of_its_own() {
    let images = created("raid1(2)", &[2049; 2], 1);
    let mut engine = assemble(&images).unwrap();
    let data = pattern(64 << 10, 3);
    engine.write_at(Sector(0), &data).unwrap();
    engine.fail(MemberIndex(1)).unwrap();
    engine.add(MemberIndex(1), with(&images[0])).unwrap();
    engine.finish_background(&AtomicBool::new(false)).unwrap();
    engine.stop().unwrap();
    let mut engine = assemble(&contents(&engine)).unwrap();
    assert!(![0, 1].map(MemberIndex).into_iter().any(|one| engine.array().is_failed(one)));
    let mut back = vec![0; data.len()];
    engine.read_at(Sector(0), &mut back).unwrap();
    assert!(back == data);
}
