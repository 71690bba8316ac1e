// The heat strip's canvas: time across, step number up. Paints all of it, or only the cells that changed.
import { tick } from "./format.js";
import { SCALES, stepOf } from "./scale.js";

/** @typedef {import("./cells.js").Cells} Cells */

const AXIS = 20;
const GUTTER = 34;
const TICKS = [10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 43_200_000, 86_400_000, 172_800_000, 432_000_000];

export class Strip {
  from = 0;
  to = 1;
  bucket = 10_000;
  rows = 6;
  rowHeight = 16;
  columnWidth = 1;
  /** @type {keyof typeof SCALES} */
  measure = "latency";
  /** Rows that are filtered by, if any: the others stay, but faint. @type {Set<number>} */
  chosen = new Set();
  dark = matchMedia("(prefers-color-scheme: dark)");
  /** @type {{line: string, quiet: string, unknown: string, card: string}} */
  colours = { line: "", quiet: "", unknown: "", card: "" };

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.draw = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
  }

  get columns() { return Math.max(1, Math.round((this.to - this.from) / this.bucket)); }
  get bottom() { return this.rows * this.rowHeight; }

  /** Where things are: whole buckets from `from` to `to`. @param {number} from @param {number} to @param {number} bucket @param {number} rows */
  place(from, to, bucket, rows) {
    this.bucket = bucket;
    this.from = Math.floor(from / bucket) * bucket;
    this.to = Math.max(this.from + bucket, Math.ceil(to / bucket) * bucket);
    this.rows = rows;
    const { canvas } = this;
    const width = canvas.clientWidth;
    this.rowHeight = Math.max(12, Math.min(20, Math.floor(216 / rows)));
    this.columnWidth = (width - GUTTER) / this.columns;
    const height = this.bottom + AXIS;
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
    }
    this.draw.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  /** @param {Cells} cells */
  paint(cells) {
    const { canvas, draw } = this;
    const style = getComputedStyle(canvas);
    const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    this.colours = { line: colour("--line-soft"), quiet: colour("--quiet"), unknown: colour("--bar-wait"), card: colour("--card") };
    const width = canvas.clientWidth;
    draw.fillStyle = this.colours.card;
    draw.fillRect(0, 0, width, this.bottom + AXIS);
    draw.font = `11px ${style.fontFamily}`;
    draw.textBaseline = "middle";
    draw.textAlign = "right";
    const every = this.rows > 9 ? 2 : 1;
    for (let row = 0; row < this.rows; row++) {
      const y = this.bottom - (row + 1) * this.rowHeight;
      draw.fillStyle = this.colours.line;
      draw.fillRect(GUTTER, y + 1, width - GUTTER, this.rowHeight - 1);
      draw.fillStyle = this.colours.quiet;
      if (row % every === 0) draw.fillText(row === 16 ? "16+" : String(row), GUTTER - 7, y + this.rowHeight / 2 + 1);
    }
    for (const [start, column] of cells.columns) {
      if (start < this.from || start >= this.to) continue;
      for (let row = 0; row < this.rows; row++) if (column[row]) this.paintCell(cells, start, row);
    }
    this.paintAxis(width);
  }

  /** One cell again. @param {Cells} cells @param {number} start @param {number} row */
  paintCell(cells, start, row) {
    const cell = cells.read(start, row);
    if (!cell || start < this.from || start >= this.to) return;
    const { draw } = this;
    const { x, y, width, height } = this.box(start, start + this.bucket, row);
    const scale = SCALES[this.measure];
    const value = scale.value(cell);
    const gap = width > 5 ? 1 : width > 2.5 ? 0.5 : 0;
    const faint = this.chosen.size > 0 && !this.chosen.has(row);
    if (faint) {
      draw.fillStyle = this.colours.line;
      draw.fillRect(x, y, width, height);
      draw.globalAlpha = 0.3;
    }
    draw.fillStyle = value === null ? this.colours.unknown : scale[this.dark.matches ? "dark" : "light"][stepOf(scale.edges, value)];
    draw.fillRect(x, y, Math.max(1, width - gap), height);
    if (value === null && width > 5) { // known to be unknown: hollow, not a colour
      draw.fillStyle = this.colours.line;
      draw.fillRect(x + 1, y + 1, width - gap - 2, height - 2);
    }
    draw.globalAlpha = 1;
  }

  /** @param {number} width */
  paintAxis(width) {
    const { draw } = this;
    const room = (width - GUTTER) / 72;
    const step = TICKS.find((each) => (this.to - this.from) / each <= room) ?? TICKS[TICKS.length - 1];
    const zone = new Date(this.from).getTimezoneOffset() * 60_000; // ticks at whole hours and days of the reader's clock
    draw.fillStyle = this.colours.quiet;
    draw.textAlign = "center";
    for (let at = Math.ceil((this.from - zone) / step) * step + zone; at < this.to; at += step) {
      const x = this.x(at);
      const words = tick(at, step);
      const half = draw.measureText(words).width / 2;
      if (x - half >= 0 && x + half <= width) draw.fillText(words, x, this.bottom + AXIS / 2 + 2);
    }
  }

  /** @param {number} at ms */
  x(at) { return GUTTER + ((at - this.from) / this.bucket) * this.columnWidth; }

  /** The place of a time span and of a row, or of all rows. @param {number} from @param {number} to @param {number | null} row */
  box(from, to, row) {
    const x = this.x(Math.max(from, this.from));
    return {
      x, width: Math.max(0, this.x(Math.min(to, this.to)) - x),
      y: row === null ? 0 : this.bottom - (row + 1) * this.rowHeight + 1,
      height: row === null ? this.bottom : this.rowHeight - 1,
    };
  }

  /** What is at a point of the canvas; null outside of the cells. @param {number} x @param {number} y @returns {{column: number, row: number} | null} */
  find(x, y) {
    const column = Math.floor((x - GUTTER) / this.columnWidth);
    const row = this.rows - 1 - Math.floor(y / this.rowHeight);
    return column >= 0 && column < this.columns && row >= 0 && row < this.rows ? { column, row } : null;
  }
}
