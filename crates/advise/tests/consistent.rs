//! What advice says must follow from the figures beside it: objections of a reader who saw nothing else.

use raidlab_advise::{
    Advice, InTurn, Mode, Objective, Profile, Wanted, advise, checks, commands, growth_in_words,
};

fn asked(drives: u16, drive: &str, work: &str) -> (Wanted, Advice) {
    asked_by(600, drives, drive, work)
}

fn asked_by(requests: u64, drives: u16, drive: &str, work: &str) -> (Wanted, Advice) {
    let drive = raidlab_models::load(drive).expect("compiled in");
    let mut wanted = Wanted::new(drives..=drives, drive, Profile::named(work).expect("there"));
    wanted.requests = requests;
    let advice = advise(&wanted, &InTurn).expect("there is an answer");
    (wanted, advice)
}

fn cost(advice: &Advice, at: usize, objective: Objective) -> f64 {
    advice.finalists[at].costs[objective.index()]
}

#[test]
fn who_wants_most_of_one_thing_gets_it() {
    let (_, advice) = asked(4, "nas-8tb-7200", "nas");
    for (when, objective) in [
        ("if speed counts most", Objective::Speed),
        ("if space counts most", Objective::Capacity),
        ("if safety counts most", Objective::Risk),
    ] {
        let change = advice.changes.iter().find(|one| one.when == when).expect("is asked");
        let all = (0..advice.finalists.len()).map(|at| cost(&advice, at, objective));
        let least = all.fold(f64::INFINITY, f64::min);
        let chosen = cost(&advice, change.then, objective);
        assert!(chosen < least + 1.0, "{when}: {}", advice.finalists[change.then].candidate);
    }
}

#[test]
fn commands_make_what_was_compared() {
    // A bitmap costs small random writes much, and files that are copied hardly anything, once the first bits are set.
    for (work, requests, kept) in [("vm", 600, Mode::None), ("nas", 1_500, Mode::Bitmap)] {
        let (wanted, advice) = asked_by(requests, 4, "nas-8tb-7200", work);
        assert_eq!(advice.kept(&wanted), kept, "{work}: {:?}", advice.consistency);
        let pick = &advice.finalists[advice.verdict.pick].candidate;
        let told = &commands(pick, kept)[0];
        let flag = if kept == Mode::None { "--bitmap=none" } else { "--bitmap=internal" };
        assert!(told.contains(flag), "{told}");
    }
}

#[test]
fn whoever_is_nowhere_better_is_no_alternative() {
    for work in ["surveillance", "nas", "vm"] {
        let (_, advice) = asked(5, "nas-8tb-7200", work);
        if advice.is_either() {
            assert!(advice.front.contains(&advice.verdict.next.expect("the other")), "{work}");
        }
    }
}

#[test]
fn who_keeps_up_is_not_told_apart_by_milliseconds() {
    let (_, advice) = asked(4, "nas-8tb-7200", "surveillance");
    let first = cost(&advice, 0, Objective::Tail);
    for at in 0..advice.finalists.len() {
        assert_eq!(cost(&advice, at, Objective::Tail), first, "{:?}", advice.finalists[at].costs);
    }
}

#[test]
fn what_is_checked_first_is_of_the_drives_at_hand() {
    let told = |drive: &str| {
        let (wanted, advice) = asked(2, drive, "vm");
        checks(&wanted, &advice).join("\n")
    };
    assert!(told("nas-8tb-7200").contains("scterc"));
    assert!(!told("ssd-nvme4-2tb-dc").contains("scterc"));
}

#[test]
fn growing_tells_the_chances_of_what_it_becomes() {
    let drive = raidlab_models::load("nas-8tb-7200").expect("compiled in");
    let mut wanted = Wanted::new(4..=4, drive, Profile::named("nas").expect("there"));
    (wanted.requests, wanted.later) = (300, Some(8));
    let advice = advise(&wanted, &InTurn).expect("there is an answer");
    let words: Vec<String> = advice
        .growths
        .iter()
        .map(|(at, one)| growth_in_words(&advice.finalists[*at].candidate.to_string(), one, 5.0))
        .collect();
    let grown = words.iter().find(|words| words.starts_with("raid5(4)")).expect("is grown");
    for told in ["Back up first", "losing raid5(8) in 5 years", "--raid-devices=8"] {
        assert!(grown.contains(told), "{told}: {grown}");
    }
}
