//! Which numbers the devices of an array have, which is what superblocks list the roles of.

use raidlab_core::contract::{MemberBits, Superblock};

use super::Role;
use super::superblock::MOST_DEVICES;

/// The numbers of an array's devices: members, then their replacements, then the log device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceNumbers {
    members: usize,
    numbers: Vec<Option<u16>>,
    /// Of devices that were exchanged, and may still be given as members.
    faulty: Vec<u16>,
    /// Of spares.
    spares: Vec<u16>,
    /// What superblocks say that they are written at: seconds since 1970 in the low 40 bits, microseconds above.
    pub now: u64,
}

impl DeviceNumbers {
    /// Of an array of so many members, none of which is known.
    pub fn new(members: u16) -> Self {
        let members = usize::from(members);
        Self { members, numbers: vec![None; 2 * members + 1], ..Self::default() }
    }

    /// Another device is in a place.
    pub(crate) fn set(&mut self, device: usize, number: Option<u16>) {
        if let Some(place) = self.numbers.get_mut(device) {
            *place = number;
        }
        if let Some(number) = number {
            self.spares.retain(|spare| *spare != number);
            self.faulty.retain(|faulty| *faulty != number);
        }
    }

    /// A replacement is the member from now on; what was there counts as faulty.
    pub(crate) fn take_over(&mut self, member: usize, replacement: usize) {
        let fresh = self.numbers.get_mut(replacement).and_then(Option::take);
        if let Some(place) = self.numbers.get_mut(member) {
            self.faulty.extend(std::mem::replace(place, fresh));
        }
    }

    /// A device with this number is a spare.
    pub fn add_spare(&mut self, number: u16) {
        self.spares.push(number);
    }

    /// The spare with this number is none any more: its number is free, for itself, too.
    pub fn remove_spare(&mut self, number: u16) {
        self.spares.retain(|spare| *spare != number);
    }

    /// A device with this number is out of service for good, and may still be given.
    pub fn add_faulty(&mut self, number: u16) {
        self.faulty.push(number);
    }

    /// A number that nobody has of so many: the first behind those of the members, as mdadm gives them; then, where
    /// there are all that newer versions have, any.
    pub fn free(&self, most: usize) -> Option<u16> {
        let first = self.members as u16;
        let below = if most < MOST_DEVICES { 0 } else { first };
        (first..most.min(MOST_DEVICES) as u16).chain(0..below).find(|number| !self.is_used(*number))
    }

    /// Whether any device that is known has this number: a member, a replacement, the log device, a spare, or one that
    /// is out of service for good.
    pub(super) fn is_used(&self, number: u16) -> bool {
        self.numbers.contains(&Some(number))
            || self.faulty.contains(&number)
            || self.spares.contains(&number)
    }

    /// Whether another device than the one in a place has this number: it may have been given to a fresh one while the
    /// device that had it was not there.
    pub(super) fn is_others(&self, number: u16, place: usize) -> bool {
        let others = self.numbers.iter().enumerate().filter(|(device, _)| *device != place);
        others.filter_map(|(_, one)| *one).any(|one| one == number) || self.spares.contains(&number)
    }

    /// Of version 0.90, where the number of a member is its place, and a device that is being rebuilt is a spare: who
    /// has everything has the number of its place.
    pub(crate) fn settle(&mut self, failed: MemberBits, rebuilding: MemberBits) {
        for (place, number) in self.numbers.iter_mut().take(self.members).enumerate() {
            let is_out = (failed[place / 64] | rebuilding[place / 64]) >> (place % 64) & 1 == 1;
            if number.is_some() && !is_out {
                *number = Some(place as u16);
            }
        }
    }

    /// The numbers of spares of version 0.90: those of devices in the places of members that are out, too, be they
    /// rebuilt or wait for that. Only who has everything, or had, has the number of its place.
    pub(super) fn v0_spares(&self, said: &Superblock) -> Vec<u16> {
        let members = self.numbers.iter().take(self.members).enumerate();
        let is_out = |place: usize| {
            (said.failed[place / 64] | said.rebuilding[place / 64]) >> (place % 64) & 1 == 1
        };
        let numbers = members.filter(|(place, _)| is_out(*place)).filter_map(|(_, number)| *number);
        let fresh = numbers.filter(|number| usize::from(*number) >= self.members);
        fresh.chain(self.spares.iter().copied()).collect()
    }

    /// The number of the device in a place.
    pub(super) fn v0_number(&self, place: usize) -> u16 {
        self.numbers.get(place).copied().flatten().unwrap_or(place as u16)
    }

    /// What each number is, by the members that are out of service, and those with a replacement: this has the role of
    /// its member, too.
    pub(crate) fn roles(
        &self,
        [failed, replacing]: [MemberBits; 2],
        device: usize,
        least: usize,
    ) -> Vec<Role> {
        let used = self.numbers.iter().flatten().chain(&self.faulty).chain(&self.spares);
        let most = used.map(|number| usize::from(*number) + 1).max().unwrap_or(0);
        let mut roles = vec![Role::Spare; least.max(most).min(MOST_DEVICES)];
        let mut say = |number: u16, role: Role| {
            if let Some(place) = roles.get_mut(usize::from(number)) {
                *place = role;
            }
        };
        self.faulty.iter().for_each(|number| say(*number, Role::Faulty));
        for (place, number) in self.numbers.iter().take(self.members).enumerate() {
            let is_in = |bits: MemberBits| bits[place / 64] >> (place % 64) & 1 == 1;
            let is_failed = is_in(failed);
            let role = if is_failed { Role::Faulty } else { Role::Member(place as u16) };
            number.iter().for_each(|number| say(*number, role));
            let replacement = self.numbers.get(self.members + place).copied().flatten();
            let is_named = is_in(replacing) && !is_failed && number.is_some();
            let replaces = replacement.filter(|_| is_named);
            replaces.into_iter().for_each(|number| say(number, role));
        }
        let journal = 2 * self.members;
        self.numbers
            .get(journal)
            .copied()
            .flatten()
            .into_iter()
            .for_each(|number| say(number, Role::Journal));
        if (self.members..journal).contains(&device)
            && let Some(Some(number)) = self.numbers.get(device)
        {
            say(*number, Role::Member((device - self.members) as u16));
        }
        roles
    }
}

impl DeviceNumbers {
    /// The log device is out of service.
    pub(crate) fn leave_journal(&self, roles: &mut [Role]) {
        let number = self.numbers.get(2 * self.members).copied().flatten();
        if let Some(place) = number.and_then(|number| roles.get_mut(usize::from(number))) {
            *place = Role::Faulty;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_no_places() {
        let mut device_numbers = DeviceNumbers::new(3);
        for (place, number) in [(0, 0), (1, 4), (2, 2)] {
            device_numbers.set(place, Some(number));
        }
        device_numbers.add_spare(3);
        assert_eq!(device_numbers.free(MOST_DEVICES), Some(5));
        let (member, spare) = (Role::Member, Role::Spare);
        assert_eq!(
            device_numbers.roles([[0; 2]; 2], 0, 6),
            [member(0), spare, member(2), spare, member(1), spare]
        );
        let failed = device_numbers.roles([[0b10, 0], [0; 2]], 0, 0);
        assert_eq!(failed, [member(0), spare, member(2), spare, Role::Faulty]);
        // A replacement of member 1 that is not to be named is named by nobody.
        device_numbers.set(3 + 1, Some(3));
        for replacing in [[0; 2], [1, 0]] {
            let roles = device_numbers.roles([[0; 2], replacing], 0, 0);
            assert_eq!((roles[3], roles[4]), (spare, member(1)));
        }
        // It is named beside it, but to itself alone when the member has failed.
        let replacing = [0b10, 0];
        for device in [0, 4] {
            let roles = device_numbers.roles([[0; 2], replacing], device, 0);
            assert_eq!((roles[3], roles[4]), (member(1), member(1)));
        }
        let failed = device_numbers.roles([[0b10, 0], replacing], 0, 0);
        assert_eq!((failed[3], failed[4]), (spare, Role::Faulty));
        let own = device_numbers.roles([[0b10, 0], replacing], 4, 0);
        assert_eq!((own[3], own[4]), (member(1), Role::Faulty));
        device_numbers.take_over(1, 4);
        let after = device_numbers.roles([[0; 2]; 2], 0, 0);
        assert_eq!(after, [member(0), spare, member(2), member(1), Role::Faulty]);
        assert_eq!(
            device_numbers.free(MOST_DEVICES),
            Some(5),
            "a number that somebody may still carry is not given"
        );
    }
}
