use super::*;
use weir_wire::limits::{CLIENT_PREPARED, CLIENT_PREPARED_BYTES, PORTALS, STATEMENT_VERSIONS};

fn text(n: u32) -> Vec<u8> {
    format!("select {n}\0\0\0").into_bytes()
}

fn statement(n: u32) -> Arc<Statement> {
    let key = Statement::key_of(&text(n), Origin::default());
    let planned = Arc::new(Effects { is_planned: true, ..Effects::default() });
    Statement::new(text(n).into(), key, Origin::default(), planned, 0)
}

/// A client without settings of its own.
fn by(client: u64) -> Runner {
    Runner { client, key: Some(0) }
}

fn shape(of: u8) -> Shape {
    Shape::of(&[0, 0], Some(&[b"\0\x01x\0\0\0\0\0\0\0\0\0\0", &[of][..], &[0; 8][..]].concat()))
}

/// A client's own Parse, answered.
fn prepared(server: &mut ServerPrepared, statement: &Statement, of: u8) -> Name {
    server.begin_batch();
    let (name, number) = server.prepare(statement, 1, by(1), false);
    server.confirm(&statement.key(), number);
    statement.answered();
    server.described(statement, number, shape(of));
    name
}

#[test]
fn only_whole_names_are_taken_for_weir_s_own() {
    assert!(is_server_name(&name_for(&[7; 16], 1)));
    for name in [b"weir_foo".as_slice(), b"weir_", b"weir_0123456789abcdef0123456789abcdeg", b"x"] {
        assert!(!is_server_name(name));
    }
}

#[test]
fn a_key_says_what_a_text_is_and_under_which_settings() {
    let key = |content: &[u8], plan_key, private| Statement::key_of(content, Origin { plan_key, private });
    let (text, other_type) = (b"select $1\0\0\x01\0\0\0\x17", b"select $1\0\0\x01\0\0\0\x19");
    assert_eq!(key(text, 0, 0), key(text, 0, 0));
    assert_ne!(key(text, 0, 0), key(other_type, 0, 0));
    assert_ne!(key(text, 0, 0), key(text, 1, 0));
    assert_ne!(key(text, 0, 0), key(text, 0, 1));
    let name = name_for(&key(text, 0, 0), 1);
    assert!(name.starts_with(b"weir_") && name[5..].iter().all(u8::is_ascii_hexdigit));
    assert_ne!(name, name_for(&key(text, 0, 0), 2));
}

#[test]
fn a_shape_is_names_and_types_and_not_tables() {
    let column = |table: u8, of: u8| [b"\0\x01x\0\0\0\0", &[table, 0, 1, 0, 0, 0, of][..], &[0; 8]].concat();
    let of = |body: Vec<u8>| Shape::of(&[0, 0], Some(&body));
    assert_eq!(of(column(1, 23)), of(column(2, 23)));
    assert_ne!(of(column(1, 23)), of(column(1, 25)));
    assert_ne!(of(column(1, 23)), Shape::of(&[0, 0], None));
    assert_ne!(Shape::of(&[0, 1, 0, 0, 0, 23], None), Shape::of(&[0, 0], None));
    // What is no description is equal to itself at least.
    assert_eq!(of(vec![9]), of(vec![9]));
}

#[test]
fn there_only_after_parse_complete() {
    let mut server = ServerPrepared::new(10);
    let (s, other) = (statement(1), statement(1));
    let (name, number) = server.prepare(&s, 1, by(1), false);
    assert_eq!(server.find(&s, 1, by(1)), Some(name), "behind its own Parse");
    assert_eq!(server.find(&s, 2, by(2)), None, "another's Parse may fail");
    server.confirm(&s.key(), number);
    assert_eq!(server.find(&s, 1, by(1)), Some(name));
    assert_eq!(server.find(&other, 1, by(1)), None);
    server.distrust_all();
    assert_eq!(server.find(&s, 1, by(1)), None);
    let (again, number) = server.prepare(&s, 1, by(1), true);
    assert_ne!(again, name, "a name is never used twice");
    assert_eq!(server.find(&s, 1, by(1)), Some(again));
    server.begin_batch();
    assert_eq!(server.find(&s, 1, by(1)), None, "an error may skip what Weir added");
    server.fail(&s.key(), number, s.state());
    assert_eq!(server.find(&s, 1, by(1)), None);
    let (name, number) = server.prepare(&s, 1, by(1), false);
    assert_eq!(server.find(&s, 1, by(1)), Some(name));
    server.fail(&s.key(), number, s.state());
    assert_eq!(server.find(&s, 1, by(1)), None, "its Parse has failed");
}

#[test]
fn what_was_prepared_before_a_clients_own_parse_does_not_serve_it() {
    let (mut one, mut two) = (ServerPrepared::new(10), ServerPrepared::new(10));
    let (old, new) = (statement(1), statement(1));
    let old_there = prepared(&mut two, &old, 23);
    prepared(&mut one, &new, 23);
    assert_eq!(two.find(&old, 1, by(1)), Some(old_there));
    assert_eq!(two.find(&new, 1, by(1)), None);
    // What is prepared for it serves the other, too, and the older one goes.
    let (name, number) = two.prepare(&new, 1, by(1), true);
    two.confirm(&new.key(), number);
    assert!(two.described(&new, number, shape(23)));
    assert_eq!((two.find(&new, 1, by(1)), two.find(&old, 1, by(1))), (Some(name), Some(name)));
    assert_eq!(two.leftovers, [Box::from(old_there)]);
}

#[test]
fn another_shape_is_another_statement() {
    let mut server = ServerPrepared::new(10);
    let (old, new) = (statement(1), statement(1));
    let first = prepared(&mut server, &old, 23);
    let second = prepared(&mut server, &new, 25);
    assert_eq!((server.find(&old, 1, by(1)), server.find(&new, 1, by(1))), (Some(first), Some(second)));
    assert!(server.leftovers.is_empty());
    // Elsewhere only the new one is to be had.
    let mut elsewhere = ServerPrepared::new(10);
    let (_, number) = elsewhere.prepare(&old, 1, by(1), true);
    elsewhere.confirm(&old.key(), number);
    assert!(!elsewhere.described(&old, number, shape(25)));
    elsewhere.begin_batch();
    // Versions are bounded.
    for of in 0..20 {
        prepared(&mut server, &statement(1), of);
    }
    assert!(server.slots[0].versions.len() <= STATEMENT_VERSIONS);
}

#[test]
fn elsewhere_it_is_prepared_with_the_types_that_were_found() {
    let s = statement(1);
    assert_eq!(&*s.resolved_content(), b"select 1\0\0\0");
    let mut server = ServerPrepared::new(10);
    let (_, number) = server.prepare(&s, 1, by(1), false);
    server.described(&s, number, Shape::of(&[0, 1, 0, 0, 0, 23], None));
    assert_eq!(&*s.resolved_content(), b"select 1\0\0\x01\0\0\0\x17");
    assert!(!s.keeps_columns(), "it has none");
}

#[test]
fn eviction_spares_the_batch_and_the_used() {
    let mut server = ServerPrepared::new(2);
    let all: Vec<_> = (0..6).map(statement).collect();
    let mut expected: Vec<_> = all[..2].iter().map(|s| Box::from(prepared(&mut server, s, 1))).collect();
    server.begin_batch();
    for s in &all[2..4] {
        let (_, number) = server.prepare(s, 1, by(1), false);
        server.confirm(&s.key(), number);
    }
    let mut gone: Vec<Box<[u8]>> = std::iter::from_fn(|| server.evict()).collect();
    gone.sort_unstable();
    expected.sort_unstable();
    assert_eq!(gone, expected);
    // All four of one batch stay, although they are over the limit.
    server.begin_batch();
    for s in &all[2..6] {
        if server.find(s, 1, by(1)).is_none() {
            server.prepare(s, 1, by(1), false);
        }
    }
    assert!(server.evict().is_none());
    assert_eq!(server.len(), 4);
}

#[test]
fn recently_used_stays() {
    let mut server = ServerPrepared::new(3);
    let all: Vec<_> = (0..40).map(statement).collect();
    let hot = statement(1000);
    for s in &all {
        server.begin_batch();
        for s in [&hot, s] {
            if server.find(s, 1, by(1)).is_none() {
                let (_, number) = server.prepare(s, 1, by(1), false);
                server.confirm(&s.key(), number);
            }
        }
        while server.evict().is_some() {}
        assert!(server.find(&hot, 1, by(1)).is_some());
        assert!(server.len() <= 3);
    }
}

#[test]
fn a_client_holds_a_bounded_number() {
    let mut client = ClientPrepared::default();
    let s = statement(1);
    for n in 0..CLIENT_PREPARED {
        assert!(client.insert(format!("s{n}").as_bytes(), s.clone()));
    }
    assert!(!client.has_room());
    assert!(!client.insert(b"one more", s.clone()));
    assert!(client.insert(b"s1", s.clone()));
    assert_eq!(client.len(), CLIENT_PREPARED);
}

#[test]
fn a_client_holds_a_bounded_number_of_bytes() {
    let mut client = ClientPrepared::default();
    let content: Arc<[u8]> = vec![b'x'; 60_000].into();
    let mut n = 0;
    while client.has_room() {
        let s = Statement::new(Arc::clone(&content), [0; 16], Origin::default(), Arc::default(), 0);
        assert!(client.insert(format!("s{n}").as_bytes(), s));
        n += 1;
    }
    assert!(n < CLIENT_PREPARED && n * content.len() < CLIENT_PREPARED_BYTES + content.len());
    client.remove(b"s1");
    assert!(client.has_room());
    let names = client.take_names();
    assert_eq!(client.bytes, 0);
    client.restore_names(names);
    assert_eq!(client.bytes, (n - 1) * content.len());
}

#[test]
fn a_portal_too_many_is_any_of_them() {
    let mut client = ClientPrepared::default();
    let locks = Arc::new(Effects { pins: weir_wire::Pin::SessionLock.into(), ..Effects::default() });
    let listens = Arc::new(Effects { pins: weir_wire::Pin::Listen.into(), ..Effects::default() });
    for n in 0..PORTALS {
        client.bind_portal(format!("p{n}").as_bytes(), Some(Arc::clone(&locks)));
    }
    client.bind_portal(b"one", Some(Arc::clone(&listens)));
    client.bind_portal(b"two", Some(Arc::clone(&locks)));
    assert_eq!(client.portal_effects(b"p63").unwrap().pins, locks.pins);
    let mut both = locks.pins;
    both.union(listens.pins);
    assert_eq!(client.portal_effects(b"one").unwrap().pins, both);
    client.end_portals();
    assert!(client.portal_effects(b"one").is_none());
}

#[test]
fn names_come_back_unless_in_use_again() {
    let mut client = ClientPrepared::default();
    client.insert(b"a", statement(1));
    client.insert(b"b", statement(2));
    let names = client.take_names();
    assert!(client.is_empty());
    client.insert(b"a", statement(3));
    client.restore_names(names);
    assert_eq!(client.get(b"a").unwrap().content(), b"select 3\0\0\0");
    assert_eq!(client.get(b"b").unwrap().content(), b"select 2\0\0\0");
    assert_eq!(client.name_of(&statement(2).key()), Some(&b"b"[..]));
}

#[test]
fn what_a_client_has_run_under_settings_of_its_own_serves_nobody_else() {
    let german = |client| Runner { client, key: Some(1) };
    let for_a_moment = |client| Runner { client, key: None };
    let mut server = ServerPrepared::new(10);
    let (first, second) = (statement(1), statement(1));
    prepared(&mut server, &first, 23);
    let name = prepared(&mut server, &second, 23);
    assert_eq!(server.find(&first, 3, by(3)), Some(name), "both had it read under the same");
    assert_eq!(server.find(&second, 2, german(2)), None, "the other one would have it read anew");
    let (own, number) = server.prepare(&second, 2, german(2), true);
    server.confirm(&second.key(), number);
    assert!(server.described(&second, number, shape(23)));
    assert_eq!(server.find(&second, 2, german(2)), Some(own));
    assert_eq!(server.find(&first, 3, by(3)), Some(name), "each has its own");
    // As in a session of its own, what a client alone has run is there for it whatever it sets.
    assert_eq!(server.find(&second, 2, for_a_moment(2)), Some(own));
    assert_eq!(server.find(&first, 3, german(3)), None, "under these it has been run for a moment");
    assert_eq!(server.find(&second, 2, by(2)), Some(own), "its own is there, too");
}
