//! Refusals that poolers and proxies have in common, and those of PgBouncer, ProxySQL and MySQL Router. What
//! only Weir says is in `weir.rs`.

use super::Entry;

/// The entries.
pub const ENTRIES: &[Entry] = &[
    Entry {
        id: "max_client_conn",
        title: "the pooler has max_client_conn clients",
        messages: &[
            "FATAL: no more connections allowed (max_client_conn)",
            "no more connections allowed",
            "ERROR 1040: Too many connections to MySQL Router",
        ],
        symptom: "New clients are refused by the pooler while the database is idle.",
        cause: "The pooler's own limit of clients: max_client_conn defaults to 100 in PgBouncer and to what the machine allows in Weir; MySQL Router has \
                max_total_connections (512).",
        cures: &[
            "max_client_conn above the sum of all applications' pools; and open files for it (weir doctor --connections N)",
            "find applications that open connections and never close them",
        ],
        checks: &["open_files", "memory"],
        signs: &[
            "no more connections allowed",
            "max_client_conn",
            "too many connections to mysql router",
            "max_total_connections",
        ],
        codes: &[],
    },
    Entry {
        id: "query_wait_timeout",
        title: "no server became free in time (query_wait_timeout)",
        messages: &[
            "FATAL: query_wait_timeout",
            "no server connection became free in time (query_wait_timeout)",
            "ERROR 1040 (08004): No server connection became free in time",
            "ERROR 9001 (HY000): Max connect timeout reached while reaching hostgroup 0 after 10000ms",
        ],
        symptom: "Requests fail after waiting the same time; cl_waiting (SHOW POOLS) or weir_waiting_clients is above 0.",
        cause: "All servers of the pool are taken: by slow queries, by transactions that are left open, by pinned sessions, or the pool is \
                too small. Or the server cannot be reached at all.",
        cures: &[
            "look for open transactions: idle in transaction in pg_stat_activity, information_schema.innodb_trx",
            "weir_pinned_servers by reason: sessions that keep their server connection",
            "weir advise --url URL recommends a pool size for the load",
            "the pooler's log: can it log in to the server?",
        ],
        checks: &["pg_max_connections", "my_max_connections"],
        signs: &[
            "query_wait_timeout",
            "no server connection became free in time",
            "max connect timeout reached while reaching hostgroup",
        ],
        codes: &["9001"],
    },
    Entry {
        id: "ldap_pam",
        title: "the LDAP server or PAM has not taken the password",
        messages: &[
            "FATAL: LDAP authentication failed",
            "FATAL: PAM authentication failed",
            "FATAL: LDAP authentication failed for user \"app\"",
        ],
        symptom: "Logins by auth_type = ldap or pam, or by such a line of an HBA file, are refused.",
        cause: "The password is wrong, the LDAP server or PAM does not know the user, or it could not be asked: it is down, its certificate is \
                not valid, or it refuses the user that searches. Clients get the same message for all of these.",
        cures: &[
            "the log has the answer: invalidCredentials (49) is a wrong password or the name of no user; \
             `LDAP authentication is not possible` is not about the user",
            "ldapwhoami -x -H ldap://SERVER -D DN -W tries the same from this machine; pamtester SERVICE USER authenticate does for PAM",
        ],
        checks: &[],
        signs: &["ldap authentication failed", "pam authentication failed"],
        codes: &[],
    },
    Entry {
        id: "server_login_retry",
        title: "the pooler cannot log in to the server",
        messages: &[
            "FATAL: server login has been failing, try again later (server_login_retry)",
            "pgbouncer cannot connect to server",
            "the database server refused Weir's login",
            "FATAL: server_login_retry",
        ],
        symptom: "All clients of one database fail although their passwords are right.",
        cause: "The pooler's own login to the server fails: password, pg_hba.conf, max_connections of the server, or the network.",
        cures: &[
            "the pooler's log has the server's message",
            "try the same login from the pooler's machine: psql, mysql",
            "weir doctor --url URL",
        ],
        checks: &["pg_max_connections", "my_max_connections"],
        signs: &[
            "server login has been failing",
            "server_login_retry",
            "cannot connect to server",
            "refused weir s login",
            "refused the proxy s login",
        ],
        codes: &[],
    },
    Entry {
        id: "client_login_timeout",
        title: "a client's login to the pooler took too long",
        messages: &["client_login_timeout", "the login took too long (client_login_timeout)"],
        symptom: "Clients are closed while they log in, mostly when many log in at once.",
        cause: "The client did not finish within client_login_timeout: too many logins at once for the password computations, a health check that \
                sends nothing, or no server for the first login.",
        cures: &[
            "let clients reconnect with a random delay",
            "more cores for the pooler; fewer SCRAM iterations",
            "let health checks log in or use /readyz",
        ],
        checks: &["accept_backlog", "cpu_quota"],
        signs: &["client_login_timeout"],
        codes: &[],
    },
    Entry {
        id: "prepared_statement_lost",
        title: "a prepared statement is not on this server (26000, 42P05, 1243)",
        messages: &[
            "ERROR: prepared statement \"S_1\" does not exist",
            "ERROR: prepared statement \"__asyncpg_stmt_1__\" already exists",
            "ERROR 1243 (HY000): Unknown prepared statement handler (1) given to mysql_stmt_execute",
        ],
        symptom: "Errors come and go behind a pooler in transaction mode.",
        cause: "The pooler uses another server connection for each transaction and does not move prepared statements along.",
        cures: &[
            "Weir moves them. PgBouncer: 1.21 or newer with max_prepared_statements = 200.",
            "otherwise disable them in the driver: prepareThreshold=0 (pgjdbc), statement_cache_size=0 (asyncpg), prepare_threshold=None (psycopg)",
        ],
        checks: &[],
        signs: &[
            "prepared statement & does not exist",
            "prepared statement & already exists",
            "unknown prepared statement handler",
        ],
        codes: &["26000", "42P05", "1243"],
    },
    Entry {
        id: "startup_parameter",
        title: "the pooler does not know a startup parameter",
        messages: &[
            "FATAL: unsupported startup parameter: extra_float_digits",
            "unsupported startup parameter in options: search_path",
        ],
        symptom: "One driver cannot connect at all.",
        cause: "PgBouncer accepts only the parameters it tracks.",
        cures: &["Weir accepts all. PgBouncer: ignore_startup_parameters = extra_float_digits,options"],
        checks: &[],
        signs: &["unsupported startup parameter"],
        codes: &[],
    },
    Entry {
        id: "proxysql_locked",
        title: "ProxySQL keeps a session on one hostgroup (error 9006)",
        messages: &[
            "ERROR 9006 (Y0000): ProxySQL Error: connection is locked to hostgroup 0 but trying to reach hostgroup 1",
        ],
        symptom: "After some SET the session cannot be routed any more.",
        cause: "ProxySQL could not parse a SET and locked the hostgroup (set_query_lock_on_hostgroup).",
        cures: &[
            "change the SET to one it parses",
            "use a proxy that follows the server's own session trackers, such as Weir",
        ],
        checks: &[],
        signs: &["connection is locked to hostgroup", "unable to parse unknown set query"],
        codes: &["9006"],
    },
];
