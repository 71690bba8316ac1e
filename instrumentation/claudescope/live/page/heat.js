// The heat strip: time across, step number up, colour by one measure on a stepped scale.
import { confidence, count, duration, percent, time } from "./format.js";
import { el } from "./dom.js";

/** @typedef {{ts_ms: number, step_index: string, count: number, p50_us: number|null, p95_us: number|null, confidence: number|null, confidence_count: number, checked: number, invalid: number, invalid_share: number|null}} Cell */

const RANGE = 15 * 60_000;
const BUCKET = 10_000;
const AXIS = 22;
const GUTTER = 40;
// Stepped, colour-blind safe, and ordered in lightness too. Light page: darker is worse; dark page: brighter is worse.
const BLUES = { light: ["#dbe6f4", "#b5cde9", "#86aeda", "#578cc6", "#316aab", "#1b4a84", "#0d2c57"], dark: ["#1c2c45", "#24406a", "#2d5a95", "#3f7ac0", "#6c9fdc", "#a4c6f0", "#e0eefd"] };
const ORANGES = { light: ["#c6d8ea", "#fbdcb8", "#f7b977", "#ea8c3c", "#c8601a", "#8c3a0b"], dark: ["#2c415c", "#573617", "#8a4f16", "#c4701c", "#ee9c4b", "#ffd9ae"] };
const DIVERGING = { light: ["#a33b07", "#d9712a", "#f2b47e", "#c2d3e8", "#7fa5d3", "#2f66a8"], dark: ["#ffb37a", "#e07d36", "#a3562a", "#37506f", "#4d7db8", "#8fbcf5"] };

const MEASURES = {
  latency: {
    colours: BLUES, edges: [100_000, 250_000, 500_000, 1e6, 2.5e6, 1e7],
    names: ["under 100 ms", "100–250 ms", "250–500 ms", "0.5–1 s", "1–2.5 s", "2.5–10 s", "over 10 s"],
    value: (/** @type {Cell} */ cell) => cell.p95_us,
  },
  confidence: {
    colours: DIVERGING, edges: [0.5, 0.6, 0.7, 0.8, 0.9],
    names: ["under .5", ".5–.6", ".6–.7", ".7–.8", ".8–.9", "over .9"],
    value: (/** @type {Cell} */ cell) => cell.confidence,
  },
  invalid: {
    colours: ORANGES, edges: [1e-9, 0.02, 0.05, 0.15, 0.4],
    names: ["none", "under 2 %", "2–5 %", "5–15 %", "15–40 %", "over 40 %"],
    value: (/** @type {Cell} */ cell) => cell.invalid_share,
  },
};

export class HeatStrip {
  /** @param {HTMLCanvasElement} canvas @param {HTMLElement} tip @param {HTMLElement} legend @param {HTMLElement} text */
  constructor(canvas, tip, legend, text) {
    this.canvas = canvas;
    this.tip = tip;
    this.legend = legend;
    this.text = text;
    /** @type {Map<string, Cell>} */
    this.cells = new Map();
    /** @type {keyof typeof MEASURES} */
    this.measure = "latency";
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    /** @type {{column: number, row: number} | null} */
    this.cursor = null;
    this.rows = 1;
    this.end = 0;
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerleave", () => this.hide());
    canvas.addEventListener("blur", () => this.hide());
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {Cell[]} cells */
  merge(cells) {
    for (const cell of cells) this.cells.set(`${cell.ts_ms}/${row(cell)}`, cell);
    const oldest = Date.now() - RANGE - 2 * BUCKET;
    for (const [key, cell] of this.cells) if (cell.ts_ms < oldest) this.cells.delete(key);
  }

  get columns() { return RANGE / BUCKET; }

  paint() {
    const { canvas } = this;
    this.rows = Math.max(6, ...[...this.cells.values()].map((cell) => row(cell) + 1));
    this.end = Math.floor(Date.now() / BUCKET) * BUCKET + BUCKET;
    const width = canvas.clientWidth;
    this.rowHeight = Math.max(12, Math.min(22, Math.floor(200 / this.rows)));
    const height = this.rows * this.rowHeight + AXIS;
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
    }
    const draw = canvas.getContext("2d");
    if (!draw) return;
    draw.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw.clearRect(0, 0, width, height);
    const style = getComputedStyle(canvas);
    const line = style.getPropertyValue("--line-soft");
    const quiet = style.getPropertyValue("--quiet");
    this.cellWidth = (width - GUTTER) / this.columns;
    const bottom = this.rows * this.rowHeight;
    draw.font = "11.5px system-ui, sans-serif";
    draw.textBaseline = "middle";
    draw.textAlign = "right";
    const every = this.rows > 10 ? 2 : 1;
    for (let index = 0; index < this.rows; index++) {
      const y = bottom - (index + 1) * this.rowHeight;
      draw.fillStyle = line;
      draw.fillRect(GUTTER, y + 1, width - GUTTER, this.rowHeight - 2);
      draw.fillStyle = quiet;
      if (index % every === 0) draw.fillText(index === 16 ? "16+" : String(index), GUTTER - 8, y + this.rowHeight / 2);
    }
    const measure = MEASURES[this.measure];
    const colours = measure.colours[this.dark.matches ? "dark" : "light"];
    for (const cell of this.cells.values()) {
      const column = this.columns - 1 - (this.end - BUCKET - cell.ts_ms) / BUCKET;
      if (column < 0 || column >= this.columns) continue;
      const x = GUTTER + column * this.cellWidth;
      const y = bottom - (row(cell) + 1) * this.rowHeight;
      const value = measure.value(cell);
      if (value === null) {
        draw.strokeStyle = quiet; // known to be unknown: an outline, not a colour
        draw.globalAlpha = 0.5;
        draw.strokeRect(x + 1, y + 1.5, Math.max(1, this.cellWidth - 2), this.rowHeight - 3);
        draw.globalAlpha = 1;
        continue;
      }
      draw.fillStyle = colours[measure.edges.filter((edge) => value >= edge).length];
      draw.fillRect(x + 0.5, y + 1, Math.max(1.5, this.cellWidth - 1), this.rowHeight - 2);
    }
    if (this.cursor) {
      draw.strokeStyle = style.getPropertyValue("--text");
      draw.lineWidth = 1.5;
      draw.strokeRect(GUTTER + this.cursor.column * this.cellWidth, bottom - (this.cursor.row + 1) * this.rowHeight, this.cellWidth, this.rowHeight);
      draw.lineWidth = 1;
    }
    draw.fillStyle = quiet;
    const start = this.end - RANGE;
    const step = width < 700 ? 300_000 : 120_000;
    for (let at = Math.ceil(start / step) * step; at < this.end; at += step) {
      const x = GUTTER + ((at - start) / RANGE) * (width - GUTTER);
      draw.textAlign = x > width - 30 ? "right" : x < GUTTER + 20 ? "left" : "center";
      draw.fillText(time(at).replace(/:\d\d(?=\D*$)/, ""), x, bottom + AXIS / 2 + 2);
    }
    canvas.setAttribute("aria-label", `Heat strip of ${this.cells.size} cells, coloured by ${this.measure}. Arrow keys move through it.`);
  }

  paintLegend() {
    const measure = MEASURES[this.measure];
    const colours = measure.colours[this.dark.matches ? "dark" : "light"];
    this.legend.replaceChildren(...measure.names.map((name, index) => {
      const swatch = el("i");
      swatch.style.background = colours[index];
      return el("span", {}, swatch, name);
    }));
    const swatch = el("i");
    swatch.style.border = "1px solid currentColor";
    this.legend.append(el("span", {}, swatch, this.measure === "latency" ? "unknown (the app read slowly)" : "unknown"));
  }

  /** @param {PointerEvent} event */
  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - GUTTER) / (this.cellWidth ?? 1));
    const up = this.rows - 1 - Math.floor((event.clientY - box.top) / (this.rowHeight ?? 1));
    this.show(column, up);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const move = Reflect.get(moves, event.key);
    if (event.key === "Escape") this.hide();
    if (!move) return;
    event.preventDefault();
    const at = this.cursor ?? { column: this.columns, row: 0 };
    this.show(Math.max(0, Math.min(this.columns - 1, at.column + move[0])), Math.max(0, Math.min(this.rows - 1, at.row + move[1])));
  }

  /** @param {number} column @param {number} up */
  show(column, up) {
    if (column < 0 || column >= this.columns || up < 0 || up >= this.rows) return this.hide();
    this.cursor = { column, row: up };
    const start = this.end - RANGE + column * BUCKET;
    const cell = this.cells.get(`${start}/${up}`);
    const head = `Step ${up === 16 ? "16+" : up} at ${time(start)}`;
    const lines = cell
      ? [head, `${count(cell.count)} ${cell.count === 1 ? "step" : "steps"}`, `latency p50 ${duration(cell.p50_us)}, p95 ${duration(cell.p95_us)}`,
        `confidence ${confidence(cell.confidence)}`, cell.checked ? `invalid ${cell.invalid} of ${cell.checked} checked (${percent(cell.invalid_share)})` : "validity unknown"]
      : [head, "no steps"];
    this.tip.textContent = lines.join("\n");
    this.text.textContent = lines.join(", ");
    this.tip.hidden = false;
    const x = 18 + GUTTER + column * (this.cellWidth ?? 0) + 12;
    const room = this.canvas.clientWidth - this.tip.offsetWidth - 8;
    this.tip.style.left = `${x > room ? x - this.tip.offsetWidth - 26 : x}px`;
    this.tip.style.top = `${Math.max(0, (this.rows - up) * (this.rowHeight ?? 0) - 20)}px`;
    this.paint();
  }

  hide() {
    if (!this.cursor) return;
    this.cursor = null;
    this.tip.hidden = true;
    this.paint();
  }
}

/** @param {Cell} cell */
function row(cell) {
  return Number.parseInt(cell.step_index, 10);
}
