# %% [markdown]
# # A class on RAID 5: what a small write costs
# A write of one block changes a data block and the parity of its stripe. The new parity is the old parity xor the old data
# xor the new data, so both old blocks are read and both new ones written: four I/Os where a single drive has one.

# %%
import raidlab

layout = raidlab.layout("raid5(4) chunk=64K", rows=4)
for row in layout["blocks"]:
    print("  ".join(f"{block:>2}" for block in row))

# %% [markdown]
# **Question 1.** Each column is a member, each row a stripe. Which member has the parity of chunk 4?

# %%
stripe = next(row for row in layout["blocks"] if "4" in row)
print(stripe, "member", stripe.index("P"))
assert stripe.index("P") == 2

# %% [markdown]
# **Question 2.** How many I/Os does a write of 4 KiB become? Guess before you run this: the model counts what the members were
# asked for.

# %%
results = raidlab.run(
    {
        "title": "Small writes",
        "drives": [{"name": "nas", "model": "nas-8tb-7200", "count": 6}],
        "baseline": ["single"],
        "layouts": [
            {"level": "single"},
            {"level": "raid1", "members": 2},
            {"level": "raid5", "members": 6, "chunk": "64KiB"},
            {"level": "raid6", "members": 6, "chunk": "64KiB"},
            {"level": "raid6", "members": 4, "chunk": "64KiB"},
        ],
        "workloads": [{"kind": "random-write", "block": "4KiB", "size": "1MiB"}],
    }
)
WRITES = 256  # of 4 KiB in 1 MiB
ios = {}
for cell in results.cells:
    reads, writes = (cell["members"][kind] / WRITES for kind in ("reads", "writes"))
    ios[cell["layout"]] = (reads, writes)
    print(f"{cell['layout']:<20} {reads:.0f} reads + {writes:.0f} writes, {cell['median']:4.0f} IOPS")
assert ios["single"] == (0, 1)
assert ios["raid1(2)"] == (0, 2)
assert ios["raid5(6) chunk=64K"] == (2, 2)
assert ios["raid6(6) chunk=64K"] == (3, 3)

# %% [markdown]
# RAID 6 has a second parity to read and write: six I/Os. A mirror writes twice, at the same time, and is as fast as a single
# drive. RAID 5 loses more than two writes' worth: its writes must wait for its reads, and then for the platter to come round
# again.
#
# **Question 3.** Why does RAID 6 of *four* members read only once? A stripe has two data blocks there. Instead of the old data
# and both old parities it reads the *other* data block and computes both parities anew: one read instead of three. RAID code
# takes whichever way reads less.

# %%
assert ios["raid6(4) chunk=64K"] == (1, 3)

# %% [markdown]
# **Question 4.** When does the penalty go away? When a whole stripe is written, nothing needs to be read: 3 x 64 KiB on four
# members.

# %%
results = raidlab.run(
    {
        "title": "Larger writes",
        "drives": [{"name": "nas", "model": "nas-8tb-7200", "count": 4}],
        "layouts": [{"level": "raid5", "members": 4, "chunk": "64KiB"}],
        "workloads": [
            {"kind": "dd-write", "block": block, "size": "12MiB", "name": block} for block in ("64KiB", "128KiB", "192KiB")
        ],
    }
)
for cell in results.cells:
    members = cell["members"]
    print(
        f"{cell['workload']:>7} at a time: {members['reads']:3.0f} reads, {members['writes']:3.0f} writes, "
        f"{members['write_amplification']:.2f} bytes written for each, {cell['median']:4.0f} {cell['unit']}"
    )
whole = results.cells[-1]["members"]
assert whole["reads"] == 0 and abs(whole["write_amplification"] - 4 / 3) < 0.01

# %% [markdown]
# Writes of 64 KiB read as many blocks as they write; whole stripes read none, write only the parity more, a third here, and
# are several times as fast. That is why a cache that gathers writes, or a filesystem that knows the stripe, helps RAID 5.
