//! Which clients may log in and which pool they get, for the simulated Weir.

use crate::net::address_of;
use crate::plan::Plan;
use std::sync::Arc;
use weir_auth::Secret;
use weir_config::{Learnt, ServerTls};
use weir_proxy::settings::{PoolSpec, Routes, Targets, Visitor};
use weir_session::Protocol;
use weir_session::login::Trust;
use weir_session::{Admission, AuthMethod, Login};
use weir_wire::{Fault, FaultKind};

/// Database 0 speaks PostgreSQL, database 1 MySQL.
pub struct SimRoutes {
    plan: Plan,
    epoch: u64,
    secret: Arc<Secret>,
    targets: [Targets; 2],
    tls: [Option<Arc<ServerTls>>; 2],
}

impl SimRoutes {
    /// As the plan has it.
    pub fn new(plan: &Plan) -> Self {
        let targets = [0, 1].map(|database| Targets::fixed(vec![address_of(database)]));
        let tls = plan.secure.with_servers();
        SimRoutes { plan: plan.clone(), epoch: 1, secret: plan.secrets[0].clone(), targets, tls }
    }

    /// By a changed plan. Servers are to be replaced when `other_servers` is set, as after a change of
    /// address.
    pub fn renewed(&self, plan: &Plan, other_servers: bool) -> Self {
        let mut routes = SimRoutes { epoch: self.epoch + 1, ..SimRoutes::new(plan) };
        if !other_servers {
            routes.targets = self.targets.clone();
            routes.tls = self.tls.clone();
        }
        routes
    }
}

impl Routes for SimRoutes {
    fn admit(&self, protocol: Protocol, login: &Login, _: &Visitor<'_>, _: Option<&Learnt>) -> Admission {
        let method = match protocol {
            Protocol::Postgres => self.plan.client_auth,
            Protocol::Mysql => AuthMethod::Native,
        };
        let known = login.user.starts_with("user");
        Admission { method, secret: known.then(|| self.secret.clone()), names: None }
    }

    fn resolve(
        &self,
        protocol: Protocol,
        login: &Login,
        _: Option<Arc<Learnt>>,
        variant: u32,
    ) -> Result<(PoolSpec, String), Fault> {
        let database = match (protocol, &login.database) {
            (Protocol::Postgres, Some(database)) if database != "app" => {
                return Err(FaultKind::NoSuchDatabase.into());
            }
            (Protocol::Postgres, _) => "app".to_owned(),
            (Protocol::Mysql, _) => String::new(),
        };
        let first = login.user == "user0";
        let schema = login.database.clone().unwrap_or_default();
        let spec = PoolSpec {
            epoch: self.epoch,
            servers_since: self.epoch,
            login: login.clone(),
            learnt: None,
            protocol,
            tls: self.tls[protocol.index()].clone(),
            server_database: database.clone(),
            database,
            user: login.user.clone(),
            secret: Some(self.secret.clone()),
            targets: self.targets[protocol.index()].clone(),
            mode: self.plan.mode,
            size: self.plan.pool_size,
            pinned_size: self.plan.pinned_size,
            max_of_database: self.plan.max_of_database,
            max_of_user: self.plan.max_of_user,
            min_size: 0,
            auto: None,
            max_waiting: self.plan.max_waiting,
            share: self.plan.shares[usize::from(!first)],
            // Something is left for the others, of each limit: a user of MySQL has a pool for each set of
            // capabilities.
            reserved: if first && variant == 0 && self.plan.max_of_database != 1 && self.plan.max_of_user == 0
            {
                self.plan.reserved
            } else {
                0
            },
            pipeline_depth: self.plan.pipeline_depth,
            late_begin: self.plan.late_begin,
            share_answers: self.plan.share_answers,
            unknown_code: weir_sql::catalogue::UnknownCode::Pin,
            pins: weir_wire::PinPolicies::default(),
            listen_linger_ms: None,
            variant,
            max_prepared_statements: self.plan.max_prepared,
            trust: Trust { unproven: true, ..Trust::default() },
        };
        Ok((spec, schema))
    }

    fn renew(&self, protocol: Protocol, spec: &PoolSpec) -> PoolSpec {
        let resolved = self.resolve(protocol, &spec.login, None, spec.variant);
        resolved.map_or_else(|_| spec.clone(), |(spec, _)| spec)
    }

    fn default_method(&self, _protocol: Protocol) -> AuthMethod {
        AuthMethod::Native
    }
}
