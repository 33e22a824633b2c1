//! `raidlab layout`: draws where every chunk of a layout lies.

mod map;
mod svg;

use raidlab_core::{Layout, LayoutError, Level, Redundancy, Sectors};

use crate::args;
use crate::failure::Failure;
use crate::output;
use map::Map;

pub(crate) fn run(options: &args::Layout) -> Result<(), Failure> {
    let layout = layout(options).map_err(Failure::input)?;
    let map = Map::new(&layout, options.rows).map_err(Failure::input)?;
    match &options.svg {
        Some(path) => {
            output::check(&[("--svg", Some(path))])?;
            output::write(path, &svg::draw(&map))
        }
        None => output::print(&map.to_text()),
    }
}

/// The layout the command line asks for; parameters its level does not have are errors.
fn layout(options: &args::Layout) -> Result<Layout, String> {
    if options.level.contains('(') || options.level == "single" {
        return named(options);
    }
    let level: Level = options.level.parse().map_err(|error: LayoutError| error.reason)?;
    let members = options.members.ok_or_else(|| {
        format!("--members <N> is missing: write {level} --members 5, or {level}(5) in quotes")
    })?;
    let mut layout = Layout::new(level, members);
    let lacks = |key: &str| Err(format!("--{key}: {level} has no such parameter"));
    if let Some(chunk) = options.chunk {
        if !level.has_chunks() && level != Level::Linear {
            return lacks("chunk");
        }
        layout.chunk = raidlab_core::layout::chunk_from_size(chunk)
            .map_err(|error| format!("--chunk: {}", error.reason))?;
    }
    if let Some(rotation) = options.rotation {
        if level.rotations().is_empty() {
            return lacks("rotation");
        }
        layout.rotation = rotation;
    }
    let copies = [
        ("near", options.near),
        ("far", options.far),
        ("offset", options.offset),
        ("far-sets", options.far_sets),
    ];
    for (key, _) in copies.iter().filter(|(_, value)| value.is_some()) {
        if level.redundancy() != Redundancy::Copies {
            return lacks(key);
        }
    }
    if let Some(far) = options.far.or(options.offset) {
        layout = layout.with_far(far).with_offset(options.offset.is_some());
    }
    if let Some(near) = options.near {
        layout.near = near;
    }
    if let Some(sets) = options.far_sets {
        layout.far_sets = sets;
    }
    layout.check().map_err(|error| {
        // Keys of study files have underscores where flags have hyphens.
        format!("--{}: {}", error.key.replace('_', "-"), error.reason)
    })?;
    Ok(layout)
}

/// A layout as reports name it, which leaves nothing to flags.
fn named(options: &args::Layout) -> Result<Layout, String> {
    let given = [
        ("members", options.members.is_some()),
        ("chunk", options.chunk.is_some()),
        ("rotation", options.rotation.is_some()),
        ("near", options.near.is_some()),
        ("far", options.far.is_some()),
        ("offset", options.offset.is_some()),
        ("far-sets", options.far_sets.is_some()),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
        let layout = &options.level;
        return Err(format!(
            "--{flag}: `{layout}` says all of the layout; put it there, or leave it out"
        ));
    }
    options.level.parse().map_err(|error: LayoutError| error.reason)
}

/// The chunk to draw with: the layout's, the smallest of nested levels, a sector for raid3, or 512 KiB where there is
/// none.
fn drawn_chunk(layout: &Layout) -> Sectors {
    if layout.floors().any(|floor| floor.level.is_cut_by_sectors()) {
        return Sectors(1);
    }
    let chunks = layout.floors().map(|floor| floor.chunk).filter(|chunk| *chunk > Sectors::ZERO);
    chunks.min().unwrap_or(raidlab_core::layout::DEFAULT_CHUNK)
}
