"""The SQLite file: its tables, its version, and how a connection to it is made."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from ...errors import UsageError

__all__ = ["FILE_NAME", "STEP_COLUMNS", "VERSION", "connect", "connect_reader"]

FILE_NAME: Final = "store.sqlite"
VERSION: Final = 1
_APPLICATION_ID: Final = 0x436C5363  # "ClSc"

STEP_COLUMNS: Final = (
    "run",
    "trace_id",
    "span_id",
    "call_span_id",
    "step_index",
    "kind",
    "name",
    "service",
    "model",
    "tool",
    "ts_ms",
    "latency_us",
    "latency_source",
    "confidence",
    "confidence_method",
    "calibrated",
    "is_valid",
    "reasons",
    "labels",
)

# Ids are random, and each index on one costs a random page an insert: so spans are one row for each trace in a
# request, found by trace; steps have no index but on their run's number and their time, which both grow.
_SCHEMA: Final = """
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
"""


def connect(folder: Path) -> sqlite3.Connection:
    """The writing connection to the store in ``folder``, made if it is not there.

    Raises UsageError when the file is not a store, is of a newer version or cannot be opened.
    """
    path = folder / FILE_NAME
    try:
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
        try:
            _check_owner(db, path)
            path.chmod(0o600)
            _prepare(db, path)
        except BaseException:
            db.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise UsageError(f"The store {path} cannot be opened: {error}.", "Choose another folder with --data.") from None
    return db


def _check_owner(db: sqlite3.Connection, path: Path) -> None:
    """Raises UsageError for another program's database, before anything of it is changed."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != _APPLICATION_ID and (application or tables):
        raise UsageError(f"{path} is the database of another program.", "Choose another folder with --data.")


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    db.execute("PRAGMA page_size = 4096")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA cache_size = -16384")
    db.execute("PRAGMA wal_autocheckpoint = 8192")
    db.execute("PRAGMA temp_store = MEMORY")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise UsageError(
            f"The store {path} was written by a newer claudescope.", "Upgrade claudescope or choose another --data."
        )
    if version == 0:
        db.executescript(
            f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id = {_APPLICATION_ID};"
            f" PRAGMA user_version = {VERSION}; COMMIT;"
        )


def connect_reader(folder: Path) -> sqlite3.Connection:
    """A connection that only reads."""
    uri = (folder / FILE_NAME).absolute().as_uri() + "?mode=ro"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA query_only = ON")
    db.execute("PRAGMA cache_size = -8192")
    db.row_factory = sqlite3.Row
    return db
