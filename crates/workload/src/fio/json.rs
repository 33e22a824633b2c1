//! A run as `fio --output-format=json` prints it, as far as there are figures: what fio counts and a
//! target does not tell (submission latency, context switches, page faults, disk statistics) is left
//! out, not zero.

use serde::ser::{Serialize, Serializer};

use super::figures::{self, Direction, Entry, entries};
use super::workload::FioWorkload;
use crate::record::{IoRecord, RunRecord};

/// A value whose members stay in the order of fio.
enum Node {
    Number(u64),
    Real(f64),
    Text(String),
    Object(Vec<(String, Node)>),
    List(Vec<Node>),
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Real(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Object(members) => serializer.collect_map(members.iter().map(|(k, v)| (k, v))),
            Self::List(items) => serializer.collect_seq(items),
        }
    }
}

fn object<const N: usize>(members: [(&str, Node); N]) -> Node {
    Node::Object(members.map(|(key, node)| (key.to_string(), node)).into())
}

fn number(number: impl Into<u64>) -> Node {
    Node::Number(number.into())
}

fn options(given: &[(String, String)]) -> Node {
    let pair = |(key, value): &(String, String)| (key.clone(), Node::Text(value.clone()));
    Node::Object(given.iter().map(pair).collect())
}

/// The document, ending with a newline.
pub(super) fn json(workload: &FioWorkload, record: &RunRecord) -> String {
    let jobs = entries(workload, record).iter().map(job).collect();
    let mut members = vec![("fio version".to_string(), Node::Text(super::text::version()))];
    if !workload.global.is_empty() {
        members.push(("global options".to_string(), options(&workload.global)));
    }
    members.push(("jobs".to_string(), Node::List(jobs)));
    let document = Node::Object(members);
    // A tree of texts and numbers can be written whatever is in it.
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn job(entry: &Entry<'_>) -> Node {
    let job = entry.job;
    let longest = entry.read.runtime.max(entry.write.runtime);
    let mut members = vec![
        ("jobname", Node::Text(job.name.clone())),
        ("groupid", number(entry.group)),
        ("error", number(0u64)),
        ("elapsed", number(longest.0.div_ceil(1_000_000_000))),
        ("job options", options(&job.given)),
    ];
    if let Some(text) = &job.description {
        members.push(("desc", Node::Text(text.clone())));
    }
    members.push(("read", direction(&entry.read, &job.percentiles)));
    members.push(("write", direction(&entry.write, &job.percentiles)));
    let sync = object([
        ("total_ios", number(entry.sync.count)),
        ("lat_ns", latency(&entry.sync, Some(&job.percentiles))),
    ]);
    members.push(("sync", sync));
    members.push(("job_runtime", number(figures::millis(entry.runtime))));
    if let Some([user, system]) = entry.cpu_percent() {
        members.push(("usr_cpu", Node::Real(user)));
        members.push(("sys_cpu", Node::Real(system)));
    }
    let parts = entry.latencies();
    let class = |from: usize| -> Vec<(String, Node)> {
        figures::steps().zip(&parts[from..]).map(|(name, part)| (name, Node::Real(*part))).collect()
    };
    let mut millis = class(20);
    millis.push(("2000".into(), Node::Real(parts[30])));
    millis.push((">=2000".into(), Node::Real(parts[31])));
    members.push(("latency_ns", Node::Object(class(0))));
    members.push(("latency_us", Node::Object(class(10))));
    members.push(("latency_ms", Node::Object(millis)));
    members.push(("latency_depth", number(job.iodepth)));
    Node::Object(members.into_iter().map(|(key, node)| (key.to_string(), node)).collect())
}

fn direction(direction: &Direction, percentiles: &[f64]) -> Node {
    let (io, rate) = (&direction.io, direction.bytes_per_second());
    object([
        ("io_bytes", number(io.bytes)),
        ("io_kbytes", number(io.bytes >> 10)),
        ("bw_bytes", number(rate as u64)),
        ("bw", number(rate as u64 >> 10)),
        ("iops", Node::Real(direction.per_second())),
        ("runtime", number(direction.millis())),
        ("total_ios", number(io.count)),
        ("clat_ns", latency(io, Some(percentiles))),
        ("lat_ns", latency(io, None)),
    ])
}

fn latency(io: &IoRecord, percentiles: Option<&[f64]>) -> Node {
    let mean = if io.count == 0 { 0.0 } else { io.total.0 as f64 / io.count as f64 };
    let mut members = vec![
        ("min".to_string(), number(io.min.0)),
        ("max".to_string(), number(io.max.0)),
        ("mean".to_string(), Node::Real(mean)),
        ("stddev".to_string(), Node::Real(io.deviation() * 1e9)),
        ("N".to_string(), number(io.count)),
    ];
    if let Some(percentiles) = percentiles.filter(|_| io.count > 0) {
        let one = |percent: &f64| {
            let latency = io.quantile(percent / 100.0).unwrap_or_default();
            (format!("{percent:.6}"), number(latency.0))
        };
        let all = percentiles.iter().map(one).collect();
        members.push(("percentile".to_string(), Node::Object(all)));
    }
    Node::Object(members)
}
