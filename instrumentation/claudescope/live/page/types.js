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

/** @typedef {{window: string, bad: number, total: number, burn_rate: number | null}} SloWindow */
/**
 * @typedef {{
 *   name: string, severity: "page" | "ticket", short: string, long: string, factor: number, asked: number | null,
 *   wait_s: number, burn_short: number | null, burn_long: number | null, bad_long: number, needed: number,
 *   state: "inactive" | "pending" | "firing", since_ms: number | null,
 * }} SloTier
 */
/**
 * @typedef {{
 *   id: string, service: string, name: string, description: string, indicator: string, target: number, period: string,
 *   group_by: string[], state: "ok" | "pending" | "burning" | "exhausted" | "no_data" | "counting" | "uncounted",
 *   counted: boolean, why_not: string | null, waiting: number, evaluated_ms: number | null,
 *   last_event_ms: number | null, absent: boolean, canary: string | null, bad: number, total: number,
 *   budget_remaining: number | null, windows: SloWindow[], tiers: SloTier[], spark: [number, number, number][],
 *   groups: {labels: Record<string, string>, bad: number, total: number, budget_remaining: number | null, windows: SloWindow[], tiers: SloTier[]}[],
 * }} Slo
 */
/**
 * @typedef {{
 *   items: Slo[], evaluated_ms: number | null, interval_s: number | null, error: string | null, loaded_ms: number | null,
 *   channels: {name: string, error: string | null}[],
 * }} Slos
 */

export {};
