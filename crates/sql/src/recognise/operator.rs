//! `OPERATOR(schema.signs)`: PostgreSQL's way to name an operator with its schema.
//!
//! It looks like a call of a function `operator`, which only what is in the parentheses decides. Which code
//! the signs stand for is looked up as for any operator (`names.rs`).
//!
//! Invariant: what is not surely an operator is a call.

use super::Recogniser;
use super::names::sign_of;
use crate::catalogue::NameKey;
use crate::token::{Kind, Token};
use crate::words::Func;

/// What stands in the parentheses so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Named {
    /// Behind `OPERATOR(`, before the parenthesis that closes it.
    inside: bool,
    /// Names of schemas so far, and whether the only one is `pg_catalog`.
    names: u8,
    in_catalog: bool,
    signs: [u8; Named::SIGNS],
    len: u8,
}

impl Named {
    /// Longer ones count as calls of nobody knows what.
    const SIGNS: usize = 8;

    /// Takes a token. None: these are no operator's parentheses.
    fn take(&mut self, token: &Token<'_>, last: Kind) -> Option<()> {
        if let Some(sign) = sign_of(token) {
            let begins = matches!(last, Kind::Open | Kind::Dot);
            (begins || self.len > 0).then_some(())?;
            *self.signs.get_mut(usize::from(self.len))? = sign;
            self.len += 1;
            return Some(());
        }
        match token.kind {
            Kind::Word | Kind::Quoted if self.len == 0 && matches!(last, Kind::Open | Kind::Dot) => {
                self.names = self.names.saturating_add(1);
                let is_catalog = match token.kind {
                    Kind::Word => token.text.eq_ignore_ascii_case(b"pg_catalog"),
                    _ => token.text == b"pg_catalog",
                };
                self.in_catalog = self.names == 1 && is_catalog;
                Some(())
            }
            Kind::Dot if self.len == 0 && matches!(last, Kind::Word | Kind::Quoted) => Some(()),
            _ => None,
        }
    }
}

impl Recogniser {
    /// `OPERATOR(`: the word is the last token.
    pub(super) fn begin_operator(&mut self) {
        self.now.operator = Named { inside: true, ..Named::default() };
    }

    /// A token behind `OPERATOR(`, if that was the last one but those that follow it.
    pub(super) fn operator_token(&mut self, token: &Token<'_>) {
        if !self.now.operator.inside {
            return;
        }
        let mut named = self.now.operator;
        if token.kind == Kind::Close && named.len > 0 {
            self.now.operator.inside = false;
            let signs = named.signs.get(..usize::from(named.len)).unwrap_or_default();
            // Without a schema it is what the signs alone are.
            if named.names > 0 && !named.in_catalog {
                self.call_named(NameKey::of_operator(signs));
            }
            return;
        }
        named.inside = named.take(token, self.now.last.kind).is_some();
        self.now.operator = named;
        if !named.inside {
            self.call_named(NameKey::of(b"operator"));
        }
    }

    /// Code of this name may be run here.
    fn call_named(&mut self, name: NameKey) {
        let last = std::mem::replace(&mut self.last_name, name);
        self.call(Func::Unknown);
        self.last_name = last;
    }
}
