//! The five transactions, written in the order in which they run.
//!
//! Each is walked through from its beginning for every query ([`Walk::ask`]): answered statements are
//! skipped, the first statement without an answer is the query. All random numbers come from the event's own
//! dice, so every walk takes the same path; rows that decide the path come from earlier replies.

use super::{CUSTOMERS, DISTRICTS, ITEMS, last_name, nurand};
use crate::dice::Dice;
use crate::statement::{Expect, Query, Row, Statement, Value};
use crate::workloads::At;
use crate::workloads::options::Options;

/// The statements, in the order of [`TEXTS`].
#[derive(Debug, Clone, Copy)]
enum S {
    Begin,
    Commit,
    Rollback,
    // new_order
    CustomerAndWarehouse,
    DistrictForUpdate,
    NextOrder,
    InsertOrder,
    InsertNewOrder,
    Item,
    UpdateStock,
    InsertOrderLine,
    // payment
    PayWarehouse,
    Warehouse,
    PayDistrict,
    District,
    CountByName,
    IdsByName,
    CustomerForUpdate,
    CustomerData,
    PayCustomerWithData,
    PayCustomer,
    InsertHistory,
    // orderstatus
    CustomersByName,
    Customer,
    LastOrder,
    OrderLines,
    // delivery
    OldestNewOrder,
    DeleteNewOrder,
    OrderCustomer,
    SetCarrier,
    SetDelivered,
    OrderTotal,
    AddBalance,
    // stocklevel
    NextOrderId,
    ItemsOfOrders,
    LowStock,
    /// One for each district.
    StockForUpdate,
}

const TEXTS: &[&str] = &[
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SELECT c_discount, c_last, c_credit, w_tax FROM customer%u, warehouse%u WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?",
    "SELECT d_next_o_id, d_tax FROM district%u WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
    "UPDATE district%u SET d_next_o_id = ? WHERE d_id = ? AND d_w_id = ?",
    "INSERT INTO orders%u (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (?, ?, ?, ?, NOW(), ?, ?)",
    "INSERT INTO new_orders%u (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)",
    "SELECT i_price, i_name, i_data FROM item%u WHERE i_id = ?",
    "UPDATE stock%u SET s_quantity = ? WHERE s_i_id = ? AND s_w_id = ?",
    "INSERT INTO order_line%u (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "UPDATE warehouse%u SET w_ytd = w_ytd + ? WHERE w_id = ?",
    "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse%u WHERE w_id = ?",
    "UPDATE district%u SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
    "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district%u WHERE d_w_id = ? AND d_id = ?",
    "SELECT count(c_id) namecnt FROM customer%u WHERE c_w_id = ? AND c_d_id = ? AND c_last = ?",
    "SELECT c_id FROM customer%u WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
    "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_since FROM customer%u WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
    "SELECT c_data FROM customer%u WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "UPDATE customer%u SET c_balance = ?, c_ytd_payment = ?, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "UPDATE customer%u SET c_balance = ?, c_ytd_payment = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "INSERT INTO history%u (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)",
    "SELECT c_balance, c_first, c_middle, c_id FROM customer%u WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
    "SELECT c_balance, c_first, c_middle, c_last FROM customer%u WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "SELECT o_id, o_carrier_id, o_entry_d FROM orders%u WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC",
    "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line%u WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
    "SELECT no_o_id FROM new_orders%u WHERE no_d_id = ? AND no_w_id = ? ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE",
    "DELETE FROM new_orders%u WHERE no_o_id = ? AND no_d_id = ? AND no_w_id = ?",
    "SELECT o_c_id FROM orders%u WHERE o_id = ? AND o_d_id = ? AND o_w_id = ?",
    "UPDATE orders%u SET o_carrier_id = ? WHERE o_id = ? AND o_d_id = ? AND o_w_id = ?",
    "UPDATE order_line%u SET ol_delivery_d = NOW() WHERE ol_o_id = ? AND ol_d_id = ? AND ol_w_id = ?",
    "SELECT SUM(ol_amount) sm FROM order_line%u WHERE ol_o_id = ? AND ol_d_id = ? AND ol_w_id = ?",
    "UPDATE customer%u SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_id = ? AND c_d_id = ? AND c_w_id = ?",
    "SELECT d_next_o_id FROM district%u WHERE d_id = ? AND d_w_id = ?",
    "SELECT DISTINCT ol_i_id FROM order_line%u WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ?",
    "SELECT count(*) FROM stock%u WHERE s_w_id = ? AND s_i_id = ? AND s_quantity < ?",
];

/// `%d`: the district, in two digits.
const STOCK_FOR_UPDATE: &str =
    "SELECT s_quantity, s_data, s_dist_%d s_dist FROM stock%u WHERE s_i_id = ? AND s_w_id = ? FOR UPDATE";

/// All statements for all sets: those of one text stand together.
/// `begin` is the text of the first one.
pub(super) fn statements(sets: u32, begin: &str) -> Vec<Statement> {
    let mut all = Vec::new();
    let of_set = |text: &str, set: u32| text.replace("%u", &set.to_string());
    for text in std::iter::once(&begin).chain(&TEXTS[1..]) {
        all.extend((1..=sets).map(|set| Statement::labelled(&of_set(text, set), text)));
    }
    for district in 1..=DISTRICTS {
        let text = STOCK_FOR_UPDATE.replace("%d", &format!("{district:02}"));
        all.extend((1..=sets).map(|set| Statement::labelled(&of_set(&text, set), STOCK_FOR_UPDATE)));
    }
    all
}

/// The query is filled in.
struct Asked;

/// One way through a transaction.
struct Walk<'a> {
    step: u16,
    passed: u16,
    set: usize,
    sets: usize,
    heard: &'a [Row],
    query: &'a mut Query,
}

impl<'a> Walk<'a> {
    /// The rows that came for this statement, or an end of the walk when it has not been sent yet.
    fn ask<const N: usize>(&mut self, s: S, params: [Value; N]) -> Result<&'a [Row], Asked> {
        self.ask_variant(s as usize, params)
    }

    fn ask_variant<const N: usize>(
        &mut self,
        statement: usize,
        params: [Value; N],
    ) -> Result<&'a [Row], Asked> {
        if self.passed == self.step {
            self.query.set(statement * self.sets + self.set, params, Expect::Success);
            self.query.listen = true;
            return Err(Asked);
        }
        let step = self.passed;
        self.passed += 1;
        // Rows stand in the order of their steps.
        let (heard, rest) = self.heard.split_at(self.heard.iter().take_while(|row| row.step == step).count());
        self.heard = rest;
        Ok(heard)
    }
}

/// Numbers that an event of any kind begins with.
struct Begin {
    dice: Dice,
    seed: u64,
    scale: i64,
    w_id: i64,
    d_id: i64,
}

/// The query of this step. False: the transaction is over.
pub(super) fn query(
    options: &Options,
    scale: i64,
    kind: usize,
    at: At,
    heard: &[Row],
    query: &mut Query,
) -> bool {
    let mut dice = Dice::new(options.seed, at.client, at.event, 1);
    let set = dice.uniform(0, i64::from(options.tables) - 1) as usize;
    let (w_id, d_id) = (dice.uniform(1, scale), dice.uniform(1, DISTRICTS));
    let begin = Begin { dice, seed: options.seed, scale, w_id, d_id };
    let mut walk = Walk { step: at.step, passed: 0, set, sets: options.tables as usize, heard, query };
    let end = match kind {
        0 => new_order(begin, &mut walk),
        1 => payment(begin, &mut walk),
        2 => order_status(begin, &mut walk),
        3 => delivery(begin, &mut walk),
        _ => stock_level(begin, &mut walk),
    };
    end.is_err()
}

fn int(n: i64) -> Value {
    Value::Int(n)
}

fn number(n: f64) -> Value {
    Value::Number(format!("{n:.2}").into_bytes())
}

/// A column of the first row; NULL when no row came.
fn column(rows: &[Row], n: usize) -> Value {
    rows.first().and_then(|row| row.values.get(n)).cloned().unwrap_or(Value::Null)
}

fn text(value: &Value) -> &[u8] {
    match value {
        Value::Text(text) | Value::Number(text) => text,
        Value::Int(_) | Value::Null => b"",
    }
}

impl Begin {
    /// Another warehouse than the home one, if there is one.
    fn other_warehouse(&mut self) -> i64 {
        let other = self.dice.uniform(1, (self.scale - 1).max(1));
        if self.scale > 1 && other >= self.w_id { other + 1 } else { other.min(self.scale) }
    }

    fn customer(&mut self) -> i64 {
        nurand(&mut self.dice, self.seed, 1023, 1, CUSTOMERS)
    }

    /// 60% of the customers are looked up by name.
    fn name(&mut self) -> Option<Value> {
        let name = last_name(nurand(&mut self.dice, self.seed, 255, 0, 999));
        (self.dice.uniform(1, 100) <= 60).then(|| Value::Text(name.into_bytes()))
    }
}

/// One line of a new order.
struct Line {
    item: i64,
    supply: i64,
    quantity: i64,
}

fn new_order(mut begin: Begin, walk: &mut Walk<'_>) -> Result<(), Asked> {
    let (w_id, d_id, c_id) = (begin.w_id, begin.d_id, begin.customer());
    let count = begin.dice.uniform(5, 15);
    let rolled_back = begin.dice.uniform(1, 100) == 1;
    let mut lines = Vec::with_capacity(count as usize);
    for n in 1..=count {
        let item = nurand(&mut begin.dice, begin.seed, 8191, 1, ITEMS);
        // An item that does not exist ends the transaction (clause 2.4.1.4).
        let item = if rolled_back && n == count { -1 } else { item };
        let is_remote = begin.dice.uniform(1, 100) == 1;
        let supply = if is_remote { begin.other_warehouse() } else { w_id };
        lines.push(Line { item, supply, quantity: begin.dice.uniform(1, 10) });
    }
    let all_local = lines.iter().all(|line| line.supply == w_id);

    walk.ask(S::Begin, [])?;
    let rows = walk.ask(S::CustomerAndWarehouse, [int(w_id), int(d_id), int(c_id)])?;
    let discount = column(rows, 0).as_f64().unwrap_or(0.0);
    let w_tax = column(rows, 3).as_f64().unwrap_or(0.0);
    let rows = walk.ask(S::DistrictForUpdate, [int(w_id), int(d_id)])?;
    let o_id = column(rows, 0).as_int().unwrap_or(0);
    let d_tax = column(rows, 1).as_f64().unwrap_or(0.0);
    walk.ask(S::NextOrder, [int(o_id + 1), int(d_id), int(w_id)])?;
    let order = [int(o_id), int(d_id), int(w_id), int(c_id), int(count), int(i64::from(all_local))];
    walk.ask(S::InsertOrder, order)?;
    walk.ask(S::InsertNewOrder, [int(o_id), int(d_id), int(w_id)])?;
    for (n, line) in lines.iter().enumerate() {
        let rows = walk.ask(S::Item, [int(line.item)])?;
        if rows.is_empty() {
            walk.ask(S::Rollback, [])?;
            return Ok(());
        }
        let price = column(rows, 0).as_f64().unwrap_or(0.0);
        let stock_for_update = S::StockForUpdate as usize + (d_id - 1) as usize;
        let rows = walk.ask_variant(stock_for_update, [int(line.item), int(line.supply)])?;
        let quantity = column(rows, 0).as_int().unwrap_or(0);
        let dist_info = column(rows, 2);
        let left = quantity - line.quantity;
        let left = if quantity > line.quantity { left } else { left + 91 };
        walk.ask(S::UpdateStock, [int(left), int(line.item), int(line.supply)])?;
        let amount = line.quantity as f64 * price * (1.0 + w_tax + d_tax) * (1.0 - discount);
        let (line_number, item, supply) = (int(n as i64 + 1), int(line.item), int(line.supply));
        let (order, sold) = ([int(o_id), int(d_id), int(w_id)], int(line.quantity));
        let [o_id, d_id, w_id] = order;
        let values = [o_id, d_id, w_id, line_number, item, supply, sold, number(amount), dist_info];
        walk.ask(S::InsertOrderLine, values)?;
    }
    walk.ask(S::Commit, [])?;
    Ok(())
}

fn payment(mut begin: Begin, walk: &mut Walk<'_>) -> Result<(), Asked> {
    let (w_id, d_id, mut c_id) = (begin.w_id, begin.d_id, begin.customer());
    let amount = begin.dice.uniform(1, 5000);
    let name = begin.name();
    let is_home = begin.dice.uniform(1, 100) <= 85;
    let (c_w_id, c_d_id) =
        if is_home { (w_id, d_id) } else { (begin.other_warehouse(), begin.dice.uniform(1, DISTRICTS)) };

    walk.ask(S::Begin, [])?;
    walk.ask(S::PayWarehouse, [int(amount), int(w_id)])?;
    let w_name = column(walk.ask(S::Warehouse, [int(w_id)])?, 5);
    walk.ask(S::PayDistrict, [int(amount), int(w_id), int(d_id)])?;
    let d_name = column(walk.ask(S::District, [int(w_id), int(d_id)])?, 5);
    if let Some(name) = name {
        walk.ask(S::CountByName, [int(c_w_id), int(c_d_id), name.clone()])?;
        let rows = walk.ask(S::IdsByName, [int(c_w_id), int(c_d_id), name])?;
        c_id = middle(rows, 0).unwrap_or(c_id);
    }
    let rows = walk.ask(S::CustomerForUpdate, [int(c_w_id), int(c_d_id), int(c_id)])?;
    let credit = column(rows, 9);
    let balance = number(column(rows, 12).as_f64().unwrap_or(0.0) - amount as f64);
    let paid = number(column(rows, 13).as_f64().unwrap_or(0.0) + amount as f64);
    if text(&credit) == b"BC" {
        let data = column(walk.ask(S::CustomerData, [int(c_w_id), int(c_d_id), int(c_id)])?, 0);
        let mut new =
            format!("| {c_id:4} {c_d_id:2} {c_w_id:4} {d_id:2} {w_id:4} ${amount:7}.00 ").into_bytes();
        new.extend_from_slice(text(&data));
        new.truncate(500);
        let values = [balance, paid, Value::Text(new), int(c_w_id), int(c_d_id), int(c_id)];
        walk.ask(S::PayCustomerWithData, values)?;
    } else {
        walk.ask(S::PayCustomer, [balance, paid, int(c_w_id), int(c_d_id), int(c_id)])?;
    }
    let mut data = text(&w_name).to_vec();
    data.extend_from_slice(b"    ");
    data.extend_from_slice(text(&d_name));
    data.truncate(24);
    let ids = [c_d_id, c_w_id, c_id, d_id, w_id, amount].map(int);
    let [a, b, c, d, e, f] = ids;
    walk.ask(S::InsertHistory, [a, b, c, d, e, f, Value::Text(data)])?;
    walk.ask(S::Commit, [])?;
    Ok(())
}

/// The row in the middle, rounded up (clause 2.5.2.2).
fn middle(rows: &[Row], n: usize) -> Option<i64> {
    rows.get(rows.len() / 2)?.values.get(n)?.as_int()
}

fn order_status(mut begin: Begin, walk: &mut Walk<'_>) -> Result<(), Asked> {
    let (w_id, d_id, mut c_id) = (begin.w_id, begin.d_id, begin.customer());
    let name = begin.name();

    walk.ask(S::Begin, [])?;
    if let Some(name) = name {
        walk.ask(S::CountByName, [int(w_id), int(d_id), name.clone()])?;
        let rows = walk.ask(S::CustomersByName, [int(w_id), int(d_id), name])?;
        c_id = middle(rows, 3).unwrap_or(c_id);
    } else {
        walk.ask(S::Customer, [int(w_id), int(d_id), int(c_id)])?;
    }
    let o_id = column(walk.ask(S::LastOrder, [int(w_id), int(d_id), int(c_id)])?, 0).as_int();
    walk.ask(S::OrderLines, [int(w_id), int(d_id), int(o_id.unwrap_or(0))])?;
    walk.ask(S::Commit, [])?;
    Ok(())
}

fn delivery(mut begin: Begin, walk: &mut Walk<'_>) -> Result<(), Asked> {
    let w_id = begin.w_id;
    let carrier = begin.dice.uniform(1, 10);

    walk.ask(S::Begin, [])?;
    for d_id in 1..=DISTRICTS {
        let rows = walk.ask(S::OldestNewOrder, [int(d_id), int(w_id)])?;
        let Some(o_id) = column(rows, 0).as_int() else { continue };
        let order = || [int(o_id), int(d_id), int(w_id)];
        walk.ask(S::DeleteNewOrder, order())?;
        let c_id = column(walk.ask(S::OrderCustomer, order())?, 0).as_int().unwrap_or(0);
        walk.ask(S::SetCarrier, [int(carrier), int(o_id), int(d_id), int(w_id)])?;
        walk.ask(S::SetDelivered, order())?;
        let total = column(walk.ask(S::OrderTotal, order())?, 0).as_f64().unwrap_or(0.0);
        walk.ask(S::AddBalance, [number(total), int(c_id), int(d_id), int(w_id)])?;
    }
    walk.ask(S::Commit, [])?;
    Ok(())
}

fn stock_level(mut begin: Begin, walk: &mut Walk<'_>) -> Result<(), Asked> {
    let (w_id, d_id) = (begin.w_id, begin.d_id);
    let level = begin.dice.uniform(10, 20);

    walk.ask(S::Begin, [])?;
    let next = column(walk.ask(S::NextOrderId, [int(d_id), int(w_id)])?, 0).as_int().unwrap_or(0);
    let items = walk.ask(S::ItemsOfOrders, [int(w_id), int(d_id), int(next), int(next - 20)])?;
    for item in items.iter().filter_map(|row| row.values.first()?.as_int()) {
        walk.ask(S::LowStock, [int(w_id), int(item), int(level)])?;
    }
    walk.ask(S::Commit, [])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::tpcc;

    /// Answers each step of an event and returns the labels of what was asked.
    fn play(kind: usize, scale: i64, event: u32, answer: impl Fn(&str) -> Vec<Vec<Value>>) -> Vec<String> {
        let options = Options::default();
        let (statements, mut heard, mut labels) = (statements(1, "BEGIN"), Vec::new(), Vec::new());
        for step in 0.. {
            let mut asked = Query::default();
            let at = At { client: 1, event, step };
            if !query(&options, scale, kind, at, &heard, &mut asked) {
                return labels;
            }
            let statement = &statements[asked.statement];
            assert_eq!(statement.params(), asked.params.len(), "{}", statement.label());
            heard.extend(answer(statement.label()).into_iter().map(|values| Row { step, values }));
            labels.push(statement.label().to_owned());
        }
        labels
    }

    fn words(labels: &[String]) -> Vec<&str> {
        labels.iter().map(|label| label.split(' ').next().unwrap()).collect()
    }

    #[test]
    fn there_is_a_text_for_each_statement() {
        assert_eq!(TEXTS.len(), S::StockForUpdate as usize);
        assert_eq!(statements(3, "BEGIN").len(), 3 * (TEXTS.len() + 10));
    }

    #[test]
    fn a_new_order_has_four_statements_for_each_line() {
        let labels = play(0, 2, 1, |_| vec![vec![Value::Int(40), Value::Int(0), Value::Text(b"x".to_vec())]]);
        assert_eq!(words(&labels[..6]), ["BEGIN", "SELECT", "SELECT", "UPDATE", "INSERT", "INSERT"]);
        assert_eq!(labels.last().unwrap(), "COMMIT");
        let lines = labels.len() - 7;
        assert!(lines.is_multiple_of(4) && (5..=15).contains(&(lines / 4)), "{lines}");
    }

    #[test]
    fn a_new_order_of_an_unknown_item_is_rolled_back() {
        let labels = play(0, 1, 1, |label| match label {
            label if label.contains("FROM item") => Vec::new(),
            _ => vec![vec![Value::Int(1); 4]],
        });
        assert_eq!(labels.last().unwrap(), "ROLLBACK");
    }

    #[test]
    fn a_district_without_new_orders_is_passed_over() {
        let all = play(3, 1, 1, |_| vec![vec![Value::Int(7)]]);
        let none = play(3, 1, 1, |_| Vec::new());
        assert_eq!((all.len(), none.len()), (2 + 10 * 7, 2 + 10));
    }

    #[test]
    fn stock_is_looked_up_for_each_item() {
        let labels = play(4, 1, 1, |label| match label {
            label if label.contains("DISTINCT") => (1..=5).map(|n| vec![Value::Int(n)]).collect(),
            _ => vec![vec![Value::Int(3001)]],
        });
        assert_eq!(labels.iter().filter(|label| label.contains("FROM stock")).count(), 5);
    }

    #[test]
    fn payments_and_questions_end() {
        for event in 1..40 {
            for kind in [1, 2] {
                let labels = play(kind, 3, event, |_| vec![vec![Value::Text(b"BC".to_vec()); 15]]);
                assert_eq!((labels[0].as_str(), labels.last().unwrap().as_str()), ("BEGIN", "COMMIT"));
            }
        }
    }

    #[test]
    fn the_other_warehouse_is_never_the_home_one() {
        for event in 0..500 {
            let dice = Dice::new(1, 0, event, 0);
            let mut begin = Begin { dice, seed: 1, scale: 3, w_id: 1 + i64::from(event % 3), d_id: 1 };
            let other = begin.other_warehouse();
            assert!(other != begin.w_id && (1..=3).contains(&other));
            begin.scale = 1;
            begin.w_id = 1;
            assert_eq!(begin.other_warehouse(), 1);
        }
        assert_eq!(tpcc::NAMES.len(), 5);
    }
}
