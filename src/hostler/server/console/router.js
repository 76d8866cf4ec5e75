// Where the reader is: the page, the thing that it shows and its filters all stand in the address, so that a link says it.
import { signal } from "./ui.js";

export const route = signal(read());

function read() {
  const [, page = "", name = ""] = location.pathname.split("/");
  /** @type {Record<string, string>} */
  const query = Object.fromEntries(new URLSearchParams(location.search));
  return { page, name: decoded(name), query };
}

// The address that is shown, without its host; what draws it is drawn anew when it changes.
export function address() {
  return route.value ? location.pathname + location.search : "/";
}

/** @param {string} name */
function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** @param {string} id */
export function nodePath(id) {
  return `/nodes/${encodeURIComponent(id)}`;
}

/** @param {string} path */
export function go(path) {
  history.pushState(null, "", path);
  route.value = read();
  document.getElementById("main")?.focus();
}

// Changes filters of the page in place; "" takes one out. Going back leads to the page before, not to each keystroke.
/** @param {Record<string, string>} changes */
export function setQuery(changes) {
  const query = { ...route.value.query, ...changes };
  const kept = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  history.replaceState(null, "", location.pathname + (kept.size ? `?${kept}` : ""));
  route.value = read();
}

addEventListener("popstate", () => {
  route.value = read();
});

// Links within the console turn pages without loading anew; with a key held they open a tab as links do. Those marked
// external are of this server and no page of the console.
addEventListener("click", (event) => {
  const link = event.target instanceof Element ? /** @type {HTMLAnchorElement | null} */ (event.target.closest("a[href^='/']")) : null;
  if (!link || link.download || link.relList.contains("external") || event.defaultPrevented || event.button) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(link.getAttribute("href") ?? "/");
});
