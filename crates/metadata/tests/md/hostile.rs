//! Bytes that no md wrote: nothing panics, and what is read is written as it was.

use raidlab_metadata::md::{Allowed, Frame, Superblock, assemble, inspect, layout};

use super::device::{Disk, Numbers, SECTORS, raid5};

#[test]
fn no_bytes_make_it_panic() {
    let mut numbers = Numbers(3);
    for round in 0..4000 {
        let mut bytes = vec![0; (SECTORS * 512) as usize];
        raid5(3, (round % 3) as u16).emit(&mut bytes[4096..]).unwrap();
        for _ in 0..=numbers.next() % 6 {
            let at = 4096 + (numbers.next() % 300) as usize;
            let value =
                [0, 1, 0x7f, 0x80, 0xff, numbers.next() as u8][(numbers.next() % 6) as usize];
            bytes[at] = value;
        }
        // Right by its checksum, so that all behind it sees it.
        if let Ok(frame) = Frame::new(&bytes[4096..]) {
            let sum = frame.checksum();
            bytes[4096 + 216..4096 + 220].copy_from_slice(&sum.to_le_bytes());
        }
        if let Ok(frame) = Frame::new(&bytes[4096..]) {
            let one = Superblock::parse(&frame);
            let mut again = bytes[4096..8192].to_vec();
            one.emit(&mut again).unwrap();
            assert_eq!(again, bytes[4096..8192], "round {round}");
            let _ = layout(&one, &[], None);
        }
        let inspected = inspect(&mut Disk(bytes));
        let _ = assemble(&[inspected.clone(), inspected], &Allowed::default());
    }
}
