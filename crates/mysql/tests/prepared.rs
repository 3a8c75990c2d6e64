//! Prepared statements against packets of a server written by hand: where they are prepared, under which
//! numbers, and what moves with their client.

mod common;

use common::{
    COLUMNS, IDLE, MODERN, OLD, OPEN, ROWS, asked, back, c, error_in, exchange, front, packets, receive, s,
    send, try_send,
};
use weir_mysql::message::{Command, status};
use weir_session::Back as _;
use weir_session::Front as _;
use weir_sql::catalogue::{Catalogue, Knowledge};
use weir_wire::{Boundary, FaultKind, Pin};

#[test]
fn a_statement_is_prepared_where_it_is_executed() {
    let (mut one, mut two) = (back(7), back(8));
    let mut a = front(1, MODERN, &mut one);
    let text = "SELECT c FROM t WHERE a = ?";
    let heard = exchange(&mut a, &mut one, &c::prepare(text), &s::prepared(70, 1));
    assert_eq!(heard, s::prepared(1, 1), "under a number of Weir's own");
    assert!(a.pins().is_empty());
    let reply = s::result(&["c"], &[&["x"]]);
    let sent = send(&mut a, &mut one, 1, &c::execute_one(1, true, 5));
    assert_eq!(sent.to_server, c::execute_one(70, true, 5));
    assert_eq!(receive(&mut one, Some(&mut a), &reply).to_client, reply);
    // Elsewhere it has another number, and the types are said again.
    let sent = send(&mut a, &mut two, 1, &c::execute_one(1, false, 6));
    assert_eq!(asked(&sent.to_server), [format!("StmtPrepare {text}")]);
    let got = receive(&mut two, Some(&mut a), &s::prepared(80, 1));
    assert_eq!((got.to_server, got.to_client), (c::execute_one(80, true, 6), vec![]));
    let got = receive(&mut two, Some(&mut a), &reply);
    assert_eq!((got.to_client, got.done), (reply.clone(), vec![(1, Boundary::Idle)]));
    let sent = send(&mut a, &mut two, 1, &c::execute_one(1, false, 7));
    assert_eq!(sent.to_server, c::execute_one(80, false, 7));
}

#[test]
fn a_statement_that_cannot_be_prepared_elsewhere_is_its_executions_error() {
    let (mut one, mut two) = (back(7), back(8));
    let mut a = front(1, MODERN, &mut one);
    exchange(&mut a, &mut one, &c::prepare("SELECT c FROM t"), &s::prepared(70, 0));
    send(&mut a, &mut two, 1, &c::execute(1));
    let got = receive(&mut two, Some(&mut a), &s::err(1, 1146, "no such table"));
    assert_eq!(error_in(&got.to_client).0, 1146);
    assert!(!asked(&got.to_server).iter().any(|question| question.starts_with("StmtExecute")));
}

#[test]
fn a_statement_from_before_the_first_schema_does_not_end_the_transaction_it_is_executed_in() {
    let (mut one, mut two) = (back(1), back(2));
    let mut a = front(7, MODERN, &mut one);
    let (plain, asks) = ("SELECT c FROM app.t", "SELECT DATABASE()");
    exchange(&mut a, &mut one, &c::prepare(plain), &s::prepared(70, 0));
    exchange(&mut a, &mut one, &c::prepare(asks), &s::prepared(71, 0));
    let used = s::ok_with(1, IDLE, 0, &s::schema_change("app"));
    exchange(&mut a, &mut one, &c::query("USE app"), &used);
    assert_eq!(asked(&send(&mut a, &mut two, 1, &c::query("BEGIN")).to_server), ["InitDb app"]);
    let got = receive(&mut two, Some(&mut a), &used);
    assert_eq!(asked(&got.to_server), ["BEGIN"]);
    receive(&mut two, Some(&mut a), &s::ok(OPEN));
    // COM_CHANGE_USER, the only way back to no schema, would roll back.
    let prepared = format!("StmtPrepare {plain}");
    assert_eq!(asked(&send(&mut a, &mut two, 1, &c::execute(1)).to_server), [prepared]);
    let got = receive(&mut two, Some(&mut a), &s::prepared(80, 0));
    assert_eq!(asked(&got.to_server), ["StmtExecute 80"]);
    let reply = s::result_at(1, &["c"], &[], OPEN, 0).0;
    assert_eq!(receive(&mut two, Some(&mut a), &reply).done.len(), 1);
    // What would say another schema is refused, and the transaction goes on.
    assert!(send(&mut a, &mut two, 1, &c::execute(2)).to_server.is_empty());
    let got = receive(&mut two, Some(&mut a), &[]);
    assert_eq!((error_in(&got.to_client).0, got.done[0].1), (1105, Boundary::InTransaction));
    assert!(!two.is_broken());
}

#[test]
fn a_text_is_prepared_anew_once_a_table_may_be_another() {
    let mut back = back(7);
    let (mut a, mut b) = (front(1, MODERN, &mut back), front(2, OLD, &mut back));
    exchange(&mut a, &mut back, &c::prepare("SELECT c FROM t WHERE a = ?"), &s::prepared(70, 1));
    common::knowledge().distrust();
    let sent = send(&mut b, &mut back, 2, &c::prepare("SELECT c FROM t WHERE a = ?"));
    assert_eq!(asked(&sent.to_server), ["StmtPrepare SELECT c FROM t WHERE a = ?"]);
    let got = receive(&mut back, Some(&mut b), &s::prepared(71, 1));
    assert_eq!(asked(&got.to_server), ["StmtClose 70"], "one copy is enough");
    let known = Knowledge::settled(Catalogue::default());
    a.know(&known);
    back.know(&known);
    let sent = send(&mut a, &mut back, 1, &c::execute_one(1, true, 5));
    assert_eq!(sent.to_server, c::execute_one(71, true, 5));
    receive(&mut back, Some(&mut a), &s::result(&["c"], &[]));
    let sent = send(&mut a, &mut back, 1, &c::prepare("SELECT c FROM t WHERE a = ?"));
    assert!(!sent.to_server.is_empty(), "nothing is known of the state in which that was said");
}

#[test]
fn one_copy_for_each_server_and_text() {
    let mut back = back(7);
    let (mut a, mut b) = (front(1, MODERN, &mut back), front(2, OLD, &mut back));
    exchange(&mut a, &mut back, &c::prepare("SELECT c FROM t WHERE a = ?"), &s::prepared(70, 1));
    let sent = send(&mut b, &mut back, 2, &c::prepare("SELECT c FROM t WHERE a = ?"));
    assert!(sent.to_server.is_empty(), "the server has it");
    let got = receive(&mut back, Some(&mut b), &[]);
    assert_eq!(got.done, [(2, Boundary::Idle)]);
    let heard = packets(&got.to_client);
    let kinds: Vec<_> = heard.iter().map(|(seq, payload)| (*seq, payload[0])).collect();
    assert_eq!(kinds, [(1, 0), (2, 3), (3, 0xFE), (4, 3), (5, 0xFE)], "with the EOFs of old");
    let sent = send(&mut b, &mut back, 2, &c::execute_one(1, true, 5));
    assert_eq!(sent.to_server, c::execute_one(70, true, 5));
    receive(&mut back, Some(&mut b), &s::result(&["c"], &[]));
}

#[test]
fn types_that_another_client_bound_are_bound_anew() {
    let mut back = back(7);
    let (mut a, mut b) = (front(1, MODERN, &mut back), front(2, MODERN, &mut back));
    let reply = s::result(&["c"], &[]);
    exchange(&mut a, &mut back, &c::prepare("SELECT c FROM t WHERE a = ?"), &s::prepared(70, 1));
    send(&mut a, &mut back, 1, &c::execute_one(1, true, 5));
    receive(&mut back, Some(&mut a), &reply);
    send(&mut b, &mut back, 2, &c::prepare("SELECT c FROM t WHERE a = ?"));
    receive(&mut back, Some(&mut b), &[]);
    let fixed = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    let of_four_bytes = c::command(Command::StmtExecute, &[&fixed[..], &[1, 3, 0, 5, 0, 0, 0]].concat());
    send(&mut b, &mut back, 2, &of_four_bytes);
    receive(&mut back, Some(&mut b), &reply);
    let sent = send(&mut a, &mut back, 1, &c::execute_one(1, false, 6));
    assert_eq!(sent.to_server, c::execute_one(70, true, 6));
}

#[test]
fn a_close_is_not_the_servers_business_while_others_may_have_the_same_text() {
    let mut back = back(7);
    let (mut a, mut b) = (front(1, MODERN, &mut back), front(2, MODERN, &mut back));
    exchange(&mut a, &mut back, &c::prepare("SELECT c FROM t"), &s::prepared(70, 0));
    send(&mut b, &mut back, 2, &c::prepare("SELECT c FROM t"));
    receive(&mut back, Some(&mut b), &[]);
    let sent = send(&mut a, &mut back, 1, &c::close(1));
    assert!(sent.to_server.is_empty() && sent.to_client.is_empty(), "no reply, and the copy stays");
    let sent = send(&mut a, &mut back, 1, &c::execute(1));
    assert_eq!(error_in(&sent.to_client).0, 1243);
    let sent = send(&mut b, &mut back, 2, &c::execute(1));
    assert_eq!(sent.to_server, c::execute(70));
}

#[test]
fn a_server_never_has_more_statements_than_its_bound() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    let mut closed = Vec::new();
    for n in 0..12_u32 {
        send(&mut front, &mut back, 1, &c::prepare(&format!("SELECT c FROM t{n}")));
        let got = receive(&mut back, Some(&mut front), &s::prepared(100 + n, 0));
        closed.extend(asked(&got.to_server));
    }
    assert_eq!(closed, ["StmtClose 100", "StmtClose 101"], "those that were used least recently");
    let sent = send(&mut front, &mut back, 1, &c::execute(1));
    assert_eq!(asked(&sent.to_server), ["StmtPrepare SELECT c FROM t0"]);
}

#[test]
fn long_data_goes_with_its_execution() {
    let (mut one, mut two) = (back(7), back(8));
    let mut a = front(1, MODERN, &mut one);
    exchange(&mut a, &mut one, &c::prepare("INSERT INTO t VALUES (?)"), &s::prepared(70, 1));
    let bytes = [c::long_data(1, b"first "), c::long_data(1, b"second")].concat();
    let sent = send(&mut a, &mut one, 1, &bytes);
    assert!(sent.to_server.is_empty() && sent.to_client.is_empty(), "kept until it is known where to");
    assert!(a.pins().is_empty());
    send(&mut a, &mut two, 1, &c::execute_long(1));
    let got = receive(&mut two, Some(&mut a), &s::prepared(80, 1));
    let expected = [c::long_data(80, b"first "), c::long_data(80, b"second"), c::execute_long(80)].concat();
    assert_eq!(got.to_server, expected);
    let got = receive(&mut two, Some(&mut a), &s::inserted(1, 0));
    assert_eq!(got.done, [(1, Boundary::Idle)]);
    // Spent: the next execution has none, and does not need a copy of its own.
    send(&mut a, &mut two, 1, &c::execute_one(1, true, 5));
    let got = receive(&mut two, Some(&mut a), &s::prepared(81, 1));
    assert_eq!(got.to_server, c::execute_one(81, true, 5));
}

#[test]
fn an_execution_behind_one_with_long_data_is_on_another_copy() {
    let mut server = back(7);
    let (mut a, mut b) = (front(1, MODERN, &mut server), front(2, MODERN, &mut server));
    exchange(&mut a, &mut server, &c::prepare("SELECT ?"), &s::prepared(70, 1));
    send(&mut b, &mut server, 2, &c::prepare("SELECT ?"));
    receive(&mut server, Some(&mut b), &[]);
    send(&mut a, &mut server, 1, &[c::long_data(1, b"for no parameter"), c::execute_long(1)].concat());
    receive(&mut server, Some(&mut a), &s::prepared(80, 1));
    let sent = send(&mut b, &mut server, 2, &c::execute_one(1, true, 5));
    assert_eq!(sent.to_server, c::execute_one(70, true, 5), "it may be sent before the other is answered");
    let got = receive(&mut server, Some(&mut a), &s::err(1, 1210, "Incorrect arguments"));
    assert_eq!(error_in(&got.to_client).0, 1210);
    assert!(a.pins().contains(Pin::Prepared) && !b.pins().contains(Pin::Prepared));
}

#[test]
fn more_long_data_than_is_kept_goes_ahead_and_pins() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    exchange(&mut front, &mut back, &c::prepare("INSERT INTO t VALUES (?)"), &s::prepared(70, 1));
    let data = vec![b'x'; 60_000];
    let mut ahead = Vec::new();
    for _ in 0..8 {
        let sent = send(&mut front, &mut back, 1, &c::long_data(1, &data));
        let prepares = asked(&sent.to_server).iter().any(|question| question.starts_with("StmtPrepare"));
        let answer = if prepares { s::prepared(71, 1) } else { Vec::new() };
        ahead.extend(sent.to_server);
        ahead.extend(receive(&mut back, Some(&mut front), &answer).to_server);
    }
    assert!(front.pins().contains(Pin::Prepared));
    // It has a copy of its own, for nobody else's execution to spend.
    let questions = asked(&ahead);
    assert_eq!(questions[0], "StmtPrepare INSERT INTO t VALUES (?)");
    assert_eq!(questions[1..], ["StmtSendLongData 71"; 8], "what was kept first, then as it comes");
    let sent = send(&mut front, &mut back, 1, &c::execute_long(1));
    assert_eq!(sent.to_server, c::execute_long(71));
    receive(&mut back, Some(&mut front), &s::inserted(1, 0));
    assert!(front.pins().is_empty(), "{:?}", front.pins());
}

#[test]
fn temporary_tables_leave_what_is_known_of_the_catalogue() {
    for (text, unsettles) in [
        ("CREATE TEMPORARY TABLE a (n int)", false),
        ("CREATE OR REPLACE TEMPORARY TABLE a (n int)", false),
        ("DROP TEMPORARY TABLE a", false),
        ("/* so */ drop temporary table if exists a, b;", false),
        ("DROP TABLE a", true),
        ("CREATE TABLE a (n int)", true),
        ("CREATE TEMPORARY TABLE a (n int); DROP FUNCTION f", true),
        ("DROP TEMPORARY TABLE a /*!; DROP FUNCTION f */", true),
        ("CREATE TABLE temporary SELECT 1", true),
    ] {
        for prepared in [false, true] {
            let known = Knowledge::settled(Catalogue::default());
            let mut back = back(7);
            let mut front = front(1, MODERN, &mut back);
            back.know(&known);
            front.know(&known);
            let state = known.state();
            if prepared && !text.contains(';') {
                send(&mut front, &mut back, 1, &c::prepare(text));
                receive(&mut back, Some(&mut front), &s::prepared(1, 0));
                send(&mut front, &mut back, 1, &c::execute(1));
            } else {
                send(&mut front, &mut back, 1, &c::query(text));
            }
            assert_eq!(known.state() != state, unsettles, "{text}");
        }
    }
}

#[test]
fn what_ran_before_it_was_found_that_others_have_changed_the_catalogue_goes_with_a_reset() {
    let known = Knowledge::settled(Catalogue::default());
    let mut back = back(7);
    back.know(&known);
    assert!(!back.wants_reset());
    assert!(!known.begin_reading(1).unwrap().confirm(b"another", 2));
    assert!(back.wants_reset());
    back.reset(&mut Vec::new());
    assert!(!back.wants_reset(), "it is on its way");
}

#[test]
fn data_sent_ahead_is_not_executed_where_it_is_not() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    exchange(
        &mut front,
        &mut back,
        &c::prepare("INSERT INTO t VALUES (ROW_COUNT(), ?)"),
        &s::prepared(70, 1),
    );
    let data = vec![b'x'; 60_000];
    for _ in 0..8 {
        let sent = send(&mut front, &mut back, 1, &c::long_data(1, &data));
        let prepares = asked(&sent.to_server).iter().any(|question| question.starts_with("StmtPrepare"));
        let answer = if prepares { s::prepared(71, 1) } else { Vec::new() };
        receive(&mut back, Some(&mut front), &answer);
    }
    let refused = try_send(&mut front, &mut back, 1, &c::execute_long(1));
    assert_eq!(refused.unwrap_err().kind, FaultKind::NotAllowed);
}

#[test]
fn last_insert_id_moves_with_its_client() {
    let (mut one, mut two) = (back(7), back(8));
    let mut a = front(1, MODERN, &mut one);
    inserts(&mut a, &mut one, "INSERT INTO t VALUES (1)", 42, &["42", "0"]);
    let sent = send(&mut a, &mut two, 1, &c::query("SELECT LAST_INSERT_ID()"));
    assert_eq!(asked(&sent.to_server), ["SET last_insert_id=42"]);
    let got = receive(&mut two, Some(&mut a), &s::ok(IDLE));
    assert_eq!(asked(&got.to_server), ["SELECT LAST_INSERT_ID()"]);
}

/// An INSERT whose OK says this id, and the answer to the question that follows.
fn inserts(front: &mut weir_mysql::Front, back: &mut weir_mysql::Back, text: &str, id: u64, answer: &[&str]) {
    let sent = send(front, back, 1, &c::query(text));
    assert_eq!(sent.to_server, c::query(text), "nothing goes ahead");
    let got = receive(back, Some(front), &s::inserted(1, id));
    let question = if answer.len() == 1 {
        "SELECT LAST_INSERT_ID() LIMIT 1"
    } else {
        "SELECT LAST_INSERT_ID(), LAST_INSERT_ID(0) LIMIT 1"
    };
    assert_eq!((asked(&got.to_server), got.done.len()), (vec![question.to_owned()], 0));
    let got = receive(back, Some(front), &s::result(&COLUMNS[..answer.len()], &[answer]));
    assert_eq!((got.to_client.len(), got.done.len()), (0, 1));
}

#[test]
fn an_id_that_was_given_is_not_the_one_that_was_made() {
    let mut back = back(7);
    let (mut a, mut b) = (front(1, MODERN, &mut back), front(2, MODERN, &mut back));
    inserts(&mut a, &mut back, "INSERT INTO t VALUES (NULL)", 42, &["42", "0"]);
    // Another client's id is gone from the session when this one's INSERT runs.
    inserts(&mut b, &mut back, "INSERT INTO t VALUES (NULL)", 43, &["43", "0"]);
    inserts(&mut a, &mut back, "INSERT INTO t VALUES (500)", 500, &["0", "0"]);
    let sent = send(&mut a, &mut back, 1, &c::query("SELECT LAST_INSERT_ID()"));
    assert_eq!(asked(&sent.to_server), ["SET last_insert_id=42"]);
    receive(&mut back, Some(&mut a), &s::ok(IDLE));
    receive(&mut back, Some(&mut a), &s::result(&["id"], &[&["42"]]));
    // Who asks finds its own there.
    inserts(&mut a, &mut back, "INSERT INTO t VALUES (NULL)", 44, &["44"]);
    exchange(&mut a, &mut back, &c::query("SELECT LAST_INSERT_ID()"), &s::result(&["id"], &[&["44"]]));
}

#[test]
fn in_a_transaction_the_session_is_asked_only_when_the_client_asks() {
    let mut back = back(7);
    let mut a = front(1, MODERN, &mut back);
    exchange(&mut a, &mut back, &c::query("BEGIN"), &s::ok(OPEN));
    let mut inserted = s::inserted(1, 500);
    let status_at = inserted.len() - 4;
    inserted[status_at] |= OPEN as u8;
    send(&mut a, &mut back, 1, &c::query("INSERT INTO t VALUES (500)"));
    let got = receive(&mut back, Some(&mut a), &inserted);
    assert!(got.to_server.is_empty() && got.done == [(1, Boundary::InTransaction)], "{got:?}");
    let sent = send(&mut a, &mut back, 1, &c::query("SELECT LAST_INSERT_ID() AS id"));
    assert_eq!(asked(&sent.to_server), ["SELECT LAST_INSERT_ID() LIMIT 1"]);
    let got = receive(&mut back, Some(&mut a), &s::result(&["id"], &[&["0"]]));
    assert_eq!(asked(&got.to_server), ["SELECT LAST_INSERT_ID() AS id"]);
}

#[test]
fn what_asks_behind_a_statement_of_its_own_text_asks_the_server() {
    let (mut one, mut two) = (back(7), back(8));
    let mut a = front(1, MODERN, &mut one);
    exchange(&mut a, &mut one, &c::query("SELECT a, b FROM t"), &s::result(COLUMNS, ROWS));
    let text = c::query("UPDATE t SET a = 1; SELECT ROW_COUNT()");
    let (rows, _) = s::result_at(2, &["n"], &[&["5"]], IDLE, 0);
    exchange(&mut a, &mut two, &text, &[s::ok(IDLE | status::MORE_RESULTS), rows].concat());
    let sent = send(&mut a, &mut one, 1, &c::query("SELECT ROW_COUNT(); SELECT ROW_COUNT()"));
    assert_eq!(
        asked(&sent.to_server),
        ["SELECT CAST(-00000000000000000001 AS SIGNED) AS `ROW_COUNT()`; SELECT ROW_COUNT()"]
    );
}
