// Networks: those that are validated, and of one its matrix, findings, links, counters and tests by hand.
import { ActButton } from "./acts.js";
import { FabricMatrix } from "./fabric_matrix.js";
import { Designs } from "./fabric_designs.js";
import { FindingDrawing } from "./fabric_drawing.js";
import { LinkFacts } from "./fabric_link.js";
import { ManualTest } from "./manual_test.js";
import { useAnswer, useList } from "./lists.js";
import { NodeLink, Page, now, quoted } from "./pages.js";
import { route, setQuery } from "./router.js";
import { me } from "./state.js";
import { Table } from "./table.js";
import { html } from "./ui.js";
import { count, moment, plain, since } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const VIEWS = ["matrix", "findings", "links", "faults", "counters", "designs", "test"];

// What is recorded about networks; nothing else changes what these pages show.
/** @param {Row} record */
function heard(record) {
  return /^(fabric|link|manual_test|recabling|design)_/.test(record.name);
}

/** @param {string} name */
export function fabricPath(name, query = {}) {
  const kept = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return `/fabrics/${encodeURIComponent(name)}${kept.size ? `?${kept}` : ""}`;
}

export function Fabrics() {
  const grant = me.value;
  if (!grant) return null;
  if (grant.tenant || grant.site || grant.pool) return html`<${OwnLinks} />`;
  return route.value.name ? html`<${Fabric} key=${route.value.name} name=${route.value.name} />` : html`<${AllFabrics} />`;
}

function AllFabrics() {
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "name", title: "network", of: (row) => row.name, show: (row) => html`<a href=${fabricPath(row.name)}>${row.name}</a>` },
    { key: "verdict", title: "last validation", of: (row) => plain(row.verdict) || "none" },
    { key: "looked", title: "ago", of: (row) => row.looked ?? "", show: (row) => since(row.looked, now()) },
    { key: "says", title: "what it says", of: (row) => row.says },
    { key: "findings", title: "findings", of: (row) => row.findings, number: true, show: (row) => html`<a href=${fabricPath(row.name, { view: "findings" })} aria-label=${`${row.findings} findings of ${row.name}`}>${count(row.findings)}</a>` },
    { key: "tickets", title: "tickets", of: (row) => row.tickets, number: true },
    { key: "hosts", title: "hosts", of: (row) => row.hosts, number: true },
    { key: "switches", title: "switches", of: (row) => row.switches, number: true },
    { key: "cables", title: "cables", of: (row) => row.cables, number: true },
    { key: "design", title: "design", of: (row) => row.design.slice(0, 12) },
    { key: "version", title: "version", of: (row) => row.versions.length, number: true },
    { key: "test", title: "test by hand due", of: (row) => row.manual_test_due ?? "", show: (row) => (row.manual_test_due ? html`<${Due} row=${row} />` : "not scheduled") },
  ];
  return html`<${Page} title="Fabrics" about="Networks that are validated against their designs.">
    <${Table} name="fabrics" columns=${columns} found=${useList("/fabrics", {}, heard)} id=${(/** @type {Row} */ row) => row.name} cli="hostler fabric list" /><//>`;
}

/** @param {{ row: Row }} props */
export function Due({ row }) {
  return row.manual_test_overdue ? html`<b class="bad">overdue since ${moment(row.manual_test_due)}</b>` : moment(row.manual_test_due);
}

// Who sees some nodes sees their links, and nothing else of a network.
function OwnLinks() {
  const { node, port } = route.value.query;
  const found = useList("/links", {}, heard);
  if (node && port) return html`<${OneLink} path=${`/nodes/${encodeURIComponent(node)}/link?port=${encodeURIComponent(port)}`} title=${`${node} ${port}`} cli=${`hostler fabric link show ${quoted(node)} --port ${quoted(port)}`} />`;
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "node", title: "node", of: (row) => row.node, show: (row) => html`<${NodeLink} id=${row.node} />` },
    { key: "fabric", title: "network", of: (row) => row.fabric },
    ...linkColumns((/** @type {Row} */ row) => `/fabrics?${new URLSearchParams({ node: row.node, port: row.a.slice(row.a.lastIndexOf(":") + 1) })}`),
  ];
  return html`<${Page} title="Fabrics" about="Links of your nodes as the last whole validation of their network found them.">
    <${Table} name="links" columns=${columns} found=${found} id=${(/** @type {Row} */ row) => `${row.fabric} ${row.a}`} cli="hostler fabric link show NODE" /><//>`;
}

/** @param {{ name: string }} props */
function Fabric({ name }) {
  const path = `/fabrics/${encodeURIComponent(name)}`;
  const { answer, problem } = useAnswer(path, heard);
  const query = route.value.query;
  if (query.finding) return html`<${OneFinding} path=${path} name=${name} wanted=${query.finding} />`;
  if (query.link) return html`<${OneLink} path=${`${path}/link?port=${encodeURIComponent(query.link)}`} title=${query.link} back=${fabricPath(name)} cli=${`hostler fabric link show ${quoted(query.link.slice(0, query.link.lastIndexOf(":")))} --port ${quoted(query.link.slice(query.link.lastIndexOf(":") + 1))} --fabric ${quoted(name)}`} />`;
  if (problem) return html`<${Page} title=${name}><p class="banner warning" role="alert">${problem}</p><p><a href="/fabrics">All networks</a></p><//>`;
  if (!answer) return html`<p class="loading">Reading ${name} …</p>`;
  const view = VIEWS.includes(query.view) ? query.view : "matrix";
  const turn = (/** @type {string} */ next) => setQuery({ view: next === "matrix" ? "" : next, sort: "", order: "", q: "", device: "", found: "", old: "" });
  return html`<${Page} title=${name} about=${answer.says}>
    <${Standing} seen=${answer} />
    <div class="buttons" role="group" aria-label="What is shown of the network">
      ${VIEWS.map((one) => html`<button aria-pressed=${one === view} onClick=${() => turn(one)}>${title(one, answer)}</button>`)}
    </div>
    ${view === "matrix" && html`<${FabricMatrix} name=${name} heard=${heard} />`}
    ${view === "findings" && html`<${Findings} name=${name} path=${path} />`}
    ${view === "links" && html`<${Links} name=${name} path=${path} />`}
    ${view === "faults" && html`<${Faults} name=${name} path=${path} />`}
    ${view === "counters" && html`<${Counters} name=${name} path=${path} />`}
    ${view === "designs" && html`<${Designs} name=${name} path=${path} heard=${heard} />`}
    ${view === "test" && html`<${ManualTest} seen=${answer} />`}
  <//>`;
}

/** @param {Row} view @param {Row} seen */
function title(view, seen) {
  if (view === "findings") return `findings ${count(seen.findings)}`;
  if (view === "test") return seen.manual_test_overdue ? "test by hand: overdue" : "test by hand";
  return view;
}

/** @param {{ seen: Row }} props */
function Standing({ seen }) {
  const version = seen.versions.at(-1);
  const rows = [
    ["design", `${seen.design.slice(0, 12)}, version ${seen.versions.length} of ${moment(version?.at)} by ${version?.person}${version?.reason ? `: ${version.reason}` : ""}`],
    ["re-cabling", seen.recabling ? `design ${seen.recabling.design.slice(0, 12)}, ${seen.recabling.says}; ${seen.recabling.person}: ${seen.recabling.reason}` : ""],
    ["designed", `${count(seen.cables)} cables, ${count(seen.hosts)} hosts, ${count(seen.switches)} switches`],
    ["last validation", seen.looked ? `${moment(seen.looked)}: ${plain(seen.verdict)}` : "none since this controller began to decide"],
    ["last whole one", seen.good ? moment(seen.good) : "none since this controller began to decide"],
    ["asked for", seen.asked ? `since ${moment(seen.asked)}: ${seen.asked_why}` : ""],
    ["subnet", `${seen.subnet.says}${seen.subnet.why.length ? `; not read now: ${seen.subnet.why.join("; ")}` : ""}`],
    ["last notices", notices(seen.subnet.notices)],
    ["test by hand", seen.manual_test ? html`${seen.manual_test.owner}, due <${Due} row=${seen} />` : "not scheduled"],
  ];
  return html`<dl class="standing">${rows.filter(([, value]) => value).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
    <div class="buttons"><${ActButton} verb="validate-fabric" target=${seen.name} named=${seen.name} label="Validate now" />
      ${seen.recabling && html`<${ActButton} verb="move-recabling" target=${seen.name} named=${seen.name} label="Move the re-cabling" /><${ActButton} verb="cancel-recabling" target=${seen.name} named=${seen.name} label="Call the re-cabling off" />`}</div>`;
}

// The latest traps or events first, as their source tells them; its clock may not be ours.
/** @param {Row[]} heard */
function notices(heard) {
  return heard.slice(0, 3).map((one) => `${one.number} ${one.said}: ${one.about} (${one.at})`).join("; ");
}

/** @param {{ name: string, path: string }} props */
function Findings({ name, path }) {
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "what", title: "what", of: (row) => row.what, show: (row) => html`<a href=${fabricPath(name, { finding: row.key })}>${row.what}</a>` },
    { key: "kind", title: "kind", of: (row) => plain(row.kind) },
    { key: "grade", title: "grade", of: (row) => row.grade },
    { key: "since", title: "for", of: (row) => row.since, show: (row) => since(row.since, now()) },
    { key: "ticket", title: "ticket", of: (row) => row.ticket },
    { key: "waits", title: "waits", of: (row) => row.waits },
    { key: "steps", title: "what to do", of: (row) => row.steps.join(" ") },
    { key: "incident", title: "incident", of: (row) => row.incident },
    { key: "clean", title: "clean runs", of: (row) => row.clean, number: true },
  ];
  return html`<div class="buttons"><${ActButton} verb="walk-findings" target=${name} named=${name} label="One ticket for a rack or row" /></div>
    <${Table} name="findings" columns=${columns} found=${useList(`${path}/findings`, {}, heard)} id=${(/** @type {Row} */ row) => row.key} cli=${`hostler fabric findings ${quoted(name)}`} />`;
}

/** @param {Row} to */
function linkColumns(to) {
  return [
    { key: "a", title: "port", of: (/** @type {Row} */ row) => row.a, show: (/** @type {Row} */ row) => html`<a href=${to(row)}>${row.a}</a>` },
    { key: "z", title: "designed far end", of: (/** @type {Row} */ row) => row.z },
    { key: "found", title: "found far end", of: (/** @type {Row} */ row) => row.a_found || "no link" },
    { key: "condition", title: "found", of: (/** @type {Row} */ row) => plain(row.condition) },
    { key: "rate", title: "designed rate", of: (/** @type {Row} */ row) => row.rate },
    { key: "found_rate", title: "found rate", of: (/** @type {Row} */ row) => row.found_rate },
    { key: "fault", title: "fault in service", of: (/** @type {Row} */ row) => row.fault },
    { key: "seen", title: "seen", of: (/** @type {Row} */ row) => row.seen, show: (/** @type {Row} */ row) => since(row.seen, now()) },
  ];
}

/** @param {{ name: string, path: string }} props */
function Links({ name, path }) {
  const { device = "", found = "" } = route.value.query;
  const asked = { device, found };
  const cli = `hostler fabric links ${quoted(name)}${device ? ` --device ${quoted(device)}` : ""}${found ? ` --found ${found}` : ""}`;
  return html`
    <form class="filters" role="search" onSubmit=${(/** @type {Row} */ event) => event.preventDefault()}>
      <label>host or switch<input value=${device} onChange=${(/** @type {Row} */ event) => setQuery({ device: event.target.value.trim() })} /></label>
      <label>found<select value=${found} onChange=${(/** @type {Row} */ event) => setQuery({ found: event.target.value })}>
        <option value="">any</option>${["as_designed", "degraded", "unrated", "missing", "elsewhere"].map((one) => html`<option value=${one}>${plain(one)}</option>`)}</select></label>
    </form>
    <${Table} name="links" columns=${linkColumns((/** @type {Row} */ row) => fabricPath(name, { link: row.a }))} found=${useList(`${path}/links`, asked, heard)} id=${(/** @type {Row} */ row) => row.a} cli=${cli} />`;
}

/** @param {{ name: string, path: string }} props */
function Faults({ name, path }) {
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "a", title: "port", of: (row) => row.a, show: (row) => html`<a href=${fabricPath(name, { link: row.a })}>${row.a}</a>` },
    { key: "z", title: "far end", of: (row) => row.z },
    { key: "check", title: "first failing check", of: (row) => plain(row.check) },
    { key: "grade", title: "grade", of: (row) => row.grade },
    { key: "what", title: "what", of: (row) => row.what },
    { key: "since", title: "for", of: (row) => row.since, show: (row) => since(row.since, now()) },
    { key: "parts", title: "cable and modules", of: (row) => row.parts.join(" ") },
    { key: "ticket", title: "ticket", of: (row) => row.ticket },
    { key: "waits", title: "waits", of: (row) => row.waits },
  ];
  return html`<${Table} name="faults" columns=${columns} found=${useList(`${path}/faults`, {}, heard)} id=${(/** @type {Row} */ row) => row.a} cli=${`hostler fabric faults ${quoted(name)}`} />`;
}

/** @param {{ name: string, path: string }} props */
function Counters({ name, path }) {
  const { device = "" } = route.value.query;
  const told = (/** @type {Row} */ value) => value ?? "";
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "port", title: "port", of: (row) => row.port, show: (row) => html`<a href=${fabricPath(name, { link: row.port })}>${row.port}</a>` },
    { key: "state", title: "state", of: (row) => row.state },
    { key: "downed", title: "link downed", of: (row) => told(row.link_downed), number: true },
    { key: "errors", title: "symbol errors", of: (row) => told(row.symbol_errors), number: true },
    { key: "temperature", title: "module °C", of: (row) => told(row.temperature_c), number: true },
    { key: "module", title: "module", of: (row) => row.module },
    { key: "cable", title: "cable", of: (row) => row.cable },
    { key: "read", title: "read", of: (row) => row.read, show: (row) => since(row.read, now()) },
  ];
  return html`
    <form class="filters" role="search" onSubmit=${(/** @type {Row} */ event) => event.preventDefault()}>
      <label>host or switch<input value=${device} onChange=${(/** @type {Row} */ event) => setQuery({ device: event.target.value.trim() })} /></label></form>
    <${Table} name="counters" columns=${columns} found=${useList(`${path}/counters`, { device }, heard)} id=${(/** @type {Row} */ row) => row.port} cli=${`hostler fabric counters ${quoted(name)}${device ? ` --device ${quoted(device)}` : ""}`} />`;
}

/** @param {{ path: string, name: string, wanted: Row }} props */
function OneFinding({ path, name, wanted }) {
  const { answer, problem } = useAnswer(`${path}/finding?key=${encodeURIComponent(wanted)}`, heard);
  const back = html`<p><a href=${fabricPath(name, { view: "findings" })}>All findings of ${name}</a></p>`;
  if (problem) return html`<${Page} title=${wanted}><p class="banner warning" role="alert">${problem}</p>${back}<//>`;
  if (!answer) return html`<p class="loading">Reading ${wanted} …</p>`;
  const one = answer.finding;
  return html`<${Page} title=${one.what} about=${`${plain(one.kind)}, grade ${one.grade}, open since ${moment(one.since)}`}>
    ${back}
    <ol class="todo">${one.steps.map((/** @type {Row} */ step) => html`<li>${step}</li>`)}</ol>
    <p>${one.ticket ? html`Ticket <b>${one.ticket}</b>` : one.waits || "No ticket"}${one.incident && html`, incident <b>${one.incident}</b>`}</p>
    <div class="buttons">
      ${one.ticket && html`<${ActButton} verb="close-ticket" target=${one.ticket} named=${one.ticket} label="It is repaired: close the ticket" />`}
      <${ActButton} verb="validate-fabric" target=${name} named=${name} label="Validate now" />
    </div>
    <${FindingDrawing} drawing=${answer.drawing} />
  <//>`;
}

/** @param {{ path: string, title: string, back: Row, cli: Row }} props */
function OneLink({ path, title: named, back, cli }) {
  const { answer, problem } = useAnswer(path, heard);
  if (problem) return html`<${Page} title=${named}><p class="banner warning" role="alert">${problem}</p><p><a href=${back || "/fabrics"}>Back</a></p><//>`;
  if (!answer) return html`<p class="loading">Reading ${named} …</p>`;
  return html`<${LinkFacts} page=${answer} back=${back || "/fabrics"} cli=${cli} now=${now()} />`;
}
