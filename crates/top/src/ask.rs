//! One question over HTTP: `GET /api/live`.

use http_body_util::{BodyExt, Empty, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::net::TcpStream;
use weir_admin::live::{Live, Sort};

/// An answer comes within this time, or is none.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Bytes of an answer. One with 500 pools and as many databases has a tenth of it.
const ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// Where a Weir is asked.
#[derive(Debug, Clone)]
pub struct Place {
    /// `HOST:PORT`.
    authority: String,
    /// In front of `/api/live`: empty, or where another server has Weir's paths.
    prefix: String,
}

impl Place {
    /// Reads `http://HOST:PORT[/PATH]`.
    ///
    /// # Errors
    /// It is not such an address: what is wrong with it.
    pub fn parse(url: &str) -> Result<Place, String> {
        if url.starts_with("https:") {
            return Err("Weir's HTTP endpoint has no TLS: give http://HOST:PORT".to_owned());
        }
        let rest = url.strip_prefix("http://").unwrap_or(url);
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let is_sound = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if authority.is_empty() || authority.contains(['@', '?', '#']) || !is_sound(rest) {
            return Err(format!("`{}` is not http://HOST:PORT", url.escape_debug()));
        }
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let authority = if has_port { authority.to_owned() } else { format!("{authority}:9930") };
        let path = path.trim_end_matches('/');
        let prefix = if path.is_empty() { String::new() } else { format!("/{path}") };
        Ok(Place { authority, prefix })
    }

    /// As it is shown.
    pub fn name(&self) -> String {
        format!("http://{}{}", self.authority, self.prefix)
    }

    /// The figures of this moment.
    ///
    /// # Errors
    /// There is no answer, or it is none of Weir's: why.
    pub async fn live(&self, token: Option<&str>, wish: &Wish) -> Result<Live, String> {
        match tokio::time::timeout(ANSWER_TIME, self.ask(token, wish)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("{} has not answered within {} s", self.name(), ANSWER_TIME.as_secs())),
        }
    }

    async fn ask(&self, token: Option<&str>, wish: &Wish) -> Result<Live, String> {
        let failed = |what: &str, error: &dyn std::fmt::Display| format!("{what} {}: {error}", self.name());
        let stream =
            TcpStream::connect(&self.authority).await.map_err(|error| failed("cannot reach", &error))?;
        let (mut sender, connection) = http1::handshake::<_, Empty<Bytes>>(TokioIo::new(stream))
            .await
            .map_err(|error| failed("cannot ask", &error))?;
        // It ends with its request.
        tokio::spawn(async move { drop(connection.await) });
        let mut request = Request::get(format!("{}/api/live?{}", self.prefix, wish.query()));
        request = request.header(HOST, &self.authority);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Empty::new()).map_err(|error| failed("cannot ask", &error))?;
        let answer = sender.send_request(request).await.map_err(|error| failed("no answer from", &error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES)
            .collect()
            .await
            .map_err(|error| failed("no whole answer from", &error))?
            .to_bytes();
        if !status.is_success() {
            let said: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
            let words = said.and_then(|said| said["error"].as_str().map(screen_words));
            return Err(failed("refused by", &words.unwrap_or_else(|| format!("status {status}"))));
        }
        serde_json::from_slice(&body).map_err(|error| failed("not Weir's answer from", &error))
    }
}

fn screen_words(words: &str) -> String {
    crate::screen::tame(words)
}

/// Which pools are wanted, and in which order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// The order.
    pub sort: Sort,
    /// Part of the name of a database or user; empty: all.
    pub filter: String,
    /// At most so many.
    pub top: usize,
}

impl Wish {
    fn query(&self) -> String {
        let mut out = format!("top={}&sort={}&match=", self.top, self.sort.name());
        for byte in self.filter.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => out.push(byte.into()),
                _ => out.push_str(&format!("%{byte:02X}")),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (url, name) in [
            ("http://127.0.0.1:9930", "http://127.0.0.1:9930"),
            ("http://127.0.0.1:9930/", "http://127.0.0.1:9930"),
            ("localhost", "http://localhost:9930"),
            ("http://[::1]:80/weir/", "http://[::1]:80/weir"),
        ] {
            assert_eq!(Place::parse(url).unwrap().name(), name, "{url}");
        }
        for bad in ["", "http://", "https://h:1", "http://u@h:1", "http://h:1/a b", "http://h\u{1b}[31m:1"] {
            let said = Place::parse(bad).unwrap_err();
            assert!(!said.contains('\u{1b}'), "{said}");
        }
    }

    #[test]
    fn a_filter_is_any_text() {
        let wish = Wish { sort: Sort::Waiting, filter: "a&b=\u{e4} #".into(), top: 7 };
        assert_eq!(wish.query(), "top=7&sort=waiting&match=a%26b%3D%C3%A4%20%23");
    }
}
