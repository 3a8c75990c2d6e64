//! The log: lines of text, or of JSON, to standard error and to a file.
//!
//! A worker that logs must not wait for a disk or a terminal. A line therefore goes into a bounded queue, and
//! a separate thread writes it; when the queue is full, lines are dropped and counted.

use super::Failure;
use anyhow::Context;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use weir_config::Log;

/// Lines that may wait to be written.
const QUEUE_LINES: usize = 16 * 1024;

/// How long the end of the process may wait for the log: a disk that does not answer must not keep it.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Where lines go, beside the file of the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// To standard error.
    pub stderr: bool,
    /// Levels more than the configuration says (`-v`).
    pub more: u8,
}

/// The running log.
pub struct Logging {
    queue: SyncSender<Order>,
    writer: Option<JoinHandle<()>>,
}

enum Order {
    Line(Vec<u8>),
    Reopen,
    /// Everything before it is written: say so.
    Flushed(SyncSender<()>),
    Finish,
}

impl Logging {
    /// Opens the file and starts to write. All of `tracing` goes here from now on.
    ///
    /// # Errors
    /// The level is wrong, the file cannot be opened, or the thread cannot be started.
    pub fn start(log: &Log, output: Output) -> Result<Logging, Failure> {
        let filter = filter(log, output.more)?;
        let file = match &log.file {
            Some(path) => Some(LogFile { path: path.clone(), file: open(path)? }),
            None => None,
        };
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colours = output.stderr && file.is_none() && io::stderr().is_terminal() && !plain;
        let dropped = Arc::new(AtomicU64::new(0));
        let (queue, orders) = sync_channel(QUEUE_LINES);
        let sink = Sink { stderr: output.stderr, json: log.json, file, dropped: dropped.clone() };
        let writer = std::thread::Builder::new()
            .name("log".into())
            .spawn(move || sink.run(&orders))
            .context("cannot start the log thread")?;
        let lines = Lines { queue: queue.clone(), dropped };
        let events = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_writer(lines);
        if log.json {
            let events = events.json().flatten_event(true).with_current_span(false).with_span_list(false);
            tracing::subscriber::set_global_default(events.finish()).context("cannot start the log")?;
            // Lines that are no JSON would be lost in what reads the others.
            std::panic::set_hook(Box::new(|panic| {
                let backtrace = std::backtrace::Backtrace::capture();
                tracing::error!(%backtrace, "{panic}");
            }));
        } else {
            let events = events.with_ansi(colours).finish();
            tracing::subscriber::set_global_default(events).context("cannot start the log")?;
        }
        Ok(Logging { queue, writer: Some(writer) })
    }

    /// Opens the file again, after somebody has moved it away.
    pub fn reopen(&self) {
        // Fails only when the log thread has gone, and then there is nowhere to say so.
        drop(self.queue.send(Order::Reopen));
    }

    /// What waits until all that was logged so far is written, for whoever ends the process without `finish`.
    pub fn flusher(&self) -> impl Fn() + Send + Sync + 'static {
        let queue = self.queue.clone();
        move || {
            let (done, flushed) = sync_channel(1);
            // Fails only when the log thread has gone or is stuck, and then there is nowhere to say so.
            if queue.try_send(Order::Flushed(done)).is_ok() {
                let _ = flushed.recv_timeout(LAST_WORDS);
            }
        }
    }

    /// Writes what is still in the queue and ends.
    pub fn finish(mut self) {
        if self.queue.send(Order::Finish).is_ok()
            && let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            eprintln!("weir: the log thread has panicked");
        }
    }
}

/// What is logged; an error names what is wrong with the level.
///
/// # Errors
/// The level is wrong.
pub fn filter(log: &Log, more: u8) -> Result<EnvFilter, Failure> {
    EnvFilter::try_new(level(&log.level, more))
        .map_err(|error| Failure::Usage(format!("log level `{}`: {error}", log.level)))
}

/// The level of the configuration, raised by `-v`.
fn level(configured: &str, more: u8) -> &str {
    const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];
    match LEVELS.iter().position(|level| *level == configured) {
        Some(index) => LEVELS[(index + usize::from(more)).min(LEVELS.len() - 1)],
        None => configured,
    }
}

fn open(path: &Path) -> Result<File, Failure> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    Ok(file.with_context(|| format!("cannot open the logfile {}", path.display()))?)
}

struct LogFile {
    path: PathBuf,
    file: File,
}

/// The end of the queue.
struct Sink {
    stderr: bool,
    json: bool,
    file: Option<LogFile>,
    dropped: Arc<AtomicU64>,
}

impl Sink {
    fn run(mut self, orders: &Receiver<Order>) {
        while let Ok(order) = orders.recv() {
            match order {
                Order::Line(line) => self.write(&line),
                Order::Reopen => self.reopen(),
                Order::Flushed(done) => {
                    let _ = done.try_send(());
                }
                Order::Finish => return,
            }
            let dropped = self.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                self.say(&format!("(the log was too slow: {dropped} lines are missing here)"));
            }
        }
    }

    /// A line of the log's own.
    fn say(&mut self, words: &str) {
        let line = if self.json {
            let words = serde_json::json!({ "level": "WARN", "message": words });
            format!("{words}\n")
        } else {
            format!("{words}\n")
        };
        self.write(line.as_bytes());
    }

    /// A log that cannot be written is no reason to stop; what cannot go to the file goes to standard
    /// error.
    fn write(&mut self, line: &[u8]) {
        let to_file = self.file.as_mut().map(|log| log.file.write_all(line));
        let failed = matches!(to_file, Some(Err(_)));
        if self.stderr || failed {
            drop(io::stderr().write_all(line));
        }
    }

    fn reopen(&mut self) {
        let Some(log) = &mut self.file else { return };
        match open(&log.path) {
            Ok(file) => log.file = file,
            Err(failure) => self.say(&format!("{failure}; the old file stays open")),
        }
    }
}

/// The beginning of the queue, for `tracing`.
struct Lines {
    queue: SyncSender<Order>,
    dropped: Arc<AtomicU64>,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = LineWriter<'a>;
    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter { lines: self, line: Vec::new() }
    }
}

/// Collects one event and puts it into the queue when dropped.
struct LineWriter<'a> {
    lines: &'a Lines,
    line: Vec<u8>,
}

impl Write for LineWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LineWriter<'_> {
    fn drop(&mut self) {
        if self.line.is_empty() {
            return;
        }
        match self.lines.queue.try_send(Order::Line(std::mem::take(&mut self.line))) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.lines.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_logged_is_written_when_the_flusher_returns() {
        let path = std::env::temp_dir().join(format!("weir-flusher-{}.log", std::process::id()));
        let (queue, orders) = sync_channel(QUEUE_LINES);
        let file = Some(LogFile { path: path.clone(), file: open(&path).expect("a file") });
        let sink = Sink { stderr: false, json: false, file, dropped: Arc::default() };
        let logging =
            Logging { queue: queue.clone(), writer: Some(std::thread::spawn(move || sink.run(&orders))) };
        let lines = Lines { queue, dropped: Arc::default() };
        for _ in 0..1_000 {
            lines.make_writer().write_all(b"a line\n").expect("it goes into the queue");
        }
        logging.flusher()();
        let written = std::fs::read(&path).expect("the file").len();
        std::fs::remove_file(&path).expect("it was there");
        assert_eq!(written, 7_000);
        logging.finish();
    }

    #[test]
    fn verbose_raises_the_level() {
        assert_eq!(level("info", 0), "info");
        assert_eq!(level("info", 1), "debug");
        assert_eq!(level("warn", 9), "trace");
        assert_eq!(level("info,weir_proxy=debug", 2), "info,weir_proxy=debug");
    }
}
