// <cs-chips>: what is on, one removable chip each.
import { el, icon } from "./dom.js";
import { confidence, edge, span } from "./format.js";
import { patch, read, SETS, subscribe } from "./state.js";

/** @typedef {import("./state.js").Change} Change */
/** @typedef {{key: string, name: string, value: string, off: Change}} Chip */

const VERDICTS = /** @type {Record<string, string>} */ ({ true: "valid", false: "invalid", unknown: "unknown" });
const NAMES = /** @type {Record<string, string>} */ ({ index: "step", valid: "validity" });
const STATUS = { ok: "finished", failed: "failed", running: "running" };

/** @param {number | null} least @param {number | null} most @param {(value: number) => string} word */
function limits(least, most, word) {
  if (least !== null && most !== null) return `${word(least)} – ${word(most)}`;
  return least !== null ? `${word(least)} and over` : `under ${word(most ?? 0)}`;
}

/** @param {import("./state.js").State} state @returns {Chip[]} */
export function chipsOf(state) {
  /** @type {Chip[]} */
  const chips = [];
  const add = (/** @type {string} */ name, /** @type {string} */ value, /** @type {Change} */ off) => chips.push({ key: `${name}\n${value}`, name, value, off });
  if (state.from !== null && state.to !== null) add("time", span(state.from, state.to), { from: null, to: null });
  if (state.slot) add("time", span(...state.slot), { slot: null });
  for (const set of SETS) {
    for (const value of state[set]) {
      const off = { [set]: state[set].filter((each) => each !== value) };
      const [key, ...rest] = value.split(":");
      if (set === "label") add(key, rest.join(":"), off);
      else add(NAMES[set] ?? set, set === "valid" ? VERDICTS[value] : set === "index" && value === "16" ? "16 and above" : value, off);
    }
  }
  if (state.latency_min_us !== null || state.latency_max_us !== null) {
    add("latency", limits(state.latency_min_us, state.latency_max_us, edge), { latency_min_us: null, latency_max_us: null });
  }
  if (state.confidence_min !== null || state.confidence_max !== null) {
    add("confidence", limits(state.confidence_min, state.confidence_max, confidence), { confidence_min: null, confidence_max: null });
  }
  if (state.confidence_known !== null) add("confidence", state.confidence_known ? "known" : "unknown", { confidence_known: null });
  if (state.status) add("run", STATUS[state.status], { status: null });
  if (state.q) add("search", state.q, { q: null });
  return chips;
}

class Chips extends HTMLElement {
  list = el("ul.chips", { "aria-label": "What is shown" });
  clear = el("button.button.bare", { type: "button", onclick: () => this.removeAll() }, "Clear all");

  connectedCallback() {
    this.append(this.list, this.clear);
    subscribe(() => this.paint());
    this.paint();
  }

  paint() {
    const chips = chipsOf(read());
    this.hidden = chips.length === 0 || read().view === "compare";
    this.clear.hidden = chips.length < 2;
    const held = this.list.contains(document.activeElement) ? [...this.list.children].findIndex((chip) => chip.contains(document.activeElement)) : -1;
    this.list.replaceChildren(...chips.map((chip) => el("li.chip", {},
      el("span.cut", { title: chip.value }, el("span", {}, `${chip.name} `), el("b", {}, chip.value)),
      el("button", { type: "button", "aria-label": `Remove ${chip.name} ${chip.value}`, onclick: () => patch(chip.off) }, icon("close")))));
    if (held >= 0) { // the chip under the focus went: the next one has it
      const next = this.list.children[Math.min(held, chips.length - 1)]?.querySelector("button");
      (next ?? document.getElementById("filters-toggle"))?.focus();
    }
  }

  removeAll() {
    patch(chipsOf(read()).reduce((all, chip) => ({ ...all, ...chip.off, ...Object.fromEntries(SETS.map((set) => [set, null])) }), {}));
    document.getElementById("filters-toggle")?.focus();
  }
}

customElements.define("cs-chips", Chips);
