"""What the suites of TLS share: certificates by name, what openssl sees, and reloads under load."""

import os
import re
import shutil
import signal
import ssl
import subprocess

from .case import eventually
from .certs import certificates
from .crowd import Crowd


def own(name):
    """A file of the CA that clients and servers trust."""
    return certificates()[0].path(name)


def foreign(name):
    """A file of a CA that nobody trusts."""
    return certificates()[1].path(name)


def shown(name, of=own):
    """Settings of tls.client: Weir shows this certificate."""
    return f"cert_file={of(name + '.pem')}", f"key_file={of(name + '.key')}"


def s_client(w, *argv):
    """What the openssl program says of a connection to this Weir."""
    done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{w.port}", "-CAfile", own("ca.pem"), *argv],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    return done.stdout.decode(errors="replace")


def der(name):
    """A certificate of our own as it goes over the wire."""
    with open(own(f"{name}.pem"), encoding="ascii") as f:
        return ssl.PEM_cert_to_DER_cert(f.read())


def shown_now(w, starttls):
    """The certificate that a new client sees."""
    seen = s_client(w, "-starttls", starttls)
    return ssl.PEM_cert_to_DER_cert(re.search(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", seen, re.DOTALL)[0])


class Changing:
    """A certificate whose file can be replaced by another; `settings` of tls.client show it."""

    def __init__(self, folder, name):
        os.makedirs(own(folder), exist_ok=True)
        self.files = {end: os.path.join(own(folder), f"now.{end}") for end in ("pem", "key")}
        self.put(name)

    @property
    def settings(self):
        return f"cert_file={self.files['pem']}", f"key_file={self.files['key']}"

    def put(self, name):
        for end, file in self.files.items():
            shutil.copyfile(own(f"{name}.{end}"), file)


def reload_under_load(front, url_of, starttls, clients=2000):
    """The certificate changes again and again while all these clients ask; the last one is shown to whoever comes then, and nobody
    is dropped. `front` makes a Weir from settings of tls.client, `url_of` the clients' URL."""
    certificate = Changing("busy", "server")
    with front("sslmode=require", *certificate.settings) as w:
        crowd = Crowd(url_of(w), clients, 10)
        eventually(lambda: w.metric("weir_client_connections") >= clients and not w.metric("weir_client_logins_pending"), "all are in", 60)
        for name in ("elsewhere", "server", "elsewhere", "server", "elsewhere"):
            certificate.put(name)
            lines = w.log().count("was read again")
            w.signal(signal.SIGHUP)
            eventually(lambda before=lines: w.log().count("was read again") > before, "it is read")
        assert shown_now(w, starttls) == der("elsewhere")
        assert crowd.process.poll() is None, "they are still at work"
        crowd.assert_nobody_was_dropped(clients)
