// A run: what it adds up to, its waterfall, and the detail of what is chosen. Grows while the run goes on.
import { Question, getJSON } from "./data.js";
import { DetailPanel, jaegerLink } from "./detail.js";
import { el, icon, onFrame, say } from "./dom.js";
import { compact, confidence, cost, count, duration, full, several, time } from "./format.js";
import { on } from "./live.js";
import { FILTER, differs, isFiltered, link, matches, patch, read, subscribe } from "./state.js";
import { buildTree, endedEarly } from "./tree.js";
import { Waterfall } from "./waterfall.js";

/** @typedef {import("./tree.js").Detail} Detail */

const LEGEND = [["measured", "measured"], ["apportioned", "apportioned"], ["consumer", "slow reader"], ["run-tool", "tool"]];

const KEYS = [["↑ ↓", "rows"], ["← →", "fold"], ["Enter", "detail"], ["Esc", "close"], ["n p", "invalid or failed"], ["+ − 0", "closer, wider, whole"]];
const GROWS = 1000; // steps up to which a run grows with each of them; a larger one with each answer
const LATE = 500; // ms from a step's event until an answer surely has it
const SETTLED = 31_000; // ms after which a run without an end no longer counts as running

class RunView extends HTMLElement {
  run = "";
  refused = "";
  painted = "";
  begun = 0;
  fresh = false;
  /** @type {Detail | null} */
  detail = null;
  /** @type {{step: import("./types.js").Step, at: number}[]} steps that the answer may not have yet */
  came = [];
  tree = buildTree({ run: /** @type {any} */ ({ run_id: "" }), steps: [], calls: [], traces: [], spans: [], events: [], truncated: false });
  /** @type {string | null} */
  jaeger = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  settled = undefined;
  /** @type {(() => void)[]} */
  ends = [];
  paint = () => this.repaint();
  question = new Question((signal) => this.ask(signal), (answer) => this.take(answer), (refusal) => this.refuse(refusal));
  waterfall = new Waterfall({
    select: (id, moved) => patch({ step: id }, { replace: moved || read().step !== "" }),
    open: () => this.panel.title.focus(), close: () => this.close(), zoom: () => onFrame(this.paint),
  });
  panel = new DetailPanel({ close: () => this.close(), jump: (id) => patch({ step: id }, { replace: true }), link: (id) => link({ step: id }), visit: (run, step) => patch({ run, step }) });
  heading = el("h2", { tabIndex: -1 });
  status = el("span.tag");
  name = el("code.cut.faint");
  labels = el("span.run-labels");
  away = el("a.button", { target: "_blank", rel: "noreferrer", hidden: true }, "Open in Jaeger");
  facts = el("dl.facts");
  word = el("span", { role: "status" });
  faults = el("span.fault-steps", {}, arrow("up", "Previous invalid or failed (p)", () => this.fault(-1)), this.word, arrow("down", "Next invalid or failed (n)", () => this.fault(1)));
  fit = button("Whole run", () => this.waterfall.zoom(this.waterfall.whole));
  note = el("p.quiet.run-note", { role: "status" });
  trouble = el("p.run-trouble", { role: "alert", hidden: true });
  falls = el("section.card.falls", { "aria-label": "Waterfall" },
    el("div.falls-bar", {}, this.faults, el("span.grow"), this.fit,
      el("span.w-legend", { "aria-label": "Bars by where the time comes from" }, ...LEGEND.map(([name, words]) => el("span", {}, el(`i.stripe.${name}`), words)))),
    this.waterfall.grid, el("p.run-note.keys", { "aria-hidden": "true" }, ...KEYS.map(([key, words]) => el("span", {}, el("kbd", {}, key), words))), this.note);

  connectedCallback() {
    if (!this.children.length) this.build();
    const key = (/** @type {KeyboardEvent} */ event) => this.key(event);
    document.addEventListener("keydown", key);
    this.ends = [
      () => document.removeEventListener("keydown", key),
      subscribe((state, before) => this.follow(state, before)),
      on("step", (step) => { if (step.run_id === this.run) this.grow(step); }),
      on("run", (run) => { if (run.run_id === this.run) this.question.soon(); }),
      on("open", () => { if (this.run) this.question.soon(); }),
      on("lag", () => { if (this.run) this.question.soon(); }),
    ];
    getJSON("/api/status").then(({ jaeger_url: url }) => {
      this.jaeger = typeof url === "string" && /^https?:/.test(url) ? url : null;
      onFrame(this.paint);
    }, () => {});
    this.follow(read(), null);
  }

  disconnectedCallback() {
    for (const end of this.ends) end();
    clearTimeout(this.settled);
    this.question.stop();
    this.run = "";
  }

  build() {
    this.append(
      el("header.card.run-head", {},
        el("div.head", {}, button("Runs", () => patch({ run: null, step: null }), "left"), el("span.run-title", {}, this.heading, this.status, this.name), this.labels, el("span.grow"), this.away),
        this.facts),
      this.trouble, el("div.run-body", {}, this.falls, this.panel.element));
  }

  /** Keys of the whole view, wherever the focus is. @param {KeyboardEvent} event */
  key(event) {
    if (this.hidden || !this.run || event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
    if (event.target instanceof Element && event.target.matches("input, select, textarea")) return;
    if (event.key === "n" || event.key === "p") this.fault(event.key === "n" ? 1 : -1);
    else if (event.key === "Escape" && read().step && event.target === document.body) this.close();
  }

  /** @param {import("./state.js").State} state @param {import("./state.js").State | null} before */
  follow(state, before) {
    if (state.run !== this.run) {
      this.question.stop();
      clearTimeout(this.settled);
      this.run = state.run;
      this.detail = null;
      this.came = [];
      this.question.every = 1000;
      this.waterfall.collapsed.clear();
      this.waterfall.active = "";
      this.waterfall.window = this.waterfall.whole;
      this.waterfall.grid.scrollTop = 0;
      this.fresh = before !== null;
      if (this.run) this.question.now();
    } else if (this.run && before && state.step !== before.step) this.choose(state.step);
    if (this.run && before && differs(state, before, FILTER)) this.dim();
    onFrame(this.paint);
  }

  /** @param {AbortSignal} signal */
  ask(signal) {
    this.begun = performance.now();
    return getJSON(`/api/runs/${encodeURIComponent(this.run)}`, null, signal);
  }

  /** A step as it comes: it is in the waterfall with the next frame, and the rest of its span soon. @param {import("./types.js").Step} step */
  grow(step) {
    this.question.soon();
    const { detail } = this;
    this.came.push({ step, at: performance.now() });
    if (!detail || detail.steps.length > GROWS || detail.steps.some((known) => known.span_id === step.span_id)) return;
    detail.steps.push(step);
    onFrame(this.rebuild);
  }

  rebuild = () => {
    if (!this.detail) return;
    this.tree = buildTree(this.detail);
    this.waterfall.show(this.tree);
    this.dim();
    this.repaint();
  };

  /** @param {Detail} answer */
  take(answer) {
    const had = new Set(answer.steps.map((step) => step.span_id));
    this.came = this.came.filter(({ at }) => at > this.begun - LATE);
    for (const { step } of this.came) if (!had.has(step.span_id)) answer.steps.push(step);
    this.question.every = Math.max(1000, 5 * (performance.now() - this.begun)); // a large run is asked for less often
    const first = this.detail === null;
    this.detail = answer;
    this.refused = "";
    clearTimeout(this.settled);
    if (answer.run.status === "running") this.settled = setTimeout(() => this.question.soon(), SETTLED);
    this.tree = buildTree(answer);
    this.waterfall.show(this.tree);
    this.dim();
    if (first) this.choose(read().step, false);
    if (first && this.fresh) this.heading.focus({ preventScroll: true });
    onFrame(this.paint);
  }

  /** @param {import("./data.js").Refusal} refusal */
  refuse(refusal) {
    this.refused = refusal.code === "no_such_run" ? "This run is not in the store: it never was, or it was older than what is kept." : `${refusal.message} ${refusal.fix}`;
    onFrame(this.paint);
  }

  dim() {
    const state = read();
    this.waterfall.dim = isFiltered(state) ? (node) => node.step !== null && !matches(state, node.step) : () => false;
    this.waterfall.refresh();
  }

  /** @param {string} id @param {boolean} [focus] */
  choose(id, focus = this.waterfall.body.contains(document.activeElement)) {
    this.waterfall.select(id, focus);
    onFrame(this.paint);
  }

  close() {
    const { step } = read();
    patch({ step: null }, { replace: true });
    this.waterfall.go(step);
  }

  /** To the next failure after the row that is active, or the one before. @param {number} by */
  fault(by) {
    const { failed } = this.waterfall.paths;
    if (!failed.length) return;
    const chosen = failed.findIndex((node) => node.id === read().step);
    const at = this.tree.nodes.get(this.waterfall.active)?.start ?? 0;
    const next = chosen >= 0 ? chosen + by : by > 0 ? failed.findIndex((node) => node.start >= at) : failed.findLastIndex((node) => node.start < at);
    const to = failed[(next + failed.length) % failed.length] ?? failed[0];
    patch({ step: to.id }, { replace: read().step !== "" });
    this.waterfall.go(to.id, !this.faults.contains(document.activeElement));
  }

  repaint() {
    const { detail } = this;
    if (!this.run) return;
    this.classList.toggle("with-detail", read().step !== "" && detail !== null);
    this.trouble.hidden = !this.refused;
    say(this.trouble, this.refused);
    this.falls.hidden = this.facts.hidden = detail === null;
    if (!detail) return this.headline(null);
    this.headline(detail.run);
    this.paintFacts(detail);
    this.paintNotes(detail);
    const node = this.tree.nodes.get(read().step) ?? null;
    this.panel.show(node, { events: detail.events, trips: this.waterfall.trips, chain: node ? this.waterfall.chain.get(node.id) : undefined, jaeger: this.jaeger });
    const { failed } = this.waterfall.paths;
    const at = failed.findIndex((one) => one.id === read().step);
    this.faults.hidden = failed.length === 0;
    say(this.word, at < 0 ? `${failed.length} invalid or failed` : `${at + 1} of ${failed.length} invalid or failed`);
    this.fit.hidden = this.waterfall.window.to - this.waterfall.window.from >= this.waterfall.whole.to - this.waterfall.whole.from;
  }

  /** @param {import("./types.js").Run | null} run */
  headline(run) {
    say(this.heading, run ? run.name || run.service : "Run");
    this.status.hidden = !run;
    this.status.className = `tag ${run?.status === "failed" ? "bad" : run?.status === "ok" ? "good" : ""}`;
    say(this.status, run?.status ?? "");
    say(this.name, this.run);
    this.labels.replaceChildren(...Object.entries(run?.labels ?? {}).map(([key, value]) => el("span.tag", {}, `${key}: ${value}`)));
    this.away.hidden = !run || !this.jaeger;
    if (run && this.jaeger) Object.assign(this.away, { href: jaegerLink(this.jaeger, run.trace_id) });
  }

  /** @param {Detail} detail */
  paintFacts({ run, calls }) {
    const sum = (/** @type {"cache_read_tokens" | "cache_write_tokens" | "retries"} */ name) => calls.reduce((all, call) => all + (call[name] ?? 0), 0);
    const [read_, written, again] = [sum("cache_read_tokens"), sum("cache_write_tokens"), sum("retries")];
    const known = run.input_tokens !== null;
    const last = [...this.waterfall.chain.values()].at(-1) ?? null;
    const worst = run.worst;
    const facts = [
      ["Started", time(run.started_ms), full(run.started_ms)],
      ["Duration", duration(run.duration_ms * 1000), ""],
      ["Steps", count(run.steps), run.invalid ? `${count(run.invalid)} invalid` : ""],
      ["Calls", count(run.calls), again ? several(again, "retry").replace("retrys", "retries") : ""],
      ["Tokens in", known ? compact(run.input_tokens ?? 0) : "unknown", known && (read_ || written) ? `${compact(read_)} from cache, ${compact(written)} to cache` : ""],
      ["Tokens out", run.output_tokens === null ? "unknown" : compact(run.output_tokens), run.output_tokens !== null && calls.some(endedEarly) ? "at least: a stream ended early" : ""],
      ["Cost", cost(run.cost_usd, run.unpriced_calls), run.unpriced_calls ? `${count(run.unpriced_calls)} without a price` : ""],
      ["Confidence", confidence(last), last === null ? "" : "of the chain"],
    ];
    const key = JSON.stringify([facts, worst]);
    if (key === this.painted) return;
    this.painted = key;
    this.facts.replaceChildren(...facts.map(([name, value, more]) => el("div", {}, el("dt", {}, name), el("dd", { title: name === "Started" ? more : null }, value, more && name !== "Started" && " ", more && name !== "Started" && el("small.quiet", {}, more)))),
      el("div", {}, el("dt", {}, "Worst step"), el("dd", {}, worst ? el("button.button", { type: "button", onclick: () => patch({ step: worst.span_id }) }, `Step ${worst.step_index}`) : "none")));
  }

  /** @param {Detail} detail */
  paintNotes({ truncated }) {
    const { hidden } = this.tree;
    const words = [truncated ? "This run is very large: a part of its spans is left out." : "", hidden ? `${several(hidden, "span")} of the same trace, outside this run, ${hidden === 1 ? "is" : "are"} not shown.` : ""].filter(Boolean).join(" ");
    this.note.hidden = !words;
    say(this.note, words);
  }
}

/** @typedef {Parameters<typeof icon>[0]} Icon */

/** @param {string} words @param {() => void} onclick @param {Icon | null} [name] */
function button(words, onclick, name = null) {
  return el("button.button", { type: "button", onclick }, name && icon(name), words);
}

/** @param {Icon} name @param {string} label @param {() => void} onclick */
function arrow(name, label, onclick) {
  return el("button.button.bare.round", { type: "button", "aria-label": label, title: label, onclick }, icon(name));
}

customElements.define("cs-run", RunView);
