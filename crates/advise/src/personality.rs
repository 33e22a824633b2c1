//! The personalities of filebench as kinds of work: how long they run, and on how many files.

use raidlab_workload::{Better, Metric};

use crate::profile::Counted;

/// A personality.
#[derive(Debug)]
pub(crate) struct Personality {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) source: &'static str,
    pub(crate) busy: f64,
    /// Its threads.
    pub(crate) threads: u32,
    /// Bytes a second that each thread must get.
    pub(crate) rate: Option<f64>,
    /// Reads and writes of a thread each time that it has done everything.
    requests: u64,
    /// So many times as long as other work: readers of oltp wait for writers from 3,000 posts on, and do not before.
    longer: u64,
}

/// All of them.
pub(crate) const ALL: [Personality; 6] = [
    Personality {
        name: "fileserver",
        about: "50 people make, write, append to, read, delete and look up files of 128 KiB",
        source: "filebench's fileserver, on ext4",
        busy: 0.3,
        threads: 50,
        rate: None,
        requests: 3,
        longer: 1,
    },
    Personality {
        name: "varmail",
        about: "a mail server: 16 threads deliver, read and delete mail, each delivery durable",
        source: "filebench's varmail, on ext4",
        busy: 0.3,
        threads: 16,
        rate: None,
        requests: 4,
        longer: 1,
    },
    Personality {
        name: "webserver",
        about: "100 threads read pages of 16 KiB and append to a log",
        source: "filebench's webserver, on ext4",
        busy: 0.3,
        threads: 100,
        rate: None,
        requests: 11,
        longer: 1,
    },
    Personality {
        name: "webproxy",
        about: "a cache of pages: 100 threads replace one and read five",
        source: "filebench's webproxy, on ext4",
        busy: 0.3,
        threads: 100,
        rate: None,
        requests: 6,
        longer: 1,
    },
    Personality {
        name: "oltp",
        about: "a database: 200 processes read 2 KiB, ten write and one logs, coupled by semaphores",
        source: "filebench's oltp, on ext4",
        busy: 0.5,
        threads: 200,
        rate: None,
        requests: 1,
        longer: 2,
    },
    Personality {
        name: "videoserver",
        about: "48 viewers are sent 2 MiB a second each, and a video is replaced each 10 s",
        source: "filebench's videoserver, on ext4",
        busy: 0.5,
        threads: 48,
        rate: Some(VIEWER),
        requests: 1,
        longer: 1,
    },
];

/// Bytes a second of a viewer: 96 events of a MiB for 48 of them.
const VIEWER: f64 = 2.0 * MIB as f64;
const MIB: u64 = 1 << 20;
/// Videos, and the size of each and the time to the next new one, both a 320th of filebench's: laying them out
/// would take most of the time.
const VIDEOS: u64 = 32 + 194;
const VIDEO: u64 = 32 * MIB;
const INTERVAL: &str = "31250us";

impl Personality {
    /// Flowops a second, or bytes where they come at a rate of their own.
    pub(crate) const fn counted(&self) -> Counted {
        if self.rate.is_some() {
            return Counted::Read;
        }
        let ops = Metric { name: "ops_per_s", unit: "op/s", better: Better::Higher };
        // Of its metrics the p99 is the fourth.
        Counted::Metric(ops, Some(3))
    }
}

/// A personality of about so many reads and writes.
pub(crate) fn parameters(
    name: &str,
    threads: u32,
    requests: u64,
    space: u64,
) -> Vec<(String, String)> {
    let (each, longer) =
        ALL.iter().find(|one| one.name == name).map_or((1, 1), |one| (one.requests, one.longer));
    let loops = (requests * longer / (each * u64::from(threads))).max(1);
    let mut all = vec![("personality", name.to_owned()), ("threads", threads.to_string())];
    // As many files as filebench has, but no more than a short run can meet: making them would take most of the time.
    let files = |usual: u64| {
        let met = u64::from(threads) * 10 * loops;
        met.min(usual.max(u64::from(threads) * 10)).to_string()
    };
    match name {
        "fileserver" => all.push(("files", files(10_000))),
        "varmail" => all.push(("files", files(1_000))),
        "webproxy" => all.push(("files", files(10_000))),
        "videoserver" => {
            // All of them take a quarter of the array at most, and the events are as many as the viewers are sent.
            let size = (space / 4 / VIDEOS).min(VIDEO) / MIB * MIB;
            all.push(("size", format!("{}B", size.max(MIB))));
            all.push(("interval", INTERVAL.to_owned()));
            all.push(("rate", (u64::from(threads) * 2).to_string()));
        }
        _ => {}
    }
    if name == "videoserver" {
        // Eight reads a second each; long enough for the events to be what limits them.
        let seconds = (requests / (8 * u64::from(threads))).max(1);
        all.push(("time", format!("{seconds}s")));
    } else {
        all.push(("loops", loops.to_string()));
    }
    all.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str, threads: u32, requests: u64, space: u64) -> Vec<(String, String)> {
        parameters(name, threads, requests, space)
    }

    fn value(of: &[(String, String)], key: &str) -> Option<String> {
        of.iter().find(|(one, _)| one == key).map(|(_, value)| value.clone())
    }

    /// Ten times as many files as a short run meets, up to filebench's own number.
    #[test]
    fn files_are_no_more_than_a_run_can_meet() {
        for (name, usual) in [("fileserver", 10_000), ("varmail", 1_000), ("webproxy", 10_000)] {
            let short = told(name, 4, 1, 1 << 40);
            assert_eq!(
                value(&short, "files"),
                Some("40".into()),
                "{name}: one loop of four threads"
            );
            let some = told(name, 4, 2_000, 1 << 40);
            let loops: u64 =
                value(&some, "loops").and_then(|one| one.parse().ok()).expect("a number");
            assert!(loops > 1);
            assert_eq!(value(&some, "files"), Some((40 * loops).min(usual).to_string()), "{name}");
            let long = told(name, 4, 100_000_000, 1 << 40);
            assert_eq!(value(&long, "files"), Some(usual.to_string()), "{name}");
            let many = told(name, 5_000, 100_000_000_000, 1 << 40);
            assert_eq!(value(&many, "files"), Some("50000".into()), "{name}: ten for each thread");
        }
        assert_eq!(value(&told("oltp", 4, 2_000, 1 << 40), "files"), None);
    }

    /// A quarter of the array at most, in whole MiB; two events and eight reads a second for each viewer.
    #[test]
    fn videos_take_a_quarter_of_the_array_at_most() {
        let size =
            |space: u64| value(&told("videoserver", 4, 2_000, space), "size").expect("a size");
        assert_eq!(size(1 << 50), format!("{VIDEO}B"));
        assert_eq!(size(4 * VIDEOS * (10 * MIB + 5)), format!("{}B", 10 * MIB));
        assert_eq!(size(1), format!("{MIB}B"));
        let all = told("videoserver", 4, 3_200, 1 << 50);
        assert_eq!(
            (value(&all, "rate"), value(&all, "time"), value(&all, "loops")),
            (Some("8".into()), Some("100s".into()), None)
        );
        assert_eq!(value(&told("videoserver", 4, 1, 1 << 50), "time"), Some("1s".into()));
    }

    /// filebench's own files (workloads/*.f): threads, and the flowops of a loop that read or write.
    #[test]
    fn personalities_are_filebench_s() {
        for (name, threads, requests) in [
            ("fileserver", 50, 3),
            ("varmail", 16, 4),
            ("webserver", 100, 11),
            ("webproxy", 100, 6),
            ("oltp", 200, 1),
            ("videoserver", 48, 1),
        ] {
            let one = ALL.iter().find(|one| one.name == name).expect("there");
            assert_eq!((one.threads, one.requests), (threads, requests), "{name}");
            assert_eq!(one.rate.is_some(), name == "videoserver", "{name}");
            assert!(one.about.contains(&threads.to_string()), "{name}: {}", one.about);
        }
        // 96 events of a MiB a second for 48 viewers.
        assert_eq!(ALL[5].rate, Some(96.0 * f64::from(1 << 20) / 48.0));
        // About as many reads and writes as are asked for, by whole loops; of oltp twice as many.
        let loops = |name: &str| {
            let found = told(name, 10, 6_600, 1 << 40);
            value(&found, "loops").and_then(|one| one.parse::<u64>().ok()).expect("loops")
        };
        let names = ["fileserver", "varmail", "webserver", "webproxy", "oltp"];
        assert_eq!(names.map(loops), [220, 165, 60, 110, 1_320]);
        let metric = |name: &str| ALL.iter().find(|one| one.name == name).expect("there").counted();
        assert_eq!((metric("videoserver"), metric("oltp").unit()), (Counted::Read, "op/s"));
    }
}
