-- The tables of a store of version 1.
CREATE TABLE sources (id INTEGER PRIMARY KEY, resource BLOB NOT NULL, scope BLOB NOT NULL, UNIQUE (resource, scope));
CREATE TABLE spans (
    id INTEGER PRIMARY KEY,
    trace_id BLOB NOT NULL,
    source INTEGER NOT NULL,
    span_ids BLOB NOT NULL,  -- 8 bytes each, in the order of the spans
    data BLOB NOT NULL       -- serialized opentelemetry.proto.trace.v1.ScopeSpans, the spans as sent
);
CREATE INDEX spans_trace ON spans (trace_id);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    trace_id BLOB NOT NULL,
    service TEXT NOT NULL,
    model TEXT,
    started_ms INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL,
    seen_ms INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    invalid INTEGER NOT NULL,
    min_confidence REAL,
    worst_rank REAL NOT NULL,
    worst_index INTEGER,
    worst_span BLOB,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    call_ms INTEGER NOT NULL,  -- end of the latest call; failed and final are that call's
    failed INTEGER NOT NULL,
    final INTEGER NOT NULL
);
CREATE INDEX runs_started ON runs (started_ms);
CREATE TABLE steps (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    trace_id BLOB NOT NULL,
    span_id BLOB NOT NULL,
    call_span_id BLOB,
    step_index INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT,
    service TEXT NOT NULL,
    model TEXT,
    tool TEXT,
    ts_ms INTEGER NOT NULL,
    latency_us INTEGER NOT NULL,
    latency_source TEXT,
    confidence REAL,
    confidence_method TEXT,
    calibrated INTEGER,
    is_valid INTEGER,
    reasons TEXT,            -- JSON list
    labels TEXT              -- JSON object
);
CREATE INDEX steps_run ON steps (run);
CREATE INDEX steps_time ON steps (ts_ms);
CREATE TABLE events (
    digest BLOB PRIMARY KEY,
    trace_id BLOB NOT NULL,
    span_id BLOB NOT NULL,
    ts_ms INTEGER NOT NULL,
    name TEXT NOT NULL,
    service TEXT NOT NULL,
    data BLOB NOT NULL       -- serialized opentelemetry.proto.logs.v1.LogRecord
) WITHOUT ROWID;
CREATE INDEX events_trace ON events (trace_id);
CREATE TABLE counters (
    series TEXT PRIMARY KEY, -- JSON of the sender, the metric's name and its labels
    value REAL NOT NULL,
    ts_ms INTEGER NOT NULL
) WITHOUT ROWID;
PRAGMA application_id = 1131172707;
PRAGMA user_version = 1;
