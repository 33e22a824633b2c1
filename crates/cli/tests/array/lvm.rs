//! RAID volumes that LVM made and the kernel wrote, read by raidlab.

use std::fs;
use std::path::{Path, PathBuf};

use super::text;
use crate::guest::{TempDir, lvm_and_guest_or_skip};
use crate::support::{Ran, raidlab};

const MIB: u64 = 1 << 20;
const DEVICE: u64 = 24 * MIB;
/// The volumes: how `lvcreate` is told, and how many physical volumes each survives. Each is of six extents of 256 KiB
/// but the mirror, of three.
const VOLUMES: [(&str, usize); 18] = [
    ("raid0 -i 3 -I 64k", 0),
    ("raid0_meta -i 3 -I 64k", 0),
    ("raid1 -m 2", 2),
    ("raid4 -i 3 -I 64k", 1),
    ("raid5_la -i 3 -I 64k", 1),
    ("raid5_ls -i 2 -I 32k", 1),
    ("raid5_ra -i 3 -I 64k", 1),
    ("raid5_rs -i 3 -I 64k", 1),
    ("raid5_n -i 3 -I 64k", 1),
    ("raid6_zr -i 3 -I 64k", 2),
    ("raid6_nr -i 3 -I 64k", 2),
    ("raid6_nc -i 3 -I 64k", 2),
    ("raid6_ls_6 -i 3 -I 64k", 2),
    ("raid6_la_6 -i 3 -I 64k", 2),
    ("raid6_ra_6 -i 3 -I 64k", 2),
    ("raid6_rs_6 -i 3 -I 64k", 2),
    ("raid6_n_6 -i 3 -I 64k", 2),
    ("raid10 -i 2 -m 1 -I 64k", 1),
];
/// Of these the ones that are made longer when others lie behind them, so that their members lie in two ranges.
const LONGER: &str = "lvextend -q -l +3 vg/v2\nlvextend -q -l +6 vg/v5\n";

/// There is no udev in the guest, and nothing of this machine's configuration is meant. Commands are given to one
/// program, as each start of it takes a quarter of a second there.
const SCRIPT: &str = r#"
set -e
for module in dm-mod dm-raid; do
    busybox insmod "$(find /usr/lib/uml/modules -name $module.ko | head -n 1)"
done
mkdir -p /tmp/lvm /run/lvm /run/lock/lvm
export LVM_SYSTEM_DIR=/tmp/lvm
sees() { # filters of devices
    cat >/tmp/lvm/lvm.conf <<END
devices {
    dir = "/dev"
    scan = [ "/dev" ]
    use_devicesfile = 0
    obtain_device_list_from_udev = 0
    external_device_info_source = "none"
    types = [ "ubd", 16 ]
    md_component_detection = 0
    global_filter = [ $1 "a|.*|" ]
}
log { syslog = 0 }
backup {
    backup = 0
    archive = 0
}
activation {
    udev_sync = 0
    udev_rules = 0
    monitoring = 0
}
END
}
does() { # commands on standard input
    lvm >$SHARE/log 2>&1 || { cat $SHARE/log >&2; echo "lvm failed" >&2; exit 1; }
}
fill() { # volumes
    local name
    for name; do
        dd if=/dev/urandom of=/dev/vg/$name bs=256k oflag=direct 2>/dev/null || true
        dd if=/dev/vg/$name of=$SHARE/$name bs=256k iflag=direct 2>/dev/null
    done
}
copies() { # directory
    local device number=0
    mkdir $SHARE/$1
    for device in $DEVS; do
        dd if=$device of=$SHARE/$1/device$number bs=1M iflag=direct 2>/dev/null
        number=$((number + 1))
    done
}
sees
"#;

struct Set {
    directory: TempDir,
    files: Vec<PathBuf>,
}

impl Set {
    fn new(name: &str, devices: usize) -> Self {
        let directory = TempDir::new(name);
        fs::create_dir(directory.path().join("share")).unwrap();
        let files = (0..devices).map(|number| directory.file(&format!("device{number}"), DEVICE));
        Self { files: files.collect(), directory }
    }

    fn path(&self, name: &str) -> String {
        text(&self.directory.path().join(name))
    }

    /// All devices but some.
    fn devices(&self, without: &[usize]) -> Vec<String> {
        let there = self.files.iter().enumerate().filter(|(number, _)| !without.contains(number));
        there.map(|(_, path)| text(path)).collect()
    }

    /// Those copied to a directory of the share, but some.
    fn copies(&self, directory: &str, without: &[usize]) -> Vec<String> {
        let there = (0..self.files.len()).filter(|number| !without.contains(number));
        there.map(|number| self.path(&format!("share/{directory}/device{number}"))).collect()
    }

    fn export(&self, name: &str, devices: &[String], more: &[&str]) -> Ran {
        let out = self.path("out");
        let _ = fs::remove_file(&out);
        let words = ["array", "export-file", "--volume", name].into_iter();
        let words = words.chain(more.iter().copied());
        raidlab(words.map(str::to_owned).chain(devices.iter().cloned()).chain([out]))
    }

    /// What a volume holds, by these devices, is that of a file of the share.
    fn holds(&self, name: &str, content: &str, devices: &[String], more: &[&str]) -> Ran {
        let ran = self.export(name, devices, more);
        assert_eq!(ran.code, Some(0), "{name} by {devices:?}: {ran:?}");
        let expected = fs::read(self.path(&format!("share/{content}"))).unwrap();
        let read = fs::read(self.path("out")).unwrap();
        assert!(!expected.is_empty() && read == expected, "{name} by {devices:?}");
        ran
    }

    /// The volume cannot be read for this reason.
    fn fails(&self, name: &str, devices: &[String], why: &str) {
        let ran = self.export(name, devices, &[]);
        assert!(ran.code == Some(1) && ran.stderr.contains(why), "{name} by {devices:?}: {ran:?}");
    }
}

/// What `array` prints of some devices.
fn array(words: &[&str], devices: &[String]) -> Ran {
    let words = ["array"].iter().chain(words).map(|word| (*word).to_owned());
    raidlab(words.chain(devices.iter().cloned()))
}

fn contents(files: &[PathBuf]) -> Vec<Vec<u8>> {
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

#[test]
fn raid_volumes_of_lvm_are_read_with_every_loss_that_they_survive() {
    const TEST: &str = "raid_volumes_of_lvm_are_read_with_every_loss_that_they_survive";
    let Some(guest) = lvm_and_guest_or_skip(TEST) else { return };
    let set = Set::new("lvm", 6);
    let made: String = (0..)
        .zip(VOLUMES)
        .map(|(n, (what, _)): (usize, _)| {
            let extents = if n == 2 { 3 } else { 6 };
            format!("lvcreate -y -q -W n -Z n -n v{n} -l {extents} --type {what} vg\n")
        })
        .collect();
    // The last one has no metadata of its own.
    let script = format!(
        "{SCRIPT}does <<END
pvcreate -q ${{DEVS% *}}
pvcreate -q --metadatacopies 0 ${{DEVS##* }}
vgcreate -q -s 256k vg $DEVS
{made}{LONGER}lvcreate -y -q -W n -Z n -n plain -l 1 vg
END
fill {}
vgchange -q -an vg >/dev/null 2>&1
",
        (0..VOLUMES.len()).map(|n| format!("v{n} ")).collect::<String>()
    );
    guest.run(&script, &set.files, &set.directory.path().join("share")).expect_success(TEST);
    let before = contents(&set.files);
    let (all, count) = (set.devices(&[]), set.files.len());
    for (number, (what, survives)) in VOLUMES.iter().enumerate() {
        let name = format!("v{number}");
        set.holds(&name, &name, &all, &[]);
        let mut reversed = all.clone();
        reversed.reverse();
        set.holds(&format!("vg/{name}"), &name, &reversed, &[]);
        for one in 0..count {
            for other in one..count {
                let lost = if one == other { 1 } else { 2 };
                if lost <= *survives {
                    set.holds(&name, &name, &set.devices(&[one, other]), &[]);
                }
            }
        }
        if *survives == 0 {
            set.fails(&name, &set.devices(&[0]), "cannot be read without member 0");
        } else if *survives == 1 {
            let why = "cannot be read without member 0 and 1";
            if !what.starts_with("raid10") {
                set.fails(&name, &set.devices(&[0, 1]), why);
            }
        }
    }
    what_is_said(&set);
    copies_are_told_apart(&set);
    assert!(contents(&set.files) == before, "reading changed a device");
}

/// Of a volume whose members lie in two ranges each, with two copies of a device of it.
fn copies_are_told_apart(set: &Set) {
    let all = set.devices(&[]);
    let clone = set.path("clone");
    let mut bytes = fs::read(&set.files[1]).unwrap();
    // What of the volume's data is read from the copy is wrong.
    for at in (MIB as usize..bytes.len()).step_by(4096) {
        let is_metadata = bytes[at..].starts_with(b"DmRd") || bytes[at..].starts_with(b"bitm");
        bytes[at + 2048] ^= u8::from(!is_metadata);
    }
    fs::write(&clone, &bytes).unwrap();
    let first = [std::slice::from_ref(&clone), &all].concat();
    let last = [&all, std::slice::from_ref(&clone)].concat();
    for devices in [&first, &last] {
        set.fails("v5", devices, "are copies of one physical volume");
        set.holds("v5", "v5", devices, &["--without", &clone]);
    }
    for at in superblocks(Path::new(&clone), 5) {
        bytes[at + 16] = bytes[at + 16].saturating_sub(2);
    }
    fs::write(&clone, &bytes).unwrap();
    for devices in [&first, &last] {
        set.holds("v5", "v5", devices, &[]);
        let ran = array(&["status", "--volume", "v5"], devices).good();
        let words = format!("not used  {clone}: an older copy of {}", all[1]);
        assert!(ran.stdout.contains(&words), "{}", ran.stdout);
    }
}

/// What is printed and refused.
fn what_is_said(set: &Set) {
    let all = set.devices(&[]);
    set.export("other", &all, &[]).refused(&["have no volume other; RAID volumes: vg/v0, vg/v1, "]);
    let other_group =
        "none of the devices has metadata of a volume group xx; RAID volumes: vg/v0, ";
    set.export("xx/v0", &all, &[]).refused(&[other_group]);
    set.export("vg/plain", &all, &[]).refused(&["plain is of type striped; of LVM only RAID"]);
    array(&["status"], &all)
        .refused(&["several RAID volumes of LVM, say which with --volume: vg/v0"]);
    for flag in [&["--write"][..], &["--overlay", "nowhere"]] {
        let words = [&["assemble", "--volume", "v6"], flag].concat();
        array(&words, &all).refused(&["RAID volumes of LVM are only read"]);
    }
    let ran = array(&["status", "--volume", "v5"], &set.devices(&[1])).good();
    for word in [
        "vg/v5: raid5(3) chunk=32K, 3MiB, ",
        "degraded, without member 1; stopped cleanly",
        "2 ranges)",
    ] {
        assert!(ran.stdout.contains(word), "{word} in {}", ran.stdout);
    }
    let ran = array(&["examine"], &all[..1]).good();
    for word in [
        "VG Name : vg\n",
        "PVs : 6\n",
        "(this one), last /dev/ubda",
        "RAID Volumes : 18\n",
        "Type : raid6_nc\n",
        "Stripe Size : 64KiB\n",
        "Member : 0 v3_rimage_0, on pv0: events ",
        "Member : 1 v3_rimage_1, on pv1\n",
    ] {
        assert!(ran.stdout.contains(word), "{word} in {}", ran.stdout);
    }
    let ran = array(&["examine"], &all[5..]).good();
    assert!(ran.stdout.contains("Metadata : none on this device"), "{}", ran.stdout);
    let ran = array(&["examine", "--json"], &all[..1]).good();
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let group = &said["members"][0]["lvm"]["group"];
    assert_eq!(
        (&group["name"], group["raid_volumes"].as_array().map(Vec::len)),
        (&"vg".into(), Some(18))
    );
    assert_eq!(group["raid_volumes"][5]["images"][0]["reason"], serde_json::Value::Null);
    let scan = array(&["examine", "--scan"], &all);
    assert!(
        scan.stdout.is_empty() && scan.stderr.matches("a physical volume of LVM").count() == 6,
        "{scan:?}"
    );
}

/// Where the metadata of a member begin on a device: where the superblock that says so stands.
fn superblocks(path: &Path, level: u32) -> Vec<usize> {
    let bytes = fs::read(path).unwrap();
    let is_one = |at: &usize| {
        bytes[*at..].starts_with(b"DmRd") && bytes[at + 48..][..4] == level.to_le_bytes()
    };
    (0..bytes.len()).step_by(4096).filter(is_one).collect()
}

fn change(path: &Path, at: usize, value: &[u8]) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at..at + value.len()].copy_from_slice(value);
    fs::write(path, bytes).unwrap();
}

#[test]
fn members_of_raid_volumes_that_missed_something_are_not_believed() {
    const TEST: &str = "members_of_raid_volumes_that_missed_something_are_not_believed";
    let Some(guest) = lvm_and_guest_or_skip(TEST) else { return };
    let set = Set::new("lvm-missed", 4);
    // `dirty` was copied while writes had just been answered, as a crash would leave it. `degraded` is in use anew:
    // of a mirror Linux 6.1 records a missing member seconds after a start only, or at its end.
    let script = format!(
        "{SCRIPT}does <<END
pvcreate -q $DEVS
vgcreate -q -s 512k vg $DEVS
lvcreate -y -q -W n -Z n -n five -l 8 --type raid5 -i 2 -I 64k vg
lvcreate -y -q -W n -Z n -n one -l 4 --type raid1 -m 1 vg
END
fill five one
copies dirty
mkdir $SHARE/first
mv $SHARE/five $SHARE/one $SHARE/first
sees '\"r|ubda|\",'
does <<END
vgchange -q -an vg
vgchange -q --activationmode degraded -ay vg
END
fill five one
does <<END
vgchange -q -an vg
vgchange -q --activationmode degraded -ay vg
END
copies degraded
mv $SHARE/five $SHARE/one $SHARE/degraded
does <<END
lvconvert -q -y --repair vg/five
vgchange -q -an vg
vgchange -q --activationmode degraded -ay vg
END
fill five
does <<END
vgchange -q -an vg
END
copies repaired
"
    );
    guest.run(&script, &set.files, &set.directory.path().join("share")).expect_success(TEST);
    let with = |directory: &str, without: &[usize]| set.copies(directory, without);
    // Parity is not used unasked; copies are read.
    set.holds("five", "first/five", &with("dirty", &[]), &[]);
    set.holds("one", "first/one", &with("dirty", &[]), &[]);
    for lost in 0..3 {
        set.fails("five", &with("dirty", &[lost]), "the array was not stopped cleanly");
        set.holds("five", "first/five", &with("dirty", &[lost]), &["--allow-dirty-degraded"]);
    }
    let ran = array(&["status", "--volume", "five"], &with("dirty", &[])).good();
    assert!(ran.stdout.contains("not stopped cleanly, "), "{}", ran.stdout);
    // The one that was away has the first contents still.
    for without in [&[][..], &[0]] {
        set.holds("five", "degraded/five", &with("degraded", without), &[]);
        set.holds("one", "degraded/one", &with("degraded", without), &[]);
    }
    let ran = array(&["status", "--volume", "five"], &with("degraded", &[])).good();
    for word in [
        "whether it was stopped cleanly is not recorded",
        "failed, or taken out",
        "LVM does not record",
    ] {
        assert!(ran.stdout.contains(word), "{word} in {}", ran.stdout);
    }
    for lost in [1, 2] {
        set.fails("five", &with("degraded", &[lost]), "cannot be read without member 0 and ");
    }
    repaired(&set);
}

/// Another device has come in the place of the one that was away, and the group is told differently by the latter.
fn repaired(set: &Set) {
    let with = |without: &[usize]| set.copies("repaired", without);
    let device = |number: usize| PathBuf::from(set.path(&format!("share/repaired/device{number}")));
    for without in [&[][..], &[0], &[1], &[2], &[3]] {
        let ran = set.holds("five", "five", &with(without), &[]);
        let is_told =
            ran.stderr.contains("device0: its metadata of the volume group vg are older (seqno ");
        assert_eq!(is_told, !without.contains(&0), "{ran:?}");
    }
    set.holds("one", "degraded/one", &with(&[]), &[]);
    let ran = array(&["examine"], &with(&[0, 2, 3])).good();
    assert!(
        ran.stdout.contains("last /dev/ubda, was missing") || ran.stdout.contains(", was missing"),
        "{}",
        ran.stdout
    );
    // As in the midst of the rebuild.
    let [at] = superblocks(&device(3), 5)[..] else { panic!("one superblock") };
    change(&device(3), at + 32, &8_u64.to_le_bytes());
    set.holds("five", "five", &with(&[]), &[]);
    let ran = array(&["status", "--volume", "five"], &with(&[]));
    assert!(ran.stdout.contains("being rebuilt, good up to sector 8 only"), "{}", ran.stdout);
    set.fails("five", &with(&[1]), "cannot be read without member 0 and 1");
    // One text is torn: the others tell. None is left: its byte is told.
    let torn = |number: usize| {
        let bytes = fs::read(device(number)).unwrap();
        let offset = u64::from_le_bytes(bytes[4096 + 40..][..8].try_into().unwrap()) as usize;
        change(&device(number), 4096 + offset + 20, b"?");
        4096 + offset
    };
    torn(1);
    set.holds("five", "five", &with(&[0]), &[]);
    let at = torn(2);
    let ran = array(&["examine"], &with(&[0, 1, 3]));
    let what = format!("device2: the text of metadata of LVM at byte {at}: the checksum is ");
    assert!(ran.code == Some(1) && ran.stderr.contains(&what), "{ran:?}");
    // A change of shape, and what a newer kernel may have added.
    for (field, value, why) in
        [(60, 1_u32, "a reshape of it is under way"), (144, 4, "features (0x1, 0x4)")]
    {
        for number in 1..4 {
            superblocks(&device(number), 5)
                .iter()
                .for_each(|at| change(&device(number), at + field, &value.to_le_bytes()));
        }
        set.fails("five", &with(&[0]), why);
        for number in 1..4 {
            superblocks(&device(number), 5)
                .iter()
                .for_each(|at| change(&device(number), at + field, &[0; 4]));
        }
    }
}

/// Its members have room that the change of shape left, and its text says one copy, which LVM takes for two.
#[test]
fn a_raid10_that_got_stripes_is_read() {
    const TEST: &str = "a_raid10_that_got_stripes_is_read";
    let Some(guest) = lvm_and_guest_or_skip(TEST) else { return };
    let set = Set::new("lvm-raid10", 6);
    // The kernel has its new length when it is started again.
    let script = format!(
        "{SCRIPT}does <<END
pvcreate -q $DEVS
vgcreate -q -s 256k vg $DEVS
lvcreate -y -q -W n -Z n -n ten -l 8 --type raid10 -i 2 -m 1 -I 64k vg
END
fill ten
mv $SHARE/ten $SHARE/before
does <<END
lvconvert -q -y --stripes 3 vg/ten
END
until dmsetup status vg-ten | grep -q ' idle '; do :; done
does <<END
vgchange -q -an vg
vgchange -q -ay vg
END
dd if=/dev/vg/ten of=$SHARE/ten bs=256k iflag=direct 2>/dev/null
does <<END
vgchange -q -an vg
END
"
    );
    guest.run(&script, &set.files, &set.directory.path().join("share")).expect_success(TEST);
    let [before, after] =
        ["before", "ten"].map(|name| fs::read(set.path(&format!("share/{name}"))));
    let (before, after) = (before.unwrap(), after.unwrap());
    assert_eq!((before.len() as u64, after.len() as u64), (2 * MIB, 3 * MIB));
    assert!(after.starts_with(&before));
    set.holds("ten", "ten", &set.devices(&[]), &[]);
    for lost in 0..6 {
        set.holds("ten", "ten", &set.devices(&[lost]), &[]);
    }
    set.fails("ten", &set.devices(&[2, 3]), "cannot be read without member 2 and 3");
}
