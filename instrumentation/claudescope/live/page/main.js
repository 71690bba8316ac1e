// Ties the page together: loads what is there, listens to what comes, paints on animation frames.
import { byId } from "./dom.js";
import { count } from "./format.js";
import { HeatStrip } from "./heat.js";
import { RunsTable } from "./runs.js";
import { StepsTable } from "./steps.js";

const strip = new HeatStrip(/** @type {HTMLCanvasElement} */ (byId("strip")), byId("tip"), byId("legend"), byId("strip-text"));
const runs = new RunsTable(byId("runs"), (id) => { location.hash = `run=${encodeURIComponent(id)}`; });
const steps = new StepsTable();

/** @type {{steps: number, invalid: number, unknown: number, spans_per_s: number, last_span_ms: number|null, store_error: string|null, backlog_bytes: number} | null} */
let stats = null;
let connected = false;
let started = false;
let heatDirty = true;
let loaded = false;
let scheduled = false;

function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    paint();
  });
}

function paint() {
  const some = runs.runs.size > 0 || (stats !== null && stats.steps > 0);
  byId("empty").hidden = some || !loaded;
  byId("heat").hidden = byId("columns").hidden = !some;
  runs.paint();
  steps.paint();
  if (heatDirty && some) {
    heatDirty = false;
    strip.paint();
  }
  byId("runs-note").textContent = runs.runs.size >= 100 ? "The latest 100" : "";
  paintHeader();
}

function paintHeader() {
  const quietFor = stats?.last_span_ms ? Date.now() - stats.last_span_ms : null;
  const state = connected ? "live" : started ? "lost" : "connecting";
  byId("connection").dataset.state = state;
  const words = { live: "Live", lost: "Connection lost, trying again", connecting: "Connecting" };
  const since = quietFor !== null && quietFor > 60_000 ? ` · nothing for ${Math.floor(quietFor / 60_000)} min` : "";
  const text = words[state] + (connected ? since : "");
  const label = byId("connection-text");
  if (label.textContent !== text) label.textContent = text;
  if (!stats) return;
  byId("total-steps").textContent = count(stats.steps);
  byId("total-invalid").textContent = count(stats.invalid);
  byId("total-unknown").textContent = count(stats.unknown);
  byId("rate").textContent = count(stats.spans_per_s);
  const notice = byId("notice");
  const trouble = stats.store_error
    ? `The store does not take new spans: ${stats.store_error}. What is on this page may not be kept.`
    : stats.backlog_bytes > 16 * 2 ** 20 ? "The server is behind: senders are told to wait." : "";
  notice.hidden = trouble === "";
  if (notice.textContent !== trouble) notice.textContent = trouble;
}

/** @param {string} path @returns {Promise<any>} */
async function get(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}`);
  return answer.json();
}

async function load() {
  const [table, heat] = await Promise.all([get("/api/runs?limit=100"), get("/api/heatmap")]);
  for (const run of table.items) runs.put(run);
  strip.merge(heat.items);
  heatDirty = true;
  loaded = true;
  await loadRun();
  schedule();
}

async function loadRun() {
  const id = steps.runId;
  if (!id) return;
  const name = encodeURIComponent(id);
  const [found, page] = await Promise.all([get(`/api/runs?run=${name}`), get(`/api/steps?run=${name}&order=asc&limit=1000`)]);
  if (id !== steps.runId) return;
  for (const run of found.items) {
    steps.run = run;
    runs.put(run);
  }
  for (const step of page.items) steps.put(step);
  steps.dirty = true;
  schedule();
}

function follow() {
  const stream = new EventSource("/api/stream");
  stream.addEventListener("open", () => {
    connected = true;
    load().catch(() => {}); // what came while nobody listened
    started = true;
    schedule();
  });
  stream.addEventListener("error", () => {
    connected = false;
    schedule();
    if (stream.readyState === EventSource.CLOSED) setTimeout(follow, 2000);
  });
  stream.addEventListener("step", (event) => {
    steps.put(JSON.parse(event.data));
    if (steps.dirty) schedule();
  });
  stream.addEventListener("run", (event) => {
    const run = JSON.parse(event.data);
    runs.put(run);
    if (run.run_id === steps.runId) {
      steps.run = run;
      steps.dirty = true;
    }
    schedule();
  });
  stream.addEventListener("stats", (event) => {
    const data = JSON.parse(event.data);
    stats = data;
    strip.merge(data.cells);
    runs.settle();
    heatDirty = true;
    schedule();
  });
  stream.addEventListener("lag", () => { load().catch(() => {}); });
}

function route() {
  const id = new URLSearchParams(location.hash.slice(1)).get("run") ?? "";
  if (id === steps.runId) return;
  runs.select(id);
  steps.open(id);
  loadRun().catch(() => {});
  schedule();
  if (id && matchMedia("(max-width: 1100px)").matches) byId("detail").scrollIntoView({ block: "start" });
}

byId("measure").addEventListener("change", (event) => {
  strip.measure = /** @type {any} */ (event.target).value;
  strip.paintLegend();
  strip.paint();
});
byId("close").addEventListener("click", () => { location.hash = ""; });
for (const button of document.querySelectorAll("button.copy")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(byId(button.getAttribute("data-copy") ?? "").textContent ?? "");
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}
addEventListener("hashchange", route);
addEventListener("resize", () => { heatDirty = true; schedule(); });
strip.dark.addEventListener("change", () => { strip.paintLegend(); heatDirty = true; schedule(); });
document.addEventListener("visibilitychange", () => { heatDirty = true; schedule(); });

byId("way-otel").textContent = `OTEL_EXPORTER_OTLP_ENDPOINT=${location.origin}`;
strip.paintLegend();
route();
load().catch(() => {}).finally(follow);
