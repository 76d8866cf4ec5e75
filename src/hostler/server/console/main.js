// Puts the pages together: who is asked for a token, what the bar shows, and which page is open.
import { ActDialog } from "./acts.js";
import { cutSince, ended, greet, greeted, leave, live, provider, setToken, token } from "./api.js";
import { Approvals } from "./approvals.js";
import { Board } from "./board.js";
import { BringUp } from "./bring_up.js";
import { Audit, Maintenance, Policy, Trends } from "./control_pages.js";
import { Events } from "./events.js";
import { Fabrics } from "./fabrics.js";
import { Fleet } from "./fleet.js";
import { Flow } from "./flow.js";
import { Jobs } from "./jobs.js";
import { Node } from "./node.js";
import { Incidents, Nodes, Pools, Tickets, Waiting } from "./pages.js";
import { Menu } from "./menu.js";
import { Parts } from "./parts.js";
import { Racks } from "./racks.js";
import { Returns } from "./returns.js";
import { Stale } from "./stale.js";
import { address, go, nodePath, route } from "./router.js";
import { begin, configures, end, failure, me, openNode, opened, status, whole } from "./state.js";
import { effect, html, render, signal, untracked } from "./ui.js";
import { count } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const theme = signal(localStorage.getItem("hostler.theme") || "");

function App() {
  if (!token.value) return greeted.value ? html`<${Login} />` : html`<p class="loading">Reading …</p>`;
  return html`
    <a class="skip" href="#main">Skip to content</a>
    <${Bar} />
    ${failure.value && html`<p class="banner warning" role="alert">${failure.value}</p>`}
    <div id="main" tabindex="-1" class=${cutSince.value ? "stale" : ""}><${Shown} key=${token.value} /></div>
    <${Stale} />
    <${ActDialog} />
  `;
}

/** @type {Record<string, () => Row>} */
const PAGES = { "": Fleet, nodes: Nodes, waiting: Waiting, tickets: Tickets, board: Board, approvals: Approvals, incidents: Incidents, jobs: Jobs, parts: Parts, pools: Pools, racks: Racks, events: Events, fabrics: Fabrics, "bring-up": BringUp, returns: Returns, flow: Flow, trends: Trends, maintenance: Maintenance, policy: Policy, audit: Audit };
/** @type {[string, string[]][]} */
const GROUPS = [
  ["Fleet", ["", "nodes", "jobs", "racks", "pools", "parts", "fabrics"]],
  ["Work", ["waiting", "bring-up", "tickets", "board", "returns", "incidents", "approvals", "maintenance"]],
  ["Insight", ["events", "flow", "trends"]],
  ["Admin", ["policy", "audit"]],
];
// Pages that only some may read.
/** @type {Record<string, { readonly value: boolean }>} */
const ONLY = { "bring-up": whole, racks: whole, returns: whole, flow: whole, policy: whole, audit: configures };

function Shown() {
  if (opened()) return html`<${Node} />`;
  const Page = PAGES[route.value.page] ?? Fleet;
  if (!(ONLY[route.value.page]?.value ?? true)) return html`<${NotYours} />`;
  return html`<${Page} key=${route.value.page} />`;
}

// Nothing is asked of the server that would only be refused.
function NotYours() {
  if (!me.value) return html`<p class="loading">Reading …</p>`;
  return html`<main class="page"><h1>${route.value.page}</h1><p>This page concerns the whole cell: your token, of ${me.value.name} (${me.value.role}), does not reach it.</p></main>`;
}

function Pages() {
  /** @param {string[]} pages @returns {[string, string][]} */
  const mine = (pages) => pages.filter((page) => ONLY[page]?.value ?? true).map((page) => [page, page || "fleet"]);
  return html`<${Menu} groups=${GROUPS.map(([title, pages]) => [title, mine(pages)]).filter(([, pages]) => pages.length)} />`;
}

function Bar() {
  const now = status.value;
  return html`
    <header class="bar">
      <a class="home" href="/">Hostler</a>
      <${Pages} />
      <span>${now ? `cell ${now.cell}` : ""}</span>
      <span class="quiet">${now ? `${count(now.nodes)} nodes` : ""}</span>
      <form role="search" onSubmit=${find}>
        <input name="q" type="search" placeholder="node, serial or host name" aria-label="Open a node by id, serial or host name" autocomplete="off" />
      </form>
      <span class="live ${live.value}"><i></i>${live.value}${now ? ` · record ${count(now.seq)}` : ""}</span>
      <span class="quiet">${me.value ? `${me.value.name}, ${me.value.role}` : ""}</span>
      <button onClick=${turn} aria-label="Change between light, dark and the system's colours">${theme.value || "auto"}</button>
      <button onClick=${leave}>Sign out</button>
    </header>
  `;
}

/** @param {Row} event */
function find(event) {
  event.preventDefault();
  const wanted = String(new FormData(event.target).get("q") ?? "").trim();
  if (wanted) go(nodePath(wanted));
  event.target.reset();
}

function turn() {
  theme.value = { "": "light", light: "dark", dark: "" }[theme.value] ?? "";
  localStorage.setItem("hostler.theme", theme.value);
}

function Login() {
  /** @param {Row} event */
  const enter = (event) => {
    event.preventDefault();
    setToken(String(new FormData(event.target).get("token") ?? "").trim());
  };
  return html`
    <main class="login">
      <h1>Hostler</h1>
      ${ended.value && html`<p class="banner warning" role="alert">${ended.value}</p>`}
      ${provider.value && html`<p><a class="button" rel="external" href=${`/sign-in/?${new URLSearchParams({ to: address() })}`}>Sign in</a></p>`}
      <form onSubmit=${enter}>
        <label for="token">Token</label>
        <input id="token" name="token" type="password" required autocomplete="off" autofocus placeholder="hst_…" />
        <button>Open the console</button>
      </form>
      <p class="quiet">It stays in this tab. An operator makes one with <code>hostler token create</code>.</p>
    </main>
  `;
}

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  dispatchEvent(new Event("theme"));
});
// Who comes with another token is shown nothing that was read with the one before. It is begun once for a token, not anew
// with each page, though what begins reads which page is open.
effect(() => {
  const begins = Boolean(token.value);
  untracked(() => {
    end();
    if (begins) begin();
  });
});
effect(() => {
  if (token.value) openNode(opened());
});
effect(() => {
  const shown = route.value.name || route.value.page;
  document.title = shown ? `${shown} · Hostler` : "Hostler";
});

greet();
render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
