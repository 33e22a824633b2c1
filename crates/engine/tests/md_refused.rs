//! What is said of an md array that does not start: which device is to blame, and for what.

use std::fs;

use crate::common::TestDirectory;
use crate::made::creation;
use raidlab_engine::{Engine, FileMember, FileOptions, MdOptions, Member};
use raidlab_metadata::md::{Bitmap, BitmapKind, Creation, WantedBitmap};

const SECTORS: u64 = 8192;
/// Where a bitmap of version 1.2 lies here.
const BITMAP: usize = 16 * 512;

/// What the members of a new raid5 hold.
fn created(bitmap: WantedBitmap) -> Vec<Vec<u8>> {
    let layout = "raid5(3) chunk=64K".parse().unwrap();
    let plan = Creation { bitmap, ..creation(layout, SECTORS) }.plan().unwrap();
    let filled = |pieces: &[(raidlab_core::Sector, Vec<u8>)]| {
        let mut bytes = vec![0; (SECTORS * 512) as usize];
        for (at, piece) in pieces {
            bytes[at.bytes() as usize..][..piece.len()].copy_from_slice(piece);
        }
        bytes
    };
    plan.members.iter().flatten().map(|made| filled(&made.pieces)).collect()
}

/// Why files of these contents, in a directory, are no array.
fn refused(directory: &TestDirectory, contents: &[Vec<u8>]) -> String {
    let open = |(number, bytes): (usize, &Vec<u8>)| {
        let path = directory.path().join(number.to_string());
        fs::write(&path, bytes).unwrap();
        Member::from(FileMember::open(&path, FileOptions::default()).unwrap())
    };
    let members = contents.iter().enumerate().map(open).collect();
    match Engine::assemble_md(members, &MdOptions::default()) {
        Ok(_) => panic!("it starts"),
        Err(error) => error.to_string(),
    }
}

fn path(directory: &TestDirectory, member: usize) -> String {
    directory.path().join(member.to_string()).display().to_string()
}

#[test]
fn of_too_few_members_it_is_said_why_the_others_are_not_used() {
    let directory = TestDirectory::new();
    let mut contents = created(WantedBitmap::None);
    contents[1].truncate(2 << 20);
    contents[2].truncate(2 << 20);
    let told = refused(&directory, &contents);
    assert!(told.contains("cannot be read without member 1 and 2"), "{told}");
    for member in [1, 2] {
        let path = path(&directory, member);
        let line = format!("\n  not used: {path} (member {member}): cut off: its data need");
        assert!(told.contains(&line), "{line}: {told}");
    }
}

/// A bitmap that cannot be names its device, and what can be done.
#[test]
fn a_bitmap_that_cannot_be_is_told_with_its_device() {
    type Change = fn(&mut Bitmap);
    let changes: [(Change, &str); 4] = [
        (|head| head.chunk = 0, "has a bit for each 0 bytes"),
        (|head| head.chunk = 3, "has a bit for each 3 bytes"),
        (|head| head.covered = 8, "covers 8 sectors, fewer than the array has"),
        (|head| head.kind = BitmapKind::Lockless, "is of version 6"),
    ];
    for (change, words) in changes {
        let directory = TestDirectory::new();
        let mut contents = created(WantedBitmap::Internal);
        for bytes in &mut contents {
            let mut head = Bitmap::parse(&bytes[BITMAP..]).unwrap();
            // A bit for each 4 KiB: several pages.
            head.chunk = 4096;
            change(&mut head);
            bytes[BITMAP..BITMAP + 4096].fill(0);
            head.emit(&mut bytes[BITMAP..]);
        }
        let told = refused(&directory, &contents);
        assert!(told.contains(words), "{words}: {told}");
        if words.starts_with("is of") {
            assert!(told.contains("of which only 4 is"), "{told}");
        } else {
            let path = path(&directory, 0);
            assert!(told.contains(&path) && told.contains("add it as a fresh one"), "{told}");
        }
    }
}
