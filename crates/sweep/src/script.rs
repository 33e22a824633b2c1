//! Scripts that hand shards to what starts programs on many machines.

use std::str::FromStr;

/// What starts the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starter {
    /// A job array of Slurm.
    Slurm,
    /// GNU parallel, here or on machines that ssh reaches.
    Parallel,
}

impl FromStr for Starter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "slurm" => Ok(Self::Slurm),
            "parallel" => Ok(Self::Parallel),
            _ => Err(format!("`{text}` is not known; there are slurm and parallel")),
        }
    }
}

/// What a script says.
#[derive(Clone, Debug, PartialEq)]
pub struct Script<'a> {
    /// The program.
    pub program: &'a str,
    /// The study file.
    pub file: &'a str,
    /// Where rows are written.
    pub out: &'a str,
    /// How many shards there are.
    pub shards: u64,
    /// CPU seconds of all cells, where they are known.
    pub seconds: Option<f64>,
}

/// As many tasks as Slurm takes in one array unless it is set up otherwise (`MaxArraySize` is 1001).
const MOST_TASKS: u64 = 1000;

/// A word that the shell hands on as it is.
fn quoted(word: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-+=:,@%".contains(sign);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

impl Script<'_> {
    /// The text of the script.
    pub fn text(&self, starter: Starter) -> String {
        match starter {
            Starter::Slurm => self.slurm(),
            Starter::Parallel => self.parallel(),
        }
    }

    fn command(&self, shard: &str) -> String {
        let (program, file, out) = (quoted(self.program), quoted(self.file), quoted(self.out));
        format!("{program} sweep {file} --shard {shard} --out {out}")
    }

    fn merge(&self) -> String {
        format!("{} merge {}", quoted(self.program), quoted(self.out))
    }

    /// Minutes that a task may take: four times what is expected, and ten.
    fn minutes(&self, tasks: u64) -> u64 {
        let seconds = self.seconds.unwrap_or(0.0) / tasks.max(1) as f64;
        (seconds * 4.0 / 60.0).ceil() as u64 + 10
    }

    fn slurm(&self) -> String {
        let (shards, tasks) = (self.shards, self.shards.min(MOST_TASKS));
        let minutes = self.minutes(tasks);
        let command = self.command(&format!("\"$shard/{shards}\""));
        let (out, merge) = (quoted(self.out), self.merge());
        format!(
            "#!/bin/bash\n\
             # Submit with: sbatch FILE. Run again, it does what is missing and nothing else.\n\
             # Afterwards, and to see what is missing: {merge}\n\
             #SBATCH --job-name=raidlab-sweep\n\
             #SBATCH --array=1-{tasks}\n\
             #SBATCH --ntasks=1\n\
             #SBATCH --cpus-per-task=1\n\
             #SBATCH --mem=512M\n\
             #SBATCH --time={:02}:{:02}:00\n\
             #SBATCH --requeue\n\
             #SBATCH --output=/dev/null\n\
             #SBATCH --error=raidlab-sweep-%A_%a.log\n\
             set -u\n\
             mkdir -p {out}\n\
             status=0\n\
             for shard in $(seq \"$SLURM_ARRAY_TASK_ID\" {tasks} {shards}); do\n    \
                 {command} || status=$?\n\
             done\n\
             exit $status\n",
            minutes / 60,
            minutes % 60,
        )
    }

    fn parallel(&self) -> String {
        let (shards, merge) = (self.shards, self.merge());
        let command = self.command(&format!("{{}}/{shards}"));
        format!(
            "#!/bin/sh\n\
             # Run again, it does what is missing and nothing else. On several machines that share the directories:\n\
             # PARALLEL='--sshlogin one,two --workdir .' sh FILE\n\
             seq {shards} | parallel --quote --jobs \"${{JOBS:-100%}}\" --retries 3 {command} || exit $?\n\
             {merge}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script() -> Script<'static> {
        Script {
            program: "raidlab",
            file: "my study.toml",
            out: "/data/out",
            shards: 2500,
            seconds: Some(75_000.0),
        }
    }

    #[test]
    fn a_job_array_takes_several_shards_a_task() {
        let text = script().text(Starter::Slurm);
        let expected = "#!/bin/bash\n\
            # Submit with: sbatch FILE. Run again, it does what is missing and nothing else.\n\
            # Afterwards, and to see what is missing: raidlab merge /data/out\n\
            #SBATCH --job-name=raidlab-sweep\n\
            #SBATCH --array=1-1000\n\
            #SBATCH --ntasks=1\n\
            #SBATCH --cpus-per-task=1\n\
            #SBATCH --mem=512M\n\
            #SBATCH --time=00:15:00\n\
            #SBATCH --requeue\n\
            #SBATCH --output=/dev/null\n\
            #SBATCH --error=raidlab-sweep-%A_%a.log\n\
            set -u\n\
            mkdir -p /data/out\n\
            status=0\n\
            for shard in $(seq \"$SLURM_ARRAY_TASK_ID\" 1000 2500); do\n    \
                raidlab sweep 'my study.toml' --shard \"$shard/2500\" --out /data/out || status=$?\n\
            done\n\
            exit $status\n";
        assert_eq!(text, expected);
    }

    /// Four times what is expected, in whole minutes, and ten; hours where there are some.
    #[test]
    fn a_task_has_time_enough() {
        let time = |shards, seconds| {
            let text = Script { shards, seconds, ..script() }.text(Starter::Slurm);
            let (_, rest) = text.split_once("--time=").expect("a time");
            rest.lines().next().expect("a line").to_owned()
        };
        assert_eq!(time(4, None), "00:10:00");
        assert_eq!(time(4, Some(4.0)), "00:11:00", "what is begun is one more");
        assert_eq!(time(1_000, Some(76_000.0)), "00:16:00");
        assert_eq!(time(1, Some(3_600.0)), "04:10:00");
    }

    #[test]
    fn parallel_gets_every_shard() {
        let text = Script { shards: 4, ..script() }.text(Starter::Parallel);
        let expected = "#!/bin/sh\n\
            # Run again, it does what is missing and nothing else. On several machines that share the directories:\n\
            # PARALLEL='--sshlogin one,two --workdir .' sh FILE\n\
            seq 4 | parallel --quote --jobs \"${JOBS:-100%}\" --retries 3 \
            raidlab sweep 'my study.toml' --shard {}/4 --out /data/out || exit $?\n\
            raidlab merge /data/out\n";
        assert_eq!(text, expected);
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!("pbs".parse::<Starter>().map_err(|why| why.contains("slurm")), Err(true));
    }
}
