// <cs-runs>: the table of runs, with search, status, order and paging.
import { getJSON, Question } from "./data.js";
import { el, icon, onFrame, say, unique } from "./dom.js";
import { several } from "./format.js";
import { on } from "./live.js";
import { RunsTable } from "./table.js";
import { differs, FILTER, isFiltered, patch, read, stepQuery, subscribe, TIME, timeOf } from "./state.js";

/** @typedef {import("./types.js").Run} Run */

const PAGE = 50;
const RUNNING_MS = 30_000;
const SHOWN = [...TIME, ...FILTER, "q", "status", "sort", "order"];

class Runs extends HTMLElement {
  /** Cursors of the pages before this one; empty: the first page. @type {(string | null)[]} */
  earlier = [];
  /** @type {string | null} */
  cursor = null;
  /** @type {string | null} */
  next = null;
  /** @type {Map<string, Run>} */
  runs = new Map();
  /** Any run at all, whatever is filtered. */
  some = false;
  loaded = false;
  refusal = "";

  note = el("p.quiet", { role: "status" });
  search = /** @type {HTMLInputElement} */ (el("input.field", { type: "search", id: "search", placeholder: "Trace id, KEY:VALUE or text", "aria-label": "Search runs by trace id, label or text", maxLength: 512, spellcheck: false }));
  status = /** @type {HTMLSelectElement} */ (el("select.field", { "aria-label": "Status" },
    ...[["", "Any status"], ["ok", "Finished"], ["failed", "Failed"], ["running", "Running"]].map(([value, words]) => el("option", { value }, words))));
  table = new RunsTable((id) => patch({ run: id, step: null }), (sort, order) => patch({ sort, order }));
  fresh = el("button.button.main.fresh", { type: "button", hidden: true, onclick: () => this.table.release() });
  nothing = el("p.quiet.nothing", { hidden: true });
  newer = /** @type {HTMLButtonElement} */ (el("button.button", { type: "button", onclick: () => this.turn(-1) }, icon("left"), "Newer"));
  older = /** @type {HTMLButtonElement} */ (el("button.button", { type: "button", onclick: () => this.turn(1) }, "Older", icon("right")));
  pages = el("nav.pages", { "aria-label": "Pages of runs" }, this.newer, this.older);
  question = new Question((signal) => this.ask(signal), (answer) => this.show(answer), (refusal) => {
    this.refusal = `${refusal.message} ${refusal.fix}`;
    onFrame(this.paint);
  });

  connectedCallback() {
    const title = unique("runs");
    this.append(el("section.card", { "aria-labelledby": title },
      el("div.head", {}, el("div.grow", {}, el("h2", { id: title, tabIndex: -1 }, "Runs"), this.note),
        el("div.search", {}, icon("search"), this.search), this.status),
      el("div.runs", {}, this.fresh, this.table.element), this.nothing, this.pages));
    this.table.onheld = () => onFrame(this.paint);
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let typing;
    this.search.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => patch({ q: this.search.value.trim() }, { replace: true }), 250);
    });
    this.status.addEventListener("change", () => patch({ status: /** @type {any} */ (this.status.value) }));
    subscribe((state, before) => {
      if (differs(state, before, SHOWN)) this.again();
      onFrame(this.paint);
    });
    on("open", () => this.question.now());
    on("lag", () => this.question.now());
    on("run", (run) => this.take(run));
    on("stats", () => this.settle());
    this.again();
    getJSON("/api/status").then((status) => {
      this.table.datePrices(status.prices_date ?? null);
      onFrame(this.paint);
    }, () => {}); // the tooltips then say no date
  }

  /** Whether the rows are known without asking: the latest runs, of all. */
  get plain() {
    const state = read();
    return state.sort === "started" && state.order === "desc" && !state.q && !state.status && !isFiltered(state) && state.slot === null && this.earlier.length === 0;
  }

  again() {
    this.earlier = [];
    this.cursor = null;
    this.table.reset();
    this.question.now();
  }

  /** @param {number} way */
  turn(way) {
    if (way > 0 && this.next) {
      this.earlier.push(this.cursor);
      this.cursor = this.next;
    } else if (way < 0 && this.earlier.length) this.cursor = this.earlier.pop() ?? null;
    this.table.reset();
    this.question.now();
    this.table.element.scrollIntoView({ block: "nearest" });
  }

  /** @param {AbortSignal} signal */
  ask(signal) {
    const state = read();
    const query = stepQuery(state);
    if (state.slot) { // a picked time asks for the steps that ended then, whenever their runs began
      for (const end of ["from", "to"]) {
        query.set(`steps_${end}`, query.get(end) ?? "");
        query.delete(end);
      }
    }
    for (const name of /** @type {const} */ (["q", "status"])) if (state[name]) query.set(name, state[name]);
    query.set("sort", state.sort);
    query.set("order", state.order);
    query.set("limit", String(PAGE));
    if (this.cursor) query.set("cursor", this.cursor);
    return getJSON("/api/runs", query, signal);
  }

  /** @param {{items: Run[], next: string | null}} answer */
  show(answer) {
    this.runs = new Map(answer.items.map((run) => [run.run_id, run]));
    this.next = answer.next;
    this.refusal = "";
    this.loaded = true;
    if (answer.items.length) this.some = true;
    onFrame(this.paint);
  }

  /** A run that began or went on. @param {Run} run */
  take(run) {
    this.some = true;
    if (this.plain) {
      const { from, to } = timeOf(read());
      if (this.runs.has(run.run_id) || (run.started_ms >= from && run.started_ms < (to ?? Infinity))) this.runs.set(run.run_id, run);
    } else {
      if (this.runs.has(run.run_id)) this.runs.set(run.run_id, run);
      if (!this.earlier.length) this.question.soon();
    }
    onFrame(this.paint);
  }

  /** A run that says nothing for a while is no longer running, though nothing comes to say so. */
  settle() {
    const now = Date.now();
    let changed = false;
    for (const [id, run] of this.runs) {
      if (run.status !== "running" || now - run.seen_ms < RUNNING_MS) continue;
      this.runs.set(id, { ...run, status: "ok" });
      changed = true;
    }
    if (changed) onFrame(this.paint);
  }

  paint = () => {
    if (this.hidden) return;
    const state = read();
    let shown = [...this.runs.values()];
    if (this.plain) {
      shown.sort((a, b) => b.started_ms - a.started_ms);
      for (const run of shown.splice(PAGE)) this.runs.delete(run.run_id);
    }
    this.table.show(shown, state.sort, state.order, state.run);
    if (document.activeElement !== this.search) this.search.value = state.q;
    this.status.value = state.status;
    const held = this.table.held;
    this.fresh.hidden = held === 0;
    say(this.fresh, `${several(held, "new run")}`);
    const from = this.earlier.length * PAGE;
    const more = this.next !== null || (this.plain && shown.length === PAGE);
    say(this.note, this.refusal || (shown.length ? `${from ? `${from + 1} – ${from + shown.length}` : more ? `The ${order(state)} ${shown.length}` : several(shown.length, "run")}` : ""));
    this.nothing.hidden = shown.length > 0 || !this.loaded;
    say(this.nothing, "No run has such steps in this time. Take a filter off, or widen the time.");
    this.pages.hidden = !this.earlier.length && !this.next;
    this.newer.disabled = !this.earlier.length;
    this.older.disabled = !this.next;
  };

  /** Gives the focus to a run's row, else to the heading. @param {string} id */
  focusRun(id) {
    (this.table.button(id) ?? this.querySelector("h2"))?.focus();
  }
}

/** @param {import("./state.js").State} state */
function order(state) {
  const words = { started: ["latest", "earliest"], steps: ["longest", "shortest"], duration: ["slowest", "fastest"], tokens: ["largest", "smallest"], cost: ["most costly", "least costly"], worst: ["worst", "best"] };
  return words[state.sort][state.order === "desc" ? 0 : 1];
}

customElements.define("cs-runs", Runs);
