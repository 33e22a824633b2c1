//! Candidates: level, copies, width, chunk, spares, nesting, what keeps parity consistent; and what is left out, why.

use std::fmt;

use raidlab_core::geometry::Geometry;
use raidlab_core::{Consistency, Layout, Level, Limits, Sectors, Settings};

use crate::wanted::{Among, CHUNKS, Wanted};

/// What keeps redundancy consistent over a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// A write-intent bitmap, as mdadm makes it on all but small arrays.
    Bitmap,
    /// A log of partial parity, which closes the write hole of raid5.
    PartialParity,
    /// Nothing: how layouts are compared with each other.
    None,
}

/// md's bitmap: a bit for 64 MiB.
const BITMAP: Sectors = Sectors(131_072);

/// A candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// Level, width, copies, chunk.
    pub layout: Layout,
    /// Hot spares.
    pub spares: u16,
    /// What keeps redundancy consistent.
    pub mode: Mode,
}

/// What layouts have in common that differ in chunk and consistency only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Structure {
    /// The layout with the default chunk.
    pub layout: Layout,
    /// Hot spares.
    pub spares: u16,
}

impl Candidate {
    /// Drives, spares included.
    pub const fn drives(&self) -> u16 {
        self.layout.drives() + self.spares
    }

    /// Without chunk and consistency.
    pub fn structure(&self) -> Structure {
        Structure { layout: with_chunk(&self.layout, Sectors(1024)), spares: self.spares }
    }

    /// Whether the chunk is what mdadm takes where nobody says.
    pub fn is_default(&self) -> bool {
        self.structure().layout == self.layout
    }

    /// Settings of the modelled array.
    pub fn settings(&self) -> Settings {
        let consistency = match self.mode {
            Mode::Bitmap => Consistency::Bitmap { chunk: BITMAP },
            Mode::PartialParity => Consistency::PartialParity { slots: Limits::default().plans },
            Mode::None => Consistency::None,
        };
        Settings { consistency, ..Settings::default() }
    }

    /// Usable bytes; `None` where the drives are too small.
    pub fn usable(&self, member: Sectors) -> Option<u64> {
        let sizes = vec![member; usize::from(self.layout.drives())];
        Some(Geometry::new(&self.layout, &sizes).ok()?.capacity().bytes())
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.layout)?;
        match self.mode {
            Mode::Bitmap => f.write_str(" bitmap")?,
            Mode::PartialParity => f.write_str(" ppl")?,
            Mode::None => {}
        }
        match self.spares {
            0 => Ok(()),
            1 => f.write_str(" + spare"),
            spares => write!(f, " + {spares} spares"),
        }
    }
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Candidate { layout: self.layout.clone(), spares: self.spares, mode: Mode::None }.fmt(f)
    }
}

/// Structures that were left out for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Which, as they are named.
    pub names: Vec<String>,
    /// Why.
    pub reason: String,
}

/// Why layouts without redundancy are left out.
pub const BARE: &str = "lose everything with one drive";

/// What is searched, and what is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// All that meet the limits that can be told without a simulation.
    pub all: Vec<Candidate>,
    /// The others, by reason.
    pub dropped: Vec<Dropped>,
}

/// Widths of arrays beyond which one group of parity is not offered: a rebuild reads all of them.
const WIDEST_PARITY: [(Level, u16); 2] = [(Level::Raid5, 12), (Level::Raid6, 24)];

/// Everything there is to choose from.
pub fn candidates(wanted: &Wanted) -> Candidates {
    let mut found = Candidates::default();
    let mut matched = vec![false; wanted.among.len()];
    for drives in wanted.drives.clone() {
        for spares in 0..=wanted.spares.min(drives.saturating_sub(1)) {
            for layout in layouts(drives - spares) {
                if layout.survives() == 0 && spares > 0 {
                    continue;
                }
                for (among, matched) in wanted.among.iter().zip(&mut matched) {
                    *matched |= is(among, &layout);
                }
                found.consider(wanted, &Structure { layout, spares });
            }
        }
    }
    for (among, _) in wanted.among.iter().zip(matched).filter(|(_, matched)| !matched) {
        found.drop_named(among.to_string(), not_looked_at(among).to_owned());
    }
    found
}

/// Why what is named is none of the layouts that are looked at.
fn not_looked_at(among: &Among) -> &'static str {
    let floors: Vec<Level> = match among {
        Among::Layout(layout) => layout.floors().map(|floor| floor.level).collect(),
        Among::Level(level) => vec![*level],
        Among::Nested(inner, outer) => vec![*inner, *outer],
    };
    let is_unused = |level: &Level| matches!(level, Level::Raid3 | Level::Raid4 | Level::Linear);
    if floors.iter().any(is_unused) {
        return "are not looked at: raid4 is a raid5 with one busier drive, raid3 and linear serve no work here";
    }
    let is_offered = floors.contains(&Level::Raid0) && floors.iter().any(|one| has_parity(*one));
    if floors.len() > 1 && !is_offered {
        return "are not looked at: of nested arrays raid5+0 and raid6+0 are";
    }
    match among {
        Among::Layout(_) => {
            "are not looked at in this form or of so many drives: mirrors have 4 copies at most, raid10 near2, far2, \
             offset2, and near3 of drives by threes, and all of --drives are used but spares"
        }
        _ => "cannot be made of so many drives",
    }
}

const fn has_parity(level: Level) -> bool {
    matches!(level, Level::Raid5 | Level::Raid6)
}

impl Candidates {
    fn drop_named(&mut self, name: String, reason: String) {
        match self.dropped.iter_mut().find(|one| one.reason == reason) {
            Some(one) => one.names.push(name),
            None => self.dropped.push(Dropped { names: vec![name], reason }),
        }
    }

    fn consider(&mut self, wanted: &Wanted, structure: &Structure) {
        if !is_among(wanted, &structure.layout) {
            return;
        }
        if let Some(reason) = violated(wanted, structure) {
            self.drop_named(structure.to_string(), reason);
            return;
        }
        for layout in chunked(wanted, &structure.layout) {
            // Layouts are compared without what keeps them consistent: of nested ones it is not modelled.
            let candidate = Candidate { layout, spares: structure.spares, mode: Mode::None };
            if !self.all.contains(&candidate) {
                self.all.push(candidate);
            }
        }
    }
}

fn is_among(wanted: &Wanted, layout: &Layout) -> bool {
    wanted.among.is_empty() || wanted.among.iter().any(|among| is(among, layout))
}

/// Whether a layout with the default chunk is what is named.
fn is(among: &Among, layout: &Layout) -> bool {
    match among {
        Among::Layout(one) => with_chunk(one, Sectors(1024)) == *layout,
        Among::Level(level) => layout.inner.is_none() && layout.level == *level,
        Among::Nested(inner, outer) => {
            layout.level == *outer && layout.inner.as_ref().is_some_and(|one| one.level == *inner)
        }
    }
}

/// Which limit a structure violates, in words; `None` when none.
fn violated(wanted: &Wanted, structure: &Structure) -> Option<String> {
    let (layout, limits) = (&structure.layout, &wanted.limits);
    if let Some(reason) = wanted.software.lacks(layout) {
        return Some(reason.to_owned());
    }
    let survives = layout.survives();
    if survives < limits.survive {
        let what = match survives {
            0 => BARE.to_owned(),
            survives => format!("survive any {survives} lost, not {}", limits.survive),
        };
        return Some(what);
    }
    if wanted.among.is_empty() {
        let floor = layout.floors().find(|one| one.parities() > 0);
        let widest =
            floor.and_then(|one| WIDEST_PARITY.iter().find(|(level, _)| *level == one.level));
        if let (Some(floor), Some((level, most))) = (floor, widest)
            && floor.members > *most
        {
            return Some(format!(
                "are {level} of more than {most} drives, all of which a rebuild reads"
            ));
        }
    }
    let candidate =
        Candidate { layout: layout.clone(), spares: structure.spares, mode: Mode::None };
    let usable = candidate.usable(wanted.member()).unwrap_or(0);
    if let Some(least) = limits.capacity.filter(|least| usable < *least) {
        return Some(format!("have less than the capacity asked for, {}", terabytes(least)));
    }
    // What comes to just as much may be a last digit more.
    let drives = f64::from(candidate.drives()) * (1.0 - 1e-9);
    if let Some((all, each)) = limits.budget.filter(|(all, each)| drives * each > *all) {
        return Some(format!("cost more than {all:.0}, at {each:.2} a drive"));
    }
    if let Some((all, each)) = limits.watts.filter(|(all, each)| drives * each > *all) {
        return Some(format!("take more than {all:.0} W, at {each:.1} W a drive"));
    }
    None
}

/// Bytes as terabytes, as drives are sold.
pub fn terabytes(bytes: u64) -> String {
    format!("{:.1} TB", bytes as f64 / 1e12)
}

/// Layouts of all of so many drives, with the default chunk.
fn layouts(drives: u16) -> Vec<Layout> {
    let mut all = Vec::new();
    let mut add = |layout: Layout| {
        if layout.check().is_ok() {
            all.push(layout);
        }
    };
    if drives == 1 {
        add(Layout::new(Level::Linear, 1));
        return all;
    }
    add(Layout::new(Level::Raid0, drives));
    if drives <= 4 {
        add(Layout::new(Level::Raid1, drives));
    }
    for level in [Level::Raid5, Level::Raid6] {
        add(Layout::new(level, drives));
    }
    if drives >= 3 {
        let raid10 = Layout::new(Level::Raid10, drives);
        add(raid10.clone());
        add(raid10.clone().with_far(2));
        add(raid10.clone().with_far(2).with_offset(true));
        if drives >= 6 && drives.is_multiple_of(3) {
            add(raid10.with_near(3));
        }
    }
    for (level, fewest) in [(Level::Raid5, 3), (Level::Raid6, 4)] {
        for arrays in 2..=drives / fewest {
            if drives.is_multiple_of(arrays) {
                let inner = Layout::new(level, drives / arrays);
                add(Layout::new(Level::Raid0, arrays).over(inner));
            }
        }
    }
    all
}

/// A layout with each chunk.
fn chunked(wanted: &Wanted, layout: &Layout) -> Vec<Layout> {
    let of_it = wanted.among.iter().filter_map(|among| match among {
        Among::Layout(one) if is(among, layout) => Some(one.clone()),
        _ => None,
    });
    let (any, named): (Vec<Layout>, Vec<Layout>) = of_it.partition(|one| one == layout);
    // Each chunk that is named, and all where the layout is named without one, too.
    if any.is_empty() && !named.is_empty() {
        return named;
    }
    if !layout.floors().any(|floor| floor.level.has_chunks()) {
        return vec![layout.clone()];
    }
    let chunks = if wanted.chunks.is_empty() { &CHUNKS[..] } else { &wanted.chunks };
    let with = |chunk: &Sectors| with_chunk(layout, *chunk);
    let all = chunks.iter().map(with).filter(|one| one.check().is_ok());
    let mut all: Vec<Layout> = all.collect();
    all.extend(named);
    all
}

/// A layout with a chunk on all floors that have some.
fn with_chunk(layout: &Layout, chunk: Sectors) -> Layout {
    let mut layout = layout.clone();
    if layout.level.has_chunks() {
        layout.chunk = chunk;
    }
    if let Some(inner) = layout.inner.as_deref_mut()
        && inner.level.has_chunks()
    {
        inner.chunk = chunk;
    }
    layout
}

/// What can keep a layout consistent over a crash, as it is modelled.
pub fn modes(layout: &Layout) -> Vec<Mode> {
    if layout.survives() == 0 || layout.inner.is_some() {
        return Vec::new();
    }
    match layout.level.has_partial_parity() {
        true => vec![Mode::Bitmap, Mode::PartialParity],
        false => vec![Mode::Bitmap],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::profile::Profile;

    fn wanted(drives: u16) -> Wanted {
        let drive = raidlab_models::load("nas-8tb-7200").expect("compiled in");
        Wanted::new(drives..=drives, drive, Profile::named("nas").expect("there"))
    }

    fn structures(found: &Candidates) -> BTreeSet<String> {
        found.all.iter().map(|one| one.structure().to_string()).collect()
    }

    #[test]
    fn four_drives_have_what_people_choose_from() {
        let found = candidates(&wanted(4));
        let expected = [
            "raid1(3) + spare",
            "raid1(4)",
            "raid10(3) + spare",
            "raid10(3) far2 + spare",
            "raid10(3) offset2 + spare",
            "raid10(4)",
            "raid10(4) far2",
            "raid10(4) offset2",
            "raid5(3) + spare",
            "raid5(4)",
            "raid6(4)",
        ];
        assert_eq!(structures(&found), expected.map(str::to_owned).into());
        assert_eq!(found.dropped.len(), 1);
        assert_eq!(found.dropped[0].names, ["raid0(4)"]);
        assert_eq!(found.dropped[0].reason, "lose everything with one drive");
        let raid5 = found.all.iter().filter(|one| one.layout.level == Level::Raid5);
        assert_eq!(raid5.count(), 2 * 4, "chunks of both");
    }

    #[test]
    fn what_violates_a_limit_is_left_out_with_the_reason() {
        let mut asked = wanted(6);
        asked.limits.capacity = Some(30_000_000_000_000);
        asked.limits.survive = 1;
        let found = candidates(&asked);
        assert_eq!(
            structures(&found),
            ["raid5(5) + spare", "raid5(6)", "raid5+0(2x3)", "raid6(6)"].map(str::to_owned).into()
        );
        assert!(
            found
                .dropped
                .iter()
                .any(|one| one.reason == "have less than the capacity asked for, 30.0 TB")
        );
        asked.limits.budget = Some((1_000.0, 200.0));
        let found = candidates(&asked);
        assert!(found.all.is_empty());
        assert!(found.dropped.iter().any(|one| one.reason.starts_with("cost more than 1000")));
    }

    #[test]
    fn only_what_is_named_is_looked_at() {
        let mut asked = wanted(6);
        asked.among = vec![
            Among::Layout("raid6(6)".parse().expect("one")),
            Among::Level(Level::Raid5),
            Among::Layout("raid10(6) chunk=64K".parse().expect("one")),
        ];
        asked.spares = 0;
        let found = candidates(&asked);
        let expected = ["raid10(6)", "raid5(6)", "raid6(6)"].map(str::to_owned);
        assert_eq!(structures(&found), expected.into());
        let raid10 = found.all.iter().filter(|one| one.layout.level == Level::Raid10);
        assert_eq!(raid10.map(ToString::to_string).collect::<Vec<_>>(), ["raid10(6) chunk=64K"]);
    }

    /// What is named is looked at or left out by name.
    #[test]
    fn nothing_that_is_named_is_passed_over() {
        let mut asked = wanted(6);
        let layouts = ["raid6(6)", "raid1(6)", "raid4(6)", "raid10(6) far3", "raid6(4)"];
        asked.among = layouts.map(|one| Among::Layout(one.parse().expect("one"))).to_vec();
        asked.among.extend([
            Among::Level(Level::Raid3),
            Among::Nested(Level::Raid5, Level::Raid0),
            Among::Nested(Level::Raid6, Level::Raid0),
            Among::Nested(Level::Raid1, Level::Raid0),
        ]);
        let found = candidates(&asked);
        let looked_at = ["raid6(6)", "raid5+0(2x3)"].map(str::to_owned);
        assert_eq!(structures(&found), looked_at.into());
        let why = |name: &str| {
            let of = |one: &&Dropped| one.names.iter().any(|other| other == name);
            let one = found.dropped.iter().find(of);
            one.unwrap_or_else(|| panic!("{name}: {:?}", found.dropped)).reason.clone()
        };
        for name in ["raid1(6)", "raid10(6) far3", "raid6(4)"] {
            assert!(why(name).contains("in this form or of so many drives"), "{name}");
        }
        assert!(why("raid4(6)").contains("raid4 is a raid5") && why("raid3").contains("raid3 and"));
        assert_eq!(why("raid6+0"), "cannot be made of so many drives");
        assert!(why("raid1+0").contains("of nested arrays"));
        // Each chunk that is named, not only the first.
        let chunks = ["raid6(6) chunk=64K", "raid6(6) chunk=1M"];
        asked.among = chunks.map(|one| Among::Layout(one.parse().expect("one"))).to_vec();
        let names = |asked: &Wanted| {
            candidates(asked).all.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(names(&asked), chunks);
        asked.among.push(Among::Layout("raid6(6)".parse().expect("one")));
        assert_eq!(names(&asked).len(), 5, "{:?}", names(&asked));
    }

    #[test]
    fn drives_may_be_few_and_chunks_named() {
        let mut one = wanted(1);
        one.limits.survive = 0;
        assert_eq!(structures(&candidates(&one)), ["single".to_owned()].into());
        let mut two = wanted(2);
        (two.limits.survive, two.spares) = (0, 5);
        // No drive alone has a spare, and nothing without redundancy.
        assert_eq!(
            structures(&candidates(&two)),
            ["raid0(2)", "raid1(2)"].map(str::to_owned).into()
        );
        let mirror: Layout = "raid1(2)".parse().expect("one");
        let mirror = Candidate { layout: mirror, spares: 0, mode: Mode::None };
        two.limits.capacity = mirror.usable(two.member());
        assert!(structures(&candidates(&two)).contains("raid1(2)"), "just as much as is asked for");
        let mut named = wanted(4);
        named.spares = 0;
        named.among = vec![Among::Layout("raid5(4)".parse().expect("one"))];
        assert_eq!(candidates(&named).all.len(), CHUNKS.len(), "the default chunk names none");
        named.chunks = vec![Sectors(256)];
        let chunks: Vec<Sectors> =
            candidates(&named).all.iter().map(|one| one.layout.chunk).collect();
        assert_eq!(chunks, [Sectors(256)]);
        let nested = with_chunk(&"raid5+0(2x3)".parse().expect("one"), Sectors(256));
        assert!(nested.floors().all(|floor| floor.chunk == Sectors(256)), "on both floors");
    }

    /// A rebuild reads all of a group: 12 drives of a raid5 and 24 of a raid6 at most, unless wider ones are named.
    #[test]
    fn wide_groups_of_parity_are_offered_only_by_name() {
        let offers = |drives: u16, name: &str| {
            let mut asked = wanted(drives);
            asked.spares = 0;
            let unnamed = structures(&candidates(&asked)).contains(name);
            asked.among = vec![Among::Layout(name.parse().expect("one"))];
            (unnamed, structures(&candidates(&asked)).contains(name))
        };
        assert_eq!(offers(12, "raid5(12)"), (true, true));
        assert_eq!(offers(13, "raid5(13)"), (false, true));
        assert_eq!(offers(24, "raid6(24)"), (true, true));
        assert_eq!(offers(25, "raid6(25)"), (false, true));
        assert_eq!(offers(24, "raid5+0(2x12)"), (true, true));
        assert_eq!(offers(26, "raid5+0(2x13)"), (false, true));
    }

    #[test]
    fn what_can_keep_a_layout_consistent() {
        let of = |name: &str| modes(&name.parse().expect("one"));
        assert_eq!(of("raid5(4)"), [Mode::Bitmap, Mode::PartialParity]);
        assert_eq!(
            (of("raid6(4)"), of("raid10(4)"), of("raid1(2)")),
            (vec![Mode::Bitmap], vec![Mode::Bitmap], vec![Mode::Bitmap])
        );
        assert!(of("raid0(4)").is_empty() && of("raid5+0(2x3)").is_empty());
    }

    /// All of so many drives, by the names that docs/answers.md has: raid0, mirrors of four at most, raid5 and raid6,
    /// raid10 near, far and offset, of three copies by threes, and stripes over equal groups of parity.
    #[test]
    fn all_layouts_of_so_many_drives_are_offered_once() {
        for drives in 2..=12_u16 {
            let mut asked = wanted(drives);
            (asked.spares, asked.limits.survive, asked.chunks) = (0, 0, vec![Sectors(1024)]);
            let mut expected = vec![format!("raid0({drives})")];
            expected.extend((drives <= 4).then(|| format!("raid1({drives})")));
            if drives >= 3 {
                expected.push(format!("raid5({drives})"));
                let copies = ["", " far2", " offset2"];
                expected.extend(copies.map(|copies| format!("raid10({drives}){copies}")));
            }
            expected.extend((drives >= 4).then(|| format!("raid6({drives})")));
            expected
                .extend([6, 9, 12].contains(&drives).then(|| format!("raid10({drives}) near3")));
            for (groups, of) in
                (2..=drives).flat_map(|groups| (3..=drives).map(move |of| (groups, of)))
            {
                if groups * of == drives {
                    expected.push(format!("raid5+0({groups}x{of})"));
                    expected.extend((of >= 4).then(|| format!("raid6+0({groups}x{of})")));
                }
            }
            let found = candidates(&asked);
            let mut found: Vec<String> = found.all.iter().map(ToString::to_string).collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{drives} drives");
        }
    }

    /// What costs just as much as there is, or takes as many watts, is within the limit; spares cost as members do.
    #[test]
    fn limits_of_money_and_watts_may_be_met_exactly() {
        let left = |budget: Option<(f64, f64)>, watts: Option<(f64, f64)>| {
            let mut asked = wanted(6);
            asked.drives = 4..=6;
            (asked.limits.budget, asked.limits.watts) = (budget, watts);
            let found = candidates(&asked);
            let most = found.all.iter().map(Candidate::drives).max();
            let reasons = found.dropped.iter().map(|one| one.reason.clone()).collect::<Vec<_>>();
            (most, reasons.join("; "))
        };
        assert_eq!(left(Some((1_000.0, 200.0)), None).0, Some(5));
        assert_eq!(left(Some((999.0, 200.0)), None).0, Some(4));
        // In binary six times 33.35 is more than 200.1.
        assert_eq!(left(Some((200.1, 33.35)), Some((4.2, 0.7))).0, Some(6));
        assert_eq!(left(Some((200.09, 33.35)), None).0, Some(5));
        assert_eq!(left(None, Some((40.0, 8.0))).0, Some(5));
        let (most, why) = left(Some((1_200.0, 200.0)), Some((39.0, 8.0)));
        assert_eq!(most, Some(4));
        assert!(why.contains("take more than 39 W, at 8.0 W a drive"), "{why}");
        assert!(
            left(Some((999.0, 200.0)), None).1.contains("cost more than 999, at 200.00 a drive")
        );
        assert_eq!(left(Some((1e9, 200.0)), Some((1e9, 8.0))).0, Some(6));
    }

    /// mdadm's bitmap has a bit for 64 MiB; space is that of drives with data, less what metadata take.
    #[test]
    fn what_is_modelled_is_what_mdadm_makes() {
        let of =
            |name: &str, mode| Candidate { layout: name.parse().expect("one"), spares: 1, mode };
        let Consistency::Bitmap { chunk } = of("raid5(4)", Mode::Bitmap).settings().consistency
        else {
            panic!("a bitmap")
        };
        assert_eq!(chunk.bytes(), 64 << 20);
        assert_eq!(of("raid5(4)", Mode::None).settings().consistency, Consistency::None);
        let member = Sectors(8_000_000_000_000 / 512);
        for (name, data) in [
            ("raid5(4)", 3.0),
            ("raid6(8)", 6.0),
            ("raid1(3)", 1.0),
            ("raid10(5)", 2.5),
            ("raid10(6) near3", 2.0),
            ("raid6+0(2x6)", 8.0),
            ("raid0(7)", 7.0),
        ] {
            let one = of(name, Mode::None);
            let share = one.usable(member).expect("fits") as f64 / 8e12 / data;
            assert!((0.999..=1.0).contains(&share), "{name}: {share}");
            assert_eq!(one.drives(), one.layout.drives() + 1, "{name} and a spare");
        }
        assert_eq!(of("raid5(4)", Mode::None).usable(Sectors(0)), None);
        assert_eq!(terabytes(18_249_000_000_000), "18.2 TB", "as drives are sold");
    }
}
