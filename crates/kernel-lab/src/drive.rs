//! A drive of the lab as the kernel sees it: a virtio block device with its contents. How long requests take is said
//! elsewhere.

use raidlab_core::units::{Sector, Time};
use raidlab_models::{DriveIo, DriveIoId, DriveOp};

use crate::bus::{Bus, Operation, Record};
use crate::class::Class;
use crate::contents::{Contents, Room};
use crate::failure::Failure;
use crate::vhost::{self, Request};
use crate::virtqueue::{Chain, Part, Virtqueue};

/// What the head of a request may ask for, and the flag of our kernels on a write.
mod kind {
    pub(super) const READ: u32 = 0;
    pub(super) const WRITE: u32 = 1;
    pub(super) const FLUSH: u32 = 4;
    pub(super) const IDENTIFY: u32 = 8;
    pub(super) const FUA: u32 = 0x4000_0000;
}

/// How a request ends, as the guest reads it.
mod status {
    pub(super) const OK: u8 = 0;
    pub(super) const ERROR: u8 = 1;
    pub(super) const UNKNOWN: u8 = 2;
}

const HEADER_BYTES: usize = 16;

/// What becomes of a request that was taken from the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is work for the drive; the number of the I/O is that of its place.
    Work(DriveIo),
    /// That at this place needs no time: it is done now.
    Done(usize),
}

/// A drive of the lab.
pub(crate) struct Drive {
    number: usize,
    class: Class,
    contents: Contents,
    queue: Virtqueue,
    /// Requests at work; the number of a place is that of its I/O.
    requests: Vec<Option<InFlight>>,
    outstanding: usize,
    interrupt: bool,
    /// Nothing takes time, until it is asked for its name.
    is_free: bool,
}

struct InFlight {
    chain: Chain,
    operation: Operation,
    sector: u64,
    bytes: u64,
    arrived: Time,
    depth: usize,
    status: u8,
}

impl Drive {
    pub(crate) fn new(number: usize, class: Class) -> Self {
        Self {
            number,
            class,
            contents: Contents::default(),
            queue: Virtqueue::default(),
            requests: Vec::new(),
            outstanding: 0,
            interrupt: false,
            is_free: false,
        }
    }

    /// Lets requests take no time until it is asked for its name.
    pub(crate) fn be_free(&mut self) {
        self.is_free = true;
    }

    /// Takes what concerns the device and its queue; gives the answer that a message has instead of an acknowledgement.
    pub(crate) fn configure(&mut self, request: &Request) -> Result<Option<Vec<u8>>, Failure> {
        match *request {
            Request::GetFeatures => return Ok(Some(vhost::features(self.class.features()))),
            Request::GetProtocolFeatures => return Ok(Some(vhost::protocol_features())),
            Request::GetConfiguration { offset, length, flags } => {
                let space = self.class.configuration();
                return Ok(Some(vhost::configuration(&space, offset, length, flags)));
            }
            Request::SetFeatures(used) if used & !self.class.features() & !(1 << 30) != 0 => {
                let text = format!("features {used:#x} of which not all were offered");
                return Err(Failure::Protocol(text));
            }
            Request::SetQueueLength(entries) => self.queue = Virtqueue::of(entries)?,
            Request::SetQueuePlace { descriptors, available, used } => {
                self.queue.place(descriptors, available, used);
            }
            Request::SetQueueStart(entry) => self.queue.begin_at(entry),
            Request::SetFeatures(_)
            | Request::SetMemory(_)
            | Request::SetWayBack
            | Request::Kick
            | Request::Other => {}
        }
        Ok(None)
    }

    /// Takes what the guest put on the queue, now.
    pub(crate) fn take(&mut self, bus: &mut dyn Bus, now: Time) -> Result<Vec<Taken>, Failure> {
        let mut taken = Vec::new();
        while let Some(chain) = self.queue.take(bus, self.number)? {
            let request = self.read_header(bus, now, chain)?;
            let place = self.requests.iter().position(Option::is_none).unwrap_or_else(|| {
                self.requests.push(None);
                self.requests.len() - 1
            });
            self.is_free &= request.operation != Operation::Identify;
            taken.push(match service_io(&request, place) {
                Some(io) if request.status == status::OK && !self.is_free => Taken::Work(io),
                // What is free is done at once, and what cannot be done is said at once.
                _ => Taken::Done(place),
            });
            self.requests[place] = Some(request);
            self.outstanding += 1;
        }
        Ok(taken)
    }

    fn read_header(&self, bus: &mut dyn Bus, now: Time, chain: Chain) -> Result<InFlight, Failure> {
        let (Some(first), Some(last)) = (chain.parts.first(), chain.parts.last()) else {
            return Err(Failure::Protocol("a request without memory".to_owned()));
        };
        let is_whole = first.length as usize >= HEADER_BYTES && !first.writable;
        if chain.parts.len() < 2 || !is_whole || last.length == 0 || !last.writable {
            let text = format!("a request without head or status: {:?}", chain.parts);
            return Err(Failure::Protocol(text));
        }
        let mut header = [0; HEADER_BYTES];
        bus.load(self.number, first.address, &mut header)?;
        let [k0, k1, k2, k3, _, _, _, _, a, b, c, d, e, f, g, h] = header;
        let kind = u32::from_le_bytes([k0, k1, k2, k3]);
        let sector = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let operation = match kind {
            kind::READ => Operation::Read,
            kind::WRITE => Operation::Write,
            kind::FLUSH => Operation::Flush,
            kind::IDENTIFY => Operation::Identify,
            _ if kind == kind::WRITE | kind::FUA => Operation::WriteThrough,
            _ => Operation::Unknown,
        };
        let bytes = contents_of(&chain).iter().map(|part| u64::from(part.length)).sum();
        let depth = self.outstanding;
        let mut request =
            InFlight { chain, operation, sector, bytes, arrived: now, depth, status: status::OK };
        request.status = self.check(&request);
        Ok(request)
    }

    /// What a request is answered that cannot be carried out.
    fn check(&self, request: &InFlight) -> u8 {
        let reads = match request.operation {
            Operation::Read | Operation::Identify => true,
            Operation::Write | Operation::WriteThrough => false,
            Operation::Flush => return status::OK,
            Operation::Unknown => return status::UNKNOWN,
        };
        let parts = contents_of(&request.chain);
        if parts.iter().any(|part| part.writable != reads) {
            return status::ERROR;
        }
        let sectors = self.class.bytes / 512;
        let (length, whole) = (request.bytes / 512, request.bytes.is_multiple_of(512));
        let end = request.sector.checked_add(length);
        let inside = whole && length > 0 && end.is_some_and(|end| end <= sectors);
        let is_range = request.operation != Operation::Identify;
        if is_range && !inside { status::ERROR } else { status::OK }
    }

    /// Moves the bytes of a request and gives it back to the guest, now.
    pub(crate) fn finish(
        &mut self,
        bus: &mut dyn Bus,
        room: &mut Room,
        place: usize,
        now: Time,
    ) -> Result<(), Failure> {
        let request = self.requests.get_mut(place).and_then(Option::take);
        // A model ends what it was given, once.
        let Some(request) = request else { return Ok(()) };
        let mut written = 1;
        if request.status == status::OK {
            written += self.transfer(bus, room, &request)?;
        }
        let parts = &request.chain.parts;
        if let Some(last) = parts.last() {
            let address = last.address + u64::from(last.length) - 1;
            bus.store(self.number, address, &[request.status])?;
        }
        self.queue.give(bus, self.number, request.chain.head, written)?;
        self.outstanding -= 1;
        self.interrupt |= self.queue.wants_interrupt(bus, self.number)?;
        bus.done(&Record {
            arrived: request.arrived,
            ended: now,
            drive: self.number,
            operation: request.operation,
            sector: request.sector,
            bytes: request.bytes,
            depth: request.depth,
            succeeded: request.status == status::OK,
        });
        Ok(())
    }

    /// Moves the bytes; gives how many the drive has written to the guest's memory.
    fn transfer(
        &mut self,
        bus: &mut dyn Bus,
        room: &mut Room,
        request: &InFlight,
    ) -> Result<u32, Failure> {
        let mut at = request.sector * 512;
        let mut written = 0;
        for &part in contents_of(&request.chain) {
            match request.operation {
                Operation::Read => {
                    self.contents.read(bus, self.number, at, part)?;
                    written += part.length;
                }
                Operation::Write | Operation::WriteThrough => {
                    self.contents.write(bus, room, (self.number, at, part))?;
                }
                Operation::Identify => {
                    let name = self.name(part.length);
                    bus.store(self.number, part.address, &name)?;
                    written += part.length;
                }
                Operation::Flush | Operation::Unknown => {}
            }
            at += u64::from(part.length);
        }
        Ok(written)
    }

    /// What the drive is called, in as many bytes as it is asked for.
    fn name(&self, length: u32) -> Vec<u8> {
        let mut name = format!("raidlab-{}", self.number).into_bytes();
        name.resize(length.min(20) as usize, 0);
        name
    }

    /// Whether the guest is to be interrupted for what was given back since this was asked last.
    pub(crate) fn takes_interrupt(&mut self) -> bool {
        std::mem::take(&mut self.interrupt)
    }
}

/// What lies between head and status.
fn contents_of(chain: &Chain) -> &[Part] {
    chain.parts.get(1..chain.parts.len() - 1).unwrap_or_default()
}

/// What a request asks of the service, if anything.
fn service_io(request: &InFlight, place: usize) -> Option<DriveIo> {
    let op = match request.operation {
        Operation::Read => DriveOp::Read,
        Operation::Write | Operation::WriteThrough => DriveOp::Write,
        Operation::Flush => DriveOp::Flush,
        Operation::Identify | Operation::Unknown => return None,
    };
    let flush = op == DriveOp::Flush;
    Some(DriveIo {
        id: DriveIoId(place as u32),
        op,
        at: Sector(if flush { 0 } else { request.sector }),
        len: if flush { 0 } else { (request.bytes / 512) as u32 },
        fua: request.operation == Operation::WriteThrough,
    })
}
