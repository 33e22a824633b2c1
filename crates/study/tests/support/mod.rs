//! What made-up runners give.

use std::ops::ControlFlow;

use raidlab_core::Nanos;
use raidlab_study::{Progress, Sample};

/// A sample of this value that tells nothing else.
pub(crate) fn sample(value: f64) -> Sample {
    Sample {
        values: vec![Some(value)],
        first_done: Nanos(1),
        last_done: Nanos(2),
        bytes: 1,
        ops: 1,
        process_cpu_s: None,
        system_cpu_s: None,
        bottleneck: None,
        latency: None,
        fairness: None,
        members: None,
        bytes_written: 0,
        rebuild: None,
        warnings: Vec::new(),
        detail: raidlab_study::Detail::default(),
    }
}

/// Lets a study go on.
pub(crate) fn on(_: Progress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
