//! Everything that workers share, made in the right order before the first of them starts.
//!
//! Owns: the order. With private descriptor tables ([`crate::tables`]) wakes and lanes must exist before any
//! table splits off, listeners must reach their worker and stay open nowhere else, and each thread must split
//! before it opens anything. A [`Fleet`] and its [`Seat`]s make it so. A new table is a copy of that of the
//! thread which starts the new one, so workers that begin later are started by a thread whose table has
//! stayed small: the [`Nursery`]. Must not know: what a worker does.
//!
//! ```no_run
//! use weir_net::{fleet::Fleet, listener, mailbox, socket::SocketOptions, tables};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! tables::raise_limit();
//! let plan = tables::plan(30_000, 2);
//! let target = weir_net::Target::Tcp(([127, 0, 0, 1], 6432).into());
//! let bound = listener::bind(&target, plan.workers, &listener::ListenOptions::default())?;
//! let fleet = Fleet::new(plan, &[], SocketOptions::default())?;
//! for (worker, listener) in bound.listeners.into_iter().enumerate() {
//!     let (address, mailbox) = mailbox::<String>(fleet.wake(worker), 1024);
//!     let seat = fleet.seat(worker, vec![listener])?;
//!     std::thread::spawn(move || -> std::io::Result<()> {
//!         let (kernel, listeners) = seat.enter()?;
//!         // ... serve with `kernel`, `listeners` and `mailbox`.
//! #       drop((kernel, listeners, mailbox));
//!         Ok(())
//!     });
//! #   drop(address);
//! }
//! # Ok(()) }
//! ```

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, mpsc};

use crate::handover::{Exchange, Parcel};
use crate::kernel::Kernel;
use crate::listener::Listener;
use crate::socket::SocketOptions;
use crate::tables::{self, TablePlan};
use crate::wake::KernelWake;

/// What the workers of a process share. Keep it until they have ended: the numbers of its descriptors must
/// stay taken in the first thread's table for as long as workers use them in theirs.
#[derive(Debug)]
pub struct Fleet {
    plan: TablePlan,
    wakes: Vec<Arc<KernelWake>>,
    control_wake: Arc<KernelWake>,
    exchange: Exchange,
    /// Numbers that mean the same in every table.
    keep: Arc<[RawFd]>,
    options: SocketOptions,
}

impl Fleet {
    /// Makes wakes and lanes for as many workers as there can be by the plan. `keep` are further descriptors
    /// that workers use with private tables, such as an open log file; they must stay open as long as the
    /// fleet. `options` are for connections that workers start. Call it from the thread whose table holds
    /// them, before workers start.
    ///
    /// # Errors
    /// The system's error when it has no descriptors left (`EMFILE`, `ENFILE`).
    pub fn new(plan: TablePlan, keep: &[BorrowedFd<'_>], options: SocketOptions) -> io::Result<Fleet> {
        let wakes: Vec<Arc<KernelWake>> =
            (0..plan.most).map(|_| KernelWake::new().map(Arc::new)).collect::<io::Result<_>>()?;
        let control_wake = Arc::new(KernelWake::new()?);
        let exchange = exchange(&plan, &wakes)?;
        let mut numbers: Vec<RawFd> = keep.iter().map(AsRawFd::as_raw_fd).collect();
        numbers.extend(wakes.iter().chain([&control_wake]).flat_map(|wake| wake.descriptors()));
        numbers.extend(exchange.descriptors());
        Ok(Fleet { plan, wakes, control_wake, exchange, keep: numbers.into(), options })
    }

    /// How the tables are laid out.
    pub fn plan(&self) -> &TablePlan {
        &self.plan
    }

    /// What wakes worker number `worker`: for its mailboxes. Panics if there is no such worker.
    pub fn wake(&self, worker: usize) -> Arc<KernelWake> {
        Arc::clone(&self.wakes[worker])
    }

    /// What wakes the control thread: for its mailbox. That thread watches the wake's descriptor in whatever
    /// event loop it has, and calls [`KernelWake::clear`] if that loop is level-triggered. Workers with
    /// private tables must have no other way to wake it (see [`crate::wake`]).
    pub fn control_wake(&self) -> Arc<KernelWake> {
        Arc::clone(&self.control_wake)
    }

    /// Where connections and listeners are packed for the workers, for the thread that keeps the fleet.
    pub fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// What the thread of worker number `worker` needs. With private tables the listeners are on their way to
    /// that worker from now on and open nowhere else.
    ///
    /// # Errors
    /// As [`crate::handover::Exchange::pack`]: a listener that cannot be sent to its worker.
    pub fn seat(&self, worker: usize, listeners: Vec<Listener>) -> io::Result<Seat> {
        let give = |listener: Listener| {
            if !self.plan.private {
                return Ok(Given::Listener(listener));
            }
            self.exchange.pack(listener.into(), worker).map(Given::Packed).map_err(|(_, error)| error)
        };
        let listeners = listeners.into_iter().map(give).collect::<io::Result<_>>()?;
        let private = self.plan.private || worker >= self.plan.workers;
        Ok(Seat { listeners, ..self.empty_seat(worker, private) })
    }

    fn empty_seat(&self, worker: usize, private: bool) -> Seat {
        Seat {
            worker,
            private,
            wake: self.wake(worker),
            exchange: self.exchange.clone(),
            keep: Arc::clone(&self.keep),
            options: self.options.clone(),
            listeners: Vec::new(),
        }
    }

    /// Starts the thread that starts workers beyond the first. It calls `begin` with the seat of each worker
    /// that is ordered; `begin` starts a thread that takes it. To be called before listeners and connections
    /// are opened: what is open now takes a place in every table that comes from there.
    ///
    /// # Errors
    /// The system's error when it starts no thread (`EAGAIN`) or gives it no table of its own (`EPERM`,
    /// `ENOMEM`).
    pub fn nursery(&self, mut begin: impl FnMut(usize, Seat) + Send + 'static) -> io::Result<Nursery> {
        let seats: Vec<Seat> =
            (self.plan.workers..self.plan.most).map(|worker| self.empty_seat(worker, true)).collect();
        let (orders, ordered) = mpsc::channel::<usize>();
        let (ready, is_ready) = mpsc::channel();
        let (first, keep) = (self.plan.workers, Arc::clone(&self.keep));
        std::thread::Builder::new().name("nursery".into()).spawn(move || {
            let entered = tables::enter_private(&keep).map(drop);
            let failed = entered.is_err();
            if ready.send(entered).is_err() || failed {
                return;
            }
            for worker in ordered {
                if let Some(seat) = worker.checked_sub(first).and_then(|beyond| seats.get(beyond)) {
                    begin(worker, seat.again());
                }
            }
        })?;
        is_ready.recv().unwrap_or_else(|_| Err(io::Error::other("the nursery has ended")))?;
        Ok(Nursery { orders })
    }
}

/// Where workers beyond the first are ordered. Its thread ends when this is dropped.
#[derive(Debug)]
pub struct Nursery {
    orders: mpsc::Sender<usize>,
}

impl Nursery {
    /// Worker number `worker` is to begin. Does not wait, and opens no descriptor.
    pub fn order(&self, worker: usize) {
        // Fails only when that thread has panicked: then there is nobody to tell.
        let _ = self.orders.send(worker);
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn exchange(plan: &TablePlan, wakes: &[Arc<KernelWake>]) -> io::Result<Exchange> {
    if !plan.private && !plan.may_grow() {
        return Ok(Exchange::shared());
    }
    let wakes: Vec<Arc<dyn crate::wake::Wake>> = wakes.iter().map(|wake| Arc::clone(wake) as _).collect();
    Exchange::private(&wakes, if plan.private { 0 } else { plan.workers })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn exchange(_plan: &TablePlan, _wakes: &[Arc<KernelWake>]) -> io::Result<Exchange> {
    Ok(Exchange::shared())
}

/// A listener on its way to its worker.
#[derive(Debug)]
enum Given {
    Listener(Listener),
    Packed(Parcel),
}

/// The place of one worker, to be taken by its thread.
#[derive(Debug)]
pub struct Seat {
    worker: usize,
    private: bool,
    wake: Arc<KernelWake>,
    exchange: Exchange,
    keep: Arc<[RawFd]>,
    options: SocketOptions,
    listeners: Vec<Given>,
}

impl Seat {
    /// Another one for the same worker, when it begins again. Without listeners.
    fn again(&self) -> Seat {
        Seat {
            worker: self.worker,
            private: self.private,
            wake: Arc::clone(&self.wake),
            exchange: self.exchange.clone(),
            keep: Arc::clone(&self.keep),
            options: self.options.clone(),
            listeners: Vec::new(),
        }
    }

    /// Makes the calling thread the worker: its own descriptor table if that is the plan, its event loop, its
    /// listeners (not watched yet). Call it first thing in the thread; with private tables the thread must
    /// not own any descriptor, because those that the fleet does not know stop working here.
    ///
    /// # Errors
    /// The system's error: no private table (`EPERM` where a container forbids it), no event loop, or a
    /// listener that did not arrive.
    pub fn enter(self) -> io::Result<(Kernel, Vec<Listener>)> {
        if self.private {
            tables::enter_private(&self.keep)?;
        }
        let mut kernel = Kernel::new(self.wake, self.exchange, self.worker, self.options)?;
        let mut listeners = Vec::with_capacity(self.listeners.len());
        for given in self.listeners {
            listeners.push(match given {
                Given::Listener(listener) => listener,
                Given::Packed(parcel) => kernel.unpack_listener(parcel)?,
            });
        }
        Ok((kernel, listeners))
    }
}
