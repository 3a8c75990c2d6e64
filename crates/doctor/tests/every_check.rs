//! One row for each check of the machine: a bad state, what it breaks, the text that cures it, and the good
//! state.
//!
//! `machine.rs` tests single checks in detail; this file ensures that each has a cure that can be copied.

mod fake;

use fake::{Fake, ask, bench, finding, local, other};
use weir_doctor::cure::sheets;
use weir_doctor::{Place, Question, State, checks};

struct Case {
    id: &'static str,
    /// Files that make a healthy machine a bad one for this question.
    bad: &'static [(&'static str, &'static str)],
    ask: fn() -> Question,
    state: State,
    /// A part of what somebody reads then.
    message: &'static str,
    /// Parts of the texts to copy.
    cures: &'static [(Place, &'static str)],
    /// The question that the healthy machine answers well. As a rule the same.
    good: fn() -> Question,
}

fn clients() -> Question {
    ask(10_000)
}

/// A MySQL on this machine with 40,000 threads.
fn many_threads() -> Question {
    local(ask(100_000), 40_000)
}

fn few_threads() -> Question {
    local(ask(100_000), 500)
}

const CASES: &[Case] = &[
    Case {
        id: "open_files",
        bad: &[(
            "/proc/self/limits",
            "Max open files            1024                 4096                 files\n",
        )],
        ask: || other(10_000),
        state: State::Blocker,
        message: "Can't create TCP/IP socket (24)",
        cures: &[
            (Place::Limits, "* hard nofile 1048576"),
            (Place::Systemd, "[Service]\nLimitNOFILE=1048576"),
            (Place::Docker, "--ulimit nofile=1048576:1048576"),
            (Place::Kubernetes, "LimitNOFILE=1048576 in containerd.service"),
        ],
        good: || other(10_000),
    },
    Case {
        id: "systemd_unit",
        bad: &[("/etc/systemd/system/weir.service", "[Service]\nLimitNOFILE=1048576\nMemoryMax=16M\n")],
        ask: clients,
        state: State::Blocker,
        message: "Memory cgroup out of memory: Killed process",
        cures: &[(Place::Systemd, "[Service]\nMemoryMax=")],
        good: clients,
    },
    Case {
        id: "file_max",
        bad: &[("/proc/sys/fs/file-nr", "1000\t0\t8000\n")],
        ask: clients,
        state: State::Blocker,
        message: "Too many open files in system (os error 23)",
        cures: &[(Place::Sysctl, "fs.file-max = 1048576"), (Place::Kubernetes, "sysctl -w fs.file-max=")],
        good: clients,
    },
    Case {
        id: "nr_open",
        bad: &[("/proc/sys/fs/nr_open", "8192\n")],
        ask: || other(10_000),
        state: State::Blocker,
        message: "cannot modify limit: Operation not permitted",
        cures: &[(Place::Sysctl, "fs.nr_open = 1048576")],
        good: || other(10_000),
    },
    Case {
        id: "local_ports",
        bad: &[("/proc/sys/net/ipv4/ip_local_port_range", "50000\t51000\n")],
        ask: || bench(10_000, "10.0.0.1:5432"),
        state: State::Blocker,
        message: "Cannot assign requested address (os error 99)",
        cures: &[
            (Place::Sysctl, "net.ipv4.ip_local_port_range = 4000 65000"),
            (Place::Docker, "--sysctl net.ipv4.ip_local_port_range=\"4000 65000\""),
            (Place::Kubernetes, "- name: net.ipv4.ip_local_port_range"),
        ],
        good: || bench(10_000, "10.0.0.1:5432"),
    },
    Case {
        id: "source_addresses",
        bad: &[("/proc/sys/net/ipv4/ip_local_port_range", "50000\t51000\n")],
        ask: clients,
        state: State::Warn,
        message: "Cannot assign requested address (99)",
        cures: &[(Place::Advice, "let clients come from 10 addresses")],
        good: clients,
    },
    Case {
        id: "reserved_ports",
        bad: &[("/proc/sys/net/ipv4/ip_local_port_range", "1024\t65535\n")],
        ask: clients,
        state: State::Warn,
        message: "Address already in use (os error 98)",
        cures: &[(Place::Sysctl, "net.ipv4.ip_local_reserved_ports = 5432,6033,6432")],
        good: clients,
    },
    Case {
        id: "accept_backlog",
        bad: &[
            ("/proc/sys/net/core/somaxconn", "128\n"),
            ("/proc/sys/net/ipv4/tcp_abort_on_overflow", "1\n"),
        ],
        ask: clients,
        state: State::Warn,
        message: "Can't connect to MySQL server on 'HOST' (110)",
        cures: &[
            (Place::Sysctl, "net.core.somaxconn = 32768\nnet.ipv4.tcp_abort_on_overflow = 0"),
            (Place::Docker, "--sysctl net.core.somaxconn=\"32768\""),
            (Place::Weir, "socket.listen_backlog = 32768"),
        ],
        good: clients,
    },
    Case {
        id: "syn_backlog",
        bad: &[("/proc/sys/net/ipv4/tcp_syncookies", "0\n")],
        ask: clients,
        state: State::Warn,
        message: "Possible SYN flooding on port N. Dropping request.",
        cures: &[(Place::Sysctl, "net.ipv4.tcp_syncookies = 1\nnet.ipv4.tcp_max_syn_backlog = 4096")],
        good: clients,
    },
    Case {
        id: "packet_backlog",
        bad: &[("/proc/net/softnet_stat", "000017c4 00000002 00000000\n")],
        ask: clients,
        state: State::Warn,
        message: "the packet is sent again",
        cures: &[(Place::Sysctl, "net.core.netdev_max_backlog = 300000")],
        good: clients,
    },
    Case {
        id: "listen_drops",
        bad: &[("/proc/net/netstat", "TcpExt: ListenOverflows ListenDrops\nTcpExt: 31 42\n")],
        ask: clients,
        state: State::Warn,
        message: "ETIMEDOUT (110)",
        cures: &[(Place::Sysctl, "net.core.somaxconn = 32768"), (Place::Advice, "ss -ltn")],
        good: clients,
    },
    Case {
        id: "memory",
        bad: &[("/proc/meminfo", "MemTotal: 64000 kB\nMemAvailable: 20000 kB\n")],
        ask: clients,
        state: State::Blocker,
        message: "Out of memory: Killed process",
        cures: &[(Place::Advice, "a larger machine or fewer connections")],
        good: clients,
    },
    Case {
        id: "cgroup_memory",
        bad: &[
            ("/sys/fs/cgroup/memory.max", "33554432\n"),
            ("/sys/fs/cgroup/memory.current", "16777216\n"),
            ("/sys/fs/cgroup/memory.stat", "inactive_file 0\n"),
        ],
        ask: clients,
        state: State::Blocker,
        message: "OOMKilled, exit code 137",
        cures: &[
            (Place::Systemd, "MemoryMax=256M"),
            (Place::Docker, "--memory 256m"),
            (Place::Kubernetes, "memory: 256Mi"),
        ],
        good: clients,
    },
    Case {
        id: "tcp_memory",
        bad: &[("/proc/sys/net/ipv4/tcp_mem", "1000\t2000\t4000\n")],
        ask: clients,
        state: State::Blocker,
        message: "TCP: out of memory -- consider tuning tcp_mem",
        cures: &[(Place::Sysctl, "net.ipv4.tcp_mem = 20040 30060 40080")],
        good: clients,
    },
    Case {
        id: "tcp_buffers",
        bad: &[("/proc/sys/net/ipv4/tcp_rmem", "4096\t16777216\t33554432\n")],
        ask: clients,
        state: State::Warn,
        message: "of kernel memory fill before senders wait",
        cures: &[(Place::Sysctl, "net.ipv4.tcp_rmem = 4096 87380 33554432")],
        good: clients,
    },
    Case {
        id: "tcp_options",
        bad: &[("/proc/sys/net/ipv4/tcp_sack", "0\n"), ("/proc/sys/net/ipv4/tcp_timestamps", "0\n")],
        ask: clients,
        state: State::Warn,
        message: "Cannot assign requested address (os error 99)",
        cures: &[(Place::Sysctl, "net.ipv4.tcp_sack = 1"), (Place::Sysctl, "net.ipv4.tcp_timestamps = 1")],
        good: clients,
    },
    Case {
        id: "pid_max",
        bad: &[("/proc/sys/kernel/pid_max", "32768\n")],
        ask: many_threads,
        state: State::Blocker,
        message: "Can't create a new thread (errno 11)",
        cures: &[(Place::Sysctl, "kernel.pid_max = 4194304")],
        good: many_threads,
    },
    Case {
        id: "threads_max",
        bad: &[("/proc/sys/kernel/threads-max", "700\n")],
        ask: few_threads,
        state: State::Blocker,
        message: "could not fork new process for connection: Resource temporarily unavailable",
        cures: &[(Place::Sysctl, "kernel.threads-max = 262144")],
        good: few_threads,
    },
    Case {
        id: "user_processes",
        bad: &[(
            "/proc/self/limits",
            "Max processes             100                  200                  processes\n",
        )],
        ask: few_threads,
        state: State::Blocker,
        message: "pthread_create() for thread #N failed. errno = 11",
        cures: &[
            (Place::Limits, "* soft nproc 65536"),
            (Place::Systemd, "LimitNPROC=65536"),
            (Place::Docker, "--ulimit nproc=65536:65536"),
        ],
        good: few_threads,
    },
    Case {
        id: "cgroup_pids",
        bad: &[("/sys/fs/cgroup/pids.max", "100\n"), ("/sys/fs/cgroup/pids.current", "90\n")],
        ask: few_threads,
        state: State::Blocker,
        message: "cgroup: fork rejected by pids controller",
        cures: &[
            (Place::Systemd, "TasksMax=65536"),
            (Place::Docker, "--pids-limit 65536"),
            (Place::Kubernetes, "podPidsLimit: 65536"),
        ],
        good: few_threads,
    },
    Case {
        id: "map_count",
        bad: &[("/proc/sys/vm/max_map_count", "4096\n")],
        ask: || other(10_000),
        state: State::Blocker,
        message: "pthread_create() for thread #32352 failed. errno = 12",
        cures: &[(Place::Sysctl, "vm.max_map_count = 262144")],
        good: || other(10_000),
    },
    Case {
        id: "overcommit",
        bad: &[
            ("/proc/sys/vm/overcommit_memory", "2\n"),
            (
                "/proc/meminfo",
                "MemAvailable: 9000000 kB\nCommitLimit: 4194304 kB\nCommitted_AS: 1048576 kB\n",
            ),
        ],
        ask: || other(1_000),
        state: State::Blocker,
        message: "Cannot allocate memory",
        cures: &[(Place::Sysctl, "vm.overcommit_memory = 0")],
        good: || other(1_000),
    },
    Case {
        id: "epoll_watches",
        bad: &[("/proc/sys/fs/epoll/max_user_watches", "8000\n")],
        ask: clients,
        state: State::Blocker,
        message: "No space left on device (os error 28)",
        cures: &[(Place::Sysctl, "fs.epoll.max_user_watches = 1048576")],
        good: clients,
    },
    Case {
        id: "conntrack",
        bad: &[
            ("/proc/sys/net/netfilter/nf_conntrack_max", "8000\n"),
            ("/proc/sys/net/netfilter/nf_conntrack_count", "500\n"),
        ],
        ask: clients,
        state: State::Blocker,
        message: "table full, dropping packet",
        cures: &[
            (Place::Sysctl, "net.netfilter.nf_conntrack_max = "),
            (Place::Advice, "nf_conntrack/parameters/hashsize"),
        ],
        good: clients,
    },
    Case {
        id: "time_wait",
        bad: &[("/proc/net/sockstat", "TCP: inuse 3 orphan 0 tw 20000 alloc 3 mem 0\n")],
        ask: clients,
        state: State::Warn,
        message: "TCP: time wait bucket table overflow",
        cures: &[
            (Place::Sysctl, "net.ipv4.tcp_tw_reuse = 1"),
            (Place::Advice, "connect to Weir by a Unix socket"),
        ],
        good: clients,
    },
    Case {
        id: "orphans",
        bad: &[("/proc/sys/net/ipv4/tcp_max_orphans", "8192\n")],
        ask: clients,
        state: State::Warn,
        message: "TCP: too many orphaned sockets",
        cures: &[(Place::Sysctl, "net.ipv4.tcp_max_orphans = 131072")],
        good: clients,
    },
    Case {
        id: "keepalive",
        bad: &[
            ("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established", "3600\n"),
            ("/proc/sys/net/netfilter/nf_conntrack_count", "10\n"),
        ],
        ask: clients,
        state: State::Warn,
        message: "Connection reset by peer, or the next query hangs",
        cures: &[
            (Place::Weir, "socket.tcp_keepidle = 300"),
            (Place::Sysctl, "net.ipv4.tcp_keepalive_time = 300"),
        ],
        good: clients,
    },
    Case {
        id: "cpu_quota",
        bad: &[("/sys/fs/cgroup/cpu.max", "50000 100000\n")],
        ask: clients,
        state: State::Warn,
        message: "the whole process is stopped until the period ends",
        cures: &[
            (Place::Systemd, "CPUQuota=200%"),
            (Place::Docker, "--cpus 2"),
            (Place::Kubernetes, "cpu: \"2\""),
            (Place::Weir, "workers = 1"),
        ],
        good: clients,
    },
    Case {
        id: "clock_source",
        bad: &[("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n")],
        ask: clients,
        state: State::Warn,
        message: "read_hpet, acpi_pm_read or clock_gettime near the top",
        cures: &[(Place::Advice, "echo tsc > /sys/devices/system/clocksource")],
        good: clients,
    },
    Case {
        id: "huge_pages",
        bad: &[("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")],
        ask: clients,
        state: State::Warn,
        message: "stalls of tens of milliseconds",
        cures: &[(Place::Advice, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")],
        good: clients,
    },
];

#[test]
fn each_check_has_its_row() {
    let ids = |rows: &mut dyn Iterator<Item = &'static str>| rows.collect::<Vec<_>>();
    assert_eq!(
        ids(&mut CASES.iter().map(|case| case.id)),
        ids(&mut checks::CHECKS.iter().map(|(id, _, _)| *id))
    );
}

#[test]
fn a_bad_machine_is_found_and_its_cure_can_be_copied() {
    for case in CASES {
        let fake = Fake::healthy();
        for (path, text) in case.bad {
            fake.put(path, text);
        }
        let found = finding(&fake, &(case.ask)(), case.id);
        assert_eq!(found.state, case.state, "{found:#?}");
        assert!(found.breaks.iter().any(|what| what.message.contains(case.message)), "{found:#?}");
        assert!(!found.read.is_empty(), "{found:#?}");
        let sheets = sheets(&found.cures, "weir.service");
        for (place, text) in case.cures {
            let sheet = sheets.iter().find(|sheet| sheet.place == *place);
            assert!(sheet.is_some_and(|sheet| sheet.text.contains(text)), "{}: {text}: {sheets:#?}", case.id);
        }
    }
}

#[test]
fn a_good_machine_needs_no_cure() {
    for case in CASES {
        let found = finding(&Fake::healthy(), &(case.good)(), case.id);
        assert_eq!((found.state, found.cures.len()), (State::Ok, 0), "{found:#?}");
    }
}
