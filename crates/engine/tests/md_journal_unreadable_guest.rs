//! What the real kernel makes of a journal of which a page cannot be read, which is why raidlab's start is refused then
//! (`md_journal_unreadable.rs`): it takes it for the end of the journal, with all that it read together with it, and
//! starts without what was answered. The page is made unreadable by md's own level `faulty`, below the log device.

use std::fs;

use raidlab_core::Layout;
use raidlab_engine::Member;
use raidlab_metadata::md::{Journal, Version, inspect};

use crate::guest::guest_or_skip;
use crate::held::{Drive, SECTOR, with_journal};
use crate::md_logs_guest::{BLOCK, Files, MEMBER, device, devices, head};

/// The log device is behind the members.
const LOG: usize = 3;
const LAYOUT: &str = "raid5(3) chunk=64K";
/// Rows that stand in the journal and nowhere else, each by a block of its own: of these the first pages of chunks are
/// what the array holds there.
const ROWS: u64 = 4;
const CHUNK: usize = 64 << 10;

/// A block that is read while `faulty` fails all reads cannot be read from then on.
const FUNCTIONS: &str = "
quietly busybox insmod $(find /usr/lib/uml/modules/$(uname -r)/ -name faulty.ko)
unreadable() {
    if dd if=$1 of=/dev/null bs=4k skip=$2 count=1 iflag=direct 2>/dev/null; then
        echo \"block $2 of $1 is read\" >&2
        exit 1
    fi
}
";

/// What cannot be read of the log device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bad {
    Nothing,
    /// The head of the third block.
    Head,
    /// The first page that it lists.
    Page,
    /// A block of the ring behind the last one, where nothing was ever written.
    Behind,
}

impl Bad {
    /// How many blocks of 4 KiB behind the third head.
    fn behind(self) -> u64 {
        match self {
            Self::Nothing | Self::Head => 0,
            Self::Page => 1,
            Self::Behind => 40,
        }
    }
}

/// The devices of an array in whose journal writes stand that are nowhere else, and in which block of 4 KiB of the log
/// device the third block has its head.
fn left(section: usize) -> (Vec<Vec<u8>>, u64) {
    let layout: Layout = LAYOUT.parse().unwrap();
    let sectors = (MEMBER / SECTOR) as u64;
    let mut images = with_journal(&layout, Version::V1_2, (sectors, 2048, section as u8));
    let log = images.last_mut().unwrap();
    let mut there = Member::from(Drive::new(log));
    let found = inspect(&mut there);
    let mut journal = Journal::of(&mut there, found.superblock().unwrap()).unwrap();
    let mut third = 0;
    for row in 0..ROWS {
        let pages = content(row);
        let rows = journal.rows(&journal.entry(row * 8, [0b111, 0])).unwrap();
        let sums: Vec<u32> =
            pages.iter().map(|page| journal.sum([&page[..]].into_iter())).collect();
        journal.begin();
        journal.add(&rows, 0, &sums);
        let mut block = vec![0; BLOCK];
        let at = journal.put(&mut block).unwrap().at.bytes() as usize;
        pages.iter().for_each(|page| block.extend(page));
        log[at..at + block.len()].copy_from_slice(&block);
        if row == 2 {
            third = (at / BLOCK) as u64;
        }
    }
    images.iter_mut().for_each(|image| image.resize(MEMBER, 0));
    (images, third)
}

/// Both chunks of a row, and its parity.
fn content(row: u64) -> [Vec<u8>; 3] {
    let (one, other) = (0x11 + row as u8, 0x80 + row as u8);
    [one, other, one ^ other].map(|byte| vec![byte; BLOCK])
}

/// The log device with a block of 4 KiB that cannot be read, as `/dev/md60` and on.
fn faulty(section: usize, block: u64) -> String {
    let (node, below) = (format!("/dev/md{}", 60 + section), device(section, LOG));
    format!(
        "quietly mdadm --build {node} --level=faulty -n1 {below}\n\
         quietly mdadm --grow {node} --level=faulty --layout=read-persistent1\n\
         unreadable {node} {block}\nquietly mdadm --grow {node} --level=faulty --layout=none\n\
         unreadable {node} {block}\n"
    )
}

#[test]
fn md_takes_a_page_that_cannot_be_read_for_the_end_of_a_journal() {
    const TEST: &str = "md_takes_a_page_that_cannot_be_read_for_the_end_of_a_journal";
    let Some(guest) = guest_or_skip(TEST) else { return };
    let cases = [Bad::Nothing, Bad::Head, Bad::Page, Bad::Behind];
    let guest = guest.cut(&[MEMBER as u64; 4]);
    let files = Files::new("md-journal-unreadable", LOG + 1, cases.len(), 0);
    let mut script = String::from(FUNCTIONS);
    for (section, bad) in cases.into_iter().enumerate() {
        let (images, third) = left(section);
        files.write(section, 0..=LOG, &images);
        let mut log = device(section, LOG);
        if bad != Bad::Nothing {
            script.push_str(&faulty(section, third + bad.behind()));
            log = format!("/dev/md{}", 60 + section);
        }
        script.push_str(&format!(
            "{}quietly mdadm --assemble $md {} {log}\npolicy journal\n\
             [ $(cat /sys/block/md$section/md/degraded) = 0 ]\n\
             quietly dd if=$md of=$SHARE/{section}-data bs=64k count=2 iflag=direct\nquietly mdadm --stop $md\n",
            head(section),
            devices(section, 0..LOG, None),
        ));
    }
    files.run(&guest, &script).expect_success("md starts them, whatever it could read");
    for (section, bad) in cases.into_iter().enumerate() {
        let found = fs::read(files.share(&format!("{section}-data"))).unwrap();
        for row in 0..ROWS {
            let pages = content(row);
            for (chunk, page) in pages[..2].iter().enumerate() {
                let at = chunk * CHUNK + row as usize * BLOCK;
                let is_replayed = found[at..at + BLOCK] == page[..];
                assert_eq!(is_replayed, bad == Bad::Nothing, "{bad:?}: row {row}, chunk {chunk}");
                assert!(is_replayed || found[at..at + BLOCK].iter().all(|byte| *byte == 0));
            }
        }
    }
}
