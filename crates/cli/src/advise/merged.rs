//! Options from elsewhere: a file, the machine, answers to questions. Each is a name with a text, as a flag has it.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::Command;

use clap::Parser;
use raidlab_advise::Machine;
use raidlab_core::Size;
use raidlab_core::suggest::did_you_mean;
use toml_edit::{DocumentMut, Item, Value};

use super::args::AdviseOptions;
use crate::failure::Failure;
use crate::output::note;

/// What a file may name: options, with hyphens or underscores.
const KEYS: [&str; 27] = [
    "drives",
    "drives-later",
    "drive",
    "size",
    "sizes",
    "work",
    "study",
    "workload",
    "streams",
    "busy",
    "capacity",
    "survive",
    "p99",
    "speed",
    "price",
    "budget",
    "drive-watts",
    "watts",
    "prefer",
    "software",
    "spares",
    "among",
    "chunks",
    "replace",
    "afr",
    "years",
    "requests",
];

/// Options by themselves.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Alone {
    #[command(flatten)]
    options: AdviseOptions,
}

/// Options as flags, then of the file, of the machine, of the answers.
pub(super) fn all(options: &AdviseOptions) -> Result<AdviseOptions, Failure> {
    let mut all = options.clone();
    if let Some(path) = &options.file {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
        let name = path.display().to_string();
        merge(&mut all, parsed(&name, &pairs(&name, &text)?)?);
    }
    if let Some(machine) = machine(options)? {
        let found = of_machine(&machine)?;
        merge(&mut all, parsed("lsblk", &found)?);
    }
    if options.ask {
        if !std::io::stdin().is_terminal() {
            return Err(Failure::input(
                "--ask asks on a terminal, and there is none: use flags or a file",
            ));
        }
        let answers = ask(&mut std::io::stdin().lock(), &mut std::io::stderr(), &all)?;
        merge(&mut all, parsed("--ask", &answers)?);
    }
    Ok(all)
}

/// Names and texts of a file.
fn pairs(path: &str, text: &str) -> Result<Vec<(String, String)>, Failure> {
    let document: DocumentMut =
        text.parse().map_err(|error| Failure::input(format!("{path}: {error}")))?;
    let mut pairs = Vec::new();
    for (key, item) in document.iter() {
        let line =
            || 1 + text.lines().position(|line| line.trim_start().starts_with(key)).unwrap_or(0);
        let name = key.replace('_', "-");
        if !KEYS.contains(&name.as_str()) {
            let (hint, known) = (did_you_mean(&name, &KEYS), KEYS.join(", "));
            let reason = format!("unknown key{hint}; known: {known}");
            return Err(Failure::input(format!("{path}:{}: {key}: {reason}", line())));
        }
        let value = match item {
            Item::Value(Value::Array(list)) => {
                let texts: Option<Vec<String>> = list.iter().map(plain).collect();
                texts.map(|texts| texts.join(","))
            }
            Item::Value(value) => plain(value),
            _ => None,
        };
        let value = value.ok_or_else(|| {
            let reason = "write a text, a number, or a list of them";
            Failure::input(format!("{path}:{}: {key}: {reason}", line()))
        })?;
        pairs.push((name, value));
    }
    Ok(pairs)
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Float(number) => Some(number.value().to_string()),
        _ => None,
    }
}

fn parsed(source: &str, pairs: &[(String, String)]) -> Result<AdviseOptions, Failure> {
    let flags = pairs.iter().map(|(name, text)| format!("--{name}={text}"));
    let alone = Alone::try_parse_from(flags).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        Failure::input(format!("{source}: {}", first.strip_prefix("error: ").unwrap_or(first)))
    })?;
    Ok(alone.options)
}

/// Takes what is not said yet.
fn merge(all: &mut AdviseOptions, more: AdviseOptions) {
    macro_rules! take {
        ($($field:ident),*) => { $( if all.$field.is_none() { all.$field = more.$field; } )* };
    }
    // Drives and sizes say how many there are: of unequal ones not beside another number.
    let is_other = |drives: &String, sizes: &Vec<Size>| *drives != sizes.len().to_string();
    let contradict = all.drives.as_ref().zip(more.sizes.as_ref());
    let is_other = contradict.is_some_and(|(drives, sizes)| is_other(drives, sizes));
    take!(drive);
    // A size that is said takes the place of sizes, and the other way round.
    if all.sizes.is_none() {
        if all.size.is_none() {
            take!(size);
            if !is_other {
                take!(sizes);
            }
        }
        take!(drives);
    }
    // A kind of work with how much of it, or a study with which workload of it, is of one source.
    if all.work.is_none() && all.study.is_none() {
        take!(work, study, streams, requests, workload);
    }
    take!(
        drives_later,
        busy,
        capacity,
        survive,
        p99,
        speed,
        price,
        budget,
        drive_watts,
        watts,
        prefer,
        software,
        spares,
        among,
        chunks,
        replace,
        afr,
        years
    );
}

fn machine(options: &AdviseOptions) -> Result<Option<Machine>, Failure> {
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path);
        text.map_err(|error| Failure::input(format!("{}: {error}", path.display())))
    };
    let (lsblk, mdstat) = if options.this_machine {
        let columns = "NAME,TYPE,SIZE,ROTA,MODEL,MOUNTPOINT";
        let ran = Command::new("lsblk").args(["-bJ", "-o", columns]).output();
        let ran = ran.map_err(|error| Failure::failed(format!("lsblk cannot be run: {error}")))?;
        // Without md there is no such file.
        let mdstat = std::fs::read_to_string("/proc/mdstat").unwrap_or_default();
        (String::from_utf8_lossy(&ran.stdout).into_owned(), mdstat)
    } else if let Some(lsblk) = &options.lsblk {
        let mdstat = options.mdstat.as_deref().map(read).transpose()?;
        (read(lsblk)?, mdstat.unwrap_or_default())
    } else {
        return Ok(None);
    };
    Machine::read(&lsblk, &mdstat)
        .map(Some)
        .map_err(|error| Failure::input(format!("lsblk: {error}")))
}

/// Drives of a machine as options, and what is noticed of them.
fn of_machine(machine: &Machine) -> Result<Vec<(String, String)>, Failure> {
    let usable = machine.usable();
    if usable.is_empty() {
        let reason =
            "no drive of 32 GB or more that nothing mounted lies on; say --drives and --drive";
        return Err(Failure::input(format!("lsblk shows {reason}")));
    }
    for array in &machine.arrays {
        note(&format!("there is an array now: {array}"));
    }
    for drive in machine.shingled() {
        let what = "is a shingled drive by its model: leave it out of arrays";
        note(&format!("warning: {} ({}) {what}", drive.name, drive.model));
    }
    let names: Vec<String> =
        usable.iter().map(|one| format!("{} {}", one.name, one.model)).collect();
    note(&format!("drives: {}", names.join(", ")));
    let model = modelled_as(usable[0].rotates, usable[0].bytes, &usable[0].name);
    note(&format!("modelled as {model}, the nearest of its kind; --drive names another"));
    let mut pairs = vec![("drive".to_owned(), model.to_owned())];
    // Also of unequal ones: a flag may name a size for all.
    pairs.push(("drives".to_owned(), usable.len().to_string()));
    let first = usable[0].bytes;
    if usable.iter().all(|one| one.bytes == first) {
        pairs.push(("size".to_owned(), format!("{first}B")));
    } else {
        let sizes: Vec<String> = usable.iter().map(|one| format!("{}B", one.bytes)).collect();
        pairs.push(("sizes".to_owned(), sizes.join(",")));
    }
    Ok(pairs)
}

/// The drive file that is nearest to a drive of which lsblk tells kind and size only.
fn modelled_as(rotates: bool, bytes: u64, name: &str) -> &'static str {
    match (rotates, name.starts_with("nvme")) {
        (false, true) => "ssd-nvme4-2tb",
        (false, false) => "ssd-sata-1tb",
        (true, _) if bytes < 3_000_000_000_000 => "desktop-2tb-7200",
        (true, _) if bytes < 5_000_000_000_000 => "nas-4tb-5400",
        (true, _) if bytes < 12_000_000_000_000 => "nas-8tb-7200",
        (true, _) => "dc-24tb-7200",
    }
}

/// A question: which option, what is asked, why, what is taken where nothing is answered.
struct Asked {
    name: &'static str,
    asked: &'static str,
    why: &'static str,
    default: &'static str,
}

const QUESTIONS: [Asked; 7] = [
    Asked {
        name: "drives",
        asked: "How many drives? 4, or 4..8 if you would buy as many as it takes",
        why: "level and width are chosen together",
        default: "4",
    },
    Asked {
        name: "drive",
        asked: "Which drive? A name of `raidlab drive list`",
        why: "its speed decides how long a rebuild takes, its class how often it fails",
        default: "nas-8tb-7200",
    },
    Asked {
        name: "work",
        asked: "What is it for? nas, media, capture, backup, surveillance, vm, database, random-read, boot; or a \
                personality of filebench, such as varmail",
        why: "parity costs small writes much and large ones little",
        default: "nas",
    },
    Asked {
        name: "survive",
        asked: "How many drives may fail at the same time?",
        why: "it rules levels out before anything else does",
        default: "1",
    },
    Asked {
        name: "replace",
        asked: "From a failure until somebody has put another drive in?",
        why: "these days often outweigh the rebuild",
        default: "3d",
    },
    Asked {
        name: "prefer",
        asked: "What counts most? balance, speed, capacity, safety",
        why: "most layouts are best at something",
        default: "balance",
    },
    Asked {
        name: "drives-later",
        asked: "How many drives may there be later? Empty for no more",
        why: "md grows some layouts and not others",
        default: "",
    },
];

/// Asks for what is not said.
fn ask(
    input: &mut dyn BufRead,
    out: &mut dyn Write,
    said: &AdviseOptions,
) -> Result<Vec<(String, String)>, Failure> {
    let is_said = |name: &str| match name {
        "drives" => said.drives.is_some() || said.sizes.is_some(),
        "drive" => said.drive.is_some(),
        "work" => said.work.is_some() || said.study.is_some(),
        "survive" => said.survive.is_some(),
        "replace" => said.replace.is_some(),
        "prefer" => said.prefer.is_some(),
        _ => said.drives_later.is_some(),
    };
    let mut answers: Vec<(String, String)> = Vec::new();
    for question in QUESTIONS.iter().filter(|one| !is_said(one.name)) {
        loop {
            let asked =
                format!("{}\n  ({}) [{}]: ", question.asked, question.why, question.default);
            let failed = |error: std::io::Error| Failure::failed(format!("cannot ask: {error}"));
            out.write_all(asked.as_bytes()).and_then(|()| out.flush()).map_err(failed)?;
            let mut answer = String::new();
            let ended = input.read_line(&mut answer).map_err(failed)? == 0;
            let answer = match answer.trim() {
                "" => question.default,
                given => given,
            };
            if answer.is_empty() {
                break;
            }
            let pair = (question.name.to_owned(), answer.to_owned());
            match checked(&pair) {
                Ok(()) => {
                    answers.push(pair);
                    break;
                }
                Err(error) if ended => return Err(error),
                Err(Failure::Input(why)) => note(&why),
                Err(other) => return Err(other),
            }
        }
    }
    Ok(answers)
}

/// Whether an answer can be, before the next question is asked.
fn checked(pair: &(String, String)) -> Result<(), Failure> {
    let mut options = parsed(&pair.0, std::slice::from_ref(pair))?;
    options.drives.get_or_insert_with(|| "128".to_owned());
    options.drives_later = None;
    super::inputs::wanted(&options).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_options_by_their_names() {
        let read = pairs(
            "mine.toml",
            "drives = \"4..8\"\nstreams = 9\nsizes = [\"4TB\", \"8TB\"]\nbusy = 12.5\n",
        );
        let read = read.expect("is right");
        let expected =
            [("drives", "4..8"), ("streams", "9"), ("sizes", "4TB,8TB"), ("busy", "12.5")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(read, expected);
        let options = parsed("mine.toml", &read).expect("are options");
        assert_eq!((options.streams, options.drives.as_deref()), (Some(9), Some("4..8")));
        for (text, told) in [
            ("drives = 4\nwrok = \"nas\"", "mine.toml:2: wrok: unknown key (did you mean `work`?)"),
            ("drives = {}", "mine.toml:1: drives: write a text"),
            ("drives = ", "mine.toml"),
        ] {
            let Err(Failure::Input(error)) = pairs("mine.toml", text) else { panic!("{text}") };
            assert!(error.contains(told), "{error}");
        }
        let wrong = [("streams".to_owned(), "many".to_owned())];
        assert!(
            matches!(parsed("mine.toml", &wrong), Err(Failure::Input(why)) if why.contains("many"))
        );
    }

    #[test]
    fn flags_go_before_what_is_read() {
        let flag = |text: &str| vec![("drives".to_owned(), text.to_owned())];
        let mut all = parsed("flags", &flag("6")).expect("right");
        let more = [("drives".to_owned(), "4".to_owned()), ("work".to_owned(), "vm".to_owned())];
        merge(&mut all, parsed("file", &more).expect("right"));
        assert_eq!((all.drives.as_deref(), all.work.as_deref()), (Some("6"), Some("vm")));
    }

    /// A file that says more than a flag contradicts it nowhere: what belongs together is of one of them.
    #[test]
    fn what_belongs_together_is_of_one_source() {
        let options = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
            parsed("a source", &pairs.collect::<Vec<_>>()).expect("right")
        };
        let merged = |flags: &[(&str, &str)], more: &[(&str, &str)]| {
            let mut all = options(flags);
            merge(&mut all, options(more));
            all
        };
        let work = merged(&[("work", "vm")], &[("study", "mine.toml"), ("workload", "mail")]);
        assert!(work.study.is_none() && work.workload.is_none());
        let study = merged(&[("study", "mine.toml")], &[("work", "nas"), ("streams", "9")]);
        assert!(study.work.is_none() && study.streams.is_none() && study.requests.is_none());
        let more = merged(&[("streams", "3")], &[("work", "nas"), ("streams", "9")]);
        assert_eq!((more.work.as_deref(), more.streams), (Some("nas"), Some(3)));
        let unequal = [("drives", "2"), ("sizes", "4TB,8TB")];
        let sized = merged(&[("size", "2TB")], &unequal);
        assert!(sized.sizes.is_none() && sized.drives.as_deref() == Some("2"));
        let fewer = merged(&[("drives", "4")], &unequal);
        assert!(fewer.sizes.is_none() && fewer.drives.as_deref() == Some("4"));
        let same = merged(&[("drives", "2")], &unequal);
        assert_eq!(same.sizes.map(|sizes| sizes.len()), Some(2));
        let sizes = merged(&[("sizes", "4TB,4TB,4TB")], &[("drives", "2"), ("size", "8TB")]);
        assert!(sizes.drives.is_none() && sizes.size.is_none());
    }

    /// Sizes say how many drives there are, and a study what the work is.
    #[test]
    fn what_is_said_otherwise_is_not_asked() {
        let said = [("study", "mine.toml"), ("sizes", "4TB,8TB")];
        let said = said.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let said = parsed("flags", &said).expect("right");
        let answers = ask(&mut "\n".repeat(9).as_bytes(), &mut Vec::new(), &said);
        let answers = answers.expect("answers");
        let asked: Vec<&str> = answers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(asked, ["drive", "survive", "replace", "prefer"]);
    }

    #[test]
    fn what_cannot_be_is_asked_again() {
        let said = parsed("flags", &[("work".to_owned(), "vm".to_owned())]).expect("right");
        let mut input = "8\nnas-9tb\nnas-4tb-5400\n2\n\nsafety\n\n".as_bytes();
        let mut out = Vec::new();
        let answers = ask(&mut input, &mut out, &said).expect("answers");
        let told: Vec<String> =
            answers.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(
            told,
            ["drives=8", "drive=nas-4tb-5400", "survive=2", "replace=3d", "prefer=safety"]
        );
        let out = String::from_utf8(out).expect("text");
        assert!(!out.contains("What is it for?") && out.contains("(these days often outweigh"));
    }
}
