//! Arrays found on members of any state.

use std::sync::atomic::AtomicBool;

use raidlab_core::consistency::{
    Allow, AssembleError, Assembled, Carried, Examined, Found, Unusable, Wanted,
};
use raidlab_core::contract::MemberBits;
use raidlab_core::policy::ReadPolicy;
use raidlab_core::{Array, MemberIndex, Sector};
use raidlab_metadata::{MetadataFormat, Own};

use crate::device::{self, Device, SECTOR};
use crate::images::{self, Case, Moment, cases};
use crate::script::Script;

/// The most changes to the devices.
const MOST_CHANGES: usize = 32;
static RUNNING: AtomicBool = AtomicBool::new(false);

/// A device that is offered.
struct Offered {
    device: Option<Device<'static>>,
    moment: Moment,
    /// It is of this array and stands in the place that it was in.
    is_own: bool,
}

/// Devices of an array, and what is allowed.
struct Set {
    case: &'static Case,
    offered: Vec<Offered>,
    allow: Allow,
    /// Something was damaged, taken from elsewhere or made unreadable.
    is_damaged: bool,
    /// Something was sealed that no array wrote.
    is_forged: bool,
    /// What starts is used as well.
    is_used: bool,
}

/// A set of devices that real arrays wrote, each as it was at some moment, or one of another place or array, or none,
/// and a script that damages, tears and forges what stands there. Whether the array starts is held against the rule:
/// never by itself without a member that may hold something newer, never with two halves that went on alone.
pub fn assembly(data: &[u8]) {
    let mut set = set(&mut Script::new(data));
    let examined = |one: &mut Offered| {
        one.device.as_mut().map_or_else(Examined::absent, |device| Own.examine(device).examined)
    };
    let mut members: Vec<_> = set.offered.iter_mut().map(examined).collect();
    let has_journal = members.len() > usize::from(set.case.config.layout.members);
    let journal = if has_journal { members.pop().unwrap_or_default() } else { Examined::absent() };
    let found = Found { members, journal, nonce: 1_000 };
    let config = &set.case.config;
    let wanted = Wanted {
        layout: config.layout.clone(),
        read_policy: ReadPolicy::default(),
        traits: Vec::new(),
        limits: config.limits,
        settings: config.settings,
    };
    match Array::assemble(&wanted, &found, set.allow) {
        Ok(assembled) => {
            set.judge(&found, &assembled);
            set.use_it();
        }
        Err(error) => set.judge_refusal(&error),
    }
}

fn set(script: &mut Script<'_>) -> Set {
    let case = script.below(cases().len());
    let case = &cases()[case];
    let how = script.byte();
    let same = Moment::ALL[usize::from(how >> 4) % Moment::ALL.len()];
    let devices = case.records.len();
    let offered =
        (0..devices).map(|place| offered(script, case, place, (how & 1 == 1).then_some(same)));
    let mut set = Set {
        offered: offered.collect(),
        case,
        allow: Allow::default(),
        is_damaged: false,
        is_forged: false,
        // Seldom, since it takes longer than all else.
        is_used: how & 2 == 2 && script.below(8) == 0,
    };
    if how & 4 == 4 {
        let members = |byte: u8| [byte.into(), 0];
        let (without, believe) = (members(script.byte()), members(script.byte()));
        set.allow = Allow { without, believe, dirty_degraded: how & 8 == 8 };
    }
    for _ in 0..MOST_CHANGES {
        if script.is_over() {
            break;
        }
        set.change(script);
    }
    set
}

/// What is offered for a place: at the moment of all, or at one of its own.
fn offered(
    script: &mut Script<'_>,
    case: &'static Case,
    place: usize,
    same: Option<Moment>,
) -> Offered {
    let new = |case: &'static Case, moment: Moment, of: usize, is_own| {
        let image = case.moments.get(moment as usize).and_then(|images| images.get(of));
        Offered { device: image.map(|image| Device::new(image)), moment, is_own }
    };
    if let Some(moment) = same {
        return new(case, moment, place, true);
    }
    let which = script.below(16);
    match Moment::ALL.get(which) {
        Some(moment) => new(case, *moment, place, true),
        None if which < 12 => {
            let moment = Moment::ALL[script.below(Moment::ALL.len())];
            new(case, moment, script.below(case.records.len()), false)
        }
        None if which < 14 => {
            let (other, moment) = (script.below(cases().len()), script.below(Moment::ALL.len()));
            new(&cases()[other], Moment::ALL[moment], place, false)
        }
        None => Offered { device: None, moment: Moment::Made, is_own: false },
    }
}

impl Set {
    fn change(&mut self, script: &mut Script<'_>) {
        let (what, place) = (script.below(8), script.below(self.offered.len()));
        let number = script.byte();
        let records = &self.case.records[place];
        let at = records[usize::from(number) % records.len()];
        let other = Moment::ALL[script.below(Moment::ALL.len())];
        let earlier = self.case.moments[other as usize].get(place);
        let Some(device) = &mut self.offered[place].device else { return };
        if at >= device.sectors {
            return;
        }
        self.is_damaged = true;
        match what {
            0 => device.sector_mut(at)[script.below(SECTOR)] ^= script.byte(),
            1 => {
                device.unreadable.insert(at);
            }
            2 => device.sector_mut(at).fill(0),
            3 => {
                let earlier =
                    earlier.and_then(|image| image.get(at as usize * SECTOR..)?.get(..SECTOR));
                device.sector_mut(at).copy_from_slice(earlier.unwrap_or(&[0; SECTOR]));
                // Newer than all, or as old as nothing in its place ever was.
                self.is_forged = true;
            }
            4 => {
                self.is_forged = true;
                let (word, value) = (script.below(31), script.word());
                device::forge(device.sector_mut(at), 8 * word, &value.to_le_bytes());
            }
            5 => {
                self.is_forged = true;
                let (word, value) = (script.below(31), u64::from(script.byte()));
                device::forge(device.sector_mut(at), 8 * word, &value.to_le_bytes());
            }
            6 => device.sectors -= u64::from(number).min(device.sectors),
            _ => {
                let at = script.word() % device.sectors;
                device.sector_mut(at)[script.below(SECTOR)] ^= script.byte();
            }
        }
    }

    /// Whether what cannot be known to be the newest of a member is said to be.
    fn believes(&self, member: usize) -> bool {
        has(self.allow.believe, member)
    }

    /// Holds a start against the rule.
    fn judge(&self, found: &Found, assembled: &Assembled) {
        let carried = |member: usize| -> Option<&Carried> {
            let finding = &found.members[member].superblock;
            let own = if self.believes(member) { finding.readable() } else { finding.whole() };
            own.filter(|own| usize::from(own.device) == member && own.array == assembled.identity)
        };
        let is_left_out = |member: usize| has(self.allow.without, member);
        let count = usize::from(self.case.config.layout.members);
        let is_unused =
            |member: usize| assembled.unused.iter().any(|one| one.member.at() == member);
        let serving: Vec<usize> = (0..count).filter(|member| !is_unused(*member)).collect();
        assert!(!serving.is_empty());
        for member in &serving {
            assert!(
                carried(*member).is_some(),
                "member {member} is not whole, or not of this place"
            );
            assert!(!is_left_out(*member), "member {member} is to be left out");
        }
        let members = (0..count).filter(|member| !is_left_out(*member)).filter_map(&carried);
        let newest = members.map(|one| &one.superblock).max_by_key(|one| one.events);
        let newest = newest.expect("somebody carries one");
        // The log device is told last: it may know of more.
        let journal = found.journal.superblock.whole().map(|one| one.superblock.failed);
        let is_failed =
            |member| has(newest.failed, member) || has(journal.unwrap_or([0; 2]), member);
        for member in serving.iter().filter(|_| !self.is_forged) {
            assert!(!has(newest.failed, *member), "member {member} failed before the newest");
            let own = carried(*member).map_or(0, |own| own.superblock.events);
            assert!(own + 1 >= newest.events, "member {member} is stale");
        }
        for one in assembled.unused.iter().filter(|_| !self.is_forged) {
            let is_new = has(newest.rebuilding, one.member.at()) && one.why == Unusable::Blank;
            let is_known = is_failed(one.member.at()) || is_new;
            assert!(is_known || is_left_out(one.member.at()), "started without asking: {one}");
        }
        self.judge_halves(&serving);
    }

    /// Members that went on without each other never serve together.
    fn judge_halves(&self, serving: &[usize]) {
        if self.is_forged {
            return;
        }
        let own = serving.iter().map(|member| (member, &self.offered[*member]));
        let own = own.filter(|(_, one)| one.is_own);
        let mut histories: Vec<u8> =
            own.filter_map(|(member, one)| one.moment.history(*member)).collect();
        histories.dedup();
        assert!(histories.len() < 2, "halves are joined: {histories:?}");
    }

    /// A set that nothing happened to starts.
    fn judge_refusal(&self, error: &AssembleError) {
        assert!(!error.to_string().is_empty());
        let first = self.offered[0].moment;
        let is_one = self.offered.iter().all(|one| one.is_own && one.moment == first);
        let has_asked = self.allow != Allow::default();
        if self.is_damaged || !is_one || has_asked {
            return;
        }
        // Those who went on without a member were not stopped.
        let is_degraded = matches!(first, Moment::Degraded | Moment::OtherHalf | Moment::FirstHalf);
        let is_asked = matches!(error, AssembleError::DirtyDegraded { .. });
        assert!(is_degraded && is_asked, "{first:?}: {error}");
    }

    /// What started is used: it may fail, but ends.
    fn use_it(&self) {
        let devices = || self.offered.iter().filter_map(|one| one.device.as_ref());
        // The engine's members have one unreadable range each.
        if !self.is_used || devices().any(|device| !device.unreadable.is_empty()) {
            return;
        }
        let images: Vec<_> =
            self.offered.iter().map(|one| one.device.as_ref().map(Device::whole)).collect();
        let images: Vec<_> = images.iter().map(Option::as_deref).collect();
        let Ok(mut engine) = images::assemble(&self.case.config, &images, self.allow) else {
            return;
        };
        let _ = engine.finish_background(&RUNNING);
        let _ = engine.write_at(Sector(3), &[1; 5 * SECTOR]);
        let _ = engine.flush();
        let _ = engine.fail(MemberIndex(0));
        let _ = engine.write_at(Sector(30), &[1; 5 * SECTOR]);
        let _ = engine.re_add(MemberIndex(0), None);
        let _ = engine.finish_background(&RUNNING);
        let _ = engine.read_at(Sector(0), &mut [0; 20 * SECTOR]);
        let _ = engine.stop();
    }
}

fn has(members: MemberBits, member: usize) -> bool {
    members[member / 64] >> (member % 64) & 1 == 1
}
