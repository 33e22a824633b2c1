//! What checks and repairs of a running array found.

use raidlab_core::contract::{RepairSource, Scrub};
use raidlab_core::{MemberIndex, Sectors};
use serde_json::{Value, json};

use crate::output::counted;

/// The checks and repairs of an array.
#[derive(Clone, Debug, Default)]
pub(super) struct Scrubs {
    /// How many have ended.
    pub(super) ended: u64,
    /// What the one that goes on has mended.
    mended: Sectors,
    last: Option<Scrubbed>,
}

/// How one ended.
#[derive(Clone, Debug, Default)]
struct Scrubbed {
    mismatched: Sectors,
    mended: Sectors,
    lost: Sectors,
    /// It was broken off.
    interrupted: bool,
    /// As this member failed.
    by: Option<MemberIndex>,
}

impl Scrubs {
    pub(super) fn begins(&mut self) {
        self.mended = Sectors::ZERO;
    }

    /// A member was rewritten where redundancy disagreed.
    pub(super) fn mended(&mut self, len: u32) {
        self.mended = Sectors(self.mended.0 + u64::from(len));
    }

    pub(super) fn finished(&mut self, scrub: Scrub, mismatched: Sectors, lost: Sectors) {
        let mended = match scrub {
            Scrub::Check => Sectors::ZERO,
            // All parities, or all copies but the first, of each.
            Scrub::Repair(RepairSource::Data) => mismatched,
            // One member of each, where there is one.
            Scrub::Repair(RepairSource::Nobody | RepairSource::NotMember(_)) => self.mended,
        };
        self.end(Scrubbed { mismatched, mended, lost, ..Scrubbed::default() });
    }

    pub(super) fn broken_off(&mut self, by: Option<MemberIndex>) {
        self.end(Scrubbed { interrupted: true, by, ..Scrubbed::default() });
    }

    fn end(&mut self, how: Scrubbed) {
        self.ended += 1;
        self.last = Some(how);
    }

    /// The last one, as a document; null before there is one.
    pub(super) fn document(&self) -> Value {
        let Some(last) = &self.last else { return Value::Null };
        json!({
            "mismatched_sectors": last.mismatched.0,
            "mended_sectors": last.mended.0,
            "lost_sectors": last.lost.0,
            "interrupted": last.interrupted,
            "failed_member": last.by.map(|member| member.0),
        })
    }
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
    (format!("{what}: {differ}{mended}, {lost} cannot be read\n"), left == 0 && lost == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(scrub: Scrub) -> Value {
        let mut scrubs = Scrubs::default();
        scrubs.begins();
        scrubs.mended(8);
        scrubs.begins();
        scrubs.mended(8);
        scrubs.mended(8);
        scrubs.finished(scrub, Sectors(24), Sectors(0));
        scrubs.document()
    }

    #[test]
    fn what_a_repair_leaves_is_told() {
        assert_eq!(Scrubs::default().document(), Value::Null);
        let all = Scrub::Repair(RepairSource::Data);
        let told_of = |what, scrub| told(what, &ended(scrub));
        assert_eq!(
            told_of("repair", all),
            ("repair: 24 sectors differ, 0 cannot be read\n".into(), true)
        );
        let (words, agrees) = told_of("repair", Scrub::Repair(RepairSource::Nobody));
        assert!(words.starts_with("repair: 24 sectors differ, 8 are left as found: "), "{words}");
        assert!(!agrees);
        let check = ("check: 24 sectors differ, 0 cannot be read\n".into(), false);
        assert_eq!(told_of("check", Scrub::Check), check);
        let mut scrubs = Scrubs::default();
        scrubs.broken_off(Some(MemberIndex(2)));
        let how = scrubs.document();
        assert_eq!((scrubs.ended, &how["failed_member"]), (1, &json!(2)));
        assert_eq!(how["interrupted"], true);
    }
}
