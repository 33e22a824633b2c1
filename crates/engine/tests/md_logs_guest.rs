//! What the tests of md's logs against the kernel share: the guest's files, cut into a section for each array, and what
//! is written to arrays by the kernel.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use raidlab_core::{Sector, Sectors};
use raidlab_engine::Engine;
use raidlab_metadata::md::{Inspected, inspect};
use raidlab_metadata::{Source, Unreadable};
use raidlab_random::SplitMix64;

use crate::guest::{Guest, Output, TempDir};
use crate::held::SECTOR;
use crate::made::pattern;

pub(crate) const MIB: usize = 1 << 20;
/// Bytes of each device.
pub(crate) const MEMBER: usize = 6 * MIB;
pub(crate) const BLOCK: usize = 4096;

/// The guest's files, and what is written.
pub(crate) struct Files {
    directory: TempDir,
    devices: Vec<PathBuf>,
    /// What an array is filled with, and what is written over it.
    pub(crate) patterns: [Vec<u8>; 2],
}

impl Files {
    /// So many devices with so many sections, and `filled` bytes that the kernel writes.
    pub(crate) fn new(name: &str, devices: usize, sections: usize, filled: usize) -> Self {
        let directory = TempDir::new(name);
        let device = |name: &&str| directory.file(name, (sections * MEMBER) as u64);
        let devices = ["a", "b", "c", "d", "e"][..devices].iter().map(device).collect();
        fs::create_dir(directory.path().join("share")).unwrap();
        let patterns = [3, 5].map(|seed| pattern(filled, seed));
        let files = Self { directory, devices, patterns };
        for (pattern, name) in files.patterns.iter().zip(["first", "second"]) {
            fs::write(files.share(name), pattern).unwrap();
        }
        files
    }

    pub(crate) fn share(&self, name: &str) -> PathBuf {
        self.directory.path().join("share").join(name)
    }

    pub(crate) fn run(&self, guest: &Guest, script: &str) -> Output {
        guest.run(&format!("{FUNCTIONS}\n{script}"), &self.devices, &self.share(""))
    }

    /// A section of these devices.
    pub(crate) fn read(
        &self,
        section: usize,
        numbers: impl Iterator<Item = usize>,
    ) -> Vec<Vec<u8>> {
        let image = |number: usize| {
            let mut bytes = vec![0; MEMBER];
            let file = File::open(&self.devices[number]).unwrap();
            file.read_exact_at(&mut bytes, (section * MEMBER) as u64).unwrap();
            bytes
        };
        numbers.map(image).collect()
    }

    pub(crate) fn write(
        &self,
        section: usize,
        numbers: impl Iterator<Item = usize>,
        images: &[Vec<u8>],
    ) {
        for (number, bytes) in numbers.zip(images) {
            let file = File::options().write(true).open(&self.devices[number]).unwrap();
            file.write_all_at(bytes, (section * MEMBER) as u64).unwrap();
        }
    }

    /// What an array holds that was filled, and of which blocks were written anew.
    pub(crate) fn expected(&self, section: usize) -> Vec<u8> {
        let mut expected = self.patterns[0].clone();
        for block in rewritten(section, expected.len()) {
            let at = block * BLOCK..(block + 1) * BLOCK;
            expected[at.clone()].copy_from_slice(&self.patterns[1][at]);
        }
        expected
    }

    /// Each sector is the old or the new one, or `excepted`; some are new.
    pub(crate) fn compare_crashed(
        &self,
        found: &[u8],
        excepted: impl Fn(usize) -> bool,
        told: &str,
    ) {
        let (old, new) = (self.patterns[0].chunks(SECTOR), self.patterns[1].chunks(SECTOR));
        let mut renewed = 0;
        for (at, ((sector, old), new)) in found.chunks(SECTOR).zip(old).zip(new).enumerate() {
            renewed += usize::from(sector == new);
            assert!(sector == old || sector == new || excepted(at), "{told}: sector {at}");
        }
        assert!(renewed > 0 && renewed < found.len() / SECTOR, "{told}: {renewed} sectors are new");
    }
}

const FUNCTIONS: &str = r#"
set -e
quietly() { "$@" >/dev/null 2>$SHARE/log || { cat $SHARE/log >&2; echo "failed: $*" >&2; exit 1; }; }
idle() {
    local try sys=/sys/block/md$section/md
    for try in 1 2 3 4 5 6 7 8 9; do
        mdadm --wait $md >/dev/null 2>&1 || true
        [ "$(cat $sys/sync_action)" != idle ] || return 0
    done
}
consistent() {
    local sys=/sys/block/md$section/md
    [ "$(cat $sys/degraded)" = 0 ] || { echo "$md: degraded" >&2; exit 1; }
    echo check >$sys/sync_action
    mdadm --wait $md >/dev/null 2>&1 || true
    [ "$(cat $sys/mismatch_cnt)" = 0 ] || { echo "$md: $(cat $sys/mismatch_cnt) mismatches" >&2; exit 1; }
}
policy() {
    [ "$(cat /sys/block/md$section/md/consistency_policy)" = $1 ] || { echo "$md: not $1" >&2; exit 1; }
}
"#;

pub(crate) fn device(section: usize, number: usize) -> String {
    format!("/dev/ubd{}{}", char::from(b'a' + number as u8), section + 1)
}

/// The devices with these numbers but the lost one.
pub(crate) fn devices(
    section: usize,
    numbers: impl Iterator<Item = usize>,
    lost: Option<usize>,
) -> String {
    let there = numbers.filter(|number| Some(*number) != lost);
    there.map(|number| device(section, number)).collect::<Vec<_>>().join(" ")
}

pub(crate) fn head(section: usize) -> String {
    format!("section={0} md=/dev/md{0}\n", section + 1)
}

/// Blocks that the kernel writes anew one by one, of `filled` bytes.
fn rewritten(section: usize, filled: usize) -> Vec<usize> {
    let mut random = SplitMix64::new(section as u64);
    (0..14).map(|_| random.below((filled / BLOCK) as u64) as usize).collect()
}

/// Writes blocks of an array that runs anew, copies its members meanwhile, and stops it.
pub(crate) fn write_and_copy(
    section: usize,
    numbers: impl Iterator<Item = usize>,
    filled: usize,
) -> String {
    let mut script = String::new();
    for block in rewritten(section, filled) {
        script.push_str(&format!(
            "quietly dd if=$SHARE/second of=$md bs=4k skip={block} seek={block} count=1 oflag=direct\n"
        ));
    }
    for number in numbers {
        script.push_str(&format!(
            "quietly dd if={} of=$SHARE/{section}-{number} bs=1M count={} iflag=direct\n",
            device(section, number),
            MEMBER / MIB
        ));
    }
    script.push_str("quietly mdadm --stop $md\n");
    script
}

/// All that an array holds, as far as this.
pub(crate) fn all(engine: &mut Engine, bytes: usize) -> Vec<u8> {
    let mut all = vec![0; bytes];
    engine.read_at(Sector(0), &mut all).unwrap();
    all
}

/// What is found on a device of these bytes.
pub(crate) fn looked(bytes: &[u8]) -> Inspected {
    inspect(&mut Image(bytes))
}

/// Bytes of a device, to be looked at.
struct Image<'a>(&'a [u8]);

impl Source for Image<'_> {
    fn sectors(&self) -> Sectors {
        Sectors((self.0.len() / SECTOR) as u64)
    }

    fn logical_block(&self) -> u32 {
        1
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        let from = at.bytes() as usize;
        into.copy_from_slice(self.0.get(from..from + into.len()).ok_or(Unreadable)?);
        Ok(())
    }
}
