//! What a superblock says, and that of versions 1.0, 1.1 and 1.2: 256 bytes, then two for each number that a device may
//! have. That of version 0.90 is in [`super::v0`].
//!
//! [`Frame`] is the bytes, [`Superblock`] what they say. Writing one goes over the bytes that stand there and changes
//! only fields that have a name here, so that what a newer kernel added survives.

use std::ops::Range;

use raidlab_core::consistency::ArrayId;
use raidlab_core::{SECTOR_BYTES, Sector, Sectors};

use super::fields::{bytes, i32_at, put, u16_at, u32_at, u64_at};
use super::v0::{self, V0};
use super::{Features, Version};
use crate::printable;

/// The first four bytes (`MD_SB_MAGIC`).
pub(super) const MAGIC: u32 = 0xa92b_4efc;
/// Bytes before the roles.
pub(super) const HEAD: usize = 256;
/// A device has at most so much: 16 PiB. Superblocks that say more are not believed.
pub(super) const MOST_OF_DEVICE: Sectors = Sectors(1 << 45);
/// The most devices a superblock of 4 KiB has roles for.
pub(super) const MOST_DEVICES: usize = (4096 - HEAD) / 2;
/// What `resync_offset` and `recovery_offset` are when nothing is left to do.
pub const ALL: u64 = u64::MAX;
/// Events at most: so many that no array has had them, and that more can follow.
pub(super) const MOST_EVENTS: u64 = 1 << 63;

mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const MAJOR: usize = 4;
    pub(super) const FEATURES: usize = 8;
    pub(super) const PAD0: usize = 12;
    pub(super) const ARRAY: usize = 16;
    pub(super) const NAME: usize = 32;
    pub(super) const CREATED: usize = 64;
    pub(super) const LEVEL: usize = 72;
    pub(super) const LAYOUT: usize = 76;
    pub(super) const SIZE: usize = 80;
    pub(super) const CHUNK: usize = 88;
    pub(super) const MEMBERS: usize = 92;
    pub(super) const ASIDE: usize = 96;
    pub(super) const NEW_LEVEL: usize = 100;
    pub(super) const RESHAPE_POSITION: usize = 104;
    pub(super) const DELTA_DISKS: usize = 112;
    pub(super) const NEW_LAYOUT: usize = 116;
    pub(super) const NEW_CHUNK: usize = 120;
    pub(super) const NEW_OFFSET: usize = 124;
    pub(super) const DATA_OFFSET: usize = 128;
    pub(super) const DATA_SIZE: usize = 136;
    pub(super) const SUPER_OFFSET: usize = 144;
    pub(super) const RECOVERY: usize = 152;
    pub(super) const NUMBER: usize = 160;
    pub(super) const CORRECTED: usize = 164;
    pub(super) const DEVICE: usize = 168;
    pub(super) const FLAGS: usize = 184;
    pub(super) const BAD_SHIFT: usize = 185;
    pub(super) const BAD_SIZE: usize = 186;
    pub(super) const BAD_OFFSET: usize = 188;
    pub(super) const UPDATED: usize = 192;
    pub(super) const EVENTS: usize = 200;
    pub(super) const RESYNC: usize = 208;
    pub(super) const CHECKSUM: usize = 216;
    pub(super) const DEVICES: usize = 220;
    pub(super) const LOGICAL_BLOCK: usize = 224;
    pub(super) const PAD3: usize = 228;
    pub(super) const ROLES: usize = super::HEAD;
}

/// Why bytes are no superblock that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Something else stands there, or nothing.
    NotMd,
    /// The major version is not 1.
    Major(u32),
    /// There are fewer bytes than it says it has.
    Short,
    /// More roles than a superblock has room for.
    Devices(u32),
    /// The checksum that stands there, and that of the bytes.
    Checksum {
        /// What stands there.
        stored: u32,
        /// What the bytes amount to.
        computed: u32,
    },
    /// It says that it stands in another sector: a copy, or that of a partition seen on the whole disk.
    Misplaced(Sector),
    /// Bytes that must be zero are not.
    Padding,
    /// Less than 10 sectors of data.
    NoData,
    /// Data begin before the superblock ends.
    Overlap,
    /// More sectors than a device has, or an array, and of what.
    Beyond(&'static str, u64),
    /// More events than can be counted on from.
    Events(u64),
    /// A bad-block log longer than a page.
    BadBlockLog(u16),
    /// A version 0 whose minor version is neither 90 nor, while a reshape goes on, 91.
    Minor(u32),
    /// Of version 0.90: a number of members that it has no room for.
    Members(u32),
    /// Of version 0.90: more data than the device has before the superblock.
    CutOff {
        /// Sectors used of each member.
        size: u64,
        /// Sectors that are there.
        there: u64,
    },
    /// Of version 0.90, which does not say where it stands: it lies within a partition of this whole disk.
    OfPartition,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotMd => f.write_str("there is no md superblock"),
            Self::Major(major) => write!(f, "the superblock is of version {major}, not 1"),
            Self::Short => f.write_str("the superblock is cut off"),
            Self::Devices(devices) => {
                write!(
                    f,
                    "the superblock says it has roles of {devices} devices, at most {MOST_DEVICES} fit"
                )
            }
            Self::Checksum { stored, computed } => {
                write!(
                    f,
                    "the checksum of the superblock is {stored:08x}, its bytes give {computed:08x}"
                )
            }
            Self::Misplaced(at) => {
                write!(
                    f,
                    "the superblock says that it stands in sector {}: it is a copy, or of a partition",
                    at.0
                )
            }
            Self::Padding => f.write_str("bytes of the superblock that must be zero are not"),
            Self::NoData => f.write_str("the superblock leaves less than 10 sectors for data"),
            Self::Overlap => f.write_str("data and superblock lie on the same sectors"),
            Self::Beyond(what, sectors) => {
                write!(f, "the superblock says {what} {sectors} sectors, more than there can be")
            }
            Self::Events(events) => {
                write!(f, "the superblock counts {events} events, more than there can be")
            }
            Self::BadBlockLog(size) => {
                write!(f, "the bad-block log has {size} sectors, at most 8 are possible")
            }
            Self::Minor(minor) => {
                write!(f, "the superblock is of version 0.{minor}, of which only 0.90 and 0.91 are known")
            }
            Self::Members(members) => {
                let most = v0::MOST_DEVICES;
                write!(f, "the superblock says that the array has {members} members, 1 to {most} are possible")
            }
            Self::CutOff { size, there } => write!(
                f,
                "the superblock says that {size} sectors of each member are used, and {there} lie before it"
            ),
            Self::OfPartition => f.write_str(
                "the superblock of version 0.90 lies within a partition of this disk: it is the partition's, which is \
                 what must be given",
            ),
        }
    }
}

impl std::error::Error for Damage {}

/// The bytes of a superblock.
#[derive(Clone, Debug)]
pub struct Frame<T>(T);

impl<T: AsRef<[u8]>> Frame<T> {
    /// Bytes that say that they are a superblock of major version 1, and are all there.
    ///
    /// # Errors
    /// [`Damage`] when they are not. Whether they are right, [`check`](Self::check) says.
    pub fn new(bytes: T) -> Result<Self, Damage> {
        let all = bytes.as_ref();
        if all.len() < HEAD {
            return Err(if u32_at(all, at::MAGIC) == MAGIC {
                Damage::Short
            } else {
                Damage::NotMd
            });
        }
        if u32_at(all, at::MAGIC) != MAGIC {
            return Err(Damage::NotMd);
        }
        match u32_at(all, at::MAJOR) {
            1 => {}
            major => return Err(Damage::Major(major)),
        }
        let devices = u32_at(all, at::DEVICES);
        if devices as usize > MOST_DEVICES {
            return Err(Damage::Devices(devices));
        }
        if all.len() < HEAD + 2 * devices as usize {
            return Err(Damage::Short);
        }
        Ok(Self(bytes))
    }

    /// Where it says it stands.
    pub fn super_offset(&self) -> Sector {
        Sector(u64_at(self.0.as_ref(), at::SUPER_OFFSET))
    }

    /// The checksum that stands there.
    pub fn stored_checksum(&self) -> u32 {
        u32_at(self.0.as_ref(), at::CHECKSUM)
    }

    /// The checksum of the bytes: 32-bit words added in 64 bits, the field itself as zero, two bytes left over as a
    /// number of their own; both halves of the sum added.
    pub fn checksum(&self) -> u32 {
        let used = &self.0.as_ref()[..HEAD + 2 * u32_at(self.0.as_ref(), at::DEVICES) as usize];
        let (words, left) = used.as_chunks::<4>();
        let mut sum: u64 = words.iter().map(|word| u64::from(u32::from_le_bytes(*word))).sum();
        sum -= u64::from(self.stored_checksum());
        if let [low, high] = left {
            sum += u64::from(u16::from_le_bytes([*low, *high]));
        }
        (sum as u32).wrapping_add((sum >> 32) as u32)
    }

    /// Whether it is one that the kernel would take, standing in this sector.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, stands: Sector) -> Result<(), Damage> {
        let all = self.0.as_ref();
        let (stored, computed) = (self.stored_checksum(), self.checksum());
        if stored != computed {
            return Err(Damage::Checksum { stored, computed });
        }
        if self.super_offset() != stands {
            return Err(Damage::Misplaced(self.super_offset()));
        }
        if u32_at(all, at::PAD0) != 0 || all[at::PAD3..HEAD].iter().any(|byte| *byte != 0) {
            return Err(Damage::Padding);
        }
        if u64_at(all, at::DATA_SIZE) < 10 {
            return Err(Damage::NoData);
        }
        let ends = stands.0.saturating_add(self.sectors().0);
        let data = u64_at(all, at::DATA_OFFSET);
        if data < ends && data.saturating_add(u64_at(all, at::DATA_SIZE)) > stands.0 {
            return Err(Damage::Overlap);
        }
        // As md has it when it starts the array (`md_run`, drivers/md/md.c).
        if data < stands.0 && data.saturating_add(u64_at(all, at::SIZE)) > stands.0 {
            return Err(Damage::Overlap);
        }
        match u16_at(all, at::BAD_SIZE) {
            0..=8 => self.check_sizes(),
            size => Err(Damage::BadBlockLog(size)),
        }
    }

    /// Whether all lengths can be counted in bytes, and events can be counted on. The kernel compares lengths with the
    /// device; what is only looked at here need not be one.
    fn check_sizes(&self) -> Result<(), Damage> {
        // Of a device, and 8 EiB of an array.
        const MOST: (u64, u64) = (MOST_OF_DEVICE.0, 1 << 54);
        let all = self.0.as_ref();
        let recovers = u32_at(all, at::FEATURES) & Features::RECOVERY.0 != 0;
        for (what, at, most) in [
            ("that used of each member are", at::SIZE, MOST.0),
            ("that data begin behind", at::DATA_OFFSET, MOST.0),
            ("that data have", at::DATA_SIZE, MOST.0),
            ("that a rebuild had come to", at::RECOVERY, if recovers { MOST.1 } else { u64::MAX }),
            ("that a resync had come to", at::RESYNC, MOST.1),
        ] {
            match u64_at(all, at) {
                // All of it.
                u64::MAX if what.starts_with("that a ") => {}
                sectors if sectors > most => return Err(Damage::Beyond(what, sectors)),
                _ => {}
            }
        }
        match u64_at(all, at::EVENTS) {
            events if events > MOST_EVENTS => Err(Damage::Events(events)),
            _ => Ok(()),
        }
    }

    /// How many sectors are written for it.
    pub fn sectors(&self) -> Sectors {
        let bytes = HEAD + 2 * u32_at(self.0.as_ref(), at::DEVICES) as usize;
        Sectors((bytes as u64).div_ceil(SECTOR_BYTES))
    }
}

/// What a device is to its array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A member, in this place.
    Member(u16),
    /// A spare, or a number that no device has.
    Spare,
    /// A device that failed, or is missing.
    Faulty,
    /// The log device.
    Journal,
}

impl Role {
    /// As it is stored.
    pub const fn number(self) -> u16 {
        match self {
            Self::Member(place) => place,
            Self::Spare => 0xffff,
            Self::Faulty => 0xfffe,
            Self::Journal => 0xfffd,
        }
    }
}

impl From<u16> for Role {
    fn from(number: u16) -> Self {
        match number {
            0xffff => Self::Spare,
            0xfffe => Self::Faulty,
            0xfffd => Self::Journal,
            place => Self::Member(place),
        }
    }
}

/// Bytes 96 to 99, which mean one of two things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aside {
    /// Neither; they are left as they are.
    #[default]
    Nothing,
    /// The write-intent bitmap, in sectors from the superblock.
    Bitmap(i32),
    /// Where partial parity is logged, in sectors from the superblock, and for how many.
    PartialParity {
        /// Sectors from the superblock.
        offset: i16,
        /// Sectors.
        size: u16,
    },
}

/// What is being changed of the array's shape; means something with [`Features::RESHAPE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reshape {
    /// The level it becomes.
    pub level: i32,
    /// How far it is, in sectors of the array.
    pub position: u64,
    /// Members that are added.
    pub delta: i32,
    /// The layout it becomes.
    pub layout: u32,
    /// Sectors of the chunk it becomes.
    pub chunk: u32,
    /// Sectors that data move on this device, with [`Features::NEW_OFFSET`].
    pub offset: i32,
}

/// Where the list of bad blocks lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BadBlockLog {
    /// Entries count in so many sectors, as a power of two.
    pub shift: u8,
    /// Sectors; 0 for no list.
    pub size: u16,
    /// Sectors from the superblock.
    pub offset: i32,
}

/// What a superblock says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Which fields mean something.
    pub features: Features,
    /// `set_uuid`.
    pub array: ArrayId,
    /// `set_name`: `homehost:name`, then zeroes.
    pub name: [u8; 32],
    /// When the array was made: seconds since 1970 in the low 40 bits, microseconds above.
    pub created: u64,
    /// As md counts levels: linear is -1.
    pub level: i32,
    /// `layout`, whose meaning is the level's.
    pub layout: u32,
    /// Sectors used of each member; 0 where each is used to its end.
    pub size: u64,
    /// Sectors of a chunk.
    pub chunk: u32,
    /// `raid_disks`.
    pub members: u32,
    /// Bitmap or partial parity.
    pub aside: Aside,
    /// What is being changed.
    pub reshape: Reshape,
    /// The first sector of data.
    pub data_offset: u64,
    /// Sectors for data on this device.
    pub data_size: u64,
    /// The sector it stands in.
    pub super_offset: u64,
    /// Of a member that is being rebuilt how far that is; of the log device where its log begins.
    pub recovery: u64,
    /// `dev_number`: which of [`roles`](Self::roles) is this device's. No role by itself.
    pub number: u32,
    /// Reads that were corrected.
    pub corrected: u32,
    /// `device_uuid`.
    pub device: [u8; 16],
    /// 1 write-mostly, 2 fail fast.
    pub flags: u8,
    /// The list of bad blocks.
    pub bad_blocks: BadBlockLog,
    /// When it was written last, as [`created`](Self::created).
    pub updated: u64,
    /// Grows with each change of the array's state.
    pub events: u64,
    /// Up to where redundancy is consistent; [`ALL`] when it is everywhere.
    pub resync: u64,
    /// `logical_block_size` of newer kernels; 0 where nobody said.
    pub logical_block: u32,
    /// What each device is, by its number.
    pub roles: Vec<Role>,
    /// What only version 0.90 says; `None`: a newer one.
    pub v0: Option<Box<V0>>,
}

impl Superblock {
    /// What the bytes say.
    pub fn parse<T: AsRef<[u8]>>(frame: &Frame<T>) -> Self {
        let all = frame.0.as_ref();
        let (u32_of, u64_of) = (|at| u32_at(all, at), |at| u64_at(all, at));
        let features = Features(u32_of(at::FEATURES));
        let devices = u32_of(at::DEVICES) as usize;
        let role = |device| Role::from(u16_at(all, at::ROLES + 2 * device));
        Self {
            features,
            array: bytes(all, at::ARRAY),
            name: bytes(all, at::NAME),
            created: u64_of(at::CREATED),
            level: i32_at(all, at::LEVEL),
            layout: u32_of(at::LAYOUT),
            size: u64_of(at::SIZE),
            chunk: u32_of(at::CHUNK),
            members: u32_of(at::MEMBERS),
            aside: match features {
                _ if features.has(Features::BITMAP) => Aside::Bitmap(i32_at(all, at::ASIDE)),
                _ if features.has_ppl() => Aside::PartialParity {
                    offset: u16_at(all, at::ASIDE) as i16,
                    size: u16_at(all, at::ASIDE + 2),
                },
                _ => Aside::Nothing,
            },
            reshape: Reshape {
                level: i32_at(all, at::NEW_LEVEL),
                position: u64_of(at::RESHAPE_POSITION),
                delta: i32_at(all, at::DELTA_DISKS),
                layout: u32_of(at::NEW_LAYOUT),
                chunk: u32_of(at::NEW_CHUNK),
                offset: i32_at(all, at::NEW_OFFSET),
            },
            data_offset: u64_of(at::DATA_OFFSET),
            data_size: u64_of(at::DATA_SIZE),
            super_offset: u64_of(at::SUPER_OFFSET),
            recovery: u64_of(at::RECOVERY),
            number: u32_of(at::NUMBER),
            corrected: u32_of(at::CORRECTED),
            device: bytes(all, at::DEVICE),
            flags: all[at::FLAGS],
            bad_blocks: BadBlockLog {
                shift: all[at::BAD_SHIFT],
                size: u16_at(all, at::BAD_SIZE),
                offset: i32_at(all, at::BAD_OFFSET),
            },
            updated: u64_of(at::UPDATED),
            events: u64_of(at::EVENTS),
            resync: u64_of(at::RESYNC),
            logical_block: u32_of(at::LOGICAL_BLOCK),
            roles: (0..devices).map(role).collect(),
            v0: None,
        }
    }

    /// Bytes of it.
    pub fn len(&self) -> usize {
        if self.v0.is_some() { v0::BYTES } else { HEAD + 2 * self.roles.len() }
    }

    /// Whether it has no role of any device.
    pub fn is_empty(&self) -> bool {
        self.roles.is_empty()
    }

    /// Writes all fields over bytes, which are a superblock or zeroes, and the checksum. Bytes without a name
    /// here stay.
    ///
    /// # Errors
    /// [`Damage::Short`] when there are fewer bytes than it has, [`Damage::Devices`] when it has more roles than
    /// there may be.
    pub fn emit(&self, all: &mut [u8]) -> Result<(), Damage> {
        if let Some(v0) = &self.v0 {
            return v0.emit(self, all);
        }
        if self.roles.len() > MOST_DEVICES {
            return Err(Damage::Devices(self.roles.len() as u32));
        }
        if all.len() < self.len() {
            return Err(Damage::Short);
        }
        put(all, at::MAGIC, MAGIC.to_le_bytes());
        put(all, at::MAJOR, 1_u32.to_le_bytes());
        put(all, at::FEATURES, self.features.0.to_le_bytes());
        put(all, at::ARRAY, self.array);
        put(all, at::NAME, self.name);
        put(all, at::CREATED, self.created.to_le_bytes());
        put(all, at::LEVEL, self.level.to_le_bytes());
        put(all, at::LAYOUT, self.layout.to_le_bytes());
        put(all, at::SIZE, self.size.to_le_bytes());
        put(all, at::CHUNK, self.chunk.to_le_bytes());
        put(all, at::MEMBERS, self.members.to_le_bytes());
        match self.aside {
            Aside::Nothing => {}
            Aside::Bitmap(offset) => put(all, at::ASIDE, offset.to_le_bytes()),
            Aside::PartialParity { offset, size } => {
                put(all, at::ASIDE, offset.to_le_bytes());
                put(all, at::ASIDE + 2, size.to_le_bytes());
            }
        }
        let Reshape { level, position, delta, layout, chunk, offset } = self.reshape;
        put(all, at::NEW_LEVEL, level.to_le_bytes());
        put(all, at::RESHAPE_POSITION, position.to_le_bytes());
        put(all, at::DELTA_DISKS, delta.to_le_bytes());
        put(all, at::NEW_LAYOUT, layout.to_le_bytes());
        put(all, at::NEW_CHUNK, chunk.to_le_bytes());
        put(all, at::NEW_OFFSET, offset.to_le_bytes());
        self.emit_device(all);
        for (number, role) in self.roles.iter().enumerate() {
            put(all, at::ROLES + 2 * number, role.number().to_le_bytes());
        }
        let checksum = Frame(&*all).checksum();
        put(all, at::CHECKSUM, checksum.to_le_bytes());
        Ok(())
    }

    /// What is the device's own, and the state.
    fn emit_device(&self, all: &mut [u8]) {
        put(all, at::DATA_OFFSET, self.data_offset.to_le_bytes());
        put(all, at::DATA_SIZE, self.data_size.to_le_bytes());
        put(all, at::SUPER_OFFSET, self.super_offset.to_le_bytes());
        put(all, at::RECOVERY, self.recovery.to_le_bytes());
        put(all, at::NUMBER, self.number.to_le_bytes());
        put(all, at::CORRECTED, self.corrected.to_le_bytes());
        put(all, at::DEVICE, self.device);
        put(all, at::FLAGS, [self.flags]);
        put(all, at::BAD_SHIFT, [self.bad_blocks.shift]);
        put(all, at::BAD_SIZE, self.bad_blocks.size.to_le_bytes());
        put(all, at::BAD_OFFSET, self.bad_blocks.offset.to_le_bytes());
        put(all, at::UPDATED, self.updated.to_le_bytes());
        put(all, at::EVENTS, self.events.to_le_bytes());
        put(all, at::RESYNC, self.resync.to_le_bytes());
        put(all, at::DEVICES, (self.roles.len() as u32).to_le_bytes());
        put(all, at::LOGICAL_BLOCK, self.logical_block.to_le_bytes());
    }

    /// What this device is, by its own superblock; a number without a role is a spare.
    pub fn role(&self) -> Role {
        self.role_of(self.number)
    }

    /// What the device with a number is, by this superblock.
    pub fn role_of(&self, number: u32) -> Role {
        self.roles.get(number as usize).copied().unwrap_or(Role::Spare)
    }

    /// Whether redundancy was consistent everywhere when it was written.
    pub const fn is_clean(&self) -> bool {
        self.resync == ALL
    }

    /// How far a member is rebuilt that is being so; `None` where it has everything.
    pub const fn rebuilt_to(&self) -> Option<u64> {
        if self.features.has(Features::RECOVERY) { Some(self.recovery) } else { None }
    }

    /// The name, as far as it is text, and safe to print; of version 0.90, which has none, that of the device that the
    /// array was.
    pub fn name(&self) -> String {
        if let Some(v0) = &self.v0 {
            return format!("md{}", v0.md_minor);
        }
        let len = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        printable(&self.name[..len])
    }

    /// The identity as the bitmap has it: of version 0.90 in the order of the machine that wrote it.
    pub fn bitmap_id(&self) -> ArrayId {
        let mut id = self.array;
        if self.v0.as_ref().is_some_and(|v0| v0.order == v0::ByteOrder::Little) {
            v0::swap_id(&mut id);
        }
        id
    }

    /// The version, by where it stands on the device.
    pub fn version(&self) -> Version {
        match self.super_offset {
            _ if self.v0.is_some() => Version::V0_90,
            0 => Version::V1_1,
            8 => Version::V1_2,
            _ => Version::V1_0,
        }
    }

    /// The same of a log device with another tail of the journal.
    pub fn with_tail(&self, tail: u64) -> Self {
        Self { recovery: tail, ..self.clone() }
    }

    /// Sectors that the array may use of the device. Levels without redundancy use all that the device has for data,
    /// whatever their superblocks say of a size (`rdev->sectors` in drivers/md/raid0.c and md-linear.c).
    pub fn used(&self) -> u64 {
        if self.size == 0 || self.level <= 0 { self.data_size } else { self.size }
    }

    /// Whether sectors of the device are neither data nor the superblock's.
    pub(super) fn is_apart(&self, sectors: Range<u64>) -> bool {
        let data = self.data_offset..self.data_offset.saturating_add(self.used().max(1));
        let own = (self.len() as u64).div_ceil(SECTOR_BYTES);
        let own = self.super_offset..self.super_offset.saturating_add(own);
        [data, own].iter().all(|one| sectors.end <= one.start || one.end <= sectors.start)
    }

    /// The sector that something lies in which is counted from the superblock.
    pub fn beside(&self, offset: i32) -> Option<Sector> {
        self.super_offset.checked_add_signed(i64::from(offset)).map(Sector)
    }
}
