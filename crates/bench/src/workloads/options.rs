//! The options of workloads, under sysbench's and pgbench's names.
//!
//! sysbench writes a name with `_` or with `-`: both are understood.

use crate::dice::Distribution;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which rows are chosen more often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shape {
    /// All rows equally often (the default of sysbench 1.1).
    Uniform,
    /// Those in the middle.
    Gaussian,
    /// 75% of all choices fall on 1% of the rows (the default of sysbench 1.0).
    Special,
    /// The first ones: 80% of the choices fall on 20% of the rows.
    Pareto,
    /// The first ones, by Zipf's law.
    Zipfian,
}

/// A switch that sysbench writes as `on` or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[allow(missing_docs)]
pub enum Switch {
    #[value(alias = "true", alias = "1", alias = "yes")]
    On,
    #[value(alias = "false", alias = "0", alias = "no")]
    Off,
}

impl Switch {
    /// It is on.
    pub fn is_on(self) -> bool {
        self == Switch::On
    }

    fn name(self) -> &'static str {
        if self.is_on() { "on" } else { "off" }
    }
}

/// Isolation of tpcc's transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Isolation {
    /// READ COMMITTED.
    #[value(name = "RC", alias = "rc")]
    Rc,
    /// REPEATABLE READ.
    #[value(name = "RR", alias = "rr")]
    Rr,
    /// SERIALIZABLE.
    #[value(name = "SER", alias = "ser")]
    Ser,
}

impl Isolation {
    /// As SQL has it.
    pub fn sql(self) -> &'static str {
        match self {
            Isolation::Rc => "READ COMMITTED",
            Isolation::Rr => "REPEATABLE READ",
            Isolation::Ser => "SERIALIZABLE",
        }
    }
}

/// What workloads are made from.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Workload options")]
pub struct Options {
    /// Tables sbtest1 to sbtestN (tpcc: sets of tables).
    #[arg(long, aliases = ["oltp-tables-count", "oltp_tables_count"], default_value_t = 1)]
    pub tables: u32,
    /// Rows in each table.
    #[arg(long, aliases = ["oltp-table-size", "oltp_table_size"], alias = "table_size", default_value_t = 10_000)]
    pub table_size: u32,
    /// pgbench's scaling factor (100,000 accounts each); tpcc: warehouses in each set. Default: for `run`
    /// what the tables say, for `prepare` 1.
    #[arg(long)]
    pub scale: Option<u32>,
    /// How rows are chosen.
    #[arg(long, aliases = ["oltp-dist-type", "oltp_dist_type"], alias = "rand-type", alias = "rand_type", value_enum, default_value_t = Shape::Uniform)]
    pub distribution: Shape,
    /// Parameter h of pareto.
    #[arg(long, alias = "rand_pareto_h", default_value_t = 0.2)]
    pub rand_pareto_h: f64,
    /// Exponent of zipfian.
    #[arg(long, alias = "rand_zipfian_exp", default_value_t = 0.8)]
    pub rand_zipfian_exp: f64,
    /// Uniform choices of which gaussian and special take the mean.
    #[arg(long, aliases = ["oltp-dist-iter", "oltp_dist_iter"], alias = "rand_spec_iter", default_value_t = 12)]
    pub rand_spec_iter: u32,
    /// Percent of the rows that special prefers.
    #[arg(long, aliases = ["oltp-dist-pct", "oltp_dist_pct"], alias = "rand_spec_pct", default_value_t = 1)]
    pub rand_spec_pct: u32,
    /// Percent of the choices that fall on them.
    #[arg(long, aliases = ["oltp-dist-res", "oltp_dist_res"], alias = "rand_spec_res", default_value_t = 75)]
    pub rand_spec_res: u32,
    /// Seed of all random choices.
    #[arg(long, alias = "rand-seed", alias = "rand_seed", default_value_t = 1)]
    pub seed: u64,
    /// Rows of a range SELECT.
    #[arg(long, aliases = ["oltp-range-size", "oltp_range_size"], alias = "range_size", default_value_t = 100)]
    pub range_size: u32,
    /// Point SELECTs in a transaction.
    #[arg(long, aliases = ["oltp-point-selects", "oltp_point_selects"], alias = "point_selects", default_value_t = 10)]
    pub point_selects: u16,
    /// Simple range SELECTs in a transaction.
    #[arg(long, aliases = ["oltp-simple-ranges", "oltp_simple_ranges"], alias = "simple_ranges", default_value_t = 1)]
    pub simple_ranges: u16,
    /// SELECT SUM() in a transaction.
    #[arg(long, aliases = ["oltp-sum-ranges", "oltp_sum_ranges"], alias = "sum_ranges", default_value_t = 1)]
    pub sum_ranges: u16,
    /// SELECT ... ORDER BY in a transaction.
    #[arg(long, aliases = ["oltp-order-ranges", "oltp_order_ranges"], alias = "order_ranges", default_value_t = 1)]
    pub order_ranges: u16,
    /// SELECT DISTINCT in a transaction.
    #[arg(long, aliases = ["oltp-distinct-ranges", "oltp_distinct_ranges"], alias = "distinct_ranges", default_value_t = 1)]
    pub distinct_ranges: u16,
    /// All range SELECTs.
    #[arg(long, aliases = ["oltp-range-selects", "oltp_range_selects"], alias = "range_selects", value_enum, default_value_t = Switch::On)]
    pub range_selects: Switch,
    /// Updates of the indexed column in a transaction.
    #[arg(long, aliases = ["oltp-index-updates", "oltp_index_updates"], alias = "index_updates", default_value_t = 1)]
    pub index_updates: u16,
    /// Updates of a column without an index in a transaction.
    #[arg(long, aliases = ["oltp-non-index-updates", "oltp_non_index_updates"], alias = "non_index_updates", default_value_t = 1)]
    pub non_index_updates: u16,
    /// Pairs of DELETE and INSERT in a transaction.
    #[arg(long, aliases = ["oltp-delete-inserts", "oltp_delete_inserts"], alias = "delete_inserts", default_value_t = 1)]
    pub delete_inserts: u16,
    /// No BEGIN and COMMIT.
    #[arg(long, aliases = ["oltp-skip-trx", "oltp_skip_trx"], alias = "skip_trx", value_enum, default_value_t = Switch::Off, num_args = 0..=1, default_missing_value = "on")]
    pub skip_trx: Switch,
    /// The server chooses the ids of inserted rows.
    #[arg(long, aliases = ["oltp-auto-inc", "oltp_auto_inc"], alias = "auto_inc", value_enum, default_value_t = Switch::On)]
    pub auto_inc: Switch,
    /// The index on k.
    #[arg(long, aliases = ["oltp-secondary", "oltp_secondary"], alias = "create_secondary", value_enum, default_value_t = Switch::On)]
    pub create_secondary: Switch,
    /// MySQL's storage engine.
    #[arg(long, aliases = ["mysql-table-engine", "mysql_table_engine"], alias = "mysql_storage_engine", default_value = "innodb")]
    pub mysql_storage_engine: String,
    /// Values of IN () in select_random_points.
    #[arg(long, alias = "random_points", default_value_t = 10)]
    pub random_points: u16,
    /// Ranges of select_random_ranges.
    #[arg(long, alias = "number_of_ranges", default_value_t = 10)]
    pub number_of_ranges: u16,
    /// Length of the ranges of select_random_ranges.
    #[arg(long, default_value_t = 5)]
    pub delta: u32,
    /// Isolation level of tpcc's transactions.
    #[arg(long, alias = "trx_level", value_enum, default_value_t = Isolation::Rr)]
    pub trx_level: Isolation,
    /// Foreign keys between tpcc's tables.
    #[arg(long, alias = "use_fk", value_enum, default_value_t = Switch::On)]
    pub use_fk: Switch,
    /// Number of busy clients of `idle`.
    #[arg(long, default_value_t = 0)]
    pub busy: u32,
    /// What the busy clients of `idle` do, and all clients of `storm`.
    #[arg(long, default_value = "oltp_point_select")]
    pub busy_workload: String,
    /// Maximum time a client of `storm` waits for a query, in seconds. Then it disconnects and connects
    /// again.
    #[arg(long, default_value_t = 1.0)]
    pub patience: f64,
    /// The file of `script`. May stand behind the name too.
    #[arg(long)]
    pub file: Option<PathBuf>,
    /// A variable of `script`: NAME=VALUE.
    #[arg(long = "define", short = 'D', value_parser = parse_definition)]
    pub defines: Vec<(String, String)>,
}

fn parse_definition(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Default for Options {
    /// What the command line gives when nothing is said.
    fn default() -> Self {
        #[derive(clap::Parser)]
        struct Nothing {
            #[command(flatten)]
            options: Options,
        }
        <Nothing as clap::Parser>::parse_from(["options"]).options
    }
}

impl Options {
    /// The distribution with its parameters.
    pub fn ids(&self) -> Distribution {
        match self.distribution {
            Shape::Uniform => Distribution::Uniform,
            Shape::Gaussian => Distribution::Gaussian { iterations: self.rand_spec_iter },
            Shape::Special => Distribution::Special {
                iterations: self.rand_spec_iter,
                part: self.rand_spec_pct,
                share: self.rand_spec_res,
            },
            Shape::Pareto => Distribution::Pareto { h: self.rand_pareto_h },
            Shape::Zipfian => Distribution::Zipfian { exponent: self.rand_zipfian_exp },
        }
    }

    /// Checks that the options are in range and fit each other.
    ///
    /// # Errors
    /// The first option that is out of its range.
    pub fn check(&self) -> Result<(), String> {
        let positive = [
            ("tables", self.tables),
            ("table-size", self.table_size),
            ("scale", self.scale.unwrap_or(1)),
            ("range-size", self.range_size),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(format!("--{name} must be above 0"));
        }
        if self.table_size > i32::MAX as u32 {
            return Err(
                "--table-size: ids are 4 bytes long, so a table has 2147483647 rows at most".to_owned()
            );
        }
        if self.rand_spec_pct > 100 || self.rand_spec_res > 100 {
            return Err("--rand-spec-pct and --rand-spec-res are percentages".to_owned());
        }
        if !(self.rand_pareto_h > 0.0 && self.rand_pareto_h < 1.0) {
            return Err("--rand-pareto-h must lie between 0 and 1".to_owned());
        }
        if !(self.rand_zipfian_exp.is_finite() && self.rand_zipfian_exp > 0.0) {
            return Err("--rand-zipfian-exp must be above 0".to_owned());
        }
        if self.random_points == 0 || self.number_of_ranges == 0 {
            return Err("--random-points and --number-of-ranges must be above 0".to_owned());
        }
        if !(self.patience.is_finite() && self.patience > 0.0) {
            return Err("--patience must be above 0".to_owned());
        }
        Ok(())
    }

    /// For the report: tables, rows and choice of rows.
    pub fn of_tables(&self) -> BTreeMap<String, String> {
        let distribution = clap::ValueEnum::to_possible_value(&self.distribution);
        BTreeMap::from([
            ("tables".to_owned(), self.tables.to_string()),
            ("table-size".to_owned(), self.table_size.to_string()),
            ("distribution".to_owned(), distribution.map_or(String::new(), |v| v.get_name().to_owned())),
        ])
    }

    /// For the report: what makes up a transaction of oltp_read_write.
    pub fn of_transaction(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("range-size".to_owned(), self.range_size.to_string()),
            ("point-selects".to_owned(), self.point_selects.to_string()),
            ("simple-ranges".to_owned(), self.simple_ranges.to_string()),
            ("sum-ranges".to_owned(), self.sum_ranges.to_string()),
            ("order-ranges".to_owned(), self.order_ranges.to_string()),
            ("distinct-ranges".to_owned(), self.distinct_ranges.to_string()),
            ("range-selects".to_owned(), self.range_selects.name().to_owned()),
            ("index-updates".to_owned(), self.index_updates.to_string()),
            ("non-index-updates".to_owned(), self.non_index_updates.to_string()),
            ("delete-inserts".to_owned(), self.delete_inserts.to_string()),
            ("skip-trx".to_owned(), self.skip_trx.name().to_owned()),
        ])
    }
}
