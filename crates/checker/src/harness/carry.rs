//! Carrying out what the array asks: member I/O, records, jobs; well or with a fault.

use raidlab_core::contract::{
    Completion, Input, IoId, IoOp, IoOutcome, JobId, JobResult, MemberIo, MetaIo, ParityOp, Record,
    Role, Scratch, Segment, SegmentList,
};
use raidlab_core::{MemberIndex, Sector, Time};

use super::{Fault, Harness, Outstanding, Work, changes};
use crate::content::{self, Content, Verdict, mix};

impl Harness {
    fn place(&self, segment: Segment) -> std::ops::Range<usize> {
        let longest = self.config.longest as usize;
        let base = match Scratch::index(segment.token) {
            Some(index) => {
                let slots = self.config.array.limits.requests as usize;
                slots * longest + index * self.scratch.len as usize
            }
            None => segment.token.0 as usize * longest,
        };
        let first = base + segment.offset as usize;
        first..first + segment.len as usize
    }

    /// The sectors of memory that a list names, in order.
    pub(super) fn gather(&self, list: &SegmentList, into: &mut Vec<Content>) {
        into.clear();
        for segment in self.array.segments(list) {
            into.extend_from_slice(&self.memory[self.place(segment)]);
        }
    }

    pub(super) fn payload_hash(values: &[Content]) -> u64 {
        values.iter().fold(9, |hash, value| mix(hash, *value))
    }

    /// A member I/O goes out.
    pub(super) fn send(&mut self, io: MemberIo) {
        let MemberIo { member, op, fua, at, len, .. } = io;
        let now = self.now.0;
        let numbers = [u64::from(member.0), op as u64, at.0, u64::from(len), u64::from(fua)];
        self.log.add(now, '>', &numbers, |line| {
            let fua = if fua { " fua" } else { "" };
            line.put(format_args!("d{} {op:?} {}+{len}{fua}", member.0, at.0));
        });
        if !self.drives.is_within(member, at.0, u64::from(len)) {
            self.violate(format!("{op:?} of {len} at {} lies beyond drive {}", at.0, member.0));
            return;
        }
        if !self.drives.is_aligned(member, at.0, u64::from(len)) {
            self.violate(format!("{op:?} of {len} at {} cuts a block of drive {}", at.0, member.0));
            return;
        }
        let mut item = Outstanding::new(Work::Io(io));
        match op {
            IoOp::Write => {
                let mut values = Vec::new();
                self.gather(&io.segments, &mut values);
                if values.len() != len as usize {
                    let given = values.len();
                    self.violate(format!("a write of {len} sectors comes with {given}"));
                    return;
                }
                item.payload = Self::payload_hash(&values);
                item.ticket = Some(self.drives.send_write(member, at.0, values.into_iter()));
            }
            IoOp::WriteZeroes => {
                let zeroes = std::iter::repeat_n(content::EMPTY, len as usize);
                item.ticket = Some(self.drives.send_write(member, at.0, zeroes));
            }
            IoOp::Discard => {
                // Anything may be there afterwards, on each drive something else.
                let junk =
                    (0..u64::from(len)).map(|k| mix(u64::from(member.0) | 7 << 32, at.0 + k));
                item.ticket = Some(self.drives.send_write(member, at.0, junk));
            }
            IoOp::Flush => item.sent = self.drives.send_flush(),
            IoOp::Read => {}
        }
        self.work.push(item);
    }

    /// A metadata record goes out.
    pub(super) fn send_meta(&mut self, io: IoId) {
        let Some(meta) = self.array.meta(io).copied() else {
            self.violate("a metadata I/O is not known to the array".into());
            return;
        };
        let MetaIo { member, record, flush, fua, .. } = meta;
        let now = self.now.0;
        self.log.add(now, 'M', &[u64::from(member.0), meta.at.0], |line| {
            line.put(format_args!("d{} {record:?} flush={flush} fua={fua}", member.0));
        });
        if self.gathers(io, &meta) {
            return;
        }
        if self.drives.is_md() && self.work.iter().any(|item| item.is_record_of(member)) {
            self.waiting.push((io, meta));
            return;
        }
        self.send_part(io, meta, 0);
    }

    /// A part of a record goes out.
    fn send_part(&mut self, io: IoId, meta: MetaIo, part: u32) {
        let MetaIo { member, record, at, payload, flush, .. } = meta;
        let mut values = Vec::new();
        self.gather(&payload, &mut values);
        let is_entry = matches!(record, Record::PartialParity { .. } | Record::JournalEntry { .. });
        if is_entry && !self.drives.is_aligned(member, at.0, values.len() as u64) {
            let len = values.len();
            self.violate(format!(
                "an entry of {len} at {} cuts a block of drive {}",
                at.0, member.0
            ));
            return;
        }
        let hash = Self::payload_hash(&values);
        if part == 0
            && matches!(record, Record::Superblock(_))
            && self.array.keeps_bad_blocks()
            && !self.drives.list_bad_blocks(member, self.array.listed_blocks(member))
        {
            self.violate(format!(
                "drive {} has more bad blocks than its list has room for",
                member.0
            ));
        }
        if matches!(record, Record::BitmapPage { .. }) {
            self.drives.put_beside(member, self.array.pages_beside(&meta));
        }
        let part_of = (member, record, part);
        let (ticket, more) = self.drives.send_record(part_of, at.0, &values, flush);
        let ticket = Some(ticket);
        let item = Outstanding { ticket, payload: hash, part, more, ..Outstanding::of(io, meta) };
        self.work.push(item);
    }

    /// The record that waited longest for its turn on a drive goes out, if it is still wanted; then entries of its log.
    fn next_record(&mut self, member: MemberIndex) {
        let waits = |(_, meta): &(IoId, MetaIo)| meta.member == member;
        while let Some(place) = self.waiting.iter().position(waits) {
            let (io, meta) = self.waiting.remove(place);
            if self.array.meta(io).is_some() {
                return self.send_part(io, meta, 0);
            }
        }
        self.send_gathered_of(member);
    }

    /// What waits for its turn is not sent any more; how it ends is decided like that of all others.
    pub(super) fn forget_waiting(&mut self, which: impl Fn(&(IoId, MetaIo)) -> bool, ghost: bool) {
        while let Some(place) = self.waiting.iter().position(&which) {
            let (io, meta) = self.waiting.remove(place);
            self.work.push(Outstanding { ghost, abandoned: !ghost, ..Outstanding::of(io, meta) });
        }
        while let Some(place) = self.gathered.iter().position(&which) {
            let (io, meta) = self.gathered.remove(place);
            self.work.push(Outstanding { ghost, abandoned: !ghost, ..Outstanding::of(io, meta) });
        }
    }

    /// Ends what is outstanding at `index`, with this fault. What does not apply to the kind of I/O
    /// is as [`Fault::None`].
    pub fn finish(&mut self, index: usize, fault: Fault) {
        let item = self.work.remove(index);
        self.now = Time(self.now.0 + 1000);
        match item.work {
            Work::Job(job) => self.compute(job),
            Work::Io(io) => {
                let outcome = self.carry_out(&item, &io, fault);
                if outcome != IoOutcome::Ok {
                    self.note_unreadable(&io);
                }
                let now = self.now.0;
                let MemberIo { member, op, at, len, .. } = io;
                let numbers = [u64::from(member.0), at.0, u64::from(outcome == IoOutcome::Ok)];
                self.log.add(now, '<', &numbers, |line| {
                    line.put(format_args!("d{} {op:?} {}+{len} {outcome:?}", member.0, at.0));
                    if fault != Fault::None {
                        line.put(format_args!(" [{fault:?}]"));
                    }
                });
                let completion = Completion { io: io.io, outcome };
                self.array.handle(self.now, Input::Completion(completion));
            }
            Work::Meta(io, meta) => {
                let outcome = self.write_record(&item, &meta, fault);
                let now = self.now.0;
                let numbers = [u64::from(meta.member.0), u64::from(outcome == IoOutcome::Ok)];
                self.log.add(now, 'm', &numbers, |line| {
                    line.put(format_args!("d{} {outcome:?}", meta.member.0));
                    if fault != Fault::None {
                        line.put(format_args!(" [{fault:?}]"));
                    }
                });
                let is_entry =
                    !matches!(meta.record, Record::Superblock(_) | Record::BitmapPage { .. });
                if is_entry && self.ended(io, &item, outcome) {
                    return;
                }
                if !is_entry && item.more && outcome == IoOutcome::Ok && !item.ghost {
                    return self.send_part(io, meta, item.part + 1);
                }
                if !is_entry && outcome != IoOutcome::Ok {
                    // As the engine has it.
                    self.drives.record_failed(meta.member);
                }
                self.array.handle(self.now, Input::Completion(Completion { io, outcome }));
                let member = meta.member;
                if self.drives.is_md() && !self.work.iter().any(|one| one.is_record_of(member)) {
                    self.next_record(member);
                }
            }
        }
        self.drain();
        if self.finished && self.drives.is_durable() {
            self.finished = false;
            self.oracle.recovered();
        }
    }

    fn carry_out(&mut self, item: &Outstanding, io: &MemberIo, fault: Fault) -> IoOutcome {
        if io.op == IoOp::Write {
            let mut values = Vec::new();
            self.gather(&io.segments, &mut values);
            if Self::payload_hash(&values) != item.payload {
                self.violate(format!(
                    "a buffer was changed under a write to drive {}",
                    io.member.0
                ));
            }
        }
        if item.ghost {
            return self.drop_write(item, IoOutcome::Ok);
        }
        if fault == Fault::Gone {
            self.drives.set_gone(io.member, true);
        }
        if self.drives.is_gone(io.member) {
            return self.drop_write(item, IoOutcome::Gone);
        }
        match fault {
            Fault::NoSpace if changes(io.op) => self.drop_write(item, IoOutcome::NoSpace),
            Fault::Timeout { carried_out } => {
                if carried_out {
                    self.carry_out_well(item, io);
                }
                self.drop_write(item, IoOutcome::Timeout)
            }
            _ if item.abandoned => self.drop_write(item, IoOutcome::Timeout),
            Fault::Media { sector, stuck } if io.op != IoOp::Flush => {
                let at = io.at.0 + u64::from(sector.min(io.len.saturating_sub(1)));
                self.drives.damage(io.member, at, stuck || changes(io.op));
                self.carry_out_well(item, io)
            }
            Fault::Media { .. } => IoOutcome::MediaError { first_bad: Sector(0) },
            Fault::Lost if io.op == IoOp::Flush => IoOutcome::Ok,
            Fault::Lost if changes(io.op) => self.drop_write(item, IoOutcome::Ok),
            Fault::Misdirected(by) if io.op == IoOp::Write => {
                let mut values = Vec::new();
                self.gather(&io.segments, &mut values);
                let room = self.drives.log_start(io.member) + 1 - u64::from(io.len);
                let at = (io.at.0 + u64::from(by)) % room.max(1);
                let ticket = self.drives.send_write(io.member, at, values.into_iter());
                self.drives.complete(ticket, io.fua);
                self.drop_write(item, IoOutcome::Ok)
            }
            Fault::Rot(sector) if changes(io.op) => {
                let outcome = self.carry_out_well(item, io);
                let at = io.at.0 + u64::from(sector.min(io.len - 1));
                self.drives.rot(io.member, at, 0x10);
                outcome
            }
            _ => self.carry_out_well(item, io),
        }
    }

    /// What a drive does that is there, with bad sectors where it has them.
    fn carry_out_well(&mut self, item: &Outstanding, io: &MemberIo) -> IoOutcome {
        let MemberIo { member, op, at, len, fua, .. } = *io;
        match op {
            IoOp::Flush => self.drives.complete_flush(member, item.sent),
            IoOp::Read => {
                if let Some(bad) = self.drives.first_bad(member, at.0, u64::from(len), false) {
                    return IoOutcome::MediaError { first_bad: Sector(bad) };
                }
                self.read_drive(io);
            }
            IoOp::Write | IoOp::WriteZeroes | IoOp::Discard => {
                let Some(ticket) = item.ticket else { return IoOutcome::Ok };
                let bad = self.drives.first_bad(member, at.0, u64::from(len), true);
                if let Some(bad) = bad {
                    self.drives.complete_part(ticket, (bad - at.0) as usize, fua);
                    return IoOutcome::MediaError { first_bad: Sector(bad) };
                }
                self.drives.complete(ticket, fua);
            }
        }
        IoOutcome::Ok
    }

    /// What a drive shows now goes where a read wants it.
    fn read_drive(&mut self, io: &MemberIo) {
        let mut place = Vec::new();
        place.extend(self.array.segments(&io.segments).map(|s| self.place(s)));
        for (from, index) in (io.at.0..).zip(place.into_iter().flatten()) {
            self.memory[index] = self.drives.live(io.member, from);
        }
    }

    /// Reads of a drive that is about to be replaced are answered by it: the new one may not have yet
    /// what is being written to both.
    pub(super) fn read_before_swap(&mut self, member: MemberIndex) {
        for index in 0..self.work.len() {
            let Outstanding { work: Work::Io(io), ghost: false, .. } = self.work[index] else {
                continue;
            };
            let bad = self.drives.first_bad(member, io.at.0, u64::from(io.len), false);
            if io.op == IoOp::Read && io.member == member && bad.is_none() {
                self.read_drive(&io);
                self.work[index].ghost = true;
            }
        }
    }

    fn drop_write(&mut self, item: &Outstanding, outcome: IoOutcome) -> IoOutcome {
        if let Some(ticket) = item.ticket {
            self.drives.lose(ticket);
        }
        outcome
    }

    fn write_record(&mut self, item: &Outstanding, meta: &MetaIo, fault: Fault) -> IoOutcome {
        let member = meta.member;
        if item.ghost {
            return self.drop_write(item, IoOutcome::Ok);
        }
        if fault == Fault::Gone {
            self.drives.set_gone(member, true);
        }
        if self.drives.is_gone(member) {
            return self.drop_write(item, IoOutcome::Gone);
        }
        let Some(ticket) = item.ticket else {
            return if item.abandoned { IoOutcome::Timeout } else { IoOutcome::Ok };
        };
        match fault {
            Fault::NoSpace => self.drop_write(item, IoOutcome::NoSpace),
            Fault::Timeout { carried_out } => {
                if carried_out {
                    self.drives.complete(ticket, meta.fua);
                }
                self.drop_write(item, IoOutcome::Timeout)
            }
            _ if item.abandoned => self.drop_write(item, IoOutcome::Timeout),
            _ if self.drives.is_stuck(ticket) => {
                self.drop_write(item, IoOutcome::MediaError { first_bad: meta.at })
            }
            Fault::Media { .. } => {
                self.drop_write(item, IoOutcome::MediaError { first_bad: meta.at })
            }
            Fault::Lost => self.drop_write(item, IoOutcome::Ok),
            _ => {
                self.drives.complete(ticket, meta.fua);
                IoOutcome::Ok
            }
        }
    }

    /// Carries out a job, row by row.
    pub(super) fn compute(&mut self, job: JobId) {
        let Some(view) = self.array.job(job) else { return };
        let (kernel, len) = (view.op, view.len);
        let count = view.sources.len();
        let total = count + view.targets.len();
        let roles: Vec<Role> = view.roles[..total].to_vec();
        let mut places: Vec<Vec<usize>> = Vec::with_capacity(total);
        for list in view.sources.iter().chain(view.targets) {
            places.push(self.array.segments(list).flat_map(|s| self.place(s)).collect());
        }
        let now = self.now.0;
        self.log.add(now, 'J', &[kernel as u64, u64::from(len)], |line| {
            line.put(format_args!("{kernel:?} of {len}"));
        });
        if places.iter().any(|operand| operand.len() != len as usize) {
            self.violate(format!("operands of {kernel:?} are not all {len} sectors long"));
            return;
        }
        let mut verdict = Verdict::default();
        let mut well = true;
        let mut values = vec![0; total];
        for index in 0..len as usize {
            for (value, operand) in values.iter_mut().zip(&places) {
                *value = self.memory[operand[index]];
            }
            let (sources, targets) = values[..total].split_at_mut(count);
            verdict.add(kernel, index as u32, &roles[..count], sources);
            well &= content::row(kernel, &roles[..total], sources, targets);
            for (target, operand) in targets.iter().zip(&places[count..]) {
                self.memory[operand[index]] = *target;
            }
        }
        let result = if well { verdict.result(kernel) } else { JobResult::Failed };
        self.log.add(now, 'j', &[u64::from(well)], |line| line.put(format_args!("{result:?}")));
        if result == JobResult::Failed && kernel == ParityOp::Recover {
            self.violate("a recovery with too few parities is asked for".into());
        }
        self.array.handle(self.now, Input::Computed { job, result });
        self.drain();
    }

    /// Makes a drive ready for its place of an md array, or does so many pieces of that work.
    pub fn make_md_ready(&mut self, device: MemberIndex, pieces: usize) {
        let mut members = (0..self.shape.members).map(MemberIndex);
        if let Some(model) = members.find(|member| !self.array.is_failed(*member)) {
            self.drives.make_md_ready(device, model, pieces);
        }
    }

    /// A fresh drive is put in this place, before the array is told.
    pub fn renew_drive(&mut self, device: MemberIndex) {
        self.drives.renew(device);
        self.make_md_ready(device, usize::MAX);
        self.forget_waiting(|(_, meta)| meta.member == device, true);
        for item in &mut self.work {
            let known = match item.work {
                Work::Io(io) => io.member,
                Work::Meta(_, meta) => meta.member,
                Work::Job(_) => continue,
            };
            item.ghost |= known == device;
        }
    }
}
