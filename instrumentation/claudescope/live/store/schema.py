"""The SQLite file: its tables, its version, and how a connection to it is made."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from ...errors import UsageError
from .select import label_of

__all__ = [
    "APPLICATION_ID",
    "CALL_COLUMNS",
    "FILE_NAME",
    "STEP_COLUMNS",
    "VERSION",
    "bytes_in_use",
    "connect",
    "connect_reader",
    "create",
]

FILE_NAME: Final = "store.sqlite"
VERSION: Final = 2
APPLICATION_ID: Final = 0x436C5363  # "ClSc"

STEP_COLUMNS: Final = (
    "id",
    "run",
    "trace_id",
    "span_id",
    "call_span_id",
    "step_index",
    "series",
    "name",
    "ts_ms",
    "latency_us",
    "latency_source",
    "confidence",
    "confidence_method",
    "calibrated",
    "is_valid",
    "reasons",
)

CALL_COLUMNS: Final = (
    "run",
    "trace_id",
    "span_id",
    "parent_id",
    "service",
    "model",
    "started_ms",
    "ended_ms",
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "cost_usd",
    "error_type",
    "status_code",
    "retries",
    "first_chunk_ms",
    "finish",
    "labels",
    "limit_used",
)

# Ids are random, and each index on one costs a random page an insert: so spans are one row for each trace in a
# request, found by trace; steps and calls have no index but on their run's number and their time, which both grow.
_SCHEMA: Final = """
CREATE TABLE sources (id INTEGER PRIMARY KEY, resource BLOB NOT NULL, scope BLOB NOT NULL, UNIQUE (resource, scope));
CREATE TABLE spans (
    id INTEGER PRIMARY KEY,
    trace_id BLOB NOT NULL,
    source INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL, -- the latest end
    count INTEGER NOT NULL,
    span_ids BLOB NOT NULL,    -- 8 bytes each, in the order of the spans
    runs BLOB,                 -- numbers of the runs they are of, 8 bytes each, little end first
    data BLOB NOT NULL         -- serialized opentelemetry.proto.trace.v1.ScopeSpans, the spans as sent
);
CREATE INDEX spans_trace ON spans (trace_id);
CREATE INDEX spans_ended ON spans (ended_ms, source, count);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    trace_id BLOB NOT NULL,
    service TEXT NOT NULL,
    model TEXT,
    name TEXT,
    started_ms INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL,
    seen_ms INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    invalid INTEGER NOT NULL,
    min_confidence REAL,
    max_latency_us INTEGER NOT NULL,
    max_index INTEGER NOT NULL,
    worst_rank REAL NOT NULL,
    worst_index INTEGER,
    worst_span BLOB,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_usd REAL,             -- sum over the calls whose cost is known
    unpriced INTEGER NOT NULL, -- calls with tokens and without a known cost
    end_rank INTEGER NOT NULL,  -- of the latest call, whose failed and final these are: 2 * ms + root
    failed INTEGER NOT NULL,
    final INTEGER NOT NULL,
    labels TEXT                -- JSON object
);
CREATE INDEX runs_started ON runs (started_ms);
CREATE INDEX runs_open ON runs (started_ms) WHERE final = 0;
CREATE INDEX runs_failed ON runs (started_ms) WHERE failed = 1;
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    service TEXT NOT NULL,
    model TEXT NOT NULL,
    kind TEXT NOT NULL,
    tool TEXT NOT NULL,
    failed_check TEXT NOT NULL,
    labels TEXT NOT NULL,      -- JSON object with sorted keys, or nothing
    counted INTEGER NOT NULL,  -- the series under which the roll-ups count it
    UNIQUE (service, model, kind, tool, failed_check, labels)
);
CREATE TABLE steps (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    trace_id BLOB NOT NULL,
    span_id BLOB NOT NULL,
    call_span_id BLOB,
    step_index INTEGER NOT NULL,
    series INTEGER NOT NULL,
    name TEXT,
    ts_ms INTEGER NOT NULL,
    latency_us INTEGER NOT NULL,
    latency_source TEXT,
    confidence REAL,
    confidence_method TEXT,
    calibrated INTEGER,
    is_valid INTEGER,
    reasons TEXT               -- JSON list
);
-- Also what filters ask for: to read this index from end to end takes a third of the time that the table takes.
CREATE INDEX steps_run ON steps (run, series, step_index, is_valid, confidence, latency_us);
CREATE INDEX steps_time ON steps (ts_ms);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    trace_id BLOB NOT NULL,
    span_id BLOB NOT NULL,
    parent_id BLOB,
    service TEXT NOT NULL,
    model TEXT,
    started_ms INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_usd REAL,
    error_type TEXT,
    status_code INTEGER,
    retries INTEGER NOT NULL,
    first_chunk_ms INTEGER,
    finish TEXT,
    labels TEXT,               -- JSON object with sorted keys; of objectives only, as what follows
    limit_used REAL
);
CREATE INDEX calls_run ON calls (run);
CREATE INDEX calls_ended ON calls (ended_ms);
CREATE TABLE texts (step INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE events (
    digest BLOB PRIMARY KEY,
    trace_id BLOB NOT NULL,
    span_id BLOB NOT NULL,
    ts_ms INTEGER NOT NULL,
    name TEXT NOT NULL,
    service TEXT NOT NULL,
    data BLOB NOT NULL         -- serialized opentelemetry.proto.logs.v1.LogRecord
) WITHOUT ROWID;
CREATE INDEX events_trace ON events (trace_id);
CREATE INDEX events_time ON events (ts_ms);
CREATE TABLE counters (
    series TEXT PRIMARY KEY,   -- JSON of the sender, the metric's name and its labels
    value REAL NOT NULL,
    ts_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE rollups (
    tier INTEGER NOT NULL,      -- length of the bucket in s
    bucket_ms INTEGER NOT NULL, -- where it begins
    part INTEGER NOT NULL,      -- number of the row: the rows of one bucket add up
    data BLOB NOT NULL,         -- packed histogram over all series
    PRIMARY KEY (tier, bucket_ms, part)
) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""
_TEXT_INDEX: Final = """
CREATE VIRTUAL TABLE texts_index USING fts5 (text, content = 'texts', content_rowid = 'step', tokenize = 'trigram');
"""
"""Only where SQLite has FTS5 with trigrams (3.34); else texts are searched by reading them."""


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
    if application != APPLICATION_ID and (application or tables):
        raise UsageError(f"{path} is the database of another program.", "Choose another folder with --data.")


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise UsageError(
            f"The store {path} was written by a newer claudescope.", "Upgrade claudescope or choose another --data."
        )
    if 0 < version < VERSION:
        raise UsageError(
            f"The store {path} was written by an older claudescope.",
            f"Type once: claudescope up --data {path.parent}",
        )
    if version == 0:
        create(db)
    else:
        _complete(db)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA cache_size = -16384")
    db.execute("PRAGMA wal_autocheckpoint = 8192")
    db.execute("PRAGMA temp_store = MEMORY")


def create(db: sqlite3.Connection, version: int = VERSION, tables: bool = True) -> None:
    """Makes the tables in an empty file and signs it with a version; without ``tables`` only the latter."""
    made = ""
    if tables:
        db.execute("PRAGMA page_size = 4096")
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        made = _SCHEMA + (_TEXT_INDEX if _has_trigrams(db) else "")
    db.executescript(
        f"BEGIN IMMEDIATE; {made} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version}; COMMIT;"
    )


def _complete(db: sqlite3.Connection) -> None:
    """Adds what a store of an earlier build of this version lacks; its calls then lack these figures."""
    there = {row[1] for row in db.execute("PRAGMA table_info(calls)")}
    for name, kind in (("labels", "TEXT"), ("limit_used", "REAL")):
        if there and name not in there:
            db.execute(f"ALTER TABLE calls ADD COLUMN {name} {kind}")


def bytes_in_use(db: sqlite3.Connection) -> int:
    """The size of the file without its free pages."""
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    (free,) = db.execute("PRAGMA freelist_count").fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)


def _has_trigrams(db: sqlite3.Connection) -> bool:
    """Whether this SQLite can search texts by an index."""
    try:
        db.execute("CREATE VIRTUAL TABLE temp.probe USING fts5 (text, tokenize = 'trigram')")
    except sqlite3.Error:
        return False
    db.execute("DROP TABLE temp.probe")
    return True


def connect_reader(folder: Path) -> sqlite3.Connection:
    """A connection that only reads."""
    uri = (folder / FILE_NAME).absolute().as_uri() + "?mode=ro"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA query_only = ON")
    db.execute("PRAGMA cache_size = -8192")
    db.create_function("label_of", 2, label_of, deterministic=True)
    db.row_factory = sqlite3.Row
    return db
