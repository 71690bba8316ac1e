"""The instruments, with what a label's value is where it is not the attribute's own."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from .attributes import (
    CHECK,
    DROPPED_KIND,
    DROPPED_REASON,
    ERROR_TYPE,
    LABEL,
    OPERATION_NAME,
    PROVIDER_NAME,
    RATELIMIT_KIND,
    REASON,
    REQUEST_MODEL,
    RESPONSE_MODEL,
    SERVER_ADDRESS,
    STEP_BEYOND,
    STEP_BOUND,
    STEP_CONFIDENCE_BAND,
    STEP_CONFIDENCE_METHOD,
    STEP_INDEX,
    STEP_KIND,
    STEP_LATENCY_SOURCE,
    STEP_VALID,
    TOKEN_CLASS,
    TOKEN_TYPE,
    TOOL_NAME,
)
from .registry import metric

_STEP_LABELS: Final = (REQUEST_MODEL, STEP_KIND, STEP_INDEX)

STEP_DURATION: Final = metric(
    "claudescope.step.duration",
    "histogram",
    "s",
    (*_STEP_LABELS, STEP_LATENCY_SOURCE),
    "claudescope",
    "Duration of a step.",
    (0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.8, 1, 2.5, 5, 10, 30, 60, 120),
)
STEP_CONFIDENCE_METRIC: Final = metric(
    "claudescope.step.confidence",
    "histogram",
    "1",
    _STEP_LABELS,
    "claudescope",
    "Confidence of a step, where it is known.",
    (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.8, 0.9, 0.95, 1),
)
STEPS: Final = metric(
    "claudescope.steps",
    "counter",
    "{step}",
    (*_STEP_LABELS, STEP_VALID, TOOL_NAME, CHECK, LABEL),
    "claudescope",
    "Steps by verdict.",
)
STEP_OVER: Final = metric(
    "claudescope.step.over",
    "counter",
    "{step}",
    (*_STEP_LABELS, STEP_LATENCY_SOURCE, STEP_BOUND, STEP_BEYOND, TOOL_NAME, LABEL),
    "claudescope",
    "Steps by whether they are longer than a bound of `CLAUDESCOPE_STEP_BOUNDS`, once for each bound; those whose time"
    " was the app's own (`consumer`) are left out.",
)
STEP_BELOW: Final = metric(
    "claudescope.step.below",
    "counter",
    "{step}",
    (*_STEP_LABELS, STEP_BOUND, STEP_BEYOND, TOOL_NAME, LABEL),
    "claudescope",
    "Steps whose confidence is known by whether it is below a bound of `CLAUDESCOPE_CONFIDENCE_BOUNDS`, once for each"
    " bound.",
)
FAILURES: Final = metric(
    "claudescope.step.failures",
    "counter",
    "{failure}",
    (REQUEST_MODEL, STEP_KIND, CHECK, REASON),
    "claudescope",
    "Reasons why steps are invalid: a step that fails two checks counts under each.",
)
OUTCOMES: Final = metric(
    "claudescope.step.outcomes",
    "counter",
    "{step}",
    (REQUEST_MODEL, STEP_CONFIDENCE_METHOD, STEP_CONFIDENCE_BAND, STEP_VALID),
    "claudescope",
    "Steps whose confidence and verdict are both known: how often a stated confidence was right.",
)
CHAIN_STEPS: Final = metric(
    "claudescope.chain.steps",
    "histogram",
    "{step}",
    (REQUEST_MODEL,),
    "claudescope",
    "Steps of a chain when a call of it ends without asking for a tool.",
    (1, 2, 3, 5, 8, 13, 21, 34, 55, 89),
)
DROPPED: Final = metric(
    "claudescope.dropped",
    "counter",
    "{item}",
    (DROPPED_REASON, DROPPED_KIND),
    "claudescope",
    "What claudescope itself could not keep.",
)
CALLS: Final = metric(
    "claudescope.calls",
    "counter",
    "{call}",
    (OPERATION_NAME, REQUEST_MODEL, ERROR_TYPE, LABEL),
    "claudescope",
    "Calls that ended. Like all counters here it is 0 before it counts, also for each error type: a first failure is"
    " seen by `increase`, which it is not in a histogram.",
)
ACTIVE_CALLS: Final = metric(
    "claudescope.active_calls",
    "updowncounter",
    "{call}",
    (),
    "claudescope",
    "Calls in flight in a process, from the request to the end of its response, at the moment of the export.",
)
RATELIMIT_USED: Final = metric(
    "claudescope.ratelimit.used",
    "histogram",
    "1",
    (REQUEST_MODEL, RATELIMIT_KIND),
    "claudescope",
    "Share of the API's rate limit that is used, from the response headers of a call: of its limits the one of which"
    " most is used. Calls whose response has no such headers are left out.",
    (0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1),
)
OPERATION_DURATION: Final = metric(
    "gen_ai.client.operation.duration",
    "histogram",
    "s",
    (OPERATION_NAME, PROVIDER_NAME, REQUEST_MODEL, RESPONSE_MODEL, SERVER_ADDRESS, ERROR_TYPE),
    "genai",
    "Duration of a call.",
    (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
)
TOKEN_USAGE: Final = metric(
    "gen_ai.client.token.usage",
    "histogram",
    "{token}",
    (OPERATION_NAME, PROVIDER_NAME, REQUEST_MODEL, RESPONSE_MODEL, SERVER_ADDRESS, TOKEN_TYPE),
    "genai",
    "Tokens of a call by type.",
    (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864),
)
TOKENS: Final = metric(
    "claudescope.tokens",
    "counter",
    "{token}",
    (REQUEST_MODEL, RESPONSE_MODEL, TOKEN_CLASS, LABEL),
    "claudescope",
    "Tokens of calls by what they are priced as; the classes do not overlap, so their sum is what was used.",
)
TOOL_DURATION: Final = metric(
    "gen_ai.execute_tool.duration",
    "histogram",
    "s",
    (OPERATION_NAME, TOOL_NAME, ERROR_TYPE),
    "genai",
    "Duration of a tool that the app ran: from the block that asked for it until the request with its result.",
    (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
)
FIRST_CHUNK: Final = metric(
    "gen_ai.client.operation.time_to_first_chunk",
    "histogram",
    "s",
    (OPERATION_NAME, PROVIDER_NAME, REQUEST_MODEL, RESPONSE_MODEL, SERVER_ADDRESS),
    "genai",
    "Time from the start of a streamed call to its first content.",
    (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
)
CHUNK_GAP: Final = metric(
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


def bound_label(bound: float) -> str:
    """The metric label of a bound: the shortest plain decimal that is this number (``"1.2"``, ``"2"``, ``"0.001"``)."""
    return format(Decimal(repr(float(bound))).normalize(), "f")
