//! From the server's greeting until an export has been chosen, or all were listed.

use std::fmt;

use crate::export::{Abilities, BlockSizes, Context, Framing, Violation};
use crate::request::Taken;
use crate::wire::{
    FIXED_NEWSTYLE, GREETING, NO_ZEROES, OPTION, OPTION_REPLY, OPTION_REPLY_HEADER, Put, Reader,
    ZEROES, flag, info, option, reply,
};

/// A reply to an option is at most so long.
const LONGEST_REPLY: usize = 1 << 16;
/// So many replies of one kind, such as exports of a list, are taken.
const MOST_REPLIES: usize = 1 << 16;

/// What a client wants of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name; `None`: a list of all.
    pub export: Option<String>,
    /// The best framing to ask for; servers that do not have it get the next.
    pub framing: Framing,
    /// What to learn of blocks; needs more than simple framing.
    pub contexts: Vec<String>,
    /// Nothing is said or asked before TLS; a server without it is given up.
    pub tls: bool,
}

/// What comes after some bytes of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// TLS begins, once what was put out is sent. [`Handshake::secured`] goes on from there.
    StartTls,
    /// Requests can be sent.
    Done(Box<Chosen>),
    /// What the server has; the connection is closed once what was put out is sent.
    List(Vec<Listed>),
}

/// An export of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// As it is asked for.
    pub name: String,
    /// For people; may be empty.
    pub description: String,
}

/// What was agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// In bytes.
    pub size: u64,
    /// What else it can do.
    pub abilities: Abilities,
    /// As the server said, or what every server takes.
    pub blocks: BlockSizes,
    /// The best that both have.
    pub framing: Framing,
    /// Reads can be asked for in one piece.
    pub whole_reads: bool,
    /// Of those wanted, what the server has.
    pub contexts: Vec<Context>,
}

/// Why no export was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The server does not keep to the protocol.
    Protocol(Violation),
    /// It will not: what was asked for, and what it said.
    Refused {
        /// What it refused.
        what: &'static str,
        /// For people.
        why: String,
    },
}

impl From<Violation> for HandshakeError {
    fn from(violation: Violation) -> Self {
        Self::Protocol(violation)
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol(violation) => violation.fmt(f),
            Self::Refused { what, why } => write!(f, "the server refused {what}: {why}"),
        }
    }
}

impl std::error::Error for HandshakeError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Greeting,
    /// An answer to this option is awaited.
    Asked(u32),
    /// TLS is being set up.
    Tls,
    /// The answer to `EXPORT_NAME`, which has another form.
    ExportName,
    Over,
}

/// A connection from its beginning until requests can be sent.
#[derive(Debug)]
pub struct Handshake {
    wanted: Wanted,
    state: State,
    no_zeroes: bool,
    chosen: Chosen,
    size_is_known: bool,
    list: Vec<Listed>,
}

type Result<T> = std::result::Result<T, HandshakeError>;

impl Handshake {
    /// The longest message of a server, in bytes.
    pub const LONGEST: usize = OPTION_REPLY_HEADER + LONGEST_REPLY;

    /// The server speaks first.
    #[must_use]
    pub fn new(wanted: Wanted) -> Self {
        let chosen = Chosen {
            size: 0,
            abilities: Abilities::default(),
            blocks: BlockSizes::default(),
            framing: Framing::Simple,
            whole_reads: false,
            contexts: Vec::new(),
        };
        let state = State::Greeting;
        Self { wanted, state, no_zeroes: false, chosen, size_is_known: false, list: Vec::new() }
    }

    /// TLS is set up: goes on within it.
    pub fn secured(&mut self, out: &mut Vec<u8>) {
        if self.state == State::Tls {
            self.first_option(out);
        }
    }

    /// Takes one message; what is to be sent is appended to `out`.
    ///
    /// # Errors
    ///
    /// The connection must be dropped once what was put out is sent.
    pub fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Taken<Step>> {
        match self.state {
            State::Greeting => self.greeting(input, out),
            State::Asked(option) => self.reply(option, input, out),
            State::ExportName => self.export_name(input),
            State::Tls | State::Over => Ok(Taken::NOTHING),
        }
    }

    fn greeting(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Taken<Step>> {
        let mut reader = Reader::new(input);
        let Some(magic) = reader.u64() else { return Ok(Taken::NOTHING) };
        if magic != GREETING {
            return Err(Violation::new(format!("{magic:#018x} where NBDMAGIC is")).into());
        }
        let Some(style) = reader.u64() else { return Ok(Taken::NOTHING) };
        if style != OPTION {
            let what = "newstyle negotiation";
            return Err(refused(what, "it offers its only export unasked, as servers before 2011"));
        }
        let Some(flags) = reader.u16() else { return Ok(Taken::NOTHING) };
        let is_fixed = flags & FIXED_NEWSTYLE != 0;
        self.no_zeroes = flags & NO_ZEROES != 0;
        out.put_u32(u32::from(flags & (FIXED_NEWSTYLE | NO_ZEROES)));
        if is_fixed && self.wanted.tls {
            self.ask(option::STARTTLS, &[], out);
        } else if is_fixed {
            self.first_option(out);
        } else if self.wanted.tls {
            return Err(refused("TLS", "it knows no options"));
        } else {
            match self.wanted.export.clone() {
                Some(name) => self.ask_by_name(&name, out),
                None => return Err(refused("a list of exports", "it knows no options")),
            }
        }
        Ok(Taken::bytes(18))
    }

    fn first_option(&mut self, out: &mut Vec<u8>) {
        match (&self.wanted.export, self.wanted.framing) {
            (None, _) => self.ask(option::LIST, &[], out),
            (_, Framing::Extended) => self.ask(option::EXTENDED_HEADERS, &[], out),
            (_, Framing::Structured) => self.ask(option::STRUCTURED_REPLY, &[], out),
            (_, Framing::Simple) => self.go(out),
        }
    }

    fn ask(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) {
        out.put_u64(OPTION);
        out.put_u32(option);
        out.put_u32(u32::try_from(data.len()).unwrap_or(u32::MAX));
        out.extend_from_slice(data);
        self.state = State::Asked(option);
    }

    fn name(&self) -> String {
        self.wanted.export.clone().unwrap_or_default()
    }

    fn contexts(&mut self, out: &mut Vec<u8>) {
        if self.wanted.contexts.is_empty() {
            return self.go(out);
        }
        let mut data = Vec::new();
        data.put_string(&self.name());
        data.put_u32(u32::try_from(self.wanted.contexts.len()).unwrap_or(u32::MAX));
        self.wanted.contexts.iter().for_each(|context| data.put_string(context));
        self.ask(option::SET_META_CONTEXT, &data, out);
    }

    fn go(&mut self, out: &mut Vec<u8>) {
        let mut data = Vec::new();
        data.put_string(&self.name());
        data.put_u16(1);
        data.put_u16(info::BLOCK_SIZE);
        self.ask(option::GO, &data, out);
    }

    fn ask_by_name(&mut self, name: &str, out: &mut Vec<u8>) {
        self.ask(option::EXPORT_NAME, name.as_bytes(), out);
        self.state = State::ExportName;
    }

    fn export_name(&mut self, input: &[u8]) -> Result<Taken<Step>> {
        let bytes = 10 + if self.no_zeroes { 0 } else { ZEROES };
        if input.len() < bytes {
            return Ok(Taken::NOTHING);
        }
        self.take_export(&mut Reader::new(input));
        Ok(Taken::new(bytes, self.done()))
    }

    /// Size and flags, which `EXPORT_NAME` and `INFO` tell alike.
    fn take_export(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let (size, flags) = (reader.u64()?, reader.u16()?);
        self.chosen.size = size;
        self.chosen.abilities = Abilities::from_flags(flags);
        self.chosen.whole_reads = flags & flag::DF != 0;
        self.size_is_known = true;
        Some(())
    }

    fn done(&mut self) -> Step {
        self.state = State::Over;
        Step::Done(Box::new(self.chosen.clone()))
    }

    fn reply(&mut self, option: u32, input: &[u8], out: &mut Vec<u8>) -> Result<Taken<Step>> {
        let mut header = Reader::new(input);
        let numbers = (header.u64(), header.u32(), header.u32(), header.u32());
        let (Some(magic), Some(to), Some(kind), Some(len)) = numbers else {
            return Ok(Taken::NOTHING);
        };
        if (magic, to) != (OPTION_REPLY, option) {
            let what = format!("{magic:#018x} to {to} where a reply to option {option} begins");
            return Err(Violation::new(what).into());
        }
        if len as usize > LONGEST_REPLY {
            return Err(Violation::new(format!("a reply of {len} bytes to option {option}")).into());
        }
        let Some(data) = header.bytes(len as usize) else { return Ok(Taken::NOTHING) };
        let bytes = OPTION_REPLY_HEADER + data.len();
        let what = match kind {
            reply::ACK => self.acknowledged(option, out)?,
            kind if kind & reply::ERROR != 0 => {
                self.refused(option, kind, data, out)?;
                None
            }
            _ => {
                self.told(kind, data)?;
                None
            }
        };
        Ok(Taken { bytes, what })
    }

    fn acknowledged(&mut self, option: u32, out: &mut Vec<u8>) -> Result<Option<Step>> {
        match option {
            option::STARTTLS => {
                self.state = State::Tls;
                return Ok(Some(Step::StartTls));
            }
            option::EXTENDED_HEADERS | option::STRUCTURED_REPLY => {
                self.chosen.framing = match option {
                    option::EXTENDED_HEADERS => Framing::Extended,
                    _ => Framing::Structured,
                };
                self.contexts(out);
            }
            option::SET_META_CONTEXT => self.go(out),
            option::GO if self.size_is_known => return Ok(Some(self.done())),
            option::GO => return Err(Violation::new("an export without a size").into()),
            _ => {
                self.ask(option::ABORT, &[], out);
                self.state = State::Over;
                return Ok(Some(Step::List(std::mem::take(&mut self.list))));
            }
        }
        Ok(None)
    }

    /// Goes on with less where less will do.
    fn refused(&mut self, option: u32, kind: u32, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let is_unknown = kind == reply::UNSUPPORTED;
        match option {
            option::EXTENDED_HEADERS => self.ask(option::STRUCTURED_REPLY, &[], out),
            option::STRUCTURED_REPLY => self.go(out),
            option::SET_META_CONTEXT if is_unknown => self.go(out),
            option::GO if is_unknown => {
                let name = self.name();
                self.ask_by_name(&name, out);
            }
            _ => {
                let what = match option {
                    option::STARTTLS => "TLS",
                    option::LIST => "a list of exports",
                    option::SET_META_CONTEXT if kind != reply::UNKNOWN => "to tell of blocks",
                    _ => "the export",
                };
                let said = String::from_utf8_lossy(data);
                let why = format!("{} ({})", reason(kind), said.trim());
                let why = if said.trim().is_empty() { reason(kind).to_owned() } else { why };
                self.ask(option::ABORT, &[], out);
                self.state = State::Over;
                return Err(HandshakeError::Refused { what, why });
            }
        }
        Ok(())
    }

    /// What is not known is passed over, as clients must.
    fn told(&mut self, kind: u32, data: &[u8]) -> Result<()> {
        let wrong = || HandshakeError::from(Violation::new("a reply to an option is too short"));
        let mut reader = Reader::new(data);
        match kind {
            reply::SERVER => {
                let name = reader.string().ok_or_else(wrong)?.to_owned();
                let description = String::from_utf8_lossy(reader.rest()).into_owned();
                if self.list.len() < MOST_REPLIES {
                    self.list.push(Listed { name, description });
                }
            }
            reply::INFO => match reader.u16().ok_or_else(wrong)? {
                info::EXPORT => self.take_export(&mut reader).ok_or_else(wrong)?,
                info::BLOCK_SIZE => self.block_size(&mut reader).ok_or_else(wrong)?,
                _ => {}
            },
            reply::META_CONTEXT => {
                let id = reader.u32().ok_or_else(wrong)?;
                let name = String::from_utf8_lossy(reader.rest()).into_owned();
                let wanted = self.wanted.contexts.contains(&name);
                if wanted && self.chosen.contexts.len() < MOST_REPLIES {
                    self.chosen.contexts.push(Context { id, name });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn block_size(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let (minimum, preferred, maximum) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let blocks = BlockSizes { minimum, preferred, maximum };
        self.chosen.blocks = blocks;
        blocks.are_valid().then_some(())
    }
}

fn refused(what: &'static str, why: &str) -> HandshakeError {
    HandshakeError::Refused { what, why: why.to_owned() }
}

fn reason(kind: u32) -> &'static str {
    match kind {
        reply::UNSUPPORTED => "it does not know the option",
        reply::INVALID => "it calls the option invalid",
        reply::TLS_REQUIRED => "it requires TLS",
        reply::UNKNOWN => "it has no export of that name",
        reply::TOO_BIG => "it calls the option too big",
        reply::BLOCK_SIZE_REQUIRED => "it requires that block sizes are asked for",
        reply::EXTENDED_HEADERS_REQUIRED => "it requires extended headers",
        kind if kind == reply::ERROR + 2 => "its policy forbids it",
        kind if kind == reply::ERROR + 7 => "it is shutting down",
        _ => "for a reason that is not known",
    }
}
