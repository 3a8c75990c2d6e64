//! `Pair`: Weir's accept against Weir's connect for every method, split at every byte; and what either side
//! must refuse.

use super::accept::Accept;
use super::connect::Connect;
use crate::back::Back;
use crate::error::field;
use crate::front::Front;
use crate::message::reply::{put_key, put_parameter, put_ready};
use crate::message::startup::{put_cancel, put_startup};
use crate::testing::{s, tags};
use std::sync::Arc;
use weir_auth::scram::{ScramKeys, ScramVerifier};
use weir_auth::{Secret, SecretKind, md5};
use weir_session::Accept as _;
use weir_session::Back as _;
use weir_session::Connect as _;
use weir_session::Front as _;
use weir_session::login::{
    AcceptParams, AcceptStep, Admission, AuthMethod, ConnectParams, ConnectStep, Login, Secured, TlsOffer,
    TlsWish,
};
use weir_wire::{Boundary, Fault, FaultKind};

fn accept() -> Accept {
    Accept::new(AcceptParams {
        id: 5.into(),
        nonce: std::array::from_fn(|i| i as u8),
        unix: false,
        tls: TlsOffer::Off,
        secured: None,
        greeting: Arc::default(),
        default_method: AuthMethod::Trust,
        compression: true,
        rsa: None,
    })
}

fn connect(secret: Option<Secret>) -> Connect {
    Connect::new(ConnectParams {
        user: "user".into(),
        secret: secret.map(Arc::new),
        database: "base".into(),
        parameters: vec![("application_name".into(), "weir".into())],
        nonce: [9; 64],
        unix: false,
        tls: TlsWish::Off,
        cancel: None,
        max_prepared_statements: 10,
        trust: Default::default(),
        changes: Default::default(),
        variant: 0,
    })
}

struct Met {
    front: Front,
    back: Back,
    login: Login,
    jobs: usize,
}

/// Carries bytes between the two, `chunk` at a time.
fn meet(mut accept: Accept, mut connect: Connect, admission: &Admission, chunk: usize) -> Result<Met, Fault> {
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    let (mut login, mut jobs, mut accepted) = (None, 0, false);
    let (mut server_input, mut client_input) = (Vec::new(), Vec::new());
    connect.start(&mut to_server);
    accept.start(&mut to_client);
    for _ in 0..100_000 {
        let n = to_server.len().min(chunk);
        server_input.extend(to_server.drain(..n));
        while !accepted {
            let (used, mut step) = accept.handle_input(&server_input, &mut to_client)?;
            server_input.drain(..used);
            let idle = used == 0 && matches!(step, AcceptStep::More);
            loop {
                step = match step {
                    AcceptStep::More => break,
                    AcceptStep::Lookup(who) => {
                        login = Some(who);
                        accept.handle_lookup(admission.clone(), &mut to_client)?
                    }
                    AcceptStep::Work(job) => {
                        jobs += 1;
                        accept.handle_job(job.run(), &mut to_client)?
                    }
                    AcceptStep::Vouch(_) => panic!("nobody else knows a password"),
                    AcceptStep::Cancel { .. } => panic!("no cancel was sent"),
                    AcceptStep::Tls => panic!("TLS was not asked for"),
                    AcceptStep::LoggedIn => {
                        accepted = true;
                        put_parameter(&mut to_client, "server_version", b"15.6");
                        put_key(&mut to_client, 42, b"keyk");
                        to_client.extend_from_slice(&s::notice("welcome"));
                        put_ready(&mut to_client, Boundary::Idle);
                        break;
                    }
                };
            }
            if idle {
                break;
            }
        }
        let n = to_client.len().min(chunk);
        client_input.extend(to_client.drain(..n));
        loop {
            let (used, step) = connect.handle_input(&client_input, &mut to_server)?;
            client_input.drain(..used);
            match step {
                ConnectStep::More if used == 0 => break,
                ConnectStep::More | ConnectStep::Tls => {}
                ConnectStep::Work(job) => {
                    jobs += 1;
                    connect.handle_job(job.run(), &mut to_server)?;
                }
                ConnectStep::LoggedIn => {
                    let (front, back) = (accept.into_front(), connect.into_back());
                    return Ok(Met { front, back, login: login.unwrap(), jobs });
                }
            }
        }
    }
    panic!("the login never ends");
}

fn admission(method: AuthMethod, secret: Option<Secret>) -> Admission {
    Admission { method, secret: secret.map(Arc::new), names: None }
}

fn verifier() -> String {
    ScramVerifier::text_of(&ScramKeys::derive("pw", b"0123456789abcdef", 4096), b"0123456789abcdef", 4096)
}

#[test]
fn every_method_in_both_roles() {
    let md5_hash = format!("md5{}", &**md5::stored_hash("user", "pw"));
    let cases = [
        (AuthMethod::Trust, None, None, 0),
        (AuthMethod::Plain, Some("pw".to_owned()), Some("pw".to_owned()), 0),
        (AuthMethod::Plain, Some(md5_hash.clone()), Some("pw".into()), 0),
        (AuthMethod::Plain, Some(verifier()), Some("pw".into()), 1),
        (AuthMethod::Md5, Some("pw".into()), Some("pw".into()), 0),
        (AuthMethod::Md5, Some(md5_hash.clone()), Some("pw".into()), 0),
        (AuthMethod::Md5, Some("pw".into()), Some(md5_hash), 0),
        (AuthMethod::Md5, Some(verifier()), Some("pw".into()), 1),
        (AuthMethod::ScramSha256, Some("pw".into()), Some("pw".into()), 2),
        (AuthMethod::ScramSha256, Some(verifier()), Some("pw".into()), 1),
    ];
    for (method, ours, theirs, jobs) in cases {
        for chunk in [1, 7, 10_000] {
            let admission = admission(method, ours.as_deref().map(Secret::from_userlist));
            let secret = theirs.as_deref().map(Secret::from_userlist);
            let met = meet(accept(), connect(secret), &admission, chunk).unwrap();
            let login = Login { user: "user".into(), database: Some("base".into()), replication: false };
            assert_eq!((met.login, met.jobs), (login, jobs), "{method:?}");
            assert_eq!(met.back.server_pid(), 42);
            assert_eq!(met.back.reported().get("server_version"), Some(&b"15.6"[..]));
            assert_eq!(met.front.settings.get("application_name"), Some(&b"weir"[..]));
            assert_eq!(met.front.id(), 5);
            assert!(met.back.is_reusable());
            // Who has proved itself against a verifier has shown what Weir needs to log in to its server.
            if let Some(secret) = admission.secret.filter(|secret| secret.is_verifier()) {
                assert!(secret.scram_keys(b"0123456789abcdef", 4096).is_some(), "{method:?}");
            }
        }
    }
}

#[test]
fn wrong_passwords_and_unknown_users_hear_the_same() {
    for method in [AuthMethod::Plain, AuthMethod::Md5, AuthMethod::ScramSha256] {
        let wrong = admission(method, Some(Secret::plain("other")));
        let nobody = admission(method, None);
        let mut heard = Vec::new();
        for admission in [wrong, nobody] {
            let Err(fault) = meet(accept(), connect(Some(Secret::plain("pw"))), &admission, 1000) else {
                panic!("{method:?} let a wrong password in");
            };
            assert_eq!(fault.kind, FaultKind::LoginFailed);
            let mut out = Vec::new();
            accept().refuse(&fault, &mut out);
            heard.push(out);
        }
        assert_eq!(heard[0], heard[1]);
        assert_eq!(field(&heard[0][5..], b'C'), Some(&b"28P01"[..]));
        assert_eq!(field(&heard[0][5..], b'S'), Some(&b"FATAL"[..]));
    }
}

#[test]
fn a_password_in_clear_makes_the_same_work_for_a_user_who_does_not_exist() {
    let known = ScramVerifier::parse(&verifier()).unwrap();
    let decoy = known.decoy("user");
    for secret in [Secret::new(SecretKind::ScramVerifier(known)), decoy] {
        let admission = admission(AuthMethod::Plain, Some(secret));
        let (mut accept, mut out) = (accept(), Vec::new());
        accept.handle_input(&startup(0x0003_0000, &[("user", "user")]), &mut out).unwrap();
        accept.handle_lookup(admission, &mut out).unwrap();
        let (_, step) = accept.handle_input(b"p\x00\x00\x00\x0awrong\x00", &mut out).unwrap();
        let AcceptStep::Work(job) = step else { panic!("no work") };
        assert!(format!("{job:?}").contains("iterations: 4096"));
        let Err(fault) = accept.handle_job(job.run(), &mut out) else { panic!("let in") };
        assert_eq!(fault.kind, FaultKind::LoginFailed);
    }
}

fn asked_for_a_password(method: AuthMethod) -> (Accept, Vec<u8>) {
    let (mut accept, mut out) = (accept(), Vec::new());
    accept.handle_input(&startup(0x0003_0000, &[("user", "user")]), &mut out).unwrap();
    let step = accept.handle_lookup(admission(method, None), &mut out).unwrap();
    assert!(matches!(step, AcceptStep::More));
    assert_eq!(out, b"R\x00\x00\x00\x08\x00\x00\x00\x03", "the password in clear");
    out.clear();
    (accept, out)
}

#[test]
fn somebody_else_is_asked_about_a_password_and_the_client_hears_postgresqls_words() {
    let failures =
        [(AuthMethod::Ldap, "LDAP authentication failed"), (AuthMethod::Pam, "PAM authentication failed")];
    for (method, words) in failures {
        let (mut accept, mut out) = asked_for_a_password(method);
        let message = b"p\x00\x00\x00\x0aright\x00";
        assert!(matches!(accept.handle_input(&message[..5], &mut out), Ok((0, AcceptStep::More))));
        let (used, step) = accept.handle_input(message, &mut out).unwrap();
        let AcceptStep::Vouch(password) = step else { panic!("nobody is asked") };
        assert_eq!((used, password.bytes()), (message.len(), &b"right"[..]));
        // What comes early waits.
        assert!(matches!(accept.handle_input(b"Q", &mut out), Ok((0, AcceptStep::More))));
        assert!(matches!(accept.handle_vouched(Ok(()), &mut out), Ok(AcceptStep::LoggedIn)));
        assert_eq!(out, b"R\x00\x00\x00\x08\x00\x00\x00\x00");
        for kind in [FaultKind::LoginFailed, FaultKind::LoginUnanswered] {
            let (mut accept, mut out) = asked_for_a_password(method);
            accept.handle_input(message, &mut out).unwrap();
            let Err(fault) = accept.handle_vouched(Err(Fault::new(kind, "it said no")), &mut out) else {
                panic!("let in")
            };
            assert_eq!((fault.kind, &out[..]), (kind, &b""[..]));
            accept.refuse(&fault, &mut out);
            assert_eq!(field(&out[5..], b'M'), Some(words.as_bytes()));
            assert_eq!(field(&out[5..], b'C'), Some(&b"28000"[..]));
        }
    }
}

#[test]
fn an_empty_password_asks_nobody() {
    let (mut accept, mut out) = asked_for_a_password(AuthMethod::Ldap);
    let fault = accept.handle_input(b"p\x00\x00\x00\x05\x00", &mut out).unwrap_err();
    assert_eq!(fault.kind, FaultKind::LoginFailed);
    accept.refuse(&fault, &mut out);
    assert_eq!(field(&out[5..], b'M'), Some(&b"empty password returned by client"[..]));
    assert_eq!(field(&out[5..], b'C'), Some(&b"28P01"[..]));
    let mut other = asked_for_a_password(AuthMethod::Plain).0;
    assert_eq!(other.handle_vouched(Ok(()), &mut out).unwrap_err().kind, FaultKind::ClientProtocol);
}

fn first(code: u32) -> Vec<u8> {
    [8_u32.to_be_bytes(), code.to_be_bytes()].concat()
}

const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

fn startup(version: u32, pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    put_startup(&mut out, pairs.iter().copied());
    out[4..8].copy_from_slice(&version.to_be_bytes());
    out
}

#[test]
fn encryption_is_declined_in_either_order_and_once() {
    for order in [[SSL, GSS], [GSS, SSL]] {
        let (mut accept, mut out) = (accept(), Vec::new());
        for code in order {
            let (used, step) = accept.handle_input(&first(code), &mut out).unwrap();
            assert!(used == 8 && matches!(step, AcceptStep::More));
        }
        assert_eq!(out, b"NN");
        let (_, step) = accept.handle_input(&startup(3 << 16, &[("user", "u")]), &mut out).unwrap();
        assert!(matches!(step, AcceptStep::Lookup(_)));
    }
    let (mut accept, mut out) = (accept(), Vec::new());
    accept.handle_input(&first(SSL), &mut out).unwrap();
    assert_eq!(accept.handle_input(&first(SSL), &mut out).unwrap_err().kind, FaultKind::ClientProtocol);
}

#[test]
fn trap_25_bytes_behind_a_request_for_encryption_are_refused() {
    for code in [SSL, GSS] {
        let (mut accept, mut out) = (accept(), Vec::new());
        let early = [first(code), startup(3 << 16, &[("user", "u")])].concat();
        assert_eq!(accept.handle_input(&early, &mut out).unwrap_err().kind, FaultKind::ClientProtocol);
        assert!(out.is_empty());
    }
}

#[test]
fn cancel_requests() {
    for key in [&[1, 2, 3, 4][..], &[7; 32], &[8; 256]] {
        let (mut accept, mut out) = (accept(), Vec::new());
        let mut request = Vec::new();
        put_cancel(&mut request, 77, key);
        let (_, step) = accept.handle_input(&request, &mut out).unwrap();
        assert!(matches!(step, AcceptStep::Cancel { id: 77, secret } if *secret == *key));
        assert!(matches!(accept.handle_input(b"", &mut out), Ok((0, AcceptStep::More))));
        assert!(out.is_empty(), "a cancel is answered with silence");
    }
}

fn lookup(packet: &[u8]) -> Result<(Accept, Vec<u8>, Login), Fault> {
    let (mut accept, mut out) = (accept(), Vec::new());
    let (used, step) = accept.handle_input(packet, &mut out)?;
    assert_eq!(used, packet.len());
    match step {
        AcceptStep::Lookup(login) => Ok((accept, out, login)),
        other => panic!("{other:?}"),
    }
}

fn front_of(mut accept: Accept) -> Front {
    accept.handle_lookup(admission(AuthMethod::Trust, None), &mut Vec::new()).unwrap();
    accept.into_front()
}

#[test]
fn trap_24_versions_are_negotiated_once() {
    let user = [("user", "u")];
    let (accept, out, _) = lookup(&startup(0x0003_0000, &user)).unwrap();
    assert!(out.is_empty());
    assert_eq!(front_of(accept).key().bytes().len(), 4);
    let (accept, out, _) = lookup(&startup(0x0003_0002, &user)).unwrap();
    assert!(out.is_empty());
    assert_eq!(front_of(accept).key().bytes().len(), 32);
    // libpq 19 asks for 3.9999 and an option that nobody has.
    let greased = [("user", "u"), ("_pq_.test_protocol_negotiation", ""), ("_pq_.other", "1")];
    let (accept, out, _) = lookup(&startup(0x0003_270f, &greased)).unwrap();
    assert_eq!(tags(&out), "v");
    assert_eq!(&out[5..13], [0, 3, 0, 2, 0, 0, 0, 2]);
    assert_eq!(&out[13..], b"_pq_.test_protocol_negotiation\0_pq_.other\0");
    let front = front_of(accept);
    assert_eq!(front.key().bytes().len(), 32);
    assert!(front.settings.is_empty(), "an option is no setting");
    let (_, out, _) = lookup(&startup(0x0003_0000, &greased)).unwrap();
    assert_eq!(&out[5..9], [0, 3, 0, 0]);
    let Err(fault) = lookup(&startup(0x0002_0000, &user)) else { panic!() };
    assert_eq!(fault.kind, FaultKind::ClientProtocol);
}

#[test]
fn startup_parameters_are_kept() {
    let pairs = [
        ("user", "u"),
        ("DateStyle", "German"),
        ("options", "-c geqo=off --statement_timeout=5s"),
        ("geqo", "on"),
        ("replication", "off"),
        ("application_name", "a"),
    ];
    let (accept, _, login) = lookup(&startup(3 << 16, &pairs)).unwrap();
    assert_eq!(login, Login { user: "u".into(), database: None, replication: false });
    let front = front_of(accept);
    let have: Vec<_> = front.settings.iter().collect();
    let expected: [(&str, &[u8]); 4] = [
        ("application_name", b"a"),
        ("datestyle", b"German, DMY"),
        ("geqo", b"on"),
        ("statement_timeout", b"5s"),
    ];
    assert_eq!(have, expected);
}

#[test]
fn what_is_not_carried_is_refused_with_words() {
    for (pair, code) in [
        (("replication", "database"), "0A000"),
        (("replication", "true"), "0A000"),
        (("options", "-d 5"), "42601"),
        (("user", ""), "28000"),
    ] {
        let (mut accept, mut out) = (accept(), Vec::new());
        let packet = startup(3 << 16, &[("user", "u"), pair]);
        let fault = accept.handle_input(&packet, &mut out).unwrap_err();
        accept.refuse(&fault, &mut out);
        assert_eq!(field(&out[5..], b'C'), Some(code.as_bytes()), "{pair:?}");
    }
}

#[test]
fn absurd_logins_are_refused() {
    let mut many = vec![("user", "u")];
    let names: Vec<String> = (0..300).map(|n| format!("x.n{n}")).collect();
    many.extend(names.iter().map(|name| (name.as_str(), "v")));
    let (mut a, mut out) = (accept(), Vec::new());
    assert_eq!(
        a.handle_input(&startup(3 << 16, &many), &mut out).unwrap_err().kind,
        FaultKind::ClientTooLarge
    );
    // A password message that is none, or too long, or in the wrong shape.
    for bad in [&b"Q\0\0\0\x05\0"[..], b"p\0\0\0\x03", b"p\x7f\xff\xff\xff", b"p\0\0\0\x05x"] {
        let (mut a, mut out, _) = lookup(&startup(3 << 16, &[("user", "u")])).unwrap();
        a.handle_lookup(admission(AuthMethod::Plain, Some(Secret::plain("pw"))), &mut out).unwrap();
        assert_eq!(a.handle_input(bad, &mut out).unwrap_err().kind, FaultKind::ClientProtocol, "{bad:?}");
    }
    // A mechanism nobody offered.
    let (mut a, mut out, _) = lookup(&startup(3 << 16, &[("user", "u")])).unwrap();
    a.handle_lookup(admission(AuthMethod::ScramSha256, None), &mut out).unwrap();
    let mut plus = Vec::new();
    crate::message::auth::put_sasl_initial(&mut plus, "SCRAM-SHA-256-PLUS", b"p=tls-unique,,n=,r=x");
    assert_eq!(a.handle_input(&plus, &mut out).unwrap_err().kind, FaultKind::ClientProtocol);
}

fn answered(connect: &mut Connect, bytes: &[u8]) -> Result<Vec<u8>, Fault> {
    let (mut rest, mut out) = (bytes, Vec::new());
    loop {
        let (used, step) = connect.handle_input(rest, &mut out)?;
        rest = &rest[used..];
        if used == 0 || matches!(step, ConnectStep::LoggedIn) {
            return Ok(out);
        }
    }
}

fn request(code: u32, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    crate::frame::put(&mut out, b'R', |o| {
        o.extend_from_slice(&code.to_be_bytes());
        o.extend_from_slice(data);
    });
    out
}

#[test]
fn a_servers_refusal_is_kept() {
    let mut c = connect(None);
    let error = s::fatal("28000", "no pg_hba.conf entry");
    let fault = answered(&mut c, &error).unwrap_err();
    assert_eq!(fault.kind, FaultKind::ServerLoginFailed);
    assert_eq!(fault.detail, "no pg_hba.conf entry");
    assert_eq!(c.rejection(), Some(&error[5..]));
}

#[test]
fn a_server_cannot_skip_the_end_of_scram() {
    let mut c = connect(Some(Secret::plain("pw")));
    answered(&mut c, &request(10, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0")).unwrap();
    assert_eq!(answered(&mut c, &request(0, b"")).unwrap_err().kind, FaultKind::ServerLoginFailed);
}

#[test]
fn servers_that_ask_for_what_weir_does_not_have() {
    for (bad, secret) in [
        (request(7, b""), Some("pw")),
        (request(10, b"OAUTHBEARER\0\0"), Some("pw")),
        (request(3, b""), None),
        (request(5, b"salt"), None),
        (request(3, b""), Some("md54d45974e13472b5a0be3533de4666414")),
    ] {
        let mut c = connect(secret.map(Secret::from_userlist));
        assert_eq!(answered(&mut c, &bad).unwrap_err().kind, FaultKind::ServerLoginFailed, "{bad:?}");
    }
    for bad in [
        request(11, b"r=x"),
        s::idle(),
        s::parameter("a", "b"),
        s::row(b"1"),
        b"R\0\0\0\x05\0".to_vec(),
        b"?".to_vec(),
    ] {
        let fault = answered(&mut connect(None), &bad).unwrap_err();
        assert_eq!(fault.kind, FaultKind::ServerProtocol, "{bad:?}");
    }
}

#[test]
fn a_server_cannot_fill_the_memory() {
    let mut c = connect(None);
    answered(&mut c, &request(0, b"")).unwrap();
    let many: Vec<u8> = (0..5000).flat_map(|n| s::parameter(&format!("x.n{n}"), "value")).collect();
    assert_eq!(answered(&mut c, &many).unwrap_err().kind, FaultKind::ServerTooLarge);
}

fn offered(tls: TlsOffer) -> Accept {
    let nonce = std::array::from_fn(|i| i as u8);
    Accept::new(AcceptParams {
        id: 5.into(),
        nonce,
        unix: false,
        tls,
        secured: None,
        greeting: Arc::default(),
        default_method: AuthMethod::Trust,
        compression: true,
        rsa: None,
    })
}

fn secured(alpn: bool, end_point: Option<&[u8]>) -> Arc<Secured> {
    Arc::new(Secured { alpn, end_point: end_point.map(Arc::from), ..Secured::default() })
}

/// A client that has asked for TLS and has it.
fn accept_inside(end_point: Option<&[u8]>) -> Accept {
    let (mut accept, mut out) = (offered(TlsOffer::Required), Vec::new());
    let (used, step) = accept.handle_input(&first(SSL), &mut out).unwrap();
    assert!(used == 8 && matches!(step, AcceptStep::Tls) && out == b"S");
    assert!(matches!(accept.handle_input(b"ciphertext", &mut out), Ok((0, AcceptStep::More))));
    accept.handle_secured(secured(false, end_point)).unwrap();
    accept
}

#[test]
fn tls_begins_once_and_behind_a_declined_gssenc() {
    let (mut accept, mut out) = (offered(TlsOffer::Offered), Vec::new());
    accept.handle_input(&first(GSS), &mut out).unwrap();
    let (_, step) = accept.handle_input(&first(SSL), &mut out).unwrap();
    assert!(matches!(step, AcceptStep::Tls) && out == b"NS");
    for code in [SSL, GSS] {
        let found = accept_inside(None).handle_input(&first(code), &mut Vec::new());
        assert_eq!(found.unwrap_err().kind, FaultKind::ClientProtocol);
    }
    let early = [first(SSL), startup(3 << 16, &[("user", "u")])].concat();
    let mut out = Vec::new();
    let found = offered(TlsOffer::Offered).handle_input(&early, &mut out);
    assert!(found.unwrap_err().kind == FaultKind::ClientProtocol && out.is_empty());
}

#[test]
fn direct_tls_needs_its_application_protocol() {
    let hello = [22, 3, 1, 0, 200, 1];
    for alpn in [true, false] {
        let mut accept = offered(TlsOffer::Offered);
        assert!(matches!(accept.handle_input(&hello, &mut Vec::new()), Ok((0, AcceptStep::Tls))));
        assert_eq!(accept.handle_secured(secured(alpn, None)).is_ok(), alpn);
    }
    let found = offered(TlsOffer::Off).handle_input(&hello, &mut Vec::new());
    assert_eq!(found.unwrap_err().kind, FaultKind::ClientProtocol);
}

#[test]
fn a_login_in_clear_is_refused_where_tls_is_required() {
    let packet = startup(3 << 16, &[("user", "u")]);
    let mut accept = offered(TlsOffer::Required);
    let fault = accept.handle_input(&packet, &mut Vec::new()).unwrap_err();
    assert_eq!(fault.kind, FaultKind::TlsRequired);
    let (_, step) = accept_inside(None).handle_input(&packet, &mut Vec::new()).unwrap();
    assert!(matches!(step, AcceptStep::Lookup(_)));
}

fn wishing(tls: TlsWish) -> (Connect, Vec<u8>) {
    let secret = Some(Arc::new(Secret::plain("pw")));
    let mut connect = Connect::new(ConnectParams {
        user: "user".into(),
        secret,
        database: "base".into(),
        parameters: Vec::new(),
        nonce: [9; 64],
        unix: false,
        tls,
        cancel: None,
        max_prepared_statements: 10,
        trust: Default::default(),
        changes: Default::default(),
        variant: 0,
    });
    let mut out = Vec::new();
    connect.start(&mut out);
    (connect, out)
}

#[test]
fn a_server_is_asked_for_tls_and_held_to_the_mode() {
    let (mut connect, mut out) = wishing(TlsWish::Required);
    assert_eq!(out, first(SSL));
    out.clear();
    assert!(matches!(connect.handle_input(b"S", &mut out), Ok((1, ConnectStep::Tls))));
    assert!(out.is_empty());
    connect.handle_secured(secured(false, None), &mut out).unwrap();
    assert_eq!(out[4..8], (3_u32 << 16).to_be_bytes(), "the startup packet goes inside");
    let (mut connect, mut out) = wishing(TlsWish::IfOffered);
    out.clear();
    assert!(matches!(connect.handle_input(b"N", &mut out), Ok((1, ConnectStep::More))));
    assert_eq!(out[4..8], (3_u32 << 16).to_be_bytes());
    for (tls, answer, kind) in [
        (TlsWish::Required, &b"N"[..], FaultKind::ServerTls),
        (TlsWish::IfOffered, b"SR", FaultKind::ServerProtocol),
        (TlsWish::IfOffered, b"X", FaultKind::ServerProtocol),
        (TlsWish::IfOffered, b"E\0\0\0\x20SFATAL\0", FaultKind::ServerUnavailable),
    ] {
        let (mut connect, mut out) = wishing(tls);
        out.clear();
        assert_eq!(connect.handle_input(answer, &mut out).unwrap_err().kind, kind, "{answer:?}");
        assert!(out.is_empty() && connect.rejection().is_none());
    }
}

#[test]
fn scram_is_bound_to_the_channel_when_both_see_it() {
    let admission = admission(AuthMethod::ScramSha256, Some(Secret::plain("pw")));
    let try_it = |ours: Option<&[u8]>, theirs: Option<&[u8]>| {
        let mut connect = connect(Some(Secret::plain("pw")));
        connect.handle_secured(secured(false, theirs), &mut Vec::new()).unwrap();
        meet(accept_inside(ours), connect, &admission, 1 << 20).map(|_| ())
    };
    try_it(Some(b"certificate"), Some(b"certificate")).unwrap();
    try_it(None, Some(b"certificate")).unwrap();
    try_it(Some(b"certificate"), None).unwrap();
    // Somebody in between has shown another certificate.
    try_it(Some(b"certificate"), Some(b"another")).unwrap_err();
}

#[test]
fn a_cancel_request_goes_inside_tls() {
    let mut connect = Connect::new(ConnectParams {
        user: "user".into(),
        secret: None,
        database: String::new(),
        parameters: Vec::new(),
        nonce: [9; 64],
        unix: false,
        tls: TlsWish::Required,
        cancel: Some(b"cancel request".to_vec()),
        max_prepared_statements: 10,
        trust: Default::default(),
        changes: Default::default(),
        variant: 0,
    });
    let mut out = Vec::new();
    connect.start(&mut out);
    assert_eq!(out, first(SSL));
    out.clear();
    connect.handle_input(b"S", &mut out).unwrap();
    connect.handle_secured(secured(false, None), &mut out).unwrap();
    assert_eq!(out, b"cancel request");
}

#[test]
fn a_certificate_lets_in_whom_it_names_and_who_is_known() {
    let known = || admission(AuthMethod::Cert, Some(Secret::plain("")));
    let try_it = |name: Option<&str>, admission: Admission| {
        let mut accept = offered(TlsOffer::Required);
        accept.handle_input(&first(SSL), &mut Vec::new()).unwrap();
        let secured = Secured { peer_name: name.map(str::to_owned), ..Secured::default() };
        accept.handle_secured(Arc::new(secured)).unwrap();
        accept.handle_input(&startup(3 << 16, &[("user", "alice")]), &mut Vec::new()).unwrap();
        accept.handle_lookup(admission, &mut Vec::new()).map_err(|fault| {
            let mut out = Vec::new();
            accept.refuse(&fault, &mut out);
            field(&out[5..], b'M').map(<[u8]>::to_vec)
        })
    };
    assert!(matches!(try_it(Some("alice"), known()), Ok(AcceptStep::LoggedIn)));
    let mapped = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Admission { names: Some(names), ..known() }
    };
    assert!(matches!(try_it(Some("cn of alice"), mapped(&["x", "cn of alice"])), Ok(AcceptStep::LoggedIn)));
    assert!(try_it(Some("alice"), mapped(&["cn of alice"])).is_err(), "the map has the only word");
    assert!(try_it(None, mapped(&[""])).is_err());
    let peer = |secret| admission(AuthMethod::Peer, secret);
    assert!(matches!(try_it(None, peer(Some(Secret::plain("")))), Ok(AcceptStep::LoggedIn)));
    assert_eq!(
        try_it(Some("alice"), peer(None)).unwrap_err().as_deref(),
        Some(&b"peer authentication failed"[..])
    );
    for (name, admission) in
        [(Some("bob"), known()), (None, known()), (Some("alice"), admission(AuthMethod::Cert, None))]
    {
        let said = try_it(name, admission).unwrap_err();
        assert_eq!(said.as_deref(), Some(&b"certificate authentication failed"[..]));
    }
}
