//! What a hall borrows from its worker while it handles one event.

use crate::berths::Berths;
use crate::console::Hatch;
use crate::crypto::Submit;
use crate::greeting::Greetings;
use crate::ids::{Key, Numbers};
use crate::mail::{Mail, WingMail};
use crate::panics::Panics;
use crate::pool::Registry;
use crate::settings::Settings;
use crate::wing::{MySql, Postgres, Wing};
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use weir_auth::job::RsaKey;
use weir_net::Net;
use weir_net::wheel::Wheel;
use weir_session::Machines;
use weir_session::Protocol;
use weir_wire::limits;

/// Fills a buffer with random bytes.
pub type Random = Box<dyn Fn(&mut [u8]) + Send + Sync>;

/// Puts a message into the mailbox of the worker with this number.
pub type Post<N> = Box<dyn Fn(usize, Mail<N>) + Send + Sync>;

/// What all workers and the control thread share. Nothing in it makes a worker wait.
pub struct Shared<N: Net> {
    /// The latest settings. A worker has its own copy of the pointer, renewed by [`Mail::Reload`].
    pub settings: ArcSwap<Settings>,
    /// All pools of PostgreSQL.
    pub postgres: Registry<<Postgres as Machines>::Welcomes>,
    /// All pools of MySQL.
    pub mysql: Registry<<MySql as Machines>::Welcomes>,
    /// What is counted.
    pub metrics: Arc<weir_metrics::Metrics>,
    /// How often a thread that serves has panicked.
    pub panics: Arc<Panics>,
    /// Which workers there are, and how many clients each has.
    pub berths: Arc<Berths>,
    /// Puts a message into a worker's mailbox.
    pub post: Post<N>,
    /// Starts slow work whose result comes by mail. Given back: too much of it waits already. The work of
    /// servers is always taken.
    pub submit: Submit,
    /// Fills a buffer with random bytes.
    pub random: Random,
    /// By which clients are known outside.
    pub numbers: Numbers,
    /// Clients connected, in the whole process.
    pub clients: AtomicUsize,
    /// Those of them who have proved who they are.
    pub proven: AtomicUsize,
    /// The RSA key for MySQL passwords without TLS.
    pub rsa: Option<Arc<RsaKey>>,
    /// How MySQL clients are greeted.
    pub greetings: Arc<Greetings>,
    /// What the administration console needs.
    pub console: Hatch,
}

/// Where the result of slow work goes.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    /// Worker.
    pub worker: usize,
    /// Which protocol it speaks.
    pub protocol: Protocol,
    /// Client, server or canceller.
    pub kind: crate::ids::Kind,
    /// Which one.
    pub key: crate::ids::Key,
}

/// What a hall borrows from its worker.
pub struct Cx<'a, N: Net> {
    /// The kernel, or what stands for it.
    pub net: &'a mut N,
    /// The worker's timers.
    pub wheel: &'a mut Wheel,
    /// The worker's read buffer.
    pub scratch: &'a mut Vec<u8>,
    /// What all workers share.
    pub shared: &'a Shared<N>,
    /// The settings in force.
    pub settings: &'a Settings,
    /// This worker's number.
    pub worker: usize,
}

impl<N: Net> Cx<'_, N> {
    /// Now, in nanoseconds of the process's monotonic clock.
    pub fn now_ns(&self) -> u64 {
        self.net.now_ns()
    }

    /// Now, in milliseconds of the same clock.
    pub fn now_ms(&self) -> u64 {
        self.net.now_ns() / 1_000_000
    }

    /// The number of a client of this worker.
    pub fn number(&self, client: Key) -> u32 {
        self.shared.numbers.of(self.worker, client)
    }

    /// Fresh random bytes.
    pub fn nonce(&self) -> [u8; 64] {
        let mut nonce = [0; 64];
        (self.shared.random)(&mut nonce);
        nonce
    }

    /// Puts a message into another worker's mailbox.
    pub fn post<W: Wing>(&self, worker: usize, mail: WingMail<W, N>) {
        (self.shared.post)(worker, W::mail(mail));
    }

    /// Clients that there may be, and connections with those of them that are refused or log in.
    pub fn most_clients(&self) -> (usize, usize) {
        let (most, bound) = (self.settings.max_client_conn, self.shared.berths.bound());
        let refused = limits::REFUSED_CONNECTIONS.min(bound / 8);
        (most.min(bound - refused), most.saturating_add(limits::REFUSED_CONNECTIONS).min(bound))
    }

    /// Clients connected, in the whole process.
    pub fn client_total(&self) -> usize {
        self.shared.clients.load(Relaxed)
    }
}
