// The dashboard: one poll of api/live each second; the last five minutes are kept here and nowhere else.
// Text from Weir becomes text: nothing is ever parsed as HTML (the page's policy forbids it as well).
"use strict";

const KEEP_MS = 300_000;
const LEAST_MS = 60_000;
const EVERY_MS = 1_000;
// A look that is missing is drawn as a gap.
const GAP_MS = 4_500;
const TABLE_ROWS = 200;
const SVG = "http://www.w3.org/2000/svg";

const byId = (id) => document.getElementById(id);
let token = "";
let points = [];

// --- Words -------------------------------------------------------------------------------------------------------

const plain = new Intl.NumberFormat("en", {maximumFractionDigits: 1});
const fine = new Intl.NumberFormat("en", {maximumFractionDigits: 2});
function number(n) {
  if (n >= 1e9) return `${fine.format(n / 1e9)}G`;
  if (n >= 1e6) return `${fine.format(n / 1e6)}M`;
  if (n >= 1e5) return `${Math.round(n / 1e3)}k`;
  return plain.format(n >= 100 ? Math.round(n) : n);
}
function time(us) {
  if (us >= 1e7) return `${plain.format(us / 1e6)} s`;
  if (us >= 1e6) return `${(us / 1e6).toFixed(2)} s`;
  if (us >= 1e5) return `${Math.round(us / 1e3)} ms`;
  if (us >= 1e3) return `${(us / 1e3).toFixed(us >= 1e4 ? 1 : 2)} ms`;
  return `${Math.round(us)} µs`;
}
// The same for the ends of steps, which need no digits.
function roundTime(us) {
  if (us >= 1e6) return `${fine.format(us / 1e6)} s`;
  return us >= 1e3 ? `${fine.format(us / 1e3)} ms` : `${fine.format(us)} µs`;
}
function bytes(n) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  for (; n >= 1000 && at < units.length - 1; at++) n /= 1000;
  return `${plain.format(n)} ${units[at]}`;
}
function ago(s) {
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  if (s < 172_800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86_400)} d`;
}

// --- Elements ----------------------------------------------------------------------------------------------------

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
function draw(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
function say(element, text, kind) {
  if (element.textContent !== text) element.textContent = text;
  if (kind !== undefined && element.className !== kind) element.className = kind;
}

// A table keeps its rows and cells: only what has changed is touched, so that a selection and the place stay.
// A column is [title, class]; a cell is text, or [text, class, title].
function table(element, columns, rows, empty) {
  const shape = JSON.stringify(columns);
  if (element.dataset.shape !== shape) {
    element.dataset.shape = shape;
    const heads = columns.map(([title, kind]) => make("th", {scope: "col", class: kind || ""}, title));
    element.replaceChildren(make("thead", {}, make("tr", {}, ...heads)), make("tbody"));
  }
  const body = element.tBodies[0];
  if (!rows.length) {
    body.replaceChildren(make("tr", {}, make("td", {class: "empty", colspan: columns.length}, empty)));
    body.dataset.empty = "yes";
    return;
  }
  if (body.dataset.empty) {
    body.replaceChildren();
    delete body.dataset.empty;
  }
  while (body.rows.length > rows.length) body.lastChild.remove();
  rows.forEach((cells, n) => {
    if (!body.rows[n]) body.append(make("tr", {}, ...columns.map(() => make("td"))));
    const row = body.rows[n];
    cells.forEach((cell, at) => {
      const [text, kind = "", title = ""] = Array.isArray(cell) ? cell : [cell];
      const place = row.cells[at];
      say(place, String(text), `${columns[at][1] || ""} ${kind}`.trim());
      if (place.title !== title) place.title = title;
    });
  });
}

// --- Charts ------------------------------------------------------------------------------------------------------

// Steps of 1, 2 or 5 times a power of ten, at most four of them.
function scale(most) {
  if (!(most > 0)) return {top: 1, step: 1};
  const raw = most / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * power).find((s) => s >= raw * 0.999);
  return {top: Math.ceil(most / step - 1e-9) * step, step};
}

class Chart {
  // A series is {name, style, of: point => number or undefined, dashed}.
  constructor(title, unit, series, least) {
    Object.assign(this, {title, unit, series, least, hover: null});
    this.svg = draw("svg", {role: "img", "aria-label": `${title}, the last five minutes`});
    this.values = series.map(() => make("b"));
    const names = series.map((s, n) => make("span", {}, make("i", {class: `s${s.style}`}), `${s.name} `, this.values[n]));
    this.names = names;
    this.when = make("small");
    this.box = make("div", {class: "chart"}, make("h2", {}, `${title} `, this.when), make("div", {class: "legend"}, ...names), this.svg);
    this.svg.addEventListener("pointermove", (event) => {
      this.hover = event.clientX - this.svg.getBoundingClientRect().left;
      this.show();
    });
    this.svg.addEventListener("pointerleave", () => {
      this.hover = null;
      this.show();
    });
    new ResizeObserver(() => this.show()).observe(this.box);
  }

  show() {
    const width = this.svg.clientWidth, height = this.svg.clientHeight;
    if (!width || !points.length) return;
    const [left, right, top, bottom] = [58, 8, 8, 20];
    const end = points[points.length - 1].at_ms;
    const most = Math.max(this.least, ...points.flatMap((p) => this.series.map((s) => s.of(p) ?? 0)));
    const {top: highest, step} = scale(most);
    // A page that was opened just now has no use for five minutes of nothing.
    const span = Math.min(KEEP_MS, Math.max(LEAST_MS, Math.ceil((end - points[0].at_ms) / LEAST_MS) * LEAST_MS));
    const x = (at) => left + (width - left - right) * (1 - (end - at) / span);
    const y = (value) => top + (height - top - bottom) * (1 - value / highest);
    const parts = [];
    for (let value = 0; value <= highest * 1.001; value += step) {
      parts.push(draw("line", {class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value)}));
      const label = draw("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end"});
      label.textContent = this.unit === time ? roundTime(value) : this.unit(value);
      parts.push(label);
    }
    const apart = span <= 2 * LEAST_MS ? span / 4 : width < 420 && span > 3 * LEAST_MS ? 2 * LEAST_MS : LEAST_MS;
    for (let back = 0; back <= span; back += apart) {
      const label = draw("text", {x: x(end - back), y: height - 4, "text-anchor": back === 0 ? "end" : back === span ? "start" : "middle"});
      label.textContent = back === 0 ? "now" : apart < LEAST_MS ? `−${back / 1_000} s` : `−${back / 60_000} min`;
      parts.push(label);
    }
    for (const s of this.series) {
      let path = "", before = null;
      for (const point of points) {
        const value = s.of(point);
        if (value === undefined) {
          before = null;
          continue;
        }
        const to = `${x(point.at_ms).toFixed(1)} ${y(value).toFixed(1)}`;
        // The first of a run is a dot: a line of no length with round ends.
        path += before !== null && point.at_ms - before < GAP_MS ? `L${to}` : `M${to}l0 0`;
        before = point.at_ms;
      }
      parts.push(draw("path", {class: `series s${s.style}${s.dashed ? " dashed" : ""}`, d: path}));
    }
    let shown = points[points.length - 1];
    if (this.hover !== null) {
      const at = end - (1 - (this.hover - left) / (width - left - right)) * span;
      shown = points.reduce((a, b) => (Math.abs(b.at_ms - at) < Math.abs(a.at_ms - at) ? b : a));
      parts.push(draw("line", {class: "cursor", x1: x(shown.at_ms), x2: x(shown.at_ms), y1: top, y2: height - bottom}));
    }
    say(this.when, this.hover === null ? "" : `${Math.round((end - shown.at_ms) / 1000)} s ago`);
    this.series.forEach((s, n) => {
      const value = s.of(shown);
      this.names[n].hidden = value === undefined && !points.some((p) => s.of(p) !== undefined);
      say(this.values[n], value === undefined ? "–" : this.unit(value));
    });
    this.svg.replaceChildren(...parts);
  }
}

const protocol = (name) => (p) => p.protocols.length > 1 ? p.protocols.find((one) => one.protocol === name)?.requests_per_s : undefined;
const percentiles = (of, count) => [["p99", 1], ["p95", 3], ["p50", 0]].map(([name, style]) =>
  ({name, style, of: (p) => p.all[count] > 0 ? p.all[of][`${name}_us`] : undefined}));
const charts = [
  new Chart("Queries per second", number, [
    {name: "all", style: 0, of: (p) => p.all.requests_per_s},
    {name: "PostgreSQL", style: 2, of: protocol("postgres")},
    {name: "MySQL", style: 1, of: protocol("mysql")},
  ], 4),
  new Chart("Query time, without the wait", time, percentiles("query", "requests_per_s"), 100),
  new Chart("Wait of the requests that waited", time, percentiles("wait", "waits_per_s"), 100),
  new Chart("Servers", number, [
    {name: "active", style: 0, of: (p) => p.servers.active},
    {name: "idle", style: 2, of: (p) => p.servers.idle},
    {name: "pinned", style: 1, of: (p) => p.servers.pinned},
    {name: "limit", style: 5, dashed: true, of: (p) => p.servers.limit},
  ], 4),
  new Chart("Clients waiting", number, [{name: "waiting", style: 1, of: (p) => p.queue.waiting}], 4),
  new Chart("Longest wait now", time, [{name: "longest", style: 1, of: (p) => p.queue.longest_us}], 100),
];

// --- The parts of the page ---------------------------------------------------------------------------------------

const tiles = {};
function tile(name, value, more, kind = "") {
  if (!tiles[name]) {
    const parts = [make("div"), make("div", {class: "more"})];
    tiles[name] = parts;
    byId("tiles").append(make("div", {class: "tile"}, make("div", {class: "name"}, name), ...parts));
  }
  say(tiles[name][0], value, `value ${kind}`.trim());
  say(tiles[name][1], more);
}

function showTiles(live) {
  const {all, queue, servers, clients} = live;
  const idle = !(all.requests_per_s > 0);
  tile("Queries per second", number(all.requests_per_s), `${bytes(all.received_bytes_per_s)}/s in, ${bytes(all.sent_bytes_per_s)}/s out`);
  tile("Query time p99", idle ? "–" : time(all.query.p99_us), idle ? "no queries" : `p50 ${time(all.query.p50_us)}, p95 ${time(all.query.p95_us)}`);
  const waited = all.waits_per_s > 0;
  tile("Wait p99", waited ? time(all.wait.p99_us) : "–", waited ? `of ${number(all.waits_per_s)} per second that waited` : "no request waited");
  tile("Clients waiting", number(queue.waiting), queue.waiting ? `longest ${time(queue.longest_us)}` : "nobody waits",
    queue.longest_us > 1e6 ? "bad" : "");
  tile("Servers active", number(servers.active), `${number(servers.open)} open, limit ${number(servers.limit)}`);
  tile("Servers pinned", number(servers.pinned), servers.pinned ? "kept beyond a transaction" : "",
    servers.limit && servers.pinned >= servers.limit / 2 ? "warn" : "");
  tile("Clients", number(clients.connected), `limit ${number(clients.limit)}${clients.logging_in ? `, ${number(clients.logging_in)} logging in` : ""}`,
    clients.connected >= clients.limit * 0.9 ? "warn" : "");
  tile("Logins per second", number(clients.logins_per_s), clients.refusals_per_s ? `${number(clients.refusals_per_s)} refused` : "none refused",
    clients.refusals_per_s ? "warn" : "");
}

const POOLS = [["database"], ["user"], ["state"], ["waiting", "number"], ["longest wait", "number"], ["queries/s", "number"],
  ["query time", "number"], ["wait", "number"], ["active", "number"], ["open", "number"], ["limit", "number"], ["pinned", "number"],
  ["protocol"], ["mode"]];
const STATEMENTS = [["in progress", "number"], ["calls/s", "number"], ["p50", "number"], ["p95", "number rare"], ["p99", "number"],
  ["rows/s", "number rare"], ["errors/s", "number"], ["database"], ["user", "rare"], ["statement", "free"]];
const HEALTH = {failing: "bad", paused: "warn", disabled: "warn", connecting: "", up: "good", unused: ""};

function showTables(live) {
  const counted = live.pools_matching === live.pools_total ? number(live.pools_total)
    : `${number(live.pools_matching)} of ${number(live.pools_total)} match`;
  say(byId("pools-count"), live.pools.length < live.pools_matching ? `${live.pools.length} shown, ${counted}` : counted);
  table(byId("pools"), POOLS, live.pools.map((p) => [
    [p.database, "", p.database], [p.user, "", p.user],
    p.failing ? ["failing", "bad"] : p.paused ? ["paused", "warn"] : p.waiting ? ["waiting", "warn"] : p.servers ? ["up", "good"] : "",
    [p.waiting || "", p.longest_us > 1e6 ? "bad" : ""], [p.waiting ? time(p.longest_us) : "", p.longest_us > 1e6 ? "bad" : ""],
    number(p.requests_per_s), p.requests_per_s ? time(p.query_mean_us) : "", p.requests_per_s ? time(p.wait_mean_us) : "",
    p.active, p.servers, p.limit, p.pinned || "", p.protocol, p.mode,
  ]), live.pools_total ? "no pool matches" : "no pool yet: the first login makes one");

  table(byId("statements"), STATEMENTS, live.statements.map((s) => [
    fine.format(s.in_progress), number(s.calls_per_s), time(s.times.p50_us), time(s.times.p95_us), time(s.times.p99_us), number(s.rows_per_s),
    [s.errors_per_s ? number(s.errors_per_s) : "", s.errors_per_s ? "warn" : ""], [s.database, "", s.database], [s.user, "", s.user],
    [s.statement, "code", s.statement],
  ]), token ? "none in the last seconds" : "for holders of the token: enter it below, at Console tables");

  say(byId("databases-count"), live.databases.length < live.databases_total
    ? `${live.databases.length} of ${number(live.databases_total)}` : number(live.databases_total));
  table(byId("databases"), [["database"], ["protocol", "rare"], ["state"], ["servers", "number rare"], ["waiting", "number"], ["last fault", "free"]],
    live.databases.map((d) => {
      const words = d.fault ? `${ago(d.fault.ago_s)} ago: ${d.fault.detail || d.fault.meaning}` : "";
      return [[d.database, "", d.database], d.protocol, [d.state, HEALTH[d.state] || ""], d.servers, d.waiting || "", [words, "", words]];
    }), "no database matches");
  table(byId("pins"), [["reason"], ["per second", "number"], ["since the start", "number"]],
    live.pins.map((p) => [p.reason, number(p.per_s), number(p.total)]), "no pins");
  table(byId("faults"), [["kind"], ["per second", "number"], ["since the start", "number"]],
    live.faults.map((f) => [[f.kind, "", f.meaning], [number(f.per_s), f.per_s ? "warn" : ""], number(f.total)]), "no errors");
}

function showWarnings(live) {
  const box = byId("warnings");
  const lines = live.withheld ? [] : live.warnings;
  if (box.dataset.lines === JSON.stringify(lines)) return;
  box.dataset.lines = JSON.stringify(lines);
  box.hidden = !lines.length;
  box.replaceChildren(...lines.map((line) => make("p", {}, line)));
}

function show(live) {
  const last = points[points.length - 1];
  if (last && live.at_ms < last.at_ms) points = [];
  if (!last || live.at_ms !== last.at_ms) points.push(live);
  // Tables are for now only.
  if (last) last.pools = last.databases = [];
  while (points.length && live.at_ms - points[0].at_ms > KEEP_MS) points.shift();
  say(byId("state"), live.state, `pill ${{ready: "good", paused: "warn", stopping: "bad"}[live.state] || ""}`);
  say(byId("about"), `${live.version}, up ${ago(live.uptime_s)}`);
  showTiles(live);
  showWarnings(live);
  showTables(live);
  for (const chart of charts) chart.show();
  document.documentElement.dataset.looks = points.length;
}

// --- Asking ------------------------------------------------------------------------------------------------------

async function ask(path) {
  const headers = token ? {Authorization: `Bearer ${token}`} : {};
  const answer = await fetch(path, {headers, cache: "no-store", signal: AbortSignal.timeout(20_000)});
  const body = await answer.json().catch(() => ({error: `status ${answer.status}`}));
  if (!answer.ok) throw Object.assign(new Error(body.error || `status ${answer.status}`), {status: answer.status});
  return body;
}

let failing = null;
async function poll() {
  const began = performance.now();
  const wanted = new URLSearchParams({top: "50", sort: byId("sort").value, match: byId("filter").value});
  try {
    show(await ask(`api/live?${wanted}`));
    failing = null;
  } catch (error) {
    if (error.status === 401) {
      token = "";
      say(byId("table-note"), error.message, "bad");
    } else {
      failing ??= Date.now();
      say(byId("state"), `no answer for ${ago(Math.round((Date.now() - failing) / 1000))}`, "pill bad");
    }
  }
  setTimeout(poll, Math.max(50, EVERY_MS - (performance.now() - began)));
}

async function load() {
  token = byId("token").value.trim();
  const name = byId("table-name").value, note = byId("table-note");
  say(note, "asking…", "quiet");
  try {
    const {count, rows} = await ask(`api/${encodeURIComponent(name)}?limit=${TABLE_ROWS}`);
    const columns = rows.length ? Object.keys(rows[0]) : [];
    const kind = (key) => rows.every((row) => row[key] === null || typeof row[key] === "number") ? "number" : "";
    table(byId("table"), columns.map((key) => [key, kind(key)]),
      rows.map((row) => columns.map((key) => row[key] === null ? "" : [String(row[key]), "", String(row[key])])), "no rows");
    say(byId("table-count"), rows.length < count ? `${rows.length} of ${number(count)} rows` : `${number(count)} rows`);
    say(note, count ? "" : `SHOW ${name.toUpperCase()} has no rows`, "quiet");
  } catch (error) {
    byId("table").replaceChildren();
    delete byId("table").dataset.shape;
    say(byId("table-count"), "");
    say(note, error.message, "bad");
  }
}

async function begin() {
  byId("charts").append(...charts.map((chart) => chart.box));
  byId("load").addEventListener("click", load);
  byId("token").addEventListener("keydown", (event) => {
    if (event.key === "Enter") load();
  });
  poll();
  const {tables} = await ask("api").catch(() => ({tables: []}));
  const first = ["clients", "servers", "pins", "queue"];
  const names = tables.map((path) => path.replace("/api/", ""));
  const sorted = [...first.filter((n) => names.includes(n)), ...names.filter((n) => !first.includes(n)).sort()];
  byId("table-name").append(...sorted.map((name) => make("option", {value: name}, name)));
}

begin();
