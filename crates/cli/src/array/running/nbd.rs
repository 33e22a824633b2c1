//! Arrays that are served to NBD clients: the sockets first, then the arrays that the devices given are of.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread;

use raidlab_engine::{EngineError, EngineErrorKind};
use raidlab_targets::{NbdArray, NbdCertificates, NbdLimits, NbdServer, NbdSockets, NbdTls};

use super::super::stack;
use super::args::Assemble;
use super::floors::{Floors, Lower};
use super::owner::{NbdOwner, Owner, Place};
use super::socket::{self, Listening, Sockets};
use super::state::{Mode, Names};
use super::{Prepared, Started, notify, serve};
use crate::failure::Failure;

/// Of an array that has been started its names, and the arrays below it.
type Named = (Names, Vec<Lower>);

/// An array that is served, and where its commands come in.
struct One {
    owner: Owner,
    names: Names,
    options: Assemble,
    listening: Listening,
    floors: Floors,
}

/// Serves all arrays that devices were given of, until each is stopped.
pub(super) fn run(options: &Assemble, stop: &AtomicBool) -> Result<(), Failure> {
    // Whatever is wrong with an address is said before anything is done with an array.
    let tls = tls(options)?;
    // Certificates of clients are as good as passwords.
    let exposed = options.nbd_exposed || options.tls_client_ca.is_some();
    let sockets = NbdSockets::bind(&options.nbd, exposed).map_err(bound)?;
    let arrays = arrays_of(options)?;
    let (prepared, controls) = prepare(&arrays)?;
    let is_tls = tls.is_some();
    let places = sockets.places();
    let limits = NbdLimits {
        connections: options.nbd_connections as usize,
        memory: options.nbd_memory.0,
        ..NbdLimits::default()
    };
    let mut file = options.fuse.as_ref().map(|_| Place::new()).transpose()?;
    let directory = file.as_ref().map(|place| place.directory().to_owned());
    let (server, made) = begin((sockets, tls), limits, (directory, prepared))?;
    let (names, lower): (Vec<_>, Vec<_>) = made.into_iter().unzip();
    // The directory goes after what is mounted there.
    let linked = match (&mut file, server.file(), &options.fuse) {
        (Some(place), Some(served), Some(file)) => place.link(&served, file),
        _ => Ok(()),
    };
    let owners = names.iter().enumerate().map(|(array, names)| {
        let uris = places.iter().map(|place| place.uri(&names.short(), is_tls)).collect();
        // It is the first and only one that is served as a file, too.
        Owner::Nbd(NbdOwner::new(Arc::clone(&server), array, uris, file.take()))
    });
    let mut owners: Vec<Owner> = owners.collect();
    drop(server);
    let listening = arrays.iter().zip(controls).zip(lower).map(|((options, controls), lower)| {
        let Sockets { own, lower: below } = controls;
        Ok((own, Floors::new(lower, below, options)?))
    });
    let listening: Result<Vec<_>, Failure> = linked.and_then(|()| listening.collect());
    let listening = match listening {
        Ok(listening) => listening,
        Err(failure) => {
            for (owner, names) in owners.iter_mut().zip(&names) {
                // The first error is the one to tell.
                let _ = owner.end(names.mode, true);
            }
            return Err(failure);
        }
    };
    let parts = owners.into_iter().zip(names).zip(arrays).zip(listening);
    let all = parts.map(|(((owner, names), options), (listening, floors))| One {
        owner,
        names,
        options,
        listening,
        floors,
    });
    attend(all.collect(), stop)
}

/// Attends to each array on a thread of its own, until all have ended.
fn attend(all: Vec<One>, stop: &AtomicBool) -> Result<(), Failure> {
    notify::ready();
    let ended: Vec<Result<(), Failure>> = thread::scope(|scope| {
        let attended = all.into_iter().map(|one| {
            scope.spawn(move || {
                let One { owner, names, options, listening, mut floors } = one;
                let requests = &listening.requests;
                let served = serve::run(owner, names, requests, (&options, stop), &mut floors);
                floors.end();
                served
            })
        });
        let attended: Vec<_> = attended.collect();
        let panicked = |_| Err(Failure::failed("a thread of an array panicked"));
        attended.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    notify::stopping();
    ended.into_iter().collect()
}

/// Starts the arrays on the thread that will serve them.
fn begin(
    (sockets, tls): (NbdSockets, Option<NbdTls>),
    limits: NbdLimits,
    (directory, prepared): (Option<PathBuf>, Vec<Prepared>),
) -> Result<(Arc<NbdServer>, Vec<Named>), Failure> {
    let (told, names) = channel();
    let make = move || {
        match start(&prepared) {
            Ok(mut made) => {
                let named = |one: &mut Started| (one.names.clone(), std::mem::take(&mut one.lower));
                // Somebody waits for it as long as the process lives.
                let _ = told.send(Ok(made.iter_mut().map(named).collect()));
                Ok(made.into_iter().map(export).collect())
            }
            Err(failure) => {
                let _ = told.send(Err(failure));
                Err(EngineError::cancelled("serve the arrays"))
            }
        }
    };
    let server = match directory {
        Some(directory) => NbdServer::with_file(sockets, tls, limits, &directory, make),
        None => NbdServer::new(sockets, tls, limits, make),
    };
    let (server, names) = match (server, names.try_recv()) {
        (Ok(server), Ok(Ok(names))) => (server, names),
        // The first error is the one to tell.
        (_, Ok(Err(failure))) => return Err(failure),
        (Err(error), _) => return Err(Failure::failed(error)),
        _ => return Err(Failure::failed("no array was made")),
    };
    Ok((Arc::new(server), names))
}

/// Starts all of them, or leaves none that was started.
fn start(prepared: &[Prepared]) -> Result<Vec<Started>, Failure> {
    let mut made: Vec<Started> = Vec::new();
    for one in prepared {
        match one.start() {
            Ok(started) => made.push(started),
            Err(failure) => {
                made.into_iter().for_each(Started::abandon);
                return Err(failure);
            }
        }
    }
    Ok(made)
}

fn export(started: Started) -> NbdArray {
    let Started { engine, names, .. } = started;
    NbdArray {
        engine,
        name: names.short(),
        description: names.description(),
        read_only: names.mode == Mode::Read,
    }
}

/// Looks at the devices of each, and takes the sockets that their commands come in by.
fn prepare(arrays: &[Assemble]) -> Result<(Vec<Prepared>, Vec<Sockets>), Failure> {
    let prepared = arrays.iter().map(Prepared::new).collect::<Result<Vec<_>, _>>()?;
    distinct(&prepared)?;
    let sockets = prepared.iter().map(Prepared::sockets).collect::<Result<_, _>>()?;
    Ok((prepared, sockets))
}

/// Clients and commands know arrays by their names.
fn distinct(prepared: &[Prepared]) -> Result<(), Failure> {
    let names = prepared.iter().map(|one| socket::name(&one.found));
    let mut names = names.collect::<Result<Vec<_>, _>>()?;
    names.sort();
    match names.windows(2).find(|two| two[0] == two[1]) {
        Some(two) => {
            let what = "serve them by a command each";
            Err(Failure::input(format!("two of the arrays have the name {}: {what}", two[0])))
        }
        None => Ok(()),
    }
}

/// Certificates, if there are to be some.
fn tls(options: &Assemble) -> Result<Option<NbdTls>, Failure> {
    if options.tls_psk.is_some() {
        let what = "keys shared with clients are not supported: use certificates (--tls-cert)";
        return Err(Failure::input(format!("--tls-psk: {what}")));
    }
    let (Some(chain), Some(key)) = (&options.tls_cert, &options.tls_key) else { return Ok(None) };
    let (chain, key, clients) = (chain.clone(), key.clone(), options.tls_client_ca.clone());
    NbdTls::new(&NbdCertificates { chain, key, clients }).map(Some).map_err(bound)
}

fn bound(error: EngineError) -> Failure {
    match error.kind() {
        EngineErrorKind::Busy | EngineErrorKind::Refused => Failure::Refused(error.to_string()),
        EngineErrorKind::InvalidRequest | EngineErrorKind::NotSupported => Failure::input(error),
        _ => Failure::failed(error),
    }
}

/// What is asked, for each array that devices were given of.
fn arrays_of(options: &Assemble) -> Result<Vec<Assemble>, Failure> {
    let (arrays, others) = stack::arrays(&options.members)?;
    if arrays.len() <= 1 {
        // What is not of the array is told when it is assembled.
        return Ok(vec![options.clone()]);
    }
    if let Some(other) = others.first() {
        let what = format!("carries no md superblock, so it is of none of the {}", arrays.len());
        return Err(Failure::input(format!("{} {what} arrays", other.display())));
    }
    for (flag, is_given) in [
        ("--socket", options.socket.is_some()),
        ("--fuse", options.fuse.is_some()),
        ("--overlay", options.overlay.is_some()),
        ("--spare", !options.spare.is_empty()),
    ] {
        if is_given {
            let what = format!("belongs to one array, and these are devices of {}", arrays.len());
            return Err(Failure::input(format!("{flag} {what}: a command for each")));
        }
    }
    let of = |members: Vec<PathBuf>| {
        let mut one = options.clone();
        one.members.without.retain(|path| members.contains(path));
        one.members.members = members;
        one
    };
    Ok(arrays.into_iter().map(of).collect())
}
