//! What lies between kernel and drives, by lines of text: `kind=pata-udma100,drives=vda+vdb` is one link.

use std::fmt;

use raidlab_models::{BadFigure, LinkKind, LinkSpec, PathSpec};

use crate::guest::drive_name;
use crate::units::{nanos, pairs, rate};

/// The keys of a link, for help.
pub const KEYS: &str = "\
kind=NAME           pata-udma100, sata-150, sata-300, sas-300, pci-32-33, or bus with a rate of its own
drives=vda+vdb      whose commands and data pass it; all drives, if not said
name=NAME           what it is called in results; `path 0` and so on, if not said
rate=85MB/s overhead=10us switch=1ms turn=1us
                    in place of what a link of this kind has: net rate, time for each command, for another device
                    of a PATA channel, for another direction of a bus";

/// Paths that cannot be.
#[derive(Debug, PartialEq, Eq)]
pub struct PathError(String);

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path: {}", self.0)
    }
}

impl std::error::Error for PathError {}

impl From<String> for PathError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<BadFigure> for PathError {
    fn from(error: BadFigure) -> Self {
        Self(error.reason)
    }
}

/// Reads links, from the kernel to the drives, for so many drives. No lines are no paths.
///
/// # Errors
/// On keys, values, kinds and drives that are not known, and on paths that cannot be.
pub fn parse<'a>(
    lines: impl IntoIterator<Item = &'a str>,
    drives: usize,
) -> Result<PathSpec, PathError> {
    let mut spec = PathSpec::default();
    for (number, line) in lines.into_iter().enumerate() {
        spec.routes.resize(drives, Vec::new());
        let (link, of) = link(line, &format!("path {number}"), drives)?;
        spec.links.push(link);
        of.into_iter().for_each(|drive| spec.routes[drive].push(number));
    }
    check(&spec, drives)?;
    Ok(spec)
}

/// Reads one link, and which drives are behind it.
fn link(line: &str, name: &str, drives: usize) -> Result<(LinkSpec, Vec<usize>), PathError> {
    let pairs = pairs(line)?;
    let find = |key| pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
    let kind = find("kind").ok_or_else(|| format!("{line}: no kind"))?;
    let name = find("name").unwrap_or(name);
    let preset = LinkSpec::PRESETS.into_iter().find(|(one, _)| *one == kind);
    let mut link = match (preset, find("rate")) {
        (Some((_, preset)), _) => preset(name),
        (None, Some(own)) if kind == "bus" => LinkSpec::bus(name, rate(own)?),
        (None, None) if kind == "bus" => Err(format!("{line}: a bus needs a rate"))?,
        (None, _) => {
            let mut known = LinkSpec::PRESETS.map(|(one, _)| one).to_vec();
            known.push("bus");
            Err(format!("kind={kind}: not one of {}", known.join(", ")))?
        }
    };
    let mut of: Vec<usize> = (0..drives).collect();
    for (key, value) in pairs {
        match key {
            "kind" | "name" => {}
            "rate" => link.rate = rate(value)?,
            "overhead" => link.overhead = nanos(value)?,
            "switch" => link.switch = nanos(value)?,
            "turn" => link.turn = nanos(value)?,
            "drives" => {
                let named = |one: &str| (0..drives).find(|drive| drive_name(*drive) == one);
                let named = |one| named(one).ok_or_else(|| format!("drives={value}: no {one}"));
                of = value.split('+').map(named).collect::<Result<_, _>>()?;
            }
            _ => return Err(format!("{key}={value}: no such key").into()),
        }
    }
    Ok((link, of))
}

/// Checks that the paths can be, for so many drives, and that a kernel can be behind them. None at all can.
///
/// # Errors
/// Names the first link or route that cannot be.
pub fn check(spec: &PathSpec, drives: usize) -> Result<(), PathError> {
    if *spec == PathSpec::default() {
        return Ok(());
    }
    spec.check(drives)?;
    if !spec.host.is_empty() {
        let text =
            "a controller that shows its array as one disk: the array would not be the kernel's";
        return Err(PathError(text.to_owned()));
    }
    if let Some(memory) = spec.links.iter().find(|link| link.kind == LinkKind::Memory) {
        let name = &memory.name;
        let text = format!(
            "{name}: a memory path is passed by the processor's copies too, which take no time here; a bus of its \
             rate is passed by transfers alone"
        );
        return Err(PathError(text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> String {
        parse([line], 3).expect_err("is wrong").to_string()
    }

    #[test]
    fn links_are_passed_in_their_order_by_the_drives_they_name() {
        let lines = [
            "kind=pci-32-33,name=pci",
            "kind=pata-udma100,drives=vda+vdc,switch=2ms",
            "kind=bus,rate=3GB/s,drives=vdb,overhead=1us",
        ];
        let spec = parse(lines, 3).expect("is right");
        assert_eq!(spec.routes, [vec![0, 1], vec![0, 2], vec![0, 1]]);
        let names: Vec<&str> = spec.links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names, ["pci", "path 1", "path 2"]);
        assert_eq!(spec.links[1].switch.0, 2_000_000);
        assert_eq!((spec.links[2].rate, spec.links[2].overhead.0), (3_000_000_000, 1_000));
        assert_eq!(parse([], 3), Ok(PathSpec::default()));
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(error("kind=scsi").contains("not one of pata-udma100"));
        assert!(error("drives=vda").contains("no kind"));
        assert!(error("kind=bus").contains("needs a rate"));
        assert!(error("kind=bus,rate=3GiB/s").contains("one of kB/s MB/s GB/s"));
        assert!(error("kind=sata-300,drives=vda+vdd").contains("no vdd"));
        assert!(error("kind=sata-300,speed=3").contains("no such key"));
        assert!(error("kind=sata-300,drives=vda+vda").contains("twice"));
        assert!(error("kind=pata-udma100").contains("takes 2"));
        assert!(error("kind=sata-150,kind=sata-300").contains("kind=sata-150 was said before"));
    }

    #[test]
    fn what_no_kernel_would_see_is_refused_by_name() {
        let bus = |name| LinkSpec::bus(name, 100_000_000);
        let controller = PathSpec::each_its_own(1, |_| bus("a")).behind_host(bus("slot"));
        let text = check(&controller, 1).expect_err("is refused").to_string();
        assert!(text.contains("a controller that shows its array as one disk"), "{text}");
        let memory = PathSpec::each_its_own(1, |_| bus("a"));
        let memory = memory.behind(LinkSpec::memory("chipset", 400_000_000));
        let text = check(&memory, 1).expect_err("is refused").to_string();
        assert!(text.contains("chipset: a memory path"), "{text}");
        assert!(check(&PathSpec::each_its_own(2, |_| bus("a")), 2).is_err(), "of one name");
        assert!(check(&PathSpec::each_its_own(1, |_| bus("a")), 2).is_err(), "too few");
    }
}
