//! The one table of settings.
//!
//! Owns: for every setting its section and name in weir.toml, its name in pgbouncer.ini, its type, unit,
//! bounds, defaults, whether a reload can change it, and its text. The parsers, `--set`, SHOW CONFIG, the
//! manual page and the reference all read this table and nothing else.
//! Must not know: files, and what a setting does.
//!
//! To add a setting: one row here, one field in `snapshot.rs`, one line in `build.rs`.

use crate::values::Flavour;

/// What kind of value a setting takes, with its unit and bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// true or false; in pgbouncer.ini also 1, 0, on, off, yes, no.
    Bool,
    /// A whole number between bounds. The unit is for people.
    Count {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
        /// What is counted.
        unit: &'static str,
    },
    /// A number of things from 1 on, or `auto`, which is kept as 0.
    Size {
        /// Largest value.
        max: u64,
        /// What is counted.
        unit: &'static str,
    },
    /// A time. A bare number is in seconds and may have a fraction; text may end in a unit. Kept in
    /// milliseconds.
    Seconds {
        /// Largest value, in milliseconds.
        max_ms: u64,
    },
    /// Unix permissions, in octal.
    Mode,
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these words; there are others, which this setting refuses, and why.
    Policy {
        /// What it may be.
        words: &'static [&'static str],
        /// Why it cannot be what others of its section can.
        why: &'static str,
    },
    /// Any text.
    Text,
    /// A file or directory; empty: none.
    Path,
    /// Text that is shown to nobody, such as a token.
    Secret,
    /// Addresses: an array in weir.toml, separated by commas elsewhere.
    List,
}

/// When a changed setting takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// At a reload (SIGHUP).
    Live,
    /// At the next start.
    Restart,
}

/// Which files may hold a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// weir.toml, pgbouncer.ini and `--set`.
    All,
    /// pgbouncer.ini only: weir.toml says the same in another way.
    PgbouncerOnly,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its number.
    pub key: Key,
    /// The table it stands in, in weir.toml; empty: the top.
    pub section: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// Its name in pgbouncer.ini.
    pub alias: Option<&'static str>,
    /// Type, unit and bounds.
    pub kind: Kind,
    /// The default.
    pub default: &'static str,
    /// The default in a pgbouncer.ini, if PgBouncer's differs.
    pub pgbouncer_default: Option<&'static str>,
    /// Live or restart.
    pub change: Change,
    /// Which files may hold it.
    pub files: Files,
    /// What it does, in one or two sentences.
    pub text: &'static str,
}

impl Setting {
    /// `section.name`, as in `--set` and in messages; pgbouncer.ini's own have only their name.
    pub fn full_name(&self) -> String {
        if self.section.is_empty() { self.name.to_owned() } else { format!("{}.{}", self.section, self.name) }
    }

    /// Its name in messages about such a file: in a pgbouncer.ini, PgBouncer's name if it has the setting.
    pub fn name_in(&self, flavour: Flavour) -> String {
        match (flavour, self.alias) {
            (Flavour::Pgbouncer, Some(alias)) => alias.to_owned(),
            (Flavour::Pgbouncer | Flavour::Weir, _) => self.full_name(),
        }
    }
}

/// The row of a key.
pub fn setting(key: Key) -> &'static Setting {
    &SETTINGS[key as usize]
}

/// The row called `section.name`, if weir.toml and `--set` may use it.
pub fn by_full_name(full_name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|s| s.files == Files::All && s.full_name() == full_name)
}

/// The row with this name in pgbouncer.ini: PgBouncer's own name or, for what PgBouncer does not have,
/// `section.name`.
pub fn by_ini_name(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|s| s.alias == Some(name)).or_else(|| {
        let found = by_full_name(name)?;
        found.alias.is_none().then_some(found)
    })
}

macro_rules! settings {
    ($(
        $key:ident $section:literal $name:literal $(= $alias:literal)?, $kind:expr, $default:literal
        $(ini $ini_default:literal)?, $change:ident, $files:ident, $text:literal;
    )*) => {
        /// The number of a setting.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Key { $(#[doc = $text] $key,)* }

        /// The table, in the order of the reference.
        pub static SETTINGS: &[Setting] = &[$(Setting {
            key: Key::$key,
            section: $section,
            name: $name,
            alias: settings!(@option $($alias)?),
            kind: $kind,
            default: $default,
            pgbouncer_default: settings!(@option $($ini_default)?),
            change: Change::$change,
            files: Files::$files,
            text: $text,
        },)*];
    };
    (@option) => { None };
    (@option $value:literal) => { Some($value) };
}

/// A day, as an upper bound that catches a value given in the wrong unit.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// For times that may be long on purpose.
const YEAR_MS: u64 = 366 * DAY_MS;
/// Server connections: PostgreSQL's own `max_connections` ends at 262,143, MySQL's at 100,000.
const SERVERS_MAX: u64 = 262_143;

const fn seconds() -> Kind {
    Kind::Seconds { max_ms: YEAR_MS }
}

const fn servers(min: u64) -> Kind {
    Kind::Count { min, max: SERVERS_MAX, unit: "connections" }
}

/// A reason for pins that the text of a statement tells, and that another client may find.
const fn passes() -> Kind {
    Kind::Policy { words: &["default", "pin", "warn", "error", "pass"], why: "" }
}

/// A reason for pins that the text of a statement tells.
const fn refuses(why: &'static str) -> Kind {
    Kind::Policy { words: &["default", "pin", "warn", "error"], why }
}

/// A reason for pins that is known only afterwards.
const fn pins() -> Kind {
    Kind::Policy {
        words: &["default", "pin", "warn"],
        why: "whether a statement pins for this reason is known only when it has run, and another client would get wrong answers",
    }
}

settings! {
    Workers "" "workers", Kind::Count { min: 0, max: weir_wire::limits::WORKERS as u64, unit: "threads" }, "0", Restart, All,
        "Worker threads. 0: one for each core.";
    Pidfile "" "pidfile" = "pidfile", Kind::Path, "", Restart, All,
        "File that Weir writes its process ID to.";

    PostgresListen "postgres" "listen", Kind::List, "127.0.0.1:6432" ini "", Restart, All,
        "Addresses for PostgreSQL clients: HOST:PORT, *:PORT, or a directory for a Unix socket (DIR or DIR:PORT).";
    PostgresProxyProtocolNetworks "postgres" "proxy_protocol_networks", Kind::List, "", Live, All,
        "Load balancers that send a PROXY header (version 1 or 2) with the client's address: addresses, ADDRESS/BITS, or unix for Unix sockets. Connections from them must begin with the header; from others it is refused.";
    PostgresAuthType "postgres" "auth_type" = "auth_type",
        Kind::Word(&["trust", "any", "cert", "peer", "plain", "md5", "scram-sha-256", "ldap", "pam", "hba"]), "scram-sha-256" ini "md5",
        Live, All,
        "How PostgreSQL clients authenticate. md5: users whose secret is a SCRAM verifier use SCRAM. cert: the common name of the client's certificate must be the user's name. peer (Unix sockets only): the operating system's user must have that name. trust: any client may log in as a known user. any: any user name is accepted; each database's connection string must name a user. ldap, pam: the client sends its password in clear text, and Weir asks the LDAP server of auth_ldap_options, or PAM, whether it is right; these know the users, who need not be listed. hba: auth_hba_file decides.";
    PostgresAuthLdapOptions "postgres" "auth_ldap_options" = "auth_ldap_options", Kind::Secret, "", Live, All,
        "Options of auth_type = ldap, with the names and the meaning of PostgreSQL's: `ldapserver`, `ldapport`, `ldapscheme`, `ldaptls`, `ldapprefix` and `ldapsuffix`, or `ldapbasedn`, `ldapbinddn`, `ldapbindpasswd`, `ldapsearchattribute`, `ldapsearchfilter`, or `ldapurl`. NAME=VALUE, separated by spaces or commas; a value with spaces or commas needs double quotes. They also apply to ldap lines of auth_hba_file that have no options of their own.";
    PostgresAuthLdapCaFile "postgres" "auth_ldap_ca_file", Kind::Path, "", Live, All,
        "File of the CAs that sign the certificates of LDAP servers (`ldaptls=1`, ldaps), in PEM. The certificate must be valid for the name in `ldapserver` or `ldapurl`. Empty: the system's CAs. Weir does not read ldap.conf.";
    PostgresPamService "postgres" "pam_service", Kind::Text, "weir" ini "pgbouncer", Live, All,
        "PAM service that auth_type = pam uses, and pam lines of auth_hba_file without `pamservice`: the name of a file in /etc/pam.d.";
    PostgresAuthFile "postgres" "auth_file" = "auth_file", Kind::Path, "", Live, All,
        "File of user names and passwords, in the form of PgBouncer's userlist.txt.";
    PostgresAuthUser "postgres" "auth_user" = "auth_user", Kind::Text, "", Live, All,
        "User that runs auth_query, which finds the passwords of users who are not in auth_file or [users]. Its own password must be there. Empty: only listed users can log in.";
    PostgresAuthQuery "postgres" "auth_query" = "auth_query", Kind::Text,
        "SELECT rolname, CASE WHEN rolvaliduntil < now() THEN NULL ELSE rolpassword END FROM pg_authid WHERE rolname=$1 AND rolcanlogin",
        Live, All,
        "Query for the password of a user who is not listed; $1 is the name. It returns the name, the password as the database stores it (NULL: this user cannot log in) and, optionally, the time until which the password is valid (timestamp with time zone). Used only with auth_user.";
    PostgresAuthDbname "postgres" "auth_dbname" = "auth_dbname", Kind::Text, "", Live, All,
        "Database in [databases] that auth_query runs on. Empty: the client's database.";
    PostgresAuthQueryCacheTtl "postgres" "auth_query_cache_ttl", Kind::Seconds { max_ms: 3_600_000 }, "0", Live, All,
        "Time for which a result of auth_query is reused for the same user. 0: each login runs the query; simultaneous logins of one user share one query.";
    PostgresAuthHbaFile "postgres" "auth_hba_file" = "auth_hba_file", Kind::Path, "", Live, All,
        "File that says who may log in from where and how, in the form of PostgreSQL's pg_hba.conf. Used only with auth_type = hba.";
    PostgresAuthIdentFile "postgres" "auth_ident_file" = "auth_ident_file", Kind::Path, "", Live, All,
        "File of ident maps, in the form of PostgreSQL's pg_ident.conf: MAP SYSTEM-NAME DATABASE-NAME, one per line; all means any user.";
    PostgresAuthIdentMap "postgres" "auth_ident_map", Kind::Text, "", Live, All,
        "Map in auth_ident_file that says which users a certificate (cert) or an operating system user (peer) may log in as. Empty: only the user of the same name.";
    ListenAddr "pgbouncer" "listen_addr" = "listen_addr", Kind::List, "", Restart, PgbouncerOnly,
        "Addresses to listen on, separated by commas; * means all. In weir.toml: postgres.listen.";
    ListenPort "pgbouncer" "listen_port" = "listen_port", Kind::Count { min: 1, max: 65535, unit: "" }, "6432", Restart,
        PgbouncerOnly, "The port of all addresses and of the Unix socket. In weir.toml: postgres.listen.";
    UnixSocketDir "pgbouncer" "unix_socket_dir" = "unix_socket_dir", Kind::Path, "/tmp", Restart, PgbouncerOnly,
        "Directory of the Unix socket to listen on, and of the sockets of servers without a host. Empty: none. In weir.toml: postgres.listen.";

    MysqlListen "mysql" "listen", Kind::List, "127.0.0.1:6033" ini "", Restart, All,
        "Addresses for MySQL and MariaDB clients: HOST:PORT, *:PORT, or the path of a Unix socket.";
    MysqlProxyProtocolNetworks "mysql" "proxy_protocol_networks", Kind::List, "", Live, All,
        "Load balancers that send a PROXY header (version 1 or 2) with the client's address: addresses, ADDRESS/BITS, or unix for Unix sockets. Connections from them must begin with the header; from others it is refused.";
    MysqlAuthType "mysql" "auth_type",
        Kind::Word(&["auto", "trust", "auth_socket", "mysql_native_password", "caching_sha2_password"]), "auto", Live, All,
        "How MySQL clients authenticate. auto: as at the database itself, by mysql_native_password behind MariaDB and by caching_sha2_password behind MySQL. Clients that do not know caching_sha2_password need mysql_native_password. auth_socket (Unix sockets only): the operating system's user must have the user's name. trust: any client may log in as a known user.";
    MysqlCompression "mysql" "compression", Kind::Bool, "true", Live, All,
        "Compresses the connections of MySQL and MariaDB clients that ask for it (zlib, and zstd behind MySQL). false: they are told that Weir cannot, and go on without, unless they insist.";
    MysqlServerVersion "mysql" "server_version", Kind::Text, "", Restart, All,
        "Server version that MySQL clients are told. Empty: the version of the server.";

    HttpListen "http" "listen", Kind::List, "127.0.0.1:9930", Restart, All,
        "Addresses for the dashboard, /metrics, /api, /healthz and /readyz. An empty list disables the HTTP endpoint.";
    HttpToken "http" "token", Kind::Secret, "", Live, All,
        "Token for the tables of /api, which name clients, statements and settings. Requests send it as `Authorization: Bearer TOKEN`. At least 16 characters: letters, digits and `-._~+/=`. Empty, without token_file: these tables are refused; the dashboard's figures, /api/live and /metrics need no token.";
    HttpTokenFile "http" "token_file", Kind::Path, "", Live, All,
        "File that contains only that token.";

    PoolMode "pool" "pool_mode" = "pool_mode", Kind::Word(&["session", "transaction", "statement"]), "transaction" ini "session",
        Live, All,
        "When a server connection returns to its pool: after the client's session, transaction or statement. In transaction mode, a client whose session state cannot move keeps its server connection; the reason is shown.";
    DefaultPoolSize "pool" "default_pool_size" = "default_pool_size", Kind::Size { max: 262_143, unit: "connections" }, "20", Live, All,
        "Maximum number of server connections for each pair of database and user, in the whole process. auto: Weir finds the best size by trial, between auto_size_min and auto_size_max.";
    AutoSizeMin "pool" "auto_size_min", servers(1), "2", Live, All,
        "Minimum size of a pool whose size is auto.";
    AutoSizeMax "pool" "auto_size_max", servers(1), "64", Live, All,
        "Maximum size of a pool whose size is auto.";
    PinnedPoolSize "pool" "pinned_pool_size", servers(0), "0", Live, All,
        "Maximum number of server connections of a pool, beyond its size, that clients keep because of a pin: for each of them the pool may open another one, so that pinned clients take none from the others. A pool then has up to pool_size + pinned_pool_size connections; max_db_connections and max_user_connections still apply. 0: pinned connections count against pool_size.";
    PipelineDepth "pool" "pipeline_depth", Kind::Count { min: 1, max: 1024, unit: "requests" }, "16", Live, All,
        "Maximum number of requests of different clients that Weir sends back to back on one server connection when none is free. Only whole statements that read and leave no trace are sent this way. 1 disables it.";
    LateBegin "pool" "late_begin", Kind::Bool, "true", Live, All,
        "In transaction mode, a transaction takes a server connection at its first statement, not at BEGIN or START TRANSACTION. now() is then the time of that statement.";
    ShareAnswers "pool" "share_answers", Kind::Bool, "false", Live, All,
        "true: in transaction mode, identical reads that wait for a server connection at the same moment, of clients with the same settings, are sent once, and the answer goes to all who asked. Only statements whose answer provably does not depend on who asks are shared: no random values, no time, nothing about the session.";
    UnknownCode "pool" "unknown_code", Kind::Word(&["pin", "reset", "pass"]), "pin", Live, All,
        "What happens in transaction mode after a statement that runs code which Weir cannot read, such as a function in another language. pin: the client keeps its server connection, so it finds what the code has left in the session. reset: the server is reset before another client gets it, and what the code has left is lost. pass: nothing, as in PgBouncer; what the code has left meets the next client.";
    SharedListen "pool" "shared_listen", Kind::Bool, "true", Live, All,
        "In transaction mode, PostgreSQL clients that only listen (LISTEN) hold no server connection: one connection for each pool, outside its limits, listens for all of them. false: LISTEN keeps a server connection for its client.";
    ListenLinger "pool" "listen_linger", seconds(), "0.05", Live, All,
        "Time a client that listens keeps its idle server connection before shared_listen applies. Each time the client needs a server connection that listens again, it grows fourfold, up to a minute.";
    MinPoolSize "pool" "min_pool_size" = "min_pool_size", servers(0), "0", Live, All,
        "Minimum number of server connections to keep open for each pair of database and user.";
    MaxDbConnections "pool" "max_db_connections" = "max_db_connections", servers(0), "0", Live, All,
        "Maximum number of server connections for each database, over all users, in the whole process. 0: the sum of its pools.";
    MaxUserConnections "pool" "max_user_connections" = "max_user_connections", servers(0), "0", Live, All,
        "Maximum number of server connections for each user, over all databases, in the whole process. 0: the sum of the user's pools.";
    MaxPreparedStatements "pool" "max_prepared_statements" = "max_prepared_statements",
        Kind::Count { min: 0, max: 65_536, unit: "statements" }, "200", Live, All,
        "Maximum number of prepared statements kept on each server connection. 0: a client that prepares a statement keeps its server connection.";
    MaxWaitingClients "pool" "max_waiting_clients", Kind::Size { max: 10_000_000, unit: "clients" }, "auto", Live, All,
        "Maximum number of clients that wait for a server connection of one pool; further clients are refused at once (SQLSTATE 53300, errno 1040). auto: twice as many as the pool can serve within query_wait_timeout at its recent rate.";
    QueryWaitTimeout "pool" "query_wait_timeout" = "query_wait_timeout", seconds(), "120", Live, All,
        "Maximum time a request waits for a server connection. 0 disables the limit.";
    QueryTimeout "pool" "query_timeout" = "query_timeout", seconds(), "0", Live, All,
        "Maximum time a request runs. 0 disables the limit. Set it longer than the server's own statement timeout.";
    TransactionTimeout "pool" "transaction_timeout" = "transaction_timeout", seconds(), "0", Live, All,
        "Maximum duration of a transaction. 0 disables the limit.";
    IdleTransactionTimeout "pool" "idle_transaction_timeout" = "idle_transaction_timeout", seconds(), "0", Live, All,
        "Maximum time a client may be idle inside a transaction. 0 disables the limit.";
    CancelWaitTimeout "pool" "cancel_wait_timeout" = "cancel_wait_timeout", seconds(), "10", Live, All,
        "Time after which Weir cancels a request whose client has closed its connection. If the request has not ended after the same time again, its server connection is closed. A client that shuts down only its sending side looks the same: its request is cancelled too, unless it has received data in the meantime.";
    ServerConnectTimeout "pool" "server_connect_timeout" = "server_connect_timeout", seconds(), "15", Live, All,
        "Maximum time for connect and login to a server. 0 disables the limit.";
    ServerIdleTimeout "pool" "server_idle_timeout" = "server_idle_timeout", seconds(), "600", Live, All,
        "Idle server connections are closed after this time. 0 disables it.";
    ServerLifetime "pool" "server_lifetime" = "server_lifetime", seconds(), "3600", Live, All,
        "Server connections older than this are closed as soon as they are free. 0 disables it; in a pgbouncer.ini, 0 closes each connection after one use, as in PgBouncer.";
    ServerLoginRetry "pool" "server_login_retry" = "server_login_retry", seconds(), "15", Live, All,
        "Maximum pause between attempts to connect or log in to a server after failures. The pause begins with 0.1 s and doubles with each failure. While no server connection is open, a client that logs in waits at most 0.1 s for the next attempt.";
    ServerCheckDelay "pool" "server_check_delay" = "server_check_delay", seconds(), "30", Live, All,
        "Server connections that have been idle for longer than this are checked before use. 0: always.";
    CatalogueCheckInterval "pool" "catalogue_check_interval", seconds(), "1", Live, All,
        "Shortest interval at which Weir asks whether the catalogue of a database (functions, views, triggers, policies) was changed elsewhere. It asks when a server becomes free, and takes at most a fiftieth of its time. Changes made through Weir apply at once.";
    DnsMaxTtl "pool" "dns_max_ttl" = "dns_max_ttl", seconds(), "15", Live, All,
        "Interval at which host names are looked up again. Connections to an address that a name no longer has are closed when they are free.";

    MaxClientConn "limits" "max_client_conn" = "max_client_conn", Kind::Size { max: 16_000_000, unit: "clients" },
        "auto" ini "100", Live, All,
        "Maximum number of clients of the whole process. Further clients are refused. auto: as many as the machine holds, by its open files and its memory at the start; the log says how many, and which of the two decides.";
    ClientLoginTimeout "limits" "client_login_timeout" = "client_login_timeout", seconds(), "60", Live, All,
        "Maximum time for a client's login. 0 disables the limit.";
    ClientIdleTimeout "limits" "client_idle_timeout" = "client_idle_timeout", seconds(), "0", Live, All,
        "Clients that send nothing for this time are closed. 0 disables the limit.";
    ClientReadTimeout "limits" "client_read_timeout", seconds(), "60", Live, All,
        "Maximum pause of a client that holds a server connection, in the middle of a message. 0 disables the limit.";
    DrainTimeout "limits" "drain_timeout", seconds(), "30" ini "0", Live, All,
        "Maximum time for clients to finish their transactions after SIGTERM. 0 disables the limit.";

    ListenBacklog "socket" "listen_backlog" = "listen_backlog", Kind::Count { min: 1, max: 65_535, unit: "connections" },
        "4096" ini "128", Restart, All,
        "Maximum number of connections that wait in the kernel to be accepted, for each listener. The kernel's somaxconn is an upper limit.";
    UnixSocketMode "socket" "unix_socket_mode" = "unix_socket_mode", Kind::Mode, "0777", Restart, All,
        "Permissions of Unix sockets.";
    UnixSocketGroup "socket" "unix_socket_group" = "unix_socket_group", Kind::Text, "", Restart, All,
        "Group of Unix sockets, by name or number. Empty: the group of the process.";
    TcpKeepalive "socket" "tcp_keepalive" = "tcp_keepalive", Kind::Bool, "true", Restart, All,
        "TCP keepalive on all TCP connections.";
    TcpKeepcnt "socket" "tcp_keepcnt" = "tcp_keepcnt", Kind::Count { min: 0, max: 127, unit: "probes" }, "0", Restart, All,
        "Number of keepalive probes without an answer after which a connection is closed. 0: the system's value.";
    TcpKeepidle "socket" "tcp_keepidle" = "tcp_keepidle", Kind::Count { min: 0, max: 32_767, unit: "seconds" }, "0", Restart, All,
        "Idle time before the first keepalive probe. 0: the system's value.";
    TcpKeepintvl "socket" "tcp_keepintvl" = "tcp_keepintvl", Kind::Count { min: 0, max: 32_767, unit: "seconds" }, "0", Restart, All,
        "Time between keepalive probes. 0: the system's value.";
    TcpUserTimeout "socket" "tcp_user_timeout" = "tcp_user_timeout",
        Kind::Count { min: 0, max: DAY_MS, unit: "milliseconds" }, "0", Restart, All,
        "Maximum time that sent data may stay unacknowledged. 0: the system's value.";

    PinsDefault "pins" "default", Kind::Word(&["pin", "warn"]), "pin", Live, All,
        "What happens for each reason below that is set to `default`. pin: the client keeps its server connection. warn: the same, and a line in the log names the client, the reason and the statement, at most once a minute for each pool, reason and worker thread.";
    PinsTemporaryTable "pins" "temporary_table", passes(), "default", Live, All,
        "Temporary tables, views and sequences.";
    PinsSessionLock "pins" "session_lock", passes(), "default", Live, All,
        "Advisory locks of the session, GET_LOCK, LOCK TABLES.";
    PinsCursor "pins" "cursor", refuses("an open cursor is its client's, and would hold its snapshot on a connection of others"), "default", Live, All,
        "Cursors WITH HOLD, HANDLER, open cursors of MySQL statements.";
    PinsListen "pins" "listen", refuses("notifications would reach other clients; pool.shared_listen serves clients that only listen without a pin"), "default", Live, All,
        "LISTEN.";
    PinsSqlPrepare "pins" "sql_prepare", refuses("a name would mean another client's statement"), "default", Live, All,
        "PREPARE in SQL.";
    PinsLoad "pins" "load", refuses("the server process is another one afterwards"), "default", Live, All,
        "LOAD and other changes of the server process.";
    PinsReplication "pins" "replication", refuses("a replication slot is its session's"), "default", Live, All,
        "Functions that create replication slots.";
    PinsUnrecognised "pins" "unrecognised", refuses("what such a statement leaves behind is not known"), "default", Live, All,
        "Statements that Weir does not recognise.";
    PinsCode "pins" "code", refuses("pool.unknown_code = pass decides that"), "default", Live, All,
        "Code of the database's users whose effects are not known.";
    PinsSetting "pins" "setting", pins(), "default", Live, All,
        "Settings that do not move.";
    PinsLastResult "pins" "last_result", pins(), "default", Live, All,
        "The next request may ask about the last one: currval, LAST_INSERT_ID and others.";
    PinsSequence "pins" "sequence", pins(), "default", Live, All,
        "MariaDB: a value drawn from a sequence.";
    PinsUserVariable "pins" "user_variable", pins(), "default", Live, All,
        "User variables that do not move.";
    PinsPrepared "pins" "prepared", pins(), "default", Live, All,
        "More prepared statements or long data than Weir can move.";

    ClientTlsSslmode "tls.client" "sslmode" = "client_tls_sslmode", Kind::Word(&weir_tls::SslMode::NAMES),
        "prefer" ini "disable", Live, All,
        "TLS with clients. disable: none. allow, prefer: clients may use TLS. require: clients must use TLS, except on Unix sockets. verify-ca, verify-full: clients must also present a certificate signed by a CA in ca_file.";
    ClientTlsCertFile "tls.client" "cert_file" = "client_tls_cert_file", Kind::Path, "", Live, All,
        "Weir's certificate in PEM, followed by intermediate certificates. Empty: Weir creates a self-signed certificate.";
    ClientTlsKeyFile "tls.client" "key_file" = "client_tls_key_file", Kind::Path, "", Live, All,
        "Private key of cert_file, in PEM.";
    ClientTlsCaFile "tls.client" "ca_file" = "client_tls_ca_file", Kind::Path, "", Live, All,
        "CAs that client certificates are verified against, in PEM. With sslmode below verify-ca, clients need not present a certificate, but one that is presented must be valid.";
    ClientTlsSelfMadeFile "tls.client" "self_made_file", Kind::Path, "", Live, All,
        "File that keeps the self-signed certificate and its key. Empty: tls.pem in the state directory: systemd's StateDirectory, or else weir in $XDG_STATE_HOME or ~/.local/state, or else beside the configuration file. If none of these can be written, the certificate is kept in memory and each start creates a new one.";
    ClientTlsTickets "tls.client" "tickets", Kind::Bool, "true", Live, All,
        "Clients may resume TLS sessions, which saves CPU on both sides.";
    ClientTlsProtocols "tls.client" "protocols" = "client_tls_protocols", Kind::Text, "secure", Live, All,
        "TLS versions: tlsv1.2, tlsv1.3, or both separated by a comma; secure means both.";
    ClientTlsCiphers "tls.client" "ciphers" = "client_tls_ciphers", Kind::Text, "default", Live, All,
        "TLS 1.2 ciphers by OpenSSL's names, separated by colons, in Weir's order of preference. default: all that Weir supports, AES-128 first.";
    ClientTls13Ciphers "tls.client" "tls13_ciphers" = "client_tls13_ciphers", Kind::Text, "", Live, All,
        "TLS 1.3 ciphers, likewise. Empty: all, TLS_AES_128_GCM_SHA256 first.";
    ClientTlsEcdhcurve "tls.client" "ecdhcurve" = "client_tls_ecdhcurve", Kind::Text, "auto", Live, All,
        "Key exchange groups: X25519, prime256v1, secp384r1, X25519MLKEM768, separated by colons. auto: all.";

    ServerTlsSslmode "tls.server" "sslmode" = "server_tls_sslmode", Kind::Word(&weir_tls::SslMode::NAMES), "prefer", Live, All,
        "TLS with servers, with libpq's meaning. disable: none. allow: only if the server refuses plain connections. prefer: if the server supports it; on a loopback address, like allow. require: always. verify-ca: the server's certificate must be signed by a CA in ca_file. verify-full: the certificate must also match the host name. A URL's sslmode overrides it.";
    ServerTlsCaFile "tls.server" "ca_file" = "server_tls_ca_file", Kind::Path, "", Live, All,
        "CAs that verify-ca and verify-full trust, in PEM. Empty: the system's CAs.";
    ServerTlsCertFile "tls.server" "cert_file" = "server_tls_cert_file", Kind::Path, "", Live, All,
        "Client certificate for servers that request one, in PEM.";
    ServerTlsKeyFile "tls.server" "key_file" = "server_tls_key_file", Kind::Path, "", Live, All,
        "Private key of cert_file, in PEM.";
    ServerPublicKeyFile "tls.server" "public_key_file", Kind::Path, "", Live, All,
        "MySQL: the server's RSA public key, in PEM (the server's public_key.pem). Without TLS, a password for caching_sha2_password or sha256_password is encrypted with it. A URL's server-public-key-path overrides it.";
    ServerTrustUnverified "tls.server" "trust_unverified", Kind::Bool, "false", Live, All,
        "MySQL: send the password to a server that asks for it even if the server is not verified (by a verified certificate, public_key_file or a Unix socket). An active attacker on the network can then read the password. A URL's get-server-public-key overrides it.";
    ServerTlsProtocols "tls.server" "protocols" = "server_tls_protocols", Kind::Text, "secure", Live, All,
        "TLS versions, as for tls.client.";
    ServerTlsCiphers "tls.server" "ciphers" = "server_tls_ciphers", Kind::Text, "default", Live, All,
        "TLS 1.2 ciphers, as for tls.client.";
    ServerTls13Ciphers "tls.server" "tls13_ciphers" = "server_tls13_ciphers", Kind::Text, "", Live, All,
        "TLS 1.3 ciphers, as for tls.client.";
    ServerTlsEcdhcurve "tls.server" "ecdhcurve", Kind::Text, "auto", Live, All,
        "Key exchange groups, as for tls.client.";

    AdminUsers "console" "admin_users" = "admin_users", Kind::List, "", Live, All,
        "Users who may run every command of the administration console (database pgbouncer or weir; MySQL: schema weir). They log in like other users.";
    StatsUsers "console" "stats_users" = "stats_users", Kind::List, "", Live, All,
        "Users who may run only the SHOW commands of the console.";
    StatsPeriod "console" "stats_period" = "stats_period", Kind::Seconds { max_ms: DAY_MS }, "60", Live, All,
        "Period over which the console's averages are calculated.";

    TrackStatements "console" "track_statements", Kind::Count { min: 0, max: 10_000, unit: "statements" }, "500", Live, All,
        "Statements whose calls, times, rows and errors SHOW STATEMENTS shows, for each worker and protocol. In a full table a new one replaces the one called longest ago when it comes for the second time. 0 disables it.";

    LogLevel "log" "level", Kind::Text, "info", Restart, All,
        "error, warn, info, debug or trace; or several filters separated by commas, such as info,weir_proxy=debug.";
    LogFormat "log" "format", Kind::Word(&["text", "json"]), "text", Restart, All,
        "text: lines for people. json: one JSON object per line, with timestamp, level, message and the fields of the event (protocol, user, database, address...), for log collectors.";
    LogConnections "log" "log_connections" = "log_connections", Kind::Bool, "false" ini "true", Live, All,
        "Log each successful login.";
    LogDisconnections "log" "log_disconnections" = "log_disconnections", Kind::Bool, "false" ini "true", Live, All,
        "Log each client that disconnects.";
    LogPoolerErrors "log" "log_pooler_errors" = "log_pooler_errors", Kind::Bool, "true", Live, All,
        "Log errors that Weir itself sends to clients: refused logins and closed clients.";
    LogPinsAfter "log" "log_pins_after", seconds(), "60", Live, All,
        "Log each client that has kept its server connection for this time because of a pin while other clients of the pool wait: once for each pin, with the reason and the statement. 0 disables it.";
    LogMinDuration "log" "log_min_duration", seconds(), "0", Live, All,
        "Log each request that takes at least this time, the wait for a server included: how long it waited, how long the database took, and the statement without its values. 0 disables it; otherwise Weir reads each request once more.";
    Logfile "log" "logfile" = "logfile", Kind::Path, "", Restart, All,
        "File to append the log to, in addition to standard error.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flavour, Values};

    #[test]
    fn rows_are_numbered_and_named_once() {
        let mut names = std::collections::BTreeSet::new();
        let mut aliases = std::collections::BTreeSet::new();
        for (index, row) in SETTINGS.iter().enumerate() {
            assert_eq!(row.key as usize, index);
            assert!(names.insert(row.full_name()), "{} twice", row.full_name());
            if let Some(alias) = row.alias {
                assert!(aliases.insert(alias), "{alias} twice");
            }
            assert!(row.text.ends_with('.'), "{}: the text is a sentence", row.full_name());
        }
    }

    #[test]
    fn defaults_obey_their_own_bounds() {
        // `Values::new` parses every default with the parser the files use and panics on a bad one.
        for flavour in [Flavour::Weir, Flavour::Pgbouncer] {
            let values = Values::new(flavour);
            assert_eq!(values.show(Key::DefaultPoolSize), "20");
        }
    }
}
