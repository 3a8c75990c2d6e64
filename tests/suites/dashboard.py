"""The dashboard, its JSON and `weir top`: the figures are the console's, tables are for holders of the token, and nothing that a client
has named becomes more than text."""

import contextlib
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from weirtest.browser import Browser
from weirtest.case import eventually, weir
from weirtest.crowd import Crowd
from weirtest.pgwire import LoginRefused, Wire, columns, query, row
from weirtest.target import PASSWORD, server_env
from weirtest.weir import Weir, binary, free_port, url

SERVERS = ["postgres"]
TOKEN = "the-token-of-this-suite"
HOSTILE = "<script>document.title='hacked'</script>\"'&<img src=x onerror=alert(1)>"


def toml(token=f'token = "{TOKEN}"', databases="", pool="default_pool_size = 4", port=None):
    port = port or server_env("postgres", "PORT")
    return f"""[databases.app]
url = "postgres://127.0.0.1:{port}/app"
[databases."{HOSTILE.replace('"', chr(92) + '"')}"]
url = "postgres://127.0.0.1:{port}/app"
{databases}
[users.app_scram]
password = "{PASSWORD}"
[users.boss]
password = "{PASSWORD}"
[console]
admin_users = ["boss"]
[pool]
{pool}
[http]
{token}
"""


def started(**kw):
    return Weir.configured("postgres", toml(**kw))


def address(w, path=""):
    return f"http://127.0.0.1:{w.http_port}{path}"


def ask(w, path, token=None, headers=()):
    """Status, headers and body."""
    request = urllib.request.Request(address(w, path), headers=dict(headers))
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.headers, e.read().decode()


def rows_of(w, name):
    status, headers, body = ask(w, f"/api/{name}", TOKEN)
    assert status == 200 and headers["Content-Type"] == "application/json", (status, body[:300])
    found = json.loads(body)
    assert found["table"] == name and found["count"] == len(found["rows"]), body[:300]
    return found["rows"]


def live(w, query_string="", token=None):
    status, _, body = ask(w, f"/api/live{query_string}", token)
    assert status == 200, body
    return json.loads(body)


def shown(wire, name):
    """The console's table: its columns, and rows as lists of text."""
    wire.send(query(f"SHOW {name}"))
    names, found = [], []
    while True:
        kind, payload = wire.read()
        if kind == "T":
            names = [column.split(" ")[0] for column in columns(payload)]
        elif kind == "D":
            found.append(row(payload))
        elif kind == "Z":
            return names, found


def console(w):
    return Wire(w.target(user="boss", database="weir"))


@weir
def json_is_what_the_console_shows(_context):
    with started() as w, console(w) as wire, Wire(w.target()) as client, Wire(w.target()) as busy:
        client.ask("select 1")
        busy.ask("begin")
        busy.ask("create temp table t (a int)")
        busy.ask("commit")
        _, _, body = ask(w, "/api")
        names = [path.removeprefix("/api/") for path in json.loads(body)["tables"]]
        assert {"clients", "servers", "pools", "pins", "queue", "stats", "databases", "config", "limits"} <= set(names), names
        assert "help" not in names
        for name in names:
            def same(name=name):
                wanted = shown(wire, name.upper())
                found = rows_of(w, name)
                as_text = [["" if v is None else str(v) for v in r.values()] for r in found]
                assert not found or list(found[0]) == wanted[0], (name, list(found[0]), wanted[0])
                as_shown = [["" if v is None else v for v in r] for r in wanted[1]]
                # The client of the console is busy with its own question, and with that only.
                if name in ("clients", "sockets", "active_sockets"):
                    as_text, as_shown = ([r for r in rows if "boss" not in r] for rows in (as_text, as_shown))
                # How long one has been held goes on between the two looks, and with it a thousandth of a second.
                times = [at for at, column in enumerate(wanted[0]) if column in ("held", "held_us")]
                as_text, as_shown = ([[v for at, v in enumerate(r) if at not in times] for r in rows] for rows in (as_text, as_shown))
                # What goes on between the two looks is the same at one of the next ones.
                return as_text == as_shown
            eventually(same, f"/api/{name} and SHOW {name} are the same")
        pins = rows_of(w, "pins")
        assert len(pins) == 1 and pins[0]["reasons"] == "temporary_table" and isinstance(pins[0]["held"], int), pins
        assert len(rows_of(w, "clients")) >= 3


@weir
def tables_are_for_holders_of_the_token(_context):
    with started() as w:
        for token, wanted in ((None, 401), ("", 401), ("wrong", 401), (TOKEN + "x", 401), (TOKEN[:-1], 401), (TOKEN, 200)):
            for name in ("clients", "config", "pools"):
                status, headers, body = ask(w, f"/api/{name}", token)
                assert status == wanted, (token, name, status, body[:200])
                assert wanted == 200 or headers["WWW-Authenticate"] == 'Bearer realm="weir"', headers
        assert ask(w, "/api/live")[0] == 200 and ask(w, "/api/live", "wrong")[0] == 401
        config = {r["key"]: r for r in rows_of(w, "config")}
        assert config["http.token"]["value"] == "********", config["http.token"]
        _, _, body = ask(w, "/api/config", TOKEN)
        assert TOKEN not in body
        # It is another one after a reload, and neither is ever in the log.
        with console(w) as wire:
            wire.ask("SET \"http.token\" = 'a-second-token-for-it'")
        assert ask(w, "/api/clients", TOKEN)[0] == 401 and ask(w, "/api/clients", "a-second-token-for-it")[0] == 200
        assert "http.token" in w.log(), "the change itself is"
        assert TOKEN not in w.log() and "a-second-token" not in w.log()


@weir
def without_a_token_tables_are_refused_and_the_key_is_named(_context):
    with started(token="") as w:
        for token in (None, "", TOKEN):
            status, _, body = ask(w, "/api/clients", token)
            assert status == 403 and "http.token_file" in json.loads(body)["error"], (status, body)
        assert ask(w, "/api/nothing")[0] == 404
        assert live(w)["state"] == "ready"
    with tempfile.NamedTemporaryFile("w", suffix=".token", dir="/tmp") as f:
        f.write(TOKEN + "\n")
        f.flush()
        with started(token=f'token_file = "{f.name}"') as w:
            assert ask(w, "/api/clients", TOKEN)[0] == 200 and ask(w, "/api/clients")[0] == 401


@weir
def nothing_changes_state_and_heads_are_bounded(_context):
    with started() as w:
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            for path in ("/", "/api/live", "/api/clients", "/api"):
                request = urllib.request.Request(address(w, path), method=method, data=b"{}", headers={"Authorization": f"Bearer {TOKEN}"})
                try:
                    urllib.request.urlopen(request, timeout=20).close()
                    raise AssertionError(f"{method} {path} was done")
                except urllib.error.HTTPError as e:
                    assert e.code == 405, (method, path, e.code)
        def raw(data):
            with socket.create_connection(("127.0.0.1", w.http_port), timeout=20) as s:
                said = b""
                with contextlib.suppress(OSError):
                    s.sendall(data)
                with contextlib.suppress(OSError):
                    while more := s.recv(65536):
                        said += more
                return said
        for data in (b"GET /api/live HTTP/1.1\r\nAuthorization: Bearer " + b"a" * 1_000_000 + b"\r\n\r\n",
                     b"GET /api/live HTTP/1.1\r\n" + b"X: y\r\n" * 500 + b"\r\n",
                     b"GET /api/live?match=" + b"a" * 1_000_000 + b" HTTP/1.1\r\n\r\n", b"\xff" * 100_000, b"GET /\r\n\r\n" * 1000):
            said = raw(data)
            assert not said or said.startswith(b"HTTP/1.1 4"), said[:200]
        for bad in ("top=-1", "top=x", "sort=up"):
            assert ask(w, f"/api/live?{bad}")[0] == 400
        assert w.rss_kb() < 100_000 and ask(w, "/healthz")[0] == 200


@weir
def the_live_document_says_what_happens(_context):
    gone = free_port()
    databases = f'[databases.gone]\nurl = "postgres://127.0.0.1:{gone}/app"'
    with started(databases=databases, pool="default_pool_size = 2") as w, contextlib.ExitStack() as stack:
        holders = [stack.enter_context(Wire(w.target())) for _ in range(2)]
        for holder in holders:
            holder.ask("begin")
            holder.ask("select 1")
        waiter = stack.enter_context(Wire(w.target()))
        waiter.send(query("select 'at last'"))
        def queue():
            found = live(w)
            return found if found["queue"]["waiting"] == 1 and found["queue"]["longest_us"] > 1_000_000 else None
        found = eventually(queue, "one waits longer than a second")
        assert found["servers"]["active"] == 2 and found["servers"]["open"] == 2, found["servers"]
        pool = next(p for p in found["pools"] if p["database"] == "app")
        assert (pool["waiting"], pool["servers"], pool["active"], pool["limit"]) == (1, 2, 2, 2), pool
        assert pool["user"] == "app_scram" and pool["longest_us"] > 1_000_000, pool
        try:
            Wire(w.target(database="gone"))
            raise AssertionError("nothing listens there")
        except LoginRefused:
            pass
        def failing(token=None):
            return next((d for d in live(w, token=token)["databases"] if d["database"] == "gone" and d["state"] == "failing"), None)
        database = eventually(failing, "the database is said to fail")
        assert database["fault"]["kind"] == "server_unavailable" and database["fault"]["detail"] is None, database
        assert "refused" in failing(TOKEN)["fault"]["detail"], "the log's words are for holders of the token"
        assert live(w)["databases"][0]["database"] == "gone", "those in trouble first"
        assert "server_unavailable" in [fault["kind"] for fault in live(w)["faults"]]
        for holder in holders:
            holder.ask("commit")
        assert ("D", b"\0\1\0\0\0\7at last") in waiter.until("Z")
        eventually(lambda: live(w)["queue"]["waiting"] == 0, "nobody waits")
        only = live(w, "?match=GONE&top=1")
        assert [p["database"] for p in only["pools"]] == ["gone"] and only["pools_matching"] == 1 < only["pools_total"], only
        with console(w) as wire:
            wire.ask("disable app")
            eventually(lambda: next(d for d in live(w)["databases"] if d["database"] == "app")["state"] == "disabled", "it is disabled")
            wire.ask("enable app")
            wire.ask("pause")
            assert live(w)["state"] == "paused"
            wire.ask("resume")


@weir
def figures_under_load_are_those_of_the_load(_context):
    with started() as w:
        crowd = Crowd(url("postgres", port=w.port, database="app"), 50, 6)
        found = eventually(lambda: next((f for f in [live(w)] if f["all"]["requests_per_s"] > 100), None), "queries are counted")
        looks = {found["at_ms"]: found}
        def more():
            looks.setdefault((f := live(w))["at_ms"], f)
            return len(looks) > 3
        eventually(more, "it is looked at each second")
        report = crowd.report()
        for f in [f for f in looks.values() if f["all"]["requests_per_s"] > 100]:
            assert 0 < f["all"]["query"]["p50_us"] <= f["all"]["query"]["p95_us"] <= f["all"]["query"]["p99_us"], f["all"]
            # Of those that waited: fewer than all, each by itself.
            assert f["all"]["waits_per_s"] <= f["all"]["requests_per_s"] * 1.1, f["all"]
            assert f["servers"]["open"] <= 4 and 900 <= f["period_ms"] <= 10_000, f
        best = max(f["all"]["requests_per_s"] for f in looks.values())
        assert best < report["queries"], (best, report["queries"])


@weir
def a_poll_does_not_cost_more_with_more_clients(_context):
    with started(pool="default_pool_size = 4\n[limits]\nmax_client_conn = 3000") as w:
        def size():
            return len(ask(w, "/api/live")[2])
        with Wire(w.target()) as first:
            first.ask("select 1")
            few = eventually(lambda: size() if live(w)["pools_total"] else None, "there is a pool")
            crowd = Crowd(url("postgres", port=w.port, database="app"), 1500, 8, "idle")
            eventually(lambda: live(w)["clients"]["connected"] > 1400, "all are connected", deadline_s=60)
            assert size() < few + 600, (few, size())
            assert crowd.report()["errors"] == 0


# --- In a browser ---------------------------------------------------------------------------------------------------------------------


@weir
def the_page_has_a_strict_policy(_context):
    with started() as w:
        status, headers, body = ask(w, "/")
        policy = headers["Content-Security-Policy"]
        assert status == 200 and headers["Content-Type"].startswith("text/html"), headers
        for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'",
                     "require-trusted-types-for 'script'"):
            assert part in policy, policy
        assert "unsafe" not in policy and "http:" not in body and "https:" not in body
        for path in ("/", "/dashboard.js", "/dashboard.css", "/api/live", "/api/clients", "/metrics", "/nothing"):
            headers = ask(w, path)[1]
            assert headers["X-Content-Type-Options"] == "nosniff" and headers["Content-Security-Policy"], (path, headers)


def wide(browser):
    return browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def looks(browser, count):
    eventually(lambda: int(browser.evaluate("document.documentElement?.dataset.looks || 0")) >= count, f"{count} looks", 60)


def pictures(browser, name):
    directory = os.environ.get("WEIR_TEST_PICTURES")
    if directory:
        browser.picture(os.path.join(directory, f"dashboard-{name}.png"))


@weir
def a_browser_shows_it(_context):
    with started() as w, Browser() as browser:
        crowd = Crowd(url("postgres", port=w.port, database="app"), 60, 25)
        for dark in (False, True):
            browser.visit(address(w, "/"), dark)
            looks(browser, 5)
            assert browser.evaluate("document.querySelectorAll('.chart svg path.series').length") > 10
            drawn = browser.evaluate("[...document.querySelectorAll('.chart svg path.series')].filter(p => p.getTotalLength() > 20).length")
            assert drawn >= 6, drawn
            text = browser.evaluate("document.body.innerText")
            for words in ("Queries per second", "Clients waiting", "app_scram", "ready"):
                assert words in text, (words, text)
            assert browser.evaluate("Number(document.querySelector('#tiles .value').textContent.replace(/[,k]/g, ''))") > 0
            ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (ground == "rgb(18, 22, 27)") == dark, ground
            assert wide(browser) <= 0 and not browser.complaints(address(w)), browser.complaints(address(w))
            x, y = browser.evaluate("(() => { const box = document.querySelector('.chart svg').getBoundingClientRect();"
                                    " return [box.right - 20, box.top + 60]; })()")
            browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
            eventually(lambda: browser.evaluate("document.querySelectorAll('.cursor').length") == 1, "the mouse chooses a moment")
            assert "s ago" in browser.evaluate("document.querySelector('.chart h2').textContent")
            cells = "[...document.querySelectorAll('#statements td')].map(td => td.textContent).join(' ')"
            assert "for holders of the token" in browser.evaluate(cells)
            browser.evaluate(f"document.getElementById('token').value = {json.dumps(TOKEN)}; document.getElementById('load').click()")
            eventually(lambda: "select" in browser.evaluate(cells).lower(), "statements are shown", 60)
            assert wide(browser) <= 0
            pictures(browser, "dark" if dark else "light")
        browser.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=2, mobile=True)
        browser.visit(address(w, "/"))
        looks(browser, 3)
        assert wide(browser) <= 0, f"{wide(browser)} pixels too wide on a phone"
        assert not browser.complaints(address(w)), browser.complaints(address(w))
        pictures(browser, "phone")
        assert not crowd.report()["errors"]


@weir
def what_clients_name_is_text(_context):
    with started() as w, contextlib.ExitStack() as stack:
        for name in (HOSTILE, "'; drop table x; --", "ü😀\u202e\u2028", "a" * 5_000):
            stack.enter_context(Wire(w.target(), params={"application_name": name})).ask("select 1")
        long = stack.enter_context(Wire(w.target()))
        long.ask(f"set application_name = '{'<b>' * 350_000}'")
        stack.enter_context(Wire(w.target(database=HOSTILE))).ask("select 1")
        names = [r["application_name"] for r in rows_of(w, "clients")]
        assert any("<script>" in name for name in names) and all(len(name.encode()) <= 128 for name in names), names
        assert HOSTILE in [p["database"] for p in live(w)["pools"]] or eventually(
            lambda: HOSTILE in [p["database"] for p in live(w)["pools"]], "its pool is shown")
        with Browser() as browser:
            browser.visit(address(w, "/"))
            looks(browser, 2)
            browser.evaluate(f"document.getElementById('token').value = {json.dumps(TOKEN)}")
            for name in ("clients", "pools"):
                browser.evaluate(f"document.getElementById('table-name').value = '{name}'; document.getElementById('load').click()")
                cells = "[...document.querySelectorAll('#table td, #pools td')].map(td => td.textContent)"
                eventually(lambda: any("<script>" in cell for cell in browser.evaluate(cells)), f"{name} are shown")
            browser.evaluate("document.getElementById('table-name').value = 'clients'; document.getElementById('load').click()")
            eventually(lambda: browser.evaluate("document.querySelectorAll('#table tbody tr').length") >= 6, "the clients are there")
            pictures(browser, "hostile")
            made = browser.evaluate("document.querySelectorAll('main script, main img, main b b, td *').length")
            assert made == 0 and browser.evaluate("document.title") == "Weir", made
            assert not browser.complaints(address(w)), browser.complaints(address(w))
            # The token is wrong, or there is none any more.
            browser.evaluate("document.getElementById('token').value = 'wrong'; document.getElementById('load').click()")
            eventually(lambda: "wrong" in browser.evaluate("document.getElementById('table-note').textContent"), "the page says so")
            eventually(lambda: browser.evaluate("document.getElementById('state').textContent") == "ready", "the figures go on")


@weir
def the_page_says_when_weir_is_gone_and_back(_context):
    with Browser() as browser:
        with started() as w:
            browser.visit(address(w, "/"))
            looks(browser, 2)
            http_port = w.http_port
        eventually(lambda: "no answer" in browser.evaluate("document.getElementById('state').textContent"), "it says so")
        with Weir.configured("postgres", toml(), http_port=http_port):
            eventually(lambda: browser.evaluate("document.getElementById('state').textContent") == "ready", "it is back")


@weir
def many_pools_are_bounded_and_filtered(_context):
    databases = "\n".join(f'[databases.tenant{n}]\nurl = "postgres://127.0.0.1:{server_env("postgres", "PORT")}/app"' for n in range(1500))
    with started(databases=databases, pool="default_pool_size = 1\nserver_idle_timeout = 1") as w:
        # Some are used; all are configured.
        for n in range(0, 60):
            with Wire(w.target(database=f"tenant{n}")) as client:
                client.ask("select 1")
        found = eventually(lambda: next((f for f in [live(w)] if f["pools_total"] >= 1), None), "pools are counted")
        assert found["databases_total"] >= 1500 and len(found["databases"]) == 50, found["databases_total"]
        assert len(live(w, "?top=100000")["databases"]) == 500, "the most there is"
        assert {d["database"] for d in live(w, "?match=tenant149")["databases"]} == {"tenant149", *(f"tenant149{n}" for n in range(10))}
        with Browser() as browser:
            browser.visit(address(w, "/"))
            looks(browser, 2)
            browser.evaluate("document.getElementById('filter').value = 'tenant149'")
            eventually(lambda: browser.evaluate("document.querySelectorAll('#databases tbody tr').length") == 11, "the filter works")
            assert wide(browser) <= 0


# --- weir top ----------------------------------------------------------------------------------------------------------------------------


def top(*arguments, env=None):
    return subprocess.run([binary(), "top", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60, check=False, env={**os.environ, **(env or {})})


@weir
def top_prints_one_screen(_context):
    with started() as w, Wire(w.target()) as client, Wire(w.target(database=HOSTILE)) as other:
        client.ask("select 1")
        other.ask("select 1")
        eventually(lambda: live(w)["pools_total"] == 2, "there are two pools")
        done = top("--once", "--url", address(w))
        text = done.stdout.decode()
        assert done.returncode == 0 and not done.stderr, done
        for words in ("Weir ", "ready", "queries", "p99", "servers", "clients", "DATABASE", "app_scram", "<script>"):
            assert words in text, (words, text)
        assert "\x1b" not in text and all(len(line) <= 120 for line in text.splitlines()), text
        assert "<script>" not in top("--once", "--url", address(w), "--filter", "APP_SCRAM-", "--sort", "name").stdout.decode()
        with tempfile.NamedTemporaryFile("w", dir="/tmp") as f:
            f.write(TOKEN + "\n")
            f.flush()
            assert top("--once", "--url", address(w), "--token-file", f.name).returncode == 0
            f.seek(0)
            f.truncate()
            f.write("another-token-of-them")
            f.flush()
            done = top("--once", "--url", address(w), "--token-file", f.name)
            assert done.returncode == 1 and b"the token is wrong" in done.stderr, done
        for arguments, status, words in ((("--once", "--url", "https://127.0.0.1:1"), 2, "no TLS"), ((), 2, "terminal"),
                                         (("--once", "--url", f"127.0.0.1:{free_port()}"), 1, "cannot reach"),
                                         (("--once", "--url", address(w), "--token-file", "/nowhere"), 2, "cannot read"),
                                         (("--once", "--url", address(w), "--token-file", __file__), 2, "not a token"),
                                         (("--once", "--url", f"127.0.0.1:{w.port}"), 1, "answer")):
            done = top(*arguments)
            assert done.returncode == status and words in done.stderr.decode(), (arguments, done)


COLOUR = re.compile(rb"\x1b\[[0-9;]*(?:3[0-8]|4[0-8]|9[0-7])[0-9;]*m")


class Screen:
    """`weir top` on a terminal of its own. What it writes is kept as text and as a picture of rows."""

    def __init__(self, *arguments, env=None, rows=30, width=110):
        self.leader, follower = pty.openpty()
        import fcntl

        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", rows, width, 0, 0))
        self.before = termios.tcgetattr(follower)
        self.follower = follower
        self.process = subprocess.Popen([binary(), "top", *arguments], stdin=follower, stdout=follower, stderr=follower,
                                        start_new_session=True, env={**os.environ, "TERM": "xterm-256color", **(env or {})})
        self.written = b""
        self.over = threading.Event()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        while not self.over.is_set():
            if select.select([self.leader], [], [], 0.1)[0]:
                self.written += os.read(self.leader, 65536)

    def shows(self, words):
        eventually(lambda: words.encode() in self.written, f"the screen has {words!r}: {self.written[-2000:]!r}", 30)

    def press(self, keys):
        os.write(self.leader, keys.encode())

    def ends(self, status=0):
        assert self.process.wait(20) == status, self.process.returncode
        time.sleep(0.3)
        assert termios.tcgetattr(self.follower) == self.before, "the terminal is as it was"
        # Out of the other screen, and the cursor is there again.
        assert self.written.rfind(b"\x1b[?1049l") > self.written.rfind(b"\x1b[?1049h") >= 0, self.written[-300:]
        assert self.written.rfind(b"\x1b[?25h") > self.written.rfind(b"\x1b[?25l"), self.written[-300:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.over.set()
        self.reader.join()
        os.close(self.leader)
        os.close(self.follower)


@weir
def top_follows_on_a_terminal(_context):
    with started() as w, Wire(w.target()) as client:
        client.ask("select 1")
        eventually(lambda: live(w)["pools_total"] == 1, "there is a pool")
        with Screen("--url", address(w)) as screen:
            screen.shows("app_scram")
            screen.shows("sort: activity")
            assert COLOUR.search(screen.written), "in colours"
            screen.press("s")
            screen.shows("waiting")
            screen.press("/")
            screen.shows("filter")
            screen.press("nix\r")
            eventually(lambda: screen.written.count(b"nix") >= 1, "the filter is shown")
            screen.press("q")
            screen.ends()
        for how in ("\x03", signal.SIGTERM):
            with Screen("--url", address(w), env={"NO_COLOR": "1"}) as screen:
                screen.shows("app_scram")
                if isinstance(how, str):
                    screen.press(how)
                else:
                    screen.process.send_signal(how)
                screen.ends()
                assert not COLOUR.search(screen.written), COLOUR.search(screen.written)
    with Screen("--url", address(w)) as screen:
        screen.shows("cannot reach")
        screen.press("q")
        screen.ends()
