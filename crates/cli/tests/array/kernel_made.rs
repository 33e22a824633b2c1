//! Arrays made and filled by the kernel's md.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::text;
use crate::guest::{TempDir, guest_or_skip};
use crate::support::{Ran, command};

const MIB: u64 = 1 << 20;
/// Bytes of each member but those of `unequal`.
const MEMBER: u64 = 6 * MIB;
/// Blocks that arrays are filled in; what is left at the end stays zero.
const BLOCK: u64 = 64 << 10;

/// An array that the guest makes, on one section of as many files as it has devices.
struct Made {
    name: &'static str,
    /// What mdadm is told.
    arguments: &'static str,
    devices: usize,
    /// Members it can be read without, besides none.
    lost: &'static [&'static [usize]],
}

const ARRAYS: [Made; 15] = [
    made("five", "--level=5 -n4 --chunk=64 --assume-clean", 4, &[&[0], &[1], &[2], &[3]]),
    made(
        "six",
        "--level=6 -n4 --chunk=64 --metadata=1.1 --bitmap=internal --assume-clean",
        4,
        &[&[0, 1], &[2, 3], &[1, 3]],
    ),
    made("mirror", "--level=1 -n3 --metadata=1.0 --assume-clean", 3, &[&[0, 1], &[1, 2]]),
    made("near", "--level=10 -n3 --chunk=64 --layout=n2 --assume-clean", 3, &[&[0], &[2]]),
    made(
        "far",
        "--level=10 -n4 --chunk=64 --layout=f2 --metadata=1.0 --bitmap=internal --assume-clean",
        4,
        &[&[0], &[3]],
    ),
    made("offset", "--level=10 -n4 --chunk=64 --layout=o2 --assume-clean", 4, &[&[1]]),
    made("stripe", "--level=0 -n4 --chunk=64", 4, &[]),
    made("line", "--level=linear -n3 --metadata=1.1", 3, &[]),
    // A size that their superblocks say and md does not go by.
    made("stripe-size", "--level=0 -n2 --chunk=64 --size=2048", 2, &[]),
    made("line-size", "--level=linear -n2 --size=2048", 2, &[]),
    made("four", "--level=4 -n3 --chunk=64 --metadata=1.0 --assume-clean", 3, &[&[0], &[2]]),
    made(
        "zero-restart",
        "--level=6 -n4 --chunk=64 --layout=ddf-zero-restart --assume-clean",
        4,
        &[&[0, 1], &[0, 3]],
    ),
    made("ppl", "--level=5 -n3 --chunk=64 --consistency-policy=ppl --assume-clean", 3, &[&[1]]),
    // Born as a rebuild, which the guest waits for.
    made("rebuilt", "--level=5 -n3 --chunk=64", 3, &[&[0], &[2]]),
    // Copied before it was stopped.
    made("dirty", "--level=5 -n3 --chunk=64 --bitmap=internal --assume-clean", 3, &[]),
];

/// The same of version 0.90, whose arrays have no names: they are called by their devices. mdadm 4.2 makes no raid0 of
/// it.
const OLD: [Made; 9] = [
    made("five", "--level=5 -n4 --chunk=64 --assume-clean", 4, &[&[0], &[1], &[2], &[3]]),
    made(
        "six",
        "--level=6 -n4 --chunk=64 --bitmap=internal --assume-clean",
        4,
        &[&[0, 1], &[2, 3], &[1, 3]],
    ),
    made("mirror", "--level=1 -n3 --bitmap=internal --assume-clean", 3, &[&[0, 1], &[1, 2]]),
    made("far", "--level=10 -n4 --chunk=64 --layout=f2 --assume-clean", 4, &[&[0], &[3]]),
    made("line", "--level=linear -n3", 3, &[]),
    made("four", "--level=4 -n3 --chunk=64 --assume-clean", 3, &[&[0], &[2]]),
    made("rebuilt", "--level=5 -n3 --chunk=64", 3, &[&[0], &[2]]),
    // A mirror over as many drives as fit into the box, as NAS devices keep their system on.
    made(
        "system",
        "--level=1 -n12 --assume-clean missing missing missing missing missing missing missing missing missing missing",
        2,
        &[&[0], &[1]],
    ),
    made("dirty", "--level=5 -n3 --chunk=64 --bitmap=internal --assume-clean", 3, &[]),
];

const fn made(
    name: &'static str,
    arguments: &'static str,
    devices: usize,
    lost: &'static [&'static [usize]],
) -> Made {
    Made { name, arguments, devices, lost }
}

/// Fills each array. The members of `dirty` are copied while it runs.
const SCRIPT: &str = r#"
set -e
fill() { # name, arguments, devices
    local devices=() file
    for file in a b c d; do
        [ ${#devices[@]} -ge $3 ] || devices+=(/dev/ubd$file$section)
    done
    mdadm --create /dev/md$section --run --homehost=nas --name=$1 $2 "${devices[@]}" 2>/dev/null
    [ $1 != rebuilt ] || mdadm --wait /dev/md$section || true
    [ $1 != dirty ] || echo 1000 >/sys/block/md$section/md/safe_mode_delay
    count=$(($(cat /sys/block/md$section/size) / 128))
    echo $1 $count
    dd if=$SHARE/pattern of=/dev/md$section bs=64k count=$count oflag=direct 2>/dev/null
    if [ $1 = dirty ]; then
        # As a crash would leave it: a guest that ends stops its arrays.
        for file in a b c; do dd if=/dev/ubd$file$section of=$SHARE/$file bs=1M iflag=direct 2>/dev/null; done
    fi
    mdadm --stop /dev/md$section 2>/dev/null
}
"#;

/// Files of the members of each array.
struct Members {
    arrays: &'static [Made],
    directory: TempDir,
    pattern: Vec<u8>,
    /// Blocks that the guest filled, by array.
    blocks: Vec<(String, u64)>,
}

impl Members {
    fn path(&self, name: &str, member: usize) -> PathBuf {
        self.directory.path().join(format!("{name}{member}"))
    }

    fn paths(&self, made: &Made, without: &[usize]) -> Vec<String> {
        let there = (0..made.devices).filter(|member| !without.contains(member));
        there.map(|member| text(&self.path(made.name, member))).collect()
    }

    fn made(&self, name: &str) -> &'static Made {
        self.arrays.iter().find(|made| made.name == name).expect("it was made")
    }

    /// What the array must hold.
    fn expected(&self, name: &str) -> &[u8] {
        let (_, blocks) = self.blocks.iter().find(|(known, _)| known == name).expect("it was made");
        &self.pattern[..(blocks * BLOCK) as usize]
    }
}

/// Bytes that compress to nothing and repeat nowhere.
fn pattern(bytes: u64) -> Vec<u8> {
    let mut state = 0x1234_5678_9abc_def1_u64;
    let word = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..bytes / 8).flat_map(word).collect()
}

/// Boots the guest, and makes a file of each member's section. mdadm is told of `version`, too.
fn make(guest: crate::guest::Guest, arrays: &'static [Made], version: &str) -> Members {
    let directory = TempDir::new("array-kernel");
    let share = directory.path().join("share");
    fs::create_dir(&share).unwrap();
    let pattern = pattern(4 * MEMBER);
    fs::write(share.join("pattern"), &pattern).unwrap();
    let files: Vec<_> =
        ["a", "b", "c", "d"].map(|name| directory.file(name, arrays.len() as u64 * MEMBER)).into();
    let mut script = SCRIPT.to_owned();
    for (section, made) in (1..).zip(arrays) {
        let Made { name, arguments, devices, .. } = made;
        let arguments = format!("{version} {arguments}");
        script.push_str(&format!("section={section} fill {name} '{arguments}' {devices}\n"));
    }
    let guest = guest.cut(&vec![MEMBER; arrays.len()]);
    let said = guest.run(&script, &files, &share).expect_success("md makes and fills arrays");
    let line = |line: &str| {
        let (name, blocks) = line.split_once(' ').expect("a name and a number");
        (name.to_owned(), blocks.parse().expect("a number"))
    };
    let blocks = said.lines().map(line).collect();
    for (index, made) in arrays.iter().enumerate() {
        for (member, file) in files.iter().enumerate().take(made.devices) {
            let mut bytes = vec![0; MEMBER as usize];
            File::open(file).unwrap().read_exact_at(&mut bytes, index as u64 * MEMBER).unwrap();
            if made.name == "dirty" {
                bytes = fs::read(share.join(file.file_name().unwrap())).unwrap();
            }
            fs::write(directory.path().join(format!("{}{member}", made.name)), bytes).unwrap();
        }
    }
    Members { arrays, directory, pattern, blocks }
}

fn array(command_name: &str, arguments: &[String]) -> Ran {
    command().args(["array", command_name]).args(arguments).output().unwrap().into()
}

/// Copies an array to a file and compares it.
fn export(members: &Members, made: &Made, without: &[usize], flags: &[&str]) {
    let out = members.directory.path().join("out");
    let mut arguments = members.paths(made, without);
    arguments.push(text(&out));
    arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let ran = array("export-file", &arguments);
    assert_eq!(ran.code, Some(0), "{} without {without:?}: {ran:?}", made.name);
    let got = fs::read(&out).unwrap();
    let expected = members.expected(made.name);
    assert!(got[..expected.len()] == *expected, "{} without {without:?} differs", made.name);
    assert!(got[expected.len()..].iter().all(|byte| *byte == 0), "{}", made.name);
    assert!((got.len() as u64) < expected.len() as u64 + BLOCK, "{}", made.name);
    fs::remove_file(out).unwrap();
}

fn contents(members: &Members, made: &Made) -> Vec<Vec<u8>> {
    (0..made.devices).map(|member| fs::read(members.path(made.name, member)).unwrap()).collect()
}

/// Also: what mdadm prints of them, and of what `dump-metadata` saved.
#[test]
fn arrays_of_the_kernel_are_read_and_not_changed() {
    let Some(guest) = guest_or_skip("arrays_of_the_kernel_are_read_and_not_changed") else {
        return;
    };
    let members = make(guest, &ARRAYS, "");
    for made in &ARRAYS {
        read(&members, made, &format!("nas:{}", made.name));
    }
    scanned(&members);
    dirty(&members);
    too_few(&members);
    saved(&members, members.made("far"), MEMBER - 24 * 512);
}

/// An array whole and degraded, and what is said of it.
fn read(members: &Members, made: &Made, name: &str) {
    let before = contents(members, made);
    examined(members, made);
    export(members, made, &[], &[]);
    for lost in made.lost {
        export(members, made, lost, &[]);
    }
    let status = array("status", &members.paths(made, &[])).good().stdout;
    assert!(status.contains(&format!("{name}: ")), "{status}");
    assert!(before == contents(members, made), "{}: a member has changed", made.name);
}

/// Also: a bitmap of the array, another order of bytes, and what `dump-metadata` saved.
#[test]
fn arrays_of_version_0_90_are_read_and_not_changed() {
    let Some(guest) = guest_or_skip("arrays_of_version_0_90_are_read_and_not_changed") else {
        return;
    };
    let members = make(guest, &OLD, "--metadata=0.90");
    for (section, made) in (1..).zip(&OLD) {
        read(&members, made, &format!("md{section}"));
    }
    scanned(&members);
    dirty(&members);
    let status = array("status", &members.paths(members.made("dirty"), &[])).good().stdout;
    assert!(status.contains("1 of 1 ranges may be inconsistent"), "{status}");
    let five = members.made("five");
    saved(&members, five, MEMBER - (64 << 10));
    for member in 0..five.devices {
        let path = members.path("five", member);
        let mut bytes = fs::read(&path).unwrap();
        swap(&mut bytes[(MEMBER - (64 << 10)) as usize..][..4096]);
        fs::write(&path, bytes).unwrap();
    }
    export(&members, five, &[2], &[]);
}

/// Brings a superblock into the other order of bytes: each word, and the two words of each longer number.
fn swap(superblock: &mut [u8]) {
    for word in superblock.chunks_mut(4) {
        word.reverse();
    }
    for first in [39, 41, 44] {
        let (one, other) = superblock.split_at_mut(4 * first + 4);
        one[4 * first..].swap_with_slice(&mut other[..4]);
    }
}

/// What is printed of members is what mdadm prints.
fn examined(members: &Members, made: &Made) {
    let paths = members.paths(made, &[]);
    let mdadm = Command::new("mdadm").arg("--examine").args(&paths).env("TZ", "UTC").output();
    let expected = String::from_utf8(mdadm.unwrap().stdout).unwrap();
    assert_eq!(array("examine", &paths).good().stdout, expected);
}

/// Lines for mdadm.conf are mdadm's.
fn scanned(members: &Members) {
    let paths: Vec<String> =
        members.arrays.iter().flat_map(|made| members.paths(made, &[])).collect();
    for verbose in [&[][..], &["--verbose"]] {
        let flags = [&["--scan"], verbose].concat();
        let mdadm = Command::new("mdadm").arg("--examine").args(&flags).args(&paths).output();
        let expected = String::from_utf8(mdadm.unwrap().stdout).unwrap();
        let all =
            flags.iter().map(|flag| (*flag).to_owned()).chain(paths.clone()).collect::<Vec<_>>();
        assert_eq!(array("examine", &all).good().stdout, expected);
    }
}

/// What the kernel left running: whole it is read, with a member missing only when that is allowed.
fn dirty(members: &Members) {
    let made = members.made("dirty");
    let status = array("status", &members.paths(made, &[])).good().stdout;
    assert!(status.contains("not stopped cleanly"), "{status}");
    let ran = array("status", &members.paths(made, &[1]));
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("--allow-dirty-degraded"), "{ran:?}");
    export(members, made, &[1], &["--allow-dirty-degraded"]);
}

fn too_few(members: &Members) {
    let made = &ARRAYS[0];
    let mut arguments = members.paths(made, &[0, 1]);
    arguments.push(text(&members.path("mirror", 0)));
    let ran = array("status", &arguments);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    for words in [
        "cannot be read without member 0 and 1",
        "mirror0 (member 0): of another array (nas:mirror)",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
}

/// What was saved is what mdadm reads, and brings back what was lost behind so many bytes of data.
fn saved(members: &Members, made: &Made, data: u64) {
    let paths = members.paths(made, &[]);
    let directory = text(&members.directory.path().join("saved"));
    let to = [&paths[..], &["--to".into(), directory.clone()]].concat();
    array("dump-metadata", &to).good();
    let shown = |path: &Path| {
        let mdadm = Command::new("mdadm").arg("--examine").arg(path).output().unwrap();
        let text = String::from_utf8(mdadm.stdout).unwrap();
        text.split_once('\n').expect("a first line").1.to_owned()
    };
    let before = contents(members, made);
    let path = members.path(made.name, 2);
    let copy = Path::new(&directory).join(format!("{}2", made.name));
    assert_eq!(shown(&copy), shown(&path));
    // All that is no data goes, and comes back.
    let data = data as usize;
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&vec![0; MEMBER as usize - data], data as u64).unwrap();
    let from = ["--from".to_owned(), directory];
    let one = [&[text(&path)], &from[..]].concat();
    let told = array("restore-metadata", &one).good().stdout;
    assert!(told.contains("--destructive does it"), "{told}");
    assert!(array("status", &[text(&path)]).code == Some(1));
    array("restore-metadata", &[&one[..], &["--destructive".into()]].concat()).good();
    let metadata = |bytes: &[u8]| bytes[data..].to_vec();
    assert!(metadata(&fs::read(&path).unwrap()) == metadata(&before[2]));
    fs::write(&path, &before[2]).unwrap();
}
