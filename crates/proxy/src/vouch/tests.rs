use super::*;
use crate::ids::{Arena, Kind};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use weir_config::{Origin, Protocol, Sources, load_text};
use weir_metrics::Metrics;
use weir_session::Login;

/// An answer to the bind with number 1.
const RIGHT: &[u8] = &[0x30, 12, 2, 1, 1, 0x61, 7, 10, 1, 0, 4, 0, 4, 0];
const WRONG: &[u8] = &[0x30, 12, 2, 1, 1, 0x61, 7, 10, 1, 49, 4, 0, 4, 0];

fn voucher(options: &str) -> Voucher {
    let text = format!(
        "[databases]\nd = host=127.0.0.1\n[pgbouncer]\nunix_socket_dir=/tmp\nauth_type=ldap\nauth_ldap_options={options}\n"
    );
    let loaded = load_text(std::path::Path::new("p.ini"), &text, &Sources::default());
    let snapshot = loaded.unwrap_or_else(|problems| panic!("{problems}")).snapshot;
    let login = Login { user: "ann".into(), database: Some("d".into()), replication: false };
    snapshot.voucher(Protocol::Postgres, &login, Origin::default()).expect("somebody is asked")
}

fn vouching(voucher: &Voucher, patience_ms: u64) -> Box<Vouching> {
    Box::new(Vouching {
        voucher: voucher.clone(),
        user: "ann".to_owned(),
        password: Password::new(b"right").unwrap(),
        from: String::new(),
        patience_ms,
    })
}

#[test]
fn an_answer_comes_in_time_to_be_told_and_pam_is_told_where_the_client_is() {
    let voucher = voucher("ldapserver=127.0.0.1 ldapprefix=x");
    let of = |peer: &Peer, most_ms, spent_ms| {
        let password = Password::new(b"right").unwrap();
        let vouching = Vouching::new(voucher.clone(), "ann".to_owned(), password, peer, most_ms, spent_ms);
        (vouching.from, vouching.patience_ms)
    };
    let mapped = Peer::Tcp("[::ffff:10.1.2.3]:5".parse().unwrap());
    assert_eq!(of(&mapped, 60_000, 0), ("10.1.2.3".to_owned(), 54_000));
    assert_eq!(of(&Peer::Unix { uid: None }, 60_000, 50_000), ("[local]".to_owned(), 9_000));
    assert_eq!(of(&Peer::Unknown, 1_000, 9_000), (String::new(), 0));
    assert_eq!(of(&Peer::Unknown, 0, 900_000), (String::new(), 54_000));
}

fn vouchers() -> (Vouchers, mpsc::Receiver<WorkDone>) {
    let panics = Arc::new(Panics::new(Metrics::new(1, &[]), || {}));
    let (sender, answers) = mpsc::channel();
    let sender = Mutex::new(sender);
    let vouchers = Vouchers::new(panics, Arc::default(), move |_, done| {
        // Nobody hears what is still said when the test is over.
        let _ = lock(&sender).send(done);
    });
    (vouchers, answers)
}

fn ticket() -> Ticket {
    let key = Arena::<()>::default().next_key();
    Ticket { worker: 0, protocol: Protocol::Postgres, kind: Kind::Client, key }
}

fn said(answers: &mpsc::Receiver<WorkDone>) -> Vouched {
    match answers.recv_timeout(Duration::from_secs(60)) {
        Ok(WorkDone::Vouched(said)) => said,
        Ok(_) => panic!("another answer"),
        Err(_) => panic!("no answer"),
    }
}

/// A server that does this with each connection, on a thread of its own.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

fn answering(answer: &'static [u8]) -> u16 {
    server(move |mut stream| {
        let mut buffer = [0; 100];
        if stream.read(&mut buffer).is_ok() {
            let _ = stream.write_all(answer);
        }
    })
}

fn bind(port: u16) -> String {
    format!("ldapserver=127.0.0.1 ldapport={port} ldapprefix=\"uid=\" ldapsuffix=\",dc=x\"")
}

#[test]
fn a_right_password_is_learnt_and_a_wrong_one_is_the_user_s() {
    let (vouchers, answers) = vouchers();
    let right = voucher(&bind(answering(RIGHT)));
    for turn in 1..3 {
        vouchers.ask(ticket(), vouching(&right, 60_000)).unwrap();
        let learnt = said(&answers).unwrap().unwrap();
        assert!(learnt.vouched && learnt.turn == turn);
        let secret = weir_auth::Secret::plain("right");
        assert!(learnt.secret.as_ref().is_some_and(|learnt| learnt.is_same(&secret)));
    }
    let wrong = voucher(&bind(answering(WRONG)));
    vouchers.ask(ticket(), vouching(&wrong, 60_000)).unwrap();
    let fault = said(&answers).unwrap_err();
    assert_eq!(fault.kind, FaultKind::LoginFailed);
    assert!(
        fault.detail.contains("invalidCredentials (49)") && fault.detail.contains("ldap://127.0.0.1:"),
        "{fault}"
    );
}

#[test]
fn a_server_that_never_answers_holds_up_only_its_own_and_not_for_ever() {
    let (vouchers, answers) = vouchers();
    let silent = voucher(&bind(server(|stream| {
        let mut stream = stream;
        let mut buffer = [0; 100];
        while stream.read(&mut buffer).is_ok_and(|n| n > 0) {}
    })));
    for number in 0..LDAP_QUESTIONS + 5 {
        // The last ones find all threads at work.
        let patience_ms = if number < LDAP_QUESTIONS { 3_000 } else { 100 };
        vouchers.ask(ticket(), vouching(&silent, patience_ms)).unwrap();
    }
    let right = voucher(&bind(answering(RIGHT)));
    vouchers.ask(ticket(), vouching(&right, 60_000)).unwrap();
    assert!(said(&answers).is_ok(), "the other server's answer comes first");
    let faults: Vec<Fault> = (0..LDAP_QUESTIONS + 5).map(|_| said(&answers).unwrap_err()).collect();
    assert!(faults.iter().all(|fault| fault.kind == FaultKind::LoginUnanswered), "{faults:?}");
    let late =
        faults.iter().filter(|fault| fault.detail.contains("no answer: the time for it is over")).count();
    let unasked = faults.iter().filter(|fault| fault.detail.contains("too many logins wait")).count();
    assert_eq!((late, unasked), (LDAP_QUESTIONS, 5), "{faults:?}");
}

#[test]
fn a_byte_now_and_then_does_not_buy_time() {
    let (vouchers, answers) = vouchers();
    let slow = voucher(&bind(server(|mut stream| {
        // The beginning of a long answer, byte by byte.
        for byte in [0x30, 0x82, 0x40, 0].into_iter().chain(std::iter::repeat(0)) {
            if stream.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    })));
    let begun = Instant::now();
    vouchers.ask(ticket(), vouching(&slow, 500)).unwrap();
    let fault = said(&answers).unwrap_err();
    assert!(fault.detail.contains("the time for it is over"), "{fault}");
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn the_next_host_is_asked_where_one_is_down_and_not_where_one_has_refused() {
    let (vouchers, answers) = vouchers();
    let down = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let hosts = |first: u16, second: u16| {
        voucher(&format!("ldapserver=\"127.0.0.1:{first} 127.0.0.1:{second}\" ldapprefix=\"uid=\""))
    };
    vouchers.ask(ticket(), vouching(&hosts(down, answering(RIGHT)), 60_000)).unwrap();
    assert!(said(&answers).is_ok());
    vouchers.ask(ticket(), vouching(&hosts(answering(WRONG), answering(RIGHT)), 60_000)).unwrap();
    assert_eq!(said(&answers).unwrap_err().kind, FaultKind::LoginFailed);
    vouchers.ask(ticket(), vouching(&hosts(down, down), 60_000)).unwrap();
    let fault = said(&answers).unwrap_err();
    assert_eq!(fault.kind, FaultKind::LoginUnanswered);
    assert_eq!(fault.detail.matches("cannot connect").count(), 2, "{fault}");
    assert!(fault.detail.contains(&format!("ldap://127.0.0.1:{down}: ")), "{fault}");
}

#[test]
fn what_is_no_ldap_server_is_said() {
    let (vouchers, answers) = vouchers();
    for (port, words) in [
        (answering(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "not LDAP"),
        (answering(b""), "it has closed the connection"),
        (answering(&[0x30, 0x84, 0x7F, 0xFF, 0xFF, 0xFF]), "too long"),
    ] {
        vouchers.ask(ticket(), vouching(&voucher(&bind(port)), 60_000)).unwrap();
        let fault = said(&answers).unwrap_err();
        assert!(fault.kind == FaultKind::LoginUnanswered && fault.detail.contains(words), "{fault}");
    }
}
