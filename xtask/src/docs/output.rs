//! Whether commands print what a document shows.
//!
//! Figures are masked, blanks count as one, and a line of three dots stands for any lines: so this holds
//! on every machine and with other figures, but not when a word, a column or a line is another. What is
//! shown may begin and end anywhere in what is printed.

/// What is shown and not printed, if anything: the number of the first such line, from 0, and what stands
/// in its place.
pub(super) fn difference(shown: &[String], printed: &str) -> Option<(usize, String)> {
    let shown: Vec<String> = shown.iter().map(|line| masked(line)).collect();
    let printed: Vec<String> = printed.lines().map(masked).collect();
    let mut from = 0;
    let mut at = 0;
    for part in shown.split(|line| line == "...") {
        let here = |start: usize| {
            let pairs = part.iter().zip(&printed[start..]);
            pairs.take_while(|(shown, printed)| shown == printed).count()
        };
        // Of equally long beginnings the first.
        let best = (from..printed.len()).rev().max_by_key(|&start| here(start)).unwrap_or(from);
        let alike = if best < printed.len() { here(best) } else { 0 };
        if alike < part.len() {
            let instead = printed.get(best + alike).map_or("the end", String::as_str);
            return Some((at + alike, instead.to_owned()));
        }
        from = best + alike;
        at += part.len() + 1;
    }
    None
}

/// A line with each figure as `#`, but for digits that belong to a word, and without the width of columns.
fn masked(line: &str) -> String {
    let mut masked = String::new();
    let mut before = ' ';
    let mut in_figure = false;
    let letters: Vec<char> = line.trim().chars().collect();
    for (index, &letter) in letters.iter().enumerate() {
        let next_is_digit = letters.get(index + 1).is_some_and(char::is_ascii_digit);
        let of_word = before.is_alphanumeric() || before == '_';
        let goes_on =
            in_figure && (letter.is_ascii_digit() || (",.".contains(letter) && next_is_digit));
        if goes_on {
        } else if letter.is_ascii_digit() && !of_word {
            in_figure = true;
            masked.push('#');
        } else {
            in_figure = false;
            let repeated = letter == before && "─ ".contains(letter);
            if !repeated {
                masked.push(letter);
            }
        }
        before = letter;
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shows(shown: &str, printed: &str) -> Option<usize> {
        let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
        difference(&shown, printed).map(|(line, _)| line)
    }

    #[test]
    fn figures_are_masked_and_words_are_not() {
        assert_eq!(masked("  raid5(4)   1,024.5  MiB/s, -12 %~  "), "raid5(#) # MiB/s, -# %~");
        assert_eq!(masked("nas-8tb 64KiB 0.1.0"), "nas-#tb #KiB #");
        assert_eq!(masked("a, 3, 4."), "a, #, #.");
        assert_eq!(masked("────────"), "─");
    }

    #[test]
    fn what_is_shown_must_be_printed() {
        let printed = "head\nraid0 12 MiB/s\nraid1    7 MiB/s\nfoot 1\nend\n";
        assert_eq!(shows("raid0 99 MiB/s\nraid1 1,000 MiB/s", printed), None);
        assert_eq!(shows("head\n...\nfoot 2", printed), None);
        assert_eq!(shows("head\n...", printed), None);
        assert_eq!(shows("raid0 99 MiB/s\nraid2 7 MiB/s", printed), Some(1));
        assert_eq!(shows("raid0 99 KiB/s", printed), Some(0));
        assert_eq!(shows("head\nfoot 1", printed), Some(1));
        assert_eq!(shows("foot 1\n...\nhead", printed), Some(2));
        assert_eq!(shows("end\nmore", printed), Some(1));
        assert_eq!(shows("head", ""), Some(0));
    }
}
