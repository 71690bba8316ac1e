// The heat strip's figures by time and step number: the server's cells, and on top of each the steps that came since.
import { LATENCY_EDGES } from "./scale.js";

/** @typedef {import("./types.js").Cell} Cell */
/** @typedef {import("./types.js").Step} Step */

export const ROWS = 17;
const FACTOR = 1.1;

/** Upper edges of the latency bands in µs, as the server's: 10 % apart, and at each boundary of a filter. */
const BANDS = (() => {
  const edges = [...LATENCY_EDGES];
  for (let at = 1; at < 1e12; at *= FACTOR) edges.push(at);
  return Float64Array.from(new Set(edges)).sort();
})();

/** @param {number} us */
function bandOf(us) {
  let low = 0;
  let high = BANDS.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (BANDS[middle] < us) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A step and the number of its event. @typedef {{step: Step, number: number}} Late */

/** One cell: what the server said, and the steps that came after that. */
class LiveCell {
  /** @type {Cell | null} */
  base = null;
  /** @type {Map<number, number>} */
  bands = new Map();
  count = 0;
  sureSum = 0;
  sure = 0;
  checked = 0;
  invalid = 0;
  /** @type {Cell | null} */
  figures = null;
  /** @type {Late[]} the steps on top of the base, for the server's next figures may not count the last of them */
  late = [];

  /** @param {Cell | null} base @param {number} through number of the last event that it counts */
  reset(base, through) {
    const late = this.late.filter(({ number }) => number > through);
    this.base = this.figures = base;
    this.bands.clear();
    this.count = this.sureSum = this.sure = this.checked = this.invalid = 0;
    this.late = [];
    for (const { step, number } of late) this.add(step, number);
  }

  /** @param {Step} step @param {number} number */
  add(step, number) {
    this.late.push({ step, number });
    this.figures = null;
    this.count++;
    // a consumer-bound latency is only an upper bound, and a batch's result has no time at all
    if (step.latency_source !== "consumer" && (step.latency_source !== null || step.latency_us)) {
      const band = bandOf(step.latency_us);
      this.bands.set(band, (this.bands.get(band) ?? 0) + 1);
    }
    if (step.confidence !== null) {
      this.sure++;
      this.sureSum += step.confidence;
    }
    if (step.is_valid !== null) {
      this.checked++;
      if (!step.is_valid) this.invalid++;
    }
  }

  /** @param {number} ts_ms @param {number} row @returns {Cell} */
  read(ts_ms, row) {
    if (this.figures) return this.figures;
    const { base } = this;
    const sure = (base?.confidence_count ?? 0) + this.sure;
    const checked = (base?.checked ?? 0) + this.checked;
    const invalid = (base?.invalid ?? 0) + this.invalid;
    const [p50_us, p95_us] = this.quantiles();
    return this.figures = {
      ts_ms, step_index: row === ROWS - 1 ? "16+" : String(row), count: (base?.count ?? 0) + this.count, p50_us, p95_us,
      confidence: sure ? ((base?.confidence ?? 0) * (base?.confidence_count ?? 0) + this.sureSum) / sure : null,
      confidence_count: sure, checked, invalid, invalid_share: checked ? invalid / checked : null,
    };
  }

  /** p50 and p95. Of the server's steps only these two are known, which place the rest well enough until it says more. */
  quantiles() {
    /** @type {[number, number][]} value, weight */
    const points = [];
    for (const [band, weight] of this.bands) points.push([((band ? BANDS[band - 1] : 0) + BANDS[band]) / 2, weight]);
    const { base } = this;
    if (base && base.p50_us !== null && base.p95_us !== null) {
      const half = Math.ceil(base.count / 2);
      const most = Math.max(half, Math.ceil(base.count * 0.95) - 1);
      points.push([base.p50_us, half], [Math.sqrt(base.p50_us * base.p95_us), most - half], [base.p95_us, base.count - most]);
    }
    points.sort((a, b) => a[0] - b[0]);
    const total = points.reduce((sum, point) => sum + point[1], 0);
    return [0.5, 0.95].map((share) => {
      let rank = Math.max(1, Math.ceil(total * share));
      for (const [value, weight] of points) {
        rank -= weight;
        if (rank <= 0) return Math.round(value);
      }
      return null;
    });
  }
}

/** All cells of one width in time. */
export class Cells {
  /** @param {number} bucket ms */
  constructor(bucket) {
    this.bucket = bucket;
    /** @type {Map<number, (LiveCell | undefined)[]>} */
    this.columns = new Map();
  }

  /** The server's figures of a cell take the place of ours, but for steps that it does not count yet. @param {Cell} cell @param {number} [through] number of the last event that it counts @returns {number} its row */
  put(cell, through = Infinity) {
    const row = Math.min(ROWS - 1, Number.parseInt(cell.step_index, 10));
    this.at(cell.ts_ms, row).reset(cell, through);
    return row;
  }

  /** One step on top. @param {Step} step @param {number} number of its event @returns {{start: number, row: number}} where it is */
  add(step, number) {
    const start = step.ts_ms - (step.ts_ms % this.bucket);
    const row = Math.min(ROWS - 1, step.step_index);
    this.at(start, row).add(step, number);
    return { start, row };
  }

  /** The steps on top whose events came later. @param {number} through @returns {Late[]} */
  later(through) {
    const found = [];
    for (const column of this.columns.values()) for (const cell of column) if (cell) for (const one of cell.late) if (one.number > through) found.push(one);
    return found;
  }

  /** @param {number} start @param {number} row */
  at(start, row) {
    let column = this.columns.get(start);
    if (!column) this.columns.set(start, column = new Array(ROWS));
    return column[row] ??= new LiveCell();
  }

  /** A cell's figures, or null where there is no step. @param {number} start @param {number} row @returns {Cell | null} */
  read(start, row) {
    return this.columns.get(start)?.[row]?.read(start, row) ?? null;
  }

  /** Forgets what begins before, and from a time on. @param {number} before @param {number} [from] */
  cut(before, from = Infinity) {
    for (const start of this.columns.keys()) if (start < before || start >= from) this.columns.delete(start);
  }

  /** The highest row with a step, at least 0. */
  get top() {
    let top = 0;
    for (const column of this.columns.values()) top = Math.max(top, column.length && column.findLastIndex(Boolean));
    return top;
  }
}
