//! placeholder
pub(crate) mod devices;
