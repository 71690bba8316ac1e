// The event stream: one connection for all of the page, none in a hidden tab.

/**
 * `step`, `run`, `stats`, `lag` as the server sends them; `open`: connected, also again, so what is shown must be
 * asked for anew; `connection`: whether the page is connected changed.
 * @typedef {{
 *   step: import("./types.js").Step, run: import("./types.js").Run, stats: import("./types.js").Stats,
 *   lag: {count: number | null}, open: null, connection: Connection,
 * }} Events
 */
/** @typedef {Readonly<{state: "connecting" | "live" | "lost" | "asleep", since: number}>} Connection `since` in ms */

/** @type {Map<string, Set<(data: any, number: number) => void>>} */
const listeners = new Map();
/** @type {EventSource | null} */
let source = null;
/** @type {ReturnType<typeof setTimeout> | null} */
let retry = null;
/** @type {Connection} */
let connection = { state: "connecting", since: Date.now() };

/**
 * Calls for each event. A listener only notes what came and paints on a frame (`onFrame`): steps come a thousand a second.
 * @template {keyof Events} K @param {K} name @param {(data: Events[K], number: number) => void} listener gets the event's number too @returns {() => void} ends it
 */
export function on(name, listener) {
  let all = listeners.get(name);
  if (!all) listeners.set(name, all = new Set());
  all.add(listener);
  return () => all.delete(listener);
}

/** Whether the page is connected, and since when. */
export const connectionNow = () => connection;

/** @param {string} name @param {any} data @param {number} [number] */
function tell(name, data, number = 0) {
  const all = listeners.get(name);
  if (all) for (const listener of all) listener(data, number);
}

/** @param {Connection["state"]} state */
function become(state) {
  if (connection.state === state) return;
  connection = { state, since: Date.now() };
  tell("connection", connection);
}

function open() {
  const stream = source = new EventSource("/api/stream");
  stream.addEventListener("open", () => {
    become("live");
    tell("open", null);
  });
  stream.addEventListener("error", () => {
    if (stream !== source) return;
    become("lost");
    if (stream.readyState !== EventSource.CLOSED) return; // else the browser tries again by itself
    close();
    retry = setTimeout(open, 2000);
  });
  for (const name of ["step", "run", "stats"]) {
    stream.addEventListener(name, (event) => {
      const { data, lastEventId } = /** @type {MessageEvent} */ (event);
      tell(name, JSON.parse(data), Number(lastEventId.slice(lastEventId.lastIndexOf("-") + 1)));
    });
  }
  stream.addEventListener("lag", (event) => miss(JSON.parse(event.data).count));
}

/** @type {{count: number | null} | null} what was missed and not yet told */
let missed = null;
let toldMissed = -Infinity;

/** Tells of missed events at most every five seconds: what is shown is asked for again each time. @param {number | null} count */
function miss(count) {
  if (missed) missed.count = missed.count === null || count === null ? null : missed.count + count;
  else {
    missed = { count };
    setTimeout(() => {
      toldMissed = performance.now();
      tell("lag", missed);
      missed = null;
    }, Math.max(0, toldMissed + 5000 - performance.now()));
  }
}

function close() {
  source?.close();
  source = null;
  if (retry !== null) clearTimeout(retry);
  retry = null;
}

/** Connects, and from now on closes while the tab is hidden. Called once. */
export function start() {
  document.addEventListener("visibilitychange", () => {
    close();
    if (document.hidden) become("asleep");
    else open();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted && !source) open(); });
  if (!document.hidden) open();
}
