//! The what-if page: one offline HTML file in which a study follows the sliders.
//!
//! [`plan`] and [`run`] take a study file's text and give JSON, by the code that `raidlab compare` runs: the same
//! figures to the last digit. On wasm32 `boundary` hands them to a browser's worker; `page` puts the page together.
//! Nothing here knows a terminal, a file or a thread. Values in the JSON are words, as reports have them; its
//! `document` is the text of the results document, which has them all, without `risk`.
//!
//! ```
//! use raidlab_what_if::{plan, run};
//!
//! let study = r#"
//! title = "One mirror"
//! drives = [{ name = "nas", model = "nas-8tb-7200", count = 2 }]
//! layouts = [{ level = "raid1", members = 2 }]
//! workloads = [{ kind = "random-read", size = "64KiB" }]
//! "#;
//! assert_eq!(plan(study)["layouts"][0]["survives"], 1);
//!
//! let mut told = 0;
//! let answer = run(study, None, &mut |done, _| told = done);
//! assert_eq!(told, 6, "as many rounds as an interval needs");
//! assert_eq!(answer["rows"][0]["title"], "Operations a second");
//! assert!(answer["document"].as_str().is_some_and(|json| json.contains("schema_version")));
//!
//! let impossible = plan(&study.replace("raid1", "raid6"));
//! assert_eq!(impossible["errors"][0]["key"], "layouts.members");
//! ```
#![deny(unsafe_code)]

mod answer;
#[cfg(target_arch = "wasm32")]
mod boundary;
mod page;
mod simulate;

pub use page::page;
pub use simulate::{plan, results, run};
