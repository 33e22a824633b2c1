//! Kinds of work by name: what an array is to do, as jobs of fio on the array itself or on files, as personalities of
//! filebench on files, or as the workloads of a study.

use raidlab_core::suggest::did_you_mean;
use raidlab_study::{Host, Study};
use raidlab_workload::{Better, Metric, Recipe, Workload, WorkloadSpec};

use crate::fidelity::Group;
use crate::personality;

/// A kind of work.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What it stands for, in a line.
    pub about: String,
    /// Where its figures are from.
    pub source: String,
    /// What is measured, each by itself.
    pub parts: Vec<Part>,
    /// So much of the time the work goes on, 0 to 1; the rest of it a rebuild has the array to itself.
    pub busy: f64,
    /// How many streams, people or machines there are where nobody says.
    pub streams: u32,
    /// The filesystem that it needs; the array itself when `None`.
    pub filesystem: Option<String>,
    /// The host; today's defaults when `None`.
    pub host: Option<Host>,
}

/// A part of a profile: equal jobs that run at once.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its name.
    pub name: String,
    job: Job,
    /// What people count.
    pub counted: Counted,
    /// How far the model is off for such work.
    pub group: Group,
    /// Bytes a second that each stream must get, where the work does not go as fast as it can.
    pub rate: Option<f64>,
}

/// What a part does.
#[derive(Clone, Debug)]
enum Job {
    /// The options of a job of fio on the array itself, past any page cache; `{streams}` stands for how many.
    Fio(&'static str),
    /// The same on files, through the page cache.
    Files(&'static str),
    /// A personality of filebench.
    Filebench(&'static str),
    /// A workload of a study as it is, by so many processes.
    Own(Box<WorkloadSpec>, u32),
}

/// What people count of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Megabytes a second.
    Megabytes,
    /// Megabytes a second that are read, whatever is written beside them.
    Read,
    /// Reads and writes a second.
    Operations,
    /// What its workload measures first, with the p99 by that of these numbers, where it has one.
    Metric(Metric, Option<usize>),
}

impl Counted {
    /// What a workload measures first.
    fn of(workload: &dyn Workload) -> Self {
        let metrics = workload.metrics();
        let tail = metrics.iter().position(|metric| metric.name == "latency_p99_ms");
        metrics.first().map_or(Self::Operations, |first| Self::Metric(*first, tail))
    }

    /// The unit.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Megabytes | Self::Read => "MB/s",
            Self::Operations => "I/O/s",
            Self::Metric(metric, _) => metric.unit,
        }
    }

    /// A rate as people read it: of a metric that is better when it is lower, such as seconds, the metric itself.
    pub fn shown(self, rate: f64) -> f64 {
        if self.is_inverse() { 1.0 / rate } else { rate }
    }

    /// A rate as a table has it, without its unit.
    pub fn told(self, rate: f64) -> String {
        match self {
            Self::Megabytes | Self::Read if rate < 10e6 => format!("{:.1}", rate / 1e6),
            Self::Megabytes | Self::Read => format!("{:.0}", rate / 1e6),
            Self::Operations => format!("{rate:.0}"),
            Self::Metric(..) => match self.shown(rate) {
                shown if shown >= 100.0 => format!("{shown:.0}"),
                shown if shown >= 1.0 => format!("{shown:.1}"),
                shown => format!("{shown:.3}"),
            },
        }
    }

    /// Whether the metric is better when it is lower.
    pub fn is_inverse(self) -> bool {
        matches!(self, Self::Metric(metric, _) if metric.better == Better::Lower)
    }
}

/// What files lie on.
const FILESYSTEM: &str = "ext4";

/// Bytes a second of a camera of 4 Mbit/s.
const CAMERA: f64 = 500_000.0;

/// Bytes a second that a system's own disk must give: a quarter of what it would ask of one that takes no time, which
/// hard disks give beside a rebuild too.
const SYSTEM: f64 = 60_000.0;

/// All profiles.
pub fn profiles() -> Vec<Profile> {
    let mut all = of_people();
    all.extend(of_machines());
    all.extend(of_small_requests());
    all.extend(of_systems());
    all.extend(personality::ALL.iter().map(Profile::of_filebench));
    all
}

/// People with large files.
fn of_people() -> Vec<Profile> {
    vec![
        Profile::on_files(
            [
                "nas",
                "a few people copy files to and from it",
                "estimate: 7 of 10 requests read, 1 MiB each as file servers send them, as in \
                 studies/nas-4-bays.toml; files on ext4",
            ],
            (0.1, 4),
            vec![Part::files(
                "files copied",
                "rw=rw\nrwmixread=70\nbs=1m\nnumjobs={streams}\nend_fsync=1\n",
            )],
        ),
        Profile::on_files(
            [
                "media",
                "video is edited: streams read and written side by side",
                "estimate: SPC-2's video streams of 256 KiB and more; 8 of 10 requests read, 1 MiB each; files on ext4",
            ],
            (0.3, 3),
            vec![Part::files(
                "streams",
                "rw=rw\nrwmixread=80\nbs=1m\nnumjobs={streams}\nend_fsync=1\n",
            )],
        ),
        Profile::on_files(
            [
                "capture",
                "one stream is written as fast as it comes",
                "estimate: 4 MiB a write, to a file on ext4",
            ],
            (0.3, 1),
            vec![Part::files("writing", "rw=write\nbs=4m\nnumjobs={streams}\nend_fsync=1\n")],
        ),
    ]
}

/// Machines that send what they have.
fn of_machines() -> Vec<Profile> {
    vec![
        Profile::on_files(
            [
                "backup",
                "machines write their backups at night, and what was written is verified",
                "estimate: 1 to 8 writers of 512 KiB to 1 MiB, files on ext4; then random reads of 1 to 4 MiB, cold",
            ],
            (0.3, 4),
            vec![
                Part::files("writing", "rw=write\nbs=1m\nnumjobs={streams}\nend_fsync=1\n"),
                // Anywhere on the array, as no filesystem that is laid out for a run is: of what is cold and read once
                // a page cache has nothing.
                Part::fio(
                    "verifying",
                    "rw=randread\nbs=2m\nnumjobs={streams}\n",
                    Counted::Megabytes,
                    Group::Random,
                ),
            ],
        ),
        Profile::on_the_array(
            [
                "surveillance",
                "cameras are recorded all day",
                "over 90 % writes, all day (forasoft.com); 4 Mbit/s a camera, 256 KiB a write: estimate",
            ],
            (1.0, 16),
            vec![
                Part::fio(
                    "recording",
                    "rw=write\nbs=256k\nnumjobs={streams}\nthinktime=524288\n",
                    Counted::Megabytes,
                    Group::Streams,
                )
                .at_rate(CAMERA),
            ],
        ),
    ]
}

/// The work of a system's own disk.
pub(crate) const BOOT: &str = "boot";

/// A disk that a system boots from.
fn of_systems() -> Vec<Profile> {
    vec![Profile::on_the_array(
        [
            BOOT,
            "a system boots from it and writes its logs: it need only keep up",
            "estimate: 16 KiB each 66 ms, half of them written",
        ],
        (0.3, 1),
        vec![
            Part::fio(
                "system",
                "rw=randrw\nrwmixread=50\nbs=16k\nnumjobs={streams}\nthinktime=65536\n",
                Counted::Megabytes,
                Group::Random,
            )
            .at_rate(SYSTEM),
        ],
    )]
}

/// Small requests at random places.
fn of_small_requests() -> Vec<Profile> {
    vec![
        Profile::on_the_array(
            [
                "vm",
                "virtual machines share it: small random reads and writes",
                "estimate: 7 of 10 requests read, 8 KiB, two in flight for each machine; a flush after ten writes",
            ],
            (0.3, 8),
            vec![Part::fio(
                "machines",
                "rw=randrw\nrwmixread=70\nbs=8k\niodepth=2\nnumjobs={streams}\nfsync=10\n",
                Counted::Operations,
                Group::Random,
            )],
        ),
        Profile::on_the_array(
            [
                "database",
                "a database: small random reads, each write safe before the next",
                "estimate: 7 of 10 requests read, 16 KiB, each write flushed; as in studies/vm-host.toml",
            ],
            (0.5, 16),
            vec![Part::fio(
                "queries",
                "rw=randrw\nrwmixread=70\nbs=16k\nnumjobs={streams}\nfsync=1\n",
                Counted::Operations,
                Group::Random,
            )],
        ),
        Profile::on_the_array(
            [
                "random-read",
                "nothing but small random reads",
                "4 KiB, one in flight for each stream",
            ],
            (0.3, 16),
            vec![Part::fio(
                "reads",
                "rw=randread\nbs=4k\nnumjobs={streams}\n",
                Counted::Operations,
                Group::Random,
            )],
        ),
    ]
}

impl Profile {
    /// Of jobs of fio on the array: name, what it stands for, where it is from; how much of the time, by how many.
    fn on_the_array(
        [name, about, source]: [&str; 3],
        (busy, streams): (f64, u32),
        parts: Vec<Part>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            about: about.to_owned(),
            source: source.to_owned(),
            parts,
            busy,
            streams,
            filesystem: None,
            host: None,
        }
    }

    /// The same of jobs of fio on files, on today's default host.
    fn on_files(words: [&str; 3], often: (f64, u32), parts: Vec<Part>) -> Self {
        Self { filesystem: Some(FILESYSTEM.to_owned()), ..Self::on_the_array(words, often, parts) }
    }

    fn of_filebench(one: &personality::Personality) -> Self {
        let part = Part {
            name: one.name.to_owned(),
            job: Job::Filebench(one.name),
            counted: one.counted(),
            group: Group::Files,
            rate: one.rate,
        };
        let words = [one.name, one.about, one.source];
        Self::on_files(words, (one.busy, one.threads), vec![part])
    }

    /// The workloads of a study, of all or of the one of a name, each by the most processes that the study has for it.
    /// `file` is what the study is called.
    ///
    /// # Errors
    /// In words: no workload, none of that name, a filesystem that is not modelled.
    pub fn of_study(study: &Study, file: &str, workload: Option<&str>) -> Result<Self, String> {
        study.check_virtual_filesystem().map_err(|error| error.reason)?;
        let names: Vec<&str> = study.workloads.iter().map(|one| one.name.as_str()).collect();
        let mut parts = Vec::new();
        for spec in &study.workloads {
            if workload.is_some_and(|name| !spec.name.eq_ignore_ascii_case(name)) {
                continue;
            }
            let processes = study.processes_of(spec).iter().copied().max().unwrap_or(1);
            let mut own = spec.clone();
            own.only_layouts = Vec::new();
            own.only_processes = vec![processes];
            parts.push(Part {
                name: spec.name.clone(),
                counted: Counted::of(&*spec.workload),
                job: Job::Own(Box::new(own), processes),
                // Which it is nobody knows, so it is the one that the model is off by more.
                group: if study.filesystem.is_some() { Group::Files } else { Group::Streams },
                rate: None,
            });
        }
        if parts.is_empty() {
            return Err(match workload {
                Some(name) => {
                    let hint = did_you_mean(name, &names);
                    format!("`{name}` is no workload of it{hint}; it has: {}", names.join(", "))
                }
                None => "it has no workloads, so there is no work".to_owned(),
            });
        }
        let streams = parts.iter().map(Part::processes).max().unwrap_or(1);
        let words = [file, &study.title, "your study"];
        Ok(Self {
            filesystem: study.filesystem.clone(),
            host: study.host.clone(),
            ..Self::on_the_array(words, (OWN_BUSY, streams), parts)
        })
    }

    /// The profile of a name.
    ///
    /// # Errors
    /// In words, with what was probably meant.
    pub fn named(name: &str) -> Result<Self, String> {
        let all = profiles();
        if let Some(found) = all.iter().find(|one| one.name == name) {
            return Ok(found.clone());
        }
        let known: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        let hint = did_you_mean(name, &known);
        Err(format!("`{name}` is not a kind of work{hint}; known: {}", known.join(", ")))
    }

    /// Whether it is jobs of fio on files: writes end in the page cache.
    pub fn is_on_files(&self) -> bool {
        self.parts.iter().any(Part::is_on_files)
    }

    /// Whether it is the workloads of a study, which are as long as they are.
    pub fn is_own(&self) -> bool {
        self.parts.iter().any(|part| matches!(part.job, Job::Own(..)))
    }

    /// Whether it flushes between its reads and writes.
    pub fn flushes(&self) -> bool {
        self.parts.iter().any(Part::flushes)
    }

    /// Bytes a second that all streams together must get; `None` of work that goes as fast as it can.
    pub fn demand(&self, streams: u32) -> Option<f64> {
        let each: f64 = self.parts.iter().filter_map(|part| part.rate).sum();
        (each > 0.0).then_some(each * f64::from(streams))
    }
}

/// How much of the time a study's work goes on: an estimate, as of most profiles.
const OWN_BUSY: f64 = 0.3;

impl Part {
    fn fio(name: &str, job: &'static str, counted: Counted, group: Group) -> Self {
        Self { name: name.to_owned(), job: Job::Fio(job), counted, group, rate: None }
    }

    /// A job of fio on files.
    fn files(name: &str, job: &'static str) -> Self {
        let (name, job) = (name.to_owned(), Job::Files(job));
        Self { name, job, counted: Counted::Megabytes, group: Group::Files, rate: None }
    }

    /// The options of a job of fio.
    const fn options(&self) -> Option<&'static str> {
        match self.job {
            Job::Fio(options) | Job::Files(options) => Some(options),
            Job::Filebench(_) | Job::Own(..) => None,
        }
    }

    /// Whether it flushes between its reads and writes: who writes waits for that, too.
    pub fn flushes(&self) -> bool {
        self.options().is_some_and(|job| job.contains("\nfsync="))
    }

    /// Whether it is a job of fio on files.
    pub(crate) const fn is_on_files(&self) -> bool {
        matches!(self.job, Job::Files(_))
    }

    /// Whether it is a job of fio on the array itself, whatever other parts are on.
    pub(crate) const fn is_on_the_array(&self) -> bool {
        matches!(self.job, Job::Fio(_))
    }

    /// Whether it is a job of fio that goes to random places.
    pub(crate) fn is_random(&self) -> bool {
        self.options().is_some_and(|job| job.starts_with("rw=rand"))
    }

    fn at_rate(self, rate: f64) -> Self {
        Self { rate: Some(rate), ..self }
    }

    /// Whether it does nothing but write in order.
    pub(crate) fn writes_in_order(&self) -> bool {
        self.options().is_some_and(|job| job.starts_with("rw=write\n"))
    }

    /// Whether it does so on the array itself, past any page cache.
    pub(crate) fn writes_past_the_cache(&self) -> bool {
        self.writes_in_order() && self.is_on_the_array()
    }

    /// Copies of its workload that run at once; a job of fio and a personality have their streams within.
    pub fn processes(&self) -> u32 {
        if let Job::Own(_, processes) = self.job { processes } else { 1 }
    }

    /// The part as a workload of about so many requests, by so many streams, on arrays of `space` bytes or more.
    ///
    /// # Errors
    /// In words, when it cannot be.
    pub fn workload(
        &self,
        streams: u32,
        requests: u64,
        space: u64,
    ) -> Result<WorkloadSpec, String> {
        let recipe = match &self.job {
            Job::Fio(job) => self.of_fio(job, streams, requests, space),
            Job::Files(job) => self.of_files(job, streams, requests),
            Job::Filebench(name) => {
                let scaled = personality::parameters(name, streams, requests, space);
                Recipe::of_kind("filebench", scaled)
            }
            Job::Own(spec, _) => return Ok((**spec).clone()),
        };
        let mut spec = WorkloadSpec::from_recipe(recipe).map_err(|error| error.to_string())?;
        self.name.clone_into(&mut spec.name);
        Ok(spec)
    }

    fn of_fio(&self, job: &str, streams: u32, requests: u64, space: u64) -> Recipe {
        let each = (requests / u64::from(streams.max(1))).max(8);
        let random = job.contains("rw=rand");
        let job = job.replace("{streams}", &streams.to_string());
        // Streams have a part of the array each; random places are anywhere in it. Percentages are whole ones.
        let place = match (random, 90 / streams.max(1)) {
            (true, _) => "filename=array\nsize=100%\nnorandommap=1\nrandrepeat=0\n".to_owned(),
            (false, 0) => format!("size={}m\n", (space / 10 * 9 / u64::from(streams)) >> 20),
            (false, percent) => format!("size={percent}%\n"),
        };
        let text = format!("[work]\nioengine=libaio\ndirect=1\n{job}{place}number_ios={each}\n");
        Recipe::of_fio_jobs(&text, &self.name, Vec::new())
    }

    /// Each stream has a file of its own, as long as what it does.
    fn of_files(&self, job: &str, streams: u32, requests: u64) -> Recipe {
        let streams = u64::from(streams.max(1));
        let each = (requests / streams).max(8);
        let job = job.replace("{streams}", &streams.to_string());
        let block = job.lines().find_map(|line| line.strip_prefix("bs=")?.strip_suffix('m'));
        let block = block.and_then(|mebibytes| mebibytes.parse::<u64>().ok()).unwrap_or(1);
        let size = each * block;
        let text = format!("[work]\nioengine=psync\n{job}size={size}m\nnumber_ios={each}\n");
        Recipe::of_fio_jobs(&text, &self.name, Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_makes_its_workloads() {
        for profile in &profiles() {
            for part in &profile.parts {
                for streams in [1, profile.streams, 64, 256] {
                    let made = part.workload(streams, 4_000, 1 << 40);
                    made.unwrap_or_else(|error| panic!("{} {}: {error}", profile.name, part.name));
                }
            }
            assert!((0.0..=1.0).contains(&profile.busy) && !profile.source.is_empty());
        }
    }

    #[test]
    fn unknown_work_is_told_by_name() {
        let error = Profile::named("survelliance").expect_err("misspelt");
        assert!(error.contains("did you mean `surveillance`"), "{error}");
        assert_eq!(Profile::named("surveillance").map(|one| one.demand(64)), Ok(Some(32e6)));
    }

    #[test]
    fn rates_are_told_in_the_unit_of_the_work() {
        let told = |counted: Counted, rates: &[f64]| -> Vec<String> {
            rates.iter().map(|rate| counted.told(*rate)).collect()
        };
        assert_eq!(told(Counted::Megabytes, &[9.94e6, 10e6, 123.4e6]), ["9.9", "10", "123"]);
        assert_eq!(told(Counted::Read, &[1e6]), ["1.0"]);
        assert_eq!(told(Counted::Operations, &[9.4, 123.6]), ["9", "124"]);
        let metric = |better| Counted::Metric(Metric { name: "m", unit: "s", better }, None);
        assert_eq!(
            told(metric(Better::Higher), &[100.0, 99.94, 1.0, 0.5]),
            ["100", "99.9", "1.0", "0.500"]
        );
        assert_eq!(
            told(metric(Better::Lower), &[0.01, 0.5, 4.0]),
            ["100", "2.0", "0.250"],
            "seconds of rates"
        );
    }

    /// What a profile says of itself is what its jobs do.
    #[test]
    fn jobs_are_what_their_profiles_say() {
        let job =
            |name: &str, part: usize| match Profile::named(name).expect("there").parts[part].job {
                Job::Fio(job) | Job::Files(job) => job,
                _ => panic!("{name} is a job of fio"),
            };
        for (name, part, says, options) in [
            ("nas", 0, "7 of 10 requests read, 1 MiB", "rw=rw rwmixread=70 bs=1m end_fsync=1"),
            ("media", 0, "8 of 10 requests read, 1 MiB", "rw=rw rwmixread=80 bs=1m end_fsync=1"),
            ("capture", 0, "4 MiB a write, to a file on ext4", "rw=write bs=4m end_fsync=1"),
            ("backup", 0, "512 KiB to 1 MiB", "rw=write bs=1m end_fsync=1"),
            ("backup", 1, "random reads of 1 to 4 MiB", "rw=randread bs=2m"),
            ("surveillance", 0, "4 Mbit/s a camera, 256 KiB a write", "rw=write bs=256k"),
            ("boot", 0, "16 KiB each 66 ms, half of them written", "rw=randrw rwmixread=50 bs=16k"),
            (
                "vm",
                0,
                "7 of 10 requests read, 8 KiB, two in flight",
                "rw=randrw rwmixread=70 bs=8k iodepth=2 fsync=10",
            ),
            (
                "database",
                0,
                "7 of 10 requests read, 16 KiB, each write flushed",
                "rw=randrw rwmixread=70 bs=16k fsync=1",
            ),
            ("random-read", 0, "4 KiB, one in flight", "rw=randread bs=4k"),
        ] {
            let source = Profile::named(name).expect("there").source;
            assert!(source.contains(says), "{name}: {source}");
            let all: Vec<&str> = job(name, part).lines().collect();
            let others =
                |line: &&&str| !line.starts_with("numjobs=") && !line.starts_with("thinktime=");
            let told: Vec<&str> = all.iter().filter(others).copied().collect();
            assert_eq!(told.join(" "), options, "{name}");
            assert!(all.contains(&"numjobs={streams}"), "{name}");
        }
        // A camera's 4 Mbit/s are what its writes and pauses give; a system need only get a quarter of its own.
        for (name, share) in [("surveillance", 1.0), ("boot", 0.25)] {
            let job = job(name, 0);
            let number = |key: &str| {
                let line = job.lines().find_map(|line| line.strip_prefix(key)).expect("there");
                line.trim_end_matches('k').parse::<f64>().expect("a number")
            };
            let gives = number("bs=") * 1_024.0 / (number("thinktime=") / 1e6);
            let demand = Profile::named(name).expect("there").demand(1).expect("a rate");
            assert!((demand / (gives * share) - 1.0).abs() < 0.05, "{name}: {demand} of {gives}");
        }
        assert_eq!(
            Profile::named("surveillance").expect("there").demand(64),
            Some(64.0 * 4e6 / 8.0)
        );
        let flushing = ["vm", "database"];
        for profile in profiles() {
            assert_eq!(
                profile.flushes(),
                flushing.contains(&profile.name.as_str()),
                "{}",
                profile.name
            );
            assert_eq!(
                profile.demand(3).is_some(),
                ["surveillance", "boot", "videoserver"].contains(&profile.name.as_str())
            );
        }
    }

    /// Streams share nine tenths of the array and so many requests, at least eight each; random places are all of it.
    #[test]
    fn streams_share_the_array_and_the_requests() {
        let text = |name: &str, streams: u32, requests: u64, space: u64| {
            let profile = Profile::named(name).expect("there");
            let Job::Fio(job) = profile.parts[0].job else { panic!("a job of fio on the array") };
            format!("{:?}", profile.parts[0].of_fio(job, streams, requests, space))
        };
        let space = 1_000_000 << 20;
        for (streams, size, each) in [
            (1, "90%", 3_000),
            (4, "22%", 750),
            (90, "1%", 33),
            (91, "9890m", 32),
            (500, "1800m", 8),
        ] {
            let told = text("surveillance", streams, 3_000, space);
            assert!(told.contains(&format!("\\nsize={size}\\n")), "{streams}: {told}");
            assert!(told.contains(&format!("number_ios={each}\\n")), "{streams}: {told}");
            assert!(told.contains(&format!("numjobs={streams}\\n")), "{streams}: {told}");
        }
        let random = text("vm", 4, 3_000, space);
        assert!(random.contains("size=100%") && random.contains("norandommap=1"), "{random}");
    }

    /// What people do with files goes through a page cache, which fills rows of parity; machines and databases go to
    /// the array itself.
    #[test]
    fn work_on_files_is_on_ext4() {
        let on_files: Vec<String> = profiles()
            .into_iter()
            .filter(|one| one.is_on_files())
            .map(|one| {
                assert_eq!(one.filesystem.as_deref(), Some("ext4"), "{}", one.name);
                assert!(one.source.contains("on ext4"), "{}: {}", one.name, one.source);
                for part in &one.parts {
                    let group = if part.is_random() { Group::Random } else { Group::Files };
                    assert_eq!((part.group, part.is_on_the_array()), (group, part.is_random()));
                }
                one.name
            })
            .collect();
        assert_eq!(on_files, ["nas", "media", "capture", "backup"]);
        for work in ["surveillance", "boot", "vm", "database", "random-read"] {
            assert_eq!(Profile::named(work).expect("there").filesystem, None, "{work}");
        }
    }

    /// Each stream has a file that is as long as what it does, and goes through the page cache.
    #[test]
    fn files_are_as_long_as_what_is_done() {
        let text = |name: &str, streams: u32, requests: u64| {
            let part = &Profile::named(name).expect("there").parts[0];
            let Job::Files(job) = part.job else { panic!("a job of fio on files") };
            let recipe = format!("{:?}", part.of_files(job, streams, requests));
            assert!(recipe.contains("ioengine=psync") && !recipe.contains("direct"), "{recipe}");
            recipe
        };
        for (name, streams, requests, size, each) in [
            ("nas", 4, 1_500, 375, 375),
            ("nas", 400, 1_500, 8, 8),
            ("media", 3, 100, 33, 33),
            ("capture", 1, 1_500, 6_000, 1_500),
            ("backup", 4, 1_500, 375, 375),
        ] {
            let told = text(name, streams, requests);
            assert!(told.contains(&format!("\\nsize={size}m\\n")), "{name}: {told}");
            assert!(told.contains(&format!("number_ios={each}\\n")), "{name}: {told}");
        }
    }
}
