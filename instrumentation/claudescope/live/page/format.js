// Numbers and times as people read them. Unknown is a word, never a number.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const date = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const whole = new Intl.NumberFormat();
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

/** @param {number} n */
export const count = (n) => whole.format(n);

/** 1,234 as it is, 12,345 as 12.3K. @param {number} n */
export const compact = (n) => (Math.abs(n) < 10_000 ? whole : short).format(n);

/** "1 step", "2 steps". @param {number} n @param {string} noun */
export const several = (n, noun) => `${whole.format(n)} ${noun}${n === 1 ? "" : "s"}`;

/** @param {number | null | undefined} us microseconds */
export function duration(us) {
  if (us === null || us === undefined) return "unknown";
  if (us < 1000) return `${Math.round(us)} µs`;
  const ms = us / 1000;
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9995) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min${seconds % 60 ? ` ${seconds % 60} s` : ""}`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** A round time on a scale: "350 ms", "2.5 s", "1 min". @param {number} us */
export function edge(us) {
  if (us < 1_000_000) return `${us / 1000} ms`;
  return us < 60_000_000 ? `${us / 1e6} s` : `${us / 6e7} min`;
}

/** How long ago, in words. @param {number} ms */
export function ago(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h` : several(Math.floor(seconds / 86_400), "day");
}

/** A time of day with seconds; with the date when it is not about today. @param {number} ms */
export const time = (ms) => (Math.abs(Date.now() - ms) < 12 * 3_600_000 ? clock : day).format(ms);

/** A label of a time axis whose ticks are `step` ms apart. @param {number} ms @param {number} step */
export const tick = (ms, step) => (step >= 86_400_000 ? date : step >= 43_200_000 ? day : step >= 60_000 ? minute : clock).format(ms);

/** A span of time: the date once where it is not about today. @param {number} from @param {number} to */
export function span(from, to) {
  const near = Math.max(Math.abs(Date.now() - from), Math.abs(Date.now() - to)) < 12 * 3_600_000;
  const exact = to - from < 600_000 || from % 60_000 || to % 60_000 ? clock : minute;
  if (near) return `${exact.format(from)} – ${exact.format(to)}`;
  return to - from < 43_200_000 ? `${date.format(from)}, ${exact.format(from)} – ${exact.format(to)}` : `${day.format(from)} – ${day.format(to)}`;
}

/** @param {number} ms */
export const full = (ms) => new Date(ms).toISOString().replace("T", " ").replace("Z", " UTC");

/** @param {number | null | undefined} share */
export const percent = (share) => (share === null || share === undefined ? "unknown" : `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`);

/** @param {number | null | undefined} value */
export const confidence = (value) => (value === null || value === undefined ? "unknown" : value.toFixed(2));

/** Bytes. @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const unit = ["kB", "MB", "GB", "TB"];
  let at = -1;
  let n = bytes;
  do { n /= 1000; at++; } while (n >= 999.5 && at < unit.length - 1);
  return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${unit[at]}`;
}

/**
 * US dollars. "unknown" where no price is known, "≥" where the price of a part is not.
 * @param {number | null | undefined} usd @param {number} [unpriced] calls without a price
 */
export function cost(usd, unpriced = 0) {
  if (usd === null || usd === undefined) return "unknown";
  const digits = usd === 0 || usd >= 1 ? 2 : usd >= 0.01 ? 3 : 4;
  if (usd > 0 && usd < 0.0001) return unpriced ? "unknown" : "< $0.0001";
  return `${unpriced ? "≥ " : ""}$${usd.toFixed(digits)}`;
}

/** @param {{check: string, code: string, start: number | null, end: number | null}} reason */
export function reason(reason) {
  const name = reason.code ? `${reason.check}.${reason.code}` : reason.check;
  return reason.start === null ? name : `${name}@${reason.start}-${reason.end}`;
}
