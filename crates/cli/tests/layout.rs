//! `raidlab layout`: the drawing of each level, as text and as a picture, and what is refused.

use crate::support::{self, Scratch, raidlab};

fn layout(arguments: &[&str]) -> String {
    raidlab([&["layout"], arguments].concat()).good().stdout
}

#[test]
fn linear() {
    let expected = "\
linear(2): drawn in pieces of 512KiB; survives no lost member

       m0  m1
row 0   0   4
row 1   1   5
row 2   2   6
row 3   3   7

m0, m1, ...: members; numbers: chunks of the array
";
    assert_eq!(layout(&["linear", "--members", "2"]), expected);
}

#[test]
fn raid0() {
    let expected = "\
raid0(3) chunk=64K: chunk 64KiB; survives no lost member

       m0  m1  m2
row 0   0   1   2
row 1   3   4   5

m0, m1, ...: members; numbers: chunks of the array
";
    assert_eq!(layout(&["raid0", "-n", "3", "--chunk", "64KiB", "--rows", "2"]), expected);
}

/// As reports print it, and as sizes are written elsewhere, on every command line that takes a layout.
#[test]
fn a_chunk_is_written_as_64k_or_as_64kib() {
    let scratch = Scratch::new("notations");
    let study = scratch.file(
        "s.toml",
        "title = \"s\"\n[[drives]]\nname = \"d\"\nmodel = \"nas-8tb-7200\"\ncount = 2\n\
         [[layouts]]\nlevel = \"raid0\"\nmembers = 2\nchunk = \"64K\"\n\
         [[workloads]]\nkind = \"random-read\"\nsize = \"64KiB\"\n",
    );
    let study = study.to_str().expect("text");
    let run = ["run", "random-read", "size=64KiB", "span=1MiB", "--json", "-", "--layout"];
    let commands: [&[&str]; 4] = [
        &["layout"],
        &run,
        &["tune", "readahead", "--size", "1MiB", "--seeds", "1", "--layout"],
        &["tune", "readahead", study, "--size", "1MiB", "--seeds", "1", "--layout"],
    ];
    for command in commands {
        let printed = |name| raidlab([command, &[name]].concat()).good().stdout;
        let (one, other) = (printed("raid0(2) chunk=64K"), printed("raid0(2) chunk=64KiB"));
        assert!(one == other && one.contains("raid0(2) chunk=64K"), "{command:?}: {one}");
    }
}

#[test]
fn raid1() {
    let expected = "\
raid1(3): drawn in pieces of 512KiB; survives any 2 lost members

       m0  m1  m2
row 0   0   0   0
row 1   1   1   1

m0, m1, ...: members; numbers: chunks of the array
";
    assert_eq!(layout(&["raid1", "--members", "3", "--rows", "2"]), expected);
}

/// As `mdadm --layout=left-symmetric`: parity from the last member down, data start behind it.
#[test]
fn raid5() {
    let expected = "\
raid5(5): chunk 512KiB, left-symmetric; survives any 1 lost member

       m0  m1  m2  m3  m4
row 0   0   1   2   3   P
row 1   5   6   7   P   4
row 2  10  11   P   8   9
row 3  15   P  12  13  14
row 4   P  16  17  18  19

m0, m1, ...: members; numbers: chunks of the array; P: parity of the row
";
    assert_eq!(layout(&["raid5", "--members", "5"]), expected);
    assert_eq!(layout(&["raid5", "-n", "5", "--rotation", "left-symmetric"]), expected);
}

#[test]
fn raid10() {
    let expected = "\
raid10(4): chunk 512KiB; survives any 1 lost member

       m0  m1  m2  m3
row 0   0   0   1   1
row 1   2   2   3   3
row 2   4   4   5   5
row 3   6   6   7   7

m0, m1, ...: members; numbers: chunks of the array
";
    assert_eq!(layout(&["raid10", "--members", "4"]), expected);
    let three = layout(&["raid10", "-n", "4", "--near", "3", "--rows", "3"]);
    let rows: Vec<&str> = three.lines().filter(|line| line.starts_with("row")).collect();
    assert_eq!(rows, ["row 0   0   0   0   1", "row 1   1   1   2   2", "row 2   2   3   3   3"]);
    assert!(three.starts_with("raid10(4) near3: chunk 512KiB; survives any 2 lost members\n"));
}

#[test]
fn a_picture_is_well_formed_and_asks_for_nothing_outside() {
    let scratch = Scratch::new("svg");
    for level in ["linear", "raid0", "raid1", "raid5", "raid10"] {
        let path = scratch.path().join(format!("{level}.svg"));
        let file = path.display().to_string();
        assert_eq!(layout(&[level, "--members", "4", "--svg", &file]), "");
        let svg = std::fs::read_to_string(&path).expect("a picture");
        assert_eq!(svg, layout(&[level, "--members", "4", "--svg", "-"]));
        well_formed(&svg);
        assert_eq!(svg.matches("<rect").count(), 1 + 4 * 4, "{level}: a box for each chunk");
        let outside = svg.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for asks in ["http:", "https:", "href=", "src=", "url("] {
            assert!(!outside.contains(asks), "{level}: {asks}");
        }
    }
    let drawn = support::names(scratch.path());
    assert_eq!(drawn, ["linear.svg", "raid0.svg", "raid1.svg", "raid10.svg", "raid5.svg"]);
}

/// Every tag is closed in turn, every attribute quoted, nothing else looks like a tag.
fn well_formed(xml: &str) {
    let mut open = Vec::new();
    let mut rest = xml;
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains(['>', '&']), "{}", &rest[..start]);
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed in turn");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().expect("a name"));
        }
    }
    assert_eq!((open.is_empty(), rest.trim()), (true, ""));
}

/// As reports name them, so that what one has read can be drawn.
#[test]
fn layouts_are_drawn_by_their_names() {
    let drawn = |arguments: &[&str]| raidlab([&["layout"], arguments].concat()).good().stdout;
    assert_eq!(drawn(&["raid5(5)"]), drawn(&["raid5", "-n", "5"]));
    let far = ["raid10", "-n", "4", "--far", "2", "--chunk", "64KiB"];
    assert_eq!(drawn(&["raid10(4) far2 chunk=64k"]), drawn(&far));
    // Nested levels of so many drives, where there is one way to share them out.
    assert_eq!(drawn(&["raid50", "-n", "6"]), drawn(&["raid5+0(2x3)"]));
    // Flags mean what their words mean in a name.
    for (flags, name) in [
        (
            &["raid50", "-n", "6", "--chunk", "64K", "--rotation", "right-asymmetric"][..],
            "raid5+0(2x3) chunk=64K right-asymmetric",
        ),
        (&["raid1+0", "-n", "4", "-c", "64K"], "raid1+0(2x2) chunk=64K"),
        (
            &["raid5+10", "-n", "6", "--far", "2", "--far-sets", "0", "--chunk", "128K"],
            "raid5+10(2x3) far2 chunk=128K",
        ),
        (&["raid1+5", "-n", "6", "--rotation", "parity-last"], "raid1+5(3x2) outer-parity-last"),
    ] {
        assert_eq!(drawn(flags), drawn(&[name]), "{name}");
    }
    assert_eq!(drawn(&["raid1+0(4)"]), drawn(&["raid1+0(2x2)"]));
}

#[test]
fn layouts_that_cannot_be() {
    let table: [(&[&str], &[&str]); 28] = [
        (
            &["raid50(7)"],
            &["7 drives cannot be raid0 over arrays of raid5", "2 arrays of 3 drives"],
        ),
        (&["raid50", "-n", "12"], &["12 drives can be raid5+0(2x6), raid5+0(3x4) or raid5+0(4x3)"]),
        (&["raid50"], &["--members <N>", "raid50(6)"]),
        (&["raid50", "-n", "6", "--near", "2"], &["--near: neither raid5 nor raid0 has such"]),
        (&["raid50", "-n", "6", "--chunk", "96K"], &["--chunk", "power of two, not 96KiB"]),
        (&["raid50", "-n", "6", "--rotation", "ddf-N-restart"], &["says nothing about raid5"]),
        (
            &["raid01", "-n", "4", "--rotation", "parity-last"],
            &["--rotation: neither raid0 nor raid1"],
        ),
        (&["raid10+0", "-n", "8", "--far", "2", "--far-sets", "1"], &["--far-sets: mode 1 of md"]),
        (&["raid5+0(1x3)"], &["raid0 over arrays takes 2 to 127 of them, not 1"]),
        (&["raid5+0(2x2)"], &["raid5 needs at least 3 members, not 2"]),
        (&["raid5(4)", "-n", "5"], &["--members: `raid5(4)` says all of the layout"]),
        (&["raid7", "-n", "4"], &["`raid7` is not a level; known: linear, raid0"]),
        (&["raid5"], &["--members <N>"]),
        (&["raid5", "-n", "2"], &["--members: raid5 needs at least 3 members, not 2"]),
        (&["raid0", "-n", "0"], &["--members: raid0 needs at least 1"]),
        (&["raid0", "-n", "129"], &["--members: at most 128 members"]),
        (&["raid0", "-n", "4", "-c", "1000"], &["--chunk: 1000B is not a multiple of the sector"]),
        (&["raid0", "-n", "4", "-c", "0"], &["--chunk"]),
        (&["raid0", "-n", "4", "-c", "64 kilo"], &["is not a size"]),
        (&["raid5", "-n", "4", "-c", "96KiB"], &["--chunk: raid5 needs a chunk that is a power"]),
        (&["raid1", "-n", "2", "-c", "64KiB"], &["--chunk: raid1 has no such parameter"]),
        (&["raid0", "-n", "2", "--near", "2"], &["--near: raid0 has no such parameter"]),
        (&["raid5", "-n", "4", "--rotation", "right"], &["known: left-asymmetric"]),
        (&["raid10", "-n", "4", "--near", "5"], &["--near: near must be from 2 to the 4 members"]),
        (&["raid10", "-n", "4", "--far", "2", "--far-sets", "1"], &["--far-sets: mode 1 of md"]),
        (&["raid10", "-n", "4", "--far", "2", "--offset", "2"], &["cannot be used with"]),
        (&["raid3", "-n", "4"], &["--members: raid3 takes a power of two and one more"]),
        (&["raid6", "-n", "3"], &["--members: raid6 needs at least 4 members, not 3"]),
    ];
    for (arguments, words) in table {
        raidlab([&["layout"], arguments].concat()).refused(words);
    }
    let ran = raidlab(["layout", "raid0", "-n", "2", "--svg", "/no/such/place.svg"]);
    ran.refused(&["--svg /no/such/place.svg: cannot be written: No such file or directory"]);
}
