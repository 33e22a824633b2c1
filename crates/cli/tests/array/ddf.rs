//! Arrays of DDF containers that mdadm made and the kernel wrote, read by raidlab.

use std::fs;
use std::path::PathBuf;

use super::text;
use crate::guest::{TempDir, guest_or_skip};
use crate::support::{Ran, raidlab};

const MIB: u64 = 1 << 20;
/// 32 MiB of a disk are the format's own.
const DISK: u64 = 48 * MIB;
const DISKS: usize = 5;
/// The arrays of the container: what mdadm is told, and how many disks each survives. Disks of an array are not in the
/// order in which they were given.
const ARRAYS: [(&str, usize); 12] = [
    ("-l 0 -n 3 -c 64", 0),
    ("-l 1 -n 2", 1),
    ("-l 1 -n 3", 2),
    ("-l 4 -n 3 -c 64", 1),
    ("-l 5 -n 4 -c 64", 1),
    ("-l 5 -n 3 -c 32 -p left-asymmetric", 1),
    ("-l 5 -n 5 -c 64 -p right-asymmetric", 1),
    ("-l 6 -n 5 -c 64 -p ddf-zero-restart", 2),
    ("-l 6 -n 4 -c 64 -p ddf-N-restart", 2),
    ("-l 6 -n 4 -c 64", 2),
    ("-l 10 -n 4 -c 64", 1),
    ("-l 10 -n 5 -c 64", 1),
];

/// The last of them.
const ODD: &str = "v11";

const SCRIPT: &str = r#"
set -e
quietly() { "$@" >/dev/null 2>$SHARE/log || { cat $SHARE/log >&2; echo "failed: $*" >&2; exit 1; }; }
container() { # disks
    quietly mdadm -C /dev/md/ddf -e ddf -n $# "$@"
}
make() { # array, what it is
    local name=v$1
    shift
    quietly mdadm -C /dev/md/$name "$@" --size 1M -R /dev/md/ddf
    dd if=/dev/urandom of=/dev/md/$name bs=64k oflag=direct 2>/dev/null || true
    mdadm --wait /dev/md/$name >/dev/null 2>&1 || true
    dd if=/dev/md/$name of=$SHARE/$name bs=64k iflag=direct 2>/dev/null
}
ended() {
    for array in /dev/md/v*; do
        mdadm --wait-clean $array >/dev/null 2>&1 || true
        quietly mdadm --stop $array
    done
    quietly mdadm --stop /dev/md/ddf
}
"#;

struct Set {
    directory: TempDir,
    files: Vec<PathBuf>,
}

impl Set {
    fn new(name: &str) -> Self {
        let directory = TempDir::new(name);
        fs::create_dir(directory.path().join("share")).unwrap();
        let files = (0..DISKS).map(|number| directory.file(&format!("disk{number}"), DISK));
        Self { files: files.collect(), directory }
    }

    fn path(&self, name: &str) -> String {
        text(&self.directory.path().join(name))
    }

    /// All disks but some.
    fn disks(&self, without: &[usize]) -> Vec<String> {
        let there = self.files.iter().enumerate().filter(|(number, _)| !without.contains(number));
        there.map(|(_, path)| text(path)).collect()
    }

    fn export(&self, name: &str, disks: &[String]) -> Ran {
        let out = self.path("out");
        let _ = fs::remove_file(&out);
        let words = ["array", "export-file", "--volume", name].map(str::to_owned);
        raidlab(words.into_iter().chain(disks.iter().cloned()).chain([out]))
    }

    /// What an array holds, by these disks.
    fn holds(&self, name: &str, disks: &[String]) {
        self.export(name, disks).good();
        let expected = fs::read(self.path(&format!("share/{name}"))).unwrap();
        let read = fs::read(self.path("out")).unwrap();
        assert!(!expected.is_empty() && read.starts_with(&expected), "{name} by {disks:?}");
        // mdadm counts copies on an odd number of disks by whole disks.
        assert!(read.len() == expected.len() || name == ODD, "{name}: {} bytes", read.len());
    }

    /// Its disks do not suffice.
    fn fails(&self, name: &str, disks: &[String]) -> bool {
        let ran = self.export(name, disks);
        ran.code == Some(1) && ran.stderr.contains("cannot be read without member")
    }
}

#[test]
fn arrays_of_a_ddf_container_are_read_with_every_loss_that_they_survive() {
    const TEST: &str = "arrays_of_a_ddf_container_are_read_with_every_loss_that_they_survive";
    let Some(guest) = guest_or_skip(TEST) else { return };
    let set = Set::new("ddf");
    let made: String =
        (0..).zip(ARRAYS).map(|(n, (what, _)): (usize, _)| format!("make {n} {what}\n")).collect();
    let script = format!("{SCRIPT}container $DEVS\n{made}ended\n");
    guest.run(&script, &set.files, &set.directory.path().join("share")).expect_success(TEST);
    let before: Vec<_> = set.files.iter().map(|file| fs::read(file).unwrap()).collect();
    for (number, (_, survives)) in ARRAYS.iter().enumerate() {
        let name = format!("v{number}");
        set.holds(&name, &set.disks(&[]));
        let mut reversed = set.disks(&[]);
        reversed.reverse();
        set.holds(&name, &reversed);
        for one in 0..DISKS {
            for other in 0..DISKS {
                let count = if one == other { 1 } else { 2 };
                if count <= *survives {
                    set.holds(&name, &set.disks(&[one, other]));
                }
            }
        }
    }
    let all = set.disks(&[]);
    assert!(set.fails("v0", &set.disks(&[0])));
    set.export("other", &all).refused(&["the container has no array other; it has: v0, v1"]);
    let words = ["array", "status"].map(str::to_owned).into_iter();
    raidlab(words.chain(all.clone())).refused(&["several arrays, say which with --volume"]);
    let words = ["array", "assemble", "--write", "--volume", "v4"].map(str::to_owned);
    let ran = raidlab(words.into_iter().chain(all.clone()));
    ran.refused(&["arrays of a DDF container are only read"]);
    let ran = raidlab(["array", "examine"].map(str::to_owned).into_iter().chain(all)).good();
    let scan =
        raidlab(["array", "examine", "--scan"].map(str::to_owned).iter().chain(&set.disks(&[])));
    assert!(
        scan.stdout.is_empty() && scan.stderr.matches("of a DDF container").count() == DISKS,
        "{scan:?}"
    );
    for word in ["Magic : de11de11", "Name : v11", "Raid Level : raid10", "Chunk Size : 64 sectors"]
    {
        assert!(ran.stdout.contains(word), "{word} in {}", ran.stdout);
    }
    let after: Vec<_> = set.files.iter().map(|file| fs::read(file).unwrap()).collect();
    assert!(before == after, "reading changed a disk");
}

/// What a disk that failed still has of an array is old.
#[test]
fn a_disk_that_failed_in_a_ddf_container_is_not_believed() {
    const TEST: &str = "a_disk_that_failed_in_a_ddf_container_is_not_believed";
    let Some(guest) = guest_or_skip(TEST) else { return };
    let set = Set::new("ddf-failed");
    let script = format!(
        "{SCRIPT}
# No disk is left that would take its place.
container /dev/ubda /dev/ubdb /dev/ubdc /dev/ubdd
make 0 -l 1 -n 2
make 1 -l 5 -n 4 -c 64
quietly mdadm /dev/md/v1 --fail /dev/ubda
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    ! mdadm --examine /dev/ubdb | grep -q Failed || break
    sleep 0.2
done
mdadm --examine /dev/ubdb | grep -q Failed
for name in v0 v1; do
    dd if=/dev/urandom of=/dev/md/$name bs=64k oflag=direct 2>/dev/null || true
    dd if=/dev/md/$name of=$SHARE/$name bs=64k iflag=direct 2>/dev/null
done
ended
"
    );
    guest.run(&script, &set.files, &set.directory.path().join("share")).expect_success(TEST);
    for name in ["v0", "v1"] {
        set.holds(name, &set.disks(&[]));
        set.holds(name, &set.disks(&[0]));
    }
    (1..4).for_each(|other| assert!(set.fails("v1", &set.disks(&[other])), "{other}"));
}
