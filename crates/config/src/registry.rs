//! The one table of settings.
//!
//! Owns: for every setting its section and name in weir.toml, its name in pgbouncer.ini, its type, unit,
//! bounds, defaults, whether a reload can change it, and its text. The parsers, `--set`, SHOW CONFIG, the
//! manual page and the reference all read this table and nothing else.
//! Must not know: files, and what a setting does.
//!
//! To add a setting: one row here, one field in `snapshot.rs`, one line in `build.rs`.

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
    /// Any text.
    Text,
    /// A file or directory; empty: none.
    Path,
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
    /// What holds when nobody says anything.
    pub default: &'static str,
    /// What holds in a pgbouncer.ini when nobody says anything, where PgBouncer's default is another.
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

    /// The name SHOW CONFIG uses: PgBouncer's where PgBouncer has the setting.
    pub fn show_name(&self) -> String {
        self.alias.map_or_else(|| self.full_name(), str::to_owned)
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

settings! {
    Workers "" "workers", Kind::Count { min: 0, max: 1024, unit: "threads" }, "0", Restart, All,
        "Threads that carry traffic. 0 means one for each core.";
    Pidfile "" "pidfile" = "pidfile", Kind::Path, "", Restart, All,
        "File to write the process number to.";

    PostgresListen "postgres" "listen", Kind::List, "127.0.0.1:6432" ini "", Restart, All,
        "Where PostgreSQL clients connect: HOST:PORT, *:PORT, or a directory for a Unix socket, as DIR or DIR:PORT.";
    PostgresProxyProtocolNetworks "postgres" "proxy_protocol_networks", Kind::List, "", Live, All,
        "Load balancers whose connections begin with a PROXY header (version 1 or 2), which says who the client is: addresses, \
         ADDRESS/BITS, or unix for Unix sockets. The header is required from them and taken from nobody else.";
    PostgresAuthType "postgres" "auth_type" = "auth_type",
        Kind::Word(&["trust", "any", "cert", "peer", "plain", "md5", "scram-sha-256"]), "scram-sha-256" ini "md5", Live, All,
        "How PostgreSQL clients prove who they are. With md5, a user whose secret is a SCRAM verifier is asked for SCRAM. \
         With cert, the common name of the client's certificate must be the user's name; with peer, which is for Unix sockets, \
         the system's user at the other end must have that name. trust believes the name, which must be known; any believes any name and needs a user in each database's connection string.";
    PostgresAuthFile "postgres" "auth_file" = "auth_file", Kind::Path, "", Live, All,
        "File of user names and passwords, in PgBouncer's userlist.txt form.";
    PostgresAuthIdentFile "postgres" "auth_ident_file" = "auth_ident_file", Kind::Path, "", Live, All,
        "File of ident maps, as PgBouncer and PostgreSQL have them: MAP SYSTEM-NAME DATABASE-NAME, one a line; all stands for any user.";
    PostgresAuthIdentMap "postgres" "auth_ident_map", Kind::Text, "", Live, All,
        "The map of auth_ident_file by which cert and peer tell who may be which user. Empty: only the same name.";
    ListenAddr "pgbouncer" "listen_addr" = "listen_addr", Kind::List, "", Restart, PgbouncerOnly,
        "Addresses to listen on, separated by commas; * means all. In weir.toml: postgres.listen.";
    ListenPort "pgbouncer" "listen_port" = "listen_port", Kind::Count { min: 1, max: 65535, unit: "" }, "6432", Restart,
        PgbouncerOnly, "The port of all addresses and of the Unix socket. In weir.toml: postgres.listen.";
    UnixSocketDir "pgbouncer" "unix_socket_dir" = "unix_socket_dir", Kind::Path, "/tmp", Restart, PgbouncerOnly,
        "Directory of the Unix socket to listen on, and of the sockets of servers without a host. Empty: none. In weir.toml: postgres.listen.";

    MysqlListen "mysql" "listen", Kind::List, "127.0.0.1:6033" ini "", Restart, All,
        "Where MySQL and MariaDB clients connect: HOST:PORT, *:PORT, or the path of a Unix socket.";
    MysqlProxyProtocolNetworks "mysql" "proxy_protocol_networks", Kind::List, "", Live, All,
        "Load balancers whose connections begin with a PROXY header (version 1 or 2), which says who the client is: addresses, \
         ADDRESS/BITS, or unix for Unix sockets. The header is required from them and taken from nobody else.";
    MysqlAuthType "mysql" "auth_type",
        Kind::Word(&["trust", "auth_socket", "mysql_native_password", "caching_sha2_password"]), "caching_sha2_password", Live, All,
        "How MySQL clients prove who they are. Clients that do not know caching_sha2_password need mysql_native_password. \
         With auth_socket, which is for Unix sockets, the system's user at the other end must have the user's name.";
    MysqlServerVersion "mysql" "server_version", Kind::Text, "", Restart, All,
        "The version MySQL clients are greeted with. Empty: what the server says.";

    HttpListen "http" "listen", Kind::List, "127.0.0.1:9930", Restart, All,
        "Where /metrics, /healthz and /readyz are served. An empty list switches it off.";

    PoolMode "pool" "pool_mode" = "pool_mode", Kind::Word(&["session", "transaction", "statement"]), "transaction" ini "session",
        Live, All,
        "When a server goes back to its pool: when the client leaves, when the transaction ends, or when the statement ends. \
         In transaction mode a client with state that cannot be moved keeps its server, with a stated reason.";
    DefaultPoolSize "pool" "default_pool_size" = "default_pool_size", Kind::Size { max: 262_143, unit: "connections" }, "20", Live, All,
        "Server connections for one database and user, in the whole process. auto: Weir finds by trial how many the          database runs best with, between auto_size_min and auto_size_max.";
    AutoSizeMin "pool" "auto_size_min", servers(1), "2", Live, All,
        "The smallest size of a pool whose size is auto.";
    AutoSizeMax "pool" "auto_size_max", servers(1), "64", Live, All,
        "The largest size of a pool whose size is auto.";
    PipelineDepth "pool" "pipeline_depth", Kind::Count { min: 1, max: 1024, unit: "requests" }, "16", Live, All,
        "Requests of different clients that one server connection carries back to back when none is free. Only whole \
         statements that read and leave no trace are carried so. 1 switches it off.";
    MinPoolSize "pool" "min_pool_size" = "min_pool_size", servers(0), "0", Live, All,
        "Server connections to keep open for one database and user.";
    MaxDbConnections "pool" "max_db_connections" = "max_db_connections", servers(0), "0", Live, All,
        "Server connections of one database, whatever the user, in the whole process. 0: as many as its pools may have.";
    MaxUserConnections "pool" "max_user_connections" = "max_user_connections", servers(0), "0", Live, All,
        "Server connections of one user, whatever the database, in the whole process. 0: as many as its pools may have.";
    MaxPreparedStatements "pool" "max_prepared_statements" = "max_prepared_statements",
        Kind::Count { min: 0, max: 65_536, unit: "statements" }, "200", Live, All,
        "Statements kept prepared on one server connection. 0: a client that prepares keeps its server.";
    MaxWaitingClients "pool" "max_waiting_clients", Kind::Size { max: 10_000_000, unit: "clients" }, "auto", Live, All,
        "Clients that may wait for a server of one pool; who comes then is refused at once (SQLSTATE 53300, errno 1040). \
         auto: as many as the pool serves within query_wait_timeout, going by the last seconds; the others would wait in vain.";
    QueryWaitTimeout "pool" "query_wait_timeout" = "query_wait_timeout", seconds(), "120", Live, All,
        "A request may wait so long for a server. 0: for ever.";
    QueryTimeout "pool" "query_timeout" = "query_timeout", seconds(), "0", Live, All,
        "A request may run so long. 0: for ever. Longer than the server's own statement timeout, if at all.";
    TransactionTimeout "pool" "transaction_timeout" = "transaction_timeout", seconds(), "0", Live, All,
        "A transaction may last so long. 0: for ever.";
    IdleTransactionTimeout "pool" "idle_transaction_timeout" = "idle_transaction_timeout", seconds(), "0", Live, All,
        "A client may be idle inside a transaction so long. 0: for ever.";
    CancelWaitTimeout "pool" "cancel_wait_timeout" = "cancel_wait_timeout", seconds(), "10", Live, All,
        "A cancel request may take so long to reach the server. A request whose client has gone may go on for this long before it is cancelled, and after the same time again its server is closed. A client that has closed its connection cannot be told from one that only sends nothing more: a request of either is cancelled after this time, unless it has got bytes since.";
    ServerConnectTimeout "pool" "server_connect_timeout" = "server_connect_timeout", seconds(), "15", Live, All,
        "Connect and login to a server may take so long. 0: for ever.";
    ServerIdleTimeout "pool" "server_idle_timeout" = "server_idle_timeout", seconds(), "600", Live, All,
        "A server connection that was idle so long is closed. 0: never.";
    ServerLifetime "pool" "server_lifetime" = "server_lifetime", seconds(), "3600", Live, All,
        "A server connection of this age is closed as soon as nobody uses it. 0: never.";
    ServerLoginRetry "pool" "server_login_retry" = "server_login_retry", seconds(), "15", Live, All,
        "Maximum pause after a failed connect or login before the next try; the first pause is 0.1 s, and each further failure doubles it. While no server connection is open, a client that logs in waits 0.1 s at most for a try.";
    ServerCheckDelay "pool" "server_check_delay" = "server_check_delay", seconds(), "30", Live, All,
        "A server connection that was idle longer is checked before it is lent. 0: always.";
    CatalogueCheckInterval "pool" "catalogue_check_interval", seconds(), "1", Live, All,
        "Interval at which Weir asks a database in use whether its catalogue has changed: functions, views, triggers, policies. Changes made through Weir are noticed at once.";
    DnsMaxTtl "pool" "dns_max_ttl" = "dns_max_ttl", seconds(), "15", Live, All,
        "A host name is looked up again after so long.";

    MaxClientConn "limits" "max_client_conn" = "max_client_conn", Kind::Count { min: 1, max: 16_000_000, unit: "clients" },
        "10000" ini "100", Live, All,
        "Clients of the whole process. The next one is refused.";
    ClientLoginTimeout "limits" "client_login_timeout" = "client_login_timeout", seconds(), "60", Live, All,
        "A client's login may take so long. 0: for ever.";
    ClientIdleTimeout "limits" "client_idle_timeout" = "client_idle_timeout", seconds(), "0", Live, All,
        "A client that sends nothing for so long is closed. 0: never.";
    ClientReadTimeout "limits" "client_read_timeout", seconds(), "60", Live, All,
        "A client that holds a server may pause so long in the middle of a message. 0: for ever.";
    DrainTimeout "limits" "drain_timeout", seconds(), "30" ini "0", Live, All,
        "At SIGTERM clients have so long to finish their transactions. 0: as long as they need.";

    ListenBacklog "socket" "listen_backlog" = "listen_backlog", Kind::Count { min: 1, max: 65_535, unit: "connections" },
        "4096" ini "128", Restart, All,
        "Connections that may wait in the kernel to be accepted, for each listener. The kernel's somaxconn bounds it.";
    UnixSocketMode "socket" "unix_socket_mode" = "unix_socket_mode", Kind::Mode, "0777", Restart, All,
        "Permissions of Unix sockets.";
    UnixSocketGroup "socket" "unix_socket_group" = "unix_socket_group", Kind::Text, "", Restart, All,
        "Group of Unix sockets, by name or number. Empty: that of the process.";
    TcpKeepalive "socket" "tcp_keepalive" = "tcp_keepalive", Kind::Bool, "true", Restart, All,
        "Keepalive on TCP connections.";
    TcpKeepcnt "socket" "tcp_keepcnt" = "tcp_keepcnt", Kind::Count { min: 0, max: 127, unit: "probes" }, "0", Restart, All,
        "Probes without an answer until a connection is given up. 0: what the system does.";
    TcpKeepidle "socket" "tcp_keepidle" = "tcp_keepidle", Kind::Count { min: 0, max: 32_767, unit: "seconds" }, "0", Restart, All,
        "A connection that is silent so long is probed. 0: what the system does.";
    TcpKeepintvl "socket" "tcp_keepintvl" = "tcp_keepintvl", Kind::Count { min: 0, max: 32_767, unit: "seconds" }, "0", Restart, All,
        "Time between two probes. 0: what the system does.";
    TcpUserTimeout "socket" "tcp_user_timeout" = "tcp_user_timeout",
        Kind::Count { min: 0, max: DAY_MS, unit: "milliseconds" }, "0", Restart, All,
        "Sent bytes may stay unacknowledged so long. 0: what the system does.";

    ClientTlsSslmode "tls.client" "sslmode" = "client_tls_sslmode", Kind::Word(&weir_tls::SslMode::NAMES), "disable", Live, All,
        "TLS with clients. disable: none. allow, prefer: if the client asks for it. require: no client without it, except \
         on Unix sockets. verify-ca, verify-full: also every client must show a certificate signed by a CA of ca_file.";
    ClientTlsCertFile "tls.client" "cert_file" = "client_tls_cert_file", Kind::Path, "", Live, All,
        "Weir's certificate, in PEM, and behind it those between it and its root. Empty: Weir makes one for itself.";
    ClientTlsKeyFile "tls.client" "key_file" = "client_tls_key_file", Kind::Path, "", Live, All,
        "The private key of cert_file, in PEM.";
    ClientTlsCaFile "tls.client" "ca_file" = "client_tls_ca_file", Kind::Path, "", Live, All,
        "CAs whose certificates clients may show, in PEM. With sslmode below verify-ca a client need not show one, but one \
         that is shown must be good.";
    ClientTlsSelfMadeFile "tls.client" "self_made_file", Kind::Path, "", Live, All,
        "Where the certificate that Weir makes for itself is kept, with its key. Empty: nowhere, each start makes another.";
    ClientTlsTickets "tls.client" "tickets", Kind::Bool, "true", Live, All,
        "Clients may resume an earlier session, which is cheaper for both.";
    ClientTlsProtocols "tls.client" "protocols" = "client_tls_protocols", Kind::Text, "secure", Live, All,
        "Versions: tlsv1.2, tlsv1.3, or both separated by a comma; secure means both.";
    ClientTlsCiphers "tls.client" "ciphers" = "client_tls_ciphers", Kind::Text, "default", Live, All,
        "Ciphers of TLS 1.2, by OpenSSL's names, separated by colons; with clients the first that both have is chosen. default: all that Weir has, which are safe, those of AES-128 first.";
    ClientTls13Ciphers "tls.client" "tls13_ciphers" = "client_tls13_ciphers", Kind::Text, "", Live, All,
        "Ciphers of TLS 1.3, likewise. Empty: all, TLS_AES_128_GCM_SHA256 first.";
    ClientTlsEcdhcurve "tls.client" "ecdhcurve" = "client_tls_ecdhcurve", Kind::Text, "auto", Live, All,
        "Curves for the key exchange: X25519, prime256v1, secp384r1, X25519MLKEM768, separated by colons; auto: all.";

    ServerTlsSslmode "tls.server" "sslmode" = "server_tls_sslmode", Kind::Word(&weir_tls::SslMode::NAMES), "prefer", Live, All,
        "TLS with servers, as libpq means it. disable: none. allow: if the server takes nothing else. prefer: if the server \
         has it. require: TLS or nothing. verify-ca: also the server's certificate must be signed by a CA of ca_file. \
         verify-full: also it must be for the host. A URL's sslmode goes before it.";
    ServerTlsCaFile "tls.server" "ca_file" = "server_tls_ca_file", Kind::Path, "", Live, All,
        "CAs that verify-ca and verify-full trust, in PEM. Empty: those of the system.";
    ServerTlsCertFile "tls.server" "cert_file" = "server_tls_cert_file", Kind::Path, "", Live, All,
        "Weir's certificate for servers that ask for one, in PEM.";
    ServerTlsKeyFile "tls.server" "key_file" = "server_tls_key_file", Kind::Path, "", Live, All,
        "The private key of cert_file, in PEM.";
    ServerPublicKeyFile "tls.server" "public_key_file", Kind::Path, "", Live, All,
        "MySQL: the server's RSA key, in PEM (its public_key.pem). Without TLS a password for caching_sha2_password or sha256_password then \
         leaves in an envelope that only this server opens. A URL's server-public-key-path goes before it.";
    ServerTrustUnverified "tls.server" "trust_unverified", Kind::Bool, "false", Live, All,
        "MySQL: a server that nothing proves (its certificate is not verified, its RSA key is not in public_key_file) gets the password \
         itself if it asks for it. Whoever can change what is sent to it then gets it, too. A URL's get-server-public-key goes before it.";
    ServerTlsProtocols "tls.server" "protocols" = "server_tls_protocols", Kind::Text, "secure", Live, All,
        "Versions, as for tls.client.";
    ServerTlsCiphers "tls.server" "ciphers" = "server_tls_ciphers", Kind::Text, "default", Live, All,
        "Ciphers of TLS 1.2, as for tls.client.";
    ServerTls13Ciphers "tls.server" "tls13_ciphers" = "server_tls13_ciphers", Kind::Text, "", Live, All,
        "Ciphers of TLS 1.3, as for tls.client.";
    ServerTlsEcdhcurve "tls.server" "ecdhcurve", Kind::Text, "auto", Live, All,
        "Curves, as for tls.client.";

    LogLevel "log" "level", Kind::Text, "info", Restart, All,
        "error, warn, info, debug or trace; or several filters separated by commas, such as info,weir_proxy=debug.";
    LogConnections "log" "log_connections" = "log_connections", Kind::Bool, "false" ini "true", Live, All,
        "Log each login that succeeds.";
    LogDisconnections "log" "log_disconnections" = "log_disconnections", Kind::Bool, "false" ini "true", Live, All,
        "Log each client that leaves.";
    LogPoolerErrors "log" "log_pooler_errors" = "log_pooler_errors", Kind::Bool, "true", Live, All,
        "Log the errors that Weir itself tells clients: refused logins, and clients it closes.";
    Logfile "log" "logfile" = "logfile", Kind::Path, "", Restart, All,
        "File to append the log to, beside standard error.";
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
