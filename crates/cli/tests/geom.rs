//! `raidlab array` on disks of FreeBSD's gmirror, graid3, gstripe and gconcat. What lies where on them these tests
//! write byte by byte, by the documented rule of each class; that labels are those of the table
//! `crates/metadata/tests/geom.rs` shows.

mod stacked;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Stdio};

use raidlab_core::{Layout, Level, Sectors};
use raidlab_metadata::geom::{Creation, Kind, Label};

use crate::nbd_client::Client;
use crate::root::can_mount;
use crate::support::{Ran, Scratch, command, raidlab};

const KIB: usize = 1024;

/// What an array of these tests is made of.
struct Shape {
    kind: Kind,
    /// Bytes of each device.
    sizes: Vec<usize>,
    /// Bytes of a sector of each device.
    sector: usize,
    stripe: usize,
}

impl Shape {
    fn new(kind: Kind, sizes: &[usize]) -> Self {
        Self { kind, sizes: sizes.to_vec(), sector: 512, stripe: 4 * KIB }
    }

    fn room(&self) -> Vec<usize> {
        self.sizes.iter().map(|size| size - self.sector).collect()
    }

    /// Bytes that an array has, by the rule of the class.
    fn bytes(&self) -> usize {
        let (room, count) = (self.room(), self.sizes.len());
        let least = *room.iter().min().unwrap();
        match self.kind {
            Kind::Mirror => least / self.sector * self.sector,
            Kind::Raid3 => {
                let logical = self.sector * (count - 1);
                least * (count - 1) / logical * logical
            }
            Kind::Stripe => least / self.stripe * self.stripe * count,
            Kind::Concat => room.iter().sum(),
        }
    }

    /// The device and byte of each copy of a byte of the array, without parity.
    fn places(&self, at: usize) -> Vec<(usize, usize)> {
        let count = self.sizes.len();
        match self.kind {
            Kind::Mirror => (0..count).map(|device| (device, at)).collect(),
            Kind::Raid3 => {
                let logical = self.sector * (count - 1);
                let within = at % logical;
                vec![(within / self.sector, at / logical * self.sector + within % self.sector)]
            }
            Kind::Stripe => {
                let unit = at / self.stripe;
                vec![(unit % count, unit / count * self.stripe + at % self.stripe)]
            }
            Kind::Concat => {
                let mut at = at;
                for (device, room) in self.room().into_iter().enumerate() {
                    if at < room {
                        return vec![(device, at)];
                    }
                    at -= room;
                }
                unreachable!("behind the end")
            }
        }
    }

    /// Contents, and what is on the devices, without labels: where nothing of the array is lies something else.
    fn filled(&self) -> (Vec<u8>, Vec<Vec<u8>>) {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as u8
        };
        let contents: Vec<u8> = (0..self.bytes()).map(|_| next()).collect();
        let devices = self.devices(&contents);
        (contents, devices)
    }

    /// Devices with these contents.
    fn devices(&self, contents: &[u8]) -> Vec<Vec<u8>> {
        let mut devices: Vec<Vec<u8>> = self.sizes.iter().map(|size| vec![0xee; *size]).collect();
        for (at, byte) in contents.iter().enumerate() {
            for (device, place) in self.places(at) {
                devices[device][place] = *byte;
            }
        }
        if self.kind == Kind::Raid3 {
            let (parity, data) = devices.split_last_mut().unwrap();
            for at in 0..self.bytes() / data.len() {
                parity[at] = data.iter().fold(0, |sum, device| sum ^ device[at]);
            }
        }
        devices
    }

    fn layout(&self) -> Layout {
        let members = self.sizes.len() as u16;
        match self.kind {
            Kind::Mirror => Layout::new(Level::Raid1, members),
            Kind::Raid3 => Layout::new(Level::Raid3, members),
            Kind::Stripe => {
                Layout::new(Level::Raid0, members).with_chunk(Sectors(self.stripe as u64 / 512))
            }
            Kind::Concat => Layout::new(Level::Linear, members),
        }
    }

    fn labels(&self, name: &str) -> Vec<Label> {
        let device = |(number, size): (u32, &usize)| (Sectors(*size as u64 / 512), number);
        let creation = Creation {
            layout: self.layout(),
            name: name.into(),
            id: 77,
            devices: (0..).zip(&self.sizes).map(device).collect(),
            sector: Sectors(self.sector as u64 / 512),
        };
        creation.labels().expect("can be").labels
    }
}

struct Set {
    scratch: Scratch,
    contents: Vec<u8>,
    files: Vec<String>,
}

impl Set {
    /// Devices with contents and labels, of which `change` makes what is to be tested.
    fn new(name: &str, shape: &Shape, change: impl Fn(usize, &mut Label)) -> Self {
        let scratch = Scratch::new(name);
        let (contents, devices) = shape.filled();
        let labels = shape.labels("gm0");
        let file = |(number, (mut bytes, mut label)): (usize, (Vec<u8>, Label))| {
            change(number, &mut label);
            let at = bytes.len() - shape.sector;
            bytes[at..at + 512].copy_from_slice(&label.bytes());
            text(&scratch.file(&format!("disk{number}"), bytes))
        };
        let files = devices.into_iter().zip(labels).enumerate().map(file).collect();
        Self { contents, files, scratch }
    }

    fn path(&self, name: &str) -> String {
        text(&self.scratch.path().join(name))
    }

    fn without(&self, lost: &[usize]) -> Vec<String> {
        let there = self.files.iter().enumerate().filter(|(number, _)| !lost.contains(number));
        there.map(|(_, file)| file.clone()).collect()
    }

    fn array(&self, verb: &str, files: &[String], flags: &[&str]) -> Ran {
        let words = ["array", verb].into_iter().chain(flags.iter().copied()).map(str::to_owned);
        raidlab(words.chain(files.iter().cloned()))
    }

    /// What is exported of these, where it can be.
    fn export(&self, files: &[String], flags: &[&str]) -> Result<Vec<u8>, String> {
        let out = self.path("out");
        let _ = fs::remove_file(&out);
        let mut words = files.to_vec();
        words.push(out.clone());
        let ran = self.array("export-file", &words, flags);
        match ran.code {
            Some(0) => Ok(fs::read(&out).unwrap()),
            _ => Err(ran.stderr),
        }
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("text").to_owned()
}

fn shapes() -> Vec<(Shape, usize)> {
    let mut shapes = vec![
        (Shape::new(Kind::Mirror, &[64 * KIB, 65 * KIB]), 1),
        (Shape::new(Kind::Mirror, &[48 * KIB; 3]), 2),
        (Shape::new(Kind::Raid3, &[48 * KIB; 3]), 1),
        (Shape::new(Kind::Raid3, &[40 * KIB, 33 * KIB, 40 * KIB, 40 * KIB, 40 * KIB]), 1),
        (Shape::new(Kind::Stripe, &[64 * KIB, 50 * KIB, 64 * KIB]), 0),
        (Shape { stripe: 64 * KIB, ..Shape::new(Kind::Stripe, &[300 * KIB; 2]) }, 0),
        (Shape::new(Kind::Concat, &[20 * KIB, 64 * KIB, 33 * KIB]), 0),
        (Shape::new(Kind::Mirror, &[64 * KIB]), 0),
    ];
    for kind in Kind::ALL {
        let large = Shape { sector: 4 * KIB, ..Shape::new(kind, &[64 * KIB, 68 * KIB, 64 * KIB]) };
        shapes.push((large, [2, 1, 0, 0][kind as usize]));
    }
    shapes
}

#[test]
fn arrays_are_read_with_every_loss_that_they_survive() {
    for (number, (shape, survives)) in shapes().into_iter().enumerate() {
        let set = Set::new(&format!("geom-{number}"), &shape, |_, _| {});
        let before: Vec<_> = set.files.iter().map(|file| fs::read(file).unwrap()).collect();
        let holds = |files: &[String]| {
            let read = set.export(files, &[]).unwrap_or_else(|why| panic!("{number}: {why}"));
            assert!(read == set.contents, "{number}, {files:?}: {} bytes", read.len());
        };
        holds(&set.files);
        holds(&set.files.iter().rev().cloned().collect::<Vec<_>>());
        for one in 0..shape.sizes.len() {
            for other in one..shape.sizes.len() {
                let files = set.without(&[one, other]);
                let lost = shape.sizes.len() - files.len();
                if lost <= survives {
                    holds(&files);
                } else if !files.is_empty() {
                    let why = set.export(&files, &[]).unwrap_err();
                    assert!(why.contains("cannot be read without member"), "{number}: {why}");
                    assert!(why.contains(&one.to_string()) || shape.kind == Kind::Mirror, "{why}");
                }
            }
        }
        let after: Vec<_> = set.files.iter().map(|file| fs::read(file).unwrap()).collect();
        assert!(before == after, "reading changed a disk");
    }
}

/// Copies that differ: what FreeBSD would keep is read.
#[test]
fn what_was_being_written_is_read_from_who_is_believed() {
    let shape = Shape::new(Kind::Mirror, &[64 * KIB; 3]);
    let spoiled = |name, change: &dyn Fn(usize, &mut Label), right: usize| {
        let set = Set::new(name, &shape, change);
        for (number, file) in set.files.iter().enumerate().filter(|(number, _)| *number != right) {
            let file = File::options().write(true).open(file).unwrap();
            file.write_all_at(&[number as u8; 9000], 700).unwrap();
        }
        assert!(set.export(&set.files, &[]).unwrap() == set.contents, "{name}");
        set
    };
    // All are dirty, and the last has the highest priority.
    let all = spoiled("geom-dirty", &|_, label| label.device_flags = 1, 2);
    let told = all.array("status", &all.files, &[]).good().stdout;
    assert!(told.contains("all members there; not stopped cleanly"), "{told}");
    // One is not.
    spoiled("geom-some-dirty", &|number, label| label.device_flags = u64::from(number != 0), 0);
    spoiled("geom-stale", &|number, label| label.syncid = 1 + u32::from(number == 1), 1);
    let set =
        spoiled("geom-synchronizing", &|number, label| label.device_flags = [2, 8, 0][number], 2);
    let told = set.array("status", &set.files, &[]).good().stdout;
    for what in
        ["being synchronised", "deactivated, as its label says", "degraded, without members 1, 2"]
    {
        assert!(told.contains(what), "{what} is not in {told}");
    }
    // Parity that may be wrong is not used unasked.
    let shape = Shape::new(Kind::Raid3, &[48 * KIB; 3]);
    let set = Set::new("geom-raid3-dirty", &shape, |_, label| label.device_flags = 1);
    assert!(set.export(&set.files, &[]).unwrap() == set.contents);
    assert!(
        set.export(&set.without(&[1]), &[])
            .unwrap_err()
            .contains("was not stopped cleanly and member 1")
    );
    assert!(set.export(&set.without(&[1]), &["--allow-dirty-degraded"]).unwrap() == set.contents);
}

#[test]
fn what_is_on_disks_is_told() {
    let set = Set::new("geom-told", &Shape::new(Kind::Mirror, &[64 * KIB; 2]), |number, label| {
        label.device_flags = number as u64;
        label.provider = "ada1p2".into();
    });
    let told = set.array("examine", &set.files, &[]).good().stdout;
    for line in [
        "           Magic : GEOM::MIRROR\n",
        "            Name : gm0\n",
        "              ID : 77\n",
        "      Media Size : 65024\n",
        "         Balance : load\n",
        "    Device Flags : DIRTY\n",
        "        Provider : ada1p2\n",
    ] {
        assert!(told.contains(line), "{line} is not in {told}");
    }
    let told = set.array("examine", &set.files, &["--json"]).good().stdout;
    let json: serde_json::Value = serde_json::from_str(&told).unwrap();
    let one = &json["members"][1]["geom"];
    assert_eq!(
        (&one["class"], &one["syncid"], &one["sector"]),
        (&"gmirror".into(), &1.into(), &127.into())
    );
    let told = set.array("examine", &set.files, &["--scan"]).good().stdout;
    assert_eq!(told, "# gmirror gm0 id=77 num-devices=2 given=2\n");
    let told = set.array("status", &set.files, &[]).good().stdout;
    assert!(
        told.starts_with("gm0: raid1(2), 65024B, gmirror, ID 77, genid 0, syncid 1\n"),
        "{told}"
    );
    let told = set.array("status", &set.files, &["--json"]).good().stdout;
    let json: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&json["geom"]["class"], &json["clean"]), (&"gmirror".into(), &true.into()));
}

#[test]
fn disks_that_do_not_fit_are_named_with_what_is_wrong() {
    let shape = Shape::new(Kind::Stripe, &[64 * KIB; 2]);
    let set = Set::new("geom-wrong", &shape, |_, _| {});
    let why = |files: &[String]| set.export(files, &[]).unwrap_err();
    // Given twice: neither is believed.
    let twice = [set.files[0].clone(), set.files[1].clone(), set.files[1].clone()];
    assert!(why(&twice).contains("disk1 (member 1): one of several that say they are member 1"));
    // Cut off, and behind another partition.
    let bytes = fs::read(&set.files[1]).unwrap();
    let cut = text(&set.scratch.file("cut", &bytes[..bytes.len() - 4096]));
    let told = why(&[set.files[0].clone(), cut]);
    assert!(
        told.contains("without member 1") && told.contains("cut: no GEOM label in its last sector"),
        "{told}"
    );
    let disk = text(&set.scratch.file("whole", [&vec![0; 8192][..], &bytes].concat()));
    let told = why(&[set.files[0].clone(), disk.clone()]);
    assert!(told.contains("from byte 8192 on, which is what must be given"), "{told}");
    let ran = set.array("examine", &[disk], &[]);
    assert!(
        ran.code == Some(1)
            && ran.stderr.contains("byte 73216: its gstripe label is that of a device"),
        "{ran:?}"
    );
    // Torn.
    let mirror = Set::new("geom-torn", &Shape::new(Kind::Mirror, &[64 * KIB; 2]), |_, _| {});
    let file = File::options().write(true).open(&mirror.files[0]).unwrap();
    file.write_all_at(&[9], 64 * KIB as u64 - 512 + 50).unwrap();
    assert!(mirror.export(&mirror.files, &[]).unwrap() == mirror.contents, "by the other");
    let told = mirror.export(&mirror.files[..1], &[]).unwrap_err();
    assert!(told.contains("none of the devices has a GEOM label that can be used"), "{told}");
    assert!(told.contains("disk0: the MD5 of its gmirror label is wrong"), "{told}");
    // Of two arrays, and one of md.
    let both = [&set.files[..], &mirror.files[1..]].concat();
    let read = set.export(&both, &[]).expect("most are of one");
    assert!(read == set.contents);
    let even = [&set.files[..1], &mirror.files[1..]].concat();
    let told = why(&even);
    assert!(
        told.contains("several arrays, gstripe gm0 and gmirror gm0: give those of one"),
        "{told}"
    );
}

/// Mirrors, striped: as FreeBSD has raid10.
#[test]
fn a_stripe_over_mirrors_is_read_without_a_disk_of_each() {
    let mirror = Shape::new(Kind::Mirror, &[64 * KIB; 2]);
    let inner = mirror.bytes();
    let stripe = Shape::new(Kind::Stripe, &[inner; 2]);
    let (contents, mut providers) = stripe.filled();
    let scratch = Scratch::new("geom-stacked");
    let mut files = Vec::new();
    for (number, label) in stripe.labels("st0").into_iter().enumerate() {
        providers[number][inner - 512..].copy_from_slice(&label.bytes());
        for (copy, mut label) in mirror.labels(&format!("gm{number}")).into_iter().enumerate() {
            label.id = number as u32;
            let bytes = [&providers[number][..], &label.bytes()].concat();
            files.push(text(&scratch.file(&format!("disk{number}{copy}"), bytes)));
        }
    }
    let set = Set { scratch, contents, files };
    for lost in [&[][..], &[0], &[3, 0]] {
        assert!(set.export(&set.without(lost), &[]).unwrap() == set.contents, "{lost:?}");
    }
    let told = set.array("status", &set.files, &[]).good().stdout;
    for line in
        ["st0: raid0(2) chunk=4K", "member 0  gm0\n", "gm1: raid1(2), 65024B, gmirror, ID 1"]
    {
        assert!(told.contains(line), "{line} is not in {told}");
    }
    let told = set.export(&set.without(&[2, 3]), &[]).unwrap_err();
    assert!(told.contains("cannot be read without member 1"), "{told}");
    // It is written without a disk of each, too, which labels of each mirror know from then on.
    let (there, mut set) = (set.without(&[3, 0]), set);
    let (run, mut client, _) = Run::serve(&set, &there, &["--write", "--run"]);
    let data = vec![0x5a; 9 * KIB];
    client.write(3 * KIB as u64, &data);
    run.stop(&set, client);
    set.contents[3 * KIB..12 * KIB].copy_from_slice(&data);
    assert!(set.export(&there, &[]).unwrap() == set.contents);
    assert!(set.export(&set.files, &[]).unwrap() == set.contents, "who missed it is given, too");
}

/// A running array; killed with the test.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Run {
    /// Serves these devices of a set to NBD clients; the first line of what it prints is there when it does.
    fn serve(set: &Set, files: &[String], flags: &[&str]) -> (Self, Client, String) {
        let (nbd, socket) = (set.path("nbd"), set.path("s"));
        let address = format!("unix:{nbd}");
        let mut serve = command();
        serve.args(["array", "serve", "--socket", &socket, "--nbd", &address]).args(flags);
        serve.args(files).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut run = Self(serve.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(run.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let name = line.split(':').next().unwrap_or_default();
        let client = Client::unix(Path::new(&nbd), name);
        (run, client, line)
    }

    /// Has it stop in order.
    fn stop(mut self, set: &Set, client: Client) {
        drop(client);
        raidlab(["array", "stop", "--disconnect", &set.path("s")]).good();
        assert!(self.0.wait().unwrap().success());
    }
}

#[test]
fn an_array_is_served() {
    let shape = Shape::new(Kind::Raid3, &[48 * KIB; 5]);
    let set = Set::new("geom-served", &shape, |_, _| {});
    let (run, mut client, line) = Run::serve(&set, &set.without(&[2]), &[]);
    assert!(line.contains("raid3(5)"), "{line:?}");
    // In sectors of the array.
    for (at, len) in [(0, 2048), (2048, 2048), (6144, 8192), (0, 190 * KIB)] {
        let wanted = &set.contents[at..at + len];
        assert!(client.read(at as u64, len as u64) == wanted, "{at}, {len}");
    }
    run.stop(&set, client);
}

/// Stripes and concatenations, written by clients to their very ends: data are where the class has them, labels and
/// what is no array's are as before, and nobody else gets the devices meanwhile.
#[test]
fn arrays_without_redundancy_are_written() {
    for (number, (shape, _)) in shapes().into_iter().enumerate() {
        if shape.kind.is_redundant() && shape.sizes.len() > 1 {
            continue;
        }
        let mut set = Set::new(&format!("geom-written-{number}"), &shape, |_, _| {});
        let before: Vec<_> = set.files.iter().map(|file| fs::read(file).unwrap()).collect();
        let (run, mut client, _) = Run::serve(&set, &set.files, &["--write"]);
        let socket = set.path("other");
        let other = set.array("assemble", &set.files, &["--write", "--socket", &socket]);
        assert!(other.code == Some(1) && other.stderr.contains("has locked it"), "{other:?}");
        let length = set.contents.len();
        for (at, len, byte) in [(0, 512, 1), (1536, 9 * 512, 2), (length - 20 * KIB, 20 * KIB, 3)] {
            let data = vec![byte; len];
            client.write(at as u64, &data);
            set.contents[at..at + len].copy_from_slice(&data);
        }
        client.flush();
        run.stop(&set, client);
        let mut expected = before;
        for (at, byte) in set.contents.iter().enumerate() {
            for (device, place) in shape.places(at) {
                expected[device][place] = *byte;
            }
        }
        let after: Vec<_> = set.files.iter().map(|file| fs::read(file).unwrap()).collect();
        assert!(after == expected, "{number}: something else has changed");
        assert!(set.export(&set.files, &[]).unwrap() == set.contents);
    }
}

/// What is written with an overlay is there again with it, and on no device.
#[test]
fn an_overlay_keeps_what_is_written_to_a_stripe() {
    let shape = Shape::new(Kind::Stripe, &[64 * KIB; 2]);
    let set = Set::new("geom-overlay", &shape, |_, _| {});
    let before: Vec<_> = set.files.iter().map(|file| fs::read(file).unwrap()).collect();
    let overlay = set.path("overlay");
    let flags = ["--overlay", &overlay];
    let (run, mut client, line) = Run::serve(&set, &set.files, &flags);
    assert!(line.contains("overlay"), "{line:?}");
    let (end, data) = (set.contents.len() - 3 * KIB, vec![0x5a; 3 * KIB]);
    client.write(end as u64, &data);
    run.stop(&set, client);
    let (run, mut client, _) = Run::serve(&set, &set.files, &flags);
    assert!(client.read(end as u64, 3 * KIB as u64) == data);
    assert!(client.read(0, end as u64) == set.contents[..end]);
    run.stop(&set, client);
    let after: Vec<_> = set.files.iter().map(|file| fs::read(file).unwrap()).collect();
    assert!(before == after, "an overlay changed a disk");
    // It is for these in this order.
    let turned: Vec<_> = set.files.iter().rev().cloned().collect();
    let socket = set.path("none");
    let flags = ["--overlay", &overlay, "--socket", &socket];
    set.array("assemble", &turned, &flags).refused(&["in another order"]);
    let missing = set.array("assemble", &set.without(&[1]), &["--write", "--socket", &socket]);
    assert!(missing.stderr.contains("cannot be read without member 1"), "{missing:?}");
}

/// What a running array says of itself.
fn status(socket: &str) -> serde_json::Value {
    let told = raidlab(["array", "status", socket, "--json"]).good().stdout;
    serde_json::from_str(&told).unwrap()
}

fn labels(files: &[String]) -> Vec<(u32, u64)> {
    let label = |file: &String| {
        let bytes = fs::read(file).unwrap();
        let label = &bytes[bytes.len() - 512..];
        let label = Label::parse(Kind::of(label).unwrap(), label).unwrap();
        (label.syncid, label.device_flags)
    };
    files.iter().map(label).collect()
}

/// An array that runs, for reading or writing, has the identity that its labels have.
#[test]
fn a_running_array_has_the_identity_of_its_labels() {
    for kind in [Kind::Mirror, Kind::Raid3, Kind::Stripe, Kind::Concat] {
        let shape = Shape::new(kind, &[64 * KIB; 3]);
        let set = Set::new("geom-identity", &shape, |_, _| {});
        let bytes = fs::read(&set.files[0]).unwrap();
        let id = Label::parse(kind, &bytes[bytes.len() - 512..]).unwrap().id;
        let known = format!("{}, ID {id}", kind.name());
        let text = set.array("status", &set.files, &[]).good().stdout;
        assert!(text.contains(&known), "{text}");
        for flags in [&[][..], &["--write"]] {
            let (run, client, line) = Run::serve(&set, &set.files, flags);
            assert!(line.contains(&known), "{line}");
            let text = raidlab(["array", "status", &set.path("s")]).good().stdout;
            assert!(text.contains(&known) && !text.contains("UUID"), "{text}");
            let document = status(&set.path("s"));
            assert_eq!(document["geom"]["class"], kind.name());
            assert_eq!(document["geom"]["id"], id);
            run.stop(&set, client);
        }
    }
}

/// Written, killed in the midst, gone on with, degraded, written without a disk, and given it back.
#[test]
fn arrays_with_redundancy_are_written() {
    for (number, (kind, count)) in
        [(Kind::Mirror, 2), (Kind::Mirror, 3), (Kind::Raid3, 5)].into_iter().enumerate()
    {
        let shape = Shape::new(kind, &vec![64 * KIB; count]);
        let mut set = Set::new(&format!("geom-both-{number}"), &shape, |_, _| {});
        let socket = set.path("s");
        let write = |set: &mut Set, client: &mut Client, at: usize, byte: u8| {
            let data = vec![byte; 8 * KIB];
            client.write(at as u64, &data);
            client.flush();
            set.contents[at..at + data.len()].copy_from_slice(&data);
        };
        let (run, mut client, _) = Run::serve(&set, &set.files, &["--write"]);
        assert_eq!(labels(&set.files), vec![(1, 0); count], "nothing is written yet");
        write(&mut set, &mut client, 0, 1);
        assert_eq!(labels(&set.files), vec![(1, 1); count], "dirty before the first write");
        drop(run);
        assert!(set.export(&set.files, &[]).unwrap() == set.contents);
        for (name, socket) in [("nbd", set.path("nbd")), ("s", set.path("s"))] {
            assert!(fs::remove_file(socket).is_ok(), "{name} is left of who was killed");
        }
        // It is made consistent, and goes on.
        let (run, mut client, _) = Run::serve(&set, &set.files, &["--write"]);
        while !status(&socket)["consistent"].as_bool().unwrap() {}
        assert!(client.read(0, set.contents.len() as u64) == set.contents);
        // A disk is taken out: the others know it before anything is answered.
        raidlab(["array", "fail", &socket, "1"]).good();
        raidlab(["array", "remove", &socket, "1"]).good();
        let end = set.contents.len() - 8 * KIB;
        write(&mut set, &mut client, end, 2);
        run.stop(&set, client);
        // Members of a mirror are counted from whom the others were made like.
        let stale = if kind == Kind::Mirror { count - 2 } else { 1 };
        for (number, (syncid, flags)) in labels(&set.files).into_iter().enumerate() {
            let is_right = if number == stale { syncid == 1 } else { (syncid, flags) == (2, 0) };
            assert!(is_right, "{kind:?}, disk {number}: syncid {syncid}, flags {flags}");
        }
        assert!(set.export(&set.files, &[]).unwrap() == set.contents, "{kind:?}");
        // Without it nobody need be asked: labels say that it was out.
        let (run, mut client, _) = Run::serve(&set, &set.without(&[stale]), &["--write"]);
        write(&mut set, &mut client, 16 * KIB, 3);
        let refused = raidlab(["array", "add", &socket, &set.files[stale]]);
        let told = &refused.stderr;
        assert!(refused.code == Some(3) && told.contains("is a disk of this g"), "{told}");
        raidlab(["array", "add", "--overwrite", &socket, &set.files[stale]]).good();
        while status(&socket)["incomplete"] != 0 || status(&socket)["missing"] != 0 {}
        assert!(raidlab(["array", "check", &socket]).good().stdout.contains("0 sectors differ"));
        let what = raidlab(["array", "replace", "--overwrite", &socket, "0", &set.path("fresh")]);
        assert!(what.code != Some(0), "there is no such file");
        let fresh = text(&set.scratch.file("fresh", vec![0; 64 * KIB]));
        let what = raidlab(["array", "replace", &socket, "0", &fresh]);
        assert!(what.stderr.contains("labels of GEOM cannot say"), "{}", what.stderr);
        let what = raidlab(["array", "add", &socket, &fresh]);
        assert!(what.stderr.contains("only arrays of md with redundancy have spares"), "{what:?}");
        run.stop(&set, client);
        assert_eq!(labels(&set.files), vec![(3, 0); count], "{kind:?}");
        // Any of them can be lost.
        for lost in 0..count {
            assert!(set.export(&set.without(&[lost]), &[]).unwrap() == set.contents, "{lost}");
        }
    }
}

/// A filesystem on a drive that writes 4 KiB together.
struct Mounted {
    node: String,
    at: String,
}

impl Mounted {
    fn new(scratch: &Scratch) -> Self {
        let image = scratch.file("drive", []);
        File::options().write(true).open(&image).unwrap().set_len(64 << 20).unwrap();
        let at = text(&scratch.directory("mounted"));
        let words = ["--find", "--show", "--sector-size", "4096", &text(&image)];
        let node = tool("losetup", &words);
        let mounted = Self { node, at };
        tool("mkfs.ext4", &["-q", "-b", "4096", &mounted.node]);
        tool("mount", &[&mounted.node, &mounted.at]);
        mounted
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let detach = ["--detach", &self.node];
        for (program, words) in [("umount", &[&*self.at][..]), ("losetup", &detach)] {
            // What is left is named by whoever looks for it.
            let _ = std::process::Command::new(program).args(words).status();
        }
    }
}

fn tool(program: &str, words: &[&str]) -> String {
    let output = std::process::Command::new(program).args(words).output().unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Files whose sectors are smaller than what is written past the page cache, opened at the start and added.
#[test]
fn files_of_small_sectors_are_written_where_blocks_are_larger() {
    const TEST: &str = "files_of_small_sectors_are_written_where_blocks_are_larger";
    if !can_mount(TEST, &["losetup", "mkfs.ext4", "mount", "umount"]) {
        return;
    }
    let shape = Shape::new(Kind::Mirror, &[67 * 512; 2]);
    let mut set = Set::new("geom-4k", &shape, |_, _| {});
    let mounted = Mounted::new(&set.scratch);
    let moved = |name: &str, bytes: Vec<u8>| {
        let file = format!("{}/{name}", mounted.at);
        fs::write(&file, bytes).unwrap();
        file
    };
    let disks = set.files.iter().enumerate();
    set.files =
        disks.map(|(number, file)| moved(&number.to_string(), fs::read(file).unwrap())).collect();
    let socket = set.path("s");
    let (run, mut client, _) = Run::serve(&set, &set.files, &["--write"]);
    let end = set.contents.len() - 512;
    client.write(end as u64, &[7; 512]);
    set.contents[end..].fill(7);
    raidlab(["array", "fail", &socket, "1"]).good();
    raidlab(["array", "remove", &socket, "1"]).good();
    let fresh = moved("fresh", vec![0; 67 * 512]);
    raidlab(["array", "add", &socket, &fresh]).good();
    while status(&socket)["incomplete"] != 0 || status(&socket)["missing"] != 0 {}
    run.stop(&set, client);
    assert!(set.export(&[fresh], &[]).unwrap() == set.contents);
}

/// A disk that is missing may have the newest data: only labels that say otherwise, or who gives the array, know
/// better.
#[test]
fn a_missing_disk_is_asked_for() {
    for (number, (kind, count)) in [(Kind::Mirror, 2), (Kind::Raid3, 3)].into_iter().enumerate() {
        let shape = Shape::new(kind, &vec![64 * KIB; count]);
        let set = Set::new(&format!("geom-missing-{number}"), &shape, |_, _| {});
        let there = set.without(&[1]);
        let refused = set.array("assemble", &there, &["--write", "--socket", &set.path("s")]);
        assert!(refused.code == Some(1) && refused.stderr.contains("--run"), "{refused:?}");
        let (run, mut client, _) = Run::serve(&set, &there, &["--write", "--run"]);
        client.write(0, &[9; 2048]);
        run.stop(&set, client);
        let syncids: Vec<u32> = labels(&set.files).iter().map(|one| one.0).collect();
        assert_eq!(syncids, [&[2, 1][..], &[2, 1, 2]][number], "{kind:?}");
        // What stands behind a label says it in words, too.
        let seen = raidlab(["array", "examine", &there[0]]).good().stdout;
        let missing = ["Missing : 1\n", "Missing : 1, number 1\n"][number];
        assert!(seen.contains(missing) && seen.contains("Epoch : "), "{kind:?}: {seen}");
        assert!(set.export(&set.files, &[]).unwrap()[..2048] == [9; 2048], "{kind:?}");
    }
}

/// Labels of a mirror and of parity change in the overlay: what happened to members there is known when it goes on.
#[test]
fn an_overlay_keeps_what_becomes_of_members() {
    for (number, (kind, count)) in [(Kind::Mirror, 2), (Kind::Raid3, 3)].into_iter().enumerate() {
        let shape = Shape::new(kind, &vec![64 * KIB; count]);
        // Not stopped cleanly.
        let set =
            Set::new(&format!("geom-overlaid-{number}"), &shape, |_, one| one.device_flags = 1);
        let before: Vec<_> = set.files.iter().map(|file| fs::read(file).unwrap()).collect();
        let (overlay, socket) = (set.path("overlay"), set.path("s"));
        let flags = ["--overlay", &overlay];
        let (run, mut client, _) = Run::serve(&set, &set.files, &flags);
        while !status(&socket)["consistent"].as_bool().unwrap() {}
        raidlab(["array", "fail", &socket, "1"]).good();
        let data = vec![0x5a; 8 * KIB];
        client.write(4096, &data);
        run.stop(&set, client);
        let (run, mut client, _) = Run::serve(&set, &set.files, &flags);
        assert!(client.read(4096, 8 * KIB as u64) == data, "{kind:?}");
        let json = status(&socket);
        assert_eq!((&json["missing"], &json["mode"]), (&1.into(), &"overlay".into()), "{json}");
        run.stop(&set, client);
        let after: Vec<_> = set.files.iter().map(|file| fs::read(file).unwrap()).collect();
        assert!(before == after, "{kind:?}: an overlay changed a disk");
    }
}

#[test]
fn new_labels_make_arrays() {
    let scratch = Scratch::new("geom-create");
    let files: Vec<String> =
        (0..3).map(|number| text(&scratch.file(&number.to_string(), vec![0; 64 * KIB]))).collect();
    let create = |layout: &str, flags: &[&str]| {
        let words = ["array", "create", layout, "--metadata", "geom"]
            .into_iter()
            .chain(flags.iter().copied());
        raidlab(words.map(str::to_owned).chain(files.iter().cloned()))
    };
    let told = create("raid3", &["--name", "nas", "--dry-run"]).good().stdout;
    assert!(
        told.starts_with("nas: raid3(3), graid3, ID ") && told.contains("would be made"),
        "{told}"
    );
    assert!(files.iter().all(|file| fs::read(file).unwrap().iter().all(|byte| *byte == 0)));
    for (layout, flags, words) in [
        ("raid5", &[][..], "GEOM has no raid5"),
        (
            "raid1",
            &["--uuid", "00112233445566778899aabbccddeeff"],
            "--uuid: labels of GEOM have no room",
        ),
        ("raid1", &["--bitmap", "internal"], "--bitmap: labels of GEOM have no room for it"),
        ("raid1", &["--name", "a-name-of-16-lett"], "is no name of a GEOM array"),
        ("linear chunk=64K", &[], "gconcat has no chunk"),
    ] {
        create(layout, flags).refused(&[words]);
    }
    for (layout, shown) in [
        ("raid1", "array: raid1(3), 65024B, gmirror"),
        ("raid3", "array: raid3(3), 127KiB, graid3"),
        ("raid0 chunk=16K", "array: raid0(3) chunk=16K, 144KiB, gstripe"),
        ("linear", "array: linear(3), 195072B, gconcat"),
    ] {
        create(layout, &["--overwrite", "--assume-clean"]).good();
        let words = ["array", "status"].map(str::to_owned).into_iter().chain(files.clone());
        let told = raidlab(words).good().stdout;
        assert!(told.starts_with(shown), "{told}");
    }
    let refused = create("raid1", &[]);
    assert!(
        refused.code == Some(3) && refused.stderr.contains("something stands on it"),
        "{refused:?}"
    );
    create("raid1", &["--overwrite"]).refused(&["--assume-clean says that it is"]);
}
