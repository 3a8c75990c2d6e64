//! Metrics as OpenMetrics text. The cost depends on workers and pools, never on the number of clients.

use crate::cell::{BUCKETS, HistogramTotals, bucket_end_us, count_bucket_end};
use crate::metrics::{Metrics, PoolLabels, Totals, TurnTotals};
use crate::moment::{self, Moment, PoolNow};
use crate::table::{ExtraLabel, Family, Kind, PoolTotals, WingTotals};
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::Arc;

/// The media type of [`expose`]'s text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Every second end of a bucket is a `le`: half an octave is enough for a graph.
const EXPOSED_EVERY: usize = 2;

/// All metrics as OpenMetrics 1.0 text. `version` is the value of `weir_build_info`; `pools` is what the
/// pools themselves know at this moment.
pub fn expose(metrics: &Arc<Metrics>, version: &'static str, pools: Vec<PoolNow>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Collector { metrics: metrics.clone(), version, pools }));
    let mut out = String::with_capacity(32 * 1024);
    match text::encode(&mut out, &registry) {
        Ok(()) => out,
        // Writing to a String cannot fail.
        Err(fmt::Error) => String::new(),
    }
}

/// What `weir_panics` is.
pub(crate) const PANICS_HELP: &str =
    "Panics: defects of Weir that cost the clients of one thread their connections.";

#[derive(Debug)]
struct Collector {
    metrics: Arc<Metrics>,
    version: &'static str,
    pools: Vec<PoolNow>,
}

impl prometheus_client::collector::Collector for Collector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let mut info = encoder.encode_descriptor("weir_build", "Version of Weir.", None, MetricType::Info)?;
        info.encode_info(&[("version", self.version)])?;
        let mut panics = encoder.encode_descriptor("weir_panics", PANICS_HELP, None, MetricType::Counter)?;
        panics.encode_counter::<NoLabelSet, u64, f64>(&self.metrics.panics(), None)?;
        encode_turns(&mut encoder, &self.metrics.turn_totals())?;
        let totals: Vec<_> = self.metrics.protocols().iter().map(|p| (*p, self.metrics.totals(p))).collect();
        let mut rows = Rows::default();
        for (protocol, totals) in &totals {
            totals.wing.rows(&mut |family, label, value| {
                rows.add(family, vec![("protocol", protocol)], label, value)
            });
        }
        rows.encode(&mut encoder, WingTotals::FAMILIES)?;
        encode_errors(&mut encoder, &totals)?;
        let pools = self.metrics.pool_totals();
        let mut rows = Rows::default();
        for (labels, totals) in &pools {
            totals.rows(&mut |family, label, value| rows.add(family, labels.pairs(), label, value));
        }
        rows.encode(&mut encoder, PoolTotals::FAMILIES)?;
        encode_moments(&mut encoder, &moment::by_name(&self.pools, pools.iter().map(|(labels, _)| labels)))?;
        for (name, help, of) in DURATIONS {
            let rows: Vec<_> = totals.iter().map(|(protocol, totals)| (*protocol, of(totals))).collect();
            encode_histogram(&mut encoder, name, help, &rows)?;
        }
        Ok(())
    }
}

/// A histogram of times: name without its unit, help, and where it is in the sums.
type Duration = (&'static str, &'static str, fn(&Totals) -> &HistogramTotals);

/// The histograms of times, in the order of the exposition.
pub(crate) const DURATIONS: [Duration; 4] = [
    (
        "weir_request_duration",
        "Time from the moment a request is sent to a server to the end of its reply, without the wait for a server.",
        |totals| &totals.request_duration,
    ),
    ("weir_wait_duration", "Time that a request waited for a server.", |totals| &totals.wait_duration),
    (
        "weir_transaction_duration",
        "Time from the first request of a transaction to its end, for transactions of several requests.",
        |totals| &totals.transaction_duration,
    ),
    (
        "weir_login_duration",
        "Time from the moment a client connects to the end of its login, for logins that succeed.",
        |totals| &totals.login_duration,
    ),
];

/// What `weir_server_errors` is.
pub(crate) const ERRORS_HELP: &str = "Requests that failed in the database, by SQLSTATE (PostgreSQL) or error number (MySQL, MariaDB). `other`: codes beyond the first 128.";

fn encode_errors(
    encoder: &mut DescriptorEncoder,
    totals: &[(&'static str, Totals)],
) -> Result<(), fmt::Error> {
    let mut metric =
        encoder.encode_descriptor("weir_server_errors", ERRORS_HELP, None, MetricType::Counter)?;
    for (protocol, totals) in totals {
        let errors = &totals.errors;
        let named = errors.by_code.iter().map(|(code, count)| (code.to_string(), *count));
        let rest = (errors.rest > 0).then(|| ("other".to_owned(), errors.rest));
        for (code, count) in named.chain(rest) {
            let labels = [("protocol", *protocol), ("code", code.as_str())];
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, u64, f64>(&count, None)?;
        }
    }
    Ok(())
}

fn encode_moments(encoder: &mut DescriptorEncoder, moments: &[Moment]) -> Result<(), fmt::Error> {
    for row in moment::ROWS {
        let unit = row.unit.map(|unit| Unit::Other(unit.to_owned()));
        let kind = if row.counter { MetricType::Counter } else { MetricType::Gauge };
        let mut metric = encoder.encode_descriptor(row.name, row.help, unit.as_ref(), kind)?;
        for (moment, value) in moments.iter().filter_map(|moment| Some((moment, (row.value)(moment)?))) {
            let labels = moment.labels.pairs();
            let mut labelled = metric.encode_family(&labels)?;
            if row.counter {
                labelled.encode_counter::<NoLabelSet, f64, f64>(&value, None)?;
            } else {
                labelled.encode_gauge(&value)?;
            }
        }
    }
    Ok(())
}

/// What workers count of themselves: name, kind and help, in the order of the exposition.
pub(crate) const TURNS: [(&str, &str, &str); 4] = [
    (
        "weir_workers",
        "gauge",
        "Threads that carry traffic: one for each core, and more while there are more clients than one descriptor table holds.",
    ),
    (
        "weir_workers_gathering",
        "gauge",
        "Workers that let replies accumulate before they run, because requests are queued behind one another.",
    ),
    ("weir_worker_turns", "counter", "Times that workers woke up to handle events, over all workers."),
    (
        "weir_worker_turn_events",
        "histogram",
        "Ready sockets per wake-up of a worker. High values mean few wake-ups for the work.",
    ),
];

fn encode_turns(encoder: &mut DescriptorEncoder, totals: &TurnTotals) -> Result<(), fmt::Error> {
    let [workers, gathering, turns, events] = TURNS.map(|(name, _, help)| (name, help));
    for ((name, help), value) in [(workers, totals.workers), (gathering, totals.gathering)] {
        encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)?;
    }
    let mut counter = encoder.encode_descriptor(turns.0, turns.1, None, MetricType::Counter)?;
    counter.encode_counter::<NoLabelSet, u64, f64>(&totals.events.times(), None)?;
    let end = |bucket| count_bucket_end(bucket).map_or(f64::INFINITY, |end| end as f64);
    let buckets: Vec<(f64, u64)> =
        totals.events.buckets.iter().enumerate().map(|(bucket, &count)| (end(bucket), count)).collect();
    encoder
        .encode_descriptor(events.0, events.1, None, MetricType::Histogram)?
        .encode_histogram::<NoLabelSet>(totals.events.sum as f64, totals.events.times(), &buckets, None)
}

impl PoolLabels {
    fn pairs(&self) -> Labels<'_> {
        vec![("protocol", self.protocol), ("database", &self.database), ("user", &self.user)]
    }
}

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// Rows by family: the text must name each family once, with all of its rows behind it.
#[derive(Default)]
struct Rows<'a> {
    rows: Vec<(usize, Labels<'a>, i64)>,
}

impl<'a> Rows<'a> {
    fn add(
        &mut self,
        family: usize,
        mut labels: Vec<(&'static str, &'a str)>,
        extra: ExtraLabel,
        value: i64,
    ) {
        labels.extend(extra);
        self.rows.push((family, labels, value));
    }

    fn encode(&mut self, encoder: &mut DescriptorEncoder, families: &[Family]) -> Result<(), fmt::Error> {
        self.rows.sort_by_key(|(family, ..)| *family);
        for (index, family) in families.iter().enumerate() {
            let unit = family.unit.map(|unit| Unit::Other(unit.to_owned()));
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
            };
            let mut metric = encoder.encode_descriptor(family.name, family.help, unit.as_ref(), kind)?;
            for (_, labels, value) in self.rows.iter().filter(|(of, ..)| *of == index) {
                let mut row = metric.encode_family(labels)?;
                match family.kind {
                    Kind::Counter => {
                        row.encode_counter::<NoLabelSet, u64, f64>(&u64::try_from(*value).unwrap_or(0), None)?
                    }
                    Kind::Gauge => row.encode_gauge(value)?,
                }
            }
        }
        Ok(())
    }
}

fn encode_histogram(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    rows: &[(&'static str, &HistogramTotals)],
) -> Result<(), fmt::Error> {
    let mut metric = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
    for (protocol, totals) in rows {
        let labels = [("protocol", *protocol)];
        metric.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
            totals.sum_ns as f64 / 1e9,
            totals.count(),
            &exposed_buckets(totals),
            None,
        )?;
    }
    Ok(())
}

/// Ends in seconds, and what is in the buckets between them.
fn exposed_buckets(totals: &HistogramTotals) -> Vec<(f64, u64)> {
    let mut exposed = Vec::with_capacity(BUCKETS / EXPOSED_EVERY + 1);
    let mut here = 0;
    for (bucket, count) in totals.buckets.iter().enumerate() {
        here += count;
        if bucket == BUCKETS - 1 {
            exposed.push((f64::INFINITY, here));
        } else if bucket % EXPOSED_EVERY == 0 {
            exposed.push((bucket_end_us(bucket) as f64 / 1e6, here));
            here = 0;
        }
    }
    exposed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_lose_nothing() {
        let mut totals = HistogramTotals::default();
        for (n, bucket) in totals.buckets.iter_mut().enumerate() {
            *bucket = n as u64;
        }
        let exposed = exposed_buckets(&totals);
        assert_eq!(exposed.iter().map(|(_, count)| count).sum::<u64>(), totals.count());
        assert!(exposed.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(exposed[0].0, 8e-6);
    }
}
