"""A TCP relay between Weir and the database, which can delay, freeze, cut and swallow what passes.

Owns: one thread, its sockets. Must not know: what the bytes mean, but for those by which a lie is told and by which a connection is known to
carry clients' requests.
"""

import collections
import select
import socket
import struct
import threading
import time

CHUNK, FULL = 1 << 16, 1 << 18
ABORT = struct.pack("ii", 1, 0)
ESTABLISHED = 1  # of TCP_INFO's first byte


class Pipe:
    """One direction of a connection."""

    def __init__(self, source, sink):
        self.source, self.sink = source, sink
        self.bytes = collections.deque()  # (not before, bytes)
        self.size = 0
        self.ended = self.told = False

    def put(self, data, due):
        self.bytes.append((due, data))
        self.size += len(data)


class Pair:
    def __init__(self, weir, database):
        self.weir, self.database = weir, database
        self.up, self.down = Pipe(weir, database), Pipe(database, weir)
        self.worked = self.dead = False

    def pipes(self):
        return self.up, self.down

    def close(self, abort=False):
        for sock in (self.weir, self.database):
            if abort:
                try:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
                except OSError:
                    pass
            sock.close()

    def carries_clients(self):
        """A request of a client has come this way, and Weir has not closed it."""
        if not self.worked or self.weir.fileno() < 0:
            return False
        try:
            return self.weir.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == ESTABLISHED
        except OSError:
            return False


class Relay(threading.Thread):
    """`listener` is Weir's side; `port` the database's. `frozen`, `hole`, `delay_s` and `piece` may be set at any time."""

    def __init__(self, listener, port, lie=None):
        super().__init__(name="relay", daemon=True)
        self.listener, self.port, self.lie = listener, port, lie
        listener.setblocking(False)
        self.pairs = []
        self.frozen = self.hole = False
        self.delay_s, self.piece = 0.0, CHUNK
        self.orders = collections.deque()
        self.wake_in, self.wake_out = socket.socketpair()
        # Where packets are lost, a connection may look open here that Weir has closed.
        self.unsure_until = 0.0
        self.most, self.lies, self.passed, self.trouble = 0, 0, 0, None
        self.start()

    # --- Orders, from other threads ---

    def order(self, what):
        done = threading.Event()
        self.orders.append((what, done))
        self.wake_out.send(b"x")
        while self.is_alive() and not done.wait(1):
            pass

    def cut(self, only_dead=False):
        """Ends connections by RST, those to the database as well."""

        def cut():
            for pair in self.pairs:
                if pair.dead or not only_dead:
                    pair.close(abort=True)
            self.pairs = [p for p in self.pairs if p.weir.fileno() >= 0]

        self.order(cut)

    def swallow(self, on):
        """Nothing is answered any more, by connections that are there and by new ones; behind it they are cut."""
        self.hole = on
        if on:
            self.order(lambda: [setattr(p, "dead", True) for p in self.pairs])
        else:
            self.cut(only_dead=True)

    def stop(self):
        self.cut()
        self.order(None)
        self.join(10)
        self.listener.close()

    # --- The thread ---

    def run(self):
        try:
            while self.turn():
                pass
        except Exception as e:
            self.trouble = repr(e)
            raise

    def turn(self):
        now = time.monotonic()
        poll, sides = select.poll(), {}
        poll.register(self.wake_in, select.POLLIN)
        if not self.frozen:
            poll.register(self.listener, select.POLLIN)
        wait_ms = 1000
        for pair in self.pairs if not self.frozen else ():
            if pair.dead:
                continue
            for pipe in pair.pipes():
                if not pipe.ended and pipe.size < FULL:
                    sides.setdefault(pipe.source.fileno(), [0, pair, None, None])[0] |= select.POLLIN
                    sides[pipe.source.fileno()][2] = pipe
                if pipe.bytes:
                    due = pipe.bytes[0][0]
                    if due <= now:
                        sides.setdefault(pipe.sink.fileno(), [0, pair, None, None])[0] |= select.POLLOUT
                        sides[pipe.sink.fileno()][3] = pipe
                    else:
                        wait_ms = min(wait_ms, int((due - now) * 1000) + 1)
        for fd, side in sides.items():
            poll.register(fd, side[0])
        for fd, event in poll.poll(wait_ms):
            if fd == self.wake_in.fileno():
                self.wake_in.recv(4096)
            elif fd == self.listener.fileno():
                self.accept()
            else:
                _, pair, source, sink = sides[fd]
                if pair in self.pairs:
                    self.move(pair, source, sink, event)
        while self.orders:
            what, done = self.orders.popleft()
            if what is None:
                done.set()
                return False
            what()
            done.set()
        return True

    def accept(self):
        try:
            weir, _ = self.listener.accept()
        except OSError:
            return
        weir.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        database = socket.socket()
        try:
            database.settimeout(10)
            database.connect(("127.0.0.1", self.port))
            database.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            Pair(weir, database).close(abort=True)
            return
        weir.setblocking(False)
        database.setblocking(False)
        pair = Pair(weir, database)
        pair.dead = self.hole
        self.pairs.append(pair)

    def move(self, pair, source, sink, event):
        try:
            if source and event & ~select.POLLOUT:
                self.take(pair, source)
            if sink and event & select.POLLOUT:
                self.give(sink)
        except BlockingIOError:
            return
        except OSError:
            # One side was reset; so is the other, but what it was told before still arrives.
            self.give_all(pair)
            pair.close(abort=True)
            self.pairs.remove(pair)
            return
        for pipe in pair.pipes():
            if pipe.ended and not pipe.bytes and not pipe.told:
                pipe.told = True
                try:
                    pipe.sink.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
        if all(pipe.told for pipe in pair.pipes()):
            pair.close()
            self.pairs.remove(pair)

    def take(self, pair, pipe):
        data = pipe.source.recv(CHUNK)
        if not data:
            pipe.ended = True
            return
        if pipe is pair.up:
            if b"torture" in data and not pair.worked:
                pair.worked = True
                if time.monotonic() > self.unsure_until:
                    self.most = max(self.most, self.carrying())
            if self.lie == "lost" and b"insert into torture_rows" in data:
                self.passed += 1
                if self.passed % 200 == 0:
                    self.lies += 1
                    data = data.replace(b"insert into torture_rows", b"insert into torture_lost")
        elif self.lie == "crossed" and b"echo-" in data:
            self.passed += 1
            if self.passed % 200 == 0:
                self.lies += 1
                data = data.replace(b"echo-", b"ohce-")
        pipe.put(data, time.monotonic() + self.delay_s)

    def give(self, pipe):
        due, data = pipe.bytes[0]
        sent = pipe.sink.send(data[:self.piece])
        pipe.size -= sent
        if sent == len(data):
            pipe.bytes.popleft()
        else:
            pipe.bytes[0] = (due, data[sent:])

    def give_all(self, pair):
        for pipe in pair.pipes():
            try:
                while pipe.bytes:
                    self.give(pipe)
            except OSError:
                pass

    def scene(self):
        """One line a connection."""
        return [f"relay: {p.up.size} bytes up{', ended' * p.up.ended}, {p.down.size} down{', ended' * p.down.ended}{', dead' * p.dead}"
                for p in list(self.pairs)]

    def carrying(self):
        return sum(pair.carries_clients() for pair in self.pairs)
