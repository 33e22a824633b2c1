//! Exact figures where failures and repairs have no memory: Markov chains over the sets of drives that are gone.
//!
//! Everything is sums of positive numbers, so that chances of 1e-12 have as many digits as those of 0.1.

use std::collections::BTreeMap;

use crate::array::Array;
use crate::model::RepairOrder;

/// A chain. Rates an hour.
#[derive(Clone, Debug)]
pub struct Chain {
    /// From each state the rates to other states.
    rates: Vec<Vec<(usize, f64)>>,
    /// From each state the rate at which data are lost.
    lost: Vec<f64>,
}

/// States at most.
const MOST_STATES: usize = 20_000;

/// What a chain is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Failures an hour of each drive.
    pub fails: f64,
    /// Repairs an hour.
    pub repairs: f64,
    /// How many are repaired at once; serial: any of those that are gone is the next with equal chance.
    pub order: RepairOrder,
    /// The chance that a drive of which all is exposed after a loss has something unreadable.
    pub unreadable: f64,
}

impl Chain {
    /// The chain of an array.
    ///
    /// # Errors
    /// When there are too many states.
    pub fn new(array: &mut Array, with: Rates) -> Result<Self, String> {
        let mut numbers = BTreeMap::from([(Vec::new(), 0usize)]);
        let mut sets: Vec<Vec<u16>> = vec![Vec::new()];
        let mut chain = Self { rates: Vec::new(), lost: Vec::new() };
        while let Some(gone) = sets.get(chain.rates.len()).cloned() {
            let (mut rates, mut lost) = (Vec::new(), 0.0);
            let mut number = |set: Vec<u16>| {
                *numbers.entry(set).or_insert_with_key(|set| {
                    sets.push(set.clone());
                    sets.len() - 1
                })
            };
            let state = array.state(&gone);
            let exposed = array.exposed(state).to_vec();
            for drive in (0..array.drives()).filter(|drive| !gone.contains(drive)) {
                if exposed[usize::from(drive)] > 0.0 {
                    lost += with.fails;
                    continue;
                }
                let mut next = gone.clone();
                next.insert(next.partition_point(|one| *one < drive), drive);
                let state = array.state(&next);
                let intact = array.exposed(state).iter();
                let intact: f64 = intact.map(|part| 1.0 - part * with.unreadable).product();
                lost += with.fails * (1.0 - intact);
                rates.push((number(next), with.fails * intact));
            }
            for (index, _) in gone.iter().enumerate() {
                let mut next = gone.clone();
                next.remove(index);
                let share =
                    if with.order == RepairOrder::Serial { 1.0 / gone.len() as f64 } else { 1.0 };
                rates.push((number(next), with.repairs * share));
            }
            if sets.len() > MOST_STATES {
                return Err(format!("more than {MOST_STATES} sets of lost drives"));
            }
            chain.rates.push(rates);
            chain.lost.push(lost);
        }
        Ok(chain)
    }

    /// How many states there are.
    pub fn states(&self) -> usize {
        self.rates.len()
    }

    /// Hours until data are lost, on average: states are eliminated one by one (Grassmann, Taksar and Heyman).
    pub fn mean_time(&self) -> f64 {
        let count = self.rates.len();
        let mut rates = vec![vec![0.0; count]; count];
        for (from, of) in self.rates.iter().enumerate() {
            of.iter().for_each(|(to, rate)| rates[from][*to] += rate);
        }
        let (mut lost, mut time) = (self.lost.clone(), vec![1.0; count]);
        for gone in (1..count).rev() {
            let out: f64 = rates[gone][..gone].iter().sum::<f64>() + lost[gone];
            let (above, below) = rates.split_at_mut(gone);
            for (from, row) in above.iter_mut().enumerate() {
                let share = row[gone] / out;
                if share == 0.0 {
                    continue;
                }
                for (to, rate) in below[0][..gone].iter().enumerate().filter(|(to, _)| *to != from)
                {
                    row[to] += share * rate;
                }
                lost[from] += share * lost[gone];
                time[from] += share * time[gone];
            }
        }
        time[0] / lost[0]
    }

    /// The chance that data are lost within so many hours, by uniformization.
    pub fn chance(&self, hours: f64) -> f64 {
        let out = |state: usize| {
            self.rates[state].iter().map(|(_, rate)| rate).sum::<f64>() + self.lost[state]
        };
        let fastest = (0..self.rates.len()).map(out).fold(0.0, f64::max);
        let mean = fastest * hours;
        if mean == 0.0 {
            return 0.0;
        }
        let outs: Vec<f64> = (0..self.rates.len()).map(out).collect();
        let mut now = vec![0.0; self.rates.len()];
        now[0] = 1.0;
        let (mut lost, mut sum) = (0.0, 0.0);
        let last = (mean + 10.0 * mean.sqrt() + 50.0) as u64;
        for step in 0..=last {
            let steps = step as f64;
            let log = steps * libm::log(mean) - mean - libm::lgamma(steps + 1.0);
            sum += libm::exp(log) * lost;
            let mut next: Vec<f64> =
                now.iter().zip(&outs).map(|(share, out)| share * (1.0 - out / fastest)).collect();
            for (from, of) in self.rates.iter().enumerate() {
                let each = now[from] / fastest;
                of.iter().for_each(|(to, rate)| next[*to] += each * rate);
                lost += each * self.lost[from];
            }
            now = next;
        }
        sum
    }
}
