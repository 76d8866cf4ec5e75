// The axis of time that a node's lanes and its series have in common, in the units of the lanes' drawing.

export const WIDTH = 1000;
export const LEFT = 78;
export const RIGHT = 4;

const STEPS_S = [1, 5, 15, 60, 300, 900, 3600, 10800, 43200, 86400, 604800, 2592000, 31536000];

/** @param {number} time */
export function iso(time) {
  return new Date(time).toISOString();
}

// Round moments, at most nine of them.
/** @param {number} first @param {number} end */
export function ticks(first, end) {
  const step = 1000 * (STEPS_S.find((s) => (end - first) / 1000 / s <= 9) ?? STEPS_S[STEPS_S.length - 1]);
  const found = [];
  for (let time = Math.ceil(first / step) * step; time < end; time += step) found.push(time);
  return found.slice(0, 12);
}

/** @param {number} time @param {number} width */
export function label(time, width) {
  const text = iso(time);
  if (width > 172800000) return text.slice(5, 10);
  return width > 600000 ? text.slice(11, 16) : text.slice(11, 19);
}
