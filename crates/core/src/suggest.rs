//! "Did you mean ...?"

/// The fewest letters that stand for a longer name.
const FEWEST_LETTERS: usize = 3;

/// The candidate nearest to a word, if any is near enough to be meant: at most two slips, and
/// fewer than half of its letters; else the first that begins with the word.
fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let near = candidates.iter().map(|candidate| (distance(word, candidate), *candidate));
    let meant = near.filter(|(slips, name)| *slips <= 2 && slips * 2 < name.chars().count());
    let nearest = meant.min_by_key(|(slips, _)| *slips).map(|(_, name)| name);
    let begins = || candidates.iter().find(|name| name.starts_with(word)).copied();
    nearest.or_else(|| begins().filter(|_| word.len() >= FEWEST_LETTERS))
}

/// ` (did you mean `rounds`?)` for a word that is near one of the candidates, or nothing.
pub fn did_you_mean(word: &str, candidates: &[&str]) -> String {
    nearest(word, candidates).map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// How many letters must be put in, taken out, replaced or swapped with their neighbour.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<_>, Vec<_>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![(0..=to.len()).collect::<Vec<_>>()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
            if swapped {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (from, to, slips) in [
            ("rounds", "rounds", 0),
            ("round", "rounds", 1),
            ("ruonds", "rounds", 1),
            ("chnuk", "chunk", 1),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(from, to), slips, "{from} {to}");
        }
    }

    #[test]
    fn only_near_names_are_suggested() {
        let names = ["rounds", "seed", "title", "max_rounds"];
        assert_eq!(nearest("runds", &names), Some("rounds"));
        assert_eq!(nearest("sede", &names), Some("seed"));
        assert_eq!(nearest("colour", &names), None);
        assert_eq!(nearest("max", &names), Some("max_rounds"));
        assert_eq!(nearest("ma", &names), None);
        assert_eq!(nearest("ab", &["cd"]), None);
        assert_eq!(did_you_mean("titel", &names), " (did you mean `title`?)");
        assert_eq!(did_you_mean("x", &names), "");
    }

    /// Against every way of putting one word into another, letter by letter, of words of up to four letters.
    #[test]
    fn distances_are_the_shortest_ways() {
        const fn shortest(from: &[u8], to: &[u8]) -> usize {
            let (Some((a, rest)), Some((b, other))) = (from.split_first(), to.split_first()) else {
                return from.len() + to.len();
            };
            let ways = [
                shortest(rest, other) + (*a != *b) as usize,
                shortest(rest, to) + 1,
                shortest(from, other) + 1,
                match (rest, other) {
                    ([c, rest @ ..], [d, other @ ..]) if *a == *d && *c == *b => {
                        shortest(rest, other) + 1
                    }
                    _ => usize::MAX,
                },
            ];
            let mut least = ways[0];
            let mut index = 1;
            while index < ways.len() {
                if ways[index] < least {
                    least = ways[index];
                }
                index += 1;
            }
            least
        }
        let word = |number: usize, len: usize| {
            (0..len)
                .map(|at| b'a' + (number / 3usize.pow(at as u32) % 3) as u8)
                .collect::<Vec<u8>>()
        };
        let words: Vec<Vec<u8>> = (0..=4)
            .flat_map(|len| (0..3usize.pow(len)).map(move |number| word(number, len as usize)))
            .collect();
        let text = |word: &[u8]| String::from_utf8(word.to_vec()).expect("letters");
        for from in &words {
            for to in &words {
                assert_eq!(distance(&text(from), &text(to)), shortest(from, to), "{from:?} {to:?}");
            }
        }
    }

    #[test]
    fn near_enough_is_less_than_half_and_at_most_two() {
        assert_eq!(nearest("abxx", &["abcde"]), None, "three slips");
        assert_eq!(nearest("abcxx", &["abcde"]), Some("abcde"), "two of five");
        assert_eq!(nearest("abxx", &["abcd"]), None, "two of four are half");
        assert_eq!(nearest("abcdxx", &["abcdefghij", "abcdef"]), Some("abcdef"));
        assert_eq!(nearest("abc", &["abcdefghij"]), Some("abcdefghij"), "its beginning");
    }
}
