//! Settings that PgBouncer has and Weir has not, and what becomes of each. Nothing is ignored in silence
//! that would change what a client or an operator gets.

/// What becomes of a setting of PgBouncer that Weir does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Weir does what it asks for, or the like, whatever the value. No warning.
    Covered(&'static str),
    /// Weir does not do it. A warning says what happens instead.
    Missing(&'static str),
    /// Weir does not do it, and to go on without it would be less safe. Refused, except for these values,
    /// which ask for nothing.
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
    ("ignore_startup_parameters", Covered("Weir honours every startup parameter; none has to be ignored.")),
    ("so_reuseport", Covered("Weir's workers share each port by SO_REUSEPORT anyway.")),
    ("pkt_buf", Covered("Weir sizes its buffers by itself.")),
    ("sbuf_loopcnt", Covered("Weir bounds the work done for one client by itself.")),
    ("max_packet_size", Covered("Weir streams packets of any size in constant memory.")),
    ("tcp_defer_accept", Covered("The login timeout does its work.")),
    ("tcp_socket_buffer", Missing("the system sizes socket buffers")),
    ("conffile", Covered("The file is the one Weir was started with.")),
    ("service_name", Covered("Only for Windows.")),
    ("job_name", Covered("An old name of service_name.")),
    ("server_check_query", Covered("Weir asks the cheapest question of the protocol.")),
    ("server_reset_query", Covered("Weir resets a session by DISCARD ALL when a new client gets it.")),
    ("server_reset_query_always", Covered("Weir never lends a session that another client has changed.")),
    ("server_round_robin", Missing("the server used last is used first")),
    ("server_fast_close", Missing("a server is closed when its client gives it back")),
    (
        "disable_pqexec",
        Refused {
            harmless: &["0"],
            why: "Weir cannot forbid simple queries; set it to 0 if the application may send several statements at once",
        },
    ),
    ("application_name_add_host", Missing("application_name is what the client says")),
    (
        "track_extra_parameters",
        Missing("what a client sets moves with it, whether the server reports it or not"),
    ),
    ("reserve_pool_size", Missing("a pool never grows over its size")),
    ("reserve_pool_timeout", Missing("a pool never grows over its size")),
    (
        "max_db_client_connections",
        Missing("clients of a database have no limit of their own; max_client_conn bounds all"),
    ),
    (
        "max_user_client_connections",
        Missing("clients of a user have no limit of their own; max_client_conn bounds all"),
    ),
    ("query_wait_notify", Missing("a waiting client is not told that it waits")),
    ("login_notify_message", Missing("clients are told nothing at their login")),
    ("autodb_idle_timeout", Missing("a pool of `*` ends with its last server, after server_idle_timeout")),
    ("pool_idle_timeout", Missing("a pool without servers keeps its counters")),
    ("suspend_timeout", Missing("there is no SUSPEND; PgBouncer 1.26 has none either")),
    ("dns_nxdomain_ttl", Missing("a name that was not found is looked up again at the next try")),
    ("dns_zone_check_period", Missing("names are looked up every dns_max_ttl")),
    ("resolv_conf", Missing("the system's resolver and its settings are used")),
    ("log_stats", Missing("statistics are on /metrics, not in the log")),
    ("syslog", Missing("the log goes to standard error and logfile")),
    ("syslog_ident", Missing("the log goes to standard error and logfile")),
    ("syslog_facility", Missing("the log goes to standard error and logfile")),
    ("auth_ldap_options", Missing("it would be used with auth_type = ldap only, which Weir refuses")),
    ("scram_iterations", Missing("secrets that Weir derives use PostgreSQL's default of 4096 rounds")),
    ("user", Missing("Weir goes on as the user who started it; a service manager can choose that user")),
    (
        "client_tls_dheparams",
        Covered("Keys are exchanged by elliptic curves; there is no DHE to have parameters."),
    ),
    (
        "peer_id",
        Missing("several Weirs do not forward each other's cancel requests yet; one Weir uses all cores"),
    ),
];

/// Keys of a connection string in `[databases]`.
pub static DATABASES: &[(&str, Fate)] = &[
    ("reserve_pool", Missing("a pool never grows over its size")),
    ("reserve_pool_size", Missing("a pool never grows over its size")),
    ("connect_query", Missing("nothing is run on a new server connection")),
    ("client_encoding", Missing("a client's own value or the server's default holds")),
    ("datestyle", Missing("a client's own value or the server's default holds")),
    ("timezone", Missing("a client's own value or the server's default holds")),
    ("application_name", Missing("a client's own value or the server's default holds")),
    ("max_db_client_connections", Missing("clients of a database have no limit of their own")),
    ("server_lifetime", Missing("the general server_lifetime holds")),
    ("query_wait_timeout", Missing("the general query_wait_timeout holds")),
    ("load_balance_hosts", Covered("With one host there is nothing to balance.")),
];

/// Keys of a user in `[users]`.
pub static USERS: &[(&str, Fate)] = &[
    ("max_user_client_connections", Missing("clients of a user have no limit of their own")),
    ("reserve_pool_size", Missing("a pool never grows over its size")),
    ("query_timeout", Missing("the general query_timeout holds")),
    ("query_wait_timeout", Missing("the general query_wait_timeout holds")),
    ("transaction_timeout", Missing("the general transaction_timeout holds")),
    ("idle_transaction_timeout", Missing("the general idle_transaction_timeout holds")),
    ("client_idle_timeout", Missing("the general client_idle_timeout holds")),
];

/// What a setting of `[pgbouncer]` that Weir has means here, where PgBouncer 1.26 means something else. The
/// others mean the same, with the same unit and default, and 0 means the same.
pub static DIFFERS: &[(&str, &str)] = &[
    ("auth_type", "also `peer`; `pam` and `ldap` are refused"),
    ("auth_query", "may return a third column: until when the password is valid"),
    (
        "auth_ident_file",
        "also for `cert` and `peer`, with `postgres.auth_ident_map`; there only for `hba`, whose lines name the map",
    ),
    (
        "auth_hba_file",
        "also regular expressions, `samehost`, `samenet`, include and clientcert; a line that cannot be kept does not start Weir, where PgBouncer leaves it out",
    ),
    ("listen_port", "0 is refused"),
    (
        "listen_backlog",
        "for the listener of each worker, not of the process; 0 is refused, where the system takes its smallest",
    ),
    ("unix_socket_mode", "must begin with 0: PgBouncer reads `777` as a decimal number; Weir refuses it"),
    ("unix_socket_group", "also a number"),
    (
        "pool_mode",
        "a client whose session state cannot move keeps its server; there other clients meet what it left",
    ),
    ("default_pool_size", "also `auto`; 0 is refused, where every client waits in vain"),
    (
        "min_pool_size",
        "kept as long as the pool is known; there only for a forced user or while a client is connected",
    ),
    (
        "max_prepared_statements",
        "0: a client that prepares a statement keeps its server; there the statement may be unknown on the next one",
    ),
    ("max_client_conn", "clients in their login are counted apart; 0 is refused, where nobody is let in"),
    (
        "cancel_wait_timeout",
        "bounds requests whose client has left; a cancel request itself always has 10 s. 0 cancels what a client has left running at once; there it lets cancel requests wait without a limit",
    ),
    (
        "server_lifetime",
        "0 closes a connection after one use, as there; servers that are old at the same time close at the same time",
    ),
    (
        "server_login_retry",
        "the longest pause: it begins with 0.1 s and doubles with each failure; 0 means 0.1 s",
    ),
    ("server_check_delay", "the check is the protocol's cheapest question; server_check_query is not sent"),
    (
        "dns_max_ttl",
        "names are looked up again at this interval, 1 s at least; there when a connection is opened",
    ),
    ("client_tls_sslmode", "a client's certificate is verified in every mode if there is client_tls_ca_file"),
    ("client_tls_cert_file", "empty: a certificate of Weir's own; there TLS does not start"),
    ("client_tls_key_file", "empty: a certificate of Weir's own; there TLS does not start"),
    ("client_tls_protocols", "1.2 and 1.3; older ones are refused by name, and `all` means these two"),
    (
        "client_tls_ciphers",
        "those with forward secrecy and authenticated encryption; others are refused by name, and each keyword means all of these",
    ),
    (
        "client_tls13_ciphers",
        "empty: all; there the value of client_tls_ciphers. The two CCM ciphers are refused",
    ),
    (
        "client_tls_ecdhcurve",
        "X25519, prime256v1, secp384r1, X25519MLKEM768, also several; `auto` means all, where it means one curve of 256 bits; others and `none` are refused",
    ),
    ("server_tls_sslmode", "`allow` means what libpq means: TLS if the server refuses plain connections"),
    ("server_tls_ca_file", "empty: the system's CAs"),
    ("server_tls_protocols", "as client_tls_protocols"),
    ("server_tls_ciphers", "as client_tls_ciphers"),
    ("server_tls13_ciphers", "as client_tls13_ciphers"),
    ("verbose", "0 is `info`, 1 `debug`, 2 and more `trace`"),
];

/// Settings of `[pgbouncer]` whose 0 is accepted and means something else here. A warning says what.
pub static ZERO_DIFFERS: &[(&str, &str)] = &[
    (
        "cancel_wait_timeout",
        "what a client has left running is cancelled at once; PgBouncer disables the limit",
    ),
    ("dns_max_ttl", "names are looked up again every second; PgBouncer looks them up for each connection"),
    (
        "max_prepared_statements",
        "a client that prepares a statement keeps its server connection; PgBouncer passes statements on as they are",
    ),
    ("server_login_retry", "Weir tries again after 0.1 s; PgBouncer tries again at once"),
];

/// Values of auth_type that Weir does not have.
pub static AUTH_TYPES: &[&str] = &["pam", "ldap"];

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
