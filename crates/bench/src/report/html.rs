//! A page as one self-contained HTML file: styles, script and data are inside, and its own policy forbids it
//! to fetch anything.
//!
//! Owns: the shell of the file and its escaping. Tables and sentences are plain HTML and readable without the
//! script, which only draws the plots. uPlot (MIT) draws them; its licence is included in the file.

use super::page::{Block, Page, Plot, Scale, Table};
use std::fmt::Write;

const UPLOT_SCRIPT: &str = include_str!("assets/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("assets/uPlot.min.css");
const UPLOT_LICENCE: &str = include_str!("assets/uPlot.LICENSE");
const STYLE: &str = include_str!("assets/page.css");
const SCRIPT: &str = include_str!("assets/page.js");

/// The page as an HTML file.
pub fn write(page: &Page) -> String {
    let mut plots = Vec::new();
    let body = body(page, &mut plots);
    let title = escape(&page.title);
    // Plain structs with string keys: it cannot fail.
    let data = inside_script(&serde_json::to_string(&plots).unwrap_or_else(|_| "[]".to_owned()));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{UPLOT_STYLE}\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\
         <footer>Made by Weir {version}. Plots by uPlot. Drag over a plot to zoom, double-click to see all of it again, \
         click a name in its legend to hide a line.</footer>\n</main>\n\
         <!--\nuPlot, which is part of this file:\n\n{UPLOT_LICENCE}\n-->\n\
         <script type=\"application/json\" id=\"plots\">{data}</script>\n\
         <script>{UPLOT_SCRIPT}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        version = env!("CARGO_PKG_VERSION"),
    )
}

fn body<'a>(page: &'a Page, plots: &mut Vec<&'a Plot>) -> String {
    let mut out = format!(
        "<header><h1>{}</h1><button id=\"theme\" type=\"button\">light / dark</button></header>\n<div class=\"lead\">",
        escape(&page.title)
    );
    for text in &page.lead {
        let _ = write!(out, "<p>{}</p>", escape(text));
    }
    out.push_str("</div>\n");
    for section in &page.sections {
        let _ = writeln!(out, "<section>\n<h2>{}</h2>", escape(&section.title));
        for block in &section.blocks {
            match block {
                Block::Text { text } => {
                    let _ = writeln!(out, "<p>{}</p>", escape(text));
                }
                Block::Warning { text } => {
                    let _ = writeln!(out, "<p class=\"warning\">{}</p>", escape(text));
                }
                Block::Facts { facts } => {
                    out.push_str("<dl>");
                    for fact in facts {
                        let (name, value) = (escape(&fact.name), escape(&fact.value));
                        let _ = write!(out, "<div><dt>{name}</dt><dd>{value}</dd></div>");
                    }
                    out.push_str("</dl>\n");
                }
                Block::Table(rows) => table(&mut out, rows),
                Block::Plot(plot) => {
                    figure(&mut out, plots.len(), plot);
                    plots.push(plot);
                }
            }
        }
        out.push_str("</section>\n");
    }
    out
}

fn table(out: &mut String, table: &Table) {
    let class =
        |n: usize| if table.numbers.get(n).copied().unwrap_or(false) { " class=\"number\"" } else { "" };
    out.push_str("<div class=\"scroll\"><table>");
    // Names and values need no headings.
    if table.columns.iter().any(|heading| !heading.is_empty()) {
        out.push_str("<thead><tr>");
        for (n, heading) in table.columns.iter().enumerate() {
            let _ = write!(out, "<th{}>{}</th>", class(n), escape(heading));
        }
        out.push_str("</tr></thead>");
    }
    out.push_str("<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (n, cell) in row.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", class(n), escape(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

fn figure(out: &mut String, number: usize, plot: &Plot) {
    let can_change = matches!(plot.y_axis.scale, Scale::Linear | Scale::Log);
    let button = if can_change { "<button type=\"button\" data-log></button>" } else { "" };
    let _ = writeln!(
        out,
        "<figure id=\"plot-{number}\"><figcaption><span>{}</span>{button}</figcaption><div class=\"place\"></div></figure>",
        escape(&plot.title)
    );
}

/// Text as HTML.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON that may stand in a script element: nothing in it can end the element or begin a comment.
fn inside_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::super::page::{Plot, Section, Series};
    use super::*;

    fn page_with(text: &str) -> String {
        let mut section = Section::new(text);
        section.text(text);
        section.warning(text);
        section.facts([(text.to_owned(), text.to_owned())]);
        let mut rows = Table::new([text]);
        rows.row([text]);
        section.table(rows);
        let series = Series { name: text.to_owned(), values: vec![Some(1.0)], ..Series::default() };
        section.plot(Plot { title: text.to_owned(), xs: vec![1.0], series: vec![series], ..Plot::default() });
        write(&Page { title: text.to_owned(), lead: vec![text.to_owned()], sections: vec![section] })
    }

    #[test]
    fn text_of_a_server_cannot_become_markup() {
        let html = page_with("</script><script>alert('x')</script><!--<b>&");
        assert!(!html.contains("<script>alert"));
        assert!(html.contains("&lt;/script&gt;&lt;script&gt;alert(&#39;x&#39;)"));
        assert!(html.contains("\\u003c/script>\\u003cscript>alert("));
        // Ours, and no other: data, uPlot, our own.
        assert_eq!(html.matches("<script").count(), 3);
        assert_eq!(html.matches("</script>").count(), 3);
    }

    #[test]
    fn it_fetches_nothing_and_carries_the_licence() {
        let html = page_with("x");
        assert!(html.contains("default-src 'none'"));
        for reference in [" src=", "<link", "@import", "url("] {
            assert!(!html.contains(reference), "{reference}");
        }
        assert!(html.contains("Permission is hereby granted"));
        assert!(!UPLOT_LICENCE.contains("--") && !UPLOT_SCRIPT.contains("</script"));
    }
}
