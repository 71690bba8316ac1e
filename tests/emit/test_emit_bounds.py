"""Counts of steps beyond bounds that are no bucket boundary: exact at the bound, and 0 before they count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metrics_bench import MODEL, Bench, make_call, make_step

from claudescope import semconv
from claudescope.errors import UsageError
from claudescope.setting_values import latencies, shares
from claudescope.settings import Settings

S = 1_000_000_000


def counts(bench, name):
    """(kind, bound, beyond) -> number, of one model."""
    keys = (semconv.STEP_KIND, semconv.STEP_BOUND, semconv.STEP_BEYOND)
    return {tuple(point.attributes[key] for key in keys): point.value for point in bench.points(name)}


def test_a_step_is_over_a_bound_only_when_it_is_longer():
    """Of 350 ms and 1.2 s: one nanosecond less, the bound itself, and one more."""
    bench = Bench(step_bounds=(0.35, 1.2))
    for bound in (350_000_000, 1_200_000_000):
        for nanoseconds in (bound - 1, bound, bound + 1):
            bench.step(make_step(nanoseconds=nanoseconds), make_call())
    assert counts(bench, "claudescope.step.over") == {
        ("text", "0.35", "true"): 4,  # one of the first three, all of the others
        ("text", "0.35", "false"): 2,
        ("text", "1.2", "true"): 1,
        ("text", "1.2", "false"): 5,
    }


def test_a_step_is_below_a_bound_only_when_its_confidence_is_less_and_known():
    bench = Bench(confidence_bounds=(0.75,))
    for confidence in (0.7499999, 0.75, 0.7500001, None):
        step = make_step()
        step.confidence = confidence
        bench.step(step, make_call())
    assert counts(bench, "claudescope.step.below") == {("text", "0.75", "true"): 1, ("text", "0.75", "false"): 2}


def test_labels_are_those_of_the_steps_and_of_their_time():
    bench = Bench(labels=("tier",), step_bounds=(0.2,), confidence_bounds=(0.5,))
    step = make_step(index=17, kind="tool_run", tool_name="search", labels={"tier": "gold"})
    step.confidence = 0.4
    bench.step(step, make_call())
    common = {
        "gen_ai.request.model": MODEL,
        "claudescope.step.kind": "tool_run",
        "claudescope.step.index": "16+",
        "gen_ai.tool.name": "search",
        "claudescope.label.tier": "gold",
    }
    over, below = bench.points("claudescope.step.over"), bench.points("claudescope.step.below")
    assert [dict(point.attributes) for point in over if point.value] == [
        {
            **common,
            "claudescope.step.latency.source": "measured",
            "claudescope.step.bound": "0.2",
            "claudescope.step.beyond": "true",
        }
    ]
    assert [dict(point.attributes) for point in below if point.value] == [
        {**common, "claudescope.step.bound": "0.5", "claudescope.step.beyond": "true"}
    ]


@pytest.mark.parametrize("source", ["consumer", None])
def test_the_apps_own_time_and_no_time_at_all_are_left_out(source):
    bench = Bench(step_bounds=(0.2,))
    bench.step(make_step(latency_source=source), make_call())
    assert bench.points("claudescope.step.over") == []


def test_both_series_of_each_bound_are_0_before_the_first_count():
    bench = Bench(step_bounds=(0.2, 5.0), confidence_bounds=(0.5,))
    step = make_step()
    step.confidence = 0.4
    bench.step(step, make_call())
    for name, bounds in (("claudescope.step.over", ("0.2", "5")), ("claudescope.step.below", ("0.5",))):
        zeros = {("text", bound, beyond): 0 for bound in bounds for beyond in ("true", "false")}
        assert zeros in [birth.get(name) for birth in bench.births]
    born = len(bench.births)
    bench.step(make_step(), make_call())
    assert len(bench.births) == born
    bench.step(make_step(latency_source="apportioned"), make_call())
    assert len(bench.births) == born + 1


def test_without_bounds_there_are_no_such_metrics():
    bench = Bench()
    bench.step(make_step(), make_call())
    assert bench.points("claudescope.step.over") == bench.points("claudescope.step.below") == []


# ------------------------------------------------------------------------------ the settings


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("1.2s,350ms", (0.35, 1.2)),
        ("", ()),
        (" 5 S , ", (5.0,)),
        ("5,5s,5000ms", (5.0,)),
        ("0.1m", (6.0,)),
        ("1.1ms", (0.0011,)),
        (["1s", 2], (1.0, 2.0)),
        (0.8, (0.8,)),
    ],
)
def test_step_bounds_are_seconds_and_grow(written, seconds):
    assert latencies(5)(written) == seconds


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("1x", "'1x' is none"),
        ("0s", "'0s' is none"),
        ("-1s", "'-1s' is none"),
        ("nan", "'nan' is none"),
        ("1e999s", "'1e999s' is none"),
        ("1e-999s", "'1e-999s' is none"),
        ("25h", "'25h' is none"),
        ("1s;2s", "'1s;2s' is none"),
        ("1,2,3,4,5,6", "these are 6"),
    ],
)
def test_no_step_bounds_are_refused_by_name(written, named):
    with pytest.raises(UsageError) as refused:
        Settings.load(environ={"CLAUDESCOPE_STEP_BOUNDS": written})
    told = str(refused.value)
    assert told.startswith(f"CLAUDESCOPE_STEP_BOUNDS is {written!r}.")
    assert "at most 5 times" in told
    assert named in told


def test_confidence_bounds():
    assert shares(5)("0.75, .6") == (0.6, 0.75)
    for written in ("0", "1.01", "75%", "x", "-0.5", ".1,.2,.3,.4,.5,.6"):
        with pytest.raises(UsageError, match="CLAUDESCOPE_CONFIDENCE_BOUNDS is"):
            Settings.load(environ={"CLAUDESCOPE_CONFIDENCE_BOUNDS": written})


@given(st.text(max_size=40))
def test_whatever_is_written_gives_bounds_or_says_what_it_takes(written):
    for parse, most in ((latencies(5), 86_400), (shares(5), 1)):
        try:
            found = parse(written)
        except ValueError:
            continue
        assert len(found) <= 5
        assert list(found) == sorted(set(found))
        assert all(0 < bound <= most for bound in found)


@given(st.floats(min_value=1e-9, max_value=86_400))
def test_the_label_of_a_bound_is_the_number_in_plain_digits(bound):
    label = semconv.bound_label(bound)
    assert float(label) == bound
    assert "e" not in label.lower()
    assert latencies(5)(label) == (bound,)
