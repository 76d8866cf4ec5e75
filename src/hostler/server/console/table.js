// A table: sorted by a click, chosen rows, and the same rows as CSV, as JSON and as a command line.
import { ColumnChoice, chosenColumns, commandOf, narrowed } from "./columns.js";
import { route, setQuery } from "./router.js";
import { html, useState } from "./ui.js";
import { count } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const SHOWN = 500;
const natural = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

// columns: { key, title, of: row → text or number, show?: row → what stands in the cell, number?: true, acts?: buttons, field?: the API's }.
// chosen, choose: the ids of chosen rows, and what to do with another set of them; without `choose` none can be chosen.
// fixed: the command has columns of its own, and takes no others.
// sorting: false where the rows have an order of their own, and the address' one is another table's.
/** @param {{ name: string, columns: import("./types.js").Column[], found: import("./types.js").Found, id: (row: Row) => string, cli?: string, fixed?: boolean, chosen?: Set<string>, choose?: (chosen: Set<string>) => void, sorting?: boolean }} props */
export function Table({ name, columns, found, id, cli, fixed = false, chosen = new Set(), choose, sorting = true }) {
  const [all, showAll] = useState(false);
  if (found.problem) return html`<p class="banner critical" role="alert">${found.problem}</p>`;
  if (!found.items) return html`<p class="loading">Reading …</p>`;
  const { sort = "", order = "" } = sorting ? route.value.query : {};
  const rows = sorted(found.items, columns.find((one) => one.key === sort), order === "down");
  const shown = all ? rows : rows.slice(0, SHOWN);
  const some = chosenColumns(name, columns);
  return html`
    <div class="tools">
      <span>${count(rows.length)}${found.cut ? " and more: narrow the filters" : ""}</span>
      <button onClick=${() => save(`${name}.csv`, "text/csv", csv(some.shown, rows))}>CSV</button>
      <button onClick=${() => save(`${name}.json`, "application/json", JSON.stringify(some.chosen ? narrowed(some.shown, rows) : rows, null, 2))}>JSON</button>
      <${ColumnChoice} name=${name} columns=${columns} shown=${some.shown} />
      ${cli && html`<${Copied} ...${some.chosen && !fixed ? commandOf(cli, some.shown, rows) : { text: cli }} />`}
    </div>
    <div class="scroll" tabindex="0" role="region" aria-label=${`${name}, a table`}>
      <table class="list">
        <thead><tr>
          ${choose && html`<th><input type="checkbox" aria-label="Choose all that are shown" checked=${shown.length > 0 && shown.every((row) => chosen.has(id(row)))}
            onChange=${(/** @type {Row} */ event) => choose(new Set(event.target.checked ? shown.map(id) : []))} /></th>`}
          ${some.shown.map((one) => html`<${Heading} one=${one} sort=${sort} order=${order} sorting=${sorting} />`)}
        </tr></thead>
        <tbody>
          ${shown.map((row) => html`<tr key=${id(row)}>
            ${choose && html`<td><input type="checkbox" aria-label=${`Choose ${id(row)}`} checked=${chosen.has(id(row))} onChange=${() => choose(turned(chosen, id(row)))} /></td>`}
            ${some.shown.map((one) => html`<td class=${one.number ? "number" : isShort(one, row) ? "short" : ""}>${one.show ? one.show(row) : one.of(row)}</td>`)}
          </tr>`)}
        </tbody>
      </table>
      ${rows.length === 0 && html`<p class="none quiet">None.</p>`}
      ${shown.length < rows.length && html`<button onClick=${() => showAll(true)}>Show all ${count(rows.length)}</button>`}
    </div>
  `;
}

// A name, a phase or a span of time stays on one line; sentences wrap.
/** @param {import("./types.js").Column} one @param {Row} row */
function isShort(one, row) {
  const text = String(one.of(row) ?? "");
  return !one.acts && (text.length <= 16 || (Boolean(one.show) && /^\d{4}-\d\d-\d\dT/.test(text)));
}

/** @param {{ one: import("./types.js").Column, sort: string, order: string, sorting: boolean }} props */
function Heading({ one, sort, order, sorting }) {
  if (one.acts) return html`<th class="noprint">${one.title}</th>`;
  if (!sorting) return html`<th class=${one.number ? "number" : ""}>${one.title}</th>`;
  const mine = one.key === sort;
  const turn = () => setQuery({ sort: one.key, order: mine && order !== "down" ? "down" : "" });
  return html`<th class=${one.number ? "number" : ""} aria-sort=${mine ? (order === "down" ? "descending" : "ascending") : undefined}>
    <button class="plain" onClick=${turn}>${one.title}${mine ? (order === "down" ? " ↓" : " ↑") : ""}</button></th>`;
}

// The command that lists the same, ready to be pasted.
/** @param {{ text: string, without?: string[] }} props */
function Copied({ text, without = [] }) {
  const [done, say] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("copied");
    } catch {
      say("mark it and copy");
    }
  };
  return html`<code class="cli">${text}</code><button onClick=${copy}>Copy</button><span role="status" class="quiet">${done}</span>
    ${without.length > 0 && html`<span class="quiet">The command does not tell: ${without.join(", ")}.</span>`}`;
}

/** @param {Set<string>} chosen @param {string} one */
function turned(chosen, one) {
  const next = new Set(chosen);
  if (!next.delete(one)) next.add(one);
  return next;
}

/** @param {Row[]} rows @param {import("./types.js").Column | undefined} column @param {boolean} down */
function sorted(rows, column, down) {
  if (!column) return rows;
  /** @param {Row} a @param {Row} b */
  const by = (a, b) => {
    const [left, right] = [column.of(a), column.of(b)];
    const way = typeof left === "number" && typeof right === "number" ? left - right : natural.compare(String(left), String(right));
    return down ? -way : way;
  };
  return [...rows].sort(by);
}

// What begins like a formula is text: a spreadsheet would run it.
/** @param {import("./types.js").Column[]} columns @param {Row[]} rows */
function csv(columns, rows) {
  /** @param {unknown} value */
  const cell = (value) => {
    const text = String(value ?? "");
    const safe = /^[=+\-@\t\r]/.test(text) && typeof value !== "number" ? `'${text}` : text;
    return `"${safe.replaceAll('"', '""')}"`;
  };
  const kept = columns.filter((one) => !one.acts);
  const lines = [kept.map((one) => cell(one.title)), ...rows.map((row) => kept.map((one) => cell(one.of(row))))];
  return lines.map((line) => line.join(",")).join("\r\n");
}

// Has the browser keep a file of these letters or bytes.
/** @param {string} name @param {string} type @param {BlobPart} text */
export function save(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
