// One row of the waterfall: name, bar, latency, confidence, confidence of the chain so far, validity.
import { el, icon } from "./dom.js";
import { confidence, duration, several } from "./format.js";
import { LOW, kindIcon, mark, ring } from "./ring.js";
import { place } from "./timeline.js";

/** @typedef {import("./tree.js").Node} Node */

const DEEPEST = 8; // levels that are indented

/**
 * The cells of a node's row.
 * @param {Node} node @param {number} level @param {boolean | null} expanded @param {HTMLElement} bar @param {number | undefined} chained
 */
export function cells(node, level, expanded, bar, chained) {
  const name = el("div.c0", { role: "gridcell" },
    el("span.twist", { "data-twist": expanded === null ? null : "", "aria-hidden": "true" }, expanded === null ? null : icon(expanded ? "down" : "right")),
    kindIcon(node), el("span.w-name", {}, ...title(node)));
  name.style.paddingInlineStart = `${Math.min(level - 1, DEEPEST) * 16}px`;
  return [name, bar, ...figures(node, chained)];
}

/** The bar on the time axis. @param {Node} node @param {import("./timeline.js").Window} window what is in view @param {number} zero where the run begins */
export function bars(node, window, zero) {
  const words = `${duration(node.start - zero)} after the start`;
  const cell = el("div.c1", { role: "gridcell", "aria-label": words, title: words });
  const spot = place(window, node.start, node.end);
  if (!spot) return cell;
  const source = node.step ? node.step.latency_source ?? "none" : node.kind;
  const bar = put(el(`div.stripe.${["measured", "apportioned", "consumer"].includes(source) ? source : node.step ? "none" : node.kind}`), spanned(spot));
  if (node.pending) bar.classList.add("pending");
  cell.append(bar);
  const first = firstChunk(node);
  const wait = first === null ? null : place(window, node.start, first);
  if (wait) cell.append(put(el("div.stripe.wait"), spanned(wait)));
  const again = node.call?.retries ?? 0;
  if (again) {
    const sent = `The SDK sent the request ${again === 1 ? "once" : `${again} times`} again`;
    const end = spot.left + spot.width;
    cell.append(put(el("span.retries", { title: sent }, el("span", { "aria-hidden": "true" }, `↻${again}`), el("span.hidden", {}, sent)), { left: `${100 * (end < 0.92 ? end : spot.left)}%` }));
  }
  return cell;
}

/** @param {HTMLElement} element @param {Record<string, string>} style */
export function put(element, style) {
  Object.assign(element.style, style);
  return element;
}

/** @param {{left: number, width: number}} spot */
export const spanned = (spot) => ({ left: `${100 * spot.left}%`, width: `${100 * spot.width}%` });

/** When the first bytes of a streamed call came, in microseconds. @param {Node} node */
function firstChunk(node) {
  const ms = node.call?.first_chunk_ms ?? null;
  return ms === null || ms < 0 ? null : Math.min(node.end, node.start + ms * 1000);
}

/** What a row is called, and a quieter word beside it. @param {Node} node @returns {(HTMLElement | null)[]} */
function title(node) {
  const { step } = node;
  if (step) {
    const about = [step.tool, step.name].filter(Boolean).join(" · ");
    return [el("span.index", {}, step.step_index), el("b", {}, step.kind), about ? el("span.about", {}, about) : null];
  }
  if (node.kind !== "call") return [el("b", {}, node.span?.name ?? "span")];
  const trouble = node.call?.error_type ?? (node.failed ? "failed" : null);
  const model = node.call?.model ?? node.span?.attributes["gen_ai.request.model"] ?? node.children[0]?.step?.model;
  return [el("b", {}, "call"), model ? el("span.about", {}, model) : null,
    trouble ? el("span.trouble", {}, trouble) : null, node.pending ? el("span.about", {}, "not ended") : null];
}

/** @param {Node} node @param {number | undefined} chained */
function figures(node, chained) {
  const { step } = node;
  const sign = step?.latency_source === "consumer" ? "≤ " : step?.latency_source === "apportioned" ? "~ " : "";
  const timeless = step && step.latency_source === null && step.latency_us === 0;
  const latency = timeless ? "none" : sign + duration(node.end - node.start);
  const sure = step?.confidence ?? null;
  return [
    el("div.c2", { role: "gridcell" }, latency),
    el("div.c3", { role: "gridcell" }, ...(step ? [ring(sure), el(`span${sure === null ? ".hidden" : sure < LOW ? ".low" : ""}`, {}, confidence(sure))] : [])),
    el("div.c4", { role: "gridcell" }, chained === undefined ? null : el("span", { title: "Product of the known confidences so far" }, confidence(chained))),
    el("div.c5", { role: "gridcell" }, ...(step ? verdict(step) : node.failed ? [mark(false), el("span.bad-word", {}, "failed")] : [])),
  ];
}

/** @param {import("./types.js").Step} step */
function verdict(step) {
  const [first] = step.reasons;
  const reasons = step.reasons.map((reason) => [reason.check, reason.code].filter(Boolean).join(".")).join(", ");
  if (step.is_valid !== false) return [mark(step.is_valid), el("span.hidden", {}, step.is_valid ? "valid" : "unknown")];
  return [mark(false), el("span.bad-word", { title: reasons || "invalid" }, el("span.hidden", {}, "invalid "), first ? first.code || first.check : "invalid"),
    step.reasons.length > 1 ? el("span.hidden", {}, several(step.reasons.length, "reason")) : null];
}
