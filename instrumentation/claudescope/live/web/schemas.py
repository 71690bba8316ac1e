"""JSON schemas of what the API gives. Each is closed: an answer has these keys, and no others."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["COMPONENTS", "listed", "ref"]

Schema = dict[str, Any]

_STRING: Final[Schema] = {"type": "string"}
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_INTEGER: Final[Schema] = {"type": "integer"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_NUMBER: Final[Schema] = {"type": "number"}
_SHARE: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 1}
_TRACE: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_SPAN: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{16}$"}
_ATTRIBUTES: Final[Schema] = {"type": "object"}
_LABELS: Final[Schema] = {"type": "object", "additionalProperties": _STRING}


def ref(name: str) -> Schema:
    """A component by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def _or_null(schema: Schema) -> Schema:
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def _all(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _record(text: str = "", /, **keys: Schema) -> Schema:
    made: Schema = {"type": "object", "properties": keys, "required": list(keys), "additionalProperties": False}
    return {"description": text, **made} if text else made


def listed(name: str, **more: Schema) -> Schema:
    """A list of a component, with what else the answer says."""
    return _record(items=_all(ref(name)), next=_or_null(_STRING), **more)


_FIGURES: Final = {
    "count": _COUNT,
    "valid": _COUNT,
    "invalid": _COUNT,
    "unknown": _COUNT,
    "latency": _record(
        "Of steps with a time whose reader was not the slow part.",
        count=_COUNT,
        p50_us=_or_null(_INTEGER),
        p95_us=_or_null(_INTEGER),
        p99_us=_or_null(_INTEGER),
        mean_us=_or_null(_INTEGER),
        buckets=_all({"type": "array", "prefixItems": [_NUMBER, _COUNT], "items": False, "minItems": 2}),
    ),
    "confidence": _record(
        count=_COUNT,
        mean=_or_null(_SHARE),
        buckets=_all({"type": "array", "prefixItems": [_SHARE, _COUNT], "items": False, "minItems": 2}),
    ),
}
_SPAN_KEYS: Final = {
    "span_id": _SPAN,
    "parent_span_id": _or_null(_SPAN),
    "name": _STRING,
    "kind": _STRING,
    "start_us": _INTEGER,
    "end_us": _INTEGER,
    "duration_us": _COUNT,
    "status": {"type": "string", "enum": ["unset", "ok", "error"]},
    "status_message": _or_null(_STRING),
    "scope": _STRING,
    "resource": _ATTRIBUTES,
    "attributes": _ATTRIBUTES,
    "events": _all(_record(name=_STRING, ts_us=_INTEGER, attributes=_ATTRIBUTES)),
    "links": _all(_record(trace_id=_STRING, span_id=_STRING, attributes=_ATTRIBUTES)),
}
_EVENT_KEYS: Final = {
    "span_id": _or_null(_STRING),
    "ts_ms": _INTEGER,
    "name": _STRING,
    "service": _STRING,
    "severity": _or_null(_STRING),
    "body": {},
    "attributes": _ATTRIBUTES,
}
_INDEX: Final[Schema] = {"type": "string", "enum": [*map(str, range(16)), "16+"]}
_FACET: Final = _all(_record(value=_STRING, count=_COUNT))

COMPONENTS: Final[dict[str, Schema]] = {
    "Error": _record(error=_record(code=_STRING, message=_STRING, fix=_STRING)),
    "Step": _record(
        "One reasoning step.",
        trace_id=_TRACE,
        span_id=_SPAN,
        call_span_id=_or_null(_SPAN),
        run_id=_STRING,
        step_index=_COUNT,
        kind=_STRING,
        name=_or_null(_STRING),
        service=_STRING,
        model=_or_null(_STRING),
        tool=_or_null(_STRING),
        ts_ms=_INTEGER,
        latency_us=_COUNT,
        latency_source=_or_null(_STRING),
        confidence=_or_null(_SHARE),
        confidence_method=_or_null(_STRING),
        calibrated=_or_null(_BOOLEAN),
        is_valid=_or_null(_BOOLEAN),
        reasons=_all(_record(check=_STRING, code=_STRING, start=_or_null(_COUNT), end=_or_null(_COUNT))),
        labels=_LABELS,
    ),
    "Run": _record(
        "One agent run.",
        run_id=_STRING,
        trace_id=_TRACE,
        service=_STRING,
        model=_or_null(_STRING),
        name=_or_null(_STRING),
        started_ms=_INTEGER,
        ended_ms=_INTEGER,
        duration_ms=_COUNT,
        seen_ms=_INTEGER,
        steps=_COUNT,
        calls=_COUNT,
        invalid=_COUNT,
        min_confidence=_or_null(_SHARE),
        max_latency_us=_or_null(_COUNT),
        worst=_or_null(_record(step_index=_COUNT, span_id=_SPAN)),
        input_tokens=_or_null(_COUNT),
        output_tokens=_or_null(_COUNT),
        cost_usd=_or_null(_NUMBER),
        unpriced_calls=_COUNT,
        labels=_LABELS,
        status={"type": "string", "enum": ["running", "ok", "failed"]},
    ),
    "Call": _record(
        "One call of a model.",
        trace_id=_TRACE,
        span_id=_SPAN,
        parent_span_id=_or_null(_SPAN),
        model=_or_null(_STRING),
        service=_STRING,
        started_ms=_INTEGER,
        ended_ms=_INTEGER,
        input_tokens=_or_null(_COUNT),
        cache_read_tokens=_or_null(_COUNT),
        cache_write_tokens=_or_null(_COUNT),
        output_tokens=_or_null(_COUNT),
        cost_usd=_or_null(_NUMBER),
        error_type=_or_null(_STRING),
        status_code=_or_null(_INTEGER),
        retries=_COUNT,
        first_chunk_ms=_or_null(_COUNT),
        finish=_or_null(_STRING),
    ),
    "Span": _record("One span as sent, of any sender.", trace_id=_TRACE, **_SPAN_KEYS),
    "LogEvent": _record("One log event.", trace_id=_TRACE, **_EVENT_KEYS),
    "WholeRun": _record(
        "A run with everything in it.",
        run=ref("Run"),
        steps=_all(ref("Step")),
        calls=_all(ref("Call")),
        traces=_all(_TRACE),
        spans=_all(ref("Span")),
        events=_all(ref("LogEvent")),
        truncated=_BOOLEAN,
    ),
    "Trace": _record(
        "A trace with everything in it.",
        trace_id=_TRACE,
        spans=_all(_record(**_SPAN_KEYS)),
        events=_all(_record(**_EVENT_KEYS)),
        truncated=_BOOLEAN,
    ),
    "Cell": _record(
        "The steps of one number in one span of time.",
        ts_ms=_INTEGER,
        step_index=_INDEX,
        count=_COUNT,
        p50_us=_or_null(_INTEGER),
        p95_us=_or_null(_INTEGER),
        confidence=_or_null(_SHARE),
        confidence_count=_COUNT,
        checked=_COUNT,
        invalid=_COUNT,
        invalid_share=_or_null(_SHARE),
    ),
    "HeatMap": listed(
        "Cell",
        bucket_ms=_COUNT,
        from_ms=_INTEGER,
        to_ms=_INTEGER,
        quantile_error=_NUMBER,
        exact=_BOOLEAN,
        partial=_BOOLEAN,
    ),
    "StepFigures": _record("The steps of one number.", step_index=_INDEX, **_FIGURES),
    "Distribution": _record(
        items=_all(ref("StepFigures")),
        total=_record("All steps.", **_FIGURES),
        from_ms=_INTEGER,
        to_ms=_INTEGER,
        quantile_error=_NUMBER,
        exact=_BOOLEAN,
        partial=_BOOLEAN,
    ),
    "Facets": _record(
        "How often each value of a field is there, under the filter without that field.",
        service=_FACET,
        model=_FACET,
        kind=_FACET,
        tool=_FACET,
        check=_FACET,
        index=_FACET,
        valid=_FACET,
        labels={"type": "object", "additionalProperties": _FACET},
        from_ms=_INTEGER,
        to_ms=_INTEGER,
        exact=_BOOLEAN,
        partial=_BOOLEAN,
    ),
    "SloWindow": _record(
        "Events of one window.", window=_STRING, bad=_COUNT, total=_COUNT, burn_rate=_or_null(_NUMBER)
    ),
    "SloTier": _record(
        "A condition that fires when the burn rate of both windows is over the factor.",
        name=_STRING,
        severity={"type": "string", "enum": ["page", "ticket"]},
        short=_STRING,
        long=_STRING,
        factor=_NUMBER,
        asked=_or_null(_NUMBER),
        wait_s=_COUNT,
        burn_short=_or_null(_NUMBER),
        burn_long=_or_null(_NUMBER),
        bad_long=_COUNT,
        needed=_COUNT,
        state={"type": "string", "enum": ["inactive", "pending", "firing"]},
        since_ms=_or_null(_INTEGER),
    ),
    "Slo": _record(
        "One objective as it is.",
        id=_STRING,
        service=_STRING,
        name=_STRING,
        description=_STRING,
        indicator=_STRING,
        measure=_or_null(_STRING),
        target=_SHARE,
        period=_STRING,
        group_by=_all(_STRING),
        file=_STRING,
        line=_INTEGER,
        state={
            "type": "string",
            "enum": ["ok", "pending", "burning", "exhausted", "no_data", "counting", "uncounted"],
        },
        counted=_BOOLEAN,
        why_not=_or_null(_STRING),
        since_ms=_or_null(_INTEGER),
        waiting=_COUNT,
        evaluated_ms=_or_null(_INTEGER),
        period_from_ms=_or_null(_INTEGER),
        last_event_ms=_or_null(_INTEGER),
        absent=_BOOLEAN,
        canary=_or_null(_STRING),
        bad=_COUNT,
        total=_COUNT,
        budget_remaining=_or_null(_NUMBER),
        windows=_all(ref("SloWindow")),
        tiers=_all(ref("SloTier")),
        groups=_all(
            _record(
                "One label set, with a budget of its own.",
                labels=_LABELS,
                bad=_COUNT,
                total=_COUNT,
                budget_remaining=_or_null(_NUMBER),
                windows=_all(ref("SloWindow")),
                tiers=_all(ref("SloTier")),
            )
        ),
        spark=_all({"type": "array", "prefixItems": [_INTEGER, _COUNT, _COUNT], "items": False, "minItems": 3}),
    ),
    "Slos": listed(
        "Slo",
        evaluated_ms=_or_null(_INTEGER),
        interval_s=_or_null(_COUNT),
        alerts=_all(_record("An alert that fires.", labels=_LABELS, annotations=_LABELS, starts_ms=_INTEGER)),
        files=_all(_STRING),
        loaded_ms=_or_null(_INTEGER),
        error=_or_null(_STRING),
        channels=_all(_record(name=_STRING, error=_or_null(_STRING))),
    ),
    "SloExplanation": _record(
        "Which slices hold the bad events.",
        slo=_STRING,
        from_ms=_INTEGER,
        to_ms=_INTEGER,
        baseline_from_ms=_INTEGER,
        group=_LABELS,
        explanation={"type": "object"},
        text=_STRING,
        svg=_STRING,
    ),
    "Counter": _record(name=_STRING, labels=_ATTRIBUTES, value=_NUMBER),
    "Counters": listed("Counter", stored=_record(steps=_COUNT, valid=_COUNT, invalid=_COUNT, unknown=_COUNT)),
    "Status": _record(
        version=_STRING,
        started_ms=_INTEGER,
        data=_STRING,
        store=_record(
            bytes=_COUNT,
            steps=_COUNT,
            spans=_COUNT,
            oldest_ms=_or_null(_INTEGER),
            retain_s=_NUMBER,
            max_bytes=_COUNT,
            error=_or_null(_STRING),
        ),
        backlog_bytes=_COUNT,
        last_span_ms=_or_null(_INTEGER),
        dropped=_all(_record(reason=_STRING, kind=_STRING, value=_NUMBER)),
        clients=_COUNT,
        jaeger_url=_or_null(_STRING),
        prices_date=_STRING,
        content=_BOOLEAN,
    ),
    "Health": _record(service=_STRING, version=_STRING, started=_INTEGER),
}
