//! Who starts an array with which devices: the kernel is asked in a guest, raidlab here.

use std::os::unix::fs::FileExt;

use crate::guest::{Guest, TempDir};
use raidlab_core::contract::Pacing;
use raidlab_core::{MemberIndex, Sector, Sectors, Settings};
use raidlab_engine::{Engine, MdOptions, Member, MemoryMember};
use raidlab_metadata::md::{Allowed, Inspected, Superblock, Version, assemble, inspect};
use raidlab_metadata::{Source, Unreadable};

/// Of each device.
pub(super) const BYTES: u64 = 512 << 10;
/// Arrays of one guest: sixteen files, cut into fifteen sections each, are four devices for each.
pub(super) const MOST: usize = 4 * SECTIONS;
const SECTIONS: usize = 15;
const DEVICES: usize = 4;

/// A device with a superblock and nothing else.
pub(super) struct Device {
    at: u64,
    superblock: Vec<u8>,
}

impl Device {
    /// `is_broken`: a byte of it is another one behind the checksum's back.
    pub(super) fn new(superblock: &Superblock, version: Version, is_broken: bool) -> Self {
        let mut bytes = vec![0; 4096];
        superblock.emit(&mut bytes).unwrap();
        let unused = if version == Version::V0_90 { 400 } else { 40 };
        bytes[unused] ^= u8::from(is_broken);
        Self { at: superblock.super_offset * 512, superblock: bytes }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; BYTES as usize];
        let at = self.at as usize;
        bytes[at..at + self.superblock.len()].copy_from_slice(&self.superblock);
        bytes
    }
}

/// Devices of one array, and which of them are given.
pub(super) struct Asked {
    pub(super) devices: Vec<Device>,
    pub(super) given: Vec<usize>,
}

/// A device to be looked at.
struct Disk(Vec<u8>);

impl Source for Disk {
    fn sectors(&self) -> Sectors {
        Sectors(self.0.len() as u64 / 512)
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

impl Asked {
    /// Whom raidlab reads: by their numbers, `-` for nobody.
    pub(super) fn raidlab_reads(&self) -> String {
        let look = |given: &usize| inspect(&mut Disk(self.devices[*given].bytes()));
        let inspected: Vec<Inspected> = self.given.iter().map(look).collect();
        let Ok(found) = assemble(&inspected, &Allowed::default()) else { return "-".to_owned() };
        let there = found.places.iter().filter_map(|place| place.given);
        there.map(|given| self.given[given].to_string()).collect()
    }

    /// Whom raidlab has in service when it writes, `r` for one that is being rebuilt.
    pub(super) fn raidlab_writes(&self, run: bool) -> String {
        let member = |given: &usize| {
            let mut member = MemoryMember::new(Sectors(BYTES / 512)).unwrap();
            member.bytes_mut().copy_from_slice(&self.devices[*given].bytes());
            Member::Memory(member)
        };
        // A rebuild is still under way when it is looked at, however long that takes.
        let settings = Settings { pacing: Pacing::between(1, 1), ..Settings::default() };
        let options = MdOptions { run, settings, ..MdOptions::default() };
        let devices = self.given.iter().map(member).collect();
        let Ok((engine, found)) = Engine::assemble_md(devices, &options) else {
            return "-".to_owned();
        };
        let status = engine.array().status();
        let mut text = String::new();
        for (place, given) in found.joined.order.iter().enumerate() {
            let in_service = !engine.array().is_failed(MemberIndex(place as u16));
            let Some(given) = given.filter(|_| in_service) else { continue };
            text.push_str(&match status.rebuilding[0] >> place & 1 {
                0 => self.given[given].to_string(),
                _ => "r".to_owned(),
            });
        }
        text
    }
}

const SCRIPT: &str = r#"
echo 1 >/sys/module/md_mod/parameters/start_ro
try() { # flags and devices
    mdadm --assemble $md "$@" >/dev/null 2>&1
    local sys=/sys/block/${md#/dev/}/md device number slot state array=clear out=
    [ ! -e $sys/array_state ] || read -r array <$sys/array_state
    case $array in
        clear|inactive) out=- ;;
        *) for device in $sys/dev-*; do
            read -r slot <$device/slot
            read -r state <$device/state
            case ${device##*/dev-} in
                ubd[aeim]*) number=0 ;;
                ubd[bfjn]*) number=1 ;;
                ubd[cgko]*) number=2 ;;
                *) number=3 ;;
            esac
            case $slot:$state in
                none:*) ;;
                *in_sync*) out=$out$number ;;
                *) out=${out}r ;;
            esac
        done ;;
    esac
    [ ! -e $sys ] || mdadm --stop $md >/dev/null 2>&1
    printf ' %s' $out
}
row() { # device of the array, devices
    md=$1
    shift
    try "$@"
    try --run "$@"
    echo
}
"#;

/// Whom the kernel starts each array with, and whom with `--run`: by their numbers, `r` for one that is being rebuilt,
/// `-` for no start.
pub(super) fn kernel(guest: Guest, arrays: &[&Asked]) -> Vec<[String; 2]> {
    let directory = TempDir::new("md-decisions");
    let share = directory.path().join("share");
    std::fs::create_dir(&share).unwrap();
    let sections = arrays.len().min(SECTIONS);
    let file = |name: usize| directory.file(&format!("member{name}"), sections as u64 * BYTES);
    let files: Vec<_> = (0..arrays.len().div_ceil(SECTIONS) * DEVICES).map(file).collect();
    let opened: Vec<_> =
        files.iter().map(|file| std::fs::File::options().write(true).open(file).unwrap()).collect();
    let mut script = SCRIPT.to_owned();
    for (row, array) in arrays.iter().enumerate() {
        let (first, section) = (row / SECTIONS * DEVICES, row % SECTIONS);
        for (file, device) in opened[first..].iter().zip(&array.devices) {
            let at = section as u64 * BYTES + device.at;
            file.write_all_at(&device.superblock, at).unwrap();
        }
        script.push_str(&format!("row /dev/md{row}"));
        for given in &array.given {
            let letter = char::from(b'a' + (first + given) as u8);
            script.push_str(&format!(" /dev/ubd{letter}{}", section + 1));
        }
        script.push('\n');
    }
    let guest = guest.cut(&vec![BYTES; sections]);
    let told = guest.run(&script, &files, &share).expect_success("mdadm assembles what it will");
    let told = told.lines().map(|line| {
        let mut words = line.split_whitespace().map(str::to_owned);
        [words.next().unwrap_or_default(), words.next().unwrap_or_default()]
    });
    told.collect()
}
