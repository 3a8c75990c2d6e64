//! TLS between Weir and the participants: which of them use it, and with what.
//!
//! Owns: the certificate and the choices. Must not know: protocols.
//!
//! Keys and signatures are real and use their own randomness, so the bytes of two runs of a seed differ.
//! Their lengths do not, and nothing else depends on them: the key is of Ed25519, whose signatures all have
//! one length, and everything is created anew for each run, so that it resumes the same sessions.

use crate::dice::Dice;
use rcgen::{CertificateParams, KeyPair, SerialNumber};
use std::sync::{Arc, LazyLock};
use weir_config::ServerTls;
use weir_proxy::settings::ClientTls;
use weir_session::Protocol;
use weir_session::login::TlsOffer;
use weir_tls::{
    Acceptor, AcceptorSettings, Bounds, ClientCertificate, Connector, ConnectorSettings, Identity, SslMode,
    Verify,
};

/// PKCS #8's beginning for a key of Ed25519 (RFC 8410); 32 bytes follow.
const KEY_HEAD: [u8; 16] = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32];

/// Weir's and the databases' certificate.
static IDENTITY: LazyLock<Identity> = LazyLock::new(|| {
    let key =
        KeyPair::try_from([&KEY_HEAD[..], b"a key that everybody may know..."].concat()).expect("a key");
    let mut params = CertificateParams::new(["database".to_owned()]).expect("a name");
    params.serial_number = Some(SerialNumber::from(1));
    let certificate = params.self_signed(&key).expect("a certificate");
    Identity { chain: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes() }
});

/// Protocols' names, as PostgreSQL 17 has one.
fn alpn(protocol: Protocol) -> Vec<Vec<u8>> {
    match protocol {
        Protocol::Postgres => vec![b"postgresql".to_vec()],
        Protocol::Mysql => Vec::new(),
    }
}

/// TLS of one run.
#[derive(Debug, Clone, Default)]
pub struct Secure {
    /// What Weir offers to clients.
    pub offer: TlsOffer,
    /// What Weir wants of databases; `None`: no TLS.
    pub wish: Option<SslMode>,
    /// PostgreSQL's begins with the first byte, where it must be.
    pub direct: bool,
    /// The databases can do it.
    pub offered: bool,
    acceptors: [Option<Acceptor>; 2],
    connectors: [Option<Connector>; 2],
}

impl Secure {
    /// A third of all runs have it with clients, a third with databases.
    pub fn new(dice: &mut Dice) -> Secure {
        let offers = [
            TlsOffer::Off,
            TlsOffer::Off,
            TlsOffer::Off,
            TlsOffer::Off,
            TlsOffer::Offered,
            TlsOffer::Required,
        ];
        let wishes = [SslMode::Require, SslMode::Require, SslMode::Prefer, SslMode::Allow];
        let offer = *dice.pick(&offers);
        let wish = dice.one_in(3).then(|| *dice.pick(&wishes));
        let offered = wish == Some(SslMode::Require) || dice.one_in(2);
        let direct = wish == Some(SslMode::Require) && dice.one_in(3);
        Secure::made(offer, wish, direct, offered, dice.one_in(2))
    }

    /// All that have TLS have this one.
    pub fn of(offer: TlsOffer, wish: Option<SslMode>, direct: bool) -> Secure {
        Secure::made(offer, wish, direct, wish.is_some(), true)
    }

    fn made(offer: TlsOffer, wish: Option<SslMode>, direct: bool, offered: bool, tickets: bool) -> Secure {
        let mut secure = Secure { offer, wish, direct, offered, ..Secure::default() };
        if secure.is_used() {
            secure.acceptors = Protocol::ALL.map(|protocol| {
                let settings = AcceptorSettings {
                    identity: IDENTITY.clone(),
                    bounds: Bounds::default(),
                    client: ClientCertificate::None,
                    alpn: alpn(protocol),
                    tickets,
                };
                Some(Acceptor::new(&settings).expect("settings that work"))
            });
            secure.connectors = Protocol::ALL
                .map(|protocol| Some(Connector::new(&settings(protocol)).expect("settings that work")));
        }
        secure
    }

    /// Somebody has TLS.
    pub fn is_used(&self) -> bool {
        self.offer != TlsOffer::Off || self.wish.is_some()
    }

    /// Makes the database's end.
    pub fn acceptor(&self, protocol: Protocol) -> &Acceptor {
        self.acceptors[protocol.index()].as_ref().expect("TLS is used")
    }

    /// Makes the client's end.
    pub fn connector(&self, protocol: Protocol) -> &Connector {
        self.connectors[protocol.index()].as_ref().expect("TLS is used")
    }

    /// Weir's own, for clients.
    pub fn with_clients(&self) -> ClientTls {
        match self.offer {
            TlsOffer::Off => ClientTls::default(),
            offer => ClientTls { offer, acceptors: self.acceptors.clone() },
        }
    }

    /// Weir's own, for databases.
    pub fn with_servers(&self) -> [Option<Arc<ServerTls>>; 2] {
        Protocol::ALL.map(|protocol| {
            let mode = self.wish?;
            Some(Arc::new(ServerTls {
                mode,
                direct: self.direct && protocol == Protocol::Postgres,
                host: "database".to_owned(),
                settings: settings(protocol),
                connector: Connector::new(&settings(protocol)).ok()?,
            }))
        })
    }
}

fn settings(protocol: Protocol) -> ConnectorSettings {
    ConnectorSettings {
        verify: Verify::None,
        alpn: alpn(protocol),
        sessions: 4,
        ..ConnectorSettings::default()
    }
}
