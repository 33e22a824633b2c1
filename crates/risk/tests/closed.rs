//! Closed forms where all causes but one or two are taken away, and what docs/answers.md says is assumed.

use raidlab_core::Sectors;
use raidlab_risk::prior::{COMMON_CAUSE, Class, Range};
use raidlab_risk::{
    Array, Chances, Effort, Hazard, Latent, Model, Outcome, Precision, Question, REPLACED,
    RepairOrder, Span, WriteHole, YEAR, simulate, simulate_in_batch, years,
};

const FIVE: f64 = 5.0 * YEAR;
const DRIVE: Sectors = Sectors(1 << 30);

fn array(layout: &str) -> Array {
    Array::new(&layout.parse().expect("a layout"), DRIVE).expect("fits")
}

fn told(layout: &str, model: &Model) -> Outcome {
    let effort = Effort { error: 0.005, paths: 60_000, ..Effort::new(3) };
    simulate(&mut array(layout), model, FIVE, effort)
}

fn near(found: f64, expected: f64, within: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < within, "{what}: {found}, not {expected}");
}

fn chance(expected: f64) -> f64 {
    -libm::expm1(-expected)
}

/// Where every drive is back at once, only a failure that takes another drive with it, or a wrong pull before the new
/// drive is filled, loses a second one: so each failure loses the array with its own chance, and failures come as
/// Poisson has it.
#[test]
fn causes_that_come_with_a_failure_are_each_a_share_of_the_failures() {
    let lost = |layout: &str, common_cause: f64, wrong_pull: f64| {
        let model = Model { common_cause, wrong_pull, ..Model::plain(0.05, 1e-6) };
        told(layout, &model).array.value
    };
    let failures = |drives: f64| drives * 0.05 * 5.0;
    near(lost("raid5(8)", 0.02, 0.0), chance(failures(8.0) * 0.02), 0.02, "a common cause");
    near(lost("raid5(8)", 0.0, 0.02), chance(failures(8.0) * 0.02), 0.02, "a wrong pull");
    let both = 0.1 + 0.9 * 0.2;
    near(lost("raid5(8)", 0.1, 0.2), chance(failures(8.0) * both), 0.02, "both");
    // The drive that goes along is any of those that are there, of which some are mirrors of drives that are gone; and
    // takes another along itself where it is none.
    let along = |gone: f64, then: f64| 0.1 * (gone + (8.0 - 2.0 * gone) * then) / (8.0 - gone);
    let pair = [4.0, 3.0, 2.0, 1.0].into_iter().fold(0.0, |then, gone| along(gone, then));
    near(lost("raid10(8)", 0.1, 0.0), chance(failures(8.0) * pair), 0.03, "a pair");
    near(lost("raid10(8)", 0.0, 0.1), chance(failures(8.0) * 0.1 / 7.0), 0.03, "a pair, pulled");
    // A spare is filled long before anybody pulls a drive, so that nothing is missing then, unless another drive failed
    // meanwhile and waits for who comes for the first.
    let spared = Model {
        spares: 1,
        replace: Span::Fixed(72.0),
        wrong_pull: 0.1,
        ..Model::plain(0.05, 1e-6)
    };
    let (another, third) = (8.0 * 0.05 * 72.0 / YEAR, 7.0 * 0.05 * 36.0 / YEAR);
    let found = told("raid5(8)", &spared).array;
    near(found.value, failures(8.0) * another * (0.1 + third), 3.0 * found.error + 0.02, "a spare");
    assert!(found.error < 0.06, "{found:?}");
}

/// Hours with a drive missing are failures times the hours until each is whole again, by a person or by a spare.
#[test]
fn hours_degraded_are_those_of_replacement_and_rebuild() {
    let degraded = |spares: u16| {
        let replace = Span::Fixed(72.0);
        told("raid5(4)", &Model { spares, replace, ..Model::plain(0.01, 24.0) }).degraded
    };
    near(degraded(0), 4.0 * 0.01 * 5.0 * 96.0, 0.03, "by hand");
    near(degraded(1), 4.0 * 0.01 * 5.0 * 24.0, 0.03, "by a spare");
}

/// Torn stripes come with the hours whole and with the hours degraded, each at a rate of its own.
#[test]
fn torn_stripes_are_sectors_lost_by_the_hour() {
    let hole = |whole: f64, degraded: f64| WriteHole { whole, degraded, bytes: 65_536.0 };
    let of = |yearly: f64, write_hole| {
        told(
            "raid5(4)",
            &Model { write_hole, replace: Span::Fixed(72.0), ..Model::plain(yearly, 24.0) },
        )
    };
    let usable = array("raid5(4)").usable() as f64;
    let whole = of(0.0, hole(1e-5, 1.0));
    let torn = FIVE * 1e-5;
    near(whole.sector.value, chance(torn), 1e-9, "whole");
    near(whole.lost_share, torn * 65_536.0 / usable, 1e-9, "bytes");
    assert_eq!(whole.array.value, 0.0);
    let hours = 4.0 * 0.01 * 5.0 * 96.0;
    let degraded = of(0.01, hole(0.0, 0.01));
    near(degraded.sector.value, chance(hours * 0.01), 0.04, "degraded");
}

/// Per failure the others have so many defects: those of half a scrub's period, those of the days until a drive is
/// there, and half of those of the rebuild, which reads them as it goes. A second failure before the end loses all.
#[test]
fn what_is_usual_is_the_sum_of_its_causes() {
    let usual = Model::usual(Class::HardDisk);
    let model = Model { batch: 0.0, common_cause: 0.0, rebuild: Span::Fixed(24.0), ..usual };
    let (failures, defects) = (0.014 / YEAR, 0.032 / YEAR);
    let seconds = chance(3.0 * failures * (72.0 + 24.0));
    let any = chance(3.0 * (defects * (360.0 + 72.0 + 12.0) + failures * (72.0 + 24.0)));
    let found = told("raid5(4)", &model);
    near(found.array.value, chance(4.0 * 0.014 * 5.0 * seconds), 0.03, "the array");
    near(found.sector.value, chance(4.0 * 0.014 * 5.0 * any), 0.03, "a sector");
}

/// Each defect that is met is so many bytes, of which a share of what is usable is lost.
#[test]
fn bytes_lost_are_defects_and_the_array() {
    let latent = Latent { rate: 0.01 / YEAR, bytes: 4_096.0, ..Latent::NONE };
    let found = told("raid5(8)", &Model { latent, ..Model::plain(1.0, 1e-9) });
    let met = 8.0 * 0.01 * 7.0 / 8.0 * (5.0 - chance(40.0) / 8.0);
    let usable = array("raid5(8)").usable() as f64;
    near(found.lost_share - found.array.value, met * 4_096.0 / usable, 0.03, "bytes");
}

/// Of drives without redundancy a bad batch fails so many times as often; of batches of which nothing is known the mean
/// is the class's.
#[test]
fn batches_are_factors_with_the_mean_of_the_class() {
    let model = Model { batch: 0.7, ..Model::plain(1e-4, 0.0) };
    let effort = Effort::new(1);
    let bad = simulate_in_batch(&mut array("raid0(2)"), &model, FIVE, effort, 10.0);
    near(bad.array.value, chance(10.0 * 2.0 * 5e-4), 1e-9, "ten times");
    // Of little the mean is what counts.
    near(told("raid0(2)", &model).array.value, 1e-3, 2e-3, "unknown");
    // Single parity needs two of them to fail: the mean square of a log-normal factor of mean 1, less what drives put
    // in later share no factor.
    let lost =
        |batch: f64| told("raid5(4)", &Model { batch, ..Model::plain(1e-3, 24.0) }).array.value;
    near(lost(0.7) / lost(0.0), libm::exp(0.49), 0.03, "pairs");
}

/// The standard error that is told is that of repeats on other seeds, over all factors of a batch.
#[test]
fn standard_errors_are_those_of_repeats() {
    let model = Model { batch: 0.7, replace: Span::Fixed(72.0), ..Model::plain(0.02, 24.0) };
    let mut array = array("raid5(6)");
    let mut told = |seed| {
        let effort = Effort { error: 0.1, paths: 4_000, ..Effort::new(seed) };
        simulate(&mut array, &model, FIVE, effort).array
    };
    let all: Vec<_> = (0..100).map(&mut told).collect();
    let mean = all.iter().map(|one| one.value).sum::<f64>() / 100.0;
    let squares: f64 = all.iter().map(|one| (one.value / mean - 1.0).powi(2)).sum();
    let told = all.iter().map(|one| one.error).sum::<f64>() / 100.0;
    let ratio = (squares / 99.0).sqrt() / told;
    assert!((0.75..1.35).contains(&ratio), "{ratio} times {told}");
}

/// What docs/answers.md says is assumed where nobody says anything.
#[test]
fn what_is_assumed_is_what_the_docs_say() {
    let docs = include_str!("../../../docs/answers.md");
    let percent = |value: f64| format!("{}", (value * 1e5).round() / 1e3);
    let range = |range: Range| {
        let [low, central, high] = [range.low, range.central, range.high].map(percent);
        format!("{central} % ({low} to {high} %)")
    };
    let says = |text: String| assert!(docs.contains(&text), "docs/answers.md does not say {text}");
    let (disks, ssds) = (Class::HardDisk, Class::Ssd);
    says(format!(
        "hard disks {}, SSDs {}, at any age",
        range(disks.failures()),
        range(ssds.failures())
    ));
    says(format!(
        "hard disks {}, SSDs {} of drives; 4 KiB each",
        range(disks.defects()),
        range(ssds.defects())
    ));
    says(range(COMMON_CAUSE));
    says(format!("`--replace`, asked on a terminal | {} days |", REPLACED / 24.0));
    for class in [disks, ssds] {
        let usual = Model::usual(class);
        assert_eq!(usual.replace, Span::Fixed(REPLACED));
        let Some(Span::Uniform(0.0, scrub)) = usual.latent.found else { panic!("{usual:?}") };
        says(format!("every {} days | Debian", scrub / 24.0));
        says(format!("log-normal, sigma {}, mean 1", usual.batch));
        near(usual.hazard.cumulative(YEAR), class.failures().central, 1e-9, "failures a year");
        near(usual.latent.rate * YEAR, class.defects().central, 1e-9, "defects a year");
        assert_eq!((usual.latent.bytes, usual.latent.while_rebuilding), (4_096.0, true));
        assert_eq!(usual.common_cause, COMMON_CAUSE.central);
        assert_eq!((usual.order, usual.spares), (RepairOrder::Serial, 0));
        assert_eq!(
            (usual.wrong_pull, usual.write_hole, usual.age),
            (0.0, WriteHole::default(), 0.0)
        );
    }
}

/// Who loses more is told as so many times as who loses less, of the array and of anything, by their own chances.
#[test]
fn ratios_are_of_the_one_that_loses_more() {
    let names = ["raid0(4)", "raid0(2)", "raid0(6)"].map(|name| name.parse().expect("one"));
    let mut question = Question::usual(names.to_vec(), DRIVE, Class::HardDisk, 5);
    assert_eq!(
        (&question.missions[..], question.main),
        (&[YEAR, FIVE][..], 1),
        "one year and five"
    );
    question.model.rebuild = Span::Fixed(20.0);
    let of = |one| question.chances(one, Precision::Brief).expect("chances");
    let all: Vec<Chances> = (0..3).map(of).collect();
    let ratios = question.ratios(&all);
    assert_eq!(ratios.iter().map(|one| (one.more, one.less)).collect::<Vec<_>>(), [(0, 1), (2, 1)]);
    let alone = question.mission(0, 0.01).expect("the main mission");
    assert_eq!(alone.array.central, all[0].missions[1].array.central);
    for ratio in ratios {
        let of = |at: usize| all[at].missions[1].outcome;
        near(ratio.array.central, of(ratio.more).array.value / of(1).array.value, 1e-12, "array");
        near(ratio.sector.central, of(ratio.more).sector.value / of(1).sector.value, 1e-12, "any");
        assert!(ratio.array.low > 1.0 && ratio.array.low < ratio.array.central);
        assert!(ratio.array.high > ratio.array.central && ratio.sector.high > ratio.sector.central);
        // Chances that are near certain are less far apart.
        assert!(ratio.sector.central < ratio.array.central, "{ratio:?}");
    }
}

/// What cannot be is refused by what it is called, and the ends of what can be are not.
#[test]
fn inputs_that_cannot_be_are_named() {
    let with = |change: &dyn Fn(&mut Model)| {
        let mut model = Model { rebuild: Span::Fixed(1.0), ..Model::usual(Class::HardDisk) };
        change(&mut model);
        model.check()
    };
    for wrong in [-0.001, 1.001, f64::NAN] {
        let pull = with(&|model| model.wrong_pull = wrong).expect_err("no chance");
        let cause = with(&|model| model.common_cause = wrong).expect_err("no chance");
        assert!(pull.starts_with("wrong pull") && cause.starts_with("common cause"));
    }
    for (what, change) in [
        ("rates and age", &(|model: &mut Model| model.age = -1.0) as &dyn Fn(&mut Model)),
        ("rates and age", &|model| model.latent.rate = f64::INFINITY),
        ("rates and age", &|model| model.write_hole.whole = -1e-9),
        ("rates and age", &|model| model.write_hole.degraded = f64::NAN),
        ("batch", &|model| model.batch = 2.1),
        ("batch", &|model| model.batch = -0.1),
        ("rebuild", &|model| model.rebuild = Span::Fixed(-1.0)),
        ("replacement", &|model| model.replace = Span::Fixed(f64::NAN)),
        ("scrub", &|model| model.latent.found = Some(Span::Uniform(2.0, 1.0))),
        ("failure rate", &|model| model.hazard = Hazard::yearly(-0.1)),
    ] {
        let error = with(change).expect_err(what);
        assert!(error.starts_with(what), "{what}: {error}");
    }
    let weibull = |shape, scale| Hazard::Weibull { shape, scale };
    for (hazard, can_be) in [
        (weibull(0.1, 1e5), true),
        (weibull(10.0, 1e5), true),
        (weibull(0.09, 1e5), false),
        (weibull(10.1, 1e5), false),
        (weibull(1.0, 0.0), false),
        (Hazard::Piecewise(vec![(0.0, 0.0), (5.0, 1e-5)]), true),
        (Hazard::Piecewise(vec![(1.0, 1e-5)]), false),
        (Hazard::Piecewise(vec![(0.0, 1e-5), (0.0, 1e-5)]), false),
        (Hazard::Piecewise(vec![(0.0, -1e-5)]), false),
        (Hazard::Piecewise(Vec::new()), false),
    ] {
        let found = with(&|model| model.hazard = hazard.clone());
        assert_eq!(found.is_ok(), can_be, "{hazard:?}: {found:?}");
    }
    let ends = |model: &mut Model| {
        (model.wrong_pull, model.common_cause, model.batch) = (1.0, 0.0, 2.0);
        (model.latent.rate, model.age) = (0.0, 0.0);
    };
    assert_eq!(with(&ends), Ok(()));
    let range = Range::new(1.0, 2.0, 8.0).expect("ascends").times(3.0);
    assert_eq!(range, Range { low: 3.0, central: 6.0, high: 24.0 });
    assert!(Range::new(0.0, 1.0, 2.0).is_err_and(|why| why.contains("low end is above 0")));
    assert!(Range::of_failures(1, f64::NAN).is_err() && years(2.0) == 17_520.0);
}
