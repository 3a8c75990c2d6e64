"""weir lab on given servers: direct, through Weir and through PgBouncer; its page, its figures, and nothing left behind."""

import json
import os
import subprocess
import tempfile

from weirtest import mywire, pgwire
from weirtest.browser import Browser, checked
from weirtest.case import weir
from weirtest.target import direct_target
from weirtest.weir import binary, url

SERVERS = ["postgres", "mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[postgres").split("[")[1].rstrip("]")
# No other suite has tables there.
DATABASE = "app2"


def tables():
    wire = (pgwire if KIND == "postgres" else mywire).Wire(direct_target(KIND).within(DATABASE))
    with wire:
        return wire.ask("SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'sbtest%' AND table_schema NOT IN "
                        "('information_schema', 'bench', 'app')")


@weir
def connect_rate_measures_each_way_and_leaves_nothing(_context):
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run([binary(), "lab", "connect-rate", "--url", url(KIND, database=DATABASE), "--time", "1", "--out", out,
                               "--pool-size", "2"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=110, check=False)
        text = done.stdout.decode()
        assert done.returncode == 0, (done.returncode, text, done.stderr.decode())
        with open(os.path.join(out, "connect-rate.json"), encoding="utf-8") as f:
            (found,) = json.load(f)["figures"]
        ways = {cell["way"] for cell in found["cells"]}
        assert {"direct", "Weir"} <= ways, ways
        for cell in found["cells"]:
            assert cell["errors"] == 0 and cell["per_second"] > 0, cell
        assert "As published" in text and "through Weir" in text, text
        with Browser() as browser:
            assert len(checked(browser, os.path.join(out, "connect-rate.html"))) == 1
    assert not tables(), tables()
