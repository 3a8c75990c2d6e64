//! One test for each trap of the relay; the numbers are those of the project's list of traps.

use super::*;
use crate::effects::Draws;
use crate::error::field;
use crate::front::Front;
use crate::testing::{back, c, front, front_with, receive, s, send, tags, try_receive, try_send};
use weir_session::Back as _;
use weir_session::Front as _;
use weir_sql::catalogue::{Builder, Knowledge};
use weir_wire::{FaultKind, Found, INTERNAL, Needs, Pin};

fn cat(parts: &[Vec<u8>]) -> Vec<u8> {
    parts.concat()
}

/// Runs a request to its end on an idle server and gives back what the client saw.
fn run(front: &mut Front, back: &mut Back, request: &[u8], reply: &[u8]) -> Vec<u8> {
    let sent = send(front, back, 1, request);
    assert_eq!(sent.dispatched, 1);
    let got = receive(back, Some(front), reply);
    assert_eq!(got.done.len(), 1);
    got.to_client
}

fn prepare(front: &mut Front, back: &mut Back, name: &str, text: &str) {
    let request = cat(&[c::parse(name, text), c::sync()]);
    run(front, back, &request, &cat(&[s::named_parsed(), s::idle()]));
}

#[test]
fn a_simple_query_passes_in_one_piece() {
    let (mut f, mut b) = (front(1), back());
    let sent = send(&mut f, &mut b, 7, &c::q("select 1"));
    assert_eq!(sent.to_server, c::q("select 1"));
    assert!(!b.is_reusable());
    assert_eq!(b.head(), Some(7));
    let reply = cat(&[s::row_description(), s::row(b"1"), s::complete("SELECT 1"), s::idle()]);
    let got = receive(&mut b, Some(&mut f), &reply);
    assert_eq!(got.to_client, reply);
    assert_eq!(got.forwards, 1, "a plain result is one forward");
    assert_eq!(got.done, [(7, Boundary::Idle)]);
    assert!(b.is_reusable() && b.queued() == 0);
}

#[test]
fn replies_may_be_cut_anywhere() {
    let reply = cat(&[
        s::notice("n"),
        s::row_description(),
        s::row(&[7; 300]),
        s::complete("SELECT 1"),
        s::parameter("TimeZone", "CET"),
        s::in_transaction(),
    ]);
    for cut in 0..reply.len() {
        let (mut f, mut b) = (front(1), back());
        send(&mut f, &mut b, 7, &c::q("x"));
        let first = try_receive(&mut b, Some(&mut f), &reply[..cut]).unwrap();
        let second = try_receive(&mut b, Some(&mut f), &reply[first.used..]).unwrap();
        assert_eq!([first.to_client, second.to_client].concat(), reply, "cut at {cut}");
        assert_eq!([first.done, second.done].concat(), [(7, Boundary::InTransaction)]);
    }
}

#[test]
fn a_huge_row_passes_without_being_gathered() {
    let (mut f, mut b) = (front(1), back());
    send(&mut f, &mut b, 1, &c::q("x"));
    let mut head = vec![b'D'];
    head.extend_from_slice(&0x2000_0000_u32.to_be_bytes());
    let got = try_receive(&mut b, Some(&mut f), &head).unwrap();
    assert_eq!(got.used, head.len());
    let mut left = 0x2000_0000_usize - 4;
    let chunk = vec![0; 1 << 20];
    while left > 0 {
        let n = left.min(chunk.len());
        let mut out = Vec::new();
        let step = b.handle_reply(Some(&mut f), &chunk[..n], &mut out, &mut Vec::new()).unwrap();
        assert_eq!((step, out.len()), (weir_wire::Step::Forward(n), 0));
        left -= n;
    }
    let got = receive(&mut b, Some(&mut f), &cat(&[s::complete("SELECT 1"), s::idle()]));
    assert_eq!(got.done.len(), 1);
}

#[test]
fn trap_1_an_error_skips_to_its_own_sync() {
    let (mut f, mut b) = (front(1), back());
    let batch = cat(&[c::parse("", "x"), c::bind(""), c::execute(), c::sync()]);
    let sent = send(&mut f, &mut b, 1, &cat(&[batch.clone(), batch]));
    assert_eq!(sent.dispatched, 2);
    let reply = cat(&[
        s::error("42601", "no"),
        s::idle(),
        s::parse_complete(),
        s::bind_complete(),
        s::complete("SELECT 0"),
        s::idle(),
    ]);
    let got = receive(&mut b, Some(&mut f), &reply);
    assert_eq!(got.to_client, reply);
    assert_eq!(got.done, [(1, Boundary::Idle), (1, Boundary::Idle)]);
    assert!(b.is_reusable());
}

#[test]
fn trap_1_a_query_behind_a_failed_execute_is_skipped_and_brings_no_ready() {
    let (mut f, mut b) = (front(1), back());
    let request = cat(&[c::parse("", "x"), c::bind(""), c::execute(), c::q("rollback")]);
    send(&mut f, &mut b, 1, &request);
    let got = receive(
        &mut b,
        Some(&mut f),
        &cat(&[s::parse_complete(), s::bind_complete(), s::error("23505", "dup")]),
    );
    // The request is over, the server is not idle: the client must send a Sync.
    assert_eq!(got.done, [(1, Boundary::Failed)]);
    assert!(!b.is_reusable());
    send(&mut f, &mut b, 1, &c::q("select 'discarded'"));
    let got = receive(&mut b, Some(&mut f), b"");
    assert_eq!(got.done, [(1, Boundary::Failed)]);
    send(&mut f, &mut b, 1, &c::sync());
    let got = receive(&mut b, Some(&mut f), &s::failed());
    assert_eq!((got.to_client, got.done), (s::failed(), vec![(1, Boundary::Failed)]));
    let rolled_back = cat(&[s::complete("ROLLBACK"), s::idle()]);
    assert_eq!(run(&mut f, &mut b, &c::q("rollback"), &rolled_back), rolled_back);
    assert!(b.is_reusable());
}

#[test]
fn trap_1_a_query_behind_a_good_execute_is_owed_its_own_ready() {
    let (mut f, mut b) = (front(1), back());
    send(&mut f, &mut b, 1, &cat(&[c::parse("", "x"), c::bind(""), c::execute(), c::q("y")]));
    let reply = cat(&[
        s::parse_complete(),
        s::bind_complete(),
        s::complete("SELECT 0"),
        s::complete("SELECT 1"),
        s::idle(),
    ]);
    let got = receive(&mut b, Some(&mut f), &reply);
    assert_eq!((got.to_client, got.done), (reply, vec![(1, Boundary::Idle)]));
}

#[test]
fn trap_2_an_error_is_passed_on_before_ready() {
    let (mut f, mut b) = (front(1), back());
    send(&mut f, &mut b, 1, &cat(&[c::parse("", "x"), c::flush()]));
    let error = s::error("42601", "syntax");
    assert_eq!(receive(&mut b, Some(&mut f), &error).to_client, error);
}

#[test]
fn trap_4_flush_keeps_the_server_until_sync() {
    let (mut f, mut b) = (front(1), back());
    let sent = send(&mut f, &mut b, 1, &cat(&[c::parse("", "x"), c::describe(""), c::flush()]));
    let lease = Needs { lease: true, ..Needs::default() };
    assert!(matches!(sent.found[0], Found::Part { needs, .. } if needs == lease));
    let got =
        receive(&mut b, Some(&mut f), &cat(&[s::parse_complete(), s::parameters(), s::row_description()]));
    assert!(got.done.is_empty() && !b.is_reusable());
    let sent = send(&mut f, &mut b, 1, &cat(&[c::bind(""), c::execute(), c::sync()]));
    assert!(matches!(sent.found[0], Found::Request { needs, .. } if needs.continues));
    assert_eq!(sent.dispatched, 0);
    let got = receive(&mut b, Some(&mut f), &cat(&[s::bind_complete(), s::complete("SELECT 0"), s::idle()]));
    assert_eq!(got.done, [(1, Boundary::Idle)]);
    assert!(b.is_reusable());
}

#[test]
fn trap_4_flush_behind_a_parse_is_answered() {
    let (mut f, mut b) = (front(1), back());
    prepare(&mut f, &mut b, "a", "select 1");
    let mut g = front(2);
    let sent = send(&mut g, &mut b, 2, &cat(&[c::parse("mine", "select 1"), c::flush()]));
    assert_eq!(tags(&sent.to_server), "PDH");
    let got = receive(&mut b, Some(&mut g), &s::named_parsed());
    assert_eq!(got.to_client, s::parse_complete());
    // What Weir answers itself needs something that makes the server speak; and the older statement goes.
    let sent = send(&mut g, &mut b, 2, &cat(&[c::close("mine"), c::flush()]));
    assert_eq!(tags(&sent.to_server), "CH");
    assert_eq!(receive(&mut b, Some(&mut g), &s::close_complete()).to_client, s::close_complete());
    send(&mut g, &mut b, 2, &c::sync());
    assert_eq!(receive(&mut b, Some(&mut g), &s::idle()).to_client, s::idle());
}

#[test]
fn trap_5_no_sync_is_added() {
    let (mut f, mut b) = (front(1), back());
    let request = cat(&[c::parse("a", "insert"), c::bind("a"), c::execute(), c::execute(), c::sync()]);
    let sent = send(&mut f, &mut b, 1, &request);
    assert_eq!(tags(&sent.to_server), "PDBEES");
}

#[test]
fn trap_5_several_statements_in_a_query_bring_one_ready() {
    let (mut f, mut b) = (front(1), back());
    let reply = cat(&[
        s::complete("BEGIN"),
        s::row_description(),
        s::complete("SELECT 0"),
        s::complete("COMMIT"),
        s::complete("BEGIN"),
        s::in_transaction(),
    ]);
    assert_eq!(run(&mut f, &mut b, &c::q("begin;select;commit;begin"), &reply), reply);
    assert_eq!(b.boundary(), Boundary::InTransaction);
}

#[test]
fn trap_6_replies_of_weirs_own_keep_their_place() {
    let (mut f, mut b) = (front(1), back());
    prepare(&mut f, &mut b, "a", "select 1");
    let mut g = front(2);
    let request = cat(&[
        c::parse("x", "select 1"),
        c::bind("x"),
        c::describe_portal(),
        c::execute(),
        c::close("x"),
        c::parse("y", "select 1"),
        c::sync(),
    ]);
    let sent = send(&mut g, &mut b, 2, &request);
    assert_eq!(tags(&sent.to_server), "PDBDEPDS");
    let row = s::row(&[1; 5000]);
    let reply = cat(&[
        s::named_parsed(),
        s::bind_complete(),
        s::row_description(),
        row,
        s::complete("SELECT 1"),
        s::named_parsed(),
        s::idle(),
    ]);
    // The row comes in two reads.
    let cut = 2000;
    let first = try_receive(&mut b, Some(&mut g), &reply[..cut]).unwrap();
    let second = try_receive(&mut b, Some(&mut g), &reply[first.used..]).unwrap();
    assert_eq!(tags(&[first.to_client, second.to_client].concat()), "12TDC31Z");
}

#[test]
fn trap_6_replies_of_weirs_own_vanish_behind_an_error() {
    let (mut f, mut b) = (front(1), back());
    prepare(&mut f, &mut b, "a", "select 1");
    let mut g = front(2);
    let request = cat(&[c::parse("", "bad"), c::parse("x", "select 1"), c::close("x"), c::sync()]);
    let sent = send(&mut g, &mut b, 2, &request);
    assert_eq!(tags(&sent.to_server), "PPDS");
    let got = receive(&mut b, Some(&mut g), &cat(&[s::error("42601", "bad"), s::idle()]));
    assert_eq!(tags(&got.to_client), "EZ");
    assert!(g.prepared.as_deref().unwrap().get(b"x").is_none(), "a skipped Parse gives no name");
}

#[test]
fn trap_7_function_calls() {
    let (mut f, mut b) = (front(1), back());
    // lo_open leaves nothing behind its transaction.
    let mut large_object = c::function_call();
    large_object[5..9].copy_from_slice(&952_u32.to_be_bytes());
    let reply = cat(&[s::function_result(), s::idle()]);
    assert_eq!(run(&mut f, &mut b, &large_object, &reply), reply);
    assert!(b.is_reusable());
    let reply = cat(&[s::error("42883", "no such function"), s::idle()]);
    assert_eq!(run(&mut f, &mut b, &c::function_call(), &reply), reply);
    assert!(f.pins().contains(Pin::Unrecognised) && !b.is_reusable(), "whatever it is");
}

/// These clients' database has one table that draws from a sequence.
fn knowing_that_draws(table: &[u8], fronts: [&mut Front; 2]) -> Arc<Knowledge> {
    let mut catalogue = Builder::new(weir_sql::Dialect::POSTGRES);
    catalogue.draws(table);
    let knowledge = Knowledge::settled(catalogue.finish());
    for front in fronts {
        front.know(&knowledge);
    }
    knowledge
}

#[test]
fn what_another_client_has_drawn_from_a_sequence_is_not_there_to_be_asked() {
    let text =
        |text: &str| crate::effects::Effects::of_text(weir_sql::Dialect::POSTGRES, text.as_bytes(), None).0;
    let (mut f, mut g, mut b) = (front(1), front(2), back());
    knowing_that_draws(b"t", [&mut f, &mut g]);
    let run = |front: &mut Front, back: &mut Back, sql: &str, discards: bool| {
        let request = c::q(sql);
        let mut out = Vec::new();
        assert!(matches!(front.find(&request, &mut out), Ok(Found::Request { .. })));
        let owner = u64::from(front.id());
        back.dispatch(front, owner, &request, true, &mut out).unwrap();
        assert_eq!(tags(&out), if discards { "QQ" } else { "Q" }, "{sql}");
        let forgotten = cat(&[s::complete("DISCARD SEQUENCES"), s::idle()]);
        let reply = cat(&[s::complete("DONE"), s::idle()]);
        let all = if discards { cat(&[forgotten, reply.clone()]) } else { reply.clone() };
        assert_eq!(receive(back, Some(front), &all).to_client, reply);
    };
    let draws = |sql: &str| text(sql).draws;
    assert_eq!(
        (draws("insert into t values (1)"), draws("select nextval('s')")),
        (Draws::May, Draws::Outright)
    );
    assert_eq!((draws("select 1"), draws("begin")), (Draws::No, Draws::No));
    run(&mut f, &mut b, "insert into t values (1)", false);
    run(&mut f, &mut b, "select lastval()", false);
    run(&mut g, &mut b, "select currval('s')", true);
    run(&mut f, &mut b, "select lastval()", true);
    assert!(!f.pins().contains(Pin::LastResult));
    // It is known now that this client asks, and was told nothing: it keeps its server from its next INSERT
    // on.
    run(&mut f, &mut b, "insert into t values (1)", false);
    assert!(f.pins().contains(Pin::LastResult) && !b.is_reusable());
    run(&mut f, &mut b, "select lastval()", false);
    assert!(f.pins().contains(Pin::LastResult));
    run(&mut f, &mut b, "select 1", false);
    assert!(f.pins().contains(Pin::LastResult));
    // In one text.
    run(&mut g, &mut b, "insert into t values (1); select lastval()", true);
}

/// The catalogue knows which tables draw; of a temporary one it knows nothing.
#[test]
fn who_writes_where_nothing_is_drawn_makes_nobody_forget() {
    let (mut f, mut g, mut b) = (front(1), front(2), back());
    let knowledge = knowing_that_draws(b"draws", [&mut f, &mut g]);
    let proof = || knowledge.proof();
    let draws = |sql: &str| {
        crate::effects::Effects::of_text(weir_sql::Dialect::POSTGRES, sql.as_bytes(), proof()).0.draws
    };
    for (sql, expected) in [
        ("insert into plain values (1)", Draws::Temporary),
        ("update plain set a = 1", Draws::Temporary),
        ("delete from plain", Draws::Temporary),
        ("insert into draws values (1)", Draws::May),
        ("insert into plain select nextval('s')", Draws::Outright),
        ("insert into plain values (1); select 1", Draws::May),
        ("with x as (insert into plain values (1) returning 1) select 1 from x", Draws::May),
        ("insert into plain values (unheard_of())", Draws::May),
        ("copy plain from stdin", Draws::May),
    ] {
        assert_eq!(draws(sql), expected, "{sql}");
    }
    let said = |front: &mut Front, back: &mut Back, sql: &str, status: &[u8]| {
        let (request, mut out) = (c::q(sql), Vec::new());
        assert!(matches!(front.find(&request, &mut out), Ok(Found::Request { .. })));
        back.dispatch(front, u64::from(front.id()), &request, true, &mut out).unwrap();
        let discarded = tags(&out) == "QQ";
        let forgotten =
            if discarded { cat(&[s::complete("DISCARD SEQUENCES"), s::idle()]) } else { Vec::new() };
        receive(back, Some(front), &cat(&[forgotten, s::complete("DONE"), status.to_vec()]));
        discarded
    };
    // In a transaction a client may ask what it has drawn.
    for front in [&mut f, &mut g] {
        assert!(!said(front, &mut b, "begin", &s::in_transaction()));
        assert!(!said(front, &mut b, "insert into plain values (1)", &s::in_transaction()));
        assert!(!said(front, &mut b, "commit", &s::idle()));
    }
    for (front, forgets) in [(&mut f, false), (&mut g, true)] {
        assert!(!said(front, &mut b, "begin", &s::in_transaction()));
        assert_eq!(said(front, &mut b, "insert into draws values (1)", &s::in_transaction()), forgets);
        assert!(!said(front, &mut b, "commit", &s::idle()));
    }
}

#[test]
fn trap_8_asynchronous_messages_at_any_moment() {
    let asynchronous = cat(&[s::notice("n"), s::parameter("TimeZone", "UTC"), s::notification()]);
    let (mut f, mut b) = (front(1), back());
    let request = cat(&[c::parse("", "x"), c::bind(""), c::execute(), c::sync()]);
    send(&mut f, &mut b, 1, &request);
    let mut reply = Vec::new();
    for message in [s::parse_complete(), s::bind_complete(), s::row(b"1"), s::complete("SELECT 1"), s::idle()]
    {
        reply.extend_from_slice(&asynchronous);
        reply.extend_from_slice(&message);
    }
    let got = receive(&mut b, Some(&mut f), &reply);
    assert_eq!(got.to_client, reply);
    // Idle with a lease: they go to its holder. Without: to nobody.
    assert_eq!(receive(&mut b, Some(&mut f), &asynchronous).to_client, asynchronous);
    assert_eq!(receive(&mut b, None, &asynchronous).to_client, b"");
    assert!(b.is_reusable());
}

/// Programs tell their own notifications by the number of their login.
#[test]
fn a_client_s_own_notification_has_the_number_it_was_told_at_its_login() {
    let (mut f, mut b) = (front(1), back());
    let notified = |number: u32| {
        let mut message = s::notification();
        message[5..9].copy_from_slice(&number.to_be_bytes());
        message
    };
    let own = notified(b.server_pid());
    let told = notified(f.id());
    assert_eq!(receive(&mut b, Some(&mut f), &own).to_client, told);
    assert_eq!(receive(&mut b, Some(&mut f), &notified(7)).to_client, notified(7));
    send(&mut f, &mut b, 7, &c::q("notify channel, 'payload'"));
    for cut in 0..own.len() {
        let first = try_receive(&mut b, Some(&mut f), &own[..cut]).unwrap();
        let second = try_receive(&mut b, Some(&mut f), &own[first.used..]).unwrap();
        assert_eq!([first.to_client, second.to_client].concat(), told, "cut at {cut}");
    }
    assert_eq!(receive(&mut b, None, &own).to_client, b"");
}

#[test]
fn errors_are_isolated_between_owners() {
    let (mut f, mut g, mut h, mut b) = (front(1), front(2), front(3), back());
    send(&mut f, &mut b, 1, &cat(&[c::parse("s", "bad"), c::bind("s"), c::execute(), c::sync()]));
    send(&mut g, &mut b, 2, &cat(&[c::parse("s", "good"), c::bind("s"), c::execute(), c::sync()]));
    send(&mut h, &mut b, 3, &c::q("also good"));
    assert_eq!(b.queued(), 3);
    let one = receive(&mut b, Some(&mut f), &cat(&[s::error("42601", "bad"), s::idle()]));
    assert_eq!((tags(&one.to_client), one.done), ("EZ".into(), vec![(1, Boundary::Idle)]));
    assert_eq!(b.head(), Some(2));
    let two = receive(
        &mut b,
        Some(&mut g),
        &cat(&[s::named_parsed(), s::bind_complete(), s::complete("X"), s::idle()]),
    );
    assert_eq!((tags(&two.to_client), two.done), ("12CZ".into(), vec![(2, Boundary::Idle)]));
    let three = receive(&mut b, Some(&mut h), &cat(&[s::complete("X"), s::idle()]));
    assert_eq!(three.done, [(3, Boundary::Idle)]);
    assert!(b.is_reusable());
}

#[test]
fn a_reply_never_runs_into_the_next_owner() {
    let (mut f, mut g, mut b) = (front(1), front(2), back());
    send(&mut f, &mut b, 1, &c::q("a"));
    send(&mut g, &mut b, 2, &c::q("b"));
    let (one, two) = (
        cat(&[s::row(b"a"), s::complete("A"), s::idle()]),
        cat(&[s::row(b"b"), s::complete("B"), s::idle()]),
    );
    let all = cat(&[one.clone(), two.clone()]);
    let mut out = Vec::new();
    let step = b.handle_reply(Some(&mut f), &all, &mut out, &mut Vec::new()).unwrap();
    assert_eq!(step, weir_wire::Step::Forward(one.len()));
    let step = b.handle_reply(Some(&mut f), &all[one.len()..], &mut out, &mut Vec::new()).unwrap();
    assert_eq!(step, weir_wire::Step::Done { owner: 1, boundary: Boundary::Idle });
    let got = receive(&mut b, Some(&mut g), &two);
    assert_eq!(got.to_client, two);
}

#[test]
fn trap_10_statements_are_shared_by_what_they_are() {
    let (mut f, mut b) = (front(1), back());
    prepare(&mut f, &mut b, "s1", "select 1");
    // Another client, another name: it is read anew, and serves both.
    let mut g = front(2);
    let sent = send(&mut g, &mut b, 2, &cat(&[c::parse("q", "select 1"), c::sync()]));
    assert_eq!(tags(&sent.to_server), "PDS");
    let got = receive(&mut b, Some(&mut g), &cat(&[s::named_parsed(), s::idle()]));
    assert_eq!(tags(&got.to_client), "1Z");
    assert_eq!(b.prepared.len(), 1);
    let sent = send(&mut f, &mut b, 1, &cat(&[c::bind("s1"), c::sync()]));
    assert_eq!(tags(&sent.to_server), "CBS", "what was read before is closed");
    receive(&mut b, Some(&mut f), &cat(&[s::close_complete(), s::bind_complete(), s::idle()]));
    assert_eq!(tags(&send(&mut g, &mut b, 2, &cat(&[c::bind("q"), c::sync()])).to_server), "BS");
    receive(&mut b, Some(&mut g), &cat(&[s::bind_complete(), s::idle()]));
    // Another search_path: another statement.
    let mut h = front_with(3, &[("search_path", "other")]);
    b.applied = Arc::clone(&h.settings);
    send(&mut h, &mut b, 3, &cat(&[c::parse("q", "select 1"), c::sync()]));
    assert_eq!(b.prepared.len(), 2);
}

#[test]
fn trap_11_prepared_only_after_parse_complete() {
    let (mut f, mut b) = (front(1), back());
    let request = cat(&[c::parse("s", "select broken"), c::sync()]);
    run(&mut f, &mut b, &request, &cat(&[s::error("42601", "broken"), s::idle()]));
    // The name is free again, and the server is asked again.
    let sent = send(&mut f, &mut b, 1, &cat(&[c::parse("s", "select broken"), c::sync()]));
    assert_eq!(tags(&sent.to_server), "PDS");
    let got = receive(&mut b, Some(&mut f), &cat(&[s::named_parsed(), s::idle()]));
    assert_eq!(tags(&got.to_client), "1Z");
    let sent = send(&mut f, &mut b, 1, &cat(&[c::bind("s"), c::sync()]));
    assert_eq!(tags(&sent.to_server), "BS");
}

#[test]
fn a_statement_follows_its_client_to_another_server() {
    let (mut f, mut one, mut two) = (front(1), back(), back());
    prepare(&mut f, &mut one, "s", "select 1");
    let batch = cat(&[c::bind("s"), c::execute(), c::sync()]);
    let sent = send(&mut f, &mut two, 1, &batch);
    assert_eq!(tags(&sent.to_server), "PDBES");
    let reply = cat(&[s::named_parsed(), s::bind_complete(), s::complete("SELECT 1"), s::idle()]);
    let got = receive(&mut two, Some(&mut f), &reply);
    assert_eq!(tags(&got.to_client), "2CZ");
    assert_eq!(tags(&send(&mut f, &mut two, 1, &batch).to_server), "BES");
    // When the Parse that Weir added fails, that is the client's error.
    let mut three = back();
    let sent = send(&mut f, &mut three, 1, &batch);
    assert_eq!(tags(&sent.to_server), "PDBES");
    let got = receive(&mut three, Some(&mut f), &cat(&[s::error("42P01", "gone"), s::idle()]));
    assert_eq!(tags(&got.to_client), "EZ");
}

#[test]
fn what_gives_no_rows_is_described_as_it_was_read() {
    let (mut f, mut one, mut two) = (front(1), back(), back());
    prepare(&mut f, &mut one, "s", "select 1");
    let sent = send(&mut f, &mut two, 1, &cat(&[c::describe("s"), c::sync()]));
    assert_eq!(tags(&sent.to_server), "S", "it might fail there");
    let got = receive(&mut two, Some(&mut f), &s::idle());
    assert_eq!(tags(&got.to_client), "tnZ");
}

#[test]
fn trap_12_eviction_spares_the_batch_and_closes_on_the_server() {
    let (mut f, mut b) = (front(1), Back::new(ServerKey::default(), crate::testing::reported(), 2));
    for n in 0..2 {
        prepare(&mut f, &mut b, &format!("s{n}"), &format!("select {n}"));
    }
    let batch = cat(&[c::parse("s2", "select 2"), c::bind("s0"), c::bind("s1"), c::bind("s2"), c::sync()]);
    let sent = send(&mut f, &mut b, 1, &batch);
    let closed = tags(&sent.to_server).matches('C').count();
    // s2 pushes one of the two out before it is known that the batch binds it: then it is parsed again.
    assert_eq!(closed, tags(&sent.to_server).matches('P').count() - 1, "{}", tags(&sent.to_server));
    for tag in tags(&sent.to_server).chars() {
        let reply = match tag {
            'P' => s::parse_complete(),
            'D' => cat(&[s::parameters(), s::no_data()]),
            'B' => s::bind_complete(),
            'C' => s::close_complete(),
            _ => s::idle(),
        };
        receive(&mut b, Some(&mut f), &reply);
    }
    assert!(b.is_reusable());
    let sent = send(&mut f, &mut b, 1, &cat(&[c::parse("s9", "select 9"), c::sync()]));
    assert!(tags(&sent.to_server).contains('C'), "back under the limit");
}

#[test]
fn trap_13_names() {
    let (mut f, mut b) = (front(1), back());
    prepare(&mut f, &mut b, "s", "select 1");
    let name = |sent: &[u8]| String::from_utf8_lossy(sent).into_owned();
    // Parse of a name in use: the server says so, with the client's name.
    let sent = send(&mut f, &mut b, 1, &cat(&[c::parse("s", "select 2"), c::sync()]));
    assert_eq!(tags(&sent.to_server), "PS");
    let text = name(&sent.to_server);
    let at = text.find("weir_").unwrap();
    let server_name = &text[at..at + 37];
    let error = s::error("42P05", &format!("prepared statement \"{server_name}\" already exists"));
    let got = receive(&mut b, Some(&mut f), &cat(&[error, s::idle()]));
    assert_eq!(field(&got.to_client[5..], b'M'), Some(&b"prepared statement \"s\" already exists"[..]));
    // Bind of an unknown name: as it is, the server's error names it.
    let sent = send(&mut f, &mut b, 1, &cat(&[c::bind("nobody"), c::sync()]));
    assert!(name(&sent.to_server).contains("nobody"));
    receive(&mut b, Some(&mut f), &cat(&[s::error("26000", "nobody"), s::idle()]));
    // Another's statement cannot be reached by Weir's name for it.
    let sent = send(&mut f, &mut b, 1, &cat(&[c::bind(server_name), c::sync()]));
    assert!(name(&sent.to_server).contains(&format!("\0client_{server_name}")));
    receive(&mut b, Some(&mut f), &cat(&[s::error("26000", "nobody"), s::idle()]));
    // Close of an unknown name succeeds; Close of a portal is no Close of a statement.
    let close_portal = b"C\0\0\0\x07Ps\0".to_vec();
    let request = cat(&[c::close("nobody"), close_portal, c::sync()]);
    run(&mut f, &mut b, &request, &cat(&[s::close_complete(), s::close_complete(), s::idle()]));
    assert!(f.prepared.as_deref().unwrap().get(b"s").is_some());
    // Close of a known name is Weir's own affair.
    let sent = send(&mut f, &mut b, 1, &cat(&[c::close("s"), c::sync()]));
    assert_eq!(tags(&sent.to_server), "S");
    assert_eq!(tags(&receive(&mut b, Some(&mut f), &s::idle()).to_client), "3Z");
    assert!(f.prepared.as_deref().unwrap().get(b"s").is_none());
}

/// A description of one column of this type.
fn column(of: u8) -> Vec<u8> {
    let mut out = Vec::new();
    crate::frame::put(&mut out, b'T', |o| {
        o.extend_from_slice(b"\0\x01x\0\0\0\0\0\0\0\0\0\0");
        o.push(of);
        o.extend_from_slice(&[0; 8]);
    });
    out
}

fn planned() -> Arc<crate::effects::Effects> {
    Arc::new(crate::effects::Effects { is_planned: true, shareable: true, ..Default::default() })
}

#[test]
fn trap_14_elsewhere_a_statement_is_what_its_client_was_told_or_is_refused() {
    let (mut f, mut one, mut two) = (front(1), back(), back());
    let parse = cat(&[c::parse("s", "select * from t"), c::sync()]);
    crate::testing::send_with(&mut f, &mut one, &parse, &planned());
    let types = b"t\0\0\0\x0a\0\x01\0\0\0\x17".to_vec();
    receive(&mut one, Some(&mut f), &cat(&[s::parse_complete(), types.clone(), column(23), s::idle()]));
    // Nothing runs there before the server has said what it makes of it, with the types that were found.
    let bind = b"B\0\0\0\x12\0s\0\0\0\0\x01\0\0\0\x011\0\0".to_vec();
    let run = cat(&[bind, c::execute(), c::sync()]);
    let sent = send(&mut f, &mut two, 1, &run);
    assert_eq!(tags(&sent.to_server), "PDH");
    assert!(sent.to_server.windows(7).any(|w| w == b"\0\x01\0\0\0\x17D"));
    let got = receive(&mut two, Some(&mut f), &cat(&[s::parse_complete(), types.clone(), column(23)]));
    assert_eq!((tags(&got.to_server).as_str(), tags(&got.to_client).as_str()), ("BES", ""));
    receive(&mut two, Some(&mut f), &cat(&[s::bind_complete(), s::complete("SELECT 1"), s::idle()]));
    assert_eq!(tags(&send(&mut f, &mut two, 1, &run).to_server), "BES");
    // Other columns: an error takes the place of what was asked, and the server skips the rest.
    let mut three = back();
    send(&mut f, &mut three, 1, &run);
    let got = receive(&mut three, Some(&mut f), &cat(&[s::parse_complete(), types, column(25)]));
    assert_eq!(tags(&got.to_server), "BBES");
    let reply = cat(&[s::error("26000", "prepared statement \"weir_nobody\" does not exist"), s::idle()]);
    let got = receive(&mut three, Some(&mut f), &reply);
    assert_eq!(tags(&got.to_client), "EZ");
    assert_eq!(field(&got.to_client[5..], b'M'), Some(&b"cached plan must not change result type"[..]));
    assert!(three.is_reusable() && three.held.is_none());
}

#[test]
fn what_is_held_for_a_statement_goes_when_its_parse_fails() {
    let (mut f, mut one, mut two) = (front(1), back(), back());
    let parse = cat(&[c::parse("s", "select * from t"), c::sync()]);
    crate::testing::send_with(&mut f, &mut one, &parse, &planned());
    receive(&mut one, Some(&mut f), &cat(&[s::parse_complete(), s::parameters(), column(23), s::idle()]));
    let run = cat(&[c::bind("s"), c::execute(), c::sync()]);
    let mut g = front(2);
    send(&mut f, &mut two, 1, &run);
    assert_eq!(tags(&send(&mut g, &mut two, 2, &c::q("x")).to_server), "", "behind what is held");
    let got = receive(&mut two, Some(&mut f), &s::error("42P01", "gone"));
    assert_eq!((tags(&got.to_client).as_str(), tags(&got.to_server).as_str()), ("E", "BESQ"));
    receive(&mut two, Some(&mut f), &s::idle());
    receive(&mut two, Some(&mut g), &cat(&[s::complete("X"), s::idle()]));
    assert!(two.is_reusable());
}

#[test]
fn trap_15_a_simple_query_destroys_the_unnamed_statement() {
    let (mut f, mut b) = (front(1), back());
    let parsed = cat(&[c::parse("", "select 1"), c::sync()]);
    run(&mut f, &mut b, &parsed, &cat(&[s::parse_complete(), s::idle()]));
    run(&mut f, &mut b, &c::q("x"), &cat(&[s::complete("X"), s::idle()]));
    // Whatever is there now is not this client's: it is closed, so that the server says so.
    let sent = send(&mut f, &mut b, 1, &cat(&[c::bind(""), c::sync()]));
    assert_eq!(tags(&sent.to_server), "CBS");
}

#[test]
fn the_unnamed_statement_is_never_anothers() {
    let (mut f, mut g, mut b) = (front(1), front(2), back());
    let parsed = cat(&[s::parse_complete(), s::idle()]);
    run(&mut f, &mut b, &cat(&[c::parse("", "select 'mine'"), c::sync()]), &parsed);
    // Bound in a later batch on the same server: nothing to do.
    let sent = send(&mut f, &mut b, 1, &cat(&[c::bind(""), c::sync()]));
    assert_eq!(tags(&sent.to_server), "BS");
    receive(&mut b, Some(&mut f), &cat(&[s::bind_complete(), s::idle()]));
    run(&mut g, &mut b, &cat(&[c::parse("", "select 'other'"), c::sync()]), &parsed);
    let sent = send(&mut f, &mut b, 1, &cat(&[c::bind(""), c::execute(), c::sync()]));
    assert_eq!(tags(&sent.to_server), "PBES");
    assert!(String::from_utf8_lossy(&sent.to_server).contains("mine"));
    let reply = cat(&[s::parse_complete(), s::bind_complete(), s::complete("X"), s::idle()]);
    assert_eq!(tags(&receive(&mut b, Some(&mut f), &reply).to_client), "2CZ");
    // A client that never had one gets the server's own error.
    let mut h = front(3);
    let sent = send(&mut h, &mut b, 3, &cat(&[c::bind(""), c::sync()]));
    assert_eq!(tags(&sent.to_server), "CBS");
    let reply = cat(&[s::close_complete(), s::error("26000", "unnamed"), s::idle()]);
    assert_eq!(tags(&receive(&mut b, Some(&mut h), &reply).to_client), "EZ");
}

#[test]
fn trap_16_reusable_only_when_nothing_is_owed() {
    let (mut f, mut b) = (front(1), back());
    send(&mut f, &mut b, 1, &cat(&[c::q("a"), c::q("b")]));
    receive(&mut b, Some(&mut f), &cat(&[s::complete("A"), s::idle()]));
    assert_eq!(b.boundary(), Boundary::Idle);
    assert!(!b.is_reusable(), "b is still owed");
    receive(&mut b, Some(&mut f), &cat(&[s::complete("B"), s::idle()]));
    assert!(b.is_reusable());
    send(&mut f, &mut b, 1, &c::q("c"));
    let got = try_receive(&mut b, Some(&mut f), &s::row(b"xyz")[..9]).unwrap();
    assert_eq!(got.used, 9);
    assert!(!b.is_reusable());
}

#[test]
fn trap_17_a_vanished_client_is_cleaned_up_after() {
    let (mut f, mut b) = (front(1), back());
    run(&mut f, &mut b, &c::q("begin"), &cat(&[s::complete("BEGIN"), s::in_transaction()]));
    send(&mut f, &mut b, 1, &c::q("select slow"));
    let mut out = Vec::new();
    b.forget(1, &mut out);
    assert!(out.is_empty(), "a whole request needs no end");
    assert_eq!(b.head(), Some(INTERNAL));
    let reply = cat(&[s::row(b"1"), s::complete("SELECT 1"), s::in_transaction()]);
    let got = receive(&mut b, None, &reply);
    assert_eq!((got.to_client.len(), got.done), (0, vec![(INTERNAL, Boundary::InTransaction)]));
    b.rollback(&mut out);
    assert_eq!(out, c::q("ROLLBACK"));
    let got = receive(&mut b, None, &cat(&[s::complete("ROLLBACK"), s::idle()]));
    assert_eq!(got.done, [(INTERNAL, Boundary::Idle)]);
    assert!(b.is_reusable());
}

#[test]
fn trap_17_a_part_is_ended_for_a_client_that_left() {
    let (mut f, mut b) = (front(1), back());
    send(&mut f, &mut b, 1, &cat(&[c::parse("", "x"), c::flush()]));
    let mut out = Vec::new();
    b.forget(1, &mut out);
    // A Sync alone would commit what has run; without Weir it would be undone.
    assert_eq!(tags(&out), "BS");
    let no_such = s::error("26000", "prepared statement \"weir_nobody\" does not exist");
    receive(&mut b, None, &cat(&[s::parse_complete(), no_such, s::idle()]));
    assert!(b.is_reusable());
    // In the middle of a message nothing can be ended.
    let (mut f, mut b) = (front(1), back());
    let mut long = vec![b'Q', 0, 1, 0x86, 0xa0];
    long.resize(70_000, b' ');
    send(&mut f, &mut b, 1, &long);
    b.forget(1, &mut out);
    assert!(b.is_broken() && !b.is_reusable());
    assert_eq!((b.queued(), b.boundary()), (0, Boundary::Idle), "there is nothing to wait for");
    // A goodbye would complete the message, and it would run.
    let mut goodbye = Vec::new();
    b.quit(&mut goodbye);
    assert!(goodbye.is_empty());
}

#[test]
fn a_failed_rollback_or_reset_spoils() {
    let mut b = back();
    b.reset(&mut Vec::new());
    receive(&mut b, None, &cat(&[s::error("25001", "no"), s::idle()]));
    assert!(!b.is_reusable() && b.is_broken());
    let mut b = back();
    b.check(&mut Vec::new());
    assert_eq!(receive(&mut b, None, &s::idle()).done, [(INTERNAL, Boundary::Idle)]);
    assert!(b.is_reusable());
}

#[test]
fn trap_18_copy_in() {
    let (mut f, mut b) = (front(1), back());
    send(&mut f, &mut b, 1, &c::q("copy t from stdin"));
    receive(&mut b, Some(&mut f), &s::copy_in());
    let data = cat(&[c::copy_data(b"1\n"), c::sync(), c::flush(), c::copy_data(b"2\n"), c::copy_done()]);
    let sent = send(&mut f, &mut b, 1, &data);
    assert_eq!((sent.to_server, sent.dispatched), (data, 0));
    assert_eq!(b.queued(), 1, "no phantom request");
    let got = receive(&mut b, Some(&mut f), &cat(&[s::complete("COPY 2"), s::idle()]));
    assert_eq!(got.done, [(1, Boundary::Idle)]);
    assert!(b.is_reusable());
}

#[test]
fn trap_18_copy_data_after_the_error_is_dropped() {
    let (mut f, mut b) = (front(1), back());
    send(&mut f, &mut b, 1, &c::q("copy t from stdin"));
    receive(&mut b, Some(&mut f), &s::copy_in());
    receive(&mut b, Some(&mut f), &cat(&[s::error("22P04", "bad"), s::idle()]));
    let late = cat(&[c::copy_data(b"2\n"), c::copy_data(&[0; 100]), c::copy_done()]);
    let sent = send(&mut f, &mut b, 1, &late);
    assert!(sent.to_server.is_empty() && sent.dispatched == 0);
    assert!(matches!(sent.found[0], Found::Drop { .. }));
    assert!(b.is_reusable());
    // And cut in the middle of a message.
    let sent = send(&mut f, &mut b, 1, &late[..20]);
    assert!(matches!(sent.found[0], Found::Drop { len: 20 }));
    let sent = send(&mut f, &mut b, 1, &late[20..]);
    assert!(sent.to_server.is_empty());
}

#[test]
fn trap_18_extended_copy_swallows_the_first_sync() {
    let (mut f, mut b) = (front(1), back());
    let batch = cat(&[c::parse("", "copy t from stdin"), c::bind(""), c::execute(), c::sync()]);
    send(&mut f, &mut b, 1, &batch);
    receive(&mut b, Some(&mut f), &cat(&[s::parse_complete(), s::bind_complete(), s::copy_in()]));
    let sent = send(&mut f, &mut b, 1, &cat(&[c::copy_data(b"1\n"), c::copy_done(), c::sync()]));
    assert_eq!((tags(&sent.to_server), sent.dispatched), ("dcS".into(), 1));
    let got = receive(&mut b, Some(&mut f), &cat(&[s::complete("COPY 1"), s::idle()]));
    assert_eq!(tags(&got.to_client), "CZ");
    assert_eq!(got.done, [(1, Boundary::InTransaction), (1, Boundary::Idle)]);
    assert!(b.is_reusable());
}

#[test]
fn trap_18_extended_copy_sent_all_at_once() {
    let (mut f, mut b) = (front(1), back());
    let all = cat(&[
        c::parse("", "copy t from stdin"),
        c::bind(""),
        c::execute(),
        c::sync(),
        c::copy_data(b"1\n"),
        c::copy_done(),
        c::sync(),
    ]);
    let sent = send(&mut f, &mut b, 1, &all);
    assert_eq!(tags(&sent.to_server), "PBESdcS");
    let reply =
        cat(&[s::parse_complete(), s::bind_complete(), s::copy_in(), s::complete("COPY 1"), s::idle()]);
    let got = receive(&mut b, Some(&mut f), &reply);
    assert_eq!(got.to_client, reply);
    assert_eq!(got.done.len(), 2);
    assert!(b.is_reusable());
}

#[test]
fn trap_18_extended_copy_that_fails() {
    let (mut f, mut b) = (front(1), back());
    let batch = cat(&[c::parse("", "copy t from stdin"), c::bind(""), c::execute(), c::sync()]);
    send(&mut f, &mut b, 1, &batch);
    let reply = cat(&[s::parse_complete(), s::bind_complete(), s::copy_in(), s::error("22P04", "bad")]);
    let got = receive(&mut b, Some(&mut f), &reply);
    assert_eq!(got.done, [(1, Boundary::Failed)]);
    assert!(!b.is_reusable(), "the server waits for a Sync");
    let sent = send(&mut f, &mut b, 1, &cat(&[c::copy_data(b"1\n"), c::copy_done(), c::sync()]));
    assert_eq!(tags(&sent.to_server), "S");
    assert_eq!(receive(&mut b, Some(&mut f), &s::idle()).to_client, s::idle());
    assert!(b.is_reusable());
}

#[test]
fn a_client_that_leaves_in_a_copy() {
    let (mut f, mut b) = (front(1), back());
    send(&mut f, &mut b, 1, &c::q("copy t from stdin"));
    receive(&mut b, Some(&mut f), &s::copy_in());
    let mut out = Vec::new();
    b.forget(1, &mut out);
    assert_eq!(tags(&out), "f");
    let got = receive(&mut b, None, &cat(&[s::error("57014", "COPY failed"), s::idle()]));
    assert_eq!((got.to_client.len(), got.done.len()), (0, 1));
    assert!(b.is_reusable());
    // Before the server had begun the copy.
    let (mut f, mut b) = (front(1), back());
    let batch = cat(&[c::parse("", "copy t from stdin"), c::bind(""), c::execute(), c::sync()]);
    send(&mut f, &mut b, 1, &batch);
    b.forget(1, &mut out);
    let got = receive(&mut b, None, &cat(&[s::parse_complete(), s::bind_complete(), s::copy_in()]));
    assert_eq!(tags(&got.to_server), "fS");
    receive(&mut b, None, &cat(&[s::error("57014", "COPY failed"), s::idle()]));
    assert!(b.is_reusable());
    // In an extended copy: the Sync was swallowed.
    let (mut f, mut b) = (front(1), back());
    send(&mut f, &mut b, 1, &batch);
    receive(&mut b, Some(&mut f), &cat(&[s::parse_complete(), s::bind_complete(), s::copy_in()]));
    out.clear();
    b.forget(1, &mut out);
    assert_eq!(tags(&out), "fBS");
    receive(&mut b, None, &cat(&[s::error("57014", "COPY failed"), s::idle()]));
    assert!(b.is_reusable());
}

#[test]
fn a_client_that_leaves_between_its_copy_and_the_sync_has_copied_nothing() {
    let (mut f, mut b) = (front(1), back());
    let batch = cat(&[c::parse("", "copy t from stdin"), c::bind(""), c::execute(), c::sync()]);
    let begun = cat(&[s::parse_complete(), s::bind_complete(), s::copy_in()]);
    let data = cat(&[c::copy_data(b"1\n"), c::copy_done()]);
    let failed = cat(&[s::error("26000", "no such statement"), s::idle()]);
    // The server has said nothing yet of the end of the data.
    send(&mut f, &mut b, 1, &batch);
    receive(&mut b, Some(&mut f), &begun);
    send(&mut f, &mut b, 1, &data);
    let mut out = Vec::new();
    b.forget(1, &mut out);
    assert_eq!(tags(&out), "BS");
    receive(&mut b, None, &cat(&[s::complete("COPY 1"), failed.clone()]));
    assert!(b.is_reusable());
    // It has, because its buffer was full.
    let (mut f, mut b) = (front(1), back());
    send(&mut f, &mut b, 1, &batch);
    receive(&mut b, Some(&mut f), &begun);
    send(&mut f, &mut b, 1, &data);
    receive(&mut b, Some(&mut f), &s::complete("COPY 1"));
    out.clear();
    b.forget(1, &mut out);
    b.reset(&mut out);
    assert_eq!(tags(&out), "BSQQ");
    receive(
        &mut b,
        None,
        &cat(&[failed, s::complete("ROLLBACK"), s::idle(), s::complete("DISCARD ALL"), s::idle()]),
    );
    assert!(b.is_reusable());
}

#[test]
fn copy_out_streams() {
    let (mut f, mut b) = (front(1), back());
    let reply =
        cat(&[s::copy_out(), s::copy_data(&[1; 999]), s::copy_done(), s::complete("COPY 1"), s::idle()]);
    assert_eq!(run(&mut f, &mut b, &c::q("copy t to stdout"), &reply), reply);
}

#[test]
fn fatal_from_a_server() {
    let (mut f, mut b) = (front(1), back());
    send(&mut f, &mut b, 1, &c::q("x"));
    let fatal = s::fatal("57P01", "terminating connection");
    assert_eq!(receive(&mut b, Some(&mut f), &fatal).to_client, fatal);
    assert!(b.is_broken());
    let mut b = back();
    assert_eq!(receive(&mut b, None, &fatal).to_client, b"");
    assert!(b.is_broken() && !b.is_reusable());
}

#[test]
fn replies_that_do_not_fit_end_the_server() {
    for bad in [
        s::parse_complete(),
        s::bind_complete(),
        s::function_result(),
        b"Z\0\0\0\x05X".to_vec(),
        b"Z\0\0\0\x04".to_vec(),
        b"?".to_vec(),
        b"R\0\0\0\x08\0\0\0\0".to_vec(),
        b"W\0\0\0\x07\0\0\0".to_vec(),
    ] {
        let (mut f, mut b) = (front(1), back());
        send(&mut f, &mut b, 1, &c::q("x"));
        let fault = try_receive(&mut b, Some(&mut f), &bad).unwrap_err();
        assert_eq!(fault.kind, FaultKind::ServerProtocol, "{bad:?}");
    }
    for unasked in [s::row(b"1"), s::idle(), s::complete("X")] {
        let fault = try_receive(&mut back(), None, &unasked).unwrap_err();
        assert_eq!(fault.kind, FaultKind::ServerProtocol);
    }
    let mut huge = vec![b'E'];
    huge.extend_from_slice(&0x0200_0000_u32.to_be_bytes());
    let fault = try_receive(&mut back(), None, &huge).unwrap_err();
    assert_eq!(fault.kind, FaultKind::ServerTooLarge);
}

#[test]
fn malformed_requests_end_the_client() {
    for bad in [
        &b"P\0\0\0\x05x"[..],
        b"B\0\0\0\x05x",
        b"Q\0\0\0\x05x",
        b"?",
        b"p\0\0\0\x05\0",
        b"Q\0\0\0\x01",
        b"S\x7f\xff\xff\xff",
    ] {
        let (mut f, mut b) = (front(1), back());
        assert!(try_send(&mut f, &mut b, 1, bad, &Arc::default()).is_err(), "{bad:?}");
    }
    // What only the dispatch looks into.
    for bad in [&b"D\0\0\0\x05X"[..], b"E\0\0\0\x05x", b"C\0\0\0\x05S"] {
        let (mut f, mut b) = (front(1), back());
        assert!(
            try_send(&mut f, &mut b, 1, &[bad, &c::sync()].concat(), &Arc::default()).is_err(),
            "{bad:?}"
        );
    }
}

mod found;
mod names;
mod settings;
