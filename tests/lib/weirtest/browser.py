"""A page in headless Chromium, driven over a pipe: what it drew, what it logged, what it asked the network for."""

import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

from .case import Skip, eventually

DEADLINE_S = 60
NAMES = ("chromium", "chromium-browser", "google-chrome")


def program():
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if not found:
        raise Skip("no Chromium on this machine")
    return found


class Browser:
    """One Chromium with one page. `with Browser() as browser:`"""

    def __enter__(self):
        self.home = tempfile.TemporaryDirectory(prefix="weir-browser-", ignore_cleanup_errors=True)
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # The numbers 3 and 4 are Chromium's; what they are copied from must not be among them.
        high_in, high_out = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in (theirs_in, theirs_out))
        argv = [program(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                "--disable-dev-shm-usage", f"--user-data-dir={self.home.name}", "--window-size=1200,900",
                "--remote-debugging-pipe", "about:blank"]
        self.log = open(os.path.join(self.home.name, "log"), "wb")
        # Python's own descriptors close themselves; only the two copies stay open.
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, close_fds=False,
                                        preexec_fn=lambda: (os.dup2(high_in, 3), os.dup2(high_out, 4)))
        for fd in (theirs_in, theirs_out, high_in, high_out):
            os.close(fd)
        self.incoming, self.outgoing, self.buffer = ours_in, ours_out, b""
        self.last_id, self.events, self.session = 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for fd in (self.incoming, self.outgoing):
            os.close(fd)
        self.log.close()
        self.home.cleanup()

    def receive(self, end):
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.incoming], [], [], left)[0]:
                raise AssertionError("Chromium does not answer")
            more = os.read(self.incoming, 1 << 20)
            if not more:
                raise AssertionError("Chromium has ended")
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **params):
        """One command of the DevTools protocol; events that come meanwhile are kept."""
        self.last_id += 1
        command = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.outgoing, json.dumps(command).encode() + b"\0")
        end = time.monotonic() + DEADLINE_S
        while True:
            message = self.receive(end)
            if message.get("id") == self.last_id:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self.events.append(message)

    def evaluate(self, script):
        """The value of an expression in the page; a promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, path, dark=False):
        """Opens a report and waits until its plots are drawn; returns how many there are."""
        self.events.clear()
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        drawn = eventually(lambda: self.evaluate("document.documentElement?.dataset.drawn"), f"the plots of {path} are drawn", DEADLINE_S)
        # uPlot draws in a task of its own.
        self.evaluate("new Promise(done => setTimeout(done))")
        return int(drawn)

    def visit(self, url, dark=False):
        """Opens a page of a server."""
        self.events.clear()
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=url)

    def complaints(self, own="file:"):
        """What a person would see as errors in the console, and requests for anything that is not the page's own."""
        self.evaluate("0")
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"])
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(params["args"])
            elif event["method"] == "Network.requestWillBeSent" and not params["request"]["url"].startswith(own):
                found.append(params["request"]["url"])
        return found

    def drag(self, x, y, to_x, to_y):
        for kind, at in (("mouseMoved", (x, y)), ("mousePressed", (x, y)), ("mouseMoved", (to_x, to_y)), ("mouseReleased", (to_x, to_y))):
            self.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="none" if kind == "mouseMoved" else "left",
                      buttons=0 if kind == "mouseReleased" else 1, clickCount=0 if kind == "mouseMoved" else 1)
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")

    def double_click(self, x, y):
        for count in (1, 2):
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")

    def picture(self, path):
        """The page, all of it, as PNG."""
        import base64

        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))


# For each plot: how many of its pixels have, nearly, the colour of one of its series, and where the plot lies.
PLOTS = """
(() => {
  const specs = JSON.parse(document.getElementById("plots").textContent);
  const style = getComputedStyle(document.documentElement);
  return specs.map((spec, n) => {
    const figure = document.getElementById(`plot-${n}`);
    const canvas = figure.querySelector("canvas");
    // A copy: reading from the plot's own canvas would change how it is drawn.
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
    copy.drawImage(canvas, 0, 0);
    const {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
    const coloured = spec.series.map((s) => {
      const hex = style.getPropertyValue(`--c${s.colour % 8}`).trim();
      const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
      let count = 0;
      for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3] > 60 && Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 40) count++;
      }
      // Of two lines that are the same in every point, the later one covers the other.
      const same = (o) => o !== s && o.right === s.right && JSON.stringify(o.values) === JSON.stringify(s.values);
      return {name: s.name, count, covered: spec.series.slice(spec.series.indexOf(s) + 1).some(same)};
    });
    const box = figure.querySelector(".u-over").getBoundingClientRect();
    return {title: spec.title, coloured, width: canvas.width, box: [box.x + scrollX, box.y + scrollY, box.width, box.height],
            picture: canvas.toDataURL()};
  });
})()
"""


def checked(browser, path, dark=False):
    """Opens a report and checks what every report must show; returns its plots."""
    count = browser.open(path, dark)
    plots = browser.evaluate(PLOTS)
    assert len(plots) == count and count > 0, (count, plots)
    for plot in plots:
        assert plot["width"] > 300, plot
        for series in plot["coloured"]:
            assert series["count"] > 5 or series["covered"], f"{plot['title']}: the series {series['name']} was not drawn"
    assert not browser.complaints(), browser.complaints()
    wide = browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"the page is {wide} pixels too wide"
    return plots
