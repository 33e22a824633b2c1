//! How samples are written down: numbers to their last bit, and none that JSON has no word for.

use raidlab_core::MemberTotals;
use serde::ser::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number that is infinite or none would come back as nothing.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands in references")]
pub(crate) fn finite<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    check(*value)?;
    to.serialize_f64(*value)
}

/// The same where there may be none.
pub(crate) fn number<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    value.map_or(Ok(()), check)?;
    value.serialize(to)
}

/// The same of several.
pub(crate) fn list<S: Serializer>(values: &[Option<f64>], to: S) -> Result<S::Ok, S::Error> {
    values.iter().flatten().try_for_each(|value| check(*value))?;
    values.serialize(to)
}

/// The same with a name.
pub(crate) fn named<S: Serializer>(
    value: &Option<(String, f64)>,
    to: S,
) -> Result<S::Ok, S::Error> {
    value.as_ref().map_or(Ok(()), |(_, value)| check(*value))?;
    value.serialize(to)
}

/// The same of several with names.
pub(crate) fn all_named<S: Serializer>(values: &[(String, f64)], to: S) -> Result<S::Ok, S::Error> {
    values.iter().try_for_each(|(_, value)| check(*value))?;
    values.serialize(to)
}

fn check<E: Error>(value: f64) -> Result<(), E> {
    if value.is_finite() {
        return Ok(());
    }
    Err(E::custom(format!("a sample has the value {value}; samples must be finite numbers")))
}

/// Nanoseconds as a whole number.
pub(crate) mod nanos {
    use raidlab_core::Nanos;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands in references")]
    pub(crate) fn serialize<S: Serializer>(value: &Nanos, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(value.0)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Nanos, D::Error> {
        u64::deserialize(from).map(Nanos)
    }
}

/// What the members did, field by field.
#[derive(Serialize, Deserialize)]
struct Totals {
    reads: u64,
    writes: u64,
    bytes_read: u64,
    bytes_written: u64,
}

/// What the members did; null where nothing counts it.
pub(crate) mod totals {
    use super::{Deserialize, Deserializer, MemberTotals, Serialize, Serializer, Totals};

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<MemberTotals>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let fields = |all: &MemberTotals| {
            let MemberTotals { reads, writes, bytes_read, bytes_written } = *all;
            Totals { reads, writes, bytes_read, bytes_written }
        };
        value.as_ref().map(fields).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<MemberTotals>, D::Error> {
        let all = Option::<Totals>::deserialize(from)?;
        Ok(all.map(|all| {
            let Totals { reads, writes, bytes_read, bytes_written } = all;
            MemberTotals { reads, writes, bytes_read, bytes_written }
        }))
    }
}
