"""The pages as HTML: each state has its words, and nothing of an alert is markup."""

from __future__ import annotations

import pytest
from explainer_kit import ENDS_MS, STARTS_MS, labels

from claudescope.explainer.alert import Alert
from claudescope.explainer.page import explanation, listing
from claudescope.explainer.queue import Kept
from claudescope.explainer.ticket import Links, Ticket


def ticket(report, ends=None, **more):
    alert = Alert(f"{1:016x}", STARTS_MS, ends, labels(**more), {"summary": "it <burns>"})
    return Ticket(Kept(1, alert, STARTS_MS, report), Links("http://e", "", ""))


def found(verdict, *slices):
    return {"explanation": {"verdict": verdict, "slices": list(slices)}, "traces": [{"id": "<i>", "url": ""}]}


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (None, "waits to be explained"),
        (found("none"), "no slice stands out"),
        (found("insufficient_data"), "too little data"),
        (found("slices", {"labels": {"gen_ai_tool_name": "<b>"}}), "tool &lt;b&gt;"),
        ({"problem": "no counts"}, "not explained"),
    ],
)
def test_the_list_says_how_far_each_is(report, words):
    html = listing([ticket(report)], {})
    assert f"<td>{words}</td>" in html
    assert '<span class="firing">firing</span>' in html
    assert f'href="explanations/{1:016x}?starts={STARTS_MS}"' in html


def test_the_list_of_nothing_and_of_labels():
    assert "There are none." in listing([], {})
    html = listing([], {"a": "<x>"})
    assert "with a=&lt;x&gt;" in html
    assert 'href="explanations"' in html


def test_an_alert_that_has_ended_with_what_was_done():
    done = {"place": "jira", "phase": "open", "state": "dead", "ref": "", "problem": "<it answers 400>"}
    html = explanation(ticket(found("none"), ENDS_MS), [done])
    assert "ended 2026-11-30 11:30:00 UTC" in html
    assert "<td>&lt;it answers 400&gt;</td>" in html
    assert "&lt;i&gt;" in html
    assert "it &lt;burns&gt;" in html
    assert "<img" not in html  # no picture of nothing
    assert 'href="../style.css"' in html
