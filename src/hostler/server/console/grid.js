// The fleet as cells, one per node, by rack: coloured by phase with a mark for what is wrong, or by what the address says.
// A click opens a node, a drag selects those that it goes over.
import { html, signal, useEffect, useLayoutEffect, useRef } from "./ui.js";
import { repaint } from "./repaint.js";
import { go, nodePath } from "./router.js";
import { FLAGS, fleet, placeOf, revision, takeChanged } from "./fleet_map.js";
import { COLOURINGS, marksOf, paintTone, told } from "./grid_colours.js";
import { NOTHING, layout } from "./grid_layout.js";
import { beginDrag, dragged, endDrag, goOn, isClick, select, selected, selecting, stopDrag, turn, within } from "./grid_selection.js";
import { filter, status } from "./state.js";
import { SEVERITIES, count, plain } from "./words.js";

/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").FleetMap} FleetMap */

export const picked = signal(-1);

const WAITING = FLAGS.waits;
const OPERATING = FLAGS["an operation is under way"];
const DELIVERED = FLAGS.delivered;

// From this size on a cell has room for a frame.
const FRAMED = 6;

let shape = NOTHING;
// Where keys began to select, as a place in the shape's order, and what was selected then.
/** @type {{ from: number, before: Set<string> } | null} */
let range = null;

export function Grid() {
  const canvas = useRef(/** @type {Row} */ (null));
  const frame = useRef(/** @type {Row} */ (null));
  const veil = useRef(/** @type {Row} */ (null));
  const shown = fleet.value;
  const only = filter.value;
  const place = picked.value;
  const drawn = revision.value;
  const chosen = selected.value;
  const box = dragged.value;
  useEffect(() => {
    const paint = () => {
      draw(canvas.current, shown, only);
      mark(frame.current, picked.peek());
      drawSelected(veil.current, canvas.current, selected.peek());
    };
    return repaint(canvas.current, paint);
  }, [shown, only]);
  useEffect(() => drawChanged(canvas.current, shown, only), [drawn]);
  useLayoutEffect(() => mark(frame.current, place), [place]); // at once with the words below it
  useEffect(() => drawSelected(veil.current, canvas.current, chosen), [chosen]);
  // Cells that a filter leaves pale are not selected.
  const ids = (/** @type {number[]} */ places) => places.filter((one) => !only || shown.phases[shown.phase[one]] === only).map((one) => shown.ids[one]);
  const open = () => {
    if (picked.value >= 0) go(nodePath(shown.ids[picked.value]));
  };
  /** @param {MouseEvent} event */
  const click = (event) => {
    if (!isClick()) return;
    picked.value = at(event);
    open();
  };
  const release = (/** @type {PointerEvent} */ event) => endDrag(
    event,
    (over, adds) => select([...(adds ? selected.peek() : []), ...ids(within(shape, over))]),
    (x, y) => ids([shape.at(x, y)].filter((one) => one >= 0)).forEach(turn),
  );
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key === "Enter") open();
    else if (!choose(event, ids)) step(event, ids);
  };
  return html`
    <div class="grid">
      <canvas
        ref=${canvas} tabindex="0" role="application"
        aria-label="Fleet: ${shown.ids.length} nodes by ${shown.by}. Arrow keys choose a node, Enter opens it; with Shift they select, Space selects one, Escape none."
        class=${selecting.value ? "selecting" : ""}
        onMouseMove=${(/** @type {Row} */ event) => (picked.value = at(event))}
        onPointerDown=${beginDrag} onPointerMove=${goOn} onPointerUp=${release} onPointerCancel=${stopDrag}
        onClick=${click}
        onFocus=${() => { if (picked.value < 0) picked.value = shape.order[0] ?? -1; }}
        onKeyDown=${press}
      ></canvas>
      ${chosen.size > 0 && html`<canvas class="veil" ref=${veil} aria-hidden="true"></canvas>`}
      ${box && html`<i class="band" style=${`left:${box.left}px;top:${box.top}px;width:${box.right - box.left}px;height:${box.bottom - box.top}px`}></i>`}
      <i class="pick" ref=${frame}></i>
    </div>
    <p class="readout" aria-live="polite">${box ? `${count(ids(within(shape, box)).length)} nodes` : said(shown, place)}</p>
  `;
}

/** @param {FleetMap} shown @param {number} place */
function said(shown, place) {
  if (place < 0 || place >= shown.ids.length) return "Point at a node, or use the arrow keys; Enter opens it.";
  const flags = shown.flags[place];
  const stands = Object.entries(FLAGS).filter(([, flag]) => flags & flag && flag !== DELIVERED).map(([word]) => word);
  const notes = [
    shown.by !== "rack" && shown.groups[shown.group[place]] ? `${shown.by} ${shown.groups[shown.group[place]]}` : "",
    shown.rack[place] ? `rack ${shown.rack[place]}` : "",
    plain(shown.phases[shown.phase[place]]),
    shown.colour === "phase" ? "" : `${COLOURINGS[shown.colour]}: ${told(shown, marksOf(shown), place)}`,
    flags & DELIVERED ? "delivered" : shown.phases[shown.phase[place]] === "production" ? "spare" : "",
    shown.severity[place] >= 0 ? `${SEVERITIES[shown.severity[place]]} condition` : "",
    ...stands,
    selected.value.has(shown.ids[place]) ? "selected" : "",
  ];
  return `${shown.ids[place]} · ${notes.filter(Boolean).join(" · ")}`;
}

// Keys that select and move nowhere: Space, everything, and Escape, which ends a drag or else all of it.
/** @param {KeyboardEvent} event @param {(places: number[]) => string[]} ids */
function choose(event, ids) {
  if (event.key === "Escape") {
    if (!stopDrag()) select([]);
  } else if (event.key === " ") ids([picked.value].filter((place) => place >= 0)).forEach(turn);
  else if (event.key === "a" && (event.ctrlKey || event.metaKey)) select(ids(shape.order));
  else return false;
  range = null;
  event.preventDefault();
  return true;
}

/** @param {KeyboardEvent} event @param {(places: number[]) => string[]} ids */
function step(event, ids) {
  const rows = shape.columns;
  const by = /** @type {Record<string, number>} */ ({ ArrowRight: 1, ArrowLeft: -1, ArrowDown: rows, ArrowUp: -rows })[event.key];
  if (!by) return;
  event.preventDefault();
  const now = shape.order.indexOf(picked.value);
  const next = Math.min(Math.max(now + by, 0), shape.order.length - 1);
  picked.value = shape.order[next] ?? -1;
  if (!event.shiftKey) {
    range = null;
    return;
  }
  range ??= { from: Math.max(now, 0), before: selected.peek() };
  const [first, last] = [Math.min(range.from, next), Math.max(range.from, next)];
  select([...range.before, ...ids(shape.order.slice(first, last + 1))]);
}

/** @param {MouseEvent} event */
function at(event) {
  return shape.at(event.offsetX, event.offsetY);
}

// The chosen cell's frame lies over the canvas, so that choosing one of 100,000 cells repaints none.
/** @param {HTMLElement} frame @param {number} place */
function mark(frame, place) {
  const known = place >= 0 && place < shape.x.length;
  frame.style.display = known ? "block" : "none";
  if (!known) return;
  Object.assign(frame.style, {
    left: `${shape.x[place] - 2}px`, top: `${shape.y[place] - 2}px`, width: `${shape.size + 4}px`, height: `${shape.size + 4}px`,
  });
}

// What is selected lies over the cells too: a frame around each, on small ones a veil.
/** @param {Row} veil @param {Row} canvas @param {Set<string>} chosen */
function drawSelected(veil, canvas, chosen) {
  if (!veil || !chosen.size) return;
  Object.assign(veil, { width: canvas.width, height: canvas.height });
  Object.assign(veil.style, { width: canvas.style.width, height: canvas.style.height });
  const ratio = devicePixelRatio || 1;
  const pen = veil.getContext("2d");
  pen.scale(ratio, ratio);
  pen.strokeStyle = pen.fillStyle = palette().text;
  pen.lineWidth = 2;
  pen.globalAlpha = shape.size >= FRAMED ? 1 : 0.6;
  for (const id of chosen) {
    const place = placeOf(id);
    if (place === undefined) continue;
    if (shape.size >= FRAMED) pen.strokeRect(shape.x[place], shape.y[place], shape.size, shape.size);
    else pen.fillRect(shape.x[place], shape.y[place], shape.pitch, shape.pitch);
  }
}

/** @param {Row} canvas @param {FleetMap} shown @param {string} only */
function draw(canvas, shown, only) {
  const box = canvas.parentElement.getBoundingClientRect();
  const ratio = devicePixelRatio || 1;
  takeChanged();
  shape = layout(shown, Math.max(shown.ids.length, status.peek()?.nodes ?? 0), Math.floor(box.width), Math.floor(box.height));
  canvas.width = Math.floor(box.width * ratio);
  canvas.height = Math.floor(shape.height * ratio);
  canvas.style.width = `${Math.floor(box.width)}px`;
  canvas.style.height = `${shape.height}px`;
  const pen = canvas.getContext("2d");
  const colours = palette();
  pen.scale(ratio, ratio);
  pen.font = `10px ${colours.font}`;
  pen.textBaseline = "middle";
  pen.fillStyle = colours.muted;
  for (const label of shape.labels) pen.fillText(label.text, label.x, label.y);
  for (const place of shape.order) paint(pen, place, shown, only, colours);
}

// Cells that changed since they were drawn last; the others stay as they are.
/** @param {Row} canvas @param {FleetMap} shown @param {string} only */
function drawChanged(canvas, shown, only) {
  const changed = takeChanged();
  if (!changed.size) return;
  const pen = canvas.getContext("2d");
  const colours = palette();
  for (const place of changed) {
    pen.clearRect(shape.x[place] - 0.5, shape.y[place] - 0.5, shape.size + 1, shape.size + 1);
    paint(pen, place, shown, only, colours);
  }
}

/** @param {CanvasRenderingContext2D} pen @param {number} place @param {FleetMap} shown @param {string} only @param {ReturnType<typeof palette>} colours */
function paint(pen, place, shown, only, colours) {
  const size = shape.size;
  const x = shape.x[place];
  const y = shape.y[place];
  const phase = shown.phases[shown.phase[place]];
  const flags = shown.flags[place];
  const severity = shown.severity[place];
  pen.globalAlpha = only && only !== phase ? 0.14 : 1;
  if (shown.colour !== "phase") {
    const { tone } = marksOf(shown)[shown.word[place]];
    paintTone(pen, tone, colours.tone(tone), x, y, size);
    pen.globalAlpha = 1;
    return;
  }
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
    tone: (/** @type {string} */ tone) => colour(`--${/^[cq]\d$/.test(tone) ? tone : `t-${tone}`}`),
    severity: (/** @type {Row} */ severity) => colour(`--s-${SEVERITIES[severity]}`),
  };
}
