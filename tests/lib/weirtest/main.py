"""Runs one suite on one server: python -m weirtest.main FILE SERVER --via weir|pgbouncer|direct [--only TEST]

Prints `ok NAME`, `FAIL NAME` with what went wrong below it, or `skip NAME: reason`; tests/run counts them.
"""

import argparse
import asyncio
import difflib
import fnmatch
import importlib.util
import inspect
import json
import os
import signal
import sys
import time
import traceback

from . import case
from .target import direct_target, server_env
from .weir import ROOT, Weir

TEST_DEADLINE_S = 120


# In session mode every connected client has a server of its own; in the others, sharing is what is tested.
POOL_SIZE = {"session": 60, "transaction": 8, "statement": 8}


class Hung(BaseException):
    """Raised in a test that does not come to an end."""


def on_alarm(_signum, _frame):
    raise Hung(f"no end after {TEST_DEADLINE_S} s")


class Context:
    """What a suite runs against. Weir processes are started when first asked for and live as long as the suite."""

    def __init__(self, kind, via):
        self.kind = kind
        self.via = via
        self.running = {}

    def direct(self):
        return direct_target(self.kind)

    def ways(self, wanted):
        """The ways that can be run. PgBouncer stands in for session mode only, and makes no promise about the others."""
        if self.via == "pgbouncer":
            return [w for w in wanted if w == "session" and self.kind == "postgres"]
        return list(wanted)

    def target(self, way):
        if way == "direct" or self.via == "direct":
            target = self.direct()
            return target if way == "direct" else type(target)(**{**target.__dict__, "way": way})
        if self.via == "pgbouncer":
            target = direct_target(self.kind, server_env("pgbouncer", "PORT"))
            return type(target)(**{**target.__dict__, "way": way})
        weir = self.running.get(way)
        if weir is None or not weir.alive():
            if weir is not None:
                weir.stop()  # raises: it died
            weir = self.running[way] = Weir.before(
                self.kind, mode=way, pool_size=POOL_SIZE[way], settings=self.settings, users=self.users)
        return weir.target(way)

    settings = ()
    users = ()

    def close(self):
        """Ends every Weir; returns what went wrong by way."""
        failures = []
        for way, weir in self.running.items():
            try:
                weir.stop()
                failures.append((way, None))
            except AssertionError as e:
                failures.append((way, str(e)))
        return failures


def known_differences(suite):
    """Lines of tests/known.txt that concern this suite: [(pattern of a test's name, reason)]. A reason that begins with
    `flaky: ` excuses a test that does not always fail."""
    found = []
    with open(os.path.join(ROOT, "tests/known.txt"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                where, reason = line.strip().split(": ", 1)
                suite_pattern, test_pattern = where.split(" ")
                if fnmatch.fnmatchcase(suite, suite_pattern):
                    found.append((test_pattern, reason))
    return found


class Reporter:
    """Counts and prints. What tests/known.txt names is skipped when it fails. When it does not, its line is stale, and that
    is a failure, unless the line says that the test is flaky."""

    def __init__(self):
        self.failed = 0
        self.known = known_differences(os.environ.get("WEIR_SUITE", ""))

    def reason(self, name):
        return next((why for pattern, why in self.known if fnmatch.fnmatchcase(name, pattern)), None)

    def ok(self, name):
        why = self.reason(name)
        if why and not why.startswith("flaky: "):
            self.failed += 1
            print(f"FAIL {name}\n    it passes, and tests/known.txt says otherwise ({why}): take its line out", flush=True)
            return
        print(f"ok {name}{' (flaky by tests/known.txt)' if why else ''}", flush=True)

    def skip(self, name, why):
        print(f"skip {name}: {why}", flush=True)

    def fail(self, name, text):
        if why := self.reason(name):
            self.skip(name, f"KNOWN: {why}")
            return
        self.failed += 1
        print(f"FAIL {name}", flush=True)
        for line in text.rstrip().splitlines()[-60:]:
            print(f"    {line}"[:600], flush=True)


def call(function, argument):
    """Runs a test function bounded in time; returns what it returns."""
    signal.alarm(TEST_DEADLINE_S)
    try:
        if inspect.iscoroutinefunction(function):
            return asyncio.run(function(argument))
        return function(argument)
    finally:
        signal.alarm(0)


def plain(value):
    """What a test saw, as text that can be compared and shown."""
    return json.dumps(value, indent=1, sort_keys=True, default=repr, ensure_ascii=False)


def difference(direct, through):
    lines = difflib.unified_diff(direct.splitlines(), through.splitlines(), "direct", "through Weir", lineterm="", n=4)
    return "\n".join(list(lines)[:50])


def run_both(context, report, test):
    seen_direct = None
    for way in ("direct", *context.ways(test.ways)):
        name = f"{test.name}/{way}"
        try:
            seen = plain(call(test.function, context.target(way)))
        except case.Skip as e:
            report.skip(name, e)
            continue
        except (Exception, Hung):
            report.fail(name, traceback.format_exc())
            continue
        if way == "direct":
            seen_direct = seen
        elif seen_direct is not None and seen != seen_direct:
            report.fail(name, "not the same as direct:\n" + difference(seen_direct, seen))
            continue
        report.ok(name)


def run_externals(context, report, test):
    direct = {}
    for way in ("direct", *context.ways(test.ways)):
        try:
            results = call(test.function, context.target(way))
        except case.Skip as e:
            report.skip(f"{test.name}/{way}", e)
            continue
        except (Exception, Hung):
            report.fail(f"{test.name}/{way}", traceback.format_exc())
            continue
        for name, seen, error, skip in results:
            full = f"{test.name}.{name}/{way}"
            if skip:
                report.skip(full, skip)
            elif error:
                report.fail(full, error)
            elif way == "direct":
                direct[name] = plain(seen)
                report.ok(full)
            elif name in direct and plain(seen) != direct[name]:
                report.fail(full, "not the same as direct:\n" + difference(direct[name], plain(seen)))
            else:
                report.ok(full)


def run_weir(context, report, test):
    if context.via != "weir":
        report.skip(test.name, "about Weir itself")
        return
    try:
        call(test.function, context)
        report.ok(test.name)
    except case.Skip as e:
        report.skip(test.name, e)
    except (Exception, Hung):
        report.fail(test.name, traceback.format_exc())


RUNNERS = {"both": run_both, "externals": run_externals, "weir": run_weir}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("server")
    parser.add_argument("--via", default="weir")
    parser.add_argument("--only", action="append", default=[], dest="tests", metavar="TEST")
    args = parser.parse_args()
    signal.signal(signal.SIGALRM, on_alarm)
    spec = importlib.util.spec_from_file_location(os.path.basename(args.file)[:-3], args.file)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(args.file)))
    spec.loader.exec_module(module)
    context = Context(args.server, args.via)
    context.settings = getattr(module, "WEIR_SETTINGS", ())
    context.users = getattr(module, "WEIR_USERS", {}).get(args.server, ())
    report = Reporter()
    for test in case.REGISTRY:
        if args.tests and not any(part in test.name for part in args.tests):
            continue
        if test.only not in (None, args.server):
            continue
        began = time.monotonic()
        RUNNERS[test.kind](context, report, test)
        print(f"    # {test.name}: {time.monotonic() - began:.2f} s", flush=True)
    for way, failure in context.close():
        name = f"weir_ends_well/{way}"
        report.fail(name, failure) if failure else report.ok(name)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
