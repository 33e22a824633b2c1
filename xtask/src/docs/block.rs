//! What the blocks of a document are for, as the comments before them say.
//!
//! * A block marked `sh` is run, each line as a command of its own, which must end with status 0.
//! * `<!-- not run: REASON -->` before it: it is not run.
//! * `<!-- needs root -->` before it: it is run by root only.
//! * `<!-- output -->` before a block: what the block of commands above it prints, see
//!   [`super::output`]; with `<!-- output at N columns -->` on a terminal of that width.
//! * `<!-- file: NAME -->` before a block: commands find its text as this file, wherever the block stands.
//!   A comment of several lines that begins so is a file that readers do not see.

use crate::markdown::{Block, Document};

/// Whether a path of the repository is that of a document.
pub(crate) fn is_document(path: &str) -> bool {
    let docs = path.strip_prefix("docs/").is_some_and(|name| !name.contains('/'));
    path.ends_with(".md") && (docs || path == "README.md" || path == "ARCHITECTURE.md")
}

/// Why a block is not run.
pub(crate) fn reason(block: &Block) -> Option<&str> {
    block.notes.iter().find_map(|note| note.strip_prefix("not run:")).map(str::trim)
}

pub(super) fn is_of_commands(block: &Block) -> bool {
    block.language == "sh"
}

pub(super) fn needs_root(block: &Block) -> bool {
    block.notes.iter().any(|note| note == "needs root")
}

/// What a block holds that is the output of the commands above it: the width of the terminal, if it is
/// one.
pub(super) fn output(block: &Block) -> Option<Option<u32>> {
    let note = block.notes.iter().find_map(|note| note.strip_prefix("output"))?;
    let columns = note.strip_prefix(" at ").and_then(|rest| rest.strip_suffix(" columns"));
    columns.map_or(Some(None), |columns| columns.parse().ok().map(Some))
}

/// Names and texts of the files of a document.
pub(super) fn files(document: &Document) -> Vec<(String, String)> {
    let shown = document.blocks.iter().filter_map(|block| {
        let name = block.notes.iter().find_map(|note| note.strip_prefix("file:"))?;
        Some((name.trim().to_owned(), block.lines.join("\n") + "\n"))
    });
    let hidden = document.comments.iter().filter_map(|comment| {
        let (name, text) = comment.text.strip_prefix("file:")?.split_once('\n')?;
        Some((name.trim().to_owned(), format!("{text}\n")))
    });
    shown.filter(|(name, _)| !name.contains('\n')).chain(hidden).collect()
}

/// What is wrong with how a block is marked, by line.
pub(crate) fn faults(block: &Block) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    if reason(block) == Some("") {
        faults.push((block.line, "say why it is not run".to_owned()));
    }
    let known = |note: &&String| {
        note.starts_with("not run:")
            || note.starts_with("file:")
            || *note == "needs root"
            || output(block).is_some()
    };
    for note in block.notes.iter().filter(|note| !known(note)) {
        let message =
            format!("`{note}` says nothing to `cargo xtask docs`: see xtask/src/docs/block.rs");
        faults.push((block.line, message));
    }
    if block.language.is_empty() && output(block).is_none() {
        let commands = ["raidlab ", "cargo ", "$ "];
        for (index, line) in block.lines.iter().enumerate() {
            if commands.iter().any(|command| line.starts_with(command)) {
                let message = "mark the block as `sh`, so that it is run".to_owned();
                faults.push((block.line + index, message));
            }
        }
    } else if ["console", "bash", "shell"].contains(&block.language.as_str()) {
        faults.push((block.line, "commands are marked as `sh`".to_owned()));
    }
    faults
}

/// A command of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Its line in the document, from 1.
    pub(super) line: usize,
    pub(super) command: String,
}

/// The commands of a block; lines that end in a backslash go on in the next.
pub(super) fn commands(block: &Block) -> Vec<Line> {
    let mut commands: Vec<Line> = Vec::new();
    let mut open = false;
    for (index, text) in block.lines.iter().enumerate() {
        match commands.last_mut().filter(|_| open) {
            Some(before) => before.command = format!("{}\n{text}", before.command),
            None => {
                let line = block.line + index;
                commands.push(Line { line, command: text.clone() });
            }
        }
        open = text.ends_with('\\');
    }
    commands.retain(|line| {
        let text = line.command.trim();
        !text.is_empty() && !text.starts_with('#')
    });
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str) -> Vec<Block> {
        Document::parse(text).blocks
    }

    #[test]
    fn comments_before_a_block_say_what_it_is_for() {
        let found = blocks(
            "<!-- not run: an hour -->\n```sh\na\n```\n<!-- needs root -->\n```sh\nb\n```\n\
             <!-- output at 80 columns -->\n```\nc\n```\nText.\n<!-- output -->\nText.\n```\nd\n```\n",
        );
        let reasons: Vec<_> = found.iter().map(reason).collect();
        assert_eq!(reasons, [Some("an hour"), None, None, None]);
        let roots: Vec<_> = found.iter().map(needs_root).collect();
        assert_eq!(roots, [false, true, false, false]);
        let outputs: Vec<_> = found.iter().map(output).collect();
        assert_eq!(outputs, [None, None, Some(Some(80)), None]);
        assert_eq!(
            found.iter().map(is_of_commands).collect::<Vec<_>>(),
            [true, true, false, false]
        );
        assert_eq!(found.iter().flat_map(faults).collect::<Vec<_>>(), []);
    }

    #[test]
    fn blocks_that_say_nothing_useful_are_faults() {
        for (line, bad) in [
            (3, "<!-- not run: -->\n```sh\na\n```\n"),
            (3, "<!-- not ran: why -->\n```sh\na\n```\n"),
            (3, "<!-- output at many columns -->\n```\na\n```\n"),
            (3, "```\na\nraidlab check\n```\n"),
            (2, "\n    cargo bench\n"),
            (2, "```console\n$ raidlab check\n```\n"),
        ] {
            let found: Vec<_> = blocks(bad).iter().flat_map(faults).map(|fault| fault.0).collect();
            assert_eq!(found, [line], "{bad}");
        }
    }

    #[test]
    fn files_are_those_of_blocks_and_of_comments() {
        let text =
            "<!-- file: a.toml -->\n```toml\nx = 1\n```\n\n<!-- file: b.fio\n[job]\nrw=read\n-->\n";
        let expected = [("a.toml", "x = 1\n"), ("b.fio", "[job]\nrw=read\n")];
        let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(files(&Document::parse(text)), expected);
    }

    #[test]
    fn commands_are_lines_that_may_go_on() {
        let text = "```sh\n# comment\na 1   # why\n\nb '#' \\\n  c\n```\n";
        let found = commands(&blocks(text)[0]);
        let found: Vec<_> = found.iter().map(|line| (line.line, line.command.as_str())).collect();
        assert_eq!(found, [(3, "a 1   # why"), (5, "b '#' \\\n  c")]);
    }
}
