"""What the suites about pinned clients share: others that work all the while, and how many connections the database has seen."""

import contextlib
import threading

from .case import eventually, in_threads


@contextlib.contextmanager
def sampled(admin, connections):
    """The largest number of Weir's connections that the database has seen meanwhile: `connections` asks for it on what `admin` opens."""
    most, stop, raised = [0], threading.Event(), []

    def watch():
        try:
            with admin() as a:
                while not stop.is_set():
                    most[0] = max(most[0], connections(a))
        except BaseException as e:  # whatever it is, the test must see it
            raised.append(repr(e))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield most
    finally:
        stop.set()
        watcher.join()
    assert not raised, raised


class Others:
    """Clients that work all the while, in transactions, each of which needs a server to itself. `wire` is the client's class; `question`
    has a place for its number, which is answered with `answer` behind it."""

    def __init__(self, w, wire, question, answer, count=4):
        self.w, self.wire, self.question, self.answer = w, wire, question, answer
        self.done, self.stop, self.raised = [0] * count, threading.Event(), []
        self.thread = threading.Thread(target=lambda: self.raised.extend(in_threads(count, self.work)))

    def work(self, i):
        with self.wire(self.w.target()) as wire:
            while not self.stop.is_set():
                wire.ask("begin")
                assert wire.ask(self.question.format(i)) == [[str(i), self.answer]]
                wire.ask("commit")
                self.done[i] += 1

    def all_go_on(self):
        before = list(self.done)
        eventually(lambda: all(now > then + 2 for now, then in zip(self.done, before)), "all others go on")

    def __enter__(self):
        self.thread.start()
        self.all_go_on()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        assert not self.raised, self.raised[:3]
