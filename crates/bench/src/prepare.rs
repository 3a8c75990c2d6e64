//! `prepare` and `cleanup`: the stages of a workload, each carried out by several connections.
//!
//! PostgreSQL takes rows by COPY, MySQL and MariaDB by INSERTs of many rows.

use crate::client::blocking::{Client, ClientError};
use crate::fill::{Job, RowWriter, Rows, Stage};
use crate::url::{Dialect, Url};
use crate::workloads::Workload;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bytes of one INSERT, about: far below any max_allowed_packet (MySQL's smallest default was 1 MB).
const INSERT_BYTES: usize = 512 * 1024;

/// Bytes of one CopyData message, about.
const COPY_BYTES: usize = 128 * 1024;

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// How far it is.
#[derive(Debug, Default)]
struct Done {
    rows: AtomicU64,
    failed: AtomicBool,
    finished: AtomicBool,
}

/// Does all stages with `threads` connections. `progress` hears of rows done and rows in all, on the calling
/// thread.
///
/// # Errors
/// The first error of any of the connections: the server cannot be reached, or refuses a statement. What the
/// others have done stays.
pub fn prepare(
    url: &Url,
    workload: &dyn Workload,
    threads: usize,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), ClientError> {
    let stages = workload.prepare();
    let all: u64 = stages.iter().flatten().map(Job::rows).sum();
    let done = Done::default();
    progress(0, all);
    for stage in &stages {
        run_stage(url, stage, threads, &done, &mut |rows| progress(rows, all))?;
    }
    progress(all, all);
    Ok(())
}

/// Runs the workload's statements of `cleanup`.
///
/// # Errors
/// The server cannot be reached, or refuses a statement; those after it are not run.
pub fn cleanup(url: &Url, workload: &dyn Workload) -> Result<(), ClientError> {
    let mut client = Client::connect(url)?;
    workload.cleanup().iter().try_for_each(|text| client.run(text))
}

fn run_stage(
    url: &Url,
    stage: &Stage,
    threads: usize,
    done: &Done,
    progress: &mut dyn FnMut(u64),
) -> Result<(), ClientError> {
    let next = AtomicUsize::new(0);
    let error = Mutex::new(None);
    done.finished.store(false, Ordering::Relaxed);
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (0..threads.clamp(1, stage.len().max(1)))
            .map(|_| {
                scope.spawn(|| {
                    if let Err(failure) = work(url, stage, &next, done) {
                        done.failed.store(true, Ordering::Relaxed);
                        // The first error is the one that is told.
                        error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
                    }
                })
            })
            .collect();
        while !helpers.iter().all(|helper| helper.is_finished()) {
            std::thread::park_timeout(TELL_EVERY.min(Duration::from_millis(20)));
            progress(done.rows.load(Ordering::Relaxed));
        }
    });
    match error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// One connection takes jobs until there are none.
fn work(url: &Url, stage: &Stage, next: &AtomicUsize, done: &Done) -> Result<(), ClientError> {
    let mut client: Option<Client> = None;
    while let Some(job) = stage.get(next.fetch_add(1, Ordering::Relaxed)) {
        if done.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let client = match &mut client {
            Some(client) => client,
            None => client.insert(Client::connect(url)?),
        };
        match (job, url.dialect) {
            (Job::Sql(text), _) => client.run(text)?,
            (Job::Rows(rows), Dialect::Postgres) => copy(client, rows, done)?,
            (Job::Rows(rows), Dialect::Mysql) => insert(client, rows, done)?,
        }
    }
    Ok(())
}

fn copy(client: &mut Client, rows: &Rows, done: &Done) -> Result<(), ClientError> {
    let text = format!("COPY {}({}) FROM STDIN", rows.table, rows.columns);
    let mut numbers = rows.numbers.clone();
    client.copy_in(&text, &mut |out| {
        let mut made = 0;
        while out.len() < COPY_BYTES {
            let Some(number) = numbers.next() else { break };
            (rows.make)(number, &mut RowWriter::copy(out));
            made += 1;
        }
        done.rows.fetch_add(made, Ordering::Relaxed);
        made > 0
    })
}

fn insert(client: &mut Client, rows: &Rows, done: &Done) -> Result<(), ClientError> {
    let head = format!("INSERT INTO {}({}) VALUES ", rows.table, rows.columns);
    let mut text = head.clone().into_bytes();
    let mut made = 0;
    for number in rows.numbers.clone() {
        (rows.make)(number, &mut RowWriter::values(&mut text, Dialect::Mysql, made));
        made += 1;
        if text.len() >= INSERT_BYTES {
            client.run_bytes(&text)?;
            done.rows.fetch_add(std::mem::take(&mut made), Ordering::Relaxed);
            text.truncate(head.len());
        }
    }
    if made > 0 {
        client.run_bytes(&text)?;
        done.rows.fetch_add(made, Ordering::Relaxed);
    }
    Ok(())
}
