// Says on every page that the stream of events is cut, how old what is shown is at least, and when it goes on.
import { cutSince } from "./api.js";
import { html, useEffect, useState } from "./ui.js";
import { moment, span } from "./words.js";

const BACK_MS = 5000;
const TICK_MS = 1000;

// What is announced stands still: the age beside it, which counts on, would be read aloud each second.
export function Stale() {
  const since = cutSince.value;
  const [back, say] = useState(false);
  useEffect(() => {
    if (!since) return undefined;
    say(true);
    return () => setTimeout(() => say(false), BACK_MS);
  }, [since]);
  const told = since
    ? `Not live: no news from the server since ${moment(new Date(since).toISOString())}. What is shown may have changed; it goes on by itself.`
    : back ? "Live again." : "";
  return html`<div class=${told ? "stale-bar" : ""} role="region" aria-label="Connection to the server"><p role="status">${told}</p>${since > 0 && html`<${Age} since=${since} />`}</div>`;
}

/** @param {{ since: number }} props */
function Age({ since }) {
  const [now, tick] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => tick(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, [since]);
  const seconds = Math.max(0, Math.floor((now - since) / 1000));
  return html`<p class="age">Shown: ${seconds < 60 ? `${seconds} s` : span(seconds)} old</p>`;
}
