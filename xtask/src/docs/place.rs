//! Where a block is run: a scratch directory, which stands in for all that commands of documents name
//! outside of it, and is removed at the end.
//!
//! It holds copies of `studies` and `drives`, the files of the document, and is the home directory. A
//! directory in it stands in for `/mnt`, and loop devices over files in it for `/dev/sdb` and the like; a
//! command that names any other absolute path is not run. A loop device is taken down by the kernel when
//! this program closes it, however it ends.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::block::Line;

/// Devices that documents name, and what they name as the serial number of each.
const DEVICES: [(&str, &str); 4] =
    [("/dev/sdb", "WD-1"), ("/dev/sdc", "WD-2"), ("/dev/sdd", "WD-3"), ("/dev/sde", "WD-4")];

/// Room of a device; only what is written takes some.
const DEVICE_BYTES: u64 = 256 << 20;

/// The directory that commands of documents name.
const MOUNT: &str = "/mnt";

/// A loop device; it goes when it is closed.
#[derive(Debug)]
struct Device {
    stands_for: (&'static str, &'static str),
    path: String,
    /// The file behind it, whose path is its name to raidlab.
    image: PathBuf,
    _open: File,
}

/// A scratch directory.
#[derive(Debug)]
pub(super) struct Place {
    directory: PathBuf,
    devices: Vec<Device>,
}

impl Place {
    /// Makes the scratch directory for a block below the target directory of the tree.
    pub(super) fn make(
        root: &Path,
        raidlab: &Path,
        files: &[(String, String)],
        lines: &[Line],
    ) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let all = below(root);
        fs::create_dir_all(&all)?;
        let directory = all.canonicalize()?.join(format!("{}-{number}", std::process::id()));
        fs::create_dir(&directory)?;
        let mut place = Self { directory, devices: Vec::new() };
        for name in ["bin", "home", "mnt/scratch", "tmp", "devices"] {
            fs::create_dir_all(place.directory.join(name))?;
        }
        symlink(raidlab, place.directory.join("bin/raidlab"))?;
        for name in ["studies", "drives"] {
            copy(&root.join(name), &place.work().join(name))?;
        }
        for (name, text) in files {
            fs::write(place.work().join(name), text)?;
        }
        for stands_for in DEVICES {
            if lines.iter().any(|line| line.command.contains(stands_for.0)) {
                let device = place.device(stands_for)?;
                place.devices.push(device);
            }
        }
        Ok(place)
    }

    /// Where everything of it is.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where commands are run.
    fn work(&self) -> PathBuf {
        self.directory.join("work")
    }

    fn device(&self, stands_for: (&'static str, &'static str)) -> io::Result<Device> {
        let image = self.directory.join("devices").join(stands_for.1);
        File::create(&image)?.set_len(DEVICE_BYTES)?;
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&image).output()?;
        if !made.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&made.stderr).into_owned()));
        }
        let path = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        let open = File::open(&path);
        // While it is open, it is detached only when nobody has it open any more.
        let detached = Command::new("losetup").args(["--detach", &path]).status()?;
        if !detached.success() {
            return Err(io::Error::other(format!("{path} cannot be detached")));
        }
        Ok(Device { stands_for, path, image, _open: open? })
    }

    /// A command with what stands in for the places that it names.
    ///
    /// # Errors
    /// When it names a place for which nothing stands in.
    pub(super) fn stand_in(&self, command: &str) -> Result<String, String> {
        let mount = self.directory.join("mnt");
        let mut command = replaced(command, MOUNT, &mount.to_string_lossy());
        for device in &self.devices {
            command = replaced(&command, device.stands_for.0, &device.path);
            command = replaced(&command, device.stands_for.1, &device.image.to_string_lossy());
        }
        let own = |word: &str| {
            let in_place = Path::new(word).starts_with(&self.directory);
            in_place || word == "/dev/null" || self.devices.iter().any(|own| own.path == word)
        };
        let ends = |c: char| c.is_whitespace() || "\"'=,:;<>()|&`$".contains(c);
        for word in command.split(ends) {
            let outside = word.starts_with(['/', '~']) && !own(word);
            if outside || word.split('/').any(|part| part == "..") {
                return Err(format!("not run: nothing stands in for `{word}`"));
            }
        }
        Ok(command)
    }

    /// The process of a command, on a terminal if that has a width.
    pub(super) fn command(&self, text: &str, columns: Option<u32>) -> Command {
        let mut command = match columns {
            None => Command::new("bash"),
            Some(_) => Command::new("script"),
        };
        match columns {
            None => command.args(["-c", text]),
            Some(columns) => {
                // Only standard output is the terminal.
                let errors = self.directory.join("errors");
                let text =
                    format!("stty rows 50 cols {columns}; {{ {text}\n}} 2>>'{}'", errors.display());
                command.args(["--quiet", "--return", "--command", &text, "/dev/null"])
            }
        };
        let own = self.directory.join("bin");
        let path = std::env::var("PATH").unwrap_or_default();
        command.env_clear().current_dir(self.work());
        command.env("PATH", format!("{}:{path}", own.display())).env("SHELL", "bash");
        command.env("HOME", self.directory.join("home")).env("TMPDIR", self.directory.join("tmp"));
        command.env("NO_COLOR", "1").env("LANG", "C.UTF-8").env("TERM", "xterm");
        command
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.devices.clear();
        remove(&self.directory);
    }
}

/// The scratch directories of all blocks.
fn below(root: &Path) -> PathBuf {
    root.join("target/docs")
}

/// Removes what runs left that were killed.
pub(super) fn remove_left(root: &Path) {
    let Ok(entries) = fs::read_dir(below(root)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let Some((process, _)) = name.split_once('-') else { continue };
        if !Path::new("/proc").join(process).exists() {
            remove(&entry.path());
        }
    }
}

/// Removes a scratch directory and what is mounted in it; says so if it cannot.
fn remove(directory: &Path) {
    let Ok(directory) = directory.canonicalize() else { return };
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for mounted in mounts.lines().rev().filter_map(|line| line.split(' ').nth(1)) {
        if Path::new(mounted).starts_with(&directory)
            && !Command::new("umount").arg(mounted).status().is_ok_and(|status| status.success())
        {
            println!("docs: {mounted} stays: it cannot be unmounted");
            return;
        }
    }
    if let Err(error) = fs::remove_dir_all(&directory) {
        println!("docs: {} stays: {error}", directory.display());
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// A text with `name` replaced where it is a name of its own or the beginning of a path.
fn replaced(text: &str, name: &str, by: &str) -> String {
    let of_name = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let end = at + name.len();
        let before = replaced.chars().chain(rest[..at].chars()).next_back();
        let after = rest[end..].chars().next();
        let whole = !before.is_some_and(of_name)
            && !after.is_some_and(|c| of_name(c) && (c != '/' || !name.starts_with('/')));
        replaced.push_str(&rest[..at]);
        replaced.push_str(if whole { by } else { name });
        rest = &rest[end..];
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let files = [("a.txt".to_owned(), "a\n".to_owned())];
        Place::make(&root, Path::new("/bin/true"), &files, &[]).expect("can be made")
    }

    #[test]
    fn names_are_replaced_as_a_whole() {
        assert_eq!(replaced("raw:/mnt,/mnt/a 'x=/mnt'", "/mnt", "/s"), "raw:/s,/s/a 'x=/s'");
        assert_eq!(replaced("a/mnt /mnt2 /mnt-x", "/mnt", "/s"), "a/mnt /mnt2 /mnt-x");
        assert_eq!(replaced("/dev/sdb1 /dev/sdb", "/dev/sdb", "/l"), "/dev/sdb1 /l");
    }

    #[test]
    fn places_outside_are_not_named() {
        let place = place();
        let mount = place.directory().join("mnt/scratch");
        let mount = mount.to_string_lossy();
        assert_eq!(
            place.stand_in("a --on /mnt/scratch >/dev/null"),
            Ok(format!("a --on {mount} >/dev/null"))
        );
        for bad in
            ["a /dev/sdb", "a --on=/var", "a >/etc/x", "a ../b", "a b/../../c", "a ~/b", "raw:/srv"]
        {
            assert!(place.stand_in(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_place_goes_with_all_that_is_in_it() {
        let place = place();
        let directory = place.directory().to_owned();
        for there in ["bin/raidlab", "mnt/scratch", "work/a.txt", "work/studies/default.toml"] {
            assert!(directory.join(there).exists(), "{there}");
        }
        drop(place);
        assert!(!directory.exists());
    }

    #[test]
    fn a_device_stands_in_and_goes_with_the_place() {
        if !crate::suite::is_root() || !Path::new("/dev/loop-control").exists() {
            println!(
                "skipped: a_device_stands_in_and_goes_with_the_place: needs root, loop devices"
            );
            return;
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let line = Line { line: 1, command: "a /dev/sdc --id WD-2".to_owned() };
        let place = Place::make(&root, Path::new("/bin/true"), &[], &[line]).expect("can be made");
        let image = place.directory().join("devices/WD-2");
        let over = || {
            let loops = Command::new("losetup").arg("--associated").arg(&image).output();
            String::from_utf8_lossy(&loops.expect("losetup is there").stdout).into_owned()
        };
        let [device] = &place.devices[..] else { panic!("one device is named") };
        assert!(over().starts_with(&device.path), "{}", over());
        let expected = format!("a {} --id {}", device.path, image.display());
        assert_eq!(place.stand_in("a /dev/sdc --id WD-2"), Ok(expected));
        assert!(place.stand_in("a /dev/sdb").is_err());
        drop(place);
        assert_eq!(over(), "");
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_nothing_else() {
        let own = place();
        let all = own.directory().parent().expect("is below one").to_owned();
        // No process has such a number.
        let left = all.join("4999999-0");
        fs::create_dir_all(left.join("work")).expect("can be made");
        remove_left(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        assert!(!left.exists() && own.directory().exists());
    }
}
