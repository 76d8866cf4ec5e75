// The pages in groups. A group opens by a click, Enter or the arrow down; Escape closes it, and so does going elsewhere.
// On a phone one button opens all of them.
import { opened } from "./state.js";
import { route } from "./router.js";
import { html, useRef, useState } from "./ui.js";

const ALL = "all";

// groups: [title, [[page, name], …]] in the order in which they are shown.
export function Menu({ groups }) {
  const bar = useRef(null);
  const [open, show] = useState("");
  const here = opened() ? "nodes" : route.value.page;
  const buttons = () => [...bar.current.querySelectorAll("button")].filter((one) => one.offsetParent);
  const links = () => [...bar.current.querySelectorAll("a")].filter((one) => one.offsetParent);
  const enter = (name) => {
    show(name);
    requestAnimationFrame(() => links()[0]?.focus());
  };
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
  const leave = (event) => {
    if (!bar.current.contains(event.relatedTarget)) show("");
  };
  const opener = (name, title, more) => html`
    <button data-opens=${name} class=${more} aria-expanded=${open === name} aria-controls=${`menu-${name}`}
      onClick=${() => show(open === name ? "" : name)}>${title}</button>`;
  return html`
    <nav class=${`pages ${open === ALL ? "whole" : ""}`} aria-label="Pages" ref=${bar} onKeyDown=${press} onFocusOut=${leave}>
      ${opener(ALL, "Menu", "opens-all")}
      <ul id=${`menu-${ALL}`}>${groups.map(([title, pages]) => html`
        <li class=${pages.some(([page]) => page === here) ? "here" : ""}>
          ${opener(title, title, "")}
          <ul id=${`menu-${title}`} class="pages-of" hidden=${open !== title && open !== ALL}>${pages.map(([page, name]) => html`
            <li><a href=${`/${page}`} aria-current=${page === here ? (opened() ? "true" : "page") : undefined} onClick=${() => show("")}>${name}</a></li>`)}</ul>
        </li>`)}</ul>
    </nav>`;
}

function around(all, from, step) {
  all[(from + step + all.length) % all.length].focus();
}
