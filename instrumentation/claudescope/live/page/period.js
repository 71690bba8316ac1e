// <cs-period>: the time that is shown: the last minutes, hours or days, or from one moment to another.
import { el, icon, say } from "./dom.js";
import { span } from "./format.js";
import { patch, RANGES, read, subscribe, windowOf } from "./state.js";

const WORDS = { "5m": "5 min", "15m": "15 min", "1h": "1 h", "6h": "6 h", "24h": "24 h", "7d": "7 d", "30d": "30 d" };

/** A moment as `datetime-local` wants it, in the reader's time. @param {number} ms */
function local(ms) {
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

const moment = () => /** @type {HTMLInputElement} */ (el("input.field", { type: "datetime-local", step: "1", required: true }));

class Period extends HTMLElement {
  ranges = el("fieldset.segments", { role: "radiogroup", "aria-label": "Time shown" }, ...RANGES.map((range) =>
      el("label", {}, el("input", { type: "radio", name: "range", value: range, onclick: () => patch({ range, from: null, to: null, slot: null }) }), el("span", {}, WORDS[range]))));
  words = el("span.cut");
  toggle = el("button.button", { type: "button", "aria-expanded": "false", "aria-controls": "period", onclick: () => this.open(this.sheet.hidden) }, icon("clock"), this.words);
  from = moment();
  to = moment();
  fault = el("p.fault", { role: "alert", hidden: true });
  sheet = el("form.sheet", { id: "period", hidden: true, onsubmit: (/** @type {Event} */ event) => this.apply(event) },
    el("label", {}, el("span", {}, "From"), this.from), el("label", {}, el("span", {}, "To"), this.to), this.fault,
    el("div.row", {}, el("button.button.main", { type: "submit" }, "Show"), el("button.button", { type: "button", onclick: () => this.open(false) }, "Cancel")));
  now = el("button.button", { type: "button", onclick: () => patch({ from: null, to: null, slot: null }) }, "Back to now");

  connectedCallback() {
    this.append(this.ranges, el("div.custom", {}, this.toggle, this.sheet), this.now);
    this.addEventListener("keydown", (event) => { if (event.key === "Escape" && !this.sheet.hidden) this.open(false); });
    document.addEventListener("pointerdown", (event) => { if (!this.sheet.hidden && !this.contains(/** @type {Node} */ (event.target))) this.open(false, false); });
    subscribe(() => this.paint());
    this.paint();
  }

  paint() {
    const state = read();
    const fixed = state.from !== null && state.to !== null;
    for (const input of this.ranges.querySelectorAll("input")) input.checked = !fixed && input.value === state.range;
    say(this.words, fixed ? span(state.from ?? 0, state.to ?? 0) : "From – to");
    this.toggle.setAttribute("aria-pressed", String(fixed));
    this.now.hidden = windowOf(state).live;
    this.hidden = state.view === "compare";
  }

  /** @param {boolean} open @param {boolean} [back] whether the focus goes back to the button */
  open(open, back = true) {
    this.sheet.hidden = !open;
    this.toggle.setAttribute("aria-expanded", String(open));
    this.fault.hidden = true;
    if (open) {
      const { from, to } = windowOf(read());
      this.from.value = local(from);
      this.to.value = local(to);
      this.from.focus();
    } else if (back) this.toggle.focus();
  }

  /** @param {Event} event */
  apply(event) {
    event.preventDefault();
    const from = Date.parse(this.from.value);
    const to = Date.parse(this.to.value);
    if (!(from < to)) {
      this.fault.textContent = "The first moment must be before the second.";
      this.fault.hidden = false;
      this.from.focus();
      return;
    }
    this.open(false);
    patch({ from, to, slot: null });
  }
}

customElements.define("cs-period", Period);
