//! The built binary: what it prints, where, and its exit codes. Running it is in `serve.rs`.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn weir(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn help_and_version() {
    let output = weir(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = text(&output.stdout);
    for wanted in ["weir serve 'postgres://", "check-config", "Exit codes: 0 success; 1", "2 wrong arguments"]
    {
        assert!(help.contains(wanted), "{wanted} is not in\n{help}");
    }
    assert!(!help.contains("generate"), "a command for packagers is hidden");
    let output = weir(&["--version"]);
    assert_eq!(text(&output.stdout), format!("weir {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn check_config() {
    let output = weir(&["check-config", concat!(env!("CARGO_MANIFEST_DIR"), "/examples/weir.toml")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(
        said.starts_with("postgres: listens on 127.0.0.1:6432; databases app, reports; 2 users\n"),
        "{said}"
    );
    assert!(said.ends_with("weir.toml: good\n"), "{said}");

    let bad = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli-bad.toml");
    std::fs::write(&bad, "[pool]\npool_mod = \"x\"\n").unwrap();
    let output = weir(&["check-config", bad.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let wanted =
        format!("weir: {}:2:1: unknown key `pool_mod` in [pool]; did you mean `pool_mode`?\n", bad.display());
    assert_eq!(text(&output.stderr), wanted);

    let level = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli-level.toml");
    std::fs::write(&level, "[databases.a]\nurl = \"postgres://a:b@h/a\"\n[log]\nlevel = \"[[\"\n").unwrap();
    let output = weir(&["check-config", level.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("weir: log level `[[`: "), "{}", text(&output.stderr));
    std::fs::write(&level, "[databases.a]\nurl = \"postgres://a:b@h/a\"\n[log]\nlevel = \"warning\"\n")
        .unwrap();
    let output = weir(&["check-config", level.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let wanted = format!(
        "weir: {}:4:1: log.level must be error, warn, info, debug or trace, or filters such as info,weir_proxy=debug, \
         not `warning`; did you mean `warn`?\n",
        level.display()
    );
    assert_eq!(text(&output.stderr), wanted);
}

#[test]
fn a_strict_check_fails_for_a_warning() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("strict.ini");
    std::fs::write(
        &file,
        "[databases]\na = host=h user=u\n[pgbouncer]\nauth_type = any\nserver_round_robin = 1\n",
    )
    .unwrap();
    let name = file.to_str().unwrap();
    let output = weir(&["check-config", name]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("server_round_robin is not supported yet"),
        "{}",
        text(&output.stdout)
    );
    assert_eq!(weir(&["check-config", "--strict", name]).status.code(), Some(2));
}

#[test]
fn a_check_in_json_says_what_is_wrong_and_where() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("json.ini");
    let name = file.to_str().unwrap();
    std::fs::write(
        &file,
        "[databases]\na = host=h user=u\n[pgbouncer]\nauth_type = any\nserver_round_robin = 1\n",
    )
    .unwrap();
    let output = weir(&["check-config", "--json", name]);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["good"], true);
    assert_eq!(found["warnings"][0]["line"], 5);
    assert_eq!(found["problems"], serde_json::json!([]));
    std::fs::write(&file, "[databases]\na = host=h user=u\n[pgbouncer]\npool_moode = x\n").unwrap();
    let output = weir(&["check-config", "--json", name]);
    assert_eq!(output.status.code(), Some(2));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["good"], false);
    let problem = &found["problems"][0];
    assert_eq!(
        (&problem["file"], &problem["line"], &problem["column"]),
        (&name.into(), &4.into(), &1.into())
    );
    assert_eq!(problem["text"], "unknown key `pool_moode`; did you mean `pool_mode`?");
}

#[test]
fn config_convert() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("convert");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name).display().to_string();
    let (ini, toml) = (file("p.ini"), file("weir.toml"));
    let source = "[databases]\na = host=h user=u password=hunter2\n[pgbouncer]\nauth_type = any\nserver_round_robin = 1\n";
    std::fs::write(&ini, source).unwrap();
    let output = weir(&["config", "convert", &ini]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("[databases.a]\nurl = \"postgres://h:5432\"\n"));
    let said = text(&output.stderr);
    assert!(said.contains(":5:1: left out: server_round_robin is not supported yet"), "{said}");
    assert!(said.contains("p.ini: 1 database, 0 users; 1 left out, "), "{said}");
    assert!(!said.contains("hunter2"), "{said}");

    assert_eq!(weir(&["config", "convert", &ini, "-o", &toml]).status.code(), Some(0));
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&toml).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "it has a password");
    assert_eq!(std::fs::read(&toml).unwrap(), output.stdout);
    assert_eq!(weir(&["check-config", &toml]).status.code(), Some(0));
    std::fs::write(&toml, "mine, and longer than the file that replaces it\n".repeat(99)).unwrap();
    let refused = weir(&["config", "convert", &ini, "-o", &toml]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(text(&refused.stderr), format!("weir: {toml} exists; --force replaces it\n"));
    assert!(std::fs::read_to_string(&toml).unwrap().starts_with("mine"));
    assert_eq!(weir(&["config", "convert", &ini, "-o", &toml, "--force"]).status.code(), Some(0));
    assert_eq!(std::fs::read(&toml).unwrap(), output.stdout);

    let bad = file("bad.ini");
    std::fs::write(&bad, "[databases]\na = host=h,i\n[pgbouncer]\nauth_type = pam\n").unwrap();
    let output = weir(&["config", "convert", &bad]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let same = weir(&["check-config", &bad]);
    assert_eq!(text(&output.stderr), text(&same.stderr), "the errors are those of check-config");
    assert_eq!(weir(&["config", "convert", &file("nowhere")]).status.code(), Some(2));
}

#[test]
fn generated_texts() {
    for (what, wanted) in [
        ("man", ".TH weir 1"),
        ("man-config", ".B default_pool_size"),
        ("reference", "### `pool_mode`"),
        ("pgbouncer", "`listen_addr`"),
        ("bash", "check-config"),
        ("zsh", "check-config"),
        ("fish", "check-config"),
    ] {
        let output = weir(&["generate", what]);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains(wanted), "{what}");
    }
}

#[test]
fn doctor() {
    let output = weir(&["doctor", "--connections", "10"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).starts_with("10 clients and 20 servers, weir serve\n"),
        "{}",
        text(&output.stdout)
    );
    let output = weir(&["doctor", "--connections", "10", "--json"]);
    assert!(text(&output.stdout).contains("\"id\": \"open_files\""));

    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/weir.toml");
    let output = weir(&["doctor", "--config", config, "--servers", "7"]);
    assert!(
        text(&output.stdout).contains(" clients and 7 servers, weir serve\n"),
        "{}",
        text(&output.stdout)
    );
    let output = weir(&["doctor", "--config", "/nowhere.toml"]);
    assert_eq!(output.status.code(), Some(2));

    // More than any machine has ports for: a blocker, and its cure alone.
    let arguments = ["doctor", "--program", "other", "--connections", "900000000"];
    let output = weir(&arguments);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("BLOCKER"), "{}", text(&output.stdout));
    let output = weir(&[&arguments[..], &["--cure", "limits.d"]].concat());
    assert!(text(&output.stdout).starts_with("* soft nofile "), "{}", text(&output.stdout));

    for wrong in
        [&["--cure", "nowhere"][..], &["--connections", "0"], &["--url", "nonsense"], &["--program", "x"]]
    {
        let output = weir(&[&["doctor"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", text(&output.stderr));
    }
}

#[test]
fn doctor_explains_messages() {
    let output = weir(&["doctor", "--explain", "Can't create TCP/IP socket (24)"]);
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stdout);
    assert!(said.starts_with("the process has no file descriptor left (EMFILE, errno 24)\n"), "{said}");
    assert!(said.contains("LimitNOFILE=1048576"), "{said}");
    let output = weir(&["doctor", "--json", "--explain", "53300"]);
    assert!(text(&output.stdout).starts_with("{\"id\":\"pg_too_many_clients\""), "{}", text(&output.stdout));
    let output = weir(&["doctor", "--explain", "all is well"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no explanation for `all is well`"), "{}", text(&output.stderr));
}

#[test]
fn advise_says_what_is_wrong_with_its_arguments() {
    let url = ["--url", "postgres://a:hunter2@127.0.0.1:1/a"];
    for wrong in [
        &["--for", "x"][..],
        &["--interval", "10ms"],
        &["--for", "100h", "--interval", "1s"],
        &["--cores", "0"],
    ] {
        let output = weir(&[&["advise"], &url[..], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", text(&output.stderr));
    }
    // Nobody listens on port 1.
    let output = weir(&[&["advise"], &url[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.starts_with("weir: postgres://a@127.0.0.1:1/a: ") && !said.contains("hunter2"), "{said}");
}

/// Every page that a page refers to exists, and each command has one.
#[test]
fn manual_pages() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli-man");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    let output = weir(&["generate", "man-pages", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let section = |name: &str| -> Vec<String> {
        let pages = std::fs::read_dir(folder.join(name)).unwrap();
        pages.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(section("man5"), ["weir.toml.5"]);
    let pages = section("man1");
    for wanted in [
        "weir.1",
        "weir-serve.1",
        "weir-check-config.1",
        "weir-config-convert.1",
        "weir-bench.1",
        "weir-bench-run.1",
        "weir-doctor.1",
    ] {
        assert!(pages.iter().any(|page| page == wanted), "{wanted}: {pages:?}");
    }
    let mut named = 0;
    for page in &pages {
        let words = std::fs::read_to_string(folder.join("man1").join(page))
            .unwrap()
            .replace("\\-", "-")
            .replace(" (1)", "(1)");
        for word in words.split(|c: char| !c.is_ascii_alphanumeric() && !"-().".contains(c)) {
            let Some((name, _)) = word.split_once("(1)") else { continue };
            named += 1;
            assert!(pages.contains(&format!("{name}.1")), "{page} names {word}");
        }
    }
    assert!(named > 5, "{named} pages are named");
    assert_eq!(weir(&["generate", "man-pages"]).status.code(), Some(2), "where to?");
}

#[test]
fn completions_know_the_workloads() {
    for shell in ["bash", "zsh", "fish"] {
        let said = text(&weir(&["generate", shell]).stdout);
        assert!(said.contains("oltp_read_write") && said.contains("tpcc"), "{shell}");
    }
}

/// Groups of LDAP or SSSD are in no file; the C library knows them. A library that is loaded before it plays
/// such a service.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn groups_of_the_name_service_are_known() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, library) = (folder.join("directory.c"), folder.join("directory.so"));
    let text = r#"
        #include <grp.h>
        #include <string.h>
        int getgrnam_r(const char *n, struct group *g, char *b, size_t l, struct group **r) {
            static char *members[] = { 0 };
            *r = 0;
            if (strcmp(n, "weir-ldap-group") || l < 17) return 0;
            *g = (struct group){ strcpy(b, n), "", 4242, members };
            *r = g;
            return 0;
        }"#;
    std::fs::write(&source, text).unwrap();
    let made =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status().unwrap();
    assert!(made.success(), "the linker that Rust needs can compile C, too");
    let file = folder.join("directory.ini");
    let ini = |group: &str| {
        format!("[databases]\na = host=h user=u\n[pgbouncer]\nauth_type = any\nunix_socket_group = {group}\n")
    };
    let weir_there = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(arguments).env("LD_PRELOAD", &library).stdin(Stdio::null()).output().unwrap()
    };
    std::fs::write(&file, ini("weir-ldap-group")).unwrap();
    let output = weir_there(&["check-config", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    std::fs::write(&file, ini("weir-no-group")).unwrap();
    let output = weir_there(&["check-config", file.to_str().unwrap()]);
    assert!(text_of(&output).contains("this machine has no group `weir-no-group`"), "{}", text_of(&output));
}

fn text_of(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}
