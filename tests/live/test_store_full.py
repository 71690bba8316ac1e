"""No room on the disk, and stores that are damaged."""

from __future__ import annotations

import contextlib
import os
import resource
import sqlite3
import time
from pathlib import Path

import pytest
from live_kit import Client, Sender, ServerProcess, Stream
from store_kit import job, open_store

from claudescope import semconv
from claudescope.errors import UsageError
from claudescope.live.store import writer as writer_module
from claudescope.live.store.schema import FILE_NAME, connect
from claudescope.live.store.writer import StoreError, Writer


def padded(size: int = 20_000) -> tuple[Sender, bytes]:
    sender = Sender()
    trace = os.urandom(16)
    sender.step(0, {"padding": os.urandom(size // 2).hex(), semconv.CHAIN_ID: trace.hex()}, trace=trace)
    return sender, trace


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the limit of another process is set on Linux only")
def test_a_full_disk_refuses_loses_nothing_and_goes_on(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    live = Client(server.url)
    pid = server.process.pid
    acknowledged: list[bytes] = []
    sender, trace = padded()
    live.send(sender)
    acknowledged.append(trace)
    log = tmp_path / f"{FILE_NAME}-wal"
    # no file grows from now on: what write() then says is what it says of a full disk, in other words
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (log.stat().st_size + 50_000, resource.RLIM_INFINITY))
    refused = None
    for _ in range(40):
        sender, trace = padded()
        answer = live.post(sender.body())
        if answer.status != 200:
            refused = answer
            break
        acknowledged.append(trace)
    assert refused is not None
    assert refused.status == 503
    assert refused.headers["retry-after"] == "5"
    for _ in range(3):  # reading goes on, and says what the matter is
        assert len(live.items("/api/runs?limit=1000")) == len(acknowledged)
        assert live.get(f"/api/traces/{acknowledged[0].hex()}").status == 200
        assert live.post(sender.body()).status == 503
    stream = Stream(live.url)
    assert stream.next("stats")[1]["store_error"]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    until = time.monotonic() + 30
    while stream.next("stats")[1]["store_error"]:  # found out without anybody writing
        assert time.monotonic() < until
    stream.close()
    live.send(sender)  # the same batch again
    acknowledged.append(trace)
    os.kill(pid, 9)
    server.process.communicate(timeout=20)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE_NAME)) as db:
        stored = {row[0] for row in db.execute("SELECT trace_id FROM spans")}
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert stored == set(acknowledged)


def test_a_full_file_fails_and_recovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_PROBE", 0.02)
    db = connect(tmp_path)
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    writer = Writer(db, lambda finish: finish())
    try:
        db.execute(f"PRAGMA max_page_count = {pages + 8}")
        with pytest.raises(StoreError, match="full"):
            writer.submit(job(padded(200_000)[0])).result(10)
        assert writer.failing == "database or disk is full"
        until = time.monotonic() + 20  # a little still fits: it is tried without a request
        while writer.failing is not None and time.monotonic() < until:
            time.sleep(0.01)
        assert writer.failing is None
        assert len(writer.submit(job(padded(500)[0])).result(10).steps) == 1
    finally:
        writer.close()


@pytest.mark.parametrize("keep", [100, 4096, 20_000])
def test_half_a_store_is_refused(tmp_path: Path, keep: int) -> None:
    from claudescope.live.server import LiveServer
    from claudescope.settings import Settings

    with open_store(tmp_path) as store:
        store.write(padded()[0])
        store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    file = tmp_path / FILE_NAME
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(UsageError, match=r"cannot be opened|is damaged") as caught:
        LiveServer(Settings({"port": 0, "grpc_port": 0, "data": tmp_path}))
    assert "--data" in str(caught.value.fix)


def test_a_second_server_is_told_who_has_the_folder(tmp_path: Path) -> None:
    first = ServerProcess(tmp_path)
    try:
        second = ServerProcess(tmp_path)
        _, errors = second.process.communicate(timeout=60)
        assert second.process.returncode != 0
        assert f"The data folder {tmp_path} is in use by process {first.process.pid} at {first.url}." in errors
    finally:
        first.end()
