// <cs-tools>: the filters' switch, the comparison, and the link to this very view.
import { copy } from "./clipboard.js";
import { byId, el, icon } from "./dom.js";
import { FILTER, format, LIMITS, link, patch, read, SETS, subscribe, TIME, windowOf } from "./state.js";

class Tools extends HTMLElement {
  number = el("span.badge", { hidden: true });
  filters = el("button.button", { type: "button", id: "filters-toggle", "aria-controls": "filters", onclick: () => this.show(byId("filters").hidden) }, icon("filter"), "Filters", this.number);
  compare = el("button.button", { type: "button", onclick: () => this.startComparing() }, icon("compare"), "Compare");

  connectedCallback() {
    const words = el("span", { "aria-live": "polite" }, "Copy link");
    this.append(this.filters, this.compare, el("button.button", { type: "button", id: "copy-link", onclick: () => copy(words, link()) }, icon("link"), words));
    subscribe(() => this.paint());
    this.show(matchMedia("(min-width: 1000px)").matches);
    this.paint();
  }

  /** @param {boolean} open */
  show(open) {
    const filters = byId("filters");
    filters.hidden = !open;
    this.filters.setAttribute("aria-expanded", String(open));
    if (open && "again" in filters) /** @type {any} */ (filters).again();
  }

  paint() {
    const state = read();
    const on = SETS.reduce((sum, name) => sum + state[name].length, 0) + LIMITS.filter((name) => state[name] !== null).length;
    this.number.textContent = String(on);
    this.number.hidden = on === 0;
    this.compare.hidden = state.view === "compare";
  }

  /** This time beside the time of the same length before, with the same conditions; both sides can then be changed. */
  startComparing() {
    const state = read();
    const { from, to } = state.slot ? { from: state.slot[0], to: state.slot[1] } : windowOf(state);
    const side = (/** @type {number} */ from, /** @type {number} */ to) => format({ ...state, from, to, slot: null }, [...TIME, ...FILTER]);
    patch({ view: "compare", run: null, step: null, a: side(2 * from - to, from), b: side(from, to) });
  }
}

customElements.define("cs-tools", Tools);
