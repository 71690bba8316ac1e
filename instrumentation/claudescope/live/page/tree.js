// A run as a tree: calls with their steps, tool runs between calls, and whatever other spans stand around them.
// Pure: from the answer of `/api/runs/{run_id}` to nodes. Times are microseconds since the epoch.
import * as names from "./names.js";

/** @typedef {import("./types.js").Step} Step */
/** @typedef {{trace_id: string, span_id: string, parent_span_id: string | null, model: string | null, service: string, started_ms: number, ended_ms: number, input_tokens: number | null, cache_read_tokens: number | null, cache_write_tokens: number | null, output_tokens: number | null, cost_usd: number | null, error_type: string | null, status_code: number | null, retries: number | null, first_chunk_ms: number | null, finish: string | null}} Call */

const EARLY = new Set(["closed", "dropped", "cancelled", "failed"]);

/** Whether a stream ended before all of it had come: its output tokens are then those told so far. @param {Call} call */
export const endedEarly = (call) => EARLY.has(call.finish ?? "");
/** @typedef {{trace_id: string, span_id: string, parent_span_id: string | null, name: string, kind: string, start_us: number, end_us: number, duration_us: number, status: string, status_message: string | null, scope: string, resource: Record<string, any>, attributes: Record<string, any>, events: {name: string, ts_us: number, attributes: Record<string, any>}[], links: any[]}} Span */
/** @typedef {{span_id: string | null, ts_ms: number, name: string, body: any, attributes: Record<string, any>}} LogEvent */
/** @typedef {{run: import("./types.js").Run, steps: Step[], calls: Call[], traces: string[], spans: Span[], events: LogEvent[], truncated: boolean}} Detail */

/**
 * `own`: of this run, not of another one in the same trace. `pending`: a call whose steps came before its span.
 * `failed`: an invalid or failing step or a call that ended in an error.
 * @typedef {{id: string, kind: "run" | "call" | "step" | "tool" | "span", traceId: string, start: number, end: number, own: boolean, pending: boolean, failed: boolean, span: Span | null, step: Step | null, call: Call | null, parent: Node | null, children: Node[]}} Node
 */

const CALLS = new Set(["chat", "text_completion", "generate_content", "embeddings"]);
const ROOT = "invoke_workflow";

/**
 * @param {Detail} detail
 * @returns {{nodes: Map<string, Node>, roots: Node[], hidden: number}} `hidden`: spans of the traces that are outside
 *   of what the run's spans hang from
 */
export function buildTree(detail) {
  const nodes = makeNodes(detail);
  const parents = findParents(nodes);
  for (const node of nodes.values()) node.parent = hoisted(node, parents);
  /** @type {Node[]} */
  const roots = [];
  for (const node of nodes.values()) (node.parent ? node.parent.children : roots).push(node);
  for (const node of nodes.values()) node.children.sort(inTime);
  const holding = holders(nodes);
  const shown = roots.filter((root) => narrowed(root, holding));
  return { nodes, roots: shown.sort(inTime), hidden: nodes.size - shown.reduce((sum, root) => sum + size(root), 0) };
}

/** @param {Detail} detail */
function makeNodes(detail) {
  /** @type {Map<string, Node>} */
  const nodes = new Map();
  const runId = detail.run.run_id;
  for (const span of detail.spans) nodes.set(span.span_id, spanNode(span, runId));
  for (const call of detail.calls) {
    const node = nodes.get(call.span_id) ?? blank(call.span_id, call.trace_id, call.started_ms * 1000, call.ended_ms * 1000);
    Object.assign(node, { kind: "call", call, own: true, failed: node.failed || call.error_type !== null });
    nodes.set(call.span_id, node);
  }
  for (const step of detail.steps) {
    const end = step.ts_ms * 1000;
    const node = nodes.get(step.span_id) ?? blank(step.span_id, step.trace_id, end - step.latency_us, end);
    const kind = step.kind === "tool_run" ? "tool" : "step";
    Object.assign(node, { kind, step, own: true, failed: node.failed || step.is_valid === false });
    nodes.set(step.span_id, node);
  }
  for (const { call_span_id: id, trace_id: trace } of detail.steps) {
    if (id === null || nodes.has(id)) continue;
    const within = detail.steps.filter((step) => step.call_span_id === id && step.kind !== "tool_run");
    if (!within.length) continue;
    const start = Math.min(...within.map((step) => startOf(nodes, step)));
    const call = blank(id, trace, start, Math.max(...within.map((step) => endOf(nodes, step))));
    nodes.set(id, Object.assign(call, { kind: "call", own: true, pending: true }));
  }
  return nodes;
}

/** @param {Map<string, Node>} nodes @param {Step} step */
const startOf = (nodes, step) => nodes.get(step.span_id)?.start ?? 0;
/** @param {Map<string, Node>} nodes @param {Step} step */
const endOf = (nodes, step) => nodes.get(step.span_id)?.end ?? 0;

/** @param {string} id @param {string} traceId @param {number} start @param {number} end @returns {Node} */
function blank(id, traceId, start, end) {
  return { id, kind: "span", traceId, start, end, own: false, pending: false, failed: false, span: null, step: null, call: null, parent: null, children: [] };
}

/** @param {Span} span @param {string} runId @returns {Node} */
function spanNode(span, runId) {
  const node = blank(span.span_id, span.trace_id, span.start_us, Math.max(span.start_us, span.end_us));
  const given = span.attributes;
  node.span = span;
  node.own = given[names.CHAIN_ID] === runId;
  node.failed = span.status === "error" || given[names.STEP_VALID] === false;
  if (Number.isInteger(given[names.STEP_INDEX])) {
    node.kind = given[names.STEP_KIND] === "tool_run" ? "tool" : "step";
    node.step = stepOf(span);
  } else if (given[names.OPERATION] === ROOT) node.kind = "run";
  else if (CALLS.has(given[names.OPERATION])) node.kind = "call";
  return node;
}

/** The record of a step of another run, which the server gives for this run's steps only. @param {Span} span @returns {Step} */
function stepOf(span) {
  const given = span.attributes;
  /** @param {string} name */
  const text = (name) => (typeof given[name] === "string" ? given[name] : null);
  const confidence = typeof given[names.CONFIDENCE] === "number" ? given[names.CONFIDENCE] : null;
  return {
    trace_id: span.trace_id, span_id: span.span_id, call_span_id: span.parent_span_id, run_id: text(names.CHAIN_ID) ?? span.trace_id,
    step_index: given[names.STEP_INDEX], kind: text(names.STEP_KIND) ?? "unknown", name: text(names.STEP_NAME),
    service: String(span.resource["service.name"] ?? "unknown_service"), model: text(names.REQUEST_MODEL), tool: text(names.TOOL_NAME),
    ts_ms: Math.floor(span.end_us / 1000), latency_us: span.duration_us, latency_source: text(names.LATENCY_SOURCE),
    confidence, confidence_method: null, calibrated: null,
    is_valid: typeof given[names.STEP_VALID] === "boolean" ? given[names.STEP_VALID] : null, reasons: [], labels: {},
  };
}

/** @param {Map<string, Node>} nodes @returns {Map<Node, Node>} */
function findParents(nodes) {
  const parents = new Map();
  for (const node of nodes.values()) {
    const id = node.step?.call_span_id ?? node.span?.parent_span_id ?? node.call?.parent_span_id;
    const parent = id ? nodes.get(id) : undefined;
    if (parent && parent !== node) parents.set(node, parent);
  }
  const ended = new Set();
  for (const node of nodes.values()) { // parents that a sender made up may form a ring: it is cut where it closes
    const way = new Set();
    for (let at = node; at && !ended.has(at); at = parents.get(at)) {
      way.add(at);
      if (way.has(parents.get(at))) parents.delete(at);
    }
    for (const one of way) ended.add(one);
  }
  return parents;
}

/**
 * A tool's run, and a call that goes on with a chain, are children of the chain's first call, since one run is one
 * trace; they belong beside it.
 * @param {Node} node @param {Map<Node, Node>} parents @returns {Node | null}
 */
function hoisted(node, parents) {
  let parent = parents.get(node) ?? null;
  if (node.kind !== "tool" && node.kind !== "call") return parent;
  while (parent?.kind === "call" && (node.kind === "tool" || chainOf(node) === chainOf(parent))) parent = parents.get(parent) ?? null;
  return parent;
}

/** @param {Node} node @returns {unknown} */
const chainOf = (node) => (node.own ? true : node.span?.attributes[names.CHAIN_ID] ?? node.id);

/** @param {Node} a @param {Node} b */
function inTime(a, b) {
  return a.start - b.start || (a.step?.step_index ?? -1) - (b.step?.step_index ?? -1) || (a.id < b.id ? -1 : 1);
}

/** The run's nodes and all above them. @param {Map<string, Node>} nodes @returns {Set<Node>} */
function holders(nodes) {
  const found = new Set();
  for (const node of nodes.values()) {
    if (node.own) for (let at = /** @type {Node | null} */ (node); at && !found.has(at); at = at.parent) found.add(at);
  }
  return found;
}

/**
 * Whether a root has anything of the run. Above the span that the run's own hang from, only the way to it is kept.
 * @param {Node} root @param {Set<Node>} holding
 */
function narrowed(root, holding) {
  if (!holding.has(root)) return false;
  for (let at = root; !at.own; ) {
    const inner = at.children.filter((child) => holding.has(child));
    if (inner.length !== 1 || inner[0].own) break;
    at.children = inner;
    at = inner[0];
  }
  return true;
}

/** @param {Node} root @returns {number} */
function size(root) {
  let sum = 0;
  for (const stack = [root]; stack.length; ) {
    const node = /** @type {Node} */ (stack.pop());
    sum += 1;
    stack.push(...node.children);
  }
  return sum;
}
