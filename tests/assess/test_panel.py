"""The panel: its rule, its budget, what it does with plug-ins that fail, and how it finds them."""

from __future__ import annotations

import logging
import os
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import INVALID_SPAN

from claudescope.assess.panel import Panel, PluginStatus
from claudescope.assess.protocol import Confidence, Verdict
from claudescope.settings import Settings
from claudescope.steps.model import Call, Chain, Reason, Step

NO = Verdict(False, (Reason("b", "broken", 1, 2),))
YES = Verdict(True)


class Check:
    def __init__(self, name: str, outcome: Any) -> None:
        self.name = name
        self.outcome = outcome
        self.asked = 0

    def check(self, step: Step, call: Call) -> Any:
        self.asked += 1
        outcome = self.outcome() if callable(self.outcome) else self.outcome
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    estimate = check


class Clock:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def assessed(panel: Panel) -> Step:
    step = Step("text", 0, 1, "measured", text="x")
    panel.assess(step, Call(Chain(), 0, INVALID_SPAN, owned=False))
    return step


@pytest.mark.parametrize(
    ("outcomes", "valid", "checks", "reasons"),
    [
        ((), None, [], []),
        ((None, None), None, [], []),
        ((YES, None), True, ["a"], []),
        ((None, YES), True, ["b"], []),
        ((YES, NO), False, ["a", "b"], [Reason("b", "broken", 1, 2)]),
        ((NO, YES), False, ["a", "b"], [Reason("b", "broken", 1, 2)]),
        ((NO, NO), False, ["a", "b"], [Reason("b", "broken", 1, 2)] * 2),
    ],
)
def test_rule(outcomes: tuple[Any, ...], valid: bool | None, checks: list[str], reasons: list[Reason]) -> None:
    # Given in reverse: the checks are named in order whatever the order they came in.
    named = [Check(name, outcome) for name, outcome in zip("abc", outcomes, strict=False)]
    step = assessed(Panel(named[::-1]))
    assert (step.valid, step.checks, step.reasons) == (valid, checks, reasons)
    assert (step.confidence, step.confidence_method, step.calibrated) == (None, None, None)


def test_the_first_estimator_with_an_answer_is_taken_in_the_order_of_names() -> None:
    last = Check("z", Confidence(0.1))
    step = assessed(Panel([], [last, Check("m", Confidence(1, calibrated=True)), Check("a", None)]))
    assert (step.confidence, step.confidence_method, step.calibrated) == (1.0, "m", True)
    assert isinstance(step.confidence, float)
    assert last.asked == 0


@pytest.mark.parametrize(
    "bad",
    [
        ValueError("secret"),
        SystemExit(3),
        True,
        "valid",
        Verdict(True, (Reason("a", "b"),)),
        Verdict(False),
        Verdict(1),
    ],  # type: ignore[arg-type]
)
def test_a_check_that_fails_is_absent_and_counted(bad: Any, caplog: pytest.LogCaptureFixture) -> None:
    dropped: list[tuple[str, str, int]] = []
    panel = Panel([Check("a", bad), Check("b", YES)], on_drop=lambda *what: dropped.append(what))
    with caplog.at_level(logging.WARNING, "claudescope"):
        steps = [assessed(panel) for _ in range(3)]
    assert [(step.valid, step.checks) for step in steps] == [(True, ["b"])] * 3
    assert dropped == [("internal_error", "assessment", 1)] * 3
    assert len(caplog.records) == 1  # once a check, not once a failure
    assert "'a'" in caplog.text
    assert "secret" not in caplog.text
    assert [(s.name, s.state, s.steps, s.failures) for s in panel.status()] == [("a", "on", 3, 3), ("b", "on", 3, 0)]


@pytest.mark.parametrize(
    "bad",
    [
        Confidence(1.01),
        Confidence(-0.01),
        Confidence(float("nan")),
        Confidence(float("inf")),
        Confidence("0.5"),  # type: ignore[arg-type]
        Confidence(True),
        Confidence(0.5, calibrated=None),  # type: ignore[arg-type]
        0.5,
        RuntimeError(),
    ],
)
def test_a_confidence_that_is_none_is_a_failure(bad: Any) -> None:
    panel = Panel([], [Check("a", bad), Check("b", Confidence(0.5))])
    step = assessed(panel)
    assert (step.confidence, step.confidence_method) == (0.5, "b")
    assert panel.status()[0].failures == 1


def test_what_was_slow_once_is_asked_again() -> None:
    """A garbage collection or a first import falls on whichever check runs: that is no fault of the check."""
    clock = Clock()
    costs = iter([0.5, 0.25, 0.5, 0.5])

    def work() -> Verdict:
        clock.at += next(costs)
        return NO

    check = Check("b", work)
    panel = Panel([check], budget_s=0.25, clock=clock)
    assert assessed(panel).valid is False  # 0.5 s, then 0.25 s: within the budget
    assert panel.status()[0].failures == 0
    assert assessed(panel).valid is None  # twice 0.5 s
    assert panel.status()[0].failures == 1
    assert check.asked == 4


def test_over_budget_is_a_failure() -> None:
    clock = Clock()

    def work(seconds: float) -> Any:
        def outcome() -> Verdict:
            clock.at += seconds
            return YES

        return outcome

    panel = Panel([Check("a", work(0.25)), Check("b", work(0.5))], budget_s=0.25, clock=clock)
    assert assessed(panel).checks == ["a"]
    assert panel.status()[1] == PluginStatus("b", "validator", "on", 1, 1, "over budget")


def test_the_real_clock_counts_cpu_time_of_the_thread() -> None:
    panel = Panel([Check("spins", lambda: sum(range(2_000_000)) and YES)], budget_s=0.005)
    assert assessed(panel).checks == []
    assert panel.status()[0].last_failure == "over budget"


def test_decoding_a_large_request_is_nobodys_fault() -> None:
    clock = Clock()

    class Slow(Call):
        @cached_property
        def request_json(self) -> dict[str, Any]:
            clock.at += 1
            return {}

    class Reader(Check):
        def check(self, step: Step, call: Call) -> Any:
            assert call.request_json == {}
            return YES

    panel = Panel([Reader("a", None), Reader("b", None)], budget_s=0.5, clock=clock)
    step = Step("text", 0, 1, "measured")
    panel.assess(step, Slow(Chain(), 0, INVALID_SPAN, owned=False))
    assert step.checks == ["a", "b"]
    assert clock.at == 1


def test_off_after_ten_failures_in_a_thousand_steps_and_tried_again_after_ten_minutes() -> None:
    now = Clock()
    check = Check("a", ValueError())
    dropped: list[Any] = []
    panel = Panel([check], now=now, on_drop=lambda *what: dropped.append(what))
    for _ in range(9):
        assessed(panel)
    assert panel.status()[0].state == "on"
    assessed(panel)
    assert panel.status()[0].state == "off"
    assessed(panel)
    assert (check.asked, len(dropped)) == (10, 11)
    now.at = 599.9
    assessed(panel)
    assert check.asked == 10
    now.at = 600.0
    check.outcome = YES
    assert panel.status()[0].state == "on"
    assert assessed(panel).checks == ["a"]
    check.outcome = ValueError()
    for _ in range(9):
        assessed(panel)  # the failures of before do not count
    assert panel.status()[0].state == "on"
    assessed(panel)
    assert panel.status()[0].state == "off"


def test_ten_failures_in_more_than_a_thousand_steps_leave_it_on() -> None:
    check = Check("a", YES)
    panel = Panel([check])
    for n in range(10):
        check.outcome = ValueError()
        assessed(panel)
        check.outcome = YES
        for _ in range(111 if n < 9 else 0):
            assessed(panel)
    # Failures at steps 1, 113, ..., 1009: the last ten lie 1,008 apart.
    assert panel.status()[0].state == "on"
    check.outcome = ValueError()
    assessed(panel)  # step 1010: ten from step 113 on, 897 apart
    assert panel.status()[0].state == "off"


PLUGIN = """
from claudescope.assess.protocol import Confidence, Verdict
class Good:
    name = "good"
    def check(self, step, call): return Verdict(True)
class Sure:
    name = "aaa"
    def estimate(self, step, call): return Confidence(0.25)
class Impostor:
    name = "tool_name"
    def check(self, step, call): return Verdict(True)
class NoMethod:
    name = "no_method"
def explode(): raise OSError("no")
"""
ENTRIES = """
[claudescope.validators]
good = its_plugin:Good
zz_impostor = its_plugin:Impostor
no_method = its_plugin:NoMethod
explode = its_plugin:explode
missing = not_there:Nothing
stop_reason = claudescope.assess.stop_reason:StopReason
stream = claudescope.assess.stream:StreamFailure
structured_output = claudescope.assess.structured_output:StructuredOutput
tool_input = claudescope.assess.tool_input:ToolInput
tool_json = claudescope.assess.tool_json:ToolJson
tool_name = claudescope.assess.tool_name:ToolName
tool_result = claudescope.assess.tool_result:ToolResultError

[claudescope.confidence]
sure = its_plugin:Sure
verbalised = claudescope.assess.verbalised:Verbalised
"""


BUILT_IN = ["stop_reason", "stream", "structured_output", "tool_input", "tool_json", "tool_name", "tool_result"]


def test_from_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    info = tmp_path / "its_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: its-plugin\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(ENTRIES, "utf-8")
    (tmp_path / "its_plugin.py").write_text(PLUGIN, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with caplog.at_level(logging.WARNING, "claudescope"):
        panel = Panel.from_entry_points(Settings({}))
    assert [(s.kind, s.name, s.state) for s in panel.status()] == [
        ("validator", "good", "on"),
        *(("validator", name, "on") for name in BUILT_IN),
        ("confidence", "aaa", "on"),
        ("confidence", "verbalised", "on"),
        ("validator", "explode", "not loaded"),
        ("validator", "missing", "not loaded"),
        ("validator", "no_method", "not loaded"),
        ("validator", "zz_impostor", "not loaded"),
    ]
    assert len(caplog.records) == 4
    step = assessed(panel)
    assert (step.valid, step.checks, step.confidence, step.confidence_method) == (True, ["good"], 0.25, "aaa")
    assert panel.budget == 0.005


def test_the_built_in_ones_are_registered() -> None:
    names = {status.name for status in Panel.from_entry_points(Settings({})).status()}
    if not names and os.environ.get("CI") != "true":
        pytest.skip("the installed package has no entry points of these groups: install it again")
    assert names == {*BUILT_IN, "verbalised"}
