"""Alertmanager's webhook, version 4: what is taken, what is cut, and that nothing of it can break the reader."""

from __future__ import annotations

import contextlib
import json

import pytest
from explainer_kit import ENDS_MS, STARTS_MS, alert, webhook
from hypothesis import given
from hypothesis import strategies as st

from claudescope.explainer.alert import MalformedError, moment, parse
from claudescope.live.objectives.alerts import Alert as EmbeddedAlert
from claudescope.live.objectives.alerts import notice


def of(*alerts, **more):
    return parse(json.dumps(webhook(*alerts, **more)).encode())


def test_an_alert_has_what_alertmanager_says():
    (found,) = of(alert()).alerts
    assert (found.fingerprint, found.starts, found.ends) == (f"{1:016x}", STARTS_MS, None)
    assert found.key == f"{1:016x}-{STARTS_MS}"
    assert (found.objective, found.name, found.severity) == ("shop-validity", "ShopValidityBudgetBurn", "page")
    assert found.source == "http://localhost:9090/graph?g0.expr=x"
    (ended,) = of(alert(ended=True)).alerts
    assert (ended.key, ended.ends) == (found.key, ENDS_MS)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.5Z", 1500),
        ("1970-01-01T00:00:00.123456789Z", 123),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T19:30:00.25-04:30", 250),
        ("2026-11-30T10:00:00Z", STARTS_MS),
        ("0001-01-01T00:00:00Z", None),
        ("2026-02-30T00:00:00Z", None),
        ("2026-11-30 10:00:00Z", None),
        ("٢٠٢٦-11-30T10:00:00Z", None),
        ("9999-12-31T23:59:59-23:59", None),
        ("", None),
        (5, None),
        (None, None),
    ],
)
def test_a_time_of_go(text, milliseconds):
    assert moment(text) == milliseconds


def test_an_end_before_the_start_is_the_start_and_a_missing_one_is_too():
    early = {**alert(ended=True), "endsAt": "2026-11-30T09:00:00Z"}
    missing = {**alert(ended=True), "endsAt": "0001-01-01T00:00:00Z"}
    assert [one.ends for one in of(early, missing).alerts] == [STARTS_MS, STARTS_MS]


def test_long_texts_are_cut_and_too_many_labels_are_no_alert():
    found = of(alert(1, long_one="x" * 5000), {**alert(2), "labels": {f"l{number}": "v" for number in range(101)}})
    assert found.malformed == 1
    assert len(found.alerts[0].labels["long_one"]) == 1000


def test_what_the_embedded_server_tells_is_the_same_form():
    told = EmbeddedAlert(
        {"claudescope_slo": "shop-validity", "long": "1h"}, {"summary": "it burns"}, STARTS_MS, ENDS_MS
    )
    body = notice("shop-validity", [told], "webhook", "http://127.0.0.1:4318")
    (found,) = parse(json.dumps(body).encode()).alerts
    assert (found.objective, found.starts, found.ends) == ("shop-validity", STARTS_MS, ENDS_MS)
    assert found.fingerprint == told.fingerprint


def test_what_alertmanager_left_out_is_counted():
    assert of(alert(), truncatedAlerts=7).truncated == 7
    for none in (-1, True, "7", None, 1.5):
        assert of(alert(), truncatedAlerts=none).truncated == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_a_webhook_or_refused(found):
    with contextlib.suppress(MalformedError):
        parse(json.dumps(found).encode())


@given(st.lists(JSON | st.fixed_dictionaries({}, optional=dict.fromkeys(alert(), JSON)), max_size=6))
def test_any_alerts_are_taken_or_counted(alerts):
    found = parse(json.dumps({**webhook(), "alerts": alerts}).encode())
    assert len(found.alerts) + found.malformed == len(alerts)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(body):
    with pytest.raises(MalformedError):
        parse(body)


@given(st.sampled_from(sorted(alert())), JSON)
def test_one_wrong_field_is_no_crash(field, value):
    found = of({**alert(), field: value})
    assert len(found.alerts) + found.malformed == 1
