"""Series that plain queries count: what is bad matches both queries, what is good only the one of all events."""

from __future__ import annotations

import pytest

from claudescope.slo.objective import BadAndTotal
from claudescope.slo.rules.matching import labelled

W = "[{{.window}}]"


@pytest.mark.parametrize(
    ("bad", "total", "good_labels", "bad_labels"),
    [
        (f'rate(n{{code=~"5.."}}{W})', f"rate(n{W})", {}, {"code": "500"}),
        (
            f'sum(rate(n{{job="a",code=~"(5..|429)"}}{W}))',
            f'sum(rate(n{{job="a"}}{W}))',
            {"job": "a"},
            {"job": "a", "code": "500"},
        ),
        (f'sum by (x) (increase(n{{ok!="true"}}{W}))', f"sum by (x) (increase(n{W}))", {"ok": "true"}, {}),
        (f'sum(rate(n{{v=~"[ab]c.*"}}{W})) by (v)', f"sum(rate(n{W})) by (v)", {}, {"v": "ac"}),
        (
            f'rate(n{{p="a\\\\b",e!~"|no"}}{W})',
            f'rate(n{{p="a\\\\b"}}{W})',
            {"p": "a\\b"},
            {"p": "a\\b", "e": "x"},
        ),
    ],
)
def test_one_metric(bad, total, good_labels, bad_labels) -> None:
    good, failing = labelled(BadAndTotal(bad, total), {})
    assert (good.name, dict(good.labels), good.good, good.bad) == ("n", good_labels, True, False)
    assert (failing.name, dict(failing.labels), failing.good, failing.bad) == ("n", bad_labels, False, True)


def test_two_metrics_and_the_labels_of_a_group() -> None:
    both, failing = labelled(BadAndTotal(f'rate(b{{k="1"}}{W})', f"rate(t{W})"), {"m": "x"})
    assert (both.name, dict(both.labels), both.good, both.bad) == ("t", {"m": "x"}, True, True)
    assert (failing.name, dict(failing.labels), failing.good, failing.bad) == ("b", {"m": "x", "k": "1"}, False, True)


@pytest.mark.parametrize(
    ("bad", "total"),
    [
        (f"rate(n{W}) * 60", f"rate(n{W})"),
        (f"rate(n{W})", f"rate(n{W})"),  # all are bad: nothing is good
        (f'rate(n{{a="1"}}{W})', f'rate(n{{a="2"}}{W})'),  # nothing is both
        (f'rate(n{{a=~"q[0-9]{{7}}z"}}{W})', f"rate(n{W})"),  # a value that is not guessed
        (f'rate(b{{a=~"q[0-9]{{7}}z"}}{W})', f"rate(n{W})"),
        (f'rate(n{{a=~"(?P<x"}}{W})', f"rate(n{W})"),
        (f"rate(n{{a='1'}}{W})", f"rate(n{W})"),
    ],
)
def test_what_is_not_plain_has_none(bad, total) -> None:
    assert labelled(BadAndTotal(bad, total), {}) is None
