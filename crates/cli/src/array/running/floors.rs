//! Arrays that are members of an array that runs: started below it, attended to beside it, ended behind it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use raidlab_core::MemberIndex;
use raidlab_engine::{Engine, LowerArray, MdFound, Member};
use raidlab_metadata::md::{Inspected, Role};
use serde_json::{Value, json};

use super::super::args::Members;
use super::super::open::Found;
use super::args::Assemble;
use super::commands::{Attended, failed, not_itself, refused};
use super::owner::Owner;
use super::socket::Sockets;
use super::state::{Mode, Names, absolute};
use super::{hint, open_device, serve, tell, tell_beginning, unused, wanted};
use crate::failure::Failure;

/// An array below that has been started.
pub(super) struct Lower {
    array: LowerArray,
    names: Names,
    lower: Vec<Lower>,
}

impl Lower {
    /// Stops what was started, where what was to stand on it does not start.
    pub(super) fn abandon(all: Vec<Self>) {
        for one in all {
            // Why it is abandoned is what is told.
            let _ = one.array.with(Engine::stop);
            Self::abandon(one.lower);
        }
    }
}

/// Opens a device by its path, and the sectors of 512 bytes that its last sector has, where a label of GEOM is in it.
pub(super) type Open<'a> = dyn FnMut(&Path, Option<u32>) -> Result<Member, Failure> + 'a;

/// Opens the devices of an array, and starts the arrays that are members of it; in the order they were found.
pub(super) fn members(
    found: &Found,
    (options, mode): (&Assemble, Mode),
    open: &mut Open<'_>,
) -> Result<(Vec<Member>, Vec<Lower>), Failure> {
    let (mut members, mut started) = (Vec::new(), Vec::new());
    let devices = found.paths.iter().zip(&found.inspected).zip(&found.lower);
    for ((path, inspected), below) in devices {
        let sector = inspected.geom.as_ref().filter(|_| found.is_geom());
        let member = match below {
            None => open(path, sector.map(|seen| seen.sector.0 as u32)),
            Some(below) => start(below, path, (options, mode), open).map(|lower| {
                let member = lower.array.member();
                started.push(lower);
                member
            }),
        };
        match member {
            Ok(member) => members.push(member),
            Err(failure) => {
                drop(members);
                Lower::abandon(started);
                return Err(failure);
            }
        }
    }
    Ok((members, started))
}

/// Starts an array that is to be a member, and what is below it.
fn start(
    found: &Found,
    called: &Path,
    (options, mode): (&Assemble, Mode),
    open: &mut Open<'_>,
) -> Result<Lower, Failure> {
    let (devices, lower) = members(found, (options, mode), open)?;
    let wanted = wanted(found, options);
    let begun = LowerArray::new(move || Engine::assemble_md(devices, &wanted));
    let (array, MdFound { joined, inspected, .. }) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            Lower::abandon(lower);
            let hint = hint(options, &error.to_string());
            return Err(Failure::failed(format!("{}: {error}", called.display())).and(hint));
        }
    };
    let paths = shown(found);
    let names = Names::new(mode, &paths, &joined.order, &joined.spares);
    let names = names.of(&joined.name, joined.array, &joined.layout).called(called);
    let names = names.logged_on(joined.journal.map(|given| paths[given].clone()));
    let names = names.with_geom(found.geom());
    let filled = joined.replacement.map(|(given, member)| (paths[given].clone(), member));
    let names = names.replacing(filled);
    tell(&paths, &unused(&joined), &joined.notes);
    let (told, of) = (names.clone(), inspected);
    array.with(move |engine| tell_beginning(engine, &of, &told))?;
    let array = array.in_blocks(found.sector());
    Ok(Lower { array, names, lower })
}

/// Paths that mean the same in every directory, and names of arrays.
pub(super) fn shown(found: &Found) -> Vec<PathBuf> {
    let shown = |(path, below): (&PathBuf, &Option<Found>)| match below {
        Some(_) => path.clone(),
        None => absolute(path),
    };
    found.paths.iter().zip(&found.lower).map(shown).collect()
}

/// The arrays below one that runs, each with a thread that carries out its commands and puts its spares to use.
pub(super) struct Floors {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Floors {
    /// None yet.
    pub(super) fn none() -> Self {
        Self { over: Arc::default(), threads: Vec::new() }
    }

    /// Attends to these from now on, each by its socket.
    pub(super) fn new(
        lower: Vec<Lower>,
        sockets: Vec<Sockets>,
        options: &Assemble,
    ) -> Result<Self, Failure> {
        let mut floors = Self::none();
        let mut left = lower.into_iter().zip(sockets);
        while let Some((one, sockets)) = left.next() {
            if let Err(failure) = floors.attend(one, sockets, options) {
                Lower::abandon(left.map(|(one, _)| one).collect());
                floors.end();
                return Err(failure);
            }
        }
        Ok(floors)
    }

    fn attend(
        &mut self,
        lower: Lower,
        sockets: Sockets,
        options: &Assemble,
    ) -> Result<(), Failure> {
        let Lower { array, names, lower } = lower;
        let Sockets { own: listening, lower: below } = sockets;
        let mut floors = match Self::new(lower, below, options) {
            Ok(floors) => floors,
            Err(failure) => {
                // The first error is the one to tell.
                let _ = array.with(Engine::stop);
                return Err(failure);
            }
        };
        let (options, over) = (options.clone(), Arc::clone(&self.over));
        let attend = move || {
            let (told, owner) = (names.clone(), Owner::Lower(array));
            let asked = &listening.requests;
            let served = serve::run(owner, names, asked, (&options, &over), &mut floors);
            drop(listening);
            if let Err(failure) = served {
                told.tell(&format!("not stopped in order: {}", failure.what()));
            }
        };
        let thread = std::thread::Builder::new().name("attend".into()).spawn(attend);
        self.threads.push(thread.map_err(Failure::failed)?);
        Ok(())
    }

    /// Stops them, as nothing stands on them any more.
    pub(super) fn end(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }

    /// Starts the array on some devices, and makes it a member of the array that runs.
    pub(super) fn add(
        &mut self,
        array: &mut Attended<'_>,
        options: &Assemble,
        devices: Vec<PathBuf>,
        overwrite: bool,
    ) -> Result<Value, Value> {
        for device in &devices {
            not_itself(device).map_err(|error| refused(&error))?;
        }
        let members = Members { flat: true, ..Members::plain(devices) };
        let found = Found::new(&members).map_err(|error| refused(&error))?;
        let assembly = found.assembly().map_err(|error| refused(&error))?;
        let called =
            PathBuf::from(super::super::stack::short_name(&assembly.name, &assembly.array));
        let content =
            found.content().ok_or_else(|| failed("what the array holds cannot be read"))?;
        let place = of_this_array(&content, &array.names.array).filter(|_| !overwrite);
        if place.is_none() {
            consent(&found, &content, overwrite).map_err(|error| refused(&error))?;
        }
        let sockets = Sockets::below(options, &found, &called).map_err(|error| refused(&error))?;
        let asked = Assemble { members, run: true, ..options.clone() };
        let below = found.clone();
        let name = called.clone();
        let (lower, taken) = array
            .on_engine(move |engine| {
                let mut open =
                    |path: &Path, sector| open_device(path, sector).map_err(Failure::failed);
                let lower = match start(&below, &name, (&asked, Mode::Write), &mut open) {
                    Ok(lower) => lower,
                    Err(failure) => return Ok(Err(failure)),
                };
                match join(engine, &lower, place) {
                    Ok(taken) => Ok(Ok((lower, taken))),
                    Err(error) => {
                        Lower::abandon(vec![lower]);
                        let Some(place) = place else { return Err(error) };
                        let what =
                            format!("was member {place}, and cannot come back as it is: {error}");
                        let hint = "--overwrite adds it as a fresh one";
                        Ok(Err(Failure::Refused(format!("{} {what}; {hint}", name.display()))))
                    }
                }
            })?
            .map_err(|error| refused(&error))?;
        self.attend(lower, sockets, options).map_err(|error| refused(&error))?;
        let (names, shown) = (&mut *array.names, called.display().to_string());
        Ok(match taken {
            Some(member) => {
                names.took_over(member, called);
                json!({ "done": match place {
                    Some(_) => format!("{shown} is member {member} again"),
                    None => format!("{shown} is rebuilt as member {member}"),
                } })
            }
            None => {
                names.spares.push(called);
                json!({ "done": format!("{shown} waits as a spare") })
            }
        })
    }
}

/// Makes an array a member: in the place that it had, in that of a member that is missing, or as a spare.
fn join(
    engine: &mut Engine,
    lower: &Lower,
    place: Option<u16>,
) -> Result<Option<MemberIndex>, raidlab_engine::EngineError> {
    if let Some(place) = place {
        engine.re_add(MemberIndex(place), Some(lower.array.member()))?;
        return Ok(Some(MemberIndex(place)));
    }
    let count = engine.members().len() as u16;
    match (0..count).map(MemberIndex).find(|one| engine.array().is_failed(*one)) {
        Some(member) => engine.add(member, lower.array.member()).map(|()| Some(member)),
        None => engine.add_spare(lower.array.member()).map(|()| None),
    }
}

/// The place in this array that what another array holds says it has.
fn of_this_array(content: &Inspected, array: &[u8; 16]) -> Option<u16> {
    match content.superblock().filter(|one| one.array == *array)?.role() {
        Role::Member(place) => Some(place),
        _ => None,
    }
}

/// That what an array holds may be written all over.
fn consent(found: &Found, content: &Inspected, overwrite: bool) -> Result<(), Failure> {
    if overwrite {
        return Ok(());
    }
    let name = &found.assembly()?.name;
    let hint = "; --overwrite takes it nevertheless, and all that is in it is lost";
    if let Some(one) = content.superblock() {
        let what = format!("is a member of an md array ({})", one.name());
        return Err(Failure::Refused(format!("{name} {what}{hint}")));
    }
    match found.is_blank()? {
        true => Ok(()),
        false => Err(Failure::Refused(format!("{name}: something stands in it{hint}"))),
    }
}
