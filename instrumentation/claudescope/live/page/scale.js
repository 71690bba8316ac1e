// What a cell's colour means: three measures, each on a stepped scale. The steps of latency and confidence are edges
// of the server's own bands, so a colour is exact, and so is a filter on an edge.
import { edge } from "./format.js";

/** @typedef {import("./types.js").Cell} Cell */
/** @typedef {{name: string, edges: number[], names: string[], light: string[], dark: string[], value: (cell: Cell) => number | null, unknown: string}} Measure */

/** Edges of a latency filter in µs: the boundaries of `claudescope.step.duration`. */
export const LATENCY_EDGES = [0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.8, 1, 2.5, 5, 10, 30, 60, 120].map((seconds) => Math.round(seconds * 1e6));
/** Edges of a confidence filter. */
export const CONFIDENCE_EDGES = Array.from({ length: 19 }, (_, at) => (at + 1) / 20);

const LATENCY = [100_000, 350_000, 800_000, 2_500_000, 10_000_000, 30_000_000];

/** The words for the stretches between edges. @param {number[]} edges @param {(edge: number) => string} word */
function stretches(edges, word) {
  return [`under ${word(edges[0])}`, ...edges.slice(1).map((to, at) => `${word(edges[at])} – ${word(to)}`), `${word(edges[edges.length - 1])} and over`];
}

// Ordered in lightness as well as in hue, and no red beside green. On a light page darker is worse, on a dark one brighter.
/** @type {Record<"latency" | "confidence" | "invalid", Measure>} */
export const SCALES = {
  latency: {
    name: "p95 latency", edges: LATENCY, names: stretches(LATENCY, edge), value: (cell) => cell.p95_us,
    light: ["#d5e3f5", "#aecbeb", "#7eacdb", "#4f8ac6", "#2b67a8", "#164680", "#0a264e"],
    dark: ["#1b3050", "#234672", "#2d6199", "#407fc0", "#6ea3dd", "#a7c9f2", "#e4f0fe"],
    unknown: "unknown: the app itself read slowly",
  },
  confidence: {
    name: "mean confidence", edges: [0.5, 0.6, 0.7, 0.8, 0.9], names: ["under .5", ".5 – .6", ".6 – .7", ".7 – .8", ".8 – .9", ".9 and over"], value: (cell) => cell.confidence,
    light: ["#9c3604", "#d36a23", "#f0ae75", "#bcd0e8", "#76a0d2", "#2a62a5"],
    dark: ["#ffb782", "#e08038", "#a25a2b", "#3a5576", "#5181bd", "#93c0f8"],
    unknown: "unknown",
  },
  invalid: {
    name: "invalid share", edges: [1e-9, 0.02, 0.05, 0.15, 0.4], names: ["none", "under 2 %", "2 – 5 %", "5 – 15 %", "15 – 40 %", "40 % and over"], value: (cell) => cell.invalid_share,
    light: ["#cddceb", "#fad6ac", "#f4b26d", "#e58534", "#c05a15", "#823407"],
    dark: ["#263b56", "#5a3a18", "#8f5317", "#c8741e", "#f0a050", "#ffdcb4"],
    unknown: "unknown: nothing could be checked",
  },
};

/** Which step of the scale a value is on. @param {number[]} edges @param {number} value */
export function stepOf(edges, value) {
  let at = 0;
  while (at < edges.length && value >= edges[at]) at++;
  return at;
}
