"""Rows of sweeps as tables."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Union

from . import _raidlab
from ._raidlab import InputError

if TYPE_CHECKING:
    import pyarrow

#: Keys of a row that become columns of other names.
_TABLES = ("keys", "of_others", "metrics", "latency_ms", "members", "bottleneck", "settings")

Directories = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]


def read_rows(directories: Directories, partial: bool = False) -> pyarrow.Table:
    """The rows of a sweep as a table of pyarrow, a line for each figure of each cell, in the order of points.

    ``directories`` are those of ``raidlab sweep --out``; they are checked as ``raidlab merge`` does: shards of different
    studies or versions, damaged and missing ones are errors, the last unless ``partial``. The table writes Parquet
    (``pyarrow.parquet.write_table``) and becomes a frame by ``to_pandas()`` or ``polars.from_arrow``.
    """
    import pyarrow

    if isinstance(directories, (str, os.PathLike)):
        directories = [directories]
    keys: dict[str, _Values] = {}
    tables: list[Any] = []

    def each(piece: bytes) -> None:
        lines = [line for row in piece.splitlines() for line in _lines(json.loads(row))]
        columns = {}
        for name in lines[0]:
            values = [line[name] for line in lines]
            if name.startswith("key "):
                columns[name] = keys.setdefault(name, _Values()).numbers(values)
            else:
                columns[name] = pyarrow.array(values, pyarrow.list_(pyarrow.float64()) if name == "samples" else None)
        tables.append(pyarrow.table(columns))

    _raidlab.merge(_paths(directories), partial, each)
    if not tables:
        return pyarrow.table({})
    table = pyarrow.concat_tables(tables, promote_options="permissive")
    for name, values in keys.items():
        table = table.set_column(table.schema.get_field_index(name), name, values.column(table[name]))
    return table


def _paths(directories: Iterable[str | os.PathLike[str]]) -> list[str]:
    paths = []
    for path in directories:
        if not isinstance(path, (str, os.PathLike)):
            raise InputError(f"{path!r} is no path of a directory")
        paths.append(os.fspath(path))
    return paths


def _lines(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A line for each figure of a row; one without figures where there are none."""
    head = {key: value for key, value in row.items() if key not in _TABLES}
    head.update({f"key {key}": value for key, value in row["keys"].items()})
    for name in ("p50", "p99", "p999", "max"):
        head[f"{name}_ms"] = (row["latency_ms"] or {}).get(name)
    head["write_amplification"] = (row["members"] or {}).get("write_amplification")
    head["bottleneck"] = (row["bottleneck"] or {}).get("resource")
    settings = ", ".join(f"{key}={value}" for key, value in row.get("settings", {}).items()) or None
    for figure in row["metrics"] or [{}]:
        ends = {}
        for name in ("ci95", "interval90"):
            ends[f"{name}_low"], ends[f"{name}_high"] = figure.get(name) or (None, None)
        named = {name: figure.get(name) for name in ("metric", "unit", "better", "median", "samples")}
        yield {**head, **named, **ends, "settings": settings}


class _Values:
    """The values of a swept key, each once: which kinds they are is known at the end only."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def numbers(self, values: list[Any]) -> Any:
        """The number of each value."""
        import pyarrow

        known = self._known
        return pyarrow.array([known.setdefault(json.dumps(value), len(known)) for value in values], pyarrow.int32())

    def column(self, numbers: Any) -> Any:
        """The values of these numbers: numbers or texts where all are, otherwise as JSON."""
        import pyarrow

        values = [json.loads(text) for text in self._known]
        kinds = {type(value) for value in values if value is not None}
        if len(kinds) > 1 and not kinds <= {int, float} or kinds & {list, dict}:
            values = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        all_values = pyarrow.array(values)
        return pyarrow.chunked_array([all_values.take(chunk) for chunk in numbers.chunks], all_values.type)
