//! The contents of a report, independent of the output format: facts, sentences, tables and plots.
//!
//! Owns: the model that `terminal`, `csv` and `html` print. Must not know: where the figures come from.
//! Everything that a run, a comparison, a ramp or an experiment shows is one of these, so each output format
//! is implemented once.

use serde::Serialize;

/// A report.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Page {
    /// What it is about, in a few words.
    pub title: String,
    /// The answer, in one sentence or a few.
    pub lead: Vec<String>,
    /// Its parts.
    pub sections: Vec<Section>,
}

/// A part of a report.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// What it shows.
    pub blocks: Vec<Block>,
}

/// One thing in a section.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Block {
    /// A paragraph.
    Text {
        /// The words.
        text: String,
    },
    /// A sentence that must not be overlooked.
    Warning {
        /// The words.
        text: String,
    },
    /// A few figures that matter most.
    Facts {
        /// Name and figure.
        facts: Vec<Fact>,
    },
    /// Rows and columns.
    Table(Table),
    /// A picture.
    Plot(Plot),
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What it is.
    pub name: String,
    /// The figure with its unit.
    pub value: String,
}

/// Rows and columns of text. The first column names the row; columns are aligned as `numbers` says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Headings, one for each column.
    pub columns: Vec<String>,
    /// For each column: it holds numbers, and is aligned on the right.
    pub numbers: Vec<bool>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table whose first column is text and whose other columns are numbers.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Table {
        let columns: Vec<String> = columns.into_iter().map(Into::into).collect();
        let numbers = (0..columns.len()).map(|n| n > 0).collect();
        Table { columns, numbers, rows: Vec::new() }
    }

    /// The columns with these numbers hold text.
    pub fn with_text(mut self, columns: &[usize]) -> Table {
        for &column in columns {
            if let Some(is_number) = self.numbers.get_mut(column) {
                *is_number = false;
            }
        }
        self
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        debug_assert_eq!(cells.len(), self.columns.len(), "{:?}", self.columns);
        self.rows.push(cells);
    }
}

/// How an axis is divided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By powers of ten.
    Log,
    /// By nines: a percentile p stands at `1 / (1 - p/100)`, and is labelled as a percentile.
    Nines,
    /// By powers of two.
    Doubling,
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Axis {
    /// What it measures, with its unit.
    pub label: String,
    /// How it is divided.
    pub scale: Scale,
}

impl Axis {
    /// An even axis.
    pub fn linear(label: &str) -> Axis {
        Axis { label: label.to_owned(), scale: Scale::Linear }
    }

    /// An axis of this kind.
    pub fn new(label: &str, scale: Scale) -> Axis {
        Axis { label: label.to_owned(), scale }
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Draw {
    /// A line.
    #[default]
    Line,
    /// Points that a thin line joins.
    Points,
    /// A thin broken line: what was fitted, not measured.
    Fitted,
    /// Bars.
    Bars,
}

/// One series of a plot.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its values, one for each x; nothing where there is none.
    pub values: Vec<Option<f64>>,
    /// Half the width of the confidence interval of each value; empty: not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub error: Vec<Option<f64>>,
    /// How it is drawn.
    pub draw: Draw,
    /// It belongs to the right axis.
    pub right: bool,
    /// The number of its colour; series of one colour belong together.
    pub colour: usize,
}

/// A line across a plot that marks a place on its x axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mark {
    /// Where.
    pub x: f64,
    /// What is there.
    pub label: String,
}

/// A picture: series over a common x, with one y axis or two.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Plot {
    /// Its heading.
    pub title: String,
    /// Plots of one group share their cursor and their zoom; empty: none.
    pub group: String,
    /// The x axis.
    pub x_axis: Axis,
    /// The y axis on the left.
    pub y_axis: Axis,
    /// The y axis on the right, if a series needs it.
    pub right_axis: Option<Axis>,
    /// The x of each point, ascending.
    pub xs: Vec<f64>,
    /// The series.
    pub series: Vec<Series>,
    /// Marked places.
    pub marks: Vec<Mark>,
}

impl Section {
    /// An empty section.
    pub fn new(title: impl Into<String>) -> Section {
        Section { title: title.into(), blocks: Vec::new() }
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Text { text: text.into() });
    }

    /// Adds a warning.
    pub fn warning(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Warning { text: text.into() });
    }

    /// Adds figures that matter most.
    pub fn facts(&mut self, facts: impl IntoIterator<Item = (String, String)>) {
        let facts = facts.into_iter().map(|(name, value)| Fact { name, value }).collect();
        self.blocks.push(Block::Facts { facts });
    }

    /// Adds a table, unless it is empty.
    pub fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }

    /// Adds a plot, unless it has no points.
    pub fn plot(&mut self, plot: Plot) {
        if !plot.xs.is_empty() && plot.series.iter().any(|s| s.values.iter().any(Option::is_some)) {
            self.blocks.push(Block::Plot(plot));
        }
    }
}

/// A number as people read it: thousands apart, and no more digits than mean something.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let magnitude = value.abs();
    let digits = match magnitude {
        m if m >= 100.0 || m == 0.0 => 0,
        m if m >= 10.0 => 1,
        m if m >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{magnitude:.digits$}");
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), None), |(w, r)| (w, Some(r)));
    // Whole digits of a finite double are digits, and few enough up to 1e19.
    let mut out = if value < 0.0 { "-".to_owned() } else { String::new() };
    out.push_str(&whole.parse().map_or_else(|_| whole.to_owned(), count));
    if let Some(rest) = rest {
        out.push('.');
        out.push_str(rest);
    }
    out
}

/// A whole number as people read it: thousands apart.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Milliseconds as people read them, with the unit that fits.
pub fn milliseconds(ms: f64) -> String {
    if !ms.is_finite() {
        return "-".to_owned();
    }
    match ms.abs() {
        m if m >= 10_000.0 => format!("{} s", number(ms / 1e3)),
        m if m >= 1.0 || m == 0.0 => format!("{} ms", number(ms)),
        _ => format!("{} us", number(ms * 1e3)),
    }
}

/// Bytes as people read them.
pub fn bytes(bytes: f64) -> String {
    match bytes.abs() {
        b if b >= 1e9 => format!("{} GB", number(bytes / 1e9)),
        b if b >= 1e6 => format!("{} MB", number(bytes / 1e6)),
        b if b >= 1e3 => format!("{} kB", number(bytes / 1e3)),
        _ => format!("{bytes:.0} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        let cases = [
            (0.0, "0"),
            (0.1234, "0.123"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (999.6, "1,000"),
            (1234.5, "1,234"),
            (-1_234_567.0, "-1,234,567"),
            (f64::NAN, "-"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text, "{value}");
        }
        assert_eq!(milliseconds(0.035), "35.0 us");
        assert_eq!(milliseconds(35.04), "35.0 ms");
        assert_eq!(milliseconds(35_040.0), "35.0 s");
        assert_eq!(
            (bytes(512.0), bytes(3_200.0), bytes(8e6)),
            ("512 B".into(), "3.20 kB".into(), "8.00 MB".into())
        );
    }

    #[test]
    fn what_shows_nothing_is_left_out() {
        let mut section = Section::new("x");
        section.table(Table::new(["a"]));
        section.plot(Plot {
            xs: vec![1.0],
            series: vec![Series { values: vec![None], ..Series::default() }],
            ..Plot::default()
        });
        assert!(section.blocks.is_empty());
    }
}
