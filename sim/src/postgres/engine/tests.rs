//! Whether it is what it stands for.

use super::super::wire::{put_bind, put_execute, put_parse, put_query};
use super::*;

fn tags(bytes: &[u8]) -> String {
    let mut rest = bytes;
    let mut out = String::new();
    while let Some((tag, body, total)) = message(rest) {
        out.push(tag as char);
        if tag == b'Z' {
            out.push(body[0].to_ascii_lowercase() as char);
            out.push(' ');
        }
        rest = &rest[total..];
    }
    out
}

fn run(engine: &mut Engine, texts: &[&str]) -> String {
    let mut bytes = Vec::new();
    texts.iter().for_each(|text| put_query(&mut bytes, text));
    engine.feed(&bytes);
    engine.work(0);
    tags(&std::mem::take(&mut engine.output))
}

#[test]
fn a_failed_transaction_rolls_back() {
    let mut engine = Engine::new(&[], true);
    let texts = ["BEGIN", "INSERT INTO t /* tag=a.1 */", "SELECT 'x' /* fail */", "SELECT 'y'", "COMMIT"];
    assert_eq!(run(&mut engine, &texts), "CZt CZt EZe EZe CZi ");
    assert!(engine.committed.is_empty());
    assert_eq!(run(&mut engine, &["INSERT INTO t /* tag=a.2 */"]), "CZi ");
    assert_eq!(engine.committed, ["a.2"]);
}

#[test]
fn an_error_in_a_batch_skips_to_sync_and_undoes_it() {
    let mut engine = Engine::new(&[], true);
    let mut bytes = Vec::new();
    put_parse(&mut bytes, "", "INSERT INTO t VALUES ($1)");
    put_bind(&mut bytes, "", "", &["a.1"]);
    put_execute(&mut bytes, "", 0);
    put_bind(&mut bytes, "", "nowhere", &[]);
    put_execute(&mut bytes, "", 0);
    put(&mut bytes, b'S', b"");
    engine.feed(&bytes);
    engine.work(0);
    assert_eq!(tags(&engine.output), "12CEZi ");
    assert!(engine.committed.is_empty());
}

#[test]
fn another_clients_leavings_are_noticed() {
    let mut engine = Engine::new(&[], true);
    run(&mut engine, &["SET sim.v = 'x' /* tag=a.1 */"]);
    assert!(engine.problem.is_none());
    run(&mut engine, &["DISCARD ALL", "SELECT 'y' /* tag=b.1 */"]);
    assert!(engine.problem.is_none());
    run(&mut engine, &["SET sim.v = 'x' /* tag=b.2 */", "SELECT 'y' /* tag=a.2 */"]);
    assert!(engine.problem.unwrap().contains("sim.v"));
}

#[test]
fn settings_go_back_with_the_transaction() {
    let mut engine = Engine::new(&[], true);
    assert_eq!(
        run(&mut engine, &["BEGIN", "SET TimeZone = 'CET'", "ROLLBACK"]),
        "CZt CSZt CSZi ".replace("CSZt", "SCZt").replace("CSZi", "SCZi")
    );
    assert_eq!(engine.setting("TimeZone"), "UTC");
}
