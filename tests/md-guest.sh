#!/usr/bin/env bash
# Runs a script under a Linux kernel that has md, with plain files as its drives; no root needed.
#
# The guest is a User Mode Linux kernel, an ordinary process. Its root is this machine's own tree,
# mounted read-only, so every tool installed here is there too.
# Debian packages: user-mode-linux mdadm busybox-static. A C compiler, which Rust needs too, is used on
# processors that have more registers than the guest's kernel knows (AMX).
#
# usage: tests/md-guest.sh [-m MEMORY] [-t SECONDS] [-s DIR] [-p SIZES] [-v] SCRIPT [MEMBER_FILE...]
#   SCRIPT          run by bash in the guest as root; "-" reads it from standard input
#   MEMBER_FILE     at most 16, read-write: /dev/ubda, /dev/ubdb, ... in this order, also in $DEVS
#   -m MEMORY       memory of the guest, in M or G (default 512M)
#   -t SECONDS      time limit (default 120)
#   -s DIR          mounted read-write in the guest at $SHARE
#   -p SIZES        cuts each member file into at most 15 sections from its start on, say 16M,16M,-
#                   ("-": the rest): /dev/ubda1, /dev/ubda2, ... Nothing is written for it: the
#                   sections are known to this one guest only
#   -v              show the console of the guest on standard error
#
# Gives back the output and the exit status of SCRIPT, or
#   2    wrong usage
#   124  the time limit passed
#   125  the guest stopped before the end of SCRIPT; its console is shown. So it does where another
#        has locked a member, a second later once more
#   126  something this script needs is not here
# A guest is killed like a machine that crashes, also when this script is interrupted. It never
# forces data to the drives of this machine: the guest's disk driver drops flushes. So never
# measure the cost of a flush here.
set -uo pipefail

modules="md-mod linear raid0 raid1 raid10 raid456"
memory=512M limit=120 share="" sections="" verbose=0

complain() { echo "md-guest: $2" >&2; exit "$1"; }
usage() { sed -n '/^# usage:/,/^#   -v /s/^# //p' "$0" >&2; exit 2; }

while getopts m:t:s:p:v option; do
    case $option in
        m) memory=$OPTARG ;;
        t) limit=$OPTARG ;;
        s) share=$(readlink -e -- "$OPTARG") && [ -d "$share" ] || complain 2 "-s $OPTARG: no such directory" ;;
        p) sections=$OPTARG ;;
        v) verbose=1 ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || usage
[[ $memory =~ ^([1-9][0-9]*)([MG])$ ]] || complain 2 "-m $memory: give a size such as 512M or 1G"
megabytes=${BASH_REMATCH[1]}
[ "${BASH_REMATCH[2]}" = M ] || megabytes=$((megabytes * 1024))
[[ $limit =~ ^[1-9][0-9]*$ ]] || complain 2 "-t $limit: give a whole number of seconds"
[[ -z $sections || $sections =~ ^([1-9][0-9]*[KMG],)*([1-9][0-9]*[KMG]|-)$ ]] ||
    complain 2 "-p $sections: give sizes such as 16M,16M,-"
commas=${sections//[!,]/}
[ ${#commas} -lt 15 ] || complain 2 "-p: at most 15 sections"
script=$1
shift
[ $# -le 16 ] || complain 2 "$# member files: at most 16"
for member; do
    [ -f "$member" ] || complain 2 "member $member: no such file"
    [ -r "$member" ] && [ -w "$member" ] || complain 2 "member $member: not readable and writable"
done

kernel=$(command -v linux.uml || command -v linux) || complain 126 "no User Mode Linux (package user-mode-linux)"
busybox=$(command -v busybox) || complain 126 "no busybox (package busybox-static)"
command -v mdadm >/dev/null || [ -x /usr/sbin/mdadm ] || [ -x /sbin/mdadm ] || complain 126 "no mdadm (package mdadm)"
module_dir=/usr/lib/uml/modules/$("$kernel" --version)/kernel
[ -d "$module_dir" ] || complain 126 "no modules of the guest's kernel in $module_dir"

# The name must be short: the kernel's control socket lies in it, and those have 108 bytes.
work=$(mktemp -d /tmp/mdguest.XXXXXX) || complain 126 "no working directory in /tmp"
guest=""
# The guest's kernel makes a process group of its own for itself and its helpers. Left alive they
# would keep the member files locked.
clean_up() {
    local group
    exec 2>/dev/null # the shell would report each process it ends
    [ -z "$guest" ] || kill -KILL "$guest" "-$guest"
    group=$(cat "$work/pid") && kill -KILL -- "-$group"
    [ -z "$guest" ] || wait "$guest"
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

if [ "$script" = - ]; then cat >"$work/script"; else cat -- "$script" >"$work/script" || exit 2; fi

# The kernel splits a drive's argument at commas and colons, so each file goes by a plain link.
drives=() names="" partitions="" number=0 wanted=""
for member; do
    ln -s "$(readlink -e -- "$member")" "$work/drive$number"
    letter=$(printf '%b' "\\x$(printf %x $((97 + number)))")
    drives+=("ubd${number}d=$work/drive$number") # d: the content never makes it an overlay
    names+=" /dev/ubd$letter"
    [ -z "$sections" ] || partitions+="${partitions:+;}ubd$letter:$sections"
    wanted+="/dev/ubd$letter${sections:+1}"$'\n'
    number=$((number + 1))
done
[ -z "$partitions" ] || drives+=("blkdevparts=$partitions")
printf %s "$wanted" >"$work/wanted"

# In the order they need each other; xor and the Q kernels are built in.
for module in ${modules/raid456/async_tx async_memcpy async_xor async_pq async_raid6_recov raid456}; do
    find "$module_dir" -name "$module.ko" -print -quit
done >"$work/modules"

{
    printf 'export DEVS=%q NDEV=%q SHARE=%q\n' "${names# }" "$number" "${share:+/run/share}"
    echo "export MDADM_NO_UDEV=1 DM_DISABLE_UDEV=1 HOME=/tmp LC_ALL=C"
    echo "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
} >"$work/environment"

# There is no udev in the guest, and a process costs 60 ms there: the shell does what it can.
cat >"$work/init" <<INIT
#!$busybox sh
box=$busybox
\$box mount -t proc proc /proc
\$box mount -t sysfs sysfs /sys
\$box mount -t tmpfs tmpfs /run
\$box mount -t tmpfs tmpfs /tmp
\$box mkdir -p /run/host /run/share /run/mdadm /run/lock
\$box mount -t hostfs none /run/host -o $work || exec \$box poweroff -f
$([ -z "$share" ] || printf '$box mount -t hostfs none /run/share -o %q' "$share")
while read -r module; do \$box insmod "\$module"; done </run/host/modules
echo 4000000 >/proc/sys/dev/raid/speed_limit_max
echo 4000000 >/proc/sys/dev/raid/speed_limit_min
. /run/host/environment
cd /tmp
while read -r node; do true <"\$node" || echo "\$node"; done </run/host/wanted 2>/dev/null >/run/host/absent
if [ ! -s /run/host/absent ]; then
    bash /run/host/script </dev/null >/run/host/stdout 2>/run/host/stderr
    echo \$? >/run/host/status
fi
echo o >/proc/sysrq-trigger
while :; do \$box sleep 1; done
INIT
chmod +x "$work/init"

# The kernel of the guest comes to its first process on all processors with this, and on some without.
registers=""
if command -v cc >/dev/null &&
    cc -O1 -shared -fPIC -o "$work/registers.so" "$(dirname "$0")/support/guest-registers.c" 2>"$work/console"; then
    registers=$work/registers.so
fi

# The memory of the guest is a file that must be mapped executable.
export TMPDIR=$work
free=$(df -Pm /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
if [ "${free:-0}" -gt "$megabytes" ] && ! grep -q '^[^ ]* /dev/shm [^ ]* [^ ]*noexec' /proc/mounts; then
    TMPDIR=/dev/shm
fi
# Its number is written down first: an interrupt may come at any time.
run_guest() {
    timeout -s KILL "$limit" bash -c 'echo $$ >"$0"; exec "$@"' "$work/pid" \
        env ${registers:+LD_PRELOAD="$registers"} "$kernel" mem="$memory" uml_dir="$work" umid=uml \
        root=/dev/root rootfstype=hostfs rootflags=/ ro init="$work/init" \
        con0=null,fd:1 con=null ssl=null panic=-1 quiet ${drives[@]+"${drives[@]}"} \
        </dev/null >"$work/console" 2>&1 &
    guest=$!
    wait "$guest" 2>/dev/null
    ended=$?
    guest=""
    [ "$ended" != 0 ] || rm -f "$work/pid" # an orderly end: nothing of it is left
}
run_guest
# The kernel locks each member, and makes an empty drive of one that another has locked. The script
# was not begun then.
if [ -s "$work/absent" ]; then
    echo "md-guest: not there: $(tr '\n' ' ' <"$work/absent")- trying again" >&2
    cat "$work/console" /proc/locks >&2
    sleep 1
    run_guest
    [ ! -s "$work/absent" ] || complain 125 "not there: $(tr '\n' ' ' <"$work/absent")"
fi

[ "$verbose" = 0 ] || cat "$work/console" >&2
cat "$work/stdout" 2>/dev/null
cat "$work/stderr" >&2 2>/dev/null
[ ! -s "$work/status" ] || exit "$(cat "$work/status")"
[ "$verbose" = 1 ] || tail -n 40 "$work/console" >&2
[ "$ended" != 137 ] || complain 124 "time limit of $limit s passed"
complain 125 "the guest stopped (status $ended) before the end of the script"
