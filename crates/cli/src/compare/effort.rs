//! How long a study takes in virtual time, told before it starts when that is long.

use raidlab_report::number;
use raidlab_study::{CellKey, Study, cells};
use raidlab_workload::WorkloadSpec;

/// What a request to a member takes a thread to model, in seconds: about what the default study takes on a
/// machine of 2020. Others are up to a few times as fast or as slow.
const SECONDS_A_REQUEST: f64 = 1e-6;
/// Studies that take less than this many seconds are started without a word.
const WORTH_A_WORD: f64 = 60.0;

/// Requests of a study to members, of the workloads whose work is known before.
fn requests(study: &Study) -> u64 {
    let of_cell = |key: &CellKey| {
        let workload = key.workload(study)?;
        let longest = study.layouts[key.layout].layout.chunk.bytes();
        // What has no chunks is asked for in pieces of this size, too.
        let longest = if longest == 0 { 512 << 10 } else { longest };
        workload.workload.requests(key.processes, longest)
    };
    let round = cells(study).iter().filter_map(of_cell).fold(0, u64::saturating_add);
    round.saturating_mul(study.rounds.into())
}

/// What the user should know before the study starts; `None` where it is over soon.
pub(in crate::compare) fn warning<'a>(study: &'a Study, threads: usize) -> Option<String> {
    let requests = requests(study);
    (seconds(requests, threads) >= WORTH_A_WORD).then(|| {
        // In requests of a byte, there are as many as bytes.
        let bytes = |spec: &'a WorkloadSpec| Some((spec.workload.requests(1, 1)?, &spec.name));
        let most = study.workloads.iter().filter_map(bytes);
        let largest = most.max().map_or_else(String::new, |(bytes, name)| {
            format!(" ({name} moves {} a process)", plain(&number::bytes(bytes)))
        });
        format!(
            "note: this study models about {:.0} million requests{largest}, which takes about {}; a \
             smaller --size, fewer --rounds or fewer layouts make it shorter, and Ctrl-C ends it with the \
             rounds that are complete",
            requests as f64 / 1e6,
            time(requests, threads)
        )
    })
}

/// What so many requests take so many threads to model.
fn seconds(requests: u64, threads: usize) -> f64 {
    requests as f64 * SECONDS_A_REQUEST / threads.max(1) as f64
}

/// The same in words.
pub(crate) fn time(requests: u64, threads: usize) -> String {
    plain(&number::duration(seconds(requests, threads)))
}

/// Whether so many requests take a thread so long that it should be told before.
pub(crate) fn is_worth_a_word(requests: u64) -> bool {
    seconds(requests, 1) >= WORTH_A_WORD
}

/// With plain blanks, as other notes have them.
pub(crate) fn plain(text: &str) -> String {
    text.replace(['\u{a0}', '\u{202f}'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default_with(size: &str) -> Study {
        let text = raidlab_study::default_study().replace("4GiB", size);
        raidlab_study::parse(&text, "default study").expect("a study")
    }

    #[test]
    fn only_long_studies_are_worth_a_word() {
        assert_eq!(warning(&default_with("4GiB"), 2), None);
        let said = warning(&default_with("4TiB"), 2).expect("a word");
        assert!(said.contains("dd-write 6MiB moves 4.00 TiB a process"), "{said}");
        assert!(said.contains("which takes about ") && said.contains(" min "), "{said}");
        // A process that moves twice as much takes twice as long.
        let (one, two) = (default_with("1TiB"), default_with("2TiB"));
        let ratio = requests(&two) as f64 / requests(&one) as f64;
        assert!((1.9..=2.0).contains(&ratio), "{ratio}");
    }
}
