"""The report: one HTML file that needs nothing else, with a curve for each thing that must not grow."""

import html
import math

WIDTH, HEIGHT = 1000, 190
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 10, 26
COLOURS = ("#2a6fdb", "#d9662b", "#2c9a62", "#8a56c9", "#b23a6e", "#7b7f2a", "#4a8a99", "#a8503a")
STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --dim: #667085; --line: #d9dee6; --back: #ffffff; --good: #18794e; --bad: #c0261c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --dim: #98a2b3; --line: #364152; --back: #10151d; --good: #4cc38a; --bad: #ff7a6e; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); max-width: 1040px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 0.2rem; } p { margin: 0.3rem 0; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; } .dim { color: var(--dim); }
table { border-collapse: collapse; margin: 0.5rem 0; } td, th { padding: 0.15rem 1.2rem 0.15rem 0; text-align: left; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; } svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--dim); font-size: 12px; } .grid { stroke: var(--line); } .mark { opacity: 0.6; }
.key { display: inline-block; width: 0.8rem; height: 0.8rem; border-radius: 2px; margin: 0 0.3rem 0 0.9rem; vertical-align: -1px; }
.one { white-space: nowrap; }
pre { white-space: pre-wrap; border: 1px solid var(--line); padding: 0.6rem; font-size: 12px; }
"""


def nice(most):
    """The first of 1, 2, 2.5 and 5 times a power of ten that is a quarter of it or more."""
    if most <= 0:
        return 1.0
    power = 10 ** math.floor(math.log10(most / 4))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= most / 4)


def number(x):
    return f"{x:,.0f}" if abs(x) >= 10 else f"{x:g}" if x == round(x, 3) else f"{x:.2f}"


def clock(seconds, whole):
    if whole >= 7200:
        return f"{seconds / 3600:g} h"
    return f"{seconds / 60:g} min" if whole >= 240 else f"{seconds:g} s"


class Chart:
    """Lines over the time of the run. `log`: the axis goes by powers of ten."""

    def __init__(self, whole_s, log=False):
        self.whole_s, self.log, self.lines = whole_s, log, []

    def add(self, name, points, dots=False):
        # One without points keeps its colour.
        self.lines.append((name, points, dots))

    def x(self, at_s):
        return LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, at_s / self.whole_s)

    def scale(self):
        values = [v for _, points, _ in self.lines for _, v in points]
        if self.log:
            low = 10 ** math.floor(math.log10(max(1e-3, min(values))))
            high = 10 ** math.ceil(math.log10(max(low * 10, *values)))
            steps = [low * 10 ** n for n in range(round(math.log10(high / low)) + 1)]
            return steps, lambda v: (math.log10(max(v, low)) - math.log10(low)) / (math.log10(high) - math.log10(low))
        step = nice(max(values))
        count = max(1, math.ceil(max(values) / step))
        return [step * n for n in range(count + 1)], lambda v: v / (step * count)

    def svg(self, marks=()):
        if not any(points for _, points, _ in self.lines):
            return "<p class=dim>nothing was seen</p>"
        steps, part = self.scale()

        def y(v):
            return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part(v)

        out = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">']
        for step in steps:
            out += [f'<line class=grid x1={LEFT} x2={WIDTH - RIGHT} y1={y(step):.1f} y2={y(step):.1f} />',
                    f'<text x={LEFT - 8} y={y(step) + 4:.1f} text-anchor=end>{number(step)}</text>']
        tick = nice(self.whole_s) if self.whole_s < 240 else 60 * nice(self.whole_s / 60) if self.whole_s < 7200 else 3600 * nice(self.whole_s / 3600)
        for n in range(int(self.whole_s / tick) + 1):
            out.append(f'<text x={self.x(n * tick):.1f} y={HEIGHT - 8} text-anchor=middle>{clock(n * tick, self.whole_s)}</text>')
        out += [f'<line class=mark stroke="{colour}" x1={self.x(at):.1f} x2={self.x(at):.1f} y1={TOP} y2={HEIGHT - BOTTOM}><title>{html.escape(name)}</title></line>'
                for at, name, colour in marks]
        for (_, points, dots), colour in zip(self.lines, COLOURS, strict=False):
            if dots or len(points) == 1:
                out += [f'<circle cx={self.x(at):.1f} cy={y(v):.1f} r=2.5 fill="{colour}" />' for at, v in points]
            elif points:
                path = " ".join(f"{self.x(at):.1f},{y(v):.1f}" for at, v in points)
                out.append(f'<polyline points="{path}" fill=none stroke="{colour}" stroke-width=1.6 stroke-linejoin=round />')
        return "".join([*out, "</svg>"])

    def keys(self):
        return "".join(f'<span class=key style="background:{colour}"></span>{html.escape(name)}' for (name, *_), colour in zip(self.lines, COLOURS, strict=False))


def curve(samples, key):
    return [(s["at_s"], s[key]) for s in samples if key in s]


def rates(samples, key):
    return [(b["at_s"], (b[key] - a[key]) / (b["at_s"] - a["at_s"])) for a, b in zip(samples, samples[1:], strict=False) if b["at_s"] > a["at_s"]]


def table(head, rows):
    def cell(tag, value):
        return f"<{tag} class=n>{value:,}</{tag}>" if isinstance(value, int) else f"<{tag}>{html.escape(str(value))}</{tag}>"

    names = "".join(cell("th", name) for name in head)
    return f"<table><tr>{names}</tr>" + "".join("<tr>" + "".join(cell("td", v) for v in row) + "</tr>" for row in rows) + "</table>"


def page(run):
    """`run`: what the program has put together. Every chart has the same axis of time, and the faults as thin lines."""
    whole, samples = run["seconds"], run["samples"]
    colours = dict(zip(sorted({name for _, name in run["faults"]}), COLOURS[::-1] * 2, strict=False))
    marks = [(at, name, colours[name]) for at, name in run["faults"]]
    charts = []

    def chart(title, about, names, log=False):
        one = Chart(whole, log)
        for name, points, *dots in names:
            one.add(name, points, *dots)
        charts.append(f"<h2>{title}</h2><p class=dim>{about}</p><p>{one.keys()}</p>{one.svg(marks)}")

    chart("Memory, MB", f"Resident and Weir's own. {run['growth']}", [("Weir", curve(samples, "rss_mb"))])
    chart("Descriptors", "Open ones, and the connections that most of them are.",
          [(name, curve(samples, name)) for name in ("descriptors", "clients", "servers")])
    chart("Latency, ms: the slowest hundredth", "Of a client for each database that asks 20 times a second, logins behind lost connections included.",
          [(kind, curve(samples, f"p99 {kind}")) for kind in run["databases"]], log=True)
    chart("Latency, ms: the middle", "Of the same clients.", [(kind, curve(samples, f"p50 {kind}")) for kind in run["databases"]], log=True)
    chart("Requests a second", "Of all clients on all databases.", [("requests", rates(samples, "requests"))])
    chart("CPU, cores", "Weir's own.", [("Weir", rates(samples, "cpu_s"))])
    chart("Beside it: memory of the tortured Weirs, MB", "Behind each round of faults (tests/torture). A new process begins wherever one was killed.",
          [(kind, [(at, mb) for at, k, mb, _ in run["torture_rounds"] if k == kind], True) for kind in run["databases"]])
    well = "<p class=good>All was well.</p>" if not run["problems"] else "".join(f"<p class=bad>Not well:</p><pre>{html.escape(p)}</pre>" for p in run["problems"])
    counted = {name: sum(n == name for _, n in run["faults"]) for name in colours}
    keys = " ".join(f'<span class=one><span class=key style="background:{colour}"></span>{name.replace("_", " ")} {counted[name]}</span>'
                    for name, colour in colours.items())
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Weir: soak</title><style>{STYLE}</style>
<h1>Weir: {html.escape(run['title'])}</h1><p class=dim>{html.escape(run['about'])}</p>{well}
<h2>Asked</h2>{table(('database', 'runs of weir bench', 'queries', 'errors behind faults', 'probe: asked', 'lost'), run['asked'])}
<h2>Faults</h2><p class=dim>Thin lines in the charts.</p><p>{keys}</p>{''.join(charts)}
<h2>Torture beside it</h2>{table(('database', 'runs', 'faults', 'writes checked', 'answers', 'losses that were owed'), run['torture'])}
<p class=dim>Again: <code>{html.escape(run['again'])}</code></p></html>
"""
