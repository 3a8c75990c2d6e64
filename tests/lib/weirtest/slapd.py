"""A real LDAP server (OpenLDAP's slapd) of a test: an ordinary process on a free port, with its data in a folder of the test."""

import base64
import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile

from .case import Skip, eventually
from .weir import free_port

BASE = "dc=example,dc=net"
FINDER, FINDER_PASSWORD = f"cn=finder,{BASE}", "finds, all \"of\" them"
SCHEMAS = ("core", "cosine", "inetorgperson")


def program(name):
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/lib/openldap:/usr/libexec")
    if not found or not os.path.isdir("/etc/ldap/schema"):
        raise Skip("slapd is not installed")
    return found


def ldif(name, value):
    """A line of an LDIF file (RFC 2849): anything but plain text goes in base64."""
    plain = value.isascii() and value.isprintable() and value == value.strip() and value[:1] not in (":", "<")
    return f"{name}: {value}" if plain else f"{name}:: {base64.b64encode(value.encode()).decode()}"


def entry(dn, classes, **attributes):
    lines = [ldif("dn", dn), *(ldif("objectClass", one) for one in classes)]
    return "\n".join([*lines, *(ldif(name, value) for name, value in attributes.items())]) + "\n\n"


def in_dn(text):
    """A value in a DN (RFC 4514), every special character as its two digits."""
    return "".join(c if c.isalnum() or c in "._-@" else "".join(f"\\{b:02x}" for b in c.encode()) for c in text)


class Slapd:
    """`people`: name and password of each, as uid=NAME,ou=people. Only `finder` may search. With `tls`, a folder with ca.pem, server.pem and
    server.key, also ldaps and StartTLS."""

    def __init__(self, people, tls=None, more=""):
        program("slapd")
        self.folder = tempfile.mkdtemp(prefix="weir-slapd-", dir="/tmp")
        self.port, self.tls_port = free_port(), free_port()
        self.tls = tls
        self.process = None
        os.mkdir(self.path("data"))
        content = entry(BASE, ["dcObject", "organization"], o="example", dc="example")
        content += entry(f"ou=people,{BASE}", ["organizationalUnit"], ou="people")
        content += entry(FINDER, ["organizationalRole", "simpleSecurityObject"], cn="finder", userPassword=FINDER_PASSWORD)
        for name, password in people.items():
            content += entry(f"uid={in_dn(name)},ou=people,{BASE}", ["inetOrgPerson"], uid=name, cn=name, sn=name, userPassword=password)
        self.write("base.ldif", content + more)
        self.configure()
        self.tool("slapadd", "-f", self.path("slapd.conf"), "-l", self.path("base.ldif"))
        if os.geteuid() == 0:
            # It is no business of root's.
            nobody = pwd.getpwnam("nobody")
            for folder, _, names in os.walk(self.folder):
                for path in (folder, *(os.path.join(folder, name) for name in names)):
                    os.chown(path, nobody.pw_uid, nobody.pw_gid)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(content)

    def configure(self):
        lines = [f"include /etc/ldap/schema/{schema}.schema" for schema in SCHEMAS]
        lines += [f"pidfile {self.path('pid')}", "modulepath /usr/lib/ldap", "moduleload back_mdb", "loglevel 0", "idletimeout 300"]
        if self.tls:
            for setting, name in (("CACertificateFile", "ca.pem"), ("CertificateFile", "server.pem"), ("CertificateKeyFile", "server.key")):
                shutil.copy(os.path.join(self.tls, name), self.path(name))
                lines.append(f"TLS{setting} {self.path(name)}")
        lines += ["database mdb", "maxsize 10485760", f'suffix "{BASE}"', f"directory {self.path('data')}", "dbnosync",
                  "access to attrs=userPassword by anonymous auth by * none",
                  f'access to * by dn.exact="{FINDER}" read by anonymous auth by * none']
        self.write("slapd.conf", "\n".join(lines) + "\n")

    def tool(self, name, *argv):
        done = subprocess.run([program(name), *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{name} {' '.join(argv)}: {done.stdout.decode(errors='replace')}")

    def start(self):
        urls = f"ldap://127.0.0.1:{self.port}" + (f" ldaps://127.0.0.1:{self.tls_port}" if self.tls else "")
        as_whom = ["-u", "nobody", "-g", "nogroup"] if os.geteuid() == 0 else []
        argv = [program("slapd"), "-f", self.path("slapd.conf"), "-h", urls, "-d", "0", *as_whom]
        with open(self.path("log"), "ab") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def listens():
            if self.process.poll() is not None:
                with open(self.path("log"), encoding="utf-8", errors="replace") as f:
                    raise RuntimeError(f"slapd ended: {f.read()}")
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", self.port)) == 0

        eventually(listens, "slapd listens")
        return self

    def stop(self, sig=signal.SIGKILL):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(sig)
            self.process.wait()

    def pause(self):
        """It takes connections and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def search(self, port=None, more=""):
        """The options of a search by `finder`."""
        quoted = FINDER_PASSWORD.replace('"', '""')
        return (f'ldapserver=127.0.0.1 ldapport={port or self.port} ldapbasedn="{BASE}" ldapbinddn="{FINDER}" ldapbindpasswd="{quoted}" '
                f"{more}").strip()

    def bind(self, more=""):
        """The options of a bind without a search."""
        return f'ldapserver=127.0.0.1 ldapport={self.port} ldapprefix="uid=" ldapsuffix=",ou=people,{BASE}" {more}'.strip()


@contextlib.contextmanager
def slapd(people, **kw):
    found = Slapd(people, **kw)
    try:
        yield found.start()
    finally:
        found.stop()
        shutil.rmtree(found.folder, ignore_errors=True)
