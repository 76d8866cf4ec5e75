// The pages in groups. A group opens by a click, Enter or the arrow down; Escape closes it, and so does going elsewhere.
// On a phone one button opens all of them.
import { opened } from "./state.js";
import { route } from "./router.js";
import { html, useRef, useState } from "./ui.js";

/** @typedef {import("./types.js").Row} Row */

const ALL = "all";

// groups: [title, [[page, name], …]] in the order in which they are shown.
/** @param {{ groups: [string, [string, string][]][] }} props */
export function Menu({ groups }) {
  const bar = useRef(/** @type {Row} */ (null));
  const [open, show] = useState("");
  const here = opened() ? "nodes" : route.value.page;
  /** @param {string} kind @returns {HTMLElement[]} */
  const seen = (kind) => [...bar.current.querySelectorAll(kind)].filter((one) => one.offsetParent);
  const buttons = () => seen("button");
  const links = () => seen("a");
  /** @param {string} name */
  const enter = (name) => {
    show(name);
    requestAnimationFrame(() => links()[0]?.focus());
  };
  /** @param {Row} event */
  const press = (event) => {
    const onButton = buttons().indexOf(event.target);
    const onLink = links().indexOf(event.target);
    if (event.key === "Escape" && open) {
      const opener = bar.current.querySelector(`button[data-opens="${open}"]`);
      show("");
      opener.focus();
    } else if (event.key === "ArrowDown" && onButton >= 0) enter(event.target.dataset.opens);
    else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && onLink >= 0) around(links(), onLink, event.key === "ArrowDown" ? 1 : -1);
    else if ((event.key === "ArrowRight" || event.key === "ArrowLeft") && onButton >= 0) around(buttons(), onButton, event.key === "ArrowRight" ? 1 : -1);
    else return;
    event.preventDefault();
  };
  /** @param {Row} event */
  const leave = (event) => {
    if (!bar.current.contains(event.relatedTarget)) show("");
  };
  /** @param {string} name @param {string} title @param {string} more */
  const button = (name, title, more) => html`
    <button data-opens=${name} class=${more} aria-expanded=${open === name} aria-controls=${`menu-${name}`}
      onClick=${() => show(open === name ? "" : name)}>${title}</button>`;
  return html`
    <nav class=${`pages ${open === ALL ? "whole" : ""}`} aria-label="Pages" ref=${bar} onKeyDown=${press} onFocusOut=${leave}>
      ${button(ALL, "Menu", "opens-all")}
      <ul id=${`menu-${ALL}`}>${groups.map(([title, pages]) => html`
        <li class=${pages.some(([page]) => page === here) ? "here" : ""}>
          ${button(title, title, "")}
          <ul id=${`menu-${title}`} class="pages-of" hidden=${open !== title && open !== ALL}>${pages.map(([page, name]) => html`
            <li><a href=${`/${page}`} aria-current=${page === here ? (opened() ? "true" : "page") : undefined} onClick=${() => show("")}>${name}</a></li>`)}</ul>
        </li>`)}</ul>
    </nav>`;
}

/** @param {HTMLElement[]} all @param {number} from @param {number} step */
function around(all, from, step) {
  all[(from + step + all.length) % all.length].focus();
}
