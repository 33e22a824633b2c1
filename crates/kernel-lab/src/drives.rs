//! Drives by a line of text: `model=nas-8tb-7200,size=16GiB` or `size=1GiB,positioning=5ms,byte=10ns`.

use std::fmt;

use raidlab_core::units::Nanos;
use raidlab_models::{Drive, load};

use crate::class::{Class, Scheduler};
use crate::service::{ClosedForm, Service};
use crate::units::{bytes, nanos, pairs, picos, switch};

/// The keys of a drive, for help.
pub const KEYS: &str = "\
size=16GiB          its size; needed without a model, and with one what it is cut to
model=NAME          a drive of raidlab, or the path of a drive file; without one a closed form of
positioning=5ms     for a request that does not follow the last
fixed=100us         for each request
byte=10ns           for each byte
rotational=0|1 physical=4KiB optimal=512KiB cache=0|1 fua=0|1 scheduler=NAME throttling=75ms segments=128
                    what the kernel is told, in place of what a drive of this kind has";

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq)]
pub struct SpecError(String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drive: {}", self.0)
    }
}

impl std::error::Error for SpecError {}

impl From<String> for SpecError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Reads a line; from the seed comes what differs between equal drives.
///
/// # Errors
/// On keys and values that are not known, keys that come twice, a model that is not, and no size.
pub fn parse(line: &str, seed: u64) -> Result<(Class, Service), SpecError> {
    let pairs = pairs(line)?;
    let find = |key| pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
    let size = find("size").map(bytes).transpose()?;
    let (mut class, service) = match find("model") {
        Some(name) => modelled(name, size, seed)?,
        None => {
            let size = size.ok_or_else(|| SpecError("no size and no model".to_owned()))?;
            let form = ClosedForm::new(Nanos::ZERO, Nanos::ZERO, 0);
            (Class::plain(size), Service::ClosedForm(form))
        }
    };
    if let Some(name) = find("scheduler") {
        // First of all, as other settings follow from it.
        class = class.with_scheduler(scheduler(name)?);
    }
    let mut service = service;
    for (key, value) in pairs {
        set(&mut class, &mut service, key, value)?;
    }
    if class.bytes == 0 || !class.bytes.is_multiple_of(4096) {
        return Err(SpecError(format!("a size of {} bytes is not whole 4 KiB", class.bytes)));
    }
    let physical = class.physical_block;
    if !physical.is_power_of_two() || physical < 512 {
        return Err(SpecError(format!("physical={physical}: a power of two from 512 on")));
    }
    Ok((class, service))
}

fn modelled(name: &str, size: Option<u64>, seed: u64) -> Result<(Class, Service), SpecError> {
    let spec = load(name).map_err(|error| SpecError(error.to_string()))?;
    let mut class = Class::of(&spec);
    if let Some(size) = size {
        if size > class.bytes {
            let text = format!("size={size}: {name} has {} bytes", class.bytes);
            return Err(SpecError(text));
        }
        class.bytes = size;
    }
    // Whole pages: the kernel would leave the rest out.
    class.bytes -= class.bytes % 4096;
    Ok((class, Service::Modelled(Drive::new(&spec.kind, seed))))
}

fn scheduler(name: &str) -> Result<Scheduler, SpecError> {
    let found = Scheduler::ALL.into_iter().find(|(_, known)| *known == name);
    let known = || Scheduler::ALL.map(|(_, name)| name).join(", ");
    let wrong = || SpecError(format!("scheduler={name}: not one of {}", known()));
    found.map(|(scheduler, _)| scheduler).ok_or_else(wrong)
}

fn set(class: &mut Class, service: &mut Service, key: &str, value: &str) -> Result<(), SpecError> {
    let wrong = |what: &str| SpecError(format!("{key}={value}: {what}"));
    let small = |value: u64| u32::try_from(value).map_err(|_| wrong("too large"));
    match (key, service) {
        ("size" | "model" | "scheduler", _) => {}
        ("rotational", _) => class.rotational = switch(value)?,
        ("cache", _) => class.write_cache = switch(value)?,
        ("fua", _) => class.fua = switch(value)?,
        ("physical", _) => class.physical_block = small(bytes(value)?)?,
        ("optimal", _) => class.optimal_io = small(bytes(value)?)?,
        ("segments", _) => class.segments = value.parse().map_err(|_| wrong("not a number"))?,
        ("throttling", _) => class.throttling_micros = small(picos(value)? / 1_000_000)?,
        ("positioning", Service::ClosedForm(form)) => form.positioning = nanos(value)?,
        ("fixed", Service::ClosedForm(form)) => form.fixed = nanos(value)?,
        ("byte", Service::ClosedForm(form)) => form.byte_picos = picos(value)?,
        ("positioning" | "fixed" | "byte", Service::Modelled(_)) => {
            return Err(wrong("the model says how long that takes"));
        }
        _ => return Err(wrong("no such key")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> String {
        parse(line, 1).err().expect("is wrong").to_string()
    }

    #[test]
    fn a_model_is_cut_and_overridden() {
        let line = "model=nas-8tb-7200,size=16GiB,scheduler=bfq,optimal=512KiB,throttling=0ms";
        let (class, service) = parse(line, 1).expect("is right");
        assert!(matches!(service, Service::Modelled(_)));
        assert_eq!((class.bytes, class.scheduler), (16 << 30, Scheduler::Bfq));
        assert_eq!((class.optimal_io, class.throttling_micros), (512 << 10, 0));
        let throttling = |line| parse(line, 1).expect("is right").0.throttling_micros;
        assert_eq!(throttling("model=ssd-sata-1tb,scheduler=bfq"), 0);
        assert_eq!(throttling("model=nas-8tb-7200,throttling=75ms,scheduler=bfq"), 75_000);
        let (class, _) = parse("model=nas-8tb-7200", 1).expect("is right");
        assert!(class.bytes > 7_990_000_000_000 && class.bytes.is_multiple_of(4096));
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(error("model=nas-8tb").contains("no such drive"));
        assert!(error("positioning=5ms").contains("no size"));
        assert!(error("size=1GB").contains("1GB: a whole number and one of KiB"));
        assert!(error("size=5MiB,speed=3").contains("no such key"));
        assert!(error("model=nas-8tb-7200,byte=10ns").contains("the model says"));
        assert!(error("model=nas-8tb-7200,size=9TiB").contains("has 8"));
        assert!(error("size=1000").contains("4 KiB"));
        assert!(error("size=1GiB,size=2GiB").contains("size=2GiB: size=1GiB was said before"));
        assert!(error("size=1GiB,size").contains("size: no KEY=VALUE"));
        assert!(error("size=1MiB,physical=1000").contains("power of two"));
        assert!(error("size=1MiB,scheduler=cfq").contains("mq-deadline"));
    }
}
