"""The latest metric points of each sender: exact values, restarts, delta, what does not fit, and what is bounded."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from claudescope import semconv
from claudescope.live.receiver.points import IDLE_S, Count, Distribution, Exemplar, Points, Series

CUMULATIVE, DELTA = 2, 1


class Metrics:
    """One request of one sender."""

    def __init__(self, **resource: str) -> None:
        self.request = ExportMetricsServiceRequest()
        metrics = self.request.resource_metrics.add()
        for key, value in (resource or {"service_name": "app"}).items():
            metrics.resource.attributes.add(key=key.replace("_", ".")).value.string_value = value
        self._metrics = metrics.scope_metrics.add().metrics

    def count(self, value: float, time_ns: int = 0, temporality: int = CUMULATIVE, **labels: str) -> Metrics:
        metric = self._metrics.add(name=semconv.STEPS.name, unit=semconv.STEPS.unit)
        metric.sum.aggregation_temporality = temporality
        point = metric.sum.data_points.add(as_double=value, time_unix_nano=time_ns)
        for key, text in labels.items():
            point.attributes.add(key=key).value.string_value = text
        return self

    def histogram(
        self,
        counts: Sequence[int],
        bounds: Sequence[float] = (0.1, 1),
        total: float | None = 1.5,
        time_ns: int = 0,
        temporality: int = CUMULATIVE,
        exemplars: Sequence[tuple[float, bytes]] = (),
    ) -> Metrics:
        metric = self._metrics.add(name=semconv.STEP_DURATION.name, unit="s")
        metric.histogram.aggregation_temporality = temporality
        point = metric.histogram.data_points.add(
            count=sum(counts), bucket_counts=counts, explicit_bounds=bounds, time_unix_nano=time_ns
        )
        if total is not None:
            point.sum = total
        for value, trace in exemplars:
            point.exemplars.add(as_double=value, trace_id=trace, span_id=b"\2" * 8, time_unix_nano=3_000_000_000)
        return self


def only(points: Points, name: str = semconv.STEPS.name) -> Series:
    (series,) = points.families()[name]
    return series


def test_the_latest_of_a_series_stands() -> None:
    points = Points()
    for value, at in ((3.0, 10), (50.0, 20), (40.0, 15), (50.0, 20)):  # the third was overtaken, the last came twice
        assert points.read(Metrics().count(value, at, a="b").request) == 0
    assert only(points) == Series({"service.name": "app"}, {"a": "b"}, Count(50.0, None))
    points.read(Metrics().count(2, 30, a="b").request)  # the sender began anew
    assert only(points).point == Count(2.0, None)


def test_histograms_are_kept_exactly_and_delta_is_added_up() -> None:
    points = Points()
    points.read(Metrics().histogram([1, 2, 3], time_ns=5).request)
    points.read(Metrics().histogram([2, 2, 4], total=9.25, time_ns=6).request)
    assert only(points, semconv.STEP_DURATION.name).point == Distribution((0.1, 1.0), (2, 2, 4), 9.25, {})
    points = Points()
    for at in (5, 6, 6):  # the third is the second again
        points.read(Metrics().histogram([1, 0, 2], time_ns=at, temporality=DELTA).count(2, at, DELTA).request)
    assert only(points, semconv.STEP_DURATION.name).point == Distribution((0.1, 1.0), (2, 0, 4), 3.0, {})
    assert only(points).point == Count(4.0, None)
    points.read(Metrics().histogram([5], (), time_ns=7, temporality=DELTA).request)  # other bounds start afresh
    assert only(points, semconv.STEP_DURATION.name).point == Distribution((), (5,), 1.5, {})


def test_exemplars_are_the_latest_of_each_bucket() -> None:
    points = Points()
    one, two = b"\1" * 16, b"\3" * 16
    points.read(Metrics().histogram([1, 1, 0], time_ns=1, exemplars=[(0.1, one), (0.5, one)]).request)
    points.read(Metrics().histogram([1, 1, 1], time_ns=2, exemplars=[(7.0, two), (float("nan"), two)]).request)
    point = only(points, semconv.STEP_DURATION.name).point
    assert isinstance(point, Distribution)
    spans = {"span_id": "02" * 8}
    assert point.exemplars == {
        0: Exemplar(0.1, 3.0, {"trace_id": "01" * 16, **spans}),  # bounds are inclusive
        1: Exemplar(0.5, 3.0, {"trace_id": "01" * 16, **spans}),
        2: Exemplar(7.0, 3.0, {"trace_id": "03" * 16, **spans}),
    }


def test_an_exemplar_has_its_attributes_while_they_are_short() -> None:
    points = Points()
    for text, kept in (("x", True), ("x" * 128, False)):
        metrics = Metrics().count(1, a=text)
        (metric,) = metrics.request.resource_metrics[0].scope_metrics[0].metrics
        exemplar = metric.sum.data_points[0].exemplars.add(as_int=1, trace_id=b"\1" * 16, span_id=b"\2" * 8)
        exemplar.filtered_attributes.add(key="team").value.string_value = text
        points.read(metrics.request)
        point = points.families()[semconv.STEPS.name][-1].point
        assert isinstance(point, Count)
        assert point.exemplar is not None
        assert ("team" in point.exemplar.labels) == kept


@pytest.mark.parametrize(
    "metrics",
    [
        Metrics().histogram([1, 2]),  # counts of three buckets are needed
        Metrics().histogram([1, 1, 1], (1, 1)),
        Metrics().histogram([1, 1, 1], (1, float("inf"))),
        Metrics().histogram([1, 1, 1], total=float("nan")),
        Metrics().histogram([0] * 200, range(199)),
        Metrics(service_name="x" * 5000).histogram([1, 1, 1]),
    ],
)
def test_histograms_that_do_not_fit_are_told(metrics: Metrics) -> None:
    points = Points()
    assert points.read(metrics.request) == 1
    assert (len(points), points.refused) == (0, 1)


def test_a_histogram_whose_count_is_not_that_of_its_buckets_is_told() -> None:
    metrics = Metrics().histogram([1, 1, 1])
    metrics.request.resource_metrics[0].scope_metrics[0].metrics[0].histogram.data_points[0].count = 4
    assert Points().read(metrics.request) == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_bad_counters_are_left_out_and_told_by_the_counters(value: float) -> None:
    points = Points()
    assert points.read(Metrics().count(value).request) == 0
    assert (len(points), points.refused) == (0, 1)


def test_other_metrics_other_units_and_other_types_are_left_out() -> None:
    points = Points()
    request = Metrics().request
    metrics = request.resource_metrics[0].scope_metrics[0].metrics
    metrics.add(name="http.server.request.duration", unit="s").histogram.data_points.add(count=1, bucket_counts=[1])
    metrics.add(name=semconv.STEP_DURATION.name, unit="ms").histogram.data_points.add(count=1, bucket_counts=[1])
    metrics.add(name=semconv.STEP_DURATION.name, unit="s").exponential_histogram.data_points.add(count=1)
    metrics.add(name=semconv.STEPS.name).gauge.data_points.add(as_int=1)
    assert points.read(request) == 0
    assert (points.families(), points.refused) == ({}, 0)


def test_a_series_ends_when_its_sender_says_so_or_says_nothing_for_an_hour() -> None:
    now = 0.0
    points = Points(lambda: now)
    points.read(Metrics().count(1, 1, a="b").count(1, 1, a="c").request)
    ended = Metrics().count(0, 2, a="b")
    ended.request.resource_metrics[0].scope_metrics[0].metrics[0].sum.data_points[0].flags = 1
    points.read(ended.request)
    assert only(points).attributes == {"a": "c"}
    now = IDLE_S - 1
    assert len(points.families()) == 1
    now = IDLE_S
    assert points.families() == {}


def test_the_number_of_series_is_bounded_and_quiet_ones_make_room() -> None:
    now = 0.0
    points = Points(lambda: now, max_series=2)
    points.read(Metrics().count(1, 1, a="1").count(1, 1, a="2").count(1, 1, a="3").request)
    assert (len(points), points.refused) == (2, 1)
    now = 299.0
    points.read(Metrics().count(2, 2, a="1").request)
    now = 300.0
    points.read(Metrics().count(1, 2, a="3").request)
    assert [series.attributes["a"] for series in points.families()[semconv.STEPS.name]] == ["1", "3"]


def test_senders_are_told_apart_by_their_whole_resource() -> None:
    points = Points()
    for instance in ("i", "j"):
        points.read(Metrics(service_name="app", service_instance_id=instance).count(1).request)
    points.read(Metrics(other="x").count(5).request)
    found = [series.resource for series in points.families()[semconv.STEPS.name]]
    assert found == [
        {"service.name": "app", "service.instance.id": "i"},
        {"service.name": "app", "service.instance.id": "j"},
        {"service.name": "unknown_service", "other": "x"},
    ]


def test_what_a_process_is_doing_is_forgotten_soon_and_what_it_has_counted_is_not() -> None:
    now = 0.0
    points = Points(clock=lambda: now)
    both = Metrics().count(5)
    active = both._metrics.add(name=semconv.ACTIVE_CALLS.name, unit=semconv.ACTIVE_CALLS.unit)
    active.sum.aggregation_temporality = CUMULATIVE
    active.sum.data_points.add(as_int=2, time_unix_nano=1)
    points.read(both.request)
    assert only(points, semconv.ACTIVE_CALLS.name).point == Count(2.0, None)
    now = 299.0
    assert only(points, semconv.ACTIVE_CALLS.name).point == Count(2.0, None)
    now = 300.0
    assert points.families().keys() == {semconv.STEPS.name}
