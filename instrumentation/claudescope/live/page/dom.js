// Elements from names, properties and children. Text is always a text node: nothing a span says can become markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element. Dashed names (`aria-`, `data-`), `role`, `scope`, `for` and the like become attributes, the rest
 * properties; listeners are properties too (`onclick`). null and undefined say nothing.
 * @param {string} name a tag, with classes after dots
 * @param {Record<string, unknown>} [properties]
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function el(name, properties = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (key.includes("-") || ATTRIBUTES.has(key)) element.setAttribute(key, String(value));
    else Reflect.set(element, key, value);
  }
  return add(element, children);
}

const ATTRIBUTES = new Set(["role", "scope", "for", "list", "colspan", "rowspan"]);

/**
 * An SVG element: every property is an attribute.
 * @param {string} name a tag, with classes after dots
 * @param {Record<string, string | number | null | undefined>} [attributes]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(key, String(value));
  }
  return add(element, children);
}

/** @template {Element} T @param {T} element @param {Child[]} children @returns {T} */
function add(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** A small picture beside words that say the same: hidden from readers. @param {keyof typeof ICONS} name */
export function icon(name) {
  return svg("svg.icon", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true", focusable: "false" },
    svg("path", { d: ICONS[name], fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" }));
}

const ICONS = {
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.5 5.5h7v8h-7zM3.5 10.5v-8h7",
  link: "M6.5 9.5l3-3M7 4.5l1-1a3 3 0 0 1 4.5 4.5l-1 1M9 11.5l-1 1A3 3 0 0 1 3.5 8l1-1",
  check: "M3 8.5l3.5 3.5L13 4.5",
  cross: "M4.5 4.5l7 7M11.5 4.5l-7 7",
  filter: "M2.5 4h11M4.5 8h7M6.5 12h3",
  down: "M4 6l4 4 4-4",
  up: "M4 10l4-4 4 4",
  left: "M10 4L6 8l4 4",
  right: "M6 4l4 4-4 4",
  compare: "M3 13V8M6.5 13V4M9.5 13V6M13 13V2.5",
  warning: "M8 2.5l6 10.5H2zM8 6.5v3M8 11.3v.1",
  info: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M8 7.3v3.5M8 5.1v.1",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.3 10.3l3.2 3.2",
  clock: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M8 4.8V8l2.2 1.6",
};

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`no element ${id}`);
  return element;
}

/** Sets text only when it differs, so that nothing is laid out or read aloud again. @param {Node} node @param {string} text */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

let next = 0;
/** An id of the page's own, for labels. @param {string} name */
export const unique = (name) => `${name}-${++next}`;

/** @type {Set<() => void>} */
const wanted = new Set();

/** Runs a painter on the next animation frame, once however often it is asked for; never in a hidden tab. @param {() => void} paint */
export function onFrame(paint) {
  if (wanted.size === 0) requestAnimationFrame(frame);
  wanted.add(paint);
}

function frame() {
  const due = [...wanted];
  wanted.clear();
  for (const paint of due) {
    try {
      paint();
    } catch (error) {
      reportError(error); // and the others paint on
    }
  }
}
