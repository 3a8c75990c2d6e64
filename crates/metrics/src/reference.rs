//! The list of all metrics for the manual, from the table.

use crate::exposition::{DURATIONS, ERRORS_HELP, TURNS};
use crate::moment::ROWS;
use crate::table::{Family, Kind, PoolTotals, WingTotals};
use std::fmt::Write;
use weir_wire::FaultKind;

/// All metrics, in Markdown.
pub fn markdown() -> String {
    let mut out = String::from(
        "<!-- Made from the table in crates/metrics. Do not edit. -->\n\
         # Metrics\n\n\
         Prometheus reads `http://127.0.0.1:9930/metrics` ([`http.listen`](configuration.md#http)); the format is OpenMetrics text. A scrape costs the same\n\
         with one client and with 100,000.\n\n\
         | alert when | see |\n|---|---|\n\
         | `weir_longest_wait_seconds` is above what your applications may wait | [Clients wait](troubleshooting.md#clients-wait-or-get-query_wait_timeout) |\n\
         | `weir_database_up` is 0 | [The database cannot be reached](troubleshooting.md#the-database-cannot-be-reached) |\n\
         | `weir_pinned_servers` is close to `weir_pool_size` | [Too many pinned servers](pins.md#too-many-pinned-servers) |\n\
         | `weir_accept_backoffs_total` grows | [Descriptors](troubleshooting.md#descriptors) |\n\
         | `weir_panics_total` or `weir_faults_total{kind=\"internal_error\"}` grows | [A defect of Weir](troubleshooting.md#wrong-data-a-hang-a-crash) |\n\n\
         Metrics of the process:\n\n\
         | name | kind | meaning |\n|---|---|---|\n\
         | `weir_build_info` | info | Version of Weir. |\n\
         | `weir_panics_total` | counter | Panics: defects of Weir that cost the clients of one thread their connections. |\n",
    );
    for (name, kind, help) in TURNS {
        let total = if kind == "counter" { "_total" } else { "" };
        let _ = writeln!(out, "| `{name}{total}` | {kind} | {help} |");
    }
    out.push_str(
        "\nMetrics with the label `protocol` (`postgres` or `mysql`):\n\n\
         | name | kind | meaning |\n|---|---|---|\n",
    );
    rows(&mut out, WingTotals::FAMILIES);
    let _ = writeln!(out, "| `weir_server_errors_total` | counter | {ERRORS_HELP} |");
    for (name, help, _) in DURATIONS {
        let _ = writeln!(out, "| `{name}_seconds` | histogram | {help} |");
    }
    out.push_str(
        "\nMetrics of a pool, with the labels `protocol`, `database` and `user`. Beyond 1,000 pools the rest is counted together as `(other)`:\n\n\
         | name | kind | meaning |\n|---|---|---|\n",
    );
    rows(&mut out, PoolTotals::FAMILIES);
    for row in ROWS {
        let unit = row.unit.map_or_else(String::new, |unit| format!("_{unit}"));
        let (total, kind) = if row.counter { ("_total", "counter") } else { ("", "gauge") };
        let _ = writeln!(out, "| `{}{unit}{total}` | {kind} | {} |", row.name, row.help);
    }
    out.push_str("\nKinds of `weir_faults_total`:\n\n| kind | meaning |\n|---|---|\n");
    for kind in FaultKind::ALL {
        let _ = writeln!(out, "| `{}` | {} |", kind.label(), kind.meaning());
    }
    out
}

fn rows(out: &mut String, families: &[Family]) {
    for family in families {
        let unit = family.unit.map_or_else(String::new, |unit| format!("_{unit}"));
        let (total, kind) = match family.kind {
            Kind::Counter => ("_total", "counter"),
            Kind::Gauge => ("", "gauge"),
        };
        let _ = writeln!(out, "| `{}{unit}{total}` | {kind} | {} |", family.name, family.help);
    }
}
