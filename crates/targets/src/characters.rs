//! Work byte by byte, as `putc` and `getc` of the C library do it: a byte goes into a buffer, unless that is full.

/// Puts so many bytes into a buffer, without a call of the system. Asks `go_on` before each 4 KiB and ends early
/// with its error.
pub(crate) fn put<E>(bytes: u64, mut go_on: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    let mut buffer = [0_u8; 4_096];
    let mut left = bytes;
    while left > 0 {
        go_on()?;
        let now = left.min(buffer.len() as u64) as usize;
        for (index, byte) in buffer[..now].iter_mut().enumerate() {
            *byte = std::hint::black_box(index as u8);
        }
        std::hint::black_box(&buffer);
        left -= now as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::put;

    #[test]
    fn all_is_done_in_pieces_unless_somebody_says_stop() {
        let most = |limit: u32| {
            let mut asked = 0;
            move || {
                asked += 1;
                if asked > limit { Err(asked) } else { Ok(()) }
            }
        };
        assert_eq!(put(0, most(0)), Ok(()), "nothing to do");
        assert_eq!(put(3 * 4_096 + 1, most(4)), Ok(()), "four pieces");
        assert_eq!(put(4 * 4_096 + 1, most(4)), Err(5), "a fifth");
        assert_eq!(put(u64::MAX, most(2)), Err(3));
    }
}
