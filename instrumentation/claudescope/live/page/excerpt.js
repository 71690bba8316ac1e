// Captured text with the characters that reasons point at marked, and long texts cut until somebody wants them.
import { el } from "./dom.js";
import { count, reason } from "./format.js";
import { pieces } from "./offsets.js";

const SHOWN = 1200; // UTF-16 units of a text before it is cut
const AROUND = 240; // of them after the last mark

/**
 * @param {string} text @param {import("./types.js").Reason[]} reasons that point into it
 * @returns {HTMLElement}
 */
export function excerpt(text, reasons) {
  const all = pieces(text, reasons);
  const box = el("div.excerpt");
  const pre = el("pre", { tabIndex: 0, "aria-label": "Captured text" });
  box.append(pre);
  const limit = Math.max(SHOWN, lastMark(all) + AROUND);
  if (text.length <= limit + AROUND) fill(pre, all, reasons, Infinity);
  else {
    fill(pre, all, reasons, limit);
    const more = el("button.button.bare", { type: "button" }, `Show all ${count(text.length)} characters`);
    more.addEventListener("click", () => {
      fill(pre, all, reasons, Infinity);
      more.remove();
      pre.focus({ preventScroll: true });
    });
    box.append(more);
  }
  return box;
}

/** @param {import("./offsets.js").Piece[]} all */
function lastMark(all) {
  let at = 0;
  let last = -AROUND;
  for (const piece of all) {
    at += piece.text.length;
    if (piece.reasons.length) last = at;
  }
  return last;
}

/** @param {HTMLElement} pre @param {import("./offsets.js").Piece[]} all @param {import("./types.js").Reason[]} reasons @param {number} limit */
function fill(pre, all, reasons, limit) {
  const parts = [];
  let left = limit;
  for (const piece of all) {
    if (left <= 0) break;
    let text = piece.text.slice(0, left);
    if (text.length < piece.text.length && /[\ud800-\udbff]$/.test(text)) text = text.slice(0, -1); // no half of a pair
    left -= piece.text.length;
    if (!piece.reasons.length) parts.push(text);
    else {
      const names = piece.reasons.map((at) => reason(reasons[at])).join(", ");
      parts.push(el(text ? "mark" : "mark.between", { title: names, "data-reason": piece.reasons.join(" ") }, text, el("span.hidden", {}, ` (marked: ${names}) `)));
    }
  }
  pre.replaceChildren(...parts, left < 0 ? "…" : "");
}

/** A text of a message: cut, without marks. @param {string} text */
export const passage = (text) => excerpt(text, []);
