// Claims on the board: one ticket or a rack's, in one tap, as a claim disturbs nobody; and what came of one's own work.
import { ActButton, may } from "./acts.js";
import { said, send } from "./api.js";
import { now } from "./pages.js";
import { me, onRecord } from "./state.js";
import { html, useEffect, useRef, useState } from "./ui.js";
import { moment } from "./words.js";

/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").JournalRecord} JournalRecord */

const TOLD_MOST = 8;
const VERDICTS = new Set(["ticket_closed", "ticket_updated", "check_recorded", "phase_changed"]);

// Who has the ticket now, "" for nobody: a claim ends with its shift.
/** @param {Row} ticket @returns {string} */
export function holder(ticket) {
  return ticket.claimed_until && ticket.claimed_until > (now() ?? "") ? ticket.claimed_by : "";
}

/** @param {Row} ticket @returns {string} */
export function claimText(ticket) {
  if (!ticket.claimed_by) return "";
  return `${ticket.claimed_by}, ${holder(ticket) ? "until" : "whose shift was over at"} ${moment(ticket.claimed_until)}`;
}

/** @param {Row} ticket */
const claim = (ticket) => send("/intents", { act: { verb: "claim-ticket" }, target: ticket.id, reason: "claimed at the board" });

/** @param {{ ticket: Row }} props */
export function ClaimActs({ ticket }) {
  const [problem, say] = useState("");
  if (!may("claim-ticket") || ticket.kind === "consent") return null;
  const mine = holder(ticket) === me.value?.name;
  const take = () => claim(ticket).then(() => say(""), (error) => say(said(error)));
  return html`${!holder(ticket) && html`<button onClick=${take}>Claim</button>`}
    ${mine && html`<${ActButton} verb="hand-over-ticket" target=${ticket.id} named=${ticket.id} label="Hand over" />`}
    ${problem && html`<span class="bad" role="alert">${problem}</span>`}`;
}

// Lights and puts out the LED of a node whose ticket one has claimed; the server says until when, and what came of it.
/** @param {{ ticket: Row }} props */
export function LightActs({ ticket }) {
  const [problem, say] = useState("");
  if (!may("locate") || holder(ticket) !== me.value?.name || ticket.walk.length) return null;
  const verb = ticket.light ? "unlocate" : "locate";
  const turn = () => send("/intents", { act: { verb }, target: ticket.node, reason: `ticket ${ticket.id}` }).then(() => say(""), (error) => say(said(error)));
  return html`<button aria-pressed=${Boolean(ticket.light)} onClick=${turn}>Locate light</button>${problem && html`<span class="bad" role="alert">${problem}</span>`}`;
}

// Whether a record says something new of a light.
/** @param {JournalRecord | undefined} record */
export function ofLight(record) {
  return record?.name === "light_asked" || (record?.name === "operation_finished" && /^locate_/.test(record.event.kind));
}

// Claims what is free in a rack, one ticket after the other; what somebody else was faster with is said.
/** @param {{ rack: string, tickets: Row[] }} props */
export function ClaimRack({ rack, tickets }) {
  const [text, say] = useState("");
  const free = tickets.filter((ticket) => !holder(ticket) && ticket.kind !== "consent");
  if (!may("claim-ticket") || (!free.length && !text)) return null;
  const all = async () => {
    const problems = /** @type {string[]} */ ([]);
    for (const ticket of free) await claim(ticket).catch((error) => problems.push(`${ticket.id}: ${said(error)}`));
    say([`${free.length - problems.length} of ${free.length} claimed`, ...problems].join(". "));
  };
  return html`${free.length > 0 && html`<button onClick=${all}>Claim all of ${rack}</button>`}<span role="status">${text}</span>`;
}

// What was seen of the tickets that were one's own since the board was opened: closed, asked for anew, checks, phases.
/** @param {{ tickets: Row[] }} props */
export function Verdicts({ tickets }) {
  const own = useRef(/** @type {Set<string>} */ (new Set()));
  const [told, tell] = useState(/** @type {JournalRecord[]} */ ([]));
  for (const ticket of tickets) if (ticket.claimed_by && ticket.claimed_by === me.value?.name) own.current.add(ticket.id).add(ticket.node);
  useEffect(() => onRecord((record) => {
    if (!VERDICTS.has(record.name) || !record.subjects.some((one) => own.current.has(one))) return;
    tell((before) => [record, ...before].slice(0, TOLD_MOST));
  }), []);
  if (!told.length) return null;
  return html`<section class="noprint" aria-label="What came of it"><h2>What came of it</h2>
    <div role="log"><ul>${told.map((one) => html`<li key=${one.seq}><small>${moment(one.at)}</small> ${one.subjects[0]}: ${one.text}</li>`)}</ul></div></section>`;
}
