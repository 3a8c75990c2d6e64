//! The paths, over real sockets.

use super::*;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use weir_wire::console::{Column, Kind};

#[derive(Default)]
struct Fake {
    token: Mutex<Option<Token>>,
    broken: AtomicBool,
    databases: Mutex<Vec<DatabaseNow>>,
}

impl Source for Fake {
    fn live(&self, asked: &Asked, details: bool) -> Live {
        let version = format!("{} {} {details}", asked.rows(), asked.filter);
        Live { version, ..Live::default() }
    }

    fn databases(&self) -> Vec<DatabaseNow> {
        self.databases.lock().unwrap().clone()
    }

    fn tables(&self) -> Vec<&'static str> {
        vec!["clients", "pools"]
    }

    fn table(&self, name: &'static str) -> Pin<Box<dyn Future<Output = Result<Held, String>> + Send + '_>> {
        let mut table = Table::new(&[Column { name: "name", kind: Kind::Text }]);
        table.text(name);
        let outcome = match self.broken.load(Ordering::Relaxed) {
            true => Err("a worker has not answered in time".to_owned()),
            false => Ok((table, Box::new(()) as Box<dyn Send>)),
        };
        Box::pin(async move { outcome })
    }

    fn token(&self) -> Option<Token> {
        self.token.lock().unwrap().clone()
    }
}

struct Endpoint {
    address: SocketAddr,
    source: Arc<Fake>,
    stopping: Arc<AtomicBool>,
}

impl Endpoint {
    async fn open(token: Option<&str>) -> Endpoint {
        let source = Arc::new(Fake::default());
        *source.token.lock().unwrap() = token.map(|text| Token::new(text).unwrap());
        let stopping = Arc::new(AtomicBool::new(false));
        let seen = stopping.clone();
        let pages = Arc::new(Pages {
            metrics: Box::new(|| "weir_up 1\n# EOF\n".to_owned()),
            metrics_type: "text/test",
            ready: Box::new(
                move || if seen.load(Ordering::Relaxed) { Err("draining".into()) } else { Ok(()) },
            ),
            warnings: vec!["few files".to_owned()],
            source: source.clone(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, pages));
        Endpoint { address, source, stopping }
    }

    async fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // It may have been refused before all of it was read.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    async fn get(&self, path: &str) -> String {
        self.get_with(path, "").await
    }

    async fn get_with(&self, path: &str, headers: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: x\r\n{headers}Connection: close\r\n\r\n")).await
    }
}

const TOKEN: &str = "a-token-for-tests-1";

#[tokio::test]
async fn all_paths() {
    let endpoint = Endpoint::open(None).await;
    let answer = endpoint.get("/metrics").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("content-type: text/test") && answer.ends_with("weir_up 1\n# EOF\n"), "{answer}");
    for path in ["/healthz", "/readyz", "/", "/dashboard.css", "/dashboard.js", "/api", "/api/live"] {
        let answer = endpoint.get(path).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        for header in ["nosniff", "no-referrer", "no-store", "content-security-policy: default-src 'none'"] {
            assert!(answer.contains(header), "{path}: {header}");
        }
    }
    for path in ["/nothing", "/api/nothing", "/api/clients/1", "/api/"] {
        assert!(endpoint.get(path).await.starts_with("HTTP/1.1 404"), "{path}");
    }
    endpoint.stopping.store(true, Ordering::Relaxed);
    let answer = endpoint.get("/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.ends_with("draining\n"), "{answer}");
    assert!(endpoint.get("/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(endpoint.get("/api/live").await.contains("\"state\":\"stopping\""));
    for path in ["/metrics", "/api/live", "/api/clients", "/"] {
        for method in ["POST", "PUT", "DELETE", "PATCH"] {
            let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            assert!(endpoint.ask(&request).await.starts_with("HTTP/1.1 405"), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn a_database_that_is_down_is_named_and_only_its_own_readiness_says_so() {
    let endpoint = Endpoint::open(None).await;
    let now = |state, protocol, name: &str| DatabaseNow { state, protocol, name: name.to_owned() };
    *endpoint.source.databases.lock().unwrap() = vec![
        now(DatabaseState::Failing, "mysql", "shop"),
        now(DatabaseState::Paused, "postgres", "old"),
        now(DatabaseState::Disabled, "postgres", "gone"),
        now(DatabaseState::Up, "postgres", "shop"),
        now(DatabaseState::Unused, "postgres", "a b"),
    ];
    let answer = endpoint.get("/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let failing =
        "mysql database shop: the last attempt to open a server connection failed; the log says why\n";
    assert!(answer.ends_with(&format!("ready\n{failing}")), "{answer}");
    for (name, status, text) in [
        ("shop", "503", failing),
        ("old", "503", "postgres database old is paused (RESUME ends it)\n"),
        ("gone", "503", "postgres database gone is disabled for new clients (ENABLE ends it)\n"),
        ("a%20b", "200", "ready\n"),
        ("other", "404", "no database `other` is configured or in use\n"),
    ] {
        let answer = endpoint.get(&format!("/readyz?database={name}")).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.ends_with(text),
            "{name}: {answer}"
        );
    }
    endpoint.stopping.store(true, Ordering::Relaxed);
    let answer = endpoint.get("/readyz?database=a%20b").await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.ends_with("draining\n"), "{answer}");
}

#[tokio::test]
async fn tables_are_for_holders_of_the_token() {
    let endpoint = Endpoint::open(Some(TOKEN)).await;
    for (headers, status) in [
        ("", "401"),
        ("Authorization: Bearer wrong-wrong-wrong-1\r\n", "401"),
        ("Authorization: Bearer \r\n", "401"),
        ("Authorization: Basic YTpi\r\n", "401"),
        (&format!("Authorization: Bearer {TOKEN}x\r\n"), "401"),
        (&format!("Authorization: {TOKEN}\r\n"), "401"),
        (&format!("Authorization: Bearer {TOKEN}\r\n"), "200"),
        (&format!("authorization: bearer   {TOKEN}\r\n"), "200"),
    ] {
        let answer = endpoint.get_with("/api/clients", headers).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{headers}: {answer}");
        assert!(status == "200" || answer.contains("www-authenticate: Bearer"), "{answer}");
        assert!(!answer.contains(TOKEN), "{answer}");
    }
    // Nobody has one where none is configured, not even by an empty one.
    *endpoint.source.token.lock().unwrap() = None;
    for headers in ["", "Authorization: Bearer \r\n"] {
        let answer = endpoint.get_with("/api/clients", headers).await;
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("http.token_file"), "{answer}");
    }
    let answer = endpoint.get("/api/live").await;
    assert!(answer.contains("few files") && answer.contains("\"withheld\":false"), "{answer}");
}

#[tokio::test]
async fn live_figures_are_for_all_and_details_for_holders_of_the_token() {
    let endpoint = Endpoint::open(Some(TOKEN)).await;
    let answer = endpoint.get("/api/live?top=3&match=a%20b").await;
    assert!(answer.contains("\"3 a b false\"") && answer.contains("\"withheld\":true"), "{answer}");
    assert!(!answer.contains("few files"), "{answer}");
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let answer = endpoint.get_with("/api/live", &bearer).await;
    assert!(answer.contains("true\"") && answer.contains("few files"), "{answer}");
    let wrong = endpoint.get_with("/api/live", "Authorization: Bearer other-other-other\r\n").await;
    assert!(wrong.starts_with("HTTP/1.1 401"), "{wrong}");
    for bad in ["top=x", "top=-1", "sort=nothing"] {
        let answer = endpoint.get(&format!("/api/live?{bad}")).await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("top=NUMBER"), "{answer}");
    }
    endpoint.source.broken.store(true, Ordering::Relaxed);
    let answer = endpoint.get_with("/api/pools", &bearer).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("not answered in time"), "{answer}");
}

#[tokio::test]
async fn headers_are_bounded() {
    let endpoint = Endpoint::open(Some(TOKEN)).await;
    let long = format!("Authorization: Bearer {}\r\n", "a".repeat(1_000_000));
    let many = "X-A: b\r\n".repeat(HTTP_HEADERS + 1);
    for headers in [long, many] {
        let answer = endpoint.get_with("/api/clients", &headers).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    let answer = endpoint.get(&format!("/api/live?match={}", "a".repeat(1_000_000))).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    assert!(endpoint.get("/healthz").await.starts_with("HTTP/1.1 200"));
}

#[test]
fn the_page_loads_nothing_from_elsewhere_and_makes_no_html_of_text() {
    let html = include_str!("assets/dashboard.html");
    let (css, js) = (include_str!("assets/dashboard.css"), include_str!("assets/dashboard.js"));
    for (name, text) in [("html", html), ("css", css), ("js", js)] {
        // The one address is the name of a kind of XML.
        let text = text.replace("http://www.w3.org/2000/svg", "");
        for foreign in ["http:", "https:", "//cdn", "@import", "url("] {
            assert!(!text.contains(foreign), "{name}: {foreign}");
        }
    }
    for html_of_text in ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function("] {
        assert!(!js.contains(html_of_text), "{html_of_text}");
    }
    assert!(!html.contains(" style=") && !html.contains("<style") && !html.contains(" on"), "inline");
}
