//! How many servers a pool should have: `pool_size = "auto"`.
//!
//! Owns: the current size, and the findings about larger and smaller ones. It is fed measurements in slots of
//! about a second and has no clock of its own. Must not know: workers, servers, how a size takes effect.
//!
//! It compares two sizes at a time in the order one, other, other, one, so that a trend of the load affects
//! both alike. Neighbouring slots make a pair; a trial continues until the mean of its pairs differs from
//! zero by more than the measured noise, or until it is clear that it never will. Fewer servers are better
//! when nothing is lost: they cost the database less. More must be clearly better.
//!
//! Invariants: the size stays within the bounds; without a difference larger than the noise nothing changes;
//! the total loss accepted for fewer servers is at most [`LOSS`], however many small steps it takes; after
//! each trial without a finding the pause before the next is longer.

use std::collections::VecDeque;

/// What was measured since the last slot.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Slot {
    /// How long it was.
    pub elapsed_ns: u64,
    /// Requests answered in it.
    pub answered: u64,
    /// How long these took from the moment they were sent to a server, added up.
    pub took_ns: u64,
    /// How long requests that were sent in it had waited in the queue, added up.
    pub waited_ns: u64,
    /// Clients that wait at its end.
    pub waiting: usize,
    /// Servers that are lent or have requests at its end.
    pub active: usize,
}

/// The sizes that are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// At least.
    pub min: usize,
    /// At most; not less than `min`.
    pub max: usize,
}

impl Bounds {
    /// Where a pool begins of which nothing is known: most databases have four cores, and from there it grows
    /// by halves.
    pub fn start(self) -> usize {
        4usize.clamp(self.min, self.max)
    }
}

/// The size has changed for good, and why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// What it was.
    pub from: usize,
    /// What it is now.
    pub to: usize,
    /// Why.
    pub why: Why,
}

/// Why a size was changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Why {
    /// It was tried: answers a second and the time of a request, as multiples of what they were.
    Tried {
        /// Answers a second.
        rate: f64,
        /// From request to answer, waiting included.
        time: f64,
        /// Pairs of slots compared.
        pairs: usize,
    },
    /// Clients wait and next to nothing is answered: the servers are held by transactions that do nothing, or
    /// by requests too long to compare.
    Starved,
    /// The bounds are other ones.
    Bounds,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Why::Tried { rate, time, pairs } => write!(
                f,
                "tried in {pairs} pairs of slots: {:+.1}% answers a second, {:+.1}% time of a request",
                (rate - 1.0) * 100.0,
                (time - 1.0) * 100.0
            ),
            Why::Starved => f.write_str("clients wait and nothing is answered that could be compared"),
            Why::Bounds => f.write_str("the bounds have changed"),
        }
    }
}

const SECOND_NS: u64 = 1_000_000_000;
/// A slot of a trial lasts this long, ...
const SLOT_NS: u64 = 3 * SECOND_NS / 2;
/// ... and until this number of requests is answered, ...
const ANSWERS: u64 = 300;
/// ... but no longer than this.
const SLOT_MOST_NS: u64 = 20 * SECOND_NS;
/// Time after a change of size that is not measured, because servers open and close.
const SETTLE_NS: u64 = SECOND_NS / 2;
/// Gain that more servers must bring, in answers a second ...
const GAIN: f64 = 0.05;
/// ... or in time.
const QUICKER: f64 = 0.10;
/// Loss that fewer servers may cost, in answers a second and in time.
const LOSS: f64 = 0.02;
/// And this is certain not to be the loss.
const LOSS_MOST: f64 = 0.08;
/// Pairs of slots in a trial.
const PAIRS: std::ops::RangeInclusive<usize> = 2..=12;
/// Number of standard errors from which a difference counts.
const SURE: f64 = 3.5;
/// A pair of slots that differs by more ends a trial at once if it is for the worse.
const FAR_WORSE: f64 = 0.5;
/// Between trials that find nothing.
const RESTS_NS: std::ops::RangeInclusive<u64> = 10 * SECOND_NS..=320 * SECOND_NS;
/// Slots at rest that the noise is measured by, before anything is tried. A jump spoils two of their
/// differences.
const SLOTS_AT_REST: usize = 6;
/// And the most of them that are remembered.
const SLOTS_REMEMBERED: usize = 24;
/// The noise of figures that have none is this at least: a machine is never so quiet.
const LEAST_NOISE: f64 = 0.01;
/// Less under way than this at a time, in the mean: nothing to gain, nothing to save.
const LEAST_LOAD: f64 = 1.2;

/// What a slot comes to, as logarithms: differences of these are ratios.
#[derive(Debug, Clone, Copy)]
struct Figures {
    rate: f64,
    time: f64,
    /// Requests at a time, waiting ones included, in the mean (Little's law).
    load: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Fewer,
    More,
}

#[derive(Debug)]
enum Phase {
    Resting { left_ns: u64 },
    Trying { other: usize, seen: Vec<Figures> },
}

/// The size of one pool.
#[derive(Debug)]
pub struct AutoSize {
    bounds: Bounds,
    size: usize,
    phase: Phase,
    /// What is tried next.
    next: Way,
    /// By halves while that helps, then by quarters.
    coarse: bool,
    /// Trials that found nothing, one after the other.
    refused: u32,
    rest_ns: u64,
    /// What fewer servers have cost so far, as a logarithm.
    given_up: f64,
    /// The slot that is being measured.
    slot: Slot,
    active_sum: f64,
    ticks: u32,
    settle_ns: u64,
    /// Slots at rest, the latest last.
    at_rest: VecDeque<Figures>,
    /// What was there when the last trial found nothing.
    settled: Option<Figures>,
    /// Slots one after the other in which it was something else.
    another: u32,
}

impl AutoSize {
    /// Begins with this size, or what the bounds allow.
    pub fn new(bounds: Bounds, size: usize) -> Self {
        AutoSize {
            bounds,
            size: size.clamp(bounds.min, bounds.max),
            phase: Phase::Resting { left_ns: 0 },
            next: Way::More,
            coarse: true,
            refused: 0,
            rest_ns: *RESTS_NS.start(),
            given_up: 0.0,
            slot: Slot::default(),
            active_sum: 0.0,
            ticks: 0,
            settle_ns: SETTLE_NS,
            at_rest: VecDeque::new(),
            settled: None,
            another: 0,
        }
    }

    /// The size that holds now: the one found, or the one that is being tried.
    pub fn size(&self) -> usize {
        match &self.phase {
            Phase::Trying { other, seen } if matches!(seen.len() % 4, 1 | 2) => *other,
            Phase::Resting { .. } | Phase::Trying { .. } => self.size,
        }
    }

    /// Another size is being tried.
    pub fn is_trying(&self) -> bool {
        matches!(self.phase, Phase::Trying { .. })
    }

    /// Other bounds, from a reload.
    pub fn set_bounds(&mut self, bounds: Bounds) -> Option<Change> {
        if bounds == self.bounds {
            return None;
        }
        self.bounds = bounds;
        self.begin_anew();
        self.become_size(self.size.clamp(bounds.min, bounds.max), Why::Bounds)
    }

    /// Takes in what was measured since the last call, at least once a second. `may_try`: no other pool of
    /// the same process tries a size now, so that they do not measure each other.
    pub fn step(&mut self, tick: Slot, may_try: bool) -> Option<Change> {
        if self.settle_ns > 0 {
            self.settle_ns = self.settle_ns.saturating_sub(tick.elapsed_ns);
            return None;
        }
        self.slot.elapsed_ns += tick.elapsed_ns;
        self.slot.answered += tick.answered;
        self.slot.took_ns += tick.took_ns;
        self.slot.waited_ns += tick.waited_ns;
        self.slot.waiting = tick.waiting;
        self.active_sum += tick.active as f64;
        self.ticks += 1;
        if let Some(change) = self.starving() {
            return Some(change);
        }
        if self.much_worse_already() {
            if self.coarse && self.next == Way::Fewer {
                // By far too few: no smaller step is looked for on this side. On the other it goes on by
                // halves.
                self.begin_slot();
                (self.next, self.settle_ns, self.phase) =
                    (Way::More, SETTLE_NS, Phase::Resting { left_ns: 0 });
                self.refused += 1;
            } else {
                self.refuse();
            }
            return None;
        }
        let slot = self.slot;
        if slot.elapsed_ns < SLOT_NS || (slot.answered < ANSWERS && slot.elapsed_ns < SLOT_MOST_NS) {
            return None;
        }
        let active = self.active_sum / f64::from(self.ticks.max(1));
        let before = self.size();
        self.begin_slot();
        let change = if slot.answered < ANSWERS {
            self.too_little(slot)
        } else {
            self.measured(slot, active, may_try)
        };
        if self.size() != before {
            self.settle_ns = SETTLE_NS;
        }
        change
    }

    fn begin_slot(&mut self) {
        (self.slot, self.active_sum, self.ticks) = (Slot::default(), 0.0, 0);
    }

    /// Clients wait, and for a second and more nothing was answered: there is nothing to compare, and the
    /// cause is that too few servers are free.
    fn starving(&mut self) -> Option<Change> {
        let nothing = self.slot.answered == 0 && self.slot.elapsed_ns >= SECOND_NS && self.slot.waiting > 0;
        if nothing && self.size() < self.size {
            self.refuse();
            return None;
        }
        nothing.then(|| self.grow_unmeasured()).flatten()
    }

    /// Too few requests to compare anything. If some of them wait all the same, they are long ones.
    fn too_little(&mut self, slot: Slot) -> Option<Change> {
        self.phase = Phase::Resting { left_ns: 0 };
        self.at_rest.clear();
        (slot.waiting > 0).then(|| self.grow_unmeasured()).flatten()
    }

    fn grow_unmeasured(&mut self) -> Option<Change> {
        self.begin_anew();
        self.become_size(self.larger(self.size), Why::Starved)
    }

    /// A trial need not be carried on when half of the requests do not come through any more.
    fn much_worse_already(&self) -> bool {
        let Phase::Trying { seen, .. } = &self.phase else { return false };
        if self.size() == self.size || self.slot.elapsed_ns < SECOND_NS / 2 {
            return false;
        }
        let Some(before) = seen.first() else { return false };
        let rate = (self.slot.answered.max(1) as f64 / self.slot.elapsed_ns as f64).ln();
        rate < before.rate - FAR_WORSE.max(2.0 * SURE * self.noise().0)
    }

    fn measured(&mut self, slot: Slot, active: f64, may_try: bool) -> Option<Change> {
        let rate = slot.answered as f64 / slot.elapsed_ns as f64;
        let time = (slot.took_ns + slot.waited_ns).max(1) as f64 / slot.answered as f64;
        let figures = Figures { rate: rate.ln(), time: time.ln(), load: rate * time };
        match &mut self.phase {
            Phase::Resting { left_ns } => {
                *left_ns = left_ns.saturating_sub(slot.elapsed_ns);
                let over = *left_ns == 0;
                self.at_rest.push_back(figures);
                if self.at_rest.len() > SLOTS_REMEMBERED {
                    self.at_rest.pop_front();
                }
                if self.is_another(figures) {
                    self.begin_anew();
                    // Fewer first where there are many: that too few are left shows within a second, that
                    // more bring nothing takes a whole trial.
                    if self.size > self.bounds.start() {
                        self.next = Way::Fewer;
                    }
                } else if over && may_try && self.another == 0 && self.at_rest.len() >= SLOTS_AT_REST {
                    self.begin_trial(figures, active);
                }
                None
            }
            Phase::Trying { seen, .. } => {
                let as_before = matches!(seen.len() % 4, 0 | 3);
                let first = seen.first().copied().filter(|_| as_before);
                seen.push(figures);
                if first.is_some_and(|first| self.is_far(figures, first)) {
                    // The same size, and not the same load: the trial would compare two loads.
                    self.phase = Phase::Resting { left_ns: 0 };
                    self.at_rest.push_back(figures);
                    self.another = 1;
                    return None;
                }
                if self.is_halfway() { None } else { self.judge() }
            }
        }
    }

    /// Twice or half as much as when it came to rest, or as usual before it ever did, for several slots: what
    /// was found out need not hold.
    fn is_another(&mut self, now: Figures) -> bool {
        let Some(then) = self.settled.or_else(|| self.usual()) else { return false };
        self.another = if self.is_far(now, then) { self.another + 1 } else { 0 };
        self.another >= 2
    }

    fn is_far(&self, now: Figures, then: Figures) -> bool {
        let far = |now: f64, then: f64| (now - then).abs() > 0.5 + SURE * self.noise().0;
        far(now.rate, then.rate) || far(now.load.ln(), then.load.ln())
    }

    /// One slot of a pair is measured.
    fn is_halfway(&self) -> bool {
        matches!(&self.phase, Phase::Trying { seen, .. } if seen.len() % 2 == 1)
    }

    /// What was found out before does not hold any more.
    fn begin_anew(&mut self) {
        self.phase = Phase::Resting { left_ns: 0 };
        (self.next, self.coarse, self.refused, self.given_up) = (Way::More, true, 0, 0.0);
        (self.rest_ns, self.settled, self.another) = (*RESTS_NS.start(), None, 0);
        self.at_rest.clear();
        self.begin_slot();
    }

    fn begin_trial(&mut self, now: Figures, active: f64) {
        if now.load < LEAST_LOAD {
            return;
        }
        // Servers that nobody uses make no difference.
        let used = self.size.min(active.ceil().max(1.0) as usize).max(self.bounds.min);
        let fewer = Some(self.smaller(used)).filter(|&fewer| fewer < used);
        // More than there are requests at a time make no difference either.
        let wanted = now.load > self.size as f64 * 1.05 && active > self.size as f64 * 0.75;
        let more = Some(self.larger(self.size)).filter(|&more| more > self.size && wanted);
        let (first, second) = match self.next {
            Way::Fewer => (fewer, more),
            Way::More => (more, fewer),
        };
        match first.or(second) {
            Some(other) => {
                self.next = if other < self.size { Way::Fewer } else { Way::More };
                self.phase = Phase::Trying { other, seen: vec![now] };
            }
            None => self.rest(now),
        }
    }

    fn larger(&self, size: usize) -> usize {
        (size + self.stride(size)).min(self.bounds.max)
    }

    fn smaller(&self, size: usize) -> usize {
        size.saturating_sub(self.stride(size)).max(self.bounds.min)
    }

    fn stride(&self, size: usize) -> usize {
        (size / if self.coarse { 2 } else { 4 }).max(1)
    }

    /// The noise of one slot: of the rate, of the time.
    fn noise(&self) -> (f64, f64) {
        // Differences of neighbours, so that a slow rise or fall is none; and their median, so that one jump
        // is none, either: the load became another, and the noise did not.
        let of = |value: fn(&Figures) -> f64| {
            let steps = self.at_rest.iter().zip(self.at_rest.iter().skip(1));
            let usual = median(steps.map(|(a, b)| (value(b) - value(a)).abs())).unwrap_or_default();
            (usual / MEDIAN_OF_NORMAL / std::f64::consts::SQRT_2).max(LEAST_NOISE)
        };
        (of(|f| f.rate), of(|f| f.time))
    }

    /// The middle of what was measured at rest.
    fn usual(&self) -> Option<Figures> {
        let of = |value: fn(&Figures) -> f64| median(self.at_rest.iter().map(value));
        Some(Figures { rate: of(|f| f.rate)?, time: of(|f| f.time)?, load: of(|f| f.load)? })
    }

    fn judge(&mut self) -> Option<Change> {
        let Phase::Trying { other, seen } = &self.phase else { return None };
        let (other, fewer) = (*other, *other < self.size);
        let pairs: Vec<(Figures, Figures)> = seen
            .chunks_exact(2)
            .enumerate()
            .map(|(at, pair)| if at % 2 == 0 { (pair[0], pair[1]) } else { (pair[1], pair[0]) })
            .collect();
        let count = pairs.len();
        let (noise_rate, noise_time) = self.noise();
        let rate = Mean::of(pairs.iter().map(|(one, other)| other.rate - one.rate), noise_rate);
        let time = Mean::of(pairs.iter().map(|(one, other)| other.time - one.time), noise_time);
        let last = count >= *PAIRS.end();
        if count < *PAIRS.start() {
            return None;
        }
        let loss = -rate.mean.min(0.0);
        let better = if fewer {
            let allowed = (LOSS - self.given_up).max(0.0);
            let no_loss = rate.mean >= -allowed && rate.low(2.0) > -LOSS_MOST;
            let no_wait = time.mean <= LOSS && time.high(2.0) < LOSS_MOST;
            no_loss && (no_wait || rate.low(SURE) > 0.0)
        } else {
            let gain = rate.mean >= GAIN && rate.low(SURE) > 0.0;
            let quicker = time.mean <= -QUICKER && time.high(SURE) < 0.0 && rate.mean > -LOSS;
            gain || quicker
        };
        if better {
            self.given_up = if fewer { self.given_up + loss } else { 0.0 };
            (self.refused, self.rest_ns, self.settled, self.another) = (0, *RESTS_NS.start(), None, 0);
            // It goes on that way at once; the noise is known. What was measured becomes what it would have
            // been with this size, or the step itself would pass for noise.
            self.phase = Phase::Resting { left_ns: 0 };
            self.at_rest.drain(..self.at_rest.len().saturating_sub(SLOTS_AT_REST - 1));
            for figures in &mut self.at_rest {
                figures.rate += rate.mean;
                figures.time += time.mean;
                figures.load *= (rate.mean + time.mean).exp();
            }
            let why = Why::Tried { rate: rate.mean.exp(), time: time.mean.exp(), pairs: count };
            return self.become_size(other, why);
        }
        let hopeless = if fewer {
            rate.high(2.0) < -LOSS || time.low(2.0) > LOSS
        } else {
            rate.high(2.0) < GAIN && time.low(2.0) > -QUICKER
        };
        if hopeless || last {
            self.refuse();
        }
        None
    }

    /// The other size is not better.
    fn refuse(&mut self) {
        let Phase::Trying { other, seen } = &self.phase else { return };
        let (other, first) = (*other, seen.first().copied());
        self.begin_slot();
        self.settle_ns = SETTLE_NS;
        if std::mem::replace(&mut self.coarse, false) && other.abs_diff(self.size) > 1 {
            // A smaller step may be.
            self.phase = Phase::Resting { left_ns: 0 };
            return;
        }
        self.next = if self.next == Way::Fewer { Way::More } else { Way::Fewer };
        self.refused += 1;
        match first {
            // The other way round first.
            Some(now) if self.refused.is_multiple_of(2) => self.rest(now),
            _ => self.phase = Phase::Resting { left_ns: 0 },
        }
    }

    /// Nothing better is known: leaves it alone, each time for longer.
    fn rest(&mut self, now: Figures) {
        self.phase = Phase::Resting { left_ns: self.rest_ns };
        self.rest_ns = (self.rest_ns * 2).min(*RESTS_NS.end());
        (self.settled, self.another) = (Some(now), 0);
    }

    fn become_size(&mut self, to: usize, why: Why) -> Option<Change> {
        let from = std::mem::replace(&mut self.size, to);
        self.settle_ns = SETTLE_NS;
        (from != to).then_some(Change { from, to, why })
    }
}

/// The median of how far values of a normal distribution are from its middle, in standard deviations.
const MEDIAN_OF_NORMAL: f64 = 0.6745;

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (below, above) = (values.get(values.len().saturating_sub(1) / 2)?, values.get(values.len() / 2)?);
    Some((below + above) / 2.0)
}

/// A mean, and how far it may be off.
#[derive(Debug, Clone, Copy)]
struct Mean {
    mean: f64,
    error: f64,
}

impl Mean {
    /// Of differences of two slots each, whose noise is at least `noise`.
    fn of(values: impl Iterator<Item = f64> + Clone, noise: f64) -> Mean {
        let count = values.clone().count().max(1) as f64;
        let mean = values.clone().sum::<f64>() / count;
        let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
        let spread = if count > 1.0 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        Mean { mean, error: spread.max(noise * std::f64::consts::SQRT_2) / count.sqrt() }
    }

    fn low(&self, errors: f64) -> f64 {
        self.mean - errors * self.error
    }

    fn high(&self, errors: f64) -> f64 {
        self.mean + errors * self.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database that does its best with `knee` requests at a time, behind clients that ask again `think_ns`
    /// after they are answered. Each further server takes 3% of what all do.
    #[derive(Clone, Copy)]
    struct World {
        knee: f64,
        clients: f64,
        think_ns: f64,
        /// A moment has up to so much more or less than the mean.
        noise: f64,
        /// Servers that are lent and do nothing.
        held: usize,
        seed: u64,
    }

    const REQUEST_NS: f64 = 200_000.0;
    const TICK_NS: u64 = 500_000_000;
    const BOUNDS: Bounds = Bounds { min: 1, max: 64 };

    impl World {
        fn random(&mut self) -> f64 {
            // An xorshift; the tests must be the same each time.
            self.seed ^= self.seed << 13;
            self.seed ^= self.seed >> 7;
            self.seed ^= self.seed << 17;
            (self.seed >> 11) as f64 / (1u64 << 53) as f64
        }

        fn most(&self, servers: f64) -> f64 {
            servers.min(self.knee) / REQUEST_NS / (1.0 + 0.03 * (servers - self.knee).max(0.0))
        }

        fn tick(&mut self, size: usize) -> Slot {
            let free = size.saturating_sub(self.held) as f64;
            let busy = self.clients.min(free);
            let rate = if busy < 1.0 {
                0.0
            } else {
                self.most(busy).min(self.clients / (self.think_ns + REQUEST_NS))
            };
            let rate = rate * (1.0 + self.noise * (2.0 * self.random() - 1.0));
            let load = (self.clients - rate * self.think_ns).max(rate * REQUEST_NS);
            let elapsed = TICK_NS as f64;
            Slot {
                elapsed_ns: TICK_NS,
                answered: (rate * elapsed) as u64,
                took_ns: (load.min(free) * elapsed) as u64,
                waited_ns: ((load - free).max(0.0) * elapsed) as u64,
                waiting: (load - free).max(0.0) as usize,
                active: (load.min(free).ceil() as usize + self.held).min(size),
            }
        }

        /// Serves for this long; returns the changes, and the share of the time in which another size than
        /// the one found was in force.
        fn run(&mut self, auto: &mut AutoSize, seconds: u64) -> (Vec<Change>, f64) {
            let ticks = seconds * SECOND_NS / TICK_NS;
            let (mut changes, mut tried) = (Vec::new(), 0);
            for _ in 0..ticks {
                changes.extend(auto.step(self.tick(auto.size()), true));
                assert!((BOUNDS.min..=BOUNDS.max).contains(&auto.size()));
                tried += u64::from(auto.size() != auto.size);
            }
            (changes, tried as f64 / ticks as f64)
        }
    }

    fn world(knee: usize) -> World {
        World { knee: knee as f64, clients: 500.0, think_ns: 100_000.0, noise: 0.02, held: 0, seed: 42 }
    }

    fn is_near(found: usize, knee: usize, why: &str) {
        let near = (knee as f64 * 0.74).floor() as usize..=(knee as f64 * 1.34).ceil() as usize;
        assert!(near.contains(&found), "{found} for a knee at {knee}, {why}");
    }

    #[test]
    fn finds_the_knee_from_below_and_from_above() {
        for knee in [1, 2, 3, 4, 6, 8, 12, 16, 24, 40] {
            for start in [1, 2, 8, 20, 64] {
                let mut auto = AutoSize::new(BOUNDS, start);
                world(knee).run(&mut auto, 900);
                is_near(auto.size, knee, &format!("from {start}"));
            }
        }
    }

    #[test]
    fn a_noise_of_20_percent_does_not_mislead_it() {
        for seed in 1..40 {
            for knee in [2, 6, 16] {
                let mut auto = AutoSize::new(BOUNDS, 8);
                let mut world = World { noise: 0.2, seed, ..world(knee) };
                world.run(&mut auto, 1_800);
                let (changes, _) = world.run(&mut auto, 3_600);
                assert!(changes.len() <= 3, "{changes:?} in an hour, seed {seed}");
                let close = knee / 2..=knee * 2;
                assert!(close.contains(&auto.size), "{} for a knee at {knee}, seed {seed}", auto.size);
            }
        }
    }

    #[test]
    fn follows_a_server_that_becomes_another() {
        let mut auto = AutoSize::new(BOUNDS, 4);
        for knee in [4, 20, 2, 12] {
            world(knee).run(&mut auto, 1_200);
            is_near(auto.size, knee, "after a change");
        }
    }

    #[test]
    fn follows_a_load_that_becomes_another_at_any_time() {
        // Quick requests that are best served by two, then ones that only sleep: as many as there are servers
        // at a time.
        for seconds in (3..60).chain((60..300).step_by(7)) {
            let mut auto = AutoSize::new(BOUNDS, 4);
            let mut quick = World { seed: seconds, ..world(2) };
            quick.run(&mut auto, seconds);
            for _ in 0..180 {
                let size = auto.size() as u64;
                let answered = size * TICK_NS / 10_000_000;
                auto.step(
                    Slot {
                        elapsed_ns: TICK_NS,
                        answered,
                        took_ns: size * TICK_NS,
                        waited_ns: (200 - size) * TICK_NS,
                        waiting: 200 - size as usize,
                        active: size as usize,
                    },
                    true,
                );
            }
            assert!(auto.size > 40, "{} servers for sleepers who came after {seconds} s", auto.size);
            quick.run(&mut auto, 75);
            assert!(auto.size < 8, "{} servers 75 s after the sleepers", auto.size);
            quick.run(&mut auto, 825);
            is_near(auto.size, 2, "after the sleepers");
        }
    }

    #[test]
    fn it_rests_when_it_has_found_it() {
        let mut auto = AutoSize::new(BOUNDS, 4);
        world(6).run(&mut auto, 1_800);
        let (changes, tried) = world(6).run(&mut auto, 3_600);
        assert!(changes.is_empty() && tried < 0.05, "{changes:?}, {tried} of the time");
    }

    #[test]
    fn many_small_losses_do_not_add_up() {
        // Each server brings less than the one before, and none brings nothing.
        let mut auto = AutoSize::new(BOUNDS, 40);
        let rate = |size: usize| 1.0 - 0.5 / (size as f64).powf(1.5);
        for _ in 0..7_200 {
            let size = auto.size();
            let answered = rate(size) * 5_000.0;
            let took = size as f64 * TICK_NS as f64;
            let slot = Slot {
                elapsed_ns: TICK_NS,
                answered: answered as u64,
                took_ns: took as u64,
                waited_ns: (100.0 * TICK_NS as f64 - took) as u64,
                waiting: 60,
                active: size,
            };
            auto.step(slot, true);
        }
        assert!(rate(auto.size) > 0.95 * rate(40), "{}", auto.size);
    }

    #[test]
    fn servers_that_are_held_and_do_nothing_do_not_count() {
        let mut auto = AutoSize::new(BOUNDS, 4);
        World { held: 10, ..world(4) }.run(&mut auto, 1_200);
        is_near(auto.size, 14, "10 of them held");
    }

    #[test]
    fn who_waits_for_servers_that_are_all_held_gets_more() {
        let mut auto = AutoSize::new(BOUNDS, 4);
        let (changes, _) = World { held: 4, ..world(4) }.run(&mut auto, 3);
        assert_eq!(changes.first().map(|change| change.why), Some(Why::Starved));
    }

    #[test]
    fn long_requests_that_cannot_be_compared_get_what_they_want() {
        let mut auto = AutoSize::new(BOUNDS, 4);
        for _ in 0..400 {
            let slot = Slot {
                elapsed_ns: TICK_NS,
                answered: 1,
                took_ns: 8 * TICK_NS,
                waited_ns: 4 * TICK_NS,
                waiting: 20,
                active: auto.size(),
            };
            auto.step(slot, true);
        }
        assert_eq!(auto.size, BOUNDS.max);
    }

    #[test]
    fn who_hardly_asks_is_left_alone() {
        let mut auto = AutoSize::new(BOUNDS, 8);
        let mut world = World { clients: 3.0, think_ns: 5_000_000.0, ..world(2) };
        let (changes, tried) = world.run(&mut auto, 600);
        assert!(changes.is_empty() && tried == 0.0, "{changes:?}");
    }

    #[test]
    fn while_another_pool_tries_it_does_not() {
        let mut auto = AutoSize::new(BOUNDS, 20);
        let mut world = world(2);
        for _ in 0..200 {
            let tick = world.tick(auto.size());
            assert!(auto.step(tick, false).is_none() && !auto.is_trying());
        }
    }

    #[test]
    fn bounds_hold_at_once() {
        let mut auto = AutoSize::new(BOUNDS, 20);
        let change = auto.set_bounds(Bounds { min: 2, max: 6 });
        assert_eq!(change, Some(Change { from: 20, to: 6, why: Why::Bounds }));
        assert_eq!(auto.set_bounds(Bounds { min: 2, max: 6 }), None);
    }
}
