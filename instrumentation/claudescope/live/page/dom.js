// Elements from names, properties and children. Text is always a text node: nothing a span says can become markup.

/**
 * @param {string} name a tag, with classes after dots
 * @param {Record<string, unknown>} [properties] `data-`, `aria-` and other dashed names become attributes
 * @param {...(Node | string | number | null)} children
 * @returns {HTMLElement}
 */
export function el(name, properties = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (key.includes("-") || key === "scope" || key === "role") element.setAttribute(key, String(value));
    else Reflect.set(element, key, value);
  }
  for (const child of children) if (child !== null) element.append(child instanceof Node ? child : String(child));
  return element;
}

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`no element ${id}`);
  return element;
}
