//! The result of a run: the output of `--json`, and the input of reports and comparisons.
//!
//! Owns: the layout of that file, field by field. Must not know: how it is measured, how it is shown.
//!
//! Invariants: everything is plain data, readable without this program. Names end in their unit. A field that
//! an older file does not have takes its default, so old files stay readable; a field never changes its
//! meaning (the number in `format` is raised instead). Percentiles are those of HDR histograms with three
//! significant digits; they are never averaged: [`RunResult::histogram`] is for merging.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The number of this layout.
pub const FORMAT: u32 = 1;

/// The result of a run.
///
/// Counts (`events`, `queries`, `reads`, ...) are of the recorded time only; `errors` and `errors_by_code`
/// are of the whole run, the connect phase and the warm-up included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunResult {
    /// Layout: [`FORMAT`].
    pub format: u32,
    /// Version of the program that measured.
    pub weir_version: String,
    /// When events began: milliseconds since 1970.
    pub began_unix_ms: u64,
    /// Name of the workload.
    pub workload: String,
    /// URLs without passwords.
    pub servers: Vec<String>,
    /// What each of them says of itself (`SELECT version()`), in the same order.
    pub server_versions: Vec<String>,
    /// `postgres` or `mysql`.
    pub dialect: String,
    /// How queries were sent: `simple`, `extended` or `prepared`.
    pub protocol_mode: String,
    /// Events each second that were wanted; `null` for a closed loop.
    pub rate_wanted: Option<f64>,
    /// What else was asked for.
    pub plan: PlanFacts,
    /// What the connections went through.
    pub transport: Transport,
    /// The machine of the load generator.
    pub machine: Machine,
    /// Clients wanted.
    pub connections: u32,
    /// Clients that were logged in when events began.
    pub connected: u32,
    /// Clients that never could log in.
    pub given_up: u64,
    /// How long the connect phase took, in seconds.
    pub connect_seconds: f64,
    /// Recorded time, in seconds.
    pub seconds: f64,
    /// Events (transactions) that ended well in the recorded time.
    pub events: u64,
    /// Queries that ended well in the recorded time.
    pub queries: u64,
    /// Of these: SELECT.
    pub reads: u64,
    /// Of these: INSERT, UPDATE, DELETE.
    pub writes: u64,
    /// Of these: BEGIN, COMMIT and all others.
    pub others: u64,
    /// Queries each second.
    pub qps: f64,
    /// Events each second.
    pub tps: f64,
    /// Connections made anew after the start.
    pub reconnects: u64,
    /// All errors, of every phase and moment of the run; without the ignored ones.
    pub errors: u64,
    /// Errors that are part of the game (deadlocks, serialization failures): the event was begun again.
    pub ignored_errors: u64,
    /// Errors by phase and code, the ignored ones too.
    pub errors_by_code: Vec<ErrorLine>,
    /// Latency of an event, its repetitions included, from the moment it was due (with a rate) or begun.
    pub latency: Percentiles,
    /// The latencies of [`RunResult::latency`] one by one, for merging and for drawing: buckets with at least
    /// one.
    pub histogram: Vec<Bucket>,
    /// Latency of a query, from the moment it was sent.
    pub query: Percentiles,
    /// Latency of a socket connect.
    pub connect: Percentiles,
    /// Latency of a TLS handshake; PostgreSQL: with the request for it that goes before, unless it is direct.
    /// Empty without TLS.
    pub tls: Percentiles,
    /// Latency of a login, from the end of the connect, without the time in `tls`.
    pub login: Percentiles,
    /// How late the generator itself sent what was due (with a rate only).
    pub lateness: Percentiles,
    /// Each statement of the workload, in its order; those never sent are left out.
    pub statements: Vec<StatementLine>,
    /// Each kind of transaction, if the workload has several (`tpcc`).
    pub transactions: Vec<TransactionLine>,
    /// CPU time of the generator's threads for each query, in microseconds.
    pub generator_cpu_us_per_query: f64,
    /// Share of the recorded time that the generator's threads were on a core, all threads together: 0 to 1.
    pub generator_busy: f64,
    /// The same of the busiest thread.
    pub generator_busiest_thread: f64,
    /// Why the generator itself may be the limit of these figures; `null`: it is not.
    pub saturation: Option<String>,
    /// Watched processes; the last one is the generator.
    pub processes: Vec<ProcessLine>,
    /// One line for each recorded second.
    pub per_second: Vec<SecondLine>,
    /// The machines that made the load (`--agents`); empty: this one did.
    pub agents: Vec<AgentLine>,
    /// What was checked behind the run (consistency of `tpcc`).
    pub checks: Vec<CheckLine>,
    /// Sentences about the run: source addresses, tables filled by others, ...
    pub remarks: Vec<String>,
}

/// What was asked for, as far as it has no place of its own in [`RunResult`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanFacts {
    /// `closed` (the next event begins when the last has ended), `every` (each client so often), `constant`
    /// or `poisson` (arrivals at a rate, taken by any free client).
    pub arrival: String,
    /// Mean pause of a client between two events, in milliseconds.
    pub think_time_ms: f64,
    /// Connects begun each second at most; `null`: as fast as they are accepted.
    pub connect_rate: Option<f64>,
    /// Time before anything was recorded, in seconds.
    pub warm_up_seconds: f64,
    /// Time wanted, in seconds.
    pub time_seconds: f64,
    /// Event loops.
    pub threads: u64,
    /// Seed of all random choices.
    pub seed: u64,
    /// The workload's own options under their names on the command line (`tables`, `table-size`,
    /// `distribution`, ...).
    pub options: BTreeMap<String, String>,
}

/// What the connections went through.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Transport {
    /// `sslmode`, as it was asked for: `disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`.
    pub sslmode: String,
    /// Version of TLS with the first server (`TLSv1.3`); empty: everything went in clear.
    pub version: String,
    /// Its cipher, by OpenSSL's name.
    pub cipher: String,
    /// Sessions might be resumed (`--tls-resume`).
    pub resume: bool,
    /// Handshakes that resumed one, in the whole run.
    pub resumed: u64,
}

/// The machine of the load generator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Name and release of the kernel.
    pub kernel: String,
    /// What the processor calls itself; empty where the system does not say.
    pub cpu_model: String,
    /// Cores this process may use.
    pub cores: u64,
    /// Main memory, in bytes.
    pub memory_bytes: u64,
    /// Open files allowed to one descriptor table.
    pub open_files_limit: u64,
    /// Load average of one minute before the run.
    pub load_average: f64,
    /// The server is on this machine and shares its cores.
    pub server_is_here: bool,
}

/// One kind of error.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorLine {
    /// `connect`, `tls`, `login` or `query`.
    pub phase: String,
    /// SQLSTATE, errno, name of an I/O error, `wrong-reply`, `timeout`, `closed` or `protocol`.
    pub code: String,
    /// How often.
    pub count: u64,
    /// What the first said.
    pub first_text: String,
    /// Counted among the ignored errors: the event was begun again.
    pub ignored: bool,
}

/// A distribution, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Percentiles {
    pub count: u64,
    pub min_ms: f64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p75_ms: f64,
    pub p90_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub p9999_ms: f64,
    pub max_ms: f64,
}

/// One bucket of a histogram: width is three significant digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bucket {
    /// The highest latency that falls into it, in nanoseconds.
    pub upto_ns: u64,
    /// How many did.
    pub count: u64,
}

/// One statement of the workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatementLine {
    /// Its text, with `%u` for the number of the table and `?` for parameters.
    pub text: String,
    /// `read`, `write` or `other`.
    pub kind: String,
    /// How often it ended well in the recorded time.
    pub count: u64,
    /// How often it failed in the recorded time, ignored errors included.
    pub errors: u64,
    /// From the moment it was sent.
    pub latency: Percentiles,
}

/// One kind of transaction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TransactionLine {
    /// Its name (`new_order`).
    pub name: String,
    /// How often it ended well in the recorded time.
    pub count: u64,
    /// From the moment it was due or begun.
    pub latency: Percentiles,
}

/// What a watched process used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessLine {
    /// Its name.
    pub name: String,
    /// Its id.
    pub pid: u32,
    /// CPU time for each query, in microseconds, its children's included.
    pub cpu_us_per_query: Option<f64>,
    /// Cores it kept busy.
    pub cores: Option<f64>,
    /// Resident memory at the end, in bytes.
    pub rss_bytes: Option<u64>,
    /// Growth of resident memory from before the first connect, in bytes.
    pub rss_growth_bytes: Option<u64>,
    /// That growth for each connection, in bytes.
    pub bytes_per_connection: Option<f64>,
}

/// One recorded second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecondLine {
    /// Counts from 1 at the start of recording.
    pub second: u64,
    /// Events that ended well.
    pub events: u64,
    /// Queries that ended well.
    pub queries: u64,
    /// Of these: SELECT.
    pub reads: u64,
    /// Of these: INSERT, UPDATE, DELETE.
    pub writes: u64,
    /// Of these: all others.
    pub others: u64,
    /// Errors of every kind, without the ignored ones.
    pub errors: u64,
    /// Ignored errors.
    pub ignored_errors: u64,
    /// Connections made.
    pub reconnects: u64,
    /// Connections that are logged in, at the end of the second.
    pub connected: u64,
    /// Of these: with a reply owed to them.
    pub busy: u64,
    /// Events that are due and have found no free client, at the end of the second (with a rate only).
    pub queued: u64,
    /// Latency of events.
    pub min_ms: f64,
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// 99.9th percentile.
    pub p999_ms: f64,
    /// 99.99th percentile.
    pub p9999_ms: f64,
    /// Maximum.
    pub max_ms: f64,
}

/// One machine's part of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentLine {
    /// Where its agent listens.
    pub address: String,
    /// Clients it was to have.
    pub connections: u32,
    /// Clients that were logged in when events began.
    pub connected: u32,
    /// Queries that ended well in the recorded time.
    pub queries: u64,
    /// Errors of the whole run.
    pub errors: u64,
    /// Share of the recorded time that its busiest thread was on a core: 0 to 1.
    pub busiest_thread: f64,
    /// The machine.
    pub machine: Machine,
}

/// Something that was checked behind the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckLine {
    /// What must hold.
    pub name: String,
    /// It does.
    pub passed: bool,
    /// What was found.
    pub text: String,
}

impl RunResult {
    /// Events that were under way when the time was over. They count among the latencies, or the slowest
    /// would be left out, and not among the events, or the rate would be too high.
    pub fn ended_late(&self) -> u64 {
        self.latency.count.saturating_sub(self.events)
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        // Plain structs with string keys: it cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Reads what [`RunResult::to_json`] wrote, also by older versions. A newer layout is refused.
    ///
    /// # Errors
    /// The text is no result of a run, or of a newer layout.
    pub fn from_json(text: &str) -> Result<RunResult, String> {
        let result: RunResult = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if result.workload.is_empty() {
            return Err("not the result of a run of weir bench".to_owned());
        }
        if result.format > FORMAT {
            return Err(format!(
                "written by a newer version ({}): layout {}",
                result.weir_version, result.format
            ));
        }
        Ok(result)
    }

    /// Clients that should have been there from the start were not.
    pub fn is_incomplete(&self) -> bool {
        self.connected < self.connections && self.workload != "connect"
    }

    /// The generator itself may be the limit of these figures.
    pub fn is_saturated(&self) -> bool {
        self.saturation.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back_as_it_was() {
        let result = RunResult {
            format: FORMAT,
            workload: "connect".to_owned(),
            histogram: vec![Bucket { upto_ns: 1_023, count: 4 }],
            per_second: vec![SecondLine { second: 1, p9999_ms: 0.125, ..SecondLine::default() }],
            statements: vec![StatementLine { text: "SELECT ?".to_owned(), ..StatementLine::default() }],
            ..RunResult::default()
        };
        assert_eq!(RunResult::from_json(&result.to_json()).unwrap(), result);
    }

    #[test]
    fn an_older_file_is_read_and_others_are_refused() {
        let old = RunResult::from_json(r#"{"workload": "select_one", "qps": 5.0, "unknown": 1}"#).unwrap();
        assert_eq!((old.qps, old.format), (5.0, 0));
        assert!(RunResult::from_json("{}").unwrap_err().contains("not the result"));
        let newer = r#"{"workload": "x", "format": 99, "weir_version": "9.9"}"#;
        assert!(RunResult::from_json(newer).unwrap_err().contains("9.9"));
    }
}
