// What the pages show, kept true by the stream: the fleet's map, its status, and the node that is open.
import { readVerbs } from "./acts.js";
import { ask, cutSince, follow, said, token } from "./api.js";
import { drawRecord, fleet, forgetFleet, readFleet, tellOf } from "./fleet_map.js";
import { colouring } from "./grid_colours.js";
import { grouping } from "./grid_groups.js";
import { route } from "./router.js";
import { batch, computed, signal } from "./ui.js";
import { PHASES } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

/** @type {import("./vendor/signals.js").Signal<Row>} */
export const me = signal(null);
/** @type {import("./vendor/signals.js").Signal<Row>} */
export const status = signal(null);
// Whether the caller's token reaches the whole cell, and whether it may configure it.
export const whole = computed(() => Boolean(me.value) && !me.value.tenant && !me.value.site && !me.value.pool);
export const configures = computed(() => whole.value && me.value.role === "operator");
/** @type {import("./vendor/signals.js").Signal<Row>} */
export const lifecycle = signal(null);
export const failure = signal("");
/** @type {import("./vendor/signals.js").Signal<Row>} */
export const node = signal(null);
/** @type {import("./vendor/signals.js").Signal<Row>} */
export const story = signal(null);
/** @type {import("./vendor/signals.js").Signal<import("./types.js").JournalRecord[]>} */
export const timeline = signal([]);
export const missing = signal("");
// The phase to which the address narrows the fleet's page, "" for none.
export const filter = computed(() => (route.value.page === "" && PHASES.includes(route.value.query.phase) ? route.value.query.phase : ""));

const TIMELINE_MAX = 500;
// How long after a beginning that failed the next one is tried.
const AGAIN_MS = 5000;
/** @type {(() => void) | null} */
let stop = null;

/** @type {Set<(record: import("./types.js").JournalRecord) => void>} */
const listeners = new Set();
/** @type {Set<() => void>} */
const returns = new Set();

// Calls `take` with each record that comes. Returns a way to stop it.
/** @param {(record: import("./types.js").JournalRecord) => void} take */
export function onRecord(take) {
  listeners.add(take);
  return () => listeners.delete(take);
}

// Calls `read` when a stream that was cut goes on: what was asked for meanwhile may have failed. Returns a way to stop it.
/** @param {() => void} read */
export function onReturn(read) {
  returns.add(read);
  return () => returns.delete(read);
}

// The id, serial or host name of the node whose page is open, "" on every other page.
export function opened() {
  return route.value.page === "nodes" ? route.value.name : "";
}

export async function begin() {
  stop?.();
  await attempt(async () => {
    tellAtOnce();
    const [, seq] = await Promise.all([readMe(), readAll(), readVerbs(), readLifecycle()]);
    stop = follow(seq, { take, lost: readAll, back });
  });
  if (failure.value && token.value) again(AGAIN_MS);
}

// What the address asks the map for is read at once, as far as everybody may ask for it; whose the rest is depends on who asks.
function tellAtOnce() {
  if (route.value.page === "") tellOf(colouring(route.value.query.colour, true), grouping(route.value.query.by));
}

async function readMe() {
  me.value = await ask("/me");
}

async function readLifecycle() {
  lifecycle.value = await ask("/lifecycle");
}

export function end() {
  stop?.();
  stop = null;
  batch(() => {
    me.value = status.value = node.value = story.value = null;
    forgetFleet();
  });
}

// The earlier of the records that what was read stands at: what comes after it is in the stream.
async function readAll() {
  return Math.min(...(await Promise.all([readStatus(), readFleet(), readOpen()])));
}

/** @param {() => unknown} act */
async function attempt(act) {
  try {
    await act();
    failure.value = "";
  } catch (error) {
    if (token.value && !cutSince.peek()) failure.value = said(error);  // that the server is away is said already
  }
}

async function readStatus() {
  status.value = await ask("/status");
  return status.value.seq;
}

// The open page's node; one that cannot be shown says so by itself and holds up nothing else.
async function readOpen() {
  return (opened() && (await readNode(opened()).catch(() => Infinity))) || Infinity;
}

/** @param {string} name */
export async function openNode(name) {
  batch(() => {
    node.value = story.value = null;
    timeline.value = [];
    missing.value = "";
  });
  if (!name) return;
  try {
    await readNode(name);
  } catch (error) {
    if (opened() === name) missing.value = said(error);
  }
}

/** @param {string} name */
async function readNode(name) {
  const path = `/nodes/${encodeURIComponent(name)}`;
  const [seen, why, past] = await Promise.all([
    ask(path), ask(`${path}/explain`), ask(`${path}/history?limit=200`),
  ]);
  if (opened() !== name) return Infinity;
  batch(() => {
    node.value = seen;
    story.value = why;
    timeline.value = merged(past.items, timeline.value);
  });
  return past.seq;
}

/** @param {import("./types.js").JournalRecord[][]} lists */
function merged(...lists) {
  const bySeq = new Map(lists.flat().map((row) => [row.seq, row]));
  return [...bySeq.values()].sort((a, b) => b.seq - a.seq).slice(0, TIMELINE_MAX);
}

// Records arrived together. What they say of phases and conditions is drawn at once; the rest is read again, not too often.
/** @param {import("./types.js").JournalRecord[]} records */
function take(records) {
  const open = node.value?.node.id;
  const own = open ? records.filter((record) => record.subjects.includes(open)) : [];
  batch(() => {
    for (const record of records) {
      drawRecord(record);
      for (const tell of listeners) tell(record);
    }
    if (own.length) timeline.value = merged(own, timeline.value);
  });
  later.status(1000);
  later.fleet(pace());
  if (own.length) later.node(400);
}

function back() {
  failure.value = "";
  for (const read of returns) read();
  later.status(0);
  later.fleet(pace());
  later.node(400);
}

// One timer per thing: the first call starts it, those that follow change nothing, so reading is never put off forever.
/** @param {() => void} act @returns {(wait?: number) => void} */
export function throttled(act) {
  let timer = null;
  return (wait) => {
    timer ??= setTimeout(() => {
      timer = null;
      act();
    }, wait);
  };
}

// How long after a record what has the size of the fleet is read again.
export function pace() {
  const nodes = fleet.value.ids.length;
  return nodes > 20000 ? 30000 : nodes > 2000 ? 5000 : 1500;
}

const again = throttled(() => failure.value && token.value && begin());
const later = {
  fleet: throttled(() => attempt(readFleet)),
  status: throttled(() => attempt(readStatus)),
  node: throttled(() => attempt(() => (opened() ? readNode(opened()) : undefined))),
};

// Has the map tell another thing of each node.
/** @param {string} colour @param {string} by */
export function showFleet(colour, by) {
  if (tellOf(colour, by)) attempt(readFleet);
}

setInterval(() => {
  if (!token.value || !me.value) return;
  later.status(0);
  if (fleet.value.colour === "age") later.fleet(Math.max(pace(), 15000));
}, 15000);
