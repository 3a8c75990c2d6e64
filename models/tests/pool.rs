//! Limits are kept, and no waiter is missed, in every order of steps.

use shuttle::thread;
use std::sync::Arc;
use weir_models::pool::{Cap, NOBODY, Opening, PoolShared};

/// Orders tried where there are too many for all of them. MODELS_ORDERS=N for more.
fn orders() -> usize {
    std::env::var("MODELS_ORDERS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000)
}

fn pool(limit: usize, caps: [&Arc<Cap>; 2], workers: usize) -> Arc<PoolShared> {
    Arc::new(PoolShared::new(limit, caps.map(Arc::clone), workers))
}

/// Three threads open and close servers of two pools of one database: no limit is exceeded at any step, and
/// at the end all is given back.
#[test]
fn no_limit_is_exceeded_by_any_order() {
    let run = || {
        let (database, me, you) = (Arc::new(Cap::new(2)), Arc::new(Cap::new(1)), Arc::new(Cap::new(2)));
        let pools = [pool(2, [&database, &me], 1), pool(2, [&database, &you], 1)];
        let threads: Vec<_> = (0..3)
            .map(|n| {
                let (pools, database, me) = (pools.clone(), database.clone(), me.clone());
                thread::spawn(move || {
                    for turn in 0..2 {
                        let pool = &pools[(n + turn) % 2];
                        if pool.try_open() == Opening::Granted {
                            assert!(database.figures().0 <= 2 && me.figures().0 <= 1 && pool.opened() <= 2);
                            pool.closed();
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((database.figures().0, me.figures().0, you.figures().0), (0, 0, 0));
        assert_eq!(pools.map(|pool| pool.opened()), [0, 0]);
    };
    shuttle::check_random(run, orders());
    shuttle::check_pct(run, orders(), 3);
}

/// A place that goes to another pool while others open and close: it is never had twice, and never lost.
#[test]
fn a_place_on_its_way_to_another_pool_is_had_by_nobody_else() {
    let run = || {
        let (database, me, you) = (Arc::new(Cap::new(1)), Arc::new(Cap::new(1)), Arc::new(Cap::new(1)));
        let (from, to) = (pool(1, [&database, &me], 1), pool(1, [&database, &you], 1));
        assert_eq!(from.try_open(), Opening::Granted);
        let leaves = {
            let (from, to) = (from.clone(), to.clone());
            thread::spawn(move || {
                if from.leave_to(&to) {
                    to.closed();
                } else {
                    from.closed();
                }
            })
        };
        let others: Vec<_> = [from.clone(), to.clone()]
            .into_iter()
            .map(|pool| {
                let database = database.clone();
                thread::spawn(move || {
                    if pool.try_open() == Opening::Granted {
                        assert_eq!(database.figures().0, 1);
                        pool.closed();
                    }
                })
            })
            .collect();
        leaves.join().unwrap();
        others.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(
            (from.opened(), to.opened(), database.figures().0, me.figures().0, you.figures().0),
            (0, 0, 0, 0, 0)
        );
    };
    shuttle::check_random(run, orders());
    shuttle::check_pct(run, orders(), 3);
}

/// A client begins to wait on one worker while a server becomes idle on another. Each publishes itself first
/// and looks second: at least one of them sees the other, in every order there is.
#[test]
fn a_waiter_and_an_idle_server_never_miss_each_other() {
    shuttle::check_dfs(
        || {
            let none = Arc::new(Cap::new(0));
            let pool = pool(1, [&none, &none], 2);
            let waiter = {
                let pool = pool.clone();
                thread::spawn(move || {
                    pool.publish_oldest(0, 10);
                    pool.idle_elsewhere(0).is_some()
                })
            };
            pool.publish_idle(1, 1);
            let seen = pool.longest_waiting_elsewhere(1).is_some();
            assert!(waiter.join().unwrap() || seen, "both looked before the other was there");
        },
        None,
    );
}

/// A client finds the pool full while another worker closes a server: either the client sees the room, or the
/// one who closed sees the client. The same under a limit of several pools.
#[test]
fn room_and_whoever_lacks_it_never_miss_each_other() {
    for limits in [(1, 0), (9, 1)] {
        let run = move || {
            let (database, none) = (Arc::new(Cap::new(limits.1)), Arc::new(Cap::new(0)));
            let pool = pool(limits.0, [&database, &none], 2);
            assert_eq!(pool.try_open(), Opening::Granted);
            let waiter = {
                let pool = pool.clone();
                thread::spawn(move || {
                    pool.publish_oldest(0, 10);
                    pool.publish_lacks(0, 1);
                    pool.try_open() == Opening::Granted
                })
            };
            pool.closed();
            let seen = pool.longest_lacking().is_some();
            assert!(waiter.join().unwrap() || seen, "there was room, and nobody knew");
            assert_ne!(pool.longest_waiting(), NOBODY);
        };
        shuttle::check_random(run, orders());
        shuttle::check_pct(run, orders(), 3);
    }
}

/// A server that was set aside comes back while another worker opens one in its place: either it was quicker,
/// and the one that has come back is too many, or it finds no room. The size and the allowance are never
/// exceeded together, and nobody who could open one is missed.
#[test]
fn a_server_that_comes_back_and_one_in_its_place_never_both_stay() {
    let run = || {
        let none = Arc::new(Cap::new(0));
        let pool = pool(1, [&none, &none], 2);
        pool.set_allowance(1);
        assert_eq!(pool.try_open(), Opening::Granted);
        pool.set_aside();
        let opens: Vec<_> = (0..2)
            .map(|_| {
                let pool = pool.clone();
                thread::spawn(move || {
                    let granted = pool.try_open() == Opening::Granted;
                    assert!(pool.opened() <= 2);
                    granted
                })
            })
            .collect();
        pool.come_back(1);
        let too_many = pool.is_over_limit();
        if too_many {
            pool.closed();
        }
        let granted = opens.into_iter().map(|thread| thread.join().unwrap()).filter(|&it| it).count();
        assert!(granted <= 1, "two are there in the place of one");
        assert_eq!(pool.opened(), 1 + granted - usize::from(too_many));
        assert!(pool.opened() <= 1, "what has come back stays beside the one in its place");
        assert_eq!(pool.inside_and_outside().1, 0);
    };
    shuttle::check_random(run, orders());
    shuttle::check_pct(run, orders(), 3);
}

/// A server is set aside while a client finds the pool full: either the client sees the room, or whoever has
/// set it aside sees the client.
#[test]
fn room_by_a_server_set_aside_and_whoever_lacks_it_never_miss_each_other() {
    let run = || {
        let none = Arc::new(Cap::new(0));
        let pool = pool(1, [&none, &none], 2);
        pool.set_allowance(1);
        assert_eq!(pool.try_open(), Opening::Granted);
        let waiter = {
            let pool = pool.clone();
            thread::spawn(move || {
                pool.publish_oldest(0, 10);
                pool.try_open() == Opening::Granted
            })
        };
        pool.set_aside();
        let seen = pool.waits(0);
        assert!(waiter.join().unwrap() || seen, "there was room, and nobody knew");
        assert!(pool.opened() <= 2);
    };
    shuttle::check_random(run, orders());
    shuttle::check_pct(run, orders(), 3);
}
