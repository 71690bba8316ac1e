// What two samples can say of a difference, from counts in bands alone. Pure arithmetic.

/** @typedef {readonly (readonly [number, number])[]} Bands upper edge (inclusive) and count, upwards */

/** The standard normal quantile: the relative error is below 1.2e-9 (Acklam). @param {number} p between 0 and 1 */
export function normalQuantile(p) {
  const a = [-39.69683028665376, 220.9460984245205, -275.9285104469687, 138.357751867269, -30.66479806614716, 2.506628277459239];
  const b = [-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572];
  const c = [-0.007784894002430293, -0.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968, 2.938163982698783];
  const d = [0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416];
  const poly = (/** @type {number[]} */ terms, /** @type {number} */ x) => terms.reduce((sum, term) => sum * x + term, 0);
  const tail = (/** @type {number} */ q) => poly(c, q) / poly([...d, 1], q);
  const q = p - 0.5;
  if (p < 0.02425) return tail(Math.sqrt(-2 * Math.log(p)));
  if (p > 0.97575) return -tail(Math.sqrt(-2 * Math.log(1 - p)));
  return (poly(a, q * q) * q) / poly([...b, 1], q * q);
}

/** How sure `rows` answers to one question must be, so that noise alone changes any of them in 5 % of cases: Bonferroni. @param {number} rows */
export const sureness = (rows) => normalQuantile(1 - 0.025 / Math.max(1, rows));

/** Wilson's interval of a share. @param {number} k of @param {number} n @param {number} z @returns {[number, number]} */
export function wilson(k, n, z) {
  if (n === 0) return [0, 1];
  const p = k / n;
  const middle = p + (z * z) / (2 * n);
  const reach = z * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n));
  const whole = 1 + (z * z) / n;
  return [Math.max(0, (middle - reach) / whole), Math.min(1, (middle + reach) / whole)];
}

/** Newcombe's interval of a difference of two shares, from Wilson's: right for few steps too. @param {number} k1 @param {number} n1 @param {number} k2 @param {number} n2 @param {number} z @returns {[number, number]} of k2/n2 - k1/n1 */
export function shareDifference(k1, n1, k2, n2, z) {
  if (n1 === 0 || n2 === 0) return [-1, 1];
  const [p1, p2] = [k1 / n1, k2 / n2];
  const [l1, u1] = wilson(k1, n1, z);
  const [l2, u2] = wilson(k2, n2, z);
  return [p2 - p1 - Math.hypot(p2 - l2, u1 - p1), p2 - p1 + Math.hypot(u2 - p2, p1 - l1)];
}

const GROWTH = 1.1; // a band of latency is at most so wide: empty ones are not in the list, so an upper edge alone is known

/**
 * An interval of a latency's quantile: between which bands it lies, by the binomial law of how many are below it.
 * @param {Bands} bands @param {number} q @param {number} z @returns {[number, number]} lower edge (exclusive) and upper edge
 */
export function quantileInterval(bands, q, z) {
  const n = bands.reduce((sum, [, count]) => sum + count, 0);
  const reach = z * Math.sqrt(n * q * (1 - q));
  const [low, high] = [Math.floor(n * q - reach), Math.ceil(n * q + reach) + 1];
  let [least, most] = [0, Infinity];
  let below = 0;
  let edge = 0;
  for (const [upper, count] of bands) {
    if (low >= 1 && below < low && below + count >= low) least = Math.max(edge, upper / GROWTH);
    if (high <= n && below < high && below + count >= high) most = upper;
    below += count;
    edge = upper;
  }
  return [least, most];
}

/** Welch's interval of a difference of means, with the variance taken from the bands. @param {Bands} one @param {number} mean1 @param {Bands} two @param {number} mean2 @param {number} z @returns {[number, number]} of mean2 - mean1 */
export function meanDifference(one, mean1, two, mean2, z) {
  const reach = z * Math.sqrt(varianceOfMean(one) + varianceOfMean(two));
  return [mean2 - mean1 - reach, mean2 - mean1 + reach];
}

const WIDTH = 0.05; // of a band of confidence

/** @param {Bands} bands */
function varianceOfMean(bands) {
  const n = bands.reduce((sum, [, count]) => sum + count, 0);
  if (n < 2) return Infinity;
  const mean = bands.reduce((sum, [upper, count]) => sum + upper * count, 0) / n;
  const squares = bands.reduce((sum, [upper, count]) => sum + count * (upper - mean) ** 2, 0);
  return (squares / (n - 1) + WIDTH ** 2 / 12) / n;
}
