//! What shells and `man` are given: completions and man pages, made from the command line's own description.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::output;

/// Prints completions for a shell
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab completions bash > ~/.local/share/bash-completion/completions/raidlab\n  \
    raidlab completions zsh > ~/.zfunc/_raidlab\n  \
    raidlab completions fish > ~/.config/fish/completions/raidlab.fish\n\n\
    The Debian package has them in place.")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn completions(options: &Completions) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), "raidlab", &mut text);
    output::print(&text)
}

/// Writes man pages into a directory, one for each command
#[derive(Args, Debug)]
pub(crate) struct ManPages {
    /// The directory; it is made if it is not there
    #[arg(required_unless_present = "markdown")]
    directory: Option<PathBuf>,
    /// Write the help of all commands to this file instead, as Markdown
    #[arg(long, value_name = "FILE", conflicts_with = "directory")]
    markdown: Option<PathBuf>,
}

pub(crate) fn man_pages(options: &ManPages) -> Result<(), Failure> {
    if let Some(file) = &options.markdown {
        return output::write(file, &markdown());
    }
    let Some(directory) = &options.directory else { return Ok(()) };
    let failed = |path: &Path, error: std::io::Error| {
        Failure::failed(format!("cannot write {}: {error}", path.display()))
    };
    fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    for (name, command) in pages(Arguments::command()) {
        let path = directory.join(format!("{name}.1"));
        let mut text = Vec::new();
        let page = clap_mangen::Man::new(command).title(name.to_uppercase()).section("1");
        page.render(&mut text).map_err(|error| failed(&path, error))?;
        output::write(&path, &text)?;
    }
    Ok(())
}

/// Columns of the help in a document.
const COLUMNS: usize = 100;

/// The help of all commands as a document.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Every command\n\nThis is what each command says when it is asked for help. Reports and data go to \
         standard output, progress and errors to\nstandard error; colour follows `--color` and `NO_COLOR`.\n",
    );
    let mut pages = pages(Arguments::command().term_width(COLUMNS));
    // The program before its commands, these in the order of its help.
    pages.rotate_right(1);
    for (name, mut command) in pages {
        let help = command.render_long_help().to_string();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        let title = name.replace('-', " ");
        text += &format!("\n## {title}\n\n```text\n{}\n```\n", lines.join("\n").trim_end());
    }
    text
}

/// Each command that is shown with the name of its page: `raidlab`, `raidlab-compare`, `raidlab-drive-list`.
pub fn pages(mut command: Command) -> Vec<(String, Command)> {
    command.build();
    fn walk(name: String, command: &Command, found: &mut Vec<(String, Command)>) {
        for below in command.get_subcommands() {
            if !below.is_hide_set() && below.get_name() != "help" {
                walk(format!("{name}-{}", below.get_name()), below, found);
            }
        }
        // A page tells of the whole command line, not only of its last word. The names live as long as the program,
        // which ends when the pages are written.
        let own = command.clone().name(&*name.clone().leak()).bin_name(name.replace('-', " "));
        found.push((name, own));
    }
    let mut found = Vec::new();
    walk("raidlab".to_owned(), &command, &mut found);
    found
}
