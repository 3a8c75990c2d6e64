//! `oltp_point_select`: sysbench's schema, names and text.
//!
//! The columns `c` and `pad` look like sysbench's (groups of eleven digits) but are derived from the table
//! and the row's id, so that a reply can be checked against what was asked for. On tables that sysbench
//! itself filled, the check is that a row came back.

use super::{At, Params, Workload, mix};
use crate::client::blocking::{Client, ClientError};
use crate::statement::{Expect, Got, Query, Statement, Value, write_int};
use crate::url::Dialect;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows of one INSERT in `prepare`.
const INSERT_ROWS: u32 = 500;

/// The workload.
pub struct PointSelect {
    params: Params,
    statements: Vec<Statement>,
    /// The tables hold the values of [`column_c`]. Found out by `probe`.
    known_rows: AtomicBool,
}

impl PointSelect {
    /// The workload on these tables.
    pub fn new(params: Params) -> Self {
        let params = Params { tables: params.tables.max(1), table_size: params.table_size.max(1), ..params };
        let statements = (1..=params.tables)
            .map(|table| Statement::new(&format!("SELECT c FROM sbtest{table} WHERE id=?")))
            .collect();
        PointSelect { params, statements, known_rows: AtomicBool::new(true) }
    }

    fn create(&self, client: &mut Client, table: u32) -> Result<(), ClientError> {
        let (id, engine) = match self.params.dialect {
            Dialect::Postgres => ("SERIAL", ""),
            Dialect::Mysql => ("INTEGER NOT NULL AUTO_INCREMENT", " /*! ENGINE = innodb */"),
        };
        client.run(&format!(
            "CREATE TABLE sbtest{table}(id {id}, k INTEGER DEFAULT '0' NOT NULL, \
             c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)){engine}"
        ))
    }

    fn fill(
        &self,
        client: &mut Client,
        table: u32,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), ClientError> {
        let size = self.params.table_size;
        let (before, all) =
            (u64::from(table - 1) * u64::from(size), u64::from(self.params.tables) * u64::from(size));
        let mut first = 1;
        while first <= size {
            let last = size.min(first.saturating_add(INSERT_ROWS - 1));
            let mut text = format!("INSERT INTO sbtest{table}(k, c, pad) VALUES").into_bytes();
            for id in first..=last {
                text.extend_from_slice(if id == first { b" (" } else { b", (" });
                let k = 1 + mix(self.params.seed ^ 0x6b, u64::from(id)) % u64::from(size);
                write_int(k as i64, &mut text);
                text.extend_from_slice(b", '");
                write_groups(table, id, 10, &mut text);
                text.extend_from_slice(b"', '");
                write_groups(table + 0x1000_0000, id, 5, &mut text);
                text.extend_from_slice(b"')");
            }
            client.run(&String::from_utf8_lossy(&text))?;
            progress(before + u64::from(last), all);
            first = last + 1;
        }
        Ok(())
    }
}

/// The column `c` of one row: ten groups of eleven digits, joined by `-`.
pub fn column_c(table: u32, id: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(120);
    write_groups(table, id, 10, &mut out);
    out
}

fn write_groups(table: u32, id: u32, groups: u64, out: &mut Vec<u8>) {
    let row = mix(u64::from(table), u64::from(id));
    for group in 0..groups {
        if group > 0 {
            out.push(b'-');
        }
        let mut digits = [b'0'; 11];
        let mut rest = mix(row, group + 1) % 100_000_000_000;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        out.extend_from_slice(&digits);
    }
}

impl Workload for PointSelect {
    fn name(&self) -> &'static str {
        "oltp_point_select"
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn query(&self, at: At, query: &mut Query) -> bool {
        if at.step > 0 {
            return false;
        }
        let random = mix(mix(self.params.seed, u64::from(at.client)), u64::from(at.event));
        let table = (random >> 40) % u64::from(self.params.tables);
        let id = 1 + (random & 0xff_ffff_ffff) % u64::from(self.params.table_size);
        let expect = if self.known_rows.load(Ordering::Relaxed) {
            Expect::First(Value::Text(column_c(table as u32 + 1, id as u32)))
        } else {
            Expect::Row
        };
        query.set(table as usize, [Value::Int(id as i64)], expect);
        true
    }

    fn prepare(&self, client: &mut Client, progress: &mut dyn FnMut(u64, u64)) -> Result<(), ClientError> {
        for table in 1..=self.params.tables {
            self.create(client, table)?;
            self.fill(client, table, progress)?;
            client.run(&format!("CREATE INDEX k_{table} ON sbtest{table}(k)"))?;
        }
        Ok(())
    }

    fn probe(&self, client: &mut Client) -> Result<Option<String>, ClientError> {
        let size = self.params.table_size;
        let mut known = true;
        for table in 1..=self.params.tables {
            for id in [1, size] {
                let expect = Expect::First(Value::Text(column_c(table, id)));
                let mut rows = 0;
                client.ask(&format!("SELECT c FROM sbtest{table} WHERE id={id}"), &mut |got: Got<'_>| {
                    rows += 1;
                    known &= expect.matches(got);
                })?;
                if rows == 0 {
                    return Err(ClientError::own(format!(
                        "sbtest{table} has no row {id}: run 'prepare' with the same --tables and --table-size"
                    )));
                }
            }
        }
        self.known_rows.store(known, Ordering::Relaxed);
        Ok((!known).then(|| {
            "the tables were not filled by weir bench: replies are checked for a row, not for its value"
                .to_owned()
        }))
    }

    fn cleanup(&self, client: &mut Client) -> Result<(), ClientError> {
        for table in 1..=self.params.tables {
            client.run(&format!("DROP TABLE IF EXISTS sbtest{table}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn workload() -> PointSelect {
        PointSelect::new(Params { dialect: Dialect::Postgres, tables: 3, table_size: 100, seed: 7 })
    }

    #[test]
    fn columns_have_sysbench_shape() {
        let c = column_c(1, 1);
        assert_eq!(c.len(), 119);
        assert_eq!(c.split(|&b| b == b'-').filter(|g| g.len() == 11).count(), 10);
        assert_ne!(column_c(1, 1), column_c(1, 2));
        assert_ne!(column_c(1, 1), column_c(2, 1));
    }

    #[test]
    fn queries_repeat_and_cover_tables_and_rows() {
        let workload = workload();
        let (mut tables, mut ids) = (HashSet::new(), HashSet::new());
        for event in 1..3000 {
            let at = At { client: 5, event, step: 0 };
            let (mut a, mut b) = (Query::default(), Query::default());
            assert!(workload.query(at, &mut a) && workload.query(at, &mut b));
            assert_eq!((a.statement, &a.params, &a.expect), (b.statement, &b.params, &b.expect));
            tables.insert(a.statement);
            let Value::Int(id) = a.params[0] else { panic!("not a number") };
            assert!((1..=100).contains(&id));
            ids.insert(id);
            assert_eq!(a.expect, Expect::First(Value::Text(column_c(a.statement as u32 + 1, id as u32))));
        }
        assert_eq!((tables.len(), ids.len()), (3, 100));
    }
}
