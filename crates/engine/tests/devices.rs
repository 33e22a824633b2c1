//! Members on block devices: errors of a real device, blocks of 4 KiB, a size that does not suffice. On loop
//! devices, which need root.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::common::{Random, TestDirectory};
use crate::held::made_image;
use crate::made::creation;
use crate::root::{skip, tool};
use raidlab_core::{Consistency, Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_engine::{
    CacheState, Claim, Device, DeviceRefusal, Engine, EngineConfig, EngineErrorKind, FileIo,
    FileMember, FileOptions, MdOptions, Member, add_md_journal,
};

const BYTES: u64 = 4 << 20;

/// A loop device; taken away at the end.
struct Loop(PathBuf);

impl Loop {
    /// `None`, after a line that tells so, where there is none for us.
    fn new(test: &str, directory: &TestDirectory, name: &str, block: &str) -> Option<Self> {
        let file = directory.path().join(name);
        File::create(&file).and_then(|made| made.set_len(BYTES)).unwrap();
        let file = file.display().to_string();
        match tool("losetup", &["--find", "--show", "--sector-size", block, &file]) {
            Ok(node) => Some(Self(node.into())),
            Err(why) => {
                skip(test, &why);
                None
            }
        }
    }

    fn member(&self, engine: FileIo) -> Member {
        let options = FileOptions { engine, ..FileOptions::default() };
        let member = FileMember::open(&self.0, options).unwrap();
        assert_eq!((member.cache_state(), member.file_io()), (CacheState::Direct, engine));
        Member::File(Box::new(member))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let gone = tool("losetup", &["--detach", &self.0.display().to_string()]);
        if !std::thread::panicking() {
            gone.expect("nothing holds the device any more");
        }
    }
}

const EACH: [FileIo; 2] = [FileIo::Uring, FileIo::Threads];

/// The file behind a loop device is cut: the device answers `EIO` from there on.
#[test]
fn errors_of_a_device_are_media_errors_and_the_mirror_helps_out() {
    for engine in EACH {
        let directory = TestDirectory::new();
        let name = "errors_of_a_device_are_media_errors_and_the_mirror_helps_out";
        let Some(one) = Loop::new(name, &directory, "one", "512") else { return };
        let Some(two) = Loop::new(name, &directory, "two", "512") else { return };
        for level in [Level::Linear, Level::Raid1] {
            let count = if level == Level::Raid1 { 2 } else { 1 };
            let both = [&one, &two];
            let members = both[..count].iter().map(|one| one.member(engine)).collect();
            let layout = Layout::new(level, count as u16);
            let mut array = Engine::new(&EngineConfig::new(layout), members).unwrap();
            let mut data = vec![0; array.array().capacity().bytes() as usize];
            Random(9).fill(&mut data);
            array.write_at(Sector(0), &data).unwrap();
            array.flush().unwrap();
            let file = File::options().write(true).open(directory.path().join("one")).unwrap();
            file.set_len(BYTES / 2).unwrap();
            let mut back = vec![0; data.len()];
            let read = array.read_at(Sector(0), &mut back);
            if level == Level::Raid1 {
                read.unwrap();
                assert!(back == data, "{engine:?}");
            } else {
                assert_eq!(read.unwrap_err().kind(), EngineErrorKind::MediaError, "{engine:?}");
            }
            file.set_len(BYTES).unwrap();
        }
    }
}

#[test]
fn devices_with_blocks_of_4_kib_are_used_in_those() {
    for engine in EACH {
        let directory = TestDirectory::new();
        let name = "devices_with_blocks_of_4_kib_are_used_in_those";
        let Some(one) = Loop::new(name, &directory, "large", "4096") else { return };
        let Some(two) = Loop::new(name, &directory, "small", "512") else { return };
        let members = vec![one.member(engine), two.member(engine)];
        let blocks: Vec<u32> = members.iter().map(|one| one.config().logical_block).collect();
        assert_eq!(blocks, [8, 1]);
        let layout = Layout::new(Level::Raid0, 2).with_chunk(Sectors(8));
        let mut array = Engine::new(&EngineConfig::new(layout), members).unwrap();
        let mut data = vec![0; 64 << 10];
        Random(2).fill(&mut data);
        array.write_at(Sector(8), &data).unwrap();
        let mut back = vec![0; data.len()];
        array.read_at(Sector(8), &mut back).unwrap();
        assert!(back == data);
        let mut sectors = vec![0; 4096];
        let member = array.member_mut(MemberIndex(1)).unwrap();
        member.read_direct(Sector(0), &mut sectors).unwrap();
        assert!(sectors == data[..4096], "the second chunk of the array");
    }
}

#[test]
fn a_claimed_device_serves_and_nobody_else_gets_it() {
    let directory = TestDirectory::new();
    let name = "a_claimed_device_serves_and_nobody_else_gets_it";
    let Some(device) = Loop::new(name, &directory, "claimed", "512") else { return };
    let claim = Claim::take(&device.0, true).unwrap();
    assert_eq!(claim.device().size, BYTES);
    let open = |sectors| {
        let options = FileOptions { sectors: Some(Sectors(sectors)), ..FileOptions::default() };
        FileMember::new(claim.file().unwrap(), Path::new(&device.0), options)
    };
    let error = open(BYTES / 512 + 1).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::Member, "{error}");
    let only = vec![Member::File(Box::new(open(64).unwrap()))];
    let config = EngineConfig::new(Layout::new(Level::Linear, 1));
    let mut engine = Engine::new(&config, only).unwrap();
    engine.write_at(Sector(0), &[7; 4096]).unwrap();
    let second = Claim::take(&device.0, true).unwrap();
    assert_eq!(second.device().refusals, [DeviceRefusal::Busy]);
    assert_eq!(second.file().unwrap_err().kind(), EngineErrorKind::Refused);
    drop(claim);
    assert_eq!(Claim::take(&device.0, true).unwrap().device().refusals, [DeviceRefusal::Busy]);
    // The ring lets files go before the engine is gone.
    drop(engine);
    assert!(Claim::take(&device.0, true).unwrap().device().refusals.is_empty());
    let error = Claim::take(Path::new("/dev/null"), false).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::Member);
}

#[test]
fn loop_devices_over_one_file_overlap() {
    let directory = TestDirectory::new();
    let name = "loop_devices_over_one_file_overlap";
    let Some(one) = Loop::new(name, &directory, "same", "512") else { return };
    let Some(two) = Loop::new(name, &directory, "same", "512") else { return };
    let Some(other) = Loop::new(name, &directory, "other", "512") else { return };
    let [one, two, other] = [one, two, other].map(|device| {
        let found = Device::inspect(&device.0).unwrap();
        (device, found)
    });
    assert!(one.1.overlaps(&two.1) && two.1.overlaps(&one.1));
    assert!(!one.1.overlaps(&other.1) && !other.1.overlaps(&two.1));
}

/// The tools that know filesystems do not know raidlab's members.
#[test]
fn members_and_log_devices_of_raidlab_are_signatures() {
    let directory = TestDirectory::new();
    let name = "members_and_log_devices_of_raidlab_are_signatures";
    let Some(one) = Loop::new(name, &directory, "one", "512") else { return };
    let Some(two) = Loop::new(name, &directory, "two", "4096") else { return };
    let Some(three) = Loop::new(name, &directory, "three", "512") else { return };
    let Some(journal) = Loop::new(name, &directory, "journal", "512") else { return };
    let mut config = EngineConfig::new(Layout::new(Level::Raid5, 3).with_chunk(Sectors(64)));
    config.settings.consistency = Consistency::Journal { sectors: Sectors(2048) };
    let all = [&one, &two, &three];
    let members = all.iter().map(|device| device.member(FileIo::Uring)).collect();
    let log = Some(journal.member(FileIo::Uring));
    let mut array = Engine::with_journal(&config, members, log).unwrap();
    array.write_at(Sector(8), &[9; 4096]).unwrap();
    array.stop().unwrap();
    drop(array);
    let kinds = |device: &Loop| -> Vec<String> {
        let claim = Claim::take(&device.0, true).unwrap();
        claim.device().signatures.iter().map(|one| one.kind.clone()).collect()
    };
    for device in all {
        assert_eq!(kinds(device), ["raidlab_member"]);
    }
    // Whatever a version of the format has on a log device.
    let found = kinds(&journal);
    assert!(
        !found.is_empty() && found.iter().all(|kind| kind.starts_with("raidlab_")),
        "{found:?}"
    );
}

/// An array that lies on devices with sectors of 4 KiB, or has its log device on one, gets a journal; what is written
/// then and cut off is there.
#[test]
fn arrays_on_devices_with_sectors_of_4_kib_get_a_journal() {
    let name = "arrays_on_devices_with_sectors_of_4_kib_get_a_journal";
    for blocks in [["4096"; 4], ["512", "512", "512", "4096"], ["4096", "512", "512", "512"]] {
        let directory = TestDirectory::new();
        let loops = ["a", "b", "c", "log"].into_iter().zip(blocks);
        let loops = loops.map(|(file, block)| Loop::new(name, &directory, file, block));
        let Some(loops) = loops.collect::<Option<Vec<Loop>>>() else { return };
        let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(32));
        let plan = creation(layout, BYTES / 512).plan().unwrap();
        for (device, made) in loops.iter().zip(plan.members.iter().flatten()) {
            let image = made_image(made, BYTES / 512);
            let mut file = File::options().write(true).open(&device.0).unwrap();
            file.write_all(&image).and_then(|()| file.sync_all()).unwrap();
        }
        let open = |device: &Loop| device.member(FileIo::Threads);
        let (log, members) = loops.split_last().unwrap();
        let mut devices: Vec<Member> = members.iter().map(open).collect();
        add_md_journal(&mut devices, &mut open(log), true).unwrap();
        drop(devices);
        let start = |all: &[&Loop]| {
            let devices = all.iter().map(|device| open(device)).collect();
            let options = MdOptions { run: true, ..MdOptions::default() };
            Engine::assemble_md(devices, &options).unwrap()
        };
        let all: Vec<&Loop> = loops.iter().collect();
        let (mut array, found) = start(&all);
        assert_eq!(found.joined.journal, Some(3), "{blocks:?}");
        let mut data = vec![0; 64 << 10];
        Random(5).fill(&mut data);
        array.write_at(Sector(16), &data).unwrap();
        drop(array);
        let (mut array, _) = start(&all[1..]);
        let mut back = vec![0; data.len()];
        array.read_at(Sector(16), &mut back).unwrap();
        assert!(back == data, "{blocks:?}");
    }
}
