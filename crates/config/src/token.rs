//! The token of the HTTP endpoint: `http.token` or the file `http.token_file`.
//!
//! Owns: what a token may look like, and its comparison. Must not know: HTTP.
//!
//! Invariants: no message contains a token; only its hash is kept; a comparison takes the same time whatever
//! is presented.

use crate::draft::Draft;
use crate::registry::Key;
use crate::secrets::line_of_file;
use std::fmt;
use subtle::ConstantTimeEq;
use weir_auth::hash::sha256;

/// Fewer characters can be guessed: nothing delays the next attempt.
const SHORTEST: usize = 16;

/// A token, by its SHA-256.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl Token {
    /// The token of this text; `None`: it cannot stand in a request, or is short.
    pub fn new(text: &str) -> Option<Token> {
        // RFC 6750, section 2.1.
        let is_sent = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        (text.len() >= SHORTEST && text.bytes().all(is_sent)).then(|| Token(sha256(&[text.as_bytes()])))
    }

    /// Is this the token?
    pub fn is(&self, presented: &[u8]) -> bool {
        self.0.ct_eq(&sha256(&[presented])).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// The token that was configured. What is wrong with it is a problem, and there is none then.
pub(crate) fn token(draft: &mut Draft) -> Option<Token> {
    let (direct, file) =
        (draft.values.secret(Key::HttpToken).to_owned(), draft.values.text(Key::HttpTokenFile).to_owned());
    let key = if file.is_empty() { Key::HttpToken } else { Key::HttpTokenFile };
    let place = draft.places.get(&key).cloned();
    let text = match (direct.is_empty(), file.is_empty()) {
        (true, true) => return None,
        (false, true) => direct,
        (true, false) => line_of_file(draft, &file, place.clone(), "a token")?,
        (false, false) => {
            draft.findings.problem(place, "give http.token or http.token_file, not both");
            return None;
        }
    };
    let token = Token::new(&text);
    if token.is_none() {
        let name = draft.name_of(key);
        draft.findings.problem(
            place,
            format!("{name}: a token has at least {SHORTEST} characters: letters, digits and -._~+/="),
        );
    }
    token
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Problems, Snapshot, Sources, diff, load_text};
    use std::path::Path;

    fn load_it(http: &str) -> Result<Snapshot, Problems> {
        let text = format!("[databases.app]\nurl = \"postgres://u:p@h/app\"\n[http]\n{http}\n");
        load_text(Path::new("weir.toml"), &text, &Sources::default()).map(|loaded| loaded.snapshot)
    }

    #[test]
    fn a_token_is_itself_only() {
        let token = Token::new("0123456789abcdef").unwrap();
        assert!(token.is(b"0123456789abcdef"));
        for other in [&b""[..], b"0123456789abcde", b"0123456789abcdeF", b"0123456789abcdef ", &[0xFF; 64]] {
            assert!(!token.is(other));
        }
        for bad in ["", "0123456789abcde", "0123456789 abcdef", "0123456789abcd\u{e9}f", "0123456789abcdef\n"]
        {
            assert!(Token::new(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn it_is_read_and_never_shown() {
        let first = load_it("token = \"first-token-of-all\"").unwrap();
        assert!(first.http_token.as_ref().unwrap().is(b"first-token-of-all"));
        let second = load_it("token = \"second-token-of-all\"").unwrap();
        let none = load_it("").unwrap();
        assert!(none.http_token.is_none());
        let row = first.values.rows().into_iter().find(|row| row.key == "http.token").unwrap();
        assert_eq!((row.value.as_str(), row.default.as_str()), ("********", ""));
        let shown = format!("{first:?} {} {}", diff(&first, &second), diff(&none, &second));
        assert!(!shown.contains("token-of-all"), "{shown}");
        assert_eq!(diff(&first, &second).to_string(), "http.token ******** -> ********");
        assert!(diff(&first, &first.clone()).is_empty());
    }

    #[test]
    fn a_wrong_one_is_a_problem_that_does_not_show_it() {
        let folder = std::env::temp_dir().join(format!("weir-token-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("token");
        std::fs::write(&file, "from-a-file-0123456\n").unwrap();
        let by_file = format!("token_file = \"{}\"", file.display());
        assert!(load_it(&by_file).unwrap().http_token.unwrap().is(b"from-a-file-0123456"));
        for (http, words) in [
            ("token = \"hunter2\"", "http.token: a token has at least 16 characters"),
            ("token = 1234567890123456", "token must be text in quotes"),
            ("token_file = \"/nowhere/at/all\"", "cannot read /nowhere/at/all"),
            (&format!("{by_file}\ntoken = \"hunter2hunter2hunter2\""), "not both"),
        ] {
            let said = load_it(http).unwrap_err().to_string();
            assert!(said.contains(words) && !said.contains("hunter2"), "{said}");
            assert!(!said.contains("1234567890123456"), "{said}");
        }
        std::fs::write(&file, "two\nlines\n").unwrap();
        let said = load_it(&by_file).unwrap_err().to_string();
        assert!(said.contains("it must hold a token and nothing else"), "{said}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
