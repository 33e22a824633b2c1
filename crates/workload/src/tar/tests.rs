use std::collections::BTreeMap;

use super::archive::sum;
use super::*;
use crate::kinds;
use crate::null::NullTarget;
use crate::op::{Attribute, AttributeTarget, Content};
use crate::plan::Memory;

fn parameters(text: &str) -> Parameters {
    let pairs = text.split_whitespace().map(|pair| pair.split_once('=').expect("key=value"));
    Parameters::new(pairs).expect("no key twice")
}

/// A header as GNU tar writes it.
fn header(name: &str, kind: u8, size: u64, link: &str) -> Vec<u8> {
    let mut block = [0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    block[156] = kind;
    block[157..157 + link.len()].copy_from_slice(link.as_bytes());
    block[257..263].copy_from_slice(b"ustar\0");
    let check = format!("{:06o}\0 ", sum(&block));
    block[148..156].copy_from_slice(check.as_bytes());
    block.to_vec()
}

fn member(name: &str, kind: u8, contents: &[u8], link: &str) -> Vec<u8> {
    let mut all = header(name, kind, contents.len() as u64, link);
    all.extend(contents);
    all.resize(all.len().next_multiple_of(512), 0);
    all
}

fn ended(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut all = parts.concat();
    all.resize(all.len() + 1024, 0);
    all
}

/// A record of an extended header; its length counts the digits of the length.
fn pax(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let len = (1..).map(|digits| rest.len() + digits);
    let len = len.zip(1..).find(|(len, digits)| len.to_string().len() == *digits);
    format!("{}{rest}", len.expect("some length fits").0)
}

fn parse(bytes: &[u8]) -> Result<Archive, ArchiveError> {
    Archive::parse(bytes.len() as u64, &mut |at, into: &mut [u8]| {
        into.copy_from_slice(&bytes[at as usize..at as usize + into.len()]);
        Ok(())
    })
}

/// Bytes that are there.
#[derive(Debug)]
struct Given(Vec<u8>);

impl Bytes for Given {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn fill(&self, at: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.0[at as usize..at as usize + into.len()]);
    }
}

#[test]
fn nonsense_is_named() {
    for (text, words) in [
        ("files=0", "files: `0` is not a whole number from 1"),
        ("size=0", "size: `0` is not a size"),
        ("size=17TiB", "size: is too large"),
        ("cached=yes", "cached: `yes` is neither"),
        ("metric=iops", "metric: `iops` is not one of"),
        ("archive=x.tar", "archive: has to be read before"),
        ("bs=3", "bs: is not a parameter"),
    ] {
        let error = kinds::make("tar-xf", parameters(text)).expect_err(text).to_string();
        assert!(error.starts_with(words), "{text}: {error}");
    }
}

#[test]
fn any_piece_of_an_archive_is_the_same() {
    let shape = Shape { files: 40, bytes: 30_000 };
    let bytes = TarBytes::new(&Tree::new(shape, 5));
    let mut whole = vec![0; bytes.len() as usize];
    bytes.fill(0, &mut whole);
    assert!(bytes.len().is_multiple_of(10_240));
    let mut at = 0;
    for step in (1..).map(|n: usize| n * 37 % 1_500 + 1) {
        let end = (at + step).min(whole.len());
        let mut piece = vec![1; end - at];
        bytes.fill(at as u64, &mut piece);
        assert_eq!(piece, whole[at..end], "from {at}");
        at = end;
        if at == whole.len() {
            break;
        }
    }
    assert_eq!(parse(&whole).as_ref(), Ok(&**bytes.archive()));
    assert_eq!(bytes.archive().content_bytes(), 30_000);
}

#[test]
fn large_files_have_their_size_in_binary() {
    let large = TarBytes::new(&Tree::new(Shape { files: 1, bytes: 1 << 34 }, 1));
    let read = &mut |at, into: &mut [u8]| {
        large.fill(at, into);
        Ok(())
    };
    assert_eq!(Archive::parse(large.len(), read).as_ref(), Ok(&**large.archive()));
}

#[test]
fn the_archive_of_linux_has_its_size() {
    let shape = Shape::from(&mut Parameters::default()).expect("defaults");
    let bytes = TarBytes::new(&Tree::new(shape, 1));
    assert!(bytes.len().abs_diff(230_000_000) < 1_000_000, "{}", bytes.len());
}

#[test]
fn members_of_all_formats_are_found() {
    let long = "d/".repeat(80) + "file";
    let pax = [pax("path", "d/with a long name"), pax("comment", "x"), pax("size", "700")].concat();
    let archive = ended(&[
        member(
            "pax_global_header",
            b'g',
            b"52 comment=0123456789012345678901234567890123456789\n",
            "",
        ),
        member("./", b'5', b"", ""),
        member("d/", b'5', b"", ""),
        member("d/old", 0, b"abc", ""),
        member("x", b'x', pax.as_bytes(), ""),
        member("short", b'0', &[7; 700], ""),
        member("././@LongLink", b'L', format!("{long}\0").as_bytes(), ""),
        member("shortened", b'0', b"", ""),
        member("d/hard", b'1', b"", "d/old"),
        header("./e/./link", b'2', 0, "d"),
    ]);
    let archive = parse(&archive).expect("well formed");
    let file = |len| ArchiveMemberKind::File { len };
    let found: Vec<(&str, &ArchiveMemberKind)> =
        archive.members().iter().map(|member| (&*member.path, &member.kind)).collect();
    assert_eq!(
        found,
        [
            ("d", &ArchiveMemberKind::Directory),
            ("d/old", &file(3)),
            ("d/with a long name", &file(700)),
            (long.as_str(), &file(0)),
            ("d/hard", &ArchiveMemberKind::HardLink { to: "d/old".into() }),
            ("e/link", &ArchiveMemberKind::Symlink { text: "d".into() }),
        ]
    );
    assert_eq!(archive.members()[1].data_at, 5 * 512);
}

#[test]
fn what_is_wrong_with_an_archive_is_named() {
    let good = member("a", b'0', b"abc", "");
    let mut damaged = good.clone();
    damaged[0] = b'b';
    let mut number = good.clone();
    number[124] = b'9';
    let mut wrong_number: [u8; 512] = number[..512].try_into().expect("a header");
    let check = format!("{:06o}\0 ", sum(&wrong_number));
    wrong_number[148..156].copy_from_slice(check.as_bytes());
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "the archive is empty"),
        (vec![0; 1024], "the archive is empty"),
        (good[..100].to_vec(), "the archive ends within the member at byte 0"),
        (good[..514].to_vec(), "the archive ends within the member at byte 0"),
        ([&good[..], &good[..300]].concat(), "the archive ends within the member at byte 1024"),
        (damaged, "no tar header at byte 0: the checksum is wrong"),
        (b"\x1f\x8b".repeat(256), "no tar header at byte 0"),
        (wrong_number.to_vec(), "the size in the header at byte 0 is no number"),
        (header("a", b'0', 1 << 32, ""), "the archive ends within the member at byte 0"),
        (ended(&[header("dev", b'3', 0, "")]), "dev: a device; pack an archive without it"),
        (ended(&[header("p", b'6', 0, "")]), "p: a pipe (FIFO)"),
        (ended(&[header("s", b'S', 0, "")]), "s: a file with holes"),
        (ended(&[header("z", b'~', 0, "")]), "z: a member of the unknown type `~`"),
        (ended(&[header("l", b'2', 0, "../x")]), "l: a symbolic link that is absolute"),
        (ended(&[header("l", b'2', 0, "/x")]), "l: a symbolic link that is absolute"),
        (ended(&[header("/a", b'0', 0, "")]), "/a: is absolute"),
        (ended(&[header("a/../../b", b'0', 0, "")]), "a/../../b: leads out of the directory"),
        (ended(&[header("", b'0', 0, "")]), ": is an empty name"),
        (ended(&[good.clone(), good.clone()]), "a: is in the archive twice"),
        (ended(&[header("h", b'1', 0, "a")]), "h: is a link to what did not come before it"),
        (ended(&[good.clone(), header("a/b", b'0', 0, "")]), "a/b: lies below a file or a link"),
        (ended(&[header("a/b", b'0', 0, ""), good.clone()]), "a: is a directory for members"),
        (ended(&[member("x", b'x', b"9 path=a\n", "")]), "the archive is empty"),
        (ended(&[member("x", b'x', b"99 path=a\n", "")]), "the extended header in the header"),
        (ended(&[member("x", b'x', b"12 path=a\n", "")]), "the extended header in the header"),
        (ended(&[header("x", b'x', 2 << 20, "")]), "byte 512: an extended header of 2097152 bytes"),
    ];
    for (bytes, words) in cases {
        let error = parse(&bytes).expect_err(words).to_string();
        assert!(error.starts_with(words), "{words}: {error}");
    }
    let unreadable = Archive::parse(512, &mut |_, _: &mut [u8]| Err("x.tar: no".into()));
    assert_eq!(unreadable, Err(ArchiveError::Read("x.tar: no".into())));
}

fn steps(workload: &dyn Workload, copies: u32) -> (NullTarget, Vec<Op>) {
    let mut target = NullTarget::default();
    target.keep_steps();
    target.run(workload.plan(&Setting::new(copies, 1)).expect("a plan")).expect("runs");
    let ops = target.steps().iter().map(|step| step.op.clone()).collect();
    (target, ops)
}

#[test]
fn a_tree_is_unpacked_whole() {
    let workload = kinds::make("tar-xf", parameters("files=60 size=300KB")).expect("parameters");
    let (target, ops) = steps(&*workload, 2);
    let plan = workload.plan(&Setting::new(2, 1)).expect("a plan");
    assert_eq!((plan.expected.len(), plan.memory), (120, Memory::Warm));
    assert_eq!((plan.warm.len(), plan.prepare.len()), (2, 2));
    for expected in &plan.expected {
        let id = target.names().find(&expected.path).expect("unpacked");
        assert_eq!(target.names().status(id).size, expected.bytes.len(), "{}", expected.path);
    }
    let tree = Tree::new(Shape { files: 60, bytes: 300_000 }, 1);
    let (path, seeded) = tree.files().nth(7).expect("60 files");
    let expected = plan.expected.iter().find(|expected| expected.path.text.ends_with(&**path));
    let (mut ours, mut theirs) = (vec![0; seeded.len as usize], vec![1; seeded.len as usize]);
    seeded.fill(0, &mut ours);
    expected.expect("unpacked").bytes.fill(0, &mut theirs);
    assert_eq!(ours, theirs);
    let written: u64 = ops
        .iter()
        .map(|op| if let Op::Write { len, times, .. } = op { len * times } else { 0 })
        .sum();
    assert_eq!(written, 600_000);
    // Every directory gets its attributes once, after the last member in it.
    let set = |op: &Op| match op {
        Op::Set { of: AttributeTarget::Path(path), attribute: Attribute::Mode } => {
            Some(path.clone())
        }
        _ => None,
    };
    let mut places = BTreeMap::new();
    for (place, path) in ops.iter().enumerate().filter_map(|(place, op)| Some((place, set(op)?))) {
        assert_eq!(places.insert(path, place), None);
    }
    let made = ops.iter().enumerate().filter_map(|(place, op)| match op {
        Op::Open { path, flags, .. } if flags.create => Some((place, path)),
        _ => None,
    });
    assert_eq!(places.len(), 6);
    for (place, path) in made {
        let (parent, _) = path.text.rsplit_once('/').expect("in a directory");
        assert!(places[&FilePath::target(parent)] > place);
    }
}

#[test]
fn your_own_archive_is_unpacked() {
    let bytes = ended(&[
        member("a/b/file", b'0', &[3; 11_000], ""),
        member("a/", b'5', b"", ""),
        header("a/hard", b'1', 0, "a/b/file"),
        header("link", b'2', 0, "a"),
    ]);
    let archive = parse(&bytes).expect("well formed");
    let given = Arc::new(Given(bytes));
    let workload = TarXf::of(archive, given, parameters("cached=false")).expect("parameters");
    let words = "unpacks an archive of 4 members in 14KiB where it lies (GNU tar 1.34)";
    assert_eq!(workload.description(), words);
    assert!(
        workload
            .resized(5)
            .expect_err("fixed")
            .to_string()
            .starts_with("size: an archive of your own")
    );
    let (target, ops) = steps(&workload, 1);
    let is_mkdir = |op: &&Op| matches!(op, Op::Mkdir { .. });
    assert_eq!(ops.iter().filter(is_mkdir).count(), 2, "a and a/b, once each");
    let reads = ops.iter().filter(|op| matches!(op, Op::Read { .. })).count();
    assert_eq!(reads, 2);
    let id = target.names().find(&FilePath::target("tar-xf-0/a/hard")).expect("linked");
    assert_eq!(target.names().status(id).size, 11_000);
    let plan = workload.plan(&Setting::new(1, 1)).expect("a plan");
    assert_eq!((plan.memory, plan.warm.len(), plan.expected.len()), (Memory::Cold, 0, 1));
    let mut contents = [0; 11_000];
    plan.expected[0].bytes.fill(0, &mut contents);
    assert_eq!(contents, [3; 11_000]);
    let error = TarXf::of(
        parse(&ended(&[header("a", b'0', 0, "")])).expect("well formed"),
        Arc::new(Given(vec![])),
        parameters("files=3"),
    );
    assert!(error.is_err(), "files is no parameter of an archive that is given");
}

#[test]
fn words_and_sizes() {
    let workload = kinds::make("tar-xf", parameters("files=100 size=1MB")).expect("parameters");
    let words = "unpacks an archive of 100 source files with 1MB that lies in memory where it lies \
        (GNU tar 1.34)";
    assert_eq!(workload.description(), words);
    let resized = workload.resized(2_000_000).expect("a size").description();
    assert!(resized.contains("200 source files with 2MB"), "{resized}");
    assert_eq!(workload.metrics()[0], Metric::SECONDS);
}

/// Numbers beyond 11 octal digits are binary, as GNU tar has them: from 8 GiB on. What needs more than 64 bits is none.
#[test]
fn sizes_of_any_length_are_written_and_read_back() {
    use super::archive::number;
    for len in [0, 511, (1 << 33) - 1, 1 << 33, 1 << 40, u64::MAX] {
        let member =
            ArchiveMember { path: "f".into(), kind: ArchiveMemberKind::File { len }, data_at: 512 };
        let header = write::header(&member);
        assert_eq!(number(&header[124..136]), Some(len));
        assert_eq!(header[124] & 0x80 != 0, len >= 1 << 33, "{len}");
        assert_eq!(number(&header[148..156]), Some(sum(&header)), "checksum of {len}");
    }
    let mut field = [0u8; 12];
    (field[0], field[11]) = (0x80, 7);
    assert_eq!(number(&field), Some(7));
    for at in 1..4 {
        let mut large = field;
        large[at] = 1;
        assert_eq!(number(&large), None, "byte {at}");
    }
    assert_eq!(number(b"           "), Some(0));
    assert_eq!(number(b"0000644\0"), Some(0o644));
    assert_eq!(number(b"0000+44\0"), None);
}

/// What tar asks for to unpack these members, in words: how much of which record it writes, and what it sets.
fn unpacked(parts: &[Vec<u8>]) -> String {
    let archive = parse(&ended(parts)).expect("an archive");
    let unpack = Unpack::new(Arc::new(archive), FilePath::target("a.tar"), "out".into());
    let word = |op: Op| match op {
        Op::Open { path, .. } => format!("open {path}"),
        Op::Read { len, times: 1, .. } => format!("read {len}"),
        Op::Write { len, content: Content::Buffer { from }, times: 1, .. } => {
            format!("write {len} from {from}")
        }
        Op::Mkdir { path } => format!("mkdir {path}"),
        Op::Set { of: AttributeTarget::Path(path), attribute: Attribute::Mode } => {
            format!("set {path}")
        }
        Op::Set { .. } => String::new(),
        Op::Close { fd } => format!("close {}", fd.0),
        other => panic!("{other:?}"),
    };
    unpack.map(word).filter(|word| !word.is_empty()).collect::<Vec<String>>().join(", ")
}

/// Records of 10,240 bytes, each read when something of it is needed, and what lies in one written from where it lies.
#[test]
fn records_are_read_when_they_are_needed() {
    // The file has its data from byte 1,024 to 13,024: 9,216 bytes of the first record.
    assert_eq!(
        unpacked(&[
            member("d/", b'5', &[], ""),
            member("d/f", b'0', &[1; 12_000], ""),
            member("e", b'0', &[], ""),
        ]),
        "open a.tar, read 10240, mkdir out/d, open out/d/f, write 9216 from 1024, read 10240, \
         write 2784 from 0, close 1, set out/d, open out/e, close 1, close 0"
    );
    // A header that ends with its record, and data that begin with the next one.
    assert_eq!(
        unpacked(&[member("a", b'0', &[1; 9_216], ""), member("b", b'0', &[1; 100], "")]),
        "open a.tar, read 10240, open out/a, write 9216 from 512, close 1, open out/b, read 10240, \
         write 100 from 0, close 1, close 0"
    );
    // Data that end with their record: the end of the archive lies in the next one.
    assert_eq!(
        unpacked(&[member("a", b'0', &[1; 9_728], "")]),
        "open a.tar, read 10240, open out/a, write 9728 from 512, close 1, read 10240, close 0"
    );
}

/// A directory gets its attributes when the next member is in none of it, whatever that is called; parents that the
/// archive does not have are made once.
#[test]
fn directories_are_left_when_something_else_comes() {
    let empty = |name: &str| member(name, b'0', &[], "");
    let directory = |name: &str| member(name, b'5', &[], "");
    assert_eq!(
        unpacked(&[
            directory("d/"),
            directory("d/e/"),
            empty("d/e/x"),
            empty("d2/x"),
            empty("d2/y")
        ]),
        "open a.tar, read 10240, mkdir out/d, mkdir out/d/e, open out/d/e/x, close 1, set out/d/e, \
         set out/d, mkdir out/d2, open out/d2/x, close 1, open out/d2/y, close 1, close 0"
    );
    assert_eq!(
        unpacked(&[directory("d/"), directory("d/e/"), empty("d/x")]),
        "open a.tar, read 10240, mkdir out/d, mkdir out/d/e, set out/d/e, open out/d/x, close 1, \
         close 0, set out/d"
    );
}
