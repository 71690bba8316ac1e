// What the server's answers look like, for the type checker only.

/** @typedef {{check: string, code: string, start: number | null, end: number | null}} Reason */
/**
 * @typedef {{
 *   trace_id: string, span_id: string, call_span_id: string | null, run_id: string, step_index: number, kind: string,
 *   name: string | null, service: string, model: string | null, tool: string | null, ts_ms: number, latency_us: number,
 *   latency_source: string | null, confidence: number | null, confidence_method: string | null,
 *   calibrated: boolean | null, is_valid: boolean | null, reasons: Reason[], labels: Record<string, string>,
 * }} Step
 */
/**
 * @typedef {{
 *   run_id: string, trace_id: string, service: string, model: string | null, started_ms: number, ended_ms: number,
 *   duration_ms: number, seen_ms: number, steps: number, calls: number, invalid: number,
 *   min_confidence: number | null, max_latency_us?: number | null,
 *   worst: {step_index: number, span_id: string} | null, input_tokens: number | null, output_tokens: number | null,
 *   cost_usd?: number | null, unpriced_calls?: number, labels?: Record<string, string>, name?: string | null,
 *   status: "running" | "ok" | "failed",
 * }} Run
 */
/**
 * @typedef {{
 *   ts_ms: number, step_index: string, count: number, p50_us: number | null, p95_us: number | null,
 *   confidence: number | null, confidence_count: number, checked: number, invalid: number, invalid_share: number | null,
 * }} Cell
 */
/**
 * @typedef {{
 *   ts_ms: number, steps: number, valid: number, invalid: number, unknown: number, spans_per_s: number,
 *   last_span_ms: number | null, backlog_bytes: number, store_error: string | null, clients: number, cells: Cell[],
 *   through?: number,
 *   dropped?: {reason: string, kind: string, value: number}[],
 * }} Stats
 */
/** @typedef {{value: string, count: number}} Facet */

export {};
