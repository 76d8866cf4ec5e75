// One node: where it stands, what it waits for, why (chains from evidence to outcome), and its history as it happens.
import { Banners } from "./banners.js";
import { html } from "./ui.js";
import { NodeActs } from "./acts.js";
import { Checklist } from "./checklist.js";
import { Drill } from "./drill.js";
import { History } from "./history.js";
import { Lanes } from "./lanes.js";
import { lifecycle, missing, node, opened, status, story } from "./state.js";
import { Blocker } from "./ways.js";
import { SEVERITIES, clock, moment, plain, since, span } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const MAIN = ["registered", "initializing", "onboard", "seatrial", "zap", "test", "production"];
const ASIDE = ["zap_fail", "triage", "debug", "rma"];

export function Node() {
  const seen = node.value;
  const now = status.value?.now;
  if (missing.value) return html`<main class="page"><h1>${opened()}</h1><p class="banner warning" role="alert">${missing.value}</p><p><a href=${`/nodes?q=${encodeURIComponent(opened())}`}>Look for it among all nodes</a></p></main>`;
  if (!seen || !story.value) return html`<main class="node"><p class="loading">Reading ${opened()} …</p></main>`;
  return html`
    <main class="node">
      <${Banners} now=${status.value} />
      <${Head} seen=${seen} now=${now} />
      <${Lanes} id=${seen.node.id} now=${now} />
      <section class="story" aria-label="Why it is where it is">
        <${ActsNext} />
        <${Failures} now=${now} />
        <${Waiting} now=${now} />
        <${Checklist} seen=${seen} />
        <${Drill} seen=${seen} />
        <h2>Why</h2>
        ${story.value.chains.length === 0 && html`<p class="quiet">Nothing has ailed it.</p>`}
        ${story.value.chains.map((/** @type {Row} */ chain) => html`<${Chain} key=${chain.seq} chain=${chain} />`)}
        ${story.value.left_out > 0 && html`<p class="quiet">${story.value.left_out} more chains, notes and waits are in its history alone.</p>`}
      </section>
      <${History} id=${seen.node.id} />
      <${Facts} seen=${seen} now=${now} />
    </main>
  `;
}

/** @param {{ seen: Row, now: Row }} props */
function Head({ seen, now }) {
  const one = seen.node;
  return html`
    <header class="nodehead">
      <div>
        <h1>${one.id}</h1>
        <p>${[seen.hostname, one.sku, place(one.position), one.assignment ? `pool ${one.assignment.pool}` : ""].filter(Boolean).join(" · ")}</p>
      </div>
      <${Track} phase=${one.phase} />
      <${NodeActs} id=${one.id} />
      <p class="stands"><b>${plain(one.phase)}</b> for ${since(one.phase_since, now)}</p>
    </header>
  `;
}

/** @param {Row} position */
function place(position) {
  return position.rack ? `rack ${position.rack}${position.u ? ` U${position.u}` : ""}` : "";
}

/** @param {{ phase: string }} props */
function Track({ phase }) {
  const titles = Object.fromEntries((lifecycle.value?.phases ?? []).map((/** @type {Row} */ row) => [row.phase, row.title]));
  const step = (/** @type {string} */ name) => html`
    <li class=${name === phase ? "now" : ""} aria-current=${name === phase ? "step" : undefined} title=${titles[name] ?? ""}>
      <i class="swatch p-${name.replace("_", "-")}"></i>${plain(name)}
    </li>
  `;
  return html`<ol class="track">${MAIN.map(step)}<li class="gap"></li>${ASIDE.map(step)}</ol>`;
}

function ActsNext() {
  const next = story.value.acts_next;
  if (!next) return null;
  return html`<p class="acts-next" data-who=${next.who}><b>Next</b> ${next.text}</p>`;
}

// What failed last, the newest first: it stands before what the node waits for.
/** @param {{ now: Row }} props */
function Failures({ now }) {
  const failures = story.value.failures ?? [];
  return failures.map((/** @type {Row} */ one) => html`<p class="failed" role="status">${plain(one.what)} ${plain(one.result)} ${since(one.at, now)} ago${one.why && `: ${one.why}`}</p>`);
}

/** @param {{ now: Row }} props */
function Waiting({ now }) {
  const waiting = story.value.waiting;
  if (!waiting) return null;
  return html`
    <div class="waiting" role="status">
      <h2>${plain(waiting.what)} waits for ${since(waiting.since, now)}</h2>
      ${waiting.blockers.map((/** @type {Row} */ b) => html`<${Blocker} blocker=${b} />`)}
    </div>
  `;
}

/** @param {{ chain: Row }} props */
function Chain({ chain }) {
  return html`
    <article class="chain ${chain.open ? "open" : ""}">
      <h3><time>${moment(chain.at)}</time>${chain.outcome}</h3>
      ${chain.conditions.map((/** @type {Row} */ link) => html`<${Link} link=${link} />`)}
      ${chain.remedy && html`<${Remedy} remedy=${chain.remedy} />`}
      ${chain.waits.map((/** @type {Row} */ one) => html`<p class="waited">waited since ${moment(one.since)}${one.seconds === null ? ", still" : `, ${Math.round(one.seconds)} s`}: ${one.reasons.join("; ")}</p>`)}
      ${chain.operations.length > 0 && html`
        <table class="acts"><tbody>${chain.operations.map((/** @type {Row} */ act) => html`<${Act} act=${act} />`)}</tbody></table>
      `}
    </article>
  `;
}

/** @param {{ link: Row }} props */
function Link({ link }) {
  return html`
    <div class="link">
      <p><i class="swatch s-${SEVERITIES[link.severity]}"></i><b>${link.type}</b>${link.part && ` on ${link.part}`}
        ${link.count > 1 && html`<small> ${link.count} times</small>`}
        ${link.unknown && html`<small> unknown since ${clock(link.unknown)}: who saw it is silent</small>`}
        ${link.cleared && html`<small> cleared ${clock(link.cleared)} by ${link.cleared_by}</small>`}</p>
      ${link.evidence.map((/** @type {Row} */ e) => html`<code>${clock(e.at)} ${e.source}: ${e.text}</code>`)}
      ${link.shadows.map((/** @type {Row} */ told) => html`<p class="quiet">${told}</p>`)}
    </div>
  `;
}

/** @param {{ remedy: Row }} props */
function Remedy({ remedy }) {
  const running = remedy.state === "running";
  return html`
    <div class="remedy">
      <p>${remedy.rule && html`rule <b>${remedy.rule}</b> → `}<b>${remedy.name}</b> <span class="tag">${plain(remedy.act_class)}</span>
        ${remedy.config && html`<small> configuration ${remedy.config.slice(0, 12)}</small>`}
        ${remedy.approved_by && html`<small> approved by ${remedy.approved_by}</small>`}</p>
      <ol class="steps">
        ${remedy.steps.map(
          (/** @type {Row} */ step, /** @type {Row} */ n) => html`<li class=${n < remedy.index || remedy.result === "done" ? "done" : n === remedy.index && running ? "now" : ""}>${plain(step)}</li>`,
        )}
      </ol>
      ${(remedy.unproven ?? []).map((/** @type {string} */ one) => html`<p><small>unproven: ${one}</small></p>`)}
    </div>
  `;
}

/** @param {{ act: Row }} props */
function Act({ act }) {
  const result = act.result || "under way";
  return html`
    <tr class="r-${act.result || "open"}">
      <td><time>${clock(act.started)}</time></td><td>${plain(act.kind)}</td><td>${plain(result)}</td>
      <td class="number">${span(act.seconds)}</td><td>${act.detail}
        ${act.looked.length > 0 && html`<details><summary>${act.looked.length} looks</summary>
          ${act.looked.map((/** @type {Row} */ look) => html`<p class="quiet">${look}</p>`)}</details>`}</td>
    </tr>
  `;
}

/** @param {{ seen: Row, now: Row }} props */
function Facts({ seen, now }) {
  const one = seen.node;
  const rows = [
    ["power", seen.power],
    ["agent", seen.agent.last_heard ? `heard ${since(seen.agent.last_heard, now)} ago ${seen.agent.version}` : "not heard"],
    ["serial", binding(one, "serial")],
    ["BMC", binding(one, "bmc")],
    ["tenant", one.assignment?.tenant],
    ["in production since", moment(one.handover)],
    ["boot", one.boot_id],
    ["workloads", seen.workloads === null ? "unknown" : seen.workloads.map((/** @type {Row} */ w) => w.id).join(", ") || "none"],
    ["cordoned by", one.cordons.join(", ")],
  ].filter(([, value]) => value);
  return html`
    <aside>
      <section><h2>Node</h2><dl>${rows.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl></section>
      ${seen.holds.length > 0 && html`
        <section><h2>Holds</h2><ul class="waits">${seen.holds.map((/** @type {Row} */ h) => html`<li><div><b>${h.owner}</b> <span class="tag">${plain(h.kind)}</span></div><p>${h.reason}</p></li>`)}</ul></section>
      `}
      ${seen.tickets.length > 0 && html`
        <section><h2>Tickets</h2><ul class="waits">${seen.tickets.map((/** @type {Row} */ t) => html`<li><div><b>${t.id}</b></div><p>${t.summary}</p></li>`)}</ul></section>
      `}
      ${one.checks.length > 0 && html`
        <section><h2>Checks</h2><table><tbody>${one.checks.map((/** @type {Row} */ c) => html`<tr><td>${plain(c.profile)}</td><td class="v-${c.verdict}">${plain(c.verdict)}</td><td class="number">${clock(c.at)}</td></tr>`)}</tbody></table></section>
      `}
      ${seen.parts.length > 0 && html`
        <section><h2>Parts <small>${seen.parts.length}</small></h2><table><tbody>${seen.parts.map((/** @type {Row} */ p) => html`<tr><td>${p.slot || p.kind}</td><td>${p.model}</td><td class="number"><a href=${`/parts/${encodeURIComponent(p.serial)}`}>${p.serial}</a></td></tr>`)}</tbody></table></section>
      `}
    </aside>
  `;
}

/** @param {Row} one @param {string} kind */
function binding(one, kind) {
  return one.bindings.find((/** @type {Row} */ b) => b.kind === kind && !b.until)?.value;
}
