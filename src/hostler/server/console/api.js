// Talking to this server, and to nobody else: the token, questions, and the stream of events.
import { signal } from "./ui.js";

/** @typedef {import("./types.js").Row} Row */

const KEPT = "hostler.token";
const SESSION = "session";

// What this tab asks with: a token, SESSION where the browser holds the cookie of a sign-in, "" for nothing yet.
export const token = signal(takeToken());
// Whether people may sign in through an OpenID provider here.
export const provider = signal(false);
// Whether it is known how people may sign in: before, no page is shown that may be the wrong one.
export const greeted = signal(false);
// Why this tab asks with nothing: a session that has ended, a sign-in that failed. "" where there is nothing to say.
export const ended = signal("");
export const live = signal("connecting");
// When the server was heard last on a stream that is cut, by this browser's clock; 0 while none is.
export const cutSince = signal(0);
let asking = new AbortController();

// `hostler up` opens the console with #token=…; a fragment is never sent anywhere. It is kept for this tab only.
function takeToken() {
  const found = /[#&]token=(hst_[0-9a-f]{12}_[\w-]{43})/.exec(location.hash);
  if (found) {
    sessionStorage.setItem(KEPT, found[1]);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return sessionStorage.getItem(KEPT) || "";
}

addEventListener("hashchange", () => {
  token.value = takeToken();
});

// Asks how people may sign in, and goes on with a session that stands.
export async function greet() {
  try {
    const answer = await fetch("/sign-in/ways");
    if (!answer.ok) return;
    const ways = await answer.json();
    provider.value = ways.oidc;
    ended.value = ways.failure;
    if (!token.value && ways.session) token.value = SESSION;
  } catch (error) {
    ended.value = `The server does not answer: ${said(error)}`;
  } finally {
    greeted.value = true;
  }
}

// Ends what this tab asks with; of a session the cookie goes too.
export async function leave() {
  const session = token.value === SESSION;
  forget();  // first, so that the stream ends here before the server cuts it
  try {
    if (session) await fetch("/sign-in/out", { method: "POST" });
    ended.value = "You are signed out.";
  } catch (error) {
    ended.value = `The server does not answer, so your session goes on until it ends by itself: ${said(error)}`;
  }
}

function forget() {
  asking.abort();
  asking = new AbortController();
  sessionStorage.removeItem(KEPT);
  token.value = "";
}

/** @param {string} value */
export function setToken(value) {
  sessionStorage.setItem(KEPT, value);
  ended.value = "";
  token.value = value;
}

export class Problem extends Error {
  /** @param {number} status @param {Row} body */
  constructor(status, body) {
    super(body.detail || `the server answered ${status}`);
    this.status = status;
    this.instead = body.instead || "";
    this.problems = body.problems || [];
  }

  // What is wrong, and what to do instead, as it is shown; of a document the first lines that are wrong.
  get text() {
    if (this.problems.length) return this.problems.slice(0, 3).map((/** @type {{ line: number, what: string, instead: string }} */ one) => `${one.line ? `line ${one.line}: ` : ""}${one.what}: ${one.instead}`).join("; ");
    return this.instead ? `${this.message}: ${this.instead}` : this.message;
  }
}

// What is wrong, as it is shown to people.
/** @param {unknown} error */
export function said(error) {
  return error instanceof Problem ? error.text : error instanceof Error ? error.message : String(error);
}

/** @param {string} path @returns {Promise<Row>} */
export async function ask(path) {
  return reach(path, { headers: headers() }, (answer) => answer.json());
}

// The bytes of a file, as a Blob.
/** @param {string} path */
export async function take(path) {
  return reach(path, { headers: headers() }, (answer) => answer.blob());
}

/** @param {string} path @param {Row} body @returns {Promise<Row>} */
export async function send(path, body) {
  const options = {
    method: "POST",
    headers: headers({ "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() }),
    body: JSON.stringify(body),
  };
  return reach(path, options, (answer) => answer.json());
}

// Nothing is asked in nobody's name, and what is under way when somebody signs out ends with it.
/** @template T @param {string} path @param {RequestInit} options @param {(answer: Response) => Promise<T>} read @returns {Promise<T>} */
async function reach(path, options, read) {
  if (!token.value) throw new Problem(401, { detail: "You are signed out." });
  const stopped = asking.signal;
  try {
    const answer = await fetch(`/v1${path}`, { ...options, signal: stopped });
    if (!answer.ok) throw await problem(answer);
    return await read(answer);
  } catch (error) {
    throw stopped.aborted ? new Problem(401, { detail: "You are signed out." }) : error;
  }
}

/** @param {Record<string, string>} [more] @returns {Record<string, string>} */
function headers(more) {
  return token.value === SESSION ? { ...more } : { Authorization: `Bearer ${token.value}`, ...more };
}

/** @param {Response} answer */
async function problem(answer) {
  let body = {};
  try {
    body = await answer.json();
  } catch {
    body = {};
  }
  if (answer.status === 401 && token.value) {
    ended.value = token.value === SESSION ? "Your session has ended." : "The server does not take this token, or no longer.";
    forget();
  }
  return new Problem(answer.status, body);
}

// The server writes at least every 15 s. A stream that is silent for three times as long is cut, though nobody said so.
const SILENT_MS = 45000;

// Calls `take` with the records after `seq`, those that come together in one call, resuming after the last one seen
// whenever the connection breaks; `back` is called when it goes on. When too much was missed to resume, `lost` reads all
// anew and says which record that stands at. Returns a way to stop it.
/** @typedef {{ take: (records: import("./types.js").JournalRecord[]) => void, lost: () => Promise<number>, back: () => void }} Follower */
/** @param {number} seq @param {Follower} follower */
export function follow(seq, follower) {
  const stop = new AbortController();
  cutSince.value = 0;
  run(seq, follower, stop.signal);
  return () => stop.abort();
}

/** @param {number} seq @param {Follower} follower @param {AbortSignal} stopped */
async function run(seq, { take, lost, back }, stopped) {
  let last = String(seq);
  let started = false;
  let pause = 500;
  let heard = Date.now();
  while (!stopped.aborted && token.value) {
    const quiet = silence();
    try {
      live.value = started ? "reconnecting" : "connecting";
      const answer = await fetch("/v1/events", {
        headers: headers({ "Last-Event-ID": last }),
        signal: AbortSignal.any([stopped, quiet.signal]),
      });
      if (answer.status === 410) {
        last = String(await lost());
        heard = Date.now();
      }
      if (!answer.ok) throw await problem(answer);
      const tell = () => {
        heard = Date.now();
        quiet.ended();
      };
      tell();
      live.value = "live";
      if (cutSince.value) back();
      cutSince.value = 0;
      started = true;
      pause = 500;
      for await (const told of messages(/** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (answer.body), tell)) {
        last = told[told.length - 1].id;
        take(told.map(({ data }) => JSON.parse(data)));
      }
    } catch (error) {
      if (stopped.aborted) return;
      console.debug("stream", said(error));
    } finally {
      quiet.stop();
    }
    if (stopped.aborted) return;
    live.value = "reconnecting";
    cutSince.value = heard;
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(pause * 2, 15000);
  }
}

// Aborts its signal once nothing has ended the silence for too long.
function silence() {
  const abort = new AbortController();
  const wait = () => setTimeout(() => abort.abort(new Error("the server is silent")), SILENT_MS);
  let timer = wait();
  const stop = () => clearTimeout(timer);
  const ended = () => {
    stop();
    timer = wait();
  };
  return { signal: abort.signal, ended, stop };
}

// The messages of each read of the stream, where it brought any to their end. `tell` is told of each read.
/** @param {ReadableStream<Uint8Array<ArrayBuffer>>} body @param {() => void} tell @returns {AsyncGenerator<Record<string, string>[]>} */
async function* messages(body, tell) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    tell();
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    const told = blocks.map(fields).filter((message) => message.data);
    if (told.length) yield told;
  }
}

/** @param {string} block */
function fields(block) {
  /** @type {Record<string, string>} */
  const found = {};
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    if (at > 0) found[line.slice(0, at)] = line.slice(at + 1).trimStart();
  }
  return found;
}
