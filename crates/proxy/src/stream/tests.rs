//! Results of reads and writes of a stream, over a scripted socket.

use super::*;
use std::collections::VecDeque;
use std::time::Duration;
use weir_net::{Event, Kept, Peer, Target, Token};

/// One socket: what its reads give, and how many bytes each write takes (`Err`: it fails).
#[derive(Default)]
struct One {
    reads: VecDeque<io::Result<Vec<u8>>>,
    room: VecDeque<io::Result<usize>>,
    taken: Vec<u8>,
}

fn error<T>(kind: io::ErrorKind) -> io::Result<T> {
    Err(kind.into())
}

impl Net for One {
    type Socket = ();
    type Listener = ();
    type Parcel = ();

    fn now_ns(&self) -> u64 {
        0
    }
    fn wait(&mut self, _: &mut Vec<Event>, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
    fn watch_listener(&mut self, (): &(), _: Token) -> io::Result<()> {
        Ok(())
    }
    fn accept(&mut self, (): &()) -> io::Result<((), Peer)> {
        error(io::ErrorKind::WouldBlock)
    }
    fn connect(&mut self, _: &Target) -> io::Result<()> {
        Ok(())
    }
    fn connect_outcome(&mut self, (): &()) -> io::Result<bool> {
        Ok(true)
    }
    fn register(&mut self, (): &(), _: Token) -> io::Result<()> {
        Ok(())
    }
    fn recv(&mut self, (): &(), buf: &mut [u8]) -> io::Result<usize> {
        let bytes = self.reads.pop_front().unwrap_or_else(|| error(io::ErrorKind::WouldBlock))?;
        buf[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
    fn send(&mut self, (): &(), bytes: &[u8]) -> io::Result<usize> {
        let room = self.room.pop_front().unwrap_or_else(|| error(io::ErrorKind::WouldBlock))?;
        let sent = room.min(bytes.len());
        self.taken.extend_from_slice(&bytes[..sent]);
        Ok(sent)
    }
    fn shutdown_write(&mut self, (): &()) -> io::Result<()> {
        Ok(())
    }
    fn close(&mut self, (): (), _: bool) {}
    fn pack(&mut self, (): (), _: usize) -> Result<(), Kept<()>> {
        Ok(())
    }
    fn unpack(&mut self, (): (), _: Token) -> io::Result<()> {
        Ok(())
    }
}

fn stream() -> Stream<()> {
    let mut stream = Stream::new(Line::new(()));
    stream.line.readable = true;
    stream
}

#[test]
fn a_short_read_says_that_nothing_is_left_unless_the_end_is_announced() {
    let mut buf = [0; 8];
    for (hup, len, more) in [(false, 3, false), (true, 3, true), (false, 8, true)] {
        let mut net = One { reads: [Ok(vec![b'x'; len])].into(), ..One::default() };
        let mut stream = stream();
        stream.line.hup = hup;
        assert!(matches!(stream.hear(&mut net, &mut buf), Heard::Bytes(n) if n == len));
        assert_eq!(stream.line.readable, more, "{len} bytes, hup: {hup}");
    }
}

#[test]
fn an_end_a_pause_and_a_failure_are_told_apart() {
    let mut buf = [0; 8];
    let reads = [
        error(io::ErrorKind::Interrupted),
        error(io::ErrorKind::WouldBlock),
        Ok(Vec::new()),
        error(io::ErrorKind::ConnectionReset),
    ];
    let mut net = One { reads: reads.into(), ..One::default() };
    let mut stream = stream();
    assert!(matches!(stream.hear(&mut net, &mut buf), Heard::Again));
    assert!(stream.line.readable);
    assert!(matches!(stream.hear(&mut net, &mut buf), Heard::Nothing));
    assert!(!stream.line.readable);
    assert!(matches!(stream.hear(&mut net, &mut buf), Heard::End));
    assert!(matches!(stream.hear(&mut net, &mut buf), Heard::Failed(_)));
}

#[test]
fn bytes_go_out_in_their_order_and_what_finds_no_room_waits() {
    let mut net = One { room: [Ok(2), error(io::ErrorKind::WouldBlock), Ok(1)].into(), ..One::default() };
    let mut stream = stream();
    assert_eq!(stream.say(&mut net, b"abcd").unwrap(), 2);
    assert_eq!(stream.flush(&mut net).0, 0, "no room");
    assert_eq!(stream.say(&mut net, b"ef").unwrap(), 0, "nothing overtakes what waits");
    assert!(matches!(stream.flush(&mut net), (1, Ok(()))));
    net.room.extend([Ok(9), error(io::ErrorKind::BrokenPipe)]);
    assert!(matches!(stream.flush(&mut net), (3, Ok(()))));
    assert_eq!(net.taken, b"abcdef");
    assert!(stream.say(&mut net, b"g").is_err() && stream.output.is_empty());
}

#[test]
fn what_has_gone_before_a_failure_is_told() {
    let mut net = One {
        room: [error(io::ErrorKind::WouldBlock), Ok(2), error(io::ErrorKind::BrokenPipe)].into(),
        ..One::default()
    };
    let mut stream = stream();
    assert_eq!(stream.say(&mut net, b"abcd").unwrap(), 0);
    assert!(matches!(stream.flush(&mut net), (2, Err(_))));
}
