//! The scanner: the lexer and the recogniser joined.

use crate::catalogue::Catalogue;
use crate::lex::Lexer;
use crate::recognise::Recogniser;
use crate::{Class, Dialect};
use std::sync::Arc;

/// Reads a text in pieces and says at the end what it is.
///
/// Memory is constant: what the text is does not depend on how it is cut, and nothing of it is kept but names.
#[derive(Debug, Clone)]
pub struct Scanner {
    lexer: Lexer,
    recogniser: Recogniser,
}

impl Scanner {
    /// A scanner at the start of a text.
    pub fn new(dialect: Dialect) -> Scanner {
        Scanner { lexer: Lexer::new(dialect), recogniser: Recogniser::new(dialect, false) }
    }

    /// The same, and [`Class::fingerprint`] will be computed.
    pub fn with_fingerprint(dialect: Dialect) -> Scanner {
        Scanner { lexer: Lexer::new(dialect), recogniser: Recogniser::new(dialect, true) }
    }

    /// Looks every word up in the catalogue of the text's database. Before the first piece.
    pub fn watch(&mut self, catalogue: Arc<Catalogue>) {
        self.recogniser.watch(catalogue);
    }

    /// Reads the next piece of the text; it may be cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.lexer.feed(bytes, &mut self.recogniser);
    }

    /// The text is at its end.
    pub fn finish(mut self) -> Class {
        self.lexer.finish(&mut self.recogniser);
        self.recogniser.finish(self.lexer.doubtful, self.lexer.executable)
    }
}

/// The class of a whole text, with its fingerprint.
pub fn classify(dialect: Dialect, text: &[u8]) -> Class {
    let mut scanner = Scanner::with_fingerprint(dialect);
    scanner.feed(text);
    scanner.finish()
}

/// The same, with every word looked up in the catalogue of its database, if that is known.
pub fn classify_in(dialect: Dialect, text: &[u8], catalogue: Option<&Arc<Catalogue>>) -> Class {
    let mut scanner = Scanner::with_fingerprint(dialect);
    if let Some(catalogue) = catalogue {
        scanner.watch(Arc::clone(catalogue));
    }
    scanner.feed(text);
    scanner.finish()
}
