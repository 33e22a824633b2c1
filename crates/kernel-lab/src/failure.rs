//! Why a run ends before the guest has powered off.

use std::fmt;
use std::io;

use raidlab_core::units::Time;

use crate::paths::PathError;

/// Why a run cannot go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// A connection of the guest was closed: it has powered off, or it stopped.
    Closed,
    /// A guest that was started has not come to its clock.
    Unconnected {
        /// For how many seconds of real time it was waited.
        seconds: u64,
    },
    /// The guest said something that the protocol does not have at this point.
    Protocol(String),
    /// The guest named memory that it has not shared.
    Address {
        /// The guest-physical address.
        address: u64,
        /// How many bytes from there on.
        length: usize,
    },
    /// Nobody has anything to do: the guest waits for ever and no request is under way.
    Deadlock {
        /// The virtual time at which everything came to rest.
        now: Time,
        /// When the guest asked to run, if it asked at all.
        asked: Option<Time>,
    },
    /// The guest said nothing for too long, in real time.
    Silence {
        /// The virtual time at which it last ran.
        now: Time,
        /// For how many seconds it was waited.
        seconds: u64,
    },
    /// The drives hold more bytes that differ from zero than they may.
    Full {
        /// What they may hold together, in bytes.
        limit: u64,
    },
    /// There can be no such guest: no kernel, too much memory, paths that cannot be, a setting that its kernel refuses.
    Refused(String),
    /// It was to end: Ctrl-C, or another signal.
    Interrupted,
    /// The operating system refused something.
    System {
        /// What was to be done.
        what: String,
        /// What it said.
        error: io::Error,
    },
}

impl Failure {
    /// A refusal of the operating system, with what was to be done.
    pub(crate) fn system(what: impl Into<String>, error: impl Into<io::Error>) -> Self {
        Self::System { what: what.into(), error: error.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => write!(f, "the guest closed its connection"),
            Self::Unconnected { seconds } => write!(
                f,
                "the guest has not connected to its clock within {seconds} s of real time: this machine is too busy, \
                 or the kernel is none of `cargo xtask kernel`"
            ),
            Self::Protocol(what) => write!(f, "the guest broke the protocol: {what}"),
            Self::Address { address, length } => {
                write!(f, "the guest has no {length} bytes of memory at {address:#x}")
            }
            Self::Deadlock { now, asked } => {
                write!(f, "deadlock of the clock at {}: no request is under way, and ", At(*now))?;
                match asked {
                    Some(at) => write!(f, "the guest waits until {}, which is never", At(*at)),
                    None => write!(f, "the guest waits without having asked for a time"),
                }
            }
            Self::Silence { now, seconds } => write!(
                f,
                "the guest hangs: it has said nothing for {seconds} s of real time, in which it came to {} (it waits \
                 for ever, or loops without sleep: computing takes no time)",
                At(*now)
            ),
            Self::Full { limit } => {
                write!(f, "the drives hold more than {} MiB of data", limit >> 20)
            }
            Self::Refused(what) => write!(f, "{what}"),
            Self::Interrupted => write!(f, "interrupted"),
            Self::System { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// A virtual time in seconds, to the nanosecond.
struct At(Time);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0.0 / 1_000_000_000, self.0.0 % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadlock_is_named_with_both_times() {
        let failure = Failure::Deadlock { now: Time(1_500_000_007), asked: Some(Time(1 << 63)) };
        let text = failure.to_string();
        assert!(
            text.contains("1.500000007 s") && text.contains("9223372036.854775808 s"),
            "{text}"
        );
    }
}
