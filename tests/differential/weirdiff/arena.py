"""Runs sessions: draws, plays on both sides, compares, looks into what differs, and reports.

Owns: workers, seeds, time, the report. A worker is a process with a database and Weir processes of its own.
"""

import collections
import contextlib
import glob
import math
import multiprocessing
import os
import queue
import random
import re
import signal
import sys
import time
import traceback

from . import dense as weirdense, known, script as scripts, shrink
from .fair import fair
from .side import Difference, Player, Stuck, compare
from .weirs import ROOT, Weirs

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TRIES = 250
SHRINK_S = 60
HISTORY = 6
# A play on the database itself that took longer than this in one step met a lock that does not end at once.
SLOW_STEP_S = 0.95


def server_env():
    path = os.path.join(os.environ.get("WEIR_TEST_SERVERS", os.path.join(ROOT, "target/servers")), "env")
    with open(path, encoding="utf-8") as f:
        return dict(line.rstrip("\n").split("=", 1) for line in f)


def databases_up():
    env = server_env()
    return [d for d in ("postgres", "mariadb", "mysql") if f"WEIR_TEST_{d.upper()}_PORT" in env]


def parts(kind):
    """The place and the generator of one database."""
    if kind == "postgres":
        from .grammar_pg import PostgresGenerator
        from .place_pg import Place, weir_config
        return Place, weir_config, PostgresGenerator
    from .grammar_my import generator
    from .place_my import place, weir_config
    return place(kind), weir_config, generator(kind)


class Undetermined(Exception):
    """The database itself does not always answer so."""


class Unfair(Exception):
    """Somebody rightly waited for a server: the generator could not know."""


class Worker:
    def __init__(self, kind, number, args):
        self.kind = kind
        self.beside = bool(args.beside_ddl)
        env = server_env()
        address = ("127.0.0.1", int(env[f"WEIR_TEST_{kind.upper()}_PORT"]))
        make_place, config, self.generator = parts(kind)
        if args.avoid:
            self.generator.avoid = re.compile(args.avoid)
        self.generator.clients = args.clients
        self.generator.seldom = None if args.no_known else known.Known().seldom(kind)
        fixed = None
        if args.in_place_of_weir:
            host, _, port = args.in_place_of_weir.rpartition(":")
            fixed = (host, int(port))
        self.weirs = Weirs(lambda port, servers: config(kind, number, address[1], port, servers + self.beside), f"{kind}{number}.{os.getpid()}", fixed,
                           lambda address: self.place.greet(address))
        self.place = make_place(address, number, self.weirs, env)
        self.history = collections.defaultdict(list)
        self.dirty = True
        # When to be done with looking into what was found.
        self.until = math.inf

    def close(self):
        self.weirs.close()

    # --- One session ---

    def draw(self, seed, family=None):
        """A session by its seed, and its play on the database itself."""
        generator = self.generator(seed)
        if family:
            generator.choose(family)
        script = scripts.Script(self.kind, generator.servers, [], generator.options())

        def source():
            for step in generator.steps():
                script.steps.append(step)
                self.place.watch(script.with_steps([step]).texts())
                yield step

        return script, Player(self.place, True).play(script, source(), generator.learn)

    def through_weir(self, script, direct, again=False):
        with contextlib.ExitStack() as ends:
            if self.beside or script.options.get("beside_ddl"):
                self.place.weir_address = self.weirs(script.servers)
                ends.callback(self.place.begin_change())
            weir = Player(self.place, False, again).play(script, like=direct)
        if said := self.weirs.trouble(script.servers):
            return Difference("end", "Weir", "", said)
        difference = compare(direct, weir)
        if difference and difference.kind == "no answer":
            difference.weir = (difference.weir, weir.pins)
        elif difference and "('closed',)" in str(difference.weir) and "('closed',)" not in str(difference.direct):
            difference.also += " | log: " + self.weirs.last_words(script.servers)
        return difference

    def session(self, seed, family=None):
        script, direct = self.draw(seed, family)
        difference = self.through_weir(script, direct)
        if difference:
            if difference.kind == "no answer" and not fair(script, direct):
                self.renew()
                raise Unfair
            return script, difference
        past = self.history[script.servers]
        if self.place.is_lasting(script):
            self.weirs.renew(script.servers)
            past.clear()
            return script, None
        past.append(script)
        del past[:-HISTORY]
        return script, None

    # --- Looking into a difference ---

    def past(self, script):
        """The sessions that this Weir served before."""
        return list(self.history[script.servers])

    def both(self, script, fresh=True):
        """Plays a script on both sides; the difference. Weir is a new one, or at least one that has shown none yet."""
        if fresh or self.dirty:
            self.renew()
        direct = Player(self.place, True).play(script)
        if direct.slowest_s > SLOW_STEP_S:
            return None
        difference = self.through_weir(script, direct, again=True)
        self.dirty = difference is not None
        return None if difference and difference.kind == "no answer" and not fair(script, direct) else difference

    def renew(self):
        """From here on Weir is a new one, and nothing is left of the old one."""
        self.weirs.close()
        # What stands in for Weir goes on by itself: its servers are ended at once.
        self.place.alone(0 if self.weirs.fixed else 1)
        self.history.clear()
        self.dirty = False

    def steady(self, script):
        """Whether the database itself answers the same each time."""
        plays = []
        for _ in range(4):
            self.place.exact = 1000
            try:
                plays.append(Player(self.place, True).play(script))
            finally:
                self.place.exact = None
        return all(compare(plays[0], other) is None for other in plays[1:])

    def investigate(self, script, difference, past):
        """(smallest script, its difference, how often it was seen again)"""
        try:
            return self.smallest(script, difference, past)
        finally:
            self.renew()

    def smallest(self, script, difference, past):
        self.renew()
        seen = [d for _ in range(4) if (d := self.both(script))]
        if not seen and past:
            steps = []
            for one in past:
                steps += [*one.steps, [scripts.Act("", "restore")]]
            chain = script.with_steps(steps + script.steps)
            seen = [d for _ in range(3) if (d := self.both(chain))]
            if seen:
                script = chain
        if not seen:
            if not self.steady(script):
                raise Undetermined
            return script, difference, "not seen again"
        wanted = collections.Counter(d.signature() for d in seen).most_common(1)[0][0]
        where = next(d.where for d in seen if d.signature() == wanted)
        times = 1 if len(seen) >= 3 else 4
        for fresh in (False, True):
            small, found = self.shrink(script, wanted, where, times, fresh)
            again = [d for _ in range(4) if (d := self.both(small)) and d.signature() == wanted]
            if again:
                break
        if not self.steady(small):
            raise Undetermined
        final = again[0] if again else found.get(small.to_text(), difference)
        return small, final, f"seen {len(again)} of 4 times again"

    def shrink(self, script, wanted, where, times, fresh):
        """(the smallest script that shows what is wanted, {script's text: its difference})"""
        found = {}
        end = min(time.monotonic() + SHRINK_S, self.until)

        def shows(candidate):
            for _ in range(times):
                if time.monotonic() > end:
                    return False
                try:
                    d = self.both(candidate, fresh)
                except Stuck:
                    self.dirty = True
                    return False
                if d and d.signature() == wanted:
                    found[candidate.to_text()] = d
                    return True
            return False

        # What comes after the first difference is not needed for it.
        if (at := re.match(r"(?:after )?step (\d+)", where)) and shows(candidate := script.with_steps(script.steps[:int(at[1])])):
            script = candidate
        return shrink.smaller(script, shows, TRIES), found


class Later:
    """Differences that wait to be looked into: by one worker at a time, because it takes long and the others play on. Of those
    that look alike a few are looked into; the others are counted with what those turned out to be."""

    ALIKE = 3

    def __init__(self, kind, args, out, one_at_a_time):
        self.kind, self.args, self.out, self.one_at_a_time = kind, args, out, one_at_a_time
        self.waiting = collections.deque()
        self.seen = collections.Counter()

    def add(self, worker, seed, script, difference):
        alike = (difference.signature(), failing(script, difference))
        self.seen[alike] += 1
        if self.seen[alike] > self.ALIKE:
            self.out.put(("alike", seed, alike))
        else:
            self.waiting.append((seed, script, difference, worker.past(script), alike))
        worker.renew()

    def look(self, worker, until=None):
        """Looks into those that wait, if nobody else does; with `until` waits for its turn."""
        while self.waiting:
            if not self.one_at_a_time.acquire(until is not None, max(until - time.monotonic(), 0) if until else None):
                break
            try:
                seed, script, difference, past, alike = self.waiting.popleft()
                try:
                    self.out.put(("difference", seed, *worker.investigate(script, difference, past), script, alike))
                except Undetermined:
                    self.out.put(("undetermined", seed, script, difference))
                except Stuck as e:
                    self.out.put(("difference", seed, script, difference, f"stuck when looked into: {e}", script, alike))
                except Exception as e:
                    # The tester ends here, but what it was looking into is told.
                    self.out.put(("difference", seed, script, difference, f"not looked into: {e!r}"[:500], script, alike))
                    raise
            finally:
                self.one_at_a_time.release()
            if until is None:
                break
        if until:
            for seed, script, difference, _, alike in self.waiting:
                self.out.put(("difference", seed, script, difference, NOT_LOOKED_INTO, script, alike))


def failing(script, difference):
    """The request that was answered otherwise, without what is drawn."""
    return re.sub(r"\d+", "N", re.sub(r"^\w+: ", "", failing_step(script, difference).texts(), flags=re.M))


def failing_step(script, difference):
    at = re.match(r"(?:after )?step (\d+)(?:, client (\w))?", difference.where)
    step = script.steps[int(at[1]) - 1] if at and int(at[1]) <= len(script.steps) else []
    return script.with_steps([[act for act in step if not at[2] or act.client == at[2]]])


NOT_LOOKED_INTO = "not looked into, for want of time"
# How long a worker may look into what it has found when its time is over.
# A long run says how far it is.
PROGRESS_S = 120
LOOK_S = 40
# How long workers that were told to end may take.
GOODBYE_S = 20


def work(kind, number, args, seeds, out, until, one_at_a_time):
    """A worker's process."""
    os.setpgid(0, 0)
    tester = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    worker = None
    counts = collections.Counter()
    later = Later(kind, args, out, one_at_a_time)
    told = time.monotonic()
    try:
        worker = Worker(kind, number, args)
        for seed in seeds:
            if time.monotonic() > told + PROGRESS_S:
                told = time.monotonic()
                out.put(("at", number, seed))
            # Nobody else ends it where the tester itself was killed.
            if time.monotonic() > until or os.getppid() != tester:
                break
            try:
                script, difference = worker.session(seed, args.family)
            except Unfair:
                counts["unfair"] += 1
                continue
            except Stuck as e:
                counts["stuck"] += 1
                out.put(("stuck", seed, str(e)[:500]))
                worker.close()
                worker = Worker(kind, number, args)
                continue
            except RuntimeError:
                # The tables cannot be read or put right behind it: the others go on.
                out.put(("broken", seed, traceback.format_exc()))
                worker.close()
                worker = Worker(kind, number, args)
                continue
            counts["sessions"] += 1
            counts["requests"] += sum(len(step) for step in script.steps)
            if difference:
                later.add(worker, seed, script, difference)
            later.look(worker)
        out.put(("played", time.monotonic()))
        worker.until = time.monotonic() + LOOK_S
        later.look(worker, worker.until)
    except BaseException:
        if not isinstance(sys.exc_info()[1], SystemExit):
            out.put(("failed", number, traceback.format_exc()))
    finally:
        if worker:
            worker.close()
        out.put(("end", number, counts))


def outline(script):
    """What two scripts have in common that show the same in other words: clients by their order, no numbers, no protocol."""
    text = script.texts()
    for new, name in enumerate(dict.fromkeys(re.findall(r"^([A-H]): ", text, re.M))):
        text = re.sub(rf"^{name}: ", f"{new}: ", text, flags=re.M)
    text = re.sub(r"^(\d: )(parse \w*: |PREPARE \w+ AS )", r"\1", text, flags=re.M)
    text = re.sub(r"^\d: ([BDECSH]|exec|sclose)( .*)?\n?", "", text, flags=re.M)
    return re.sub(r"\d+", "N", text)


class Report:
    def __init__(self, args):
        self.args = args
        self.known = known.Known()
        self.used = collections.Counter()
        self.new = []
        self.fleeting = 0
        self.shapes = collections.Counter()
        self.failed = 0
        # What those that looked alike turned out to be: names of known ones, None for a new one.
        self.verdicts = collections.defaultdict(set)
        self.alike = collections.Counter()

    def difference(self, kind, seed, script, difference, again, whole, alike):
        unseen = again == NOT_LOOKED_INTO
        name = None if self.args.no_known else self.known.match(script, difference, failing_step(script, difference) if unseen else None)
        self.verdicts[alike].add(name)
        if name:
            self.used[name] += 1
            return
        fleeting = again == "not seen again" or "seen 0" in again
        if fleeting and self.args.lenient:
            self.fleeting += 1
            most = 12_000 if difference.kind == "no answer" else 3000
            print(f"not seen again: {kind}, seed {seed}: {difference.to_text()[:most]}", flush=True)
            if self.args.findings:
                with open(self.args.findings + ".fleeting", "a", encoding="utf-8") as out:
                    out.write(f"{kind}, seed {seed}: {difference.to_text()}\n\n{script.to_text()}\n")
            return
        shape = outline(script) + str(difference.signature())
        self.shapes[shape] += 1
        self.failed += 1
        if self.shapes[shape] > 1:
            return
        text = (f"DIFFERENCE {kind}, seed {seed} ({again}); again: tests/differential/differential {kind} --seed {seed} --sessions 1"
                + (f" --family {self.args.family}" if self.args.family else "") + f"\n{difference.to_text()}\n\n{script.to_text()}")
        if fleeting:
            path = os.path.join(ROOT, "target/differential", f"{kind}.{seed}.txt")
            with open(path, "w", encoding="utf-8") as f:
                f.write(whole.to_text())
            text += f"# the whole session: {path}\n"
        self.new.append(text)
        print(text, flush=True)
        if self.args.findings:
            with open(self.args.findings, "a", encoding="utf-8") as f:
                f.write(text + "\n")


    def those_alike(self):
        """Counts those that were not looked into."""
        for alike, count in self.alike.items():
            verdicts = self.verdicts[alike]
            if verdicts and None not in verdicts:
                for name in verdicts:
                    self.used[name] += count // len(verdicts)
            else:
                self.failed += count
        self.alike.clear()


def dismiss(workers, left, out):
    """Ends the workers, `left` of which have not said their last word. What these played."""
    counts = collections.Counter()
    for w in workers:
        w.terminate()
    end = time.monotonic() + GOODBYE_S
    while left and time.monotonic() < end:
        try:
            what, *rest = out.get(timeout=0.2)
        except queue.Empty:
            if not any(w.is_alive() for w in workers):
                break
            continue
        if what == "end":
            counts += rest[1]
            left -= 1
    for w in workers:
        w.join(max(end - time.monotonic(), 0.5))
        # A worker leads a group of its own: nothing of one that does not end by itself stays, its Weirs least of all. This process
        # would wait for it for ever.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(w.pid, signal.SIGKILL)
        w.join()
    return counts


def random_sessions(kind, args, report):
    base = args.seed if args.seed is not None else random.SystemRandom().randrange(1, 1 << 31)
    jobs = max(1, min(args.jobs, args.sessions or args.jobs))
    began = time.monotonic()
    until = began + (args.seconds or (1e9 if args.sessions else 60))
    print(f"== {kind}: seed {base}, {jobs} at a time", flush=True)
    out = multiprocessing.Queue()
    one_at_a_time = multiprocessing.Semaphore(1)
    played = began
    workers = []
    for number in range(jobs):
        seeds = range(base + number, base + args.sessions, jobs) if args.sessions else range(base + number, base + (1 << 40), jobs)
        child = multiprocessing.Process(target=work, args=(kind, number + args.number, args, seeds, out, until, one_at_a_time))
        child.start()
        workers.append(child)
    counts = collections.Counter()
    left = jobs
    try:
        while left:
            try:
                what, *rest = out.get(timeout=5)
            except queue.Empty:
                if not any(w.is_alive() for w in workers):
                    report.failed += 1
                    print("a worker ended without a word", flush=True)
                    break
                continue
            if what == "end":
                counts += rest[1]
                left -= 1
            elif what == "difference":
                report.difference(kind, *rest)
                if len(report.new) >= args.stop:
                    print(f"stops after {args.stop} new differences", flush=True)
                    break
            elif what == "alike":
                report.alike[rest[1]] += 1
            elif what == "at":
                if rest[0] == args.number:
                    print(f"   {kind}: about {rest[1] - base} sessions after {time.monotonic() - began:.0f} s", flush=True)
            elif what == "played":
                played = max(played, rest[0])
            elif what == "undetermined":
                counts["undetermined"] += 1
                print(f"undetermined on {kind} itself, seed {rest[0]}: {rest[2].to_text()[:600]}", flush=True)
            elif what == "stuck":
                print(f"{kind} itself did not answer, seed {rest[0]}: {rest[1]}", flush=True)
            elif what == "broken":
                report.failed += 1
                print(f"{kind}, seed {rest[0]}: the tables are out of reach behind it:\n{rest[1]}", flush=True)
            else:
                report.failed += 1
                print(f"worker {rest[0]} failed:\n{rest[1]}", flush=True)
                break
    finally:
        # Also told when somebody ends it early.
        counts += dismiss(workers, left, out)
        took = max(played - began, 0.001) if played > began else time.monotonic() - began
        print(f"   {kind}: {counts['sessions']} sessions, {counts['requests']} acts, {took:.1f} s, {counts['sessions'] / took:.1f} a second; "
              f"{counts['undetermined']} undetermined, {counts['unfair']} unfair, {counts['stuck']} stuck", flush=True)
    report.those_alike()
    if not counts["sessions"] and not report.new:
        report.failed += 1
        print(f"   {kind}: no session was played", flush=True)


def replay(paths, args, report):
    """Plays scripts from files. Returns how many were played."""
    workers = {}
    up = databases_up()
    played = 0
    try:
        for path in paths:
            with contextlib.nullcontext(sys.stdin) if path == "-" else open(path, encoding="utf-8") as f:
                script = scripts.parse(f.read())
            for kind in script.database.split():
                if kind not in up or (args.databases and kind not in args.databases):
                    print(f"skip {os.path.basename(path)}[{kind}]: not asked for, or no such server is up", flush=True)
                    continue
                one = scripts.Script(kind, script.servers, script.steps, script.options)
                if kind not in workers:
                    workers[kind] = Worker(kind, 90 + args.number, args)
                played += 1
                replay_one(workers[kind], path, one, args, report)
    finally:
        for worker in workers.values():
            worker.close()
    return played


def dense(what, args, report):
    """Plays what `dense.py` writes. Returns how many were played."""
    played = 0
    for kind in args.databases or databases_up():
        worker = Worker(kind, 90 + args.number, args)
        try:
            seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1, 1 << 31)
            for name, script in weirdense.of(what, kind, worker.place.admin.ask, seed, args.sessions or 100):
                played += 1
                replay_one(worker, name.replace("/", ":"), script, args, report)
        finally:
            worker.close()
    return played


def replay_one(worker, path, script, args, report):
    name = f"{os.path.basename(path)}[{script.database}]"
    found = None
    for _ in range(args.repeat):
        try:
            worker.renew()
            direct = Player(worker.place, True).play(script)
            found = worker.through_weir(script, direct)
            if found and found.kind == "no answer" and not fair(script, direct):
                print(f"note {name}: not a fair script with {script.servers} servers: somebody may wait for a server rightly kept", flush=True)
        except Stuck as e:
            found = Difference("stuck", "direct", str(e), "")
        if found:
            break
    if not found:
        print(f"ok {name}", flush=True)
        return
    excuse = None if args.no_known else report.known.match(script, found)
    if excuse:
        report.used[excuse] += 1
        print(f"known {name}: {excuse}", flush=True)
        return
    report.failed += 1
    print(f"FAIL {name}\n{found.to_text()}\n", flush=True)


def run(args):
    report = Report(args)
    wanted = args.databases or databases_up()
    if args.dense:
        if not dense(args.dense, args, report):
            print("no script was played")
            report.failed += 1
    elif args.replay or args.cases:
        paths = args.replay or sorted(glob.glob(os.path.join(HERE, "cases", "*.txt")))
        if not replay(paths, args, report):
            print("no script was played")
            report.failed += 1 if args.replay else 0
    else:
        for kind in wanted:
            random_sessions(kind, args, report)
            for name, *_ in report.known.of(kind):
                if not report.used[name]:
                    print(f"   {kind}: the known difference {name} was not seen", flush=True)
    for name, count in sorted(report.used.items()):
        print(f"   known: {name}, {count} times", flush=True)
    print(f"{len(report.shapes)} new differences, seen {report.failed} times" if report.failed else "no new difference", flush=True)
    return 1 if report.failed else 0
