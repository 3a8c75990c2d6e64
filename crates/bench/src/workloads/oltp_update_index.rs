//! `oltp_update_index`: an update of the indexed column.

use super::Params;
use super::oltp::{Oltp, Part};

/// The workload.
pub fn new(params: &Params) -> Oltp {
    let times = params.options.index_updates.max(1);
    Oltp::new("oltp_update_index", params, &[(Part::IndexUpdate, times)])
}
