//! Sockets of the guest: whole messages, and the descriptors that come with them.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, send, sendmsg,
};

use crate::failure::Failure;

/// More descriptors than any message has: memory comes in at most two regions.
const MOST_DESCRIPTORS: usize = 8;

/// A stream socket to the guest, blocking.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// Reads all of the buffer.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> Result<(), Failure> {
        let mut have = 0;
        while have < buffer.len() {
            // Not a stream that is read: one of the guest's sockets is set not to block.
            match recv(&self.socket, &mut buffer[have..], RecvFlags::WAITALL) {
                Ok((0, _)) => return Err(Failure::Closed),
                Ok((count, _)) => have += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait_readable()?,
                Err(error) => return Err(lost(error)),
            }
        }
        Ok(())
    }

    /// Reads all of the buffer, with the descriptors that come along.
    pub(crate) fn read_with_descriptors(
        &self,
        buffer: &mut [u8],
        descriptors: &mut Vec<OwnedFd>,
    ) -> Result<(), Failure> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let parts = &mut [IoSliceMut::new(buffer)];
            match recvmsg(&self.socket, parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(lost(error)),
                Ok(received) => break received.bytes,
            }
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                descriptors.extend(files);
            }
        }
        match received {
            0 if !buffer.is_empty() => Err(Failure::Closed),
            received => self.read(&mut buffer[received..]),
        }
    }

    /// Writes all of it.
    pub(crate) fn write(&self, raw: &[u8]) -> Result<(), Failure> {
        let mut left = raw;
        while !left.is_empty() {
            match send(&self.socket, left, SendFlags::NOSIGNAL) {
                Ok(count) => left = &left[count..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(lost(error)),
            }
        }
        Ok(())
    }

    /// Writes a short message with descriptors.
    pub(crate) fn write_with_descriptors(
        &self,
        raw: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), Failure> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(
            control.push(SendAncillaryMessage::ScmRights(descriptors)),
            "there is room for {MOST_DESCRIPTORS} descriptors"
        );
        let sent = sendmsg(&self.socket, &[IoSlice::new(raw)], &mut control, SendFlags::NOSIGNAL);
        let sent = sent.map_err(lost)?;
        // The descriptors have gone with the first byte.
        self.write(&raw[sent..])
    }

    fn wait_readable(&self) -> Result<(), Failure> {
        use rustix::event::{PollFd, PollFlags, poll};
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(Failure::system("waiting for the guest", error)),
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A guest that is gone closes its sockets, or breaks them.
fn lost(error: Errno) -> Failure {
    match error {
        Errno::PIPE | Errno::CONNRESET => Failure::Closed,
        error => Failure::system("talking to the guest", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn pair() -> (Connection, Connection) {
        let (one, other) = UnixStream::pair().expect("can be made");
        (Connection::new(one.into()), Connection::new(other.into()))
    }

    #[test]
    fn messages_come_whole_with_their_descriptors() {
        let (one, other) = pair();
        let file = std::fs::File::open("/dev/null").expect("is there");
        one.write_with_descriptors(b"head", &[file.as_fd(), file.as_fd()]).expect("goes");
        one.write(b"and payload").expect("goes");
        let (mut raw, mut descriptors) = ([0; 8], Vec::new());
        other.read_with_descriptors(&mut raw, &mut descriptors).expect("comes");
        assert_eq!((&raw, descriptors.len()), (b"headand ", 2));
        let mut rest = [0; 7];
        other.read(&mut rest).expect("comes");
        assert_eq!(&rest, b"payload");
    }

    #[test]
    fn a_guest_that_is_gone_is_told_from_an_error() {
        let (one, other) = pair();
        drop(one);
        let mut raw = [0; 4];
        assert!(matches!(other.read(&mut raw), Err(Failure::Closed)));
        assert!(matches!(other.write(&raw), Err(Failure::Closed)));
        let read = other.read_with_descriptors(&mut raw, &mut Vec::new());
        assert!(matches!(read, Err(Failure::Closed)), "{read:?}");
    }
}
