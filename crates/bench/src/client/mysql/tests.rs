use super::*;
use crate::statement::Expect;

fn raw(payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    out.push(1);
    out.extend_from_slice(payload);
    out
}

fn column(kind: u8) -> Vec<u8> {
    let mut payload = vec![3, b'd', b'e', b'f', 0, 0, 0, 1, b'1', 0, 0x0c, 63, 0, 1, 0, 0, 0];
    payload.extend_from_slice(&[kind, 0x81, 0, 0, 0, 0]);
    raw(&payload)
}

/// A result with one column and these rows.
fn result(kind: u8, rows: &[&[u8]], status: u8) -> Vec<u8> {
    let mut out = raw(&[1]);
    out.extend(column(kind));
    for row in rows {
        out.extend(raw(row));
    }
    out.extend(raw(&[0xfe, 0, 0, status, 0, 0, 0]));
    out
}

fn begin(session: &mut Session, mode: Mode) -> Vec<u8> {
    let statements = [Statement::new("SELECT ?")];
    let mut query = Query::default();
    query.set(0, [Value::Int(42)], Expect::Success);
    let mut out = Vec::new();
    Mysql::begin(session, &statements, &query, mode, &mut out);
    out
}

#[derive(Debug, Default, PartialEq)]
struct Seen {
    text: Option<Vec<u8>>,
    int: Option<i64>,
    again: u32,
    done: u32,
}

/// Reads a reply that arrives in chunks of `step` bytes.
fn read(session: &mut Session, bytes: &[u8], step: usize) -> Seen {
    let (mut start, mut end, mut seen) = (0, 0, Seen::default());
    while end < bytes.len() {
        end = (end + step).min(bytes.len());
        loop {
            start += match Mysql::next(session, &bytes[start..end]) {
                Piece::Incomplete => break,
                Piece::Pass(n) => n,
                Piece::First(n, Got::Text(text)) => {
                    seen.text = Some(text.to_vec());
                    n
                }
                Piece::First(n, Got::Int(value)) => {
                    seen.int = Some(value);
                    n
                }
                Piece::First(n, _) => n,
                Piece::Again(n) => {
                    seen.again += 1;
                    n
                }
                Piece::Done(n) => {
                    seen.done += 1;
                    n
                }
                other => panic!("{other:?}"),
            };
        }
    }
    assert_eq!(start, bytes.len());
    seen
}

#[test]
fn text_reply_split_everywhere() {
    let bytes = result(8, &[b"\x0242", b"\x0243"], 2);
    for step in 1..=bytes.len() {
        let mut session = Session::default();
        assert_eq!(begin(&mut session, Mode::Simple)[4], COM_QUERY);
        let seen = read(&mut session, &bytes, step);
        assert_eq!(seen, Seen { text: Some(b"42".to_vec()), done: 1, ..Seen::default() });
    }
}

#[test]
fn prepared_is_prepared_once() {
    let mut session = Session::default();
    assert_eq!(begin(&mut session, Mode::Prepared)[4], COM_STMT_PREPARE);
    let mut reply = raw(&[0, 7, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0]);
    reply.extend(column(8));
    reply.extend(column(8));
    assert_eq!(read(&mut session, &reply, 3), Seen { again: 1, ..Seen::default() });
    for _ in 0..2 {
        let request = begin(&mut session, Mode::Prepared);
        assert_eq!((request[4], &request[5..9]), (COM_STMT_EXECUTE, &[7, 0, 0, 0][..]));
        let mut row = vec![0, 0];
        row.extend_from_slice(&42i64.to_le_bytes());
        let seen = read(&mut session, &result(8, &[&row], 2), 5);
        assert_eq!(seen, Seen { int: Some(42), done: 1, ..Seen::default() });
    }
    let lost = raw(b"\xff\xdb\x04#HY000Unknown prepared statement handler");
    begin(&mut session, Mode::Prepared);
    assert!(matches!(Mysql::next(&mut session, &lost), Piece::Refused(..)));
    assert_eq!(begin(&mut session, Mode::Prepared)[4], COM_STMT_PREPARE);
}

#[test]
fn extended_closes_what_it_prepared() {
    let mut session = Session::default();
    begin(&mut session, Mode::Extended);
    let reply = raw(&[0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(read(&mut session, &reply, 99).again, 1);
    let request = begin(&mut session, Mode::Extended);
    assert_eq!(request[4], COM_STMT_EXECUTE);
    assert_eq!(&request[request.len() - 9..], &[5, 0, 0, 0, COM_STMT_CLOSE, 7, 0, 0, 0]);
    read(&mut session, &result(8, &[], 2), 99);
    assert_eq!(begin(&mut session, Mode::Extended)[4], COM_STMT_PREPARE);
}

#[test]
fn several_results_are_one_reply() {
    let mut session = Session::default();
    begin(&mut session, Mode::Simple);
    let mut bytes = result(8, &[b"\x0242"], 0x08);
    bytes.extend(raw(&[0, 0, 0, 2, 0, 0, 0]));
    assert_eq!(read(&mut session, &bytes, 4).done, 1);
}

#[test]
fn long_rows_pass_unread() {
    let mut session = Session::default();
    begin(&mut session, Mode::Simple);
    let mut bytes = raw(&[1]);
    bytes.extend(column(0xfc));
    bytes.extend([0xff, 0xff, 0xff, 4]);
    bytes.resize(bytes.len() + PACKET_BYTES_MAX, b'x');
    bytes.extend([3, 0, 0, 5, b'x', b'x', b'x']);
    bytes.extend(raw(&[0xfe, 0, 0, 2, 0, 0, 0]));
    assert_eq!(read(&mut session, &bytes, 100_000), Seen { done: 1, ..Seen::default() });
}

#[test]
fn refusals() {
    let mut session = Session::default();
    begin(&mut session, Mode::Simple);
    let packet = raw(b"\xff\x28\x04#42000You have an error");
    let Piece::Refused(_, refusal) = Mysql::next(&mut session, &packet) else { panic!() };
    assert_eq!((refusal.code.as_str(), refusal.text.as_str()), ("1064", "You have an error"));
    assert!(!refusal.fatal);
    let Piece::Refused(_, refusal) = Mysql::next(&mut session, &packet) else { panic!() };
    assert!(refusal.fatal, "a refusal nobody asked for ends the connection");
}

#[test]
fn malformed_is_broken() {
    let mut session = Session::default();
    assert!(matches!(Mysql::next(&mut session, &raw(&[0, 0, 0])), Piece::Broken(_)));
    for payload in [&[][..], &[0, 0][..], &[0xfb][..], &[0xfe, 1][..]] {
        begin(&mut session, Mode::Simple);
        assert!(matches!(Mysql::next(&mut session, &raw(payload)), Piece::Broken(_)), "{payload:?}");
    }
}

#[test]
fn a_statement_that_cannot_be_prepared_is_sent_as_text_from_then_on() {
    let mut session = Session::default();
    assert_eq!(begin(&mut session, Mode::Prepared)[4], COM_STMT_PREPARE);
    let refused =
        raw(b"\xff\x0f\x05#HY000This command is not supported in the prepared statement protocol yet");
    assert_eq!(read(&mut session, &refused, 99).again, 1);
    for _ in 0..2 {
        assert_eq!(begin(&mut session, Mode::Prepared)[4], COM_QUERY);
        assert_eq!(read(&mut session, &raw(&[0, 0, 0, 3, 0, 0, 0]), 99).done, 1);
        assert!(Mysql::in_transaction(&session));
    }
}

#[test]
fn a_query_that_listens_gets_all_values_of_all_rows() {
    let mut query = Query::default();
    query.set(0, [], Expect::Success);
    query.listen = true;
    let statements = [Statement::new("SELECT 1")];
    // LONGLONG, NEWDECIMAL, VAR_STRING.
    let mut reply = raw(&[3]);
    [8, 0xf6, 0xfd].into_iter().for_each(|kind| reply.extend(column(kind)));
    let text = [&reply[..], &raw(b"\x017\x041.50\xfb")].concat();
    let mut binary_row = vec![0, 0b1_0000];
    binary_row.extend(7u64.to_le_bytes());
    binary_row.extend(b"\x041.50");
    let binary = [&reply[..], &raw(&binary_row)].concat();
    for (bytes, known, first) in
        [(text, Vec::new(), Value::Text(b"7".to_vec())), (binary, vec![9], Value::Int(7))]
    {
        let mut session = Session { prepared: known, ..Session::default() };
        let mode = if session.prepared.is_empty() { Mode::Simple } else { Mode::Prepared };
        Mysql::begin(&mut session, &statements, &query, mode, &mut Vec::new());
        let (mut at, mut rows) = (0, Vec::new());
        while at < bytes.len() {
            at += match Mysql::next(&mut session, &bytes[at..]) {
                Piece::Pass(n) => n,
                Piece::Row(n, values) => {
                    rows.push(values);
                    n
                }
                other => panic!("{other:?}"),
            };
        }
        assert_eq!(rows, [[first, Value::Text(b"1.50".to_vec()), Value::Null]]);
    }
}
