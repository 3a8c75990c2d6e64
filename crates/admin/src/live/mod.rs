//! The figures of this moment: what `/api/live`, the dashboard and `weir top` show.
//!
//! Owns: the document ([`Live`]), and the differences between two looks at the counters ([`Pulse`]). Must not
//! know: HTTP, clients.
//!
//! Invariants: a look costs the same with one client and with 100,000; a document has at most
//! [`MOST_ROWS`] pools and as many databases.

mod document;
mod pulse;
pub(crate) mod statements;

pub use document::{
    Asked, Clients, DatabaseFigures, DatabaseState, FaultFigures, LastFault, Live, MOST_ROWS, PinFigures,
    PoolFigures, ProtocolFigures, Queue, Servers, Sort, State, StatementFigures, Times,
};
pub(crate) use pulse::Pulse;
