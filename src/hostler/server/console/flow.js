// The flow of nodes through their phases: how many stood where when, who moved where, and how long they took.
import { useDocument } from "./lists.js";
import { Filters, Page, quoted, selected } from "./pages.js";
import { route, setQuery } from "./router.js";
import { Table } from "./table.js";
import { html } from "./ui.js";
import { PHASES, count, moment, plain, span } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const SPANS = ["1h", "24h", "7d", "30d"];
const WIDTH = 1000;
const LEFT = 60;
const HEIGHT = 220;

export function Flow() {
  const places = selected(["pool", "rack", "sku"]);
  const wanted = SPANS.includes(route.value.query.span) ? route.value.query.span : "24h";
  const asked = Object.entries({ span: wanted, ...places }).filter(([, value]) => value);
  const { found, problem } = useDocument(`/flow?${new URLSearchParams(asked)}`);
  const cli = `hostler flow${asked.map(([name, value]) => ` --${name} ${quoted(value)}`).join("")}`;
  return html`<${Page} title="Flow" about="How nodes move through their phases, of those that are now in what you choose.">
    <${Filters} names=${["pool", "rack", "sku"]} />
    <div class="buttons" role="group" aria-label="Span">${SPANS.map((one) => html`<button aria-pressed=${one === wanted} onClick=${() => setQuery({ span: one === "24h" ? "" : one })}>${one}</button>`)}</div>
    ${problem && html`<p class="banner critical" role="alert">${problem}</p>`}
    ${!found && !problem && html`<p class="loading">Reading …</p>`}
    ${found && html`
      ${found.partial && html`<p class="quiet">Moves of before ${moment(found.since)} may be missing.</p>`}
      <h2>Nodes by phase</h2><${Counts} points=${found.points} />
      <h2>Moves</h2><${Moves} edges=${found.edges} />
      <${Table} name="moves" fixed columns=${EDGES} found=${{ items: found.edges, problem: "" }} id=${(/** @type {Row} */ row) => `${row.before} ${row.after}`} cli=${`${cli} -o json`} />
      <h2>Time in phase</h2>
      <${Table} name="times" columns=${TIMES} found=${{ items: found.times, problem: "" }} id=${(/** @type {Row} */ row) => row.phase} cli=${cli} />`}<//>`;
}

/** @param {string} key @param {string} title */
const lasted = (key, title) => ({ key, title, of: (/** @type {Row} */ row) => row[key] ?? "", show: (/** @type {Row} */ row) => span(row[key]), number: true });
/** @param {string} key @param {string} title */
const number = (key, title) => ({ key, title, of: (/** @type {Row} */ row) => row[key], number: true });
/** @type {import("./types.js").Column[]} */
const EDGES = [
  { key: "before", title: "from", of: (row) => plain(row.before) || "new" },
  { key: "after", title: "to", of: (row) => plain(row.after) },
  number("moves", "moves"),
];
/** @type {import("./types.js").Column[]} */
const TIMES = [
  { key: "phase", title: "phase", of: (row) => row.phase, show: (row) => html`<i class="swatch p-${row.phase.replace("_", "-")}"></i> <a href=${`/nodes?phase=${row.phase}`}>${plain(row.phase)}</a>` },
  number("nodes", "nodes now"), number("entered", "came"), number("left", "left"),
  lasted("median_s", "median"), lasted("p90_s", "P90"), lasted("longest_s", "longest"),
  { key: "limit_s", title: "limit", of: (row) => row.limit_s ?? "", show: (row) => (row.limit_s ? `${span(row.limit_s)}${row.usual ? " (usual)" : ""}` : ""), number: true },
  number("over", "stays over it"), lasted("oldest_s", "oldest now"), number("now_over", "over it now"), number("unknown", "begin unknown"),
];

// Counts stacked, phase upon phase, in the order of the lifecycle.
/** @param {{ points: Row[] }} props */
function Counts({ points }) {
  const most = Math.max(1, ...points.map((/** @type {Row} */ point) => Object.values(point.counts).reduce((sum, one) => sum + one, 0)));
  const x = (/** @type {number} */ at) => LEFT + (at / Math.max(1, points.length - 1)) * (WIDTH - LEFT - 4);
  const y = (/** @type {number} */ nodes) => HEIGHT - (nodes / most) * (HEIGHT - 10);
  // A count holds from its moment until the next one.
  const steps = (/** @type {number[]} */ nodes) => nodes.flatMap((one, at) => (at ? [`${x(at).toFixed(1)},${y(nodes[at - 1]).toFixed(1)}`] : []).concat(`${x(at).toFixed(1)},${y(one).toFixed(1)}`));
  const floor = points.map(() => 0);
  const present = PHASES.filter((phase) => points.some((/** @type {Row} */ point) => point.counts[phase]));
  const areas = present.map((phase) => {
    const lower = [...floor];
    points.forEach((/** @type {Row} */ point, /** @type {number} */ at) => { floor[at] += point.counts[phase] ?? 0; });
    const over = steps(floor);
    const under = steps(lower).reverse();
    return { phase, path: `M${over.join("L")}L${under.join("L")}Z` };
  });
  const last = points.at(-1);
  const said = present.map((phase) => `${plain(phase)} ${count(last.counts[phase] ?? 0)}`).join(", ");
  return html`<svg class="chart" viewBox=${`0 0 ${WIDTH} ${HEIGHT + 18}`} role="img" aria-label=${`Nodes by phase from ${moment(points[0].at)} to ${moment(last.at)}; at the end: ${said || "none"}`}>
      ${areas.map((one) => html`<path class=${one.phase.replace("_", "-")} d=${one.path}><title>${plain(one.phase)}</title></path>`)}
      <text class="axis" x=${LEFT - 8} y="14" text-anchor="end">${count(most)}</text><text class="axis" x=${LEFT - 8} y=${HEIGHT} text-anchor="end">0</text>
      <text class="axis" x=${LEFT} y=${HEIGHT + 14}>${moment(points[0].at)}</text>
      <text class="axis" x=${WIDTH - 4} y=${HEIGHT + 14} text-anchor="end">${moment(last.at)}</text></svg>
    <p class="legend">${present.map((phase) => html`<span><i class="swatch p-${phase.replace("_", "-")}"></i>${plain(phase)}</span>`)}</p>`;
}

// A Sankey of one storey: phases left as they were, right where nodes came, a band for each kind of move.
/** @param {{ edges: Row[] }} props */
function Moves({ edges }) {
  if (!edges.length) return html`<p class="quiet">No node has moved.</p>`;
  const order = ["", ...PHASES];
  /** @type {Record<string, string[]>} */
  const sides = { before: order.filter((one) => edges.some((/** @type {Row} */ edge) => edge.before === one)), after: order.filter((one) => edges.some((/** @type {Row} */ edge) => edge.after === one)) };
  const all = edges.reduce((/** @type {number} */ sum, /** @type {Row} */ edge) => sum + edge.moves, 0);
  const rows = Math.max(sides.before.length, sides.after.length);
  const gap = 22;
  const unit = Math.max(160, rows * 8) / all;
  const height = rows * gap + unit * all + 10;
  const tops = Object.fromEntries(["before", "after"].map((side) => {
    let at = 4;
    return [side, new Map(sides[side].map((/** @type {string} */ phase) => {
      const size = unit * edges.filter((/** @type {Row} */ edge) => edge[side] === phase).reduce((/** @type {number} */ sum, /** @type {Row} */ edge) => sum + edge.moves, 0);
      const place = { top: at, size, used: 0 };
      at += size + gap;
      return [phase, place];
    }))];
  }));
  const ordered = [...edges].sort((a, b) => order.indexOf(a.before) - order.indexOf(b.before) || order.indexOf(a.after) - order.indexOf(b.after));
  const bands = ordered.map((edge) => {
    const [from, to] = /** @type {Row[]} */ ([tops.before.get(edge.before), tops.after.get(edge.after)]);
    const [y0, y1, size] = [from.top + from.used, to.top + to.used, unit * edge.moves];
    from.used += size;
    to.used += size;
    return { edge, d: `M170 ${y0}C500 ${y0} 500 ${y1} 830 ${y1}V${y1 + size}C500 ${y1 + size} 500 ${y0 + size} 170 ${y0 + size}Z` };
  });
  const name = (/** @type {string} */ phase) => (phase || "new").replace("_", "-");
  return html`<svg class="chart" viewBox=${`0 0 ${WIDTH} ${Math.ceil(height)}`} role="img" aria-label=${`${count(all)} moves; the table below lists them`}>
    ${bands.map(({ edge, d }) => html`<path class=${`move ${name(edge.before)}`} d=${d}><title>${plain(edge.before) || "new"} → ${plain(edge.after)}: ${count(edge.moves)}</title></path>`)}
    ${["before", "after"].map((side) => [...tops[side]].map(([phase, place]) => html`
      <rect class=${name(phase)} x=${side === "before" ? 162 : 830} y=${place.top} width="8" height=${Math.max(1, place.size)} />
      <text x=${side === "before" ? 156 : 844} y=${place.top + place.size / 2 + 4} text-anchor=${side === "before" ? "end" : "start"}>${plain(phase) || "new"} ${count(edges.filter((/** @type {Row} */ edge) => edge[side] === phase).reduce((/** @type {number} */ sum, /** @type {Row} */ edge) => sum + edge.moves, 0))}</text>`))}
  </svg>`;
}
