"""Results documents as frames and plots."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from ._raidlab import InputError

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas
    import polars
    import pyarrow

#: Keys of a cell that hold the two ends of an interval, and the columns they become.
_ENDS = {
    "ci95": ("ci95_low", "ci95_high"),
    "percent_interval": ("percent_low", "percent_high"),
    "interval90": ("interval90_low", "interval90_high"),
}
#: Keys that hold a table, whose entries become columns.
_TABLES = ("latency_ms", "members", "bottleneck", "published", "moved", "settings")
#: What figures alone show.
_LEFT_OUT = ("timeline", "busy")


def _columns(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The columns that a cell, or a table in it, is."""
    row: dict[str, Any] = {}
    for key, value in table.items():
        if key in _ENDS:
            low, high = _ENDS[key]
            row[prefix + low], row[prefix + high] = value if value else (None, None)
        elif key == "trust":
            # Columns that are there whether a cell was checked or not.
            row.update(_columns({"interval90": None, **(value or {})}, "trust."))
        elif key in _TABLES:
            row.update(_columns(value or {}, f"{key}."))
        elif key not in _LEFT_OUT:
            row[prefix + key] = value
    return row


class Results:
    """The results document of a study: its cells with samples, intervals, verdicts and how far to trust them.

    ``document`` is the document as ``raidlab compare --json`` writes it (docs/results.md).
    """

    def __init__(self, document: dict[str, Any]) -> None:
        if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
            raise InputError("this is no results document: it has no cells")
        self.document = document

    def __repr__(self) -> str:
        return f"<raidlab.Results {self.document.get('study')!r}, {len(self.cells)} cells>"

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The cells, a dict each."""
        cells: list[dict[str, Any]] = self.document["cells"]
        return cells

    @property
    def warnings(self) -> list[str]:
        """What to know before believing the numbers."""
        return list(self.document.get("warnings", []))

    def rows(self) -> list[dict[str, Any]]:
        """A dict a cell, without what figures alone show (timelines and how busy resources were)."""
        return [_columns(cell) for cell in self.cells]

    def arrow(self) -> pyarrow.Table:
        """A table of pyarrow, a line a cell."""
        import pyarrow

        rows = self.rows()
        names = dict.fromkeys(name for row in rows for name in row)
        return pyarrow.table({name: [row.get(name) for row in rows] for name in names})

    def pandas(self) -> pandas.DataFrame:
        """A frame of pandas, a line a cell."""
        import pandas

        return pandas.DataFrame(self.rows())

    def polars(self) -> polars.DataFrame:
        """A frame of polars, a line a cell."""
        import polars

        frame = polars.from_arrow(self.arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def json(self) -> str:
        """The document as text."""
        return json.dumps(self.document, indent=2, ensure_ascii=False) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the document, for ``raidlab show`` and :func:`raidlab.read_results`."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.json())

    def plot(self, workload: str | None = None) -> matplotlib.figure.Figure:
        """The bars of a workload, as reports have them; :mod:`raidlab.plots` has more."""
        from . import plots

        return plots.bars(self, workload)


def read_results(path: str | os.PathLike[str]) -> Results:
    """Read a results document that ``raidlab compare --json`` or :meth:`Results.save` wrote."""
    with open(path, encoding="utf-8") as file:
        try:
            return Results(json.load(file))
        except ValueError as error:
            raise InputError(f"{os.fspath(path)}: this is no results document: {error}") from error
