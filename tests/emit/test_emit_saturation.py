"""How near the API's limits an app is: the share used, calls in flight, and calls that ended."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metrics_bench import MODEL, Bench, make_call

from claudescope import semconv
from claudescope.emit.active_calls import ActiveCalls
from claudescope.emit.ratelimit import limit_used
from claudescope.steps.model import CallError


def headers(**limits):
    found = {}
    for kind, (limit, remaining) in limits.items():
        found[f"claudescope.ratelimit.{kind}.limit"] = limit
        found[f"claudescope.ratelimit.{kind}.remaining"] = remaining
    return found


@pytest.mark.parametrize(
    ("told", "used"),
    [
        (headers(), None),
        ({"anthropic.request.id": "req_1"}, None),
        (headers(requests=(1000, 999)), ("requests", 0.001)),
        (headers(requests=(1000, 900), tokens=(540_000, 54_000)), ("tokens", 0.9)),
        (headers(input_tokens=(100, 50), output_tokens=(10, 5)), ("input_tokens", 0.5)),  # the first of equal ones
        (headers(output_tokens=(90_000, 0)), ("output_tokens", 1.0)),
        (headers(requests=(0, 0)), None),
        (headers(requests=(50, 60)), ("requests", 0.0)),  # the API rounds what remains
        ({"claudescope.ratelimit.tokens.limit": 10}, None),
        ({"claudescope.ratelimit.tokens.remaining": 10}, None),
    ],
)
def test_the_limit_of_which_most_is_used(told, used):
    assert limit_used(told) == used


@given(st.integers(1, 10**9).flatmap(lambda limit: st.tuples(st.just(limit), st.integers(0, limit))))
def test_a_share_is_on_its_side_of_every_boundary(pair):
    """In whole numbers: (limit - remaining) / limit > b = n / 100 just where 100 (limit - remaining) > n limit."""
    limit, remaining = pair
    found = limit_used(headers(tokens=pair))
    assert found is not None
    for boundary in semconv.RATELIMIT_USED.boundaries:
        assert (found[1] > boundary) == (100 * (limit - remaining) > round(100 * boundary) * limit)


def test_one_record_a_call_at_its_place():
    """Of 1,000 requests: 100, 99 and 0 remain; .9 is in the bucket that ends there, more is above it."""
    bench = Bench()
    for remaining in (100, 99, 0):
        bench.call(make_call(headers=headers(requests=(1000, remaining))))
    bench.call(make_call(headers=headers(requests=(1000, 500), tokens=(1000, 200))))
    bench.call(make_call())
    found = {
        point.attributes["claudescope.ratelimit.kind"]: point for point in bench.points(semconv.RATELIMIT_USED.name)
    }
    assert {kind: point.bucket_counts for kind, point in found.items()} == {
        "requests": (0, 0, 0, 1, 1, 0, 1, 0),
        "tokens": (0, 0, 1, 0, 0, 0, 0, 0),
    }
    assert found["requests"].sum == pytest.approx(0.9 + 0.901 + 1)
    assert found["requests"].explicit_bounds == (0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
    assert dict(found["tokens"].attributes) == {"gen_ai.request.model": MODEL, "claudescope.ratelimit.kind": "tokens"}
    assert [(exemplar.trace_id, exemplar.span_id) for exemplar in found["tokens"].exemplars] == [(0x1234, 0x56)]


def test_calls_by_error_and_business_label_are_0_before_they_count():
    bench = Bench(labels=("tier",))
    births = []
    bench.meters._on_new_series = lambda: births.append([p.value for p in bench.points("claudescope.calls")])
    for error in (None, None, CallError("overloaded_error", 529), None, CallError("overloaded_error", 529)):
        bench.call(make_call(labels={"tier": "gold"}, error=error))
    common = {"gen_ai.operation.name": "chat", "gen_ai.request.model": MODEL, "claudescope.label.tier": "gold"}
    assert [(dict(point.attributes), point.value) for point in bench.points("claudescope.calls")] == [
        (common, 3),
        ({**common, "error.type": "overloaded_error"}, 2),
    ]
    assert births == [[0], [2, 0]]


def test_error_types_are_capped_at_fifty():
    bench = Bench()
    for number in range(60):
        bench.call(make_call(error=CallError(f"Error{number}")))
    found = {point.attributes["error.type"]: point.value for point in bench.points("claudescope.calls")}
    assert (len(found), found["Error49"], found["other"]) == (51, 1, 10)


def test_calls_in_flight_are_asked_at_each_collection_until_others_tell_them():
    flying = [3]
    bench = Bench(in_flight=lambda: flying[0])
    (point,) = bench.points("claudescope.active_calls")
    assert (point.value, dict(point.attributes)) == (3, {})
    flying[0] = 0
    assert [point.value for point in bench.points("claudescope.active_calls")] == [0]
    bench.meters.retire()
    assert bench.points("claudescope.active_calls") == []


def test_a_meter_that_is_no_key_has_its_instrument_all_the_same():
    class Meter:
        __hash__ = None
        made = None

        def create_observable_up_down_counter(self, name, callbacks, unit, description):
            self.made = (name, callbacks, unit)

    meter = Meter()
    active = ActiveCalls.of(meter)
    name, (callback,), unit = meter.made
    assert (name, unit, callback(None)) == ("claudescope.active_calls", "{call}", [])
    active.count = lambda: 2
    assert [observation.value for observation in callback(None)] == [2]
