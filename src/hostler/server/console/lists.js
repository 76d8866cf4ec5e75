// Lists from the API, read page by page and again when something has been recorded.
import { ask, cutSince, said } from "./api.js";
import { onRecord, onReturn, pace, throttled } from "./state.js";
import { useEffect, useState } from "./ui.js";

/** @typedef {import("./types.js").Row} Row */

const ROWS_MAX = 20000;

// { items, problem, cut, last }: `items` null while nothing has been read, `cut` where there are more than are shown,
// `last` the last page as it was answered. It is read again when a record comes that `heard` takes.
/** @param {string} path @param {Record<string, string | undefined>} [query] @param {(record: import("./types.js").JournalRecord | undefined) => boolean} [heard] */
export function useList(path, query = {}, heard = () => true) {
  const wanted = new URLSearchParams(Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : []))).toString();
  const [found, show] = useState(/** @type {import("./types.js").Found & { of: string }} */ ({ items: null, problem: "", cut: false, of: "" }));
  useEffect(() => {
    let left = false;
    const read = async () => {
      const answer = await whole(path, wanted);
      if (left) return;
      show((before) => (stays(answer, before, wanted) && before.items ? before : { ...(answer.problem && before.of === wanted ? before : {}), ...answer, of: wanted }));
    };
    read();
    const later = throttled(() => left || read());
    const ends = [onRecord((record) => heard(record) && later(pace())), onReturn(() => later(pace()))];
    return () => {
      left = true;
      for (const end of ends) end();
    };
  }, [path, wanted]);
  return found;
}

// While the server is away what was read before stays, marked as old; it is read again once the server is back.
/** @param {{ problem: string }} answer @param {{ of: string }} before @param {string} wanted */
function stays(answer, before, wanted) {
  return Boolean(answer.problem) && cutSince.peek() > 0 && before.of === wanted;
}

// One document instead of a list: { found, problem }, read again when something has been recorded. "" asks for nothing.
/** @param {string} path @returns {{ found: Row, problem: string }} */
export function useDocument(path) {
  const [seen, show] = useState({ found: null, problem: "", of: "" });
  useEffect(() => {
    let left = !path;
    const read = async () => {
      const answer = await ask(path).then((found) => ({ found, problem: "" }), (error) => ({ found: null, problem: said(error) }));
      if (!left) show((before) => (stays(answer, before, path) && before.found ? before : { ...answer, of: path }));
    };
    if (path) read();
    const later = throttled(() => left || read());
    const ends = [onRecord(() => left || later(pace())), onReturn(() => left || later(pace()))];
    return () => {
      left = true;
      for (const end of ends) end();
    };
  }, [path]);
  return seen.of === path ? seen : { found: null, problem: "" };
}

/** @param {string} path @param {string} wanted */
async function whole(path, wanted) {
  const items = [];
  let cursor = "";
  let last = null;
  try {
    do {
      last = await ask(`${path}?limit=1000&cursor=${encodeURIComponent(cursor)}${wanted && `&${wanted}`}`);
      items.push(...last.items);
      cursor = last.cursor;
    } while (cursor && items.length < ROWS_MAX);
  } catch (error) {
    return { items: null, problem: said(error) };
  }
  return { items, problem: "", cut: Boolean(cursor), last };
}

// { answer, problem } of one question, asked again when a record comes that `heard` takes; `path` "" asks nothing.
/** @param {string} path @param {(record: import("./types.js").JournalRecord | undefined) => boolean} heard @returns {{ answer: Row, problem: string }} */
export function useAnswer(path, heard) {
  const [found, show] = useState({ answer: null, problem: "", of: "" });
  useEffect(() => {
    let left = false;
    const read = async () => {
      if (!path) return;
      try {
        const answer = await ask(path);
        if (!left) show({ answer, problem: "", of: path });
      } catch (error) {
        const problem = said(error);
        if (!left) show((before) => (stays({ problem }, before, path) && before.answer ? before : { answer: null, problem, of: path }));
      }
    };
    read();
    const later = throttled(() => left || read());
    const ends = [onRecord((record) => heard(record) && later(1500)), onReturn(() => later(1500))];
    return () => {
      left = true;
      for (const end of ends) end();
    };
  }, [path]);
  return found.of === path ? found : { answer: null, problem: "" };
}
