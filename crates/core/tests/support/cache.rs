//! What members hold only in their caches, for crashes: sector by sector, kept or lost.

use std::collections::BTreeMap;

use raidlab_core::contract::IoId;
use raidlab_random::SplitMix64;

/// The caches of all devices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caches {
    /// What lies on the medium.
    stable: Vec<Vec<u8>>,
    /// By device and sector: what was written since, with the moment of its completion.
    volatile: BTreeMap<(usize, usize), Vec<(u64, u8)>>,
    /// When each flush in flight was sent out.
    flushes: BTreeMap<Name, u64>,
    clock: u64,
    /// Whether crashes are to come: only then is all this kept.
    used: bool,
}

/// Names of I/Os have no order of their own.
type Name = String;

fn name(io: IoId) -> Name {
    format!("{io:?}")
}

impl Caches {
    pub(crate) fn new(devices: &[Vec<u8>]) -> Self {
        Self { stable: devices.to_vec(), ..Self::default() }
    }

    /// From now on everything is kept that a crash needs to know.
    pub(crate) fn begin(&mut self) {
        self.used = true;
    }

    pub(crate) fn is_used(&self) -> bool {
        self.used
    }

    /// A device was written from outside.
    pub(crate) fn reset(&mut self, device: usize, bytes: &[u8]) {
        self.stable[device] = bytes.to_vec();
        self.volatile.retain(|key, _| key.0 != device);
    }

    /// A write is done; what `fua` wrote is on the medium.
    pub(crate) fn wrote(&mut self, device: usize, at: usize, bytes: &[u8], fua: bool) {
        if !self.used {
            return;
        }
        self.clock += 1;
        for (sector, byte) in (at..).zip(bytes) {
            let key = (device, sector);
            if fua {
                self.volatile.remove(&key);
                self.stable[device][sector] = *byte;
            } else {
                self.volatile.entry(key).or_default().push((self.clock, *byte));
            }
        }
    }

    pub(crate) fn flush_sent(&mut self, io: IoId) {
        if self.used {
            self.flushes.insert(name(io), self.clock);
        }
    }

    /// A flush is done: what was written before it was sent is on the medium.
    pub(crate) fn flushed(&mut self, io: IoId, device: usize) {
        let Some(sent) = self.flushes.remove(&name(io)) else { return };
        self.volatile.retain(|(of, sector), writes| {
            if *of == device {
                let done = writes.iter().take_while(|(at, _)| *at <= sent).count();
                if let Some((_, byte)) = writes.drain(..done).next_back() {
                    self.stable[device][*sector] = byte;
                }
            }
            !writes.is_empty()
        });
    }

    /// Whether something of a device is in its cache only.
    pub(crate) fn is_dirty(&self, device: usize) -> bool {
        self.volatile.keys().any(|(of, _)| *of == device)
    }

    /// What is found after a crash.
    pub(crate) fn crash(&mut self, random: &mut SplitMix64) -> Vec<Vec<u8>> {
        for ((device, sector), writes) in std::mem::take(&mut self.volatile) {
            let kept = random.below(writes.len() as u64 + 1) as usize;
            if kept > 0 {
                self.stable[device][sector] = writes[kept - 1].1;
            }
        }
        self.flushes.clear();
        self.stable.clone()
    }
}
