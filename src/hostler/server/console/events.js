// What happened in the fleet between two moments, newest first, each event with a link to its moment.
import { placeOf } from "./fleet_map.js";
import { useAnswer } from "./lists.js";
import { momentOf, momentPath, secondPath } from "./moments.js";
import { Filters, Page, quoted, selected } from "./pages.js";
import { setQuery } from "./router.js";
import { Table } from "./table.js";
import { html } from "./ui.js";
import { moment, plain } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const NAMES = ["node", "name", "since", "until"];
const SHOWN = 200;
const SUBJECTS = 8;

/** @type {import("./types.js").Column[]} */
const COLUMNS = [
  { key: "at", title: "at", of: (row) => row.at, show: (row) => html`<a href=${secondPath(row.at)}>${moment(row.at)}</a>` },
  { key: "name", title: "event", of: (row) => plain(row.name) },
  { key: "subjects", title: "on", of: (row) => row.subjects.join(", "), show: (row) => html`<p>${row.subjects.slice(0, SUBJECTS).map((/** @type {string} */ id) => html`<${Subject} id=${id} at=${row.at} /> `)}</p>` },
  { key: "text", title: "what", of: (row) => row.text },
  { key: "seq", title: "record", of: (row) => row.seq, number: true },
  { key: "cause", title: "because of", of: (row) => row.cause },
];

export function Events() {
  const query = Object.fromEntries(Object.entries(selected(NAMES)).filter(([, value]) => value));
  const { answer, problem } = useAnswer(`/records?${new URLSearchParams({ limit: String(SHOWN), ...query })}`, () => !query.until);
  const cli = `hostler events --limit ${SHOWN}${Object.entries(query).map(([name, value]) => ` --${name} ${quoted(value)}`).join("")}`;
  const earliest = answer?.items.at(-1);
  return html`<${Page} title="Events" about="What was recorded, newest first. Choose a time to link to its second.">
    <${Filters} names=${NAMES} />
    <${Table} name="events" columns=${COLUMNS} found=${{ items: answer?.items ?? null, problem }} id=${(/** @type {Row} */ row) => String(row.seq)} cli=${cli} sorting=${false} />
    ${answer?.cursor && earliest && html`<p><button onClick=${() => setQuery({ until: momentOf(earliest.at, 1) })}>Those before ${moment(earliest.at)}</button></p>`}<//>`;
}

// A node is linked at the moment of the event.
/** @param {{ id: string, at: string }} props */
function Subject({ id, at }) {
  return placeOf(id) === undefined ? id : html`<a href=${momentPath(id, at)}>${id}</a>`;
}
