//! What a label says.

use std::fmt;

use md5::{Digest, Md5};
use raidlab_core::consistency::ArrayId;
use raidlab_core::{SECTOR_BYTES, Sectors};

/// Bytes of a name, padded with zeroes.
const NAME: usize = 16;
/// Bytes of an MD5.
const HASH: usize = 16;

/// A class of GEOM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Copies.
    Mirror,
    /// Sectors cut over all but one, which has parity.
    Raid3,
    /// Stripes.
    Stripe,
    /// One behind the other.
    Concat,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Mirror, Self::Raid3, Self::Stripe, Self::Concat];

    /// What a label begins with, then zeroes up to 16 bytes.
    pub const fn magic(self) -> &'static str {
        match self {
            Self::Mirror => "GEOM::MIRROR",
            Self::Raid3 => "GEOM::RAID3",
            Self::Stripe => "GEOM::STRIPE",
            Self::Concat => "GEOM::CONCAT",
        }
    }

    /// The program that makes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mirror => "gmirror",
            Self::Raid3 => "graid3",
            Self::Stripe => "gstripe",
            Self::Concat => "gconcat",
        }
    }

    /// Versions of labels that are read, the first and the last.
    pub const fn versions(self) -> (u32, u32) {
        match self {
            Self::Mirror => (0, 4),
            Self::Raid3 => (0, 5),
            Self::Stripe => (2, 3),
            Self::Concat => (3, 4),
        }
    }

    /// Whether one can be lost, so that labels tell who has everything.
    pub const fn is_redundant(self) -> bool {
        matches!(self, Self::Mirror | Self::Raid3)
    }

    /// By the bytes that a label begins with.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let magic = bytes.get(..NAME)?;
        Self::ALL.into_iter().find(|kind| {
            let (word, rest) = magic.split_at(kind.magic().len());
            word == kind.magic().as_bytes() && rest.iter().all(|byte| *byte == 0)
        })
    }

    /// The first versions that have a genid, and a size of the provider.
    const fn since(self) -> (u32, u32) {
        match self {
            Self::Mirror => (2, 3),
            Self::Raid3 => (3, 4),
            Self::Stripe => (0, 3),
            Self::Concat => (0, 4),
        }
    }

    /// Bits that its flags may have: of the array, and of the device.
    const fn known(self) -> (u64, u64) {
        match self {
            Self::Mirror => (3, 0x7f),
            Self::Raid3 => (0xf, 0x1f),
            Self::Stripe | Self::Concat => (0, 0),
        }
    }
}

/// What a label says of its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// It was being written to.
    pub dirty: bool,
    /// It is being given its contents, and has them up to the label's offset.
    pub synchronizing: bool,
    /// It is to be given its contents whatever the array's flags say.
    pub force_sync: bool,
    /// The administrator took it out of service; gmirror only.
    pub inactive: bool,
    /// It is taken only by the name that the label has.
    pub hardcoded: bool,
    /// It went on without the others.
    pub broken: bool,
    /// It takes orders to discard blocks; gmirror only.
    pub can_delete: bool,
}

impl Flags {
    /// By the bits of a label.
    pub const fn parse(kind: Kind, bits: u64) -> Self {
        let is_mirror = matches!(kind, Kind::Mirror);
        let shift = if is_mirror { 1 } else { 0 };
        Self {
            dirty: bits & 1 != 0,
            synchronizing: bits & 2 != 0,
            force_sync: bits & 4 != 0,
            inactive: is_mirror && bits & 8 != 0,
            hardcoded: bits & 8 << shift != 0,
            broken: bits & 16 << shift != 0,
            can_delete: is_mirror && bits & 64 != 0,
        }
    }

    /// The words of `gmirror dump`.
    pub fn names(self) -> String {
        let all = [
            (self.dirty, "DIRTY"),
            (self.synchronizing, "SYNCHRONIZING"),
            (self.force_sync, "FORCE_SYNC"),
            (self.inactive, "INACTIVE"),
            (self.hardcoded, "HARDCODED"),
            (self.broken, "BROKEN"),
            (self.can_delete, "CANDELETE"),
        ];
        let set: Vec<_> = all.into_iter().filter(|(set, _)| *set).map(|(_, name)| name).collect();
        if set.is_empty() { "NONE".into() } else { set.join(", ") }
    }
}

/// A label. What a class or a version does not have is zero, or empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its class.
    pub kind: Kind,
    /// Its version.
    pub version: u32,
    /// The array's name.
    pub name: String,
    /// The array's number, by chance.
    pub id: u32,
    /// gmirror: the device's number, by chance.
    pub disk: u32,
    /// Its place; gmirror has none.
    pub number: u16,
    /// Devices of the array.
    pub members: u16,
    /// Grows when the array begins without one that may have newer data.
    pub genid: u32,
    /// Grows when a device is lost.
    pub syncid: u32,
    /// gmirror: whom the others are made like.
    pub priority: u8,
    /// gmirror: bytes from which on a read is split.
    pub slice: u32,
    /// gmirror: how reads are shared out.
    pub balance: u8,
    /// gstripe: bytes of a stripe on one device.
    pub stripe: u32,
    /// gmirror, graid3: bytes of the array.
    pub array_bytes: u64,
    /// gmirror, graid3: bytes of a sector of the array.
    pub sector_bytes: u32,
    /// Up to where it has its contents while it is given them.
    pub sync_offset: u64,
    /// Flags of the array, as they stand.
    pub array_flags: u64,
    /// Flags of the device, as they stand.
    pub device_flags: u64,
    /// The name of the provider that alone is taken.
    pub provider: String,
    /// Bytes of the provider; 0 where it is not said.
    pub provider_bytes: u64,
}

/// Why a label cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A version that is not read.
    Version(Kind, u32),
    /// The MD5 is not that of the bytes.
    Checksum(Kind),
    /// A field that no such label has.
    Field(Kind, String),
    /// It is the label of a device of so many bytes, and this one has others.
    Size {
        /// The class.
        kind: Kind,
        /// What the label says.
        label: u64,
        /// What is there.
        there: u64,
    },
    /// The array needs more of each device than is there.
    CutOff {
        /// The class.
        kind: Kind,
        /// What it needs.
        needed: u64,
        /// What is there.
        there: u64,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(kind, version) => {
                let (first, last) = kind.versions();
                let kind = kind.name();
                write!(f, "its {kind} label is of version {version}; {first} to {last} are read")
            }
            Self::Checksum(kind) => {
                write!(f, "the MD5 of its {} label is wrong: it is torn or damaged", kind.name())
            }
            Self::Field(kind, what) => write!(f, "its {} label is none: {what}", kind.name()),
            Self::Size { kind, label, there } if label < there => write!(
                f,
                "its {} label is that of a device of {label} bytes, and this one has {there}: probably of a partition \
                 that ends where the disk does, from byte {} on, which is what must be given",
                kind.name(),
                there - label
            ),
            Self::Size { kind, label, there } => write!(
                f,
                "its {} label is that of a device of {label} bytes, and this one has {there}: it is cut off, or a copy \
                 on a smaller one",
                kind.name()
            ),
            Self::CutOff { kind, needed, there } => write!(
                f,
                "its {} label says that {needed} bytes of each device are used, and {there} lie before it",
                kind.name()
            ),
        }
    }
}

impl std::error::Error for Damage {}

/// Reads fields one after another.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Fields<'_> {
    /// The next bytes; zeroes behind the end.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut field = [0; N];
        if let Some(there) = self.bytes.get(self.at..self.at + N) {
            field.copy_from_slice(there);
        }
        self.at += N;
        field
    }

    fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.take())
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    /// A name; `None` where it does not end, or is no text.
    fn name(&mut self) -> Option<String> {
        let field: [u8; NAME] = self.take();
        let end = field.iter().position(|byte| *byte == 0)?;
        let is_text = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
        let text = &field[..end];
        text.iter().all(is_text).then(|| String::from_utf8_lossy(text).into_owned())
    }
}

impl Label {
    /// What bytes say that begin as a label of this class.
    ///
    /// # Errors
    /// [`Damage`] when they are none; whether they fit a device, [`check`](Self::check) says.
    pub fn parse(kind: Kind, bytes: &[u8]) -> Result<Self, Damage> {
        let mut fields = Fields { bytes, at: NAME };
        let version = fields.u32();
        let (first, last) = kind.versions();
        if !(first..=last).contains(&version) {
            return Err(Damage::Version(kind, version));
        }
        let wrong = |what: &str| Damage::Field(kind, what.to_owned());
        let name = fields.name();
        let mut label = Self {
            kind,
            version,
            name: String::new(),
            id: fields.u32(),
            disk: 0,
            number: 0,
            members: 0,
            genid: 0,
            syncid: 0,
            priority: 0,
            slice: 0,
            balance: 0,
            stripe: 0,
            array_bytes: 0,
            sector_bytes: 0,
            sync_offset: 0,
            array_flags: 0,
            device_flags: 0,
            provider: String::new(),
            provider_bytes: 0,
        };
        label.body(&mut fields);
        let provider = fields.name();
        if version >= kind.since().1 {
            label.provider_bytes = fields.u64();
        }
        if kind.is_redundant() {
            let end = fields.at;
            let hash: [u8; HASH] = fields.take();
            let hashed = bytes.get(..end).map(Md5::digest);
            if hashed.is_none_or(|hashed| hashed[..] != hash) {
                return Err(Damage::Checksum(kind));
            }
        }
        label.name = name.filter(|name| !name.is_empty()).ok_or_else(|| wrong("it has no name"))?;
        label.provider = provider.ok_or_else(|| wrong("the name of its provider is no name"))?;
        label.sane().map_err(|what| Damage::Field(kind, what))?;
        Ok(label)
    }

    /// Fields between the array's number and the provider.
    fn body(&mut self, fields: &mut Fields<'_>) {
        match self.kind {
            Kind::Mirror => {
                self.disk = fields.u32();
                self.members = fields.u8().into();
            }
            Kind::Raid3 | Kind::Stripe | Kind::Concat => {
                self.number = fields.u16();
                self.members = fields.u16();
            }
        }
        if self.kind == Kind::Stripe {
            self.stripe = fields.u32();
        }
        if !self.kind.is_redundant() {
            return;
        }
        if self.version >= self.kind.since().0 {
            self.genid = fields.u32();
        }
        self.syncid = fields.u32();
        if self.kind == Kind::Mirror {
            self.priority = fields.u8();
            self.slice = fields.u32();
            self.balance = fields.u8();
        }
        self.array_bytes = fields.u64();
        self.sector_bytes = fields.u32();
        self.sync_offset = fields.u64();
        self.array_flags = fields.u64();
        self.device_flags = fields.u64();
    }

    /// Whether its fields can be.
    fn sane(&self) -> Result<(), String> {
        let (of_array, of_device) = self.kind.known();
        let sector = u64::from(self.sector_bytes);
        let least = if self.kind == Kind::Raid3 { 3 } else { 1 };
        if self.members < least {
            return Err(format!("it says that the array has {} devices", self.members));
        }
        if self.number >= self.members {
            return Err(format!("it is of device {} of {}", self.number, self.members));
        }
        if self.array_flags & !of_array != 0 || self.device_flags & !of_device != 0 {
            let (of_array, of_device) = (self.array_flags, self.device_flags);
            return Err(format!("flags {of_array:#x} and {of_device:#x} are not all known"));
        }
        if self.kind == Kind::Stripe && (!self.stripe.is_power_of_two() || self.stripe < 512) {
            return Err(format!("stripes of {} bytes", self.stripe));
        }
        if self.kind == Kind::Mirror && self.balance > 4 {
            return Err(format!("reads are shared out in way {}", self.balance));
        }
        if !self.kind.is_redundant() {
            return Ok(());
        }
        let atom = sector / self.data_members();
        let is_whole = atom * self.data_members() == sector;
        if !is_whole || !atom.is_power_of_two() || atom < SECTOR_BYTES || sector > 128 << 10 {
            return Err(format!("sectors of {sector} bytes"));
        }
        if self.array_bytes == 0 || !self.array_bytes.is_multiple_of(sector) {
            return Err(format!("{} bytes in sectors of {sector}", self.array_bytes));
        }
        Ok(())
    }

    /// Whether it is the label of a device with so many sectors, of which each has so many.
    ///
    /// # Errors
    /// [`Damage`] when it is of another one.
    pub fn check(&self, device: Sectors, sector: Sectors) -> Result<(), Damage> {
        let (kind, there) = (self.kind, device.bytes());
        if self.provider_bytes != 0 && self.provider_bytes != there {
            return Err(Damage::Size { kind, label: self.provider_bytes, there });
        }
        let (needed, there) = (self.used(), device.0.saturating_sub(sector.0) * SECTOR_BYTES);
        if needed > there {
            return Err(Damage::CutOff { kind, needed, there });
        }
        let own = self.sector_bytes / self.data_members() as u32;
        if kind.is_redundant() && u64::from(own) < sector.bytes() {
            let what = format!("sectors of {own} bytes on a device whose have {}", sector.bytes());
            return Err(Damage::Field(kind, what));
        }
        Ok(())
    }

    /// Devices that its data are cut over.
    pub const fn data_members(&self) -> u64 {
        match self.kind {
            Kind::Raid3 => self.members as u64 - 1,
            Kind::Mirror | Kind::Stripe | Kind::Concat => 1,
        }
    }

    /// Bytes that the array needs of each device at least.
    pub const fn used(&self) -> u64 {
        match self.kind {
            Kind::Mirror | Kind::Raid3 => self.array_bytes / self.data_members(),
            Kind::Stripe => self.stripe as u64,
            Kind::Concat => SECTOR_BYTES,
        }
    }

    /// What is said of the device.
    pub const fn flags(&self) -> Flags {
        Flags::parse(self.kind, self.device_flags)
    }

    /// The array's name, safe to print.
    pub fn shown_name(&self) -> String {
        crate::printable(self.name.as_bytes())
    }

    /// What tells the array from others: its class, number and name.
    pub fn array(&self) -> ArrayId {
        let mut id: ArrayId = Md5::digest([self.kind.magic(), &self.name].join(":")).into();
        id[..4].copy_from_slice(&self.id.to_be_bytes());
        id
    }

    /// What tells the device from the others of its array, too.
    pub fn device(&self) -> [u8; 16] {
        let mut hash = Md5::new();
        hash.update(self.array());
        hash.update(self.disk.to_le_bytes());
        hash.update(self.number.to_le_bytes());
        hash.finalize().into()
    }

    /// The bytes of it.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SECTOR_BYTES as usize);
        let name = |bytes: &mut Vec<u8>, text: &str| {
            let end = bytes.len() + NAME;
            bytes.extend(text.bytes().take(NAME - 1));
            bytes.resize(end, 0);
        };
        name(&mut bytes, self.kind.magic());
        bytes.extend(self.version.to_le_bytes());
        name(&mut bytes, &self.name);
        bytes.extend(self.id.to_le_bytes());
        if self.kind == Kind::Mirror {
            bytes.extend(self.disk.to_le_bytes());
            bytes.push(self.members as u8);
        } else {
            bytes.extend(self.number.to_le_bytes());
            bytes.extend(self.members.to_le_bytes());
        }
        if self.kind == Kind::Stripe {
            bytes.extend(self.stripe.to_le_bytes());
        }
        if self.kind.is_redundant() {
            if self.version >= self.kind.since().0 {
                bytes.extend(self.genid.to_le_bytes());
            }
            bytes.extend(self.syncid.to_le_bytes());
            if self.kind == Kind::Mirror {
                bytes.push(self.priority);
                bytes.extend(self.slice.to_le_bytes());
                bytes.push(self.balance);
            }
            bytes.extend(self.array_bytes.to_le_bytes());
            bytes.extend(self.sector_bytes.to_le_bytes());
            bytes.extend(self.sync_offset.to_le_bytes());
            bytes.extend(self.array_flags.to_le_bytes());
            bytes.extend(self.device_flags.to_le_bytes());
        }
        name(&mut bytes, &self.provider);
        if self.version >= self.kind.since().1 {
            bytes.extend(self.provider_bytes.to_le_bytes());
        }
        if self.kind.is_redundant() {
            let hash = Md5::digest(&bytes);
            bytes.extend(&hash[..]);
        }
        bytes.resize(SECTOR_BYTES as usize, 0);
        bytes
    }
}
