// The first page: is anything braked, how many nodes stand where, who waits for whom, and what stands ready.
import { html } from "./ui.js";
import { Banners } from "./banners.js";
import { Grid } from "./grid.js";
import { Selection } from "./grid_commons.js";
import { AsTable, Controls, Legend } from "./grid_controls.js";
import { momentPath, secondPath } from "./moments.js";
import { NodeLink } from "./pages.js";
import { setQuery } from "./router.js";
import { filter, status } from "./state.js";
import { PHASES, count, counted, plain, since } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

export function Fleet() {
  const now = status.value;
  if (!now) return html`<p class="loading">Reading the fleet …</p>`;
  return html`
    <main class="fleet">
      <h1 class="unseen">Fleet</h1>
      <${Banners} now=${now} />
      <section class="stage" aria-label="Fleet by phase">
        <${Phases} phases=${now.phases} />
        <${Controls} />
        <${Grid} />
        <${Legend} />
        <${AsTable} />
      </section>
      <aside>
        <${Selection} />
        <${Incidents} now=${now} />
        <${Waits} now=${now} />
        <${Conditions} now=${now} />
        <${Pools} now=${now} />
        <${Changes} now=${now} />
      </aside>
    </main>
  `;
}

/** @param {{ phases: Row }} props */
function Phases({ phases }) {
  return html`
    <div class="phases" role="group" aria-label="Nodes by phase; choose one to see only it">
      ${PHASES.filter((phase) => phases[phase] || phase === "production").map(
        (phase) => html`
          <button
            class="phase" aria-pressed=${filter.value === phase}
            onClick=${() => setQuery({ phase: filter.value === phase ? "" : phase })}
          >
            <i class="swatch p-${phase.replace("_", "-")}"></i>
            <b>${count(phases[phase])}</b>
            <span>${plain(phase)}</span>
          </button>
        `,
      )}
    </div>
  `;
}

/** @param {{ now: Row }} props */
function Waits({ now }) {
  return html`
    <section>
      <h2><a href="/waiting">Waiting</a> <small>${count(now.waiting)}</small></h2>
      ${now.waits.length === 0 && html`<p class="quiet">Nobody waits.</p>`}
      <ol class="waits">${now.waits.map((/** @type {Row} */ wait) => html`<${Wait} wait=${wait} now=${now.now} />`)}</ol>
    </section>
  `;
}

/** What the wait has cost so far. @param {Row} wait */
function gpuHours(wait) {
  const unknown = wait.unknown > 0 ? `GPUs of ${count(wait.unknown)} unknown` : "";
  return [wait.unknown < wait.nodes && `${count(Math.round(wait.gpu_hours * 10) / 10)} GPU-hours`, unknown].filter(Boolean).join(", ");
}

/** @param {{ wait: Row, now: Row }} props */
function Wait({ wait, now }) {
  const more = wait.nodes - wait.first.length;
  return html`
    <li>
      <div>
        <span>${wait.first.map((/** @type {string} */ id, /** @type {Row} */ n) => html`${n > 0 && ", "}<${NodeLink} id=${id} />`)}${more > 0 && ` and ${count(more)} more`}</span>
        <time>${since(wait.since, now)}</time>
      </div>
      <p><span class="tag">${plain(wait.what)}</span> ${wait.text}</p>
      <p>${gpuHours(wait)}</p>
      <p><small>ends when ${wait.ends_when}</small></p>
    </li>
  `;
}

/** @param {{ now: Row }} props */
function Incidents({ now }) {
  if (!now.incidents.length) return null;
  return html`
    <section>
      <h2><a href="/incidents">Incidents</a> <small>${count(now.incidents.length)}</small></h2>
      <ul class="waits incidents">
        ${now.incidents.slice(0, 8).map((/** @type {Row} */ one) => html`<${Incident} one=${one} now=${now.now} />`)}
      </ul>
    </section>
  `;
}

/** @param {{ one: Row, now: Row }} props */
function Incident({ one, now }) {
  const more = one.nodes - one.first.length;
  return html`
    <li>
      <div><b>${one.blames}</b><span class="tag">${one.state}</span><time>${since(one.opened, now)}</time></div>
      <p>${one.conditions.join(", ")} on ${count(one.nodes)} of ${count(one.size)} nodes</p>
      <p><small>${one.first.map((/** @type {string} */ id, /** @type {Row} */ n) => html`${n > 0 && ", "}<${NodeLink} id=${id} />`)}${more > 0 && ` and ${count(more)} more`} · ticket ${one.ticket}</small></p>
    </li>
  `;
}

/** @param {{ now: Row }} props */
function Conditions({ now }) {
  const found = Object.entries(now.conditions);
  const number = found.reduce((sum, [, of]) => sum + of, 0);
  return html`
    <section>
      <h2>Conditions <small>${counted(number, "condition")} on ${counted(now.ailing, "node")}</small></h2>
      ${found.length === 0 && html`<p class="quiet">None stands.</p>`}
      <table><tbody>
        ${found.slice(0, 8).map(([type, number]) => html`<tr><td><a href=${`/nodes?condition=${encodeURIComponent(type)}`}>${type}</a>${now.unknown?.[type] && html`<small title="whoever saw them is silent"> ${count(now.unknown[type])} unknown</small>`}</td><td class="number">${count(number)}</td></tr>`)}
      </tbody></table>
    </section>
  `;
}

/** @param {{ now: Row }} props */
function Pools({ now }) {
  if (!now.pools.length) return null;
  return html`
    <section>
      <h2><a href="/pools">Pools</a></h2>
      <table>
        <thead><tr><th>pool</th><th class="number">healthy</th><th class="number">unknown</th><th class="number">delivered</th><th class="number">reserved</th><th class="number">spares</th></tr></thead>
        <tbody>
          ${now.pools.map(
            (/** @type {Row} */ row) => html`
              <tr class=${row.healthy < row.reserved ? "short" : ""}>
                <td>${row.pool.name}${row.healthy < row.reserved && html` <span class="tag">short</span>`}</td>
                <td class="number">${count(row.healthy)}</td>
                <td class="number">${count(row.unknown)}</td>
                <td class="number">${count(row.delivered)}</td>
                <td class="number">${count(row.reserved)}</td>
                <td class="number">${count(row.spares)}</td>
              </tr>
            `,
          )}
        </tbody>
      </table>
    </section>
  `;
}

/** @param {{ now: Row }} props */
function Changes({ now }) {
  const asked = folded(now.changes.latest);
  const moves = now.changes.moves;
  if (!asked.length && !moves.length) return null;
  return html`
    <section>
      <h2><a href="/events">Changes in 24 h</a></h2>
      <ol class="changes">
        ${moves.slice(0, 8).map((/** @type {Row} */ row) => html`<li><time><a href=${momentPath(subject(row), row.at)}>${row.at.slice(11, 16)}</a></time><${NodeLink} id=${subject(row)} /><span title=${row.text}>${row.text}</span></li>`)}
        ${asked.slice(0, 6).map(({ row, times }) => html`<li><time><a href=${secondPath(row.at)}>${row.at.slice(11, 16)}</a></time><span title=${row.text}>${row.text}</span>${times > 1 && html`<small>${count(times)} times</small>`}</li>`)}
      </ol>
    </section>
  `;
}

/** @param {Row} row */
function subject(row) {
  return row.event.node ?? row.event.condition.node;
}

// What one person asked for again and again is one line, with the latest of it.
/** @param {Row[]} rows */
function folded(rows) {
  const kinds = new Map();
  for (const row of rows) {
    const intent = row.event.intent;
    const kind = intent ? `${intent.person} ${intent.act.verb}` : row.text;
    if (kinds.has(kind)) kinds.get(kind).times += 1;
    else kinds.set(kind, { row, times: 1 });
  }
  return [...kinds.values()];
}
