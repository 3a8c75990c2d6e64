//! The queries sent to a PostgreSQL server. Statements only read.

use super::connection::{Connection, DbError, Facts};

/// Settings the checks look at. One that a version does not have is simply missing.
const SETTINGS: &str = "'max_connections', 'superuser_reserved_connections', 'reserved_connections', 'server_version_num', \
    'idle_session_timeout', 'idle_in_transaction_session_timeout', 'statement_timeout', 'lock_timeout', \
    'transaction_timeout', 'tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_keepalives_count', 'tcp_user_timeout', \
    'authentication_timeout', 'work_mem', 'shared_buffers'";

/// Asks everything the checks need.
///
/// # Errors
/// The connection is lost, or the server does not say who the user is.
pub fn ask(connection: &mut Connection) -> Result<Facts, DbError> {
    let mut facts = Facts::default();
    // The session's own values: with what a role or database sets for it.
    connection.gather(
        &mut facts,
        "",
        &format!("SELECT name, setting FROM pg_settings WHERE name IN ({SETTINGS})"),
    )?;
    connection.gather(
        &mut facts,
        "source.",
        "SELECT name, source FROM pg_settings WHERE source IN ('database', 'user', 'database user')",
    )?;
    connection.gather(
        &mut facts,
        "",
        "SELECT 'connections', count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() \
         UNION ALL SELECT 'connections_of_role', count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' \
           AND pid <> pg_backend_pid() AND usename = current_user \
         UNION ALL SELECT 'connections_of_database', count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' \
           AND pid <> pg_backend_pid() AND datname = current_database() \
         UNION ALL SELECT 'idle_in_transaction', count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' \
         UNION ALL SELECT 'role_limit', rolconnlimit FROM pg_roles WHERE rolname = current_user \
         UNION ALL SELECT 'database_limit', datconnlimit FROM pg_database WHERE datname = current_database()",
    )?;
    connection.gather(
        &mut facts,
        "",
        "SELECT 'superuser', rolsuper::int FROM pg_roles WHERE rolname = current_user \
         UNION ALL SELECT 'replica', pg_is_in_recovery()::int",
    )?;
    facts.put("role", connection.value("SELECT current_user")?);
    facts.put("database", connection.value("SELECT current_database()")?);
    Ok(facts)
}
