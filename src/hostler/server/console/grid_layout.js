// Where each cell of the fleet's grid lies, for the room there is.
import { grouped } from "./grid_groups.js";

/** @typedef {import("./types.js").FleetMap} FleetMap */
/** @typedef {import("./types.js").GridShape} GridShape */

const DENSE = 3000;
const LEAST = 2;
const LARGE = 64;
const HEADING = 14;

/** @type {GridShape} */
export const NOTHING = { order: [], x: new Int32Array(), y: new Int32Array(), at: () => -1, labels: [], size: 12, pitch: 14, height: 0, columns: 1 };

// Groups side by side with their names where there is room; large ones below each other; one dense field where neither
// has room. `count` nodes will be shown, of which `shown` may be the first.
/** @param {FleetMap} shown @param {number} count @param {number} width @param {number} height @returns {GridShape} */
export function layout(shown, count, width, height) {
  const groups = grouped(shown);
  const order = [...groups.values()].flat();
  if (shown.by !== "rack" && order.length > LARGE * groups.size) return largest((size) => bands(groups, order, shown.by, width, size), 10, height);
  if (count > DENSE) return field(order, width, denseSize(count, width, height));
  return largest((size) => shelves(groups, order, shown.by, width, size), 20, height);
}

// The largest cells with which the shape has room, or the least.
/** @param {(size: number) => GridShape} shaped @param {number} most @param {number} height */
function largest(shaped, most, height) {
  for (let size = most; size > LEAST; size -= 1) {
    const tried = shaped(size);
    if (tried.height <= height) return tried;
  }
  return shaped(LEAST);
}

/** @param {number} size */
function fieldGap(size) {
  return size > 6 ? 2 : 1;
}

/** @param {number} size @param {number} width */
function fieldColumns(size, width) {
  return Math.max(1, Math.floor(width / (size + fieldGap(size))));
}

/** @param {number} count @param {number} width @param {number} height */
function denseSize(count, width, height) {
  for (let size = 10; size > LEAST; size -= 1) {
    if (Math.ceil(count / fieldColumns(size, width)) * (size + fieldGap(size)) <= height) return size;
  }
  return LEAST;
}

/** @param {number[]} order @param {number} width @param {number} size @returns {GridShape} */
function field(order, width, size) {
  const pitch = size + fieldGap(size);
  const columns = fieldColumns(size, width);
  const x = new Int32Array(order.length);
  const y = new Int32Array(order.length);
  order.forEach((place, number) => {
    x[place] = (number % columns) * pitch;
    y[place] = Math.floor(number / columns) * pitch;
  });
  /** @param {number} left @param {number} top */
  const at = (left, top) => {
    const column = Math.floor(left / pitch);
    return column < columns ? (order[Math.floor(top / pitch) * columns + column] ?? -1) : -1;
  };
  return { order, x, y, at, labels: [], size, pitch, height: Math.ceil(order.length / columns) * pitch, columns };
}

// Each group over the whole width, under its name.
/** @param {Map<string, number[]>} groups @param {number[]} order @param {string} by @param {number} width @param {number} size @returns {GridShape} */
function bands(groups, order, by, width, size) {
  const pitch = size + fieldGap(size);
  const columns = fieldColumns(size, width);
  const x = new Int32Array(order.length);
  const y = new Int32Array(order.length);
  /** @type {import("./types.js").Label[]} */
  const labels = [];
  /** @type {{ top: number, members: number[] }[]} */
  const starts = [];
  let top = 0;
  for (const [name, members] of groups) {
    labels.push({ text: name || `no ${by}`, x: 0, y: top + HEADING / 2 });
    top += HEADING;
    starts.push({ top, members });
    members.forEach((place, n) => {
      x[place] = (n % columns) * pitch;
      y[place] = top + Math.floor(n / columns) * pitch;
    });
    top += Math.ceil(members.length / columns) * pitch + pitch;
  }
  /** @param {number} left @param {number} above */
  const at = (left, above) => {
    const column = Math.floor(left / pitch);
    const band = starts.findLast((one) => one.top <= above);
    return band && column < columns ? (band.members[Math.floor((above - band.top) / pitch) * columns + column] ?? -1) : -1;
  };
  return { order, x, y, at, labels, size, pitch, height: top, columns };
}

/** @param {Map<string, number[]>} groups @param {number[]} order @param {string} by @param {number} width @param {number} size @returns {GridShape} */
function shelves(groups, order, by, width, size) {
  const pitch = size + 3;
  const widest = Math.max(1, ...[...groups.values()].map((members) => members.length));
  const across = Math.min(widest, 8);
  const perShelf = Math.max(1, Math.floor((width + 10) / (across * pitch + 10)));
  const wide = Math.floor((width + 10) / perShelf);
  const x = new Int32Array(order.length);
  const y = new Int32Array(order.length);
  /** @type {import("./types.js").Label[]} */
  const labels = [];
  let number = 0;
  let top = 0;
  let tallest = 0;
  for (const [name, members] of groups) {
    if (number && number % perShelf === 0) {
      top += tallest;
      tallest = 0;
    }
    const left = (number % perShelf) * wide;
    labels.push({ text: name || `no ${by}`, x: left, y: top + pitch / 2 });
    members.forEach((place, n) => {
      x[place] = left + (n % across) * pitch;
      y[place] = top + pitch * (1 + Math.floor(n / across));
    });
    tallest = Math.max(tallest, pitch * (2 + Math.ceil(members.length / across)) - pitch / 2);
    number += 1;
  }
  /** @param {number} left @param {number} above */
  const at = (left, above) => order.find((place) => left >= x[place] && left < x[place] + pitch && above >= y[place] && above < y[place] + pitch) ?? -1;
  return { order, x, y, at, labels, size, pitch, height: top + tallest, columns: across };
}
