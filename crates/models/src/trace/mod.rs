//! Models judged by measured drives.
//!
//! A measured trace gives requests with the response time that a real drive took for each. The
//! model replays them in a closed loop ([`replay`]): each request is issued its delay after the
//! modelled completion of the one before, so there is never more than one outstanding. The two
//! distributions of response times are then compared ([`Score`]). Formats and figures stand in
//! `docs/fidelity.md`.

mod parameters;
mod replay;
mod requests;
mod score;

pub use parameters::{Detail, Parameters, parse_parameters};
pub use replay::replay;
pub use requests::{Measured, parse_requests};
pub use score::Score;

use raidlab_core::units::Nanos;

use crate::error::{ModelError, ModelErrorKind};
use crate::file::{self, DriveKind, text_at};
use crate::spec::HardDiskSpec;
use score::HitRule;

/// A modelled drive judged by a measured trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What the drive is called.
    pub title: String,
    /// The file that describes it.
    pub drive: String,
    /// The file of the trace.
    pub trace: String,
    /// How near the model comes with everything its file says.
    pub full: Score,
    /// How near with what a data sheet gives of mechanics; drives with measured parameters only.
    pub sheet: Option<Score>,
    /// Demerit of the full model of DiskSim 4.0 on this trace, in percent of the measured mean;
    /// drives with measured parameters only.
    pub disksim_percent: Option<f64>,
}

/// Judges a drive by the trace at a path. `drive` is a name or the path of a file that ends in
/// `.toml`. A name is looked for beside the trace first, where `NAME.toml` holds the parameters of a
/// measured drive, then among the drives compiled in. The file may be of either kind; parameters
/// of a measured drive have no `kind`. `seed` gives the angle of the platters at the start.
///
/// # Errors
/// When a file cannot be read or does not hold what it should, when there is no such drive, and
/// for drives that are not hard disks: their models are not judged by traces.
pub fn validate(drive: &str, trace: &str, seed: u64) -> Result<Report, ModelError> {
    let text = text_at(trace.as_ref(), "the trace")?;
    let beside = match trace.rfind(['/', '\\']) {
        Some(end) => format!("{}{drive}.toml", &trace[..=end]),
        None => format!("{drive}.toml"),
    };
    let known = file::builtin().iter().any(|(name, _)| *name == drive);
    let (path, parameters) = if drive.ends_with(".toml") {
        (drive.to_owned(), Some(text_at(drive.as_ref(), "the drive file")?))
    } else {
        match text_at(beside.as_ref(), "the parameters of the drive") {
            Ok(found) => (beside, Some(found)),
            Err(_) if known => (format!("drives/{drive}.toml"), None),
            Err(error) => {
                let names: Vec<_> = file::builtin().iter().map(|(name, _)| *name).collect();
                let reason = format!(
                    "no such drive: there is no {beside}; compiled in are {}",
                    names.join(", ")
                );
                let kind = ModelErrorKind::UnknownDrive;
                return Err(ModelError::new(kind, drive, reason).because(error));
            }
        }
    };
    let spec = match parameters {
        Some(found) if !has_kind(&found) => {
            return measured(&parse_parameters(&found, &path)?, &path, &text, trace, seed);
        }
        Some(found) => file::parse(&found, &path)?,
        None => file::load(drive)?,
    };
    let DriveKind::HardDisk(disk) = &spec.kind else {
        let reason = "is no hard disk; only models of hard disks are judged by measured traces";
        return Err(ModelError::new(ModelErrorKind::OutOfRange, &path, reason).for_key("kind"));
    };
    let requests = parse_requests(&text, trace, spec.capacity.0)?;
    let full = compare(disk, &requests, seed);
    let (title, trace) = (spec.title, trace.to_owned());
    Ok(Report { title, drive: path, trace, full, sheet: None, disksim_percent: None })
}

/// Whether a text is a drive file, which says of what kind the drive is.
fn has_kind(text: &str) -> bool {
    let is_kind = |line: &str| line.split_once('=').is_some_and(|(key, _)| key.trim() == "kind");
    text.lines().any(is_kind)
}

fn measured(
    parameters: &Parameters,
    path: &str,
    text: &str,
    trace: &str,
    seed: u64,
) -> Result<Report, ModelError> {
    let capacity = parameters.spec(Detail::Full).figures().capacity.0;
    let requests = parse_requests(text, trace, capacity)?;
    Ok(Report {
        title: parameters.title.clone(),
        drive: path.to_owned(),
        trace: trace.to_owned(),
        full: compare(parameters.spec(Detail::Full), &requests, seed),
        sheet: Some(compare(parameters.spec(Detail::Sheet), &requests, seed)),
        disksim_percent: Some(parameters.disksim_percent()),
    })
}

/// Replays requests on a modelled drive and compares. `requests` is not empty.
///
/// A read counts as answered by the buffer, measured or modelled, if it took no longer than overhead
/// and interface and a tenth of a turn.
pub fn compare(spec: &HardDiskSpec, requests: &[Measured], seed: u64) -> Score {
    let modelled = replay(spec, requests, seed);
    score::score(requests, &modelled, hit_rule(spec))
}

fn hit_rule(spec: &HardDiskSpec) -> HitRule {
    let f = spec.figures();
    let overhead = f.overheads.map_or(f.command_overhead, |all| {
        Nanos(all.read_hit[0].0.min(all.read_hit[1].0) + all.read_completion.0)
    });
    let turn = 60_000_000_000 / u64::from(f.rpm);
    let per_sector = Nanos(512_000_000_000 / f.link_rate);
    HitRule { base: Nanos(overhead.0 + turn / 10), per_sector }
}
