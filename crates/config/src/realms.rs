//! Databases and users: from entries to realms.

use crate::draft::Draft;
use crate::entry::Entry;
use crate::hba::{Hba, read_hba};
use crate::ident::{IdentMap, accounts, read_map};
use crate::pins;
use crate::problem::{Findings, Place, WarningKind, read, relative_to};
use crate::registry::Key;
use crate::secrets::password;
use crate::snapshot::same_secret;
use crate::tls::{server_tls, server_trust};
use crate::url::{DatabaseUrl, UrlTls, postgres_socket, server_at};
use crate::userlist::read_userlist;
use crate::values::Flavour;
use crate::vouch::{self, General};
use crate::{Asking, Auth, Database, ForcedUser, Network, PoolMode, Protocol, Realm, Server, User};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_auth::Secret;
use weir_auth::secret::SecretKind;
use weir_session::AuthMethod;

pub(crate) fn empty_realm(auth: Auth) -> Realm {
    Realm {
        databases: BTreeMap::new(),
        fallback: None,
        users: BTreeMap::new(),
        users_by_hash: 0,
        verifiers: Vec::new(),
        auth,
        authority: None,
        ldap_tls: None,
        hba: None,
        server_version: String::new(),
        ident: None,
        accounts: Vec::new(),
        balancers: Vec::new(),
    }
}

/// The map that holds for certificates and accounts.
fn ident(draft: &mut Draft) -> Option<IdentMap> {
    let name = draft.values.text(Key::PostgresAuthIdentMap).to_owned();
    if name.is_empty() {
        return None;
    }
    let place = draft.places.get(&Key::PostgresAuthIdentMap).cloned();
    let file = draft.values.text(Key::PostgresAuthIdentFile).to_owned();
    if file.is_empty() {
        draft.findings.problem(place, "auth_ident_map needs auth_ident_file");
        return None;
    }
    let path = relative_to(draft.folder.as_deref(), &file);
    let text = read(&path, place.clone(), &mut draft.findings)?;
    let map = read_map(&path.clone().into(), &text, &name, &mut draft.findings);
    if map.is_none() {
        draft.findings.problem(place, format!("auth_ident_map: {} has no map `{name}`", path.display()));
    }
    map
}

/// Who may come in from where.
fn hba(draft: &mut Draft, general: &General) -> Option<Arc<Hba>> {
    let place = draft.places.get(&Key::PostgresAuthHbaFile).cloned();
    let file = draft.values.text(Key::PostgresAuthHbaFile).to_owned();
    if file.is_empty() {
        let place = draft.places.get(&Key::PostgresAuthType).cloned();
        draft.findings.problem(place, "auth_type = hba needs auth_hba_file");
        return None;
    }
    let path = relative_to(draft.folder.as_deref(), &file);
    let text = read(&path, place, &mut draft.findings)?;
    let idents = draft.values.text(Key::PostgresAuthIdentFile).to_owned();
    let idents = match idents.as_str() {
        "" => None,
        named => {
            let place = draft.places.get(&Key::PostgresAuthIdentFile).cloned();
            let path = relative_to(draft.folder.as_deref(), named);
            let text = read(&path, place, &mut draft.findings)?;
            Some((path.into(), text))
        }
    };
    Some(Arc::new(read_hba(&path.into(), &text, idents, general, &mut draft.findings)))
}

/// Whose connections begin with a PROXY header.
fn balancers(draft: &mut Draft, protocol: Protocol) -> Vec<Network> {
    let key = match protocol {
        Protocol::Postgres => Key::PostgresProxyProtocolNetworks,
        Protocol::Mysql => Key::MysqlProxyProtocolNetworks,
    };
    let mut found = Vec::new();
    for item in draft.values.list(key).to_vec() {
        match Network::parse(&item) {
            Ok(network) => found.push(network),
            Err(text) => {
                let place = draft.places.get(&key).cloned();
                draft.findings.problem(place, format!("proxy_protocol_networks: `{item}` {text}"));
            }
        }
    }
    found
}

/// The realms of both protocols.
pub(crate) fn realms(draft: &mut Draft) -> BTreeMap<Protocol, Realm> {
    let auth = |protocol| match protocol {
        Protocol::Postgres => postgres_auth(draft.values.text(Key::PostgresAuthType)),
        Protocol::Mysql => mysql_auth(draft.values.text(Key::MysqlAuthType)),
    };
    let mut realms: BTreeMap<_, _> = Protocol::ALL.into_iter().map(|p| (p, empty_realm(auth(p)))).collect();
    if let Some(mysql) = realms.get_mut(&Protocol::Mysql) {
        mysql.server_version = draft.values.text(Key::MysqlServerVersion).to_owned();
    }
    if let Some(postgres) = realms.get_mut(&Protocol::Postgres) {
        let general = vouch::general(draft);
        postgres.ident = ident(draft);
        postgres.authority = vouch::authority(draft, postgres.auth, &general);
        postgres.hba = if postgres.auth == Auth::Hba { hba(draft, &general) } else { None };
        postgres.ldap_tls = vouch::ldap_tls(draft, postgres);
    }
    let vouches = realms.get(&Protocol::Postgres).is_some_and(Realm::vouches);
    let users = users(draft, vouches);
    for (protocol, realm) in &mut realms {
        realm.balancers = balancers(draft, *protocol);
        realm.users = match protocol {
            Protocol::Postgres => users.clone(),
            Protocol::Mysql => users.iter().map(|(name, user)| (name.clone(), mysql_user(user))).collect(),
        };
    }
    for (name, entry) in std::mem::take(&mut draft.databases) {
        let Some((protocol, mut database)) = database(draft, &name, &entry) else { continue };
        let Some(realm) = realms.get_mut(&protocol) else { continue };
        if entry.from_url.is_some() {
            // Who comes in by a URL of the command line is who Weir logs in as: several URLs may name the
            // same database with different users.
            if let Some(user) = database.forced_user.take() {
                admit_url_user(draft, realm, &user, &entry);
            }
        } else if let Some(forced) = &database.forced_user
            && users.is_empty()
            && draft.values.text(Key::PostgresAuthFile).is_empty()
            && !entry.from_ini
        {
            // A file without any user: the users of its URLs may log in with the passwords of the URLs.
            admit_url_user(draft, realm, forced, &entry);
        }
        insert_database(draft, realm, database, &entry);
    }
    for (protocol, realm) in &mut realms {
        let by_lines = realm.hba.as_ref().is_some_and(|hba| hba.lines_of(AuthMethod::Peer).next().is_some());
        if realm.auth == Auth::Method(AuthMethod::Peer) || by_lines {
            realm.accounts = accounts_of(draft, *protocol, realm);
        }
        realm.users_by_hash = realm.count_by_hash();
        realm.verifiers = realm.find_verifiers();
    }
    realms
}

/// The accounts that may come as somebody: those that the map names, or those that are called like a user.
fn accounts_of(draft: &mut Draft, protocol: Protocol, realm: &Realm) -> Vec<(u32, String)> {
    let users = realm.users.keys().map(String::as_str);
    let names: BTreeSet<&str> = match (&realm.hba, &realm.ident) {
        (Some(hba), _) => {
            let maps = hba.lines_of(AuthMethod::Peer).filter_map(|line| line.map.as_deref());
            users.chain(maps.flat_map(IdentMap::names)).collect()
        }
        (None, Some(map)) => map.names().collect(),
        (None, None) => users.collect(),
    };
    let key = match protocol {
        Protocol::Postgres => Key::PostgresAuthType,
        Protocol::Mysql => Key::MysqlAuthType,
    };
    let place = draft.places.get(&key).cloned();
    accounts(names.into_iter(), &place, &mut draft.findings)
}

fn insert_database(draft: &mut Draft, realm: &mut Realm, database: Database, entry: &Entry) {
    let name = database.name.clone();
    let slot = if name == "*" { realm.fallback.as_ref() } else { realm.databases.get(&name) };
    if let Some(before) = slot {
        if entry.from_url.is_none() || **before != database {
            draft.findings.problem(entry.place.clone(), format!("two databases are called `{name}`"));
        }
        return;
    }
    let database = Arc::new(database);
    if name == "*" {
        realm.fallback = Some(database);
    } else {
        realm.databases.insert(name, database);
    }
}

fn admit_url_user(draft: &mut Draft, realm: &mut Realm, forced: &ForcedUser, entry: &Entry) {
    let secret = forced.secret.clone();
    let user = User { local_trust: secret.is_none(), secret, ..User::nobody(&forced.name) };
    let before = realm.users.get(&user.name);
    if before.is_some_and(|before| !same_secret(before.secret.as_deref(), user.secret.as_deref())) {
        let text = format!(
            "user {} has another password elsewhere; say in [users] which one clients use",
            user.name
        );
        draft.findings.problem(entry.place.clone(), text);
    }
    realm.users.entry(user.name.clone()).or_insert_with(|| Arc::new(user));
}

/// The users of auth_file, and the entries of `users` over them. `vouches`: somebody else knows users whom no
/// file lists.
fn users(draft: &mut Draft, vouches: bool) -> BTreeMap<String, Arc<User>> {
    let mut users: BTreeMap<String, User> = BTreeMap::new();
    let asks = asks_somewhere(draft);
    let auth_file = draft.values.text(Key::PostgresAuthFile).to_owned();
    if !auth_file.is_empty() {
        let path = relative_to(draft.folder.as_deref(), &auth_file);
        let place = draft.places.get(&Key::PostgresAuthFile).cloned();
        if let Some(text) = read(&path, place, &mut draft.findings) {
            for (name, secret) in read_userlist(&path.into(), &text, &mut draft.findings) {
                users.insert(name.clone(), User { secret, from_auth_file: true, ..User::nobody(&name) });
            }
        }
    }
    for (name, entry) in std::mem::take(&mut draft.users) {
        // In pgbouncer.ini the table only qualifies users that auth_file names.
        let listed = users.contains_key(&name);
        if entry.from_ini && !listed && !asks && !vouches {
            let text = format!("user {name} is not in auth_file and cannot log in");
            draft.findings.warn(WarningKind::Doubtful, entry.place.clone(), text);
            continue;
        }
        let user = users.entry(name.clone()).or_insert_with(|| User::nobody(&name));
        user.pool_mode = entry.text("pool_mode").and_then(PoolMode::from_name);
        user.pool_size = entry.count("pool_size");
        user.pinned_pool_size = entry.count("pinned_pool_size");
        user.pins = pins::of_entry(draft, &entry);
        user.share = entry.count("share");
        user.reserved_connections = entry.count("reserved_connections");
        user.max_user_connections = entry.count("max_user_connections");
        let found = password(draft, &entry, None);
        let failed =
            found.is_none() && (entry.text("password").is_some() || entry.text("password_file").is_some());
        if let Some(password) = found {
            user.secret = Some(Arc::new(Secret::from_userlist(&password)));
            user.from_auth_file = false;
        }
        user.asked = asks && !listed && user.secret.is_none() && !failed;
        if user.secret.is_none() && !failed && !user.asked && !vouches {
            let text = format!("user {name} has no password and can log in only where none is asked for");
            draft.findings.warn(WarningKind::Doubtful, entry.place.clone(), text);
        }
    }
    users.into_iter().map(|(name, user)| (name, Arc::new(user))).collect()
}

/// Some database is asked for the passwords of users who are not listed.
fn asks_somewhere(draft: &Draft) -> bool {
    let general = !draft.values.text(Key::PostgresAuthUser).is_empty();
    general || draft.databases.values().any(|entry| entry.text("auth_user").is_some_and(|u| !u.is_empty()))
}

/// How a database is asked for them.
fn asking(draft: &Draft, protocol: Protocol, entry: &Entry) -> Option<Asking> {
    let own = |key: &str, general: Key| {
        let text = entry.text(key).unwrap_or_else(|| draft.values.text(general));
        Some(text.to_owned()).filter(|text| !text.is_empty() && protocol == Protocol::Postgres)
    };
    Some(Asking {
        user: own("auth_user", Key::PostgresAuthUser)?,
        query: own("auth_query", Key::PostgresAuthQuery)?,
        database: own("auth_dbname", Key::PostgresAuthDbname),
    })
}

/// For MySQL, what has the shape of a hash of mysql_native_password (`*` and 40 digits) is one.
fn mysql_user(user: &Arc<User>) -> Arc<User> {
    let Some(SecretKind::Plain(password)) = user.secret.as_deref().map(Secret::kind) else {
        return user.clone();
    };
    match weir_auth::native::parse_stored(password) {
        Some(hash) => {
            let secret = Some(Arc::new(Secret::new(SecretKind::MySqlNative(hash))));
            Arc::new(User { secret, ..User::clone(user) })
        }
        None => user.clone(),
    }
}

fn database(draft: &mut Draft, key: &str, entry: &Entry) -> Option<(Protocol, Database)> {
    let found = if entry.from_ini { ini_server(draft, entry) } else { url_server(entry) };
    let url = match found {
        Ok(url) => url,
        Err((place, text)) => {
            if !entry.broken {
                draft.findings.problem(place, text);
            }
            return None;
        }
    };
    // A URL on the command line without a database stands for all of its server's; so does every MySQL
    // URL there, because a MySQL client may leave its schema for any other at any time.
    let whole_server =
        entry.from_url.is_some() && (url.database.is_none() || url.protocol == Protocol::Mysql);
    let name = match (entry.text("name"), &url.database) {
        (Some(name), _) => name,
        (None, _) if whole_server => "*",
        (None, Some(database)) if entry.from_url.is_some() => database,
        (None, _) => key,
    };
    let secret = |password: &str| Some(Arc::new(Secret::plain(password))).filter(|_| !password.is_empty());
    let user = entry.text("user").map(str::to_owned).or(url.user).filter(|user| !user.is_empty());
    let password = password(draft, entry, url.password.clone());
    if user.is_none() && password.is_some() {
        let text = "a password without a user has no effect: clients log in with their own";
        draft.findings.warn(WarningKind::Doubtful, entry.place_of("password"), text);
    }
    let place = Some(if entry.from_ini { entry.place_of("host") } else { entry.place_of("url") });
    let tls = server_tls(draft, url.protocol, &url.server, &url.tls, place.clone());
    let trust = server_trust(draft, &url.tls, tls.as_deref(), place);
    let database = Database {
        name: name.to_owned(),
        server: url.server,
        tls,
        trust,
        server_database: if whole_server { None } else { url.database },
        forced_user: user.map(|name| ForcedUser { name, secret: password.as_deref().and_then(secret) }),
        pool_size: entry.count("pool_size"),
        pinned_pool_size: entry.count("pinned_pool_size"),
        pins: pins::of_entry(draft, entry),
        share: entry.count("share"),
        reserved_connections: entry.count("reserved_connections"),
        min_pool_size: entry.count("min_pool_size"),
        max_db_connections: entry.count("max_db_connections"),
        pool_mode: entry.text("pool_mode").and_then(PoolMode::from_name),
        pipeline_depth: entry.count("pipeline_depth"),
        asking: asking(draft, url.protocol, entry),
    };
    Some((url.protocol, database))
}

type Misplaced = (Option<Place>, String);

fn url_server(entry: &Entry) -> Result<DatabaseUrl, Misplaced> {
    let Some(url) = entry.text("url") else {
        let text = "a database needs a url, such as url = \"postgres://user:password@host:5432/database\"";
        return Err((Some(entry.place.clone()), text.to_owned()));
    };
    DatabaseUrl::parse(url).map_err(|text| (Some(entry.place_of("url")), text))
}

/// A database of pgbouncer.ini: host, port and dbname instead of a URL.
fn ini_server(draft: &Draft, entry: &Entry) -> Result<DatabaseUrl, Misplaced> {
    let port = entry.count("port").and_then(|port| u16::try_from(port).ok()).unwrap_or(5432);
    let server = match entry.text("host").filter(|host| !host.is_empty()) {
        Some(host) => server_at(Protocol::Postgres, host, port)
            .map_err(|text| (Some(entry.place_of("host")), format!("host {text}")))?,
        None => match draft.values.text(Key::UnixSocketDir) {
            "" => {
                let text = "the database has no host, and unix_socket_dir is empty";
                return Err((Some(entry.place.clone()), text.to_owned()));
            }
            directory => Server::Unix(postgres_socket(directory, port)),
        },
    };
    Ok(DatabaseUrl {
        protocol: Protocol::Postgres,
        user: None,
        password: None,
        server,
        tls: UrlTls::default(),
        database: entry.text("dbname").filter(|name| !name.is_empty()).map(str::to_owned),
    })
}

fn postgres_auth(word: &str) -> Auth {
    Auth::Method(match word {
        "any" => return Auth::Any,
        "hba" => return Auth::Hba,
        "trust" => AuthMethod::Trust,
        "cert" => AuthMethod::Cert,
        "peer" => AuthMethod::Peer,
        "plain" => AuthMethod::Plain,
        "ldap" => AuthMethod::Ldap,
        "pam" => AuthMethod::Pam,
        "md5" => AuthMethod::Md5,
        _ => AuthMethod::ScramSha256,
    })
}

fn mysql_auth(word: &str) -> Auth {
    Auth::Method(match word {
        "trust" => AuthMethod::Trust,
        "auth_socket" => AuthMethod::Peer,
        "mysql_native_password" => AuthMethod::Native,
        "caching_sha2_password" => AuthMethod::CachingSha2,
        _ => AuthMethod::LikeServer,
    })
}

/// What is wrong with a realm as a whole.
pub(crate) fn check_realms(draft: &mut Draft, realms: &BTreeMap<Protocol, Realm>) {
    let findings = &mut draft.findings;
    // What is wrong with a database or with the users was said where it stands.
    if !findings.problems.is_empty() {
        return;
    }
    let in_use: Vec<_> = realms.iter().filter(|(_, realm)| !realm.is_empty()).collect();
    if in_use.is_empty() {
        let example = match draft.values.flavour() {
            Flavour::Weir => "[databases.app] with url = \"postgres://user:password@host:5432/app\"",
            Flavour::Pgbouncer => "app = host=127.0.0.1 dbname=app in [databases]",
        };
        findings.problem(None, format!("no database is configured; add one such as {example}"));
    }
    for (protocol, realm) in in_use {
        if realm.auth == Auth::Any {
            for database in realm.all_databases().filter(|d| d.forced_user.is_none()) {
                let text = format!(
                    "auth_type = any needs a user in the connection string of database `{}`",
                    database.name
                );
                findings.problem(draft.places.get(&Key::PostgresAuthType).cloned(), text);
            }
        } else if realm.users.is_empty()
            && !realm.vouches()
            && realm.all_databases().all(|database| database.asking.is_none())
        {
            let text = match draft.values.flavour() {
                Flavour::Weir => "nobody can log in: name a user in the URL or in [users.NAME]",
                Flavour::Pgbouncer => "nobody can log in: auth_file lists no users, and auth_user is not set",
            };
            findings.problem(None, format!("{}: {text}", protocol.name()));
        }
        let places = [Key::PostgresAuthUser, Key::PostgresAuthDbname].map(|key| draft.places.get(&key));
        check_asking(findings, realm, places);
    }
}

/// Databases that are asked for passwords must be there, and so must the password of who asks.
fn check_asking(findings: &mut Findings, realm: &Realm, [by, on]: [Option<&Place>; 2]) {
    for database in realm.all_databases() {
        let Some(asking) = &database.asking else { continue };
        let Some((asked, _)) = realm.asked_database(database, &database.name) else {
            let name = asking.database.as_deref().unwrap_or_default();
            let text = format!("auth_dbname = {name}: no database `{name}` is configured");
            return findings.problem(on.cloned(), text);
        };
        if realm.secret_of_asker(&asked, asking).is_none() && !realm.users.contains_key(&asking.user) {
            let (user, name) = (&asking.user, &database.name);
            let text = format!(
                "auth_user {user} of database {name} has no password: auth_query works only if the server asks for none"
            );
            let place = by.cloned().unwrap_or(Place::Argument("auth_user".to_owned()));
            return findings.warn(WarningKind::Doubtful, place, text);
        }
    }
}

impl Realm {
    /// No database: the protocol is not in use.
    pub fn is_empty(&self) -> bool {
        self.databases.is_empty() && self.fallback.is_none()
    }

    /// All databases, the fallback last.
    pub fn all_databases(&self) -> impl Iterator<Item = &Arc<Database>> {
        self.databases.values().chain(&self.fallback)
    }
}
