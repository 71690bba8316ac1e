// <cs-bar>: whether the page is connected, when the last data came, and how many steps there are.
import { el, onFrame, say } from "./dom.js";
import { ago, count, percent } from "./format.js";
import { connectionNow, on } from "./live.js";

/** @typedef {import("./types.js").Stats} Stats */

const STATES = { connecting: "Connecting", live: "Live", lost: "Connection lost", asleep: "Paused" };
const QUIET_MS = 60_000;

/** @param {string} name @param {string} id @param {string} title */
function total(name, id, title) {
  const value = el("dd", { id }, "–");
  return { value, element: el("div", { title }, el("dt", {}, name), value) };
}

class Bar extends HTMLElement {
  /** @type {Stats | null} */
  stats = null;
  since = { steps: 0, invalid: 0, unknown: 0 };

  words = el("span");
  pill = el("p.connection", { id: "connection", role: "status" }, el("span.dot", { "aria-hidden": "true" }), this.words);
  steps = total("Steps", "total-steps", "Steps in the store since it was made");
  invalid = total("Invalid", "total-invalid", "Steps that failed a check");
  unknown = total("Unchecked", "total-unknown", "Steps of which nothing could be checked");
  rate = total("Spans/s", "rate", "Spans that came in the last second");

  connectedCallback() {
    this.append(this.pill, el("dl.totals", { "aria-label": "Totals" }, this.steps.element, this.invalid.element, this.unknown.element, this.rate.element));
    on("connection", () => onFrame(this.paint));
    on("step", (step) => {
      this.since.steps++;
      if (step.is_valid === false) this.since.invalid++;
      if (step.is_valid === null) this.since.unknown++;
      onFrame(this.paint);
    });
    on("stats", (stats) => {
      this.take(stats);
      onFrame(this.paint);
    });
    this.paint();
  }

  /** The server counts a step when it is stored, a little after it is told here: what is shown does not go back for that. @param {Stats} stats */
  take(stats) {
    const before = this.stats;
    const ahead = (/** @type {"steps" | "invalid" | "unknown"} */ name) => Math.max(0, (before?.[name] ?? 0) + this.since[name] - stats[name]);
    const busy = this.since.steps > 0 && before !== null;
    this.since = busy ? { steps: ahead("steps"), invalid: ahead("invalid"), unknown: ahead("unknown") } : { steps: 0, invalid: 0, unknown: 0 };
    if (busy && this.since.steps > stats.spans_per_s) this.since = { steps: 0, invalid: 0, unknown: 0 }; // sent twice, or another store
    this.stats = stats;
  }

  paint = () => {
    const { state } = connectionNow();
    const { stats, since } = this;
    const last = stats?.last_span_ms ?? null;
    const quiet = state === "live" && last !== null && Date.now() - last > QUIET_MS;
    this.pill.dataset.state = quiet ? "quiet" : state;
    say(this.words, quiet ? `Live, no data for ${ago(Date.now() - (last ?? 0))}` : STATES[state]);
    if (!stats) return;
    const steps = stats.steps + since.steps;
    const invalid = stats.invalid + since.invalid;
    say(this.steps.value, count(steps));
    say(this.invalid.value, count(invalid));
    const checked = steps - stats.unknown - since.unknown;
    this.invalid.element.title = `Steps that failed a check${checked > 0 ? `: ${percent(invalid / checked)} of those checked` : ""}`;
    say(this.unknown.value, count(stats.unknown + since.unknown));
    say(this.rate.value, count(stats.spans_per_s));
  };
}

customElements.define("cs-bar", Bar);
