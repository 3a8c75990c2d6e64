//! A server that has statements under its client's names.

use super::*;
use crate::effects::Effects;
use crate::testing::send_with;
use std::sync::Arc;

fn of(text: &str) -> Arc<Effects> {
    let proof = weir_sql::catalogue::Proof {
        catalogue: Arc::default(),
        state: 1,
        current: true,
        unknown_code: weir_sql::catalogue::UnknownCode::Pin,
        changed: false,
    };
    Effects::of_text(weir_sql::Dialect::POSTGRES, text.as_bytes(), Some(proof)).0
}

/// Sends it, and answers what forgets sequences in front of it. What the server was sent behind that.
fn ask(front: &mut Front, back: &mut Back, text: &str, request: &[u8]) -> String {
    let sent = send_with(front, back, request, &of(text)).to_server;
    let Some(rest) = sent.strip_prefix(&*c::q("DISCARD SEQUENCES")) else { return tags(&sent) };
    receive(back, Some(front), &cat(&[s::complete("DISCARD SEQUENCES"), s::idle()]));
    tags(rest)
}

fn refused(code: &str, position: bool, context: bool) -> Vec<u8> {
    let mut text = s::error(code, "function nope(integer) does not exist");
    let (end, ready) = (text.len() - 1, s::idle());
    text.truncate(end);
    for (field, there, value) in [(b'P', position, "8"), (b'W', context, "PL/pgSQL function f() line 1")] {
        if there {
            text.push(field);
            text.extend_from_slice(value.as_bytes());
            text.push(0);
        }
    }
    text.push(0);
    let length = u32::try_from(text.len() - 1).unwrap();
    text[1..5].copy_from_slice(&length.to_be_bytes());
    cat(&[text, ready])
}

/// A call of a function that does not exist: nothing has run.
#[test]
fn what_the_server_could_not_read_pins_nobody() {
    let query = c::q("select nope(1)");
    let batch = cat(&[c::parse("", "select nope(1)"), c::bind(""), c::execute(), c::sync()]);
    for request in [&query, &batch] {
        let (mut f, mut b) = (front(1), back());
        ask(&mut f, &mut b, "select nope(1)", request);
        assert!(f.pins().contains(Pin::SqlPrepare), "until it is known");
        receive(&mut b, Some(&mut f), &refused("42883", true, false));
        assert!(f.pins().is_empty() && b.is_reusable() && b.own_names.is_none());
        // The next one is as free.
        run(&mut f, &mut b, &c::q("select 1"), &cat(&[s::complete("SELECT 1"), s::idle()]));
        assert!(f.pins().is_empty() && b.is_reusable());
    }
}

#[test]
fn what_may_have_run_or_given_names_still_pins() {
    // In code that ran, and among statements of which one has run.
    for (text, before, error) in [
        ("select nope(1)", vec![], refused("42883", true, true)),
        ("select nope(1)", vec![], refused("22012", false, false)),
        ("select prepares(); select nope(1)", s::complete("SELECT 1"), refused("42883", true, false)),
    ] {
        let (mut f, mut b) = (front(1), back());
        ask(&mut f, &mut b, text, &c::q(text));
        receive(&mut b, Some(&mut f), &cat(&[before, error]));
        assert!(f.pins().contains(Pin::SqlPrepare) && !b.is_reusable(), "{text}");
    }
    // A name stands there.
    let (mut f, mut b) = (front(1), back());
    prepare(&mut f, &mut b, "a", "select 1");
    let sent = ask(&mut f, &mut b, "select nope(1)", &c::q("select nope(1)"));
    assert_eq!(sent, "CSPSQ");
    let brought = cat(&[s::close_complete(), s::idle(), s::parse_complete(), s::idle()]);
    receive(&mut b, Some(&mut f), &cat(&[brought, refused("42883", true, false)]));
    assert!(f.pins().contains(Pin::SqlPrepare) && b.own_names.is_some());
    // A text before has pinned.
    let (mut f, mut b) = (front(1), back());
    ask(&mut f, &mut b, "prepare x as select 1", &c::q("prepare x as select 1"));
    receive(&mut b, Some(&mut f), &cat(&[s::complete("PREPARE"), s::idle()]));
    ask(&mut f, &mut b, "select nope(1)", &c::q("select nope(1)"));
    receive(&mut b, Some(&mut f), &refused("42883", true, false));
    assert!(f.pins().contains(Pin::SqlPrepare) && b.own_names.is_some());
}

/// A client leaves in a transaction in which it has changed the catalogue: the change is over with Weir's
/// ROLLBACK, not with the next request that comes to this server.
#[test]
fn a_change_that_weir_rolls_back_is_over() {
    let (mut f, mut b) = (front(1), back());
    for (text, tag) in [("begin", "BEGIN"), ("create table t (i int)", "CREATE TABLE")] {
        ask(&mut f, &mut b, text, &c::q(text));
        receive(&mut b, Some(&mut f), &cat(&[s::complete(tag), s::in_transaction()]));
    }
    assert!(b.unsettled.is_some());
    let mut out = Vec::new();
    b.forget(1, &mut out);
    b.reset(&mut out);
    receive(&mut b, None, &cat(&[s::complete("ROLLBACK"), s::idle()]));
    assert!(b.unsettled.is_none());
    receive(&mut b, None, &cat(&[s::complete("DISCARD ALL"), s::idle()]));
    assert!(b.is_reusable());
}

/// A table without code of users is made, then code: from then on nobody goes by what was known of code.
#[test]
fn a_change_counts_as_one_of_code_from_the_first_text_that_makes_some() {
    use weir_sql::catalogue::{Catalogue, Knowledge};
    let (mut f, mut b) = (front(1), back());
    f.knowledge = Knowledge::settled(Catalogue::default());
    b.knowledge = Arc::clone(&f.knowledge);
    for (text, tag, code) in [
        ("begin", "BEGIN", None),
        ("create table t (i int)", "CREATE TABLE", Some(false)),
        ("create view v as select 1", "CREATE VIEW", Some(true)),
        ("create table u (i int)", "CREATE TABLE", Some(true)),
    ] {
        ask(&mut f, &mut b, text, &c::q(text));
        receive(&mut b, Some(&mut f), &cat(&[s::complete(tag), s::in_transaction()]));
        assert_eq!(b.unsettled.as_ref().map(|change| change.is_of_code()), code, "{text}");
    }
}

/// What a statement does that SQL has prepared, it does at its EXECUTE: alone, or beside and within other
/// statements.
#[test]
fn what_sql_has_prepared_counts_where_it_is_executed() {
    let pins = |text: &str, prepared: &str| {
        let mut f = front(1);
        f.with_named(of(prepared));
        f.with_named(of(text)).pins
    };
    let prepare = "prepare q as select pg_advisory_lock(1)";
    for text in
        ["execute q", "explain analyze execute q", "create table t as execute q", "select 1; execute q"]
    {
        assert!(pins(text, prepare).contains(Pin::SessionLock), "{text}");
        assert!(!pins(text, "prepare q as select 1").contains(Pin::SessionLock), "{text}");
    }
    assert!(
        pins("execute q", "prepare q as select pg_advisory_lock(1); select 2").contains(Pin::SessionLock)
    );
    // Nobody has read what is prepared behind others.
    assert!(pins("execute q", "select 1; prepare q as select 1").contains(Pin::Code));
    assert!(pins("select 1", prepare).is_empty());
}

/// A server keeps what it has read of code under one client's settings.
#[test]
fn code_is_read_anew_for_another_client_with_other_settings() {
    use crate::back::CodeRead;
    let mut read: Option<CodeRead> = None;
    let mut changes = 1;
    // Whether it must be read anew first, and then it runs.
    let mut by = |client, kept_plan_key, mixed, changes| {
        let now = CodeRead { client, kept_plan_key, changes, mixed, others: false };
        let anew = read.is_some_and(|read| read.is_of_another(&now));
        read = read.filter(|_| !anew);
        CodeRead::by(&mut read, now);
        anew
    };
    assert!(!by(1, 10, false, changes), "it has read none");
    assert!(!by(1, 10, false, changes) && !by(2, 10, false, changes), "the same settings");
    assert!(by(1, 20, false, changes) && !by(2, 20, false, changes));
    assert!(by(2, 10, false, changes), "some of that is the other client's");
    // In a session of its own it would keep what it has read, too; for others it must not.
    assert!(!by(2, 30, false, changes) && by(3, 30, false, changes) && !by(4, 30, false, changes));
    let moment = "others for a moment";
    assert!(by(4, 30, true, changes) && !by(4, 30, true, changes) && by(5, 30, false, changes), "{moment}");
    changes += 1;
    assert!(!by(5, 30, false, changes), "its own would not either");
    assert!(by(6, 30, false, changes), "a column may be of another type now");
}

/// The texts of a client, and whether Weir had the server forget what was drawn or read before them.
fn forgotten(f: &mut Front, b: &mut Back, texts: &[&str]) -> Vec<&'static str> {
    let mut said = Vec::new();
    for text in texts {
        let mut out = Vec::new();
        let request = c::q(text);
        assert!(matches!(f.find(&request, &mut Vec::new()), Ok(Found::Request { .. })));
        b.dispatch(f, f.owner, &request, true, &mut out).expect("it is sent");
        for what in ["DISCARD SEQUENCES", "DISCARD PLANS"] {
            if out.windows(what.len()).any(|window| window == what.as_bytes()) {
                said.push(what);
                receive(b, Some(f), &cat(&[s::complete(what), s::idle()]));
            }
        }
        let end = if *text == "begin" { s::in_transaction() } else { s::idle() };
        receive(b, Some(f), &cat(&[s::complete("X"), end]));
    }
    said
}

/// A batch of which only the first part is there: what asks may come behind it, where nothing can go ahead
/// any more.
#[test]
fn what_others_have_drawn_is_forgotten_ahead_of_the_first_part_of_a_batch() {
    let (mut one, mut two, mut b) = (front(1), front(2), back());
    assert!(forgotten(&mut one, &mut b, &["select nextval('s')"]).is_empty());
    let part = cat(&[c::parse("", "select 1"), c::bind(""), c::execute(), c::flush()]);
    let mut out = Vec::new();
    assert!(!matches!(two.find(&part, &mut Vec::new()), Ok(Found::Incomplete) | Err(_)));
    let owner = two.owner;
    b.dispatch(&mut two, owner, &part, false, &mut out).expect("it is sent");
    assert_eq!(tags(&out), "QPBEH");
}

/// In a transaction that has failed nothing can be forgotten: a text that ends it must not ask.
#[test]
fn a_text_that_ends_a_failed_transaction_asks_nothing_that_weir_would_have_to_see_to_first() {
    let (mut one, mut two, mut b) = (front(1), front(2), back());
    assert!(forgotten(&mut one, &mut b, &["select nextval('s')"]).is_empty());
    assert!(forgotten(&mut two, &mut b, &["begin"]).is_empty());
    ask(&mut two, &mut b, "select 1/0", &c::q("select 1/0"));
    receive(&mut b, Some(&mut two), &cat(&[s::error("22012", "x"), s::failed()]));
    let sent = |f: &mut Front, b: &mut Back, text: &str| {
        let (mut out, owner) = (Vec::new(), f.owner);
        let request = c::q(text);
        assert!(matches!(f.find(&request, &mut Vec::new()), Ok(Found::Request { .. })));
        b.dispatch(f, owner, &request, true, &mut out).expect("it is sent");
        out
    };
    // Nor what is prepared under which names, which the server is told in front of all else.
    for asks in ["select lastval()", "select name from pg_prepared_statements"] {
        let out = sent(&mut two, &mut b, &format!("rollback; {asks}"));
        assert_eq!(out, c::q("refused by Weir"), "{asks}");
        let told = receive(&mut b, Some(&mut two), &cat(&[s::error("42601", "x"), s::failed()]));
        assert!(told.to_client.windows(5).any(|code| code == b"0A000"));
    }
    // Who only asks, or asks first, is told by the server that the transaction has failed.
    let asks = ["select name from pg_prepared_statements", "select lastval()"];
    for text in asks.iter().flat_map(|asks| [(*asks).to_owned(), format!("{asks}; rollback")]) {
        assert_eq!(sent(&mut two, &mut b, &text), c::q(&text));
        receive(&mut b, Some(&mut two), &cat(&[s::error("25P02", "x"), s::failed()]));
    }
    let out = sent(&mut two, &mut b, "rollback; select 1");
    assert_eq!(out, c::q("rollback; select 1"));
}

/// While somebody changes a table nothing is proven, but code that has changed is read before anybody gets a
/// server: a text that was harmless when it came is judged again.
#[test]
fn what_was_harmless_while_a_change_is_under_way_is_judged_anew() {
    use weir_sql::catalogue::{Catalogue, Knowledge};
    let mut f = front(1);
    f.knowledge = Knowledge::settled(Catalogue::default());
    let _change = f.knowledge.unsettle(false);
    let request = c::q("select * from vd");
    let mut out = Vec::new();
    assert!(matches!(f.find(&request, &mut out), Ok(Found::Request { .. })));
    assert!(f.next_text().is_none());
}

/// What a function does that its client has just replaced, others and Weir see with the end of the
/// transaction.
#[test]
fn what_code_does_is_unknown_to_who_has_changed_it_until_its_transaction_ends() {
    use weir_sql::catalogue::{Catalogue, Knowledge};
    let go = |f: &mut Front, b: &mut Back, text: &str, tag: &str, end: Vec<u8>| {
        ask(f, b, text, &c::q(text));
        receive(b, Some(f), &cat(&[s::complete(tag), end]));
        f.judge().state()
    };
    for text in ["create or replace function fo(int) returns int", "alter function other(int) rename to fo"] {
        let (mut f, mut b) = (front(1), back());
        f.knowledge = Knowledge::settled(Catalogue::default());
        let state = f.knowledge.state();
        assert_eq!(go(&mut f, &mut b, "begin", "BEGIN", s::in_transaction()), state);
        assert_eq!(go(&mut f, &mut b, text, "CREATE FUNCTION", s::in_transaction()), 0, "{text}");
        assert!(f.judge().text(b"select fo(2)").0.pins.contains(Pin::Code), "{text}");
        assert_eq!(go(&mut f, &mut b, "select 1", "SELECT 1", s::in_transaction()), 0, "{text}");
        assert_eq!(go(&mut f, &mut b, "commit", "COMMIT", s::idle()), f.knowledge.state(), "{text}");
        assert!(!f.judge().changed_code, "{text}");
        assert_eq!(go(&mut f, &mut b, "begin", "BEGIN", s::in_transaction()), f.knowledge.state());
        go(&mut f, &mut b, "create table t (i int)", "CREATE TABLE", s::in_transaction());
        assert!(!f.judge().changed_code, "a table does nothing");
    }
}

#[test]
fn who_keeps_a_server_and_changes_code_stays_with_what_nobody_has_read() {
    let of = |text: &str| Effects::of_text(weir_sql::Dialect::POSTGRES, text.as_bytes(), None).0;
    let read = |text: &str| Arc::new(Effects { doubtful: false, ..Effects::clone(&of(text)) });
    let (change, write) = (of("CREATE TABLE t (a text DEFAULT f())"), of("INSERT INTO t VALUES (DEFAULT)"));
    assert!(change.gives_code && write.doubtful);
    let stays = |pin: Option<Pin>, texts: &[&Arc<Effects>]| {
        let (mut f, mut b) = (front(1), back());
        pin.into_iter().for_each(|pin| f.traces.pin(pin));
        texts.iter().any(|text| b.behind_its_change(&f, Arc::clone(text)).pins.contains(Pin::Code))
    };
    assert!(stays(Some(Pin::SessionLock), &[&read("CREATE TABLE t (a text DEFAULT f())"), &write]));
    assert!(stays(
        Some(Pin::SessionLock),
        &[&of("CREATE TABLE t (a text DEFAULT f()); INSERT INTO t SELECT 1")]
    ));
    assert!(!stays(None, &[&change, &write]), "who is not pinned waits until it is read");
    assert!(!stays(Some(Pin::SessionLock), &[&write]), "others have changed something");
    let selects = read("SELECT 1");
    let drops = [&of("DROP TABLE t"), &of("TRUNCATE t"), &of("CREATE TEMP TABLE x (a int)"), &write];
    assert!(!stays(Some(Pin::TemporaryTable), &drops), "nothing has got code");
    let change = read("CREATE TABLE t (a text DEFAULT f())");
    assert!(!stays(Some(Pin::SessionLock), &[&change, &selects, &write]), "it has been read since");
}
