// What the cells of the grid may be coloured by, and what each colour means. A word that is not known here is unknown.
import { plain } from "./words.js";

/** @typedef {import("./types.js").FleetMap} FleetMap */
/** @typedef {import("./types.js").Mark} Mark */

// The colourings that there are, each with its title.
/** @type {Record<string, string>} */
export const COLOURINGS = {
  phase: "phase and condition", age: "age against the phase's limit", tenant: "tenant", firmware: "firmware", check: "last check",
  drift: "drift score",
};

// Colourings that tenants do not ask for: whose a node is, and what rests on readings from before it was theirs.
const NOT_FOR_TENANTS = ["tenant", "drift"];

const NAMED = 7;
const natural = new Intl.Collator("en", { numeric: true });

/** @type {Mark} */
const UNKNOWN = { word: "unknown", title: "unknown", tone: "unknown" };

// Words of each colouring, in the order of its legend: [word, what it means, tone].
/** @type {Record<string, [string, string, Mark["tone"]][]>} */
const WORDS = {
  age: [
    ["under_half", "under half of the limit", "good"], ["over_half", "over half of the limit", "fair"],
    ["over_limit", "over the limit", "bad"], ["no_limit", "its phase has no limit", "none"],
  ],
  firmware: [
    ["at_baseline", "at its SKU's baseline", "good"], ["not_at_baseline", "not at its SKU's baseline", "bad"],
    ["no_baseline", "its SKU has no baseline", "none"],
  ],
  check: [
    ["passed", "passed", "good"], ["failed", "failed", "bad"], ["inconclusive", "inconclusive", "fair"],
    ["stale", "stale: too long ago", "fair"],
  ],
  drift: [
    ["0", "under ¼ of the way to its alarm", "q0"], ["0.25", "¼ of the way", "q1"], ["0.5", "half of the way", "q2"],
    ["0.75", "¾ of the way", "q3"], ["1", "at its alarm", "q4"],
  ],
};
// What the colouring calls a node of which nobody can say.
/** @type {Record<string, string>} */
const UNKNOWNS = { drift: "not judged" };

// The colouring that an address asks for, as far as there is one and the reader may ask for it.
/** @param {string | undefined} wanted @param {boolean} tenant */
export function colouring(wanted, tenant) {
  return colourings(tenant).find((one) => one === wanted) ?? "phase";
}

/** @param {boolean} tenant */
export function colourings(tenant) {
  return Object.keys(COLOURINGS).filter((one) => !tenant || !NOT_FOR_TENANTS.includes(one));
}

/** @type {WeakMap<object, Mark[]>} */
const kept = new WeakMap();

// For each of the map's words its mark, by the word's place. A map keeps its marks while its entries change in place.
/** @param {Pick<FleetMap, "colour" | "words" | "word">} map @returns {Mark[]} */
export function marksOf(map) {
  const before = kept.get(map);
  if (before) return before;
  const named = map.colour === "tenant" ? tenants(map) : new Map();
  const marks = map.words.map((word) => named.get(word) ?? known(map.colour, word));
  kept.set(map, marks);
  return marks;
}

// The marks of a legend with how many nodes have each; unknown is last and always told.
/** @param {Pick<FleetMap, "colour" | "words" | "word">} map @returns {{ mark: Mark, nodes: number }[]} */
export function legend(map) {
  const marks = marksOf(map);
  const counts = new Map();
  for (const at of map.word) counts.set(marks[at].title, (counts.get(marks[at].title) ?? 0) + 1);
  const listed = map.colour === "tenant" ? inOrder(marks) : (WORDS[map.colour] ?? []).map(([word]) => known(map.colour, word));
  return [...listed, unknown(map.colour)].map((mark) => ({ mark, nodes: counts.get(mark.title) ?? 0 }));
}

/** @param {string} colour @param {string} word @returns {Mark} */
function known(colour, word) {
  const row = colour === "drift" ? reached(word) : WORDS[colour]?.find(([one]) => one === word);
  if (row) return { word, title: row[1], tone: row[2] };
  return { ...unknown(colour), word };
}

/** @param {string} colour @returns {Mark} */
function unknown(colour) {
  return { ...UNKNOWN, title: UNKNOWNS[colour] ?? UNKNOWN.title };
}

// The highest step of the drift score that a number has reached; none for what is no number of it.
/** @param {string} word */
function reached(word) {
  const score = /^[01](\.\d+)?$/.test(word) ? Number(word) : NaN;
  return WORDS.drift.findLast(([from]) => score >= Number(from));
}

// The tenants of most nodes have a colour of their own, all others share one; who has none is no tenant's.
/** @param {Pick<FleetMap, "words" | "word">} map @returns {Map<string, Mark>} */
function tenants({ words, word }) {
  const counts = new Array(words.length).fill(0);
  for (const at of word) counts[at] += 1;
  const names = words.map((name, at) => ({ name, nodes: counts[at] })).filter(({ name }) => name);
  names.sort((a, b) => b.nodes - a.nodes || natural.compare(a.name, b.name));
  const own = names.slice(0, NAMED).map(({ name }) => name).sort(natural.compare);
  /** @type {Map<string, Mark>} */
  const found = new Map([["", { word: "", title: "no tenant", tone: "none" }]]);
  own.forEach((name, at) => found.set(name, { word: name, title: name, tone: /** @type {Mark["tone"]} */ (`c${at}`) }));
  for (const { name } of names.slice(NAMED)) found.set(name, { word: name, title: "other tenants", tone: "c7" });
  return found;
}

/** @param {Mark[]} marks */
function inOrder(marks) {
  const once = new Map(marks.map((mark) => [mark.title, mark]));
  const place = (/** @type {Mark} */ mark) => (mark.tone === "none" ? 9 : Number(mark.tone.slice(1)));
  return [...once.values()].sort((a, b) => place(a) - place(b));
}

// What the map says of one node under its colouring: what the cell shows as a colour, a table says in words.
/** @param {FleetMap} map @param {Mark[]} marks @param {number} place */
export function told(map, marks, place) {
  if (map.colour === "phase") return plain(map.phases[map.phase[place]]);
  const mark = marks[map.word[place]] ?? UNKNOWN;
  if (map.colour === "drift" && mark.tone !== "unknown") return mark.word;
  return map.colour === "tenant" && mark.word ? mark.word : mark.title;
}

// One cell of a tone. Each tone has a form of its own too: whole, half, with a hole, a dot, an empty frame; steps of a
// score stand as high in their cell as they have reached.
/** @param {CanvasRenderingContext2D} pen @param {Mark["tone"]} tone @param {string} colour @param {number} x @param {number} y @param {number} size */
export function paintTone(pen, tone, colour, x, y, size) {
  pen.fillStyle = pen.strokeStyle = colour;
  if (tone === "unknown" && size >= 4) {
    pen.lineWidth = 1;
    pen.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
    return;
  }
  if (tone.startsWith("q") && size >= 6) {
    const height = Math.max(2, Math.round((size * (1 + Number(tone.slice(1)))) / 5));
    pen.fillRect(x, y + size - height, size, height);
    return;
  }
  const inset = tone === "none" && size >= 6 ? Math.round(size / 4) : 0;
  pen.fillRect(x + inset, y + inset, size - 2 * inset, size - 2 * inset);
  if (size < 6) return;
  const hole = Math.round(size / 3);
  if (tone === "bad") pen.clearRect(x + hole, y + hole, size - 2 * hole, size - 2 * hole);
  if (tone === "fair") pen.clearRect(x + size / 2, y + 1, size / 2 - 1, size - 2);
}
