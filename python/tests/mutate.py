"""Dicts that are almost studies: each gives results or an exception of raidlab, and the interpreter lives on.

    python mutate.py --count 1000000 --studies DIRECTORY

Mutant number `i` is the same in every run, so that `--first i --count 1` runs one again. What is accepted is parsed and
divided as a sweep; every `RUN_EVERY`-th of it is run, too, for a moment.
"""

import argparse
import copy
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

import raidlab

SMALL = {
    "title": "Small",
    "rounds": 1,
    "max_rounds": 1,
    "processes": [1],
    "states": ["healthy", "degraded"],
    "drives": [{"name": "nas", "model": "nas-8tb-7200", "count": 4}],
    "layouts": [{"level": "raid1", "members": 2}, {"level": "raid5", "members": 4, "chunk": "64KiB"}],
    "workloads": [
        {"kind": "random-read", "size": "64KiB"},
        {"kind": "dd-write", "size": "256KiB", "block": "64KiB"},
    ],
    "host": {"kernel": "linux-6.12"},
}
SWEEP = {"axes": [{"key": "seed", "values": [1, 2]}]}
ODD = [
    None, True, False, -1, 0, 1, 3, 1000, 2**31, 2**63, 2**63 - 1, -(2**63), 10**30, 1.5, -0.0, 1e-300, 1e300, float("nan"),
    float("inf"), "", "x", "1e999", "64KiB", "16EiB", "0", "-1", "\x00", "\ud800", "ß" * 50, "raid5", "raid6(4)", "raid10+0(2x2)",
    "random-read", "healthy", [], {}, [[]], [None], {"a": 1}, ["healthy"], [1, 2], [0], ["raid5"], {"kind": "random-read"},
    b"x", object, {1: 2}, (), {"": ""},
]
KEYS = [
    "chunk", "members", "level", "kind", "size", "block", "zones", "host", "states", "spares", "sweep", "axes", "samples",
    "parameters", "filesystem", "span", "seed", "rounds", "max_rounds", "processes", "baseline", "nonsense", "", "a.b", 5, None,
]
RUN_EVERY = 20
# A run that has taken so many looks of 50 ms is left.
LOOKS = 2
MEMORY = 8 << 30


class Enough(Exception):
    """A run has had its moment."""


def bases(studies):
    """Studies to begin with: the small one as often as all others."""
    others = [tomllib.loads(path.read_text()) for path in sorted(Path(studies).glob("**/*.toml"))] if studies else []
    return others + [SMALL, {**SMALL, "sweep": SWEEP}] * max(1, len(others) // 2)


def places(part, found):
    """All places in a study where something can be put."""
    for key in list(part) if isinstance(part, dict) else range(len(part)):
        found.append((part, key))
        if isinstance(part[key], (dict, list)):
            places(part[key], found)
    return found


def mutate(study, draw):
    """Puts something odd somewhere, or takes something away."""
    found = places(study, [])
    if not found:
        return
    how = draw.choice(["odd", "delete", "other", "other", "add", "number", "number", "number"])
    if how == "number":
        numeric = [(part, key) for part, key in found if re.search("[0-9]", str(part[key])) and is_plain(part[key])]
        part, key = draw.choice(numeric or found)
        part[key] = another(part[key], draw)
        return
    part, key = draw.choice(found)
    if how == "odd":
        part[key] = copy.deepcopy(draw.choice(ODD))
    elif how == "delete":
        del part[key]
    elif how == "other":
        # What stands elsewhere in the study.
        other, at = draw.choice(found)
        part[key] = copy.deepcopy(other[at])
    elif isinstance(part, dict):
        part[draw.choice(KEYS)] = copy.deepcopy(draw.choice(ODD))
    else:
        part.append(copy.deepcopy(draw.choice([part[key], *ODD])))


def is_plain(value):
    return isinstance(value, (int, float, str)) and not isinstance(value, bool)


def another(value, draw):
    """Another number for a number, or for those in a text."""
    if isinstance(value, str):
        return re.sub("[0-9]+", lambda found: str(another(int(found[0]), draw)), value, count=draw.choice([0, 1]))
    if not is_plain(value):
        return value
    return value * draw.choice([-1, 0, 1, 2, 10, 0.5, 1000, 10**6]) + draw.choice([0, 0, 1, -1])


def mutant(number, all_bases):
    draw = random.Random(number)
    study = copy.deepcopy(draw.choice(all_bases))
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        mutate(study, draw)
    return study, draw.randrange(RUN_EVERY) == 0


def tried(number, all_bases):
    """What becomes of a mutant, in a word."""
    study, is_run = mutant(number, all_bases)
    try:
        if "sweep" in study:
            job = raidlab.Sweep(study)
            job.study_file(0)
            return "a sweep"
        raidlab.Sweep({**study, "sweep": SWEEP})
    except raidlab.InternalError:
        raise
    except raidlab.RaidlabError:
        return "refused"
    if not is_run:
        return "accepted"
    looks = iter(range(LOOKS))

    def look(_done, _total):
        if next(looks, None) is None:
            raise Enough

    try:
        raidlab.run(study, rounds=1, threads=1, progress=look)
        return "run"
    except Enough:
        return "run for a moment"
    except raidlab.InternalError:
        raise
    except raidlab.RaidlabError:
        return "refused when run"


def work(first, count, step, studies, at):
    """Tries every `step`-th mutant; where it is stands in a file, for whoever finds this process dead."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    all_bases, found, failed = bases(studies), Counter(), []
    for number in range(first, first + count, step):
        os.pwrite(at, b"%20d" % number, 0)
        try:
            found[tried(number, all_bases)] += 1
        except Exception as error:
            failed.append((number, f"{type(error).__name__}: {error}"))
    print(json.dumps({"found": found, "failed": failed[:20], "failures": len(failed)}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--studies")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        work(options.first, options.count, options.jobs, options.studies, options.worker)
        return 0
    workers = []
    for job in range(options.jobs):
        at = tempfile.TemporaryFile()
        arguments = ["--first", options.first + job, "--count", options.count - job, "--jobs", options.jobs, "--worker", at.fileno()]
        if options.studies:
            arguments += ["--studies", options.studies]
        command = [sys.executable, __file__, *map(str, arguments)]
        # What panics say of themselves is in the exceptions.
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, pass_fds=[at.fileno()]
        )
        workers.append((process, at))
    found, failures = Counter(), 0
    for process, at in workers:
        out, _ = process.communicate()
        if process.returncode != 0:
            failures += 1
            print(f"mutant {os.pread(at.fileno(), 20, 0).decode().strip()} ended its interpreter: {process.returncode}")
            continue
        told = json.loads(out)
        found.update(told["found"])
        failures += told["failures"]
        for number, what in told["failed"]:
            print(f"mutant {number}: {what}")
    print(f"{sum(found.values())} mutants: " + ", ".join(f"{count} {what}" for what, count in found.most_common()))
    print(f"{failures} failures")
    return 1 if failures or not {"refused", "accepted"} <= set(found) else 0


if __name__ == "__main__":
    sys.exit(main())
