// Two distributions, row by row: the figures of A and B, how they differ, and whether more than noise says so.
import { meanDifference, quantileInterval, shareDifference, sureness } from "./statistics.js";

/** @typedef {{count: number, valid: number, invalid: number, unknown: number, latency: {count: number, p50_us: number | null, p95_us: number | null, p99_us: number | null, mean_us: number | null, buckets: [number, number][]}, confidence: {count: number, mean: number | null, buckets: [number, number][]}}} Figures */
/** @typedef {{items: (Figures & {step_index: string | number})[], total: Figures, exact: boolean, partial: boolean, from_ms: number, to_ms: number}} Distribution */
/** `change`: B's against A's, as a share of A's (latency) or in points; `sure`: the interval leaves no change out. @typedef {{a: number | null, b: number | null, change: number | null, sure: boolean, interval: [number, number] | null}} Difference */
/** @typedef {{name: string, a: Figures | null, b: Figures | null, p50: Difference, p95: Difference, p99: Difference, confidence: Difference, invalid: Difference}} Pair */

const QUANTILES = /** @type {const} */ ({ p50: 0.5, p95: 0.95, p99: 0.99 });

/** A row for all steps together, and one for each step number of either. @param {Distribution} a @param {Distribution} b @returns {Pair[]} */
export function pairs(a, b) {
  const names = [...new Set([...a.items, ...b.items].map((item) => String(item.step_index)))].sort((one, two) => parseInt(one, 10) - parseInt(two, 10));
  const find = (/** @type {Distribution} */ { items }, /** @type {string} */ name) => items.find((item) => String(item.step_index) === name) ?? null;
  const z = sureness(names.length + 1);
  return [pair("all", a.total, b.total, z), ...names.map((name) => pair(name, find(a, name), find(b, name), z))];
}

/** @param {string} name @param {Figures | null} a @param {Figures | null} b @param {number} z @returns {Pair} */
function pair(name, a, b, z) {
  return { name, a, b, p50: latency(a, b, "p50", z), p95: latency(a, b, "p95", z), p99: latency(a, b, "p99", z), confidence: confidence(a, b, z), invalid: invalid(a, b, z) };
}

/** @param {Figures | null} a @param {Figures | null} b @param {"p50" | "p95" | "p99"} name @param {number} z @returns {Difference} */
function latency(a, b, name, z) {
  const [one, two] = [a?.latency[`${name}_us`] ?? null, b?.latency[`${name}_us`] ?? null];
  if (!a || !b || one === null || two === null) return { a: one, b: two, change: null, sure: false, interval: null };
  const [low1, high1] = quantileInterval(a.latency.buckets, QUANTILES[name], z);
  const [low2, high2] = quantileInterval(b.latency.buckets, QUANTILES[name], z);
  return { a: one, b: two, change: one ? two / one - 1 : null, sure: high1 <= low2 || high2 <= low1, interval: null };
}

/** @param {Figures | null} a @param {Figures | null} b @param {number} z @returns {Difference} */
function confidence(a, b, z) {
  const [one, two] = [a?.confidence.mean ?? null, b?.confidence.mean ?? null];
  if (!a || !b || one === null || two === null) return { a: one, b: two, change: null, sure: false, interval: null };
  return told(one, two, meanDifference(a.confidence.buckets, one, b.confidence.buckets, two, z));
}

/** @param {Figures | null} a @param {Figures | null} b @param {number} z @returns {Difference} */
function invalid(a, b, z) {
  const share = (/** @type {Figures | null} */ of) => (of && of.valid + of.invalid ? of.invalid / (of.valid + of.invalid) : null);
  const [one, two] = [share(a), share(b)];
  if (!a || !b || one === null || two === null) return { a: one, b: two, change: null, sure: false, interval: null };
  return told(one, two, shareDifference(a.invalid, a.valid + a.invalid, b.invalid, b.valid + b.invalid, z));
}

/** @param {number} a @param {number} b @param {[number, number]} interval @returns {Difference} */
const told = (a, b, interval) => ({ a, b, change: b - a, sure: interval[0] > 0 || interval[1] < 0, interval });

/**
 * Shares of the whole in `bins` bins between two edges, on a scale of `by`; what is outside goes to the outermost.
 * @param {readonly (readonly [number, number])[]} bands @param {number} from @param {number} to @param {number} bins @param {(value: number) => number} by
 */
export function binned(bands, from, to, bins, by = (value) => value) {
  const found = new Array(bins).fill(0);
  const whole = bands.reduce((sum, [, count]) => sum + count, 0);
  const [low, high] = [by(from), by(to)];
  for (const [upper, count] of bands) {
    const at = Math.ceil(((by(upper) - low) / (high - low)) * bins) - 1;
    found[Math.min(bins - 1, Math.max(0, at))] += count / whole;
  }
  return found;
}
