"""Runs and steps made by hand: sync, async, decorators, nesting, exceptions, and without instrumentation."""

from __future__ import annotations

import asyncio
import inspect
from itertools import pairwise
from typing import Any

import pytest
from call_path_functions import ASK
from capture_kit import attribute, instrumented, new_client
from opentelemetry import trace
from opentelemetry.trace import StatusCode

import claudescope
from claudescope import control, semconv
from claudescope.testing.script import say


def span(scope: Any, name: str) -> Any:
    scope.settle()
    (found,) = [span for span in scope.ours.spans if span.name == name]
    return found


def test_a_step_by_hand(scope):
    with claudescope.run("r") as run, claudescope.step("look up") as step:
        step.set_confidence(0.8)
        step.set_valid(False, reason="no such invoice")
    made = span(scope, "run_step look up")
    root = span(scope, "invoke_workflow r")
    assert made.parent.span_id == root.context.span_id
    expected = {
        semconv.STEP_INDEX: 0,
        semconv.STEP_KIND: "manual",
        semconv.STEP_NAME: "look up",
        semconv.STEP_LATENCY_SOURCE: "measured",
        semconv.STEP_CONFIDENCE: 0.8,
        semconv.STEP_CONFIDENCE_METHOD: "manual",
        semconv.STEP_CONFIDENCE_CALIBRATED: False,
        semconv.STEP_VALID: False,
        semconv.STEP_VALIDITY_CHECKS: ("manual",),
        semconv.STEP_VALIDITY_REASON: "manual.no_such_invoice",
        semconv.CHAIN_ID: run.id,
        semconv.CHAIN_CONFIDENCE: 0.8,
        semconv.KEEP: True,
    }
    assert dict(made.attributes) == expected
    assert made.status.status_code is StatusCode.UNSET


def test_a_step_without_verdicts_has_none(scope):
    with claudescope.step("s"):
        pass
    attributes = span(scope, "run_step s").attributes
    assert semconv.STEP_VALID not in attributes
    assert semconv.STEP_CONFIDENCE not in attributes


async def test_async_with(scope):
    async with claudescope.run("r"):
        async with claudescope.step("a") as step:
            await asyncio.sleep(0)
            step.set_valid(True)
        async with claudescope.step("b"):
            pass
    assert attribute(span(scope, "run_step a"), semconv.STEP_VALID) is True
    assert attribute(span(scope, "run_step b"), semconv.STEP_INDEX) == 1


def test_decorators(scope):
    @claudescope.step("double")
    def double(value: int) -> int:
        """Doubles."""
        return value * 2

    @claudescope.run("whole", team="red")
    def whole(value: int) -> int:
        return double(double(value))

    assert double.__name__ == "double"
    assert double.__doc__ == "Doubles."
    assert [whole(3), whole(4)] == [12, 16]
    scope.settle()
    roots = [made for made in scope.ours.spans if made.name == "invoke_workflow whole"]
    steps = [made for made in scope.ours.spans if made.name == "run_step double"]
    assert len({attribute(root, semconv.CHAIN_ID) for root in roots}) == 2
    assert sorted(attribute(step, semconv.STEP_INDEX) for step in steps) == [0, 0, 1, 1]
    assert {attribute(step, semconv.LABEL_PREFIX + "team") for step in steps} == {"red"}


async def test_a_decorated_coroutine_function_in_many_tasks(scope):
    @claudescope.run("job")
    async def job(number: int) -> int:
        @claudescope.step("part")
        async def part() -> None:
            await asyncio.sleep(0)

        await part()
        await part()
        return number

    assert inspect.iscoroutinefunction(job)
    assert await asyncio.gather(*(job(number) for number in range(10))) == list(range(10))
    scope.settle()
    roots = {root.context.span_id: root for root in scope.ours.spans if root.name == "invoke_workflow job"}
    steps = [made for made in scope.ours.spans if made.name == "run_step part"]
    assert (len(roots), len(steps)) == (10, 20)
    for step in steps:
        assert attribute(step, semconv.CHAIN_ID) == attribute(roots[step.parent.span_id], semconv.CHAIN_ID)
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_nesting(standin, scope):
    standin.use(say("x"))
    client = new_client(standin.url)
    with claudescope.run("outer") as outer:
        with claudescope.step("a"), claudescope.step("b"):
            client.messages.create(**ASK)
        with claudescope.run("inner") as inner, claudescope.step("c"):
            pass
        with claudescope.step("d"):
            pass
    client.close()
    a, b, c, d = (span(scope, f"run_step {name}") for name in "abcd")
    call = scope.call
    assert b.parent.span_id == a.context.span_id
    assert call.parent.span_id == b.context.span_id
    assert attribute(call, semconv.CHAIN_ID) == outer.id
    assert inner.id != outer.id
    assert attribute(c, semconv.CHAIN_ID) == inner.id
    assert attribute(d, semconv.CHAIN_ID) == outer.id
    # numbers are given as steps end: the answer's text, b, a, then d
    indexes = {s.name: attribute(s, semconv.STEP_INDEX) for s in (*scope.steps, a, b, c, d)}
    assert indexes == {
        "reasoning_step text": 0,
        "run_step b": 1,
        "run_step a": 2,
        "run_step c": 0,
        "run_step d": 3,
    }


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_exception_reaches_the_app_and_makes_the_step_invalid(scope, asynchronous):
    mine = KeyError("mine")

    async def run_async() -> None:
        async with claudescope.run("r"), claudescope.step("s"):
            raise mine

    def run() -> None:
        with claudescope.run("r"), claudescope.step("s"):
            raise mine

    with pytest.raises(KeyError) as caught:
        asyncio.run(run_async()) if asynchronous else run()
    assert caught.value is mine
    step, root = span(scope, "run_step s"), span(scope, "invoke_workflow r")
    assert attribute(step, semconv.STEP_VALID) is False
    assert attribute(step, semconv.STEP_VALIDITY_REASON) == "exception.KeyError"
    for made in (step, root):
        assert attribute(made, semconv.ERROR_TYPE) == "KeyError"
        assert made.status.status_code is StatusCode.ERROR
        assert made.events == ()


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_confidence_that_is_none(scope, value):
    with claudescope.step("s") as step, pytest.raises(ValueError, match="from 0 to 1"):
        step.set_confidence(value)


def test_a_step_outside_of_a_run_has_a_chain_of_its_own(scope):
    with claudescope.step("a"):
        pass
    with claudescope.step("b"):
        pass
    a, b = span(scope, "run_step a"), span(scope, "run_step b")
    assert attribute(a, semconv.CHAIN_ID) != attribute(b, semconv.CHAIN_ID)
    assert attribute(b, semconv.STEP_INDEX) == 0


def test_nothing_happens_without_instrumentation():
    before = trace.get_current_span()
    with claudescope.run("r", team="x") as run, claudescope.step("s") as step:
        step.set_confidence(0.5)
        step.set_valid(True)
        assert trace.get_current_span() is before
    assert run.id == ""

    @claudescope.step("t")
    def function() -> int:
        return 7

    assert function() == 7


def test_uninstrumented_in_the_middle():
    with instrumented():
        run = claudescope.run("r")
        run.__enter__()
        step = claudescope.step("s")
        step.__enter__()
        claudescope.uninstrument()
        step.__exit__(None, None, None)
        run.__exit__(None, None, None)
    assert trace.get_current_span() is trace.INVALID_SPAN


async def test_a_generator_that_is_left_in_another_task(scope):
    """No error about contexts is logged, and what was current before is so again."""

    async def numbers() -> Any:
        with claudescope.run("r"), claudescope.step("s"):
            yield 1
            yield 2

    generator = numbers()
    assert await asyncio.create_task(generator.__anext__()) == 1
    await asyncio.create_task(generator.aclose())
    assert trace.get_current_span() is trace.INVALID_SPAN
    span(scope, "run_step s")
    span(scope, "invoke_workflow r")


def test_a_step_that_is_entered_again_is_another_step(scope, monkeypatch):
    """What the app says of the next one, or after the end, changes none that is over."""
    worker = control.worker()
    assert worker is not None
    items: list[Any] = []
    put = worker.put
    monkeypatch.setattr(worker, "put", items.append)  # as if the worker were late
    step = claudescope.step("s")
    step.set_confidence(0.25)  # before it is entered: of the first
    for number in range(3):
        with step:
            if number:
                step.set_confidence(number / 4)
            step.set_valid(number != 1, reason=f"n{number}")
    with step:
        pass
    step.set_confidence(1.0)
    monkeypatch.undo()
    for item in items:
        put(item)
    scope.settle()
    spans = [span for span in scope.ours.spans if span.name == "run_step s"]
    names = (semconv.STEP_CONFIDENCE, semconv.STEP_VALID, semconv.STEP_VALIDITY_REASON)
    assert [tuple(attribute(span, name) for name in names) for span in spans] == [
        (0.25, True, None),
        (0.25, False, "manual.n1"),
        (0.5, True, None),
        (None, None, None),
    ]
    assert all(before.end_time <= after.start_time for before, after in pairwise(spans))


def test_a_run_that_is_entered_again_is_another_run(standin, scope):
    client = new_client(standin.url)
    run = claudescope.run("r", team="red")
    ids = []
    for _ in range(2):
        with run:
            ids.append(run.id)
            client.messages.create(**ASK)
            run.labels["team"] = "blue"  # of the next
    client.close()
    scope.settle()
    roots = [span for span in scope.ours.spans if span.name == "invoke_workflow r"]
    assert [attribute(root, semconv.CHAIN_ID) for root in roots] == ids
    assert len(set(ids)) == 2
    assert [attribute(call, semconv.LABEL_PREFIX + "team") for call in scope.calls] == ["red", "blue"]
    assert [attribute(step, semconv.STEP_INDEX) for step in scope.steps] == [0, 0]
