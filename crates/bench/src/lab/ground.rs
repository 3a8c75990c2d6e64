//! The environment of experiments: databases, given by URL or started for the purpose, and the proxies in
//! front of them.
//!
//! Owns: the processes it starts and the tables it creates; both are removed at the end. Must not know:
//! experiments.

use crate::client::blocking::Client;
use crate::demo::Stop;
use crate::demo::servers::{
    Home, NAME, Process, Server, await_server, find, free_port, start_mysql, start_postgres, start_weir,
};
use crate::plan::Plan;
use crate::prepare;
use crate::record::gather;
use crate::record::result::{Machine, RunResult};
use crate::run::{Progress, run as run_plan};
use crate::statement::Got;
use crate::url::{Dialect, Url};
use crate::workloads::options::Options;
use crate::workloads::{Params, Workload, by_name};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use weir_config::DatabaseUrl;

/// Tables of the experiments, and rows in each: sysbench's, small enough to be in memory everywhere.
pub const TABLES: u32 = 10;
/// Rows in each.
pub const TABLE_ROWS: u32 = 10_000;

/// max_connections of a PostgreSQL that is started: enough for 1,500 idle clients.
const POSTGRES_CONNECTIONS: u32 = 1_700;

/// The same of a MariaDB: a thread costs less than a process.
const MYSQL_CONNECTIONS: u32 = 10_300;

/// Memory that must be left for one connection through a proxy: the kernel's sockets on both sides, and some
/// more.
const BYTES_EACH: u64 = 24_000;

/// Pause between two looks at a server that is to become calm, looks at most, and looks without a change.
const CALM_PAUSE: Duration = Duration::from_millis(100);
const CALM_LOOKS: u32 = 600;
const CALM_UNCHANGED: u32 = 20;

/// The most clients of any experiment.
pub const CLIENTS_MAX: u32 = 100_000;

/// A database.
pub struct Base {
    /// What it is, with its version.
    pub title: String,
    /// Where.
    pub url: Url,
    /// The same with its password, for what stands before it.
    url_text: String,
    /// Connections it takes from direct clients.
    pub direct_clients: u32,
    process: Option<Process>,
    made_tables: bool,
}

impl Base {
    /// Straight to it, with this parameter in place of what its URL says of TLS.
    ///
    /// # Errors
    /// The URL is wrong with this parameter.
    pub fn direct(&self, parameter: &str) -> Result<Way, String> {
        let url = Url::parse(&with_tls(&self.url_text, parameter))?;
        Ok(Way { front: Front::Direct, url, clients_max: self.direct_clients, process: None })
    }

    /// Its process, if it was started for the purpose.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    fn of_server(server: Server) -> Base {
        Base {
            title: server.title,
            url: server.url,
            url_text: server.url_text,
            direct_clients: server.direct_clients,
            process: Some(server.process),
            made_tables: false,
        }
    }

    fn of_url(text: &str) -> Result<Base, String> {
        let url = Url::parse(text)?;
        let mut client = Client::connect(&url).map_err(|error| format!("{url}: {error}"))?;
        let limit = match url.dialect {
            Dialect::Postgres => {
                "SELECT current_setting('max_connections')::int - \
                                  current_setting('superuser_reserved_connections')::int"
            }
            Dialect::Mysql => "SELECT @@GLOBAL.max_connections",
        };
        let limit: u32 = figure(&mut client, limit).map_err(|error| format!("{url}: {error}"))? as u32;
        let version = words(&mut client, "SELECT version()").map_err(|error| format!("{url}: {error}"))?;
        let name = match url.dialect {
            Dialect::Postgres => version.split(" on ").next().unwrap_or_default().to_owned(),
            Dialect::Mysql if version.contains("MariaDB") => version,
            Dialect::Mysql => format!("MySQL {version}"),
        };
        Ok(Base {
            title: name,
            url,
            url_text: text.to_owned(),
            // Others use it too.
            direct_clients: limit.saturating_sub(20).max(1),
            process: None,
            made_tables: false,
        })
    }

    /// Connections of this user, its own one not counted.
    ///
    /// # Errors
    /// The server refuses the statement, the connection is lost, or the reply breaks the protocol.
    pub fn connections(&self, client: &mut Client) -> Result<i64, String> {
        let sql = match self.url.dialect {
            Dialect::Postgres => "SELECT count(*) - 1 FROM pg_stat_activity WHERE usename = current_user",
            // Without a privilege it shows the user's own threads: those that are meant.
            Dialect::Mysql => "SELECT COUNT(*) - 1 FROM information_schema.processlist",
        };
        figure(client, sql)
    }

    /// Waits until the connections of the last measurement are gone, or no more of them go.
    fn calm(&self) -> Result<(), String> {
        let mut client = self.look()?;
        let mut least = i64::MAX;
        let mut unchanged = 0;
        for _ in 0..CALM_LOOKS {
            let now = self.connections(&mut client)?;
            if now <= 0 || unchanged >= CALM_UNCHANGED {
                return Ok(());
            }
            unchanged = if now < least { 0 } else { unchanged + 1 };
            least = least.min(now);
            std::thread::sleep(CALM_PAUSE);
        }
        Ok(())
    }

    /// A connection that looks at the server while an experiment goes on.
    ///
    /// # Errors
    /// The database cannot be reached or refuses the login.
    pub fn look(&self) -> Result<Client, String> {
        Client::connect(&self.url).map_err(|error| format!("{}: {error}", self.title))
    }

    /// The workload of this name on the laboratory's tables.
    ///
    /// # Errors
    /// There is no workload of this name, or its options are out of range.
    pub fn workload(
        &self,
        name: &str,
        connections: u32,
        change: impl FnOnce(&mut Options),
    ) -> Result<Arc<dyn Workload>, String> {
        let mut options = Options { tables: TABLES, table_size: TABLE_ROWS, ..Options::default() };
        change(&mut options);
        Ok(Arc::from(by_name(name, &Params { dialect: self.url.dialect, connections, options })?))
    }

    /// Makes the tables, unless they are there.
    fn prepare(&mut self) -> Result<(), String> {
        let workload = self.workload("oltp_point_select", 1, |_| {})?;
        if workload.probe(&mut self.look()?).is_ok() {
            return Ok(());
        }
        let failed = |error| format!("{}: {error}", self.title);
        prepare::prepare(&self.url, &*workload, 2, &mut |_, _| {}).map_err(failed)?;
        self.made_tables = true;
        Ok(())
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        // A server of our own goes with its tables; a given one gets rid of ours. It may have gone.
        if self.process.is_none()
            && self.made_tables
            && let Ok(workload) = self.workload("oltp_point_select", 1, |_| {})
        {
            let _ = prepare::cleanup(&self.url, &*workload);
        }
    }
}

/// What stands before a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// Nothing.
    Direct,
    /// Weir.
    Weir,
    /// PgBouncer in transaction mode.
    PgBouncer,
    /// HAProxy, which relays connections and shares none.
    HaProxy,
}

impl Front {
    /// All, in the order of tables.
    pub const ALL: [Front; 4] = [Front::Direct, Front::Weir, Front::PgBouncer, Front::HaProxy];

    /// The word in tables.
    pub fn name(self) -> &'static str {
        match self {
            Front::Direct => "direct",
            Front::Weir => "Weir",
            Front::PgBouncer => "PgBouncer",
            Front::HaProxy => "HAProxy",
        }
    }

    /// Its colour in plots.
    pub fn colour(self) -> usize {
        match self {
            Front::Direct => 1,
            Front::Weir => 0,
            Front::PgBouncer => 2,
            Front::HaProxy => 4,
        }
    }
}

/// A way to a database: straight or through something, which ends when this is dropped.
pub struct Way {
    /// What it leads through.
    pub front: Front,
    /// Where clients connect.
    pub url: Url,
    /// Clients it takes.
    pub clients_max: u32,
    process: Option<Process>,
}

impl Way {
    /// The process between, if there is one.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }
}

/// Databases and the means to stand before them.
pub struct Ground {
    /// The databases. Dropped before the directory of those that were started.
    pub bases: Vec<Base>,
    home: Home,
    executable: PathBuf,
    /// Connections of a pool.
    pub pool_size: u32,
    /// The most clients an experiment takes.
    pub clients_max: u32,
    /// Cores of this machine.
    pub cores: u32,
    /// This machine before the first experiment.
    pub machine: Machine,
}

impl Ground {
    /// Databases by URL, or started when there are none; tables made.
    ///
    /// # Errors
    /// A URL is wrong, a database cannot be started or reached, or its tables cannot be made.
    pub fn new(
        urls: &[String],
        executable: PathBuf,
        pool_size: Option<u32>,
        clients_max: Option<u32>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Ground, String> {
        let machine = gather::machine(true);
        let home = Home::new("lab")?;
        let mut bases = if urls.is_empty() {
            say("Starting throw-away databases (give others by --url) ...");
            start_bases(&home, say)?
        } else {
            urls.iter().map(|text| Base::of_url(text)).collect::<Result<Vec<_>, _>>()?
        };
        for base in &mut bases {
            say(&format!("Filling {TABLES} tables of {TABLE_ROWS} rows in {} ...", base.title));
            base.prepare()?;
        }
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let memory = memory_available().unwrap_or(u64::MAX);
        let fits = u32::try_from(memory / BYTES_EACH).unwrap_or(u32::MAX);
        Ok(Ground {
            bases,
            home,
            executable,
            pool_size: pool_size.unwrap_or(4 * cores),
            clients_max: clients_max.unwrap_or(CLIENTS_MAX).min(fits),
            cores,
            machine,
        })
    }

    /// The way to a database through `front`, for so many clients; `None` where that is not installed or does
    /// not speak its protocol.
    ///
    /// # Errors
    /// The database does not come to rest, or the proxy does not start.
    pub fn way(&self, base: &Base, front: Front, clients: u32) -> Result<Option<Way>, String> {
        self.way_with_pool(base, front, clients, self.pool_size)
    }

    /// The same with a pool of this size.
    ///
    /// # Errors
    /// The database does not come to rest, or the proxy does not start.
    pub fn way_with_pool(
        &self,
        base: &Base,
        front: Front,
        clients: u32,
        pool_size: u32,
    ) -> Result<Option<Way>, String> {
        base.calm()?;
        match front {
            Front::Direct => Ok(Some(Way {
                front,
                url: base.url.clone(),
                clients_max: base.direct_clients,
                process: None,
            })),
            Front::Weir => self.weir(base, clients, pool_size).map(Some),
            Front::PgBouncer => self.pgbouncer(base, clients, pool_size),
            Front::HaProxy => self.haproxy(base),
        }
    }

    fn weir(&self, base: &Base, clients: u32, pool_size: u32) -> Result<Way, String> {
        let port = free_port(None)?;
        // Proxies are compared with each other and with direct clients in clear, unless somebody wishes for
        // TLS.
        let behind = match base.url.tls {
            None => with_tls(&base.url_text, "sslmode=disable"),
            Some(_) => base.url_text.clone(),
        };
        let text = at_port(&base.url_text, port)?;
        self.start_weir(base, behind, &format!("127.0.0.1:{port}"), text, clients, pool_size)
    }

    /// Weir with TLS to the database, for clients of this machine by a Unix socket.
    ///
    /// # Errors
    /// The database does not come to rest, no port is free, or Weir does not start.
    pub fn weir_on_a_socket(&self, base: &Base, clients: u32) -> Result<Way, String> {
        base.calm()?;
        let port = free_port(None)?;
        let (scheme, rest) = base.url_text.split_once("://").ok_or_else(|| "a URL needs ://".to_owned())?;
        let login = rest.rsplit_once('@').map_or(NAME, |(login, _)| login);
        let (directory, database) = (self.home.path.display(), &base.url.database);
        let (listen, text) = match base.url.dialect {
            Dialect::Postgres => (
                format!("{directory}:{port}"),
                format!("{scheme}://{login}@/{database}?host={directory}&port={port}"),
            ),
            Dialect::Mysql => (
                format!("{directory}/weir-{port}.sock"),
                format!("{scheme}://{login}@/{database}?socket={directory}/weir-{port}.sock"),
            ),
        };
        let behind = match &base.url.tls {
            Some(tls) if tls.mode.is_required() => base.url_text.clone(),
            Some(_) | None => with_tls(&base.url_text, "sslmode=require"),
        };
        self.start_weir(base, behind, &listen, text, clients, self.pool_size)
    }

    fn start_weir(
        &self,
        base: &Base,
        behind: String,
        listen: &str,
        text: String,
        clients: u32,
        pool_size: u32,
    ) -> Result<Way, String> {
        let section = match base.url.dialect {
            Dialect::Postgres => "postgres",
            Dialect::Mysql => "mysql",
        };
        // Some room for the load generator's own looks.
        let clients = clients.saturating_add(200);
        let mut arguments = vec![behind];
        arguments.extend(["--pool-size".to_owned(), pool_size.to_string()]);
        arguments.extend(["--set".to_owned(), format!("{section}.listen={listen}")]);
        arguments.extend(["--set".to_owned(), format!("http.listen=127.0.0.1:{}", free_port(None)?)]);
        let mut process = start_weir(&self.home, &self.executable, &arguments)?;
        drop(await_server(&self.home, &mut process, &text, "weir.log")?);
        Ok(Way { front: Front::Weir, url: Url::parse(&text)?, clients_max: clients, process: Some(process) })
    }

    fn pgbouncer(&self, base: &Base, clients: u32, pool_size: u32) -> Result<Option<Way>, String> {
        let (Some(program), Dialect::Postgres) = (find(&["pgbouncer"], &["/usr/sbin"]), base.url.dialect)
        else {
            return Ok(None);
        };
        let Some(server) = tcp_address(&base.url) else { return Ok(None) };
        let port = free_port(None)?;
        // One descriptor table holds both sides.
        let clients = clients
            .min(weir_net::tables::open_files().hard.saturating_sub(u64::from(pool_size) + 200) as u32);
        let password = DatabaseUrl::parse_or_local(&base.url_text)?.password;
        let password = password.map(|p| format!(" password='{}'", p.replace('\'', "''")));
        let (user, database) = (&base.url.user, &base.url.database);
        let (host, server_port) = (server.ip(), server.port());
        let ini = self.home.write(
            "pgbouncer.ini",
            &format!(
                "[databases]\n{database} = host={host} port={server_port} dbname={database} user={user}{}\n\
                 [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
                 pool_mode = transaction\ndefault_pool_size = {}\nmax_client_conn = {clients}\nlisten_backlog = 4096\n\
                 query_wait_timeout = 0\nlog_connections = 0\nlog_disconnections = 0\n",
                password.unwrap_or_default(),
                pool_size
            ),
        )?;
        let mut command = self.home.command(&program, "pgbouncer.log")?;
        command.arg("-q").arg(&ini);
        let text = at_port(&base.url_text, port)?;
        let child = command.spawn().map_err(|e| format!("{}: {e}", program.display()))?;
        let mut process = Process::new(child, "PgBouncer", false);
        drop(await_server(&self.home, &mut process, &text, "pgbouncer.log")?);
        let url = Url::parse(&text)?;
        Ok(Some(Way {
            front: Front::PgBouncer,
            url,
            clients_max: clients.saturating_sub(20),
            process: Some(process),
        }))
    }

    fn haproxy(&self, base: &Base) -> Result<Option<Way>, String> {
        let Some(program) = find(&["haproxy"], &["/usr/sbin"]) else { return Ok(None) };
        let Some(server) = tcp_address(&base.url) else { return Ok(None) };
        let port = free_port(None)?;
        let clients = haproxy_clients(base.direct_clients, weir_net::tables::open_files().hard);
        let file = self.home.write(
            "haproxy.cfg",
            &format!(
                "global\n  maxconn {clients}\ndefaults\n  mode tcp\n  timeout connect 10s\n  timeout client 1h\n  \
                 timeout server 1h\nlisten lab\n  bind 127.0.0.1:{port}\n  server database {server}\n"
            ),
        )?;
        let mut command = self.home.command(&program, "haproxy.log")?;
        command.arg("-db").arg("-f").arg(&file);
        let text = at_port(&base.url_text, port)?;
        let child = command.spawn().map_err(|e| format!("{}: {e}", program.display()))?;
        let mut process = Process::new(child, "HAProxy", false);
        drop(await_server(&self.home, &mut process, &text, "haproxy.log")?);
        let url = Url::parse(&text)?;
        Ok(Some(Way { front: Front::HaProxy, url, clients_max: clients, process: Some(process) }))
    }

    /// A second MariaDB with its thread pool, in a directory that must outlive it; `None` where the server is
    /// not MariaDB.
    ///
    /// # Errors
    /// The server does not start, or its tables cannot be made.
    pub fn thread_pool(&self, connections: u32) -> Result<Option<(Home, Base)>, String> {
        let home = Home::new("lab-threads")?;
        let server =
            start_mysql(&home, connections, &["--thread-handling=pool-of-threads", "--back-log=3500"])?;
        if !server.title.contains("MariaDB") {
            return Ok(None);
        }
        let mut base = Base::of_server(server);
        base.title = format!("{}, pool-of-threads", base.title);
        base.prepare()?;
        Ok(Some((home, base)))
    }
}

/// Clients that HAProxy can carry within a limit of open files: it needs two for each and some more, and does
/// not start when `maxconn` asks for more than there are.
fn haproxy_clients(wanted: u32, open_files: u64) -> u32 {
    u64::from(wanted).min(open_files.saturating_sub(200) / 2).max(1) as u32
}

fn start_bases(home: &Home, say: &mut dyn FnMut(&str)) -> Result<Vec<Base>, String> {
    let files = home.certificate()?;
    let mysql_tls = [format!("--ssl-cert={}", files.0.display()), format!("--ssl-key={}", files.1.display())];
    let mysql_options = ["--back-log=3500", &mysql_tls[0], &mysql_tls[1]];
    let postgres_tls =
        [format!("ssl_cert_file={}", files.0.display()), format!("ssl_key_file={}", files.1.display())];
    let postgres_settings = ["ssl=on", &postgres_tls[0], &postgres_tls[1]];
    let (postgres, mysql) = std::thread::scope(|scope| {
        let mysql = scope.spawn(|| start_mysql(home, MYSQL_CONNECTIONS, &mysql_options));
        let postgres = start_postgres(home, POSTGRES_CONNECTIONS, &postgres_settings);
        (postgres, mysql.join().unwrap_or_else(|_| Err("the start of MySQL panicked".to_owned())))
    });
    let mut bases = Vec::new();
    for outcome in [postgres, mysql] {
        match outcome {
            Ok(server) => bases.push(Base::of_server(server)),
            Err(text) => say(&format!("Without one of the databases: {text}")),
        }
    }
    if bases.is_empty() { Err("no database could be started".to_owned()) } else { Ok(bases) }
}

fn tcp_address(url: &Url) -> Option<std::net::SocketAddr> {
    match &url.target {
        weir_net::Target::Tcp(address) => Some(*address),
        weir_net::Target::Unix(_) => None,
    }
}

/// The first value of the first row as a number.
///
/// # Errors
/// The server refuses the statement, or its first value is no number.
pub fn figure(client: &mut Client, sql: &str) -> Result<i64, String> {
    let mut found = None;
    client.ask(sql, &mut |got| found = got.as_int()).map_err(|error| error.to_string())?;
    found.ok_or_else(|| format!("{sql}: no number came back"))
}

/// The first value of the first row as text.
fn words(client: &mut Client, sql: &str) -> Result<String, String> {
    let mut found = String::new();
    let mut hear = |got: Got<'_>| {
        if let Got::Text(text) = got {
            found = String::from_utf8_lossy(text).into_owned();
        }
    };
    client.ask(sql, &mut hear).map_err(|error| error.to_string())?;
    Ok(found)
}

/// Memory that a process and those below it have for themselves alone, in bytes: what they share
/// (PostgreSQL's buffers) would be counted for each.
pub fn private_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes: u64 = line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0);
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let below: u64 =
        children.split_whitespace().filter_map(|child| child.parse().ok()).map(private_bytes).sum();
    kilobytes * 1024 + below
}

/// Memory that can be had without swapping, in bytes.
fn memory_available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().split(' ').next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// The same login and database at a port of this machine.
fn at_port(text: &str, port: u16) -> Result<String, String> {
    let (scheme, rest) = text.split_once("://").ok_or_else(|| "a URL needs ://".to_owned())?;
    let (login, place) = rest.rsplit_once('@').map_or((NAME, rest), |(login, place)| (login, place));
    let path = place.split_once('/').map_or("", |(_, path)| path);
    // Parameters name a socket or TLS of the server behind.
    let database = path.split('?').next().unwrap_or_default();
    Ok(format!("{scheme}://{login}@127.0.0.1:{port}/{database}"))
}

/// A URL with this parameter in place of how it asks for TLS; its certificates stay.
fn with_tls(text: &str, parameter: &str) -> String {
    let (place, query) = text.split_once('?').unwrap_or((text, ""));
    let others = query.split('&').filter(|pair| {
        !pair.is_empty() && !["sslmode=", "ssl-mode="].iter().any(|name| pair.starts_with(name))
    });
    let pairs: Vec<&str> = others.chain([parameter]).collect();
    format!("{place}?{}", pairs.join("&"))
}

/// One load of an experiment.
pub struct Load {
    /// Its plan.
    pub plan: Plan,
}

impl Load {
    /// A closed loop through `way`.
    pub fn new(base: &Base, way: &Way, workload: Arc<dyn Workload>, connections: u32, seconds: f64) -> Load {
        let mut plan = Plan::new(vec![way.url.clone()], workload, connections);
        plan.warm_up = Duration::from_millis(500);
        plan.time = Duration::from_secs_f64(seconds);
        plan.watched.extend(way.pid().map(|pid| (way.front.name().to_owned(), pid)));
        plan.watched.extend(base.pid().map(|pid| ("database".to_owned(), pid)));
        Load { plan }
    }

    /// Runs it. An error is one of the whole load, not of single queries.
    ///
    /// # Errors
    /// The plan does not fit this machine, or the server cannot be reached.
    pub fn run(self, stop: &Stop) -> Result<RunResult, String> {
        self.run_heard(stop, &mut |_| {})
    }

    /// The same; `hear` is told how it goes.
    ///
    /// # Errors
    /// The plan does not fit this machine, or the server cannot be reached.
    pub fn run_heard(self, stop: &Stop, hear: &mut dyn FnMut(&Progress<'_>)) -> Result<RunResult, String> {
        let control = stop.control();
        run_plan(self.plan, &control, &mut |progress| hear(&progress)).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn haproxy_is_asked_for_no_more_clients_than_it_may_open_files_for() {
        assert_eq!(haproxy_clients(600, 20_000), 600);
        assert_eq!(haproxy_clients(10_200, 20_000), 9_900);
        assert_eq!(haproxy_clients(10_200, 100), 1);
        assert_eq!(haproxy_clients(10_200, u64::MAX), 10_200);
    }

    #[test]
    fn the_way_through_a_proxy_keeps_login_and_database() {
        let url = "postgres://app:s%40cret@db.example:5432/shop?sslmode=require";
        assert_eq!(at_port(url, 6432).unwrap(), "postgres://app:s%40cret@127.0.0.1:6432/shop");
        assert_eq!(with_tls(url, "sslmode=disable"), url.replace("require", "disable"));
        assert_eq!(
            with_tls("mysql://demo@/d?socket=/run/my.sock", "sslmode=require"),
            "mysql://demo@/d?socket=/run/my.sock&sslmode=require"
        );
        assert_eq!(with_tls("mysql://demo@h/d", "sslmode=require"), "mysql://demo@h/d?sslmode=require");
        assert_eq!(at_port("mysql://demo@/d?socket=/run/my.sock", 1).unwrap(), "mysql://demo@127.0.0.1:1/d");
    }
}
