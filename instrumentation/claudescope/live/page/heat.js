// <cs-heat>: the heat strip with what it asks the server, what the pointer and the keys do on it, and its words.
import { Cells, ROWS } from "./cells.js";
import { getJSON, Question } from "./data.js";
import { el, onFrame, say, unique } from "./dom.js";
import { confidence, count, duration, percent, several, span } from "./format.js";
import { on } from "./live.js";
import { SCALES } from "./scale.js";
import { differs, FILTER, filterQuery, format, matches, patch, read, subscribe, windowOf } from "./state.js";
import { Strip } from "./strip.js";

/** @typedef {import("./types.js").Cell} Cell */

/** Widths of the server's buckets in ms, and how far back each goes. */
const TIERS = [[10_000, 3_600_000], [60_000, 172_800_000], [300_000, 3_024_000_000], [3_600_000, Infinity], [21_600_000, Infinity]];
const USUAL = /** @type {Record<string, number>} */ ({ "5m": 10_000, "15m": 10_000, "1h": 10_000, "6h": 60_000, "24h": 300_000, "7d": 3_600_000, "30d": 21_600_000 });
const MOST_COLUMNS = 400;
const CONDITIONS = FILTER.filter((name) => name !== "index");
/** A drag over more columns zooms; over so few it picks them. */
const NARROWEST = 3;
const WHOLE_AGAIN = 60_000;

/** @param {import("./state.js").State} state @param {{from: number, to: number, live: boolean}} window */
function bucketOf(state, window) {
  if (window.live) return USUAL[state.range];
  const age = Date.now() - window.from;
  return (TIERS.find(([bucket, kept]) => (window.to - window.from) / bucket <= MOST_COLUMNS && age <= kept) ?? TIERS[TIERS.length - 1])[0];
}

class Heat extends HTMLElement {
  cells = new Cells(10_000);
  /** @type {Set<number>} cells to paint again: start + row, for a bucket is at least 10,000 */
  dirty = new Set();
  stale = true;
  /** Whether it has any width: to ask the canvas would have the page laid out in the middle of a frame. */
  wide = false;
  /** Number of the latest step's event. */
  last = 0;
  rows = 6;
  /** @type {{column: number, row: number} | null} */
  cursor = null;
  /** @type {number | null} the other end of a selection, as a column */
  anchor = null;
  /** @type {{x: number, id: number} | null} */
  press = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  turn = undefined;

  /** What the server said beside the cells. */
  partial = false;
  inexact = false;
  refusal = "";
  /** @type {{state: import("./state.js").State | null, filtered: boolean}} */
  known = { state: null, filtered: false };
  note = el("p.quiet.heat-note");
  measure = el("fieldset.segments", { role: "radiogroup", "aria-label": "Colour by" },
    ...[["latency", "Latency p95"], ["confidence", "Confidence"], ["invalid", "Invalid share"]].map(([value, words]) =>
      el("label", {}, el("input", { type: "radio", name: "measure", value }), el("span", {}, words))));
  canvas = /** @type {HTMLCanvasElement} */ (el("canvas", { tabIndex: 0, id: "strip", role: "application", "aria-roledescription": "heat strip", "aria-describedby": "strip-help" }));
  marks = { slot: el("div.mark.slot", { hidden: true }), range: el("div.mark.range", { hidden: true }), cell: el("div.mark.cell", { hidden: true }) };
  tip = el("div.tip.heat-tip", { hidden: true });
  words = el("p.hidden", { "aria-live": "polite", id: "strip-text" });
  legend = el("ul.legend", { "aria-label": "Colours" });
  strip = new Strip(this.canvas);
  whole = new Question((signal) => this.ask(signal, null), (answer) => this.show(answer, null), (refusal) => this.refuse(refusal), WHOLE_AGAIN);
  tail = new Question((signal) => this.ask(signal, this.tailStart()), (answer) => this.show(answer, this.tailStart()), (refusal) => this.refuse(refusal));

  connectedCallback() {
    const title = unique("heat");
    this.append(el("section.card", { "aria-labelledby": title },
      el("div.head", {}, el("div.grow", {}, el("h2", { id: title }, "Steps over time"), this.note), this.measure),
      el("div.strip", {}, this.canvas, this.marks.slot, this.marks.range, this.marks.cell, this.tip),
      el("p.hidden", { id: "strip-help" }, "Arrow keys move from cell to cell, Shift and arrow keys select a time, Enter filters by the cell or zooms to the time, Escape leaves it."),
      this.words, this.legend));
    this.measure.addEventListener("change", (event) => patch({ measure: /** @type {any} */ (event.target).value }));
    this.listen();
    subscribe((state, before) => {
      if (differs(state, before, ["range", "from", "to", ...CONDITIONS]) || windowOf(state).from !== windowOf(before).from) this.again();
      else this.repaint();
    });
    on("open", () => this.again());
    on("lag", () => this.again());
    on("step", (step, number) => this.take(step, number));
    on("stats", (stats) => this.replace(stats));
    new ResizeObserver(([{ contentRect }]) => {
      this.wide = contentRect.width > 0;
      this.repaint();
    }).observe(this.canvas);
    this.strip.dark.addEventListener("change", () => this.repaint());
    document.addEventListener("visibilitychange", () => this.repaint());
    this.again();
  }

  /** Whether there are conditions; asked for each step, so it is worked out once for each state. */
  get filtered() {
    const state = read();
    if (this.known.state !== state) this.known = { state, filtered: format(state, CONDITIONS) !== "" };
    return this.known.filtered;
  }

  /** Everything anew: another time, other conditions, or nobody listened for a while. */
  again() {
    this.tail.stop();
    this.whole.now();
    this.repaint();
  }

  /** @param {AbortSignal} signal @param {number | null} from */
  ask(signal, from) {
    const state = read();
    const window = windowOf(state);
    const bucket = bucketOf(state, window);
    const query = filterQuery(state, ["index"]); // its own rows stay in sight
    query.set("bucket", String(bucket / 1000));
    query.set("from", String(from ?? Math.floor(window.from / bucket) * bucket));
    query.set("to", String(Math.ceil((window.to + 1) / bucket) * bucket));
    const through = this.last; // what comes from now on may be in the answer or not
    return getJSON("/api/heatmap", query, signal).then((answer) => ({ ...answer, through }));
  }

  /** Where the time begins that steps still come to. */
  tailStart() {
    return (Math.floor(Date.now() / this.cells.bucket) - 2) * this.cells.bucket;
  }

  /** @param {{items: Cell[], bucket_ms: number, through: number, exact?: boolean, partial?: boolean}} answer @param {number | null} from */
  show(answer, from) {
    const later = this.cells.later(answer.through);
    if (from === null || answer.bucket_ms !== this.cells.bucket) this.cells = new Cells(answer.bucket_ms);
    else this.cells.cut(0, from);
    for (const cell of answer.items) this.cells.put(cell);
    for (const { step, number } of later) if (step.ts_ms >= (from ?? 0) && matches(read(), step, ["index"])) this.cells.add(step, number);
    this.partial = answer.partial === true;
    this.inexact = answer.exact === false;
    this.refusal = "";
    this.repaint();
    if (from === null && windowOf(read()).live) {
      this.tail.asked = performance.now();
      this.follow(); // a step on its way into the store is in neither the answer nor the stream
    }
  }

  /** @param {import("./data.js").Refusal} refusal */
  refuse(refusal) {
    this.refusal = `${refusal.message} ${refusal.fix}`;
    this.repaint();
  }

  /** A step as it comes: it is on the strip with the next frame. @param {import("./types.js").Step} step @param {number} number of its event */
  take(step, number) {
    this.last = number;
    const state = read();
    const window = windowOf(state);
    if (!window.live || step.ts_ms < window.from || step.ts_ms > Date.now() + 60_000 || !matches(state, step, ["index"])) return;
    const { start, row } = this.cells.add(step, number);
    this.mark(start, row);
    this.follow();
  }

  /** Asks for the end of the time again, unless these are the cells that the server says by itself once a second. */
  follow() {
    if (this.cells.bucket === 10_000 && !this.filtered) return;
    this.tail.every = this.cells.bucket === 10_000 ? 1000 : 5000;
    this.tail.soon();
  }

  /** @param {{cells: Cell[], through?: number}} stats the server's cells, of ten seconds and without conditions */
  replace({ cells, through }) {
    const state = read();
    if (this.cells.bucket !== 10_000 || this.filtered) return;
    const { from, to } = windowOf(state);
    for (const cell of cells) if (cell.ts_ms > from - 10_000 && cell.ts_ms <= to + 60_000) this.mark(cell.ts_ms, this.cells.put(cell, through));
  }

  /** @param {number} start @param {number} row */
  mark(start, row) {
    this.dirty.add(start + row);
    if (row >= this.rows || start >= this.strip.to) this.stale = true;
    onFrame(this.paint);
  }

  repaint() {
    this.stale = true;
    onFrame(this.paint);
  }

  paint = () => {
    if (!this.wide) { // not shown now
      this.stale = true;
      return this.dirty.clear();
    }
    const { strip, cells } = this;
    if (this.stale) this.paintAll();
    else for (const key of this.dirty) strip.paintCell(cells, key - (key % cells.bucket), key % cells.bucket);
    this.stale = false;
    this.dirty.clear();
    if (this.cursor && !this.tip.hidden) this.describe();
  };

  paintAll() {
    const state = read();
    const window = windowOf(state);
    const { strip, cells } = this;
    if (window.live) {
      cells.cut(window.from - 2 * cells.bucket);
      window.from += cells.bucket; // the column that began is the last
      clearTimeout(this.turn);
      this.turn = setTimeout(() => this.repaint(), cells.bucket - (Date.now() % cells.bucket) + 20);
      if (performance.now() - this.whole.asked > WHOLE_AGAIN) this.whole.now();
    }
    this.rows = Math.min(ROWS, Math.max(6, cells.top + 1));
    strip.measure = state.measure;
    strip.chosen = new Set(state.index.map(Number));
    strip.place(window.from, window.to, cells.bucket, this.rows);
    strip.paint(cells);
    this.place(this.marks.slot, state.slot && state.slot[1] > strip.from && state.slot[0] < strip.to ? strip.box(state.slot[0], state.slot[1], state.index.length === 1 ? Number(state.index[0]) : null) : null);
    this.paintWords(state);
  }

  /** @param {import("./state.js").State} state */
  paintWords(state) {
    const scale = SCALES[state.measure];
    const each = { 10_000: "10 s", 60_000: "1 min", 300_000: "5 min", 3_600_000: "1 h", 21_600_000: "6 h" }[this.cells.bucket] ?? `${this.cells.bucket / 1000} s`;
    const said = [`Each column is ${each}, each row a step number.`, this.partial && "Some labels are too many to be counted apart.", this.inexact && "Limits were moved to the nearest edge of the scale.", this.refusal];
    say(this.note, said.filter(Boolean).join(" "));
    this.canvas.setAttribute("aria-label", `Steps over time, ${span(this.strip.from, this.strip.to)}, coloured by ${scale.name}`);
    for (const input of this.measure.querySelectorAll("input")) input.checked = input.value === state.measure;
    const drawn = `${state.measure} ${this.strip.dark.matches}`;
    if (this.legend.dataset.drawn === drawn) return;
    this.legend.dataset.drawn = drawn;
    const colours = this.strip.dark.matches ? scale.dark : scale.light;
    this.legend.replaceChildren(...scale.names.map((name, at) => {
      const swatch = el("i");
      swatch.style.background = colours[at];
      return el("li", {}, swatch, name);
    }), el("li", {}, el("i.none"), scale.unknown));
  }

  /** @param {HTMLElement} mark @param {{x: number, y: number, width: number, height: number} | null} box */
  place(mark, box) {
    mark.hidden = box === null;
    if (!box) return;
    mark.style.transform = `translate(${box.x}px, ${box.y}px)`;
    mark.style.width = `${Math.max(2, box.width)}px`;
    mark.style.height = `${box.height}px`;
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointermove", (event) => {
      if (!this.press) return this.point(this.strip.find(event.offsetX, event.offsetY));
      if (Math.abs(event.offsetX - this.press.x) < 5 && this.anchor === null) return;
      const first = this.strip.find(this.press.x, 0);
      const x = Math.max(this.strip.x(this.strip.from), Math.min(canvas.clientWidth - 1, event.offsetX));
      const last = this.strip.find(x, 0);
      if (!first || !last) return;
      this.anchor = first.column;
      this.point({ column: last.column, row: this.cursor?.row ?? 0 });
    });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !this.strip.find(event.offsetX, event.offsetY)) return;
      this.anchor = null;
      this.press = { x: event.offsetX, id: event.pointerId };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (!this.press) return;
      this.press = null;
      if (this.anchor === null) this.point(this.strip.find(event.offsetX, event.offsetY));
      this.choose();
    });
    canvas.addEventListener("pointercancel", () => { this.press = null; this.leave(); });
    canvas.addEventListener("pointerleave", () => { if (!this.press) this.leave(); });
    canvas.addEventListener("blur", () => this.leave());
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { columns, rows } = this.strip;
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1], PageUp: [-10, 0], PageDown: [10, 0], Home: [-columns, 0], End: [columns, 0] }[event.key];
    if (event.key === "Escape" && this.cursor) return this.leave();
    if ((event.key === "Enter" || event.key === " ") && this.cursor) {
      event.preventDefault();
      return this.choose();
    }
    if (!move || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const at = this.cursor ?? { column: columns, row: 0 };
    if (!event.shiftKey) this.anchor = null;
    else this.anchor ??= Math.min(columns - 1, at.column);
    this.point({ column: Math.max(0, Math.min(columns - 1, at.column + move[0])), row: Math.max(0, Math.min(rows - 1, at.row + move[1])) });
    this.words.textContent = this.tip.innerText.replaceAll("\n", ", ");
  }

  /** @param {{column: number, row: number} | null} at */
  point(at) {
    if (!at) return this.leave();
    this.cursor = at;
    this.tip.hidden = false;
    this.describe();
  }

  leave() {
    this.cursor = this.anchor = null;
    this.tip.hidden = this.marks.cell.hidden = this.marks.range.hidden = true;
  }

  /** @returns {[number, number]} the time under the cursor, or selected */
  time() {
    const { strip } = this;
    const columns = [this.cursor?.column ?? 0, this.anchor ?? this.cursor?.column ?? 0].sort((a, b) => a - b);
    return [strip.from + columns[0] * strip.bucket, strip.from + (columns[1] + 1) * strip.bucket];
  }

  describe() {
    if (!this.cursor) return;
    const { strip, anchor } = this;
    const { row } = this.cursor;
    const [from, to] = this.time();
    const box = strip.box(from, to, anchor === null ? row : null);
    this.place(this.marks.cell, anchor === null ? box : null);
    this.place(this.marks.range, anchor === null ? null : box);
    const wide = anchor !== null && (to - from) / strip.bucket > NARROWEST;
    if (anchor !== null) this.fill([[span(from, to), ""], [wide ? "Zoom to this time" : "Show only this time", ""]]);
    else this.fill(figures(this.cells.read(from, row), row, span(from, to)));
    const room = this.canvas.clientWidth - this.tip.offsetWidth;
    const x = box.x + box.width + 10;
    this.tip.style.left = `${Math.max(0, x > room ? box.x - this.tip.offsetWidth - 10 : x)}px`;
    this.tip.style.top = `${Math.max(0, box.y - 12)}px`;
  }

  /** @param {string[][]} lines the first is the head */
  fill(lines) {
    this.tip.replaceChildren(el("strong", {}, lines[0][0]), ...lines.slice(1).map(([name, value]) => el("div", {}, el("span", {}, name), value && " ", value && el("b", {}, value))));
  }

  /** What a click or Enter does: a cell filters by its time and step number, again takes it off; a time zooms. */
  choose() {
    if (!this.cursor) return;
    const [from, to] = this.time();
    const { slot, index } = read();
    const row = String(this.cursor.row);
    const same = slot !== null && slot[0] === from && slot[1] === to;
    if (this.anchor === null) patch(same && index.length === 1 && index[0] === row ? { slot: null, index: null } : { slot: [from, to], index: [row] });
    else if ((to - from) / this.strip.bucket <= NARROWEST) patch({ slot: [from, to] });
    else patch({ from, to: Math.min(to, Date.now()), slot: null });
    this.anchor = null;
    this.marks.range.hidden = true;
  }
}

/** @param {Cell | null} cell @param {number} row @param {string} when */
function figures(cell, row, when) {
  const head = [`Step ${row === ROWS - 1 ? "16 and above" : row} · ${when}`];
  if (!cell) return [head, ["No steps", ""]];
  return [
    head, ["Steps", count(cell.count)], ["Latency p50", duration(cell.p50_us)], ["Latency p95", duration(cell.p95_us)],
    ["Mean confidence", cell.confidence === null ? "unknown" : `${confidence(cell.confidence)} of ${several(cell.confidence_count, "step")}`],
    ["Invalid", cell.checked ? `${count(cell.invalid)} of ${count(cell.checked)} checked (${percent(cell.invalid_share)})` : "unknown"],
  ];
}

customElements.define("cs-heat", Heat);
