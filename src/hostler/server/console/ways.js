// Ways out of a wait: an act is a button where the reader may ask for it, a moment or an observation is a line.
import { act, verbs } from "./acts.js";
import { html } from "./ui.js";

/** @typedef {import("./types.js").Row} Row */

// In the place of what only the person who acts knows: the dialog asks for it.
const TO_SAY = "…";

/** @param {{ blocker: Row }} props */
export function Blocker({ blocker }) {
  return html`
    <p>${blocker.text}</p>
    <ul class="ways">${blocker.ways.map((/** @type {Row} */ way) => html`<li><${Way} way=${way} /></li>`)}</ul>
  `;
}

/** @param {{ way: Row }} props */
function Way({ way }) {
  if (way.way === "observed") return html`<small>ends when ${way.text}</small>`;
  if (way.way !== "act") return html`<small>${way.text}</small>`;
  const { verb, ...given } = way.act;
  const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== TO_SAY));
  const offered = verbs.value.find((one) => one.verb === verb && !one.route);
  if (!offered) return html`<small>${way.text}</small>`;
  return html`<button title=${offered.help} onClick=${() => act({ verb, target: way.target, named: way.target, fields })}>${verb.replaceAll("-", " ")}</button> <small>${way.text}</small>`;
}
