"""Whether Prometheus would read a query, asked of its parser where that is installed (extra ``dashboards``)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from .query import PLACEHOLDER, tokens

__all__ = ["complaint"]

_MOST_TOKENS: Final = 1000
"""Of what the parser is asked: it recurses without a limit, and some thousand brackets end the process."""
_NEWER: Final = re.compile(r"\b(anchored|smoothed)\b")
"""Words that the parser does not know yet, and Prometheus does."""


@lru_cache(maxsize=1024)
def complaint(query: str) -> str:
    """What is wrong with it, or nothing; of functions that are not known nothing, since Prometheus may be newer."""
    try:
        import promql_parser
    except ImportError:
        return ""
    if len(list(tokens(query))) > _MOST_TOKENS:
        return ""
    try:
        promql_parser.parse(query.replace(PLACEHOLDER, "5m"))
    except ValueError as error:
        said = str(error).strip().rstrip(".")
        return "" if "unknown function" in said or _NEWER.search(query) else said
    return ""
