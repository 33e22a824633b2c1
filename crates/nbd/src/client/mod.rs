//! The client's side: [`Handshake`] until an export has been chosen, then [`Session`].

mod handshake;
mod session;

pub use handshake::{Chosen, Handshake, HandshakeError, Listed, Step, Wanted};
pub use session::{Reply, Session};
