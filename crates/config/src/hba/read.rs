//! The format of an HBA file: lines, fields, lists, included files.
//!
//! PostgreSQL 18's format (`hba.c`), read as PgBouncer does where the two agree. A line that either of them
//! would reject, or that needs something Weir does not have, is an error.

use super::{Certificate, From, Hba, Name, Rule, Via};
use crate::Network;
use crate::ident::{IdentMap, read_map};
use crate::problem::{Findings, Place, read, relative_to};
use crate::vouch::{Authority, General, pam_service};
use ipnet::IpNet;
use regex_lite::Regex;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_session::AuthMethod;

/// Files that name files, at most (PostgreSQL's `CONF_FILE_MAX_DEPTH`).
const DEPTH: usize = 10;

/// A word of a line; in quotes it is no keyword.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    text: String,
    quoted: bool,
}

/// A list between spaces.
type Field = Vec<Token>;

/// Options of a line about who is asked.
#[derive(Default)]
struct Asked {
    ldap: weir_ldap::Builder,
    pam_service: Option<String>,
    use_hostname: bool,
}

impl Asked {
    fn pam(&mut self, name: &str, value: &str) -> Result<(), String> {
        match (name, value) {
            ("pamservice", name) => self.pam_service = Some(name.to_owned()),
            ("pam_use_hostname", "1") => self.use_hostname = true,
            ("pam_use_hostname", "0") => self.use_hostname = false,
            ("pam_use_hostname", other) => {
                return Err(format!("pam_use_hostname must be 1 or 0, not `{other}`"));
            }
            _ => {
                return Err(format!(
                    "unknown option `{name}`: method pam has pamservice and pam_use_hostname"
                ));
            }
        }
        Ok(())
    }
}

struct Reader<'a> {
    findings: &'a mut Findings,
    /// Name and text of auth_ident_file.
    idents: Option<(Arc<Path>, String)>,
    general: &'a General,
    rules: Vec<Rule>,
}

/// The lines of a file and of all that it includes. What is wrong is a problem with its line.
pub(crate) fn read_hba(
    file: &Arc<Path>,
    text: &str,
    idents: Option<(Arc<Path>, String)>,
    general: &General,
    findings: &mut Findings,
) -> Hba {
    let mut reader = Reader { findings, idents, general, rules: Vec::new() };
    reader.file(file, text, 0);
    Hba { rules: reader.rules }
}

impl Reader<'_> {
    fn file(&mut self, file: &Arc<Path>, text: &str, depth: usize) {
        for (number, line) in whole_lines(text) {
            let place = Place::File { file: file.clone(), line: number, column: 1 };
            let fields = match fields(&line) {
                Ok(fields) if fields.is_empty() => continue,
                Ok(fields) => fields,
                Err(why) => {
                    self.findings.problem(place, why);
                    continue;
                }
            };
            let done = match &fields[..] {
                [head, rest @ ..] if word(head).is_some_and(|word| word.starts_with("include")) => {
                    self.include(file, &place, &word(head).unwrap_or_default(), rest, depth)
                }
                _ => self.rule(file, &place, &fields, depth).map(|rule| self.rules.push(rule)),
            };
            if let Err(why) = done {
                self.findings.problem(place, why);
            }
        }
    }

    fn include(
        &mut self,
        from: &Arc<Path>,
        place: &Place,
        how: &str,
        rest: &[Field],
        depth: usize,
    ) -> Result<(), String> {
        let [named] = rest else { return Err(format!("{how} needs the name of one file")) };
        let [named] = &named[..] else { return Err(format!("{how} needs the name of one file")) };
        if depth >= DEPTH {
            return Err(format!("files may include files {DEPTH} deep, not deeper"));
        }
        let path = relative_to(from.parent(), &named.text);
        match how {
            "include" => self.included(path, place, depth),
            "include_if_exists" if path.exists() => self.included(path, place, depth),
            "include_if_exists" => {}
            "include_dir" => {
                for path in files_of(&path)? {
                    self.included(path, place, depth);
                }
            }
            other => return Err(format!("unknown type `{other}`{TYPES}")),
        }
        Ok(())
    }

    fn included(&mut self, path: PathBuf, place: &Place, depth: usize) {
        if let Some(text) = read(&path, Some(place.clone()), self.findings) {
            self.file(&path.into(), &text, depth + 1);
        }
    }

    fn rule(
        &mut self,
        file: &Arc<Path>,
        place: &Place,
        fields: &[Field],
        depth: usize,
    ) -> Result<Rule, String> {
        let mut fields = fields.iter();
        let mut next = |what: &str| fields.next().ok_or_else(|| format!("the line ends before its {what}"));
        let via = via(next("type")?)?;
        let databases = self.names(file, next("databases")?, true, depth)?;
        let users = self.names(file, next("users")?, false, depth)?;
        let from = if via == Via::Local {
            From::Anywhere
        } else {
            let address = one(next("address")?, "address")?;
            match addresses(address)? {
                Some(from) => from,
                None => masked(address, one(next("mask")?, "mask")?)?,
            }
        };
        let method = one(next("method")?, "method")?;
        let mut rule = Rule {
            place: place.clone(),
            via,
            databases,
            users,
            from,
            method: method_of(&method.text, via)?,
            map: None,
            certificate: Certificate::Nothing,
            authority: None,
        };
        let mut asked = Asked::default();
        for option in fields {
            let option = option.iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(",");
            let is_ldap = rule.method == Some(AuthMethod::Ldap);
            let (name, value) = option.split_once('=').ok_or_else(|| match is_ldap {
                // It may be the rest of a password.
                true => weir_ldap::NO_PAIR.to_owned(),
                false => format!("`{option}` is no option: options are NAME=VALUE"),
            })?;
            let of_all = matches!(name, "map" | "clientcert" | "clientname");
            match rule.method {
                Some(AuthMethod::Ldap) if !of_all => asked.ldap.set(name, value)?,
                Some(AuthMethod::Pam) if !of_all => asked.pam(name, value)?,
                _ => self.option(&mut rule, &method.text, name, value)?,
            }
        }
        rule.authority = self.authority(&rule, asked)?;
        Ok(rule)
    }

    /// Who is asked about the passwords of a line.
    fn authority(&mut self, rule: &Rule, asked: Asked) -> Result<Option<Authority>, String> {
        Ok(match rule.method {
            Some(AuthMethod::Ldap) if asked.ldap.is_given() => {
                Some(Authority::Ldap(Arc::new(asked.ldap.finish()?)))
            }
            Some(AuthMethod::Ldap) => {
                let options = self.general.ldap.clone();
                let options =
                    options.ok_or("method `ldap` needs options such as ldapserver, or auth_ldap_options")?;
                Some(Authority::Ldap(options))
            }
            Some(AuthMethod::Pam) => {
                let name = asked.pam_service.as_ref().unwrap_or(&self.general.pam_service);
                let service = pam_service(name, asked.use_hostname, Some(&rule.place), self.findings);
                Some(Authority::Pam(service.map_err(|why| format!("pamservice {why}"))?))
            }
            _ => None,
        })
    }

    fn option(&mut self, rule: &mut Rule, method: &str, name: &str, value: &str) -> Result<(), String> {
        match (name, value) {
            ("map", map) => {
                let fits = matches!(rule.method, Some(AuthMethod::Peer | AuthMethod::Cert))
                    || rule.certificate != Certificate::Nothing;
                if !fits {
                    return Err(format!("map= is for peer and cert, not for {method}"));
                }
                rule.map = Some(Arc::new(self.map(map)?));
            }
            ("clientcert", _) if rule.via != Via::HostSsl => {
                return Err("clientcert= is for lines of type hostssl".to_owned());
            }
            ("clientcert", "verify-ca") => rule.certificate = Certificate::Verified,
            ("clientcert", "verify-full") => rule.certificate = Certificate::OfUser,
            ("clientcert", other) => {
                return Err(format!("clientcert must be verify-ca or verify-full, not `{other}`"));
            }
            ("clientname", "CN") => {}
            ("clientname", _) => return Err("clientname must be CN: Weir reads the common name".to_owned()),
            _ if name.starts_with("ldap") => {
                return Err(format!("{name}= is for method ldap, not for {method}"));
            }
            _ if name.starts_with("pam") => {
                return Err(format!("{name}= is for method pam, not for {method}"));
            }
            _ => {
                return Err(format!(
                    "unknown option `{name}`: Weir knows map, clientcert and clientname, and those of ldap and pam"
                ));
            }
        }
        Ok(())
    }

    fn map(&mut self, name: &str) -> Result<IdentMap, String> {
        let Some((file, text)) = self.idents.clone() else {
            return Err(format!("map={name} needs auth_ident_file"));
        };
        read_map(&file, &text, name, self.findings)
            .ok_or_else(|| format!("map={name}: {} has no such map", file.display()))
    }

    /// A list of databases or users.
    fn names(
        &mut self,
        file: &Arc<Path>,
        field: &Field,
        of_databases: bool,
        depth: usize,
    ) -> Result<Vec<Name>, String> {
        let mut names = Vec::new();
        for token in field {
            match (token.text.as_str(), of_databases) {
                // In quotes, too: an expression may have commas.
                (text, _) if text.starts_with('/') => names.push(Name::Like(regex(text)?)),
                _ if token.quoted => names.push(Name::Is(token.text.clone())),
                ("all", _) => names.push(Name::All),
                ("sameuser", true) => names.push(Name::SameUser),
                ("replication", true) => names.push(Name::Never),
                ("samerole" | "samegroup", true) => {
                    return Err(format!(
                        "{}: Weir does not know who is in which role; name the users",
                        token.text
                    ));
                }
                (text, _) if text.starts_with('+') => {
                    return Err(format!("{text}: Weir does not know who is in which role; name the users"));
                }
                (text, _) if text.starts_with('@') => {
                    names.extend(self.listed(file, text, of_databases, depth)?)
                }
                (text, _) => names.push(Name::Is(text.to_owned())),
            }
        }
        Ok(names)
    }

    /// The names in another file.
    fn listed(
        &mut self,
        from: &Arc<Path>,
        named: &str,
        of_databases: bool,
        depth: usize,
    ) -> Result<Vec<Name>, String> {
        if depth >= DEPTH {
            return Err(format!("files may name files {DEPTH} deep, not deeper"));
        }
        let path: Arc<Path> = relative_to(from.parent(), named.trim_start_matches('@')).into();
        let text =
            std::fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        let mut names = Vec::new();
        for (number, line) in whole_lines(&text) {
            let at = |why| format!("{}:{number}: {why}", path.display());
            for field in fields(&line).map_err(at)? {
                names.extend(self.names(&path, &field, of_databases, depth + 1).map_err(at)?);
            }
        }
        Ok(names)
    }
}

const TYPES: &str = "; types are local, host, hostssl, hostnossl, hostgssenc, hostnogssenc and include";

fn via(field: &Field) -> Result<Via, String> {
    Ok(match one(field, "type")?.text.as_str() {
        "local" => Via::Local,
        // Without GSSAPI encryption is how every client comes.
        "host" | "hostnogssenc" => Via::Host,
        "hostssl" => Via::HostSsl,
        "hostnossl" => Via::HostNoSsl,
        "hostgssenc" => Via::Never,
        other => return Err(format!("unknown type `{other}`{TYPES}")),
    })
}

/// `None`: reject.
fn method_of(word: &str, via: Via) -> Result<Option<AuthMethod>, String> {
    let cure = match (word, via) {
        ("trust", _) => return Ok(Some(AuthMethod::Trust)),
        ("reject", _) => return Ok(None),
        ("md5", _) => return Ok(Some(AuthMethod::Md5)),
        ("scram-sha-256", _) => return Ok(Some(AuthMethod::ScramSha256)),
        ("password", _) => return Ok(Some(AuthMethod::Plain)),
        ("ldap", _) => return Ok(Some(AuthMethod::Ldap)),
        ("pam", _) => return Ok(Some(AuthMethod::Pam)),
        ("cert", Via::Local) => "a Unix socket has no certificates; use peer",
        ("cert", _) => return Ok(Some(AuthMethod::Cert)),
        ("peer" | "ident", Via::Local) => return Ok(Some(AuthMethod::Peer)),
        ("peer", _) => "only the kernel of this machine vouches for accounts: write local, or another method",
        ("ident", _) => "Weir asks no ident servers; use scram-sha-256 or cert",
        ("radius" | "bsd", _) => "not supported yet; use scram-sha-256 with auth_query or auth_file, or pam",
        ("gss" | "sspi" | "oauth", _) => "not supported; use scram-sha-256 or cert",
        _ => "methods are trust, reject, password, md5, scram-sha-256, ldap, pam, peer and cert",
    };
    Err(format!("method `{word}`: {cure}"))
}

/// `None`: an address, and its mask is the next field.
fn addresses(token: &Token) -> Result<Option<From>, String> {
    let text = token.text.as_str();
    if !token.quoted {
        match text {
            "all" => return Ok(Some(From::Anywhere)),
            "samehost" => return Ok(Some(From::Networks(own_networks(true)?))),
            "samenet" => return Ok(Some(From::Networks(own_networks(false)?))),
            _ => {}
        }
    }
    if text.contains('/') {
        return match Network::parse(text) {
            Ok(Network::Ip(network)) => Ok(Some(From::Networks(vec![network]))),
            Ok(Network::Unix) => Err("address `unix`: write local".to_owned()),
            Err(why) => Err(format!("address `{text}` {why}")),
        };
    }
    if text.parse::<IpAddr>().is_ok() {
        return Ok(None);
    }
    Err(format!(
        "address `{text}`: host names are not looked up at logins; write ADDRESS/BITS, all, samehost or samenet"
    ))
}

fn masked(address: &Token, mask: &Token) -> Result<From, String> {
    let wrong = || format!("mask `{}` is no mask of {}", mask.text, address.text);
    let (network, mask): (IpAddr, IpAddr) = match (address.text.parse(), mask.text.parse()) {
        (Ok(network), Ok(mask)) => (network, mask),
        _ => return Err(wrong()),
    };
    let network = IpNet::with_netmask(network, mask).map_err(|_| wrong())?;
    match Network::parse(&network.to_string()) {
        Ok(Network::Ip(network)) => Ok(From::Networks(vec![network])),
        Ok(Network::Unix) => Err(wrong()),
        Err(why) => Err(format!("address `{network}` {why}")),
    }
}

/// The addresses of this machine, or the networks that it is in.
fn own_networks(only_hosts: bool) -> Result<Vec<IpNet>, String> {
    let own = nix::ifaddrs::getifaddrs().map_err(|e| format!("cannot list this machine's addresses: {e}"))?;
    let ip = |address: Option<nix::sys::socket::SockaddrStorage>| -> Option<IpAddr> {
        let address = address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    };
    let mut networks: Vec<IpNet> = own
        .filter_map(|interface| {
            let address = ip(interface.address)?;
            match ip(interface.netmask).filter(|_| !only_hosts) {
                Some(mask) => IpNet::with_netmask(address, mask).ok().map(|network| network.trunc()),
                None => Some(IpNet::from(address)),
            }
        })
        .collect();
    networks.sort();
    networks.dedup();
    Ok(networks)
}

fn regex(text: &str) -> Result<Regex, String> {
    let pattern = text.strip_prefix('/').unwrap_or(text);
    Regex::new(pattern).map_err(|error| format!("regular expression `{pattern}`: {error}"))
}

fn one<'f>(field: &'f Field, what: &str) -> Result<&'f Token, String> {
    match &field[..] {
        [token] => Ok(token),
        _ => Err(format!("one {what} must stand where a list does")),
    }
}

/// The only word of a field, without quotes.
fn word(field: &Field) -> Option<String> {
    match &field[..] {
        [token] if !token.quoted => Some(token.text.clone()),
        _ => None,
    }
}

/// Files of a folder that end in `.conf` and do not begin with a dot, by name, as PostgreSQL takes them.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let listed = std::fs::read_dir(folder).map_err(|e| format!("cannot read {}: {e}", folder.display()))?;
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".conf") && !name.starts_with('.') && !path.is_dir()
    };
    let mut files: Vec<PathBuf> =
        listed.filter_map(|entry| entry.ok().map(|entry| entry.path())).filter(is_wanted).collect();
    files.sort();
    Ok(files)
}

/// Lines with their numbers; one that ends in a backslash goes on.
fn whole_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (index, line) in text.lines().enumerate() {
        let (line, more) = line.strip_suffix('\\').map_or((line, false), |line| (line, true));
        match lines.last_mut().filter(|_| goes_on) {
            Some((_, last)) => last.push_str(line),
            None => lines.push((index + 1, line.to_owned())),
        }
        goes_on = more;
    }
    lines
}

/// Fields between spaces, each a list between commas; `#` begins a comment.
fn fields(line: &str) -> Result<Vec<Field>, String> {
    let mut fields: Vec<Field> = Vec::new();
    let mut chars = line.chars().peekable();
    // A list goes on behind a comma, whatever spaces there are around it.
    let mut in_list = false;
    while let Some(&c) = chars.peek() {
        match c {
            '#' => break,
            ',' => {
                in_list = !fields.is_empty();
                chars.next();
            }
            c if c.is_whitespace() => {
                chars.next();
            }
            _ => {
                let token = token(&mut chars)?;
                match fields.last_mut().filter(|_| in_list) {
                    Some(field) => field.push(token),
                    None => fields.push(vec![token]),
                }
                in_list = false;
            }
        }
    }
    Ok(fields)
}

/// A word. Quotes may begin inside it, and there are two for one.
fn token(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Token, String> {
    let mut token = Token { text: String::new(), quoted: chars.peek() == Some(&'"') };
    let mut open = false;
    while let Some(&c) = chars.peek() {
        match c {
            '"' => {
                chars.next();
                if open && chars.peek() == Some(&'"') {
                    token.text.push('"');
                    chars.next();
                } else {
                    open = !open;
                }
            }
            c if !open && (c == ',' || c == '#' || c.is_whitespace()) => break,
            c => {
                token.text.push(c);
                chars.next();
            }
        }
    }
    if open { Err("a quoted word has no end".to_owned()) } else { Ok(token) }
}
