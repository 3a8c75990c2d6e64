//! `weir bench agent`: waits for coordinators and runs their parts of a load, one at a time.
//!
//! Owns: the listener, one thread for each connection, the run in progress. Must not do: anything for a peer
//! that has not proved the secret.

use super::wire::{AGENT, COORDINATOR, Job, Line, ORDER_BYTES_MAX, Order, Report, Secret};
use crate::clock;
use crate::run::{Measured, Progress, RunError, check_behind, measure};
use crate::worker::Control;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;
use weir_tls::{Acceptor, AcceptorSettings, Blocking, Bounds, ClientCertificate, self_made};

/// How long a stranger may take for its proof.
const PROOF_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a coordinator may take to read what it is told.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Connections at a time; one of them has the run.
const CONNECTIONS_MAX: usize = 16;

/// How often the listener looks whether it is to end.
const POLL: Duration = Duration::from_millis(100);

/// An agent that listens.
pub struct Agent {
    listener: TcpListener,
    shared: Arc<Shared>,
}

struct Shared {
    acceptor: Acceptor,
    secret: Secret,
    /// Ends all runs.
    control: Arc<Control>,
    busy: AtomicBool,
    connections: AtomicUsize,
}

impl Agent {
    /// Listens.
    ///
    /// # Errors
    /// The address cannot be listened on, or no certificate can be made.
    pub fn bind(address: &str, secret: Secret, control: Arc<Control>) -> Result<Agent, String> {
        let failed = |error: io::Error| format!("{address}: {error}");
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let made = self_made(&["weir bench agent".to_owned()], None).or_else(|_| self_made(&[], None));
        let settings = AcceptorSettings {
            identity: made.map_err(|error| error.to_string())?.identity,
            bounds: Bounds::default(),
            client: ClientCertificate::None,
            alpn: Vec::new(),
            tickets: false,
        };
        let acceptor = Acceptor::new(&settings).map_err(|error| error.to_string())?;
        let (busy, connections) = (AtomicBool::new(false), AtomicUsize::new(0));
        Ok(Agent { listener, shared: Arc::new(Shared { acceptor, secret, control, busy, connections }) })
    }

    /// Where.
    ///
    /// # Errors
    /// The kernel does not tell the address of the socket.
    pub fn address(&self) -> Result<SocketAddr, String> {
        self.listener.local_addr().map_err(|error| error.to_string())
    }

    /// Serves until it is stopped. `say` hears who came and what became of it.
    pub fn serve(&self, say: &(dyn Fn(&str) + Sync)) {
        std::thread::scope(|scope| {
            while !self.shared.control.is_stopped() {
                let (stream, peer) = match self.listener.accept() {
                    Ok(accepted) => accepted,
                    // Nobody is there; or too many files are open, which passes.
                    Err(_) => {
                        std::thread::sleep(POLL);
                        continue;
                    }
                };
                if self.shared.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                    self.shared.connections.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let shared = Arc::clone(&self.shared);
                scope.spawn(move || {
                    if let Err(text) = shared.attend(stream, peer, say) {
                        say(&format!("{peer}: {text}"));
                    }
                    shared.connections.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
    }
}

impl Shared {
    fn attend(&self, stream: TcpStream, peer: SocketAddr, say: &dyn Fn(&str)) -> Result<(), String> {
        let mut line = self.prove(stream).map_err(|error| format!("no coordinator: {error}"))?;
        line.bytes_max = ORDER_BYTES_MAX;
        loop {
            if self.control.is_stopped() {
                return Ok(());
            }
            match line.poll::<Order>() {
                Ok(None) => {}
                Ok(Some(Order::Ping)) => line.send(&Report::Pong).map_err(|error| error.to_string())?,
                Ok(Some(Order::Job(job))) => {
                    if self.busy.swap(true, Ordering::Acquire) {
                        let busy = Report::Failed("it is at work for another coordinator".to_owned());
                        return line.send(&busy).map_err(|error| error.to_string());
                    }
                    say(&format!("{peer}: {} of {} clients", job.connections, job.of));
                    let outcome = self.work(&mut line, *job);
                    self.busy.store(false, Ordering::Release);
                    say(&format!("{peer}: {}", outcome.as_ref().err().map_or("done", String::as_str)));
                    return Ok(());
                }
                Ok(Some(Order::Prove { .. } | Order::Start { .. } | Order::Stop)) => {
                    return Err("an order that is not its turn".to_owned());
                }
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Both sides prove that they know the secret.
    fn prove(&self, stream: TcpStream) -> io::Result<Line> {
        let wrong = |text: &str| io::Error::new(io::ErrorKind::PermissionDenied, text.to_owned());
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PROOF_TIMEOUT))?;
        stream.set_write_timeout(Some(PROOF_TIMEOUT))?;
        let tls = self.acceptor.accept().map_err(|error| wrong(&error.to_string()))?;
        let mut line = Line::new(Blocking::handshake(tls, stream)?);
        let end_point = line.end_point().map_err(|text| wrong(&text))?;
        let version = env!("CARGO_PKG_VERSION");
        let ours = rand::random();
        line.send(&Report::Hello { version: version.to_owned(), nonce: ours })?;
        let Order::Prove { version: their_version, nonce: theirs, proof } = line.receive()? else {
            return Err(wrong("an order before the proof"));
        };
        if !self.secret.is_proof(&proof, COORDINATOR, &theirs, &ours, &end_point) {
            line.send(&Report::Failed("the shared secret is another one".to_owned()))?;
            return Err(wrong("the shared secret is another one"));
        }
        if their_version != version {
            let text = format!(
                "this agent is weir {version}, the coordinator {their_version}: they must be the same"
            );
            line.send(&Report::Failed(text.clone()))?;
            return Err(wrong(&text));
        }
        line.set_timeout(WRITE_TIMEOUT)?;
        line.send(&Report::Welcome { proof: self.secret.proof(AGENT, &ours, &theirs, &end_point) })?;
        Ok(line)
    }

    /// Carries out a job: the run has a thread, this one talks.
    fn work(&self, line: &mut Line, job: Job) -> Result<(), String> {
        let control = Arc::new(Control::default());
        let (say, said) = channel();
        let (start, started) = channel();
        let outcome = std::thread::scope(|scope| {
            let own = Arc::clone(&control);
            let running = std::thread::Builder::new()
                .name("job".to_owned())
                .spawn_scoped(scope, move || carry_out(&job, &own, &say, &started));
            let outcome = match running {
                Ok(_) => self.talk(line, &control, &said, &start),
                Err(error) => Err(error.to_string()),
            };
            // Whatever it was: nobody wants this run any more.
            control.stop();
            drop(start);
            outcome
        });
        if let Err(text) = &outcome {
            // The coordinator may have gone.
            let _ = line.send(&Report::Failed(text.clone()));
        }
        outcome
    }

    /// Passes reports on and orders in, until the run is over.
    fn talk(
        &self,
        line: &mut Line,
        control: &Control,
        said: &Receiver<Report>,
        start: &Sender<u64>,
    ) -> Result<(), String> {
        let lost = |error: io::Error| format!("the coordinator is gone: {error}");
        loop {
            if self.control.is_stopped() {
                return Err("the agent was stopped".to_owned());
            }
            loop {
                match said.try_recv() {
                    Ok(Report::Failed(text)) => return Err(text),
                    Ok(done @ Report::Done(_)) => return line.send(&done).map_err(lost),
                    Ok(report) => line.send(&report).map_err(lost)?,
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Err("the run has no end".to_owned()),
                }
            }
            match line.poll::<Order>().map_err(lost)? {
                None => {}
                Some(Order::Ping) => line.send(&Report::Pong).map_err(lost)?,
                // A run that has ended by itself does not hear it.
                Some(Order::Start { after_ns }) => {
                    let _ = start.send(clock::now_ns().saturating_add(after_ns));
                }
                Some(Order::Stop) => control.stop(),
                Some(Order::Prove { .. } | Order::Job(_)) => {
                    return Err("an order that is not its turn".to_owned());
                }
            }
        }
    }
}

/// The run itself. Its last word is `Done` or `Failed`.
fn carry_out(job: &Job, control: &Arc<Control>, say: &Sender<Report>, started: &Receiver<u64>) {
    let report = match try_out(job, control, say, started) {
        Ok(measured) => Report::Done(Box::new(measured)),
        Err(text) => Report::Failed(text),
    };
    // Nobody listens when the coordinator has gone.
    let _ = say.send(report);
}

fn try_out(
    job: &Job,
    control: &Arc<Control>,
    say: &Sender<Report>,
    started: &Receiver<u64>,
) -> Result<Measured, String> {
    let plan = crate::cli::plan_of_job(job)?;
    let described = plan.clone();
    let mut last = (0, 0);
    let mut observer = |progress: Progress<'_>| {
        let report = match progress {
            Progress::Remark(text) => Report::Remark(text.to_owned()),
            Progress::Connecting { connected, given_up, .. } => {
                if last == (connected, given_up) {
                    return;
                }
                last = (connected, given_up);
                Report::Connecting { connected, given_up }
            }
            Progress::Second(interval) => Report::Second(Box::new(interval.clone())),
            Progress::Started { .. } => return,
        };
        let _ = say.send(report);
    };
    let mut start = |connected: u32| {
        let _ = say.send(Report::Ready { connected });
        loop {
            match started.recv_timeout(POLL) {
                Ok(start_ns) => return Ok(start_ns),
                Err(RecvTimeoutError::Timeout) if !control.is_stopped() => {}
                Err(_) => return Err(RunError::Plan("stopped before its start".to_owned())),
            }
        }
    };
    let mut measured = measure(plan, control, &mut observer, &mut start).map_err(|e| e.to_string())?;
    // One look at the database is enough.
    if job.first_client == 0 {
        measured.around.checks = check_behind(&described);
    }
    Ok(measured)
}
