//! The kernel's own NBD client, on one machine with the server: a guest runs `raidlab array serve` and its kernel's
//! block devices of that, with filesystems and md on them. The other clients: `array_running/served.rs`.

use std::path::{Path, PathBuf};

use crate::guest::{Output, TempDir, nbd_client_and_guest_or_skip};
use crate::support::raidlab;

const MIB: u64 = 1 << 20;

/// What all scripts begin with. A process costs 60 ms in the guest: what waits, waits for a line from a pipe.
const BEGIN: &str = r#"
set -eEu
trap 'tail -n 20 /tmp/*.log /proc/mdstat >&2; dmesg | tail -n 20 >&2' ERR
read -r release </proc/sys/kernel/osrelease
busybox insmod /usr/lib/uml/modules/$release/kernel/drivers/block/nbd.ko nbds_max=2
# Where it was built may be hidden here.
mkdir /run/program /tmp/mounted
busybox mount -t hostfs none /run/program -o $program
mkfifo /tmp/told
exec 5<>/tmp/told
array() { local verb=$1; shift; /run/program/raidlab array $verb "$@"; }
# --flat: an array may be a leg of the guest's mirror, which is not to be put together by its server.
serve() { # name, devices: until it says where
    local name=$1 line
    shift
    /run/program/raidlab array serve --write --flat "$@" --nbd unix:/tmp/$name.nbd --socket /tmp/$name \
        >&5 2>>/tmp/$name.log &
    server=$!
    while read -r -t 60 line <&5; [[ $line != "served as "* ]]; do kill -0 $server; done
}
attach() { nbd-client -unix /tmp/$1.nbd /dev/nbd$2 -N $1 >/dev/null 2>&1; }
detach() { nbd-client -d /dev/nbd$1 >/dev/null; }
"#;

/// Two served arrays are the legs of a mirror of md's with ext4 on it. Servers are killed, one, then both under a
/// writer; what it was told to be durable is there.
const MIRROR: &str = r#"
serve left $SHARE/left.?; left=$server
serve right $SHARE/right.?; right=$server
attach left 0
attach right 1
mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --bitmap=internal --assume-clean /dev/nbd[01] 2>/dev/null
mkfs.ext4 -q /dev/md0
mount /dev/md0 /tmp/mounted
dd if=/dev/urandom of=/tmp/random bs=64k count=1000 2>/dev/null

durable=0
write_one() { # number: a file, which is durable after that
    dd if=/tmp/random of=/tmp/mounted/$1 bs=64k skip=$1 count=1 conv=fsync 2>/dev/null
}
verify() {
    local number=0
    set --
    while [ $number -lt $durable ]; do set -- "$@" /tmp/mounted/$number; number=$((number + 1)); done
    cat "$@" | cmp -n $((durable * 65536)) - /tmp/random
}
whole() { # takes a leg back that md has left out: of two that die one is the first
    local leg
    for leg in nbd0 nbd1; do
        [[ $(</proc/mdstat) != *"$leg["[01]"](F)"* ]] || mdadm /dev/md0 --remove /dev/$leg
        [[ $(</proc/mdstat) = *"$leg["* ]] || mdadm /dev/md0 --re-add /dev/$leg
    done 2>/dev/null
    mdadm --wait /dev/md0 || true
    [[ $(</proc/mdstat) = *'[UU]'* ]]
}
more() {
    local end=$((durable + $1))
    while [ $durable -lt $end ]; do write_one $durable; durable=$((durable + 1)); done
}

more 4
kill -KILL $right
more 4
[[ $(</proc/mdstat) = *'[U_]'* ]]
mdadm /dev/md0 --remove /dev/nbd1 2>/dev/null
detach 1
serve right $SHARE/right.?; right=$server
attach right 1
whole

mkfifo /tmp/durable
exec 6<>/tmp/durable
for round in $(seq $rounds); do
    (
        trap - ERR
        number=$durable
        while write_one $number; do echo $number >&6; number=$((number + 1)); done
        echo end >&6
    ) &
    for number in 1 2 3 4 5; do read -r durable <&6; done
    kill -KILL $left $right
    while read -r number <&6; [ $number != end ]; do durable=$number; done
    durable=$((durable + 1))
    umount /tmp/mounted
    mdadm --stop /dev/md0 2>/dev/null
    detach 0
    detach 1
    serve left $SHARE/left.?; left=$server
    serve right $SHARE/right.?; right=$server
    attach left 0
    attach right 1
    mdadm --assemble /dev/md0 --run /dev/nbd[01] 2>/dev/null
    whole
    # What the kernel has to do after a crash, and nothing more.
    mount /dev/md0 /tmp/mounted
    verify
    umount /tmp/mounted
    e2fsck -fn /dev/md0 >/tmp/fsck.log 2>&1
    mount /dev/md0 /tmp/mounted
done
umount /tmp/mounted
echo check >/sys/block/md0/md/sync_action
mdadm --wait /dev/md0 || true
echo "md: $(</sys/block/md0/md/mismatch_cnt) differ"
mdadm --stop /dev/md0 2>/dev/null
detach 0
detach 1
for name in left right; do
    array check /tmp/$name --quiet
    array stop /tmp/$name --disconnect >/dev/null
done
echo "$durable files"
"#;

/// ext4 on a raid6 that loses a member and has another one rebuilt, all the while that files are written, verified and
/// deleted.
const STRESS: &str = r#"
serve six $SHARE/six.?
attach six 0
mkfs.ext4 -q /dev/nbd0
mount /dev/nbd0 /tmp/mounted
mkfifo /tmp/round /tmp/enough
exec 6<>/tmp/round 7<>/tmp/enough
mkdir /tmp/mounted/fio
cp -r $small_files /tmp/tree
verified() { # number of the round: files are written at random places, and read back
    local seed=$1
    shift
    fio --name=a --randseed=$seed --directory=/tmp/mounted/fio --rw=randwrite --bsrange=1k-64k --size=$size \
        --nrfiles=8 --numjobs=2 --ioengine=psync --fsync=32 --verify=crc32c --verify_fatal=1 --verify_state_save=0 \
        --minimal "$@" \
        >>/tmp/fio.log 2>&1
}
(
    trap 'echo failed >&6' ERR
    round=1
    while
        cp -r /tmp/tree /tmp/mounted/copy$round
        echo began >&6
        verified $round
        diff -r /tmp/tree /tmp/mounted/copy$round
        ! read -r -t 0 <&7
    do
        rm -r /tmp/mounted/copy$round
        round=$((round + 1))
    done
    echo ended $round >&6
) &
read -r line <&6
[ $line = began ]
array fail /tmp/six 1 >/dev/null
array remove /tmp/six 1 >/dev/null
array add /tmp/six $SHARE/new >/dev/null
until array status /tmp/six --test >/tmp/status.log; do true; done
echo enough >&7
while read -r line round <&6; [ $line = began ]; do true; done
[ $line = ended ]
umount /tmp/mounted
e2fsck -fn /dev/nbd0 >/tmp/fsck.log 2>&1
mount /dev/nbd0 /tmp/mounted
verified $round --verify_only
diff -r /tmp/tree /tmp/mounted/copy*
umount /tmp/mounted
detach 0
array check /tmp/six --quiet
array stop /tmp/six --disconnect >/dev/null
echo "$round rounds"
"#;

/// More is written than there is memory, to filesystems whose servers are on the same machine.
const MEMORY: &str = r#"
content() { seq 100000000 $((100000000 + mib * 104857)); } # lines of ten bytes, none like another
fill() { # name, devices
    local thread name line threads=0 key value
    serve "$@"
    attach $1 0
    mkfs.ext4 -q /dev/nbd0
    mount /dev/nbd0 /tmp/mounted
    content >/tmp/mounted/file
    sync
    echo 3 >/proc/sys/vm/drop_caches
    content | cmp - /tmp/mounted/file
    # What threads of the server ask for waits for no write to what they serve, and the server stays in memory.
    # PR_SET_IO_FLUSHER shows as these flags: PF_MEMALLOC_NOIO and PF_LOCAL_THROTTLE.
    for thread in /proc/$server/task/*; do
        read -r name <$thread/comm
        read -r line <$thread/stat
        line=(${line##*) })
        case $name in nbd | member | iou-wrk-*)
            [ $((${line[6]} & 0x180000)) = $((0x180000)) ] || echo "$name is no flusher"
            threads=$((threads + 1)) ;;
        esac
    done
    while read -r key value _; do
        [ $key != VmLck: ] || [ $value = 0 ] || echo "$1 is held"
    done </proc/$server/status
    umount /tmp/mounted
    detach 0
    array check /tmp/$1 --quiet
    array stop /tmp/$1 --disconnect >/dev/null
    [ $threads -gt 1 ]
}
fill disks $DEVS
fill files $SHARE/files.?
"#;

fn is_full() -> bool {
    std::env::var("RAIDLAB_FULL").as_deref() == Ok("1")
}

/// Seconds that a guest may take; nothing depends on it while all is well.
fn limit() -> u32 {
    if is_full() { 3600 } else { 600 }
}

/// Where guests find their arrays.
struct Machine {
    share: TempDir,
}

impl Machine {
    fn new(name: &str) -> Self {
        Self { share: TempDir::new(name) }
    }

    /// Makes an array of files `{name}.0`, `{name}.1`, ...
    fn array(&self, name: &str, layout: &str, members: usize, bytes: u64) -> Vec<PathBuf> {
        let files: Vec<PathBuf> = (0..members)
            .map(|member| self.share.file(&format!("{name}.{member}"), bytes))
            .collect();
        let mut arguments = vec!["array".to_owned(), "create".into(), layout.into()];
        arguments.extend(files.iter().map(|file| file.to_str().expect("text").to_owned()));
        let flags = ["--name", name, "--bitmap", "internal", "--assume-clean"];
        raidlab(arguments.into_iter().chain(flags.map(str::to_owned))).good();
        files
    }

    fn run(
        &self,
        guest: &crate::guest::Guest,
        known: &str,
        script: &str,
        disks: &[PathBuf],
    ) -> Output {
        let program =
            Path::new(env!("CARGO_BIN_EXE_raidlab")).parent().expect("it is in a directory");
        let program = shlex::try_quote(program.to_str().expect("text")).expect("no zero byte");
        guest.run(&format!("program={program}\n{known}\n{BEGIN}{script}"), disks, self.share.path())
    }
}

/// nbd-client, ext4, md on top; servers that are killed; fsck.
#[test]
fn md_and_a_filesystem_on_served_arrays_survive_killed_servers() {
    let test = "md_and_a_filesystem_on_served_arrays_survive_killed_servers";
    let Some(guest) = nbd_client_and_guest_or_skip(test) else { return };
    let machine = Machine::new("nbd-mirror");
    for name in ["left", "right"] {
        machine.array(name, "raid1", 2, 16 * MIB);
    }
    let rounds = if is_full() { 20 } else { 1 };
    let said = machine.run(&guest.limit(limit()), &format!("rounds={rounds}"), MIRROR, &[]);
    let said = said.expect_success("a mirror of served arrays");
    assert!(said.contains("md: 0 differ\n"), "{said}");
    assert_eq!(said.matches("check: 0 sectors differ").count(), 2, "{said}");
}

/// A served raid6 under a filesystem in use, while a member is failed, removed, and another one rebuilt.
#[test]
fn a_filesystem_is_used_while_a_member_of_its_array_is_exchanged() {
    let test = "a_filesystem_is_used_while_a_member_of_its_array_is_exchanged";
    let Some(guest) = nbd_client_and_guest_or_skip(test) else { return };
    let machine = Machine::new("nbd-stress");
    let (member, size) = if is_full() { (512 * MIB, "100m") } else { (20 * MIB, "4m") };
    machine.array("six", "raid6 chunk=64K", 4, member);
    machine.share.file("new", member);
    let tree = ["/usr/share/doc/bash", "/usr/share/doc/e2fsprogs", "/usr/share/doc/mdadm"];
    let tree = tree.iter().find(|tree| Path::new(tree).is_dir()).unwrap_or(&"/etc");
    let known = format!("size={size} small_files={tree}");
    let said = machine.run(&guest.limit(limit()), &known, STRESS, &[]);
    let said = said.expect_success("ext4 on a served raid6");
    assert!(said.contains("check: 0 sectors differ") && said.contains(" rounds\n"), "{said}");
}

/// The server and its client share little memory: pages that wait to be written keep nobody waiting for ever. Once on
/// block devices, past the kernel's pages; once on files of a filesystem that has no other way than through them.
#[test]
fn more_than_memory_is_written_to_a_server_on_the_same_machine() {
    let test = "more_than_memory_is_written_to_a_server_on_the_same_machine";
    let Some(guest) = nbd_client_and_guest_or_skip(test) else { return };
    let (member, mib) = if is_full() { (512 * MIB, 900) } else { (48 * MIB, 80) };
    let machine = Machine::new("nbd-memory");
    let disks = machine.array("disks", "raid5 chunk=64K", 3, member);
    machine.array("files", "raid5 chunk=64K", 3, member);
    let guest = guest.memory("96M").limit(limit());
    let said = machine.run(&guest, &format!("mib={mib}"), MEMORY, &disks);
    let well = |name| format!("{name} is held\ncheck: 0 sectors differ, 0 cannot be read\n");
    assert_eq!(said.expect_success("little memory"), well("disks") + &well("files"));
}
