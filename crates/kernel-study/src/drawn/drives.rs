//! What the drives of cells are, a number for each: cells that were measured with another one are not to be compared.

use std::collections::BTreeMap;

use raidlab_core::{Sector, Time};
use raidlab_models::{
    Drive, DriveInput, DriveIo, DriveIoId, DriveOp, DriveOutput, ModelError, load,
};
use raidlab_random::{Random, mix};

use super::text::CLASSES;

/// Requests of each drive.
const REQUESTS: u32 = 400;
/// How many of them at once.
const DEPTH: u32 = 4;

/// The number of each drive by its name: it is another one where the drive takes another time for any of a mix of
/// requests, by another figure in its file or by another model.
///
/// # Errors
/// When a drive cannot be loaded.
pub fn drive_hashes() -> Result<BTreeMap<String, String>, ModelError> {
    let names = CLASSES.iter().flat_map(|(_, names)| names.iter());
    let hash = |name: &&str| Ok(((*name).to_owned(), format!("{:016x}", mix(&ends(name)?))));
    names.map(hash).collect()
}

/// When each of a mix of requests ended: in sequence and not, small and large, reads, writes and flushes.
fn ends(name: &str) -> Result<Vec<u64>, ModelError> {
    let spec = load(name)?;
    let mut drive = Drive::new(&spec.kind, 1);
    let mut random = Random::new(1);
    let (mut now, mut under_way, mut submitted) = (Time::ZERO, 0, 0);
    let (mut next, mut wake, mut ends) = (Sector(0), None, Vec::new());
    while (ends.len() as u32) < REQUESTS {
        if under_way < DEPTH && submitted < REQUESTS {
            let op = match random.below(16) {
                0 => DriveOp::Flush,
                1..=7 => DriveOp::Write,
                _ => DriveOp::Read,
            };
            let len = [8, 8, 128, 2048][random.below(4) as usize];
            if random.below(2) == 0 {
                next = Sector(random.below(spec.capacity.0 / 8 - 256) * 8);
            }
            let (at, len) = if op == DriveOp::Flush { (Sector(0), 0) } else { (next, len) };
            next = Sector((next.0 + u64::from(len)) % (spec.capacity.0 - 4096));
            let io = DriveIo { id: DriveIoId(submitted), op, at, len, fua: false };
            drive.handle(now, DriveInput::Submit(io));
            (under_way, submitted) = (under_way + 1, submitted + 1);
        } else {
            // A drive with requests asks to be woken.
            let Some(at) = wake.take() else { break };
            now = at;
            drive.handle(now, DriveInput::Wake);
        }
        while let Some(output) = drive.poll() {
            match output {
                DriveOutput::Complete { id, .. } => {
                    under_way -= 1;
                    ends.push(now.0 ^ u64::from(id.0).rotate_right(16));
                }
                DriveOutput::WakeAt(at) => wake = Some(at),
            }
        }
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_drive_has_a_number_and_times_of_its_own() {
        let hashes = drive_hashes().expect("are there");
        assert_eq!(hashes, drive_hashes().expect("are there"));
        let values: std::collections::BTreeSet<&String> = hashes.values().collect();
        assert_eq!((hashes.len(), values.len()), (6, 6));
        let all = CLASSES.iter().flat_map(|(_, names)| names.iter());
        let all: Vec<Vec<u64>> = all.map(|name| ends(name).expect(name)).collect();
        assert!(all.iter().all(|ends| ends.len() == REQUESTS as usize));
        let different: std::collections::BTreeSet<&Vec<u64>> = all.iter().collect();
        assert_eq!(different.len(), all.len());
    }
}
