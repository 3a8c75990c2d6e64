//! The demo's output: a small table that is redrawn on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// One row of the table: one kind of server.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// What the server is.
    pub title: String,
    /// Directly connected clients, their queries each second and p95 in ms, once measured.
    pub direct: Option<Figures>,
    /// The same through Weir, now.
    pub weir: Option<Figures>,
}

/// Figures of one side.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// Connected clients.
    pub clients: u64,
    /// Queries each second.
    pub qps: f64,
    /// 95th percentile in ms.
    pub p95_ms: f64,
    /// Errors so far.
    pub errors: u64,
}

/// The live table.
pub struct Screen {
    terminal: bool,
    drawn: usize,
}

impl Screen {
    /// Looks whether there is a terminal.
    pub fn new() -> Screen {
        Screen { terminal: std::io::stdout().is_terminal(), drawn: 0 }
    }

    /// A sentence above the table.
    pub fn say(&mut self, text: &str) {
        self.drawn = 0;
        println!("{text}");
    }

    /// A step that takes a while: says what it is at once, how long it has taken so far on a terminal, and in
    /// the end.
    pub fn step<T>(&mut self, text: &str, work: impl FnOnce() -> T) -> T {
        self.drawn = 0;
        let began = Instant::now();
        if !self.terminal {
            println!("{text} ...");
            let outcome = work();
            println!("{text}: {:.1} s", began.elapsed().as_secs_f64());
            return outcome;
        }
        let (done, ended) = channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                loop {
                    print!("\r{text} ... {} s ", began.elapsed().as_secs());
                    // A terminal that has gone: the demo ends by its signal.
                    let _ = std::io::stdout().flush();
                    if ended.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
                        println!("\r{text}: {:.1} s    ", began.elapsed().as_secs_f64());
                        return;
                    }
                }
            });
            let outcome = work();
            drop(done);
            outcome
        })
    }

    /// Draws the table anew, `seconds` after the load began. Without a terminal only row `changed` is
    /// printed, as a line.
    pub fn show(&mut self, seconds: u64, rows: &[Row], changed: usize) {
        if !self.terminal {
            if let Some(row) = rows.get(changed) {
                println!("[{seconds:>4} s] {}", plain(row));
            }
            return;
        }
        let text = table(seconds, rows);
        let mut out = String::new();
        if self.drawn > 0 {
            // Up to the table's first line, then each line is cleared and written.
            out.push_str(&format!("\x1b[{}A", self.drawn));
        }
        for line in text.lines() {
            out.push_str("\x1b[2K");
            out.push_str(line);
            out.push('\n');
        }
        self.drawn = text.lines().count();
        let mut stdout = std::io::stdout();
        // A terminal that has gone: the demo ends by its signal.
        let _ = stdout.write_all(out.as_bytes()).and_then(|()| stdout.flush());
    }
}

impl Default for Screen {
    fn default() -> Self {
        Screen::new()
    }
}

/// The side that is being measured now.
fn plain(row: &Row) -> String {
    let (side, figures) = match (&row.weir, &row.direct) {
        (Some(weir), _) => ("through Weir", weir),
        (None, Some(direct)) => ("direct", direct),
        (None, None) => return row.title.clone(),
    };
    let f = figures;
    format!(
        "{:<18} {side:<12} {:>6} clients {:>7.0} queries/s  p95 {:>7.1} ms  errors {}",
        row.title, f.clients, f.qps, f.p95_ms, f.errors
    )
}

/// The table as text, also the final one: 79 columns.
pub fn table(seconds: u64, rows: &[Row]) -> String {
    let mut out = format!("{:<18}{:^25}   {:^33}\n", format!("{seconds} s"), "direct", "through Weir");
    out.push_str(&format!(
        "{:<18}{:>7}{:>10}{:>8}   {:>8}{:>10}{:>8}{:>7}\n",
        "", "clients", "queries/s", "p95 ms", "clients", "queries/s", "p95 ms", "errors"
    ));
    for row in rows {
        out.push_str(&line(row));
    }
    if let [_, _, ..] = rows {
        out.push_str(&line(&together(rows)));
    }
    out
}

fn line(row: &Row) -> String {
    let latency = |f: &Figures| if f.p95_ms > 0.0 { format!("{:.1}", f.p95_ms) } else { String::new() };
    let side = |figures: &Option<Figures>, width: usize| match figures {
        Some(f) => format!("{:>width$}{:>10.0}{:>8}", f.clients, f.qps, latency(f)),
        None => format!("{:>width$}{:>10}{:>8}", "-", "-", "-"),
    };
    let errors = row.weir.map_or_else(|| "-".to_owned(), |f| f.errors.to_string());
    format!("{:<18}{}   {}{errors:>7}\n", row.title, side(&row.direct, 7), side(&row.weir, 8))
}

/// The sums; a percentile has none.
fn together(rows: &[Row]) -> Row {
    let sum = |side: fn(&Row) -> Option<Figures>| {
        rows.iter().map(side).try_fold(Figures::default(), |sum, figures| {
            let f = figures?;
            Some(Figures {
                clients: sum.clients + f.clients,
                qps: sum.qps + f.qps,
                p95_ms: 0.0,
                errors: sum.errors + f.errors,
            })
        })
    };
    Row { title: "together".to_owned(), direct: sum(|row| row.direct), weir: sum(|row| row.weir) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_their_heads() {
        let weir = Figures { clients: 10_000, qps: 12_345.6, p95_ms: 3.4, errors: 7 };
        let rows = [
            Row { title: "PostgreSQL 15.14".to_owned(), direct: None, weir: Some(weir) },
            Row { title: "MariaDB 10.11.14".to_owned(), direct: Some(weir), weir: None },
        ];
        let text = table(12, &rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(lines.iter().all(|line| line.chars().count() == 79), "{text}");
        assert!(lines[2].ends_with("10000     12346     3.4      7"), "{text}");
        // Only one row has each side yet, so there is no sum.
        assert!(lines[4].starts_with("together") && !lines[4].contains("12346"), "{text}");
    }

    #[test]
    fn sums() {
        let side = Some(Figures { clients: 10, qps: 5.0, p95_ms: 1.0, errors: 1 });
        let row = Row { title: "X".to_owned(), direct: None, weir: side };
        let sum = together(&[row.clone(), row]);
        assert_eq!(sum.weir, Some(Figures { clients: 20, qps: 10.0, p95_ms: 0.0, errors: 2 }));
        assert_eq!(sum.direct, None);
    }

    #[test]
    fn plain_lines_say_all() {
        let weir = Some(Figures { clients: 5, qps: 10.0, ..Figures::default() });
        let line = plain(&Row { title: "X".to_owned(), direct: None, weir });
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[..7], ["X", "through", "Weir", "5", "clients", "10", "queries/s"]);
    }
}
