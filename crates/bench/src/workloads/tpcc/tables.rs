//! The nine tables, with the columns, keys and indexes of sysbench-tpcc.

use super::{CUSTOMERS, DISTRICTS, FIRST_NEW_ORDER, ITEMS, last_name, nurand};
use crate::dice::Dice;
use crate::fill::{Job, MakeRow, RowWriter, Rows, Stage, cut};
use crate::url::Dialect;
use crate::workloads::options::Options;
use std::sync::Arc;

/// When everything that is there to begin with happened.
const DATE: &[u8] = b"2024-01-01 00:00:00";

/// Numbers that one job fills.
const JOB_ROWS: u64 = 10_000;

/// In an order in which they can be dropped.
const TABLES: [&str; 9] =
    ["order_line", "new_orders", "history", "orders", "customer", "stock", "district", "warehouse", "item"];

pub(super) fn drops(sets: u32) -> Vec<String> {
    (1..=sets)
        .flat_map(|set| TABLES.iter().map(move |table| format!("DROP TABLE IF EXISTS {table}{set}")))
        .collect()
}

pub(super) fn stages(dialect: Dialect, options: &Options, scale: u32) -> Vec<Stage> {
    let (mut create, mut fill, mut index, mut analyze) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut keys = Vec::new();
    for set in 1..=options.tables {
        create.extend(creates(dialect, options, set).into_iter().map(Job::Sql));
        fill.extend(fills(options.seed, set, u64::from(scale)));
        index.extend(indexes(set).into_iter().map(Job::Sql));
        if options.use_fk.is_on() {
            // One at a time: each locks two tables.
            keys.extend(foreign_keys(set).into_iter().map(|text| vec![Job::Sql(text)]));
        }
        if dialect == Dialect::Postgres {
            analyze.extend(TABLES.iter().map(|table| Job::Sql(format!("VACUUM ANALYZE {table}{set}"))));
        }
    }
    let mut stages = vec![create, fill, index];
    stages.extend(keys);
    stages.push(analyze);
    stages
}

fn creates(dialect: Dialect, options: &Options, set: u32) -> Vec<String> {
    let (tiny, time, engine) = match dialect {
        Dialect::Postgres => ("smallint", "timestamp", String::new()),
        Dialect::Mysql => {
            ("tinyint", "datetime", format!(" /*! ENGINE = {} */", options.mysql_storage_engine))
        }
    };
    let address = |p: &str| {
        format!(
            "{p}_street_1 varchar(20), {p}_street_2 varchar(20), {p}_city varchar(20), {p}_state char(2), {p}_zip char(9)"
        )
    };
    let dists: Vec<_> = (1..=DISTRICTS).map(|d| format!("s_dist_{d:02} char(24)")).collect();
    [
        format!(
            "warehouse{set} (w_id smallint not null, w_name varchar(10), {}, w_tax decimal(4,2), w_ytd decimal(12,2), \
             primary key (w_id))",
            address("w")
        ),
        format!(
            "district{set} (d_id {tiny} not null, d_w_id smallint not null, d_name varchar(10), {}, d_tax decimal(4,2), \
             d_ytd decimal(12,2), d_next_o_id int, primary key (d_w_id, d_id))",
            address("d")
        ),
        format!(
            "customer{set} (c_id int not null, c_d_id {tiny} not null, c_w_id smallint not null, c_first varchar(16), \
             c_middle char(2), c_last varchar(16), {}, c_phone char(16), c_since {time}, c_credit char(2), \
             c_credit_lim bigint, c_discount decimal(4,2), c_balance decimal(12,2), c_ytd_payment decimal(12,2), \
             c_payment_cnt smallint, c_delivery_cnt smallint, c_data text, PRIMARY KEY(c_w_id, c_d_id, c_id))",
            address("c")
        ),
        format!(
            "history{set} (h_c_id int, h_c_d_id {tiny}, h_c_w_id smallint, h_d_id {tiny}, h_w_id smallint, h_date {time}, \
             h_amount decimal(6,2), h_data varchar(24))"
        ),
        format!(
            "orders{set} (o_id int not null, o_d_id {tiny} not null, o_w_id smallint not null, o_c_id int, \
             o_entry_d {time}, o_carrier_id {tiny}, o_ol_cnt {tiny}, o_all_local {tiny}, PRIMARY KEY(o_w_id, o_d_id, o_id))"
        ),
        format!(
            "new_orders{set} (no_o_id int not null, no_d_id {tiny} not null, no_w_id smallint not null, \
             PRIMARY KEY(no_w_id, no_d_id, no_o_id))"
        ),
        format!(
            "order_line{set} (ol_o_id int not null, ol_d_id {tiny} not null, ol_w_id smallint not null, \
             ol_number {tiny} not null, ol_i_id int, ol_supply_w_id smallint, ol_delivery_d {time}, ol_quantity {tiny}, \
             ol_amount decimal(6,2), ol_dist_info char(24), PRIMARY KEY(ol_w_id, ol_d_id, ol_o_id, ol_number))"
        ),
        format!(
            "stock{set} (s_i_id int not null, s_w_id smallint not null, s_quantity smallint, {}, s_ytd decimal(8,0), \
             s_order_cnt smallint, s_remote_cnt smallint, s_data varchar(50), PRIMARY KEY(s_w_id, s_i_id))",
            dists.join(", ")
        ),
        format!(
            "item{set} (i_id int not null, i_im_id int, i_name varchar(24), i_price decimal(5,2), i_data varchar(50), \
             PRIMARY KEY(i_id))"
        ),
    ]
    .map(|table| format!("CREATE TABLE {table}{engine}"))
    .to_vec()
}

fn indexes(set: u32) -> Vec<String> {
    [
        ("idx_customer", "customer", "c_w_id,c_d_id,c_last,c_first"),
        ("idx_orders", "orders", "o_w_id,o_d_id,o_c_id,o_id"),
        ("fkey_stock_2", "stock", "s_i_id"),
        ("fkey_order_line_2", "order_line", "ol_supply_w_id,ol_i_id"),
        ("fkey_history_1", "history", "h_c_w_id,h_c_d_id,h_c_id"),
        ("fkey_history_2", "history", "h_w_id,h_d_id"),
    ]
    .map(|(index, table, columns)| format!("CREATE INDEX {index}{set} ON {table}{set} ({columns})"))
    .to_vec()
}

fn foreign_keys(set: u32) -> Vec<String> {
    [
        ("new_orders_1", "new_orders", "no_w_id,no_d_id,no_o_id", "orders", "o_w_id,o_d_id,o_id"),
        ("orders_1", "orders", "o_w_id,o_d_id,o_c_id", "customer", "c_w_id,c_d_id,c_id"),
        ("customer_1", "customer", "c_w_id,c_d_id", "district", "d_w_id,d_id"),
        ("history_1", "history", "h_c_w_id,h_c_d_id,h_c_id", "customer", "c_w_id,c_d_id,c_id"),
        ("history_2", "history", "h_w_id,h_d_id", "district", "d_w_id,d_id"),
        ("district_1", "district", "d_w_id", "warehouse", "w_id"),
        ("order_line_1", "order_line", "ol_w_id,ol_d_id,ol_o_id", "orders", "o_w_id,o_d_id,o_id"),
        ("order_line_2", "order_line", "ol_supply_w_id,ol_i_id", "stock", "s_w_id,s_i_id"),
        ("stock_1", "stock", "s_w_id", "warehouse", "w_id"),
        ("stock_2", "stock", "s_i_id", "item", "i_id"),
    ]
    .map(|(name, table, columns, parent, keys)| {
        format!(
            "ALTER TABLE {table}{set} ADD CONSTRAINT fkey_{name}_{set} FOREIGN KEY({columns}) \
             REFERENCES {parent}{set}({keys})"
        )
    })
    .to_vec()
}

/// Warehouse, district and number within it, all from 1, of the n-th row of a table with `each` rows in a
/// district.
fn place(n: u64, each: i64) -> (i64, i64, i64) {
    let n = n as i64 - 1;
    (n / (DISTRICTS * each) + 1, n / each % DISTRICTS + 1, n % each + 1)
}

fn fills(seed: u64, set: u32, scale: u64) -> Stage {
    let (districts, customers) = (scale * DISTRICTS as u64, scale * (DISTRICTS * CUSTOMERS) as u64);
    let new_orders = CUSTOMERS - FIRST_NEW_ORDER + 1;
    let dice = move |table: u64, n: u64| Dice::new(seed, set, n as u32, table);
    let mut stage = Vec::new();
    let mut add = |table: &str, columns, rows: u64, each: u64, make: MakeRow| {
        stage.extend(cut(&Rows { table: format!("{table}{set}"), columns, numbers: 1..=rows, make }, each));
    };
    let columns = "c_id,c_d_id,c_w_id,c_first,c_middle,c_last,c_street_1,c_street_2,c_city,c_state,c_zip,c_phone,c_since,c_credit,\
         c_credit_lim,c_discount,c_balance,c_ytd_payment,c_payment_cnt,c_delivery_cnt,c_data";
    add("customer", columns, customers, JOB_ROWS, Arc::new(move |n, row| customer(n, seed, dice(1, n), row)));
    let columns = "s_i_id,s_w_id,s_quantity,s_dist_01,s_dist_02,s_dist_03,s_dist_04,s_dist_05,s_dist_06,s_dist_07,s_dist_08,\
         s_dist_09,s_dist_10,s_ytd,s_order_cnt,s_remote_cnt,s_data";
    add("stock", columns, scale * ITEMS as u64, JOB_ROWS, Arc::new(move |n, row| stock(n, dice(2, n), row)));
    let columns = "ol_o_id,ol_d_id,ol_w_id,ol_number,ol_i_id,ol_supply_w_id,ol_delivery_d,ol_quantity,ol_amount,ol_dist_info";
    add(
        "order_line",
        columns,
        customers,
        JOB_ROWS / 10,
        Arc::new(move |n, row| order_lines(n, dice(3, n), row)),
    );
    let columns = "o_id,o_d_id,o_w_id,o_c_id,o_entry_d,o_carrier_id,o_ol_cnt,o_all_local";
    add("orders", columns, customers, JOB_ROWS, Arc::new(move |n, row| order(n, dice(3, n), row)));
    let columns = "h_c_id,h_c_d_id,h_c_w_id,h_d_id,h_w_id,h_date,h_amount,h_data";
    add("history", columns, customers, JOB_ROWS, Arc::new(move |n, row| history(n, dice(4, n), row)));
    let columns = "no_o_id,no_d_id,no_w_id";
    let make = Arc::new(move |n: u64, row: &mut RowWriter<'_>| {
        let (w, d, number) = place(n, new_orders);
        [FIRST_NEW_ORDER - 1 + number, d, w].into_iter().for_each(|n| row.int(n));
        row.end();
    });
    add("new_orders", columns, districts * new_orders as u64, JOB_ROWS, make);
    let columns = "d_id,d_w_id,d_name,d_street_1,d_street_2,d_city,d_state,d_zip,d_tax,d_ytd,d_next_o_id";
    let make = Arc::new(move |n: u64, row: &mut RowWriter<'_>| {
        let (mut dice, (w, d, _)) = (dice(5, n), place(n, 1));
        row.int(d);
        row.int(w);
        row.text(&[b"name-", &letters(&mut dice, 5)[..]].concat());
        address(&mut dice, row);
        row.number(&hundredths(dice.uniform(0, 20)));
        row.int(30_000);
        row.int(CUSTOMERS + 1);
        row.end();
    });
    add("district", columns, districts, JOB_ROWS, make);
    let columns = "w_id,w_name,w_street_1,w_street_2,w_city,w_state,w_zip,w_tax,w_ytd";
    let make = Arc::new(move |n: u64, row: &mut RowWriter<'_>| {
        let mut dice = dice(6, n);
        row.int(n as i64);
        row.text(&[b"name-", &letters(&mut dice, 5)[..]].concat());
        address(&mut dice, row);
        row.number(&hundredths(dice.uniform(0, 20)));
        row.int(300_000);
        row.end();
    });
    add("warehouse", columns, scale, JOB_ROWS, make);
    let columns = "i_id,i_im_id,i_name,i_price,i_data";
    let make = Arc::new(move |n: u64, row: &mut RowWriter<'_>| {
        let mut dice = dice(7, n);
        row.int(n as i64);
        row.int(dice.uniform(1, 10_000));
        let name = [b"item-", &letters(&mut dice, 12)[..]].concat();
        row.text(&name);
        row.number(&hundredths(dice.uniform(100, 10_100)));
        row.text(&[b"data-", &name[..], b"-", &letters(&mut dice, 5)[..]].concat());
        row.end();
    });
    add("item", columns, ITEMS as u64, JOB_ROWS, make);
    stage
}

fn customer(n: u64, seed: u64, mut dice: Dice, row: &mut RowWriter<'_>) {
    let (w, d, c) = place(n, CUSTOMERS);
    [c, d, w].into_iter().for_each(|n| row.int(n));
    let length = dice.uniform(2, 10) as usize;
    row.text(&[b"first-", &letters(&mut dice, length)[..]].concat());
    row.text(b"OE");
    let name = if c <= 1000 { c - 1 } else { nurand(&mut dice, seed, 255, 0, 999) };
    row.text(last_name(name).as_bytes());
    address(&mut dice, row);
    row.text(&digits(&mut dice, 16));
    row.text(DATE);
    row.text(if dice.uniform(1, 100) > 10 { b"GC" } else { b"BC" });
    row.int(50_000);
    row.number(&hundredths(dice.uniform(0, 50)));
    [-10, 10, 1, 0].into_iter().for_each(|n| row.int(n));
    let letter = letters(&mut dice, 1)[0];
    row.text(&vec![letter; dice.uniform(300, 500) as usize]);
    row.end();
}

fn stock(n: u64, mut dice: Dice, row: &mut RowWriter<'_>) {
    row.int((n as i64 - 1) % ITEMS + 1);
    row.int((n as i64 - 1) / ITEMS + 1);
    row.int(dice.uniform(10, 100));
    for _ in 0..DISTRICTS {
        let letter = letters(&mut dice, 1)[0];
        row.text(&[letter; 24]);
    }
    [0, 0, 0].into_iter().for_each(|n| row.int(n));
    let letter = letters(&mut dice, 1)[0];
    row.text(&vec![letter; dice.uniform(26, 50) as usize]);
    row.end();
}

/// Lines of an order: the first number of its dice, for the order and for the lines.
fn line_count(dice: &mut Dice) -> i64 {
    dice.uniform(5, 15)
}

fn order(n: u64, mut dice: Dice, row: &mut RowWriter<'_>) {
    let (w, d, o) = place(n, CUSTOMERS);
    let count = line_count(&mut dice);
    // Each customer has one order: 1237 and 3000 have no common divisor, so this is a permutation.
    let customer = (o * 1237 + 17 * d) % CUSTOMERS + 1;
    [o, d, w, customer].into_iter().for_each(|n| row.int(n));
    row.text(DATE);
    if o < FIRST_NEW_ORDER {
        row.int(dice.uniform(1, 10))
    } else {
        row.null()
    }
    row.int(count);
    row.int(1);
    row.end();
}

fn order_lines(n: u64, mut dice: Dice, row: &mut RowWriter<'_>) {
    let (w, d, o) = place(n, CUSTOMERS);
    for number in 1..=line_count(&mut dice) {
        [o, d, w, number, dice.uniform(1, ITEMS), w].into_iter().for_each(|n| row.int(n));
        if o < FIRST_NEW_ORDER {
            row.text(DATE)
        } else {
            row.null()
        }
        row.int(5);
        let amount = if o < FIRST_NEW_ORDER { 0 } else { dice.uniform(1, 999_999) };
        row.number(&hundredths(amount));
        let letter = letters(&mut dice, 1)[0];
        row.text(&[letter; 24]);
        row.end();
    }
}

fn history(n: u64, mut dice: Dice, row: &mut RowWriter<'_>) {
    let (w, d, c) = place(n, CUSTOMERS);
    [c, d, w, d, w].into_iter().for_each(|n| row.int(n));
    row.text(DATE);
    row.int(10);
    let letter = letters(&mut dice, 1)[0];
    row.text(&vec![letter; dice.uniform(12, 24) as usize]);
    row.end();
}

fn address(dice: &mut Dice, row: &mut RowWriter<'_>) {
    for before in ["street1-", "street2-", "city-"] {
        row.text(&[before.as_bytes(), &letters(dice, 10)[..]].concat());
    }
    row.text(&letters(dice, 2));
    row.text(&[b"zip-", &digits(dice, 5)[..]].concat());
}

fn letters(dice: &mut Dice, count: usize) -> Vec<u8> {
    (0..count).map(|_| b'a' + dice.uniform(0, 25) as u8).collect()
}

fn digits(dice: &mut Dice, count: usize) -> Vec<u8> {
    (0..count).map(|_| b'0' + dice.uniform(0, 9) as u8).collect()
}

fn hundredths(n: i64) -> String {
    format!("{}.{:02}", n / 100, n % 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn lines(stage: &Stage, table: &str) -> Vec<Vec<String>> {
        let mut out = Vec::new();
        for job in stage {
            let Job::Rows(rows) = job else { continue };
            if rows.table == table {
                rows.numbers.clone().for_each(|n| (rows.make)(n, &mut RowWriter::copy(&mut out)));
            }
        }
        let text = String::from_utf8(out).unwrap();
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn tables_are_complete_and_fit_together() {
        let stage = fills(1, 1, 1);
        let warehouses = lines(&stage, "warehouse1");
        assert_eq!((warehouses.len(), lines(&stage, "district1").len()), (1, 10));
        let orders = lines(&stage, "orders1");
        let customers: HashSet<_> = lines(&stage, "customer1").into_iter().map(|c| c[..3].to_vec()).collect();
        assert_eq!((orders.len(), customers.len()), (30_000, 30_000));
        let ordered: HashSet<_> =
            orders.iter().map(|o| vec![o[3].clone(), o[1].clone(), o[2].clone()]).collect();
        assert_eq!(ordered, customers);
        let expected: usize = orders.iter().map(|o| o[6].parse::<usize>().unwrap()).sum();
        assert_eq!(lines(&stage, "order_line1").len(), expected);
        assert_eq!(lines(&stage, "new_orders1").len(), 10 * 900);
        assert_eq!(orders.iter().filter(|o| o[5] == "\\N").count(), 10 * 900);
        assert_eq!(place(60_001, CUSTOMERS), (3, 1, 1));
    }
}
