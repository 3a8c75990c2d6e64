//! JSON: `/api/live`, and the console's tables for those who send the token.

use super::Pages;
use super::rows::Rows;
use crate::live::Asked;
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a request says of who sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bearer {
    /// It has the token.
    Right,
    /// It has another one.
    Wrong,
    /// It has none.
    Absent,
    /// None is configured.
    Unknown,
}

impl Bearer {
    fn of(pages: &Pages, headers: &HeaderMap) -> Bearer {
        let Some(token) = pages.source.token() else { return Bearer::Unknown };
        let Some(value) = headers.get(AUTHORIZATION) else { return Bearer::Absent };
        // RFC 9110, section 11.1: the scheme's name in any case, then spaces.
        let value = value.as_bytes();
        match value.split_at_checked("bearer ".len()) {
            Some((scheme, presented)) if scheme.eq_ignore_ascii_case(b"bearer ") => {
                if token.is(presented.trim_ascii()) { Bearer::Right } else { Bearer::Wrong }
            }
            Some(_) | None => Bearer::Wrong,
        }
    }
}

#[derive(Serialize)]
struct Refused {
    error: String,
}

fn refused(status: StatusCode, error: impl Into<String>) -> Response {
    (status, Json(Refused { error: error.into() })).into_response()
}

/// The names of what there is.
#[derive(Serialize)]
struct Index {
    version: String,
    live: &'static str,
    tables: Vec<String>,
}

pub(super) async fn index(State(pages): State<Arc<Pages>>) -> Response {
    let tables = pages.source.tables().into_iter().map(|name| format!("/api/{name}")).collect();
    let version = pages.source.live(&Asked { top: Some(0), ..Asked::default() }, false).version;
    Json(Index { version, live: "/api/live", tables }).into_response()
}

pub(super) async fn live(
    State(pages): State<Arc<Pages>>,
    headers: HeaderMap,
    asked: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
) -> Response {
    let Ok(Query(asked)) = asked else {
        let words = "the parameters are top=NUMBER, match=TEXT, \
                     and sort=activity, waiting, latency, servers or name";
        return refused(StatusCode::BAD_REQUEST, words);
    };
    let bearer = Bearer::of(&pages, &headers);
    if bearer == Bearer::Wrong {
        return unauthorised("the token is wrong");
    }
    let mut live = pages.source.live(&asked, bearer == Bearer::Right);
    // They are about this machine and the settings, not about clients.
    if bearer == Bearer::Absent {
        live.withheld = true;
    } else {
        live.warnings = pages.warnings.clone();
    }
    if (pages.ready)().is_err() {
        live.state = crate::live::State::Stopping;
    }
    Json(live).into_response()
}

fn unauthorised(error: &str) -> Response {
    let mut response = refused(StatusCode::UNAUTHORIZED, error);
    let challenge = axum::http::HeaderValue::from_static("Bearer realm=\"weir\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

/// How much of a table is wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part {
    /// At most so many rows.
    limit: Option<usize>,
}

pub(super) async fn table(
    State(pages): State<Arc<Pages>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    part: Result<Query<Part>, axum::extract::rejection::QueryRejection>,
) -> Response {
    let names = pages.source.tables();
    let Some(&name) = names.iter().find(|known| **known == name) else {
        return refused(StatusCode::NOT_FOUND, format!("there are live, {}", names.join(", ")));
    };
    let Ok(Query(part)) = part else {
        return refused(StatusCode::BAD_REQUEST, "the parameter is limit=NUMBER");
    };
    match Bearer::of(&pages, &headers) {
        Bearer::Right => {}
        Bearer::Wrong => return unauthorised("the token is wrong"),
        Bearer::Absent => return unauthorised("send the token as `Authorization: Bearer TOKEN`"),
        Bearer::Unknown => {
            let words = format!(
                "/api/{name} is for holders of a token, and none is configured: set http.token_file or \
                 http.token, and send the token as `Authorization: Bearer TOKEN`"
            );
            return refused(StatusCode::FORBIDDEN, words);
        }
    }
    match pages.source.table(name).await {
        Ok((table, hold)) => {
            let body = Body::new(Rows::new(name, table, part.limit.unwrap_or(usize::MAX), hold));
            ([(CONTENT_TYPE, "application/json")], body).into_response()
        }
        Err(why) => refused(StatusCode::SERVICE_UNAVAILABLE, why),
    }
}
