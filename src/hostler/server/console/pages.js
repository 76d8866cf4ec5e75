// Pages that are tables: nodes, who waits, tickets, incidents, pools.
import { ActButton, verbs } from "./acts.js";
import { NODE_WAYS, SeveralActs, shared } from "./commons.js";
import { useList } from "./lists.js";
import { nodePath, route, setQuery } from "./router.js";
import { status } from "./state.js";
import { Table } from "./table.js";
import { html, useState } from "./ui.js";
import { PHASES, SEVERITIES, moment, plain, since } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

/** @param {{ id: string }} props */
export function NodeLink({ id }) {
  return html`<a href=${nodePath(id)}>${id}</a>`;
}

export function now() {
  return status.value?.now;
}

/** @param {{ title: string, about: string, children: unknown }} props */
export function Page({ title, about, children }) {
  return html`<main class="page"><h1>${title}</h1>${about && html`<p class="quiet">${about}</p>`}${children}</main>`;
}

// How far back a history reaches, where that is not to its beginning.
/** @param {{ answer: Row }} props */
export function Reach({ answer }) {
  if (!answer.cursor && !answer.archived) return null;
  const text = answer.cursor ? `It reaches back to ${moment(answer.history.at(-1).at)}; earlier records are on the API's next page (before=${answer.cursor}).` : `It reaches back as far as the journal: ${answer.archived}.`;
  return html`<p class="quiet">${text}</p>`;
}

const SELECTORS = ["phase", "pool", "rack", "sku", "condition", "tag", "selector", "q"];

/** @type {Record<string, string[]>} */
const CHOICES = {
  phase: PHASES,
  claim: ["mine", "nobody"],
  chain: ["acts", "refusals"],
  result: ["done", "waits", "dry_run", "refused", "failed"],
};
/** @type {Record<string, string>} */
const TITLES = { claim: "claimed by", q: "id, name or serial", result: "outcome", since: "since (2026-01-31T08:00:00Z)", until: "until", selector: "selector: site=a,rack!=r1" };

/** @param {{ names: string[], titles?: Record<string, string> }} props */
export function Filters({ names, titles = {} }) {
  const query = route.value.query;
  const said = { ...TITLES, ...titles };
  const field = (/** @type {string} */ name) => CHOICES[name]
    ? html`<label>${said[name] ?? name}<select value=${query[name] ?? ""} onChange=${(/** @type {Row} */ event) => setQuery({ [name]: event.target.value })}>
        <option value="">any</option>${CHOICES[name].map((/** @type {Row} */ one) => html`<option value=${one}>${plain(one)}</option>`)}</select></label>`
    : html`<label>${said[name] ?? name}<input value=${query[name] ?? ""} onChange=${(/** @type {Row} */ event) => setQuery({ [name]: event.target.value.trim() })} /></label>`;
  return html`<form class="filters" role="search" onSubmit=${(/** @type {Row} */ event) => event.preventDefault()}>${names.map(field)}</form>`;
}

/** @param {string[]} names */
export function selected(names) {
  return Object.fromEntries(names.map((/** @type {string} */ name) => [name, route.value.query[name] ?? ""]));
}

/** @param {string} command @param {string[]} names */
export function listed(command, names) {
  const { q: text, selector, ...query } = selected(names);
  const given = [...Object.entries(query).filter(([, value]) => value).map((one) => one.join("=")), ...(selector ? [selector] : [])];
  return `hostler ${command}${given.length ? ` -l ${quoted(given.join(","))}` : ""}${text ? ` --search ${quoted(text)}` : ""}`;
}

/** @param {string} word */
export function quoted(word) {
  return /[^\w.:=,-]/.test(word) ? `'${word.replaceAll("'", "'\\''")}'` : word;
}

/** @type {import("./types.js").Column} */
export const GRAVEST = {
  key: "severity", title: "gravest", of: (row) => row.severity,
  show: (row) => (row.severity < 0 ? "" : html`<i class="swatch s-${SEVERITIES[row.severity]}"></i> ${SEVERITIES[row.severity]}`),
};

/** @type {import("./types.js").Column[]} */
const NODE_COLUMNS = [
  { key: "id", title: "node", of: (row) => row.id, show: (row) => html`<${NodeLink} id=${row.id} />` },
  { key: "phase", title: "phase", of: (row) => row.phase, show: (row) => html`<i class="swatch p-${row.phase.replace("_", "-")}"></i> ${plain(row.phase)}` },
  { key: "since", field: "phase_since", title: "since", of: (row) => row.phase_since, show: (row) => since(row.phase_since, now()) },
  { key: "pool", title: "pool", of: (row) => row.pool },
  { key: "tenant", title: "tenant", of: (row) => row.tenant },
  { key: "sku", title: "SKU", of: (row) => row.sku },
  { key: "rack", field: "position.rack", title: "rack", of: (row) => row.position.rack },
  { key: "u", field: "position.u", title: "U", of: (row) => row.position.u || "", number: true },
  { key: "serial", title: "serial", of: (row) => row.serial },
  GRAVEST,
  { key: "conditions", title: "conditions", of: (row) => row.conditions.join(", ") },
  { key: "waiting", title: "waits for", of: (row) => row.waiting },
];

export function Nodes() {
  const found = useList("/nodes", selected(SELECTORS));
  const [chosen, choose] = useState(new Set());
  const ids = [...chosen];
  return html`
    <${Page} title="Nodes" about="Every node. Choose several to compare them, or to act on them as one.">
      <${Filters} names=${SELECTORS} />
      ${ids.length > 0 && html`<div class="buttons" role="group" aria-label="Act on the chosen nodes">
        <b>${ids.length} chosen</b>
        <${SeveralActs} ids=${ids} />
        <${Common} rows=${found.items?.filter((row) => chosen.has(row.id)) ?? []} />
      </div>`}
      <${Table} name="nodes" columns=${NODE_COLUMNS} found=${found} id=${(/** @type {Row} */ row) => row.id} cli=${listed("node list", SELECTORS)}
        chosen=${chosen} choose=${verbs.value.length ? choose : undefined} />
    <//>
  `;
}

// What chosen nodes have in common, in one line.
/** @param {{ rows: Row[] }} props */
function Common({ rows }) {
  if (rows.length < 2) return null;
  const found = shared(rows, NODE_WAYS, 2).map(({ way, value, nodes }) => `${way} ${value} ${nodes} of ${rows.length}`);
  return html`<span class="quiet">in common: ${found.join(" · ") || "nothing"}</span>`;
}

export function Waiting() {
  const names = ["pool", "rack", "q"];
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "node", title: "node", of: (row) => row.node, show: (row) => html`<${NodeLink} id=${row.node} />` },
    { key: "what", title: "what waits", of: (row) => plain(row.what) },
    { key: "since", title: "for", of: (row) => row.since, show: (row) => since(row.since, now()) },
    { key: "gpu_hours", title: "GPU-hours", of: (row) => row.gpu_hours, number: true },
    { key: "text", field: "blockers", title: "because", of: (row) => row.blockers.join("; ") },
    { key: "ends", field: "ends_when", title: "ends when", of: (row) => row.ends_when.join("; ") },
  ];
  return html`<${Page} title="Waiting" about="Who waits, since when, for whom, and what ends it.">
    <${Filters} names=${names} />
    <${Table} name="waiting" columns=${columns} found=${useList("/waiting", selected(names))} id=${(/** @type {Row} */ row) => row.node} cli=${listed("node waiting", names)} /><//>`;
}

export function Tickets() {
  const { node, claim } = selected(["node", "claim"]);
  const found = useList("/tickets", selected(["node", "rack", "pool", "claim"]));
  const cli = `${listed("ticket list", ["rack", "pool"])}${node && ` --node ${quoted(node)}`}${claim && ` --claim ${claim}`}`;
  const places = useList("/nodes", { rack: route.value.query.rack });
  const where = new Map((places.items ?? []).map((row) => [row.id, row]));
  const rack = (/** @type {Row} */ row) => where.get(row.node)?.position.rack ?? "";
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "rack", title: "rack", of: rack },
    { key: "u", title: "U", of: (row) => where.get(row.node)?.position.u || "", number: true },
    { key: "node", title: "node", of: (row) => row.node, show: (row) => html`<${NodeLink} id=${row.node} />` },
    { key: "hardware", title: "serial there", of: (row) => row.hardware },
    { key: "summary", title: "what is to be done, and how", of: (row) => `${row.summary}${row.action && ` – ${row.action}`}`, show: (row) => html`${row.summary}<p class="quiet">${row.action}</p>` },
    { key: "kind", title: "kind", of: (row) => plain(row.kind) },
    { key: "owner", title: "for", of: (row) => row.owner },
    { key: "opened", title: "open for", of: (row) => row.opened, show: (row) => since(row.opened, now()) },
    { key: "due", field: "due_by", title: "due by", of: (row) => row.due_by ?? "", show: (row) => (row.due_by ?? "").slice(0, 16).replace("T", " ") },
    { key: "outside", title: "outside", of: (row) => row.outside.map((/** @type {Row} */ one) => one.key).join(" "), show: (row) => row.outside.map((/** @type {Row} */ one) => html`<a href=${one.url} rel="noreferrer">${one.key}</a> `) },
    { key: "claimed", field: "claimed_by", title: "claimed by", of: (row) => row.claimed_by },
    { key: "done", field: "done_by", title: "said done", of: (row) => row.done_by },
    { key: "id", title: "ticket", of: (row) => row.id },
    { key: "acts", title: "acts", acts: true, of: () => "", show: (row) => html`<${TicketActs} row=${row} />` },
  ];
  return html`<${Page} title="Tickets" about="Work for people. Begin with the serial number that stands at the machine: it stays dark until the work has ended.">
    <${Filters} names=${["node", "rack", "pool", "claim"]} />
    <${Table} name="tickets" columns=${columns} found=${found} id=${(/** @type {Row} */ row) => row.id} cli=${cli} /><//>`;
}

/** @param {{ row: Row }} props */
function TicketActs({ row }) {
  return html`<span class="buttons noprint">
    <${ActButton} verb="start-work" target=${row.node} named=${row.node} fields=${{ ticket: row.id }} label="Start work" />
    <${ActButton} verb="end-work" target=${row.node} named=${row.node} label="Work ended" />
    ${row.kind === "consent" && html`<${ActButton} verb="consent" target=${row.id} named=${row.id} label="Consent" />`}
    <${ActButton} verb="close-ticket" target=${row.id} named=${row.id} label="Close" />
  </span>`;
}

export function Incidents() {
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "blames", title: "suspected", of: (row) => row.blames },
    { key: "state", title: "state", of: (row) => plain(row.state) },
    { key: "nodes", title: "nodes", of: (row) => row.nodes, show: (row) => `${row.nodes} of ${row.size}`, number: true },
    { key: "conditions", title: "conditions", of: (row) => row.conditions.join(", ") },
    { key: "opened", title: "open for", of: (row) => row.opened, show: (row) => since(row.opened, now()) },
    { key: "owner", title: "for", of: (row) => row.owner },
    { key: "ticket", title: "ticket", of: (row) => row.ticket },
    { key: "acts", title: "acts", acts: true, of: () => "", show: (row) => html`<span class="buttons noprint">
      <${ActButton} verb="treat-individually" target=${row.id} named=${row.id} label="Treat individually" />
      <${ActButton} verb="close-incident" target=${row.id} named=${row.id} label="Close" /></span>` },
  ];
  return html`<${Page} title="Incidents" about="One cause, many nodes: their remedies wait until it is clear.">
    <${Table} name="incidents" columns=${columns} found=${useList("/incidents")} id=${(/** @type {Row} */ row) => row.id} cli="hostler incident list" /><//>`;
}

// Who uses a pool's budget: the nodes that are away, what is done to each, and since when.
/** @param {{ use: Row | null }} props */
function BudgetUsers({ use }) {
  if (!use) return null;
  return html`<span>${use.used} of ${use.limit}${use.missing > 0 && `, ${use.missing} missing`}${use.waiting > 0 && `, ${use.waiting} wait`}</span>
    ${use.users.map((/** @type {Row} */ one) => html`<p><${NodeLink} id=${one.node} /> ${plain(one.doing)} for ${since(one.since, now())}${one.waits_for && html`<small>waits: ${one.waits_for}</small>`}</p>`)}
    ${use.more > 0 && html`<p>and ${use.more} more</p>`}`;
}

export function Pools() {
  const number = (/** @type {string} */ key, /** @type {string} */ title) => ({ key, title, of: (/** @type {Row} */ row) => row[key] ?? "", number: true });
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "name", field: "pool.name", title: "pool", of: (row) => row.pool.name, show: (row) => html`<a href=${`/nodes?pool=${encodeURIComponent(row.pool.name)}`}>${row.pool.name}</a>` },
    { key: "tenant", field: "pool.tenant", title: "tenant", of: (row) => row.pool.tenant },
    { key: "cluster", field: "pool.cluster", title: "cluster", of: (row) => row.pool.cluster },
    ...[["reserved", "reserved"], ["delivered", "delivered"], ["healthy", "healthy"], ["unknown", "unknown"], ["dark", "dark"], ["in_use", "in use"], ["spares", "spares"]].map(([key, title]) => number(key, title)),
    { key: "budget", title: "budget used by", of: (row) => (row.budget ? row.budget.used : ""), show: (row) => html`<${BudgetUsers} use=${row.budget} />` },
    { key: "acts", title: "acts", acts: true, of: () => "", show: (row) => html`<${ActButton} verb="mode" target=${`pool:${row.pool.name}`} named=${row.pool.name} label="Change mode" />` },
  ];
  return html`<${Page} title="Pools" about="What each pool was promised, what it has, and what works."><${Table} name="pools" columns=${columns} found=${useList("/pools")} id=${(/** @type {Row} */ row) => row.pool.name} cli="hostler pool list" /><//>`;
}
