//! `raidlab layout`: draws where every chunk of a layout lies.

mod map;
mod svg;

use raidlab_core::{Layout, Level, Sectors};

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
    let mut layout = Layout::new(options.level, options.members);
    let lacks = |key: &str| Err(format!("--{key}: {} has no such parameter", options.level));
    if let Some(chunk) = options.chunk {
        if options.level == Level::Raid1 {
            return lacks("chunk");
        }
        layout.chunk = raidlab_core::layout::chunk_from_size(chunk)
            .map_err(|error| format!("--chunk: {}", error.reason))?;
    }
    if let Some(rotation) = options.rotation {
        if options.level != Level::Raid5 {
            return lacks("rotation");
        }
        layout.rotation = rotation;
    }
    if let Some(near) = options.near {
        if options.level != Level::Raid10 {
            return lacks("near");
        }
        layout.near = near;
    }
    layout.check().map_err(|error| format!("--{}: {}", error.key, error.reason))?;
    Ok(layout)
}

/// The chunk to draw with: the layout's, or 512 KiB where it has none.
fn drawn_chunk(layout: &Layout) -> Sectors {
    if layout.chunk == Sectors::ZERO { raidlab_core::layout::DEFAULT_CHUNK } else { layout.chunk }
}
