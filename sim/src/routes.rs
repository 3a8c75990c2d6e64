//! Who may come in and where they go, for the simulated Weir.

use crate::net::address_of;
use crate::plan::Plan;
use std::sync::Arc;
use weir_auth::{Admission, AuthMethod, Login, Secret};
use weir_net::Peer;
use weir_proxy::settings::{PoolSpec, Routes, Targets};
use weir_wire::{Fault, FaultKind};

/// Database 0 speaks PostgreSQL, database 1 MySQL.
pub struct SimRoutes {
    plan: Plan,
    secret: Arc<Secret>,
}

impl SimRoutes {
    /// As the plan has it.
    pub fn new(plan: &Plan) -> Self {
        SimRoutes { plan: plan.clone(), secret: plan.secrets[0].clone() }
    }
}

impl Routes for SimRoutes {
    fn admit(&self, wing: u8, login: &Login, _peer: &Peer) -> Admission {
        let method = if wing == 0 { self.plan.client_auth } else { AuthMethod::Native };
        let known = login.user.starts_with("user");
        Admission { method, secret: known.then(|| self.secret.clone()) }
    }

    fn resolve(&self, wing: u8, login: &Login, variant: u32) -> Result<(PoolSpec, String), Fault> {
        let database = match (wing, &login.database) {
            (0, Some(database)) if database != "app" => return Err(FaultKind::NoSuchDatabase.into()),
            (0, _) => "app".to_owned(),
            (_, _) => String::new(),
        };
        let schema = login.database.clone().unwrap_or_default();
        let spec = PoolSpec {
            wing,
            server_database: database.clone(),
            database,
            user: login.user.clone(),
            secret: Some(self.secret.clone()),
            targets: Targets::fixed(vec![address_of(u32::from(wing))]),
            mode: self.plan.mode,
            size: self.plan.pool_size,
            min_size: 0,
            variant,
            max_prepared_statements: self.plan.max_prepared,
        };
        Ok((spec, schema))
    }

    fn default_method(&self, _wing: u8) -> AuthMethod {
        AuthMethod::Native
    }
}
