//! Joint runs of two agents in this process, against a responder.

#[allow(dead_code)]
mod responder;

use responder::{Quirk, Responder, Speak};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_bench::agents::{self, Agent, Secret};
use weir_bench::cli::plan_of_job;
use weir_bench::run::{Progress, RunError};
use weir_bench::worker::Control;
use weir_bench::{Plan, RunResult};

const SECRET: &str = "a secret of some length";

/// An agent on a thread of its own, until it is stopped.
struct Running {
    address: String,
    control: Arc<Control>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    fn start() -> Running {
        let control = Arc::new(Control::default());
        let agent = Agent::bind("127.0.0.1:0", Secret::new(SECRET).unwrap(), Arc::clone(&control)).unwrap();
        let address = agent.address().unwrap().to_string();
        let thread = Some(std::thread::spawn(move || agent.serve(&|text| eprintln!("agent: {text}"))));
        Running { address, control, thread }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.control.stop();
        self.thread.take().unwrap().join().unwrap();
    }
}

fn arguments(url: &str, more: &str) -> Vec<String> {
    let line = format!("run select_one --url {url} --time 3600 --event-loops 1 {more}");
    line.split_whitespace().map(str::to_owned).collect()
}

/// The whole, as one machine would do it.
fn whole(arguments: &[String], connections: u32) -> Plan {
    let of = connections;
    plan_of_job(&agents::Job {
        arguments: arguments.to_vec(),
        script: None,
        first_client: 0,
        connections,
        of,
        events: None,
    })
    .unwrap()
}

fn run(
    on: &[&Running],
    arguments: &[String],
    connections: u32,
    events: Option<u64>,
    secret: &str,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<RunResult, RunError> {
    let plan = Plan { events, ..whole(arguments, connections) };
    let addresses: Vec<String> = on.iter().map(|agent| agent.address.clone()).collect();
    let jobs = agents::jobs(&plan, addresses.len(), arguments, None);
    let control = Arc::new(Control::default());
    agents::run(&plan, &addresses, jobs, &Secret::new(secret).unwrap(), &control, observer)
}

#[test]
fn what_two_agents_measured_adds_up() {
    for speak in [Speak::Postgres, Speak::Mysql] {
        let responder = Responder::start(speak, Quirk::None);
        let (one, two) = (Running::start(), Running::start());
        let arguments = arguments(&responder.url(speak), "");
        let mut started = 0;
        let report = run(&[&one, &two], &arguments, 7, Some(1001), SECRET, &mut |progress| {
            if let Progress::Started { connected } = progress {
                started = connected;
            }
        })
        .unwrap();
        assert_eq!((report.errors, report.connected, started), (0, 7, 7), "{}", report.to_text());
        // Each event once, by one of them; every latency is in the one histogram.
        assert_eq!((report.events, report.queries), (1001, 1001));
        assert_eq!(responder.queries.load(Ordering::Relaxed), 1001);
        assert_eq!((report.latency.count, report.statements[0].count), (1001, 1001));
        assert_eq!(report.histogram.iter().map(|bucket| bucket.count).sum::<u64>(), 1001);
        assert_eq!(report.agents.iter().map(|agent| agent.queries).sum::<u64>(), 1001);
        assert!(report.agents.iter().all(|agent| agent.queries >= 500 && agent.connected >= 3));
        assert_eq!(report.agents.iter().map(|agent| agent.connected).sum::<u32>(), 7);
        assert_eq!((report.connect.count, report.login.count), (7, 7));
        assert_eq!(report.server_versions, ["responder"]);
        assert_eq!(report.processes.len(), 2);
        // An agent can be used again.
        assert_eq!(run(&[&one], &arguments, 2, Some(10), SECRET, &mut |_| {}).unwrap().events, 10);
    }
}

#[test]
fn seconds_of_all_agents_are_one_line() {
    let responder = Responder::start(Speak::Postgres, Quirk::None);
    let (one, two) = (Running::start(), Running::start());
    let arguments = arguments(&responder.url(Speak::Postgres), "--rate 400");
    let plan = whole(&arguments, 4);
    let jobs = agents::jobs(&plan, 2, &arguments, None);
    let (control, mut seconds) = (Arc::new(Control::default()), Vec::new());
    let addresses = [one.address.clone(), two.address.clone()];
    let secret = Secret::new(SECRET).unwrap();
    let report = agents::run(&plan, &addresses, jobs, &secret, &control, &mut |progress| {
        if let Progress::Second(second) = progress {
            seconds.push((second.number, second.connected));
            control.stop();
        }
    })
    .unwrap();
    assert_eq!(seconds.first(), Some(&(0, 4)), "one line a second, of all clients");
    assert_eq!((report.errors, report.rate_wanted), (0, Some(400.0)));
    // Replies that come after the end tell their latency and count as no query: at most one of each client.
    let queries = report.agents.iter().map(|agent| agent.queries).sum::<u64>();
    assert!((queries..=queries + 4).contains(&report.latency.count), "{queries}, {}", report.latency.count);
}

#[test]
fn clients_of_agents_are_different_ones() {
    let arguments = arguments("postgres://app@127.0.0.1/d", "--rate 90 --connect-rate 9");
    let plan = Plan { events: Some(100), ..whole(&arguments, 10) };
    let jobs = agents::jobs(&plan, 3, &arguments, None);
    let clients: Vec<_> = jobs.iter().map(|job| (job.first_client, job.connections)).collect();
    assert_eq!(clients, [(0, 3), (3, 3), (6, 4)]);
    assert_eq!(jobs.iter().map(|job| job.events.unwrap()).sum::<u64>(), 100);
    let shares = plan_of_job(&jobs[2]).unwrap().shares(2);
    assert_eq!((shares[0].clients.clone(), shares[1].clients.clone()), (6..8, 8..10));
    let rate = plan_of_job(&jobs[2]).unwrap().connect_rate;
    assert!((rate.unwrap() - 3.6).abs() < 1e-9);
}

#[test]
fn what_is_wrong_with_an_agent_is_said() {
    let responder = Responder::start(Speak::Mysql, Quirk::None);
    let one = Running::start();
    let good = arguments(&responder.url(Speak::Mysql), "");
    let error = |arguments: &[String], secret: &str| {
        run(&[&one], arguments, 2, Some(10), secret, &mut |_| {}).unwrap_err().to_string()
    };
    assert!(error(&good, "another secret of some length").contains("the shared secret is another one"));
    let no_server = arguments("mysql://app@127.0.0.1:1/d", "");
    let text = error(&no_server, SECRET);
    assert!(text.contains(&one.address) && text.contains("ECONNREFUSED"), "{text}");
    let missing = Running { address: "127.0.0.1:1".to_owned(), control: Arc::default(), thread: None };
    let text = run(&[&missing], &good, 2, Some(1), SECRET, &mut |_| {}).unwrap_err().to_string();
    std::mem::forget(missing);
    assert!(text.contains("agent 127.0.0.1:1") && text.contains("refused"), "{text}");
    // Something that listens and is no agent.
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let thread =
        std::thread::spawn(move || other.accept().unwrap().0.write_all(b"SSH-2.0-other\r\n").unwrap());
    let plan = whole(&good, 2);
    let jobs = agents::jobs(&plan, 1, &good, None);
    let secret = Secret::new(SECRET).unwrap();
    let text = agents::run(&plan, &[address], jobs, &secret, &Arc::default(), &mut |_| {});
    assert!(text.unwrap_err().to_string().contains("no agent of weir bench"));
    thread.join().unwrap();
    // After all that it still works.
    assert_eq!(run(&[&one], &good, 2, Some(10), SECRET, &mut |_| {}).unwrap().events, 10);
}

#[test]
fn an_agent_that_goes_ends_the_run() {
    let responder = Responder::start(Speak::Postgres, Quirk::None);
    let (one, two) = (Running::start(), Running::start());
    let arguments = arguments(&responder.url(Speak::Postgres), "");
    let failed = run(&[&one, &two], &arguments, 4, None, SECRET, &mut |progress| {
        if let Progress::Second(_) = progress {
            two.control.stop();
        }
    });
    let text = failed.unwrap_err().to_string();
    assert!(text.contains(&two.address) && text.contains("the agent was stopped"), "{text}");
    // The other one has ended its part, and takes the next run.
    let again = loop {
        match run(&[&one], &arguments, 2, Some(10), SECRET, &mut |_| {}) {
            Ok(report) => break report,
            Err(error) => assert!(error.to_string().contains("another coordinator"), "{error}"),
        }
    };
    assert_eq!(again.events, 10);
}

#[test]
fn strangers_get_nothing() {
    let one = Running::start();
    for bytes in [&b"GET / HTTP/1.0\r\n\r\n"[..], &[0xff; 4096], b""] {
        let mut stream = TcpStream::connect(&one.address).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = Vec::new();
        // It may close with bytes of ours unread.
        let _ = stream.read_to_end(&mut said);
        assert!(said.len() < 100, "an alert at most");
    }
    // In TLS, an order in front of the proof, and a message longer than any stranger's.
    for bytes in [&b"\0\0\0\x06\"Ping\""[..], b"\x7f\0\0\0"] {
        let connector = weir_tls::Connector::new(&weir_tls::ConnectorSettings::default()).unwrap();
        let stream = TcpStream::connect(&one.address).unwrap();
        let mut line = weir_tls::Blocking::handshake(connector.connect("agent").unwrap(), stream).unwrap();
        line.write_all(bytes).unwrap();
        let mut said = Vec::new();
        let _ = line.read_to_end(&mut said);
        let text = String::from_utf8_lossy(&said);
        assert!(text.contains("Hello") && !text.contains("Pong"), "{text}");
    }
}

#[test]
fn secrets_that_are_too_short_are_refused() {
    assert!(Secret::new("short").is_err());
}
