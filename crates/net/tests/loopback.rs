//! The kernel's `Net` over real loopback sockets.

mod common;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use common::{Place, wait_for};
use weir_net::listener::{Bound, ListenOptions, bind};
use weir_net::socket::{Keepalive, Socket, SocketOptions};
use weir_net::{Kernel, Net, Peer, Target, Token, Wake, mailbox};

const LISTENER: Token = Token(1);
const CLIENT: Token = Token(2);
const SERVER: Token = Token(3);

fn any_tcp() -> Target {
    Target::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn would_block<T: std::fmt::Debug>(outcome: io::Result<T>) {
    assert_eq!(outcome.expect_err("nothing is there").kind(), io::ErrorKind::WouldBlock);
}

/// A connected pair on one event loop: the connecting and the accepted end, both registered.
fn pair(kernel: &mut Kernel, bound: &Bound) -> (Socket, Socket, Peer) {
    kernel.watch_listener(&bound.listeners[0], LISTENER).expect("watch");
    let client = kernel.connect(&bound.local).expect("connect");
    kernel.register(&client, CLIENT).expect("register");
    let (server, peer) = loop {
        match kernel.accept(&bound.listeners[0]) {
            Ok(accepted) => break accepted,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                wait_for(kernel, LISTENER, |event| event.readable);
            }
        }
    };
    kernel.register(&server, SERVER).expect("register");
    while !kernel.connect_outcome(&client).expect("connected") {
        wait_for(kernel, CLIENT, |event| event.writable);
    }
    (client, server, peer)
}

#[test]
fn tcp_end_to_end() {
    let options = SocketOptions {
        keepalive: Some(Keepalive { idle_s: 77, interval_s: 7, count: 3 }),
        user_timeout_ms: 12_000,
        ..SocketOptions::default()
    };
    let listen = ListenOptions { sockets: options.clone(), ..ListenOptions::default() };
    let mut kernel = Kernel::alone(options).expect("kernel");
    let bound = bind(&any_tcp(), 1, &listen).expect("bind");
    let (client, server, peer) = pair(&mut kernel, &bound);

    assert!(matches!(peer, Peer::Tcp(address) if address.ip().is_loopback()));
    for socket in [&client, &server] {
        let socket = socket2::SockRef::from(socket);
        assert!(socket.tcp_nodelay().expect("option"), "both sides send small packets at once");
        assert!(socket.keepalive().expect("option"));
        assert_eq!(socket.tcp_keepalive_time().expect("option"), Duration::from_secs(77));
        assert!(socket.nonblocking().expect("flags"));
    }
    for descriptor in [&client, &server] {
        let flags = rustix::io::fcntl_getfd(descriptor).expect("flags");
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    let mut buf = [0; 64];
    would_block(kernel.recv(&server, &mut buf));
    assert_eq!(kernel.send(&client, b"question").expect("send"), 8);
    wait_for(&mut kernel, SERVER, |event| event.readable && !event.read_closed);
    assert_eq!(kernel.recv(&server, &mut buf).expect("recv"), 8);
    assert_eq!(&buf[..8], b"question");

    // Bytes and the end of the stream at once: the event says so, and both can be read.
    kernel.send(&server, b"answer").expect("send");
    kernel.shutdown_write(&server).expect("shutdown");
    let event = wait_for(&mut kernel, CLIENT, |event| event.read_closed);
    assert!(event.readable && !event.hangup);
    assert_eq!(kernel.recv(&client, &mut buf).expect("recv"), 6);
    assert_eq!(kernel.recv(&client, &mut buf).expect("the end"), 0);
    // The other direction still works.
    kernel.send(&client, b"bye").expect("send");
    wait_for(&mut kernel, SERVER, |event| event.readable);
    assert_eq!(kernel.recv(&server, &mut buf).expect("recv"), 3);
}

#[test]
fn an_aborted_connection_is_an_error_and_never_a_signal() {
    let mut kernel = Kernel::alone(SocketOptions::default()).expect("kernel");
    let bound = bind(&any_tcp(), 1, &ListenOptions::default()).expect("bind");
    let (client, server, _) = pair(&mut kernel, &bound);
    kernel.close(server, true);
    wait_for(&mut kernel, CLIENT, |event| {
        event.hangup && event.readable && event.writable && event.read_closed
    });
    let error = kernel.recv(&client, &mut [0; 8]).expect_err("reset");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    let error = kernel.send(&client, b"x").expect_err("gone");
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn writing_meets_would_block_and_room_is_announced() {
    let mut kernel = Kernel::alone(SocketOptions::default()).expect("kernel");
    let bound = bind(&any_tcp(), 1, &ListenOptions::default()).expect("bind");
    let (client, server, _) = pair(&mut kernel, &bound);
    let chunk = vec![9; 1 << 20];
    let mut sent = 0;
    let error = loop {
        match kernel.send(&client, &chunk) {
            Ok(count) => sent += count,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    let mut received = 0;
    let mut buf = vec![0; 1 << 20];
    while received < sent {
        match kernel.recv(&server, &mut buf) {
            Ok(count) => received += count,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                wait_for(&mut kernel, SERVER, |event| event.readable);
            }
        }
    }
    wait_for(&mut kernel, CLIENT, |event| event.writable);
    assert!(kernel.send(&client, b"more").is_ok());
}

#[test]
fn nobody_listening_is_refused() {
    let mut kernel = Kernel::alone(SocketOptions::default()).expect("kernel");
    // Bound, so that nobody else gets the port, but not listening.
    let silent = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("socket");
    silent.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("bind");
    let target = Target::Tcp(silent.local_addr().expect("bound").as_socket().expect("TCP"));
    let outcome = kernel.connect(&target).and_then(|client| {
        kernel.register(&client, CLIENT)?;
        while !kernel.connect_outcome(&client)? {
            wait_for(&mut kernel, CLIENT, |event| event.writable);
        }
        Ok(())
    });
    assert_eq!(outcome.expect_err("nobody there").kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn unix_sockets_tell_who_calls() {
    let mut kernel = Kernel::alone(SocketOptions::default()).expect("kernel");
    let place = Place::new("who");
    let path = place.path("who");
    let options = ListenOptions { unix_mode: 0o600, ..ListenOptions::default() };
    let bound = bind(&Target::Unix(path.clone()), 2, &options).expect("bind");
    assert_eq!(bound.listeners.len(), 2);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&path).expect("file").permissions().mode() & 0o777, 0o600);
    let (client, server, peer) = pair(&mut kernel, &bound);
    assert_eq!(peer, Peer::Unix { uid: Some(rustix::process::geteuid().as_raw()) });
    kernel.send(&server, b"hello").expect("send");
    wait_for(&mut kernel, CLIENT, |event| event.readable);
    assert_eq!(kernel.recv(&client, &mut [0; 9]).expect("recv"), 5);
    assert!(bound.file.as_ref().expect("a file").remove());
    assert!(!path.exists());
}

#[test]
fn a_wake_is_an_event_and_a_burst_is_one() {
    let mut kernel = Kernel::alone(SocketOptions::default()).expect("kernel");
    let (address, mut mailbox) = mailbox::<u32>(kernel.wake(), 100);
    let sender = std::thread::spawn(move || {
        for n in 0..50 {
            address.send(n).expect("room");
        }
    });
    sender.join().expect("sent");
    wait_for(&mut kernel, Token::MAIL, |event| event.readable);
    let mut messages = Vec::new();
    assert_eq!(mailbox.drain(100, &mut messages), 50);
    // No further edge: the wait runs into its timeout.
    let mut events = Vec::new();
    kernel.wait(&mut events, Some(Duration::ZERO)).expect("wait");
    assert_eq!(events, []);
    // And the next wake is an edge again, though nobody emptied the descriptor.
    kernel.wake().wake();
    wait_for(&mut kernel, Token::MAIL, |event| event.readable);
}

#[test]
fn time_passes_only_in_wait() {
    let mut kernel = Kernel::alone(SocketOptions::default()).expect("kernel");
    let mut events = Vec::new();
    kernel.wait(&mut events, Some(Duration::ZERO)).expect("wait");
    let before = kernel.now_ns();
    assert_eq!(kernel.now_ns(), before);
    kernel.wait(&mut events, Some(Duration::from_millis(3))).expect("wait");
    assert!(kernel.now_ns() - before >= 3_000_000);
}

#[test]
fn connections_start_from_a_chosen_address() {
    let mut kernel = Kernel::alone(SocketOptions::default()).expect("kernel");
    let bound = bind(&any_tcp(), 1, &ListenOptions::default()).expect("bind");
    let source = std::net::IpAddr::from([127, 0, 0, if cfg!(target_os = "linux") { 7 } else { 1 }]);
    let clients: Vec<Socket> =
        (0..20).map(|_| kernel.connect_from(&bound.local, source).expect("connect")).collect();
    let mut ports = std::collections::HashSet::new();
    kernel.watch_listener(&bound.listeners[0], LISTENER).expect("watch");
    while ports.len() < clients.len() {
        match kernel.accept(&bound.listeners[0]) {
            Ok((_, Peer::Tcp(peer))) => {
                assert_eq!(peer.ip(), source);
                ports.insert(peer.port());
            }
            Ok(other) => panic!("{other:?}"),
            Err(_) => drop(wait_for(&mut kernel, LISTENER, |event| event.readable)),
        }
    }
}

#[test]
fn a_connection_moves_between_event_loops() {
    let mut here = Kernel::alone(SocketOptions::default()).expect("kernel");
    let mut there = Kernel::alone(SocketOptions::default()).expect("kernel");
    let bound = bind(&any_tcp(), 1, &ListenOptions::default()).expect("bind");
    let (client, server, _) = pair(&mut here, &bound);
    here.send(&client, b"before").expect("send");
    let parcel = here.pack(server, 0).expect("packed");
    let moved = there.unpack(parcel, SERVER).expect("unpacked");
    // What was there before the move is announced.
    wait_for(&mut there, SERVER, |event| event.readable);
    let mut buf = [0; 16];
    assert_eq!(there.recv(&moved, &mut buf).expect("recv"), 6);
    here.send(&client, b"after").expect("send");
    wait_for(&mut there, SERVER, |event| event.readable);
    assert_eq!(there.recv(&moved, &mut buf).expect("recv"), 5);
    // The old loop hears nothing of it any more.
    let mut events = Vec::new();
    here.wait(&mut events, Some(Duration::ZERO)).expect("wait");
    assert!(events.iter().all(|event| event.token != SERVER), "{events:?}");
    // A dropped parcel closes its connection.
    drop(there.pack(moved, 0).expect("packed"));
    wait_for(&mut here, CLIENT, |event| event.read_closed);
    assert_eq!(here.recv(&client, &mut buf).expect("the end"), 0);
}
