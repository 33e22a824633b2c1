# %% [markdown]
# # A sweep on Dask
# Which chunk suits which drive? The answer is a table of a few dozen studies. Two processes of this machine run
# them here; with another `Client` any cluster does. Dask executes code: use TLS and trusted networks.

# %%
from typing import Any

import raidlab

sweep = {
    "title": "Which chunk for which drive?",
    "rounds": 6,
    "processes": [4],
    "drives": [{"name": "disks", "model": "nas-8tb-7200", "count": 4}],
    "layouts": [{"level": "raid5", "members": 4, "chunk": "64KiB"}],
    "workloads": [{"kind": "random-write", "block": "16KiB", "size": "256KiB"}],
    "sweep": {
        # All points have the same random places, so that they differ by their values alone.
        "draws": "shared",
        "axes": [
            {"key": "layouts.chunk", "from": "16KiB", "to": "1MiB", "factor": 4},
            {"key": "drives.model", "values": ["nas-8tb-7200", "ssd-sata-1tb"]},
            {"key": "workloads.block", "values": ["4KiB", "64KiB"]},
        ]
    },
}


def swept() -> list[dict[str, Any]]:
    from distributed import Client, LocalCluster

    # One thread a worker, as a shard runs on one. The dashboard is left out; of a long sweep one wants to see it.
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        return raidlab.sweep(sweep, "rows", client, progress=lambda done, shards: print(f"{done} of {shards} shards"))


# %% [markdown]
# How much is it? Then it is run. In a script workers are new processes, which read the script again: without the condition each
# would begin a sweep of its own.

# %%
if __name__ == "__main__":
    print(raidlab.Sweep(sweep).estimate())
    manifests = swept()
    print(sum(manifest["rows"] for manifest in manifests), "rows")

# %% [markdown]
# The rows are in a directory, whoever ran them; a second run has nothing to do.

# %%
if __name__ == "__main__":
    frame = raidlab.read_rows("rows").to_pandas()
    keys = ["key drives.model", "key workloads.block", "key layouts.chunk"]
    table = frame.set_index(keys)["median"].unstack("key layouts.chunk")
    print(table[["16KiB", "64KiB", "256KiB", "1MiB"]].round(1))
    assert len(frame) == 4 * 2 * 2 and frame.error.isna().all()
    disk = table.loc[("nas-8tb-7200", "64KiB")]
    assert disk["64KiB"] > disk["16KiB"]

# %% [markdown]
# A write of 64 KiB into chunks of 16 KiB keeps every disk busy; within one chunk it is one disk's, and its parity's. For writes
# of 4 KiB the chunk makes no difference, and on SSDs, which need no seek, less. Before you believe a difference of some percent,
# look at the intervals (`ci95_low`, `ci95_high`).
