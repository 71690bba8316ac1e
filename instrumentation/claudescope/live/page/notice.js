// <cs-notice>: what is wrong now, one line each: in words, and with what can be done.
import { el, icon, onFrame } from "./dom.js";
import { ago, count, several, size, time } from "./format.js";
import { connectionNow, on } from "./live.js";

/** @typedef {import("./types.js").Stats} Stats */
/** `seen`: what a dismissed one said; it comes back when that grows. @typedef {{key: string, level: "bad" | "warn" | "info", text: string, seen: string | null}} Notice */

const LOST_MS = 3000;
const QUIET_MS = 120_000;
const BEHIND_BYTES = 8 * 2 ** 20;
const LAG_SHOWN_MS = 15_000;
const REASONS = /** @type {Record<string, string>} */ ({ queue_full: "the app's queue was full", buffer_full: "the exporter's buffer was full", retry_exhausted: "no server took them in time", rejected: "the server refused them" });

class NoticeBar extends HTMLElement {
  /** @type {Stats | null} */
  stats = null;
  /** @type {{at: number, count: number | null} | null} */
  lag = null;
  /** @type {Map<string, string>} */
  dismissed = new Map();
  drawn = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer = undefined;
  list = el("ul", { role: "alert" });

  connectedCallback() {
    this.append(this.list);
    on("connection", () => this.soon());
    on("lag", ({ count }) => {
      this.lag = { at: Date.now(), count };
      this.soon();
    });
    on("stats", (stats) => {
      this.stats = stats;
      this.soon();
    });
    this.soon();
  }

  soon() { onFrame(this.paint); }

  /** @returns {Notice[]} */
  notices() {
    /** @type {Notice[]} */
    const found = [];
    const { state, since } = connectionNow();
    const now = Date.now();
    if (state === "lost" && now - since > LOST_MS) {
      found.push({ key: "lost", level: "bad", text: `No connection to the server since ${time(since)}: what is shown is of then. It is tried again; is \`claudescope up\` still running?`, seen: null });
    }
    const { stats, lag } = this;
    if (stats && state === "live") {
      if (stats.store_error) {
        found.push({ key: "store", level: "bad", text: `The store takes no new spans: ${stats.store_error}. Senders are told to try again; make room on the disk, or choose another folder with --data.`, seen: null });
      }
      if (stats.backlog_bytes > BEHIND_BYTES) {
        found.push({ key: "behind", level: "warn", text: `The server is behind by ${size(stats.backlog_bytes)}: it writes more slowly than spans come.`, seen: null });
      }
      const last = stats.last_span_ms;
      if (last !== null && now - last > QUIET_MS) {
        found.push({ key: "quiet", level: "info", text: `Data stopped at ${time(last)}, ${ago(now - last)} ago.`, seen: String(last) });
      }
      const dropped = (stats.dropped ?? []).filter((each) => each.value > 0);
      const total = dropped.reduce((sum, each) => sum + each.value, 0);
      if (total > 0) {
        const why = dropped.map((each) => `${several(each.value, each.kind)} because ${REASONS[each.reason] ?? each.reason}`).join("; ");
        found.push({ key: "dropped", level: "warn", text: `Apps dropped ${count(total)} in all: ${why}.`, seen: String(total) });
      }
    }
    if (lag && now - lag.at < LAG_SHOWN_MS) {
      found.push({ key: "lag", level: "info", text: `The page missed ${lag.count === null ? "some events" : `${count(lag.count)} events`}, and asked for everything again.`, seen: String(lag.at) });
    }
    return found.filter((each) => each.seen === null || this.dismissed.get(each.key) !== each.seen);
  }

  paint = () => {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.soon(), 1000); // time passes also when nothing comes; in a hidden tab no frame follows
    const notices = this.notices();
    const drawn = JSON.stringify(notices);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.list.replaceChildren(...notices.map(({ key, level, text, seen }) => el(`li.notice.${level}`, { "data-notice": key },
      icon(level === "info" ? "info" : "warning"), el("span", {}, text),
      seen !== null && el("button.button.bare.round", { type: "button", "aria-label": "Dismiss", onclick: () => { this.dismissed.set(key, seen); this.paint(); } }, icon("close")))));
  };
}

customElements.define("cs-notice", NoticeBar);
