from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_kit import Client, running
from objectives_kit import Receiver


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Client]:
    with running(tmp_path / "data") as client:
        yield client


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
