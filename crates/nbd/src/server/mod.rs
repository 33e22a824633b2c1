//! The server's side: [`Handshake`] until an export has been chosen, then [`Session`].

mod handshake;
mod options;
mod session;

pub use handshake::{Exports, Handshake, Negotiated, Step, Tls};
pub use session::{Incoming, Session};
