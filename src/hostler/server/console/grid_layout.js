// Where each cell of the fleet's grid lies, for the room there is.

/** @typedef {import("./types.js").FleetMap} FleetMap */
/** @typedef {import("./types.js").GridShape} GridShape */

const DENSE = 3000;
const LEAST = 2;
const natural = new Intl.Collator("en", { numeric: true });

/** @type {GridShape} */
export const NOTHING = { order: [], x: new Int32Array(), y: new Int32Array(), at: () => -1, labels: [], size: 12, pitch: 14, height: 0, columns: 1 };

// Racks side by side with their names where there is room; one dense field where there is not. `count` nodes will be
// shown, of which `shown` may be the first.
/** @param {FleetMap} shown @param {number} count @param {number} width @param {number} height @returns {GridShape} */
export function layout(shown, count, width, height) {
  const racks = byRack(shown);
  const order = [...racks.values()].flat();
  if (count > DENSE) return field(order, width, denseSize(count, width, height));
  for (let size = 20; size > LEAST; size -= 1) {
    const tried = shelves(racks, order, width, size);
    if (tried.height <= height) return tried;
  }
  return shelves(racks, order, width, LEAST);
}

// The places in each rack, racks in natural order.
/** @param {FleetMap} shown */
function byRack(shown) {
  /** @type {Map<string, number[]>} */
  const found = new Map();
  shown.rack.forEach((rack, place) => {
    const members = found.get(rack);
    if (members) members.push(place);
    else found.set(rack, [place]);
  });
  return new Map([...found].sort(([a], [b]) => natural.compare(a, b)));
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

/** @param {Map<string, number[]>} racks @param {number[]} order @param {number} width @param {number} size @returns {GridShape} */
function shelves(racks, order, width, size) {
  const pitch = size + 3;
  const widest = Math.max(1, ...[...racks.values()].map((members) => members.length));
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
  for (const [rack, members] of racks) {
    if (number && number % perShelf === 0) {
      top += tallest;
      tallest = 0;
    }
    const left = (number % perShelf) * wide;
    labels.push({ text: rack || "no rack", x: left, y: top + pitch / 2 });
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
