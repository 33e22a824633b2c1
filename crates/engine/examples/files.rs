//! A raid6 on files in a temporary directory: it is written, loses two members, is read without them, and is rebuilt
//! on fresh files: `cargo run -p raidlab-engine --example files`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use raidlab_core::{Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, EngineConfig, FileMember, FileOptions, Member};

/// Removed however this ends.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{}: {error}", self.0.display());
        }
    }
}

/// A new file of 8 MiB as a member.
fn member(directory: &Path, name: &str) -> Result<Member, Box<dyn std::error::Error>> {
    let path = directory.join(name);
    File::create_new(&path)?.set_len(8 << 20)?;
    Ok(FileMember::open(&path, FileOptions::default())?.into())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = format!("raidlab-example-files-{}", std::process::id());
    let directory = Directory(std::env::temp_dir().join(name));
    fs::create_dir(&directory.0)?;
    let members: Result<_, _> = (0..5).map(|n| member(&directory.0, &format!("m{n}"))).collect();
    let layout = Layout::new(Level::Raid6, 5).with_chunk(Sectors(128));
    let mut array = Engine::new(&EngineConfig::new(layout), members?)?;
    println!("{} of {}", array.array().layout(), array.array().capacity());

    let (at, go) = (Sector(0), AtomicBool::new(false));
    let written: Vec<u8> = (0..6 << 20).map(|n: u32| (n ^ (n >> 9)) as u8).collect();
    array.write_at(at, &written)?;
    let lost = [MemberIndex(0), MemberIndex(3)];
    for member in lost {
        array.fail(member)?;
    }
    let mut read = vec![0; written.len()];
    array.read_at(at, &mut read)?;
    if read != written {
        return Err("read without two members: not what was written".into());
    }
    println!("lost members {} and {}: all is read as it was written", lost[0], lost[1]);

    for one in lost {
        array.add(one, member(&directory.0, &format!("m{one}-fresh"))?)?;
    }
    array.finish_background(&go)?;
    let differing = array.scrub(&go)?;
    for event in array.take_events() {
        println!("{event:?}");
    }
    // Two others are lost, so that what was rebuilt is what is read.
    array.fail(MemberIndex(1))?;
    array.fail(MemberIndex(2))?;
    array.read_at(at, &mut read)?;
    array.stop()?;
    println!("rebuilt; {differing} differ from their parity");
    if differing == Sectors::ZERO && read == written { Ok(()) } else { Err("wrong".into()) }
}

// `tests/engine.rs` has this file as a module, so that it is run with the tests.
#[test]
fn files_are_rebuilt() {
    main().expect("read as written");
}
