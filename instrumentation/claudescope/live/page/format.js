// Numbers and times as people read them. Unknown is a word, never a number.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const whole = new Intl.NumberFormat();

/** @param {number} n */
export const count = (n) => whole.format(n);

/** @param {number | null} us microseconds */
export function duration(us) {
  if (us === null) return "unknown";
  if (us < 1000) return `${us} µs`;
  const ms = us / 1000;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60 ? `${minutes} min ${Math.round((ms % 60_000) / 1000)} s` : `${(minutes / 60).toFixed(1)} h`;
}

/** @param {number} ms */
export function time(ms) {
  return (Math.abs(Date.now() - ms) < 12 * 3_600_000 ? clock : day).format(ms);
}

/** @param {number} ms */
export function full(ms) {
  return new Date(ms).toISOString().replace("T", " ").replace("Z", " UTC");
}

/** @param {number | null} share */
export const percent = (share) => (share === null ? "unknown" : `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`);

/** @param {number | null} value */
export const confidence = (value) => (value === null ? "unknown" : value.toFixed(2));

/** @param {{check: string, code: string, start: number | null, end: number | null}} reason */
export function reason(reason) {
  const name = reason.code ? `${reason.check}.${reason.code}` : reason.check;
  return reason.start === null ? name : `${name}@${reason.start}-${reason.end}`;
}
