//! `[host]`, `[[paths]]` and what layouts say of them: the modelled machine around the drives.

use raidlab_core::{Nanos, SECTOR_BYTES, Sectors};
use raidlab_models::host::{FilesystemKind, FilesystemSpec, Kernel, Processor};
use raidlab_models::{ControllerSpec, ServerSpec};
use raidlab_workload::{Parameters, WorkloadError};

use super::table::{Table, check_unique};
use crate::error::{StudyError, StudyErrorKind as Kind};
use crate::study::Host;
use crate::suggest::did_you_mean;

const HOST_KEYS: [&str; 8] = [
    "kernel",
    "processor",
    "memory",
    "cores",
    "read_ahead",
    "copy_rate",
    "read_max",
    "lone_reader_waits",
];
const PATH_KEYS: [&str; 5] = ["name", "kind", "rate", "switch", "overhead"];

/// `host = { kernel = "linux-2.6.12", processor = "pentium3-860", memory = "756MiB" }`.
pub(super) fn host(root: &Table<'_>, filesystem: Option<&str>) -> Result<Option<Host>, StudyError> {
    let example = "host = { kernel = \"linux-6.1\", memory = \"8GiB\" }";
    let Some(table) = root.table("host", example)? else { return Ok(None) };
    table.check_keys(&HOST_KEYS)?;
    let kernel = named(&table, "kernel", &Kernel::ALL.map(Kernel::name))?
        .map_or(Kernel::Linux6_1, |at| Kernel::ALL[at]);
    let mut spec = kernel.spec();
    let mut processor = None;
    let known = Processor::ALL.map(|one| one.name);
    if let Some(at) = named(&table, "processor", &known)? {
        spec = spec.with_processor(&Processor::ALL[at]);
        processor = Some(Processor::ALL[at]);
    }
    // A kernel's own filesystem has the figures of its time.
    if let Some(kind) = filesystem.and_then(|name| name.parse::<FilesystemKind>().ok())
        && kind != kernel.filesystem()
    {
        spec.filesystem = FilesystemSpec::of(kind);
    }
    if let Some(size) = table.size("memory")? {
        spec.memory = size.0;
    }
    if let Some(cores) = table.integer("cores", 1..=4096)? {
        spec.cores = cores as u32;
    }
    if let Some(size) = table.size("read_ahead")? {
        spec.read_ahead = Some(size.0);
    }
    if let Some(blocks) = table.integer("read_max", 1..=65_536)? {
        spec = spec.with_read_max(blocks);
    }
    if let Some(waits) = table.flag("lone_reader_waits")? {
        spec.lone_reader_waits = waits;
    }
    if let Some(rate) = rate(&table, "copy_rate")? {
        spec.costs.copy_rate = rate;
    }
    spec.check().map_err(|reason| table.error(Kind::WrongValue, "memory", reason))?;
    Ok(Some(Host { spec, processor }))
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

type Preset = fn(&str) -> ServerSpec;

const PRESETS: [(&str, Preset); 5] = [
    ("pata-udma100", ServerSpec::pata_udma100),
    ("sata-150", ServerSpec::sata_150),
    ("sata-300", ServerSpec::sata_300),
    ("sas-300", ServerSpec::sas_300),
    ("pci-32-33", ServerSpec::pci_32_33),
];

/// `[[paths]]`: what lies between the host and its drives.
pub(super) fn paths(tables: &[Table<'_>]) -> Result<Vec<ServerSpec>, StudyError> {
    let mut servers: Vec<ServerSpec> = Vec::new();
    for table in tables {
        let server = path(table)?;
        check_unique(table, &server.name, servers.iter().map(|one| one.name.as_str()))?;
        servers.push(server);
    }
    Ok(servers)
}

fn path(table: &Table<'_>) -> Result<ServerSpec, StudyError> {
    table.check_keys(&PATH_KEYS)?;
    let name = table.required_text("name", "name = \"channel 0\"")?;
    table.required_text("kind", "kind = \"pata-udma100\"")?;
    let mut known: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
    known.push("memory");
    let rate = rate(table, "rate")?;
    let at = named(table, "kind", &known)?.unwrap_or_default();
    let mut server = match (PRESETS.get(at), rate) {
        (Some((_, preset)), None) => preset(name),
        (Some((_, preset)), Some(rate)) => preset(name).with_rate(rate),
        (None, Some(rate)) => ServerSpec::memory(name, rate),
        (None, None) => return Err(table.missing("rate", "rate = \"400MB/s\"")),
    };
    if let Some(switch) = time(table, "switch")? {
        server = server.with_switch(switch);
    }
    if let Some(overhead) = time(table, "overhead")? {
        server = server.with_overhead(overhead);
    }
    Ok(server)
}

/// `route = ["pci", "channel 0 | channel 1"]`: from the host to the drives; where members differ, one
/// alternative for each, in turn. Positions in the paths, for each member.
pub(super) fn routes(
    table: &Table<'_>,
    servers: &[ServerSpec],
    members: u16,
) -> Result<Vec<Vec<usize>>, StudyError> {
    let example = "route = [\"pci\", \"channel 0 | channel 1\"]";
    let Some(steps) = table.texts("route", example)? else { return Ok(Vec::new()) };
    let known: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
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
