//! Data read from PostgreSQL: pg_stat_activity, pg_stat_database, pg_stat_statements if installed.

use super::sample::{About, Counters, Doing, Group, Keeps, Seat, Snapshot, Source};
use crate::database::connection::{Connection, DbError, Facts, Row};

/// CPU time of PostgreSQL for connect, query, disconnect, measured without TLS (with TLS 12 ms).
const CONNECT_CPU_S: f64 = 0.0057;

/// PostgreSQL 14 has counters of time and of sessions.
const WITH_TIMES: u64 = 140_000;

/// A PostgreSQL server that is watched.
pub struct PostgresSource {
    connection: Connection,
    version: u64,
    statements: u64,
    /// pg_stat_statements is in this database and may be read.
    has_statements: bool,
}

impl PostgresSource {
    /// Watches through this connection.
    ///
    /// # Errors
    /// The connection is lost. What the user may not see is left out.
    pub fn new(mut connection: Connection) -> Result<PostgresSource, DbError> {
        let version = connection.value("SELECT current_setting('server_version_num')")?;
        let version = version.and_then(|text| text.parse().ok()).unwrap_or(0);
        let has_statements = match connection.query("SELECT calls FROM pg_stat_statements LIMIT 1") {
            Ok(_) => true,
            Err(error) if error.fatal => return Err(error),
            Err(_) => false,
        };
        Ok(PostgresSource { connection, version, statements: 0, has_statements })
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Row>, DbError> {
        self.statements += 1;
        self.connection.query(sql)
    }
}

impl Source for PostgresSource {
    fn about(&mut self) -> Result<About, DbError> {
        let mut facts = Facts::default();
        self.connection.gather(
            &mut facts,
            "",
            "SELECT name, setting FROM pg_settings WHERE name IN ('max_connections', 'superuser_reserved_connections', \
             'reserved_connections', 'server_version')",
        )?;
        self.connection.gather(
            &mut facts,
            "",
            "SELECT 'sees_all', (pg_has_role(current_user, 'pg_read_all_stats', 'usage') \
             OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user))::int",
        )?;
        let number = |name: &str| facts.number(name).unwrap_or(0);
        let reserved = number("superuser_reserved_connections") + number("reserved_connections");
        let blind = (facts.number("sees_all") != Some(1)).then(|| {
            "this user does not see what other users' connections do: GRANT pg_read_all_stats TO it"
                .to_owned()
        });
        Ok(About {
            product: format!("PostgreSQL {}", facts.text("server_version").unwrap_or("?")),
            connect_cpu_s: CONNECT_CPU_S,
            slots: number("max_connections").saturating_sub(reserved),
            most_ever: None,
            cores: None,
            blind,
        })
    }

    fn snapshot(&mut self) -> Result<Snapshot, DbError> {
        // The statement is the last one of an idle connection: a LISTEN there means that it listens.
        let rows = self.rows(
            "SELECT a.pid || '/' || extract(epoch FROM a.backend_start), coalesce(a.datname, ''), coalesce(a.usename, ''), \
                    a.state, a.wait_event_type, extract(epoch FROM clock_timestamp() - a.xact_start), \
                    CASE WHEN l.pid IS NOT NULL THEN 'lock' WHEN a.query ILIKE 'listen %' THEN 'listen' \
                         WHEN a.query ~* '^\\s*create\\s+(local\\s+|global\\s+)?temp' THEN 'temp' \
                         WHEN a.query ~* '^\\s*declare\\s.*with\\s+hold' THEN 'cursor' END \
             FROM pg_stat_activity a LEFT JOIN (SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'advisory' AND granted) l \
               ON l.pid = a.pid AND a.state = 'idle' \
             WHERE a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()",
        )?;
        Ok(Snapshot { seats: rows.into_iter().map(seat).collect() })
    }

    fn counters(&mut self) -> Result<Counters, DbError> {
        let times = if self.version >= WITH_TIMES {
            "sum(active_time) / 1000, sum(idle_in_transaction_time) / 1000, sum(sessions)"
        } else {
            "NULL, NULL, NULL"
        };
        let sql = format!(
            "SELECT sum(xact_commit) + sum(xact_rollback), sum(xact_rollback), {times} FROM pg_stat_database"
        );
        let rows = self.rows(&sql)?;
        let row = rows.into_iter().next().unwrap_or_default();
        let number = |n: usize| row.get(n).and_then(Option::as_ref).and_then(|text| text.parse::<f64>().ok());
        let mut counters = Counters {
            transactions: number(0),
            rollbacks: number(1),
            running_s: number(2),
            idle_in_transaction_s: number(3),
            connects: number(4),
            ..Counters::default()
        };
        if self.has_statements {
            let rows = self.rows("SELECT sum(calls) FROM pg_stat_statements")?;
            let calls = rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
            counters.statements = calls.and_then(|text| text.parse().ok());
        }
        Ok(counters)
    }

    fn own_statements(&self) -> u64 {
        self.statements
    }
}

fn seat(row: Row) -> Seat {
    let mut row = row.into_iter();
    let mut next = || row.next().flatten();
    let id = next().unwrap_or_default();
    let group = Group { database: next().unwrap_or_default(), user: next().unwrap_or_default() };
    let (state, wait) = (next(), next());
    let transaction_s = next().and_then(|text| text.parse().ok());
    let keeps = match next().as_deref() {
        Some("lock") => Some(Keeps::SessionLock),
        Some("listen") => Some(Keeps::Listen),
        Some("temp") => Some(Keeps::TemporaryTable),
        Some("cursor") => Some(Keeps::Cursor),
        _ => None,
    };
    let doing = match state.as_deref() {
        Some("active" | "fastpath function call") if wait.as_deref() == Some("Lock") => Doing::WaitingForLock,
        Some("active" | "fastpath function call") => Doing::Running,
        Some("idle in transaction" | "idle in transaction (aborted)") => Doing::IdleInTransaction,
        Some("idle") => Doing::Idle,
        // No state: this user may not see it, or track_activities is off.
        _ => Doing::Hidden,
    };
    Seat { id, group, doing, transaction_s, keeps }
}
