//! Which mutants are tried.

use std::collections::BTreeMap;

use super::list::Mutant;

/// Every `of`-th mutant, from the `part`-th on.
pub(crate) fn shard(mutants: Vec<Mutant>, part: usize, of: usize) -> Vec<Mutant> {
    mutants.into_iter().skip(part - 1).step_by(of).collect()
}

/// So many mutants, of each module in proportion, by a seed. A larger sample has all of a smaller one but for the
/// rounding of its modules' shares.
pub(crate) fn draw(mutants: Vec<Mutant>, count: usize, seed: u64) -> Vec<Mutant> {
    let total = mutants.len();
    let mut modules: BTreeMap<String, Vec<Mutant>> = BTreeMap::new();
    for mutant in mutants {
        modules.entry(mutant.module.clone()).or_default().push(mutant);
    }
    let sizes: Vec<usize> = modules.values().map(Vec::len).collect();
    let shares = shares(&sizes, count.min(total));
    let mut drawn = Vec::new();
    for (mut module, share) in modules.into_values().zip(shares) {
        module.sort_by_key(|mutant| mutant.order(seed));
        drawn.extend(module.into_iter().take(share));
    }
    drawn
}

/// Deals `count` out in proportion to `sizes`: what rounding down leaves goes to the largest remainders.
fn shares(sizes: &[usize], count: usize) -> Vec<usize> {
    let total: usize = sizes.iter().sum();
    if total == 0 {
        return vec![0; sizes.len()];
    }
    let mut shares: Vec<usize> = sizes.iter().map(|size| size * count / total).collect();
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|index| usize::MAX - sizes[*index] * count % total);
    let left = count - shares.iter().sum::<usize>();
    order.into_iter().take(left).for_each(|index| shares[index] += 1);
    shares
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn population() -> Vec<Mutant> {
        let module = |number: usize| if number < 300 { "large" } else { "small" };
        let mutant = |number: usize| Mutant {
            file: "crates/a/src/lib.rs".to_owned(),
            span: (number, 1)..(number, 2),
            replacement: String::new(),
            name: format!("number {number}"),
            module: module(number).to_owned(),
            is_body: false,
        };
        (0..400).map(mutant).collect()
    }

    fn names(mutants: &[Mutant]) -> BTreeSet<String> {
        mutants.iter().map(|mutant| mutant.name.clone()).collect()
    }

    #[test]
    fn a_seed_draws_the_same_sample_whatever_the_order() {
        let mut turned = population();
        turned.reverse();
        let drawn = names(&draw(population(), 40, 7));
        assert_eq!(drawn.len(), 40);
        assert_eq!(drawn, names(&draw(turned, 40, 7)));
        assert_ne!(drawn, names(&draw(population(), 40, 8)));
        assert!(drawn.is_subset(&names(&draw(population(), 80, 7))));
    }

    #[test]
    fn modules_are_in_proportion() {
        let drawn = draw(population(), 40, 1);
        assert_eq!(drawn.iter().filter(|mutant| mutant.module == "large").count(), 30);
        assert_eq!(draw(population(), 1000, 1).len(), 400);
        assert_eq!(shares(&[5, 5, 1], 4), [2, 2, 0]);
        assert_eq!(shares(&[1, 1, 1], 2).iter().sum::<usize>(), 2);
        assert_eq!(shares(&[0, 0], 0), [0, 0]);
    }

    #[test]
    fn shards_are_all_of_it_once() {
        let parts: Vec<_> = (1..=3).map(|part| names(&shard(population(), part, 3))).collect();
        assert_eq!(parts.iter().map(BTreeSet::len).sum::<usize>(), 400);
        let all: BTreeSet<String> = parts.into_iter().flatten().collect();
        assert_eq!(all, names(&population()));
    }
}
