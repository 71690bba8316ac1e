// Copying, with a word that it happened: also where a page is not allowed to write to the clipboard by itself.
import { say } from "./dom.js";

/** @param {string} text @returns {Promise<boolean>} */
async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // not over plain http from another machine
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "hidden";
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    before?.focus();
    return done;
  }
}

/** Copies, and says so on the button for a moment. @param {HTMLElement} words inside of the button @param {string} text */
export async function copy(words, text) {
  const before = words.dataset.words ??= words.textContent ?? "";
  say(words, (await write(text)) ? "Copied" : "Press Ctrl-C");
  setTimeout(() => say(words, before), 1500);
}
