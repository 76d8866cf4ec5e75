// The fleet's map: a column for each property, an entry for each node. Read page by page, kept true by the stream.
import { ask } from "./api.js";
import { signal } from "./ui.js";

/** @typedef {import("./types.js").FleetMap} FleetMap */
/** @typedef {import("./types.js").JournalRecord} JournalRecord */

/** @type {("phase" | "severity" | "flags" | "word")[]} */
const COLUMNS = ["phase", "severity", "flags", "word"];

const PLAIN = { colour: "phase", by: "rack" };

// What an entry of `flags` adds up, in the words that are read.
export const FLAGS = { waits: 1, "an operation is under way": 2, cordoned: 4, delivered: 8, "agent silent": 16 };

// Another map for every other set of nodes or racks; entries of its columns change in place.
/** @type {import("./vendor/signals.js").Signal<FleetMap>} */
export const fleet = signal(empty());
// Counts the frames before which entries changed in place: whoever draws them looks at this.
export const revision = signal(0);

/** @type {Map<string, number>} */
let places = new Map();
/** @type {Set<number>} */
let changed = new Set();
// The records that have come since a reading of the map began, for each that is under way.
/** @type {Set<JournalRecord[]>} */
const readings = new Set();
let frame = 0;
let owner = 0;
let told = PLAIN;

// A node's place in the columns that are shown, undefined where it is not among them.
/** @param {string} id */
export function placeOf(id) {
  return places.get(id);
}

// The places whose entries changed since this was asked last.
export function takeChanged() {
  const taken = changed;
  changed = new Set();
  return taken;
}

// What was asked for before this is not shown after it.
export function forgetFleet() {
  owner += 1;
  told = PLAIN;
  show(empty());
}

// What the map is to tell of each node from the next reading on. Says whether that is another thing than before.
/** @param {string} colour @param {string} by */
export function tellOf(colour, by) {
  if (colour === told.colour && by === told.by) return false;
  told = { colour, by };
  return true;
}

// Reads all of it anew. Answers the earliest record that it stands at.
export async function readFleet() {
  /** @type {JournalRecord[]} */
  const meanwhile = [];
  const asker = owner;
  const what = told;
  readings.add(meanwhile);
  try {
    const { read, seq } = await readPages(what);
    if (asker !== owner || what !== told) return seq;
    if (sameCells(fleet.value, read)) compare(fleet.value, read);
    else show(read);
    for (const record of meanwhile) if (record.seq > seq) apply(record);
    return seq;
  } finally {
    readings.delete(meanwhile);
  }
}

// The first page is shown before the others come, where nothing has been shown yet.
/** @param {{ colour: string, by: string }} what */
async function readPages(what) {
  const read = { ...empty(), ...what };
  const more = query(what);
  let cursor = "";
  let seq = Infinity;
  do {
    const page = await ask(`/map?cursor=${encodeURIComponent(cursor)}${more}`);
    seq = Math.min(seq, page.seq);
    append(read, page);
    cursor = page.cursor;
    if (cursor && !fleet.value.ids.length) show(structuredClone(read));
  } while (cursor);
  return { read, seq };
}

// What everybody sees is asked for without a word, and costs no more than it did.
/** @param {{ colour: string, by: string }} what */
function query({ colour, by }) {
  return (colour === PLAIN.colour ? "" : `&colour=${colour}`) + (by === PLAIN.by ? "" : `&by=${by}`);
}

// What a record says of a node's phase and conditions. What comes while the map is read is said again of what was read.
/** @param {JournalRecord} record */
export function drawRecord(record) {
  for (const meanwhile of readings) meanwhile.push(record);
  apply(record);
}

/** @param {JournalRecord} record */
function apply(record) {
  const place = places.get(record.subjects[0]);
  if (place === undefined) return;
  const shown = fleet.value;
  if (record.name === "phase_changed") set(shown.phase, place, shown.phases.indexOf(record.event.after));
  else if (record.name === "condition_raised") set(shown.severity, place, Math.max(shown.severity[place], record.event.condition.severity));
}

/** @returns {FleetMap} */
function empty() {
  return { phases: [], ids: [], phase: [], severity: [], flags: [], rack: [], ...PLAIN, words: [], word: [], groups: [], group: [] };
}

/** @param {FleetMap} read @param {FleetMap} page */
function append(read, page) {
  read.phases = page.phases;
  for (const id of page.ids) read.ids.push(id);
  for (const rack of page.rack) read.rack.push(rack);
  const columns = { ...page, word: renumbered(read.words, page.words, page.word) };
  for (const at of renumbered(read.groups, page.groups, page.group)) read.group.push(at);
  for (const column of COLUMNS) for (const value of columns[column]) read[column].push(value);
}

// Each page counts into words of its own; here they are one list for all of them.
/** @param {string[]} words @param {string[]} own @param {number[]} entries */
function renumbered(words, own, entries) {
  const known = new Map(words.map((word, at) => [word, at]));
  const places = own.map((word) => known.get(word) ?? words.push(word) - 1);
  return entries.map((at) => places[at]);
}

/** @param {FleetMap} map */
function show(map) {
  places = new Map(map.ids.map((id, place) => [id, place]));
  fleet.value = map;
}

/** @param {FleetMap} before @param {FleetMap} read */
function sameCells(before, read) {
  if (before.ids.length !== read.ids.length || before.phases.length !== read.phases.length) return false;
  if (before.colour !== read.colour || before.by !== read.by || before.words.join("\n") !== read.words.join("\n")) return false;
  if (before.groups.join("\n") !== read.groups.join("\n") || read.group.some((at, place) => before.group[place] !== at)) return false;
  return read.ids.every((id, place) => before.ids[place] === id && before.rack[place] === read.rack[place]);
}

/** @param {FleetMap} shown @param {FleetMap} read */
function compare(shown, read) {
  for (const column of COLUMNS) read[column].forEach((value, place) => set(shown[column], place, value));
}

// However many entries change, they are drawn once in a frame.
/** @param {number[]} column @param {number} place @param {number} value */
function set(column, place, value) {
  if (column[place] === value) return;
  column[place] = value;
  changed.add(place);
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    revision.value += 1;
  });
}
