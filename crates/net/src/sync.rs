//! The types that threads share, collected here so that `models/` can replace them and try every order of
//! steps.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic, mpsc};
