"""Logins that somebody else vouches for: a real LDAP server (slapd), with and without TLS, and real PAM; the same logins at the real PgBouncer,
where it has LDAP."""

import contextlib
import functools
import glob
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading

import psycopg

from weirtest.case import Skip, eventually, in_threads, weir
from weirtest.certs import certificates
from weirtest.pgwire import Wire, fields, message, startup, text
from weirtest.private import PrivateServer
from weirtest.slapd import BASE, slapd
from weirtest.weir import Weir, free_port

SERVERS = ["postgres"]

# Users of the directory. The database knows them by the same password, but for `other`.
PEOPLE = {
    "ann": "right",
    "bob": "of bob, \"all\"",
    "other": "of the directory",
    "Ann Smith": "blank",
    "a,b+c=d": "dn",
    "star*(x)": "filter",
    "back\\slash": "back",
    "#hash ": "hash",
    "müller": "größe",
}
OF_THE_DATABASE = {**PEOPLE, "other": "of the database"}
# Whoever is no user there, in words that would be somebody in another place.
STRANGERS = ("nobody", "*", "a*", "ann)(uid=*", "ann,ou=people", "ann\\2c", "ann+cn=ann", "uid=ann")
LDAP_WORDS = "LDAP authentication failed"


@functools.cache
def server():
    found = PrivateServer("postgres")
    with Wire(found.superuser()) as admin:
        for name, password in OF_THE_DATABASE.items():
            quoted, secret = name.replace('"', '""'), password.replace("'", "''")
            admin.ask(f"create role \"{quoted}\" login password '{secret}'")
        admin.ask("create role listed login password 'in the file'")
    return found


def literal(value):
    """Text in weir.toml, whatever quotes it has."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def toml(options="", auth="ldap", postgres="", more=""):
    given = f"auth_ldap_options = {literal(options)}\n" if options else ""
    return (f'[postgres]\nauth_type = "{auth}"\n{given}{postgres}'
            f'[databases.app]\nurl = "postgres://127.0.0.1:{server().port}/app"\n{more}')


def came_in(port, user, password, database="app", host="127.0.0.1", **more):
    """What became of a login: "in", or the words of the refusal."""
    try:
        with psycopg.connect(host=host, port=port, user=user, password=password, dbname=database, connect_timeout=50,
                             **{"sslmode": "disable", **more}) as c:
            assert c.execute("select current_user").fetchone()[0] == user
            return "in"
    except psycopg.OperationalError as e:
        return next((line.split("FATAL:  ")[1] for line in str(e).splitlines() if "FATAL:  " in line), str(e))


def refused(w, user, password):
    """How a login with this very password ends, which a client's library might not send: SQLSTATE and words."""
    with Wire(w.target(user=user, password=password), login=False) as wire:
        wire.send(startup({"user": user, "database": "app"}))
        asked = wire.read()
        assert asked == ("R", struct.pack("!i", 3)), asked
        wire.send(message(b"p", text(password)))
        kind, payload = wire.read()
        assert kind == "E", (kind, payload)
        return fields(payload)["C"], fields(payload)["M"]


@contextlib.contextmanager
def folder():
    directory = tempfile.mkdtemp(prefix="weir-vouched-", dir="/tmp")
    os.chmod(directory, 0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def write(path, content):
    with open(path, "w", encoding="utf-8") as f:
        f.write(content)


# --- LDAP ----------------------------------------------------------------------------------------------------------


def everybody(w, sockets):
    """Everybody comes in with the own password and with no other; nobody else does. By a Unix socket, where refusals are not held back for the
    address."""
    for user, password in PEOPLE.items():
        wanted = "in" if password == OF_THE_DATABASE[user] else "password authentication failed"
        seen = came_in(6432, user, password, host=sockets)
        assert seen.startswith(wanted), (user, seen, w.log()[-3000:])
        assert came_in(6432, user, password + "x", host=sockets) == LDAP_WORDS, user
    for user in STRANGERS:
        for password in ("right", "wrong"):
            assert came_in(6432, user, password, host=sockets) == LDAP_WORDS, (user, password, w.log()[-3000:])
    # To a directory these are ann; to the database they are nobody.
    for user in ("ANN", "ann "):
        assert came_in(6432, user, "right", host=sockets).startswith("password authentication failed"), user


@weir
def by_a_search_and_by_a_name(_context):
    """As PostgreSQL's manual has the two ways; names with what is special in DNs and in filters."""
    with slapd(PEOPLE) as directory, folder() as sockets:
        filtered = directory.search(more='ldapsearchfilter="(&(objectClass=inetOrgPerson)(|(uid=$username)(mail=$username)))"')
        by_url = f'ldapurl="ldap://127.0.0.1:{directory.port}/ou=people,{BASE}?uid?sub" ' + directory.search().split(f'"{BASE}" ', 1)[1]
        for options in (directory.search(), directory.search(more="ldapsearchattribute=cn"), filtered, by_url, directory.bind()):
            with Weir.configured("postgres", toml(options), also=[f"{sockets}:6432"]) as w:
                everybody(w, sockets)
                log = w.log()
                assert "panicked" not in log and "finds, all" not in log, "no password is logged"


@weir
def what_the_client_is_told_is_what_postgresql_tells(_context):
    with slapd(PEOPLE) as directory:
        for options in (directory.search(), directory.bind()):
            with Weir.configured("postgres", toml(options)) as w:
                assert refused(w, "ann", "wrong") == ("28000", LDAP_WORDS)
                assert refused(w, "nobody", "right") == ("28000", LDAP_WORDS)
                # A directory takes an empty password for an anonymous user, and says that it is right.
                assert refused(w, "ann", "") == ("28P01", "empty password returned by client")
                assert refused(w, "nobody", "") == ("28P01", "empty password returned by client")
                log = eventually(lambda: (log := w.log()) and log.count("login refused") >= 4 and log, "all are in the log")
                assert "invalidCredentials (49)" in log and f"ldap://127.0.0.1:{directory.port}" in log, log[-3000:]


@weir
def a_user_who_is_there_twice_does_not_come_in(_context):
    twice = "".join(f"dn: uid=ann,ou={unit},{BASE}\nobjectClass: inetOrgPerson\nuid: ann\ncn: ann\nsn: ann\nuserPassword: right\n\n"
                    for unit in ("more", "most"))
    units = "".join(f"dn: ou={unit},{BASE}\nobjectClass: organizationalUnit\nou: {unit}\n\n" for unit in ("more", "most"))
    with slapd(PEOPLE, more=units + twice) as directory, Weir.configured("postgres", toml(directory.search())) as w:
        assert came_in(w.port, "ann", "right") == LDAP_WORDS
        assert came_in(w.port, "bob", PEOPLE["bob"]) == "in"
        eventually(lambda: "more than one entry for (uid=ann)" in w.log(), "the log says why")


@weir
def with_starttls_and_with_ldaps(_context):
    """The server's certificate must be that of the host, signed by the CA that is named."""
    own, foreign = certificates()
    with slapd({"ann": "right"}, tls=own.folder) as directory:
        ldaps = directory.search(port=directory.tls_port, more="ldapscheme=ldaps")
        starttls = directory.search(more="ldaptls=1")
        for options in (ldaps, starttls):
            with Weir.configured("postgres", toml(options, postgres=f'auth_ldap_ca_file = "{own.path("ca.pem")}"\n')) as w:
                assert came_in(w.port, "ann", "right") == "in", w.log()[-3000:]
                assert came_in(w.port, "ann", "wrong") == LDAP_WORDS
            with Weir.configured("postgres", toml(options, postgres=f'auth_ldap_ca_file = "{foreign.path("ca.pem")}"\n')) as w:
                assert came_in(w.port, "ann", "right") == LDAP_WORDS
                eventually(lambda w=w: "TLS: " in w.log() and "LDAP authentication is not possible" in w.log(), "the operator is told")
    # A server without TLS is not talked to in clear.
    with slapd({"ann": "right"}) as directory:
        ca = f'auth_ldap_ca_file = "{own.path("ca.pem")}"\n'
        with Weir.configured("postgres", toml(directory.search(more="ldaptls=1"), postgres=ca)) as w:
            assert came_in(w.port, "ann", "right") == LDAP_WORDS
            eventually(lambda: "it refuses TLS (ldaptls=1)" in w.log(), "the operator is told")


@weir
def a_certificate_of_another_host_is_refused(_context):
    own, _ = certificates()
    with tempfile.TemporaryDirectory() as wrong:
        for name, of in (("ca.pem", "ca.pem"), ("server.pem", "elsewhere.pem"), ("server.key", "elsewhere.key")):
            shutil.copy(own.path(of), os.path.join(wrong, name))
        with slapd({"ann": "right"}, tls=wrong) as directory:
            ca = f'auth_ldap_ca_file = "{own.path("ca.pem")}"\n'
            with Weir.configured("postgres", toml(directory.search(more="ldaptls=1"), postgres=ca)) as w:
                assert came_in(w.port, "ann", "right") == LDAP_WORDS
                eventually(lambda: "LDAP authentication is not possible" in w.log(), "the operator is told")


@weir
def a_server_that_is_down_and_comes_back(_context):
    with slapd({"ann": "right"}) as directory, Weir.configured("postgres", toml(directory.search())) as w:
        assert came_in(w.port, "ann", "right") == "in"
        directory.stop()
        assert refused(w, "ann", "right") == ("28000", LDAP_WORDS)
        log = eventually(lambda: (log := w.log()) and "LDAP authentication is not possible" in log and log, "the operator is told")
        assert f"ldap://127.0.0.1:{directory.port}: cannot connect: " in log
        w.reaches("weir_faults_total", 1, protocol="postgres", kind="login_unanswered")
        directory.start()
        assert came_in(w.port, "ann", "right") == "in"


@weir
def the_second_server_is_asked_where_the_first_is_down(_context):
    with slapd({"ann": "right"}) as directory:
        hosts = f'ldapserver="127.0.0.1:{free_port()} 127.0.0.1"'
        with Weir.configured("postgres", toml(directory.search().replace("ldapserver=127.0.0.1", hosts))) as w:
            assert came_in(w.port, "ann", "right") == "in", w.log()[-2000:]
            assert came_in(w.port, "ann", "wrong") == LDAP_WORDS


@weir
def a_wrong_finder_is_the_operator_s_business(_context):
    with slapd({"ann": "right"}) as directory:
        with Weir.configured("postgres", toml(directory.search().replace("cn=finder", "cn=nobody"))) as w:
            assert came_in(w.port, "ann", "right") == LDAP_WORDS
            log = eventually(lambda: (log := w.log()) and "LDAP authentication is not possible" in log and log, "the operator is told")
            assert "it refuses ldapbinddn: invalidCredentials (49)" in log and "finds, all" not in log


@weir
def a_server_that_never_answers_holds_up_nobody_else(_context):
    """Two logins wait for it; others come in by SCRAM meanwhile, and the two are told in time."""
    with slapd({"ann": "right"}) as directory, folder() as place:
        hba = os.path.join(place, "hba.conf")
        write(hba, f"host all ann all ldap {directory.search()}\nhost all all all scram-sha-256\n")
        content = toml(auth="hba", postgres=f'auth_hba_file = "{hba}"\n',
                       more='[users.listed]\npassword = "in the file"\n[limits]\nclient_login_timeout = 6\n')
        with Weir.configured("postgres", "workers = 1\n" + content) as w:
            assert came_in(w.port, "ann", "right") == "in", w.log()[-2000:]
            directory.pause()
            told = []
            waiting = [threading.Thread(target=lambda: told.append(refused(w, "ann", "right"))) for _ in range(2)]
            for thread in waiting:
                thread.start()
            eventually(lambda: w.metric("weir_client_logins_pending", protocol="postgres") >= 2, "two wait")
            for _ in range(20):
                assert came_in(w.port, "listed", "in the file") == "in"
            assert told == [], "they still wait"
            for thread in waiting:
                thread.join()
            assert told == [("28000", LDAP_WORDS)] * 2, told
            eventually(lambda: f"ldap://127.0.0.1:{directory.port}: no answer: the time for it is over" in w.log(), "the operator is told")
            # Nothing is left of them.
            directory.resume()
            assert came_in(w.port, "ann", "right") == "in"
            eventually(lambda: w.metric("weir_client_logins_pending", protocol="postgres") == 0, "nobody logs in any more")


@weir
def many_more_than_it_answers_do_not_take_everybody_s_place(_context):
    """Logins that wait for a server that does not answer make room for others."""
    with slapd({"ann": "right"}) as directory, folder() as place:
        hba = os.path.join(place, "hba.conf")
        write(hba, f"host all ann all ldap {directory.search()}\nhost all all all scram-sha-256\n")
        content = toml(auth="hba", postgres=f'auth_hba_file = "{hba}"\n',
                       more='[users.listed]\npassword = "in the file"\n[limits]\nmax_client_conn = 20\nclient_login_timeout = 40\n')
        with Weir.configured("postgres", "workers = 1\n" + content) as w:
            assert came_in(w.port, "listed", "in the file") == "in"
            directory.pause()
            with contextlib.ExitStack() as stack:
                # 20 clients and 128 more may be logging in.
                for _ in range(148):
                    s = stack.enter_context(socket.create_connection(("127.0.0.1", w.port)))
                    s.sendall(startup({"user": "ann", "database": "app"}) + message(b"p", text("right")))
                eventually(lambda: w.metric("weir_client_logins_pending", protocol="postgres") >= 140, "they wait")
                # A login that has said nothing for a second makes room.
                eventually(lambda: came_in(w.port, "listed", "in the file") == "in", "somebody else comes in", 30)
            directory.resume()


@weir
def many_at_once(_context):
    people = {f"user{n}": f"password {n}" for n in range(60)}
    with slapd(people) as directory:
        with Wire(server().superuser()) as admin:
            for name, password in people.items():
                admin.ask(f"create role {name} login password '{password}'")
        try:
            with Weir.configured("postgres", toml(directory.search(), more="[pool]\ndefault_pool_size = 1\n")) as w:
                def login(n):
                    assert came_in(w.port, f"user{n}", f"password {n}") == "in"
                    assert came_in(w.port, f"user{n}", f"password {(n + 1) % 60}") == LDAP_WORDS

                raised = in_threads(60, login)
                assert not raised, (raised, w.log()[-3000:])
        finally:
            with Wire(server().superuser()) as admin:
                for name in people:
                    admin.ask(f"drop role {name}")


@weir
def which_password_the_server_gets(_context):
    """The client's own; that of [users] in weir.toml where it is another one; the one of the URL where that names a user."""
    port = server().port
    forced = f'[databases.forced]\nurl = "postgres://listed:in%20the%20file@127.0.0.1:{port}/app"\n'
    with slapd(PEOPLE) as directory:
        with Weir.configured("postgres", toml(directory.search(), more=forced)) as w:
            assert came_in(w.port, "other", "of the directory").startswith("password authentication failed")
            with psycopg.connect(host="127.0.0.1", port=w.port, user="other", password="of the directory", dbname="forced", sslmode="disable") as c:
                assert c.execute("select current_user").fetchone() == ("listed",)
        with folder() as place:
            path = os.path.join(place, "weir.toml")
            users = '[users.other]\npassword = "of the database"\n'
            write(path, toml(directory.search()))
            with Weir("postgres", ["--config", path, "--set", "tls.client.sslmode=disable"], name="users") as w:
                assert came_in(w.port, "other", "of the directory").startswith("password authentication failed")
                # Also for a pool that knows the other one.
                write(path, toml(directory.search(), more=users))
                w.signal(signal.SIGHUP)
                eventually(lambda: came_in(w.port, "other", "of the directory") == "in", "the password of [users] is used")
                assert came_in(w.port, "other", "of the database") == LDAP_WORDS, "it is no client's"


@weir
def a_password_changed_in_the_directory_holds_at_once(_context):
    """For logins; and new servers get the newest that has come in."""
    with slapd({"ann": "one"}) as directory, Wire(server().superuser()) as admin:
        admin.ask("alter role ann password 'one'")
        try:
            with Weir.configured("postgres", toml(directory.search(), more="[pool]\ndefault_pool_size = 2\n")) as w:
                assert came_in(w.port, "ann", "one") == "in", w.log()[-2000:]
                directory.stop(signal.SIGTERM)
                changed = f"dn: uid=ann,ou=people,{BASE}\nchangetype: modify\nreplace: userPassword\nuserPassword: two\n"
                directory.write("change.ldif", changed)
                directory.tool("slapmodify", "-f", directory.path("slapd.conf"), "-l", directory.path("change.ldif"))
                directory.start()
                admin.ask("alter role ann password 'two'")
                assert came_in(w.port, "ann", "one") == LDAP_WORDS
                admin.ask("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'ann'")
                eventually(lambda: came_in(w.port, "ann", "two") == "in", "a new server is there")
        finally:
            admin.ask("alter role ann password 'right'")


@weir
def options_change_at_a_reload(_context):
    with slapd({"ann": "right"}) as directory, folder() as place:
        path = os.path.join(place, "weir.toml")
        write(path, toml(directory.search()))
        with Weir("postgres", ["--config", path, "--set", "tls.client.sslmode=disable"], name="reload") as w:
            assert came_in(w.port, "ann", "right") == "in"
            # One that is wrong changes nothing.
            write(path, toml("ldapserver=127.0.0.1"))
            w.signal(signal.SIGHUP)
            eventually(lambda: "ldapbasedn, ldapprefix or ldapsuffix is missing" in w.log(), "the log says what is wrong")
            assert came_in(w.port, "ann", "right") == "in"
            write(path, toml(directory.search().replace(f"port={directory.port}", f"port={free_port()}")))
            w.signal(signal.SIGHUP)
            eventually(lambda: came_in(w.port, "ann", "right") == LDAP_WORDS, "another server is asked")
            write(path, toml(auth="scram-sha-256", more='[users.listed]\npassword = "in the file"\n'))
            w.signal(signal.SIGHUP)
            eventually(lambda: came_in(w.port, "listed", "in the file") == "in", "nobody is asked any more")
            assert came_in(w.port, "ann", "right") == "password authentication failed"
            write(path, toml(directory.bind()))
            w.signal(signal.SIGHUP)
            eventually(lambda: came_in(w.port, "ann", "right") == "in", "a directory is asked again")
            log = w.log()
            assert "finds, all" not in log and "auth_ldap_options" in log, "the difference is logged without passwords"


@weir
def wrong_passwords_are_answered_later_and_later(_context):
    with slapd({"ann": "right"}) as directory, Weir.configured("postgres", "workers = 1\n" + toml(directory.bind())) as w:
        told = []
        tries = [threading.Thread(target=lambda: told.append(came_in(w.port, "ann", "wrong"))) for _ in range(15)]
        for thread in tries:
            thread.start()
        eventually(lambda: w.metric("weir_client_refusals_held_total", protocol="postgres") >= 8, "refusals are held back")
        assert came_in(w.port, "ann", "right") == "in"
        assert len(told) < 15, "all were told before somebody came in"
        for thread in tries:
            thread.join()
        assert told == [LDAP_WORDS] * 15, told


@weir
def the_console_asks_the_directory_too(_context):
    with slapd({"ann": "right", "bob": "right"}) as directory:
        with Weir.configured("postgres", toml(directory.bind(), more='[console]\nadmin_users = ["ann"]\n')) as w:
            with Wire(w.target(user="ann", password="right", database="weir")) as console:
                shown = {row[0]: row[1] for row in console.ask("show config")}
                assert shown["postgres.auth_ldap_options"] == "********", shown
            for user, password, words in (("ann", "wrong", LDAP_WORDS), ("bob", "right", "not allowed")):
                assert words in came_in(w.port, user, password, "weir"), user


def pgbouncer():
    """A PgBouncer with LDAP."""
    newest = os.environ.get("WEIR_TEST_NEWEST", "")
    path = f"{newest}/root/usr/sbin/pgbouncer"
    if newest and os.access(path, os.X_OK):
        return path
    raise Skip("no PgBouncer 1.25 or newer is here (WEIR_TEST_NEWEST)")


def ini(place, port, settings):
    hba, users = os.path.join(place, "hba.conf"), os.path.join(place, "users.txt")
    path = os.path.join(place, f"{port}.ini")
    write(path, f"[databases]\napp = host=127.0.0.1 port={server().port} dbname=app\n"
                f"forced = host=127.0.0.1 port={server().port} dbname=app user=listed password='in the file'\n"
                f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_file = {users}\n"
                f"auth_hba_file = {hba}\nlogfile = {place}/log.{port}\npidfile =\n{settings}\n")
    return path


@weir
def who_comes_in_is_who_comes_in_at_pgbouncer(_context):
    """The same ini before both: by auth_type, and by lines of an HBA file. Names with special characters are refused there."""
    program = pgbouncer()
    cases = [(user, PEOPLE.get(user, "in the file")) for user in ("ann", "bob", "other", "Ann Smith", "müller", "listed", "nobody", "ann,ou=people")]
    cases += [("ann", "wrong"), ("other", "of the database"), ("bob", "right"), ("listed", "right")]
    with slapd(PEOPLE) as directory, folder() as place:
        os.chmod(place, 0o777)
        write(os.path.join(place, "users.txt"), '"other" "of the database"\n"listed" "in the file"\n')
        write(os.path.join(place, "hba.conf"),
              f'host all listed all scram-sha-256\nhost all "nobody" all reject\nhost all all all ldap {directory.search()}\n')
        for settings in (f"auth_type = ldap\nauth_ldap_options = {directory.search()}",
                         f"auth_type = ldap\nauth_ldap_options = {directory.bind()}", "auth_type = hba"):
            port, other = free_port(), free_port()
            argv = [program, "-u", "nobody", ini(place, port, settings)] if os.geteuid() == 0 else [program, ini(place, port, settings)]
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                def listens(port=port):
                    with socket.socket() as s:
                        return s.connect_ex(("127.0.0.1", port)) == 0

                eventually(listens, "pgbouncer listens")
                theirs = {case: came_in(port, *case) == "in" for case in cases}
            finally:
                process.kill()
                process.wait()
            with Weir("postgres", ["--config", ini(place, other, settings)], name="ini") as w:
                ours = {case: came_in(w.port, *case) == "in" for case in cases}
                log = w.log()
            differ = {case: (theirs[case], ours[case]) for case in cases if theirs[case] != ours[case]}
            assert not differ, (settings, differ, log[-3000:])
            assert sum(ours.values()) >= 4, ours


# --- PAM -----------------------------------------------------------------------------------------------------------

PAM_WORDS = "PAM authentication failed"


@contextlib.contextmanager
def pam(services):
    """An environment in which PAM has these services and no others: pam_wrapper stands in for the folder /etc/pam.d, so that no account of
    this machine and no right of root's is needed. Everything else is the system's own PAM."""
    found = glob.glob("/usr/lib/*/libpam_wrapper.so*")
    if not found:
        raise Skip("libpam-wrapper is not installed")
    matrix = glob.glob("/usr/lib/*/pam_wrapper/pam_matrix.so")[0]
    with folder() as place:
        os.mkdir(os.path.join(place, "services"))
        for name, service in services.items():
            with open(os.path.join(place, f"{name}.passwords"), "w", encoding="utf-8") as f:
                f.writelines(f"{user}:{password}:{name}\n" for user, password in service.get("users", {}).items())
            lines = service.get("lines") or [f"{kind} required {matrix} passdb={place}/{name}.passwords" for kind in ("auth", "account")]
            write(os.path.join(place, "services", name), "".join(line.replace("PLACE", place) + "\n" for line in lines))
        for name, content in next(iter(services.values())).get("files", {}).items():
            write(os.path.join(place, name), content)
            os.chmod(os.path.join(place, name), 0o755)
        yield place, {"LD_PRELOAD": found[0], "PAM_WRAPPER": "1", "PAM_WRAPPER_SERVICE_DIR": os.path.join(place, "services")}


def helpers(w):
    """The processes that ask PAM."""
    with open(f"/proc/{w.process.pid}/task/{w.process.pid}/children", encoding="utf-8") as f:
        own = f.read().split()
    for task in os.listdir(f"/proc/{w.process.pid}/task"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{w.process.pid}/task/{task}/children", encoding="utf-8") as f:
            own += f.read().split()
    return set(own)


@weir
def pam_takes_the_right_password_and_no_other(_context):
    users = {"ann": "right", "Ann Smith": "blank", "müller": "größe", "other": "of the directory"}
    with pam({"weir": {"users": users}, "db": {"users": {"ann": "of db"}}}) as (_, env):
        with Weir.configured("postgres", toml(auth="pam", more='[users.other]\npassword = "of the database"\n'), env=env) as w:
            for user, password in users.items():
                assert came_in(w.port, user, password) == "in", (user, w.log()[-3000:])
                assert came_in(w.port, user, password + "x") == PAM_WORDS
            for user in ("nobody", "ann:right", "*", "../ann"):
                assert came_in(w.port, user, "right") == PAM_WORDS, user
            assert refused(w, "ann", "wrong") == ("28000", PAM_WORDS)
            assert refused(w, "ann", "") == ("28P01", "empty password returned by client")
            log = w.log()
            assert "PAM: service weir: " in log, log[-2000:]
        with Weir.configured("postgres", toml(auth="pam", postgres='pam_service = "db"\n'), env=env) as w:
            assert came_in(w.port, "ann", "right") == PAM_WORDS
            # It is the password of this service, and none of the database's.
            assert came_in(w.port, "ann", "of db").startswith("password authentication failed")


@weir
def pam_modules_are_told_where_the_client_is(_context):
    """By its address, by its name where that is asked for, and in PostgreSQL's words on a Unix socket."""
    script = "#!/bin/sh\nread -r password\necho \"$PAM_SERVICE $PAM_USER $PAM_RHOST $PAM_TYPE\" >>PLACE/seen\n[ \"$password\" = right ]\n"
    with folder() as sockets:
        lines = ["auth required pam_exec.so expose_authtok PLACE/script", "account required pam_permit.so"]
        with pam({"db": {"lines": lines, "files": {"script": ""}}, "named": {"lines": lines}}) as (place, env):
            write(os.path.join(place, "script"), script.replace("PLACE", place))
            hba = os.path.join(place, "hba.conf")
            write(hba, "host all ann all pam pamservice=db\nhost all bob all pam pamservice=named pam_use_hostname=1\n"
                       "local all all pam pamservice=db\n")
            content = toml(auth="hba", postgres=f'auth_hba_file = "{hba}"\n')
            with Weir.configured("postgres", content, env=env, also=[f"{sockets}:6432"]) as w:
                assert came_in(w.port, "ann", "right") == "in", w.log()[-2000:]
                assert came_in(w.port, "ann", "wrong") == PAM_WORDS
                assert came_in(6432, "ann", "right", host=sockets) == "in", w.log()[-2000:]
                # PAM takes it; the database has another one.
                assert came_in(w.port, "bob", "right").startswith("password authentication failed")
            name = socket.getnameinfo(("127.0.0.1", 0), 0)[0]
            with open(os.path.join(place, "seen"), encoding="utf-8") as f:
                seen = f.read().splitlines()
            assert seen == ["db ann 127.0.0.1 auth"] * 2 + ["db ann [local] auth", f"named bob {name} auth"], seen


@weir
def a_pam_module_that_never_returns_holds_up_nobody_else(_context):
    def asleep():
        """What the modules have begun."""
        return subprocess.run(["pgrep", "-f", "^sleep 1234.5$"], stdout=subprocess.PIPE, check=False).stdout.split()

    lines = ["auth required pam_exec.so PLACE/script", "account required pam_permit.so"]
    with pam({"slow": {"lines": lines, "files": {"script": "#!/bin/sh\nexec sleep 1234.5\n"}}}) as (place, env):
        hba = os.path.join(place, "hba.conf")
        write(hba, "host all ann all pam pamservice=slow\nhost all all all scram-sha-256\n")
        content = toml(auth="hba", postgres=f'auth_hba_file = "{hba}"\n',
                       more='[users.listed]\npassword = "in the file"\n[limits]\nclient_login_timeout = 6\n')
        with Weir.configured("postgres", "workers = 1\n" + content, env=env) as w:
            told = []
            waiting = [threading.Thread(target=lambda: told.append(refused(w, "ann", "right"))) for _ in range(3)]
            for count, thread in enumerate(waiting, 1):
                thread.start()
                # One behind the other: libpam_wrapper takes one directory for two processes that start at once.
                eventually(lambda count=count: len(asleep()) == count, "a module has begun")
            assert len(helpers(w)) == 3
            for _ in range(20):
                assert came_in(w.port, "listed", "in the file") == "in"
            assert told == [], (told, w.log()[-3000:])
            for thread in waiting:
                thread.join()
            assert told == [("28000", PAM_WORDS)] * 3, told
            eventually(lambda: "service slow: no answer: the time for it is over" in w.log(), "the operator is told")
            # Neither the processes are left nor what their modules have begun.
            eventually(lambda: not helpers(w), "the processes have ended")
            assert asleep() == []


@weir
def a_pam_module_that_crashes_costs_one_login(_context):
    lines = ["auth [success=ok default=die] pam_exec.so PLACE/script", "account required pam_permit.so"]
    with pam({"weir": {"lines": lines, "files": {"script": "#!/bin/sh\n[ $PAM_USER = ann ] || kill -ABRT $PPID\n"}}}) as (_, env):
        with Weir.configured("postgres", toml(auth="pam"), env=env) as w:
            assert came_in(w.port, "ann", "right") == "in", w.log()[-2000:]
            assert came_in(w.port, "bob", "right") == PAM_WORDS
            assert came_in(w.port, "ann", "right") == "in"
            eventually(lambda: "its process has ended" in w.log(), "the operator is told")


@weir
def pam_without_its_service_or_its_library_lets_nobody_in(_context):
    with pam({"another": {"users": {"ann": "right"}}}) as (_, env):
        with Weir.configured("postgres", toml(auth="pam"), env=env) as w:
            assert came_in(w.port, "ann", "right") == PAM_WORDS
        # As where it is not installed: the loader finds an empty file in its place.
        with folder() as nowhere:
            with open(os.path.join(nowhere, "libpam.so.0"), "w", encoding="utf-8"):
                pass
            with Weir.configured("postgres", toml(auth="pam"), env={"LD_LIBRARY_PATH": nowhere}) as w:
                assert came_in(w.port, "ann", "right") == PAM_WORDS
                eventually(lambda: "cannot load libpam.so.0" in w.log(), "the operator is told")


@weir
def processes_for_pam_end_with_weir(_context):
    with pam({"weir": {"users": {"ann": "right"}}}) as (_, env):
        w = Weir.configured("postgres", toml(auth="pam"), env=env)
        try:
            assert came_in(w.port, "ann", "right") == "in", w.log()[-2000:]
            one = helpers(w)
            assert len(one) == 1, one
            for _ in range(5):
                assert came_in(w.port, "ann", "right") == "in"
            assert helpers(w) == one, "it is used again"
        finally:
            w.kill()
        eventually(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in one), "it has ended")
