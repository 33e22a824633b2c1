//! Reads TOML files key by key: every error has the file, the line and the key, and says what would be right or
//! which key was probably meant.
//!
//! It is for files that people write: studies and drives. It knows the form of tables, texts, numbers, sizes and
//! lists, not what any key means. [`Source`] is the text of a file and [`Table`] a table in it. A mistake is a
//! [`Wrong`], which each reader turns into an error of its own ([`FileError`]).
//!
//! Units: lines count from 1; sizes are bytes.
//!
//! ```
//! use raidlab_toml_file::{FileError, Source, Table, Wrong};
//!
//! #[derive(Debug)]
//! struct Error(String);
//!
//! impl FileError for Error {
//!     fn of(wrong: Wrong) -> Self {
//!         Self(format!("{}:{}: {}: {}", wrong.path, wrong.line.unwrap_or(0), wrong.key, wrong.reason))
//!     }
//! }
//!
//! let source = Source { path: "mine.toml", text: "rounds = 6\ntitel = \"Which?\"\n" };
//! let document = source.document::<Error>()?;
//! let table: Table<'_, Error> = Table::root(&source, &document);
//! assert_eq!(table.integer("rounds", 1..=9)?, Some(6));
//! let unknown = table.unknown_keys(&["rounds", "title"]);
//! assert!(unknown[0].0.starts_with("mine.toml:2: titel: unknown key (did you mean `title`?)"));
//! # Ok::<(), Error>(())
//! ```
#![forbid(unsafe_code)]

mod table;

pub use table::{Table, Unit};
pub use toml::Spanned;
pub use toml::de::{DeArray, DeTable, DeValue};

/// What kind of thing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The text is not TOML.
    Syntax,
    /// A key that means nothing here.
    UnknownKey,
    /// A key that must be there is not.
    MissingKey,
    /// A value of another type than the key takes.
    WrongType,
    /// A size or percentage without a number or unit that makes sense.
    WrongUnit,
    /// A value out of range.
    WrongValue,
}

/// What is wrong with a file, and where.
#[derive(Debug)]
pub struct Wrong {
    /// What kind of thing.
    pub fault: Fault,
    /// What the file is called.
    pub path: String,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The key with its table, such as `layouts.chunk`; empty for syntax errors.
    pub key: String,
    /// What is wrong and what would be right.
    pub reason: String,
    /// Why the text is not TOML.
    pub syntax: Option<toml::de::Error>,
}

/// An error of who reads a file.
pub trait FileError: Sized {
    /// It, of what is wrong.
    fn of(wrong: Wrong) -> Self;
}

/// The text of a file and what it is called.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// What errors call it.
    pub path: &'a str,
    /// All of it.
    pub text: &'a str,
}

impl<'a> Source<'a> {
    /// The file as TOML.
    ///
    /// # Errors
    /// [`Fault::Syntax`].
    pub fn document<E: FileError>(&self) -> Result<Spanned<DeTable<'a>>, E> {
        DeTable::parse(self.text).map_err(|error| {
            let line = error.span().map(|span| self.line(span.start));
            let reason = format!("this is not TOML: {}", error.message());
            let (path, key, syntax) = (self.path.to_owned(), String::new(), Some(error));
            E::of(Wrong { fault: Fault::Syntax, path, line, key, reason, syntax })
        })
    }

    /// The line of a byte of the text, from 1.
    pub fn line(&self, at: usize) -> u32 {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        1 + before.iter().filter(|byte| **byte == b'\n').count() as u32
    }
}
