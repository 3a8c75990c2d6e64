//! sysbench's option names that differ from ours: the address of the database, and version 0.5's ways to
//! choose a workload.
//!
//! Owns: those options and their meaning. Names that differ in spelling only are aliases of the option. Must
//! not know: what a workload does.

use crate::workloads::options::Switch;
use std::path::Path;
use weir_config::percent_encoded;

/// Hidden from the help: `docs/src/bench.md` has them.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Sysbench {
    /// mysql or pgsql.
    #[arg(long, alias = "db_driver", hide = true, value_enum)]
    pub db_driver: Option<Driver>,
    /// Hosts, separated by commas.
    #[arg(long, alias = "mysql_host", hide = true, value_delimiter = ',')]
    pub mysql_host: Vec<String>,
    /// Ports, separated by commas.
    #[arg(long, alias = "mysql_port", hide = true, value_delimiter = ',')]
    pub mysql_port: Vec<u16>,
    /// A Unix socket.
    #[arg(long, alias = "mysql_socket", hide = true, conflicts_with_all = ["mysql_host", "mysql_port"])]
    pub mysql_socket: Option<String>,
    /// The user.
    #[arg(long, alias = "mysql_user", hide = true)]
    pub mysql_user: Option<String>,
    /// The password.
    #[arg(long, alias = "mysql_password", hide = true)]
    pub mysql_password: Option<String>,
    /// The schema.
    #[arg(long, alias = "mysql_db", hide = true)]
    pub mysql_db: Option<String>,
    /// on or off, or an ssl-mode.
    #[arg(long, alias = "mysql_ssl", hide = true)]
    pub mysql_ssl: Option<String>,
    /// Hosts, separated by commas.
    #[arg(long, alias = "pgsql_host", hide = true, value_delimiter = ',')]
    pub pgsql_host: Vec<String>,
    /// Ports, separated by commas.
    #[arg(long, alias = "pgsql_port", hide = true, value_delimiter = ',')]
    pub pgsql_port: Vec<u16>,
    /// The user.
    #[arg(long, alias = "pgsql_user", hide = true)]
    pub pgsql_user: Option<String>,
    /// The password.
    #[arg(long, alias = "pgsql_password", hide = true)]
    pub pgsql_password: Option<String>,
    /// The database.
    #[arg(long, alias = "pgsql_db", hide = true)]
    pub pgsql_db: Option<String>,
    /// libpq's sslmode.
    #[arg(long, alias = "pgsql_sslmode", hide = true)]
    pub pgsql_sslmode: Option<String>,
    /// 0.5: oltp without writes.
    #[arg(long, alias = "oltp_read_only", hide = true, value_enum, num_args = 0..=1, default_missing_value = "on")]
    pub oltp_read_only: Option<Switch>,
}

/// Which client library sysbench would use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Driver {
    /// MySQL and MariaDB.
    Mysql,
    /// PostgreSQL.
    Pgsql,
}

/// The names of the options of which one is enough in place of `--url`.
pub const IN_PLACE_OF_URL: [&str; 14] = [
    "db_driver",
    "mysql_host",
    "mysql_port",
    "mysql_socket",
    "mysql_user",
    "mysql_password",
    "mysql_db",
    "mysql_ssl",
    "pgsql_host",
    "pgsql_port",
    "pgsql_user",
    "pgsql_password",
    "pgsql_db",
    "pgsql_sslmode",
];

/// sysbench's user and schema when none are named.
const NAME: &str = "sbtest";

impl Sysbench {
    /// What is said of the database as URLs, one for each host and port; none when nothing is said.
    ///
    /// # Errors
    /// Options of both databases without `--db-driver`.
    pub fn urls(&self) -> Result<Vec<String>, String> {
        let of_mysql = !self.mysql_host.is_empty()
            || !self.mysql_port.is_empty()
            || [&self.mysql_socket, &self.mysql_user, &self.mysql_password, &self.mysql_db, &self.mysql_ssl]
                .iter()
                .any(|option| option.is_some());
        let of_pgsql = !self.pgsql_host.is_empty()
            || !self.pgsql_port.is_empty()
            || [&self.pgsql_user, &self.pgsql_password, &self.pgsql_db, &self.pgsql_sslmode]
                .iter()
                .any(|option| option.is_some());
        let driver = match (self.db_driver, of_mysql, of_pgsql) {
            (Some(driver), ..) => driver,
            (None, false, false) => return Ok(Vec::new()),
            (None, true, false) => Driver::Mysql,
            (None, false, true) => Driver::Pgsql,
            (None, true, true) => return Err("--mysql-* and --pgsql-*: say --db-driver, too".to_owned()),
        };
        Ok(match driver {
            Driver::Mysql => self.mysql_urls(),
            Driver::Pgsql => {
                let tls = self.pgsql_sslmode.as_ref().map(|mode| format!("?sslmode={mode}"));
                let login = login(&self.pgsql_user, &self.pgsql_password);
                let database = percent_encoded(self.pgsql_db.as_deref().unwrap_or(NAME));
                places(&self.pgsql_host, &self.pgsql_port, 5432)
                    .map(|at| format!("postgres://{login}@{at}/{database}{}", tls.as_deref().unwrap_or("")))
                    .collect()
            }
        })
    }

    fn mysql_urls(&self) -> Vec<String> {
        let mut parameters: Vec<String> = Vec::new();
        match self.mysql_ssl.as_deref() {
            None | Some("off") => {}
            Some("on") => parameters.push("ssl-mode=REQUIRED".to_owned()),
            Some(mode) => parameters.push(format!("ssl-mode={}", mode.to_ascii_uppercase())),
        }
        parameters
            .extend(self.mysql_socket.as_deref().map(|path| format!("socket={}", percent_encoded(path))));
        let parameters =
            if parameters.is_empty() { String::new() } else { format!("?{}", parameters.join("&")) };
        let login = login(&self.mysql_user, &self.mysql_password);
        let database = percent_encoded(self.mysql_db.as_deref().unwrap_or(NAME));
        places(&self.mysql_host, &self.mysql_port, 3306)
            .map(|at| format!("mysql://{login}@{at}/{database}{parameters}"))
            .collect()
    }

    /// The workload that sysbench means by this name: a file with a path, or 0.5's `oltp`.
    pub fn workload(&self, name: &str) -> String {
        let stem = Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(name);
        let stem = stem.strip_suffix(".lua").unwrap_or(stem);
        let reads = self.oltp_read_only.is_some_and(Switch::is_on);
        match stem {
            "oltp_simple" => "oltp_point_select",
            "oltp" | "oltp_read_write" if reads => "oltp_read_only",
            "oltp" => "oltp_read_write",
            "insert" => "oltp_insert",
            "delete" => "oltp_delete",
            "update_index" => "oltp_update_index",
            "update_non_index" => "oltp_update_non_index",
            _ if stem.len() < name.len() => stem,
            _ => name,
        }
        .to_owned()
    }
}

fn login(user: &Option<String>, password: &Option<String>) -> String {
    let user = percent_encoded(user.as_deref().unwrap_or(NAME));
    match password.as_deref().filter(|password| !password.is_empty()) {
        Some(password) => format!("{user}:{}", percent_encoded(password)),
        None => user,
    }
}

/// Every host with every port, as sysbench has it.
fn places<'a>(hosts: &'a [String], ports: &'a [u16], port: u16) -> impl Iterator<Item = String> + 'a {
    let hosts: Vec<&str> =
        if hosts.is_empty() { vec!["localhost"] } else { hosts.iter().map(String::as_str).collect() };
    let ports = if ports.is_empty() { vec![port] } else { ports.to_vec() };
    hosts.into_iter().flat_map(move |host| {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        ports.clone().into_iter().map(move |port| format!("{host}:{port}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        sysbench: Sysbench,
    }

    fn urls(line: &str) -> Result<Vec<String>, String> {
        Line::try_parse_from(["x"].into_iter().chain(line.split_whitespace())).unwrap().sysbench.urls()
    }

    #[test]
    fn places_as_sysbench_names_them() {
        assert_eq!(urls(""), Ok(vec![]));
        assert_eq!(urls("--db-driver=mysql").unwrap(), ["mysql://sbtest@localhost:3306/sbtest"]);
        assert_eq!(
            urls("--mysql-host=a,b --mysql-port=1,2 --mysql_user=me --mysql-password=p@ss/ --mysql-db=d")
                .unwrap(),
            ["a:1", "a:2", "b:1", "b:2"].map(|at| format!("mysql://me:p%40ss%2F@{at}/d"))
        );
        assert_eq!(
            urls("--db-driver=pgsql --pgsql-host=::1 --pgsql-user=me --mysql-user=other").unwrap(),
            ["postgres://me@[::1]:5432/sbtest"]
        );
        assert_eq!(
            urls("--mysql-ssl=on --mysql-user=a").unwrap(),
            ["mysql://a@localhost:3306/sbtest?ssl-mode=REQUIRED"]
        );
        assert!(urls("--pgsql-user=me --mysql-user=other").unwrap_err().contains("--db-driver"));
    }

    #[test]
    fn workloads_of_0_5() {
        let plain = Sysbench::default();
        let reads = Sysbench { oltp_read_only: Some(Switch::On), ..Sysbench::default() };
        for (name, wanted) in [
            ("oltp", "oltp_read_write"),
            ("/usr/share/doc/sysbench/tests/db/oltp.lua", "oltp_read_write"),
            ("oltp_simple.lua", "oltp_point_select"),
            ("update_index.lua", "oltp_update_index"),
            ("oltp_read_only.lua", "oltp_read_only"),
            ("tpcc", "tpcc"),
        ] {
            assert_eq!(plain.workload(name), wanted, "{name}");
        }
        assert_eq!(reads.workload("oltp.lua"), "oltp_read_only");
    }
}
