"""What is wrong with a dashboard's JSON: keys that the typed SDK does not know, queries, metrics and labels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import promql_parser as promql
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from .cost import PRICE, PRICE_DATE, PRICE_MODEL, TOKEN_CLASS
from .expressions import expressions, plain
from .series import LABEL_PREFIX, our_labels
from .stack_metrics import STACK

__all__ = ["known_labels", "lost_keys", "query_faults", "undocumented"]

_OPTIONAL: Final = re.compile(r"\([a-z_]+\)\?$")
_NAME: Final = "__name__"


def lost_keys(dashboard: Mapping[str, Any]) -> list[str]:
    """Paths of what is not the same after the typed SDK has read and written it."""
    register_default_plugins()
    again = json.loads(json.dumps(Dashboard.from_json(json.loads(json.dumps(dashboard))), cls=JSONEncoder))
    return list(_differences(dashboard, again, ""))


def _differences(before: Any, after: Any, path: str) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key, value in before.items():
            if key not in after:
                yield f"{path}.{key}".lstrip(".")
            else:
                yield from _differences(value, after[key], f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old, new, f"{path}[{place}]")
    elif before != after:
        yield path.lstrip(".")


def known_labels() -> dict[str, frozenset[str]]:
    """Every series that a dashboard may use, with its labels: ours, the price table's and the stack's own."""
    stack = {name: frozenset(labels) for name, labels in STACK.items()}
    return our_labels() | stack | {PRICE: frozenset({PRICE_MODEL, PRICE_DATE, TOKEN_CLASS, _NAME})}


def query_faults(dashboard: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each query that does not parse, and each metric and label that nothing documents."""
    known = known_labels()
    for expression in expressions(dashboard):
        try:
            tree = promql.parse(plain(expression.text))
        except ValueError as error:
            yield f"{expression.place}: {error}"
            continue
        for fault in undocumented(tree, known):
            yield f"{expression.place}: {fault}"
        if expression.label:
            labels = _Labels(known).of(tree)
            if not _has(labels, plain(expression.label)):
                yield f"{expression.place}: {expression.label} is no label of {expression.text}"


def undocumented(tree: Any, known: Mapping[str, frozenset[str]]) -> list[str]:
    """Metrics and labels of a parsed query that ``known`` does not have."""
    labels = _Labels(known)
    labels.of(tree)
    return labels.faults


def _has(labels: frozenset[str], label: str) -> bool:
    return label in labels or (LABEL_PREFIX in labels and label.startswith(LABEL_PREFIX))


class _Labels:
    """Works out which labels an expression's result has, and notes what is not known on the way."""

    def __init__(self, known: Mapping[str, frozenset[str]]) -> None:
        self._known = known
        self.faults: list[str] = []

    def of(self, node: Any) -> frozenset[str]:
        """Labels of the result of ``node``."""
        if isinstance(node, promql.VectorSelector):
            return self._selector(node)
        if isinstance(node, promql.MatrixSelector):
            return self._selector(node.vector_selector)
        if isinstance(node, promql.AggregateExpr):
            return self._aggregate(node)
        if isinstance(node, promql.Call):
            return self._call(node)
        if isinstance(node, promql.BinaryExpr):
            return self._binary(node)
        if isinstance(node, (promql.ParenExpr, promql.UnaryExpr, promql.SubqueryExpr)):
            return self.of(node.expr)
        return frozenset()

    def _selector(self, node: Any) -> frozenset[str]:
        matchers = list(node.matchers.matchers)
        name = node.name or next((matcher.value for matcher in matchers if matcher.name == _NAME), "")
        name = _OPTIONAL.sub("", name)
        if name not in self._known:
            self.faults.append(f"{name or node.prettify()} is no metric of semconv or the stack")
            return frozenset()
        labels = self._known[name]
        self._want(labels, [matcher.name for matcher in matchers if matcher.name != _NAME], name)
        return labels

    def _want(self, labels: frozenset[str], wanted: list[str], what: str) -> None:
        for label in wanted:
            if not _has(labels, label):
                self.faults.append(f"{label} is no label of {what}")

    def _aggregate(self, node: Any) -> frozenset[str]:
        labels = self.of(node.expr)
        modifier = node.modifier
        if modifier is None:
            # topk and its like keep the series as they are
            return labels if str(node.op) in ("topk", "bottomk", "limitk") else frozenset()
        if modifier.type == promql.AggModifierType.By:
            self._want(labels, modifier.labels, node.prettify())
            return frozenset(modifier.labels)
        return labels - frozenset(modifier.labels)

    def _call(self, node: Any) -> frozenset[str]:
        labels: frozenset[str] = frozenset().union(*(self.of(argument) for argument in node.args))
        if node.func.name in ("label_replace", "label_join"):
            labels |= {node.args[1].val}
        return labels

    def _binary(self, node: Any) -> frozenset[str]:
        left, right = self.of(node.lhs), self.of(node.rhs)
        matching = node.modifier.matching if node.modifier is not None else None
        if matching is not None and str(matching.type).endswith("Include"):
            for side in (left, right):
                if side:
                    self._want(side, matching.labels, node.prettify())
        return left if str(node.op) in ("unless", "and") else left | right
