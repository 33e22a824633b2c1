#!@BUSYBOX@ sh
# The first program of a guest of the kernel lab.
box=@BUSYBOX@
# One program mounts all: to start one takes longer than what it does. A root of its own has neither devices nor the names
# of busybox's programs.
{
    echo proc /proc proc
    echo sysfs /sys sysfs
    [ -e /dev/null ] || echo devtmpfs /dev devtmpfs
    echo tmpfs /run tmpfs
    echo tmpfs /tmp tmpfs
} >/dev/mounts
$box mount -a -T /dev/mounts
[ -e /bin/sh ] || $box --install -s /bin
$box mkdir -p /run/host /run/mdadm /run/lock /run/mnt
$box mount -t hostfs none /run/host -o /proc/self/cwd || exec $box poweroff -f
export MDADM_NO_UDEV=1 DM_DISABLE_UDEV=1 HOME=/tmp LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cd /tmp
. /run/host/settings 2>/run/host/settings.err
shell=/bin/sh
[ ! -x /bin/bash ] || shell=/bin/bash
$shell /run/host/script </dev/null >/run/host/stdout 2>/run/host/stderr
echo $? >/run/host/status
exec $box poweroff -f
