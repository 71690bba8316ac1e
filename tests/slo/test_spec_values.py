"""What single values may be, and what is said of others."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from claudescope.slo.spec import durations, numbers, scalars
from claudescope.slo.spec.document import Scalar
from claudescope.slo.window import CalendarPeriod, Window


def read(kind, text, plain=True):
    return TypeAdapter(kind).validate_python(Scalar(text, plain, 1))


def refusal(kind, text, plain=True):
    with pytest.raises(ValidationError) as raised:
        read(kind, text, plain)
    (error,) = raised.value.errors()
    return error["ctx"]["what"], error["ctx"]["fix"]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (numbers.Percent, "99.9", 99.9),
        (numbers.Percent, "99", 99.0),
        (numbers.Percent, "+9.99e1", 99.9),
        (numbers.Share, ".7", 0.7),
        (numbers.Share, "1", 1.0),
        (numbers.Share, "7e-1", 0.7),
        (numbers.Chance, "0.0001", 0.0001),
        (numbers.Chance, "off", 0.0),
        (numbers.Chance, "0", 0.0),
        (numbers.Whole, "10", 10),
        (numbers.Whole, "10.0", 10),
        (numbers.Whole, "0", 0),
        (numbers.Rate, "5000", 5000.0),
        (numbers.Number, "14.4", 14.4),
        (durations.Seconds, "800ms", 0.8),
        (durations.Seconds, "1.5s", 1.5),
        (durations.Seconds, "1m30s", 90.0),
        (durations.PositiveWindow, "5m", Window(300)),
        (durations.PositiveWindow, "1h30m", Window(5400)),
        (durations.PositiveWindow, "1.5h", Window(5400)),
        (durations.PositiveWindow, "1w", Window(604_800)),
        (durations.Moment, "0s", Window(0)),
        (durations.Moment, "0", Window(0)),
        (durations.WindowOrNever, "never", None),
        (durations.WindowOrNever, "15m", Window(900)),
        (durations.PeriodText, "30d", Window(2_592_000)),
        (durations.PeriodText, "4w", Window(2_419_200)),
        (durations.PeriodText, "week", CalendarPeriod("week")),
        (durations.PeriodText, "month", CalendarPeriod("month")),
        (durations.PeriodText, "quarter", CalendarPeriod("quarter")),
        (scalars.Flag, "true", True),
        (scalars.Flag, "No", False),
        (scalars.Flag, "on", True),
        (scalars.Text, "yes", "yes"),
        (scalars.Text, "007", "007"),
        (scalars.Text, "2024-01-01", "2024-01-01"),
        (scalars.Text, "~", ""),
        (scalars.Name, "99.9-percent", "99.9-percent"),
        (scalars.Name, "7", "7"),
        (scalars.Texts, "a", ("a",)),
        (scalars.Index, "16+", ("16+",)),
        (scalars.Query, "a[{{- .window -}}]", "a[{{.window}}]"),
        (scalars.Query, " a[{{ .window}}]\n", "a[{{.window}}]"),
    ],
)
def test_what_is_read(kind, text, value):
    found = read(kind, text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "what", "fix"),
    [
        (numbers.Percent, "-5", "is -5", "between 0 and 100"),
        (numbers.Percent, "0.5", "is 0.5, under one percent", "write 50."),
        (numbers.Percent, "1_0", "is 1_0", "Write 10."),
        (numbers.Percent, "1:30", "is '1:30', which is no number", "99.9"),
        (numbers.Percent, "99.9.9", "is '99.9.9', which is no number", "99.9"),
        (numbers.Percent, "1e999", "is 1e999", "99.9"),
        (numbers.Percent, "٩٩", "is '٩٩', which is no number", "99.9"),
        (numbers.Percent, "", "is empty", "99.9"),
        (numbers.Percent, "9" * 300, "has 300 characters", "at most 200"),
        (numbers.Share, "0", "is 0", "over 0 and at most 1"),
        (numbers.Share, "-1", "is -1", "over 0 and at most 1"),
        (numbers.Share, "80", "is 80, over 1", "write 0.8 for 80 %"),
        (numbers.Share, "12.5%", "is 12.5%", "0.125"),
        (numbers.Number, "5%", "is 5%", "14.4"),
        (numbers.Number, "0x10", "is '0x10', which is no number", "14.4"),
        (numbers.Rate, "5k", "is 5k", "write 5000."),
        (numbers.Rate, "20 qps", "is 20 qps", "write 20."),
        (numbers.Rate, "0", "is 0", "over 0"),
        (numbers.Whole, "1e12", "is 1e12", "whole number"),
        (numbers.Whole, "010", "is 010, which some read as an octal number", "Write 10."),
        (numbers.Chance, "0.5", "is 0.5", "0 (off) to 0.1"),
        (durations.Seconds, "0ms", "is no time at all", "800ms"),
        (durations.Seconds, "800 ms", "is '800 ms'", "Write 800ms."),
        (durations.Seconds, "1.5 seconds", "is '1.5 seconds'", "Write 1500ms."),
        (durations.Seconds, "-1s", "is '-1s', which is no duration", "800ms"),
        (durations.PositiveWindow, "0m", "is no time at all", "5m"),
        (durations.PositiveWindow, "30m1h", "is '30m1h'", "Write the larger unit first and each once: 90m."),
        (durations.PositiveWindow, "1h1h", "is '1h1h'", "Write the larger unit first and each once: 2h."),
        (durations.PositiveWindow, "500ms", "is 500ms", "whole seconds"),
        (durations.PositiveWindow, "1 hour 30 min", "is '1 hour 30 min'", "Write 90m."),
        (durations.PositiveWindow, "2H", "is '2H'", "Write 2h."),
        (durations.PositiveWindow, "5M", "is '5M'", "Write 5m for minutes"),
        (durations.PositiveWindow, "1y", "is '1y'", "Write days: 365d."),
        (durations.PositiveWindow, "999999d", "is 999999d", "over ten years"),
        (durations.PeriodText, "Quarterly", "is 'Quarterly'", "Write quarter."),
        (durations.PeriodText, "calendar month", "is 'calendar month'", "Write month."),
        (durations.PeriodText, "1Q", "is '1Q'", "90d"),
        (durations.PeriodText, "year", "is 'year'", "week, month, quarter or days"),
        (durations.PeriodText, "400d", "is 400d", "from 1d to 366d"),
        (scalars.Flag, "maybe", "is 'maybe'", "true or false"),
        (scalars.Name, "-a-", "is '-a-'", "write a."),
        (scalars.Name, "a" * 129, "has 129 characters", "at most 128"),
        (scalars.Name, "é", "is 'é'", "letter or digit."),
        (scalars.LabelName, "9a", "'9a' is no name of a label", "write _9a."),
        (scalars.LabelName, "__name__", "'__name__' is no name of a label", "no digit."),
        (scalars.Texts, "claude-*", "is 'claude-*', a pattern", "as a list"),
        (scalars.Index, "-1", "is '-1'", "0 to 15"),
        (scalars.Index, "07", "is '07'", "0 to 15"),
        (scalars.Index, "²", "is '²'", "0 to 15"),
        (scalars.Index, "2..4", "is '2..4'", "[2, 3, 4]"),
        (scalars.Query, " ", "is empty", "PromQL"),
    ],
)
def test_what_is_refused(kind, text, what, fix):
    said = refusal(kind, text)
    assert said[0] == what
    assert fix in said[1]


def test_quoted_numbers_and_truth_values_are_text():
    assert refusal(numbers.Percent, "99", plain=False) == ("is text, '99'", "Write a number without quotes: 99.")
    assert refusal(scalars.Flag, "yes", plain=False) == ("is text, 'yes'", "Write it without quotes: true.")
    assert read(scalars.Name, "99", plain=False) == "99"


def test_lists():
    values = [Scalar("a", True, 1), Scalar("2", True, 1)]
    assert TypeAdapter(scalars.Texts).validate_python(values) == ("a", "2")
    for wrong, what in (([], "is an empty list"), ([values[0]] * 2, "names a value twice"), ([values], "is a list")):
        with pytest.raises(ValidationError, match=what):
            TypeAdapter(scalars.Texts).validate_python(wrong)
    with pytest.raises(ValidationError, match="has an empty text"):
        TypeAdapter(scalars.Texts).validate_python([Scalar("", False, 1)])


@settings(deadline=None)
@given(st.integers(1, 10 * 366 * 86_400))
def test_every_window_reads_what_it_writes(seconds):
    assert read(durations.PositiveWindow, str(Window(seconds))) == Window(seconds)


@settings(deadline=None)
@given(st.text(max_size=30), st.booleans())
def test_any_text_is_read_or_refused(text, plain):
    for module in (numbers, durations, scalars):
        for name in module.__all__:
            kind = getattr(module, name)
            if not hasattr(kind, "__metadata__"):
                continue
            try:
                read(kind, text, plain)
            except ValidationError as error:
                assert [found["type"] for found in error.errors()] == ["spec"]  # noqa: PT017 - what is raised is told apart
