"""The reports of weir bench: files that a browser shows, with their plots drawn and nothing fetched."""

import csv
import json
import os
import subprocess
import tempfile
import urllib.parse

from weirtest.browser import PLOTS, Browser, checked
from weirtest.case import weir
from weirtest.pgwire import Wire
from weirtest.target import direct_target, superuser
from weirtest.weir import binary

SERVERS = ["postgres"]
RUN_DEADLINE_S = 120


def url():
    target = direct_target("postgres")
    return f"postgres://{target.user}:{target.password}@{target.host}:{target.port}/{target.database}"


def bench(*arguments, codes=(0,)):
    done = subprocess.run([binary(), "bench", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=RUN_DEADLINE_S, check=False)
    assert done.returncode in codes, (done.returncode, done.stdout.decode(), done.stderr.decode())
    return done.stdout.decode()


def place(directory, name):
    return os.path.join(directory, name)


@weir
def a_run_writes_json_csv_and_a_page(_context):
    with tempfile.TemporaryDirectory() as directory:
        files = {kind: place(directory, f"run.{kind}") for kind in ("html", "json", "csv")}
        text = bench("run", "select_one", "--url", url(), "--connections", "4", "--time", "3", "--report", files["html"], "--json",
                     files["json"], "--csv", files["csv"])
        with open(files["json"], encoding="utf-8") as f:
            result = json.load(f)
        assert result["queries"] > 0 and f"{result['queries']}" in text, text
        with open(files["csv"], encoding="utf-8", newline="") as f:
            seconds = list(csv.DictReader(f))
        assert [int(s["queries"]) for s in seconds] == [s["queries"] for s in result["per_second"]], seconds
        with Browser() as browser:
            for dark in (False, True):
                titles = [plot["title"] for plot in checked(browser, files["html"], dark)]
                assert titles == ["Throughput", "Latency", "Connections", "Latency by percentile"], titles
            ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
            browser.evaluate("document.getElementById('theme').click()")
            assert browser.evaluate("getComputedStyle(document.body).backgroundColor") != ground
            # A phone.
            browser.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=2, mobile=True)
            checked(browser, files["html"])


@weir
def plots_zoom_together_and_back(_context):
    with tempfile.TemporaryDirectory() as directory, Browser() as browser:
        path = place(directory, "run.html")
        bench("run", "select_one", "--url", url(), "--connections", "2", "--time", "4", "--report", path)
        before = checked(browser, path)
        browser.call("Emulation.setDeviceMetricsOverride", width=1200, height=3000, deviceScaleFactor=1, mobile=False)
        before = browser.evaluate(PLOTS)
        x, y, width, height = before[0]["box"]
        browser.drag(x + width * 0.3, y + height * 0.5, x + width * 0.7, y + height * 0.5)
        zoomed = browser.evaluate(PLOTS)
        changed = [a["picture"] != b["picture"] for a, b in zip(before, zoomed)]
        # The plots over time follow each other, the one over percentiles does not.
        assert changed == [True, True, True, False], changed
        browser.double_click(x + width * 0.5, y + height * 0.5)
        back = browser.evaluate(PLOTS)
        assert [a["picture"] == b["picture"] for a, b in zip(before, back)] == [True] * 4
        assert not browser.complaints(), browser.complaints()


@weir
def two_runs_are_compared(_context):
    with tempfile.TemporaryDirectory() as directory, Browser() as browser:
        runs = [place(directory, f"{name}.json") for name in "ab"]
        # The same clients with a pause before each query, of 4 ms and of 20 ms: slower beyond any doubt, and at a rate that
        # whatever else the machine does hardly moves.
        bench("run", "select_one", "--url", url(), "--connections", "4", "--time", "6", "--every", "0.004", "--json", runs[0])
        bench("run", "select_one", "--url", url(), "--connections", "4", "--time", "6", "--every", "0.02", "--json", runs[1])
        page, found = place(directory, "compare.html"), place(directory, "compare.json")
        text = bench("compare", *runs, "--report", page, "--json", found)
        with open(found, encoding="utf-8") as f:
            measures = {m["name"]: m for m in json.load(f)["measures"]}
        assert measures["throughput"]["verdict"] == "worse" and measures["throughput"]["difference_percent"] < -50, measures
        assert "B is worse" in text and "The rate differs" in text, text
        titles = [plot["title"] for plot in checked(browser, page)]
        assert titles == ["Throughput", "Median latency", "Latency, p99", "Latency by percentile"], titles
        assert "throughput is worse by" in bench("compare", *runs, "--fail-if-worse", "10", codes=(4,))
        # A run equals itself.
        same = bench("compare", runs[0], runs[0], "--fail-if-worse", "0")
        assert "is better" not in same and "is worse" not in same, same
        assert "no such file" in subprocess.run([binary(), "bench", "compare", runs[0], "/nowhere.json"], stdout=subprocess.PIPE,
                                                stderr=subprocess.PIPE, check=False).stderr.decode().lower()


@weir
def what_a_server_says_is_text_on_the_page(_context):
    evil = "<img src=x onerror=document.title=1></script>"
    with tempfile.TemporaryDirectory() as directory, Browser() as browser, Wire(superuser()) as admin:
        # The error that too many clients get repeats the name.
        admin.ask(f'CREATE DATABASE "{evil}" CONNECTION LIMIT 3')
        try:
            address = f"{url().rsplit('/', 1)[0]}/{urllib.parse.quote(evil, safe='')}"
            path = place(directory, "run.html")
            bench("run", "select_one", "--url", address, "--connections", "6", "--time", "1", "--report", path, codes=(4,))
        finally:
            admin.ask(f'DROP DATABASE "{evil}" WITH (FORCE)')
        checked(browser, path)
        assert f'too many connections for database "{evil}"' in browser.evaluate("document.body.innerText")
        assert browser.evaluate("document.images.length") == 0
        assert browser.evaluate("document.title") != "1"
