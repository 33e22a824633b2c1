//! The drives of an existing machine, by what `lsblk` and `/proc/mdstat` print.

use serde_json::Value;

/// A drive that could be a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundDrive {
    /// Its name, such as `sda`.
    pub name: String,
    /// What it holds, in bytes.
    pub bytes: u64,
    /// Turns.
    pub rotates: bool,
    /// What its maker calls it; empty where nothing says.
    pub model: String,
    /// What it is used for now; `None` for nothing that lsblk shows.
    pub used: Option<String>,
}

/// Drives of a machine, and its arrays as mdstat names them: `md0 raid5 sda sdb sdc`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Whole drives.
    pub drives: Vec<FoundDrive>,
    /// Arrays of md.
    pub arrays: Vec<String>,
}

/// Names of shingled drives that were sold without saying so, or whose sheets say it.
const SHINGLED: [&str; 8] = [
    "WD20EFAX",
    "WD30EFAX",
    "WD40EFAX",
    "WD60EFAX",
    "ST8000DM004",
    "ST4000DM004",
    "ST2000DM008",
    "ST6000DM003",
];

/// Smaller ones are sticks and cards.
const SMALLEST: u64 = 32_000_000_000;

impl Machine {
    /// By the text of `lsblk -bJ -o NAME,TYPE,SIZE,ROTA,MODEL,MOUNTPOINT` and of `/proc/mdstat`.
    ///
    /// # Errors
    /// In words, when the first is no such document.
    pub fn read(lsblk: &str, mdstat: &str) -> Result<Self, String> {
        let document: Value = serde_json::from_str(lsblk)
            .map_err(|error| format!("this is no JSON of lsblk -bJ: {error}"))?;
        let devices = document["blockdevices"].as_array();
        let devices = devices.ok_or(
            "there is no list `blockdevices`: write lsblk -bJ \
             -o NAME,TYPE,SIZE,ROTA,MODEL,MOUNTPOINT",
        )?;
        let drives = devices.iter().filter(|one| one["type"] == "disk").filter_map(drive);
        let drives = drives.filter(|one| one.bytes >= SMALLEST).collect();
        Ok(Self { drives, arrays: arrays(mdstat) })
    }

    /// Drives that nothing mounted lies on, of the kind there are most of.
    pub fn usable(&self) -> Vec<&FoundDrive> {
        let free: Vec<&FoundDrive> =
            self.drives.iter().filter(|one| one.used.as_deref().is_none_or(is_array)).collect();
        let turning = free.iter().filter(|one| one.rotates).count();
        let rotates = turning * 2 >= free.len();
        free.into_iter().filter(|one| one.rotates == rotates).collect()
    }

    /// Drives that are shingled by their model.
    pub fn shingled(&self) -> Vec<&FoundDrive> {
        let is = |one: &&FoundDrive| SHINGLED.iter().any(|model| one.model.contains(model));
        self.drives.iter().filter(is).collect()
    }
}

fn is_array(used: &str) -> bool {
    used.starts_with("raid") || used.starts_with("linear")
}

fn drive(device: &Value) -> Option<FoundDrive> {
    let text = |key: &str| device[key].as_str().unwrap_or_default().trim().to_owned();
    // Older ones print numbers and truths as texts.
    let bytes = device["size"].as_u64().or_else(|| device["size"].as_str()?.parse().ok())?;
    let rotates = device["rota"].as_bool().unwrap_or(device["rota"] == "1");
    Some(FoundDrive {
        name: text("name"),
        bytes,
        rotates,
        model: text("model"),
        used: used(device),
    })
}

/// A mount point on a device or anything upon it, or that it is a member.
fn used(device: &Value) -> Option<String> {
    if let Some(point) = device["mountpoint"].as_str() {
        return Some(point.to_owned());
    }
    let below = device["children"].as_array()?;
    let mut found: Option<String> = None;
    for child in below {
        let kind = child["type"].as_str().unwrap_or_default();
        let of = if is_array(kind) { Some(kind.to_owned()) } else { used(child) };
        // A mount point weighs more than an array.
        if of.as_deref().is_some_and(|of| !is_array(of)) || found.is_none() {
            found = of.or(found);
        }
    }
    found
}

/// Lines such as `md0 : active raid5 sdc[2] sdb[1] sda[0]`.
fn arrays(mdstat: &str) -> Vec<String> {
    let line = |line: &str| {
        let (name, rest) = line.split_once(" : ")?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let level = words.iter().find(|word| word.starts_with("raid") || **word == "linear")?;
        let members = words.iter().filter_map(|word| word.split_once('[')).map(|(name, _)| name);
        let mut members: Vec<&str> = members.collect();
        members.sort_unstable();
        Some(format!("{} {level} {}", name.trim(), members.join(" ")))
    };
    mdstat.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LSBLK: &str = r#"{ "blockdevices": [
        {"name":"sda","type":"disk","size":4000787030016,"rota":true,"model":"WDC WD40EFAX-68J","mountpoint":null,
         "children":[{"name":"md0","type":"raid5","size":1,"rota":true,"model":null,"mountpoint":"/srv"}]},
        {"name":"sdb","type":"disk","size":"4000787030016","rota":"1","model":"ST4000VN008 ","mountpoint":null},
        {"name":"nvme0n1","type":"disk","size":512110190592,"rota":false,"model":"SSD","mountpoint":null,
         "children":[{"name":"nvme0n1p1","type":"part","size":1,"rota":false,"model":null,"mountpoint":"/"}]},
        {"name":"sr0","type":"rom","size":1073741312,"rota":true,"model":"DVD","mountpoint":null}]}"#;
    const MDSTAT: &str = "Personalities : [raid6] [raid5]\nmd0 : active raid5 sdc[2] sda[0] sdb[1]\n      7813772288 \
                          blocks super 1.2 level 5\nunused devices: <none>\n";

    #[test]
    fn a_machine_is_its_drives_and_arrays() {
        let machine = Machine::read(LSBLK, MDSTAT).expect("both are right");
        let names: Vec<&str> = machine.drives.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["sda", "sdb", "nvme0n1"]);
        assert_eq!(machine.arrays, ["md0 raid5 sda sdb sdc"]);
        let usable: Vec<&str> = machine.usable().iter().map(|one| one.name.as_str()).collect();
        assert_eq!(usable, ["sda", "sdb"], "not the one that the system is on");
        assert_eq!(machine.shingled()[0].name, "sda");
        assert_eq!(machine.drives[1].bytes, 4_000_787_030_016);
        assert!(Machine::read("no", "").is_err() && Machine::read("{}", "").is_err());
    }

    /// Sticks are no members; of two kinds of drives the one there is more of; what is mounted stays what it is, and
    /// what an array lies on may be taken, unless something else of it is mounted.
    #[test]
    fn drives_that_could_be_members() {
        let disk = |name: &str, bytes: u64, rotates: bool, children: &str| {
            format!(
                "{{\"name\":\"{name}\",\"type\":\"disk\",\"size\":{bytes},\"rota\":{rotates},\"model\":null,\
                 \"mountpoint\":null,\"children\":[{children}]}}"
            )
        };
        let part = |kind: &str, point: &str| {
            format!("{{\"name\":\"x\",\"type\":\"{kind}\",\"mountpoint\":{point}}}")
        };
        let usable = |disks: &[String]| -> Vec<String> {
            let text = format!("{{\"blockdevices\":[{}]}}", disks.join(","));
            let machine = Machine::read(&text, "").expect("JSON");
            machine.usable().iter().map(|one| one.name.clone()).collect()
        };
        let tb = 1_000_000_000_000;
        let stick = disk("stick", 31_999_999_999, true, "");
        assert_eq!(usable(&[stick, disk("card", 32_000_000_000, true, "")]), ["card"]);
        let (turns, flash) = (disk("a", tb, true, ""), disk("b", tb, false, ""));
        assert_eq!(usable(&[turns.clone(), flash.clone()]), ["a"], "as many of both");
        assert_eq!(usable(&[turns.clone(), flash, disk("c", tb, false, "")]), ["b", "c"]);
        let mounted = part("part", "\"/home\"");
        let both = [part("raid5", "null"), mounted.clone()].join(",");
        let reversed = [mounted.clone(), part("raid5", "null")].join(",");
        let kinds = [
            part("raid1", "\"/srv\""),
            part("linear", "null"),
            part("part", "null"),
            mounted,
            both,
            reversed,
        ];
        let disks: Vec<String> = kinds
            .iter()
            .zip(["r", "l", "p", "m", "rm", "mr"])
            .map(|(kind, name)| disk(name, tb, true, kind))
            .collect();
        assert_eq!(usable(&disks), ["r", "l", "p"]);
        let stat = "md127 : inactive sdb[0](S)\nmd1 : active (auto-read-only) raid1 sdd1[1](F) sdc1[0]\n\
                    md2 : active linear sdx[0]\n";
        assert_eq!(arrays(stat), ["md1 raid1 sdc1 sdd1", "md2 linear sdx"]);
    }
}
