//! How near modelled response times come to measured ones.

use raidlab_core::units::Nanos;

use super::requests::Measured;
use crate::drive::DriveOp;

/// Modelled against measured response times.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Requests compared.
    pub requests: usize,
    /// Mean of the measured response times, in milliseconds.
    pub measured_mean_ms: f64,
    /// Mean of the modelled response times, in milliseconds.
    pub modelled_mean_ms: f64,
    /// Modelled mean over measured mean, less 1, in percent.
    pub mean_error_percent: f64,
    /// Root mean square of the differences at equal rank, in milliseconds (Ruemmler and Wilkes, *An
    /// introduction to disk drive modeling*, IEEE Computer, March 1994).
    pub demerit_ms: f64,
    /// The same in percent of the measured mean.
    pub demerit_percent: f64,
    /// Modelled over measured median.
    pub p50_ratio: f64,
    /// Modelled over measured 95th percentile.
    pub p95_ratio: f64,
    /// Modelled over measured 99th percentile.
    pub p99_ratio: f64,
    /// Share of the reads that the buffer answered in the measurement, in percent.
    pub measured_read_hits_percent: f64,
    /// Share of the reads that the buffer answers in the model, in percent; by the same rule.
    pub modelled_read_hits_percent: f64,
}

/// What a read from the buffer takes, to tell hits from misses by their response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HitRule {
    /// For every read.
    pub base: Nanos,
    /// For every sector on top.
    pub per_sector: Nanos,
}

impl HitRule {
    fn share(self, requests: &[Measured], responses: impl Iterator<Item = Nanos>) -> f64 {
        let (mut reads, mut hits) = (0u32, 0u32);
        for (request, response) in requests.iter().zip(responses) {
            if request.op == DriveOp::Read {
                reads += 1;
                let most = self.base.0 + self.per_sector.0 * u64::from(request.len);
                hits += u32::from(response.0 <= most);
            }
        }
        if reads == 0 { 0.0 } else { 100.0 * f64::from(hits) / f64::from(reads) }
    }
}

fn mean(times: &[Nanos]) -> f64 {
    times.iter().map(|time| time.0 as f64).sum::<f64>() / times.len() as f64
}

/// `requests` and `modelled` are as long as each other and not empty.
pub(super) fn score(requests: &[Measured], modelled: &[Nanos], rule: HitRule) -> Score {
    let mut real: Vec<_> = requests.iter().map(|request| request.response).collect();
    let mut model = modelled.to_vec();
    real.sort_unstable();
    model.sort_unstable();
    let squares = real.iter().zip(&model).map(|(real, model)| {
        let off = model.0 as f64 - real.0 as f64;
        off * off
    });
    let demerit = (squares.sum::<f64>() / real.len() as f64).sqrt();
    let (real_mean, model_mean) = (mean(&real), mean(&model));
    let ratio = |percent: usize| {
        let rank = (real.len() * percent / 100).min(real.len() - 1);
        model[rank].0 as f64 / (real[rank].0 as f64).max(1.0)
    };
    Score {
        requests: real.len(),
        measured_mean_ms: real_mean / 1e6,
        modelled_mean_ms: model_mean / 1e6,
        mean_error_percent: (model_mean / real_mean - 1.0) * 100.0,
        demerit_ms: demerit / 1e6,
        demerit_percent: demerit / real_mean * 100.0,
        p50_ratio: ratio(50),
        p95_ratio: ratio(95),
        p99_ratio: ratio(99),
        measured_read_hits_percent: rule.share(requests, requests.iter().map(|one| one.response)),
        modelled_read_hits_percent: rule.share(requests, modelled.iter().copied()),
    }
}
