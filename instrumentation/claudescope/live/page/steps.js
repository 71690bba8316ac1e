// The steps of one run, in the order of their numbers.
import { byId, el } from "./dom.js";
import { confidence, count, duration, full, reason, time } from "./format.js";

/** @typedef {{trace_id: string, span_id: string, run_id: string, step_index: number, kind: string, name: string|null, service: string, model: string|null, tool: string|null, ts_ms: number, latency_us: number, latency_source: string|null, confidence: number|null, confidence_method: string|null, calibrated: boolean|null, is_valid: boolean|null, reasons: {check: string, code: string, start: number|null, end: number|null}[], labels: Record<string, string>}} Step */

const MAX_STEPS = 1000;
const SOURCES = { consumer: "Upper bound: the app itself read slowly", apportioned: "Not streamed: the call's time shared out by length", measured: "Measured while the app waited" };

export class StepsTable {
  constructor() {
    this.body = byId("steps");
    /** @type {Map<string, Step>} */
    this.steps = new Map();
    this.runId = "";
    this.dirty = false;
    /** @type {import("./runs.js").Run | null} */
    this.run = null;
  }

  /** @param {string} id */
  open(id) {
    this.runId = id;
    this.steps.clear();
    this.run = null;
    this.dirty = true;
  }

  /** @param {Step} step */
  put(step) {
    if (step.run_id !== this.runId || (this.steps.size >= MAX_STEPS && !this.steps.has(step.span_id))) return;
    this.steps.set(step.span_id, step);
    this.dirty = true;
  }

  paint() {
    if (!this.dirty) return;
    this.dirty = false;
    const open = this.runId !== "";
    byId("close").hidden = !open;
    byId("steps-table").hidden = !open || this.steps.size === 0;
    byId("detail-note").textContent = open ? `Run ${this.runId}` : "Choose a run to see its steps.";
    byId("detail-title").textContent = this.run ? this.run.service : "Steps of a run";
    this.paintFacts();
    const sorted = [...this.steps.values()].sort((a, b) => a.step_index - b.step_index || a.ts_ms - b.ts_ms);
    const longest = Math.max(1, ...sorted.map((step) => step.latency_us));
    this.body.replaceChildren(...sorted.map((step) => stepRow(step, longest)));
    const more = byId("steps-more");
    const total = this.run?.steps ?? 0;
    more.hidden = !open || total <= this.steps.size;
    more.textContent = `${count(this.steps.size)} of ${count(total)} steps are shown.`;
  }

  paintFacts() {
    const facts = byId("facts");
    const { run } = this;
    facts.hidden = !run;
    if (!run) return facts.replaceChildren();
    const items = [
      ["Status", run.status], ["Started", time(run.started_ms)], ["Duration", duration(run.duration_ms * 1000)],
      ["Model", run.model ?? "unknown"], ["Calls", count(run.calls)],
      ["Tokens in / out", run.input_tokens === null || run.output_tokens === null ? "unknown" : `${count(run.input_tokens)} / ${count(run.output_tokens)}`],
      ["Lowest confidence", confidence(run.min_confidence)], ["Invalid", count(run.invalid)],
    ];
    facts.replaceChildren(...items.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
  }
}

/** @param {Step} step @param {number} longest */
function stepRow(step, longest) {
  const fill = el(step.latency_source === "consumer" ? "div.fill.consumer" : "div.fill");
  fill.style.width = `${(100 * step.latency_us) / longest}%`;
  const about = [step.tool, step.name].filter((text) => text !== null).join(" · ");
  const labels = Object.entries(step.labels).map(([key, value]) => `${key}=${value}`).join(" ");
  return el("tr", {},
    el("td.number", {}, step.step_index),
    el("td", { title: `Ended ${full(step.ts_ms)}` }, el("span.kind", {}, step.kind), about ? el("div.sub", {}, about) : null, labels ? el("div.sub", {}, labels) : null),
    el("td", {}, el("div.latency", { title: Reflect.get(SOURCES, step.latency_source ?? "") ?? "Latency" },
      el("div.track", {}, fill), el("output", {}, `${step.latency_source === "consumer" ? "≤ " : step.latency_source === "apportioned" ? "~ " : ""}${duration(step.latency_us)}`))),
    el("td", {}, share(step)),
    el("td", {}, validity(step), ...step.reasons.map((one) => el("span.reason", {}, reason(one)))));
}

/** @param {Step} step */
function share(step) {
  if (step.confidence === null) return el("span.unknown", {}, "unknown");
  const low = step.confidence < 0.7;
  const title = `By ${step.confidence_method ?? "an unknown method"}, ${step.calibrated ? "calibrated" : "not calibrated"}`;
  return el(low ? "span.share.low" : "span.share", { title }, `${confidence(step.confidence)}${low ? " ▾" : ""}`);
}

/** @param {Step} step */
function validity(step) {
  if (step.is_valid === null) return el("span.unknown", { title: "Nothing could be checked" }, "unknown");
  return step.is_valid ? el("span.tag.good", {}, "✓ valid") : el("span.tag.bad", {}, "✕ invalid");
}
