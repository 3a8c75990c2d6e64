//! Messages of load generators and of applications' pools.

use super::Entry;

/// The entries.
pub const ENTRIES: &[Entry] = &[
    Entry {
        id: "sysbench_lua_memory",
        title: "sysbench has no memory for another Lua state",
        messages: &[
            "PANIC: unprotected error in call to Lua API (not enough memory)",
            "PANIC: not enough memory",
        ],
        symptom: "sysbench 1.0 ends between 2,000 and 8,000 threads while memory is free.",
        cause: "Every thread has a LuaJIT state, and without GC64 all of them share the low 1 to 2 GB of addresses.",
        cures: &[
            "several sysbench processes of 2,000 threads each",
            "a load generator without a thread for each connection: weir bench",
        ],
        checks: &["map_count", "pid_max"],
        signs: &["lua & not enough memory", "panic & not enough memory", "lual_newstate"],
        codes: &[],
    },
    Entry {
        id: "sysbench_threads",
        title: "sysbench's threads do not all connect in time",
        messages: &["FATAL: Worker threads failed to initialize within 30 seconds!"],
        symptom: "sysbench ends before it begins, from about a thousand threads on.",
        cause: "All threads connect at once; SYNs are dropped at the server's full accept queue and sent again, or logins are slow.",
        cures: &[
            "--thread-init-timeout=300",
            "the server's back_log and net.core.somaxconn",
            "weir bench --connect-rate",
        ],
        checks: &["accept_backlog", "listen_drops", "my_back_log"],
        signs: &["worker threads failed to initialize within"],
        codes: &[],
    },
    Entry {
        id: "application_pool",
        title: "the application's own pool is empty",
        messages: &[
            "HikariPool-1 - Connection is not available, request timed out after 30000ms.",
            "QueuePool limit of size 5 overflow 10 reached, connection timed out, timeout 30.00",
            "TimeoutError: ResourceRequest timed out",
            "Timed out fetching a new connection from the connection pool.",
        ],
        symptom: "Requests of one application fail while the database and the pooler are idle.",
        cause: "All connections of the pool inside the application are lent: slow statements, a leak, or a pool that is too small. It \
                never reached Weir or the database.",
        cures: &[
            "find the leak: leakDetectionThreshold (HikariCP), a statement that waits for something outside the database",
            "behind Weir the application's pool may be large: a client costs little",
        ],
        checks: &[],
        signs: &[
            "connection is not available request timed out",
            "queuepool limit of size",
            "resourcerequest timed out",
            "fetching a new connection from the connection pool",
        ],
        codes: &[],
    },
];
