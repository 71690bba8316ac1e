"""Runs the queries of a dashboard on a Prometheus and says which have nothing to show."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from ..errors import UsageError
from .expressions import Expression, plain

__all__ = ["Prometheus"]

_TIMEOUT: Final = 30
_POINTS: Final = 120
_FINEST: Final = 15


class Prometheus:
    """A Prometheus, by its address. ``seconds`` is the time range that the queries are run over, until now."""

    def __init__(self, url: str, seconds: int) -> None:
        self._url = url.rstrip("/")
        self._seconds = seconds

    def without_data(self, queries: Iterable[Expression]) -> Iterator[tuple[Expression, str]]:
        """The queries that give no number, each as it was run; marks are left out. An error of Prometheus is no number.

        Raises UsageError when Prometheus does not answer.
        """
        for query in queries:
            if query.marks:
                continue
            text = plain(query.text, self._seconds)
            if not any(math.isfinite(value) for value in self._values(text, query)):
                yield query, text

    def _values(self, text: str, query: Expression) -> Iterator[float]:
        now = time.time()
        if query.instant:
            result = self._get("query", {"query": text, "time": now})
            yield from (float(series["value"][1]) for series in result)
        else:
            step = max(_FINEST, self._seconds // _POINTS)
            asked = {"query": text, "start": now - self._seconds, "end": now, "step": step}
            for series in self._get("query_range", asked):
                yield from (float(value) for _, value in series["values"])

    def _get(self, path: str, asked: dict[str, object]) -> list[Any]:
        request = Request(f"{self._url}/api/v1/{path}", urlencode(asked).encode(), method="POST")
        try:
            with urlopen(request, timeout=_TIMEOUT) as response:
                answer = json.load(response)
            found = answer["data"]["result"]
        except HTTPError as error:
            if error.code in (400, 422):  # the query itself: the wrong types, too many series, ...
                return []
            raise UsageError(f"Prometheus at {self._url} answers {error.code}.", "Correct --prometheus.") from None
        except (URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise UsageError(f"Prometheus at {self._url} does not answer: {reason}.", "Correct --prometheus.") from None
        except (ValueError, KeyError, TypeError):
            raise UsageError(f"What answers at {self._url} is no Prometheus.", "Correct --prometheus.") from None
        return found if isinstance(found, list) and all(isinstance(item, dict) for item in found) else []
