//! `raidlab advise` as its users call it: what it answers, and what it says when there is no answer.

use crate::support::{Scratch, ends_on_signals, raidlab};
use serde_json::Value;

/// Short runs: these tests are about the answer's form.
const SHORT: [&str; 4] = ["--requests", "300", "--threads", "2"];

fn advise(arguments: &[&str]) -> (Option<i32>, String, String) {
    let ran = raidlab([&["advise"], &SHORT[..], arguments].concat());
    (ran.code, ran.stdout, ran.stderr)
}

#[test]
fn ctrl_c_ends_advice_and_leaves_no_file() {
    let words = ["advise", "--drives", "8..24", "--work", "nas", "--quiet"];
    ends_on_signals("advise-interrupted", &words);
}

#[test]
fn an_answer_has_all_its_parts() {
    let directory = Scratch::new("advise");
    let html = directory.path().join("advice.html");
    let html = html.to_str().expect("text");
    let asked = ["--drives", "4", "--work", "vm", "--drives-later", "6", "--json", "-"];
    let (code, json, error) = advise(&[&asked[..], &["--html", html]].concat());
    assert_eq!(code, Some(0), "{error}");
    let advice: Value = serde_json::from_str(&json).expect("a document");
    let finalists = advice["finalists"].as_array().expect("a list");
    let named = |name: &Value| finalists.iter().any(|one| one["name"] == *name);
    assert!(named(&advice["recommended"]) && named(&advice["runner_up"]));
    assert!(
        advice["note"] == "RAID is not a backup"
            && !advice["warnings"].as_array().expect("some").is_empty()
    );
    assert!(advice["budget"]["requests"].as_u64().expect("a number") > 10_000);
    let sure = advice["sure"].as_f64().expect("a chance");
    assert_eq!(advice["either"].as_bool(), Some(sure < 0.95));
    for one in finalists {
        // Of short runs it is assumed.
        let hours = |key: &str| one[key].as_f64();
        assert!(hours("rebuild_hours").is_some() != hours("rebuild_hours_assumed").is_some());
        let rebuild = hours("rebuild_hours").or(hours("rebuild_hours_assumed")).expect("hours");
        assert!(
            (5.0..200.0).contains(&rebuild),
            "a rebuild of 8 TB beside work a third of the time: {rebuild}"
        );
    }
    let grows = advice["growth"].as_array().expect("a list");
    assert!(grows.iter().any(|one| one["grows"] == true) && !advice["commands"][0].is_null());
    let page = std::fs::read_to_string(html).expect("a page");
    assert!(page.contains("RAID is not a backup") && page.contains("mdadm --create /dev/md0"));
    // The same seed on other threads: the same answer.
    let again = ["advise", "--requests", "300", "--threads", "1"];
    let again = raidlab([&again[..], &asked].concat());
    assert_eq!(again.stdout, json);
}

/// What no layout can have is no reason to leave all of them out without a word, and 20 bytes are what was not meant.
#[test]
fn chunks_and_capacities_that_make_no_sense_are_refused() {
    let of = |flag: &str, value: &str| raidlab(["advise", "--drives", "4", flag, value]);
    of("--chunks", "48KiB").refused(&["--chunks 48KiB", "power of two"]);
    of("--chunks", "512").refused(&["--chunks", "from 4KiB on"]);
    of("--capacity", "20").refused(&["--capacity 20", "20TB"]);
}

/// A rebuild of which milliseconds were simulated is years or minutes by chance: neither is said.
#[test]
fn a_rebuild_of_which_too_little_was_simulated_is_unknown() {
    let asked = ["--drives", "4", "--work", "vm", "--drive", "ssd-sata-1tb", "--chunks", "512KiB"];
    let among = ["--among", "raid10(4),raid5(4)"];
    let (code, out, error) = advise(&[&asked[..], &among].concat());
    assert_eq!(code, Some(0), "{error}");
    let row = out.lines().find(|line| line.starts_with("*raid10(4)")).expect("a row");
    assert!(row.ends_with(" unknown"), "{row}");
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("not known under load, too little of it was simulated"), "{out}");
}

/// Who has ZFS and names two kinds is told what RAIDZ does and how the two compare; the table says whose rows it has.
#[test]
fn the_question_itself_comes_first() {
    let among = ["--drives", "4", "--work", "vm", "--among", "raid10(4),raid6(4)"];
    let asked = [&among[..], &["--chunks", "512KiB", "--software", "zfs"]].concat();
    let (code, out, error) = advise(&asked);
    assert_eq!(code, Some(0), "{error}");
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let place = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text}: {out}"));
    let all = [
        "In ZFS each block that is read takes all drives of its RAIDZ vdev",
        "raid10(4) against raid6(4): ",
        "raid10(4) (in ZFS 2 mirrors of 2)",
        "md's levels, not RAIDZ's usable",
        "the array, if all drives are of a bad batch (14 % a year fail): 1 in ",
        "zpool create -o ashift=12 POOL mirror <2 drives> mirror <2 drives>",
    ];
    assert!(all.windows(2).all(|pair| place(pair[0]) < place(pair[1])), "{out}");
    assert!(
        said.starts_with(all[0]) && !said.contains("Recommended") && !said.contains("mdadm"),
        "{out}"
    );
    let (_, json, _) = advise(&[&asked[..], &["--json"]].concat());
    let advice: Value = serde_json::from_str(&json).expect("a document");
    assert_eq!(advice["asked"]["software"], "zfs");
    assert!(advice["asked_first"][0].as_str().is_some_and(|text| text.starts_with("In ZFS")));
    // Of one candidate there is nothing to change to, and named chunks are the question.
    let one = ["--drives", "4", "--among", "raid5(4)", "--chunks", "64KiB,512KiB,2MiB"];
    let (_, out, _) = advise(&one);
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let chunk = said.split(" Recommended").next().expect("a head");
    assert!(chunk.starts_with("Chunk: ") && chunk.matches(" times its p99").count() == 2, "{out}");
    assert!(!out.contains("What would change the answer"), "{out}");
}

/// Two kinds of work on the same drives: whether one array is best for both, then each by itself.
#[test]
fn several_kinds_of_work_are_answered_for_each() {
    let asked = ["--drives", "2", "--chunks", "512KiB", "--work", "boot,nas"];
    let (code, out, error) = advise(&asked);
    assert_eq!(code, Some(0), "{error}");
    assert!(
        out.starts_with("The same for each work. boot: raid1(2); nas: raid1(2).\n\nboot\n====\n"),
        "{out}"
    );
    assert!(out.contains("\n\nnas\n===\n") && out.matches("Recommended: ").count() == 2, "{out}");
    let (code, _, error) = advise(&[&asked[..], &["--json"]].concat());
    assert!(code == Some(2) && error.contains("take one kind of work"), "{error}");
    let (code, _, error) = advise(&["--drives", "2", "--work", "boot,nsa"]);
    assert!(code == Some(2) && error.contains("did you mean `nas`"), "{error}");
}

#[test]
fn limits_that_nothing_meets_say_which_to_relax() {
    let (code, _, error) = advise(&["--drives", "4", "--capacity", "30TB", "--survive", "2"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("--capacity: 16.0 TB instead of 30.0 TB, 47 % less"), "{error}");
    let (_, _, error) = advise(&["--drives", "4..6", "--budget", "500", "--price", "200"]);
    assert!(error.contains("--budget: 800 instead of 500, 60 % more"), "{error}");
    let (code, _, error) = advise(&["--drives", "2", "--work", "vm", "--p99", "1us"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("--p99:") && error.contains("instead of"), "{error}");
    let (code, _, error) = advise(&[
        "--drives",
        "2",
        "--work",
        "surveillance",
        "--streams",
        "256",
        "--drive",
        "nas-4tb-5400",
    ]);
    assert!(code == Some(2) && error.contains("--streams: about"), "{error}");
}

#[test]
fn bad_input_is_named() {
    for (arguments, told) in [
        (&["--drives", "4", "--survive", "4"][..], "contradict each other"),
        (&["--drives", "4", "--work", "survelliance"], "did you mean `surveillance`"),
        (&["--drives", "4", "--work", "varmial"], "did you mean `varmail`"),
        (&["--drives", "4", "--workload", "mail"], "say --study, too"),
        (&["--drives", "4", "--drive", "nas-9tb-7200"], "nas-9tb-7200"),
        (&["--drives", "4", "--among", "raid6(8)"], "they contradict each other"),
        (&["--drives", "4", "--work", "vm", "--speed", "400MB/s"], "counted in I/O/s"),
        (&["--drives", "4", "--work", "vm", "--speed", "0"], "--speed 0: `vm` is counted in I/O/s"),
        (&["--drives", "4", "--work", "nas", "--speed", "2000"], "write 400MB/s"),
        (&["--drives", "x"], "--drives x"),
        (&[], "--drives is missing"),
        (&["no-such-file.toml"], "no-such-file.toml"),
        (&["--drives", "4", "--work", "surveillance", "--speed", "1MB/s"], "say --streams"),
    ] {
        let (code, _, error) = advise(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {error}");
        assert!(error.contains(told), "{arguments:?}: {error}");
    }
}

/// Few runs: two layouts with one chunk.
const FEW: [&str; 8] =
    ["--drives", "4", "--spares", "0", "--among", "raid5(4),raid10(4)", "--chunks", "512KiB"];

/// What is advised as JSON, the same on one thread and on two, and that it goes into a page.
fn advised(name: &str, arguments: &[&str]) -> (Value, String) {
    let directory = Scratch::new(name);
    let html = directory.path().join("advice.html");
    let asked = [&FEW[..], arguments, &["--json", "-"]].concat();
    let page = ["--threads", "2", "--html", html.to_str().expect("text")];
    let ran = raidlab([&["advise"], &asked[..], &page].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let again = raidlab([&["advise"], &asked[..], &["--threads", "1"]].concat());
    assert_eq!(again.stdout, ran.stdout);
    assert!(std::fs::read_to_string(html).expect("a page").contains("RAID is not a backup"));
    (serde_json::from_str(&ran.stdout).expect("a document"), ran.stderr)
}

#[test]
fn a_mail_server_is_work() {
    let (advice, _) = advised("advise-mail", &["--work", "varmail", "--requests", "300"]);
    assert_eq!(
        (&advice["asked"]["work"], &advice["asked"]["streams"]),
        (&"varmail".into(), &16.into())
    );
    for one in advice["finalists"].as_array().expect("a list") {
        let rates = &one["rates"][0];
        assert_eq!(rates["unit"], "op/s");
        for state in ["healthy", "degraded", "rebuilding"] {
            assert!(rates[state].as_f64().expect("a rate") > 1.0, "{one}");
            assert!(one["p99_s"][state].as_f64().expect("a p99") > 1e-3, "{one}");
        }
    }
}

#[test]
fn a_study_is_work() {
    let directory = Scratch::new("advise-study");
    let text = "title = \"mail and places\"\nfilesystem = \"ext4\"\nprocesses = [1, 2]\n\
        [[drives]]\nname = \"d\"\nmodel = \"nas-4tb-5400\"\n[[layouts]]\nlevel = \"single\"\n\
        [[workloads]]\nkind = \"small-files\"\nname = \"mail\"\nfiles = 40\nfsync = true\n\
        [[workloads]]\nkind = \"cp-null\"\nname = \"copy\"\nsize = \"4MiB\"\n";
    let study = directory.file("mine.toml", text);
    let study = study.to_str().expect("text");
    let (advice, told) = advised("advise-study-page", &["--study", study]);
    let name = format!("{study}: its layout and its drives are not looked at");
    assert!(told.contains(&name), "{told}");
    let rates = advice["finalists"][0]["rates"].as_array().expect("a list");
    let of: Vec<_> = rates.iter().map(|one| (&one["part"], &one["unit"])).collect();
    assert_eq!(of, [(&"mail".into(), &"files/s".into()), (&"copy".into(), &"s".into())]);
    let (one, _) = advised("advise-study-one", &["--study", study, "--workload", "copy"]);
    assert_eq!(one["finalists"][0]["rates"].as_array().map(Vec::len), Some(1));
    // A file of options may name it.
    let options =
        directory.file("options.toml", format!("study = {study:?}\nworkload = \"copy\"\n"));
    let (same, _) = advised("advise-study-options", &[options.to_str().expect("text")]);
    assert_eq!(same, one);
    // A limit is of the parts that are counted so.
    let ran = raidlab([&["advise"], &FEW[..], &["--study", study, "--speed", "1e9"]].concat());
    assert!(ran.stderr.contains("--speed: 0 % of what is asked"), "{}", ran.stderr);
    let large = directory.file("large.toml", text.replace("4MiB", "9TB"));
    let none = directory.file("none.toml", text.split("[[workloads]]").next().expect("text"));
    let raw = directory.file("raw.toml", text.replace("filesystem = \"ext4\"\n", ""));
    for (file, more, told) in [
        (study, &["--work", "vm"][..], "--work and --study: each says what the work is"),
        (study, &["--streams", "3"], "--streams and --study"),
        (study, &["--requests", "300"], "--requests and --study"),
        (study, &["--workload", "mial"], "did you mean `mail`?"),
        (study, &["--workload", "copy", "--speed", "3"], "of which less is better"),
        (study, &["--speed", "3MB/s"], "is counted in files/s: write 2000"),
        (large.to_str().expect("text"), &[], "copy on raid10(4)"),
        (none.to_str().expect("text"), &[], "workloads"),
        (raw.to_str().expect("text"), &[], "by name"),
        ("no-such-study.toml", &[], "no-such-study.toml"),
    ] {
        let ran = raidlab([&["advise"], &FEW[..], &["--study", file], more].concat());
        assert_eq!(ran.code, Some(2), "{file} {more:?}: {}", ran.stdout);
        assert!(ran.stderr.contains(told), "{file} {more:?}: {}", ran.stderr);
    }
}

#[test]
fn drives_of_a_machine_are_found() {
    let directory = Scratch::new("advise-machine");
    let disk = |name: &str, bytes: u64| {
        format!(
            r#"{{"name":"{name}","type":"disk","size":{bytes},"rota":true,"model":"X","mountpoint":null}}"#
        )
    };
    let disks = [disk("sda", 4_000_000_000_000), disk("sdb", 8_000_000_000_000)].join(",");
    let lsblk = directory.file("lsblk.json", format!(r#"{{"blockdevices":[{disks}]}}"#));
    let mdstat = directory.file("mdstat", "md0 : active raid1 sda[0] sdb[1]\n");
    let lsblk = lsblk.to_str().expect("text");
    let (code, out, error) =
        advise(&["--lsblk", lsblk, "--mdstat", mdstat.to_str().expect("text")]);
    assert_eq!(code, Some(0), "{error}");
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        out.starts_with(
            "raid1(2) has 4.0 TB: 12.0 TB of drives, less 4.0 TB beyond the smallest one"
        ),
        "{out}"
    );
    assert!(out.contains("Recommended: raid1(2)") && out.contains("4.0 TB are unused"), "{out}");
    assert!(error.contains("there is an array now: md0 raid1 sda sdb"), "{error}");
    // A size for all takes the place of sizes that differ, and there are as many drives.
    let (code, out, error) = advise(&["--lsblk", lsblk, "--size", "2TB"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(!out.contains("beyond the smallest one"), "{out}");
}

/// The 34 questions: what an answer must say and must never. All of them take minutes.
#[test]
#[ignore = "minutes: cargo test --release -p raidlab-cli --test all -- --ignored --nocapture questions"]
fn the_questions_are_answered_as_they_must_be() {
    let (mut answered, mut not_modelled, mut failed) = (0, 0, Vec::new());
    for question in questions() {
        let text = |key: &str| {
            question.get(key).and_then(|one| one.as_str()).unwrap_or_default().to_owned()
        };
        let number = question["number"].as_integer().expect("a number");
        // `RAIDLAB_QUESTIONS=3,5` asks these alone.
        let only = std::env::var("RAIDLAB_QUESTIONS").unwrap_or_default();
        if !only.is_empty() && !only.split(',').any(|one| one == number.to_string()) {
            answered += 1;
            continue;
        }
        if question.get("not_modelled").is_some() {
            println!(
                "{number}. {}\n   not what raidlab models: {}\n",
                text("asked"),
                text("not_modelled")
            );
            not_modelled += 1;
            continue;
        }
        let flags = shlex::split(&text("flags")).expect("flags");
        let flags: Vec<&str> =
            ["advise", "--quiet"].into_iter().chain(flags.iter().map(String::as_str)).collect();
        let ran = raidlab(&flags);
        println!(
            "{number}. {}\n   raidlab {}\n{}{}",
            text("asked"),
            flags.join(" "),
            ran.stdout,
            ran.stderr
        );
        answered += u32::from(ran.code == Some(0));
        let words = |key: &str| -> Vec<String> {
            let list = question[key].as_array().expect("a list").iter();
            list.map(|one| one.as_str().expect("text").to_lowercase()).collect()
        };
        // Lines are folded.
        let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        for must in words("must") {
            if !must.split('|').any(|one| said.contains(one)) {
                failed.push(format!("{number}: must say `{must}`"));
            }
        }
        failed.extend(
            words("never")
                .iter()
                .filter(|one| said.contains(*one))
                .map(|one| format!("{number}: says `{one}`")),
        );
    }
    println!("{answered} answered, {not_modelled} not what raidlab models");
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(answered + not_modelled, 34);
}

/// The file of questions, whose flags are checked without answering them.
fn questions() -> Vec<toml_edit::Table> {
    let text = include_str!("advise/questions.toml");
    let document: toml_edit::DocumentMut = text.parse().expect("TOML");
    let list = document["question"].as_array_of_tables().expect("questions");
    list.iter().cloned().collect()
}

#[test]
fn there_are_34_questions() {
    let questions = questions();
    assert_eq!(questions.len(), 34);
    for (at, question) in questions.iter().enumerate() {
        assert_eq!(question["number"].as_integer(), Some(at as i64 + 1));
        assert!(question.get("flags").is_some() != question.get("not_modelled").is_some());
        assert!(question.get("flags").is_none() || question.get("must").is_some());
    }
}
