//! A page as text: sentences wrapped, tables in columns. Plots are left to the HTML file.
//!
//! Owns: widths and rules. Must not know: what the figures mean.

use super::page::{Block, Page, Table};
use std::fmt::Write;

/// Columns that sentences fill at most.
const WIDTH: usize = 110;

/// Blanks before a table.
const INDENT: usize = 4;

/// The page as text.
pub fn page(page: &Page) -> String {
    let mut out = String::new();
    if !page.title.is_empty() {
        let _ = writeln!(out, "{}", page.title);
    }
    for text in &page.lead {
        wrap(&mut out, text, 0);
    }
    for section in &page.sections {
        // A section with nothing but plots has nothing to say here.
        if section.blocks.iter().all(|block| matches!(block, Block::Plot(_))) {
            continue;
        }
        let _ = writeln!(out, "\n{}:", section.title);
        for block in &section.blocks {
            match block {
                Block::Text { text } => wrap(&mut out, text, INDENT),
                Block::Warning { text } => wrap(&mut out, &format!("! {text}"), INDENT),
                Block::Facts { facts } => {
                    let width = facts.iter().map(|f| f.name.chars().count()).max().unwrap_or(0);
                    for fact in facts {
                        let _ = writeln!(out, "{:INDENT$}{:<width$}  {}", "", fact.name, fact.value);
                    }
                }
                Block::Table(rows) => out.push_str(&table(rows)),
                Block::Plot(_) => {}
            }
        }
    }
    out
}

/// A table in columns, each as wide as its widest cell.
pub fn table(table: &Table) -> String {
    let mut widths: Vec<usize> = table.columns.iter().map(|c| c.chars().count()).collect();
    for row in &table.rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    // Names and values need no headings.
    let headings = table.columns.iter().any(|heading| !heading.is_empty()).then_some(&table.columns);
    for row in headings.into_iter().chain(&table.rows) {
        let mut line = " ".repeat(INDENT);
        for (n, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let gap = if n > 0 { "  " } else { "" };
            let right = table.numbers.get(n).copied().unwrap_or(false);
            let _ =
                if right { write!(line, "{gap}{cell:>width$}") } else { write!(line, "{gap}{cell:<width$}") };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn wrap(out: &mut String, text: &str, indent: usize) {
    for paragraph in text.lines() {
        let mut line = " ".repeat(indent);
        for word in paragraph.split_whitespace() {
            if line.chars().count() + 1 + word.chars().count() > WIDTH && line.trim() != "" {
                out.push_str(line.trim_end());
                out.push('\n');
                line = " ".repeat(indent);
            }
            line.push_str(word);
            line.push(' ');
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::{Plot, Section, Series};
    use super::*;

    #[test]
    fn tables_stand_in_columns() {
        let mut rows = Table::new(["way", "queries/s", "p95"]);
        rows.row(["direct", "1,200", "3.1 ms"]);
        rows.row(["through Weir", "31,000", "12 ms"]);
        let text = table(&rows);
        assert_eq!(
            text,
            "    way           queries/s     p95\n    direct            1,200  3.1 ms\n    through Weir     31,000   12 ms\n"
        );
    }

    #[test]
    fn sentences_are_wrapped_and_plots_left_out() {
        let mut section = Section::new("Why");
        section.text("word ".repeat(60));
        let mut plots = Section::new("Pictures");
        plots.plot(Plot {
            xs: vec![1.0],
            series: vec![Series { values: vec![Some(1.0)], ..Series::default() }],
            ..Plot::default()
        });
        let text =
            page(&Page { title: "T".into(), lead: vec!["Lead.".into()], sections: vec![section, plots] });
        assert!(text.starts_with("T\nLead.\n\nWhy:\n    word word"), "{text}");
        assert!(text.lines().all(|line| line.len() <= WIDTH));
        assert!(!text.contains("Pictures"));
    }
}
