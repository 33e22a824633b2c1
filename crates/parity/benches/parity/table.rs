//! Cells, and how their figures are printed.

use std::fmt;

use raidlab_parity::path;

use crate::peers::Operation;
use crate::{COUNTS, SIZES};

/// One combination that is measured.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) operation: Operation,
    pub(crate) n: usize,
    /// Bytes of a block.
    pub(crate) size: usize,
    pub(crate) hot: bool,
    pub(crate) staggered: bool,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, n, size, hot, staggered } = self;
        let level = if *hot { "hot" } else { "memory" };
        let layout = if *staggered { "staggered" } else { "aligned" };
        write!(f, "{} n={n} {}K {level} {layout}", operation.name(), size >> 10)
    }
}

/// All cells, in the order of the table.
pub(crate) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for operation in Operation::ALL {
        for hot in [true, false] {
            for staggered in [true, false] {
                for n in COUNTS {
                    let cell = |size| Cell { operation, n, size, hot, staggered };
                    cells.extend(SIZES.map(cell));
                }
            }
        }
    }
    cells
}

/// A cell's rates, in GB/s: ours, ours storing the other way, ours by AVX2 where that is not the fastest, and
/// those of [`ISAL_AVX2`], [`ISAL`] and [`CRATE`].
pub(crate) type Row = (Cell, Vec<Option<f64>>);
/// ISA-L by AVX2.
const ISAL_AVX2: usize = 3;
/// ISA-L by its own choice.
const ISAL: usize = 4;
const CRATE: usize = 5;

#[derive(Default)]
pub(crate) struct Results {
    /// Size, whether hot, and what copying through the cache and past it reaches, in GB/s of payload.
    pub(crate) copies: Vec<(usize, bool, [f64; 2])>,
    pub(crate) rows: Vec<Row>,
}

/// A goal: whose rate it is a ratio to, its name, whether a cell counts, the ratio.
type Goal = (usize, &'static str, fn(&Cell) -> bool, f64);

const GOALS: [Goal; 17] = [
    (ISAL, "P+Q hot", |c| is(c, Operation::Pq, true), 1.0),
    (ISAL, "P+Q from memory", |c| is(c, Operation::Pq, false), 1.0),
    (ISAL, "two data hot", |c| is(c, Operation::Two, true), 1.0),
    (ISAL, "two data from memory", |c| is(c, Operation::Two, false), 1.0),
    (CRATE, "P+Q hot", |c| is(c, Operation::Pq, true), 1.0),
    (CRATE, "P+Q from memory", |c| is(c, Operation::Pq, false), 1.0),
    (
        ISAL_AVX2,
        "P+Q hot staggered, n >= 6",
        |c| is(c, Operation::Pq, true) && c.staggered && c.n >= 6,
        1.0,
    ),
    (
        ISAL_AVX2,
        "P+Q hot staggered, n = 3, 4",
        |c| is(c, Operation::Pq, true) && c.staggered && c.n <= 4,
        1.3,
    ),
    (
        ISAL_AVX2,
        "P+Q hot aligned, n = 8",
        |c| is(c, Operation::Pq, true) && !c.staggered && c.n == 8,
        1.2,
    ),
    (
        ISAL_AVX2,
        "P+Q hot aligned, n >= 10",
        |c| is(c, Operation::Pq, true) && !c.staggered && c.n >= 10,
        2.0,
    ),
    (ISAL_AVX2, "P+Q from memory", |c| is(c, Operation::Pq, false), 0.95),
    (
        ISAL_AVX2,
        "P+Q from memory aligned, n >= 10",
        |c| is(c, Operation::Pq, false) && !c.staggered && c.n >= 10,
        1.3,
    ),
    (ISAL_AVX2, "XOR hot", |c| is(c, Operation::Xor, true), 0.95),
    (ISAL_AVX2, "XOR from memory", |c| is(c, Operation::Xor, false), 0.95),
    (ISAL_AVX2, "delta hot", |c| is(c, Operation::Delta, true), 2.0),
    (ISAL_AVX2, "delta from memory", |c| is(c, Operation::Delta, false), 2.0),
    (ISAL_AVX2, "two data hot", |c| is(c, Operation::Two, true), 1.5),
];

fn is(cell: &Cell, operation: Operation, hot: bool) -> bool {
    cell.operation == operation && cell.hot == hot
}

/// Ours over another's.
fn ratio(rates: &[Option<f64>], other: usize) -> Option<f64> {
    Some(rates[0]? / rates[other]?)
}

impl Results {
    pub(crate) fn print(&self) {
        println!("parity, {} path, GB of data a second and core, 90th percentile\n", path());
        println!("Copying, payload: through the cache (memcpy) / past it\n");
        println!("| | 4K | 64K | 512K |\n|---|--:|--:|--:|");
        for hot in [true, false] {
            let of = self.copies.iter().filter(|(_, other, _)| *other == hot);
            let figures = of.map(|(_, _, [cached, past])| format!(" {cached:.0} / {past:.0} |"));
            println!("| {} |{}", level(hot), figures.collect::<String>());
        }
        for operation in Operation::ALL {
            for hot in [true, false] {
                self.print_part(operation, hot);
            }
        }
        self.print_goals();
    }

    fn print_part(&self, operation: Operation, hot: bool) {
        let part: Vec<&Row> =
            self.rows.iter().filter(|(cell, _)| is(cell, operation, hot)).collect();
        if part.is_empty() {
            return;
        }
        println!("\n**{}, {}**\n", title(operation), level(hot));
        let header = SIZES.map(|size| {
            let size = size >> 10;
            format!(
                " {size}K: raidlab / ISA-L = ratio | other store, raidlab AVX2, ISA-L AVX2, crate |"
            )
        });
        println!("| |{}\n|---|{}", header.concat(), "--:|--:|".repeat(SIZES.len()));
        for staggered in [true, false] {
            for n in COUNTS {
                let of_row = |cell: &Cell| cell.n == n && cell.staggered == staggered;
                if !part.iter().any(|(cell, _)| of_row(cell)) {
                    continue;
                }
                print!("| n={n} {} |", if staggered { "staggered" } else { "aligned" });
                for size in SIZES {
                    let found = part.iter().find(|(cell, _)| of_row(cell) && cell.size == size);
                    match found {
                        Some((_, rates)) => print!("{}", figures(rates)),
                        None => print!(" | |"),
                    }
                }
                println!();
            }
        }
        self.print_share(&part);
    }

    /// How much of the traffic that copying moves these cells move: payload read once and written once.
    fn print_share(&self, part: &[&Row]) {
        let share = |(cell, rates): &&Row| {
            let same =
                |(size, hot, _): &&(usize, bool, [f64; 2])| *size == cell.size && *hot == cell.hot;
            let (.., [cached, past]) = self.copies.iter().find(same)?;
            let (n, operation) = (cell.n, cell.operation);
            let moved = operation.moved(n) as f64 / operation.payload(n) as f64 * rates[0]?;
            Some(moved / (2.0 * cached.max(*past)) * 100.0)
        };
        let mut shares: Vec<f64> = part.iter().filter_map(share).collect();
        shares.sort_by(f64::total_cmp);
        if let (Some(low), Some(high)) = (shares.first(), shares.last()) {
            let middle = shares[shares.len() / 2];
            println!(
                "\nTraffic against that of copying as much: median {middle:.0} % \
                 ({low:.0} to {high:.0} %)."
            );
        }
    }

    /// Each goal with the lowest and the median ratio, and the cells that miss it.
    fn print_goals(&self) {
        println!("\n**Goals, as ratios to others**\n");
        println!(
            "| to | goal | wanted | cells | median | lowest | below |\n\
             |---|---|--:|--:|--:|--:|---|"
        );
        for (other, name, counts, wanted) in GOALS {
            let of = self.rows.iter().filter(|(cell, _)| counts(cell));
            let of = of.filter_map(|(cell, rates)| Some((ratio(rates, other)?, cell)));
            let mut of: Vec<(f64, &Cell)> = of.collect();
            of.sort_by(|one, other| one.0.total_cmp(&other.0));
            let (Some(lowest), Some(median)) = (of.first(), of.get(of.len() / 2)) else { continue };
            let below = of.iter().take_while(|(ratio, _)| *ratio < wanted);
            let short = |(ratio, cell): &(f64, &Cell)| {
                let layout = if cell.staggered { "staggered" } else { "aligned" };
                format!("n={} {}K {layout} {ratio:.2}", cell.n, cell.size >> 10)
            };
            let below: Vec<String> = below.map(short).collect();
            println!(
                "| {} | {name} | {wanted:.2} | {} | {:.2} | {:.2} | {} |",
                whose(other),
                of.len(),
                median.0,
                lowest.0,
                below.join(", ")
            );
        }
    }
}

/// The figures of a cell: two columns.
fn figures(rates: &[Option<f64>]) -> String {
    let rate = |index: usize| rates[index].map_or("-".to_owned(), |rate| format!("{rate:.0}"));
    let ratio = ratio(rates, ISAL).map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
    let beside = format!("{}, {}, {}, {}", rate(1), rate(2), rate(ISAL_AVX2), rate(CRATE));
    format!(" {} / {} = {ratio} | {beside} |", rate(0), rate(ISAL))
}

fn whose(peer: usize) -> &'static str {
    match peer {
        ISAL_AVX2 => "ISA-L AVX2",
        ISAL => "ISA-L",
        _ => "crate",
    }
}

fn level(hot: bool) -> &'static str {
    if hot { "hot" } else { "from memory" }
}

fn title(operation: Operation) -> &'static str {
    match operation {
        Operation::Xor => "XOR of n blocks",
        Operation::Pq => "P and Q of n blocks",
        Operation::Delta => "Delta: P and Q changed for one of n blocks",
        Operation::Two => "Recovery of two of n blocks",
    }
}
