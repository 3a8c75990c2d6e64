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

use Fate::{Covered, Missing};

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
    ("disable_pqexec", Missing("simple queries are allowed")),
    ("application_name_add_host", Missing("application_name is what the client says")),
    ("track_extra_parameters", Missing("a parameter that Weir does not follow pins its server")),
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
    ("autodb_idle_timeout", Missing("a pool of `*` ends with its last server, after server_idle_timeout")),
    ("suspend_timeout", Missing("there is no SUSPEND yet")),
    ("dns_nxdomain_ttl", Missing("a name that was not found is looked up again at the next try")),
    ("dns_zone_check_period", Missing("names are looked up every dns_max_ttl")),
    ("resolv_conf", Missing("the system's resolver and its settings are used")),
    ("stats_period", Missing("there are no averages; /metrics has counters")),
    ("log_stats", Missing("statistics are on /metrics, not in the log")),
    ("syslog", Missing("the log goes to standard error and logfile")),
    ("syslog_ident", Missing("the log goes to standard error and logfile")),
    ("syslog_facility", Missing("the log goes to standard error and logfile")),
    ("admin_users", Missing("there is no console yet")),
    ("stats_users", Missing("there is no console yet")),
    ("auth_user", Missing("passwords are looked up in auth_file only; other users cannot log in")),
    ("auth_query", Missing("passwords are looked up in auth_file only; other users cannot log in")),
    ("auth_dbname", Missing("passwords are looked up in auth_file only; other users cannot log in")),
    ("auth_hba_file", Missing("it would be used with auth_type = hba only, which Weir refuses")),
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
    ("auth_user", Missing("passwords are looked up in auth_file only")),
    ("auth_query", Missing("passwords are looked up in auth_file only")),
    ("auth_dbname", Missing("passwords are looked up in auth_file only")),
    ("connect_query", Missing("nothing is run on a new server connection")),
    ("client_encoding", Missing("a client's own value or the server's default holds")),
    ("datestyle", Missing("a client's own value or the server's default holds")),
    ("timezone", Missing("a client's own value or the server's default holds")),
    ("application_name", Missing("a client's own value or the server's default holds")),
    ("max_db_client_connections", Missing("clients of a database have no limit of their own")),
    ("server_lifetime", Missing("the general server_lifetime holds")),
    ("load_balance_hosts", Covered("With one host there is nothing to balance.")),
];

/// Keys of a user in `[users]`.
pub static USERS: &[(&str, Fate)] = &[
    ("max_user_client_connections", Missing("clients of a user have no limit of their own")),
    ("reserve_pool_size", Missing("a pool never grows over its size")),
    ("query_timeout", Missing("the general query_timeout holds")),
    ("transaction_timeout", Missing("the general transaction_timeout holds")),
    ("idle_transaction_timeout", Missing("the general idle_transaction_timeout holds")),
    ("client_idle_timeout", Missing("the general client_idle_timeout holds")),
];

/// Values of auth_type that Weir does not have.
pub static AUTH_TYPES: &[&str] = &["hba", "pam", "ldap"];

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
