"""weir bench ramp on real servers: the ladder ends by itself, names a knee, and stops where the server says no."""

import json
import os
import subprocess
import tempfile

from weirtest.browser import Browser, checked
from weirtest.case import weir
from weirtest.target import direct_target
from weirtest.weir import Weir, binary, url

SERVERS = ["postgres", "mariadb", "mysql"]
KIND = os.environ.get("WEIR_SUITE", "[postgres").split("[")[1].rstrip("]")
DATABASE = "app"


def ramp(address, *arguments):
    with tempfile.TemporaryDirectory() as directory:
        found, page = os.path.join(directory, "ramp.json"), os.path.join(directory, "ramp.html")
        done = subprocess.run([binary(), "bench", "ramp", "select_one", "--url", address, "--min-time", "2", "--time", "2", "--warmup",
                               "0.2", "--json", found, "--report", page, *arguments], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=110, check=False)
        assert done.returncode == 0, (done.returncode, done.stdout.decode(), done.stderr.decode())
        with Browser() as browser:
            titles = [plot["title"] for plot in checked(browser, page)]
        assert titles == ["Throughput and latency over connections"], titles
        with open(found, encoding="utf-8") as f:
            return json.load(f), done.stdout.decode()


@weir
def it_climbs_and_names_a_knee(_context):
    assert direct_target(KIND)
    result, text = ramp(url(KIND, database=DATABASE), "--connections", "8")
    connections = [level["connections"] for level in result["levels"]]
    assert connections == sorted(connections) and {1, 2, 4} <= set(connections), connections
    assert all(level["errors"] == 0 and level["events_per_second"] > 0 for level in result["levels"]), result
    assert 1 <= result["knee"]["connections"] <= 8, result["knee"]
    assert result["knee"]["still_rising"] or "Recommended pool size" in text, text


@weir
def a_limit_ends_the_ladder(_context):
    # Weir's own limit of clients stands for a server's: both refuse in the server's words.
    weir_before = Weir.before(KIND, settings=("limits.max_client_conn=5",))
    try:
        result, text = ramp(url(KIND, port=weir_before.port, database=DATABASE), "--connections", "64", "--from", "2")
    finally:
        weir_before.stop()
    assert max(level["connections"] for level in result["levels"]) <= 5, result["levels"]
    assert any("did not take 8 connections" in remark for remark in result["remarks"]), (result["remarks"], text)
