// Which nodes of the grid are selected: by a drag over their cells, by keys, or in the grid's table.
import { token } from "./api.js";
import { effect, signal } from "./ui.js";

/** @typedef {import("./types.js").GridShape} GridShape */
/** @typedef {import("./types.js").Box} Box */

// A pointer that moves less than this means the cell under it.
const SLACK = 4;

/** @type {Set<string>} */
const NONE = new Set();

export const selected = signal(NONE);
// Whether a tap selects a cell and a finger's drag selects what it goes over; else one opens and the other scrolls.
export const selecting = signal(false);
// What a drag that is under way goes over, in the grid's own coordinates.
export const dragged = signal(/** @type {Box | null} */ (null));

/** @type {{ pointer: number, x: number, y: number, adds: boolean } | null} */
let drag = null;
let clickIsOver = false;

// What one person selected is nothing to the next one.
effect(() => {
  if (token.value) return;
  select([]);
  selecting.value = false;
});

/** @param {Iterable<string>} ids */
export function select(ids) {
  const next = new Set(ids);
  if (next.size || selected.peek().size) selected.value = next;
}

// Selects what is not selected, and the other way round.
/** @param {string} id */
export function turn(id) {
  const next = new Set(selected.peek());
  if (!next.delete(id)) next.add(id);
  selected.value = next;
}

// The places of the cells that the box touches, in their order.
/** @param {GridShape} shape @param {Box} box */
export function within({ order, x, y, size }, box) {
  return order.filter((place) => x[place] <= box.right && x[place] + size >= box.left && y[place] <= box.bottom && y[place] + size >= box.top);
}

/** @param {PointerEvent} event */
export function beginDrag(event) {
  clickIsOver = false;
  if (event.button !== 0 || (event.pointerType === "touch" && !selecting.peek())) return;
  const canvas = /** @type {HTMLElement} */ (event.currentTarget);
  canvas.setPointerCapture(event.pointerId);
  drag = { pointer: event.pointerId, ...point(canvas, event), adds: event.shiftKey || event.ctrlKey || event.metaKey };
}

/** @param {PointerEvent} event */
export function goOn(event) {
  if (drag?.pointer !== event.pointerId) return;
  const canvas = /** @type {HTMLElement} */ (event.currentTarget);
  follow(canvas.parentElement, event);
  const { x, y } = point(canvas, event);
  if (!dragged.peek() && Math.hypot(x - drag.x, y - drag.y) < SLACK) return;
  dragged.value = { left: Math.min(x, drag.x), right: Math.max(x, drag.x), top: Math.min(y, drag.y), bottom: Math.max(y, drag.y) };
}

// Ends the drag, and hands over what it went over and whether that is added to what is selected; of a tap where it was.
// The click that the browser makes of either is none.
/** @param {PointerEvent} event @param {(box: Box, adds: boolean) => void} take @param {(x: number, y: number) => void} tap */
export function endDrag(event, take, tap) {
  if (drag?.pointer !== event.pointerId) return;
  const [box, { x, y, adds }] = [dragged.peek(), drag];
  stopDrag();
  clickIsOver ||= selecting.peek();
  if (box) take(box, adds);
  else if (selecting.peek()) tap(x, y);
}

// Whether there was a drag to stop.
export function stopDrag() {
  const had = Boolean(dragged.peek());
  clickIsOver ||= had;
  drag = null;
  dragged.value = null;
  return had;
}

// Whether a click is one: once for each, as a drag ends with a click too.
export function isClick() {
  const is = !clickIsOver;
  clickIsOver = false;
  return is;
}

/** @param {HTMLElement} canvas @param {PointerEvent} event */
function point(canvas, event) {
  const room = canvas.getBoundingClientRect();
  return { x: event.clientX - room.left, y: event.clientY - room.top };
}

// A drag beyond the edge brings what lies there.
/** @param {HTMLElement | null} room @param {PointerEvent} event */
function follow(room, event) {
  if (!room) return;
  const { top, bottom } = room.getBoundingClientRect();
  const beyond = Math.min(0, event.clientY - top) + Math.max(0, event.clientY - bottom);
  if (beyond) room.scrollTop += beyond;
}
