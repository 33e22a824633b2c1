//! The page: its controls, made from the levels and drives that there are, and its scripts in one file.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use raidlab_core::{Level, Rotation};
use raidlab_models::{DriveKind, DriveSpec, ModelError, builtin, load};
use raidlab_report::{MARKS_SCRIPT, page_style, policy_hash};

const STYLE: &str = include_str!("../page/style.css");
const SCRIPT: &str = include_str!("../page/page.js");
const WORKER: &str = include_str!("../page/worker.js");

/// The most drives, and the most processes, that the page offers.
const MOST_DRIVES: u32 = 16;
const MOST_PROCESSES: u32 = 8;

/// The levels that are offered, with what people know them by.
const LEVELS: [(&str, &str); 11] = [
    ("single", "single: one drive alone"),
    ("linear", "linear: one drive after the other"),
    ("raid0", "raid0: stripes"),
    ("raid1", "raid1: a copy on every drive"),
    ("raid4", "raid4: parity on one drive"),
    ("raid5", "raid5: parity that rotates"),
    ("raid6", "raid6: two parities"),
    ("raid10", "raid10: copies in stripes"),
    ("raid1+0", "raid1+0: stripes over mirrors of 2"),
    ("raid5+0", "raid50: stripes over 2 raid5"),
    ("raid6+0", "raid60: stripes over 2 raid6"),
];

/// Where copies lie in raid10, by mdadm's names.
const COPIES: [(&str, &str); 7] = [
    ("near 2", "n2: 2 copies, neighbouring drives"),
    ("near 3", "n3: 3 copies, neighbouring drives"),
    ("far 2", "f2: 2 copies, the second far in"),
    ("far 3", "f3: 3 copies, the others far in"),
    ("offset 2", "o2: 2 copies, a row below"),
    ("offset 3", "o3: 3 copies, in rows below"),
    ("near 4", "n4: 4 copies, neighbouring drives"),
];

/// What processes do, by fio's names; the last is 70 % reads.
const PATTERNS: [(&str, &str); 5] = [
    ("read", "sequential read"),
    ("write", "sequential write"),
    ("randread", "random read"),
    ("randwrite", "random write"),
    ("randrw", "random, 70 % reads and 30 % writes"),
];

const FILES: [(&str, &str); 6] = [
    ("1g", "1 GiB"),
    ("4g", "4 GiB"),
    ("16g", "16 GiB"),
    ("64g", "64 GiB"),
    ("256g", "256 GiB"),
    ("1t", "1 TiB"),
];

const LENGTHS: [(&str, &str); 3] =
    [("1", "short: seconds"), ("4", "four times as long"), ("16", "16 times as long")];

const HOSTS: [(&str, &str); 3] = [
    ("linux-6.12", "md of Linux 6.12, as modelled"),
    ("linux-6.1", "md of Linux 6.1, as modelled"),
    ("own", "raidlab's own engine"),
];

/// The page, with a program for wasm32 that was compressed by gzip.
///
/// # Errors
/// A built-in drive file that is wrong, which is a defect.
pub fn page(program: &[u8]) -> Result<String, ModelError> {
    let drives: Result<Vec<DriveSpec>, ModelError> =
        builtin().iter().map(|(name, _)| load(name)).collect();
    let drives = drives?;
    let style = format!("{}{STYLE}", page_style());
    let script = format!("{MARKS_SCRIPT}{SCRIPT}");
    // The worker is made from a text of this page; it inherits the policy.
    let policy = format!(
        "default-src 'none'; script-src {} 'wasm-unsafe-eval'; style-src {}; worker-src blob:; base-uri 'none'; \
         form-action 'none'",
        policy_hash(&script),
        policy_hash(&style)
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "raidlab " (env!("CARGO_PKG_VERSION")) };
                title { "What if? – raidlab" }
                style { (PreEscaped(style)) }
            }
            body {
                a.skip href="#answer" { "Skip to the answer" }
                (content(&drives))
                script type="text/plain" id="worker" { (PreEscaped(WORKER)) }
                script type="application/gzip" id="program" { (STANDARD.encode(program)) }
                script { (PreEscaped(script)) }
            }
        }
    };
    Ok(page.into_string() + "\n")
}

fn content(drives: &[DriveSpec]) -> Markup {
    html! {
        header {
            h1 { "What if?" }
            p.facts {
                "RAID arrays of modelled drives, simulated in this page in virtual time. Move a control: the answer \
                 follows. raidlab " (env!("CARGO_PKG_VERSION")) ", nothing is sent anywhere."
            }
        }
        noscript { p { "This page computes its answers by script and WebAssembly, which this browser does not run." } }
        div.bench {
            form #controls autocomplete="off" aria-label="Array and work" { (array(drives)) (work()) (host()) }
            main #answer { (answer()) }
        }
        (limits())
    }
}

fn array(drives: &[DriveSpec]) -> Markup {
    let has = |of: &dyn Fn(Level) -> bool| -> String {
        Level::ALL
            .into_iter()
            .filter(|level| of(*level))
            .map(Level::name)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let nested = "raid1+0 raid5+0 raid6+0";
    html! {
        fieldset {
            legend { "Array" }
            (field("model", "Drive", html! { (models(drives)) }))
            div.field data-levels={ (has(&|_| true)) " " (nested) } {
                (slider("count", "Drives", 1, MOST_DRIVES, 4))
            }
            (field("level", "Level", options("level", &LEVELS, "raid5")))
            div.field data-levels="raid10" {
                (labelled("copies", "Copies", options("copies", &COPIES, "near 2")))
            }
            div.field data-levels=(has(&|level| !level.rotations().is_empty())) {
                (labelled("rotation", "Rotation", rotations()))
            }
            div.field data-levels={ (has(&|level| level.has_chunks())) " " (nested) } {
                (slider("chunk", "Chunk", 12, 22, 19))
            }
        }
    }
}

fn work() -> Markup {
    html! {
        fieldset {
            legend { "Work" }
            (field("pattern", "Access", options("pattern", &PATTERNS, "randread")))
            div.field { (slider("block", "Block", 12, 22, 12)) }
            div.field { (slider("processes", "Processes", 1, MOST_PROCESSES, 4)) }
            div.field { (slider("depth", "Requests at once, of each", 0, 6, 0)) }
            (field("file", "File of each", options("file", &FILES, "64g")))
            div.field role="radiogroup" aria-labelledby="state-label" {
                span.label #state-label { "State" }
                div.choices {
                    @for (at, state) in ["healthy", "degraded", "rebuilding"].into_iter().enumerate() {
                        label {
                            input type="radio" name="state" value=(state) checked[at == 0]
                                aria-describedby="state-error";
                            span { (state) }
                        }
                    }
                }
                p.error #state-error {}
            }
            (field("run", "Length of a run", options("run", &LENGTHS, "1")))
        }
    }
}

fn host() -> Markup {
    html! { fieldset { legend { "Host" } (field("host", "Array by", options("host", &HOSTS, "linux-6.12"))) } }
}

/// A labelled control with a place for what is wrong with it.
fn field(name: &str, label: &str, control: Markup) -> Markup {
    html! { div.field { (labelled(name, label, control)) } }
}

fn labelled(name: &str, label: &str, control: Markup) -> Markup {
    html! {
        label.label for=(name) { (label) }
        (control)
        p.error id={ (name) "-error" } {}
    }
}

fn slider(name: &str, label: &str, low: u32, high: u32, value: u32) -> Markup {
    html! {
        label.label for=(name) { (label) }
        output id={ (name) "-value" } for=(name) {}
        input type="range" id=(name) name=(name) min=(low) max=(high) step="1" value=(value)
            aria-describedby={ (name) "-error" };
        p.error id={ (name) "-error" } {}
    }
}

fn options(name: &str, all: &[(&str, &str)], chosen: &str) -> Markup {
    html! {
        select id=(name) name=(name) aria-describedby={ (name) "-error" } {
            @for (value, label) in all {
                option value=(value) selected[*value == chosen] { (label) }
            }
        }
    }
}

/// Each rotation says which levels have it.
fn rotations() -> Markup {
    let raid5 = Level::Raid5.rotations();
    html! {
        select #rotation name="rotation" aria-describedby="rotation-error" {
            @for one in Rotation::ALL {
                option value=(one.name()) data-levels=(if raid5.contains(&one) { "raid5 raid6" } else { "raid6" })
                    selected[one == Rotation::default()] { (one.name()) }
            }
        }
    }
}

type IsKind = fn(&DriveKind) -> bool;

/// Kinds of drives, in the order in which they are offered.
const KINDS: [(&str, IsKind); 3] = [
    ("Hard disks", |kind| matches!(kind, DriveKind::HardDisk(_))),
    ("SSDs", |kind| matches!(kind, DriveKind::Ssd(_))),
    ("Shingled disks", |kind| matches!(kind, DriveKind::Smr(_))),
];

fn models(drives: &[DriveSpec]) -> Markup {
    html! {
        select #model name="model" aria-describedby="model-error" {
            @for (label, is) in KINDS {
                optgroup label=(label) {
                    @for drive in drives.iter().filter(|drive| is(&drive.kind)) {
                        option value=(drive.name) selected[drive.name == "nas-8tb-7200"]
                            data-kind=(if matches!(drive.kind, DriveKind::Ssd(_)) { "ssd" } else { "disk" }) {
                            (drive.title)
                        }
                    }
                }
            }
        }
    }
}

/// What the script fills.
fn answer() -> Markup {
    html! {
        div.bar {
            p #headline {}
            div.status {
                p #status role="status" aria-live="polite" { "Starting" }
                progress #progress max="1" value="0" aria-label="rounds that are done" {}
            }
            div.actions {
                button type="button" #pin { "Pin this to compare" }
                button type="button" #swap hidden { "Swap" }
                button type="button" #unpin hidden { "Unpin" }
            }
        }
        div #failure.failure role="alert" hidden {}
        div #shown {
            section aria-labelledby="figures-head" {
                h2 #figures-head { "Figures" }
                div #figures {}
                ul #sentences.verdicts {}
            }
            section aria-labelledby="map-head" {
                h2 #map-head { "Where chunks lie" }
                div #maps {}
            }
            section aria-labelledby="charts-head" {
                h2 #charts-head { "Over requests, time and drives" }
                div #charts.charts {}
            }
            section aria-labelledby="trust-head" {
                h2 #trust-head { "How far to trust this" }
                ul #trust.remarks {}
            }
            section aria-labelledby="same-head" {
                h2 #same-head { "The same on the command line" }
                div #studies {}
            }
        }
    }
}

/// What the page does not do.
fn limits() -> Markup {
    html! {
        footer {
            h2 { "What this page leaves out" }
            p {
                "Filesystems and the page cache, controllers and their caches, links that drives share, hot spares, \
                 drives of different sizes, other workloads (bonnie++, filebench, copies of trees): study files have \
                 them, for "
                code { "raidlab compare" } ". How likely the array loses data: " code { "raidlab risk" }
                ", and below what " code { "raidlab compare" } " prints. Which layout suits you best: "
                code { "raidlab advise" } ". Runs are short, of a second to minutes of virtual time: what shows only \
                 after hours, such as full caches of SSDs, needs a longer run. Nothing keeps arrays consistent across \
                 a crash here, neither bitmap nor journal."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use raidlab_core::Layout;

    use super::*;

    /// What the page offers are levels, copies and drives that there are, by the names that mdadm has for them.
    #[test]
    fn what_is_offered_can_be_made() {
        let made = |name: &str| name.parse::<Layout>();
        for (level, label) in LEVELS {
            let name = match level {
                "single" => "single".to_owned(),
                nested if nested.contains('+') => format!("{nested}(2x4)"),
                plain => format!("{plain}(4)"),
            };
            assert!(made(&name).is_ok(), "{level}: {:?}", made(&name));
            // The short names that people have for nested ones.
            let short = level.replace("+0", "0").replace("raid10", "raid1+0");
            assert!(
                label.starts_with(&format!("{level}:")) || label.starts_with(&short),
                "{label}"
            );
        }
        for (copies, label) in COPIES {
            let (kind, count) = copies.split_once(' ').expect("kind and number");
            let name = format!("{}{count}: {count} copies, ", &kind[..1]);
            assert!(label.starts_with(&name), "{label}");
            assert!(made(&format!("raid10(6) {kind}{count}")).is_ok(), "{copies}");
        }
        let text = page(b"program").expect("drives");
        for (name, _) in builtin() {
            assert_eq!(text.matches(&format!("<option value=\"{name}\"")).count(), 1, "{name}");
        }
        assert!(text.contains(&STANDARD.encode(b"program")));
        for chosen in ["nas-8tb-7200", "raid5", "near 2", "randread", "64g", "1", "linux-6.12"] {
            assert!(text.contains(&format!("<option value=\"{chosen}\" selected")), "{chosen}");
        }
        for (name, low, high, value) in [
            ("count", 1, 16, 4),
            ("chunk", 12, 22, 19),
            ("block", 12, 22, 12),
            ("processes", 1, 8, 4),
            ("depth", 0, 6, 0),
        ] {
            let range = format!(
                "name=\"{name}\" min=\"{low}\" max=\"{high}\" step=\"1\" value=\"{value}\""
            );
            assert!(text.contains(&range), "{range}");
        }
        // Sizes are powers of two of bytes by their names, as fio reads them.
        for (value, label) in FILES {
            let unit = if value.ends_with('t') { "TiB" } else { "GiB" };
            assert_eq!(label, format!("{} {unit}", &value[..value.len() - 1]));
        }
    }
}
