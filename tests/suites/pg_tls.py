"""TLS with PostgreSQL clients and servers: every sslmode on both sides, right and wrong certificates, what each refusal says,
and that nothing goes in clear where that is not allowed."""

import functools
import os
import shutil
import signal
import socket
import ssl
import tempfile
import threading

import psycopg

from weirtest.case import eventually, weir
from weirtest.certs import certificates
from weirtest.pgwire import SSL_REQUEST, Wire, cancel_request, query, startup
from weirtest.private import PrivateServer
from weirtest.target import PASSWORD
from weirtest.tls import Changing, der, foreign, handshakes_beside_others, own, reload_under_load, s_client, shown
from weirtest.weir import Weir

SERVERS = ["postgres"]

MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
ON_SERVER = "select ssl from pg_stat_ssl where pid = pg_backend_pid()"


@functools.cache
def server():
    """With TLS, and a user who must come with a certificate and one who must come with TLS."""
    own, _ = certificates()
    found = PrivateServer("postgres", tls=own.folder)
    with Wire(found.superuser()) as admin:
        data = admin.ask("show data_directory")[0][0]
        admin.ask("create role app_cert login; create role app_clear login")
    with open(os.path.join(data, "pg_hba.conf"), "r+", encoding="utf-8") as f:
        before = f.read()
        f.seek(0)
        f.write("hostssl all app_cert 127.0.0.1/32 cert\nhostnossl all app_cert 127.0.0.1/32 reject\n"
                "hostnossl all app_clear 127.0.0.1/32 trust\nhostssl all app_clear 127.0.0.1/32 reject\n" + before)
    with Wire(found.superuser()) as admin:
        admin.ask("select pg_reload_conf()")
    return found


def behind(query="sslmode=disable", user="app_scram", host="127.0.0.1", port=None):
    login = user if user in ("app_cert", "app_clear") else f"{user}:{PASSWORD}"
    return f"postgres://{login}@{host}:{port or server().port}/app?{query}"


def front(*settings, url=None):
    options = [url or behind()]
    for setting in settings:
        options += ["--set", f"tls.client.{setting}"]
    return Weir("postgres", options, name="tls")


def login(w, mode, host="127.0.0.1", **more):
    """What became of it: clear, TLS, or the words of the refusal."""
    try:
        with psycopg.connect(host=host, port=w.port, user="app_scram", password=PASSWORD, dbname="app", sslmode=mode,
                             connect_timeout=20, **more) as c:
            assert c.execute("select 1").fetchone() == (1,)
            return "TLS" if c.pgconn.ssl_in_use else "clear"
    except psycopg.OperationalError as e:
        return str(e)


@weir
def every_mode_in_front(_context):
    wanted = {
        "disable": {"disable": "clear", "prefer": "clear", "require": "server does not support SSL"},
        "allow": {"disable": "clear", "allow": "clear", "prefer": "TLS", "require": "TLS"},
        "prefer": {"disable": "clear", "prefer": "TLS", "require": "TLS", "verify-ca": "TLS", "verify-full": "TLS"},
        "require": {"disable": "SSL required", "allow": "TLS", "prefer": "TLS", "require": "TLS", "verify-full": "TLS"},
    }
    for mode, clients in wanted.items():
        with front(f"sslmode={mode}", *shown("server")) as w:
            for client, word in clients.items():
                seen = login(w, client, **({"sslrootcert": own("ca.pem")} if client.startswith("verify") else {}))
                assert word in seen, (mode, client, seen)


@weir
def clients_verify_what_weir_shows(_context):
    for name, of, ca, full in (
        ("server", own, "TLS", "TLS"),
        ("expired", own, "certificate verify failed", "certificate verify failed"),
        ("elsewhere", own, "TLS", "does not match host name"),
        ("server", foreign, "certificate verify failed", "certificate verify failed"),
    ):
        with front("sslmode=require", *shown(name, of)) as w:
            assert login(w, "require") == "TLS"
            for mode, word in (("verify-ca", ca), ("verify-full", full)):
                seen = login(w, mode, host="localhost", sslrootcert=own("ca.pem"))
                assert word in seen, (name, mode, seen)
            if "failed" in ca:
                eventually(lambda: "TLS with this client failed" in w.log(), "the log says that it failed")


@weir
def a_self_made_certificate_is_kept(_context):
    file = own("self-made.pem")
    if os.path.exists(file):
        os.remove(file)
    for _ in range(2):
        with front("sslmode=prefer", f"self_made_file={file}") as w:
            assert login(w, "prefer") == "TLS"
            assert login(w, "verify-full", host="localhost", sslrootcert=file) == "TLS"
    assert os.stat(file).st_mode & 0o77 == 0, "others may read the key"


@weir
def clients_show_certificates(_context):
    shows = {"sslcert": own("client.pem"), "sslkey": own("client.key")}
    wrong = {"sslcert": foreign("client.pem"), "sslkey": foreign("client.key")}
    for mode in ("verify-ca", "verify-full"):
        with front(f"sslmode={mode}", f"ca_file={own('ca.pem')}", *shown("server")) as w:
            assert login(w, "require", **shows) == "TLS"
            assert "SSL required" in login(w, "disable")
            for more in ({}, wrong):
                seen = login(w, "require", **more)
                assert seen not in ("TLS", "clear"), seen
            log = eventually(lambda: (log := w.log()).count("TLS with this client failed") >= 2 and log, "both are in the log")
            assert "the peer shows no certificate" in log and "not signed by a CA" in log, log
    with front("sslmode=require", f"ca_file={own('ca.pem')}", *shown("server")) as w:
        assert login(w, "require") == "TLS", "who shows none is let in"
        assert login(w, "require", **wrong) != "TLS"


@weir
def a_certificate_in_place_of_a_password(_context):
    """auth_type = cert: the common name must be the user's."""
    options = ["--set", "postgres.auth_type=cert"]
    for setting in ("sslmode=require", f"ca_file={own('ca.pem')}", *shown("server")):
        options += ["--set", f"tls.client.{setting}"]
    with Weir("postgres", [behind(), *options], name="cert") as w:
        assert login(w, "require", sslcert=own("user.pem"), sslkey=own("user.key")) == "TLS"
        for more in ({"sslcert": own("client.pem"), "sslkey": own("client.key")}, {}):
            assert "certificate authentication failed" in login(w, "require", **more)


@weir
def channel_binding_with_clients(_context):
    with front("sslmode=prefer", *shown("server")) as w:
        assert login(w, "require", channel_binding="require") == "TLS"
        assert login(w, "require", channel_binding="disable") == "TLS"
        assert "channel binding" in login(w, "disable", channel_binding="require")
    with front("sslmode=prefer") as w:
        assert login(w, "require", channel_binding="require") == "TLS", "with the self-made certificate"


@weir
def openssl_sees_what_was_set(_context):
    starttls = ("-starttls", "postgres")
    with front("sslmode=prefer", *shown("server")) as w:
        for version in ("-tls1_2", "-tls1_3"):
            seen = s_client(w, *starttls, version)
            assert "Verify return code: 0 (ok)" in seen, seen
        assert "Cipher is (NONE)" in s_client(w, *starttls, "-tls1_1", "-cipher", "ALL@SECLEVEL=0")
        assert "ALPN protocol: postgresql" in s_client(w, "-alpn", "postgresql")
    with front("sslmode=prefer", "protocols=tlsv1.2", "ciphers=ECDHE-RSA-AES128-GCM-SHA256", *shown("server")) as w:
        assert "Cipher is ECDHE-RSA-AES128-GCM-SHA256" in s_client(w, *starttls)
        assert "Cipher is (NONE)" in s_client(w, *starttls, "-tls1_3")
    with front() as w:
        assert "CONNECTED" in (seen := s_client(w, *starttls)) and "Cipher is (NONE)" in seen, seen


def context(alpn=("postgresql",)):
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    found.load_verify_locations(own("ca.pem"))
    if alpn:
        found.set_alpn_protocols(list(alpn))
    return found


class TlsWire(Wire):
    """Inside TLS, by SSLRequest or at once."""

    def __init__(self, target, direct=False, alpn=("postgresql",), login=True):
        super().__init__(target, login=False)
        if not direct:
            self.send(SSL_REQUEST)
            assert self.exactly(1) == b"S"
        self.sock = context(alpn).wrap_socket(self.sock, server_hostname="127.0.0.1")
        if login:
            self.login({}, (3, 0))


@weir
def direct_tls(_context):
    with front("sslmode=require", *shown("server")) as w:
        with TlsWire(w.target(), direct=True) as wire:
            assert wire.ask("select 1") == [["1"]]
            assert wire.sock.selected_alpn_protocol() == "postgresql"
        wire = TlsWire(w.target(), direct=True, alpn=(), login=False)
        kind, payload = wire.read()
        assert kind == "E" and b"application protocol" in payload, payload
        try:
            TlsWire(w.target(), direct=True, alpn=("h2",), login=False)
            raise AssertionError("let in by another protocol")
        except ssl.SSLError as e:
            assert "NO_APPLICATION_PROTOCOL" in str(e).upper().replace(" ", "_"), e


@weir
def bytes_before_the_handshake_are_not_taken(_context):
    with front("sslmode=prefer", *shown("server")) as w:
        wire = Wire(w.target(), login=False)
        wire.send(SSL_REQUEST + startup({"user": "app_scram", "database": "app"}))
        seen = b""
        while data := wire.sock.recv(4096):
            seen += data
        assert seen[:1] == b"E" and b"protocol violation" in seen, seen


@weir
def cancel_requests_inside_tls(_context):
    with front("sslmode=require", *shown("server"), url=behind("sslmode=require")) as w:
        with TlsWire(w.target()) as wire:
            wire.send(query("select pg_sleep(100)"))
            eventually(running, "it runs")
            other = TlsWire(w.target(), login=False)
            other.send(cancel_request(wire.pid, wire.secret))
            while True:
                kind, payload = wire.read()
                if kind == "E":
                    assert b"57014" in payload, payload
                    break


@weir
def a_cancel_request_inside_tls_ends_as_libpq_expects(_context):
    """With TLS's own word for the end: libpq from 17 on reads the end of the connection, and took any other for an error."""
    with front("sslmode=require", *shown("server"), url=behind("sslmode=require")) as w:
        for port in (server().port, w.port):
            with psycopg.connect(host="127.0.0.1", port=port, user="app_scram", password=PASSWORD, dbname="app", sslmode="require") as c:
                ended = []

                def run(c=c, ended=ended):
                    try:
                        c.execute("select pg_sleep(100)")
                    except psycopg.Error as e:
                        ended.append(type(e))

                thread = threading.Thread(target=run)
                thread.start()
                eventually(running, "it runs")
                c.cancel_safe(timeout=20)
                thread.join()
                assert ended == [psycopg.errors.QueryCanceled], (port, ended)


def running():
    with Wire(server().superuser()) as admin:
        return admin.ask("select count(*) from pg_stat_activity where query like 'select pg_sleep(100)%' and state = 'active'") != [["0"]]


@weir
def much_goes_through(_context):
    """More than a record, a read and a socket hold, in both directions, with TLS on both sides."""
    with front("sslmode=require", *shown("server"), url=behind("sslmode=require")) as w:
        with psycopg.connect(host="127.0.0.1", port=w.port, user="app_scram", password=PASSWORD, dbname="app", sslmode="require",
                             autocommit=True) as c:
            for size in (1, 16_384, 16_385, 300_000, 20_000_000):
                value = os.urandom(1) * size
                assert c.execute("select %b::bytea", [value]).fetchone()[0] == value
            rows = c.execute("select repeat('x', 1000) from generate_series(1, 20000)").fetchall()
            assert len(rows) == 20000 and set(rows) == {("x" * 1000,)}


def asked(url):
    """Through a Weir with this URL: whether its server connection has TLS, or the words of the refusal and the log."""
    with Weir("postgres", [url], name="behind") as w:
        try:
            with psycopg.connect(host="127.0.0.1", port=w.port, user="app_scram" if "app_scram" in url else url.split("//")[1].split("@")[0],
                                 password=PASSWORD, dbname="app", sslmode="disable", connect_timeout=20) as c:
                return "TLS" if c.execute(ON_SERVER).fetchone()[0] else "clear"
        except psycopg.OperationalError as e:
            # The log has a thread of its own: all of it is there once Weir has ended.
            w.stop()
            return f"{e} {w.log()}"


@weir
def every_mode_behind(_context):
    ca = f"&sslrootcert={own('ca.pem')}"
    plain = int(os.environ["WEIR_TEST_POSTGRES_PORT"])
    for query, with_tls, without in (
        ("sslmode=disable", "clear", "clear"),
        ("sslmode=allow", "clear", "clear"),
        # Nobody listens in on a loopback address.
        ("sslmode=prefer", "clear", "clear"),
        ("sslmode=require", "TLS", "the server does not offer TLS"),
        ("sslmode=verify-ca" + ca, "TLS", "the server does not offer TLS"),
        ("sslmode=verify-full" + ca, "TLS", "the server does not offer TLS"),
    ):
        for port, wanted in ((server().port, with_tls), (plain, without)):
            seen = asked(behind(query, port=port))
            assert wanted in seen, (query, port, seen)


@weir
def servers_are_verified(_context):
    """Against the CA, the host's name and the date; the log names the reason."""
    ca, other = f"&sslrootcert={own('ca.pem')}", f"&sslrootcert={foreign('ca.pem')}"
    for name, query, wanted in (
        ("server", "sslmode=require" + other, "TLS"),
        ("server", "sslmode=verify-ca" + other, "not signed by a CA that is trusted"),
        ("elsewhere", "sslmode=verify-ca" + ca, "TLS"),
        ("elsewhere", "sslmode=verify-full" + ca, "for another host than"),
        ("expired", "sslmode=require" + ca, "TLS"),
        ("expired", "sslmode=verify-ca" + ca, "has expired"),
        ("server", "sslmode=verify-full" + ca, "TLS"),
    ):
        with_certificate(name)
        seen = asked(behind(query, host="localhost"))
        assert wanted in seen, (name, query, seen)
    with_certificate("server")


def with_certificate(name):
    """The server shows another certificate from now on."""
    with Wire(server().superuser()) as admin:
        data = admin.ask("show data_directory")[0][0]
    for file in ("pem", "key"):
        path = os.path.join(data, f"server.{file}")
        with open(own(f"{name}.{file}"), "rb") as source, open(path, "wb") as target:
            shutil.copyfileobj(source, target)
    with Wire(server().superuser()) as admin:
        admin.ask("select pg_reload_conf()")

    wanted = der(name)

    def is_shown():
        with socket.create_connection(("127.0.0.1", server().port), timeout=20) as sock:
            sock.sendall(SSL_REQUEST)
            assert sock.recv(1) == b"S"
            lax = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            lax.check_hostname = False
            lax.verify_mode = ssl.CERT_NONE
            with lax.wrap_socket(sock) as inside:
                return inside.getpeercert(binary_form=True) == wanted

    eventually(is_shown, f"the server shows {name}")


@weir
def a_server_that_wants_a_certificate(_context):
    shows = f"&sslcert={own('client.pem')}&sslkey={own('client.key')}"
    assert asked(behind("sslmode=require" + shows, user="app_cert")) == "TLS"
    assert asked(behind("sslmode=allow" + shows, user="app_cert")) == "TLS", "refused in clear, taken with TLS"
    seen = asked(behind("sslmode=require", user="app_cert"))
    assert "certificate" in seen, seen


@weir
def who_prefers_tls_on_loopback_still_reaches_a_server_that_requires_it(_context):
    """Also by the name localhost, and as the default of `weir serve URL`."""
    shows = f"&sslcert={own('client.pem')}&sslkey={own('client.key')}"
    assert asked(behind("sslmode=prefer" + shows, user="app_cert")) == "TLS"
    assert asked(behind("sslmode=prefer", host="localhost")) == "clear"
    assert asked(behind("")) == "clear"


def state(where):
    return {"XDG_STATE_HOME": "", "HOME": "", "STATE_DIRECTORY": "", **where}


@weir
def tls_is_offered_by_default(_context):
    """With a certificate that is kept: by systemd's directory, by the session's; or in memory where nothing can be written."""
    with tempfile.TemporaryDirectory() as directory:
        service, home = os.path.join(directory, "service"), os.path.join(directory, "home")
        os.mkdir(service)
        shown = []
        for where, file in (
            ({"STATE_DIRECTORY": service, "HOME": home}, os.path.join(service, "tls.pem")),
            ({"STATE_DIRECTORY": service, "HOME": home}, os.path.join(service, "tls.pem")),
            ({"HOME": home}, os.path.join(home, ".local/state/weir/tls.pem")),
            ({"XDG_STATE_HOME": "/proc/no"}, None),
        ):
            with Weir("postgres", [behind()], name="default", plain=False, env=state(where)) as w:
                assert login(w, "require") == "TLS"
                assert login(w, "disable") == "clear"
                shown.append(shows(w))
                if file is not None:
                    assert os.stat(file).st_mode & 0o777 == 0o600, file
                    assert os.stat(os.path.dirname(file)).st_mode & 0o777 == (0o755 if file.startswith(service) else 0o700)
                else:
                    eventually(lambda w=w: "kept in memory only" in w.log(), "it is said")
        assert shown[0] == shown[1] and len(set(shown)) == 3
        assert not [name for name in os.listdir(service) if name != "tls.pem"]
    text = f"[databases]\napp = host=127.0.0.1 port={server().port} user=app_scram password={PASSWORD}\n[pgbouncer]\nauth_type = any\n"
    with Weir.configured("postgres", text, suffix=".ini", env=state({"HOME": "/proc/no"})) as w:
        assert "server does not support SSL" in login(w, "require")


def shows(w):
    with socket.create_connection(("127.0.0.1", w.port), timeout=20) as sock:
        sock.sendall(SSL_REQUEST)
        assert sock.recv(1) == b"S"
        lax = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        lax.check_hostname = False
        lax.verify_mode = ssl.CERT_NONE
        with lax.wrap_socket(sock) as inside:
            return inside.getpeercert(binary_form=True)


@weir
def a_server_that_takes_some_users_in_clear_only(_context):
    assert asked(behind("sslmode=prefer", user="app_clear")) == "clear", "refused with TLS, taken in clear"
    assert "pg_hba" in asked(behind("sslmode=require", user="app_clear"))


@weir
def a_reload_shows_another_certificate_and_drops_nobody(_context):
    certificate = Changing("reload", "server")
    with front("sslmode=require", *certificate.settings) as w:
        clients = [TlsWire(w.target()) for _ in range(20)]
        certificate.put("elsewhere")
        w.signal(signal.SIGHUP)
        eventually(lambda: "does not match host name" in login(w, "verify-full", host="localhost", sslrootcert=own("ca.pem")),
                   "the new certificate is shown")
        with open(certificate.files["pem"], "w", encoding="utf-8") as f:
            f.write("nonsense")
        before = len(w.log())
        w.signal(signal.SIGHUP)
        eventually(lambda: "no certificate in it" in w.log()[before:], "the log says what is wrong")
        assert login(w, "require") == "TLS", "it goes on with the old one"
        for wire in clients:
            assert wire.ask("select 1") == [["1"]]
            wire.close()


@weir
def a_reload_under_two_thousand_busy_clients_drops_nobody(_context):
    reload_under_load(front, lambda w: f"postgres://app_scram:{PASSWORD}@127.0.0.1:{w.port}/app?sslmode=require", "postgres")


@weir
def handshakes_beside_many_clients_harm_nobody(_context):
    with front("sslmode=require", *shown("server")) as w:
        def stay():
            wire = TlsWire(w.target())

            def ask():
                assert wire.ask("select 1") == [["1"]]
                wire.close()
            return ask

        def begin():
            wire = Wire(w.target(), login=False)
            wire.send(SSL_REQUEST)
            assert wire.exactly(1) == b"S"
            return wire.sock

        handshakes_beside_others(w, stay, begin)
