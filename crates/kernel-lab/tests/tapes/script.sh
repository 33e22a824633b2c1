set -e
mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --bitmap=none --assume-clean /dev/vd[ab] 2>/dev/null
dd if=/dev/zero of=/dev/md0 bs=64k count=12 oflag=direct 2>/dev/null
dd if=/dev/md0 of=/dev/null bs=4k count=20 skip=1000 iflag=direct 2>/dev/null &
dd if=/dev/md0 of=/dev/null bs=128k count=8 2>/dev/null
wait
dd if=/dev/zero of=/dev/vdc bs=4k count=3 oflag=direct,dsync 2>/dev/null
