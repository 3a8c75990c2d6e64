//! `storm`: impatient applications. When a query takes longer than `--patience`, its client closes the
//! connection, reconnects at once and repeats the query: the server's work was in vain.

use super::idle::inner;
use super::{At, Params, Workload};
use crate::client::blocking::{Client, ClientError};
use crate::fill::Stage;
use crate::record::result::CheckLine;
use crate::statement::{Query, Row, Statement};
use std::collections::BTreeMap;
use std::time::Duration;

/// The workload.
pub struct Storm {
    patience: Duration,
    work: Box<dyn Workload>,
}

impl Storm {
    /// All clients do what `--busy-workload` does.
    ///
    /// # Errors
    /// `--patience` is no time, or the workload cannot be made.
    pub fn new(params: &Params) -> Result<Self, String> {
        let patience = Duration::try_from_secs_f64(params.options.patience)
            .map_err(|error| format!("--patience: {error}"))?;
        Ok(Storm { patience, work: inner(params)? })
    }
}

impl Workload for Storm {
    fn name(&self) -> &'static str {
        "storm"
    }

    fn statements(&self) -> &[Statement] {
        self.work.statements()
    }

    fn query(&self, at: At, heard: &[Row], query: &mut Query) -> bool {
        self.work.query(at, heard, query)
    }

    fn transactions(&self) -> &'static [&'static str] {
        self.work.transactions()
    }

    fn transaction(&self, at: At) -> usize {
        self.work.transaction(at)
    }

    fn greeting(&self) -> &[String] {
        self.work.greeting()
    }

    fn patience(&self) -> Option<Duration> {
        Some(self.patience)
    }

    fn options(&self) -> BTreeMap<String, String> {
        let mut options = self.work.options();
        options.insert("patience".to_owned(), self.patience.as_secs_f64().to_string());
        options.insert("busy-workload".to_owned(), self.work.name().to_owned());
        options
    }

    fn seed(&self) -> u64 {
        self.work.seed()
    }

    fn prepare(&self) -> Vec<Stage> {
        self.work.prepare()
    }

    fn probe(&self, client: &mut Client) -> Result<Option<String>, ClientError> {
        self.work.probe(client)
    }

    fn has_check(&self) -> bool {
        self.work.has_check()
    }

    fn check(&self, client: &mut Client) -> Result<Vec<CheckLine>, ClientError> {
        self.work.check(client)
    }

    fn cleanup(&self) -> Vec<String> {
        self.work.cleanup()
    }
}
