"""Spans, events and attributes."""

from __future__ import annotations

from typing import Final

from .registry import EVENTS, Event, attribute

SCOPE: Final = "claudescope"
"""The instrumentation scope of everything that claudescope emits."""

STEP_SPAN: Final = "reasoning_step"
"""A step's span is named ``reasoning_step {kind}``."""
MANUAL_STEP_SPAN: Final = "run_step"
"""A step made by hand is named ``run_step {name}`` (semantic-conventions-genai proposal 188)."""
CALL_SPAN: Final = "chat"
"""claudescope's own call span, made only where no other exists, is named ``chat {model}``."""
RUN_SPAN: Final = "invoke_workflow"
"""The root span of ``with claudescope.run(name)`` is named ``invoke_workflow {name}``."""

NATIVE_SCOPE: Final = "com.anthropic.sdk.python"
"""The instrumentation scope of the spans that the Anthropic SDK makes itself (since 1.14)."""

# ---------------------------------------------------------------------------------------------- step attributes

STEP_INDEX: Final = attribute(
    "claudescope.step.index",
    "int",
    "step",
    "claudescope",
    "Number of the step in its chain, from 0; on metrics a string capped at `16+`.",
)
STEP_KIND: Final = attribute(
    "claudescope.step.kind",
    "string",
    "step",
    "claudescope",
    "Type of the content block (`thinking`, `text`, `tool_use`, ...), `tool_run` for a tool that the app ran, `manual`"
    " for a step made by hand.",
)
STEP_NAME: Final = attribute("claudescope.step.name", "string", "step", "claudescope", "Name, or marker (`step 3`).")
STEP_LATENCY_SOURCE: Final = attribute(
    "claudescope.step.latency.source",
    "string",
    "step",
    "claudescope",
    "`measured`: the app was waiting for the bytes; `consumer`: the app's own time between reads is over 20 % of the"
    " step, so the duration is an upper bound; `apportioned`: not streamed, the call's time shared out by length."
    " Absent on a batch's results, which have no time at all. A `tool_run` lasts from the end of the block that asked"
    " for it until the request with its result: an upper bound, and each of several tools has the whole of that time.",
)
STEP_CONFIDENCE: Final = attribute(
    "claudescope.step.confidence", "double", "step", "claudescope", "Confidence from 0 to 1; absent when unknown."
)
STEP_CONFIDENCE_METHOD: Final = attribute(
    "claudescope.step.confidence.method", "string", "step", "claudescope", "The estimator that gave the confidence."
)
STEP_CONFIDENCE_CALIBRATED: Final = attribute(
    "claudescope.step.confidence.calibrated",
    "bool",
    "step",
    "claudescope",
    "Whether the confidence was calibrated on labelled outcomes; absent when there is no confidence.",
)
STEP_VALID: Final = attribute(
    "claudescope.step.valid",
    "bool",
    "step",
    "claudescope",
    "Verdict of the checks that ran; absent when nothing could be checked. On metrics `true`, `false` or `unknown`.",
)
STEP_VALIDITY_REASON: Final = attribute(
    "claudescope.step.validity.reason",
    "string",
    "step",
    "claudescope",
    "Why the step is invalid: a code, with character offsets into the step where there are some"
    " (`tool_input.schema_mismatch@12-40`). Several are joined by a blank.",
)
STEP_VALIDITY_CHECKS: Final = attribute(
    "claudescope.step.validity.checks", "string[]", "step", "claudescope", "The checks that ran, sorted."
)
STEP_MERGED: Final = attribute(
    "claudescope.step.merged", "int", "step", "claudescope", "Sub-steps beyond a call's cap that are merged in it."
)
STEP_INCOMPLETE: Final = attribute(
    "claudescope.step.incomplete",
    "string",
    "step",
    "claudescope",
    "Why the block never ended: `failed`, `closed`, `dropped` or `cancelled`; absent for a whole block.",
)
STEP_TEXT_SHA256: Final = attribute(
    "claudescope.step.text.sha256",
    "string",
    "step",
    "claudescope",
    "`sha256:` and 64 hex digits of the step's text in UTF-8; with content mode `hash`.",
)
STEP_TEXT_LENGTH: Final = attribute(
    "claudescope.step.text.length", "int", "step", "claudescope", "Characters of the step's text; with mode `hash`."
)
STEP_TEXT: Final = attribute(
    "claudescope.step.text",
    "string",
    "step",
    "claudescope",
    "The step's text, redacted and cut to `CLAUDESCOPE_CONTENT_MAX` characters; with content mode `full` only.",
)
CHAIN_ID: Final = attribute(
    "claudescope.chain.id", "string", "step, call", "claudescope", "The agent run that the step belongs to, 32 hex."
)
CHAIN_NAME: Final = attribute("claudescope.chain.name", "string", "run", "claudescope", "Name of the run.")
CHAIN_CONFIDENCE: Final = attribute(
    "claudescope.chain.confidence",
    "double",
    "step, call",
    "claudescope",
    "Product of the known step confidences of the chain so far; absent while none is known.",
)
REQUEST_SHA256: Final = attribute(
    "claudescope.request.sha256",
    "string",
    "call, step",
    "claudescope",
    "`sha256:` and 64 hex digits of the request body's bytes as sent.",
)
KEEP: Final = attribute(
    "claudescope.keep",
    "bool",
    "step, call",
    "claudescope",
    "True once a run must be kept by sampling: on every step and call span from the one on that gave the reason; those"
    " that ended before lack it.",
)
LABEL_PREFIX: Final = "claudescope.label."
LABEL: Final = attribute(
    "claudescope.label.KEY", "string", "step, call, run", "claudescope", "A business label given by the app."
)
STREAM_END: Final = attribute(
    "claudescope.stream.end",
    "string",
    "call",
    "claudescope",
    "How a streamed response ended: `completed`, `closed`, `dropped`, `cancelled` or `failed`.",
)
RATELIMIT_PREFIX: Final = "claudescope.ratelimit."
RATELIMIT: Final = attribute(
    "claudescope.ratelimit.KIND.FIELD",
    "int",
    "call",
    "claudescope",
    "`limit` and `remaining` of `requests`, `tokens`, `input_tokens` and `output_tokens`, from the API's"
    " `anthropic-ratelimit-*` response headers.",
)
RATELIMIT_KINDS: Final = ("requests", "tokens", "input_tokens", "output_tokens")
"""What the API limits."""
RATELIMIT_KIND: Final = attribute(
    "claudescope.ratelimit.kind",
    "string",
    "metric",
    "claudescope",
    "The limit of which most is used: `requests`, `tokens`, `input_tokens` or `output_tokens`.",
)
RETRY_COUNT: Final = attribute(
    "http.request.resend_count", "int", "call", "otel", "How many times the SDK sent the request again."
)

OPERATION_NAME: Final = attribute("gen_ai.operation.name", "string", "call, run", "genai", "`chat`, `invoke_workflow`")
PROVIDER_NAME: Final = attribute(
    "gen_ai.provider.name", "string", "call", "genai", "`anthropic`, `aws.bedrock` or `gcp.vertex_ai`"
)
REQUEST_MODEL: Final = attribute("gen_ai.request.model", "string", "call, step", "genai", "Model asked for.")
REQUEST_MAX_TOKENS: Final = attribute("gen_ai.request.max_tokens", "int", "call", "genai", "Output limit asked for.")
REQUEST_TEMPERATURE: Final = attribute("gen_ai.request.temperature", "double", "call", "genai", "")
REQUEST_TOP_P: Final = attribute("gen_ai.request.top_p", "double", "call", "genai", "")
REQUEST_TOP_K: Final = attribute("gen_ai.request.top_k", "double", "call", "genai", "")
REQUEST_STOP_SEQUENCES: Final = attribute("gen_ai.request.stop_sequences", "string[]", "call", "genai", "")
REQUEST_STREAM: Final = attribute("gen_ai.request.stream", "bool", "call", "genai", "Present and true when streamed.")
RESPONSE_ID: Final = attribute("gen_ai.response.id", "string", "call", "genai", "")
RESPONSE_MODEL: Final = attribute("gen_ai.response.model", "string", "call", "genai", "Model that answered.")
FINISH_REASONS: Final = attribute("gen_ai.response.finish_reasons", "string[]", "call", "genai", "")
STOP_REASON: Final = attribute("anthropic.message.stop_reason", "string", "call", "anthropic", "")
TIME_TO_FIRST_CHUNK: Final = attribute("gen_ai.response.time_to_first_chunk", "double", "call", "genai", "Seconds.")
USAGE_INPUT: Final = attribute("gen_ai.usage.input_tokens", "int", "call", "genai", "Cached ones included.")
USAGE_OUTPUT: Final = attribute("gen_ai.usage.output_tokens", "int", "call", "genai", "")
USAGE_CACHE_CREATION: Final = attribute("gen_ai.usage.cache_creation.input_tokens", "int", "call", "genai", "")
USAGE_CACHE_WRITE: Final = attribute("gen_ai.usage.cache_write.input_tokens", "int", "call", "anthropic", "As above.")
USAGE_CACHE_READ: Final = attribute("gen_ai.usage.cache_read.input_tokens", "int", "call", "genai", "")
USAGE_CACHE_WRITE_1H: Final = attribute(
    "claudescope.usage.cache_write_1h.input_tokens",
    "int",
    "call",
    "claudescope",
    "Of the tokens written to the cache those that are kept for an hour, at another price; absent when 0.",
)
USAGE_PARTIAL: Final = attribute(
    "claudescope.usage.partial",
    "bool",
    "call",
    "claudescope",
    "True when a stream ended before the API told the final counts: output tokens are those told at its start, a lower"
    " bound.",
)
USAGE_REASONING: Final = attribute("gen_ai.usage.reasoning.output_tokens", "int", "call", "genai", "")
TOOL_NAME: Final = attribute("gen_ai.tool.name", "string", "step", "genai", "Tool of a `tool_use` or `tool_run` step.")
TOOL_CALL_ID: Final = attribute("gen_ai.tool.call.id", "string", "step", "genai", "")
TOKEN_TYPE: Final = attribute("gen_ai.token.type", "string", "metric", "genai", "`input` or `output`")
WORKFLOW_NAME: Final = attribute("gen_ai.workflow.name", "string", "run", "genai", "")
INPUT_MESSAGES: Final = attribute(
    "gen_ai.input.messages", "string", "call", "genai", "JSON of the request's messages; with content mode `full`."
)
OUTPUT_MESSAGES: Final = attribute(
    "gen_ai.output.messages", "string", "call", "genai", "JSON of the response's content; with content mode `full`."
)
SYSTEM_INSTRUCTIONS: Final = attribute(
    "gen_ai.system_instructions", "string", "call", "genai", "JSON of the system prompt; with content mode `full`."
)
ERROR_TYPE: Final = attribute(
    "error.type", "string", "call, step", "otel", "The API's own error type, else a short word for the failure."
)
HTTP_METHOD: Final = attribute("http.request.method", "string", "call", "otel", "")
HTTP_STATUS: Final = attribute("http.response.status_code", "int", "call", "otel", "")
URL_FULL: Final = attribute("url.full", "string", "call", "otel", "Scheme, host and path; no query, no credentials.")
SERVER_ADDRESS: Final = attribute("server.address", "string", "call", "otel", "")
SERVER_PORT: Final = attribute("server.port", "int", "call", "otel", "")
REQUEST_ID: Final = attribute(
    "anthropic.request.id", "string", "call", "anthropic", "Provider's request id, from the `request-id` header."
)
SERVICE_NAME: Final = attribute("service.name", "string", "resource", "otel", "")
SERVICE_INSTANCE_ID: Final = attribute("service.instance.id", "string", "resource", "otel", "Random, unless given.")
PROCESS_PID: Final = attribute("process.pid", "int", "resource", "otel", "")

EVALUATION_NAME: Final = attribute("gen_ai.evaluation.name", "string", "event", "genai", "`confidence` or `validity`")
EVALUATION_SCORE: Final = attribute("gen_ai.evaluation.score.value", "double", "event", "genai", "")
EVALUATION_LABEL: Final = attribute("gen_ai.evaluation.score.label", "string", "event", "genai", "`pass` or `fail`")
EVALUATION_EXPLANATION: Final = attribute(
    "gen_ai.evaluation.explanation", "string", "event", "genai", "The reason's code with offsets; never a quotation."
)
EVALUATION_EVENT: Final = "gen_ai.evaluation.result"
EVENTS[EVALUATION_EVENT] = Event(
    EVALUATION_EVENT,
    (EVALUATION_NAME, EVALUATION_SCORE, EVALUATION_LABEL, EVALUATION_EXPLANATION, RESPONSE_ID, ERROR_TYPE),
    "genai",
    "One verdict on one step, in the context of the step's span.",
)


DROPPED_REASON: Final = attribute(
    "claudescope.dropped.reason",
    "string",
    "metric",
    "claudescope",
    "`queue_full`, `buffer_full`, `retry_exhausted`, `rejected` or `internal_error`",
)
DROPPED_KIND: Final = attribute(
    "claudescope.dropped.kind", "string", "metric", "claudescope", "`assessment`, `step`, `span` or `log`"
)
CHECK: Final = attribute(
    "claudescope.check", "string", "metric", "claudescope", "The check that failed; on invalid steps only."
)

REASON: Final = attribute(
    "claudescope.reason", "string", "metric", "claudescope", "Code of the reason that a check gave (`schema_mismatch`)."
)
STEP_CONFIDENCE_BAND: Final = attribute(
    "claudescope.step.confidence.band",
    "string",
    "metric",
    "claudescope",
    "The tenth that the confidence lies in, by its upper bound: `0.1` to `1.0`.",
)
STEP_BOUND: Final = attribute(
    "claudescope.step.bound",
    "string",
    "metric",
    "claudescope",
    "The bound in seconds, or from 0 to 1, as a plain decimal (`1.2`, `0.75`).",
)
STEP_BEYOND: Final = attribute(
    "claudescope.step.beyond",
    "string",
    "metric",
    "claudescope",
    "`true`: the step is longer than the bound, or its confidence is below it; `false`: it is not.",
)
TOKEN_CLASS: Final = attribute(
    "claudescope.token.class",
    "string",
    "metric",
    "claudescope",
    "What the token is priced as: `input` (not cached), `cache_read`, `cache_write_5m`, `cache_write_1h` or `output`.",
)
