//! Complete runs against a responder in this process.

mod responder;

use responder::{Quirk, Responder, Speak};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use weir_bench::plan::{Ignored, Think};
use weir_bench::record::Interval;
use weir_bench::run::{Progress, RunError};
use weir_bench::worker::Control;
use weir_bench::workloads::options::Options;
use weir_bench::workloads::{self, Params};
use weir_bench::{Mode, Pace, Plan, RunResult, Url};

fn plan(url: &str, workload: &str, connections: u32) -> Plan {
    let url = Url::parse(url).unwrap();
    let options = Options { table_size: 10, ..Options::default() };
    let params = Params { dialect: url.dialect, connections, options };
    let workload = Arc::from(workloads::by_name(workload, &params).unwrap());
    Plan {
        threads: 2,
        // Runs are ended by what has happened, not by the clock.
        time: Duration::from_secs(3600),
        connect_timeout: Duration::from_secs(20),
        query_timeout: Duration::from_secs(20),
        ..Plan::new(vec![url], workload, connections)
    }
}

/// Runs until the seconds so far, added up, are enough.
fn run(plan: Plan, enough: impl Fn(&Interval) -> bool) -> Result<RunResult, RunError> {
    let control = Arc::new(Control::default());
    let mut sum = Interval::default();
    weir_bench::run(plan, &control, &mut |progress| {
        if let Progress::Second(second) = progress {
            sum.merge(second);
            if enough(&sum) {
                control.stop();
            }
        }
    })
}

fn code(report: &RunResult, phase: &str, code: &str) -> (u64, String) {
    let line = report.errors_by_code.iter().find(|e| e.phase == phase && e.code == code);
    line.map(|e| (e.count, e.first_text.clone())).unwrap_or_default()
}

#[test]
fn every_mode_of_both_protocols() {
    for speak in [Speak::Postgres, Speak::Mysql] {
        for mode in [Mode::Simple, Mode::Extended, Mode::Prepared] {
            let responder = Responder::start(speak, Quirk::None);
            let plan = Plan { mode, ..plan(&responder.url(speak), "select_one", 8) };
            let report = run(plan, |sum| sum.queries > 8).unwrap();
            assert_eq!((report.errors, report.connected), (0, 8), "{speak:?} {mode:?}: {}", report.to_text());
            assert!(report.queries > 8, "{speak:?} {mode:?}");
            assert!(report.queries <= responder.queries.load(Ordering::Relaxed));
            assert_eq!((report.connect.count, report.login.count), (8, 8));
            assert_eq!(report.server_versions, ["responder"]);
            assert_eq!(RunResult::from_json(&report.to_json()).unwrap().queries, report.queries);
        }
    }
}

#[test]
fn every_workload_goes_through_tls_and_its_phase_is_measured_apart() {
    for speak in [Speak::Postgres, Speak::Mysql] {
        for (workload, resume) in [("select_one", false), ("connect", false), ("connect", true)] {
            let responder = Responder::with_tls(speak);
            let plan = plan(&format!("{}?sslmode=require", responder.url(speak)), workload, 4);
            let servers =
                plan.servers.iter().map(|url| if resume { url.resuming().unwrap() } else { url.clone() });
            let plan = Plan { servers: servers.collect(), ..plan };
            let report = run(plan, |sum| sum.queries > 20).unwrap();
            assert!(report.errors == 0 && report.queries > 20, "{speak:?} {workload}: {}", report.to_text());
            // At the end of a run some are under way.
            let (connects, logins) = (report.connect.count, report.login.count);
            assert!(logins <= report.tls.count && report.tls.count <= connects && connects <= logins + 4);
            assert!(report.tls.min_ms > 0.0);
            assert_eq!(report.transport.version, "TLSv1.3");
            assert_eq!(report.transport.resumed > 0, resume, "{:?}", report.transport);
            assert!(report.transport.resumed <= report.tls.count);
        }
    }
}

#[test]
fn prefer_takes_what_the_server_has() {
    for speak in [Speak::Postgres, Speak::Mysql] {
        let url = |responder: &Responder, mode: &str| format!("{}?sslmode={mode}", responder.url(speak));
        let secure = Responder::with_tls(speak);
        let report = run(plan(&url(&secure, "prefer"), "select_one", 3), |sum| sum.queries > 3).unwrap();
        assert_eq!((report.tls.count, report.transport.sslmode.as_str()), (3, "prefer"));
        let report = run(plan(&url(&secure, "allow"), "select_one", 3), |sum| sum.queries > 3).unwrap();
        assert_eq!((report.tls.count, report.errors, report.transport.version.as_str()), (0, 0, ""));
        // A certificate that nobody trusts is an error, and nothing goes in clear.
        let ca = std::env::temp_dir().join(format!("weir-bench-ca-{}-{speak:?}.pem", std::process::id()));
        std::fs::write(&ca, weir_tls::self_made(&["other".to_owned()], None).unwrap().identity.chain)
            .unwrap();
        let text = format!("{}&sslrootcert={}", url(&secure, "verify-ca"), ca.display());
        let refused = run(plan(&text, "select_one", 3), |_| true).unwrap_err().to_string();
        std::fs::remove_file(&ca).unwrap();
        assert!(refused.contains("TLS: the certificate is not"), "{refused}");
    }
    // The responder in clear knows no SSLRequest: PostgreSQL's is taken for a login.
    let clear = Responder::start(Speak::Mysql, Quirk::None);
    let url = |mode: &str| format!("{}?ssl-mode={mode}", clear.url(Speak::Mysql));
    let report = run(plan(&url("PREFERRED"), "select_one", 3), |sum| sum.queries > 3).unwrap();
    assert_eq!((report.tls.count, report.errors, report.connected), (0, 0, 3));
    let refused = run(plan(&url("REQUIRED"), "select_one", 3), |_| true).unwrap_err().to_string();
    assert!(refused.contains("does not offer TLS"), "{refused}");
}

#[test]
fn a_wrong_value_is_an_error() {
    for speak in [Speak::Postgres, Speak::Mysql] {
        for mode in [Mode::Simple, Mode::Prepared] {
            let responder = Responder::start(speak, Quirk::WrongValue(5));
            let plan = Plan { mode, ..plan(&responder.url(speak), "select_one", 3) };
            let report = run(plan, |sum| sum.errors > 2).unwrap();
            let (count, text) = code(&report, "query", "wrong-reply");
            assert!(count > 0 && count == report.errors, "{}", report.to_text());
            assert!(text.contains("asked with "), "{text}");
            let asked = responder.queries.load(Ordering::Relaxed);
            assert!(count >= asked / 5 - 3 && count <= asked / 5, "{count} of {asked}");
        }
    }
}

#[test]
fn errors_are_counted_by_code_and_the_client_goes_on() {
    for (speak, sqlstate, text) in
        [(Speak::Postgres, "40001", "try again"), (Speak::Mysql, "1213", "Deadlock found")]
    {
        let responder = Responder::start(speak, Quirk::Error(4));
        let plan =
            Plan { ignored: Ignored::Codes(Vec::new()), ..plan(&responder.url(speak), "select_one", 2) };
        let report = run(plan, |sum| sum.errors > 2).unwrap();
        let (count, first) = code(&report, "query", sqlstate);
        assert!(count > 1 && count == report.errors && first == text, "{}", report.to_text());
        assert!(report.queries > count && report.reconnects == 0);
    }
}

#[test]
fn ignored_errors_begin_the_event_again() {
    for speak in [Speak::Postgres, Speak::Mysql] {
        let responder = Responder::start(speak, Quirk::Error(4));
        let report = run(plan(&responder.url(speak), "select_one", 2), |sum| sum.ignored > 2).unwrap();
        assert!(report.errors == 0 && report.ignored_errors > 2, "{}", report.to_text());
        assert!(report.errors_by_code.iter().all(|line| line.ignored));
        // Each event ends well in the end, whatever it took.
        assert_eq!((report.events, report.statements[0].count), (report.queries, report.queries));
        assert!(report.statements[0].errors > 2);
    }
}

#[test]
fn a_closed_connection_is_an_error_and_is_made_again() {
    for speak in [Speak::Postgres, Speak::Mysql] {
        let responder = Responder::start(speak, Quirk::Close(10));
        let report = run(plan(&responder.url(speak), "select_one", 4), |sum| sum.reconnects > 0).unwrap();
        // A close with unread bytes may arrive as a reset.
        let lost = code(&report, "query", "closed").0 + code(&report, "query", "ECONNRESET").0;
        assert!(lost >= 4 && lost == report.errors, "{}", report.to_text());
        assert!(report.reconnects >= 1 && report.queries > 0, "{}", report.to_text());
    }
}

#[test]
fn a_refused_login_says_why() {
    for (speak, code) in [(Speak::Postgres, "53300"), (Speak::Mysql, "1040")] {
        let responder = Responder::start(speak, Quirk::Refuse);
        let RunError::Server(text) = run(plan(&responder.url(speak), "select_one", 4), |_| true).unwrap_err()
        else {
            panic!("not the server's fault");
        };
        assert!(text.contains("too many") || text.contains("Too many"), "{text}");
        assert!(text.contains(code), "{text}");
    }
}

#[test]
fn nobody_there() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://{}/d", listener.local_addr().unwrap());
    drop(listener);
    let error = run(plan(&url, "select_one", 4), |_| true).unwrap_err().to_string();
    assert!(error.contains("ECONNREFUSED"), "{error}");
}

#[test]
fn a_missing_reply_is_an_error() {
    let responder = Responder::start(Speak::Postgres, Quirk::Silence);
    let url = responder.url(Speak::Postgres);
    let query_timeout = Duration::from_millis(500);
    let report = run(Plan { query_timeout, ..plan(&url, "select_one", 3) }, |sum| sum.errors >= 3).unwrap();
    assert!(code(&report, "query", "timeout").0 >= 3, "{}", report.to_text());
    assert_eq!(report.queries, 0);
}

#[test]
fn replies_byte_by_byte() {
    for speak in [Speak::Postgres, Speak::Mysql] {
        for mode in [Mode::Simple, Mode::Prepared] {
            let responder = Responder::start(speak, Quirk::Dribble);
            let plan = Plan { mode, ..plan(&responder.url(speak), "select_one", 2) };
            let report = run(plan, |sum| sum.queries > 0).unwrap();
            assert!(report.errors == 0 && report.queries > 0, "{}", report.to_text());
        }
    }
}

#[test]
fn paced_clients_send_what_was_asked_for() {
    let responder = Responder::start(Speak::Postgres, Quirk::None);
    let url = responder.url(Speak::Postgres);
    let pace = Pace::Every(Duration::from_millis(500));
    let report = run(Plan { pace, ..plan(&url, "select_one", 20) }, |sum| sum.number >= 1).unwrap();
    assert_eq!((report.errors, report.rate_wanted), (0, Some(40.0)));
    // Never ahead of the schedule, however long the run took: 20 clients, each once in half a second.
    let (asked, periods) = (responder.queries.load(Ordering::Relaxed), report.seconds / 0.5 + 1.0);
    assert!(asked > 0 && asked as f64 <= 20.0 * periods, "{asked} in {periods} periods");
    assert_eq!(report.latency.count, asked);
}

#[test]
fn a_stalled_server_is_seen_by_all_that_would_have_come() {
    // Two seconds at 1000 a second.
    const STALLED: u64 = 2_000;
    let responder = Responder::start(Speak::Postgres, Quirk::Hold);
    let url = responder.url(Speak::Postgres);
    let control = Arc::new(Control::default());
    let pace = Pace::Open { rate: 1000.0, poisson: false };
    let (mut seconds, mut most_queued) = (0, 0);
    let report = weir_bench::run(Plan { pace, ..plan(&url, "select_one", 4) }, &control, &mut |progress| {
        let Progress::Second(second) = progress else { return };
        seconds += 1;
        most_queued = most_queued.max(second.queued);
        // Undisturbed first, then still until a queue stands, then free until it has gone.
        let held = seconds >= 2 && most_queued < STALLED;
        responder.held.store(held, Ordering::Relaxed);
        if most_queued >= STALLED && second.queued < 50 {
            control.stop();
        }
    })
    .unwrap();
    assert_eq!(report.errors, 0, "{}", report.to_text());
    // The oldest of those that wait has waited for two seconds, and the others evenly less.
    let late: u64 = report.histogram.iter().filter(|b| b.upto_ns > 100_000_000).map(|b| b.count).sum();
    assert!(late >= STALLED - 100, "{late}: {}", report.to_text());
    assert!(report.latency.p999_ms >= 1_900.0 && report.latency.max_ms >= 1_990.0, "{}", report.to_text());
    // A closed loop would have seen four slow queries.
    let (sent, events) = (&report.query, &report.latency);
    assert_eq!(sent.count, events.count);
    assert!(sent.mean_ms < events.mean_ms, "{}", report.to_text());
    assert!(report.per_second.iter().any(|second| second.queued >= STALLED));
}

#[test]
fn an_open_loop_below_saturation_says_what_a_closed_one_says() {
    const REPLY_MS: u64 = 20;
    let same = |a: f64, b: f64| (a - b).abs() <= 0.01 * b;
    let measure = |connections, pace| {
        let responder = Responder::start(Speak::Postgres, Quirk::Slow(REPLY_MS));
        let plan = Plan { pace, ..plan(&responder.url(Speak::Postgres), "select_one", connections) };
        let report = run(plan, |sum| sum.queries >= 40).unwrap();
        assert_eq!(report.errors, 0, "{}", report.to_text());
        assert!(report.latency.min_ms >= REPLY_MS as f64 * 0.99, "{}", report.to_text());
        report
    };
    // A machine that stands still for a while may spoil some tries.
    let agree = (0..10).any(|_| {
        let closed = measure(4, Pace::Closed);
        // Nobody waits before the query is sent.
        assert!(same(closed.latency.mean_ms, closed.query.mean_ms), "{}", closed.to_text());
        // 20 clients could do a thousand a second.
        let open = measure(20, Pace::Open { rate: 60.0, poisson: true });
        if open.lateness.count == open.latency.count {
            // All found a free client: between due and sent is only what the generator itself was late.
            let sum = open.query.mean_ms + open.lateness.mean_ms;
            assert!(same(open.latency.mean_ms, sum), "{}", open.to_text());
        }
        let medians = open.latency.p50_ms / closed.latency.p50_ms;
        (0.5..2.0).contains(&medians)
    });
    assert!(agree);
}

#[test]
fn an_open_loop_sends_at_its_rate_whoever_is_free() {
    for poisson in [false, true] {
        let responder = Responder::start(Speak::Mysql, Quirk::None);
        let pace = Pace::Open { rate: 400.0, poisson };
        let report =
            run(Plan { pace, ..plan(&responder.url(Speak::Mysql), "select_one", 20) }, |sum| sum.number >= 2)
                .unwrap();
        let asked = responder.queries.load(Ordering::Relaxed);
        assert_eq!((report.errors, report.latency.count, report.rate_wanted), (0, asked, Some(400.0)));
        // Never ahead of the schedule; a random one has five standard deviations.
        let due = 400.0 * report.seconds;
        assert!(asked > 0 && (asked as f64) < due + 5.0 * due.sqrt() + 2.0, "{asked} of {due}");
    }
}

#[test]
fn clients_that_think_wait_between_their_events() {
    let responder = Responder::start(Speak::Postgres, Quirk::None);
    let think = Some(Think { mean_s: 0.5, exponential: false });
    let url = responder.url(Speak::Postgres);
    let report = run(Plan { think, ..plan(&url, "select_one", 20) }, |sum| sum.number >= 2).unwrap();
    assert_eq!(report.errors, 0);
    // The pause alone bounds what 20 clients can do.
    let most = 20.0 * (report.seconds / 0.5 + 1.0);
    assert!(report.events > 0 && report.events as f64 <= most, "{} of {most}", report.events);
}

#[test]
fn the_impatient_leave_and_come_back() {
    let responder = Responder::start(Speak::Mysql, Quirk::Hold);
    responder.held.store(true, Ordering::Relaxed);
    let url = Url::parse(&responder.url(Speak::Mysql)).unwrap();
    let options = Options { patience: 0.2, busy_workload: "select_one".to_owned(), ..Options::default() };
    let params = Params { dialect: url.dialect, connections: 5, options };
    let storm = Arc::from(workloads::by_name("storm", &params).unwrap());
    let plan = Plan { workload: storm, ..plan(&responder.url(Speak::Mysql), "select_one", 5) };
    let report = run(plan, |sum| {
        if sum.reconnects >= 10 {
            responder.held.store(false, Ordering::Relaxed);
        }
        sum.queries > 0
    })
    .unwrap();
    let (count, _) = code(&report, "query", "patience");
    assert!(report.errors == 0 && count >= 10 && report.reconnects >= 10, "{}", report.to_text());
}

#[test]
fn some_clients_work_beside_the_idle_ones() {
    let responder = Responder::start(Speak::Postgres, Quirk::None);
    let url = Url::parse(&responder.url(Speak::Postgres)).unwrap();
    let options = Options { busy: 3, busy_workload: "select_one".to_owned(), ..Options::default() };
    let params = Params { dialect: url.dialect, connections: 40, options };
    let idle = Arc::from(workloads::by_name("idle", &params).unwrap());
    let plan = Plan { workload: idle, ..plan(&responder.url(Speak::Postgres), "select_one", 40) };
    let report = run(plan, |sum| sum.queries > 50).unwrap();
    assert!(report.errors == 0 && report.connected == 40 && report.queries > 50, "{}", report.to_text());
    assert!(report.per_second.iter().all(|second| second.busy <= 3));
}

#[test]
fn connect_workload_makes_a_connection_for_each_event() {
    for speak in [Speak::Postgres, Speak::Mysql] {
        let responder = Responder::start(speak, Quirk::None);
        let report = run(plan(&responder.url(speak), "connect", 4), |sum| sum.events > 4).unwrap();
        assert_eq!(report.errors, 0, "{}", report.to_text());
        assert!(report.events > 4 && report.login.count >= report.events);
        assert_eq!(report.reconnects, 0);
    }
}

#[test]
fn a_number_of_events_ends_the_run() {
    for (speak, workload) in [(Speak::Postgres, "select_one"), (Speak::Mysql, "connect")] {
        let responder = Responder::start(speak, Quirk::None);
        let plan = Plan { events: Some(500), ..plan(&responder.url(speak), workload, 7) };
        let report = run(plan, |_| false).unwrap();
        assert_eq!((report.events, report.errors), (500, 0), "{}", report.to_text());
        assert_eq!(responder.queries.load(Ordering::Relaxed), 500);
    }
}

#[test]
fn idle_clients_stay_silent() {
    let responder = Responder::start(Speak::Mysql, Quirk::None);
    let report = run(plan(&responder.url(Speak::Mysql), "idle", 16), |_| true).unwrap();
    assert_eq!((report.errors, report.connected, report.queries), (0, 16, 0));
    assert_eq!(responder.queries.load(Ordering::Relaxed), 0);
}

#[test]
fn a_run_can_be_stopped_and_tells_its_seconds() {
    let responder = Responder::start(Speak::Postgres, Quirk::None);
    let control = Arc::new(Control::default());
    let mut seconds = Vec::new();
    let plan = plan(&responder.url(Speak::Postgres), "select_one", 4);
    let report = weir_bench::run(plan, &control, &mut |progress| {
        if let Progress::Second(second) = progress {
            seconds.push(second.number);
            if seconds.len() == 2 {
                control.stop();
            }
        }
    })
    .unwrap();
    assert_eq!(seconds[..2], [0, 1]);
    assert!(report.seconds < 600.0 && report.errors == 0, "{}", report.to_text());
    assert!(report.per_second.len() >= 2 && report.per_second[0].connected == 4);
}
