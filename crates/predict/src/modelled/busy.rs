//! How busy what may hold a modelled array back was: its members, the links of its paths, the cores of its host.

use raidlab_core::{Array, Consistency, MemberIndex, Nanos};
use raidlab_sim::World;

/// What a world has that may hold it back, each with how long it has worked: members, the log device, then links of
/// its paths. In one order for as long as a world lives.
pub(super) fn resources(world: &World) -> Vec<(String, Nanos)> {
    let members = (0..world.array().layout().drives()).map(MemberIndex);
    let members = members.map(|member| (format!("member {member}"), world.drive_busy(member)));
    let has_log = |array: &&Array| matches!(array.consistency(), Consistency::Journal { .. });
    let log = world.array().flat().filter(has_log);
    let log = log.map(|array| ("log device".to_owned(), world.drive_busy(array.journal())));
    members.chain(log).chain(world.path_busy()).collect()
}

/// The share of `elapsed` that each resource was busy, 0 to 1.
pub(super) fn shares(
    elapsed: Nanos,
    resources: impl Iterator<Item = (String, Nanos)>,
) -> Vec<(String, f64)> {
    let elapsed = elapsed.as_secs().max(1e-9);
    resources.map(|(name, busy)| (name, (busy.as_secs() / elapsed).min(1.0))).collect()
}

/// The busiest of resources; of equals the first. Which core it is says nothing.
pub(super) fn busiest(shares: &[(String, f64)]) -> (String, f64) {
    let none = (CPU.to_string(), 0.0);
    let most = shares.iter().fold(&none, |most, one| if one.1 > most.1 { one } else { most });
    let name = if most.0.starts_with(CPU_NUMBER) { CPU } else { &most.0 };
    (name.to_string(), most.1)
}

/// What a host's only core is called.
const CPU: &str = "cpu";
/// How the names of several cores begin.
const CPU_NUMBER: &str = "cpu ";

/// The cores with their names.
pub(super) fn named_cores(cores: impl ExactSizeIterator<Item = Nanos>) -> Vec<(String, Nanos)> {
    let several = cores.len() > 1;
    let name = |at| if several { format!("{CPU_NUMBER}{at}") } else { CPU.to_string() };
    cores.enumerate().map(|(at, busy)| (name(at), busy)).collect()
}

/// How busy everything in a world was that has done nothing else.
pub(super) fn busy_of(world: &World, elapsed: Nanos) -> Vec<(String, f64)> {
    let cores: Vec<Nanos> = world.cores_busy().collect();
    shares(elapsed, named_cores(cores.into_iter()).into_iter().chain(resources(world)))
}
