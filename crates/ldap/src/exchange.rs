//! One login: questions and answers on one connection.
//!
//! Invariants: a state is named after the answer it waits for; nothing is sent in clear where TLS is due; a
//! name that the search does not find costs as many questions as one that it finds.

use crate::filter::put_filter;
use crate::message::{self, Outcome, Said};
use crate::name::{for_log, in_dn};
use crate::options::{Encryption, Options, Way, filled_in};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Bytes that a server may send for one login: an entry, and references to other servers.
const EXCHANGE_BYTES: usize = 256 * 1024;

/// The filter that no entry fits: "or" of nothing (RFC 4526).
const NOBODY: u8 = 0xA1;

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// More of the server's bytes.
    More,
    /// From here on all bytes are TLS: begin as its client, and call [`Exchange::handle_secured`] when the
    /// handshake is done. Bytes that are left are nobody's.
    Tls,
    /// The password is right.
    Done,
}

/// Why a password was not taken. The texts are for the log, and contain no password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The server does not take it, or does not know the user.
    Refused(String),
    /// The server has said nothing about it.
    Unanswered(String),
}

enum State {
    ExpectTls,
    ExpectSecured,
    /// Whoever searches.
    ExpectSearcher,
    /// What the search finds: the first entry, and how many there are.
    ExpectEntries {
        first: String,
        count: usize,
    },
    ExpectUser,
    /// The search has found nobody; what is asked now is asked for those who measure time.
    ExpectNobody {
        why: String,
    },
    Over,
}

/// A login at an LDAP server.
pub struct Exchange {
    options: Arc<Options>,
    user: String,
    password: Zeroizing<Vec<u8>>,
    id: u32,
    read: usize,
    state: State,
}

impl Exchange {
    /// A login that has not begun. `None`: the password or the name is empty; with these a server would let
    /// in anybody.
    pub fn new(options: Arc<Options>, user: &str, password: &[u8]) -> Option<Exchange> {
        if password.is_empty() || user.is_empty() {
            return None;
        }
        let password = Zeroizing::new(password.to_vec());
        Some(Exchange { options, user: user.to_owned(), password, id: 0, read: 0, state: State::Over })
    }

    /// What Weir says first: in clear, or inside the TLS of `ldaps`.
    pub fn start(&mut self, out: &mut Vec<u8>) {
        if self.options.encryption == Encryption::StartTls {
            let id = self.next();
            message::put_start_tls(out, id);
            self.state = State::ExpectTls;
        } else {
            self.begin(out);
        }
    }

    /// The handshake that [`Step::Tls`] asked for is done.
    pub fn handle_secured(&mut self, out: &mut Vec<u8>) {
        if matches!(self.state, State::ExpectSecured) {
            self.begin(out);
        }
    }

    /// Looks at the server's bytes; returns how many are dealt with. Questions are appended to `out`.
    ///
    /// # Errors
    /// The verdict, unless it is that the password is right.
    pub fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, Step), Verdict> {
        let mut used = 0;
        loop {
            let read = message::read(&input[used..])
                .map_err(|_| Verdict::Unanswered("what it sends is not LDAP, or is too long".to_owned()))?;
            let Some((length, id, said)) = read else { return Ok((used, Step::More)) };
            used += length;
            self.read += length;
            if self.read > EXCHANGE_BYTES {
                return Err(Verdict::Unanswered("it sends too much".to_owned()));
            }
            match self.answer(id, said, out)? {
                Step::More => {}
                step @ (Step::Tls | Step::Done) => return Ok((used, step)),
            }
        }
    }

    /// The last words, which nobody answers.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        let id = self.next();
        message::put_unbind(out, id);
        self.state = State::Over;
    }

    fn next(&mut self) -> u32 {
        self.id += 1;
        self.id
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        let options = self.options.clone();
        match (&options.way, options.name_of(&self.user)) {
            (_, Some(name)) => self.bind_user(&name, out),
            (Way::Search { searcher: Some((name, password)), .. }, None) => {
                let id = self.next();
                message::put_bind(out, id, name, password.as_bytes());
                self.state = State::ExpectSearcher;
            }
            (_, None) => self.search(out),
        }
    }

    fn bind_user(&mut self, name: &str, out: &mut Vec<u8>) {
        let id = self.next();
        message::put_bind(out, id, name, &self.password);
        self.state = State::ExpectUser;
    }

    fn search(&mut self, out: &mut Vec<u8>) {
        let options = self.options.clone();
        let Way::Search { base, scope, filter, .. } = &options.way else { return };
        let mut sent = Vec::new();
        // It was a filter with another name in it, so it is one with this. If not, it is one for nobody.
        if put_filter(&mut sent, &filled_in(filter, &self.user)).is_err() {
            sent = vec![NOBODY, 0];
        }
        let id = self.next();
        message::put_search(out, id, base, *scope, &sent);
        self.state = State::ExpectEntries { first: String::new(), count: 0 };
    }

    fn answer(&mut self, id: u32, said: Said<'_>, out: &mut Vec<u8>) -> Result<Step, Verdict> {
        if id != self.id {
            // By number 0 a server says that it closes the connection (RFC 4511, section 4.4.1).
            return Err(match said {
                Said::Extended(why) if id == 0 => {
                    Verdict::Unanswered(format!("it closes the connection: {why}"))
                }
                _ => out_of_place(),
            });
        }
        match (std::mem::replace(&mut self.state, State::Over), said) {
            (State::ExpectTls, Said::Extended(outcome)) if outcome.is_success() => {
                self.state = State::ExpectSecured;
                Ok(Step::Tls)
            }
            (State::ExpectTls, Said::Extended(outcome)) => {
                Err(Verdict::Unanswered(format!("it refuses TLS (ldaptls=1): {outcome}")))
            }
            (State::ExpectSearcher, Said::Bind(outcome)) if outcome.is_success() => {
                self.search(out);
                Ok(Step::More)
            }
            (State::ExpectSearcher, Said::Bind(outcome)) => {
                Err(Verdict::Unanswered(format!("it refuses ldapbinddn: {outcome}")))
            }
            (State::ExpectEntries { first, count }, Said::Entry(name)) => {
                let first = if count == 0 { entry_name(name)? } else { first };
                self.state = State::ExpectEntries { first, count: count + 1 };
                Ok(Step::More)
            }
            (state @ State::ExpectEntries { .. }, Said::Reference) => {
                self.state = state;
                Ok(Step::More)
            }
            (State::ExpectEntries { first, count }, Said::Done(outcome)) => {
                self.found(&first, count, outcome, out)?;
                Ok(Step::More)
            }
            (State::ExpectUser, Said::Bind(outcome)) if outcome.is_success() => Ok(Step::Done),
            (State::ExpectUser, Said::Bind(outcome)) if outcome.is_about_itself() => {
                Err(Verdict::Unanswered(outcome.to_string()))
            }
            (State::ExpectUser, Said::Bind(outcome)) => Err(Verdict::Refused(outcome.to_string())),
            (State::ExpectNobody { why }, Said::Bind(_)) => Err(Verdict::Refused(why)),
            _ => Err(out_of_place()),
        }
    }

    /// The search is over.
    fn found(
        &mut self,
        first: &str,
        count: usize,
        outcome: Outcome<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Verdict> {
        // sizeLimitExceeded: there are more than were asked for.
        let is_over = outcome.is_success() || (outcome.code == 4 && count > 1);
        if !is_over {
            return Err(Verdict::Unanswered(format!("it refuses the search: {outcome}")));
        }
        let options = self.options.clone();
        let Way::Search { base, filter, .. } = &options.way else { return Err(out_of_place()) };
        if count == 1 {
            // An empty name with a password is an anonymous bind, which proves nothing.
            if first.is_empty() {
                return Err(Verdict::Unanswered(
                    "the search finds the server itself: ldapbasedn is empty".to_owned(),
                ));
            }
            self.bind_user(first, out);
            return Ok(());
        }
        let how_many = if count == 0 { "no entry" } else { "more than one entry" };
        let shown = for_log(filled_in(filter, &self.user).as_bytes());
        let why = format!("{how_many} for {shown} below `{base}`");
        // As for somebody who is there.
        let nobody = format!("uid={},{base}", in_dn(&self.user));
        let id = self.next();
        message::put_bind(out, id, nobody.trim_end_matches(','), &self.password);
        self.state = State::ExpectNobody { why };
        Ok(())
    }
}

fn out_of_place() -> Verdict {
    Verdict::Unanswered("it answers what was not asked".to_owned())
}

fn entry_name(name: &[u8]) -> Result<String, Verdict> {
    let name = std::str::from_utf8(name);
    name.map(str::to_owned).map_err(|_| Verdict::Unanswered("the name of an entry is not UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::{bound, done, entry, extended, reference};
    use crate::options::{Builder, pairs};

    const SEARCH: &str = r#"ldapserver=a ldapbasedn="dc=x" ldapbinddn="cn=f" ldapbindpasswd=find"#;

    fn exchange(options: &str, user: &str, password: &str) -> Exchange {
        let mut builder = Builder::default();
        for (name, value) in pairs(options).unwrap() {
            builder.set(&name, &value).unwrap();
        }
        Exchange::new(Arc::new(builder.finish().unwrap()), user, password.as_bytes()).unwrap()
    }

    fn started(options: &str, user: &str) -> (Exchange, Vec<u8>) {
        let mut exchange = exchange(options, user, "right");
        let mut out = Vec::new();
        exchange.start(&mut out);
        (exchange, out)
    }

    /// What was sent names this.
    fn has(out: &[u8], text: &str) -> bool {
        out.windows(text.len()).any(|window| window == text.as_bytes())
    }

    #[test]
    fn an_empty_password_or_name_asks_nobody() {
        let mut builder = Builder::default();
        builder.set("ldapserver", "a").unwrap();
        builder.set("ldapprefix", "uid=").unwrap();
        let options = Arc::new(builder.finish().unwrap());
        for (user, password) in [("ann", ""), ("", "right"), ("", "")] {
            assert!(Exchange::new(options.clone(), user, password.as_bytes()).is_none(), "{user} {password}");
        }
    }

    #[test]
    fn a_name_without_a_search() {
        let (mut login, out) = started("ldapserver=a ldapprefix=uid= ldapsuffix=\",dc=x\"", "a,b");
        assert!(has(&out, "uid=a\\,b,dc=x") && has(&out, "right"));
        let mut out = Vec::new();
        let answer = bound(1, 0);
        assert_eq!(login.handle_input(&answer[..5], &mut out), Ok((0, Step::More)));
        assert_eq!(login.handle_input(&answer, &mut out), Ok((answer.len(), Step::Done)));
        login.end(&mut out);
        assert_eq!(out, [0x30, 5, 2, 1, 2, 0x42, 0]);
        let (mut login, _) = started("ldapserver=a ldapprefix=uid=", "ann");
        let refused = login.handle_input(&bound(1, 49), &mut out);
        assert_eq!(refused, Err(Verdict::Refused("invalidCredentials (49)".to_owned())));
        for code in [1, 2, 8, 10, 13, 51, 52, 80] {
            let (mut login, _) = started("ldapserver=a ldapprefix=uid=", "ann");
            let refused = login.handle_input(&bound(1, code), &mut out);
            assert!(matches!(refused, Err(Verdict::Unanswered(_))), "{code}: {refused:?}");
        }
    }

    #[test]
    fn a_search_and_then_the_user() {
        let (mut login, out) = started(SEARCH, "a*");
        assert!(has(&out, "cn=f") && has(&out, "find") && !has(&out, "right"));
        let mut out = Vec::new();
        assert!(login.handle_input(&bound(1, 0), &mut out).is_ok());
        assert!(has(&out, "dc=x") && has(&out, "a*") && has(&out, "1.1") && !has(&out, "right"));
        out.clear();
        let found = [reference(2), entry(2, "uid=a,ou=b,dc=x"), reference(2), done(2, 0)].concat();
        assert_eq!(login.handle_input(&found, &mut out), Ok((found.len(), Step::More)));
        assert!(has(&out, "uid=a,ou=b,dc=x") && has(&out, "right"));
        let answer = bound(3, 0);
        assert_eq!(login.handle_input(&answer, &mut out), Ok((answer.len(), Step::Done)));
    }

    #[test]
    fn who_is_not_found_costs_as_many_questions_and_never_comes_in() {
        for (found, code, words) in [
            (vec![], 0, "no entry for (uid=ann) below `dc=x`"),
            (vec!["uid=a,dc=x", "uid=b,dc=x"], 0, "more than one entry"),
            (vec!["uid=a,dc=x", "uid=b,dc=x"], 4, "more than one entry"),
        ] {
            for verdict in [0, 49, 32, 52] {
                let (mut login, _) = started(SEARCH, "ann");
                let mut out = Vec::new();
                login.handle_input(&bound(1, 0), &mut out).unwrap();
                out.clear();
                let entries: Vec<u8> = found.iter().flat_map(|name| entry(2, name)).collect();
                login.handle_input(&[entries, done(2, code)].concat(), &mut out).unwrap();
                assert!(has(&out, "uid=ann,dc=x") && has(&out, "right"), "it is asked all the same");
                let refused = login.handle_input(&bound(3, verdict), &mut out);
                let Err(Verdict::Refused(why)) = refused else { panic!("{refused:?}") };
                assert!(why.contains(words), "{why}");
            }
        }
    }

    #[test]
    fn what_the_server_cannot_do_is_no_verdict() {
        let mut out = Vec::new();
        let after = |answers: &[Vec<u8>], out: &mut Vec<u8>| {
            let (mut login, _) = started(SEARCH, "ann");
            let mut last = Ok((0, Step::More));
            for answer in answers {
                last = login.handle_input(answer, out);
            }
            match last {
                Err(Verdict::Unanswered(why)) => why,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(after(&[bound(1, 49)], &mut out), "it refuses ldapbinddn: invalidCredentials (49)");
        assert_eq!(after(&[bound(1, 0), done(2, 32)], &mut out), "it refuses the search: noSuchObject (32)");
        assert_eq!(
            after(&[bound(1, 0), done(2, 4)], &mut out),
            "it refuses the search: sizeLimitExceeded (4)"
        );
        assert!(after(&[bound(1, 0), done(2, 10)], &mut out).contains("does not follow"));
        assert!(
            after(&[bound(1, 0), [entry(2, ""), done(2, 0)].concat()], &mut out)
                .contains("the server itself")
        );
        assert_eq!(after(&[extended(0, 52)], &mut out), "it closes the connection: unavailable (52)");
        assert_eq!(after(&[bound(2, 0)], &mut out), "it answers what was not asked");
        assert_eq!(after(&[done(1, 0)], &mut out), "it answers what was not asked");
        assert_eq!(after(&[b"HTTP/1.1 400".to_vec()], &mut out), "what it sends is not LDAP, or is too long");
        let many: Vec<Vec<u8>> =
            std::iter::once(bound(1, 0)).chain((0..20_000).map(|_| reference(2))).collect();
        let (mut login, _) = started(SEARCH, "ann");
        let last = many.iter().map(|one| login.handle_input(one, &mut out)).find(Result::is_err);
        assert_eq!(last, Some(Err(Verdict::Unanswered("it sends too much".to_owned()))));
    }

    #[test]
    fn tls_begins_before_anything_that_counts() {
        let (mut login, out) = started(&format!("{SEARCH} ldaptls=1"), "ann");
        assert!(has(&out, "1.3.6.1.4.1.1466.20037") && !has(&out, "find"));
        let mut out = Vec::new();
        let answer = extended(1, 0);
        assert_eq!(login.handle_input(&answer, &mut out), Ok((answer.len(), Step::Tls)));
        assert_eq!(out, [], "nothing in clear");
        login.handle_secured(&mut out);
        assert!(has(&out, "find"));
        let (mut login, _) = started(&format!("{SEARCH} ldaptls=1"), "ann");
        let refused = login.handle_input(&extended(1, 2), &mut out);
        assert_eq!(
            refused,
            Err(Verdict::Unanswered("it refuses TLS (ldaptls=1): protocolError (2)".to_owned()))
        );
        let (mut login, _) = started(&format!("{SEARCH} ldaptls=1"), "ann");
        out.clear();
        login.handle_secured(&mut out);
        assert_eq!(out, [], "no handshake was due");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_of_a_server_let_anybody_in_or_end_anything(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
            name in ".{1,20}",
        ) {
            let (mut login, _) = started(SEARCH, &name);
            let mut out = Vec::new();
            let step = login.handle_input(&bytes, &mut out);
            proptest::prop_assert!(!matches!(step, Ok((_, Step::Done | Step::Tls))));
        }
    }
}
