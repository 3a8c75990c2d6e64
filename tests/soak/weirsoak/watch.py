"""Samples of Weir while it works, and what may not have grown at the end."""

import threading
import time

MOST_SAMPLES = 1_200
# Memory may still grow by so much from the second tenth of the time to the last one: what is made once, when it is needed first.
MORE_RSS_MB = 16
# Descriptors beside clients and servers, at the end and before the first client.
MORE_DESCRIPTORS = 8


class Watch(threading.Thread):
    def __init__(self, ground, probes, seconds):
        super().__init__(name="watch", daemon=True)
        self.ground, self.probes = ground, probes
        self.step_s = max(1.0, seconds / MOST_SAMPLES)
        self.stop, self.samples = threading.Event(), []
        self.trouble = None

    def run(self):
        while not self.stop.wait(self.step_s):
            try:
                self.samples.append(self.sample())
            except OSError as e:
                # While Weir is stopped its endpoint does not answer in time.
                self.trouble = e

    def sample(self):
        weir, metrics = self.ground.weir, self.ground.weir.metrics()

        def total(name, **labels):
            wanted = [f'{k}="{v}"' for k, v in labels.items()]
            return sum(v for k, v in metrics.items() if k.partition("{")[0] == f"weir_{name}" and all(w in k for w in wanted))

        found = {"at_s": time.monotonic() - self.ground.began, "rss_mb": weir.rss_kb() / 1024, "descriptors": self.ground.descriptors(),
                 "clients": total("client_connections"), "servers": total("server_connections"), "waiting": total("waiting_clients"),
                 "cpu_s": self.ground.cpu_s(), "requests": total("requests_total"), "faults": total("faults_total")}
        for probe in self.probes:
            took = probe.take()
            if took:
                found[f"p50 {probe.database.kind}"] = took[len(took) // 2]
                found[f"p99 {probe.database.kind}"] = took[min(len(took) - 1, len(took) * 99 // 100)]
        return found


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def growth(samples):
    """(MB more in the last tenth than in the second one, MB an hour), by medians."""
    tenth = max(1, len(samples) // 10)
    early, late = samples[tenth:2 * tenth] or samples[:1], samples[-tenth:]
    more = median([s["rss_mb"] for s in late]) - median([s["rss_mb"] for s in early])
    hours = (late[0]["at_s"] - early[0]["at_s"]) / 3600
    return more, more / hours if hours else 0.0


def verdict(samples, before, after):
    """What has grown that must not."""
    found = []
    if not samples:
        return ["no sample was taken"]
    more = growth(samples)[0]
    if more > MORE_RSS_MB:
        found.append(f"Weir's memory grew by {more:.1f} MB between the second and the last tenth of the time")

    def beside(sample):
        return sample["descriptors"] - sample["clients"] - sample["servers"]

    if beside(after) > beside(before) + MORE_DESCRIPTORS:
        found.append(f"Weir has {beside(after):.0f} descriptors beside those of clients and servers, and had {beside(before):.0f}")
    if after["clients"]:
        found.append(f"Weir has {after['clients']:.0f} clients, and all have left")
    return found
