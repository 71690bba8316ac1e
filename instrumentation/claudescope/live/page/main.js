// Which view is shown, and the start of it all.
import "./bar.js";
import "./chips.js";
import "./compare.js";
import "./empty.js";
import "./filters.js";
import "./heat.js";
import "./notice.js";
import "./period.js";
import "./run.js";
import "./runs.js";
import "./slos.js";
import "./tools.js";
import { byId } from "./dom.js";
import { on, start } from "./live.js";
import { getJSON } from "./data.js";
import { patch, read, subscribe } from "./state.js";

const view = (/** @type {string} */ name) => /** @type {any} */ (document.querySelector(`cs-${name}`));
/** Whether there is any step: null until that is known. @type {boolean | null} */
let some = null;

function show() {
  const state = read();
  const over = state.run ? "run" : state.view === "compare" ? "compare" : "";
  const shown = over ? [over] : some === null ? [] : some ? ["slos", "heat", "runs"] : ["slos", "empty"];
  for (const name of ["slos", "empty", "heat", "runs", "run", "compare"]) {
    const element = view(name);
    const hidden = !shown.includes(name);
    if (element.hidden === hidden) continue;
    element.hidden = hidden;
    if (!hidden) element.paint?.();
  }
  document.body.classList.toggle("comparing", over === "compare");
  document.body.classList.toggle("waiting", !over && some === false);
  document.title = state.run ? `Run ${state.run.slice(0, 12)} · claudescope` : state.view === "compare" ? "Compare · claudescope" : "claudescope";
}

function found() {
  if (some) return;
  some = true;
  show();
}

on("step", found);
on("run", found);
on("stats", (stats) => { if (stats.steps > 0) found(); });
on("open", look);

/** Whether there is anything at all, whatever the filters say. */
async function look() {
  if (some) return;
  const answer = await getJSON("/api/runs", new URLSearchParams({ limit: "1" })).catch(() => null);
  if (answer === null || some) return;
  some = answer.items.length > 0;
  show();
}

subscribe((state, before) => {
  show();
  if (before.run && !state.run && !state.view) view("runs").focusRun(before.run);
});
byId("home").addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  patch({ run: null, step: null, view: null, a: null, b: null });
});
addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement || event.target instanceof HTMLTextAreaElement;
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey || view("runs").hidden) return;
  event.preventDefault();
  byId("search").focus();
});

show();
look();
start();
