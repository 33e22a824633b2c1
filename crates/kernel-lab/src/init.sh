#!@BUSYBOX@ sh
# The first program of a guest of the kernel lab.
box=@BUSYBOX@
$box mount -t proc proc /proc
$box mount -t sysfs sysfs /sys
# A root of its own has neither devices nor the names of busybox's programs.
[ -e /dev/null ] || $box mount -t devtmpfs devtmpfs /dev
[ -e /bin/sh ] || $box --install -s /bin
$box mount -t tmpfs tmpfs /run
$box mount -t tmpfs tmpfs /tmp
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
