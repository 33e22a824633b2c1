//! TLS by rustls: certificates of the server, and of its clients if that is wanted. It is required or
//! there is none.
//!
//! Built with the feature `tls`; without it [`NbdTls::new`] says so.

use std::path::PathBuf;

use raidlab_engine::{EngineError, EngineErrorKind};

pub use wire::NbdTls;
pub(super) use wire::Wire;

/// Certificates, in PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NbdCertificates {
    /// The server's, with those that it is signed by behind it.
    pub chain: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Who must have signed certificates of clients; clients need none without it.
    pub clients: Option<PathBuf>,
}

const LOAD: &str = "load TLS certificates";

#[cfg(feature = "tls")]
fn wrong(path: &std::path::Path, reason: impl ToString) -> EngineError {
    EngineError::new(EngineErrorKind::InvalidRequest, LOAD, reason.to_string()).at_path(path)
}

#[cfg(feature = "tls")]
mod wire {
    use std::io::{self, IoSlice, Read, Write};
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::Arc;

    use rustls::crypto::ring;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::server::WebPkiClientVerifier;
    use rustls::{RootCertStore, ServerConfig, ServerConnection};

    use super::super::system::{self, Moved};
    use super::{EngineError, NbdCertificates, wrong};

    /// Bytes that wait to be encrypted and sent at most.
    const MOST: usize = 256 << 10;

    /// How connections are encrypted.
    #[derive(Clone, Debug)]
    pub struct NbdTls(Arc<ServerConfig>);

    impl NbdTls {
        /// Reads certificates, and sees that they belong together.
        ///
        /// # Errors
        /// [`InvalidRequest`](raidlab_engine::EngineErrorKind::InvalidRequest) with the file that is wrong.
        pub fn new(files: &NbdCertificates) -> Result<Self, EngineError> {
            let provider = Arc::new(ring::default_provider());
            let chain = certificates(&files.chain)?;
            let key = PrivateKeyDer::from_pem_file(&files.key)
                .map_err(|error| wrong(&files.key, format!("no private key: {error}")))?;
            let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
                .with_safe_default_protocol_versions()
                .map_err(|error| wrong(&files.chain, error))?;
            let builder = match &files.clients {
                None => builder.with_no_client_auth(),
                Some(path) => {
                    let mut roots = RootCertStore::empty();
                    for root in certificates(path)? {
                        roots.add(root).map_err(|error| wrong(path, error))?;
                    }
                    let roots = Arc::new(roots);
                    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                    let verifier = verifier.build().map_err(|error| wrong(path, error))?;
                    builder.with_client_cert_verifier(verifier)
                }
            };
            let config = builder.with_single_cert(chain, key);
            Ok(Self(Arc::new(config.map_err(|error| wrong(&files.key, error))?)))
        }
    }

    fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, EngineError> {
        let all = CertificateDer::pem_file_iter(path).and_then(|all| all.collect());
        let all: Vec<_> = all.map_err(|error| wrong(path, format!("no certificates: {error}")))?;
        if all.is_empty() { Err(wrong(path, "no certificate in it")) } else { Ok(all) }
    }

    /// An encrypted connection.
    pub(in super::super) struct Wire(ServerConnection);

    impl Wire {
        pub(in super::super) fn new(tls: &NbdTls) -> Option<Self> {
            let mut session = ServerConnection::new(Arc::clone(&tls.0)).ok()?;
            session.set_buffer_limit(Some(MOST));
            Some(Self(session))
        }

        /// What the client has sent, decrypted.
        pub(in super::super) fn receive(&mut self, socket: &OwnedFd, into: &mut [u8]) -> Moved {
            let mut came = 0;
            loop {
                match self.0.reader().read(&mut into[came..]) {
                    Ok(0) => return if came > 0 { Moved::Bytes(came) } else { Moved::Gone },
                    Ok(bytes) => came += bytes,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return Moved::Gone,
                }
                if came == into.len() {
                    return Moved::Bytes(came);
                }
                match self.0.read_tls(&mut Socket(socket)) {
                    Ok(0) => return if came > 0 { Moved::Bytes(came) } else { Moved::Gone },
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        return if came > 0 { Moved::Bytes(came) } else { Moved::Later };
                    }
                    Err(_) => return Moved::Gone,
                }
                if self.0.process_new_packets().is_err() {
                    // Why is told the client, if it listens.
                    let _ = self.0.write_tls(&mut Socket(socket));
                    return Moved::Gone;
                }
            }
        }

        /// Whether something waits to be sent.
        pub(in super::super) fn has_more(&self) -> bool {
            self.0.wants_write()
        }

        /// Says that nothing more will be sent.
        pub(in super::super) fn end(&mut self, socket: &OwnedFd) {
            self.0.send_close_notify();
            let _ = self.flush(socket);
        }

        /// Sends what waits.
        pub(in super::super) fn flush(&mut self, socket: &OwnedFd) -> Moved {
            while self.0.wants_write() {
                match self.0.write_tls(&mut Socket(socket)) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Moved::Later,
                    Err(_) => return Moved::Gone,
                }
            }
            Moved::Bytes(0)
        }

        /// Encrypts pieces and sends them, as many as there is room for.
        pub(in super::super) fn send(&mut self, socket: &OwnedFd, pieces: &[IoSlice<'_>]) -> Moved {
            match self.flush(socket) {
                Moved::Bytes(_) => {}
                other => return other,
            }
            let taken = match self.0.writer().write_vectored(pieces) {
                Ok(taken) => taken,
                Err(_) => return Moved::Gone,
            };
            match self.flush(socket) {
                Moved::Gone => Moved::Gone,
                _ => Moved::Bytes(taken),
            }
        }
    }

    struct Socket<'a>(&'a OwnedFd);

    impl Read for Socket<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match system::receive(self.0, &mut [], into) {
                Moved::Bytes(bytes) => Ok(bytes),
                Moved::Later => Err(io::ErrorKind::WouldBlock.into()),
                Moved::Gone => Ok(0),
            }
        }
    }

    impl Write for Socket<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.write_vectored(&[IoSlice::new(bytes)])
        }

        fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
            match system::send(self.0, pieces) {
                Moved::Bytes(bytes) => Ok(bytes),
                Moved::Later => Err(io::ErrorKind::WouldBlock.into()),
                Moved::Gone => Err(io::ErrorKind::BrokenPipe.into()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}

#[cfg(not(feature = "tls"))]
mod wire {
    use std::io::IoSlice;
    use std::os::fd::OwnedFd;

    use super::super::system::Moved;
    use super::{EngineError, EngineErrorKind, LOAD, NbdCertificates};

    /// There is none.
    #[derive(Clone, Debug)]
    pub enum NbdTls {}

    impl NbdTls {
        /// Says that this was built without.
        ///
        /// # Errors
        /// Always.
        pub fn new(_files: &NbdCertificates) -> Result<Self, EngineError> {
            let reason = "this raidlab was built without TLS: build it with `--features tls`";
            Err(EngineError::new(EngineErrorKind::NotSupported, LOAD, reason))
        }
    }

    pub(in super::super) enum Wire {}

    impl Wire {
        pub(in super::super) fn new(tls: &NbdTls) -> Option<Self> {
            match *tls {}
        }

        pub(in super::super) fn receive(&mut self, _socket: &OwnedFd, _into: &mut [u8]) -> Moved {
            match *self {}
        }

        pub(in super::super) fn has_more(&self) -> bool {
            match *self {}
        }

        pub(in super::super) fn end(&mut self, _socket: &OwnedFd) {
            match *self {}
        }

        pub(in super::super) fn flush(&mut self, _socket: &OwnedFd) -> Moved {
            match *self {}
        }

        pub(in super::super) fn send(&mut self, _: &OwnedFd, _: &[IoSlice<'_>]) -> Moved {
            match *self {}
        }
    }
}
