//! What an engine does around the core, on drives whose records are bytes: what it hands to the core at each start
//! and when a drive is to come back is what a format finds there, whatever was done to the drives meanwhile.

use raidlab_core::MemberIndex;

use super::run::Run;

impl Run {
    /// Damages the superblock of a member.
    pub(super) fn spoil_superblock(&mut self, member: u16) {
        let device = MemberIndex(member);
        let drives = self.rig.drives();
        if !drives.has_bytes() {
            let at = drives.sectors(device);
            self.rig.drives_mut().rot(device, at, 0x40);
            return;
        }
        let total = drives.total(device);
        let place = self.random.below(2);
        let at = total / 8 * 8 - 8 * (1 + place);
        // Of a place that was never anything but ready, too.
        let bit = self.random.below(320 * 8) as u32;
        self.rig.drives_mut().flip(device, at, bit);
    }
}
