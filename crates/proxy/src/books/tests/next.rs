//! Who gets a server that is free.

use super::*;

impl House {
    /// A server is free, or was thought to be: who gets it? Sometimes somebody waits elsewhere, and some of
    /// those who have waited longest wait for another server.
    pub(super) fn offer(&mut self, server: Key, who: u8, which: u8) {
        let elsewhere_ns = self.now_ns.saturating_sub(u64::from(which) * HAND_OVER_NS / 16);
        let elsewhere = who.is_multiple_of(3).then_some((1, elsewhere_ns));
        let order: Vec<Key> = self.pool().waiting(&self.clients).collect();
        assert_eq!((order.len(), order.first().copied()), (self.queue.len(), self.next()));
        let shares_at = |at: usize| {
            let own = order.get(at).and_then(|&own| self.clients.get(own));
            own.is_some_and(|own| own.claim.shares())
        };
        let passed = if shares_at(0) { 0 } else { usize::from(who % 4).min(order.len()) };
        let own = order.get(passed).copied();
        let own_ns = own.and_then(|own| self.clients.get(own)).map(|own| own.claim.since_ns());
        let fit = [Fit::Suits, Fit::Suits, Fit::Outdated, Fit::Unsuitable][usize::from(who / 64)];
        let moves = elsewhere.is_some() && own_ns.is_none_or(|own_ns| elsewhere_ns + HAND_OVER_NS < own_ns);
        let shares = passed == 0 && shares_at(0);
        let fits = |key: Key| if order[..passed].contains(&key) { Fit::Ignorant } else { fit };
        match self.pool().next(&self.clients, elsewhere, fits) {
            Next::HandOver(worker) => assert!(moves && worker == 1),
            Next::Rest => assert_eq!((own, elsewhere), (None, None), "somebody is passed over"),
            Next::Share => assert!(shares && !moves),
            Next::Close => assert!(own.is_some() && fit == Fit::Outdated && !shares && !moves),
            Next::Renew(next) => {
                assert!(own == Some(next) && fit == Fit::Unsuitable && !shares && !moves);
            }
            Next::Serve(next) => {
                assert_eq!(Some(next), own, "whoever has waited longest is next");
                assert!(fit == Fit::Suits && !shares && !moves);
                self.lease(server, next);
            }
        }
    }
}

#[test]
fn whoever_waits_for_another_server_is_passed_over_and_keeps_nobody_behind_it_waiting() {
    let (mut house, []) = with_servers();
    let [first, second, third] =
        [(10, false), (20, true), (30, false)].map(|(since_ns, shares)| waiter(&mut house, since_ns, shares));
    let next = |house: &House, ignorant: &[Key]| {
        let fit = |key: Key| if ignorant.contains(&key) { Fit::Ignorant } else { Fit::Suits };
        house.pool().next(&house.clients, None, fit)
    };
    assert_eq!(next(&house, &[]), Next::Serve(first));
    assert_eq!(next(&house, &[first]), Next::Serve(second), "a shared server would drain for the first one");
    assert_eq!(next(&house, &[first, second]), Next::Serve(third));
    assert_eq!(next(&house, &[first, second, third]), Next::Rest);
    for waiter in [first, second, third] {
        house.books().forget(waiter);
    }
}
