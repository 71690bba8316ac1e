// Rows and positions of a run on one time axis. Pure arithmetic over the tree. Times are microseconds since the epoch.
import * as names from "./names.js";

/** @typedef {import("./tree.js").Node} Node */
/** `level`, `position` and `setSize` are those of ARIA, from 1. @typedef {{node: Node, level: number, position: number, setSize: number, expanded: boolean | null}} Row */
/** @typedef {{from: number, to: number}} Window */

/**
 * The nodes in the order they are shown, without what is inside collapsed ones.
 * @param {Node[]} roots @param {Set<string>} [collapsed] ids @returns {Row[]}
 */
export function rowsOf(roots, collapsed = new Set()) {
  const rows = [];
  /** @type {Row[]} */
  const stack = [];
  /** @param {Node[]} nodes @param {number} level */
  const push = (nodes, level) => {
    for (let at = nodes.length - 1; at >= 0; at--) {
      const expanded = nodes[at].children.length ? !collapsed.has(nodes[at].id) : null;
      stack.push({ node: nodes[at], level, position: at + 1, setSize: nodes.length, expanded });
    }
  };
  push(roots, 1);
  while (stack.length) {
    const row = /** @type {Row} */ (stack.pop());
    rows.push(row);
    if (row.expanded) push(row.node.children, row.level + 1);
  }
  return rows;
}

/** From the earliest start to the latest end; at least a microsecond. @param {Iterable<{start: number, end: number}>} nodes @returns {Window} */
export function extent(nodes) {
  let from = Infinity;
  let to = -Infinity;
  for (const node of nodes) {
    from = Math.min(from, node.start);
    to = Math.max(to, node.end);
  }
  if (from > to) return { from: 0, to: 1 };
  return { from, to: Math.max(to, from + 1) };
}

/**
 * Where an interval is in a window: shares of its width from 0 to 1, or null where it is outside.
 * @param {Window} window @param {number} start @param {number} end @returns {{left: number, width: number} | null}
 */
export function place(window, start, end) {
  if (end < window.from || start > window.to) return null;
  const whole = window.to - window.from;
  const left = Math.max(0, (start - window.from) / whole);
  return { left, width: Math.min(1, (end - window.from) / whole) - left };
}

const SECOND = 1e6;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND, 60 * SECOND, 120 * SECOND, 300 * SECOND, 600 * SECOND, 900 * SECOND, 1800 * SECOND, 3600 * SECOND];

/**
 * Round places of an axis that counts from `zero`: at most `most` of them.
 * @param {Window} window @param {number} zero @param {number} most @returns {{at: number, offset: number, step: number}[]} `offset`: microseconds since zero
 */
export function ticks(window, zero, most) {
  const least = (window.to - window.from) / Math.max(1, most);
  const step = STEPS.find((one) => one >= least) ?? Math.ceil(least / (3600 * SECOND)) * 3600 * SECOND;
  const found = [];
  for (let offset = Math.ceil((window.from - zero) / step) * step; offset <= window.to - zero; offset += step) {
    found.push({ at: zero + offset, offset, step });
  }
  return found;
}

/** A tick's words: as many decimals as its step needs. @param {{offset: number, step: number}} tick */
export function tickText({ offset, step }) {
  if (step < 1000) return `${offset} µs`;
  if (step < SECOND) return offset < SECOND ? `${offset / 1000} ms` : `${(offset / SECOND).toFixed(step < 1e4 ? 3 : step < 1e5 ? 2 : 1)} s`;
  const seconds = Math.round(offset / SECOND);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  const rest = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return minutes < 60 ? `${minutes}:${rest(seconds % 60)}` : `${Math.floor(minutes / 60)}:${rest(minutes % 60)}:${rest(seconds % 60)}`;
}

/** A window around `at`, `factor` times as wide, that stays inside the whole. @param {Window} window @param {Window} whole @param {number} at @param {number} factor @returns {Window} */
export function zoomed(window, whole, at, factor) {
  const width = Math.min(whole.to - whole.from, Math.max(10, (window.to - window.from) * factor));
  const share = (at - window.from) / (window.to - window.from);
  const from = Math.min(Math.max(whole.from, at - share * width), whole.to - width);
  return { from, to: from + width };
}

/**
 * Confidence along the chain: what the step's span says, else the product of the known ones so far.
 * @param {Iterable<Node>} nodes @returns {Map<string, number>} by step id, of steps of this run only; none before the first known
 */
export function chainConfidence(nodes) {
  const steps = [...nodes].filter((node) => node.own && node.step).sort((a, b) => index(a) - index(b) || a.start - b.start);
  const values = new Map();
  /** @type {number | null} */
  let value = null;
  for (const node of steps) {
    const known = node.step?.confidence ?? null;
    if (known !== null) value = (value ?? 1) * known;
    const given = node.span?.attributes[names.CHAIN_CONFIDENCE];
    if (typeof given === "number") value = given;
    if (value !== null) values.set(node.id, value);
  }
  return values;
}

/** @param {Node} node */
const index = (node) => node.step?.step_index ?? 0;

/** A tool's round trip: the step that asked, the tool's run (or the server's result), and the call that took the result. @typedef {{ask: Node, run: Node, taker: Node | null}} Trip */

/**
 * Joined by the tool call's id where spans carry it, else by call, tool and order.
 * @param {Iterable<Node>} nodes @returns {Trip[]}
 */
export function roundTrips(nodes) {
  const own = [...nodes].filter((node) => node.own).sort((a, b) => a.start - b.start || index(a) - index(b));
  const calls = own.filter((node) => node.kind === "call");
  /** @type {Map<string, Node[]>} */
  const asked = new Map();
  const trips = [];
  for (const node of own) {
    const kind = node.step?.kind ?? "";
    const keys = tripKeys(node);
    if (kind.endsWith("tool_use")) {
      for (const key of keys) asked.set(key, [...(asked.get(key) ?? []), node]);
    } else if (node.kind === "tool" || kind.endsWith("tool_result")) {
      const ask = keys.map((key) => asked.get(key)?.shift()).find((found) => found);
      if (ask) trips.push({ ask, run: node, taker: node.kind === "tool" ? taker(calls, ask, node) : null });
    }
  }
  return trips;
}

/** @param {Node} node */
function tripKeys(node) {
  const id = node.span?.attributes[names.TOOL_CALL_ID];
  return typeof id === "string" ? [id] : [`${node.step?.call_span_id} ${node.step?.tool}`];
}

const SLACK = 20_000; // two clocks: a call's own span may begin a moment before the request that ended the tool

/** @param {Node[]} calls in time @param {Node} ask @param {Node} run @returns {Node | null} */
function taker(calls, ask, run) {
  return calls.find((call) => call.start >= run.end - SLACK && call.start >= ask.end && call.id !== ask.step?.call_span_id) ?? null;
}

/**
 * The failing path: `path` has each failed node of this run and all above it, `after` what came later in the run.
 * @param {Iterable<Node>} nodes @returns {{failed: Node[], path: Set<Node>, after: Set<Node>}} `failed` in time
 */
export function failingPath(nodes) {
  const own = [...nodes].filter((node) => node.own).sort((a, b) => a.start - b.start || index(a) - index(b));
  const failed = own.filter((node) => node.failed && !node.children.some((child) => child.own && child.failed));
  const path = new Set();
  for (const node of failed) for (let at = /** @type {Node | null} */ (node); at && !path.has(at); at = at.parent) path.add(at);
  const first = failed.length ? failed[0].end : Infinity;
  return { failed, path, after: new Set(own.filter((node) => !path.has(node) && node.start >= first)) };
}
