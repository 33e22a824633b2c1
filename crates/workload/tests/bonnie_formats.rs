//! What bonnie++ prints, from records written down by hand. The lines of 2.00 follow what the original
//! printed for the same figures.

use raidlab_core::{Nanos, Time};
use raidlab_workload::{
    Cpu, IoRecord, Parameters, PhaseRecord, ProcessRecord, RunRecord, Setting, Workload, make,
};
use std::sync::Arc;

fn workload(kind: &str, pairs: &[(&str, &str)]) -> Arc<dyn Workload> {
    make(kind, Parameters::new(pairs.iter().copied()).expect("no key twice")).expect("right")
}

/// A phase: seconds in units of 10 us, CPU in hundredths of a second, the longest latency in us.
fn phase(took: u64, cpu: Option<u64>, latency: u64) -> PhaseRecord {
    let mut writes = IoRecord::default();
    if latency > 0 {
        writes.add(8192, Nanos::from_micros(latency));
        writes.add(8192, Nanos::from_micros(1));
    }
    let cpu = cpu.map(|hundredths| Cpu {
        user: Nanos::from_millis(hundredths * 4),
        system: Nanos::from_millis(hundredths * 6),
    });
    let ended = Some(Time(1_000_000_000 + took * 10_000));
    PhaseRecord { began: Some(Time(1_000_000_000)), ended, cpu, writes, ..PhaseRecord::default() }
}

fn process(copy: u32, ended: u64, phases: Vec<(usize, PhaseRecord)>) -> ProcessRecord {
    let mut all = vec![PhaseRecord::default(); 12];
    phases.into_iter().for_each(|(index, phase)| all[index] = phase);
    ProcessRecord { copy, ended: Time(ended * 1_000_000_000), phases: all }
}

fn record(processes: Vec<ProcessRecord>) -> RunRecord {
    RunRecord { processes, ..RunRecord::default() }
}

/// A copy of 1.03 with `-n 0 -f`: writes in 25 s, rewrites in 50 s, reads in 20 s, and seeks from the
/// first seeker's start at 1 s to the last one's end at 51 s.
fn copy_103(copy: u32) -> Vec<ProcessRecord> {
    let main = process(
        copy,
        160,
        vec![
            (1, phase(2_500_000, Some(750), 0)),
            (2, phase(5_000_000, Some(399), 0)),
            (4, phase(2_000_000, Some(180), 0)),
        ],
    );
    let mut late = phase(4_000_000, Some(20), 0);
    late.began = Some(Time(41_000_000_000));
    late.ended = Some(Time(51_000_000_000));
    let seekers = [phase(1_000_000, Some(30), 0), late, phase(4_900_000, Some(49), 0)];
    let seekers = seekers.map(|phase| process(copy, 159, vec![(5, phase)]));
    [main].into_iter().chain(seekers).collect()
}

#[test]
fn figures_are_cut_as_the_original_cuts_them() {
    let bonnie = workload("bonnie-1.03", &[("size", "1100MiB"), ("n", "0"), ("fast", "true")]);
    // 1126400 KiB in 25, 50 and 20 s; 8192 seeks in 50 s with 0.99 s of CPU time.
    let one = [45056.0, 30.0, 22528.0, 7.0, 56320.0, 9.0, 163.8, 1.0, 160.0];
    let values = bonnie.values(&record(copy_103(0)));
    assert_eq!(values, one.map(Some).to_vec());
    let two = bonnie.values(&record([copy_103(0), copy_103(1)].concat()));
    let both = [90112.0, 60.0, 45056.0, 14.0, 112640.0, 18.0, 327.6, 2.0, 160.0];
    assert_eq!(two, both.map(Some).to_vec(), "the copies' figures are added");
    // Each is of its own copy.
    let mut slow = copy_103(1);
    slow[0].phases[1] = phase(5_000_000, Some(750), 0);
    slow[0].ended = Time(200_000_000_000);
    let values = bonnie.values(&record([copy_103(0), slow].concat()));
    assert_eq!(values[..2], [Some(45056.0 + 22528.0), Some(30.0 + 15.0)]);
    assert_eq!(values[8], Some(200.0), "until the last is done");
}

#[test]
fn what_took_too_short_a_time_is_not_told() {
    let bonnie = workload("bonnie-1.03", &[("size", "32MiB"), ("n", "0"), ("fast", "true")]);
    let mut processes = copy_103(0);
    processes[0].phases[1] = phase(49_999, Some(10), 0);
    processes[0].phases[2] = phase(50_000, Some(10), 0);
    processes[0].phases[4] = phase(70_000, None, 0);
    let values = bonnie.values(&record(processes.clone()));
    assert_eq!(values[..6], [None, None, Some(65536.0), Some(20.0), Some(46811.0), None]);
    let both = [processes, copy_103(1)].concat();
    assert_eq!(bonnie.values(&record(both))[..2], [None, None], "nor of both copies");
}

#[test]
fn the_size_comes_from_what_was_written_where_nobody_says_it() {
    let bonnie = workload("bonnie-1.03", &[("n", "0"), ("fast", "true")]);
    let mut processes = copy_103(0);
    processes[0].phases[1].writes.add(300 << 20, Nanos(1));
    assert_eq!(bonnie.values(&record(processes.clone()))[0], Some(12288.0));
    let line = bonnie.format("csv", &record(processes), "nas").expect("a line");
    assert!(line.starts_with("nas,300M,,,12288,30,"), "{line}");
}

#[test]
fn csv_of_1_03_has_27_fields() {
    let line = |pairs: &[(&str, &str)], processes| {
        let line = workload("bonnie-1.03", pairs).format("csv", &record(processes), "nas");
        let line = line.expect("a line");
        assert_eq!(line.matches(',').count(), 26, "{line}");
        line
    };
    let fast = [("size", "1100MiB"), ("n", "0"), ("fast", "true")];
    let text = "nas,1100M,,,45056,30,22528,7,,,56320,9,163.8,1,,,,,,,,,,,,,\n";
    assert_eq!(line(&fast, copy_103(0)), text);
    let mut short = copy_103(0);
    short[0].phases[1] = phase(49_999, Some(10), 0);
    let other = [("size", "32MiB"), ("n", "0"), ("fast", "true"), ("chunk", "16KiB")];
    let text = "nas,32M:16k,,,+++++,+++,655,7,,,1638,9,163.8,1,,,,,,,,,,,,,\n";
    assert_eq!(line(&other, short), text);
    let mut all = copy_103(0);
    all[0].phases[0] = phase(10_485_760, Some(10_000), 0);
    all[0].phases[3] = phase(20_971_520, Some(10_000), 0);
    for (index, small) in all[0].phases[6..].iter_mut().enumerate() {
        *small = phase(100_000 * index as u64, None, 0);
    }
    let text = "nas,1G,10000,95,41943,30,20971,7,5000,47,52428,9,163.8,1,16:9000:20/2,\
                ,,16384,,8192,,5461,,4096,,3276,\n";
    assert_eq!(line(&[("size", "1GiB"), ("n", "16:9000:20:2")], all), text);
    let small = process(0, 9, vec![(6, phase(100_000, Some(99), 0))]);
    let text = "nas,,,,,,,,,,,,,,1:link,1024,99,,,,,,,,,,\n";
    assert_eq!(line(&[("size", "0"), ("n", "1:link")], vec![small]), text);
}

#[test]
fn text_of_1_03() {
    let bonnie = workload("bonnie-1.03", &[("size", "1GiB")]);
    let mut processes = copy_103(0);
    processes[0].phases[0] = phase(4_417_600, Some(4_021), 0);
    processes[0].phases[3] = phase(4_497_300, Some(3_600), 0);
    processes[0].phases[6] = phase(655_360, Some(649), 0);
    processes[0].phases[7] = phase(10_000, Some(9), 0);
    processes[0].phases[11] = phase(180_600, Some(181), 0);
    let fast = vec![(5, phase(100_000, Some(100), 0))];
    let [_, rest @ ..] = &mut processes[..] else { panic!("four processes") };
    rest.fill(process(0, 9, fast));
    let text = bonnie.format("text", &record(processes), "mayito").expect("a report");
    let expected = "\
Version  1.03       ------Sequential Output------ --Sequential Input- --Random-
                    -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--
Machine        Size K/sec %CP K/sec %CP K/sec %CP K/sec %CP K/sec %CP  /sec %CP
mayito           1G 23736  91 41943  30 20971   7 23315  80 52428   9  8192 300
                    ------Sequential Create------ --------Random Create--------
                    -Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--
              files  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP
                 16  2500  99 +++++ +++                                9071 100
";
    assert_eq!(text, expected);
}

/// What the original printed on one machine for `-s 600 -r 4 -n 4:100:10 -z 9`, but for a CPU share (42)
/// and the seeks, which were done too soon there.
fn record_200() -> RunRecord {
    let main = process(
        0,
        60,
        vec![
            (0, phase(229_250, Some(152), 63_858)),
            (1, phase(71_996, Some(31), 59_878)),
            (2, phase(49_000, Some(30), 4_058)),
            (3, phase(147_140, Some(96), 11_577)),
            (4, phase(20_000, Some(10), 4_040)),
            (6, phase(61_870, Some(60), 1_129)),
            (7, phase(10_000, Some(10), 241)),
            (8, phase(10_000, Some(10), 4_065)),
            (9, phase(84_710, Some(81), 674)),
            (10, phase(10_000, Some(10), 61)),
            (11, phase(10_000, Some(10), 2_106)),
        ],
    );
    let mut processes = vec![main];
    let seeker = |latency| process(0, 60, vec![(5, phase(200_000, Some(20), latency))]);
    processes.extend([10_617, 99, 3, 4, 5].map(seeker));
    record(processes)
}

const OPTIONS_200: [(&str, &str); 3] = [("size", "600MiB"), ("n", "4:100:10"), ("seed", "9")];

#[test]
fn csv_of_2_00_has_50_fields() {
    let line = |pairs: &[(&str, &str)], record| {
        let line = workload("bonnie-2.00", pairs).format("csv", &record, "vm").expect("a line");
        assert_eq!(line.matches(',').count(), 49, "{line}");
        line
    };
    let expected = "1.98,2.00a,vm,1,9,600M,,8192,5,1340,66,853380,43,+++++,+++,2087,65,+++++,+++,\
                    4096,50,4,100,10,,,6620,96,+++++,+++,+++++,+++,4835,95,+++++,+++,+++++,+++,\
                    63858us,59878us,4058us,11577us,4040us,10617us,\
                    1129us,241us,4065us,674us,61us,2106us\n";
    assert_eq!(line(&OPTIONS_200, record_200()), expected);

    let mut fast = record_200();
    for index in [0, 3, 6, 7, 8, 9, 10, 11] {
        fast.processes[0].phases[index] = PhaseRecord::default();
    }
    fast.processes[0].phases[1] = phase(71_996, Some(31), 100_000);
    fast.processes[0].phases[2] = phase(71_996, Some(31), 100_000_000);
    let options = [("size", "1100MiB"), ("n", "0"), ("fast", "true"), ("seekers", "12")];
    let expected = "1.98,2.00a,vm,1,,1100M,,8192,12,,,1564531,43,1564531,43,,,+++++,+++,4096,50,\
                    ,,,,,,,,,,,,,,,,,,100ms,100s,,4040us,10617us,,,,,,\n";
    assert_eq!(line(&options, fast), expected);

    let small = |n| {
        let small = process(0, 9, vec![(6, phase(100_000, Some(99), 0))]);
        line(&[("size", "0"), ("n", n)], record(vec![small]))
    };
    let nothing = ",".repeat(16);
    for (n, cells) in [
        ("1", "1,,,,"),
        ("1:link", "1,link,,,"),
        ("1:symlink", "1,symlink,,,"),
        ("1:9000", "1,9000,,,"),
        ("1:9000:20:2", "1,9000,20,,2"),
    ] {
        let expected = format!("1.98,2.00a,vm,1,{nothing},{cells},1024,99,");
        assert!(small(n).starts_with(&expected), "{expected}\n{}", small(n));
    }
}

#[test]
fn seeks_lose_their_decimal_from_1000_on() {
    let bonnie = |kind| workload(kind, &[("size", "1GiB"), ("n", "0"), ("seeks", "10005")]);
    let seeks = |took| record(vec![process(0, 9, vec![(5, phase(took, Some(0), 0))])]);
    let cell = |kind, took, field| {
        let line = bonnie(kind).format("csv", &seeks(took), "nas").expect("a line");
        line.split(',').nth(field).map(str::to_string).expect("a cell")
    };
    assert_eq!(cell("bonnie-1.03", 1_000_000, 12), "1000.5");
    assert_eq!(cell("bonnie-2.00", 1_000_000, 19), "1000");
    assert_eq!(cell("bonnie-2.00", 2_000_000, 19), "500.2");
}

#[test]
fn text_of_2_00() {
    let bonnie = workload("bonnie-2.00", &OPTIONS_200);
    let text = bonnie.format("text", &record_200(), "vm").expect("a report");
    let expected = "\
Version 2.00a       ------Sequential Output------ --Sequential Input- --Random-
                    -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--
Name:Size etc        /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP
vm             600M 1340k  66  833m  43 +++++ +++ 2087k  65 +++++ +++  4096  50
Latency             63858us   59878us    4058us   11577us    4040us   10617us
Version 2.00a       ------Sequential Create------ --------Random Create--------
vm                  -Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--
files:max:min        /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP
           4:100:10  6620  96 +++++ +++ +++++ +++  4835  95 +++++ +++ +++++ +++
Latency              1129us     241us    4065us     674us      61us    2106us
";
    assert_eq!(text, expected);
    let none = workload("bonnie-2.00", &[("size", "600MiB"), ("n", "0")]);
    let text = none.format("text", &record_200(), "vm").expect("a report");
    assert_eq!(text.lines().count(), 6, "an empty line in place of the small files");
    assert_eq!(none.format("html", &record_200(), "vm"), None);
    assert_eq!(none.formats(), ["text", "csv"]);
}

/// Phase i takes 2 i seconds, 5 i + 0.5 % of it on the CPU.
#[test]
fn each_figure_is_that_of_the_phase_it_is_named_after() {
    for (kind, characters) in [("bonnie-1.03", 65_536), ("bonnie-2.00", 3_072)] {
        let bonnie = workload(kind, &[("size", "64MiB"), ("ram", "0"), ("n", "2")]);
        let names = bonnie.plan(&Setting::new(1, 1)).expect("can be").phases;
        let of = |index: usize| {
            let number = index as u64 + 1;
            (index, phase(2 * number * 100_000, Some(10 * number * number + number), 0))
        };
        let record = record(vec![process(0, 99, (0..12).map(of).collect())]);
        let values = bonnie.values(&record);
        assert_eq!(values.len(), 2 * names.len() + 1, "{kind}");
        for (metric, value) in bonnie.metrics().iter().zip(values) {
            let is_of = |suffix: &str| {
                let name = metric.name.strip_suffix(suffix)?;
                names.iter().position(|phase| *phase == name)
            };
            let expected = match (is_of("_cp"), is_of("_kps").or(is_of("_per_s"))) {
                (Some(index), _) => 5.0 * (index + 1) as f64,
                (None, Some(index)) => {
                    let amount = match names[index] {
                        name if name.starts_with("character") => characters,
                        "seeks" => 8_192,
                        _ if index < 5 => 65_536,
                        _ => 2_048,
                    };
                    let (tenths, seconds) = (f64::from(amount) * 10.0, 2.0 * (index + 1) as f64);
                    match names[index] {
                        "seeks" => (tenths / seconds).round() / 10.0,
                        _ => (tenths / 10.0 / seconds).trunc(),
                    }
                }
                _ => 99.0,
            };
            assert_eq!(value, Some(expected), "{kind}: {}", metric.name);
        }
    }
}

/// The longest of all that is timed one by one, whether it is read or written: in us, ms from 0.1 s on and s from
/// 100 s on, cut.
#[test]
fn the_longest_latency_is_told_with_its_unit() {
    let cell = |reads: &[u64], writes: &[u64]| {
        let mut timed = phase(100_000, None, 0);
        reads.iter().for_each(|us| timed.reads.add(8192, Nanos::from_micros(*us)));
        writes.iter().for_each(|us| timed.writes.add(8192, Nanos::from_micros(*us)));
        let record = record(vec![process(0, 9, vec![(4, timed)])]);
        let bonnie = workload("bonnie-2.00", &[("size", "600MiB"), ("n", "0")]);
        let line = bonnie.format("csv", &record, "vm").expect("a line");
        line.split(',').nth(38 + 4).map(str::to_string).expect("a cell")
    };
    assert_eq!(cell(&[7, 70, 9], &[]), "70us");
    assert_eq!(cell(&[7], &[5, 8]), "8us");
    assert_eq!(cell(&[8, 7], &[5]), "8us");
    for (us, told) in [
        (99_999, "99999us"),
        (100_000, "100ms"),
        (5_000_999, "5000ms"),
        (99_999_999, "99999ms"),
        (100_000_000, "100s"),
        (3_600_999_999, "3600s"),
    ] {
        assert_eq!(cell(&[us], &[]), told);
    }
}

/// The start of the line of figures, as the original printed it for these options.
#[test]
fn the_name_makes_room_for_the_size() {
    let host = "averylongmachinename.example";
    for (pairs, start) in [
        (&[("size", "8MiB"), ("seeks", "100"), ("seekers", "3")][..], "averylongm 8M:::100 "),
        (
            &[("size", "8MiB"), ("chunk", "16KiB"), ("seeks", "100"), ("seekers", "12")],
            "aver 8M:16k::100:12 ",
        ),
        (&[("size", "8MiB"), ("seekers", "3")], "averylongmachine 8M "),
        (&[("size", "8MiB"), ("seekers", "9")], "averylongmachine 8M "),
        (&[("size", "1100MiB")], "averylongmach 1100M "),
        (
            &[("size", "1100MiB"), ("chunk", "16KiB"), ("seeks", "100000"), ("seekers", "12")],
            "1100M:16k::100000:12 ",
        ),
    ] {
        let bonnie = workload("bonnie-2.00", pairs);
        let text = bonnie.format("text", &record_200(), host).expect("a report");
        let line = text.lines().nth(3).expect("figures");
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn rates_of_2_00_are_scaled() {
    for (took, words) in [
        // 1 GiB in 104.9, 104, 10.3, 1.03, 0.6 and 0.55 s.
        (10_490_000, "9995k"),
        (10_400_000, " 9.8m"),
        (1_030_000, "99.4m"),
        (1_020_000, " 100m"),
        (103_000, " 994m"),
        (60_000, " 1.7g"),
        (55_000, " 1.8g"),
    ] {
        let bonnie = workload("bonnie-2.00", &[("size", "1GiB"), ("n", "0")]);
        let one = record(vec![process(0, 9, vec![(1, phase(took, Some(0), 0))])]);
        let text = bonnie.format("text", &one, "vm").expect("a report");
        let line = text.lines().nth(3).expect("figures");
        assert_eq!(&line[30..35], words, "{line}");
    }
}
