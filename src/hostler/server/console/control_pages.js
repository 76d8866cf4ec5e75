// Pages of what governs the fleet: trends of readings, maintenance, the policy in force, and who asked what.
import { ActButton } from "./acts.js";
import { Problem, send } from "./api.js";
import { Backtests, utc } from "./backtests.js";
import { useDocument, useList } from "./lists.js";
import { Filters, NodeLink, Page, now, quoted, selected } from "./pages.js";
import { setQuery } from "./router.js";
import { configures, whole } from "./state.js";
import { Statement } from "./statement.js";
import { Table } from "./table.js";
import { html, useState } from "./ui.js";
import { moment, plain, since, span } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

/** @param {string} iso */
const day = (iso) => (iso ?? "").slice(0, 10);
/** @param {Row} share */
const percent = (share) => (share === null || share === undefined ? "" : `${(100 * share).toFixed(1)} %`);

export function Trends() {
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "node", title: "node", of: (row) => row.node, show: (row) => html`<${NodeLink} id=${row.node} />` },
    { key: "metric", title: "reading", of: (row) => row.metric },
    { key: "part", title: "part", of: (row) => row.part },
    { key: "says", title: "what it does", of: (row) => row.says },
    { key: "since", title: "since", of: (row) => row.since, show: (row) => day(row.since) },
    { key: "q", field: "q_value", title: "false discovery", of: (row) => row.q_value, show: (row) => percent(row.q_value), number: true },
    { key: "floor", field: "floor_in", title: "days to its floor", of: (row) => row.floor_in?.expected ?? "", show: (row) => row.floor_in?.expected?.toFixed(0) ?? "", number: true },
    { key: "acted", title: "acts", of: (row) => (row.acted ? "condition stands" : "in shadow") },
  ];
  return html`<${Page} title="Trends" about="Readings that drift beside their peers, before a limit is reached.">
    <${Table} name="trends" columns=${columns} found=${useList("/trends")} id=${(/** @type {Row} */ row) => `${row.node} ${row.metric} ${row.part}`} cli="hostler trend list" />
    ${whole.value && html`<${Shifts} /><${Lemons} /><${Scorecard} />`}<//>`;
}

function Shifts() {
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "metric", title: "reading", of: (row) => row.metric },
    { key: "stack", title: "cohort", of: (row) => row.stack },
    { key: "says", title: "what it does", of: (row) => row.says },
    { key: "since", title: "since", of: (row) => row.since, show: (row) => day(row.since) },
    { key: "nodes", title: "nodes", of: (row) => row.nodes, number: true },
  ];
  return html`<h2>Cohorts that have moved together</h2>
    <${Table} name="shifts" columns=${columns} found=${useList("/trends/shifts")} id=${(/** @type {Row} */ row) => `${row.metric} ${row.stack}`} cli="hostler trend shifts" />`;
}

function Lemons() {
  const number = (/** @type {string} */ key, /** @type {string} */ title) => ({ key, title, of: (/** @type {Row} */ row) => row[key], show: (/** @type {Row} */ row) => row[key].toFixed(1), number: true });
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "name", title: "node or part", of: (row) => row.name, show: (row) => (row.unit === "node" ? html`<${NodeLink} id=${row.name} />` : row.name) },
    { key: "kind", title: "kind", of: (row) => row.kind },
    { key: "node", title: "node", of: (row) => row.node },
    { key: "lemon", title: "lemon", of: (row) => (row.lemon ? "yes" : "no") },
    number("days", "days in service"),
    { key: "events", title: "troubles", of: (row) => row.events, number: true },
    number("rate", "a year"), number("usual", "usual a year"),
    { key: "q", field: "q_value", title: "false discovery", of: (row) => row.q_value, show: (row) => percent(row.q_value), number: true },
    { key: "says", title: "why", of: (row) => row.says },
  ];
  return html`<h2>Nodes and parts that had troubles in service</h2>
    <${Table} name="lemons" columns=${columns} found=${useList("/trends/lemons")} id=${(/** @type {Row} */ row) => `${row.unit} ${row.name}`} cli="hostler trend lemons" />`;
}

function Scorecard() {
  const number = (/** @type {string} */ key, /** @type {string} */ title) => ({ key, title, of: (/** @type {Row} */ row) => row[key] ?? "", number: true });
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "metric", title: "reading", of: (row) => row.metric },
    number("judged", "series judged"), number("unjudged", "not judged"), number("came_true", "came true"),
    number("false_alarms", "false alarms"), number("open", "open"), number("missed", "missed"),
    { key: "precision", title: "precision", of: (row) => row.precision ?? "", show: (row) => percent(row.precision), number: true },
    { key: "recall", title: "recall", of: (row) => row.recall ?? "", show: (row) => percent(row.recall), number: true },
    { key: "lead", title: "lead, days", of: (row) => row.lead_days ?? "", show: (row) => row.lead_days?.toFixed(1) ?? "", number: true },
  ];
  return html`<h2>What became of earlier findings</h2>
    <${Table} name="scorecard" columns=${columns} found=${useList("/trends/scorecard")} id=${(/** @type {Row} */ row) => row.metric} cli="hostler trend scorecard" />`;
}

export function Maintenance() {
  const { pool, rack, month } = selected(["pool", "rack", "month"]);
  const wanted = new URLSearchParams(Object.entries({ limit: "1000", pool, rack }).filter(([, value]) => value));
  const { found, problem } = useDocument(`/maintenance?${wanted}`);
  const rows = (/** @type {string} */ name) => ({ items: found?.[name] ?? null, problem, cut: Boolean(found?.cursor) });
  const cli = `hostler maintenance list${rack && ` --rack ${quoted(rack)}`}${pool && ` --pool ${quoted(pool)}`}`;
  return html`<${Page} title="Maintenance" about="Windows and whose they are, present and coming work with its account, and nodes that leave.">
    <div class="buttons noprint"><${ActButton} verb="schedule-maintenance" target="fleet" named="fleet" label="Set a window for the fleet" />
      ${rack && html`<${ActButton} verb="schedule-maintenance" target=${`rack:${rack}`} named=${rack} label=${`Set a window for rack ${rack}`} />`}
      ${pool && html`<${ActButton} verb="schedule-maintenance" target=${`pool:${pool}`} named=${pool} label=${`Set a window for pool ${pool}`} />`}</div>
    <${Filters} names=${["pool", "rack"]} />
    <h2>Windows</h2><${Table} name="windows" fixed columns=${WINDOWS} found=${rows("windows")} id=${(/** @type {Row} */ row) => row.id} cli=${cli} />
    <h2>Work</h2><${Table} name="work" fixed columns=${WORK} found=${rows("work")} id=${(/** @type {Row} */ row) => `${row.node} ${row.ticket} ${row.state} ${row.action}`} cli=${cli} />
    <h2>Nodes that leave</h2><${Table} name="notices" fixed columns=${NOTICES} found=${rows("notices")} id=${(/** @type {Row} */ row) => `${row.node} ${row.at}`} cli=${cli} />
    <${Statement} key=${month} month=${month} /><//>`;
}

/** @param {Row} row */
function answered(row) {
  return row.answers.map((/** @type {Row} */ one) => `${one.tenant} ${one.rather ? `asks for ${moment(one.rather)} instead` : "acknowledged"}: ${one.reason}`).join("; ");
}

/** @type {import("./types.js").Column[]} */
const WINDOWS = [
  { key: "scope", title: "of", of: (row) => row.scope },
  { key: "starts", title: "from", of: (row) => row.starts, show: (row) => moment(row.starts) },
  { key: "ends", title: "until", of: (row) => row.ends, show: (row) => moment(row.ends) },
  { key: "state", title: "state", of: (row) => (now() < row.starts ? "planned" : now() < row.ends ? "open" : "over") },
  { key: "owner", title: "set by", of: (row) => row.owner },
  { key: "reason", title: "reason", of: (row) => row.reason },
  { key: "answers", title: "tenants answered", of: answered },
  { key: "id", title: "window", of: (row) => row.id },
  { key: "acts", title: "acts", acts: true, of: () => "", show: (row) => html`<${ActButton} verb="cancel-maintenance" target=${row.id} named=${row.id} label="Call off" />
    <${ActButton} verb="answer-maintenance" target=${row.id} named=${row.id} label="Acknowledge, or ask for another time" />` },
];
/** @type {import("./types.js").Column[]} */
const WORK = [
  { key: "node", title: "node", of: (row) => row.node, show: (row) => html`<${NodeLink} id=${row.node} />` },
  { key: "rack", title: "rack", of: (row) => row.rack },
  { key: "state", title: "state", of: (row) => row.state },
  { key: "action", title: "what is done", of: (row) => plain(row.action) },
  { key: "fault", title: "fault", of: (row) => row.fault },
  { key: "component", title: "component", of: (row) => row.component },
  { key: "hardware", title: "serial", of: (row) => row.hardware },
  { key: "account", title: "account", of: (row) => row.account },
  { key: "opened", title: "open for", of: (row) => row.opened ?? "", show: (row) => since(row.opened, now()) },
  { key: "ticket", title: "ticket", of: (row) => row.ticket },
  { key: "waits", field: "waits_for", title: "waits for", of: (row) => row.waits_for },
];
/** @type {import("./types.js").Column[]} */
const NOTICES = [
  { key: "node", title: "node", of: (row) => row.node, show: (row) => html`<${NodeLink} id=${row.node} />` },
  { key: "rack", title: "rack", of: (row) => row.rack },
  { key: "reason", title: "why", of: (row) => row.reason },
  { key: "at", title: "when", of: (row) => row.at, show: (row) => moment(row.at) },
];

export function Policy() {
  const { found, problem } = useDocument("/config");
  const rollouts = useList("/rollouts");
  const [begun, begin] = useState(0);
  return html`<${Page} title="Policy" about="What is in force, what comes into force slice by slice, what another one would do, and what it would have done.">
    ${problem && html`<p class="banner critical" role="alert">${problem}</p>`}
    ${found && html`<p>In force since ${moment(found.activated)}: <code class="cli">${found.sha256.slice(0, 12)}</code>${found.source && html`, from commit <code class="cli" title=${found.source.commit}>${found.source.commit.slice(0, 12)}</code>${found.source.ref && ` of ${found.source.ref}`}${found.source.origin && ` in ${found.source.origin}`}`}</p>`}
    <h2>Rollouts</h2>
    <${Table} name="rollouts" columns=${ROLLOUTS} found=${rollouts} id=${(/** @type {Row} */ row) => row.id} cli="hostler rollout list" />
    ${configures.value && html`<${Another} begun=${() => begin(begun + 1)} />`}
    ${found && html`<${Backtests} active=${found.sha256} rollouts=${rollouts.items ?? []} begun=${begun} />`}
    ${found && html`<h2>Rules</h2>
      <${Table} name="rules" fixed columns=${RULES} found=${{ items: Object.entries(found.policy.rules).map(([condition, rule]) => ({ condition, ...rule })), problem: "" }} id=${(/** @type {Row} */ row) => row.condition} cli="hostler policy show" />
      <details><summary>Everything that is in force</summary><div class="scroll" tabindex="0" role="region" aria-label="configuration"><pre>${JSON.stringify(found, null, 2)}</pre></div></details>`}<//>`;
}

/** @type {import("./types.js").Column[]} */
export const ROLLOUTS = [
  { key: "id", title: "rollout", of: (row) => row.id },
  { key: "state", title: "state", of: (row) => row.state },
  { key: "sha256", title: "brings", of: (row) => row.sha256.slice(0, 12) },
  { key: "before", title: "in place of", of: (row) => row.before.slice(0, 12) },
  { key: "person", title: "by", of: (row) => [row.person, row.approved_by].filter(Boolean).join(", approved by ") },
  { key: "reason", title: "reason", of: (row) => row.reason },
  { key: "started", title: "since", of: (row) => row.started, show: (row) => moment(row.started) },
  { key: "slice", title: "slice", of: (row) => `${row.index + 1} of ${row.slices.length}${row.slices[row.index]?.pool ? `: ${row.slices[row.index].pool}` : ""}` },
  { key: "until", title: "watched until", of: (row) => row.until, show: (row) => (row.state === "running" ? moment(row.until) : "") },
  { key: "errors", title: "errors", of: (row) => row.errors.length, show: (row) => `${row.errors.length} of ${row.tolerated} tolerated`, number: true },
  { key: "waits", field: "waits_for", title: "waits for", of: (row) => row.waits_for || row.why },
  { key: "acts", title: "acts", acts: true, of: () => "", show: (row) => row.state === "running" && html`<${ActButton} verb="stop-rollout" target=${row.id} named=${row.id} label="Stop" />` },
];
/** @param {Row} value */
const words = (value) => (value && typeof value === "object" ? JSON.stringify(value) : `${value ?? ""}`);
/** @type {import("./types.js").Column[]} */
const RULES = [
  { key: "condition", title: "condition", of: (row) => row.condition },
  { key: "remedy", title: "remedy", of: (row) => plain(words(row.remedy)) },
  { key: "rest", title: "the rest", of: (row) => Object.entries(row).filter(([name, value]) => !["condition", "remedy"].includes(name) && value !== null && value !== false && words(value) !== "none" && words(value) !== "" && words(value) !== "[]" && words(value) !== "{}").map(([name, value]) => `${plain(name)} ${words(value)}`).join("; ") },
];

// Another configuration: what it would change and disturb, and only then a button that puts it in force; or what it would
// have done in recorded history, which disturbs nobody.
/** @param {{ begun: () => void }} props */
function Another({ begun }) {
  const [documents, choose] = useState(/** @type {Record<string, string> | null} */ (null));
  const [reason, because] = useState("");
  const [plan, show] = useState(/** @type {import("./types.js").ActAnswer | null} */ (null));
  const [period, during] = useState({ since: "", until: "" });
  const [said, say] = useState({ text: "", bad: false, problems: /** @type {import("./types.js").DocumentProblem[]} */ ([]), busy: false });
  const read = async (/** @type {Row} */ event) => {
    const files = [...event.target.files];
    const texts = await Promise.all(files.map((file) => file.text()));
    choose(Object.fromEntries(files.map((file, at) => [file.name, texts[at]])));
    show(null);
  };
  const attempt = async (/** @type {() => Promise<string>} */ act) => {
    say({ text: "", bad: false, problems: [], busy: true });
    try {
      say({ text: await act(), bad: false, problems: [], busy: false });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      show(null);
      say({ text: error.text, bad: true, problems: error.problems, busy: false });
    }
  };
  const put = (/** @type {boolean} */ dryRun) => attempt(async () => {
    const answer = await send("/config", { documents, reason, dry_run: dryRun });
    show(dryRun ? answer : null);
    return answer.text;
  });
  const replay = () => attempt(async () => {
    const run = await send("/backtests", { documents, reason, since: utc(period.since), until: utc(period.until) });
    setQuery({ backtest: run.id });
    begun();
    return "History is replayed: below, as it comes.";
  });
  const ready = documents && Object.keys(documents).length > 0 && reason.trim();
  return html`<details class="another"><summary>Try another configuration</summary>
    <form onSubmit=${(/** @type {Row} */ event) => { event.preventDefault(); put(!plan); }}>
      <label>Documents (all of them: together they are the whole configuration)<input type="file" multiple accept=".yaml,.yml" onChange=${read} /></label>
      <label>Reason<input required maxlength="500" value=${reason} onInput=${(/** @type {Row} */ event) => { because(event.target.value); show(null); }} /></label>
      <p role="status" class=${said.bad ? "bad" : ""}>${said.text}</p>
      ${said.problems.length > 0 && html`<ol>${said.problems.map((one) => html`<li>${one.file}${one.line ? `:${one.line}` : ""}: ${one.what}; ${one.instead}</li>`)}</ol>`}
      ${plan && html`<dl class="plan">${Object.entries(plan.detail).filter(([, value]) => value).map(([name, value]) => html`<dt>${plain(name)}</dt><dd>${value}</dd>`)}</dl>`}
      <fieldset><legend>History that is replayed (UTC; all of it, where nothing is given)</legend>
        <label>from<input type="datetime-local" value=${period.since} onInput=${(/** @type {Row} */ event) => during({ ...period, since: event.target.value })} /></label>
        <label>until<input type="datetime-local" value=${period.until} onInput=${(/** @type {Row} */ event) => during({ ...period, until: event.target.value })} /></label>
        <button type="button" disabled=${!ready || said.busy} onClick=${replay}>Replay history with it</button></fieldset>
      <p class="quiet"><code class="cli">hostler backtest begin ${documents ? Object.keys(documents).map(quoted).join(" ") : "FILES"} --reason ${quoted(reason || "…")}</code></p>
      <div class="buttons"><button disabled=${!ready || said.busy}>${plan ? "Put it in force" : "Show what it would change and disturb"}</button></div>
    </form></details>`;
}

const AUDITED = ["chain", "person", "verb", "target", "address", "result", "since", "until"];
/** @type {import("./types.js").Column[]} */
const AUDIT = [
  { key: "at", title: "when", of: (row) => row.at, show: (row) => moment(row.at) },
  { key: "person", title: "who", of: (row) => row.person || "a stranger" },
  { key: "role", title: "as", of: (row) => row.role },
  { key: "verb", title: "verb", of: (row) => row.verb },
  { key: "target", title: "on", of: (row) => row.target },
  { key: "outcome", title: "outcome", of: (row) => row.outcome, show: (row) => plain(row.outcome) },
  { key: "status", title: "status", of: (row) => row.status, number: true },
  { key: "count", title: "times", of: (row) => row.count, number: true },
  { key: "lasted", field: "last", title: "within", of: (row) => row.last, show: (row) => (row.count > 1 ? span((Date.parse(row.last) - Date.parse(row.at)) / 1000) : "") },
  { key: "address", title: "from", of: (row) => row.address },
  { key: "token", title: "token", of: (row) => row.token },
  { key: "route", title: "route", of: (row) => `${row.method} ${row.route}` },
  { key: "request", title: "request", of: (row) => row.request },
];

export function Audit() {
  const query = selected(AUDITED);
  const given = Object.entries(query).filter(([, value]) => value).map(([name, value]) => ` --${name === "result" ? "outcome" : name} ${quoted(value)}`);
  return html`<${Page} title="Audit" about="Requests that changed something, and those that were refused. Alike refusals are one line a minute.">
    <${Filters} names=${AUDITED} />
    <${Table} name="audit" columns=${AUDIT} found=${useList("/audit", query)} id=${(/** @type {Row} */ row) => `${row.chain} ${row.number}`} cli=${`hostler audit list --limit 0${given.join("")}`} /><//>`;
}
