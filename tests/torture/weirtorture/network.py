"""A network of the test's own between Weir and the relay: a veth pair into a namespace, so that packets can be lost, delayed and cut off
with no word to either side. Needs root, ip and tc; what cannot be had is said."""

import atexit
import ctypes
import os
import shutil
import socket
import subprocess
import threading

CLONE_NEWNET = 0x40000000
NAME = "weir-torture-"


class Unavailable(Exception):
    pass


def run(*argv, check=True):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)
    if check and done.returncode != 0:
        raise Unavailable(f"{' '.join(argv)}: {done.stdout.strip()[:200]}")
    return done.stdout


class Network:
    """`host` is this side's interface, `address` the relay's on the other."""

    def __init__(self):
        if os.geteuid() != 0:
            raise Unavailable("a network namespace needs root")
        for program in ("ip", "tc"):
            if not shutil.which(program):
                raise Unavailable(f"{program} is not installed")
        mark = os.getpid()
        self.has_netem = True
        self.name = f"{NAME}{mark}"
        self.host, self.other = f"wth{mark}", f"wtn{mark}"
        # 198.18.0.0/15 is for tests of networks (RFC 2544); pairs of addresses in it.
        base = 4 * (mark % 32768)
        self.mine, self.address = (f"198.{18 + (base >> 16)}.{(base + i) >> 8 & 255}.{(base + i) & 255}" for i in (1, 2))
        atexit.register(self.close)
        try:
            run("ip", "netns", "add", self.name)
            run("ip", "link", "add", self.host, "type", "veth", "peer", "name", self.other, "netns", self.name)
            run("ip", "addr", "add", f"{self.mine}/30", "dev", self.host)
            run("ip", "link", "set", self.host, "up")
            run("ip", "-n", self.name, "addr", "add", f"{self.address}/30", "dev", self.other)
            run("ip", "-n", self.name, "link", "set", self.other, "up")
            self.has_netem = self.try_netem()
        except (Unavailable, OSError) as e:
            self.close()
            raise Unavailable(str(e)) from None

    @staticmethod
    def left_behind(runs):
        """Removes those of processes that do not run any more."""
        if os.geteuid() == 0 and shutil.which("ip"):
            for line in run("ip", "netns", "list", check=False).splitlines():
                name = line.split()[0]
                if name.startswith(NAME) and not runs(int(name.removeprefix(NAME))):
                    run("ip", "netns", "del", name, check=False)

    def listener(self):
        """A socket that listens on the other side. A socket stays in the namespace it was made in."""
        made = []

        def make():
            libc = ctypes.CDLL(None, use_errno=True)
            handle = os.open(f"/run/netns/{self.name}", os.O_RDONLY)
            # Of this thread only, which ends at once.
            if libc.setns(handle, CLONE_NEWNET) == 0:
                made.append(socket.create_server((self.address, 0), backlog=128))
            os.close(handle)

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        if not made:
            raise Unavailable("a thread cannot go into the namespace")
        return made[0]

    def try_netem(self):
        try:
            self.disturb("delay", "1us")
        except Unavailable:
            return False
        self.calm()
        return True

    def disturb(self, *how):
        """tc's netem, in both directions."""
        for where in ((), ("-n", self.name)):
            run("tc", *where, "qdisc", "replace", "dev", self.other if where else self.host, "root", "netem", *how)

    def calm(self):
        self.plug(True)
        for where in ((), ("-n", self.name)) if self.has_netem else ():
            run("tc", *where, "qdisc", "del", "dev", self.other if where else self.host, "root", check=False)

    def plug(self, in_it):
        run("ip", "-n", self.name, "link", "set", self.other, "up" if in_it else "down", check=False)

    def close(self):
        run("ip", "link", "del", self.host, check=False)
        run("ip", "netns", "del", self.name, check=False)
