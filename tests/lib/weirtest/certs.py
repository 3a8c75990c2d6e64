"""Certificates for tests, made by the openssl program: a CA, and signed by it what is right, expired, for another host."""

import functools
import os
import re
import subprocess

from .weir import ROOT

CONFIG = """
[ca]
default_ca = own
[own]
new_certs_dir = .
database = index
serial = serial
policy = any
default_md = sha256
unique_subject = no
copy_extensions = copy
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
"""


class Certificates:
    """A folder with ca.pem and, by name, NAME.pem and NAME.key."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        with open(self.path("conf"), "w", encoding="utf-8") as f:
            f.write(CONFIG)
        for name, content in (("index", ""), ("serial", "01\n")):
            with open(self.path(name), "w", encoding="utf-8") as f:
                f.write(content)
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "3650", "-subj",
                     "/CN=test CA", "-addext", "basicConstraints=critical,CA:TRUE")

    def path(self, name):
        return os.path.join(self.folder, name)

    def openssl(self, *argv):
        done = subprocess.run(["openssl", *argv], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"openssl {' '.join(argv)}: {done.stdout.decode(errors='replace')}")

    def sign(self, name, common_name, hosts=(), until="20991231000000Z"):
        names = ",".join(("IP:" if re.fullmatch(r"[0-9.]+", host) else "DNS:") + host for host in hosts)
        self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={common_name}",
                     *(["-addext", f"subjectAltName={names}"] if names else []), "-addext", "basicConstraints=CA:FALSE")
        self.openssl("ca", "-batch", "-config", "conf", "-cert", "ca.pem", "-keyfile", "ca.key", "-in", f"{name}.csr", "-out",
                     f"{name}.pem", "-notext", "-startdate", "20200101000000Z", "-enddate", until)
        os.chmod(self.path(f"{name}.key"), 0o600)


@functools.cache
def certificates():
    """Those of this suite: two CAs, `own` and `foreign`."""
    suite = re.sub(r"\W+", "-", os.environ.get("WEIR_SUITE", "suite")).strip("-")
    base = os.path.join(ROOT, "target/suites", f"certificates-{suite}")
    own = Certificates(os.path.join(base, "own"))
    own.sign("server", "localhost", ["localhost", "127.0.0.1"])
    own.sign("expired", "localhost", ["localhost", "127.0.0.1"], until="20210101000000Z")
    own.sign("elsewhere", "elsewhere.test", ["elsewhere.test"])
    own.sign("client", "app_cert")
    own.sign("user", "app_scram")
    foreign = Certificates(os.path.join(base, "foreign"))
    foreign.sign("server", "localhost", ["localhost", "127.0.0.1"])
    foreign.sign("client", "app_cert")
    return own, foreign
