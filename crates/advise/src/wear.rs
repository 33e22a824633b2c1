//! What the work writes to each drive, to be held against what its sheet rates.

use raidlab_models::DriveKind;
use raidlab_study::State;

use crate::candidate::terabytes;
use crate::decide::Advice;
use crate::meter::Measured;
use crate::wanted::Wanted;

/// Days of a year.
const DAYS: f64 = 365.0;
/// Seconds of a day.
const DAY: f64 = 86_400.0;

impl Measured {
    /// Bytes a second that are written to each drive while the work goes on, parity and copies too: the mean of the
    /// parts of the work, all drives working. `None` where nothing counted them.
    pub fn written(&self, drives: u16) -> Option<f64> {
        let healthy: Vec<f64> = self
            .samples
            .iter()
            .filter(|(_, state, _)| *state == State::Healthy)
            .map(|(_, _, sample)| {
                let seconds = sample.last_done.as_secs().max(1e-9);
                Some(sample.members?.bytes_written as f64 / seconds / f64::from(drives))
            })
            .collect::<Option<_>>()?;
        (!healthy.is_empty()).then(|| healthy.iter().sum::<f64>() / healthy.len() as f64)
    }
}

/// How much the recommendation writes to each drive: of SSDs, and of hard disks whose work comes at a rate of its own.
pub(crate) fn in_words(wanted: &Wanted, advice: &Advice) -> Option<String> {
    let pick = &advice.finalists[advice.verdict.pick];
    let drives = pick.candidate.layout.drives();
    let a_day = pick.median(|run| run.written(drives))? * wanted.busy * DAY;
    let held = wanted.member().bytes() as f64;
    let busy = wanted.busy * 100.0;
    let amount = |bytes: f64| match bytes {
        bytes if bytes < 1e12 => format!("{:.0} GB", bytes / 1e9),
        bytes if bytes >= 1e14 => format!("{:.0} TB", bytes / 1e12),
        bytes => terabytes(bytes as u64),
    };
    match wanted.drive.kind {
        DriveKind::Ssd(_) if a_day / held >= 0.01 => {
            let speed = if wanted.is_paced() { "" } else { " as fast as it can" };
            Some(format!(
                "Wear: if the work goes on{speed} {busy:.0} % of the time (--busy), {} are written to each SSD a day, \
                 {:.1} times what it holds, {} a year. Hold that against the drive writes a day or the TBW of its \
                 sheet, which drive files do not have.",
                amount(a_day),
                a_day / held,
                amount(a_day * DAYS)
            ))
        }
        DriveKind::HardDisk(_) | DriveKind::Smr(_) if wanted.is_paced() && a_day > 0.0 => {
            Some(format!(
                "{} are written to each drive a year, and rebuilds and checks come on top. Hold that against the \
                 yearly workload of its sheet, which counts reads too and which drive files do not have.",
                amount(a_day * DAYS)
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{advice, finalist, wanted};

    /// What members were written in a second, by the share of the time and by drive.
    #[test]
    fn what_drives_are_written_is_told_by_day_and_year() {
        let told = |drive: &str, work: &str, rate: u64, busy: f64| {
            let mut wanted = wanted(2, drive, work);
            wanted.busy = busy;
            let one = finalist(&wanted, "raid1(2)", &[rate], [Some(1), Some(1)]);
            in_words(&wanted, &advice(vec![one]))
        };
        // 100 MB a second on each of two, half of the time: 4.32 TB a day, 1,577 TB a year.
        let wear = told("ssd-sata-1tb", "vm", 100, 0.5).expect("much");
        assert!(
            wear.starts_with(
                "Wear: if the work goes on as fast as it can 50 % of the time (--busy), 4.3 TB"
            ),
            "{wear}"
        );
        assert!(wear.contains(" a day, 4.3 times what it holds, 1577 TB a year"), "{wear}");
        let less = told("ssd-sata-1tb", "vm", 10, 0.5).expect("some");
        assert!(
            less.contains(
                "432 GB are written to each SSD a day, 0.4 times what it holds, 158 TB a year"
            ),
            "{less}"
        );
        // A hundredth of what it holds: 10 GB.
        assert!(
            told("ssd-sata-1tb", "vm", 1, 0.12).is_some()
                && told("ssd-sata-1tb", "vm", 1, 0.11).is_none()
        );
        let disk = told("nas-8tb-7200", "surveillance", 1, 0.5).expect("at a rate");
        assert!(disk.starts_with("15.8 TB are written to each drive a year"), "{disk}");
        assert_eq!(told("nas-8tb-7200", "vm", 100, 0.5), None, "as fast as it can");
        assert_eq!(told("nas-8tb-7200", "surveillance", 0, 0.5), None, "nothing");
    }
}
