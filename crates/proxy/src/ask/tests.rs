use super::*;
use weir_config::{Asking, Protocol, Sources, load_text};

const VERIFIER: &str = "SCRAM-SHA-256$4096:c2FsdHNhbHQ=$AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=:\
                        AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn question(user: &str, max_age: Duration) -> Question {
    let text = "[databases]\nd = host=127.0.0.1 auth_user=asker\n[pgbouncer]\nunix_socket_dir=/tmp\n";
    let loaded = load_text(std::path::Path::new("p.ini"), text, &Sources::default()).unwrap();
    let entry = loaded.snapshot.realm(Protocol::Postgres).databases["d"].clone();
    let asking = Asking { user: "asker".into(), query: "q".into(), database: None };
    let asked = Asked { entry, database: "d".into(), asking, secret: None };
    Question { asked, targets: Targets::default(), epoch: 1, user: user.into(), max_age, patience_ms: 1 }
}

fn learnt(text: &str, turn: u64) -> Learnt {
    Learnt::new(Some(Arc::new(Secret::from_userlist(text))), None, turn)
}

#[test]
fn the_same_password_is_the_same_secret_as_long_as_anybody_uses_it() {
    let mut inbox = Inbox::default();
    let asked = question("ann", Duration::ZERO);
    let first = inbox.learn(&asked, learnt(VERIFIER, 1), Instant::now());
    let second = inbox.learn(&asked, learnt(VERIFIER, 2), Instant::now());
    assert!(Arc::ptr_eq(first.secret.as_ref().unwrap(), second.secret.as_ref().unwrap()));
    let third = inbox.learn(&asked, learnt("another", 3), Instant::now());
    assert!(!Arc::ptr_eq(first.secret.as_ref().unwrap(), third.secret.as_ref().unwrap()));
    assert!(inbox.fresh(&asked).is_none(), "each login asks");
    let weak = Arc::downgrade(&third);
    drop(third);
    assert!(weak.upgrade().is_none(), "nobody keeps what nobody uses");
}

#[test]
fn an_answer_is_kept_for_its_time_unless_it_is_doubted() {
    let mut inbox = Inbox::default();
    let asked = question("ann", Duration::from_secs(3600));
    let long_ago = Instant::now() - DOUBT_AFTER;
    let first = inbox.learn(&asked, learnt("one", 1), long_ago);
    assert!(inbox.fresh(&asked).is_some_and(|found| Arc::ptr_eq(&found, &first)));
    assert!(inbox.fresh(&question("bob", Duration::from_secs(3600))).is_none());
    first.doubt();
    assert!(inbox.fresh(&asked).is_none(), "somebody did not fit it");
    let second = inbox.learn(&asked, learnt("two", 2), Instant::now());
    second.doubt();
    assert!(inbox.fresh(&asked).is_some(), "but not every wrong password asks");
}

#[test]
fn what_is_kept_is_bounded() {
    let mut inbox = Inbox::default();
    for n in 0..ASKED_USERS + 10 {
        inbox.learn(&question(&n.to_string(), Duration::from_secs(9)), learnt("x", 1), Instant::now());
    }
    assert!(inbox.known.len() <= ASKED_USERS);
}
