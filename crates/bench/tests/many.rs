//! More connections from one process than its limit of open files: workers have descriptor tables of their
//! own, sources are spread, and every reply is the right one.
//!
//! 3,000 connections at a limit of 1,000 open files. `benches/connections` runs the full size: 100,000 at
//! 20,000 from `weir bench`, with this responder as a separate process (some 2 GB of memory, nearly all of it
//! the kernel's).

#![cfg(target_os = "linux")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_bench::record::Interval;
use weir_bench::run::Progress;
use weir_bench::worker::Control;
use weir_bench::workloads::{self, Params, options::Options};
use weir_bench::{Plan, Url};
use weir_net::fleet::{Fleet, Seat};
use weir_net::listener::{self, ListenOptions};
use weir_net::socket::SocketOptions;
use weir_net::{Event, Net, Target, Token, tables};

const LISTENER: Token = Token(u64::MAX - 9);

/// A small PostgreSQL server of canned replies on event loops.
struct Responder {
    address: SocketAddr,
    peak: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<std::io::Result<()>>>,
    _fleet: Fleet,
}

impl Responder {
    fn start(connections: u64) -> Responder {
        // Some room: the kernel deals connections out to the listeners by a hash.
        let plan = tables::plan(connections * 5 / 4, 1);
        assert!(plan.enough, "{}", plan.text);
        let target = Target::Tcp(([127, 0, 0, 1], 0).into());
        let bound = listener::bind(&target, plan.workers, &ListenOptions::default()).unwrap();
        let Target::Tcp(address) = bound.listeners[0].local().unwrap() else { panic!("not TCP") };
        let fleet = Fleet::new(plan, &[], SocketOptions::default()).unwrap();
        let (open, peak) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let stop = Arc::new(AtomicBool::new(false));
        let threads = bound.listeners.into_iter().enumerate().map(|(worker, listener)| {
            let seat = fleet.seat(worker, vec![listener]).unwrap();
            let (open, peak, stop) = (Arc::clone(&open), Arc::clone(&peak), Arc::clone(&stop));
            std::thread::spawn(move || serve(seat, &open, &peak, &stop))
        });
        let threads = threads.collect();
        Responder { address, peak, stop, threads, _fleet: fleet }
    }
}

fn serve(seat: Seat, open: &AtomicU64, peak: &AtomicU64, stop: &AtomicBool) -> std::io::Result<()> {
    let (mut kernel, listeners) = seat.enter()?;
    for listener in &listeners {
        kernel.watch_listener(listener, LISTENER)?;
    }
    let mut clients = Vec::new();
    let (mut events, mut scratch): (Vec<Event>, _) = (Vec::new(), vec![0; 4096]);
    while !stop.load(Ordering::Relaxed) {
        kernel.wait(&mut events, Some(Duration::from_millis(50)))?;
        for event in &events {
            if event.token == LISTENER {
                for listener in &listeners {
                    while let Ok((socket, _)) = kernel.accept(listener) {
                        kernel.register(&socket, Token(clients.len() as u64))?;
                        // A number is used once: there are few of them in a test.
                        clients.push(Some((socket, false)));
                        peak.fetch_max(open.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                    }
                }
                continue;
            }
            let Some(place) = clients.get_mut(event.token.0 as usize) else { continue };
            while let Some((socket, started)) = place.as_mut() {
                match kernel.recv(socket, &mut scratch) {
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                    Ok(n) if n > 0 && scratch[0] != b'X' => {
                        // What a client asks fits into one packet, and it asks one thing at a time.
                        let reply = reply(&scratch[..n], std::mem::replace(started, true));
                        assert_eq!(kernel.send(socket, &reply)?, reply.len());
                    }
                    Ok(_) | Err(_) => {
                        if let Some((socket, _)) = place.take() {
                            kernel.close(socket, false);
                            open.fetch_sub(1, Ordering::Relaxed);
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

fn reply(asked: &[u8], started: bool) -> Vec<u8> {
    if !started {
        return [message(b'R', &[0; 4]), message(b'K', &[0; 8]), message(b'Z', b"I")].concat();
    }
    let text = &asked[5 + b"SELECT ".len()..asked.len() - 1];
    let row = [&[0, 1][..], &(text.len() as u32).to_be_bytes(), text].concat();
    let columns = b"\0\x01n\0\0\0\0\0\0\0\0\0\0\x14\0\x08\xff\xff\xff\xff\0\0";
    [message(b'T', columns), message(b'D', &row), message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat()
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// For the whole process, and for good.
fn lower_open_files(files: u64) {
    let limit = rustix::process::Rlimit { current: Some(files), maximum: Some(files) };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
}

/// Not a test: the responder of `benches/connections`, for so many connections. It says where it is and ends
/// with its input.
#[test]
#[ignore = "no test: benches/connections runs it"]
fn serves_other_programs_when_asked() {
    let connections = setting("WEIR_RESPONDER", 0);
    if connections > 0 {
        lower_open_files(setting("WEIR_RESPONDER_FILES", 20_000));
        let responder = Responder::start(connections);
        println!("\nresponder at {}", responder.address);
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
        responder.stop.store(true, Ordering::Relaxed);
    }
}

#[test]
fn more_connections_than_open_files() {
    let connections = 3_000;
    lower_open_files(1_000);
    let responder = Responder::start(connections);
    let url = Url::parse(&format!("postgres://app@{}/d", responder.address)).unwrap();
    let params =
        Params { dialect: url.dialect, connections: connections as u32, options: Options::default() };
    let workload = Arc::from(workloads::by_name("select_one", &params).unwrap());
    let plan = Plan {
        // Nothing may fail on a slow machine.
        time: Duration::from_secs(3600),
        connect_timeout: Duration::from_secs(600),
        query_timeout: Duration::from_secs(600),
        ..Plan::new(vec![url], workload, connections as u32)
    };
    let (control, mut sum) = (Arc::new(Control::default()), Interval::default());
    let result = weir_bench::run(plan, &control, &mut |progress| {
        if let Progress::Second(second) = progress {
            sum.merge(second);
            if sum.queries >= 3 * connections {
                control.stop();
            }
        }
    })
    .unwrap();
    println!("{}", result.to_text());
    assert_eq!((result.errors, u64::from(result.connected)), (0, connections), "{}", result.to_text());
    assert!(result.queries >= connections, "{}", result.to_text());
    assert!(responder.peak.load(Ordering::Relaxed) >= connections);
    assert!(result.remarks.iter().any(|text| text.contains("one descriptor table")), "{:?}", result.remarks);
    responder.stop.store(true, Ordering::Relaxed);
    for thread in responder.threads {
        thread.join().unwrap().unwrap();
    }
}
