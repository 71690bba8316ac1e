"""Where rules are to run, and what is missing there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["DIALECTS", "PROMETHEUS_2_42", "PROMETHEUS_3", "Dialect"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """A version of Prometheus by what of it the rules may use."""

    version: str
    native_histograms: bool = True
    """``histogram_fraction`` on histograms that are not made of buckets, also in unit tests."""


PROMETHEUS_3: Final = Dialect("3")
PROMETHEUS_2_42: Final = Dialect("2.42", native_histograms=False)
DIALECTS: Final = {dialect.version: dialect for dialect in (PROMETHEUS_3, PROMETHEUS_2_42)}
