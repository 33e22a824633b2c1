//! A RAID 5 over members of one's own: here each is a vector, it could be an object store or a tape.

use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_core::{Layout, Level, MemberIndex, SECTOR_BYTES, Sector, Sectors};
use raidlab_engine::{Engine, EngineConfig, EngineError, Member, MemberRequest, MemberStore};

struct Tape(Vec<u8>);

impl MemberStore for Tape {
    fn sectors(&self) -> Sectors {
        Sectors(self.0.len() as u64 / SECTOR_BYTES)
    }

    fn submit(&mut self, request: MemberRequest) {
        let from = (request.at().0 * SECTOR_BYTES) as usize;
        let bytes = &mut self.0[from..from + request.len().bytes() as usize];
        match request.op() {
            IoOp::Read => return request.complete_read(bytes),
            IoOp::Write => bytes.copy_from_slice(request.payload()),
            IoOp::WriteZeroes | IoOp::Discard => bytes.fill(0),
            IoOp::Flush => {}
        }
        request.complete(IoOutcome::Ok);
    }
}

fn main() -> Result<(), EngineError> {
    let members = (0..4).map(|_| Member::from(Tape(vec![0; 1 << 20]))).collect();
    let mut array = Engine::new(&EngineConfig::new(Layout::new(Level::Raid5, 4)), members)?;
    array.write_at(Sector(8), b"raid".repeat(1024).as_slice())?;
    array.fail(MemberIndex(0))?;
    let mut bytes = [0; 4096];
    array.read_at(Sector(8), &mut bytes)?;
    assert_eq!(&bytes[..4], b"raid");
    println!("{} read back without a member", array.array().capacity());
    array.stop()
}
