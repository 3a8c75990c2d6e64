//! `connect`: connect, run the smallest query, disconnect, repeat.

use super::select_one::value;
use super::{At, Shape, Workload};
use crate::statement::{Expect, Query, Row, Statement, Value};

/// The workload.
pub struct Connect {
    statements: [Statement; 1],
}

impl Connect {
    /// It takes no parameters.
    pub fn new() -> Self {
        Connect { statements: [Statement::new("SELECT ?")] }
    }
}

impl Default for Connect {
    fn default() -> Self {
        Connect::new()
    }
}

impl Workload for Connect {
    fn name(&self) -> &'static str {
        "connect"
    }

    fn shape(&self, _client: u32) -> Shape {
        Shape::Connects
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn query(&self, at: At, _heard: &[Row], query: &mut Query) -> bool {
        if at.step > 0 {
            return false;
        }
        let value = value(at);
        query.set(0, [Value::Int(value)], Expect::First(Value::Int(value)));
        true
    }
}
