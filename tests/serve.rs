//! The built binary at work: arguments, signals, files, life in the background. No database is needed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(60);

fn weir(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A folder of this test's own, empty.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("serve-{name}"));
    if path.exists() {
        std::fs::remove_dir_all(&path).unwrap();
    }
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Waits for something that must come; panics when it does not.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::yield_now();
    }
}

#[test]
fn help() {
    let help = text(&weir(&["serve", "--help"]).stdout);
    for flag in
        ["--config", "--listen", "--pool-size", "--pool-mode", "--workers", "--max-client-conn", "--set"]
    {
        assert!(help.contains(flag), "{flag} is not in\n{help}");
    }
}

#[test]
fn wrong_arguments_are_2() {
    for (arguments, wanted) in [
        (&["serve"][..], "<URL>"),
        (&["sreve"][..], "serve"),
        (
            &["serve", "http://u:hunter2@h/d"][..],
            "URL 1: the URL must begin with postgres:// or mysql://, not http://",
        ),
        (
            &["serve", "postgres://u:hunter2@h/d", "--pool-size", "0"][..],
            "--pool-size: pool.default_pool_size must be",
        ),
        (
            &["serve", "postgres://u:hunter2@h/d", "--set", "workers"][..],
            "--set workers: must be section.key=value",
        ),
        (&["serve", "postgres://u:hunter2@h/d", "--set", "wrokers=1"][..], "did you mean `workers`?"),
        (&["serve", "postgres://u:hunter2@h/d", "--set", "log.level=[["][..], "log level"),
        (&["check-config", "/no/such.toml"][..], "cannot read /no/such.toml"),
        (&["serve", "--config", "/no/such.ini"][..], "cannot read /no/such.ini"),
    ] {
        let output = weir(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(wanted), "{arguments:?}: {said}");
        assert!(!said.contains("hunter2"), "{arguments:?} tells a password: {said}");
        assert!(output.stdout.is_empty());
    }
}

/// A running Weir with ports of the system's choice, ended when dropped.
struct Running {
    child: Child,
    lines: BufReader<std::process::ChildStderr>,
    http: SocketAddr,
}

impl Running {
    fn start(mut command: Command) -> Running {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        // The last line of the start.
        let http = loop {
            let mut line = String::new();
            let more = lines.read_line(&mut line).unwrap();
            assert!(more > 0, "it ended at its start:\n{said}");
            said.push_str(&line);
            if let Some((_, rest)) = line.split_once("listens on http://") {
                break rest.split_once(": ").unwrap().0.parse().unwrap();
            }
        };
        Running { child, lines, http }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.http).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    fn end(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Usually over already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// `weir serve` with a database that need not be there.
fn serve(folder: &Path, more: &[&str]) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let listen = format!("--listen={}", folder.display());
    command.args([
        "serve",
        "postgres://app:secret@127.0.0.1:1/app",
        "--workers=1",
        "--set=http.listen=127.0.0.1:0",
    ]);
    command.arg(listen).args(more);
    Running::start(command)
}

#[test]
fn serves_until_a_signal() {
    let folder = folder("serve");
    let pidfile = folder.join("weir.pid");
    let weir = serve(&folder, &[&format!("--set=pidfile={}", pidfile.display())]);
    assert!(weir.get("/healthz").starts_with("HTTP/1.1 200"));
    assert!(weir.get("/readyz").ends_with("ready\n"));
    let metrics = weir.get("/metrics");
    assert!(metrics.contains("content-type: application/openmetrics-text"), "{metrics}");
    assert!(metrics.contains("weir_client_connections{protocol=\"postgres\"} 0"), "{metrics}");
    assert!(folder.join(".s.PGSQL.6432").exists());
    assert_eq!(std::fs::read_to_string(&pidfile).unwrap(), format!("{}\n", weir.child.id()));

    weir.signal("TERM");
    let (code, said) = weir.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("stopping when transactions have ended") && said.contains("INFO stopped"),
        "{said}"
    );
    assert!(!pidfile.exists());
    assert!(!folder.join(".s.PGSQL.6432").exists());
}

#[test]
fn the_start_says_what_is_served() {
    let folder = folder("start");
    let log = folder.join("weir.log");
    let weir = serve(&folder, &[&format!("--set=log.logfile={}", log.display()), "--pool-size=7"]);
    eventually("the line about the database", || {
        let said = std::fs::read_to_string(&log).unwrap();
        said.contains("postgres database app cannot be reached at 127.0.0.1:1: ").then_some(())
    });
    weir.signal("TERM");
    assert_eq!(weir.end().0, Some(0));
    let said = std::fs::read_to_string(&log).unwrap();
    let wanted = "postgres database app at 127.0.0.1:1: transaction mode, up to 7 connections for each user, TLS allow";
    assert!(
        said.contains(wanted)
            && said.contains("clients: as many as the machine allows; 1 postgres user; TLS prefer"),
        "{said}"
    );
    assert!(!said.contains("secret"), "{said}");
}

#[test]
fn the_service_manager_is_told() {
    let folder = folder("notify");
    let path = folder.join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let told = || {
        let mut buffer = [0; 64];
        let n = socket.recv(&mut buffer).unwrap();
        text(&buffer[..n])
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let listen = format!("--listen={}", folder.display());
    command.args(["serve", "postgres://a:b@127.0.0.1:1/app", "--workers=1", "--set=http.listen=127.0.0.1:0"]);
    let weir = Running::start({
        command.arg(listen).env("NOTIFY_SOCKET", &path);
        command
    });
    assert_eq!(told(), "READY=1");
    weir.signal("HUP");
    let reloading = told();
    let at = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("a reload begins");
    assert!(at.parse::<u64>().expect("a time") > 0, "{reloading}");
    assert_eq!(told(), "READY=1");
    weir.signal("INT");
    assert_eq!(told(), "STOPPING=1");
    assert_eq!(weir.end().0, Some(0));
}

#[test]
fn quit_stops_at_once() {
    let weir = serve(&folder("quit"), &[]);
    weir.signal("QUIT");
    let (code, said) = weir.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("stopping at once"), "{said}");
}

#[test]
fn hangup_opens_the_log_again_and_names_changes() {
    let folder = folder("hangup");
    let (config, log) = (folder.join("weir.toml"), folder.join("weir.log"));
    let write = |more: &str| {
        let text = format!(
            "workers = 1\n[databases.app]\nurl = \"postgres://a:b@127.0.0.1:1/app\"\n[postgres]\nlisten = [\"{}\"]\n\
             [http]\nlisten = [\"127.0.0.1:0\"]\n[log]\nlogfile = \"weir.log\"\n{more}",
            folder.display()
        );
        std::fs::write(&config, text).unwrap();
    };
    write("");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["serve", "--config"]).arg(&config);
    let weir = Running::start(command);
    let old = folder.join("weir.log.1");
    std::fs::rename(&log, &old).unwrap();
    write("[pool]\ndefault_pool_size = 5\n");
    weir.signal("HUP");
    let line = eventually("the line about the change", || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.lines().find(|line| line.contains("the configuration was reloaded")).map(str::to_owned)
    });
    assert!(line.ends_with("reloaded: pool.default_pool_size 20 -> 5"), "{line}");
    assert!(std::fs::read_to_string(&old).unwrap().contains("starts, process"));
    weir.signal("TERM");
    assert_eq!(weir.end().0, Some(0));
}

#[test]
fn an_address_that_is_taken_is_1() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let folder = folder("taken");
    let listen = format!("--listen={}", folder.display());
    let http = format!("--set=http.listen={address}");
    let output = weir(&["serve", "postgres://a:b@127.0.0.1:1/app", "--workers=1", &listen, &http]);
    assert_eq!(output.status.code(), Some(1));
    let wanted = format!("weir: cannot listen on {address} for HTTP: ");
    assert!(text(&output.stderr).contains(&wanted), "{}", text(&output.stderr));
}

#[test]
fn http_on_all_addresses() {
    let free = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let weir = serve(&folder("all"), &[&format!("--set=http.listen=*:{port}")]);
    assert_eq!(weir.http, SocketAddr::from(([0, 0, 0, 0], port)));
    assert!(weir.get("/healthz").starts_with("HTTP/1.1 200"));
    weir.signal("TERM");
    let (code, said) = weir.end();
    assert_eq!(code, Some(0), "{said}");
    // Where the system has no IPv6, nothing listens there, and that is no error.
    let has_v6 = std::net::TcpListener::bind("[::1]:0").is_ok();
    assert_eq!(said.contains(&format!("listens on http://[::]:{port}")), has_v6, "{said}");
}

/// The binary under the name `pgbouncer`.
fn pgbouncer(folder: &Path) -> Command {
    let link = folder.join("pgbouncer");
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_weir"), &link).unwrap();
    }
    let mut command = Command::new(link);
    command.stdin(Stdio::null());
    command
}

/// A file as PgBouncer's users have it.
fn pgbouncer_ini(folder: &Path) -> PathBuf {
    let file = folder.join("pgbouncer.ini");
    std::fs::write(folder.join("users.txt"), "\"app\" \"secret\"\n").unwrap();
    let text = format!(
        "[databases]\napp = host=127.0.0.1 port=1\n[pgbouncer]\nunix_socket_dir = {0}\nauth_file = {0}/users.txt\n\
         logfile = {0}/p.log\npidfile = {0}/p.pid\nserver_round_robin = 1\nworkers = 1\nhttp.listen = 127.0.0.1:0\n",
        folder.display()
    );
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn in_the_place_of_pgbouncer() {
    let folder = folder("dropin");
    let file = pgbouncer_ini(&folder);
    let output = pgbouncer(&folder).arg("-V").output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout).contains("Weir")), (Some(0), true));
    for (arguments, wanted) in [
        (&["-R"][..], "-R is not supported yet"),
        (&["-u", "no-such-user-here"][..], "there is no such user"),
    ] {
        let output = pgbouncer(&folder).args(arguments).arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(wanted), "{}", text(&output.stderr));
    }
    let mut command = pgbouncer(&folder);
    command.arg("-v").arg(&file);
    let weir = Running::start(command);
    weir.signal("TERM");
    assert_eq!(weir.end().0, Some(0));
    let log = std::fs::read_to_string(folder.join("p.log")).unwrap();
    assert!(log.contains("WARN") && log.contains("server_round_robin is not supported yet"), "{log}");
    // Quiet: the same lines in the file, none on standard error.
    let mut command = pgbouncer(&folder);
    let child = command.arg("-q").arg(&file).stderr(Stdio::piped()).spawn().unwrap();
    let pidfile = folder.join("p.pid");
    eventually("the pidfile", || std::fs::read_to_string(&pidfile).ok().filter(|text| !text.is_empty()));
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn in_the_background() {
    let folder = folder("background");
    let file = pgbouncer_ini(&folder);
    // Returns when the process in the background runs, and leaves none of its streams open.
    let output = pgbouncer(&folder).arg("-d").arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("warning: "), "{}", text(&output.stderr));
    let pid = std::fs::read_to_string(folder.join("p.pid")).unwrap();
    let pid = pid.trim();
    assert!(folder.join(".s.PGSQL.6432").exists());
    // A second one finds the first.
    let output = pgbouncer(&folder).arg("-d").arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    eventually("the end", || (!folder.join("p.pid").exists()).then_some(()));
    let log = std::fs::read_to_string(folder.join("p.log")).unwrap();
    assert!(log.contains("INFO listens on"), "{log}");
    // Without a logfile there would be no word from it.
    let without = std::fs::read_to_string(&file).unwrap().replace("logfile", ";");
    std::fs::write(&file, without).unwrap();
    let output = pgbouncer(&folder).arg("-d").arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("-d needs logfile and pidfile"), "{}", text(&output.stderr));
}
