"""Plots that look like the figures of the reports. They need matplotlib.

Bars are medians: blue is faster than the baseline, orange slower, grey neither, or the baseline itself, which has a dashed
line. Whiskers are intervals of 95 %, dots the rounds. Layouts have the colours and markers of the reports' lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._raidlab import InputError
from ._results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What bars say of a verdict. (`equal` and `not-resolved` are grey.)
_TONES = {"faster": "#0072b2", "slower": "#d55e00"}
_SAME = "#8a929b"
_INK, _SOFT, _RULE = "#1b1f24", "#57606a", "#d8dde3"
#: The colours of series, of Okabe and Ito, and their markers and dashes.
_SERIES = ("#0072b2", "#d55e00", "#007a59", "#b0508a", "#a06f00", "#3d9fd6", "#1b1f24", "#6b7480")
_MARKERS = "os^DvP"
_DASHES = ("-", (0, (6, 3)), (0, (2, 3)))
#: Dots lie on three lines, in turn, so that equal ones can be told apart.
_LANES = (-0.2, 0.0, 0.2)

Cell = dict[str, Any]


def bars(results: Results, workload: str | None = None, state: str | None = None) -> Figure:
    """Medians with intervals and rounds, for each number of processes and state of a workload on one scale.

    Without ``workload`` the first one; of its figures the first. Without ``state`` all states.
    """
    from matplotlib import pyplot

    name, cells = _cells(results, workload)
    rows: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        if state is None or cell["state"] == state:
            rows.setdefault((cell["processes"], cell["state"], tuple(cell["settings"].items())), []).append(cell)
    if not rows:
        raise InputError(f"{name} was not measured {state}")
    heights = [len(row) + 1.5 for row in rows.values()]
    size = (7, 0.26 * sum(heights) + 0.5)
    figure, all_axes = pyplot.subplots(
        len(rows), figsize=size, layout="constrained", sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    for axes, ((processes, at, settings), row) in zip(all_axes[:, 0], rows.items()):
        words = [name, _processes(processes), *([at] if at != "healthy" else []), *(f"{key}={one}" for key, one in settings)]
        _row(axes, results, ", ".join(words), row)
    all_axes[-1, 0].set_xlabel(_direction(cells[0]), color=_SOFT)
    return figure


def scaling(results: Results, workload: str | None = None, state: str = "healthy", axes: Axes | None = None) -> Axes:
    """Medians with intervals over the number of processes, a line a layout."""
    name, cells = _cells(results, workload)
    cells = [cell for cell in cells if cell["state"] == state and cell["processes"]]
    axes = _axes(axes)
    for at, layout in enumerate(_layouts(results)):
        own = sorted((cell for cell in cells if cell["layout"] == layout), key=lambda cell: int(cell["processes"]))
        counts, medians = [cell["processes"] for cell in own], [cell["median"] for cell in own]
        axes.plot(counts, medians, label=layout, **_style(at))
        for cell in own:
            if cell["ci95"]:
                axes.plot([cell["processes"]] * 2, cell["ci95"], color=_SERIES[at % 8], linewidth=1.25)
    counts = sorted({cell["processes"] for cell in cells})
    axes.set_xscale("log")
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    _finish(axes, name if state == "healthy" else f"{name}, {state}", "processes", _direction(cells[0]) if cells else "")
    return axes


def latencies(
    results: Results, workload: str | None = None, processes: int | None = None, state: str = "healthy", axes: Axes | None = None
) -> Axes:
    """How many of the reads and writes took how long at most, a line a layout; with as many processes as there were."""
    name, cells = _cells(results, workload)
    processes = processes or max(int(cell["processes"]) for cell in cells)
    shares = [share * 100 for share in results.document["latency_shares"]]
    axes = _axes(axes)
    for at, layout in enumerate(_layouts(results)):
        for cell in cells:
            if (cell["layout"], cell["processes"], cell["state"]) == (layout, processes, state) and cell.get("latency_curve_ms"):
                axes.plot(cell["latency_curve_ms"], shares, label=layout, **{**_style(at), "marker": None})
    if not axes.lines:
        raise InputError(f"{name} with {_processes(processes)}, {state}, has no latencies")
    axes.set_xscale("log")
    _finish(axes, f"{name}, {_processes(processes)}", "ms", "% of reads and writes")
    return axes


def timeline(
    results: Results,
    layout: str,
    workload: str | None = None,
    processes: int | None = None,
    state: str = "healthy",
    axes: Axes | None = None,
) -> Axes:
    """The rate of one round over its time."""
    name, cells = _cells(results, workload)
    processes = processes or max(int(cell["processes"]) for cell in cells)
    wanted = (layout, processes, state)
    line = next((cell.get("timeline") for cell in cells if (cell["layout"], cell["processes"], cell["state"]) == wanted), None)
    if not line:
        raise InputError(f"{layout!r} with {_processes(processes)}, {state}, has no timeline of {name}")
    axes = _axes(axes)
    # Each rate holds from where its bin begins to where it ends: the last one too.
    rates = [*line["rate"], *line["rate"][-1:]]
    times = [at * line["bin_s"] for at in range(len(rates))]
    axes.step(times, rates, where="post", color=_SERIES[_layouts(results).index(layout) % 8], linewidth=1.75)
    axes.set_ylim(bottom=0)
    _finish(axes, f"{name}, {_processes(processes)}, {layout}", "s", line["unit"])
    return axes


def _cells(results: Results, workload: str | None) -> tuple[str, list[Cell]]:
    """The cells of a workload's first figure."""
    names = list(dict.fromkeys(cell["workload"] for cell in results.cells))
    name = workload or next(iter(names), None)
    if name not in names:
        raise InputError(f"{name!r} is no workload of these results; there are {', '.join(names)}")
    cells = [cell for cell in results.cells if cell["workload"] == name]
    return str(name), [cell for cell in cells if cell["metric"] == cells[0]["metric"]]


def _layouts(results: Results) -> list[str]:
    return list(dict.fromkeys(cell["layout"] for cell in results.cells))


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def _direction(cell: Cell) -> str:
    return f"{cell['metric']} ({cell['unit']}), {cell['better']} is better"


def _style(at: int) -> dict[str, Any]:
    dash = _DASHES[at // len(_SERIES) % len(_DASHES)]
    return {
        "color": _SERIES[at % len(_SERIES)], "linestyle": dash, "linewidth": 1.75,
        "marker": _MARKERS[at % len(_MARKERS)], "markersize": 5,
    }


def _row(axes: Axes, results: Results, title: str, cells: list[Cell]) -> None:
    """The bars of a row."""
    best = (max if cells[0]["better"] == "higher" else min)(cell["median"] for cell in cells)
    baseline = results.document["baseline"]
    if len(baseline) == 1:
        own = next((cell["median"] for cell in cells if cell["layout"] in baseline), None)
        if own is not None:
            axes.axvline(own, color=_INK, linewidth=1, linestyle=(0, (4, 3)))
    for at, cell in enumerate(cells):
        axes.barh(at, cell["median"], height=0.62, color=_TONES.get(cell["verdict"], _SAME))
        if cell["ci95"]:
            axes.plot(cell["ci95"], [at, at], color=_INK, linewidth=1.25, marker="|", markersize=8, gid="interval")
        places = [at + 0.62 * _LANES[one % 3] for one in range(len(cell["samples"]))]
        axes.scatter(cell["samples"], places, s=9, color=_INK, edgecolors="white", linewidths=0.7, zorder=3)
        percent = cell.get("percent_vs_baseline")
        behind = "" if percent is None or cell["layout"] in baseline else f" ({percent:+.1f} %)"
        end = max([cell["median"], *cell["samples"], *(cell["ci95"] or [])])
        star = " ★" if cell["median"] == best and len(cells) > 1 else ""
        axes.annotate(
            f"{cell['median']:.4g}{behind}{star}", (end, at), (6, 0), textcoords="offset points", va="center", size=9,
            weight="bold" if star else "normal",
        )
    axes.set_yticks(range(len(cells)), [cell["layout"] for cell in cells])
    axes.set_ylim(len(cells) - 0.5, -0.5)
    axes.margins(x=0.28)
    axes.set_xlim(left=0)
    _plain(axes, title)
    axes.grid(axis="x", color=_RULE)


def _axes(axes: Axes | None) -> Axes:
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(7, 3.6), layout="constrained")[1]


def _finish(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_xlabel(x, color=_SOFT)
    axes.set_ylabel(y, color=_SOFT)
    if len(axes.get_legend_handles_labels()[0]) > 1:
        axes.legend(frameon=False, fontsize=9)
    axes.grid(color=_RULE)
    _plain(axes, title)


def _plain(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold", color=_INK)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=9)
    for spine in axes.spines.values():
        spine.set_visible(False)
