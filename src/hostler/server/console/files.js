// Photos and files that are attached to something: shown, saved, and added from a phone's camera or a folder.
import { said, send, take } from "./api.js";
import { save } from "./table.js";
import { html, useEffect, useState } from "./ui.js";
import { count, moment } from "./words.js";

/** @typedef {import("./types.js").Row} Row */

const FILE_MOST = 8 * 1024 * 1024;
const TAKEN = "image/jpeg,image/png,image/webp,application/pdf,text/plain,text/csv";

// `path`: where each lies, followed by its digest.
/** @param {{ path: string, files: import("./types.js").AttachedFile[] }} props */
export function Files({ path, files }) {
  const [problem, say] = useState("");
  const [shown, show] = useState({ digest: "", url: "" });
  useEffect(() => () => URL.revokeObjectURL(shown.url), [shown.url]);
  /** @param {import("./types.js").AttachedFile} file @param {(blob: Blob) => void} then */
  const fetched = async (file, then) => {
    try {
      then(await take(`${path}/${file.digest}`));
      say("");
    } catch (error) {
      say(said(error));
    }
  };
  /** @param {import("./types.js").AttachedFile} file */
  const turn = (file) => (shown.digest === file.digest ? show({ digest: "", url: "" }) : fetched(file, (blob) => show({ digest: file.digest, url: URL.createObjectURL(blob) })));
  if (!files.length) return null;
  return html`<ul class="files">${files.map((file) => html`<li>
      <button onClick=${() => fetched(file, (blob) => save(file.name, file.media_type, blob))}>${file.name}</button>
      ${file.media_type.startsWith("image/") && html` <button class="noprint" aria-pressed=${shown.digest === file.digest} onClick=${() => turn(file)}>Show</button>`}
      <span class="quiet"> ${count(file.size)} bytes, ${file.person} ${moment(file.at)}</span>
      ${shown.digest === file.digest && html`<img src=${shown.url} alt=${`${file.name}, by ${file.person}`} />`}</li>`)}</ul>
    ${problem && html`<p class="bad" role="alert">${problem}</p>`}`;
}

// `done` is told when a file has been added; `more` is what the request says besides the file.
/** @param {{ path: string, reason: string, done?: () => void, more?: Record<string, string>, label?: string }} props */
export function AddFile({ path, reason, done = () => {}, more = {}, label = "photo, PDF or text" }) {
  const [state, say] = useState({ text: "", bad: false });
  /** @param {Row} event */
  const add = async (event) => {
    event.preventDefault();
    const form = event.target;
    const [file] = form.elements.file.files;
    if (!file || file.size > FILE_MOST) return say({ text: `Choose a file of at most ${count(FILE_MOST)} bytes.`, bad: true });
    try {
      const answer = await send(path, { name: file.name, content: base64(new Uint8Array(await file.arrayBuffer())), reason, ...more });
      form.reset();
      done();
      return say({ text: answer.text, bad: false });
    } catch (error) {
      return say({ text: said(error), bad: true });
    }
  };
  return html`<form class="filters noprint" onSubmit=${add}>
    <label>${label}<input class="wide" type="file" name="file" accept=${TAKEN} required /></label>
    <button>Add</button><span role="status" class=${state.bad ? "bad" : "quiet"}>${state.text}</span></form>`;
}

/** @param {Uint8Array} bytes */
function base64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return btoa(text);
}
