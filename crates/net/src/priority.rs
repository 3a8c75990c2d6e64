//! A thread's priority in the kernel's scheduler, and how long it has waited for a core.
//!
//! Owns: the calls. Must not know: what the thread does.

use std::time::Duration;

/// The calling thread yields to all others of the machine that want a core: it gets about a tenth of what
/// each of these gets, and all that they leave. For work that may take its time. Only where threads have
/// priorities of their own (Linux).
pub fn lower() {
    #[cfg(target_os = "linux")]
    if rustix::process::getpriority_process(None).is_ok_and(|now| now < NICE) {
        // Everybody may do this; where it cannot be done, the work is done all the same.
        let _ = rustix::process::setpriority_process(None, NICE);
    }
}

/// Of 0 (everybody) to 19: each step is a quarter less.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Whether the calling thread, when it is woken, lets who is on its core finish the time slice (SCHED_BATCH).
/// It loses nothing of its share. A thread that the operator gave another policy keeps that. Linux only.
pub fn gather(gathers: bool) {
    #[cfg(target_os = "linux")]
    {
        let (from, to) = match gathers {
            true => (libc::SCHED_OTHER, libc::SCHED_BATCH),
            false => (libc::SCHED_BATCH, libc::SCHED_OTHER),
        };
        let none = libc::sched_param { sched_priority: 0 };
        // SAFETY: 0 is the calling thread; `none` lives over the call and is only read.
        unsafe {
            if libc::sched_getscheduler(0) == from {
                // Everybody may do this; where it cannot be done, nothing is lost.
                libc::sched_setscheduler(0, to, &raw const none);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = gathers;
}

/// What the calling thread has waited for a core, while it could have run. It says how busy the machine is,
/// other programs included. Only where the kernel tells (Linux, `/proc/<pid>/task/<tid>/schedstat`);
/// elsewhere nobody ever waits.
#[derive(Debug)]
pub struct CoreWait {
    #[cfg(target_os = "linux")]
    told: Option<std::fs::File>,
    seen_ns: u64,
}

impl CoreWait {
    /// Of the calling thread, from now on.
    pub fn of_this_thread() -> CoreWait {
        #[cfg(target_os = "linux")]
        let mut wait = CoreWait { told: std::fs::File::open("/proc/thread-self/schedstat").ok(), seen_ns: 0 };
        #[cfg(not(target_os = "linux"))]
        let mut wait = CoreWait { seen_ns: 0 };
        wait.take();
        wait
    }

    /// Since it was asked last. Some 2 us.
    pub fn take(&mut self) -> Duration {
        let now_ns = self.total_ns().unwrap_or(self.seen_ns);
        let before_ns = std::mem::replace(&mut self.seen_ns, now_ns);
        Duration::from_nanos(now_ns.saturating_sub(before_ns))
    }

    #[cfg(target_os = "linux")]
    fn total_ns(&self) -> Option<u64> {
        use std::os::unix::fs::FileExt;
        // Nanoseconds on a core, nanoseconds of waiting for one, time slices.
        let mut text = [0; 64];
        let len = self.told.as_ref()?.read_at(&mut text, 0).ok()?;
        std::str::from_utf8(&text[..len]).ok()?.split(' ').nth(1)?.parse().ok()
    }

    #[cfg(not(target_os = "linux"))]
    fn total_ns(&self) -> Option<u64> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    fn policy() -> i32 {
        // SAFETY: 0 is the calling thread.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn a_thread_gathers_and_stops_again() {
        let of_thread = std::thread::spawn(|| {
            let before = policy();
            super::gather(true);
            let gathers = policy();
            super::gather(false);
            (before, gathers, policy())
        });
        let (before, gathers, after) = of_thread.join().expect("nothing panics there");
        assert_eq!((before, gathers, after), (libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_OTHER));
    }

    /// Two threads on one core: each of them waits.
    #[test]
    fn who_shares_a_core_has_waited_for_it() {
        if !std::path::Path::new("/proc/thread-self/schedstat").exists() {
            // A kernel that does not tell: nobody ever waits.
            assert!(super::CoreWait::of_this_thread().take().is_zero());
            return;
        }
        let core = rustix::thread::sched_getcpu();
        let done = std::sync::atomic::AtomicU32::new(0);
        let busy = || {
            let mut one = rustix::thread::CpuSet::new();
            one.set(core);
            rustix::thread::sched_setaffinity(None, &one).expect("a core of ours");
            let mut wait = super::CoreWait::of_this_thread();
            while wait.take().is_zero() {
                std::hint::spin_loop();
            }
            // Who has waited goes on until the other one has, too.
            done.fetch_add(1, Relaxed);
            while done.load(Relaxed) < 2 {
                std::hint::spin_loop();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(busy);
            scope.spawn(busy);
        });
    }

    #[test]
    fn only_the_thread_itself_is_less_urgent() {
        let of = || rustix::process::getpriority_process(None).expect("a priority");
        let before = of();
        let lowered = std::thread::spawn(move || {
            super::lower();
            of()
        });
        assert_eq!(lowered.join().expect("no panic"), super::NICE.max(before));
        assert_eq!(of(), before);
    }
}
