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
    for wanted in ["weir serve postgres://", "check-config", "Exit codes: 0 success; 1", "2 wrong arguments"]
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
