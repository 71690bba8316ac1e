// A range on a stepped scale: bars that say how many steps are where, and two handles. Drag over the bars, or use the keys.
import { el, say, unique } from "./dom.js";
import { count } from "./format.js";

/** One limit for each end; null at the end of the scale. @typedef {(least: number | null, most: number | null) => void} Chosen */

export class RangeFilter {
  /**
   * @param {string} name @param {number[]} edges inner edges: one more stretch than edges
   * @param {(edge: number) => string} word @param {Chosen} chosen
   */
  constructor(name, edges, word, chosen) {
    this.edges = edges;
    this.word = word;
    this.chosen = chosen;
    this.last = edges.length + 1;
    this.values = [0, this.last];
    this.bars = edges.concat(0).map(() => el("i"));
    this.plot = el("div.plot", { "aria-hidden": "true" }, ...this.bars);
    const id = unique("range");
    this.title = el("h3", { id }, name);
    this.text = el("output.quiet");
    this.handles = ["from", "to"].map((side) => /** @type {HTMLInputElement} */ (el("input", { type: "range", min: "0", max: String(this.last), step: "1", "aria-label": `${name} ${side}` })));
    this.track = el("div.track");
    this.element = el("div.group.range", { role: "group", "aria-labelledby": id },
      el("div.group-head", {}, this.title, this.text), this.plot, el("div.handles", {}, this.track, ...this.handles));
    this.handles.forEach((handle, side) => {
      handle.addEventListener("input", () => this.move(side, Number(handle.value)));
      handle.addEventListener("change", () => this.choose());
    });
    this.drag();
    this.show(null, null);
  }

  /** @param {number} side @param {number} value */
  move(side, value) {
    this.values[side] = side === 0 ? Math.min(value, this.values[1] - 1) : Math.max(value, this.values[0] + 1);
    this.paint();
  }

  choose() {
    const [low, high] = this.values;
    this.chosen(low === 0 ? null : this.edges[low - 1], high === this.last ? null : this.edges[high - 1]);
  }

  drag() {
    const { plot } = this;
    const at = (/** @type {PointerEvent} */ event) => {
      const box = plot.getBoundingClientRect();
      return Math.max(0, Math.min(this.last - 1, Math.floor(((event.clientX - box.left) / box.width) * this.last)));
    };
    let first = -1;
    const stretch = (/** @type {PointerEvent} */ event) => {
      const other = at(event);
      this.values = [Math.min(first, other), Math.max(first, other) + 1];
      this.paint();
    };
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      first = at(event);
      plot.setPointerCapture(event.pointerId);
      stretch(event);
    });
    plot.addEventListener("pointermove", (event) => { if (first >= 0) stretch(event); });
    plot.addEventListener("pointerup", () => { if (first >= 0) this.choose(); first = -1; });
    plot.addEventListener("pointercancel", () => { first = -1; });
  }

  /** The limits that are on; one off an edge shows as the nearest. @param {number | null} least @param {number | null} most */
  show(least, most) {
    const near = (/** @type {number} */ value) => 1 + this.edges.reduce((best, edge, at) => (Math.abs(edge - value) < Math.abs(this.edges[best] - value) ? at : best), 0);
    const low = least === null ? 0 : near(least);
    this.values = [low, Math.max(low + 1, most === null ? this.last : near(most))];
    this.paint();
  }

  /** How many steps: upper edge (inclusive) and count of each band. @param {[number | null, number][]} buckets */
  fill(buckets) {
    const sums = this.bars.map(() => 0);
    for (const [upper, number] of buckets) {
      const at = upper === null ? this.edges.length : this.edges.findIndex((edge) => upper <= edge);
      sums[at < 0 ? this.edges.length : at] += number;
    }
    const most = Math.max(1, ...sums);
    this.bars.forEach((bar, at) => {
      bar.style.height = sums[at] ? `${Math.max(6, (100 * sums[at]) / most)}%` : "0";
      bar.title = `${this.stretch(at, at + 1)}: ${count(sums[at])}`;
    });
  }

  /** @param {number} low @param {number} high */
  stretch(low, high) {
    if (low === 0 && high === this.last) return "any";
    if (low === 0) return `under ${this.word(this.edges[high - 1])}`;
    if (high === this.last) return `${this.word(this.edges[low - 1])} and over`;
    return `${this.word(this.edges[low - 1])} – ${this.word(this.edges[high - 1])}`;
  }

  paint() {
    const [low, high] = this.values;
    this.handles.forEach((handle, side) => {
      handle.value = String(this.values[side]);
      const at = this.values[side];
      handle.setAttribute("aria-valuetext", at === 0 ? "lowest" : at === this.last ? "highest" : this.word(this.edges[at - 1]));
      handle.style.zIndex = side === 0 && low > this.last / 2 ? "2" : "1";
    });
    this.bars.forEach((bar, at) => bar.classList.toggle("off", at < low || at >= high));
    this.track.style.left = `${(100 * low) / this.last}%`;
    this.track.style.right = `${100 - (100 * high) / this.last}%`;
    say(this.text, this.stretch(low, high));
  }
}
