// A month's node-hours: how long each node was a tenant's, and how it was meanwhile. Seconds of a row sum to what was had.
import { useList } from "./lists.js";
import { NodeLink, now, quoted } from "./pages.js";
import { setQuery } from "./router.js";
import { me } from "./state.js";
import { Table } from "./table.js";
import { html } from "./ui.js";
import { moment, plain } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const HOUR_S = 3600;
const STATES = ["healthy", "degraded", "away", "unknown"];
const AWAY = ["repair", "maintenance", "firmware", "test", "person", "handover", "unknown"];
const MONTH = /^20[0-9]{2}-(0[1-9]|1[0-2])$/;

/** @param {number} seconds */
const hours = (seconds) => (seconds / HOUR_S).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
/** @param {string} title @param {(row: Row) => number} of */
const spent = (title, of) => ({ key: title, title: `${title} h`, of: (/** @type {Row} */ row) => Math.round((of(row) / HOUR_S) * 10000) / 10000, show: (/** @type {Row} */ row) => hours(of(row)), number: true });

/** @type {import("./types.js").Column[]} */
const COLUMNS = [
  { key: "node", title: "node", of: (row) => row.node, show: (row) => html`<${NodeLink} id=${row.node} />` },
  { key: "tenant", title: "tenant", of: (row) => row.tenant },
  { key: "pool", title: "pool", of: (row) => row.pool },
  { key: "since", title: "from", of: (row) => row.since, show: (row) => moment(row.since) },
  { key: "until", title: "until", of: (row) => row.until, show: (row) => moment(row.until) },
  spent("had", (row) => row.had_s),
  ...STATES.map((state) => spent(state, (/** @type {Row} */ row) => row[`${state}_s`])),
  ...AWAY.map((kind) => spent(`away: ${kind}`, (/** @type {Row} */ row) => row.away_by[kind])),
  { key: "because", title: "because", of: (row) => row.causes.filter((/** @type {Row} */ one) => one.state !== "healthy").map((/** @type {Row} */ one) => `${one.state}: ${[plain(one.kind), one.condition].filter(Boolean).join(" ")} ${hours(one.seconds)} h`).join("; ") },
];

// A tenant sees the present month at once; whoever sees everybody's nodes chooses one, for it is read from the journal.
/** @param {{ month: string }} props */
export function Statement({ month }) {
  const wanted = MONTH.test(month) ? month : me.value?.role === "tenant" ? (now() ?? "").slice(0, 7) : "";
  return html`<h2>Node-hours of ${wanted || "a month"}</h2>
    <form class="filters" onSubmit=${(/** @type {Row} */ event) => event.preventDefault()}>
      <label>month<input type="month" value=${wanted} onChange=${(/** @type {Row} */ event) => setQuery({ month: event.target.value })} /></label></form>
    ${wanted && html`<${Hours} key=${wanted} month=${wanted} />`}`;
}

/** @param {{ month: string }} props */
function Hours({ month }) {
  const found = useList("/statement", { month }, (record) => /^(node_assigned|node_released)$/.test(record?.name ?? ""));
  const rows = found.items ?? [];
  const sum = (/** @type {string} */ name) => hours(rows.reduce((/** @type {number} */ all, /** @type {Row} */ row) => all + row[name], 0));
  return html`${rows.length > 0 && html`<p>${sum("had_s")} node-hours: ${STATES.map((state) => `${sum(`${state}_s`)} ${state}`).join(", ")}.</p>`}
    <${Table} name=${`statement-${month}`} columns=${COLUMNS} found=${found} id=${(/** @type {Row} */ row) => `${row.node} ${row.since}`} cli=${`hostler statement --month ${quoted(month)}`} />`;
}
