//! The links of a site, followed: each leads to a file of it, and to a place that is there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Pages that mdBook makes of the others.
const OF_MDBOOK: [&str; 3] = ["print.html", "toc.html", "404.html"];

/// How many links within the site its pages have, and a line for each that leads nowhere.
pub(super) fn followed(site: &Path) -> io::Result<(usize, Vec<String>)> {
    let mut pages: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut left = vec![site.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension() == Some("html".as_ref()) {
                let text = fs::read_to_string(&path)?;
                pages.insert(path, text);
            }
        }
    }
    let places: BTreeMap<&Path, BTreeSet<&str>> = pages
        .iter()
        .map(|(path, text)| (path.as_path(), values(text, " id=\"").collect()))
        .collect();
    let mut count = 0;
    let mut broken = Vec::new();
    for (path, text) in pages.iter().filter(|(path, _)| is_own(path)) {
        // The frame around it is mdBook's own.
        let main = text.split_once("<main>").map_or(text.as_str(), |(_, main)| main);
        let main = main.split_once("</main>").map_or(main, |(main, _)| main);
        let links = values(main, " href=\"").chain(values(main, " src=\""));
        for link in links.filter(|link| !link.contains(':')) {
            count += 1;
            if !leads(path, link, &places) {
                let page = path.strip_prefix(site).unwrap_or(path).display();
                broken.push(format!("{page}: the link to `{link}` leads nowhere"));
            }
        }
    }
    Ok((count, broken))
}

fn is_own(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| !OF_MDBOOK.contains(&name))
}

/// What stands behind each of these beginnings of an attribute, up to its end.
fn values<'t>(text: &'t str, start: &'static str) -> impl Iterator<Item = &'t str> {
    text.split(start).skip(1).filter_map(|rest| rest.split('"').next())
}

/// Whether a page's link leads to a file, and to a place in it.
fn leads(page: &Path, link: &str, places: &BTreeMap<&Path, BTreeSet<&str>>) -> bool {
    let (file, place) = link.split_once('#').unwrap_or((link, ""));
    let mut target = page.to_owned();
    if !file.is_empty() {
        target.pop();
        for part in file.split('/') {
            match part {
                ".." => {
                    target.pop();
                }
                "." | "" => {}
                part => target.push(part),
            }
        }
    }
    let has_place = || places.get(target.as_path()).is_some_and(|all| all.contains(place));
    target.is_file() && (place.is_empty() || has_place())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_told() {
        let site = std::env::temp_dir().join(format!("raidlab-links-{}", std::process::id()));
        fs::create_dir_all(site.join("below")).expect("a directory");
        let page = "<a href=\"gone.html\"> <main><h1 id=\"top\"> <a href=\"#top\"> <a href=\"below/b.html#x\"> \
                    <a href=\"https://else.where/\"> <a href=\"below/b.html#y\"> <a href=\"c.html\"></main>";
        fs::write(site.join("a.html"), page).expect("a page");
        fs::write(site.join("below/b.html"), "<main><p id=\"x\"> <a href=\"../a.html\"></main>")
            .expect("a page");
        let found = followed(&site);
        fs::remove_dir_all(&site).expect("removed");
        let (count, broken) = found.expect("pages");
        let expected = ["below/b.html#y", "c.html"]
            .map(|link| format!("a.html: the link to `{link}` leads nowhere"));
        assert_eq!((count, broken), (5, expected.to_vec()));
    }
}
