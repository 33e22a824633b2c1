//! What more processes get out of a raid10 of four hard disks: each reads 4 KiB at random places, one read after the
//! other, in virtual time: `cargo run -p raidlab-sim --example processes`.

use raidlab_core::contract::{IoOp, Outcome};
use raidlab_core::{Config, Layout, Level, Nanos, Sector, Sectors, Time};
use raidlab_models::{Drive, load};
use raidlab_random::{Random, mix};
use raidlab_sim::{HostCosts, World};

const READS: u64 = 2_000;
const LEN: Sectors = Sectors(8);

/// Reads a second of so many processes, and how long each took on average.
fn run(processes: u64) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let kind = load("nas-8tb-7200")?.kind;
    let drives: Vec<_> = (0..4).map(|seed| Drive::new(&kind, seed)).collect();
    let config = Config::uniform(Layout::new(Level::Raid10, 4), drives[0].capacity());
    let mut world = World::new(&config, drives, HostCosts::default())?;
    let mut random = Random::new(mix(&[1, processes]));
    let places = world.array().capacity().0 / LEN.0;
    let mut read = |world: &mut World| {
        let at = Sector(random.below(places) * LEN.0);
        (world.submit(IoOp::Read, at, LEN, false), world.now())
    };
    let mut in_flight: Vec<_> = (0..processes).map(|_| read(&mut world)).collect();
    let (mut done, mut waited) = (0, Nanos::ZERO);
    while done < READS {
        let Some(answer) = world.next_answer() else {
            // Whatever comes next, when it comes.
            assert!(world.step(), "requests that nobody works on");
            continue;
        };
        assert_eq!(answer.outcome, Outcome::Done);
        let mine = in_flight.iter_mut().find(|(id, _)| *id == answer.id).ok_or("not asked for")?;
        waited += answer.at.since(mine.1);
        done += 1;
        *mine = read(&mut world);
    }
    let seconds = world.now().since(Time::ZERO).as_secs();
    Ok((READS as f64 / seconds, waited.as_secs() * 1e3 / READS as f64))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rates = Vec::new();
    for processes in 1..=4 {
        let (rate, took) = run(processes)?;
        println!("{processes} processes: {rate:4.0} reads a second, {took:4.1} ms each");
        rates.push(rate);
    }
    let gain = rates[3] / rates[0];
    println!("four get {gain:.1} times what one gets");
    // Four drives at most four times as much; less, as two reads may want the same drive.
    let can_be = rates.is_sorted() && (1.5..=4.0).contains(&gain);
    if can_be { Ok(()) } else { Err("that cannot be".into()) }
}

// `tests/world.rs` has this file as a module, so that it is run with the tests.
#[test]
fn more_processes_get_more() {
    main().expect("more than one, at most four times as much");
}
