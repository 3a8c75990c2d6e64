//! User variables that move with their client: what servers are asked, and what they are sent.

mod common;

use common::{IDLE, MODERN, OPEN, asked, back, c, exchange, front, receive, s, send};
use weir_mysql::{Back, Front};
use weir_session::Front as _;
use weir_wire::{Boundary, Owner, Pin};

/// An integer, as a server tells it.
const ONE: (u8, u32, &str, Option<&str>) = (8, 21, "binary", Some("131"));
/// A variable that nobody has set.
const UNSET: (u8, u32, &str, Option<&str>) = (253, 65_532, "binary", None);

/// `SET @x = 1`, and what its server is asked behind it.
fn sets(front: &mut Front, back: &mut Back, owner: Owner) {
    send(front, back, owner, &c::query("SET @x = 1"));
    let got = receive(back, Some(front), &s::ok(IDLE));
    let questions = asked(&got.to_server);
    assert_eq!(questions.len(), 2, "{questions:?}");
    assert_eq!(questions[0], "SELECT @`x` LIMIT 0");
    assert!(got.done.is_empty() && front.pins().contains(Pin::UserVariable));
    let got = receive(back, Some(front), &s::variables(&[ONE]));
    assert_eq!(got.done, [(owner, Boundary::Idle)]);
    assert!(got.to_client.is_empty() && front.pins().is_empty());
}

#[test]
fn a_variable_is_asked_for_and_brought_to_the_next_server() {
    let (mut one, mut two) = (back(7), back(8));
    let mut front = front(1, MODERN, &mut one);
    sets(&mut front, &mut one, 1);
    // Who does not see it costs nothing.
    exchange(&mut front, &mut two, &c::query("SELECT 1"), &s::result(&["1"], &[&["1"]]));
    let sent = send(&mut front, &mut two, 1, &c::query("SELECT @x"));
    assert_eq!(asked(&sent.to_server), ["SET @`x`=1"]);
    let got = receive(&mut two, Some(&mut front), &s::ok(IDLE));
    assert_eq!(asked(&got.to_server), ["SELECT @x"]);
    receive(&mut two, Some(&mut front), &s::result(&["@x"], &[&["1"]]));
    exchange(&mut front, &mut two, &c::query("SELECT @x"), &s::result(&["@x"], &[&["1"]]));
}

#[test]
fn a_variable_of_another_is_taken_away_by_a_reset() {
    let mut back = back(7);
    let (mut one, mut two) = (front(1, MODERN, &mut back), front(2, MODERN, &mut back));
    sets(&mut one, &mut back, 1);
    send(&mut two, &mut back, 2, &c::query("SELECT 1"));
    receive(&mut back, Some(&mut two), &s::result(&["1"], &[&["1"]]));
    for (text, reply) in [("SELECT @x", s::result(&["@x"], &[&["1"]])), ("BEGIN", s::ok(OPEN))] {
        let sent = send(&mut two, &mut back, 2, &c::query(text));
        assert_eq!(asked(&sent.to_server), ["ResetConnection"], "{text}");
        let got = receive(&mut back, Some(&mut two), &s::ok(IDLE));
        let ahead = asked(&got.to_server);
        assert!(ahead.iter().all(|text| text.starts_with("SET ")), "{ahead:?}");
        let got = receive(&mut back, Some(&mut two), &s::ok(IDLE).repeat(ahead.len()));
        assert_eq!(asked(&got.to_server), [text]);
        let got = receive(&mut back, Some(&mut two), &reply);
        assert_eq!(got.done.len(), 1);
        if text != "BEGIN" {
            // Its own are not here any more.
            let sent = send(&mut one, &mut back, 1, &c::query("SELECT @x"));
            let ahead = asked(&sent.to_server);
            assert_eq!(ahead.last().map(String::as_str), Some("SET @`x`=1"), "{ahead:?}");
            let got = receive(&mut back, Some(&mut one), &s::ok(IDLE).repeat(ahead.len()));
            assert_eq!(asked(&got.to_server), ["SELECT @x"]);
            receive(&mut back, Some(&mut one), &s::result(&["@x"], &[&["1"]]));
        }
    }
}

#[test]
fn what_is_not_told_stays_where_it_is() {
    let told = [
        s::variables(&[(255, 16_777_215, "binary", Some("000"))]),
        s::variables(&[(5, 23, "binary", Some("0312E35"))]),
        s::variables(&[(250, 99, "latin1_bin", Some("-"))]),
        s::variables(&[(250, 99, "utf8mb4_bin", Some("0FF"))]),
        s::variables(&[(250, 99, "gbk_chinese_ci", Some("0C4E3"))]),
        [s::err(1, 1317, "interrupted"), s::result(&["a", "b"], &[&["binary", "131"]])].concat(),
    ];
    for answer in told {
        let mut back = back(7);
        let mut front = front(1, MODERN, &mut back);
        send(&mut front, &mut back, 1, &c::query("SET @x = 1"));
        receive(&mut back, Some(&mut front), &s::ok(IDLE));
        let got = receive(&mut back, Some(&mut front), &answer);
        assert_eq!(got.done, [(1, Boundary::Idle)]);
        assert!(front.pins().contains(Pin::UserVariable));
        // It is asked about no more.
        exchange(&mut front, &mut back, &c::query("SET @x = 2"), &s::ok(IDLE));
    }
}

#[test]
fn a_variable_that_was_not_made_is_none() {
    let mut back = back(7);
    let (mut one, mut two) = (front(1, MODERN, &mut back), front(2, MODERN, &mut back));
    send(&mut one, &mut back, 1, &c::query("SELECT 1 INTO @x FROM DUAL WHERE 0"));
    receive(&mut back, Some(&mut one), &s::ok(IDLE));
    let got = receive(&mut back, Some(&mut one), &s::variables(&[UNSET]));
    assert_eq!(got.done, [(1, Boundary::Idle)]);
    assert!(one.pins().is_empty());
    let sent = send(&mut two, &mut back, 2, &c::query("SELECT @x"));
    assert_eq!(asked(&sent.to_server), ["SELECT @x"], "nothing is in the way");
}

#[test]
fn a_transaction_is_over_before_a_variable_is_asked_for() {
    let (mut one, mut two) = (back(7), back(8));
    let mut front = front(1, MODERN, &mut one);
    exchange(&mut front, &mut one, &c::query("BEGIN"), &s::ok(OPEN));
    exchange(&mut front, &mut one, &c::query("SET @X = 1"), &s::ok(OPEN));
    exchange(&mut front, &mut one, &c::query("SELECT @x"), &s::result_at(1, &["@x"], &[&["1"]], OPEN, 0).0);
    assert!(front.pins().contains(Pin::UserVariable));
    send(&mut front, &mut one, 1, &c::query("ROLLBACK"));
    let got = receive(&mut one, Some(&mut front), &s::ok(IDLE));
    assert_eq!(asked(&got.to_server).len(), 2, "its value outlives a rollback");
    receive(&mut one, Some(&mut front), &s::variables(&[ONE]));
    assert!(front.pins().is_empty());
    let sent = send(&mut front, &mut two, 1, &c::query("BEGIN"));
    assert_eq!(asked(&sent.to_server), ["SET @`x`=1"], "who is tied to a server has all of its own there");
}

#[test]
fn a_statement_is_prepared_by_the_variables_it_was_prepared_with() {
    let (mut one, mut two) = (back(7), back(8));
    let mut front = front(1, MODERN, &mut one);
    send(&mut front, &mut one, 1, &c::prepare("SELECT @x"));
    receive(&mut one, Some(&mut front), &s::prepared(1, 0));
    sets(&mut front, &mut one, 1);
    let sent = send(&mut front, &mut two, 1, &c::execute(1));
    assert_eq!(asked(&sent.to_server), ["StmtPrepare SELECT @x", "SET @`x`=1"]);
}

/// A reset would take away what ties it, and an error is no answer.
#[test]
fn a_variable_of_another_is_null_for_a_client_that_is_tied_to_the_server() {
    let (mut here, mut there) = (back(7), back(8));
    let (mut one, mut two) = (front(1, MODERN, &mut here), front(2, MODERN, &mut there));
    sets(&mut one, &mut here, 1);
    exchange(&mut two, &mut there, &c::query("SELECT GET_LOCK('l', 0)"), &s::result(&["x"], &[&["1"]]));
    assert!(two.pins().contains(Pin::SessionLock));
    let sent = send(&mut two, &mut here, 2, &c::query("SELECT @x"));
    assert_eq!(asked(&sent.to_server), ["SET @`x`=_binary'',@`x`=NULL"]);
    let got = receive(&mut here, Some(&mut two), &s::ok(IDLE));
    assert_eq!(asked(&got.to_server), ["SELECT @x"]);
}
