import os
import shutil
import signal
import subprocess

import pytest

import raidlab

STUDY = {
    "title": "Small reads",
    "rounds": 6,
    "processes": [1, 2],
    "host": {"kernel": "linux-6.12"},
    "drives": [{"name": "nas", "model": "nas-8tb-7200", "count": 4}],
    "layouts": [{"level": "raid1", "members": 2}, {"level": "raid5", "members": 4, "chunk": "64KiB"}],
    "workloads": [{"kind": "random-read", "size": "64KiB"}],
}


@pytest.fixture
def study():
    return {key: list(value) if isinstance(value, list) else value for key, value in STUDY.items()}


@pytest.fixture
def program():
    """The program `raidlab`, by which the package is checked."""
    found = os.environ.get("RAIDLAB_PROGRAM") or shutil.which("raidlab")
    if not found:
        pytest.skip("needs the program raidlab: set RAIDLAB_PROGRAM")
    version = subprocess.run([found, "--version"], check=True, capture_output=True, text=True).stdout
    commit = raidlab._raidlab.version()[1]
    # Rows of sweeps name it.
    if commit and commit not in version:
        pytest.fail(f"the package is of commit {commit}, the program is {version}")
    return found


@pytest.fixture
def ctrl_c():
    """Ctrl-C as a terminal has it: what a shell starts in the background takes no notice of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_terminal_summary(terminalreporter):
    """Says in the words of the other tests how many there were, and which could not be run."""
    reports = terminalreporter.stats
    skipped = reports.get("skipped", [])
    for report in skipped:
        print(f"skipped: python {report.nodeid.split('/')[-1]}: {report.longrepr[2].removeprefix('Skipped: ')}")
    failed = len(reports.get("failed", [])) + len(reports.get("error", []))
    print(f"test result: {'FAILED' if failed else 'ok'}. {len(reports.get('passed', [])) + len(skipped)} passed; {failed} failed")
