//! `oltp_delete`: rows deleted by their id; after a while there are none left.

use super::Params;
use super::oltp::{Oltp, Part};

/// The workload.
pub fn new(params: &Params) -> Oltp {
    Oltp::new("oltp_delete", params, &[(Part::Delete, 1)])
}
