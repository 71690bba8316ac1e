// The table of runs: the latest started first, rows kept and changed in place.
import { el } from "./dom.js";
import { count, confidence, duration, full, time } from "./format.js";

/** @typedef {{run_id: string, trace_id: string, service: string, model: string|null, started_ms: number, ended_ms: number, duration_ms: number, seen_ms: number, steps: number, calls: number, invalid: number, min_confidence: number|null, worst: {step_index: number, span_id: string}|null, input_tokens: number|null, output_tokens: number|null, status: "running"|"ok"|"failed"}} Run */

const MAX_ROWS = 100;

export class RunsTable {
  /** @param {HTMLElement} body @param {(id: string) => void} choose */
  constructor(body, choose) {
    this.body = body;
    this.choose = choose;
    /** @type {Map<string, Run>} */
    this.runs = new Map();
    /** @type {Map<string, HTMLElement>} */
    this.rows = new Map();
    /** @type {Set<string>} */
    this.dirty = new Set();
    this.selected = "";
  }

  /** @param {Run} run */
  put(run) {
    this.runs.set(run.run_id, run);
    this.dirty.add(run.run_id);
    if (this.runs.size > 3 * MAX_ROWS) this.trim();
  }

  trim() {
    const kept = [...this.runs.values()].sort((a, b) => b.started_ms - a.started_ms).slice(0, MAX_ROWS);
    const ids = new Set(kept.map((run) => run.run_id));
    for (const id of this.runs.keys()) {
      if (ids.has(id) || id === this.selected) continue;
      this.runs.delete(id);
      this.dirty.delete(id);
      this.rows.get(id)?.remove();
      this.rows.delete(id);
    }
  }

  /** @param {string} id */
  select(id) {
    for (const old of [this.selected, id]) if (this.runs.has(old)) this.dirty.add(old);
    this.selected = id;
  }

  /** A run that says nothing for 30 s is no longer running, though nothing comes to say so. */
  settle() {
    const now = Date.now();
    for (const run of this.runs.values()) {
      if (run.status === "running" && now - run.seen_ms > 30_000) this.put({ ...run, status: "ok" });
    }
  }

  paint() {
    if (!this.dirty.size) return;
    this.trim();
    const first = this.rows.size === 0;
    for (const id of this.dirty) {
      const run = this.runs.get(id);
      if (!run) continue;
      const row = this.row(run);
      const old = this.rows.get(id);
      if (old) {
        const focused = old.contains(document.activeElement);
        old.replaceChildren(...row.childNodes);
        old.setAttribute("aria-selected", String(id === this.selected));
        if (focused) old.querySelector("button")?.focus({ preventScroll: true });
        continue;
      }
      if (!first) row.classList.add("new");
      this.rows.set(id, row);
      let before = null;
      for (const sibling of this.body.children) {
        if (Number(sibling.getAttribute("data-started")) <= run.started_ms) { before = sibling; break; }
      }
      this.body.insertBefore(row, before);
    }
    this.dirty.clear();
  }

  /** @param {Run} run */
  row(run) {
    const button = el("button", { type: "button", title: `Run ${run.run_id}` }, run.service);
    const row = el("tr", { "data-started": run.started_ms, "aria-selected": String(run.run_id === this.selected) },
      el("td", {}, el("div.run-name", {},
        el("span.state", { "data-status": run.status, role: "img", "aria-label": run.status, title: run.status }),
        el("div", {}, button, el("small", {}, run.run_id.slice(0, 12))))),
      el("td.nowrap", { title: full(run.started_ms) }, time(run.started_ms)),
      el("td.number", { title: `${run.steps} steps in ${run.calls} calls` }, count(run.steps)),
      el("td.number.nowrap", {}, duration(run.duration_ms * 1000)),
      tokens(run),
      el("td", {}, worst(run)));
    row.addEventListener("click", () => this.choose(run.run_id));
    return row;
  }
}

/** @param {Run} run */
function tokens(run) {
  if (run.input_tokens === null || run.output_tokens === null) return el("td.number.unknown", {}, "unknown");
  return el("td.number", { title: `${count(run.input_tokens)} in, ${count(run.output_tokens)} out` }, count(run.input_tokens + run.output_tokens));
}

/** @param {Run} run */
function worst(run) {
  if (!run.worst) return el("span.unknown", {}, "no steps");
  const where = `step ${run.worst.step_index}`;
  if (run.invalid) return el("span.tag.bad", {}, `✕ ${run.invalid} invalid`, el("span", {}, `· ${where}`));
  if (run.min_confidence === null) return el("span.tag", {}, `slowest · ${where}`);
  const low = run.min_confidence < 0.7;
  return el(low ? "span.tag.bad" : "span.tag", { title: "Lowest confidence" }, `${low ? "▾ " : ""}${confidence(run.min_confidence)}`, el("span", {}, `· ${where}`));
}
