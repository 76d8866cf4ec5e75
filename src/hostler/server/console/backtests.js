// Backtests on the policy page: recorded history replayed through other documents. The server runs and keeps them.
import { ask, said, send } from "./api.js";
import { NodeLink } from "./pages.js";
import { route, setQuery } from "./router.js";
import { configures } from "./state.js";
import { Table } from "./table.js";
import { html, useEffect, useState } from "./ui.js";
import { count, moment, plain } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const LOOK_MS = 2000;

// Reads what the path answers, and goes on while something runs: a backtest's end is no record of the journal. `asked`
// is counted up where somebody has changed what runs.
/** @param {string} path @param {number} asked @param {(answer: Row) => boolean} goesOn @returns {{ answer: Row, problem: string }} */
function useLook(path, asked, goesOn) {
  const [seen, show] = useState({ answer: null, problem: "", of: "" });
  useEffect(() => {
    let timer = 0;
    let left = !path;
    const look = async () => {
      const found = await ask(path).then((answer) => ({ answer, problem: "" }), (error) => ({ answer: null, problem: said(error) }));
      if (left) return;
      show({ ...found, of: path });
      if (found.answer && goesOn(found.answer)) timer = setTimeout(look, LOOK_MS);
    };
    if (path) look();
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [path, asked]);
  return seen.of === path ? seen : { answer: null, problem: "" };
}

/** @param {Row} run */
const runs = (run) => run.state === "running";

// `begun` is counted up by the form that begins one.
/** @param {{ active: string, rollouts: Row[], begun: number }} props */
export function Backtests({ active, rollouts, begun }) {
  const [asked, again] = useState(0);
  const [text, say] = useState("");
  const turn = begun * 1000 + asked;
  const { answer, problem } = useLook("/backtests?limit=1000", turn, (found) => found.items.some(runs));
  const cancel = async (/** @type {Row} */ run) => {
    try {
      await send(`/backtests/${run.id}/cancel`, { reason: "ended on the policy page" });
      say(`${run.id} is cancelled`);
    } catch (error) {
      say(said(error));
    }
    again(asked + 1);
  };
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "asked", title: "asked", of: (row) => row.asked, show: (row) => html`<a href=${`/policy?backtest=${encodeURIComponent(row.id)}`}>${moment(row.asked)}</a>` },
    { key: "state", title: "state", of: (row) => row.state },
    { key: "configuration", title: "configuration", of: (row) => row.sha256.slice(0, 12), show: (row) => html`<code>${row.sha256.slice(0, 12)}</code> ${standing(row, active, rollouts)}` },
    { key: "person", title: "by", of: (row) => row.person },
    { key: "reason", title: "reason", of: (row) => row.reason },
    { key: "changes", title: "values changed", of: (row) => row.differences.length, number: true },
    { key: "came", title: "what it came to", of: cameTo },
    { key: "acts", title: "acts", acts: true, of: () => "", show: (row) => configures.value && runs(row) && html`<button onClick=${() => cancel(row)}>Cancel</button>` },
  ];
  const items = answer ? [...answer.items].reverse() : null;
  return html`<h2>Backtests</h2>
    <p role="status">${text}</p>
    <${Table} name="backtests" columns=${columns} found=${{ items, problem }} id=${(/** @type {Row} */ row) => row.id} cli="hostler backtest list" sorting=${false} />
    <${Shown} turn=${turn} active=${active} rollouts=${rollouts} />`;
}

// How the configuration on trial stands to what is in force now.
/** @param {Row} run @param {string} active @param {Row[]} rollouts */
function standing(run, active, rollouts) {
  if (run.sha256 === active) return "is in force";
  const brings = rollouts.find((one) => one.sha256 === run.sha256);
  if (brings) return `rollout ${brings.id} ${brings.state}`;
  return run.against === active ? "" : "tried against another than is in force now";
}

/** @param {Row} run */
function cameTo(run) {
  if (!run.result) return run.why;
  const kinds = Object.entries(run.result.differences).map(([kind, number]) => `${count(number)} ${kind}`).join(", ");
  return kinds ? `${kinds} on ${count(run.result.nodes)} nodes` : "no difference";
}

// The backtest that the address names, with all of its differences.
/** @param {{ turn: number, active: string, rollouts: Row[] }} props */
function Shown({ turn, active, rollouts }) {
  const name = route.value.query.backtest ?? "";
  const { answer: run, problem } = useLook(name && `/backtests/${encodeURIComponent(name)}`, turn, runs);
  if (!name) return null;
  if (problem) return html`<p class="banner critical" role="alert">${problem}</p>`;
  if (!run) return html`<p class="loading">Reading ${name} …</p>`;
  return html`<section class="chain open" aria-labelledby="backtest">
    <h3 id="backtest">${run.state === "running" ? "Replaying history" : `Backtest ${run.state}`}: ${run.reason}</h3>
    <dl class="plan">${facts(run, standing(run, active, rollouts)).filter(([, value]) => value).map(([title, value]) => html`<dt>${title}</dt><dd>${value}</dd>`)}</dl>
    <details open><summary>What it changes</summary><ul>${run.differences.map((/** @type {string} */ one) => html`<li><code>${one}</code></li>`)}</ul></details>
    ${run.result && html`<${Differences} run=${run} />`}
    <div class="buttons noprint"><button onClick=${() => setQuery({ backtest: "" })}>Close</button></div>
  </section>`;
}

/** @param {Row} run @param {string} stands @returns {[string, string][]} */
function facts(run, stands) {
  const found = run.result;
  /** @type {[string, string][]} */
  const rows = [
    ["asked by", `${run.person}, ${moment(run.asked)}`],
    ["documents", run.documents.join(", ")],
    ["on trial", `${run.sha256.slice(0, 12)} against ${run.against.slice(0, 12)}${stands && `, ${stands}`}`],
    ["ended", run.ended ? `${moment(run.ended)}${run.ended_by && ` by ${run.ended_by}`}` : ""],
    ["because", run.why],
  ];
  if (!found) return rows;
  const known = found.fidelity;
  return [...rows,
    ["history", `${moment(found.since)} to ${moment(found.until)}, ${count(found.records)} records and ${count(found.observations)} observations`],
    ["how well it is explained", `${count(known.explained)} of ${count(known.remedies)} recorded remedies follow from the recorded policy`],
    ["differences", cameTo(run)],
    ["remedies", Object.entries(found.remedies).map(([name, change]) => `${plain(name)} ${change > 0 ? "+" : ""}${change}`).join(", ")],
    ["work ended by operations", `${found.disruptions_recorded}, on trial ${span(found.disruptions_trial, (value) => value.toFixed(0))}`],
    ["service", `${share(found.service_recorded)}, on trial ${span(found.service_trial, share)}`],
    ["cannot be judged by a replay", found.not_judged.join(", ")],
    ["how it is estimated", found.method],
  ];
}

/** @param {number} value */
const share = (value) => `${(100 * value).toFixed(3)} %`;
/** @param {Row} estimate @param {(value: number) => string} told */
const span = (estimate, told) => `${told(estimate.likely)} (${told(estimate.least)} to ${told(estimate.most)})`;

/** @type {import("./types.js").Column[]} */
const DIFFERENCES = [
  { key: "at", title: "when", of: (row) => row.at, show: (row) => moment(row.at) },
  { key: "node", title: "node", of: (row) => row.node, show: (row) => html`<${NodeLink} id=${row.node} />` },
  { key: "pool", title: "pool", of: (row) => row.pool },
  { key: "kind", title: "what", of: (row) => row.kind },
  { key: "rule", title: "rule", of: (row) => row.rule },
  { key: "recorded", title: "as recorded", of: (row) => row.recorded },
  { key: "trial", title: "on trial", of: (row) => row.trial },
  { key: "hours", title: "hours out", of: (row) => row.recorded_hours, show: (row) => `${row.recorded_hours.toFixed(2)}${row.ended ? "" : "+"}`, number: true },
  { key: "trial_hours", title: "on trial", of: (row) => row.trial_hours.likely, show: (row) => span(row.trial_hours, (value) => value.toFixed(2)), number: true },
  { key: "past", title: "its past is another since", of: (row) => (row.counterfactual ? row.diverged_at : ""), show: (row) => (row.counterfactual ? moment(row.diverged_at) : "") },
];

/** @param {{ run: Row }} props */
function Differences({ run }) {
  return html`${run.rows_left_out > 0 && html`<p class="quiet">${count(run.rows_left_out)} later differences are counted and not kept.</p>`}
    <${Table} name="differences" fixed columns=${DIFFERENCES} found=${{ items: run.result.rows, problem: "" }} id=${(/** @type {Row} */ row) => `${row.seq} ${row.node}`} cli=${`hostler backtest show ${run.id}`} sorting=${false} />`;
}

// A moment of a form, as the API takes it: a browser's field has no zone, and all moments here are UTC.
/** @param {string} local */
export function utc(local) {
  if (!local) return null;
  return local.length === "2026-01-31T08:00".length ? `${local}:00Z` : `${local}Z`;
}
