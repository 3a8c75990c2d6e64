//! `oltp_update_non_index`: an update of a column without an index.

use super::Params;
use super::oltp::{Oltp, Part};

/// The workload.
pub fn new(params: &Params) -> Oltp {
    let times = params.options.non_index_updates.max(1);
    Oltp::new("oltp_update_non_index", params, &[(Part::NonIndexUpdate, times)])
}
