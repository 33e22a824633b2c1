"""raidlab: which RAID level, layout, chunk and number of drives suit your work.

Studies run in virtual time, on modelled drives; nothing here touches a disk, but for :func:`open_array`, which reads members
of arrays of Linux md. What cannot be is an exception: :class:`InputError` for input, :class:`RaidlabError` for what did not
work, :class:`InternalError` for a defect of raidlab.
"""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Union

from . import _raidlab
from ._array import Array, open_array
from ._check import called, text, whole
from ._raidlab import InputError, InternalError, RaidlabError
from ._results import Results, read_results
from ._rows import read_rows
from ._sweep import Sweep, sweep
from ._toml import Study, study_text

__all__ = [
    "Array", "InputError", "InternalError", "RaidlabError", "Results", "Sweep", "advise", "drive", "drives", "layout",
    "open_array", "read_results", "read_rows", "risk", "run", "study_text", "sweep",
]

__version__: str = _raidlab.version()[0]

#: What a flag of a command may be: ``True`` for one without a value, a list for one that may be given several times.
Option = Union[str, int, float, "os.PathLike[str]", None, list[Any], tuple[Any, ...]]


def run(
    study: Study,
    *,
    seed: int | None = None,
    rounds: int | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Results:
    """Run a study in virtual time.

    ``study`` is a path, or a dict with the keys of a study file. The same seed gives the same results on any number of
    threads. ``progress(done, total)`` is called from time to time; what it raises stops the run.
    """
    parts = study_text(study)
    whole("seed", seed, 0, 2**63 - 1)
    whole("rounds", rounds, 1, 1000)
    whole("threads", threads, 1, 256)
    called("progress", progress)
    return Results(json.loads(_raidlab.run(*parts, seed, rounds, threads, progress)))


def layout(name: str, rows: int | None = None) -> dict[str, Any]:
    """A layout by its name, such as ``"raid5(4) chunk=64K"``: members, what it survives, and where chunks lie."""
    text("name", name)
    whole("rows", rows, 1, 10_000)
    found: dict[str, Any] = json.loads(_raidlab.layout(name, rows))
    return found


def drives() -> list[dict[str, Any]]:
    """The modelled drives that are compiled in, as ``raidlab drive list`` has them."""
    found: list[dict[str, Any]] = _command("drive", "list", "--json")["drives"]
    return found


def drive(name: str | os.PathLike[str]) -> dict[str, Any]:
    """What the model makes of a drive, by its name or the path of a drive file."""
    return _command("drive", "show", "--json", "--", _word("name", name))


def risk(*layouts: str, **options: Option) -> dict[str, Any]:
    """How likely layouts are to lose data, as ``raidlab risk --json`` says it.

    Options are the flags of the command: ``risk("raid5(4)", "raid6(4)", drive="nas-8tb-7200", scrub="30d")``.
    """
    for name in layouts:
        text("layout", name)
    return _command("risk", "--json", "-", "--quiet", *_flags(options), "--", *layouts)


def advise(**options: Option) -> dict[str, Any]:
    """Which layout to use, as ``raidlab advise --json`` says it.

    Options are the flags of the command: ``advise(drives=4, work="nas")``.
    """
    if options.get("ask"):
        raise InputError("ask: questions are asked by the command `raidlab advise --ask` alone")
    return _command("advise", "--json", "-", "--quiet", *_flags(options))


def _command(*words: str) -> dict[str, Any]:
    printed: dict[str, Any] = json.loads(_raidlab.command(list(words)))
    return printed


def _flags(options: dict[str, Option]) -> list[str]:
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif isinstance(value, (list, tuple)):
            words += [f"{flag}={_word(name, one)}" for one in value]
        elif value is not None and value is not False:
            words.append(f"{flag}={_word(name, value)}")
    return words


def _word(name: str, value: object) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, (str, int, float)):
        word = str(value)
        text(name, word)
        return word
    raise InputError(f"{name}: {value!r} is neither text nor a number")
