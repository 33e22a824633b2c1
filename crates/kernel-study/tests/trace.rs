//! Traces of modelled drives have the form of those of kernels.

#[path = "../../../tests/support/kept.rs"]
mod kept;

use kept::Kept;
use raidlab_core::Time;
use raidlab_kernel_lab::{Operation, Record};
use raidlab_predict::{Modelled, Trace};
use raidlab_sim::HostCosts;
use raidlab_study::{Runner, Sample, cells, parse};

/// A line as the lab would write it.
fn as_of_a_kernel(line: &str) -> Record {
    let words: Vec<&str> = line.split(' ').collect();
    let [arrived, ended, drive, letter, sector, bytes, depth] = words[..] else { panic!("{line}") };
    let number = |word: &str| word.parse::<u64>().unwrap_or_else(|_| panic!("{line}"));
    let known = [Operation::Read, Operation::Write, Operation::WriteThrough, Operation::Flush];
    let is_it = |one: &&Operation| letter.trim_end_matches('!') == one.letter().to_string();
    Record {
        arrived: Time(number(arrived)),
        ended: Time(number(ended)),
        drive: number(drive) as usize,
        operation: *known.iter().find(is_it).unwrap_or_else(|| panic!("{line}")),
        sector: number(sector),
        bytes: number(bytes),
        depth: number(depth) as usize,
        succeeded: !letter.ends_with('!'),
    }
}

#[test]
fn a_trace_of_the_model_reads_as_one_of_a_kernel() {
    let study = "title = \"traced\"\nfilesystem = \"ext4\"\nprocesses = [2]\n\
         drives = [{ name = \"nas\", model = \"nas-8tb-7200\", count = 3 }]\n\
         layouts = [{ level = \"raid5\", members = 3, chunk = \"64KiB\" }]\n\
         workloads = [{ kind = \"small-files\", files = 8, fsync = true }]\n";
    let study = parse(study, "traced.toml").unwrap_or_else(|error| panic!("{error}"));
    let traced = || {
        let kept = Kept::default();
        let trace = Trace::new(kept.clone());
        let modelled = Modelled::new(&study, HostCosts::default());
        let mut modelled = modelled.unwrap_or_else(|error| panic!("{error}")).traced_to(&trace);
        let key = cells(&study)[0];
        let sample: Sample = modelled.run(&key, 0, 7).unwrap_or_else(|error| panic!("{error}"));
        let text = String::from_utf8(kept.0.lock().expect("nobody fails").clone());
        (sample, text.expect("is text"))
    };
    let (sample, text) = traced();
    let mut lines = text.lines();
    let title = lines.next().expect("a title");
    assert!(title.starts_with("# ") && title.ends_with(", seed 7"), "{title}");
    let (mut written, mut flushed) = (0, false);
    for line in lines {
        let record = as_of_a_kernel(line);
        assert_eq!(record.to_string(), line);
        flushed |= record.operation == Operation::Flush;
        let writes = [Operation::Write, Operation::WriteThrough].contains(&record.operation);
        written += if writes { record.bytes } else { 0 };
    }
    let members = sample.members.expect("members");
    // The run's figures end with its last operation, before what is left in memory is written.
    assert!(
        flushed && written >= members.bytes_written && members.bytes_written > 0,
        "{members:?}"
    );
    assert_eq!(traced(), (sample, text), "and again");
}
