//! Both sides against each other over a socket: every framing, every command, every refusal.

mod support;

use raidlab_nbd::client::Wanted;
use raidlab_nbd::{Command, ErrorCode, Extent, Framing};
use support::{Client, Directory, Memory, able, wanted};

const READ: Command = Command::Read { whole: false };
const FRAMINGS: [Framing; 3] = [Framing::Simple, Framing::Structured, Framing::Extended];

#[test]
fn every_command_in_every_framing() {
    let directory = Directory::new("every");
    let memory = Memory::new(vec![able("disk", 1 << 20)]);
    let path = memory.listen(&directory.0);
    for framing in FRAMINGS {
        memory.bytes[0].lock().unwrap().fill(0);
        let mut client = Client::connect(&path, wanted("disk", framing)).unwrap();
        assert_eq!((client.chosen.framing, client.chosen.size), (framing, 1 << 20));
        assert_eq!(client.chosen.abilities, memory.exports[0].abilities);
        assert_eq!(client.chosen.blocks, memory.exports[0].blocks);
        let data: Vec<u8> = (0..10_000).map(|n| (n % 251) as u8).collect();
        client.ask(Command::Write, 5_000, 10_000, &data).unwrap();
        assert_eq!(client.ask(READ, 5_000, 10_000, &[]).unwrap().0, data, "{framing:?}");
        assert_eq!(client.ask(READ, 500_000, 70_000, &[]).unwrap().0, vec![0; 70_000]);
        client.ask(Command::Flush, 0, 0, &[]).unwrap();
        client.ask(Command::Cache, 0, 4096, &[]).unwrap();
        client.ask(Command::WriteZeroes { no_hole: true, fast: false }, 6_000, 10, &[]).unwrap();
        assert_eq!(client.ask(READ, 5_999, 12, &[]).unwrap().0[1..11], [0; 10]);
        let fast = Command::WriteZeroes { no_hole: false, fast: true };
        assert_eq!(client.ask(fast, 0, 4096, &[]), Ok((vec![], vec![])));
        assert_eq!(client.ask(fast, 4096, 4096, &[]), Err(ErrorCode::NotSupported));
        client.ask(Command::Trim, 0, 1 << 20, &[]).unwrap();
        assert_eq!(client.ask(READ, 5_000, 100, &[]).unwrap().0, vec![0; 100]);
        if framing != Framing::Simple {
            let whole = Command::Read { whole: true };
            assert_eq!(client.ask(whole, 0, 65_536, &[]).unwrap().0, vec![0; 65_536]);
        }
    }
}

#[test]
fn states_of_blocks_are_told_for_the_contexts_that_were_chosen() {
    let directory = Directory::new("states");
    let memory = Memory::new(vec![able("disk", 40_960)]);
    let path = memory.listen(&directory.0);
    memory.bytes[0].lock().unwrap()[9_000] = 1;
    for framing in [Framing::Structured, Framing::Extended] {
        let mut wants = wanted("disk", framing);
        wants.contexts = ["x-test:odd", "base:allocation", "x-test:none"].map(String::from).into();
        let mut client = Client::connect(&path, wants).unwrap();
        let names: Vec<_> = client.chosen.contexts.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["base:allocation", "x-test:odd"]);
        let hole = Extent::HOLE | Extent::ZERO;
        let extent = |len, flags| Extent { len, flags };
        let (_, all) = client.ask(Command::BlockStatus { one: false }, 0, 40_960, &[]).unwrap();
        assert_eq!(all[0].1, [extent(8192, hole), extent(4096, 0), extent(28_672, hole)]);
        assert_eq!((all[1].1.len(), all[1].1[1]), (10, extent(4096, 1)));
        // The last extent may go on beyond what was asked for, unless one is asked for.
        let (_, some) = client.ask(Command::BlockStatus { one: false }, 4096, 100, &[]).unwrap();
        assert_eq!(some[0].1, [extent(4096, hole)]);
        let (_, one) = client.ask(Command::BlockStatus { one: true }, 0, 100, &[]).unwrap();
        assert_eq!((&one[0].1[..], one[1].1.len()), (&[extent(100, hole)][..], 1));
    }
    let mut without = Client::connect(&path, wanted("disk", Framing::Simple)).unwrap();
    let status = without.ask(Command::BlockStatus { one: false }, 0, 4096, &[]);
    assert_eq!(status, Err(ErrorCode::Invalid));
}

/// The connection goes on after each refusal, also where data had to be passed over.
#[test]
fn what_cannot_be_is_refused_and_the_connection_goes_on() {
    let mut export = able("disk", 1 << 20);
    export.blocks.minimum = 512;
    export.blocks.maximum = 65_536;
    let mut plain = raidlab_nbd::Export::new("plain", 8192);
    plain.abilities.read_only = true;
    let directory = Directory::new("refused");
    let memory = Memory::new(vec![export, plain]);
    let path = memory.listen(&directory.0);
    for framing in FRAMINGS {
        let mut client = Client::connect(&path, wanted("disk", framing)).unwrap();
        let mut refused = |command, at, len: u64, error| {
            let data = if command == Command::Write { vec![1; len as usize] } else { Vec::new() };
            assert_eq!(client.ask(command, at, len, &data), Err(error), "{command:?} {at} {len}");
        };
        refused(Command::Write, 100, 512, ErrorCode::Invalid);
        refused(Command::Write, 0, 100, ErrorCode::Invalid);
        refused(Command::Write, 0, 0, ErrorCode::Invalid);
        refused(Command::Write, (1 << 20) - 512, 1024, ErrorCode::NoSpace);
        refused(Command::Write, u64::MAX - 511, 1024, ErrorCode::NoSpace);
        refused(Command::Write, 0, 66_048, ErrorCode::Invalid);
        refused(READ, 0, 66_048, ErrorCode::Invalid);
        refused(READ, 1 << 20, 512, ErrorCode::Invalid);
        refused(READ, 0, 0, ErrorCode::Invalid);
        refused(Command::Trim, 0, 2 << 20, ErrorCode::Invalid);
        assert_eq!(client.ask(READ, 0, 512, &[]).unwrap().0, [0; 512]);
        let mut plain = Client::connect(&path, wanted("plain", framing)).unwrap();
        assert_eq!(plain.ask(Command::Write, 0, 512, &[1; 512]), Err(ErrorCode::NotPermitted));
        for command in [Command::Flush, Command::Trim, Command::Cache] {
            assert_eq!(plain.ask(command, 0, 0, &[]), Err(ErrorCode::Invalid), "{command:?}");
        }
        assert_eq!(plain.ask(READ, 0, 512, &[]).unwrap().0, [0; 512]);
    }
    assert!(memory.asked.lock().unwrap().iter().all(|request| request.command == READ));
}

#[test]
fn exports_are_listed_and_found_by_name_and_the_first_without_one() {
    let directory = Directory::new("listed");
    let memory = Memory::new(vec![able("one", 4096), able("two", 8192)]);
    let path = memory.listen(&directory.0);
    let size = |name: &str| {
        Client::connect(&path, wanted(name, Framing::Structured)).map(|client| client.chosen.size)
    };
    assert_eq!((size("one"), size("two"), size("")), (Ok(4096), Ok(8192), Ok(4096)));
    let missing = size("three").unwrap_err();
    assert_eq!(
        missing,
        "the server refused the export: it has no export of that name (there is no export of that name)"
    );
    let list = Wanted { export: None, ..wanted("", Framing::Simple) };
    let list = Client::connect(&path, list).err().unwrap();
    assert!(list.contains("\"two\"") && list.contains("8192 bytes of memory"), "{list}");
    let tls = Wanted { tls: true, ..wanted("one", Framing::Structured) };
    let refused = Client::connect(&path, tls).err().unwrap();
    assert!(refused.starts_with("the server refused TLS"), "{refused}");
}
