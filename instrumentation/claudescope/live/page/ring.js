// Small pictures of what is known of a step: confidence as a ring, validity as a mark, kind as an icon. Shape says
// what colour says; words stand beside them, so that readers skip the pictures.
import { svg } from "./dom.js";

/** Below it, confidence is low. */
export const LOW = 0.7;

/** A ring as full as the confidence; empty and dashed where it is unknown. @param {number | null} value 0 to 1 @param {number} [size] pixels */
export function ring(value, size = 16) {
  const known = value !== null;
  return svg(`svg.ring${known && value < LOW ? ".low" : ""}`, { viewBox: "0 0 20 20", width: size, height: size, "aria-hidden": "true" },
    svg(known ? "circle.track" : "circle.none", { cx: 10, cy: 10, r: 7.5 }),
    known && value > 0 ? svg("circle.value", { cx: 10, cy: 10, r: 7.5, pathLength: 100, "stroke-dasharray": `${100 * value} 100`, transform: "rotate(-90 10 10)" }) : null);
}

/** A disc with a tick, a diamond with a cross, or a bare dash. @param {boolean | null} valid @param {number} [size] pixels */
export function mark(valid, size = 16) {
  const shape = valid === null ? [svg("path.line", { d: "M6 10h8" })]
    : valid ? [svg("circle.shape", { cx: 10, cy: 10, r: 7 }), svg("path.line", { d: "M6.8 10.3l2.2 2.2 4.3-4.7" })]
    : [svg("path.shape", { d: "M10 1.2 18.8 10 10 18.8 1.2 10z" }), svg("path.line", { d: "M7.4 7.4l5.2 5.2M12.6 7.4l-5.2 5.2" })];
  return svg(`svg.seal.${valid === null ? "unknown" : valid ? "good" : "bad"}`, { viewBox: "0 0 20 20", width: size, height: size, "aria-hidden": "true" }, ...shape);
}

const SHAPES = {
  call: "M3 4h14v9H9.5L6 16.2V13H3z",
  thinking: "M10 3a5 5 0 0 1 3 9v2H7v-2a5 5 0 0 1 3-9M8 17h4",
  text: "M4 5h12M4 10h12M4 15h7",
  ask: "M3 10h11M10.5 5.5 15 10l-4.5 4.5",
  tool: "M12.5 3.5a4 4 0 0 0-4 5.3L3.5 13.8l2.7 2.7 5-5a4 4 0 0 0 5.3-4.9l-2.5 2.5-2.4-.7-.7-2.4z",
  run: "M10 3v4M10 7H5v4M10 7h5v4M3.5 11h3v4h-3zM13.5 11h3v4h-3z",
  span: "M4 8v4h12V8z",
};

/** @param {import("./tree.js").Node} node */
export function kindIcon(node) {
  const kind = node.step?.kind ?? "";
  const name = node.kind === "step"
    ? kind.endsWith("tool_use") ? "ask" : kind.endsWith("tool_result") ? "tool" : kind.includes("thinking") ? "thinking" : kind === "manual" ? "run" : "text"
    : node.kind;
  return svg(`svg.kind-icon`, { viewBox: "0 0 20 20", width: 15, height: 15, "aria-hidden": "true" }, svg("path", { d: SHAPES[name] }));
}
