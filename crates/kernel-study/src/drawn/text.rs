//! A drawn cell as a study.

use std::fmt::Write;

use raidlab_models::load;
use raidlab_study::Study;
use raidlab_workload::{Recipe, WorkloadSpec};

use super::Drawn;

/// Classes and the drives of each.
pub(super) const CLASSES: [(&str, &[&str]); 2] = [
    ("hdd", &["nas-8tb-7200", "nas-4tb-5400", "desktop-2tb-7200", "dc-6tb-7200"]),
    ("ssd", &["ssd-sata-1tb", "ssd-sata-960gb-dc"]),
];

/// The drives of a class.
pub(super) fn drives(class: &str) -> &'static [&'static str] {
    CLASSES.iter().find(|(name, _)| *name == class).map_or(&[], |(_, drives)| drives)
}

/// Bits of a bitmap on a page of 4 KiB.
const BITS_OF_PAGE: u64 = 32_768;

impl Drawn {
    /// The study of the cell: one layout, one workload, one state.
    ///
    /// # Errors
    /// In words; a cell that was drawn gives none.
    pub fn study(&self) -> Result<Study, String> {
        let text = self.text()?;
        let mut study = raidlab_study::parse(&text, "cell").map_err(|error| error.to_string())?;
        let mut host = study.host.ok_or("no host")?;
        let costs = &mut host.spec.costs;
        costs.call.0 = costs.call.0 * self.cost / 100;
        costs.copy_rate = costs.copy_rate * 100 / self.cost.max(1);
        study.host = Some(host);
        if self.value("workload") == "sync-and-async" {
            let recipe = Recipe::of_fio_jobs(&self.two_jobs(), "jobs.fio", Vec::new());
            let spec = WorkloadSpec::from_recipe(recipe).map_err(|error| error.to_string())?;
            study.workloads = vec![spec];
        }
        crate::prepare(&mut study).map_err(|error| error.to_string())?;
        Ok(study)
    }

    fn is_long(&self) -> bool {
        self.value("length") == "long"
    }

    /// MiB of each process.
    fn mib(&self) -> u64 {
        let processes: u64 = self.value("processes").parse().unwrap_or(1);
        (if self.is_long() { 512 } else { 64 }) / processes
    }

    /// The study as a file has it.
    ///
    /// # Errors
    /// When there is no such drive.
    pub fn text(&self) -> Result<String, String> {
        let mut text = format!("title = \"{}\"\n", self.name());
        let _ = writeln!(text, "processes = [{}]", self.value("processes"));
        let _ = writeln!(text, "states = [\"{}\"]", self.value("state"));
        if self.value("filesystem") != "none" {
            let _ = writeln!(text, "filesystem = \"{}\"", self.value("filesystem"));
        }
        let _ = writeln!(text, "host = {{ memory = \"{}MiB\" }}", self.memory);
        let drive = self.drive;
        let _ = writeln!(text, "\n[[drives]]\nname = \"drive\"\nmodel = \"{drive}\"\ncount = 9");
        text += &self.layout()?;
        text += &self.workload();
        Ok(text)
    }

    fn layout(&self) -> Result<String, String> {
        let (level, members) = (self.value("level"), self.value("members"));
        let (level, copies) = match level.strip_prefix("raid10") {
            Some("f2") => ("raid10", "far = 2\n"),
            Some("o2") => ("raid10", "offset = 2\n"),
            Some(_) => ("raid10", "near = 2\n"),
            None => (level, ""),
        };
        let mut text = format!("\n[[layouts]]\nlevel = \"{level}\"\n{copies}");
        if level != "single" {
            let _ = writeln!(text, "members = {members}");
        }
        if self.value("chunk") != "none" {
            let _ = writeln!(text, "chunk = \"{}\"", self.value("chunk"));
        }
        let pages = match self.value("bitmap") {
            "one page" => 1,
            "several pages" => 16,
            _ => return Ok(text),
        };
        // Mirrors have a bit for a range of the array, which is as large as its members at least.
        let bytes = load(self.drive).map_err(|error| error.to_string())?.capacity.bytes();
        let array = if level == "raid10" { 8 } else { 1 };
        let chunk = (bytes * array / (BITS_OF_PAGE * pages)).next_power_of_two().max(1 << 20);
        let _ = writeln!(text, "consistency = \"bitmap\"\nbitmap_chunk = \"{}MiB\"", chunk >> 20);
        Ok(text)
    }

    fn workload(&self) -> String {
        let size = self.mib();
        let (mode, raw) = (self.value("mode"), self.value("filesystem") == "none");
        let many = if self.is_long() { 2_000 } else { 200 };
        let keys = match self.value("workload") {
            name @ ("dd-write" | "dd-read") if raw => {
                format!("kind = \"{name}\"\nblock = \"1MiB\"\nsize = \"{size}MiB\"\n")
            }
            "dd-write" => {
                let flag = match mode {
                    "direct" => "oflag = \"direct\"",
                    "fsync" => "oflag = \"dsync\"",
                    _ => "conv = \"fsync\"",
                };
                format!(
                    "kind = \"dd\"\nbs = \"1MiB\"\nif = \"zero\"\nof = \"file\"\ncount = {size}\n{flag}\n"
                )
            }
            "dd-read" => {
                let flag = if mode == "direct" { "iflag = \"direct\"\n" } else { "" };
                format!(
                    "kind = \"dd\"\nbs = \"1MiB\"\nif = \"file\"\nof = \"null\"\ncount = {size}\n{flag}"
                )
            }
            "cp" => format!("kind = \"cp-null\"\nsize = \"{size}MiB\"\n"),
            "small-files" => {
                let sync = mode == "fsync";
                format!("kind = \"small-files\"\nfiles = {many}\nfsync = {sync}\n")
            }
            "tar" => {
                format!("kind = \"tar-xf\"\nfiles = {many}\nsize = \"{}KiB\"\n", many * 12)
            }
            "bonnie" => {
                let sync = mode == "fsync";
                format!(
                    "kind = \"bonnie-2.00\"\nsize = \"{size}MiB\"\nram = \"8MiB\"\nn = \"1\"\nfast = true\n\
                     sync = {sync}\nseeks = {many}\nsettle = \"1s\"\n"
                )
            }
            "tiobench" => {
                let flag = match mode {
                    "direct" => "direct = true\n",
                    "fsync" => "sync = true\n",
                    _ => "",
                };
                format!(
                    "kind = \"tiobench-0.4\"\nsize = \"{size}MiB\"\noperations = {many}\n{flag}"
                )
            }
            random => self.fio(random),
        };
        format!("\n[[workloads]]\n{keys}")
    }

    /// Operations of each process; few where it thinks long.
    fn operations(&self) -> u64 {
        let (short, long) = match self.value("think") {
            "500ms" => (16, 40),
            "50ms" => (64, 200),
            _ => (200, 1_000),
        };
        if self.is_long() { long } else { short }
    }

    fn fio(&self, random: &str) -> String {
        let rw = match random {
            "random-write" => "randwrite",
            "random-mixed" => "randrw",
            _ => "randread",
        };
        let engine = if self.value("depth") == "1" { "psync" } else { "libaio" };
        let mut keys = format!(
            "kind = \"fio\"\nrw = \"{rw}\"\nbs = \"4k\"\nsize = \"{}m\"\nioengine = \"{engine}\"\n\
             iodepth = {}\nnumber_ios = {}\nrandrepeat = 0\n",
            if self.is_long() { 64 } else { 16 },
            self.value("depth"),
            self.operations()
        );
        match self.value("mode") {
            "direct" => keys += "direct = 1\n",
            "fsync" => keys += "fsync = 1\n",
            _ if rw != "randread" => keys += "end_fsync = 1\n",
            _ => {}
        }
        if let Some(think) = self.value("think").strip_suffix("ms") {
            let _ = writeln!(keys, "thinktime = \"{think}ms\"");
        }
        keys
    }

    /// One that syncs each of its writes, beside one that leaves its to the kernel.
    fn two_jobs(&self) -> String {
        let think = match self.value("think").strip_suffix("ms") {
            Some(think) => format!("thinktime={think}ms\n"),
            None => String::new(),
        };
        format!(
            "[global]\nsize=16m\nbs=4k\nrandrepeat=0\n[sync]\nrw=randwrite\nfsync=1\nnumber_ios={}\n{think}\
             [async]\nrw=write\nbs=64k\nsize={}m\n",
            self.operations(),
            self.mib()
        )
    }
}
