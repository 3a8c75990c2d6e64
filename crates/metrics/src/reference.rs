//! The list of all metrics for the manual, from the table.

use crate::exposition::TURNS;
use crate::table::{Family, Kind, PoolTotals, WingTotals};
use std::fmt::Write;

/// All metrics, in Markdown.
pub fn markdown() -> String {
    let mut out = String::from(
        "<!-- Made from the table in crates/metrics. Do not edit. -->\n\
         # Metrics\n\n\
         `GET /metrics` on the HTTP endpoint answers in OpenMetrics text, which Prometheus reads. A scrape costs the same\n\
         with one client and with 100,000.\n\n\
         | name | kind | what it says |\n|---|---|---|\n\
         | `weir_build_info` | info | The version that runs. |\n\
         | `weir_panics_total` | counter | Defects of Weir that cost the clients of one thread their connections. |\n",
    );
    for (name, kind, help) in TURNS {
        let total = if kind == "counter" { "_total" } else { "" };
        let _ = writeln!(out, "| `{name}{total}` | {kind} | {help} |");
    }
    out.push_str(
        "\nThese are about the process. Those that follow have the label `protocol` (`postgres` or `mysql`).\n\n\
         | name | kind | what it says |\n|---|---|---|\n",
    );
    rows(&mut out, WingTotals::FAMILIES);
    out.push_str(
        "| `weir_request_duration_seconds` | histogram | Time from the arrival of a request to the end of its reply, waiting included. |\n\
         | `weir_wait_duration_seconds` | histogram | Time a request waited for a server. |\n\n\
         Those that follow have `database` and `user` too: the\n\
         pool. Beyond 1,000 pools the rest is counted together as `(other)`.\n\n\
         | name | kind | what it says |\n|---|---|---|\n",
    );
    rows(&mut out, PoolTotals::FAMILIES);
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
