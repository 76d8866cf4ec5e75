// Returns to vendors: each case with what it waits for, the spares on the shelf, and what may be done next.
import { ActButton } from "./acts.js";
import { useList } from "./lists.js";
import { Filters, NodeLink, Page, now, quoted, selected } from "./pages.js";
import { PartLink } from "./parts.js";
import { Table } from "./table.js";
import { html } from "./ui.js";
import { moment, plain, since } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const NAMES = ["node"];

export function Returns() {
  const { node } = selected(NAMES);
  const cases = useList("/rma-cases", selected(NAMES), (record) => Boolean(record?.name.startsWith("rma_case_")));
  const stock = useList("/stock", {}, (record) => Boolean(record?.name.startsWith("stock_")));
  return html`<${Page} title="Returns" about="Parts and machines that go to their vendors: what each case waits for, by when, and the spares on the shelf.">
    <${Filters} names=${NAMES} />
    <h2>Cases</h2>
    <${Table} name="returns" columns=${CASES} found=${cases} id=${(/** @type {Row} */ row) => row.id} cli=${`hostler rma list${node ? ` --node ${quoted(node)}` : ""}`} />
    <h2>Stock</h2>
    <${Table} name="stock" columns=${STOCK} found=${stock} id=${(/** @type {Row} */ row) => row.id} cli="hostler stock list" /><//>`;
}

const CASES = [
  { key: "id", title: "return", of: (/** @type {Row} */ row) => row.id },
  { key: "node", title: "node", of: (/** @type {Row} */ row) => row.node, show: (/** @type {Row} */ row) => html`<${NodeLink} id=${row.node} />` },
  { key: "component", title: "part", of: (/** @type {Row} */ row) => `${row.component} ${row.slot}`.trim() },
  { key: "serial", title: "serial", of: (/** @type {Row} */ row) => row.serial, show: (/** @type {Row} */ row) => html`<${PartLink} serial=${row.serial} />` },
  { key: "state", title: "state", of: (/** @type {Row} */ row) => plain(row.state) },
  { key: "since", title: "for", of: (/** @type {Row} */ row) => row.since, show: (/** @type {Row} */ row) => since(row.since, now()) },
  { key: "waits", field: "waits_for", title: "waits for", of: (/** @type {Row} */ row) => row.waits_for.join(", ") },
  { key: "due", title: "due", of: (/** @type {Row} */ row) => row.due ?? "", show: (/** @type {Row} */ row) => (row.overdue ? html`<b class="bad">overdue since ${moment(row.due).slice(0, 10)}</b>` : moment(row.due ?? "").slice(0, 10)) },
  { key: "vendor", title: "vendor case", of: (/** @type {Row} */ row) => `${row.vendor} ${row.vendor_case}`.trim() },
  { key: "fault", title: "fault", of: (/** @type {Row} */ row) => row.fault },
  { key: "fitted", title: "fitted", of: (/** @type {Row} */ row) => row.fitted },
  { key: "act", title: "next", of: (/** @type {Row} */ row) => row.waits_for.join(" "), show: (/** @type {Row} */ row) => html`<span class="buttons">
    ${row.waits_for.some((/** @type {Row} */ step) => step !== "closed") && html`<${ActButton} verb="advance-rma" target=${row.id} named=${row.id} label="Move on" />`}
    <${ActButton} verb="close-rma" target=${row.id} named=${row.id} label="Close" /></span>` },
];

const STOCK = [
  { key: "site", title: "site", of: (/** @type {Row} */ row) => row.site },
  { key: "part", title: "part number", of: (/** @type {Row} */ row) => row.part_number },
  { key: "count", title: "on the shelf", of: (/** @type {Row} */ row) => row.count, number: true },
  { key: "least", title: "least", of: (/** @type {Row} */ row) => row.least, number: true },
  { key: "low", title: "short", of: (/** @type {Row} */ row) => (row.low ? "too few" : ""), show: (/** @type {Row} */ row) => row.low && html`<b class="bad">too few</b>` },
];
