//! An array that is only read: members in files that are open for reading, one missing, one with blocks that are bad.

use std::fs;
use std::path::PathBuf;

use raidlab_core::contract::IoOp;
use raidlab_core::{Config, Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, EngineConfig, EngineErrorKind, FileMember, FileOptions, Member};

const MEMBER: Sectors = Sectors(1024);
const OFFSET: Sectors = Sectors(64);

struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("raidlab-read-only-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn path(&self, member: usize) -> PathBuf {
        self.0.join(member.to_string())
    }

    fn open(&self, member: usize, read_only: bool) -> Result<Member, EngineErrorKind> {
        let options = FileOptions {
            data_offset: OFFSET,
            sectors: Some(MEMBER),
            direct: false,
            read_only,
            ..FileOptions::default()
        };
        FileMember::open(&self.path(member), options)
            .map(Member::from)
            .map_err(|error| error.kind())
    }

    fn contents(&self) -> Vec<Vec<u8>> {
        (0..3).map(|member| fs::read(self.path(member)).unwrap()).collect()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A raid5 of three files that holds what is returned.
fn filled(files: &Files, layout: &Layout) -> Vec<u8> {
    for member in 0..3 {
        let file = fs::File::create(files.path(member)).unwrap();
        file.set_len((OFFSET + MEMBER).bytes()).unwrap();
    }
    let members = (0..3).map(|member| files.open(member, false).unwrap()).collect();
    let mut engine = Engine::new(&EngineConfig::new(layout.clone()), members).unwrap();
    let bytes: Vec<u8> =
        (0..engine.array().capacity().bytes()).map(|at| (at / 512 * 7 + at % 251) as u8).collect();
    engine.write_at(Sector(0), &bytes).unwrap();
    engine.flush().unwrap();
    bytes
}

#[test]
fn what_is_missing_or_bad_is_computed_and_nothing_is_written() {
    let files = Files::new("raid5");
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(16));
    let expected = filled(&files, &layout);
    let config = Config::uniform(layout, MEMBER);
    let before = files.contents();
    let read = |missing: Option<usize>, bad: &[(MemberIndex, Sector, Sectors)]| {
        let there = |member| (Some(member) != missing).then(|| files.open(member, true).unwrap());
        let mut engine = Engine::read_only(&config, (0..3).map(there).collect(), bad).unwrap();
        let mut bytes = vec![0; expected.len()];
        let outcome = engine.read_at(Sector(0), &mut bytes).map_err(|error| error.kind());
        // Changes are refused.
        let refused = engine.write_at(Sector(0), &[1; 512]).unwrap_err();
        assert_eq!(refused.kind(), EngineErrorKind::Stopped);
        let zeroed = engine.submit_range(IoOp::WriteZeroes, Sector(0), Sectors(16)).unwrap();
        let mut replies = Vec::new();
        engine.run_until_idle(&mut replies).unwrap();
        assert!(replies.iter().all(|reply| reply.id == zeroed));
        assert_eq!(engine.totals().writes, 0);
        (outcome, bytes)
    };
    assert!(read(None, &[]) == (Ok(()), expected.clone()));
    for missing in 0..3 {
        assert!(read(Some(missing), &[]) == (Ok(()), expected.clone()), "{missing}");
    }
    // What is listed as bad is had from the others, and is lost where those are not enough.
    let bad = [(MemberIndex(0), Sector(40), Sectors(8)), (MemberIndex(2), Sector(500), Sectors(1))];
    assert!(read(None, &bad) == (Ok(()), expected.clone()));
    assert_eq!(read(Some(1), &bad).0, Err(EngineErrorKind::MediaError));
    assert!(files.contents() == before);
}

/// A member whose file is cut off while it is read is done without, and left as it is.
#[test]
fn what_was_cut_off_is_computed_and_not_healed() {
    let files = Files::new("cut");
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(16));
    let expected = filled(&files, &layout);
    let config = Config::uniform(layout, MEMBER);
    let members = (0..3).map(|member| Some(files.open(member, true).unwrap())).collect();
    let mut engine = Engine::read_only(&config, members, &[]).unwrap();
    let file = fs::File::options().write(true).open(files.path(1)).unwrap();
    file.set_len((OFFSET + Sectors(900)).bytes()).unwrap();
    let before = files.contents();
    let mut bytes = vec![0; expected.len()];
    for _ in 0..2 {
        engine.read_at(Sector(0), &mut bytes).unwrap();
        assert!(bytes == expected);
    }
    assert_eq!(engine.totals().writes, 0);
    assert!(files.contents() == before);
}

#[test]
fn too_few_members_are_no_array_and_others_keep_their_claim() {
    let files = Files::new("claims");
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(16));
    filled(&files, &layout);
    let config = Config::uniform(layout, MEMBER);
    let one = vec![Some(files.open(0, true).unwrap()), None, None];
    assert_eq!(Engine::read_only(&config, one, &[]).unwrap_err().kind(), EngineErrorKind::Config);
    // Whoever writes to a member goes on, and is not kept from beginning to.
    let writer = files.open(0, false).unwrap();
    let reader = files.open(0, true);
    assert!(reader.is_ok());
    drop(writer);
    assert!(files.open(0, false).is_ok());
}
