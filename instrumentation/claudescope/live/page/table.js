// The rows of the runs table. Rows are kept and changed in place; none moves under the pointer or the focus.
import { el, icon, say } from "./dom.js";
import { confidence, cost, count, duration, full, several, time } from "./format.js";

/** @typedef {import("./types.js").Run} Run */
/** @typedef {import("./state.js").State["sort"]} Sort */

const STATUS = { ok: "finished", failed: "failed", running: "running" };
/** @type {[Sort | null, string, string, string][]} sort, name, class, title */
const COLUMNS = [
  [null, "Run", "", ""], ["started", "Started", "", ""], ["steps", "Steps", "number", "Reasoning steps of all calls"],
  ["duration", "Duration", "number", "From the first span to the last"], ["worst", "Worst step", "", "Invalid, else least sure, else slowest"],
  ["tokens", "Tokens", "number", "In and out"], ["cost", "Cost", "number", "By the price table of this server"],
];

/** What says its name on a card. */
const NAMED = new Set(["Steps", "Tokens", "Cost"]);

export class RunsTable {
  /** @type {Map<string, HTMLElement>} */
  rows = new Map();
  /** What each row shows, to leave it alone when it shows that. @type {WeakMap<HTMLElement, Run>} */
  drawn = new WeakMap();
  /** Date of the price table. @type {string | null} */
  prices = null;
  /** Rows that wait until the pointer is gone. */
  held = 0;
  onheld = () => {};
  settled = false;
  /** @type {Sort} */
  sorted = "started";
  /** @type {"asc" | "desc"} */
  order = "desc";
  selected = "";
  /** @type {Run[]} */
  wanted = [];

  /** @param {(id: string) => void} choose @param {(sort: Sort, order: "asc" | "desc") => void} sort */
  constructor(choose, sort) {
    this.choose = choose;
    this.body = el("tbody", { id: "runs", role: "rowgroup" });
    this.heads = COLUMNS.map(([key, name, kind, title]) => el(`th${kind && `.${kind}`}`, { scope: "col", role: "columnheader", title },
      key === null ? name : el("button", { type: "button", onclick: () => sort(key, this.sorted === key && this.order === "desc" ? "asc" : "desc") }, name, icon("down"))));
    this.element = el("div.scroll", {}, el("table", { role: "table" }, el("caption.hidden", {}, "Runs"), el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...this.heads)), this.body));
    this.element.addEventListener("pointerleave", () => this.release());
    this.element.addEventListener("focusout", (event) => { if (!this.element.contains(/** @type {Node | null} */ (event.relatedTarget))) this.release(); });
  }

  /** @param {string | null} date of the price table */
  datePrices(date) {
    this.prices = date;
    this.drawn = new WeakMap(); // each row's tooltip says it
  }

  /** Another question: the next rows come as they are. */
  reset() {
    this.settled = false;
  }

  /** @param {Run[]} runs in their order @param {Sort} sort @param {"asc" | "desc"} order @param {string} selected */
  show(runs, sort, order, selected) {
    this.sorted = sort;
    this.order = order;
    this.selected = selected;
    this.wanted = runs;
    this.heads.forEach((head, at) => {
      const key = COLUMNS[at][0];
      if (key === null) return;
      head.setAttribute("aria-sort", key !== sort ? "none" : order === "asc" ? "ascending" : "descending");
    });
    const still = this.settled && (this.body.matches(":hover") || this.body.contains(document.activeElement));
    this.place(still);
  }

  /** Lets in what was held. */
  release() {
    if (this.held === 0) return;
    this.place(false);
    this.onheld();
  }

  /** @param {boolean} still no row moves, comes or goes */
  place(still) {
    this.held = 0;
    const ids = new Set(this.wanted.map((run) => run.run_id));
    for (const [id, row] of this.rows) {
      if (ids.has(id) || still) continue;
      row.remove();
      this.rows.delete(id);
    }
    let at = 0;
    for (const run of this.wanted) {
      let row = this.rows.get(run.run_id);
      if (!row) {
        if (still) {
          this.held++;
          continue;
        }
        row = el(this.settled ? "tr.new" : "tr", { role: "row", "data-run": run.run_id });
        row.addEventListener("click", () => this.choose(run.run_id));
        this.rows.set(run.run_id, row);
      }
      this.fill(row, run);
      if (!still && this.body.children[at] !== row) this.body.insertBefore(row, this.body.children[at] ?? null);
      at++;
    }
    if (this.wanted.length) this.settled = true;
  }

  /** @param {string} id @returns {HTMLElement | null} */
  button(id) {
    return this.rows.get(id)?.querySelector("button") ?? null;
  }

  /** @param {HTMLElement} row @param {Run} run */
  fill(row, run) {
    row.setAttribute("aria-selected", String(run.run_id === this.selected));
    if (this.drawn.get(row) === run) return;
    this.drawn.set(row, run);
    const cells = [this.name(run), started(run), number(count(run.steps), `${several(run.steps, "step")} in ${several(run.calls, "call")}`),
      number(duration(run.duration_ms * 1000)), el("td", {}, worst(run)), tokens(run), this.price(run)];
    cells.forEach((cell, at) => {
      cell.setAttribute("role", "cell"); // said, since narrow screens lay the table out as cards
      if (NAMED.has(COLUMNS[at][1])) cell.setAttribute("data-name", COLUMNS[at][1]);
    });
    if (!row.firstChild) return row.append(...cells);
    cells.forEach((cell, at) => {
      const old = row.children[at];
      if (old.isEqualNode(cell)) return;
      if (!old.contains(document.activeElement)) return old.replaceWith(cell);
      old.replaceWith(cell); // the focus stays on the run
      cell.querySelector("button")?.focus({ preventScroll: true });
    });
  }

  /** @param {Run} run */
  name(run) {
    const labels = Object.entries(run.labels ?? {}).slice(0, 3);
    return el("td", {}, el("div.run-name", {},
      el("span.state", { "data-status": run.status, role: "img", "aria-label": STATUS[run.status], title: STATUS[run.status] }),
      el("div", {}, el("button.cut", { type: "button", title: `Run ${run.run_id}` }, run.name || run.service),
        el("div.sub.cut", {}, el("code", {}, run.run_id.slice(0, 12)), run.name ? ` · ${run.service}` : null, run.model ? ` · ${run.model}` : null, ...labels.map(([key, value]) => el("span.tag", {}, `${key}: ${value}`))))));
  }

  /** @param {Run} run */
  price(run) {
    const unpriced = run.unpriced_calls ?? 0;
    const usd = run.cost_usd ?? null;
    const table = this.prices ? `Prices of ${this.prices}.` : "";
    if (usd === null) return number("unknown", `${unpriced ? `No price is known for the model of ${several(unpriced, "call")}.` : "No call says its tokens."} ${table}`, ".unknown");
    return number(cost(usd, unpriced), `${unpriced ? `At least: no price is known for the model of ${several(unpriced, "call")}. ` : ""}${table}`);
  }
}

/** @param {string} text @param {string} [title] @param {string} [more] classes */
function number(text, title, more = "") {
  const cell = el(`td.number.nowrap${more}`, { title });
  say(cell, text);
  return cell;
}

/** @param {Run} run */
const started = (run) => el("td.nowrap", {}, el("time", { dateTime: new Date(run.started_ms).toISOString(), title: full(run.started_ms) }, time(run.started_ms)));

/** @param {Run} run */
function tokens(run) {
  if (run.input_tokens === null || run.output_tokens === null) return number("unknown", "No call says its tokens.", ".unknown");
  return number(count(run.input_tokens + run.output_tokens), `${count(run.input_tokens)} in, ${count(run.output_tokens)} out`);
}

/** @param {Run} run */
function worst(run) {
  if (!run.worst) return el("span.unknown", {}, "no steps");
  const where = el("span.quiet", {}, `step ${run.worst.step_index}`);
  if (run.invalid) return el("span.worst", {}, el("span.tag.bad", {}, icon("cross"), `${count(run.invalid)} invalid`), where);
  if (run.min_confidence === null) return el("span.worst", {}, el("span.tag", {}, run.max_latency_us ? duration(run.max_latency_us) : "slowest"), where);
  const low = run.min_confidence < 0.7;
  return el("span.worst", { title: "Lowest confidence" }, el(low ? "span.tag.bad" : "span.tag", {}, low && icon("down"), confidence(run.min_confidence)), where);
}
