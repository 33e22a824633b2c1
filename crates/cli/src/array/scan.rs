//! Lines for mdadm.conf, as `mdadm --examine --scan` prints them. Names come from whoever wrote the disk: none of them
//! adds a word to its line.

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
            format!("/dev/md/{} ", node_name(short))
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
            text.push_str(&format!(" name={}", quoted(&name)));
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

/// A name as that of a device, which is one word and no path.
fn node_name(name: &str) -> String {
    let letter = |letter| match letter {
        '/' => '-',
        ' ' | '\t' => '_',
        other => other,
    };
    name.chars().map(letter).collect()
}

/// A name as one word of mdadm.conf, which knows quotes but no escapes: a quote of the kind that is open ends the
/// quoted part, and the other kind begins the next one.
fn quoted(name: &str) -> String {
    let is_quote = |letter: &char| matches!(letter, '\'' | '"');
    if !name.chars().any(|letter| is_quote(&letter) || matches!(letter, ' ' | '\t')) {
        return name.to_owned();
    }
    let mut open = if name.chars().find(is_quote) == Some('"') { '\'' } else { '"' };
    let mut text = String::from(open);
    for letter in name.chars() {
        if letter == open {
            text.push(open);
            open = if open == '"' { '\'' } else { '"' };
            text.push(open);
        }
        text.push(letter);
    }
    text.push(open);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What mdadm 4.2 prints of superblocks with these names.
    #[test]
    fn names_are_quoted_as_by_mdadm() {
        for (name, node, word) in [
            ("h:plain", "plain", "h:plain"),
            ("h:a b", "a_b", "\"h:a b\""),
            ("x y:a", "a", "\"x y:a\""),
            ("h:a/b", "a-b", "h:a/b"),
            ("h:../../x", "..-..-x", "h:../../x"),
            ("h:it's", "it's", "\"h:it's\""),
            ("h:\"", "\"", "'h:\"'"),
            ("h:x y\" devices=/dev/sda", "x_y\"_devices=-dev-sda", "'h:x y\" devices=/dev/sda'"),
            ("h:it's \"both", "it's_\"both", "\"h:it's \"'\"both'"),
            ("h:\"'x", "\"'x", "'h:\"'\"'x\""),
            ("h:a'b\"c'd", "a'b\"c'd", "\"h:a'b\"'\"c'\"'d\""),
            ("h:a\"b c'd e\"f", "a\"b_c'd_e\"f", "'h:a\"b c'\"'d e\"'\"f'"),
            ("h:a#b;c$d\\e", "a#b;c$d\\e", "h:a#b;c$d\\e"),
        ] {
            let short = name.split_once(':').unwrap().1;
            assert_eq!((node_name(short).as_str(), quoted(name).as_str()), (node, word), "{name}");
        }
    }
}
