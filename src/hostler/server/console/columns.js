// Which columns of a table are shown: those that the address names, or else all of them.
import { route, setQuery } from "./router.js";
import { html, useState } from "./ui.js";

/** @typedef {import("./types.js").Column} Column */
/** @typedef {import("./types.js").Row} Row */

// The address' key: a page may have several tables.
/** @param {string} name */
const key = (name) => `columns.${name.replace(/-\d.*/, "")}`;

// The columns of a table in its own order, and whether somebody chose them. Names that it does not have choose nothing.
/** @param {string} name @param {Column[]} columns */
export function chosenColumns(name, columns) {
  const wanted = (route.value.query[key(name)] ?? "").split(",");
  const shown = columns.filter((one) => wanted.includes(one.key));
  return shown.length ? { shown, chosen: true } : { shown: columns, chosen: false };
}

/** @param {{ name: string, columns: Column[], shown: Column[] }} props */
export function ColumnChoice({ name, columns, shown }) {
  /** @param {Column[]} next */
  const choose = (next) => setQuery({ [key(name)]: next.length === columns.length ? "" : next.map((one) => one.key).join(",") });
  /** @param {Column} one */
  const turn = (one) => choose(columns.filter((other) => (other === one) !== shown.includes(other)));
  const [open, show] = useState(false);
  return html`
    <div class="choice">
      <button type="button" aria-expanded=${open} onClick=${() => show(!open)}>Columns${shown.length < columns.length ? ` ${shown.length} of ${columns.length}` : ""}</button>
      ${open && html`<fieldset>
        <legend class="unseen">${`Columns of ${name}`}</legend>
        ${columns.map((one) => html`<label><input type="checkbox" checked=${shown.includes(one)} disabled=${shown.length === 1 && shown[0] === one} onChange=${() => turn(one)} /> ${one.title}</label>`)}
        ${shown.length < columns.length && html`<button type="button" onClick=${() => choose(columns)}>All columns</button>`}
      </fieldset>`}
    </div>
  `;
}

// The rows with the chosen columns alone, as a program reads them.
/** @param {Column[]} shown @param {Row[]} rows */
export function narrowed(shown, rows) {
  const kept = shown.filter((one) => !one.acts);
  return rows.map((row) => Object.fromEntries(kept.map((one) => [field(one), one.of(row)])));
}

// The command with the chosen columns as fields of the API's rows; `without`: those that the page puts together itself.
/** @param {string} cli @param {Column[]} shown @param {Row[]} rows */
export function commandOf(cli, shown, rows) {
  const kept = shown.filter((one) => !one.acts);
  const [row] = rows;
  const known = kept.filter((one) => row && has(row, field(one)));
  const without = kept.filter((one) => !known.includes(one)).map((one) => one.title);
  return known.length ? { text: `${cli} --columns ${known.map(field).join(",")}`, without } : { text: cli, without: [] };
}

/** @param {Column} one */
function field(one) {
  return one.field ?? one.key;
}

/** @param {Row} row @param {string} path */
function has(row, path) {
  let inner = row;
  for (const step of path.split(".")) {
    if (typeof inner !== "object" || inner === null || !(step in inner)) return false;
    inner = inner[step];
  }
  return true;
}
