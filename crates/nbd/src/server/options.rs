//! What clients send with options.

use crate::wire::Reader;

/// More queries or pieces of information are asked for than any client has use for.
const MOST: usize = 64;

/// Of `INFO` and `GO`.
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    pub(super) infos: Vec<u16>,
}

impl<'a> Wanted<'a> {
    /// `None` unless it is exactly that.
    pub(super) fn parse(data: &'a [u8]) -> Option<Self> {
        let mut data = Reader::new(data);
        let name = data.string()?;
        let count = data.u16()?;
        let infos: Option<Vec<u16>> = (0..count).map(|_| data.u16()).collect();
        data.rest().is_empty().then_some(Self { name, infos: infos? })
    }
}

/// Of `LIST_META_CONTEXT` and `SET_META_CONTEXT`.
pub(super) struct Queries<'a> {
    pub(super) name: &'a str,
    pub(super) queries: Vec<&'a str>,
}

/// Why queries are not answered.
pub(super) enum Refusal {
    Invalid,
    TooMany,
}

impl<'a> Queries<'a> {
    pub(super) fn parse(data: &'a [u8]) -> Result<Self, Refusal> {
        let mut data = Reader::new(data);
        let head = data.string().zip(data.u32());
        let (name, count) = head.ok_or(Refusal::Invalid)?;
        let mut queries = Vec::new();
        for _ in 0..count {
            if queries.len() == MOST {
                return Err(Refusal::TooMany);
            }
            queries.push(data.string().ok_or(Refusal::Invalid)?);
        }
        if data.rest().is_empty() { Ok(Self { name, queries }) } else { Err(Refusal::Invalid) }
    }

    /// What of `contexts` is asked for: by its name, when listing also by its namespace (`base:`); all of them when
    /// listing without a query.
    pub(super) fn choose<'c>(
        &self,
        contexts: &'c [String],
        listing: bool,
    ) -> impl Iterator<Item = (u32, &'c String)> {
        let all = listing && self.queries.is_empty();
        let is_wanted = move |context: &str| {
            all || self.queries.iter().any(|query| {
                let namespace = listing && query.ends_with(':') && context.starts_with(query);
                *query == context || namespace
            })
        };
        let numbered = (1..).zip(contexts);
        numbered.filter(move |(_, context)| is_wanted(context))
    }
}
