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

#[cfg(test)]
mod tests {
    use super::*;

    fn named(all: &[(&str, f64)]) -> Vec<(String, f64)> {
        all.iter().map(|(name, share)| ((*name).to_string(), *share)).collect()
    }

    /// A share is a part of the time, and what was begun before its end and ends behind it is no more than all of it.
    #[test]
    fn nothing_is_busy_for_longer_than_there_is_time() {
        let of = |busy: &[u64]| {
            let cores = named_cores(busy.iter().map(|busy| Nanos(*busy)));
            shares(Nanos(1_000), cores.into_iter())
        };
        assert_eq!(
            of(&[250, 1_000, 1_500]),
            named(&[("cpu 0", 0.25), ("cpu 1", 1.0), ("cpu 2", 1.0)])
        );
        assert_eq!(of(&[500]), named(&[("cpu", 0.5)]), "the only core has no number");
        let idle = shares(Nanos::ZERO, named_cores([Nanos::ZERO].into_iter()).into_iter());
        assert_eq!(idle, named(&[("cpu", 0.0)]), "no time at all");
    }

    #[test]
    fn the_bottleneck_is_the_first_of_the_busiest_and_no_numbered_core() {
        let of = |all: &[(&str, f64)]| busiest(&named(all));
        let is = |name: &str, share| (name.to_string(), share);
        assert_eq!(of(&[("cpu", 0.2), ("member 0", 0.4), ("member 1", 0.3)]), is("member 0", 0.4));
        assert_eq!(of(&[("cpu", 0.2), ("member 0", 0.4), ("pci", 0.9)]), is("pci", 0.9));
        assert_eq!(of(&[("member 0", 0.5), ("member 1", 0.5)]), is("member 0", 0.5));
        assert_eq!(of(&[("cpu 0", 0.1), ("cpu 1", 0.8), ("member 0", 0.7)]), is("cpu", 0.8));
        assert_eq!(of(&[]), is("cpu", 0.0));
    }
}
