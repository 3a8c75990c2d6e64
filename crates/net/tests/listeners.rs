//! Binding: what works, what is refused, and the messages for the user.

mod common;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

use common::{Place, wait_for};
use weir_net::listener::{ListenOptions, bind};
use weir_net::socket::SocketOptions;
use weir_net::{Kernel, Net, Peer, Target, Token};

fn any_tcp() -> Target {
    Target::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn address(target: &Target) -> SocketAddr {
    match target {
        Target::Tcp(address) => *address,
        Target::Unix(path) => panic!("{} is no TCP address", path.display()),
    }
}

#[test]
fn one_port_for_all_workers() {
    let bound = bind(&any_tcp(), 4, &ListenOptions::default()).expect("bind");
    assert_eq!(bound.listeners.len(), 4);
    assert_ne!(address(&bound.local).port(), 0);
    for listener in &bound.listeners {
        assert_eq!(listener.local().expect("address"), bound.local);
    }
    // Every connection reaches exactly one of them.
    let mut kernel = Kernel::alone(SocketOptions::default()).expect("kernel");
    let clients: Vec<_> =
        (0..100).map(|_| TcpStream::connect(address(&bound.local)).expect("connect")).collect();
    let mut accepted = 0;
    for listener in &bound.listeners {
        while kernel.accept(listener).is_ok() {
            accepted += 1;
        }
    }
    assert_eq!(accepted, clients.len());
}

#[test]
fn a_taken_port_is_refused_even_if_it_could_be_shared() {
    let first = bind(&any_tcp(), 2, &ListenOptions::default()).expect("bind");
    for workers in [1, 2] {
        let error = bind(&first.local, workers, &ListenOptions::default()).expect_err("taken");
        assert_eq!(error.source.kind(), ErrorKind::AddrInUse);
        let text = error.to_string();
        assert!(text.contains(&address(&first.local).to_string()), "{text}");
        assert!(text.contains("stop it, or choose another port"), "{text}");
    }
    // A Weir that takes over from another one may share it.
    if cfg!(target_os = "linux") {
        let options = ListenOptions { share_port: true, ..ListenOptions::default() };
        bind(&first.local, 2, &options).expect("shared on purpose");
    }
    // And when the first has gone, the port is free at once, though old connections linger.
    let local = first.local.clone();
    let client = TcpStream::connect(address(&local)).expect("connect");
    let mut kernel = Kernel::alone(SocketOptions::default()).expect("kernel");
    let served = first.listeners.iter().find_map(|listener| kernel.accept(listener).ok());
    drop((served.expect("accepted"), first));
    drop(client);
    bind(&local, 2, &ListenOptions::default()).expect("free again");
}

#[test]
fn an_address_of_another_machine_is_explained() {
    let target = Target::Tcp("192.0.2.1:6432".parse().expect("an address"));
    let error = bind(&target, 1, &ListenOptions::default()).expect_err("not ours");
    assert_eq!(error.source.kind(), ErrorKind::AddrNotAvailable);
    assert!(error.to_string().contains("192.0.2.1:6432"), "{error}");
    assert!(error.to_string().contains("No interface"), "{error}");
}

#[test]
fn both_families_listen_on_one_port() {
    let four = bind(&Target::Tcp("0.0.0.0:0".parse().expect("an address")), 1, &ListenOptions::default())
        .expect("bind");
    let port = address(&four.local).port();
    match bind(&Target::Tcp(SocketAddr::from(([0; 8], port))), 1, &ListenOptions::default()) {
        Ok(six) => drop(TcpStream::connect(address(&six.local)).expect("connect")),
        Err(error) => assert!(
            matches!(error.source.kind(), ErrorKind::AddrNotAvailable | ErrorKind::Unsupported)
                || error.source.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error()),
            "only a machine without IPv6 may refuse: {error}"
        ),
    }
}

#[test]
fn a_socket_file_of_a_dead_process_is_replaced() {
    let place = Place::new("stale");
    let path = place.path("stale");
    let target = Target::Unix(path.clone());
    let first = bind(&target, 1, &ListenOptions::default()).expect("bind");
    let old_file = first.file.clone().expect("a file");
    drop(first.listeners);
    assert!(path.exists(), "a process that dies leaves it behind");
    let second = bind(&target, 1, &ListenOptions::default()).expect("nobody answers there");
    UnixStream::connect(&path).expect("the new one answers");
    drop(second);
    // The old process's guard leaves a new file alone. (The other one is kept so that its number is not used
    // again at once.)
    std::fs::rename(&path, place.path("aside")).expect("rename");
    let second = bind(&target, 3, &ListenOptions::default()).expect("the name is free");
    assert!(!old_file.remove() && path.exists());
    assert!(second.file.expect("a file").remove() && !path.exists());
}

#[test]
fn a_socket_file_that_answers_stays() {
    let place = Place::new("alive");
    let path = place.path("alive");
    let target = Target::Unix(path.clone());
    // Its queue of connections is full: that counts as an answer too.
    let options = ListenOptions { backlog: 0, ..ListenOptions::default() };
    let first = bind(&target, 1, &options).expect("bind");
    for _ in 0..5 {
        let error = bind(&target, 1, &ListenOptions::default()).expect_err("in use");
        assert_eq!(error.source.kind(), ErrorKind::AddrInUse);
        assert!(error.to_string().contains("Another program answers there"), "{error}");
    }
    assert!(path.exists());
    drop(first);
}

#[test]
fn what_is_no_socket_is_never_removed() {
    let place = Place::new("precious");
    let path = place.path("precious");
    std::fs::write(&path, "data").expect("write");
    let error = bind(&Target::Unix(path.clone()), 1, &ListenOptions::default()).expect_err("a file");
    assert!(error.to_string().contains("not a socket"), "{error}");
    assert_eq!(std::fs::read(&path).expect("still there"), b"data");
    // Nor through a link.
    let link = place.path("link");
    std::os::unix::fs::symlink(&path, &link).expect("link");
    bind(&Target::Unix(link.clone()), 1, &ListenOptions::default()).expect_err("a link");
    assert!(link.exists() && path.exists());
}

#[test]
fn unix_errors_are_explained() {
    let place = Place::new("errors");
    let missing = place.path("no/such/directory");
    let error = bind(&Target::Unix(missing), 1, &ListenOptions::default()).expect_err("no directory");
    assert!(error.to_string().contains("Create the directory"), "{error}");
    let long = place.path(&"x".repeat(120));
    let error = bind(&Target::Unix(long), 1, &ListenOptions::default()).expect_err("too long");
    assert!(error.to_string().contains("at most 107 bytes"), "{error}");
    let error = bind(&Target::Unix("".into()), 1, &ListenOptions::default()).expect_err("empty");
    assert_eq!(error.source.kind(), ErrorKind::InvalidInput);
}

#[cfg(target_os = "linux")]
#[test]
fn abstract_sockets_have_names_but_no_files() {
    let target = Target::Unix(format!("@weir-net-test-{}", std::process::id()).into());
    let bound = bind(&target, 2, &ListenOptions::default()).expect("bind");
    assert_eq!(bound.file, None);
    assert_eq!(bound.listeners[1].local().expect("address"), target);
    let error = bind(&target, 1, &ListenOptions::default()).expect_err("in use");
    assert_eq!(error.source.kind(), ErrorKind::AddrInUse);

    let mut kernel = Kernel::alone(SocketOptions::default()).expect("kernel");
    kernel.watch_listener(&bound.listeners[1], Token(1)).expect("watch");
    let client = kernel.connect(&target).expect("connect");
    assert!(kernel.connect_outcome(&client).expect("a Unix connect ends at once"));
    wait_for(&mut kernel, Token(1), |event| event.readable);
    let (_, peer) = kernel.accept(&bound.listeners[1]).expect("accept");
    assert_eq!(peer, Peer::Unix { uid: Some(rustix::process::geteuid().as_raw()) });
    drop(bound);
    let error = kernel.connect(&target).expect_err("gone");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_full_unix_queue_refuses_at_once() {
    let place = Place::new("queue");
    let path = place.path("queue");
    let options = ListenOptions { backlog: 1, ..ListenOptions::default() };
    let bound = bind(&Target::Unix(path), 1, &options).expect("bind");
    let mut kernel = Kernel::alone(SocketOptions::default()).expect("kernel");
    let mut waiting = Vec::new();
    let error = loop {
        match kernel.connect(&bound.local) {
            Ok(socket) => waiting.push(socket),
            Err(error) => break error,
        }
        assert!(waiting.len() < 1_000, "the queue has no end");
    };
    if cfg!(target_os = "linux") {
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
    kernel.accept(&bound.listeners[0]).expect("accept");
    kernel.connect(&bound.local).expect("room again");
}

#[test]
fn an_adopted_listener_serves() {
    let inherited = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("bind");
    let local = inherited.local_addr().expect("address");
    let listener = weir_net::listener::Listener::adopt(inherited.into()).expect("adopt");
    let mut kernel = Kernel::alone(SocketOptions::default()).expect("kernel");
    let error = kernel.accept(&listener).expect_err("non-blocking now");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    kernel.watch_listener(&listener, Token(1)).expect("watch");
    let client = TcpStream::connect(local).expect("connect");
    wait_for(&mut kernel, Token(1), |event| event.readable);
    let (_, peer) = kernel.accept(&listener).expect("accept");
    assert_eq!(peer, Peer::Tcp(client.local_addr().expect("address")));
}

#[test]
#[cfg(target_os = "linux")]
fn a_port_of_an_outgoing_connection_is_told_from_a_listener() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let listening = Target::Tcp(listener.local_addr().expect("its address"));
    let error = bind(&listening, 1, &ListenOptions::default()).expect_err("in use");
    assert!(error.cure.starts_with("Another program listens there"), "{error}");

    let outgoing =
        std::net::TcpStream::connect(listener.local_addr().expect("its address")).expect("it listens");
    let going_out = Target::Tcp(outgoing.local_addr().expect("its address"));
    let error = bind(&going_out, 1, &ListenOptions::default()).expect_err("in use");
    assert_eq!(error.source.kind(), ErrorKind::AddrInUse);
    assert!(error.cure.starts_with("No program listens there"), "{error}");
}
