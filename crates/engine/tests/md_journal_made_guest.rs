//! Against mdadm: a new array with a journal is, byte for byte, what `mdadm --create --write-journal` writes of the
//! same devices, identities and times before the kernel has anything to do with it.
//!
//! The guest's kernel is without raid456 meanwhile, so that it does not start what mdadm has made.

use raidlab_core::{Layout, Sectors};
use raidlab_metadata::md::{Creation, Device, JournalBlock, LogDevice, Made, Superblock, Version};

use crate::extent::Extent;
use crate::guest::guest_or_skip;
use crate::held::{SECTOR, made_image};
use crate::made::creation;
use crate::md_logs_guest::{Files, MEMBER, device, devices, looked};

/// The log device is behind all others.
const LOG: usize = 4;
const SAMPLE: usize = 2;

#[derive(Clone, Copy, Debug)]
struct Case {
    layout: &'static str,
    mdadm: &'static str,
    version: Version,
    spares: usize,
    /// Nothing is to be rebuilt or made consistent.
    clean: bool,
    data_offset: Option<u64>,
    size: Option<u64>,
}

const fn case(layout: &'static str, mdadm: &'static str, version: Version) -> Case {
    Case { layout, mdadm, version, spares: 0, clean: false, data_offset: None, size: None }
}

const CASES: [Case; 6] = [
    case("raid5(3) chunk=64K", "--level=5 -n3 --chunk=64", Version::V1_2),
    case("raid6(4) chunk=64K", "--level=6 -n4 --chunk=64", Version::V1_1),
    Case { clean: true, ..case("raid4(3) chunk=64K", "--level=4 -n3 --chunk=64", Version::V1_1) },
    Case { spares: 1, ..case("raid5(3) chunk=128K", "--level=5 -n3 --chunk=128", Version::V1_2) },
    Case {
        data_offset: Some(4096),
        size: Some(2048),
        ..case("raid5(4) chunk=64K", "--level=5 -n4 --chunk=64", Version::V1_2)
    },
    Case {
        spares: 1,
        clean: true,
        ..case("raid5(3) chunk=64K", "--level=5 -n3 --chunk=64", Version::V1_2)
    },
];

impl Case {
    fn members(&self) -> usize {
        usize::from(self.layout.parse::<Layout>().unwrap().members)
    }

    fn numbers(&self) -> impl Iterator<Item = usize> {
        (0..self.members() + self.spares).chain([LOG])
    }

    fn create(&self, section: usize) -> String {
        let mut flags = format!("{} --metadata={}", self.mdadm, self.version);
        if self.spares > 0 {
            flags.push_str(&format!(" --spare-devices={}", self.spares));
        }
        if self.clean {
            flags.push_str(" --assume-clean");
        }
        if let Some(sectors) = self.data_offset {
            flags.push_str(&format!(" --data-offset={}K", sectors / 2));
        }
        if let Some(sectors) = self.size {
            flags.push_str(&format!(" --size={}K", sectors / 2));
        }
        // The log device behind the others: before them mdadm 4.2 counts it as the first member when it chooses the one
        // that is rebuilt.
        format!(
            "mdadm --create /dev/md{0} --run --homehost=host --name=j {flags} {1} --write-journal {2} 2>/dev/null &&
                exit 1\n\
             mdadm --stop /dev/md{0} 2>/dev/null || true\n",
            section + 1,
            devices(section, self.numbers(), Some(LOG)),
            device(section, LOG)
        )
    }

    /// The same array, made here.
    fn plan(&self, theirs: &[Superblock], first: u32) -> Vec<Made> {
        let new = |one: &Superblock| Device {
            sectors: Sectors((MEMBER / SECTOR) as u64),
            id: one.device,
        };
        let (members, others) = theirs.split_at(self.members());
        let name = members[0].name();
        let plan = Creation {
            version: self.version,
            devices: members.iter().map(|one| Some(new(one))).collect(),
            spares: others[..self.spares].iter().map(new).collect(),
            journal: Some(LogDevice { device: new(&others[self.spares]), first }),
            assume_clean: self.clean,
            data_offset: self.data_offset.map(Sectors),
            size: self.size.map(Sectors),
            array: members[0].array,
            name,
            now: members[0].created,
            ..creation(self.layout.parse().unwrap(), (MEMBER / SECTOR) as u64)
        };
        let plan = plan.plan().unwrap();
        plan.members.into_iter().flatten().chain(plan.spares).chain(plan.journal).collect()
    }
}

#[test]
fn a_new_journal_is_what_mdadm_writes() {
    let Some(guest) = guest_or_skip("a_new_journal_is_what_mdadm_writes") else { return };
    let cases = Extent::from_environment().choose(CASES.to_vec(), SAMPLE);
    let guest = guest.cut(&vec![MEMBER as u64; cases.len()]);
    let files = Files::new("md-journal-made", LOG + 1, cases.len(), 0);
    let create: String =
        cases.iter().enumerate().map(|(section, case)| case.create(section)).collect();
    let script =
        format!("busybox rmmod raid456\necho /bin/false >/proc/sys/kernel/modprobe\n{create}");
    files.run(&guest, &script).expect_success("mdadm makes arrays that are not started");
    for (section, case) in cases.iter().enumerate() {
        let theirs = files.read(section, case.numbers());
        let superblocks: Vec<Superblock> =
            theirs.iter().map(|bytes| looked(bytes).superblock().unwrap().clone()).collect();
        let log = superblocks.last().unwrap();
        let ring = &theirs.last().unwrap()[log.data_offset as usize * SECTOR..];
        let first = JournalBlock::parse(ring, &log.array, 0).expect("the first block").sequence;
        let ours = case.plan(&superblocks, u32::try_from(first).unwrap());
        for (number, (made, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let mut bytes = made_image(made, (MEMBER / SECTOR) as u64);
            // mdadm leaves what stands in a list of bad blocks that is not used yet; here it is empty.
            let list = made.superblock.beside(made.superblock.bad_blocks.offset).unwrap();
            bytes[list.bytes() as usize..][..4096].fill(0);
            let differs = (0..MEMBER).find(|at| bytes[*at] != theirs[*at]);
            assert_eq!(differs, None, "{case:?}: the first byte of device {number} that differs");
        }
    }
}
