//! Interfaces for operators: the console ([`console`]), and HTTP.
//!
//! The HTTP endpoint: `/metrics`, `/healthz`, `/readyz` and a page that lists them.
//!
//! Owns: paths, status codes, media types. Must not know: sessions, pools, sockets of clients. Its contents
//! come from the closures of [`Pages`].
//!
//! Runs on the control thread; nothing here is on the data path.
#![forbid(unsafe_code)]

pub mod console;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use weir_wire::limits::HTTP_CONNECTIONS;

/// Where the pages get what they show.
pub struct Pages {
    /// The text of `/metrics`, and its media type.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
    /// The media type of `metrics`.
    pub metrics_type: &'static str,
    /// Whether new clients should be sent here: `Err` says why not.
    pub ready: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// The version on the front page.
    pub version: &'static str,
}

/// A request must have come within this time, and its answer have been taken within the other.
const HEADER_TIME: Duration = Duration::from_secs(5);
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// After a failed accept (no descriptors) there is nothing to do but wait.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers requests on `listener` until it is dropped with its task: one for each connection, within bounds.
/// Errors of single connections end that connection only.
pub async fn serve(listener: TcpListener, pages: Arc<Pages>) {
    let router = router(pages);
    let seats = Arc::new(Semaphore::new(HTTP_CONNECTIONS));
    // It is never closed.
    while let Ok(seat) = seats.clone().acquire_owned().await {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!("the HTTP endpoint cannot accept: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let service = TowerToHyperService::new(router.clone());
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME).keep_alive(false);
        let served = http.serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            drop(tokio::time::timeout(HEADER_TIME + ANSWER_TIME, served).await);
            drop(seat);
        });
    }
}

/// The paths.
pub fn router(pages: Arc<Pages>) -> Router {
    Router::new()
        .route("/", get(front))
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .route("/readyz", get(ready))
        .with_state(pages)
}

async fn front(State(pages): State<Arc<Pages>>) -> Html<String> {
    Html(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Weir</title>\
         <h1>Weir {}</h1><ul>\
         <li><a href=\"/metrics\">/metrics</a>: counters for Prometheus, as OpenMetrics text</li>\
         <li><a href=\"/healthz\">/healthz</a>: 200 while the process lives</li>\
         <li><a href=\"/readyz\">/readyz</a>: 200 while new clients are welcome, 503 while Weir starts or stops</li>\
         </ul></html>\n",
        pages.version
    ))
}

async fn metrics(State(pages): State<Arc<Pages>>) -> Response {
    ([(header::CONTENT_TYPE, pages.metrics_type)], (pages.metrics)()).into_response()
}

async fn health() -> &'static str {
    "ok\n"
}

async fn ready(State(pages): State<Arc<Pages>>) -> (StatusCode, String) {
    match (pages.ready)() {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    async fn ask(address: std::net::SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn all_paths() {
        let draining = Arc::new(AtomicBool::new(false));
        let seen = draining.clone();
        let pages = Arc::new(Pages {
            metrics: Box::new(|| "weir_up 1\n# EOF\n".to_owned()),
            metrics_type: "text/test",
            ready: Box::new(
                move || if seen.load(Ordering::Relaxed) { Err("draining".into()) } else { Ok(()) },
            ),
            version: "1.2.3",
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, pages));
        let get = |path| ask_path(address, path);

        let answer = get("/metrics").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(
            answer.contains("content-type: text/test") && answer.ends_with("weir_up 1\n# EOF\n"),
            "{answer}"
        );
        assert!(get("/healthz").await.starts_with("HTTP/1.1 200"));
        assert!(get("/readyz").await.starts_with("HTTP/1.1 200"));
        assert!(get("/").await.contains("Weir 1.2.3"));
        assert!(get("/nothing").await.starts_with("HTTP/1.1 404"));
        draining.store(true, Ordering::Relaxed);
        let answer = get("/readyz").await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.ends_with("draining\n"), "{answer}");
        assert!(get("/healthz").await.starts_with("HTTP/1.1 200"));
        assert!(
            ask(address, "POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                .await
                .starts_with("HTTP/1.1 405")
        );
    }

    async fn ask_path(address: std::net::SocketAddr, path: &str) -> String {
        ask(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).await
    }
}
