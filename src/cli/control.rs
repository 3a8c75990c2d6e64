//! The control thread: signals, the HTTP endpoint, looking names up again. It starts the proxy and waits for
//! its end.

use super::logging::Logging;
use super::process::{Pidfile, Ready, is_background, leave_session};
use super::{Failure, VERSION, reach};
use anyhow::{Context, anyhow};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use weir_admin::console::{Act, Console};
use weir_admin::http::{self, Pages};
use weir_config::{SetArgument, Snapshot, Sources, diff, load};
use weir_net::Target;
use weir_net::listener::{ListenOptions, bind, cure_of_taken_port};
use weir_proxy::Proxy;
use weir_proxy::sizing::{self, Sizing};

/// What to run.
pub struct Plan<'a> {
    /// For a reload.
    pub sources: Sources,
    /// What the sources came to.
    pub snapshot: Snapshot,
    /// Who waits for the start.
    pub ready: Ready,
    /// To be opened again on SIGHUP.
    pub logging: &'a Logging,
    /// What the doctor says of this start.
    pub warnings: Vec<String>,
}

/// Runs the proxy until it has ended.
///
/// # Errors
/// The control thread, a worker or a listener cannot be started, or too many workers have panicked.
pub fn run(plan: Plan<'_>) -> Result<(), Failure> {
    if is_background() {
        leave_session()?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the control thread")?;
    let flush = plan.logging.flusher();
    // The signals are caught and the threads that wait for the workers would keep the process: without this
    // one it would go on unseen, and deaf.
    let outcome = catch_unwind(AssertUnwindSafe(|| runtime.block_on(control(plan)))).unwrap_or_else(|_| {
        tracing::error!("Weir ends with status 1: the control thread has panicked: this is a defect of Weir, please report it with the lines above");
        flush();
        std::process::exit(1)
    });
    // A name that is being looked up must not hold up the end.
    runtime.shutdown_background();
    outcome
}

async fn control(plan: Plan<'_>) -> Result<(), Failure> {
    // Before anything is opened: a signal that comes early is not lost.
    let mut signals = Signals::new().context("cannot wait for signals")?;
    let mut snapshot = Arc::new(plan.snapshot);
    let started = snapshot.clone();
    let http = listen_http(&snapshot)?;
    // Before the listeners: a second process of the same file must not take the sockets of the first.
    let pidfile = snapshot.pidfile.as_deref().map(Pidfile::write).transpose()?;
    let proxy = Arc::new(
        Proxy::start(&snapshot, super::doctor::memory(), plan.logging.flusher())
            .map_err(|error| Failure::Runtime(anyhow!("{error}")))?,
    );
    let (console, mut acts) = Console::open(&proxy, snapshot.clone(), VERSION);
    announce(&proxy);
    reach::look(&started);
    let draining = Arc::new(AtomicBool::new(false));
    // It is to end, when its clients have.
    let leaving = Arc::new(AtomicBool::new(false));
    let pages = pages(&proxy, [&draining, &leaving], &console, plan.warnings);
    for listener in http {
        if let Ok(address) = listener.local_addr() {
            tracing::info!("listens on http://{address}: dashboard, /metrics, /api, /healthz, /readyz");
        }
        tokio::spawn(http::serve(listener, pages.clone()));
    }
    plan.ready.tell();
    let waiting = proxy.clone();
    let mut end = tokio::task::spawn_blocking(move || waiting.join());
    let mut dns = dns_interval(&snapshot);
    let mut sizing = Sizing::default();
    let mut sizes = interval_at(Instant::now() + sizing::EVERY, sizing::EVERY);
    sizes.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looked = Instant::now();
    let mut reloads = Reloads::new(plan.sources.clone(), started, plan.ready);
    loop {
        tokio::select! {
            outcome = &mut end => {
                outcome.context("the thread that waits for the workers has panicked")?;
                drop(pidfile);
                if !draining.load(Ordering::Relaxed) && !leaving.load(Ordering::Relaxed) {
                    return Err(Failure::Runtime(anyhow!("all workers have ended by themselves")));
                }
                tracing::info!("stopped");
                return Ok(());
            }
            order = signals.next() => match order {
                Order::Drain | Order::Stop => stop(&proxy, &draining, order, plan.ready),
                Order::Pause(paused) => {
                    tracing::info!("{} by signal", if paused { "paused" } else { "resumed" });
                    proxy.decree(|orders| orders.all_paused = paused);
                }
                Order::Reload => {
                    plan.logging.reopen();
                    reloads.begin(&proxy, &snapshot);
                }
            },
            Some(act) = acts.recv() => match act {
                Act::Leave => {
                    tracing::info!("stopping when all clients have disconnected; new clients are refused. A signal stops when transactions have ended");
                    leaving.store(true, Ordering::Relaxed);
                    plan.ready.tell_stopping();
                    proxy.leave();
                }
                Act::Drain => stop(&proxy, &draining, Order::Drain, plan.ready),
                Act::Stop => stop(&proxy, &draining, Order::Stop, plan.ready),
                Act::Reload(done) => {
                    plan.logging.reopen();
                    reloads.overrides.clear();
                    reloads.begin_for(&proxy, &snapshot, done, None);
                }
                Act::Set(name, value, done) => {
                    reloads.begin_for(&proxy, &snapshot, done, Some(SetArgument::new("SET", &name, &value)));
                }
            },
            renewed = reloads.ended() => {
                if let Some(renewed) = renewed {
                    dns = dns_interval(&renewed);
                    console.renew(renewed.clone());
                    snapshot = renewed;
                }
                reloads.begin_again(&proxy, &snapshot);
            }
            _ = sizes.tick() => {
                let now = Instant::now();
                proxy.look_at_sizes(&mut sizing, now - std::mem::replace(&mut looked, now));
            }
            _ = dns.tick() => {
                let proxy = proxy.clone();
                // Nobody waits for it: it publishes what it finds.
                drop(tokio::task::spawn_blocking(move || proxy.resolve_again()));
            }
        }
    }
}

/// Ends the process: when transactions have ended, or, when that is under way already or so ordered, at once.
fn stop(proxy: &Proxy, draining: &AtomicBool, order: Order, ready: Ready) {
    ready.tell_stopping();
    if !draining.swap(true, Ordering::Relaxed) && order == Order::Drain {
        tracing::info!(
            "stopping when transactions have ended; new clients are refused. A second signal stops at once"
        );
        return proxy.drain();
    }
    tracing::info!("stopping at once");
    proxy.stop();
}

fn pages(
    proxy: &Arc<Proxy>,
    ends: [&Arc<AtomicBool>; 2],
    console: &Arc<Console>,
    warnings: Vec<String>,
) -> Arc<Pages> {
    let exposed = proxy.clone();
    let ends = ends.map(Arc::clone);
    Arc::new(Pages {
        metrics: Box::new(move || weir_metrics::expose(exposed.metrics(), VERSION, exposed.pools_now())),
        metrics_type: weir_metrics::CONTENT_TYPE,
        ready: Box::new(move || {
            if ends.iter().any(|end| end.load(Ordering::Relaxed)) {
                Err("Weir is stopping".to_owned())
            } else {
                Ok(())
            }
        }),
        warnings,
        source: console.clone(),
    })
}

/// The HTTP listeners. The default address may be another Weir's: then this one does without.
fn listen_http(snapshot: &Snapshot) -> Result<Vec<TcpListener>, Failure> {
    let mut listeners = Vec::new();
    for (address, optional) in &snapshot.http {
        match open_http(*address) {
            Ok(listener) => listeners.push(listener),
            Err(_) if *optional => {}
            Err(error) if snapshot.http_required => {
                let cure = match error.kind() {
                    ErrorKind::AddrInUse => format!(". {}", cure_of_taken_port(*address)),
                    _ => String::new(),
                };
                return Err(Failure::Runtime(anyhow!("cannot listen on {address} for HTTP: {error}{cure}")));
            }
            Err(error) => tracing::warn!(
                "cannot listen on {address} for HTTP ({error}): /metrics is not available; set another address with http.listen"
            ),
        }
    }
    Ok(listeners)
}

/// As for clients: `0.0.0.0` and `[::]` are two addresses.
fn open_http(address: SocketAddr) -> std::io::Result<TcpListener> {
    let bound = bind(&Target::Tcp(address), 1, &ListenOptions::default()).map_err(|error| error.source)?;
    let listener = bound.listeners.into_iter().next().ok_or(ErrorKind::NotFound)?;
    TcpListener::from_std(OwnedFd::from(listener).into())
}

fn announce(proxy: &Proxy) {
    tracing::info!("{}", proxy.plan().text);
    tracing::info!("{}", proxy.room().text);
    for (protocol, target) in proxy.listening() {
        match target {
            Target::Tcp(address) => tracing::info!("listens on {address} for {}", protocol.name()),
            Target::Unix(path) => tracing::info!("listens on {} for {}", path.display(), protocol.name()),
        }
    }
}

fn dns_interval(snapshot: &Snapshot) -> Interval {
    let every = Duration::from_millis(snapshot.timeouts.dns_max_ttl_ms.max(1000));
    let mut dns = interval_at(Instant::now() + every, every);
    dns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    dns
}

/// SIGHUP: reads the configuration again. It runs beside the other work, because names are looked up; a
/// signal that comes meanwhile begins another one when it has ended.
struct Reloads {
    sources: Sources,
    /// Settings that the console has changed since the file was last read for its own sake.
    overrides: Vec<SetArgument>,
    /// What Weir was started with: settings that take a restart are compared with it.
    started: Arc<Snapshot>,
    under_way: Option<JoinHandle<Option<Arc<Snapshot>>>>,
    again: bool,
    /// Who waits for the one under way, and for the one after it; and the setting that one of them changes.
    waiting: Vec<Waiter>,
    later: Vec<Waiter>,
    manager: Ready,
}

/// Who waits for a reload, and which setting it is about.
type Waiter = (oneshot::Sender<bool>, Option<String>);

impl Reloads {
    fn new(sources: Sources, started: Arc<Snapshot>, manager: Ready) -> Reloads {
        Reloads {
            sources,
            overrides: Vec::new(),
            started,
            under_way: None,
            again: false,
            waiting: Vec::new(),
            later: Vec::new(),
            manager,
        }
    }

    fn begin(&mut self, proxy: &Arc<Proxy>, running: &Arc<Snapshot>) {
        if self.under_way.is_some() {
            self.again = true;
            return;
        }
        self.waiting = std::mem::take(&mut self.later);
        self.manager.tell_reloading();
        let (proxy, running) = (proxy.clone(), running.clone());
        let (mut sources, started) = (self.sources.clone(), self.started.clone());
        sources.settings.extend(self.overrides.iter().cloned());
        self.under_way =
            Some(tokio::task::spawn_blocking(move || reload(&sources, &started, &running, &proxy)));
    }

    /// One that somebody waits for, perhaps with a setting that is another one from now on.
    fn begin_for(
        &mut self,
        proxy: &Arc<Proxy>,
        running: &Arc<Snapshot>,
        done: oneshot::Sender<bool>,
        setting: Option<SetArgument>,
    ) {
        let name = setting.as_ref().map(|setting| setting.name.clone());
        if let Some(setting) = setting {
            self.overrides.retain(|known| known.name != setting.name);
            self.overrides.push(setting);
        }
        self.later.push((done, name));
        self.begin(proxy, running);
    }

    fn begin_again(&mut self, proxy: &Arc<Proxy>, running: &Arc<Snapshot>) {
        if std::mem::take(&mut self.again) {
            self.begin(proxy, running);
        }
    }

    /// What holds after the reload under way; `None`: what held before.
    async fn ended(&mut self) -> Option<Arc<Snapshot>> {
        let Some(under_way) = &mut self.under_way else { return std::future::pending().await };
        let outcome = under_way.await;
        self.under_way = None;
        self.manager.tell_reloaded();
        let renewed = outcome.unwrap_or_else(|error| {
            tracing::error!("the reload failed; the old configuration stays in effect: {error}");
            None
        });
        for (done, setting) in self.waiting.drain(..) {
            if renewed.is_none() {
                // A value that is refused now would be refused again.
                self.overrides.retain(|known| Some(&known.name) != setting.as_ref());
            }
            // Who has asked may have gone.
            let _ = done.send(renewed.is_some());
        }
        renewed
    }
}

/// A file that is not right changes nothing. Settings that take a restart are named, each time.
fn reload(sources: &Sources, started: &Snapshot, running: &Snapshot, proxy: &Proxy) -> Option<Arc<Snapshot>> {
    let mut loaded = match load(sources) {
        Ok(loaded) => loaded,
        Err(problems) => {
            tracing::error!("the configuration has errors; the old one stays in effect: {problems}");
            return None;
        }
    };
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    loaded.snapshot.keep_from(running);
    let mut difference = diff(running, &loaded.snapshot);
    difference.settings.retain(|setting| !setting.restart);
    let later: Vec<String> = diff(started, &loaded.snapshot)
        .settings
        .iter()
        .filter(|setting| setting.restart)
        .map(|setting| format!("{} {} -> {}", setting.name, setting.old, setting.new))
        .collect();
    let snapshot = Arc::new(loaded.snapshot);
    proxy.reload(&snapshot);
    tracing::info!("the configuration was reloaded: {difference}");
    if !later.is_empty() {
        tracing::warn!("this needs a restart: {}", later.join(", "));
    } else if started.listeners != snapshot.listeners {
        tracing::warn!("this needs a restart: the addresses that Weir listens on");
    }
    Some(snapshot)
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Drain,
    Stop,
    Reload,
    /// As the console's PAUSE and RESUME, but nobody waits for an answer.
    Pause(bool),
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hangup: Signal,
    user: [Signal; 2],
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hangup: signal(SignalKind::hangup())?,
            user: [signal(SignalKind::user_defined1())?, signal(SignalKind::user_defined2())?],
        })
    }

    async fn next(&mut self) -> Order {
        let [pause, resume] = &mut self.user;
        tokio::select! {
            _ = pause.recv() => Order::Pause(true),
            _ = resume.recv() => Order::Pause(false),
            _ = self.terminate.recv() => Order::Drain,
            _ = self.interrupt.recv() => Order::Drain,
            _ = self.quit.recv() => Order::Stop,
            _ = self.hangup.recv() => Order::Reload,
        }
    }
}
