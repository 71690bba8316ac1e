"""Collects the private meter provider's metrics at an interval and whenever asked, and hands them to the exporter.

The SDK's periodic reader restarts in a forked child, where it would go on sending the parent's counts under the
parent's identity, and its ``force_flush`` says True whatever happened. This one stays silent in a child.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk.metrics.export import MetricExporter, MetricReader, MetricsData

__all__ = ["IntervalReader", "interval"]

_logger = logging.getLogger(__name__)
_DEFAULT: Final = 60.0
_SHORT: Final = 5.0
_YOUNG: Final = 1.0
"""Seconds between collections in the first ``_SHORT`` ones, at intervals up to that. PromQL's ``increase`` adds half of
the mean time between samples at the end: with a few samples only, a process that lives briefly is counted a fifth up.
"""


def interval(env: Mapping[str, str]) -> float:
    """Seconds between collections: ``OTEL_METRIC_EXPORT_INTERVAL`` (ms), by default 60; a bad value is named once."""
    value = env.get("OTEL_METRIC_EXPORT_INTERVAL", "").strip()
    if not value:
        return _DEFAULT
    if value.isdigit() and int(value) > 0:
        return int(value) / 1000
    _logger.warning("OTEL_METRIC_EXPORT_INTERVAL=%s is not a whole number above 0; the default is used.", value)
    return _DEFAULT


class IntervalReader(MetricReader):
    """Exports every ``seconds`` (at first more often), at ``collect()``, and once more at shutdown."""

    def __init__(self, exporter: MetricExporter, seconds: float) -> None:
        super().__init__(
            preferred_temporality=exporter._preferred_temporality,
            preferred_aggregation=exporter._preferred_aggregation,
        )
        self.exporter: Final = exporter
        self._seconds = seconds
        self._pid = os.getpid()
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="claudescope-reader", daemon=True).start()

    def _run(self) -> None:
        began = time.monotonic()
        while not self._ended.wait(self._next(time.monotonic() - began)):
            try:
                self.collect()
            except Exception:
                _logger.exception("claudescope: collecting the metrics failed")

    def _next(self, age: float) -> float:
        """Seconds until the next collection, of a reader that is ``age`` seconds old."""
        young = self._seconds <= _SHORT and age < _SHORT
        return min(self._seconds, _YOUNG) if young else self._seconds

    def _receive_metrics(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> None:
        if os.getpid() == self._pid:
            with suppress_instrumentation():
                self.exporter.export(metrics_data, timeout_millis=timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """Collects a last time. The exporter is its owner's to shut down."""
        if not self._ended.is_set():
            self._ended.set()
            self.collect(timeout_millis)
