//! `Front` and `Back` against packets of a server written by hand: what moves with a client to another
//! server, what pins it, and what a reset leaves.

mod common;

use common::{
    COLUMNS, IDLE, MODERN, OPEN, ROWS, asked, back, back_with, c, connect_params, error_in, exchange, front,
    knowledge, receive, s, send,
};
use weir_mysql::frame::{Header, MAX_PAYLOAD_BYTES};
use weir_mysql::message::{Command, status};
use weir_session::Back as _;
use weir_session::Front as _;
use weir_sql::catalogue::{Builder, Function, Knowledge, Language, Volatility};
use weir_wire::{Boundary, Found, Pin};

#[test]
fn settings_move_with_their_client() {
    let (mut one, mut two) = (back(7), back(8));
    let mut a = front(1, MODERN, &mut one);
    let off = s::ok_with(1, 0, 0, &s::state_change());
    let sent = send(&mut a, &mut one, 1, &c::query("SET autocommit = 0"));
    assert_eq!(asked(&sent.to_server), ["SET autocommit = 0"]);
    assert_eq!(receive(&mut one, Some(&mut a), &off).done, [(1, Boundary::Idle)]);
    assert!(a.pins().is_empty(), "{:?}", a.pins());
    let sent = send(&mut a, &mut two, 1, &c::query("SELECT a, b FROM t"));
    assert_eq!(asked(&sent.to_server), ["SET autocommit=0"], "the request waits");
    let got = receive(&mut two, Some(&mut a), &off);
    assert_eq!((asked(&got.to_server), got.to_client), (vec!["SELECT a, b FROM t".to_owned()], vec![]));
    let reply = s::result_at(1, COLUMNS, ROWS, status::IN_TRANS, 0).0;
    let got = receive(&mut two, Some(&mut a), &reply);
    assert_eq!((got.to_client, got.done), (reply, vec![(1, Boundary::InTransaction)]));
    // The next client finds the first server as it was.
    let mut b = front(2, MODERN, &mut back(9));
    let sent = send(&mut b, &mut one, 2, &c::query("SELECT a FROM t"));
    assert_eq!(asked(&sent.to_server), ["SET autocommit=1"]);
}

#[test]
fn a_kill_waits_for_what_goes_ahead_of_its_request() {
    let (mut one, mut two) = (back(7), back(8));
    let mut a = front(1, MODERN, &mut one);
    let off = s::ok_with(1, 0, 0, &s::state_change());
    exchange(&mut a, &mut one, &c::query("SET autocommit = 0"), &off);
    send(&mut a, &mut two, 1, &c::query("SELECT a, b FROM t"));
    assert!(!two.is_cancellable(false), "it would hit SET");
    assert!(two.is_cancellable(true), "what takes no time waits for something");
    receive(&mut two, Some(&mut a), &off);
    assert!(two.is_cancellable(false));
}

#[test]
fn the_schema_moves_with_its_client() {
    let (mut one, mut two) = (back(7), back(8));
    let mut a = front(1, MODERN, &mut one);
    let there = s::ok_with(1, IDLE, 0, &[s::schema_change("other"), s::state_change()].concat());
    exchange(&mut a, &mut one, &c::query("USE other"), &there);
    assert!(a.pins().is_empty(), "{:?}", a.pins());
    let sent = send(&mut a, &mut two, 1, &c::query("SELECT a FROM t"));
    assert_eq!(asked(&sent.to_server), ["InitDb other"]);
    let got = receive(&mut two, Some(&mut a), &there);
    assert_eq!(asked(&got.to_server), ["SELECT a FROM t"]);
}

#[test]
fn a_schema_that_a_reply_names_is_not_believed_when_others_were_sent_behind_it() {
    let mut back = back(7);
    let mut fronts = [front(1, MODERN, &mut back), front(2, MODERN, &mut back)];
    for (front, schema) in fronts.iter_mut().zip(["one", "two"]) {
        let there = s::ok_with(1, IDLE, 0, &[s::schema_change(schema), s::state_change()].concat());
        let mut elsewhere = common::back(8);
        exchange(front, &mut elsewhere, &c::query(&format!("USE {schema}")), &there);
    }
    // The first one's read names its schema, as a function of another schema makes a server do, when the
    // second one's is on its way behind a change of schema.
    let sent = send(&mut fronts[0], &mut back, 1, &c::query("SELECT a FROM t"));
    assert_eq!(asked(&sent.to_server), ["InitDb one"]);
    let got = receive(&mut back, Some(&mut fronts[0]), &s::ok(IDLE));
    assert_eq!(asked(&got.to_server), ["SELECT a FROM t"]);
    let sent = send(&mut fronts[1], &mut back, 2, &c::query("SELECT b FROM t"));
    assert_eq!(asked(&sent.to_server), ["InitDb two"]);
    let mut reply = s::packet(1, &[1]);
    reply.extend(s::definition(2, "a"));
    reply.extend(s::end_with(3, IDLE, 0, &s::schema_change("one")));
    assert_eq!(receive(&mut back, Some(&mut fronts[0]), &reply).done, [(1, Boundary::Idle)]);
    receive(&mut back, Some(&mut fronts[1]), &s::ok(IDLE));
    receive(&mut back, Some(&mut fronts[1]), &s::result(COLUMNS, ROWS));
    let sent = send(&mut fronts[0], &mut back, 1, &c::query("INSERT INTO w VALUES (1)"));
    assert_eq!(asked(&sent.to_server), ["InitDb one"]);
}

#[test]
fn a_difference_that_is_refused_is_the_requests_error() {
    let (mut one, mut two) = (back(7), back(8));
    let mut a = front(1, MODERN, &mut one);
    exchange(&mut a, &mut one, &c::query("USE other"), &s::ok_with(1, IDLE, 0, &s::schema_change("other")));
    send(&mut a, &mut two, 1, &c::query("DELETE FROM t"));
    let got = receive(&mut two, Some(&mut a), &s::err(1, 1044, "Access denied for user"));
    assert_eq!(error_in(&got.to_client), (1044, "Access denied for user".to_owned()));
    assert!(!asked(&got.to_server).contains(&"DELETE FROM t".to_owned()), "it must not run elsewhere");
}

#[test]
fn who_stands_in_a_schema_that_is_gone_has_none() {
    let (mut one, mut two) = (back(7), back(8));
    let mut a = front(1, MODERN, &mut one);
    exchange(&mut a, &mut one, &c::query("USE other"), &s::ok_with(1, IDLE, 0, &s::schema_change("other")));
    send(&mut a, &mut two, 1, &c::query("SET @x = 1"));
    let got = receive(&mut two, Some(&mut a), &s::err(1, 1049, "Unknown database 'other'"));
    assert!(got.to_client.is_empty() && a.pins().is_empty(), "it has not run");
    assert_eq!(asked(&got.to_server), ["ChangeUser"]);
}

#[test]
fn code_that_is_not_in_the_text_pins_even_when_it_fails() {
    for text in ["CALL p()", "SELECT own(1)", "DO own()", "INSERT INTO t VALUES (own())", "SELECT app.own()"]
    {
        let mut back = back(7);
        let mut a = front(1, MODERN, &mut back);
        send(&mut a, &mut back, 1, &c::query(text));
        receive(&mut back, Some(&mut a), &[s::err(1, 1644, "Signalled"), s::ok(IDLE)].concat());
        assert!(a.pins().contains(Pin::Code), "{text}");
    }
}

#[test]
fn an_error_of_weir_is_numbered_behind_all_packets_of_its_request() {
    let (mut one, mut two) = (back(7), back(8));
    let mut a = front(1, MODERN, &mut one);
    exchange(&mut a, &mut one, &c::query("USE other"), &s::ok_with(1, IDLE, 0, &s::schema_change("other")));
    let mut text = b"\x03DELETE FROM t WHERE a = '".to_vec();
    text.resize(MAX_PAYLOAD_BYTES + 4, b'x');
    text.push(b'\'');
    send(&mut a, &mut two, 1, &s::packet(0, &text));
    let got = receive(&mut two, Some(&mut a), &s::err(1, 1044, "Access denied for user"));
    assert_eq!(error_in(&got.to_client).0, 1044);
    assert_eq!(Header::read(&got.to_client).map(|header| header.seq), Some(2));
}

#[test]
fn what_cannot_move_pins() {
    for (text, pin) in [
        ("CREATE TEMPORARY TABLE x (a INT)", Pin::TemporaryTable),
        ("SELECT GET_LOCK('x', 1)", Pin::SessionLock),
        ("LOCK TABLES t WRITE", Pin::SessionLock),
        ("SET @`x ` = 1", Pin::UserVariable),
        ("SELECT @`x ` := 1", Pin::UserVariable),
        ("SET @@some_plugin_variable = 1", Pin::Setting),
        ("PREPARE x FROM 'SELECT 1'", Pin::SqlPrepare),
    ] {
        let mut back = back(7);
        let mut front = front(1, MODERN, &mut back);
        let reply = if text.starts_with("SELECT") { s::result(&["x"], &[&["1"]]) } else { s::ok(IDLE) };
        exchange(&mut front, &mut back, &c::query(text), &reply);
        assert!(front.pins().contains(pin), "{text}: {:?}", front.pins());
        let sent = send(&mut front, &mut back, 1, &c::ping());
        assert!(matches!(sent.found[..], [Found::Request { needs, .. }] if !needs.shareable));
    }
}

#[test]
fn a_lock_that_was_freed_pins_no_more() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    for (text, pinned) in [("SELECT GET_LOCK('x', 1)", true), ("SELECT RELEASE_ALL_LOCKS()", false)] {
        exchange(&mut front, &mut back, &c::query(text), &s::result(&["x"], &[&["1"]]));
        assert_eq!(front.pins().contains(Pin::SessionLock), pinned, "{text}");
    }
}

/// A database with one procedure.
fn with_procedure(name: &str, body: &str) -> std::sync::Arc<Knowledge> {
    let mut builder = Builder::new(weir_sql::Dialect::MYSQL);
    builder.function(Function {
        name: name.as_bytes(),
        language: Language::Routine,
        volatility: Volatility::Volatile,
        extension: b"",
        body: body.as_bytes(),
    });
    Knowledge::settled(builder.finish())
}

#[test]
fn a_lock_of_code_that_fails_stays_its_client_s() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    let body = "BEGIN FLUSH TABLES t WITH READ LOCK; SIGNAL SQLSTATE '45000'; END";
    front.know(&with_procedure("p", body));
    back.know(&with_procedure("p", body));
    send(&mut front, &mut back, 1, &c::query("CALL p()"));
    receive(&mut back, Some(&mut front), &[s::err(1, 1644, "Signalled"), s::ok(IDLE)].concat());
    assert!(front.pins().contains(Pin::SessionLock));
    send(&mut front, &mut back, 1, &c::query("UNLOCK TABLES"));
    receive(&mut back, Some(&mut front), &s::ok(IDLE));
    assert!(!front.pins().contains(Pin::SessionLock));
}

#[test]
fn a_temporary_table_is_that_of_the_schema_its_statement_was_prepared_in() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    exchange(&mut front, &mut back, &c::query("USE a"), &s::ok_with(1, IDLE, 0, &s::schema_change("a")));
    send(&mut front, &mut back, 1, &c::prepare("CREATE TEMPORARY TABLE tt (a INT)"));
    receive(&mut back, Some(&mut front), &s::prepared(1, 0));
    exchange(&mut front, &mut back, &c::query("USE b"), &s::ok_with(1, IDLE, 0, &s::schema_change("b")));
    assert_eq!(asked(&send(&mut front, &mut back, 1, &c::execute(1)).to_server)[0], "InitDb a");
    assert_eq!(receive(&mut back, Some(&mut front), &s::ok(IDLE)).to_server, c::execute(1));
    receive(&mut back, Some(&mut front), &s::ok(IDLE));
    assert!(front.pins().contains(Pin::TemporaryTable));
    for (text, pinned) in [("DROP TABLE IF EXISTS tt", true), ("DROP TABLE a.tt", false)] {
        // In front of the first one goes the way back to the schema.
        let mut open = send(&mut front, &mut back, 1, &c::query(text)).to_server;
        while !open.is_empty() {
            open = receive(&mut back, Some(&mut front), &s::ok(IDLE)).to_server;
        }
        assert_eq!(front.pins().contains(Pin::TemporaryTable), pinned, "{text}");
    }
}

#[test]
fn mariadb_s_transactions_of_xa_end_with_their_server_and_not_by_a_reset() {
    let mut back = back_with(7, connect_params(None), "11.4.2-MariaDB");
    back.know(&knowledge());
    let mut front = front(1, MODERN, &mut back);
    exchange(&mut front, &mut back, &c::query("XA START 'x'"), &s::ok(OPEN));
    assert!(back.is_never_reset());
    exchange(&mut front, &mut back, &c::query("XA END 'x'"), &s::ok(OPEN));
    exchange(&mut front, &mut back, &c::query("XA PREPARE 'x'"), &s::ok(IDLE));
    assert!(back.is_never_reset() && !back.is_broken());
    send(&mut front, &mut back, 1, &c::command(Command::ResetConnection, &[]));
    receive(&mut back, Some(&mut front), &[s::ok(IDLE), s::ok(IDLE)].concat());
    assert!(back.is_broken() && front.pins().is_empty());
}

#[test]
fn a_reset_begins_with_the_global_settings_of_now() {
    let params = connect_params(None);
    let changes = params.changes.clone();
    let mut back = back_with(7, params, "9.7.4");
    back.know(&knowledge());
    let mut front = front(1, MODERN, &mut back);
    let reset = c::command(Command::ResetConnection, &[]);
    let mut early = common::front(2, MODERN, &mut back);
    assert_eq!(send(&mut early, &mut back, 2, &reset).to_server, [0; 0], "nothing has changed");
    changes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let sent = send(&mut front, &mut back, 1, &reset);
    assert_eq!(asked(&sent.to_server)[0], "ResetConnection");
    let got = receive(&mut back, Some(&mut front), &[s::ok(IDLE), s::ok(IDLE)].concat());
    let questions = asked(&got.to_server);
    assert!(got.to_client == s::ok(IDLE) && questions[0].starts_with("SELECT @@session.autocommit"));
    let names: Vec<&str> =
        questions[0].trim_start_matches("SELECT ").trim_end_matches(" LIMIT 1").split(',').collect();
    let values: Vec<&str> = names
        .iter()
        .map(|name| match *name {
            "@@session.sql_mode" => "ANSI",
            "@@session.time_zone" => "SYSTEM",
            "@@session.transaction_isolation" => "REPEATABLE-READ",
            "@@session.lc_time_names" => "en_US",
            "@@session.default_storage_engine" => "InnoDB",
            _ => "1",
        })
        .collect();
    let got = receive(&mut back, Some(&mut front), &s::result(&names, &[&values]));
    assert_eq!(got.done, [(1, Boundary::Idle)]);
    assert!(front.pins().is_empty());
    // It takes what it has begun with to others.
    let mut other = common::back(8);
    let sent = send(&mut front, &mut other, 1, &c::query("SELECT a, b FROM t"));
    let said = asked(&sent.to_server).join(";");
    assert!(said.contains("sql_mode='ANSI'") && !said.contains("en_US"), "{said}");
}

#[test]
fn a_reset_lets_go_of_all_pins() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    exchange(&mut front, &mut back, &c::query("SET @`x ` = 1"), &s::ok(IDLE));
    let sent = send(&mut front, &mut back, 1, &c::command(Command::ResetConnection, &[]));
    let questions = asked(&sent.to_server);
    assert_eq!(questions[0], "ResetConnection");
    assert!(questions[1].starts_with("SET SESSION session_track_schema=2-("), "the trackers again");
    let got = receive(&mut back, Some(&mut front), &[s::ok(IDLE), s::ok(IDLE)].concat());
    assert_eq!((got.to_client, got.done), (s::ok(IDLE), vec![(1, Boundary::Idle)]));
    assert!(front.pins().is_empty() && back.is_reusable());
    // Without pins there is nothing to reset on any server.
    let sent = send(&mut front, &mut back, 1, &c::command(Command::ResetConnection, &[]));
    assert_eq!((sent.to_client, sent.to_server), (s::ok(IDLE), vec![]));
}

#[test]
fn behind_a_reset_no_setting_of_the_client_before_is_taken_back() {
    let mut back = back(7);
    let (mut a, mut b) = (front(1, MODERN, &mut back), front(2, MODERN, &mut back));
    let changed = s::ok_with(1, IDLE, 0, &s::state_change());
    exchange(&mut a, &mut back, &c::query("SET innodb_strict_mode = 0"), &changed);
    back.reset(&mut Vec::new());
    receive(&mut back, None, &s::ok(IDLE).repeat(2));
    let sent = send(&mut b, &mut back, 2, &c::query("SELECT a FROM t"));
    let said = asked(&sent.to_server);
    // MySQL refuses it to who has lost the privilege.
    assert!(said[0].contains("autocommit=1") && !said[0].contains("innodb_strict_mode"), "{said:?}");
}

#[test]
fn what_a_client_s_own_reset_leaves_stays_with_it() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    exchange(&mut front, &mut back, &c::query("SET optimizer_trace = 'enabled=on'"), &s::ok(IDLE));
    let sent = send(&mut front, &mut back, 1, &c::command(Command::ResetConnection, &[]));
    assert!(asked(&sent.to_server)[1].contains("OPTIMIZER_TRACE"));
    let refused = s::err(1, 1231, "can't be set to the value of '2'");
    let got = receive(&mut back, Some(&mut front), &[s::ok(IDLE), refused].concat());
    assert_eq!((got.to_client, got.done), (s::ok(IDLE), vec![(1, Boundary::Idle)]));
    assert!(front.pins().contains(Pin::Setting));
    assert!(!back.is_broken() && !back.is_reusable(), "its next client comes behind a reset of Weir's");
    // The trackers are not on.
    let sent = send(&mut front, &mut back, 1, &c::query("SELECT 1"));
    assert!(asked(&sent.to_server)[0].starts_with("SET SESSION session_track_schema=ON"));
}

#[test]
fn an_option_that_is_not_there_is_malformed() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    for option in [&[][..], &[0]] {
        let sent = send(&mut front, &mut back, 1, &c::command(Command::SetOption, option));
        let said = common::error_in(&sent.to_client);
        assert_eq!((said.0, sent.to_server), (1835, vec![]));
    }
    let sent = send(&mut front, &mut back, 1, &c::command(Command::SetOption, &[2, 0]));
    assert_eq!(common::error_in(&sent.to_client).0, 1047);
}

#[test]
fn weirs_own_requests_answer_to_nobody() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    exchange(&mut front, &mut back, &c::query("BEGIN"), &s::ok(OPEN));
    let mut out = Vec::new();
    back.rollback(&mut out);
    back.reset(&mut out);
    back.check(&mut out);
    let questions = asked(&out);
    assert_eq!(questions.len(), 4);
    assert_eq!([&questions[0], &questions[1], &questions[3]], ["ROLLBACK", "ResetConnection", "Ping"]);
    assert!(!back.is_reusable());
    let got = receive(&mut back, Some(&mut front), &s::ok(IDLE).repeat(4));
    assert!(got.to_client.is_empty() && got.to_server.is_empty());
    assert_eq!(got.done, [(0, Boundary::Idle); 3]);
    assert!(back.is_reusable());
    let mut out = Vec::new();
    back.check(&mut out);
    receive(&mut back, None, &s::err(1, 1053, "shutdown"));
    let got = receive(&mut back, None, &s::ok(IDLE));
    assert!(got.done.len() <= 1 && !back.is_reusable(), "a failed check spoils the server");
}
