from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from live_kit import Client, running


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Client]:
    with running(tmp_path / "data") as client:
        yield client
