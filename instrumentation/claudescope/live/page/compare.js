// <cs-compare>: two sets of steps side by side, by step number. Both are query strings in the address.
import { chipsOf } from "./chips.js";
import { pairs } from "./comparison.js";
import { Question, getJSON } from "./data.js";
import { method, pairRow } from "./distribution.js";
import { el, icon, onFrame, say } from "./dom.js";
import { count, several, span } from "./format.js";
import { on } from "./live.js";
import { FILTER, RANGES, TIME, changed, filterQuery, format, parse, patch, read, stepQuery, subscribe, timeOf } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Change} Change */
/** @typedef {"a" | "b"} Side */
/** @typedef {{found: import("./comparison.js").Distribution, facets: any}} Answer */

const ADDED = /** @type {const} */ (["service", "model", "kind", "tool", "check", "valid"]);
const SIDES = /** @type {Side[]} */ (["a", "b"]);

class CompareView extends HTMLElement {
  /** @type {Record<Side, Answer> | null} */
  answers = null;
  refused = "";
  /** @type {(() => void)[]} */
  ends = [];
  paint = () => this.repaint();
  question = new Question((signal) => this.ask(signal), (answers) => this.take(answers, ""), (refusal) => this.take(null, `${refusal.message} ${refusal.fix}`), 5000);
  cards = { a: card("A"), b: card("B") };
  keys = /** @type {HTMLSelectElement} */ (el("select.field", { "aria-label": "Compare two values of a label", onchange: () => this.labels() }));
  heading = el("h2", { tabIndex: -1 }, "Compare");
  note = el("p.quiet.pad", { role: "status" });
  head = el("thead");
  body = el("tbody");

  connectedCallback() {
    if (!this.children.length) this.build();
    this.ends = [subscribe((state, before) => this.follow(state, before)), on("stats", () => this.later()), on("open", () => this.later())];
    this.follow(read(), null);
  }

  disconnectedCallback() {
    for (const end of this.ends) end();
    this.question.stop();
  }

  build() {
    this.append(
      el("div.compare-head", {}, el("button.button", { type: "button", onclick: () => patch({ view: null, a: null, b: null }) }, icon("left"), "Runs"), this.heading, el("span.grow"),
        el("button.button", { type: "button", onclick: () => patch({ a: read().b, b: read().a }) }, "Swap A and B"),
        el("button.button", { type: "button", title: "A: the same conditions as B, in the time of the same length before it", onclick: () => this.before() }, "A: the time before B"), this.keys),
      el("div.sides", {}, this.cards.a.card, this.cards.b.card),
      el("section.card", { "aria-label": "Differences" }, el("div.scroll", {}, el("table.compare", { "aria-label": "A and B by step number" }, this.head, this.body)), this.note));
  }

  /** @param {Side} side @returns {State} */
  side = (side) => parse(read()[side]);

  /** @param {Side} side @param {Change} change */
  change(side, change) {
    patch({ [side]: only(changed(this.side(side), change)) });
  }

  /** @param {State} state @param {State | null} before */
  follow(state, before) {
    if (state.view !== "compare" || state.run) return this.question.stop();
    if (!state.a && !state.b) return patch({ b: only(state), a: earlier(state) }, { replace: true });
    if (before?.view === "compare" && before.a === state.a && before.b === state.b && this.answers) return;
    if (before && before.view !== "compare") {
      this.answers = null;
      onFrame(() => this.heading.focus({ preventScroll: true }));
    }
    this.question.now();
    onFrame(this.paint);
  }

  /** Asks again now and then while a side goes on. */
  later() {
    const state = read();
    if (state.view === "compare" && !state.run && SIDES.some((side) => timeOf(this.side(side)).to === null)) this.question.soon();
  }

  /** @param {AbortSignal} signal */
  async ask(signal) {
    const [a, b] = await Promise.all(SIDES.map(async (side) => {
      const query = stepQuery(this.side(side));
      const [found, facets] = await Promise.all([getJSON("/api/distribution", query, signal), getJSON("/api/facets", query, signal)]);
      return { found, facets };
    }));
    return { a, b };
  }

  /** @param {Record<Side, Answer> | null} answers @param {string} refused */
  take(answers, refused) {
    if (answers || this.answers === null) this.answers = answers;
    this.refused = refused;
    onFrame(this.paint);
  }

  before() {
    const { from, to } = timeOf(this.side("b"));
    const end = to ?? Date.now();
    const b = this.side("b");
    patch({ a: only(changed(b, { slot: null, from: 2 * from - end, to: from })), b: only(changed(b, { slot: null, from, to: end })) });
  }

  /** A and B become the two most frequent values of a label, in B's time and conditions. */
  labels() {
    const key = this.keys.value;
    const values = this.answers?.b.facets.labels?.[key] ?? [];
    if (values.length < 2) return;
    const b = this.side("b");
    const other = b.label.filter((pair) => !pair.startsWith(`${key}:`));
    const [one, two] = values.map((/** @type {{value: string}} */ { value }) => only(changed(b, { label: [...other, `${key}:${value}`] })));
    patch({ a: one, b: two });
  }

  repaint() {
    if (this.hidden) return;
    for (const side of SIDES) this.paintSide(side);
    const { answers } = this;
    const keys = Object.entries(answers?.b.facets.labels ?? {}).filter(([, values]) => /** @type {any[]} */ (values).length > 1).map(([key]) => key);
    fill(this.keys, [["", keys.length ? "Compare labels of…" : "No label has two values"], ...keys.map((key) => [key, key])], "");
    this.keys.disabled = keys.length === 0;
    if (!answers) {
      this.body.replaceChildren();
      return say(this.note, this.refused || "Asking…");
    }
    const rows = pairs(answers.a.found, answers.b.found);
    const bands = [answers.a, answers.b].flatMap(({ found }) => found.total.latency.buckets.map(([upper]) => upper)).filter((upper) => upper > 0);
    const range = { least: Math.min(...bands) / 1.1, most: Math.max(...bands) };
    this.head.replaceChildren(head(rows.length));
    this.body.replaceChildren(...rows.map((pair) => pairRow(pair, rows.length, range)));
    say(this.note, [this.refused,
      [answers.a, answers.b].some(({ found }) => !found.exact) ? "A limit of a filter was moved to the nearest edge of the roll-ups." : "",
      [answers.a, answers.b].some(({ found }) => found.partial) ? "There are so many labels that steps with rare ones are left out." : "",
      "Latency without steps whose app itself read slowly. Quantiles are off by at most 5 %."].filter(Boolean).join(" "));
  }

  /** @param {Side} side */
  paintSide(side) {
    const { card, time, total } = this.cards[side];
    const state = this.side(side);
    const answer = this.answers?.[side];
    say(time, answer ? span(answer.found.from_ms, answer.found.to_ms) : "");
    say(total, answer ? several(answer.found.total.count, "step") : "");
    const key = JSON.stringify([read()[side], answer?.facets]);
    const open = card.querySelector("select:focus") !== null && card.dataset.side === read()[side]; // a list that is open is left alone
    if (card.dataset.key === key || open) return;
    const focused = card.contains(document.activeElement) ? document.activeElement?.getAttribute("aria-label") ?? "" : null;
    Object.assign(card.dataset, { key, side: read()[side] });
    const name = side.toUpperCase();
    const range = /** @type {HTMLSelectElement} */ (el("select.field", { "aria-label": `Time of ${name}`, onchange: () => range.value && this.change(side, { range: /** @type {any} */ (range.value), from: null, to: null, slot: null }) }));
    const fixed = state.from !== null || state.slot !== null;
    fill(range, [...(fixed ? [["", "Fixed time"]] : []), ...RANGES.map((each) => [each, `Last ${each}`])], fixed ? "" : state.range);
    const adding = /** @type {HTMLSelectElement} */ (el("select.field", { "aria-label": `Add a condition to ${name}`, onchange: () => this.add(side, adding.value) }));
    conditions(adding, answer?.facets ?? {});
    const chips = chipsOf(state).filter((chip) => !["run", "search", "time"].includes(chip.name));
    card.replaceChildren(el("div.side-line", {}, el(`b.badge-${side}`, {}, name), range, time, el("span.grow"), total),
      el("div.side-line", {}, ...chips.map((chip) => el("span.chip", {}, el("span.cut", {}, el("span", {}, `${chip.name} `), el("b", {}, chip.value)),
        el("button", { type: "button", "aria-label": `Remove ${chip.name} ${chip.value} from ${name}`, onclick: () => this.change(side, chip.off) }, icon("close")))), adding));
    if (focused !== null) /** @type {HTMLElement | null} */ (card.querySelector(`[aria-label="${CSS.escape(focused)}"]`) ?? adding)?.focus();
  }

  /** @param {Side} side @param {string} what a field, a colon and a value */
  add(side, what) {
    const at = what.indexOf(":");
    const field = /** @type {"service"} */ (what.slice(0, at));
    if (at > 0) this.change(side, { [field]: [...this.side(side)[field], what.slice(at + 1)] });
  }
}

/** @param {string} name */
const card = (name) => ({ card: el("section.card.side", { "aria-label": `Side ${name}` }), time: el("span.quiet"), total: el("strong") });

/** What of a state a side is. @param {State} state */
const only = (state) => format(state, [...TIME, ...FILTER]) || `range=${state.range}`;

/** The same conditions in the time of the same length before. @param {State} state */
function earlier(state) {
  const { from, to } = timeOf(state);
  return `${filterQuery(state)}&from=${2 * from - (to ?? Date.now())}&to=${from}`.replace(/^&/, "");
}

/** @param {HTMLSelectElement} select @param {string[][]} options @param {string} value */
function fill(select, options, value) {
  const key = JSON.stringify(options);
  if (select.dataset.key !== key) select.replaceChildren(...options.map(([value, words]) => el("option", { value }, words)));
  select.dataset.key = key;
  select.value = value;
}

/** @param {HTMLSelectElement} select @param {any} facets */
function conditions(select, facets) {
  const groups = [...ADDED.map((name) => [name, name, facets[name] ?? []]), ...Object.entries(facets.labels ?? {}).map(([key, values]) => [`label:${key}`, key, values])];
  select.replaceChildren(el("option", { value: "" }, "Add a condition…"), ...groups.filter(([, , values]) => values.length).map(([field, name, values]) => el("optgroup", { label: name },
    ...values.map((/** @type {{value: string, count: number}} */ { value, count: n }) => el("option", { value: `${field}:${value}` }, `${value} (${count(n)})`)))));
}

/** @param {number} rows */
function head(rows) {
  const th = (/** @type {string} */ words, /** @type {string | null} */ title) => el("th", { scope: "col", title }, words);
  return el("tr", {}, th("Step", null), th("Steps", null), ...["p50", "p95", "p99"].map((name) => th(name, method("latency", rows))), th("Latency, log scale", "B filled, A as a line; each adds up to its own whole"),
    th("Confidence", method("confidence", rows)), th("0 to 1", "B filled, A as a line; each adds up to its own whole"), th("Invalid, of checked", method("invalid", rows)));
}

customElements.define("cs-compare", CompareView);
