//! What is said of an md array that does not start: which device is to blame, and for what.

use std::fs;

use crate::common::TestDirectory;
use crate::made::creation;
use raidlab_engine::{Engine, FileMember, FileOptions, MdOptions, Member};
use raidlab_metadata::md::{Creation, WantedBitmap};

const SECTORS: u64 = 8192;

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
