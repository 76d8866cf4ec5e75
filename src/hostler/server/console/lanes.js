// A node's life in lanes over one axis of time; the same as a table below, for who reads or listens.
import { ask } from "./api.js";
import { onRecord, throttled } from "./state.js";
import { momentIn, momentOf } from "./moments.js";
import { route, setQuery } from "./router.js";
import { quoted } from "./pages.js";
import { Series } from "./series.js";
import { Table } from "./table.js";
import { LEFT, RIGHT, WIDTH, iso, label, ticks } from "./time_axis.js";
import { html, useEffect, useMemo, useState } from "./ui.js";
import { SEVERITIES, moment, plain, span } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

/** @type {Record<string, number>} */
const SPANS = { "1h": 3600, "24h": 86400, "7d": 604800, "30d": 2592000, all: Infinity };
const ROW = 15;
const DRAWN_MAX = 1500;

/** @param {{ id: string, now: Row }} props */
export function Lanes({ id, now }) {
  const [found, show] = useState(/** @type {Row} */ (null));
  const before = beginning() && `?before=${beginning()}`;
  useEffect(() => {
    let left = false;
    const read = async () => {
      const answer = await ask(`/nodes/${encodeURIComponent(id)}/lanes${before}`).catch(() => null);
      if (!left && answer) show(answer);
    };
    read();
    const later = throttled(read);
    const end = onRecord((record) => !left && !before && record?.subjects.includes(id) && later(1500));
    return () => {
      left = true;
      end();
    };
  }, [id, before]);
  if (!found?.since || !now) return before ? html`<p><button onClick=${() => setQuery({ before: "" })}>The timeline up to now</button></p>` : null;
  return html`<${Drawing} found=${found} now=${Date.parse(found.until ?? now)} />`;
}

// The record before which the part that is shown ends, "" for the latest part.
function beginning() {
  const { before = "" } = route.value.query;
  return /^[1-9][0-9]*$/.test(before) ? before : "";
}

/** @param {{ found: Row, now: Row }} props */
function Drawing({ found, now }) {
  const before = beginning();
  const wanted = route.value.query.span in SPANS ? route.value.query.span : "all";
  const end = route.value.query.at && !Number.isNaN(Date.parse(route.value.query.at)) ? Date.parse(route.value.query.at) : now;
  const first = Math.max(Date.parse(found.since), end - SPANS[wanted] * 1000);
  const shown = found.intervals.filter((/** @type {Row} */ one) => to(one, now) >= first && Date.parse(one.since) <= end).slice(-DRAWN_MAX);
  const acts = useMemo(() => found.intervals.filter((/** @type {Row} */ one) => one.lane === "operation"), [found]);
  const rows = stacked(found.lanes, shown, now);
  const x = (/** @type {Row} */ time) => LEFT + ((Math.min(Math.max(time, first), end) - first) / Math.max(end - first, 1)) * (WIDTH - LEFT - RIGHT);
  const height = rows.length * ROW + 22;
  const marked = momentIn(route.value.query.moment);
  /** @param {Row} event */
  const choose = (event) => {
    const room = event.currentTarget.getBoundingClientRect();
    const along = (((event.clientX - room.left) / room.width) * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT);
    if (along >= 0 && along <= 1) setQuery({ moment: momentOf(iso(first + along * (end - first))) });
  };
  return html`
    <section class="lanes" aria-label="Timeline">
      <h2>Timeline ${found.until && html`<small>up to ${moment(found.until)}</small>`}</h2>
      ${(found.partial || found.until) && html`<div class="buttons" role="group" aria-label="Part of the timeline">
        ${found.partial && html`<button onClick=${() => setQuery({ before: String(found.first) })}>Before ${moment(found.since)}</button>`}
        ${found.until && html`<button onClick=${() => setQuery({ before: "" })}>Up to now</button>`}</div>`}
      <div class="buttons" role="group" aria-label="Span of the timeline">
        ${Object.keys(SPANS).map((name) => html`<button aria-pressed=${name === wanted} onClick=${() => setQuery({ span: name === "all" ? "" : name })}>${name}</button>`)}
      </div>
      <svg onClick=${choose} viewBox=${`0 0 ${WIDTH} ${height}`} role="img" aria-label=${`${shown.length} spans from ${moment(iso(first))} to ${moment(iso(end))}; the table below lists them`}>
        ${ticks(first, end).map((time) => html`<g class="tick"><line x1=${x(time)} x2=${x(time)} y1="0" y2=${height - 16} /><text x=${x(time)} y=${height - 4}>${label(time, end - first)}</text></g>`)}
        ${marked > first - 1000 && marked <= end && html`<line class="moment" x1=${x(marked)} x2=${x(marked)} y1="0" y2=${height - 16}><title>${moment(iso(marked))}</title></line>`}
        ${rows.map((row, at) => html`
          ${row.title && html`<text class="lane" x="0" y=${at * ROW + 11}>${row.title}</text>`}
          ${row.spans.map((one) => html`<${Span} one=${one} x=${x} y=${at * ROW} now=${now} />`)}`)}
      </svg>
      <${Series} id=${found.node} first=${first} end=${end} live=${end === now} marks=${acts} />
      <details><summary>As a table</summary>
        <${Table} name="timeline" columns=${columns(now)} found=${{ items: [...found.intervals].reverse(), problem: "" }} sorting=${false}
          id=${(/** @type {Row} */ one) => `${one.seq} ${one.lane} ${one.what} ${one.on} ${one.since}`} cli=${`hostler node timeline ${quoted(found.node)}${before && ` --before ${before}`}`} />
      </details>
    </section>
  `;
}

/** @param {number} now @returns {import("./types.js").Column[]} */
const columns = (now) => [
  { key: "lane", title: "lane", of: (row) => row.lane },
  { key: "what", title: "what", of: (row) => `${plain(row.what)} ${row.on}`.trim() },
  { key: "state", title: "state", of: (row) => plain(row.state) },
  { key: "since", title: "since", of: (row) => row.since, show: (row) => moment(row.since) },
  { key: "until", title: "until", of: (row) => row.until ?? "", show: (row) => (row.until ? moment(row.until) : "lasts") },
  { key: "lasted", title: "for", of: (row) => lasted(row, now), number: true },
  { key: "text", title: "why", of: (row) => row.text },
];

/** @param {{ one: Row, x: Row, y: Row, now: Row }} props */
function Span({ one, x, y, now }) {
  const left = x(Date.parse(one.since));
  const width = Math.max(x(to(one, now)) - left, 3);
  const title = [`${plain(one.what)} ${one.on}`.trim(), plain(one.state), `${moment(one.since)} – ${one.until ? moment(one.until) : "lasts"}`, lasted(one, now), one.text].filter(Boolean).join("\n");
  return html`<g class=${tone(one)}><title>${title}</title><rect x=${left} y=${y + 2} width=${width} height=${ROW - 4} rx="2" />
    ${width > 60 && html`<text x=${left + 4} y=${y + 11}>${plain(one.what).slice(0, Math.floor(width / 6.5))}</text>`}</g>`;
}

// Each lane in as many rows as spans of it lie side by side.
/** @param {string[]} lanes @param {Row} shown @param {Row} now */
function stacked(lanes, shown, now) {
  return lanes.flatMap((lane) => {
    /** @type {{ title: string, spans: Row[], until: number }[]} */
    const rows = [];
    for (const one of shown.filter((/** @type {Row} */ span) => span.lane === lane)) {
      const free = rows.find((row) => row.until <= Date.parse(one.since)) ?? (rows.length < 8 ? rows[rows.push({ title: rows.length ? "" : lane, spans: [], until: 0 }) - 1] : rows[7]);
      free.spans.push(one);
      free.until = Math.max(free.until, to(one, now));
    }
    return rows;
  });
}

/** @param {Row} one */
function tone(one) {
  if (one.lane === "phase") return `l-phase p-${one.what.replace("_", "-")}`;
  if (one.lane === "condition") return `l-bad s-${SEVERITIES.includes(one.state) ? one.state : "info"}`;
  return `l-${one.lane}${["failed", "refused", "unknown", "inconclusive"].includes(one.state) ? " l-failed" : ""}`;
}

/** @param {Row} one @param {Row} now */
function to(one, now) {
  return one.until ? Date.parse(one.until) : now;
}

/** @param {Row} one @param {Row} now */
function lasted(one, now) {
  return one.until === one.since ? "" : span((to(one, now) - Date.parse(one.since)) / 1000);
}
