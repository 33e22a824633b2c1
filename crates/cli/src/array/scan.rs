//! Lines for mdadm.conf, as `mdadm --examine --scan` prints them.

use std::path::Path;

use raidlab_metadata::md::{Inspected, Role, Superblock, level_name};

use super::examine::{shown, uuid};

/// A line for each array, the one found last first, as mdadm has them.
pub(super) fn lines(found: &[(&Path, Inspected)], verbose: bool) -> String {
    let mut arrays: Vec<(&str, &Superblock, Vec<&Path>, u32)> = Vec::new();
    for (path, one) in found {
        let Some(seen) = shown(one) else { continue };
        let superblock = &seen.superblock;
        let known = arrays.iter_mut().find(|(_, known, ..)| known.array == superblock.array);
        let is_spare = u32::from(!matches!(superblock.role(), Role::Member(_)));
        match known {
            Some((_, newest, paths, spares)) => {
                if superblock.events > newest.events {
                    *newest = superblock;
                }
                paths.push(path);
                *spares += is_spare;
            }
            None => arrays.push((seen.version.name(), superblock, vec![path], is_spare)),
        }
    }
    let mut text = String::new();
    for (version, one, paths, spares) in arrays.iter().rev() {
        let name = one.name();
        let short = name.split_once(':').map_or(name.as_str(), |(_, name)| name);
        // Version 0.90 has the number of the array's device instead of a name, and is not named.
        let is_old = one.v0.is_some();
        let node = if is_old {
            format!("/dev/{name}")
        } else if name.is_empty() {
            String::new()
        } else {
            format!("/dev/md/{short} ")
        };
        text.push_str(&format!("ARRAY {node} "));
        if verbose {
            text.push_str(&format!("level={} ", level_name(one.level)));
        }
        if !is_old {
            text.push_str(&format!("metadata={version} "));
        }
        if verbose {
            text.push_str(&format!("num-devices={} ", one.members));
        }
        text.push_str(&format!("UUID={}", uuid(&one.array)));
        if !name.is_empty() && !is_old {
            text.push_str(&format!(" name={name}"));
        }
        text.push('\n');
        if *spares > 0 {
            text.push_str(&format!("   spares={spares}"));
        }
        if verbose {
            let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
            text.push_str(&format!("   devices={}", paths.join(",")));
        }
        if *spares > 0 || verbose {
            text.push('\n');
        }
    }
    text
}
