//! Bugs that can be planted in an array, to see whether its checker finds them.
//!
//! Only in builds with debug assertions, such as those of tests: in others nothing can be planted and the questions
//! cost nothing.

macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A bug, each at one place of the planner.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Bug { $(#[doc = $text] $(#[$doc])* $name,)* }

        impl Bug {
            /// All of them, in order.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name, as commands take it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// What goes wrong.
            pub const fn what(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

bugs! {
    // Reads, writes and flushes.
    SkipFlushOneMember = "a flush leaves out the last member in service",
    AckFlushEarly = "a flush is answered when the first member has flushed",
    AckWriteEarly = "a mirrored write is answered when the first copy is written",
    DropFua = "a durable write goes to the members as an ordinary one",
    SkipMirrorLock = "overlapping mirrored writes are not put one after another",
    SkipStripeLock = "two writes work on the same rows of a stripe at once",
    ReadFailedMember = "a member out of service is read",
    WriteSkipsCopy = "a write of more than one run leaves out the last copy of its last piece",
    ReadModifyOldParity = "a read-modify-write leaves the old data of its last chunk out",
    DegradedSkipsParity = "a write to a lost chunk is answered without parity having been written",
    WrongQOrder = "writes count the data for Q in array order on left-asymmetric raid6",
    RecoverFromStaleParity = "lost data are computed from parity on a member out of service",
    ReadErrorIgnored = "a read that a member could not do is answered as if it had",
    WriteErrorIgnored = "a member that could not write stays in service",
    TimeoutIgnored = "a write that was not answered in time counts as written",
    FlushErrorIgnored = "a member that could not flush stays in service",
    WriteAfterFailure = "an array that lost too many members goes on writing",
    SalvageGuesses = "a read of what too few members hold is answered with what is there",
    GatherDropsLast = "neighbouring writes of a batch are joined without the last one's data",
    CacheNotInvalidated = "the stripe cache keeps parity that a later write has changed",
    // Members.
    FailureNotRecorded = "a member's failure is not written to the superblocks",
    AckBeforeRecorded = "a write is answered before the failure it depends on is recorded",
    StaleMemberAccepted = "a member that missed writes is taken in service at assembly",
    DivergedAccepted = "two halves that each went on alone are assembled together",
    BadBlockForgotten = "a bad block that a rebuild left is read as if it were good",
    HealBeforeLock = "a healed block is written without waiting for a write to it",
    HealWrongPlace = "a healed block is written one sector further on",
    // Background work.
    RebuildReadAhead = "a member being rebuilt is read beyond what is rebuilt",
    RebuildStopsShort = "a rebuild leaves out the last range",
    RebuildFrontierEarly = "a rebuilt range counts as good before it is written",
    RebuildCheckpointEarly = "how far a rebuild is gets recorded before the drive was flushed",
    RebuildUnlocked = "a rebuild does not wait for writes to the same range",
    RebuildMissesWrites = "new writes do not go to a member being rebuilt",
    RebuildGuesses = "a rebuild writes what a source that could not be read left in memory",
    ReplaceMissesWrites = "new writes do not go to the replacement",
    ReplaceUnflushed = "a replacement takes over before it was flushed",
    ReplaceResumedDirty = "a replacement goes on where it was though writes were under way",
    ResyncSkipsRange = "a resync leaves out every eighth range",
    ResyncCleanEarly = "the array is marked clean before the resync is done",
    CheckWrites = "a check writes parity anew where it disagrees",
    RepairWrongBlock = "a repair writes the block after the guilty one",
    RepairGuesses = "a repair that cannot name the guilty block writes parity anew",
    // Consistency.
    DirtyFlagLate = "a write goes out before the array is marked dirty",
    CleanUnflushed = "the array is marked clean before the members were flushed",
    BitmapBitLate = "a write goes out before its bit of the bitmap is set",
    BitmapClearUnflushed = "a bit is cleared before the members were flushed",
    BitmapClearBusy = "a bit is cleared while a write to its range is under way",
    BitmapClearDegraded = "bits are cleared while a member is away",
    ReAddTooOld = "a member comes back by a bitmap that does not reach back far enough",
    ReplayMissing = "after a crash nothing is replayed from the log",
    // Logs.
    PplAfterData = "data are written before the partial parity is logged",
    PplReusedEarly = "a place of the partial-parity log is used again before the stripe is durable",
    PplWrongXor = "partial parity leaves out the last chunk that is not written",
    PplOldestWins = "of two entries for a stripe the older one is applied last",
    JournalAfterData = "data are written before the journal has them",
    JournalNotDurable = "a journal entry is written without being made durable",
    JournalRetiredEarly = "a journal entry is retired before the members were flushed",
    JournalSkipsParity = "a replay of the journal leaves parity out",
    JournalOldestWins = "the journal is replayed from the newest entry to the oldest",
}
