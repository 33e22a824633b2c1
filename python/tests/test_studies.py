import json
import multiprocessing
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import raidlab
from raidlab._toml import dumps

LONG = {"workloads": [{"kind": "random-read", "size": "64MiB"}], "rounds": 1000, "max_rounds": 1000}


def test_a_study_of_a_dict_is_that_of_the_command(study, tmp_path, program):
    path = tmp_path / "study"
    path.write_text(dumps(study))
    command = [program, "compare", str(path), "--json", "-", "--quiet", "--no-store"]
    expected = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    for results in (raidlab.run(study), raidlab.run(path, threads=1)):
        assert results.document == expected
    again = tmp_path / "out.json"
    results.save(again)
    assert raidlab.read_results(again).document == expected
    shown = subprocess.run([program, "show", str(again)], capture_output=True, check=True, text=True).stdout
    assert "Small reads" in shown


def test_frames_have_a_line_a_cell_with_verdicts_and_intervals(study):
    results = raidlab.run(study)
    table, frame, polars = results.arrow(), results.pandas(), results.polars()
    assert table.num_rows == len(frame) == polars.height == len(results.cells) == 4
    for name in ("layout", "median", "ci95_low", "ci95_high", "verdict", "percent_low", "latency_ms.p99", "trust.interval90_low"):
        assert name in table.column_names and name in frame.columns and name in polars.columns, name
    for at, cell in enumerate(results.cells):
        assert frame["median"][at] == polars["median"][at] == cell["median"]
        assert table["samples"][at].as_py() == cell["samples"]
        assert [frame["ci95_low"][at], frame["ci95_high"][at]] == cell["ci95"]
    assert set(frame["verdict"].dropna()) <= {"faster", "slower", "equal within the floor", "not resolved"}


def test_seed_and_rounds_are_taken(study):
    one, other = raidlab.run(study, seed=1, rounds=2), raidlab.run(study, seed=2, rounds=2)
    assert len(one.cells[0]["samples"]) == 2 and one.document["seed"] == 1
    assert one.cells[0]["samples"] != other.cells[0]["samples"]
    assert one.document == raidlab.run(study, seed=1, rounds=2, threads=2).document


def test_what_cannot_be_is_an_exception(study, tmp_path):
    def refused(match, what, *arguments, **named):
        with pytest.raises(raidlab.InputError, match=match):
            what(*arguments, **named)

    refused("unknown key .did you mean .members", raidlab.run, {**study, "layouts": [{"level": "raid5", "member": 4}]})
    refused("cannot read the study file", raidlab.run, tmp_path / "none.toml")
    refused("a study is a path or a dict, not list", raidlab.run, [study])
    refused("has nothing|is nothing that a study holds", raidlab.run, {**study, "title": object()})
    refused("is no number", raidlab.run, {**study, "rounds": float("nan")})
    refused("more than 64 bits", raidlab.run, {**study, "seed": 2**70})
    refused("is no text", raidlab.run, {**study, 5: 1})
    refused("rounds: 0 is not", raidlab.run, study, rounds=0)
    refused("rounds: '6' is not", raidlab.run, study, rounds="6")
    refused("seed", raidlab.run, study, seed=-1)
    refused("nested too deeply", raidlab.run, {**study, "host": _deep(40)})
    refused("not a level", raidlab.layout, "raid7(4)")
    refused("no text", raidlab.layout, 5)
    refused("no results document", raidlab.Results, {})
    refused("unexpected argument", raidlab.risk, "raid5(4)", nonsense=1)
    refused("neither text nor a number", raidlab.advise, drives=object())
    refused("asked by the command", raidlab.advise, ask=True)
    refused("cannot be called", raidlab.run, study, progress=5)
    refused("no text", raidlab.layout, "raid\ud800")
    refused("no results document", raidlab.read_results, __file__)
    assert issubclass(raidlab.InputError, raidlab.RaidlabError)


def _deep(depth):
    return {"a": _deep(depth - 1)} if depth else 1


def test_mutated_dicts_are_exceptions_never_crashes(pytestconfig):
    script = Path(__file__).with_name("mutate.py")
    studies = script.parents[2] / "studies"
    command = [sys.executable, str(script), "--count", "2000", "--studies", str(studies)]
    tried = subprocess.run(command, capture_output=True, text=True)
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "2000 mutants" in tried.stdout and "0 failures" in tried.stdout


def test_ctrl_c_stops_a_run_and_the_next_one_is_whole(study, ctrl_c):
    seen = []

    def interrupt(done, total):
        seen.append((done, total))
        if len(seen) == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        raidlab.run({**study, **LONG}, progress=interrupt)
    assert 2 <= len(seen) <= 3, "once it was told it did not go on"
    assert len(raidlab.run(study, rounds=1).cells) == 4


# A program that says when it is running, and when nothing is left of the run that Ctrl-C has stopped.
INTERRUPTED = """
import json, os, signal, sys, raidlab
signal.signal(signal.SIGINT, signal.default_int_handler)
study = json.loads(sys.argv[1])
told = iter([lambda: print("running", flush=True)])
try:
    raidlab.run(study, progress=lambda done, total: next(told, lambda: None)())
except KeyboardInterrupt:
    # A thread that has ended is there for a moment longer.
    while len(os.listdir("/proc/self/task")) > 1:
        os.sched_yield()
    print("stopped")
"""


def test_ctrl_c_from_outside_leaves_nothing_running(study):
    command = [sys.executable, "-c", INTERRUPTED, json.dumps({**study, **LONG})]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "running\n"
    child.send_signal(signal.SIGINT)
    # Not stopped, it would run for hours.
    assert child.communicate(timeout=60)[0] == "stopped\n"


def test_what_progress_raises_stops_it(study):
    def raises(_done, _total):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        raidlab.run({**study, **LONG}, progress=raises)


def test_the_interpreter_goes_on_meanwhile(study):
    turns = 0
    stop = threading.Event()

    def other():
        nonlocal turns
        while not stop.is_set():
            turns += 1

    seen = []

    def progress(_done, _total):
        # Between two looks the run has no need of the interpreter, so that the other thread has it.
        seen.append(turns)
        if len(seen) > 3:
            raise ZeroDivisionError

    thread = threading.Thread(target=other)
    thread.start()
    try:
        with pytest.raises(ZeroDivisionError):
            raidlab.run({**study, **LONG}, threads=1, progress=progress)
    finally:
        stop.set()
        thread.join()
    # In 50 ms it goes round far more often than a thread that gets its turn only while `progress` is called.
    assert all(later - earlier > 1000 for earlier, later in zip(seen[1:], seen[2:])), seen


def test_two_threads_run_at_once(study):
    both = threading.Barrier(2, timeout=60)

    def progress(_done, _total):
        both.wait()
        raise ZeroDivisionError("stopped")

    ended = []

    def one():
        try:
            raidlab.run({**study, **LONG}, threads=1, progress=progress)
        except ZeroDivisionError as error:
            ended.append(str(error))

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended == ["stopped", "stopped"]


def _in_child(study):
    return raidlab.run(study, rounds=1).cells[0]["median"]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_after_use_works(study):
    expected = _in_child(study)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(_in_child, [study] * 4) == [expected] * 4


def test_importing_starts_nothing():
    code = "import threading, os, raidlab; print(threading.active_count(), len(os.listdir('/proc/self/task')))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert out.split() == ["1", "1"]


def test_layouts_and_drives():
    layout = raidlab.layout("raid5(3) chunk=64K", rows=3)
    assert (layout["members"], layout["survives"], layout["chunk"]) == (3, 1, 65536)
    assert layout["blocks"] == [["0", "1", "P"], ["3", "P", "2"], ["P", "4", "5"]]
    names = [drive["name"] for drive in raidlab.drives()]
    assert "nas-8tb-7200" in names
    assert raidlab.drive("nas-8tb-7200")["name"] == "nas-8tb-7200"


def test_risk_and_advice_are_those_of_the_command(program):
    def printed(*arguments):
        return json.loads(subprocess.run([program, *arguments], capture_output=True, check=True, text=True).stdout)

    assert raidlab.risk("raid5(4)", "raid6(4)") == printed("risk", "raid5(4)", "raid6(4)", "--json", "-")
    printed_advice = printed("advise", "--drives", "2", "--work", "nas", "--json", "-")
    assert raidlab.advise(drives=2, work=["nas"], ask=False) == printed_advice


def test_plots_show_every_layout(study):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from raidlab import plots

    results = raidlab.run({**study, "states": ["healthy", "degraded"]})
    figure = results.plot()
    assert [axes.get_title("left").split(", ", 1)[1] for axes in figure.axes] == [
        "1 process", "1 process, degraded", "2 processes", "2 processes, degraded",
    ]
    for axes in figure.axes:
        assert [label.get_text() for label in axes.get_yticklabels()] == ["raid1(2)", "raid5(4) chunk=64K"]
    widths = sorted(bar.get_width() for axes in figure.axes for bar in axes.patches)
    cells = [cell for cell in results.cells if cell["metric"] == "iops"]
    assert widths == sorted(cell["median"] for cell in cells)
    intervals = [line for axes in figure.axes for line in axes.lines if line.get_gid() == "interval"]
    assert sorted(list(line.get_xdata()) for line in intervals) == sorted(cell["ci95"] for cell in cells)
    assert plots.scaling(results).get_legend()
    assert len(plots.latencies(results).lines) == 2
    told = next(cell["timeline"] for cell in results.cells if cell["layout"] == "raid1(2)" and cell.get("timeline"))
    [drawn] = plots.timeline(results, "raid1(2)").lines
    assert drawn.get_xdata()[-1] == len(told["rate"]) * told["bin_s"], "the last bin is drawn to its end"
    for refused in (lambda: results.plot("nonsense"), lambda: plots.bars(results, state="on fire")):
        with pytest.raises(raidlab.InputError):
            refused()
