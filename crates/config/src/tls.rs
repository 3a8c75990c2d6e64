//! TLS: from settings and URL parameters to the configuration of both sides.
//!
//! Certificates and keys are read here, so that a missing or invalid file is found before anything starts or
//! changes. A self-signed certificate is created at start.

use crate::draft::Draft;
use crate::problem::{Place, relative_to};
use crate::registry::Key;
use crate::url::{DatabaseUrl, UrlTls};
use crate::{ListenAt, Listener, Protocol, Server};
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_session::login::{Secured, TlsWish, Trust};
use weir_tls::{
    Acceptor, AcceptorSettings, Bounds, ClientCertificate, Connector, ConnectorSettings, Facts, Identity,
    SslMode, Verify, read_pem,
};

const HALF_IDENTITY: &str = "the URL has one of sslcert and sslkey and not the other";

/// Sessions with servers that are remembered for resumption. There are as many servers as hosts.
const SESSIONS: usize = 256;

/// TLS with clients.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientTls {
    /// What is asked of clients.
    pub mode: SslMode,
    /// Our certificate; `None`: one that Weir makes.
    pub identity: Option<Identity>,
    /// Where the one that Weir makes is kept, as the operator says.
    pub self_made_file: Option<PathBuf>,
    /// Where it may be kept if nobody says: the first of these that can be read or written.
    pub state_files: Vec<PathBuf>,
    /// Names and addresses in the one that Weir makes.
    pub names: Vec<String>,
    /// Clients' certificates.
    pub client: ClientCertificate,
    /// Versions and ciphers.
    pub bounds: Bounds,
    /// Sessions can be resumed.
    pub tickets: bool,
}

impl ClientTls {
    /// What the side of one protocol is made from, with this certificate.
    pub fn settings(&self, protocol: Protocol, identity: Identity) -> AcceptorSettings {
        AcceptorSettings {
            identity,
            bounds: self.bounds.clone(),
            client: self.client.clone(),
            alpn: alpn(protocol),
            tickets: self.tickets,
        }
    }
}

/// TLS with one database's server.
#[derive(Debug, Clone)]
pub struct ServerTls {
    /// What is asked of the server. Never `Disable`.
    pub mode: SslMode,
    /// TLS begins with the first byte (PostgreSQL 17).
    pub direct: bool,
    /// The host as it was named: for SNI, and to compare with the certificate.
    pub host: String,
    /// What `connector` was made from.
    pub settings: ConnectorSettings,
    /// Makes our end of connections.
    pub connector: Connector,
}

impl ServerTls {
    /// For a program that is no proxy: what the URL says, and `mode` when it does not say how. Sessions are
    /// resumed when `sessions` of them may be remembered. `None`: everything goes in clear. Files are named
    /// from the working directory.
    ///
    /// # Errors
    /// Files or parameters that make no sense, as a sentence without its full stop.
    pub fn of_url(
        url: &DatabaseUrl,
        mode: SslMode,
        sessions: usize,
    ) -> Result<Option<Arc<ServerTls>>, String> {
        let mode = url.tls.mode.unwrap_or(mode);
        let Some(host) = host_of(url.protocol, &url.server, mode) else { return Ok(None) };
        let direct = direct_of(url.protocol, &url.tls, mode)?;
        let identity = match (&url.tls.certificate, &url.tls.key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(
                Identity::read(Path::new(certificate), Path::new(key)).map_err(|error| error.to_string())?,
            ),
            _ => return Err(HALF_IDENTITY.to_owned()),
        };
        let verify = verify_of(mode);
        let ca = url.tls.ca.as_deref().filter(|file| *file != "system" && verify != Verify::None);
        let ca = ca.map(|file| read_ca(Path::new(file))).transpose()?;
        let bounds = Bounds::default();
        let settings = ConnectorSettings { verify, ca, identity, bounds, alpn: alpn(url.protocol), sessions };
        let connector = Connector::new(&settings).map_err(|error| format!("TLS: {error}"))?;
        Ok(Some(Arc::new(ServerTls { mode, direct, host, settings, connector })))
    }

    /// The same server, and sessions with it are resumed.
    ///
    /// # Errors
    /// As for [`ServerTls::of_url`].
    pub fn resuming(&self, sessions: usize) -> Result<ServerTls, String> {
        let settings = ConnectorSettings { sessions, ..self.settings.clone() };
        let connector = Connector::new(&settings).map_err(|error| format!("TLS: {error}"))?;
        Ok(ServerTls { settings, connector, ..self.clone() })
    }
}

/// What makes this MySQL server worth a password it can read, by its URL alone: for a program that is no
/// proxy.
///
/// # Errors
/// The key cannot be read.
pub fn trust_of_url(url: &DatabaseUrl, tls: Option<&ServerTls>) -> Result<Trust, String> {
    let file = url.tls.public_key.as_deref().map(PathBuf::from);
    trust(tls, file, url.tls.trust_unverified.unwrap_or(false))
}

fn trust(tls: Option<&ServerTls>, key: Option<PathBuf>, unproven: bool) -> Result<Trust, String> {
    let key = key.map(|file| read_pem(&file).map_err(|error| error.to_string())).transpose()?;
    Ok(Trust { verified: tls.is_some_and(|tls| tls.mode.verifies()), key: key.map(Arc::from), unproven })
}

/// What to ask of a server first, and then if it refuses that for its transport.
pub fn tls_wishes(mode: SslMode) -> &'static [TlsWish] {
    match mode {
        SslMode::Disable => &[TlsWish::Off],
        SslMode::Allow => &[TlsWish::Off, TlsWish::Required],
        SslMode::Prefer => &[TlsWish::IfOffered, TlsWish::Off],
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => &[TlsWish::Required],
    }
}

/// What a handshake came to, for the login.
pub fn secured(facts: Facts) -> Secured {
    Secured {
        end_point: facts.end_point,
        fingerprint: facts.fingerprint,
        peer_name: facts.peer_name,
        // Each side names one protocol only.
        alpn: facts.alpn.is_some(),
        version: facts.version,
        cipher: facts.cipher,
    }
}

impl PartialEq for ServerTls {
    fn eq(&self, other: &Self) -> bool {
        let all = |tls: &ServerTls| (tls.mode, tls.direct, tls.host.clone());
        all(self) == all(other) && self.settings == other.settings
    }
}

impl Eq for ServerTls {}

fn alpn(protocol: Protocol) -> Vec<Vec<u8>> {
    match protocol {
        Protocol::Postgres => vec![b"postgresql".to_vec()],
        Protocol::Mysql => Vec::new(),
    }
}

/// A path of a setting; empty: none.
fn path(draft: &Draft, key: Key) -> Option<PathBuf> {
    let text = draft.values.text(key);
    (!text.is_empty()).then(|| relative_to(draft.folder.as_deref(), text))
}

fn report(draft: &mut Draft, key: Key, text: impl std::fmt::Display) {
    let place = draft.places.get(&key).cloned();
    let name = draft.name_of(key);
    draft.findings.problem(place, format!("{name}: {text}"));
}

/// Versions and ciphers of one side, checked.
fn bounds(draft: &mut Draft, keys: [Key; 4]) -> Bounds {
    let [protocols, ciphers, ciphers13, curves] = keys;
    let text = |key| draft.values.text(key).to_owned();
    let bounds = Bounds {
        protocols: text(protocols),
        ciphers: text(ciphers),
        ciphers13: text(ciphers13),
        curves: text(curves),
    };
    for (key, checked) in [
        (protocols, weir_tls::check_protocols(&bounds.protocols)),
        (ciphers, weir_tls::check_ciphers(&bounds.ciphers, false)),
        (ciphers13, weir_tls::check_ciphers(&bounds.ciphers13, true)),
        (curves, weir_tls::check_curves(&bounds.curves)),
    ] {
        if let Err(text) = checked {
            report(draft, key, text);
        }
    }
    bounds
}

/// A certificate and its key, of two settings that go together.
fn identity(draft: &mut Draft, certificate: Key, key: Key) -> Option<Identity> {
    match (path(draft, certificate), path(draft, key)) {
        (None, None) => None,
        (Some(certificate_file), Some(key_file)) => match Identity::read(&certificate_file, &key_file) {
            Ok(identity) => Some(identity),
            Err(error) => {
                report(draft, certificate, error);
                None
            }
        },
        (Some(_), None) => {
            report(draft, certificate, format!("needs {}", draft.name_of(key)));
            None
        }
        (None, Some(_)) => {
            report(draft, key, format!("needs {}", draft.name_of(certificate)));
            None
        }
    }
}

fn mode(draft: &Draft, key: Key) -> SslMode {
    SslMode::from_name(draft.values.text(key)).unwrap_or_default()
}

/// TLS with clients, by the settings of `tls.client`.
pub(crate) fn client_tls(draft: &mut Draft, listeners: &[Listener]) -> ClientTls {
    let mode = mode(draft, Key::ClientTlsSslmode);
    let by_certificate = draft.values.text(Key::PostgresAuthType) == "cert";
    if by_certificate && (mode == SslMode::Disable || draft.values.text(Key::ClientTlsCaFile).is_empty()) {
        let (mode, ca) = (draft.name_of(Key::ClientTlsSslmode), draft.name_of(Key::ClientTlsCaFile));
        let text = format!("cert needs {mode} and {ca}: whose certificates are good?");
        report(draft, Key::PostgresAuthType, text);
    }
    if mode == SslMode::Disable {
        return ClientTls::default();
    }
    let bounds = bounds(
        draft,
        [Key::ClientTlsProtocols, Key::ClientTlsCiphers, Key::ClientTls13Ciphers, Key::ClientTlsEcdhcurve],
    );
    let identity = identity(draft, Key::ClientTlsCertFile, Key::ClientTlsKeyFile);
    let client = match path(draft, Key::ClientTlsCaFile).map(|file| read_pem(&file)) {
        Some(Ok(ca)) if mode.verifies() => ClientCertificate::Required(ca),
        Some(Ok(ca)) => ClientCertificate::Optional(ca),
        Some(Err(error)) => {
            report(draft, Key::ClientTlsCaFile, error);
            ClientCertificate::None
        }
        None if mode.verifies() => {
            let text = format!(
                "{} needs {}: whose certificates are good?",
                mode.name(),
                draft.name_of(Key::ClientTlsCaFile)
            );
            report(draft, Key::ClientTlsSslmode, text);
            ClientCertificate::None
        }
        None => ClientCertificate::None,
    };
    let tls = ClientTls {
        mode,
        identity,
        self_made_file: path(draft, Key::ClientTlsSelfMadeFile),
        state_files: state_files(draft.folder.as_deref(), |name| std::env::var_os(name)),
        names: own_names(listeners),
        client,
        bounds,
        tickets: draft.values.bool(Key::ClientTlsTickets),
    };
    if let Some(identity) = &tls.identity
        && draft.findings.problems.is_empty()
        && let Err(error) = Acceptor::new(&tls.settings(Protocol::Postgres, identity.clone()))
    {
        report(draft, Key::ClientTlsCertFile, error);
    }
    tls
}

/// Where a certificate that Weir makes may be kept: what systemd gives a service for such things, what the
/// user's session has for them, beside the configuration.
fn state_files(folder: Option<&Path>, environment: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    // The specifications say that relative ones are to be ignored.
    let given = |name| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let service = environment("STATE_DIRECTORY");
    let service = service.as_ref().and_then(|all| std::env::split_paths(all).next());
    let session = given("XDG_STATE_HOME").or_else(|| Some(given("HOME")?.join(".local/state")));
    let places = [service, session.map(|path| path.join("weir")), folder.map(Path::to_path_buf)];
    places.into_iter().flatten().filter(|path| path.is_absolute()).map(|path| path.join("tls.pem")).collect()
}

/// What clients may call Weir by, as far as it can know.
fn own_names(listeners: &[Listener]) -> Vec<String> {
    let mut names = vec!["localhost".to_owned()];
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::fs::read_to_string("/etc/hostname"));
    names.extend(
        host.ok().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty() && name.is_ascii()),
    );
    for listener in listeners {
        match listener.at {
            ListenAt::Tcp(address) if address.ip().is_unspecified() => {
                names.push(IpAddr::from([127, 0, 0, 1]).to_string());
            }
            ListenAt::Tcp(address) => names.push(address.ip().to_string()),
            ListenAt::Unix { .. } => {}
        }
    }
    let mut seen = Vec::new();
    names.retain(|name| {
        !seen.contains(name) && {
            seen.push(name.clone());
            true
        }
    });
    names
}

/// TLS with the server of one database: its URL's word goes before that of `tls.server`.
pub(crate) fn server_tls(
    draft: &mut Draft,
    protocol: Protocol,
    server: &Server,
    url: &UrlTls,
    place: Option<Place>,
) -> Option<Arc<ServerTls>> {
    let mode = towards(server, url.mode.unwrap_or_else(|| self::mode(draft, Key::ServerTlsSslmode)));
    let host = host_of(protocol, server, mode)?;
    let problem = |draft: &mut Draft, text: String| {
        draft.findings.problem(place.clone(), text);
        None
    };
    let direct = match direct_of(protocol, url, mode) {
        Ok(direct) => direct,
        Err(text) => return problem(draft, text),
    };
    let bounds = bounds(
        draft,
        [Key::ServerTlsProtocols, Key::ServerTlsCiphers, Key::ServerTls13Ciphers, Key::ServerTlsEcdhcurve],
    );
    let identity = match (&url.certificate, &url.key) {
        (None, None) => identity(draft, Key::ServerTlsCertFile, Key::ServerTlsKeyFile),
        (Some(certificate), Some(key)) => {
            let file = |text: &str| relative_to(draft.folder.as_deref(), text);
            match Identity::read(&file(certificate), &file(key)) {
                Ok(identity) => Some(identity),
                Err(error) => return problem(draft, error.to_string()),
            }
        }
        _ => return problem(draft, HALF_IDENTITY.to_owned()),
    };
    let ca = match url.ca.as_deref() {
        Some("system") => None,
        Some(file) => Some(relative_to(draft.folder.as_deref(), file)),
        None => path(draft, Key::ServerTlsCaFile),
    };
    let verify = verify_of(mode);
    let ca = match ca.as_deref().filter(|_| verify != Verify::None).map(read_ca) {
        Some(Ok(pem)) => Some(pem),
        Some(Err(text)) => return problem(draft, text),
        None => None,
    };
    let settings =
        ConnectorSettings { verify, ca, identity, bounds, alpn: alpn(protocol), sessions: SESSIONS };
    let connector = match draft.connectors.iter().find(|(known, _)| *known == settings) {
        Some((_, connector)) => connector.clone(),
        None => match Connector::new(&settings) {
            Ok(connector) => {
                draft.connectors.push((settings.clone(), connector.clone()));
                connector
            }
            Err(_) if !draft.findings.problems.is_empty() => return None,
            Err(error) => return problem(draft, format!("TLS with the server: {error}")),
        },
    };
    Some(Arc::new(ServerTls { mode, direct, host, settings, connector }))
}

/// What makes the server of one database worth a password it can read: its URL's word goes before that of
/// `tls.server`.
pub(crate) fn server_trust(
    draft: &mut Draft,
    url: &UrlTls,
    tls: Option<&ServerTls>,
    place: Option<Place>,
) -> Trust {
    let file = match url.public_key.as_deref() {
        Some(file) => Some(relative_to(draft.folder.as_deref(), file)),
        None => path(draft, Key::ServerPublicKeyFile),
    };
    let unproven = url.trust_unverified.unwrap_or_else(|| draft.values.bool(Key::ServerTrustUnverified));
    trust(tls, file, unproven).unwrap_or_else(|text| {
        draft.findings.problem(place, text);
        Trust::default()
    })
}

/// Nobody can listen in on the way to this machine's own addresses, and TLS would cost both sides: who only
/// prefers it goes in clear there. A server that lets the user in with TLS only is still reached.
fn towards(server: &Server, mode: SslMode) -> SslMode {
    let is_here = match server {
        Server::Tcp { host, .. } => is_loopback(host),
        Server::Unix(_) => true,
    };
    if is_here && mode == SslMode::Prefer { SslMode::Allow } else { mode }
}

fn is_loopback(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.map_or(name == "localhost" || name.ends_with(".localhost"), |ip| ip.to_canonical().is_loopback())
}

/// The host for SNI and for its certificate; `None`: there is no TLS with this server.
fn host_of(protocol: Protocol, server: &Server, mode: SslMode) -> Option<String> {
    match (server, protocol) {
        _ if mode == SslMode::Disable => None,
        (Server::Tcp { host, .. }, _) => Some(host.clone()),
        // libpq has no TLS on Unix sockets; MySQL has it there if it must be.
        (Server::Unix(_), Protocol::Mysql) if mode.is_required() => Some("localhost".to_owned()),
        (Server::Unix(_), Protocol::Mysql | Protocol::Postgres) => None,
    }
}

fn direct_of(protocol: Protocol, url: &UrlTls, mode: SslMode) -> Result<bool, String> {
    let direct = url.direct.unwrap_or(false);
    if direct && (protocol == Protocol::Mysql || !mode.is_required()) {
        return Err("sslnegotiation=direct is PostgreSQL's and needs sslmode=require or higher".to_owned());
    }
    Ok(direct)
}

fn verify_of(mode: SslMode) -> Verify {
    match mode {
        SslMode::VerifyFull => Verify::Full,
        SslMode::VerifyCa => Verify::Ca,
        SslMode::Disable | SslMode::Allow | SslMode::Prefer | SslMode::Require => Verify::None,
    }
}

fn read_ca(file: &Path) -> Result<Vec<u8>, String> {
    read_pem(file).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_prefers_tls_goes_in_clear_on_this_machine() {
        let to = |host: &str, mode| towards(&Server::Tcp { host: host.into(), port: 5432 }, mode);
        for host in [
            "127.0.0.1",
            "127.9.8.7",
            "::1",
            "[::1]",
            "::ffff:127.0.0.1",
            "localhost",
            "LOCALHOST.",
            "db.localhost",
        ] {
            assert_eq!(to(host, SslMode::Prefer), SslMode::Allow, "{host}");
            for mode in
                [SslMode::Disable, SslMode::Allow, SslMode::Require, SslMode::VerifyCa, SslMode::VerifyFull]
            {
                assert_eq!(to(host, mode), mode, "{host}");
            }
        }
        for host in [
            "10.0.0.1",
            "0.0.0.0",
            "::",
            "2001:db8::1",
            "localhost.example.com",
            "notlocalhost",
            "db",
            "128.0.0.1",
        ] {
            assert_eq!(to(host, SslMode::Prefer), SslMode::Prefer, "{host}");
        }
    }

    #[test]
    fn a_certificate_is_kept_where_programs_keep_such_things() {
        let files = |pairs: &[(&str, &str)], folder: Option<&str>| {
            let pairs: Vec<(String, OsString)> =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
            let get =
                |name: &str| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            let files = state_files(folder.map(Path::new), get);
            files.into_iter().map(|file| file.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let service = [("STATE_DIRECTORY", "/var/lib/weir:/var/lib/other"), ("HOME", "/nonexistent")];
        assert_eq!(
            files(&service, Some("/etc/weir")),
            ["/var/lib/weir/tls.pem", "/nonexistent/.local/state/weir/tls.pem", "/etc/weir/tls.pem"]
        );
        let session = [("XDG_STATE_HOME", "/home/me/state"), ("HOME", "/home/me")];
        assert_eq!(files(&session, None), ["/home/me/state/weir/tls.pem"]);
        assert_eq!(files(&[("XDG_STATE_HOME", "state")], None), [""; 0]);
    }
}
