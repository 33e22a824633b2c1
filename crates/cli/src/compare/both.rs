//! One study by both clocks: really, then in virtual time with the same seeds and sizes, and what the model is off.
//!
//! The measured run comes first because its probe sizes the default study. Each is a run of its own in the store.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use raidlab_kernel_study::{as_kernel, prepare};
use raidlab_predict::Modelled;
use raidlab_results::Diff;
use raidlab_sim::HostCosts;
use raidlab_store::Source;
use raidlab_study::Study;

use super::record::Recorder;
use super::{Ended, VIRTUAL, bad_study, kernel, load, perform, real};
use crate::args::{Compare, Devices};
use crate::failure::Failure;
use crate::output;

/// Blocks of 4 KiB a second of drives faster than all: the default study is largest with it.
const FASTEST: f64 = f64::MAX;

/// The place that `--on` names beside `virtual`; `None` where it names one of both only.
fn place_beside(on: &OsStr) -> Result<Option<OsString>, Failure> {
    let word = VIRTUAL.as_bytes();
    let bytes = on.as_bytes();
    let before = bytes.strip_prefix(word).and_then(|rest| rest.strip_prefix(b","));
    let behind = || bytes.strip_suffix(word).and_then(|rest| rest.strip_suffix(b","));
    let Some(place) = before.or_else(behind) else { return Ok(None) };
    if std::fs::metadata(on).is_ok_and(|there| there.is_dir()) {
        return Ok(None);
    }
    let mut parts = place.split(|byte| *byte == b',');
    if parts.any(|part| part.is_empty() || part == word) {
        let on = on.display();
        let reason = "takes `virtual` and one real place, as in virtual,/mnt/scratch";
        return Err(Failure::input(format!("--on {on}: {reason}")));
    }
    Ok(Some(OsString::from_vec(place.to_vec())))
}

/// The options of the measured half, where `--on` asks for both clocks.
pub(super) fn real_half(options: &Compare) -> Result<Option<Compare>, Failure> {
    let place = place_beside(&options.on)?;
    Ok(place.map(|on| Compare { on, beside: Some(VIRTUAL.into()), ..options.clone() }))
}

/// The options of the modelled half.
fn modelled_half(real: &Compare) -> Result<Compare, Failure> {
    Ok(Compare {
        on: VIRTUAL.into(),
        beside: Some(real.on.clone()),
        devices: Devices::default(),
        resume: None,
        trace: real.trace.as_deref().map(|path| output::with_word(path, VIRTUAL)),
        outputs: real.outputs.beside()?,
        ..real.clone()
    })
}

/// Blocks of 4 KiB a second for which the default study is sized where guests really move each byte.
const IN_GUESTS: f64 = 100.0;

/// Sizes the default study, where the options leave that to us: as on the drives that were probed, or for guests, in
/// which or beside which it runs.
pub(super) fn sized(
    study: &mut Study,
    options: &Compare,
    probed: Option<f64>,
) -> Result<(), Failure> {
    let places = [Some(&options.on), options.beside.as_ref()];
    if places.into_iter().flatten().any(|place| kernel::named(place).is_some()) {
        let is_ours = options.study.is_none() && options.size.is_none();
        return as_measured(study, is_ours.then_some(IN_GUESTS));
    }
    as_measured(study, probed)
}

/// Sizes the default study in virtual time as it is on drives that were probed.
fn as_measured(study: &mut Study, probed: Option<f64>) -> Result<(), Failure> {
    let Some(rate) = probed else { return Ok(()) };
    raidlab_measure::size_sequential(study)?;
    Ok(raidlab_measure::size_random(study, rate)?)
}

/// Gives modelled members the size of those that the study runs on really beside it: other drives would have other
/// seeks, and arrays another capacity. Those of larger models are cut, smaller models stay what they are.
pub(super) fn as_placed(study: &mut Study, options: &Compare) -> Result<(), Failure> {
    let Some(place) = options.beside.as_deref().filter(|_| options.on == VIRTUAL) else {
        return Ok(());
    };
    if as_guests(study, options)? {
        return Ok(());
    }
    let sizes = real::member_sizes(study, options, place)?;
    for (named, size) in study.layouts.iter_mut().zip(sizes) {
        named.member_size = Some(size);
    }
    Ok(())
}

/// Makes modelled hosts what the guests are that the study runs in beside; whether there are any. Their drives are the
/// model's.
pub(super) fn as_guests(study: &mut Study, options: &Compare) -> Result<bool, Failure> {
    let beside = options.beside.as_deref().filter(|_| options.on == VIRTUAL);
    let Some(kernel) = beside.and_then(kernel::named) else { return Ok(false) };
    prepare(study).map_err(kernel::failure)?;
    as_kernel(study, &kernel.to_string_lossy());
    Ok(true)
}

/// Refuses what cannot be modelled.
fn check_model(modelled: &Compare, source: &Source) -> Result<(), Failure> {
    let mut study = load(modelled, source)?;
    let is_ours_to_size = modelled.study.is_none() && modelled.size.is_none();
    sized(&mut study, modelled, is_ours_to_size.then_some(FASTEST))?;
    as_placed(&mut study, modelled)?;
    let model = Modelled::new(&study, HostCosts::default());
    model.map_err(|error| bad_study(modelled, error))?;
    Ok(())
}

/// Runs the study of the options really, of which `recorder` may have a part already, then in virtual time.
pub(super) fn run(real: &Compare, source: Source, recorder: Recorder) -> Result<(), Failure> {
    let modelled = modelled_half(real)?;
    check_model(&modelled, &source)?;
    let traces = [real.trace.as_deref(), modelled.trace.as_deref()];
    real.outputs.check_with(&modelled.outputs, traces, real.study.as_deref())?;
    // Threads are for virtual time.
    let threads = real.threads.filter(|_| kernel::named(&real.on).is_some());
    let real = Compare { threads, ..real.clone() };
    let Some(mut measured) = perform(&real, &source, recorder)? else { return Ok(()) };
    output::reports(&real.outputs, &measured.results)?;
    measured.told()?;
    let recorder = Recorder::beside(&modelled, source.clone(), measured.probed);
    let hint = measured
        .name
        .as_deref()
        .map(|name| format!("what the model is off then: raidlab diff {name} last"));
    let predicted =
        perform(&modelled, &source, recorder).map_err(|failure| failure.and(hint.clone()))?;
    let Some(mut predicted) = predicted else { return Ok(()) };
    output::files(&modelled.outputs, &predicted.results)?;
    residuals(&real, &measured, &predicted)?;
    predicted.told().map_err(|failure| failure.and(hint))
}

/// What the model is off for each cell.
fn residuals(real: &Compare, measured: &Ended, modelled: &Ended) -> Result<(), Failure> {
    let name = |ended: &Ended, on: &OsStr| {
        ended.name.clone().unwrap_or_else(|| on.to_string_lossy().into_owned())
    };
    let (before, after) = (name(measured, &real.on), name(modelled, VIRTUAL.as_ref()));
    let one = std::slice::from_ref(&measured.results);
    let other = std::slice::from_ref(&modelled.results);
    let diff = Diff::of((&before, one), (&after, other), None);
    let outputs = &real.outputs;
    if let Some(path) = outputs.exports.path("json") {
        let text = raidlab_report::diff_json(&diff).map_err(Failure::failed)?;
        output::write(&output::with_word(path, output::RESIDUALS), &text)?;
    }
    if let Some(path) = outputs.exports.path("html") {
        let text = raidlab_report::html_with_residuals(&measured.results, &diff);
        output::write(path, &text.map_err(Failure::failed)?)?;
    }
    if outputs.is_shown() {
        output::print(&format!("\n{}", output::terminal(outputs.color).diff(&diff)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_study_is_as_large_as_on_the_drives_that_were_probed() {
        let sizes = |probed: Option<f64>| -> Vec<u64> {
            let study = raidlab_study::parse(raidlab_study::default_study(), "").expect("a study");
            let mut study = study;
            as_measured(&mut study, probed).expect("sizes");
            // In requests of a byte there are as many as bytes.
            let bytes = study.workloads.iter().map(|spec| spec.workload.requests(1, 1));
            bytes.map(|bytes| bytes.expect("known")).collect()
        };
        let (slow, fast) = (sizes(Some(100.0)), sizes(Some(FASTEST)));
        assert_eq!(slow, [36 << 20, 36 << 20, 1 << 20, 1 << 20]);
        assert_eq!(fast, [36 << 20, 36 << 20, 4 << 20, 4 << 20]);
        assert!(sizes(None)[0] > 1 << 30);
    }

    #[test]
    fn virtual_and_one_place_are_both() {
        let place =
            |on: &str| place_beside(on.as_ref()).map(|place| place.map(OsString::into_string));
        for (on, expected) in [
            ("virtual,/tmp", Some("/tmp")),
            ("/tmp,virtual", Some("/tmp")),
            ("virtual,/dev/a,/dev/b", Some("/dev/a,/dev/b")),
            ("/dev/a,/dev/b,virtual", Some("/dev/a,/dev/b")),
            ("virtual,./virtual", Some("./virtual")),
            ("virtual", None),
            ("/dev/a,/dev/b", None),
            ("/tmp/virtual", None),
        ] {
            let found = place(on).expect(on).map(|text| text.expect("text"));
            assert_eq!(found.as_deref(), expected, "{on}");
        }
        for on in
            ["virtual,", ",virtual", "virtual,virtual", "virtual,/tmp,virtual", "virtual,,/tmp"]
        {
            let error = place(on).expect_err(on);
            assert!(error.what().contains("one real place"), "{on}: {}", error.what());
        }
    }
}
