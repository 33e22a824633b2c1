//! `raidlab layout`: draws where every chunk of a layout lies.

mod map;
mod svg;

use raidlab_core::layout::{Parameter, nested_levels};
use raidlab_core::{Layout, LayoutError, Level};

use crate::args;
use crate::failure::Failure;
use crate::output;
use map::Map;

pub(crate) fn run(options: &args::Layout) -> Result<(), Failure> {
    let layout = layout(options).map_err(Failure::input)?;
    let map = Map::new(&layout, options.rows).map_err(Failure::input)?;
    match &options.svg {
        Some(path) => {
            output::check(&[("--svg", Some(path))], &[])?;
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
    let members = || {
        let level = &options.level;
        options.members.ok_or_else(|| {
            format!("--members <N> is missing: write {level} --members 6, or {level}(6) in quotes")
        })
    };
    if let Some(levels) = nested_levels(&options.level) {
        return nested(options, levels, members()?);
    }
    let level: Level = options.level.parse().map_err(|error: LayoutError| error.reason)?;
    let mut layout = Layout::new(level, members()?);
    for (parameter, _) in given(options).into_iter().filter(|(_, is_given)| *is_given) {
        if !level.takes(parameter) {
            return Err(format!("--{}: {level} has no such parameter", flag(parameter.key())));
        }
    }
    if let Some(chunk) = options.chunk {
        layout.chunk = raidlab_core::layout::chunk_from_size(chunk)
            .map_err(|error| format!("--chunk: {}", error.reason))?;
    }
    if let Some(rotation) = options.rotation {
        layout.rotation = rotation;
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
    layout.check().map_err(|error| format!("--{}: {}", flag(error.key), error.reason))?;
    Ok(layout)
}

/// Keys of study files have underscores where flags have hyphens.
fn flag(key: &str) -> String {
    key.replace('_', "-")
}

/// The parameters that there are flags for, and whether each is given.
fn given(options: &args::Layout) -> [(Parameter, bool); 6] {
    [
        (Parameter::Chunk, options.chunk.is_some()),
        (Parameter::Rotation, options.rotation.is_some()),
        (Parameter::Near, options.near.is_some()),
        (Parameter::Far, options.far.is_some()),
        (Parameter::Offset, options.offset.is_some()),
        (Parameter::FarSets, options.far_sets.is_some()),
    ]
}

/// Nested levels over this many drives, where there is one way to share them out. A flag means what its word means in
/// a layout's name: it is the lower level's parameter, or the upper one's where only that has it; a chunk is both's.
fn nested(
    options: &args::Layout,
    (lower, upper): (Level, Level),
    drives: u16,
) -> Result<Layout, String> {
    let given: Vec<Parameter> = given(options)
        .into_iter()
        .filter_map(|(parameter, is_given)| is_given.then_some(parameter))
        .collect();
    let takes = |parameter| lower.takes(parameter) || upper.takes(parameter);
    if let Some(parameter) = given.iter().find(|parameter| !takes(**parameter)) {
        let flag = flag(parameter.key());
        return Err(format!("--{flag}: neither {lower} nor {upper} has such a parameter"));
    }
    let mut name = format!("{}({drives})", options.level);
    if let Some(chunk) = options.chunk {
        name += &format!(" chunk={}", chunk.0);
    }
    if let Some(rotation) = options.rotation {
        name += &format!(" {rotation}");
    }
    for (word, copies) in [("near", options.near), ("far", options.far), ("offset", options.offset)]
    {
        name += &copies.map_or_else(String::new, |copies| format!(" {word}{copies}"));
    }
    let sets = raidlab_core::layout::has_far_sets(options.far_sets.unwrap_or(0));
    if sets.map_err(|error| format!("--far-sets: {}", error.reason))? {
        name += " sets";
    }
    name.parse().map_err(|error: LayoutError| {
        match given.iter().find(|parameter| parameter.key() == error.key) {
            Some(parameter) => format!("--{}: {}", flag(parameter.key()), error.reason),
            None => error.reason,
        }
    })
}

/// A layout as reports name it, which leaves nothing to flags.
fn named(options: &args::Layout) -> Result<Layout, String> {
    let parameters = given(options).into_iter().map(|(parameter, is)| (parameter.key(), is));
    let given = std::iter::once(("members", options.members.is_some())).chain(parameters);
    if let Some((key, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        let flag = flag(key);
        let layout = &options.level;
        return Err(format!(
            "--{flag}: `{layout}` says all of the layout; put it there, or leave it out"
        ));
    }
    options.level.parse().map_err(|error: LayoutError| error.reason)
}
