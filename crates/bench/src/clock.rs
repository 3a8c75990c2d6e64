//! The clocks of a run: one monotonic clock for all threads, and each thread's own CPU time.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the monotonic clock, the one that [`weir_net::Net::now_ns`] reads too. Read afresh for
/// each event: the time at which a wait returned would flatter the last events of a busy turn.
#[inline]
pub fn now_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// CPU time of the calling thread, in microseconds.
pub fn thread_cpu_us() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime) / 1_000
}

/// Time that the calling thread had work and waited for a core, in microseconds; 0 where the system does not
/// say.
pub fn thread_wait_us() -> u64 {
    // Second field: Documentation/scheduler/sched-stats.rst.
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0) / 1_000
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
