//! An independent implementation of the protocol as the other side of a login: Weir must let it in, and must
//! find the ends of the requests that it writes.

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use std::sync::Arc;
use weir_auth::Secret;
use weir_postgres::{Accept, Front};
use weir_session::Accept as _;
use weir_session::Front as _;
use weir_session::login::{AcceptParams, AcceptStep, Admission, AuthMethod, TlsOffer};
use weir_wire::{FaultKind, Found};

fn accept() -> Accept {
    Accept::new(AcceptParams {
        id: 3.into(),
        nonce: std::array::from_fn(|i| i as u8 ^ 0x5a),
        unix: false,
        tls: TlsOffer::Off,
        secured: None,
        greeting: Arc::default(),
        default_method: AuthMethod::Trust,
        compression: true,
        rsa: None,
    })
}

/// Logs the other implementation in with this password.
fn log_in(method: AuthMethod, secret: &str, password: &str) -> Result<Front, FaultKind> {
    let mut accept = accept();
    let secret = Some(Arc::new(Secret::from_userlist(secret)));
    let (mut to_us, mut to_them) = (BytesMut::new(), Vec::new());
    let pairs = [("user", "user"), ("database", "base"), ("client_encoding", "UTF8")];
    frontend::startup_message(pairs, &mut to_us).unwrap();
    let mut scram: Option<ScramSha256> = None;
    loop {
        let (used, mut step) = accept.handle_input(&to_us, &mut to_them).map_err(|fault| fault.kind)?;
        let _ = to_us.split_to(used);
        loop {
            step = match step {
                AcceptStep::Lookup(login) => {
                    assert_eq!((login.user.as_str(), login.database.as_deref()), ("user", Some("base")));
                    let admission = Admission { method, secret: secret.clone(), names: None };
                    accept.handle_lookup(admission, &mut to_them).map_err(|fault| fault.kind)?
                }
                AcceptStep::Work(job) => {
                    accept.handle_job(job.run(), &mut to_them).map_err(|fault| fault.kind)?
                }
                AcceptStep::LoggedIn => return Ok(accept.into_front()),
                AcceptStep::More => break,
                AcceptStep::Cancel { .. } | AcceptStep::Tls | AcceptStep::Vouch(_) => {
                    panic!("nobody cancels, asks for TLS or for somebody's word")
                }
            };
        }
        let mut bytes = BytesMut::from(&to_them[..]);
        to_them.clear();
        while let Some(message) = Message::parse(&mut bytes).unwrap() {
            match message {
                Message::AuthenticationCleartextPassword => {
                    frontend::password_message(password.as_bytes(), &mut to_us).unwrap();
                }
                Message::AuthenticationMd5Password(body) => {
                    let answer = md5_hash(b"user", password.as_bytes(), body.salt());
                    frontend::password_message(answer.as_bytes(), &mut to_us).unwrap();
                }
                Message::AuthenticationSasl(_) => {
                    let exchange = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
                    frontend::sasl_initial_response("SCRAM-SHA-256", exchange.message(), &mut to_us).unwrap();
                    scram = Some(exchange);
                }
                Message::AuthenticationSaslContinue(body) => {
                    let exchange = scram.as_mut().unwrap();
                    exchange.update(body.data()).unwrap();
                    frontend::sasl_response(exchange.message(), &mut to_us).unwrap();
                }
                _ => panic!("not a message of a login"),
            }
        }
    }
}

#[test]
fn the_other_client_is_let_in_by_every_method() {
    let verifier = postgres_protocol::password::scram_sha_256(b"p\xc3\xa4ss");
    let hash = postgres_protocol::password::md5(b"p\xc3\xa4ss", "user");
    for (method, secret) in [
        (AuthMethod::Plain, "p\u{e4}ss"),
        (AuthMethod::Plain, &verifier),
        (AuthMethod::Plain, &hash),
        (AuthMethod::Md5, "p\u{e4}ss"),
        (AuthMethod::Md5, &hash),
        (AuthMethod::Md5, &verifier),
        (AuthMethod::ScramSha256, "p\u{e4}ss"),
        (AuthMethod::ScramSha256, &verifier),
    ] {
        assert!(log_in(method, secret, "p\u{e4}ss").is_ok(), "{method:?} {secret}");
        assert_eq!(
            log_in(method, secret, "pass").unwrap_err(),
            FaultKind::LoginFailed,
            "{method:?} {secret}"
        );
    }
}

#[test]
fn what_the_other_client_writes_is_found_whole() {
    let mut front = log_in(AuthMethod::Md5, "x", "x").unwrap();
    let mut requests = Vec::new();
    let mut one = BytesMut::new();
    frontend::query("select 1", &mut one).unwrap();
    requests.push(one.split());
    frontend::parse("s", "select $1", [23_u32], &mut one).unwrap();
    frontend::describe(b'S', "s", &mut one).unwrap();
    frontend::bind(
        "",
        "s",
        [1_i16],
        [Some(5_i32)],
        |v, b| {
            b.extend_from_slice(&v.unwrap_or(0).to_be_bytes());
            Ok(postgres_protocol::IsNull::No)
        },
        [1_i16],
        &mut one,
    )
    .map_err(|_| "bind")
    .unwrap();
    frontend::execute("", 0, &mut one).unwrap();
    frontend::close(b'S', "s", &mut one).unwrap();
    frontend::sync(&mut one);
    requests.push(one.split());
    let all: Vec<u8> = requests.iter().flat_map(|r| r.to_vec()).collect();
    let mut rest = &all[..];
    for request in requests {
        match front.find(rest, &mut Vec::new()).unwrap() {
            Found::Request { len, .. } => assert_eq!(len, request.len()),
            other => panic!("{other:?}"),
        }
        rest = &rest[request.len()..];
    }
    frontend::terminate(&mut one);
    assert_eq!(front.find(&one, &mut Vec::new()).unwrap(), Found::Goodbye);
}
