//! Counts clients and gives them seats from the first moment on.
//!
//! Owns: giving both up when a client does not stay. Must not know: why it does not.

use crate::berths::Berths;
use crate::context::Cx;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use weir_net::Net;

/// A client that is counted and has its seat, and gives up both unless it comes to stay, whatever it fails
/// by.
pub(super) struct Counted<'a> {
    clients: &'a AtomicUsize,
    berths: &'a Berths,
    worker: usize,
}

impl<'a> Counted<'a> {
    pub(super) fn new<N: Net>(cx: &Cx<'a, N>) -> Self {
        let (clients, berths) = (&cx.shared.clients, &*cx.shared.berths);
        let counted = Counted { clients, berths, worker: cx.worker };
        counted.clients.fetch_add(1, Relaxed);
        counted
    }

    pub(super) fn stays(self) {
        std::mem::forget(self);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.clients.fetch_sub(1, Relaxed);
        self.berths.leave_seat(self.worker);
    }
}
