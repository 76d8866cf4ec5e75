// What several nodes have in common, with counts; and the acts on several nodes as one.
import { act, may } from "./acts.js";
import { html } from "./ui.js";
import { count } from "./words.js";

/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Shared} Shared */

const SEVERAL = ["cordon", "uncordon", "drain", "reboot", "power-cycle", "return-for-maintenance"];
// The most nodes that one act takes, by the API.
const ACTED_MAX = 1000;

// In which ways nodes may be alike, of rows as the API lists nodes.
/** @type {Record<string, (row: Row) => string[]>} */
export const NODE_WAYS = {
  phase: (row) => [row.phase],
  pool: (row) => [row.pool],
  sku: (row) => [row.sku],
  rack: (row) => [row.position.rack],
  row: (row) => [row.position.row],
  site: (row) => [row.position.site],
  tenant: (row) => [row.tenant],
  condition: (row) => row.conditions,
  plan: (row) => [row.plan],
  "waits for": (row) => [row.waiting],
};

// Each value that at least two of them share, with its count: of each way the most frequent ones, at most `most`.
/** @template T @param {T[]} rows @param {Record<string, (row: T) => string[]>} ways @param {number} most @returns {Shared[]} */
export function shared(rows, ways, most) {
  return Object.entries(ways).flatMap(([way, of]) => {
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const row of rows) for (const value of of(row)) if (value) counts.set(value, (counts.get(value) ?? 0) + 1);
    const often = [...counts].filter(([, nodes]) => nodes > 1).sort((a, b) => b[1] - a[1]);
    return often.slice(0, most).map(([value, nodes]) => ({ way, value, nodes }));
  });
}

// A button for each act on all of these nodes, where the caller may ask for it.
/** @param {{ ids: string[] }} props */
export function SeveralActs({ ids }) {
  const verbs = SEVERAL.filter(may);
  if (!verbs.length) return null;
  if (ids.length > ACTED_MAX) return html`<span class="quiet">An act takes at most ${count(ACTED_MAX)} nodes: select fewer to act on them.</span>`;
  const target = { target: "nodes", nodes: ids, named: `${ids.length} nodes` };
  return verbs.map((verb) => html`<button type="button" onClick=${() => act({ verb, ...target })}>${verb.replaceAll("-", " ")}</button>`);
}
