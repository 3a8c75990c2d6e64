//! Weir's `Accept` against Weir's `Connect`, in memory: every method in both roles, with the bytes split in
//! every way.

mod common;

use common::{accept_params, back, connect_params, error_in, packets, set_up_answers};
use std::sync::{Arc, OnceLock};
use weir_auth::job::RsaKey;
use weir_auth::{Secret, native};
use weir_mysql::frame::put;
use weir_mysql::message::response::{HandshakeResponse, read_auth_switch};
use weir_mysql::message::{Capabilities, Command};
use weir_mysql::{Accept, Back, Connect, Front, Welcomes};
use weir_session::Accept as _;
use weir_session::Back as _;
use weir_session::Connect as _;
use weir_session::Front as _;
use weir_session::Welcomes as _;
use weir_session::login::{
    AcceptParams, AcceptStep, Admission, ConnectParams, ConnectStep, TlsOffer, TlsWish,
};
use weir_session::{AuthMethod, Login};
use weir_wire::{Fault, FaultKind, Found};

/// Pieces in which bytes arrive.
const PIECES: [usize; 3] = [1, 7, 100_000];

/// What became of a login.
struct Met {
    ends: Result<(Front, Back), Refused>,
    login: Option<Login>,
    jobs: usize,
    /// TLS was asked for. (The bytes of these tests go on in clear.)
    secured: bool,
    /// All that the client was sent.
    heard: Vec<u8>,
    /// All that the server was sent until the client was in.
    said: Vec<u8>,
}

/// Both sides of a refusal.
#[derive(Debug)]
struct Refused {
    accept: Fault,
    connect: Fault,
    rejection: Option<Vec<u8>>,
}

/// Bytes on their way, in pieces.
#[derive(Default)]
struct Wire {
    under_way: Vec<u8>,
    arrived: Vec<u8>,
}

impl Wire {
    fn carry(&mut self, piece: usize, seen: &mut Vec<u8>) {
        let n = self.under_way.len().min(piece);
        let bytes: Vec<u8> = self.under_way.drain(..n).collect();
        seen.extend_from_slice(&bytes);
        self.arrived.extend(bytes);
    }
}

/// The side that accepts: takes what has arrived. True once the client is in.
fn serve(
    accept: &mut Accept,
    wire: &mut Wire,
    out: &mut Vec<u8>,
    met: &mut Met,
    admission: &Admission,
) -> Result<bool, Fault> {
    loop {
        let (used, mut step) = accept.handle_input(&wire.arrived, out)?;
        wire.arrived.drain(..used);
        let idle = used == 0 && matches!(step, AcceptStep::More);
        loop {
            step = match step {
                AcceptStep::More => break,
                AcceptStep::Lookup(login) => {
                    met.login = Some(login);
                    accept.handle_lookup(admission.clone(), out)?
                }
                AcceptStep::Work(job) => {
                    met.jobs += 1;
                    accept.handle_job(job.run(), out)?
                }
                AcceptStep::Vouch(_) => panic!("nobody else knows a password"),
                AcceptStep::Cancel { .. } => panic!("MySQL has no cancel packet"),
                AcceptStep::Tls => {
                    met.secured = true;
                    accept.handle_secured(Arc::default())?;
                    AcceptStep::More
                }
                AcceptStep::LoggedIn => return Ok(true),
            };
        }
        if idle {
            return Ok(false);
        }
    }
}

/// The side that connects: takes what has arrived. True once it is logged in.
fn connect_more(
    connect: &mut Connect,
    wire: &mut Wire,
    out: &mut Vec<u8>,
    met: &mut Met,
) -> Result<bool, Fault> {
    loop {
        let (used, step) = connect.handle_input(&wire.arrived, out)?;
        wire.arrived.drain(..used);
        match step {
            ConnectStep::LoggedIn => return Ok(true),
            ConnectStep::More if used == 0 => return Ok(false),
            ConnectStep::More => {}
            ConnectStep::Tls => connect.handle_secured(Arc::default(), out)?,
            ConnectStep::Work(job) => {
                met.jobs += 1;
                connect.handle_job(job.run(), out)?;
            }
        }
    }
}

fn meet(accept: AcceptParams, connect: ConnectParams, admission: &Admission, piece: usize) -> Met {
    let mut met = Met {
        ends: Err(nothing_yet()),
        login: None,
        jobs: 0,
        secured: false,
        heard: Vec::new(),
        said: Vec::new(),
    };
    let (mut accept, mut connect) = (Some(Accept::new(accept)), Connect::new(connect));
    let (mut to_server, mut to_client) = (Wire::default(), Wire::default());
    let mut front = None;
    let mut set_up = Vec::new();
    connect.start(&mut to_server.under_way);
    accept.as_mut().expect("not in yet").start(&mut to_client.under_way);
    let mut refused = None;
    for _ in 0..common::STEPS {
        if let Some(serving) = accept.as_mut() {
            let mut said = std::mem::take(&mut met.said);
            to_server.carry(piece, &mut said);
            met.said = said;
            match serve(serving, &mut to_server, &mut to_client.under_way, &mut met, admission) {
                Ok(false) => {}
                Ok(true) => {
                    let mut client = accept.take().expect("not in yet").into_front();
                    greet(&mut client, &mut to_client.under_way);
                    front = Some(client);
                }
                Err(fault) => {
                    serving.refuse(&fault, &mut to_client.under_way);
                    refused = Some(fault);
                    accept = None;
                }
            }
        } else {
            to_server.carry(piece, &mut set_up);
        }
        let mut heard = std::mem::take(&mut met.heard);
        to_client.carry(piece, &mut heard);
        met.heard = heard;
        match connect_more(&mut connect, &mut to_client, &mut to_server.under_way, &mut met) {
            Ok(true) => {
                met.ends = Ok((front.expect("greeted"), connect.into_back()));
                return met;
            }
            Ok(false) => {}
            Err(fault) => {
                let rejection = connect.rejection().map(<[u8]>::to_vec);
                let accept = refused.unwrap_or_else(|| nothing_yet().accept);
                met.ends = Err(Refused { accept, connect: fault, rejection });
                return met;
            }
        }
        // Behind the login come the two questions of the set-up.
        if front.is_some() && !set_up.is_empty() && to_server.under_way.is_empty() {
            to_client.under_way.extend(set_up_answers(&std::mem::take(&mut set_up), 77));
        }
    }
    panic!("the login never ends");
}

fn nothing_yet() -> Refused {
    let fault = Fault::from(FaultKind::ClientGone);
    Refused { accept: fault.clone(), connect: fault, rejection: None }
}

/// The final OK, as the pool of some server says it.
fn greet(front: &mut Front, out: &mut Vec<u8>) {
    let mut server = back(3);
    let mut ahead = Vec::new();
    server.dispatch_welcome(front, 1, &mut ahead).expect("a welcome");
    let answers: Vec<u8> = packets(&ahead).iter().flat_map(|_| common::s::ok(common::IDLE)).collect();
    common::receive(&mut server, Some(front), &answers);
    let mut welcomes = Welcomes::default();
    assert!(welcomes.record(front, &server) && welcomes.greet(front, out));
}

fn key() -> Arc<RsaKey> {
    static KEY: OnceLock<Arc<RsaKey>> = OnceLock::new();
    KEY.get_or_init(|| Arc::new(RsaKey::generate().expect("randomness"))).clone()
}

fn serving(default_method: AuthMethod, unix: bool) -> AcceptParams {
    AcceptParams { unix, rsa: Some(key()), ..accept_params(5, default_method) }
}

fn connecting(password: Option<&str>, unix: bool) -> ConnectParams {
    ConnectParams { unix, database: "shop".into(), ..connect_params(password) }
}

fn plain(password: &str) -> Option<Secret> {
    Some(Secret::plain(password))
}

/// The form of `mysql.user`: caching_sha2_password cannot be checked by its fast path.
fn hashed(password: &str) -> Option<Secret> {
    let hex: String = native::stored_hash(password.as_bytes()).iter().map(|b| format!("{b:02X}")).collect();
    Some(Secret::from_userlist(&format!("*{hex}")))
}

fn admit(method: AuthMethod, secret: Option<Secret>) -> Admission {
    Admission { method, secret: secret.map(Arc::new), names: None }
}

/// A login that goes through in all pieces, with this many jobs.
fn goes_through(
    default_method: AuthMethod,
    unix: bool,
    admission: &Admission,
    password: Option<&str>,
    jobs: usize,
) -> Vec<Met> {
    let run = |piece| {
        let met = meet(serving(default_method, unix), connecting(password, unix), admission, piece);
        assert_eq!(met.jobs, jobs);
        let login = Login { user: "app".into(), database: Some("shop".into()), replication: false };
        assert_eq!(met.login.as_ref(), Some(&login));
        let (front, back) = met.ends.as_ref().expect("logged in");
        assert_eq!((front.id(), front.pool_variant()), (5, 0));
        assert!(front.pins().is_empty() && back.is_reusable());
        assert_eq!(back.server_greeting().map(|greeting| &*greeting.version), Some("9.7.4"));
        met
    };
    PIECES.map(run).into()
}

/// A login that is refused in all pieces, with the same packets in each; those packets.
fn is_refused(
    default_method: AuthMethod,
    admission: &Admission,
    password: Option<&str>,
    using: &str,
) -> Vec<(u8, Vec<u8>)> {
    let mut all = Vec::new();
    for piece in PIECES {
        let met = meet(serving(default_method, false), connecting(password, false), admission, piece);
        let Err(refused) = met.ends else { panic!("a wrong password is let in") };
        assert_eq!(refused.accept.kind, FaultKind::LoginFailed);
        assert_eq!(refused.connect.kind, FaultKind::ServerLoginFailed);
        let text = format!("Access denied for user 'app' (using password: {using})");
        let rejection = common::s::packet(0, &refused.rejection.expect("its words"));
        assert_eq!(error_in(&rejection), (1045, text));
        // The key's envelope is different each time, and only on its way to the server.
        all.push(packets(&met.heard));
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
    all.swap_remove(0)
}

/// What the greeting's successors are, by their first bytes.
fn kinds(met: &Met) -> Vec<u8> {
    packets(&met.heard)
        .iter()
        .skip(1)
        .map(|(_, payload)| payload[0])
        .take_while(|first| *first != 0)
        .collect()
}

#[test]
fn native_password() {
    for secret in [plain("pw"), hashed("pw")] {
        let admission = admit(AuthMethod::Native, secret);
        for met in goes_through(AuthMethod::Native, false, &admission, Some("pw"), 0) {
            assert_eq!(kinds(&met), [], "nothing but OK");
        }
    }
}

#[test]
fn caching_sha2_by_its_fast_path() {
    let admission = admit(AuthMethod::CachingSha2, plain("pw"));
    for met in goes_through(AuthMethod::CachingSha2, false, &admission, Some("pw"), 0) {
        let heard = packets(&met.heard);
        assert_eq!(heard[1], (2, vec![1, 3]), "the fast path was enough");
        assert_eq!(heard[2].0, 3, "and OK is the next packet");
    }
}

#[test]
fn caching_sha2_in_full_by_rsa() {
    let admission = admit(AuthMethod::CachingSha2, hashed("pw"));
    for met in goes_through(AuthMethod::CachingSha2, false, &admission, Some("pw"), 2) {
        let heard = packets(&met.heard);
        assert_eq!(heard[1], (2, vec![1, 4]), "the password is needed");
        assert!(heard[2].0 == 4 && heard[2].1.starts_with(b"\x01-----BEGIN PUBLIC KEY-----"));
        let said = packets(&met.said);
        assert_eq!(said[1], (3, vec![2]), "the key is asked for");
        assert_eq!((said[2].0, said[2].1.len()), (5, 256), "an envelope of RSA-2048");
    }
}

#[test]
fn caching_sha2_in_clear_over_a_unix_socket() {
    let admission = admit(AuthMethod::CachingSha2, hashed("pw"));
    for met in goes_through(AuthMethod::CachingSha2, true, &admission, Some("pw"), 0) {
        assert_eq!(packets(&met.said)[1], (3, b"pw\0".to_vec()));
    }
}

#[test]
fn a_password_in_clear_only_over_a_unix_socket() {
    let admission = admit(AuthMethod::Plain, plain("pw"));
    for met in goes_through(AuthMethod::Native, true, &admission, Some("pw"), 0) {
        assert_eq!(packets(&met.said)[1], (3, b"pw\0".to_vec()));
    }
    for piece in PIECES {
        let met = meet(serving(AuthMethod::Native, false), connecting(Some("pw"), false), &admission, piece);
        assert!(met.ends.is_err());
        assert!(!met.said.windows(2).any(|two| two == b"pw"), "the password never left");
    }
}

#[test]
fn a_method_other_than_the_greetings_is_switched_to() {
    for (default, method, secret, jobs) in [
        (AuthMethod::Native, AuthMethod::CachingSha2, plain("pw"), 0),
        (AuthMethod::Native, AuthMethod::CachingSha2, hashed("pw"), 2),
        (AuthMethod::CachingSha2, AuthMethod::Native, plain("pw"), 0),
        (AuthMethod::CachingSha2, AuthMethod::Native, hashed("pw"), 0),
    ] {
        let admission = admit(method, secret);
        for met in goes_through(default, false, &admission, Some("pw"), jobs) {
            assert_eq!(kinds(&met)[0], 0xFE, "a switch");
            assert_eq!(packets(&met.heard)[1].0, 2);
        }
    }
}

#[test]
fn no_password_where_none_is_wanted() {
    for method in [AuthMethod::Native, AuthMethod::CachingSha2] {
        for default in [AuthMethod::Native, AuthMethod::CachingSha2] {
            for password in [None, Some("")] {
                goes_through(default, false, &admit(method, plain("")), password, 0);
            }
        }
    }
    goes_through(AuthMethod::CachingSha2, false, &admit(AuthMethod::Trust, None), None, 0);
    goes_through(AuthMethod::CachingSha2, false, &admit(AuthMethod::Trust, None), Some("any"), 0);
}

#[test]
fn no_password_where_one_is_wanted() {
    for (default, method) in [
        (AuthMethod::Native, AuthMethod::Native),
        (AuthMethod::CachingSha2, AuthMethod::CachingSha2),
        (AuthMethod::Native, AuthMethod::CachingSha2),
        (AuthMethod::CachingSha2, AuthMethod::Native),
    ] {
        for secret in [plain("pw"), hashed("pw"), None] {
            is_refused(default, &admit(method, secret), None, "NO");
        }
    }
}

#[test]
fn a_password_where_none_is_wanted() {
    for method in [AuthMethod::Native, AuthMethod::CachingSha2] {
        is_refused(method, &admit(method, plain("")), Some("pw"), "YES");
    }
}

#[test]
fn wrong_passwords_and_unknown_users_hear_the_same() {
    for (default, method) in [
        (AuthMethod::Native, AuthMethod::Native),
        (AuthMethod::CachingSha2, AuthMethod::CachingSha2),
        (AuthMethod::Native, AuthMethod::CachingSha2),
        (AuthMethod::CachingSha2, AuthMethod::Native),
    ] {
        let wrong = is_refused(default, &admit(method, plain("other")), Some("pw"), "YES");
        let unknown = is_refused(default, &admit(method, None), Some("pw"), "YES");
        assert_eq!(wrong, unknown, "{default:?} {method:?}");
    }
    let wrong =
        is_refused(AuthMethod::Native, &admit(AuthMethod::Native, hashed("other")), Some("pw"), "YES");
    let unknown = is_refused(AuthMethod::Native, &admit(AuthMethod::Native, None), Some("pw"), "YES");
    assert_eq!(wrong, unknown);
}

#[test]
fn a_wrong_password_in_the_envelope() {
    let admission = admit(AuthMethod::CachingSha2, hashed("other"));
    let heard = is_refused(AuthMethod::CachingSha2, &admission, Some("pw"), "YES");
    assert_eq!(heard.last().map(|(seq, _)| *seq), Some(6), "behind the envelope");
}

#[test]
fn a_server_that_refuses_is_quoted() {
    let mut connect = Connect::new(connecting(Some("pw"), false));
    let words = common::s::err(0, 1040, "Too many connections");
    let Err(fault) = connect.handle_input(&words, &mut Vec::new()) else { panic!("a login") };
    assert_eq!(fault.kind, FaultKind::ServerLoginFailed);
    assert_eq!(connect.rejection(), Some(&words[4..]));
}

/// A client that names a method and has nothing to prove yet.
fn no_answer(plugin: &'static [u8]) -> HandshakeResponse<'static> {
    HandshakeResponse {
        capabilities: Capabilities::PROTOCOL_41
            .or(Capabilities::SECURE_CONNECTION)
            .or(Capabilities::PLUGIN_AUTH),
        max_packet_bytes: 1 << 24,
        collation: 45,
        user: b"app",
        answer: b"",
        database: None,
        plugin: Some(plugin),
        attributes: b"",
        zstd_level: 0,
    }
}

/// MariaDB's connector goes on with a stand-in where it could not load the greeting's method. That one sends
/// an empty packet behind the OK, which would be no command.
#[test]
fn a_client_without_the_greetings_method_is_asked_for_another_though_it_needs_none() {
    for (plugin, switched) in [
        (&b"dummy_fallback_auth"[..], true),
        (b"caching_sha2_password", false),
        (b"mysql_native_password", false),
        (b"", false),
    ] {
        let admissions = [
            (admit(AuthMethod::Trust, None), true),
            (admit(AuthMethod::Peer, plain("")), true),
            (admit(AuthMethod::Peer, None), false),
        ];
        for (admission, goes_through) in admissions {
            let mut accept = Accept::new(serving(AuthMethod::CachingSha2, true));
            let (mut out, mut response) = (Vec::new(), Vec::new());
            accept.start(&mut out);
            put(&mut response, 1, |out| no_answer(plugin).write(out));
            assert!(matches!(accept.handle_input(&response, &mut out), Ok((_, AcceptStep::Lookup(_)))));
            out.clear();
            let mut step = accept.handle_lookup(admission, &mut out);
            if switched {
                assert!(matches!(step, Ok(AcceptStep::More)), "{plugin:?}");
                let packets = packets(&out);
                let [(2, switch)] = packets.as_slice() else { panic!("{packets:?}") };
                assert_eq!(read_auth_switch(&switch[1..]).expect("a switch").0, b"mysql_native_password");
                let answer = common::s::packet(3, b"");
                step = accept.handle_input(&answer, &mut out).map(|(_, step)| step);
            }
            match step {
                Ok(AcceptStep::LoggedIn) => assert!(goes_through, "{plugin:?}"),
                Ok(step) => panic!("{plugin:?}: {step:?}"),
                Err(fault) => {
                    assert_eq!((goes_through, fault.kind), (false, FaultKind::LoginFailed), "{plugin:?}")
                }
            }
        }
    }
}

/// A MySQL 9 client knows nothing but caching_sha2_password. Its library sends no answer with the name of a
/// method that the greeting does not have.
#[test]
fn behind_mariadb_its_method_is_asked_for_and_the_other_one_of_who_knows_no_more() {
    for (version, plugin, switched) in [
        ("11.8.9-MariaDB", &b"mysql_native_password"[..], None),
        ("11.8.9-MariaDB", b"caching_sha2_password", Some(&b"caching_sha2_password"[..])),
        ("11.8.9-MariaDB", b"client_ed25519", Some(b"mysql_native_password")),
        ("9.7.4", b"caching_sha2_password", None),
        ("9.7.4", b"mysql_native_password", Some(b"caching_sha2_password")),
    ] {
        let greeting = Arc::new(weir_mysql::message::greeting::before_any(version));
        let mut accept = Accept::new(AcceptParams { greeting, ..serving(AuthMethod::LikeServer, false) });
        let (mut out, mut response) = (Vec::new(), Vec::new());
        accept.start(&mut out);
        put(&mut response, 1, |out| no_answer(plugin).write(out));
        assert!(matches!(accept.handle_input(&response, &mut out), Ok((_, AcceptStep::Lookup(_)))));
        out.clear();
        // Without a password: no answer is right.
        let step = accept.handle_lookup(admit(AuthMethod::LikeServer, plain("")), &mut out);
        let packets = packets(&out);
        let asked = packets.first().and_then(|(_, packet)| read_auth_switch(packet.get(1..)?));
        assert_eq!(asked.map(|(method, _)| method), switched, "{version}, {plugin:?}");
        assert_eq!(matches!(step, Ok(AcceptStep::LoggedIn)), switched.is_none(), "{version}, {plugin:?}");
    }
}

/// COM_CHANGE_USER to `other`, and what becomes of it when `answer` makes the answer from the scramble of the
/// switch.
fn again(front: &Front, answer: impl Fn(&[u8]) -> Vec<u8>) -> Result<Front, Fault> {
    let mut request = Vec::new();
    put(&mut request, 0, |out| {
        out.push(Command::ChangeUser as u8);
        out.extend_from_slice(b"other\0\x03old");
        out.extend_from_slice(b"shop\0\xE0\x00mysql_native_password\0");
    });
    let params = AcceptParams { nonce: [77; 64], ..serving(AuthMethod::Native, false) };
    let (mut accept, step) = Accept::again(params, front, &request)?;
    let AcceptStep::Lookup(login) = step else { panic!("{step:?}") };
    assert_eq!((login.user.as_str(), login.database.as_deref()), ("other", Some("shop")));
    let mut out = Vec::new();
    let step = accept.handle_lookup(admit(AuthMethod::Native, plain("pw")), &mut out)?;
    assert!(matches!(step, AcceptStep::More), "an answer to an old scramble is not looked at");
    let switches = packets(&out);
    let [(1, switch)] = switches.as_slice() else { panic!("{switches:?}") };
    let (method, scramble) = read_auth_switch(&switch[1..]).expect("a switch");
    assert_eq!(method, b"mysql_native_password");
    let answer = common::s::packet(2, &answer(scramble));
    let (_, step) = accept.handle_input(&answer, &mut Vec::new())?;
    assert!(matches!(step, AcceptStep::LoggedIn));
    Ok(accept.into_front())
}

#[test]
fn a_login_on_top_of_a_session_needs_its_own_proof() {
    let admission = admit(AuthMethod::Native, plain("pw"));
    let met = meet(serving(AuthMethod::Native, false), connecting(Some("pw"), false), &admission, PIECES[2]);
    let (mut front, _) = met.ends.expect("logged in");
    let mut found = Vec::new();
    put(&mut found, 0, |out| out.extend_from_slice(b"\x11other\0\0\0"));
    assert_eq!(front.find(&found, &mut Vec::new()), Ok(Found::Login { len: found.len() }));
    let prove = |password: &'static str| {
        move |scramble: &[u8]| {
            native::response(&Secret::plain(password), scramble).expect("known in clear").to_vec()
        }
    };
    assert_eq!(again(&front, prove("pw")).expect("the right password").id(), front.id());
    assert_eq!(again(&front, prove("no")).unwrap_err().kind, FaultKind::LoginFailed);
    assert_eq!(again(&front, |_| Vec::new()).unwrap_err().kind, FaultKind::LoginFailed);
}

#[test]
fn tls_makes_passwords_safe_and_needs_no_key() {
    let method = AuthMethod::CachingSha2;
    let admission = admit(method, hashed("secret"));
    for (offer, wish, inside) in [
        (TlsOffer::Required, TlsWish::Required, true),
        (TlsOffer::Offered, TlsWish::IfOffered, true),
        (TlsOffer::Offered, TlsWish::Off, false),
        (TlsOffer::Off, TlsWish::IfOffered, false),
    ] {
        for piece in PIECES {
            let accept = AcceptParams { tls: offer, ..serving(method, false) };
            let connect = ConnectParams { tls: wish, ..connecting(Some("secret"), false) };
            let met = meet(accept, connect, &admission, piece);
            assert!(met.ends.is_ok() && met.secured == inside, "{offer:?} {wish:?}");
            assert_eq!(met.jobs, if inside { 0 } else { 2 }, "RSA is for those without TLS");
        }
    }
}

#[test]
fn clear_passwords_are_taken_inside_tls_only() {
    let admission = admit(AuthMethod::Plain, plain("secret"));
    let accept = || AcceptParams { tls: TlsOffer::Offered, ..serving(AuthMethod::CachingSha2, false) };
    let connect = |tls| ConnectParams { tls, ..connecting(Some("secret"), false) };
    assert!(meet(accept(), connect(TlsWish::IfOffered), &admission, 7).ends.is_ok());
    assert!(meet(accept(), connect(TlsWish::Off), &admission, 7).ends.is_err());
}

#[test]
fn who_requires_tls_does_not_go_on_without() {
    let method = AuthMethod::CachingSha2;
    let admission = admit(method, plain("secret"));
    let accept = |tls| AcceptParams { tls, ..serving(method, false) };
    let connect = |tls| ConnectParams { tls, ..connecting(Some("secret"), false) };
    let met = meet(accept(TlsOffer::Required), connect(TlsWish::Off), &admission, 7);
    let Err(refused) = met.ends else { panic!("let in") };
    assert_eq!(refused.accept.kind, FaultKind::TlsRequired);
    let mut weir = weir_mysql::Connect::new(connect(TlsWish::Required));
    let (mut greeting, mut out) = (Vec::new(), Vec::new());
    weir_mysql::Accept::new(accept(TlsOffer::Off)).start(&mut greeting);
    let fault = weir.handle_input(&greeting, &mut out).unwrap_err();
    assert!(fault.kind == FaultKind::ServerTls && out.is_empty());
}
