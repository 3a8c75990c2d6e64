//! The queries sent to a MySQL or MariaDB server. Statements only read.

use super::connection::{Connection, DbError, Facts};

/// Variables the checks look at. One that a server does not have is simply missing.
const VARIABLES: &str = "'version', 'max_connections', 'extra_max_connections', 'max_user_connections', 'thread_handling', \
    'thread_pool_size', 'thread_pool_max_threads', 'thread_cache_size', 'back_log', 'wait_timeout', 'interactive_timeout', \
    'idle_transaction_timeout', 'idle_write_transaction_timeout', 'idle_readonly_transaction_timeout', 'max_connect_errors', \
    'skip_name_resolve', 'host_cache_size', 'open_files_limit', 'table_open_cache', 'max_prepared_stmt_count', \
    'max_execution_time', 'max_statement_time', 'connect_timeout', 'net_read_timeout', 'net_write_timeout', 'read_only'";

/// Counters the checks look at.
const STATUS: &str = "'Threads_connected', 'Threads_running', 'Threads_created', 'Connections', 'Max_used_connections', \
    'Aborted_connects', 'Connection_errors_max_connections', 'Connection_errors_internal', 'Connection_errors_accept', \
    'Prepared_stmt_count', 'Uptime'";

/// Asks everything the checks need.
///
/// # Errors
/// The connection is lost, or the server does not say who the user is.
pub fn ask(connection: &mut Connection) -> Result<Facts, DbError> {
    let mut facts = Facts::default();
    connection.gather(
        &mut facts,
        "",
        &format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({VARIABLES})"),
    )?;
    connection.gather(
        &mut facts,
        "status.",
        &format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({STATUS})"),
    )?;
    facts.put("account", connection.value("SELECT CURRENT_USER()")?);
    connection.gather(
        &mut facts,
        "account.",
        "SELECT 'max_user_connections', max_user_connections FROM mysql.user WHERE CONCAT(User, '@', Host) = CURRENT_USER() \
         UNION ALL SELECT 'max_connections', max_connections FROM mysql.user WHERE CONCAT(User, '@', Host) = CURRENT_USER()",
    )?;
    Ok(facts)
}
