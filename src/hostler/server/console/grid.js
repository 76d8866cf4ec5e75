// The fleet as cells, one per node, by rack: phase is the colour, a mark says what is wrong. Mouse and arrow keys.
import { html, signal, useEffect, useRef } from "./ui.js";
import { repaint } from "./repaint.js";
import { go, nodePath } from "./router.js";
import { filter, fleet } from "./state.js";
import { SEVERITIES, plain } from "./words.js";

/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").FleetMap} FleetMap */
/** @typedef {import("./types.js").Cell} Cell */

export const picked = signal(-1);

const WAITING = 1;
const OPERATING = 2;
const CORDONED = 4;
const DELIVERED = 8;
const SILENT = 16;

const natural = new Intl.Collator("en", { numeric: true });

/** @type {import("./types.js").GridShape} */
let shape = { cells: [], labels: [], size: 12, pitch: 14, rows: new Map(), order: [], height: 0, columns: 1 };

export function Grid() {
  const canvas = useRef(/** @type {Row} */ (null));
  const frame = useRef(/** @type {Row} */ (null));
  const shown = fleet.value;
  const only = filter.value;
  const place = picked.value;
  useEffect(() => {
    const paint = () => {
      draw(canvas.current, shown, only);
      mark(frame.current, picked.peek());
    };
    return repaint(canvas.current, paint);
  }, [shown, only]);
  useEffect(() => mark(frame.current, place), [place]);
  const open = () => {
    if (picked.value >= 0) go(nodePath(shown.ids[picked.value]));
  };
  return html`
    <div class="grid">
      <canvas
        ref=${canvas} tabindex="0" role="application"
        aria-label="Fleet: ${shown.ids.length} nodes by rack. Arrow keys choose a node, Enter opens it."
        onMouseMove=${(/** @type {Row} */ event) => (picked.value = at(event))}
        onClick=${(/** @type {Row} */ event) => { picked.value = at(event); open(); }}
        onFocus=${() => { if (picked.value < 0) picked.value = shape.order[0] ?? -1; }}
        onKeyDown=${(/** @type {Row} */ event) => (event.key === "Enter" ? open() : step(event))}
      ></canvas>
      <i class="pick" ref=${frame}></i>
    </div>
    <p class="readout" aria-live="polite">${said(shown, place)}</p>
  `;
}

/** @param {FleetMap} shown @param {number} place */
function said(shown, place) {
  if (place < 0 || place >= shown.ids.length) return "Point at a node, or use the arrow keys; Enter opens it.";
  const flags = shown.flags[place];
  const notes = [
    shown.rack[place] ? `rack ${shown.rack[place]}` : "",
    plain(shown.phases[shown.phase[place]]),
    flags & DELIVERED ? "delivered" : shown.phases[shown.phase[place]] === "production" ? "spare" : "",
    shown.severity[place] >= 0 ? `${SEVERITIES[shown.severity[place]]} condition` : "",
    flags & OPERATING ? "an operation is under way" : "",
    flags & WAITING ? "waits" : "",
    flags & CORDONED ? "cordoned" : "",
    flags & SILENT ? "agent silent" : "",
  ];
  return `${shown.ids[place]} · ${notes.filter(Boolean).join(" · ")}`;
}

/** @param {KeyboardEvent} event */
function step(event) {
  const rows = shape.columns;
  const by = /** @type {Record<string, number>} */ ({ ArrowRight: 1, ArrowLeft: -1, ArrowDown: rows, ArrowUp: -rows })[event.key];
  if (!by) return;
  event.preventDefault();
  const now = shape.order.indexOf(picked.value);
  const next = Math.min(Math.max(now + by, 0), shape.order.length - 1);
  picked.value = shape.order[next] ?? -1;
}

/** @param {MouseEvent} event */
function at(event) {
  const { offsetX: x, offsetY: y } = event;
  const row = shape.rows.get(Math.floor(y / shape.pitch));
  const hit = row?.find((cell) => x >= cell.x && x < cell.x + shape.pitch);
  return hit ? hit.place : -1;
}

// The chosen cell's frame lies over the canvas, so that choosing one of 100,000 cells repaints none.
/** @param {HTMLElement} frame @param {number} place */
function mark(frame, place) {
  const cell = shape.cells.find((one) => one.place === place);
  frame.style.display = cell ? "block" : "none";
  if (!cell) return;
  Object.assign(frame.style, {
    left: `${cell.x - 2}px`, top: `${cell.y - 2}px`, width: `${shape.size + 4}px`, height: `${shape.size + 4}px`,
  });
}

/** @param {Row} canvas @param {FleetMap} shown @param {string} only */
function draw(canvas, shown, only) {
  const box = canvas.parentElement.getBoundingClientRect();
  const ratio = devicePixelRatio || 1;
  const colours = palette();
  shape = layout(shown, Math.floor(box.width), Math.floor(box.height));
  canvas.width = Math.floor(box.width * ratio);
  canvas.height = Math.floor(shape.height * ratio);
  canvas.style.width = `${Math.floor(box.width)}px`;
  canvas.style.height = `${shape.height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = `10px ${colours.font}`;
  pen.textBaseline = "middle";
  for (const label of shape.labels) {
    pen.fillStyle = colours.muted;
    pen.fillText(label.text, label.x, label.y);
  }
  for (const cell of shape.cells) paint(pen, cell, shown, only, colours);
}

/** @param {CanvasRenderingContext2D} pen @param {Cell} cell @param {FleetMap} shown @param {string} only @param {ReturnType<typeof palette>} colours */
function paint(pen, { x, y, place }, shown, only, colours) {
  const size = shape.size;
  const phase = shown.phases[shown.phase[place]];
  const flags = shown.flags[place];
  const severity = shown.severity[place];
  pen.globalAlpha = only && only !== phase ? 0.14 : 1;
  pen.fillStyle = colours.phase(phase, flags & DELIVERED);
  pen.fillRect(x, y, size, size);
  if (flags & OPERATING && size >= 6) {
    pen.fillStyle = colours.text;
    pen.fillRect(x, y + size - 2, size, 2);
  }
  if (severity >= 1) {
    const inset = size >= 9 ? Math.round(size / 4) : 0;
    pen.fillStyle = colours.severity(severity);
    pen.fillRect(x + inset, y + inset, size - 2 * inset, size - 2 * inset);
  }
  if (flags & WAITING && size >= 6) {
    pen.strokeStyle = colours.wait;
    pen.lineWidth = 1.5;
    pen.strokeRect(x + 0.75, y + 0.75, size - 1.5, size - 1.5);
  }
  pen.globalAlpha = 1;
}

// Racks side by side with their names where there is room; one dense field where there is not.
/** @param {FleetMap} shown @param {number} width @param {number} height */
function layout(shown, width, height) {
  const order = shown.ids.map((_, place) => place);
  const rank = new Map([...new Set(shown.rack)].sort(natural.compare).map((rack, number) => /** @type {[string, number]} */ ([rack, number])));
  const rankOf = (/** @type {number} */ place) => rank.get(shown.rack[place]) ?? 0;
  order.sort((a, b) => rankOf(a) - rankOf(b) || a - b);
  /** @type {Map<string, number[]>} */
  const racks = new Map();
  for (const place of order) listed(racks, shown.rack[place]).push(place);
  const dense = order.length > 3000;
  for (let size = dense ? 10 : 20; size >= 2; size -= 1) {
    const tried = dense ? field(order, width, size) : shelves(racks, order, width, size);
    if (tried.height <= height || size === 2) return tried;
  }
  return field(order, width, 2);
}

/** @template K, V @param {Map<K, V[]>} map @param {K} key @returns {V[]} */
function listed(map, key) {
  const known = map.get(key);
  if (known) return known;
  /** @type {V[]} */
  const fresh = [];
  map.set(key, fresh);
  return fresh;
}

/**
 * @param {Cell[]} cells @param {import("./types.js").Label[]} labels @param {number} size @param {number} gap
 * @param {number[]} order @param {number} height @param {number} columns
 */
function finish(cells, labels, size, gap, order, height, columns) {
  const pitch = size + gap;
  /** @type {Map<number, Cell[]>} */
  const rows = new Map();
  for (const cell of cells) {
    listed(rows, Math.floor(cell.y / pitch)).push(cell);
  }
  return { cells, labels, size, pitch, rows, order, height, columns };
}

/** @param {number[]} order @param {number} width @param {number} size */
function field(order, width, size) {
  const gap = size > 6 ? 2 : 1;
  const columns = Math.max(1, Math.floor(width / (size + gap)));
  const cells = order.map((place, number) => ({
    place, x: (number % columns) * (size + gap), y: Math.floor(number / columns) * (size + gap),
  }));
  return finish(cells, [], size, gap, order, Math.ceil(order.length / columns) * (size + gap), columns);
}

/** @param {Map<string, number[]>} racks @param {number[]} order @param {number} width @param {number} size */
function shelves(racks, order, width, size) {
  const gap = 3;
  const pitch = size + gap;
  const widest = Math.max(1, ...[...racks.values()].map((members) => members.length));
  const across = Math.min(widest, 8);
  const least = across * pitch + 10;
  const perShelf = Math.max(1, Math.floor((width + 10) / least));
  const wide = Math.floor((width + 10) / perShelf);
  /** @type {Cell[]} */
  const cells = [];
  /** @type {import("./types.js").Label[]} */
  const labels = [];
  let number = 0;
  let top = 0;
  let tallest = 0;
  for (const [rack, members] of racks) {
    if (number && number % perShelf === 0) {
      top += tallest;
      tallest = 0;
    }
    const left = (number % perShelf) * wide;
    labels.push({ text: rack || "no rack", x: left, y: top + pitch / 2 });
    members.forEach((place, n) => {
      cells.push({ place, x: left + (n % across) * pitch, y: top + pitch * (1 + Math.floor(n / across)) });
    });
    tallest = Math.max(tallest, pitch * (2 + Math.ceil(members.length / across)) - pitch / 2);
    number += 1;
  }
  return finish(cells, labels, size, gap, order, top + tallest, across);
}

function palette() {
  const style = getComputedStyle(document.documentElement);
  const get = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const known = new Map();
  const colour = (/** @type {string} */ name) => {
    if (!known.has(name)) known.set(name, get(name));
    return known.get(name);
  };
  return {
    text: get("--text"),
    muted: get("--muted"),
    wait: get("--wait"),
    font: getComputedStyle(document.body).fontFamily,
    phase: (/** @type {string} */ phase, /** @type {number} */ delivered) =>
      colour(phase === "production" && !delivered ? "--p-spare" : `--p-${phase.replace("_", "-")}`),
    severity: (/** @type {Row} */ severity) => colour(`--s-${SEVERITIES[severity]}`),
  };
}
