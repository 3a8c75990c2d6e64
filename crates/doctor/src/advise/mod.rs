//! `weir advise`: watches a live database for a while and recommends whether to use a pooler, in which mode,
//! with which size.
//!
//! Owns: the samples ([`sample`]), their summary ([`seen`]), the recommendation ([`judge`]) and its text
//! ([`text`]). Must not do: change anything in the database; judge by anything that is not in [`seen::Seen`].
//!
//! The published questions before deploying a pooler are: how many connections, how they vary, which
//! throughput, how many cores, a connection for each request or long-lived ones, single statements or long
//! transactions. The answers are measured here, and every recommendation names the numbers it is based on.

mod ask_mysql;
mod ask_postgres;
pub mod judge;
pub mod sample;
pub mod seen;
pub mod text;
mod watch;

use crate::database::Place;
use crate::database::connection::{Connection, DbError};
use crate::probe::cgroup;
use crate::question::is_here;
use crate::root::Root;
use ask_mysql::MysqlSource;
use ask_postgres::PostgresSource;
use judge::Advice;
use sample::{Cores, Source};
use serde_json::json;
use weir_config::Protocol;

pub use watch::{Clock, Plan, RealClock, watch};

/// Version of the JSON.
const JSON_VERSION: u32 = 1;

/// Watches a database and judges it. `cores` is what the user says of its machine; `progress` hears each
/// sample and answers whether to go on.
///
/// # Errors
/// The database cannot be reached, refuses the login or a look, or the connection is lost.
pub fn advise(
    place: &Place,
    plan: Plan,
    cores: Option<u32>,
    progress: &mut dyn FnMut(&sample::Snapshot) -> bool,
) -> Result<Advice, DbError> {
    let connection = Connection::open(place)?;
    let mut source: Box<dyn Source> = match place.url.protocol {
        Protocol::Postgres => Box::new(PostgresSource::new(connection)?),
        Protocol::Mysql => Box::new(MysqlSource::new(connection)?),
    };
    let said = cores.map(|n| Cores { count: u64::from(n), from: "--cores".to_owned() });
    let cores = said.or_else(|| is_here(&place.target).then(|| local_cores(&Root::real())).flatten());
    let mut seen = watch(source.as_mut(), plan, &mut RealClock::new(), progress)?;
    seen.cores = cores.or(seen.cores);
    Ok(Advice::of(&place.shown, seen))
}

/// Cores of this machine, for a database on it.
fn local_cores(root: &Root) -> Option<Cores> {
    let count = cgroup::online_cores(root)?;
    Some(Cores { count, from: "this machine".to_owned() })
}

/// The advice as JSON, in lines.
pub fn to_json(advice: &Advice) -> String {
    let value = json!({
        "version": JSON_VERSION,
        "database": advice.database,
        "seen": advice.seen,
        "pooler": advice.pooler,
        "mode": advice.mode,
        "pool_size": advice.size,
        "pools": advice.pools,
        "remarks": advice.remarks,
    });
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}
