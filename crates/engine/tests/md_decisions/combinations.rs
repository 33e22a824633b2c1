//! Two conditions at once, at each level with redundancy. What md and raidlab do stands in `combinations.txt`, a line
//! for each state: the kernel is asked about some of them in each run, about all with `RAIDLAB_FULL=1`.

use super::asked::{Asked, MOST, kernel};
use super::states::{self, Condition, State};
use crate::extent::Extent;
use crate::guest::guest_or_skip;
use raidlab_metadata::md::Version;

const RECORDED: &str = include_str!("combinations.txt");
/// States that the kernel is asked about in each run: half a second each.
const SAMPLE: usize = 4;

/// Who is in service, by the numbers of devices; `r` for one that is being rebuilt, `-` for no start.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Decided {
    md: [String; 2],
    reads: String,
    writes: [String; 2],
}

impl Decided {
    fn line(&self, state: &State) -> String {
        let Self { md: [md, md_run], reads, writes: [writes, run] } = self;
        format!("{state} ; {md} {md_run} ; {reads} {writes} {run}")
    }
}

/// What is recorded of the states of a version.
fn recorded(version: Version) -> Vec<(&'static str, Decided)> {
    let of_version = format!("{version} ");
    let lines = RECORDED.lines().filter(|line| line.starts_with(&of_version));
    let parsed = lines.map(|line| {
        let columns: Vec<&str> = line.split(" ; ").collect();
        let [state, md, raidlab] = columns[..] else { panic!("not three columns: {line}") };
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let [reads, writes, run] = words(raidlab).try_into().expect("three of raidlab");
        let md = words(md).try_into().expect("two of md");
        (state, Decided { md, reads, writes: [writes, run] })
    });
    parsed.collect()
}

/// What raidlab decides now, and what is recorded of md.
fn decided(asked: &Asked, recorded: &Decided) -> Decided {
    let writes = [false, true].map(|run| asked.raidlab_writes(run));
    Decided { md: recorded.md.clone(), reads: asked.raidlab_reads(), writes }
}

fn decide(version: Version, test: &str) {
    let recorded = recorded(version);
    let states = states::all(version);
    let names: Vec<String> = states.iter().map(|(state, _)| state.to_string()).collect();
    let known: Vec<&str> = recorded.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, known, "the states of combinations.txt");
    let mut wrong = Vec::new();
    for ((state, asked), (_, known)) in states.iter().zip(&recorded) {
        let now = decided(asked, known);
        if now != *known {
            wrong.push(format!("{}, recorded: {}", now.line(state), known.line(state)));
        }
    }
    let both = states.into_iter().zip(recorded).collect();
    let mut chosen = Extent::from_environment().choose(both, SAMPLE);
    while !chosen.is_empty() {
        let Some(guest) = guest_or_skip(test) else { break };
        let now: Vec<_> = chosen.drain(..MOST.min(chosen.len())).collect();
        let told = kernel(guest, &now.iter().map(|((_, asked), _)| asked).collect::<Vec<_>>());
        assert_eq!(told.len(), now.len(), "the guest tells of each");
        for (((state, _), (_, known)), md) in now.iter().zip(told) {
            // Shown when the test fails, or by --nocapture.
            println!("{state}: md {md:?}");
            if md != known.md {
                let seen = Decided { md, ..known.clone() };
                wrong.push(format!("{}, recorded: {}", seen.line(state), known.line(state)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn two_conditions_at_once_are_decided_as_recorded() {
    decide(Version::V1_2, "two_conditions_at_once_are_decided_as_recorded");
}

#[test]
fn two_conditions_at_once_are_decided_as_recorded_of_0_90() {
    decide(Version::V0_90, "two_conditions_at_once_are_decided_as_recorded_of_0_90");
}

/// Why raidlab does not do what md does; docs/md-format.md says more of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// Two halves each went on without the other: md takes one of them without a word.
    Halves,
    /// Of version 0.90 md takes back whom the newest calls faulty, one event behind.
    TakenBack,
    /// mdadm counts devices: one that just failed stands for one that is missing.
    Counted,
    /// Of version 0.90 a member that was being rebuilt has seen more than all that md starts with.
    LaterSpare,
}

/// All of them, and how many states there are of each.
const REASONS: [(Reason, usize); 4] =
    [(Reason::Halves, 134), (Reason::TakenBack, 78), (Reason::Counted, 6), (Reason::LaterSpare, 2)];

fn reason(state: &State, decided: &Decided) -> Option<Reason> {
    let Decided { md, reads, writes } = decided;
    let has = |condition: Condition| state.conditions.iter().any(|(_, one)| *one == condition);
    let is_refused = [reads, &writes[0], &writes[1]].iter().all(|ours| *ours == "-");
    let is_back = |(place, one): &(usize, Condition)| {
        *one == Condition::JustFailed && md[1].contains(&place.to_string())
    };
    if state.halves.is_some() {
        return is_refused.then_some(Reason::Halves);
    }
    if state.version == Version::V0_90 {
        if state.conditions.iter().any(is_back) {
            return Some(Reason::TakenBack);
        }
        return (has(Condition::HalfRebuilt) && is_refused).then_some(Reason::LaterSpare);
    }
    let is_uncounted = has(Condition::Missing) || has(Condition::Stale);
    let is_asked_for = writes[0] == "-" && writes[1] == md[1];
    (has(Condition::JustFailed) && is_uncounted && is_asked_for).then_some(Reason::Counted)
}

/// Whether somebody is in service that md does not have.
fn is_laxer(ours: &str, md: &str) -> bool {
    let rebuilt = |of: &str| of.matches('r').count();
    let is_unknown = |number: char| number != '-' && number != 'r' && !md.contains(number);
    ours.chars().any(is_unknown) || rebuilt(ours) > rebuilt(md)
}

/// Reading is compared with a start by `--run`: who is missing is not asked for, and nothing is rebuilt.
#[test]
fn raidlab_is_nowhere_laxer_than_md_and_stricter_for_a_reason() {
    let mut counts = REASONS.map(|(reason, _)| (reason, 0));
    for version in [Version::V1_2, Version::V0_90] {
        for ((state, _), (_, decided)) in states::all(version).iter().zip(recorded(version)) {
            let Decided { md, reads, writes } = &decided;
            let read = match md[1].replace('r', "") {
                nobody if nobody.is_empty() => "-".to_owned(),
                some => some,
            };
            let line = decided.line(state);
            let both = [(reads, &read), (&writes[0], &md[0]), (&writes[1], &md[1])];
            assert!(both.iter().all(|(ours, md)| !is_laxer(ours, md)), "laxer: {line}");
            if both.iter().all(|(ours, md)| ours == md) {
                continue;
            }
            let why = reason(state, &decided).unwrap_or_else(|| panic!("for no reason: {line}"));
            let count = counts.iter_mut().find(|(reason, _)| *reason == why).expect("listed");
            count.1 += 1;
        }
    }
    assert_eq!(counts, REASONS, "states that are decided otherwise");
}
