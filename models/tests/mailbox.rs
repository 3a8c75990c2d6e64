//! No message waits for a missing wake, in every order of steps.

mod common;

use common::{Sleep, orders};
use shuttle::thread;
use std::sync::Arc;
use weir_models::mailbox::mailbox;

/// A reader that sleeps whenever it has drained gets every message of two senders; shuttle reports a thread
/// that would sleep for ever.
fn every_message_arrives(bound: usize) {
    let sleep = Arc::new(Sleep::default());
    let (address, mut mailbox) = mailbox(sleep.clone(), usize::MAX);
    let senders: Vec<_> = (0..2)
        .map(|sender| {
            let address = address.clone();
            thread::spawn(move || (0..2).for_each(|n| address.send((sender, n)).unwrap()))
        })
        .collect();
    let (mut next, mut messages) = ([0, 0], Vec::new());
    while next != [2, 2] {
        sleep.wait();
        mailbox.drain(bound, &mut messages);
        for (sender, n) in messages.drain(..) {
            assert_eq!(n, next[sender], "in order");
            next[sender] += 1;
        }
    }
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    assert_eq!(address.waiting(), 0);
}

#[test]
fn no_wake_is_lost() {
    for bound in [1, 2, 64] {
        shuttle::check_random(move || every_message_arrives(bound), orders());
        shuttle::check_pct(move || every_message_arrives(bound), orders(), 3);
    }
}

/// Over the limit the message comes back, and whoever sends it then or later is not lost.
#[test]
fn a_full_mailbox_loses_nothing() {
    let run = || {
        let sleep = Arc::new(Sleep::default());
        let (address, mut mailbox) = mailbox(sleep.clone(), 1);
        let sender = thread::spawn(move || {
            let mut message = 7;
            while let Err(back) = address.send(message) {
                message = back.into_message();
                thread::yield_now();
            }
            let mut message = 8;
            while let Err(back) = address.send(message) {
                message = back.into_message();
                thread::yield_now();
            }
        });
        let mut messages = Vec::new();
        while messages.len() < 2 {
            sleep.wait();
            mailbox.drain(4, &mut messages);
        }
        sender.join().unwrap();
        assert_eq!(messages, [7, 8]);
    };
    shuttle::check_random(run, orders());
}
