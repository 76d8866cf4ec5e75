// Versions of a network's design: who brought each and why, what it changed, what another would change, the way back.
import { may } from "./acts.js";
import { said, send } from "./api.js";
import { useAnswer, useList } from "./lists.js";
import { now, quoted } from "./pages.js";
import { route, setQuery } from "./router.js";
import { Table } from "./table.js";
import { html, useState } from "./ui.js";
import { count, moment, since } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

/** @param {string} digest */
const short = (digest) => digest.slice(0, 12);

/** @param {{ name: string, path: string, heard: Row }} props */
export function Designs({ name, path, heard }) {
  const { old = "" } = route.value.query;
  const found = useList(`${path}/versions`, {}, heard);
  const newest = found.items?.at(-1);
  const before = found.items?.at(-2);
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "digest", title: "design", of: (row) => short(row.digest) },
    { key: "at", title: "came", of: (row) => row.at, show: (row) => html`${moment(row.at)} (${since(row.at, now())} ago)` },
    { key: "person", title: "by", of: (row) => row.person },
    { key: "reason", title: "why", of: (row) => row.reason },
    { key: "in_force", title: "in force", of: (row) => (row.in_force ? "yes" : "") },
    { key: "changes", title: "compare", of: (row) => (row.text ? "" : "its cables are not here"), show: (row) => (row.in_force ? "" : row.text ? html`<button onClick=${() => setQuery({ old: short(row.digest) })}>With the one in force</button>` : "its cables are not here") },
  ];
  const from = old || (before?.text ? short(before.digest) : "");
  return html`
    <${Table} name="versions" columns=${columns} found=${found} id=${(/** @type {Row} */ row) => row.at} cli=${`hostler fabric versions ${quoted(name)}`} sorting=${false} />
    ${newest && from && html`<${Changes} name=${name} path=${path} from=${from} heard=${heard} />`}
    ${may("register-fabric") && newest && html`<${Plan} name=${name} path=${path} />`}
    ${may("plan-recabling") && newest && html`<${Recable} name=${name} path=${path} />`}`;
}

/** @param {{ name: string, path: string, from: string, heard: Row }} props */
function Changes({ name, path, from, heard }) {
  const { answer, problem } = useAnswer(`${path}/diff?old=${encodeURIComponent(from)}`, heard);
  if (problem) return html`<p class="banner warning" role="alert">${problem}</p>`;
  if (!answer) return html`<p class="loading">Comparing …</p>`;
  return html`<h2>From ${short(answer.old)} to ${short(answer.new)}</h2>
    <${Listed} plan=${answer} cli=${`hostler fabric diff ${from} current --fabric ${quoted(name)}`} />
    ${may("register-fabric") && answer.old !== answer.new && html`<${Back} path=${path} version=${answer.old} />`}`;
}

/** @param {{ plan: Row, cli: string }} props */
function Listed({ plan, cli }) {
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "change", title: "change", of: (row) => row.change },
    { key: "a", title: "port that stays, or end", of: (row) => row.a },
    { key: "before", title: "before", of: (row) => row.before },
    { key: "z", title: "afterwards, or other end", of: (row) => row.z },
    { key: "rate", title: "rate", of: (row) => row.rate },
  ];
  return html`<p>${plan.summary}${plan.more > 0 ? `; ${count(plan.more)} more are not listed` : ""}</p>
    <${Table} name="changes" columns=${columns} found=${{ items: plan.changes }} id=${(/** @type {Row} */ row) => `${row.change} ${row.a} ${row.z} ${row.before}`} cli=${cli} sorting=${false} />`;
}

/** @param {{ path: string, version: Row }} props */
function Back({ path, version }) {
  const [state, say] = useState({ text: "", bad: false });
  const back = async (/** @type {Row} */ event) => {
    event.preventDefault();
    const { reason } = Object.fromEntries(new FormData(event.target));
    say(await told(() => send(`${path}/rollback`, { version, reason })));
  };
  return html`<details><summary>Go back to ${short(version)}</summary><form class="entry" onSubmit=${back}>
    <p class="quiet">The cables change the other way round; source, period and subnet stay as they are.</p>
    <label>reason<input name="reason" required maxlength="500" /></label>
    <div class="buttons"><button>Go back to ${short(version)}</button></div>
    <p role="status" class=${state.bad ? "bad" : "quiet"}>${state.text}</p></form></details>`;
}

/** @param {{ name: string, path: string }} props */
function Plan({ name, path }) {
  const [state, say] = useState({ text: "", bad: false, plan: null });
  const read = async (/** @type {Row} */ event) => {
    const [file] = event.target.files;
    if (!file) return;
    const design = await file.text();
    say({ text: "Comparing …", bad: false, plan: null });
    say(await told(async () => ({ text: "Nothing is registered by this.", plan: await send(`${path}/plan`, { name, design }) })));
  };
  return html`<details><summary>What would another design change?</summary>
    <form class="entry" onSubmit=${(/** @type {Row} */ event) => event.preventDefault()}>
      <label>design as CSV<input type="file" accept="text/csv,text/plain" onChange=${read} /></label>
      <p role="status" class=${state.bad ? "bad" : "quiet"}>${state.text}</p></form>
    ${state.plan && html`<${Listed} plan=${state.plan} cli=${`hostler fabric plan ${quoted(name)} design.csv`} />`}</details>`;
}

// The window's moments are UTC, as everywhere here: a browser's own zone is not the hall's.
/** @param {{ name: string, path: string }} props */
function Recable({ name, path }) {
  const [state, say] = useState({ text: "", bad: false });
  const plan = async (/** @type {Row} */ event) => {
    event.preventDefault();
    const dryRun = event.submitter.value === "look";
    const { starts, ends, reason } = Object.fromEntries(new FormData(event.target));
    const design = await event.target.elements.design.files[0].text();
    const body = { fabric: { name, design }, starts: `${starts}:00+00:00`, ends: `${ends}:00+00:00`, reason, dry_run: dryRun };
    say({ text: "Comparing …", bad: false });
    say(await told(async () => {
      const answer = await send(`${path}/recabling`, body);
      return { text: `${answer.text}. ${answer.detail.design}${dryRun ? ". Nothing is planned yet." : ""}` };
    }));
  };
  return html`<details><summary>Have it cabled by another design in a window</summary><form class="entry" onSubmit=${plan}>
    <p class="quiet">Until the window begins this design holds, after it the other one; within it both are right.</p>
    <label>design of the window as CSV<input type="file" name="design" accept="text/csv,text/plain" required /></label>
    <label>begins (UTC)<input type="datetime-local" name="starts" required /></label>
    <label>ends (UTC)<input type="datetime-local" name="ends" required /></label>
    <label>why<input name="reason" required maxlength="500" /></label>
    <div class="buttons"><button value="look">Show what it would do</button><button value="plan">Plan the re-cabling</button></div>
    <p role="status" class=${state.bad ? "bad" : "quiet"}>${state.text}</p>
    <p class="quiet"><code class="cli">${`hostler fabric recable ${quoted(name)} design.csv --starts … --ends … --reason …`}</code></p></form></details>`;
}

/** @param {Row} ask */
async function told(ask) {
  try {
    const answer = await ask();
    return { text: answer.text, bad: false, plan: answer.plan };
  } catch (error) {
    return { text: said(error), bad: true, plan: null };
  }
}
