//! The consistency conditions of TPC-C (clause 3.3.2): each is a query that counts violations.

use crate::client::blocking::{Client, ClientError};
use crate::record::result::CheckLine;

/// Name and question. `%u`: the number of the set.
const CONDITIONS: &[(&str, &str)] = &[
    (
        "1: a warehouse has what its districts have",
        "SELECT count(*) FROM warehouse%u, (SELECT d_w_id, SUM(d_ytd) s FROM district%u GROUP BY d_w_id) d \
         WHERE d_w_id = w_id AND w_ytd <> s",
    ),
    (
        "2: the next order follows the last one",
        "SELECT count(*) FROM district%u, (SELECT o_w_id, o_d_id, MAX(o_id) m FROM orders%u GROUP BY o_w_id, o_d_id) o \
         WHERE o_w_id = d_w_id AND o_d_id = d_id AND d_next_o_id - 1 <> m",
    ),
    (
        "3: new orders have no gaps",
        "SELECT count(*) FROM (SELECT no_w_id, no_d_id FROM new_orders%u GROUP BY no_w_id, no_d_id \
         HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)) x",
    ),
    (
        "4: a district has the order lines of its orders",
        "SELECT count(*) FROM (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) s FROM orders%u GROUP BY o_w_id, o_d_id) o, \
         (SELECT ol_w_id, ol_d_id, COUNT(*) c FROM order_line%u GROUP BY ol_w_id, ol_d_id) l \
         WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND s <> c",
    ),
    (
        "5: an order without a carrier is a new order",
        "SELECT count(*) FROM orders%u LEFT JOIN new_orders%u ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
         WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    ),
    (
        "6: an order has its order lines",
        "SELECT count(*) FROM orders%u LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) c FROM order_line%u \
         GROUP BY ol_w_id, ol_d_id, ol_o_id) l ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         WHERE o_ol_cnt <> COALESCE(c, 0)",
    ),
    (
        "7: order lines are delivered with their order",
        "SELECT count(*) FROM orders%u, order_line%u WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         AND (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    ),
    (
        "8: a warehouse has what was paid to it",
        "SELECT count(*) FROM warehouse%u, (SELECT h_w_id, SUM(h_amount) s FROM history%u GROUP BY h_w_id) h \
         WHERE h_w_id = w_id AND w_ytd <> s",
    ),
    (
        "9: a district has what was paid to it",
        "SELECT count(*) FROM district%u, (SELECT h_w_id, h_d_id, SUM(h_amount) s FROM history%u GROUP BY h_w_id, h_d_id) h \
         WHERE h_w_id = d_w_id AND h_d_id = d_id AND d_ytd <> s",
    ),
    (
        "10: a customer owes what was delivered less what was paid",
        "SELECT count(*) FROM customer%u LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) s FROM orders%u, \
         order_line%u WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id AND ol_delivery_d IS NOT NULL \
         GROUP BY o_w_id, o_d_id, o_c_id) d ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
         LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) p FROM history%u GROUP BY h_c_w_id, h_c_d_id, h_c_id) h \
         ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id WHERE c_balance <> COALESCE(s, 0) - COALESCE(p, 0)",
    ),
    (
        "12: balance and payments are what was delivered",
        "SELECT count(*) FROM customer%u LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) s FROM orders%u, \
         order_line%u WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id AND ol_delivery_d IS NOT NULL \
         GROUP BY o_w_id, o_d_id, o_c_id) d ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
         WHERE c_balance + c_ytd_payment <> COALESCE(s, 0)",
    ),
];

/// Asks all of them, for all sets.
pub(super) fn check(client: &mut Client, sets: u32) -> Result<Vec<CheckLine>, ClientError> {
    let mut lines = Vec::new();
    for (name, question) in CONDITIONS {
        let mut against = 0;
        for set in 1..=sets {
            let mut found = None;
            client.ask(&question.replace("%u", &set.to_string()), &mut |got| found = got.as_int())?;
            against += found.ok_or_else(|| ClientError::own(format!("condition {name}: no answer")))?;
        }
        let text = if against == 0 { "holds".to_owned() } else { format!("{against} rows contradict it") };
        lines.push(CheckLine { name: format!("TPC-C condition {name}"), passed: against == 0, text });
    }
    Ok(lines)
}
