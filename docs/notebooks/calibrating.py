# %% [markdown]
# # Calibrating to measurements of one's own
# You have measured a drive of yours, alone: how fast it reads in sequence, and how many random reads a second
# it does. Two figures of its model are fitted to that, and then a question is asked that you have not measured.
#
# The measurements below are invented. `raidlab calibrate` does this for whole studies, with held-out cells
# (docs/calibration.md).

# %%
from typing import Any, Callable

import raidlab

measured = {"dd-read": 205.0, "random-read": 78.0}  # MiB/s, 1/s


def study(rate: float, seek: float, layouts: list[Any], workload: dict[str, Any], processes: list[int]) -> dict[str, Any]:
    return {
        "title": "A drive of mine",
        "rounds": 3,
        "max_rounds": 3,
        "processes": processes,
        "drives": [{"name": "mine", "model": "nas-8tb-7200", "count": 4}],
        "layouts": layouts,
        "workloads": [workload],
        "parameters": [
            {"of": "drive mine", "property": "media_rate", "value": {"mb_per_s": rate}, "source": "measured by me"},
            {"of": "drive mine", "property": "average_seek", "value": {"ms": seek}, "source": "measured by me"},
        ],
    }


ALONE = [{"level": "single"}]
SEQUENTIAL = {"kind": "dd-read", "size": "512MiB", "span": "together", "name": "dd-read"}
RANDOM = {"kind": "random-read", "size": "1MiB", "name": "random-read"}


def modelled(workload: dict[str, Any], rate: float, seek: float) -> float:
    results = raidlab.run(study(rate, seek, ALONE, workload, [1]))
    return float(results.cells[0]["median"])


def fitted(figure: Callable[[float], float], low: float, high: float, wanted: float) -> float:
    """The value between two for which a figure that rises with it is as wanted."""
    for _ in range(12):
        middle = (low + high) / 2
        if figure(middle) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


# %% [markdown]
# Sequential reading depends on the rate of the medium alone, random reading hardly on it: one after the other
# is enough.

# %%
rate = fitted(lambda rate: modelled(SEQUENTIAL, rate, 8.0), 100.0, 300.0, measured["dd-read"])
# Shorter seeks are more reads a second: the sign is turned.
seek = -fitted(lambda turned: modelled(RANDOM, rate, -turned), -15.0, -5.0, measured["random-read"])
print(f"media rate {rate:.1f} MB/s, average seek {seek:.2f} ms")
for workload, name in ((SEQUENTIAL, "dd-read"), (RANDOM, "random-read")):
    error = modelled(workload, rate, seek) / measured[name] - 1
    print(f"{name}: {error:+.1%}")
    assert abs(error) < 0.03

# %% [markdown]
# What four of them would do as RAID 5 and RAID 10:

# %%
layouts = [{"level": "raid10", "members": 4}, {"level": "raid5", "members": 4}]
results = raidlab.run(study(rate, seek, layouts, RANDOM, [1, 4]))
print(results.pandas()[["layout", "processes", "median", "verdict"]])
