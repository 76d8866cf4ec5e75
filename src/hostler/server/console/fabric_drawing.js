// A finding's cables as they lie now and as the design has them, side by side; the same as a table below.
import { html } from "./ui.js";

/** @typedef {import("./types.js").Row} Row */

const WIDTH = 520;
const ROW = 30;
const LEFT = 176;
const RIGHT = WIDTH - 176;

/** @param {{ drawing: Row }} props */
export function FindingDrawing({ drawing }) {
  const side = (/** @type {Row} */ left) => drawing.ports.filter((/** @type {Row} */ one) => one.left === left).map((/** @type {Row} */ one) => one.port);
  const rows = { left: side(true), right: side(false) };
  const places = new Map(drawing.ports.map((/** @type {Row} */ one) => [one.port, one.place]));
  if (!drawing.ports.length) return html`<p class="quiet">No cable takes part.</p>`;
  return html`
    <div class="drawings">
      <${Panel} title="As it lies" cables=${drawing.found} rows=${rows} places=${places} tone="lies"
        empty=${drawing.known ? "No cable lies there." : "How it lies is known after the next whole validation."} />
      <${Panel} title="As designed" cables=${drawing.designed} rows=${rows} places=${places} tone="designed" empty="The design has no cable there." />
    </div>
    ${drawing.more > 0 && html`<p class="quiet">${drawing.more} more cables take part and are not drawn.</p>`}
    <details><summary>As a table</summary>
      <table><thead><tr><th>port</th><th>where</th><th>leads to</th><th>is to lead to</th></tr></thead>
        <tbody>${drawing.ports.map((/** @type {Row} */ one) => html`<tr><td>${one.port}</td><td>${one.place}</td><td>${drawing.known ? far(drawing.found, one.port) || "no link" : "not known"}</td><td>${far(drawing.designed, one.port) || "nothing"}</td></tr>`)}</tbody></table>
    </details>
  `;
}

/** @param {{ title: string, cables: Row, rows: { left: string[], right: string[] }, places: Row, tone: Row, empty: Row }} props */
function Panel({ title, cables, rows, places, tone, empty }) {
  const height = Math.max(rows.left.length, rows.right.length) * ROW + 8;
  /** @type {Map<string, Row>} */
  const spot = new Map();
  rows.left.forEach((port, place) => spot.set(port, { x: LEFT, y: place * ROW + ROW / 2 }));
  rows.right.forEach((port, place) => spot.set(port, { x: RIGHT, y: place * ROW + ROW / 2 }));
  const said = cables.map((/** @type {Row} */ one) => `${one.a} to ${one.z}`).join("; ");
  return html`<figure class="drawing">
    <figcaption>${title}</figcaption>
    <svg viewBox=${`0 0 ${WIDTH} ${height}`} role="img" aria-label=${`${title}: ${said || empty}`}>
      ${cables.map((/** @type {Row} */ one) => html`<path class=${one.stays ? "stays" : tone} d=${way(spot.get(one.a), spot.get(one.z))}><title>${one.a} to ${one.z}</title></path>`)}
      ${[...spot].map(([port, at]) => html`<g><title>${places.get(port)}</title>
        <circle cx=${at.x} cy=${at.y} r="4" />
        <text x=${at.x === LEFT ? at.x - 10 : at.x + 10} y=${at.y + 4} text-anchor=${at.x === LEFT ? "end" : "start"}>${short(port)}</text></g>`)}
    </svg>
    ${cables.length === 0 && html`<p class="quiet">${empty}</p>`}
  </figure>`;
}

// A cable from side to side is a line; one whose ends are at the same side goes round in a bow.
/** @param {Row} from @param {Row} to */
function way(from, to) {
  if (from.x !== to.x) return `M${from.x} ${from.y} L${to.x} ${to.y}`;
  const out = from.x === LEFT ? from.x + 70 : from.x - 70;
  return `M${from.x} ${from.y} C${out} ${from.y} ${out} ${to.y} ${to.x} ${to.y}`;
}

/** @param {Row} port */
function short(port) {
  return port.length > 25 ? `…${port.slice(-24)}` : port;
}

/** @param {Row} cables @param {Row} port */
function far(cables, port) {
  return cables.filter((/** @type {Row} */ one) => one.a === port || one.z === port).map((/** @type {Row} */ one) => (one.a === port ? one.z : one.a)).join(", ");
}
