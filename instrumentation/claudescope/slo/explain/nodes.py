"""Which node of the runs is to blame: those downstream of the breaching one, by how unusual they are now.

The graph is that of the spans: a node influences the node of the span that its own span is part of, and the nodes of
spans that follow it by a link. Blame goes the other way, from the breaching node downstream.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, Literal

from ...signals import proportions, robust
from .runs import Run, Span

__all__ = ["Edge", "Quantity", "Ranked", "influences", "rank"]

Quantity = Literal["latency", "validity"]

_FLOOR: Final = 0.05
"""A node's time strays by at least this share of itself, or one that never does would be blamed for nothing."""
_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class Edge:
    """How much a node passes on to the node above it."""

    upstream: str
    downstream: str
    weight: float
    """From 0 to 1. Latency: seconds that the upstream node takes longer for each second of the downstream one (slope
    of least squares over runs). Validity: how much more often the upstream one is bad in runs where the downstream
    one is.
    """
    runs: int
    """Runs that have both."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A node, and how unusual it is. A z-score is no probability of being the cause."""

    node: str
    z: float
    """Robust: the difference of the medians over the usual deviation; of shares for validity."""
    influence: float
    """Product of the weights on the best way from the breaching node, 1 for itself."""
    now: float
    """Median of its own seconds, or share of bad ones."""
    before: float
    runs: int
    """Runs now that have it."""
    traces: tuple[str, ...]
    """Up to three runs now in which it is worst."""

    @property
    def score(self) -> float:
        """What nodes are ordered by."""
        return self.z * self.influence


def influences(runs: Iterable[Run], quantity: Quantity) -> list[Edge]:
    """The edges of the graph of all runs, with their weights."""
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for run in runs:
        nodes = _by_node(run)
        bad = _bad_with_parts(run) if quantity == "validity" else set()
        for upstream, downstream in _edges(run):
            pairs[upstream, downstream].append(
                (_whole(nodes[downstream], quantity, bad), _whole(nodes[upstream], quantity, bad))
            )
    weigh = _slope if quantity == "latency" else _difference
    return [Edge(*nodes, weigh(values), len(values)) for nodes, values in sorted(pairs.items())]


def rank(now: Sequence[Run], before: Sequence[Run], breaching: str, quantity: Quantity = "latency") -> list[Ranked]:
    """The breaching node and those downstream of it, the most unusual first; nothing where no run has that node."""
    reached = _reach(influences([*before, *now], quantity), breaching)
    values_now, values_before = _values(now, quantity), _values(before, quantity)
    found = []
    for node, influence in reached.items():
        seen = values_now.get(node)
        if not seen:
            continue
        usual = [value for value, _ in values_before.get(node, ())]
        current = [value for value, _ in seen]
        score = _robust(current, usual) if quantity == "latency" else _shares(current, usual)
        middle = statistics.median if quantity == "latency" else statistics.fmean
        worst = sorted(seen, key=lambda one: -one[0])
        traces = [trace for value, trace in worst if trace and (quantity == "latency" or value > 0)]
        found.append(
            Ranked(
                node,
                score,
                influence,
                middle(current),
                middle(usual) if usual else 0.0,
                len(current),
                tuple(traces[:_EXAMPLES]),
            )
        )
    return sorted(found, key=lambda one: (-one.score, -one.influence, one.node))


def _by_node(run: Run) -> dict[str, list[Span]]:
    found: dict[str, list[Span]] = defaultdict(list)
    for span in run.spans:
        found[span.node].append(span)
    return found


def _edges(run: Run) -> set[tuple[str, str]]:
    nodes = {span.id: span.node for span in run.spans}
    found = set()
    for span in run.spans:
        if span.parent in nodes:
            found.add((nodes[span.parent], span.node))
        found.update((span.node, nodes[link]) for link in span.links if link in nodes)
    return {(upstream, downstream) for upstream, downstream in found if upstream != downstream}


def _whole(spans: Sequence[Span], quantity: Quantity, bad: Set[str]) -> float:
    if quantity == "latency":
        return sum(span.seconds for span in spans)
    return float(any(span.id in bad for span in spans))


def _bad_with_parts(run: Run) -> set[str]:
    """Ids of the spans that are bad; one without a verdict is so if one of its parts is."""
    spans = {span.id: span for span in run.spans}
    found = {span.id for span in run.spans if span.bad}
    waiting = list(found)
    while waiting:
        parent = spans.get(spans[waiting.pop()].parent)
        if parent and parent.bad is None and parent.id not in found:
            found.add(parent.id)
            waiting.append(parent.id)
    return found


def _slope(values: Sequence[tuple[float, float]]) -> float:
    """Of the second on the first."""
    mean_x, mean_y = statistics.fmean(x for x, _ in values), statistics.fmean(y for _, y in values)
    spread = sum((x - mean_x) ** 2 for x, _ in values)
    if not spread:
        return 0.0
    return min(1.0, max(0.0, sum((x - mean_x) * (y - mean_y) for x, y in values) / spread))


def _difference(values: Sequence[tuple[float, float]]) -> float:
    """Of the shares of the second among those with and without the first, each with half a case of both kinds."""
    bad = [y for x, y in values if x]
    good = [y for x, y in values if not x]
    return max(0.0, (sum(bad) + 0.5) / (len(bad) + 1) - (sum(good) + 0.5) / (len(good) + 1))


def _reach(edges: Iterable[Edge], start: str) -> dict[str, float]:
    """Every node downstream, with the best product of weights: widest first, so each is settled once."""
    below: Mapping[str, list[Edge]] = defaultdict(list)
    known = {start}
    for edge in edges:
        below[edge.upstream].append(edge)
        known.update((edge.upstream, edge.downstream))
    waiting, settled = {start: 1.0}, {}
    while waiting:
        node = max(waiting, key=lambda one: (waiting[one], one))
        settled[node] = waiting.pop(node)
        for edge in below[node]:
            if edge.downstream not in settled:
                product = settled[node] * edge.weight
                waiting[edge.downstream] = max(product, waiting.get(edge.downstream, 0.0))
    return settled


def _values(runs: Iterable[Run], quantity: Quantity) -> dict[str, list[tuple[float, str]]]:
    """Of each node, for each run that has it: its own seconds, or the share of its spans that are bad."""
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for run in runs:
        below: dict[str, float] = defaultdict(float)
        for span in run.spans:
            below[span.parent] += span.seconds
        for node, spans in _by_node(run).items():
            if quantity == "latency":
                # a child's time is the child's: a parent is blamed only for what is left
                found[node].append((sum(max(0.0, span.seconds - below[span.id]) for span in spans), run.trace))
            else:
                judged = [span.bad for span in spans if span.bad is not None]
                if judged:
                    found[node].append((sum(judged) / len(judged), run.trace))
    return found


def _robust(now: Sequence[float], before: Sequence[float]) -> float:
    if not before:
        return 0.0
    return robust.z_score(statistics.median(now), before, max(_FLOOR * statistics.median(before), 1e-6))


def _shares(now: Sequence[float], before: Sequence[float]) -> float:
    """Two proportions, with half a bad and half a good one added to each."""
    return proportions.z_score(sum(now) + 0.5, len(now) + 1, sum(before) + 0.5, len(before) + 1)
