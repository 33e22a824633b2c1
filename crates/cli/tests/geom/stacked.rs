//! Arrays that stand on a graid3.

use super::{KIB, Kind, Run, Scratch, Set, Shape, text};

/// What stands on a graid3 has its label in the last sector that FreeBSD shows of it: one of each disk with data.
#[test]
fn arrays_over_graid3_are_found_by_labels_in_its_sectors() {
    for (number, disks) in [3, 5].into_iter().enumerate() {
        for kind in [Kind::Stripe, Kind::Mirror] {
            let below = Shape::new(Kind::Raid3, &vec![32 * KIB; disks]);
            let (inner, sector) = (below.bytes(), 512 * (disks - 1));
            let above = Shape { sector, ..Shape::new(kind, &[inner; 2]) };
            let (contents, mut providers) = above.filled();
            let scratch = Scratch::new(&format!("geom-over-raid3-{number}-{}", kind.name()));
            let mut files = Vec::new();
            for (at, label) in above.labels("top").into_iter().enumerate() {
                providers[at][inner - sector..][..512].copy_from_slice(&label.bytes());
                let labels = below.labels(&format!("r{at}")).into_iter();
                let devices = below.devices(&providers[at]).into_iter();
                for (disk, (mut bytes, mut label)) in devices.zip(labels).enumerate() {
                    label.id = at as u32;
                    let end = bytes.len() - 512;
                    bytes[end..].copy_from_slice(&label.bytes());
                    files.push(text(&scratch.file(&format!("disk{at}{disk}"), bytes)));
                }
            }
            let set = Set { scratch, contents, files };
            let told = set.array("status", &set.files, &[]).good().stdout;
            assert!(told.starts_with("top: ") && told.contains("r1: raid3"), "{told}");
            for lost in [&[][..], &[0], &[disks, 1]] {
                assert!(set.export(&set.without(lost), &[]).unwrap() == set.contents, "{lost:?}");
            }
            // It is written, and found again.
            let (run, mut client, _) = Run::serve(&set, &set.files, &["--write"]);
            let data = vec![0x5a; 8 * sector];
            client.write(3 * sector as u64, &data);
            run.stop(&set, client);
            let mut written = set.contents.clone();
            written[3 * sector..11 * sector].copy_from_slice(&data);
            assert!(set.export(&set.files, &[]).unwrap() == written, "{disks}, {kind:?}");
        }
    }
}
