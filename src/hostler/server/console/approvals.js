// What waits for a second person: all that one request led to is one card and one decision; below, every approval for itself.
import { ActButton, act, may } from "./acts.js";
import { useList } from "./lists.js";
import { NodeLink, Page } from "./pages.js";
import { me } from "./state.js";
import { Table } from "./table.js";
import { html } from "./ui.js";
import { count, moment, plain } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const NODES_SHOWN = 24;
/** @type {[string, string][]} */
const ANSWERS = [["approve-request", "Approve"], ["deny-request", "Deny"], ["withdraw-request", "Withdraw"]];

/** @type {import("./types.js").Column[]} */
const COLUMNS = [
  { key: "id", title: "approval", of: (row) => row.id },
  { key: "request", title: "request", of: (row) => row.request },
  { key: "text", title: "what is asked for", of: (row) => row.text },
  { key: "person", title: "by", of: (row) => row.person },
  { key: "reason", title: "reason", of: (row) => row.reason },
  { key: "why", title: "why a second person", of: (row) => row.why },
  { key: "disturbs", title: "nodes", of: (row) => row.disturbs, number: true },
  { key: "gpus", title: "GPUs", of: (row) => row.gpus, number: true },
  { key: "expires", title: "until", of: (row) => row.expires, show: (row) => moment(row.expires) },
  { key: "acts", title: "acts", acts: true, of: () => "", show: (row) => html`<span class="buttons noprint">
    ${answersFor(row.person).map(([verb, label]) => html`<${ActButton} verb=${verb} target=${row.id} named=${row.id} label=${label} />`)}</span>` },
];

export function Approvals() {
  const found = useList("/approvals");
  return html`<${Page} title="Approvals" about="What waits for a second person. What one person asked for at once is one decision.">
    ${requests(found.items ?? []).map((asked) => html`<${Request} key=${asked.id} asked=${asked} />`)}
    <h2>One by one</h2>
    <${Table} name="approvals" columns=${COLUMNS} found=${found} id=${(/** @type {Row} */ row) => row.id} cli="hostler approval list" /><//>`;
}

// Who asked may only withdraw, everybody else approve or deny; the server holds everyone to it.
/** @param {string} person */
function answersFor(person) {
  const own = me.value?.name.toLowerCase() === person.toLowerCase();
  return ANSWERS.filter(([verb]) => own === (verb === "withdraw-request"));
}

// The requests in their order, each with the approvals that it led to.
/** @param {Row[]} rows */
function requests(rows) {
  /** @type {Map<string, Row[]>} */
  const found = new Map();
  for (const row of rows) found.set(row.request, [...(found.get(row.request) ?? []), row]);
  return [...found].map(([id, approvals]) => ({ id, approvals }));
}

/** @param {{ asked: { id: string, approvals: Row[] } }} props */
function Request({ asked }) {
  const { approvals } = asked;
  const [first] = approvals;
  const nodes = [...new Set(approvals.flatMap((row) => row.nodes))];
  const sum = (/** @type {string} */ name) => approvals.reduce((total, row) => total + row[name], 0);
  const until = approvals.map((row) => row.expires).sort()[0];
  const named = approvals.length > 1 ? `${approvals.length} approvals` : first.id;
  const how = Object.entries(first.act).filter(([name]) => name !== "verb").map(([name, value]) => (value === true ? plain(name) : `${plain(name)} ${value}`)).join(", ");
  return html`
    <article class="chain open request" aria-labelledby=${`request-${asked.id}`}>
      <h3 id=${`request-${asked.id}`}>${first.person} asks to ${first.verb.replaceAll("-", " ")} ${where(approvals)}</h3>
      <dl>
        <dt>reason</dt><dd>${first.reason}</dd>
        <dt>why a second person</dt><dd>${[...new Set(approvals.map((row) => row.why))].join("; ")}</dd>
        <dt>would disturb</dt><dd>${count(sum("disturbs"))} nodes, ${count(sum("gpus"))} GPUs${pools(approvals)}</dd>
        ${how && html`<dt>how</dt><dd>${how}</dd>`}
        ${first.configuration && html`<dt>configuration</dt><dd><a href="/policy"><code>${first.configuration.slice(0, 12)}</code></a></dd>`}
        <dt>asked</dt><dd>${moment(first.asked)}, until ${moment(until)}</dd>
      </dl>
      ${nodes.length > 0 && html`<p class="quiet">${nodes.slice(0, NODES_SHOWN).map((id) => html`<${NodeLink} id=${id} /> `)}${sum("disturbs") > NODES_SHOWN && html`and ${count(sum("disturbs") - NODES_SHOWN)} more`}</p>`}
      <div class="buttons noprint">${answersFor(first.person).filter(([verb]) => may(verb)).map(([verb, label]) => html`
        <button onClick=${() => act({ verb, target: first.id, targets: approvals.map((row) => row.id), named })}>${label}${approvals.length > 1 ? ` all ${approvals.length}` : ""}</button>`)}</div>
    </article>`;
}

/** @param {Row[]} approvals */
function where(approvals) {
  const [first] = approvals;
  if (approvals.length > 1) return `${approvals.length} targets`;
  return first.target === "nodes" ? `${count(first.disturbs)} nodes` : first.target;
}

/** @param {Row[]} approvals */
function pools(approvals) {
  /** @type {Map<string, number>} */
  const total = new Map();
  for (const row of approvals) for (const [pool, number] of Object.entries(row.pools)) total.set(pool, (total.get(pool) ?? 0) + number);
  const told = [...total].map(([pool, number]) => `${count(number)} of ${pool ? `pool ${pool}` : "no pool"}`);
  return told.length ? `: ${told.join(", ")}` : "";
}
