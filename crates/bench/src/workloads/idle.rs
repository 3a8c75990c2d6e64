//! `idle`: connect and stay silent. Shows what a connection costs; a server that closes one is an error.

use super::{At, Shape, Workload};
use crate::statement::{Query, Statement};

/// The workload.
pub struct Idle;

impl Workload for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn shape(&self) -> Shape {
        Shape::Silent
    }

    fn statements(&self) -> &[Statement] {
        &[]
    }

    fn query(&self, _at: At, _query: &mut Query) -> bool {
        false
    }
}
