//! The scanner: the lexer and the recogniser joined.

use crate::catalogue::{Block, Proof};
use crate::lex::Lexer;
use crate::recognise::Recogniser;
use crate::{Class, Dialect};

/// Reads a text in pieces and says at the end what it is.
///
/// Memory is constant: what the text is does not depend on how it is cut, and nothing of it is kept but
/// names.
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

    /// Looks every word up in the catalogue of the text's database. Before the first piece. Returns the state
    /// by which the text will have been judged.
    pub fn watch(&mut self, proof: Proof) -> u64 {
        let state = proof.state;
        self.recogniser.watch(proof);
        state
    }

    /// Reads the next piece of the text; it may be cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.lexer.feed(bytes, &mut self.recogniser);
    }

    /// The text is at its end.
    pub fn finish(mut self) -> Class {
        self.lexer.finish(&mut self.recogniser);
        self.conclude()
    }

    /// The same behind the last token.
    fn conclude(self) -> Class {
        let Scanner { lexer, mut recogniser } = self;
        if lexer.lent_stays {
            recogniser.lent_stays();
        }
        let mut class = recogniser.finish(lexer.doubtful, lexer.executable);
        class.lends_settings |= lexer.hinted;
        class
    }
}

/// The class of a whole text, with its fingerprint.
pub fn classify(dialect: Dialect, text: &[u8]) -> Class {
    let mut scanner = Scanner::with_fingerprint(dialect);
    scanner.feed(text);
    scanner.finish()
}

/// The same, with every word looked up in the catalogue of its database, if that is known; and the state by
/// which it was judged, 0 for none.
pub fn classify_in(dialect: Dialect, text: &[u8], proof: Option<Proof>) -> (Class, u64) {
    let mut scanner = Scanner::with_fingerprint(dialect);
    let state = proof.map_or(0, |proof| scanner.watch(proof));
    scanner.feed(text);
    scanner.lexer.finish(&mut scanner.recogniser);
    if let Some((places, catalogue)) = scanner.recogniser.places_of_blocks() {
        let block = Block::of_places(dialect, text, places, catalogue);
        scanner.recogniser.block = block.map(Box::new);
    }
    (scanner.conclude(), state)
}
