"""TLS with MySQL and MariaDB clients and servers: every ssl-mode on both sides, right and wrong certificates, what each refusal
says, and that nothing goes in clear where that is not allowed."""

import functools
import os
import ssl
import subprocess

import pymysql

from weirtest.case import eventually, weir
from weirtest.certs import certificates
from weirtest.private import PrivateServer
from weirtest.target import PASSWORD, server_env
from weirtest.weir import Weir

SERVERS = ["mariadb", "mysql"]


@functools.cache
def server(kind):
    """With TLS, and users who must come with TLS and with a certificate."""
    own, _ = certificates()
    found = PrivateServer(kind, tls=own.folder)
    admin = pymysql.connect(unix_socket=found.env["SOCKET"], user="root")
    with admin, admin.cursor() as c:
        for user, what in (("app_tls", "SSL"), ("app_cert", "X509")):
            c.execute(f"create user '{user}'@'%' identified by '{PASSWORD}' require {what}")
            c.execute(f"grant all on *.* to '{user}'@'%'")
    return found


def behind(kind, query="ssl-mode=DISABLED", user="app", host="127.0.0.1", port=None):
    return f"mysql://{user}:{PASSWORD}@{host}:{port or server(kind).port}/app?{query}"


def front(kind, *settings, url=None):
    options = [url or behind(kind)]
    if kind == "mariadb":
        options += ["--set", "mysql.auth_type=mysql_native_password"]
    for setting in settings:
        options += ["--set", f"tls.client.{setting}"]
    return Weir(kind, options, name="tls")


def own(name):
    return certificates()[0].path(name)


def foreign(name):
    return certificates()[1].path(name)


def shown(name, of=own):
    return f"cert_file={of(name + '.pem')}", f"key_file={of(name + '.key')}"


def login(w, tls, host="127.0.0.1", user="app", **more):
    """What became of it: clear, TLS, or the words of the refusal."""
    how = {"ssl": tls} if tls else {"ssl_disabled": True}
    try:
        with pymysql.connect(host=host, port=w.port, user=user, password=PASSWORD, database="app", **how, **more) as c, c.cursor() as cursor:
            cursor.execute("select 1")
            assert cursor.fetchone() == (1,)
            inside = c._sock if isinstance(c._sock, ssl.SSLSocket) else None
            for name, value in (("Ssl_version", inside and inside.version()), ("Ssl_cipher", inside and inside.cipher()[0])):
                cursor.execute(f"show session status like '{name}'")
                assert cursor.fetchone() == (name, value or ""), "the client's own connection is meant"
            return "TLS" if inside else "clear"
    except (pymysql.Error, ssl.SSLError, OSError) as e:
        return repr(e)


LAX = {"check_hostname": False, "verify_mode": "none"}


def strict(name_too=True):
    return {"ca": own("ca.pem"), "check_hostname": name_too, "verify_mode": "required"}


@weir
def every_mode_in_front(context):
    for mode, clear, inside in (
        ("disable", "clear", "SSL"),
        ("allow", "clear", "TLS"),
        ("prefer", "clear", "TLS"),
        ("require", "Connections using insecure transport are prohibited", "TLS"),
    ):
        with front(context.kind, f"sslmode={mode}", *shown("server")) as w:
            for tls, word in ((None, clear), (LAX, inside)):
                seen = login(w, tls)
                assert word in seen and (word != "SSL" or seen not in ("TLS", "clear")), (mode, tls, seen)


@weir
def clients_verify_what_weir_shows(context):
    for name, of, ca, full in (
        ("server", own, "TLS", "TLS"),
        ("expired", own, "certificate has expired", "certificate has expired"),
        ("elsewhere", own, "TLS", "Hostname mismatch"),
        ("server", foreign, "certificate", "certificate"),
    ):
        with front(context.kind, "sslmode=require", *shown(name, of)) as w:
            assert login(w, LAX) == "TLS"
            for tls, word in ((strict(False), ca), (strict(), full)):
                seen = login(w, tls, host="localhost")
                assert word in seen and (seen == "TLS") == (word == "TLS"), (name, seen)


@weir
def clients_show_certificates(context):
    shows = {**LAX, "cert": own("client.pem"), "key": own("client.key")}
    wrong = {**LAX, "cert": foreign("client.pem"), "key": foreign("client.key")}
    with front(context.kind, "sslmode=verify-ca", f"ca_file={own('ca.pem')}", *shown("server")) as w:
        assert login(w, shows) == "TLS"
        for tls in (None, LAX, wrong):
            seen = login(w, tls)
            assert seen not in ("TLS", "clear"), seen
        eventually(lambda: "the peer shows no certificate" in w.log() and "not signed by a CA" in w.log(), "both are in the log")


def program(w, *argv, kind):
    done = subprocess.run([server_env(kind, "CLIENT"), "--no-defaults", "--protocol=TCP", "-h", "localhost", "-P", str(w.port), "-u", "app",
                           *argv, "app", "-N", "-B", "-e", "select 'in'"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**os.environ, "MYSQL_PWD": PASSWORD}, timeout=60, check=False)
    return done.stdout.decode(errors="replace").strip()


@weir
def the_clients_own_words(context):
    """Without any key file, and with a CA."""
    kind = context.kind
    ca = f"--ssl-ca={own('ca.pem')}"
    if kind == "mysql":
        modes = [(["--ssl-mode=DISABLED", "--get-server-public-key"], "in"), (["--ssl-mode=PREFERRED"], "in"), (["--ssl-mode=REQUIRED"], "in"),
                 (["--ssl-mode=VERIFY_CA", ca], "in"), (["--ssl-mode=VERIFY_IDENTITY", ca], "in"),
                 (["--ssl-mode=VERIFY_CA", f"--ssl-ca={foreign('ca.pem')}"], "SSL connection error")]
    else:
        modes = [(["--skip-ssl"], "in"), (["--ssl"], "in"), (["--ssl", ca, "--ssl-verify-server-cert"], "in"),
                 (["--ssl", f"--ssl-ca={foreign('ca.pem')}", "--ssl-verify-server-cert"], "TLS/SSL error")]
    with front(kind, "sslmode=prefer", *shown("server")) as w:
        for argv, word in modes:
            seen = program(w, *argv, kind=kind)
            assert (seen == "in") if word == "in" else (word in seen), (argv, seen)
    with front(kind) as w:
        argv = ["--ssl-mode=REQUIRED"] if kind == "mysql" else ["--ssl", "--ssl-verify-server-cert"]
        assert "SSL" in program(w, *argv, kind=kind).upper(), "REQUIRED never falls back"


@weir
def openssl_sees_what_was_set(context):
    with front(context.kind, "sslmode=prefer", *shown("server")) as w:
        for version in ("-tls1_2", "-tls1_3"):
            done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{w.port}", "-starttls", "mysql", "-CAfile", own("ca.pem"),
                                   version], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                                  check=False)
            seen = done.stdout.decode(errors="replace")
            assert "Verify return code: 0 (ok)" in seen, seen


@weir
def a_self_made_certificate_needs_no_file(context):
    with front(context.kind, "sslmode=require") as w:
        assert login(w, LAX) == "TLS"


@weir
def much_goes_through(context):
    """More than a record, a read and a socket hold, in both directions, with TLS on both sides."""
    with front(context.kind, "sslmode=require", *shown("server"), url=behind(context.kind, "ssl-mode=REQUIRED")) as w:
        with pymysql.connect(host="127.0.0.1", port=w.port, user="app", password=PASSWORD, database="app", ssl=LAX,
                             max_allowed_packet=1 << 26) as c, c.cursor() as cursor:
            for size in (1, 16_384, 300_000, 20_000_000):
                cursor.execute("select %s, length(%s)", ["x" * size, "y"])
                row = cursor.fetchone()
                assert row[0] == "x" * size and row[1] == 1


def asked(kind, url, user="app"):
    """Through a Weir with this URL: whether its server connection has TLS, or the words of the refusal and the log."""
    native = ["--set", "mysql.auth_type=mysql_native_password"] if kind == "mariadb" else []
    with Weir(kind, [url, *native], name="behind") as w:
        try:
            with pymysql.connect(host="127.0.0.1", port=w.port, user=user, password=PASSWORD, database="app", ssl_disabled=True) as c, \
                    c.cursor() as cursor:
                # What the server says of its own connection, in a form that is not about the client's.
                cursor.execute("show status where variable_name = 'Ssl_cipher'")
                return "TLS" if cursor.fetchone()[1] else "clear"
        except pymysql.Error as e:
            # The log has a thread of its own: all of it is there once Weir has ended.
            w.stop()
            return f"{e!r} {w.log()}"


@weir
def every_mode_behind(context):
    kind = context.kind
    ca = f"&ssl-ca={own('ca.pem')}"
    # MySQL makes itself certificates when it has none; MariaDB 10.11 then has no TLS.
    plain = None if kind == "mysql" else int(server_env(kind, "PORT"))
    for query, with_tls, without in (
        ("ssl-mode=DISABLED", "clear", "clear"),
        ("ssl-mode=PREFERRED", "TLS", "clear"),
        ("ssl-mode=REQUIRED", "TLS", "the server does not offer TLS"),
        ("ssl-mode=VERIFY_CA" + ca, "TLS", "the server does not offer TLS"),
        ("ssl-mode=VERIFY_IDENTITY" + ca, "TLS", "the server does not offer TLS"),
    ):
        for port, wanted in ((server(kind).port, with_tls), (plain, without)):
            if port is not None:
                seen = asked(kind, behind(kind, query, port=port))
                assert wanted in seen, (query, port, seen)


@weir
def servers_are_verified(context):
    kind = context.kind
    for query, wanted in (
        (f"ssl-mode=VERIFY_CA&ssl-ca={foreign('ca.pem')}", "not signed by a CA that is trusted"),
        (f"ssl-mode=VERIFY_IDENTITY&ssl-ca={own('ca.pem')}", "TLS"),
        (f"ssl-mode=REQUIRED&ssl-ca={foreign('ca.pem')}", "TLS"),
    ):
        seen = asked(kind, behind(kind, query, host="localhost"))
        assert wanted in seen, (query, seen)


@weir
def accounts_that_require_tls_or_a_certificate(context):
    kind = context.kind
    shows = f"&ssl-cert={own('client.pem')}&ssl-key={own('client.key')}"
    assert asked(kind, behind(kind, "ssl-mode=REQUIRED", user="app_tls"), user="app_tls") == "TLS"
    assert "TLS" != asked(kind, behind(kind, "ssl-mode=DISABLED", user="app_tls"), user="app_tls") != "clear"
    assert asked(kind, behind(kind, "ssl-mode=REQUIRED" + shows, user="app_cert"), user="app_cert") == "TLS"
    assert "TLS" != asked(kind, behind(kind, "ssl-mode=REQUIRED", user="app_cert"), user="app_cert") != "clear"
