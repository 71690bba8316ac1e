// The panel beside the waterfall: all that is known of one step, call or span.
import { copy } from "./clipboard.js";
import { el, icon } from "./dom.js";
import { confidence, cost, count, duration, full, reason, several } from "./format.js";
import { excerpt } from "./excerpt.js";
import { conversation, spelled } from "./messages.js";
import * as names from "./names.js";
import { mark, ring } from "./ring.js";
import { endedEarly } from "./tree.js";

/** @typedef {import("./tree.js").Node} Node */

const LATENCY = {
  measured: "Measured: the app was waiting for these bytes.",
  apportioned: "An estimate: the answer was not streamed, so the call’s time is shared out by length.",
  consumer: "An upper bound: over 20 % of it was the app’s own time between two reads.",
  tool_run: "From the end of the block that asked for the tool to the request with its result: an upper bound of the tool’s own time.",
  none: "No time is known: a result of a batch, or its sender gave none.",
  call: "From the request to the last byte of the answer, retries included.",
  pending: "Still going: its span comes when it ends.",
  span: "From the span’s start to its end.",
};
const BLOCKS = new Set([names.STEP_TEXT, names.INPUT_MESSAGES, names.OUTPUT_MESSAGES, names.SYSTEM_INSTRUCTIONS]);

export class DetailPanel {
  /** @param {{close: () => void, jump: (id: string) => void, link: (id: string) => string, visit: (run: string, id: string) => void}} on */
  constructor(on) {
    this.on = on;
    this.id = "";
    this.shown = "";
    /** @type {Set<string>} */
    this.open = new Set(["Input", "Output"]);
    this.title = el("h2", { tabIndex: -1, id: "detail-title" });
    this.links = el("span.detail-links");
    this.content = el("div.detail-body");
    const close = el("button.button.bare.round", { type: "button", title: "Close (Escape)", "aria-label": "Close", onclick: () => on.close() }, icon("close"));
    this.element = el("aside.card.detail", { "aria-labelledby": "detail-title", hidden: true },
      el("div.head", {}, this.title, this.links, close), this.content);
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      on.close();
    });
  }

  /**
   * @param {Node | null} node
   * @param {{events: import("./tree.js").LogEvent[], trips: import("./timeline.js").Trip[], chain: number | undefined, jaeger: string | null}} around
   */
  show(node, around) {
    this.element.hidden = node === null;
    const shown = node ? JSON.stringify([node.span, node.step, node.call, node.pending, around.events.length, around.trips.length, around.chain, around.jaeger]) : "";
    if (!node || (this.id === node.id && this.shown === shown)) return;
    const again = this.id === node.id;
    const focused = this.content.contains(document.activeElement);
    const top = again ? this.element.scrollTop : 0;
    this.id = node.id;
    this.shown = shown;
    this.title.replaceChildren(...heading(node));
    this.links.replaceChildren(...this.ways(node, around.jaeger));
    this.content.replaceChildren(...this.sections(node, around));
    this.element.scrollTop = top;
    if (focused) this.title.focus({ preventScroll: true });
  }

  /** @param {Node} node @param {string | null} jaeger */
  ways(node, jaeger) {
    const words = el("span", {}, "Copy link");
    const share = el("button.button.bare", { type: "button", onclick: () => copy(words, this.on.link(node.id)) }, words);
    if (!jaeger) return [share];
    return [share, el("a.button.bare", { href: jaegerLink(jaeger, node.traceId, node.id), target: "_blank", rel: "noreferrer" }, "Jaeger")];
  }

  /** @param {Node} node @param {Parameters<DetailPanel["show"]>[1]} around @returns {HTMLElement[]} */
  sections(node, around) {
    const given = node.span?.attributes ?? {};
    const found = [figures(node, around.chain), this.elsewhere(node), ...this.verdicts(node), this.trip(node, around.trips)];
    if (node.step) found.push(this.text(node));
    found.push(...this.messages(given));
    if (node.call) found.push(usage(node.call));
    const labels = Object.entries(node.step?.labels ?? {});
    if (labels.length) found.push(section("Labels", table(labels)));
    const happened = [...(node.span?.events ?? []).map((event) => ({ name: event.name, at: event.ts_us / 1000, attributes: event.attributes })),
      ...around.events.filter((event) => event.span_id === node.id).map((event) => ({ name: event.name, at: event.ts_ms, attributes: event.attributes }))];
    if (happened.length) found.push(this.fold("Events", happened.length, () => happened.map((event) => el("div.event", {}, el("b", {}, event.name), el("span.faint", {}, ` ${full(event.at)}`), table(Object.entries(event.attributes))))));
    const attributes = Object.entries(given).filter(([name]) => !BLOCKS.has(name)).sort(([a], [b]) => (a < b ? -1 : 1));
    if (attributes.length) found.push(this.fold("Attributes", attributes.length, () => [table(attributes)]));
    else found.push(el("p.quiet.pad", {}, "The span itself is not here (yet)."));
    const resource = Object.entries(node.span?.resource ?? {});
    if (resource.length) found.push(this.fold("Sender", resource.length, () => [table([["scope", node.span?.scope], ...resource])]));
    found.push(section("Ids", table([["trace", node.traceId], ["span", node.id], ...(node.step ? [["run", node.step.run_id]] : [])])));
    return /** @type {HTMLElement[]} */ (found.filter(Boolean));
  }

  /** The run of a sub-agent, or whoever else is in this trace. @param {Node} node */
  elsewhere(node) {
    const run = node.span?.attributes[names.CHAIN_ID];
    if (node.own || typeof run !== "string") return null;
    return el("p", {}, "Of another run in this trace. ", el("button.button.bare", { type: "button", onclick: () => this.on.visit(run, node.id) }, "Open that run"));
  }

  /** @param {Node} node */
  verdicts({ step, span, failed }) {
    if (!step) {
      if (!failed) return [];
      const why = span?.status_message || span?.attributes[names.ERROR_TYPE] || "The span says error and not why.";
      return [section("Failed", el("p.reason", {}, mark(false), el("code", {}, String(why))))];
    }
    const ran = span?.attributes[names.VALIDITY_CHECKS];
    const checks = Array.isArray(ran) ? ran.map(String) : [...new Set(step.reasons.map((one) => one.check))];
    const list = checks.map((check) => el("li", {}, mark(step.reasons.some((one) => one.check === check) ? false : step.is_valid === null ? null : true, 14), check));
    const word = step.is_valid === null ? "Nothing could be checked, so nothing is said." : step.is_valid ? "Valid: no check that ran found a fault." : "Invalid.";
    const cut = span?.attributes[names.STEP_INCOMPLETE];
    return [section("Validity", el("p.judged", {}, mark(step.is_valid, 18), word),
      list.length ? el("ul.checks", { "aria-label": "Checks that ran" }, ...list) : null,
      ...step.reasons.map((one, at) => this.reason(one, at)),
      cut ? el("p.quiet", {}, `The block never ended: ${cut}.`) : null)];
  }

  /** @param {import("./types.js").Reason} one @param {number} at */
  reason(one, at) {
    if (one.start === null) return el("p.reason", {}, el("code", {}, reason(one)));
    const button = el("button.button.bare", { type: "button", title: "Show the place in the text" }, `characters ${one.start}–${one.end}`);
    button.addEventListener("click", () => {
      const place = this.content.querySelector(`mark[data-reason~="${at}"]`);
      place?.scrollIntoView({ block: "center" });
      place?.classList.add("found");
    });
    return el("p.reason", {}, el("code", {}, reason({ ...one, start: null })), button);
  }

  /** @param {Node} node @param {import("./timeline.js").Trip[]} trips */
  trip(node, trips) {
    const trip = trips.find((one) => one.ask === node || one.run === node);
    const taken = trips.filter((one) => one.taker === node);
    const stop = (/** @type {string} */ words, /** @type {Node | null} */ to) => (to && to !== node ? el("li", {}, `${words} `, this.jump(to)) : null);
    if (!trip && !taken.length) return null;
    const stops = trip ? [stop("Asked for by", trip.ask), stop(trip.run.kind === "tool" ? "Ran as" : "Result:", trip.run), stop("Result taken by", trip.taker)]
      : taken.map((one) => stop("Took the result of", one.run));
    return section("Tool round trip", el("ul", {}, ...stops));
  }

  /** @param {Node} to */
  jump(to) {
    const words = to.step ? `step ${to.step.step_index} · ${[to.step.kind, to.step.tool].filter(Boolean).join(" ")}` : to.kind;
    return el("button.button.bare", { type: "button", onclick: () => this.on.jump(to.id) }, words);
  }

  /** @param {Node} node */
  text({ step, span }) {
    if (!step || !span) return null;
    const text = span.attributes[names.STEP_TEXT];
    const length = span.attributes[names.STEP_TEXT_LENGTH];
    if (typeof text === "string") {
      const moved = text.includes("[redacted:") && step.reasons.some((one) => one.start !== null);
      return section("Content", excerpt(text, step.reasons), moved ? el("p.quiet", {}, "Secrets were replaced in this text, so what is marked after one may be off.") : null);
    }
    if (step.kind === "tool_run" || step.kind === "manual") return null;
    return section("Content", el("p.quiet", {}, typeof length === "number" ? `${several(length, "character")}, captured as a hash only.` : "Not captured.",
      " The app keeps texts with ", el("code", {}, "CLAUDESCOPE_CONTENT=full"), "."));
  }

  /** @param {Record<string, any>} given */
  messages(given) {
    return [["System", names.SYSTEM_INSTRUCTIONS], ["Input", names.INPUT_MESSAGES], ["Output", names.OUTPUT_MESSAGES]].map(([title, name]) =>
      given[name] === undefined ? null : this.fold(title, null, () => [conversation(given[name]) ?? excerpt(spelled(given[name]), [])]));
  }

  /** A section that is made when it is opened, and stays open for the next node. @param {string} title @param {number | null} number @param {() => (Node | HTMLElement)[]} make */
  fold(title, number, make) {
    const details = /** @type {HTMLDetailsElement} */ (el("details", {}, el("summary", {}, el("h3", {}, title), number === null ? null : el("span.faint", {}, count(number)))));
    let made = false;
    const fill = () => {
      if (!made) details.append(.../** @type {HTMLElement[]} */ (make()));
      made = true;
    };
    if (this.open.has(title)) {
      details.open = true;
      fill();
    }
    details.addEventListener("toggle", () => {
      if (details.open) fill();
      this.open[details.open ? "add" : "delete"](title);
    });
    return details;
  }
}

/** The address of a span in Jaeger's page. @param {string} base @param {string} traceId @param {string} [spanId] */
export function jaegerLink(base, traceId, spanId = "") {
  return `${base.replace(/\/+$/, "")}/trace/${encodeURIComponent(traceId)}${spanId ? `?uiFind=${encodeURIComponent(spanId)}` : ""}`;
}

/** @param {Node} node */
function heading({ step, call, kind, span }) {
  if (step) return [el("span.index", {}, step.step_index), step.kind, step.tool ? el("span.quiet", {}, ` ${step.tool}`) : ""];
  return kind === "call" ? ["call", call?.model ? el("span.quiet", {}, ` ${call.model}`) : ""] : [span?.name ?? "span"];
}

/** @param {Node} node @param {number | undefined} chain */
function figures(node, chain) {
  const { step } = node;
  const source = node.kind === "tool" ? "tool_run" : step ? step.latency_source ?? "none" : node.pending ? "pending" : node.kind === "call" ? "call" : "span";
  const sign = source === "consumer" ? "≤ " : source === "apportioned" ? "~ " : "";
  const timeless = source === "none" && node.end === node.start;
  const sure = step?.confidence ?? null;
  const method = sure === null ? "Nothing gave this step a confidence."
    : `By ${step?.confidence_method ?? "an unknown method"}, ${step?.calibrated ? "calibrated on labelled outcomes" : step?.calibrated === false ? "not calibrated: no frequency of being right" : "calibration unknown"}.`;
  return el("dl.figures", {},
    el("div", {}, el("dt", {}, "Latency"), el("dd", {}, el("strong", {}, timeless ? "none" : sign + duration(node.end - node.start)), el("p", {}, Reflect.get(LATENCY, source) ?? `Source: ${source}.`))),
    step && el("div", {}, el("dt", {}, "Confidence"), el("dd", {}, el(`strong${sure !== null && sure < 0.7 ? ".low" : ""}`, {}, ring(sure, 20), confidence(sure)), el("p", {}, method))),
    chain === undefined ? null : el("div", {}, el("dt", {}, "Chain so far"), el("dd", {}, el("strong", {}, confidence(chain)), el("p", {}, "Product of the known confidences up to here."))),
    el("div", {}, el("dt", {}, "When"), el("dd", {}, el("span.nowrap", {}, full(node.start / 1000)))));
}

/** @param {import("./tree.js").Call} call */
function usage(call) {
  const fresh = call.input_tokens === null ? null : call.input_tokens - (call.cache_read_tokens ?? 0) - (call.cache_write_tokens ?? 0);
  const tokens = (/** @type {number | null} */ n) => (n === null ? "unknown" : count(n));
  return section("Call", table([
    ["input tokens", call.input_tokens === null ? "unknown" : `${count(call.input_tokens)} (${tokens(fresh)} new, ${tokens(call.cache_read_tokens ?? 0)} from cache, ${tokens(call.cache_write_tokens ?? 0)} to cache)`],
    ["output tokens", call.output_tokens !== null && endedEarly(call) ? `at least ${tokens(call.output_tokens)}: the stream ended early` : tokens(call.output_tokens)], ["cost", cost(call.cost_usd)],
    ["first bytes after", call.first_chunk_ms === null ? null : duration(call.first_chunk_ms * 1000)],
    ["finish", call.finish], ["status", call.status_code], ["error", call.error_type], ["retries", call.retries || null],
  ]));
}

/** @param {string} title @param {...(Node | HTMLElement | null)} children @returns {HTMLElement} */
function section(title, ...children) {
  return el("section", {}, el("h3", {}, title), .../** @type {HTMLElement[]} */ (children));
}

/** @param {[string, unknown][] | any[][]} pairs those with nothing to say are left out */
function table(pairs) {
  const rows = pairs.filter(([, value]) => value !== null && value !== undefined);
  return el("table.pairs", {}, el("tbody", {}, ...rows.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, spelled(value))))));
}
