use super::Front;
use crate::front::Asks;
use crate::testing::{c, front, front_with};
use weir_session::Front as _;
use weir_wire::limits::REQUEST_GATHER_BYTES;
use weir_wire::{Boundary, Fault, FaultKind, Found, Needs, Pin};

fn find(front: &mut Front, input: &[u8]) -> Found {
    front.find(input, &mut Vec::new()).unwrap()
}

fn request(found: Found) -> (usize, Needs) {
    match found {
        Found::Request { len, needs } => (len, needs),
        other => panic!("{other:?}"),
    }
}

fn shareable(front: &mut Front, parts: &[Vec<u8>]) -> bool {
    request(find(front, &parts.concat())).1.shareable
}

#[test]
fn a_client_costs_little() {
    // The last eight tell it from all others that have had its number.
    assert!(size_of::<Front>() <= 264, "{} bytes", size_of::<Front>());
}

/// That a BEGIN was cancelled while it waited for a server says nothing of the request behind it.
#[test]
fn a_begin_that_was_rejected_is_forgotten() {
    let mut f = front(1);
    let begin = c::q("begin");
    assert!(request(find(&mut f, &begin)).1.late);
    f.reject(&FaultKind::Cancelled.into(), &begin, &mut Vec::new());
    let batch = [c::parse("", "select 1"), c::bind(""), c::execute(), c::sync()].concat();
    assert!(!request(find(&mut f, &batch)).1.late);
    assert!(!request(find(&mut f, &c::sync())).1.late);
    assert!(!request(find(&mut f, &c::q("commit"))).1.late);
    assert!(request(find(&mut f, &begin)).1.late);
}

/// What others have drawn is forgotten in front of a long text that asks, whatever came before it.
#[test]
fn a_long_text_behind_a_rejected_parse_is_not_taken_for_one() {
    let mut f = front(1);
    let parse = [c::parse("s", "select 1"), c::sync()].concat();
    request(find(&mut f, &parse));
    assert!(f.runs_nothing);
    f.reject(&FaultKind::Cancelled.into(), &parse, &mut Vec::new());
    let long = c::q(&format!("select currval('s'), '{}'", "x".repeat(REQUEST_GATHER_BYTES)));
    assert!(matches!(find(&mut f, &long), Found::Part { .. } | Found::Request { .. }));
    assert!(!f.runs_nothing && f.asks != Asks::No);
}

/// A portal bound in an earlier request of the transaction runs in one that only executes.
#[test]
fn an_execute_in_a_request_of_its_own_runs_something() {
    let mut f = front(1);
    request(find(&mut f, &[c::parse("s", "select 1"), c::sync()].concat()));
    assert!(f.runs_nothing);
    request(find(&mut f, &[c::execute(), c::sync()].concat()));
    assert!(!f.runs_nothing);
    request(find(&mut f, &c::q("deallocate s")));
    assert!(f.runs_nothing);
}

#[test]
fn requests_are_found_however_they_are_cut() {
    let batch = [c::parse("s", "select 1"), c::bind("s"), c::execute(), c::sync()].concat();
    for request in [c::q("select 1"), batch, c::function_call(), c::sync()] {
        let mut f = front(1);
        for cut in 0..request.len() {
            assert_eq!(find(&mut f, &request[..cut]), Found::Incomplete, "{cut}");
        }
        let more = [request.clone(), c::q("next")].concat();
        assert!(matches!(find(&mut f, &more), Found::Request { len, .. } if len == request.len()));
        assert!(matches!(find(&mut f, &more[request.len()..]), Found::Request { .. }));
    }
}

#[test]
fn bytes_are_looked_at_once() {
    // A batch of small messages that grows byte by byte: what was looked at is remembered.
    let mut f = front(1);
    let batch = c::bind("s").repeat(3000);
    assert!(batch.len() < REQUEST_GATHER_BYTES);
    assert_eq!(find(&mut f, &batch), Found::Incomplete);
    assert_eq!(f.scan.looked, batch.len());
}

#[test]
fn only_what_provably_leaves_no_trace_is_shareable() {
    let prepared = |text: &str| vec![c::parse("", text), c::bind(""), c::execute(), c::sync()];
    assert!(shareable(&mut front(1), &[c::q("select abalance from accounts where aid = 1")]));
    assert!(shareable(&mut front(1), &prepared("select abalance from accounts where aid = $1")));
    for text in
        ["begin", "set work_mem = '1MB'", "listen a", "select 1; select 2", "copy t from stdin", "vacuum"]
    {
        assert!(!shareable(&mut front(1), &[c::q(text)]), "{text}");
        assert!(!shareable(&mut front(1), &prepared(text)), "{text}");
    }
    assert!(!shareable(&mut front(1), &[c::function_call()]));
    assert!(!shareable(&mut front(1), &[c::bind("unknown"), c::execute(), c::sync()]));
    assert!(!shareable(&mut front(1), &[c::execute(), c::sync()]), "a portal of an earlier batch");
    assert!(!shareable(&mut front(1), &[c::parse("", "select 1"), c::q("select 1")]));
    let mut f = front(1);
    f.boundary = Boundary::InTransaction;
    assert!(!shareable(&mut f, &[c::q("select 1")]), "in a transaction");
    let mut f = front(1);
    f.traces.pin(Pin::Listen);
    assert!(!shareable(&mut f, &[c::q("select 1")]), "pinned");
    let mut f = front(1);
    assert!(!shareable(&mut f, &[c::q("begin")]));
    f.outstanding = 1;
    assert!(!shareable(&mut f, &[c::q("select 1")]), "behind a request that may open a transaction");
}

#[test]
fn what_is_too_long_goes_in_parts() {
    let mut f = front(1);
    let bind = c::bind("s");
    let batch = [bind.repeat(REQUEST_GATHER_BYTES / bind.len() + 2), c::sync()].concat();
    let Found::Part { len, needs } = find(&mut f, &batch) else { panic!() };
    assert!(len <= REQUEST_GATHER_BYTES && len % bind.len() == 0);
    assert!(needs.lease && !needs.continues);
    let (end, needs) = request(find(&mut f, &batch[len..]));
    assert_eq!(len + end, batch.len());
    assert!(needs.continues && !needs.shareable);
    assert!(!request(find(&mut f, &c::q("select 1"))).1.continues);
}

#[test]
fn a_long_query_goes_in_parts_and_is_lexed_all_the_same() {
    let query = c::q(&format!("select '{}'; listen a", "x".repeat(200_000)));
    let mut f = front(1);
    assert_eq!(find(&mut f, &query[..1000]), Found::Incomplete, "enough is waited for");
    let Found::Part { len, needs } = find(&mut f, &query[..REQUEST_GATHER_BYTES]) else { panic!() };
    assert_eq!((len, needs.continues), (REQUEST_GATHER_BYTES, false));
    assert_eq!(find(&mut f, b""), Found::Incomplete);
    let Found::Part { len: more, needs } = find(&mut f, &query[len..len + 10]) else { panic!() };
    assert_eq!((more, needs.continues), (10, true));
    let (end, needs) = request(find(&mut f, &query[len + more..]));
    assert_eq!(len + more + end, query.len());
    assert!(needs.continues);
    assert!(f.next_text().unwrap().pins.contains(Pin::Listen));
}

#[test]
fn flush_without_a_batch_and_terminate() {
    let mut f = front(1);
    assert_eq!(find(&mut f, &c::flush()), Found::Drop { len: 5 });
    assert_eq!(find(&mut f, b"X\0\0\0\x04"), Found::Goodbye);
    let mut f = front(1);
    assert_eq!(find(&mut f, &[c::parse("", "x"), b"X\0\0\0\x04".to_vec()].concat()), Found::Goodbye);
}

#[test]
fn a_rejected_request_ends_where_it_ends() {
    let fault = Fault::from(FaultKind::QueryWaitTimeout);
    let (mut f, mut out) = (front(1), Vec::new());
    let query = c::q("select 1");
    find(&mut f, &query);
    f.reject(&fault, &query, &mut out);
    assert_eq!(crate::testing::tags(&out), "EZ");
    assert!(f.next_text().is_none());
    // A part: everything up to its Sync is dropped, and answered there.
    let (mut f, mut out) = (front(1), Vec::new());
    let part = [c::parse("", "x"), c::flush()].concat();
    find(&mut f, &part);
    f.reject(&fault, &part, &mut out);
    assert_eq!(crate::testing::tags(&out), "E");
    let rest = [c::bind(""), c::execute()].concat();
    assert!(matches!(find(&mut f, &rest), Found::Drop { .. }));
    assert_eq!(f.find(&c::sync(), &mut out).unwrap(), Found::Answered { len: 5 });
    assert_eq!(crate::testing::tags(&out), "EZ");
    // A long query: the answer comes at its end.
    let (mut f, mut out) = (front(1), Vec::new());
    let long = c::q(&"x".repeat(100_000));
    let Found::Part { len, .. } = find(&mut f, &long[..70_000]) else { panic!() };
    f.reject(&fault, &long[..len], &mut out);
    assert!(matches!(f.find(&long[len..len + 5], &mut out).unwrap(), Found::Drop { len: 5 }));
    assert_eq!(crate::testing::tags(&out), "E");
    assert!(matches!(f.find(&long[len + 5..], &mut out).unwrap(), Found::Answered { .. }));
    assert_eq!(crate::testing::tags(&out), "EZ");
    assert!(matches!(find(&mut f, &c::q("select 1")), Found::Request { .. }));
}

#[test]
fn the_encoding_and_the_strings_are_told_to_the_lexer() {
    let mut f = front_with(1, &[]);
    let text = c::q(r"select 'a\'; listen x --'");
    request(find(&mut f, &text));
    assert!(f.next_text().unwrap().pins.contains(Pin::Listen));
    f.observe("standard_conforming_strings", b"off");
    request(find(&mut f, &text));
    assert!(!f.next_text().unwrap().pins.contains(Pin::Listen));
    f.observe("client_encoding", b"SJIS");
    assert_eq!(super::encoding_of(b"SJIS"), weir_sql::Encoding::AsciiUnsafe);
    assert_eq!(super::encoding_of(b"LATIN1"), weir_sql::Encoding::HighBytes);
}

#[test]
fn what_uses_names_waits_until_it_is_known_what_they_mean() {
    let parse = [c::close("s"), c::parse("s", "select 1"), c::sync()].concat();
    let uses = [
        [c::bind("s"), c::execute(), c::sync()].concat(),
        [c::describe("s"), c::sync()].concat(),
        [c::close("s"), c::sync()].concat(),
        [c::parse("t", "select 2"), c::sync()].concat(),
        c::q("deallocate all"),
        c::q("discard all"),
        c::q("execute s"),
        [c::bind("s"), c::flush()].concat(),
    ];
    for changes in [parse, [c::close("s"), c::sync()].concat(), c::q("deallocate s")] {
        for uses in &uses {
            let mut f = front(1);
            request(find(&mut f, &changes));
            f.outstanding = 1;
            let free = [c::parse("", "select 3"), c::bind(""), c::execute(), c::sync()].concat();
            request(find(&mut f, &c::q("select 3")));
            request(find(&mut f, &free));
            let input = [uses.clone(), c::q("select 4")].concat();
            assert_eq!(find(&mut f, &input), Found::Incomplete, "{uses:?}");
            assert_eq!(find(&mut f, &input), Found::Incomplete, "it is still under way");
            f.outstanding = 0;
            match find(&mut f, &input) {
                Found::Request { len, needs } | Found::Part { len, needs } => {
                    assert_eq!((len, needs.continues), (uses.len(), false));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    // The rest of the same request goes at once, for the server itself skips it if something fails.
    let mut f = front(1);
    let part = [c::parse("s", "select 1"), c::flush()].concat();
    assert!(matches!(find(&mut f, &part), Found::Part { .. }));
    f.outstanding = 1;
    assert!(request(find(&mut f, &[c::bind("s"), c::execute(), c::sync()].concat())).1.continues);
}
