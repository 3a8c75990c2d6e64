//! A thread that waits, and how many orders are tried.

use shuttle::sync::{Condvar, Mutex};
use weir_models::wake::Wake;

/// A thread that waits until it is woken, as in epoll.
#[derive(Default)]
pub struct Sleep {
    woken: Mutex<bool>,
    rings: Condvar,
}

impl Wake for Sleep {
    fn wake(&self) {
        *self.woken.lock().unwrap() = true;
        self.rings.notify_one();
    }
}

impl Sleep {
    pub fn wait(&self) {
        let mut woken = self.woken.lock().unwrap();
        while !*woken {
            woken = self.rings.wait(woken).unwrap();
        }
        *woken = false;
    }
}

pub fn orders() -> usize {
    std::env::var("MODELS_ORDERS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000)
}
