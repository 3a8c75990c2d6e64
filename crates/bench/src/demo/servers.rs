//! Temporary database servers: found, started, stopped, removed.
//!
//! Owns: their processes and data. Everything is in one directory that is removed at the end, on success and
//! on failure. When the demo runs as root the servers run as the user `nobody`: PostgreSQL refuses to run as
//! root.

use crate::client::blocking::Client;
use crate::url::Url;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to answer after its start.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a process may take to end in peace.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);

/// The database and the user of the demo, on all servers.
pub const NAME: &str = "demo";

/// The directory of a demo. Removed when dropped.
pub struct Home {
    /// Where.
    pub path: PathBuf,
    /// User and group of the servers; `None`: our own.
    owner: Option<(u32, u32)>,
}

impl Home {
    /// Makes the directory. `name` says what for.
    ///
    /// # Errors
    /// The directory cannot be made or given to its owner.
    pub fn new(name: &str) -> Result<Home, String> {
        let path = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let owner = rustix::process::geteuid().is_root().then(nobody);
        let home = Home { path, owner };
        home.give(&home.path)?;
        let temporary = home.temporary();
        fs::create_dir_all(&temporary).map_err(|e| format!("{}: {e}", temporary.display()))?;
        home.give(&temporary)?;
        Ok(home)
    }

    /// A path inside.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// For the temporary files of the servers. A MariaDB that starts removes the temporary tables of all
    /// others that share its directory.
    fn temporary(&self) -> PathBuf {
        self.join("tmp")
    }

    fn give(&self, path: &Path) -> Result<(), String> {
        let failed = |e| format!("{}: {e}", path.display());
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(failed)?;
        match self.owner {
            Some((user, group)) => chown(path, Some(user), Some(group)).map_err(failed),
            None => Ok(()),
        }
    }

    /// Writes a file that the servers may read.
    ///
    /// # Errors
    /// The file cannot be written or given to its owner.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.join(name);
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        self.give(&path)?;
        Ok(path)
    }

    /// A certificate for this machine and its key, for the servers alone to read.
    ///
    /// # Errors
    /// The certificate cannot be made, or its files cannot be written.
    pub fn certificate(&self) -> Result<(PathBuf, PathBuf), String> {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = weir_tls::self_made(&names, None).map_err(|error| error.to_string())?;
        let mut paths = [self.join("server.pem"), self.join("server.key")];
        for (path, bytes) in paths.iter().zip([made.identity.chain, made.identity.key]) {
            let failed = |e| format!("{}: {e}", path.display());
            fs::write(path, bytes).map_err(failed)?;
            self.give(path)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        }
        Ok((std::mem::take(&mut paths[0]), std::mem::take(&mut paths[1])))
    }

    /// A command that runs as the owner, apart from our terminal, with its output in `log`.
    ///
    /// # Errors
    /// The log file cannot be opened.
    pub fn command(&self, program: &Path, log: &str) -> Result<Command, String> {
        let log = self.join(log);
        let open = || File::options().create(true).append(true).open(&log);
        let failed = |e| format!("{}: {e}", log.display());
        let mut command = Command::new(program);
        command
            .current_dir(&self.path)
            .stdin(Stdio::null())
            .stdout(open().map_err(failed)?)
            .stderr(open().map_err(failed)?)
            .env("HOME", &self.path)
            .env("TMPDIR", self.temporary())
            .env("LC_ALL", "C")
            // Ctrl-C on the terminal is for us: we end the servers in order.
            .process_group(0);
        if let Some((user, group)) = self.owner {
            command.uid(user).gid(group);
        }
        Ok(command)
    }

    fn last_lines(&self, log: &str) -> String {
        let text = fs::read_to_string(self.join(log)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n  ")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Nothing is left to tell it to.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// User and group id of `nobody`; Linux's usual number where there is no such user.
fn nobody() -> (u32, u32) {
    let user = nix::unistd::User::from_name("nobody").ok().flatten();
    user.map_or((65_534, 65_534), |user| (user.uid.as_raw(), user.gid.as_raw()))
}

/// A process that ends with us.
pub struct Process {
    child: Child,
    name: &'static str,
    /// SIGINT, not SIGTERM, is what ends it in peace (PostgreSQL's fast shutdown).
    by_interrupt: bool,
}

impl Process {
    /// Adopts a child.
    pub fn new(child: Child, name: &'static str, by_interrupt: bool) -> Process {
        Process { child, name, by_interrupt }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends it in peace, else by force.
    pub fn stop(&mut self) {
        if self.ended().is_some() {
            return;
        }
        let signal =
            if self.by_interrupt { rustix::process::Signal::INT } else { rustix::process::Signal::TERM };
        if let Some(pid) = i32::try_from(self.pid()).ok().and_then(rustix::process::Pid::from_raw) {
            // It may end by itself at this moment.
            let _ = rustix::process::kill_process(pid, signal);
        }
        let deadline = Instant::now() + STOP_TIMEOUT;
        while self.ended().is_none() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A database server of the demo.
pub struct Server {
    /// What it is, with its version.
    pub title: String,
    /// As the demo's user, in the demo's database.
    pub url: Url,
    /// The same as text.
    pub url_text: String,
    /// Connections it allows to the demo's direct clients.
    pub direct_clients: u32,
    /// Its own limit.
    pub max_connections: u32,
    /// Its process.
    pub process: Process,
}

/// A port that is free now. Another process may take it before we do; then the start fails and says so.
///
/// # Errors
/// No port is free on 127.0.0.1.
pub fn free_port(wanted: Option<u16>) -> Result<u16, String> {
    let try_port = |port: u16| TcpListener::bind(("127.0.0.1", port)).and_then(|l| l.local_addr());
    let found = wanted.and_then(|port| try_port(port).ok()).map_or_else(|| try_port(0), Ok);
    found.as_ref().map(SocketAddr::port).map_err(|e| format!("no free port on 127.0.0.1: {e}"))
}

/// PostgreSQL with an empty database for the demo. It takes `max_connections`, of which 100 are kept for
/// others than direct clients; `settings` are more of its own.
///
/// # Errors
/// PostgreSQL is not installed, its data directory cannot be made, or it does not start in time.
pub fn start_postgres(home: &Home, max_connections: u32, settings: &[&str]) -> Result<Server, String> {
    let postgres = find(&["postgres"], POSTGRES_PLACES).ok_or(
        "PostgreSQL was not found (Debian: apt-get install postgresql; or put its bin directory into PATH)",
    )?;
    let initdb = sibling(&postgres, &["initdb"])?;
    let data = home.join("postgres");
    let mut command = home.command(&initdb, "initdb.log")?;
    command.arg("-D").arg(&data).args([
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
    ]);
    finish(home, command, "initdb", "initdb.log")?;
    let port = free_port(None)?;
    let mut command = home.command(&postgres, "postgres.log")?;
    command.arg("-D").arg(&data).arg("-k").arg(&home.path).args(["-p", &port.to_string()]);
    let own = ["listen_addresses=127.0.0.1", "fsync=off", "shared_buffers=64MB", "update_process_title=off"];
    for setting in own.iter().chain(settings) {
        command.args(["-c", setting]);
    }
    command.args(["-c", &format!("max_connections={max_connections}")]);
    let mut process = Process::new(spawn(command, &postgres)?, "PostgreSQL", true);
    let admin = format!("postgres://postgres@127.0.0.1:{port}/postgres");
    let mut client = await_server(home, &mut process, &admin, "postgres.log")?;
    for text in ["CREATE ROLE demo LOGIN", "CREATE DATABASE demo OWNER demo"] {
        client.run(text).map_err(|e| format!("PostgreSQL: {text}: {e}"))?;
    }
    let title = version(&postgres, "PostgreSQL");
    server(title, format!("postgres://{NAME}@127.0.0.1:{port}/{NAME}"), max_connections, process)
}

/// MariaDB, or MySQL where that is what is installed, with an empty database for the demo. It takes
/// `max_connections`, of which 100 are kept for others than direct clients; `options` go to its command line.
///
/// # Errors
/// Neither MariaDB nor MySQL is installed, the data directory cannot be made, or the server does not start
/// in time.
pub fn start_mysql(home: &Home, max_connections: u32, options: &[&str]) -> Result<Server, String> {
    let mysqld = find(&["mariadbd", "mysqld"], MYSQL_PLACES)
        .ok_or("neither MariaDB nor MySQL was found (Debian: apt-get install mariadb-server)")?;
    let title = version(&mysqld, "MySQL");
    let data = home.join("mysql");
    if title.contains("MariaDB") {
        let install = sibling(&mysqld, &["mariadb-install-db", "mysql_install_db"])?;
        let mut command = home.command(&install, "mysql-install.log")?;
        command.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
        command.arg(format!("--datadir={}", data.display()));
        finish(home, command, "mariadb-install-db", "mysql-install.log")?;
    } else {
        let mut command = home.command(&mysqld, "mysql-install.log")?;
        command.args(["--no-defaults", "--initialize-insecure"]).arg(format!("--datadir={}", data.display()));
        finish(home, command, "mysqld --initialize-insecure", "mysql-install.log")?;
    }
    let port = free_port(None)?;
    let mut command = home.command(&mysqld, "mysql.log")?;
    command.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
    command.arg(format!("--socket={}", home.join("mysql.sock").display()));
    command.arg(format!("--pid-file={}", home.join("mysql.pid").display()));
    command.arg(format!("--port={port}"));
    command.args([
        "--bind-address=127.0.0.1",
        "--skip-log-bin",
        "--skip-name-resolve",
        "--innodb-flush-log-at-trx-commit=0",
    ]);
    command.arg(format!("--max-connections={max_connections}")).args(options);
    let mut process = Process::new(spawn(command, &mysqld)?, "MySQL", false);
    let admin = format!("mysql://root@/?socket={}", home.join("mysql.sock").display());
    let mut client = await_server(home, &mut process, &admin, "mysql.log")?;
    for text in [
        "CREATE DATABASE demo",
        "CREATE USER demo@'127.0.0.1' IDENTIFIED BY ''",
        "GRANT ALL ON demo.* TO demo@'127.0.0.1'",
    ] {
        client.run(text).map_err(|e| format!("{title}: {text}: {e}"))?;
    }
    server(title, format!("mysql://{NAME}@127.0.0.1:{port}/{NAME}"), max_connections, process)
}

fn server(title: String, url_text: String, max_connections: u32, process: Process) -> Result<Server, String> {
    // Some are left for who looks in while the demo runs.
    let direct_clients = max_connections.saturating_sub(100);
    Ok(Server { title, url: Url::parse(&url_text)?, url_text, direct_clients, max_connections, process })
}

/// Asks until the server answers.
///
/// # Errors
/// The URL is wrong, the process has ended, or the server does not answer in time; the last lines of its log
/// are in the text.
pub fn await_server(home: &Home, process: &mut Process, url: &str, log: &str) -> Result<Client, String> {
    let url = Url::parse(url)?;
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        match Client::connect(&url) {
            Ok(client) => return Ok(client),
            Err(error) if process.ended().is_some() || Instant::now() > deadline => {
                let (name, lines) = (process.name, home.last_lines(log));
                return Err(format!("{name} did not start: {error}\n  {lines}"));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn finish(home: &Home, mut command: Command, name: &str, log: &str) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{name}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed:\n  {}", home.last_lines(log))) }
}

fn spawn(mut command: Command, program: &Path) -> Result<Child, String> {
    command.spawn().map_err(|e| format!("{}: {e}", program.display()))
}

/// Weir itself, before these servers.
///
/// # Errors
/// The log file cannot be made, or the program cannot be started.
pub fn start_weir(home: &Home, executable: &Path, arguments: &[String]) -> Result<Process, String> {
    let log = home.join("weir.log");
    let file = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let again = file.try_clone().map_err(|e| format!("{}: {e}", log.display()))?;
    let child = Command::new(executable)
        .arg("serve")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(again)
        .process_group(0)
        .spawn()
        .map_err(|e| format!("{}: {e}", executable.display()))?;
    Ok(Process::new(child, "Weir", false))
}

const POSTGRES_PLACES: &[&str] = &[
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/usr/bin",
];

const MYSQL_PLACES: &[&str] = &[
    "/usr/sbin",
    "/usr/libexec",
    "/usr/bin",
    "/usr/local/mysql/bin",
    "/opt/homebrew/opt/m*/bin",
    "/usr/local/opt/m*/bin",
];

/// The first of these programs in PATH or in the usual places; of several versions the highest.
pub fn find(names: &[&str], places: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    directories.extend(places.iter().flat_map(|place| expand(place)));
    names.iter().find_map(|name| directories.iter().map(|d| d.join(name)).find(|p| p.is_file()))
}

/// The directories a place with one `*` stands for, highest number first.
fn expand(place: &str) -> Vec<PathBuf> {
    let Some((before, after)) = place.split_once('*') else { return vec![PathBuf::from(place)] };
    let (parent, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort_by_key(|name| {
        let digits: String = name.chars().filter(char::is_ascii_digit).collect();
        std::cmp::Reverse(digits.parse::<u32>().unwrap_or(0))
    });
    names.iter().map(|name| PathBuf::from(format!("{parent}/{name}{after}"))).collect()
}

/// A program that belongs to another one: beside it, in ../bin, ../scripts, or in PATH.
fn sibling(program: &Path, names: &[&str]) -> Result<PathBuf, String> {
    let real = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    let near = real.parent().unwrap_or(Path::new("/")).to_owned();
    let up = near.parent().unwrap_or(Path::new("/")).to_owned();
    let places = [near, up.join("bin"), up.join("scripts")];
    let beside = places.iter().find_map(|place| names.iter().map(|n| place.join(n)).find(|p| p.is_file()));
    let missing = || format!("{} was not found beside {}", names.join(" or "), program.display());
    beside.or_else(|| find(names, &["/usr/bin", "/usr/sbin"])).ok_or_else(missing)
}

/// `PostgreSQL 15.9` or `MariaDB 10.11.6`, from `--version`.
fn version(program: &Path, name: &str) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    title_from(&text, name)
}

fn title_from(text: &str, name: &str) -> String {
    let number = text
        .split(|c: char| c.is_whitespace() || c == '-')
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        .unwrap_or_default();
    let name = if text.contains("MariaDB") { "MariaDB" } else { name };
    format!("{name} {number}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_share_no_directory_for_temporary_tables() {
        let home = Home::new("test-temporary").unwrap();
        let command = home.command(Path::new("true"), "log").unwrap();
        let given = command.get_envs().find(|(name, _)| *name == "TMPDIR").and_then(|(_, value)| value);
        let temporary = PathBuf::from(given.unwrap());
        assert!(temporary.starts_with(&home.path) && temporary.is_dir());
    }

    #[test]
    fn titles() {
        let text = "postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n";
        assert_eq!(title_from(text, "PostgreSQL"), "PostgreSQL 15.14");
        let text = "mariadbd  Ver 10.11.14-MariaDB-0+deb12u2 for debian-linux-gnu on x86_64 (Debian 12)";
        assert_eq!(title_from(text, "MySQL"), "MariaDB 10.11.14");
        assert_eq!(title_from("/usr/sbin/mysqld  Ver 9.7.0 for Linux on x86_64", "MySQL"), "MySQL 9.7.0");
        assert_eq!(title_from("", "MySQL"), "MySQL");
    }

    #[test]
    fn the_highest_version_is_found_first() {
        let home = std::env::temp_dir().join(format!("weir-find-{}", std::process::id()));
        for version in ["9.6", "15", "16"] {
            fs::create_dir_all(home.join("pg").join(version).join("bin")).unwrap();
        }
        let place = format!("{}/pg/*/bin", home.display());
        let found = expand(&place);
        // 9.6 counts as 96: versions before 10 have long gone from the usual places.
        assert!(found.contains(&home.join("pg/16/bin")));
        let newer = found.iter().position(|p| p.ends_with("16/bin"));
        assert!(newer < found.iter().position(|p| p.ends_with("15/bin")));
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn a_home_is_removed() {
        let home = Home::new("test").unwrap();
        let path = home.path.clone();
        assert!(path.is_dir());
        drop(home);
        assert!(!path.exists());
    }
}
