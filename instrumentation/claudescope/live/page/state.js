// The page's state is its address: read, change and watch it here only, so that every view can be sent to somebody.

export const RANGES = /** @type {const} */ (["5m", "15m", "1h", "6h", "24h", "7d", "30d"]);
export const MEASURES = /** @type {const} */ (["latency", "confidence", "invalid"]);
export const SORTS = /** @type {const} */ (["started", "steps", "duration", "tokens", "cost", "worst"]);
/** The filter's parameters that take several values. */
export const SETS = /** @type {const} */ (["service", "model", "kind", "tool", "check", "label", "index", "valid"]);
/** The filter's other parameters. */
export const LIMITS = /** @type {const} */ (["confidence_min", "confidence_max", "confidence_known", "latency_min_us", "latency_max_us"]);

/** @typedef {typeof RANGES[number]} Range */
/** @typedef {typeof SETS[number]} SetName */
/** @typedef {typeof LIMITS[number]} LimitName */
/**
 * `from`, `to`: a fixed time in ms, which wins over `range` (the time up to now; kept to go back to). `slot`: a part
 * of that time, picked on the heat strip, to which everything but the strip is limited. `a`, `b`: query strings of the
 * two sides of a comparison, for `parse`. `slo`: the objective whose explanation is open;
 * `slos`: whether the cards of all objectives are.
 * @typedef {Readonly<{
 *   range: Range, from: number | null, to: number | null, slot: readonly [number, number] | null,
 *   measure: typeof MEASURES[number],
 *   service: readonly string[], model: readonly string[], kind: readonly string[], tool: readonly string[],
 *   check: readonly string[], label: readonly string[], index: readonly string[], valid: readonly string[],
 *   confidence_min: number | null, confidence_max: number | null, confidence_known: boolean | null,
 *   latency_min_us: number | null, latency_max_us: number | null,
 *   q: string, status: "" | "ok" | "failed" | "running", sort: typeof SORTS[number], order: "asc" | "desc",
 *   run: string, step: string, view: "" | "compare", a: string, b: string, slo: string, slos: "" | "closed",
 * }>} State
 */
/** @typedef {Partial<{-readonly [K in keyof State]: State[K] | null}>} Change null takes back to what is usual */

const LENGTH = { "5m": 5, "15m": 15, "1h": 60, "6h": 360, "24h": 1440, "7d": 10_080, "30d": 43_200 };

/** @param {Range} range @returns {number} ms */
export const lengthOf = (range) => LENGTH[range] * 60_000;

/** @template {string} T @param {string | null} value @param {readonly T[]} allowed @param {T} usual @returns {T} */
const one = (value, allowed, usual) => allowed.find((each) => each === value) ?? usual;

/** @param {string | null} value @param {number} [most] @returns {number | null} */
function number(value, most = Number.MAX_SAFE_INTEGER) {
  if (value === null || value.trim() === "") return null;
  const found = Number(value);
  return found >= 0 && found <= most ? found : null;
}

/** @param {string | null} value ms or RFC 3339 */
function moment(value) {
  const found = number(value, 253_402_300_799_999) ?? (value && /^\d{4}-/.test(value) ? Date.parse(value) : null);
  return found !== null && Number.isFinite(found) ? Math.floor(found) : null;
}

/** @param {string} value */
const text = (value) => value.slice(0, 513);

/** The state that a query string says; whatever it says wrong counts as not said. @param {string} search @returns {State} */
export function parse(search) {
  const given = new URLSearchParams(search);
  const get = (/** @type {string} */ name) => given.get(name);
  const set = (/** @type {string} */ name) => Object.freeze([...new Set(given.getAll(name).filter(Boolean).map(text))]);
  let from = moment(get("from"));
  let to = moment(get("to"));
  if (from === null || to === null || from >= to) from = to = null;
  const [start, end] = (get("slot") ?? "").split("-").map((part) => moment(part));
  const slot = start !== null && end !== undefined && end !== null && start < end ? Object.freeze(/** @type {[number, number]} */ ([start, end])) : null;
  const known = get("confidence_known");
  return Object.freeze({
    range: one(get("range"), RANGES, "15m"), from, to, slot,
    measure: one(get("measure"), MEASURES, "latency"),
    service: set("service"), model: set("model"), kind: set("kind"), tool: set("tool"), check: set("check"),
    label: Object.freeze(set("label").filter((pair) => pair.indexOf(":") > 0)),
    index: Object.freeze(set("index").filter((value) => /^(\d|1[0-6])$/.test(value))),
    valid: Object.freeze(set("valid").filter((value) => ["true", "false", "unknown"].includes(value))),
    confidence_min: number(get("confidence_min"), 1), confidence_max: number(get("confidence_max"), 1),
    confidence_known: known === "true" ? true : known === "false" ? false : null,
    latency_min_us: number(get("latency_min_us")), latency_max_us: number(get("latency_max_us")),
    q: text(get("q") ?? ""), status: one(get("status"), ["", "ok", "failed", "running"], ""),
    sort: one(get("sort"), SORTS, "started"), order: one(get("order"), ["asc", "desc"], "desc"),
    run: text(get("run") ?? ""), step: text(get("step") ?? ""),
    view: one(get("view"), ["", "compare"], ""), a: get("a") ?? "", b: get("b") ?? "", slo: text(get("slo") ?? ""), slos: one(get("slos"), ["", "closed"], ""),
  });
}

const USUAL = parse("");
const NAMES = /** @type {(keyof State)[]} */ (Object.keys(USUAL));

/** The query string that says a state, without what is usual. @param {State} state @param {readonly string[]} [names] */
export function format(state, names = NAMES) {
  const out = new URLSearchParams();
  for (const name of NAMES) {
    const value = state[name];
    if (!names.includes(name) || value === USUAL[name] || value === null || value === "") continue;
    if (name === "slot") out.set(name, /** @type {readonly number[]} */ (value).join("-"));
    else if (Array.isArray(value)) for (const each of value) out.append(name, each);
    else out.set(name, String(value));
  }
  return out.toString().replaceAll("%3A", ":").replaceAll("%2F", "/");
}

/** A state with a change. @param {State} state @param {Change} change @returns {State} */
export function changed(state, change) {
  const next = /** @type {any} */ ({ ...state });
  for (const [name, value] of Object.entries(change)) next[name] = value ?? Reflect.get(USUAL, name);
  return parse(format(next));
}

let current = parse(location.search);
/** @type {Set<(state: State, before: State) => void>} */
const watchers = new Set();

/** The state now: the same object until it changes. */
export const read = () => current;

/**
 * Changes the state and the address. `replace` leaves no entry in the browser's history: for typing and sliding.
 * @param {Change} change @param {{replace?: boolean}} [how]
 */
export function patch(change, { replace = false } = {}) {
  const next = changed(current, change);
  const search = format(next);
  if (search === format(current)) return;
  const address = location.pathname + (search ? `?${search}` : "");
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  move(next);
}

/** The address of the page with a change, for links. @param {Change} [change] */
export function link(change = {}) {
  const search = format(changed(current, change));
  return location.origin + location.pathname + (search ? `?${search}` : "");
}

/** Calls with the new and the former state, after every change. @param {(state: State, before: State) => void} watcher @returns {() => void} ends it */
export function subscribe(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/** @param {State} next */
function move(next) {
  const before = current;
  current = next;
  for (const watcher of [...watchers]) watcher(next, before);
}

addEventListener("popstate", () => move(parse(location.search)));

/** Whether two states differ in one of these. @param {State} a @param {State} b @param {readonly string[]} names */
export const differs = (a, b, names) => format(a, names) !== format(b, names);

/** What says the time of everything but the strip. */
export const TIME = /** @type {const} */ (["range", "from", "to", "slot"]);
/** What says which steps. */
export const FILTER = /** @type {const} */ ([...SETS, ...LIMITS]);

/** The conditions on steps as the API takes them. @param {State} state @param {readonly string[]} [without] @returns {URLSearchParams} */
export function filterQuery(state, without = []) {
  return new URLSearchParams(format(state, FILTER.filter((name) => !without.includes(name))));
}

/** Whether there is any condition on steps. @param {State} state */
export const isFiltered = (state) => format(state, FILTER) !== "";

/** The time of everything but the strip in ms; `to` null is "and all that comes". @param {State} state @returns {{from: number, to: number | null}} */
export function timeOf(state) {
  if (state.slot) return { from: state.slot[0], to: state.slot[1] };
  if (state.from !== null && state.to !== null) return { from: state.from, to: state.to };
  return { from: Date.now() - lengthOf(state.range), to: null };
}

/**
 * The time that the heat strip shows, in ms. It follows now (`live`) unless a time is fixed, or the picked slot is
 * older than what it would show.
 * @param {State} state @returns {{from: number, to: number, live: boolean}}
 */
export function windowOf(state) {
  if (state.from !== null && state.to !== null) return { from: state.from, to: state.to, live: false };
  const length = lengthOf(state.range);
  const now = Date.now();
  if (state.slot && state.slot[0] < now - length) {
    const middle = (state.slot[0] + state.slot[1]) / 2;
    return { from: Math.round(middle - length / 2), to: Math.min(now, Math.round(middle + length / 2)), live: false };
  }
  return { from: now - length, to: now, live: true };
}

/** Time and conditions as the API takes them: for runs, facets, distributions. @param {State} state @param {readonly string[]} [without] */
export function stepQuery(state, without = []) {
  const query = filterQuery(state, without);
  const { from, to } = timeOf(state);
  query.set("from", String(from));
  if (to !== null) query.set("to", String(to));
  return query;
}

/** @typedef {import("./types.js").Step} Step */

/** Whether a step satisfies the state's conditions, as the server's filter says it; time apart. @param {State} state @param {Step} step @param {readonly string[]} [without] */
export function matches(state, step, without = []) {
  const in_ = (/** @type {readonly string[]} */ wanted, /** @type {string | null} */ value) => wanted.length === 0 || (value !== null && wanted.includes(value));
  if (!in_(state.service, step.service) || !in_(state.model, step.model) || !in_(state.kind, step.kind) || !in_(state.tool, step.tool)) return false;
  if (!in_(state.check, step.reasons[0]?.check ?? null)) return false;
  if (!without.includes("index") && !in_(state.index, String(Math.min(step.step_index, 16)))) return false;
  if (!in_(state.valid, step.is_valid === null ? "unknown" : String(step.is_valid))) return false;
  const sure = step.confidence;
  if (state.confidence_known !== null && (sure !== null) !== state.confidence_known) return false;
  if (state.confidence_min !== null && (sure === null || sure < state.confidence_min)) return false;
  if (state.confidence_max !== null && (sure === null || sure >= state.confidence_max)) return false;
  const ranged = state.latency_min_us !== null || state.latency_max_us !== null;
  if (ranged && step.latency_source === null && !step.latency_us) return false;
  if (state.latency_min_us !== null && step.latency_us < state.latency_min_us) return false;
  if (state.latency_max_us !== null && step.latency_us >= state.latency_max_us) return false;
  if (state.label.length === 0) return true;
  /** @type {Map<string, string[]>} values of one key are alternatives, keys must all hold */
  const labels = new Map();
  for (const pair of state.label) {
    const at = pair.indexOf(":");
    labels.set(pair.slice(0, at), [...(labels.get(pair.slice(0, at)) ?? []), pair.slice(at + 1)]);
  }
  return [...labels].every(([key, values]) => Object.hasOwn(step.labels, key) && values.includes(step.labels[key]));
}
