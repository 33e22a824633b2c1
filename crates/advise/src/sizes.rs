//! Drives of different sizes: where the space went, and what mirrors of equal ones or a second array would give. By
//! arithmetic alone: none of it is simulated.

use crate::candidate::terabytes;
use crate::decide::Advice;
use crate::wanted::Wanted;

/// Where the space of the recommendation went, and what else could be made of the drives; nothing of equal ones.
pub(crate) fn in_words(wanted: &Wanted, advice: &Advice) -> Vec<String> {
    let mut sizes: Vec<u64> = wanted.sizes.iter().map(|size| size.bytes()).collect();
    sizes.sort_unstable();
    let (Some(least), Some(most)) = (sizes.first().copied(), sizes.last()) else {
        return Vec::new();
    };
    if least == *most {
        return Vec::new();
    }
    let pick = &advice.finalists[advice.verdict.pick];
    let raw: u64 = sizes.iter().sum();
    let cut = raw - least * sizes.len() as u64;
    let rest = raw - cut - pick.usable.min(raw - cut);
    let what = if pick.candidate.layout.has_parity() { "parity" } else { "copies" };
    let mut told = vec![format!(
        "{} has {}: {} of drives, less {} beyond the smallest one, less {} of {what}{}.",
        pick.candidate,
        terabytes(pick.usable),
        terabytes(raw),
        terabytes(cut),
        terabytes(rest),
        if pick.candidate.spares > 0 { " and spares" } else { "" }
    )];
    told.extend(second(&sizes, least, &pick.candidate.to_string()));
    told.extend(mirrors(&sizes, pick.usable));
    told
}

/// A second array over the rest of the larger drives.
fn second(sizes: &[u64], least: u64, first: &str) -> Option<String> {
    let rests: Vec<u64> =
        sizes.iter().filter(|size| **size > least).map(|size| size - least).collect();
    let smallest = rests.first().copied()?;
    let (level, usable) = match rests.len() {
        1 => {
            let reason = "has no second drive to be redundant with: keep copies there only";
            return Some(format!(
                "The rest of the largest drive, {}, {reason}.",
                terabytes(smallest)
            ));
        }
        2 => ("raid1", smallest),
        count => ("raid5", smallest * (count as u64 - 1)),
    };
    Some(format!(
        "With partitions a second array, {level}({}) over the rest of the larger drives, adds {} to {first}; on the \
         same drives they slow each other down.",
        rests.len(),
        terabytes(usable)
    ))
}

/// Mirrors of two drives each, the most equal ones together.
fn mirrors(sizes: &[u64], usable: u64) -> Option<String> {
    let pairs = sizes.chunks_exact(2);
    if sizes.len() < 4 || !pairs.remainder().is_empty() {
        return None;
    }
    let pairs: Vec<&[u64]> = pairs.collect();
    let all: u64 = pairs.iter().map(|pair| pair[0]).sum();
    let named: Vec<String> = pairs
        .iter()
        .map(|pair| match pair[0] == pair[1] {
            true => format!("2 x {}", terabytes(pair[0])),
            false => format!("{} with {}", terabytes(pair[0]), terabytes(pair[1])),
        })
        .collect();
    let than = match all.abs_diff(usable) <= usable / 100 {
        true => "as much".to_owned(),
        false if all > usable => format!("{} more", terabytes(all - usable)),
        false => format!("{} less", terabytes(usable - all)),
    };
    Some(format!(
        "Mirrors of drives alike ({}), joined by LVM or --level=linear, have {}, {than}, with no parity to write; \
         what is on a mirror is lost only with both of its drives.",
        named.join(", "),
        terabytes(all)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TB: u64 = 1_000_000_000_000;

    #[test]
    fn mirrors_of_drives_alike_lose_nothing() {
        let told = mirrors(&[4 * TB, 4 * TB, 8 * TB, 8 * TB], 12 * TB).expect("pairs");
        assert!(told.contains("(2 x 4.0 TB, 2 x 8.0 TB)") && told.contains("12.0 TB, as much"));
        let told = mirrors(&[2 * TB, 4 * TB, 8 * TB, 8 * TB], 6 * TB).expect("pairs");
        assert!(told.contains("2.0 TB with 4.0 TB") && told.contains("4.0 TB more"), "{told}");
        assert!(mirrors(&[TB, 2 * TB], TB).is_none() && mirrors(&[TB; 5], TB).is_none());
    }

    #[test]
    fn the_rest_makes_a_second_array_of_two_or_more() {
        let told = |sizes: &[u64]| second(sizes, sizes[0], "raid5(4)").expect("a rest");
        assert!(told(&[4 * TB, 4 * TB, 8 * TB, 8 * TB]).contains("raid1(2) over the rest"));
        assert!(told(&[4 * TB, 6 * TB, 8 * TB, 8 * TB]).contains("adds 4.0 TB to raid5(4)"));
        assert!(told(&[10 * TB, 10 * TB, 12 * TB]).contains("2.0 TB, has no second drive"));
    }
}
