// Bring-up: nodes on their way to production by stage, how their cohort fared there, what blocks each, and the next act.
import { ROLLOUTS } from "./control_pages.js";
import { useList } from "./lists.js";
import { Filters, NodeLink, Page, listed, now, selected } from "./pages.js";
import { status } from "./state.js";
import { Table } from "./table.js";
import { html } from "./ui.js";
import { moment, plain, since, span } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const NAMES = ["phase", "rack", "sku"];
/** @param {import("./types.js").JournalRecord | undefined} record */
const moved = (record) => /^(phase_|plan_|operation_|waiting_|hold_|node_|pause_|brake_)/.test(record?.name ?? "");

export function BringUp() {
  const query = selected(NAMES);
  const found = useList("/bring-up", query, moved);
  const stages = useList("/bring-up/stages", query, moved);
  const rollouts = useList("/rollouts", {}, (record) => record?.name.startsWith("rollout_") ?? true);
  const running = (rollouts.items ?? []).filter((row) => row.state === "running");
  return html`<${Page} title="Bring-up" about="Nodes on their way to production. A cohort is nodes of one SKU, on their first way or back from repair, by their moves of 30 days.">
    <${Filters} names=${NAMES} />
    <h2>Stages</h2>
    <${Table} name="stages" columns=${STAGES} found=${stages} id=${(/** @type {Row} */ row) => `${row.phase} ${row.sku} ${row.returns}`} cli=${listed("bring-up stages", NAMES)} sorting=${false} />
    <h2>Nodes</h2>
    <${Table} name="bring-up" columns=${NODES} found=${found} id=${(/** @type {Row} */ row) => row.node} cli=${listed("bring-up list", NAMES)} />
    <${Strangers} />
    ${running.length > 0 && html`<h2>What comes into force slice by slice</h2>
      <${Table} name="rollouts" columns=${ROLLOUTS} found=${{ items: running, problem: "" }} id=${(/** @type {Row} */ row) => row.id} cli="hostler rollout list" sorting=${false} />`}<//>`;
}

// Machines that asked for a boot and are expected nowhere. None of them was booted into anything.
function Strangers() {
  const found = status.value?.strangers ?? [];
  if (!found.length) return null;
  return html`<h2>Strangers</h2><p class="quiet">They asked for a boot and are not expected. Admit them by an inventory that names serial and MAC addresses, or find out who cabled them.</p>
    <${Table} name="strangers" fixed columns=${STRANGERS} found=${{ items: found, problem: "" }} id=${(/** @type {Row} */ row) => `${row.mac} ${row.serial}`} cli="hostler boot strangers" />`;
}

/** @type {import("./types.js").Column[]} */
const STRANGERS = [
  { key: "mac", title: "MAC address", of: (row) => row.mac },
  { key: "serial", title: "serial", of: (row) => row.serial || "not shown" },
  { key: "address", title: "from", of: (row) => row.address },
  { key: "at", title: "asked last", of: (row) => row.at, show: (row) => moment(row.at) },
];

/** @param {Row} row */
const way = (row) => (row.returns ? "back from repair" : "first");
/** @param {Row} one */
const went = (one) => (one.stays ? `${one.went_on} of ${one.stays} went on` : "nobody has left it in 30 days");
/** @param {Row} one */
const took = (one) => (one.median_s === null ? "" : `${span(one.median_s)}, P90 ${span(one.p90_s)}`);

/** @type {import("./types.js").Column[]} */
const STAGES = [
  { key: "phase", title: "stage", of: (row) => row.phase, show: (row) => html`<i class="swatch p-${row.phase.replace("_", "-")}"></i> <a href=${`/bring-up?phase=${row.phase}`} title=${row.title}>${plain(row.phase)}</a>` },
  { key: "sku", title: "SKU", of: (row) => row.sku },
  { key: "way", title: "way", of: way },
  { key: "nodes", title: "nodes now", of: (row) => row.nodes, number: true },
  { key: "waiting", title: "wait", of: (row) => row.waiting, number: true },
  { key: "went", title: "cohort", of: (row) => went(row.cohort) },
  { key: "took", title: "median stay", of: (row) => row.cohort.median_s ?? "", show: (row) => took(row.cohort) },
];

/** @type {import("./types.js").Column[]} */
const NODES = [
  { key: "node", title: "node", of: (row) => row.node, show: (row) => html`<${NodeLink} id=${row.node} />` },
  { key: "phase", title: "stage", of: (row) => row.phase, show: (row) => html`<i class="swatch p-${row.phase.replace("_", "-")}"></i> ${plain(row.phase)}` },
  { key: "age", title: "for", of: (row) => row.phase_since, show: (row) => since(row.phase_since, now()) },
  { key: "cohort", title: "beside its cohort", of: beside, show: (row) => html`<${Beside} row=${row} />` },
  { key: "step", title: "step", of: (row) => (row.steps ? `${row.steps_done + 1} of ${row.steps}: ${plain(row.step)}` : ""), show: (row) => html`${row.steps ? `${Math.min(row.steps_done + 1, row.steps)} of ${row.steps}: ${plain(row.step)}` : ""}${row.doing && html`<br /><small>${row.doing}</small>`}${row.burn_in && html`<br /><small>${row.burn_in.text}</small>`}` },
  { key: "arrives", title: "in production", of: (row) => row.arrives?.median ?? "", show: arrives },
  { key: "blockers", title: "waits for", of: (row) => row.blockers.join("; ") },
  { key: "ends", title: "ends when", of: (row) => row.ends_when.join("; ") },
  { key: "next", title: "a person's next act", of: (row) => row.next_act, show: (row) => row.next_act && html`<code class="cli">${row.next_act}</code>` },
  { key: "sku", title: "SKU", of: (row) => row.sku },
  { key: "way", title: "way", of: way },
  { key: "rack", title: "rack", of: (row) => row.position.rack },
  { key: "u", title: "U", of: (row) => row.position.u || "", number: true },
  { key: "serial", title: "serial", of: (row) => row.serial },
];

/** @param {Row} row */
function beside(row) {
  const one = row.cohort;
  if (one.passed_by === null) return "no cohort yet";
  return `${Math.round(one.passed_by * 100)} % of ${one.went_on} were through by now`;
}

// The time that it has been here on a line up to the cohort's P90 or its own age; a mark where half of them were through.
/** @param {{ row: Row }} props */
function Beside({ row }) {
  const { median_s: median, p90_s: p90 } = row.cohort;
  const age = now() ? Math.max(0, (Date.parse(now()) - Date.parse(row.phase_since)) / 1000) : 0;
  if (median === null) return beside(row);
  /** @param {number} seconds */
  const x = (seconds) => (100 * seconds) / Math.max(p90, age, 1);
  return html`<svg class=${`cohort ${age > p90 ? "late" : ""}`} viewBox="0 0 100 8" role="img" aria-label=${`${span(age)} here; half were through after ${span(median)}, nine of ten after ${span(p90)}`}>
      <rect class="all" x="0" y="2" width=${x(p90)} height="4" /><rect class="age" x="0" y="2" width=${x(age)} height="4" /><line x1=${x(median)} x2=${x(median)} y1="0" y2="8" /></svg>
    <small>${beside(row)}</small>`;
}

/** @param {Row} row */
function arrives(row) {
  if (!row.arrives) return html`<small>nobody tells: none of its cohort stayed as long here and arrived</small>`;
  const { median, p90, of } = row.arrives;
  return html`${moment(median).slice(0, 16)}<br /><small>by ${moment(p90).slice(0, 16)} for 9 of 10 (${of})</small>`;
}
