import json
import os
import shutil
import signal
import subprocess
import sys
import threading

import pytest

import raidlab
from raidlab import _sweep
from raidlab._toml import dumps

AXES = {"axes": [{"key": "layouts.chunk", "values": ["64KiB", "512KiB"]}, {"key": "seed", "from": 1, "to": 4}]}
# A second or so for each cell.
SLOW = [{"kind": "random-read", "size": "4MiB"}]
# Hours for each cell.
ENDLESS = [{"kind": "random-read", "size": "4GiB"}]


@pytest.fixture
def sweep(study):
    return {**study, "sweep": AXES}


def files(out):
    """The shards that are finished, with their manifests: whoever ran them, they are the same to the byte."""
    return {name: (out / name).read_bytes() for name in sorted(os.listdir(out)) if name.endswith((".jsonl", ".json"))}


def by_command(program, sweep, tmp_path, shards):
    """What the command makes of a sweep."""
    path, out = tmp_path / "study", tmp_path / "by-command"
    path.write_text(dumps(sweep))
    command = [program, "sweep", str(path), "--out", str(out), "--shards", str(shards), "--quiet"]
    subprocess.run(command, check=True, capture_output=True)
    return files(out)


def test_rows_are_those_of_the_command(sweep, tmp_path, program):
    out, seen = tmp_path / "rows", []
    manifests = raidlab.sweep(sweep, out, shards=3, progress=lambda done, shards: seen.append((done, shards)))
    assert [manifest["shard"] for manifest in manifests] == [1, 2, 3]
    assert seen == [(1, 3), (2, 3), (3, 3)]
    before = files(out)
    assert before == by_command(program, sweep, tmp_path, 3)
    # Run again, nothing is left to do.
    assert raidlab.sweep(sweep, out) == manifests
    assert files(out) == before


def test_rows_become_tables(sweep, tmp_path):
    out = tmp_path / "rows"
    raidlab.sweep(sweep, out, shards=3)
    table = raidlab.read_rows([out])
    assert table.num_rows == 8 * 4
    assert set(table["key layouts.chunk"].to_pylist()) == {"64KiB", "512KiB"}
    assert set(table["key seed"].to_pylist()) == {1, 2, 3, 4}
    assert table["error"].null_count == table.num_rows
    lines = [json.loads(line) for name in sorted(os.listdir(out)) if name.endswith(".jsonl") for line in open(out / name)]
    assert table["median"].to_pylist() == [line["metrics"][0]["median"] for line in lines]
    assert table["samples"].to_pylist() == [line["metrics"][0]["samples"] for line in lines]
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "rows.parquet").equals(table)


def test_settings_are_a_column(sweep, tmp_path):
    (workload,) = sweep["workloads"][:1]
    told = [{**workload, "name": "w", "settings": {"block": block}} for block in ("4KiB", "64KiB")]
    raidlab.sweep({**sweep, "workloads": [*told, {**workload, "name": "w"}]}, tmp_path / "rows", shards=2)
    rows = raidlab.read_rows(tmp_path / "rows").to_pylist()
    assert {row["settings"] for row in rows} == {"block=4KiB", "block=64KiB", None}
    assert len({row["cell"] for row in rows}) == len(rows)


def test_values_of_several_kinds_are_one_column(study, tmp_path):
    kinds = [None, True, 5, 0.5, "four", [1], {"a": 1}]
    known = raidlab._rows._Values()
    import pyarrow

    numbers = pyarrow.chunked_array([known.numbers(kinds), known.numbers(["four", 5])])
    column = known.column(numbers).to_pylist()
    assert column == [None, "true", "5", "0.5", "four", "[1]", '{"a": 1}', "four", "5"]


def test_a_point_is_a_study(sweep, tmp_path, program):
    one = raidlab.Sweep(sweep)
    assert one.points == 8 and one.estimate()["cells"] == 32
    path = tmp_path / "point"
    path.write_text(one.study_file(3))
    results = raidlab.run(path)
    raidlab.sweep(sweep, tmp_path / "rows", shards=1)
    rows = [row for row in raidlab.read_rows(tmp_path / "rows").to_pylist() if row["point"] == 3]
    assert [row["samples"] for row in rows] == [cell["samples"] for cell in results.cells]
    with pytest.raises(raidlab.InputError, match="no point 8"):
        one.study_file(8)


def test_what_cannot_be_merged_is_refused(sweep, study, tmp_path):
    rows, other, copy = tmp_path / "rows", tmp_path / "other", tmp_path / "copy"
    job = raidlab.Sweep(sweep)._job
    job.run_shard(str(rows), 1, 2)

    def refused(match, what, kind=raidlab.RaidlabError):
        with pytest.raises(kind, match=match):
            what()

    refused("1 of 2 shards are missing: 2", lambda: raidlab.read_rows(rows))
    assert raidlab.read_rows(rows, partial=True).num_rows == 16
    refused("something else: shards 2, not 3", lambda: raidlab.sweep(sweep, rows, shards=3), raidlab.InputError)
    # Of another study.
    raidlab.sweep({**sweep, "seed": 5}, other, shards=2)
    refused("does not belong to", lambda: raidlab.read_rows([rows, other]), raidlab.InputError)
    # A shard twice; one that was changed, and one that is cut off.
    shutil.copytree(rows, copy)
    refused("shard 1 is in .*rows and in .*copy", lambda: raidlab.read_rows([rows, copy], partial=True))
    damage(copy, lambda body: body.replace(b"healthy", b"Healthy", 1))
    refused("has SHA-256 .* was written", lambda: raidlab.read_rows(copy, partial=True))
    damage(rows, lambda body: body[:-100])
    refused("shard-0000001", lambda: raidlab.read_rows(rows, partial=True))
    refused("no shards", lambda: raidlab.read_rows(tmp_path / "none"), raidlab.InputError)
    refused("is no path", lambda: raidlab.read_rows([5]), raidlab.InputError)


def damage(directory, how):
    path = next(directory / name for name in sorted(os.listdir(directory)) if name.endswith(".jsonl"))
    path.write_bytes(how(path.read_bytes()))


def test_arguments_of_the_wrong_kind_are_refused(sweep, study, tmp_path):
    for match, named in [
        ("shards: 9 is not a whole number from 1 to 8", {"shards": 9}),
        ("threads: 0", {"threads": 0}),
        ("retries: -1", {"retries": -1}),
        ("cannot be called", {"progress": 5}),
        ("no client", {"client": 5}),
    ]:
        with pytest.raises(raidlab.InputError, match=match):
            raidlab.sweep(sweep, tmp_path / "rows", **named)
    with pytest.raises(raidlab.InputError, match="out: "):
        raidlab.sweep(sweep, 5)
    with pytest.raises(raidlab.InputError, match="has no sweep|no .sweep."):
        raidlab.Sweep(study)
    parts, _, out, shards = raidlab.Sweep(sweep)._parts, None, str(tmp_path / "rows"), 2
    with pytest.raises(raidlab.RaidlabError, match="another version"):
        _sweep._run_shard((parts, "0" * 64, out, shards), 1)
    assert not (tmp_path / "rows").exists()


def test_ctrl_c_stops_all_threads(sweep, tmp_path, ctrl_c):
    """As it comes while shards are run: in the thread that waits for them."""
    began = threading.Event()
    main = threading.main_thread().ident

    def interrupt():
        began.wait(60)
        signal.pthread_kill(main, signal.SIGINT)

    out = tmp_path / "rows"
    thread = threading.Thread(target=interrupt)
    thread.start()
    original = _sweep._run_shard

    def run_shard(run, shard, look=None):
        began.set()
        return original(run, shard, look)

    _sweep._run_shard = run_shard
    try:
        with pytest.raises(KeyboardInterrupt):
            raidlab.sweep({**sweep, "workloads": ENDLESS}, out, shards=2)
    finally:
        _sweep._run_shard = original
        thread.join()
    # Whether anything was begun by then or not, nothing was finished.
    assert not list(out.glob("*.jsonl"))


def test_a_shard_of_another_process_is_waited_for_until_ctrl_c(sweep, tmp_path):
    import fcntl

    out = tmp_path / "rows"
    job = raidlab.Sweep(sweep)._job
    job.run_shard(str(out), 2, 2)
    looks = []

    def look(_done, _total):
        looks.append(1)
        if len(looks) == 3:
            raise ZeroDivisionError

    part = next(out / name.replace("2", "1") for name in os.listdir(out) if name.endswith(".jsonl")).with_suffix(".part")
    with open(part, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ZeroDivisionError):
            job.run_shard(str(out), 1, 2, look)
    assert json.loads(job.run_shard(str(out), 1, 2))["shard"] == 1


@pytest.fixture
def small_disk(tmp_path):
    """A directory with room for 16 KiB."""
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("needs root, for a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(disk)], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"needs a small disk: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_an_error_and_then_it_goes_on(sweep, tmp_path, small_disk):
    with pytest.raises(raidlab.RaidlabError, match="No space left on device"):
        raidlab.sweep(sweep, small_disk, shards=2)
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    raidlab.sweep(sweep, small_disk, shards=2)
    raidlab.sweep(sweep, tmp_path / "calm", shards=2)
    assert files(small_disk) == files(tmp_path / "calm")


@pytest.fixture
def dask_client():
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        yield client


def begun(out):
    """The shards of which a row is there, but not all are."""
    return [name for name in os.listdir(out) if name.endswith(".part") and (out / name).stat().st_size] if out.exists() else []


def test_a_worker_of_dask_that_is_killed_changes_nothing(sweep, tmp_path, program, dask_client):
    sweep = {**sweep, "workloads": SLOW}
    expected = by_command(program, sweep, tmp_path, 4)
    out, seen, killed, ended = tmp_path / "dask", [], [], threading.Event()
    pids = dask_client.run(os.getpid)

    def kill():
        """Kills a worker in the middle of a shard: which one is told by who holds the file."""
        while not killed and not ended.is_set():
            for pid in pids.values():
                held = {os.path.realpath(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
                if any(str(out / name) in held for name in begun(out)):
                    killed.append(pid)
                    os.kill(pid, signal.SIGKILL)
                    break

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        manifests = raidlab.sweep(sweep, out, dask_client, shards=4, progress=lambda *now: seen.append(now))
    finally:
        ended.set()
        thread.join()
    assert killed and seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert set(dask_client.run(os.getpid).values()).isdisjoint(killed)
    assert files(out) == expected
    assert raidlab.sweep(sweep, out, dask_client) == manifests
    # What a worker cannot do is an exception of the driver.
    with pytest.raises(raidlab.InputError, match="something else"):
        raidlab.sweep({**sweep, "seed": 7}, out, dask_client)


DRIVER = """
import json, sys, raidlab
from distributed import Client, LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            raidlab.sweep(json.loads(sys.argv[1]), sys.argv[2], client, shards=4)
"""


def test_a_driver_that_is_killed_is_started_again(sweep, tmp_path, program):
    pytest.importorskip("distributed")
    sweep = {**sweep, "workloads": SLOW}
    expected = by_command(program, sweep, tmp_path, 4)
    out, script = tmp_path / "dask", tmp_path / "driver.py"
    script.write_text(DRIVER)
    command = [sys.executable, str(script), json.dumps(sweep), str(out)]
    driver = subprocess.Popen(command)
    while not begun(out):
        assert driver.poll() is None
    driver.kill()
    driver.wait()
    assert len(files(out)) < len(expected)
    subprocess.run(command, check=True)
    assert files(out) == expected
