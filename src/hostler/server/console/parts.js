// Parts by serial number: those that are found, and of one the nodes it has been in and the returns that name it.
import { useAnswer, useList } from "./lists.js";
import { Filters, NodeLink, Page, Reach, now, quoted, selected } from "./pages.js";
import { route } from "./router.js";
import { whole } from "./state.js";
import { Table } from "./table.js";
import { html } from "./ui.js";
import { moment, plain, since } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const NAMES = ["q", "kind", "rack"];
/** @type {import("./types.js").Column[]} */
const PARTS = [
  { key: "serial", title: "serial", of: (row) => row.serial, show: (row) => html`<${PartLink} serial=${row.serial} />` },
  { key: "kind", title: "kind", of: (row) => row.kind },
  { key: "model", title: "model", of: (row) => row.model },
  { key: "node", title: "node", of: (row) => row.node, show: (row) => where(row.node) },
  { key: "slot", title: "slot", of: (row) => row.slot },
  { key: "firmware", title: "firmware", of: (row) => row.firmware ?? "" },
  { key: "since", title: "there for", of: (row) => row.since ?? "", show: (row) => since(row.since, now()) },
];

/** @param {string} serial */
export function partPath(serial) {
  return `/parts/${encodeURIComponent(serial)}`;
}

/** @param {{ serial: string }} props */
export function PartLink({ serial }) {
  return html`<a href=${partPath(serial)}>${serial}</a>`;
}

/** @param {string} node */
function where(node) {
  return node ? html`<${NodeLink} id=${node} />` : "in no node";
}

export function Parts() {
  const serial = route.value.name.trim();
  return serial ? html`<${OnePart} key=${serial} serial=${serial} />` : html`<${AllParts} />`;
}

function AllParts() {
  const query = selected(NAMES);
  const found = useList("/parts", query);
  const same = (/** @type {Row} */ row) => query.q && row.serial.toLowerCase() === query.q.toLowerCase();
  const one = found.items?.find(same)?.serial ?? "";
  return html`<${Page} title="Parts" about="Type a serial number or a piece of it: the part, the nodes it has been in, and the returns that name it. A node's id or name finds its parts.">
    <${Filters} names=${NAMES} titles=${{ q: "serial number, or node", kind: "kind (gpu, nic, drive …)" }} />
    <${Table} name="parts" columns=${PARTS} found=${found} id=${(/** @type {Row} */ row) => row.serial} cli=${command(query)} />
    ${found.items?.length === 0 && query.q && html`<${Nothing} query=${query} />`}
    ${one && html`<${Story} key=${one} serial=${one} />`}<//>`;
}

/** @param {Record<string, string>} query */
function command({ q, kind, rack }) {
  const words = [rack && `-l ${quoted(`rack=${rack}`)}`, kind && `--kind ${quoted(kind)}`, q && `--search ${quoted(q)}`];
  return ["hostler part list", ...words.filter(Boolean)].join(" ");
}

// What to try where a search finds nothing: fewer filters, a shorter piece, or what is recorded of that number.
/** @param {{ query: Record<string, string> }} props */
function Nothing({ query: { q, kind, rack } }) {
  return html`<p>No part has “${q}” in its serial number, and no node in its id, name or serial${kind || rack ? `, among those with ${[kind && `kind ${kind}`, rack && `rack ${rack}`].filter(Boolean).join(" and ")}` : ""}.
    ${(kind || rack) && html` <a href=${`/parts?q=${encodeURIComponent(q)}`}>Search among all parts.</a>`}
    A label's last letters are enough. A part that has gone, and a machine, are found by the whole number: <a href=${partPath(q)}>look up ${q}</a>.</p>`;
}

/** @param {{ serial: string }} props */
function OnePart({ serial }) {
  return html`<${Page} title=${serial}><${Story} serial=${serial} alone=${true} /><//>`;
}

/** @type {import("./types.js").Column[]} */
const PLACES = [
  { key: "node", title: "node", of: (row) => row.node, show: (row) => where(row.node) },
  { key: "slot", title: "slot", of: (row) => row.slot },
  { key: "since", title: "from", of: (row) => row.since ?? "", show: (row) => moment(row.since) || "before it was recorded" },
  { key: "until", title: "until", of: (row) => row.until ?? "", show: (row) => (row.here ? html`<b>now</b>` : moment(row.until) || "not recorded") },
];
const ROLES = /** @type {Record<string, string>} */ ({ returned: "is returned", fitted: "was fitted instead", announced: "is to be fitted" });
/** @type {import("./types.js").Column[]} */
const CASES = [
  { key: "id", title: "return", of: (row) => row.id, show: (row) => (row.result ? row.id : html`<a href=${`/returns?node=${encodeURIComponent(row.node)}`}>${row.id}</a>`) },
  { key: "is", title: "this part", of: (row) => ROLES[row.part_is] },
  { key: "node", title: "node", of: (row) => row.node, show: (row) => where(row.node) },
  { key: "state", title: "state", of: (row) => row.result ?? row.state, show: (row) => (row.result ? `closed: ${plain(row.result)}` : plain(row.state)) },
  { key: "opened", title: "opened", of: (row) => row.opened, show: (row) => moment(row.opened) },
  { key: "closed", title: "closed", of: (row) => row.closed ?? "", show: (row) => moment(row.closed) },
  { key: "fault", title: "fault", of: (row) => row.fault },
  { key: "vendor", title: "vendor case", of: (row) => `${row.vendor} ${row.vendor_case}`.trim() },
  { key: "other", title: "the other part", of: (row) => (row.part_is === "returned" ? row.fitted : row.serial), show: (row) => html`<${Other} serial=${row.part_is === "returned" ? row.fitted : row.serial} />` },
];
/** @type {import("./types.js").Column[]} */
const HISTORY = [
  { key: "at", title: "when", of: (row) => row.at, show: (row) => moment(row.at) },
  { key: "text", title: "what", of: (row) => row.text },
];

/** @param {{ serial: string }} props */
function Other({ serial }) {
  return serial ? html`<${PartLink} serial=${serial} />` : null;
}

// `alone`: it is the page, else it stands below the list that found it.
/** @param {{ serial: string, alone?: boolean }} props */
function Story({ serial, alone = false }) {
  const { answer, problem } = useAnswer(partPath(serial), (record) => Boolean(record?.subjects.includes(serial)));
  if (problem) return html`<p class="banner warning" role="alert">${problem}</p><p><a href=${`/parts?q=${encodeURIComponent(serial)}`}>Search for it among all parts</a></p>`;
  if (!answer) return html`<p class="loading">Reading ${serial} …</p>`;
  const cli = `hostler part get ${quoted(serial)} -o json`;
  const rows = (/** @type {string} */ name) => ({ items: answer[name], problem: "" });
  const node = answer.part?.node || answer.node;
  return html`${alone && html`<p><a href="/parts">All parts</a>${node && html` · <a href=${`/parts?q=${encodeURIComponent(node)}`}>all parts of ${node}</a>`}</p>`}
    <${Standing} answer=${answer} />
    <h2>Nodes over time</h2><${Table} name="places" fixed columns=${PLACES} found=${rows("places")} id=${(/** @type {Row} */ row) => `${row.node} ${row.since} ${row.until}`} cli=${cli} sorting=${false} />
    ${whole.value && html`<h2>Returns to vendors</h2><${Table} name="cases" fixed columns=${CASES} found=${rows("cases")} id=${(/** @type {Row} */ row) => row.id} cli=${cli} sorting=${false} />`}
    <h2>History</h2><${Table} name="history" fixed columns=${HISTORY} found=${rows("history")} id=${(/** @type {Row} */ row) => String(row.seq)} cli=${cli} sorting=${false} /><${Reach} answer=${answer} />`;
}

/** @param {{ answer: Row }} props */
function Standing({ answer: { part, node } }) {
  const rows = [
    ["serial number of", node && html`node <${NodeLink} id=${node} />: of the machine, not of a part in it`],
    ["kind", part?.kind],
    ["model", part?.model],
    ["firmware", part?.firmware],
    ["now", part ? (part.node ? html`in <${NodeLink} id=${part.node} />${part.slot && `, slot ${part.slot}`}` : "in no node") : !node && "not known any more: only its history is left"],
  ];
  return html`<dl class="standing">${rows.filter(([, value]) => value).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}
