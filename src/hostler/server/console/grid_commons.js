// What the selected nodes have in common: of a hundred as the API lists them, of more as the map knows them.
import { NODE_WAYS, SeveralActs, shared } from "./commons.js";
import { COLOURINGS, marksOf, told } from "./grid_colours.js";
import { fleet, FLAGS, placeOf, revision } from "./fleet_map.js";
import { groupNames } from "./grid_groups.js";
import { select, selected } from "./grid_selection.js";
import { useList } from "./lists.js";
import { html } from "./ui.js";
import { SEVERITIES, count, plain } from "./words.js";

/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").FleetMap} FleetMap */
/** @typedef {import("./types.js").Shared} Shared */

// Bounds of one selector, by the API.
const VALUES_MAX = 100;
const SELECTOR_MAX = 2000;
// Values shown of each way.
const SHOWN = 4;
const LINKED = ["phase", "pool", "sku", "rack", "condition"];

// The ids of the selected nodes that are in the map still.
export function known() {
  return fleet.value ? [...selected.value].filter((id) => placeOf(id) !== undefined) : [];
}

export function Selection() {
  const ids = known();
  if (!ids.length) return null;
  const selector = `node in (${ids.join(", ")})`;
  const listed = ids.length <= VALUES_MAX && selector.length <= SELECTOR_MAX;
  return html`
    <section class="selection" aria-label="Selected nodes">
      <h2>What do these have in common? <small>${count(ids.length)} selected</small></h2>
      <div class="buttons">
        <${SeveralActs} ids=${ids} />
        ${listed && html`<a href=${`/nodes?${new URLSearchParams({ selector })}`}>As a list</a>`}
        <button type="button" onClick=${() => select([])}>Select none</button>
      </div>
      ${listed ? html`<${OfNodes} selector=${selector} ids=${ids} />` : html`<${OfMap} ids=${ids} />`}
    </section>
  `;
}

/** @param {{ selector: string, ids: string[] }} props */
function OfNodes({ selector, ids }) {
  const { items, problem } = useList("/nodes", { selector }, (record) => !record || record.subjects.some((one) => selected.peek().has(one)));
  if (problem) return html`<p class="bad" role="alert">${problem}</p>`;
  if (!items) return html`<p class="quiet">Reading …</p>`;
  const own = items.filter((row) => ids.includes(row.id));  // a selector takes host names too
  return html`<${Counts} found=${shared(own, NODE_WAYS, SHOWN)} of=${own.length} />`;
}

/** @param {{ ids: string[] }} props */
function OfMap({ ids }) {
  const map = fleet.value;
  const places = revision.value < 0 ? [] : ids.map((id) => placeOf(id) ?? 0);
  return html`
    <p class="quiet">Counted from the map, which knows no more of so many nodes: the API lists ${count(VALUES_MAX)} by name.
      Colour or group the grid by something else to count by that.</p>
    <${Counts} found=${shared(places, mapWays(map), SHOWN)} of=${ids.length} />
  `;
}

/** @param {FleetMap} map @returns {Record<string, (place: number) => string[]>} */
function mapWays(map) {
  const groups = groupNames(map);
  const marks = marksOf(map);
  return {
    phase: (place) => [map.phases[map.phase[place]]],
    rack: (place) => [map.rack[place]],
    ...(map.by === "rack" ? {} : { [map.by]: (/** @type {number} */ place) => [groups[place]] }),
    ...(map.colour === "phase" ? {} : { [COLOURINGS[map.colour]]: (/** @type {number} */ place) => [told(map, marks, place)] }),
    "gravest condition": (place) => [SEVERITIES[map.severity[place]] ?? ""],
    "stands as": (place) => standing(map.flags[place]),
  };
}

/** @param {number} flags */
function standing(flags) {
  return Object.entries(FLAGS).flatMap(([word, flag]) => (flags & flag ? [word] : []));
}

/** @param {{ found: Shared[], of: number }} props */
function Counts({ found, of }) {
  if (of < 2) return html`<p class="quiet">One node: select more to compare them.</p>`;
  if (!found.length) return html`<p class="quiet">Nothing that is known here.</p>`;
  return html`
    <table>
      <thead><tr><th>what</th><th>value</th><th class="number">nodes</th></tr></thead>
      <tbody>${found.map(({ way, value, nodes }) => html`<tr class=${nodes === of ? "all" : ""}>
        <td>${way}</td>
        <td>${LINKED.includes(way) ? html`<a href=${`/nodes?${new URLSearchParams({ [way]: value })}`}>${way === "phase" ? plain(value) : value}</a>` : value}</td>
        <td class="number">${count(nodes)} of ${count(of)}</td>
      </tr>`)}</tbody>
    </table>
  `;
}
