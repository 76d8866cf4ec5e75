// The board of who works at the racks: a card for each ticket, begun with a scan of the serial, with photos; it prints.
import { ActButton, act, may } from "./acts.js";
import { Camera } from "./camera.js";
import { ClaimActs, ClaimRack, LightActs, Verdicts, claimText, ofLight } from "./claims.js";
import { AddFile, Files } from "./files.js";
import { useList } from "./lists.js";
import { Filters, NodeLink, Page, now, selected } from "./pages.js";
import { route, setQuery } from "./router.js";
import { html, useEffect, useRef, useState } from "./ui.js";
import { moment, plain, since } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const natural = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

export function Board() {
  const { rack } = selected(["rack"]);
  const chosen = route.value.query.ticket ?? "";
  const { claim } = selected(["claim"]);
  const [printed, choose] = useState(/** @type {string | null} */ (null));
  useEffect(() => printRack(printed, () => choose(null)), [printed]);
  const tickets = useList("/tickets", { claim }, (record) => /^(ticket_|hold_|phase_|walk_stop_)/.test(record?.name ?? "") || ofLight(record));
  const nodes = useList("/nodes", { rack }, (record) => /^(node_|phase_|waiting_)/.test(record?.name ?? ""));
  const where = new Map((nodes.items ?? []).map((row) => [row.id, row]));
  const cards = (tickets.items ?? []).map((ticket) => ({ ticket, node: where.get(ticket.node) }))
    .filter((card) => (!rack || card.node || card.ticket.walk.some((/** @type {Row} */ stop) => stop.rack === rack)) && (!chosen || card.ticket.id === chosen))
    .sort((a, b) => natural.compare(place(a), place(b)) || (a.ticket.due_by ?? "~").localeCompare(b.ticket.due_by ?? "~"));
  const racks = [...new Set(cards.map(rackOf))];
  const problem = tickets.problem || nodes.problem;
  return html`<${Page} title="Board" about="Work at the racks. Scan the serial at the machine: work begins there and nowhere else.">
    <${Filters} names=${["rack", "claim"]} />
    ${may("start-work") && html`<${Scan} cards=${cards} nodes=${nodes.items ?? []} />`}
    <div class="buttons noprint"><button onClick=${() => print()}>Print</button>
      ${chosen && html`<button onClick=${() => setQuery({ ticket: "" })}>All tickets</button>`}</div>
    <${Verdicts} tickets=${tickets.items ?? []} />
    ${problem && html`<p class="banner critical" role="alert">${problem}</p>`}
    ${!tickets.items && !problem && html`<p class="loading">Reading …</p>`}
    ${tickets.items && cards.length === 0 && html`<p class="quiet">No ticket asks for work here.</p>`}
    <div class=${printed === null ? "board" : "board some"}>${racks.map((one) => html`<${Rack} key=${one} rack=${one} chosen=${printed === one}
      cards=${cards.filter((card) => rackOf(card) === one)} print=${() => choose(one)} />`)}</div><//>`;
}

// Prints once the rack that is chosen is drawn; the others are back on the page when the dialog is closed.
/** @param {string | null} rack @param {() => void} done */
function printRack(rack, done) {
  if (rack === null) return undefined;
  addEventListener("afterprint", done, { once: true });
  const drawn = requestAnimationFrame(() => print());
  return () => {
    cancelAnimationFrame(drawn);
    removeEventListener("afterprint", done);
  };
}

// A rack's tickets in the order of their U, which is the order of the walk.
/** @param {{ rack: string, cards: TicketCard[], chosen: boolean, print: () => void }} props */
function Rack({ rack, cards, chosen, print: printIt }) {
  const title = rack ? `Rack ${rack}` : "Elsewhere";
  return html`<section aria-label=${title} class=${chosen ? "chosen" : ""}>
    <h2>${title} <small>${cards.length} ${cards.length === 1 ? "ticket" : "tickets"}, from the lowest U up</small></h2>
    ${rack && html`<div class="buttons batch noprint"><button onClick=${printIt}>Print ${rack}</button><${ClaimRack} rack=${rack} tickets=${cards.map((card) => card.ticket)} /></div>`}
    ${cards.map((card, index) => html`<${Card} key=${card.ticket.id} card=${card} at=${`${index + 1} of ${cards.length}`} />`)}</section>`;
}

/** @typedef {{ ticket: Row, node: Row | undefined }} TicketCard */

/** @param {TicketCard} card @returns {string} */
const rackOf = ({ ticket, node }) => node?.position.rack ?? ticket.walk[0]?.rack ?? "";
/** @param {TicketCard} card */
const place = (card) => `${rackOf(card) || "~"} ${String(card.node?.position.u ?? 0).padStart(3, "0")}`;
/** @param {TicketCard} card @returns {string[]} */
const serials = ({ ticket, node }) => [...new Set([ticket.hardware, node?.serial ?? ""])].filter(Boolean);

// A scanner types the serial and Enter. What is not the serial of a ticket's machine begins nothing, and it is said why.
/** @param {{ cards: TicketCard[], nodes: Row[] }} props */
function Scan({ cards, nodes }) {
  const field = useRef(/** @type {Row} */ (null));
  const [said, say] = useState("");
  useEffect(() => field.current.focus({ preventScroll: true }), []);
  /** @param {Row} event */
  const typed = (event) => {
    event.preventDefault();
    const serial = field.current.value.trim();
    field.current.value = "";
    if (serial) scanned(serial);
  };
  /** @param {string} serial */
  const scanned = (serial) => {
    const card = cards.find((one) => serials(one).includes(serial));
    say(card ? "" : refusal(serial, cards, nodes));
    if (card) act({ verb: "start-work", target: card.ticket.node, named: card.ticket.node, fields: { ticket: card.ticket.id, serial, prepare: true }, reason: `ticket ${card.ticket.id}` });
  };
  return html`<form class="scan noprint" onSubmit=${typed}>
    <label>Scan the serial at the machine<input ref=${field} name="serial" autocomplete="off" autocapitalize="off" spellcheck="false" maxlength="200" /></label>
    <button>Begin work</button>
    <${Camera} found=${scanned} />
    <p role="alert" class="bad">${said}</p></form>`;
}

/** @param {Row | undefined} node */
const stands = (node) => `rack ${node?.position.rack || "unknown"} U${node?.position.u || "?"}`;

/** @param {string} serial @param {TicketCard[]} cards @param {Row[]} nodes */
function refusal(serial, cards, nodes) {
  const other = nodes.find((row) => row.serial === serial);
  if (route.value.query.ticket && cards.length === 1) return `${serial} is not ${serials(cards[0]).join(" or ")}, which stands in ${stands(cards[0].node)}: this is another machine${other ? `, ${other.id}` : ""}. Nothing was begun.`;
  if (!other) return `No machine here has the serial ${serial}. Nothing was begun.`;
  return `${serial} is ${other.id}, ${stands(other)}: no ticket asks for work there. Nothing was begun.`;
}

/** @param {{ walk: string, stop: Row, number: number }} props */
function Stop({ walk, stop, number }) {
  return html`<li><b>${stop.done_by || stop.proved ? "☑" : "☐"} ${stop.rack}${stop.unit && ` U${stop.unit}`}</b> ${stop.what}${stop.ticket && html` <small>(ticket ${stop.ticket})</small>`}
    <ol>${stop.steps.map((/** @type {string} */ step) => html`<li>${step}</li>`)}</ol>
    <p class="quiet">${stopState(stop)}</p>
    ${!stop.done_by && !stop.proved && html`<${ActButton} verb="tick-stop" target=${walk} named=${walk} fields=${{ stop: number }} label=${`Tick stop ${number}`} />`}</li>`;
}

/** @param {Row} stop */
function stopState(stop) {
  if (stop.proved) return `proved ${moment(stop.proved)}: validations find it no more`;
  if (stop.done_by) return `ticked by ${stop.done_by} ${moment(stop.done_at)}; the next validations show whether it is repaired`;
  return stop.found_again ? `still found ${moment(stop.found_again)}, after it was ticked` : "";
}

/** @param {{ card: TicketCard, at: string }} props */
function Card({ card: { ticket, node }, at }) {
  const path = `/tickets/${encodeURIComponent(ticket.id)}/files`;
  const facts = [
    ["serial", serials({ ticket, node })[0]],
    ["place", node ? [node.position.rack && `rack ${node.position.rack}`, node.position.u && `U${node.position.u}`].filter(Boolean).join(" ") : ""],
    ["part", plain(ticket.component)],
    ["found", plain(ticket.fault)],
    ["phase", node ? plain(node.phase) : ""],
    ["for", ticket.owner],
    ["open for", since(ticket.opened, now())],
    ["due by", (ticket.due_by ?? "").slice(0, 16).replace("T", " ")],
    ["claimed by", claimText(ticket)],
    ["light", ticket.light ? `${ticket.light.state}, for ${ticket.light.by} until ${moment(ticket.light.until)}` : ""],
    ["said done by", ticket.done_by],
    ["asked again", moment(ticket.reopened)],
    ["waits for", node?.waiting],
  ].filter(([, value]) => value);
  return html`<article class="chain card" aria-labelledby=${`t-${ticket.id}`}>
    <h3 id=${`t-${ticket.id}`}>${node?.position.u ? `U${node.position.u} · ` : ""}<${NodeLink} id=${ticket.node} /> <small><a href=${`/board?ticket=${encodeURIComponent(ticket.id)}`}>${ticket.id}</a></small></h3>
    <p><b>${ticket.summary}</b></p>
    ${ticket.action && html`<p>${ticket.action}</p>`}
    ${ticket.walk.length > 0 && html`<ol class="todo">${ticket.walk.map((/** @type {Row} */ stop, /** @type {number} */ place) => html`<${Stop} walk=${ticket.id} stop=${stop} number=${place + 1} />`)}</ol>`}
    <dl>${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
    <${Files} path=${path} files=${ticket.files} />
    ${may("start-work") && html`<${AddFile} path=${path} reason="photo at the rack" />`}
    <div class="buttons noprint">
      <${ClaimActs} ticket=${ticket} />
      <${LightActs} ticket=${ticket} />
      <${ActButton} verb="start-work" target=${ticket.node} named=${ticket.node} fields=${{ ticket: ticket.id, prepare: true }} label="Start work" />
      <${ActButton} verb="end-work" target=${ticket.node} named=${ticket.node} label="Work ended" />
      <${ActButton} verb="close-ticket" target=${ticket.id} named=${ticket.id} label="Close" />
    </div>
    <p class="onprint">${at}: done ☐  by ____________________  at ____________</p>
  </article>`;
}
