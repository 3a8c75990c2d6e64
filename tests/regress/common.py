"""What the programs here share: PostgreSQL's sources, a cluster of their own, Weir in front of it, what is known to differ.

The sources come from the source package of the PostgreSQL that is used, by apt-get source, into target/regress/source. With
WEIR_TEST_NEWEST=DIR that is the one which tests/servers/get-newest has fetched. Python's standard library only.
"""

import difflib
import glob
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(ROOT, "target/regress")
NEWEST = os.environ.get("WEIR_TEST_NEWEST")


def run(argv, **kwargs):
    return subprocess.run(argv, check=True, **kwargs)


def said(argv):
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout


def programs():
    """The folder of the server's programs."""
    pattern = "/usr/lib/postgresql/*/bin/postgres"
    found = sorted(glob.glob(os.path.abspath(NEWEST) + "/root" + pattern)) if NEWEST else sorted(glob.glob(pattern))
    if not found:
        sys.exit("regress: no PostgreSQL is there; `tests/setup` installs it, `tests/servers/get-newest DIR` fetches the newest")
    return os.path.dirname(found[-1])


def version(bindir):
    return re.search(r"\(PostgreSQL\) (\d+)\.(\d+)", said([os.path.join(bindir, "postgres"), "--version"])).groups()


def source_list():
    """The system's package sources, for source packages; those of unstable for the newest."""
    lines, uris = [], []
    for path in ["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*.list"))]:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                lines += [re.sub(r"^deb\s", "deb-src ", line) for line in f if line.startswith("deb ")]
    for path in sorted(glob.glob("/etc/apt/sources.list.d/*.sources")):
        with open(path, encoding="utf-8") as f:
            for part in re.split(r"\n\s*\n", f.read()):
                fields = dict(re.findall(r"^([A-Za-z-]+):\s*(.*)$", part, re.M))
                key = f"[signed-by={fields['Signed-By']}] " if fields.get("Signed-By", "").startswith("/") else ""
                for uri in fields.get("URIs", "").split():
                    for suite in fields.get("Suites", "").split():
                        lines.append(f"deb-src {key}{uri} {suite} {fields.get('Components', 'main')}\n")
    if not NEWEST:
        return "".join(lines)
    uris = [word for line in lines for word in line.split() if re.search(r"/debian/?$", word)]
    if not uris:
        sys.exit("regress: found no Debian mirror in /etc/apt")
    return f"deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {uris[0]} sid main\n"


def fetch(bindir):
    """The sources of this PostgreSQL, unpacked."""
    if given := os.environ.get("PG_SOURCE"):
        return given
    major, minor = version(bindir)
    folder, apt = os.path.join(WORK, "source"), os.path.join(WORK, "apt-newest" if NEWEST else "apt")
    place = os.path.join(folder, f"postgresql-{major}.{minor}")
    if os.path.exists(os.path.join(place, "configure")):
        return place
    for name in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(apt, name), exist_ok=True)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(apt, "sources.list"), "w", encoding="utf-8") as f:
        f.write(source_list())
    options = ["-q", "-o", f"Dir::Etc::SourceList={apt}/sources.list", "-o", "Dir::Etc::SourceParts=-",
               "-o", f"Dir::State::Lists={apt}/lists", "-o", f"Dir::Cache={apt}/cache", "-o", "APT::Sandbox::User=root",
               "-o", "Acquire::Check-Valid-Until=false"]
    with open(os.path.join(WORK, "apt.log"), "w", encoding="utf-8") as log:
        run(["apt-get", *options, "update"], stdout=log, stderr=log)
        package = f"postgresql-{major}"
        listed = said(["apt-cache", *options[1:], "showsrc", package])
        versions = [line.split()[1] for line in listed.splitlines() if line.startswith("Version: ")]
        fitting = next((one for one in versions if re.match(rf"(\d+:)?{major}\.{minor}[-~+]", one)), None)
        if not fitting:
            sys.exit(f"regress: the source of PostgreSQL {major}.{minor} is not to be had (only {', '.join(versions)}); PG_SOURCE=DIR names it")
        run(["apt-get", *options, "source", "--download-only", f"{package}={fitting}"], cwd=folder, stdout=log, stderr=log)
    archive = glob.glob(os.path.join(folder, f"postgresql-{major}_{major}.{minor}.orig.tar.*"))[0]
    shutil.rmtree(place, ignore_errors=True)
    run(["tar", "xf", archive], cwd=folder)
    return place


def build(source, *parts):
    """Makes these folders of the sources, in a folder beside them; False where this machine cannot."""
    place = source + "-build"
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(WORK, "build.log"), "a", encoding="utf-8") as log:
        def made(*argv, cwd=place):
            return subprocess.run(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=cwd, check=False).returncode == 0
        if not os.path.exists(os.path.join(place, "config.status")) and not made(
                os.path.join(source, "configure"), "--without-readline", "--without-zlib", "--without-icu", "--enable-tap-tests=no"):
            return False
        # The headers that all parts need are made by one make alone.
        return made("make", "-s", "-C", "src/backend", "generated-headers") and all(made("make", "-s", "-j2", "-C", part) for part in parts)


def server_user():
    """Whom a server may run as: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    for name in ("weir-test", "postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    sys.exit("regress: no user to run a server as")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Cluster:
    """A new cluster with its own copy of a folder of tests beside it."""

    def __init__(self, bindir, tests=None, settings=""):
        self.bindir, self.user = bindir, server_user()
        base = os.environ.get("WEIR_TEST_DATA", "/dev/shm" if os.access("/dev/shm", os.W_OK) else WORK)
        self.place = os.path.join(base, f"weir-regress-{os.getpid()}")
        shutil.rmtree(self.place, ignore_errors=True)
        os.makedirs(self.place)
        self.tests = os.path.join(self.place, "regress")
        if tests:
            shutil.copytree(tests, self.tests)
        for name in ("testtablespace", "results"):
            os.makedirs(os.path.join(self.tests, name), exist_ok=True)
        self.own()
        self.data, self.port = os.path.join(self.place, "data"), free_port()
        self.as_user("initdb", "-D", self.data, "--no-locale", "-E", "UTF8", "--auth=trust", "-U", "postgres", "--no-sync")
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as f:
            f.write(f"port = {self.port}\nunix_socket_directories = '{self.place}'\nfsync = off\nautovacuum = off\nmax_prepared_transactions = 2\n{settings}")
        self.as_user("pg_ctl", "-D", self.data, "-l", os.path.join(self.place, "log"), "-w", "start")

    def database(self, name):
        """A new database as pg_regress makes it."""
        for text in [f"CREATE DATABASE {name} TEMPLATE = template0"] + [
                f"ALTER DATABASE {name} SET {setting}" for setting in
                ("lc_messages TO 'C'", "lc_monetary TO 'C'", "lc_numeric TO 'C'", "lc_time TO 'C'", "bytea_output TO 'hex'",
                 "timezone_abbreviations TO 'Default'")]:
            run([os.path.join(self.bindir, "psql"), "-X", "-q", "-h", self.place, "-p", str(self.port), "-U", "postgres", "-c", text, "postgres"])

    def own(self):
        if self.user:
            run(["chown", "-R", self.user.pw_name, self.place])

    def as_user(self, name, *args):
        argv = [os.path.join(self.bindir, name), *args]
        if self.user:
            argv = ["runuser", "-u", self.user.pw_name, "--", *argv]
        # Modules connect from the server to itself.
        run(argv, stdout=subprocess.DEVNULL, cwd=self.place, env={**os.environ, "PGHOST": self.place, "PGUSER": "postgres"})

    def end(self):
        self.as_user("pg_ctl", "-D", self.data, "-m", "immediate", "stop")
        shutil.rmtree(self.place, ignore_errors=True)


class Weir:
    """Weir in front of a cluster's database, or of several, with `users` beside postgres."""

    def __init__(self, cluster, databases, mode, servers, *settings, users=()):
        self.port, http = free_port(), free_port()
        database = databases if isinstance(databases, str) else "databases"
        binary = os.environ.get("WEIR_BIN", os.path.join(ROOT, "target/checked/weir"))
        self.log = os.path.join(WORK, f"weir-{database}-{mode}-{servers}-{os.getpid()}.log")
        what = [f"postgres://postgres@127.0.0.1:{cluster.port}/{database}"]
        if users:
            what = ["--config", os.path.join(cluster.place, "weir.toml")]
            with open(what[1], "w", encoding="utf-8") as f:
                f.writelines(f'[databases.{name}]\nurl = "postgres://127.0.0.1:{cluster.port}/{name}"\n' for name in databases)
                f.writelines(f"[users.{name}]\n" for name in users)
                f.write('[postgres]\nauth_type = "trust"\n')
        argv = [binary, "serve", *what, "--listen", f"127.0.0.1:{self.port}",
                "--set", f"http.listen=127.0.0.1:{http}", "--set", f"pool.pool_mode={mode}", "--pool-size", str(servers)]
        for setting in settings:
            argv += ["--set", setting]
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while "listens on http" not in open(self.log, encoding="utf-8").read():
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit(f"regress: Weir did not start, see {self.log}")
            time.sleep(0.05)

    def end(self):
        ended = self.process.poll()
        self.process.terminate()
        self.process.wait()
        if ended is not None:
            sys.exit(f"regress: Weir ended with {ended}, see {self.log}")


class Known:
    """known.txt: which lines differ, and why (its first lines say how it is written)."""

    def __init__(self, name):
        self.entries = []  # (test, words of the run, reason, patterns)
        with open(os.path.join(HERE, name), encoding="utf-8") as f:
            for line in f:
                if not line.strip() or line.startswith("#"):
                    continue
                if line.startswith((" ", "\t")):
                    self.entries[-1][3].append(re.compile(line.strip()))
                else:
                    head, reason = line.rstrip("\n").split(": ", 1)
                    test, *words = head.split()
                    self.entries.append((test, set(words), reason, []))

    def judge(self, test, words, lines):
        """Why the lines of one hunk, each with its sign, differ; None when one of them is not excused."""
        fitting = [(reason, patterns) for name, asked, reason, patterns in self.entries if name == test and asked <= words]
        reasons = []
        for line in lines:
            reason = next((reason for reason, patterns in fitting if any(p.fullmatch(line) for p in patterns)), None)
            if reason is None:
                return None
            reasons.append(reason)
        return reasons


def hunks(direct, through):
    """(changed lines with their sign, the same with what stands around them), one for each place that differs."""
    matcher = difflib.SequenceMatcher(None, direct, through, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            changed = ["-" + line for line in direct[a:b]] + ["+" + line for line in through[c:d]]
            yield changed, [f"@@ line {a + 1} @@", *(" " + line for line in direct[max(0, a - 4):a]), *changed, *(" " + line for line in direct[b:b + 2])]


def compare(test, direct, through, known, words):
    """Prints what differs; returns how many places are not excused."""
    new, excused = [], set()
    for changed, shown in hunks(direct, through):
        reasons = known.judge(test, words, changed)
        if reasons is None:
            new.append(shown)
        else:
            excused.update(reasons)
    for reason in sorted(excused):
        print(f"known {test}: {reason}")
    if new:
        print(f"DIFFERENT {test}, {len(new)} places")
        for shown in new[:12]:
            print("\n".join(line[:200] for line in shown[:40]))
    return len(new)
