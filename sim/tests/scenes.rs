//! Defects that were found and must not return, as scenes: a scene defines who does what at which moment, and
//! leaves nothing to chance. Where a moment of some microseconds matters, all moments around it are tried.

use std::collections::VecDeque;
use weir_proxy::settings::PoolMode;
use weir_session::Protocol;
use weir_session::login::TlsOffer;
use weir_sim::Report;
use weir_sim::plan::Line::{
    Abort, Cancel, CancelByStranger, IsAnswered, ReadOn, Say, SayAlike, SayAndCancel, StopReading,
};
use weir_sim::plan::{Between, Fault, Line, Part, Plan, When};
use weir_sim::secure::Secure;
use weir_tls::SslMode;

/// A client of the first user, of worker 0, that takes all it gets.
fn part(protocol: Protocol, lines: impl IntoIterator<Item = (When, Line)>) -> Part {
    Part { protocol, worker: 0, user: 0, startup: &[], pipe: 1 << 20, lines: VecDeque::from_iter(lines) }
}

/// At this time, in microseconds.
fn at(us: u64, line: Line) -> (When, Line) {
    (When::At(us), line)
}

/// As soon as all before it is answered.
fn then(line: Line) -> (When, Line) {
    (When::Then, line)
}

fn play(what: &str, plan: Plan) -> Report {
    weir_sim::run_plan_caught(plan).unwrap_or_else(|problem| panic!("{what}: {problem}"))
}

/// The plan with something done at this time, in microseconds.
fn with(mut plan: Plan, us: u64, fault: Fault) -> Plan {
    plan.faults.push((us * 1_000, fault));
    plan
}

/// One server, on which the requests of three clients stand behind each other: the first one's is at the head
/// for 10 ms from 40 ms on. Each text is known to be quick by then.
fn three_on_one_server(protocol: Protocol, head: impl IntoIterator<Item = (When, Line)>) -> Plan {
    let quick = || at(20_000, Say("SELECT 'x' /* */"));
    let first = [at(1_000, Say("SELECT 'x' /* */")), at(5_000, Say("SELECT 'x' /* */"))];
    let head = first.into_iter().chain(head);
    let behind = [41_000, 42_000].map(|us| part(protocol, [quick(), at(us, Say("SELECT 'x' /* */"))]));
    Plan::scene([part(protocol, head)].into_iter().chain(behind).collect())
}

/// A client reads nothing and gets more than is kept for one, at the end of its answer: the requests of
/// others behind its own are answered while it still does not read.
#[test]
fn a_client_that_reads_slowly_holds_up_nobody_behind_its_answer() {
    // What is kept is 256 kB; the last bytes of the answer bring it over that.
    for width in (250_000..310_000).step_by(3_000) {
        let text: &'static str = Box::leak(format!("SELECT 'x' /* sleep=3000 width={width} */").into());
        let mut slow = part(
            Protocol::Postgres,
            [
                at(1_000, Say("SELECT 'x' /* */")),
                at(5_000, Say("SELECT 'x' /* */")),
                at(39_000, StopReading),
                at(40_000, Say(text)),
                at(900_000, ReadOn),
            ],
        );
        slow.pipe = 4_096;
        let others = [40_500, 41_000].map(|us| {
            part(
                Protocol::Postgres,
                [
                    at(20_000, Say("SELECT 'x' /* */")),
                    at(us, Say("SELECT 'x' /* */")),
                    at(500_000, IsAnswered),
                ],
            )
        });
        play(&format!("{width} bytes"), Plan::scene([slow].into_iter().chain(others).collect()));
    }
}

/// A request that others stand behind takes long: they are answered by a server that becomes free, before it
/// is.
#[test]
fn who_stands_behind_a_slow_request_goes_to_another_server() {
    for protocol in Protocol::ALL {
        let head = [at(40_000, Say("SELECT 'x' /* sleep=800000 */"))];
        let mut plan = three_on_one_server(protocol, head);
        for behind in &mut plan.cast[1..] {
            // They are still there when the slow one, and what was sent behind it, is answered.
            behind.lines.extend([at(300_000, IsAnswered), at(900_000, Say("SELECT 'x' /* */"))]);
        }
        let holds = [at(30_000, Say("BEGIN /* */")), at(60_000, Say("COMMIT /* */"))];
        plan.cast.push(part(protocol, holds));
        plan.lives += 1;
        plan.clients += 1;
        plan.pool_size = 2;
        play(&format!("{protocol:?}"), plan);
    }
}

/// A request on a shared server leaves what its client may ask for next: that client has the server for
/// itself from then on, and is told of its own statement, not of those behind.
#[test]
fn who_rode_and_left_something_is_told_of_its_own_statement() {
    let head = [at(40_000, Say("SELECT 'x' /* sleep=10000 */"))];
    let mut plan = three_on_one_server(Protocol::Mysql, head);
    plan.cast[1].lines = VecDeque::from([
        at(20_000, Say("SELECT 'x' /* */")),
        at(41_000, Say("SELECT 'x' /* fail */")),
        at(80_000, Say("SHOW WARNINGS")),
    ]);
    plan.cast[2].lines.push_back(at(60_000, Say("SELECT 'x' /* */")));
    play("warnings of a failed statement", plan);
}

/// The same for a read that changes its session without a word of it in its text: its client keeps that
/// server.
#[test]
fn who_rode_and_was_changed_there_keeps_that_server() {
    let head = [at(40_000, Say("SELECT 'x' /* sleep=10000 */"))];
    let mut plan = three_on_one_server(Protocol::Mysql, head);
    plan.cast[1].lines = VecDeque::from([
        at(20_000, Say("SELECT 'x' /* */")),
        at(41_000, Say("SELECT 'x' /* sets=+05:00 */")),
        at(80_000, Say("SELECT 'x' /* tz=+05:00 */")),
    ]);
    // Not behind it: what is there when that shows is asked again elsewhere.
    plan.cast[2].lines =
        VecDeque::from([at(20_000, Say("SELECT 'x' /* */")), at(60_000, Say("SELECT 'x' /* */"))]);
    play("a time zone set out of sight", plan);
}

/// A client sends a slow BEGIN with an INSERT behind it and vanishes. Weir ends what it has left running, and
/// the INSERT does not run without the BEGIN.
#[test]
fn of_what_a_vanished_client_has_sent_no_request_runs_without_those_before_it() {
    for protocol in Protocol::ALL {
        for gone_us in (30_100..35_000).step_by(100) {
            let mut plan = Plan::scene(vec![part(
                protocol,
                [
                    at(1_000, Say("SELECT 'x' /* */")),
                    at(30_000, Say("BEGIN /* sleep=50000 */")),
                    at(30_001, Say("INSERT INTO t VALUES (1) /* */")),
                    at(gone_us, Abort),
                ],
            )]);
            plan.timeouts.cancel_wait_timeout_ms = 1;
            let report = play(&format!("{protocol:?}, gone after {gone_us} us"), plan);
            assert_eq!(report.committed, 0);
        }
    }
}

/// A statement ends by itself while the KILL for it is on its way, at each moment of that way, and whoever
/// asked for the KILL is gone. What its client sends next runs to its end.
#[test]
fn a_kill_that_comes_too_late_hits_nothing_else() {
    late_cancels(Protocol::Mysql, Secure::default());
}

/// The same for a cancel request of PostgreSQL.
#[test]
fn a_cancel_that_comes_too_late_hits_nothing_else() {
    late_cancels(Protocol::Postgres, Secure::default());
}

/// The same inside TLS, where its way is longer by a handshake.
#[test]
fn a_cancel_inside_tls_that_comes_too_late_hits_nothing_else() {
    late_cancels(Protocol::Postgres, Secure::of(TlsOffer::Off, Some(SslMode::Require), false));
    late_cancels(Protocol::Postgres, Secure::of(TlsOffer::Off, Some(SslMode::Require), true));
}

fn late_cancels(protocol: Protocol, secure: Secure) {
    let (mut hit, mut missed) = (0, 0);
    for asked_us in 39_960..40_010 {
        let plan = Plan::scene(vec![part(
            protocol,
            [
                at(1_000, Say("SELECT 'x' /* */")),
                at(30_000, SayAndCancel("SELECT 'x' /* sleep=10000 */")),
                at(asked_us, Cancel),
                then(Say("SELECT 'x' /* sleep=30000 */")),
                then(Say("INSERT INTO t VALUES (1) /* */")),
            ],
        )]);
        let report = play(&format!("asked for after {asked_us} us"), Plan { secure: secure.clone(), ..plan });
        assert_eq!(report.committed, 1);
        hit += report.cancelled;
        missed += 1 - report.cancelled;
    }
    assert!(hit > 0 && missed > 0, "of 50 cancels {hit} came in time and {missed} did not");
}

/// A statement ends by itself while the cancel for it, which can no longer be taken back, takes long to the
/// database. What its client sends next waits until that is over.
#[test]
fn what_comes_behind_a_cancel_on_its_way_waits_for_it() {
    for protocol in Protocol::ALL {
        let mut missed = 0;
        for asked_us in (39_000..40_005).step_by(5) {
            let mut plan = Plan::scene(vec![part(
                protocol,
                [
                    at(1_000, Say("SELECT 'x' /* */")),
                    at(30_000, SayAndCancel("SELECT 'x' /* sleep=10000 */")),
                    at(asked_us, Cancel),
                    at(40_010, Say("SELECT 'x' /* sleep=30000 */")),
                ],
            )]);
            plan.weather.slow_connection = Some((1, 200_000));
            let report = play(&format!("{protocol:?}, asked for after {asked_us} us"), plan);
            missed += 1 - report.cancelled;
        }
        assert!(missed > 0, "every cancel came in time");
    }
}

/// What a client runs is cancelled because the client is ended, and reaches the server behind that cancel:
/// another one comes, and nothing is committed for a client that has been told that its request is over.
#[test]
fn what_reaches_the_server_behind_its_cancel_is_cancelled_all_the_same() {
    for protocol in Protocol::ALL {
        // The second server is opened because the first one works; its connection takes longer than a request
        // may. Later each client gets one of the two.
        let long = |us: u64| at(us, Say("INSERT INTO t VALUES (1) /* sleep=400000 */"));
        let first =
            part(protocol, [at(20_000, Say("INSERT INTO t VALUES (1) /* sleep=8000 */")), long(500_000)]);
        let second = part(protocol, [at(21_000, Say("INSERT INTO t VALUES (1) /* */")), long(500_100)]);
        let mut plan = Plan { pool_size: 2, ..Plan::scene(vec![first, second]) };
        plan.weather.slow_connection = Some((1, 30_000_000));
        plan.timeouts.query_timeout_ms = 15;
        let report = play(&format!("{protocol:?}"), plan);
        assert_eq!(report.committed, 2, "{protocol:?}: those of the first two requests");
    }
}

/// The head of a shared server is cancelled, at each moment: its own request ends, and those behind it are
/// answered as if nothing had been.
#[test]
fn a_cancel_for_the_head_of_a_shared_server_hits_nobody_behind_it() {
    for protocol in Protocol::ALL {
        for asked_us in (42_500..51_000).step_by(100) {
            let head = [at(40_000, SayAndCancel("SELECT 'x' /* sleep=10000 */")), at(asked_us, Cancel)];
            play(
                &format!("{protocol:?}, asked for after {asked_us} us"),
                three_on_one_server(protocol, head),
            );
        }
    }
}

/// A statement is cancelled at each moment from when it has reached Weir on, also while the server is given
/// its client's settings: who asks once is not left waiting.
#[test]
fn a_cancel_that_comes_while_settings_are_brought_is_not_lost() {
    for (protocol, set) in [
        (Protocol::Postgres, "SET application_name = 'a' /* */"),
        (Protocol::Mysql, "SET time_zone = '+01:00' /* */"),
    ] {
        for asked_us in (40_000..44_000).step_by(20) {
            let other =
                part(protocol, [at(2_000, Say("SELECT 'x' /* */")), at(20_000, Say("SELECT 'x' /* */"))]);
            let slow = SayAndCancel("SELECT 'x' /* sleep=500000 */");
            let lines = [
                at(1_000, Say("SELECT 'x' /* */")),
                at(10_000, Say(set)),
                at(40_000, slow),
                at(asked_us, Cancel),
            ];
            let report = play(
                &format!("{protocol:?}, asked for after {asked_us} us"),
                Plan::scene(vec![part(protocol, lines), other]),
            );
            assert_eq!(report.cancelled, 1, "{protocol:?}, asked for after {asked_us} us");
        }
    }
}

/// PostgreSQL tells nothing of a BEGIN that goes with the first statement before that has ended: it is
/// cancelled all the same, at any moment.
#[test]
fn the_first_statement_of_a_transaction_is_cancelled() {
    for protocol in Protocol::ALL {
        for asked_us in (40_000..44_000).step_by(20).chain([60_000, 90_000, 200_000]) {
            let lines = [
                at(1_000, Say("SELECT 'x' /* */")),
                at(10_000, Say("BEGIN")),
                at(40_000, SayAndCancel("SELECT 'x' /* sleep=500000 */")),
                at(asked_us, Cancel),
            ];
            let name = format!("{protocol:?}, asked for after {asked_us} us");
            let report = play(&name, Plan::scene(vec![part(protocol, lines)]));
            assert_eq!(report.cancelled, 1, "{name}");
        }
    }
}

/// KILL and cancel requests of those who may not: another user's, and one without the secret.
#[test]
fn who_may_not_cancel_cancels_nothing() {
    for protocol in Protocol::ALL {
        let lines = [
            at(1_000, Say("SELECT 'x' /* */")),
            at(30_000, Say("SELECT 'x' /* sleep=10000 */")),
            at(31_000, CancelByStranger),
            then(Say("SELECT 'x' /* */")),
        ];
        let report = play(&format!("{protocol:?}"), Plan::scene(vec![part(protocol, lines)]));
        assert_eq!((report.cancelled, report.answers), (0, 3));
        // The same, and it may.
        let lines = [
            at(1_000, Say("SELECT 'x' /* */")),
            at(30_000, SayAndCancel("SELECT 'x' /* sleep=10000 */")),
            at(31_000, Cancel),
        ];
        assert_eq!(play("by itself", Plan::scene(vec![part(protocol, lines)])).cancelled, 1);
    }
}

/// A request that waits for a server is cancelled: it is told so and does not run.
#[test]
fn a_cancel_reaches_what_waits() {
    for protocol in Protocol::ALL {
        // BEGIN by itself takes no server on PostgreSQL.
        let busy = [
            at(1_000, Say("BEGIN /* */")),
            at(10_000, Say("SELECT 'x' /* */")),
            at(60_000, Say("COMMIT /* */")),
        ];
        let waits = [
            at(20_000, SayAndCancel("INSERT INTO t VALUES (1) /* */")),
            at(30_000, Cancel),
            at(50_000, IsAnswered),
        ];
        let report =
            play(&format!("{protocol:?}"), Plan::scene(vec![part(protocol, busy), part(protocol, waits)]));
        assert_eq!((report.cancelled, report.committed), (1, 0));
    }
}

/// The first statement of a transaction, whose BEGIN took no server, waits for one and is cancelled: the
/// transaction has failed, as it would have on the database, and what it says from then on does not run.
#[test]
fn a_cancel_reaches_the_first_statement_of_a_transaction() {
    let protocol = Protocol::Postgres;
    let busy =
        [at(1_000, Say("BEGIN /* */")), at(10_000, Say("SELECT 'x' /* */")), at(60_000, Say("COMMIT /* */"))];
    let waits = [
        at(15_000, Say("BEGIN /* */")),
        at(20_000, SayAndCancel("INSERT INTO t VALUES (1) /* */")),
        at(30_000, Cancel),
        at(50_000, IsAnswered),
        at(55_000, Say("INSERT INTO t VALUES (2) /* */")),
        at(70_000, Say("COMMIT /* */")),
        then(Say("SELECT 'x' /* */")),
    ];
    let report = play("", Plan::scene(vec![part(protocol, busy), part(protocol, waits)]));
    assert_eq!((report.cancelled, report.committed, report.losses), (1, 0, 0));
}

/// A server dies under the request at its head. Only that one's client loses it; those behind are answered
/// elsewhere.
#[test]
fn a_lost_server_costs_one_client_its_session() {
    for protocol in Protocol::ALL {
        for dies_us in (40_500..51_000).step_by(250) {
            let mut plan = three_on_one_server(protocol, [at(40_000, Say("SELECT 'x' /* sleep=10000 */"))]);
            plan.calm = false;
            let report = play(&format!("dies after {dies_us} us"), with(plan, dies_us, Fault::Break(0)));
            assert!(report.losses <= 1, "{} clients lost their sessions", report.losses);
            let (lost, answers) = (report.losses, 3 + 2 + 2 - report.losses);
            assert_eq!(report.answers, answers, "after {dies_us} us, {lost} lost");
        }
    }
}

/// Clients hold servers of their own in transactions, and the server of one of them dies.
#[test]
fn a_lost_server_costs_nobody_else_a_transaction() {
    for protocol in Protocol::ALL {
        let lines = || {
            [
                at(1_000, Say("BEGIN /* */")),
                at(10_000, Say("INSERT INTO t VALUES (1) /* */")),
                at(60_000, Say("COMMIT /* */")),
            ]
        };
        let mut plan =
            Plan::scene(vec![part(protocol, lines()), part(protocol, lines()), part(protocol, lines())]);
        (plan.pool_size, plan.calm) = (3, false);
        let report = play(&format!("{protocol:?}"), with(plan, 30_000, Fault::Break(1)));
        assert_eq!((report.committed, report.losses), (2, 1));
    }
}

/// A client inserts, and its server ends at each moment around the answer: when only the server knew the id
/// that was made, the client learns that its session is lost, and not an older id.
#[test]
fn an_id_that_went_with_its_server_is_no_older_one() {
    // How a server ends is drawn.
    for (seed, dies_us) in (0..8).flat_map(|seed| (5_000..5_060).map(move |us| (seed, us))) {
        let mut plan = Plan::scene(vec![part(
            Protocol::Mysql,
            [
                at(1_000, Say("INSERT INTO t VALUES (1) /* */")),
                at(5_000, Say("INSERT INTO t VALUES (1) /* */")),
                at(200_000, Say("SELECT LAST_INSERT_ID() /* */")),
            ],
        )]);
        plan.seed = seed;
        let what = format!("seed {seed}, the server ends after {dies_us} us");
        play(&what, with(plan, dies_us, Fault::DatabaseDies(1, 1_000_000)));
    }
}

/// A database dies at each moment at which servers connect to it and begin TLS. Clients learn that it is not
/// there, and not that its TLS has failed; where TLS is preferred, nothing is asked in clear.
#[test]
fn a_server_lost_as_tls_begins_is_not_said_to_refuse_tls() {
    for (protocol, direct) in
        [(Protocol::Postgres, false), (Protocol::Postgres, true), (Protocol::Mysql, false)]
    {
        let mode = if direct { SslMode::Require } else { SslMode::Prefer };
        for dies_us in 1..60 {
            let mut plan = Plan::scene(vec![part(protocol, [at(30_000, Say("SELECT 'x' /* */"))])]);
            plan.secure = Secure::of(TlsOffer::Off, Some(mode), direct);
            plan.calm = false;
            play(&format!("{protocol:?}, dies after {dies_us} us"), with(plan, dies_us, Fault::Break(0)));
        }
    }
}

/// A client waits while a server is opened for it, a reload lowers the limit, and that server is closed as
/// one too many. Another worker has an idle one.
#[test]
fn who_waited_for_a_server_that_a_reload_closed_gets_an_idle_one_elsewhere() {
    for protocol in Protocol::ALL {
        for reload_us in 31_000..31_030 {
            let holds = part(protocol, [at(1_000, Say("BEGIN /* */")), at(900_000, Say("COMMIT /* */"))]);
            let has_idle =
                part(protocol, [at(1_000, Say("SELECT 'x' /* */")), at(900_000, Say("SELECT 'x' /* */"))]);
            let waits =
                part(protocol, [at(31_000, Say("INSERT INTO t VALUES (1) /* */")), at(500_000, IsAnswered)]);
            let cast = vec![holds, Part { worker: 1, ..has_idle }, waits];
            let plan = Plan { workers: 2, pool_size: 3, ..Plan::scene(cast) };
            play(
                &format!("{protocol:?}, reload after {reload_us} us"),
                with(plan, reload_us, Fault::Resize(2)),
            );
        }
    }
}

/// Two users have one server together. Of each, the client that has waited longest needs a server that is
/// opened as it would open one itself; another one, on the other worker, takes any. All are served: what is
/// opened for who takes any goes to who has waited longer, does not suit, and is opened anew in the same
/// place.
#[test]
fn clients_of_two_pools_under_one_limit_get_servers_of_their_own() {
    let waits = |(user, worker, needs_own): (u32, usize, bool), us: u64| {
        // Who has a temporary table needs a server of its own, until it leaves.
        let own = "CREATE TEMP TABLE tmp AS SELECT 'of it' AS v /* */";
        let lines = [at(us, Say(if needs_own { own } else { "INSERT INTO t VALUES (1) /* */" }))];
        Part { user, worker, startup: &[("application_name", "shop")], ..part(Protocol::Postgres, lines) }
    };
    for holder in 0..2 {
        let holds = [at(1_000, Say("BEGIN /* */")), at(20_000, Say("COMMIT /* */"))];
        let holds = Part { user: holder, ..part(Protocol::Postgres, holds) };
        let others = [(0, 1, true), (0, 0, false), (1, 0, true), (1, 1, false)];
        let others = others.into_iter().zip(1..).map(|(who, turn)| waits(who, 2_000 + turn * 3_000));
        let cast = [holds].into_iter().chain(others).collect();
        let plan = Plan { workers: 2, pool_size: 3, max_of_database: 1, ..Plan::scene(cast) };
        play(&format!("user {holder} has the server"), plan);
    }
}

/// Weir stops while a server works for several clients.
#[test]
fn a_server_that_works_for_several_is_closed_when_the_time_to_drain_is_over() {
    for protocol in Protocol::ALL {
        let head = [at(40_000, Say("SELECT 'x' /* sleep=50000 */"))];
        let mut plan = with(three_on_one_server(protocol, head), 43_000, Fault::Drain);
        plan.timeouts.drain_timeout_ms = 1;
        play(&format!("{protocol:?}"), plan);
    }
}

/// Weir stops while a worker opens the pool's only server for a client that has just gone, and ends with it.
/// A client of another worker waits for that server: it is served by one of its own.
#[test]
fn who_waits_is_served_when_a_worker_that_ends_leaves_room() {
    for protocol in Protocol::ALL {
        let first = |us: u64, more| [at(us, Say("SELECT 'x' /* */"))].into_iter().chain(more);
        let write = |us: u64| at(us, Say("INSERT INTO t VALUES (1) /* */"));
        let goes = part(protocol, first(1_000, [write(10_000), at(20_000, Abort)]));
        let waits = part(protocol, first(2_000, [write(11_000), at(900_000, IsAnswered)]));
        let mut plan = Plan { workers: 2, ..Plan::scene(vec![goes, Part { worker: 1, ..waits }]) };
        // The server that both have had is gone, and the login at the next one takes longer than all the
        // rest.
        plan.faults.extend([0, 1].map(|database| (8_000_000, Fault::DatabaseDies(database, 100_000))));
        plan.weather.slow_connection = Some((1, 2_000_000_000));
        play(&format!("{protocol:?}"), with(plan, 30_000, Fault::Drain));
    }
}

/// Weir stops: who is in a transaction goes on to its end, with pauses in between.
#[test]
fn a_transaction_ends_before_its_worker_does() {
    for protocol in Protocol::ALL {
        let lines = [
            at(1_000, Say("BEGIN /* */")),
            at(10_000, Say("INSERT INTO t VALUES (1) /* */")),
            at(30_000, Say("INSERT INTO t VALUES (1) /* */")),
            at(40_000, Say("COMMIT /* */")),
        ];
        let plan = with(Plan::scene(vec![part(protocol, lines)]), 20_000, Fault::Drain);
        let report = play(&format!("{protocol:?}"), plan);
        assert_eq!((report.answers, report.committed), (4, 2), "{protocol:?}");
    }
}

/// An idle server that answers the question whether it lives with an error is given to nobody.
#[test]
fn a_server_that_fails_its_check_is_given_to_nobody() {
    let lines = [at(1_000, Say("SELECT 'x' /* */")), at(30_000, Say("SELECT 'x' /* */"))];
    let mut plan = with(Plan::scene(vec![part(Protocol::Mysql, lines)]), 20_000, Fault::FailsPing(0));
    plan.timeouts.server_check_delay_ms = 0;
    let report = play("one that stays", plan);
    assert_eq!((report.answers, report.sessions), (2, 2));
}

/// A server says something of its own accord right behind its reply, in the same packet, while another client
/// waits for it. That one is told nothing of it.
#[test]
fn what_a_server_says_behind_a_reply_is_not_told_to_who_waits_for_it() {
    const NOTICE: &[u8] = b"N\0\0\0\x2dSNOTICE\0VNOTICE\0C00000\0Mon the way of x\0\0";
    assert_eq!(NOTICE.len(), 1 + usize::from(NOTICE[4]));
    let insert = "INSERT INTO t VALUES (1) /* */";
    let transaction =
        [at(1_000, Say("BEGIN /* */")), at(2_000, Say(insert)), at(50_000, Say("COMMIT /* */"))];
    let holds = part(Protocol::Postgres, transaction);
    let waits = part(Protocol::Postgres, [at(40_000, Say(insert))]);
    let plan = Plan::scene(vec![holds, waits]);
    let report = play("a notice", with(plan, 45_000, Fault::Says(0, NOTICE, false)));
    assert_eq!((report.answers, report.committed), (4, 2));
}

/// A client waits, and the worker that it asks for an idle server has just given it away. A third one has
/// another.
#[test]
fn a_wish_for_a_server_goes_on_to_who_has_one() {
    for protocol in Protocol::ALL {
        let lines = |last: Line| {
            let begin = [at(1_000, Say("BEGIN /* */")), at(10_000, Say("COMMIT /* */"))];
            begin.into_iter().chain([at(30_000, last), at(900_000, Say("SELECT 'x' /* */"))])
        };
        let has = part(protocol, lines(IsAnswered));
        let takes = part(protocol, lines(Say("INSERT INTO t VALUES (1) /* sleep=600000 */")));
        let waits =
            part(protocol, [at(30_000, Say("INSERT INTO t VALUES (1) /* */")), at(200_000, IsAnswered)]);
        let cast = vec![has, Part { worker: 1, ..takes }, Part { worker: 2, ..waits }];
        play(&format!("{protocol:?}"), Plan { workers: 3, pool_size: 2, ..Plan::scene(cast) });
    }
}

/// A worker finds nobody waiting and is about to call a server idle; a client of another worker comes just
/// then and finds none idle. At whatever moment that is, it is served.
#[test]
fn who_comes_while_a_server_becomes_idle_is_served() {
    for protocol in Protocol::ALL {
        for look in 0..40 {
            let holds = part(protocol, [at(1_000, Say("BEGIN /* */")), at(50_000, Say("COMMIT /* */"))]);
            let comes =
                part(protocol, [at(45_000, Say("INSERT INTO t VALUES (1) /* */")), at(900_000, IsAnswered)]);
            let cast = vec![holds, Part { worker: 1, ..comes }];
            let plan =
                Plan { workers: 2, between: Some(Between { from_us: 44_000, look }), ..Plan::scene(cast) };
            play(&format!("{protocol:?}, at look {look}"), plan);
        }
    }
}

/// A server says something of its own accord in pieces, right behind its reply or while it is idle, and goes
/// to a client of another worker in between: the rest of it is understood there.
#[test]
fn a_server_that_moves_takes_what_it_has_said_in_part_along() {
    const NOTICE: &[u8] = b"N\0\0\0\x2aSNOTICE\0VNOTICE\0C00000\0Midle after x\0\0";
    assert_eq!(NOTICE.len(), 1 + usize::from(NOTICE[4]));
    for cut in [1, 4, 5, 20] {
        // In the packet of its reply, while a client of the other worker waits; or later, while it is idle.
        for (said_us, at_once, comes_us) in [(45_000, false, 40_000), (55_000, true, 60_000)] {
            let holds = part(
                Protocol::Postgres,
                [
                    at(1_000, Say("BEGIN /* */")),
                    at(50_000, Say("COMMIT /* */")),
                    at(300_000, Say("SELECT 'x' /* */")),
                ],
            );
            let comes = part(
                Protocol::Postgres,
                [at(comes_us, Say("SELECT 'x' /* sleep=10000 */")), at(400_000, Say("SELECT 'x' /* */"))],
            );
            let plan = Plan { workers: 2, ..Plan::scene(vec![holds, Part { worker: 1, ..comes }]) };
            let plan = with(plan, said_us, Fault::Says(0, &NOTICE[..cut], at_once));
            // It works for the one that waited, or has not been found by it yet.
            let rest_us = if at_once { 62_000 } else { 55_000 };
            let report = play(
                &format!("cut at {cut}, said after {said_us} us"),
                with(plan, rest_us, Fault::Says(0, &NOTICE[cut..], true)),
            );
            assert_eq!(report.answers, 5);
        }
    }
}

/// What is kept for a client that does not read is bounded, and its server waits for it (the audit after each
/// turn looks at that).
#[test]
fn a_client_that_does_not_read_gets_no_more_than_is_kept_for_it() {
    for protocol in Protocol::ALL {
        let mut slow = part(
            protocol,
            [
                at(1_000, StopReading),
                at(2_000, Say("SELECT 'x' /* rows=300 width=20000 */")),
                at(900_000, ReadOn),
            ],
        );
        slow.pipe = 4_096;
        let mut plan = Plan::scene(vec![slow]);
        plan.mode = PoolMode::Session;
        assert_eq!(play(&format!("{protocol:?}"), plan).answers, 1);
    }
}

/// The books meet what cannot be, about a client in a transaction while another one waits for its server.
/// That client is told of an internal error, it and its server are closed, which is counted; who waits gets a
/// server of its own, and not that one.
#[test]
fn what_meets_a_defect_is_closed_and_handed_to_nobody() {
    for protocol in Protocol::ALL {
        let begin = [at(1_000, Say("BEGIN /* */")), at(2_000, Say("SELECT 'x' /* */"))];
        let holds = part(protocol, begin.into_iter().chain([at(800_000, IsAnswered)]));
        let waits = part(protocol, [at(100_000, Say("SELECT 'x' /* */")), at(900_000, IsAnswered)]);
        let plan = with(Plan::scene(vec![holds, waits]), 500_000, Fault::Defect(protocol));
        let report = play(&format!("{protocol:?}"), plan);
        assert_eq!((report.defects > 0, report.losses, report.sessions), (true, 0, 2), "{protocol:?}");
    }
}

/// Takes 20 ms, and tells when it was begun.
const ALIKE: &str = "SELECT 'clock' FROM t /* sleep=20000 */";

/// The only server is taken for 10 ms, and several ask the same meanwhile.
fn several_ask_the_same(protocol: Protocol, more: impl IntoIterator<Item = Part>) -> Plan {
    let holder =
        part(protocol, [at(1_000, Say("SELECT 'x' /* */")), at(30_000, Say("SELECT 'x' /* sleep=10000 */"))]);
    let askers = [31_000, 32_000, 33_000, 34_000, 35_000]
        .map(|us| part(protocol, [at(us, SayAlike(ALIKE)), at(75_000, IsAnswered)]));
    Plan::scene([holder].into_iter().chain(askers).chain(more).collect())
}

/// Those who wait with the same question at the same moment are all answered in the time of one.
#[test]
fn what_several_ask_at_the_same_moment_is_asked_once() {
    for protocol in Protocol::ALL {
        play(&format!("{protocol:?}"), several_ask_the_same(protocol, []));
        // And not where it is switched off.
        let mut plan = several_ask_the_same(protocol, []);
        plan.share_answers = false;
        weir_sim::run_plan_caught(plan).expect_err("one after the other, they take longer");
    }
}

/// One more asks the same, at each moment around that at which the question is sent: it may have the answer
/// only if it asked before the database began.
#[test]
fn nobody_gets_an_answer_that_is_older_than_its_question() {
    for protocol in Protocol::ALL {
        for us in (38_000..44_000).step_by(50).chain((58_000..66_000).step_by(250)) {
            let one_more = part(protocol, [at(us, SayAlike(ALIKE))]);
            play(&format!("{protocol:?}, asked at {us} us"), several_ask_the_same(protocol, [one_more]));
        }
    }
}

/// Whose request is sent for all goes, or its server is lost, at each moment: the others ask again.
#[test]
fn whoever_asked_for_all_takes_nobody_along() {
    for protocol in Protocol::ALL {
        for us in (29_500..64_000).step_by(500) {
            let what = format!("{protocol:?}, gone at {us} us");
            let holder = part(
                protocol,
                [at(1_000, Say("SELECT 'x' /* */")), at(30_000, Say("SELECT 'x' /* sleep=10000 */"))],
            );
            let first = part(protocol, [at(30_500, SayAlike(ALIKE)), at(us.max(30_600), Abort)]);
            let others = [31_000, 32_000, 33_000].map(|us| part(protocol, [at(us, SayAlike(ALIKE))]));
            play(&what, Plan::scene([holder, first].into_iter().chain(others).collect()));
        }
    }
}

/// What makes a temporary table, and what drops it.
fn table_of(protocol: Protocol) -> (Line, Line) {
    match protocol {
        Protocol::Postgres => {
            (Say("CREATE TEMP TABLE tmp AS SELECT 'x' AS v /* */"), Say("DROP TABLE tmp /* */"))
        }
        Protocol::Mysql => (
            Say("CREATE TEMPORARY TABLE tmp AS SELECT 'x' AS v /* */"),
            Say("DROP TEMPORARY TABLE tmp /* */"),
        ),
    }
}

/// A client makes a temporary table and is gone before it is told so, at each moment around that: whoever has
/// the server next finds nothing of it.
#[test]
fn what_a_client_made_that_did_not_wait_for_the_answer_is_left_to_nobody() {
    for protocol in Protocol::ALL {
        for gone_us in (30_001..30_400).step_by(3) {
            let makes =
                part(protocol, [at(1_000, Say("SELECT 'x' /* */")), at(30_000, table_of(protocol).0)]);
            let mut makes = makes;
            makes.lines.push_back(at(gone_us, Abort));
            let next = part(protocol, [at(400_000, Say("INSERT INTO t VALUES (1) /* */"))]);
            let report =
                play(&format!("{protocol:?}, gone after {gone_us} us"), Plan::scene(vec![makes, next]));
            assert_eq!(report.committed, 1);
        }
    }
}

/// A client is pinned to the only server, and others wait, here and on another worker: once the pin has
/// lasted, another server is opened in its place, and not before.
#[test]
fn who_waits_behind_a_pinned_client_is_served_in_its_place() {
    for protocol in Protocol::ALL {
        for worker in 0..2 {
            let (pins, _) = table_of(protocol);
            let pinned = part(protocol, [at(1_000, pins), at(900_000, Say("SELECT 'x' /* */"))]);
            let waits =
                part(protocol, [at(20_000, Say("INSERT INTO t VALUES (1) /* */")), at(300_000, IsAnswered)]);
            let cast = vec![pinned, Part { worker, ..waits }];
            let plan = Plan { workers: 2, pinned_size: 1, ..Plan::scene(cast) };
            play(&format!("{protocol:?}, on worker {worker}"), plan);
        }
    }
}

/// A pin ends, at each moment around the one at which somebody comes for a server on another worker, while
/// the one in its place is in use: all are served, and no server is there too many.
#[test]
fn a_pin_that_ends_leaves_no_server_too_many() {
    for protocol in Protocol::ALL {
        for drops_us in 400_000..400_040 {
            let (pins, drops) = table_of(protocol);
            let pinned =
                part(protocol, [at(1_000, pins), at(drops_us, drops), at(900_000, Say("SELECT 'x' /* */"))]);
            let insert = "INSERT INTO t VALUES (1) /* */";
            let uses = part(protocol, [at(20_000, Say(insert)), at(399_990, Say(insert))]);
            let comes = part(protocol, [at(400_020, Say(insert)), at(600_000, IsAnswered)]);
            let cast = vec![pinned, uses, Part { worker: 1, ..comes }];
            let plan = Plan { workers: 2, pinned_size: 1, ..Plan::scene(cast) };
            play(&format!("{protocol:?}, the pin ends after {drops_us} us"), plan);
        }
    }
}
