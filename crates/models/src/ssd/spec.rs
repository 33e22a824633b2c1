//! The figures of an SSD, and the check that they describe one that can exist.

use raidlab_core::units::{Nanos, Sectors};

use super::ftl::Ftl;
use crate::figures::Quantity;
use crate::file::Key;
use crate::spec::{BadFigure, KIB, MB_PER_S, MS, contradiction, within};

/// Every figure of an SSD, by the order that [`figures`] expects.
pub(crate) const KEYS: [Key; 24] = [
    ("capacity", Quantity::Size, None),
    ("flash", Quantity::Size, None),
    ("channels", Quantity::Count, None),
    ("dies", Quantity::Count, None),
    ("planes", Quantity::Count, None),
    ("page", Quantity::Size, None),
    ("bits_per_cell", Quantity::Count, None),
    ("block_pages", Quantity::Count, Some(768)),
    ("page_read", Quantity::Time, None),
    ("page_program", Quantity::Time, None),
    ("block_erase", Quantity::Time, Some(5_000_000)),
    ("program_suspend", Quantity::Time, None),
    ("channel_rate", Quantity::Rate, None),
    ("command_overhead", Quantity::Time, None),
    ("controller_time", Quantity::Time, None),
    ("link_rate", Quantity::Rate, None),
    ("link_duplex", Quantity::Switch, Some(0)),
    ("queue_depth", Quantity::Count, None),
    ("write_buffer", Quantity::Size, None),
    ("power_loss_protection", Quantity::Switch, None),
    ("flush_time", Quantity::Time, Some(0)),
    ("live_data", Quantity::Share, Some(100)),
    ("slc_cache", Quantity::Size, Some(0)),
    ("slc_program", Quantity::Time, Some(0)),
];

/// The figures of an SSD, as its drive file gives them. Ranges stand in `docs/drives.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SsdFigures {
    /// What the drive holds.
    pub capacity: Sectors,
    /// How much flash it has, spare flash included.
    pub flash: Sectors,
    /// Buses between controller and flash.
    pub channels: u32,
    /// Dies that work at once; a group of planes that reads on its own counts as one.
    pub dies: u32,
    /// Planes of a die, which program together.
    pub planes: u32,
    /// A page of flash: what one read brings from one plane.
    pub page: Sectors,
    /// Pages of a word line, which program together: 1 SLC to 4 QLC.
    pub bits_per_cell: u32,
    /// Pages of a block that is erased as one, in each plane.
    pub block_pages: u32,
    /// From the cells to the die's register, mean over the pages of a word line.
    pub page_read: Nanos,
    /// Programming a word line of all planes: `planes` x `bits_per_cell` pages.
    pub page_program: Nanos,
    /// Erasing a block of all planes.
    pub block_erase: Nanos,
    /// The longest that a read waits for its die to interrupt programming or erasing.
    pub program_suspend: Nanos,
    /// Payload rate of a channel, in bytes per second.
    pub channel_rate: u64,
    /// Time of a command in interface and firmware besides `controller_time`; commands overlap here.
    pub command_overhead: Nanos,
    /// How long each command occupies the controller; one divided by it is the most commands a second.
    pub controller_time: Nanos,
    /// Payload rate of the interface, in bytes per second.
    pub link_rate: u64,
    /// The interface carries both directions at that rate at once.
    pub link_duplex: bool,
    /// Commands that the drive works on at once; more wait in order.
    pub queue_depth: u32,
    /// How much written data the buffer holds.
    pub write_buffer: Sectors,
    /// Data in the buffer survive a loss of power: a flush has nothing to do.
    pub power_loss_protection: bool,
    /// Without that protection: what a flush takes after the data are programmed, for the map.
    pub flush_time: Nanos,
    /// Share of the capacity that holds data at the start, in percent.
    pub live_data: u32,
    /// How much data the pseudo-SLC cache takes; 0 without one.
    pub slc_cache: Sectors,
    /// Programming a word line of all planes with one bit a cell.
    pub slc_program: Nanos,
}

/// The figures by the order of [`KEYS`].
pub(crate) fn figures(values: &[u64; KEYS.len()]) -> SsdFigures {
    // What does not fit is far outside the range and is refused by the check.
    let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let [
        capacity,
        flash,
        channels,
        dies,
        planes,
        page,
        bits_per_cell,
        block_pages,
        page_read,
        page_program,
        block_erase,
        program_suspend,
        channel_rate,
        command_overhead,
        controller_time,
        link_rate,
        link_duplex,
        queue_depth,
        write_buffer,
        protection,
        flush_time,
        live_data,
        slc_cache,
        slc_program,
    ] = *values;
    SsdFigures {
        capacity: Sectors(capacity),
        flash: Sectors(flash),
        channels: small(channels),
        dies: small(dies),
        planes: small(planes),
        page: Sectors(page),
        bits_per_cell: small(bits_per_cell),
        block_pages: small(block_pages),
        page_read: Nanos(page_read),
        page_program: Nanos(page_program),
        block_erase: Nanos(block_erase),
        program_suspend: Nanos(program_suspend),
        channel_rate,
        command_overhead: Nanos(command_overhead),
        controller_time: Nanos(controller_time),
        link_rate,
        link_duplex: link_duplex != 0,
        queue_depth: small(queue_depth),
        write_buffer: Sectors(write_buffer),
        power_loss_protection: protection != 0,
        flush_time: Nanos(flush_time),
        live_data: small(live_data),
        slc_cache: Sectors(slc_cache),
        slc_program: Nanos(slc_program),
    }
}

/// The figures of an SSD that can exist: checked against ranges and against each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SsdSpec {
    figures: SsdFigures,
    /// The flash after the drive was filled and rewritten at random until it was in a steady state.
    pub(super) aged: Ftl,
}

impl SsdSpec {
    /// Checks the figures, and ages the flash: some milliseconds of work.
    ///
    /// # Errors
    /// Names the first figure that is out of range or contradicts another one, by its key.
    pub fn new(figures: SsdFigures) -> Result<Self, BadFigure> {
        check_ranges(&figures)?;
        check_together(&figures)?;
        let aged = Ftl::aged(figures.capacity, figures.flash, figures.live_data);
        Ok(Self { figures, aged })
    }

    /// The figures.
    pub fn figures(&self) -> &SsdFigures {
        &self.figures
    }
}

fn check_ranges(f: &SsdFigures) -> Result<(), BadFigure> {
    const MOST: u64 = 1_000_000_000_000_000 / 512;
    const COUNT: f64 = 1.0;
    const TIME: (u64, u64) = (0, 1_000_000_000);
    const WORK: (u64, u64) = (100, 1_000_000_000);
    const RATE: (u64, u64) = (1_000_000, 1_000_000_000_000);
    within("capacity", f.capacity.0, (2 << 20, MOST), KIB)?;
    within("flash", f.flash.0, (2 << 20, MOST), KIB)?;
    within("channels", f.channels.into(), (1, 64), ("channels", COUNT))?;
    within("dies", f.dies.into(), (1, 4_096), ("dies", COUNT))?;
    within("planes", f.planes.into(), (1, 16), ("planes", COUNT))?;
    within("page", f.page.0, (8, 256), KIB)?;
    within("bits_per_cell", f.bits_per_cell.into(), (1, 5), ("bits", COUNT))?;
    within("block_pages", f.block_pages.into(), (16, 65_536), ("pages", COUNT))?;
    within("page_read", f.page_read.0, WORK, MS)?;
    within("page_program", f.page_program.0, WORK, MS)?;
    within("block_erase", f.block_erase.0, TIME, MS)?;
    within("program_suspend", f.program_suspend.0, TIME, MS)?;
    within("channel_rate", f.channel_rate, RATE, MB_PER_S)?;
    within("command_overhead", f.command_overhead.0, TIME, MS)?;
    within("controller_time", f.controller_time.0, TIME, MS)?;
    within("link_rate", f.link_rate, RATE, MB_PER_S)?;
    within("queue_depth", f.queue_depth.into(), (1, 65_536), ("commands", COUNT))?;
    within("write_buffer", f.write_buffer.0, (64, 1 << 24), KIB)?;
    within("flush_time", f.flush_time.0, TIME, MS)?;
    within("live_data", f.live_data.into(), (0, 100), ("percent", COUNT))?;
    within("slc_cache", f.slc_cache.0, (0, MOST), KIB)?;
    within("slc_program", f.slc_program.0, TIME, MS)
}

fn check_together(f: &SsdFigures) -> Result<(), BadFigure> {
    let gb = |sectors: Sectors| sectors.bytes() as f64 / 1e9;
    let least = Sectors(f.capacity.0 + f.capacity.0 / 50);
    if f.flash < least || f.flash.0 > f.capacity.0.saturating_mul(8) {
        let reason = format!(
            "{:.1} GB of flash for {:.1} GB of capacity; garbage collection needs at least 2 % more \
             ({:.1} GB), and more than eight times the capacity is no SSD",
            gb(f.flash),
            gb(f.capacity),
            gb(least)
        );
        return contradiction("flash", reason);
    }
    if f.dies < f.channels {
        let reason = format!(
            "{} are fewer than the {} channels; every channel has at least one die",
            f.dies, f.channels
        );
        return contradiction("dies", reason);
    }
    let unit = f.program_unit();
    if f.write_buffer < unit {
        let reason = format!(
            "{} KiB are less than one programming of a die ({} KiB: planes x bits_per_cell x page)",
            f.write_buffer.0 / 2,
            unit.0 / 2
        );
        return contradiction("write_buffer", reason);
    }
    if (f.slc_cache == Sectors::ZERO) != (f.slc_program == Nanos::ZERO) {
        let reason = "slc_cache and slc_program go together: give both or neither";
        return contradiction("slc_cache", reason.into());
    }
    if f.slc_cache > f.capacity {
        let reason = format!(
            "{:.1} GB are more than the drive holds ({:.1} GB)",
            gb(f.slc_cache),
            gb(f.capacity)
        );
        return contradiction("slc_cache", reason);
    }
    Ok(())
}

impl SsdFigures {
    /// What one die programs at once: a word line of all planes.
    pub fn program_unit(&self) -> Sectors {
        Sectors(self.page.0 * u64::from(self.planes) * u64::from(self.bits_per_cell))
    }

    /// The same with one bit a cell.
    pub fn slc_unit(&self) -> Sectors {
        Sectors(self.page.0 * u64::from(self.planes))
    }
}
