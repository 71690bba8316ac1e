// Places in a text. The server counts characters (code points), JavaScript counts UTF-16 units.

/** @typedef {import("./types.js").Reason} Reason */
/** A piece of a text and the numbers of the reasons that point at it; an empty piece is a place between characters. @typedef {{text: string, reasons: number[]}} Piece */

/**
 * UTF-16 offsets of code point offsets; those beyond the end become the end. One pass.
 * @param {string} text @param {number[]} offsets @returns {number[]}
 */
export function utf16(text, offsets) {
  const order = offsets.map((offset, at) => ({ offset, at })).sort((a, b) => a.offset - b.offset);
  const found = new Array(offsets.length);
  let unit = 0;
  let point = 0;
  for (const { offset, at } of order) {
    while (point < offset && unit < text.length) {
      unit += /** @type {number} */ (text.codePointAt(unit)) > 0xffff ? 2 : 1;
      point += 1;
    }
    found[at] = unit;
  }
  return found;
}

/**
 * The text cut where reasons begin and end; joined, the pieces are the text again.
 * @param {string} text @param {Reason[]} reasons @returns {Piece[]}
 */
export function pieces(text, reasons) {
  const placed = reasons.flatMap(({ start, end }, at) => (start === null || end === null || end < start ? [] : [{ start, end, at }]));
  const units = utf16(text, placed.flatMap(({ start, end }) => [start, end]));
  const marks = placed.map(({ at }, index) => ({ at, start: units[2 * index], end: units[2 * index + 1] }));
  const cuts = [...new Set([0, ...units, text.length])].sort((a, b) => a - b);
  /** @type {Piece[]} */
  const found = [];
  cuts.forEach((cut, index) => {
    const between = marks.filter((mark) => mark.start === cut && mark.end === cut).map((mark) => mark.at);
    if (between.length) found.push({ text: "", reasons: between });
    if (index === cuts.length - 1) return;
    const next = cuts[index + 1];
    found.push({ text: text.slice(cut, next), reasons: marks.filter((mark) => mark.start <= cut && mark.end >= next && mark.start < mark.end).map((mark) => mark.at) });
  });
  return found;
}
