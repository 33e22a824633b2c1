//! A drive that serves random reads and reads for a rebuild whenever it is idle, against a closed form.
//!
//! In an M/G/1 queue whose server takes a vacation whenever it finds nobody, and another if nobody came meanwhile
//! (Thomasian and Menon, ICDE 1994, for rebuilds), the mean response is `S + lambda E[S^2] / (2 (1 - rho)) +
//! E[V^2] / (2 E[V])`, and vacations take the share `1 - rho` of the time.

use raidlab_core::contract::IoOp;
use raidlab_core::{Config, Layout, Level, Nanos, Sector, Sectors, Time};
use raidlab_models::{Drive, DriveKind, DriveSpec, Scheduler, SsdFigures, SsdSpec, load};
use raidlab_random::Random;
use raidlab_sim::{HostCosts, World};

/// Sectors of random reads, each as often as the other, and of a read for the rebuild. A sector takes 250 us: 12.25 ms
/// in the mean, with a squared coefficient of variation of 0.12, and 16 ms.
const READS: [u64; 2] = [32, 66];
const UNIT: u64 = 64;
const SECTOR: f64 = 512.0 / 2_048_000.0;
/// Random reads a second.
const ARRIVALS: f64 = 40.0;

/// A drive that takes one request at a time, for as long as its bytes take on a slow link.
fn drive() -> DriveSpec {
    let mut spec = load("ssd-nvme4-2tb-dc").expect("built in");
    let DriveKind::Ssd(ssd) = &spec.kind else { panic!("an SSD") };
    let figures = SsdFigures {
        link_rate: 2_048_000,
        page_read: Nanos(1_000),
        command_overhead: Nanos(1_000),
        controller_time: Nanos(100),
        live_data: 0,
        queue_depth: 1,
        ..ssd.figures().clone()
    };
    spec.kind = DriveKind::Ssd(SsdSpec::new(figures).expect("can be"));
    spec
}

/// Serves Poisson arrivals, and vacations when there are any: the mean response in seconds, and vacations a second.
fn serve(count: u32, with_vacations: bool) -> (f64, f64) {
    let free = HostCosts { request: Nanos(0), parity_rate: u64::MAX };
    let spec = drive();
    let config = Config::uniform(Layout::new(Level::Linear, 1), spec.capacity);
    let world = World::new(&config, vec![Drive::new(&spec.kind, 1)], free).expect("fits");
    let mut world = world.with_queues(&Scheduler::None.spec(1));
    let mut random = Random::new(7);
    let places = world.array().capacity().0 / 128;
    let (mut at, mut arrived, mut answered) = (0.0, 0, 0);
    let (mut asked, mut sum, mut vacation, mut vacations) = (vec![], 0.0, None, 0_u64);
    while answered < count {
        if arrived < count && world.now().0 as f64 >= at {
            let len = Sectors(READS[random.below(2) as usize]);
            let request = world.submit(IoOp::Read, Sector(random.below(places) * 128), len, false);
            asked.push((request, at));
            let unit = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            at += -(1.0 - unit).ln() / ARRIVALS * 1e9;
            arrived += 1;
        } else if with_vacations && vacation.is_none() && asked.is_empty() {
            let next = Sector(vacations * UNIT);
            vacation = Some(world.submit(IoOp::Read, next, Sectors(UNIT), false));
        } else if arrived == count || !world.idle_until(Time(at as u64 + 1)) {
            assert!(world.step(), "something is under way");
        }
        while let Some(answer) = world.next_answer() {
            if vacation == Some(answer.id) {
                (vacation, vacations) = (None, vacations + 1);
                continue;
            }
            let index = asked.iter().position(|(request, _)| *request == answer.id);
            let (_, came) = asked.swap_remove(index.expect("was asked"));
            sum += world.now().0 as f64 - came;
            answered += 1;
        }
    }
    (sum / f64::from(count) / 1e9, vacations as f64 / world.now().0 as f64 * 1e9)
}

#[test]
fn a_rebuild_in_the_pauses_of_a_drive_is_a_server_with_vacations() {
    let of = |sectors: u64| sectors as f64 * SECTOR;
    let mean = (of(READS[0]) + of(READS[1])) / 2.0;
    let square = (of(READS[0]).powi(2) + of(READS[1]).powi(2)) / 2.0;
    let free = 1.0 - ARRIVALS * mean;
    let alone = mean + ARRIVALS * square / (2.0 * free);
    let beside = alone + of(UNIT) / 2.0;
    let (measured_alone, none) = serve(200_000, false);
    let (measured, units) = serve(200_000, true);
    println!("alone {:.2} ms, closed form {:.2}", measured_alone * 1e3, alone * 1e3);
    println!("beside a rebuild {:.2} ms, closed form {:.2}", measured * 1e3, beside * 1e3);
    println!("{units:.2} units a second, closed form {:.2}", free / of(UNIT));
    assert_eq!(none, 0.0);
    for (got, expected) in [(measured_alone, alone), (measured, beside), (units, free / of(UNIT))] {
        assert!((got / expected - 1.0).abs() < 0.03, "{got} of {expected}");
    }
}
