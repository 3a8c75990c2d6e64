//! A model client: it logs in, runs a script, and checks every packet against an engine of its own; or it
//! only sends a KILL QUERY.
//!
//! Owns: one connection and the expected answers on it. Must not know: how Weir does it.

use super::engine::{Engine, SCHEMAS};
use super::excuse;
use super::script::Script;
use super::session::put_quit;
use super::wire::{
    EOF, ERR, command, error_of, flag, packet, put, put_command, put_string, status, take, take_text,
    take_u8, take_u32,
};
use crate::actor::{Order, Outbox, Stage};
use crate::network::{EndId, Read};
use crate::oracle::is_not_older;
use crate::plan::{Line, PASSWORD, Part};
use crate::postgres::script::Next;
use std::collections::VecDeque;
use weir_auth::{Secret, native};
use weir_session::Protocol;
use weir_session::login::TlsOffer;

/// A packet: its number and its payload.
type Packet = (u8, Vec<u8>);

/// A client.
pub struct MyClient {
    /// Its name: the first part of its tags.
    pub name: String,
    /// It is over.
    pub over: bool,
    /// It only ends what this client runs.
    pub kills_for: Option<u32>,
    user: String,
    schema: Option<String>,
    listener: u32,
    end: EndId,
    phase: Phase,
    capabilities: u32,
    /// Weir's number of it.
    id: u32,
    /// Whom to kill.
    target: u32,
    input: Vec<u8>,
    outbox: Outbox,
    /// What it would be like to have the database for oneself.
    shadow: Engine,
    /// The same, had the last request been cancelled.
    if_cancelled: Option<Box<Cancelled>>,
    expected: VecDeque<Packet>,
    /// Entries committed by requests whose answers are still to come, with the number of expected packets
    /// that must have come before they are confirmed.
    pending: VecDeque<(u64, String)>,
    sent_packets: u64,
    got_packets: u64,
    script: Script,
    next_at_ns: u64,
    /// Bytes it reads at a time, and its pause between reads in nanoseconds.
    manner: (usize, u64),
    next_read_ns: u64,
    reads: u32,
    /// It was told that this is the end.
    fatal: bool,
    /// Those were the database's own words.
    farewell: bool,
    half_shut: bool,
    /// It asked for its own cancellation and that is under way.
    asked_cancel: bool,
    /// It has asked for the cancellation of this request.
    has_asked: bool,
    said_goodbye: bool,
    /// It only brings a KILL, and does not wait for an answer.
    hurry: bool,
    /// What it does is written.
    part: Option<Part>,
}

/// How somebody who is to end another one's statement logs in.
pub struct Errand {
    /// To which listener.
    pub listener: u32,
    /// As which user.
    pub user: String,
    /// In which schema: where that is known, Weir needs no server for the login.
    pub schema: Option<String>,
    /// With which capabilities.
    pub capabilities: u32,
    /// It does not wait for an answer.
    pub hurry: bool,
}

struct Cancelled {
    shadow: Engine,
    expected: VecDeque<Packet>,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Greeting,
    Verdict,
    Session,
    /// KILL QUERY was sent.
    Killing,
}

/// After this many reads a slow reader reads twice as much at a time, so that it ends.
const PATIENT_READS: u32 = 64;

impl MyClient {
    /// It connects.
    pub fn new(number: u32, listener: u32, stage: &mut Stage<'_>) -> Self {
        let user = format!("user{}", stage.dice.below(u64::from(stage.plan.users)));
        let mut client = MyClient::connect(format!("c{number}"), listener, user, stage);
        let optional = [
            (flag::DEPRECATE_EOF, 3, 4),
            (flag::SESSION_TRACK, 3, 4),
            (flag::MULTI_STATEMENTS, 3, 4),
            (flag::FOUND_ROWS, 1, 6),
        ];
        for (flag, of, all) in optional {
            if stage.dice.below(all) < of {
                client.capabilities |= flag;
            }
        }
        if stage.dice.below(3) > 0 {
            let schema = if stage.dice.one_in(30) { "nowhere" } else { *stage.dice.pick(&SCHEMAS) };
            client.schema = Some(schema.to_owned());
            client.capabilities |= flag::CONNECT_WITH_DB;
        }
        if stage.dice.one_in(6) {
            client.manner = (stage.dice.spread(16, 4_096) as usize, stage.dice.spread(10_000, 2_000_000));
        }
        let multi = client.capabilities & flag::MULTI_STATEMENTS != 0;
        client.script = Script::new(&client.name, stage.dice.split(), stage.plan, multi);
        client
    }

    /// It connects to end what another one runs: `client` is that one's actor, `target` its number.
    pub fn killer(client: u32, target: u32, errand: Errand, stage: &mut Stage<'_>) -> Self {
        let Errand { listener, user, schema, capabilities, hurry } = errand;
        let mut killer = MyClient::connect(format!("killer of {client}"), listener, user, stage);
        (killer.kills_for, killer.target) = (Some(client), target);
        (killer.schema, killer.capabilities, killer.hurry) = (schema, capabilities, hurry);
        killer
    }

    /// It connects, and will do what is written.
    pub fn play(number: u32, listener: u32, part: Part, stage: &mut Stage<'_>) -> Self {
        let mut client =
            MyClient::connect(format!("c{number}"), listener, format!("user{}", part.user), stage);
        stage.net().narrow(client.end, part.pipe);
        client.capabilities |= flag::DEPRECATE_EOF | flag::SESSION_TRACK | flag::CONNECT_WITH_DB;
        client.schema = Some(SCHEMAS[0].to_owned());
        client.part = Some(part);
        client
    }

    fn connect(name: String, listener: u32, user: String, stage: &mut Stage<'_>) -> Self {
        let end = stage.net().peer_connect(stage.me, listener);
        MyClient {
            script: Script::new(&name, stage.dice.split(), stage.plan, false),
            name,
            over: false,
            kills_for: None,
            user,
            schema: None,
            listener,
            end,
            phase: Phase::Greeting,
            capabilities: flag::LONG_PASSWORD
                | flag::PROTOCOL_41
                | flag::TRANSACTIONS
                | flag::SECURE_CONNECTION
                | flag::MULTI_RESULTS
                | flag::PLUGIN_AUTH
                | flag::PLUGIN_AUTH_LENENC,
            id: 0,
            target: 0,
            input: Vec::new(),
            outbox: Outbox::default(),
            shadow: Engine::new(0, 0, None, [0; 20], true),
            if_cancelled: None,
            expected: VecDeque::new(),
            pending: VecDeque::new(),
            sent_packets: 0,
            got_packets: 0,
            next_at_ns: 0,
            manner: (1 << 18, 0),
            next_read_ns: 0,
            reads: 0,
            fatal: false,
            farewell: false,
            half_shut: false,
            asked_cancel: false,
            has_asked: false,
            said_goodbye: false,
            hurry: false,
            part: None,
        }
    }

    /// What it waits for, if it waits.
    pub fn waits_for(&self) -> Option<String> {
        let (name, phase) = (&self.name, self.phase);
        (!self.over).then(|| match self.expected.front() {
            Some(packet) => format!("{name} waits for {}", shown(packet)),
            None => format!(
                "{name} waits for nothing ({phase:?}, half shut {}, told {}, cancel {}, unsent {})",
                self.half_shut,
                self.fatal,
                self.asked_cancel,
                self.outbox.len()
            ),
        })
    }

    /// Takes its turn.
    pub fn turn(&mut self, stage: &mut Stage<'_>) {
        self.read(stage);
        if !self.over && self.phase == Phase::Session && !self.fatal && !self.half_shut {
            match self.part.is_some() {
                true => while self.play_on(stage) {},
                false => self.act(stage),
            }
        }
        let unsent = self.outbox.len();
        if !self.over && self.outbox.write(stage, self.end) {
            if unsent > 0 && self.outbox.is_empty() {
                stage.wake_at(self.next_at_ns);
            }
        } else if !self.over {
            // The read side tells what was said last.
            self.outbox.clear();
            self.read(stage);
            if !self.over {
                stage.wake_at(stage.now_ns + 1_000_000);
            }
        }
    }

    fn read(&mut self, stage: &mut Stage<'_>) {
        while !self.over {
            if stage.now_ns < self.next_read_ns {
                if self.next_read_ns < u64::MAX {
                    stage.wake_at(self.next_read_ns);
                }
                return;
            }
            let read = stage.net().peer_read(self.end, self.manner.0);
            match read {
                Read::Bytes(bytes) => {
                    self.next_read_ns = stage.now_ns + self.manner.1;
                    self.reads += 1;
                    if self.reads.is_multiple_of(PATIENT_READS) {
                        self.manner.0 *= 2;
                    }
                    self.take(bytes, stage);
                    self.packets(stage);
                }
                Read::Nothing => return,
                Read::Eof => return self.ended(stage, false),
                Read::Reset => return self.ended(stage, true),
            }
        }
    }

    /// What TLS makes of these bytes goes to what is there to be read.
    fn take(&mut self, bytes: Vec<u8>, stage: &mut Stage<'_>) {
        match self.outbox.open(bytes) {
            Ok(plain) => self.input.extend_from_slice(&plain),
            // What Weir had to say before it knew of the wish for TLS: no more than that the connection ends.
            Err(_) if self.phase != Phase::Session => self.ended(stage, true),
            Err(text) => {
                let name = &self.name;
                stage.oracle.broken(|| format!("{name}: {text}"));
            }
        }
    }

    fn packets(&mut self, stage: &mut Stage<'_>) {
        let mut input = std::mem::take(&mut self.input);
        let mut at = 0;
        while !self.over
            && let Some((seq, payload, total)) = packet(&input[at..])
        {
            let lost = payload.first() == Some(&ERR) && matches!(error_of(payload).0, 1158 | 3024);
            if self.fatal && lost && self.farewell {
                // Weir finds out a moment later that this server is gone, or that the request behind takes
                // too long.
            } else if self.fatal {
                let name = &self.name;
                let text = shown(&(seq, payload.to_vec()));
                stage.oracle.broken(|| format!("{name}: {text} after the last words"));
            } else if self.phase == Phase::Session {
                self.answer((seq, payload.to_vec()), stage);
            } else if self.login(seq, payload, stage).is_none() {
                let text =
                    format!("{}: unexpected {} in the login", self.name, shown(&(seq, payload.to_vec())));
                stage.oracle.broken(|| text);
            }
            at += total;
        }
        input.drain(..at);
        self.input = input;
    }

    // Login.

    fn login(&mut self, seq: u8, payload: &[u8], stage: &mut Stage<'_>) -> Option<()> {
        let first = *payload.first()?;
        match self.phase {
            _ if first == ERR => {
                let (code, text) = error_of(payload);
                let expected = code == 1049 && self.schema.as_deref() == Some("nowhere");
                let gone = self.phase == Phase::Killing && matches!(code, 1094 | 1095);
                self.fatal = !gone;
                if gone {
                    self.leave(stage, false);
                } else if !expected {
                    excuse::fatal(stage, &self.name, code, &text);
                }
            }
            Phase::Greeting => self.greeted(payload, stage)?,
            Phase::Verdict if first == EOF => {
                let mut rest = &payload[1..];
                let plugin = take_text(&mut rest)?;
                let scramble = rest.strip_suffix(&[0]).unwrap_or(rest);
                if plugin != b"mysql_native_password" {
                    return None;
                }
                let answer = native::response(&Secret::plain(PASSWORD), scramble)?;
                put(self.outbox.tail(), seq.wrapping_add(1), &answer);
            }
            Phase::Verdict if first == 0 => self.logged_in(stage),
            Phase::Killing if first == 0 => {
                put_quit(self.outbox.tail());
                let _ = self.outbox.write(stage, self.end);
                self.leave(stage, false);
            }
            Phase::Verdict | Phase::Killing | Phase::Session => return None,
        }
        Some(())
    }

    fn greeted(&mut self, payload: &[u8], stage: &mut Stage<'_>) -> Option<()> {
        let mut rest = payload;
        if take_u8(&mut rest)? != 10 {
            return None;
        }
        take_text(&mut rest)?;
        self.id = take_u32(&mut rest)?;
        let mut scramble = [0; 20];
        scramble[..8].copy_from_slice(take(&mut rest, 8)?);
        take(&mut rest, 1)?;
        let low = take(&mut rest, 2)?;
        take(&mut rest, 3)?;
        let high = take(&mut rest, 2)?;
        take(&mut rest, 11)?;
        scramble[8..].copy_from_slice(take(&mut rest, 12)?);
        self.capabilities &= u32::from_le_bytes([low[0], low[1], high[0], high[1]]);
        let offer = stage.plan.secure.offer;
        let offered = u32::from_le_bytes([low[0], low[1], high[0], high[1]]) & flag::SSL != 0;
        if offered != (offer != TlsOffer::Off) {
            let name = &self.name;
            stage.oracle.broken(|| format!("{name}: TLS is offered: {offered}"));
        }
        let secured = offer == TlsOffer::Required || (offered && stage.dice.one_in(2));
        let capabilities = self.capabilities | if secured { flag::SSL } else { 0 };
        let mut answer = capabilities.to_le_bytes().to_vec();
        answer.extend_from_slice(&(1u32 << 24).to_le_bytes());
        answer.push(45);
        answer.extend_from_slice(&[0; 23]);
        if secured {
            put(self.outbox.tail(), 1, &answer);
            self.outbox.secure(stage.plan.secure.connector(Protocol::Mysql).connect("database").ok()?);
            self.take(Vec::new(), stage);
        }
        answer.extend_from_slice(self.user.as_bytes());
        answer.push(0);
        put_string(&mut answer, &native::response(&Secret::plain(PASSWORD), &scramble)?);
        if let Some(schema) = &self.schema {
            answer.extend_from_slice(schema.as_bytes());
            answer.push(0);
        }
        answer.extend_from_slice(b"mysql_native_password\0");
        put(self.outbox.tail(), if secured { 2 } else { 1 }, &answer);
        self.phase = Phase::Verdict;
        Some(())
    }

    fn logged_in(&mut self, stage: &mut Stage<'_>) {
        if self.kills_for.is_some() {
            self.phase = Phase::Killing;
            put_command(self.outbox.tail(), command::QUERY, format!("KILL QUERY {}", self.target).as_bytes());
            if self.hurry {
                let _ = self.outbox.write(stage, self.end);
                self.leave(stage, false);
            }
            return;
        }
        self.phase = Phase::Session;
        self.shadow = Engine::new(self.id, self.capabilities, self.schema.clone(), [0; 20], true);
        stage.oracle.logins += 1;
        let name = &self.name;
        stage.say(|| format!("{name}: logged in"));
        if self.schema.as_deref() == Some("nowhere") {
            stage.oracle.broken(|| format!("{name}: a schema that does not exist was accepted at login"));
        }
    }

    // Answers.

    fn answer(&mut self, got: Packet, stage: &mut Stage<'_>) {
        let error = (got.1.first() == Some(&ERR)).then(|| error_of(&got.1));
        let as_expected =
            self.expected.front().is_some_and(|want| same(&got, want) || differ_in_count_only(want, &got));
        if let Some((code, text)) = error.filter(|_| !as_expected) {
            if code == 1317 && self.half_shut {
                // It took too long, and Weir could not tell whether this client is there. Nothing follows.
                self.expected.clear();
                self.pending.clear();
                self.if_cancelled = None;
                stage.oracle.cancelled += 1;
                return;
            }
            if code == 1317
                && let Some(cancelled) = self.if_cancelled.take()
            {
                self.shadow = cancelled.shadow;
                self.expected = cancelled.expected;
                self.pending.clear();
                self.got_packets += 1;
                self.sent_packets = self.got_packets + self.expected.len() as u64;
                stage.oracle.cancelled += 1;
                let name = &self.name;
                stage.say(|| format!("{name}: was cancelled as it asked"));
                return self.think(stage);
            }
            if excuse::LAST_WORDS.contains(&code) {
                let name = &self.name;
                stage.say(|| format!("{name}: last words {code} {text}"));
                self.fatal = true;
                self.farewell = text.contains("by the server");
                return excuse::fatal(stage, &self.name, code, &text);
            }
        }
        let want = self.expected.pop_front();
        if !as_expected {
            let want = want.as_ref().map_or("nothing".to_owned(), shown);
            let text = format!("{}: got {} and expected {want}", self.name, shown(&got));
            return stage.oracle.broken(|| text);
        }
        self.got_packets += 1;
        while self.pending.front().is_some_and(|&(at, _)| at <= self.got_packets) {
            if let Some((_, entry)) = self.pending.pop_front() {
                stage.oracle.confirmed.insert(entry, ());
            }
        }
        if self.expected.is_empty() {
            stage.oracle.answers += 1;
            self.if_cancelled = None;
        }
        self.think(stage);
    }

    fn think(&mut self, stage: &mut Stage<'_>) {
        self.next_at_ns = self.next_at_ns.max(stage.now_ns + stage.dice.below(stage.plan.think_ns));
        stage.wake_at(self.next_at_ns);
    }

    /// Does what is written next if the time has come. False: it has not.
    fn play_on(&mut self, stage: &mut Stage<'_>) -> bool {
        let done = self.expected.is_empty() && !self.asked_cancel && self.outbox.is_empty();
        let Some(part) = self.part.as_mut().filter(|_| !self.over) else { return false };
        let Some((when, line)) = part.next(stage, done) else {
            if done && part.lines.is_empty() {
                put_quit(self.outbox.tail());
                let _ = self.outbox.write(stage, self.end);
                self.leave(stage, false);
            }
            return false;
        };
        let name = self.name.clone();
        stage.say(|| format!("{name}: {when:?} {line:?}"));
        match line {
            Line::Say(text) | Line::SayAndCancel(text) => {
                let mut bytes = Vec::new();
                let tag = self.script.comment_of(&self.shadow);
                put_command(&mut bytes, command::QUERY, text.replacen("/*", &tag, 1).as_bytes());
                let before = self.shadow.clone();
                self.send(&bytes, stage);
                self.if_cancelled = matches!(line, Line::SayAndCancel(_))
                    .then(|| Box::new(cancelled_instead(before, &bytes)));
            }
            Line::SayAlike(text) => {
                let mut bytes = Vec::new();
                put_command(&mut bytes, command::QUERY, text.as_bytes());
                self.send(&bytes, stage);
            }
            Line::Cancel | Line::CancelByStranger => {
                let stranger = matches!(line, Line::CancelByStranger);
                self.asked_cancel = true;
                let user = if stranger { "user1".to_owned() } else { self.user.clone() };
                stage.orders.push(Order::SendKill {
                    listener: self.listener,
                    user,
                    schema: self.schema.clone(),
                    capabilities: self.capabilities,
                    target: self.id,
                    hurry: true,
                });
            }
            Line::IsAnswered if !self.expected.is_empty() => {
                stage.oracle.broken(|| format!("{name} is not answered"));
            }
            Line::IsAnswered => {}
            Line::StopReading => self.next_read_ns = u64::MAX,
            Line::ReadOn => {
                self.next_read_ns = 0;
                self.read(stage);
            }
            Line::Abort => self.leave(stage, true),
        }
        true
    }

    /// Does the next thing of its script when the time has come.
    fn act(&mut self, stage: &mut Stage<'_>) {
        if stage.now_ns < self.next_at_ns {
            stage.wake_at(self.next_at_ns);
            return;
        }
        let waits = !self.expected.is_empty();
        if self.asked_cancel {
            return;
        }
        if waits && self.if_cancelled.is_some() {
            if !std::mem::replace(&mut self.has_asked, true) {
                self.asked_cancel = true;
                let name = &self.name;
                stage.say(|| format!("{name}: asks to be cancelled"));
                let (listener, user, target) = (self.listener, self.user.clone(), self.id);
                let (schema, capabilities) = (self.schema.clone(), self.capabilities);
                let hurry = false;
                stage.orders.push(Order::SendKill { listener, user, schema, capabilities, target, hurry });
            }
            return;
        }
        let ahead = stage.dice.per_mille(stage.plan.pipeline);
        if !self.outbox.is_empty() || (waits && !ahead) {
            return;
        }
        self.next_at_ns = stage.now_ns + stage.dice.below(stage.plan.think_ns);
        let next = self.script.next(&self.shadow, waits);
        let name = &self.name;
        stage.say(|| format!("{name}: {next}"));
        match next {
            Next::Send { bytes, what: _ } => self.send(&bytes, stage),
            Next::SendAndCancel { bytes } => {
                let before = self.shadow.clone();
                self.send(&bytes, stage);
                self.if_cancelled = Some(Box::new(cancelled_instead(before, &bytes)));
                self.has_asked = false;
                self.next_at_ns = stage.now_ns + stage.dice.below(3_000_000);
            }
            Next::Terminate => {
                put_quit(self.outbox.tail());
                let _ = self.outbox.write(stage, self.end);
                self.leave(stage, false);
            }
            Next::Close => self.leave(stage, false),
            Next::Abort => self.leave(stage, true),
            Next::HalfShut => {
                self.half_shut = true;
                self.said_goodbye = true;
                if self.outbox.is_secure() && stage.dice.one_in(2) {
                    self.outbox.say_farewell();
                    let _ = self.outbox.write(stage, self.end);
                }
                stage.net().shutdown_write(self.end);
            }
            Next::Partial { bytes } => {
                self.outbox.tail().extend_from_slice(&bytes);
                let _ = self.outbox.write(stage, self.end);
                let abort = stage.dice.one_in(2);
                self.leave(stage, abort);
            }
        }
        stage.wake_at(self.next_at_ns);
    }

    fn send(&mut self, bytes: &[u8], stage: &mut Stage<'_>) {
        self.outbox.tail().extend_from_slice(bytes);
        self.shadow.feed(bytes);
        self.shadow.work(stage.now_ns);
        if let Some(problem) = self.shadow.problem.take() {
            stage.oracle.broken(|| format!("the script broke a rule: {problem}"));
        }
        let expected = split(&std::mem::take(&mut self.shadow.output));
        self.sent_packets += expected.len() as u64;
        self.expected.extend(expected);
        self.shadow.begun.clear();
        for entry in std::mem::take(&mut self.shadow.committed) {
            self.pending.push_back((self.sent_packets, entry));
        }
        if self.expected.is_empty() {
            // Some commands have no answer.
            self.think(stage);
        }
    }

    /// It goes without waiting for anything.
    fn leave(&mut self, stage: &mut Stage<'_>, abort: bool) {
        self.said_goodbye = true;
        stage.net().close(self.end, abort);
        self.finish(stage);
    }

    fn finish(&mut self, stage: &mut Stage<'_>) {
        self.over = true;
        for (_, entry) in self.pending.drain(..) {
            stage.oracle.unknown.insert(entry, ());
        }
    }

    /// Weir has ended the connection.
    fn ended(&mut self, stage: &mut Stage<'_>, reset: bool) {
        let name = self.name.clone();
        stage.say(|| format!("{name}: the connection ended{}", if reset { " by a reset" } else { "" }));
        if !self.fatal && !self.said_goodbye {
            // Last words are not said in the middle of a reply, nor behind one while Weir asks the server
            // something of its own about it.
            crate::excuse::silent_end(stage, self.end, &name, true, self.phase != Phase::Session);
        }
        stage.net().close(self.end, false);
        self.finish(stage);
    }

    /// The connection that carried its KILL has ended: nothing can be cancelled late any more.
    pub fn cancel_is_over(&mut self) {
        self.asked_cancel = false;
    }
}

/// The engine and the answer had the request failed with a cancel. The error itself has been seen.
fn cancelled_instead(before: Engine, bytes: &[u8]) -> Cancelled {
    let mut shadow = before;
    shadow.become_instant(false);
    shadow.feed(bytes);
    shadow.work(0);
    shadow.cancel(0);
    shadow.become_instant(true);
    shadow.work(0);
    let mut expected = split(&std::mem::take(&mut shadow.output));
    expected.pop_front();
    shadow.committed.clear();
    shadow.begun.clear();
    Cancelled { shadow, expected }
}

/// Two packets say the same. What flags an EOF of old has behind column definitions nobody can know before
/// the rows.
fn same(got: &Packet, want: &Packet) -> bool {
    let is_old_eof = |(_, payload): &Packet| payload.len() == 5 && payload.first() == Some(&EOF);
    if is_old_eof(got) && is_old_eof(want) {
        let mask = !status::MORE_RESULTS;
        let flags = |(_, payload): &Packet| u16::from_le_bytes([payload[3], payload[4]]) & mask;
        return got.0 == want.0 && flags(got) == flags(want);
    }
    got == want || got.0 == want.0 && is_not_older(&got.1, &want.1)
}

fn split(mut reply: &[u8]) -> VecDeque<Packet> {
    let mut packets = VecDeque::new();
    while let Some((seq, payload, total)) = packet(reply) {
        packets.push_back((seq, payload.to_vec()));
        reply = &reply[total..];
    }
    packets
}

/// How many warnings COM_PING and COM_INIT_DB count behind errors of several commands follows rules of the
/// server's own, which neither the model nor Weir has; what the warnings are is compared by SHOW WARNINGS.
fn differ_in_count_only(want: &Packet, got: &Packet) -> bool {
    let is_plain_ok = |(_, payload): &Packet| payload.len() >= 7 && payload[..3] == [0, 0, 0];
    let without = |(seq, payload): &Packet| (*seq, payload[..5].to_vec(), payload[7..].to_vec());
    is_plain_ok(want) && is_plain_ok(got) && want.1.len() != 12 && without(want) == without(got)
}

fn shown((seq, payload): &Packet) -> String {
    if payload.first() == Some(&ERR) {
        let (code, text) = error_of(payload);
        return format!("#{seq} ERR {code} {text}");
    }
    let text: String =
        payload.iter().take(120).flat_map(|b| std::ascii::escape_default(*b)).map(char::from).collect();
    format!("#{seq} {} bytes {text}", payload.len())
}
