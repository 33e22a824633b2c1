//! What `mdadm` is told.

use raidlab_core::{Consistency, Layout, Redundancy};
use raidlab_engine::{EngineError, EngineErrorKind};

use super::{InitialSync, MAKE};

/// The arguments of `mdadm --create` besides the array and its members.
///
/// # Errors
/// When md has no such array, or `mdadm` no word for it.
pub fn mdadm_arguments(
    layout: &Layout,
    initial: InitialSync,
    consistency: Consistency,
) -> Result<Vec<String>, EngineError> {
    layout
        .check()
        .map_err(|error| EngineError::new(EngineErrorKind::Config, MAKE, error.to_string()))?;
    if layout.inner.is_some() {
        return Err(no_word(&layout.to_string(), "arrays over arrays are not made here yet"));
    }
    let kib = layout.chunk.bytes() / 1024;
    let chunk = format!("--chunk={kib}");
    let mut arguments = vec![
        "--run".to_string(),
        "--quiet".into(),
        "--metadata=1.2".into(),
        "--homehost=any".into(),
        "--name=raidlab".into(),
        format!("--raid-devices={}", layout.members),
    ];
    let md = layout.level.md_name().ok_or_else(|| no_word(layout.level.name(), "md has none"))?;
    arguments.push(format!("--level={md}"));
    let own: Vec<String> = match layout.level.redundancy() {
        Redundancy::None if !layout.level.has_chunks() => vec!["--force".into()],
        Redundancy::None => {
            vec![format!("--layout={}", layout.zones.name()), chunk, "--force".into()]
        }
        Redundancy::Mirror => vec![],
        Redundancy::Parity(_) if layout.level.rotations().is_empty() => vec![chunk],
        Redundancy::Parity(_) => vec![format!("--layout={}", layout.rotation.name()), chunk],
        Redundancy::Copies => vec![raid10(layout)?, chunk],
    };
    let has_chunk = layout.level.has_chunks();
    if has_chunk && (kib < 4 || !layout.chunk.bytes().is_multiple_of(1024)) {
        return Err(no_word("this chunk", "md takes whole KiB from 4 KiB on"));
    }
    arguments.extend(own);
    if layout.level.is_redundant() {
        arguments.extend(consistency_arguments(consistency));
        if initial == InitialSync::AssumeClean {
            arguments.push("--assume-clean".into());
        }
    }
    Ok(arguments)
}

/// How md is to keep redundancy consistent. Of a journal the caller names the device (`--write-journal`).
fn consistency_arguments(consistency: Consistency) -> Vec<String> {
    match consistency {
        // A bitmap would be one more thing that large arrays have and small ones do not.
        Consistency::None | Consistency::Resync => vec!["--bitmap=none".into()],
        Consistency::Bitmap { chunk } => {
            vec!["--bitmap=internal".into(), format!("--bitmap-chunk={}", chunk.bytes() / 1024)]
        }
        Consistency::PartialParity { .. } => vec!["--consistency-policy=ppl".into()],
        Consistency::Journal { .. } => vec![],
    }
}

fn raid10(layout: &Layout) -> Result<String, EngineError> {
    if layout.far_sets != 0 || (layout.near > 1 && layout.far > 1) {
        return Err(no_word(
            "near and far copies together, or far sets",
            "give one of near, far, offset",
        ));
    }
    let (kind, copies) = match (layout.far, layout.offset) {
        (1, _) => ('n', layout.near),
        (far, true) => ('o', far),
        (far, false) => ('f', far),
    };
    Ok(format!("--layout={kind}{copies}"))
}

fn no_word(what: &str, why: &str) -> EngineError {
    let reason = format!("mdadm cannot make {what}: {why}");
    EngineError::new(EngineErrorKind::NotSupported, MAKE, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_core::{Level, Rotation, Sectors};

    fn told(layout: &Layout) -> String {
        mdadm_arguments(layout, InitialSync::AssumeClean, Consistency::None).unwrap().join(" ")
    }

    #[test]
    fn layouts_are_told_in_the_words_of_mdadm() {
        let raid5 = Layout::new(Level::Raid5, 4).with_chunk(Sectors(128));
        let words = told(&raid5.clone().with_rotation(Rotation::RightAsymmetric));
        for word in ["--level=5", "--layout=right-asymmetric", "--chunk=64", "--raid-devices=4"] {
            assert!(words.contains(word), "{words}");
        }
        assert!(words.contains("--assume-clean") && words.contains("--bitmap=none"));
        let waited =
            mdadm_arguments(&raid5, InitialSync::Wait, Consistency::None).unwrap().join(" ");
        assert!(!waited.contains("--assume-clean"));
        let ten = Layout::new(Level::Raid10, 4);
        assert!(told(&ten).contains("--layout=n2"));
        assert!(told(&ten.clone().with_far(2)).contains("--layout=f2"));
        assert!(told(&ten.with_far(2).with_offset(true)).contains("--layout=o2"));
        let zero = told(&Layout::new(Level::Raid0, 2));
        assert!(!zero.contains("--bitmap") && !zero.contains("--assume-clean"));
    }

    #[test]
    fn what_md_does_not_have_is_refused() {
        let refused = |layout: &Layout| {
            mdadm_arguments(layout, InitialSync::Wait, Consistency::None).unwrap_err().kind()
        };
        assert_eq!(refused(&Layout::new(Level::Raid3, 3)), EngineErrorKind::NotSupported);
        let small = Layout::new(Level::Raid0, 2).with_chunk(Sectors(4));
        assert_eq!(refused(&small), EngineErrorKind::NotSupported);
        assert_eq!(refused(&Layout::new(Level::Raid5, 2)), EngineErrorKind::Config);
    }
}
