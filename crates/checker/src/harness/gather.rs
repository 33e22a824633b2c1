//! Entries of md's logs, which an engine puts together: those that the array has sent out for a drive by the time it
//! is drained are one header, or follow one another in blocks.

use raidlab_core::MemberIndex;
use raidlab_core::contract::{Completion, Input, IoId, IoOutcome, MetaIo, Record};

use super::{Harness, Outstanding, Work};
use crate::content::mix;
use crate::device::Logged;

/// Entries that are being written together.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The I/O under whose number they are outstanding: the first of them.
    leader: IoId,
    entries: Vec<(IoId, MetaIo)>,
    /// Of each how many rows are in the journal.
    done: Vec<(IoId, u64)>,
}

impl Group {
    /// A replacement is the member from now on.
    pub(super) fn moves(&mut self, member: MemberIndex, replacement: MemberIndex) {
        for (_, meta) in self.entries.iter_mut().filter(|(_, meta)| meta.member == replacement) {
            meta.member = member;
        }
    }
}

impl Harness {
    /// Whether a record is an entry that is put together with others; it is kept until all of them have come.
    pub(super) fn gathers(&mut self, io: IoId, meta: &MetaIo) -> bool {
        let is_entry =
            matches!(meta.record, Record::PartialParity { .. } | Record::JournalEntry { .. });
        if is_entry && self.drives.is_md() {
            self.gathered.push((io, *meta));
            return true;
        }
        false
    }

    /// The array is drained: what was gathered goes out to every drive to which no record is on its way.
    pub(super) fn send_gathered(&mut self) {
        let mut from = 0;
        while let Some((_, meta)) = self.gathered.get(from) {
            let member = meta.member;
            match self.work.iter().any(|item| item.is_record_of(member)) {
                true => from += 1,
                false => self.send_gathered_of(member),
            }
        }
    }

    /// What was gathered for a drive goes out, if anything.
    pub(super) fn send_gathered_of(&mut self, member: MemberIndex) {
        let is_theirs = |(_, meta): &mut (IoId, MetaIo)| meta.member == member;
        let entries: Vec<_> = self.gathered.extract_if(.., is_theirs).collect();
        let Some((leader, _)) = entries.first().copied() else { return };
        self.groups.push(Group { leader, entries, done: Vec::new() });
        self.send_group(leader, 0);
    }

    /// Sends what comes next of a group; false where nobody wants it any more.
    fn send_group(&mut self, leader: IoId, part: u32) -> bool {
        let Some(place) = self.groups.iter().position(|group| group.leader == leader) else {
            return false;
        };
        let mut group = self.groups.swap_remove(place);
        group.entries.retain(|(io, _)| self.array.meta(*io).is_some());
        let Some((io, meta)) = group.entries.first().copied() else { return false };
        group.leader = io;
        let mut hash = 0;
        let mut logged = Vec::new();
        for (one, meta) in &group.entries {
            let mut payload = Vec::new();
            self.gather(&meta.payload, &mut payload);
            if !self.drives.is_aligned(meta.member, 0, payload.len() as u64) {
                let len = payload.len();
                self.violate(format!("an entry of {len} cuts a block of drive {}", meta.member.0));
                return false;
            }
            hash = mix(mix(hash, Self::payload_hash(&payload)), meta.at.0);
            let known = group.done.iter().find(|(known, _)| known == one);
            let done = known.map_or(0, |(_, done)| *done);
            logged.push(Logged { meta: *meta, payload, done });
        }
        let sent = match meta.record {
            Record::JournalEntry { .. } => self.drives.send_block(meta.member, &mut logged),
            _ => self.drives.send_header(meta.member, &logged),
        };
        let all = group.entries.iter().zip(&logged);
        group.done = all.map(|((io, _), logged)| (*io, logged.done)).collect();
        let Some((ticket, more)) = sent else {
            self.violate(format!("entries of a log have no room on drive {}", meta.member.0));
            return false;
        };
        self.groups.push(group);
        let ticket = Some(ticket);
        let item = Outstanding { ticket, payload: hash, part, more, ..Outstanding::of(io, meta) };
        self.work.push(item);
        true
    }

    /// What is outstanding under this number has ended so; true where more of it is sent. The array is told of all
    /// that ended with it.
    pub(super) fn ended(&mut self, io: IoId, item: &Outstanding, outcome: IoOutcome) -> bool {
        let is_theirs = |group: &Group| group.leader == io;
        if outcome != IoOutcome::Ok
            && self.groups.iter().any(is_theirs)
            && let Work::Meta(_, meta) = item.work
        {
            // As the engine has it.
            self.drives.log_failed(meta.member);
        }
        let goes_on = item.more && outcome == IoOutcome::Ok && !item.ghost;
        if goes_on && self.groups.iter().any(is_theirs) && self.send_group(io, item.part + 1) {
            return true;
        }
        let entries = match self.groups.iter().position(is_theirs) {
            Some(place) => self.groups.swap_remove(place).entries,
            None => return false,
        };
        for (io, _) in entries.iter().filter(|(other, _)| *other != io) {
            self.array.handle(self.now, Input::Completion(Completion { io: *io, outcome }));
        }
        false
    }

    /// Whether an I/O is written together with the one that is outstanding under another number.
    pub(super) fn is_written_with(&self, io: IoId, leader: IoId) -> bool {
        let group = self.groups.iter().find(|group| group.leader == leader);
        group.is_some_and(|group| group.entries.iter().any(|(one, _)| *one == io))
    }
}
