//! Every check of the machine on a /proc and /sys made of files: enough, too little, unreadable.

mod fake;

use fake::{Fake, ask, bench, finding, local, other};
use weir_doctor::probe::Probe;
use weir_doctor::{Cure, Finding, Question, State, checks};

fn state(fake: &Fake, ask: &Question, id: &str) -> State {
    finding(fake, ask, id).state
}

/// The text a finding's cures have for sysctl.d.
fn sysctls(finding: &Finding) -> Vec<String> {
    let of = |cure: &Cure| match cure {
        Cure::Sysctl { key, value } => Some(format!("{key}={value}")),
        _ => None,
    };
    finding.cures.iter().filter_map(of).collect()
}

/// Where the first thing breaks.
fn breaks_at(finding: &Finding) -> u64 {
    finding.breaks.iter().filter_map(|what| what.connections).min().unwrap()
}

#[test]
fn a_healthy_machine_has_nothing_in_the_way_of_ten_thousand_clients() {
    let fake = Fake::healthy();
    let root = fake.root();
    for finding in checks::run(&Probe::new(&root, &ask(10_000))) {
        assert_eq!(finding.state, State::Ok, "{finding:?}");
        assert!(finding.cures.is_empty(), "{finding:?}");
    }
}

#[test]
fn an_empty_machine_is_unknown_and_never_good() {
    // No unit and no firewall are facts; all else could not be read.
    let fake = Fake::empty();
    let root = fake.root();
    for finding in checks::run(&Probe::new(&root, &ask(10_000))) {
        let wanted = if finding.id == "systemd_unit" { State::Ok } else { State::Unknown };
        assert_eq!(finding.state, wanted, "{finding:?}");
    }
}

#[test]
fn rubbish_is_unknown_and_no_panic() {
    let fake = Fake::healthy();
    let root = fake.root();
    for (path, good) in fake::HEALTHY {
        for rubbish in
            ["", "x", "-1", "18446744073709551615", "1 18446744073709551615 1", "\u{0}\u{fe0f}", "9 8 7 6"]
        {
            fake.put(path, rubbish);
            for ask in [ask(100_000), other(u64::MAX), bench(u64::MAX, "10.0.0.1:5432")] {
                let findings = checks::run(&Probe::new(&root, &ask));
                assert_eq!(findings.len(), checks::CHECKS.len());
            }
        }
        fake.put(path, good);
    }
}

#[test]
fn open_files_of_weir_are_those_of_several_tables() {
    let fake = Fake::healthy();
    fake.open_files(1024, 20_000);
    let found = finding(&fake, &ask(100_000), "open_files");
    assert_eq!(found.state, State::Ok);
    assert!(found.summary.contains("Weir starts up to 5 more workers"), "{}", found.summary);
    // Other programs on the same limit would stop here.
    assert_eq!(breaks_at(&found), 19_970);
    // Where the kernel or the container forbids it, the limit holds.
    let shared = Fake::healthy().without_private_tables();
    shared.open_files(1024, 20_000);
    let found = finding(&shared, &ask(100_000), "open_files");
    assert_eq!(found.state, State::Blocker);
    assert_eq!(found.cures, [Cure::OpenFiles(1 << 20)]);
    assert!(found.breaks[0].message.contains("Too many open files (os error 24)"));
    assert!(breaks_at(&found) < 20_000);
}

#[test]
fn open_files_of_other_programs_end_at_the_soft_limit() {
    let fake = Fake::healthy();
    fake.open_files(1024, 524_288);
    assert_eq!(state(&fake, &ask(10_000), "open_files"), State::Ok);
    let found = finding(&fake, &other(10_000), "open_files");
    assert_eq!((found.state, breaks_at(&found)), (State::Blocker, 994));
    assert!(found.summary.contains("ulimit -n 524288"), "{}", found.summary);
    fake.open_files(u64::MAX, u64::MAX);
    assert_eq!(state(&fake, &other(10_000_000), "open_files"), State::Ok);
}

#[test]
fn the_unit_counts_and_not_the_shell() {
    let fake = Fake::healthy().without_private_tables();
    fake.put("/usr/lib/systemd/system/weir.service", "[Service]\nLimitNOFILE=1048576\n");
    let found = finding(&fake, &ask(100_000), "systemd_unit");
    assert_eq!((found.state, found.read[0].value.as_str()), (State::Ok, "LimitNOFILE=1048576"));
    // A drop-in wins; one of the same name in /etc hides that of /usr/lib.
    fake.put("/usr/lib/systemd/system/weir.service.d/10.conf", "[Service]\nLimitNOFILE=200000\n");
    fake.put(
        "/etc/systemd/system/weir.service.d/10.conf",
        "[Service]\n# LimitNOFILE=1\nLimitNOFILE=1024:8192\nMemoryMax=64M\n",
    );
    let found = finding(&fake, &ask(100_000), "systemd_unit");
    assert_eq!((found.state, found.read[0].value.as_str()), (State::Blocker, "LimitNOFILE=1024:8192"));
    assert_eq!(found.read[0].source, "/etc/systemd/system/weir.service.d/10.conf");
    assert!(found.summary.contains("MemoryMax=64M"), "{}", found.summary);
    // Without a word in the unit the manager's default counts.
    let plain = Fake::healthy().without_private_tables();
    plain.put("/etc/systemd/system/weir.service", "[Service]\nExecStart=/usr/bin/weir\n");
    assert_eq!(state(&plain, &ask(100_000), "systemd_unit"), State::Ok);
    plain.put("/etc/systemd/system.conf", "[Manager]\nDefaultLimitNOFILE=4096\n");
    assert_eq!(state(&plain, &ask(100_000), "systemd_unit"), State::Blocker);
    plain.put("/etc/systemd/system/weir.service", "[Service]\nLimitNOFILE=many\n");
    assert_eq!(state(&plain, &ask(100_000), "systemd_unit"), State::Unknown);
}

#[test]
fn open_files_of_the_machine() {
    let fake = Fake::healthy();
    fake.put("/proc/sys/fs/file-nr", "50000\t0\t120000");
    assert_eq!(state(&fake, &ask(10_000), "file_max"), State::Ok);
    assert_eq!(state(&fake, &ask(40_000), "file_max"), State::Warn);
    let found = finding(&fake, &ask(100_000), "file_max");
    assert_eq!((found.state, breaks_at(&found)), (State::Blocker, 70_000));
    assert_eq!(sysctls(&found), ["fs.file-max=1048576"]);
    // Both ends of a load on loopback are files of this machine.
    assert_eq!(state(&fake, &bench(36_000, "127.0.0.1:5432"), "file_max"), State::Blocker);
    assert_eq!(state(&fake, &bench(36_000, "10.0.0.1:5432"), "file_max"), State::Warn);
}

#[test]
fn nr_open_bounds_one_table_only() {
    let fake = Fake::healthy();
    assert_eq!(state(&fake, &ask(2_000_000), "nr_open"), State::Ok);
    assert_eq!(state(&fake, &other(2_000_000), "nr_open"), State::Blocker);
    let found = finding(&Fake::healthy().without_private_tables(), &ask(2_000_000), "nr_open");
    assert_eq!((found.state, sysctls(&found)), (State::Blocker, vec!["fs.nr_open=2097152".to_owned()]));
}

#[test]
fn local_ports_bound_connections_to_one_address() {
    let fake = Fake::healthy();
    fake.listen(&[6432, 5432, 36_111]);
    assert_eq!(state(&fake, &bench(14_000, "10.0.0.1:5432"), "local_ports"), State::Ok);
    assert_eq!(state(&fake, &bench(20_000, "10.0.0.1:5432"), "local_ports"), State::Warn);
    let found = finding(&fake, &bench(30_000, "10.0.0.1:5432"), "local_ports");
    assert_eq!((found.state, breaks_at(&found)), (State::Blocker, 28_232));
    // The widened range swallows the listening ports, so they are reserved with it.
    assert_eq!(
        sysctls(&found),
        ["net.ipv4.ip_local_port_range=4000 65000", "net.ipv4.ip_local_reserved_ports=5432,6432,36111"]
    );
    assert!(found.breaks[0].message.contains("(99)"));
    // Two targets share the load.
    let mut two = bench(40_000, "10.0.0.1:5432");
    two.targets.push(weir_net::Target::Tcp("10.0.0.2:5432".parse().unwrap()));
    assert_eq!(state(&fake, &two, "local_ports"), State::Warn);
}

#[test]
fn weir_bench_spreads_over_loopback_addresses_and_others_do_not() {
    let fake = Fake::healthy();
    assert_eq!(state(&fake, &bench(1_000_000, "127.0.0.1:5432"), "local_ports"), State::Ok);
    assert_eq!(state(&fake, &bench(8_000_000, "127.0.0.1:5432"), "local_ports"), State::Blocker);
    let mut sysbench = other(40_000);
    sysbench.targets = vec![weir_net::Target::Tcp("127.0.0.1:5432".parse().unwrap())];
    assert_eq!(state(&fake, &sysbench, "local_ports"), State::Blocker);
    // A Unix socket takes no ports.
    let mut socket = other(1_000_000);
    socket.targets = vec![weir_net::Target::Unix("/run/mysqld/mysqld.sock".into())];
    assert_eq!(state(&fake, &socket, "local_ports"), State::Ok);
}

#[test]
fn reserved_ports_are_not_given_out() {
    let fake = Fake::healthy();
    fake.put("/proc/sys/net/ipv4/ip_local_reserved_ports", "32768-59999");
    let found = finding(&fake, &bench(2000, "10.0.0.1:5432"), "local_ports");
    assert_eq!((found.state, breaks_at(&found)), (State::Blocker, 1000));
}

#[test]
fn clients_behind_one_address() {
    let fake = Fake::healthy();
    assert_eq!(state(&fake, &ask(28_232), "source_addresses"), State::Ok);
    let found = finding(&fake, &ask(100_000), "source_addresses");
    assert_eq!(found.state, State::Warn);
    assert!(found.summary.contains("4 source addresses"), "{}", found.summary);
    let found = finding(&fake, &bench(100_000, "10.0.0.1:5432"), "source_addresses");
    assert!(found.read[0].value.contains("192.0.2.2") && !found.read[0].value.contains("127."), "{found:?}");
}

#[test]
fn listening_ports_inside_the_range_are_named() {
    let fake = Fake::healthy();
    fake.listen(&[22, 40_000, 50_000]);
    let found = finding(&fake, &ask(10_000), "reserved_ports");
    assert_eq!(found.state, State::Warn);
    assert!(found.summary.ends_with("40000, 50000"), "{}", found.summary);
    assert_eq!(sysctls(&found), ["net.ipv4.ip_local_reserved_ports=40000,50000"]);
    assert!(found.breaks[0].message.contains("Address already in use"));
    // What is reserved already stays, and one that is covered is no finding.
    fake.put("/proc/sys/net/ipv4/ip_local_reserved_ports", "39990-40010,60000");
    let found = finding(&fake, &ask(10_000), "reserved_ports");
    assert_eq!(sysctls(&found), ["net.ipv4.ip_local_reserved_ports=39990-40010,50000,60000"]);
    // A range that somebody has widened over Weir's own port, which nobody listens on yet.
    fake.listen(&[22]);
    fake.put("/proc/sys/net/ipv4/ip_local_port_range", "1024 65535");
    let found = finding(&fake, &ask(10_000), "reserved_ports");
    assert!(found.summary.ends_with("6033, 6432"), "{}", found.summary);
}

#[test]
fn connections_behind_the_listeners_are_not_read() {
    let fake = Fake::healthy();
    // An established connection from a port inside the range is no listener.
    fake.put("/proc/net/tcp", "  sl  local_address rem_address   st\n   0: 0100007F:0016 00000000:0000 0A\n   1: 0100007F:C350 0100007F:1F90 01\n");
    assert_eq!(state(&fake, &ask(10_000), "reserved_ports"), State::Ok);
}

#[test]
fn the_accept_backlog_holds_a_storm() {
    let fake = Fake::healthy();
    fake.put("/proc/sys/net/core/somaxconn", "128");
    let found = finding(&fake, &ask(10_000), "accept_backlog");
    assert_eq!((found.state, breaks_at(&found)), (State::Warn, 256));
    assert!(found.summary.contains("somaxconn cuts"), "{}", found.summary);
    assert_eq!(sysctls(&found), ["net.core.somaxconn=32768"]);
    assert_eq!(state(&fake, &ask(100), "accept_backlog"), State::Ok);
    assert_eq!(state(&fake, &bench(100_000, "10.0.0.1:1"), "accept_backlog"), State::Ok);
    // Each worker of the start has a listener; those of further descriptor tables have none.
    fake.put("/proc/sys/net/core/somaxconn", "4096");
    let found = finding(&fake, &ask(100_000), "accept_backlog");
    assert_eq!((found.state, breaks_at(&found)), (State::Warn, 8192));
    fake.open_files(20_000, 20_000);
    assert_eq!(breaks_at(&finding(&fake, &ask(100_000), "accept_backlog")), 8192);
    fake.put("/proc/sys/net/ipv4/tcp_abort_on_overflow", "1");
    let found = finding(&fake, &ask(1000), "accept_backlog");
    assert_eq!(found.state, State::Warn);
    assert!(found.breaks.iter().any(|what| what.message.contains("reset by peer")), "{found:?}");
}

#[test]
fn half_open_connections_without_cookies() {
    let fake = Fake::healthy();
    fake.put("/proc/sys/net/ipv4/tcp_syncookies", "0");
    fake.put("/proc/sys/net/ipv4/tcp_max_syn_backlog", "1024");
    let found = finding(&fake, &ask(10_000), "syn_backlog");
    assert_eq!((found.state, breaks_at(&found)), (State::Warn, 768));
    assert_eq!(sysctls(&found), ["net.ipv4.tcp_syncookies=1", "net.ipv4.tcp_max_syn_backlog=4096"]);
    assert_eq!(state(&fake, &ask(700), "syn_backlog"), State::Ok);
}

#[test]
fn dropped_packets_and_full_queues_are_counted() {
    let fake = Fake::healthy();
    fake.put("/proc/net/softnet_stat", "000017c4 00000002 0\n0000ffff 00000010 0\n");
    let found = finding(&fake, &ask(10_000), "packet_backlog");
    assert_eq!((found.state, found.read[0].value.as_str()), (State::Warn, "dropped 18"));
    // 256 of 40 million: nobody has noticed.
    fake.put("/proc/net/softnet_stat", "02625a00 00000100 0\n");
    let found = finding(&fake, &ask(10_000), "packet_backlog");
    assert_eq!(found.state, State::Ok);
    assert!(found.summary.starts_with("256 of 40,000,000 packets"), "{}", found.summary);
    fake.put(
        "/proc/net/netstat",
        "TcpExt: ListenOverflows ListenDrops TCPMemoryPressures\nTcpExt: 31 42 0\n",
    );
    let found = finding(&fake, &ask(10_000), "listen_drops");
    assert_eq!(found.state, State::Warn);
    assert!(
        found.summary.contains("31 connections met") && found.summary.contains("42 SYNs"),
        "{}",
        found.summary
    );
}

#[test]
fn what_does_not_matter_is_said_with_the_reason() {
    let found = finding(&Fake::healthy(), &ask(10_000), "tcp_options");
    assert_eq!(found.state, State::Ok);
    for part in [
        "rmem_max and wmem_max do not matter",
        "congestion control, cubic",
        "tcp_mtu_probing is off",
        "tcp_sack and",
    ] {
        assert!(found.summary.contains(part), "{part}: {}", found.summary);
    }
}

#[test]
fn memory_of_sockets_is_the_kernels() {
    let fake = Fake::healthy();
    fake.put("/proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 600000 kB\n");
    assert_eq!(state(&fake, &ask(10_000), "memory"), State::Ok);
    // 4 kB for each client that is elsewhere; 7.5 kB for a pair within the machine.
    assert_eq!(state(&fake, &ask(100_000), "memory"), State::Warn);
    assert_eq!(state(&fake, &ask(160_000), "memory"), State::Blocker);
    assert_eq!(state(&fake, &bench(90_000, "127.0.0.1:1"), "memory"), State::Blocker);
    // A thread for each connection costs far more.
    assert_eq!(state(&fake, &other(10_000), "memory"), State::Blocker);
}

#[test]
fn memory_limits_of_control_groups_of_both_versions() {
    for fake in [Fake::healthy().cgroup_v2(), Fake::healthy().cgroup_v1()] {
        assert_eq!(state(&fake, &ask(10_000), "cgroup_memory"), State::Ok);
        // The parent's limit is tighter than the group's own; what the kernel would drop does not count as
        // used.
        fake.memory_limit("/a/b", None, 300 << 20, 0);
        fake.memory_limit("/a", Some(512 << 20), 400 << 20, 200 << 20);
        let found = finding(&fake, &ask(50_000), "cgroup_memory");
        assert_eq!(found.state, State::Warn, "{found:?}");
        assert!(found.read[0].source.contains("/a/memory."), "{found:?}");
        let found = finding(&fake, &ask(100_000), "cgroup_memory");
        assert_eq!(found.state, State::Blocker, "{found:?}");
        assert_eq!(found.cures, [Cure::Memory(1 << 30)]);
    }
}

#[test]
fn buffers_of_all_sockets_together() {
    let fake = Fake::healthy();
    fake.put("/proc/sys/net/ipv4/tcp_mem", "50000 100000 200000");
    assert_eq!(state(&fake, &ask(40_000), "tcp_memory"), State::Ok);
    assert_eq!(state(&fake, &ask(60_000), "tcp_memory"), State::Warn);
    let found = finding(&fake, &ask(110_000), "tcp_memory");
    assert_eq!((found.state, breaks_at(&found)), (State::Blocker, 100_000));
    assert_eq!(sysctls(&found), ["net.ipv4.tcp_mem=220040 330060 440080"]);
    fake.put("/proc/net/netstat", "TcpExt: TCPMemoryPressures\nTcpExt: 3\n");
    assert_eq!(state(&fake, &ask(1000), "tcp_memory"), State::Warn);
    fake.put("/proc/sys/net/ipv4/tcp_rmem", "4096 16777216 33554432");
    let found = finding(&fake, &ask(1000), "tcp_buffers");
    assert_eq!(
        (found.state, sysctls(&found)),
        (State::Warn, vec!["net.ipv4.tcp_rmem=4096 87380 33554432".to_owned()])
    );
}

#[test]
fn threads_are_few_for_weir_and_many_for_others() {
    let fake = Fake::healthy();
    fake.put("/proc/sys/kernel/pid_max", "32768");
    fake.put("/proc/loadavg", "0.1 0.1 0.1 2/768 4711");
    assert_eq!(state(&fake, &ask(100_000), "pid_max"), State::Ok);
    // sysbench, or MySQL on this machine with direct clients.
    let found = finding(&fake, &other(32_001), "pid_max");
    assert_eq!((found.state, breaks_at(&found)), (State::Blocker, 32_000));
    assert_eq!(sysctls(&found), ["kernel.pid_max=4194304"]);
    assert!(found.breaks[0].message.contains("ERROR 1135 (HY000): Can't create a new thread (errno 11)"));
    // The database behind Weir is on this machine: its threads count, not the clients.
    assert_eq!(state(&fake, &local(ask(100_000), 500), "pid_max"), State::Ok);
    assert_eq!(state(&fake, &local(ask(100_000), 20_000), "pid_max"), State::Warn);
    assert_eq!(state(&fake, &local(ask(100_000), 40_000), "pid_max"), State::Blocker);
    fake.put("/proc/sys/kernel/threads-max", "1000");
    assert_eq!(state(&fake, &local(ask(100_000), 500), "threads_max"), State::Blocker);
    fake.processes(100, 200);
    assert_eq!(state(&fake, &ask(100_000), "user_processes"), State::Ok);
    assert_eq!(state(&fake, &local(ask(100_000), 500), "user_processes"), State::Blocker);
}

#[test]
fn thread_limits_of_control_groups_of_both_versions() {
    for fake in [Fake::healthy().cgroup_v2(), Fake::healthy().cgroup_v1()] {
        fake.pids_limit("/a/b", Some(12_288), 88);
        assert_eq!(state(&fake, &ask(100_000), "cgroup_pids"), State::Ok);
        let found = finding(&fake, &other(12_201), "cgroup_pids");
        assert_eq!((found.state, breaks_at(&found)), (State::Blocker, 12_200));
        assert!(found.cures.iter().any(|cure| matches!(cure, Cure::Tasks(n) if *n >= 24_000)), "{found:?}");
        assert!(
            found.breaks.iter().any(|what| what.message.contains("fork rejected by pids controller")),
            "{found:?}"
        );
        fake.pids_limit("/a", Some(50), 40);
        assert_eq!(state(&fake, &ask(100_000), "cgroup_pids"), State::Blocker);
    }
}

#[test]
fn two_maps_for_each_thread() {
    let fake = Fake::healthy();
    assert_eq!(state(&fake, &ask(1_000_000), "map_count"), State::Ok);
    let found = finding(&fake, &other(33_000), "map_count");
    // 65,530 maps: the published end at thread 32,352 is within a hundred of it.
    assert_eq!((found.state, breaks_at(&found)), (State::Blocker, 32_365));
    assert_eq!(sysctls(&found), ["vm.max_map_count=262144"]);
}

#[test]
fn strict_accounting_counts_whole_stacks() {
    let fake = Fake::healthy();
    assert_eq!(state(&fake, &other(10_000), "overcommit"), State::Ok);
    fake.put("/proc/sys/vm/overcommit_memory", "2");
    fake.put(
        "/proc/meminfo",
        "MemAvailable: 9000000 kB\nCommitLimit: 4194304 kB\nCommitted_AS: 1048576 kB\n",
    );
    assert_eq!(state(&fake, &ask(10_000), "overcommit"), State::Ok);
    let found = finding(&fake, &other(1000), "overcommit");
    assert_eq!((found.state, breaks_at(&found)), (State::Blocker, 384));
}

#[test]
fn watched_sockets_of_a_user() {
    let fake = Fake::healthy();
    fake.put("/proc/sys/fs/epoll/max_user_watches", "100000");
    assert_eq!(state(&fake, &ask(40_000), "epoll_watches"), State::Ok);
    assert_eq!(state(&fake, &ask(60_000), "epoll_watches"), State::Warn);
    let found = finding(&fake, &ask(100_000), "epoll_watches");
    assert_eq!((found.state, breaks_at(&found)), (State::Blocker, 100_000));
    assert!(found.breaks[0].message.contains("No space left on device"));
}

#[test]
fn the_firewall_has_a_place_for_every_connection() {
    let fake = Fake::healthy();
    assert_eq!(state(&fake, &ask(1_000_000), "conntrack"), State::Ok, "no firewall");
    fake.put("/proc/sys/net/netfilter/nf_conntrack_max", "65536");
    fake.put("/proc/sys/net/netfilter/nf_conntrack_count", "0");
    assert_eq!(state(&fake, &ask(50_000), "conntrack"), State::Ok);
    // Loaded, but nothing is tracked.
    assert_eq!(state(&fake, &ask(100_000), "conntrack"), State::Warn);
    fake.put("/proc/sys/net/netfilter/nf_conntrack_count", "5536");
    assert_eq!(state(&fake, &ask(20_000), "conntrack"), State::Ok);
    assert_eq!(state(&fake, &ask(50_000), "conntrack"), State::Warn);
    let found = finding(&fake, &ask(100_000), "conntrack");
    assert_eq!((found.state, breaks_at(&found)), (State::Blocker, 60_000));
    assert_eq!(sysctls(&found), ["net.netfilter.nf_conntrack_max=262144"]);
    assert!(found.breaks[0].message.contains("table full, dropping packet"));
}

#[test]
fn closed_connections_hold_their_ports() {
    let fake = Fake::healthy();
    fake.put("/proc/net/sockstat", "TCP: inuse 3 orphan 0 tw 20000 alloc 3 mem 0\n");
    let found = finding(&fake, &ask(10_000), "time_wait");
    assert_eq!((found.state, sysctls(&found)), (State::Warn, vec!["net.ipv4.tcp_tw_reuse=1".to_owned()]));
    assert!(found.summary.contains("470 new connections a second"), "{}", found.summary);
    fake.put("/proc/sys/net/ipv4/tcp_max_orphans", "8192");
    let found = finding(&fake, &ask(10_000), "orphans");
    assert_eq!((found.state, breaks_at(&found)), (State::Warn, 8192));
    assert_eq!(state(&fake, &ask(1000), "orphans"), State::Ok);
}

#[test]
fn keepalives_come_before_the_firewall_forgets() {
    let fake = Fake::healthy();
    fake.put("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established", "3600");
    // Nothing is tracked: what the firewall would forget does not matter.
    assert_eq!(state(&fake, &ask(10_000), "keepalive"), State::Ok);
    fake.put("/proc/sys/net/netfilter/nf_conntrack_count", "10");
    let found = finding(&fake, &ask(10_000), "keepalive");
    assert_eq!(found.state, State::Warn);
    assert!(found.cures.contains(&Cure::weir("socket.tcp_keepidle = 300")), "{found:?}");
    fake.put("/proc/sys/net/ipv4/tcp_keepalive_time", "300");
    assert_eq!(state(&fake, &ask(10_000), "keepalive"), State::Ok);
}

#[test]
fn cpu_quotas_of_both_versions() {
    let v2 = Fake::healthy().cgroup_v2();
    let v1 = Fake::healthy().cgroup_v1();
    assert_eq!(state(&v2, &ask(1000), "cpu_quota"), State::Ok);
    assert_eq!(state(&v1, &ask(1000), "cpu_quota"), State::Ok);
    v2.put("/sys/fs/cgroup/a/b/cpu.max", "50000 100000");
    v1.put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "50000");
    for fake in [&v2, &v1] {
        let found = finding(fake, &ask(1000), "cpu_quota");
        assert_eq!(found.state, State::Warn, "{found:?}");
        assert!(found.summary.contains("0.5 of 4 cores"), "{}", found.summary);
        assert!(found.breaks[0].message.contains("100 ms"), "{found:?}");
    }
    v2.put("/sys/fs/cgroup/a/b/cpu.max", "200000 100000");
    assert_eq!(state(&v2, &ask(1000), "cpu_quota"), State::Ok);
    v2.put("/sys/fs/cgroup/a/b/cpu.stat", "nr_periods 1000\nnr_throttled 30\n");
    assert_eq!(state(&v2, &ask(1000), "cpu_quota"), State::Warn);
}

#[test]
fn slow_clocks_and_huge_pages() {
    let fake = Fake::healthy();
    let clock = "/sys/devices/system/clocksource/clocksource0/";
    fake.put(&format!("{clock}current_clocksource"), "hpet\n");
    fake.put(&format!("{clock}available_clocksource"), "hpet acpi_pm tsc\n");
    let found = finding(&fake, &ask(1000), "clock_source");
    assert_eq!(found.state, State::Warn);
    assert!(found.cures[0].short().contains("echo tsc >"), "{found:?}");
    fake.put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    assert_eq!(state(&fake, &ask(1000), "huge_pages"), State::Warn);
}

#[test]
fn cures_for_weir_name_settings_that_exist() {
    // All findings of a machine where nothing is enough.
    let fake = Fake::healthy().cgroup_v2();
    fake.put("/proc/sys/net/core/somaxconn", "16");
    fake.put("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established", "60");
    fake.put("/proc/sys/net/netfilter/nf_conntrack_count", "10");
    fake.put("/sys/fs/cgroup/a/b/cpu.max", "50000 100000");
    let root = fake.root();
    let mut seen = 0;
    for finding in checks::run(&Probe::new(&root, &ask(100_000))) {
        for cure in &finding.cures {
            if let Cure::Line { place: weir_doctor::Place::Weir, text } = cure {
                let key = text.split(" = ").next().unwrap();
                assert!(weir_config::registry::by_full_name(key).is_some(), "{key}");
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 3);
}

#[test]
fn a_running_process_has_its_own_limits() {
    let fake = Fake::healthy();
    fake.put(
        "/proc/4711/limits",
        "Max open files            1024                 4096                 files\n",
    );
    fake.put("/proc/4711/cgroup", "0::/a/b\n");
    let mut ask = other(10_000);
    assert_eq!(state(&fake, &ask, "open_files"), State::Ok);
    ask.pid = Some(4711);
    let found = finding(&fake, &ask, "open_files");
    assert_eq!((found.state, found.read[0].source.as_str()), (State::Blocker, "/proc/4711/limits"));
    ask.pid = Some(1);
    assert_eq!(state(&fake, &ask, "open_files"), State::Unknown);
}

#[test]
fn quick_is_quiet_when_it_is_enough_and_for_few_clients() {
    use weir_doctor::quick_at;
    let fake = Fake::healthy().without_private_tables();
    assert!(quick_at(&fake.root(), &ask(10_000)).is_empty());
    fake.open_files(600, 600);
    fake.put("/sys/kernel/mm/transparent_hugepage/enabled", "[always]");
    assert!(quick_at(&fake.root(), &ask(900)).is_empty(), "few clients");
    let found = quick_at(&fake.root(), &ask(10_000));
    // What is not about the numbers is not said at a start.
    assert_eq!(found.iter().map(|finding| finding.id).collect::<Vec<_>>(), ["open_files"]);
    assert!(
        found[0].line().starts_with("open_files: the limit of 600 is too small for 10020 connections"),
        "{}",
        found[0].line()
    );
}

#[test]
fn this_machine_can_be_examined() {
    let root = weir_doctor::Root::real();
    let findings = checks::run(&Probe::new(&root, &ask(100)));
    assert_eq!(findings.len(), checks::CHECKS.len());
    if cfg!(target_os = "linux") {
        assert!(findings.iter().any(|finding| finding.id == "open_files" && finding.state != State::Unknown));
    }
    assert!(weir_doctor::quick(10, 10).is_empty());
}
