//! Arrays that raidlab made: placed as mdadm places them, assembled, used and found consistent by the kernel.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

use super::{text, zeroes};
use crate::extent::Extent;
use crate::guest::{TempDir, guest_or_skip};
use crate::support::{Ran, command, raidlab};

const MIB: u64 = 1 << 20;
const MEMBER: u64 = 6 * MIB;

/// Name, layout, flags, members.
type Made = (&'static str, &'static str, &'static [&'static str], usize);

const ARRAYS: [Made; 14] = [
    ("five", "raid5 chunk=64K", &[], 4),
    ("six", "raid6 chunk=64K", &["--bitmap", "internal", "--metadata", "1.1"], 4),
    ("mirror", "raid1", &["--metadata", "1.0", "--bitmap", "internal"], 2),
    ("far", "raid10 chunk=64K far2", &["--assume-clean"], 4),
    ("stripe", "raid0 chunk=64K", &[], 3),
    ("line", "linear", &["--metadata", "1.0"], 3),
    ("four", "raid4 chunk=64K", &["--metadata", "1.0", "--assume-clean"], 3),
    ("ppl", "raid5 chunk=64K left-asymmetric", &["--ppl", "--assume-clean"], 3),
    // The last is the log device.
    ("log", "raid5 chunk=64K", &[JOURNAL], 4),
    ("md9", "raid5 chunk=64K", &["--metadata", "0.90"], 4),
    ("md10", "raid6 chunk=64K", &["--metadata", "0.90", "--bitmap", "internal"], 4),
    ("md11", "raid1", &["--metadata", "0.90", "--bitmap", "internal", "--assume-clean"], 2),
    // Which mdadm 4.2 does not make.
    ("md12", "raid0 chunk=64K", &["--metadata", "0.90"], 3),
    ("md13", "linear", &["--metadata", "0.90"], 3),
];

const JOURNAL: &str = "--write-journal";

/// Creations whose places are compared: sizes of devices in MiB, raidlab's flags and mdadm's.
const SIZES: [u64; 6] = [4, 16, 64, 1024, 4096, 8192];
const PLACED: [(&str, &str, &str); 5] = [
    ("raid10", "--bitmap none", "--level=10 --layout=n2 --bitmap=none"),
    ("raid1", "--bitmap internal", "--level=1 --bitmap=internal"),
    ("raid1", "--bitmap none --metadata 1.0", "--level=1 --metadata=1.0 --bitmap=none"),
    (
        "raid10 chunk=64K",
        "--bitmap internal --metadata 1.1",
        "--level=10 --layout=n2 --chunk=64 --bitmap=internal --metadata=1.1",
    ),
    (
        "raid10 chunk=64K",
        "--bitmap internal --metadata 0.90",
        "--level=10 --layout=n2 --chunk=64 --bitmap=internal --metadata=0.90",
    ),
];

/// Each size is made in two ways, in turn: a creation takes the guest half a second.
fn placed(
    number: usize,
) -> impl Iterator<Item = (usize, &'static (&'static str, &'static str, &'static str))> {
    PLACED.iter().enumerate().filter(move |(kind, _)| (kind + number).is_multiple_of(2))
}

fn create(layout: &str, flags: &[&str], paths: &[String]) -> Ran {
    let is_old = flags.contains(&"0.90") || flags.contains(&"--homehost");
    let host: &[&str] = if is_old { &[] } else { &["--homehost", "nas"] };
    let (members, log) = match flags.contains(&JOURNAL) {
        true => paths.split_at(paths.len() - 1),
        false => (paths, &[][..]),
    };
    let mut create = command();
    create.args(["array", "create", layout]).args(members).args(host).args(flags).args(log);
    create.output().unwrap().into()
}

/// The lines of `mdadm --examine` that say where something lies.
fn places(text: &str) -> Vec<&str> {
    const KEYS: [&str; 8] = [
        "Feature Map",
        "Avail Dev Size",
        "Array Size",
        "Used Dev Size",
        "Data Offset",
        "Super Offset",
        "Internal Bitmap",
        "Bad Block Log",
    ];
    text.lines().filter(|line| KEYS.iter().any(|key| line.trim_start().starts_with(key))).collect()
}

#[test]
fn arrays_of_raidlab_are_taken_by_md_and_lie_where_mdadm_puts_them() {
    let test = "arrays_of_raidlab_are_taken_by_md_and_lie_where_mdadm_puts_them";
    let Some(guest) = guest_or_skip(test) else { return };
    let directory = TempDir::new("array-made");
    let share = directory.path().join("share");
    fs::create_dir(&share).unwrap();
    let path = |name: &str, member: usize| directory.path().join(format!("{name}{member}"));
    let mut files: Vec<_> =
        ["a", "b", "c", "d"].map(|name| directory.file(name, ARRAYS.len() as u64 * MEMBER)).into();
    let pattern: Vec<u8> = (0..2 * MIB).map(|at| (at * 7 + (at >> 9) * 13) as u8).collect();
    fs::write(share.join("pattern"), &pattern).unwrap();
    let mut script = SCRIPT.to_owned();
    for (index, (name, layout, flags, members)) in ARRAYS.iter().enumerate() {
        let paths: Vec<String> = (0..*members)
            .map(|member| text(&directory.file(&format!("{name}{member}"), MEMBER)))
            .collect();
        let flags = [&["--name", name], *flags].concat();
        let ran = create(layout, &flags, &paths).good();
        assert!(ran.stdout.contains(&format!("{name}: ")), "{ran:?}");
        let examined = Command::new("mdadm").arg("--examine").args(&paths).output().unwrap();
        let examined = String::from_utf8(examined.stdout).unwrap();
        assert_eq!(examined.matches(" - correct").count(), *members, "{examined}");
        for (member, file) in files.iter().enumerate().take(*members) {
            let bytes = fs::read(path(name, member)).unwrap();
            let file = File::options().write(true).open(file).unwrap();
            file.write_all_at(&bytes, index as u64 * MEMBER).unwrap();
        }
        script.push_str(&format!("section={} use {name} {members}\n", index + 1));
    }
    for (number, size) in SIZES.iter().enumerate() {
        files.push(directory.file(&format!("size{number}"), size * MIB));
        for (kind, (_, _, mdadm)) in placed(number) {
            let letter = char::from(b'e' + number as u8);
            script.push_str(&format!("place /dev/ubd{letter} {number}-{kind} {mdadm}\n"));
        }
    }
    let sections = vec![MEMBER; ARRAYS.len()];
    let said = guest
        .cut(&sections)
        .run(&script, &files, &share)
        .expect_success("md takes raidlab's arrays");
    let good: String =
        ARRAYS.iter().map(|(name, ..)| format!("{name} mismatches 0 equal\n")).collect();
    assert_eq!(said, good);
    read_back(&directory, &files, &pattern);
    for (number, size) in SIZES.iter().enumerate() {
        for (kind, placed) in placed(number) {
            let expected = fs::read_to_string(share.join(format!("{number}-{kind}"))).unwrap();
            assert_eq!(compare_places(&directory, size * MIB, placed, &expected), None);
        }
    }
}

/// A new array of raidlab's on a file of so many bytes lies where mdadm says that its own does; what is otherwise.
fn compare_places(
    directory: &TempDir,
    bytes: u64,
    (layout, flags, _): &(&str, &str, &str),
    expected: &str,
) -> Option<String> {
    let file = directory.file("placed", bytes);
    let flags: Vec<&str> = flags.split_whitespace().chain(["--assume-clean"]).collect();
    create(layout, &flags, &[text(&file), "missing".into()]).good();
    let ours = raidlab(["array", "examine", &text(&file)]).good().stdout;
    fs::remove_file(file).unwrap();
    let (ours, theirs) = (places(&ours), places(expected));
    (ours != theirs)
        .then(|| format!("{bytes} bytes, {layout} {flags:?}: raidlab {ours:#?}, mdadm {theirs:#?}"))
}

/// Sizes of devices in KiB, up to 12 TiB: around those at which mdadm keeps more for a bitmap (8 GiB, 200 GiB), adds
/// one by itself (100 GiB of data) and has all of its headroom (128 GiB), and of drives of 4 and 6 TB.
const LARGE: [u64; 15] = [
    (8 << 20) + 4,
    (8 << 20) + 8,
    64 << 20,
    (100 << 20) + (64 << 10),
    (100 << 20) + (68 << 10),
    (128 << 20) - 64,
    128 << 20,
    (200 << 20) + 60,
    (200 << 20) + 64,
    1 << 30,
    3_907_018_584,
    4 << 30,
    5_860_522_584,
    8 << 30,
    12 << 30,
];
/// What mdadm decides about the bitmap by itself, and a member of which only some is used.
const PLACED_ON_LARGE: [(&str, &str, &str); 4] = [
    ("raid1", "", "--level=1"),
    ("raid10 chunk=512K", "--metadata 1.0", "--level=10 --layout=n2 --metadata=1.0"),
    (
        "raid1",
        "--bitmap none --metadata 1.0 --size 1GiB",
        "--level=1 --bitmap=none --metadata=1.0 --size=1G",
    ),
    (
        "raid1",
        "--bitmap internal --metadata 1.0 --size 1GiB",
        "--level=1 --bitmap=internal --metadata=1.0 --size=1G",
    ),
];

/// Of 0.90 mdadm takes no larger ones by itself.
const MOST_OF_OLD: u64 = 4 << 30;

fn placed_on_large(
    size: u64,
) -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str)> {
    let all = PLACED.iter().chain(&PLACED_ON_LARGE);
    all.filter(move |(_, flags, _)| size <= MOST_OF_OLD || !flags.contains("0.90"))
}

/// What mdadm says, with KiB from 2^31 on as they are: of version 0.90 it prints them as numbers with a sign.
fn positive(text: &str) -> String {
    let line = |line: &str| {
        let Some((key, rest)) = line.split_once(" : -").filter(|(key, _)| key.contains("Used Dev"))
        else {
            return format!("{line}\n");
        };
        let (number, rest) = rest.split_once(' ').expect("a size in words behind it");
        format!("{key} : {} {rest}\n", (1 << 32) - number.parse::<u64>().expect("a number"))
    };
    text.lines().map(line).collect()
}

/// The files are sparse, and of a mirror or raid10 with a missing member only what stands beside the data is written.
#[test]
fn new_arrays_on_devices_of_up_to_12_tib_lie_where_mdadm_puts_them() {
    let test = "new_arrays_on_devices_of_up_to_12_tib_lie_where_mdadm_puts_them";
    // Each creation takes the guest half a second.
    let sizes = match Extent::from_environment() {
        Extent::All => LARGE.to_vec(),
        Extent::Sample(_) => return,
    };
    let Some(guest) = guest_or_skip(test) else { return };
    let directory = TempDir::new("array-large");
    let share = directory.path().join("share");
    fs::create_dir(&share).unwrap();
    let mut script = SCRIPT.to_owned();
    let mut files = Vec::new();
    for (number, size) in sizes.iter().enumerate() {
        files.push(directory.file(&format!("size{number}"), size << 10));
        for (kind, (_, _, mdadm)) in placed_on_large(*size).enumerate() {
            let letter = char::from(b'a' + number as u8);
            script.push_str(&format!("place /dev/ubd{letter} {number}-{kind} {mdadm}\n"));
        }
    }
    guest.limit(600).run(&script, &files, &share).expect_success("mdadm makes arrays");
    let mut wrong = Vec::new();
    for (number, size) in sizes.iter().enumerate() {
        for (kind, placed) in placed_on_large(*size).enumerate() {
            let expected = fs::read_to_string(share.join(format!("{number}-{kind}"))).unwrap();
            println!("{size} KiB, {placed:?}: {:?}", places(&expected));
            let expected = positive(&expected);
            wrong.extend(compare_places(&directory, size << 10, placed, &expected));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What md wrote to them raidlab reads.
fn read_back(directory: &TempDir, files: &[PathBuf], pattern: &[u8]) {
    for (index, (name, _, flags, members)) in ARRAYS.iter().enumerate() {
        let mut paths = Vec::new();
        for (member, file) in files.iter().enumerate().take(*members) {
            let mut bytes = vec![0; MEMBER as usize];
            File::open(file).unwrap().read_exact_at(&mut bytes, index as u64 * MEMBER).unwrap();
            fs::write(directory.path().join(format!("{name}{member}")), bytes).unwrap();
            paths.push(text(&directory.path().join(format!("{name}{member}"))));
        }
        let out = directory.path().join(format!("{name}.out"));
        paths.push(text(&out));
        // md stopped it: all that stands in its journal is on the members, too.
        paths.extend(flags.contains(&JOURNAL).then(|| "--ignore-journal".into()));
        raidlab([&["array", "export-file"].map(String::from)[..], &paths].concat()).good();
        assert!(fs::read(&out).unwrap().starts_with(pattern), "{name}");
    }
}

const SCRIPT: &str = r#"
set -e
use() { # name, devices
    local devices=() file md=/dev/md$section
    for file in a b c d; do
        [ ${#devices[@]} -ge $2 ] || devices+=(/dev/ubd$file$section)
    done
    mdadm --assemble $md --run "${devices[@]}" 2>/dev/null
    mdadm --wait $md || true
    dd if=$SHARE/pattern of=$md bs=1M oflag=direct 2>/dev/null
    mismatches=0
    if [ -e /sys/block/md$section/md/sync_action ]; then
        echo check >/sys/block/md$section/md/sync_action
        mdadm --wait $md || true
        mismatches=$(cat /sys/block/md$section/md/mismatch_cnt)
    fi
    equal=differs
    ! dd if=$md bs=1M count=2 iflag=direct 2>/dev/null | cmp -s - $SHARE/pattern || equal=equal
    echo $1 mismatches $mismatches $equal
    mdadm --stop $md 2>/dev/null
}
place() { # device, name, arguments
    local device=$1 name=$2
    shift 2
    mdadm --create /dev/md99 --run --homehost=nas --raid-devices=2 --assume-clean "$@" $device missing 2>/dev/null
    mdadm --stop /dev/md99 2>/dev/null
    mdadm --examine $device >$SHARE/$name
    mdadm --zero-superblock $device
}
"#;

/// What a spare's superblock says is what mdadm says of one, and md rebuilds onto it.
#[test]
fn a_spare_of_raidlab_takes_over_in_the_kernel() {
    let Some(guest) = guest_or_skip("a_spare_of_raidlab_takes_over_in_the_kernel") else { return };
    let directory = TempDir::new("array-spare");
    let share = directory.path().join("share");
    fs::create_dir(&share).unwrap();
    let files = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let files: Vec<_> = files.map(|name| directory.file(name, 16 * MIB)).into();
    let paths: Vec<String> = files[..4].iter().map(|file| text(file)).collect();
    let told = create("raid5 chunk=64K", &["--spare", &paths[3]], &paths[..3]).good().stdout;
    assert!(told.contains("  spare     ") && told.contains("rebuild of the last"), "{told}");
    let like = ["one", "two", "three", "four"];
    let like = like.map(|name| text(&directory.file(name, 16 * MIB)));
    let flags = ["--assume-clean", "--name", "like", "--spare", &like[3]];
    create("raid5", &flags, &like[..3]).good();
    let said = guest.run(SPARE, &files, &share).expect_success("md takes raidlab's spare");
    assert_eq!(said, "sound 1 spare\nrebuilt 0 spare\nmismatches 0 equal\n");
    for (own, number) in like.iter().zip(0..) {
        let expected = fs::read_to_string(share.join(number.to_string())).unwrap();
        let ours = raidlab(["array", "examine", own]).good().stdout;
        assert_eq!(places(&ours), places(&expected), "{number}");
        for key in ["Device Role", "Array State", "Events"] {
            let of = |text: &str| text.lines().find(|line| line.contains(key)).map(str::to_owned);
            assert_eq!(of(&ours), of(&expected), "{number}");
        }
    }
    // raidlab itself finds the spare, and has it wait.
    let status = raidlab([&["array", "status"].map(String::from)[..], &like].concat()).good();
    assert!(status.stdout.contains("spare"), "{status:?}");
}

const SPARE: &str = r#"
set -e
spares() { mdadm --detail /dev/md1 | grep -c ' spare ' || true; }
mdadm --assemble /dev/md1 --run /dev/ubd[abcd] 2>/dev/null
mdadm --wait /dev/md1 || true
echo sound $(spares) spare
head -c 1M /dev/urandom >/tmp/bytes
dd if=/tmp/bytes of=/dev/md1 bs=1M oflag=direct 2>/dev/null
mdadm --fail /dev/md1 /dev/ubda 2>/dev/null
mdadm --wait /dev/md1 || true
mdadm --remove /dev/md1 /dev/ubda 2>/dev/null
echo rebuilt $(spares) spare
echo check >/sys/block/md1/md/sync_action
mdadm --wait /dev/md1 || true
equal=differs
! dd if=/dev/md1 bs=1M count=1 iflag=direct 2>/dev/null | cmp -s - /tmp/bytes || equal=equal
echo mismatches $(cat /sys/block/md1/md/mismatch_cnt) $equal
mdadm --stop /dev/md1 2>/dev/null
mdadm --create /dev/md2 --run --homehost=nas --level=5 --raid-devices=3 --spare-devices=1 --assume-clean \
    /dev/ubd[efgh] 2>/dev/null
mdadm --stop /dev/md2 2>/dev/null
number=0
for device in /dev/ubd[efgh]; do
    mdadm --examine $device >$SHARE/$number
    number=$((number + 1))
done
"#;

#[test]
fn nothing_is_made_over_what_is_there() {
    let scratch = crate::support::Scratch::new("array-made");
    let files = ["a", "b", "c"].map(|name| zeroes(&scratch, name, 8 * MIB));
    let contents = || files.clone().map(|path| fs::read(path).unwrap());
    let blank = contents();
    let dry = create("raid5 chunk=64K", &["--dry-run"], &files).good().stdout;
    assert!(dry.contains("would be made") && dry.contains("rebuild of the last member"), "{dry}");
    assert!(contents() == blank, "a dry run writes nothing");
    let begins = |layout: &str, flags: &[&str], files: &[String]| {
        let told = create(layout, &[&["--dry-run"], flags].concat(), files).good().stdout;
        told.lines().last().expect("what md begins with").to_owned()
    };
    let [a, b, c] = files.clone();
    let none = "missing".to_owned();
    let (lacking, spare) = ([a.clone(), b.clone(), none.clone()], ["--spare", c.as_str()]);
    assert!(begins("raid5", &[], &lacking).contains("neither rebuild nor resync"));
    assert!(begins("raid5", &spare, &lacking).contains("rebuild onto a spare"));
    let copies = [a, b, none, c.clone()];
    assert_eq!(begins("raid10", &[], &copies), "md begins with a resync");
    let uuid = "00112233:44556677:8899aabb:ccddeeff";
    create("raid5 chunk=64K", &["--uuid", uuid, "--name", "one"], &files).good();
    let made = contents();
    let again = create("raid1(3)", &[], &files);
    assert_eq!((again.code, contents() == made), (Some(3), true), "{again:?}");
    assert!(again.stderr.contains("nas:one") && again.stderr.contains(uuid), "{again:?}");
    // A superblock of another place goes when a new one is made.
    create("raid1(3)", &["--overwrite", "--metadata", "1.0", "--name", "two"], &files).good();
    let scan = raidlab([&["array", "examine", "--scan"].map(String::from)[..], &files].concat());
    assert_eq!(scan.stdout.matches("ARRAY").count(), 1, "{scan:?}");
    let mut bytes = vec![0; 8 * MIB as usize];
    bytes[5] = 1;
    fs::write(&files[0], &bytes).unwrap();
    assert_eq!(create("raid1(3)", &[], &files).code, Some(3));
    for (layout, flags, words) in [
        ("raid3", &[][..], "Linux md has no raid3"),
        ("raid5(4)", &[], "has 4 members, 3 are given"),
        ("raid0", &["--bitmap", "internal"], "no redundancy"),
        ("raid1", &["--size", "1GiB"], "the smallest member has"),
        ("raid1", &["--data-offset", "100"], "multiple of 512"),
        ("raid1", &["--uuid", "12"], "32 hexadecimal digits"),
        ("raid1", &["--metadata", "0.91"], "known: 0.90, 1.0, 1.1, 1.2"),
        ("raid1", &["--metadata", "0.90", "--homehost", "nas"], "has no place for a host"),
        ("raid1", &["--metadata", "0.90", "--name", "data"], "not `data`"),
        ("raid5", &["--metadata", "0.90", "--ppl"], "partial parity"),
        ("raid1", &[JOURNAL], "a journal is for raid4, raid5 and raid6"),
    ] {
        let ran = create(layout, &[&["--overwrite"], flags].concat(), &files);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(words), "{words}: {ran:?}");
    }
    nothing_is_made_over_what_is_on_a_log_device(&files);
    let again = format!("{}-again", files[1]);
    fs::hard_link(&files[1], &again).unwrap();
    for (again, code, words) in
        [(files[1].clone(), 2, "is given twice"), (again, 1, "a member already")]
    {
        let ran = create("raid1", &["--overwrite"], &[files[1].clone(), again]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stderr.contains(words), "{ran:?}");
    }
}

/// The last of these files is that of the log device.
fn nothing_is_made_over_what_is_on_a_log_device(files: &[String; 3]) {
    let [one, two, log] = files;
    let third = format!("{one}-third");
    let blank = vec![0; 8 * MIB as usize];
    for path in [one, two, &third] {
        fs::write(path, &blank).unwrap();
    }
    let paths = [one.clone(), two.clone(), third, log.clone()];
    let contents = || paths.clone().map(|path| fs::read(path).unwrap());
    let before = contents();
    let ran = create("raid5 chunk=64K", &[JOURNAL], &paths);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains(log) && ran.stderr.contains("nas:two"), "{ran:?}");
    let dry = ["--overwrite", "--dry-run", JOURNAL];
    let dry = create("raid5 chunk=64K", &dry, &paths).good().stdout;
    assert!(dry.contains(&format!("  journal   {log}  7MiB\n")), "{dry}");
    for (flags, words) in [
        (&["--metadata", "1.0", JOURNAL][..], "version 1.0 has no journal"),
        (
            &["--metadata", "0.90", "--name", "md1", "--homehost", "", JOURNAL],
            "0.90 has no journal",
        ),
        (&["--bitmap", "internal", JOURNAL], "a journal or a bitmap"),
        (&["--ppl", JOURNAL], "cannot be used with"),
        (&["--metadata", "geom", JOURNAL], "--write-journal"),
    ] {
        let ran = create("raid5 chunk=64K", &[&["--overwrite"], flags].concat(), &paths);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(words), "{words}: {ran:?}");
    }
    assert!(contents() == before, "nothing was written");
    let twice = [one.clone(), two.clone(), two.clone()];
    let ran = create("raid4(2)", &[JOURNAL, "--overwrite"], &twice);
    assert!(ran.code != Some(0) && contents() == before, "{ran:?}");
    create("raid5 chunk=64K", &["--overwrite", JOURNAL], &paths).good();
    let status = |flags: &[&str]| {
        let flags = flags.iter().map(|flag| (*flag).to_owned());
        let status = ["array", "status"].map(String::from).into_iter().chain(flags);
        raidlab(status.chain(paths.clone()).collect::<Vec<_>>()).good().stdout
    };
    let told = status(&[]);
    assert!(told.contains(&format!("  journal   {log}\n")), "{told}");
    assert!(status(&["--json"]).contains(&format!("\"journal\": \"{log}\"")));
}
