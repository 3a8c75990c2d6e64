//! `oltp_write_only`: updates, and a row deleted and inserted again, in a transaction.

use super::Params;
use super::oltp::{Oltp, Part};
use super::options::Options;

/// The workload.
pub fn new(params: &Params) -> Oltp {
    Oltp::transaction("oltp_write_only", params, &writes(&params.options))
}

/// The writes of a transaction, here and in `oltp_read_write`.
pub(super) fn writes(options: &Options) -> Vec<(Part, u16)> {
    vec![
        (Part::IndexUpdate, options.index_updates),
        (Part::NonIndexUpdate, options.non_index_updates),
        (Part::Delete, options.delete_inserts),
        (Part::InsertAgain, options.delete_inserts),
    ]
}
