"""An older store becomes one of this version: its spans are read and written anew, into a new file.

The old file is only read, and becomes the backup when the new one is whole; a process that is killed on the way leaves
the old store as it was, and the next start begins again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ...errors import UsageError
from ..records import Batch, read_spans
from .jobs import Job
from .runs import Costs
from .schema import APPLICATION_ID, FILE_NAME, create
from .tables import Tables

__all__ = ["BACKUP_NAME", "upgrade"]

BACKUP_NAME: Final = f"{FILE_NAME}.v1.backup"
_NEW_NAME: Final = f"{FILE_NAME}.new"
_OLD_VERSION: Final = 1
_GROUP: Final = 4 * 2**20
"""Bytes of one transaction, about."""
_QUIET: Final = 1.0
"""Seconds without a word."""


def upgrade(folder: Path, costs: Costs | None = None) -> bool:
    """Brings the store in ``folder`` to this version, where it is of an older one; returns whether it was.

    Says on standard error how far it is when that takes over a second. Raises UsageError when it cannot be done; the
    store is then as it was.
    """
    path, new = folder / FILE_NAME, folder / _NEW_NAME
    _remove(new)
    if not path.exists() or _version(path) != _OLD_VERSION:
        return False
    try:
        with contextlib.closing(_detached(path)) as old, contextlib.closing(_made(new)) as db:
            _copy(old, db, costs, path)
        _sync(new)
        _keep(path, folder / BACKUP_NAME)
        os.replace(new, path)
        _sync(folder)
    except (sqlite3.Error, OSError, DecodeError) as error:
        with contextlib.suppress(OSError):
            _remove(new)
        raise UsageError(
            f"The store {path} of an older claudescope cannot be converted: {error}.",
            "It is as it was. Make room for a second one of its size, or choose another folder with --data.",
        ) from None
    return True


def _remove(new: Path) -> None:
    for end in ("", "-journal", "-wal", "-shm"):
        Path(f"{new}{end}").unlink(missing_ok=True)


def _version(path: Path) -> int | None:
    """The version of a store of ours, or None: whoever opens it says what is wrong."""
    try:
        with contextlib.closing(sqlite3.connect(path)) as db:
            (application,) = db.execute("PRAGMA application_id").fetchone()
            (version,) = db.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error:
        return None
    return int(version) if application == APPLICATION_ID else None


def _detached(path: Path) -> sqlite3.Connection:
    """The old store with all of it in one file: what its log still held belongs to the backup."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        (mode,) = db.execute("PRAGMA journal_mode = DELETE").fetchone()
        if mode != "delete":
            raise sqlite3.OperationalError("another process reads it")
    except BaseException:
        db.close()
        raise
    return db


def _made(new: Path) -> sqlite3.Connection:
    db = sqlite3.connect(new, isolation_level=None)
    try:
        new.chmod(0o600)
        create(db, version=0)  # nobody takes it for a store until it is one
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA cache_size = -65536")
    except BaseException:
        db.close()
        raise
    return db


def _copy(old: sqlite3.Connection, db: sqlite3.Connection, costs: Costs | None, path: Path) -> None:
    (last,) = old.execute("SELECT coalesce(max(id), 0) FROM spans").fetchone()
    told = _Told(path)
    tables = Tables(db, costs)
    for done, jobs in _groups(old):
        db.execute("BEGIN")
        tables.write(jobs)
        db.execute("COMMIT")
        told.tell(min(done / max(1, last), 0.99))
    db.execute("ATTACH ? AS old", (str(path),))
    db.execute("BEGIN")
    db.execute(
        "UPDATE runs SET seen_ms = coalesce("
        "(SELECT seen_ms FROM old.runs AS before WHERE before.run_id = runs.run_id), seen_ms)"
    )
    db.execute("INSERT INTO events SELECT digest, trace_id, span_id, ts_ms, name, service, data FROM old.events")
    db.execute("INSERT INTO counters SELECT series, value, ts_ms FROM old.counters")
    db.execute("COMMIT")
    db.execute("DETACH old")
    create(db, tables=False)
    told.tell(1.0)


def _groups(old: sqlite3.Connection) -> Iterator[tuple[int, list[Job]]]:
    """The last row's id and the jobs of each transaction."""
    jobs: list[Job] = []
    size = done = 0
    for row in old.execute(
        "SELECT spans.id, resource, scope, data FROM spans JOIN sources ON sources.id = source ORDER BY spans.id"
    ):
        done, resource, scope, data = row
        request = ExportTraceServiceRequest()
        resource_spans = request.resource_spans.add()
        resource_spans.resource.ParseFromString(resource)
        scope_spans = resource_spans.scope_spans.add()
        scope_spans.ParseFromString(data)
        scope_spans.scope.ParseFromString(scope)
        batch = Batch()
        for _ in read_spans(request, batch):
            pass
        jobs.append(Job(batch=batch, size=batch.size))
        size += len(data)
        if size >= _GROUP:
            yield done, jobs
            jobs, size = [], 0
    if jobs:
        yield done, jobs


class _Told:
    """Says how far it is: nothing while that is quick, a line that changes on a terminal, else two lines."""

    def __init__(self, path: Path) -> None:
        self._what = f"claudescope: the store {path} is brought to this release's form, once"
        self._began = time.monotonic()
        self._spoke = False

    def tell(self, share: float) -> None:
        """``share`` of it is done."""
        if not self._spoke and time.monotonic() - self._began < _QUIET:
            return
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{self._what}: {share:4.0%}" + ("\n" if share >= 1 else ""))
        elif not self._spoke or share >= 1:
            sys.stderr.write(f"{self._what}: {share:.0%}\n")
        sys.stderr.flush()
        self._spoke = True


def _keep(path: Path, backup: Path) -> None:
    """A second name for the old file, or a copy where the file system has no such thing."""
    backup.unlink(missing_ok=True)
    try:
        os.link(path, backup)
    except OSError:
        shutil.copy2(path, backup)
        _sync(backup)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
