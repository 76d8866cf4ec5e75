// What the cells of the grid may be grouped by, and the groups in natural order.

/** @typedef {import("./types.js").FleetMap} FleetMap */

export const GROUPINGS = ["rack", "row", "site", "pool", "cluster"];

const natural = new Intl.Collator("en", { numeric: true });

/** @param {string | undefined} wanted */
export function grouping(wanted) {
  return GROUPINGS.find((one) => one === wanted) ?? "rack";
}

// The name of each place's group, "" for none.
/** @param {Pick<FleetMap, "by" | "rack" | "groups" | "group">} map */
export function groupNames(map) {
  return map.by === "rack" ? map.rack : map.group.map((at) => map.groups[at]);
}

// The places in each group, groups and nodes in natural order; those in none come last. Ids come in the order of their
// letters, which is the natural one where numbers are as long: those are looked through once, and not sorted.
/** @param {Pick<FleetMap, "ids" | "by" | "rack" | "groups" | "group">} map */
export function grouped(map) {
  /** @type {Map<string, number[]>} */
  const found = new Map();
  groupNames(map).forEach((name, place) => {
    const members = found.get(name);
    if (members) members.push(place);
    else found.set(name, [place]);
  });
  const by = (/** @type {number} */ a, /** @type {number} */ b) => natural.compare(map.ids[a], map.ids[b]);
  for (const members of found.values()) if (members.some((place, at) => at > 0 && by(members[at - 1], place) > 0)) members.sort(by);
  return new Map([...found].sort(([a], [b]) => Number(!a) - Number(!b) || natural.compare(a, b)));
}
