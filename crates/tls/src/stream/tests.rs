//! Weir's acceptor against Weir's connector.

use super::*;
use crate::pem::certificates;
use crate::{
    Acceptor, AcceptorSettings, Bounds, ClientCertificate, Connector, ConnectorSettings, Identity, Verify,
    self_made,
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use x509_parser::asn1_rs::{Any, Class, DerParser, FromDer, SequenceIterator, ToDer};

/// A CA.
struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pem: Vec<u8>,
}

impl Ca {
    fn new(name: &str) -> Ca {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem().into_bytes();
        Ca { issuer: Issuer::new(params, key), pem }
    }

    fn sign(&self, common_name: &str, names: &[&str], years: (i32, i32)) -> Identity {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.not_before = rcgen::date_time_ymd(years.0, 1, 1);
        params.not_after = rcgen::date_time_ymd(years.1, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity { chain: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes() }
    }
}

const GOOD: (i32, i32) = (2020, 2120);

fn acceptor(identity: Identity) -> AcceptorSettings {
    AcceptorSettings {
        identity,
        bounds: Bounds::default(),
        client: ClientCertificate::None,
        alpn: Vec::new(),
        tickets: true,
    }
}

fn own(name: &str) -> Identity {
    self_made(&[name.to_owned()], None).unwrap().identity
}

/// Two ends and what is under way between them.
struct Pair {
    server: Stream,
    client: Stream,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    server_plain: Vec<u8>,
    client_plain: Vec<u8>,
}

impl Pair {
    fn new(server: &Acceptor, client: &Connector, host: &str) -> Pair {
        let (server, client) = (server.accept().unwrap(), client.connect(host).unwrap());
        Pair {
            server,
            client,
            to_server: Vec::new(),
            to_client: Vec::new(),
            server_plain: Vec::new(),
            client_plain: Vec::new(),
        }
    }

    /// Carries bytes, at most `step` at a time, until nothing is under way.
    fn run(&mut self, step: usize) -> Result<(), (&'static str, String)> {
        let mut error = None;
        if let Err(e) = self.client.handle_input(&mut [], &mut self.client_plain, &mut self.to_server) {
            error = Some(("client", e.to_string()));
        }
        while !self.to_server.is_empty() || !self.to_client.is_empty() {
            let n = step.min(self.to_server.len());
            let mut bytes: Vec<u8> = self.to_server.drain(..n).collect();
            if n > 0
                && !self.server.is_failed()
                && let Err(e) =
                    self.server.handle_input(&mut bytes, &mut self.server_plain, &mut self.to_client)
            {
                error.get_or_insert(("server", e.to_string()));
            }
            let n = step.min(self.to_client.len());
            let mut bytes: Vec<u8> = self.to_client.drain(..n).collect();
            if n > 0
                && !self.client.is_failed()
                && let Err(e) =
                    self.client.handle_input(&mut bytes, &mut self.client_plain, &mut self.to_server)
            {
                error.get_or_insert(("client", e.to_string()));
            }
        }
        error.map_or(Ok(()), Err)
    }
}

fn connector(settings: &ConnectorSettings) -> Connector {
    Connector::new(settings).unwrap()
}

#[test]
fn text_passes_both_ways_however_the_bytes_are_cut() {
    for protocols in ["tlsv1.2", "tlsv1.3"] {
        let bounds = Bounds { protocols: protocols.to_owned(), ..Bounds::default() };
        let server = Acceptor::new(&AcceptorSettings { bounds, ..acceptor(own("db")) }).unwrap();
        let client = connector(&ConnectorSettings::default());
        for step in [1, 7, 100, 1 << 20] {
            let mut pair = Pair::new(&server, &client, "db");
            pair.run(step).unwrap();
            let long: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
            pair.client.encrypt(b"select 1", &mut pair.to_server).unwrap();
            pair.server.encrypt(&long, &mut pair.to_client).unwrap();
            pair.run(step).unwrap();
            assert_eq!(pair.server_plain, b"select 1");
            assert_eq!(pair.client_plain, long);
            assert_eq!((pair.server.kept_bytes(), pair.client.kept_bytes()), (0, 0), "{protocols} {step}");
            let (one, two) = (pair.server.facts().unwrap(), pair.client.facts().unwrap());
            assert_eq!(one.version.to_lowercase(), protocols);
            assert_eq!((one.version, one.cipher), (two.version, two.cipher));
            assert!(one.end_point.is_some() && one.end_point == two.end_point);
            pair.client.close(&mut pair.to_server).unwrap();
            pair.run(step).unwrap();
            assert!(pair.server.is_peer_closed());
        }
    }
}

#[test]
fn nothing_can_be_said_before_the_handshake() {
    let server = Acceptor::new(&acceptor(own("db"))).unwrap();
    let mut pair = Pair::new(&server, &connector(&ConnectorSettings::default()), "db");
    assert!(pair.server.encrypt(b"x", &mut pair.to_client).is_err());
    assert!(pair.to_client.is_empty());
}

#[test]
fn bytes_that_are_not_tls_end_it_with_an_alert() {
    let server = Acceptor::new(&acceptor(own("db"))).unwrap();
    let mut stream = server.accept().unwrap();
    let (mut plain, mut out) = (Vec::new(), Vec::new());
    let mut bytes = b"GET / HTTP/1.0\r\n\r\n".to_vec();
    assert!(stream.handle_input(&mut bytes, &mut plain, &mut out).is_err());
    assert!(plain.is_empty() && stream.is_failed());
    assert_eq!(out.first(), Some(&21), "an alert");
}

#[test]
fn a_changed_byte_is_noticed() {
    let server = Acceptor::new(&acceptor(own("db"))).unwrap();
    let mut pair = Pair::new(&server, &connector(&ConnectorSettings::default()), "db");
    pair.run(1 << 20).unwrap();
    pair.client.encrypt(b"select 1", &mut pair.to_server).unwrap();
    *pair.to_server.last_mut().unwrap() ^= 1;
    assert!(pair.run(1 << 20).is_err());
    assert!(pair.server_plain.is_empty());
}

#[test]
fn a_certificate_is_verified_as_the_mode_says() {
    let (ca, other) = (Ca::new("modes-ca"), Ca::new("modes-other"));
    let right = ca.sign("db.test", &["db.test"], GOOD);
    let old = ca.sign("db.test", &["db.test"], (2001, 2002));
    let early = ca.sign("db.test", &["db.test"], (2100, 2120));
    let elsewhere = ca.sign("web.test", &["web.test"], GOOD);
    let by_common_name = ca.sign("db.test", &[], GOOD);
    let foreign = other.sign("db.test", &["db.test"], GOOD);
    for (identity, with_ca, full) in [
        (&right, None, None),
        (&old, Some("has expired"), Some("has expired")),
        (&early, Some("not valid yet"), Some("not valid yet")),
        (&elsewhere, None, Some("another host than db.test: for DnsName(\"web.test\")")),
        (&by_common_name, None, None),
        (&foreign, Some("not signed by a CA"), Some("not signed by a CA")),
    ] {
        let server = Acceptor::new(&acceptor(identity.clone())).unwrap();
        for (verify, wanted) in [(Verify::None, None), (Verify::Ca, with_ca), (Verify::Full, full)] {
            let settings =
                ConnectorSettings { verify, ca: Some(ca.pem.clone()), ..ConnectorSettings::default() };
            let found = Pair::new(&server, &connector(&settings), "db.test").run(1 << 20);
            match (wanted, found) {
                (None, Ok(())) => {}
                (Some(wanted), Err(("client", found))) => assert!(found.contains(wanted), "{found}"),
                (wanted, found) => panic!("{verify:?}: {wanted:?}, {found:?}"),
            }
        }
    }
}

#[test]
fn a_certificate_that_is_its_own_ca_can_be_trusted() {
    for (years, host, wanted) in [
        (GOOD, "db.test", None),
        (GOOD, "web.test", Some("another host")),
        ((2001, 2002), "db.test", Some("expired")),
    ] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["db.test".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = rcgen::date_time_ymd(years.0, 1, 1);
        params.not_after = rcgen::date_time_ymd(years.1, 1, 1);
        let pem = params.self_signed(&key).unwrap().pem();
        let identity = Identity { chain: pem.clone().into_bytes(), key: key.serialize_pem().into_bytes() };
        let server = Acceptor::new(&acceptor(identity)).unwrap();
        let settings = ConnectorSettings {
            verify: Verify::Full,
            ca: Some(pem.into_bytes()),
            ..ConnectorSettings::default()
        };
        let found = Pair::new(&server, &connector(&settings), host).run(1 << 20);
        match (wanted, found) {
            (None, Ok(())) => {}
            (Some(wanted), Err((_, found))) => assert!(found.contains(wanted), "{found}"),
            (wanted, found) => panic!("{wanted:?}, {found:?}"),
        }
    }
}

#[test]
fn a_client_shows_its_certificate() {
    let (ca, other) = (Ca::new("client-ca"), Ca::new("client-other"));
    let required = ClientCertificate::Required(ca.pem.clone());
    let optional = ClientCertificate::Optional(ca.pem.clone());
    for protocols in ["tlsv1.2", "tlsv1.3"] {
        let try_it = |client: &ClientCertificate, identity: Option<Identity>| {
            let bounds = Bounds { protocols: protocols.to_owned(), ..Bounds::default() };
            let settings = AcceptorSettings { client: client.clone(), bounds, ..acceptor(own("db")) };
            let server = Acceptor::new(&settings).unwrap();
            let client = connector(&ConnectorSettings { identity, ..ConnectorSettings::default() });
            let mut pair = Pair::new(&server, &client, "db");
            pair.run(1 << 20).map(|()| pair.server.facts().unwrap().peer_name)
        };
        let alice = ca.sign("alice", &[], GOOD);
        assert_eq!(try_it(&required, Some(alice.clone())).unwrap().as_deref(), Some("alice"));
        assert_eq!(try_it(&optional, Some(alice)).unwrap().as_deref(), Some("alice"));
        assert_eq!(try_it(&optional, None).unwrap(), None);
        let (who, why) = try_it(&required, None).unwrap_err();
        assert_eq!((who, why.as_str()), ("server", "the peer shows no certificate, and one is wanted"));
        for client in [&required, &optional] {
            let (who, why) = try_it(client, Some(other.sign("alice", &[], GOOD))).unwrap_err();
            assert!(who == "server" && why.contains("not signed by a CA"), "{why}");
        }
    }
}

#[test]
fn a_session_is_resumed_when_tickets_are_on() {
    for (tickets, protocols) in [(true, "tlsv1.3"), (true, "tlsv1.2"), (false, "tlsv1.3")] {
        let bounds = Bounds { protocols: protocols.to_owned(), ..Bounds::default() };
        let settings = AcceptorSettings { tickets, bounds, ..acceptor(own("db")) };
        let server = Acceptor::new(&settings).unwrap();
        let client = connector(&ConnectorSettings { sessions: 8, ..ConnectorSettings::default() });
        let mut seen = Vec::new();
        for _ in 0..2 {
            let mut pair = Pair::new(&server, &client, "db");
            pair.run(1 << 20).unwrap();
            let facts = pair.client.facts().unwrap();
            assert!(facts.end_point.is_some(), "a resumed session has the certificate of the first one");
            seen.push(facts.resumed);
        }
        assert_eq!(seen, [false, tickets]);
    }
}

#[test]
fn both_sides_agree_on_a_protocol_or_on_none() {
    let alpn = vec![b"postgresql".to_vec()];
    let server = Acceptor::new(&AcceptorSettings { alpn: alpn.clone(), ..acceptor(own("db")) }).unwrap();
    for (alpn, wanted) in [
        (alpn.clone(), Ok(Some(b"postgresql".to_vec()))),
        (Vec::new(), Ok(None)),
        (vec![b"h2".to_vec()], Err("server")),
    ] {
        let client = connector(&ConnectorSettings { alpn, ..ConnectorSettings::default() });
        let mut pair = Pair::new(&server, &client, "db");
        let found = pair.run(1 << 20).map_err(|(who, _)| who);
        assert_eq!(found.map(|()| pair.server.facts().unwrap().alpn), wanted);
    }
}

#[test]
fn ciphers_and_versions_stay_within_their_bounds() {
    let bounds = Bounds {
        protocols: "tlsv1.2".into(),
        ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256".into(),
        ..Bounds::default()
    };
    let server = Acceptor::new(&AcceptorSettings { bounds, ..acceptor(own("db")) }).unwrap();
    let mut pair = Pair::new(&server, &connector(&ConnectorSettings::default()), "db");
    pair.run(1 << 20).unwrap();
    assert_eq!(pair.client.facts().unwrap().cipher, "ECDHE-ECDSA-AES128-GCM-SHA256");
    let bounds = Bounds { protocols: "tlsv1.3".into(), ..Bounds::default() };
    let client = connector(&ConnectorSettings { bounds, ..ConnectorSettings::default() });
    assert!(Pair::new(&server, &client, "db").run(1 << 20).is_err());
}

#[test]
fn the_servers_order_of_ciphers_holds() {
    // OpenSSL's own order, which is that of most drivers.
    let openssl = "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
    let of = |ciphers13: &str| Bounds { ciphers13: ciphers13.to_owned(), ..Bounds::default() };
    let client = connector(&ConnectorSettings { bounds: of(openssl), ..ConnectorSettings::default() });
    for (set, wanted) in [("", "TLS_AES_128_GCM_SHA256"), (openssl, "TLS_AES_256_GCM_SHA384")] {
        let settings = AcceptorSettings { bounds: of(set), ..acceptor(own("db")) };
        let mut pair = Pair::new(&Acceptor::new(&settings).unwrap(), &client, "db");
        pair.run(1 << 20).unwrap();
        assert_eq!(pair.client.facts().unwrap().cipher, wanted);
    }
}

#[test]
fn a_self_made_certificate_is_kept_in_its_file() {
    let folder = std::env::temp_dir().join(format!("weir-tls-kept-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("tls.pem");
    let names = ["db.test".to_owned(), "127.0.0.1".to_owned()];
    let first = self_made(&names, Some(&file)).unwrap();
    let second = self_made(&names, Some(&file)).unwrap();
    assert!(first.is_new && !second.is_new);
    assert_eq!(certificates(&first.identity.chain).unwrap(), certificates(&second.identity.chain).unwrap());
    // Its own CA, so that it can be handed to clients to be trusted.
    let server = Acceptor::new(&acceptor(second.identity)).unwrap();
    for host in ["db.test", "127.0.0.1"] {
        let settings = ConnectorSettings {
            verify: Verify::Full,
            ca: Some(std::fs::read(&file).unwrap()),
            ..ConnectorSettings::default()
        };
        Pair::new(&server, &connector(&settings), host).run(1 << 20).unwrap();
    }
    std::fs::write(&file, "nonsense").unwrap();
    assert!(self_made(&names, Some(&file)).unwrap_err().to_string().contains("remove it"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_stream_is_small_enough_for_many_idle_clients() {
    // With what rustls keeps behind it (measured by the lab): well under 10 kB a client.
    assert!(size_of::<Stream>() <= 2048, "{}", size_of::<Stream>());
}

/// A server that shows a certificate whatever its key is.
#[derive(Debug)]
struct Shows(Arc<rustls::sign::CertifiedKey>);

impl rustls::server::ResolvesServerCert for Shows {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// What a client that verifies nothing says to a server with this certificate and this key.
fn shown(protocols: &str, certificate: Vec<u8>, key: &KeyPair) -> Result<(), (&'static str, String)> {
    let bounds = Bounds { protocols: protocols.to_owned(), ..Bounds::default() };
    let (provider, versions) = bounds.provider().unwrap();
    let key = provider.key_provider.load_private_key(key.serialize_der().try_into().unwrap()).unwrap();
    let shows = Shows(Arc::new(rustls::sign::CertifiedKey::new(vec![certificate.into()], key)));
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(shows));
    let mut pair = Pair {
        server: Stream::server(Arc::new(config), Own::default()).unwrap(),
        client: connector(&ConnectorSettings::default()).connect("db").unwrap(),
        to_server: Vec::new(),
        to_client: Vec::new(),
        server_plain: Vec::new(),
        client_plain: Vec::new(),
    };
    pair.run(1 << 20)
}

/// The certificate without the fields that version 1 does not have, as `openssl x509 -req` makes it.
fn as_version_1(der: &[u8]) -> Vec<u8> {
    fn value(tag: u8, contents: &[u8]) -> Vec<u8> {
        let length = u16::try_from(contents.len()).unwrap().to_be_bytes();
        [&[tag, 0x82][..], &length, contents].concat()
    }
    let (_, certificate) = Any::from_der(der).unwrap();
    let (rest, tbs) = Any::from_der(certificate.data).unwrap();
    let fields = SequenceIterator::<Any<'_>, DerParser>::new(tbs.data).map(Result::unwrap);
    let kept = fields.filter(|field| field.header.class() != Class::ContextSpecific);
    let tbs: Vec<u8> = kept.flat_map(|field| field.to_der_vec().unwrap()).collect();
    value(0x30, &[value(0x30, &tbs), rest.to_vec()].concat())
}

#[test]
fn a_server_must_have_the_key_of_its_certificate_even_when_nothing_is_verified() {
    // Channel binding names the certificate: who could show another's would stand in the middle.
    let (own, same_kind) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let other_kind = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let params = CertificateParams::new(vec!["db".to_owned()]).unwrap();
    let version_3 = params.self_signed(&own).unwrap().der().to_vec();
    for certificate in [as_version_1(&version_3), version_3] {
        for protocols in ["tlsv1.2", "tlsv1.3"] {
            assert_eq!(shown(protocols, certificate.clone(), &own), Ok(()), "{protocols}");
            for key in [&same_kind, &other_kind] {
                let refused = shown(protocols, certificate.clone(), key);
                assert!(refused.is_err(), "{protocols} {:?}", key.algorithm());
            }
        }
    }
}
