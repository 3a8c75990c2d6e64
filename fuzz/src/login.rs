//! Logins in both roles, against a peer that sends anything.

use crate::peers::Peers;
use crate::script::Script;
use std::sync::{Arc, LazyLock};
use weir_session::login::{
    AcceptParams, AcceptStep, Admission, AuthMethod, ConnectParams, ConnectStep, ServerGreeting, TlsOffer,
    TlsWish,
};
use weir_auth::{Job, JobDone, Secret};
use weir_proxy::wing::{Accept, Connect, Front};
use weir_wire::limits;

/// One for all runs: it keeps what is slow to compute.
static SECRET: LazyLock<Arc<Secret>> = LazyLock::new(|| Arc::new(Secret::plain("secret")));

/// More than any machine says to one input.
const OUTPUT_BYTES: usize = 1 << 20;

/// What a client's login starts from.
pub fn accept_params(method: AuthMethod) -> AcceptParams {
    AcceptParams {
        id: 7.into(),
        nonce: [0x2a; 64],
        unix: false,
        tls: TlsOffer::Off,
        secured: None,
        greeting: Arc::new(ServerGreeting {
            version: "8.0.36".into(),
            collation: 255,
            capabilities: u64::MAX,
        }),
        default_method: method,
        compression: true,
        rsa: None,
    }
}

/// What a server's login starts from.
pub fn connect_params(secret: Option<Arc<Secret>>, variant: u32) -> ConnectParams {
    ConnectParams {
        changes: Default::default(),
        trust: Default::default(),
        user: "app".to_owned(),
        secret,
        database: "app".to_owned(),
        parameters: vec![("application_name".to_owned(), "fuzz".to_owned())],
        nonce: [0x15; 64],
        unix: false,
        tls: TlsWish::Off,
        cancel: None,
        variant,
        max_prepared_statements: 5,
    }
}

fn method(choice: u8) -> AuthMethod {
    // Kept inputs mean by the lower ones what they meant when they were found.
    if choice >= 250 {
        return AuthMethod::Ldap;
    }
    match choice % 6 {
        0 => AuthMethod::Trust,
        1 => AuthMethod::Plain,
        2 => AuthMethod::Md5,
        3 => AuthMethod::ScramSha256,
        4 => AuthMethod::Native,
        _ => AuthMethod::CachingSha2,
    }
}

/// Runs a job, unless the peer asks for more rounds than a fuzzer has time for.
fn run(job: Job) -> Option<JobDone> {
    match &job {
        Job::ScramKeys { iterations, .. } if *iterations > 10_000 => None,
        _ => Some(job.run()),
    }
}

/// A client that says anything.
pub fn accept<W: Peers>(data: &[u8]) {
    let mut script = Script::new(data);
    let choice = script.choice();
    let method = method(choice);
    let secret = (choice & 0x80 == 0).then(|| SECRET.clone());
    let known = W::client_login();
    let (mut input, mut out) = (Vec::new(), Vec::new());
    let mut machine = W::Accept::new(accept_params(method));
    machine.start(&mut out);
    while !script.is_over() {
        input.extend_from_slice(&script.saying(&known));
        loop {
            let (used, mut step) = match machine.handle_input(&input, &mut out) {
                Ok(done) => done,
                Err(fault) => return machine.refuse(&fault, &mut out),
            };
            assert!(used <= input.len());
            input.drain(..used);
            loop {
                let answer = match step {
                    AcceptStep::More => break,
                    AcceptStep::Cancel { .. } | AcceptStep::Tls => return,
                    AcceptStep::Lookup(_) => {
                        let admission = Admission { method, secret: secret.clone(), names: None };
                        machine.handle_lookup(admission, &mut out)
                    }
                    AcceptStep::Work(job) => {
                        let Some(done) = run(job) else { return };
                        machine.handle_job(done, &mut out)
                    }
                    AcceptStep::Vouch(password) => {
                        assert!(!password.bytes().is_empty());
                        machine.handle_vouched(Ok(()), &mut out)
                    }
                    AcceptStep::LoggedIn => {
                        let mut front = machine.into_front();
                        let _ = front.find(&input, &mut out);
                        return;
                    }
                };
                step = match answer {
                    Ok(step) => step,
                    Err(fault) => return machine.refuse(&fault, &mut out),
                };
            }
            assert!(out.len() < OUTPUT_BYTES);
            if used == 0 {
                break;
            }
        }
    }
}

/// A server that says anything.
pub fn connect<W: Peers>(data: &[u8]) {
    let mut script = Script::new(data);
    let choice = script.choice();
    let secret = (choice & 1 == 0).then(|| SECRET.clone());
    let known: Vec<Vec<u8>> = [W::server_login(), W::server_messages()].concat();
    let (mut input, mut out) = (Vec::new(), Vec::new());
    let mut machine = W::Connect::new(connect_params(secret, 0));
    machine.start(&mut out);
    while !script.is_over() {
        input.extend_from_slice(&script.saying(&known));
        loop {
            let Ok((used, mut step)) = machine.handle_input(&input, &mut out) else {
                let _ = machine.rejection();
                return;
            };
            assert!(used <= input.len());
            input.drain(..used);
            while let ConnectStep::Work(job) = step {
                let Some(done) = run(job) else { return };
                match machine.handle_job(done, &mut out) {
                    Ok(next) => step = next,
                    Err(_) => return,
                }
            }
            if matches!(step, ConnectStep::LoggedIn) {
                let _ = machine.into_back();
                return;
            }
            assert!(out.len() < OUTPUT_BYTES);
            if used == 0 {
                break;
            }
        }
    }
}

/// A client that has logged in by the book. Nothing if the wing does not serve such a client.
pub fn front<W: Peers>() -> Option<W::Front> {
    let mut machine = W::Accept::new(accept_params(AuthMethod::Trust));
    let mut out = Vec::new();
    machine.start(&mut out);
    let mut input = W::client_login().swap_remove(0);
    for _ in 0..8 {
        let (used, mut step) = machine.handle_input(&input, &mut out).ok()?;
        input.drain(..used);
        loop {
            step = match step {
                AcceptStep::More => break,
                AcceptStep::Lookup(_) => {
                    let admission = Admission { method: AuthMethod::Trust, secret: None, names: None };
                    machine.handle_lookup(admission, &mut out).ok()?
                }
                AcceptStep::LoggedIn => return Some(machine.into_front()),
                AcceptStep::Work(_) | AcceptStep::Vouch(_) | AcceptStep::Cancel { .. } | AcceptStep::Tls => {
                    return None;
                }
            };
        }
    }
    None
}

/// A server that Weir has logged in to by the book. Nothing if the wing does not.
pub fn back<W: Peers>(variant: u32) -> Option<W::Back> {
    let mut machine = W::Connect::new(connect_params(None, variant));
    let mut out = Vec::new();
    machine.start(&mut out);
    let mut input = W::server_login().concat();
    for _ in 0..32 {
        let (used, step) = machine.handle_input(&input, &mut out).ok()?;
        input.drain(..used);
        match step {
            ConnectStep::More => {}
            ConnectStep::LoggedIn => return Some(machine.into_back()),
            ConnectStep::Work(_) | ConnectStep::Tls => return None,
        }
    }
    None
}

/// Any bytes as the header of a load balancer: what is read of a part is read of the whole.
pub fn proxy_header(data: &[u8]) {
    let whole = weir_wire::proxy_header::read(data);
    if let Ok(Some((used, _))) = whole {
        assert!(used <= data.len() && used <= limits::PROXY_HEADER_BYTES);
    }
    for end in 0..data.len() {
        match weir_wire::proxy_header::read(&data[..end]) {
            Ok(None) => {}
            said => assert_eq!(said, whole, "{end} bytes"),
        }
    }
}
