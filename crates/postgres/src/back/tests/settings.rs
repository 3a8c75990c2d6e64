//! Settings and pins, and what releases them.

use super::*;
use crate::effects::{Effects, SetName};
use crate::testing::send_with;
use weir_sql::Clears;

fn settings_of(sent: &[u8]) -> String {
    let total = u32::from_be_bytes(sent[1..5].try_into().unwrap()) as usize + 1;
    String::from_utf8(sent[5..total - 1].to_vec()).unwrap()
}

#[test]
fn settings_come_in_front_and_wait_only_the_first_time() {
    let (mut f, mut b) = (front_with(1, &[("work_mem", "5MB"), ("client_encoding", "UTF8")]), back());
    let request = c::q("select 1");
    let sent = send(&mut f, &mut b, 1, &request);
    assert_eq!(
        settings_of(&sent.to_server),
        "SELECT pg_catalog.set_config(E'work_mem',E'5MB',false)",
        "what the server has is not sent"
    );
    assert_eq!(tags(&sent.to_server), "Q", "the request waits: these settings are new here");
    let got = receive(&mut b, Some(&mut f), &s::settings_done());
    assert_eq!((got.to_client.len(), got.to_server, got.done.len()), (0, request.clone(), 0));
    let reply = cat(&[s::complete("SELECT 1"), s::idle()]);
    assert_eq!(receive(&mut b, Some(&mut f), &reply).to_client, reply);
    // Another client without settings resets; then the first one's go ahead in the same packet.
    let mut g = front(2);
    let sent = send(&mut g, &mut b, 2, &request);
    assert_eq!(settings_of(&sent.to_server), "SELECT pg_catalog.set_config(E'work_mem',NULL,false)");
    assert_eq!(tags(&sent.to_server), "QQ");
    let got = receive(&mut b, Some(&mut g), &cat(&[s::settings_done(), reply.clone()]));
    assert_eq!((got.to_client, got.done), (reply.clone(), vec![(2, Boundary::Idle)]));
    let sent = send(&mut f, &mut b, 1, &request);
    assert_eq!(tags(&sent.to_server), "QQ");
    receive(&mut b, Some(&mut f), &cat(&[s::settings_done(), reply]));
    assert!(b.is_reusable());
}

/// A time limit of the client before may cut off the query that takes it away: whoever comes behind it waits.
#[test]
fn a_request_waits_behind_settings_that_a_time_limit_may_cut_off() {
    let (mut f, mut g, mut b) = (front_with(1, &[("statement_timeout", "5s")]), front(2), back());
    let request = c::q("select 1");
    let reply = cat(&[s::complete("SELECT 1"), s::idle()]);
    send(&mut f, &mut b, 1, &request);
    receive(&mut b, Some(&mut f), &cat(&[s::settings_done(), reply.clone()]));
    assert_eq!(tags(&send(&mut g, &mut b, 2, &request).to_server), "Q");
    let got = receive(&mut b, Some(&mut g), &s::settings_done());
    assert_eq!((got.to_server, got.to_client.len()), (request.clone(), 0));
    receive(&mut b, Some(&mut g), &reply);
    assert!(b.is_reusable());
}

/// The requests of several clients stand behind each other: what one of them brings is not taken for the
/// server's own value because the one behind it brings nothing.
#[test]
fn what_one_client_brings_is_not_the_servers_own_value_for_those_behind_it() {
    let ((mut f, mut g, mut k), mut b) =
        ((front_with(1, &[("TimeZone", "CET")]), front(2), front_with(3, &[("TimeZone", "CET")])), back());
    crate::dispatch::remember_accepted(&mut b.accepted, f.settings.plan_key());
    let request = c::q("select now()");
    let reply = cat(&[s::complete("SELECT 1"), s::idle()]);
    assert_eq!(tags(&send(&mut f, &mut b, 1, &request).to_server), "QQ");
    assert_eq!(tags(&send(&mut g, &mut b, 2, &request).to_server), "QQ");
    let brought = cat(&[s::parameter("TimeZone", "CET"), s::settings_done(), reply]);
    assert_eq!(receive(&mut b, Some(&mut f), &brought).done.len(), 1);
    let sent = send(&mut k, &mut b, 3, &request);
    assert_eq!(settings_of(&sent.to_server), "SELECT pg_catalog.set_config(E'timezone',E'CET',false)");
    assert_eq!(tags(&sent.to_server), "QQ");
}

#[test]
fn settings_that_fail_are_the_clients_error_and_the_request_does_not_run() {
    let (mut f, mut b) = (front_with(1, &[("work_mem", "nonsense")]), back());
    let sent = send(&mut f, &mut b, 1, &cat(&[c::parse("s", "x"), c::bind("s"), c::execute(), c::sync()]));
    assert_eq!(tags(&sent.to_server), "Q");
    let got = receive(&mut b, Some(&mut f), &cat(&[s::error("22023", "invalid"), s::idle()]));
    assert_eq!((tags(&got.to_client), got.to_server.len()), ("EZ".into(), 0));
    assert_eq!(got.done, [(1, Boundary::Idle)]);
    assert!(f.prepared.as_deref().unwrap().get(b"s").is_none());
    assert!(b.applied.is_empty() && b.is_reusable());
}

#[test]
fn settings_that_fail_although_known_end_the_server() {
    let (mut f, mut b) = (front_with(1, &[("work_mem", "1MB")]), back());
    crate::dispatch::remember_accepted(&mut b.accepted, f.settings.plan_key());
    let sent = send(&mut f, &mut b, 1, &c::q("x"));
    assert_eq!(tags(&sent.to_server), "QQ");
    let reply = cat(&[s::error("22023", "invalid"), s::idle(), s::row(b"1"), s::complete("X"), s::idle()]);
    // The request runs, under other settings: nobody may be told that it did not.
    assert!(!b.is_cancellable(true), "a cancel would hit the settings and not the request");
    let fault = try_receive(&mut b, Some(&mut f), &reply).unwrap_err();
    assert_eq!(fault.kind, FaultKind::ServerLost);
}

#[test]
fn a_request_held_back_takes_those_behind_it_along() {
    let (mut f, mut g, mut b) = (front_with(1, &[("work_mem", "1MB")]), front(2), back());
    let sent = send(&mut f, &mut b, 1, &cat(&[c::q("VALUES ('a')"), c::q("VALUES ('b')")]));
    assert_eq!(tags(&sent.to_server), "Q");
    assert!(send(&mut g, &mut b, 2, &c::q("VALUES ('c')")).to_server.is_empty());
    let got = receive(&mut b, Some(&mut f), &s::settings_done());
    assert_eq!(tags(&got.to_server), "QQQQ", "a, b, the settings of the second client, c");
    for _ in 0..2 {
        receive(&mut b, Some(&mut f), &cat(&[s::complete("X"), s::idle()]));
    }
    let got = receive(&mut b, Some(&mut g), &cat(&[s::settings_done(), s::complete("X"), s::idle()]));
    assert_eq!(tags(&got.to_client), "CZ");
    assert!(b.is_reusable());
}

#[test]
fn a_reported_setting_moves_with_its_client() {
    let (mut f, mut b) = (front(1), back());
    let reply = cat(&[s::complete("SET"), s::parameter("TimeZone", "CET"), s::idle()]);
    assert_eq!(run_with(&mut f, &mut b, &effects(|e| e.may_set = true), &reply), reply);
    // Known here: nothing is sent for the next request.
    assert_eq!(tags(&send(&mut f, &mut b, 1, &c::q("x")).to_server), "Q");
    receive(&mut b, Some(&mut f), &cat(&[s::complete("X"), s::idle()]));
    let mut other = back();
    let sent = send(&mut f, &mut other, 1, &c::q("x"));
    assert_eq!(settings_of(&sent.to_server), "SELECT pg_catalog.set_config(E'timezone',E'CET',false)");
    // What comes of it is not told a second time.
    let reply =
        cat(&[s::row_description(), s::complete("SELECT 1"), s::parameter("TimeZone", "CET"), s::idle()]);
    assert!(receive(&mut other, Some(&mut f), &reply).to_client.is_empty());
}

fn effects(change: impl FnOnce(&mut Effects)) -> Arc<Effects> {
    let mut effects = Effects::default();
    change(&mut effects);
    Arc::new(effects)
}

/// A simple query with these effects, whatever the lexer would say.
fn run_with(f: &mut Front, b: &mut Back, effects: &Arc<Effects>, reply: &[u8]) -> Vec<u8> {
    send_with(f, b, &c::q("x"), effects);
    let got = receive(b, Some(f), reply);
    assert_eq!(got.done.len(), 1);
    got.to_client
}

#[test]
fn pins_take_effect_only_on_success() {
    let (mut f, mut b) = (front(1), back());
    let listen = effects(|e| e.pins = Pin::Listen.into());
    run_with(&mut f, &mut b, &listen, &cat(&[s::error("42601", "no"), s::idle()]));
    assert!(f.pins().is_empty());
    run_with(&mut f, &mut b, &listen, &cat(&[s::complete("LISTEN"), s::idle()]));
    assert!(f.pins().contains(Pin::Listen));
    assert!(!b.is_reusable(), "a trace is left");
    // Of two statements the first succeeded: it may have left something.
    let (mut f, mut b) = (front(1), back());
    let reply = cat(&[s::complete("LISTEN"), s::error("22012", "division by zero"), s::idle()]);
    run_with(&mut f, &mut b, &listen, &reply);
    assert!(f.pins().contains(Pin::Listen));
}

#[test]
fn a_prepared_statement_pins_when_it_is_executed() {
    let (mut f, mut b) = (front(1), back());
    let request = cat(&[c::parse("s", "x"), c::sync()]);
    send_with(&mut f, &mut b, &request, &effects(|e| e.pins = Pin::TemporaryTable.into()));
    receive(&mut b, Some(&mut f), &cat(&[s::named_parsed(), s::idle()]));
    assert!(f.pins().is_empty());
    run(&mut f, &mut b, &cat(&[c::bind("s"), c::sync()]), &cat(&[s::bind_complete(), s::idle()]));
    assert!(f.pins().is_empty());
    let executed = cat(&[s::bind_complete(), s::complete("CREATE TABLE"), s::idle()]);
    run(&mut f, &mut b, &cat(&[c::bind("s"), c::execute(), c::sync()]), &executed);
    assert!(f.pins().contains(Pin::TemporaryTable));
}

#[test]
fn discard_all_forgets_statements_settings_and_pins() {
    let (mut f, mut b) = (front_with(1, &[("timezone", "CET")]), back());
    b.applied = Arc::clone(&f.settings);
    prepare(&mut f, &mut b, "s", "select 1");
    run_with(
        &mut f,
        &mut b,
        &effects(|e| e.pins = Pin::Listen.into()),
        &cat(&[s::complete("LISTEN"), s::idle()]),
    );
    let discard = effects(|e| e.clears = Clears::DISCARD_ALL);
    let reply = cat(&[s::complete("DISCARD ALL"), s::parameter("TimeZone", "UTC"), s::idle()]);
    let told = s::parameter("TimeZone", "CET");
    let seen = run_with(&mut f, &mut b, &discard, &reply);
    assert!(!seen.windows(told.len()).any(|part| part == told), "the value named at the start holds still");
    assert!(f.pins().is_empty() && b.is_reusable());
    assert!(f.prepared.as_deref().unwrap().get(b"s").is_none());
    // It comes back to the server with the next request.
    let sent = send(&mut f, &mut b, 1, &cat(&[c::parse("s", "select 1"), c::sync()]));
    assert_eq!(settings_of(&sent.to_server), "SELECT pg_catalog.set_config(E'timezone',E'CET',false)");
    let got = receive(&mut b, Some(&mut f), &cat(&[s::row_description(), s::complete("SELECT 1"), told]));
    assert!(got.to_client.is_empty(), "the client knows");
    let got = receive(&mut b, Some(&mut f), &s::idle());
    assert!(got.to_client.is_empty());
    assert_eq!(tags(&got.to_server), "PDS", "no statement is believed to be there");
}

#[test]
fn discard_all_that_fails_forgets_nothing_of_the_clients() {
    let (mut f, mut b) = (front(1), back());
    prepare(&mut f, &mut b, "s", "select 1");
    let discard = effects(|e| e.clears = Clears::DISCARD_ALL);
    run_with(&mut f, &mut b, &discard, &cat(&[s::error("25001", "in a transaction"), s::failed()]));
    assert!(f.prepared.as_deref().unwrap().get(b"s").is_some());
}

#[test]
fn trap_23_a_reset_goes_back_to_what_was_named_at_the_start() {
    let (mut f, mut b) = (front_with(1, &[("timezone", "CET")]), back());
    b.applied = Arc::clone(&f.settings);
    run(
        &mut f,
        &mut b,
        &c::q("set timezone"),
        &cat(&[s::complete("SET"), s::parameter("TimeZone", "EST"), s::idle()]),
    );
    let names = [SetName { name: "timezone".into(), reset: true, local: false }];
    let reset = effects(|e| {
        e.pins = Pin::Setting.into();
        e.names = Some(names.into());
    });
    let reply = cat(&[s::complete("RESET"), s::parameter("TimeZone", "UTC"), s::idle()]);
    run_with(&mut f, &mut b, &reset, &reply);
    assert!(f.pins().is_empty());
    let sent = send(&mut f, &mut b, 1, &c::q("x"));
    assert_eq!(settings_of(&sent.to_server), "SELECT pg_catalog.set_config(E'timezone',E'CET',false)");
}

#[test]
fn trap_23_a_set_that_is_rolled_back_is_not_carried() {
    let (mut f, mut b) = (front(1), back());
    run(&mut f, &mut b, &c::q("begin"), &cat(&[s::complete("BEGIN"), s::in_transaction()]));
    let set = cat(&[s::complete("SET"), s::parameter("TimeZone", "CET"), s::in_transaction()]);
    run_with(&mut f, &mut b, &effects(|e| e.may_set = true), &set);
    assert_eq!(f.settings.get("timezone"), Some(&b"CET"[..]));
    let back_again = cat(&[s::complete("ROLLBACK"), s::parameter("TimeZone", "UTC"), s::idle()]);
    run(&mut f, &mut b, &c::q("rollback"), &back_again);
    assert!(f.settings.is_empty() && b.applied.is_empty());
}

#[test]
fn settings_do_not_change_inside_a_failed_transaction() {
    let (mut f, mut b) = (front(1), back());
    run(&mut f, &mut b, &c::q("begin"), &cat(&[s::complete("BEGIN"), s::failed()]));
    f.settings = Arc::new(f.settings.with("timezone", b"CET").unwrap());
    assert_eq!(tags(&send(&mut f, &mut b, 1, &c::q("x")).to_server), "Q");
}

#[test]
fn deallocate_of_a_protocol_level_name() {
    let (mut f, mut b) = (front(1), back());
    prepare(&mut f, &mut b, "pdo_1", "select 1");
    let deallocate = effects(|e| e.deallocates = Some("pdo_1".into()));
    let sent = send_with(&mut f, &mut b, &c::q("x"), &deallocate);
    assert_eq!(tags(&sent.to_server), "CPSQCS");
    let reply = cat(&[
        s::close_complete(),
        s::parse_complete(),
        s::idle(),
        s::complete("DEALLOCATE"),
        s::idle(),
        s::close_complete(),
        s::idle(),
    ]);
    let got = receive(&mut b, Some(&mut f), &reply);
    assert_eq!((tags(&got.to_client), got.done.len()), ("CZ".into(), 1));
    assert!(f.prepared.as_deref().unwrap().get(b"pdo_1").is_none());
    // In a failed transaction the name stays.
    run(
        &mut f,
        &mut b,
        &cat(&[c::parse("pdo_1", "select 1"), c::sync()]),
        &cat(&[s::named_parsed(), s::idle()]),
    );
    send_with(&mut f, &mut b, &c::q("x"), &deallocate);
    let aborted = s::error("25P02", "aborted");
    let closed = cat(&[s::close_complete(), s::failed()]);
    // What was read for the first Parse is closed, too.
    let before = cat(&[s::close_complete(), s::close_complete()]);
    let reply = cat(&[before, aborted.clone(), s::failed(), aborted, s::failed(), closed]);
    assert_eq!(tags(&receive(&mut b, Some(&mut f), &reply).to_client), "EZ");
    assert!(f.prepared.as_deref().unwrap().get(b"pdo_1").is_some());
    // The same by the extended protocol.
    run(&mut f, &mut b, &c::q("x"), &cat(&[s::complete("X"), s::idle()]));
    let request = cat(&[c::parse("", "x"), c::bind(""), c::execute(), c::sync()]);
    let sent = send_with(&mut f, &mut b, &request, &deallocate);
    assert_eq!(tags(&sent.to_server), "PBCPECS");
    let reply = cat(&[
        s::parse_complete(),
        s::bind_complete(),
        s::close_complete(),
        s::parse_complete(),
        s::complete("DEALLOCATE"),
        s::close_complete(),
        s::idle(),
    ]);
    assert_eq!(tags(&receive(&mut b, Some(&mut f), &reply).to_client), "12CZ");
    assert!(f.prepared.as_deref().unwrap().get(b"pdo_1").is_none());
}

#[test]
fn execute_of_a_protocol_level_name() {
    let (mut f, mut b) = (front(1), back());
    let listening = effects(|e| e.pins = Pin::Listen.into());
    send_with(&mut f, &mut b, &cat(&[c::parse("a", "x"), c::sync()]), &listening);
    receive(&mut b, Some(&mut f), &cat(&[s::named_parsed(), s::idle()]));
    let execute = effects(|e| e.executes = Some("a".into()));
    let sent = send_with(&mut f, &mut b, &c::q("x"), &execute);
    assert_eq!(tags(&sent.to_server), "CPSQCS");
    let reply = cat(&[
        s::close_complete(),
        s::parse_complete(),
        s::idle(),
        s::row(b"1"),
        s::complete("SELECT 1"),
        s::idle(),
        s::close_complete(),
        s::idle(),
    ]);
    let got = receive(&mut b, Some(&mut f), &reply);
    assert_eq!((tags(&got.to_client), got.done.len()), ("DCZ".into(), 1));
    assert!(f.pins().contains(Pin::Listen), "it did what the statement does");
    let request = cat(&[c::parse("", "x"), c::bind(""), c::execute(), c::sync()]);
    assert_eq!(tags(&send_with(&mut f, &mut b, &request, &execute).to_server), "PBCPECS");
    // An error before the Close: the stand-in is closed in front of the next request.
    let parts = [s::parse_complete(), s::bind_complete(), s::close_complete(), s::parse_complete()];
    receive(&mut b, Some(&mut f), &cat(&[parts.concat(), s::error("22012", "zero"), s::idle()]));
    assert_eq!(tags(&send(&mut f, &mut b, 1, &c::q("x")).to_server), "CQ");
    let got = receive(&mut b, Some(&mut f), &cat(&[s::close_complete(), s::complete("X"), s::idle()]));
    assert_eq!(tags(&got.to_client), "CZ");
}

#[test]
fn long_statements_go_raw_and_pin() {
    let (mut f, mut b) = (front(1), back());
    let text = format!("select '{}'", "x".repeat(100_000));
    let all = cat(&[c::parse("big", &text), c::bind("big"), c::execute(), c::sync()]);
    let sent = send(&mut f, &mut b, 1, &all);
    assert!(sent.to_server == all, "under the client's own name");
    assert!(f.pins().contains(Pin::Prepared));
    let reply = cat(&[s::parse_complete(), s::bind_complete(), s::complete("X"), s::idle()]);
    assert_eq!(receive(&mut b, Some(&mut f), &reply).done.len(), 1);
}

#[test]
fn long_queries_and_binds_stream() {
    let (mut f, mut b) = (front(1), back());
    prepare(&mut f, &mut b, "s", "select $1");
    let mut bind = c::bind("s");
    bind.truncate(bind.len() - 4);
    bind.extend_from_slice(&[0; 150_000]);
    let length = (bind.len() as u32 - 1).to_be_bytes();
    bind[1..5].copy_from_slice(&length);
    let sent = send(&mut f, &mut b, 1, &cat(&[bind.clone(), c::execute(), c::sync()]));
    assert_eq!(tags(&sent.to_server), "BES");
    assert_eq!(sent.to_server.len(), bind.len() + 36 + c::execute().len() + 5);
    receive(&mut b, Some(&mut f), &cat(&[s::bind_complete(), s::complete("X"), s::idle()]));
    let query = c::q(&format!("select '{}'", "x".repeat(300_000)));
    let sent = send(&mut f, &mut b, 1, &query);
    // It may ask what was drawn from a sequence, which is known at its end only.
    let forget = c::q("DISCARD SEQUENCES");
    assert!(sent.to_server == cat(&[forget, query]) && sent.dispatched == 1);
    let done = cat(&[s::complete("X"), s::idle()]);
    assert_eq!(receive(&mut b, Some(&mut f), &cat(&[done.clone(), done.clone()])).to_client, done);
}

fn of(text: &str) -> Arc<Effects> {
    Effects::of_text(weir_sql::Dialect::POSTGRES, text.as_bytes(), None).0
}

/// What a client has set is asked behind its answer, and then the client may go elsewhere with it.
#[test]
fn what_a_client_has_set_is_asked_and_goes_with_it() {
    let (mut f, mut g, mut b, mut other) = (front(1), front(2), back(), back());
    send_with(&mut f, &mut b, &c::q("set work_mem = '7MB'"), &of("set work_mem = '7MB'"));
    let reply = cat(&[s::complete("SET"), s::idle()]);
    let got = receive(&mut b, Some(&mut f), &reply);
    assert_eq!((got.to_client, got.done.len()), (reply, 0), "the client has its answer, the server is kept");
    assert!(f.pins().contains(Pin::Setting) && !b.is_reusable());
    assert_eq!(settings_of(&got.to_server), "SELECT pg_catalog.current_setting(E'work_mem',true)");
    let got = receive(&mut b, Some(&mut f), &cat(&[s::row(b"7MB"), s::complete("SELECT 1"), s::idle()]));
    assert_eq!((got.to_client.len(), got.done), (0, vec![(1, Boundary::Idle)]));
    assert!(f.pins().is_empty() && b.is_reusable());
    let sent = send(&mut f, &mut other, 1, &c::q("select 1"));
    assert_eq!(settings_of(&sent.to_server), "SELECT pg_catalog.set_config(E'work_mem',E'7MB',false)");
    let sent = send(&mut g, &mut b, 2, &c::q("select 1"));
    assert_eq!(settings_of(&sent.to_server), "SELECT pg_catalog.set_config(E'work_mem',NULL,false)");
}

#[test]
fn what_cannot_be_asked_keeps_its_server() {
    let told = cat(&[s::complete("SET"), s::idle()]);
    for text in ["set temp_buffers = '1MB'", "select set_config(a, 'x', false)", "select setseed(0)"] {
        let (mut f, mut b) = (front(1), back());
        send_with(&mut f, &mut b, &c::q(text), &of(text));
        assert_eq!(receive(&mut b, Some(&mut f), &told).to_server, [], "{text}");
        assert!(f.pins().contains(Pin::Setting) && !b.is_reusable(), "{text}");
    }
    for answer in [s::error("42501", "permission denied"), s::row(b"0.333333"), cat(&[])] {
        let (mut f, mut b) = (front(1), back());
        let set = "set pg_trgm.similarity_threshold = 0.3333333333";
        send_with(&mut f, &mut b, &c::q(set), &of(set));
        assert_eq!(tags(&receive(&mut b, Some(&mut f), &told).to_server), "Q");
        let got = receive(&mut b, Some(&mut f), &cat(&[answer, s::idle()]));
        assert_eq!((got.to_client.len(), got.done.len()), (0, 1));
        assert!(f.pins().contains(Pin::Setting) && !b.is_reusable());
        // Nor is it asked a second time.
        send_with(&mut f, &mut b, &c::q(set), &of(set));
        assert_eq!(receive(&mut b, Some(&mut f), &told).to_server, []);
    }
}

/// A role is asked for like any other setting, comes back last, and is waited for each time: it may have been
/// taken away.
#[test]
fn a_role_moves_and_is_waited_for() {
    let told = cat(&[s::complete("SET"), s::idle()]);
    let (mut f, mut g, mut b) = (front_with(1, &[("work_mem", "5MB")]), front(2), back());
    b.applied = Arc::clone(&f.settings);
    send_with(&mut f, &mut b, &c::q("set role boss"), &of("set role boss"));
    let asked = settings_of(&receive(&mut b, Some(&mut f), &told).to_server);
    assert!(f.pins().contains(Pin::Setting), "until it is known");
    assert!(asked.contains("current_setting(E'session_authorization',true)"), "{asked}");
    let row = s::row_of(&[b"boss", b"app"]);
    let who = b.base.get("session_authorization").map(<[u8]>::to_vec);
    assert_eq!(who, None, "this server has not said who logged in");
    b.base.set("session_authorization", b"app");
    receive(&mut b, Some(&mut f), &cat(&[row, s::complete("SELECT 1"), s::idle()]));
    assert!(f.pins().is_empty() && b.is_reusable());
    let (request, reply) = (c::q("select 1"), cat(&[s::complete("SELECT 1"), s::idle()]));
    for _ in 0..2 {
        let sent = send(&mut g, &mut b, 2, &request);
        let text = settings_of(&sent.to_server);
        assert!(text.starts_with("SELECT pg_catalog.set_config(E'role',NULL,false),"), "{text}");
        receive(&mut b, Some(&mut g), &cat(&[s::settings_done(), reply.clone()]));
        let sent = send(&mut f, &mut b, 1, &request);
        let text = settings_of(&sent.to_server);
        assert!(
            text.ends_with("(E'work_mem',E'5MB',false),pg_catalog.set_config(E'role',E'boss',false)"),
            "{text}"
        );
        assert_eq!(tags(&sent.to_server), "Q", "the request waits");
        assert_eq!(receive(&mut b, Some(&mut f), &s::settings_done()).to_server, request);
        receive(&mut b, Some(&mut f), &reply);
    }
    // The role is gone: the client is told so, and its request does not run.
    send(&mut g, &mut b, 2, &request);
    receive(&mut b, Some(&mut g), &cat(&[s::settings_done(), reply.clone()]));
    send(&mut f, &mut b, 1, &request);
    let refused = s::error("22023", "role \"boss\" does not exist");
    let got = receive(&mut b, Some(&mut f), &cat(&[refused.clone(), s::idle()]));
    assert_eq!((got.to_client, got.to_server.len()), (cat(&[refused, s::idle()]), 0));
    // RESET ALL leaves it, DISCARD ALL does not.
    let reset = |clears| Effects { clears, ..Effects::default() };
    assert_eq!(f.settings_after(&reset(Clears::RESET_ALL)).get("role"), Some(&b"boss"[..]));
    assert_eq!(f.settings_after(&reset(Clears::DISCARD_ALL)).get("role"), None);
}

/// RESET ALL behind a role of which the server has not said yet what it came to.
#[test]
fn a_role_that_is_not_known_yet_outlives_reset_all() {
    let (mut f, mut b) = (front(1), back());
    for text in ["begin", "set role boss", "reset all"] {
        send_with(&mut f, &mut b, &c::q(text), &of(text));
        receive(&mut b, Some(&mut f), &cat(&[s::complete("X"), s::in_transaction()]));
    }
    assert!(f.pins().contains(Pin::Setting));
    send_with(&mut f, &mut b, &c::q("commit"), &of("commit"));
    let got = receive(&mut b, Some(&mut f), &cat(&[s::complete("COMMIT"), s::idle()]));
    let asked = settings_of(&got.to_server);
    assert!(asked.starts_with("SELECT CASE WHEN pg_catalog.current_setting('role')"), "{asked}");
    assert!(!asked.contains("pg_settings"), "no list of settings says who it acts as: {asked}");
    let row = s::row_of(&[b"boss", b"app"]);
    receive(&mut b, Some(&mut f), &cat(&[row, s::complete("SELECT 1"), s::idle()]));
    assert_eq!(f.settings.get("role"), Some(&b"boss"[..]));
    assert!(f.pins().is_empty() && b.is_reusable());
}

/// A RESET goes back to what its client named at the start, also while the server is being asked what was set
/// before, or before it could be asked: what it tells is its own value.
#[test]
fn a_reset_behind_a_question_goes_back_to_the_client_s_own_value() {
    let told = cat(&[s::complete("X"), s::idle()]);
    for back_again in ["reset app.z", "set app.z to default", "reset all"] {
        for at_once in [false, true] {
            let (mut f, mut b) = (front_with(1, &[("app.z", "9")]), back());
            b.applied = Arc::clone(&f.settings);
            send_with(&mut f, &mut b, &c::q("set app.z = 1"), &of("set app.z = 1"));
            if at_once {
                send_with(&mut f, &mut b, &c::q(back_again), &of(back_again));
                assert_eq!(receive(&mut b, Some(&mut f), &told).to_server, []);
            } else {
                assert_eq!(tags(&receive(&mut b, Some(&mut f), &told).to_server), "Q");
                send_with(&mut f, &mut b, &c::q(back_again), &of(back_again));
                let one = cat(&[s::row(b"1"), s::complete("SELECT 1"), s::idle()]);
                receive(&mut b, Some(&mut f), &one);
            }
            let got = receive(&mut b, Some(&mut f), &told);
            assert_eq!(got.to_server, [], "{back_again}: it is known");
            assert!(f.pins().is_empty() && b.is_reusable(), "{back_again}");
            let sent = send(&mut f, &mut b, 1, &c::q("select 1"));
            let brought = settings_of(&sent.to_server);
            assert_eq!(brought, "SELECT pg_catalog.set_config(E'app.z',E'9',false)", "{back_again}");
        }
    }
}

/// In a transaction it is not asked: a ROLLBACK may take it back.
#[test]
fn what_is_set_in_a_transaction_is_asked_behind_it() {
    let (mut f, mut b) = (front(1), back());
    send_with(&mut f, &mut b, &c::q("begin"), &of("begin"));
    receive(&mut b, Some(&mut f), &cat(&[s::complete("BEGIN"), s::in_transaction()]));
    send_with(&mut f, &mut b, &c::q("x"), &of("set work_mem = '7MB'"));
    let got = receive(&mut b, Some(&mut f), &cat(&[s::complete("SET"), s::in_transaction()]));
    assert_eq!(got.to_server, []);
    send_with(&mut f, &mut b, &c::q("rollback"), &of("rollback"));
    let got = receive(&mut b, Some(&mut f), &cat(&[s::complete("ROLLBACK"), s::idle()]));
    let asked = settings_of(&got.to_server);
    assert!(asked.starts_with("SELECT pg_catalog.current_setting(E'work_mem',true),(SELECT"), "{asked}");
    // The session has set another one; this one is the server's own again.
    let row = s::row_of(&[b"4MB", b"search_path"]);
    receive(&mut b, Some(&mut f), &cat(&[row, s::complete("SELECT 1"), s::idle()]));
    assert!(f.pins().is_empty() && b.is_reusable() && f.settings.is_empty() && b.applied.is_empty());
}

/// What servers report moves with its client also where `set_config` sets it.
#[test]
fn a_reported_setting_made_by_a_function_keeps_no_server() {
    let (mut f, mut b) = (front(1), back());
    let text = "select set_config('TimeZone', 'Asia/Tokyo', false)";
    let known = weir_sql::catalogue::Proof {
        catalogue: Arc::default(),
        state: 1,
        current: true,
        unknown_code: weir_sql::catalogue::UnknownCode::Pin,
        changed: false,
    };
    let effects = Effects::of_text(weir_sql::Dialect::POSTGRES, text.as_bytes(), Some(known)).0;
    send_with(&mut f, &mut b, &c::q(text), &effects);
    let told = cat(&[
        s::row(b"Asia/Tokyo"),
        s::complete("SELECT 1"),
        s::parameter("TimeZone", "Asia/Tokyo"),
        s::idle(),
    ]);
    assert_eq!(receive(&mut b, Some(&mut f), &told).to_server, []);
    assert!(f.pins().is_empty() && b.is_reusable());
    assert_eq!(f.settings.get("timezone"), Some(&b"Asia/Tokyo"[..]));
}

/// A notification that comes beside the question of what is left is its client's.
#[test]
fn a_notification_beside_a_question_of_weirs_reaches_its_client() {
    let (mut f, mut b) = (front(1), back());
    send_with(&mut f, &mut b, &c::q("listen a; unlisten b"), &of("listen a; unlisten b"));
    let got =
        receive(&mut b, Some(&mut f), &cat(&[s::complete("LISTEN"), s::complete("UNLISTEN"), s::idle()]));
    assert_eq!(tags(&got.to_server), "Q");
    let notified = s::notification();
    let answer = cat(&[s::row(b"t"), s::complete("SELECT 1"), notified.clone(), s::idle()]);
    let got = receive(&mut b, Some(&mut f), &answer);
    assert_eq!((got.to_client, got.done.len()), (notified, 1));
    assert!(f.pins().contains(Pin::Listen));
}
