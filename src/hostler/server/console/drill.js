// A node's drill: the button that begins one, and the clock of the last one, from the records of the node.
import { ActButton, may } from "./acts.js";
import { ask } from "./api.js";
import { html, useEffect, useState } from "./ui.js";
import { clock, moment, plain } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const STAGES = ["injected", "seen", "cordoned", "drained", "filled", "returned"];

/** @param {{ seen: Row }} props */
export function Drill({ seen }) {
  const one = seen.node;
  const [last, show] = useState(/** @type {Row | null} */ (null));
  const stands = JSON.stringify([one.drill ?? {}, one.cordons, one.plan?.index ?? -1]);
  const had = Boolean(one.drill);
  useEffect(() => {
    if (had) ask(`/drills/${encodeURIComponent(one.id)}`).then((found) => show(found.items[0] ?? null), () => show(null));
  }, [one.id, stands, had]);
  const runs = had && !one.drill.ended;
  if (!had && !may("start-drill")) return null;
  return html`<section class="drill"><h2>Drill</h2>
    ${last && html`<${Clock} one=${last} />`}
    <div class="buttons">
      ${!runs && one.phase === "production" && html`<${ActButton} verb="start-drill" target=${one.id} named=${one.id} label="Start a drill" />`}
      ${runs && html`<${ActButton} verb="end-drill" target=${one.id} named=${one.id} label="End the drill" />`}
    </div>
  </section>`;
}

/** @param {{ one: Row }} props */
function Clock({ one }) {
  return html`
    <p><b>${plain(one.fault)}</b> ${one.remedy ? "" : "without a remedy "}by ${one.by}, ${moment(one.since)}: ${one.why}</p>
    <table><tbody>${STAGES.map((stage) => html`
      <tr><td>${stage}</td><td class="number">${after(one, stage)}</td><td class="number">${one[stage] ? clock(one[stage]) : ""}</td><td>${beside(one, stage)}</td></tr>`)}
    </tbody></table>
    <p role="status">${one.ended ? `${plain(one.result)}: ${one.detail}` : `runs until ${clock(one.until)} at most`}</p>
  `;
}

// Seconds since it began, "–" where that did not happen.
/** @param {Row} one @param {string} stage */
function after(one, stage) {
  if (!one[stage]) return "–";
  return `${Math.max(0, (Date.parse(one[stage]) - Date.parse(one.since)) / 1000).toFixed(1)} s`;
}

/** @param {Row} one @param {string} stage */
function beside(one, stage) {
  if (stage === "seen" && one.seen) return one.condition;
  if (stage === "cordoned" && one.cordoned) return one.remedies.map(plain).join(", ");
  return stage === "filled" ? one.place : "";
}
