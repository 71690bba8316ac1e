"""The links of Jaeger's page to Grafana: they hold the address at which a browser has Grafana, which is a variable.

Jaeger reads its page's configuration without variables, so ``stack init`` writes the address into it.
"""

from __future__ import annotations

import json
import re
from typing import Final

__all__ = ["JAEGER_UI", "grafana_of", "with_grafana"]

JAEGER_UI: Final = "collector/jaeger-ui.json"
_LINK: Final = re.compile(r'("url": ")([^"]*?)(?=/d/claudescope-)')


def with_grafana(text: str, url: str) -> str:
    """The configuration with its links to the Grafana at ``url``."""
    quoted = json.dumps(url.rstrip("/"))[1:-1]
    return _LINK.sub(lambda found: f"{found[1]}{quoted}", text)


def grafana_of(text: str) -> str:
    """The Grafana to which the first link leads; empty where there is none."""
    found = _LINK.search(text)
    return found[2] if found else ""
