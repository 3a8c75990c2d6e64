//! `oltp_read_only`: point and range SELECTs in a transaction.

use super::Params;
use super::oltp::{Oltp, Part};
use super::options::Options;

/// The workload.
pub fn new(params: &Params) -> Oltp {
    Oltp::transaction("oltp_read_only", params, &reads(&params.options))
}

/// The reads of a transaction, here and in `oltp_read_write`.
pub(super) fn reads(options: &Options) -> Vec<(Part, u16)> {
    let mut parts = vec![(Part::Point(false), options.point_selects)];
    if options.range_selects.is_on() {
        parts.extend([
            (Part::SimpleRange, options.simple_ranges),
            (Part::SumRange, options.sum_ranges),
            (Part::OrderRange, options.order_ranges),
            (Part::DistinctRange, options.distinct_ranges),
        ]);
    }
    parts
}
