//! Kinds of work by name: what an array is to do, as jobs of fio on the array itself.

use raidlab_core::suggest::did_you_mean;
use raidlab_workload::{Recipe, WorkloadSpec};

use crate::fidelity::Group;

/// A kind of work.
#[derive(Debug)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// What it stands for, in a line.
    pub about: &'static str,
    /// Where its figures are from.
    pub source: &'static str,
    /// What is measured, each by itself.
    pub parts: &'static [Part],
    /// So much of the time the work goes on, 0 to 1; the rest of it a rebuild has the array to itself.
    pub busy: f64,
    /// How many streams, people or machines there are where nobody says.
    pub streams: u32,
}

/// A part of a profile: equal jobs that run at once.
#[derive(Debug)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// The job's options; `{streams}` stands for how many.
    job: &'static str,
    /// What people count.
    pub counted: Counted,
    /// How far the model is off for such work.
    pub group: Group,
    /// Bytes a second that each stream must get, where the work does not go as fast as it can.
    pub rate: Option<f64>,
}

/// What people count of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Megabytes a second.
    Megabytes,
    /// Reads and writes a second.
    Operations,
}

impl Counted {
    /// The unit.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Megabytes => "MB/s",
            Self::Operations => "I/O/s",
        }
    }
}

/// Bytes a second of a camera of 4 Mbit/s.
const CAMERA: f64 = 500_000.0;

/// All profiles.
pub const PROFILES: [Profile; 8] = [
    Profile {
        name: "nas",
        about: "a few people copy files to and from it",
        source: "estimate: 7 of 10 requests read, 1 MiB each as file servers send them, as in studies/nas-4-bays.toml",
        parts: &[Part {
            name: "files copied",
            job: "rw=rw\nrwmixread=70\nbs=1m\nnumjobs={streams}\n",
            counted: Counted::Megabytes,
            group: Group::Streams,
            rate: None,
        }],
        busy: 0.1,
        streams: 4,
    },
    Profile {
        name: "media",
        about: "video is edited: streams read and written side by side",
        source: "estimate: SPC-2's video streams of 256 KiB and more; 8 of 10 requests read, 1 MiB each",
        parts: &[Part {
            name: "streams",
            job: "rw=rw\nrwmixread=80\nbs=1m\nnumjobs={streams}\n",
            counted: Counted::Megabytes,
            group: Group::Streams,
            rate: None,
        }],
        busy: 0.3,
        streams: 3,
    },
    Profile {
        name: "capture",
        about: "one stream is written as fast as it comes",
        source: "estimate: 4 MiB a write, four at once, as capture programs write",
        parts: &[Part {
            name: "writing",
            job: "rw=write\nbs=4m\niodepth=4\nnumjobs={streams}\n",
            counted: Counted::Megabytes,
            group: Group::Streams,
            rate: None,
        }],
        busy: 0.3,
        streams: 1,
    },
    Profile {
        name: "backup",
        about: "machines write their backups at night, and what was written is verified",
        source: "estimate: 1 to 8 writers of 512 KiB to 1 MiB, then random reads of 1 to 4 MiB",
        parts: &[
            Part {
                name: "writing",
                job: "rw=write\nbs=1m\nnumjobs={streams}\n",
                counted: Counted::Megabytes,
                group: Group::Streams,
                rate: None,
            },
            Part {
                name: "verifying",
                job: "rw=randread\nbs=2m\nnumjobs={streams}\n",
                counted: Counted::Megabytes,
                group: Group::Random,
                rate: None,
            },
        ],
        busy: 0.3,
        streams: 4,
    },
    Profile {
        name: "surveillance",
        about: "cameras are recorded all day",
        source: "over 90 % writes, all day (forasoft.com); 4 Mbit/s a camera, 256 KiB a write: estimate",
        parts: &[Part {
            name: "recording",
            job: "rw=write\nbs=256k\nnumjobs={streams}\nthinktime=524288\n",
            counted: Counted::Megabytes,
            group: Group::Streams,
            rate: Some(CAMERA),
        }],
        busy: 1.0,
        streams: 16,
    },
    Profile {
        name: "vm",
        about: "virtual machines share it: small random reads and writes",
        source: "estimate: 7 of 10 requests read, 8 KiB, two in flight for each machine; a flush after ten writes",
        parts: &[Part {
            name: "machines",
            job: "rw=randrw\nrwmixread=70\nbs=8k\niodepth=2\nnumjobs={streams}\nfsync=10\n",
            counted: Counted::Operations,
            group: Group::Random,
            rate: None,
        }],
        busy: 0.3,
        streams: 8,
    },
    Profile {
        name: "database",
        about: "a database: small random reads, each write safe before the next",
        source: "estimate: 7 of 10 requests read, 16 KiB, each write flushed; as in studies/vm-host.toml",
        parts: &[Part {
            name: "queries",
            job: "rw=randrw\nrwmixread=70\nbs=16k\nnumjobs={streams}\nfsync=1\n",
            counted: Counted::Operations,
            group: Group::Random,
            rate: None,
        }],
        busy: 0.5,
        streams: 16,
    },
    Profile {
        name: "random-read",
        about: "nothing but small random reads",
        source: "4 KiB, one in flight for each stream",
        parts: &[Part {
            name: "reads",
            job: "rw=randread\nbs=4k\nnumjobs={streams}\n",
            counted: Counted::Operations,
            group: Group::Random,
            rate: None,
        }],
        busy: 0.3,
        streams: 16,
    },
];

/// Personalities of filebench, of which raidlab does not carry out the file operations yet.
const FILEBENCH: [(&str, &str); 6] = [
    ("fileserver", "nas"),
    ("varmail", "database"),
    ("webserver", "random-read"),
    ("webproxy", "vm"),
    ("oltp", "database"),
    ("videoserver", "media"),
];

impl Profile {
    /// The profile of a name.
    ///
    /// # Errors
    /// In words, with what was probably meant.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        if let Some(found) = PROFILES.iter().find(|one| one.name == name) {
            return Ok(found);
        }
        if let Some((_, near)) = FILEBENCH.iter().find(|(of, _)| *of == name) {
            return Err(format!(
                "`{name}` of filebench is not supported: raidlab does not carry out its file operations; the \
                 nearest here is `{near}`"
            ));
        }
        let known = PROFILES.map(|one| one.name);
        let hint = did_you_mean(name, &known);
        Err(format!("`{name}` is not a kind of work{hint}; known: {}", known.join(", ")))
    }

    /// Bytes a second that all streams together must get; `None` of work that goes as fast as it can.
    pub fn demand(&self, streams: u32) -> Option<f64> {
        let each: f64 = self.parts.iter().filter_map(|part| part.rate).sum();
        (each > 0.0).then_some(each * f64::from(streams))
    }
}

impl Part {
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
        let each = (requests / u64::from(streams.max(1))).max(8);
        let job = self.job.replace("{streams}", &streams.to_string());
        // Streams have a part of the array each; random places are anywhere in it. Percentages are whole ones.
        let place = match (self.job.contains("rw=rand"), 90 / streams.max(1)) {
            (true, _) => "filename=array\nsize=100%\nnorandommap=1\nrandrepeat=0\n".to_owned(),
            (false, 0) => format!("size={}m\n", (space / 10 * 9 / u64::from(streams)) >> 20),
            (false, percent) => format!("size={percent}%\n"),
        };
        let text = format!("[work]\nioengine=libaio\ndirect=1\n{job}{place}number_ios={each}\n");
        let recipe = Recipe::of_fio_jobs(&text, self.name, Vec::new());
        let mut spec = WorkloadSpec::from_recipe(recipe).map_err(|error| error.to_string())?;
        self.name.clone_into(&mut spec.name);
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_makes_its_workloads() {
        for profile in &PROFILES {
            for part in profile.parts {
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
        let error = Profile::named("varmail").expect_err("filebench");
        assert!(error.contains("not supported") && error.contains("`database`"), "{error}");
        assert_eq!(Profile::named("surveillance").map(|one| one.demand(64)), Ok(Some(32e6)));
    }
}
