//! Data read from MySQL and MariaDB: the process list, InnoDB's transactions, status counters,
//! performance_schema if enabled.

use super::sample::{About, Cores, Counters, Doing, Group, Keeps, Seat, Snapshot, Source};
use crate::database::connection::{Connection, DbError, Facts, Row};

/// CPU time of the server for connect, query, disconnect, measured without TLS.
const MYSQL_CONNECT_CPU_S: f64 = 0.00055;
const MARIADB_CONNECT_CPU_S: f64 = 0.00027;

/// A MySQL or MariaDB server that is watched.
pub struct MysqlSource {
    connection: Connection,
    statements: u64,
    mariadb: bool,
    /// This user may see the transactions (PROCESS).
    sees_transactions: bool,
    /// performance_schema times all statements.
    has_times: bool,
}

const SEATS: &str = "SELECT p.ID, COALESCE(p.DB, ''), p.USER, p.COMMAND, COALESCE(p.STATE, ''), ";
const FROM: &str = "FROM information_schema.PROCESSLIST p ";
/// Replication, events and those that have not logged in yet are no clients.
const CLIENTS: &str = "WHERE p.ID <> CONNECTION_ID() AND p.COMMAND NOT IN ('Daemon', 'Binlog Dump', 'Binlog Dump GTID', 'Connect', \
                       'Slave_IO', 'Slave_SQL', 'Slave_worker', 'Register Slave') \
                       AND p.USER NOT IN ('system user', 'event_scheduler', 'unauthenticated user')";
/// Time that statements ran in all, in picoseconds.
const TIMES: &str =
    "SELECT SUM(SUM_TIMER_WAIT) FROM performance_schema.events_statements_summary_global_by_event_name";

impl MysqlSource {
    /// Watches through this connection.
    ///
    /// # Errors
    /// The connection is lost. What the user may not see is left out.
    pub fn new(mut connection: Connection) -> Result<MysqlSource, DbError> {
        let version = connection.value("SELECT VERSION()")?.unwrap_or_default();
        let may = |connection: &mut Connection, sql: &str| match connection.query(sql) {
            Ok(rows) => Ok(rows),
            Err(error) if error.fatal => Err(error),
            Err(_) => Ok(Vec::new()),
        };
        let transactions = may(&mut connection, "SELECT COUNT(*) FROM information_schema.INNODB_TRX")?;
        let enabled = may(&mut connection, "SELECT @@GLOBAL.performance_schema")?;
        let on = enabled.first().and_then(|row| row.first()?.clone()).as_deref() == Some("1");
        let has_times = on && !may(&mut connection, TIMES)?.is_empty();
        Ok(MysqlSource {
            connection,
            statements: 0,
            mariadb: version.contains("MariaDB"),
            sees_transactions: !transactions.is_empty(),
            has_times,
        })
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Row>, DbError> {
        self.statements += 1;
        self.connection.query(sql)
    }

    fn cores(&mut self) -> Result<Option<Cores>, DbError> {
        let mut facts = Facts::default();
        // MariaDB sets thread_pool_size to the number of cores when nobody sets it; MySQL lists the cores of
        // its groups.
        let sql = if self.mariadb {
            "SHOW GLOBAL VARIABLES WHERE Variable_name = 'thread_pool_size'"
        } else {
            "SELECT 'cores', VCPU_IDS FROM information_schema.RESOURCE_GROUPS WHERE RESOURCE_GROUP_NAME = 'USR_default'"
        };
        self.connection.gather(&mut facts, "", sql)?;
        if let Some(count) = facts.number("thread_pool_size").filter(|n| *n > 0) {
            return Ok(Some(Cores {
                count,
                from: "thread_pool_size, which is the number of cores unless it was set".to_owned(),
            }));
        }
        let count = facts.text("cores").and_then(crate::probe::cgroup::cores_of_list);
        Ok(count.map(|count| Cores { count, from: "the server's resource group".to_owned() }))
    }
}

impl Source for MysqlSource {
    fn about(&mut self) -> Result<About, DbError> {
        let mut facts = Facts::default();
        self.connection.gather(
            &mut facts,
            "",
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'max_connections')",
        )?;
        self.connection.gather(
            &mut facts,
            "",
            "SHOW GLOBAL STATUS WHERE Variable_name IN ('Max_used_connections', 'Threads_connected')",
        )?;
        let version = facts.text("version").unwrap_or("?");
        let name = if self.mariadb { "MariaDB" } else { "MySQL" };
        let blind = (!self.sees_transactions).then(|| {
            "this user sees only its own connections and no transactions: GRANT PROCESS ON *.* TO it"
                .to_owned()
        });
        Ok(About {
            product: format!("{name} {}", version.split("-MariaDB").next().unwrap_or(version)),
            connect_cpu_s: if self.mariadb { MARIADB_CONNECT_CPU_S } else { MYSQL_CONNECT_CPU_S },
            slots: facts.number("max_connections").unwrap_or(0),
            most_ever: facts.number("max_used_connections"),
            cores: self.cores()?,
            blind,
        })
    }

    fn snapshot(&mut self) -> Result<Snapshot, DbError> {
        let sql = if self.sees_transactions {
            format!(
                "{SEATS} TIMESTAMPDIFF(MICROSECOND, t.trx_started, NOW(6)) / 1000000, t.trx_state {FROM} \
                 LEFT JOIN information_schema.INNODB_TRX t ON t.trx_mysql_thread_id = p.ID {CLIENTS}"
            )
        } else {
            format!("{SEATS} NULL, NULL {FROM} {CLIENTS}")
        };
        let rows = self.rows(&sql)?;
        Ok(Snapshot { seats: rows.into_iter().map(seat).collect() })
    }

    fn counters(&mut self) -> Result<Counters, DbError> {
        let mut facts = Facts::default();
        self.statements += 1;
        self.connection.gather(
            &mut facts,
            "",
            "SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Com_commit', 'Com_rollback', 'Connections', \
             'Connection_errors_max_connections')",
        )?;
        let of = |name: &str| facts.text(name).and_then(|text| text.parse::<f64>().ok());
        let mut counters = Counters {
            explicit: of("com_commit").and_then(|commits| Some(commits + of("com_rollback")?)),
            rollbacks: of("com_rollback"),
            statements: of("questions"),
            connects: of("connections"),
            refused: of("connection_errors_max_connections"),
            ..Counters::default()
        };
        if self.has_times {
            let rows = self.rows(TIMES)?;
            let picoseconds = rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
            counters.running_s = picoseconds.and_then(|text| text.parse::<f64>().ok()).map(|ps| ps / 1e12);
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
    let (command, state) = (next().unwrap_or_default(), next().unwrap_or_default());
    let transaction_s = next().and_then(|text| text.parse().ok());
    let waits = next().as_deref() == Some("LOCK WAIT");
    let asks_for_lock = state.starts_with("Waiting for") && state.contains("lock") || state == "User lock";
    let doing = match command.as_str() {
        "Sleep" if transaction_s.is_some() => Doing::IdleInTransaction,
        "Sleep" => Doing::Idle,
        _ if waits || asks_for_lock => Doing::WaitingForLock,
        _ => Doing::Running,
    };
    // LOCK TABLES of another session shows only in who waits for it.
    let keeps = (state == "User lock").then_some(Keeps::SessionLock);
    Seat { id, group, doing, transaction_s, keeps }
}
