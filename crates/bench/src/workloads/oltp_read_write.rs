//! `oltp_read_write`: the reads of `oltp_read_only` and the writes of `oltp_write_only` in one transaction.

use super::Params;
use super::oltp::Oltp;
use super::{oltp_read_only, oltp_write_only};

/// The workload.
pub fn new(params: &Params) -> Oltp {
    let mut parts = oltp_read_only::reads(&params.options);
    parts.extend(oltp_write_only::writes(&params.options));
    Oltp::transaction("oltp_read_write", params, &parts)
}
