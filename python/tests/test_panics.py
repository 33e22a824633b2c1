"""A panic in any entry of the native half is an exception; the next call works."""

import pytest

import raidlab
from raidlab import _raidlab

if not hasattr(_raidlab, "_panic_next"):
    pytest.skip("needs a build with the feature `panics`, which wheels are without", allow_module_level=True)


def test_every_entry(study, tmp_path, program):
    import subprocess

    sweep = raidlab.Sweep({**study, "sweep": {"axes": [{"key": "seed", "values": [1, 2]}]}})
    parts, job, out = sweep._parts, sweep._job, str(tmp_path / "rows")
    members = [str(tmp_path / name) for name in ("a.img", "b.img")]
    for name in members:
        with open(name, "wb") as file:
            file.truncate(24 << 20)
    subprocess.run([program, "array", "create", "raid1", *members, "--name", "data"], check=True, capture_output=True)
    array = _raidlab.ArrayFile(members)
    entries = {
        "version": lambda: _raidlab.version(),
        "run": lambda: _raidlab.run(*raidlab.study_text(study), rounds=1),
        "command": lambda: _raidlab.command(["drive", "list"]),
        "layout": lambda: _raidlab.layout("raid1(2)"),
        "merge": lambda: _raidlab.merge([out], False, lambda _: None),
        "SweepJob": lambda: _raidlab.SweepJob(*parts),
        "SweepJob.id": lambda: job.id,
        "SweepJob.points": lambda: job.points,
        "SweepJob.study_file": lambda: job.study_file(0),
        "SweepJob.estimate": lambda: job.estimate(),
        "SweepJob.shards_of": lambda: job.shards_of(out),
        "SweepJob.run_shard": lambda: job.run_shard(out, 1, 1),
        "ArrayFile": lambda: _raidlab.ArrayFile(members),
        "ArrayFile.read_at": lambda: array.read_at(0, 512),
    }
    job.run_shard(out, 1, 1)
    for name, entry in entries.items():
        _raidlab._panic_next()
        with pytest.raises(raidlab.InternalError, match="a defect of raidlab: on purpose"):
            entry()
        entry()
    # No entry is left out: these only hand over what is there.
    given = {"ArrayFile.size", "ArrayFile.title", "ArrayFile.without", "_panic_next"}
    assert set(entries) | given == set(entries_of(_raidlab))


def entries_of(module):
    for name, value in vars(module).items():
        if isinstance(value, type) and not issubclass(value, Exception):
            yield name
            yield from (f"{name}.{part}" for part in vars(value) if not part.startswith("__"))
        elif callable(value) and not isinstance(value, type):
            yield name
