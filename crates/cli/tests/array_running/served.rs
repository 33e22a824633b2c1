//! Arrays served to NBD clients: administration under them, ends, several arrays, killed servers, and the
//! programs
//! that others wrote.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{Harness, MIB, Run, WHOLE};
use raidlab_nbd::Framing;

use crate::nbd_client::{Client, READ, ZERO};
use crate::nbd_writer::{BLOCK, BLOCKS, Model};
use crate::support::{Ran, command, raidlab};

fn address(harness: &Harness) -> String {
    format!("unix:{}", harness.path("nbd"))
}

fn serve(harness: &Harness, devices: &[&str], flags: &[&str]) -> Run {
    let address = address(harness);
    let flags: Vec<&str> = ["--nbd", &address].iter().chain(flags).copied().collect();
    harness.assemble(devices, &flags)
}

fn client(harness: &Harness) -> Client {
    Client::unix(Path::new(&harness.path("nbd")), "array")
}

/// Stops an array whose clients have gone.
fn stop(harness: &Harness, run: Run) {
    harness.until("\"clients\": 0");
    harness.stop(run);
}

/// The commands work as they do with a served file; the array goes on under its clients.
#[test]
fn an_array_is_administered_while_nbd_clients_use_it() {
    let flags = &["--bitmap", "internal", "--assume-clean"];
    let harness = Harness::new("nbd-admin", "raid6 chunk=64K", 4, flags);
    let run = serve(&harness, &["2", "0", "1", "3"], &["--write"]);
    let mut client = client(&harness);
    let pattern: Vec<u8> = (0..3 * MIB).map(|byte| (byte / 509) as u8).collect();
    let (first, rest) = pattern.split_at(MIB as usize);
    client.write(0, first);
    harness.ask("fail", &["1"]).good();
    client.write(MIB, &rest[..MIB as usize]);
    assert_eq!(client.states("raidlab:redundancy", 0, MIB), [(0, 1)], "degraded");
    harness.ask("remove", &["1"]).good();
    assert!(harness.ask("add", &[&harness.path("1")]).good().stdout.contains("member 1 again"));
    harness.until(WHOLE);
    harness.ask("replace", &["2", &harness.path("x")]).good();
    client.write(2 * MIB, &rest[MIB as usize..]);
    harness.until(&format!("\"path\": {:?}", harness.path("x")));
    assert!(harness.ask("check", &[]).good().stdout.contains("0 sectors differ"));
    assert!(client.read(0, 3 * MIB) == pattern);
    assert!(harness.status().contains("\"clients\": 1"));
    let told = harness.ask("status", &["--metrics"]).good().stdout;
    for line in [
        "raidlab_members{array=\"array\",state=\"in service\"} 4\n",
        "raidlab_nbd_clients{array=\"array\"} 1\n",
        "raidlab_nbd_requests_total{array=\"array\",command=\"write\"} 3\n",
        "raidlab_nbd_written_bytes_total{array=\"array\"} 3145728\n",
    ] {
        assert!(told.contains(line), "{line} is not in {told}");
    }
    // Not under somebody who uses it, unless that is wanted.
    let refused = harness.ask("stop", &[]);
    assert!(
        refused.code == Some(3) && refused.stderr.contains("1 NBD client is connected"),
        "{refused:?}"
    );
    harness.ask("stop", &["--disconnect"]).good();
    let mut run = run;
    assert!(run.0.wait().unwrap().success());
    assert!(!Path::new(&harness.path("nbd")).exists(), "the socket is gone");
    let devices = ["0", "1", "x", "3"].map(|one| harness.path(one));
    let found = raidlab(["array", "status"].map(str::to_owned).iter().chain(&devices));
    assert!(found.good().stdout.contains("all members there; stopped cleanly"));
}

/// Ctrl-C and SIGTERM: answered, marked clean, sockets gone, status 0.
#[test]
fn a_signal_ends_it_in_order() {
    for signal in ["INT", "TERM"] {
        let harness = Harness::new("nbd-signal", "raid5 chunk=64K", 3, &["--assume-clean"]);
        let mut run = serve(&harness, &["0", "1", "2"], &["--write"]);
        let mut client = client(&harness);
        client.write(0, &[7; 4096]);
        let pid = run.0.id().to_string();
        assert!(
            Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap().success()
        );
        assert!(run.0.wait().unwrap().success(), "SIG{signal}");
        assert!(client.answer().is_err(), "the connection is closed");
        for socket in ["nbd", "s"] {
            assert!(!Path::new(&harness.path(socket)).exists(), "{socket} is gone");
        }
        let devices = ["0", "1", "2"].map(|one| harness.path(one));
        let found = raidlab(["array", "status"].map(str::to_owned).iter().chain(&devices));
        assert!(found.good().stdout.contains("stopped cleanly"));
    }
}

/// Devices of two arrays: two exports of one socket, each with commands of its own.
#[test]
fn devices_of_several_arrays_are_served_as_several_exports() {
    let harness = Harness::new("nbd-two", "raid1", 2, &["--assume-clean", "--name", "one"]);
    let more = ["c", "d", "e"].map(|name| harness.path(name));
    for file in &more {
        fs::write(file, vec![0; 8 * MIB as usize]).unwrap();
    }
    let create = ["array", "create", "raid5 chunk=64K"].map(str::to_owned);
    let flags = ["--assume-clean", "--name", "two"].map(str::to_owned);
    raidlab(create.iter().chain(&more).chain(&flags)).good();
    let devices = ["0", "c", "1", "d", "e"];
    let refused = harness.assembling(&devices, &["--nbd", &address(&harness)]);
    let mut refused = refused;
    let refused = refused.stderr(Stdio::piped()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--socket belongs to one array"));
    let mut run = command();
    run.env("XDG_RUNTIME_DIR", harness.scratch.path());
    let told_of = UnixDatagram::bind(harness.path("notify")).unwrap();
    told_of.set_nonblocking(true).unwrap();
    run.env("NOTIFY_SOCKET", harness.path("notify"));
    run.args(["array", "serve", "--write", "--nbd", &address(&harness)]);
    run.args(devices.map(|device| harness.path(device)));
    let mut child = run.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap());
    let mut run = Run(child);
    let mut text = String::new();
    while !(text.contains("one?socket=") && text.contains("two?socket=")) {
        assert!(told.read_line(&mut text).unwrap() > 0, "{text}");
    }
    let socket = harness.path("nbd");
    let (mut one, mut two) =
        (Client::unix(Path::new(&socket), "one"), Client::unix(Path::new(&socket), "two"));
    one.write(0, &[1; 4096]);
    two.write(0, &[2; 4096]);
    assert_eq!((one.read(0, 4096), two.read(0, 4096)), (vec![1; 4096], vec![2; 4096]));
    drop(one);
    let ask = |verb: &str, name: &str, flags: &[&str]| {
        let mut ask = command();
        ask.env("XDG_RUNTIME_DIR", harness.scratch.path()).args(["array", verb, name]).args(flags);
        let ran: Ran = ask.output().unwrap().into();
        ran.good().stdout
    };
    assert!(ask("status", "one", &[]).contains("raid1(2)"));
    ask("stop", "one", &["--disconnect"]);
    assert_eq!(two.read(0, 4096), vec![2; 4096], "the other goes on");
    assert_eq!(messages(&told_of), ["READY=1"], "the service does not stop with one of its arrays");
    ask("stop", "two", &["--disconnect"]);
    assert!(run.0.wait().unwrap().success());
    assert_eq!(messages(&told_of), ["STOPPING=1"]);
}

/// What systemd has been told since.
fn messages(told: &UnixDatagram) -> Vec<String> {
    let mut buffer = [0; 100];
    let one = || told.recv(&mut buffer).map(|len| String::from_utf8_lossy(&buffer[..len]).into());
    std::iter::repeat_with(one).map_while(Result::ok).collect()
}

/// Whatever is wrong with an address is said before the array is touched.
#[test]
fn addresses_that_cannot_be_are_told_first() {
    let harness = Harness::new("nbd-address", "raid1", 2, &[]);
    let devices = ["0", "1"];
    let before = harness.bytes(&devices);
    let taken = harness.path("taken");
    let _listener = UnixListener::bind(&taken).unwrap();
    fs::write(harness.path("file"), "kept").unwrap();
    let long = format!("unix:/tmp/{}", "x".repeat(120));
    for (address, code, words) in [
        (format!("unix:{taken}"), 3, "in use"),
        (format!("unix:{}", harness.path("file")), 2, "no socket"),
        (long, 2, "107 bytes at most, and this one 125"),
        (format!("unix:{}", harness.path("none/s")), 1, "No such file"),
        ("tcp:0.0.0.0:0".into(), 3, "neither encryption"),
        ("/tmp/x".into(), 2, "not unix:PATH"),
        ("systemd".into(), 2, "LISTEN_PID"),
    ] {
        let mut run = harness.assembling(&devices, &["--write", "--nbd", &address]);
        let ran: Ran = run.stderr(Stdio::piped()).output().unwrap().into();
        assert_eq!(ran.code, Some(code), "{address}: {ran:?}");
        assert!(ran.stderr.contains(words), "{address}: {ran:?}");
    }
    assert!(harness.bytes(&devices) == before);
    assert_eq!(fs::read_to_string(harness.path("file")).unwrap(), "kept");
    // What a killed server left is taken over; only the owner may connect.
    let run = serve(&harness, &devices, &["--write"]);
    let mode = fs::metadata(harness.path("nbd")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(run);
    assert!(Path::new(&harness.path("nbd")).exists(), "a killed server leaves its socket");
    let run = serve(&harness, &devices, &["--write"]);
    client(&harness).read(0, 512);
    harness.ask("stop", &["--disconnect"]).good();
    drop(run);
}

/// systemd hands the socket over, and is told when the array runs and when it ends.
#[test]
fn systemd_hands_sockets_over_and_is_told() {
    let harness = Harness::new("nbd-systemd", "raid1", 2, &["--assume-clean"]);
    let told = UnixDatagram::bind(harness.path("notify")).unwrap();
    // As systemd does it: the socket as descriptor 3, and the process told that it is for it.
    let script = "import os, socket, sys\n\
        s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n\
        os.dup2(s.fileno(), 3)\n\
        os.set_inheritable(3, sys.argv[1] != 'closed')\n\
        os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()))\n\
        os.execv(sys.argv[2], sys.argv[2:])\n";
    let begin = |socket: &str| {
        let mut run = Command::new("python3");
        run.args(["-c", script, socket, env!("CARGO_BIN_EXE_raidlab")]);
        run.args(["array", "serve", "--write", "--nbd", "systemd", "--socket", &harness.path("s")]);
        run.args(["0", "1"].map(|device| harness.path(device)));
        run.current_dir(harness.scratch.path()).env("NOTIFY_SOCKET", harness.path("notify"));
        run
    };
    if !has("python3", "systemd_hands_sockets_over_and_is_told") {
        return;
    }
    // What is not open, or belongs to the process, is not taken for it.
    let ran: Ran = begin("closed").output().unwrap().into();
    assert!(ran.code == Some(2) && ran.stderr.contains("descriptor 3 is no socket"), "{ran:?}");
    let mut run = begin(&harness.path("nbd"));
    let mut run = Run(run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    told.set_read_timeout(Some(super::PATIENCE)).unwrap();
    let mut buffer = [0; 100];
    let len = told.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..len], b"READY=1");
    client(&harness).write(0, &[1; 512]);
    harness.ask("stop", &["--disconnect"]).good();
    let len = told.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..len], b"STOPPING=1");
    assert!(run.0.wait().unwrap().success());
    assert!(Path::new(&harness.path("nbd")).exists(), "systemd's socket is systemd's");
}

/// Servers are killed under clients that write; what was answered is there, also when a member is lost
/// with the
/// server. (A killed process loses no page of the system's, so all that was answered counts, flushed or not.)
#[test]
fn what_was_answered_survives_a_killed_server() {
    let is_full = std::env::var("RAIDLAB_FULL").as_deref() == Ok("1");
    for (layout, members, mode, hole) in [
        ("raid1", 2, "--bitmap=internal", None),
        ("raid10", 4, "--bitmap=internal", None),
        ("raid5 chunk=64K", 3, "--bitmap=internal", Some(256)),
        // Nothing but the sectors that were being written, and nobody has to allow it.
        ("raid5 chunk=64K", 3, "--ppl", Some(1)),
        ("raid6 chunk=64K", 4, "--bitmap=none", Some(256)),
    ] {
        let kills = if is_full { 250 } else { 5 };
        kill_under_a_writer((layout, members, mode), hole, kills);
    }
}

fn kill_under_a_writer(
    (layout, members, mode): (&str, usize, &str),
    hole: Option<u64>,
    kills: u64,
) {
    let flags = [mode, "--assume-clean"];
    let allowed = if mode == "--ppl" { &[][..] } else { &["--allow-dirty-degraded"] };
    let harness = Harness::new("nbd-killed", layout, members, &flags);
    let names: Vec<String> = (0..members).map(|number| number.to_string()).collect();
    let mut random = Random(members as u64);
    let mut model = Model::new(true);
    for kill in 0..=kills {
        let lost = (kill % 3 == 1).then(|| random.below(members as u64) as usize);
        let there = names.iter().enumerate().filter(|(number, _)| Some(*number) != lost);
        let there: Vec<&str> = there.map(|(_, name)| name.as_str()).collect();
        let run = serve(&harness, &there, &[&["--write", "--run"], allowed].concat());
        let mut clients = [client(&harness), client(&harness)];
        let bytes = clients[0].read(0, BLOCKS * BLOCK);
        let told = format!("{layout} {mode}, kill {kill}, without {lost:?}");
        for torn in model.check(&bytes, lost.and(hole), &told) {
            clients[0].write(torn as u64 * 512, &[0; 512]);
        }
        if let Some(lost) = lost {
            let device = harness.path(&names[lost]);
            // By the bitmap it comes back as it is, if the server was not killed while that told less than it should;
            // otherwise as a fresh one.
            let back = harness.ask("add", &[&device]);
            match back.code {
                Some(3) => drop(harness.ask("add", &[&device, "--overwrite"]).good()),
                _ => drop(back.good()),
            }
            harness.until(WHOLE);
        }
        if kill == kills {
            drop(clients);
            harness.until("\"work\": null");
            assert!(harness.ask("check", &[]).good().stdout.contains("0 sectors differ"));
            harness.ask("stop", &["--disconnect"]).good();
            println!("{layout} {mode}, {}", model.counts);
            break;
        }
        write_until_killed(&mut model, &mut clients, run, 40 + random.below(200), &mut random);
    }
}

/// Writes, and kills the server with requests under way.
fn write_until_killed(
    model: &mut Model,
    clients: &mut [Client; 2],
    mut run: Run,
    requests: u64,
    random: &mut Random,
) {
    let mut asked = [Vec::new(), Vec::new()];
    for _ in 0..requests {
        let which = random.below(2) as usize;
        let (client, asked) = (&mut clients[which], &mut asked[which]);
        if asked.len() < 8 && random.below(3) > 0 {
            asked.extend(model.ask(client, |end| random.below(end)));
        } else if !asked.is_empty() {
            let (cookie, answer) = client.answer().unwrap();
            answer.good();
            let position = asked.iter().position(|(one, _)| *one == cookie).unwrap();
            model.told(&asked.swap_remove(position).1);
        }
    }
    for client in clients.iter_mut() {
        client.send().unwrap();
    }
    run.0.kill().unwrap();
    run.0.wait().unwrap();
    // What was answered before the end counts, too.
    for (client, mut asked) in clients.iter_mut().zip(asked) {
        while let Ok((cookie, answer)) = client.answer() {
            answer.good();
            let position = asked.iter().position(|(one, _)| *one == cookie).unwrap();
            model.told(&asked.swap_remove(position).1);
        }
    }
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % end
    }
}

fn skip(test: &str, program: &str) {
    let line = format!("skipped: {test}: {program} is not installed\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

fn has(program: &str, test: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        skip(test, program);
    }
    found
}

fn peer(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("starts");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {text}");
    text
}

/// An array that peers use, and a file with what they write.
fn for_peers(name: &str) -> (Harness, Run, String, String) {
    let harness = Harness::new(name, "raid6 chunk=64K", 4, &["--assume-clean"]);
    let run = serve(&harness, &["0", "1", "2", "3"], &["--write"]);
    let uri = format!("nbd+unix:///array?socket={}", harness.path("nbd"));
    let size = client(&harness).chosen.size as usize;
    let mut data: Vec<u8> = (0..size).map(|byte| (byte * 7 + byte / 4093) as u8).collect();
    data[2 * MIB as usize..5 * MIB as usize].fill(0);
    let file = harness.path("data");
    fs::write(&file, data).unwrap();
    (harness, run, uri, file)
}

#[test]
fn nbdcopy_and_nbdinfo_use_an_array() {
    let test = "nbdcopy_and_nbdinfo_use_an_array";
    if !has("nbdcopy", test) || !has("nbdinfo", test) {
        return;
    }
    let (harness, run, uri, file) = for_peers("nbd-nbdcopy");
    peer("nbdcopy", &["--flush", &file, &uri]);
    harness.ask("fail", &["0"]).good();
    let back = harness.path("back");
    peer("nbdcopy", &["--connections=4", &uri, &back]);
    assert!(fs::read(&back).unwrap() == fs::read(&file).unwrap(), "with a member lost");
    let told = peer("nbdinfo", &[&uri]);
    for line in [
        "using structured packets",
        "raidlab:redundancy",
        "can_multi_conn: true",
        "can_fua: true",
        "can_fast_zero: true",
        "is_read_only: false",
        "block_size_maximum: 33554432",
    ] {
        assert!(told.contains(line), "{line} is not in {told}");
    }
    let map = peer("nbdinfo", &["--map=raidlab:redundancy", &uri]);
    assert_eq!(map.split_whitespace().nth(2), Some("1"), "degraded everywhere: {map}");
    let list = peer("nbdinfo", &["--list", &uri]);
    assert!(list.contains("export=\"array\"") && list.contains("raid6(4)"), "{list}");
    stop(&harness, run);
}

#[test]
fn qemu_uses_an_array() {
    let test = "qemu_uses_an_array";
    if !has("qemu-img", test) || !has("qemu-io", test) {
        return;
    }
    let (harness, run, uri, file) = for_peers("nbd-qemu");
    let raw = ["-f", "raw"];
    peer("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", &file, &uri]);
    peer("qemu-img", &["compare", "-f", "raw", "-F", "raw", &file, &uri]);
    let bench =
        ["bench", "-f", "raw", "-w", "-c", "2000", "-d", "32", "-s", "4096", "--pattern=17"];
    peer("qemu-img", &[&bench[..], &[&uri]].concat());
    let commands = [
        "read -P 17 0 1M",
        "write -P 9 -f 8192 4096",
        "write -z 0 65536",
        "write -zu 1M 256k",
        "discard 2M 1M",
        "flush",
        "read -P 0 0 65536",
        "read -P 0 1M 256k",
    ];
    let mut arguments = raw.to_vec();
    commands.iter().for_each(|command| arguments.extend(["-c", *command]));
    arguments.push(&uri);
    let told = peer("qemu-io", &arguments);
    assert!(!told.contains("failed"), "{told}");
    assert!(harness.ask("check", &[]).good().stdout.contains("0 sectors differ"));
    stop(&harness, run);
}

/// fio verifies every block that it wrote, over several connections, while a member is lost and comes back.
#[test]
fn fio_verifies_an_array_that_loses_a_member() {
    let test = "fio_verifies_an_array_that_loses_a_member";
    if !has("fio", test) {
        return;
    }
    if !peer("fio", &["--enghelp"]).contains("nbd") {
        return skip(test, "fio's engine nbd");
    }
    let (harness, run, uri, _) = for_peers("nbd-fio");
    let uri = format!("--uri={uri}");
    let mut fio = Command::new("fio");
    fio.args(["--name=verify", "--ioengine=nbd", &uri, "--rw=randwrite", "--bs=4k", "--size=4m"]);
    fio.args(["--iodepth=32", "--verify=crc32c", "--verify_backlog=64", "--verify_state_save=0"]);
    fio.args(["--numjobs=2", "--offset_increment=4m", "--loops=4", "--output-format=terse"]);
    let mut fio = fio.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    harness.until("\"clients\": 2");
    harness.ask("fail", &["2"]).good();
    harness.ask("remove", &["2"]).good();
    harness.ask("add", &[&harness.path("x")]).good();
    let ended = fio.wait().unwrap();
    let mut told = String::new();
    fio.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(ended.success(), "{told}");
    harness.until(WHOLE);
    assert!(harness.ask("check", &[]).good().stdout.contains("0 sectors differ"));
    stop(&harness, run);
}

/// nbdkit's client sees what is written past it.
#[test]
fn nbdkit_passes_an_array_on() {
    let test = "nbdkit_passes_an_array_on";
    if !has("nbdkit", test) {
        return;
    }
    let (harness, run, uri, _) = for_peers("nbd-nbdkit");
    let socket = harness.path("passed");
    let child =
        Command::new("nbdkit").args(["-f", "-U", &socket, "nbd", &format!("uri={uri}")]).spawn();
    let passed = Killed(child.unwrap());
    let begun = std::time::Instant::now();
    while UnixStream::connect(&socket).is_err() {
        assert!(begun.elapsed() < super::PATIENCE);
    }
    let mut through = Client::unix(Path::new(&socket), "");
    through.write(4096, &[0x3c; 8192]);
    through.flush();
    assert_eq!(client(&harness).once(READ, 4096, 8192, false, &[]).good().data, [0x3c; 8192]);
    drop((through, passed));
    harness.ask("stop", &["--disconnect"]).good();
    drop(run);
}

/// What a script asks of libnbd in Python: many requests at once on two connections, against memory; what is told of
/// blocks; requests that are refused, by their errors.
const SCRIPT: &str = r#"
import errno, os, random
h.add_meta_context("base:allocation")
h.add_meta_context("raidlab:redundancy")
other = nbd.NBD()
for client in [h, other]:
    client.connect_uri(os.environ["URI"])
assert h.can_multi_conn() and h.can_fua() and h.can_zero() and h.can_trim() and not h.is_read_only()
size = h.get_size()
minimum, maximum = h.get_block_size(nbd.SIZE_MINIMUM), h.get_block_size(nbd.SIZE_MAXIMUM)
model = bytearray(size)
choose = random.Random(27)
for step in range(40):
    under_way = []
    # Those under way at once do not meet.
    for part in choose.sample(range(16), 8):
        at = part * (size // 16 // minimum * minimum)
        length = minimum * choose.randrange(1, 129)
        client = choose.choice([h, other])
        what = choose.choice(["read", "write", "fua", "zero"])
        if what == "read":
            data = nbd.Buffer(length)
            cookie = client.aio_pread(data, at)
            under_way.append((client, cookie, data, model[at:at + length]))
            continue
        if what == "zero":
            data = bytes(length)
            cookie = client.aio_zero(length, at)
        else:
            data = choose.randbytes(length)
            cookie = client.aio_pwrite(data, at, flags=nbd.CMD_FLAG_FUA if what == "fua" else 0)
        model[at:at + length] = data
        under_way.append((client, cookie, data, None))
    for client, cookie, data, expected in under_way:
        while not client.aio_command_completed(cookie):
            client.poll(-1)
        assert expected is None or data.to_bytearray() == expected, step
    other.flush()
assert h.pread(size, 0) == model
told = {}
def extents(context, at, entries, error):
    told.setdefault(context, []).extend(entries)
h.block_status(size, 0, extents)
redundancy = told["raidlab:redundancy"]
assert redundancy == [size, 0], redundancy
at = 0
for length, flags in zip(*[iter(told["base:allocation"])] * 2):
    assert flags != nbd.STATE_HOLE | nbd.STATE_ZERO or not any(model[at:at + length]), at
    at += length
h.set_strict_mode(0)
for number, wrong in [
    ("EINVAL", lambda: h.pread(minimum, size)),
    ("ENOSPC", lambda: h.pwrite(bytes(minimum), size)),
    ("EINVAL", lambda: h.pread(100, 3)),
    ("EINVAL", lambda: h.pread(maximum + minimum, 0)),
]:
    try:
        wrong()
    except nbd.Error as error:
        assert error.errno == number, error
    else:
        raise AssertionError(number)
assert h.pread(minimum, 0) == model[:minimum]
for client in [h, other]:
    client.shutdown()
"#;

#[test]
fn a_script_of_nbdsh_uses_an_array() {
    let test = "a_script_of_nbdsh_uses_an_array";
    if !has("nbdsh", test) {
        return;
    }
    let (harness, run, uri, _) = for_peers("nbd-nbdsh");
    let mut script = Command::new("nbdsh");
    // Debian's Python has the library, whichever comes first elsewhere.
    script.args(["-c", SCRIPT]).env("URI", uri).env("PATH", "/usr/bin:/bin");
    let ran: Ran = script.output().unwrap().into();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(harness.ask("check", &[]).good().stdout.contains("0 sectors differ"));
    stop(&harness, run);
}

/// Its block driver is the one that virtual machines have: what is asked of it comes to the array, and back.
#[test]
fn the_storage_daemon_of_qemu_passes_an_array_on() {
    let test = "the_storage_daemon_of_qemu_passes_an_array_on";
    if !has("qemu-storage-daemon", test) {
        return;
    }
    let (harness, run, _, _) = for_peers("nbd-storage-daemon");
    let socket = harness.path("passed");
    let from = harness.path("nbd");
    let node = format!(
        "driver=nbd,node-name=array,export=array,discard=unmap,server.type=unix,server.path={from}"
    );
    let server = format!("addr.type=unix,addr.path={socket}");
    let export = "type=nbd,id=out,node-name=array,name=out,writable=on";
    let arguments = ["--blockdev", &node, "--nbd-server", &server, "--export", export];
    let passed = Killed(Command::new("qemu-storage-daemon").args(arguments).spawn().unwrap());
    let begun = std::time::Instant::now();
    // Its socket is there before its export.
    let mut through = loop {
        let stream = UnixStream::connect(&socket).map_err(|error| error.to_string());
        match stream.and_then(|stream| Client::over(stream, "out", Framing::Structured)) {
            Ok(client) => break client,
            Err(error) => assert!(begun.elapsed() < super::PATIENCE, "{error}"),
        }
    };
    let mut direct = client(&harness);
    let pattern: Vec<u8> = (0..MIB).map(|byte| (byte / 253) as u8).collect();
    through.write(4096, &pattern);
    harness.ask("fail", &["3"]).good();
    through.write(2 * MIB, &pattern);
    through.flush();
    assert!(direct.read(4096, MIB) == pattern && direct.read(2 * MIB, MIB) == pattern);
    through.once(ZERO, 2 * MIB, MIB / 2, true, &[]).good();
    direct.write(3 * MIB, &[5; 4096]);
    assert!(direct.read(2 * MIB, MIB / 2).iter().all(|byte| *byte == 0));
    assert_eq!(through.read(3 * MIB, 4096), [5; 4096]);
    through.once(raidlab_nbd::Command::Trim, 2 * MIB, MIB, false, &[]).good();
    assert!(through.read(4096, MIB) == pattern);
    drop((through, direct, passed));
    harness.ask("stop", &["--disconnect"]).good();
    drop(run);
}

/// Killed when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is wrong with TLS is said before the array is touched; keys shared with clients are refused by name.
#[test]
fn tls_that_cannot_be_is_told_first() {
    let harness = Harness::new("nbd-no-tls", "raid1", 2, &[]);
    fs::write(harness.path("empty"), "").unwrap();
    let empty = harness.path("empty");
    let what = if cfg!(feature = "tls") { "no certificate" } else { "--features tls" };
    for (flags, words) in [
        (&["--tls-psk", &empty][..], "keys shared with clients are not supported"),
        (&["--tls-cert", &empty], "--tls-key"),
        (&["--tls-cert", &empty, "--tls-key", &empty], what),
    ] {
        let mut run = harness.assembling(&["0", "1"], &["--nbd", &address(&harness)]);
        let ran = run.args(flags).stderr(Stdio::piped()).output().unwrap();
        let ran: Ran = ran.into();
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(words), "{ran:?}");
    }
}

/// libnbd with certificates reads and writes; without, with others, or without TLS nobody learns anything.
#[cfg(feature = "tls")]
#[test]
fn clients_with_certificates_use_an_array_by_tls() {
    let test = "clients_with_certificates_use_an_array_by_tls";
    if !has("openssl", test) || !has("nbdcopy", test) || !has("nbdinfo", test) {
        return;
    }
    let harness = Harness::new("nbd-tls", "raid5 chunk=64K", 3, &["--assume-clean"]);
    for authority in ["ca", "other"] {
        certify(&harness, authority);
    }
    let file = |name: &str| harness.path(name);
    let wrong =
        ["--tls-cert", &file("ca/server-cert.pem"), "--tls-key", &file("other/server-key.pem")];
    let mut run = harness.assembling(&["0", "1", "2"], &["--nbd", "tcp::0"]);
    let ran = run.args(wrong).stderr(Stdio::piped()).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.code() == Some(2) && told.contains("other/server-key.pem"), "{told}");
    let (chain, key, clients) =
        (file("ca/server-cert.pem"), file("ca/server-key.pem"), file("ca/ca-cert.pem"));
    let flags = ["--write", "--nbd", "tcp:localhost:0"];
    let tls = ["--tls-cert", &chain, "--tls-key", &key, "--tls-client-ca", &clients];
    let run = harness.assemble(&["0", "1", "2"], &[&flags[..], &tls].concat());
    let status = harness.status();
    let port = status.split("nbds://").nth(1).expect("an address").split('/').next().unwrap();
    let port = port.rsplit(':').next().unwrap();
    let uri = |scheme: &str, authority: &str| {
        let certificates = harness.path(authority);
        format!("{scheme}://localhost:{port}/array?tls-certificates={certificates}")
    };
    let size = 10 << 20;
    let data: Vec<u8> = (0..size).map(|byte: usize| (byte / 311) as u8).collect();
    fs::write(file("data"), &data).unwrap();
    peer("nbdcopy", &["--flush", &file("data"), &uri("nbds", "ca")]);
    peer("nbdcopy", &[&uri("nbds", "ca"), &file("back")]);
    assert!(fs::read(file("back")).unwrap()[..size] == data);
    assert!(peer("nbdinfo", &[&uri("nbds", "ca")]).contains("with TLS"));
    for (scheme, authority) in [("nbds", "other"), ("nbd", "ca")] {
        let refused = Command::new("nbdinfo").arg(uri(scheme, authority)).output().unwrap();
        assert!(!refused.status.success(), "{scheme} {authority}");
        assert!(!String::from_utf8_lossy(&refused.stdout).contains("export-size"));
    }
    assert!(peer("nbdinfo", &["--size", &uri("nbds", "ca")]).trim().parse::<u64>().is_ok());
    stop(&harness, run);
}

/// Makes an authority, and certificates of a server and a client that it has signed, under the names that
/// GnuTLS looks for.
#[cfg(feature = "tls")]
fn certify(harness: &Harness, authority: &str) {
    let directory = harness.path(authority);
    fs::create_dir(&directory).unwrap();
    let script = "set -e; cd \"$0\"; rsa='-newkey rsa:2048 -nodes'\n\
        openssl req -x509 $rsa -keyout ca-key.pem -out ca-cert.pem -subj /CN=authority -days 30\n\
        for who in server client; do\n\
        openssl req $rsa -keyout $who-key.pem -out $who.csr -subj /CN=localhost\n\
        printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\\nextendedKeyUsage=serverAuth,clientAuth\\n' > $who.ext\n\
        openssl x509 -req -in $who.csr -CA ca-cert.pem -CAkey ca-key.pem -CAcreateserial -out $who-cert.pem \\\n\
        -days 30 -extfile $who.ext\n\
        done";
    peer("bash", &["-c", script, &directory]);
}
