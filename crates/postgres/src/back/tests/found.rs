//! What the simulator found.

use super::*;
use crate::effects::Effects;
use crate::testing::send_with;

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
fn settings_named_at_the_start_are_told_behind_a_reset() {
    let (mut f, mut b, mut other) = (front_with(1, &[("timezone", "CET")]), back(), back());
    b.applied = Arc::clone(&f.settings);
    other.applied = Arc::new(crate::session_state::Settings::clone(&f.settings));
    other.reported.set("TimeZone", b"CET");
    let reset = Effects::of_text(weir_sql::Dialect::POSTGRES, b"RESET ALL");
    send_with(&mut f, &mut b, &c::q("RESET ALL"), &reset);
    let (servers, own) = (s::parameter("TimeZone", "UTC"), s::parameter("TimeZone", "CET"));
    let rest = cat(&[s::complete("RESET"), s::idle()]);
    let seen = receive(&mut b, Some(&mut f), &cat(&[servers.clone(), rest.clone()])).to_client;
    assert_eq!(seen, cat(&[servers, own, rest]));
    let sent = send(&mut f, &mut other, 1, &c::q("x"));
    assert_eq!(sent.to_server, c::q("x"), "that server needs nothing");
    let reply = cat(&[s::complete("X"), s::idle()]);
    assert_eq!(receive(&mut other, Some(&mut f), &reply).to_client, reply);
}

#[test]
fn nothing_is_sent_behind_a_reset_that_takes_settings_away() {
    let (mut f, mut b) = (front_with(1, &[("timezone", "CET")]), back());
    b.applied = Arc::clone(&f.settings);
    let discard = Effects::of_text(weir_sql::Dialect::POSTGRES, b"DISCARD ALL");
    let sent = send_with(&mut f, &mut b, &cat(&[c::q("DISCARD ALL"), c::q("x")]), &discard);
    assert_eq!(sent.to_server, c::q("DISCARD ALL"), "the next request must find CET again");
    let reply = cat(&[s::parameter("TimeZone", "UTC"), s::complete("DISCARD ALL"), s::idle()]);
    receive(&mut b, Some(&mut f), &reply);
    let sent = send(&mut f, &mut b, 1, &c::q("x")).to_server;
    assert!(sent.windows(10).any(|w| w == b"set_config"), "they are brought back first");
    // A client that named nothing has nothing to lose.
    let (mut f, mut b) = (front(1), back());
    assert_eq!(tags(&send(&mut f, &mut b, 1, &cat(&[c::q("DISCARD ALL"), c::q("x")])).to_server), "QQ");
}

#[test]
fn a_known_parse_behind_a_request_under_way_is_asked_anew() {
    let (mut f, mut b) = (front(1), back());
    prepare(&mut f, &mut b, "a", "select 1");
    let mut g = front(2);
    // What fails first may make the transaction fail, and then the Parse must fail, too.
    let request = cat(&[c::q("x"), c::parse("mine", "select 1"), c::sync()]);
    assert_eq!(tags(&send(&mut g, &mut b, 2, &request).to_server), "QCPS");
}

#[test]
fn a_parse_that_weir_added_to_one_request_is_not_relied_on_by_the_next() {
    let (mut f, mut b, mut other) = (front(1), back(), back());
    prepare(&mut f, &mut b, "a", "select 1");
    // On another server, behind something that may fail: an error skips what Weir adds.
    let first = cat(&[c::parse("", "bad"), c::bind("a"), c::execute(), c::sync()]);
    let second = cat(&[c::bind("a"), c::execute(), c::sync()]);
    let sent = send(&mut f, &mut other, 1, &cat(&[first, second]));
    assert_eq!(tags(&sent.to_server), "PPBESCPBES");
    let reply = cat(&[
        s::error("42601", "bad"),
        s::idle(),
        s::close_complete(),
        s::parse_complete(),
        s::bind_complete(),
        s::complete("SELECT 1"),
        s::idle(),
    ]);
    let got = receive(&mut other, Some(&mut f), &reply);
    assert_eq!(tags(&got.to_client), "EZ2CZ");
    // What the client itself has asked for fails for both.
    let request = cat(&[c::parse("n", "select 2"), c::sync(), c::bind("n"), c::execute(), c::sync()]);
    assert_eq!(tags(&send(&mut f, &mut other, 1, &request).to_server), "PSBES");
}
