//! SHOW. Columns that PgBouncer counts and Weir does not are 0 (`docs/src/console.md` lists them).

use super::stats::{Figures, Sums};
use super::tables::{self, PROTOCOL, TOTALS_NAMES};
use super::time::Calendar;
use super::{Console, Outcome, Refusal, Wanted, registry};
use crate::live::statements::Name;
use std::collections::{BTreeMap, HashMap};
use weir_config::console::{PGBOUNCER, WEIR};
use weir_config::{Database, Key, Server};
use weir_net::{Peer, Target};
use weir_proxy::console::{ClientRow, ClientState, Counts, Part, PoolRow, ServerMark, ServerRow, Statement};
use weir_proxy::settings::PoolMode;
use weir_proxy::statements::Figures as Cost;
use weir_session::Protocol;
use weir_wire::console::{Answer, Column, Kind, Table};

/// Names and values that some drivers set or ask for without looking whether they must. As at PgBouncer's
/// console.
const PRETENDED: [(&str, &str); 6] = [
    ("client_encoding", "UTF-8"),
    ("default_transaction_isolation", "read committed"),
    ("standard_conforming_strings", "on"),
    ("datestyle", "ISO"),
    ("timezone", "GMT"),
    ("extra_float_digits", "2"),
];

/// What SHOW STATEMENTS calls all that have no row of their own.
pub(super) const OTHER_STATEMENTS: &str = "(others)";

/// The one SHOW that has no table.
pub(super) const HELP: &str = "show help";

/// The answer to `SHOW timezone` and its like.
pub(super) fn pretended(name: &str) -> Option<Answer> {
    let &(name, value) = PRETENDED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    let mut table = Table::new(&[Column { name, kind: Kind::Text }]);
    table.text(value);
    Some(Answer::Rows(table))
}

/// Which protocols are shown, and whether it is said which.
#[derive(Clone, Copy)]
pub(super) struct View {
    both: bool,
}

impl View {
    pub(super) const ALL: View = View { both: true };

    fn of(statement: &Statement) -> View {
        View { both: statement.database != PGBOUNCER }
    }

    fn has(self, protocol: Protocol) -> bool {
        self.both || protocol == Protocol::Postgres
    }

    fn table(self, columns: &[Column]) -> Table {
        if !self.both {
            return Table::new(columns);
        }
        let mut all = vec![PROTOCOL];
        all.extend_from_slice(columns);
        Table::new(&all)
    }

    /// Begins a row.
    fn begin(self, table: &mut Table, protocol: Protocol) {
        if self.both {
            table.text(protocol.name());
        }
    }
}

/// Clients and servers by protocol, database and user.
type ByPool = BTreeMap<(Protocol, String, String), (Counts, PoolFacts)>;

#[derive(Clone, Copy)]
struct PoolFacts {
    mode: PoolMode,
    waits_since_ns: Option<u64>,
    /// Pinned servers beyond its size.
    outside: usize,
}

impl Console {
    pub(super) async fn show(&self, statement: &Statement, name: &'static str) -> Outcome {
        if name == HELP {
            let notice = Some(("Console usage", registry::help()));
            return Ok(Answer::Done { tag: "SHOW".to_owned(), notice });
        }
        self.table(View::of(statement), name).await.map(Answer::Rows)
    }

    /// The table of this SHOW; HELP has none.
    async fn table(&self, view: View, name: &str) -> Result<Table, Refusal> {
        Ok(match name {
            "show version" => self.version_table(),
            "show config" => self.config(),
            "show databases" => self.databases(view).await?,
            "show pools" => self.pools(view).await?,
            "show clients" => self.clients(view).await?,
            "show servers" => self.servers(view).await?,
            "show sockets" => self.sockets(view, false).await?,
            "show active_sockets" => self.sockets(view, true).await?,
            "show lists" => self.lists(view).await?,
            "show users" => self.users().await?,
            "show stats" => self.stats_table(view, tables::STATS, [true, true]),
            "show stats_totals" => self.stats_table(view, tables::STATS_TOTALS, [true, false]),
            "show stats_averages" => self.stats_table(view, tables::STATS_AVERAGES, [false, true]),
            "show totals" => self.totals(view),
            "show mem" => self.mem(),
            "show dns_hosts" => self.dns_hosts(),
            "show dns_zones" => Table::new(tables::DNS_ZONES),
            "show peers" => Table::new(tables::PEERS),
            "show peer_pools" => Table::new(tables::PEER_POOLS),
            "show state" => self.state(),
            "show pins" => self.pins(view).await?,
            "show queue" => self.queue(view).await?,
            "show statements" => self.statements(view).await?,
            "show limits" => self.limits(view),
            _ => return Err(super::invalid(name)),
        })
    }

    /// The same with both protocols, as the database `weir` shows it.
    pub(super) async fn whole_table(&self, name: &str) -> Result<Table, Refusal> {
        self.table(View::ALL, name).await
    }

    fn version_table(&self) -> Table {
        let mut table = Table::new(tables::VERSION);
        table.text(&format!("PgBouncer 1.26.1 (Weir {})", self.version));
        table
    }

    fn config(&self) -> Table {
        let mut table = Table::new(tables::CONFIG);
        let mut rows = self.snapshot().values.rows();
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        for row in rows {
            let changeable = if row.changeable { "yes" } else { "no" };
            table.text(&row.key).text(&row.value).text(&row.default).text(changeable);
        }
        table
    }

    fn state(&self) -> Table {
        let paused = self.proxy.decrees().all_paused;
        let mut table = Table::new(tables::STATE);
        table.text("active").text(if paused { "no" } else { "yes" });
        table.text("paused").text(if paused { "yes" } else { "no" });
        table
    }

    fn mem(&self) -> Table {
        let (client, server) = self.proxy.sizes();
        let servers: usize = self.proxy.pools().iter().map(|pool| pool.opened).sum();
        let mut table = Table::new(tables::MEM);
        for (name, size, used) in
            [("client_cache", client, self.proxy.clients()), ("server_cache", server, servers)]
        {
            let total = i32::try_from(size.saturating_mul(used)).unwrap_or(i32::MAX);
            table.text(name).number(size).number(used).number(0usize).number(total);
        }
        table
    }

    fn dns_hosts(&self) -> Table {
        let ttl_s = self.snapshot().timeouts.dns_max_ttl_ms / 1_000;
        let mut table = Table::new(tables::DNS_HOSTS);
        for (host, targets) in self.proxy.hosts() {
            let addresses: Vec<_> = targets.iter().map(ToString::to_string).collect();
            table.text(&host).number(ttl_s).text(&addresses.join(","));
        }
        table
    }

    /// How many clients and servers there are, by pool; and clients that log in.
    async fn by_pool(&self, view: View) -> Result<(ByPool, usize), Refusal> {
        let wanted = Wanted { clients: true, servers: true, ..Wanted::default() };
        let parts = self.list(wanted).await?;
        let mut pools = ByPool::new();
        let mut of_id = BTreeMap::new();
        for pool in self.proxy.pools().into_iter().filter(|pool| view.has(pool.protocol)) {
            let name = (pool.protocol, pool.spec.database.clone(), pool.spec.user.clone());
            of_id.insert((pool.protocol, pool.id), name.clone());
            let facts = PoolFacts { mode: pool.spec.mode, waits_since_ns: None, outside: 0 };
            let (_, facts) = pools.entry(name).or_insert((Counts::default(), facts));
            facts.outside += pool.outside;
            facts.waits_since_ns = [facts.waits_since_ns, pool.waits_since_ns].into_iter().flatten().min();
        }
        for part in parts.iter() {
            for (id, counts) in &part.counts {
                let pool = of_id.get(&(part.protocol, *id)).and_then(|name| pools.get_mut(name));
                if let Some((sum, _)) = pool {
                    sum.add(counts);
                }
            }
        }
        Ok((pools, parts.iter().map(|part| part.logins).sum()))
    }

    async fn pools(&self, view: View) -> Result<Table, Refusal> {
        let (pools, _) = self.by_pool(view).await?;
        let now_ns = self.proxy.clock_ns();
        let own: &[Column] = if view.both { tables::PINNED_POOLS } else { &[] };
        let columns: Vec<Column> = tables::POOLS.iter().chain(own).copied().collect();
        let mut table = view.table(&columns);
        for ((protocol, database, user), (counts, facts)) in &pools {
            view.begin(&mut table, *protocol);
            table.text(database).text(user);
            let wait_us = facts.waits_since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns) / 1_000);
            put_counts(&mut table, counts, wait_us);
            table.text(mode_name(facts.mode)).null();
            if view.both {
                table.number(facts.outside);
            }
        }
        if !view.both {
            table.text(PGBOUNCER).text(PGBOUNCER);
            let counts = Counts { cl_active: self.proxy.consoles(), ..Counts::default() };
            put_counts(&mut table, &counts, 0);
            table.text("statement").null();
        }
        Ok(table)
    }

    async fn databases(&self, view: View) -> Result<Table, Refusal> {
        let (pools, _) = self.by_pool(view).await?;
        let (snapshot, orders, open) = (self.snapshot(), self.proxy.decrees(), self.proxy.pools());
        let mut table = view.table(tables::DATABASES);
        for protocol in Protocol::ALL {
            if !view.has(protocol) {
                continue;
            }
            let realm = snapshot.realm(protocol);
            let mut all: BTreeMap<&str, &Database> =
                realm.databases.iter().map(|(name, database)| (name.as_str(), &**database)).collect();
            // Those of `*` that somebody uses.
            if let Some(fallback) = &realm.fallback {
                let used = open.iter().filter(|pool| pool.protocol == protocol).map(|pool| &*pool.spec);
                used.for_each(|spec| {
                    all.entry(&spec.database).or_insert(fallback);
                });
            }
            for (name, database) in all {
                let servers: usize =
                    open.iter().filter(|pool| is_of(pool, protocol, name)).map(|pool| pool.opened).sum();
                let clients: usize = pools
                    .iter()
                    .filter(|((of, database, _), _)| *of == protocol && database == name)
                    .map(|(_, (counts, _))| counts.cl_active + counts.cl_waiting)
                    .sum();
                view.begin(&mut table, protocol);
                self.put_database(&mut table, name, database, [servers, clients]);
                let (paused, disabled) = (orders.paused.contains(name), orders.is_disabled(name));
                table.number(u32::from(paused)).number(u32::from(disabled));
            }
        }
        if !view.both {
            let port = snapshot.values.count(Key::ListenPort);
            table.text(PGBOUNCER).null().number(port).text(PGBOUNCER).text(PGBOUNCER);
            table.number(2u32).number(0u32).number(0u32).number(self.lifetime_s()).text("statement").null();
            table
                .number(0u32)
                .number(0u32)
                .number(0u32)
                .number(self.proxy.consoles())
                .number(0u32)
                .number(0u32);
        }
        Ok(table)
    }

    fn lifetime_s(&self) -> u64 {
        self.snapshot().timeouts.server_lifetime_ms.unwrap_or(0) / 1_000
    }

    /// All but the last two columns.
    fn put_database(
        &self,
        table: &mut Table,
        name: &str,
        database: &Database,
        [servers, clients]: [usize; 2],
    ) {
        let snapshot = self.snapshot();
        let values = &snapshot.values;
        let size = database.pool_size.unwrap_or_else(|| values.size(Key::DefaultPoolSize));
        // What is found by trial is at most this.
        let size = if size == 0 { values.size(Key::AutoSizeMax) } else { size };
        let (host, port) = match &database.server {
            Server::Tcp { host, port } => (host.clone(), *port),
            Server::Unix(path) => {
                // `DIR/.s.PGSQL.PORT`.
                let text = path.display().to_string();
                let port = text.rsplit_once(".s.PGSQL.").and_then(|(_, port)| port.parse().ok());
                let folder = path.parent().map(|folder| folder.display().to_string());
                (port.and(folder).unwrap_or(text), port.unwrap_or(0))
            }
        };
        table.text(name).text(&host).number(port).text(database.server_database.as_deref().unwrap_or(name));
        table.maybe(database.forced_user.as_ref().map(|user| user.name.as_str()));
        table.number(size);
        table.number(database.min_pool_size.unwrap_or_else(|| values.size(Key::MinPoolSize)));
        table.number(0u32).number(self.lifetime_s());
        table.maybe(database.pool_mode.map(|mode| mode.name())).null();
        table.number(database.max_db_connections.unwrap_or_else(|| values.size(Key::MaxDbConnections)));
        table.number(servers).number(0u32).number(clients);
    }

    async fn users(&self) -> Result<Table, Refusal> {
        let parts = self.list(Wanted { clients: true, users: true, ..Wanted::default() }).await?;
        let mut clients: BTreeMap<&str, usize> = BTreeMap::new();
        for (user, count) in parts.iter().flat_map(|part| &part.users) {
            *clients.entry(user).or_default() += count;
        }
        let (snapshot, open) = (self.snapshot(), self.proxy.pools());
        let mut table = Table::new(tables::USERS);
        // PgBouncer's console has a user of its own.
        table.text(PGBOUNCER).text("").text("").null();
        table.number(0u32).number(0u32).number(0u32).number(0u32);
        for (name, user) in &snapshot.postgres.users {
            let servers: usize =
                open.iter().filter(|pool| pool.spec.user == *name).map(|pool| pool.opened).sum();
            let size = user.pool_size.map(|size| format!("{size:9}")).unwrap_or_default();
            let most =
                user.max_user_connections.unwrap_or_else(|| snapshot.values.size(Key::MaxUserConnections));
            table.text(name).text(&size).text("").maybe(user.pool_mode.map(|mode| mode.name()));
            table.number(most).number(servers).number(0u32);
            table.number(clients.get(name.as_str()).copied().unwrap_or(0));
        }
        Ok(table)
    }

    async fn lists(&self, view: View) -> Result<Table, Refusal> {
        let (pools, logins) = self.by_pool(view).await?;
        let (snapshot, open) = (self.snapshot(), self.proxy.pools());
        let mut databases: Vec<&str> = open
            .iter()
            .filter(|pool| view.has(pool.protocol))
            .map(|pool| pool.spec.database.as_str())
            .collect();
        databases.extend(snapshot.postgres.databases.keys().map(String::as_str));
        if view.both {
            databases.extend(snapshot.mysql.databases.keys().map(String::as_str));
        }
        databases.sort_unstable();
        databases.dedup();
        let servers: usize = open.iter().filter(|pool| view.has(pool.protocol)).map(|pool| pool.opened).sum();
        let mut table = Table::new(tables::LISTS);
        for (name, items) in [
            // The console is one, and has a pool and a user.
            ("databases", databases.len() + 1),
            ("users", snapshot.postgres.users.len() + 1),
            ("peers", 0),
            ("pools", pools.len() + 1),
            ("peer_pools", 0),
            ("free_clients", 0),
            ("used_clients", self.proxy.clients()),
            ("login_clients", logins),
            ("free_servers", 0),
            ("used_servers", servers),
            ("dns_names", self.proxy.hosts().len()),
            ("dns_zones", 0),
            ("dns_queries", 0),
            ("dns_pending", 0),
        ] {
            table.text(name).number(items);
        }
        Ok(table)
    }

    /// Sums of what is shown here, with their averages.
    fn sums(&self, view: View) -> Vec<(&'static str, String, Figures, Figures)> {
        let mut stats = self.stats();
        let sums: Sums = stats.look(&self.proxy);
        sums.into_iter()
            .filter(|((protocol, _), _)| view.both || *protocol == "postgres")
            .map(|(name, figures)| {
                let averages = stats.averages(&name, &figures);
                (name.0, name.1, figures, averages)
            })
            .collect()
    }

    fn stats_table(&self, view: View, columns: &[Column], [totals, averages]: [bool; 2]) -> Table {
        let mut table = view.table(columns);
        let mut rows = self.sums(view);
        if !view.both {
            rows.push(("postgres", PGBOUNCER.to_owned(), Figures::default(), Figures::default()));
        }
        for (protocol, database, sums, means) in rows {
            if view.both {
                table.text(protocol);
            }
            table.text(&database);
            for figures in [totals.then_some(sums), averages.then_some(means)].into_iter().flatten() {
                figures.iter().for_each(|&figure| {
                    table.number(figure);
                });
            }
        }
        table
    }

    fn totals(&self, view: View) -> Table {
        let mut sums = [Figures::default(); 2];
        for (_, _, totals, averages) in self.sums(view) {
            for (sum, figures) in sums.iter_mut().zip([totals, averages]) {
                sum.iter_mut().zip(figures).for_each(|(sum, figure)| *sum = sum.saturating_add(figure));
            }
        }
        let mut table = Table::new(tables::TOTALS);
        for (prefix, sums) in ["total", "avg"].into_iter().zip(sums) {
            for (name, figure) in TOTALS_NAMES.iter().zip(sums) {
                table.text(&format!("{prefix}_{name}")).number(figure);
            }
        }
        table
    }

    async fn clients(&self, view: View) -> Result<Table, Refusal> {
        let parts = self.list(Wanted { clients: true, rows: true, ..Wanted::default() }).await?;
        let mut table = view.table(tables::CLIENTS);
        let calendar = Calendar::new(self.proxy.clock_ns());
        for (protocol, client) in rows(&parts, view, |part| &part.clients) {
            if client.state == ClientState::Login {
                continue;
            }
            view.begin(&mut table, protocol);
            put_client(&mut table, calendar, client, state_of(client));
        }
        Ok(table)
    }

    async fn servers(&self, view: View) -> Result<Table, Refusal> {
        let parts = self.list(Wanted { servers: true, rows: true, ..Wanted::default() }).await?;
        let mut table = view.table(tables::CLIENTS);
        let calendar = Calendar::new(self.proxy.clock_ns());
        for (protocol, server) in rows(&parts, view, |part| &part.servers) {
            let state = match server.state {
                ServerMark::Login => "new",
                ServerMark::Idle => "idle",
                ServerMark::Active => "active",
                ServerMark::Tested => "tested",
            };
            view.begin(&mut table, protocol);
            put_server(&mut table, calendar, server, state);
        }
        Ok(table)
    }

    async fn sockets(&self, view: View, active: bool) -> Result<Table, Refusal> {
        let wanted = Wanted { clients: true, servers: true, rows: true, ..Wanted::default() };
        let parts = self.list(wanted).await?;
        let columns: Vec<Column> = tables::CLIENTS.iter().chain(tables::BUFFERS).copied().collect();
        let mut table = view.table(&columns);
        let calendar = Calendar::new(self.proxy.clock_ns());
        let buffers = |table: &mut Table| {
            tables::BUFFERS.iter().for_each(|_| {
                table.number(0u32);
            });
        };
        for (protocol, client) in rows(&parts, view, |part| &part.clients) {
            let busy = client.inflight > 0 || client.state == ClientState::Waiting;
            if active && !busy {
                continue;
            }
            let state = match client.state {
                ClientState::Login => "cl_login",
                ClientState::Waiting => "cl_waiting",
                ClientState::Active | ClientState::Idle => "cl_active",
            };
            view.begin(&mut table, protocol);
            put_client(&mut table, calendar, client, state);
            buffers(&mut table);
        }
        for (protocol, server) in rows(&parts, view, |part| &part.servers) {
            if active && server.state == ServerMark::Idle {
                continue;
            }
            let state = match server.state {
                ServerMark::Login => "sv_login",
                ServerMark::Idle => "sv_idle",
                ServerMark::Active => "sv_active",
                ServerMark::Tested => "sv_tested",
            };
            view.begin(&mut table, protocol);
            put_server(&mut table, calendar, server, state);
            buffers(&mut table);
        }
        Ok(table)
    }

    async fn pins(&self, view: View) -> Result<Table, Refusal> {
        let wanted = Wanted { clients: true, servers: true, rows: true, pinned: true, ..Wanted::default() };
        let parts = self.list(wanted).await?;
        let mut pids = BTreeMap::new();
        for (protocol, server) in rows(&parts, view, |part| &part.servers) {
            pids.insert((protocol, server.number), server.pid);
        }
        let now_ns = self.proxy.clock_ns();
        let calendar = Calendar::new(now_ns);
        let mut table = Table::new(tables::PINS);
        for (protocol, client) in rows(&parts, view, |part| &part.clients) {
            let reasons: Vec<_> = client.pins.iter().map(|pin| pin.label()).collect();
            let held_ms = (now_ns / 1_000_000).saturating_sub(client.leased_ms);
            put_who(&mut table, protocol, client);
            table.text(if client.inflight > 0 { "active" } else { "idle" }).text(&reasons.join(","));
            table.number(held_ms / 1_000).number(held_ms % 1_000 * 1_000);
            table.text(&calendar.show(client.active_ms));
            match client.server.and_then(|server| pids.get(&(protocol, server))) {
                Some(&pid) if pid > 0 => table.number(pid),
                Some(_) | None => table.null(),
            };
            table.text(&client.cause);
        }
        Ok(table)
    }

    async fn queue(&self, view: View) -> Result<Table, Refusal> {
        let parts =
            self.list(Wanted { clients: true, rows: true, waiting: true, ..Wanted::default() }).await?;
        let mut all: Vec<_> = rows(&parts, view, |part| &part.clients).collect();
        all.sort_by_key(|(_, client)| std::cmp::Reverse(client.waited_ns));
        let mut table = Table::new(tables::QUEUE);
        for (protocol, client) in all {
            put_who(&mut table, protocol, client);
            let waited_us = client.waited_ns / 1_000;
            table.number(waited_us / 1_000_000).number(waited_us % 1_000_000);
        }
        Ok(table)
    }

    async fn statements(&self, view: View) -> Result<Table, Refusal> {
        let parts = self.list(Wanted { rows: true, statements: true, ..Wanted::default() }).await?;
        let mut table = Table::new(tables::STATEMENTS);
        let mut sums: Vec<_> = sum_statements(&parts, view).into_iter().collect();
        sums.sort_by(|(a, of_a), (b, of_b)| of_b.times.sum_ns.cmp(&of_a.times.sum_ns).then_with(|| a.cmp(b)));
        for (name, figures) in sums {
            table.text(name.protocol.name()).text(&name.database).text(&name.user).text(&name.words);
            let times = &figures.times;
            table.number(times.count()).number(figures.errors).number(figures.rows);
            table.number(times.sum_ns / 1_000).number(times.mean_ns() / 1_000);
            for quantile in [0.5, 0.95, 0.99] {
                table.number(times.quantile_ns(quantile) / 1_000);
            }
        }
        Ok(table)
    }

    fn limits(&self, view: View) -> Table {
        let mut table = Table::new(tables::LIMITS);
        table.text("max_client_conn").null().null().null();
        table.number(self.proxy.clients()).number(self.proxy.max_clients());
        table.text("consoles").null().null().null();
        table.number(self.proxy.consoles()).number(weir_wire::limits::CONSOLES);
        let pools = self.proxy.pools();
        for pool in pools.iter().filter(|pool| view.has(pool.protocol)) {
            let (database, user) = (pool.spec.database.as_str(), pool.spec.user.as_str());
            table.text("pool_size").text(pool.protocol.name()).text(database).text(user);
            table.number(pool.opened - pool.outside).number(pool.size);
            if pool.spec.pinned_size > 0 {
                table.text("pinned_pool_size").text(pool.protocol.name()).text(database).text(user);
                table.number(pool.outside).number(pool.spec.pinned_size);
            }
        }
        let mut shared: BTreeMap<(&str, Protocol, &str), (usize, usize)> = BTreeMap::new();
        for pool in pools.iter().filter(|pool| view.has(pool.protocol)) {
            let spec = &pool.spec;
            for (name, of, most) in [
                ("max_db_connections", &spec.database, spec.max_of_database),
                ("max_user_connections", &spec.user, spec.max_of_user),
            ] {
                if most > 0 {
                    let (used, limit) = shared.entry((name, pool.protocol, of)).or_default();
                    *used += pool.opened;
                    *limit = most;
                }
            }
        }
        for ((name, protocol, of), (used, most)) in shared {
            table.text(name).text(protocol.name());
            match name {
                "max_db_connections" => table.text(of).null(),
                _ => table.null().text(of),
            };
            table.number(used).number(most);
        }
        table
    }
}

/// What all workers have counted of each statement. One that came in several ways, or in texts that differ
/// in nothing that is shown, is one.
pub(super) fn sum_statements(parts: &[Part], view: View) -> HashMap<Name, Cost> {
    let mut sums: HashMap<Name, Cost> = HashMap::new();
    for (protocol, row) in rows(parts, view, |part| &part.statements) {
        let (database, user) = (row.database.clone(), row.user.clone());
        let words = row.words.clone().unwrap_or_else(|| OTHER_STATEMENTS.to_owned());
        sums.entry(Name { protocol, database, user, words, apart: row.apart }).or_default().add(&row.figures);
    }
    sums
}

fn is_of(pool: &PoolRow, protocol: Protocol, database: &str) -> bool {
    pool.protocol == protocol && pool.spec.database == database
}

fn rows<'a, T: 'a>(
    parts: &'a [Part],
    view: View,
    of: impl Fn(&'a Part) -> &'a Vec<T> + 'a,
) -> impl Iterator<Item = (Protocol, &'a T)> + 'a {
    parts
        .iter()
        .filter(move |part| view.has(part.protocol))
        .flat_map(move |part| of(part).iter().map(move |row| (part.protocol, row)))
}

/// A mode as the console writes it.
pub(crate) fn mode_name(mode: PoolMode) -> &'static str {
    match mode {
        PoolMode::Session => "session",
        PoolMode::Transaction => "transaction",
        PoolMode::Statement => "statement",
    }
}

/// From `cl_active` to `maxwait_us`.
fn put_counts(table: &mut Table, counts: &Counts, wait_us: u64) {
    for count in [
        counts.cl_active,
        counts.cl_waiting,
        0,
        0,
        counts.sv_active,
        counts.sv_active_cancel,
        counts.sv_being_canceled,
        counts.sv_idle,
        0,
        counts.sv_tested,
        counts.sv_login,
    ] {
        table.number(count);
    }
    table.number(wait_us / 1_000_000).number(wait_us % 1_000_000);
}

fn state_of(client: &ClientRow) -> &'static str {
    match client.state {
        ClientState::Login => "login",
        ClientState::Active => "active",
        ClientState::Idle => "idle",
        ClientState::Waiting => "waiting",
    }
}

fn put_who(table: &mut Table, protocol: Protocol, client: &ClientRow) {
    table.text(protocol.name()).number(client.number).text(&client.user).text(&client.database);
    table.text(&client.application_name).text(&peer_of(&client.peer).0);
}

/// Address and port, as PgBouncer writes them.
fn peer_of(peer: &Peer) -> (String, u16) {
    match peer {
        Peer::Tcp(address) => (address.ip().to_canonical().to_string(), address.port()),
        Peer::Unix { .. } => ("unix".to_owned(), 0),
        Peer::Unknown => ("unknown".to_owned(), 0),
    }
}

fn put_client(table: &mut Table, calendar: Calendar, client: &ClientRow, state: &str) {
    let (address, port) = peer_of(&client.peer);
    let wait_us = client.waited_ns / 1_000;
    let database = if client.console && client.database.is_empty() { WEIR } else { &client.database };
    let named =
        |name: &str, otherwise: &str| if name.is_empty() { otherwise.to_owned() } else { name.to_owned() };
    table.text("C").text(&named(&client.user, "(nouser)")).text(&named(database, "(nodb)")).text("none");
    table.text(state).text(&address).number(port);
    match client.local {
        Some(local) => table.text(&local.ip().to_canonical().to_string()).number(local.port()),
        None => table.text(if address == "unix" { "unix" } else { "" }).number(0u32),
    };
    table.text(&calendar.show(client.connected_ms)).text(&calendar.show(client.active_ms));
    table.number(wait_us / 1_000_000).number(wait_us % 1_000_000).number(0u32);
    table.text(&format!("{:#x}", client.number));
    table.text(&client.server.map(|server| format!("{server:#x}")).unwrap_or_default());
    table.number(0u32).text(&tls_of(client.tls)).text(&client.application_name).number(0u32);
    table.number(client.number);
}

fn put_server(table: &mut Table, calendar: Calendar, server: &ServerRow, state: &str) {
    table.text("S").text(&server.user).text(&server.database).text("none").text(state);
    match &server.target {
        Target::Tcp(address) => table.text(&address.ip().to_canonical().to_string()).number(address.port()),
        Target::Unix(path) => {
            let text = path.display().to_string();
            let port: u16 =
                text.rsplit_once(".s.PGSQL.").and_then(|(_, port)| port.parse().ok()).unwrap_or(0);
            table.text("unix").number(port)
        }
    };
    match server.local {
        Some(local) => table.text(&local.ip().to_canonical().to_string()).number(local.port()),
        None => table.text("unix").number(0u32),
    };
    table.text(&calendar.show(server.opened_ms)).text(&calendar.show(server.since_ms));
    table.number(0u32).number(0u32).number(u32::from(server.close_needed));
    table.text(&format!("{:#x}", server.number));
    table.text(&server.client.map(|client| format!("{client:#x}")).unwrap_or_default());
    table.number(i32::try_from(server.pid).unwrap_or(0)).text(&tls_of(server.tls)).text("").number(0u32);
    table.number(server.number);
}

fn tls_of(tls: Option<(&'static str, &'static str)>) -> String {
    tls.map(|(version, cipher)| format!("{version}/{cipher}")).unwrap_or_default()
}
