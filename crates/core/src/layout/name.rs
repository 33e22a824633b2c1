//! Reading a layout from the name it is printed by.

use std::str::FromStr;

use super::nested::{MOST_ARRAYS, OUTER, nested_levels};
use super::{Layout, LayoutError, Level, Parameter, Rotation, ZoneOrder, chunk_from_size};
use crate::units::Size;

impl FromStr for Layout {
    type Err = LayoutError;

    /// Reads what is printed: `single`, `raid5(4)`, `raid10(4) far2`, `raid6(5) chunk=64K
    /// left-asymmetric`, `raid5+0(2x3) chunk=64K outer-chunk=128K`. Of nested levels a word is the lower one's, if
    /// that has it, else the upper one's; `chunk` is both's, and what begins with `outer-` the upper one's. The
    /// layout is checked.
    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        let words: Vec<&str> = words.collect();
        let layout = match nested_counts(first)? {
            Some((inner, outer)) => nested(inner, outer, &words)?,
            None => with_words(level_and_members(first)?, &words)?,
        };
        layout.check()?;
        Ok(layout)
    }
}

/// The words of one level. After far copies near ones are one unless they were said, wherever they were.
fn with_words(mut layout: Layout, words: &[&str]) -> Result<Layout, LayoutError> {
    let (near, others): (Vec<&str>, Vec<_>) =
        words.iter().partition(|word| word.starts_with("near"));
    for word in others.into_iter().chain(near) {
        layout = with_word(layout, word)?;
    }
    Ok(layout)
}

/// The lower and the upper level of `raid5+0(2x3)`; `None` where only one level is named.
fn nested_counts(word: &str) -> Result<Option<(Layout, Layout)>, LayoutError> {
    let (levels, counts) = word.split_once('(').unwrap_or((word, ""));
    let Some((inner, outer)) = nested_levels(levels) else { return Ok(None) };
    let counts = counts.strip_suffix(')');
    if let Some(drives) = counts.and_then(|counts| counts.parse().ok()) {
        return shared_out(word, (inner, outer), drives).map(Some);
    }
    let counts = counts.and_then(|counts| counts.split_once('x'));
    let counts = counts.and_then(|(arrays, drives)| {
        let (arrays, drives) = (arrays.parse().ok()?, drives.parse().ok()?);
        Some((Layout::new(inner, drives), Layout::new(outer, arrays)))
    });
    counts.map(Some).ok_or_else(|| {
        let reason =
            format!("`{word}`: write how many arrays of how many drives, as {levels}(2x4)");
        wrong("members", reason)
    })
}

/// The two levels where only drives are counted: there is one way to share them out, or it must be said.
fn shared_out(
    word: &str,
    (inner, outer): (Level, Level),
    drives: u16,
) -> Result<(Layout, Layout), LayoutError> {
    let of = |arrays: u16| (Layout::new(inner, drives / arrays), Layout::new(outer, arrays));
    let is_one =
        |(inner, outer): &(Layout, Layout)| outer.clone().over(inner.clone()).check().is_ok();
    let arrays = (2..=MOST_ARRAYS).filter(|arrays| drives.is_multiple_of(*arrays));
    let mut ways: Vec<(Layout, Layout)> = arrays.map(of).filter(is_one).collect();
    if ways.len() == 1 {
        return Ok(ways.remove(0));
    }
    let names: Vec<String> =
        ways.into_iter().map(|(inner, outer)| outer.over(inner).to_string()).collect();
    let reason = match names.split_last() {
        Some((last, others)) => {
            format!("`{word}`: {drives} drives can be {} or {last}; write which", others.join(", "))
        }
        None => {
            let (arrays, each) = (outer.fewest_members().max(2), inner.fewest_members());
            format!(
                "`{word}`: {drives} drives cannot be {outer} over arrays of {inner} of one size; it takes at least \
                 {arrays} arrays of {each} drives"
            )
        }
    };
    Err(wrong("members", reason))
}

fn nested(inner: Layout, outer: Layout, words: &[&str]) -> Result<Layout, LayoutError> {
    let (own, words): (Vec<&str>, Vec<_>) = words.iter().partition(|word| word.starts_with(OUTER));
    let takes = |layout: &Layout, word: &str| with_word(layout.clone(), word).is_ok();
    let (below, above): (Vec<&str>, Vec<_>) =
        words.iter().copied().partition(|word| takes(&inner, word) || !takes(&outer, word));
    let outer = outer.over(with_words(inner, &below)?);
    let own = own.into_iter().map(|word| &word[OUTER.len()..]);
    with_words(outer, &above.into_iter().chain(own).collect::<Vec<_>>())
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
        if !level.takes(Parameter::Chunk) {
            return Err(wrong("chunk", format!("{level} has no such parameter")));
        }
        let size = chunk.parse::<Size>().map_err(|error| wrong("chunk", error))?;
        return Ok(layout.with_chunk(chunk_from_size(size)?));
    }
    if let Some(rotation) = level.rotations().iter().find(|one| one.to_string() == word) {
        return Ok(layout.with_rotation(*rotation));
    }
    if level.takes(Parameter::Near) {
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
    if level.takes(Parameter::Zones) && word == ZoneOrder::Alternate.name() {
        return Ok(layout.with_zones(ZoneOrder::Alternate));
    }
    let rotations = level.rotations().iter().map(Rotation::to_string);
    let chunk = level.takes(Parameter::Chunk).then(|| "chunk=SIZE".to_owned());
    let mut known: Vec<String> = chunk.into_iter().collect();
    known.extend(rotations);
    if level.takes(Parameter::Near) {
        known.extend(["nearN", "farN", "offsetN", "sets"].map(String::from));
    }
    if level.takes(Parameter::Zones) {
        known.push(ZoneOrder::Alternate.name().into());
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
        let raid5 = Layout::new(Level::Raid5, 3);
        let raid0 = Layout::new(Level::Raid0, 2);
        layouts.extend([
            raid0.clone().over(raid5.clone()),
            raid0.clone().over(raid5.clone().with_chunk(chunk)),
            raid0.clone().over(raid5.clone()).with_chunk(chunk),
            raid0.clone().over(raid5.clone().with_rotation(Rotation::RightAsymmetric)),
            raid0.clone().over(Layout::new(Level::Raid1, 2)).with_chunk(chunk),
            Layout::new(Level::Raid1, 3).over(raid0),
            Layout::new(Level::Linear, 2).over(raid5.clone().with_chunk(chunk)),
            Layout::new(Level::Raid6, 4).with_rotation(Rotation::ParityFirst).over(raid5),
        ]);
        for layout in layouts {
            let text = layout.to_string();
            assert_eq!(text.parse::<Layout>().as_ref(), Ok(&layout), "{text}");
        }
    }

    #[test]
    fn nested_levels_are_named_as_the_field_names_them() {
        let raid50 = Layout::new(Level::Raid0, 2).over(Layout::new(Level::Raid5, 3));
        for name in ["raid5+0(2x3)", "raid50(2x3)", "RAID50(2x3)", "raid5+raid0(2x3)"] {
            assert_eq!(name.parse(), Ok(raid50.clone()), "{name}");
        }
        assert_eq!(raid50.to_string(), "raid5+0(2x3)");
        // Drives alone, where there is one way to share them out; raid3 takes only some numbers.
        for (name, full) in [
            ("raid50(6)", "raid5+0(2x3)"),
            ("raid60(10)", "raid6+0(2x5)"),
            ("raid1+0(4) chunk=64K", "raid1+0(2x2) chunk=64K"),
            ("raid3+0(10)", "raid3+0(2x5)"),
        ] {
            assert_eq!(name.parse::<Layout>().map(|layout| layout.to_string()), Ok(full.into()));
        }
        // One chunk for both levels, unless the upper one is given another.
        let both = "raid50(2x3) chunk=64K".parse::<Layout>().unwrap();
        assert_eq!((both.chunk, both.inner.unwrap().chunk), (Sectors(128), Sectors(128)));
        let two = "raid50(2x3) outer-chunk=128K chunk=64K".parse::<Layout>().unwrap();
        assert_eq!(two.to_string(), "raid5+0(2x3) chunk=64K outer-chunk=128K");
        // What the lower level does not have is the upper one's.
        let mirrors = "raid1+0(3x2) chunk=64K".parse::<Layout>().unwrap();
        assert_eq!((mirrors.members, mirrors.drives(), mirrors.chunk), (3, 6, Sectors(128)));
        let copies = "raid5+10(4x3) far2".parse::<Layout>().unwrap();
        assert_eq!(copies.to_string(), "raid5+10(4x3) outer-far2");
        assert!(matches!("raid10(4)".parse::<Layout>(), Ok(Layout { inner: None, .. })));
        let losses = |name: &str| name.parse::<Layout>().unwrap().survives();
        assert_eq!(
            ["raid50(2x3)", "raid60(2x4)", "raid0+1(2x2)", "raid5+1(2x3)"].map(losses),
            [1, 2, 1, 3]
        );
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
            ("raid50", "`raid50`: write how many arrays of how many drives, as raid50(2x4)"),
            ("RAID5+1(x)", "as RAID5+1(2x4)"),
            (
                "raid50(12)",
                "members: `raid50(12)`: 12 drives can be raid5+0(2x6), raid5+0(3x4) or raid5+0(4x3); write which",
            ),
            (
                "raid50(7)",
                "7 drives cannot be raid0 over arrays of raid5 of one size; it takes at least 2 arrays of 3 drives",
            ),
            ("raid50(0)", "0 drives cannot be"),
            ("raid5+6(9)", "at least 4 arrays of 3 drives"),
            ("raid3+0(8)", "8 drives cannot be"),
            ("raid5+0(1x3)", "arrays: raid0 over arrays takes 2 to 127 of them, not 1"),
            ("raid5+0(2x2)", "members: raid5 needs at least 3 members, not 2"),
            ("raid5+6(3x3)", "members: raid6 needs at least 4 members, not 3"),
            ("raid5+0(2x3) chunk=64K far2", "`far2` says nothing about raid5"),
            ("raid5+0(2x3) outer-far2", "`far2` says nothing about raid0"),
            ("raid5+1(2x3) outer-chunk=64K", "raid1 has no such parameter"),
            ("raid57(6)", "`raid57` is not a level"),
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

    #[test]
    fn words_belong_to_levels() {
        let layout = |text: &str| text.parse::<Layout>().ok();
        let zones = Layout::new(Level::Raid0, 2).with_zones(ZoneOrder::Alternate);
        let word = ZoneOrder::Alternate.name();
        assert_eq!(layout(&format!("raid0(2) {word}")), Some(zones));
        assert_eq!(layout(&format!("raid5(3) {word}")), None);
        assert_eq!(layout("raid0(2) left-asymmetric"), None);
        for text in ["raid0(2) near2", "raid0(2) sets", "raid5(3) far2", "raid1(2) chunk=64K"] {
            assert_eq!(layout(text), None, "{text}");
        }
    }
}
