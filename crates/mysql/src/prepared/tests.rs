use super::*;
use crate::binding::Wants;
use weir_sql::Dialect;

fn key(text: &str) -> Key {
    Key::fresh(Arc::new(Text::new(
        State::new(45, true).shape(),
        None,
        text.as_bytes().into(),
        Names::default(),
    )))
}

fn reply() -> Arc<PrepareReply> {
    Arc::new(PrepareReply { params: 0, columns: 0, warnings: 0, definitions: Box::default() })
}

#[test]
fn what_ties_a_client_is_known_whichever_of_its_statements_it_is_and_was() {
    let mut all = ClientStatements::default();
    for id in 1..=3 {
        all.insert(id, client_statement(&key("a")));
    }
    assert!(
        !all.ties().cursor && !all.ties().mixed && !all.ties().sent_ahead && all.ties().long_data_bytes == 0
    );
    all.get_mut(1).unwrap().cursor = true;
    assert!(all.ties().cursor);
    all.get_mut(2).unwrap().long_data = vec![0; 5];
    all.get_mut(3).unwrap().mixed = true;
    assert!(all.ties().cursor && all.ties().mixed && all.ties().long_data_bytes == 5);
    all.get_mut(1).unwrap().cursor = false;
    all.get_mut(2).unwrap();
    assert!(!all.ties().cursor && all.ties().mixed);
    all.get_mut(2).unwrap().long_data.clear();
    assert!(all.get(LAST_PREPARED).is_none());
    all.set_last(3);
    all.get_mut(LAST_PREPARED).unwrap().sent_ahead = true;
    assert!(all.ties().sent_ahead && all.ties().long_data_bytes == 0);
    all.remove(3);
    assert!(!all.ties().mixed && !all.ties().sent_ahead);
    all.insert(3, client_statement(&key("a")));
    assert!(!all.ties().mixed);
}

#[test]
fn the_least_recently_used_leaves() {
    let mut statements = ServerStatements::new(2);
    let mut out = Vec::new();
    statements.insert(key("a"), 1, reply(), 0, &mut out);
    statements.insert(key("b"), 2, reply(), 0, &mut out);
    assert_eq!(statements.touch(&key("a")).unwrap().id, 1);
    assert!(out.is_empty());
    statements.insert(key("c"), 3, reply(), 0, &mut out);
    assert_eq!(out, [5, 0, 0, 0, 0x19, 2, 0, 0, 0]);
    assert!(statements.touch(&key("b")).is_none());
    assert_eq!(statements.len(), 2);
}

#[test]
fn same_text_in_another_schema_is_another_statement() {
    let shape = State { schema: Some("other".into()), ..State::new(45, true) }.shape();
    let other = Key::fresh(Arc::new(Text::new(shape, None, b"a"[..].into(), Names::default())));
    assert_ne!(key("a"), other);
    assert_eq!(key("a"), key("a"));
    assert_ne!(key("a"), Key { private: Some((1, 1)), ..key("a") });
}

#[test]
fn texts_are_bounded_by_their_bytes() {
    let long = |n: usize| key(&"x".repeat(limits::SERVER_PREPARED_BYTES / 4 + n));
    let (mut server, mut out) = (ServerStatements::new(100), Vec::new());
    for n in 0..6 {
        server.insert(long(n), n as u32 + 1, reply(), 0, &mut out);
    }
    assert_eq!(server.len(), 3);
    let mut client = ClientStatements::default();
    let mut kept = 0;
    while let Some(id) = client.next_id(limits::SERVER_PREPARED_BYTES / 4) {
        client.insert(id, client_statement(&long(0)));
        kept += 1;
    }
    assert_eq!(kept, limits::CLIENT_PREPARED_BYTES / (limits::SERVER_PREPARED_BYTES / 4));
    client.remove(1);
    assert!(client.next_id(limits::SERVER_PREPARED_BYTES / 4).is_some());
}

fn client_statement(text: &Key) -> ClientStatement {
    ClientStatement {
        text: text.text.clone(),
        class: Box::default(),
        judged_by: 0,
        dialect: Dialect::MYSQL,
        params: 1,
        kinds: Binding::default(),
        types: Box::default(),
        long_data: Vec::new(),
        sent_ahead: false,
        warned: false,
        cursor: false,
        kill: None,
        settled: None,
        mixed: false,
        before: None,
        doubt: None,
    }
}

const INT: &[u8] = &[8, 0];
const TEXT: &[u8] = &[0xFD, 0];
const NULL: &[u8] = &[0, 0];

/// Runs a statement as a server's end does; returns the number of the copy it ran on.
fn run(
    server: &mut ServerStatements,
    statement: &mut ClientStatement,
    executor: (u64, u32),
    binding: &[u8],
    next: &mut u32,
) -> u32 {
    let (key, _) = server.copy_for(statement, executor, binding.into(), false, None, Wants::Nothing).unwrap();
    if server.touch(&key).is_none() {
        *next += 1;
        server.insert(key.clone(), *next, reply(), 0, &mut Vec::new());
    }
    server.touch(&key).unwrap().id
}

#[test]
fn a_copy_is_shared_by_those_who_bind_alike() {
    let (mut server, mut next) = (ServerStatements::new(9), 0);
    let text = key("select ?");
    let (mut a, mut b, mut c) = (client_statement(&text), client_statement(&text), client_statement(&text));
    let one = run(&mut server, &mut a, (1, 1), INT, &mut next);
    assert_eq!(run(&mut server, &mut b, (2, 1), INT, &mut next), one);
    assert_ne!(run(&mut server, &mut c, (3, 1), TEXT, &mut next), one);
    assert_eq!(run(&mut server, &mut a, (1, 1), NULL, &mut next), one);
    assert_eq!(run(&mut server, &mut a, (1, 1), INT, &mut next), one);
    assert!(!a.mixed && server.len() == 2);
    // It takes the copy that has seen what it has; the other one gets another.
    assert_eq!(run(&mut server, &mut a, (1, 1), TEXT, &mut next), one);
    assert_ne!(run(&mut server, &mut b, (2, 1), INT, &mut next), one);
    assert_eq!(run(&mut server, &mut a, (1, 1), INT, &mut next), one);
    assert!(a.mixed && !b.mixed && server.len() == 3);
}

#[test]
fn an_execution_that_fails_first_settles_nothing() {
    let (mut server, mut next) = (ServerStatements::new(9), 0);
    let text = key("insert into t values (?)");
    let mut a = client_statement(&text);
    run(&mut server, &mut a, (1, 1), INT, &mut next);
    assert!(a.end_execution(Settles::No) && a.settled.is_none());
    assert!(!a.is_in_doubt(&TEXT.into()) && !a.is_in_doubt(&INT.into()));
    run(&mut server, &mut a, (1, 1), TEXT, &mut next);
    assert!(!a.end_execution(Settles::Yes));
    assert_eq!(&*a.settled.as_deref().unwrap().base, TEXT);
    // The same types once more change nothing.
    run(&mut server, &mut a, (1, 1), TEXT, &mut next);
    assert!(!a.end_execution(Settles::No));
    assert_eq!(&*a.settled.as_deref().unwrap().base, TEXT);
}

#[test]
fn behind_an_execution_that_may_have_settled_nothing_the_same_may_be_executed() {
    let (mut server, mut next) = (ServerStatements::new(9), 0);
    let (writes, reads) = (key("insert into t values (?)"), key("select ?"));
    for text in [&writes, &reads] {
        let mut a = client_statement(text);
        run(&mut server, &mut a, (1, 1), INT, &mut next);
        assert!(a.end_execution(Settles::Perhaps));
        assert!(a.is_in_doubt(&TEXT.into()) && !a.is_in_doubt(&INT.into()));
        assert_eq!(a.is_in_doubt(&NULL.into()), *text == reads);
        run(&mut server, &mut a, (1, 1), INT, &mut next);
        assert!(!a.end_execution(Settles::Yes));
        assert!(!a.is_in_doubt(&TEXT.into()));
    }
}

#[test]
fn a_copy_that_was_executed_with_null_alone_is_another() {
    let (mut server, mut next) = (ServerStatements::new(9), 0);
    let text = key("select ?");
    let (mut a, mut b) = (client_statement(&text), client_statement(&text));
    let null = run(&mut server, &mut a, (1, 1), NULL, &mut next);
    let int = run(&mut server, &mut a, (1, 1), INT, &mut next);
    assert_ne!(null, int);
    assert_eq!(run(&mut server, &mut a, (1, 1), NULL, &mut next), int);
    assert_eq!(run(&mut server, &mut b, (2, 1), NULL, &mut next), null);
}

#[test]
fn on_another_server_a_read_is_first_executed_as_before() {
    let (mut one, mut other, mut next) = (ServerStatements::new(9), ServerStatements::new(9), 0);
    let text = key("select ?");
    let mut reads = client_statement(&text);
    let payload = [0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0];
    let execute = Execute::read(&payload, 1).unwrap();
    let (_, first) = one
        .copy_for(&mut reads, (1, 1), INT.into(), false, Some((&execute, &payload)), Wants::Nothing)
        .unwrap();
    assert_eq!(first, None);
    let example = Some(payload[..].into());
    let (key, first) = other.copy_for(&mut reads, (1, 1), NULL.into(), false, None, Wants::Nothing).unwrap();
    assert_eq!((key.private, key.binding.as_deref(), first), (None, Some(INT), example.clone()));
    assert!(!reads.mixed);
    let (key, first) = other.copy_for(&mut reads, (1, 1), TEXT.into(), false, None, Wants::Nothing).unwrap();
    assert_eq!((key.private, first), (Some((1, 1)), example));
    assert!(reads.mixed);
    let mut writes = client_statement(&text);
    run(&mut one, &mut writes, (2, 1), INT, &mut next);
    let (key, first) = other.copy_for(&mut writes, (2, 1), NULL.into(), false, None, Wants::Nothing).unwrap();
    assert_eq!((key.binding.as_deref(), first), (Some(NULL), None));
}

#[test]
fn a_copy_whose_key_goes_to_another_is_closed() {
    let mut server = ServerStatements::new(9);
    let (text, mut out) = (key("select ?"), Vec::new());
    let private = Key { private: Some((1, 1)), ..text.clone() };
    server.insert(private.clone(), 1, reply(), 0, &mut out);
    server.insert(text.clone(), 2, reply(), 0, &mut out);
    server.rename(&text, private.clone());
    server.put_closes(&mut out);
    assert_eq!(out, [5, 0, 0, 0, 0x19, 1, 0, 0, 0]);
    assert_eq!(server.touch(&private).unwrap().id, 2);
    assert!(server.reply_to(&text.text).is_some());
}

#[test]
fn the_reply_to_a_prepare_is_known_while_any_copy_is_there() {
    let mut server = ServerStatements::new(9);
    let text = key("select ?");
    let bound = Key { binding: Some(b"int"[..].into()), ..text.clone() };
    server.insert(text.clone(), 1, reply(), 0, &mut Vec::new());
    server.insert(bound.clone(), 2, reply(), 0, &mut Vec::new());
    server.close(&text, &mut Vec::new());
    assert!(server.reply_to(&text.text).is_some());
    server.forget(&bound);
    assert!(server.reply_to(&text.text).is_none());
}

#[test]
fn execute_is_read_up_to_its_types() {
    let mut payload = vec![0x17, 5, 0, 0, 0, 1, 1, 0, 0, 0];
    assert!(Execute::read(&payload, 0).unwrap().cursor);
    assert!(Execute::read(&payload, 9).is_err());
    payload.extend_from_slice(&[0, 0, 1]);
    assert!(Execute::read(&payload, 9).is_err());
    payload.extend_from_slice(&[3; 18]);
    let execute = Execute::read(&payload, 9).unwrap();
    assert_eq!((execute.id, execute.types_flag_at, execute.has_types), (5, Some(12), true));
    assert_eq!(execute.types(&payload, 9), [3; 18]);
}

#[test]
fn prepare_reply_for_clients_with_and_without_eof() {
    let mut definitions = Vec::new();
    frame::put(&mut definitions, 2, |out| out.extend_from_slice(b"param"));
    frame::put(&mut definitions, 3, |out| out.extend_from_slice(b"col"));
    let reply = PrepareReply { params: 1, columns: 1, warnings: 0, definitions: definitions.into() };
    let mut new = Vec::new();
    reply.write(7, 2, Capabilities::DEPRECATE_EOF, &mut new);
    let mut old = Vec::new();
    reply.write(7, 2, Capabilities::default(), &mut old);
    assert_eq!(old.len(), new.len() + 2 * 9);
    assert_eq!(&old[16 + 9..16 + 9 + 9], [5, 0, 0, 3, 0xFE, 0, 0, 2, 0]);
    let seqs = |mut bytes: &[u8]| {
        let mut found = Vec::new();
        while let Some(header) = frame::Header::read(bytes) {
            found.push(header.seq);
            bytes = &bytes[header.total()..];
        }
        found
    };
    assert_eq!(seqs(&new), [1, 2, 3]);
    assert_eq!(seqs(&old), [1, 2, 3, 4, 5]);
    let (id, read) = PrepareReply::read(&new[4..16]).unwrap();
    assert_eq!((id, read.params, read.columns), (7, 1, 1));
}
