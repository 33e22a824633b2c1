//! Reading a layout from the name it is printed by.

use std::str::FromStr;

use super::{Layout, LayoutError, Level, Rotation, ZoneOrder, chunk_from_size};
use crate::units::Size;

impl FromStr for Layout {
    type Err = LayoutError;

    /// Reads what is printed: `single`, `raid5(4)`, `raid10(4) far2`, `raid6(5) chunk=64K
    /// left-asymmetric`. The layout is checked.
    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        let mut layout = level_and_members(first)?;
        // Behind far copies near ones are one unless they were said, wherever they were.
        let (near, others): (Vec<_>, Vec<_>) = words.partition(|word| word.starts_with("near"));
        for word in others.into_iter().chain(near) {
            layout = with_word(layout, word)?;
        }
        layout.check()?;
        Ok(layout)
    }
}

/// Whether two names of layouts are one, however sizes in them are written: `raid5(4) chunk=64K` is
/// `raid5(4) chunk=64KiB`.
pub fn is_same_name(one: &str, other: &str) -> bool {
    let sized = |word: &str| {
        let (key, size) = word.split_once('=')?;
        Some((key.to_owned(), size.parse::<Size>().ok()?))
    };
    let is_same = |one: &str, other: &str| {
        one == other || sized(one).is_some_and(|sized_one| sized(other) == Some(sized_one))
    };
    let (mut one, mut other) = (one.split_whitespace(), other.split_whitespace());
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if is_same(one, other) => {}
            _ => return false,
        }
    }
}

fn wrong(key: &'static str, reason: String) -> LayoutError {
    LayoutError::new(key, reason)
}

fn level_and_members(word: &str) -> Result<Layout, LayoutError> {
    if word == "single" {
        return Ok(Layout::new(Level::Linear, 1));
    }
    let right = "write a level and its members, such as raid5(4), or single";
    let parts = word.strip_suffix(')').and_then(|rest| rest.split_once('('));
    let (level, members) = parts.ok_or_else(|| wrong("level", format!("`{word}`: {right}")))?;
    let members = members.parse().map_err(|_| wrong("members", format!("`{members}`: {right}")))?;
    Ok(Layout::new(level.parse()?, members))
}

fn with_word(layout: Layout, word: &str) -> Result<Layout, LayoutError> {
    let level = layout.level;
    if let Some(chunk) = word.strip_prefix("chunk=") {
        if matches!(level, Level::Raid1 | Level::Raid3) {
            return Err(wrong("chunk", format!("{level} has no such parameter")));
        }
        let size = chunk.parse::<Size>().map_err(|error| wrong("chunk", error))?;
        return Ok(layout.with_chunk(chunk_from_size(size)?));
    }
    if let Some(rotation) = level.rotations().iter().find(|one| one.to_string() == word) {
        return Ok(layout.with_rotation(*rotation));
    }
    if level == Level::Raid10 {
        let number = |prefix: &str| word.strip_prefix(prefix).and_then(|text| text.parse().ok());
        if let Some(near) = number("near") {
            return Ok(layout.with_near(near));
        }
        for (prefix, offset) in [("far", false), ("offset", true)] {
            if let Some(copies) = number(prefix) {
                return Ok(layout.with_far(copies).with_offset(offset));
            }
        }
        if word == "sets" {
            return Ok(layout.with_far_sets(2));
        }
    }
    if level == Level::Raid0 && word == ZoneOrder::Alternate.name() {
        return Ok(layout.with_zones(ZoneOrder::Alternate));
    }
    let rotations = level.rotations().iter().map(Rotation::to_string);
    let mut known: Vec<String> = vec!["chunk=SIZE".into()];
    known.extend(rotations);
    if level == Level::Raid10 {
        known.extend(["nearN", "farN", "offsetN", "sets"].map(String::from));
    }
    let known = known.join(", ");
    Err(wrong("level", format!("`{word}` says nothing about {level}; known: {known}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Sectors;

    #[test]
    fn what_is_printed_is_read_back() {
        let chunk = Sectors(128);
        let raid10 = Layout::new(Level::Raid10, 5);
        let mut layouts = vec![
            Layout::new(Level::Linear, 1),
            Layout::new(Level::Linear, 4),
            Layout::new(Level::Raid0, 3).with_chunk(chunk),
            Layout::new(Level::Raid1, 2),
            Layout::new(Level::Raid3, 5),
            Layout::new(Level::Raid6, 5).with_rotation(Rotation::LeftAsymmetric).with_chunk(chunk),
            raid10.clone(),
            raid10.clone().with_near(3).with_chunk(chunk),
            raid10.clone().with_far(2),
            raid10.clone().with_far(2).with_offset(true),
        ];
        layouts.push(raid10.with_near(2).with_far(2));
        for layout in layouts {
            let text = layout.to_string();
            assert_eq!(text.parse::<Layout>().as_ref(), Ok(&layout), "{text}");
        }
    }

    #[test]
    fn chunks_are_sizes_as_everywhere() {
        for chunk in ["64K", "64k", "64KiB", "64kib", "65536", "128s"] {
            let layout = format!("raid5(4) chunk={chunk}").parse::<Layout>();
            assert_eq!(layout.map(|layout| layout.chunk), Ok(Sectors(128)), "{chunk}");
        }
    }

    #[test]
    fn names_are_one_however_sizes_are_written() {
        for other in ["64K", "64k", "64KiB", "65536", "128s"] {
            let other = format!("raid5(4) chunk={other} left-asymmetric");
            assert!(is_same_name("raid5(4) chunk=64K left-asymmetric", &other), "{other}");
        }
        for other in ["raid5(4)", "raid5(4) chunk=32K", "raid5(4) tie=64K", "raid5(4) chunk=64K x"]
        {
            assert!(!is_same_name("raid5(4) chunk=64K", other), "{other}");
        }
    }

    #[test]
    fn nonsense_is_named() {
        for (text, words) in [
            ("raid50(6)", "`raid50` is raid0 over several raid5: nested levels are not there yet"),
            ("raid60(8)", "`raid60` is raid0 over several raid6: nested"),
            ("RAID5+1(6)", "is raid1 over several raid5: nested"),
            ("raid55(6)", "`raid55` is not a level"),
            ("", "such as raid5(4)"),
            ("raid5", "such as raid5(4)"),
            ("raid5(x)", "such as raid5(4)"),
            ("raid9(4)", "raid9"),
            ("raid5(4) far2", "`far2` says nothing about raid5"),
            ("raid1(2) chunk=64K", "raid1 has no such parameter"),
            ("raid0(2) chunk=64", "64"),
            ("raid5(1)", "members"),
        ] {
            let error = text.parse::<Layout>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
