//! Connections on their way between workers with tables of their own, in every order of steps: each arrives
//! where it was sent or is closed, and none stays open in a lane.

mod common;

use common::{Sleep, orders};
use rustix::pipe::pipe;
use shuttle::sync::mpsc;
use shuttle::thread;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use weir_models::handover::{Exchange, Inbox, Parcel};
use weir_models::wake::Wake;

/// A connection: the end that travels, and the end that tells what has become of it.
fn connection(name: u8) -> (OwnedFd, Far) {
    let (far, near) = pipe().unwrap();
    rustix::io::ioctl_fionbio(&far, true).unwrap();
    rustix::io::write(&near, &[name]).unwrap();
    (near, Far { end: far, name })
}

struct Far {
    end: OwnedFd,
    name: u8,
}

impl Far {
    /// Nobody has the other end any more.
    fn is_closed(&self) -> bool {
        let mut bytes = [0; 4];
        loop {
            match rustix::io::read(&self.end, &mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(rustix::io::Errno::AGAIN) => return false,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn exchange() -> (Exchange, Arc<Sleep>) {
    let sleep = Arc::new(Sleep::default());
    (Exchange::private(&[sleep.clone() as Arc<dyn Wake>], 0).unwrap(), sleep)
}

/// What arrives is what was sent: it writes its name to the far end.
fn unpack(inbox: &mut Inbox, (name, parcel): (u8, Parcel)) -> OwnedFd {
    let descriptor = inbox.unpack(parcel).unwrap();
    rustix::io::write(&descriptor, &[100 + name]).unwrap();
    descriptor
}

fn said_of(far: &Far) -> Vec<u8> {
    let mut bytes = [0; 8];
    let read = rustix::io::read(&far.end, &mut bytes).unwrap();
    bytes[..read].to_vec()
}

/// Two senders, who drop every second parcel, and a receiver that takes what comes in the order it likes.
#[test]
fn each_arrives_or_is_closed_though_parcels_are_dropped() {
    let run = || {
        let (exchange, sleep) = exchange();
        let mut inbox = exchange.inbox(0);
        let (letters, received) = mpsc::channel();
        let senders: Vec<_> = (0..2u8)
            .map(|sender| {
                let (exchange, letters, sleep) = (exchange.clone(), letters.clone(), sleep.clone());
                thread::spawn(move || {
                    let mut fars = Vec::new();
                    for n in 0..2 {
                        let (near, far) = connection(2 * sender + n);
                        let parcel = exchange.pack(near, 0).unwrap();
                        if n == sender {
                            drop(parcel);
                        } else {
                            letters.send((far.name, parcel)).unwrap();
                        }
                        fars.push(far);
                        sleep.wake();
                    }
                    fars
                })
            })
            .collect();
        drop(letters);
        let mut arrived = Vec::new();
        while arrived.len() < 2 {
            sleep.wait();
            inbox.sweep();
            while let Ok(letter) = received.try_recv() {
                arrived.push((letter.0, unpack(&mut inbox, letter)));
            }
        }
        let fars: Vec<Far> = senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect();
        inbox.sweep();
        for far in &fars {
            match arrived.iter().position(|(name, _)| *name == far.name) {
                Some(_) => assert_eq!(said_of(far), [far.name, 100 + far.name], "its own connection"),
                None => assert!(far.is_closed(), "dropped, and open all the same"),
            }
        }
        drop(arrived);
        assert!(fars.iter().all(Far::is_closed), "a copy is left");
    };
    shuttle::check_random(run, orders());
    shuttle::check_pct(run, orders(), 3);
}

/// The receiver ends at any moment, and another takes its place. Whoever has an open connection then has its
/// descriptor in hand; what was under way is closed at the latest when its parcel is.
#[test]
fn nothing_stays_open_where_a_worker_ends_and_begins_again() {
    let run = || {
        let (exchange, sleep) = exchange();
        let (letters, received) = mpsc::channel();
        let sender = thread::spawn({
            let (exchange, sleep) = (exchange.clone(), sleep.clone());
            move || {
                let mut fars = Vec::new();
                for name in 0..3 {
                    let (near, far) = connection(name);
                    match exchange.pack(near, 0) {
                        Ok(parcel) if name == 1 => drop(parcel),
                        Ok(parcel) => drop(letters.send((name, parcel))),
                        // It stays with its sender, who closes it here.
                        Err((near, error)) => {
                            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{error}");
                            drop(near);
                        }
                    }
                    fars.push(far);
                    sleep.wake();
                }
                fars
            }
        });
        for _ in 0..2 {
            let mut inbox = exchange.inbox(0);
            for _ in 0..2 {
                inbox.sweep();
                while let Ok((name, parcel)) = received.try_recv() {
                    // What the worker before it has closed cannot be had.
                    if let Ok(descriptor) = inbox.unpack(parcel) {
                        rustix::io::write(&descriptor, &[100 + name]).unwrap();
                    }
                }
                thread::yield_now();
            }
        }
        let fars = sender.join().unwrap();
        drop(received);
        assert!(fars.iter().all(Far::is_closed), "a copy is left");
    };
    shuttle::check_random(run, orders());
    shuttle::check_pct(run, orders(), 3);
}
