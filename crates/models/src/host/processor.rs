//! The processors of the studies: what calls and copying cost on them.
//!
//! All figures are **estimates** from the memory of the time: copying between the page cache and a
//! process goes through memory twice (and a third time where a cache line is read before it is
//! written), in loops that reach half to two thirds of the bus, with the costs of the page cache for
//! each page on top. Calls are scaled by clock from 1 µs for a read of a page on 1 GHz.

use raidlab_core::units::Nanos;

use super::spec::{CallCosts, HostSpec};

/// A processor with its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// The name in study files.
    pub name: &'static str,
    /// Cores.
    pub cores: u32,
    /// CPU time of calls, and copying.
    pub costs: CallCosts,
    /// CPU time of a request to the array: block layer, driver and interrupt.
    pub request: Nanos,
    /// Bytes of parity operands read per second, out of the cache.
    pub parity_rate: u64,
}

const fn processor(
    name: &'static str,
    cores: u32,
    megahertz: u64,
    copy_rate: u64,
    parity_rate: u64,
) -> Processor {
    // Clocks of a call, an operation on names (ext3 with its journal handle), an entry of a directory
    // and a request: estimates, as a Pentium III of 1 GHz takes some 1, 15, 0.3 and 15 µs.
    let call = Nanos(1_000_000 / megahertz);
    let name_of = Nanos(15_000_000 / megahertz);
    // A byte through `putc`: 65 clocks, as bonnie++ of the time wrote some 12 MB/s at 800 MHz.
    let character = 65_000_000 / megahertz;
    let entry = Nanos(300_000 / megahertz);
    let costs = CallCosts { call, name: name_of, entry, character, copy_rate };
    Processor { name, cores, costs, request: Nanos(15_000_000 / megahertz), parity_rate }
}

impl Processor {
    /// All of them.
    pub const ALL: [Self; 5] = [
        // pata-2005. One channel of PC100 or PC133 memory, 0.8 to 1.06 GB/s; the processor's copying
        // loops move 200 to 300 MB/s (STREAM "copy" gives 400 to 500 with both directions counted).
        // Parity: kernels boot with 1.7 GB/s in the cache at this clock; half out of it.
        processor("pentium3-860", 1, 860, 250_000_000, 800_000_000),
        // ite8212-2006: K8 at 2.0 GHz, two channels of DDR400 at 6.4 GB/s, of which one core gets about
        // a half; three passes make 1.1 GB/s. The study ran on one of its two cores.
        processor("athlon64-x2-3800", 2, 2_000, 1_100_000_000, 2_500_000_000),
        // sata-2018: 1.6 GHz (socket 754) or 1.83 GHz (socket A), one channel of DDR400 or DDR333 at
        // 2.7 to 3.2 GB/s: two thirds of that in three passes.
        processor("sempron-2600", 1, 1_600, 700_000_000, 1_700_000_000),
        // sas-2008: Xeon E5345 or E5410 at 2.33 GHz, front-side bus at 1,333 MT/s, fully buffered
        // memory with long latency: a core gets about 4 GB/s in three passes.
        processor("xeon-2330-quad", 4, 2_330, 1_400_000_000, 3_000_000_000),
        // freebsd-2007: K8 at 2.6 GHz, two channels of DDR2-800, one core gets about 5 GB/s.
        processor("athlon-x2-5000", 2, 2_600, 1_600_000_000, 3_200_000_000),
    ];

    /// The processor of this name. `None` when there is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name == name)
    }
}

impl HostSpec {
    /// With the cores and CPU times of a processor; a study that limits cores sets
    /// [`cores`](Self::cores) afterwards.
    #[must_use]
    pub fn with_processor(self, processor: &Processor) -> Self {
        Self { cores: processor.cores, costs: processor.costs, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_processors_copy_more_slowly() {
        let old = Processor::named("pentium3-860").expect("known");
        let spec = HostSpec::default().with_processor(&old);
        assert_eq!((spec.cores, spec.costs.copy(1_000_000)), (1, Nanos::from_millis(4)));
        assert_eq!(spec.costs.call, Nanos(1_162));
        for one in Processor::ALL {
            assert!(one.costs.copy_rate >= old.costs.copy_rate, "{}", one.name);
            HostSpec::default().with_processor(&one).check().expect("can be");
        }
        assert_eq!(Processor::named("486"), None);
    }
}
