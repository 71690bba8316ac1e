"""What a server has seen, in four lines: read from its API."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Summary", "read_summary"]

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the server is on this machine


@dataclass(frozen=True)
class Summary:
    """Counts of runs, steps and invalid steps, and the slowest step's record, None without steps."""

    runs: int
    steps: int
    invalid: int
    slowest: dict[str, Any] | None

    def __str__(self) -> str:
        lines = [f"runs     {self.runs}", f"steps    {self.steps}", f"invalid  {self.invalid}"]
        if self.slowest is not None:
            step = self.slowest
            lines.append(
                f"slowest  {step['latency_us'] / 1e6:.2f} s: step {step['step_index']} ({step['kind']},"
                f" {step['latency_source']}) of run {step['run_id'][:8]}"
            )
        return "\n".join(lines)


def read_summary(url: str) -> Summary:
    """Asks the server at ``url``. Raises OSError when it does not answer."""
    runs: set[str] = set()
    steps = invalid = 0
    slowest: dict[str, Any] | None = None
    for step in _items(f"{url}/api/steps"):
        runs.add(step["run_id"])
        steps += 1
        invalid += step["is_valid"] is False
        if slowest is None or step["latency_us"] > slowest["latency_us"]:
            slowest = step
    return Summary(len(runs), steps, invalid, slowest)


def _items(url: str) -> Iterator[dict[str, Any]]:
    cursor = None
    while True:
        query = {"limit": "1000", **({"cursor": cursor} if cursor else {})}
        with _OPENER.open(f"{url}?{urllib.parse.urlencode(query)}", timeout=10) as answer:
            page = json.load(answer)
        yield from page["items"]
        cursor = page["next"]
        if not cursor:
            return
