//! A directory that looks like a machine.

// Each test file uses a part of it.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use weir_doctor::probe::Probe;
use weir_doctor::{Finding, Program, Question, Root, checks};
use weir_net::Target;

/// Files of a Linux 6 machine with 4 cores and 16 GB, on which nothing is in the way of 10,000 clients.
pub const HEALTHY: &[(&str, &str)] = &[
    ("/proc/self/limits", LIMITS),
    ("/proc/self/cgroup", "0::/\n"),
    ("/proc/self/mountinfo", "40 30 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
    ("/proc/sys/fs/file-nr", "1000\t0\t9223372036854775807\n"),
    ("/proc/sys/fs/nr_open", "1048576\n"),
    ("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
    ("/proc/sys/net/ipv4/ip_local_reserved_ports", "\n"),
    (
        "/proc/net/tcp",
        "  sl  local_address rem_address   st tx_queue rx_queue\n   0: 0100007F:1538 00000000:0000 0A 00000000:00000000\n",
    ),
    (
        "/proc/net/tcp6",
        "  sl  local_address rem_address   st\n   0: 00000000000000000000000000000000:0016 0:0000 0A 0\n",
    ),
    ("/proc/sys/net/core/somaxconn", "32768\n"),
    ("/proc/sys/net/ipv4/tcp_abort_on_overflow", "0\n"),
    ("/proc/sys/net/ipv4/tcp_max_syn_backlog", "4096\n"),
    ("/proc/sys/net/ipv4/tcp_syncookies", "1\n"),
    ("/proc/sys/net/core/netdev_max_backlog", "1000\n"),
    ("/proc/net/softnet_stat", "0000006c 00000000 00000000\n000017c4 00000000 00000000\n"),
    (
        "/proc/net/netstat",
        "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPReqQFullDrop TCPMemoryPressures\nTcpExt: 0 0 0 0 0\n",
    ),
    ("/proc/net/sockstat", "sockets: used 28\nTCP: inuse 3 orphan 0 tw 0 alloc 3 mem 0\n"),
    ("/proc/net/fib_trie", FIB),
    (
        "/proc/meminfo",
        "MemTotal:       16384000 kB\nMemAvailable:   12000000 kB\nCommitLimit: 8192000 kB\nCommitted_AS: 1000 kB\n",
    ),
    ("/proc/sys/net/ipv4/tcp_mem", "287898\t383867\t575796\n"),
    ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t33554432\n"),
    ("/proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n"),
    ("/proc/sys/net/ipv4/tcp_sack", "1\n"),
    ("/proc/sys/net/ipv4/tcp_timestamps", "1\n"),
    ("/proc/sys/net/ipv4/tcp_congestion_control", "cubic\n"),
    ("/proc/sys/net/ipv4/tcp_mtu_probing", "0\n"),
    ("/proc/sys/net/core/rmem_max", "212992\n"),
    ("/proc/sys/net/core/wmem_max", "212992\n"),
    ("/proc/loadavg", "0.00 0.01 0.05 1/200 4711\n"),
    ("/proc/sys/kernel/pid_max", "4194304\n"),
    ("/proc/sys/kernel/threads-max", "192730\n"),
    ("/proc/sys/vm/max_map_count", "65530\n"),
    ("/proc/sys/vm/overcommit_memory", "0\n"),
    ("/proc/sys/fs/epoll/max_user_watches", "5491511\n"),
    ("/proc/sys/net/ipv4/tcp_tw_reuse", "2\n"),
    ("/proc/sys/net/ipv4/tcp_max_tw_buckets", "131072\n"),
    ("/proc/sys/net/ipv4/tcp_max_orphans", "131072\n"),
    ("/proc/sys/net/ipv4/tcp_keepalive_time", "7200\n"),
    ("/proc/sys/net/ipv4/tcp_keepalive_probes", "9\n"),
    ("/proc/sys/net/ipv4/tcp_keepalive_intvl", "75\n"),
    ("/sys/devices/system/cpu/online", "0-3\n"),
    ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc kvm-clock\n"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
];

const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max stack size            8388608              unlimited            bytes     
Max processes             96365                96365                processes 
Max open files            524288               524288               files     
";

const FIB: &str = "\
Local:
  +-- 0.0.0.0/0 3 0 5
     +-- 127.0.0.0/8 2 0 2
           |-- 127.0.0.1
              /32 host LOCAL
     +-- 192.0.2.0/24 2 0 2
           |-- 192.0.2.0
              /24 link UNICAST
           |-- 192.0.2.2
              /32 host LOCAL
";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A machine in a directory of its own, removed at the end.
pub struct Fake {
    path: PathBuf,
    private_tables: bool,
    v1: bool,
}

impl Fake {
    /// A machine with no files at all.
    pub fn empty() -> Fake {
        let name = format!("fake-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Fake { path, private_tables: true, v1: false }
    }

    /// A machine on which nothing is in the way.
    pub fn healthy() -> Fake {
        let fake = Fake::empty();
        for (path, text) in HEALTHY {
            fake.put(path, text);
        }
        fake
    }

    /// The machine as the doctor reads it.
    pub fn root(&self) -> Root {
        Root::at(&self.path, self.private_tables)
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file.
    pub fn put(&self, path: &str, text: &str) {
        let place = self.path.join(path.trim_start_matches('/'));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }

    /// A kernel or container that lets no thread have its own descriptor table.
    pub fn without_private_tables(mut self) -> Fake {
        self.private_tables = false;
        self
    }

    fn limit(&self, name: &str, soft: u64, hard: u64) {
        let shown = |n: u64| if n == u64::MAX { "unlimited".to_owned() } else { n.to_string() };
        let lines = LIMITS.lines().map(|line| {
            if line.starts_with(name) {
                format!("{name:<26}{:<21}{:<21}x", shown(soft), shown(hard))
            } else {
                line.to_owned()
            }
        });
        self.put("/proc/self/limits", &lines.collect::<Vec<_>>().join("\n"));
    }

    /// Open files.
    pub fn open_files(&self, soft: u64, hard: u64) {
        self.limit("Max open files", soft, hard);
    }

    /// Processes of the user.
    pub fn processes(&self, soft: u64, hard: u64) {
        self.limit("Max processes", soft, hard);
    }

    /// Who listens.
    pub fn listen(&self, ports: &[u16]) {
        let mut text = "  sl  local_address rem_address   st\n".to_owned();
        for (n, port) in ports.iter().enumerate() {
            text.push_str(&format!("   {n}: 00000000:{port:04X} 00000000:0000 0A 00000000:00000000\n"));
        }
        self.put("/proc/net/tcp", &text);
    }

    /// The process is in the group /a/b of control groups version 2.
    pub fn cgroup_v2(self) -> Fake {
        self.put("/proc/self/cgroup", "0::/a/b\n");
        self.put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
        for group in ["/a", "/a/b"] {
            self.put(&format!("/sys/fs/cgroup{group}/memory.max"), "max\n");
            self.put(&format!("/sys/fs/cgroup{group}/pids.max"), "max\n");
        }
        self
    }

    /// The process is in the group /a/b of control groups version 1, beside an empty version 2.
    pub fn cgroup_v1(mut self) -> Fake {
        self.v1 = true;
        self.put("/proc/self/cgroup", "8:pids:/a/b\n4:memory:/a/b\n2:cpu,cpuacct:/a/b\n0::/\n");
        self.put(
            "/proc/self/mountinfo",
            "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
             35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:1 - cgroup cgroup rw,memory\n\
             39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
        );
        self.put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
        self.put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
        for group in ["/a", "/a/b"] {
            self.put(&format!("/sys/fs/cgroup/memory{group}/memory.limit_in_bytes"), "9223372036854771712\n");
            self.put(&format!("/sys/fs/cgroup/pids{group}/pids.max"), "max\n");
        }
        self
    }

    /// A memory limit of a group, what it uses, and what of it are file pages.
    pub fn memory_limit(&self, group: &str, max: Option<u64>, used: u64, inactive: u64) {
        let (folder, limit, usage, stat) = if self.v1 {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        } else {
            ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")
        };
        let none = if self.v1 { "9223372036854771712" } else { "max" };
        let max = max.map_or(none.to_owned(), |max| max.to_string());
        self.put(&format!("{folder}{group}/{limit}"), &max);
        self.put(&format!("{folder}{group}/{usage}"), &used.to_string());
        self.put(&format!("{folder}{group}/memory.stat"), &format!("anon 5\n{stat} {inactive}\n"));
    }

    /// A thread limit of a group and how many it has.
    pub fn pids_limit(&self, group: &str, max: Option<u64>, used: u64) {
        let folder = if self.v1 { "/sys/fs/cgroup/pids" } else { "/sys/fs/cgroup" };
        self.put(&format!("{folder}{group}/pids.max"), &max.map_or("max".to_owned(), |max| max.to_string()));
        self.put(&format!("{folder}{group}/pids.current"), &used.to_string());
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        // What is left is in the target directory.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Weir with 20 servers elsewhere, for so many clients.
pub fn ask(clients: u64) -> Question {
    Question { workers: 2, ..Question::serve(clients, 20) }
}

/// A program with a thread and a descriptor for each connection.
pub fn other(clients: u64) -> Question {
    Question { program: Program::Other, ..ask(clients) }
}

/// `weir bench` with so many connections to there.
pub fn bench(clients: u64, target: &str) -> Question {
    Question { workers: 2, ..Question::bench(clients, vec![Target::Tcp(target.parse().unwrap())]) }
}

/// A MySQL server on this machine behind Weir, or direct.
pub fn local(mut ask: Question, servers: u64) -> Question {
    ask.servers = servers;
    ask.targets = vec![Target::Tcp("127.0.0.1:3306".parse().unwrap())];
    ask
}

/// What one check says.
pub fn finding(fake: &Fake, ask: &Question, id: &str) -> Finding {
    let root = fake.root();
    let (_, _, check) = checks::CHECKS.iter().find(|(name, _, _)| *name == id).unwrap();
    check(&Probe::new(&root, ask))
}
