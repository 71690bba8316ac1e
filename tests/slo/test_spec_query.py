"""What is seen of a query, and how one without a window gets one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudescope.slo.spec import syntax
from claudescope.slo.spec.query import QueryError, examine, tokens
from claudescope.slo.spec.windowed import windowed

W = "[{{.window}}]"


@pytest.mark.parametrize(
    ("query", "unit", "groups"),
    [
        (f"sum(rate(a{W}))", "second", ()),
        (f"sum(irate(a{W}))", "second", ()),
        (f"sum(increase(a{W}))", "window", ()),
        (f"rate(a{W})", "second", None),
        (f'sum(rate(a{{code=~"5..|{{x"}}{W}))', "second", ()),
        (f"sum by (x, y) (rate(a{W} offset 5m))", "second", ("x", "y")),
        (f"sum(rate(a{W})) by (x)", "second", ("x",)),
        (f"sum by (x) ((rate(a{W})))", "second", ("x",)),
        (f"sum without (x) (rate(a{W}))", "second", None),
        (f"sum by (x) (rate(a{W})) - sum by (x) (rate(b{W}))", "second", ("x",)),
        (f"sum by (x) (rate(a{W})) - sum by (y) (rate(b{W}))", "second", None),
        (f"sum(sum by (x) (rate(a{W})))", "second", ()),  # the outer sum drops what the inner one keeps
        ("count_over_time((up == 0)[{{.window}}:30s])", "window", None),
        (f"histogram_count(sum(rate(a{W})))", "second", ()),
        (f"sum(changes(a{W})) or vector(0)", "window", ()),
        (f"# not a ) here\nsum(rate(a{W}))", "second", ()),
        (f"sum(rate(a{W})) + sum(increase(b{W}))", "mixed", ()),
    ],
)
def test_unit_and_groups(query, unit, groups):
    found = examine(query)
    assert found.unit == unit
    assert found.groups == (None if groups is None else frozenset(groups))


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (f"sum(rate(a{W})) * 60", "it has a *"),
        (f"sum(rate(a{W})) / 2", "it has a /"),
        (f"max by (x) (rate(a{W}))", "it takes the max and not the sum"),
        (f"sum(count by (x) (rate(a{W})))", "it takes the count and not the sum"),
        (f"sum(avg_over_time(a{W}))", "its window is in avg_over_time()"),
        ("sum(a:rate{{.window}})", "{{.window}} is in no function's range"),
        ("sum(a)", "{{.window}} is in no function's range"),
    ],
)
def test_why_a_unit_cannot_be_seen(query, reason):
    found = examine(query)
    assert (found.unit, found.reason) == (None, reason)


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("", "holds no query"),
        ("# nothing", "holds no query"),
        ("sum(a", "opens a ( that it never closes"),
        ("sum(a))", "closes a ) that it does not open"),
        ("a[5m)", "closes a ) that it does not open"),
        ('a{b="c}', "has a quotation mark that is never closed"),
        ("a{b='c\n'}", "has a quotation mark that is never closed"),
        ("a[{{.range}}]", "has {{.range}}"),
        ("a[{{ if .window }}", "has {{ if .window }}"),
        ("a ; b", "has ';', which PromQL does not know"),
    ],
)
def test_what_prometheus_would_not_read(query, what):
    with pytest.raises(QueryError) as raised:
        examine(query)
    assert raised.value.what == what
    assert raised.value.fix


def refused(read: Callable[[], object]) -> bool:
    """Whether it is, with what and how."""
    try:
        read()
    except QueryError as error:
        return bool(error.what and error.fix)
    return False


@settings(deadline=None)
@given(st.text("ab(){}[]\"'` \n,+-*/=~!<>#\\0159m:sumratebywithout" + W, max_size=60))
def test_any_text_is_examined_or_refused(text):
    if not refused(lambda: examine(text)):
        assert examine(text).windows == sum(token.kind == "window" for token in tokens(text))


@settings(deadline=None)
@given(st.text("ab(){}[]\"' ,+-\n5m:sumby", max_size=40), st.booleans())
def test_any_text_gets_a_window_or_is_refused(text, counter):
    if not refused(lambda: windowed(text, counter)):
        assert examine(windowed(text, counter)).windows


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("a", f"sum(rate(a{W}))"),
        ('a{code="500"}', f'sum(rate(a{{code="500"}}{W}))'),
        ('sum(a{code=~"(5..)"})', f'sum(rate(a{{code=~"(5..)"}}{W}))'),
        ("sum by (region) (a)", f"sum by (region) (rate(a{W}))"),
        ("sum(a) by (region)", f"sum(rate(a{W})) by (region)"),
        ("sum(a) - sum(b)", f"sum(rate(a{W})) - sum(rate(b{W}))"),
        ("a - b", f"sum(rate(a{W}) - rate(b{W}))"),
        ("sum(rate(a[5m]))", f"sum(rate(a{W}))"),
        ("sum(rate(a[5m])) - sum(rate(b[5m]))", f"sum(rate(a{W})) - sum(rate(b{W}))"),
        (f"sum(rate(a{W}))", f"sum(rate(a{W}))"),
    ],
)
def test_a_counter_gets_a_window(query, found):
    assert windowed(query, counter=True) == found


@pytest.mark.parametrize(
    ("query", "counter", "what"),
    [
        ("sum(a)", False, "has no window"),
        ("max(a)", True, "is a counter's, and has max()"),
        ("sum(a) * 2", True, "is a counter's, and has *"),
        ("1", True, "is a counter's, and has 1"),
        ("()", True, "names no metric"),
        ("rate(a[5m]) - rate(b[1h])", True, "has ranges of 1h and 5m"),
        ("a{b", True, "opens a { that it never closes"),
        ("sum by (a", True, "opens a ( that it never closes"),
    ],
)
def test_a_window_that_cannot_be_had(query, counter, what):
    with pytest.raises(QueryError) as raised:
        windowed(query, counter)
    assert raised.value.what == what
    assert "{{.window}}" in raised.value.fix or "bracket" in raised.value.fix


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (f"sum(rate(a{W}))", False),
        (f"new_function_of_prometheus(rate(a{W}))", False),
        (f"rate(a{W} anchored)", False),
        (f"rate(a{{b=~5}}{W})", True),
        (f"sum rate(a{W})", True),
        (f"rate(a{W}) + +", True),
    ],
)
def test_the_parser_is_asked(query, says):
    pytest.importorskip("promql_parser", reason="the extra dashboards is not installed")
    assert bool(syntax.complaint(query)) == says


def test_without_the_parser_nothing_is_said(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "promql_parser", None)
    syntax.complaint.cache_clear()
    assert syntax.complaint("sum rate(a)") == ""
    syntax.complaint.cache_clear()
