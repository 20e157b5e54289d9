// The charts of a page: one JSON for all, asked for again as long as the page is looked at; which there are, its figures say.
"use strict";
(() => {
  const charts = document.querySelector(".charts");
  if (!charts) return;
  const every = 4 * Number(document.body.dataset.refresh) * 1000;
  const HEIGHT = 190;
  const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  const BINARY = Array.from({ length: 54 }, (_, power) => 2 ** power);
  const utc = (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC");
  let hours = Number(charts.dataset.hours);
  let shown = null;
  let plots = [];

  function size(bytes) {
    if (bytes == null) return "–";
    const power = bytes >= 1 ? Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1) : 0;
    const value = bytes / 1024 ** power;
    return `${power && value < 100 ? Number(value.toFixed(1)) : Math.round(value)} ${UNITS[power]}`;
  }

  const number = (value) => value == null ? "–" : value >= 1e6 ? `${Number((value / 1e6).toFixed(1))} M` : value >= 1e4 ? `${Number((value / 1e3).toFixed(1))} k` : `${Number(value.toFixed(value < 10 ? 2 : 0))}`;
  const seconds = (value) => value == null ? "–" : `${Number(value.toFixed(value < 10 ? 2 : 0))} s`;
  const span = (value) => value == null ? "–" : value < 120 ? `${Math.round(value)} s` : value < 7200 ? `${Math.round(value / 60)} min` : value < 172800 ? `${Number((value / 3600).toFixed(1))} h` : `${Number((value / 86400).toFixed(1))} d`;
  const sum = (values) => values.reduce((all, value) => all + (value || 0), 0);
  const each = (values, counts) => values.map((value, at) => counts[at] ? value / counts[at] : null);
  const say = (name, words) => { charts.querySelector(`[data-said="${name}"]`).textContent = words; };
  const colour = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(--${name})`;
    charts.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };

  // A line must not bridge a time without samples.
  function gaps(step) {
    return (plot, series, first, last, found) => {
      const [times] = plot.data;
      for (let at = first + 1; at <= last; at++) {
        if (times[at] - times[at - 1] > step) uPlot.addGap(found, plot.valToPos(times[at - 1], "x", true), plot.valToPos(times[at], "x", true));
      }
      return found;
    };
  }

  function limits(plot, lines) {
    const { ctx } = plot;
    const { left, top, width, height } = plot.bbox;
    ctx.save();
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    for (const [name, value] of lines) {
      const y = plot.valToPos(value, "y", true);
      if (y < top || y > top + height) continue;
      ctx.strokeStyle = ctx.fillStyle = colour(name);
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(left, y);
      ctx.lineTo(left + width, y);
      ctx.stroke();
      ctx.textAlign = "left";
      ctx.textBaseline = y - top > 18 * devicePixelRatio ? "bottom" : "top";
      ctx.fillText(`${name} ${size(value)}`, left + 6 * devicePixelRatio, y + (ctx.textBaseline === "bottom" ? -3 : 3) * devicePixelRatio);
    }
    ctx.restore();
  }

  function inWords({ label, values, told }, format) {
    const known = values.flatMap((value, at) => value == null ? [] : [at]);
    if (!known.length) return `${label}: nothing in this time`;
    const highest = known.reduce((best, at) => values[at] > values[best] ? at : best);
    const said = (at) => format(told ? told[at] : values[at]);
    return `${label}: newest ${said(known[known.length - 1])}, highest ${said(highest)}`;
  }

  function draw(name, times, series, format, options = {}) {
    const place = charts.querySelector(`[data-chart="${name}"] .plot`);
    place.replaceChildren();
    place.removeAttribute("role");
    place.removeAttribute("aria-label");
    if (!times.length) {
      const none = document.createElement("p");
      none.className = "none";
      none.textContent = options.none || "Nothing in this time.";
      return place.append(none);
    }
    place.setAttribute("role", "img"); // a canvas says nothing: its newest and highest values do
    place.setAttribute("aria-label", series.map((each) => inWords(each, format)).join("; "));
    const now = Date.now() / 1000;
    const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 } };
    const ceiling = options.ceiling || 0;
    plots.push(new uPlot({
      width: place.clientWidth,
      height: HEIGHT,
      tzDate: utc,
      padding: [10, 12, 0, 0],
      scales: { x: { range: () => [now - hours * 3600, now] }, y: { range: (_, low, high) => [0, Math.max((high || 0) * 1.1, ceiling * 1.2, options.least || 1)] } },
      series: [{ label: "UTC", value: "{YYYY}-{MM}-{DD} {HH}:{mm}" }, ...series.map((each) => ({
        label: each.label,
        stroke: colour(each.colour),
        width: 2,
        fill: each.bars ? colour(each.colour) : colour(`${each.colour}-area`),
        paths: each.bars ? uPlot.paths.bars({ size: [0.8, 8, 1] }) : undefined,
        points: { show: each.bars ? false : undefined, size: 4 },
        gaps: each.bars ? undefined : gaps(shown.step_seconds * 1.5 + 900),
        value: (_, value, __, at) => format(each.told && at != null ? each.told[at] : value),
      }))],
      axes: [{ ...axis, values: [[86400, "{MM}-{DD}"], [3600, "{HH}:{mm}", "\n{MM}-{DD}", null, "\n{MM}-{DD}"], [60, "{HH}:{mm}", null, null, null]] }, { ...axis, size: 76, incrs: options.incrs, values: (_, ticks) => ticks.map(format) }],
      cursor: { y: false, drag: { x: false, y: false } },
      hooks: { draw: [(plot) => limits(plot, options.lines || [])] },
    }, [times, ...series.map((each) => each.values)], place));
  }

  const drawings = {
    slot() {
      const box = charts.querySelector("[data-limits]");
      const lines = [["warn", shown.warn_bytes], ["critical", shown.critical_bytes]].filter(([, value]) => value != null);
      box.parentElement.hidden = lines.length === 0;
      draw("slot", shown.slot_time, [
        { label: "retained", colour: "retained", values: shown.retained_bytes },
        { label: "unread", colour: "unread", values: shown.unread_bytes },
      ], size, { lines, ceiling: box.checked ? Math.max(0, ...lines.map(([, value]) => value)) : 0, incrs: BINARY, least: 1024, none: "The slot was not checked in this time." });
    },
    captured: () => draw("captured", shown.capture_time, [{ label: "changes per second", colour: "unread", bars: true, values: shown.changes.map((each) => each / shown.step_seconds) }], number),
    windows: () => draw("windows", shown.capture_time, [{ label: "longest window", colour: "retained", bars: true, values: shown.window_seconds }], seconds),
    behind: () => draw("behind", shown.lake_time, [
      { label: "worst table", colour: "critical", values: shown.behind_worst_seconds },
      { label: "median table", colour: "unread", values: shown.behind_median_seconds },
    ], span, { none: "Slot health has not looked in this time." }),
    cut_changes() {
      const cuts = sum(shown.cuts);
      say("cut_changes", cuts ? `${number(sum(shown.cut_changes) / cuts)} on average of ${number(cuts)} cuts, UTC` : "UTC");
      draw("cut_changes", shown.lake_time, [{ label: "changes per cut", colour: "unread", bars: true, values: each(shown.cut_changes, shown.cuts) }], number, { none: "No cut was counted in this time." });
    },
    cut_cost() {
      const cuts = sum(shown.cuts), cpu = sum(shown.merge_cpu_seconds);
      say("cut_cost", cuts ? `${seconds(sum(shown.cut_seconds) / cuts)}${cpu ? ` and ${seconds(cpu / cuts)} of CPU` : ""} per cut on average, UTC` : "UTC");
      draw("cut_cost", shown.lake_time, [
        { label: "seconds per cut", colour: "unread", values: each(shown.cut_seconds, shown.cuts) },
        { label: "CPU of merges", colour: "retained", values: shown.merge_cpu_seconds },
        { label: "CPU of captures", colour: "warn", values: shown.capture_cpu_seconds },
      ], seconds, { none: "No cut was counted in this time." });
    },
    bytes: () => draw("bytes", shown.lake_time, [
      { label: "lake", colour: "unread", values: shown.lake_bytes },
      { label: "landing zone", colour: "retained", values: shown.landing_bytes },
    ], size, { incrs: BINARY, least: 1024, none: "Slot health has not looked in this time." }),
    // Bars that stand on each other: each series is drawn with all that are below it, and told without them.
    table_changes() {
      const updated = shown.updates.map((each, at) => each + shown.inserts[at]);
      const all = shown.deletes.map((each, at) => each + updated[at]);
      draw("table_changes", shown.time, [
        { label: "deletes", colour: "critical", bars: true, values: all, told: shown.deletes },
        { label: "updates", colour: "retained", bars: true, values: updated, told: shown.updates },
        { label: "inserts", colour: "unread", bars: true, values: shown.inserts },
      ], number, { none: "No cut moved this table in this time." });
    },
    table_rows: () => draw("table_rows", shown.time, [{ label: "rows", colour: "unread", values: shown.rows }], number),
    table_bytes: () => draw("table_bytes", shown.time, [{ label: "size", colour: "retained", values: shown.bytes }], size, { incrs: BINARY, least: 1024 }),
  };

  function drawAll() {
    if (!shown) return;
    for (const plot of plots) plot.destroy();
    plots = [];
    for (const figure of charts.querySelectorAll("[data-chart]")) drawings[figure.dataset.chart]();
  }

  async function load() {
    try {
      const answer = await fetch(`${charts.dataset.series}?hours=${hours}`, { credentials: "same-origin" });
      if (!answer.ok) return;
      shown = await answer.json();
      drawAll();
    } catch {
      // live.js says that Airflow does not answer
    }
  }

  charts.addEventListener("click", (event) => {
    const button = event.target.closest("[data-span]");
    if (!button) return;
    hours = Number(button.dataset.span);
    for (const each of charts.querySelectorAll("[data-span]")) each.setAttribute("aria-pressed", String(each === button));
    const here = new URL(location.href);
    here.searchParams.set("hours", String(hours));
    history.replaceState(null, "", here);
    load();
  });
  charts.addEventListener("change", drawAll);
  document.addEventListener("theme", drawAll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("resize", drawAll);
  async function stay() {
    if (!document.hidden) await load();
    setTimeout(stay, every);
  }
  stay();
})();
