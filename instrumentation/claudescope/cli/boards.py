"""The dashboards as text: made anew from the code, or read from a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..prices import Prices

__all__ = ["made", "missing", "read"]


def made(prices: Prices) -> dict[str, str]:
    """The text of each file by uid. Raises UsageError when the extra ``dashboards`` is not installed."""
    try:
        from ..grafana.catalogue import dashboards, encoded
    except ImportError as error:
        raise missing(error) from None
    return {uid: encoded(dashboard) for uid, dashboard in dashboards(prices).items()}


def missing(error: ImportError) -> UsageError:
    """What to install."""
    return UsageError(
        f"The dashboards' code needs packages that are not installed ({error.name or error}).",
        "Type pip install 'claudescope[dashboards]', on Python 3.11 or later.",
    )


def read(folder: Path) -> dict[Path, dict[str, Any]]:
    """The dashboards in ``folder`` or its ``json/``. Raises UsageError when there are none or one is no dashboard."""
    paths = sorted((folder / "json").glob("*.json")) or sorted(folder.glob("*.json"))
    if not paths:
        raise UsageError(f"There are no dashboards in {folder}.", "Name their folder, or build them first.")
    found = {}
    for path in paths:
        try:
            dashboard = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(f"{path} is no JSON: {error}.", "Correct or remove the file.") from None
        if not isinstance(dashboard, dict) or not isinstance(dashboard.get("panels"), list):
            raise UsageError(f"{path} is no dashboard in the classic form.", "Correct or remove the file.")
        found[path] = dashboard
    return found
