//! Rows as Apache Parquet, with the feature `parquet`: the table of CSV in columns with types.
//!
//! Text is UTF-8, whole numbers are unsigned 64-bit integers, others doubles; what is not there is null. The column
//! of a swept key has numbers only if all its values are numbers.

#[cfg(feature = "parquet")]
pub use file::ParquetFile;
#[cfg(not(feature = "parquet"))]
pub use missing::ParquetFile;

use crate::error::SweepError;
use crate::row::ReadRow;
use crate::table::{Kind, columns};

/// Which columns there are, by having seen all rows.
#[derive(Clone, Debug)]
pub struct ParquetColumns(Vec<(String, Kind)>);

impl ParquetColumns {
    /// Of no rows yet.
    ///
    /// # Errors
    /// When this was built without the feature `parquet`.
    pub fn new() -> Result<Self, SweepError> {
        if cfg!(feature = "parquet") {
            return Ok(Self(Vec::new()));
        }
        let what = "this raidlab was built without Parquet: build it with `--features parquet`, or write CSV";
        Err(SweepError::Other(what.to_owned()))
    }

    /// Looks at a row.
    ///
    /// # Errors
    /// When the line is no row.
    pub fn look(&mut self, line: &[u8]) -> Result<(), SweepError> {
        let seen = columns(&ReadRow::parse(line)?);
        if self.0.is_empty() {
            self.0 = seen;
            return Ok(());
        }
        for ((_, kind), (_, other)) in self.0.iter_mut().zip(seen) {
            *kind = match (*kind, other) {
                (one, other) if one == other => one,
                (Kind::Text, _) | (_, Kind::Text) => Kind::Text,
                _ => Kind::Real,
            };
        }
        Ok(())
    }
}

#[cfg(feature = "parquet")]
mod file {
    use std::fmt::Display;
    use std::io::Write;
    use std::sync::Arc;

    use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
    use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
    use parquet::errors::ParquetError;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::types::Type;

    use super::ParquetColumns;
    use crate::error::SweepError;
    use crate::row::ReadRow;
    use crate::table::{Field, Kind, lines};

    /// So many lines are kept until their columns are written.
    const GROUP: usize = 65_536;

    /// A column's values of the lines that are kept, and which lines have one.
    struct Column {
        values: Values,
        is_there: Vec<i16>,
    }

    enum Values {
        Text(Vec<ByteArray>),
        Whole(Vec<i64>),
        Real(Vec<f64>),
    }

    impl Column {
        fn new(kind: Kind) -> Self {
            let values = match kind {
                Kind::Text => Values::Text(Vec::new()),
                Kind::Whole => Values::Whole(Vec::new()),
                Kind::Real => Values::Real(Vec::new()),
            };
            Self { values, is_there: Vec::new() }
        }

        /// Adds a field; false when it is of another kind.
        fn push(&mut self, field: &Field<'_>) -> bool {
            let is_there = !matches!(field, Field::Nothing);
            self.is_there.push(i16::from(is_there));
            match (&mut self.values, field) {
                (_, Field::Nothing) => {}
                (Values::Text(all), field) => all.push(ByteArray::from(field.text().into_bytes())),
                // The type says that the 64 bits have no sign.
                (Values::Whole(all), Field::Whole(number)) => all.push(number.cast_signed()),
                (Values::Real(all), Field::Real(number)) => all.push(*number),
                (Values::Real(all), Field::Whole(number)) => all.push(*number as f64),
                _ => return false,
            }
            true
        }

        /// Writes what is kept as the next column.
        fn write<W: Write + Send>(
            &mut self,
            group: &mut SerializedRowGroupWriter<'_, W>,
        ) -> Result<(), ParquetError> {
            match &mut self.values {
                Values::Text(all) => put::<ByteArrayType, W>(group, all, &self.is_there)?,
                Values::Whole(all) => put::<Int64Type, W>(group, all, &self.is_there)?,
                Values::Real(all) => put::<DoubleType, W>(group, all, &self.is_there)?,
            }
            self.is_there.clear();
            Ok(())
        }
    }

    fn put<T: DataType, W: Write + Send>(
        group: &mut SerializedRowGroupWriter<'_, W>,
        values: &mut Vec<T::T>,
        is_there: &[i16],
    ) -> Result<(), ParquetError> {
        let next = group.next_column()?;
        let mut column = next.ok_or_else(|| ParquetError::General("a column too many".into()))?;
        column.typed::<T>().write_batch(values, Some(is_there), None)?;
        values.clear();
        column.close()
    }

    fn column_type((name, kind): &(String, Kind)) -> Result<Arc<Type>, ParquetError> {
        let (physical, logical) = match kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Whole => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Kind::Real => (Physical::DOUBLE, None),
        };
        let column = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        column.build().map(Arc::new)
    }

    fn failed(error: impl Display) -> SweepError {
        SweepError::Other(format!("cannot write the Parquet file: {error}"))
    }

    /// A Parquet file that is being written.
    pub struct ParquetFile<W: Write + Send> {
        file: SerializedFileWriter<W>,
        columns: Vec<Column>,
    }

    impl<W: Write + Send> ParquetFile<W> {
        /// Begins a file with these columns.
        ///
        /// # Errors
        /// When it cannot be written.
        pub fn new(to: W, columns: &ParquetColumns) -> Result<Self, SweepError> {
            let types: Result<Vec<_>, _> = columns.0.iter().map(column_type).collect();
            let schema = types.and_then(|types| {
                Type::group_type_builder("rows").with_fields(types).build().map(Arc::new)
            });
            let properties = WriterProperties::builder()
                .set_compression(Compression::GZIP(parquet::basic::GzipLevel::default()))
                .set_created_by(concat!("raidlab ", env!("CARGO_PKG_VERSION")).to_owned());
            let file = schema.and_then(|schema| {
                SerializedFileWriter::new(to, schema, Arc::new(properties.build()))
            });
            let columns = columns.0.iter().map(|(_, kind)| Column::new(*kind)).collect();
            Ok(Self { file: file.map_err(failed)?, columns })
        }

        /// Adds the lines of a row.
        ///
        /// # Errors
        /// When the line is no row, or the file cannot be written.
        pub fn add(&mut self, line: &[u8]) -> Result<(), SweepError> {
            let row = ReadRow::parse(line)?;
            for fields in lines(&row) {
                let mut columns = self.columns.iter_mut().zip(&fields);
                if !columns.all(|(column, field)| column.push(field)) {
                    return Err(failed("a row has changed since it was looked at"));
                }
            }
            let kept = self.columns.first().map_or(0, |column| column.is_there.len());
            if kept >= GROUP { self.write() } else { Ok(()) }
        }

        fn write(&mut self) -> Result<(), SweepError> {
            let mut group = self.file.next_row_group().map_err(failed)?;
            self.columns.iter_mut().try_for_each(|one| one.write(&mut group)).map_err(failed)?;
            group.close().map(|_| ()).map_err(failed)
        }

        /// Writes what is kept, and the file's end.
        ///
        /// # Errors
        /// When it cannot be written.
        pub fn finish(mut self) -> Result<(), SweepError> {
            if self.columns.first().is_some_and(|column| !column.is_there.is_empty()) {
                self.write()?;
            }
            self.file.close().map(|_| ()).map_err(failed)
        }
    }
}

#[cfg(not(feature = "parquet"))]
mod missing {
    use std::convert::Infallible;
    use std::io::Write;
    use std::marker::PhantomData;

    use super::ParquetColumns;
    use crate::error::SweepError;

    /// There is none.
    pub struct ParquetFile<W>(Infallible, PhantomData<W>);

    impl<W: Write + Send> ParquetFile<W> {
        /// Says that this was built without.
        ///
        /// # Errors
        /// Always.
        pub fn new(_to: W, _columns: &ParquetColumns) -> Result<Self, SweepError> {
            ParquetColumns::new().and_then(|_| Err(SweepError::Other("built without".to_owned())))
        }

        /// Cannot be called.
        ///
        /// # Errors
        /// None.
        pub fn add(&mut self, _line: &[u8]) -> Result<(), SweepError> {
            match self.0 {}
        }

        /// Cannot be called.
        ///
        /// # Errors
        /// None.
        pub fn finish(self) -> Result<(), SweepError> {
            match self.0 {}
        }
    }
}
