// Racks brought up as one: those that are known, and of one its steps, what blocks it, its parts and its certificate.
import { ActButton } from "./acts.js";
import { useAnswer, useList } from "./lists.js";
import { NodeLink, Page, Reach, now, quoted } from "./pages.js";
import { route, setQuery } from "./router.js";
import { Table } from "./table.js";
import { html } from "./ui.js";
import { Blocker } from "./ways.js";
import { moment, plain, since } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

/** @param {import("./types.js").JournalRecord | undefined} record */
const heard = (record) => /^(rack_|asset_|phase_|condition_|ticket_|hold_|node_)/.test(record?.name ?? "");
/** @param {string} name */
const rackPath = (name) => `/racks/${encodeURIComponent(name)}`;

export function Racks() {
  const name = route.value.name;
  return name ? html`<${OneRack} key=${name} name=${name} />` : html`<${AllRacks} />`;
}

/** @type {import("./types.js").Column[]} */
const RACKS = [
  { key: "rack", title: "rack", of: (row) => row.rack, show: (row) => html`<a href=${rackPath(row.rack)}>${row.rack}</a>` },
  { key: "state", title: "state", of: (row) => plain(row.state) },
  { key: "step", title: "step", of: (row) => (row.steps ? `${row.done} of ${row.steps} done, at ${plain(row.step)}` : plain(row.step)) },
  { key: "since", title: "for", of: (row) => row.since ?? "", show: (row) => since(row.since, now()) },
  { key: "waits", title: "waits for", of: (row) => row.waits_for.join("; ") || row.why },
  { key: "sku", title: "SKU", of: (row) => row.sku },
  { key: "bundle", title: "bundle", of: (row) => row.bundle },
  { key: "certified", title: "certified", of: (row) => row.certified_at ?? "", show: (row) => row.certified_at && `${moment(row.certified_at)} by ${row.certified_by}` },
];

function AllRacks() {
  const found = useList("/racks", {}, heard);
  const assets = useList("/assets", {}, heard);
  const known = new Set((found.items ?? []).map((row) => row.rack));
  const others = [...new Set((assets.items ?? []).map((row) => row.position.rack))].filter((name) => name && !known.has(name));
  const open = (/** @type {Row} */ event) => setQuery({ q: event.target.value.trim() });
  return html`<${Page} title="Racks" about="Racks that are brought up as one, from power shelves to compute trays: how far each is, what blocks it, and its certificate.">
    <${Table} name="racks" columns=${RACKS} found=${found} id=${(/** @type {Row} */ row) => row.rack} cli="hostler rack list" />
    ${others.length > 0 && html`<h2>Racks with assets that nobody has brought up as one yet</h2>
      <form class="filters" role="search" onSubmit=${(/** @type {Row} */ event) => event.preventDefault()}><label>name<input value=${route.value.query.q ?? ""} onChange=${open} /></label></form>
      <p class="links">${others.filter((name) => name.includes(route.value.query.q ?? "")).sort(natural).slice(0, 200).map((name) => html`<a href=${rackPath(name)}>${name}</a> `)}</p>`}<//>`;
}

const { compare: natural } = new Intl.Collator("en", { numeric: true });

/** @param {{ name: string }} props */
function OneRack({ name }) {
  const { answer, problem } = useAnswer(rackPath(name), heard);
  const assets = useList("/assets", { rack: name }, heard);
  const nodes = useList("/nodes", { rack: name }, heard);
  if (problem) return html`<${Page} title=${name}><p class="banner warning" role="alert">${problem}</p><p><a href="/racks">All racks</a></p><//>`;
  if (!answer) return html`<p class="loading">Reading ${name} …</p>`;
  const cli = `hostler rack get ${quoted(name)} -o json`;
  const rows = (/** @type {Row[]} */ items) => ({ items, problem: "" });
  return html`<${Page} title=${`Rack ${name}`}>
    <p><a href="/racks">All racks</a></p>
    <${Acts} name=${name} seen=${answer} />
    <${Blocked} seen=${answer} />
    <${Standing} seen=${answer} />
    <h2>Steps</h2><${Table} name="steps" columns=${STEPS} found=${rows(answer.steps)} id=${(/** @type {Row} */ row) => row.name} cli=${cli} sorting=${false} />
    <h2>Stages</h2><${Table} name="stages" columns=${STAGES} found=${rows(answer.stages)} id=${(/** @type {Row} */ row) => row.stage} cli=${cli} sorting=${false} />
    ${answer.budgets.length > 0 && html`<h2>Budgets of its domains</h2><${Table} name="budgets" columns=${BUDGETS} found=${rows(answer.budgets)} id=${(/** @type {Row} */ row) => row.domain} cli=${cli} sorting=${false} />`}
    <h2>Assets</h2><${Table} name="assets" columns=${ASSETS} found=${assets} id=${(/** @type {Row} */ row) => row.id} cli=${`hostler asset list --rack ${quoted(name)}`} sorting=${false} />
    <h2>Compute trays</h2><${Table} name="trays" columns=${TRAYS} found=${nodes} id=${(/** @type {Row} */ row) => row.id} cli=${`hostler node list -l ${quoted(`rack=${name}`)}`} sorting=${false} />
    ${answer.certificate && html`<h2>Certificate</h2><${Certificate} paper=${answer.certificate} /><${Table} name="evidence" columns=${EVIDENCE} found=${rows(answer.certificate.evidence)} id=${(/** @type {Row} */ row) => row.name} cli=${cli} sorting=${false} />`}
    <h2>History</h2><${Table} name="history" columns=${HISTORY} found=${rows(answer.history)} id=${(/** @type {Row} */ row) => String(row.seq)} cli=${cli} sorting=${false} /><${Reach} answer=${answer} /><//>`;
}

/** @param {{ name: string, seen: Row }} props */
function Acts({ name, seen }) {
  const target = `rack:${name}`;
  const sku = seen.ended?.sku || seen.certificate?.sku;
  return html`<div class="buttons noprint">
    ${!seen.run && html`<${ActButton} verb="rack-bring-up" target=${target} named=${name} fields=${sku ? { sku } : {}} label="Bring it up" />`}
    ${seen.run && html`<${ActButton} verb="rack-call-off" target=${target} named=${name} label="Call the bring-up off" />`}
    ${!seen.run && html`<${ActButton} verb="rack-certify" target=${target} named=${name} label="Certify it" />`}</div>`;
}

// What blocks the bring-up and what ends that, or what ended it and the act that goes on.
/** @param {{ seen: Row }} props */
function Blocked({ seen: { run, ended, blockers, row } }) {
  if (run) {
    return html`<div class="waiting" role="status"><h2>${plain(row.step)} ${blockers.length ? "waits" : "goes on"}, ${row.done} of ${row.steps} steps done</h2>
      ${blockers.map((/** @type {Row} */ one) => html`<${Blocker} blocker=${one} />`)}</div>`;
  }
  if (!ended || ended.result === "done") return null;
  return html`<div class="waiting" role="status"><h2>The bring-up ${ended.result === "failed" ? "failed" : "was called off"} at ${plain(ended.step)}, ${moment(ended.at)}</h2>
    ${ended.why && html`<p>${ended.why}</p>`}<p><small>It goes on by “Bring it up”: what stands is passed again at once.</small></p></div>`;
}

/** @param {{ seen: Row }} props */
function Standing({ seen: { row, run, certificate } }) {
  const rows = [
    ["state", plain(row.state)],
    ["SKU", row.sku],
    ["bundle", row.bundle],
    ["asked by", run && `${run.person}, ${moment(run.began)}: ${run.reason}`],
    ["certificate", certificate && (certificate.void_since ? `void since ${moment(certificate.void_since)}: ${certificate.void_why}` : `holds, by ${certificate.person}, ${moment(certificate.at)}`)],
  ];
  return html`<dl class="standing">${rows.filter(([, value]) => value).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/** @type {import("./types.js").Column[]} */
const STEPS = [
  { key: "name", title: "step", of: (row) => plain(row.name) },
  { key: "state", title: "state", of: (row) => plain(row.state), show: (row) => (row.state === "failed" ? html`<b class="bad">failed</b>` : row.state === "at" ? html`<b>is at it</b>` : plain(row.state)) },
  { key: "since", title: "since", of: (row) => row.since ?? "", show: (row) => moment(row.since) },
  { key: "until", title: "stood, or ended", of: (row) => row.until ?? "", show: (row) => moment(row.until) },
  { key: "deadline", title: "to stand by", of: (row) => row.deadline ?? "", show: (row) => moment(row.deadline) },
  { key: "ends", title: "ends when", of: (row) => (row.writes ? `each ${plain(row.writes)} has the bundle's firmware` : row.ends_when) },
];
/** @type {import("./types.js").Column[]} */
const STAGES = [
  { key: "stage", title: "stage", of: (row) => row.stage },
  { key: "verdict", title: "now", of: (row) => plain(row.verdict), show: (row) => (row.verdict === "failed" ? html`<b class="bad">failed</b>` : plain(row.verdict)) },
  { key: "gaps", title: "what keeps it from standing", of: (row) => row.gaps.join("; "), show: (row) => row.gaps.map((/** @type {string} */ gap) => html`<p>${gap}</p>`) },
];
/** @type {import("./types.js").Column[]} */
const BUDGETS = [
  { key: "domain", title: "domain", of: (row) => row.domain },
  { key: "nodes", title: "nodes", of: (row) => row.nodes, number: true },
  { key: "disturbed", title: "disturbed now", of: (row) => row.disturbed, number: true },
  { key: "limit", title: "may be at once", of: (row) => row.limit ?? "not counted", number: true },
  { key: "whole", title: "domains of its kind taken whole", of: (row) => (row.at_once ? `${row.taken.length} of ${row.at_once}: ${row.taken.join(", ") || "none"}` : "not counted") },
];
/** @param {[string, string][]} pairs */
const worded = (pairs) => (pairs ?? []).map(([name, word]) => `${name} ${word || "silent"}`).join(", ");
// States of an asset that has leaked, until a person says that it is sound.
const LEAKED = ["leaked", "off"];
/** @type {import("./types.js").Column[]} */
const ASSETS = [
  { key: "id", title: "asset", of: (row) => row.id },
  { key: "kind", title: "kind", of: (row) => plain(row.kind) },
  { key: "state", title: "state", of: (row) => plain(row.state), show: (row) => (LEAKED.includes(row.state) ? html`<b class="bad">${plain(row.state)}</b> <${ActButton} verb="asset-sound" target=${row.id} named=${row.id} label="It is sound" />` : plain(row.state)) },
  { key: "u", title: "U", of: (row) => row.position.u || "", number: true },
  { key: "serial", title: "serial shown", of: (row) => row.look?.serial ?? "" },
  { key: "health", title: "health", of: (row) => row.look?.health ?? "" },
  { key: "leaks", title: "leak detectors", of: (row) => worded(row.look?.leaks), show: (row) => ((row.look?.leaks ?? []).some((/** @type {string[]} */ [, word]) => word !== "ok") ? html`<b class="bad">${worded(row.look.leaks)}</b>` : worded(row.look?.leaks)) },
  { key: "supplies", title: "supplies", of: (row) => worded(row.look?.supplies) },
  { key: "firmware", title: "firmware", of: (row) => worded(row.look?.firmware) },
  { key: "domains", title: "domains", of: (row) => row.domains.join(", ") },
  { key: "looked", title: "looked at", of: (row) => row.look?.at ?? "", show: (row) => (row.look ? `${since(row.look.at, now())} ago${row.look.why ? `: ${row.look.why}` : ""}` : "not yet") },
];
/** @type {import("./types.js").Column[]} */
const TRAYS = [
  { key: "node", title: "node", of: (row) => row.id, show: (row) => html`<${NodeLink} id=${row.id} />` },
  { key: "u", title: "U", of: (row) => row.position.u || "", number: true },
  { key: "phase", title: "phase", of: (row) => row.phase, show: (row) => html`<i class="swatch p-${row.phase.replace("_", "-")}"></i> ${plain(row.phase)}` },
  { key: "conditions", title: "conditions", of: (row) => row.conditions.join(", ") },
  { key: "waiting", title: "waits for", of: (row) => row.waiting },
];
/** @type {import("./types.js").Column[]} */
const EVIDENCE = [
  { key: "name", title: "part", of: (row) => row.name },
  { key: "kind", title: "kind", of: (row) => plain(row.kind) },
  { key: "serial", title: "serial", of: (row) => row.serial },
  { key: "firmware", title: "firmware", of: (row) => worded(row.firmware) },
];
/** @type {import("./types.js").Column[]} */
const HISTORY = [
  { key: "at", title: "when", of: (row) => row.at, show: (row) => moment(row.at) },
  { key: "text", title: "what", of: (row) => row.text },
];

/** @param {{ paper: Row }} props */
function Certificate({ paper }) {
  return html`<p>${paper.void_since ? html`<b class="bad">Void since ${moment(paper.void_since)}: ${paper.void_why}.</b> It was` : "It is"} of ${moment(paper.at)} by ${paper.person}${paper.bundle && `, bundle ${paper.bundle}`}: <code class="cli">${paper.digest}</code></p>`;
}
