"""TLS with MySQL and MariaDB clients and servers: every ssl-mode on both sides, right and wrong certificates, what each refusal
says, and that nothing goes in clear where that is not allowed."""

import functools
import hashlib
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import tempfile
import threading

import pymysql

from weirtest.case import Skip, eventually, weir
from weirtest.certs import certificates
from weirtest.mywire import (BASIC, CONNECT_WITH_DB, PACKET_MAX, QUERY, SSL, STMT_EXECUTE, Wire, execute_payload, ok_packet, read_lenenc,
                             scramble)
from weirtest.private import PrivateServer
from weirtest.target import PASSWORD, server_env
from weirtest.tls import foreign, handshakes_beside_others, own, reload_under_load, s_client, shown
from weirtest.weir import Weir, free_port

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


STATUS_FORMS = (
    "show status like 'Ssl_version'",
    "SHOW SESSION STATUS LIKE 'ssl\\_%'",
    "show local status like 'SSL%'",
    "show status where variable_name = 'Ssl_cipher'",
    "show session status where `Variable_name` in ('Ssl_version', 'Ssl_cipher', 'Uptime')",
    "show status where variable_name like 'Ssl%' or variable_name = 'Threads_running'",
    "show status like 'Threads_connected'",
)
TABLE_FORMS = (
    "select * from {0}.session_status where variable_name like 'ssl_version'",
    "select s.variable_value from {0}.session_status as s where s.variable_name = 'Ssl_cipher'",
    "select variable_name, length(variable_value) > 0 from {0}.session_status where variable_name in ('Ssl_cipher', 'Ssl_version') order by 1",
)


@weir
def what_a_client_asks_about_its_tls(context):
    """The rows are those of the server, but about the client's own connection; in text and prepared."""
    kind = context.kind
    schema = "performance_schema" if kind == "mysql" else "information_schema"
    forms = [*STATUS_FORMS, *(form.format(schema) for form in TABLE_FORMS)]
    about = re.compile(r"ssl_(version|cipher)$", re.I)

    def ask(port, form, tls):
        how = {"ssl": LAX} if tls else {"ssl_disabled": True}
        with pymysql.connect(host="127.0.0.1", port=port, user="app", password=PASSWORD, database="app", **how) as c, c.cursor() as cursor:
            inside = c._sock if isinstance(c._sock, ssl.SSLSocket) else None
            own_words = (inside.version(), inside.cipher()[0]) if inside else ("", "")
            cursor.execute(form)
            rows = cursor.fetchall()
            heads = [(d[0], d[1]) for d in cursor.description]
        return heads, rows, own_words

    for behind_mode in ("DISABLED", "REQUIRED"):
        with front(kind, "sslmode=prefer", *shown("server"), url=behind(kind, f"ssl-mode={behind_mode}")) as w:
            for form in forms:
                for tls in (False, True):
                    heads, rows, mine = ask(w.port, form, tls)
                    wanted_heads, wanted, _ = ask(server(kind).port, form, tls)
                    assert heads == wanted_heads, (form, heads, wanted_heads)
                    assert [r[0] for r in rows if len(r) > 1] == [r[0] for r in wanted if len(r) > 1], (form, rows, wanted)
                    assert len(rows[0]) == len(wanted[0]), (form, rows)
                    for row in rows:
                        if len(row) == 2 and about.match(row[0]) and isinstance(row[1], str):
                            assert row[1] == mine["cipher" in row[0].lower()], (form, tls, row, mine)
                    if form.startswith("select s."):
                        assert rows == ((mine[1],),), (form, rows, mine)
                    if "length(" in form:
                        assert [r[1] for r in rows] == [int(tls), int(tls)], (form, tls, rows)
    # Its own words are in clear; Weir's are not.
    with front(kind, url=behind(kind, "ssl-mode=REQUIRED")) as w, Wire(w.target()) as wire:
        for form in forms:
            if "length(" in form or "Threads" in form:
                continue
            statement = wire.prepare(form)
            for _ in range(2):
                wire.command(STMT_EXECUTE, execute_payload(statement))
                rows = [payload for what, payload in wire.reply(STMT_EXECUTE) if what == "row"]
                assert rows and not any(b"TLSv1" in row or b"TLS_AES" in row and b"ist" not in row for row in rows), (form, rows)


@weir
def columns_of_show_status(context):
    """Names, charsets, lengths and types that a driver sees are those of the server's own SHOW STATUS."""
    seen = []
    with front(context.kind) as w:
        for target in (w.target(), w.target().__class__(context.kind, "direct", "127.0.0.1", server(context.kind).port, "app", PASSWORD)):
            with Wire(target) as wire:
                wire.command(QUERY, "show status like 'Ssl_version'")
                seen.append([column(payload) for what, payload in wire.reply() if what == "column"])
    assert seen[0] == seen[1], seen


def column(payload):
    """Schema and table as they are called, names, and what follows them."""
    at, out = 0, []
    for _ in range(6):
        n, at = read_lenenc(payload, at)
        out.append(payload[at:at + n].decode())
        at += n
    return out[4], payload[at:at + 8].hex()


@weir
def the_clients_own_status(context):
    r"""\s of the mysql program."""
    with front(context.kind, "sslmode=prefer", *shown("server")) as w:
        for argv, words in ((["--ssl-mode=PREFERRED"] if context.kind == "mysql" else ["--ssl"], "Cipher in use is"),
                            (["--ssl-mode=DISABLED", "--get-server-public-key"] if context.kind == "mysql" else ["--skip-ssl"], "Not in use")):
            done = subprocess.run([server_env(context.kind, "CLIENT"), "--no-defaults", "--protocol=TCP", "-h", "localhost", "-P", str(w.port), "-u", "app",
                                   *argv, *(["--commands"] if context.kind == "mysql" else []), "app", "-e", r"\s"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "MYSQL_PWD": PASSWORD}, timeout=60, check=False)
            said = done.stdout.decode(errors="replace")
            assert words in said, said


def program(w, *argv, kind, user="app", password=PASSWORD):
    done = subprocess.run([server_env(kind, "CLIENT"), "--no-defaults", "--protocol=TCP", "-h", "localhost", "-P", str(w.port), "-u", user,
                           *argv, "app", "-N", "-B", "-e", "select 'in'"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**os.environ, "MYSQL_PWD": password}, timeout=60, check=False)
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
            # Newer clients of MariaDB say a line of their own about passwordless logins before it.
            seen = program(w, *argv, kind=kind)
            assert (seen.splitlines()[-1] == "in") if word == "in" else (word in seen), (argv, seen)
    with front(kind) as w:
        argv = ["--ssl-mode=REQUIRED"] if kind == "mysql" else ["--ssl", "--ssl-verify-server-cert"]
        assert "SSL" in program(w, *argv, kind=kind).upper(), "REQUIRED never falls back"


@weir
def openssl_sees_what_was_set(context):
    starttls = ("-starttls", "mysql")
    with front(context.kind, "sslmode=prefer", *shown("server")) as w:
        for version in ("-tls1_2", "-tls1_3"):
            seen = s_client(w, *starttls, version)
            assert "Verify return code: 0 (ok)" in seen, seen
        assert "Cipher is (NONE)" in s_client(w, *starttls, "-tls1_1", "-cipher", "ALL@SECLEVEL=0")
    with front(context.kind, "sslmode=prefer", "protocols=tlsv1.2", "ciphers=ECDHE-RSA-AES128-GCM-SHA256", *shown("server")) as w:
        assert "Cipher is ECDHE-RSA-AES128-GCM-SHA256" in s_client(w, *starttls)
        assert "Cipher is (NONE)" in s_client(w, *starttls, "-tls1_3")
    for name, of, code in (("expired", own, "10 (certificate has expired)"), ("server", foreign, "21 (unable to verify the first certificate)")):
        with front(context.kind, "sslmode=prefer", *shown(name, of)) as w:
            seen = s_client(w, *starttls)
            assert f"Verify return code: {code}" in seen, seen
    with front(context.kind, "sslmode=prefer", *shown("elsewhere")) as w:
        seen = s_client(w, *starttls, "-verify_hostname", "localhost")
        assert "Verify return code: 62 (hostname mismatch)" in seen, seen
    with front(context.kind) as w:
        assert "CONNECTED" in (seen := s_client(w, *starttls)) and "does not support SSL" in seen, seen


@weir
def a_self_made_certificate_needs_no_file(context):
    with front(context.kind, "sslmode=require") as w:
        assert login(w, LAX) == "TLS"


@weir
def tls_is_offered_by_default(context):
    """And nobody must use it. Towards the server on this machine nothing is encrypted unless the URL says so."""
    kind = context.kind
    native = ["--set", "mysql.auth_type=mysql_native_password"] if kind == "mariadb" else []
    url = f"mysql://app:{PASSWORD}@127.0.0.1:{server(kind).port}/app"
    with Weir(kind, [url, *native], name="default", plain=False) as w:
        assert (login(w, LAX), login(w, None)) == ("TLS", "clear")
    assert asked(kind, url) == "clear"


@weir
def the_password_vouches_for_a_certificate_that_nobody_has_signed(context):
    """What MariaDB tells its clients from 11.4 on, which refuse a server on another machine without it. Only MariaDB's method asks for it."""
    url = f"mysql://app:{PASSWORD}@127.0.0.1:{server(context.kind).port}/app"
    with Weir(context.kind, [url], name="vouch", plain=False) as w:
        wire = Wire(w.target(), login=False)
        greeting = wire.read()
        end = greeting.index(b"\0", 1)
        salt = greeting[end + 5:end + 13] + greeting[end + 32:end + 44]
        plugin = greeting[end + 45:].split(b"\0")[0].decode()
        assert plugin == {"mariadb": "mysql_native_password", "mysql": "caching_sha2_password"}[context.kind], plugin
        flags = BASIC & ~CONNECT_WITH_DB | SSL
        wire.send_next(struct.pack("<IIB23x", flags, 1 << 30, 45))
        unsigned = ssl.create_default_context()
        unsigned.check_hostname, unsigned.verify_mode = False, ssl.CERT_NONE
        wire.sock = unsigned.wrap_socket(wire.sock)
        answer = scramble(plugin, PASSWORD.encode(), salt)
        wire.send_next(struct.pack("<IIB23x", flags, 1 << 30, 45) + b"app\0" + bytes([len(answer)]) + answer + plugin.encode() + b"\0")
        if context.kind == "mysql":
            assert wire.read() == b"\x01\x03"
        told = ok_packet(wire.read(), flags)["info"]
        stored = hashlib.sha1(hashlib.sha1(PASSWORD.encode()).digest()).digest()
        fingerprint = hashlib.sha256(wire.sock.getpeercert(True)).digest()
        right = "\x01" + hashlib.sha256(stored + salt + fingerprint).hexdigest().upper()
        assert told == (right if context.kind == "mariadb" else ""), told
        assert wire.ask("select 1") == [["1"]]
        wire.close()


def own_address():
    """Of this machine, and none of those that it alone can reach. Nothing is sent for it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            raise Skip("this machine has no network") from None
        return probe.getsockname()[0]


@weir
def a_client_of_mariadb_from_elsewhere_needs_no_option(context):
    """Towards this machine's own names its client verifies nothing."""
    if context.kind == "mysql":
        raise Skip("MySQL's clients verify nothing unless told to")
    host, port = own_address(), free_port()
    url = f"mysql://app:{PASSWORD}@127.0.0.1:{server(context.kind).port}/app"
    with Weir(context.kind, [url], name="elsewhere", plain=False, also=[f"{host}:{port}"]):
        for password, word in ((PASSWORD, "in"), ("wrong", "Access denied")):
            done = subprocess.run([server_env(context.kind, "CLIENT"), "--no-defaults", "-h", host, "-P", str(port), "-u", "app", "-N", "-B",
                                   "-e", "select 'in'"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env={**os.environ, "MYSQL_PWD": password}, timeout=60, check=False)
            assert word in done.stdout.decode(), done.stdout


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


def asked(kind, url, user="app", password=PASSWORD):
    """Through a Weir with this URL: whether its server connection has TLS, or the words of the refusal and the log."""
    native = ["--set", "mysql.auth_type=mysql_native_password"] if kind == "mariadb" else []
    with Weir(kind, [url, *native], name="behind") as w:
        try:
            with pymysql.connect(host="127.0.0.1", port=w.port, user=user, password=password, database="app", ssl_disabled=True) as c, \
                    c.cursor() as cursor:
                # What the server says of its own connection, in a form that Weir does not take for a question about the client's.
                cursor.execute("show status where variable_name = concat('Ss', 'l_ciph', 'er')")
                return "TLS" if cursor.fetchone()[1] else "clear"
        except pymysql.Error as e:
            # The log has a thread of its own: all of it is there once Weir has ended.
            w.stop()
            return f"{e!r} {w.log()}"


@weir
def every_mode_behind(context):
    kind = context.kind
    ca = f"&ssl-ca={own('ca.pem')}"
    # MySQL and MariaDB from 11.4 on make themselves certificates when they have none; MariaDB 10.11 then has no TLS.
    plain = int(server_env(kind, "PORT"))
    with pymysql.connect(host="127.0.0.1", port=plain, user="app", password=PASSWORD, database="app") as c, c.cursor() as cursor:
        cursor.execute("show variables like 'have_ssl'")
        row = cursor.fetchone()
        plain = plain if row and row[1] != "YES" and kind == "mariadb" else None
    for query, with_tls, without in (
        ("ssl-mode=DISABLED", "clear", "clear"),
        # Nobody listens in on a loopback address.
        ("ssl-mode=PREFERRED", "clear", "clear"),
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
    ca = f"&ssl-ca={own('ca.pem')}"
    for name, query, wanted in (
        ("elsewhere", "ssl-mode=VERIFY_CA" + ca, "TLS"),
        ("elsewhere", "ssl-mode=VERIFY_IDENTITY" + ca, "for another host than"),
        ("expired", "ssl-mode=REQUIRED" + ca, "TLS"),
        ("expired", "ssl-mode=PREFERRED" + ca, "clear"),
        ("expired", "ssl-mode=VERIFY_CA" + ca, "has expired"),
        ("server", "ssl-mode=VERIFY_IDENTITY" + ca, "TLS"),
    ):
        if kind == "mysql" and name == "expired":
            # It does not load one.
            continue
        with_certificate(kind, name)
        seen = asked(kind, behind(kind, query, host="localhost"))
        assert wanted in seen, (name, query, seen)


def with_certificate(kind, name):
    """The server shows another certificate from now on."""
    with pymysql.connect(unix_socket=server(kind).env["SOCKET"], user="root") as admin, admin.cursor() as c:
        c.execute("select @@ssl_cert, @@ssl_key, @@datadir")
        *files, data = c.fetchone()
        for file, end in zip(files, ("pem", "key"), strict=True):
            shutil.copyfile(own(f"{name}.{end}"), os.path.join(data, file))
        c.execute("flush ssl" if kind == "mariadb" else "alter instance reload tls")


@weir
def accounts_that_require_tls_or_a_certificate(context):
    kind = context.kind
    shows = f"&ssl-cert={own('client.pem')}&ssl-key={own('client.key')}"
    assert asked(kind, behind(kind, "ssl-mode=REQUIRED", user="app_tls"), user="app_tls") == "TLS"
    assert "TLS" != asked(kind, behind(kind, "ssl-mode=DISABLED", user="app_tls"), user="app_tls") != "clear"
    # Refused in clear, where nobody listens in, and taken with TLS; a password that is wrong stays wrong.
    assert asked(kind, behind(kind, "ssl-mode=PREFERRED", user="app_tls"), user="app_tls") == "TLS"
    wrong = behind(kind, "ssl-mode=PREFERRED", user="app_tls").replace(PASSWORD, "wrong")
    assert "Access denied" in asked(kind, wrong, user="app_tls", password="wrong")
    assert asked(kind, behind(kind, "ssl-mode=REQUIRED" + shows, user="app_cert"), user="app_cert") == "TLS"
    assert "TLS" != asked(kind, behind(kind, "ssl-mode=REQUIRED", user="app_cert"), user="app_cert") != "clear"


@weir(only="mysql")
def sha256_password_accounts(context):
    """In an envelope without TLS, in clear inside it; again when a session is begun anew; and a wrong password is refused."""
    admin = pymysql.connect(unix_socket=server("mysql").env["SOCKET"], user="root")
    with admin, admin.cursor() as c:
        c.execute("select count(*) from information_schema.plugins where plugin_name = 'sha256_password' and plugin_status = 'ACTIVE'")
        if not c.fetchone()[0]:
            raise Skip("this server has no sha256_password")
        c.execute(f"create user if not exists app_sha256 identified with sha256_password by '{PASSWORD}'")
        c.execute("grant all on *.* to app_sha256")
    for mode, wanted in (("DISABLED", "clear"), ("PREFERRED", "clear"), ("REQUIRED", "TLS")):
        url = behind("mysql", f"ssl-mode={mode}", user="app_sha256")
        assert asked("mysql", url, user="app_sha256") == wanted
        assert "Access denied" in asked("mysql", url.replace(PASSWORD, "wrong"), user="app_sha256", password="wrong"), mode
        with front("mysql", url=url) as w:
            # The one server goes from a schema to none and back, for which it logs in again.
            for database in ("app", None, "app", None):
                with pymysql.connect(host="127.0.0.1", port=w.port, user="app_sha256", password=PASSWORD, database=database, ssl_disabled=True) as c, \
                        c.cursor() as cursor:
                    cursor.execute("select database()")
                    assert cursor.fetchone() == (database,)


@weir(only="mysql")
def clients_of_sha256_password_are_asked_for_its_successor(context):
    """caching_sha2_password, inside TLS and in an envelope without it. A refusal says whether a password was used there, not in the
    answer that was made for the other method."""
    with front("mysql", "sslmode=prefer", *shown("server")) as w:
        for how in (["--ssl-mode=REQUIRED"], ["--ssl-mode=DISABLED", "--get-server-public-key"]):
            for password, word in ((PASSWORD, "in"), ("wrong", "Access denied for user 'app' (using password: YES)"), ("", "(using password: NO)")):
                seen = program(w, "--default-auth=sha256_password", *how, kind="mysql", password=password)
                assert word in seen and (seen == "in") == (word == "in"), (how, seen)


@weir
def a_reload_under_two_thousand_busy_clients_drops_nobody(context):
    reload_under_load(functools.partial(front, context.kind), lambda w: f"mysql://app:{PASSWORD}@127.0.0.1:{w.port}/app?ssl-mode=REQUIRED", "mysql")


@weir
def handshakes_beside_many_clients_harm_nobody(context):
    with front(context.kind, "sslmode=require", *shown("server")) as w:
        def stay():
            client = pymysql.connect(host="127.0.0.1", port=w.port, user="app", password=PASSWORD, database="app", ssl=LAX)

            def ask():
                with client, client.cursor() as cursor:
                    cursor.execute("select 1")
                    assert cursor.fetchone() == (1,)
            return ask

        def begin():
            wire = Wire(w.target(), login=False)
            wire.read()
            wire.send_next(struct.pack("<IIB23x", BASIC | SSL, PACKET_MAX, 45))
            return wire.sock

        handshakes_beside_others(w, stay, begin)


STRICT = ["--set", "tls.server.trust_unverified=false"]


class FalseServer:
    """Stands where the database should be, and wants the password: by its own RSA key, or in clear inside its own TLS."""

    def __init__(self, way):
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import rsa

        self.way, self.stolen, self.done = way, None, threading.Event()
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.pem = self.key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            try:
                tried = self.rob(conn)
            except (OSError, EOFError, ValueError):
                tried = True
            conn.close()
            if tried:
                self.done.set()

    def rob(self, conn):
        def put(seq, payload):
            conn.sendall(struct.pack("<I", len(payload))[:3] + bytes([seq]) + payload)

        def get():
            head = exactly(conn, 4)
            return head[3], exactly(conn, int.from_bytes(head[:3], "little"))

        flags = BASIC | 1 << 23 | 1 << 24 | 1 << 21 | (SSL if self.way != "rsa" else 0)
        salt = b"abcdefghijklmnopqrst"
        put(0, b"\x0a8.4.1\0" + struct.pack("<I", 7) + salt[:8] + b"\0" + struct.pack("<H", flags & 0xFFFF) + b"\x2d\x02\0"
            + struct.pack("<H", flags >> 16) + bytes([21]) + bytes(10) + salt[8:] + b"\0caching_sha2_password\0")
        seq, said = get()
        if self.way != "rsa" and len(said) != 32:
            # No request for TLS: refused as an account that requires it is.
            put(seq + 1, b"\xff" + struct.pack("<H", 1045) + b"#28000Access denied")
            return False
        if self.way != "rsa":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(foreign("server.pem"), foreign("server.key"))
            conn = context.wrap_socket(conn, server_side=True)
            seq, _ = get()
        put(seq + 1, b"\x01\x04" if self.way in ("rsa", "full") else b"\xfemysql_clear_password\0" + salt + b"\0")
        seq, said = get()
        if self.way == "rsa":
            put(seq + 1, b"\x01" + self.pem)
            _, said = get()
            from cryptography.hazmat.primitives import hashes
            from cryptography.hazmat.primitives.asymmetric import padding
            said = self.key.decrypt(said, padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None))
            said = bytes(c ^ salt[i % 20] for i, c in enumerate(said))
        self.stolen = said.rstrip(b"\0").decode()
        return True


def exactly(conn, n):
    out = b""
    while len(out) < n:
        got = conn.recv(n - len(out))
        if not got:
            raise EOFError
        out += got
    return out


@weir
def a_false_server_gets_no_password(context):
    for way in ("rsa", "full", "clear"):
        thief = FalseServer(way)
        url = f"mysql://app:{PASSWORD}@127.0.0.1:{thief.port}/app"
        with Weir(context.kind, [url, *STRICT], name="thief") as w:
            try:
                login(w, None, connect_timeout=1, read_timeout=1)
            except pymysql.Error:
                pass
            assert thief.done.wait(30)
            assert thief.stolen is None, f"{way}: the password is out"
            eventually(lambda w=w: "nothing proves that it is the right server" in w.log(), "the log says why")
        thief.listener.close()


@weir
def a_proven_server_gets_the_password_it_asks_for(context):
    """MySQL forgets whom it knows at FLUSH PRIVILEGES; then it wants the password itself."""
    if context.kind != "mysql":
        raise Skip("MariaDB 10.11 asks for no password that can be read")
    socket_path = server("mysql").env["SOCKET"]
    admin = pymysql.connect(unix_socket=socket_path, user="root")
    with admin, admin.cursor() as c, tempfile.NamedTemporaryFile("w", suffix=".pem") as known:
        c.execute("show status like 'Caching_sha2_password_rsa_public_key'")
        known.write(c.fetchone()[1])
        known.flush()
        unix = f"mysql://app:{PASSWORD}@localhost/app?socket={socket_path}"
        for url, inside in (
            (behind("mysql", ""), False),
            (behind("mysql", "ssl-mode=DISABLED"), False),
            # In clear on a loopback address, so that the key is of use.
            (behind("mysql", f"server-public-key-path={known.name}"), True),
            (behind("mysql", f"ssl-mode=VERIFY_CA&ssl-ca={own('ca.pem')}"), True),
            (behind("mysql", f"ssl-mode=DISABLED&server-public-key-path={known.name}"), True),
            (behind("mysql", "get-server-public-key=true"), True),
            (behind("mysql", "ssl-mode=DISABLED&get-server-public-key=true"), True),
            (unix, True),
        ):
            c.execute("flush privileges")
            with Weir("mysql", [url, *STRICT], name="proven") as w:
                seen = login(w, None)
                assert (seen == "clear") == inside, (url, seen)
