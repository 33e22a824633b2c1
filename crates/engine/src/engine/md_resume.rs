//! A device that was being filled to replace a member of an md array when that was stopped, or the power went: it goes
//! on being filled. Tests: `tests/md_replace.rs`, against the kernel `md_replace_guest.rs`.

use raidlab_core::{MemberIndex, Sector};
use raidlab_metadata::md::{Out, Why};

use super::Engine;
use super::md::MdFound;
use crate::member::Member;
use crate::metadata::{Form, look};

impl Engine {
    /// Goes on with a replacement that was found beside its member, and was given as `given`; before anything is asked
    /// of the array. Where that is not to be, it is told among those that are out.
    pub(super) fn resume_replacement(
        &mut self,
        (given, of): (usize, u16),
        device: Member,
        found: &mut MdFound,
    ) {
        let name = match &device {
            Member::File(file) => file.path().display().to_string(),
            _ => format!("device {} of those given", given + 1),
        };
        let resumed = self.begin_again(MemberIndex(of), device);
        let joined = &mut found.joined;
        match resumed {
            Ok(good_to) => joined.notes.push(format!(
                "{name} goes on replacing member {of}, from sector {} of it on",
                good_to.0
            )),
            Err(why) => {
                joined.replacement = None;
                joined.out.push(Out { given, place: Some(of), why: Why::NotResumed(why) });
            }
        }
    }

    /// From which sector on the device goes on being filled.
    fn begin_again(&mut self, member: MemberIndex, mut device: Member) -> Result<Sector, String> {
        let place = self.array.replacement(member);
        let (Some(array), Some(metadata)) = (self.array.flat(), &mut self.metadata) else {
            return Err("the array keeps no superblocks".into());
        };
        let Form::Md(md) = metadata.form else {
            return Err("its metadata are not md's".into());
        };
        let mut looked = look(&metadata.form, &mut device);
        md.say_journal(&mut looked, array.consistency());
        let judged = array.judge_resume(metadata.records.array(), member, &looked.examined);
        let (command, good_to) = judged.map_err(|why| why.to_string())?;
        let before = metadata.records.know(place, &looked);
        // The command is to be the first input, and the array begins with outputs.
        while let Some(output) = self.array.poll() {
            self.carry_out(output);
        }
        self.with_device((place, None), device, command).map_err(|error| {
            if let Some(metadata) = &mut self.metadata {
                metadata.records.set_places(place, before);
            }
            error.to_string()
        })?;
        Ok(good_to)
    }
}
