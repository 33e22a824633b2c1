//! All arrays that a server has, and the memory that they share.

use std::path::Path;

use raidlab_engine::EngineError;
use raidlab_nbd::server::Exports;
use raidlab_nbd::{Export, Request};

use super::NbdArray;
use super::array::{Begun, Finished, Served};
use super::memory::{Budget, Buffer};
use crate::export::{self, ExportCache};

/// Clients whose memory for what they leave for later is kept for the next that do.
const MOST_SPARES: usize = 8;

pub(super) struct Arrays {
    /// `None` where one has ended.
    served: Vec<Option<Served>>,
    pub(super) budget: Budget,
    /// Memory came back since somebody looked.
    pub(super) freed: bool,
    /// A client waits for memory that others have: who comes now waits behind it.
    pub(super) is_short: bool,
    /// Clients that broke the protocol.
    pub(super) violations: u64,
    /// Memory of clients that leave nothing for later now.
    spares: Vec<Vec<u8>>,
}

impl Arrays {
    pub(super) fn new(arrays: Vec<NbdArray>, memory: u64) -> Self {
        let served = |(number, array)| Some(Served::new(number, array, memory));
        let served = arrays.into_iter().enumerate().map(served).collect();
        let (budget, spares) = (Budget::new(memory), Vec::with_capacity(MOST_SPARES));
        Self { served, budget, freed: false, is_short: false, violations: 0, spares }
    }

    /// Mounts the file that the first one is served as besides.
    ///
    /// # Errors
    /// When the system refuses, or there is no memory.
    pub(super) fn serve_file(&mut self, directory: &Path) -> Result<(), EngineError> {
        let Some(served) = self.of(Some(0)) else { return Ok(()) };
        let cache = match served.export.abilities.read_only {
            true => ExportCache::ReadOnly,
            false => ExportCache::None,
        };
        let session = export::mount(&mut served.engine, directory, cache)?;
        served.serve_file(session);
        Ok(())
    }

    /// Memory for what a client leaves for later.
    pub(super) fn spare(&mut self) -> Vec<u8> {
        self.spares.pop().unwrap_or_default()
    }

    /// Takes it back.
    pub(super) fn lay_by(&mut self, mut memory: Vec<u8>) {
        if self.spares.len() < MOST_SPARES {
            memory.clear();
            self.spares.push(memory);
        }
    }

    #[inline]
    pub(super) fn of(&mut self, array: Option<usize>) -> Option<&mut Served> {
        self.served.get_mut(array?)?.as_mut()
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.served.len()
    }

    /// Whether all have ended.
    pub(super) fn are_over(&self) -> bool {
        self.served.iter().all(Option::is_none)
    }

    /// The one of that name that clients may choose.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        let is_it = |served: &Served| served.ending.is_none() && served.export.name == name;
        self.served.iter().position(|served| served.as_ref().is_some_and(is_it))
    }

    /// Takes one out, whose memory counts no longer: it goes with the engine.
    pub(super) fn remove(&mut self, array: usize) -> Option<Served> {
        let mut served = self.served.get_mut(array)?.take()?;
        served.pool.forget(&mut self.budget);
        self.freed = true;
        Some(served)
    }

    /// Hands a request to an array.
    ///
    /// # Errors
    /// A fault of raidlab itself.
    #[inline]
    pub(super) fn begin(
        &mut self,
        array: usize,
        owner: u64,
        request: Request,
    ) -> Result<Begun, EngineError> {
        let Some(Some(served)) = self.served.get_mut(array) else { return Ok(Begun::NoMemory) };
        let begun = served.begin(owner, request, &mut self.budget)?;
        if begun != Begun::NoMemory || self.served.len() == 1 {
            return Ok(begun);
        }
        // Others may have some that they do not use.
        for other in self.served.iter_mut().flatten() {
            other.pool.shrink(&mut other.engine, &mut self.budget)?;
        }
        let Some(Some(served)) = self.served.get_mut(array) else { return Ok(Begun::NoMemory) };
        served.begin(owner, request, &mut self.budget)
    }

    /// What a read has read.
    ///
    /// # Errors
    /// A fault of raidlab itself.
    #[inline]
    pub(super) fn bytes(&self, array: Option<usize>, of: Buffer) -> Result<&[u8], EngineError> {
        match array.and_then(|array| self.served.get(array)?.as_ref()) {
            Some(served) => served.engine.bytes(of.token),
            None => Ok(&[]),
        }
    }

    /// Takes memory back.
    #[inline]
    pub(super) fn give(&mut self, array: Option<usize>, buffer: Buffer) {
        if let Some(served) = self.of(array) {
            served.pool.give(buffer);
        }
        self.freed = true;
    }

    /// Has all arrays work; whether there is more to do at once.
    ///
    /// # Errors
    /// A fault of raidlab itself, with the array that has it.
    pub(super) fn work(
        &mut self,
        finished: &mut Vec<Finished>,
    ) -> Result<bool, (usize, EngineError)> {
        let mut any = false;
        for (number, served) in self.served.iter_mut().enumerate() {
            let Some(served) = served else { continue };
            any |= served.work().map_err(|error| (number, error))?;
            served.take_finished(finished);
        }
        Ok(any)
    }
}

impl Exports for Arrays {
    fn find(&self, name: &str) -> Option<Export> {
        let is_it = |served: &&Served| name.is_empty() || served.export.name == name;
        // Without a name the first is meant, also when it has ended: who comes back must not write to another array.
        let named = if name.is_empty() {
            &self.served[..self.served.len().min(1)]
        } else {
            &self.served[..]
        };
        let mut all = named.iter().flatten().filter(|served| served.ending.is_none());
        all.find(is_it).map(|served| served.export.clone())
    }

    fn list(&self) -> Vec<(String, String)> {
        let all = self.served.iter().flatten().filter(|served| served.ending.is_none());
        let export =
            |served: &Served| (served.export.name.clone(), served.export.description.clone());
        all.map(export).collect()
    }
}
