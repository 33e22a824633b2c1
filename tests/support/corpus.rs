//! Inputs of a fuzzed target in one file: each as its length, four bytes with the lowest first, and its bytes.

/// Bytes of a length.
const LENGTH: usize = 4;

/// The inputs in a file; `None` when it ends within one.
pub(crate) fn unpack(mut packed: &[u8]) -> Option<Vec<&[u8]>> {
    let mut inputs = Vec::new();
    while let Some((length, rest)) = packed.split_first_chunk::<LENGTH>() {
        let (input, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        inputs.push(input);
        packed = rest;
    }
    packed.is_empty().then_some(inputs)
}

/// A file of inputs, the short ones first, each once.
#[allow(dead_code, reason = "only the fuzzing command writes them")]
pub(crate) fn pack(inputs: &mut Vec<Vec<u8>>) -> Vec<u8> {
    inputs.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
    inputs.dedup();
    let length = |input: &[u8]| (input.len() as u32).to_le_bytes();
    inputs.iter().flat_map(|input| length(input).into_iter().chain(input.iter().copied())).collect()
}
