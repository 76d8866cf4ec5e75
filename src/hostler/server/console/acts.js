// Asking for an act: why, what it would do (a dry run), and the name typed once more where it disturbs somebody.
import { Problem, ask, send } from "./api.js";
import { html, signal, useEffect, useRef, useState } from "./ui.js";
import { plain } from "./words.js";

/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").AskedAct} AskedAct */
/** @typedef {import("./types.js").ActAnswer} ActAnswer */
/** @typedef {import("./types.js").Fields} Fields */

export const verbs = signal(/** @type {import("./types.js").VerbView[]} */ ([]));
const asked = signal(/** @type {AskedAct | null} */ (null));

export async function readVerbs() {
  verbs.value = await ask("/verbs");
}

/** @param {string} verb */
export function may(verb) {
  return verbs.value.some((one) => one.verb === verb);
}

// Where the console reads what an argument may be: its name below the verb's.
/** @type {Record<string, (target: string) => string>} */
const OFFERED = { "hand-over-ticket to": (target) => `/tickets/${encodeURIComponent(target)}/people` };

// Opens the dialog. `target` as the API has it, `nodes` where it is several nodes as one act, `targets` where it is asked
// for on each of several; `named` is how people call it; `fields` and `reason` are filled in already.
/** @param {{ verb: string, target: string, targets?: string[], nodes?: string[], named: string, fields?: Fields, reason?: string }} props */
export function act({ verb, target, targets = [], nodes = [], named, fields = {}, reason = "" }) {
  const offered = verbs.value.find((one) => one.verb === verb);
  if (offered) asked.value = { verb: offered, target, targets: targets.length > 1 ? targets : [], nodes, named, given: fields, reason };
}

// A button for each verb that may be asked for, under the headings of the command line.
/** @param {{ id: string }} props */
export function NodeActs({ id }) {
  const offered = verbs.value.filter((one) => one.on_node && one.heading && !one.route);
  if (!offered.length) return null;
  const headings = [...new Set(offered.map((one) => one.heading))];
  return html`
    <details class="acts-menu">
      <summary>Act on it</summary>
      <div class="menu">${headings.map((heading) => html`
        <p class="quiet">${heading}</p>
        <div class="buttons">${offered.filter((one) => one.heading === heading).map((one) => html`
          <button title=${one.help} onClick=${() => act({ verb: one.verb, target: id, named: id })}>${one.verb.replaceAll("-", " ")}</button>`)}</div>
      `)}</div>
    </details>
  `;
}

/** @param {{ verb: string, target: string, named: string, nodes?: string[], fields?: Fields, label: string }} props */
export function ActButton({ verb, target, named, nodes, fields, label }) {
  if (!may(verb)) return null;
  return html`<button onClick=${() => act({ verb, target, named, nodes, fields })}>${label}</button>`;
}

export function ActDialog() {
  const now = asked.value;
  if (!now) return null;
  return html`<${Asking} key=${`${now.verb.verb} ${now.target}`} now=${now} />`;
}

/** @param {{ now: AskedAct }} props */
function Asking({ now }) {
  const box = useRef(/** @type {Row} */ (null));
  const [form, fill] = useState({ reason: now.reason, fields: now.given });
  const [plan, show] = useState(/** @type {ActAnswer | null} */ (null));
  const [state, say] = useState({ busy: false, text: "", bad: false, done: false });
  const [typed, type] = useState("");
  useEffect(() => {
    box.current.showModal();
    box.current.querySelector("input").focus();
  }, []);
  const close = () => {
    asked.value = null;
  };
  const change = (/** @type {Row} */ next) => {
    fill({ ...form, ...next });
    show(null);
  };
  const put = async (/** @type {boolean} */ dryRun) => {
    say({ busy: true, text: "", bad: false, done: false });
    try {
      const { answer, bad } = now.targets.length ? await sendEach(now, form, dryRun) : { answer: await send("/intents", body(now, form, dryRun)), bad: false };
      if (dryRun) show(answer.granted || !bad ? answer : null);
      const back = dryRun ? "" : answer.detail.call_off;
      say({ busy: false, text: back ? `${answer.text}. To call it off: ${back}` : answer.text, bad, done: !dryRun });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      say({ busy: false, text: error.text, bad: true, done: false });
    }
  };
  const grave = plan && touched(plan) > 0;
  const ready = plan && (!grave || typed.trim() === now.named);
  return html`
    <dialog ref=${box} onClose=${close} aria-labelledby="act-title">
      <form onSubmit=${(/** @type {Row} */ event) => { event.preventDefault(); put(!ready); }}>
        <h2 id="act-title">${now.verb.verb.replaceAll("-", " ")} ${now.named}</h2>
        <p class="quiet">${now.verb.help}</p>
        <label>Reason<input required maxlength="500" value=${form.reason} onInput=${(/** @type {Row} */ event) => change({ reason: event.target.value })} disabled=${state.done} /></label>
        ${now.verb.args.map((/** @type {Row} */ arg) => html`<${Argument} arg=${arg} offered=${OFFERED[`${now.verb.verb} ${arg.name}`]?.(now.target) ?? ""} value=${form.fields[arg.name]} set=${(/** @type {Row} */ value) => change({ fields: { ...form.fields, [arg.name]: value } })} />`)}
        ${plan && html`<dl class="plan">${Object.entries(plan.detail).filter(([, value]) => value).map(([name, value]) => html`<dt>${plain(name)}</dt><dd>${value}</dd>`)}</dl>`}
        ${grave && !state.done && html`<label>It disturbs ${touched(plan)} node(s). Type <b>${now.named}</b> to go on<input value=${typed} onInput=${(/** @type {Row} */ event) => type(event.target.value)} autocomplete="off" /></label>`}
        <p role="status" class=${state.bad ? "bad" : ""}>${state.text}</p>
        <p class="quiet"><code class="cli">${command(now, form)}</code></p>
        <div class="buttons">
          <button type="button" onClick=${() => box.current.close()}>${state.done ? "Close" : "Cancel"}</button>
          ${!state.done && html`<button disabled=${state.busy || (plan && !ready)}>${plan ? "Do it" : "Show what it would do"}</button>`}
        </div>
      </form>
    </dialog>
  `;
}

// Kinds of arguments that are numbers, and by what they go up.
/** @type {Record<string, string>} */
const STEPS = { number: "any", integer: "1" };

/** @param {{ arg: Row, offered: string, value: Row, set: Row }} props */
function Argument({ arg, offered, value, set }) {
  const title = plain(arg.name);
  const [names, offer] = useState(/** @type {string[]} */ ([]));
  useEffect(() => {
    // Without the offer the name is typed; the server says whether it is known.
    if (offered) ask(offered).then((people) => offer(people.map((/** @type {Row} */ one) => one.name)), () => offer([]));
  }, [offered]);
  if (arg.kind === "boolean") {
    return html`<label class="check"><input type="checkbox" checked=${value === true} onChange=${(/** @type {Row} */ event) => set(event.target.checked)} />${title}<small>${arg.help}</small></label>`;
  }
  if (arg.kind === "choice") {
    return html`<label>${title}<small>${arg.help}</small><select required=${arg.required} value=${value ?? ""} onChange=${(/** @type {Row} */ event) => set(event.target.value)}>
      <option value=""></option>${arg.choices.map((/** @type {Row} */ one) => html`<option>${one}</option>`)}</select></label>`;
  }
  return html`<label>${title}<small>${arg.help}</small><input type=${arg.kind in STEPS ? "number" : "text"} step=${STEPS[arg.kind]} required=${arg.required} value=${value ?? ""} list=${names.length ? `offered-${arg.name}` : undefined} onInput=${(/** @type {Row} */ event) => set(event.target.value)} />
    ${names.length > 0 && html`<datalist id=${`offered-${arg.name}`}>${names.map((one) => html`<option value=${one}></option>`)}</datalist>`}</label>`;
}

// Asks on each target by itself, as one refusal stops none of the others, and adds up what was answered.
/** @param {AskedAct} now @param {Row} form @param {boolean} dryRun @returns {Promise<{ answer: ActAnswer, bad: boolean }>} */
async function sendEach(now, form, dryRun) {
  /** @type {ActAnswer[]} */
  const answers = [];
  /** @type {string[]} */
  const refusals = [];
  for (const target of now.targets) {
    try {
      answers.push(await send("/intents", body({ ...now, target }, form, dryRun)));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      refusals.push(`${target}: ${error.text}`);
    }
  }
  const told = `${answers.length} of ${now.targets.length} ${dryRun ? "would be answered so" : "are answered"}`;
  return { answer: { granted: answers.length > 0, text: [told, ...refusals].join("; "), detail: added(answers) }, bad: refusals.length > 0 };
}

// What several answers come to: each node once, numbers added, words that differ one after the other.
/** @param {ActAnswer[]} answers @returns {Record<string, string>} */
function added(answers) {
  const all = (/** @type {string} */ name) => [...new Set(answers.map((one) => one.detail[name] ?? "").filter(Boolean))];
  const nodes = [...new Set(all("nodes").flatMap((one) => one.split(",")))];
  const sum = (/** @type {string} */ name) => answers.reduce((total, one) => total + (Number(one.detail[name]) || 0), 0);
  return {
    plan: all("plan").join("; "),
    disturbs: String(nodes.length || sum("disturbs") || ""),
    nodes: nodes.join(","),
    gpus: String(sum("gpus") || ""),
    waits_for: all("waits_for").join("; "),
    call_off: all("call_off").slice(0, 3).join("; "),
  };
}

/** @param {AskedAct} now @param {Row} form @param {boolean} dryRun */
function body(now, form, dryRun) {
  const act = { verb: now.verb.verb, ...given(now, form) };
  const more = now.nodes.length ? { nodes: now.nodes } : {};
  return { act, target: now.nodes.length ? "nodes" : now.target, reason: form.reason, dry_run: dryRun, ...more };
}

// What is filled in, each under the type that the verb's argument has; a number is typed as text.
/** @param {AskedAct} now @param {Row} form @returns {Fields} */
function given(now, form) {
  const filled = now.verb.args.map(({ name, kind }) => [name, kind, form.fields[name]]).filter(([, , value]) => value !== undefined && value !== "" && value !== false);
  return Object.fromEntries(filled.map(([name, kind, value]) => [name, kind in STEPS ? Number(value) : value]));
}

/** @param {Row} plan */
function touched(plan) {
  return Number(plan.detail.disturbs) || (plan.detail.plan ? plan.detail.nodes.split(",").length : 0);
}

/** @param {AskedAct} now @param {Row} form */
function command(now, form) {
  if (!now.verb.command) return "";
  const targets = (now.nodes.length ? now.nodes : now.targets.length ? now.targets : [now.target]).map(quoted).join(" ");
  const options = Object.entries(given(now, form))
    .map(([name, value]) => ` --${name.replaceAll("_", "-")}${value === true ? "" : ` ${quoted(String(value))}`}`);
  return `hostler ${now.verb.command} ${targets} --reason ${quoted(form.reason || "…")}${options.join("")}`;
}

/** @param {string} text */
function quoted(text) {
  return /^[\w.:/@=+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
