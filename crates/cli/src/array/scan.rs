//! Lines for mdadm.conf, as `mdadm --examine --scan` prints them. Names come from whoever wrote the disk: none of them
//! adds a word to its line.

use std::path::Path;

use raidlab_metadata::md::{Inspected, Role, Superblock, level_name};
use raidlab_metadata::printable;

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
            let path = |path: &&Path| printable(path.as_os_str().as_encoded_bytes());
            let paths: Vec<_> = paths.iter().map(path).collect();
            text.push_str(&format!("   devices={}", quoted(&paths.join(","))));
        }
        if *spares > 0 || verbose {
            text.push('\n');
        }
    }
    text
}

/// Behind this mdadm 4.2 takes a parenthesis for a blank, in quotes too: some kernels wrote so in /proc/mdstat.
const TORN: &str = "active(";

/// A name as that of a device, which is one word and no path. A quote in it would open a part that goes on to the next
/// quote of the line, as in what mdadm prints.
fn node_name(name: &str) -> String {
    let letter = |letter| match letter {
        '/' => '-',
        ' ' | '\t' | '\'' | '"' => '_',
        other => other,
    };
    let node: String = name.chars().map(letter).collect();
    node.replace(TORN, "active_")
}

/// A name as one word of mdadm.conf, which knows quotes but no escapes: a quote of the kind that is open ends the
/// quoted part, and the other kind begins the next one.
fn quoted(name: &str) -> String {
    let is_quote = |letter: &char| matches!(letter, '\'' | '"');
    let parts = |letter: char| is_quote(&letter) || matches!(letter, ' ' | '\t');
    if !name.contains(parts) && !name.contains(TORN) {
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

    /// What mdadm 4.2 prints of superblocks with these names, but for quotes in the names of devices.
    #[test]
    fn names_are_quoted_as_by_mdadm() {
        for (name, node, word) in [
            ("h:plain", "plain", "h:plain"),
            ("h:a b", "a_b", "\"h:a b\""),
            ("x y:a", "a", "\"x y:a\""),
            ("h:a/b", "a-b", "h:a/b"),
            ("h:../../x", "..-..-x", "h:../../x"),
            ("h:it's", "it_s", "\"h:it's\""),
            ("h:\"", "_", "'h:\"'"),
            ("h:x y\" devices=/dev/sda", "x_y__devices=-dev-sda", "'h:x y\" devices=/dev/sda'"),
            ("h:it's \"both", "it_s__both", "\"h:it's \"'\"both'"),
            ("h:\"'x", "__x", "'h:\"'\"'x\""),
            ("h:a'b\"c'd", "a_b_c_d", "\"h:a'b\"'\"c'\"'d\""),
            ("h:a\"b c'd e\"f", "a_b_c_d_e_f", "'h:a\"b c'\"'d e\"'\"f'"),
            ("h:a#b;c$d\\e", "a#b;c$d\\e", "h:a#b;c$d\\e"),
        ] {
            let short = name.split_once(':').unwrap().1;
            assert_eq!((node_name(short).as_str(), quoted(name).as_str()), (node, word), "{name}");
        }
    }

    /// The words of a line as mdadm 4.2 reads them (`conf_word` in its `config.c`).
    fn words(line: &str) -> Vec<String> {
        let mut letters = line.chars().peekable();
        let mut words = Vec::new();
        while letters.next_if(|letter| matches!(letter, ' ' | '\t')).is_some()
            || letters.peek().is_some()
        {
            let (mut word, mut open) = (String::new(), None);
            let mut next = letters.next_if(|letter| !matches!(letter, ' ' | '\t'));
            if next.is_none() {
                continue;
            }
            while let Some(letter) = next.filter(|one| open.is_some() || !matches!(one, ' ' | '\t'))
            {
                match letter {
                    _ if open == Some(letter) => open = None,
                    '\'' | '"' if open.is_none() => open = Some(letter),
                    other => word.push(other),
                }
                next = letters.next();
                if next == Some('(') && word.ends_with("active") {
                    next = Some(' ');
                }
            }
            words.push(word);
        }
        words
    }

    #[test]
    fn whatever_a_name_is_its_line_has_the_same_words() {
        assert_eq!(
            words("a  b='c \"d'e \"active(f\" active(g"),
            ["a", "b=c \"de", "active f", "active", "g"]
        );
        const PARTS: [&str; 8] = ["", "'", "\"", " ", "\t", "devices=/dev/sda", "active", "("];
        for number in 0..PARTS.len().pow(5) {
            let part = |place| PARTS[number / PARTS.len().pow(place) % PARTS.len()];
            let name: String = (0..5).map(part).collect();
            let line =
                format!("ARRAY /dev/md/n{} UUID=u name=h:{}", node_name(&name), quoted(&name));
            let line = format!("{line} devices={}", quoted(&name));
            // What mdadm reads in the parenthesis' place nobody can help.
            let read = name.replace(TORN, "active ");
            let expected = [format!("name=h:{read}"), format!("devices={read}")];
            let words = words(&line);
            assert_eq!(words.len(), 5, "{line}");
            assert_eq!((&words[0][..], &words[2][..]), ("ARRAY", "UUID=u"), "{line}");
            assert_eq!(words[3..], expected, "{line}");
        }
    }
}
