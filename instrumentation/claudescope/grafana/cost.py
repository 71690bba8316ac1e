"""What tokens cost: PromQL over ``claudescope.tokens`` and the price table, which Prometheus has as recording rules."""

from __future__ import annotations

import json
from typing import Final

from .. import semconv
from ..prices import Model, Prices
from .promql import increase, per_second, select, total
from .series import label, series

__all__ = [
    "PRICE",
    "PRICE_DATE",
    "PRICE_MODEL",
    "RESPONSE_MODEL",
    "TOKENS",
    "TOKEN_CLASS",
    "cost",
    "long_prompts",
    "price_rules",
    "unpriced",
]

TOKENS: Final = series(semconv.TOKENS)
TOKEN_CLASS: Final = label(semconv.TOKEN_CLASS)
RESPONSE_MODEL: Final = label(semconv.RESPONSE_MODEL)
PRICE: Final = "claudescope:price:usd_per_token"
"""The recorded price: one series for each model of the table and class of token."""
PRICE_MODEL: Final = "price_model"
PRICE_DATE: Final = "price_date"
_CLASSES: Final = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output")
"""Classes of tokens; a price has a field of the same name for each."""

# What gateways and clouds put around a model's name is taken off, as claudescope.prices does it.
_NAME: Final = (
    r"(?:.*/)?(?:(?:[a-z0-9-]+[.])?anthropic[.])?(.+?)"
    r"(?:-v[0-9]+)?(?:[-@](?:[0-9]{8}|latest|default))?(?:-v[0-9]+(?::[0-9]+)?(?::[0-9]+k)?|\\[1m\\])?"
)
_DOTTED: Final = r"(.*[0-9])[.]([0-9].*)"


def _named(tokens: str) -> str:
    """Adds the label ``price_model`` to a sum of tokens by response model."""
    plain = f'label_replace({tokens}, "{PRICE_MODEL}", "$1", "{RESPONSE_MODEL}", "{_NAME}")'
    return f'label_replace({plain}, "{PRICE_MODEL}", "$1-$2", "{PRICE_MODEL}", "{_DOTTED}")'


def _tokens(matchers: tuple[str, ...], by: tuple[str, ...], window: str, rate: bool) -> str:
    selector = select(TOKENS, *matchers)
    grown = per_second(selector, window) if rate else increase(selector, window)
    return _named(total(grown, RESPONSE_MODEL, TOKEN_CLASS, *by))


def cost(*matchers: str, by: tuple[str, ...] = (), window: str, rate: bool = False) -> str:
    """USD within ``window``, or USD a second; tokens of models without a price are left out."""
    kept = tuple(name for name in by if name not in (RESPONSE_MODEL, TOKEN_CLASS))
    priced = f"{_tokens(matchers, kept, window, rate)} * on ({PRICE_MODEL}, {TOKEN_CLASS}) group_left () {PRICE}"
    return total(priced, *by)


def unpriced(*matchers: str, window: str, by: tuple[str, ...] = (RESPONSE_MODEL,)) -> str:
    """Tokens of models that the price table does not name."""
    used = f"{_tokens(matchers, (), window, False)} unless on ({PRICE_MODEL}, {TOKEN_CLASS}) {PRICE}"
    return f"{total(used, *by)} > 0"


def price_rules(prices: Prices) -> str:
    """A Prometheus rule file, with one constant for each price."""
    lines = [
        f"# List prices of {prices.date}, USD a token. Made by `claudescope dashboards build` from the price table",
        "# (claudescope/prices.json, or the file that --prices names).",
        "groups:",
        "  - name: claudescope-prices",
        "    interval: 30s",
        "    rules:",
    ]
    for name, model in prices._models.items():
        for kind in _CLASSES:
            value = getattr(model.price, kind) / 1_000_000
            labels = json.dumps({PRICE_MODEL: name, TOKEN_CLASS: kind, PRICE_DATE: prices.date})
            lines.append(f"      - {{record: '{PRICE}', expr: vector({value:.10g}), labels: {labels}}}")
    return "\n".join(lines) + "\n"


def long_prompts(prices: Prices) -> list[tuple[str, Model]]:
    """Models whose long prompts cost another price, which no metric tells apart."""
    return [(name, model) for name, model in prices._models.items() if model.long is not None]
