//! What checks and repairs of a running array found.

use raidlab_core::contract::{RepairSource, Scrub};
use raidlab_core::geometry::{Geometry, Holds, Place};
use raidlab_core::{MemberIndex, SECTOR_BYTES, Sector, Sectors};
use serde_json::{Value, json};

use crate::output::counted;

/// Places that are kept of a check or repair, the first ones; of the others only the sectors are counted.
const MOST: usize = 64;
/// Of these so many are told in words.
const TOLD: usize = 16;

/// The checks and repairs of an array.
#[derive(Clone, Debug, Default)]
pub(super) struct Scrubs {
    /// How many have ended.
    pub(super) ended: u64,
    /// What the one that goes on has found, and mended.
    found: Found,
    last: Option<Scrubbed>,
}

/// What was found so far.
#[derive(Clone, Debug, Default)]
struct Found {
    /// Sectors that were rewritten where redundancy disagreed.
    mended: u64,
    /// Sectors in which it did.
    differing: u64,
    /// The first places where it did, in order; neighbours of which the same is known are one.
    places: Vec<Differing>,
}

/// Sectors, of each member's data or of the array, in which redundancy disagreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Differing {
    from: u64,
    to: u64,
    /// The member that is wrong, where P and Q name one.
    guilty: Option<MemberIndex>,
}

impl Found {
    fn add(&mut self, one: Differing) {
        self.differing += one.to - one.from;
        let place = self.places.partition_point(|other| other.from < one.from);
        self.places.insert(place, one);
        for first in [place, place.saturating_sub(1)] {
            if let Some([before, after]) = self.places.get(first..first + 2)
                && (before.to, before.guilty) == (after.from, after.guilty)
            {
                self.places[first].to = after.to;
                self.places.remove(first + 1);
            }
        }
        self.places.truncate(MOST);
    }
}

/// How one ended.
#[derive(Clone, Debug, Default)]
struct Scrubbed {
    mismatched: Sectors,
    mended: Sectors,
    lost: Sectors,
    places: Vec<Differing>,
    /// It was broken off.
    interrupted: bool,
    /// As this member failed.
    by: Option<MemberIndex>,
}

impl Scrubs {
    pub(super) fn begins(&mut self) {
        self.found = Found::default();
    }

    /// A member was rewritten where redundancy disagreed.
    pub(super) fn mended(&mut self, len: u32) {
        self.found.mended += u64::from(len);
    }

    /// Redundancy disagrees; P and Q may have said whose contents are wrong.
    pub(super) fn differs(&mut self, at: Sector, len: u32, guilty: Option<MemberIndex>) {
        self.found.add(Differing { from: at.0, to: at.0 + u64::from(len), guilty });
    }

    pub(super) fn finished(&mut self, scrub: Scrub, mismatched: Sectors, lost: Sectors) {
        let mended = match scrub {
            Scrub::Check => Sectors::ZERO,
            // All parities, or all copies but the first, of each.
            Scrub::Repair(RepairSource::Data) => mismatched,
            // One member of each, where there is one.
            Scrub::Repair(RepairSource::Nobody | RepairSource::NotMember(_)) => {
                Sectors(self.found.mended)
            }
        };
        self.end(Scrubbed { mismatched, mended, lost, ..Scrubbed::default() });
    }

    pub(super) fn broken_off(&mut self, by: Option<MemberIndex>) {
        let mismatched = Sectors(self.found.differing);
        self.end(Scrubbed { mismatched, interrupted: true, by, ..Scrubbed::default() });
    }

    fn end(&mut self, how: Scrubbed) {
        self.ended += 1;
        self.last = Some(Scrubbed { places: std::mem::take(&mut self.found.places), ..how });
    }

    /// The last one of an array of this geometry, as a document; null before there is one.
    pub(super) fn document(&self, geometry: &Geometry) -> Value {
        let Some(last) = &self.last else { return Value::Null };
        let listed: u64 = last.places.iter().map(|one| one.to - one.from).sum();
        json!({
            "places": last.places.iter().map(|one| one.document(geometry)).collect::<Value>(),
            "unlisted_sectors": last.mismatched.0.saturating_sub(listed),
            "mismatched_sectors": last.mismatched.0,
            "mended_sectors": last.mended.0,
            "lost_sectors": last.lost.0,
            "interrupted": last.interrupted,
            "failed_member": last.by.map(|member| member.0),
        })
    }
}

impl Differing {
    fn document(&self, geometry: &Geometry) -> Value {
        let (holds, array) = self.of_array(geometry);
        let (from, to) = array.map(|(from, to)| (from * SECTOR_BYTES, to * SECTOR_BYTES)).unzip();
        let is_by_member = rows(geometry).is_some();
        json!({
            "of": if is_by_member { "members" } else { "array" },
            "from_sector": self.from,
            "to_sector": self.to,
            "member": self.guilty.map(|member| member.0),
            "holds": holds,
            "array_from": from,
            "array_to": to,
        })
    }

    /// Sectors of the array that it is about: what the member that is wrong holds of it, as far as that is in one
    /// piece, or all that the rows hold; with what that member holds.
    fn of_array(&self, geometry: &Geometry) -> (Option<&'static str>, Option<(u64, u64)>) {
        let Some((height, data)) = rows(geometry) else {
            return (None, Some((self.from, self.to)));
        };
        let (first, last) = (self.from / height, (self.to - 1) / height);
        let all = Some((first * data, (last + 1) * data));
        match self.guilty {
            Some(member) if first == last => {
                match geometry.holds(Place { member, at: Sector(self.from) }) {
                    Holds::Data { at, .. } => {
                        (Some("data"), Some((at.0, at.0 + self.to - self.from)))
                    }
                    Holds::P { .. } => (Some("P"), None),
                    Holds::Q { .. } => (Some("Q"), None),
                    Holds::Nothing => (None, all),
                }
            }
            _ => (None, all),
        }
    }
}

/// Of a geometry with parity the sectors of each member in a row of chunks, and of the array.
fn rows(geometry: &Geometry) -> Option<(u64, u64)> {
    match geometry {
        Geometry::Parity(one) => Some((one.chunk().0, one.stripe_sectors())),
        Geometry::Raid3(one) => Some((one.block(), one.logical_sector())),
        Geometry::Linear(_)
        | Geometry::Raid0(_)
        | Geometry::Mirror(_)
        | Geometry::Raid10(_)
        | Geometry::Nested(_) => None,
    }
}

/// A place in words, by its document.
fn place(one: &Value) -> String {
    let number = |key: &str| one[key].as_u64().unwrap_or(0);
    let sectors = match (number("from_sector"), number("to_sector").saturating_sub(1)) {
        (one, same) if one == same => format!("sector {one}"),
        (from, last) => format!("sectors {from} to {last}"),
    };
    if one["of"] == "array" {
        return format!("{sectors} of the array");
    }
    let bytes = || format!("bytes {} to {}", number("array_from"), number("array_to") - 1);
    let what = match (one["member"].as_u64(), one["holds"].as_str()) {
        (Some(member), Some("data")) => {
            format!("member {member} is wrong, by P and Q: {} of the array", bytes())
        }
        (Some(member), Some(parity)) => {
            format!("member {member} is wrong, by P and Q: its {parity}")
        }
        (Some(member), None) => {
            format!("member {member} is wrong, by P and Q: within {} of the array", bytes())
        }
        (None, _) => format!("within {} of the array", bytes()),
    };
    format!("{sectors} of members' data; {what}")
}

/// How a check or repair ended that was not broken off, by its document, in words; and whether redundancy agrees
/// everywhere now.
pub(super) fn told(what: &str, how: &Value) -> (String, bool) {
    let sectors = |key: &str| how[key].as_u64().unwrap_or(0);
    let (differ, lost) = (sectors("mismatched_sectors"), sectors("lost_sectors"));
    let left = differ.saturating_sub(sectors("mended_sectors"));
    let differ = counted(differ, "sector differs", "sectors differ");
    let mended = match (what, left) {
        ("repair", 1..) => {
            let left = counted(left, "is", "are");
            format!(", {left} left as found: what is wrong there cannot be told")
        }
        _ => String::new(),
    };
    let mut text = format!("{what}: {differ}{mended}, {lost} cannot be read\n");
    let places = how["places"].as_array().map_or(&[][..], Vec::as_slice);
    for one in places.iter().take(TOLD) {
        text.push_str(&format!("  {}\n", place(one)));
    }
    let (told, all) = (places.len().min(TOLD), places.len());
    if told < all || sectors("unlisted_sectors") > 0 {
        text.push_str("  and more: --json lists the first places\n");
    }
    (text, left == 0 && lost == 0)
}

#[cfg(test)]
mod tests {
    use raidlab_core::{Layout, Level};

    use super::*;

    fn geometry(level: Level, members: u16) -> Geometry {
        let layout = Layout::new(level, members);
        Geometry::new(&layout, &vec![Sectors(8192); usize::from(members)]).unwrap()
    }

    fn ended(scrub: Scrub) -> Value {
        let mut scrubs = Scrubs::default();
        scrubs.begins();
        scrubs.mended(8);
        scrubs.differs(Sector(0), 8, None);
        scrubs.begins();
        scrubs.mended(8);
        scrubs.mended(8);
        scrubs.finished(scrub, Sectors(24), Sectors(0));
        scrubs.document(&geometry(Level::Raid6, 4))
    }

    #[test]
    fn what_a_repair_leaves_is_told() {
        let none = Scrubs::default().document(&geometry(Level::Raid1, 2));
        assert_eq!(none, Value::Null);
        let all = Scrub::Repair(RepairSource::Data);
        let first = |what, scrub| {
            let (words, agrees) = told(what, &ended(scrub));
            (words.lines().next().unwrap().to_owned(), agrees)
        };
        assert_eq!(
            first("repair", all),
            ("repair: 24 sectors differ, 0 cannot be read".into(), true)
        );
        let (words, agrees) = first("repair", Scrub::Repair(RepairSource::Nobody));
        assert!(words.starts_with("repair: 24 sectors differ, 8 are left as found: "), "{words}");
        assert!(!agrees);
        let check = ("check: 24 sectors differ, 0 cannot be read".into(), false);
        assert_eq!(first("check", Scrub::Check), check);
        let mut scrubs = Scrubs::default();
        scrubs.differs(Sector(8), 8, None);
        scrubs.broken_off(Some(MemberIndex(2)));
        let how = scrubs.document(&geometry(Level::Raid1, 3));
        assert_eq!((scrubs.ended, &how["failed_member"]), (1, &json!(2)));
        assert_eq!((&how["interrupted"], &how["mismatched_sectors"]), (&json!(true), &json!(8)));
        assert_eq!(how["places"][0]["from_sector"], 8);
    }

    /// In whichever order places come, the first ones are kept, and neighbours of which the same is known are one.
    #[test]
    fn the_first_places_are_kept() {
        let mut found = Found::default();
        let member = |index| Some(MemberIndex(index));
        for (from, guilty) in [(40, None), (8, member(1)), (24, member(2)), (0, member(1))] {
            found.add(Differing { from, to: from + 8, guilty });
        }
        found.add(Differing { from: 16, to: 24, guilty: member(1) });
        let places = found.places.iter().map(|one| (one.from, one.to, one.guilty));
        let expected = [(0, 24, member(1)), (24, 32, member(2)), (40, 48, None)];
        assert_eq!(places.collect::<Vec<_>>(), expected);
        let mut found = Found::default();
        for number in (0..200).rev() {
            found.add(Differing { from: 16 * number, to: 16 * number + 8, guilty: None });
        }
        assert_eq!((found.differing, found.places.len()), (1600, MOST));
        assert!((0..).zip(&found.places).all(|(number, one)| one.from == 16 * number));
    }

    #[test]
    fn what_is_wrong_is_told_by_its_place_in_the_array() {
        // Rows of 128 sectors with two chunks of data; the first has them on members 1 and 2, P on 3, Q on 0.
        let mut layout = Layout::new(Level::Raid6, 4);
        layout.chunk = Sectors(128);
        let geometry = Geometry::new(&layout, &[Sectors(8192); 4]).unwrap();
        for (from, to, member, words) in [
            (16, 24, Some(2), "member 2 is wrong, by P and Q: bytes 73728 to 77823 of the array"),
            (16, 24, Some(0), "member 0 is wrong, by P and Q: its Q"),
            (16, 24, Some(3), "member 3 is wrong, by P and Q: its P"),
            (16, 24, None, "within bytes 0 to 131071 of the array"),
            (120, 136, Some(2), "is wrong, by P and Q: within bytes 0 to 262143 of the array"),
        ] {
            let one = Differing { from, to, guilty: member.map(MemberIndex) };
            let told = place(&one.document(&geometry));
            let start = format!("sectors {from} to {} of members' data; ", to - 1);
            assert!(told.starts_with(&start) && told.ends_with(words), "{told}");
        }
        let copies = self::geometry(Level::Raid1, 2);
        let one = Differing { from: 16, to: 24, guilty: None }.document(&copies);
        assert_eq!(place(&one), "sectors 16 to 23 of the array");
        let alone = Differing { from: 16, to: 17, guilty: None }.document(&copies);
        assert_eq!(place(&alone), "sector 16 of the array");
        assert_eq!((&one["array_from"], &one["array_to"]), (&json!(8192), &json!(12288)));
    }
}
