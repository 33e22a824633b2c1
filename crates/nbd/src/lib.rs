//! The NBD protocol without I/O: a [`server`] and a [`client`] that take bytes and put bytes out.
//!
//! Neither knows sockets, threads, time or memory for data: whoever drives them reads and writes connections, and
//! carries requests out. What the protocol forbids is a [`Violation`]; what an export is not able to is refused and
//! never handed on. Memory does not grow with what the other side sends: a message of a handshake is at most
//! [`server::Handshake::LONGEST`] bytes, and data are handed on as they come.
//!
//! It has fixed newstyle negotiation (`GO`, `INFO`, `LIST`, `EXPORT_NAME`, `ABORT`, `STARTTLS` for servers that
//! require it), structured replies and extended headers ([`Framing`]), block status of any contexts, block sizes,
//! flush, FUA, trim, zeroes (fast ones too) and cache. It has not: oldstyle negotiation, resizing, a choice of TLS,
//! block status of some contexts only. Places and lengths are in bytes. The protocol's document is `doc/proto.md`
//! of the NBD project; extended headers are those of its branch `extension-ext-header`.
//!
//! The example drives both against each other: a client reads four bytes of an export of eight.
//!
//! ```
//! use raidlab_nbd::client::{self, Reply, Wanted};
//! use raidlab_nbd::server::{self, Incoming, Tls};
//! use raidlab_nbd::{Command, Export, Framing, Request};
//!
//! let exports = [Export::new("disk", 8)];
//! let wanted = Wanted { export: Some("disk".into()), framing: Framing::Structured, contexts: vec![], tls: false };
//! let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
//! let mut server = server::Handshake::new(Tls::None, &mut to_client);
//! let mut client = client::Handshake::new(wanted);
//! let (mut agreed, mut chosen) = (None, None);
//! while agreed.is_none() || chosen.is_none() {
//!     let taken = client.receive(&to_client, &mut to_server)?;
//!     to_client.drain(..taken.bytes);
//!     if let Some(client::Step::Done(found)) = taken.what {
//!         chosen = Some(found);
//!     }
//!     let taken = server.receive(&to_server, &exports[..], &mut to_client)?;
//!     to_server.drain(..taken.bytes);
//!     if let Some(server::Step::Done(found)) = taken.what {
//!         agreed = Some(found);
//!     }
//! }
//! let (agreed, chosen) = (agreed.unwrap(), chosen.unwrap());
//! assert_eq!((chosen.size, chosen.framing), (8, Framing::Structured));
//!
//! let mut server = server::Session::new(&agreed);
//! let mut client = client::Session::new(&chosen);
//! let read = Request { cookie: 7, command: Command::Read { whole: false }, at: 2, len: 4, fua: false };
//! client.request(read, &mut to_server);
//! let taken = server.receive(&to_server, &mut to_client)?;
//! assert_eq!(taken.what, Some(Incoming::Request(read)));
//! // The first half is zeroes, which are not sent.
//! server.hole(&read, 2, 2, false, &mut to_client);
//! server.data(&read, 4, 2, true, &mut to_client);
//! to_client.extend_from_slice(b"ab");
//!
//! let mut got = Vec::new();
//! while client.under_way() > 0 {
//!     let taken = client.receive(&to_client)?;
//!     let bytes: Vec<u8> = to_client.drain(..taken.bytes).collect();
//!     match taken.what {
//!         Some(Reply::Hole { len, .. }) => got.resize(got.len() + len as usize, 0),
//!         Some(Reply::Data { .. }) => got.extend_from_slice(&bytes),
//!         _ => {}
//!     }
//! }
//! assert_eq!(got, b"\0\0ab");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod client;
mod export;
mod request;
pub mod server;
mod wire;

pub use export::{Abilities, BlockSizes, Context, ErrorCode, Export, Extent, Framing, Violation};
pub use request::{Command, Request, Taken};
