//! Parameters: single numbers of a drive, path, controller or the host that a study knows better than
//! the files and presets it names, and which of them may be fitted to published cells.
//!
//! A parameter belongs to a thing, never to a cell. Those of paths, controllers and the host are
//! in the [`Study`] once it is parsed; those of drives are put in when the drives are loaded.

use raidlab_core::{Nanos, SECTOR_BYTES, Sectors};
use raidlab_models::host::Processor;
use raidlab_models::{
    BadFigure, ControllerSpec, DriveSpec, LinkSpec, PathSpec, Quantity, WritePolicy, adjustable,
};

use crate::error::{StudyError, StudyErrorKind};
use crate::study::{Host, NamedLayout, Study};

/// What a parameter is a property of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The drives of a group: its position in the study.
    Drive(usize),
    /// Paths, which are alike in this: their positions in the study.
    Paths(Vec<usize>),
    /// The modelled host, also where a layout has it with another system.
    Host,
    /// Every controller of this kind.
    Controller(String),
}

impl Owner {
    /// Whether a thing belongs to both.
    pub(crate) fn shares(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Paths(one), Self::Paths(two)) => one.iter().any(|path| two.contains(path)),
            _ => self == other,
        }
    }
}

/// A number of a drive, path, controller or the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// What it is a property of.
    pub owner: Owner,
    /// The same as the file says it, such as `drive disk1`.
    pub of: String,
    /// Which property, such as `media_rate`.
    pub property: &'static str,
    /// The value, in `unit`.
    pub value: f64,
    /// The unit as the file names it, such as `mb_per_s`.
    pub unit: &'static str,
    /// What one of `unit` is in the base unit: bytes, nanoseconds, bytes per second, 1.
    pub scale: f64,
    /// Where the value comes from.
    pub source: String,
    /// Whether it may be fitted to given cells.
    pub free: bool,
    /// The least and the most it may be, in `unit`; there is one where it is free.
    pub range: Option<[f64; 2]>,
}

impl Parameter {
    /// What it is called: owner and property.
    pub fn title(&self) -> String {
        format!("{} {}", self.of, self.property)
    }

    /// Value and unit, such as `47.1 mb_per_s`.
    pub fn shown(&self) -> String {
        format!("{} {}", self.value, self.unit)
    }
}

/// How many parameters may be free where so many given cells are there to be fitted: half as many, one
/// at least, and none without a cell.
pub const fn most_free(cells: usize) -> usize {
    match cells {
        0 => 0,
        1..=3 => 1,
        more => more / 2,
    }
}

impl Study {
    /// The parameters that may be fitted to given cells, in the order of the file.
    pub fn free_parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.free)
    }

    /// A loaded drive of a group with the parameters that the study has for it.
    ///
    /// # Errors
    /// When a parameter does not fit the drive; with file, line and key.
    pub fn drive_with_parameters(
        &self,
        group: usize,
        drive: DriveSpec,
    ) -> Result<DriveSpec, StudyError> {
        let own = self.parameters.iter().enumerate();
        let own: Vec<(usize, &Parameter)> =
            own.filter(|(_, parameter)| parameter.owner == Owner::Drive(group)).collect();
        if own.is_empty() {
            return Ok(drive);
        }
        let with = |changed: Option<(usize, f64)>| {
            let changes: Vec<(&str, u64, &str)> = own
                .iter()
                .map(|(index, parameter)| {
                    let value = changed.filter(|(of, _)| of == index).map(|(_, value)| value);
                    let value = value.unwrap_or(parameter.value);
                    (parameter.property, drive_amount(parameter, value), &*parameter.source)
                })
                .collect();
            drive.with_amounts(&changes)
        };
        let wrong = |key: &str, bad: BadFigure, index: usize| {
            // The figure that the model names may follow from another one: say so.
            let reason = if bad.key == "figure" || self.parameters[index].property == bad.key {
                bad.reason.clone()
            } else {
                bad.to_string()
            };
            let kind = StudyErrorKind::WrongValue;
            self.origin.error(kind, ("parameters", index, key), reason).with_source(bad)
        };
        let blamed = |bad: &BadFigure| {
            let same = own.iter().find(|(_, one)| one.property == bad.key);
            let named = |one: &&(usize, &Parameter)| bad.reason.ends_with(&quoted(one.1.property));
            same.or_else(|| own.iter().find(named)).map_or(own[0].0, |(index, _)| *index)
        };
        for (index, parameter) in &own {
            if drive.amount(parameter.property).is_none() {
                let reason = format!("{} has no `{}`", drive.name, parameter.property);
                let kind = StudyErrorKind::UnknownName;
                return Err(self.origin.error(kind, ("parameters", *index, "property"), reason));
            }
        }
        let changed = with(None).map_err(|bad| {
            let index = blamed(&bad);
            wrong("value", bad, index)
        })?;
        for (index, parameter) in &own {
            for end in parameter.range.into_iter().flatten() {
                with(Some((*index, end))).map_err(|bad| wrong("range", bad, *index))?;
            }
        }
        Ok(changed)
    }
}

fn quoted(name: &str) -> String {
    format!("`{name}`")
}

/// A value as drives count it, of which sizes are sectors.
fn drive_amount(parameter: &Parameter, value: f64) -> u64 {
    let is_size = Quantity::Size.units().iter().any(|(unit, _)| *unit == parameter.unit);
    let base = value * parameter.scale;
    whole(if is_size { base / SECTOR_BYTES as f64 } else { base })
}

/// The nearest whole number.
fn whole(value: f64) -> u64 {
    // The conversion takes what is too large to the largest there is, which every check refuses.
    value.round() as u64
}

/// What a unit is called, and what one of it is in the base unit.
type Units = &'static [(&'static str, f64)];

/// A plain factor.
const FACTOR: Units = &[("factor", 1.0)];

/// A property of something other than a drive: its name, its units, and how it is set to a number in
/// the base unit.
struct Property<T: 'static>(&'static str, Units, Set<T>);

/// Sets a property; the error says why the thing has none.
type Set<T> = fn(&mut T, f64) -> Result<(), String>;

const TIME: Units = Quantity::Time.units();
const RATE: Units = Quantity::Rate.units();
const SIZE: Units = Quantity::Size.units();
const COUNT: Units = Quantity::Count.units();

macro_rules! set {
    ($thing:ident, $value:ident, $place:expr, $made:expr) => {
        |$thing, $value| {
            $place = $made;
            Ok(())
        }
    };
}

fn time(value: f64) -> Nanos {
    Nanos(whole(value))
}

const PATH: &[Property<LinkSpec>] = &[
    Property("rate", RATE, set!(path, value, path.rate, whole(value))),
    Property("switch", TIME, set!(path, value, path.switch, time(value))),
    Property("overhead", TIME, set!(path, value, path.overhead, time(value))),
    Property("turn", TIME, set!(path, value, path.turn, time(value))),
];

/// The first scales all the others, so that it is applied before them.
const HOST: &[Property<Host>] = &[
    Property(CPU_FACTOR, FACTOR, scale_cpu),
    Property("copy_rate", RATE, set!(host, value, host.spec.costs.copy_rate, whole(value))),
    Property("call_cost", TIME, set!(host, value, host.spec.costs.call, time(value))),
    Property("name_cost", TIME, set!(host, value, host.spec.costs.name, time(value))),
    Property("entry_cost", TIME, set!(host, value, host.spec.costs.entry, time(value))),
    Property("character_cost", TIME, |host, value| {
        host.spec.costs.character = whole(value * 1_000.0);
        Ok(())
    }),
    Property("request_cost", TIME, |host, value| {
        processor(host)?.request = time(value);
        Ok(())
    }),
    Property("parity_rate", RATE, |host, value| {
        processor(host)?.parity_rate = whole(value);
        Ok(())
    }),
    Property("memory", SIZE, set!(host, value, host.spec.memory, whole(value))),
    Property("cache", SIZE, set!(host, value, host.spec.cache, Some(whole(value)))),
];

const CONTROLLER: &[Property<ControllerSpec>] = &[
    Property("request", TIME, set!(one, value, one.request, time(value))),
    Property("outstanding", COUNT, set!(one, value, one.outstanding, small(value))),
    Property("longest_request", SIZE, set!(one, value, one.longest, sectors(value))),
    Property("parity_rate", RATE, |one, value| match &mut one.parity_rate {
        Some(rate) => {
            *rate = whole(value);
            Ok(())
        }
        None => Err("computes no parity: the host does, see its `parity_rate`".into()),
    }),
    Property("switch", TIME, |one, value| {
        one.switch = Some(time(value));
        Ok(())
    }),
    Property("write_buffer", SIZE, |one, value| {
        one.write_buffer = Some(sectors(value));
        Ok(())
    }),
    Property("destage", SIZE, set!(one, value, one.destage, sectors(value))),
    Property("destages", COUNT, set!(one, value, one.destages, small(value))),
    Property("cache", SIZE, |one, value| match &mut one.writes {
        WritePolicy::Posted { capacity, .. } => {
            *capacity = sectors(value);
            Ok(())
        }
        _ => Err("posts no writes, so it has no cache for them".into()),
    }),
];

const CPU_FACTOR: &str = "cpu_factor";

fn sectors(value: f64) -> Sectors {
    Sectors(whole(value / SECTOR_BYTES as f64))
}

fn small(value: f64) -> u32 {
    u32::try_from(whole(value)).unwrap_or(u32::MAX)
}

fn processor(host: &mut Host) -> Result<&mut Processor, String> {
    let missing = "needs a processor: name one in `host`, such as processor = \"xeon-2330-quad\"";
    host.processor.as_mut().ok_or_else(|| missing.into())
}

/// Everything that the processor does takes so many times as long.
fn scale_cpu(host: &mut Host, factor: f64) -> Result<(), String> {
    let longer = |cost: &mut Nanos| *cost = time(cost.0 as f64 * factor);
    let slower = |rate: &mut u64| *rate = whole(*rate as f64 / factor.max(1e-9));
    let costs = &mut host.spec.costs;
    [&mut costs.call, &mut costs.name, &mut costs.entry].into_iter().for_each(longer);
    costs.character = whole(costs.character as f64 * factor);
    slower(&mut costs.copy_rate);
    if let Some(processor) = &mut host.processor {
        longer(&mut processor.request);
        slower(&mut processor.parity_rate);
    }
    Ok(())
}

/// The properties of an owner, with their units.
pub(crate) fn properties(owner: &Owner) -> Vec<(&'static str, Units)> {
    fn of<T>(all: &[Property<T>]) -> Vec<(&'static str, Units)> {
        all.iter().map(|Property(name, units, _)| (*name, *units)).collect()
    }
    match owner {
        Owner::Drive(_) => {
            adjustable().into_iter().map(|(name, quantity)| (name, quantity.units())).collect()
        }
        Owner::Paths(_) => of(PATH),
        Owner::Host => of(HOST),
        Owner::Controller(_) => of(CONTROLLER),
    }
}

/// The parts of a study that parameters are put into while it is parsed.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) host: Option<Host>,
    pub(crate) paths: Vec<LinkSpec>,
    pub(crate) layouts: Vec<NamedLayout>,
}

impl Parts {
    /// The host, also as single layouts run on it with another system.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.host.iter().chain(self.layouts.iter().filter_map(|one| one.host.as_ref()))
    }

    /// Puts in all parameters but those of drives.
    ///
    /// # Errors
    /// The position of the parameter that cannot be, and why.
    pub(crate) fn apply(&mut self, parameters: &[Parameter]) -> Result<(), (usize, String)> {
        let mut order: Vec<usize> = (0..parameters.len()).collect();
        order.sort_by_key(|index| parameters[*index].property != CPU_FACTOR);
        for index in order {
            let parameter = &parameters[index];
            self.set(parameter).map_err(|reason| (index, reason))?;
        }
        // Judged together, since some only go together.
        for (index, parameter) in parameters.iter().enumerate() {
            self.check(&parameter.owner).map_err(|reason| (index, reason))?;
        }
        Ok(())
    }

    fn set(&mut self, parameter: &Parameter) -> Result<(), String> {
        let (name, value) = (parameter.property, parameter.value * parameter.scale);
        match &parameter.owner {
            Owner::Drive(_) => Ok(()),
            Owner::Paths(all) => {
                all.iter().try_for_each(|index| put(PATH, &mut self.paths[*index], name, value))
            }
            Owner::Host => {
                let of_layouts = self.layouts.iter_mut().filter_map(|one| one.host.as_mut());
                let mut hosts = self.host.iter_mut().chain(of_layouts);
                hosts.try_for_each(|host| put(HOST, host, name, value))
            }
            Owner::Controller(kind) => {
                let controllers = self.layouts.iter_mut();
                let controllers = controllers.filter_map(|one| one.hardware.controller.as_mut());
                for controller in controllers.filter(|one| one.name == *kind) {
                    put(CONTROLLER, controller, name, value)?;
                }
                Ok(())
            }
        }
    }

    fn check(&self, owner: &Owner) -> Result<(), String> {
        let bad = |error: BadFigure| error.to_string();
        match owner {
            Owner::Drive(_) => Ok(()),
            Owner::Paths(all) => {
                let links = all.iter().map(|index| self.paths[*index].clone()).collect();
                PathSpec { links, ..PathSpec::default() }.check(0).map_err(bad)
            }
            Owner::Host => self.hosts().try_for_each(|host| {
                check_processor(host)?;
                host.spec.check()
            }),
            Owner::Controller(_) => {
                let mut controllers =
                    self.layouts.iter().filter_map(|one| one.hardware.controller.as_ref());
                controllers.try_for_each(ControllerSpec::check).map_err(bad)
            }
        }
    }
}

/// Rates are from 1 MB/s to 1 TB/s, and no call takes a second.
fn check_processor(host: &Host) -> Result<(), String> {
    let costs = &host.spec.costs;
    let mut rates = vec![("copy_rate", costs.copy_rate)];
    let mut times = vec![
        ("call_cost", costs.call),
        ("name_cost", costs.name),
        ("entry_cost", costs.entry),
        ("character_cost", costs.characters(1)),
    ];
    if let Some(processor) = &host.processor {
        rates.push(("parity_rate", processor.parity_rate));
        times.push(("request_cost", processor.request));
    }
    let rate = rates.iter().find(|(_, rate)| !(1_000_000..=1_000_000_000_000).contains(rate));
    if let Some((name, rate)) = rate {
        return Err(format!("{name}: {rate} bytes/s; must be 1 MB/s to 1 TB/s"));
    }
    match times.iter().find(|(_, time)| time.0 > 1_000_000_000) {
        Some((name, time)) => {
            Err(format!("{name}: {} ms; must be at most 1,000 ms", time.0 / 1_000_000))
        }
        None => Ok(()),
    }
}

fn put<T>(all: &[Property<T>], thing: &mut T, name: &str, value: f64) -> Result<(), String> {
    let property = all.iter().find(|one| one.0 == name);
    property.map_or(Ok(()), |Property(.., set)| set(thing, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_as_many_as_cells_may_be_free() {
        let most: Vec<usize> = (0..=9).map(most_free).collect();
        assert_eq!(most, [0, 1, 1, 1, 2, 2, 3, 3, 4, 4]);
    }

    /// Each property sets something, and no two the same.
    #[test]
    fn every_property_of_a_host_path_and_controller_changes_it() {
        let link = LinkSpec::pata_udma100("ide");
        for property in PATH {
            let mut changed = link.clone();
            (property.2)(&mut changed, 123_456_789.0).expect("has it");
            assert_ne!(changed, link, "{}", property.0);
        }
        let controller = ControllerSpec::smart_array_e200i("e200i", true);
        let values = [77_000_000.0, 3.0, 65_536.0];
        for property in CONTROLLER {
            let changes = values.iter().filter(|value| {
                let mut changed = controller.clone();
                (property.2)(&mut changed, **value).expect("has it");
                changed != controller
            });
            assert!(changes.count() > 0, "{}", property.0);
        }
        let processor = Processor::named("pentium3-860");
        let host = Host { processor, ..Host::new(raidlab_models::HostSpec::default()) };
        let mut seen = Vec::new();
        for property in HOST {
            let mut changed = host.clone();
            (property.2)(&mut changed, 3.0).expect("has it");
            assert!(changed != host && !seen.contains(&changed), "{}", property.0);
            seen.push(changed);
        }
    }

    #[test]
    fn a_slower_processor_is_slower_in_everything() {
        let processor = Processor::named("pentium3-860").expect("known");
        let spec = raidlab_models::HostSpec::default().with_processor(&processor);
        let mut host = Host { processor: Some(processor), ..Host::new(spec) };
        scale_cpu(&mut host, 2.0).expect("can be");
        let (before, after) = (processor.costs, host.spec.costs);
        assert_eq!(after.copy_rate, before.copy_rate / 2);
        let times = |costs: raidlab_models::host::CallCosts| [costs.call, costs.name, costs.entry];
        let doubled = times(before).map(|time| Nanos(2 * time.0));
        assert_eq!(times(after), doubled);
        assert_eq!(after.character, 2 * before.character);
        let after = host.processor.expect("one");
        assert_eq!(after.request.0, 2 * processor.request.0);
        assert_eq!(after.parity_rate, processor.parity_rate / 2);
    }
}
