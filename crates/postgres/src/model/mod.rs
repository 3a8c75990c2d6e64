//! Many clients over few servers, compared with each client on a server of its own: the same requests must
//! get the same replies, whatever the order of events, however the bytes are split and whichever clients
//! disconnect.

mod server;

use crate::back::Back;
use crate::cancel::ServerKey;
use crate::error::field;
use crate::front::Front;
use crate::testing::{c, front_with, reported};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof, proptest};
use server::Server;
use std::collections::HashMap;
use weir_session::Back as _;
use weir_session::Front as _;
use weir_wire::{Boundary, Found, INTERNAL, Needs, Owner, Step};

/// One thing a client does: bytes that are one or more requests.
#[derive(Clone)]
struct Act {
    bytes: Vec<u8>,
}

impl std::fmt::Debug for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for message in messages(&self.bytes) {
            let text = String::from_utf8_lossy(&message[5..]).replace('\0', ".");
            write!(f, "{}({}) ", char::from(message[0]), text)?;
        }
        Ok(())
    }
}

fn act(bytes: Vec<u8>) -> Act {
    Act { bytes }
}

fn text() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => Just("select 'a'"),
        4 => Just("select 2"),
        2 => Just("show timezone"),
        1 => Just("select 1/0"),
        1 => Just("set timezone to 'CET'"),
        1 => Just("set timezone to 'EST'"),
    ]
}

fn transactional() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => text(), 1 => Just("begin"), 1 => Just("commit"), 1 => Just("rollback")]
}

/// What may stand in a batch with others.
fn rare() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        6 => transactional(),
        1 => Just("deallocate all"),
        1 => Just("deallocate a"),
        1 => Just("execute a"),
        1 => Just("listen x"),
        1 => Just("unlisten *"),
    ]
}

/// What goes back to the value named at login does so at the end of its batch: a later message of the same
/// batch still sees the server's own default.
fn going_back() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("reset timezone"), Just("discard all")]
}

fn simple() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        8 => rare(),
        1 => going_back(),
        1 => Just("select 3;select 1/0;select 4"),
        1 => Just("begin;select 3;commit;select 4"),
    ]
}

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => Just(""), 3 => Just("a"), 1 => Just("b")]
}

/// Messages of a batch, without Sync.
fn message(texts: impl Strategy<Value = &'static str> + 'static) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => (name(), texts).prop_map(|(n, t)| c::parse(n, t)),
        1 => name().prop_map(|n| c::parse(n, "bad")),
        4 => name().prop_map(|n| [c::bind(n), c::execute()].concat()),
        1 => name().prop_map(|n| [c::bind_to("p", n), c::execute_of("p")].concat()),
        1 => name().prop_map(c::describe),
        2 => name().prop_map(c::close),
        1 => Just(c::flush()),
    ]
}

fn batch(texts: impl Strategy<Value = &'static str> + 'static) -> impl Strategy<Value = Act> {
    prop::collection::vec(message(texts), 0..6).prop_map(|m| act([m.concat(), c::sync()].concat()))
}

fn copy() -> impl Strategy<Value = Act> {
    let data = [c::copy_data(b"1\n"), c::copy_data(b"22\n")].concat();
    let simple = act([c::q("copy t from stdin"), data.clone(), c::copy_done()].concat());
    let start = [c::parse("", "copy t from stdin"), c::bind(""), c::execute(), c::sync()].concat();
    let rest = [start, data, c::copy_done(), c::close(""), c::sync()].concat();
    let extended = act(rest.clone());
    // The Sync in front of the data is none: what goes before belongs to the same batch.
    let behind = transactional()
        .prop_map(move |text| act([c::parse("", text), c::bind(""), c::execute(), rest.clone()].concat()));
    prop_oneof![1 => Just(simple), 1 => Just(extended), 1 => behind]
}

/// Everything; the next act begins when the last is answered.
fn careful() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => simple().prop_map(|t| act(c::q(t))),
        4 => batch(transactional()),
        2 => batch(rare()),
        1 => going_back().prop_map(|t| {
            act([c::parse("", t), c::bind(""), c::execute(), c::close(""), c::sync()].concat())
        }),
        1 => copy(),
        1 => Just(act(c::function_call())),
    ]
}

/// What may be sent ahead of the answers: a batch that depends on the outcome of an earlier one is left out.
fn hasty() -> impl Strategy<Value = Act> {
    let whole = |t: &'static str| [c::parse("", t), c::bind(""), c::execute(), c::sync()].concat();
    prop_oneof![
        4 => text().prop_map(|t| act(c::q(t))),
        4 => text().prop_map(move |t| act(whole(t))),
        1 => Just(act(whole("bad"))),
    ]
}

struct Client {
    id: Owner,
    front: Front,
    script: Vec<Act>,
    /// A server of its own, which has had everything that was sent.
    direct: Server,
    /// Acts sent, and bytes of the next one.
    sent: usize,
    sent_bytes: usize,
    input: Vec<u8>,
    output: Vec<u8>,
    found: Option<Found>,
    server: Option<usize>,
    /// Requests on a server that is shared with others.
    shared: Option<usize>,
    gone: bool,
    /// Everything was sent and answered.
    finished: bool,
}

struct Pooled {
    back: Back,
    server: Server,
    to_server: Vec<u8>,
    owner: Option<Owner>,
    /// Being cleaned up after a client that left.
    cleaning: bool,
}

impl Pooled {
    fn new() -> Self {
        Pooled {
            back: Back::new(ServerKey::default(), reported(), 3),
            server: Server::new("UTC"),
            to_server: Vec::new(),
            owner: None,
            cleaning: false,
        }
    }
}

struct Pool {
    clients: Vec<Client>,
    servers: Vec<Pooled>,
    window: usize,
    share: bool,
    random: u64,
}

fn messages(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut rest, mut all) = (bytes, Vec::new());
    while rest.len() >= 5 {
        let total = u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize + 1;
        if rest.len() < total {
            break;
        }
        let (one, more) = rest.split_at(total);
        all.push(one);
        rest = more;
    }
    all
}

fn readies(bytes: &[u8]) -> usize {
    messages(bytes).iter().filter(|m| m[0] == b'Z').count()
}

/// Parameters may be told at another moment (a reset goes back to what was named at login); and of two errors
/// in a failed transaction the other may come first. All else counts.
fn comparable(bytes: &[u8]) -> Vec<String> {
    let mut failed = false;
    let text = |message: &&[u8]| match (message[0], field(&message[5..], b'C')) {
        (b'E', Some(b"25P02" | b"42P05")) => "25P02 or 42P05".to_owned(),
        (b'E', Some(b"26000")) if failed => "25P02 or 42P05".to_owned(),
        (kind, _) => {
            failed = if kind == b'Z' { message[5] == b'E' } else { failed };
            String::from_utf8_lossy(message).into_owned()
        }
    };
    messages(bytes).iter().filter(|m| m[0] != b'S').map(text).collect()
}

impl Pool {
    fn new(scripts: Vec<(bool, Vec<Act>)>, servers: usize, window: usize, share: bool, seed: u64) -> Self {
        let client = |(at, (zone, script)): (usize, (bool, Vec<Act>))| Client {
            id: at as u64 + 1,
            front: front_with(at as u32 + 1, if zone { &[("timezone", "JST")] } else { &[] }),
            script,
            direct: Server::new(if zone { "JST" } else { "UTC" }),
            sent: 0,
            sent_bytes: 0,
            input: Vec::new(),
            output: Vec::new(),
            found: None,
            server: None,
            shared: None,
            gone: false,
            finished: false,
        };
        Pool {
            clients: scripts.into_iter().enumerate().map(client).collect(),
            servers: (0..servers).map(|_| Pooled::new()).collect(),
            window,
            share,
            random: seed | 1,
        }
    }

    fn random(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 33) as usize % below
    }

    fn server_for(&mut self, at: usize, needs: Needs) -> Option<usize> {
        let client = &self.clients[at];
        if client.server.is_some() {
            return client.server;
        }
        if client.shared.is_some() {
            // What is under way for it decides where the next one goes.
            return client.shared.filter(|_| needs.shareable);
        }
        let free = self.servers.iter().position(|s| s.owner.is_none() && !s.cleaning && s.back.is_reusable());
        if let Some(free) = free {
            self.servers[free].owner = Some(client.id);
            self.clients[at].server = Some(free);
            return Some(free);
        }
        if !self.share || !needs.shareable {
            return None;
        }
        let open =
            self.servers.iter().position(|s| s.owner.is_none() && !s.cleaning && s.back.queued() < 6)?;
        self.clients[at].shared = Some(open);
        Some(open)
    }

    /// A client sends some bytes and whatever is found in them is dispatched.
    fn client_turn(&mut self, at: usize) -> bool {
        let n = self.random(200) + 1;
        let client = &mut self.clients[at];
        if client.gone {
            return false;
        }
        let mut moved = false;
        let (expected, have) = (readies(&client.direct.output), readies(&client.output));
        if client.sent == client.script.len() && expected == have {
            client.finished = true;
            self.vanish(at);
            return true;
        }
        if client.sent < client.script.len() && expected < have + self.window {
            let act = &client.script[client.sent];
            let end = (client.sent_bytes + n).min(act.bytes.len());
            client.input.extend_from_slice(&act.bytes[client.sent_bytes..end]);
            client.sent_bytes = end;
            if end == act.bytes.len() {
                client.direct.feed(&act.bytes);
                client.sent += 1;
                client.sent_bytes = 0;
            }
            moved = true;
        }
        loop {
            let client = &mut self.clients[at];
            let found = match client.found.take() {
                Some(found) => found,
                None => client.front.find(&client.input, &mut client.output).unwrap(),
            };
            let (len, needs, whole) = match found {
                Found::Incomplete => return moved,
                Found::Drop { len } | Found::Answered { len } => {
                    client.input.drain(..len);
                    moved = true;
                    continue;
                }
                Found::Request { len, needs } => (len, needs, true),
                Found::Part { len, needs } => (len, needs, false),
                Found::Kill { .. } | Found::Login { .. } | Found::Goodbye => panic!("{found:?}"),
            };
            let Some(server) = self.server_for(at, needs) else {
                self.clients[at].found = Some(found);
                return moved;
            };
            let client = &mut self.clients[at];
            let server = &mut self.servers[server];
            let bytes: Vec<u8> = client.input.drain(..len).collect();
            let (front, out) = (&mut client.front, &mut server.to_server);
            if needs.continues {
                server.back.extend(front, &bytes, whole, out).unwrap();
            } else {
                server.back.dispatch(front, client.id, &bytes, whole, out).unwrap();
            }
            moved = true;
        }
    }

    /// A server reads some bytes, and some of its answers are read.
    fn server_turn(&mut self, n: usize) -> bool {
        let (read, written) = (self.random(300) + 1, self.random(300) + 1);
        let pooled = &mut self.servers[n];
        let read = read.min(pooled.to_server.len());
        let bytes: Vec<u8> = pooled.to_server.drain(..read).collect();
        pooled.server.feed(&bytes);
        // What is not taken stays in front: a reader keeps what it could not use.
        let mut have = written.min(pooled.server.sent);
        let mut moved = read > 0;
        loop {
            let pooled = &mut self.servers[n];
            let owner = pooled.back.head().filter(|&o| o != INTERNAL).or(pooled.owner);
            let at = self.clients.iter().position(|c| Some(c.id) == owner && !c.gone);
            let mut to_client = Vec::new();
            let front = at.map(|at| &mut self.clients[at].front);
            let input: Vec<u8> = pooled.server.output[..have].to_vec();
            let step =
                pooled.back.handle_reply(front, &input, &mut to_client, &mut pooled.to_server).unwrap();
            if let Step::Forward(len) | Step::Consumed(len) = step {
                if matches!(step, Step::Forward(_)) {
                    to_client.extend_from_slice(&input[..len]);
                }
                pooled.server.output.drain(..len);
                pooled.server.sent -= len;
                have -= len;
                moved = true;
            }
            match at {
                Some(at) => self.clients[at].output.extend_from_slice(&to_client),
                None => assert!(to_client.is_empty(), "a reply for nobody"),
            }
            match step {
                Step::Incomplete => return moved,
                Step::Done { owner, boundary } => {
                    moved = true;
                    self.done(n, owner, boundary);
                }
                Step::Forward(_) | Step::Consumed(_) => {}
            }
        }
    }

    fn done(&mut self, n: usize, owner: Owner, boundary: Boundary) {
        let pooled = &mut self.servers[n];
        let at = self.clients.iter().position(|c| c.id == owner && !c.gone);
        if let Some(at) = at
            && self.clients[at].front.outstanding == 0
        {
            let client = &mut self.clients[at];
            client.shared = None;
            // Data of a COPY that failed may be sent behind it.
            let stays = !client.front.pins().is_empty() || client.front.is_mid_message(0);
            if client.server == Some(n) && boundary == Boundary::Idle && !stays && pooled.back.queued() == 0 {
                assert!(pooled.back.is_reusable());
                client.server = None;
                pooled.owner = None;
            }
        }
        if pooled.cleaning && pooled.back.queued() == 0 {
            if pooled.back.is_broken() {
                // What it has done since its client left outlives a reset.
                *pooled = Pooled::new();
            } else if pooled.back.is_reusable() {
                pooled.cleaning = false;
            } else {
                pooled.back.reset(&mut pooled.to_server);
            }
        }
    }

    fn vanish(&mut self, at: usize) {
        let client = &mut self.clients[at];
        if client.gone {
            return;
        }
        client.gone = true;
        let Some(n) = client.server.take().or(client.shared.take()) else { return };
        let pooled = &mut self.servers[n];
        pooled.back.forget(client.id, &mut pooled.to_server);
        if pooled.back.is_broken() {
            // It left in the middle of a message, and had the server for itself.
            assert_eq!(pooled.owner, Some(client.id));
            *pooled = Pooled::new();
            return;
        }
        if pooled.owner == Some(client.id) {
            pooled.owner = None;
            pooled.cleaning = true;
            if pooled.back.queued() == 0 {
                pooled.back.reset(&mut pooled.to_server);
            }
        }
    }

    fn run(&mut self, vanishing: usize) {
        let mut idle = 0;
        let mut left = vanishing;
        while idle < 2000 {
            let (clients, servers) = (self.clients.len(), self.servers.len());
            let moved = match self.random(clients + servers) {
                n if n < clients => self.client_turn(n),
                n => self.server_turn(n - clients),
            };
            idle = if moved { 0 } else { idle + 1 };
            if left > 0 && self.random(60) == 0 {
                left -= 1;
                let at = self.random(clients);
                self.vanish(at);
            }
        }
    }

    fn check(&self) {
        for client in &self.clients {
            // What the client sent must bring what a server of its own would have said.
            let (got, wanted) = (comparable(&client.output), comparable(&client.direct.output));
            assert!(client.finished || client.gone, "client {} starved", client.id);
            if client.finished {
                let same = got.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
                assert!(
                    got == wanted,
                    "client {} after {same}: got {:?}, not {:?}",
                    client.id,
                    got.get(same),
                    wanted.get(same)
                );
            }
        }
        let mut zones: HashMap<&str, &str> = HashMap::new();
        for pooled in &self.servers {
            assert!(pooled.back.is_reusable(), "{:?}", pooled.back);
            assert!(
                pooled.server.is_clean() && pooled.to_server.is_empty() && pooled.server.output.is_empty()
            );
            for (name, zone) in &pooled.server.parsed {
                let known = zones.entry(name).or_insert(zone);
                assert_eq!(known, zone, "{name} was parsed under two settings");
                assert!(pooled.server.zone_of(name).is_none_or(|z| z == zone));
            }
        }
    }
}

fn scripts(one: impl Strategy<Value = Act>) -> impl Strategy<Value = Vec<(bool, Vec<Act>)>> {
    prop::collection::vec((any::<bool>(), prop::collection::vec(one, 1..12)), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn clients_that_wait_for_their_answers(scripts in scripts(careful()), servers in 1..3_usize, seed in any::<u64>()) {
        let mut pool = Pool::new(scripts, servers, 1, false, seed);
        pool.run(0);
        assert!(servers < 4 && pool.clients.iter().all(|c| c.output.len() < 1 << 20));
        pool.check();
    }

    #[test]
    fn clients_that_share_their_servers(scripts in scripts(hasty()), servers in 1..3_usize, seed in any::<u64>()) {
        let mut pool = Pool::new(scripts, servers, 3, true, seed);
        pool.run(0);
        pool.check();
    }

    #[test]
    fn clients_that_send_ahead_of_their_answers(scripts in scripts(careful()), servers in 1..3_usize, share in any::<bool>(), seed in any::<u64>()) {
        let mut pool = Pool::new(scripts, servers, 3, share, seed);
        pool.run(0);
        pool.check();
    }

    #[test]
    fn clients_that_vanish(scripts in scripts(careful()), servers in 1..3_usize, seed in any::<u64>()) {
        let mut pool = Pool::new(scripts, servers, 1, false, seed);
        pool.run(3);
        pool.check();
    }
}

/// The statement that sets was prepared in a batch that failed, so that it runs in one that prepares another.
#[test]
fn a_literal_parsed_behind_a_set_of_its_own_batch_keeps_its_meaning() {
    let sets = [c::parse("", "set timezone to 'CET'"), c::parse("a", "bad"), c::sync()].concat();
    let prepares = [c::bind(""), c::execute(), c::parse("a", "select 'a'"), c::sync()].concat();
    let script = vec![act(sets), act(prepares), act(c::q("execute a"))];
    for seed in 1..20 {
        let mut pool = Pool::new(vec![(false, script.clone())], 1, 1, false, seed);
        pool.run(0);
        pool.check();
    }
}

/// The pin of the client's own names ends with DEALLOCATE ALL, but not where a name comes behind it.
#[test]
fn a_name_given_behind_deallocate_all_in_one_batch_is_never_anothers() {
    let prepares = [c::parse("", "deallocate all"), c::sync()].concat();
    let gives = [c::bind(""), c::execute(), c::parse("b", "execute a"), c::sync()].concat();
    let gives = vec![act(c::q("select 'a'")), act(prepares), act(gives), act(c::q("select 'a'"))];
    let uses = [c::bind("b"), c::execute(), c::sync()].concat();
    let uses = vec![act(c::q("select 'a'")), act(c::q("select 'a'")), act(uses)];
    for seed in 1..200 {
        let mut pool = Pool::new(vec![(false, gives.clone()), (false, uses.clone())], 1, 1, false, seed);
        pool.run(0);
        pool.check();
    }
}

/// Whether the transaction has failed is not known when EXECUTE is sent ahead.
#[test]
fn a_statement_that_executes_in_a_failed_transaction_keeps_the_names_of_others() {
    let opens = [c::parse("a", "show timezone"), c::parse("", "begin"), c::bind(""), c::execute(), c::sync()];
    let fails = [c::bind("b"), c::execute(), c::sync()].concat();
    let executes = [c::parse("", "execute a"), c::sync()].concat();
    let describes = [c::describe("a"), c::sync()].concat();
    let script =
        vec![act(c::q("select 'a'")), act(opens.concat()), act(fails), act(executes), act(describes)];
    for seed in 1..200 {
        let mut pool = Pool::new(vec![(false, script.clone())], 1, 3, false, seed);
        pool.run(0);
        pool.check();
    }
}

/// What was set when the statement was prepared must come back for it, and that fails with the transaction.
#[test]
fn a_statement_that_executes_in_a_failed_transaction_is_refused_once() {
    let parses = [c::parse("a", "set timezone to 'CET'"), c::sync()].concat();
    let fails = [c::bind("b"), c::execute(), c::sync()].concat();
    let script =
        vec![act(c::q("begin")), act(parses), act(c::function_call()), act(fails), act(c::q("execute a"))];
    for seed in 1..200 {
        let mut pool = Pool::new(vec![(false, script.clone())], 1, 3, false, seed);
        pool.run(0);
        pool.check();
    }
}

/// What its client named at its start comes back behind the request that takes it away: what follows waits
/// for that, but not the data for which the server waits, nor the end of the batch behind them.
#[test]
fn the_data_of_a_copy_do_not_wait_for_the_answer_of_its_request() {
    let data = [c::copy_data(b"1\n"), c::copy_data(b"22\n"), c::copy_done()].concat();
    let runs = |name: &str, text: &str| [c::parse(name, text), c::bind(name), c::execute()].concat();
    let end = [data.clone(), c::close(""), c::sync()].concat();
    let ends_named = [data.clone(), c::close("b"), c::sync()].concat();
    let copy = "copy t from stdin";
    let scripts = [
        vec![[runs("", "reset timezone"), runs("", copy), c::sync(), end.clone()].concat()],
        vec![[c::parse("b", "select 'b'"), runs("", copy), c::sync(), ends_named].concat()],
        vec![[c::q("reset timezone;copy t from stdin"), data.clone()].concat()],
        vec![c::q("begin"), [runs("", "discard all"), c::close(""), c::sync()].concat(), c::q("rollback")],
        vec![
            [c::parse("b", "select 'b'"), runs("", "set timezone to 'CET'"), runs("", copy), c::sync(), data]
                .concat(),
            [c::parse("", "show timezone"), c::bind(""), c::execute(), c::close("b"), c::sync()].concat(),
        ],
    ];
    for (script, seed) in scripts.iter().flat_map(|script| (1..100).map(move |seed| (script, seed))) {
        let mut acts: Vec<Act> = script.iter().cloned().map(act).collect();
        // The unnamed statement that resets is still there where its Close was skipped.
        acts.push(act([runs("", copy), c::sync(), end.clone()].concat()));
        acts.push(act(c::q("show timezone")));
        let mut pool = Pool::new(vec![(true, acts)], 1, 1, false, seed);
        pool.run(0);
        pool.check();
    }
}

/// Whether a RESET stays is not known while another request was sent ahead of its answer.
#[test]
fn a_statement_parsed_behind_a_reset_that_is_in_doubt_is_run_under_what_was_in_force() {
    let runs = [c::bind(""), c::execute(), c::sync()].concat();
    let script = vec![
        act(c::q("discard all")),
        act(runs.clone()),
        act(c::q("reset timezone")),
        act(c::q("listen x")),
        act([c::parse("", "select 'a'"), c::sync()].concat()),
        act(runs),
    ];
    for seed in 1..400 {
        let other = (false, vec![act(c::q("select 'a'"))]);
        let mut pool = Pool::new(vec![other, (false, script.clone())], 1, 3, false, seed);
        pool.run(0);
        pool.check();
    }
}

/// A Parse that is refused, because its name is taken, leaves the unnamed statement as it was.
#[test]
fn an_unnamed_statement_outlives_a_refused_parse_of_a_name() {
    let script = vec![
        act(c::function_call()),
        act([c::parse("a", "set timezone to 'CET'"), c::parse("", "select 'a'"), c::sync()].concat()),
        act([c::bind("a"), c::execute(), c::parse("", "select 'a'"), c::sync()].concat()),
        act([c::parse("a", "select 'a'"), c::sync()].concat()),
        act([c::bind(""), c::execute(), c::sync()].concat()),
    ];
    let mut pool = Pool::new(vec![(false, script)], 1, 1, false, 1);
    pool.run(0);
    pool.check();
}

/// The server says nothing of what a batch with a COPY has done before its Sync: without one it waits for
/// ever, and with a Sync of Weir's own it would keep what its client never asked it to keep.
#[test]
fn a_client_that_vanishes_between_its_data_and_their_sync_leaves_no_server_waiting() {
    let copies = [c::parse("", "copy t from stdin"), c::bind(""), c::execute(), c::sync()].concat();
    let data = [c::copy_data(b"1\n"), c::copy_done()].concat();
    for (seed, set) in (1..200).flat_map(|seed| [(seed, false), (seed, true)]) {
        let sets = [c::parse("", "set timezone to 'CET'"), c::bind(""), c::execute()].concat();
        let first = if set { sets } else { Vec::new() };
        let cut = vec![act([first, copies.clone(), data.clone()].concat())];
        let asks = vec![act(c::q("show timezone")), act(c::q("show timezone"))];
        let mut pool = Pool::new(vec![(false, cut), (false, asks)], 1, 1, false, seed);
        // It goes when it has sent all of that and is owed no ReadyForQuery.
        pool.run(0);
        pool.clients[0].finished = false;
        pool.check();
    }
}
