//! `raidlab run`: one workload on one target.

mod archive;
mod export;
mod print;
mod setup;
mod target;
mod virtual_time;

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::Args;
use raidlab_core::{Layout, Level};
use raidlab_study::did_you_mean;
use raidlab_targets::Filesystem;
use raidlab_workload::{
    KINDS, Recipe, RunRecord, Setting, Workload, WorkloadErrorKind, WorkloadSpec, fio,
};

use crate::failure::Failure;
use crate::json::pretty;
use crate::output;
use crate::progress::Bar;
use raidlab_measure::Notification;
use target::Target;

/// Runs one workload on one target, and prints what it measured, also as the original program would
///
/// TARGET says where:
/// modelled (a modelled host with a filesystem on modelled drives, in virtual time),
/// modelled-raw (the modelled array alone), null (nothing at all: what the workload costs),
/// DIR (a directory of a mounted filesystem), raw:memory and raw:DIR (an array without a filesystem, in
/// memory or on member files in DIR), mounted:DIR (an array on member files in DIR with a real
/// filesystem on it; root), md:DIR (the same with the kernel's own md; root), kernel:6.12 (Linux with its own md and
/// filesystem, in virtual time on modelled drives), kernel-raw:6.12 (the same on the block device itself).
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab run --list                                  every workload and its parameters\n  \
    raidlab run dd-write size=1GiB --layout 'raid5(4)'  on modelled drives\n  \
    raidlab run dd bs=1MiB count=100 conv=fdatasync --target /mnt\n  \
    raidlab run bonnie-2.00 n=0 --target /mnt --format csv\n  \
    raidlab run jobs.fio --target raw:/mnt --layout 'raid10(4)' --json -\n  \
    raidlab run tar-xf --target mounted:/mnt --layout 'raid1(2)'\n  \
    raidlab run dd-write size=1GiB --target kernel:6.12 --layout 'raid5(3)' --trace trace.txt\n\n\
    Exit status: 0 done, 1 failed or wrong bytes found, 2 bad input, 130 interrupted.")]
pub(crate) struct Run {
    /// A kind of `--list`, or the path of a fio job file (ends in .fio)
    pub(crate) workload: Option<String>,
    /// Parameters of the workload, such as size=1GiB
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) parameters: Vec<String>,
    /// List every workload with its parameters and their defaults
    #[arg(long)]
    pub(crate) list: bool,
    /// Where to run: modelled, modelled-raw, null, DIR, raw:memory, raw:DIR, mounted:DIR, md:DIR,
    /// kernel:VERSION, kernel-raw:VERSION [default: modelled]
    #[arg(long, short, value_name = "TARGET")]
    pub(crate) target: Option<OsString>,
    /// The layout of the array, as reports name it: single, raid5(4), "raid10(4) far2 chunk=64K"
    /// [default: single]
    #[arg(long, short, value_name = "LAYOUT")]
    pub(crate) layout: Option<Layout>,
    /// The drive of modelled targets: one of `raidlab drive list`, or a drive file (ends in .toml)
    /// [default: nas-8tb-7200]
    #[arg(long, alias = "drives", value_name = "NAME")]
    pub(crate) drive: Option<String>,
    /// The filesystem of mounted arrays: ext4, ext3, ext2, xfs or btrfs
    /// [default: ext4]
    #[arg(long, value_name = "KIND", value_parser = filesystem)]
    pub(crate) filesystem: Option<Filesystem>,
    /// How many copies of the workload at once, each with files of its own
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) copies: u32,
    /// Draw every random choice from this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write every request that drives get to this file (modelled, modelled-raw and kernel:VERSION only)
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Print only this form: `summary`, or one of the workload's own, such as text, csv, json
    #[arg(long, value_name = "FORM")]
    pub(crate) format: Option<String>,
    /// Write what was measured (with --list: the list) to this file as JSON; `-`, or no FILE at all,
    /// prints it instead.
    /// A study behind it is not read: a FILE of .toml or .fio, or one that is there and is neither JSON nor
    /// named so, is refused
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// Write a row for each figure of the run to this file, as comma-separated values; `-` prints it instead
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub(crate) csv: Option<PathBuf>,
    /// Write tables to be pasted into an issue to this file, as Markdown; `-` prints it instead
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub(crate) markdown: Option<PathBuf>,
    /// No progress, and no summary when --json, --csv or --markdown writes a file
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl Run {
    /// The target, as the command line says it.
    fn target(&self) -> &OsStr {
        self.target.as_deref().unwrap_or(OsStr::new("modelled"))
    }

    /// The same to print, whatever its bytes are.
    fn target_name(&self) -> Cow<'_, str> {
        self.target().to_string_lossy()
    }

    fn layout(&self) -> Layout {
        self.layout.clone().unwrap_or_else(|| Layout::new(Level::Linear, 1))
    }

    fn drive(&self) -> &str {
        self.drive.as_deref().unwrap_or("nas-8tb-7200")
    }

    fn filesystem(&self) -> Filesystem {
        self.filesystem.unwrap_or(Filesystem::Ext4)
    }

    /// The flags that name a file for a report, with it.
    fn reports(&self) -> [(&'static str, Option<&Path>); 3] {
        [
            ("--json", self.json.as_deref()),
            ("--csv", self.csv.as_deref()),
            ("--markdown", self.markdown.as_deref()),
        ]
    }

    /// Checks that every file can be written and takes the place of nothing, and that one thing at most is printed.
    fn check_files(&self) -> Result<(), Failure> {
        let printed = Some(Path::new(output::STDOUT));
        let printed = self.reports().into_iter().find(|(_, path)| *path == printed);
        if let (Some(format), Some((flag, _))) = (&self.format, printed) {
            let reason = format!("{flag} and --format {format} cannot both print; name a file");
            return Err(Failure::input(reason));
        }
        let trace = [(output::TRACE, self.trace.as_deref())];
        let files: Vec<_> = self.reports().into_iter().chain(trace).collect();
        output::check(&files, &self.inputs())
    }

    /// What may name a file that is read: a job file, a drive file, an archive.
    fn inputs(&self) -> Vec<Option<&Path>> {
        let named = [self.workload.as_deref(), self.drive.as_deref()].into_iter();
        let values = self.parameters.iter().map(|text| Some(text.split_once('=')?.1));
        named.chain(values).map(|name| name.map(Path::new)).collect()
    }

    /// Refuses flags that the target has no use for.
    fn check_flags(&self, target: &Target) -> Result<(), Failure> {
        let uses = target.uses();
        let given = [
            ("--layout", self.layout.is_some(), uses.layout),
            ("--drive", self.drive.is_some(), uses.drive),
            ("--filesystem", self.filesystem.is_some(), uses.filesystem),
            ("--trace", self.trace.is_some(), uses.trace),
        ];
        match given.into_iter().find(|(_, given, used)| *given && !used) {
            None => Ok(()),
            Some((flag, ..)) => {
                let reason =
                    format!("means nothing on --target {}; leave it out", self.target_name());
                Err(Failure::input(format!("{flag}: {reason}")))
            }
        }
    }
}

fn filesystem(name: &str) -> Result<Filesystem, String> {
    let known = Filesystem::ALL.map(Filesystem::name);
    Filesystem::from_name(name)
        .ok_or_else(|| format!("known: {}{}", known.join(", "), did_you_mean(name, &known)))
}

pub(crate) fn run(options: &Run) -> Result<(), Failure> {
    if options.list {
        return match &options.json {
            Some(path) => {
                options.check_files()?;
                output::write(path, &print::list_json())
            }
            None => output::print(&list()),
        };
    }
    let spec = workload(options)?;
    let workload = &*spec.workload;
    options.check_files()?;
    let known = workload.formats();
    if let Some(format) = &options.format
        && format != "summary"
        && !known.contains(&format.as_str())
    {
        let known = [&["summary"], known].concat().join(", ");
        return Err(Failure::input(format!(
            "--format {format}: {} is printed as {known}",
            workload.kind()
        )));
    }
    let target = Target::parse(options.target()).map_err(Failure::input)?;
    options.check_flags(&target)?;
    let setting =
        Setting { host_memory: target.memory(), ..Setting::new(options.copies, options.seed) };
    let setup = setup::Setup::of(options, &target)?;
    let bar = Bar::steps(options.quiet);
    let record = target.run(options, &spec, setting, &|told| match told {
        Notification::Step(what) => bar.step(what),
        Notification::Removed(path) => output::removed(path),
    });
    bar.clear();
    show(options, workload, &record?, &setup)
}

/// Prints what was asked for.
fn show(
    options: &Run,
    workload: &dyn Workload,
    record: &RunRecord,
    setup: &setup::Setup,
) -> Result<(), Failure> {
    let host = print::host_name();
    let own = |format: &str| workload.format(format, record, &host).unwrap_or_default();
    let document = print::document(options, workload, record, setup);
    let mut written = Ok(());
    if let Some(path) = &options.json {
        written = output::write(path, &pretty(&document));
    }
    if let Some(path) = &options.csv {
        written = written.and(output::write(path, &export::csv(&document)));
    }
    if let Some(path) = &options.markdown {
        written = written.and(output::write(path, &export::markdown(&document)));
    }
    let files = options.reports().into_iter().filter_map(|(_, path)| path);
    let files: Vec<&Path> = files.collect();
    let printed = files.contains(&Path::new("-"));
    let is_shown = options.format.is_some() || !(printed || (options.quiet && !files.is_empty()));
    output::told(written, is_shown, || match &options.format {
        Some(format) if format != "summary" => own(format),
        Some(_) => print::summary(options, workload, record),
        None => {
            let mut text = print::summary(options, workload, record);
            if let Some(format) = workload.formats().first() {
                text.push_str(&format!("\nas the original prints it ({format}):\n"));
                text.push_str(&own(format));
            }
            text
        }
    })
}

/// The workload the command line names, under its default name.
fn workload(options: &Run) -> Result<WorkloadSpec, Failure> {
    let Some(name) = &options.workload else {
        return Err(Failure::input("which workload? `raidlab run --list` lists them"));
    };
    if name.ends_with(".fio") {
        return job_file(Path::new(name), &options.parameters);
    }
    // Bare words are flags, as fio has them.
    let pairs = options.parameters.iter().map(|text| match text.split_once('=') {
        Some((key, value)) => (key.to_string(), value.to_string()),
        None => (text.clone(), if name == "fio" { "1" } else { "true" }.to_string()),
    });
    let pairs: Vec<(String, String)> = pairs.collect();
    let made = match (name.as_str(), pairs.iter().position(|(key, _)| key == "archive")) {
        ("tar-xf", Some(position)) => {
            return archive::workload(pairs, position).map(WorkloadSpec::new);
        }
        _ => WorkloadSpec::from_recipe(Recipe::of_kind(name, pairs)),
    };
    made.map_err(|error| {
        let (is_kind, known) = (error.kind == WorkloadErrorKind::UnknownKind, &error.known);
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        if is_kind {
            Failure::input(format!("{}{}", error.reason, did_you_mean(name, &known)))
        } else {
            Failure::input(format!("{name}: {error}{}", did_you_mean(&error.key, &known)))
        }
    })
}

fn job_file(path: &Path, parameters: &[String]) -> Result<WorkloadSpec, Failure> {
    if let Some(parameter) = parameters.first() {
        let what = format!("{parameter}: a job file has its parameters in it");
        return Err(Failure::input(what));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
    let asked = RefCell::new(Vec::new());
    let variable = |name: &str| {
        let value = std::env::var(name).ok();
        asked.borrow_mut().extend(value.clone().map(|value| (name.to_owned(), value)));
        value
    };
    let name = path.display().to_string();
    fio::parse(&text, &name, &variable).map_err(Failure::input)?;
    let recipe = Recipe::of_fio_jobs(&text, &name, asked.into_inner());
    WorkloadSpec::from_recipe(recipe).map_err(Failure::input)
}

/// Every kind with its parameters.
fn list() -> String {
    let width = KINDS.iter().map(|kind| kind.name.len()).max().unwrap_or(0);
    let line =
        |kind: &raidlab_workload::KindEntry| format!("{:width$}  {}\n", kind.name, kind.summary);
    KINDS.iter().map(line).collect()
}
