"""The instrument that tells the calls in flight when it is asked, at each collection of a meter's provider."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from .. import semconv

__all__ = ["ActiveCalls"]


class ActiveCalls:
    """The instrument of one meter. A meter keeps it for ever, so ``of`` gives the same one for the same meter."""

    def __init__(self, meter: Meter) -> None:
        self.count: Callable[[], int] | None = None
        """Tells the calls in flight, on any thread; None: nobody does."""
        metric = semconv.ACTIVE_CALLS
        meter.create_observable_up_down_counter(metric.name, [self._observe], metric.unit, metric.brief)

    @classmethod
    def of(cls, meter: Meter) -> ActiveCalls:
        """The one of ``meter``: a second registration would be ignored, or count everything twice."""
        try:
            found = _known.get(meter)
            if found is None:
                found = _known[meter] = cls(meter)
        except TypeError:  # a meter that is no key, or cannot be referred to weakly
            return cls(meter)
        return found

    def _observe(self, _: CallbackOptions) -> list[Observation]:
        count = self.count
        return [] if count is None else [Observation(count())]


_known: Final[weakref.WeakKeyDictionary[Meter, ActiveCalls]] = weakref.WeakKeyDictionary()
