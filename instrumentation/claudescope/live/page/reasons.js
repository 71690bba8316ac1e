// Why an objective burns: the server's explanation, with its slices as filters and examples as links.
import { Question, getJSON } from "./data.js";
import { el, icon, onFrame } from "./dom.js";
import { count, percent, span } from "./format.js";
import { patch } from "./state.js";

/** @typedef {import("./types.js").Slo} Slo */
/** @typedef {{labels: Record<string, string>, bad: number, total: number, expected: number, share: number, p: number, traces?: {id: string, url: string}[]}} Slice */
/** @typedef {{from_ms: number, to_ms: number, baseline_from_ms: number, explanation: {verdict: string, slices: Slice[]}, text: string, svg: string}} Answer */

const FIELDS = /** @type {Record<string, "service" | "model" | "kind" | "tool">} */ ({ service_name: "service", gen_ai_request_model: "model", claudescope_step_kind: "kind", gen_ai_tool_name: "tool" });
const LABEL = "claudescope_label_";

export class Reasons {
  open = false;
  question;

  /** @param {string} id of the objective @param {string} region */
  constructor(id, region) {
    this.question = new Question((signal) => getJSON(`/api/slos/${encodeURIComponent(id)}/explain`, null, signal), (answer) => this.take(answer), (refusal) => this.say(`${refusal.message} ${refusal.fix}`));
    this.element = el("section.slo-reasons", { id: region, "aria-label": "Why it burns", hidden: true, "aria-live": "polite" });
  }

  /** @param {boolean} open @param {Slo} slo */
  show(open, slo) {
    if (open === this.open || !slo.counted) return;
    this.open = open;
    this.element.hidden = !open;
    if (!open) return this.question.stop();
    this.say("Asking…");
    this.question.now();
    onFrame(() => this.element.scrollIntoView({ block: "nearest" }));
  }

  /** @param {string} words */
  say(words) {
    this.element.replaceChildren(el("p.quiet", {}, words));
  }

  /** @param {Answer} answer */
  take(answer) {
    const { slices } = answer.explanation;
    this.element.replaceChildren(
      el("p.quiet", {}, answer.baseline_from_ms < answer.from_ms ? `${span(answer.from_ms, answer.to_ms)}, against ${span(answer.baseline_from_ms, answer.from_ms)}.` : `${span(answer.from_ms, answer.to_ms)}.`,
        " ", el("button.button.bare", { type: "button", onclick: () => this.question.now() }, "Again")),
      ...answer.text.split("\n").filter((line) => line && (!slices.length || !line.startsWith(" "))).map((line) => el("p", {}, line)), // examples are links below
      ...(slices.length ? [el("ol.slo-slices", {}, ...slices.map((slice) => this.slice(slice, answer)))] : []),
      ...(answer.svg ? [el("img.slo-picture", { src: `data:image/svg+xml,${encodeURIComponent(answer.svg)}`, alt: "The same as a picture" })] : []));
  }

  /** @param {Slice} slice @param {Answer} answer */
  slice(slice, answer) {
    const words = Object.entries(slice.labels).map(([name, value]) => `${plain(name)} ${value || "none"}`).join(", ");
    return el("li", {},
      el("button.button", { type: "button", title: "Show only these steps", onclick: () => patch({ ...conditions(slice.labels), from: answer.from_ms, to: answer.to_ms, slot: null }) }, icon("filter"), el("span.cut", {}, words)),
      el("p", {}, `${count(slice.bad)} of ${count(slice.total)} bad, ${Number(slice.expected.toPrecision(3))} expected; ${percent(slice.share)} of the burn.`),
      (slice.traces ?? []).length > 0 && el("p", {}, "Examples: ", ...(slice.traces ?? []).flatMap((trace, at) => [at > 0 && ", ", example(trace)])));
  }
}

/** @param {{id: string, url: string}} trace */
function example(trace) {
  const at = trace.url.indexOf("?");
  const search = at < 0 ? "" : trace.url.slice(at + 1);
  const given = new URLSearchParams(search);
  return el("a", { href: `/?${search}`, onclick: (/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    patch({ run: given.get("run"), step: given.get("step") });
  } }, trace.id.slice(0, 12));
}

/** @param {string} name */
const plain = (name) => (name === "claudescope_step_index" ? "step" : FIELDS[name] ?? name.replace(LABEL, ""));

/** A slice's labels as the page's filters. An absent label is a condition only where a filter can say it. @param {Record<string, string>} labels @returns {import("./state.js").Change} */
export function conditions(labels) {
  /** @type {Record<string, string[] | null>} */
  const found = { service: null, model: null, kind: null, tool: null, index: null, label: null };
  for (const [name, value] of Object.entries(labels)) {
    const field = FIELDS[name];
    if (field && value) found[field] = [value];
    else if (name === "claudescope_step_index") found.index = [value.replace("+", "")];
    else if (name.startsWith(LABEL)) (found.label ??= []).push(`${name.slice(LABEL.length)}:${value}`);
  }
  return found;
}
