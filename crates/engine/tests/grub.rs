//! GRUB as a third reader: what raidlab writes is what GRUB's own code for md arrays reads.
//!
//! mdadm makes the superblocks, in a guest, or raidlab does, in all four versions, and keeps them;
//! raidlab writes the data, with members out of service too; `grub-fstest` reads the member files,
//! again without some of them. GRUB knows nothing of raidlab and nothing of Linux: a third opinion on
//! where superblocks, data, P and Q lie. It is asked only about layouts that it knows; of others it
//! returns wrong data without a word.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::extent::Extent;
use crate::guest::{TempDir, grub_and_guest_or_skip, has_grub};
use crate::kernel_md::arrays::{Arrays, Set, TestArray};
use crate::kernel_md::content::{difference, pattern};
use crate::kernel_md::files::{self, Files};
use crate::kernel_md::traffic::write_mixture;
use crate::kernel_md::{catalogue, script};
use crate::made::creation;
use raidlab_core::{Layout, Sector};
use raidlab_engine::{Engine, FileMember, FileOptions, MdOptions, Member};
use raidlab_metadata::md::{Creation, Version};

#[test]
fn grub_reads_what_raidlab_writes() {
    let name = "grub_reads_what_raidlab_writes";
    let extent = Extent::from_environment();
    for arrays in Arrays::new(catalogue::known_to_grub(extent), extent) {
        let Some(guest) = grub_and_guest_or_skip(name) else { return };
        let files = Files::new(&arrays);
        let made = guest.cut(&arrays.sections()).run(
            &script::create(&arrays),
            &files.paths(Set::Sound),
            files.share(),
        );
        made.expect_success("mdadm makes the superblocks");
        let mut wrong = Vec::new();
        for array in &arrays.list {
            // Shown when the test fails, or by --nocapture.
            println!("{array}: read without {:?}", array.missing);
            wrong.extend(read_back(array, &files.paths(Set::Sound), extent));
        }
        assert!(wrong.is_empty(), "raidlab's writes, and GRUB reading them:\n{}", wrong.join("\n"));
    }
}

/// raidlab fills the array and writes into it, and into a copy of it without each set of lost members;
/// returns what GRUB reads otherwise.
fn read_back(array: &TestArray, files: &[PathBuf], extent: Extent) -> Vec<String> {
    let mut wrong = Vec::new();
    let filled = Members::new(array, "filled");
    filled.take_from(array, files);
    let mut engine = filled.engine(array, &[]);
    engine.write_at(Sector(0), &pattern(array)).unwrap_or_else(|error| panic!("{array}: {error}"));
    drop(engine);

    let sound = Members::new(array, "sound");
    sound.copy_from(&filled);
    let model = sound.write(array, &[]);
    let missing = array.missing.iter().filter(|missing| grub_starts(array, missing));
    for missing in missing.clone() {
        wrong.extend(sound.compare(array, missing, &model, "GRUB reads"));
    }
    let losses = missing.filter(|missing| !missing.is_empty()).collect();
    for lost in extent.choose(losses, 2) {
        let degraded = Members::new(array, "degraded");
        degraded.copy_from(&filled);
        let model = degraded.write(array, lost);
        for missing in array.missing_beyond(lost, extent) {
            let who = format!("after writes without {lost:?} GRUB reads");
            wrong.extend(degraded.compare(array, &missing, &model, &who));
        }
    }
    wrong
}

/// Each layout is made in each version; in a sample in one of them, another one for each layout.
#[test]
fn grub_reads_arrays_that_raidlab_created() {
    if !has_grub("grub_reads_arrays_that_raidlab_created") {
        return;
    }
    let extent = Extent::from_environment();
    let mut wrong = Vec::new();
    for (index, shape) in catalogue::known_to_grub(extent).into_iter().enumerate() {
        let turned = match extent {
            Extent::All => Extent::All,
            Extent::Sample(number) => Extent::Sample(number.wrapping_add(index as u32)),
        };
        for version in turned.choose(Version::ALL.to_vec(), 1) {
            let room = shape.rooms[0] + BESIDE;
            wrong.extend(created_and_read(&shape.layout, room, (version, index + 1), extent));
        }
    }
    assert!(wrong.is_empty(), "GRUB reading what raidlab created:\n{}", wrong.join("\n"));
}

/// KiB of a device for what stands beside the data, with the first MiB of versions 1.1 and 1.2.
const BESIDE: u64 = 1024 + 192;

/// raidlab makes an array on devices of so many KiB, fills it and writes into it, and starts copies of it to write
/// without each set of lost members, as its superblocks then say; returns what GRUB reads otherwise.
fn created_and_read(
    layout: &Layout,
    room: u64,
    (version, number): (Version, usize),
    extent: Extent,
) -> Vec<String> {
    let name = format!("{}{number}", if version == Version::V0_90 { "md" } else { "raidlab" });
    let creation = creation(layout.clone(), room * 2);
    let creation = Creation { version, name: name.clone(), ..creation };
    let plan = creation.plan().unwrap_or_else(|error| panic!("{layout}: {error}"));
    let made = plan.members[0].as_ref().expect("all are there");
    let used = if plan.size.0 == 0 { made.superblock.data_size } else { plan.size.0 };
    let array = TestArray::apart(number, layout.clone(), plan.data_offset.0 / 2, used / 2, extent);
    // Shown when the test fails, or by --nocapture.
    println!("{version}, {array}: read without {:?}", array.missing);
    let told = |wrong: Vec<String>| wrong.into_iter().map(move |what| format!("{version}, {what}"));
    let members = |of: &str| Members { name: name.clone(), ..Members::new(&array, of) };
    let sound = members("created");
    sound.make(room << 10);
    let mut engine = Engine::new_md(&creation, sound.devices(), None, &MdOptions::default())
        .unwrap_or_else(|error| panic!("{version}, {array}: {error}"));
    let mut model = pattern(&array);
    engine.write_at(Sector(0), &model).unwrap_or_else(|error| panic!("{array}: {error}"));
    engine.stop().unwrap_or_else(|error| panic!("{array}: {error}"));
    drop(engine);
    let filled = members("filled");
    filled.copy_from(&sound);
    let mut wrong = Vec::new();
    sound.start_and_write(&array, &[], &mut model);
    let missing = array.missing.iter().filter(|missing| grub_starts(&array, missing));
    for missing in missing.clone() {
        wrong.extend(sound.compare(&array, missing, &model, "GRUB reads"));
    }
    let losses = missing.filter(|missing| !missing.is_empty()).collect();
    for lost in extent.choose(losses, 2) {
        let degraded = members("degraded");
        degraded.copy_from(&filled);
        let mut model = pattern(&array);
        degraded.start_and_write(&array, lost, &mut model);
        for missing in array.missing_beyond(lost, extent) {
            let who = format!("after {lost:?} failed GRUB reads");
            wrong.extend(degraded.compare(&array, &missing, &model, &who));
        }
    }
    told(wrong).collect()
}

/// Whether GRUB starts the array without these members: it counts them only, so of raid10 it wants
/// more than are needed when the lost ones are no copies of each other.
fn grub_starts(array: &TestArray, missing: &[u16]) -> bool {
    missing.len() <= usize::from(array.layout.survives())
}

/// The members of one array, a file each; removed when dropped.
struct Members {
    /// What GRUB calls the array.
    name: String,
    paths: Vec<PathBuf>,
    directory: TempDir,
}

impl Members {
    fn new(array: &TestArray, name: &str) -> Self {
        let directory = TempDir::new(&format!("grub-{name}"));
        let paths = (0..array.members.len())
            .map(|member| directory.path().join(format!("member{member}")))
            .collect();
        Self { name: format!("raidlab{}", array.number), paths, directory }
    }

    /// Cuts the members out of the files that the guest had.
    fn take_from(&self, array: &TestArray, files: &[PathBuf]) {
        for (member, path) in self.paths.iter().enumerate() {
            let (start, size) = array.sections[member];
            let mut bytes = vec![0; size as usize];
            let from = fs::File::open(&files[array.members[member].0]);
            from.and_then(|file| file.read_exact_at(&mut bytes, start))
                .and_then(|()| fs::write(path, bytes))
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }

    fn copy_from(&self, other: &Self) {
        for (from, to) in other.paths.iter().zip(&self.paths) {
            fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
        }
    }

    fn engine(&self, array: &TestArray, missing: &[u16]) -> Engine {
        let start = array.data_offset << 10;
        let members = self.paths.iter().map(|path| (path.as_path(), start));
        files::without(files::engine(array, members), array, missing)
    }

    /// raidlab writes without these members; returns what the array must hold then.
    fn write(&self, array: &TestArray, lost: &[u16]) -> Vec<u8> {
        let mut model = pattern(array);
        let seed = lost.iter().fold(0, |seed, member| seed << 5 | u64::from(member + 1));
        write_mixture(&mut self.engine(array, lost), array, &mut model, seed);
        model
    }

    /// Makes the files, of so many zeroes.
    fn make(&self, bytes: u64) {
        for path in &self.paths {
            let made = fs::File::create_new(path).and_then(|file| file.set_len(bytes));
            made.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }

    /// The files as whole devices.
    fn devices(&self) -> Vec<Member> {
        let open = |path: &PathBuf| FileMember::open(path, FileOptions::default());
        let opened = self.paths.iter().map(|path| open(path).expect("a member opens"));
        opened.map(|member| Member::File(Box::new(member))).collect()
    }

    /// raidlab starts the array by its superblocks; these members fail, then it writes, in `model` too, and stops.
    fn start_and_write(&self, array: &TestArray, lost: &[u16], model: &mut [u8]) {
        let wrong = |error| panic!("{array}: {error}");
        let (engine, _) =
            Engine::assemble_md(self.devices(), &MdOptions::default()).unwrap_or_else(wrong);
        let mut engine = files::without(engine, array, lost);
        let seed = lost.iter().fold(0, |seed, member| seed << 5 | u64::from(member + 1));
        write_mixture(&mut engine, array, model, seed);
        engine.stop().unwrap_or_else(|error| panic!("{array}: {error}"));
    }

    /// What GRUB reads otherwise than `expected` when these members are missing, if anything.
    fn compare(
        &self,
        array: &TestArray,
        missing: &[u16],
        expected: &[u8],
        who: &str,
    ) -> Option<String> {
        let model = self.directory.path().join("expected");
        fs::write(&model, expected).unwrap_or_else(|error| panic!("{}: {error}", model.display()));
        let compared = self.grub(array, missing, "cmp", Some(&model));
        if compared.status.success() {
            return None;
        }
        let found = self.grub(array, missing, "cat", None);
        let what = difference(array, expected, &found.stdout).unwrap_or_else(|| "what?".to_owned());
        let said = [&compared.stdout[..], &compared.stderr[..]].concat();
        let said = String::from_utf8_lossy(&said).trim().replace('\n', "; ");
        Some(format!("{array}, missing {missing:?}: {who} otherwise: {what}. GRUB says: {said}"))
    }

    /// Runs a command of `grub-fstest` on the whole array.
    fn grub(&self, array: &TestArray, missing: &[u16], what: &str, file: Option<&Path>) -> Output {
        let present = self.paths.iter().zip(0..).filter(|(_, member)| !missing.contains(member));
        let images: Vec<_> = present.map(|(path, _)| path).collect();
        let sectors = array.capacity() / 512;
        let mut command = Command::new("grub-fstest");
        command.arg("-c").arg(images.len().to_string()).args(images).arg(what);
        command.arg(format!("(md/{})0+{sectors}", self.name)).args(file);
        command.env("LC_ALL", "C");
        command.output().unwrap_or_else(|error| panic!("grub-fstest: {error}"))
    }
}
