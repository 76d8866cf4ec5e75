// Lists from the API, read page by page and again when something has been recorded.
import { ask } from "./api.js";
import { onRecord, pace, throttled } from "./state.js";
import { useEffect, useState } from "./ui.js";

const ROWS_MAX = 20000;

// { items, problem, cut }: `items` null while nothing has been read, `cut` where there are more than are shown. It is
// read again when a record comes that `heard` takes.
export function useList(path, query = {}, heard = () => true) {
  const wanted = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  const [found, show] = useState({ items: null, problem: "", cut: false, of: "" });
  useEffect(() => {
    let left = false;
    const read = async () => {
      const answer = await whole(path, wanted);
      if (left) return;
      show((before) => ({ ...(answer.problem && before.of === wanted ? before : {}), ...answer, of: wanted }));
    };
    read();
    const later = throttled(() => left || read());
    const end = onRecord((record) => heard(record) && later(pace()));
    return () => {
      left = true;
      end();
    };
  }, [path, wanted]);
  return found;
}

// One document instead of a list: { found, problem }, read again when something has been recorded. "" asks for nothing.
export function useDocument(path) {
  const [seen, show] = useState({ found: null, problem: "", of: "" });
  useEffect(() => {
    let left = !path;
    const read = async () => {
      const answer = await ask(path).then((found) => ({ found, problem: "" }), (error) => ({ found: null, problem: error.text ?? error.message }));
      if (!left) show({ ...answer, of: path });
    };
    if (path) read();
    const later = throttled(() => left || read());
    const end = onRecord(() => left || later(pace()));
    return () => {
      left = true;
      end();
    };
  }, [path]);
  return seen.of === path ? seen : { found: null, problem: "" };
}

async function whole(path, wanted) {
  const items = [];
  let cursor = "";
  try {
    do {
      const page = await ask(`${path}?limit=1000&cursor=${encodeURIComponent(cursor)}${wanted && `&${wanted}`}`);
      items.push(...page.items);
      cursor = page.cursor;
    } while (cursor && items.length < ROWS_MAX);
  } catch (error) {
    return { items: null, problem: error.text ?? error.message };
  }
  return { items, problem: "", cut: Boolean(cursor) };
}

// { answer, problem } of one question, asked again when a record comes that `heard` takes; `path` "" asks nothing.
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
        if (!left) show({ answer: null, problem: error.text ?? error.message, of: path });
      }
    };
    read();
    const later = throttled(() => left || read());
    const end = onRecord((record) => heard(record) && later(1500));
    return () => {
      left = true;
      end();
    };
  }, [path]);
  return found.of === path ? found : { answer: null, problem: "" };
}
