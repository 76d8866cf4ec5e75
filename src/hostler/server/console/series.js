// What was read of a node beside its timeline, on the same axis: heat, errors, fans, checks; and where nobody looked.
import { useAnswer } from "./lists.js";
import { repaint } from "./repaint.js";
import { Table } from "./table.js";
import { LEFT, RIGHT, WIDTH, iso, label, ticks } from "./time_axis.js";
import { html, useEffect, useMemo, useRef, useState } from "./ui.js";
import uPlot from "./vendor/uplot.js";
import { count, moment, plain } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

/** @type {Record<string, string>} */
const PANELS = { heat: "Heat", errors: "Corrected errors and link errors", fans: "Fans", checks: "Check scores" };
const HEIGHT = 130;
const MARKS_MAX = 200;
const COLOURS = 8;
const QUANTUM = 300000;

// `marks`: the operations that are drawn in the timeline; `live`: it ends now.
/** @typedef {{ name: string, part: string, metric: string, after: number[], value: number[] }} Line */
/** @typedef {{ panel: string, title: string, unit: string, lines: Line[] }} PanelShown */
/** @typedef {{ first: number, end: number }} Axis */

/** @param {{ id: string, first: number, end: number, live: boolean, marks: import("./types.js").LaneSpan[] }} props */
export function Series({ id, first, end, live, marks }) {
  const since = Math.floor(first / QUANTUM) * QUANTUM;
  const asked = new URLSearchParams({ since: iso(since), ...(live ? {} : { until: iso(end) }) });
  /** @param {import("./types.js").JournalRecord | undefined} record */
  const heard = (record) => record?.name === "check_recorded" && record.subjects.includes(id);
  const { answer, problem } = useAnswer(`/nodes/${encodeURIComponent(id)}/series?${asked}`, heard);
  const shown = useMemo(() => panels(answer?.series ?? []), [answer]);
  if (problem) return html`<p class="quiet" role="status">Readings: ${problem}</p>`;
  if (!answer) return null;
  const within = `between ${moment(iso(first))} and ${moment(iso(end))}`;
  const missing = Object.keys(PANELS).filter((panel) => !shown.some((one) => one.panel === panel));
  return html`
    <section class="series" aria-label="Readings">
      ${shown.map((one) => html`<${Panel} key=${one.title} panel=${one} since=${Date.parse(answer.since)} step=${answer.step_s} first=${first} end=${end} marks=${marks} />`)}
      ${answer.kept
        ? missing.length > 0 && html`<p class="quiet">No readings ${within}, nobody looked: ${missing.map((panel) => PANELS[panel].toLowerCase()).join("; ")}.</p>`
        : html`<p class="quiet">This controller keeps no readings: start it with <code>--archive FOLDER</code>.</p>`}
      ${answer.left_out > 0 && html`<p class="quiet">${count(answer.left_out)} more series are not drawn: narrow the span.</p>`}
      ${shown.length > 0 && html`<details><summary>Readings as a table</summary>
        <${Table} name="readings" columns=${COLUMNS} found=${{ items: answer.series, problem: "" }} id=${named} sorting=${false}
          cli=${`hostler trend series ${id} --since ${iso(since)}${live ? "" : ` --until ${iso(end)}`}`} /></details>`}
    </section>
  `;
}

/** @param {Row} one */
const named = (one) => [one.metric, one.part].filter(Boolean).join(" ");
/** @param {string} key @param {string} title @param {import("./types.js").Column["of"]} of */
const number = (key, title, of) => ({ key, title, number: true, of });
/** @type {import("./types.js").Column[]} */
const COLUMNS = [
  { key: "metric", title: "metric", of: (row) => row.metric },
  { key: "part", title: "part", of: (row) => row.part },
  { key: "unit", title: "unit", of: (row) => row.unit },
  number("steps", "steps", (row) => row.value.length),
  number("first", "first", (row) => row.value[0]),
  number("last", "last", (row) => row.value.at(-1)),
  number("low", "lowest", (row) => Math.min(...row.low)),
  number("high", "highest", (row) => Math.max(...row.high)),
];

// One drawing for each unit of a panel. Checks have units of their own: each is drawn against its own median.
/** @param {Row[]} series */
function panels(series) {
  /** @type {Map<string, PanelShown>} */
  const found = new Map();
  for (const one of series) {
    const relative = one.panel === "checks";
    const unit = relative ? "% of own median" : one.unit;
    const key = `${one.panel} ${unit}`;
    const title = `${PANELS[one.panel]}, ${unit}`;
    const shown = found.get(key) ?? { panel: String(one.panel), title, unit, lines: /** @type {Line[]} */ ([]) };
    found.set(key, shown);
    const scale = relative ? 100 / (median(one.value) || 1) : 1;
    shown.lines.push({ name: named(one), part: one.part, metric: one.metric, after: one.after_s, value: one.value.map((/** @type {number} */ each) => each * scale) });
  }
  return [...found.values()];
}

/** @param {number[]} values */
function median(values) {
  const ordered = [...values].sort((a, b) => a - b);
  return ordered[Math.floor((ordered.length - 1) / 2)];
}

/** @param {{ panel: PanelShown, since: number, step: number, first: number, end: number, marks: import("./types.js").LaneSpan[] }} props */
function Panel({ panel, since, step, first, end, marks }) {
  const room = useRef(/** @type {Row} */ (null));
  const [read, tell] = useState("");
  useEffect(() => {
    /** @type {uPlot | null} */
    let plot = null;
    const paint = () => {
      plot?.destroy();
      const width = room.current.clientWidth;
      if (width > 0) plot = new uPlot(options(panel, width, { first, end }, marks, tell), table(panel.lines, since / 1000, step), room.current);
    };
    const over = repaint(room.current, paint);
    return () => {
      over();
      plot?.destroy();
    };
  }, [panel.lines, since, step, first, end, marks]);
  const all = panel.lines.flatMap((line) => line.value);
  return html`
    <figure>
      <figcaption>${panel.title} <small>${read || panel.lines.map((line) => line.name).slice(0, 4).join(", ")}${!read && panel.lines.length > 4 ? ` and ${panel.lines.length - 4} more` : ""}</small></figcaption>
      <div class="plotroom"><div class="plot" ref=${room} role="img" aria-label=${`${panel.title}: ${panel.lines.length} series, ${short(Math.min(...all))} to ${short(Math.max(...all))}; the table below lists them`}></div></div>
    </figure>
  `;
}

// Columns for uPlot: a null where a line is broken because nobody looked for much longer than usual.
/** @param {Line[]} lines @param {number} since @param {number} step @returns {uPlot.AlignedData} */
function table(lines, since, step) {
  return uPlot.join(lines.map(({ after, value }) => {
    const gaps = after.slice(1).map((at, place) => at - after[place]);
    const longest = Math.max(2.5 * (median(gaps) ?? 0), 1.5 * step);
    /** @type {[number[], (number | null)[]]} */
    const [xs, ys] = [[], []];
    after.forEach((at, place) => {
      if (place > 0 && gaps[place - 1] > longest) {
        xs.push(since + (at + after[place - 1]) / 2);
        ys.push(null);
      }
      xs.push(since + at);
      ys.push(value[place]);
    });
    return [xs, ys];
  }));
}

/** @param {PanelShown} panel @param {number} width @param {Axis} axis @param {import("./types.js").LaneSpan[]} marks @param {(said: string) => void} tell @returns {uPlot.Options} */
function options(panel, width, { first, end }, marks, tell) {
  const style = getComputedStyle(document.documentElement);
  /** @param {string} name */
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const [line, muted] = [colour("line"), colour("muted")];
  const parts = [...new Set(panel.lines.map((one) => one.part))];
  const metrics = [...new Set(panel.lines.map((one) => one.metric))];
  const font = "10px system-ui, sans-serif";
  return {
    width,
    height: HEIGHT,
    padding: [6, (RIGHT / WIDTH) * width, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { time: false, range: [first / 1000, end / 1000] }, ...(panel.panel === "errors" ? { y: { range: (_, _low, high) => [0, high || 1] } } : {}) },
    axes: [
      { stroke: muted, font, size: 20, grid: { stroke: line, width: 1 }, ticks: { show: false }, splits: () => ticks(first, end).map((at) => at / 1000), values: (_, at) => at.map((one) => label(one * 1000, end - first)) },
      { stroke: muted, font, size: (LEFT / WIDTH) * width, gap: 2, grid: { stroke: line, width: 1 }, ticks: { show: false }, values: (_plot, at, _axis, _space, step) => at.map((one) => (Math.abs(one) >= 1000 ? short(one) : one.toFixed(Math.max(0, Math.min(4, Math.ceil(-Math.log10(step))))))) },
    ],
    series: [{}, ...panel.lines.map((one) => ({
      label: one.name,
      stroke: colour(`c${parts.indexOf(one.part) % COLOURS}`),
      width: 1.5,
      dash: metrics.indexOf(one.metric) > 0 ? [4, 2 * metrics.indexOf(one.metric)] : undefined,
      points: { show: true, size: 3 },
    }))],
    hooks: {
      drawClear: [(plot) => marked(plot, marks, { acted: colour("accent"), failed: colour("s-critical") })],
      setCursor: [(plot) => tell(readout(plot))],
    },
  };
}

// A stroke where an operation began, as in the timeline above.
/** @param {uPlot} plot @param {import("./types.js").LaneSpan[]} marks @param {{ acted: string, failed: string }} colours */
function marked(plot, marks, colours) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.globalAlpha = 0.55;
  for (const one of marks.slice(-MARKS_MAX)) {
    const x = plot.valToPos(Date.parse(one.since) / 1000, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.fillStyle = ["failed", "refused", "unknown"].includes(one.state) ? colours.failed : colours.acted;
    ctx.fillRect(x, bbox.top, devicePixelRatio, bbox.height);
  }
  ctx.restore();
}

// What is read under the pointer, the highest first.
/** @param {uPlot} plot */
function readout(plot) {
  const at = plot.cursor.idx;
  if (at === null || at === undefined) return "";
  const here = plot.series.slice(1).flatMap((one, place) => {
    const value = plot.data[place + 1]?.[at];
    return typeof value === "number" ? [{ name: String(one.label), value }] : [];
  });
  const said = here.sort((a, b) => b.value - a.value).slice(0, 6).map(({ name, value }) => `${plain(name)} ${short(value)}`);
  return said.length ? `${moment(iso(plot.data[0][at] * 1000))}: ${said.join(", ")}` : "";
}

/** @param {number | null | undefined} value */
function short(value) {
  if (value === null || value === undefined) return "";
  return Math.abs(value) >= 1000 ? count(Math.round(value)) : String(Number(value.toPrecision(3)));
}
