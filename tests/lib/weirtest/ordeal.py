"""What long and hard runs share (tests/soak, tests/torture): servers of their own that may be killed at any time.

Owns: their processes as the kernel shows them, what runs before have left, what Weir holds open, reloads. Must not know: when
something fails, and why.
"""

import contextlib
import ctypes
import glob
import os
import shutil
import signal
import subprocess

from .case import eventually
from .private import TOOL
from .weir import ROOT

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """The databases' processes become children of this one when who has started them ends."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def name_suite(run, kind):
    """Names this run's server, its directory and Weir's logs: by its process, so that `tidy_after_others` knows whether it still runs."""
    os.environ["WEIR_SUITE"] = f"{run}-{kind}-{os.getpid()}"


def tidy_after_others(run):
    """Takes down the servers of runs that were killed: they could not do so."""
    for path in glob.glob(os.path.join(ROOT, f"target/servers-{run}-*-*")):
        if not runs(int(path.rsplit("-", 1)[1])):
            subprocess.run([TOOL, "--dir", path, "down"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
            shutil.rmtree(path, ignore_errors=True)


def status(pid):
    """State and parent, and what else /proc/PID/stat says behind the name; none when it has gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return []


def runs(pid):
    return (status(pid) or "Z")[0] not in "ZX"


def family(main):
    """A server's main process, then its children; none when it has gone."""
    if not status(main):
        return []
    return [main, *(int(pid) for pid in os.listdir("/proc") if pid.isdigit() and status(pid)[1:2] == [str(main)])]


def signal_family(main, sig):
    """The main process first, so that no further ones come."""
    for pid in family(main):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)


def kill_family(main, deadline_s):
    pids = family(main)
    if pids:
        os.kill(main, signal.SIGSTOP)
        pids = family(main)
    for pid in reversed(pids):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    eventually(lambda: not any(runs(pid) for pid in pids), "the database is dead", deadline_s)
    # Until somebody has waited for it, a dead process looks alive to its successor.
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def descriptors(weir):
    """Names of distinct ones of all of Weir's threads, which may have tables of their own."""
    found = set()
    root = f"/proc/{weir.process.pid}/task"
    for task in os.listdir(root):
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"{root}/{task}/fd"):
                with contextlib.suppress(OSError):
                    name = os.readlink(f"{root}/{task}/fd/{fd}")
                    # Sockets have a name each; of others, such as an epoll, the number tells.
                    found.add(name if name.startswith("socket:") else f"{fd} {name}")
    return found


def reload(weir, deadline_s):
    """Has Weir read its configuration again, and waits until it has."""
    before = weir.log().count("was reloaded")
    weir.signal(signal.SIGHUP)
    eventually(lambda: weir.log().count("was reloaded") > before, "the configuration is read again", deadline_s)
