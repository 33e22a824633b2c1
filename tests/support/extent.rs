//! How much of a large set of cases a test goes through.
#![allow(dead_code, reason = "no test uses every helper")]

/// What the test command sets to 1 for a run of everything.
const FULL: &str = "RAIDLAB_FULL";
/// What it sets to a number, another one for every commit.
const SAMPLE: &str = "RAIDLAB_SAMPLE";

/// All cases, or a sample of them that goes by a number: other numbers, other cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of them.
    All,
    /// Those of this number.
    Sample(u32),
}

impl Extent {
    /// As the test command wants it; sample 0 where nobody says.
    pub(crate) fn from_environment() -> Self {
        let variable = |name| std::env::var(name).ok();
        Self::from_variables(variable(FULL).as_deref(), variable(SAMPLE).as_deref())
    }

    fn from_variables(full: Option<&str>, sample: Option<&str>) -> Self {
        match (full, sample) {
            (Some("1"), _) => Self::All,
            (Some(other), _) => panic!("{FULL}={other}: expected 1, or leave it out"),
            (None, None) => Self::Sample(0),
            (None, Some(sample)) => match sample.parse() {
                Ok(number) => Self::Sample(number),
                Err(error) => panic!("{SAMPLE}={sample}: {error}"),
            },
        }
    }

    /// The same for a test of `tests/slow.txt`, of which a commit runs every fourth: by the number itself it would see
    /// the same cases each time.
    pub(crate) fn of_slow_tests(self) -> Self {
        match self {
            Self::Sample(number) => Self::Sample(number / 4),
            Self::All => Self::All,
        }
    }

    /// Seeds: `each` of them, others for each number, or those of the first `windows` numbers.
    pub(crate) fn seeds(self, each: u64, windows: u64) -> std::ops::Range<u64> {
        match self {
            Self::All => 0..windows * each,
            Self::Sample(number) => {
                let first = u64::from(number) * each;
                first..first + each
            }
        }
    }

    /// All of `cases`, or `most` of them from one on that goes by the number, in their order.
    /// Consecutive numbers take one window of `most` after the other, all around.
    pub(crate) fn choose<T>(self, mut cases: Vec<T>, most: usize) -> Vec<T> {
        match self {
            Self::Sample(number) if cases.len() > most => {
                let start = number as usize % cases.len() * most % cases.len();
                cases.rotate_left(start);
                cases.truncate(most);
                cases
            }
            _ => cases,
        }
    }
}

#[test]
fn consecutive_samples_take_every_case() {
    for (cases, most) in [(14, 3), (6, 2), (5, 4), (7, 1)] {
        let rounds = 0..cases;
        let chosen = rounds.map(|n| Extent::Sample(n).choose((0..cases).collect(), most));
        let mut seen: Vec<u32> = chosen.flatten().collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len() as u32, cases, "{most} of {cases}");
    }
    assert_eq!(Extent::Sample(1).choose(vec!['a', 'b', 'c'], 2), ['c', 'a']);
    assert_eq!(Extent::Sample(u32::MAX).choose(vec!['a'], 2), ['a']);
    assert_eq!(Extent::All.choose(vec!['a', 'b'], 1), ['a', 'b']);
}

#[test]
fn slow_tests_see_every_case_too() {
    for share in 0..4 {
        let runs = (0..64).filter(|number| number % 4 == share);
        let chosen = runs.map(|n| Extent::Sample(n).of_slow_tests().choose((0..16).collect(), 2));
        let mut seen: Vec<u32> = chosen.flatten().collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 16, "share {share}");
    }
    assert_eq!(Extent::All.of_slow_tests(), Extent::All);
}

#[test]
fn a_full_run_goes_before_a_sample() {
    assert_eq!(Extent::from_variables(Some("1"), Some("7")), Extent::All);
    assert_eq!(Extent::from_variables(None, Some("7")), Extent::Sample(7));
    assert_eq!(Extent::from_variables(None, None), Extent::Sample(0));
}
