//! `[host]`, `[[paths]]` and what layouts say of them: the modelled machine around the drives.

use raidlab_core::suggest::did_you_mean;
use raidlab_core::{Nanos, SECTOR_BYTES, Sectors};
use raidlab_models::host::{Kernel, Processor};
use raidlab_models::{ControllerSpec, LinkSpec};
use raidlab_workload::{Parameters, WorkloadError};

use super::table::{StudyTable, Table, check_unique};
use crate::error::{StudyError, StudyErrorKind as Kind};
use crate::study::Host;

const HOST_KEYS: [&str; 10] = [
    "kernel",
    "processor",
    "memory",
    "cache",
    "cores",
    "hz",
    "read_ahead",
    "copy_rate",
    "read_max",
    "lone_reader_waits",
];
const HOST: &str = "host = { kernel = \"linux-6.1\", memory = \"8GiB\" }";
const PATH_KEYS: [&str; 5] = ["name", "kind", "rate", "switch", "overhead"];

/// The table of a host: its own keys, and those of the study's host that it does not say itself.
struct HostTable<'a> {
    own: Table<'a>,
    study: Option<Table<'a>>,
}

impl<'a> HostTable<'a> {
    /// The table that says a key; the own one when none does.
    fn saying(&self, key: &str) -> &Table<'a> {
        let of_study = self.study.as_ref().filter(|study| !self.own.has(key) && study.has(key));
        of_study.unwrap_or(&self.own)
    }

    fn kernel(&self) -> Result<Kernel, StudyError> {
        let named = named(self.saying("kernel"), "kernel", &Kernel::ALL.map(Kernel::name))?;
        Ok(named.map_or(Kernel::Linux6_1, |at| Kernel::ALL[at]))
    }
}

/// The filesystem that a table names, and the table.
pub(super) type FilesystemOf<'t, 'a> = Option<(&'t Table<'a>, &'t str)>;

/// `host = { kernel = "linux-2.6.12", processor = "pentium3-860", memory = "756MiB" }`.
pub(super) fn host(
    root: &Table<'_>,
    filesystem: FilesystemOf<'_, '_>,
) -> Result<Option<Host>, StudyError> {
    let Some(own) = root.table("host", HOST)? else { return Ok(None) };
    read_host(&HostTable { own, study: None }, filesystem).map(Some)
}

/// The same for a layout: what it does not say is as for the study. How far is read ahead is a matter of
/// the kernel, so that a layout with another kernel does not take that over.
pub(super) fn layout_host(
    table: &Table<'_>,
    root: &Table<'_>,
    filesystem: FilesystemOf<'_, '_>,
) -> Result<Option<Host>, StudyError> {
    let own = table.table("host", HOST)?;
    let study = root.table("host", HOST)?;
    match (own, study) {
        (Some(own), study) => read_host(&HostTable { own, study }, filesystem).map(Some),
        // A filesystem of its own on the study's host.
        (None, Some(study)) if table.has("filesystem") => {
            read_host(&HostTable { own: study, study: None }, filesystem).map(Some)
        }
        _ => Ok(None),
    }
}

fn read_host(table: &HostTable<'_>, filesystem: FilesystemOf<'_, '_>) -> Result<Host, StudyError> {
    table.own.check_keys(&HOST_KEYS)?;
    let kernel = table.kernel()?;
    let mut host = Host::new(kernel.spec());
    let known = Processor::ALL.map(|one| one.name);
    if let Some(at) = named(table.saying("processor"), "processor", &known)? {
        host.spec = host.spec.with_processor(&Processor::ALL[at]);
        host.processor = Some(Processor::ALL[at]);
    }
    if let Some((table, name)) = filesystem {
        host.set_filesystem(name)
            .map_err(|reason| table.error(Kind::WrongValue, "filesystem", reason))?;
    }
    let spec = &mut host.spec;
    if let Some(size) = table.saying("memory").size("memory")? {
        spec.memory = size.0;
    }
    if let Some(size) = table.saying("cache").size("cache")? {
        spec.cache = Some(size.0);
    }
    if let Some(hz) = table.saying("hz").integer("hz", 24..=1_000)? {
        spec.hz = hz as u32;
    }
    if let Some(cores) = table.saying("cores").integer("cores", 1..=4096)? {
        spec.cores = cores as u32;
    }
    if let Some(waits) = table.saying("lone_reader_waits").flag("lone_reader_waits")? {
        spec.lone_reader_waits = waits;
    }
    if let Some(rate) = rate(table.saying("copy_rate"), "copy_rate")? {
        spec.costs.copy_rate = rate;
    }
    let says_ahead = |table: &Table<'_>| table.has("read_ahead") || table.has("read_max");
    let study = table.study.as_ref().filter(|_| !table.own.has("kernel"));
    let ahead = study.filter(|_| !says_ahead(&table.own)).unwrap_or(&table.own);
    read_ahead(ahead, &mut host)?;
    let check = host.spec.check();
    check.map_err(|reason| {
        let key = if reason.contains("cache:") { "cache" } else { "memory" };
        table.saying(key).error(Kind::WrongValue, key, reason)
    })?;
    Ok(host)
}

/// `read_ahead = "2MiB"`, or `read_max = 128` as FreeBSD counts.
fn read_ahead(table: &Table<'_>, host: &mut Host) -> Result<(), StudyError> {
    if let Some(size) = table.size("read_ahead")? {
        host.spec.read_ahead = Some(size.0);
    }
    let Some(blocks) = table.integer("read_max", 1..=65_536)? else { return Ok(()) };
    let wrong = |reason: &str| Err(table.error(Kind::WrongValue, "read_max", reason));
    if table.has("read_ahead") {
        return wrong("stands beside `read_ahead`, which says the same in bytes; give one");
    }
    if host.spec.kernel != Kernel::FreeBsd6_2 {
        return wrong("is FreeBSD's `vfs.read_max`; with Linux write read_ahead = \"128KiB\"");
    }
    host.spec = host.spec.with_read_max(blocks);
    Ok(())
}

/// The position of a name among those that are known.
fn named(table: &Table<'_>, key: &str, known: &[&str]) -> Result<Option<usize>, StudyError> {
    let Some(name) = table.text(key)? else { return Ok(None) };
    let found = known.iter().position(|one| *one == name);
    found.map(Some).ok_or_else(|| {
        let (hint, known) = (did_you_mean(name, known), known.join(", "));
        let reason = format!("`{name}` is not known{hint}; known: {known}");
        table.error(Kind::UnknownName, key, reason)
    })
}

/// A rate such as `"85MB/s"`, in bytes per second.
fn rate(table: &Table<'_>, key: &str) -> Result<Option<u64>, StudyError> {
    let Some(text) = table.text(key)? else { return Ok(None) };
    let size =
        text.strip_suffix("/s").and_then(|text| text.trim().parse::<raidlab_core::Size>().ok());
    let wrong = || {
        let reason = format!("`{text}` is not a rate; write for example \"85MB/s\"");
        table.error(Kind::WrongUnit, key, reason)
    };
    size.filter(|size| size.0 > 0).map(|size| Some(size.0)).ok_or_else(wrong)
}

/// A time such as `"200us"`.
fn time(table: &Table<'_>, key: &str) -> Result<Option<Nanos>, StudyError> {
    let Some(text) = table.text(key)? else { return Ok(None) };
    let parsed = Parameters::new([(key, text)])
        .and_then(|mut parameters| parameters.duration(key, Nanos::ZERO));
    parsed.map(Some).map_err(|error: WorkloadError| {
        table.error(Kind::WrongUnit, key, error.reason.clone()).with_source(error)
    })
}

/// `[[paths]]`: what lies between the host and its drives.
pub(super) fn paths(tables: &[Table<'_>]) -> Result<Vec<LinkSpec>, StudyError> {
    let mut links: Vec<LinkSpec> = Vec::new();
    for table in tables {
        let link = path(table)?;
        check_unique(table, &link.name, links.iter().map(|one| one.name.as_str()))?;
        links.push(link);
    }
    Ok(links)
}

fn path(table: &Table<'_>) -> Result<LinkSpec, StudyError> {
    table.check_keys(&PATH_KEYS)?;
    let name = table.required_text("name", "name = \"channel 0\"")?;
    table.required_text("kind", "kind = \"pata-udma100\"")?;
    let mut known: Vec<&str> = LinkSpec::PRESETS.iter().map(|(name, _)| *name).collect();
    known.extend(["memory", "bus"]);
    let rate = rate(table, "rate")?;
    let at = named(table, "kind", &known)?.unwrap_or_default();
    let mut link = match (LinkSpec::PRESETS.get(at), rate) {
        (Some((_, preset)), None) => preset(name),
        (Some((_, preset)), Some(rate)) => preset(name).with_rate(rate),
        (None, Some(rate)) if known.get(at) == Some(&"bus") => LinkSpec::bus(name, rate),
        (None, Some(rate)) => LinkSpec::memory(name, rate),
        (None, None) => return Err(table.missing("rate", "rate = \"400MB/s\"")),
    };
    if let Some(switch) = time(table, "switch")? {
        link = link.with_switch(switch);
    }
    if let Some(overhead) = time(table, "overhead")? {
        link = link.with_overhead(overhead);
    }
    Ok(link)
}

/// `route = ["pci", "channel 0 | channel 1"]`: from the host to the drives; where members differ, one
/// alternative for each, in turn. Positions in the paths, for each member.
pub(super) fn routes(
    table: &Table<'_>,
    links: &[LinkSpec],
    members: u16,
) -> Result<Vec<Vec<usize>>, StudyError> {
    let example = "route = [\"pci\", \"channel 0 | channel 1\"]";
    let Some(steps) = table.texts("route", example)? else { return Ok(Vec::new()) };
    let known: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    let mut routes = vec![Vec::new(); usize::from(members)];
    for (step, line) in steps {
        let names: Vec<&str> = step.split('|').map(str::trim).collect();
        for (member, route) in routes.iter_mut().enumerate() {
            let name = names[member % names.len()];
            let position = known.iter().position(|one| *one == name).ok_or_else(|| {
                let (hint, known) = (did_you_mean(name, &known), known.join(", "));
                let reason = format!("`{name}` names no path{hint}; they are: {known}");
                table.error_at(Kind::UnknownName, line, "route", reason)
            })?;
            route.push(position);
        }
    }
    Ok(routes)
}

const CONTROLLERS: [&str; 4] =
    ["ite8212-bios", "bios-mirror", "smart-array-e200i", "smart-array-e200i-battery"];

/// `controller = "ite8212-bios"`: what shows the array to the host as one disk.
pub(super) fn controller(table: &Table<'_>) -> Result<Option<ControllerSpec>, StudyError> {
    let Some(at) = named(table, "controller", &CONTROLLERS)? else { return Ok(None) };
    let name = CONTROLLERS[at];
    let mut spec = match name {
        "ite8212-bios" => ControllerSpec::ite8212_bios(name),
        "bios-mirror" => ControllerSpec::bios_mirror(name),
        _ => ControllerSpec::smart_array_e200i(name, name.ends_with("battery")),
    };
    if let Some(longest) = table.size("longest_request")? {
        spec = spec.with_longest(Sectors(longest.0 / SECTOR_BYTES));
    }
    let wrong = |error: raidlab_models::BadFigure| {
        table.error(Kind::WrongValue, "longest_request", error.reason)
    };
    spec.check().map_err(wrong)?;
    Ok(Some(spec))
}
