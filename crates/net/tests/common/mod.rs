//! Shared helpers of this crate's tests.
#![allow(dead_code)]

use std::process::Command;
use std::time::{Duration, Instant};

use weir_net::{Event, Kernel, Net, Token};

/// Waits until an event for `token` comes. The bound only ends a test that has failed.
pub fn wait_for(kernel: &mut Kernel, token: Token, wanted: impl Fn(&Event) -> bool) -> Event {
    let mut events = Vec::new();
    let give_up = Instant::now() + Duration::from_secs(30);
    while Instant::now() < give_up {
        kernel.wait(&mut events, Some(Duration::from_secs(1))).expect("wait");
        if let Some(event) = events.iter().find(|event| event.token == token && wanted(event)) {
            return *event;
        }
    }
    panic!("no such event for {token:?}");
}

/// A directory of one test, short enough for socket paths and removed at its end.
pub struct Place(std::path::PathBuf);

impl Place {
    /// Makes the directory of the test called `name`.
    pub fn new(name: &str) -> Place {
        let place = std::env::temp_dir().join(format!("weir-net-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&place).expect("a directory for sockets");
        Place(place)
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Runs `body` in a process of its own whose limit of open files is `limit`: this test program, started anew
/// for the test called `name` alone.
pub fn with_limit(name: &str, limit: u64, body: impl FnOnce()) {
    const CHILD: &str = "WEIR_NET_TEST_CHILD";
    if std::env::var_os(CHILD).is_some_and(|child| child == name) {
        let lower = rustix::process::Rlimit { current: Some(limit), maximum: Some(limit) };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, lower).expect("lower the limit");
        return body();
    }
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .args(["--exact", name, "--nocapture", "--test-threads", "1"])
        .env(CHILD, name)
        .output()
        .expect("start this program");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(said.contains("1 passed"), "the child ran no test: {said}");
}
