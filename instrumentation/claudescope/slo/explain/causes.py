"""What the runs say besides the slices: nodes to blame, clusters of failing runs, chains apart from single steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from .clusters import Cluster, Shares, clusters, failing
from .nodes import Quantity, Ranked, rank
from .runs import Run
from .sentences import where

__all__ = ["Causes", "find_causes"]

_NODES: Final = 3
_CLUSTERS: Final = 5
_UNUSUAL: Final = 3.0
"""Robust z from which a node is told: 3.5 is the usual bound for an outlier (Iglewicz and Hoaglin 1993)."""


@dataclass(frozen=True, slots=True)
class Causes:
    """Of the runs now, against those before."""

    breaching: str
    quantity: Quantity
    nodes: tuple[Ranked, ...]
    """Unusual ones, at most three, the first to be blamed first."""
    clusters: tuple[Cluster, ...]
    now: Shares
    before: Shares

    def json(self) -> dict[str, Any]:
        """``{"breaching", "nodes": [...], "clusters": [...], "failing": {...}}``."""
        return {
            "breaching": self.breaching,
            "nodes": [
                {**asdict(one), "z": round(one.z, 2), "influence": round(one.influence, 3)} for one in self.nodes
            ],
            "clusters": [{**asdict(one), "labels": dict(one.labels)} for one in self.clusters],
            "failing": {
                name: {"failed": now[0], "runs": now[1], "failed_before": before[0], "runs_before": before[1]}
                for name, now, before in (
                    ("single", self.now.single, self.before.single),
                    ("chain", self.now.chain, self.before.chain),
                )
            },
        }

    def sentences(self) -> list[str]:
        """A line each."""
        return [*map(self._node, self.nodes), *self._shares(), *map(_cluster, self.clusters)]

    def _node(self, one: Ranked) -> str:
        if self.quantity == "latency":
            figures = f"{one.now:.2f} s of its own in the median run, {one.before:.2f} s before"
        else:
            figures = f"{one.now:.0%} bad in {one.runs} runs, {one.before:.0%} before"
        return (
            f"Below {self.breaching}, {one.node} is unusual: {figures} (z {one.z:.1f}, influence {one.influence:.2f})."
            f"{_examples(one.traces)}"
        )

    def _shares(self) -> list[str]:
        found = []
        for name, now, before in (
            ("Runs of three steps or more", self.now.chain, self.before.chain),
            ("Shorter runs", self.now.single, self.before.single),
        ):
            if now[0]:
                earlier = f", {before[0]} of {before[1]} before" if before[1] else ""
                found.append(f"{name}: {now[0]} of {now[1]} failed{earlier}.")
        return found


def find_causes(now: Sequence[Run], before: Sequence[Run], breaching: str, quantity: Quantity) -> Causes:
    """Ranks the nodes downstream of the breaching one, and puts failing runs together."""
    ranked = [one for one in rank(now, before, breaching, quantity) if one.z >= _UNUSUAL and one.node != breaching]
    return Causes(
        breaching,
        quantity,
        tuple(ranked[:_NODES]),
        tuple(clusters(now)[:_CLUSTERS]),
        failing(now),
        failing(before),
    )


def _cluster(one: Cluster) -> str:
    place = f" with {where(dict(one.labels))}" if one.labels else ""
    began = "after good steps" if one.shape == "chain" else "at once"
    return f"{one.runs} runs{place} failed {began} at {one.node}: {one.reason}.{_examples(one.traces)}"


def _examples(traces: Sequence[str]) -> str:
    return f" For example: {', '.join(traces)}" if traces else ""
