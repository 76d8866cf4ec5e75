// What stands around the grid: by what it is coloured, what each colour means, and the same nodes as a table.
import { fleet, placeOf, revision } from "./fleet_map.js";
import { COLOURINGS, colouring, colourings, legend, marksOf, told } from "./grid_colours.js";
import { known } from "./grid_commons.js";
import { GROUPINGS, groupNames, grouping } from "./grid_groups.js";
import { select, selected, selecting } from "./grid_selection.js";
import { NodeLink } from "./pages.js";
import { route, setQuery } from "./router.js";
import { showFleet, filter, me } from "./state.js";
import { Table } from "./table.js";
import { html, useEffect, useState } from "./ui.js";
import { SEVERITIES, count, plain } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

export function Controls() {
  const tenant = !me.value || Boolean(me.value.tenant);
  const colour = colouring(route.value.query.colour, tenant);
  const by = grouping(route.value.query.by);
  const chosen = known().length;
  useEffect(() => showFleet(colour, by), [colour, by]);
  return html`
    <form class="filters" onSubmit=${(/** @type {Row} */ event) => event.preventDefault()}>
      <${Choice} label="colour by" name="colour" value=${colour} usual="phase" choices=${colourings(tenant)} titles=${COLOURINGS} />
      <${Choice} label="group by" name="by" value=${by} usual="rack" choices=${GROUPINGS} titles=${{}} />
      <button type="button" aria-pressed=${selecting.value} onClick=${() => (selecting.value = !selecting.value)}>Select cells</button>
      <span class="quiet many" role="status">${chosen > 0 ? `${count(chosen)} selected` : ""}</span>
    </form>
  `;
}

// A choice that stands in the address, but for the usual one.
/** @param {{ label: string, name: string, value: string, usual: string, choices: string[], titles: Record<string, string> }} props */
function Choice({ label, name, value, usual, choices, titles }) {
  const choose = (/** @type {Row} */ event) => setQuery({ [name]: event.target.value === usual ? "" : event.target.value });
  return html`<label>${label}<select value=${value} onChange=${choose}>
    ${choices.map((one) => html`<option value=${one} selected=${one === value}>${titles[one] ?? one}</option>`)}
  </select></label>`;
}

export function Legend() {
  const shown = fleet.value;
  if (revision.value < 0 || shown.colour === "phase") return html`<${Phases} />`;
  return html`
    <p class="legend" role="group" aria-label=${`Colours: ${COLOURINGS[shown.colour]}`}>
      ${legend(shown).map(({ mark, nodes }) => html`<span><i class="swatch tone-${mark.tone}"></i>${mark.title} <b>${count(nodes)}</b></span>`)}
    </p>
  `;
}

function Phases() {
  return html`
    <p class="legend">
      <span><i class="swatch p-production"></i>delivered</span>
      <span><i class="swatch p-spare"></i>spare</span>
      <span><i class="swatch s-critical"></i>critical</span>
      <span><i class="swatch s-degraded"></i>degraded</span>
      <span><i class="swatch s-warning"></i>warning</span>
      <span><i class="swatch ring"></i>waits</span>
      <span><i class="swatch bar"></i>operation under way</span>
    </p>
  `;
}

// Every cell of the grid as a row, from the same columns: nothing is asked of the server for it.
export function AsTable() {
  const [open, turn] = useState(false);
  return html`
    <details class="grid-table" onToggle=${(/** @type {Row} */ event) => turn(event.target.open)}>
      <summary>As a table</summary>
      ${open && html`<${Cells} />`}
    </details>
  `;
}

function Cells() {
  const map = fleet.value;
  const marks = marksOf(map);
  const groups = groupNames(map);
  /** @type {import("./types.js").Column[]} */
  const columns = [
    { key: "id", title: "node", of: (row) => row.id, show: (row) => html`<${NodeLink} id=${row.id} />` },
    ...(map.by === "rack" ? [] : [{ key: "group", title: map.by, of: (/** @type {Row} */ row) => row.group }]),
    { key: "rack", title: "rack", of: (row) => row.rack },
    { key: "phase", title: "phase", of: (row) => plain(row.phase) },
    { key: "severity", title: "gravest", of: (row) => SEVERITIES[row.severity] ?? "" },
    ...(map.colour === "phase" ? [] : [{ key: "word", title: COLOURINGS[map.colour], of: (/** @type {Row} */ row) => told(map, marks, placeOf(row.id) ?? -1) }]),
  ];
  const only = filter.value;
  /** @param {string} id @param {number} place */
  const row = (id, place) => ({
    id, rack: map.rack[place], phase: map.phases[map.phase[place]], severity: map.severity[place],
    word: map.words[map.word[place]] ?? "", group: map.by === "rack" ? "" : groups[place],
  });
  const items = revision.value < 0 ? [] : map.ids.map(row).filter((one) => !only || one.phase === only);
  const asked = { colour: map.colour === "phase" ? "" : map.colour, by: map.by === "rack" ? "" : map.by, phase: only };
  const cli = `hostler node map${Object.entries(asked).map(([name, value]) => (value ? ` --${name} ${value}` : "")).join("")}`;
  return html`<${Table} name="fleet" columns=${columns} found=${{ items, problem: "" }} id=${(/** @type {Row} */ row) => row.id} cli=${cli}
    chosen=${selected.value} choose=${select} />`;
}
