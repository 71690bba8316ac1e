// Cells of the comparison: figures of A over those of B with their difference, and their histograms overlaid.
import { el, svg } from "./dom.js";
import { binned } from "./comparison.js";
import { confidence, count, duration, percent } from "./format.js";

/** @typedef {import("./comparison.js").Pair} Pair */
/** @typedef {import("./comparison.js").Difference} Difference */

const [WIDTH, HEIGHT] = [132, 34];
const METHODS = {
  latency: "95 % intervals of the two quantiles (binomial, over the bands of the histogram) do not overlap",
  confidence: "the 95 % interval of the difference of means (Welch) leaves out zero",
  invalid: "the 95 % interval of the difference of shares (Newcombe, from Wilson’s) leaves out zero",
};

/** How differences are told from noise, for tooltips. @param {"latency" | "confidence" | "invalid"} what @param {number} rows */
export const method = (what, rows) => `A change is marked where ${METHODS[what]}, made strict for ${rows} rows (Bonferroni).`;

/** @param {number | null} a @param {number | null} b @param {(value: number | null) => string} word */
const two = (a, b, word) => el("div.ab", {}, el("span.a", {}, word(a)), el("span.b", {}, word(b)));

/** @param {Pair} pair @param {number} rows @param {{least: number, most: number}} latency the range of all histograms @returns {HTMLElement} */
export function pairRow(pair, rows, { least, most }) {
  const { a, b } = pair;
  const quantile = (/** @type {"p50" | "p95" | "p99"} */ name) => cell(pair[name], duration, (change) => signed(100 * change, 0, " %"), 1, method("latency", rows));
  return el(pair.name === "all" ? "tr.all" : "tr", {},
    el("th", { scope: "row" }, pair.name === "all" ? "All" : pair.name),
    el("td", {}, two(a?.count ?? 0, b?.count ?? 0, (n) => count(n ?? 0))),
    quantile("p50"), quantile("p95"), quantile("p99"),
    el("td.plots", {}, overlay("Latency", bars(a?.latency.buckets, least, most, Math.log), bars(b?.latency.buckets, least, most, Math.log))),
    cell(pair.confidence, confidence, (change) => signed(change, 2, ""), -1, method("confidence", rows)),
    el("td.plots", {}, overlay("Confidence", bars(a?.confidence.buckets, 0, 1), bars(b?.confidence.buckets, 0, 1))),
    cell(pair.invalid, percent, (change) => signed(100 * change, 1, " pt"), 1, method("invalid", rows)));
}

/** @param {number} value @param {number} digits @param {string} unit */
function signed(value, digits, unit) {
  const size = Math.abs(value).toFixed(digits);
  return `${Number(size) === 0 ? "±" : value < 0 ? "−" : "+"}${size}${unit}`;
}

/**
 * @param {Difference} difference @param {(value: number | null) => string} word @param {(change: number) => string} words
 * @param {1 | -1} worse whether more or less is worse @param {string} how
 */
function cell({ a, b, change, sure, interval }, word, words, worse, how) {
  if (change === null) return el("td", {}, el("div.pair", {}, two(a, b, word)));
  const tone = !sure ? "" : change * worse > 0 ? ".worse" : ".better";
  const range = interval ? ` Between ${words(interval[0])} and ${words(interval[1])}.` : "";
  const title = `${sure ? (tone === ".worse" ? "Worse." : "Better.") : "No change that can be told from noise."}${range} ${how}`;
  return el("td", { title }, el("div.pair", {}, two(a, b, word),
    el(`span.change${tone}`, {}, sure ? el("i", { "aria-hidden": "true" }, change > 0 ? "▲" : "▼") : null, words(change), el("span.hidden", {}, sure ? (tone === ".worse" ? " worse" : " better") : " not told from noise"))));
}

const BINS = 22;

/** @param {readonly (readonly [number, number])[] | undefined} bands @param {number} from @param {number} to @param {(value: number) => number} [by] */
const bars = (bands, from, to, by) => (bands?.length ? binned(bands, from, to, BINS, by) : null);

/** B filled, A as a line over it. @param {string} name @param {number[] | null} a @param {number[] | null} b */
function overlay(name, a, b) {
  if (!a && !b) return el("span.faint", {}, "none");
  const most = Math.max(...(a ?? [0]), ...(b ?? [0]));
  const width = WIDTH / BINS;
  const y = (/** @type {number} */ share) => (HEIGHT - 1 - (share / most) * (HEIGHT - 3)).toFixed(1);
  const outline = (/** @type {number[]} */ shares) => shares.map((share, at) => `${at ? "L" : "M"}${(at * width).toFixed(1)} ${y(share)}h${width.toFixed(1)}`).join("");
  return svg("svg.overlay", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img", "aria-label": `${name}: histograms of A and B overlaid` },
    b ? svg("path.b", { d: `${outline(b)}V${HEIGHT - 1}H0z` }) : null, svg("path.base", { d: `M0 ${HEIGHT - 0.5}H${WIDTH}` }), a ? svg("path.a", { d: outline(a) }) : null);
}
