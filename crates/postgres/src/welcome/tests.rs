use super::Welcomes;
use crate::back::Back;
use crate::cancel::ServerKey;
use crate::front::Front;
use crate::testing::{back, c, front, front_with, receive, reported, s, send, tags};
use weir_session::Back as _;
use weir_session::Front as _;
use weir_session::Welcomes as _;
use weir_wire::FaultKind;
use weir_wire::limits::WELCOMES;

fn parameters(bytes: &[u8]) -> Vec<String> {
    let (mut rest, mut all) = (bytes, Vec::new());
    while rest.first() == Some(&b'S') {
        let total = u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize + 1;
        let text = String::from_utf8(rest[5..total - 1].to_vec()).unwrap();
        all.push(text.replace('\0', "="));
        rest = &rest[total..];
    }
    all
}

fn greeted(welcomes: &mut Welcomes, front: &mut Front) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(welcomes.greet(front, &mut out));
    out
}

#[test]
fn a_client_without_settings_hears_what_a_server_said() {
    let (mut welcomes, mut b) = (Welcomes::default(), back());
    assert!(!welcomes.greet(&mut front(1), &mut Vec::new()), "nothing is known before a server spoke");
    welcomes.observe(&mut b);
    let out = greeted(&mut welcomes, &mut front(9));
    assert_eq!(tags(&out), "SSSSSSKZ");
    assert!(parameters(&out).contains(&"server_version=15.6".to_owned()));
    assert!(out.ends_with(&[b'K', 0, 0, 0, 12, 0, 0, 0, 9, 9, 9, 9, 9, b'Z', 0, 0, 0, 5, b'I']));
}

#[test]
fn application_names_need_no_server() {
    let (mut welcomes, mut b) = (Welcomes::default(), back());
    welcomes.observe(&mut b);
    for name in ["a", "b"] {
        let mut f = front_with(1, &[("application_name", name)]);
        let out = greeted(&mut welcomes, &mut f);
        assert!(parameters(&out).contains(&format!("application_name={name}")));
        assert_eq!(f.settings.get("application_name"), Some(name.as_bytes()));
    }
}

#[test]
fn settings_are_asked_once_and_kept_in_the_servers_spelling() {
    let (mut welcomes, mut b) = (Welcomes::default(), back());
    welcomes.observe(&mut b);
    let named = [("client_encoding", "latin-1"), ("statement_timeout", "5s"), ("application_name", "x")];
    let mut f = front_with(1, &named);
    assert!(!welcomes.greet(&mut f, &mut Vec::new()));
    let mut out = Vec::new();
    b.dispatch_welcome(&mut f, 1, &mut out).unwrap();
    assert_eq!(tags(&out), "Q");
    let reply = [
        s::row_description(),
        s::complete("SELECT 1"),
        s::parameter("client_encoding", "LATIN1"),
        s::parameter("application_name", "x"),
        s::idle(),
    ]
    .concat();
    let got = receive(&mut b, Some(&mut f), &reply);
    assert_eq!((got.to_client.len(), got.done.len()), (0, 1));
    assert!(welcomes.record(&mut f, &b));
    let out = greeted(&mut welcomes, &mut f);
    assert!(parameters(&out).contains(&"client_encoding=LATIN1".to_owned()));
    assert_eq!(f.settings.get("client_encoding"), Some(&b"LATIN1"[..]));
    assert_eq!(f.outstanding, 0);
    // The next one like it is greeted at once, with its own name.
    let mut g = front_with(2, &[named[0], named[1], ("application_name", "y")]);
    let out = greeted(&mut welcomes, &mut g);
    assert!(parameters(&out).contains(&"application_name=y".to_owned()));
    assert!(parameters(&out).contains(&"client_encoding=LATIN1".to_owned()));
    // One without a name hears the server's own.
    let mut h = front_with(3, &[named[0], named[1]]);
    assert!(parameters(&greeted(&mut welcomes, &mut h)).contains(&"application_name=".to_owned()));
}

#[test]
fn settings_a_server_refuses_end_the_login_with_its_words() {
    let (mut welcomes, mut b) = (Welcomes::default(), back());
    welcomes.observe(&mut b);
    let mut f = front_with(1, &[("nonsense", "1")]);
    b.dispatch_welcome(&mut f, 1, &mut Vec::new()).unwrap();
    let got = receive(&mut b, Some(&mut f), &[s::error("42704", "unrecognized"), s::idle()].concat());
    assert_eq!(got.to_client, s::fatal("42704", "unrecognized"));
    assert!(!welcomes.record(&mut f, &b));
    assert!(b.is_reusable());
    assert!(!welcomes.greet(&mut front_with(2, &[("nonsense", "1")]), &mut Vec::new()));
}

#[test]
fn settings_the_server_has_anyway_are_asked_with_a_sync() {
    let (mut welcomes, mut b) = (Welcomes::default(), back());
    let mut f = front_with(1, &[("client_encoding", "UTF8")]);
    let mut out = Vec::new();
    b.dispatch_welcome(&mut f, 1, &mut out).unwrap();
    assert_eq!(tags(&out), "S");
    assert_eq!(receive(&mut b, Some(&mut f), &s::idle()).done.len(), 1);
    assert!(welcomes.record(&mut f, &b));
    greeted(&mut welcomes, &mut f);
}

#[test]
fn an_unusual_application_name_is_spelt_by_the_server() {
    let (mut welcomes, mut b) = (Welcomes::default(), back());
    welcomes.observe(&mut b);
    let mut f = front_with(1, &[("application_name", "caf\u{e9}")]);
    assert!(!welcomes.greet(&mut f, &mut Vec::new()));
    b.dispatch_welcome(&mut f, 1, &mut Vec::new()).unwrap();
    let reply = [s::complete("SELECT 1"), s::parameter("application_name", "caf??"), s::idle()].concat();
    receive(&mut b, Some(&mut f), &reply);
    assert!(welcomes.record(&mut f, &b));
    let out = greeted(&mut welcomes, &mut f);
    assert!(parameters(&out).contains(&"application_name=caf??".to_owned()));
    // It is told to nobody else.
    let out = greeted(&mut welcomes, &mut front(2));
    assert!(parameters(&out).contains(&"application_name=".to_owned()));
}

#[test]
fn a_datestyle_named_in_part_is_completed_by_a_server_opened_with_it() {
    let (mut welcomes, mut b) = (Welcomes::default(), back());
    welcomes.observe(&mut b);
    let mut f = front_with(1, &[("DateStyle", "german, ymd"), ("work_mem", "1MB")]);
    assert!(!f.wants_own, "it says both parts");
    // Whether one is stored, nobody has said yet.
    f = front_with(1, &[("DateStyle", "SQL"), ("work_mem", "1MB")]);
    assert!(!welcomes.greet(&mut f, &mut Vec::new()) && f.wants_own && !b.suits(&f));
    assert_eq!(f.startup_parameters(), Some(vec![("datestyle".to_owned(), "SQL".to_owned())]));
    let mut has = reported();
    has.set("DateStyle", b"SQL, DMY");
    let mut own = Back::new(ServerKey::default(), has, 10);
    own.opened_with(front_with(1, &[("DateStyle", "SQL")]).startup.as_ref().clone());
    welcomes.observe(&mut own);
    assert!(own.suits(&f));
    own.dispatch_welcome(&mut f, 1, &mut Vec::new()).unwrap();
    receive(&mut own, Some(&mut f), &[s::complete("SELECT 1"), s::idle()].concat());
    assert!(welcomes.record(&mut f, &own));
    greeted(&mut welcomes, &mut f);
    assert_eq!((f.startup.get("datestyle"), f.wants_own), (Some(&b"SQL, DMY"[..]), false));
    // It is known for others, whatever else they name.
    let mut g = front_with(2, &[("DateStyle", "SQL"), ("work_mem", "2MB")]);
    assert!(!welcomes.greet(&mut g, &mut Vec::new()) && !g.wants_own && b.suits(&g));
}

#[test]
fn trap_21_another_servers_word_replaces_the_old() {
    let mut welcomes = Welcomes::default();
    welcomes.observe(&mut back());
    let mut newer = reported();
    newer.set("server_version", b"16.2");
    welcomes.observe(&mut Back::new(ServerKey::default(), newer, 10));
    let out = greeted(&mut welcomes, &mut front(1));
    assert!(parameters(&out).contains(&"server_version=16.2".to_owned()));
}

#[test]
fn the_cache_is_bounded() {
    let (mut welcomes, mut b) = (Welcomes::default(), back());
    for n in 0..1000 {
        let mut f = front_with(1, &[("statement_timeout", &n.to_string())]);
        b.dispatch_welcome(&mut f, 1, &mut Vec::new()).unwrap();
        receive(&mut b, Some(&mut f), &s::settings_done());
        assert!(welcomes.record(&mut f, &b));
    }
    assert!(welcomes.by_key.len() <= WELCOMES && welcomes.order.len() == welcomes.by_key.len());
}

#[test]
fn a_client_whose_settings_were_refused_hears_nothing_of_the_server_that_is_lost_then() {
    let (mut f, mut b) = (front_with(1, &[("timezone", "nowhere")]), back());
    b.dispatch_welcome(&mut f, 1, &mut Vec::new()).unwrap();
    let refusal = s::error("22023", "invalid value");
    assert_eq!(tags(&receive(&mut b, Some(&mut f), &refusal).to_client), "E");
    let mut out = Vec::new();
    f.fatal(&FaultKind::ServerLost.into(), &mut out);
    assert!(out.is_empty(), "it has read FATAL already");
}

/// Prepares by asking the server, which answers so.
fn ask(b: &mut Back, f: &mut Front, request: &[u8], reply: &[u8]) {
    send(f, b, 1, request);
    assert_eq!(receive(b, Some(f), reply).done.len(), 1);
}

fn prepare(name: &str, text: &str) -> Vec<u8> {
    [c::parse(name, text), c::sync()].concat()
}

#[test]
fn a_statement_that_a_server_has_taken_is_prepared_without_one() {
    let (mut welcomes, mut b) = (Welcomes::default(), back());
    welcomes.observe(&mut b);
    let request = prepare("a", "select 1");
    let mut out = Vec::new();
    assert!(!welcomes.answer(&mut front(2), &request, &mut out), "nobody has asked a server yet");
    ask(&mut b, &mut front(1), &request, &[s::named_parsed(), s::idle()].concat());

    let mut f = front(2);
    assert!(welcomes.answer(&mut f, &prepare("mine", "select 1"), &mut out));
    assert_eq!(out, [s::parse_complete(), s::idle()].concat());
    // It is there when it is used, also on a server that has never heard of it.
    let mut other = back();
    let run = [c::bind("mine"), c::execute(), c::sync()].concat();
    assert_eq!(tags(&send(&mut f, &mut other, 2, &run).to_server), "PDBES");
    // So it is on one that has it: what it read before that answer is too old.
    assert_eq!(tags(&send(&mut front_with_statement(&welcomes), &mut b, 3, &run).to_server), "PDBES");

    out.clear();
    for (refused, why) in [
        (prepare("mine", "select 1"), "the name is taken, which the server says"),
        (prepare("", "select 1"), "the unnamed statement belongs to a server"),
        (prepare("b", "select 2"), "another text"),
        ([c::parse("b", "select 1"), c::describe("b"), c::sync()].concat(), "only a server describes"),
    ] {
        assert!(!welcomes.answer(&mut f, &refused, &mut out) && out.is_empty(), "{why}");
    }
    let mut elsewhere = front_with(4, &[("search_path", "other")]);
    assert!(!welcomes.answer(&mut elsewhere, &request, &mut out), "another search_path, another meaning");
}

fn front_with_statement(welcomes: &Welcomes) -> Front {
    let mut f = front(3);
    assert!(welcomes.answer(&mut f, &prepare("mine", "select 1"), &mut Vec::new()));
    f
}

#[test]
fn what_was_prepared_in_a_transaction_is_not_known_to_others() {
    let (mut welcomes, mut b) = (Welcomes::default(), back());
    welcomes.observe(&mut b);
    let (mut f, request) = (front(1), prepare("a", "select * from made_here"));
    ask(&mut b, &mut f, &c::q("begin"), &[s::complete("BEGIN"), s::in_transaction()].concat());
    ask(&mut b, &mut f, &request, &[s::named_parsed(), s::in_transaction()].concat());
    assert!(!welcomes.answer(&mut front(2), &request, &mut Vec::new()));
}

#[test]
fn what_a_server_refuses_is_known_no_longer() {
    let (mut welcomes, mut b) = (Welcomes::default(), back());
    welcomes.observe(&mut b);
    let request = prepare("a", "select * from t");
    ask(&mut b, &mut front(1), &request, &[s::named_parsed(), s::idle()].concat());
    let mut f = front(2);
    assert!(welcomes.answer(&mut f, &request, &mut Vec::new()));
    // The table has gone meanwhile: the client hears it where it uses the statement.
    let mut other = back();
    welcomes.observe(&mut other);
    let run = [c::bind("a"), c::execute(), c::sync()].concat();
    ask(&mut other, &mut f, &run, &[s::error("42P01", "no such table"), s::idle()].concat());
    assert!(f.prepared.as_deref().unwrap().get(b"a").is_none(), "as if its Parse had failed");
    assert!(!welcomes.answer(&mut front(3), &request, &mut Vec::new()));
}

#[test]
fn only_what_prepares_and_nothing_else_may_be_answered() {
    let prepares = |bytes: &[u8]| {
        let mut b = back();
        let found = send(&mut front(1), &mut b, 1, bytes).found;
        matches!(found.first(), Some(weir_wire::Found::Request { needs, .. }) if needs.prepares)
    };
    assert!(prepares(&prepare("a", "select 1")));
    assert!(!prepares(&prepare("", "select 1")));
    assert!(!prepares(&[c::parse("a", "select 1"), c::bind("a"), c::execute(), c::sync()].concat()));
    assert!(!prepares(&c::q("select 1")));
    // Behind a request that is under way, or in a transaction, it goes where that went.
    let (mut f, mut b) = (front(1), back());
    let found = send(&mut f, &mut b, 1, &[c::q("begin"), prepare("a", "select 1")].concat()).found;
    assert!(found.iter().all(|f| !matches!(f, weir_wire::Found::Request { needs, .. } if needs.prepares)));
    receive(&mut b, Some(&mut f), &[s::complete("BEGIN"), s::in_transaction()].concat());
    let found = send(&mut f, &mut b, 1, &prepare("b", "select 1")).found;
    assert!(found.iter().all(|f| !matches!(f, weir_wire::Found::Request { needs, .. } if needs.prepares)));
}
