#!/bin/sh
# Runs a small sweep through Slurm on this machine alone, as `raidlab sweep --script slurm` prints it, and compares the rows
# with those of `raidlab sweep`. Needs root and Debian's slurmctld, slurmd, slurm-client and munge; what is set up for a
# machine otherwise is left alone: all of it lies in a directory that is removed.
#
# usage: tests/slurm.sh RAIDLAB
set -eu
raidlab=$(realpath "$1")
for needed in slurmctld slurmd sbatch squeue munged; do
    command -v "$needed" >/dev/null || { echo "skipped: slurm: needs $needed"; exit 0; }
done
[ "$(id -u)" = 0 ] || { echo "skipped: slurm: needs root"; exit 0; }
place=$(mktemp -d)
stop() {
    for daemon in slurmd slurmctld munged; do
        [ -e "$place/$daemon.pid" ] || continue
        id=$(cat "$place/$daemon.pid")
        kill "$id" 2>/dev/null || continue
        # They write until they are gone.
        tail --pid="$id" -f /dev/null
    done
    rm -rf "$place"
}
trap stop EXIT
trap 'exit 130' INT TERM
cd "$place"
mkdir state spool bin
ln -s "$raidlab" bin/raidlab
chmod 755 .
dd if=/dev/urandom of=munge.key bs=128 count=1 2>/dev/null
chmod 600 munge.key
munged --force --socket="$place/munge.socket" --key-file="$place/munge.key" --pid-file="$place/munged.pid" \
    --log-file="$place/munged.log" --seed-file="$place/munged.seed" 2>/dev/null
host=$(hostname -s)
cat > slurm.conf <<END
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket=$place/munge.socket
StateSaveLocation=$place/state
SlurmdSpoolDir=$place/spool
SlurmctldPidFile=$place/slurmctld.pid
SlurmdPidFile=$place/slurmd.pid
SlurmctldLogFile=$place/slurmctld.log
SlurmdLogFile=$place/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=2048 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF="$place/slurm.conf" PATH="$place/bin:$PATH"
slurmctld
slurmd -N "$host" 2>/dev/null || slurmd
cat > mine.toml <<'END'
title = "A sweep through Slurm"
rounds = 2
drives = [{ name = "nas", model = "nas-8tb-7200", count = 4 }]
layouts = [{ level = "raid1", members = 2 }, { level = "raid5", members = 4 }]
workloads = [{ kind = "random-read", size = "256KiB" }]
sweep.axes = [{ key = "seed", from = 1, to = 12 }]
END
raidlab sweep mine.toml --shards 6 --script slurm --out rows > sweep.sbatch
job=$(sbatch --parsable sweep.sbatch)
tries=0
while [ -n "$(squeue --noheader --job "$job" 2>/dev/null)" ]; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || { squeue; cat slurmctld.log slurmd.log; echo "the job does not end"; exit 1; }
    sleep 1
done
raidlab sweep mine.toml --shards 6 --out expected --quiet
raidlab merge rows --rows rows.jsonl --json
raidlab merge expected --rows expected.jsonl --json > /dev/null
cmp rows.jsonl expected.jsonl
echo "slurm: ok, job $job: the same rows"
