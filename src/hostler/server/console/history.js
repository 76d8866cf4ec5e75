// A node's history, newest first. A moment that the address names is scrolled to and marked; where it lies before what was
// read, the records around it are shown.
import { useAnswer } from "./lists.js";
import { momentIn, momentOf } from "./moments.js";
import { nodePath, route, setQuery } from "./router.js";
import { timeline } from "./state.js";
import { html, useEffect, useRef } from "./ui.js";
import { clock, moment } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const SECOND = 1000;
const AROUND = 100;
const MOVES = ["wheel", "touchmove", "pointerdown", "keydown"];

/** @param {{ id: string }} props */
export function History({ id }) {
  const list = useRef(/** @type {Row} */ (null));
  const wanted = momentIn(route.value.query.moment);
  const recent = timeline.value;
  const isRead = Number.isNaN(wanted) || recent.some((row) => Date.parse(row.at) < wanted);
  const next = Number.isNaN(wanted) ? "" : momentOf(new Date(wanted).toISOString(), 1);
  const about = `/records?node=${encodeURIComponent(id)}&limit=${AROUND}`;
  const never = () => false;
  const past = useAnswer(isRead ? "" : `${about}&until=${next}`, never);
  const after = useAnswer(isRead ? "" : `${about}&since=${next}&order=oldest`, never);
  const rows = isRead ? recent : [...(after.answer?.items ?? [])].reverse().concat(past.answer?.items ?? []);
  // What stood at the moment is of the last record until its second had passed.
  const last = rows.find((row) => Date.parse(row.at) < wanted + SECOND);
  const marked = last ? momentOf(last.at) : "";
  useEffect(() => (marked ? keepInView(list.current) : undefined), [wanted, marked]);
  return html`
    <section class="history" aria-label="History">
      <h2>History <small>newest first</small></h2>
      ${!Number.isNaN(wanted) && html`<p class="quiet">${isRead ? "At" : "Around"} ${moment(new Date(wanted).toISOString())} <button onClick=${() => setQuery({ moment: "" })}>Up to now</button></p>`}
      ${(past.problem || after.problem) && html`<p class="bad" role="alert">${past.problem || after.problem}</p>`}
      <ol class="timeline" ref=${list}>
        ${rows.map((row, place) => html`
          ${day(row) !== day(rows[place - 1]) && html`<li class="day">${day(row)}</li>`}
          <li key=${row.seq} class=${kind(row.name)} aria-current=${marked && momentOf(row.at) === marked ? "true" : undefined}>
            <time title=${moment(row.at)}><a href=${`${nodePath(id)}?${new URLSearchParams({ ...route.value.query, moment: momentOf(row.at) })}`}>${clock(row.at)}</a></time>
            <div title=${`record ${row.seq}, ${row.name}, because of ${row.cause}`}><p>${row.text}</p></div>
          </li>`)}
      </ol>
    </section>
  `;
}

// What is drawn above the list comes later than the list and moves it: the mark stays in view until the reader moves.
/** @param {Row} list */
function keepInView(list) {
  const watch = new ResizeObserver(() => list.querySelector("[aria-current]")?.scrollIntoView({ block: "center" }));
  watch.observe(list.closest("main"));
  const over = () => {
    watch.disconnect();
    for (const kind of MOVES) removeEventListener(kind, over);
  };
  for (const kind of MOVES) addEventListener(kind, over, { passive: true });
  return over;
}

/** @param {Row} row */
function day(row) {
  return row ? row.at.slice(0, 10) : "";
}

/** @param {string} name */
function kind(name) {
  if (name === "plan_advanced" || name === "waiting_changed") return "k-small";
  if (name === "phase_changed") return "k-phase";
  if (name.startsWith("condition")) return name === "condition_cleared" ? "k-good" : "k-bad";
  if (name.startsWith("plan")) return "k-plan";
  if (name.startsWith("operation")) return "k-operation";
  return "k-other";
}
