//! Fitting: free parameters are moved until the modelled figures are as near as can be to published ones.
//!
//! What is made small is the sum over the cells of a robust loss of ln(modelled / published): squared up
//! to 5 %, growing in proportion beyond (Huber's), so that a cell which the model does not explain
//! bends the others little. Parameters are moved in their logarithms and kept within their ranges.
//!
//! A simulation is not smooth: a little more time may cost a whole turn of a disk. So the search first
//! surveys each range; then it goes down by the method of Levenberg and Marquardt, with slopes over
//! differences of some percent, wide ones first; where that no longer helps, one parameter at a time.
//! Nothing here is random, and logarithms are those of libm, not of the platform: the same figures give the
//! same fit on any machine.

use raidlab_study::{CellKey, State, Study, StudyError, StudyErrorKind};

/// Beyond this the loss grows in proportion: ln 1.05. What a model explains it should meet within the
/// noise of a measurement; a cell beyond is to bend that little.
const KNEE: f64 = 0.048_790;

/// Values of each parameter that are looked at first, spread over its range.
const SURVEYED: u32 = 6;

/// How far parameters are moved to see what that does, in logarithms: first wide, then near.
const PROBES: [f64; 2] = [0.16, 0.04];

/// The first and the last step of one parameter at a time.
const ALONE: [f64; 2] = [0.08, 0.01];

/// A step or gain smaller than this ends the search; in logarithms, and as a share of the loss.
const ENOUGH: f64 = 1e-3;

/// Most steps of each of the two methods.
const MOST_STEPS: u32 = 15;

/// The search begins with little damping, and gives up a direction with much.
const DAMPING: f64 = 1e-3;
const MOST_DAMPING: f64 = 1e2;

/// What is to be fitted.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The published figures, above 0.
    pub published: Vec<f64>,
    /// The parameters' values to begin with, above 0 and within `ranges`.
    pub start: Vec<f64>,
    /// The least and the most of each parameter.
    pub ranges: Vec<[f64; 2]>,
}

/// What fitting came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The parameters' values, to four digits; those to begin with when none are better.
    pub values: Vec<f64>,
    /// The modelled figures with the values to begin with.
    pub before: Vec<f64>,
    /// The modelled figures with `values`.
    pub after: Vec<f64>,
    /// Each figure as modelled with parameters that were fitted to the others only: the best for them that
    /// was seen, and two steps from there; empty where there are no others.
    pub left_out: Vec<f64>,
    /// Which parameters no figure depends on: they were not moved.
    pub without_effect: Vec<bool>,
    /// How often the cells were run, each time with other values.
    pub evaluations: u32,
    /// Whether the loss is smaller than to begin with.
    pub is_better: bool,
}

/// Models the figures for each of some lists of parameters' values.
pub type Evaluate<'a, E> = dyn FnMut(&[Vec<f64>]) -> Result<Vec<Vec<f64>>, E> + 'a;

/// Fits the parameters.
///
/// # Errors
/// The first error of `evaluate`.
pub fn fit<E>(problem: &Problem, evaluate: &mut Evaluate<'_, E>) -> Result<Fit, E> {
    let mut search = Search::new(problem, evaluate);
    let start: Vec<f64> = problem.start.iter().map(|value| libm::log(*value)).collect();
    let first = search.at(start)?;
    let mut best = first.clone();
    if !best.x.is_empty() {
        best = search.survey(best)?;
        for probe in PROBES {
            best = search.descend(best, probe)?;
        }
        // What one parameter at a time gains may open a way for all together.
        let (alone, gained) = search.one_at_a_time(best)?;
        best = if gained { search.descend(alone, PROBES[1])? } else { alone };
    }
    let rounded = best.x.iter().zip(&problem.ranges);
    let rounded: Vec<f64> = rounded.map(|(x, range)| four_digits(libm::exp(*x), *range)).collect();
    let last = search.at(rounded.iter().map(|value| libm::log(*value)).collect())?;
    let is_better = search.loss(&last.r, None) < (1.0 - ENOUGH) * search.loss(&first.r, None);
    // What there was stays as it was, unless something is better.
    let (last, rounded) =
        if is_better { (last, rounded) } else { (first.clone(), problem.start.clone()) };
    let slopes = search.slopes(&last, PROBES[0])?;
    let left_out = search.leave_one_out(&last, &slopes)?;
    let has_effect = |index: usize| slopes.iter().any(|row| row[index].abs() > 1e-6);
    Ok(Fit {
        before: search.figures(&first),
        after: search.figures(&last),
        left_out,
        without_effect: (0..rounded.len()).map(|index| !has_effect(index)).collect(),
        values: rounded,
        evaluations: search.evaluations,
        is_better,
    })
}

/// A value with four digits, within its range.
fn four_digits(value: f64, [least, most]: [f64; 2]) -> f64 {
    let text = format!("{value:.3e}");
    text.parse().unwrap_or(value).clamp(least, most)
}

/// Parameters and what they come to.
#[derive(Clone, Debug)]
struct Point {
    /// Logarithms of the parameters.
    x: Vec<f64>,
    /// ln(modelled / published) of each cell.
    r: Vec<f64>,
}

/// By cell and parameter: how the logarithm of a figure changes with that of a parameter.
type Slopes = Vec<Vec<f64>>;

struct Search<'a, 'b, E> {
    problem: &'a Problem,
    evaluate: &'a mut Evaluate<'b, E>,
    evaluations: u32,
    /// Every point that was looked at.
    seen: Vec<Point>,
}

impl<'a, 'b, E> Search<'a, 'b, E> {
    fn new(problem: &'a Problem, evaluate: &'a mut Evaluate<'b, E>) -> Self {
        Self { problem, evaluate, evaluations: 0, seen: Vec::new() }
    }

    fn points(&mut self, all: Vec<Vec<f64>>) -> Result<Vec<Point>, E> {
        let ranges = &self.problem.ranges;
        let value = |(x, range): (&f64, &[f64; 2])| libm::exp(*x).clamp(range[0], range[1]);
        let values: Vec<Vec<f64>> =
            all.iter().map(|x| x.iter().zip(ranges).map(value).collect()).collect();
        self.evaluations += values.len() as u32;
        let figures = (self.evaluate)(&values)?;
        let published = &self.problem.published;
        let ratio = |(one, other): (&f64, &f64)| libm::log(one.max(1e-300) / other);
        let points = all.into_iter().zip(figures);
        let points: Vec<Point> = points
            .map(|(x, figures)| Point { x, r: figures.iter().zip(published).map(ratio).collect() })
            .collect();
        self.seen.extend(points.iter().cloned());
        Ok(points)
    }

    /// The best point that was seen, the first of equals, without the cell that is left out; `other` when
    /// none is better.
    fn best_or(&self, other: Point, left_out: Option<usize>) -> Point {
        let mut least = self.loss(&other.r, left_out);
        let mut best = &other;
        for point in &self.seen {
            let loss = self.loss(&point.r, left_out);
            if loss < least {
                (least, best) = (loss, point);
            }
        }
        best.clone()
    }

    /// Looks at values all over each range, one parameter after the other.
    fn survey(&mut self, start: Point) -> Result<Point, E> {
        let mut best = start;
        for (parameter, [least, most]) in self.problem.ranges.iter().enumerate() {
            let at = |part: u32| {
                let share = (f64::from(part) + 0.5) / f64::from(SURVEYED);
                let mut x = best.x.clone();
                x[parameter] = libm::log(*least) + share * libm::log(most / least);
                x
            };
            let points = (0..SURVEYED).map(at).collect();
            self.points(points)?;
            best = self.best_or(best, None);
        }
        Ok(best)
    }

    fn at(&mut self, x: Vec<f64>) -> Result<Point, E> {
        let fallback = Point { x: x.clone(), r: vec![0.0; self.problem.published.len()] };
        Ok(self.points(vec![x])?.pop().unwrap_or(fallback))
    }

    fn figures(&self, point: &Point) -> Vec<f64> {
        point.r.iter().zip(&self.problem.published).map(|(r, one)| libm::exp(*r) * one).collect()
    }

    /// The loss, without the cell that is left out.
    fn loss(&self, r: &[f64], left_out: Option<usize>) -> f64 {
        let counted = r.iter().enumerate().filter(|(cell, _)| Some(*cell) != left_out);
        counted.map(|(_, r)| loss(*r)).sum()
    }

    /// A parameter kept within its range.
    fn clamp(&self, parameter: usize, x: f64) -> f64 {
        let [least, most] = self.problem.ranges[parameter];
        x.clamp(libm::log(least), libm::log(most))
    }

    /// The slopes at a point, over differences of `probe`.
    fn slopes(&mut self, at: &Point, probe: f64) -> Result<Slopes, E> {
        let parameters = at.x.len();
        let probes: Vec<Vec<f64>> = (0..parameters)
            .map(|parameter| {
                let mut x = at.x.clone();
                let up = self.clamp(parameter, x[parameter] + probe);
                let down = self.clamp(parameter, x[parameter] - probe);
                let is_up = up - x[parameter] >= x[parameter] - down;
                x[parameter] = if is_up { up } else { down };
                x
            })
            .collect();
        let probes = if probes.is_empty() { Vec::new() } else { self.points(probes)? };
        let slope = |cell: usize, parameter: usize| {
            let probe: &Point = &probes[parameter];
            let moved = probe.x[parameter] - at.x[parameter];
            if moved == 0.0 { 0.0 } else { (probe.r[cell] - at.r[cell]) / moved }
        };
        let row = |cell| (0..parameters).map(|parameter| slope(cell, parameter)).collect();
        Ok((0..at.r.len()).map(row).collect())
    }

    /// Where a damped step of Gauss and Newton leads.
    fn step(&self, at: &Point, slopes: &Slopes, damping: f64, left_out: Option<usize>) -> Vec<f64> {
        let count = at.x.len();
        let mut held = vec![false; count];
        let mut x = at.x.clone();
        // A parameter that runs against the end of its range stays there while the others move on.
        for _ in 0..=count {
            let mut matrix = vec![vec![0.0; count]; count];
            let mut right = vec![0.0; count];
            for (cell, row) in slopes.iter().enumerate() {
                if Some(cell) == left_out {
                    continue;
                }
                let weight = weight(at.r[cell]);
                // What the held ones do has been done already.
                let done: f64 = (0..count)
                    .filter(|one| held[*one])
                    .map(|one| row[one] * (x[one] - at.x[one]))
                    .sum();
                for one in (0..count).filter(|one| !held[*one]) {
                    right[one] -= weight * row[one] * (at.r[cell] + done);
                    for other in (0..count).filter(|other| !held[*other]) {
                        matrix[one][other] += weight * row[one] * row[other];
                    }
                }
            }
            for one in 0..count {
                let diagonal = matrix[one][one];
                matrix[one][one] =
                    if held[one] || diagonal <= 0.0 { 1.0 } else { diagonal * (1.0 + damping) };
            }
            let moved = solve(matrix, right);
            let mut all_within = true;
            for one in (0..count).filter(|one| !held[*one]) {
                let wanted = at.x[one] + moved[one];
                x[one] = self.clamp(one, wanted);
            }
            for one in 0..count {
                if !held[one] && x[one] != at.x[one] + moved[one] {
                    held[one] = true;
                    all_within = false;
                }
            }
            if all_within {
                break;
            }
        }
        x
    }

    /// By Levenberg and Marquardt, until a step gains next to nothing.
    fn descend(&mut self, start: Point, probe: f64) -> Result<Point, E> {
        let (mut best, mut damping) = (start, DAMPING);
        for _ in 0..MOST_STEPS {
            let before = self.loss(&best.r, None);
            let slopes = self.slopes(&best, probe)?;
            while damping <= MOST_DAMPING {
                let x = self.step(&best, &slopes, damping, None);
                if distance(&x, &best.x) < ENOUGH / 4.0 {
                    break;
                }
                let point = self.at(x)?;
                if self.loss(&point.r, None) < before {
                    damping = (damping / 10.0).max(DAMPING / 10.0);
                    break;
                }
                damping *= 10.0;
            }
            // One of those that the slopes came from may be better still.
            let found = self.best_or(best.clone(), None);
            let gain = before - self.loss(&found.r, None);
            let moved = distance(&found.x, &best.x);
            best = found;
            if gain <= 0.0 || (gain < ENOUGH * before && moved < PROBES[1]) {
                break;
            }
            damping = damping.min(1.0);
        }
        Ok(best)
    }

    /// Moves one parameter at a time, ever less far; also says whether that gained anything.
    fn one_at_a_time(&mut self, start: Point) -> Result<(Point, bool), E> {
        let (mut best, mut gained, mut step) = (start, false, ALONE[0]);
        for _ in 0..MOST_STEPS {
            if step < ALONE[1] {
                break;
            }
            let mut neighbours = Vec::new();
            for parameter in 0..best.x.len() {
                for way in [-step, step] {
                    let mut x = best.x.clone();
                    x[parameter] = self.clamp(parameter, x[parameter] + way);
                    if x != best.x {
                        neighbours.push(x);
                    }
                }
            }
            let before = self.loss(&best.r, None);
            self.points(neighbours)?;
            let found = self.best_or(best.clone(), None);
            if self.loss(&found.r, None) < (1.0 - ENOUGH) * before {
                best = found;
                gained = true;
            } else {
                step /= 2.0;
            }
        }
        Ok((best, gained))
    }

    /// Each cell as it is modelled with parameters that were fitted without it: from the best that was
    /// seen for the other cells, in two steps.
    fn leave_one_out(&mut self, best: &Point, slopes: &Slopes) -> Result<Vec<f64>, E> {
        let cells = best.r.len();
        if cells < 2 || best.x.is_empty() {
            return Ok(Vec::new());
        }
        let mut fits: Vec<Point> =
            (0..cells).map(|cell| self.best_or(best.clone(), Some(cell))).collect();
        for _ in 0..2 {
            let steps: Vec<Vec<f64>> = fits
                .iter()
                .enumerate()
                .map(|(cell, point)| self.step(point, slopes, DAMPING, Some(cell)))
                .collect();
            let points = self.points(steps)?;
            for (cell, point) in points.into_iter().enumerate() {
                let loss = |point: &Point| self.loss(&point.r, Some(cell));
                if loss(&point) < loss(&fits[cell]) {
                    fits[cell] = point;
                }
            }
        }
        let figure = |(cell, point): (usize, &Point)| self.figures(point)[cell];
        Ok(fits.iter().enumerate().map(figure).collect())
    }
}

/// How far apart two lists of parameters are: the largest difference.
fn distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max)
}

/// Huber's loss.
fn loss(r: f64) -> f64 {
    let size = r.abs();
    if size <= KNEE { size * size / 2.0 } else { KNEE * (size - KNEE / 2.0) }
}

/// What makes squares of that loss.
fn weight(r: f64) -> f64 {
    if r.abs() <= KNEE { 1.0 } else { KNEE / r.abs() }
}

/// Solves linear equations by elimination. Damped equations are never singular; of others, unknowns that
/// nothing determines come out as 0.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let count = right.len();
    for column in 0..count {
        let largest = (column..count)
            .max_by(|one, other| {
                matrix[*one][column].abs().total_cmp(&matrix[*other][column].abs())
            })
            .unwrap_or(column);
        if matrix[largest][column].abs() < 1e-12 {
            continue;
        }
        matrix.swap(column, largest);
        right.swap(column, largest);
        let pivot = matrix[column].clone();
        for row in column + 1..count {
            let factor = matrix[row][column] / pivot[column];
            for (value, above) in matrix[row].iter_mut().zip(&pivot) {
                *value -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    let mut solution = vec![0.0; count];
    for row in (0..count).rev() {
        let rest: f64 = (row + 1..count).map(|column| matrix[row][column] * solution[column]).sum();
        let pivot = matrix[row][row];
        solution[row] = if pivot.abs() < 1e-12 { 0.0 } else { (right[row] - rest) / pivot };
    }
    solution
}

/// A run that gives given figures: of one cell, with one or more of its metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenRun {
    /// The cell.
    pub key: CellKey,
    /// Positions in the study's given figures, each with the position of its metric among the
    /// workload's.
    pub figures: Vec<(usize, usize)>,
}

/// The runs that give all given figures, each run once.
///
/// # Errors
/// When a figure's metric is none of its workload's.
pub fn given_runs(study: &Study) -> Result<Vec<GivenRun>, StudyError> {
    let mut runs: Vec<GivenRun> = Vec::new();
    for (index, given) in study.given.iter().enumerate() {
        let layout = study.layouts.iter().position(|layout| layout.name == given.layout);
        let named =
            study.workloads.iter().enumerate().filter(|(_, one)| one.name == given.workload);
        let mut known = Vec::new();
        let mut found = None;
        for (workload, spec) in named {
            for (metric, one) in spec.workload.metrics().iter().enumerate() {
                let shown = spec.shown.iter().find(|(shown, _)| shown == one.name);
                let name = match shown {
                    Some((_, name)) => name.as_str(),
                    None if spec.shown.is_empty() => one.name,
                    None => continue,
                };
                known.push(name.to_string());
                if name == given.metric && found.is_none() {
                    found = Some((workload, metric));
                }
            }
        }
        let (Some(layout), Some((workload, metric))) = (layout, found) else {
            let known = known.join(", ");
            let reason =
                format!("{} has no metric `{}`; it has: {known}", given.workload, given.metric);
            let place = ("given", index, "metric");
            return Err(study.origin.error(StudyErrorKind::UnknownName, place, reason));
        };
        let (processes, state) = (given.processes, State::Healthy);
        let key = CellKey { layout, workload, processes, state, again: false };
        match runs.iter_mut().find(|run| run.key == key) {
            Some(run) => run.figures.push((index, metric)),
            None => runs.push(GivenRun { key, figures: vec![(index, metric)] }),
        }
    }
    Ok(runs)
}

#[cfg(test)]
mod tests;
