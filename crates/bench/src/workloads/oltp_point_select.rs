//! `oltp_point_select`: one row by its id.

use super::Params;
use super::oltp::{Oltp, Part};

/// The workload.
pub fn new(params: &Params) -> Oltp {
    Oltp::new("oltp_point_select", params, &[(Part::Point(true), 1)])
}
