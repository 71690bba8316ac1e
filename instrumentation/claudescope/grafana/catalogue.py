"""All dashboards, in the order in which one reads them, and the text of their files."""

from __future__ import annotations

import json

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from ..prices import Prices
from . import objectives, overview, pipeline_health, quality, steps, tokens, tools

__all__ = ["dashboards", "encoded"]


def dashboards(prices: Prices) -> dict[str, Dashboard]:
    """Uid -> dashboard."""
    return {
        overview.UID: overview.dashboard(),
        objectives.UID: objectives.dashboard(),
        steps.UID: steps.dashboard(),
        quality.UID: quality.dashboard(),
        tools.UID: tools.dashboard(),
        tokens.UID: tokens.dashboard(prices),
        pipeline_health.UID: pipeline_health.dashboard(),
    }


def encoded(dashboard: Dashboard) -> str:
    """Classic JSON, as the SDK writes it; the same for the same dashboard."""
    return json.dumps(dashboard, cls=JSONEncoder, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
