//! What to do when a connection cannot be accepted because a resource is exhausted.
//!
//! Owns: when a listener may be tried again. Must not know: listeners, clocks.
//!
//! The connection that could not be accepted stays in the listener's queue, and an edge-triggered listener
//! does not announce it a second time. The worker must therefore try again when the pause is over: put
//! [`AcceptPause::until_ms`] into the timer wheel, then accept until `WouldBlock` as after an event.

use std::io;

use rustix::io::Errno;

/// The first pause, in milliseconds.
pub const FIRST_PAUSE_MS: u64 = 10;
/// The longest pause, in milliseconds.
pub const LONGEST_PAUSE_MS: u64 = 1_000;

/// Whether accepting (or opening a connection) failed because descriptors or memory have run out, in this
/// process or in the whole system: EMFILE, ENFILE, ENOBUFS, ENOMEM. Such an error passes; the listener is
/// well.
pub fn is_exhaustion(error: &io::Error) -> bool {
    let exhausted = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    error.raw_os_error().is_some_and(|code| exhausted.iter().any(|errno| errno.raw_os_error() == code))
}

/// The pauses of one listener: 10 ms, doubling up to a second for as long as it goes on.
#[derive(Debug, Clone, Default)]
pub struct AcceptPause {
    until_ms: Option<u64>,
    last_pause_ms: u64,
    failures: u64,
}

impl AcceptPause {
    /// Accepting has failed with [`is_exhaustion`]. Returns when to ask again, in milliseconds.
    pub fn begin(&mut self, now_ms: u64) -> u64 {
        self.failures += 1;
        self.last_pause_ms = (self.last_pause_ms * 2).clamp(FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
        let until_ms = now_ms.saturating_add(self.last_pause_ms);
        self.until_ms = Some(until_ms);
        until_ms
    }

    /// Whether the listener may be asked now. While it may not, its events are left alone; they are not
    /// lost, because the worker asks by itself when the pause is over.
    pub fn is_over(&self, now_ms: u64) -> bool {
        self.until_ms.is_none_or(|until_ms| now_ms >= until_ms)
    }

    /// When the pause ends, if there is one.
    pub fn until_ms(&self) -> Option<u64> {
        self.until_ms
    }

    /// The listener has been asked until `WouldBlock` or its bound: all is well again.
    pub fn end(&mut self) {
        self.until_ms = None;
        self.last_pause_ms = 0;
    }

    /// How often accepting has failed so, ever.
    pub fn failures(&self) -> u64 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_second_and_start_afresh_after_success() {
        let mut pause = AcceptPause::default();
        assert!(pause.is_over(0));
        let pauses: Vec<u64> = (0..9).map(|_| pause.begin(1_000) - 1_000).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]);
        assert!(!pause.is_over(1_999));
        assert!(pause.is_over(2_000));
        pause.end();
        assert!(pause.is_over(0));
        assert_eq!(pause.begin(5), 15);
        assert_eq!(pause.failures(), 10);
    }

    #[test]
    fn only_exhaustion_is_exhaustion() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            assert!(is_exhaustion(&io::Error::from(errno)));
        }
        for errno in [Errno::AGAIN, Errno::CONNABORTED, Errno::INVAL, Errno::BADF] {
            assert!(!is_exhaustion(&io::Error::from(errno)));
        }
        assert!(!is_exhaustion(&io::Error::other("no code")));
    }
}
