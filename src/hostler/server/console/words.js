// How moments, spans and severities are said and shown.

export const SEVERITIES = ["info", "warning", "degraded", "critical", "catastrophic"];

export const PHASES = [
  "registered", "initializing", "onboard", "seatrial", "zap", "zap_fail",
  "test", "production", "triage", "debug", "rma", "retired",
];

/** @param {string | null | undefined} iso */
export function clock(iso) {
  return iso ? iso.slice(11, 19) : "";
}

/** @param {string | null | undefined} iso */
export function moment(iso) {
  return iso ? `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC` : "";
}

/** @param {number | null | undefined} seconds */
export function span(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "";
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

// Measured against the server's clock: the browser's may be wrong.
/** @param {string | null | undefined} iso @param {string | null | undefined} now */
export function since(iso, now) {
  return iso && now ? span((Date.parse(now) - Date.parse(iso)) / 1000) : "";
}

/** @param {string | null | undefined} name */
export function plain(name) {
  return (name || "").replaceAll("_", " ");
}

/** @param {number | null | undefined} number */
export function count(number) {
  return Number(number || 0).toLocaleString("en");
}

/** @param {number} number @param {string} noun */
export function counted(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}
