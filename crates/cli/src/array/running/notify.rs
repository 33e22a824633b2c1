//! Tells systemd how far the service is (`sd_notify`): a datagram to the socket that it named.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Arrays run and take commands; clients may come.
pub(super) fn ready() {
    tell("READY=1");
}

/// The last of them has ended, and so does the service: nothing refuses that any more.
pub(super) fn stopping() {
    tell("STOPPING=1");
}

fn tell(state: &str) {
    let Some(to) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match to.as_encoded_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&to),
    };
    // Who does not listen is not told: the arrays run all the same.
    let _ = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
}
