// <cs-slos>: a card for each objective. Nothing is shown where the server has none.
import { Question, getJSON } from "./data.js";
import { el, icon, onFrame, say } from "./dom.js";
import { several, time } from "./format.js";
import { on } from "./live.js";
import { Card } from "./slo.js";
import { patch, read, subscribe } from "./state.js";

/** @typedef {import("./types.js").Slo} Slo */
/** @typedef {import("./types.js").Slos} Answer */

const EVERY = 5000;

class Objectives extends HTMLElement {
  /** @type {Answer | null} */
  answer = null;
  refused = "";
  /** @type {Map<string, Card>} */
  cards = new Map();
  question = new Question((signal) => getJSON("/api/slos", null, signal), (answer) => this.take(answer, ""), (refusal) => this.take(this.answer, `${refusal.message} ${refusal.fix}`), EVERY);
  note = el("p.quiet.grow");
  toggle = el("button.button.bare.slos-title", { type: "button", id: "slos-title", "aria-controls": "slos", onclick: () => patch(this.open ? { slos: "closed", slo: null } : { slos: null }) }, "Objectives");
  spoken = el("p.hidden", { role: "status" });
  faults = el("ul.slo-faults");
  grid = el("div.slo-grid", { id: "slos" });
  section = el("section", { "aria-labelledby": "slos-title", hidden: true },
    el("div.head.bare", {}, el("h2", {}, this.toggle), this.note), this.faults, this.grid, this.spoken);

  connectedCallback() {
    this.append(this.section);
    on("open", () => this.question.now());
    on("stats", () => this.question.soon());
    subscribe((state, before) => {
      if (state.slo !== before.slo || state.slos !== before.slos) onFrame(this.paint);
    });
  }

  /** Whether the cards are shown. */
  get open() {
    return read().slos === "" || read().slo !== "";
  }

  /** @param {Answer | null} answer @param {string} refused */
  take(answer, refused) {
    this.answer = answer;
    this.refused = refused;
    onFrame(this.paint);
  }

  paint = () => {
    const { answer } = this;
    this.section.hidden = !answer || (!answer.items.length && !answer.error);
    if (!answer || this.section.hidden) return;
    const firing = answer.items.filter((one) => one.state === "burning");
    say(this.note, [`${summary(answer.items)}.`, answer.evaluated_ms === null ? "Not evaluated yet." : `Evaluated at ${time(answer.evaluated_ms)}, every ${answer.interval_s} s.`, this.refused].filter(Boolean).join(" "));
    this.toggle.setAttribute("aria-expanded", String(this.open));
    this.grid.hidden = !this.open;
    say(this.spoken, firing.length ? `${several(firing.length, "objective")} burning: ${firing.map((one) => `${one.service} ${one.name}`).join(", ")}` : "");
    this.paintFaults(answer);
    const seen = new Set(answer.items.map((one) => one.id));
    for (const [id, card] of this.cards) if (!seen.has(id)) { card.element.remove(); this.cards.delete(id); }
    answer.items.forEach((one, at) => {
      let card = this.cards.get(one.id);
      if (!card) this.cards.set(one.id, card = new Card(one.id));
      card.paint(one, read().slo === one.id);
      if (this.grid.children[at] !== card.element) this.grid.insertBefore(card.element, this.grid.children[at] ?? null);
    });
  };

  /** @param {Answer} answer */
  paintFaults(answer) {
    const lines = [
      ...(answer.error ? [`The files of objectives changed and are not in force; those of ${time(answer.loaded_ms ?? 0)} are. ${answer.error}`] : []),
      ...answer.channels.filter((channel) => channel.error).map((channel) => `Alerts do not reach their ${channel.name}: ${channel.error}. They are sent again.`),
    ];
    const key = lines.join("\n");
    if (this.faults.dataset.key === key) return;
    this.faults.dataset.key = key;
    this.faults.replaceChildren(...lines.map((line) => el("li.notice.warn", {}, icon("warning"), el("span", {}, line))));
  }
}

/** "4 objectives: 1 burning, 3 on target". @param {Slo[]} items */
function summary(items) {
  const words = /** @type {[string, Slo["state"][]][]} */ ([["burning", ["burning"]], ["without budget", ["exhausted"]], ["pending", ["pending"]], ["on target", ["ok"]], ["without events", ["no_data", "counting"]], ["for Prometheus", ["uncounted"]]]);
  const parts = words.map(([name, states]) => [items.filter((one) => states.includes(one.state)).length, name]).filter(([n]) => n);
  return `${several(items.length, "objective")}: ${parts.map(([n, name]) => `${n} ${name}`).join(", ")}`;
}

customElements.define("cs-slos", Objectives);
