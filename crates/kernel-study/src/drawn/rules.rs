//! Which pairs of values cannot be, and why.

use super::FACTORS;

/// Values of one factor that cannot be together with values of another.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// A factor and its values.
    pub one: (&'static str, &'static [&'static str]),
    /// Another factor and its values.
    pub other: (&'static str, &'static [&'static str]),
    /// Why not.
    pub reason: &'static str,
}

const fn rule(
    one: (&'static str, &'static [&'static str]),
    other: (&'static str, &'static [&'static str]),
    reason: &'static str,
) -> Rule {
    Rule { one, other, reason }
}

const CHUNKS: &[&str] = &["16KiB", "64KiB", "128KiB", "512KiB", "1MiB"];
const STRIPED: &[&str] = &["raid0", "raid4", "raid5", "raid6", "raid10n2", "raid10f2", "raid10o2"];
const SEVERAL: &[&str] = &["2", "3", "4", "5", "6", "8"];
const LOST: &[&str] = &["degraded", "rebuilding"];
const BITMAPS: &[&str] = &["one page", "several pages"];
const NO_FIO: &[&str] = &["dd-write", "dd-read", "cp", "small-files", "tar", "bonnie", "tiobench"];
const ON_FILES: &[&str] = &["cp", "small-files", "tar", "bonnie", "tiobench", "sync-and-async"];

/// All of them.
pub const RULES: [Rule; 27] = [
    rule(("level", &["single"]), ("members", SEVERAL), "a single drive is one"),
    rule(("level", &["linear"]), ("members", &["1"]), "one drive alone is called single"),
    rule(("level", STRIPED), ("members", &["1"]), "needs two members and more"),
    rule(("level", &["raid1"]), ("members", &["1"]), "needs two members and more"),
    rule(("level", &["raid4", "raid5"]), ("members", &["2"]), "needs three members and more"),
    rule(("level", &["raid6"]), ("members", &["2", "3"]), "needs four members and more"),
    rule(("level", &["raid1"]), ("members", &["5", "6", "8"]), "nobody keeps so many copies"),
    rule(("level", &["single", "linear", "raid1"]), ("chunk", CHUNKS), "has no chunks"),
    rule(("level", STRIPED), ("chunk", &["none"]), "has chunks"),
    rule(("members", &["1"]), ("chunk", CHUNKS), "a single drive has no chunks"),
    rule(("level", &["single", "linear", "raid0"]), ("state", LOST), "survives no loss"),
    rule(("members", &["1"]), ("state", LOST), "survives no loss"),
    rule(("level", &["single", "linear", "raid0"]), ("bitmap", BITMAPS), "has no redundancy"),
    rule(("members", &["1"]), ("bitmap", BITMAPS), "has no redundancy"),
    rule(
        ("filesystem", &["none"]),
        ("mode", &["buffered", "fsync"]),
        "block devices are read and written past the page cache",
    ),
    rule(("filesystem", &["none"]), ("workload", ON_FILES), "needs files"),
    rule(("workload", &["dd-read", "random-read"]), ("mode", &["fsync"]), "writes nothing"),
    rule(("workload", &["cp", "tar"]), ("mode", &["direct", "fsync"]), "the program cannot"),
    rule(("workload", &["small-files", "bonnie"]), ("mode", &["direct"]), "the program cannot"),
    rule(("workload", &["sync-and-async"]), ("mode", &["buffered", "direct"]), "one of two syncs"),
    rule(("workload", NO_FIO), ("depth", &["8", "32"]), "one at a time"),
    rule(("workload", &["sync-and-async"]), ("depth", &["8", "32"]), "one at a time"),
    rule(
        ("mode", &["buffered", "fsync"]),
        ("depth", &["8", "32"]),
        "the page cache does one at a time",
    ),
    rule(("workload", NO_FIO), ("think", &["50ms", "500ms"]), "the program cannot"),
    rule(("workload", &["bonnie"]), ("length", &["long"]), "its phases are many"),
    rule(("workload", &["bonnie", "tar"]), ("processes", &["8"]), "moves too much for a guest"),
    rule(("depth", &["8", "32"]), ("think", &["500ms"]), "who thinks so long does one at a time"),
];

/// Why two values cannot be together; factors and values by their places.
pub(super) fn excluded(one: (usize, usize), other: (usize, usize)) -> Option<&'static str> {
    let named =
        |(factor, value): (usize, usize)| (FACTORS[factor].name, FACTORS[factor].values[value]);
    let (one, other) = (named(one), named(other));
    let is =
        |(name, values): (&str, &[&str]), of: (&str, &str)| name == of.0 && values.contains(&of.1);
    let found = RULES.iter().find(|rule| {
        (is(rule.one, one) && is(rule.other, other)) || (is(rule.one, other) && is(rule.other, one))
    });
    found.map(|rule| rule.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fio_is_whatever_thinks_or_queues() {
        const FIO: &[&str] = &["random-read", "random-write", "random-mixed", "sync-and-async"];
        let workloads = FACTORS[4].values.iter();
        assert!(workloads.copied().all(|one| FIO.contains(&one) != NO_FIO.contains(&one)));
    }
}
