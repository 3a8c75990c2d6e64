//! A weir.toml made of a pgbouncer.ini comes to the same settings; one made of a proxysql.cnf says what it
//! has and what it lacks.

use proptest::prelude::*;
use std::path::{Path, PathBuf};
use weir_config::convert::{Converted, Format, NoteKind, convert, convert_text};
use weir_config::registry::{Files, Kind};
use weir_config::{Flavour, Key, SETTINGS, Snapshot, Sources, Value, Values, load_text};

/// A directory for the files of one test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("weir-convert-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn converted(text: &str) -> Result<Converted, String> {
    convert_text(Path::new("p.ini"), text, None).map_err(|problems| problems.to_string())
}

fn served(text: &str) -> Result<Snapshot, String> {
    load_text(Path::new("p.ini"), text, &Sources::default())
        .map(|loaded| loaded.snapshot)
        .map_err(|problems| problems.to_string())
}

/// Everything that Weir goes by. What it is made of (`values`) is compared beside it.
fn same(ini: &Snapshot, toml: &Snapshot, text: &str) {
    let mut ini = ini.clone();
    // One use: a weir.toml has another word for it.
    if ini.timeouts.server_lifetime_ms == Some(0) {
        ini.timeouts.server_lifetime_ms = Some(1);
    }
    assert_eq!(ini.workers, toml.workers);
    let mut once = Vec::new();
    ini.listeners.iter().for_each(|one| {
        if !once.contains(one) {
            once.push(one.clone())
        }
    });
    assert_eq!(once, toml.listeners, "{text}");
    assert_eq!((&ini.http, ini.http_required), (&toml.http, toml.http_required));
    assert_eq!(ini.http_token.is_some(), toml.http_token.is_some());
    assert_eq!(ini.limits, toml.limits);
    assert_eq!(ini.timeouts, toml.timeouts);
    assert_eq!(ini.pins, toml.pins);
    assert_eq!(ini.tcp, toml.tcp);
    assert_eq!(ini.log, toml.log);
    assert_eq!(ini.pidfile, toml.pidfile);
    // A certificate that Weir makes may also be kept beside a weir.toml; beside a pgbouncer.ini it is not.
    let mut client_tls = toml.client_tls.clone();
    client_tls.state_files.clone_from(&ini.client_tls.state_files);
    assert_eq!(ini.client_tls, client_tls);
    for (ini, toml) in [(&ini.postgres, &toml.postgres), (&ini.mysql, &toml.mysql)] {
        assert_eq!(ini.databases, toml.databases, "{text}");
        assert_eq!(ini.fallback, toml.fallback, "{text}");
        assert_eq!(ini.users, toml.users, "{text}");
        assert_eq!((ini.users_by_hash, ini.verifiers.len()), (toml.users_by_hash, toml.verifiers.len()));
        assert_eq!((ini.auth, &ini.server_version), (toml.auth, &toml.server_version));
        assert_eq!((&ini.hba, &ini.accounts), (&toml.hba, &toml.accounts));
        assert_eq!((&ini.balancers, ini.ident.is_some()), (&toml.balancers, toml.ident.is_some()));
    }
    for row in SETTINGS.iter().filter(|row| row.files == Files::All) {
        let (mine, theirs) = (ini.values.value(row.key), toml.values.value(row.key));
        let differs = match row.key {
            Key::PostgresListen | Key::MysqlListen => continue,
            Key::ServerLifetime => *mine == Value::Millis(0),
            Key::PostgresAuthFile => *theirs == Value::Text("/dev/null".into()),
            _ => false,
        };
        assert!(differs || mine == theirs, "{}: {mine:?} {theirs:?}\n{text}", row.full_name());
    }
}

/// The ini and its weir.toml come to the same, or neither is served.
fn compare(text: &str) -> Option<Converted> {
    match (served(text), converted(text)) {
        (Ok(ini), Ok(converted)) => {
            same(&ini, &converted.loaded.snapshot, &format!("{text}\n---\n{}", converted.toml));
            Some(converted)
        }
        (Err(ini), Err(converted)) => {
            assert_eq!(ini, converted, "{text}");
            None
        }
        (ini, converted) => {
            panic!("{:?} {:?}\n{text}", ini.map(|_| ()), converted.map(|converted| converted.toml))
        }
    }
}

fn notes(converted: &Converted) -> String {
    converted.notes.iter().map(|note| format!("{note}\n")).collect()
}

/// A value of a setting that is not its default and is accepted without a file.
fn another(kind: Kind, default: &str) -> Vec<String> {
    match kind {
        Kind::Bool => vec!["0".into(), "1".into(), "on".into()],
        Kind::Count { min, max, .. } => vec![min.max(1).to_string(), max.to_string()],
        Kind::Size { max, .. } => vec!["7".into(), "auto".into(), max.to_string()],
        Kind::Seconds { .. } => vec!["0".into(), "1.25".into(), "3600".into(), "0.001".into()],
        Kind::Mode => vec!["0700".into(), "0666".into()],
        Kind::Word(words) | Kind::Policy { words, .. } => words.iter().map(|word| (*word).into()).collect(),
        Kind::List => vec!["127.0.0.1".into(), "127.0.0.1, 10.0.0.1".into()],
        Kind::Text | Kind::Secret => vec![default.to_owned(), "a \"b\\ ${HOME} $${HOME}".into()],
        Kind::Path => vec![String::new(), "/x/a \"b\\ ${HOME} $${HOME}".into()],
    }
}

#[test]
fn every_setting_alone() {
    let folder = folder("every");
    let list = folder.join("users.txt");
    std::fs::write(&list, "\"u\" \"one\"\n\"v\" \"SCRAM-SHA-256$4096:AAAA$AAAA:AAAA\"\n").unwrap();
    let head = format!(
        "[databases]\na = host=127.0.0.1 user=u\n[pgbouncer]\nauth_file = {}\nlisten_addr = 127.0.0.1\n",
        list.display()
    );
    let weir = Values::new(Flavour::Weir);
    let mut carried = 0;
    for row in SETTINGS {
        let name = row.name_in(Flavour::Pgbouncer);
        for value in another(row.kind, &weir.show(row.key)) {
            carried += usize::from(compare(&format!("{head}{name} = {value}\n")).is_some());
        }
    }
    assert!(carried > 200, "{carried}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_example_of_the_repository() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("examples/pgbouncer.ini")).unwrap();
    let list = root.join("examples/userlist.txt");
    let text = text.replace("examples/userlist.txt", &list.display().to_string());
    let converted = compare(&text).unwrap();
    for wanted in ["[databases.\"*\"]", "[databases.with-dash]", "password = \"it's a secret\""] {
        assert!(converted.toml.contains(wanted), "{wanted}\n{}", converted.toml);
    }
    let notes = notes(&converted);
    for wanted in [
        "p.ini:6:61: note: the password of database reports is in the weir.toml in clear text",
        "not needed: ignore_startup_parameters: ",
        "differs: pool_mode: ",
    ] {
        assert!(notes.contains(wanted), "{wanted}\n{notes}");
    }
    assert!(!notes.contains("it's a secret") && !notes.contains("it''s"), "{notes}");
}

#[test]
fn what_only_some_files_have() {
    let list = folder("some").join("users.txt");
    std::fs::write(&list, "\"u\" \"one\"\n\"w\" \"${HOME}\"\n").unwrap();
    let file = format!("auth_file = {}\nunix_socket_dir =\nlisten_addr = 127.0.0.1\n", list.display());
    for text in [
        "[databases]\na = host=127.0.0.1 user=u\n[pgbouncer]\nauth_type = any\nlisten_addr = *\n".to_owned(),
        // Only the database knows the users, and one of them is who Weir logs in as.
        "[databases]\na = host=h user=u password=x auth_user=u\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
            .to_owned(),
        format!(
            "[databases]\na = host=h auth_user=q\nb = auth_dbname=a auth_query='select $1'\n[users]\nz = pool_size=3\n[pgbouncer]\n{file}unix_socket_dir = /tmp\nauth_user = u\n"
        ),
        format!(
            "[databases]\n\"\" = host=::1 port=1\n\"a b\" = host=h dbname='x/y ?&=%' user='a''b' password='${{HOME}}'\n* = host=/run/x port=5433\n[users]\nu = pool_mode=session max_user_connections=2\nnobody =\n[pgbouncer]\n{file}verbose = 2\n"
        ),
        format!(
            "[databases]\na = host=h\na = host=i\n[pgbouncer]\n{file}listen_addr = 127.0.0.1,127.0.0.1,::1\nserver_lifetime = 0\nlog_stats = 0\ndisable_pqexec = 0\npeer_id = 3\n[peers]\n1 = host=h\n"
        ),
        format!(
            "[databases]\na = host=h\n[pgbouncer]\n{file}http.listen =\nhttp.token = 0123456789abcdef\nworkers = 3\npins.listen = error\n"
        ),
        format!(
            "[databases]\na = host=/run/x dbname=y\n[pgbouncer]\n{file}postgres.listen = 127.0.0.1:7000, /tmp:7001\n"
        ),
        "[databases]\na = host=h\n[users]\nann = pool_size=2\n[pgbouncer]\nauth_type = ldap\nauth_ldap_options = ldapserver=a ldapbasedn=\"dc=x, dc=y\" ldapbinddn=cn=f ldapbindpasswd=\"a \"\"b\"\" ${HOME}\"\n"
            .to_owned(),
        "[databases]\na = host=h user=u password=p\n[pgbouncer]\nauth_type = pam\n".to_owned(),
        // What is not served is not converted.
        format!("[databases]\na = host=h,i\n[pgbouncer]\n{file}"),
        format!("[databases]\na = host=h\n[pgbouncer]\n{file}auth_type = pam\npool_moode = x\n"),
        format!("[databases]\na = host=h\n[pgbouncer]\n{file}disable_pqexec = 1\n"),
        "[databases]\na = host=h\n[pgbouncer]\nauth_file = /nowhere\n".to_owned(),
        "[databases]\na = host=h nothing\n[pgbouncer\n".to_owned(),
    ] {
        compare(&text);
    }
    let ldap = "[databases]\na = host=h\n[pgbouncer]\nauth_type = ldap\nauth_ldap_options = ldapserver=a ldapbasedn=dc=x ldapbinddn=cn=f ldapbindpasswd=hunter2\n";
    let said = notes(&compare(ldap).unwrap());
    assert!(said.contains("p.ini:5:1: note: ldapbindpasswd is in the weir.toml in clear text"), "{said}");
    let said = notes(&compare(&format!("[databases]\na = host=h connect_query='select 1'\n* = host=h\n[users]\nnobody =\n[pgbouncer]\n{file}server_lifetime = 0\nserver_round_robin = 1\npkt_buf = 1\n")).unwrap());
    for wanted in [
        "p.ini:2:12: left out: connect_query is not supported yet",
        "p.ini:3:1: differs: database pgbouncer: ",
        "p.ini:5:1: note: user nobody is not in auth_file and cannot log in",
        "p.ini:10:1: note: server_lifetime = 0: ",
        "p.ini:11:1: left out: server_round_robin is not supported yet: ",
        "p.ini:12:1: not needed: pkt_buf: Weir sizes its buffers automatically\n",
    ] {
        assert!(said.contains(wanted), "{wanted}\n{said}");
    }
}

/// PgBouncer's relative paths begin where it was started, and those of a weir.toml where it lies.
#[test]
fn relative_paths_and_included_files() {
    let folder = folder("paths");
    let include = folder.join("more.ini");
    std::fs::write(&include, "[databases]\nb = host=h password=hunter2 user=u server_lifetime=1\n").unwrap();
    let ini = folder.join("p.ini");
    let text = "[pgbouncer]\nauth_file = tests/one.password\nlogfile = x.log\nauth_user = u\nunix_socket_dir = run\n\
                %include more.ini\n[databases]\na =\n";
    std::fs::write(&ini, text).unwrap();
    let found = convert(&ini, None).unwrap();
    let here = std::env::current_dir().unwrap();
    for wanted in [
        format!("logfile = \"{}/x.log\"", here.display()),
        format!("listen = [\"{}/run:6432\"]", here.display()),
        format!("url = \"postgres:///?host={}/run\"", here.display()),
    ] {
        assert!(found.toml.contains(&wanted), "{wanted}\n{}", found.toml);
    }
    let said = notes(&found);
    for wanted in ["p.ini:3:1: note: x.log is written as /", "more.ini:2:36: left out: server_lifetime"] {
        assert!(said.contains(wanted), "{wanted}\n{said}");
    }
    assert!(!said.contains("hunter2"), "{said}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Words of a connection string, right and wrong.
fn word() -> impl Strategy<Value = String> {
    let value = "[a-z0-9 \"'${}\\\\%/?@:=&#\u{e4}.-]{0,10}";
    let quoted = |text: String| format!("'{}'", text.replace('\'', "''"));
    prop_oneof![
        (prop::sample::select(vec!["dbname", "user", "password", "auth_user", "auth_query"]), value)
            .prop_map(move |(key, text)| format!("{key}={}", quoted(text))),
        prop::sample::select(vec![
            "host=h",
            "host=::1",
            "host=/run/a:b",
            "host=a,b",
            "host=@x",
            "port=5433",
            "pool_size=3",
            "pool_size=auto",
            "pool_mode=session",
            "min_pool_size=0",
            "max_db_connections=9",
            "auth_dbname=a",
            "connect_query=x",
            "timezone=''",
            "load_balance_hosts=disable"
        ])
        .prop_map(str::to_owned),
    ]
}

/// Lines of `[pgbouncer]`.
fn line() -> impl Strategy<Value = String> {
    let settings: Vec<(String, Vec<String>)> = SETTINGS
        .iter()
        // Addresses and accounts of other machines, and files that are not there.
        .filter(|row| !matches!(row.kind, Kind::Path) && row.key != Key::UnixSocketGroup)
        .map(|row| (row.name_in(Flavour::Pgbouncer), another(row.kind, row.default)))
        .collect();
    prop_oneof![
        (prop::sample::select(settings), any::<prop::sample::Index>())
            .prop_map(|((name, values), at)| format!("{name} = {}", at.get(&values))),
        prop::sample::select(vec![
            "unix_socket_dir =",
            "unix_socket_dir = /tmp/x",
            "listen_addr = *",
            "listen_addr = ::1",
            "verbose = 1",
            "server_lifetime = 0",
            "auth_user = u",
            "pkt_buf = 1",
            "reserve_pool_size = 3",
            "log_stats = 0",
            "disable_pqexec = 0",
            "auth_type = any",
            "auth_type = plain",
            "pidfile = /run/p",
            "logfile = /l\"og",
        ])
        .prop_map(str::to_owned),
    ]
}

/// Whole files, most of which are right.
fn ini() -> impl Strategy<Value = (String, bool)> {
    let name = prop_oneof![
        prop::sample::select(vec!["a", "b", "*", "\"a\"\"b c\"", "\"\"", "weir", "u"])
            .prop_map(str::to_owned),
        "[a-z_]{1,6}",
    ];
    let entry = (name, prop::collection::vec(word(), 0..5))
        .prop_map(|(name, words)| format!("{name} = {}", words.join(" ")));
    let user = prop::sample::select(vec!["u = pool_size=4", "u =", "nobody = pool_mode=session", "x ="]);
    let parts = (
        prop::collection::vec(entry, 1..4),
        prop::collection::vec(user, 0..3),
        prop::collection::vec(line(), 0..8),
        any::<bool>(),
    );
    parts.prop_map(|(databases, users, lines, listed)| {
        let text = format!(
            "[databases]\n{}\n[users]\n{}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n{}\n",
            databases.join("\n"),
            users.join("\n"),
            lines.join("\n")
        );
        (text, listed)
    })
}

#[test]
fn any_ini_and_its_weir_toml_come_to_the_same() {
    let folder = folder("any");
    let list = folder.join("users.txt");
    std::fs::write(&list, "\"u\" \"one\"\n\"b\" \"\"\n\"$${A}\" \"md500000000000000000000000000000000\"\n")
        .unwrap();
    let carried = std::cell::Cell::new(0);
    let config = ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner
        .run(&ini(), |(text, listed)| {
            let file = if listed { format!("auth_file = {}\n", list.display()) } else { String::new() };
            let found = compare(&format!("{text}{file}"));
            carried.set(carried.get() + usize::from(found.is_some()));
            Ok(())
        })
        .unwrap();
    let carried = carried.get();
    assert!(carried > 400, "only {carried} of 2000 files were right");
    std::fs::remove_dir_all(&folder).unwrap();
}

fn proxysql(text: &str) -> Result<Converted, String> {
    convert_text(Path::new("p.cnf"), text, None).map_err(|problems| problems.to_string())
}

const CNF: &str = r#"datadir="/var/lib/proxysql"
errorlog="/var/lib/proxysql/proxysql.log"
admin_variables = { admin_credentials="admin:hunter2;radmin:hunter3"; mysql_ifaces="0.0.0.0:6032" }
mysql_variables =
{
    threads=4
    max_connections=2048
    default_query_timeout=36000000
    interfaces="0.0.0.0:6033;/tmp/proxysql.sock"
    connect_timeout_server=3000
    connect_timeout_server_max=10000
    monitor_password="hunter4"
    have_ssl=true
    multiplexing=true
    query_cache_size_MB=256
    connection_max_age_ms=0
    colour="blue"
}
mysql_servers =
(
    { address="10.0.0.1" , port=3306 , hostgroup=10 , max_connections=200, use_ssl=1 },
    { address="10.0.0.2" , port=3307 , hostgroup=20 , weight=1 },
    { address="10.0.0.3" , port=3307 , hostgroup=20 , weight=9, max_replication_lag=5, compression=0 },
    { address="10.0.0.4" , port=3307 , hostgroup=20 , status="OFFLINE_HARD" },
    { hostname="/run/mysqld.sock" , port=0 , hostgroup_id=30 },
)
mysql_replication_hostgroups = ( { writer_hostgroup=10, reader_hostgroup=20 } )
mysql_users:
(
    { username = "app" , password = "hunter5" , default_hostgroup = 10 , default_schema = "shop" },
    { username = "old" , password = "*6BB4837EB74329105EE4568DDA7DC67ED2CA2AD9" , default_hostgroup = 10, fast_forward=1 },
    { username = "report" , password = "hunter6" , default_hostgroup = 20, max_connections=5 },
    { username = "sha" , password = "$A$005$abcdef" , default_hostgroup = 10 },
    { username = "off" , password = "x" , active = 0 },
)
mysql_query_rules:
(
    { rule_id=1, active=1, match_pattern="^SELECT .* FOR UPDATE$", destination_hostgroup=10, apply=1 },
    { rule_id=2, active=1, match_digest="^SELECT", destination_hostgroup=20, apply=1 },
    { rule_id=3, active=1, schemaname="archive", destination_hostgroup=30, apply=1 },
    { rule_id=4, active=1, match_digest="DROP", error_msg="no", apply=1 },
    { rule_id=5, active=0, match_digest="x", cache_ttl=5 },
)
scheduler = ( { id=1 } )
pgsql_servers = ( { hostname="pg1", port=5432, hostgroup=0 } )
pgsql_users = ( { username="app", password="hunter5" }, { username="pg", password="hunter7" } )
"#;

#[test]
fn a_proxysql_cnf() {
    let found = proxysql(CNF).unwrap();
    let toml = &found.toml;
    for wanted in [
        "workers = 4\n",
        "[mysql]\nlisten = [\"0.0.0.0:6033\", \"/tmp/proxysql.sock\"]\n",
        "[postgres]\nlisten = [\"0.0.0.0:6133\"]   # ProxySQL's default; ",
        "query_timeout = 36000\n",
        "server_lifetime = 0\n",
        "[databases.\"*\"]\nurl = \"mysql://10.0.0.1:3306?sslmode=require\"\nmax_db_connections = 200\n",
        "# mysql hostgroup 20, whose servers ProxySQL reads from\n[databases.reader_20]\nurl = \"mysql://10.0.0.3:3307/shop\"\n",
        "[databases.reader_20_2]\nurl = \"mysql://10.0.0.2:3307/shop\"\n",
        "[databases.hostgroup_30]\nurl = \"mysql:///shop?socket=/run/mysqld.sock\"\n",
        "[databases.archive]\nurl = \"mysql:///archive?socket=/run/mysqld.sock\"\n",
        "[databases.pgsql_any]\nname = \"*\"\nurl = \"postgres://pg1:5432\"\n",
        "[users.old]\npassword = \"*6BB4837EB74329105EE4568DDA7DC67ED2CA2AD9\"\npool_mode = \"session\"\n",
    ] {
        assert!(toml.contains(wanted), "{wanted}\n{toml}");
    }
    let notes = notes(&found);
    for wanted in [
        "p.cnf:3:21: left out: admin_credentials: ",
        "p.cnf:11:5: differs: connect_timeout_server_max: pool.query_wait_timeout is ",
        "p.cnf:12:5: not needed: monitor_password: ",
        "p.cnf:15:5: left out: query_cache_size_MB: Weir has no cache of results\n",
        "p.cnf:17:5: left out: colour: Weir has nothing of this name\n",
        "p.cnf:22:5: differs: server 10.0.0.2 is the database reader_20_2: ",
        "p.cnf:23:5: differs: hostgroup 20 is the database reader_20: Weir has no read/write split",
        "p.cnf:23:65: left out: max_replication_lag: ",
        "p.cnf:24:5: left out: server 10.0.0.4: its status is OFFLINE_HARD\n",
        "p.cnf:27:34: left out: mysql_replication_hostgroups: Weir does not watch read_only",
        "p.cnf:30:5: note: the weir.toml has the passwords of app, report in clear text",
        "p.cnf:31:5: differs: user old: its password is known by a hash of mysql_native_password",
        "p.cnf:32:5: differs: user report: the database that a client names decides",
        "p.cnf:33:5: left out: user sha: ",
        "p.cnf:34:5: left out: user off is not active\n",
        "p.cnf:39:5: left out: query rule 2: Weir has no read/write split",
        "an application that reads from hostgroup 20 names the database reader_20\n",
        "p.cnf:40:5: differs: query rule 3: clients that log in to schema archive",
        "p.cnf:41:5: left out: query rule 4: it refuses statements, and Weir has no firewall",
        "p.cnf:42:5: not needed: query rule 5 is not active\n",
        "p.cnf:44:1: left out: scheduler: ",
    ] {
        assert!(notes.contains(wanted), "{wanted}\n{notes}");
    }
    assert!(!notes.contains("hunter"), "{notes}");
    let snapshot = &found.loaded.snapshot;
    assert_eq!(snapshot.limits.max_client_conn, Some(2048));
    assert_eq!(snapshot.timeouts.query_wait_timeout_ms, 10_000);
    assert_eq!((snapshot.mysql.databases.len(), snapshot.postgres.databases.len()), (4, 0));
    assert_eq!(snapshot.mysql.users.len(), 4);
}

#[test]
fn a_proxysql_cnf_without_a_use_and_files_of_nobody() {
    let said = proxysql("mysql_variables = { threads = 2 }").unwrap_err();
    assert!(said.contains("no server that is online"), "{said}");
    assert_eq!(
        proxysql("mysql_servers = ( { address=\"h\" )").unwrap_err(),
        "p.cnf:1:33: expected the name of a setting or }, found `)`"
    );
    // Nobody could log in.
    assert!(proxysql("mysql_servers = ( { address=\"h\" } )").unwrap_err().contains("nobody can log in"));
    let text = "mysql_servers = ( { address=\"h\" } )\nmysql_users = ( { username=\"u\", password=\"p\" } )";
    for variable in ["threads = 99999", "default_authentication_plugin = \"x\"", "interfaces = \"\""] {
        let text = format!("{text}\nmysql_variables = {{ {variable} }}");
        let found = proxysql(&text);
        assert!(found.is_ok() || variable.starts_with("interfaces"), "{variable}: {found:?}");
    }
    for (name, text) in [("x.toml", "[pgbouncer]"), ("x.conf", "listen = 1")] {
        let said = convert_text(Path::new(name), text, None).unwrap_err().to_string();
        assert!(said.contains("--from pgbouncer or --from proxysql"), "{said}");
    }
    let found = convert_text(Path::new("proxysql.conf"), text, None).unwrap();
    assert!(found.notes.iter().all(|note| note.kind != NoteKind::LeftOut), "{:?}", found.notes);
    assert!(convert_text(Path::new("x"), text, Some(Format::Pgbouncer)).is_err());
}

/// The text between two marks, and where it stands.
fn between<'t>(page: &'t str, begin: &str, end: &str) -> &'t str {
    let from = page.find(begin).unwrap_or_else(|| panic!("{begin}")) + begin.len();
    &page[from..from + page[from..].find(end).unwrap()]
}

/// What the manual shows is what the command prints. `WEIR_UPDATE=1` writes it there.
#[test]
fn examples_of_the_manual_are_real() {
    let folder = folder("manual");
    let list = folder.join("userlist.txt");
    std::fs::write(&list, "\"app\" \"secret\"\n").unwrap();
    let named = "/etc/pgbouncer/userlist.txt";
    for (page, language, file) in
        [("pgbouncer.md", "ini", "pgbouncer.ini"), ("proxysql.md", "cnf", "proxysql.cnf")]
    {
        let path = format!("{}/../../docs/src/{page}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap();
        let source = between(&text, &format!("```{language}\n"), "```");
        let source = source.replace(named, &list.display().to_string());
        let found = convert_text(Path::new(file), &source, None).unwrap();
        let command = format!("weir config convert {file} -o weir.toml\n");
        let said = format!("{}{file}: {}\n", notes(&found), found.summary());
        let toml = found.toml.replace(&list.display().to_string(), named);
        let (shown, shown_toml) = (between(&text, &command, "```"), between(&text, "```toml\n", "```"));
        if std::env::var_os("WEIR_UPDATE").is_some() {
            let updated = text.replacen(shown, &said, 1).replacen(shown_toml, &toml, 1);
            std::fs::write(&path, updated).unwrap();
        } else {
            assert_eq!((shown, shown_toml), (said.as_str(), toml.as_str()), "{page} is stale");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A piece of the file cut out and another put in.
fn damaged() -> impl Strategy<Value = String> {
    (0..CNF.len(), 0..40usize, "[\\PC\n\"(){}=;,@#]{0,12}").prop_map(|(at, length, insert)| {
        format!("{}{insert}{}", &CNF[..at], &CNF[(at + length).min(CNF.len())..])
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_proxysql_cnf(text in damaged()) {
        // A damaged host could be asked of a name server; none is, before Weir listens.
        match proxysql(&text) {
            Ok(found) => prop_assert!(!found.toml.is_empty()),
            Err(said) => prop_assert!(!said.is_empty()),
        }
    }
}
