//! The phases of both versions, in the order of their reports.

/// Writing byte by byte.
pub(super) const CHARACTER_WRITE: u16 = 0;
/// Writing blocks.
pub(super) const BLOCK_WRITE: u16 = 1;
/// Reading each block, changing it and writing it back.
pub(super) const REWRITE: u16 = 2;
/// Reading byte by byte.
pub(super) const CHARACTER_READ: u16 = 3;
/// Reading blocks.
pub(super) const BLOCK_READ: u16 = 4;
/// Reading, and now and then changing, blocks at random places.
pub(super) const SEEKS: u16 = 5;
/// Making small files with names in order; the other phases of small files follow.
pub(super) const CREATE_SEQUENTIAL: u16 = 6;
/// Looking at them in the order of the directory.
pub(super) const STAT_SEQUENTIAL: u16 = 7;
/// Removing them in the order of the directory.
pub(super) const DELETE_SEQUENTIAL: u16 = 8;
/// Making small files with random names.
pub(super) const CREATE_RANDOM: u16 = 9;
/// Looking at them in random order.
pub(super) const STAT_RANDOM: u16 = 10;
/// Removing them in random order.
pub(super) const DELETE_RANDOM: u16 = 11;

/// How many there are.
pub(super) const COUNT: usize = 12;

/// Their names.
pub(super) const NAMES: [&str; COUNT] = [
    "character_write",
    "block_write",
    "rewrite",
    "character_read",
    "block_read",
    "seeks",
    "create_sequential",
    "stat_sequential",
    "delete_sequential",
    "create_random",
    "stat_random",
    "delete_random",
];
