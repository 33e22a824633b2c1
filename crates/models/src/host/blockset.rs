//! Sets of blocks: bits in pieces that are made when they are needed.

/// Words of a piece: as many blocks as a group of ext3 has.
const WORDS: usize = 512;

/// Blocks of a piece.
const BLOCKS: u64 = WORDS as u64 * 64;

/// A set of blocks by number.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockSet {
    pieces: Vec<Option<Box<[u64; WORDS]>>>,
}

/// Piece, word and bit of a block.
fn place(block: u64) -> (usize, usize, u64) {
    let within = block % BLOCKS;
    ((block / BLOCKS) as usize, (within / 64) as usize, 1 << (within % 64))
}

impl BlockSet {
    /// Whether a block is in it.
    #[inline]
    pub(super) fn contains(&self, block: u64) -> bool {
        let (piece, word, bit) = place(block);
        self.pieces.get(piece).and_then(Option::as_ref).is_some_and(|one| one[word] & bit != 0)
    }

    /// Adds a block; says whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, block: u64) -> bool {
        let (piece, word, bit) = place(block);
        if self.pieces.len() <= piece {
            self.pieces.resize(piece + 1, None);
        }
        let piece = self.pieces[piece].get_or_insert_with(|| Box::new([0; WORDS]));
        let is_new = piece[word] & bit == 0;
        piece[word] |= bit;
        is_new
    }

    /// Takes a block out.
    pub(super) fn remove(&mut self, block: u64) {
        let (piece, word, bit) = place(block);
        if let Some(Some(piece)) = self.pieces.get_mut(piece) {
            piece[word] &= !bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_and_go() {
        let mut set = BlockSet::default();
        let blocks = [0, 63, 64, BLOCKS - 1, BLOCKS, 1 << 30];
        for block in blocks {
            assert!(!set.contains(block) && set.insert(block) && !set.insert(block), "{block}");
        }
        set.remove(64);
        set.remove(5 * BLOCKS);
        assert!(!set.contains(64) && !set.contains(1));
        assert!(blocks.iter().filter(|block| **block != 64).all(|block| set.contains(*block)));
    }
}
