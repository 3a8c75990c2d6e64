//! The common parts of sysbench's OLTP workloads: the tables, the statements, their order.
//!
//! A workload of this family is a list of [`Part`]s, each with a repeat count; the files next to this one
//! define it. As in sysbench a part draws its table once and its rows each time.

use super::options::Options;
use super::{At, Params, Workload};
use crate::client::blocking::{Client, ClientError};
use crate::column::{self, C_GROUPS, PAD_GROUPS};
use crate::dice::{Dice, Distribution, mix};
use crate::fill::{Job, Rows, Stage, cut};
use crate::statement::{Expect, Got, Query, Row, Statement, Value};
use crate::url::Dialect;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows that one job of `prepare` fills.
const JOB_ROWS: u64 = 20_000;

/// Rows that are looked at before a run, in each of at most [`PROBED_TABLES`].
const PROBED_ROWS: u32 = 8;
const PROBED_TABLES: u32 = 16;

/// One kind of statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// BEGIN.
    Begin,
    /// COMMIT.
    Commit,
    /// One row by its id. The flag: a missing row is an error.
    Point(bool),
    /// `select`'s: the other column.
    Pad,
    /// Rows between two ids.
    SimpleRange,
    /// The sum of their k.
    SumRange,
    /// Sorted.
    OrderRange,
    /// Sorted and without doubles.
    DistinctRange,
    /// k of one row.
    IndexUpdate,
    /// c of one row.
    NonIndexUpdate,
    /// One row.
    Delete,
    /// The row that was deleted just before.
    InsertAgain,
    /// A new row.
    InsertNew,
}

impl Part {
    /// The text with `%u` for the table's number.
    fn text(self, dialect: Dialect, auto_inc: bool) -> &'static str {
        match self {
            Part::Begin => "BEGIN",
            Part::Commit => "COMMIT",
            Part::Point(_) => "SELECT c FROM sbtest%u WHERE id=?",
            Part::Pad => "SELECT pad FROM sbtest%u WHERE id=?",
            Part::SimpleRange => "SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ?",
            Part::SumRange => "SELECT SUM(k) FROM sbtest%u WHERE id BETWEEN ? AND ?",
            Part::OrderRange => "SELECT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c",
            Part::DistinctRange => "SELECT DISTINCT c FROM sbtest%u WHERE id BETWEEN ? AND ? ORDER BY c",
            Part::IndexUpdate => "UPDATE sbtest%u SET k=k+1 WHERE id=?",
            Part::NonIndexUpdate => "UPDATE sbtest%u SET c=? WHERE id=?",
            Part::Delete => "DELETE FROM sbtest%u WHERE id=?",
            Part::InsertNew if dialect == Dialect::Postgres && auto_inc => {
                "INSERT INTO sbtest%u (k, c, pad) VALUES (?, ?, ?)"
            }
            Part::InsertAgain | Part::InsertNew => "INSERT INTO sbtest%u (id, k, c, pad) VALUES (?, ?, ?, ?)",
        }
    }

    fn is_of_table(self) -> bool {
        !matches!(self, Part::Begin | Part::Commit)
    }
}

/// One statement of a transaction.
#[derive(Debug, Clone, Copy)]
struct Step {
    part: Part,
    /// Index of the statement for the first table.
    first: usize,
    /// Steps of one group use one table.
    group: u64,
    /// Where the row is drawn: an INSERT uses its DELETE's.
    place: u64,
}

/// A workload of the family.
pub struct Oltp {
    name: &'static str,
    dialect: Dialect,
    options: Options,
    ids: Distribution,
    statements: Vec<Statement>,
    steps: Vec<Step>,
    /// All rows from 1 to the table's size were there. Found out by `probe`.
    complete: AtomicBool,
}

impl Oltp {
    /// A transaction of these parts, each so many times.
    pub fn new(name: &'static str, params: &Params, parts: &[(Part, u16)]) -> Oltp {
        let (dialect, options) = (params.dialect, params.options.clone());
        let mut statements = Vec::new();
        let mut known: Vec<(Part, usize)> = Vec::new();
        let mut steps = Vec::new();
        for (group, (part, times)) in parts.iter().enumerate() {
            // Both statements of a pair alternate: DELETE, INSERT, DELETE, INSERT.
            let parts: &[Part] =
                if *part == Part::Delete && parts.get(group + 1).map(|p| p.0) == Some(Part::InsertAgain) {
                    &[Part::Delete, Part::InsertAgain]
                } else if *part == Part::InsertAgain {
                    continue;
                } else {
                    std::slice::from_ref(part)
                };
            for _ in 0..*times {
                let place = steps.len() as u64;
                for part in parts {
                    let first = match known.iter().find(|(p, _)| p == part) {
                        Some((_, first)) => *first,
                        None => {
                            known.push((*part, statements.len()));
                            let first = statements.len();
                            add_statements(*part, dialect, &options, &mut statements);
                            first
                        }
                    };
                    steps.push(Step { part: *part, first, group: group as u64, place });
                }
            }
        }
        let ids = options.ids();
        Oltp { name, dialect, options, ids, statements, steps, complete: AtomicBool::new(true) }
    }

    /// BEGIN, these parts, COMMIT, unless `--skip-trx`.
    pub fn transaction(name: &'static str, params: &Params, parts: &[(Part, u16)]) -> Oltp {
        if params.options.skip_trx.is_on() {
            return Oltp::new(name, params, parts);
        }
        let mut all = vec![(Part::Begin, 1)];
        all.extend_from_slice(parts);
        all.push((Part::Commit, 1));
        Oltp::new(name, params, &all)
    }

    fn fill_query(&self, at: At, step: Step, query: &mut Query) {
        let seed = self.options.seed;
        if !step.part.is_of_table() {
            return query.set(step.first, [], Expect::Success);
        }
        // Groups and places are far below 2^32 and never meet.
        let tables = i64::from(self.options.tables);
        let table = match tables {
            1 => 0,
            _ => Dice::new(seed, at.client, at.event, step.group << 32).uniform(0, tables - 1),
        };
        let statement = step.first + table as usize;
        let table = table as u32 + 1;
        let size = i64::from(self.options.table_size);
        let mut dice = Dice::new(seed, at.client, at.event, step.place + 1);
        let id = self.ids.draw(&mut dice, 1, size);
        let of_row = |needed: bool| Expect::Column { table, id: id as u32, needed };
        match step.part {
            Part::Begin | Part::Commit => query.set(statement, [], Expect::Success),
            Part::Point(needed) => {
                let needed = needed && self.complete.load(Ordering::Relaxed);
                query.set(statement, [Value::Int(id)], of_row(needed));
            }
            Part::Pad => {
                query.set(statement, [Value::Int(id)], of_row(self.complete.load(Ordering::Relaxed)));
            }
            Part::SimpleRange | Part::SumRange | Part::OrderRange | Part::DistinctRange => {
                let last = id + i64::from(self.options.range_size) - 1;
                query.set(statement, [Value::Int(id), Value::Int(last)], Expect::Success);
            }
            Part::IndexUpdate | Part::Delete => query.set(statement, [Value::Int(id)], Expect::Success),
            Part::NonIndexUpdate => {
                let c = digits(table, id, dice.draw(), C_GROUPS);
                query.set(statement, [c, Value::Int(id)], Expect::Success);
            }
            Part::InsertAgain => {
                let k = self.ids.draw(&mut dice, 1, size);
                let random = dice.draw();
                let (c, pad) = (digits(table, id, random, C_GROUPS), digits(table, id, random, PAD_GROUPS));
                query.set(statement, [Value::Int(id), Value::Int(k), c, pad], Expect::Success);
            }
            Part::InsertNew => self.fill_insert(at, statement, id, query),
        }
    }

    /// `id` is what sysbench draws for k here.
    fn fill_insert(&self, at: At, statement: usize, k: i64, query: &mut Query) {
        let random = mix(mix(self.options.seed, u64::from(at.client)), u64::from(at.event));
        // Nobody asks for new rows by their id, so they name none.
        let (c, pad) = (digits(0, 0, random, C_GROUPS), digits(0, 0, random, PAD_GROUPS));
        let k = Value::Int(k);
        if !self.options.auto_inc.is_on() {
            // Random enough not to meet often; a collision is an ignored error on PostgreSQL, as in sysbench.
            let id = Value::Int(i64::from(random as u32) - 0x8000_0000);
            return query.set(statement, [id, k, c, pad], Expect::Success);
        }
        match self.dialect {
            Dialect::Postgres => query.set(statement, [k, c, pad], Expect::Success),
            Dialect::Mysql => query.set(statement, [Value::Int(0), k, c, pad], Expect::Success),
        }
    }
}

fn digits(table: u32, id: i64, random: u64, groups: usize) -> Value {
    let mut out = Vec::with_capacity(groups * 12);
    column::write(table, id as u32, random, groups, &mut out);
    Value::Text(out)
}

fn add_statements(part: Part, dialect: Dialect, options: &Options, statements: &mut Vec<Statement>) {
    let text = part.text(dialect, options.auto_inc.is_on());
    if !part.is_of_table() {
        return statements.push(Statement::new(text));
    }
    for table in 1..=options.tables {
        statements.push(Statement::labelled(&text.replace("%u", &table.to_string()), text));
    }
}

impl Workload for Oltp {
    fn name(&self) -> &'static str {
        self.name
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn query(&self, at: At, _heard: &[Row], query: &mut Query) -> bool {
        let Some(step) = self.steps.get(usize::from(at.step)) else { return false };
        self.fill_query(at, *step, query);
        true
    }

    fn options(&self) -> BTreeMap<String, String> {
        let mut options = self.options.of_tables();
        if self.steps.len() > 1 {
            options.extend(self.options.of_transaction());
        }
        options
    }

    fn seed(&self) -> u64 {
        self.options.seed
    }

    fn prepare(&self) -> Vec<Stage> {
        stages(self.dialect, &self.options, self.name == "oltp_insert")
    }

    fn cleanup(&self) -> Vec<String> {
        drops(&self.options)
    }

    fn probe(&self, client: &mut Client) -> Result<Option<String>, ClientError> {
        let probe = probe(client, &self.options)?;
        self.complete.store(probe.missing.is_none(), Ordering::Relaxed);
        let looks = self.steps.iter().any(|step| matches!(step.part, Part::Point(_) | Part::Pad));
        Ok(match (probe.missing, probe.ours) {
            _ if !looks => None,
            (Some((table, id)), _) => Some(format!(
                "sbtest{table} has no row {id} (oltp_delete?): replies without a row are no errors in this run"
            )),
            (None, false) => Some(
                "the tables were not filled by weir bench: replies are checked for a row, not for its value"
                    .to_owned(),
            ),
            (None, true) => None,
        })
    }
}

pub(super) fn drops(options: &Options) -> Vec<String> {
    (1..=options.tables).map(|table| format!("DROP TABLE IF EXISTS sbtest{table}")).collect()
}

/// What a look at the tables showed.
pub(super) struct Probe {
    /// A row that is not there.
    missing: Option<(u32, u32)>,
    /// All rows are marked as ours.
    ours: bool,
}

/// Looks at some rows of some tables. None at all is an error.
pub(super) fn probe(client: &mut Client, options: &Options) -> Result<Probe, ClientError> {
    let size = options.table_size;
    let mut found = Probe { missing: None, ours: true };
    let step = options.tables.div_ceil(PROBED_TABLES).max(1);
    for table in (1..=options.tables).step_by(step as usize) {
        let mut here = 0;
        for n in 0..PROBED_ROWS {
            let id = 1 + (u64::from(size - 1) * u64::from(n) / u64::from(PROBED_ROWS - 1)) as u32;
            let (mut rows, mut ours) = (0, true);
            client.ask(&format!("SELECT c FROM sbtest{table} WHERE id={id}"), &mut |got: Got<'_>| {
                rows += 1;
                ours &= matches!(got, Got::Text(text) if column::is_marked(text));
            })?;
            here += rows;
            match rows {
                0 => found.missing = Some((table, id)),
                _ => found.ours &= ours,
            }
        }
        if here == 0 {
            return Err(ClientError::own(format!(
                "sbtest{table} has no rows up to {size}: run 'prepare' with the same --tables and --table-size"
            )));
        }
    }
    Ok(found)
}

/// sysbench's tables: created, filled, indexed.
pub(super) fn stages(dialect: Dialect, options: &Options, inserts_only: bool) -> Vec<Stage> {
    let auto_inc = options.auto_inc.is_on();
    // As in sysbench: ids that clients choose may not meet those of prepared rows.
    let size = if inserts_only && !auto_inc { 0 } else { options.table_size };
    let (mut create, mut fill, mut finish) = (Vec::new(), Vec::new(), Vec::new());
    for table in 1..=options.tables {
        create.push(Job::Sql(create_table(dialect, options, table)));
        let (seed, k_max) = (options.seed, i64::from(size));
        let make = Arc::new(move |id: u64, row: &mut crate::fill::RowWriter<'_>| {
            let mut dice = Dice::new(seed, table, id as u32, 0x7072_6570);
            row.int(id as i64);
            row.int(dice.uniform(1, k_max));
            let random = dice.draw();
            let mut digits = Vec::with_capacity(C_GROUPS * 12);
            column::write(table, id as u32, random, C_GROUPS, &mut digits);
            row.text(&digits);
            digits.clear();
            column::write(table, id as u32, random, PAD_GROUPS, &mut digits);
            row.text(&digits);
            row.end();
        });
        let rows = Rows {
            table: format!("sbtest{table}"),
            columns: "id, k, c, pad",
            numbers: 1..=u64::from(size),
            make,
        };
        fill.extend(cut(&rows, JOB_ROWS));
        if options.create_secondary.is_on() {
            finish.push(Job::Sql(format!("CREATE INDEX k_{table} ON sbtest{table}(k)")));
        }
        if dialect == Dialect::Postgres && auto_inc && size > 0 {
            // The rows came with their ids: the sequence has to follow.
            let text = format!("SELECT setval(pg_get_serial_sequence('sbtest{table}', 'id'), {size})");
            finish.push(Job::Sql(text));
        }
    }
    let last = (dialect == Dialect::Postgres).then(|| {
        (1..=options.tables).map(|table| Job::Sql(format!("VACUUM ANALYZE sbtest{table}"))).collect()
    });
    [create, fill, finish].into_iter().chain(last).collect()
}

fn create_table(dialect: Dialect, options: &Options, table: u32) -> String {
    let (id, engine) = match (dialect, options.auto_inc.is_on()) {
        (Dialect::Postgres, true) => ("SERIAL", String::new()),
        (Dialect::Postgres, false) => ("INTEGER NOT NULL", String::new()),
        (Dialect::Mysql, true) => ("INTEGER NOT NULL AUTO_INCREMENT", engine(options)),
        (Dialect::Mysql, false) => ("INTEGER NOT NULL", engine(options)),
    };
    format!(
        "CREATE TABLE sbtest{table}(id {id}, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, \
         pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)){engine}"
    )
}

fn engine(options: &Options) -> String {
    format!(" /*! ENGINE = {} */", options.mysql_storage_engine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::by_name;
    use std::collections::HashSet;

    fn params(change: impl FnOnce(&mut Options)) -> Params {
        let mut options = Options { tables: 3, table_size: 100, ..Options::default() };
        change(&mut options);
        Params { dialect: Dialect::Postgres, connections: 4, options }
    }

    fn labels(workload: &dyn Workload) -> Vec<String> {
        let (mut labels, mut query) = (Vec::new(), Query::default());
        while workload.query(At { client: 1, event: 1, step: labels.len() as u16 }, &[], &mut query) {
            labels.push(workload.statements()[query.statement].label().to_owned());
        }
        labels
    }

    fn of(name: &str, change: impl FnOnce(&mut Options)) -> Vec<String> {
        labels(by_name(name, &params(change)).unwrap().as_ref())
    }

    #[test]
    fn read_write_is_sysbench_transaction_of_twenty() {
        let all = of("oltp_read_write", |_| {});
        assert_eq!(all.len(), 20);
        assert_eq!((all[0].as_str(), all[19].as_str()), ("BEGIN", "COMMIT"));
        assert!(all[1..11].iter().all(|text| text == "SELECT c FROM sbtest%u WHERE id=?"));
        let rest: Vec<_> = all[11..19].iter().map(|text| &text[..text.find(" sbtest").unwrap()]).collect();
        let wanted = [
            "SELECT c FROM",
            "SELECT SUM(k) FROM",
            "SELECT c FROM",
            "SELECT DISTINCT c FROM",
            "UPDATE",
            "UPDATE",
            "DELETE FROM",
            "INSERT INTO",
        ];
        assert_eq!(rest, wanted);
    }

    #[test]
    fn options_change_the_transaction() {
        assert_eq!(of("oltp_read_write", |o| o.skip_trx = super::super::options::Switch::On).len(), 18);
        assert_eq!(of("oltp_read_only", |o| o.range_selects = super::super::options::Switch::Off).len(), 12);
        assert_eq!(of("oltp_read_only", |o| (o.point_selects, o.sum_ranges) = (3, 2)).len(), 2 + 3 + 5);
        let pairs = of("oltp_write_only", |o| o.delete_inserts = 2);
        let words: Vec<_> = pairs.iter().map(|text| text.split(' ').next().unwrap()).collect();
        assert_eq!(words, ["BEGIN", "UPDATE", "UPDATE", "DELETE", "INSERT", "DELETE", "INSERT", "COMMIT"]);
        for (name, word) in [
            ("oltp_point_select", "SELECT"),
            ("select", "SELECT"),
            ("oltp_update_index", "UPDATE"),
            ("oltp_update_non_index", "UPDATE"),
            ("oltp_delete", "DELETE"),
            ("oltp_insert", "INSERT"),
        ] {
            let all = of(name, |_| {});
            assert!(all.len() == 1 && all[0].starts_with(word), "{name}: {all:?}");
        }
    }

    #[test]
    fn an_insert_puts_back_the_deleted_row() {
        let workload = by_name("oltp_write_only", &params(|_| {})).unwrap();
        for event in 1..200 {
            let (mut delete, mut insert) = (Query::default(), Query::default());
            assert!(workload.query(At { client: 0, event, step: 3 }, &[], &mut delete));
            assert!(workload.query(At { client: 0, event, step: 4 }, &[], &mut insert));
            assert_eq!(delete.params[0], insert.params[0]);
            let table =
                |query: &Query| workload.statements()[query.statement].template(Dialect::Mysql).to_owned();
            let digit = |text: String| text[text.find("sbtest").unwrap() + 6..].chars().next();
            assert_eq!(digit(table(&delete)), digit(table(&insert)));
        }
    }

    #[test]
    fn queries_repeat_and_cover_tables_and_rows() {
        let workload = by_name("oltp_point_select", &params(|_| {})).unwrap();
        let (mut tables, mut ids) = (HashSet::new(), HashSet::new());
        for event in 1..3000 {
            let at = At { client: 5, event, step: 0 };
            let (mut a, mut b) = (Query::default(), Query::default());
            assert!(workload.query(at, &[], &mut a) && workload.query(at, &[], &mut b));
            assert_eq!((a.statement, &a.params, &a.expect), (b.statement, &b.params, &b.expect));
            tables.insert(a.statement);
            ids.insert(a.params[0].as_int().unwrap());
        }
        assert_eq!((tables.len(), ids.len()), (3, 100));
    }
}
