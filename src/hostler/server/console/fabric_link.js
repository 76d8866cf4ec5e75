// One designed cable: how it was found, what both its ends read, what fails there, and what its parts have been through.
import { Page, Reach } from "./pages.js";
import { nodePath } from "./router.js";
import { html } from "./ui.js";
import { moment, plain, since } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const READINGS = [
  ["state", (/** @type {Row} */ end) => end.state],
  ["link downed", (/** @type {Row} */ end) => end.link_downed],
  ["symbol errors", (/** @type {Row} */ end) => end.symbol_errors],
  ["module °C", (/** @type {Row} */ end) => end.temperature_c],
  ["raw error rate of each lane", (/** @type {Row} */ end) => end.lane_ber.map((/** @type {Row} */ one) => one.toExponential(1)).join(" ")],
  ["light received, dBm", (/** @type {Row} */ end) => end.rx_dbm.join(" ")],
  ["module", (/** @type {Row} */ end) => end.module],
  ["cable", (/** @type {Row} */ end) => end.cable],
];

/** @param {{ page: Row, back: Row, cli: Row, now: Row }} props */
export function LinkFacts({ page, back, cli, now }) {
  const { link, fault } = page;
  return html`<${Page} title=${`${link.a} to ${link.z}`} about=${`${plain(link.condition)} when the last whole validation saw it, ${since(link.seen, now)} ago`}>
    <nav aria-label="Around the link"><a href=${back}>Back</a>${link.node && html`<a href=${nodePath(link.node)}>Node ${link.node}</a>`}</nav>
    <p><code class="cli">${cli}</code></p>
    ${fault && html`<p class="banner warning" role="status">${plain(fault.check)} (${fault.grade}) since ${moment(fault.since)}: ${fault.what}${fault.ticket ? `, ticket ${fault.ticket}` : fault.waits ? `, ${fault.waits}` : ""}</p>`}
    ${page.findings.map((/** @type {Row} */ one) => html`<p class="banner warning" role="status"><a href=${`/fabrics/${encodeURIComponent(one.fabric)}?${new URLSearchParams({ finding: one.key })}`}>${one.what}</a></p>`)}
    <div class="scroll" tabindex="0" role="region" aria-label="Both ends of the link">
      <table class="list">
        <thead><tr><th scope="col">of the link</th><th scope="col">${link.a}</th><th scope="col">${link.z}</th></tr></thead>
        <tbody>
          <${Row} name="designed far end" a=${link.z} z=${link.a} />
          <${Row} name="found far end" a=${link.a_found || "no link"} z=${link.z_found || "no link"} />
          <${Row} name="rate, designed and found" a=${rates(link)} z=${rates(link)} />
          ${READINGS.map(([name, of]) => html`<${Row} name=${name} a=${read(page.a, of)} z=${read(page.z, of)} />`)}
          <${Row} name="read" a=${page.a ? since(page.a.read, now) : ""} z=${page.z ? since(page.z.read, now) : ""} />
        </tbody>
      </table>
    </div>
    <h2>History of the link, its cable and its modules</h2>
    ${page.history.length === 0 && html`<p class="quiet">Nothing is recorded of them.</p>`}
    <ol class="timeline">${page.history.map((/** @type {Row} */ row) => html`<li key=${row.seq}><time>${moment(row.at)}</time><div><p>${row.text}</p></div></li>`)}</ol>
    <${Reach} answer=${page} />
  <//>`;
}

/** @param {{ name: string, a: Row, z: Row }} props */
function Row({ name, a, z }) {
  return html`<tr><th scope="row">${name}</th><td>${a}</td><td>${z}</td></tr>`;
}

/** @param {Row} link */
function rates(link) {
  return [link.rate || "not said", link.found_rate || "not told"].join(", ");
}

/** @param {Row} end @param {Row} of */
function read(end, of) {
  if (!end) return "not read";
  const value = of(end);
  return value === null || value === "" ? "not told" : value;
}
