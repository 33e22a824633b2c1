//! Programs that others wrote, as clients of our server and servers of our client. Those that are not installed are
//! skipped by name.

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command as Program, Stdio};

use raidlab_nbd::{Command, ErrorCode, Extent, Framing};
use support::{Client, Directory, Memory, able, wanted};

/// Whether a program is there; says so if not, past the test harness, which would keep the output of a test that
/// passes.
fn has(program: &str, test: &str) -> bool {
    let found = Program::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        let line = format!("skipped: {test}: {program} is not installed\n");
        std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
    }
    found
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Program::new(program).args(arguments).output().expect("starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {text}{errors}");
    text
}

fn uri(socket: &Path, name: &str) -> String {
    format!("nbd+unix:///{name}?socket={}", socket.display())
}

#[test]
fn nbdinfo_sees_what_is_offered() {
    if !has("nbdinfo", "nbdinfo_sees_what_is_offered") {
        return;
    }
    let directory = Directory::new("nbdinfo");
    let mut export = able("disk", 1 << 20);
    export.blocks.minimum = 512;
    let memory = Memory::new(vec![export, able("other", 4096)]);
    let socket = memory.listen(&directory.0);
    memory.bytes[0].lock().unwrap()[8192..12_288].fill(3);
    let seen = run("nbdinfo", &[&uri(&socket, "disk")]);
    for line in [
        "protocol: newstyle-fixed without TLS, using structured packets",
        "export-size: 1048576",
        "description: 1048576 bytes of memory",
        "base:allocation",
        "x-test:odd",
        "can_cache: true",
        "can_df: true",
        "can_fast_zero: true",
        "can_flush: true",
        "can_fua: true",
        "can_multi_conn: true",
        "can_trim: true",
        "can_zero: true",
        "is_read_only: false",
        "block_size_minimum: 512",
        "block_size_preferred: 4096",
    ] {
        assert!(seen.contains(line), "{line} in {seen}");
    }
    let list = run("nbdinfo", &["--list", &uri(&socket, "")]);
    assert!(list.contains("export=\"disk\"") && list.contains("export=\"other\""), "{list}");
    let map = run("nbdinfo", &["--map", &uri(&socket, "disk")]);
    let fields: Vec<Vec<&str>> =
        map.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    assert_eq!(
        fields,
        [["0", "8192", "3"], ["8192", "4096", "0"], ["12288", "1036288", "3"]],
        "{map}"
    );
}

/// Several connections at once, many requests on each, holes among them.
#[test]
fn nbdcopy_copies_both_ways() {
    if !has("nbdcopy", "nbdcopy_copies_both_ways") {
        return;
    }
    let directory = Directory::new("nbdcopy");
    let size = 8 << 20;
    let memory = Memory::new(vec![able("", size as u64)]);
    let socket = memory.listen(&directory.0);
    let mut data: Vec<u8> = (0..size).map(|n: usize| (n * 7 + n / 4096) as u8).collect();
    data[1 << 20..3 << 20].fill(0);
    let (from, to) = (directory.0.join("from"), directory.0.join("to"));
    std::fs::write(&from, &data).unwrap();
    run("nbdcopy", &["--flush", from.to_str().unwrap(), &uri(&socket, "")]);
    assert!(*memory.bytes[0].lock().unwrap() == data);
    run("nbdcopy", &[&uri(&socket, ""), to.to_str().unwrap()]);
    assert!(std::fs::read(&to).unwrap() == data);
    let asked = memory.asked.lock().unwrap();
    assert!(asked.iter().any(|request| matches!(request.command, Command::BlockStatus { .. })));
    assert!(asked.iter().any(|request| request.command == Command::Flush));
}

#[test]
fn qemu_img_converts_and_compares_and_qemu_io_writes_zeroes_and_discards() {
    if !has("qemu-img", "qemu_img_converts_and_compares_and_qemu_io_writes_zeroes_and_discards")
        || !has("qemu-io", "qemu_img_converts_and_compares_and_qemu_io_writes_zeroes_and_discards")
    {
        return;
    }
    let directory = Directory::new("qemu");
    let size = 4 << 20;
    let memory = Memory::new(vec![able("disk", size as u64)]);
    let socket = memory.listen(&directory.0);
    let data: Vec<u8> = (0..size).map(|n: usize| (n / 65_536 % 3) as u8).collect();
    let file = directory.0.join("file");
    std::fs::write(&file, &data).unwrap();
    let (file, disk) = (file.to_str().unwrap(), uri(&socket, "disk"));
    run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", file, &disk]);
    assert!(*memory.bytes[0].lock().unwrap() == data);
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", file, &disk]);
    let commands = [
        "write -P 9 -f 8192 4096",
        "write -z 0 65536",
        "write -zu 1M 64k",
        "discard 2M 1M",
        "flush",
    ];
    let mut arguments = vec!["-f", "raw"];
    commands.iter().for_each(|command| arguments.extend(["-c", *command]));
    arguments.push(&disk);
    let said = run("qemu-io", &arguments);
    assert!(!said.contains("failed"), "{said}");
    let bytes = memory.bytes[0].lock().unwrap();
    assert!(bytes[..65_536].iter().all(|byte| *byte == 0), "zeroes over what was written");
    let asked = memory.asked.lock().unwrap();
    let seen = |wanted: &dyn Fn(&raidlab_nbd::Request) -> bool| asked.iter().any(wanted);
    assert!(seen(&|one| one.fua && one.command == Command::Write), "FUA");
    assert!(seen(&|one| one.command == Command::WriteZeroes { no_hole: true, fast: false }));
    assert!(seen(&|one| one.command == Command::WriteZeroes { no_hole: false, fast: false }));
    assert!(seen(&|one| one.command == Command::Trim));
}

/// A server that is killed when dropped.
struct Served(Child);

impl Served {
    /// Starts it, and waits until its socket is there.
    fn start(program: &str, arguments: &[&str], socket: &Path) -> Self {
        let mut program = Program::new(program);
        let child = program.args(arguments).stdin(Stdio::null()).spawn().expect("starts");
        let mut served = Self(child);
        while std::os::unix::net::UnixStream::connect(socket).is_err() {
            assert!(served.0.try_wait().expect("asked").is_none(), "it ended");
            std::thread::yield_now();
        }
        served
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// What our client does with a server of 1 MiB.
fn try_client(socket: &Path, name: &str) {
    for framing in [Framing::Simple, Framing::Structured, Framing::Extended] {
        let mut client = Client::connect(socket, wanted(name, framing)).unwrap();
        // Neither peer has extended headers in the versions of Debian 12: the client takes what there is.
        assert!(
            client.chosen.framing == framing.min(Framing::Structured)
                || client.chosen.framing == framing
        );
        assert_eq!(client.chosen.size, 1 << 20);
        let data: Vec<u8> = (0..20_480).map(|n| (n % 253) as u8).collect();
        client.ask(Command::Trim, 0, 1 << 20, &[]).unwrap();
        client.ask(Command::Write, 512, 20_480, &data).unwrap();
        let read = Command::Read { whole: false };
        assert_eq!(client.ask(read, 512, 20_480, &[]).unwrap().0, data);
        client.ask(Command::WriteZeroes { no_hole: false, fast: false }, 4096, 4096, &[]).unwrap();
        assert_eq!(client.ask(read, 4096, 4096, &[]).unwrap().0, [0; 4096]);
        client.ask(Command::Flush, 0, 0, &[]).unwrap();
        assert_eq!(client.ask(read, (1 << 20) - 512, 1024, &[]), Err(ErrorCode::Invalid));
        if framing != Framing::Simple {
            let (_, status) =
                client.ask(Command::BlockStatus { one: false }, 0, 1 << 20, &[]).unwrap();
            let sum: u64 = status[0].1.iter().map(|extent: &Extent| extent.len).sum();
            assert!(sum > 0 && status[0].1.iter().all(|extent| extent.flags <= 3), "{status:?}");
        }
    }
}

#[test]
fn our_client_talks_to_nbdkit() {
    if !has("nbdkit", "our_client_talks_to_nbdkit") {
        return;
    }
    let directory = Directory::new("nbdkit");
    let socket = directory.0.join("socket");
    let path = socket.to_str().unwrap();
    let _served = Served::start("nbdkit", &["-f", "-U", path, "memory", "1M"], &socket);
    try_client(&socket, "");
}

#[test]
fn our_client_talks_to_qemu_nbd() {
    if !has("qemu-nbd", "our_client_talks_to_qemu_nbd") {
        return;
    }
    let directory = Directory::new("qemu-nbd");
    let (socket, image) = (directory.0.join("socket"), directory.0.join("image"));
    std::fs::write(&image, vec![0; 1 << 20]).unwrap();
    let (path, image) = (socket.to_str().unwrap(), image.to_str().unwrap());
    let arguments =
        ["-f", "raw", "-t", "-k", path, "-x", "disk", "-e", "4", "--discard=unmap", image];
    let _served = Served::start("qemu-nbd", &arguments, &socket);
    try_client(&socket, "disk");
    let missing = Client::connect(&socket, wanted("none", Framing::Structured)).err().unwrap();
    assert!(missing.contains("no export of that name"), "{missing}");
}
