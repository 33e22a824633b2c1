//! Every input of the corpora is replayed; `cargo xtask fuzz` finds them.

use std::fs;
use std::path::PathBuf;

use raidlab_fuzz::TARGETS;

#[path = "../../../tests/support/corpus.rs"]
mod corpus;

/// Bytes of all corpora together at most, and of an input.
const MOST_BYTES: usize = 2_000_000;
const LONGEST: usize = 8192;

fn packed(target: &str) -> Vec<u8> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("corpora").join(target).with_extension("corpus");
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn replay(target: &str) {
    let (_, run) = TARGETS.iter().find(|(name, _)| *name == target).expect("is a target");
    let packed = packed(target);
    let inputs = corpus::unpack(&packed).expect("is whole");
    assert!(!inputs.is_empty());
    for input in inputs {
        // A panic says what went wrong; this says of what.
        println!("{:?}", input.escape_ascii().to_string());
        run(input);
    }
}

macro_rules! replays {
    ($($target:ident),* $(,)?) => {
        $(
            #[test]
            fn $target() {
                replay(stringify!($target));
            }
        )*

        #[test]
        fn every_target_is_replayed() {
            let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [$(stringify!($target)),*]);
        }
    };
}

replays!(
    assembly, ddf, drive, fio, fuse, geom, layout, lvm, md, metadata, nbd, parameters, results,
    store, study, tar, trace, written,
);

#[test]
fn the_corpora_are_small() {
    let packed: Vec<Vec<u8>> = TARGETS.iter().map(|(name, _)| packed(name)).collect();
    assert!(packed.iter().map(Vec::len).sum::<usize>() < MOST_BYTES);
    for packed in &packed {
        let inputs = corpus::unpack(packed).expect("is whole");
        assert!(inputs.iter().all(|input| input.len() <= LONGEST));
        assert!(inputs.windows(2).all(|two| (two[0].len(), two[0]) < (two[1].len(), two[1])));
    }
}

#[test]
fn what_is_packed_is_unpacked() {
    let mut inputs = vec![b"abc".to_vec(), Vec::new(), b"ab".to_vec(), b"abc".to_vec()];
    let packed = corpus::pack(&mut inputs);
    assert_eq!(corpus::unpack(&packed), Some(vec![&b""[..], b"ab", b"abc"]));
    for cut in 1..packed.len() {
        let whole = [4, 10].contains(&cut);
        assert_eq!(corpus::unpack(&packed[..cut]).is_some(), whole, "{cut}");
    }
}
