"""Many clients at work at once: the load generator, which checks every reply."""

import json
import os
import subprocess
import tempfile

from .weir import ROOT, binary


class Crowd:
    """`connections` clients that ask one query after the other for so many seconds. `report()` waits for their end."""

    def __init__(self, url, connections, seconds, workload="select_one", *more):
        handle, self.path = tempfile.mkstemp(suffix=".crowd.json", dir=os.path.join(ROOT, "target/suites"))
        os.close(handle)
        self.process = subprocess.Popen(
            [binary(), "bench", "run", workload, "--url", url, "--connections", str(connections), "--time", str(seconds), "--warmup", "0",
             "--event-loops", "1", "--report-interval", "0", "--json", self.path, *more],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def report(self):
        said = self.process.communicate(timeout=300)[0].decode(errors="replace")
        assert self.process.returncode in (0, 4), said
        with open(self.path, encoding="utf-8") as f:
            found = json.load(f)
        os.remove(self.path)
        return found

    def assert_nobody_was_dropped(self, connections):
        seen = self.report()
        assert seen["connected"] == connections and not seen["errors"] and not seen["given_up"], seen["errors_by_code"]
        assert seen["queries"] >= connections, seen["queries"]
