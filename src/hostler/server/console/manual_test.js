// A network's test by hand: its checklist with ticks, photos and files, its results, and its runs with what is irregular.
import { ActButton, may } from "./acts.js";
import { said, send } from "./api.js";
import { AddFile, Files } from "./files.js";
import { html, useState } from "./ui.js";
import { moment } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

/** @param {Row} network */
const filesOf = (network) => `/fabrics/${encodeURIComponent(network)}/manual-test/files`;

/** @param {{ seen: Row }} props */
export function ManualTest({ seen }) {
  const test = seen.manual_test;
  const schedule = html`<${ActButton} verb="schedule-manual-test" target=${seen.name} named=${seen.name} label=${test ? "Schedule otherwise" : "Schedule a test by hand"} />`;
  if (!test) return html`<p class="quiet">No test by hand is scheduled.</p><div class="buttons">${schedule}</div>`;
  const waits = test.runs.length > 0 && !test.runs.at(-1).signed;
  return html`
    <p>${test.owner} sees to it every ${test.every_days} days. ${seen.manual_test_overdue ? html`<b class="bad">Overdue since ${moment(seen.manual_test_due)}.</b>` : `Due by ${moment(seen.manual_test_due)}.`}</p>
    <h2>Checklist</h2>
    <ol class="todo">${test.checklist.map((/** @type {Row} */ step, /** @type {Row} */ place) => html`<${Step} network=${seen.name} step=${step} number=${place + 1} tick=${test.ticks.find((/** @type {Row} */ one) => one.step === place + 1)} />`)}</ol>
    <h2>Photos and files of this run</h2>
    <${Files} path=${filesOf(seen.name)} files=${test.files} />
    ${may("tick-manual-test") && html`<${AddFile} path=${filesOf(seen.name)} reason="test by hand" /><${Enter} network=${seen.name} />`}
    <div class="buttons">
      ${waits && html`<${ActButton} verb="sign-manual-test" target=${seen.name} named=${seen.name} label="Sign off" />`}
      ${schedule}
    </div>
    <h2>Runs <small>newest first</small></h2>
    ${test.runs.length === 0 && html`<p class="quiet">None has been entered.</p>`}
    ${[...test.runs].reverse().map((run) => html`<${Run} network=${seen.name} run=${run} checklist=${test.checklist} />`)}
  `;
}

/** @param {{ network: Row, step: Row, number: Row, tick: Row }} props */
function Step({ network, step, number, tick }) {
  return html`<li>${step} ${tick ? html`<b>ticked</b> by ${tick.person} ${moment(tick.at)}${tick.note && `: ${tick.note}`}`
    : html`<${ActButton} verb="tick-manual-test" target=${network} named=${network} fields=${{ step: number }} label=${`Tick step ${number}`} />`}</li>`;
}

/** @param {{ network: Row, run: Row, checklist: Row }} props */
function Run({ network, run, checklist }) {
  return html`<article class="chain">
    <h3><time>${moment(run.entered)}</time>entered by ${run.person}, ${run.signed ? `signed off by ${run.signed_by} ${moment(run.signed)}` : html`<b class="bad">not signed off</b>`}</h3>
    ${run.irregular.map((/** @type {Row} */ one) => html`<p class="bad">${one}</p>`)}
    ${run.notes && html`<p>${run.notes}</p>`}
    ${run.ticks.length > 0 && html`<ul>${run.ticks.map((/** @type {Row} */ one) => html`<li>${one.step}. ${checklist[one.step - 1] ?? ""} <span class="quiet">${one.person} ${moment(one.at)} ${one.note}</span></li>`)}</ul>`}
    <${Files} path=${filesOf(network)} files=${run.files} />
    <details><summary>${run.results.length} metrics</summary>
      <table><thead><tr><th>metric</th><th class="number">value</th></tr></thead>
        <tbody>${run.results.map((/** @type {[string, number]} */ [name, value]) => html`<tr><td>${name}</td><td class="number">${value}</td></tr>`)}</tbody></table></details>
  </article>`;
}

/** @param {{ network: Row }} props */
function Enter({ network }) {
  const [state, say] = useState({ text: "", bad: false });
  const read = async (/** @type {Row} */ event) => {
    const [file] = event.target.files;
    if (file) event.target.form.elements.results.value = await file.text();
  };
  const enter = async (/** @type {Row} */ event) => {
    event.preventDefault();
    const form = event.target;
    const { results, notes, reason } = Object.fromEntries(new FormData(form));
    try {
      const answer = await send(`/fabrics/${encodeURIComponent(network)}/manual-test`, { results, notes, reason });
      form.reset();
      say({ text: answer.text, bad: false });
    } catch (error) {
      say({ text: said(error), bad: true });
    }
  };
  return html`<details><summary>Enter results</summary><form class="entry" onSubmit=${enter}>
    <label>results, one line each: metric,value<textarea name="results" rows="6" required></textarea></label>
    <label>or from a CSV<input type="file" accept="text/csv,text/plain" onChange=${read} /></label>
    <label>notes<textarea name="notes" rows="2" maxlength="4000"></textarea></label>
    <label>reason<input name="reason" required maxlength="500" /></label>
    <div class="buttons"><button>Enter the results</button></div>
    <p role="status" class=${state.bad ? "bad" : "quiet"}>${state.text}</p></form></details>`;
}
