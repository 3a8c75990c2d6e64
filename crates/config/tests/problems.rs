//! The messages about a wrong configuration: whole sentences, with file, line and column.

use std::path::Path;
use weir_config::{Sources, WarningKind, load, load_text};

/// The sentences for a file.
fn problems(name: &str, text: &str) -> String {
    match load_text(Path::new(name), text, &Sources::default()) {
        Ok(loaded) => panic!("{name} is fine: {:?}", loaded.snapshot),
        Err(problems) => problems.to_string(),
    }
}

const GOOD_TOML: &str = "[databases.app]\nurl = \"postgres://app:hunter2@127.0.0.1/app\"\n";

#[test]
fn weir_toml() {
    for (text, wanted) in [
        (
            "[pool]\npool_mod = \"session\"",
            "weir.toml:4:1: unknown key `pool_mod` in [pool]; did you mean `pool_mode`?",
        ),
        ("[poll]\npool_mode = \"session\"", "weir.toml:3:2: unknown section [poll]; did you mean [pool]?"),
        ("[colours]", "weir.toml:3:2: unknown section [colours]"),
        (
            "[limits]\n  pool_mode = \"session\"",
            "weir.toml:4:3: unknown key `pool_mode` in [limits]; it belongs in [pool]",
        ),
        ("[limits]\nworkers = 2", "weir.toml:4:1: unknown key `workers` in [limits]; it belongs at the top"),
        (
            "[pool]\ndefault_pool_size = 0",
            "weir.toml:4:21: default_pool_size must be a number of connections from 1 to 262143 or auto, not `0`",
        ),
        (
            "[pool]\ndefault_pool_size = \"8\"",
            "weir.toml:4:21: default_pool_size must be a number of connections from 1 to 262143 or auto, not text in quotes",
        ),
        (
            "[pool]\npool_mode = \"transactoin\"",
            "weir.toml:4:13: pool_mode must be session, transaction or statement, not `transactoin`; did you mean `transaction`?",
        ),
        (
            "[pool]\npool_mode = 1",
            "weir.toml:4:13: pool_mode must be session, transaction or statement, not 1",
        ),
        ("[socket]\ntcp_keepalive = 1", "weir.toml:4:17: tcp_keepalive must be true or false, not 1"),
        (
            "[pool]\nquery_wait_timeout = \"soon\"",
            "weir.toml:4:22: query_wait_timeout must be a time in seconds such as 30 or 0.5, or one with a unit such as \
             500ms, 5s, 2min, 1h, not `soon`",
        ),
        ("[postgres]\nlisten = 6432", "weir.toml:4:10: listen must be an array of strings, not 6432"),
        ("[postgres]\nlisten = [\"a\", 1]", "weir.toml:4:10: listen must be an array of strings, but has 1"),
        (
            "[postgres]\nlisten = [\":6432\"]",
            "weir.toml:4:1: listen: `:6432` must name an address; * means all",
        ),
        ("[log]\nlogfile = 1", "weir.toml:4:11: logfile must be text in quotes, not 1"),
        ("[databases]\nb = 1", "weir.toml:4:1: databases.b must be a table [databases.b]"),
        (
            "[databases.b]\nhost = \"h\"",
            "weir.toml:4:1: `host` stands in the url here: url = \"postgres://host:port/dbname\"",
        ),
        (
            "[databases.b]\nurk = \"h\"",
            "weir.toml:4:1: unknown key `urk` in [databases.NAME]; did you mean `url`?",
        ),
        (
            "[pins]\nsession_lok = 'warn'",
            "weir.toml:4:1: unknown key `session_lok` in [pins]; did you mean `session_lock`?",
        ),
        (
            "[pins]\nsession_lock = 'never'",
            "weir.toml:4:16: session_lock must be default, pin, warn, error or pass, not `never`",
        ),
        (
            "[pins]\nlisten = 'pass'",
            "weir.toml:4:10: listen must be default, pin, warn or error, not `pass`: notifications would reach \
             other clients; pool.shared_listen serves clients that only listen without a pin",
        ),
        (
            "[pins]\nsetting = 'error'",
            "weir.toml:4:11: setting must be default, pin or warn, not `error`: whether a statement pins for this \
             reason is known only when it has run, and another client would get wrong answers",
        ),
        (
            "[users.ann]\npassword = 'x'\npins = ['session_lock = warn', 'listen = pass']",
            "weir.toml:5:1: pins: listen must be default, pin, warn or error, not `pass`: notifications would reach \
             other clients; pool.shared_listen serves clients that only listen without a pin",
        ),
        (
            "[users.ann]\npassword = 'x'\npins = ['lock = warn']",
            "weir.toml:5:1: pins must be a list such as [\"session_lock = warn\"], not `lock = warn`; the reasons are \
             setting, temporary_table, session_lock, cursor, listen, sql_prepare, last_result, user_variable, load, \
             prepared, replication, unrecognised, code, sequence",
        ),
        (
            "[pool]\npinned_pool_size = 'auto'",
            "weir.toml:4:20: pinned_pool_size must be a number of connections from 0 to 262143, not text in quotes",
        ),
        (
            "[databases.b]\npool_size = 2",
            "weir.toml:3:12: a database needs a url, such as url = \"postgres://user:password@host:5432/database\"",
        ),
        (
            "[databases.b]\nurl = \"oracle://b:hunter2@h/b\"",
            "weir.toml:4:1: the URL must begin with postgres:// or mysql://, not oracle://",
        ),
        (
            "[databases.b]\nurl = \"postgres://b:hunter2@h/b\"\nname = \"app\"",
            "weir.toml:3:12: two databases are called `app`",
        ),
        (
            "[databases.b]\nurl = \"postgres://app:other@h/b\"",
            "weir.toml:3:12: user app has another password elsewhere; say in [users] which one clients use",
        ),
        (
            "[pool]\ndefault_pool_size = \"${WEIR_NO_SUCH_VARIABLE}\"",
            "weir.toml:4:21: default_pool_size cannot be filled in: the environment has no variable WEIR_NO_SUCH_VARIABLE",
        ),
        ("[tls.client]\nmode = \"require\"", "weir.toml:4:1: unknown key `mode` in [tls.client]"),
        (
            "[postgres]\nauth_type = \"cert\"\n[tls.client]\nsslmode = \"require\"",
            "weir.toml:4:1: postgres.auth_type: cert needs tls.client.sslmode and tls.client.ca_file: whose certificates are good?",
        ),
        (
            "[tls.client]\nsslmode = \"verify-full\"",
            "weir.toml:4:1: tls.client.sslmode: verify-full needs tls.client.ca_file: whose certificates are good?",
        ),
        (
            "[tls.client]\nsslmode = \"prefer\"\ncert_file = \"no-such-file\"\nkey_file = \"no-such-file\"",
            "weir.toml:5:1: tls.client.cert_file: no-such-file: No such file or directory (os error 2)",
        ),
        (
            "[tls.client]\nsslmode = \"prefer\"\nprotocols = \"tlsv1.1\"",
            "weir.toml:5:1: tls.client.protocols: has tlsv1.1, which is no longer safe: Weir has tlsv1.2 and tlsv1.3",
        ),
        (
            "[databases.b]\nurl = \"postgres://b:hunter2@h/b?sslnegotiation=direct\"",
            "weir.toml:4:1: sslnegotiation=direct is PostgreSQL's and needs sslmode=require or higher",
        ),
        (
            "[postgres]\nauth_file = \"no-such-file\"",
            "weir.toml:4:1: cannot read no-such-file: No such file or directory (os error 2)",
        ),
    ] {
        let found = problems("weir.toml", &format!("{GOOD_TOML}{text}"));
        assert_eq!(found.replace("did you mean `pool`?", "did you mean [pool]?"), wanted, "for {text:?}");
    }
}

#[test]
fn all_problems_at_once_in_the_order_of_the_file() {
    let found = problems("w.toml", "wrokers = 2\n[pool]\ndefault_pool_size = -1\nzzz = 1\n");
    assert_eq!(
        found,
        "w.toml:1:1: unknown key `wrokers` at the top; did you mean `workers`?\n\
         w.toml:3:21: default_pool_size must be a number of connections from 1 to 262143 or auto, not `-1`\n\
         w.toml:4:1: unknown key `zzz` in [pool]"
    );
}

#[test]
fn syntax_errors_have_a_place() {
    let found = problems("w.toml", "[pool]\npool_mode = \"session\n");
    assert!(found.starts_with("w.toml:2:"), "{found}");
    assert!(!found.contains('\n'), "{found}");
}

#[test]
fn nothing_to_serve() {
    assert_eq!(
        problems("w.toml", "[pool]\npool_mode = \"session\""),
        "no database is configured; add one such as [databases.app] with url = \"postgres://user:password@host:5432/app\""
    );
    let found = problems("w.toml", "[databases.a]\nurl = \"postgres://127.0.0.1/a\"");
    assert_eq!(found, "postgres: nobody can log in: name a user in the URL or in [users.NAME]");
}

#[test]
fn pgbouncer_ini() {
    for (text, wanted) in [
        (
            "pool_mode = transactions",
            "p.ini:4:13: pool_mode must be session, transaction or statement, not `transactions`; did you mean `transaction`?",
        ),
        (
            "  max_client_conn = lots",
            "p.ini:4:21: max_client_conn must be a number of clients from 1 to 16000000 or auto, not `lots`",
        ),
        ("auth_type = ldap", "p.ini:4:1: auth_type = ldap needs auth_ldap_options"),
        (
            "auth_type = radius",
            "p.ini:4:13: auth_type must be trust, any, cert, peer, plain, md5, scram-sha-256, ldap, pam or hba, not `radius`",
        ),
        ("auth_type = hba", "p.ini:4:1: auth_type = hba needs auth_hba_file"),
        (
            "auth_user = asker\nauth_dbname = nowhere",
            "p.ini:5:1: auth_dbname = nowhere: no database `nowhere` is configured",
        ),
        (
            "client_tls_sslmode = on",
            "p.ini:4:22: client_tls_sslmode must be disable, allow, prefer, require, verify-ca or verify-full, not `on`",
        ),
        ("server_tls_cert_file = no-such-file", "p.ini:4:1: server_tls_cert_file: needs server_tls_key_file"),
        (
            "[databases]\nb = host=h1,h2",
            "p.ini:5:5: host names several hosts; Weir does not support that yet: name one",
        ),
        (
            "[databases]\nb = dbname=b port=70000",
            "p.ini:5:14: port must be a number from 1 to 65535, not `70000`",
        ),
        ("[databases]\nb = host=h password='x", "p.ini:5:21: the value of password has no closing quote"),
        (
            "[databases]\nb = host",
            "p.ini:5:5: `host` has no value; a connection string is key=value key=value",
        ),
        ("[databases]\npgbouncer = host=h", "p.ini:5:1: the name pgbouncer is kept for the console"),
        ("nonsense", "p.ini:4:1: a line must be `key = value`"),
        (
            "listen_addr = 127.0.0.1\nlisten_port = 0",
            "p.ini:5:15: listen_port must be a number from 1 to 65535, not `0`",
        ),
        ("verbose = much", "p.ini:4:11: verbose must be a number, not `much`"),
        (
            "%include /no/such/file.ini",
            "p.ini:4:1: cannot read /no/such/file.ini: No such file or directory (os error 2)",
        ),
        (
            "auth_type = any",
            "p.ini:4:1: auth_type = any needs a user in the connection string of database `a`",
        ),
        (
            "auth_type = md5\nauth_query = SELECT 1",
            "postgres: nobody can log in: auth_file lists no users, and auth_user is not set",
        ),
        ("unix_socket_dir =", "no address to listen on: set listen_addr or unix_socket_dir"),
    ] {
        let found = problems("p.ini", &format!("[databases]\na = host=127.0.0.1\n[pgbouncer]\n{text}\n"));
        let first = wanted.lines().next().unwrap();
        assert!(found.lines().any(|line| line == first), "for {text:?}:\n{found}\nwanted:\n{first}");
    }
}

#[test]
fn a_key_that_pgbouncer_does_not_know_is_an_error_as_it_is_there() {
    let text = "[databases]\na = host=h user=u colour=red\n[users]\nann = pol_mode=session\n[pgbouncer]\nauth_type = any\n\
                pool_moode = transaction\n[pgbounce]\n";
    assert_eq!(
        problems("p.ini", text),
        "p.ini:2:19: unknown key `colour`\n\
         p.ini:4:7: unknown key `pol_mode`; did you mean `pool_mode`?\n\
         p.ini:7:1: unknown key `pool_moode`; did you mean `pool_mode`?\n\
         p.ini:8:1: unknown section [pgbounce]; did you mean `pgbouncer`?"
    );
}

#[test]
fn warnings_of_pgbouncer_ini() {
    let text = "[databases]\na = host=h user=u reserve_pool=5\n[users]\nann = pool_mode=session\n[peers]\n1 = host=x\n\
                [pgbouncer]\nauth_type = any\nreserve_pool_size = 5\nreserve_pool_timeout = 0\n\
                server_round_robin = 1\nso_reuseport = 1\nignore_startup_parameters = x\nclient_tls_sslmode = prefer\n";
    let loaded = load_text(Path::new("p.ini"), text, &Sources::default()).unwrap();
    let found: Vec<_> = loaded.warnings.iter().map(|w| (w.kind, w.to_string())).collect();
    let wanted = [
        (
            WarningKind::NotSupported,
            "p.ini:2:19: reserve_pool is not supported yet: a pool never exceeds its size",
        ),
        (
            WarningKind::NotSupported,
            "p.ini:5:1: [peers] is not supported: Weir processes do not forward each other's cancel requests yet; one process uses all cores",
        ),
        (
            WarningKind::NotSupported,
            "p.ini:9:1: reserve_pool_size is not supported yet: a pool never exceeds its size",
        ),
        (
            WarningKind::NotSupported,
            "p.ini:11:1: server_round_robin is not supported yet: Weir uses the most recently used server first",
        ),
        (WarningKind::Doubtful, "p.ini:4:1: user ann is not in auth_file and cannot log in"),
    ];
    assert_eq!(found, wanted.map(|(kind, text)| (kind, text.to_owned())));
}

#[test]
fn arguments() {
    let good = || Sources::urls(&["postgres://app:hunter2@127.0.0.1/app"]);
    for (sources, wanted) in [
        (
            Sources::default(),
            "nothing to serve: give a database URL such as postgres://user:password@host:5432/database, or --config FILE",
        ),
        (
            good().with("pool.pol_mode", "x"),
            "--set pool.pol_mode: unknown setting `pool.pol_mode`; did you mean `pool.pool_mode`?",
        ),
        (
            good().with("workers", "many"),
            "--set workers: workers must be a number of threads from 0 to 64, not `many`",
        ),
        (
            good().with("users.ann.pasword", "x"),
            "--set users.ann.pasword: unknown key `pasword` of users; did you mean `password`?",
        ),
        (
            Sources::urls(&["postgres://app:hunter2@h,i/app"]),
            "URL 1: names several hosts; Weir does not support that yet: name one",
        ),
        (
            Sources::urls(&["postgres://127.0.0.1/app"]),
            "postgres: nobody can log in: name a user in the URL or in [users.NAME]",
        ),
        (
            Sources::urls(&["postgres://a:hunter2@h/d", "postgres://b:hunter2@h2/d"]),
            "URL 2: two databases are called `d`",
        ),
        (
            Sources::urls(&["postgres://a:hunter2@h/d", "postgres://a:other@h/e"]),
            "URL 2: user a has another password elsewhere; say in [users] which one clients use",
        ),
        (
            Sources {
                listen: vec!["127.0.0.1:1".into()],
                ..Sources::urls(&["postgres://a:hunter2@h/d", "mysql://a:hunter2@h/d"])
            },
            "--listen: there are databases of two protocols: say --set postgres.listen=... and --set mysql.listen=...",
        ),
        (
            Sources { file: Some("/no/such.toml".into()), ..good() },
            "cannot read /no/such.toml: No such file or directory (os error 2)",
        ),
    ] {
        let found = load(&sources).unwrap_err().to_string();
        assert_eq!(found, wanted);
        assert!(!found.contains("hunter2"));
    }
}

#[test]
fn passwords_that_cannot_be_had() {
    let folder = env!("CARGO_TARGET_TMPDIR");
    std::fs::write(Path::new(folder).join("two.password"), "hunter2\nhunter3\n").unwrap();
    std::fs::write(Path::new(folder).join("no.password"), "\n").unwrap();
    let file = format!("{folder}/weir.toml");
    for (text, wanted) in [
        (
            "password = \"${WEIR_NO_SUCH_VARIABLE}\"",
            "3:1: the environment has no variable WEIR_NO_SUCH_VARIABLE".to_owned(),
        ),
        (
            "password_file = \"${WEIR_NO_SUCH}/x\"",
            "3:1: the environment has no variable WEIR_NO_SUCH".to_owned(),
        ),
        (
            "password_file = \"none.password\"",
            format!("3:1: cannot read {folder}/none.password: No such file or directory (os error 2)"),
        ),
        (
            "password_file = \"two.password\"",
            format!(
                "3:1: {folder}/two.password has more than one line; it must hold a password and nothing else"
            ),
        ),
        (
            "password_file = \"no.password\"",
            format!("3:1: {folder}/no.password is empty; it must hold a password and nothing else"),
        ),
        (
            "password = \"hunter2\"\npassword_file = \"two.password\"",
            "4:1: give a password or a password_file, not both".to_owned(),
        ),
    ] {
        let database = "[databases.app]\nurl = \"postgres://app@h/app\"\n";
        let user = "[databases.app]\nurl = \"postgres://h/app\"\n[users.app]\n";
        for head in [database, user] {
            let lines = head.matches('\n').count() - 2;
            let said = problems(&file, &format!("{head}{text}"));
            let (line, rest) = wanted.split_once(':').unwrap();
            let line: usize = line.parse::<usize>().unwrap() + lines;
            assert_eq!(said, format!("{file}:{line}:{rest}"));
        }
    }
}
