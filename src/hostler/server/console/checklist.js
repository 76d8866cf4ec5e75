// A node's inspection by hands: its checklist with ticks, notes and photos, and the word that certifies or rejects it.
import { ActButton, may } from "./acts.js";
import { ask } from "./api.js";
import { AddFile, Files } from "./files.js";
import { html, useEffect, useState } from "./ui.js";
import { moment } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

/** @param {{ seen: Row }} props */
export function Checklist({ seen }) {
  const one = seen.node;
  const [items, show] = useState(/** @type {Row[]} */ ([]));
  const inspected = JSON.stringify(one.inspection ?? {});
  const shown = may("tick-item") && one.phase === "onboard";
  useEffect(() => {
    if (shown) ask(`/nodes/${encodeURIComponent(one.id)}/checklist`).then((found) => show(found.items), () => show([]));
  }, [one.id, inspected, shown]);
  if (!shown) return null;
  return html`<section class="checklist"><h2>Inspection</h2>
    ${items.length === 0 && html`<p class="quiet">Its SKU and site name no items: one person's word certifies it.</p>`}
    <ol class="todo">${items.map((item) => html`<${Item} key=${item.number} id=${one.id} item=${item} />`)}</ol>
    <div class="buttons">
      <${ActButton} verb="certify" target=${one.id} named=${one.id} label="Certify" />
      <${ActButton} verb="fail-inspection" target=${one.id} named=${one.id} label="Reject" />
    </div>
  </section>`;
}

/** @param {{ id: string, item: Row }} props */
function Item({ id, item }) {
  const path = `/nodes/${encodeURIComponent(id)}/checklist/files`;
  return html`<li>${item.item} ${item.ticked ? html`<b>ticked</b> by ${item.person} ${moment(item.at)}${item.note && `: ${item.note}`}`
    : html`<${ActButton} verb="tick-item" target=${id} named=${id} fields=${{ item: item.number }} label=${`Tick item ${item.number}`} />`}
    <${Files} path=${path} files=${item.files} />
    <details><summary>Add a photo or file</summary><${AddFile} path=${path} reason="inspection" more=${{ item: item.number }} label=${`photo, PDF or text of item ${item.number}`} /></details>
  </li>`;
}
