//! The documents name only commands and flags that there are: each line of a block that begins with
//! `raidlab` is parsed as the command line would be, and code in sentences as far as it goes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Parser};

use markdown::{Block, Document};
use raidlab_cli::Arguments;

#[path = "../../../tests/support/markdown.rs"]
mod markdown;

/// How commands begin that are parsed, and the arguments of `raidlab` that this stands for.
const COMMANDS: [(&str, &[&str]); 3] =
    [("raidlab", &[]), ("cargo run --release --", &[]), ("cargo xtask bugs", &["check", "--bugs"])];

/// Flags that sentences name and that are of other programs.
const OF_OTHERS: [&str; 8] = [
    "--assume-clean",
    "--data-offset",
    "--directory",
    "--full",
    "--install",
    "--limit",
    "--output-format",
    "--pairs",
];

/// What is wrong with a document, a line each.
fn wrong(text: &str) -> Vec<String> {
    let document = Document::parse(text);
    let mut flags = all_flags(&Arguments::command());
    flags.extend(flags_of_the_lab());
    let mut wrong = Vec::new();
    let of_shell = |block: &&Block| {
        let output = block.notes.iter().any(|note| note.starts_with("output"));
        ["", "sh", "console"].contains(&block.language.as_str()) && !output
    };
    for block in document.blocks.iter().filter(of_shell) {
        for (index, line) in joined(&block.lines) {
            if let Some(Err(error)) = arguments(&line).map(parsed) {
                wrong.push(format!("{}: {line}: {}", block.line + index, first_line(&error)));
            }
        }
    }
    for (line, span) in document.spans() {
        match arguments(&span).map(parsed) {
            Some(Err(error)) if names_nothing(error.kind()) => {
                wrong.push(format!("{line}: {span}: {}", first_line(&error)));
            }
            Some(_) => {}
            None if span.starts_with("--") => {
                let named = span.split_whitespace().filter(|word| word.starts_with("--"));
                let named = named.map(|word| word.split('=').next().unwrap_or(word));
                let known = |flag: &&str| {
                    *flag == "--" || flags.contains(*flag) || OF_OTHERS.contains(flag)
                };
                let unknown = named.filter(|flag| !known(flag));
                wrong.extend(unknown.map(|flag| format!("{line}: no command has {flag}")));
            }
            None => {}
        }
    }
    wrong
}

/// Lines that go on after a backslash as one, with the number of the first, from 0.
fn joined(lines: &[String]) -> Vec<(usize, String)> {
    let mut joined: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (index, line) in lines.iter().enumerate() {
        let (text, more) = match line.strip_suffix('\\') {
            Some(text) => (text, true),
            None => (line.as_str(), false),
        };
        match joined.last_mut().filter(|_| open) {
            Some((_, before)) => before.push_str(text),
            None => joined.push((index, text.to_owned())),
        }
        open = more;
    }
    joined
}

/// The arguments of the first command of a line, if that is raidlab.
fn arguments(line: &str) -> Option<Vec<String>> {
    let line = line.trim().trim_start_matches("$ ");
    let (begin, stands_for) = COMMANDS.into_iter().find(|(begin, _)| {
        line.strip_prefix(begin).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })?;
    let own = shlex::split(&line[begin.len()..])?;
    let own = own.into_iter().take_while(|word| {
        !["|", "&&", ";", "&"].contains(&word.as_str()) && !word.starts_with(['>', '<'])
    });
    let stands_for = stands_for.iter().map(|&word| word.to_owned());
    Some(["raidlab".to_owned()].into_iter().chain(stands_for).chain(own).collect())
}

fn parsed(arguments: Vec<String>) -> Result<(), clap::Error> {
    match Arguments::try_parse_from(arguments) {
        Err(error) if error.use_stderr() => Err(error),
        _ => Ok(()),
    }
}

/// Whether a command line names what there is not; sentences may leave things out.
fn names_nothing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand)
}

fn first_line(error: &clap::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// The long flags of a command and of all below it.
fn all_flags(command: &Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(|argument| argument.get_long());
    let own = own.map(|flag| format!("--{flag}"));
    own.chain(command.get_subcommands().flat_map(all_flags)).collect()
}

/// Those that the program of the kernel lab has, by what it says of itself.
fn flags_of_the_lab() -> impl Iterator<Item = String> {
    const SOURCE: &str = include_str!("../../kernel-lab/src/main.rs");
    let usage = SOURCE.lines().filter_map(|line| line.strip_prefix("  --"));
    usage.filter_map(|line| Some(format!("--{}", line.split_whitespace().next()?)))
}

#[test]
fn the_documents_name_commands_and_flags_that_there_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).expect("there are documents");
    let docs = docs.map(|entry| entry.expect("can be read").path());
    let all = docs.chain(["README.md", "ARCHITECTURE.md"].map(|name| root.join(name)));
    let mut failed = Vec::new();
    for path in all.filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let text = fs::read_to_string(&path).expect("can be read");
        let name = path.file_name().expect("is a file").to_string_lossy().into_owned();
        failed.extend(wrong(&text).into_iter().map(|line| format!("{name}:{line}")));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_command_or_flag_that_is_not_there_is_found() {
    let good = "`raidlab drive list`, `raidlab replay`, `--on DIR`, `raidlab check\n--seeds N`, `fio --x`\n\n\
                ```sh\nraidlab compare --json - | jq .cells   # --no-such\ncargo run --release -- check\n\
                raidlab layout raid5 \\\n  --members 5\nmdadm --no-such\n```\n\n\
                <!-- output -->\n```\nraidlab 1.0\n```\n\n```toml\nraidlab = 1\n```\n";
    assert_eq!(wrong(good), [""; 0]);
    for (line, bad) in [
        (1, "`raidlab report`"),
        (1, "`raidlab drive report`"),
        (1, "`raidlab check --crash`"),
        (1, "`--no-such`"),
        (1, "`--on DIR --no-such=1`"),
        (2, "text `a`\n`raidlab compare --ablate`"),
        (2, "```sh\nraidlab report\n```"),
        (3, "```\n\nraidlab compare --ablate\n```"),
        (2, "```sh\nraidlab check --seeds many\n```"),
        (2, "```sh\nraidlab layout\n```"),
        (2, "```console\n$ cargo run --release -- report\n```"),
        (2, "```sh\ncargo xtask bugs --no-such\n```"),
        (3, "a\n\n    raidlab report\n"),
        (2, "```sh\nraidlab layout raid5 \\\n  --member 5\n```"),
    ] {
        let found = wrong(bad);
        assert!(found.len() == 1 && found[0].starts_with(&format!("{line}: ")), "{bad}: {found:?}");
    }
}

/// The page of commands that the site has leaves none out.
#[test]
fn the_page_of_commands_has_the_help_of_each() {
    let page = raidlab_cli::help_of_all();
    for (name, command) in raidlab_cli::help_pages(Arguments::command()) {
        let title = format!("\n## {}\n", name.replace('-', " "));
        assert!(page.contains(&title), "{name}");
        let flags = command.get_arguments().filter(|one| !one.is_hide_set());
        for flag in flags.filter_map(|argument| argument.get_long()) {
            assert!(page.contains(&format!("--{flag}")), "{name}: {flag}");
        }
    }
}
