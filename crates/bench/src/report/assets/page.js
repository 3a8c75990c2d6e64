// Draws the plots of a report. The data stands in the page as JSON; nothing is fetched.
(() => {
  "use strict";
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const root = document.documentElement;
  const drawn = [];
  const LOGARITHMIC = { log: 10, nines: 10, doubling: 2 };

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const seriesColour = (n) => colour(`--c${n % 8}`);
  const faint = (hex, alpha) => hex + Math.round(alpha * 255).toString(16).padStart(2, "0");

  const shortest = (v) => String(+v.toPrecision(3));
  // The labels of one axis have one unit, that of the largest, unless it has powers of ten.
  function short(splits, even) {
    const unit = (m) => (m >= 1e6 ? [1e6, "M"] : m >= 1e4 ? [1e3, "k"] : [1, ""]);
    const most = Math.max(...splits.map((v) => Math.abs(v ?? 0)));
    return splits.map((v) => {
      if (v == null) return "";
      const [by, name] = unit(even ? most : Math.abs(v));
      return v === 0 ? "0" : shortest(v / by) + name;
    });
  }
  function exact(v) {
    if (v == null) return "–";
    return Math.abs(v) >= 100 ? Math.round(v).toLocaleString("en-US") : String(+v.toPrecision(4));
  }
  // 1 / (1 - p/100), back to the percentile as people write it.
  const nines = (v) => (v == null ? "" : `p${+(100 * (1 - 1 / v)).toFixed(4)}`);

  // One series of y values as uPlot wants it: a logarithmic axis has no place for zero.
  const prepared = (values, log) => values.map((v) => (v == null || (log && v <= 0) ? null : v));

  function errorBars(spec) {
    return (u) => {
      const ctx = u.ctx, wide = 4 * devicePixelRatio;
      ctx.save();
      ctx.beginPath();
      ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
      ctx.clip();
      spec.series.forEach((s, n) => {
        if (!s.error || !u.series[n + 1].show) return;
        const scale = s.right ? "right" : "y", log = u.scales[scale].distr === 3;
        ctx.strokeStyle = seriesColour(s.colour);
        ctx.lineWidth = 1.5 * devicePixelRatio;
        s.values.forEach((v, i) => {
          const e = s.error[i];
          if (v == null || !e || (log && v - e <= 0)) return;
          const x = u.valToPos(spec.xs[i], "x", true);
          const low = u.valToPos(v - e, scale, true), high = u.valToPos(v + e, scale, true);
          ctx.beginPath();
          ctx.moveTo(x, low); ctx.lineTo(x, high);
          ctx.moveTo(x - wide, low); ctx.lineTo(x + wide, low);
          ctx.moveTo(x - wide, high); ctx.lineTo(x + wide, high);
          ctx.stroke();
        });
      });
      ctx.restore();
    };
  }

  function marks(spec) {
    return (u) => {
      const ctx = u.ctx, r = devicePixelRatio;
      ctx.save();
      ctx.font = `${12 * r}px system-ui, sans-serif`;
      ctx.strokeStyle = ctx.fillStyle = colour("--text");
      ctx.lineWidth = r;
      ctx.setLineDash([5 * r, 4 * r]);
      spec.marks.forEach((mark, n) => {
        if (mark.x < u.scales.x.min || mark.x > u.scales.x.max) return;
        const x = Math.round(u.valToPos(mark.x, "x", true));
        ctx.beginPath();
        ctx.moveTo(x, u.bbox.top);
        ctx.lineTo(x, u.bbox.top + u.bbox.height);
        ctx.stroke();
        // On the side where there is room, each a line lower than the last.
        const right = x + ctx.measureText(mark.label).width + 10 * r < u.bbox.left + u.bbox.width;
        ctx.textAlign = right ? "left" : "right";
        const place = [mark.label, x + (right ? 6 : -6) * r, u.bbox.top + (14 + 15 * n) * r];
        // A rim, so that it can be read over a line.
        ctx.save();
        ctx.setLineDash([]);
        ctx.lineWidth = 4 * r;
        ctx.lineJoin = "round";
        ctx.strokeStyle = colour("--panel");
        ctx.strokeText(...place);
        ctx.restore();
        ctx.fillText(...place);
      });
      ctx.restore();
    };
  }

  const WHOLE = Array.from({ length: 30 }, (_, n) => [1, 2, 5][n % 3] * 10 ** Math.floor(n / 3));

  function axis(spec, scale, side) {
    const logarithmic = spec.scale in LOGARITHMIC;
    const made = {
      scale, side, label: spec.label, stroke: colour("--quiet"), labelSize: 22, size: side % 2 ? 62 : 44,
      grid: { stroke: colour("--line"), width: 1, show: side !== 1 }, ticks: { stroke: colour("--line"), width: 1 },
      values: (_, splits) => (spec.scale === "nines" ? splits.map(nines) : short(splits, !logarithmic)),
    };
    if (!logarithmic && side % 2 === 0) made.space = 60;
    return made;
  }

  const scaleOf = (spec) =>
    spec.scale in LOGARITHMIC ? { time: false, distr: 3, log: LOGARITHMIC[spec.scale] } : { time: false };

  // An even axis of amounts begins at zero; a constant one must still have a height.
  function fromZero(_, low, high) {
    if (low == null || high == null) return [0, 1];
    return low < 0 ? [low * 1.05, Math.max(0, high) * 1.05] : [0, high > 0 ? high * 1.05 : 1];
  }

  function options(spec, width) {
    const yScale = (a) => (a.scale in LOGARITHMIC ? scaleOf(a) : { range: fromZero });
    const scales = { x: scaleOf(spec.x_axis), y: yScale(spec.y_axis) };
    const axes = [axis(spec.x_axis, "x", 2), axis(spec.y_axis, "y", 3)];
    // There is no second 2.5, and no way 1.4.
    if (!(spec.x_axis.scale in LOGARITHMIC) && spec.xs.every(Number.isInteger)) axes[0].incrs = WHOLE;
    if (spec.right_axis) {
      scales.right = yScale(spec.right_axis);
      axes.push(axis(spec.right_axis, "right", 1));
    }
    const series = [{ label: spec.x_axis.label, value: (_, v) => (spec.x_axis.scale === "nines" ? nines(v) : exact(v)) }];
    for (const s of spec.series) {
      const stroke = seriesColour(s.colour), few = spec.xs.length <= 40;
      const one = { label: s.name, scale: s.right ? "right" : "y", stroke, width: 2, value: (_, v) => exact(v), points: { show: few, size: 5 } };
      if (s.draw === "points") Object.assign(one, { width: 1.5, points: { show: true, size: 8, fill: stroke }, spanGaps: true });
      if (s.draw === "fitted") Object.assign(one, { width: 1.5, dash: [8, 5], points: { show: false }, spanGaps: true });
      if (s.draw === "bars") Object.assign(one, { fill: faint(stroke, 0.35), paths: uPlot.paths.bars({ size: [0.8, 40] }), points: { show: false } });
      if (s.right && s.draw === "line") one.dash = [3, 3];
      series.push(one);
    }
    const hooks = { draw: [errorBars(spec), marks(spec)] };
    const cursor = { drag: { x: true, y: true, uni: 24 } };
    if (spec.group) {
      cursor.sync = { key: spec.group, setSeries: false };
      hooks.setScale = [(u, key) => key === "x" && follow(u, spec.group)];
    }
    // Room for half a label at the end of the x axis.
    const padding = [12, spec.right_axis ? 0 : 36, 0, 0];
    return { width, height: 300, padding, scales, axes, series, cursor, hooks, legend: { live: true } };
  }

  // The zoom of one plot is the zoom of its group.
  let following = false;
  function follow(from, group) {
    if (following) return;
    following = true;
    const { min, max } = from.scales.x;
    for (const other of drawn) {
      if (other.plot && other.plot !== from && other.spec.group === group) other.plot.setScale("x", { min, max });
    }
    following = false;
  }

  function draw(entry) {
    const { spec, place } = entry;
    entry.plot?.destroy();
    const logY = spec.y_axis.scale in LOGARITHMIC;
    const logRight = spec.right_axis && spec.right_axis.scale in LOGARITHMIC;
    const data = [spec.xs, ...spec.series.map((s) => prepared(s.values, s.right ? logRight : logY))];
    entry.plot = new uPlot(options(spec, place.clientWidth), data, place);
  }

  function drawAll() {
    drawn.forEach(draw);
    // Whoever opens the page by a program waits for this.
    root.dataset.drawn = String(drawn.length);
  }

  plots.forEach((spec, n) => {
    const figure = document.getElementById(`plot-${n}`);
    const entry = { spec, place: figure.querySelector(".place"), plot: null };
    const toggle = figure.querySelector("[data-log]");
    const before = spec.y_axis.scale;
    toggle?.addEventListener("click", () => {
      spec.y_axis.scale = spec.y_axis.scale === "log" ? "linear" : "log";
      toggle.textContent = spec.y_axis.scale === "log" ? "even scale" : "log scale";
      draw(entry);
    });
    if (toggle) toggle.textContent = before === "log" ? "even scale" : "log scale";
    drawn.push(entry);
  });
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    drawAll();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    for (const e of drawn) e.plot.setSize({ width: e.place.clientWidth, height: 300 });
  });
  drawAll();
})();
