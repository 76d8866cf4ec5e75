// Moments to the second, as addresses name them.
import { nodePath } from "./router.js";

// The second of a moment, or one `later` by so many.
/** @param {string} iso @param {number} [later] */
export function momentOf(iso, later = 0) {
  return new Date((Math.floor(Date.parse(iso) / 1000) + later) * 1000).toISOString().replace(".000Z", "Z");
}

// The milliseconds at which the second that an address names begins, NaN where it names none.
/** @param {string | undefined} text */
export function momentIn(text) {
  return Math.floor(Date.parse(text ?? "") / 1000) * 1000;
}

// The fleet's events of a moment's second.
/** @param {string} at */
export function secondPath(at) {
  return `/events?${new URLSearchParams({ since: momentOf(at), until: momentOf(at, 1) })}`;
}

// A node's page at a moment.
/** @param {string} id @param {string} at */
export function momentPath(id, at) {
  return `${nodePath(id)}?${new URLSearchParams({ moment: momentOf(at) })}`;
}
