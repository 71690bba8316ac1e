// One list of values to filter by: each with its count, the chosen ones first of all seen, the rest behind a button.
import { el, say, unique } from "./dom.js";
import { compact, count } from "./format.js";

/** @typedef {import("./types.js").Facet} Value */

const FEW = 6;

export class FacetList {
  /**
   * @param {string} name @param {(value: string, chosen: boolean) => void} toggle
   * @param {{word?: (value: string) => string, mark?: (value: string) => string}} [how] `mark`: a class
   */
  constructor(name, toggle, { word = (value) => value, mark = () => "" } = {}) {
    this.toggle = toggle;
    this.word = word;
    this.mark = mark;
    /** @type {Map<string, {row: HTMLElement, box: HTMLInputElement, number: HTMLElement, bar: HTMLElement}>} */
    this.rows = new Map();
    this.all = false;
    const id = unique("facet");
    this.list = el("ul");
    this.more = el("button.button.bare.more", { type: "button", onclick: () => { this.all = !this.all; this.fold(); } });
    this.element = el("section.group", { "aria-labelledby": id, hidden: true }, el("h3.cut", { id, title: name }, name), this.list, this.more);
  }

  /** @param {readonly Value[]} values most first @param {readonly string[]} chosen */
  show(values, chosen) {
    const shown = [...values, ...chosen.filter((value) => !values.some((each) => each.value === value)).map((value) => ({ value, count: 0 }))];
    const most = Math.max(1, ...shown.map((each) => each.count));
    // under the pointer or the focus nothing moves: only numbers change, and new values go to the end
    const still = this.element.matches(":hover, :focus-within");
    for (const value of this.rows.keys()) {
      if (shown.some((each) => each.value === value)) continue;
      const row = this.rows.get(value);
      if (still && row) shown.push({ value, count: 0 });
      else {
        row?.row.remove();
        this.rows.delete(value);
      }
    }
    shown.forEach(({ value, count: number }, at) => {
      const row = this.rows.get(value) ?? this.make(value);
      row.box.checked = chosen.includes(value);
      say(row.number, compact(number));
      row.number.title = count(number);
      row.row.classList.toggle("nothing", number === 0);
      row.bar.style.transform = `scaleX(${number / most})`;
      if (!still && this.list.children[at] !== row.row) this.list.insertBefore(row.row, this.list.children[at] ?? null);
    });
    this.element.hidden = shown.length === 0;
    this.fold();
  }

  /** @param {string} value */
  make(value) {
    const box = /** @type {HTMLInputElement} */ (el("input", { type: "checkbox" }));
    box.addEventListener("change", () => this.toggle(value, box.checked));
    const number = el("span.number.quiet");
    const bar = el("i.share", { "aria-hidden": "true" });
    const words = this.word(value);
    const row = el("li", {}, el("label", { title: words }, box, el(`span.cut${this.mark(value)}`, {}, words), number, bar));
    const made = { row, box, number, bar };
    this.rows.set(value, made);
    this.list.append(row);
    return made;
  }

  fold() {
    const rows = [...this.list.children];
    const extra = rows.length - FEW;
    rows.forEach((row, at) => {
      const box = row.querySelector("input");
      Reflect.set(row, "hidden", !this.all && extra > 1 && at >= FEW && !box?.checked);
    });
    this.more.hidden = extra <= 1;
    this.more.setAttribute("aria-expanded", String(this.all));
    say(this.more, this.all ? "Show fewer" : `Show ${extra} more`);
  }
}
