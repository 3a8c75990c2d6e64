//! Defects found by the simulator.

use super::*;
use crate::effects::Effects;
use crate::testing::{back_with_room_for, send_with};
use weir_sql::catalogue::Catalogue;

#[test]
fn after_the_servers_farewell_weir_adds_no_second_one() {
    let (mut f, mut b) = (front(1), back());
    send(&mut f, &mut b, 1, &c::q("x"));
    let mut farewell = s::error("57P01", "terminating connection due to administrator command");
    while let Some(at) = farewell.windows(5).position(|w| w == b"ERROR") {
        farewell[at..at + 5].copy_from_slice(b"FATAL");
    }
    assert!(!receive(&mut b, Some(&mut f), &farewell).to_client.is_empty());
    let mut out = Vec::new();
    f.fatal(&FaultKind::ServerLost.into(), &mut out);
    assert!(out.is_empty(), "the client has read FATAL already");
    front(2).fatal(&FaultKind::ServerLost.into(), &mut out);
    assert!(!out.is_empty());
}

#[test]
fn in_the_middle_of_a_message_nothing_else_can_be_said() {
    let (mut f, mut b) = (front(1), back());
    send(&mut f, &mut b, 1, &c::q("x"));
    let row = s::row(&[7; 300]);
    try_receive(&mut b, Some(&mut f), &row[..100]).unwrap();
    assert!(b.is_mid_message());
    try_receive(&mut b, Some(&mut f), &row[100..]).unwrap();
    assert!(!b.is_mid_message());
}

#[test]
fn what_a_reset_leaves_as_it_was_at_the_start_is_not_told() {
    let (mut f, mut b, mut other) = (front_with(1, &[("timezone", "CET")]), back(), back());
    b.applied = Arc::clone(&f.settings);
    other.applied = Arc::new(crate::session_state::Settings::clone(&f.settings));
    other.reported.set("TimeZone", b"CET");
    let reset = Effects::of_text(weir_sql::Dialect::POSTGRES, b"RESET ALL", None).0;
    send_with(&mut f, &mut b, &c::q("RESET ALL"), &reset);
    let servers = s::parameter("TimeZone", "UTC");
    let rest = cat(&[s::complete("RESET"), s::idle()]);
    let seen = receive(&mut b, Some(&mut f), &cat(&[servers.clone(), rest.clone()])).to_client;
    assert_eq!(seen, rest, "not the server's own value, for a moment");
    let sent = send(&mut f, &mut other, 1, &c::q("x"));
    assert_eq!(sent.to_server, c::q("x"), "that server needs nothing");
    let reply = cat(&[s::complete("X"), s::idle()]);
    assert_eq!(receive(&mut other, Some(&mut f), &reply).to_client, reply);
}

#[test]
fn nothing_is_sent_behind_a_reset_that_takes_settings_away() {
    let (mut f, mut b) = (front_with(1, &[("timezone", "CET")]), back());
    b.applied = Arc::clone(&f.settings);
    let discard = Effects::of_text(weir_sql::Dialect::POSTGRES, b"DISCARD ALL", None).0;
    let sent = send_with(&mut f, &mut b, &cat(&[c::q("DISCARD ALL"), c::q("x")]), &discard);
    assert_eq!(sent.to_server, c::q("DISCARD ALL"), "the next request must find CET again");
    let reply = cat(&[s::parameter("TimeZone", "UTC"), s::complete("DISCARD ALL"), s::idle()]);
    receive(&mut b, Some(&mut f), &reply);
    let sent = send(&mut f, &mut b, 1, &c::q("x")).to_server;
    assert!(sent.windows(10).any(|w| w == b"set_config"), "they are brought back first");
}

#[test]
fn a_parse_that_weir_added_to_one_request_is_not_relied_on_by_the_next() {
    let (mut f, mut b, mut other) = (front(1), back(), back());
    prepare(&mut f, &mut b, "a", "select 1");
    // On another server, behind something that may fail: an error skips what Weir adds.
    let first = cat(&[c::parse("", "bad"), c::bind("a"), c::execute(), c::sync()]);
    let second = cat(&[c::bind("a"), c::execute(), c::sync()]);
    let sent = send(&mut f, &mut other, 1, &cat(&[first, second]));
    assert_eq!(tags(&sent.to_server), "PPDBESPDBES");
    let reply = cat(&[
        s::error("42601", "bad"),
        s::idle(),
        s::named_parsed(),
        s::bind_complete(),
        s::complete("SELECT 1"),
        s::idle(),
    ]);
    let got = receive(&mut other, Some(&mut f), &reply);
    assert_eq!(tags(&got.to_client), "EZ2CZ");
}

#[test]
fn a_close_behind_a_parse_that_fails_does_not_bring_its_statement_back() {
    let (mut f, mut b) = (front(1), back());
    let parse = cat(&[c::parse("s", "select 1"), c::sync()]);
    let close = cat(&[c::bind("gone"), c::close("s"), c::sync()]);
    assert_eq!(tags(&send(&mut f, &mut b, 1, &c::q("begin")).to_server), "Q");
    receive(&mut b, Some(&mut f), &cat(&[s::complete("BEGIN"), s::failed()]));
    // What Close takes away depends on the Parse, so nothing is guessed.
    let sent = send(&mut f, &mut b, 1, &cat(&[parse.clone(), close.clone()]));
    assert_eq!((tags(&sent.to_server).as_str(), sent.dispatched), ("PDS", 1));
    let refused = cat(&[s::error("25P02", "current transaction is aborted"), s::failed()]);
    receive(&mut b, Some(&mut f), &refused);
    assert_eq!(tags(&send(&mut f, &mut b, 1, &close).to_server), "BCS");
    receive(&mut b, Some(&mut f), &refused);
    assert!(f.prepared.as_deref().is_none_or(|prepared| prepared.get(b"s").is_none()));
}

#[test]
fn a_parse_that_went_as_it_was_ties_its_client_although_a_reset_is_answered_later() {
    let (mut f, mut b) =
        (front(1), Back::new(crate::cancel::ServerKey::new(77, b"keyk"), crate::testing::reported(), 0));
    // A text in which no reset is seen before it has run.
    let clears = Arc::new(Effects { clears: weir_sql::Clears::DISCARD_ALL, ..Effects::default() });
    b.dispatch(&mut f, 1, &c::q("discard all"), true, &mut Vec::new()).unwrap();
    if let Some(crate::queue::Owed::Query { effects, .. }) = b.queue.last_mut() {
        *effects = Some(clears);
    }
    b.dispatch(&mut f, 1, &cat(&[c::parse("s", "select 1"), c::sync()]), true, &mut Vec::new()).unwrap();
    receive(&mut b, Some(&mut f), &cat(&[s::complete("DISCARD ALL"), s::idle()]));
    receive(&mut b, Some(&mut f), &cat(&[s::parse_complete(), s::idle()]));
    assert!(f.pins().contains(Pin::Prepared) && !b.is_reusable());
}

#[test]
fn a_reset_in_doubt_leaves_alone_what_stays_with_its_server() {
    let set = Effects::of_text(weir_sql::Dialect::POSTGRES, b"set temp_buffers = '1MB'", None).0;
    let reset = Effects::of_text(weir_sql::Dialect::POSTGRES, b"reset temp_buffers", None).0;
    let (mut f, mut b) = (front(1), back());
    let done = cat(&[s::complete("SET"), s::idle()]);
    for effects in [&set, &reset, &set] {
        send_with(&mut f, &mut b, &c::q("x"), effects);
    }
    for _ in 0..3 {
        receive(&mut b, Some(&mut f), &done);
    }
    assert!(f.pins().contains(Pin::Setting));
    assert_eq!(
        send(&mut f, &mut b, 1, &c::q("show temp_buffers")).to_server,
        c::q("show temp_buffers"),
        "it is still '1MB'"
    );
    receive(&mut b, Some(&mut f), &done);
    // In a transaction that is rolled back.
    send_with(&mut f, &mut b, &c::q("x"), &Arc::default());
    receive(&mut b, Some(&mut f), &cat(&[s::complete("BEGIN"), s::in_transaction()]));
    send_with(&mut f, &mut b, &c::q("x"), &reset);
    receive(&mut b, Some(&mut f), &cat(&[s::complete("RESET"), s::in_transaction()]));
    send_with(&mut f, &mut b, &c::q("rollback"), &Arc::default());
    receive(&mut b, Some(&mut f), &cat(&[s::complete("ROLLBACK"), s::idle()]));
    assert_eq!(send(&mut f, &mut b, 1, &c::q("show temp_buffers")).to_server, c::q("show temp_buffers"));
}

#[test]
fn an_evicted_statement_whose_close_was_skipped_is_closed_later() {
    let (mut f, mut b) = (front(1), back_with_room_for(1));
    prepare(&mut f, &mut b, "a", "select 1");
    // In a failed transaction: the Parse fails, and the Close behind it is skipped.
    let other = cat(&[c::parse("b", "select 2"), c::sync()]);
    assert_eq!(tags(&send(&mut f, &mut b, 1, &other).to_server), "PDCS");
    let refused = cat(&[s::error("25P02", "current transaction is aborted"), s::idle()]);
    receive(&mut b, Some(&mut f), &refused);
    assert_eq!(tags(&send(&mut f, &mut b, 1, &c::q("x")).to_server), "CQ");
}

#[test]
fn what_ran_before_it_was_found_that_others_have_changed_the_catalogue_goes_with_a_reset() {
    let known = Knowledge::settled(Catalogue::default());
    let mut b = back();
    weir_session::Back::know(&mut b, &known);
    assert!(!weir_session::Back::wants_reset(&b));
    assert!(!known.begin_reading(1).unwrap().confirm(b"another", 2));
    assert!(weir_session::Back::wants_reset(&b));
    b.reset(&mut Vec::new());
    assert!(!weir_session::Back::wants_reset(&b), "it is on its way");
    let mut later = back();
    weir_session::Back::know(&mut later, &known);
    assert!(!weir_session::Back::wants_reset(&later), "nobody has run anything there");
}
