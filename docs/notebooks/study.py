# %% [markdown]
# # A study
# Which layout of four NAS drives is fastest for a few processes that read and write at random, and does it
# matter when a drive is lost?

# %%
import raidlab

results = raidlab.run(
    {
        "title": "Four NAS drives, healthy and degraded",
        "processes": [1, 4],
        "states": ["healthy", "degraded"],
        "baseline": ["raid5(4)"],
        "drives": [{"name": "nas", "model": "nas-8tb-7200", "count": 4}],
        "layouts": [
            {"level": "raid5", "members": 4},
            {"level": "raid6", "members": 4},
            {"level": "raid10", "members": 4},
        ],
        "workloads": [
            {"kind": "random-read", "size": "256KiB"},
            {"kind": "random-write", "size": "256KiB"},
        ],
    }
)
frame = results.pandas()

# %% [markdown]
# The verdicts compare with `raid5(4)`, round by round. "not resolved" means that the rounds, or the model,
# cannot tell.

# %%
iops = frame[frame.metric == "iops"]
print(iops.pivot_table(index=["workload", "state", "processes"], columns="layout", values="median").round(1))
print(iops[iops.layout == "raid10(4)"][["workload", "state", "processes", "percent_vs_baseline", "verdict"]])

# %% [markdown]
# A write of a mirror is two writes at once. One of RAID 5 first reads what it replaces, and waits for the platter to come round
# again: four writers get a third of RAID 10's rate. RAID 6 is not slower here, as of four members it needs to read one block
# only (see `small_write.py`). And RAID 5 writes *faster* with a drive lost: where that has the parity, one write is all.

# %%
writes = iops[(iops.workload == "random-write 4KiB") & (iops.state == "healthy") & (iops.processes == 4)]
medians = writes.set_index("layout")["median"]
assert medians["raid10(4)"] > 2 * medians["raid5(4)"]

# %%
figure = results.plot("random-write 4KiB")
figure.savefig("study.png", dpi=120)

# %% [markdown]
# What to know before believing the numbers:

# %%
for warning in results.warnings:
    print("*", warning)
