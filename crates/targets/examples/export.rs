//! Exports an array of members in memory as one file, to measure the export by hand (docs/export.md).
//!
//! usage: export LEVEL MEMBERS MEMBER_MIB DIRECTORY [cached | uncached]
//!
//! DIRECTORY is an empty directory; its file `array` is the array until standard input ends.

use std::error::Error;
use std::io::Read;

use raidlab_core::{Layout, Level, Sectors};
use raidlab_engine::{Engine, EngineConfig, Member, MemoryMember};
use raidlab_targets::{ExportCache, FuseExport};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [level, members, mebibytes, directory, rest @ ..] = arguments.as_slice() else {
        return Err("usage: export LEVEL MEMBERS MEMBER_MIB DIRECTORY [cached | uncached]".into());
    };
    let cache = match rest {
        [] => ExportCache::Kept,
        [word] if word == "cached" => ExportCache::Kept,
        [word] if word == "uncached" => ExportCache::None,
        _ => return Err("the last argument is `cached` or `uncached`".into()),
    };
    let layout = Layout::new(level.parse::<Level>()?, members.parse()?);
    let sectors = Sectors(mebibytes.parse::<u64>()? * 2048);
    let member = |_| MemoryMember::new(sectors).map(Member::Memory);
    let members = (0..layout.members).map(member).collect::<Result<Vec<_>, _>>()?;
    let engine = Engine::new(&EngineConfig::new(layout), members)?;
    let export = FuseExport::new(engine, directory.as_ref(), cache)?;
    println!("{}", export.file().display());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let engine = export.finish()?;
    println!("{:?}", engine.totals());
    Ok(())
}
