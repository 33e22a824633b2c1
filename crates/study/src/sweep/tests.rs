use super::*;

const STUDY: &str = r#"
title = "Chunks"
rounds = 2
seed = 5
drives = [{ name = "nas", model = "nas-8tb-7200", count = 4 }]
layouts = [{ level = "raid5", members = 4, chunk = "64KiB" }, { level = "raid1", members = 2 }]
workloads = [{ kind = "random-read", size = "256KiB" }]
"#;

fn sweep(text: &str) -> Result<Sweep, String> {
    let text = format!("{STUDY}{text}");
    Sweep::parse(&text, "mine.toml", Path::new("")).map_err(|error| error.to_string())
}

const AXES: &str = r#"
[[sweep.axes]]
key = "layouts.chunk"
values = ["64KiB", "512KiB"]

[[sweep.axes]]
keys = ["drives[nas].model", "processes"]
values = [["nas-8tb-7200", [1]], ["ssd-sata-1tb", [1, 4]]]

[[sweep.axes]]
key = "host.kernel"
values = ["linux-6.1", "linux-6.12"]
"#;

#[test]
fn axes_are_multiplied_and_the_last_changes_fastest() {
    let sweep = sweep(AXES).expect("good");
    assert_eq!(sweep.points(), 8);
    let shown = |number| {
        let keys = sweep.point(number).keys;
        keys.iter()
            .map(|(key, value)| format!("{key}={}", value.toml()))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        shown(0),
        "layouts.chunk=\"64KiB\" drives[nas].model=\"nas-8tb-7200\" processes=[1] host.kernel=\"linux-6.1\""
    );
    assert_eq!(
        shown(1),
        "layouts.chunk=\"64KiB\" drives[nas].model=\"nas-8tb-7200\" processes=[1] host.kernel=\"linux-6.12\""
    );
    assert_eq!(
        shown(6),
        "layouts.chunk=\"512KiB\" drives[nas].model=\"ssd-sata-1tb\" processes=[1, 4] host.kernel=\"linux-6.1\""
    );
    let one = sweep.study(&sweep.point(7)).expect("a study").study;
    assert_eq!(
        one.layouts[0].layout.chunk.bytes(),
        512 << 10,
        "raid1, which has no chunk, is left as it is"
    );
    assert_eq!(one.processes, [1, 4]);
    assert_eq!(one.drives[0].source, crate::DriveSource::Model("ssd-sata-1tb".into()));
    assert!(one.host.is_some());
    assert_eq!(one.max_rounds, 2);
    assert_eq!(sweep.models(), ["nas-8tb-7200", "ssd-sata-1tb"]);
    assert_eq!(sweep.axes()[1], ("drives[nas].model, processes".to_owned(), 2));
}

#[test]
fn another_value_changes_no_other_point() {
    let (one, more) = (
        sweep(AXES).expect("good"),
        sweep(&AXES.replace("\"512KiB\"]", "\"128KiB\", \"512KiB\"]")).expect("good"),
    );
    let seeds = |sweep: &Sweep| -> Vec<_> {
        (0..sweep.points())
            .map(|number| {
                let point = sweep.point(number);
                let one = sweep.study(&point).expect("a study");
                (point.keys, one.study.seed, one.canonical)
            })
            .collect()
    };
    let (one, more) = (seeds(&one), seeds(&more));
    assert_eq!((one.len(), more.len()), (8, 12));
    assert!(one.iter().all(|point| more.contains(point)));
    let mut all: Vec<u64> = more.iter().map(|point| point.1).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 12, "each has its own seed");
    // The order of axes says nothing of a point.
    let mut parts: Vec<&str> = AXES.split("[[sweep.axes]]").skip(1).collect();
    parts.reverse();
    let turned: String = parts.iter().map(|part| format!("\n[[sweep.axes]]{part}")).collect();
    let turned = seeds(&sweep(&turned).expect("good"));
    assert!(
        one.iter()
            .all(|point| turned.iter().any(|other| (other.1, &other.2) == (point.1, &point.2)))
    );
}

#[test]
fn points_share_their_draws_where_the_file_says_so() {
    let shared = sweep(&format!("\n[sweep]\ndraws = \"shared\"\n{AXES}")).expect("good");
    let seed = |number| shared.study(&shared.point(number)).expect("a study").study.seed;
    assert_eq!((seed(0), seed(7)), (5, 5));
    let why = sweep(&format!("\n[sweep]\ndraws = \"mine\"\n{AXES}")).expect_err("unknown");
    assert!(why.contains("it is `own` or `shared`"), "{why}");
}

#[test]
fn a_point_is_a_study_file() {
    let sweep = sweep(AXES).expect("good");
    for number in 0..8 {
        let point = sweep.point(number);
        let text = sweep.study_file(&point).expect("a study");
        let read =
            crate::parse(&text, "point.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
        let own = sweep.study(&point).expect("a study").study;
        let plain = |study: Study| Study { origin: crate::Origin::default(), ..study };
        assert_eq!(plain(read), plain(own));
    }
}

#[test]
fn samples_are_points_too() {
    let text = "\n[sweep.samples]\ncount = 100\nmethod = \"sobol\"\n\n\
                [[sweep.samples.of]]\nkey = \"seed\"\nfrom = 1\nto = 1000000\n\n\
                [[sweep.axes]]\nkey = \"processes\"\nvalues = [[1], [2]]\n";
    let more = sweep(&text.replace("100\n", "200\n")).expect("good");
    let sweep = sweep(text).expect("good");
    assert_eq!(sweep.points(), 200);
    assert_eq!(sweep.point(0).keys[1], sweep.point(1).keys[1], "samples change last");
    assert_ne!(sweep.point(0).keys[1], sweep.point(2).keys[1]);
    assert!((0..200).all(|number| sweep.point(number) == more.point(number)));
}

/// Samples of two keys are drawn apart, from the study's seed, at random unless the file says otherwise.
#[test]
fn keys_of_samples_are_drawn_apart() {
    let of = |head: &str, method: &str| {
        let text = format!(
            "\n[sweep.samples]\ncount = 64\n{method}\n\
             [[sweep.samples.of]]\nkey = \"rounds\"\nfrom = 1\nto = 1000\n\
             [[sweep.samples.of]]\nkey = \"max_rounds\"\nfrom = 1\nto = 1000\n"
        );
        let text = format!("{}{text}", STUDY.replace("seed = 5\n", head));
        let sweep = Sweep::parse(&text, "mine.toml", Path::new("")).expect("good");
        (0..64).map(|number| sweep.point(number).keys).collect::<Vec<_>>()
    };
    let all = of("seed = 5\n", "");
    let equal = all.iter().filter(|keys| keys[0].1 == keys[1].1).count();
    assert!(equal < 8, "{equal} of 64 have the same value twice");
    assert_eq!(all, of("seed = 5\n", "method = \"random\""));
    assert_ne!(all, of("seed = 5\n", "method = \"sobol\""));
    assert_ne!(all, of("seed = 6\n", ""), "of another seed");
    assert_eq!(of("", ""), of("seed = 1\n", ""), "where nothing is said it is 1");
}

/// A point is what its keys and the rest of the file say; what it is called and how many rounds might follow is no part
/// of it.
#[test]
fn a_title_has_no_say_in_a_point() {
    let point = |text: String| {
        let sweep = Sweep::parse(&text, "mine.toml", Path::new("")).expect("good");
        let one = sweep.study(&sweep.point(3)).expect("a study");
        (one.study.seed, one.study.rounds, one.study.max_rounds, one.canonical)
    };
    let plain = point(format!("{STUDY}{AXES}"));
    assert_eq!((plain.1, plain.2), (2, 2));
    assert_eq!(plain, point(format!("{}{AXES}", STUDY.replace("Chunks", "Other"))));
    assert_eq!(plain, point(format!("max_rounds = 9{STUDY}{AXES}")), "as many as rounds, exactly");
    let other = point(format!("{}{AXES}", STUDY.replace("seed = 5", "seed = 6")));
    assert!(other.0 != plain.0 && other.3 != plain.3, "another seed gives other draws");
}

#[test]
fn models_are_those_of_axes_and_samples() {
    let text = "\n[[sweep.axes]]\nkey = \"drives[nas].model\"\nvalues = [\"ssd-sata-1tb\", \"a.toml\"]\n\n\
                [sweep.samples]\ncount = 9\n\n\
                [[sweep.samples.of]]\nkey = \"drives\"\n\
                values = [[{ name = \"nas\", model = \"b.toml\", count = 4 }]]\n\n\
                [[sweep.samples.of]]\nkey = \"workloads.size\"\nvalues = [\"256KiB\", \"512KiB\"]\n";
    assert_eq!(sweep(text).expect("good").models(), ["a.toml", "b.toml", "ssd-sata-1tb"]);
}

#[test]
fn samples_with_a_step_are_spread_evenly_over_all_values() {
    for (key, ends, values) in [
        ("seed", "from = 10\nto = 20\nstep = 5", 3),
        ("workloads.size", "from = \"1MiB\"\nto = \"4MiB\"\nstep = \"1MiB\"", 4),
        ("precision", "from = \"1%\"\nto = \"2%\"\nstep = \"0.5%\"", 3),
        // The end is none of the grid's.
        ("seed", "from = 10\nto = 22\nstep = 5", 3),
    ] {
        let text = format!(
            "\n[sweep.samples]\ncount = 120\nmethod = \"sobol\"\n\n\
             [[sweep.samples.of]]\nkey = \"{key}\"\n{ends}\n"
        );
        let sweep = sweep(&text).expect("good");
        let mut seen = std::collections::BTreeMap::new();
        for number in 0..120 {
            *seen.entry(format!("{:?}", sweep.point(number).keys)).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), values, "{seen:?}");
        let even = 120 / values;
        assert!(seen.values().all(|times| (even - 2..=even + 2).contains(times)), "{seen:?}");
    }
}

#[test]
fn what_cannot_be_swept_is_refused() {
    let axis = |key: &str, values: &str| format!("\n[[sweep.axes]]\nkey = \"{key}\"\n{values}\n");
    let why = |text: &str| match sweep(text) {
        Ok(_) => panic!("{text}"),
        Err(why) => why,
    };
    assert!(why("").contains("has no sweep"));
    assert!(why("\n[sweep]\n").contains("[[sweep.axes]]"));
    assert!(why("\n[sweep]\naxis = 1\n").contains("did you mean `axes`"));
    assert!(
        why(&axis("layouts.chunks", "values = [\"64KiB\"]"))
            .contains("mine.toml:9: layouts.chunks: unknown key (did you mean `chunk`?)"),
        "{}",
        why(&axis("layouts.chunks", "values = [\"64KiB\"]"))
    );
    assert!(why(&axis("layouts[7].chunk", "values = [\"64KiB\"]")).contains("there are 2"));
    assert!(why(&axis("drives[nsa].count", "values = [4]")).contains("did you mean `nas`"));
    assert!(why(&axis("processes", "values = [[1], 2]")).contains("must be a list"));
    assert!(
        why(&format!("{}{}", axis("seed", "values = [1]"), axis("seed", "values = [2]")))
            .contains("twice")
    );
    let long = "from = 1\nto = 1000000";
    let absurd = why(&format!(
        "{}{}{}",
        axis("seed", long),
        axis("rounds", long),
        axis("member_size", "from = \"1GiB\"\nto = \"8GiB\"\nstep = \"4KiB\"")
    ));
    assert!(
        absurd.contains("1000000 x 1000000 x 1835009 are 1835009000000000000 points"),
        "{absurd}"
    );
    let error = crate::parse(&format!("{STUDY}{AXES}"), "mine.toml").expect_err("not a study");
    assert!(error.to_string().contains("raidlab sweep"), "{error}");
}

#[test]
fn what_does_not_go_together_is_an_error_of_its_point() {
    let sweep = sweep("\n[[sweep.axes]]\nkey = \"layouts[0].members\"\nvalues = [4, 9]\n")
        .expect("4 can be");
    assert!(sweep.study(&sweep.point(0)).is_ok());
    let error = sweep.study(&sweep.point(1)).expect_err("there are 4 drives");
    assert_eq!(error.kind, Kind::TooFewDrives);
    assert_eq!(error.line, Some(9), "where the sweep sets it: {error}");
}
