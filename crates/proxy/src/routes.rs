//! Which clients may log in and which pool they get, from the configuration.

use crate::ask::Question;
use crate::pool::auto::Bounds;
use crate::settings::{PoolMode, PoolSpec, Routes, Targets, Visitor};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_config::console::Rights;
use weir_config::{Auth, Key, Learnt, Network, Origin, Realm, Server, Snapshot, Voucher};
use weir_net::{Peer, Target};
use weir_session::Protocol;
use weir_session::{Admission, AuthMethod, Login};
use weir_sql::catalogue::UnknownCode;
use weir_wire::{Fault, FaultKind};

/// The configuration as [`Routes`], with the addresses of its hosts.
pub struct ConfigRoutes {
    /// As in [`crate::settings::Settings::epoch`].
    epoch: u64,
    snapshot: Arc<Snapshot>,
    /// Resolved at start and every `dns_max_ttl` by the control thread; pools keep what they were given
    /// and see the change. The lock is taken at logins only.
    targets: Mutex<HashMap<Server, Targets>>,
}

impl ConfigRoutes {
    /// Resolves all hosts. Blocks.
    pub fn new(snapshot: Arc<Snapshot>) -> Self {
        let routes = ConfigRoutes { epoch: 1, snapshot, targets: Mutex::default() };
        routes.resolve_again();
        routes
    }

    /// By another snapshot, with the same addresses for the same hosts, so that pools see them change.
    /// Resolves all hosts. Blocks.
    pub fn renewed(&self, snapshot: Arc<Snapshot>) -> Self {
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let routes = ConfigRoutes { epoch: self.epoch + 1, snapshot, targets: Mutex::new(targets) };
        routes.resolve_again();
        routes
    }

    /// Counts up with every [`ConfigRoutes::renewed`].
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Resolves all hosts again. A name that cannot be resolved keeps its addresses. Returns whether a host
    /// has lost an address. Blocks.
    pub fn resolve_again(&self) -> bool {
        let mut moved = false;
        let realms = [&self.snapshot.postgres, &self.snapshot.mysql];
        let databases = realms.iter().flat_map(|realm| realm.databases.values().chain(&realm.fallback));
        for server in databases.map(|database| &database.server) {
            let found = match server {
                Server::Unix(path) => Ok(vec![Target::Unix(path.clone())]),
                Server::Tcp { .. } => {
                    server.resolve().map(|found| found.into_iter().map(Target::Tcp).collect::<Vec<_>>())
                }
            };
            match found {
                Ok(found) => moved |= self.targets_of(server).set(found),
                Err(error) => tracing::warn!("cannot resolve {server}: {error}"),
            }
        }
        moved
    }

    /// Where the servers of these databases are, each server once.
    pub fn servers_of(&self, realm: &Realm) -> Vec<Targets> {
        let mut servers: Vec<&Server> = Vec::new();
        for database in realm.fallback.iter().chain(realm.databases.values()) {
            if !servers.contains(&&database.server) {
                servers.push(&database.server);
            }
        }
        servers.into_iter().map(|server| self.targets_of(server)).collect()
    }

    /// Hosts that are looked up by name, and their addresses now.
    pub(crate) fn hosts(&self) -> Vec<(String, Vec<Target>)> {
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hosts: Vec<_> = targets
            .iter()
            .filter_map(|(server, targets)| match server {
                Server::Tcp { host, .. } if host.parse::<std::net::IpAddr>().is_err() => {
                    Some((host.clone(), targets.all()))
                }
                Server::Tcp { .. } | Server::Unix(_) => None,
            })
            .collect();
        hosts.sort_by(|a, b| a.0.cmp(&b.0));
        hosts.dedup_by(|a, b| a.0 == b.0);
        hosts
    }

    fn targets_of(&self, server: &Server) -> Targets {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        targets.entry(server.clone()).or_default().clone()
    }
}

fn origin(peer: &Peer) -> Origin<'static> {
    match peer {
        Peer::Tcp(address) => {
            let address = address.ip().to_canonical();
            Origin { local: address.is_loopback(), address: Some(address), ..Origin::default() }
        }
        Peer::Unix { uid } => Origin { local: true, uid: *uid, unix: true, ..Origin::default() },
        Peer::Unknown => Origin::default(),
    }
}

fn origin_of<'a>(visitor: &'a Visitor<'_>) -> Origin<'a> {
    Origin {
        tls: visitor.secured.is_some(),
        certificate: visitor.secured.as_deref().and_then(|secured| secured.peer_name.as_deref()),
        ..origin(visitor.peer)
    }
}

impl Routes for ConfigRoutes {
    fn admit(
        &self,
        protocol: Protocol,
        login: &Login,
        visitor: &Visitor<'_>,
        learnt: Option<&Learnt>,
    ) -> Admission {
        self.snapshot.admit(protocol, login, origin_of(visitor), learnt)
    }

    fn rejects(&self, protocol: Protocol, login: &Login, visitor: &Visitor<'_>) -> Option<String> {
        self.snapshot.rejects(protocol, login, origin_of(visitor))
    }

    fn voucher(&self, protocol: Protocol, login: &Login, visitor: &Visitor<'_>) -> Option<Voucher> {
        self.snapshot.voucher(protocol, login, origin_of(visitor))
    }

    fn question(&self, protocol: Protocol, login: &Login, visitor: &Visitor<'_>) -> Option<Question> {
        let asked = self.snapshot.asked(protocol, login, origin_of(visitor))?;
        Some(Question {
            targets: self.targets_of(&asked.entry.server),
            asked,
            epoch: self.epoch,
            user: login.user.clone(),
            max_age: Duration::from_millis(self.snapshot.values.millis(Key::PostgresAuthQueryCacheTtl)),
            patience_ms: 0,
        })
    }

    fn is_balancer(&self, protocol: Protocol, peer: &Peer) -> bool {
        self.snapshot.realm(protocol).balancers.iter().any(|network| match peer {
            Peer::Tcp(address) => network.has(address.ip()),
            Peer::Unix { .. } => *network == Network::Unix,
            Peer::Unknown => false,
        })
    }

    fn console(&self, protocol: Protocol, login: &Login, peer: &Peer) -> Option<Option<Rights>> {
        self.snapshot.console(protocol, login, origin(peer), weir_net::socket::own_uid())
    }

    fn resolve(
        &self,
        protocol: Protocol,
        login: &Login,
        learnt: Option<Arc<Learnt>>,
        variant: u32,
    ) -> Result<(PoolSpec, String), Fault> {
        let Some(route) = self.snapshot.route(protocol, login, learnt.as_deref()) else {
            let name = login.database.as_deref().unwrap_or(&login.user);
            return Err(Fault::new(FaultKind::NoSuchDatabase, format!("no database `{name}` is configured")));
        };
        let targets = self.targets_of(&route.server);
        let schema = route.server_database.clone();
        let spec = PoolSpec {
            epoch: self.epoch,
            servers_since: self.epoch,
            login: login.clone(),
            // Servers of a forced user do not follow what becomes of the client's, and a password that is not
            // needed is not kept.
            learnt: learnt.filter(|learnt| {
                let realm = self.snapshot.realm(protocol);
                route.database.forced_user.is_none() && !realm.overrules(learnt, &login.user)
            }),
            protocol,
            database: route.pool,
            user: route.server_user,
            secret: route.server_secret,
            // A MySQL schema moves with its client and is no part of the pool.
            server_database: match protocol {
                Protocol::Postgres => route.server_database,
                Protocol::Mysql => String::new(),
            },
            targets,
            tls: route.database.tls.clone(),
            trust: route.database.trust.clone(),
            mode: match route.pool_mode {
                weir_config::PoolMode::Session => PoolMode::Session,
                weir_config::PoolMode::Transaction => PoolMode::Transaction,
                weir_config::PoolMode::Statement => PoolMode::Statement,
            },
            size: route.pool_size,
            auto: route.auto_size_min.map(|min| Bounds { min, max: route.pool_size }),
            pinned_size: route.pinned_pool_size,
            max_of_database: route.max_db_connections,
            max_of_user: route.max_user_connections,
            min_size: route.min_pool_size.min(route.pool_size),
            pipeline_depth: route.pipeline_depth,
            late_begin: route.late_begin,
            share_answers: route.share_answers,
            unknown_code: match route.unknown_code {
                "reset" => UnknownCode::Reset,
                "pass" => UnknownCode::Pass,
                _ => UnknownCode::Pin,
            },
            pins: route.pins,
            listen_linger_ms: route.listen_linger_ms,
            max_waiting: route.max_waiting_clients,
            share: route.share,
            reserved: route.reserved,
            variant,
            max_prepared_statements: self.snapshot.limits.max_prepared_statements,
        };
        Ok((spec, schema))
    }

    fn renew(&self, protocol: Protocol, spec: &PoolSpec) -> PoolSpec {
        match self.resolve(protocol, &spec.login, spec.learnt.clone(), spec.variant) {
            Ok((new, _)) if new.database == spec.database && new.user == spec.user => {
                // Clients of a user that is not there any more are served as before.
                let secret = new.secret.clone().or_else(|| spec.secret.clone());
                PoolSpec { secret, ..new }
            }
            Ok(_) | Err(_) => PoolSpec { epoch: self.epoch, min_size: 0, ..spec.clone() },
        }
    }

    fn compresses(&self) -> bool {
        self.snapshot.values.bool(Key::MysqlCompression)
    }

    fn default_method(&self, protocol: Protocol) -> AuthMethod {
        match self.snapshot.realm(protocol).auth {
            Auth::Method(method) => method,
            Auth::Any | Auth::Hba => AuthMethod::Trust,
        }
    }
}
