//! What one who writes records to the devices of an array must know: whose place each is for, where the next goes,
//! and that it is newer than all before.
//!
//! The engine and the checker both write by it: what is checked is what runs.

use raidlab_core::consistency::{MetaArea, Parameters};
use raidlab_core::contract::{MetaIo, Record};
use raidlab_core::{Config, MemberIndex, Sector, Sectors};

use crate::geom::Generation;
use crate::md::{DeviceNumbers, Journal, PplEntry};
use crate::{ArrayId, Entry, Label, Looked, MetadataFormat, Own, Places, Put, place_of};

/// Which record goes where next on each device of an array: members, their replacements, the log device.
#[derive(Clone, Debug)]
pub struct RecordWriter {
    array: ArrayId,
    members: u16,
    area: MetaArea,
    /// Of the record that was written last.
    sequence: u64,
    places: Vec<Places>,
    /// What the superblocks of each device say besides the state of the array.
    parameters: Vec<Parameters>,
    /// The numbers of an md array's devices.
    device_numbers: DeviceNumbers,
    /// How old labels of GEOM say that the state of the array is.
    generation: Generation,
}

impl RecordWriter {
    /// For an array with this identity, of devices that are not there yet.
    pub fn new(array: ArrayId, config: &Config, area: &MetaArea) -> Self {
        let members = config.layout.members;
        let devices = (0..=2 * members).map(MemberIndex);
        let parameters: Vec<_> = devices.map(|one| Parameters::of(config, area, one)).collect();
        let places = parameters.iter().map(|one| Places::blank(Sectors::ZERO, one)).collect();
        let device_numbers = DeviceNumbers::new(members);
        let generation = Generation::default();
        Self {
            array,
            members,
            area: *area,
            sequence: 0,
            places,
            parameters,
            device_numbers,
            generation,
        }
    }

    /// What identifies the array.
    pub fn array(&self) -> &ArrayId {
        &self.array
    }

    /// Where the records of a device lie.
    pub fn places(&self, device: MemberIndex) -> &Places {
        &self.places[device.at()]
    }

    /// The sequence of the record that was written last: larger than all that were seen before it.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Another device is in a place from now on; gives what was known of the one before.
    pub fn set_places(&mut self, device: MemberIndex, places: Places) -> Places {
        self.device_numbers.set(device.at(), places.md().map(|kept| kept.number()));
        std::mem::replace(&mut self.places[device.at()], places)
    }

    /// A replacement is the member from now on.
    pub fn take_over(&mut self, member: MemberIndex, replacement: MemberIndex) {
        self.device_numbers.take_over(member.at(), replacement.at());
        self.places[member.at()] = std::mem::take(&mut self.places[replacement.at()]);
    }

    /// Nothing is known any more of what was written to the devices, which have so many sectors each.
    pub fn forget(&mut self, totals: impl Iterator<Item = Sectors>) {
        self.sequence = 0;
        self.device_numbers = DeviceNumbers::new(self.members);
        for ((places, parameters), total) in
            self.places.iter_mut().zip(&self.parameters).zip(totals)
        {
            *places = Places::blank(total, parameters);
        }
    }

    /// Where the records of a device of `total` sectors lie that the array is made of, or that is not there.
    pub fn blank(&self, device: MemberIndex, total: Sectors) -> Places {
        Places::blank(total, &self.parameters[device.at()])
    }

    /// Where the records of a device with no record of this array lie, in the place of another one. It has as much
    /// room for data, or as much as is left of a smaller one.
    pub fn fresh(&self, device: MemberIndex, total: Sectors) -> Places {
        let mut places = self.blank(device, total);
        places.data = places.data.min(self.room(device, total));
        places
    }

    /// Sectors for data on a device of `total` sectors, when it is made ready.
    pub fn room(&self, device: MemberIndex, total: Sectors) -> Sectors {
        let block = self.parameters[device.at()].block;
        self.area.data(total, block).unwrap_or(Sectors::ZERO)
    }

    /// Sectors for data that a device must have at least: what superblocks say that the array uses of each.
    pub fn least(&self, device: MemberIndex) -> Sectors {
        self.parameters[device.at()].least
    }

    /// A device that was looked at is in a place from now on: its records go on where they lie, and are newer than
    /// all that this array has there. Gives what was known of the one before.
    pub fn know(&mut self, device: MemberIndex, looked: &Looked) -> Places {
        self.sequence = self.sequence.max(looked.sequence_of(&self.array));
        let places = looked.places_of(&self.array, &self.parameters[device.at()]);
        let carried = looked.examined.superblock.readable();
        if let (Some(kept), Some(carried)) = (places.geom(), carried) {
            self.generation.learn(carried.superblock.events, kept);
        }
        self.set_places(device, places)
    }

    /// Fills `head` with a record, sealed with its payload of so many sectors; says where it goes on its device, and
    /// whether more of it follows. Of what is several writes the next is `part`. `None`: the format has no such record.
    pub fn encode(
        &mut self,
        format: &dyn MetadataFormat,
        head: &mut [u8],
        meta: &MetaIo,
        (part, sectors, payload): (u32, u32, &mut dyn Iterator<Item = &[u8]>),
    ) -> Option<Put> {
        let device = meta.member.at();
        let label = self.label(place_of(meta.member.0, self.members), sectors, Sector(0));
        // Another drive may be in the place since.
        self.parameters[device].data = self.places[device].data;
        if let Record::Superblock(said) = &meta.record
            && self.places[device].md().is_some_and(|kept| kept.superblock().v0.is_some())
        {
            self.device_numbers.settle(said.failed, said.rebuilding);
        }
        if let Record::Superblock(said) = &meta.record
            && self.places[device].geom().is_some()
        {
            self.generation.tell(said);
        }
        let (parameters, device_numbers) = (&self.parameters[device], &self.device_numbers);
        let generation = &self.generation;
        let entry = Entry { meta, label, parameters, part, device_numbers, generation };
        format.put(head, &mut self.places[device], &entry, payload)
    }

    /// Labels of GEOM say how old the state of the array is from nobody's on: for a start with a number by chance.
    pub fn begin_generation(&mut self, epoch: u64) {
        self.generation = Generation::new(epoch);
    }

    /// What the list of bad blocks of a device is to say with the next superblock, in formats that have one; false when
    /// that does not fit, and the superblock must not be written.
    #[must_use]
    pub fn list_bad_blocks(
        &mut self,
        device: MemberIndex,
        ranges: impl Iterator<Item = (Sector, Sectors)>,
    ) -> bool {
        self.places[device.at()].md_mut().is_none_or(|kept| kept.list_bad_blocks(ranges))
    }

    /// Pages of the bitmap that are written together with the one that is encoded next for a device, each with its
    /// bits, in formats that have them in one place.
    pub fn put_beside(&mut self, device: MemberIndex, pages: impl Iterator<Item = (u32, u64)>) {
        let Some(kept) = self.places[device.at()].md_mut() else { return };
        kept.put_beside(pages);
    }

    /// What stands of a record of partial parity in a header of md's.
    pub fn header_entry(
        &self,
        meta: &MetaIo,
        payload: &mut dyn Iterator<Item = &[u8]>,
    ) -> Option<PplEntry> {
        let ppl = self.places[meta.member.at()].md()?.ppl()?;
        ppl.entry(place_of(meta.member.0, self.members), &meta.record, payload)
    }

    /// Fills `head` with a header of entries that are written together to a device of md's, their payloads behind it
    /// in the same order; says where it goes.
    pub fn put_header(
        &mut self,
        head: &mut [u8],
        device: MemberIndex,
        entries: &[PplEntry],
    ) -> Option<Put> {
        self.places[device.at()].md_mut()?.ppl_mut()?.put(head, entries)
    }

    /// The last header or block of the log of a device of md's was not written.
    pub fn log_failed(&mut self, device: MemberIndex) {
        let Some(kept) = self.places[device.at()].md_mut() else { return };
        kept.log_failed();
    }

    /// What was last put for a device, but into a log, was not written, or only perhaps.
    pub fn record_failed(&mut self, device: MemberIndex) {
        let Some(kept) = self.places[device.at()].md_mut() else { return };
        kept.record_failed();
    }

    /// The journal of a log device of md's.
    pub fn journal(&mut self, device: MemberIndex) -> Option<&mut Journal> {
        self.places[device.at()].md_mut()?.journal_mut()
    }

    /// Fills `head` with what says that the place `at` of a device is ready for a superblock of the own format.
    pub fn encode_vacant(&mut self, head: &mut [u8], device: MemberIndex, at: Sector) {
        let label = self.label(device.0, 0, at);
        Own.vacant(head, &label);
    }

    /// The numbers of an md array's devices.
    pub fn device_numbers(&mut self) -> &mut DeviceNumbers {
        &mut self.device_numbers
    }

    fn label(&mut self, device: u16, payload: u32, at: Sector) -> Label {
        self.sequence += 1;
        Label { array: self.array, device, sequence: self.sequence, payload, at }
    }
}
