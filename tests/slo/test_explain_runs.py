"""Nodes downstream of the breaching one, and clusters of failing runs, on runs with a planted cause."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from claudescope.slo.explain.clusters import Shares, clusters, failing
from claudescope.slo.explain.nodes import Edge, influences, rank
from claudescope.slo.explain.runs import Run, Span


def agent(chance: random.Random, slow: str = "", bad: str = "", trace: str = "") -> Run:
    """chain > 2 calls > steps; the tools search and read are steps; the second call follows the first one."""
    spans: list[Span] = []
    total = 0.0
    failed = False
    for at in range(2):
        took = 0.0
        for node in ("thinking", "tool search" if at == 0 else "tool read"):
            seconds = chance.uniform(0.9, 1.1) * (6 if node == slow else 1)
            wrong = chance.random() < (0.8 if node == bad else 0.02)
            failed = failed or wrong
            spans.append(Span(f"{at}{node}", node, parent=f"call{at}", seconds=seconds, bad=wrong))
            took += seconds
        took += chance.uniform(0.1, 0.2)
        total += took
        spans.append(Span(f"call{at}", "call", "chain", (f"call{at - 1}",) if at else (), took))
    spans.append(Span("chain", "chain", seconds=total + 0.1, bad=failed))
    return Run(tuple(spans), trace)


def several(count: int, seed: int, **options: str) -> list[Run]:
    chance = random.Random(seed)
    return [agent(chance, trace=f"t{at}", **options) for at in range(count)]


@pytest.mark.parametrize("cause", ["tool search", "tool read", "thinking"])
def test_the_slow_node_is_first_and_not_those_that_wait_for_it(cause: str) -> None:
    ranked = rank(several(20, 1, slow=cause), several(40, 2), "chain")
    assert ranked[0].node == cause
    assert ranked[0].z > 20
    assert ranked[0].now / ranked[0].before == pytest.approx(6, rel=0.1)
    assert {one.node for one in ranked} == {"chain", "call", "thinking", "tool search", "tool read"}
    # the chain took longer by as much as its cause; its own time is the same
    assert next(one for one in ranked if one.node == "chain").z < 3
    assert len(ranked[0].traces) == 3


@pytest.mark.parametrize("cause", ["tool search", "tool read", "thinking"])
def test_the_failing_node_is_first_of_those_below_the_chain(cause: str) -> None:
    ranked = rank(several(30, 3, bad=cause), several(60, 4), "chain", "validity")
    assert next(one.node for one in ranked if one.node != "chain") == cause


def test_only_what_is_downstream_is_blamed() -> None:
    ranked = rank(several(20, 1, slow="tool search"), several(20, 2), "tool read")
    assert [one.node for one in ranked] == ["tool read"]
    assert rank(several(2, 1), several(2, 2), "nowhere") == []


def test_a_node_that_is_new_or_gone() -> None:
    new = Run((Span("a", "chain", seconds=1), Span("b", "tool new", "a", seconds=1)), "t")
    old = Run((Span("a", "chain", seconds=1), Span("b", "tool old", "a", seconds=1)))
    ranked = rank([new], [old], "chain")
    assert {one.node for one in ranked} == {"chain", "tool new"}
    assert next(one for one in ranked if one.node == "tool new").before == 0


def test_the_weight_of_an_edge_is_what_it_passes_on() -> None:
    runs = [
        Run((Span("p", "chain", seconds=1 + 0.5 * at), Span("c", "call", "p", seconds=float(at)))) for at in range(5)
    ]
    assert influences(runs, "latency") == [Edge("chain", "call", pytest.approx(0.5), 5)]
    same = [Run((Span("p", "chain", seconds=float(at)), Span("c", "call", "p", seconds=1))) for at in range(5)]
    assert influences(same, "latency") == [Edge("chain", "call", 0, 5)]


def test_the_weight_of_an_edge_of_verdicts() -> None:
    # with the child bad 3 of 4 are bad, without it 0 of 4: (3.5 / 5) - (.5 / 5)
    runs = [Run((Span("p", "chain", bad=at < 3), Span("c", "step", "p", bad=at < 4))) for at in range(8)]
    assert influences(runs, "validity") == [Edge("chain", "step", pytest.approx(0.6), 8)]


def test_a_link_is_an_edge_and_a_loop_is_walked_once() -> None:
    run = Run((Span("a", "x", links=("b",), seconds=1), Span("b", "y", links=("a",), seconds=1)))
    assert [(edge.upstream, edge.downstream) for edge in influences([run], "latency")] == [("x", "y"), ("y", "x")]
    assert {one.node for one in rank([run], [run], "x")} == {"x", "y"}


def test_without_verdicts_there_is_nothing_to_rank() -> None:
    assert rank([Run((Span("a", "x"),))], [], "x", "validity") == []


def failures() -> Iterator[Run]:
    good = Span("1", "call", bad=False)
    for at in range(6):
        wrong = Span("2", "tool search", bad=True, reason="tool_result.error")
        yield Run((good, wrong), f"chain{at}", {"tier": "gold", "app": "shop"})
    for at in range(4):
        yield Run((Span("1", "tool search", bad=True, reason="tool_result.error"),), f"single{at}", {"app": "shop"})
    yield Run((Span("1", "call", bad=True, reason="stop_reason"),), "once", {"app": "shop"})
    for _ in range(20):
        yield Run((good, Span("2", "call", bad=False), Span("3", "call")), "", {"tier": "plus", "app": "shop"})


def test_runs_that_failed_alike_are_together() -> None:
    first, second = clusters(list(failures()))
    assert (first.reason, first.node, first.shape, first.runs) == ("tool_result.error", "tool search", "chain", 6)
    assert first.labels == (("tier", "gold"),)  # all runs are of the shop
    assert first.traces == ("chain0", "chain1", "chain2")
    assert (second.shape, second.runs, second.labels) == ("single", 4, ())
    assert [one.reason for one in clusters(list(failures()), least=1)] == ["tool_result.error"] * 2 + ["stop_reason"]
    assert clusters([]) == []


def test_chains_fail_apart_from_single_steps() -> None:
    step = Span("1", "call", bad=False)
    runs = [Run((step,))] * 199 + [Run((Span("1", "call", bad=True),))]
    runs += [Run((step, step, Span("3", "call", bad=True)))] * 19 + [Run((step, step, step))] * 81
    assert failing(runs) == Shares(single=(1, 200), chain=(19, 100))
