//! How urgent a thread is to the kernel's scheduler.
//!
//! Owns: the call. Must not know: what the thread does.

/// The calling thread yields to all others of the machine that want a core: it gets about a tenth of what each of these
/// gets, and all that they leave. For work that may take its time. Only where threads have priorities of their own (Linux).
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
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
