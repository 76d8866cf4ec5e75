// A network's test by hand: whose it is, when it is due, its checklist, and its runs with what is irregular in them.
import { ActButton } from "./acts.js";
import { html } from "./ui.js";
import { moment } from "./words.js";

export function ManualTest({ seen }) {
  const test = seen.manual_test;
  const schedule = html`<${ActButton} verb="schedule-manual-test" target=${seen.name} named=${seen.name} label=${test ? "Schedule otherwise" : "Schedule a test by hand"} />`;
  if (!test) return html`<p class="quiet">No test by hand is scheduled.</p><div class="buttons">${schedule}</div>`;
  const waits = test.runs.length > 0 && !test.runs.at(-1).signed;
  return html`
    <p>${test.owner} sees to it every ${test.every_days} days. ${seen.manual_test_overdue ? html`<b class="bad">Overdue since ${moment(seen.manual_test_due)}.</b>` : `Due by ${moment(seen.manual_test_due)}.`}</p>
    <h2>Checklist</h2>
    <ol class="todo">${test.checklist.map((step) => html`<li>${step}</li>`)}</ol>
    <div class="buttons">
      <${ActButton} verb="enter-manual-test" target=${seen.name} named=${seen.name} label="Enter results" />
      ${waits && html`<${ActButton} verb="sign-manual-test" target=${seen.name} named=${seen.name} label="Sign off" />`}
      ${schedule}
    </div>
    <h2>Runs <small>newest first</small></h2>
    ${test.runs.length === 0 && html`<p class="quiet">None has been entered.</p>`}
    ${[...test.runs].reverse().map((run) => html`<${Run} run=${run} />`)}
  `;
}

function Run({ run }) {
  return html`<article class="chain">
    <h3><time>${moment(run.entered)}</time>entered by ${run.person}, ${run.signed ? `signed off by ${run.signed_by} ${moment(run.signed)}` : html`<b class="bad">not signed off</b>`}</h3>
    ${run.irregular.map((one) => html`<p class="bad">${one}</p>`)}
    ${run.notes && html`<p>${run.notes}</p>`}
    <details><summary>${run.results.length} metrics</summary>
      <table><thead><tr><th>metric</th><th class="number">value</th></tr></thead>
        <tbody>${run.results.map(([name, value]) => html`<tr><td>${name}</td><td class="number">${value}</td></tr>`)}</tbody></table></details>
  </article>`;
}
