//! One worker's turn in the middle of another's, as happens with threads.
//!
//! Owns: the worker that waits for its moment. Must not know: what either of them does.
//!
//! In a run, the turns of two workers follow each other; simultaneous steps of two threads would never occur.
//! One worker can therefore be made to take its turn when the other one reads the clock, which workers do all
//! the time.

use crate::net::SimNet;
use crate::post::Post;
use std::cell::RefCell;
use weir_net::{Event, Net as _, Token};
use weir_proxy::mail::Mail;
use weir_proxy::worker::Worker;

/// It has taken its turn.
pub const OVER: u64 = u64::MAX;

struct Waiting {
    worker: Worker<SimNet>,
    number: usize,
    looks: u64,
    post: Post,
}

thread_local! {
    static WAITING: RefCell<Option<Waiting>> = const { RefCell::new(None) };
}

/// This worker takes a turn when worker 0 has looked at the clock so often.
pub fn await_looks(worker: Worker<SimNet>, number: usize, looks: u64, post: Post) {
    WAITING.set(Some(Waiting { worker, number, looks, post }));
}

/// Worker 0's own turn is over: the other one, and how many looks are left.
pub fn end() -> Option<(Worker<SimNet>, u64)> {
    WAITING.take().map(|waiting| (waiting.worker, waiting.looks))
}

/// Worker 0 looks at the clock.
pub fn look() {
    let due = WAITING.with_borrow_mut(|waiting| match waiting {
        Some(Waiting { looks: 0, .. }) => waiting.take(),
        Some(waiting) if waiting.looks != OVER => {
            waiting.looks -= 1;
            None
        }
        _ => None,
    });
    if let Some(mut waiting) = due {
        let (mut ready, mut letters) = (Vec::new(), Vec::new());
        // What goes wrong is seen after the turn.
        let _ = take_turn(&mut waiting.worker, waiting.number, &waiting.post, &mut ready, &mut letters);
        waiting.looks = OVER;
        WAITING.set(Some(waiting));
    }
}

/// A worker's turn, with what has happened and what has arrived for it.
///
/// # Errors
/// The kernel's.
pub fn take_turn(
    worker: &mut Worker<SimNet>,
    number: usize,
    post: &Post,
    ready: &mut Vec<Event>,
    letters: &mut Vec<Mail<SimNet>>,
) -> Result<(), String> {
    worker.net_mut().wait(ready, None).map_err(|error| error.to_string())?;
    post.take(number, letters);
    if !letters.is_empty() {
        ready.push(Event {
            token: Token::MAIL,
            readable: true,
            writable: false,
            read_closed: false,
            hangup: false,
        });
    }
    worker.turn(ready, letters);
    Ok(())
}
