//! `select_one`: the smallest possible query, with a value that the reply must repeat.
//!
//! The value is made of the client's number and its counter, so a reply that belongs to another client, or to
//! an older query of the same one, is detected.

use super::{At, Workload};
use crate::statement::{Expect, Query, Row, Statement, Value};

/// The workload.
pub struct SelectOne {
    statements: [Statement; 1],
}

impl SelectOne {
    /// It takes no parameters.
    pub fn new() -> Self {
        SelectOne { statements: [Statement::new("SELECT ?")] }
    }
}

impl Default for SelectOne {
    fn default() -> Self {
        SelectOne::new()
    }
}

/// The value of one query: client in the upper half (31 bits, so that it is positive), counter in the
/// lower.
pub(crate) fn value(at: At) -> i64 {
    (i64::from(at.client & 0x7fff_ffff) << 32) | i64::from(at.event)
}

impl Workload for SelectOne {
    fn name(&self) -> &'static str {
        "select_one"
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Got;

    #[test]
    fn values_tell_clients_and_counters_apart() {
        let workload = SelectOne::new();
        let (mut a, mut b, mut c) = (Query::default(), Query::default(), Query::default());
        assert!(workload.query(At { client: 1, event: 2, step: 0 }, &[], &mut a));
        assert!(workload.query(At { client: 2, event: 2, step: 0 }, &[], &mut b));
        assert!(workload.query(At { client: 1, event: 3, step: 0 }, &[], &mut c));
        assert!(!workload.query(At { client: 1, event: 2, step: 1 }, &[], &mut Query::default()));
        let Value::Int(n) = a.params[0] else { panic!("not a number") };
        assert!(a.expect.matches(Got::Int(n)) && !b.expect.matches(Got::Int(n)));
        assert!(!c.expect.matches(Got::Int(n)));
    }
}
