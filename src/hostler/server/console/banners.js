// What nobody may overlook, on every page: the controller, the storm brake, incidents, pauses.
import { html } from "./ui.js";
import { count, moment } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const BANNERS = 3;

/** @param {Row} one */
function blamed(one) {
  const held = one.state === "individual" ? "treated each by itself" : one.state === "overdue" ? `waits for ${one.owner}` : "held";
  return `Incident ${one.id}: ${one.blames} is suspected, ${count(one.nodes)} of ${count(one.size)} nodes ${held} since ${moment(one.opened)} (ticket ${one.ticket})`;
}

/** @param {{ now: Row }} props */
export function Banners({ now }) {
  if (!now) return null;
  const told = [];
  if (!now.ok) told.push(["critical", `The controller does not decide (${now.controller}): ${now.why}`]);
  if (now.brake) told.push(["critical", `Storm brake latched since ${moment(now.brake_since)}: ${now.brake}`]);
  if (now.restored) told.push(["critical", `Restored: ${now.restored}`]);
  if (now.doubt) told.push(["critical", `The clock is in doubt: ${now.doubt}`]);
  for (const one of now.incidents.slice(0, BANNERS)) told.push([one.state === "overdue" ? "critical" : "warning", blamed(one)]);
  const more = now.incidents.length - BANNERS;
  if (more > 0) told.push(["warning", `${count(more)} more incidents are open`]);
  if (now.rollout) told.push(["warning", `Rollout ${now.rollout}`]);
  if (now.rollout_stopped) told.push(["warning", now.rollout_stopped]);
  for (const text of now.approvals.slice(0, BANNERS)) told.push(["warning", text[0].toUpperCase() + text.slice(1)]);
  const others = now.approvals.length - BANNERS;
  if (others > 0) told.push(["warning", `${count(others)} more wait for a second person`]);
  for (const one of now.remediators.filter((/** @type {Row} */ other) => !other.accepted_by).slice(0, BANNERS))
    told.push(["critical", `${one.name} remediates nodes of cluster ${one.cluster} too: no disruption there until it is removed or accepted (hostler doctor)`]);
  if (now.paused.length) told.push(["warning", `Disruption is paused for ${now.paused.join(", ")}`]);
  return html`<div class="banners">${told.map(([kind, text]) => html`<p class="banner ${kind}" role="alert">${text}</p>`)}</div>`;
}
