"""Query parameters: what each takes, and that every error names the one it is about."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudescope.live.filters import StepFilter
from claudescope.live.web import values
from claudescope.live.web.parameters import FILTER, PAGE, PERIOD, ParameterError, parse, read_filter


@given(st.text(max_size=40))
def test_any_text_is_a_value_or_a_value_error(text: str) -> None:
    for parameter in (*FILTER.values(), *PAGE.values(), *PERIOD.values()):
        try:
            parameter.kind.read(text)
        except ValueError as error:
            assert error.args  # noqa: PT017 - any other exception fails the test


@given(st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1)), st.integers(-14 * 60, 14 * 60))
def test_rfc_3339(at: datetime, offset: int) -> None:
    zoned = at.replace(tzinfo=timezone(timedelta(minutes=offset)))
    expected = (zoned - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(milliseconds=1)
    assert values.moment.read(zoned.isoformat()) == expected
    assert values.moment.read(zoned.isoformat().replace("+", " ")) == expected  # a plus that was not escaped
    if expected >= 0:
        assert values.moment.read(str(expected)) == expected


@pytest.mark.parametrize(
    "text", ["", "-1", "1e3", "2026-01-31", "2026-01-31T12:00:00", "2026-02-30T12:00:00Z", str(values.MAX_MS + 1)]
)
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match="RFC 3339"):
        values.moment.read(text)


@given(st.floats(0, 1))
def test_a_share_is_any_number_from_0_to_1(number: float) -> None:
    assert values.share.read(repr(number)) == number


@pytest.mark.parametrize("text", ["", "1.01", "-0.1", "nan", "inf", "1_0", " 1", "0x1", "٠", "1e999999999"])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        values.share.read(text)


def test_a_label_has_a_key_and_the_value_may_have_colons() -> None:
    assert values.pair.read("team:a:b") == ("team", "a:b")
    assert values.pair.read("team:") == ("team", "")
    for text in ("team", ":a", "k" * 257 + ":", "k:" + "v" * 257):
        with pytest.raises(ValueError, match="KEY:VALUE"):
            values.pair.read(text)


def test_a_filter_of_everything() -> None:
    query = [
        *(("service", "a"), ("service", "b"), ("model", "m"), ("kind", "text"), ("tool", "t"), ("check", "c")),
        *(("index", "0"), ("index", "16"), ("valid", "false"), ("valid", "unknown")),
        *(("confidence_min", "0.25"), ("confidence_max", "0.7"), ("confidence_known", "true")),
        *(("latency_min_us", "10"), ("latency_max_us", "20"), ("label", "team:x"), ("label", "team:y")),
        ("limit", "somebody else's"),
    ]
    assert read_filter(query) == StepFilter(
        service=frozenset({"a", "b"}),
        model=frozenset({"m"}),
        kind=frozenset({"text"}),
        tool=frozenset({"t"}),
        check=frozenset({"c"}),
        index=frozenset({0, 16}),
        valid=frozenset({False, None}),
        confidence_min=0.25,
        confidence_max=0.7,
        confidence_known=True,
        latency_min_us=10,
        latency_max_us=20,
        labels=frozenset({("team", "x"), ("team", "y")}),
    )
    assert read_filter([]) == StepFilter()


def test_every_field_of_a_filter_has_a_parameter() -> None:
    fields = {name.removesuffix("s") if name == "labels" else name for name in StepFilter.__dataclass_fields__}
    assert fields == set(FILTER)


@pytest.mark.parametrize(
    ("query", "name", "fix"),
    [
        ([("index", "17")], "index", "index takes a whole number from 0 to 16; 16 stands for 16 and all above."),
        ([("valid", "maybe")], "valid", "valid takes true, false or unknown."),
        ([("confidence_min", ".5")], "confidence_min", "confidence_min takes a number from 0 to 1."),
        (
            [("confidence_min", "0.7"), ("confidence_max", "0.7")],
            "confidence_max",
            "Give a confidence_max above confidence_min, or leave it out.",
        ),
        (
            [("latency_min_us", "7"), ("latency_max_us", "6")],
            "latency_max_us",
            "Give a latency_max_us above latency_min_us, or leave it out.",
        ),
        (
            [("confidence_known", "false"), ("confidence_min", "0")],
            "confidence_known",
            "Leave out confidence_known, or confidence_min and confidence_max.",
        ),
        (
            [("confidence_known", "true"), ("confidence_known", "true")],
            "confidence_known",
            "Give confidence_known once.",
        ),
    ],
)
def test_errors_of_a_filter(query: list[tuple[str, str]], name: str, fix: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read_filter(query)
    assert (caught.value.name, caught.value.fix) == (name, fix)
    assert name in caught.value.message


def test_unknown_parameters_are_told_with_the_nearest() -> None:
    with pytest.raises(ParameterError) as caught:
        parse([("limitt", "1")], PAGE)
    assert (caught.value.message, caught.value.fix) == ("'limitt' is not a parameter.", "Did you mean limit?")
    with pytest.raises(ParameterError) as caught:
        parse([("x" * 99, "1")], {})
    assert (len(caught.value.name), caught.value.fix) == (64, "It takes no parameters.")
