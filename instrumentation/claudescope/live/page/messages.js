// The messages of a call as captured: roles, texts, tool calls and their results.
import { el } from "./dom.js";
import { several } from "./format.js";
import { passage } from "./excerpt.js";

const LATEST = 4; // messages shown before the earlier ones are asked for

const WORDS = { text: "", reasoning: "thinking", tool_call: "calls", tool_call_response: "result of a tool", blob: "data, left out", uri: "address" };

/**
 * @param {unknown} json the attribute: a JSON list of `{role, parts}`, or of parts alone
 * @returns {HTMLElement | null} null where it is no such list
 */
export function conversation(json) {
  const list = parsed(json);
  if (!list) return null;
  const box = el("div.messages");
  const messages = list.every((one) => Array.isArray(one?.parts)) ? list : [{ role: "", parts: list }];
  const early = messages.length - LATEST;
  if (early > 0) {
    const more = el("button.button.bare", { type: "button" }, `Show ${several(early, "earlier message")}`);
    more.addEventListener("click", () => more.replaceWith(...messages.slice(0, early).map(message)));
    box.append(more);
  }
  box.append(...messages.slice(Math.max(0, early)).map(message));
  return box;
}

/** @param {unknown} json @returns {any[] | null} */
function parsed(json) {
  if (typeof json !== "string") return null;
  try {
    const value = JSON.parse(json);
    return Array.isArray(value) ? value : null;
  } catch {
    return null; // cut by its sender
  }
}

/** @param {any} message */
function message({ role, parts }) {
  return el("div.message", {}, role ? el("h4", {}, role) : null, ...parts.map(part));
}

/** @param {any} part */
function part(part) {
  const type = String(part?.type ?? "unknown");
  const word = [Reflect.get(WORDS, type) ?? type, part?.name].filter(Boolean).join(" ");
  const content = part?.content ?? part?.arguments ?? part?.response ?? part?.uri;
  return el("div.part", {}, word ? el("span.faint", {}, word) : null, content === undefined || content === null ? null : passage(spelled(content)));
}

/** A value as a text: strings as they are, others as JSON. @param {unknown} value */
export const spelled = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 1) ?? "");
