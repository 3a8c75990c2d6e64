//! The advice on databases made of numbers, with a clock that the tests move.

use std::time::Duration;
use weir_doctor::advise::judge::{Advice, Verdict};
use weir_doctor::advise::sample::{About, Cores, Counters, Doing, Group, Keeps, Seat, Snapshot, Source};
use weir_doctor::advise::{Clock, Plan, text, to_json, watch};
use weir_doctor::database::connection::DbError;

/// A database that is the same at every look.
#[derive(Clone)]
struct Canned {
    about: About,
    seats: Vec<Seat>,
    /// What the counters grow by in a second.
    per_s: Counters,
    /// Connections of the first group are replaced at every look.
    changing: bool,
    looks: u64,
    seconds: std::rc::Rc<std::cell::Cell<f64>>,
}

impl Canned {
    fn new(cores: u64) -> Canned {
        let cores = (cores > 0).then(|| Cores { count: cores, from: "a test".to_owned() });
        let about = About {
            product: "PostgreSQL 15".to_owned(),
            connect_cpu_s: 0.0057,
            slots: 397,
            cores,
            ..About::default()
        };
        Canned {
            about,
            seats: Vec::new(),
            per_s: Counters::default(),
            changing: false,
            looks: 0,
            seconds: Default::default(),
        }
    }

    fn with(mut self, number: usize, doing: Doing) -> Canned {
        self = self.of("app", "app", number, doing);
        self
    }

    fn of(mut self, database: &str, user: &str, number: usize, doing: Doing) -> Canned {
        for _ in 0..number {
            let group = Group { database: database.to_owned(), user: user.to_owned() };
            let id = self.seats.len().to_string();
            self.seats.push(Seat { id, group, doing, transaction_s: Some(0.5), keeps: None });
        }
        self
    }

    fn keeping(mut self, number: usize, keeps: Keeps) -> Canned {
        self.seats.iter_mut().take(number).for_each(|seat| seat.keeps = Some(keeps));
        self
    }
}

impl Source for Canned {
    fn about(&mut self) -> Result<About, DbError> {
        Ok(self.about.clone())
    }
    fn snapshot(&mut self) -> Result<Snapshot, DbError> {
        self.looks += 1;
        let mut seats = self.seats.clone();
        if self.changing {
            seats.iter_mut().for_each(|seat| seat.id = format!("{}-{}", self.looks, seat.id));
        }
        Ok(Snapshot { seats })
    }
    fn counters(&mut self) -> Result<Counters, DbError> {
        let seconds = self.seconds.get();
        let grown = |rate: Option<f64>| rate.map(|rate| 1000.0 + rate * seconds);
        Ok(Counters {
            transactions: grown(self.per_s.transactions),
            rollbacks: grown(self.per_s.rollbacks),
            explicit: grown(self.per_s.explicit),
            statements: grown(self.per_s.statements),
            running_s: grown(self.per_s.running_s),
            idle_in_transaction_s: grown(self.per_s.idle_in_transaction_s),
            connects: grown(self.per_s.connects),
            refused: grown(self.per_s.refused),
        })
    }
    fn own_statements(&self) -> u64 {
        0
    }
}

struct Moved(std::rc::Rc<std::cell::Cell<f64>>);

impl Clock for Moved {
    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.0.get())
    }
    fn pause(&mut self, time: Duration) {
        self.0.set(self.0.get() + time.as_secs_f64());
    }
}

const MINUTE: Plan = Plan { length: Duration::from_secs(60), interval: Duration::from_secs(1) };

fn advice(mut source: Canned) -> Advice {
    let mut clock = Moved(source.seconds.clone());
    let seen = watch(&mut source, MINUTE, &mut clock, &mut |_| true).unwrap();
    Advice::of("postgres://app@db/app", seen)
}

fn has(reasons: &[String], words: &str) -> bool {
    reasons.iter().any(|reason| reason.contains(words))
}

#[test]
fn watching_looks_on_the_beat_and_ends_when_told() {
    let mut source = Canned::new(8).with(10, Doing::Idle);
    source.per_s.transactions = Some(50.0);
    let mut clock = Moved(source.seconds.clone());
    let seen = watch(&mut source, MINUTE, &mut clock, &mut |_| true).unwrap();
    assert_eq!((seen.samples, seen.seconds), (61, 60.0));
    assert_eq!(seen.transactions_per_s, Some(50.0));
    let mut looks = 0;
    let mut enough = |_: &Snapshot| {
        looks += 1;
        looks < 4
    };
    let mut source = Canned::new(8).with(10, Doing::Idle);
    let mut clock = Moved(source.seconds.clone());
    let seen = watch(&mut source, MINUTE, &mut clock, &mut enough).unwrap();
    assert_eq!((seen.samples, seen.connections.mean), (4, 10.0));
    assert!(seen.seconds < 5.0, "{}", seen.seconds);
}

#[test]
fn many_idle_connections_want_a_small_pool() {
    let mut source = Canned::new(8).with(390, Doing::Idle).with(10, Doing::Running);
    source.per_s = Counters {
        transactions: Some(2000.0),
        rollbacks: Some(20.0),
        running_s: Some(10.0),
        idle_in_transaction_s: Some(0.0),
        connects: Some(0.0),
        ..Counters::default()
    };
    let advice = advice(source);
    assert_eq!((advice.pooler.helps, advice.mode.name), (Verdict::Yes, "transaction"));
    assert!(has(&advice.pooler.reasons_for, "of 400 connections 390 are idle"), "{:?}", advice.pooler);
    // 10 in the mean, 16.3 with chance, a fifth more.
    assert_eq!(advice.size.servers, 20);
    assert_eq!(advice.seen.transaction_s, Some(0.005));
    assert_eq!(advice.seen.rolled_back, Some(0.01));
    assert!(advice.max_client_conn() == 1000);
}

#[test]
fn few_connections_want_no_pooler() {
    let advice = advice(Canned::new(8).with(4, Doing::Idle).with(2, Doing::Running));
    assert_eq!(advice.pooler.helps, Verdict::No);
    assert!(
        has(&advice.pooler.reasons_against, "no more connections (6 at most) than a pool would have"),
        "{:?}",
        advice.pooler
    );
    assert!(!text::advice(&advice).contains("To try it"));
}

#[test]
fn a_connection_for_each_request_wants_a_pooler() {
    let mut source = Canned::new(4).with(3, Doing::Running);
    source.changing = true;
    source.per_s.connects = Some(300.0);
    let advice = advice(source);
    assert_eq!(advice.pooler.helps, Verdict::Yes);
    // 300 x 5.7 ms on 4 cores.
    assert!(
        has(
            &advice.pooler.reasons_for,
            "300 connects per second, each open for 10 ms: they cost the database about 42.8%"
        ),
        "{:?}",
        advice.pooler
    );
    assert_eq!((advice.seen.stayed, advice.seen.lifetime_s), (0, Some(0.01)));
    // On a server for which a connect is cheap and rare it is nothing.
    let mut cheap = Canned::new(16).with(3, Doing::Running);
    cheap.about.connect_cpu_s = 0.00027;
    cheap.per_s.connects = Some(5.0);
    assert_eq!(advice_of(cheap).pooler.helps, Verdict::No);
}

fn advice_of(source: Canned) -> Advice {
    advice(source)
}

#[test]
fn a_crowd_inside_is_bounded_by_the_knee() {
    let advice = advice(Canned::new(8).with(300, Doing::Running));
    assert_eq!(advice.pooler.helps, Verdict::Yes);
    assert!(has(&advice.pooler.reasons_for, "300 statements run at once on 8 cores"), "{:?}", advice.pooler);
    // 2.7 a core is 22, a fifth more.
    assert_eq!(advice.size.servers, 27);
    assert!(has(&advice.size.why, "8 cores (a test) serve 22 best"), "{:?}", advice.size);
}

#[test]
fn transactions_that_wait_for_their_client_hold_servers() {
    let mut source = Canned::new(4).with(95, Doing::IdleInTransaction).with(5, Doing::Idle);
    source.seats[0].transaction_s = Some(900.0);
    let advice = advice(source);
    assert_eq!(advice.pooler.helps, Verdict::No);
    assert!(
        has(&advice.pooler.reasons_against, "95% of the connections are in a transaction at any time"),
        "{:?}",
        advice.pooler
    );
    assert_eq!(advice.size.servers, 100, "never more than connections");
    assert!(has(&advice.size.why, "95 are in a transaction and wait for their client"), "{:?}", advice.size);
    assert!(has(&advice.remarks, "one transaction was open for 15 min"), "{:?}", advice.remarks);
}

#[test]
fn waiting_for_locks_is_not_cured_by_servers() {
    let advice =
        advice(Canned::new(4).with(60, Doing::WaitingForLock).with(2, Doing::Running).with(100, Doing::Idle));
    assert!(has(&advice.remarks, "60 connections wait for locks and 2 run"), "{:?}", advice.remarks);
    // Not 60 servers: as many as there are cores may wait beside those that run.
    assert_eq!(advice.size.servers, 11);
}

#[test]
fn unknown_cores_are_said() {
    let advice = advice(Canned::new(0).with(100, Doing::Running).with(300, Doing::Idle));
    assert!(has(&advice.size.why, "cores are not known: --cores N"), "{:?}", advice.size);
    assert_eq!(advice.size.servers, 144);
}

#[test]
fn the_pool_leaves_slots_for_others() {
    let mut source = Canned::new(0).with(100, Doing::Running);
    source.about.slots = 97;
    let advice = advice(source);
    assert_eq!(advice.size.servers, 72);
    assert!(has(&advice.size.why, "the server allows 97 connections; 72 leave some"), "{:?}", advice.size);
    assert!(has(&advice.pooler.reasons_for, "100 of 97 possible connections"), "{:?}", advice.pooler);
}

#[test]
fn refused_connections_speak_for_a_pooler() {
    let mut source = Canned::new(8).with(10, Doing::Idle);
    source.per_s.refused = Some(0.5);
    let advice = advice(source);
    assert_eq!(advice.pooler.helps, Verdict::Yes);
    assert!(has(&advice.pooler.reasons_for, "30 connections were refused"), "{:?}", advice.pooler);
}

#[test]
fn state_that_cannot_be_shared_wants_session_mode() {
    let tables = advice(Canned::new(4).with(40, Doing::Idle).keeping(30, Keeps::TemporaryTable));
    assert_eq!(tables.mode.name, "session");
    assert!(
        tables
            .mode
            .why
            .contains("30 of 40 connections have state that cannot be shared: temporary tables (30)"),
        "{}",
        tables.mode.why
    );
    // Weir listens for all of them by one connection.
    let listening = advice(Canned::new(4).with(40, Doing::Idle).keeping(30, Keeps::Listen));
    assert_eq!(listening.mode.name, "transaction");
    assert!(!listening.mode.why.contains("LISTEN"), "{}", listening.mode.why);
    let few = advice(Canned::new(4).with(40, Doing::Idle).keeping(3, Keeps::SessionLock));
    assert_eq!(few.mode.name, "transaction");
    assert!(
        few.mode.why.contains("3 would keep their server for a while: session locks (3)"),
        "{}",
        few.mode.why
    );
}

#[test]
fn too_little_seen_is_not_judged() {
    assert_eq!(advice(Canned::new(4)).pooler.helps, Verdict::Unknown);
    let mut source = Canned::new(4).with(30, Doing::Hidden).with(2, Doing::Idle);
    source.about.blind = Some("GRANT pg_read_all_stats TO it".to_owned());
    let advice = advice(source);
    assert_eq!(advice.pooler.helps, Verdict::Unknown);
    assert!(has(&advice.remarks, "pg_read_all_stats"));
    assert!(!text::advice(&advice).contains("POOL SIZE"));
}

#[test]
fn counters_that_went_back_say_nothing() {
    let mut source = Canned::new(4).with(3, Doing::Idle);
    source.per_s.transactions = Some(-10.0);
    source.per_s.statements = Some(7.0);
    let advice = advice(source);
    assert_eq!((advice.seen.transactions_per_s, advice.seen.statements_per_s), (None, Some(7.0)));
}

#[test]
fn servers_are_dealt_out_by_what_pools_hold() {
    let source = Canned::new(16)
        .of("shop", "web", 9, Doing::Running)
        .of("shop", "web", 91, Doing::Idle)
        .of("shop", "report", 3, Doing::Running)
        .of("log", "web", 50, Doing::Idle);
    let advice = advice(source);
    assert_eq!(advice.size.servers, 23);
    let dealt: Vec<_> = advice
        .pools
        .iter()
        .map(|pool| (pool.group.database.as_str(), pool.group.user.as_str(), pool.pool_size))
        .collect();
    assert_eq!(dealt, [("shop", "web", 17), ("shop", "report", 5), ("log", "web", 1)]);
    let text = text::advice(&advice);
    assert!(text.contains("shop                    report"), "{text}");
    assert!(
        text.contains("weir serve URL --pool-mode transaction --pool-size 17 --max-client-conn 1000"),
        "{text}"
    );
}

#[test]
fn a_quiet_moment_is_said() {
    let mut source = Canned::new(8).with(10, Doing::Idle);
    source.about.most_ever = Some(250);
    let advice = advice(source);
    assert!(has(&advice.remarks, "the peak was 250 connections, now at most 10"), "{:?}", advice.remarks);
}

#[test]
fn text_fits_and_json_has_stable_names() {
    let mut source =
        Canned::new(8).with(390, Doing::Idle).with(10, Doing::Running).keeping(1, Keeps::TemporaryTable);
    source.per_s.transactions = Some(2000.0);
    let advice = advice(source);
    for line in text::advice(&advice).lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let json: serde_json::Value = serde_json::from_str(&to_json(&advice)).unwrap();
    assert_eq!((&json["version"], &json["database"]), (&1.into(), &"postgres://app@db/app".into()));
    assert_eq!((&json["pooler"]["helps"], &json["mode"]["name"]), (&"yes".into(), &"transaction".into()));
    assert_eq!(json["pool_size"]["servers"], 20);
    assert_eq!((&json["seen"]["connections"]["mean"], &json["seen"]["samples"]), (&400.0.into(), &61.into()));
    assert_eq!(json["seen"]["keeps"]["temporary_table"].as_f64().map(f64::round), Some(1.0));
    assert_eq!((&json["pools"][0]["database"], &json["pools"][0]["pool_size"]), (&"app".into(), &20.into()));
    assert_eq!(json["seen"]["cores"]["count"], 8);
}
