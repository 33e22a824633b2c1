"""Sweeps on the cores of this machine, or on whatever a client of Dask leads to."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Callable

from . import _raidlab
from ._check import called, whole
from ._raidlab import InputError, RaidlabError
from ._toml import Study, study_text

#: More cells than this are tried for too long to divide them unasked.
_MOST_CELLS = 1e7
#: Shards for each core, so that the last ones do not wait for each other for long.
_SHARDS_A_CORE = 4

#: What a shard came to: its number, how many rows and errors it has, and their hash.
Manifest = dict[str, Any]


class Sweep:
    """A study with a ``[sweep]``: how much it is, and its points as studies."""

    def __init__(self, study: Study) -> None:
        text, path, directory = study_text(study)
        self._parts = (text, path, os.path.abspath(directory))
        self._job = _raidlab.SweepJob(*self._parts)

    @property
    def points(self) -> int:
        """How many points there are."""
        return self._job.points

    def estimate(self) -> dict[str, Any]:
        """How many cells there are, and how long they take: some are tried."""
        found: dict[str, Any] = json.loads(self._job.estimate())
        return found

    def study_file(self, point: int) -> str:
        """A point as the text of a study file."""
        if point is None:
            raise InputError("point: None is no number")
        whole("point", point, 0, 2**63 - 1)
        return self._job.study_file(point)


def sweep(
    study: Study,
    out: str | os.PathLike[str],
    client: Any = None,
    *,
    shards: int | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    retries: int = 3,
) -> list[Manifest]:
    """Run a sweep and give the manifests of its shards; the rows are in the directory ``out`` (:func:`raidlab.read_rows`).

    Without ``client`` on the cores of this machine. With a client of ``dask.distributed`` a future a shard: the workers write
    rows into ``out``, which they must share with each other, and give back manifests. Give each worker one thread. A shard
    that failed is begun again where it was, at most ``retries`` times; how many workers a shard may take with it, Dask decides
    (``distributed.scheduler.allowed-failures``). ``progress(done, shards)`` is called after each shard. Run again, it does
    what is missing and nothing else.

    Dask executes code: whoever reaches its scheduler runs what they like as you. Use TLS and trusted networks.
    """
    one = Sweep(study)
    whole("shards", shards, 1, one.points)
    whole("threads", threads, 1, 1024)
    whole("retries", retries, 0, 1000)
    called("progress", progress)
    if client is not None and not hasattr(client, "submit"):
        raise InputError(f"client: {client!r} is no client of dask.distributed")
    try:
        out = os.path.abspath(out)
    except TypeError as error:
        raise InputError(f"out: {error}") from error
    divided = shards or one._job.shards_of(out) or _shards(one)
    manifests: list[Manifest] = []

    def done(manifest: Manifest) -> None:
        manifests.append(manifest)
        if progress:
            progress(len(manifests), divided)

    run = (one._parts, one._job.id, out, divided)
    if client is None:
        _on_threads(run, threads, done)
    else:
        _on_dask(client, run, retries, done)
    return sorted(manifests, key=lambda manifest: int(manifest["shard"]))


_Run = tuple[tuple[str, str, str], str, str, int]


def _shards(one: Sweep) -> int:
    estimate = one.estimate()
    if estimate["cells"] > _MOST_CELLS:
        raise InputError(f"{estimate['cells']:.0f} cells: say how many shards they are to be")
    return max(int(estimate["shards"]), min(one.points, _SHARDS_A_CORE * (os.cpu_count() or 1)))


def _run_shard(run: _Run, shard: int, look: Callable[[int, int], object] | None = None) -> Manifest:
    """What a worker does. ``look`` is called again and again, and what it raises stops it."""
    parts, expected, out, shards = run
    job = _raidlab.SweepJob(*parts)
    if job.id != expected:
        raise RaidlabError("this worker has another version of raidlab, or other drive files, than who sent the work")
    manifest: Manifest = json.loads(job.run_shard(out, shard, shards, look))
    return manifest


def _on_threads(run: _Run, threads: int | None, done: Callable[[Manifest], None]) -> None:
    stopped = threading.Event()

    def look(_done: int, _total: int) -> None:
        if stopped.is_set():
            raise RaidlabError("stopped")

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        try:
            futures = [pool.submit(_run_shard, run, shard, look) for shard in range(1, run[3] + 1)]
            for future in as_completed(futures):
                done(future.result())
        except BaseException:
            stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _on_dask(client: Any, run: _Run, retries: int, done: Callable[[Manifest], None]) -> None:
    from distributed import as_completed as completed

    # Not `pure`: that a shard was run once says nothing of whether its rows are still there.
    shards = range(1, run[3] + 1)
    futures: list[Any] = []
    try:
        futures += [client.submit(_run_shard, run, shard, retries=retries, pure=False) for shard in shards]
        for future in completed(futures):
            done(future.result())
    except BaseException:
        client.cancel(futures)
        raise
