"""Every name that leaves the process: spans, attributes, metrics and events, with type, unit and source.

Nothing else in the project spells one of these names. The tables in ``docs/attributes.md`` and ``docs/metrics.md``
are generated from the registries below.

Sources: ``genai`` is the OpenTelemetry GenAI semantic conventions, ``otel`` the general OpenTelemetry conventions,
``anthropic`` the attributes of the Anthropic SDK's own spans, ``claudescope`` this project.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SCOPE: Final = "claudescope"
"""The instrumentation scope of everything that claudescope emits."""


@dataclass(frozen=True)
class Attribute:
    """One attribute: its name, OTLP value type, the spans or records that carry it, its source and meaning."""

    name: str
    type: str
    where: str
    source: str
    brief: str


@dataclass(frozen=True)
class Metric:
    """One instrument: its name, kind, unit, attribute names, source and, for a histogram, its bucket boundaries."""

    name: str
    kind: str
    unit: str
    attributes: tuple[str, ...]
    source: str
    brief: str
    boundaries: tuple[float, ...] = ()


@dataclass(frozen=True)
class Event:
    """One log event: its name, attribute names, source and meaning."""

    name: str
    attributes: tuple[str, ...]
    source: str
    brief: str


ATTRIBUTES: Final[dict[str, Attribute]] = {}
METRICS: Final[dict[str, Metric]] = {}
EVENTS: Final[dict[str, Event]] = {}


def _attribute(name: str, type: str, where: str, source: str, brief: str) -> str:
    ATTRIBUTES[name] = Attribute(name, type, where, source, brief)
    return name


def _metric(
    name: str,
    kind: str,
    unit: str,
    attributes: tuple[str, ...],
    source: str,
    brief: str,
    boundaries: tuple[float, ...] = (),
) -> Metric:
    METRICS[name] = metric = Metric(name, kind, unit, attributes, source, brief, boundaries)
    return metric


# ---------------------------------------------------------------------------------------------- span names

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

STEP_INDEX: Final = _attribute(
    "claudescope.step.index",
    "int",
    "step",
    "claudescope",
    "Number of the step in its chain, from 0; on metrics a string capped at `16+`.",
)
STEP_KIND: Final = _attribute(
    "claudescope.step.kind",
    "string",
    "step",
    "claudescope",
    "Type of the content block (`thinking`, `text`, `tool_use`, ...), `tool_run` for a tool that the app ran, `manual`"
    " for a step made by hand.",
)
STEP_NAME: Final = _attribute("claudescope.step.name", "string", "step", "claudescope", "Name, or marker (`step 3`).")
STEP_LATENCY_SOURCE: Final = _attribute(
    "claudescope.step.latency.source",
    "string",
    "step",
    "claudescope",
    "`measured`: the app was waiting for the bytes; `consumer`: the app's own time between reads is over 20 % of the"
    " step, so the duration is an upper bound; `apportioned`: not streamed, the call's time shared out by length."
    " Absent on a batch's results, which have no time at all. A `tool_run` lasts from the end of the block that asked"
    " for it until the request with its result: an upper bound, and each of several tools has the whole of that time.",
)
STEP_CONFIDENCE: Final = _attribute(
    "claudescope.step.confidence", "double", "step", "claudescope", "Confidence from 0 to 1; absent when unknown."
)
STEP_CONFIDENCE_METHOD: Final = _attribute(
    "claudescope.step.confidence.method", "string", "step", "claudescope", "The estimator that gave the confidence."
)
STEP_CONFIDENCE_CALIBRATED: Final = _attribute(
    "claudescope.step.confidence.calibrated",
    "bool",
    "step",
    "claudescope",
    "Whether the confidence was calibrated on labelled outcomes; absent when there is no confidence.",
)
STEP_VALID: Final = _attribute(
    "claudescope.step.valid",
    "bool",
    "step",
    "claudescope",
    "Verdict of the checks that ran; absent when nothing could be checked. On metrics `true`, `false` or `unknown`.",
)
STEP_VALIDITY_REASON: Final = _attribute(
    "claudescope.step.validity.reason",
    "string",
    "step",
    "claudescope",
    "Why the step is invalid: a code, with character offsets into the step where there are some"
    " (`tool_input.schema_mismatch@12-40`). Several are joined by a blank.",
)
STEP_VALIDITY_CHECKS: Final = _attribute(
    "claudescope.step.validity.checks", "string[]", "step", "claudescope", "The checks that ran, sorted."
)
STEP_MERGED: Final = _attribute(
    "claudescope.step.merged", "int", "step", "claudescope", "Sub-steps beyond a call's cap that are merged in it."
)
STEP_INCOMPLETE: Final = _attribute(
    "claudescope.step.incomplete",
    "string",
    "step",
    "claudescope",
    "Why the block never ended: `failed`, `closed`, `dropped` or `cancelled`; absent for a whole block.",
)
STEP_TEXT_SHA256: Final = _attribute(
    "claudescope.step.text.sha256",
    "string",
    "step",
    "claudescope",
    "`sha256:` and 64 hex digits of the step's text in UTF-8; with content mode `hash`.",
)
STEP_TEXT_LENGTH: Final = _attribute(
    "claudescope.step.text.length", "int", "step", "claudescope", "Characters of the step's text; with mode `hash`."
)
STEP_TEXT: Final = _attribute(
    "claudescope.step.text",
    "string",
    "step",
    "claudescope",
    "The step's text, redacted and cut to `CLAUDESCOPE_CONTENT_MAX` characters; with content mode `full` only.",
)
CHAIN_ID: Final = _attribute(
    "claudescope.chain.id", "string", "step, call", "claudescope", "The agent run that the step belongs to, 32 hex."
)
CHAIN_NAME: Final = _attribute("claudescope.chain.name", "string", "run", "claudescope", "Name of the run.")
CHAIN_CONFIDENCE: Final = _attribute(
    "claudescope.chain.confidence",
    "double",
    "step, call",
    "claudescope",
    "Product of the known step confidences of the chain so far; absent while none is known.",
)
REQUEST_SHA256: Final = _attribute(
    "claudescope.request.sha256",
    "string",
    "call, step",
    "claudescope",
    "`sha256:` and 64 hex digits of the request body's bytes as sent.",
)
KEEP: Final = _attribute(
    "claudescope.keep",
    "bool",
    "step, call",
    "claudescope",
    "True once a run must be kept by sampling: on every step and call span from the one on that gave the reason; those"
    " that ended before lack it.",
)
LABEL_PREFIX: Final = "claudescope.label."
LABEL: Final = _attribute(
    "claudescope.label.KEY", "string", "step, call, run", "claudescope", "A business label given by the app."
)
STREAM_END: Final = _attribute(
    "claudescope.stream.end",
    "string",
    "call",
    "claudescope",
    "How a streamed response ended: `completed`, `closed`, `dropped`, `cancelled` or `failed`.",
)
RATELIMIT_PREFIX: Final = "claudescope.ratelimit."
RATELIMIT: Final = _attribute(
    "claudescope.ratelimit.KIND.FIELD",
    "int",
    "call",
    "claudescope",
    "`limit` and `remaining` of `requests`, `tokens`, `input_tokens` and `output_tokens`, from the API's"
    " `anthropic-ratelimit-*` response headers.",
)
RETRY_COUNT: Final = _attribute(
    "http.request.resend_count", "int", "call", "otel", "How many times the SDK sent the request again."
)

OPERATION_NAME: Final = _attribute("gen_ai.operation.name", "string", "call, run", "genai", "`chat`, `invoke_workflow`")
PROVIDER_NAME: Final = _attribute(
    "gen_ai.provider.name", "string", "call", "genai", "`anthropic`, `aws.bedrock` or `gcp.vertex_ai`"
)
REQUEST_MODEL: Final = _attribute("gen_ai.request.model", "string", "call, step", "genai", "Model asked for.")
REQUEST_MAX_TOKENS: Final = _attribute("gen_ai.request.max_tokens", "int", "call", "genai", "Output limit asked for.")
REQUEST_TEMPERATURE: Final = _attribute("gen_ai.request.temperature", "double", "call", "genai", "")
REQUEST_TOP_P: Final = _attribute("gen_ai.request.top_p", "double", "call", "genai", "")
REQUEST_TOP_K: Final = _attribute("gen_ai.request.top_k", "double", "call", "genai", "")
REQUEST_STOP_SEQUENCES: Final = _attribute("gen_ai.request.stop_sequences", "string[]", "call", "genai", "")
REQUEST_STREAM: Final = _attribute("gen_ai.request.stream", "bool", "call", "genai", "Present and true when streamed.")
RESPONSE_ID: Final = _attribute("gen_ai.response.id", "string", "call", "genai", "")
RESPONSE_MODEL: Final = _attribute("gen_ai.response.model", "string", "call", "genai", "Model that answered.")
FINISH_REASONS: Final = _attribute("gen_ai.response.finish_reasons", "string[]", "call", "genai", "")
STOP_REASON: Final = _attribute("anthropic.message.stop_reason", "string", "call", "anthropic", "")
TIME_TO_FIRST_CHUNK: Final = _attribute("gen_ai.response.time_to_first_chunk", "double", "call", "genai", "Seconds.")
USAGE_INPUT: Final = _attribute("gen_ai.usage.input_tokens", "int", "call", "genai", "Cached ones included.")
USAGE_OUTPUT: Final = _attribute("gen_ai.usage.output_tokens", "int", "call", "genai", "")
USAGE_CACHE_CREATION: Final = _attribute("gen_ai.usage.cache_creation.input_tokens", "int", "call", "genai", "")
USAGE_CACHE_WRITE: Final = _attribute("gen_ai.usage.cache_write.input_tokens", "int", "call", "anthropic", "As above.")
USAGE_CACHE_READ: Final = _attribute("gen_ai.usage.cache_read.input_tokens", "int", "call", "genai", "")
USAGE_REASONING: Final = _attribute("gen_ai.usage.reasoning.output_tokens", "int", "call", "genai", "")
TOOL_NAME: Final = _attribute("gen_ai.tool.name", "string", "step", "genai", "Tool of a `tool_use` or `tool_run` step.")
TOOL_CALL_ID: Final = _attribute("gen_ai.tool.call.id", "string", "step", "genai", "")
TOKEN_TYPE: Final = _attribute("gen_ai.token.type", "string", "metric", "genai", "`input` or `output`")
WORKFLOW_NAME: Final = _attribute("gen_ai.workflow.name", "string", "run", "genai", "")
INPUT_MESSAGES: Final = _attribute(
    "gen_ai.input.messages", "string", "call", "genai", "JSON of the request's messages; with content mode `full`."
)
OUTPUT_MESSAGES: Final = _attribute(
    "gen_ai.output.messages", "string", "call", "genai", "JSON of the response's content; with content mode `full`."
)
SYSTEM_INSTRUCTIONS: Final = _attribute(
    "gen_ai.system_instructions", "string", "call", "genai", "JSON of the system prompt; with content mode `full`."
)
ERROR_TYPE: Final = _attribute(
    "error.type", "string", "call, step", "otel", "The API's own error type, else a short word for the failure."
)
HTTP_METHOD: Final = _attribute("http.request.method", "string", "call", "otel", "")
HTTP_STATUS: Final = _attribute("http.response.status_code", "int", "call", "otel", "")
URL_FULL: Final = _attribute("url.full", "string", "call", "otel", "Scheme, host and path; no query, no credentials.")
SERVER_ADDRESS: Final = _attribute("server.address", "string", "call", "otel", "")
SERVER_PORT: Final = _attribute("server.port", "int", "call", "otel", "")
REQUEST_ID: Final = _attribute(
    "anthropic.request.id", "string", "call", "anthropic", "Provider's request id, from the `request-id` header."
)
SERVICE_NAME: Final = _attribute("service.name", "string", "resource", "otel", "")
SERVICE_INSTANCE_ID: Final = _attribute("service.instance.id", "string", "resource", "otel", "Random, unless given.")
PROCESS_PID: Final = _attribute("process.pid", "int", "resource", "otel", "")

EVALUATION_NAME: Final = _attribute("gen_ai.evaluation.name", "string", "event", "genai", "`confidence` or `validity`")
EVALUATION_SCORE: Final = _attribute("gen_ai.evaluation.score.value", "double", "event", "genai", "")
EVALUATION_LABEL: Final = _attribute("gen_ai.evaluation.score.label", "string", "event", "genai", "`pass` or `fail`")
EVALUATION_EXPLANATION: Final = _attribute(
    "gen_ai.evaluation.explanation", "string", "event", "genai", "The reason's code with offsets; never a quotation."
)
EVALUATION_EVENT: Final = "gen_ai.evaluation.result"
EVENTS[EVALUATION_EVENT] = Event(
    EVALUATION_EVENT,
    (EVALUATION_NAME, EVALUATION_SCORE, EVALUATION_LABEL, EVALUATION_EXPLANATION, RESPONSE_ID, ERROR_TYPE),
    "genai",
    "One verdict on one step, in the context of the step's span.",
)

# ---------------------------------------------------------------------------------------------- metrics

DROPPED_REASON: Final = _attribute(
    "claudescope.dropped.reason",
    "string",
    "metric",
    "claudescope",
    "`queue_full`, `buffer_full`, `retry_exhausted`, `rejected` or `internal_error`",
)
DROPPED_KIND: Final = _attribute(
    "claudescope.dropped.kind", "string", "metric", "claudescope", "`assessment`, `step`, `span` or `log`"
)
CHECK: Final = _attribute(
    "claudescope.check", "string", "metric", "claudescope", "The check that failed; on invalid steps only."
)

_STEP_LABELS: Final = (REQUEST_MODEL, STEP_KIND, STEP_INDEX)

STEP_DURATION: Final = _metric(
    "claudescope.step.duration",
    "histogram",
    "s",
    (*_STEP_LABELS, STEP_LATENCY_SOURCE),
    "claudescope",
    "Duration of a step.",
    (0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.8, 1, 2.5, 5, 10, 30, 60, 120),
)
STEP_CONFIDENCE_METRIC: Final = _metric(
    "claudescope.step.confidence",
    "histogram",
    "1",
    _STEP_LABELS,
    "claudescope",
    "Confidence of a step, where it is known.",
    (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.8, 0.9, 0.95, 1),
)
STEPS: Final = _metric(
    "claudescope.steps",
    "counter",
    "{step}",
    (*_STEP_LABELS, STEP_VALID, TOOL_NAME, CHECK, LABEL),
    "claudescope",
    "Steps by verdict.",
)
CHAIN_STEPS: Final = _metric(
    "claudescope.chain.steps",
    "histogram",
    "{step}",
    (REQUEST_MODEL,),
    "claudescope",
    "Steps of a chain when a call of it ends without asking for a tool.",
    (1, 2, 3, 5, 8, 13, 21, 34, 55, 89),
)
DROPPED: Final = _metric(
    "claudescope.dropped",
    "counter",
    "{item}",
    (DROPPED_REASON, DROPPED_KIND),
    "claudescope",
    "What claudescope itself could not keep.",
)
OPERATION_DURATION: Final = _metric(
    "gen_ai.client.operation.duration",
    "histogram",
    "s",
    (OPERATION_NAME, PROVIDER_NAME, REQUEST_MODEL, RESPONSE_MODEL, SERVER_ADDRESS, ERROR_TYPE),
    "genai",
    "Duration of a call.",
    (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
)
TOKEN_USAGE: Final = _metric(
    "gen_ai.client.token.usage",
    "histogram",
    "{token}",
    (OPERATION_NAME, PROVIDER_NAME, REQUEST_MODEL, RESPONSE_MODEL, SERVER_ADDRESS, TOKEN_TYPE),
    "genai",
    "Tokens of a call by type.",
    (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864),
)
FIRST_CHUNK: Final = _metric(
    "gen_ai.client.operation.time_to_first_chunk",
    "histogram",
    "s",
    (OPERATION_NAME, PROVIDER_NAME, REQUEST_MODEL, RESPONSE_MODEL, SERVER_ADDRESS),
    "genai",
    "Time from the start of a streamed call to its first content.",
    (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
)
CHUNK_GAP: Final = _metric(
    "gen_ai.client.operation.time_per_output_chunk",
    "histogram",
    "s",
    (OPERATION_NAME, PROVIDER_NAME, REQUEST_MODEL, RESPONSE_MODEL, SERVER_ADDRESS),
    "genai",
    "Mean time between the chunks of a streamed call, recorded once a call.",
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
)

INDEX_CAP: Final = 16


def index_label(index: int) -> str:
    """The metric label of a step's number: ``"0"`` to ``"15"``, then ``"16+"``."""
    return str(index) if index < INDEX_CAP else f"{INDEX_CAP}+"


def valid_label(valid: bool | None) -> str:
    """The metric label of a verdict: ``"true"``, ``"false"`` or ``"unknown"``."""
    return "unknown" if valid is None else "true" if valid else "false"
