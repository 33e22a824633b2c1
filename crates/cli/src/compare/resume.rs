//! `raidlab compare --resume`: options and study of a run that was recorded.

use std::path::{Path, PathBuf};

use raidlab_core::Size;
use raidlab_results::{Clock, Results};
use raidlab_store::{RunRecord, Store, StoreError, StoreErrorKind, Stored, cell_names};
use raidlab_study::{Samples, Study};

use super::record::{self, Recorder};
use super::{both, kernel, load, real};
use crate::args::{Color, Compare, Consent, Devices, StoreDirectory};
use crate::exports::Exports;
use crate::failure::Failure;
use crate::output::Outputs;

/// The store that a flag or the environment names.
pub(crate) fn store(flag: &StoreDirectory) -> Result<Store, Failure> {
    let directory = record::directory(flag)?;
    directory.map(Store::new).ok_or_else(|| {
        Failure::input("RAIDLAB_STORE is off: say with --store which runs are meant")
    })
}

/// An error of a store: what was named wrongly, or what cannot be read, is input.
pub(crate) fn failure(error: StoreError) -> Failure {
    match error.kind {
        StoreErrorKind::Io => Failure::failed(error),
        _ => Failure::input(error),
    }
}

/// The options that a run was begun with, besides those of now that do not make it another run; and who records
/// the rest.
pub(super) fn prepare(now: &Compare, name: Option<&str>) -> Result<(Compare, Recorder), Failure> {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let store = Store::new(absolute(store(&now.store)?.directory()));
    let id = name.map_or_else(|| store.last_unfinished(), |name| store.find(name));
    let id = id.map_err(failure)?;
    let taken = store.take(&id).map_err(failure)?;
    let record = &taken.stored.record;
    if taken.stored.is_done() {
        return Err(Failure::input(format!("run {id} is done; `raidlab show {id}` shows it")));
    }
    let place = |path: &Path| if path == Path::new("-") { path.into() } else { absolute(path) };
    let output = |path: &Option<PathBuf>| path.as_deref().map(place);
    let options = Compare {
        devices: Devices {
            consent: Consent {
                save_dir: output(&now.devices.consent.save_dir),
                ..now.devices.consent.clone()
            },
            ..now.devices.clone()
        },
        store: StoreDirectory { store: output(&now.store.store) },
        outputs: Outputs { exports: now.outputs.exports.map(place), ..now.outputs },
        threads: now.threads,
        ..begun_with(record)?
    };
    // Relative paths of the run, also those in its study, go out from where it was begun.
    let directory = record.directory.path();
    if std::env::current_dir().ok().as_deref() != Some(&*directory) {
        std::env::set_current_dir(&directory).map_err(|error| {
            let place = directory.display();
            Failure::input(format!(
                "the run was begun in {place}, which cannot be entered: {error}"
            ))
        })?;
    }
    Ok((options, Recorder::going_on(store, taken)))
}

/// The options that a run was begun with.
fn begun_with(record: &RunRecord) -> Result<Compare, Failure> {
    let options = &record.options;
    let states = options
        .states
        .as_ref()
        .map(|states| states.iter().map(|state| state.parse()).collect::<Result<Vec<_>, _>>());
    Ok(Compare {
        study: options.study.as_ref().map(raidlab_store::PathText::path),
        on: options.on.path().into_os_string(),
        beside: options.beside.as_ref().map(|place| place.path().into_os_string()),
        devices: Devices::default(),
        resume: None,
        store: StoreDirectory { store: None },
        no_store: false,
        outputs: Outputs { exports: Exports::default(), quiet: false, color: Color::Auto },
        seed: options.seed,
        rounds: options.rounds,
        size: options.size.map(Size),
        states: states.transpose().map_err(Failure::input)?,
        filesystem: options.filesystem.clone(),
        threads: None,
        trace: None,
    })
}

/// The study of a run as it was.
fn study(record: &RunRecord) -> Result<Study, Failure> {
    let options = begun_with(record)?;
    let mut study = load(&options, &record.conditions.study_file)?;
    match record.clock {
        Clock::Real => {
            let drives = record.conditions.drives.iter();
            let bytes: Vec<u64> = drives.filter_map(|drive| drive.size).collect();
            real::as_recorded(&mut study, &options, (&record.title, &bytes), record.probed)?;
        }
        Clock::Virtual => {
            both::sized(&mut study, &options, record.probed)?;
            // As it ran, but for the sizes of members, which only running needs: drives may be gone.
            both::as_guests(&mut study, &options)?;
            study.modelled = kernel::named(&options.on).is_none();
        }
    }
    if cell_names(&study) != record.cells {
        let (id, by) = (&record.id, &record.conditions.raidlab);
        return Err(Failure::input(format!(
            "run {id} was recorded by raidlab {by}, which read its study in another way"
        )));
    }
    Ok(study)
}

/// The results of a run: those it ended with, or of the rounds that are complete.
pub(crate) fn results(stored: &Stored) -> Result<Results, Failure> {
    if let Some(results) = stored.results().map_err(failure)? {
        return Ok(results);
    }
    let record = &stored.record;
    if stored.complete_rounds() == 0 {
        let (runs, cells) = (stored.runs.len(), record.cells.len());
        return Err(Failure::input(format!(
            "run {} has no complete round yet: {runs} of {cells} cells are there",
            record.id
        )));
    }
    let study = study(record)?;
    let samples = Samples::of_complete_rounds(&study, stored.runs.clone());
    let stops = if record.clock == Clock::Real { stored.resumed.len() } else { 0 };
    let warning: Vec<String> = record::stopped(stops).into_iter().collect();
    let setting = super::Setting {
        clock: record.clock,
        host: record.setting.host.clone(),
        settings: record.setting.settings.clone(),
        warnings: [&*record.setting.warnings, &warning].concat(),
        capacities: record.setting.capacities(),
    };
    super::results(&study, &samples, setting)
}
