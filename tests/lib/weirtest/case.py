"""Declares tests.

A suite is a module with `SERVERS = ["postgres"]` (which servers it is run on, one run each) and functions under one of

- `@both`: takes a target; run direct and in each way through Weir. What it returns is what the client saw; through Weir it
  must equal what was seen direct. Anything a run may change by itself must be masked before it is returned.
- `@weir`: takes the context; about Weir itself, there is no direct counterpart.
- `@externals`: like `both`, but one function brings the results of many tests.

The function's name is the test's. A coroutine function is run in an event loop of its own.
"""

REGISTRY = []
DEFAULT_WAYS = ("transaction", "session")


class Skip(Exception):
    """This test cannot be run here; the text says why."""


class Case:
    def __init__(self, kind, function, ways, name=None, only=None):
        self.kind = kind
        self.only = only
        self.function = function
        self.ways = ways
        self.name = name or function.__name__.removeprefix("test_")


def both(function=None, *, ways=DEFAULT_WAYS):
    """Run direct and through Weir, and compare."""
    if function is None:
        return lambda f: both(f, ways=ways)
    REGISTRY.append(Case("both", function, ways))
    return function


def weir(function=None, *, only=None):
    """Run once, with the context. `only`: of the suite's servers it is about this one."""
    if function is None:
        return lambda f: weir(f, only=only)
    REGISTRY.append(Case("weir", function, (), only=only))
    return function


def externals(function=None, *, ways=DEFAULT_WAYS):
    """The function takes a target and returns a list of (name, seen, error or None, skip reason or None)."""
    if function is None:
        return lambda f: externals(f, ways=ways)
    REGISTRY.append(Case("externals", function, ways))
    return function


def eventually(ready, what, deadline_s=20.0, pause_s=0.02):
    """Polls until `ready()` is true and returns that value. The deadline only bounds a failure."""
    import time

    end = time.monotonic() + deadline_s
    while True:
        value = ready()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s} s: {what}")
        time.sleep(pause_s)


async def eventually_async(ready, what, deadline_s=20.0, pause_s=0.02):
    """The same for a coroutine function."""
    import asyncio
    import time

    end = time.monotonic() + deadline_s
    while True:
        value = await ready()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s} s: {what}")
        await asyncio.sleep(pause_s)


def in_threads(count, work):
    """Runs work(0), work(1), ... at the same time; returns what they raised, with the number of each."""
    import threading

    raised = []

    def run(i):
        try:
            work(i)
        except BaseException as e:  # whatever it is, the test must see it
            raised.append((i, repr(e)))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return raised
