from __future__ import annotations

from typing import Any

import pytest
from compose_model import need_compose, resolve


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """docker-compose.yml with nothing set but the secrets."""
    need_compose()
    return resolve(tmp_path_factory.mktemp("compose"))
