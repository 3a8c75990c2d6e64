//! A model client: it logs in, runs a script, and checks every byte against an engine of its own.
//!
//! Owns: one connection and the expected answers on it. Must not know: how Weir does it.

use super::engine::{Engine, code_of};
use super::script::{Next, Script};
use super::wire::{field, message, put, put_query, put_text, take_text};
use crate::actor::{Order, Outbox, Stage};
use crate::excuse;
use crate::network::{EndId, Read};
use crate::oracle::is_not_older;
use crate::plan::{Line, PASSWORD, Part};
use std::collections::{BTreeMap, VecDeque};
use weir_auth::scram::{ClientExpectFinal, ClientExpectFirst};
use weir_auth::{Secret, md5};
use weir_session::Protocol;
use weir_session::login::TlsOffer;

/// A client.
pub struct PgClient {
    /// Its name: the first part of its tags.
    pub name: String,
    /// It is over.
    pub over: bool,
    /// It waits for an answer to something it has sent.
    pub since_ns: u64,
    user: String,
    database: String,
    listener: u32,
    end: EndId,
    phase: Phase,
    input: Vec<u8>,
    outbox: Outbox,
    /// What it would be like to have the database for oneself.
    shadow: Engine,
    /// The same, had the last request been cancelled.
    if_cancelled: Option<Box<Cancelled>>,
    expected: VecDeque<(u8, Vec<u8>)>,
    /// Entries committed by requests whose answers are still to come, with the number of expected messages
    /// that must have come before they are confirmed.
    pending: VecDeque<(u64, String)>,
    sent_messages: u64,
    got_messages: u64,
    parameters: BTreeMap<String, String>,
    key: Vec<u8>,
    script: Script,
    next_at_ns: u64,
    manner: Manner,
    /// It was told that this is the end.
    fatal: Option<String>,
    /// The number of bytes of the last message that came only in part.
    half_shut: bool,
    /// What it ran when it shut its side took too long, and was cancelled: Weir could not tell whether it is
    /// there.
    given_up: bool,
    startup: Vec<(String, String)>,
    /// It asked for its own cancellation.
    asked_cancel: bool,
    /// It has asked for the cancellation of this request.
    has_asked: bool,
    said_goodbye: bool,
    /// Its login is meant to fail.
    refused_setting: bool,
    /// What it does is written.
    part: Option<Part>,
}

struct Cancelled {
    shadow: Engine,
    expected: VecDeque<(u8, Vec<u8>)>,
}

/// How it reads.
#[derive(Debug, Clone, Copy)]
struct Manner {
    /// Bytes at a time.
    bytes: usize,
    /// Pause between reads, in nanoseconds.
    pause_ns: u64,
    next_read_ns: u64,
    reads: u32,
}

/// After this many reads a slow reader reads twice as much at a time, so that it ends.
const PATIENT_READS: u32 = 64;

enum Phase {
    /// It has asked for TLS.
    Wish,
    Login,
    ScramFirst(ClientExpectFirst),
    ScramFinal(ClientExpectFinal),
    Greeting,
    Session,
}

impl PgClient {
    /// It connects.
    pub fn new(number: u32, listener: u32, stage: &mut Stage<'_>) -> Self {
        let end = stage.net().peer_connect(stage.me, listener);
        let name = format!("c{number}");
        let user = format!("user{}", stage.dice.below(u64::from(stage.plan.users)));
        let mut startup = Vec::new();
        if stage.dice.one_in(2) {
            startup.push(("application_name".to_owned(), format!("app {name}")));
        }
        if stage.dice.one_in(3) {
            startup.push(("TimeZone".to_owned(), (*stage.dice.pick(&super::script::TIME_ZONES)).to_owned()));
        }
        if stage.dice.one_in(6) {
            startup.push(("search_path".to_owned(), format!("path{}", stage.dice.below(3))));
        }
        let refused_setting = stage.dice.one_in(40);
        if refused_setting {
            startup.push(("statement_timeout".to_owned(), "bad value".to_owned()));
        }
        let slow = stage.dice.one_in(6);
        let manner = Manner {
            bytes: if slow { stage.dice.spread(16, 4_096) as usize } else { 1 << 18 },
            pause_ns: if slow { stage.dice.spread(10_000, 2_000_000) } else { 0 },
            next_read_ns: 0,
            reads: 0,
        };
        let mut client = PgClient::unborn(name, listener, end, user, startup, stage);
        (client.manner, client.refused_setting) = (manner, refused_setting);
        let offer = stage.plan.secure.offer;
        if offer == TlsOffer::Required || (offer == TlsOffer::Offered && stage.dice.one_in(2)) {
            client.want_tls(stage);
        } else {
            client.say_hello(stage);
        }
        client
    }

    /// It connects, and will do what is written.
    pub fn play(number: u32, listener: u32, part: Part, stage: &mut Stage<'_>) -> Self {
        let end = stage.net().peer_connect(stage.me, listener);
        stage.net().narrow(end, part.pipe);
        let user = format!("user{}", part.user);
        let startup = part.startup.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut client = PgClient::unborn(format!("c{number}"), listener, end, user, startup, stage);
        client.part = Some(part);
        client.say_hello(stage);
        client
    }

    fn unborn(
        name: String,
        listener: u32,
        end: EndId,
        user: String,
        startup: Vec<(String, String)>,
        stage: &mut Stage<'_>,
    ) -> Self {
        PgClient {
            shadow: Engine::new(&startup, true),
            script: Script::new(&name, stage.dice.split(), stage.plan),
            name,
            over: false,
            since_ns: stage.now_ns,
            user,
            database: "app".to_owned(),
            listener,
            end,
            phase: Phase::Login,
            input: Vec::new(),
            outbox: Outbox::default(),
            if_cancelled: None,
            expected: VecDeque::new(),
            pending: VecDeque::new(),
            sent_messages: 0,
            got_messages: 0,
            parameters: BTreeMap::new(),
            key: Vec::new(),
            next_at_ns: 0,
            manner: Manner { bytes: 1 << 18, pause_ns: 0, next_read_ns: 0, reads: 0 },
            fatal: None,
            half_shut: false,
            given_up: false,
            startup,
            asked_cancel: false,
            has_asked: false,
            said_goodbye: false,
            refused_setting: false,
            part: None,
        }
    }

    /// It asks for TLS, or begins it at once (PostgreSQL 17).
    fn want_tls(&mut self, stage: &mut Stage<'_>) {
        if stage.dice.one_in(3) {
            return self.begin_tls(stage);
        }
        self.phase = Phase::Wish;
        self.outbox.tail().extend_from_slice(&[0, 0, 0, 8, 4, 210, 22, 47]);
        stage.wake_at(stage.now_ns + 1);
    }

    fn begin_tls(&mut self, stage: &mut Stage<'_>) {
        self.phase = Phase::Login;
        match stage.plan.secure.connector(Protocol::Postgres).connect("database") {
            Ok(stream) => self.outbox.secure(stream),
            Err(error) => stage.oracle.broken(|| error.to_string()),
        }
        self.take(Vec::new(), stage);
        self.say_hello(stage);
    }

    /// What TLS makes of these bytes goes to what is there to be read.
    fn take(&mut self, bytes: Vec<u8>, stage: &mut Stage<'_>) {
        match self.outbox.open(bytes) {
            Ok(plain) => self.input.extend_from_slice(&plain),
            // What Weir had to say before it knew of the wish for TLS: no more than that the connection ends.
            Err(_) if !matches!(self.phase, Phase::Session) => self.ended(stage, true),
            Err(text) => {
                let name = &self.name;
                stage.oracle.broken(|| format!("{name}: {text}"));
            }
        }
    }

    fn say_hello(&mut self, stage: &mut Stage<'_>) {
        let mut body = Vec::new();
        body.extend_from_slice(&196_608u32.to_be_bytes());
        let own = [("user", self.user.as_str()), ("database", self.database.as_str())];
        let more = self.startup.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in own.into_iter().chain(more) {
            put_text(&mut body, name);
            put_text(&mut body, value);
        }
        body.push(0);
        self.outbox.tail().extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        self.outbox.tail().extend_from_slice(&body);
        stage.wake_at(stage.now_ns + 1);
    }

    /// What it waits for, if it waits.
    pub fn waits_for(&self) -> Option<String> {
        if self.over {
            return None;
        }
        match self.phase {
            Phase::Session => Some(match self.expected.front() {
                Some((tag, _)) => format!("{} waits for {:?}", self.name, *tag as char),
                None => format!(
                    "{} waits for nothing (half shut {}, told {:?}, cancel {}, unsent {})",
                    self.name,
                    self.half_shut,
                    self.fatal,
                    self.asked_cancel,
                    self.outbox.len()
                ),
            }),
            _ => Some(format!("{} waits in its login", self.name)),
        }
    }

    /// Takes its turn.
    pub fn turn(&mut self, stage: &mut Stage<'_>) {
        self.read(stage);
        if !self.over && matches!(self.phase, Phase::Session) && self.fatal.is_none() && !self.half_shut {
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
            if stage.now_ns < self.manner.next_read_ns {
                if self.manner.next_read_ns < u64::MAX {
                    stage.wake_at(self.manner.next_read_ns);
                }
                return;
            }
            let read = stage.net().peer_read(self.end, self.manner.bytes);
            match read {
                Read::Bytes(bytes) => {
                    self.manner.next_read_ns = stage.now_ns + self.manner.pause_ns;
                    self.manner.reads += 1;
                    if self.manner.reads.is_multiple_of(PATIENT_READS) {
                        self.manner.bytes *= 2;
                    }
                    self.take(bytes, stage);
                    self.messages(stage);
                }
                Read::Nothing => return,
                Read::Eof => return self.ended(stage, false),
                Read::Reset => return self.ended(stage, true),
            }
        }
    }

    fn messages(&mut self, stage: &mut Stage<'_>) {
        if matches!(self.phase, Phase::Wish) && self.input.first() == Some(&b'S') {
            if self.input.len() > 1 {
                let name = &self.name;
                stage.oracle.broken(|| format!("{name}: bytes before the handshake"));
            }
            self.input.clear();
            return self.begin_tls(stage);
        }
        let mut input = std::mem::take(&mut self.input);
        let mut at = 0;
        while !self.over
            && let Some((tag, body, total)) = message(&input[at..])
        {
            self.message(tag, body, stage);
            at += total;
        }
        input.drain(..at);
        self.input = input;
        if self.input.len() > 32 << 20 {
            stage.oracle.broken(|| format!("{}: a message that does not end", self.name));
        }
    }

    fn message(&mut self, tag: u8, body: &[u8], stage: &mut Stage<'_>) {
        if self.fatal.is_some() {
            let name = &self.name;
            stage.oracle.broken(|| format!("{name}: message {:?} after a fatal error", tag as char));
            return;
        }
        match tag {
            b'N' => return self.notice(body, stage),
            b'A' => {
                let mine =
                    body.get(4..).is_some_and(|rest| rest == format!("channel\0{}\0", self.name).as_bytes());
                if !mine {
                    stage.oracle.broken(|| format!("{}: a notification for another client", self.name));
                }
                return;
            }
            b'S' => {
                let mut rest = body;
                let name = take_text(&mut rest).unwrap_or_default().to_owned();
                let value = take_text(&mut rest).unwrap_or_default().to_owned();
                self.parameters.insert(name, value);
                return;
            }
            b'E' if field(body, b'S') == "FATAL" => return self.fatal(body, stage),
            _ => {}
        }
        match self.phase {
            Phase::Session => self.answer(tag, body, stage),
            Phase::Wish | Phase::Login | Phase::ScramFirst(_) | Phase::ScramFinal(_) | Phase::Greeting => {
                self.login(tag, body, stage);
            }
        }
    }

    fn notice(&mut self, body: &[u8], stage: &mut Stage<'_>) {
        let text = field(body, b'M');
        let whose = text.split_whitespace().last().unwrap_or_default();
        let whose = whose.split('.').next().unwrap_or_default();
        // What a server says of its own accord may come to whoever has just got it.
        if whose != self.name && !text.starts_with("idle after") {
            stage.oracle.broken(|| format!("{}: a notice for another client: {text}", self.name));
        }
    }

    fn fatal(&mut self, body: &[u8], stage: &mut Stage<'_>) {
        let (code, text) = (code_of(body), field(body, b'M'));
        let name = self.name.clone();
        stage.say(|| format!("{name}: FATAL {code} {text}"));
        let login = !matches!(self.phase, Phase::Session);
        if !(self.refused_setting && login) {
            excuse::fatal(stage, &self.name, &code, &text, login);
        }
        self.fatal = Some(text);
    }

    fn login(&mut self, tag: u8, body: &[u8], stage: &mut Stage<'_>) {
        let done = match tag {
            b'R' => self.prove(body, stage),
            b'K' => {
                self.key = body.to_vec();
                Some(())
            }
            b'Z' if body == b"I" => {
                self.logged_in(stage);
                Some(())
            }
            // PostgreSQL refuses settings with FATAL; a refusal of set_config that is passed on is an ERROR.
            b'E' if self.refused_setting => {
                self.fatal = Some(field(body, b'M'));
                Some(())
            }
            _ => None,
        };
        if done.is_none() {
            let text = field(body, b'M');
            stage
                .oracle
                .broken(|| format!("{}: unexpected {:?} in the login: {text}", self.name, tag as char));
        }
    }

    fn prove(&mut self, body: &[u8], stage: &mut Stage<'_>) -> Option<()> {
        let (code, rest) = body.split_first_chunk::<4>()?;
        match (u32::from_be_bytes(*code), std::mem::replace(&mut self.phase, Phase::Greeting)) {
            (0, Phase::Login | Phase::Greeting) => {}
            (3, Phase::Login) => {
                let mut answer = Vec::new();
                put_text(&mut answer, PASSWORD);
                put(self.outbox.tail(), b'p', &answer);
            }
            (5, Phase::Login) => {
                let salt = rest.first_chunk::<4>()?;
                let answer = md5::response(&self.user, &Secret::plain(PASSWORD), *salt)?;
                let mut body = Vec::new();
                put_text(&mut body, &answer);
                put(self.outbox.tail(), b'p', &body);
            }
            (10, Phase::Login) => {
                let mut nonce = [0; 32];
                stage.dice.fill(&mut nonce);
                let (state, first) =
                    ClientExpectFirst::begin(&nonce, weir_auth::scram::ClientBinding::Unsupported);
                let mut answer = Vec::new();
                put_text(&mut answer, "SCRAM-SHA-256");
                answer.extend_from_slice(&(first.len() as u32).to_be_bytes());
                answer.extend_from_slice(&first);
                put(self.outbox.tail(), b'p', &answer);
                self.phase = Phase::ScramFirst(state);
            }
            (11, Phase::ScramFirst(state)) => {
                let challenge = state.challenge(rest).ok()?;
                let secret = std::sync::Arc::clone(&stage.plan.secrets[2]);
                let keys = match challenge.keys(&secret).ok()? {
                    Ok(keys) => keys,
                    Err(job) => job.run().into_scram_keys()?,
                };
                let (state, last) = challenge.answer(&keys);
                put(self.outbox.tail(), b'p', &last);
                self.phase = Phase::ScramFinal(state);
            }
            (12, Phase::ScramFinal(state)) => state.verify(rest).ok()?,
            _ => return None,
        }
        Some(())
    }

    fn logged_in(&mut self, stage: &mut Stage<'_>) {
        self.phase = Phase::Session;
        stage.oracle.logins += 1;
        let name = self.name.clone();
        stage.say(|| format!("{name}: logged in"));
        if self.refused_setting {
            stage.oracle.broken(|| format!("{name}: a bad setting was accepted at login"));
        }
        self.check_parameters(stage);
    }

    /// What it was told about its settings is what its own engine says.
    fn check_parameters(&mut self, stage: &mut Stage<'_>) {
        for (name, _) in super::engine::REPORTED {
            let own = self.shadow.setting(name);
            let told = self.parameters.get(name).map_or("(nothing)", String::as_str);
            if own != told {
                let text = format!("{}: was told {name} = {told:?} and it is {own:?}", self.name);
                stage.oracle.broken(|| text);
            }
        }
    }

    /// A message of an answer.
    fn answer(&mut self, tag: u8, body: &[u8], stage: &mut Stage<'_>) {
        let as_expected =
            self.expected.front().is_some_and(|(want, body_)| *want == b'E' && same_error(body, body_));
        if self.half_shut && tag == b'E' && code_of(body) == "57014" && !as_expected {
            self.given_up = true;
            self.expected.clear();
            self.pending.clear();
            self.if_cancelled = None;
            stage.oracle.cancelled += 1;
        }
        if self.given_up && matches!(tag, b'E' | b'Z') {
            return;
        }
        let cancelled = tag == b'E' && code_of(body) == "57014" && self.if_cancelled.is_some();
        if cancelled && let Some(cancelled) = self.if_cancelled.take() {
            let expected_error = self.expected.front().is_some_and(|(tag, _)| *tag == b'E');
            if !expected_error {
                self.shadow = cancelled.shadow;
                self.expected = cancelled.expected;
                self.pending.clear();
                self.got_messages += 1;
                self.sent_messages = self.got_messages + self.expected.len() as u64;
                stage.oracle.cancelled += 1;
                let name = self.name.clone();
                stage.say(|| format!("{name}: was cancelled as it asked"));
                return;
            }
        }
        let Some((want_tag, want_body)) = self.expected.pop_front() else {
            let (name, text) = (&self.name, shown(tag, body));
            stage.oracle.broken(|| format!("{name}: got {text} and expected nothing"));
            return;
        };
        let same = match tag {
            b'E' => want_tag == b'E' && same_error(body, &want_body),
            b'D' if want_tag == b'D' && is_not_older(body, &want_body) => true,
            _ => tag == want_tag && body == want_body.as_slice(),
        };
        if !same {
            let text = format!(
                "{}: got {} and expected {}",
                self.name,
                shown(tag, body),
                shown(want_tag, &want_body)
            );
            stage.oracle.broken(|| text);
            return;
        }
        self.got_messages += 1;
        while self.pending.front().is_some_and(|&(at, _)| at <= self.got_messages) {
            if let Some((_, entry)) = self.pending.pop_front() {
                stage.oracle.confirmed.insert(entry, ());
            }
        }
        if self.expected.is_empty() {
            stage.oracle.answers += 1;
            self.if_cancelled = None;
            self.check_parameters(stage);
        }
        self.next_at_ns = self.next_at_ns.max(stage.now_ns + stage.dice.below(stage.plan.think_ns));
        stage.wake_at(self.next_at_ns);
    }

    /// Does what is written next if the time has come. False: it has not.
    fn play_on(&mut self, stage: &mut Stage<'_>) -> bool {
        let done = self.expected.is_empty() && !self.asked_cancel && self.outbox.is_empty();
        let Some(part) = self.part.as_mut().filter(|_| !self.over) else { return false };
        let Some((when, line)) = part.next(stage, done) else {
            if done && part.lines.is_empty() {
                put(self.outbox.tail(), b'X', b"");
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
                put_query(&mut bytes, &text.replacen("/*", &tag, 1));
                let before = self.shadow.clone();
                self.send(&bytes, stage);
                self.if_cancelled = matches!(line, Line::SayAndCancel(_))
                    .then(|| Box::new(self.cancelled_instead(before, &bytes)));
            }
            Line::SayAlike(text) => {
                let mut bytes = Vec::new();
                put_query(&mut bytes, text);
                self.send(&bytes, stage);
            }
            Line::Cancel => {
                self.asked_cancel = true;
                self.send_cancel(stage);
            }
            Line::CancelByStranger => {
                self.asked_cancel = true;
                let known = self.key.clone();
                self.key.iter_mut().skip(4).for_each(|byte| *byte = !*byte);
                self.send_cancel(stage);
                self.key = known;
            }
            Line::IsAnswered if !self.expected.is_empty() => {
                stage.oracle.broken(|| format!("{name} is not answered"));
            }
            Line::IsAnswered => {}
            Line::StopReading => self.manner.next_read_ns = u64::MAX,
            Line::ReadOn => {
                self.manner.next_read_ns = 0;
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
            if !self.key.is_empty() && !self.has_asked {
                self.asked_cancel = true;
                self.has_asked = true;
                self.send_cancel(stage);
            }
            return;
        }
        if waits && !(stage.dice.per_mille(stage.plan.pipeline) && self.outbox.is_empty()) {
            return;
        }
        if !self.outbox.is_empty() {
            return;
        }
        self.next_at_ns = stage.now_ns + stage.dice.below(stage.plan.think_ns);
        let next = self.script.next(&self.shadow, waits);
        let name = self.name.clone();
        stage.say(|| format!("{name}: {next}"));
        match next {
            Next::Send { bytes, what: _ } => self.send(&bytes, stage),
            Next::SendAndCancel { bytes } => {
                let before = self.shadow.clone();
                self.send(&bytes, stage);
                self.if_cancelled = Some(Box::new(self.cancelled_instead(before, &bytes)));
                self.has_asked = false;
                self.next_at_ns = stage.now_ns + stage.dice.below(3_000_000);
            }
            Next::Terminate => {
                put(self.outbox.tail(), b'X', b"");
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
        self.since_ns = stage.now_ns;
        self.outbox.tail().extend_from_slice(bytes);
        self.shadow.feed(bytes);
        self.shadow.work(stage.now_ns);
        if let Some(problem) = self.shadow.problem.take() {
            stage.oracle.broken(|| format!("the script broke a rule: {problem}"));
        }
        let reply = std::mem::take(&mut self.shadow.output);
        let (expected, _) = split(&reply);
        self.sent_messages += expected.len() as u64;
        self.expected.extend(expected);
        self.shadow.begun.clear();
        for entry in std::mem::take(&mut self.shadow.committed) {
            self.pending.push_back((self.sent_messages, entry));
        }
    }

    /// The engine and the answer had the request failed with a cancel.
    fn cancelled_instead(&self, before: Engine, bytes: &[u8]) -> Cancelled {
        let mut shadow = before;
        shadow.become_slow();
        shadow.feed(bytes);
        shadow.work(0);
        shadow.cancel(0);
        shadow.become_instant();
        shadow.work(0);
        let reply = std::mem::take(&mut shadow.output);
        shadow.committed.clear();
        let (mut expected, _) = split(&reply);
        // The error itself has been seen.
        while expected.pop_front().is_some_and(|(tag, _)| tag != b'E') {}
        Cancelled { shadow, expected }
    }

    fn send_cancel(&mut self, stage: &mut Stage<'_>) {
        let name = self.name.clone();
        stage.say(|| format!("{name}: asks to be cancelled"));
        let mut bytes = (self.key.len() as u32 + 8).to_be_bytes().to_vec();
        bytes.extend_from_slice(&80_877_102u32.to_be_bytes());
        bytes.extend_from_slice(&self.key);
        let listener = self.listener;
        stage.orders.push(Order::SendCancel { listener, bytes });
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
        let within = self.got_messages > 0 && !self.input.is_empty();
        if self.half_shut && !reset && within && self.fatal.is_none() && stage.plan.calm {
            stage.oracle.broken(|| format!("{name}: its last answer was cut off"));
        }
        if self.fatal.is_none() && !self.said_goodbye {
            let cut = reset || !self.input.is_empty();
            excuse::silent_end(stage, self.end, &name, cut, !matches!(self.phase, Phase::Session));
        }
        stage.net().close(self.end, false);
        self.finish(stage);
    }

    /// The connection that carried its cancel request has ended: nothing can be cancelled late any more.
    pub fn cancel_is_over(&mut self) {
        self.asked_cancel = false;
    }
}

/// Two errors say the same.
fn same_error(got: &[u8], want: &[u8]) -> bool {
    [b'S', b'C', b'M'].iter().all(|&which| field(got, which) == field(want, which))
}

/// A reply cut into messages, without what may come at any time.
fn split(reply: &[u8]) -> (VecDeque<(u8, Vec<u8>)>, usize) {
    let mut messages = VecDeque::new();
    let mut at = 0;
    while let Some((tag, body, total)) = message(&reply[at..]) {
        if !matches!(tag, b'N' | b'S' | b'A') {
            messages.push_back((tag, body.to_vec()));
        }
        at += total;
    }
    (messages, at)
}

fn shown(tag: u8, body: &[u8]) -> String {
    if tag == b'E' {
        return format!("E({} {})", code_of(body), field(body, b'M'));
    }
    let text: String =
        body.iter().take(120).flat_map(|b| std::ascii::escape_default(*b)).map(char::from).collect();
    format!("{}({text})", tag as char)
}
