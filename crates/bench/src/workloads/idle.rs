//! `idle`: connect and send nothing, while some clients are busy. Shows the cost of a connection; a server
//! that closes one is an error.

use super::{At, Params, Shape, Workload, by_name};
use crate::client::blocking::{Client, ClientError};
use crate::fill::Stage;
use crate::record::result::CheckLine;
use crate::statement::{Query, Row, Statement};
use std::collections::BTreeMap;

/// The workload.
pub struct Idle {
    connections: u32,
    busy: u32,
    work: Option<Box<dyn Workload>>,
}

impl Idle {
    /// `--busy` of the clients do what `--busy-workload` does.
    ///
    /// # Errors
    /// `--busy` is more than `--connections`, or the busy workload cannot be made.
    pub fn new(params: &Params) -> Result<Self, String> {
        let busy = params.options.busy;
        if busy > params.connections {
            return Err(format!("--busy {busy} is more than --connections {}", params.connections));
        }
        Ok(Idle {
            connections: params.connections,
            busy,
            work: (busy > 0).then(|| inner(params)).transpose()?,
        })
    }

    /// All clients stay silent.
    pub fn silent() -> Self {
        Idle { connections: 0, busy: 0, work: None }
    }
}

/// What `--busy-workload` names.
pub(super) fn inner(params: &Params) -> Result<Box<dyn Workload>, String> {
    let name = params.options.busy_workload.as_str();
    if matches!(name, "idle" | "storm" | "connect") {
        return Err(format!("--busy-workload cannot be '{name}'"));
    }
    by_name(name, params)
}

impl Workload for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    /// The busy ones are spread evenly, so that all workers have some.
    fn shape(&self, client: u32) -> Shape {
        let share = |n: u32| u64::from(n) * u64::from(self.busy) / u64::from(self.connections.max(1));
        if share(client) == share(client.saturating_add(1)) { Shape::Silent } else { Shape::Queries }
    }

    fn statements(&self) -> &[Statement] {
        self.work.as_ref().map_or(&[], |work| work.statements())
    }

    fn query(&self, at: At, heard: &[Row], query: &mut Query) -> bool {
        self.work.as_ref().is_some_and(|work| work.query(at, heard, query))
    }

    fn transactions(&self) -> &'static [&'static str] {
        self.work.as_ref().map_or(&[], |work| work.transactions())
    }

    fn transaction(&self, at: At) -> usize {
        self.work.as_ref().map_or(0, |work| work.transaction(at))
    }

    fn greeting(&self) -> &[String] {
        self.work.as_ref().map_or(&[], |work| work.greeting())
    }

    fn options(&self) -> BTreeMap<String, String> {
        let mut options = self.work.as_ref().map(|work| work.options()).unwrap_or_default();
        options.insert("busy".to_owned(), self.busy.to_string());
        if let Some(work) = &self.work {
            options.insert("busy-workload".to_owned(), work.name().to_owned());
        }
        options
    }

    fn seed(&self) -> u64 {
        self.work.as_ref().map_or(0, |work| work.seed())
    }

    fn prepare(&self) -> Vec<Stage> {
        self.work.as_ref().map(|work| work.prepare()).unwrap_or_default()
    }

    fn probe(&self, client: &mut Client) -> Result<Option<String>, ClientError> {
        self.work.as_ref().map_or(Ok(None), |work| work.probe(client))
    }

    fn has_check(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.has_check())
    }

    fn check(&self, client: &mut Client) -> Result<Vec<CheckLine>, ClientError> {
        self.work.as_ref().map_or(Ok(Vec::new()), |work| work.check(client))
    }

    fn cleanup(&self) -> Vec<String> {
        self.work.as_ref().map(|work| work.cleanup()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Dialect;
    use crate::workloads::options::Options;

    #[test]
    fn the_busy_are_as_many_as_asked_for_and_spread() {
        for (connections, busy) in [(100, 4), (7, 3), (5, 5), (10, 0)] {
            let options = Options { busy, ..Options::default() };
            let idle = Idle::new(&Params { dialect: Dialect::Mysql, connections, options }).unwrap();
            let busy_ones: Vec<_> = (0..connections).filter(|c| idle.shape(*c) == Shape::Queries).collect();
            assert_eq!(busy_ones.len(), busy as usize);
            assert_eq!(busy_ones.iter().filter(|c| **c < connections / 2).count(), busy as usize / 2);
        }
    }
}
