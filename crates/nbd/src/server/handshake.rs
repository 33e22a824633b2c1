//! From the greeting until an export has been chosen.

use super::options::{Queries, Refusal, Wanted};
use crate::export::{Context, Export, Framing, Violation};
use crate::request::Taken;
use crate::wire::{
    FIXED_NEWSTYLE, GREETING, NO_ZEROES, OPTION, OPTION_HEADER, OPTION_REPLY, Put, Reader, ZEROES,
    cut, info, option, reply, text,
};

/// What comes with an option is at most so long; longer ones are passed over and refused.
const LONGEST_OPTION: usize = 1 << 16;

/// What is served.
pub trait Exports {
    /// The export of that name; the empty one is asked for by clients that were told none.
    fn find(&self, name: &str) -> Option<Export>;

    /// Names and descriptions, for clients that ask; none if nobody is to know.
    fn list(&self) -> Vec<(String, String)>;
}

/// The first is what clients get that ask for none.
impl Exports for [Export] {
    fn find(&self, name: &str) -> Option<Export> {
        let named = self.iter().find(|export| export.name == name);
        named.or_else(|| self.first().filter(|_| name.is_empty())).cloned()
    }

    fn list(&self) -> Vec<(String, String)> {
        self.iter().map(|export| (export.name.clone(), export.description.clone())).collect()
    }
}

/// Whether connections are encrypted. There is no mode in which a client may choose: it could be made to choose
/// wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Never: who asks for it is refused.
    None,
    /// Nothing is said of any export before.
    Required,
}

/// What comes after some bytes of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// What was put out is sent as it is; then TLS begins, and what comes out of it is handed in.
    StartTls,
    /// What was put out is sent; then requests come ([`Session`](super::Session)).
    Done(Box<Negotiated>),
    /// What was put out is sent, then the connection is closed: the client wishes it.
    Close,
}

/// What was agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// What the client chose.
    pub export: Export,
    /// How requests and replies look.
    pub framing: Framing,
    /// What the client wants to know of blocks.
    pub contexts: Vec<Context>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The client's flags are awaited.
    Flags,
    Options,
    /// So much of an option that is too long is still to come.
    Skip {
        option: u32,
        left: u32,
    },
    /// Nothing is taken any more.
    Over,
}

/// A connection from its beginning until an export has been chosen.
///
/// It holds no bytes of the client: what is not taken is handed in again with more behind it. A message is at most
/// [`Handshake::LONGEST`] bytes.
#[derive(Debug)]
pub struct Handshake {
    state: State,
    tls: Tls,
    is_secured: bool,
    /// The client spoke of no zeroes after `EXPORT_NAME`.
    no_zeroes: bool,
    framing: Framing,
    /// The export that contexts were asked of, and these.
    contexts: Option<(String, Vec<Context>)>,
}

impl Handshake {
    /// The longest message of a client, in bytes.
    pub const LONGEST: usize = OPTION_HEADER + LONGEST_OPTION;

    /// Begins: what is put out is sent first.
    pub fn new(tls: Tls, out: &mut Vec<u8>) -> Self {
        out.put_u64(GREETING);
        out.put_u64(OPTION);
        out.put_u16(FIXED_NEWSTYLE | NO_ZEROES);
        Self {
            state: State::Flags,
            tls,
            is_secured: false,
            no_zeroes: false,
            framing: Framing::Simple,
            contexts: None,
        }
    }

    /// Takes one message, or what there is of one that is passed over; answers are appended to `out`.
    ///
    /// # Errors
    ///
    /// The connection must be dropped. What was put out until then may be sent.
    pub fn receive(
        &mut self,
        input: &[u8],
        exports: &(impl Exports + ?Sized),
        out: &mut Vec<u8>,
    ) -> Result<Taken<Step>, Violation> {
        match self.state {
            State::Flags => self.flags(input),
            State::Options => self.option(input, exports, out),
            State::Skip { option, left } => Ok(self.skip(option, left, input, out)),
            State::Over => Ok(Taken::NOTHING),
        }
    }

    fn flags(&mut self, input: &[u8]) -> Result<Taken<Step>, Violation> {
        let Some(flags) = Reader::new(input).u32() else { return Ok(Taken::NOTHING) };
        let known = u32::from(FIXED_NEWSTYLE | NO_ZEROES);
        if flags & !known != 0 {
            return Err(Violation::new(format!(
                "client flags {flags:#x}, of which {known:#x} are known"
            )));
        }
        self.no_zeroes = flags & u32::from(NO_ZEROES) != 0;
        self.state = State::Options;
        Ok(Taken::bytes(4))
    }

    fn option(
        &mut self,
        input: &[u8],
        exports: &(impl Exports + ?Sized),
        out: &mut Vec<u8>,
    ) -> Result<Taken<Step>, Violation> {
        let mut header = Reader::new(input);
        let (Some(magic), Some(option), Some(len)) = (header.u64(), header.u32(), header.u32())
        else {
            return Ok(Taken::NOTHING);
        };
        if magic != OPTION {
            return Err(Violation::new(format!("{magic:#018x} where an option begins")));
        }
        if len as usize > LONGEST_OPTION {
            self.state = State::Skip { option, left: len };
            return Ok(Taken::bytes(OPTION_HEADER));
        }
        let Some(data) = header.bytes(len as usize) else { return Ok(Taken::NOTHING) };
        let bytes = OPTION_HEADER + data.len();
        let what = self.answer(option, data, exports, out)?;
        if what.is_some() {
            self.state = State::Over;
        }
        if what == Some(Step::StartTls) {
            // Whatever came before TLS, somebody else may have put there: it is thrown away, as is what was agreed
            // on.
            self.state = State::Options;
            self.is_secured = true;
            self.framing = Framing::Simple;
            self.contexts = None;
            return Ok(Taken { bytes: input.len(), what });
        }
        Ok(Taken { bytes, what })
    }

    fn skip(&mut self, option: u32, left: u32, input: &[u8], out: &mut Vec<u8>) -> Taken<Step> {
        let now = u32::try_from(input.len()).unwrap_or(u32::MAX).min(left);
        self.state = State::Skip { option, left: left - now };
        if left == now {
            self.state = State::Options;
            refuse(out, option, reply::TOO_BIG, "longer than any option need be");
        }
        Taken::bytes(now as usize)
    }

    fn answer(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &(impl Exports + ?Sized),
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, Violation> {
        if self.tls == Tls::Required && !self.is_secured {
            return self.before_tls(option, data, out);
        }
        match option {
            option::EXPORT_NAME => return self.export_name(data, exports, out).map(Some),
            option::ABORT => {
                acknowledge(out, option);
                return Ok(Some(Step::Close));
            }
            option::LIST if data.is_empty() => list(exports, out),
            option::STARTTLS if self.is_secured => {
                refuse(out, option, reply::INVALID, "TLS is used already");
            }
            option::STARTTLS => refuse(out, option, reply::UNSUPPORTED, "served without TLS"),
            option::INFO | option::GO => return Ok(self.info(option, data, exports, out)),
            option::STRUCTURED_REPLY if data.is_empty() => self.structured(out),
            option::EXTENDED_HEADERS if data.is_empty() => {
                self.framing = Framing::Extended;
                acknowledge(out, option);
            }
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                self.meta_contexts(option, data, exports, out);
            }
            option::LIST | option::STRUCTURED_REPLY | option::EXTENDED_HEADERS => {
                refuse(out, option, reply::INVALID, "nothing may come with this option");
            }
            _ => refuse(out, option, reply::UNSUPPORTED, "an option that is not known"),
        }
        Ok(None)
    }

    /// Nothing but TLS and an end are to be had.
    fn before_tls(
        &self,
        option: u32,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Step>, Violation> {
        match option {
            option::STARTTLS if data.is_empty() => {
                acknowledge(out, option);
                return Ok(Some(Step::StartTls));
            }
            option::STARTTLS => {
                refuse(out, option, reply::INVALID, "nothing may come with this option");
            }
            option::ABORT => {
                acknowledge(out, option);
                return Ok(Some(Step::Close));
            }
            // It has no answer that says so.
            option::EXPORT_NAME => {
                return Err(Violation::new(
                    "an export was asked for without TLS, which is required",
                ));
            }
            _ => refuse(out, option, reply::TLS_REQUIRED, "this server requires TLS"),
        }
        Ok(None)
    }

    fn structured(&mut self, out: &mut Vec<u8>) {
        let option = option::STRUCTURED_REPLY;
        if self.framing == Framing::Extended {
            let why = "extended headers are used already";
            refuse(out, option, reply::EXTENDED_HEADERS_REQUIRED, why);
            return;
        }
        self.framing = Framing::Structured;
        acknowledge(out, option);
    }

    /// Ends the handshake without a way to refuse.
    fn export_name(
        &mut self,
        data: &[u8],
        exports: &(impl Exports + ?Sized),
        out: &mut Vec<u8>,
    ) -> Result<Step, Violation> {
        let export = text(data).and_then(|name| exports.find(name));
        let export =
            export.ok_or_else(|| Violation::new("an export that is not there was chosen"))?;
        if self.framing == Framing::Extended {
            return Err(Violation::new("NBD_OPT_EXPORT_NAME after extended headers"));
        }
        out.put_u64(export.size);
        out.put_u16(export.abilities.flags(self.framing >= Framing::Structured));
        if !self.no_zeroes {
            out.extend_from_slice(&[0; ZEROES]);
        }
        let name = String::from_utf8_lossy(data).into_owned();
        Ok(self.done(&name, export))
    }

    fn done(&mut self, name: &str, export: Export) -> Step {
        let contexts = self.contexts.take().filter(|(of, _)| of == name);
        let contexts = contexts.map(|(_, contexts)| contexts).unwrap_or_default();
        Step::Done(Box::new(Negotiated { export, framing: self.framing, contexts }))
    }

    fn info(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &(impl Exports + ?Sized),
        out: &mut Vec<u8>,
    ) -> Option<Step> {
        let Some(wanted) = Wanted::parse(data) else {
            refuse(out, option, reply::INVALID, "not a name and what is wanted of it");
            return None;
        };
        let Some(export) = exports.find(wanted.name) else {
            refuse(out, option, reply::UNKNOWN, "there is no export of that name");
            return None;
        };
        let flags = export.abilities.flags(self.framing >= Framing::Structured);
        let put = |out: &mut Vec<u8>, kind: u16, payload: &[u8]| {
            option_reply(out, option, reply::INFO, 2 + payload.len());
            out.put_u16(kind);
            out.extend_from_slice(payload);
        };
        let asks = |kind: u16| wanted.infos.contains(&kind);
        let mut bytes = Vec::new();
        bytes.put_u64(export.size);
        bytes.put_u16(flags);
        put(out, info::EXPORT, &bytes);
        if asks(info::NAME) {
            put(out, info::NAME, cut(&export.name).as_bytes());
        }
        if asks(info::DESCRIPTION) && !export.description.is_empty() {
            put(out, info::DESCRIPTION, cut(&export.description).as_bytes());
        }
        if asks(info::BLOCK_SIZE) || !export.blocks.are_usual() {
            let blocks = export.blocks;
            bytes.clear();
            let sizes = [blocks.minimum, blocks.preferred, blocks.maximum];
            sizes.into_iter().for_each(|size| bytes.put_u32(size));
            put(out, info::BLOCK_SIZE, &bytes);
        }
        acknowledge(out, option);
        (option == option::GO).then(|| self.done(wanted.name, export))
    }

    fn meta_contexts(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &(impl Exports + ?Sized),
        out: &mut Vec<u8>,
    ) {
        let listing = option == option::LIST_META_CONTEXT;
        if !listing {
            // Also when this fails.
            self.contexts = None;
        }
        let queries = match Queries::parse(data) {
            Ok(queries) => queries,
            Err(Refusal::Invalid) => {
                refuse(out, option, reply::INVALID, "not a name and queries");
                return;
            }
            Err(Refusal::TooMany) => {
                refuse(out, option, reply::TOO_BIG, "too many queries");
                return;
            }
        };
        if self.framing == Framing::Simple {
            refuse(out, option, reply::INVALID, "structured replies come first");
            return;
        }
        let Some(export) = exports.find(queries.name) else {
            refuse(out, option, reply::UNKNOWN, "there is no export of that name");
            return;
        };
        let mut chosen = Vec::new();
        for (id, name) in queries.choose(&export.contexts, listing) {
            option_reply(out, option, reply::META_CONTEXT, 4 + name.len());
            out.put_u32(if listing { 0 } else { id });
            out.extend_from_slice(name.as_bytes());
            chosen.push(Context { id, name: name.clone() });
        }
        acknowledge(out, option);
        if !listing {
            self.contexts = Some((queries.name.to_owned(), chosen));
        }
    }
}

fn list(exports: &(impl Exports + ?Sized), out: &mut Vec<u8>) {
    for (name, description) in exports.list() {
        let (name, description) = (cut(&name), cut(&description));
        option_reply(out, option::LIST, reply::SERVER, 4 + name.len() + description.len());
        out.put_string(name);
        out.extend_from_slice(description.as_bytes());
    }
    acknowledge(out, option::LIST);
}

fn option_reply(out: &mut Vec<u8>, option: u32, kind: u32, len: usize) {
    out.put_u64(OPTION_REPLY);
    out.put_u32(option);
    out.put_u32(kind);
    out.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
}

fn acknowledge(out: &mut Vec<u8>, option: u32) {
    option_reply(out, option, reply::ACK, 0);
}

fn refuse(out: &mut Vec<u8>, option: u32, kind: u32, why: &str) {
    option_reply(out, option, kind, why.len());
    out.extend_from_slice(why.as_bytes());
}
