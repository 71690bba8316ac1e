// <cs-filters>: every dimension to filter by, with how many steps each choice would leave.
import { getJSON, Question } from "./data.js";
import { el } from "./dom.js";
import { FacetList } from "./facet.js";
import { count, edge } from "./format.js";
import { on } from "./live.js";
import { RangeFilter } from "./range.js";
import { CONFIDENCE_EDGES, LATENCY_EDGES } from "./scale.js";
import { differs, FILTER, patch, read, stepQuery, subscribe, TIME } from "./state.js";

/** @typedef {import("./state.js").SetName} SetName */
/** @typedef {import("./types.js").Facet} Value */

const VERDICTS = { true: "Valid", false: "Invalid", unknown: "Unknown" };
const LISTS = /** @type {const} */ ([["service", "Service"], ["model", "Model"], ["kind", "Kind of step"], ["tool", "Tool"], ["check", "Failed check"], ["index", "Step number"]]);
const AGAIN = 2500;

class Filters extends HTMLElement {
  /** @type {Map<string, FacetList>} by label key */
  labels = new Map();

  verdict = new FacetList("Validity", (value, chosen) => this.toggle("valid", value, chosen),
    { word: (value) => Reflect.get(VERDICTS, value) ?? value, mark: (value) => `.verdict.${value}` });
  latency = new RangeFilter("Latency", LATENCY_EDGES, edge, (least, most) => patch({ latency_min_us: least, latency_max_us: most }));
  confidence = new RangeFilter("Confidence", CONFIDENCE_EDGES, (value) => value.toFixed(2).replace(/^0/, ""), (least, most) => patch({ confidence_min: least, confidence_max: most }));
  known = /** @type {HTMLSelectElement} */ (el("select.field", { "aria-label": "Steps with or without a confidence" },
    ...[["", "Known or unknown"], ["true", "Known"], ["false", "Unknown"]].map(([value, words]) => el("option", { value }, words))));
  lists = new Map(LISTS.map(([name, words]) => [name, new FacetList(words, (value, chosen) => this.toggle(name, value, chosen),
    { word: name === "index" ? (value) => `Step ${value === "16" ? "16 and above" : value}` : undefined })]));
  labelled = el("div");
  message = el("p.quiet.group", { hidden: true });
  facets = new Question((signal) => this.ask(signal), (answer) => this.show(answer), (refusal) => {
    this.message.textContent = `${refusal.message} ${refusal.fix}`;
    this.message.hidden = false;
  }, AGAIN);

  connectedCallback() {
    this.known.addEventListener("change", () => patch({ confidence_known: this.known.value === "" ? null : this.known.value === "true" }));
    this.confidence.element.append(this.known);
    const [service, model, ...rest] = [...this.lists.values()].map((list) => list.element);
    this.append(el("aside", { "aria-label": "Filters" }, this.message, this.verdict.element, this.latency.element, this.confidence.element,
      service, model, this.labelled, ...rest));
    subscribe((state, before) => {
      if (!differs(state, before, [...TIME, ...FILTER, "view"])) return;
      this.limits();
      this.again();
    });
    on("open", () => this.again());
    on("step", () => this.soon());
    this.limits();
    this.again();
  }

  /** Asks at once: when it is opened, and when the state changed. */
  again() {
    if (!this.hidden) this.facets.now();
  }

  soon() {
    if (!this.hidden) this.facets.soon();
  }

  /** @param {AbortSignal} signal */
  async ask(signal) {
    const state = read();
    const sides = [["latency_min_us", "latency_max_us"], ["confidence_min", "confidence_max", "confidence_known"]];
    // each side without its own limits, so that they can be widened: one question does when there are none
    const limited = sides.map((names) => differs(state, { ...state, ...Object.fromEntries(names.map((name) => [name, null])) }, names));
    const spread = (/** @type {string[]} */ without) => getJSON("/api/distribution", stepQuery(state, without), signal);
    const shared = limited.includes(false) ? spread([]) : null;
    const [facets, latency, sure] = await Promise.all([
      getJSON("/api/facets", stepQuery(state), signal), limited[0] ? spread(sides[0]) : shared, limited[1] ? spread(sides[1]) : shared]);
    return { facets, latency: latency.total, confidence: sure.total };
  }

  /** @param {{facets: any, latency: any, confidence: any}} answer */
  show({ facets, latency, confidence }) {
    const state = read();
    this.message.hidden = true;
    const verdicts = new Map(/** @type {Value[]} */ (facets.valid).map((each) => [String(each.value), each.count]));
    this.verdict.show(Object.keys(VERDICTS).map((value) => ({ value, count: verdicts.get(value) ?? 0 })), state.valid);
    for (const [name, list] of this.lists) {
      const values = /** @type {Value[]} */ (facets[name] ?? []).map((each) => ({ value: String(each.value).replace("16+", "16"), count: each.count }));
      if (name === "index") values.sort((a, b) => Number(a.value) - Number(b.value));
      list.show(values, state[name]);
    }
    this.latency.fill(latency.latency.buckets);
    this.confidence.fill(confidence.confidence.buckets);
    const known = confidence.confidence.count;
    this.known.options[1].text = `Known (${count(known)})`;
    this.known.options[2].text = `Unknown (${count(Math.max(0, confidence.count - known))})`;
    this.showLabels(facets.labels ?? {}, state.label);
  }

  /** @param {Record<string, Value[]>} found @param {readonly string[]} chosen KEY:VALUE */
  showLabels(found, chosen) {
    const keys = new Set([...Object.keys(found), ...chosen.map((pair) => pair.slice(0, pair.indexOf(":")))]);
    for (const key of keys) {
      let list = this.labels.get(key);
      if (!list) {
        list = new FacetList(key, (value, on) => this.toggle("label", `${key}:${value}`, on));
        this.labels.set(key, list);
        this.labelled.append(list.element);
      }
      list.show(found[key] ?? [], chosen.filter((pair) => pair.startsWith(`${key}:`)).map((pair) => pair.slice(key.length + 1)));
    }
    for (const [key, list] of this.labels) if (!keys.has(key)) list.show([], []);
  }

  limits() {
    const state = read();
    this.latency.show(state.latency_min_us, state.latency_max_us);
    this.confidence.show(state.confidence_min, state.confidence_max);
    this.known.value = state.confidence_known === null ? "" : String(state.confidence_known);
  }

  /** @param {SetName} name @param {string} value @param {boolean} chosen */
  toggle(name, value, chosen) {
    const rest = read()[name].filter((each) => each !== value);
    patch({ [name]: chosen ? [...rest, value] : rest });
  }
}

customElements.define("cs-filters", Filters);
