// Lists from the API, read page by page and again when something has been recorded.
import { ask } from "./api.js";
import { onRecord, pace, throttled } from "./state.js";
import { useEffect, useState } from "./ui.js";

const ROWS_MAX = 20000;

// { items, problem, cut }: `items` null while nothing has been read, `cut` where there are more than are shown.
export function useList(path, query = {}) {
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
    const end = onRecord(() => later(pace()));
    return () => {
      left = true;
      end();
    };
  }, [path, wanted]);
  return found;
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
