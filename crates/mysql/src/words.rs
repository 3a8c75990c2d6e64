//! Iterates over the words of a text, without its comments.
//!
//! Owns: where a word, a symbol or a string begins and ends. Must not know: what they mean; the full lexer is
//! `weir_sql`, which classifies a text once.

/// A word, a sign, or a whole string.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    start: usize,
    pub(crate) bytes: &'a [u8],
}

impl Piece<'_> {
    pub(crate) fn is(&self, word: &[u8]) -> bool {
        self.bytes.eq_ignore_ascii_case(word)
    }

    pub(crate) fn start(&self) -> usize {
        self.start
    }

    pub(crate) fn number(&self) -> Option<u64> {
        std::str::from_utf8(self.bytes).ok()?.parse().ok()
    }
}

/// The pieces of a text without its comments. What a comment says to the server (`/*! */`) is left out, too:
/// who reads texts by this does not read those.
pub(crate) struct Words<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Words<'a> {
        Words { text, at: 0 }
    }

    /// Behind the end of what begins here, which ends with `end`.
    fn behind(&self, from: usize, end: &[u8]) -> usize {
        let rest = self.text.get(from..).unwrap_or_default();
        let found = rest.windows(end.len()).position(|window| window == end);
        found.map_or(self.text.len(), |at| from + at + end.len())
    }

    fn behind_string(&self, quote: u8) -> usize {
        let mut at = self.at + 1;
        while let Some(&byte) = self.text.get(at) {
            at += if byte == b'\\' && quote != b'`' { 2 } else { 1 };
            if byte == quote {
                break;
            }
        }
        at.min(self.text.len())
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        loop {
            let rest = self.text.get(self.at..)?;
            let is_name =
                |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || *byte >= 0x80;
            let end = match rest {
                [] => return None,
                [byte, ..] if byte.is_ascii_whitespace() => {
                    self.at += 1;
                    continue;
                }
                [b'/', b'*', ..] => {
                    self.at = self.behind(self.at + 2, b"*/");
                    continue;
                }
                [b'#', ..] => {
                    self.at = self.behind(self.at, b"\n");
                    continue;
                }
                [b'-', b'-', byte, ..] if byte.is_ascii_whitespace() => {
                    self.at = self.behind(self.at, b"\n");
                    continue;
                }
                [quote @ (b'\'' | b'"' | b'`'), ..] => self.behind_string(*quote),
                [byte, ..] if is_name(byte) => {
                    self.at + rest.iter().position(|byte| !is_name(byte)).unwrap_or(rest.len())
                }
                [_, ..] => self.at + 1,
            };
            let piece = Piece { start: self.at, bytes: self.text.get(self.at..end)? };
            self.at = end;
            return Some(piece);
        }
    }
}
