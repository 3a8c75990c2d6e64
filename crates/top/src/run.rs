//! The command: one screen, or a terminal that follows.

use crate::ask::{Place, Wish};
use crate::screen::{self, View};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use weir_admin::live::{Live, MOST_ROWS, Sort};

const EVERY: Duration = Duration::from_secs(1);
/// How long keys are waited for before the figures are looked for.
const KEYS: Duration = Duration::from_millis(100);
/// Seconds of the chart.
const HISTORY: usize = 300;
/// Characters of a filter.
const FILTER: usize = 128;
/// The size of a screen that is not on a terminal.
const PLAIN_WIDTH: u16 = 120;
const PLAIN_HEIGHT: u16 = 70;

/// Watch a running Weir in the terminal.
///
/// Shows throughput, latency, waiting clients, servers, pins, errors and the busiest pools once a second.
/// Keys: q quits, s changes the order of the pools, / filters them, t shows statements in their place, the
/// arrow keys scroll.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address of Weir's HTTP endpoint (http.listen).
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9930")]
    url: String,
    /// File with the token (http.token_file of weir serve). Not required; with it, statements and the
    /// log's words about failing databases are shown as well.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print one screen as plain text and exit.
    #[arg(long)]
    once: bool,
    /// Order of the pools.
    #[arg(long, value_name = "ORDER", default_value = "activity",
          value_parser = ["activity", "waiting", "latency", "servers", "name"])]
    sort: String,
    /// Show only pools with this text in the name of their database or user.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
}

/// Why it has ended.
#[derive(Debug)]
pub enum Failure {
    /// The arguments are wrong.
    Usage(String),
    /// There is no answer, or no terminal.
    Runtime(String),
}

/// Shows the figures of a running Weir until the user has seen enough.
///
/// # Errors
/// The arguments are wrong; with `--once`, Weir does not answer; without, the terminal cannot be used.
pub fn run(args: &Args) -> Result<(), Failure> {
    let place = Place::parse(&args.url).map_err(|text| Failure::Usage(format!("--url: {text}")))?;
    let token = args.token_file.as_deref().map(token_of).transpose().map_err(Failure::Usage)?;
    let sort = Sort::ALL.into_iter().find(|sort| sort.name() == args.sort).unwrap_or_default();
    let wish = Wish { sort, filter: args.filter.chars().take(FILTER).collect(), top: MOST_ROWS };
    if args.once {
        return once(&place, token.as_deref(), &wish);
    }
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::Usage("weir top needs a terminal; --once prints one screen".to_owned()));
    }
    let asker = Asker::start(place.clone(), token, wish.clone()).map_err(Failure::Runtime)?;
    // From here on a panic, too, leaves the terminal as it was.
    let mut terminal =
        ratatui::try_init().map_err(|error| Failure::Runtime(format!("cannot use the terminal: {error}")))?;
    let outcome = Watch::new(place.name(), wish).follow(&mut terminal, &asker);
    ratatui::restore();
    outcome.map_err(|error| Failure::Runtime(format!("cannot use the terminal: {error}")))
}

fn token_of(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("--token-file: cannot read {}: {error}", path.display()))?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("--token-file: what {} contains is not a token", path.display()));
    }
    Ok(token.to_owned())
}

fn once(place: &Place, token: Option<&str>, wish: &Wish) -> Result<(), Failure> {
    let runtime = runtime().map_err(Failure::Runtime)?;
    let live = runtime.block_on(place.live(token, wish)).map_err(Failure::Runtime)?;
    let more = live.pools_matching.saturating_sub(usize::from(PLAIN_HEIGHT) - 20);
    let foot = if more > 0 {
        format!("{} pools match; --filter shows fewer", live.pools_matching)
    } else {
        String::new()
    };
    let name = place.name();
    let view = View { place: &name, live: Some(&live), foot, ..View::default() };
    let text = screen::plain(&view, PLAIN_WIDTH, PLAIN_HEIGHT);
    let mut stdout = std::io::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::Runtime(format!("cannot write: {error}")))
        }
        _ => Ok(()),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| format!("cannot start: {error}"))
}

/// What comes from beside the terminal.
enum News {
    /// An answer, or why there is none.
    Answer(Result<Box<Live>, String>),
    /// The process is asked to end.
    End,
}

/// Asks once a second, beside the keys.
struct Asker {
    news: Receiver<News>,
    wish: Arc<Mutex<Wish>>,
}

impl Asker {
    fn start(place: Place, token: Option<String>, wish: Wish) -> Result<Asker, String> {
        let (tell, news) = channel();
        let wish = Arc::new(Mutex::new(wish));
        let runtime = runtime()?;
        let asked = wish.clone();
        let work = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = ends() => drop(tell.send(News::End)),
                    () = asks(&place, token.as_deref(), &asked, &tell) => {}
                }
            });
        };
        let started = std::thread::Builder::new().name("ask".to_owned()).spawn(work);
        started.map_err(|error| format!("cannot start: {error}"))?;
        Ok(Asker { news, wish })
    }
}

async fn asks(place: &Place, token: Option<&str>, wish: &Mutex<Wish>, tell: &Sender<News>) {
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        ticks.tick().await;
        let wish = wish.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let answer = place.live(token, &wish).await.map(Box::new);
        if tell.send(News::Answer(answer)).is_err() {
            return;
        }
    }
}

/// A signal that ends the process; its terminal is put right before.
async fn ends() {
    let (Ok(mut terminate), Ok(mut hangup)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}

/// What a key comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Goes,
    /// Other pools are wanted.
    Asks,
    Ends,
}

/// What the screen is made of.
struct Watch {
    place: String,
    live: Option<Box<Live>>,
    history: VecDeque<u64>,
    trouble: Option<(Instant, String)>,
    skip: usize,
    wish: Wish,
    /// Statements are shown in the place of pools.
    statements: bool,
    /// The filter is being typed.
    typing: bool,
    colour: bool,
}

impl Watch {
    fn new(place: String, wish: Wish) -> Watch {
        // https://no-color.org: set, and not empty.
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Watch {
            place,
            live: None,
            history: VecDeque::new(),
            trouble: None,
            skip: 0,
            statements: false,
            wish,
            typing: false,
            colour,
        }
    }

    fn follow(mut self, terminal: &mut DefaultTerminal, asker: &Asker) -> std::io::Result<()> {
        loop {
            terminal.draw(|frame| {
                let area = frame.area();
                self.with_view(|view| screen::draw(view, area, frame.buffer_mut()));
            })?;
            if event::poll(KEYS)? {
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => match self.key(key) {
                        Outcome::Ends => return Ok(()),
                        Outcome::Asks => {
                            *asker.wish.lock().unwrap_or_else(PoisonError::into_inner) = self.wish.clone();
                        }
                        Outcome::Goes => {}
                    },
                    _ => {}
                }
            }
            while let Ok(news) = asker.news.try_recv() {
                match news {
                    News::End => return Ok(()),
                    News::Answer(answer) => self.take(answer),
                }
            }
        }
    }

    fn take(&mut self, answer: Result<Box<Live>, String>) {
        match answer {
            Ok(live) => {
                if self.live.as_ref().is_none_or(|known| known.at_ms != live.at_ms) {
                    self.history.push_back(live.all.requests_per_s.round() as u64);
                    if self.history.len() > HISTORY {
                        self.history.pop_front();
                    }
                }
                (self.live, self.trouble) = (Some(live), None);
                self.skip = self.skip.min(self.rows().saturating_sub(1));
            }
            Err(why) => {
                let since = self.trouble.take().map_or_else(Instant::now, |(since, _)| since);
                self.trouble = Some((since, why));
            }
        }
    }

    /// Lines that can be scrolled.
    fn rows(&self) -> usize {
        let Some(live) = &self.live else { return 0 };
        if self.statements { live.statements.len() } else { live.pools.len() }
    }

    fn with_view(&self, show: impl FnOnce(&View<'_>)) {
        let trouble =
            self.trouble.as_ref().map(|(since, why)| format!("{why} ({} s)", since.elapsed().as_secs()));
        let foot = if self.typing {
            format!("filter: {}_   Enter: done   Esc: all", self.wish.filter)
        } else {
            let filter =
                if self.wish.filter.is_empty() { String::new() } else { format!(" ({})", self.wish.filter) };
            let other = if self.statements { "pools" } else { "statements" };
            format!(
                "q quit   s sort: {}   / filter{filter}   t {other}   arrows scroll",
                self.wish.sort.name()
            )
        };
        show(&View {
            place: &self.place,
            live: self.live.as_deref(),
            history: Some(&self.history),
            trouble: trouble.as_deref(),
            skip: self.skip,
            statements: self.statements,
            foot,
            colour: self.colour,
        });
    }

    fn key(&mut self, key: KeyEvent) -> Outcome {
        if key.modifiers.contains(KeyModifiers::CONTROL) && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Outcome::Ends;
        }
        if self.typing {
            return self.typed(key.code);
        }
        let rows = self.rows();
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Outcome::Ends,
            KeyCode::Char('s') => {
                let at = Sort::ALL.iter().position(|sort| *sort == self.wish.sort).unwrap_or(0);
                self.wish.sort = Sort::ALL[(at + 1) % Sort::ALL.len()];
                let sort = self.wish.sort;
                if let Some(live) = &mut self.live {
                    // Those that are here at once; the others with the next answer.
                    live.pools.sort_by(|a, b| sort.compare(a, b));
                }
                return Outcome::Asks;
            }
            KeyCode::Char('t') => (self.statements, self.skip) = (!self.statements, 0),
            KeyCode::Char('/' | 'f') => self.typing = true,
            KeyCode::Down | KeyCode::Char('j') => self.skip = (self.skip + 1).min(rows.saturating_sub(1)),
            KeyCode::Up | KeyCode::Char('k') => self.skip = self.skip.saturating_sub(1),
            KeyCode::PageDown => self.skip = (self.skip + 10).min(rows.saturating_sub(1)),
            KeyCode::PageUp => self.skip = self.skip.saturating_sub(10),
            KeyCode::Home => self.skip = 0,
            _ => {}
        }
        Outcome::Goes
    }

    fn typed(&mut self, code: KeyCode) -> Outcome {
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.wish.filter.clear();
            }
            KeyCode::Backspace => drop(self.wish.filter.pop()),
            KeyCode::Char(c) if self.wish.filter.chars().count() < FILTER => self.wish.filter.push(c),
            _ => return Outcome::Goes,
        }
        self.skip = 0;
        Outcome::Asks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Watch {
        Watch::new("http://h:1".into(), Wish { top: 5, ..Wish::default() })
    }

    fn press(watch: &mut Watch, code: KeyCode) -> Outcome {
        watch.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn keys() {
        let mut watch = watch();
        assert_eq!(press(&mut watch, KeyCode::Char('s')), Outcome::Asks);
        assert_eq!(watch.wish.sort, Sort::Waiting);
        for _ in 1..Sort::ALL.len() {
            press(&mut watch, KeyCode::Char('s'));
        }
        assert_eq!(watch.wish.sort, Sort::Activity, "all in turn");
        press(&mut watch, KeyCode::Char('/'));
        for c in ['q', 's', 'x'] {
            assert_eq!(press(&mut watch, KeyCode::Char(c)), Outcome::Asks, "it is text now");
        }
        press(&mut watch, KeyCode::Backspace);
        press(&mut watch, KeyCode::Enter);
        assert_eq!(watch.wish.filter, "qs");
        assert_eq!(press(&mut watch, KeyCode::Char('q')), Outcome::Ends);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        press(&mut watch, KeyCode::Char('/'));
        assert_eq!(watch.key(interrupt), Outcome::Ends, "while typing, too");
        assert_eq!(press(&mut watch, KeyCode::Esc), Outcome::Asks);
        assert!(watch.wish.filter.is_empty() && !watch.typing);
    }

    #[test]
    fn old_figures_stay_and_are_said_to_be_old() {
        let mut watch = watch();
        let mut live = Live { at_ms: 5, ..Live::default() };
        live.all.requests_per_s = 7.0;
        for _ in 0..2 {
            watch.take(Ok(Box::new(live.clone())));
        }
        assert_eq!(watch.history, [7], "the same look twice is one");
        watch.take(Err("cannot reach it".into()));
        watch.take(Err("cannot reach it".into()));
        let mut text = String::new();
        watch.with_view(|view| text = screen::plain(view, 80, 24));
        assert!(text.contains("cannot reach it (0 s)") && text.contains("7 per second"), "{text}");
        for n in 0..2 * HISTORY as u64 {
            live.at_ms = 10 + n;
            watch.take(Ok(Box::new(live.clone())));
        }
        assert!(watch.trouble.is_none() && watch.history.len() == HISTORY);
    }
}
