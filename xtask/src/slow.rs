//! Tests that take long: each commit runs a share of them, another one for each number.

use std::fs;
use std::io;
use std::path::Path;

/// Which they are: a line for each, with its seconds.
const LIST: &str = "tests/slow.txt";

/// Of so many commits in a row one runs a test.
const SHARES: usize = 4;

/// The names of the tests that the commit of a number leaves to others.
pub(crate) fn left_to_others(root: &Path, sample: u32) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(root.join(LIST))?;
    let names = read(&text).map_err(|line| {
        io::Error::other(format!("{LIST}: `{line}` is not seconds and the name of a test"))
    })?;
    Ok(of_others(names, sample))
}

/// The names, or the first line that has none.
fn read(text: &str) -> Result<Vec<&str>, &str> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let (seconds, name) = line.split_once(' ').ok_or(line)?;
            seconds.parse::<u32>().map(|_| name.trim()).map_err(|_| line)
        })
        .collect()
}

fn of_others(names: Vec<&str>, sample: u32) -> Vec<String> {
    let share = sample as usize % SHARES;
    let numbered = names.into_iter().enumerate();
    numbered.filter(|(at, _)| at % SHARES != share).map(|(_, name)| name.to_owned()).collect()
}

/// The arguments of test programs that leave tests out, by their whole names.
pub(crate) fn skipping(names: &[String]) -> Vec<&str> {
    let skip = names.iter().flat_map(|name| ["--skip", name.as_str()]);
    ["--exact"].into_iter().chain(skip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_is_in_one_share() {
        let text = "# what these are\n30 a::b\n\n4 c\n3 d\n2 e\n1 f\n";
        let names = read(text).expect("well-formed");
        assert_eq!(names, ["a::b", "c", "d", "e", "f"]);
        let mut run = Vec::new();
        for sample in 0..SHARES as u32 {
            let left = of_others(names.clone(), sample);
            let own = names.iter().filter(|name| !left.iter().any(|one| one == *name));
            run.extend(own.copied());
        }
        run.sort_unstable();
        assert_eq!(run, names);
        assert_eq!(of_others(names.clone(), 5), of_others(names, 1));
        assert_eq!(read("3 a\nb\n"), Err("b"));
        assert_eq!(read("x b\n"), Err("x b"));
    }

    #[test]
    fn tests_are_left_out_by_whole_names() {
        let names = ["a::b".to_owned(), "c".to_owned()];
        assert_eq!(skipping(&names), ["--exact", "--skip", "a::b", "--skip", "c"]);
    }

    /// One that was renamed would be run by every commit.
    #[test]
    fn all_that_are_listed_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("of the workspace");
        let mut text = String::new();
        let mut folders = vec![root.join("crates")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    text.push_str(&fs::read_to_string(path).expect("text"));
                }
            }
        }
        let list = fs::read_to_string(root.join(LIST)).expect("is there");
        for name in read(&list).expect("well-formed") {
            let own = name.rsplit("::").next().unwrap_or(name);
            assert!(text.contains(&format!("fn {own}(")), "{name}");
        }
    }
}
