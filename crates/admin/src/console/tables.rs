//! The columns of each SHOW. For PgBouncer's tables, names, order and types are those of 1.26.1, and
//! `tests/suites/console.py` compares them with a running one.

use weir_wire::console::{Column, Kind};

macro_rules! columns {
    ($($(#[doc = $doc:literal])* $name:ident { $($kind:ident $($column:ident)+;)+ })*) => {
        $($(#[doc = $doc])* pub static $name: &[Column] = &[
            $($(Column { name: stringify!($column), kind: columns!(@$kind) },)+)+
        ];)*
    };
    (@text) => { Kind::Text };
    (@int) => { Kind::Int4 };
    (@big) => { Kind::Int8 };
    (@numeric) => { Kind::Numeric };
}

columns! {
    /// SHOW VERSION.
    VERSION { text version; }
    /// SHOW CONFIG.
    CONFIG { text key value default changeable; }
    /// SHOW DATABASES.
    DATABASES { text name host; int port; text database force_user;
        int pool_size min_pool_size reserve_pool_size server_lifetime; text pool_mode load_balance_hosts;
        int max_connections current_connections max_client_connections current_client_connections paused disabled; }
    /// SHOW POOLS.
    POOLS { text database user;
        int cl_active cl_waiting cl_active_cancel_req cl_waiting_cancel_req sv_active sv_active_cancel sv_being_canceled
            sv_idle sv_used sv_tested sv_login maxwait maxwait_us;
        text pool_mode load_balance_hosts; }
    /// What SHOW POOLS has beyond that in the database `weir`.
    PINNED_POOLS { int sv_pinned_pool; }
    /// SHOW CLIENTS and SHOW SERVERS.
    CLIENTS { text type user database replication state addr; int port; text local_addr; int local_port;
        text connect_time request_time; int wait wait_us close_needed; text ptr link; int remote_pid;
        text tls application_name; int prepared_statements id; }
    /// What SHOW SOCKETS and SHOW ACTIVE_SOCKETS have beyond that.
    BUFFERS { int recv_pos pkt_pos pkt_remain send_pos send_remain pkt_avail send_avail; }
    /// SHOW LISTS.
    LISTS { text list; int items; }
    /// SHOW USERS.
    USERS { text name pool_size reserve_pool_size pool_mode;
        int max_user_connections current_connections max_user_client_connections current_client_connections; }
    /// SHOW STATS.
    STATS { text database;
        numeric total_server_assignment_count total_xact_count total_query_count total_received total_sent
            total_xact_time total_query_time total_wait_time total_client_parse_count total_server_parse_count
            total_bind_count total_client_login_count
            avg_server_assignment_count avg_xact_count avg_query_count avg_recv avg_sent avg_xact_time avg_query_time
            avg_wait_time avg_client_parse_count avg_server_parse_count avg_bind_count avg_client_login_count; }
    /// SHOW STATS_TOTALS.
    STATS_TOTALS { text database;
        numeric server_assignment_count xact_count query_count bytes_received bytes_sent xact_time query_time wait_time
            client_parse_count server_parse_count bind_count client_login_count; }
    /// SHOW STATS_AVERAGES.
    STATS_AVERAGES { text database;
        numeric server_assignment_count xact_count query_count bytes_received bytes_sent xact_time query_time wait_time
            avg_client_parse_count avg_server_parse_count avg_bind_count avg_client_login_count; }
    /// SHOW TOTALS.
    TOTALS { text name; numeric value; }
    /// SHOW MEM.
    MEM { text name; int size used free memtotal; }
    /// SHOW DNS_HOSTS.
    DNS_HOSTS { text hostname; big ttl; text addrs; }
    /// SHOW DNS_ZONES.
    DNS_ZONES { text zonename; big serial; int count; }
    /// SHOW STATE.
    STATE { text key value; }
    /// SHOW PEERS.
    PEERS { int peer_id; text host; int port pool_size; }
    /// SHOW PEER_POOLS.
    PEER_POOLS { int peer_id cl_active_cancel_req cl_waiting_cancel_req sv_active_cancel sv_login; }
    /// SHOW PINS.
    PINS { text protocol; int id; text user database application_name addr state reasons; int held held_us;
        text request_time; big server_pid; text statement; }
    /// SHOW QUEUE.
    QUEUE { text protocol; int id; text user database application_name addr; int wait wait_us; }
    /// SHOW STATEMENTS.
    STATEMENTS { text protocol database user statement; big calls errors rows total_us mean_us p50_us p95_us p99_us; }
    /// SHOW LIMITS.
    LIMITS { text name protocol database user; big used most; }
}

/// The column that stands in front where clients and servers of both protocols are shown.
pub static PROTOCOL: Column = Column { name: "protocol", kind: Kind::Text };

/// The names of SHOW TOTALS, in the order of [`STATS_TOTALS`], behind `total_` and `avg_`.
pub static TOTALS_NAMES: [&str; 12] = [
    "server_assignment_count",
    "xact_count",
    "query_count",
    "client_bytes",
    "server_bytes",
    "xact_time",
    "query_time",
    "wait_time",
    "ps_client_parse_count",
    "ps_server_parse_count",
    "ps_bind_count",
    "client_login_count",
];
