//! ProxySQL's variables: which have a counterpart, and what is said of the others.

use super::super::NoteKind;
use super::super::libconfig::Setting;
use super::{Converter, Family};
use crate::Protocol;
use crate::registry::{Key, setting};
use crate::values::{Value, parse_text, show};

pub(super) const UNKNOWN: &str = "Weir has nothing of this name";

/// What a variable comes to.
#[derive(Debug, Clone, Copy)]
enum Becomes {
    /// This setting, with the same value; what is different, if anything is.
    Same(Key, &'static str),
    /// This setting; ProxySQL counts milliseconds.
    Millis(Key, &'static str),
    /// This setting: the first word for true, the second for false.
    Either(Key, [&'static str; 2]),
    NotNeeded(&'static str),
    LeftOut(&'static str),
}

use Becomes::{Either, LeftOut, Millis, NotNeeded, Same};

const ITSELF: &str = "Weir decides this by itself";
const CHECKS: &str = "server connections that have been idle for server_check_delay are checked before use";
const NO_CACHE: &str = "Weir has no cache of results";
const NO_QUERY_LOG: &str = "Weir has no log of statements";
const NO_CONNECT_QUERY: &str = "no query runs on a new server connection";
const SESSION: &str =
    "what a session has set moves with its client, and its server's defaults hold otherwise";

/// Variables of both protocols. A name that ends in `*` stands for all that begin so.
const VARIABLES: &[(&str, Becomes)] = &[
    ("threads", Same(Key::Workers, "")),
    ("max_connections", Same(Key::MaxClientConn, "")),
    ("server_version", Same(Key::MysqlServerVersion, "")),
    ("default_authentication_plugin", Same(Key::MysqlAuthType, "")),
    ("max_stmts_per_connection", Same(Key::MaxPreparedStatements, "")),
    ("ssl_p2s_ca", Same(Key::ServerTlsCaFile, "")),
    ("ssl_p2s_cert", Same(Key::ServerTlsCertFile, "")),
    ("ssl_p2s_key", Same(Key::ServerTlsKeyFile, "")),
    ("tcp_keepalive_time", Same(Key::TcpKeepidle, "")),
    ("use_tcp_keepalive", Either(Key::TcpKeepalive, ["true", "false"])),
    ("have_ssl", Either(Key::ClientTlsSslmode, ["prefer", "disable"])),
    ("multiplexing", Either(Key::PoolMode, ["transaction", "session"])),
    ("connect_timeout_server", Millis(Key::ServerConnectTimeout, "")),
    (
        "connect_timeout_server_max",
        Millis(
            Key::QueryWaitTimeout,
            "the whole time that a request waits for a server connection, also while all are in use",
        ),
    ),
    ("connect_timeout_client", Millis(Key::ClientLoginTimeout, "")),
    ("wait_timeout", Millis(Key::ClientIdleTimeout, "")),
    ("max_transaction_idle_time", Millis(Key::IdleTransactionTimeout, "")),
    ("max_transaction_time", Millis(Key::TransactionTimeout, "")),
    ("default_query_timeout", Millis(Key::QueryTimeout, "")),
    ("connection_max_age_ms", Millis(Key::ServerLifetime, "")),
    ("ssl_p2s_cipher", LeftOut("the names differ; see tls.server.ciphers")),
    (
        "ssl_p2s_c*",
        LeftOut("Weir reads one file of CAs (tls.server.ca_file) and no lists of revoked certificates"),
    ),
    ("ping_*", NotNeeded(CHECKS)),
    ("monitor_*", NotNeeded("Weir has no monitor: it learns the state of a server from its own connections")),
    ("shun_*", NotNeeded("Weir tries a server that fails again after a pause, up to server_login_retry")),
    ("connect_retries_*", NotNeeded("Weir tries again until query_wait_timeout")),
    ("query_retries_on_failure", LeftOut("Weir does not repeat a statement that a server may have begun")),
    ("free_connections_pct", NotNeeded("idle server connections stay open for server_idle_timeout")),
    ("query_cache_*", LeftOut(NO_CACHE)),
    ("eventslog_*", LeftOut(NO_QUERY_LOG)),
    ("auditlog_*", LeftOut("log.log_connections and log.log_disconnections log logins")),
    ("init_connect", LeftOut(NO_CONNECT_QUERY)),
    ("ldap_*", LeftOut("Weir has no LDAP for MySQL clients")),
    ("firewall_*", LeftOut(super::FIREWALL)),
    ("automatic_detect_sqli", LeftOut(super::FIREWALL)),
    ("default_schema", LeftOut("a client that names no schema has none until it names one")),
    ("default_query_delay", LeftOut("Weir delays no statements")),
    ("mirror_*", LeftOut("Weir sends each statement once")),
    ("long_query_time", NotNeeded("it only counts")),
    ("max_allowed_packet", NotNeeded("Weir streams packets of any size")),
    ("have_compress", NotNeeded("Weir offers no compression")),
    ("default_charset", NotNeeded(SESSION)),
    ("default_collation_connection", NotNeeded(SESSION)),
    ("default_*", NotNeeded(SESSION)),
    ("throttle_*", NotNeeded(ITSELF)),
    ("auto_increment_delay_multiplex*", NotNeeded(ITSELF)),
    ("connection_delay_multiplex_ms", NotNeeded(ITSELF)),
    ("connection_warming", NotNeeded("pool.min_pool_size opens connections ahead")),
    ("session_idle_*", NotNeeded(ITSELF)),
    ("poll_timeout*", NotNeeded(ITSELF)),
    ("stacksize", NotNeeded(ITSELF)),
    ("sessions_sort", NotNeeded(ITSELF)),
    ("query_processor_*", NotNeeded("Weir has no query rules")),
    ("query_digests*", NotNeeded(ITSELF)),
    ("commands_stats", NotNeeded(ITSELF)),
    ("stats_time_*", NotNeeded(ITSELF)),
    ("set_query_lock_on_hostgroup", NotNeeded(ITSELF)),
    ("autocommit_*", NotNeeded(ITSELF)),
    ("enforce_autocommit_on_reads", NotNeeded(ITSELF)),
    ("forward_autocommit", NotNeeded(ITSELF)),
    ("keep_multiplexing_variables", NotNeeded(ITSELF)),
    ("reset_connection_algorithm", NotNeeded(ITSELF)),
    ("handle_unknown_charset", NotNeeded(SESSION)),
    ("hostgroup_manager_verbose", NotNeeded(ITSELF)),
    ("verbose_query_error", NotNeeded(ITSELF)),
    ("show_processlist_extended", NotNeeded(ITSELF)),
];

/// Variables of the administration interface.
const ADMIN: &[(&str, Becomes)] = &[
    (
        "admin_credentials",
        LeftOut(
            "users of Weir use its console, a database called weir; console.admin_users names those who may",
        ),
    ),
    (
        "stats_credentials",
        LeftOut(
            "users of Weir use its console, a database called weir; console.stats_users names those who may look",
        ),
    ),
    ("*_ifaces", LeftOut("the console has no port of its own: clients name the database weir")),
    ("web_*", LeftOut("the dashboard is at http.listen, 127.0.0.1:9930 unless set")),
    ("restapi_*", LeftOut("/metrics and /api are at http.listen, 127.0.0.1:9930 unless set")),
    ("prometheus_*", NotNeeded("/metrics always has the newest figures")),
    ("cluster_*", LeftOut("Weir processes do not share settings; give each of them the same weir.toml")),
    ("checksum_*", NotNeeded("Weir processes do not share settings")),
    ("refresh_interval", NotNeeded(ITSELF)),
    ("hash_passwords", NotNeeded("Weir takes clear passwords and those that the server stores")),
    ("stats_*", NotNeeded(ITSELF)),
    ("debug", LeftOut("log.level = \"debug\" logs more")),
];

fn fits(pattern: &str, name: &str) -> bool {
    match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
        (Some(begin), _) => name.starts_with(begin),
        (None, Some(end)) => name.ends_with(end),
        (None, None) => pattern == name,
    }
}

fn becomes(table: &[(&str, Becomes)], name: &str) -> Becomes {
    table.iter().find(|(pattern, _)| fits(pattern, name)).map_or(LeftOut(UNKNOWN), |(_, becomes)| *becomes)
}

impl Converter {
    pub(super) fn admin_variables(&mut self, inside: &[Setting]) {
        for variable in inside {
            self.variable(variable, becomes(ADMIN, &variable.name));
        }
    }

    pub(super) fn variables(&mut self, family: &Family, inside: &[Setting]) {
        for variable in inside {
            // In ProxySQL's own table they have this prefix, and some write it here too.
            let prefix = format!("{}-", family.prefix);
            let name = variable.name.strip_prefix(&prefix).unwrap_or(&variable.name);
            match (name, family.protocol) {
                ("interfaces", _) => self.interfaces(family, variable),
                ("proxy_protocol_networks", _) => self.balancers(family, variable),
                ("authentication_method", Protocol::Postgres) => self.authentication_method(variable),
                ("server_version", Protocol::Postgres) => {
                    self.variable(variable, NotNeeded("clients are told the version of the server"));
                }
                _ => self.variable(variable, becomes(VARIABLES, name)),
            }
        }
    }

    fn variable(&mut self, variable: &Setting, becomes: Becomes) {
        let (place, name) = (variable.place.clone(), &variable.name);
        let Some(value) = variable.item.scalar() else {
            return self.notes.left_out(place, format!("{name} must be one value, not a list or a group"));
        };
        match becomes {
            NotNeeded(why) => self.notes.add(NoteKind::NotNeeded, place, format!("{name}: {why}")),
            LeftOut(why) => self.notes.left_out(place, format!("{name}: {why}")),
            Same(key, _) if value.is_empty() => {
                let text = format!("{name} is empty, and so is {}", setting(key).full_name());
                self.notes.add(NoteKind::NotNeeded, place, text);
            }
            Same(key, differs) => self.carry(variable, key, &value, differs),
            Millis(key, differs) => self.carry(variable, key, &format!("{value}ms"), differs),
            Either(key, [yes, no]) => match value.as_str() {
                "true" | "1" => self.carry(variable, key, yes, ""),
                "false" | "0" => self.carry(variable, key, no, ""),
                _ => self.notes.left_out(place, format!("{name} must be true or false")),
            },
        }
    }

    /// Sets a setting of Weir, once.
    fn carry(&mut self, variable: &Setting, key: Key, value: &str, differs: &str) {
        let (place, name, row) = (variable.place.clone(), &variable.name, setting(key));
        let full = row.full_name();
        let value = match parse_text(row.kind, value) {
            Ok(value) => value,
            Err(why) => return self.notes.left_out(place, format!("{name}: {full} {why}")),
        };
        if let Some((before, _)) = self.document.settings.get(&key) {
            if *before != value {
                let text = format!(
                    "{name}: {full} holds for both protocols, and is {} already",
                    show(row.kind, before)
                );
                self.notes.left_out(place, text);
            }
            return;
        }
        if !differs.is_empty() {
            self.notes.add(NoteKind::Differs, place, format!("{name}: {full} is {differs}"));
        }
        self.document.set(key, value, "");
    }

    pub(super) fn error_log(&mut self, variable: &Setting) {
        self.variable(variable, Same(Key::Logfile, ""));
    }

    /// `0.0.0.0:6033;/tmp/proxysql.sock`
    fn interfaces(&mut self, family: &Family, variable: &Setting) {
        let value = variable.item.scalar().unwrap_or_default();
        let mut items = Vec::new();
        for item in value.split(';').map(str::trim).filter(|item| !item.is_empty()) {
            let socket = item.starts_with('/') && family.protocol == Protocol::Postgres;
            match item.rsplit_once("/.s.PGSQL.") {
                Some((directory, port)) if socket => items.push(format!("{directory}:{port}")),
                None if socket => {
                    let text = format!("interfaces: {item} is no socket that PostgreSQL's clients look for");
                    self.notes.left_out(variable.place.clone(), text);
                }
                _ => items.push(item.to_owned()),
            }
        }
        self.document.set(listen_of(family.protocol), Value::List(items), "");
    }

    pub(super) fn listen_by_default(&mut self, family: &Family) {
        let key = listen_of(family.protocol);
        if !self.document.settings.contains_key(&key) {
            let value = Value::List(vec![family.listen.to_owned()]);
            self.document.set(key, value, "ProxySQL's default; Weir's is this machine only");
        }
    }

    /// Load balancers that send a PROXY header; `*` is every address.
    fn balancers(&mut self, family: &Family, variable: &Setting) {
        let value = variable.item.scalar().unwrap_or_default();
        let items: Vec<String> = match value.trim() {
            "" => return,
            "*" => vec!["0.0.0.0/0".to_owned(), "::/0".to_owned()],
            list => list.split(',').map(|item| item.trim().to_owned()).collect(),
        };
        if let Some(wrong) = items.iter().find(|item| crate::Network::parse(item).is_err()) {
            let text = format!("{}: {wrong} is no network", variable.name);
            return self.notes.left_out(variable.place.clone(), text);
        }
        let key = match family.protocol {
            Protocol::Postgres => Key::PostgresProxyProtocolNetworks,
            Protocol::Mysql => Key::MysqlProxyProtocolNetworks,
        };
        let text =
            format!("{}: connections from these addresses must begin with a PROXY header", variable.name);
        self.notes.add(NoteKind::Differs, variable.place.clone(), text);
        self.document.set(key, Value::List(items), "");
    }

    fn authentication_method(&mut self, variable: &Setting) {
        let word = match variable.item.scalar().as_deref() {
            Some("1") => "plain",
            Some("2") => "md5",
            Some("3") => "scram-sha-256",
            _ => {
                let text = "authentication_method must be 1, 2 or 3";
                return self.notes.left_out(variable.place.clone(), text);
            }
        };
        self.carry(variable, Key::PostgresAuthType, word, "");
    }
}

fn listen_of(protocol: Protocol) -> Key {
    match protocol {
        Protocol::Postgres => Key::PostgresListen,
        Protocol::Mysql => Key::MysqlListen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_is_hidden_by_one_above_it() {
        for table in [VARIABLES, ADMIN] {
            for (index, (name, _)) in table.iter().enumerate() {
                let above = table[..index].iter().find(|(pattern, _)| fits(pattern, name));
                assert!(above.is_none(), "{name} is hidden by {above:?}");
            }
        }
    }
}
