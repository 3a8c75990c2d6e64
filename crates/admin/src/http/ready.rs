//! `/readyz`: whether new clients should be sent here, and, if it is asked for, for one database.
//!
//! A database that is down does not make Weir unready: the clients of the others would lose it, too. It is
//! named.

use super::{DatabaseNow, Pages};
use crate::live::DatabaseState;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use std::fmt::Write;
use std::sync::Arc;

/// Of what the readiness is asked.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Of {
    /// Of this database, whatever its protocol.
    database: Option<String>,
}

type Answer = (StatusCode, String);

pub(super) async fn ready(State(pages): State<Arc<Pages>>, of: Result<Query<Of>, QueryRejection>) -> Answer {
    let Ok(Query(of)) = of else {
        return (StatusCode::BAD_REQUEST, "the parameter is database=NAME\n".to_owned());
    };
    if let Err(why) = (pages.ready)() {
        return (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"));
    }
    let databases = pages.source.databases();
    match of.database {
        Some(name) => ready_for(databases.iter().filter(|it| it.name == name), &name),
        None => {
            let mut text = "ready\n".to_owned();
            for it in databases.iter().filter(|it| it.state == DatabaseState::Failing) {
                let _ = writeln!(text, "{}", obstacle(it).unwrap_or_default());
            }
            (StatusCode::OK, text)
        }
    }
}

fn ready_for<'a>(databases: impl Iterator<Item = &'a DatabaseNow>, name: &str) -> Answer {
    let mut databases = databases.peekable();
    if databases.peek().is_none() {
        return (StatusCode::NOT_FOUND, format!("no database `{name}` is configured or in use\n"));
    }
    let obstacles: Vec<String> = databases.filter_map(obstacle).collect();
    match obstacles.is_empty() {
        true => (StatusCode::OK, "ready\n".to_owned()),
        false => (StatusCode::SERVICE_UNAVAILABLE, obstacles.join("\n") + "\n"),
    }
}

/// Why no client should be sent here for it.
fn obstacle(it: &DatabaseNow) -> Option<String> {
    let why = match it.state {
        DatabaseState::Failing => "the last attempt to open a server connection failed; the log says why",
        DatabaseState::Paused => "is paused (RESUME ends it)",
        DatabaseState::Disabled => "is disabled for new clients (ENABLE ends it)",
        DatabaseState::Connecting | DatabaseState::Up | DatabaseState::Unused => return None,
    };
    let colon = if it.state == DatabaseState::Failing { ":" } else { "" };
    Some(format!("{} database {}{colon} {why}", it.protocol, it.name))
}
