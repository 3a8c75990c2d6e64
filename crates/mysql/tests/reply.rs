//! `Front` and `Back` against packets of a server written by hand: what reaches the client, what the server
//! is asked, and what moves with a client to another server.

mod common;

use common::{
    COLUMNS, IDLE, MODERN, OLD, OPEN, ROWS, asked, back, back_with, c, connect_params, error_in, exchange,
    front, knowledge, packets, receive, s, send, try_receive,
};
use weir_mysql::frame::{Header, MAX_PAYLOAD_BYTES};
use weir_mysql::message::{Capabilities, Command, status};
use weir_session::Back as _;
use weir_session::Front as _;
use weir_session::login::KillOutcome;
use weir_sql::catalogue::{Catalogue, Knowledge};
use weir_wire::{Boundary, Fault, FaultKind, Found, INTERNAL};

/// A failed statement and the question about its warnings that follows; what the client heard.
fn fails(front: &mut weir_mysql::Front, back: &mut weir_mysql::Back, request: &[u8], pings: bool) -> Vec<u8> {
    let sent = send(front, back, 1, request);
    assert_eq!(sent.to_server, request);
    let mut got = receive(back, Some(front), &s::err(1, 1146, "no such table"));
    let heard = got.to_client;
    if pings {
        assert_eq!((asked(&got.to_server), got.done), (vec!["Ping".to_owned()], vec![]));
        got = receive(back, Some(front), &s::ok(IDLE));
    }
    let mut wanted = vec!["Ping".to_owned(), "SHOW WARNINGS".to_owned()];
    assert_eq!((asked(&got.to_server), got.done), (wanted.split_off(usize::from(pings)), vec![]));
    if !pings {
        receive(back, Some(front), &s::ok(IDLE));
    }
    let got = receive(back, Some(front), &s::warnings("1146", "no such table"));
    assert_eq!((got.to_client, got.done), (vec![], vec![(1, Boundary::Idle)]));
    heard
}

// ---- Results ---------------------------------------------------------------------------------------------

#[test]
fn a_text_goes_through_unchanged_to_a_client_with_the_same_capabilities() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    let sent = send(&mut front, &mut back, 1, &c::query("SELECT a, b FROM t"));
    assert_eq!(sent.to_server, c::query("SELECT a, b FROM t"));
    let reply = s::result(COLUMNS, ROWS);
    let got = receive(&mut back, Some(&mut front), &reply);
    assert_eq!((got.forwarded, &got.to_client), (reply.len(), &reply));
    assert_eq!(got.done, [(1, Boundary::Idle)]);
    assert!(back.is_reusable() && front.pins().is_empty());
}

#[test]
fn an_old_client_gets_its_eofs_and_numbers_that_follow_each_other() {
    let mut back = back(7);
    let mut front = front(1, OLD, &mut back);
    for rows in [ROWS, &[]] {
        let heard =
            exchange(&mut front, &mut back, &c::query("SELECT a, b FROM t"), &s::result(COLUMNS, rows));
        assert_eq!(heard, s::old_result_at(1, COLUMNS, rows, IDLE, 0).0);
    }
    let changed = s::ok_with(1, IDLE, 0, &s::state_change());
    let heard = exchange(&mut front, &mut back, &c::query("SET sql_safe_updates = 1"), &changed);
    assert_eq!(heard, s::ok(IDLE), "no changes for who does not know them");
}

#[test]
fn numbers_of_packets_begin_again_behind_255() {
    let row: &[&str] = &["1", "one"];
    let rows = vec![row; 600];
    let mut back = back(7);
    let mut front = front(1, OLD, &mut back);
    // The builder counts no further than 255, so the reply is built by hand.
    let number = |n: usize| n as u8;
    let mut reply = s::packet(1, &[1]);
    reply.extend(s::definition(2, "a"));
    let mut expected = reply.clone();
    expected.extend(s::eof(3, IDLE, 0));
    for n in 0..rows.len() {
        reply.extend(s::row(number(3 + n), &["x"]));
        expected.extend(s::row(number(4 + n), &["x"]));
    }
    reply.extend(s::end(number(603), IDLE, 0));
    expected.extend(s::eof(number(604), IDLE, 0));
    assert_eq!(exchange(&mut front, &mut back, &c::query("SELECT a FROM t"), &reply), expected);
}

#[test]
fn several_results_of_one_text() {
    let more = IDLE | status::MORE_RESULTS;
    let (mut reply, seq) = s::result_at(1, COLUMNS, ROWS, more, 0);
    reply.extend(s::ok_with(seq, more, 0, b""));
    reply.extend(s::result_at(seq + 1, &["c"], &[&["3"]], IDLE, 0).0);
    let (mut old, seq) = s::old_result_at(1, COLUMNS, ROWS, more, 0);
    old.extend(s::ok_with(seq, more, 0, b""));
    old.extend(s::old_result_at(seq + 1, &["c"], &[&["3"]], IDLE, 0).0);
    let text = c::query("SELECT a, b FROM t; DELETE FROM t WHERE a = 1; SELECT c FROM t");
    for (capabilities, expected) in [(MODERN, &reply), (OLD, &old)] {
        let mut back = back(7);
        let mut front = front(1, capabilities, &mut back);
        assert_eq!(&exchange(&mut front, &mut back, &text, &reply), expected);
    }
}

#[test]
fn a_row_of_16_mb_streams_through_with_its_trailer() {
    for (capabilities, shift) in [(MODERN, 0), (OLD, 1)] {
        let mut back = back(7);
        let mut front = front(1, capabilities, &mut back);
        let request = c::query("SELECT a FROM t");
        assert_eq!(send(&mut front, &mut back, 1, &request).to_server, request);
        let mut start = s::packet(1, &[1]);
        start.extend(s::definition(2, "a"));
        let begun = receive(&mut back, Some(&mut front), &start).to_client;
        assert_eq!(begun, start);
        // Its first byte is that of an EOF packet: it is a row all the same.
        let mut header = Vec::new();
        Header { len: MAX_PAYLOAD_BYTES, seq: 3 }.write(&mut header);
        header.push(0xFE);
        let first = receive(&mut back, Some(&mut front), &header).to_client;
        assert!(back.is_mid_message());
        let eof = if shift == 1 { s::eof(3, IDLE, 0) } else { Vec::new() };
        header[3] += shift;
        assert_eq!(first, [eof, header].concat());
        let piece = vec![0xFE; 65_536];
        let mut left = MAX_PAYLOAD_BYTES - 1;
        while left > 0 {
            let now = &piece[..left.min(piece.len())];
            assert_eq!(receive(&mut back, Some(&mut front), now).to_client, now);
            left -= now.len();
        }
        assert!(back.is_mid_message(), "it goes on in the next packet");
        let trailer = receive(&mut back, Some(&mut front), &s::packet(4, b"")).to_client;
        assert_eq!(trailer, s::packet(4 + shift, b""));
        let got = receive(&mut back, Some(&mut front), &s::end(5, IDLE, 0));
        assert_eq!(got.done, [(1, Boundary::Idle)]);
        let expected = if shift == 1 { s::eof(6, IDLE, 0) } else { s::end(5, IDLE, 0) };
        assert_eq!(got.to_client, expected);
        assert!(!back.is_mid_message() && back.is_reusable());
    }
}

// ---- Errors ----------------------------------------------------------------------------------------------

#[test]
fn an_error_belongs_to_its_own_request() {
    let mut back = back(7);
    let mut fronts = [front(1, MODERN, &mut back), front(2, MODERN, &mut back)];
    for (front, owner) in fronts.iter_mut().zip([1, 2]) {
        send(front, &mut back, owner, &c::query("SELECT a, b FROM t"));
    }
    assert_eq!((back.head(), back.queued()), (Some(1), 2));
    let error = s::err(1, 1146, "no such table");
    let got = receive(&mut back, Some(&mut fronts[0]), &error);
    assert_eq!((got.to_client, got.done), (error, vec![(1, Boundary::Idle)]));
    // The other's statement is on its way: a question of Weir's would come behind it and be about it.
    assert!(got.to_server.is_empty(), "{:?}", asked(&got.to_server));
    assert!(fronts[0].pins().is_empty());
    assert_eq!((back.head(), back.queued()), (Some(2), 1));
    let reply = s::result(COLUMNS, ROWS);
    let got = receive(&mut back, Some(&mut fronts[1]), &reply);
    assert_eq!((got.to_client, got.done), (reply, vec![(2, Boundary::Idle)]));
    assert!(back.is_reusable());
}

#[test]
fn what_a_statement_did_is_not_asked_of_a_server_where_anothers_is_on_its_way() {
    let mut back = back(7);
    let mut fronts = [front(1, MODERN, &mut back), front(2, MODERN, &mut back)];
    for (front, owner) in fronts.iter_mut().zip([1, 2]) {
        send(front, &mut back, owner, &c::query("SELECT a, b FROM t"));
    }
    receive(&mut back, Some(&mut fronts[0]), &s::result(COLUMNS, ROWS));
    let sent = send(&mut fronts[0], &mut back, 1, &c::query("SELECT FOUND_ROWS()"));
    assert_eq!(
        asked(&sent.to_server),
        ["SELECT IF(1,CAST(000000000000000000002 AS SIGNED),FOUND_ROWS()) AS `FOUND_ROWS()`"]
    );
}

#[test]
fn a_failed_statement_does_not_keep_its_server() {
    for (text, pings) in [("SELECT a FROM none", false), ("ALTER TABLE none ADD b INT", true)] {
        let mut back = back(7);
        let mut front = front(1, MODERN, &mut back);
        let heard = fails(&mut front, &mut back, &c::query(text), pings);
        assert_eq!(heard, s::err(1, 1146, "no such table"));
        assert!(front.pins().is_empty() && back.is_reusable(), "{:?}", front.pins());
        for _ in 0..2 {
            let sent = send(&mut front, &mut back, 1, &c::query("show warnings"));
            assert!(matches!(sent.found[..], [Found::Answered { .. }]));
            assert_eq!(sent.to_client, s::warnings("1146", "no such table"));
        }
        // The next statement has none. The catalogue has been read again behind ALTER.
        let known = Knowledge::settled(Catalogue::default());
        front.know(&known);
        back.know(&known);
        exchange(&mut front, &mut back, &c::query("SELECT a, b FROM t"), &s::result(COLUMNS, ROWS));
        let sent = send(&mut front, &mut back, 1, &c::query("SHOW WARNINGS"));
        assert!(matches!(sent.found[..], [Found::Request { .. }]));
    }
}

#[test]
fn a_failed_prepare_does_not_keep_its_server() {
    let mut back = back(7);
    let mut front = front(1, OLD, &mut back);
    let heard = fails(&mut front, &mut back, &c::prepare("SELECT a FROM none"), true);
    assert_eq!(heard, s::err(1, 1146, "no such table"));
    assert!(front.pins().is_empty() && back.is_reusable(), "{:?}", front.pins());
    let sent = send(&mut front, &mut back, 1, &c::query("SHOW WARNINGS"));
    let columns: &[&str] = &["Level", "Code", "Message"];
    let row: &[&str] = &["Error", "1146", "no such table"];
    assert_eq!(sent.to_client, s::old_result_at(1, columns, &[row], IDLE, 0).0);
}

#[test]
fn warnings_are_kept_too() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    send(&mut front, &mut back, 1, &c::query("INSERT INTO t VALUES ('too long')"));
    let got = receive(&mut back, Some(&mut front), &s::ok_with(1, IDLE, 1, b""));
    assert_eq!(asked(&got.to_server), ["SHOW WARNINGS"]);
    assert_eq!(got.to_client, s::ok_with(1, IDLE, 1, b""));
    // A client that goes on at once waits for the answer.
    assert_eq!(front.find(&c::ping(), &mut Vec::new()), Ok(Found::Incomplete));
    let got = receive(&mut back, Some(&mut front), &s::warnings("1265", "cut"));
    assert_eq!(got.done, [(1, Boundary::Idle)]);
    assert!(front.pins().is_empty());
    let sent = send(&mut front, &mut back, 1, &c::query("SHOW WARNINGS"));
    assert_eq!(sent.to_client, s::warnings("1265", "cut"));
}

#[test]
fn warnings_that_the_next_clients_request_has_wiped_away_are_asked_for_by_running_the_read_again() {
    let mut back = back(7);
    let mut fronts = [front(1, MODERN, &mut back), front(2, MODERN, &mut back)];
    for (front, owner) in fronts.iter_mut().zip([1, 2]) {
        send(front, &mut back, owner, &c::query(&format!("SELECT {owner}/0")));
    }
    for front in &mut fronts {
        let reply = s::result_at(1, COLUMNS, ROWS, IDLE, 1).0;
        let got = receive(&mut back, Some(front), &reply);
        assert_eq!(got.to_client, reply);
    }
    receive(&mut back, Some(&mut fronts[1]), &s::warnings("1365", "Division by 0 of the other"));
    assert!(fronts[0].pins().is_empty() && back.is_reusable());
    // As often as it asks, and only until its next statement.
    for at in 0..2 {
        let sent = send(&mut fronts[0], &mut back, 1, &c::query("SHOW WARNINGS"));
        if at == 0 {
            assert_eq!(asked(&sent.to_server), ["SELECT 1/0"]);
            let again = s::result_at(1, COLUMNS, ROWS, IDLE, 1).0;
            let got = receive(&mut back, Some(&mut fronts[0]), &again);
            assert_eq!((asked(&got.to_server), got.to_client), (vec!["SHOW WARNINGS".to_owned()], vec![]));
        } else {
            assert_eq!(asked(&sent.to_server), ["SHOW WARNINGS"], "they are still there");
        }
        let answer = s::warnings("1365", "Division by 0");
        let got = receive(&mut back, Some(&mut fronts[0]), &answer);
        assert_eq!((got.to_client, got.done), (answer, vec![(1, Boundary::Idle)]));
    }
    exchange(&mut fronts[0], &mut back, &c::query("SELECT a, b FROM t"), &s::result(COLUMNS, ROWS));
    let sent = send(&mut fronts[0], &mut back, 1, &c::query("SHOW WARNINGS"));
    assert_eq!(asked(&sent.to_server), ["SHOW WARNINGS"]);
}

#[test]
fn warnings_brought_back_are_gone_when_another_client_has_run_a_statement_there() {
    for version in ["9.7.4", "11.4.2-MariaDB"] {
        let mut back = back_with(7, connect_params(None), version);
        back.know(&knowledge());
        let mut fronts = [front(1, MODERN, &mut back), front(2, MODERN, &mut back)];
        for (front, owner) in fronts.iter_mut().zip([1, 2]) {
            send(front, &mut back, owner, &c::query(&format!("SELECT {owner}/0")));
        }
        let [mut first, mut second] = fronts;
        receive(&mut back, Some(&mut first), &s::result_at(1, COLUMNS, ROWS, IDLE, 1).0);
        receive(&mut back, Some(&mut second), &s::result(COLUMNS, ROWS));
        let answer = s::warnings("1365", "Division by 0");
        for _ in 0..2 {
            let sent = send(&mut first, &mut back, 1, &c::query("SHOW WARNINGS"));
            assert_eq!(asked(&sent.to_server), ["SELECT 1/0"], "{version}");
            receive(&mut back, Some(&mut first), &s::result_at(1, COLUMNS, ROWS, IDLE, 1).0);
            assert_eq!(receive(&mut back, Some(&mut first), &answer).to_client, answer);
            // MariaDB's warnings are gone behind this read of a table, and nothing in its answer tells.
            send(&mut second, &mut back, 2, &c::query("SELECT a, b FROM t"));
            receive(&mut back, Some(&mut second), &s::result(COLUMNS, ROWS));
        }
    }
}

#[test]
fn a_read_that_ends_otherwise_when_it_is_run_again_tells_nothing_of_the_first_time() {
    let mut back = back_with(7, connect_params(None), "11.4.2-MariaDB");
    back.know(&knowledge());
    let mut fronts = [front(1, MODERN, &mut back), front(2, MODERN, &mut back)];
    let warned = s::result_at(1, COLUMNS, ROWS, IDLE, 1).0;
    for then in [Some(s::result(COLUMNS, ROWS)), Some(s::err(1, 1146, "no such table")), None] {
        for (front, owner) in fronts.iter_mut().zip([1, 2]) {
            send(front, &mut back, owner, &c::query("SELECT a + 1, b FROM t"));
        }
        let [first, second] = &mut fronts;
        receive(&mut back, Some(first), &warned);
        receive(&mut back, Some(second), &s::result(COLUMNS, ROWS));
        let Some(then) = then else {
            // In other settings, or in another schema, it is another read.
            exchange(first, &mut back, &c::query("SET sql_warnings = 1"), &s::ok(IDLE));
            let sent = send(first, &mut back, 1, &c::query("SHOW WARNINGS"));
            assert_eq!(asked(&sent.to_server), [""; 0]);
            assert_eq!(error_in(&receive(&mut back, Some(first), &[]).to_client).0, 1105);
            return;
        };
        let sent = send(first, &mut back, 1, &c::query("SHOW WARNINGS"));
        assert_eq!(asked(&sent.to_server), ["SELECT a + 1, b FROM t"]);
        let got = receive(&mut back, Some(first), &then);
        assert_eq!((error_in(&got.to_client).0, got.done), (1105, vec![(1, Boundary::Idle)]));
        assert_eq!(asked(&got.to_server), [""; 0]);
    }
}

#[test]
fn warnings_of_before_a_prepare_that_weir_answers_are_shown_to_nobody() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    send(&mut front, &mut back, 1, &c::prepare("SELECT a FROM t"));
    receive(&mut back, Some(&mut front), &s::prepared(1, 0));
    fails(&mut front, &mut back, &c::query("SELECT a FROM none"), false);
    assert_eq!(asked(&send(&mut front, &mut back, 1, &c::prepare("SELECT a FROM t")).to_server), [""; 0]);
    receive(&mut back, Some(&mut front), &[]);
    let sent = send(&mut front, &mut back, 1, &c::query("SHOW WARNINGS"));
    assert_eq!(asked(&sent.to_server), ["SET @_weir_s_own_ = NULL"]);
}

#[test]
fn warnings_stay_for_a_statement_that_has_to_be_prepared_where_they_are() {
    let mut backs = [7, 8].map(|id| {
        let mut back = back_with(id, connect_params(None), "11.4.2-MariaDB");
        back.know(&knowledge());
        back
    });
    let [first, second] = &mut backs;
    let mut front = front(1, MODERN, first);
    send(&mut front, first, 1, &c::prepare("GET DIAGNOSTICS @n = NUMBER"));
    receive(first, Some(&mut front), &s::prepared(1, 0));
    let unknown_kind = s::variables(&[(255, 9, "binary", None)]);
    receive(first, Some(&mut front), &unknown_kind);
    // Its transaction is why nobody asks for them.
    exchange(&mut front, second, &c::query("BEGIN"), &s::ok(OPEN));
    send(&mut front, second, 1, &c::query("SELECT a FROM none"));
    receive(second, Some(&mut front), &[s::err(1, 1146, "no such table"), s::ok(OPEN)].concat());
    let sent = send(&mut front, second, 1, &c::execute(1));
    assert_eq!(asked(&sent.to_server), ["StmtPrepare GET DIAGNOSTICS @n = NUMBER"], "and nothing else");
}

#[test]
fn warnings_to_which_the_error_of_anothers_command_was_added_are_not_shown() {
    let mut back = back(7);
    let mut fronts = [front(1, MODERN, &mut back), front(2, MODERN, &mut back)];
    let [first, second] = &mut fronts;
    exchange(first, &mut back, &c::query("SELECT a, b FROM t"), &s::result(COLUMNS, ROWS));
    send(second, &mut back, 2, &c::command(Command::InitDb, b"none"));
    receive(&mut back, Some(second), &s::err(1, 1049, "Unknown database 'none'"));
    receive(&mut back, Some(second), &s::ok(IDLE));
    let sent = send(first, &mut back, 1, &c::query("SHOW WARNINGS"));
    assert_eq!(asked(&sent.to_server), ["SET @_weir_s_own_ = NULL"]);
}

#[test]
fn a_read_that_failed_among_others_is_run_again_for_show_warnings_too() {
    let mut back = back(7);
    let mut fronts = [front(1, MODERN, &mut back), front(2, MODERN, &mut back)];
    for (front, owner) in fronts.iter_mut().zip([1, 2]) {
        send(front, &mut back, owner, &c::query("SELECT a FROM none"));
    }
    let got = receive(&mut back, Some(&mut fronts[0]), &s::err(1, 1146, "no such table"));
    assert_eq!((got.to_client, got.done), (s::err(1, 1146, "no such table"), vec![(1, Boundary::Idle)]));
    fails_at_head(&mut back, &mut fronts[1]);
    let sent = send(&mut fronts[0], &mut back, 1, &c::query("SHOW COUNT(*) WARNINGS"));
    assert_eq!(asked(&sent.to_server), ["SELECT a FROM none"]);
    let got = receive(&mut back, Some(&mut fronts[0]), &s::err(1, 1146, "no such table"));
    assert_eq!((asked(&got.to_server), got.to_client), (vec!["SHOW COUNT(*) WARNINGS".to_owned()], vec![]));
}

#[test]
fn a_read_that_warned_among_others_is_run_again_in_front_of_a_prepare() {
    let mut back = back_with(7, connect_params(None), "5.5.5-10.11.14-MariaDB");
    back.know(&knowledge());
    let mut fronts = [front(1, MODERN, &mut back), front(2, MODERN, &mut back)];
    for (front, owner) in fronts.iter_mut().zip([1, 2]) {
        send(front, &mut back, owner, &c::query("SELECT a FROM t"));
    }
    let warned = s::result_at(1, &["a"], &[&["1"]], IDLE, 1).0;
    receive(&mut back, Some(&mut fronts[0]), &warned);
    receive(&mut back, Some(&mut fronts[1]), &s::result(&["a"], &[&["1"]]));
    // MariaDB may take warnings away when it prepares this: what is there is to be the client's own.
    let sent = send(&mut fronts[0], &mut back, 1, &c::prepare("DROP TEMPORARY TABLE IF EXISTS x"));
    assert_eq!(asked(&sent.to_server), ["SELECT a FROM t"]);
    let got = receive(&mut back, Some(&mut fronts[0]), &warned);
    assert_eq!((asked(&got.to_server).len(), got.to_client), (1, vec![]));
    let got = receive(&mut back, Some(&mut fronts[0]), &s::prepared(9, 0));
    assert!(!got.to_client.is_empty());
}

/// The request at the head fails, and its warnings are asked for.
fn fails_at_head(back: &mut weir_mysql::Back, front: &mut weir_mysql::Front) {
    let got = receive(back, Some(front), &s::err(1, 1146, "no such table"));
    assert_eq!(asked(&got.to_server), ["Ping", "SHOW WARNINGS"]);
    receive(back, Some(front), &s::ok(IDLE));
    receive(back, Some(front), &s::warnings("1146", "no such table"));
}

#[test]
fn a_client_that_has_its_servers_last_words_gets_nothing_else() {
    // Alone: a question of Weir's own shows whether the server closes.
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    send(&mut front, &mut back, 1, &c::query("SELECT a, b FROM t"));
    let got = receive(&mut back, Some(&mut front), &s::err(1, 4031, "inactive"));
    assert_eq!((asked(&got.to_server), got.done), (vec!["Ping".to_owned()], vec![]));
    let mut last = Vec::new();
    front.fatal(&FaultKind::ServerLost.into(), &mut last);
    assert_eq!(last, [0; 0]);
}

#[test]
fn behind_a_servers_last_words_to_one_client_nobody_elses_request_is_answered() {
    let mut back = back(7);
    let mut fronts = [front(1, MODERN, &mut back), front(2, MODERN, &mut back)];
    for (front, owner) in fronts.iter_mut().zip([1, 2]) {
        send(front, &mut back, owner, &c::query("SELECT a, b FROM t"));
    }
    let words = s::err(1, 1927, "Connection was killed");
    let lost = try_receive(&mut back, Some(&mut fronts[0]), &words).map(|got| got.done);
    assert_eq!(lost.map_err(|fault| fault.kind), Err(FaultKind::ServerLost));
}

#[test]
fn an_error_in_a_transaction_says_where_it_stands() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    exchange(&mut front, &mut back, &c::query("BEGIN"), &s::ok(OPEN));
    assert_eq!(back.boundary(), Boundary::InTransaction);
    for (flags, boundary) in [(OPEN, Boundary::InTransaction), (IDLE, Boundary::Idle)] {
        send(&mut front, &mut back, 1, &c::query("UPDATE t SET a = 1"));
        let got = receive(&mut back, Some(&mut front), &s::err(1, 1213, "deadlock"));
        assert_eq!(asked(&got.to_server), ["Ping"]);
        let got = receive(&mut back, Some(&mut front), &s::ok(flags));
        if boundary == Boundary::Idle {
            let got = receive(&mut back, Some(&mut front), &s::warnings("1213", "deadlock"));
            assert_eq!(got.done, [(1, boundary)]);
        } else {
            assert_eq!(got.done, [(1, boundary)]);
        }
    }
}

// ---- Numbers of Weir's own -------------------------------------------------------------------------------

#[test]
fn kill_is_weirs_business() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    let process_kill = c::command(Command::ProcessKill, &9_u32.to_le_bytes());
    for (bytes, target, query_only) in [
        (c::query("KILL 9"), 9, false),
        (c::query("KILL CONNECTION 9"), 9, false),
        (c::query("kill query 9"), 9, true),
        (c::query("KILL QUERY CONNECTION_ID()"), 1, true),
        (process_kill, 9, false),
    ] {
        let found = front.find(&bytes, &mut Vec::new());
        assert_eq!(found, Ok(Found::Kill { len: bytes.len(), target, query_only }));
        let mut out = Vec::new();
        front.killed(KillOutcome::NoSuchThread, &mut out);
        assert_eq!(error_in(&out), (1094, format!("Unknown thread id: {target}")));
    }
    assert!(matches!(front.find(&c::query("KILL 9"), &mut Vec::new()), Ok(Found::Kill { .. })));
    let mut out = Vec::new();
    front.killed(KillOutcome::Killed, &mut out);
    assert_eq!(out, s::ok(IDLE));
}

#[test]
fn a_kill_behind_other_statements_comes_when_they_have_run() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    let more = IDLE | status::MORE_RESULTS;
    let sent = send(&mut front, &mut back, 1, &c::query("UPDATE t SET a = 1; KILL QUERY 9"));
    assert_eq!(asked(&sent.to_server), ["UPDATE t SET a = 1; DO 0"]);
    let first = s::ok_with(1, more, 0, b"");
    let got = receive(&mut back, Some(&mut front), &[first.clone(), s::ok_with(2, IDLE, 0, b"")].concat());
    assert_eq!(got.to_client, first, "what stood in its place is not the client's");
    assert_eq!(front.take_kill(), Some((9, true)));
    assert_eq!(front.find(&c::query("SELECT 1"), &mut Vec::new()), Ok(Found::Incomplete));
    let mut out = Vec::new();
    front.killed(KillOutcome::Killed, &mut out);
    assert_eq!(out, s::ok_with(2, IDLE, 0, b""));
    // What fails before it fails alone.
    send(&mut front, &mut back, 1, &c::query("UPDATE t SET a = 1; KILL 9"));
    receive(&mut back, Some(&mut front), &s::err(1, 1146, "no such table"));
    assert_eq!(front.take_kill(), None);
}

#[test]
fn a_kill_of_nobody_of_weirs_is_the_databases() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    assert!(matches!(front.find(&c::query("KILL 9"), &mut Vec::new()), Ok(Found::Kill { .. })));
    let passed = front.pass_on();
    let sent = send(&mut front, &mut back, 1, &passed);
    assert_eq!(asked(&sent.to_server), ["KILL 9"]);
    let refused = s::err(1, 1094, "Unknown thread id: 9");
    assert_eq!(receive(&mut back, Some(&mut front), &refused).to_client, refused);
}

#[test]
fn connection_id_is_weirs() {
    let mut back = back(7);
    let mut front = front(31, MODERN, &mut back);
    let sent = send(&mut front, &mut back, 1, &c::query("SELECT CONNECTION_ID()"));
    assert_eq!(asked(&sent.to_server), ["SELECT CAST(31 AS UNSIGNED) AS `CONNECTION_ID()`"]);
    receive(&mut back, Some(&mut front), &s::result(&["CONNECTION_ID()"], &[&["31"]]));
    let sent = send(&mut front, &mut back, 1, &c::prepare("SELECT connection_id() + 1"));
    let questions = asked(&sent.to_server);
    assert!(questions[0].starts_with("StmtPrepare SELECT CAST(31 AS UNSIGNED)"), "{questions:?}");
}

// ---- LOCAL INFILE ----------------------------------------------------------------------------------------

const LOAD: &str = "LOAD DATA LOCAL INFILE 'f' INTO TABLE t";

#[test]
fn a_file_goes_from_client_to_server() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    send(&mut front, &mut back, 1, &c::query(LOAD));
    let request = s::packet(1, b"\xFBf");
    assert_eq!(receive(&mut back, Some(&mut front), &request).to_client, request);
    let file = [s::packet(2, b"a,b\n"), s::packet(3, b"c,d\n"), s::packet(4, b"")].concat();
    let sent = send(&mut front, &mut back, 1, &file);
    assert_eq!(sent.to_server, file);
    let got = receive(&mut back, Some(&mut front), &s::ok_with(5, IDLE, 0, b""));
    assert_eq!((got.to_client, got.done), (s::ok_with(5, IDLE, 0, b""), vec![]));
    // The OK does not tell the id that it has made.
    assert_eq!(asked(&got.to_server), ["SELECT LAST_INSERT_ID(), LAST_INSERT_ID(0) LIMIT 1"]);
    let got = receive(&mut back, Some(&mut front), &s::result(COLUMNS, &[&["41", "0"]]));
    assert_eq!((got.to_client, got.done), (vec![], vec![(1, Boundary::Idle)]));
    let sent = send(&mut front, &mut back, 1, &c::query("SELECT LAST_INSERT_ID()"));
    assert_eq!(asked(&sent.to_server), ["SET last_insert_id=41"]);
}

#[test]
fn no_file_is_asked_of_who_did_not_offer_one() {
    let without = MODERN.without(Capabilities::LOCAL_FILES);
    for (capabilities, text) in [(without, LOAD), (MODERN, "SELECT a FROM t"), (OLD, "CALL p()")] {
        let mut back = back(7);
        let mut front = front(1, capabilities, &mut back);
        send(&mut front, &mut back, 1, &c::query(text));
        let got = receive(&mut back, Some(&mut front), &s::packet(1, b"\xFB/etc/passwd"));
        assert!(got.to_client.is_empty(), "the client does not hear of it");
        assert_eq!(got.to_server, s::packet(2, b""), "an empty file");
        let got = receive(&mut back, Some(&mut front), &s::ok_with(3, IDLE, 0, b""));
        assert_eq!(error_in(&got.to_client).0, 3948);
        assert_eq!(packets(&got.to_client)[0].0, 1);
    }
}

#[test]
fn a_client_that_leaves_in_the_middle_of_its_file() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    send(&mut front, &mut back, 1, &c::query(LOAD));
    receive(&mut back, Some(&mut front), &s::packet(1, b"\xFBf"));
    let part = s::packet(2, b"abcdef");
    assert_eq!(send(&mut front, &mut back, 1, &part[..7]).to_server, &part[..7]);
    let mut out = Vec::new();
    back.forget(1, &mut out);
    back.quit(&mut out);
    assert!(
        out.is_empty(),
        "an end of the file would commit half of it, a goodbye would be read as a part of it"
    );
    assert!(back.is_broken());
}

#[test]
fn a_goodbye_never_completes_half_a_command() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    let changed = s::ok_with(1, IDLE, 0, &s::state_change());
    exchange(&mut front, &mut common::back(8), &c::query("SET sql_select_limit = 5"), &changed);
    let mut long = c::query(&format!("INSERT INTO t VALUES ('{}')", "x".repeat(2_000_000)));
    long.truncate(long.len() - 5);
    send(&mut front, &mut back, 1, &long);
    assert_eq!(back.held_bytes(), long.len(), "whoever sends it must know when to wait");
    // What is set in front of it is answered, and half of it goes out.
    let sent = receive(&mut back, Some(&mut front), &s::ok(IDLE)).to_server;
    assert_eq!((sent, back.held_bytes()), (long, 0));
    let mut out = Vec::new();
    back.forget(1, &mut out);
    back.quit(&mut out);
    assert!(out.is_empty() && back.is_broken());
}

// ---- Ends ------------------------------------------------------------------------------------------------

#[test]
fn a_goodbye_is_never_the_answer_to_a_scramble() {
    let mut back = back(7);
    let mut without = front(2, MODERN, &mut back);
    let mut with = front(1, MODERN, &mut back);
    let moved = s::ok_with(1, IDLE, 0, &s::schema_change("one"));
    exchange(&mut with, &mut back, &c::query("USE one"), &moved);
    let sent = send(&mut without, &mut back, 2, &c::query("SELECT a, b FROM t"));
    assert_eq!(sent.to_server.get(4), Some(&(Command::ChangeUser as u8)));
    let mut out = Vec::new();
    back.forget(2, &mut out);
    back.quit(&mut out);
    assert_eq!(asked(&out), [""; 0]);
}

#[test]
fn the_replies_of_an_owner_that_has_gone_are_dropped() {
    let mut back = back(7);
    let mut fronts = [front(1, MODERN, &mut back), front(2, MODERN, &mut back)];
    for (front, owner) in fronts.iter_mut().zip([1, 2]) {
        send(front, &mut back, owner, &c::query("SELECT a, b FROM t"));
    }
    let reply = s::result(COLUMNS, ROWS);
    let (begun, rest) = reply.split_at(20);
    let begun = receive(&mut back, Some(&mut fronts[0]), &begun[..5]).used + begun[5..].len();
    assert_eq!(begun, 20);
    let mut out = Vec::new();
    back.forget(1, &mut out);
    assert!(out.is_empty());
    let got = receive(&mut back, None, &[&reply[5..20], rest].concat());
    assert!(got.to_client.is_empty() && got.to_server.is_empty());
    assert_eq!(got.done, [(INTERNAL, Boundary::Idle)]);
    let got = receive(&mut back, Some(&mut fronts[1]), &reply);
    assert_eq!((got.to_client, got.done), (reply, vec![(2, Boundary::Idle)]));
    assert!(back.is_reusable());
}

#[test]
fn a_server_is_tainted_by_who_left_it_with_a_temporary_table() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    send(&mut front, &mut back, 1, &c::query("CREATE TEMPORARY TABLE x (a INT)"));
    back.forget(1, &mut Vec::new());
    assert_eq!(receive(&mut back, None, &s::ok(IDLE)).done, [(INTERNAL, Boundary::Idle)]);
    assert!(!back.is_reusable());
    back.reset(&mut Vec::new());
    receive(&mut back, None, &s::ok(IDLE).repeat(2));
    assert!(back.is_reusable(), "a reset cures it");
}

#[test]
fn a_server_is_tainted_by_the_user_variable_of_who_left_it_and_not_by_a_setting() {
    for (text, reusable) in [
        ("SET @v = 'x'", false),
        ("SET time_zone = '+01:00', @v = 1", false),
        ("SET time_zone = '+01:00'", true),
    ] {
        let mut back = back(7);
        let mut front = front(1, MODERN, &mut back);
        send(&mut front, &mut back, 1, &c::query(text));
        back.forget(1, &mut Vec::new());
        receive(&mut back, None, &s::ok(IDLE));
        assert_eq!(back.is_reusable(), reusable, "{text}");
    }
}

#[test]
fn a_server_that_speaks_unasked_is_lost() {
    let mut back = back(7);
    let words = s::err(0, 4031, "The client was disconnected by the server because of inactivity.");
    let fault = back.handle_reply(None, &words, &mut Vec::new(), &mut Vec::new()).expect_err("lost");
    assert_eq!(fault.kind, FaultKind::ServerLost);
    assert!(fault.detail.contains("4031"));
}

#[test]
fn nothing_is_said_in_the_middle_of_a_reply() {
    let mut back = back(7);
    let mut front = front(1, MODERN, &mut back);
    send(&mut front, &mut back, 1, &c::query("SELECT a, b FROM t"));
    let mut out = Vec::new();
    front.fatal(&Fault::from(FaultKind::QueryTimeout), &mut out);
    assert_eq!(error_in(&out).0, 3024, "nothing of the reply has come");
    receive(&mut back, Some(&mut front), &s::packet(1, &[2]));
    let mut out = Vec::new();
    front.fatal(&Fault::from(FaultKind::QueryTimeout), &mut out);
    assert!(out.is_empty());
}

#[test]
fn a_client_whose_server_is_gone_finds_its_connection_closed_as_by_the_server_itself() {
    for kind in [FaultKind::ServerLost, FaultKind::ServerProtocol] {
        let mut back = back(7);
        let mut front = front(1, MODERN, &mut back);
        send(&mut front, &mut back, 1, &c::query("SELECT a, b FROM t"));
        let mut out = Vec::new();
        front.fatal(&Fault::from(kind), &mut out);
        assert!(out.is_empty(), "{kind:?}");
    }
}
