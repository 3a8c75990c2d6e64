//! Two lines over sockets with small buffers.

use super::*;
use std::collections::VecDeque;
use std::time::Duration;
use weir_net::{Event, Kept, Peer, Target, Token};
use weir_tls::{
    Acceptor, AcceptorSettings, Bounds, ClientCertificate, Connector, ConnectorSettings, self_made,
};

/// A pair of sockets, 0 and 1. What one sends waits for the other.
struct Two {
    waits: [VecDeque<u8>; 2],
    ended: [bool; 2],
    /// Bytes that may wait.
    room: usize,
    /// Bytes of one read.
    piece: usize,
}

/// With room for everything.
fn wide() -> Two {
    Two { waits: Default::default(), ended: [false; 2], room: 1 << 20, piece: 1 << 20 }
}

/// One read; `hup`: the end has been announced.
fn read(line: &mut Line<usize>, net: &mut Two, buf: &mut [u8], hup: bool) -> io::Result<Received> {
    line.hup = hup;
    line.recv(net, buf)
}

fn nothing() -> io::Error {
    io::ErrorKind::WouldBlock.into()
}

impl Net for Two {
    type Socket = usize;
    type Listener = ();
    type Parcel = usize;

    fn now_ns(&self) -> u64 {
        0
    }
    fn wait(&mut self, _: &mut Vec<Event>, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
    fn watch_listener(&mut self, (): &(), _: Token) -> io::Result<()> {
        Ok(())
    }
    fn accept(&mut self, (): &()) -> io::Result<(usize, Peer)> {
        Err(nothing())
    }
    fn connect(&mut self, _: &Target) -> io::Result<usize> {
        Err(nothing())
    }
    fn connect_outcome(&mut self, _: &usize) -> io::Result<bool> {
        Ok(true)
    }
    fn register(&mut self, _: &usize, _: Token) -> io::Result<()> {
        Ok(())
    }
    fn recv(&mut self, socket: &usize, buf: &mut [u8]) -> io::Result<usize> {
        let from = 1 - socket;
        let len = self.waits[from].len().min(buf.len()).min(self.piece);
        if len == 0 {
            return if self.ended[from] { Ok(0) } else { Err(nothing()) };
        }
        for (to, byte) in buf.iter_mut().zip(self.waits[from].drain(..len)) {
            *to = byte;
        }
        Ok(len)
    }
    fn send(&mut self, socket: &usize, bytes: &[u8]) -> io::Result<usize> {
        if self.ended[*socket] {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let len = bytes.len().min(self.room - self.waits[*socket].len());
        self.waits[*socket].extend(&bytes[..len]);
        if len == 0 { Err(nothing()) } else { Ok(len) }
    }
    fn shutdown_write(&mut self, socket: &usize) -> io::Result<()> {
        self.ended[*socket] = true;
        Ok(())
    }
    fn close(&mut self, _: usize, _: bool) {}
    fn pack(&mut self, socket: usize, _: usize) -> Result<usize, Kept<usize>> {
        Ok(socket)
    }
    fn unpack(&mut self, parcel: usize, _: Token) -> io::Result<usize> {
        Ok(parcel)
    }
}

fn acceptor() -> Acceptor {
    Acceptor::new(&AcceptorSettings {
        identity: self_made(&["db".to_owned()], None).unwrap().identity,
        bounds: Bounds::default(),
        client: ClientCertificate::None,
        alpn: Vec::new(),
        tickets: true,
    })
    .unwrap()
}

/// A server's and a client's end, after the handshake.
fn ends(net: &mut Two) -> [Line<usize>; 2] {
    let connector = Connector::new(&ConnectorSettings::default()).unwrap();
    let [mut server, mut client] = [Line::new(0), Line::new(1)];
    server.secure(acceptor().accept().unwrap(), &[], &[]);
    client.secure(connector.connect("db").unwrap(), &[], &[]);
    client.nudge(net).unwrap();
    let mut buf = [0; 4096];
    let mut secured = [false; 2];
    while secured != [true; 2] {
        for (line, secured) in [&mut server, &mut client].into_iter().zip(&mut secured) {
            let found = read(line, net, &mut buf, true).unwrap_err().kind();
            assert!(matches!(found, io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted));
            line.nudge(net).unwrap();
            *secured |= line.take_secured().is_some();
        }
    }
    assert!(!server.is_handshaking() && !client.is_handshaking());
    [server, client]
}

/// Reads all there is; returns false at the end of the stream.
fn drain(net: &mut Two, line: &mut Line<usize>, buf: &mut [u8], into: &mut Vec<u8>) -> bool {
    loop {
        match read(line, net, buf, true) {
            Ok(Received { len: 0, .. }) => return false,
            Ok(Received { len, .. }) => into.extend_from_slice(&buf[..len]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => {
                assert_eq!(e.kind(), io::ErrorKind::WouldBlock);
                return true;
            }
        }
    }
}

#[test]
fn every_byte_arrives_once_however_little_room_there_is() {
    let text: Vec<u8> = (0..300_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    for (room, piece, buf) in
        [(100, 7, 64), (1_000, 1_000, 100), (20_000, 20_000, 4_096), (1 << 20, 1 << 20, 1 << 18)]
    {
        let mut net = Two { waits: Default::default(), ended: [false; 2], room, piece };
        let [mut server, mut client] = ends(&mut net);
        let (mut sent, mut heard) = (0, Vec::new());
        let mut buf = vec![0; buf];
        // More comes while the first bytes wait, as for a client that reads slowly.
        let mut known = 1_000;
        while heard.len() < text.len() {
            match server.send(&mut net, &text[sent..known]) {
                Ok(n) => sent += n,
                Err(e) => assert_eq!(e.kind(), io::ErrorKind::WouldBlock),
            }
            known = (known + 10_000).min(text.len());
            assert!(drain(&mut net, &mut client, &mut buf, &mut heard));
            assert!(heard.len() >= sent, "what is not on its way does not count as sent");
        }
        assert!(heard == text && sent == text.len());
        assert!(!server.has_unsent() && server.send(&mut net, &[]).is_ok());
        server.shutdown_write(&mut net);
        assert!(!drain(&mut net, &mut client, &mut buf, &mut heard), "the end is the end here, too");
    }
}

#[test]
fn what_the_peer_sends_with_its_last_handshake_bytes_is_read_after_it() {
    let mut net = wide();
    let connector = Connector::new(&ConnectorSettings::default()).unwrap();
    let [mut server, mut client] = [Line::new(0), Line::new(1)];
    client.secure(connector.connect("db").unwrap(), &[], &[]);
    client.nudge(&mut net).unwrap();
    // MySQL's ClientHello comes with what goes in clear before it.
    let early: Vec<u8> = net.waits[1].drain(..).collect();
    server.secure(acceptor().accept().unwrap(), &early, &[]);
    let mut buf = [0; 4096];
    assert!(read(&mut server, &mut net, &mut buf, true).is_err() && server.take_secured().is_none());
    assert!(read(&mut client, &mut net, &mut buf, true).is_err() && client.take_secured().is_some());
    assert_eq!(client.send(&mut net, b"select 1").unwrap(), 8);
    let received = read(&mut server, &mut net, &mut buf, true).unwrap();
    assert!(server.take_secured().is_some() && server.take_secured().is_none());
    assert_eq!(buf[..received.len], *b"select 1");
}

#[test]
fn tickets_go_with_the_first_bytes() {
    for protocols in ["tlsv1.3", "tlsv1.2"] {
        let mut net = wide();
        let bounds = Bounds { protocols: protocols.to_owned(), ..Bounds::default() };
        let connector =
            Connector::new(&ConnectorSettings { bounds, sessions: 4, ..ConnectorSettings::default() })
                .unwrap();
        let acceptor = acceptor();
        let mut buf = [0; 4096];
        for resumed in [false, true] {
            let [mut server, mut client] = [Line::new(0), Line::new(1)];
            client.secure(connector.connect("db").unwrap(), &[], &[]);
            server.secure(acceptor.accept().unwrap(), &[], &[]);
            client.nudge(&mut net).unwrap();
            while server.is_handshaking() || client.is_handshaking() {
                assert!(read(&mut server, &mut net, &mut buf, false).is_err(), "{protocols}");
                assert!(read(&mut client, &mut net, &mut buf, false).is_err(), "{protocols}");
            }
            assert!(
                !server.has_unsent() && net.waits[0].is_empty(),
                "{protocols}: nothing of its own accord"
            );
            server.send(&mut net, b"hello").unwrap();
            let received = read(&mut client, &mut net, &mut buf, false).unwrap();
            assert_eq!(buf[..received.len], *b"hello");
            let facts = server.tls().unwrap().stream.as_ref().unwrap().facts().unwrap();
            assert_eq!(facts.resumed, resumed, "{protocols}");
        }
    }
}

#[test]
fn what_is_no_tls_fails_and_what_follows_is_only_taken_away() {
    let mut net = wide();
    let mut server = Line::new(0);
    server.secure(acceptor().accept().unwrap(), &[], &[]);
    net.send(&1, b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut buf = [0; 4096];
    assert_eq!(read(&mut server, &mut net, &mut buf, true).unwrap_err().kind(), io::ErrorKind::InvalidData);
    assert_eq!(net.waits[0].front(), Some(&21), "an alert tells the peer");
    net.send(&1, b"more").unwrap();
    assert_eq!(read(&mut server, &mut net, &mut buf, true).unwrap().len, 4);
    assert!(server.send(&mut net, b"words").is_err(), "nothing is said in clear");
}

#[test]
fn a_handshake_that_is_lent_goes_on_where_it_was_left() {
    for early in [false, true] {
        let mut net = wide();
        let connector = Connector::new(&ConnectorSettings::default()).unwrap();
        let [mut server, mut client] = [Line::new(0), Line::new(1)];
        client.secure(connector.connect("db").unwrap(), &[], &[]);
        client.nudge(&mut net).unwrap();
        let hello: Vec<u8> = if early { net.waits[1].drain(..).collect() } else { Vec::new() };
        server.secure(acceptor().accept().unwrap(), &hello, &[]);
        assert!(server.is_expecting_hello() && !server.is_lent());
        let mut buf = [0; 4096];
        let step = server.lend(&mut net, &mut buf).unwrap().unwrap();
        assert!(server.is_lent() && server.is_handshaking() && !server.is_expecting_hello());
        // Nothing is read or said meanwhile, and nothing is lost.
        client.nudge(&mut net).unwrap();
        assert_eq!(
            read(&mut server, &mut net, &mut buf, true).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        assert_eq!(server.send(&mut net, b"hello").unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(server.take_secured().is_none() && server.secured().is_none() && net.waits[0].is_empty());
        let step = std::thread::spawn(move || step.run()).join().unwrap();
        server.take_back(&mut net, step).unwrap();
        assert!(!server.is_lent() && !server.is_expecting_hello() && server.is_handshaking());
        assert!(read(&mut client, &mut net, &mut buf, true).is_err() && client.take_secured().is_some());
        assert_eq!(client.send(&mut net, b"select 1").unwrap(), 8);
        let received = read(&mut server, &mut net, &mut buf, true).unwrap();
        assert!(server.take_secured().is_some());
        assert_eq!(buf[..received.len], *b"select 1");
    }
}

#[test]
fn what_is_no_tls_fails_also_where_it_is_lent() {
    let mut net = wide();
    let mut server = Line::new(0);
    server.secure(acceptor().accept().unwrap(), &[], &[]);
    let mut buf = [0; 4096];
    assert_eq!(server.lend(&mut net, &mut buf).map(drop).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    net.send(&1, b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let step = server.lend(&mut net, &mut buf).unwrap().unwrap().run();
    assert_eq!(server.take_back(&mut net, step).unwrap_err().kind(), io::ErrorKind::InvalidData);
    assert_eq!(net.waits[0].front(), Some(&21), "an alert tells the peer");
    net.ended[1] = true;
    let mut other = Line::new(0);
    other.secure(acceptor().accept().unwrap(), &[], &[]);
    assert!(other.lend(&mut net, &mut buf).unwrap().is_none(), "the end of the stream");
}

#[test]
fn who_ends_a_line_whose_handshake_is_lent_says_nothing_more() {
    let mut net = wide();
    let connector = Connector::new(&ConnectorSettings::default()).unwrap();
    let [mut server, mut client] = [Line::new(0), Line::new(1)];
    client.secure(connector.connect("db").unwrap(), &[], &[]);
    client.nudge(&mut net).unwrap();
    server.secure(acceptor().accept().unwrap(), &[], &[]);
    let step = server.lend(&mut net, &mut [0; 4096]).unwrap().unwrap();
    server.shutdown_write(&mut net);
    assert!(net.ended[0] && net.waits[0].is_empty());
    server.take_back(&mut net, step.run()).unwrap();
}

#[test]
fn a_handshake_that_has_failed_is_not_lent_again() {
    let mut net = wide();
    let mut server = Line::new(0);
    server.secure(acceptor().accept().unwrap(), &[], &[]);
    // No alert was written.
    let failed = Err(TlsError::Tls("too much".to_owned()));
    let tls = server.tls_mut().unwrap();
    assert_eq!(tls.after(&mut net, &0, true, failed).unwrap_err().kind(), io::ErrorKind::InvalidData);
    assert!(!server.is_expecting_hello());
}

/// The farewell goes in part, and the end of the stream is announced behind it. What is left of it is not
/// written then.
#[test]
fn a_farewell_that_the_socket_has_not_taken_is_forgotten() {
    let mut net = wide();
    let [mut server, mut client] = ends(&mut net);
    drain(&mut net, &mut client, &mut [0; 4096], &mut Vec::new());
    net.room = net.waits[0].len() + 10;
    server.shutdown_write(&mut net);
    assert!(net.ended[0] && net.waits[0].len() == net.room);
    assert!(!server.has_unsent());
    net.room = 1 << 20;
    server.nudge(&mut net).unwrap();
}
