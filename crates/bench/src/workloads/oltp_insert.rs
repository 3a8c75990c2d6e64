//! `oltp_insert`: new rows.

use super::Params;
use super::oltp::{Oltp, Part};

/// The workload.
pub fn new(params: &Params) -> Oltp {
    Oltp::new("oltp_insert", params, &[(Part::InsertNew, 1)])
}
