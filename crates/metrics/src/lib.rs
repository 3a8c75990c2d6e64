//! Metrics: names, cells that workers write without locks, sums, and OpenMetrics text.
//!
//! Owns: the table of metrics ([`table`]), one block of cells for each worker and protocol and for each
//! worker and pool, the histograms of waiting and of request times, the exposition.
//! Must not know: clients, sockets, settings, HTTP.
//!
//! Invariants: a cell has one writer; nothing on the data path takes a lock; reading costs the same with
//! one client and with 100,000.
#![forbid(unsafe_code)]

mod cell;
mod codes;
mod exposition;
mod metrics;
mod moment;
pub mod reference;
pub mod table;

pub use cell::{BUCKETS, Counter, Gauge, Histogram, HistogramTotals, bucket_end_us};
pub use codes::{CodeTotals, Codes};
pub use exposition::{CONTENT_TYPE, expose};
pub use metrics::{Metrics, OTHER, PoolLabels, Totals, TurnCells, TurnTotals, WorkerCells};
pub use moment::PoolNow;
pub use table::{PoolCells, PoolTotals, WingCells, WingTotals};
