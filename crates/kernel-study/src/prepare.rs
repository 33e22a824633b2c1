//! Fits studies to what guests can be.

use raidlab_core::contract::PacingRule;
use raidlab_core::policy::ReadPolicy;
use raidlab_models::HostSpec;
use raidlab_models::host::Kernel;
use raidlab_study::{Host, NamedLayout, Study};

use crate::array;
use crate::error::KernelError;

/// Ticks a second of User Mode Linux (`arch/um/Kconfig`), unless a kernel is built with others.
const GUESTS_HZ: u32 = 100;
/// Memory of a guest in bytes where the study names none.
pub const MEMORY: u64 = 1 << 30;
/// The least and the most memory of a guest in bytes.
const LEAST: u64 = 128 << 20;
const MOST: u64 = 4 << 30;

/// Gives a study the host that guests are where it names none, and refuses what they cannot be or cannot judge. A
/// modelled host beside the kernel is then like its guest.
///
/// # Errors
/// [`KernelError::Input`], with the key and what would be right.
pub fn prepare(study: &mut Study) -> Result<(), KernelError> {
    if study.filesystem.as_deref() == Some("ffs") {
        return Err(refused("filesystem", "ffs is FreeBSD's; name one of Linux"));
    }
    let plain = HostSpec { memory: MEMORY, ..HostSpec::default() };
    let mut guest = Host::new(plain);
    // Guests make the filesystem that the study names.
    if let Some(name) = &study.filesystem {
        guest.set_filesystem(name).map_err(|reason| refused("filesystem", reason))?;
    }
    let host = study.host.get_or_insert(guest);
    // What is compared with guests ticks as they do, and has as many cores.
    let as_guests = |host: &mut Host| (host.spec.hz, host.spec.cores) = (GUESTS_HZ, 1);
    as_guests(host);
    study.layouts.iter_mut().filter_map(|layout| layout.host.as_mut()).for_each(as_guests);
    for at in 0..study.layouts.len() {
        let host = study.host_of(at).map_or(plain, |host| host.spec);
        check_host(&host)?;
        check_layout(&study.layouts[at])?;
        let first = study.host_of(0).map_or(plain.kernel, |host| host.spec.kernel);
        if host.kernel != first {
            let reason = format!(
                "{first} and {}: all guests have the same; run one after the other",
                host.kernel
            );
            return Err(refused("layouts.host.kernel", reason));
        }
    }
    if let Some(spec) = study.workloads.iter().find(|spec| spec.recipe.is_none()) {
        let what = format!("{}: cannot be handed to a guest; not supported", spec.name);
        return Err(KernelError::Input(what));
    }
    Ok(())
}

/// Ticks a second of a kernel of this name or path, as `cargo xtask kernel --hz` names it.
pub fn ticks_of(kernel: &str) -> u32 {
    let ticks =
        kernel_name(kernel).split('-').find_map(|part| part.strip_prefix("hz")?.parse().ok());
    ticks.unwrap_or(GUESTS_HZ)
}

/// Of a path the last part: what directories are called says nothing.
fn kernel_name(kernel: &str) -> &str {
    kernel.rsplit('/').next().unwrap_or(kernel)
}

/// Makes a study's modelled hosts of today, which are compared with a kernel of this version, name or path, of that
/// version, with its ticks.
pub fn as_kernel(study: &mut Study, kernel: &str) {
    let is_new = kernel_name(kernel).contains("6.12");
    let version = if is_new { Kernel::Linux6_12 } else { Kernel::Linux6_1 };
    let own = study.layouts.iter_mut().filter_map(|layout| layout.host.as_mut());
    for host in study.host.iter_mut().chain(own) {
        if host.spec.kernel.is_of_today() {
            host.spec.kernel = version;
            host.spec.hz = ticks_of(kernel);
        }
    }
}

fn refused(key: &str, reason: impl std::fmt::Display) -> KernelError {
    KernelError::Input(format!("{key}: {reason}"))
}

fn check_host(host: &HostSpec) -> Result<(), KernelError> {
    if !host.kernel.is_of_today() {
        let reason = format!(
            "guests do not have {}; leave it out, or write linux-6.1 or linux-6.12",
            host.kernel
        );
        return Err(refused("host.kernel", reason));
    }
    if host.lone_reader_waits {
        return Err(refused("host.lone_reader_waits", "is for modelled hosts; leave it out"));
    }
    if host.cache.is_some() {
        let reason = "the page cache of a guest is what its memory leaves; write `memory` instead";
        return Err(refused("host.cache", reason));
    }
    if !(LEAST..=MOST).contains(&host.memory) || !host.memory.is_multiple_of(1 << 20) {
        let reason = format!(
            "guests have whole MiB from {} MiB to {} MiB, not {} bytes",
            LEAST >> 20,
            MOST >> 20,
            host.memory
        );
        return Err(refused("host.memory", reason));
    }
    Ok(())
}

fn check_layout(layout: &NamedLayout) -> Result<(), KernelError> {
    let name = format!("layout {}", layout.name);
    array::check(layout).map_err(|reason| refused(&name, reason))?;
    if layout.hardware.controller.is_some() {
        return Err(refused(
            &name,
            "behind a controller that shows one disk the array is not md's",
        ));
    }
    if !matches!(layout.read_policy, ReadPolicy::LeastBusy | ReadPolicy::Md) {
        let reason = "md reads copies as it sees fit; leave `policy` out, or write md";
        return Err(refused(&name, reason));
    }
    match layout.settings.pacing.rule {
        PacingRule::Activity => Ok(()),
        PacingRule::Share(_) | PacingRule::Single(_) | PacingRule::Ranges { .. } => {
            Err(refused(&name, "md paces by rates; write `least` and `most`"))
        }
        PacingRule::Depth(_) => {
            Err(refused(&name, "`sync_io_depth` is of md since 6.16; guests run 6.1 and 6.12"))
        }
    }
}

#[cfg(test)]
mod tests {
    use raidlab_models::host::FilesystemKind;

    use super::*;

    fn prepared(text: &str) -> Result<Study, String> {
        let mut study = raidlab_study::parse(text, "test").map_err(|error| error.to_string())?;
        prepare(&mut study).map_err(|error| error.to_string())?;
        Ok(study)
    }

    const DRIVES: &str = "[[drives]]\nname = \"nas\"\nmodel = \"nas-8tb-7200\"\ncount = 9\n";
    const WORK: &str = "[[workloads]]\nkind = \"dd-read\"\nsize = \"64MiB\"\n";

    /// A modelled host beside the kernel has the filesystem that its guests make.
    #[test]
    fn a_guest_has_the_filesystem_that_the_study_names() {
        let on = |head: &str| {
            let layout = "[[layouts]]\nlevel = \"single\"\n";
            let text = format!("title = \"test\"\n{head}\n{DRIVES}\n{layout}{WORK}");
            prepared(&text).map(|study| study.host.expect("a host"))
        };
        for (name, kind) in [
            ("ext2", FilesystemKind::Ext2),
            ("ext3", FilesystemKind::Ext3),
            ("ext4", FilesystemKind::Ext4),
            ("native", FilesystemKind::Ext4),
            // Not modelled: a guest makes it, and predictions refuse it.
            ("xfs", FilesystemKind::Ext4),
        ] {
            let filesystem = format!("filesystem = \"{name}\"");
            let without = on(&filesystem).expect(name);
            assert_eq!((without.filesystem, without.spec.memory), (kind, MEMORY), "{name}");
            assert_eq!(without.spec.filesystem, Kernel::Linux6_1.mounted(kind), "{name}");
            let with = on(&format!("{filesystem}\nhost = {{ memory = \"1GiB\" }}"));
            assert_eq!(with.expect(name), without, "{name}: as with a host that is named");
        }
        let why = on("filesystem = \"ffs\"").expect_err("of FreeBSD");
        assert!(why.contains("filesystem: ffs is FreeBSD's"), "{why}");
    }

    #[test]
    fn a_modelled_host_has_the_cores_and_ticks_of_the_guest_beside_it() {
        let text = format!(
            "title = \"test\"\nhost = {{ cores = 8, hz = 1000, memory = \"1GiB\" }}\n{DRIVES}\n\
             [[layouts]]\nlevel = \"single\"\n\
             [[layouts]]\nname = \"own\"\nlevel = \"single\"\nhost = {{ memory = \"512MiB\" }}\n{WORK}"
        );
        let mut study = prepared(&text).expect("is right");
        let of = |study: &Study| {
            [0, 1].map(|at| {
                let spec = study.host_of(at).expect("a host").spec;
                (spec.kernel, spec.hz, spec.cores)
            })
        };
        assert_eq!(of(&study), [(Kernel::Linux6_1, 100, 1); 2]);
        for (name, kernel, ticks) in [
            ("6.12", Kernel::Linux6_12, 100),
            ("6.12-hz250", Kernel::Linux6_12, 250),
            ("linux-6.12-hz1000-6.12.117-1~deb12u1-472580230a430465", Kernel::Linux6_12, 1_000),
            ("/kernels/6.12/linux-6.1", Kernel::Linux6_1, 100),
        ] {
            as_kernel(&mut study, name);
            assert_eq!(of(&study), [(kernel, ticks, 1); 2], "{name}");
        }
    }

    #[test]
    fn what_guests_cannot_be_is_refused_by_name() {
        let with = |head: &str, layout: &str| {
            prepared(&format!("title = \"test\"\n{head}\n{DRIVES}\n[[layouts]]\n{layout}\n{WORK}"))
        };
        let single = "level = \"single\"";
        assert_eq!(with("", single).expect("is right").host.expect("a host").spec.memory, MEMORY);
        let refusals = [
            ("host = { memory = \"8GiB\" }", single, "host.memory: guests have"),
            (
                "host = { cache = \"64MiB\", memory = \"1GiB\" }",
                single,
                "host.cache: the page cache",
            ),
            (
                "host = { kernel = \"linux-6.1\", memory = \"1GiB\" }",
                "level = \"single\"\n[[layouts]]\nname = \"new\"\nlevel = \"single\"\n\
                 host = { kernel = \"linux-6.12\", memory = \"1GiB\" }",
                "layouts.host.kernel: linux-6.1 and linux-6.12",
            ),
            ("host = { kernel = \"linux-2.6.20\" }", single, "host.kernel: guests do not have"),
            ("", "level = \"raid3\"\nmembers = 3", "mdadm cannot make raid3"),
            ("", "level = \"raid5+3\"\narrays = 3\nmembers = 9", "mdadm cannot make raid3"),
            ("", "level = \"raid1+0\"\narrays = 2\nmembers = 4\nspares = 1", "mdadm --monitor"),
            ("", "level = \"raid1\"\nmembers = 2\npolicy = \"gmirror-load\"", "`policy`"),
            ("", "level = \"raid1\"\nmembers = 2\npacing = { share = \"30%\" }", "`least`"),
            ("", "level = \"raid1\"\nmembers = 2\npacing = { sync_io_depth = 32 }", "6.16"),
        ];
        for (head, layout, expected) in refusals {
            let error = with(head, layout).expect_err(layout);
            assert!(error.contains(expected), "{layout}: {error}");
        }
    }
}
