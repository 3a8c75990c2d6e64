//! `select`: sysbench 0.5's select.lua: the column pad of one row by its id.

use super::Params;
use super::oltp::{Oltp, Part};

/// The workload.
pub fn new(params: &Params) -> Oltp {
    Oltp::new("select", params, &[(Part::Pad, 1)])
}
