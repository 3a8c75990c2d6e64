//! Rows for spreadsheets and other programs (RFC 4180).
//!
//! Owns: quoting. Numbers are written as they are, without thousands marks and units: those stand in the
//! headings.

/// Rows as CSV, the headings first.
pub fn write<H: AsRef<str>>(headings: &[H], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut out = String::new();
    line(&mut out, headings.iter().map(AsRef::as_ref));
    for row in rows {
        line(&mut out, row.iter().map(String::as_str));
    }
    out
}

fn line<'a>(out: &mut String, cells: impl Iterator<Item = &'a str>) {
    for (n, cell) in cells.enumerate() {
        if n > 0 {
            out.push(',');
        }
        if cell.contains(['"', ',', '\n', '\r']) {
            out.push('"');
            out.push_str(&cell.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(cell);
        }
    }
    out.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_quotes_has_them() {
        let rows = [vec!["1".to_owned(), "a,b".to_owned()], vec!["2".to_owned(), "say \"x\"\n".to_owned()]];
        assert_eq!(write(&["n", "text"], rows), "n,text\r\n1,\"a,b\"\r\n2,\"say \"\"x\"\"\n\"\r\n");
    }
}
