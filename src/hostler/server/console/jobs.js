// Customers' running jobs: the nodes that each has, what ails those, and what waits for its end.
import { useList } from "./lists.js";
import { Filters, GRAVEST, NodeLink, Page, listed, now, quoted, selected } from "./pages.js";
import { route } from "./router.js";
import { Table } from "./table.js";
import { html } from "./ui.js";
import { plain, since } from "./words.js";

/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Column} Column */

const NAMES = ["pool", "rack", "condition", "selector"];
const NODES_NAMED = 4;

export function Jobs() {
  const { job = "" } = route.value.query;
  return job ? html`<${Job} name=${job} />` : html`<${List} />`;
}

function List() {
  const found = useList("/jobs", selected(NAMES));
  return html`<${Page} title="Jobs" about="Customers' jobs that run now, as their schedulers tell them. Filters are of nodes: a job is listed that has one of them, with all of its nodes.">
    <${Filters} names=${NAMES} />
    <${Untold} clusters=${found.last?.untold ?? []} />
    <${Table} name="jobs" columns=${JOBS} found=${found} id=${(/** @type {Row} */ row) => row.id} cli=${listed("job list", NAMES)} /><//>`;
}

/** @param {{ name: string }} props */
function Job({ name }) {
  const found = useList("/jobs", { job: name });
  const row = found.items?.[0];
  const places = found.items && { ...found, items: row?.places ?? [] };
  return html`<${Page} title=${name} about="A job that runs now, and its work on each of its nodes.">
    <p><a href="/jobs">All jobs</a></p>
    ${found.items && !row && html`<p>No job of this name runs: it has ended, or its cluster has not told of it. <code>hostler job list</code></p>`}
    ${row && html`<dl class="plan">${facts(row).map(([title, value]) => html`<dt>${title}</dt><dd>${value}</dd>`)}</dl>
      ${row.waiting.map((/** @type {Row} */ one) => html`<p>${plain(one.what)} of <${NodeLink} id=${one.node} /> waits for its end, for ${since(one.since, now())}.</p>`)}`}
    <${Table} name="places" columns=${PLACES} found=${places ?? found} id=${(/** @type {Row} */ one) => `${one.node} ${one.work}`} cli=${`hostler job show ${quoted(name)}`} /><//>`;
}

/** @param {{ clusters: Row[] }} props */
function Untold({ clusters }) {
  return clusters.map((one) => html`<p>What runs on ${one.nodes} ${one.nodes === 1 ? "node" : "nodes"} of cluster ${one.cluster} is unknown${one.why && `: ${one.why}`}.</p>`);
}

/** @param {Row} row @returns {[string, string][]} */
function facts(row) {
  return [
    ["customer", row.tenant || "not told"],
    ["asked for consent", row.owner || "the pool's owner"],
    ["may be ended", plain(row.work_class)],
    ["agreed", row.agreed_after_s === null ? "no" : `when a drain has waited ${row.agreed_after_s} s`],
    ["held by", row.held_by || "nothing"],
    ["runs for", row.began ? since(row.began, now()) : "its scheduler does not say"],
    ["progress", row.progress || "not told"],
  ];
}

/** @type {Column[]} */
const JOBS = [
  { key: "id", title: "job", of: (row) => row.id, show: (row) => html`<a href=${`/jobs?job=${encodeURIComponent(row.id)}`}>${row.id}</a>` },
  { key: "tenant", title: "customer", of: (row) => row.tenant },
  { key: "nodes", title: "nodes", of: (row) => row.nodes.length, show: (row) => html`${row.nodes.length}: ${row.nodes.slice(0, NODES_NAMED).map((/** @type {string} */ id) => html`<${NodeLink} id=${id} /> `)}${row.nodes.length > NODES_NAMED && "…"}` },
  { key: "gpus", title: "GPUs", of: (row) => row.gpus ?? "", number: true },
  { key: "class", field: "work_class", title: "may be ended", of: (row) => plain(row.work_class) },
  { key: "began", title: "for", of: (row) => row.began ?? "", show: (row) => (row.began ? since(row.began, now()) : "") },
  { key: "ailing", title: "ailing nodes", of: (row) => row.ailing.join(", ") },
  { key: "conditions", title: "conditions", of: (row) => row.conditions.join(", ") },
  { key: "waiting", title: "waits for its end", of: (row) => row.waiting.map((/** @type {Row} */ one) => `${plain(one.what)} of ${one.node}`).join(", ") },
  { key: "progress", title: "progress", of: (row) => row.progress },
  { key: "pools", title: "pools", of: (row) => row.pools.join(", ") },
];

/** @type {Column[]} */
const PLACES = [
  { key: "node", title: "node", of: (row) => row.node, show: (row) => html`<${NodeLink} id=${row.node} />` },
  { key: "rack", title: "rack", of: (row) => row.rack },
  { key: "gpus", title: "GPUs", of: (row) => row.gpus ?? "", number: true },
  { key: "parts", title: "parts", of: (row) => row.parts?.join(", ") ?? "not told" },
  GRAVEST,
  { key: "conditions", title: "conditions", of: (row) => row.conditions.join(", ") },
  { key: "cordoned", title: "cordoned", of: (row) => (row.cordoned ? "cordoned" : "") },
  { key: "work", title: "work", of: (row) => row.work },
];
