//! Arrays on drives that answer when they are told to, and lose what was not flushed when the power is cut.
//!
//! [`Bench`] knows what each sector of an array may hold: requests are under way while the power is cut, and of what
//! was written and not made durable each sector is there or not, also within what a drive was just being given.
#![allow(dead_code, reason = "shared by tests that use different parts")]

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

use raidlab_core::contract::{IoOp, IoOutcome, Outcome, Pacing, RequestId, Segment, Token};
use raidlab_core::{Layout, MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, MdOptions, Member, MemberRequest, MemberStore};
use raidlab_metadata::md::{
    Allowed, Aside, Creation, Device, Features, LogDevice, Made, Superblock, Version,
};
use raidlab_random::SplitMix64;

use crate::made::creation;
use crate::power;

pub(crate) const SECTOR: usize = 512;

/// How the log of an array lies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Log {
    /// As mdadm makes it: 1 MiB.
    Usual,
    /// Room for a few headers, which come around often.
    Short,
    /// One header, which is written in place.
    Single,
}

/// The bytes of the devices of a new array with a number.
pub(crate) fn images(
    layout: &Layout,
    version: Version,
    log: Log,
    (sectors, number): (u64, u8),
) -> Vec<Vec<u8>> {
    let array = [number + 1; 16];
    let creation = Creation { ppl: true, version, array, ..creation(layout.clone(), sectors) };
    let plan = creation.plan().unwrap();
    let image = |made: &Made| {
        let mut bytes = made_image(made, sectors);
        lay_log(&mut bytes, made.superblock.clone(), log);
        bytes
    };
    plan.members.iter().flatten().map(image).collect()
}

/// The bytes of the members of a new array with a number and of its log device, whose journal has so many sectors.
pub(crate) fn with_journal(
    layout: &Layout,
    version: Version,
    (sectors, in_journal, number): (u64, u64, u8),
) -> Vec<Vec<u8>> {
    let array = [number + 1; 16];
    let plain = Creation { version, array, ..creation(layout.clone(), sectors) };
    let data_offset = plain.plan().unwrap().data_offset.0;
    let device = Device { sectors: Sectors(data_offset + in_journal), id: [0x77; 16] };
    let journal = Some(LogDevice { device, first: 7 });
    let plan = Creation { journal, ..plain }.plan().unwrap();
    let image = |made: &Made| {
        let sectors = made.superblock.data_offset + made.superblock.data_size;
        made_image(made, sectors)
    };
    plan.members.iter().flatten().chain(&plan.journal).map(image).collect()
}

/// The bytes of a new device of so many sectors.
pub(crate) fn made_image(made: &Made, sectors: u64) -> Vec<u8> {
    let mut bytes = vec![0; sectors as usize * SECTOR];
    for (at, piece) in &made.pieces {
        bytes[at.bytes() as usize..][..piece.len()].copy_from_slice(piece);
    }
    bytes
}

/// Has the superblock of a device say that its log lies so.
pub(crate) fn lay_log(bytes: &mut [u8], mut superblock: Superblock, log: Log) {
    let Aside::PartialParity { offset, .. } = superblock.aside else { panic!("no log") };
    let size = match log {
        Log::Usual => return,
        Log::Short => 528,
        Log::Single => 48,
    };
    superblock.aside = Aside::PartialParity { offset, size };
    if matches!(log, Log::Single) {
        let others = Features(superblock.features.0 & !Features::PPLS.0);
        superblock.features = others.with(Features::PPL);
    }
    let at = superblock.super_offset as usize * SECTOR;
    superblock.emit(&mut bytes[at..][..4096]).unwrap();
}

/// A drive with a cache, and requests that it has not answered.
struct Holding {
    drive: power::Drive,
    held: Vec<MemberRequest>,
    /// Requests are kept until [`Drive::go_on`].
    holds: bool,
    /// Nothing is carried out any more.
    fails: bool,
}

#[derive(Clone)]
pub(crate) struct Drive(Arc<Mutex<Holding>>);

impl Drive {
    pub(crate) fn new(durable: &[u8]) -> Self {
        let drive = power::Drive::new((durable.len() / SECTOR) as u64);
        drive.put(0, durable);
        Self(Arc::new(Mutex::new(Holding { drive, held: Vec::new(), holds: false, fails: false })))
    }

    fn lock(&self) -> MutexGuard<'_, Holding> {
        self.0.lock().unwrap()
    }

    /// It fails from now on.
    pub(crate) fn fail(&self) {
        self.lock().fails = true;
    }

    /// Requests are kept from now on, or answered at once.
    pub(crate) fn hold(&self, on: bool) {
        self.lock().holds = on;
    }

    /// All that it holds and has not lost.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.lock().drive.bytes()
    }

    /// Answers one of the requests; false when there is none.
    pub(crate) fn go_on(&self, random: &mut SplitMix64) -> bool {
        let mut drive = self.lock();
        if drive.held.is_empty() {
            return false;
        }
        let number = random.below(drive.held.len() as u64) as usize;
        let request = drive.held.remove(number);
        drive.drive.submit(request);
        true
    }

    /// What is there after the power was cut: of what it was being given any sectors, too.
    pub(crate) fn cut(&self, random: &mut SplitMix64) -> Vec<u8> {
        let mut drive = self.lock();
        let left = power::cut([&drive.drive], |end| random.below(end)).remove(0);
        let kept = random.below(4);
        for request in drive.held.drain(..).filter(|one| one.op() == IoOp::Write) {
            for (sector, content) in (request.at().0..).zip(request.payload().chunks(SECTOR)) {
                if kept == 0 || kept > 1 && random.below(2) == 0 {
                    left.put(sector, content);
                }
            }
        }
        left.bytes()
    }
}

impl MemberStore for Drive {
    fn sectors(&self) -> Sectors {
        self.lock().drive.sectors()
    }

    fn submit(&mut self, request: MemberRequest) {
        let mut drive = self.lock();
        match drive.holds {
            _ if drive.fails => request.complete(IoOutcome::Gone),
            true => drive.held.push(request),
            false => drive.drive.submit(request),
        }
    }
}

/// What a sector may hold: the first value is durable, the others came later, each by a write with this number.
pub(crate) type Values = Vec<(u8, u64)>;

struct Pending {
    number: u64,
    op: IoOp,
    range: std::ops::Range<usize>,
    fua: bool,
    /// Flush: the writes that were answered before.
    before: Vec<u64>,
}

/// An array that is written, and what it may hold.
pub(crate) struct Bench {
    pub(crate) random: SplitMix64,
    pub(crate) drives: Vec<Drive>,
    pub(crate) model: Vec<Values>,
    /// Where each sector of the array lies.
    pub(crate) members: Vec<u16>,
    /// Sectors that are written together.
    pub(crate) unit: usize,
    /// What a start is allowed.
    pub(crate) allowed: Allowed,
    next: u64,
}

/// What the power cut left.
pub(crate) struct Left {
    /// Of each drive.
    pub(crate) images: Vec<Vec<u8>>,
}

impl Bench {
    /// An array on these images, which holds zeroes, as far as `sectors`.
    pub(crate) fn new(images: Vec<Vec<u8>>, sectors: usize, seed: u64) -> Self {
        let drives = images.iter().map(|image| Drive::new(image)).collect();
        let model = vec![vec![(0, 0)]; sectors];
        Self {
            random: SplitMix64::new(seed),
            drives,
            model,
            members: Vec::new(),
            unit: 1,
            allowed: Allowed::default(),
            next: 1,
        }
    }

    /// Assembles it without the drives that are `lost`, and makes its redundancy consistent.
    pub(crate) fn start(&mut self, lost: &[usize]) -> Result<Engine, String> {
        self.drives.iter().for_each(|drive| drive.hold(false));
        let there = self.drives.iter().enumerate().filter(|(number, _)| !lost.contains(number));
        let devices = there.map(|(_, drive)| Member::from(drive.clone())).collect();
        let allowed = self.allowed.clone();
        let options = MdOptions { allowed, run: true, ..MdOptions::default() };
        let (mut engine, _) =
            Engine::assemble_md(devices, &options).map_err(|error| error.to_string())?;
        engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
        engine.finish_background(&AtomicBool::new(false)).unwrap();
        let array = engine.array().flat().expect("of one level");
        let place = |at| array.geometry().place(Sector(at as u64), 0).member.0;
        self.members = (0..self.model.len()).map(place).collect();
        Ok(engine)
    }

    /// Writes an array of so many members and cuts its power, four times: with one of them lost or not, written without
    /// it, and in the midst of its rebuild. Each time it holds what it may, where `excepts` but for what was being
    /// written to the lost one; in the end its redundancy agrees. `started` sees each start after the first cut of a
    /// round.
    pub(crate) fn cut_off_and_lose(
        &mut self,
        members: u16,
        excepts: bool,
        told: &str,
        mut started: impl FnMut(&Engine),
    ) {
        let mut engine = self.start(&[]).unwrap_or_else(|why| panic!("{told}: {why}"));
        for round in 0..4 {
            let told = format!("{told}, round {round}");
            let left = self.live(engine, 300);
            self.restart(left);
            let members = u64::from(members);
            let lost = Some(self.random.below(2 * members)).filter(|lost| *lost < members);
            let excepted = lost.map(|lost| lost as u16).filter(|_| excepts);
            let lost = lost.map(|lost| lost as usize);
            engine =
                self.start(lost.as_slice()).unwrap_or_else(|why| panic!("{told}, {lost:?}: {why}"));
            started(&engine);
            let found = self.read(&mut engine);
            self.compare(&found, excepted, &told);
            if let Some(lost) = lost {
                engine = self.lose(engine, lost, excepted, &told);
            }
            let differing = engine.scrub(&AtomicBool::new(false)).unwrap();
            assert_eq!(differing, Sectors(0), "{told}");
        }
    }

    /// Goes on without a member, and with a fresh one in its place.
    fn lose(
        &mut self,
        mut engine: Engine,
        lost: usize,
        excepted: Option<u16>,
        told: &str,
    ) -> Engine {
        if self.random.below(3) == 0 {
            // Written degraded, and cut off again.
            let left = self.live(engine, 200);
            self.restart(left);
            engine = self.start(&[lost]).unwrap_or_else(|why| panic!("{told}: {why}"));
            let found = self.read(&mut engine);
            self.compare(&found, excepted, &format!("{told}, degraded"));
        }
        if self.random.below(3) == 0 {
            // Cut off in the midst of the rebuild.
            self.begin_exchange(&mut engine, lost);
            let left = self.live(engine, 200);
            self.restart(left);
            engine = self.start(&[]).unwrap_or_else(|why| panic!("{told}, rebuilt: {why}"));
            let found = self.read(&mut engine);
            self.compare(&found, excepted, &format!("{told}, rebuilt"));
        }
        // The fresh drive may not have become a member by then.
        if engine.array().is_failed(MemberIndex(lost as u16)) {
            self.exchange(&mut engine, lost);
        }
        engine
    }

    /// Writes, flushes and answers at random; then the power is cut, with requests under way.
    pub(crate) fn live(&mut self, mut engine: Engine, steps: u64) -> Left {
        self.drives.iter().for_each(|drive| drive.hold(true));
        let buffers = [(); 16].map(|()| engine.allocate(64 * SECTOR as u64).unwrap());
        let mut pending: HashMap<RequestId, Pending> = HashMap::new();
        let mut answered = Vec::new();
        let mut replies = Vec::new();
        for _ in 0..self.random.below(steps) {
            match self.random.below(10) {
                0..3 => self.submit(&mut engine, &buffers, &mut pending, &answered),
                _ => {
                    let drive = self.random.below(self.drives.len() as u64) as usize;
                    self.drives[drive].clone().go_on(&mut self.random);
                }
            }
            engine.poll_replies(&mut replies).unwrap();
            for reply in replies.drain(..) {
                assert_eq!(reply.outcome, Outcome::Done);
                let done = pending.remove(&reply.id).expect("it was asked for");
                self.settle(&done);
                answered.push(done.number);
            }
        }
        let images = self.drives.iter().map(|drive| drive.cut(&mut self.random)).collect();
        drop(engine);
        Left { images }
    }

    /// A write, away from what is under way, or a flush.
    fn submit(
        &mut self,
        engine: &mut Engine,
        buffers: &[Token; 16],
        pending: &mut HashMap<RequestId, Pending>,
        answered: &[u64],
    ) {
        if !engine.can_accept() || pending.len() >= 12 {
            return;
        }
        let number = self.next;
        self.next += 1;
        if self.random.below(12) == 0 {
            let id = engine.submit_range(IoOp::Flush, Sector(0), Sectors(0)).unwrap();
            let before = answered.to_vec();
            let one = Pending { number, op: IoOp::Flush, range: 0..0, fua: false, before };
            pending.insert(id, one);
            return;
        }
        let most: u64 = [3, 9, 30][self.random.below(3) as usize];
        let unit = self.unit;
        let at = self.random.below((self.model.len() / unit) as u64) as usize * unit;
        let most = most.div_ceil(unit as u64);
        let len = (unit * (1 + self.random.below(most) as usize)).min(self.model.len() - at);
        let range = at..at + len;
        let overlaps = |one: &Pending| one.range.start < range.end && range.start < one.range.end;
        if pending.values().any(|one| overlaps(one) || one.number % 16 == number % 16) {
            return;
        }
        let fua = self.random.below(10) == 0;
        let token = buffers[(number % 16) as usize];
        let bytes = engine.bytes_mut(token).unwrap();
        for (at, sector) in range.clone().zip(bytes.chunks_exact_mut(SECTOR)) {
            let value = self.random.below(256) as u8;
            sector.fill(value);
            self.model[at].push((value, number));
        }
        let segment = Segment { token, offset: 0, len: len as u32 };
        let id = engine.submit(IoOp::Write, Sector(at as u64), &[segment], fua).unwrap();
        pending.insert(id, Pending { number, op: IoOp::Write, range, fua, before: Vec::new() });
    }

    /// What a request that was answered made durable.
    fn settle(&mut self, done: &Pending) {
        let durable: &[u64] = match done.op {
            IoOp::Flush => &done.before,
            _ if done.fua => &[done.number],
            _ => &[],
        };
        for values in &mut self.model {
            let newest = values.iter().rposition(|(_, number)| durable.contains(number));
            values.drain(..newest.unwrap_or(0));
        }
    }

    /// Whether what an array holds, of which `lost` is missing, is what it may hold; that is durable from now on. What
    /// was being written to the missing member may be anything.
    pub(crate) fn compare(&mut self, found: &[u8], lost: Option<u16>, told: &str) {
        let sectors = found.chunks_exact(SECTOR).zip(&self.members);
        for (at, ((sector, member), values)) in sectors.zip(&mut self.model).enumerate() {
            let excepted = values.len() > 1 && lost == Some(*member);
            let whole = sector.iter().all(|byte| *byte == sector[0]);
            let can_be = whole && values.iter().any(|(value, _)| *value == sector[0]);
            assert!(
                excepted || can_be,
                "{told}: sector {at} on member {member} is {:?}.., of {values:?}",
                &sector[..2]
            );
            *values = vec![(sector[0], 0)];
        }
    }

    /// Reads all of an array.
    pub(crate) fn read(&self, engine: &mut Engine) -> Vec<u8> {
        let mut bytes = vec![0; self.model.len() * SECTOR];
        engine.read_at(Sector(0), &mut bytes).unwrap();
        bytes
    }

    /// What an array holds is what it is to hold.
    pub(crate) fn believe(&mut self, engine: &mut Engine) {
        let found = self.read(engine);
        for (values, sector) in self.model.iter_mut().zip(found.chunks_exact(SECTOR)) {
            assert!(sector.iter().all(|byte| *byte == sector[0]));
            *values = vec![(sector[0], 0)];
        }
    }

    /// Takes over what the power cut left.
    pub(crate) fn restart(&mut self, left: Left) {
        self.drives = left.images.iter().map(|image| Drive::new(image)).collect();
    }

    /// A fresh drive in the place of a member, which is rebuilt: one with something else on it, or what the member had
    /// when it was lost, its log too.
    pub(crate) fn exchange(&mut self, engine: &mut Engine, member: usize) {
        engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
        self.fresh(engine, member);
        engine.finish_background(&AtomicBool::new(false)).unwrap();
    }

    /// The same, and the rebuild goes on slowly.
    pub(crate) fn begin_exchange(&mut self, engine: &mut Engine, member: usize) {
        engine.pace(Pacing::between(1, 1 << 16)).unwrap();
        self.fresh(engine, member);
    }

    fn fresh(&mut self, engine: &mut Engine, member: usize) {
        let had = self.drives[member].bytes();
        let others = vec![0x55; had.len()];
        self.drives[member] = Drive::new(if self.random.below(2) == 0 { &had } else { &others });
        let fresh = Member::from(self.drives[member].clone());
        engine.add(MemberIndex(member as u16), fresh).unwrap();
    }
}
