//! A study on the Linux kernel in virtual time, each cell in a guest of its own.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use raidlab_core::Size;
use raidlab_kernel_lab::cache;
use raidlab_kernel_study::measured::{SENSITIVE, spread};
use raidlab_kernel_study::{Binaries, Cost, KernelError, KernelLab, Options, prepare, ticks_of};
use raidlab_predict::{Conditions, Trace};
use raidlab_results::{Clock, GUEST_PROGRAMS, Results};
use raidlab_store::{Guest, hash_file};
use raidlab_study::{
    CellKey, Runner, Sample, Samples, Study, cell_seed, cell_title, resume_rounds_parallel,
};

use super::record::{self, Recorder};
use super::{Setting, follow, results, risk};
use crate::args::Compare;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::SharedFile;
use crate::parallel;
use crate::progress::Bar;

/// `--on` and `--target` for a kernel begin with this.
pub(crate) const PREFIX: &str = "kernel:";

/// How many cells a warning names.
const MOST_NAMED: usize = 12;

/// The kernel that a place names: a version or a path.
pub(crate) fn named(on: &OsStr) -> Option<&OsStr> {
    on.as_bytes().strip_prefix(PREFIX.as_bytes()).map(OsStr::from_bytes)
}

/// How a kernel runs cells.
pub(crate) fn options(kernel: &OsStr) -> Result<Options, Failure> {
    let kernel = kernel.to_str().ok_or_else(|| Failure::input("the kernel's name is no text"))?;
    if kernel.is_empty() {
        let known = raidlab_kernel_study::versions().join(" or ");
        return Err(Failure::input(format!("{PREFIX}: name a version, {known}, or a path")));
    }
    let binaries = Binaries::find(kernel).map_err(failure)?;
    Ok(Options { binaries, cost: Cost::PLAIN, varied_starts: false })
}

/// A trace, and the file that it is written to: an older one stays until this one is whole.
pub(crate) type TraceFile = (Trace, SharedFile);

/// The file that requests are written to.
pub(crate) fn trace(path: Option<&Path>) -> Result<Option<TraceFile>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let file = SharedFile::create(path)?;
    Ok(Some((Trace::new(file.clone()), file)))
}

/// Writes the rest of a trace.
pub(crate) fn finish(trace: Option<TraceFile>, path: Option<&Path>) -> Result<(), Failure> {
    let Some(((trace, file), path)) = trace.zip(path) else { return Ok(()) };
    let path = path.display();
    trace.finish().map_err(|error| Failure::failed(format!("--trace {path}: {error}")))?;
    file.finish()
}

pub(crate) fn failure(error: KernelError) -> Failure {
    match error {
        KernelError::Input(what) => Failure::input(what),
        KernelError::Failed(what) => Failure::failed(what),
        KernelError::Interrupted => Failure::Interrupted,
    }
}

pub(super) fn run(
    study: &mut Study,
    options: &Compare,
    kernel: &OsStr,
    recorder: &mut Recorder,
    cancel: &'static AtomicBool,
) -> Result<Results, Failure> {
    prepare(study).map_err(failure)?;
    let study = &*study;
    let trace = trace(options.trace.as_deref())?;
    let stop = interrupt::descriptor()?;
    let lab = KernelLab::new(study, self::options(kernel)?, stop, trace.as_ref().map(|it| &it.0));
    let lab = lab.map_err(failure)?;
    let threads = parallel::threads(options.threads);
    let mut setting = Setting {
        clock: Clock::Virtual,
        host: host(&lab),
        settings: settings(study, &lab),
        warnings: vec![format!(
            "the kernel is real, with one processor, without preemption and at {} Hz; its drives are \
             modelled, and its own work takes no time (docs/kernel-lab.md)",
            ticks_of(&lab.names()[0])
        )],
        capacities: lab.modelled().capacities(),
    };
    let drives = lab.modelled().drives();
    let guest = guest(&lab, kernel);
    recorder.conditions(study, None, Some(guest), |_| record::host::modelled(study, drives))?;
    let finished = recorder.begin(study, options, &setting, recorder.probed())?;
    let bar = Bar::new(options.outputs.quiet);
    let mut progress = follow(study, &bar, cancel);
    let mut told = |progress_made: raidlab_study::Progress<'_>| {
        recorder.keep(study, &progress_made);
        progress(progress_made)
    };
    let samples = resume_rounds_parallel(study, finished, threads, || lab.runner(), &mut told);
    let samples = samples.map_err(failure);
    let looked = samples.as_ref().ok().filter(|samples| !samples.aborted).map(|samples| {
        let runner = lab.runner();
        let run = |cost, key: &CellKey, seed| runner.with_cost(cost).run(key, 0, seed);
        sensitive_cells(study, samples, run, &bar)
    });
    bar.clear();
    let samples = samples?;
    let looked = looked.transpose()?;
    // All rounds may be there: a run whose last look was stopped is not done before it goes on with that.
    if looked != Some(Looked::Stopped) {
        recorder.ran(&samples);
    }
    setting.warnings.extend(looked.and_then(Looked::warning));
    let risk = risk::on_modelled(study, drives, &samples, threads);
    drop(lab);
    finish(trace, options.trace.as_deref())?;
    Ok(Results { risk, ..results(study, &samples, setting)? })
}

/// What running cells with other processors came to.
#[derive(Debug, PartialEq)]
enum Looked {
    /// All were run; a warning where some depend on the processor.
    AtAll(Option<String>),
    /// It was stopped.
    Stopped,
}

impl Looked {
    /// What a reader must know.
    fn warning(self) -> Option<String> {
        match self {
            Self::AtAll(warning) => warning,
            Self::Stopped => Some(
                "stopped before it was known which cells depend on the processor: none of them is \
                 named here (docs/kernel-lab.md)"
                    .into(),
            ),
        }
    }
}

/// Runs each cell of the first round again with a free processor and with one that is four times as slow; tells which
/// cells depend on that.
fn sensitive_cells(
    study: &Study,
    samples: &Samples,
    mut run: impl FnMut(Cost, &CellKey, u64) -> Result<Sample, KernelError>,
    bar: &Bar,
) -> Result<Looked, Failure> {
    let mut named = Vec::new();
    for (at, (key, of_cell)) in samples.cells.iter().zip(&samples.samples).enumerate() {
        let Some(plain) = of_cell.first().and_then(|sample| sample.headline(study, key)) else {
            continue;
        };
        let title = cell_title(study, key);
        bar.show(at, samples.cells.len(), format!("other processors: {title}"));
        let seed = cell_seed(study, key, 0);
        let mut values = vec![plain];
        for cost in Cost::OTHERS {
            match run(cost, key, seed) {
                Ok(sample) => values.extend(sample.headline(study, key)),
                Err(KernelError::Interrupted) => return Ok(Looked::Stopped),
                Err(error) => return Err(failure(error)),
            }
        }
        let spread = spread(&values);
        if spread > SENSITIVE {
            named.push(format!("{title} ({:.0} %)", spread * 100.0));
        }
    }
    Ok(Looked::AtAll(warning(named)))
}

fn warning(mut named: Vec<String>) -> Option<String> {
    let count = named.len();
    if count > MOST_NAMED {
        named.truncate(MOST_NAMED);
        named.push(format!("and {} more", count - MOST_NAMED));
    }
    (count > 0).then(|| {
        format!(
            "CPU-sensitive: {count} cells move by more than 5 % between a free processor, the study's, and one \
             with four times its cost of system calls and copies: {}",
            named.join("; ")
        )
    })
}

/// What guests run, which must stay the same for the run to go on.
fn guest(lab: &KernelLab<'_>, kernel: &OsStr) -> Guest {
    let [named, programs] = lab.names();
    let image = kernel.to_str().and_then(|kernel| cache::kernel(kernel).ok());
    let hash = |file: Option<PathBuf>| file.and_then(|file| hash_file(&file).ok());
    Guest {
        kernel: named,
        kernel_hash: hash(image),
        programs,
        programs_hash: hash(cache::programs()),
    }
}

fn host(lab: &KernelLab<'_>) -> BTreeMap<String, String> {
    let mut host = Conditions::drives(lab.modelled());
    let [kernel, programs] = lab.names();
    host.insert("kernel".into(), kernel);
    host.insert(GUEST_PROGRAMS.into(), programs);
    host
}

fn settings(study: &Study, lab: &KernelLab<'_>) -> BTreeMap<String, String> {
    let mut memories: Vec<String> = Vec::new();
    for layout in 0..study.layouts.len() {
        let memory = study.host_of(layout).map(|host| Size(host.spec.memory).to_string());
        memories.extend(memory.filter(|memory| !memories.contains(memory)));
    }
    let target = match &study.filesystem {
        None => "the kernel's block device, past the page cache".to_owned(),
        Some(name) => format!("{name} of the kernel"),
    };
    let mut settings = BTreeMap::from([
        ("target".to_owned(), target),
        ("memory of the guest".to_owned(), memories.join(", ")),
        ("cache state".to_owned(), "drives start cold; memory as the workload says".to_owned()),
    ]);
    settings.extend(Conditions::figures(lab.modelled()));
    settings
}

#[cfg(test)]
mod tests {
    use raidlab_core::Nanos;
    use raidlab_study::{CellRun, Rebuild};

    use super::*;

    #[test]
    fn a_kernel_is_named_after_a_colon() {
        assert_eq!(named("kernel:6.12".as_ref()), Some("6.12".as_ref()));
        assert_eq!(named("virtual".as_ref()), None);
        assert!(options("".as_ref()).is_err());
    }

    /// Stopped is something else than looked at with nothing found.
    #[test]
    fn a_look_that_was_stopped_is_told_so() {
        let text = r#"
            title = "test"
            drives = [{ name = "nas", model = "nas-8tb-7200", count = 2 }]
            layouts = [{ level = "raid1", members = 2 }]
            workloads = [{ kind = "dd-read", size = "1MiB" }]
        "#;
        let study = raidlab_study::parse(text, "test").unwrap_or_else(|error| panic!("{error}"));
        let done = Rebuild { elapsed: Nanos(1), done: 1.0 };
        let sample = |value| Sample::of_rebuild(value, done);
        let runs = raidlab_study::cells(&study).len();
        let run = |cell| CellRun { round: 0, cell, sample: sample(100.0) };
        let samples = Samples::of_complete_rounds(&study, (0..runs).map(run).collect());
        let bar = Bar::new(true);
        let look = |others: &[Option<f64>]| {
            let mut others = others.iter().cycle();
            let run = |_, _: &CellKey, _| {
                let value = others.next().copied().flatten();
                value.map(sample).ok_or(KernelError::Interrupted)
            };
            sensitive_cells(&study, &samples, run, &bar).expect("looked at")
        };
        assert_eq!(look(&[Some(100.0), Some(101.0)]), Looked::AtAll(None));
        let found = look(&[Some(110.0), Some(90.0)]);
        assert!(found.warning().is_some_and(|text| text.starts_with("CPU-sensitive: ")));
        for others in [&[None][..], &[Some(100.0), None]] {
            let found = look(others);
            assert_eq!(found, Looked::Stopped);
            assert!(found.warning().is_some_and(|text| text.starts_with("stopped before ")));
        }
    }

    #[test]
    fn cells_that_depend_on_the_processor_are_named_up_to_a_number() {
        assert_eq!(warning(Vec::new()), None);
        let text = warning((0..14).map(|at| format!("cell {at}")).collect()).expect("some");
        assert!(
            text.starts_with("CPU-sensitive: 14 cells") && text.ends_with("and 2 more"),
            "{text}"
        );
    }
}
