//! An array of one level or of nested ones, for drivers that take either.

use crate::array::{Array, Config, ConfigError, Lacking, Segments, Status};
use crate::contract::{Input, IoId, Job, JobId, MemberBits, MetaIo, Output, Scratch, SegmentList};
use crate::geometry::Geometry;
use crate::layout::Layout;
use crate::stack::{Stack, StackConfig};
use crate::units::{MemberIndex, Sector, Sectors, Time};

/// An array of one level, or nested levels. The contract is [`Array`]'s; of nested levels, members are the drives,
/// counted through the lower arrays in order.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a driver has one, and goes through it for each request"
)]
pub enum Volume {
    /// One level.
    Flat(Array),
    /// Two levels.
    Nested(Box<Stack>),
}

/// The same of either.
macro_rules! either {
    ($volume:expr, $array:ident => $what:expr) => {
        match $volume {
            Volume::Flat($array) => $what,
            Volume::Nested($array) => $what,
        }
    };
}

impl Volume {
    /// An array whose redundancy is consistent; all memory is taken here.
    ///
    /// # Errors
    /// When the layout, the members or the limits cannot be; the error names the key.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        if config.layout.inner.is_none() {
            return Array::new(config).map(Self::Flat);
        }
        let stack = Stack::new(&StackConfig::of(config)?)?;
        Ok(Self::Nested(Box::new(stack)))
    }

    /// What an array of a configuration would have as [`capacity`](Self::capacity) and
    /// [`logical_block`](Self::logical_block): of one level without taking its memory.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn extent(config: &Config) -> Result<(Sectors, u32), ConfigError> {
        if config.layout.inner.is_none() {
            return Array::extent(config);
        }
        let nested = Self::new(config)?;
        Ok((nested.capacity(), nested.logical_block()))
    }

    /// The same for a driver that moves no bytes; as [`Array::without_payload`].
    #[must_use]
    pub fn without_payload(self) -> Self {
        match self {
            Self::Flat(array) => Self::Flat(array.without_payload()),
            Self::Nested(stack) => Self::Nested(Box::new(stack.without_payload())),
        }
    }

    /// The array, where it is of one level: superblocks, bitmaps and logs are there only.
    pub const fn flat(&self) -> Option<&Array> {
        match self {
            Self::Flat(array) => Some(array),
            Self::Nested(_) => None,
        }
    }

    /// Usable sectors.
    pub fn capacity(&self) -> Sectors {
        either!(self, array => array.capacity())
    }

    /// Requests start and end on multiples of this many sectors.
    pub fn logical_block(&self) -> u32 {
        either!(self, array => array.logical_block())
    }

    /// The levels with their parameters.
    pub fn layout(&self) -> &Layout {
        either!(self, array => array.layout())
    }

    /// Where everything lies on the drives.
    pub fn geometry(&self) -> &Geometry {
        either!(self, array => array.geometry())
    }

    /// How many segments a request may have.
    pub fn most_segments(&self) -> u32 {
        either!(self, array => array.most_segments())
    }

    /// The scratch buffers the driver provides.
    pub fn scratch(&self) -> Scratch {
        either!(self, array => array.scratch())
    }

    /// Whether a request may be handed in now.
    #[inline]
    pub fn can_accept(&self) -> bool {
        either!(self, array => array.can_accept())
    }

    /// Takes one input; as [`Array::handle`].
    #[inline]
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        either!(self, array => array.handle(now, input));
    }

    /// The next output; as [`Array::poll`].
    #[inline]
    pub fn poll(&mut self) -> Option<Output> {
        either!(self, array => array.poll())
    }

    /// The segments of a list, in order; valid until its I/O or job is completed.
    #[inline]
    pub fn segments<'a>(&'a self, list: &SegmentList) -> Segments<'a> {
        either!(self, array => array.segments(list))
    }

    /// The operands of a job; `None` when it is no longer wanted.
    #[inline]
    pub fn job(&self, job: JobId) -> Option<Job<'_>> {
        either!(self, array => array.job(job))
    }

    /// A metadata I/O that was sent out; nested levels have none.
    #[inline]
    pub fn meta(&self, io: IoId) -> Option<&MetaIo> {
        self.flat()?.meta(io)
    }

    /// Whether an I/O in flight is one of background work; nested levels have none.
    #[inline]
    pub fn is_background(&self, io: IoId) -> bool {
        self.flat().is_some_and(|array| array.is_background(io))
    }

    /// Whether a drive is out of service, or the array that it is of.
    pub fn is_failed(&self, drive: MemberIndex) -> bool {
        either!(self, array => array.is_failed(drive))
    }

    /// The place of what is to replace a drive.
    pub fn replacement(&self, drive: MemberIndex) -> MemberIndex {
        either!(self, array => array.replacement(drive))
    }

    /// The place of the log device, whether there is one or not.
    pub fn journal(&self) -> MemberIndex {
        either!(self, array => array.journal())
    }

    /// Below this sector a drive is good; [`Sector::MAX`] unless it, or the array that it is of, is being rebuilt.
    pub fn good_to(&self, drive: MemberIndex) -> Sector {
        either!(self, array => array.good_to(drive))
    }

    /// What a range lacks of the level's redundancy, as [`Array::lacking`]; of nested levels the worst holds for all.
    pub fn lacking(&self, at: Sector, most: Sectors) -> (Lacking, Sectors) {
        match self {
            Self::Flat(array) => array.lacking(at, most),
            Self::Nested(stack) => {
                let status = stack.status();
                let (member, rebuilt) = (status.failed != [0; 2], status.rebuilding != [0; 2]);
                (Lacking { member, rebuilt, consistency: false }, most)
            }
        }
    }

    /// Whether some data can be had from nobody, with the members that are out of service or not rebuilt and, if one
    /// is named, without that one too. Of nested levels, of the first 128 drives.
    pub fn is_lost_without(&self, member: Option<MemberIndex>) -> bool {
        let status = self.status();
        let bit = |set: MemberBits, one: MemberIndex| {
            set.get(one.at() / 64).is_some_and(|word| word >> (one.at() % 64) & 1 == 1)
        };
        let is_out = |one| bit(status.failed, one) || bit(status.rebuilding, one);
        self.geometry().is_lost_without(&|one| is_out(one) || member == Some(one))
    }

    /// How the array is. Of nested levels, sets of members are of the first 128 drives.
    pub fn status(&self) -> Status {
        either!(self, array => array.status())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Config;
    use crate::contract::{Admin, IoOp, Record, Request, RequestId, Segment};
    use crate::layout::Level;

    fn volume(layout: Layout, consistency: crate::array::Consistency) -> Volume {
        let mut config = Config::uniform(layout, Sectors(640));
        config.settings.consistency = consistency;
        config.limits.requests = 2;
        Volume::new(&config).expect("possible")
    }

    #[test]
    fn a_volume_is_its_array() {
        let resync = crate::array::Consistency::Resync;
        let mut volume = volume(Layout::new(Level::Raid1, 2), resync);
        let token = crate::contract::Token(0);
        let segments = [Segment { token, offset: 0, len: 8 }];
        for id in 0..2 {
            assert!(volume.can_accept());
            let (at, len) = (Sector(0), Sectors(8));
            let (id, op) = (RequestId(id), IoOp::Write);
            let request = Request { id, op, at, len, segments: &segments, fua: false };
            volume.handle(Time(1), Input::Request(request));
        }
        assert!(!volume.can_accept(), "that is as many as it takes");
        let mut metas = Vec::new();
        while let Some(output) = volume.poll() {
            if let Output::Meta { io } = output {
                metas.extend(volume.meta(io).copied());
            }
        }
        assert_eq!(metas.len(), 2);
        assert!(metas.iter().all(|meta| matches!(meta.record, Record::Superblock(_))));
        assert_eq!(
            (volume.replacement(MemberIndex(1)), volume.journal()),
            (MemberIndex(3), MemberIndex(4))
        );
        assert!(!volume.is_failed(MemberIndex(1)));
        volume.handle(Time(2), Input::Admin(Admin::Fail(MemberIndex(1))));
        assert!(volume.is_failed(MemberIndex(1)) && volume.status().failed == [0b10, 0]);
    }
}
