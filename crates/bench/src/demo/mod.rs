//! `weir demo`: temporary PostgreSQL and MariaDB, Weir in front of both, thousands of active clients.
//!
//! Owns: the order of events, and that everything is stopped and removed at the end. First a few clients are
//! connected directly, as many as such a server usually gets, and measured; then thousands through Weir until
//! the time is over or Ctrl-C.

pub mod screen;
pub mod servers;

use crate::plan::{Pace, Plan};
use crate::procs;
use crate::record::Interval;
use crate::record::RunResult;
use crate::run::Progress;
use crate::url::Url;
use crate::worker::Control;
use crate::workloads::Params;
use crate::workloads::oltp::Oltp;
use crate::workloads::oltp_point_select;
use crate::workloads::options::Options;
use screen::{Figures, Row, Screen};
use servers::{Home, NAME, Server, await_server, free_port, start_mysql, start_postgres, start_weir};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Rows of the demo's table.
const TABLE_ROWS: u32 = 10_000;

/// max_connections of the demo's servers: more than such a server is usually given.
const DEMO_CONNECTIONS_POSTGRES: u32 = 400;
const DEMO_CONNECTIONS_MYSQL: u32 = 1100;

/// How long the direct clients are measured, at most.
const DIRECT_SECONDS: u64 = 8;

/// Time between two drawings.
const DRAW_EVERY: Duration = Duration::from_secs(2);

/// Without it the latency of so many clients looks like somebody's fault.
const ALWAYS_WAITING: &str = " All of them ask all the time, so each waits
clients / throughput for its turn, whoever serves them: look at queries/s here, and at the latency above,
where both sides had the same to do. With --every 5 each asks once in five seconds.";

/// How long each way is measured at the same rate, at most.
const SAME_RATE_SECONDS: u64 = 4;
/// Of what the direct clients could do: so much is asked of both ways, that neither is overloaded.
const SAME_RATE_PART: f64 = 0.2;

/// More clients than the server has room for, to see what becomes of them.
const TOO_MANY: u32 = 100;

/// Run temporary PostgreSQL and MariaDB servers, Weir in front of both, and thousands of active clients.
///
/// Ctrl-C stops and removes everything.
#[derive(Debug, Clone, clap::Args)]
pub struct DemoArgs {
    /// Number of clients of each protocol through Weir.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub clients: u32,
    /// Stop after this number of seconds of load. Default: $DEMO_SECONDS, or else at Ctrl-C.
    #[arg(long, env = "DEMO_SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,
    /// Interval between the queries of one client, in seconds. Default: each client sends the next query as
    /// soon as the last is answered.
    #[arg(long)]
    pub every: Option<f64>,
    /// Number of connections from Weir to each server.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub pool_size: u32,
}

/// Ends a demo from another thread.
#[derive(Debug, Default)]
pub struct Stop {
    stopped: AtomicBool,
    running: Mutex<Vec<Arc<Control>>>,
}

impl Stop {
    /// Ends it.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        for control in self.running.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            control.stop();
        }
    }

    /// It is to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// A run that ends with the demo.
    pub fn control(&self) -> Arc<Control> {
        let control = Arc::new(Control::default());
        self.running.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&control));
        // A stop that came in between.
        if self.is_stopped() {
            control.stop();
        }
        control
    }
}

/// Runs the demo with `executable` as Weir; the result is the exit code.
pub fn run(args: &DemoArgs, executable: PathBuf, stop: &Stop) -> u8 {
    let mut screen = Screen::new();
    match Demo::start(args, executable, stop, &mut screen) {
        Ok(Some(demo)) => demo.show(args, stop, &mut screen),
        Ok(None) => 0,
        Err(_) if stop.is_stopped() => 0,
        Err(text) => {
            eprintln!("weir demo: {text}");
            1
        }
    }
}

/// Everything that runs. Fields are dropped in order: Weir first, the directory last.
struct Demo {
    weir: servers::Process,
    /// Each server with Weir's URL for it.
    servers: Vec<(Server, Url)>,
    _home: Home,
}

impl Demo {
    /// Starts all; `None` when it was stopped in between.
    fn start(
        args: &DemoArgs,
        executable: PathBuf,
        stop: &Stop,
        screen: &mut Screen,
    ) -> Result<Option<Demo>, String> {
        let home = Home::new("demo")?;
        let what = format!("Starting throw-away databases in {}", home.path.display());
        let (postgres, mysql) = screen.step(&what, || {
            std::thread::scope(|scope| {
                let mysql = scope.spawn(|| start_mysql(&home, DEMO_CONNECTIONS_MYSQL, &[]));
                let postgres = start_postgres(&home, DEMO_CONNECTIONS_POSTGRES, &[]);
                (postgres, mysql.join().unwrap_or_else(|_| Err("the start of MySQL panicked".to_owned())))
            })
        });
        let mut servers = Vec::new();
        for outcome in [postgres, mysql] {
            match outcome {
                Ok(server) => servers.push(server),
                Err(text) => screen.say(&format!("Without one of the databases: {text}")),
            }
        }
        if servers.is_empty() {
            return Err("no database could be started".to_owned());
        }
        for server in &servers {
            let what = format!("Filling a table of {TABLE_ROWS} rows in {}", server.title);
            screen.step(&what, || prepare(server))?;
        }
        if stop.is_stopped() {
            return Ok(None);
        }
        let (weir, urls) = before_servers(args, &home, executable, &servers, screen)?;
        Ok(Some(Demo { weir, servers: servers.into_iter().zip(urls).collect(), _home: home }))
    }

    /// Loads, shows, ends.
    fn show(mut self, args: &DemoArgs, stop: &Stop, screen: &mut Screen) -> u8 {
        let mut rows: Vec<Row> = self
            .servers
            .iter()
            .map(|(server, _)| Row { title: server.title.clone(), ..Row::default() })
            .collect();
        let began = Instant::now();
        let direct_seconds = args.seconds.map_or(DIRECT_SECONDS, |s| (s / 4).clamp(1, DIRECT_SECONDS));
        let counts: Vec<String> = self
            .servers
            .iter()
            .map(|(s, _)| format!("{} clients at {}", s.direct_clients, s.title))
            .collect();
        screen.say(&format!("\nFirst directly, for {direct_seconds} s: {}.", counts.join(", ")));
        let loads = self.direct(|_| Pace::Closed);
        let direct = load(loads, direct_seconds, stop, &mut |n, figures| {
            rows[n].direct = Some(figures);
            screen.show(began.elapsed().as_secs(), &rows, n);
        });
        for (row, report) in rows.iter_mut().zip(&direct) {
            row.direct = report.as_ref().ok().map(figures_of);
        }
        let mut failed = complain(screen, &direct);
        if !stop.is_stopped() {
            self.refusals(args, screen, stop);
            let rates: Vec<f64> =
                rows.iter().map(|row| row.direct.map_or(0.0, |f| f.qps * SAME_RATE_PART)).collect();
            let seconds = args.seconds.map_or(SAME_RATE_SECONDS, |s| (s / 8).clamp(1, SAME_RATE_SECONDS));
            failed |= self.same_rate(args, &rates, seconds, screen, stop);
        }
        if stop.is_stopped() {
            return self.end(screen, &rows, began, None, failed);
        }
        let every = args.every.and_then(|s| Duration::try_from_secs_f64(s).ok()).filter(|d| !d.is_zero());
        let how = if every.is_some() { "" } else { ALWAYS_WAITING };
        screen.say(&format!("\nNow {} clients of each through Weir.{how}", args.clients));
        let seconds =
            args.seconds.map_or(u64::MAX / 2_000_000_000, |s| s.saturating_sub(direct_seconds).max(1));
        let pace = every.map_or(Pace::Closed, Pace::Every);
        let loads = self.servers.iter().map(|(_, url)| (url.clone(), args.clients, pace)).collect();
        let before = procs::usage(self.weir.pid());
        let through = load(loads, seconds, stop, &mut |n, figures| {
            rows[n].weir = Some(figures);
            screen.show(began.elapsed().as_secs(), &rows, n);
        });
        let after = procs::usage(self.weir.pid());
        for (row, report) in rows.iter_mut().zip(&through) {
            row.weir = report.as_ref().ok().map(figures_of);
        }
        failed |= complain(screen, &through);
        if self.weir.ended().is_some() {
            screen.say("Weir has ended by itself.");
            failed = true;
        }
        let clients: u64 = rows.iter().filter_map(|row| row.weir).map(|f| f.clients).sum();
        let cost = before.zip(after).map(|(before, after)| Cost {
            bytes_per_client: after.rss_bytes.saturating_sub(before.rss_bytes) / clients.max(1),
            rss_bytes: after.rss_bytes,
        });
        self.end(screen, &rows, began, cost, failed)
    }

    /// As many clients as a server is usually given, without Weir.
    fn direct(&self, pace: impl Fn(usize) -> Pace) -> Vec<(Url, u32, Pace)> {
        let servers = self.servers.iter().enumerate();
        servers.map(|(n, (s, _))| (s.url.clone(), s.direct_clients, pace(n))).collect()
    }

    /// What becomes of more clients than a server has room for when they come directly.
    fn refusals(&self, args: &DemoArgs, screen: &mut Screen, stop: &Stop) {
        let full = self
            .servers
            .iter()
            .map(|(server, _)| server)
            .filter(|s| s.max_connections + TOO_MANY <= args.clients);
        let full: Vec<&Server> = full.collect();
        if full.is_empty() {
            return;
        }
        screen.say("");
        let once_a_second = Pace::Every(Duration::from_secs(1));
        let loads =
            full.iter().map(|s| (s.url.clone(), s.max_connections + TOO_MANY, once_a_second)).collect();
        let what = format!("{TOO_MANY} clients more than the servers have room for, directly");
        let reports = screen.step(&what, || load(loads, 1, stop, &mut |_, _| {}));
        for (server, report) in full.iter().zip(&reports) {
            if let Ok(report) = report {
                screen.say(&refused(&server.title, report, args.clients));
            }
        }
    }

    /// The latency of both ways when the same is asked of them. Says what went wrong; true if anything did.
    fn same_rate(
        &self,
        args: &DemoArgs,
        rates: &[f64],
        seconds: u64,
        screen: &mut Screen,
        stop: &Stop,
    ) -> bool {
        if rates.iter().any(|rate| *rate < 1.0) {
            return false;
        }
        screen.say("");
        let pace = |n: usize| Pace::Open { rate: rates.get(n).copied().unwrap_or(1.0), poisson: true };
        let direct = screen.step("The same number of queries a second of both ways: first directly", || {
            load(self.direct(pace), seconds, stop, &mut |_, _| {})
        });
        if stop.is_stopped() {
            return false;
        }
        let loads = self.servers.iter().enumerate().map(|(n, (_, url))| (url.clone(), args.clients, pace(n)));
        let through = screen.step(&format!("then from {} clients through Weir", args.clients), || {
            load(loads.collect(), seconds, stop, &mut |_, _| {})
        });
        for (n, (server, _)) in self.servers.iter().enumerate() {
            if let (Some(Ok(direct)), Some(Ok(weir))) = (direct.get(n), through.get(n)) {
                screen.say(&compared(&server.title, direct, weir));
            }
        }
        complain(screen, &direct) | complain(screen, &through)
    }

    fn end(
        mut self,
        screen: &mut Screen,
        rows: &[Row],
        began: Instant,
        cost: Option<Cost>,
        failed: bool,
    ) -> u8 {
        screen.say("\nOver the whole time:");
        screen.say(&screen::table(began.elapsed().as_secs(), rows));
        if let Some(cost) = cost {
            screen.say(&format!(
                "Weir: {:.1} MB of memory, {} bytes for each client.",
                cost.rss_bytes as f64 / 1e6,
                cost.bytes_per_client
            ));
        }
        self.weir.stop();
        for (server, _) in &mut self.servers {
            server.process.stop();
        }
        screen.say("Everything is stopped and removed.");
        u8::from(failed)
    }
}

/// What Weir took.
struct Cost {
    bytes_per_client: u64,
    rss_bytes: u64,
}

fn workload(url: &Url) -> Oltp {
    let options = Options { table_size: TABLE_ROWS, ..Options::default() };
    oltp_point_select::new(&Params { dialect: url.dialect, connections: 1, options })
}

fn prepare(server: &Server) -> Result<(), String> {
    crate::prepare::prepare(&server.url, &workload(&server.url), 2, &mut |_, _| {})
        .map_err(|error| format!("{}: {error}", server.title))
}

/// Starts Weir before the servers and says where to connect.
fn before_servers(
    args: &DemoArgs,
    home: &Home,
    executable: PathBuf,
    servers: &[Server],
    screen: &mut Screen,
) -> Result<(servers::Process, Vec<Url>), String> {
    let http = free_port(Some(9930))?;
    let mut arguments: Vec<String> = servers.iter().map(|s| s.url_text.clone()).collect();
    arguments.extend(["--pool-size".to_owned(), args.pool_size.to_string()]);
    arguments.extend(["--set".to_owned(), format!("http.listen=127.0.0.1:{http}")]);
    let mut texts = Vec::new();
    for server in servers {
        let (section, scheme, wanted) = match server.url.dialect {
            crate::url::Dialect::Postgres => ("postgres", "postgres", 6432),
            crate::url::Dialect::Mysql => ("mysql", "mysql", 6033),
        };
        let port = free_port(Some(wanted))?;
        arguments.extend(["--set".to_owned(), format!("{section}.listen=127.0.0.1:{port}")]);
        texts.push((server, port, format!("{scheme}://{NAME}@127.0.0.1:{port}/{NAME}")));
    }
    let mut weir = start_weir(home, &executable, &arguments)?;
    let mut urls = Vec::new();
    for (_, _, text) in &texts {
        drop(await_server(home, &mut weir, text, "weir.log")?);
        urls.push(Url::parse(text)?);
    }
    screen.say(&format!(
        "Weir stands before {}, with {} connections to each. Connect while the demo runs:",
        servers.iter().map(|s| s.title.as_str()).collect::<Vec<_>>().join(" and "),
        args.pool_size
    ));
    for (server, port, _) in &texts {
        screen.say(&match server.url.dialect {
            crate::url::Dialect::Postgres => format!("  psql -h 127.0.0.1 -p {port} -U {NAME} {NAME}"),
            crate::url::Dialect::Mysql => format!("  mysql -h 127.0.0.1 -P {port} -u {NAME} {NAME}"),
        });
    }
    screen.say(&format!("  http://127.0.0.1:{http}/metrics"));
    Ok((weir, urls))
}

/// What one run tells the screen: which it is, and its figures.
type News = (usize, Figures);

/// Runs all loads at once. `show` hears the newest figures now and then.
fn load(
    loads: Vec<(Url, u32, Pace)>,
    seconds: u64,
    stop: &Stop,
    show: &mut dyn FnMut(usize, Figures),
) -> Vec<Result<RunResult, String>> {
    let all: u32 = loads.iter().map(|(_, connections, _)| connections).sum();
    let (sender, news) = channel::<News>();
    std::thread::scope(|scope| {
        let mut runs = Vec::new();
        for (n, (url, connections, pace)) in loads.into_iter().enumerate() {
            let (control, sender) = (stop.control(), sender.clone());
            let plan = plan(url, connections, all - connections, pace, seconds);
            runs.push(scope.spawn(move || {
                let mut gathered = Gathered::new(n, sender);
                crate::run(plan, &control, &mut |progress| gathered.hear(&progress))
                    .map_err(|error| error.to_string())
            }));
        }
        drop(sender);
        while let Ok((n, figures)) = news.recv() {
            show(n, figures);
        }
        let panicked = || Err("a run of the load generator panicked".to_owned());
        runs.into_iter().map(|run| run.join().unwrap_or_else(|_| panicked())).collect()
    })
}

fn plan(url: Url, connections: u32, beside: u32, pace: Pace, seconds: u64) -> Plan {
    let workload = Arc::new(workload(&url));
    Plan {
        beside,
        threads: 1,
        pace,
        warm_up: Duration::from_millis(500),
        time: Duration::from_secs(seconds),
        ..Plan::new(vec![url], workload, connections)
    }
}

/// Merges seconds between two drawings.
struct Gathered {
    number: usize,
    sender: Sender<News>,
    merged: Interval,
    seconds: u64,
    errors: u64,
    shown: Instant,
}

impl Gathered {
    fn new(number: usize, sender: Sender<News>) -> Gathered {
        let shown = Instant::now();
        Gathered { number, sender, merged: Interval::default(), seconds: 0, errors: 0, shown }
    }

    fn hear(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Remark(_) | Progress::Started { .. } => {}
            Progress::Connecting { connected, .. } => {
                if self.shown.elapsed() >= DRAW_EVERY {
                    self.tell(Figures { clients: u64::from(*connected), ..Figures::default() });
                }
            }
            Progress::Second(second) => {
                self.merged.connected = 0;
                self.merged.merge(second);
                self.seconds += 1;
                self.errors += second.errors;
                if self.seconds >= DRAW_EVERY.as_secs() {
                    let figures = Figures {
                        clients: self.merged.connected,
                        qps: self.merged.queries as f64 / self.seconds as f64,
                        p95_ms: self.merged.latencies.percentile_ms(95.0),
                        errors: self.errors,
                    };
                    (self.merged, self.seconds) = (Interval::default(), 0);
                    self.tell(figures);
                }
            }
        }
    }

    fn tell(&mut self, figures: Figures) {
        self.shown = Instant::now();
        // The demo listens as long as a run goes on.
        let _ = self.sender.send((self.number, figures));
    }
}

/// How many of too many clients a server has let in, in a sentence.
fn refused(title: &str, report: &RunResult, clients: u32) -> String {
    let (asked, in_) = (report.connections, report.connected);
    let said = report.errors_by_code.iter().max_by_key(|error| error.count);
    let said = said.map_or_else(String::new, |error| format!(" (\"{}\")", error.first_text));
    format!(
        "  {title:<18} {in_} of {asked} were let in, {} refused{said}; of {clients} it would be {} too many.",
        asked.saturating_sub(in_),
        clients.saturating_sub(in_)
    )
}

/// Both ways at the same rate, in a sentence.
fn compared(title: &str, direct: &RunResult, weir: &RunResult) -> String {
    format!(
        "  {title:<18} {:.0} queries/s from {} clients directly: p95 {:.1} ms; {:.0} from {} through Weir: p95 {:.1} ms",
        direct.qps, direct.connected, direct.latency.p95_ms, weir.qps, weir.connected, weir.latency.p95_ms
    )
}

fn figures_of(report: &RunResult) -> Figures {
    Figures {
        clients: u64::from(report.connected),
        qps: report.qps,
        p95_ms: report.latency.p95_ms,
        errors: report.errors,
    }
}

/// Says what went wrong; true if anything did.
fn complain(screen: &mut Screen, reports: &[Result<RunResult, String>]) -> bool {
    let mut failed = false;
    for report in reports {
        match report {
            Err(text) => {
                failed = true;
                screen.say(&format!("Failed: {text}"));
            }
            Ok(report) => {
                for error in &report.errors_by_code {
                    failed = true;
                    let (phase, code, count, text) =
                        (&error.phase, &error.code, error.count, &error.first_text);
                    screen.say(&format!("{}: {count} x {phase} {code}: {text}", report.servers.join(", ")));
                }
            }
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Latencies;

    #[test]
    fn a_stop_reaches_runs_before_and_after_it() {
        let stop = Stop::default();
        let early = stop.control();
        assert!(!early.is_stopped());
        stop.stop();
        assert!(early.is_stopped() && stop.control().is_stopped());
    }

    #[test]
    fn nothing_is_no_demo() {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            demo: DemoArgs,
        }
        for wrong in ["--clients=0", "--pool-size=0", "--seconds=0"] {
            let error = Line::try_parse_from(["demo", wrong]).err().expect(wrong).to_string();
            assert!(error.contains("0 is not in 1.."), "{error}");
        }
        assert_eq!(Line::try_parse_from(["demo", "--clients=1"]).ok().map(|line| line.demo.clients), Some(1));
    }

    #[test]
    fn two_seconds_make_one_drawing() {
        let (sender, news) = channel();
        let mut gathered = Gathered::new(3, sender);
        let mut latencies = Latencies::new();
        latencies.record(5_000_000);
        for _ in 0..2 {
            let second = Interval {
                queries: 100,
                errors: 1,
                connected: 7,
                latencies: latencies.clone(),
                ..Interval::default()
            };
            gathered.hear(&Progress::Second(&second));
        }
        let (number, figures) = news.try_recv().unwrap();
        assert_eq!((number, figures.clients, figures.errors), (3, 7, 2));
        assert_eq!(figures.qps, 100.0);
        assert!((figures.p95_ms - 5.0).abs() < 0.1);
        assert!(news.try_recv().is_err());
    }
}
