//! Commands that change something. Error texts are PgBouncer's.

use super::{Act, Console, LOOK_TIME, Outcome, Refusal, Wanted, invalid, show};
use tokio::sync::oneshot;
use weir_config::Change;
use weir_config::console::{PGBOUNCER, WEIR};
use weir_config::registry::{Kind, by_full_name, by_ini_name};
use weir_proxy::console::{Decrees, Statement};
use weir_session::Protocol;
use weir_wire::console::Answer;

/// The tag of what is never answered.
pub(super) const NEVER: &str = "never";

/// What a client reads that has asked for the end of its statement.
const CANCELLED: &str = "canceling statement due to user request";

/// Some time has passed, and its client is still there.
async fn waited(statement: &Statement) -> Result<(), Refusal> {
    tokio::time::sleep(LOOK_TIME).await;
    if statement.is_gone() { Err("nobody waits for the answer".into()) } else { Ok(()) }
}

/// Is this database meant? An empty name means all.
fn meant<'a>(name: &'a str) -> impl Fn(&str) -> bool + 'a {
    move |database| name.is_empty() || database == name
}

impl Console {
    pub(super) async fn order(&self, statement: &Statement, name: &'static str, argument: String) -> Outcome {
        match name {
            "pause" => self.pause(statement, &argument).await,
            "resume" => self.resume(&argument),
            "kill" => self.kill(&argument),
            "kill_client" => self.kill_client(statement, &argument).await,
            "disable" => self.able(&argument, "disable", |orders, name| {
                orders.disabled.insert(name);
            }),
            "enable" => self.able(&argument, "enable", |orders, name| {
                orders.disabled.remove(&name);
            }),
            "reconnect" => {
                self.exists(&argument, "reconnect")?;
                self.proxy.reconnect(meant(&argument));
                Ok(Answer::done("RECONNECT"))
            }
            "wait_close" => self.wait_close(statement, &argument).await,
            "reload" => {
                let (done, outcome) = oneshot::channel();
                drop(self.acts.send(Act::Reload(done)));
                match outcome.await {
                    Ok(true) => Ok(Answer::done("RELOAD")),
                    Ok(false) | Err(_) => Err("RELOAD failed, see logs for additional details".into()),
                }
            }
            "shutdown" => self.shutdown(statement, &argument),
            _ => Err(invalid(&statement.text)),
        }
    }

    /// A database of this name is there, or could be: what `verb` is to be done to.
    fn exists(&self, name: &str, verb: &str) -> Result<(), Refusal> {
        let snapshot = self.snapshot();
        let realms = Protocol::ALL.map(|protocol| snapshot.realm(protocol));
        let configured = realms.iter().any(|realm| realm.databases.contains_key(name));
        if name.is_empty() || configured {
            return Ok(());
        }
        if name == PGBOUNCER || name == WEIR {
            return Err(format!("cannot {verb} admin db: {name}").into());
        }
        if realms.iter().any(|realm| realm.fallback.is_some()) || self.is_known(name) {
            return Ok(());
        }
        Err(format!("no such database: {name}").into())
    }

    /// There is a database of this name, or an order about one.
    fn is_known(&self, name: &str) -> bool {
        let (snapshot, orders) = (self.snapshot(), self.proxy.decrees());
        Protocol::ALL.iter().any(|&protocol| snapshot.realm(protocol).databases.contains_key(name))
            || orders.paused.contains(name)
            || orders.disabled.contains(name)
            || self.proxy.pools().iter().any(|pool| pool.spec.database == name)
    }

    async fn pause(&self, statement: &Statement, name: &str) -> Outcome {
        if self.proxy.decrees().all_paused {
            return Err("already paused".into());
        }
        self.exists(name, "pause")?;
        self.proxy.decree(|orders| match name {
            "" => orders.all_paused = true,
            name => {
                orders.paused.insert(name.to_owned());
            }
        });
        loop {
            let orders = self.proxy.decrees();
            if !(orders.all_paused || !name.is_empty() && orders.paused.contains(name)) {
                return Err("PAUSE was ended by RESUME".into());
            }
            let pools = self.proxy.pools();
            if pools.iter().all(|pool| !meant(name)(&pool.spec.database) || pool.opened == 0) {
                return Ok(Answer::done("PAUSE"));
            }
            if statement.is_cancelled() {
                // As PgBouncer does: who has given up waiting does not want it.
                self.proxy.decree(|orders| match name {
                    "" => orders.all_paused = false,
                    name => {
                        orders.paused.remove(name);
                    }
                });
                return Err(CANCELLED.into());
            }
            waited(statement).await?;
        }
    }

    fn resume(&self, name: &str) -> Outcome {
        let orders = self.proxy.decrees();
        if name.is_empty() {
            if !orders.all_paused {
                return Err("pooler is not paused".into());
            }
            self.proxy.decree(|orders| orders.all_paused = false);
            return Ok(Answer::done("RESUME"));
        }
        let is_console = name == PGBOUNCER || name == WEIR;
        if !is_console && !self.is_known(name) {
            return Err(format!("no such database: {name}").into());
        }
        if !orders.paused.contains(name) {
            return Err(format!("database {name} is not paused").into());
        }
        self.proxy.decree(|orders| {
            orders.paused.remove(name);
        });
        Ok(Answer::done("RESUME"))
    }

    fn kill(&self, name: &str) -> Outcome {
        if self.proxy.decrees().all_paused {
            return Err("already paused".into());
        }
        self.exists(name, "kill")?;
        let mut names: Vec<String> =
            self.proxy.pools().into_iter().map(|pool| pool.spec.database.clone()).collect();
        if !name.is_empty() {
            names = vec![name.to_owned()];
        }
        self.proxy.decree(|orders| orders.paused.extend(names.iter().cloned()));
        self.proxy.kill_all(meant(name));
        Ok(Answer::done("KILL"))
    }

    async fn kill_client(&self, statement: &Statement, argument: &str) -> Outcome {
        let digits = argument.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        if digits.is_empty() {
            return Err("invalid client pointer supplied".into());
        }
        let Ok(number) = digits.parse::<u32>() else { return Err("client not found".into()) };
        let (told, outcome) = oneshot::channel();
        self.proxy.kill_client(statement.protocol, number, move |found| {
            // Who has asked may have gone.
            let _ = told.send(found);
        });
        match outcome.await {
            Ok(true) => Ok(Answer::done("KILL_CLIENT")),
            Ok(false) | Err(_) => Err("client not found".into()),
        }
    }

    fn able(&self, name: &str, verb: &str, change: impl Fn(&mut Decrees, String)) -> Outcome {
        if name.is_empty() {
            return Err("a database is required".into());
        }
        if verb == "enable" && name != PGBOUNCER && name != WEIR && !self.is_known(name) {
            return Err(format!("no such database: {name}").into());
        }
        self.exists(name, verb)?;
        self.proxy.decree(|orders| change(orders, name.to_owned()));
        Ok(Answer::done(&verb.to_ascii_uppercase()))
    }

    /// Waits until no server is left that is to be replaced. It is looked at twice: one may be on its way
    /// between workers.
    async fn wait_close(&self, statement: &Statement, name: &str) -> Outcome {
        match self.exists(name, "wait in") {
            Ok(()) => {}
            Err(Refusal(text)) => return Err(text.into()),
        }
        let wanted = Wanted { servers: true, rows: true, ..Wanted::default() };
        let mut clear = 0;
        while clear < 2 {
            let parts = self.list(wanted).await?;
            let mut servers = parts.iter().flat_map(|part| &part.servers);
            let waits = servers.any(|server| server.close_needed && meant(name)(&server.database));
            clear = if waits { 0 } else { clear + 1 };
            if statement.is_cancelled() {
                return Err(CANCELLED.into());
            }
            if waits {
                waited(statement).await?;
            }
        }
        Ok(Answer::done("WAIT_CLOSE"))
    }

    fn shutdown(&self, statement: &Statement, argument: &str) -> Outcome {
        match argument.to_ascii_lowercase().as_str() {
            "" => {
                drop(self.acts.send(Act::Stop));
                Ok(Answer::done(NEVER))
            }
            "wait_for_servers" => {
                drop(self.acts.send(Act::Drain));
                Ok(Answer::done("SHUTDOWN"))
            }
            "wait_for_clients" => {
                drop(self.acts.send(Act::Leave));
                Ok(Answer::done("SHUTDOWN"))
            }
            _ => Err(invalid(&statement.text)),
        }
    }

    pub(super) async fn set(&self, statement: &Statement, key: &str, value: &str) -> Outcome {
        if show::pretended(key).is_some() {
            return Ok(Answer::Done { tag: "SET".to_owned(), notice: Some(("SET ignored", "")) });
        }
        if !statement.admin {
            return Err("admin access needed".into());
        }
        // By PgBouncer's name or by Weir's own.
        let row =
            by_ini_name(key).and_then(|row| by_full_name(&row.full_name())).or_else(|| by_full_name(key));
        let Some(row) = row else { return Err("SET failed".into()) };
        if row.change == Change::Restart {
            return Err(format!("SET failed: {key} takes a restart").into());
        }
        let shown = match row.kind {
            Kind::Secret => "********",
            _ => value,
        };
        tracing::info!(user = statement.user, "SET {key}={shown} command issued");
        let (done, outcome) = oneshot::channel();
        drop(self.acts.send(Act::Set(row.full_name(), value.to_owned(), done)));
        match outcome.await {
            Ok(true) => Ok(Answer::done(&format!("SET {key}={shown}"))),
            Ok(false) | Err(_) => Err("SET failed".into()),
        }
    }
}
