//! Settings that PgBouncer has and Weir has not, and how Weir treats each. Nothing that would change what a
//! client or an operator gets is ignored silently.

/// How Weir treats a setting of PgBouncer that it does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Weir does the equivalent, whatever the value. No warning.
    Covered(&'static str),
    /// Weir does not do it. A warning says what happens instead.
    Missing(&'static str),
    /// Weir does not do it, and running without it would be less safe. Refused, except for values that
    /// disable it.
    Refused {
        /// Values that are harmless.
        harmless: &'static [&'static str],
        /// Why not.
        why: &'static str,
    },
}

use Fate::{Covered, Missing, Refused};

/// Keys of `[pgbouncer]`.
pub static PGBOUNCER: &[(&str, Fate)] = &[
    (
        "ignore_startup_parameters",
        Covered(
            "Weir honours each startup parameter that can be set in a session; none needs to be ignored.",
        ),
    ),
    ("so_reuseport", Covered("Weir's workers always share each port by SO_REUSEPORT.")),
    ("pkt_buf", Covered("Weir sizes its buffers automatically.")),
    ("sbuf_loopcnt", Covered("Weir always limits the work done for one client at a time.")),
    ("max_packet_size", Covered("Weir streams packets of any size in constant memory.")),
    ("tcp_defer_accept", Covered("client_login_timeout closes connections that send nothing.")),
    ("tcp_socket_buffer", Missing("the system sizes socket buffers")),
    ("conffile", Covered("The file is the one Weir was started with.")),
    ("service_name", Covered("Used on Windows only.")),
    ("job_name", Covered("An old name of service_name.")),
    (
        "server_check_query",
        Covered("Weir sends the protocol's cheapest request. An empty value does not disable the check."),
    ),
    (
        "server_reset_query",
        Covered(
            "Weir takes back what a client leaves before another one gets the server, with DISCARD ALL where needed.",
        ),
    ),
    ("server_reset_query_always", Covered("In each mode Weir takes back what other clients have changed.")),
    ("server_round_robin", Missing("Weir uses the most recently used server first")),
    ("server_fast_close", Missing("a server is closed when its client gives it back")),
    (
        "disable_pqexec",
        Refused {
            harmless: &["0"],
            why: "Weir cannot forbid simple queries; set it to 0 if the application may send several statements at once",
        },
    ),
    ("application_name_add_host", Missing("application_name is the client's own")),
    (
        "track_extra_parameters",
        Missing("a client's settings move with it, whether the server reports them or not"),
    ),
    ("reserve_pool_size", Missing("a pool never exceeds its size")),
    ("reserve_pool_timeout", Missing("a pool never exceeds its size")),
    (
        "max_db_client_connections",
        Missing("clients of a database have no limit of their own; max_client_conn limits all clients"),
    ),
    (
        "max_user_client_connections",
        Missing("clients of a user have no limit of their own; max_client_conn limits all clients"),
    ),
    ("query_wait_notify", Missing("waiting clients get no notice")),
    ("login_notify_message", Missing("clients get no notice at login")),
    (
        "autodb_idle_timeout",
        Missing(
            "a pool without servers is freed when it has been unused for a minute; SHOW STATS keeps its sums",
        ),
    ),
    (
        "pool_idle_timeout",
        Missing(
            "a pool without servers is freed when it has been unused for a minute; SHOW STATS keeps its sums",
        ),
    ),
    ("suspend_timeout", Missing("there is no SUSPEND; PgBouncer 1.26 has none either")),
    ("dns_nxdomain_ttl", Missing("a name that was not found is looked up again at the next attempt")),
    ("dns_zone_check_period", Missing("names are looked up again every dns_max_ttl")),
    ("resolv_conf", Missing("Weir uses the system's resolver and its configuration")),
    ("log_stats", Missing("statistics are on /metrics, not in the log")),
    ("syslog", Missing("the log goes to standard error and logfile")),
    ("syslog_ident", Missing("the log goes to standard error and logfile")),
    ("syslog_facility", Missing("the log goes to standard error and logfile")),
    ("scram_iterations", Missing("Weir derives secrets with PostgreSQL's default of 4096 iterations")),
    ("user", Missing("Weir runs as the user that starts it; set that user in the service manager")),
    ("client_tls_dheparams", Covered("Weir uses elliptic curves for the key exchange, never DHE.")),
    (
        "peer_id",
        Missing("Weir processes do not forward each other's cancel requests yet; one process uses all cores"),
    ),
];

/// Keys of a connection string in `[databases]`.
pub static DATABASES: &[(&str, Fate)] = &[
    ("reserve_pool", Missing("a pool never exceeds its size")),
    ("reserve_pool_size", Missing("a pool never exceeds its size")),
    ("connect_query", Missing("no query runs on a new server connection")),
    ("client_encoding", Missing("the client's own value or the server's default applies")),
    ("datestyle", Missing("the client's own value or the server's default applies")),
    ("timezone", Missing("the client's own value or the server's default applies")),
    ("application_name", Missing("the client's own value or the server's default applies")),
    ("max_db_client_connections", Missing("clients of a database have no limit of their own")),
    ("server_lifetime", Missing("the general server_lifetime applies")),
    ("query_wait_timeout", Missing("the general query_wait_timeout applies")),
    ("load_balance_hosts", Covered("A database has one host, so there is nothing to balance.")),
];

/// Keys of a user in `[users]`.
pub static USERS: &[(&str, Fate)] = &[
    ("max_user_client_connections", Missing("clients of a user have no limit of their own")),
    ("reserve_pool_size", Missing("a pool never exceeds its size")),
    ("query_timeout", Missing("the general query_timeout applies")),
    ("query_wait_timeout", Missing("the general query_wait_timeout applies")),
    ("transaction_timeout", Missing("the general transaction_timeout applies")),
    ("idle_transaction_timeout", Missing("the general idle_transaction_timeout applies")),
    ("client_idle_timeout", Missing("the general client_idle_timeout applies")),
];

/// The meaning in Weir of settings of `[pgbouncer]` that differ from PgBouncer 1.26. All others have the same
/// meaning, unit and default, and the same meaning of 0.
pub static DIFFERS: &[(&str, &str)] = &[
    ("auth_type", "also `peer`"),
    (
        "auth_ldap_options",
        "checked at the start. Also applies to `ldap` lines of auth_hba_file without options. Certificates are verified by `postgres.auth_ldap_ca_file`, not by ldap.conf; Weir neither looks up DNS SRV records nor follows referrals. Special characters in names are escaped; PgBouncer refuses such names, or sends them as they are",
    ),
    ("auth_query", "may return a third column: the time until which the password is valid"),
    (
        "auth_ident_file",
        "also applies to auth_type `cert` and `peer`, with `postgres.auth_ident_map`. In PgBouncer: to `hba` only, whose lines name the map",
    ),
    (
        "auth_hba_file",
        "also supports regular expressions, `samehost`, `samenet`, include and clientcert. Weir does not start if a line is invalid or unsupported; PgBouncer skips the line",
    ),
    ("listen_port", "0 is refused"),
    (
        "listen_backlog",
        "applies to the listener of each worker, not of the process. 0 is refused; PgBouncer uses the system's minimum",
    ),
    ("unix_socket_mode", "must begin with 0. PgBouncer reads `777` as a decimal number; Weir refuses it"),
    ("unix_socket_group", "also accepts a group number"),
    (
        "pool_mode",
        "a client whose session state cannot move keeps its server. In PgBouncer, other clients get that state",
    ),
    ("default_pool_size", "also `auto`. 0 is refused; in PgBouncer every client then waits in vain"),
    (
        "min_pool_size",
        "applies from a pool's first client on. In PgBouncer: only with `user` in the connection string or while a client is connected",
    ),
    (
        "max_prepared_statements",
        "0: a client that prepares a statement keeps its server. In PgBouncer, the statement may not exist on the next server",
    ),
    (
        "query_wait_timeout",
        "a client that would wait in vain is refused at once (`pool.max_waiting_clients = auto`)",
    ),
    (
        "max_client_conn",
        "clients that are logging in are counted separately. 0 is refused; PgBouncer then refuses every client",
    ),
    (
        "cancel_wait_timeout",
        "limits requests whose client has disconnected; a cancel request itself always has 10 s. 0 cancels the request of a disconnected client at once; in PgBouncer, 0 lets cancel requests wait without a limit",
    ),
    (
        "server_lifetime",
        "0 closes a connection after one use, as in PgBouncer. Servers that reach this age at the same time close at the same time",
    ),
    (
        "server_login_retry",
        "the maximum pause: it begins with 0.1 s and doubles with each failure. 0 means 0.1 s",
    ),
    ("server_check_delay", "Weir sends the protocol's cheapest request, not server_check_query"),
    (
        "dns_max_ttl",
        "names are looked up again at this interval, at least 1 s. In PgBouncer: when a connection is opened",
    ),
    ("client_tls_sslmode", "with client_tls_ca_file, a client's certificate is verified in every mode"),
    ("client_tls_cert_file", "empty: Weir creates a self-signed certificate; PgBouncer requires a file"),
    ("client_tls_key_file", "empty: Weir creates a self-signed certificate; PgBouncer requires a file"),
    ("client_tls_protocols", "TLS 1.2 and 1.3 only. Older versions are refused; `all` means these two"),
    (
        "client_tls_ciphers",
        "only ciphers with forward secrecy and authenticated encryption. Others are refused; each keyword means all of these",
    ),
    (
        "client_tls13_ciphers",
        "empty: all. In PgBouncer: the value of client_tls_ciphers. The two CCM ciphers are refused",
    ),
    (
        "client_tls_ecdhcurve",
        "X25519, prime256v1, secp384r1, X25519MLKEM768, or several of them; others and `none` are refused. `auto` means all; in PgBouncer, one curve of 256 bits",
    ),
    (
        "server_tls_sslmode",
        "`allow` has libpq's meaning: TLS if the server refuses plain connections. On a loopback address, `prefer` acts as `allow`",
    ),
    (
        "admin_users",
        "also apply with `auth_type = any`. PgBouncer then ignores them and lets any user run every command",
    ),
    ("server_tls_ca_file", "empty: the system's CAs"),
    ("server_tls_protocols", "like client_tls_protocols"),
    ("server_tls_ciphers", "like client_tls_ciphers"),
    ("server_tls13_ciphers", "like client_tls13_ciphers"),
    ("verbose", "0 is `info`, 1 `debug`, 2 and more `trace`"),
];

/// Settings of `[pgbouncer]` whose 0 is accepted but has another meaning in Weir. A warning names it.
pub static ZERO_DIFFERS: &[(&str, &str)] = &[
    (
        "cancel_wait_timeout",
        "the request of a disconnected client is cancelled at once; PgBouncer disables the limit",
    ),
    ("dns_max_ttl", "names are looked up again every second; PgBouncer looks them up for each connection"),
    (
        "max_prepared_statements",
        "a client that prepares a statement keeps its server connection; PgBouncer forwards statements unchanged",
    ),
    ("server_login_retry", "Weir retries after 0.1 s; PgBouncer retries at once"),
];

/// The fate of a key in one of the tables above.
pub(crate) fn fate(table: &[(&str, Fate)], key: &str) -> Option<Fate> {
    table.iter().find(|(name, _)| *name == key).map(|(_, fate)| *fate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::by_ini_name;

    #[test]
    fn no_key_is_both_supported_and_not() {
        for (index, (name, _)) in PGBOUNCER.iter().enumerate() {
            assert!(by_ini_name(name).is_none(), "{name} is a setting of Weir's");
            assert!(!PGBOUNCER[..index].iter().any(|(other, _)| other == name), "{name} twice");
        }
    }
}
