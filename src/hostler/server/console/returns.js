// Returns to vendors: each case with what it waits for, the spares on the shelf, and what may be done next.
import { ActButton } from "./acts.js";
import { useList } from "./lists.js";
import { Filters, NodeLink, Page, now, quoted, selected } from "./pages.js";
import { Table } from "./table.js";
import { html } from "./ui.js";
import { moment, plain, since } from "./words.js";

const NAMES = ["node"];

export function Returns() {
  const { node } = selected(NAMES);
  const cases = useList("/rma-cases", selected(NAMES), (record) => record.name.startsWith("rma_case_"));
  const stock = useList("/stock", {}, (record) => record.name.startsWith("stock_"));
  return html`<${Page} title="Returns" about="Parts and machines that go to their vendors: what each case waits for, by when, and the spares on the shelf.">
    <${Filters} names=${NAMES} />
    <h2>Cases</h2>
    <${Table} name="returns" columns=${CASES} found=${cases} id=${(row) => row.id} cli=${`hostler rma list${node ? ` --node ${quoted(node)}` : ""}`} />
    <h2>Stock</h2>
    <${Table} name="stock" columns=${STOCK} found=${stock} id=${(row) => row.id} cli="hostler stock list" /><//>`;
}

const CASES = [
  { key: "id", title: "return", of: (row) => row.id },
  { key: "node", title: "node", of: (row) => row.node, show: (row) => html`<${NodeLink} id=${row.node} />` },
  { key: "component", title: "part", of: (row) => `${row.component} ${row.slot}`.trim() },
  { key: "serial", title: "serial", of: (row) => row.serial },
  { key: "state", title: "state", of: (row) => plain(row.state) },
  { key: "since", title: "for", of: (row) => row.since, show: (row) => since(row.since, now()) },
  { key: "waits", title: "waits for", of: (row) => row.waits_for.join(", ") },
  { key: "due", title: "due", of: (row) => row.due ?? "", show: (row) => (row.overdue ? html`<b class="bad">overdue since ${moment(row.due).slice(0, 10)}</b>` : moment(row.due ?? "").slice(0, 10)) },
  { key: "vendor", title: "vendor case", of: (row) => `${row.vendor} ${row.vendor_case}`.trim() },
  { key: "fault", title: "fault", of: (row) => row.fault },
  { key: "fitted", title: "fitted", of: (row) => row.fitted },
  { key: "act", title: "next", of: (row) => row.waits_for.join(" "), show: (row) => html`<span class="buttons">
    ${row.waits_for.some((step) => step !== "closed") && html`<${ActButton} verb="advance-rma" target=${row.id} named=${row.id} label="Move on" />`}
    <${ActButton} verb="close-rma" target=${row.id} named=${row.id} label="Close" /></span>` },
];

const STOCK = [
  { key: "site", title: "site", of: (row) => row.site },
  { key: "part", title: "part number", of: (row) => row.part_number },
  { key: "count", title: "on the shelf", of: (row) => row.count, number: true },
  { key: "least", title: "least", of: (row) => row.least, number: true },
  { key: "low", title: "", of: (row) => (row.low ? "too few" : ""), show: (row) => row.low && html`<b class="bad">too few</b>` },
];
