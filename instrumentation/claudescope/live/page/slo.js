// One objective's card: budget, burn rates, what fires, by label, and why it burns.
import { Reasons } from "./reasons.js";
import { el, icon, say, svg, unique } from "./dom.js";
import { ago, compact, count, time } from "./format.js";
import { patch } from "./state.js";

/** @typedef {import("./types.js").Slo} Slo */
/** @typedef {import("./types.js").SloTier} Tier */

const STATES = /** @type {Record<Slo["state"], [string, string]>} */ ({
  ok: ["On target", "good"], pending: ["Burning, not for long yet", "warn"], burning: ["Burning", "bad"], exhausted: ["Budget used up", "bad"],
  no_data: ["No events", ""], counting: ["Counting stored events", ""], uncounted: ["Needs Prometheus", ""],
});
const SPAN = 6 * 3_600_000;
const STEP = 300_000;

/** @param {number} share of 1, with as many digits as tell 99.9 from 100 */
const exact = (share) => `${Number((share * 100).toPrecision(6))} %`;
/** @param {number | null} share */
const left = (share) => (share === null ? "unknown" : `${(share * 100).toFixed(Math.abs(share) < 0.1 ? 1 : 0)} %`);
/** @param {number | null} rate */
export const times = (rate) => (rate === null ? "–" : `${rate >= 100 ? Math.round(rate) : rate.toFixed(rate < 10 ? 2 : 1)}×`);

export class Card {
  drawn = "";
  spark = "";
  /** @type {Reasons} */
  reasons;
  state = el("span.tag");
  title = el("h3");
  about = el("p.quiet.slo-about");
  budget = { words: el("span"), figures: el("span.quiet"), fill: el("i"), bar: el("div.slo-budget", { role: "img" }) };
  picture = el("div.slo-spark");
  tiers = el("table.slo-tiers");
  groups = el("details.slo-groups");
  note = el("p.quiet.slo-note");

  /** @param {string} id of the objective */
  constructor(id) {
    this.id = id;
    const heading = unique("slo");
    const region = unique("reasons");
    this.title.id = heading;
    this.budget.bar.append(this.budget.fill);
    this.button = /** @type {HTMLButtonElement} */ (el("button.button", { type: "button", "aria-expanded": "false", "aria-controls": region, onclick: () => patch({ slo: this.reasons.open ? null : id }) }, icon("search"), "Explain"));
    this.reasons = new Reasons(id, region);
    this.summary = el("summary", {});
    this.rows = el("table.slo-rows");
    this.groups.append(this.summary, el("div.scroll", {}, this.rows));
    this.element = el("article.card.slo", { "aria-labelledby": heading, "data-slo": id },
      el("div.slo-head", {}, this.title, this.state), this.about,
      el("div.slo-line", {}, this.budget.words, this.budget.figures), this.budget.bar, this.picture,
      el("div.scroll", {}, this.tiers), this.groups, el("div.slo-foot", {}, this.note, el("span.grow"), this.button), this.reasons.element);
  }

  /** @param {Slo} slo @param {boolean} explained */
  paint(slo, explained) {
    this.reasons.show(explained, slo);
    this.button.setAttribute("aria-expanded", String(explained));
    const drawn = JSON.stringify(slo);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.element.dataset.state = slo.state;
    say(this.title, slo.name);
    const [words, colour] = STATES[slo.state];
    const firing = slo.tiers.filter((tier) => tier.state === "firing");
    say(this.state, firing.length ? `${words}: ${firing.map((tier) => tier.name).join(", ")}` : slo.canary ? `${words}: canary` : slo.absent ? "No events any more" : words);
    this.state.className = `tag ${slo.absent && !firing.length ? "warn" : colour}`;
    say(this.about, `${exact(slo.target)} of ${slo.service} over ${/\d/.test(slo.period) ? slo.period : `the ${slo.period}`}; bad: ${slo.indicator}.${slo.description ? ` ${slo.description}` : ""}`);
    this.paintBudget(slo);
    this.paintSpark(slo);
    this.tiers.hidden = !slo.tiers.length;
    this.tiers.replaceChildren(tierHead(), el("tbody", {}, ...slo.tiers.map(tierRow)));
    this.paintGroups(slo);
    this.button.hidden = !slo.counted;
    say(this.note, note(slo));
  }

  /** @param {Slo} slo */
  paintBudget(slo) {
    const { words, figures, fill, bar } = this.budget;
    const share = slo.budget_remaining;
    say(words, slo.counted ? `Budget left: ${left(share)}` : "");
    say(figures, slo.counted && slo.total ? `${count(slo.bad)} bad of ${compact(slo.total)}` : "");
    bar.hidden = !slo.counted;
    bar.setAttribute("aria-label", `Budget left: ${left(share)}`);
    fill.style.width = `${Math.max(0, Math.min(1, share ?? 0)) * 100}%`;
    bar.classList.toggle("low", share !== null && share < 0.25);
  }

  /** The share of bad events of the last six hours. @param {Slo} slo */
  paintSpark(slo) {
    this.picture.hidden = !slo.spark.length;
    const key = JSON.stringify(slo.spark);
    if (this.spark === key || !slo.spark.length) return;
    this.spark = key;
    const end = Math.floor((slo.evaluated_ms ?? 0) / STEP) * STEP + STEP;
    const most = Math.max(...slo.spark.map(([, bad, total]) => bad / total), (1 - slo.target) * 2);
    const bars = slo.spark.map(([at, bad, total]) => {
      const height = Math.max(bad ? 1.5 : 0.6, (bad / total / most) * 26);
      return svg("rect", { x: 288 - ((end - at) / SPAN) * 288, y: 28 - height, width: 3.2, height, class: bad / total > 1 - slo.target ? "over" : "under" });
    });
    const line = 28 - ((1 - slo.target) / most) * 26;
    this.picture.replaceChildren(svg("svg", { viewBox: "0 0 288 28", preserveAspectRatio: "none", role: "img", "aria-label": `Share of bad events in the last six hours, at most ${exact(Number(most.toPrecision(2)))}` },
      ...bars, svg("path", { d: `M0 ${line}H288`, class: "target" })));
  }

  /** @param {Slo} slo */
  paintGroups(slo) {
    this.groups.hidden = slo.groups.length < 1;
    if (this.groups.hidden) return;
    const firing = slo.groups.filter((group) => group.tiers.some((tier) => tier.state === "firing")).length;
    say(this.summary, `By ${slo.group_by.map(short).join(", ")}: ${slo.groups.length}${firing ? `, ${firing} firing` : ""}`);
    const sorted = [...slo.groups].sort((a, b) => (a.budget_remaining ?? 1) - (b.budget_remaining ?? 1)).slice(0, 50);
    const window = slo.windows[Math.min(2, slo.windows.length - 1)]?.window ?? "";
    this.rows.replaceChildren(
      el("thead", {}, el("tr", {}, ...["", "Budget left", "Bad", `Burn ${window}`, "Fires"].map((words) => el("th", { scope: "col" }, words)))),
      el("tbody", {}, ...sorted.map((group) => el("tr", {},
        el("th.cut", { scope: "row" }, Object.values(group.labels).map((value) => value || "none").join(", ")),
        el("td.number", {}, left(group.budget_remaining)), el("td.number", {}, `${count(group.bad)} of ${compact(group.total)}`),
        el("td.number", {}, times(group.windows.find((one) => one.window === window)?.burn_rate ?? null)),
        el("td", {}, group.tiers.filter((tier) => tier.state === "firing").map((tier) => tier.name).join(", ") || "–")))));
  }
}

/** A label of Prometheus as people call it. @param {string} label */
export const short = (label) => label.replace(/^claudescope_(step_|label_)?/, "").replace(/^gen_ai_(request_)?/, "").replace(/^service_name$/, "service").replace(/^tool_name$/, "tool");

function tierHead() {
  return el("thead", {}, el("tr", {}, ...[["Burn rate over", null], ["Now", "How many times as fast as allowed the budget is used, in the short and the long window"], ["Fires above", "And the long window holds more bad events than chance explains"], ["State", null]].map(([words, title]) => el("th", { scope: "col", title }, words))));
}

/** @param {Tier} tier */
function tierRow(tier) {
  const words = tier.state === "firing" ? `fires, ${tier.severity}` : tier.state === "pending" ? "pending" : "quiet";
  const since = tier.since_ms === null ? null : `Since ${time(tier.since_ms)}`;
  const asks = [tier.needed > 1 && `with ${count(tier.needed)} bad events or more in ${tier.long}; there are ${count(tier.bad_long)}`, tier.asked !== null && `a factor of ${tier.asked} could never fire, since a share is never over 1`].filter(Boolean).join("; ") || null;
  return el("tr", { "data-tier": tier.name, "data-state": tier.state }, el("th", { scope: "row", title: tier.name }, `${tier.short} and ${tier.long}`),
    el("td.number", {}, `${times(tier.burn_short)} / ${times(tier.burn_long)}`), el("td.number", { title: asks }, `${Number(tier.factor.toPrecision(4))}×`),
    el("td", { title: since }, el(tier.state === "firing" ? "span.tag.bad" : tier.state === "pending" ? "span.tag.warn" : "span.quiet", {}, words)));
}

/** @param {Slo} slo */
function note(slo) {
  if (!slo.counted) return `Not evaluated here, since ${slo.why_not}.`;
  if (slo.waiting) return `${count(slo.waiting)} stored events are yet to be counted.`;
  if (slo.canary) return slo.canary;
  if (slo.last_event_ms === null) return "No event came yet.";
  const old = (slo.evaluated_ms ?? 0) - slo.last_event_ms;
  return old > 120_000 ? `The last event came ${ago(old)} ago.` : "";
}
