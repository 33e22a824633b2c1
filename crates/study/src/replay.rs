//! The published studies that are compiled in, by name.

use crate::error::{StudyError, StudyErrorKind};
use crate::study::Study;
use raidlab_core::suggest::did_you_mean;

/// The studies: name and study file.
pub fn builtin() -> &'static [(&'static str, &'static str)] {
    macro_rules! studies {
        ($($name:literal),* $(,)?) => {
            &[$((
                $name,
                include_str!(concat!("../../../studies/replay/", $name, ".toml")),
            )),*]
        };
    }
    studies!["pata-2005", "ite8212-2006", "freebsd-2007", "sas-2008", "sata-2018"]
}

/// What the study file of a name is called in errors and documents.
pub fn path(name: &str) -> String {
    format!("studies/replay/{name}.toml")
}

/// The study of a name.
///
/// # Errors
/// [`StudyErrorKind::UnknownName`] with the names there are, or what is wrong with its file.
pub fn load(name: &str) -> Result<Study, StudyError> {
    let Some((_, text)) = builtin().iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = builtin().iter().map(|(name, _)| *name).collect();
        let (hint, known) = (did_you_mean(name, &known), known.join(", "));
        let reason = format!("is no published study{hint}; known: {known}");
        return Err(StudyError::new(StudyErrorKind::UnknownName, name, None, "", reason));
    };
    crate::parse(text, &path(name))
}
