# %% [markdown]
# # A published study, replayed
# In 2006 somebody measured RAID 0 of old disks on a card with two channels, by Linux md and by the card's own RAID. The study
# file describes the machine, down to its kernel, and the model gives a figure for each published one. `raidlab replay
# ite8212-2006` does the same, with findings in words ([replay.md](../replay.md)).

# %%
import raidlab

results = raidlab.run("studies/replay/ite8212-2006.toml", rounds=1)
frame = results.pandas()
published = frame[frame["published.value"].notna()]
print(published[["layout", "metric", "median", "published.value", "published.error_percent"]].round(1).to_string())

# %% [markdown]
# How good is that? `published.calibrated` says that parameters of the model, such as the disks' rate and how long a channel
# takes to switch, were fitted to these very cells. Their errors show how well a model with few parameters can follow; they
# are **not** errors of predictions. Those come from cells that were held out, or from other machines
# ([calibration.md](../calibration.md), [fidelity.md](../fidelity.md)).

# %%
throughput = published[published["metric"].str.endswith("_kps")]
errors = throughput["published.error_percent"].abs()
print(f"{len(errors)} published rates, median error {errors.median():.1f} %, largest {errors.max():.1f} %")
assert published["published.calibrated"].all()
assert len(errors) == 9 and errors.median() < 5

# %% [markdown]
# What the study is about: two disks on two channels read half again as fast as one, two disks on **one** channel slower than
# one. A master and a slave of PATA take turns.

# %%
reads = throughput[throughput["metric"] == "block_read_kps"].set_index("layout")["median"]
print(reads.round())
assert reads["md-raid0(2u-1ch)"] < reads["md-raid0(1u)"] < reads["md-raid0(2u-2ch)"]
