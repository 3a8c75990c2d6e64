//! The HTTP endpoint: the dashboard, JSON, `/metrics`, `/healthz` and `/readyz`.
//!
//! Owns: paths, status codes, media types, the headers that a browser obeys. Must not know: sessions, pools,
//! sockets of clients: what is shown comes from [`Pages`].
//!
//! Runs on the control thread; nothing here is on the data path. No path changes anything.

mod api;
mod page;
mod ready;
mod rows;

use crate::live::{Asked, DatabaseState, Live};
use axum::Router;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::{HeaderValue, header::X_CONTENT_TYPE_OPTIONS};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use weir_config::Token;
use weir_wire::console::Table;
use weir_wire::limits::{HTTP_CONNECTIONS, HTTP_HEADER_BYTES, HTTP_HEADERS};

/// Where the pages get what they show.
pub struct Pages {
    /// The text of `/metrics`, and its media type.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
    /// The media type of `metrics`.
    pub metrics_type: &'static str,
    /// Whether new clients should be sent here: `Err` says why not.
    pub ready: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// What `weir doctor` had to say at the start.
    pub warnings: Vec<String>,
    /// The figures and tables of `/api`.
    pub source: Arc<dyn Source>,
}

/// A table, and what is held until it has been sent.
pub type Held = (Table, Box<dyn Send>);

/// A database, and how it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseNow {
    /// How it is.
    pub state: DatabaseState,
    /// Its protocol.
    pub protocol: &'static str,
    /// The name that clients use.
    pub name: String,
}

/// What `/readyz` and the paths below `/api` show.
pub trait Source: Send + Sync {
    /// The databases that are configured, in use or out of reach, and how they are at this moment.
    fn databases(&self) -> Vec<DatabaseNow>;
    /// The figures of this moment. `details`: with the log's words about faults.
    fn live(&self, asked: &Asked, details: bool) -> Live;
    /// The names of all tables, in lower case.
    fn tables(&self) -> Vec<&'static str>;
    /// The table of this name, as the console shows it; `Err` says why there is none.
    fn table(&self, name: &'static str) -> Pin<Box<dyn Future<Output = Result<Held, String>> + Send + '_>>;
    /// What a request for a table must bear. `None`: nobody gets one.
    fn token(&self) -> Option<Token>;
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
        http.max_buf_size(HTTP_HEADER_BYTES).max_headers(HTTP_HEADERS);
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
        .route("/", get(page::html))
        .route("/dashboard.css", get(page::css))
        .route("/dashboard.js", get(page::js))
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .route("/readyz", get(ready::ready))
        .route("/api", get(api::index))
        .route("/api/live", get(api::live))
        .route("/api/{table}", get(api::table))
        .layer(map_response(dressed))
        .with_state(pages)
}

/// Nothing here is to be stored, guessed at, or framed; only the page itself may load anything.
async fn dressed(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

async fn metrics(State(pages): State<Arc<Pages>>) -> Response {
    ([(CONTENT_TYPE, pages.metrics_type)], (pages.metrics)()).into_response()
}

async fn health() -> &'static str {
    "ok\n"
}

#[cfg(test)]
mod tests;
