//! What threads share is made of these, so that `models/` can put its own in their place and try every order
//! of steps.

pub(crate) use std::sync::{Arc, atomic};
