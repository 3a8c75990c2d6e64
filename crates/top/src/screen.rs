//! The screen: from figures to cells of text.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Sparkline, Table, Widget};
use std::collections::VecDeque;
use weir_admin::live::{DatabaseState, Live, PoolFigures, State, Times};

/// Databases in trouble, and warnings, that are named on a screen.
const TROUBLES: usize = 4;
/// A client that waits longer is shown in red.
const LONG_WAIT_US: u64 = 1_000_000;

/// What is shown.
#[derive(Debug, Default)]
pub struct View<'a> {
    /// Where it comes from.
    pub place: &'a str,
    /// The figures.
    pub live: Option<&'a Live>,
    /// Queries each second, oldest first.
    pub history: Option<&'a VecDeque<u64>>,
    /// Why the figures are old.
    pub trouble: Option<&'a str>,
    /// The first pool that is shown.
    pub skip: usize,
    /// Statements in the place of pools.
    pub statements: bool,
    /// The last line.
    pub foot: String,
    /// With colours.
    pub colour: bool,
}

/// Text as a terminal may get it: without control characters, and without those that turn text around.
pub fn tame(text: &str) -> String {
    let is_wild = |c: char| {
        c.is_control()
            || matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if is_wild(c) { '\u{FFFD}' } else { c }).collect()
}

/// A time in three digits and a unit.
pub fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..10_000 => format!("{:.2} ms", us as f64 / 1e3),
        10_000..100_000 => format!("{:.1} ms", us as f64 / 1e3),
        100_000..1_000_000 => format!("{} ms", us / 1_000),
        1_000_000..100_000_000 => format!("{:.2} s", us as f64 / 1e6),
        _ => format!("{} s", us / 1_000_000),
    }
}

/// A whole number with commas.
pub fn whole(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn rate(n: f64) -> String {
    if n >= 100.0 || n == n.trunc() { whole(n.round() as u64) } else { format!("{n:.1}") }
}

fn bytes(n: f64) -> String {
    match n {
        n if n >= 1e9 => format!("{:.1} GB", n / 1e9),
        n if n >= 1e6 => format!("{:.1} MB", n / 1e6),
        n if n >= 1e3 => format!("{:.1} kB", n / 1e3),
        n => format!("{n:.0} B"),
    }
}

fn ago(s: u64) -> String {
    match s {
        0..120 => format!("{s} s"),
        120..7_200 => format!("{} min", s / 60),
        7_200..172_800 => format!("{} h", s / 3_600),
        _ => format!("{} d", s / 86_400),
    }
}

#[derive(Clone, Copy)]
struct Paint {
    colour: bool,
}

impl Paint {
    fn of(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    fn quiet(self) -> Style {
        self.of(Color::DarkGray)
    }

    /// Without colours it stands out all the same.
    fn bad(self) -> Style {
        self.of(Color::Red).add_modifier(Modifier::BOLD)
    }
}

/// Draws it.
pub fn draw(view: &View<'_>, area: Rect, out: &mut Buffer) {
    let paint = Paint { colour: view.colour };
    let mut lines = Vec::new();
    let mut head = vec![Span::styled("Weir", Style::new().add_modifier(Modifier::BOLD))];
    match view.live {
        Some(live) => {
            let style = match live.state {
                State::Ready => paint.of(Color::Green),
                State::Paused => paint.of(Color::Yellow),
                State::Stopping => paint.bad(),
            };
            head.push(format!(" {}  ", tame(&live.version)).into());
            head.push(Span::styled(live.state.name(), style));
            head.push(format!("  up {}  ", ago(live.uptime_s)).into());
        }
        None => head.push("  ".into()),
    }
    head.push(Span::styled(tame(view.place), paint.quiet()));
    lines.push(Line::from(head));
    if let Some(trouble) = view.trouble {
        lines.push(Line::styled(tame(trouble), paint.bad()));
    }
    if let Some(live) = view.live {
        lines.extend(summary(live, paint));
        lines.extend(troubles(live, paint));
    }
    let history = view.history.filter(|history| history.len() > 1 && area.height >= 24);
    let [top, middle, bottom, foot] = Layout::vertical([
        Constraint::Length(u16::try_from(lines.len()).unwrap_or(u16::MAX)),
        Constraint::Length(if history.is_some() { 5 } else { 1 }),
        Constraint::Min(0),
        Constraint::Length(u16::from(!view.foot.is_empty())),
    ])
    .areas(area);
    Paragraph::new(lines).render(top, out);
    if let Some(history) = history {
        chart(history, middle, out, paint);
    }
    match view.live {
        Some(live) if view.statements => statements(live, view.skip, bottom, out, paint),
        Some(live) => pools(live, view.skip, bottom, out, paint),
        None => {}
    }
    Line::styled(tame(&view.foot), paint.quiet()).render(foot, out);
}

fn summary(live: &Live, paint: Paint) -> Vec<Line<'static>> {
    let Live { all, queue, servers, clients, .. } = live;
    let name = |name: &'static str| Span::styled(format!("{name:<10}"), paint.quiet());
    let times = |times: &Times| {
        format!("p50 {}, p95 {}, p99 {}", time(times.p50_us), time(times.p95_us), time(times.p99_us))
    };
    let longest =
        if queue.waiting > 0 { format!(", longest {}", time(queue.longest_us)) } else { String::new() };
    let waiting = format!("{} clients{longest}", whole(queue.waiting));
    let style = if queue.longest_us > LONG_WAIT_US { paint.bad() } else { Style::new() };
    let waits = match all.waits_per_s {
        0.0 => "no request had to wait for a server".to_owned(),
        n => format!("{}, of {} requests per second that waited", times(&all.wait), rate(n)),
    };
    let flow = format!(
        "{} per second, {}/s in, {}/s out",
        rate(all.requests_per_s),
        bytes(all.received_bytes_per_s),
        bytes(all.sent_bytes_per_s)
    );
    let open = format!(
        "{} active, {} idle, {} open of {}, {} pinned",
        whole(servers.active),
        whole(servers.idle),
        whole(servers.open),
        whole(servers.limit),
        whole(servers.pinned)
    );
    let there = format!(
        "{} of {}, {} logging in; {} logins per second, {} refused",
        whole(clients.connected),
        whole(clients.limit),
        whole(clients.logging_in),
        rate(clients.logins_per_s),
        rate(clients.refusals_per_s)
    );
    let mut lines = vec![
        Line::from(vec![name("queries"), flow.into()]),
        Line::from(vec![name("query"), times(&all.query).into()]),
        Line::from(vec![name("wait"), waits.into()]),
        Line::from(vec![name("waiting"), Span::styled(waiting, style)]),
        Line::from(vec![name("servers"), open.into()]),
        Line::from(vec![name("clients"), there.into()]),
    ];
    let list = |parts: Vec<String>| if parts.is_empty() { "none".to_owned() } else { parts.join(", ") };
    let counted = |name: &str, total, per_s| {
        let now = if per_s > 0.0 { format!(" (+{}/s)", rate(per_s)) } else { String::new() };
        format!("{} {}{now}", tame(name), whole(total))
    };
    let pins = live.pins.iter().map(|pin| counted(&pin.reason, pin.total, pin.per_s)).collect();
    let faults = live.faults.iter().map(|fault| counted(&fault.kind, fault.total, fault.per_s)).collect();
    lines.push(Line::from(vec![name("pins"), list(pins).into()]));
    lines.push(Line::from(vec![name("errors"), list(faults).into()]));
    lines
}

/// Databases that cannot be reached, and the doctor's warnings.
fn troubles(live: &Live, paint: Paint) -> Vec<Line<'static>> {
    let failing = live.databases.iter().filter(|database| database.state == DatabaseState::Failing);
    let mut all: Vec<Line<'static>> = failing
        .map(|database| {
            let why = database.fault.as_ref().map_or_else(String::new, |fault| {
                let words =
                    fault.detail.as_deref().filter(|words| !words.is_empty()).unwrap_or(&fault.meaning);
                format!(" {} s ago: {}", fault.ago_s, tame(words))
            });
            let name = tame(&database.database);
            Line::styled(format!("FAILING   {} {name}{why}", database.protocol), paint.bad())
        })
        .collect();
    all.extend(
        live.warnings
            .iter()
            .map(|warning| Line::styled(format!("doctor    {}", tame(warning)), paint.of(Color::Yellow))),
    );
    let more = all.len().saturating_sub(TROUBLES);
    all.truncate(TROUBLES);
    if more > 0 {
        all.push(Line::styled(format!("          and {more} more"), paint.quiet()));
    }
    all
}

/// Queries each second, the newest at the right.
fn chart(history: &VecDeque<u64>, area: Rect, out: &mut Buffer, paint: Paint) {
    let [label, bars] = Layout::vertical([Constraint::Length(2), Constraint::Min(0)]).areas(area);
    let shown = history.len().min(usize::from(bars.width));
    let data: Vec<u64> = history.iter().skip(history.len() - shown).copied().collect();
    let most = data.iter().max().copied().unwrap_or(0);
    let words = format!("\nqueries per second, the last {} s, at most {}", data.len(), whole(most));
    Paragraph::new(words).style(paint.quiet()).render(label, out);
    Sparkline::default().data(data).style(paint.of(Color::Cyan)).render(bars, out);
}

fn pools(live: &Live, skip: usize, area: Rect, out: &mut Buffer, paint: Paint) {
    let wide = area.width >= 100;
    let head = [
        "DATABASE",
        "USER",
        "QUERIES/S",
        "QUERY",
        "WAIT",
        "WAITING",
        "LONGEST",
        "ACTIVE",
        "OPEN",
        "LIMIT",
        "STATE",
    ];
    let rare = |at: usize| !wide && matches!(at, 4 | 8);
    let right = |text: &str, width: usize| format!("{text:>width$}");
    let widths = [0, 0, 9, 8, 8, 7, 8, 6, 6, 6, 8];
    let cells = |texts: [String; 11]| -> Vec<String> {
        let kept = texts.into_iter().enumerate().filter(|(at, _)| !rare(*at));
        kept.map(|(at, text)| if (2..10).contains(&at) { right(&text, widths[at]) } else { text }).collect()
    };
    let rows = live.pools.iter().skip(skip).map(|pool| {
        let style = match pool {
            pool if pool.failing || pool.longest_us > LONG_WAIT_US => paint.bad(),
            pool if pool.waiting > 0 || pool.paused => paint.of(Color::Yellow),
            _ => Style::new(),
        };
        Row::new(cells(row(pool))).style(style)
    });
    let constraints = widths.iter().enumerate().filter(|(at, _)| !rare(*at)).map(|(at, &width)| match at {
        0 | 1 => Constraint::Fill(1),
        _ => Constraint::Length(width as u16),
    });
    Table::new(rows, constraints)
        .header(Row::new(cells(head.map(str::to_owned))).style(paint.quiet()))
        .column_spacing(1)
        .render(area, out);
}

/// The statements that have taken most time in the last seconds.
fn statements(live: &Live, skip: usize, area: Rect, out: &mut Buffer, paint: Paint) {
    const HEAD: [&str; 8] = ["RUNNING", "CALLS/S", "P50", "P95", "P99", "ERRORS/S", "DATABASE", "STATEMENT"];
    const WIDTHS: [u16; 8] = [7, 9, 8, 8, 8, 8, 12, 0];
    if live.statements.is_empty() {
        let words =
            "no statements: --token-file shows them (http.token_file of weir serve), after 10 seconds";
        Paragraph::new(words).style(paint.quiet()).render(area, out);
        return;
    }
    let cells = |texts: [String; 8]| -> Vec<String> {
        let padded = texts.into_iter().zip(WIDTHS).enumerate();
        padded
            .map(|(at, (text, width))| if at < 6 { format!("{text:>0$}", usize::from(width)) } else { text })
            .collect()
    };
    let rows = live.statements.iter().skip(skip).map(|statement| {
        let times = &statement.times;
        let style = if statement.errors_per_s > 0.0 { paint.of(Color::Yellow) } else { Style::new() };
        Row::new(cells([
            format!("{:.2}", statement.in_progress),
            rate(statement.calls_per_s),
            time(times.p50_us),
            time(times.p95_us),
            time(times.p99_us),
            rate(statement.errors_per_s),
            tame(&statement.database),
            tame(&statement.statement),
        ]))
        .style(style)
    });
    let constraints = WIDTHS.map(|width| match width {
        0 => Constraint::Fill(1),
        width => Constraint::Length(width),
    });
    Table::new(rows, constraints)
        .header(Row::new(cells(HEAD.map(str::to_owned))).style(paint.quiet()))
        .column_spacing(1)
        .render(area, out);
}

fn row(pool: &PoolFigures) -> [String; 11] {
    let busy = pool.requests_per_s > 0.0;
    let when = |is: bool, text: String| if is { text } else { "-".to_owned() };
    let state = match pool {
        pool if pool.failing => "failing",
        pool if pool.paused => "paused",
        pool if pool.waiting > 0 => "waiting",
        pool if pool.servers > 0 => "up",
        _ => "-",
    };
    [
        tame(&pool.database),
        tame(&pool.user),
        rate(pool.requests_per_s),
        when(busy, time(pool.query_mean_us)),
        when(busy, time(pool.wait_mean_us)),
        whole(pool.waiting as u64),
        when(pool.waiting > 0, time(pool.longest_us)),
        whole(pool.active as u64),
        whole(pool.servers as u64),
        whole(pool.limit as u64),
        state.to_owned(),
    ]
}

/// The screen as lines of plain text, as wide as the widest of them at most.
pub fn plain(view: &View<'_>, width: u16, height: u16) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    draw(view, area, &mut buffer);
    let mut lines: Vec<String> = (0..height)
        .map(|y| {
            let line: String =
                (0..width).filter_map(|x| buffer.cell((x, y)).map(|cell| cell.symbol())).collect();
            line.trim_end().to_owned()
        })
        .collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_admin::live::{DatabaseFigures, LastFault, StatementFigures};

    fn live() -> Live {
        let mut live = Live { version: "1.2.3".into(), uptime_s: 300, ..Live::default() };
        live.all.requests_per_s = 12_345.6;
        live.all.query = Times { p50_us: 900, p95_us: 2_500, p99_us: 1_500_000 };
        (live.queue.waiting, live.queue.longest_us) = (7, 2_000_000);
        live.pools = (0..100)
            .map(|n| PoolFigures {
                database: format!("db{n}"),
                user: "app\u{1b}[2J\u{202E}".into(),
                requests_per_s: 1.5,
                ..PoolFigures::default()
            })
            .collect();
        let fault = LastFault { ago_s: 3, meaning: "It cannot be reached.".into(), ..LastFault::default() };
        live.databases = vec![DatabaseFigures {
            protocol: "postgres".into(),
            database: "gone".into(),
            state: DatabaseState::Failing,
            fault: Some(fault),
            ..DatabaseFigures::default()
        }];
        live
    }

    #[test]
    fn a_screen_has_what_matters_and_nothing_wild() {
        let live = live();
        let view = View { place: "http://h:1", live: Some(&live), foot: "q".into(), ..View::default() };
        for (width, height) in [(120, 40), (80, 24), (40, 12), (20, 3), (1, 1), (0, 0)] {
            let text = plain(&view, width, height);
            assert!(text.lines().count() <= usize::from(height), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
            assert!(!text.contains('\u{1b}') && !text.contains('\u{202E}'), "{text}");
        }
        let text = plain(&view, 120, 40);
        for words in [
            "Weir 1.2.3  ready  up 5 min  http://h:1",
            "12,346 per second",
            "p50 900 us, p95 2.50 ms, p99 1.50 s",
            "7 clients, longest 2.00 s",
            "FAILING   postgres gone 3 s ago: It cannot be reached.",
            "DATABASE",
            "db0",
        ] {
            assert!(text.contains(words), "{words}\n{text}");
        }
    }

    #[test]
    fn the_list_of_pools_moves() {
        let live = live();
        let view = View { live: Some(&live), skip: 90, ..View::default() };
        let text = plain(&view, 120, 40);
        assert!(text.contains("db90") && !text.contains("db89"), "{text}");
    }

    #[test]
    fn statements_take_the_place_of_pools() {
        let mut live = live();
        let view =
            |live: &Live| plain(&View { live: Some(live), statements: true, ..View::default() }, 120, 40);
        assert!(view(&live).contains("no statements: --token-file shows them"), "{}", view(&live));
        live.statements = vec![StatementFigures {
            database: "app".into(),
            statement: "select ?\u{1b}[2J from t".into(),
            calls_per_s: 1_234.0,
            in_progress: 2.5,
            times: Times { p50_us: 900, p95_us: 2_500, p99_us: 1_500_000 },
            ..StatementFigures::default()
        }];
        let text = view(&live);
        assert!(!text.contains("db0") && !text.contains('\u{1b}'), "{text}");
        let line = text.lines().find(|line| line.contains("select ?")).unwrap();
        for words in ["2.50", "1,234", "900 us", "2.50 ms", "1.50 s", "app"] {
            assert!(line.contains(words), "{words}\n{text}");
        }
    }

    #[test]
    fn nothing_is_shown_where_nothing_is_known() {
        let view = View { place: "http://h:1", trouble: Some("cannot reach it"), ..View::default() };
        assert_eq!(plain(&view, 80, 24), "Weir  http://h:1\ncannot reach it\n");
    }

    #[test]
    fn numbers_are_short() {
        for (us, text) in [
            (0, "0 us"),
            (999, "999 us"),
            (1_000, "1.00 ms"),
            (99_900, "99.9 ms"),
            (100_000, "100 ms"),
            (1_000_000, "1.00 s"),
            (120_000_000, "120 s"),
        ] {
            assert_eq!(time(us), text);
        }
        assert_eq!(
            [whole(0), whole(999), whole(1_000), whole(1_234_567)],
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!([rate(0.0), rate(0.5), rate(99.9), rate(100.4)], ["0", "0.5", "99.9", "100"]);
    }
}
