// Leaves by the ports of their hosts: a block for leaves of the same hosts, a row for a leaf, a cell for a port.
import { useAnswer } from "./lists.js";
import { quoted } from "./pages.js";
import { repaint } from "./repaint.js";
import { go, route, setQuery } from "./router.js";
import { Table } from "./table.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";
import { count, moment, plain } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

/** @type {Record<string, string>} */
const COLOURS = { as_designed: "--p-production", unrated: "--p-spare", degraded: "--s-warning", elsewhere: "--s-degraded", missing: "--s-critical" };
const TITLE = 15;
const GAP = 12;
const LARGEST = 14;
const LEAST = 4;
const HEIGHT = 820;

/** @param {{ name: string, heard: Row }} props */
export function FabricMatrix({ name, heard }) {
  const { answer, problem } = useAnswer(`/fabrics/${encodeURIComponent(name)}/matrix`, heard);
  const wanted = (route.value.query.q ?? "").toLowerCase();
  if (problem) return html`<p class="banner critical" role="alert">${problem}</p>`;
  if (!answer) return html`<p class="loading">Reading …</p>`;
  if (!answer.seen) return html`<p class="quiet">How the cables lie is known after the next whole validation.</p>`;
  const designed = Object.values(answer.counts).reduce((sum, one) => sum + one, 0);
  return html`
    <p>Design against found, ${moment(answer.seen)}: <b>${count(designed)}</b> cables designed, ${answer.conditions.filter((/** @type {Row} */ one) => answer.counts[one]).map((/** @type {Row} */ one) => html`<span class="key"><i class="swatch" style=${`background: var(${COLOURS[one]})`}></i> <b>${count(answer.counts[one])}</b> ${plain(one)} </span>`)}</p>
    <form class="filters" role="search" onSubmit=${(/** @type {Row} */ event) => event.preventDefault()}>
      <label>leaf or host<input value=${route.value.query.q ?? ""} onChange=${(/** @type {Row} */ event) => setQuery({ q: event.target.value.trim() })} /></label>
    </form>
    <${Cells} name=${name} found=${answer} wanted=${wanted} />
    <p class="quiet">A cell is a host's port at its leaf. A frame: no link. A dark mark: a fault in service. The last cell of a row: the leaf's cables to other switches.</p>
    <${Leaves} name=${name} found=${answer} wanted=${wanted} />
  `;
}

// The same for who reads or listens: a row for a leaf.
/** @param {{ name: string, found: Row, wanted: Row }} props */
function Leaves({ name, found, wanted }) {
  const of = (/** @type {Row} */ leaf, /** @type {Row} */ condition) => leaf.found.filter((/** @type {Row} */ code) => found.conditions[code] === condition).length;
  const rows = found.blocks.flatMap((/** @type {Row} */ block) => block.leaves.map((/** @type {Row} */ leaf) => ({ ...leaf, hosts: block.hosts })))
    .filter((/** @type {Row} */ leaf) => !wanted || leaf.leaf.toLowerCase().includes(wanted) || leaf.hosts.some((/** @type {Row} */ host) => host.toLowerCase().includes(wanted)));
  const number = (/** @type {Row} */ condition) => ({ key: condition, title: plain(condition), of: (/** @type {Row} */ leaf) => of(leaf, condition), number: true });
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "leaf", title: "leaf", of: (leaf) => leaf.leaf, show: (leaf) => html`<a href=${`/fabrics/${encodeURIComponent(name)}?${new URLSearchParams({ view: "links", device: leaf.leaf })}`}>${leaf.leaf}</a>` },
    { key: "hosts", title: "hosts", of: (leaf) => (leaf.hosts.length > 1 ? `${leaf.hosts[0]} to ${leaf.hosts.at(-1)}` : leaf.hosts[0]) },
    { key: "ports", title: "host ports", of: (leaf) => leaf.port.length, number: true },
    ...found.conditions.map(number),
    { key: "faults", title: "faults in service", of: (leaf) => leaf.grade.filter(Boolean).length, number: true },
    { key: "uplinks", title: "cables to switches", of: (leaf) => leaf.uplinks, number: true },
    { key: "wrong", title: "of them not as designed", of: (leaf) => leaf.uplinks_wrong, number: true },
  ];
  return html`<h2>By leaf</h2><${Table} name="leaves" columns=${columns} found=${{ items: rows }} id=${(/** @type {Row} */ leaf) => leaf.leaf} cli=${`hostler fabric links ${quoted(name)}`} />`;
}

/** @param {{ name: string, found: Row, wanted: Row }} props */
function Cells({ name, found, wanted }) {
  const canvas = useRef(/** @type {Row} */ (null));
  const frame = useRef(/** @type {Row} */ (null));
  const shape = useRef(/** @type {Row} */ ({ cells: [], rows: new Map() }));
  const [place, pick] = useState(-1);
  useEffect(() => {
    const paint = () => {
      const begun = performance.now();
      shape.current = layout(found, Math.floor(canvas.current.parentElement.clientWidth));
      draw(canvas.current, shape.current, found, wanted);
      canvas.current.dataset.cells = shape.current.cells.length;
      canvas.current.dataset.painted = (performance.now() - begun).toFixed(1);
    };
    return repaint(canvas.current, paint);
  }, [found, wanted]);
  useLayoutEffect(() => mark(frame.current, shape.current, place), [place]); // at once with the words below it
  const open = (/** @type {Row} */ cell) => cell && go(`/fabrics/${encodeURIComponent(name)}?${new URLSearchParams(cell.port ? { link: cell.port } : { view: "links", device: cell.leaf })}`);
  const keys = (/** @type {Row} */ event) => {
    if (event.key === "Enter") return open(shape.current.cells[place]);
    const next = step(shape.current, place, event.key);
    if (next === null) return undefined;
    event.preventDefault();
    pick(next);
    return undefined;
  };
  const at = (/** @type {Row} */ event) => hit(shape.current, event.offsetX, event.offsetY);
  const ports = found.blocks.reduce((/** @type {number} */ sum, /** @type {Row} */ block) => sum + block.leaves.reduce((/** @type {Row} */ all, /** @type {Row} */ leaf) => all + leaf.port.length, 0), 0);
  return html`
    <div class="cells">
      <canvas ref=${canvas} tabindex="0" role="application"
        aria-label=${`${name}: ${ports} host ports by leaf. Arrow keys choose a port, Enter opens its link. The table below says the same by leaf.`}
        onMouseMove=${(/** @type {Row} */ event) => pick(at(event))}
        onClick=${(/** @type {Row} */ event) => open(shape.current.cells[at(event)])}
        onFocus=${() => { if (place < 0) pick(0); }}
        onKeyDown=${keys}></canvas>
      <i class="pick" ref=${frame}></i>
    </div>
    <p class="readout" aria-live="polite">${said(shape.current.cells[place], found)}</p>
  `;
}

/** @param {Row} cell @param {Row} found */
function said(cell, found) {
  if (!cell) return "Point at a port, or use the arrow keys; Enter opens its link.";
  if (!cell.port) return `${cell.leaf} · ${cell.uplinks} cables to other switches · ${cell.wrong ? `${cell.wrong} not as designed` : "all as designed"}`;
  const notes = [cell.port, `at ${cell.leaf}`, plain(found.conditions[cell.found]), cell.grade ? `fault in service: ${found.grades[cell.grade]}` : ""];
  return notes.filter(Boolean).join(" · ");
}

// Blocks side by side with their names above them, cells as large as the whole stays readable at.
/** @param {Row} found @param {Row} width */
function layout(found, width) {
  for (let size = LARGEST; size > LEAST; size -= 1) {
    const tried = shelves(found, width, size);
    if (tried.height <= HEIGHT) return tried;
  }
  return shelves(found, width, LEAST);
}

/** @param {Row} found @param {Row} width @param {Row} pitch */
function shelves(found, width, pitch) {
  const cells = [];
  const rows = [];
  const labels = [];
  let [left, top, tallest] = [0, 0, 0];
  for (const block of found.blocks) {
    const longest = Math.max(...block.leaves.map((/** @type {Row} */ leaf) => leaf.port.length));
    const across = Math.max(1, Math.min(longest, Math.floor(width / pitch) - 2));
    const wide = Math.max((across + 2) * pitch, 64) + GAP;
    if (left && left + wide > width + GAP) [left, top, tallest] = [0, top + tallest, 0];
    labels.push({ text: block.leaves[0].leaf, x: left, y: top + TITLE / 2, width: wide - GAP });
    let line = top + TITLE;
    for (const leaf of block.leaves) {
      for (let first = 0; first < leaf.port.length; first += across) {
        const row = [];
        const last = Math.min(first + across, leaf.port.length);
        for (let n = first; n < last; n += 1) {
          row.push(cells.push({ x: left + (n - first) * pitch, y: line, leaf: leaf.leaf, port: `${block.hosts[leaf.host[n]]}:${leaf.port[n]}`, found: leaf.found[n], grade: leaf.grade[n] ?? 0 }) - 1);
        }
        if (last === leaf.port.length && leaf.uplinks) {
          row.push(cells.push({ x: left + (across + 1) * pitch, y: line, leaf: leaf.leaf, port: "", uplinks: leaf.uplinks, wrong: leaf.uplinks_wrong, found: 0, grade: 0 }) - 1);
        }
        rows.push(row);
        line += pitch;
      }
    }
    tallest = Math.max(tallest, line - top + GAP / 2);
    left += wide;
  }
  return { cells, rows, labels, pitch, height: top + tallest };
}

// The cell in whose square the point lies, -1 for none.
/** @param {Row} shape @param {Row} x @param {Row} y */
function hit(shape, x, y) {
  return shape.cells.findIndex((/** @type {Row} */ cell) => x >= cell.x && x < cell.x + shape.pitch && y >= cell.y && y < cell.y + shape.pitch);
}

/** @param {Row} shape @param {Row} place @param {string} key */
function step(shape, place, key) {
  if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].includes(key)) return null;
  if (place < 0) return 0;
  if (key === "ArrowLeft") return Math.max(place - 1, 0);
  if (key === "ArrowRight") return Math.min(place + 1, shape.cells.length - 1);
  const row = shape.rows.findIndex((/** @type {Row} */ one) => one.includes(place));
  const next = shape.rows[row + (key === "ArrowDown" ? 1 : -1)];
  return next ? next[Math.min(shape.rows[row].indexOf(place), next.length - 1)] : place;
}

// The chosen cell's frame lies over the canvas, so that choosing one repaints none.
/** @param {Row} frame @param {Row} shape @param {Row} place */
function mark(frame, shape, place) {
  const cell = shape.cells[place];
  frame.style.display = cell ? "block" : "none";
  if (!cell) return;
  Object.assign(frame.style, { left: `${cell.x - 2}px`, top: `${cell.y - 2}px`, width: `${shape.pitch + 3}px`, height: `${shape.pitch + 3}px` });
}

/** @param {Row} canvas @param {Row} shape @param {Row} found @param {Row} wanted */
function draw(canvas, shape, found, wanted) {
  const width = Math.floor(canvas.parentElement.clientWidth);
  const ratio = devicePixelRatio || 1;
  const style = getComputedStyle(document.documentElement);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const of = found.conditions.map((/** @type {Row} */ one) => colour(COLOURS[one]));
  const [text, muted, back] = [colour("--text"), colour("--muted"), colour("--panel")];
  canvas.width = Math.floor(width * ratio);
  canvas.height = Math.floor(shape.height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${shape.height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = `10px ${getComputedStyle(document.body).fontFamily}`;
  pen.textBaseline = "middle";
  pen.fillStyle = muted;
  for (const label of shape.labels) pen.fillText(label.text, label.x, label.y, label.width);
  const size = shape.pitch - (shape.pitch > 6 ? 2 : 1);
  const missing = found.conditions.indexOf("missing");
  for (const cell of shape.cells) {
    pen.globalAlpha = wanted && !cell.leaf.toLowerCase().includes(wanted) && !cell.port.toLowerCase().includes(wanted) ? 0.15 : 1;
    pen.fillStyle = cell.port ? of[cell.found] : cell.wrong ? of[missing] : muted;
    pen.fillRect(cell.x, cell.y, size, size);
    if (cell.port && cell.found === missing && size >= 5) {
      pen.fillStyle = back;
      pen.fillRect(cell.x + 1.5, cell.y + 1.5, size - 3, size - 3);
    }
    if (cell.grade) {
      pen.fillStyle = text;
      pen.fillRect(cell.x + size / 4, cell.y + size / 4, size / 2, size / 2);
    }
  }
  pen.globalAlpha = 1;
}
