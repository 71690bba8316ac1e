"""Tokens, cache and cost: by model, class and label, at the list prices of a dated table."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from .. import semconv
from ..prices import Prices
from .board import AnyPanel, board
from .cost import PRICE, PRICE_DATE, RESPONSE_MODEL, TOKEN_CLASS, TOKENS, cost, long_prompts, unpriced
from .panels import bars, figure, graph
from .promql import RANGE, RATE, beyond, increase, mean, or_zero, per_second, quantile, select, share, total
from .series import LABEL_PREFIX, SERVICE, label, series
from .tables import Column, figures_table
from .targets import legend, now, over_time
from .thresholds import RATE_LIMIT_USED, Limits
from .variables import BY_SERVICE, LABEL, MODEL, business_label, model, of_calls, service

__all__ = ["UID", "dashboard"]

UID: Final = "claudescope-cost"
_MATCH: Final = (*of_calls(), LABEL)
_USED: Final = select(TOKENS, *_MATCH)
_INPUT: Final = select(TOKENS, *_MATCH, f'{TOKEN_CLASS}!="output"')
_READ: Final = select(TOKENS, *_MATCH, f'{TOKEN_CLASS}="cache_read"')
_LABEL: Final = f"{LABEL_PREFIX}${{label}}"
_LIMIT: Final = series(semconv.RATELIMIT_USED)
_LIMIT_KIND: Final = label(semconv.RATELIMIT_KIND)
_NONE: Final = "No tokens in this time"


def dashboard(prices: Prices) -> Dashboard:
    """The dashboard; ``prices`` is the table whose limits its texts tell."""
    return board(
        UID,
        "Tokens, cache and cost",
        f"What calls use and what that costs at list prices. {_limits(prices)}",
        [service(), model(), *business_label()],
        [
            ("Cost", _cost(prices)),
            ("Tokens and cache", _tokens()),
            ("Rate limits", _rate_limits()),
            ("Response times", _times()),
        ],
    )


def _limits(prices: Prices) -> str:
    long = [f"{name} over {found.above:,} input tokens" for name, found in long_prompts(prices)]
    more = f" Calls with long prompts cost more than is shown ({'; '.join(long)})." if long else ""
    return f"List prices of {prices.date}: no discounts, no batches, no server tools.{more}"


def _cost(prices: Prices) -> list[AnyPanel]:
    limits = _limits(prices)
    hourly = cost(*_MATCH, window=RATE, rate=True)
    return [
        figure(
            "Cost",
            f"USD in the time range. {limits}",
            now(or_zero(cost(*_MATCH, window=RANGE))),
            "currencyUSD",
            decimals=2,
            width=4,
            none="$0",
        ),
        figure(
            "Cost an hour",
            f"USD an hour, now. {limits}",
            over_time(or_zero(f"3600 * ({hourly})")),
            "currencyUSD",
            decimals=2,
            width=4,
            none="$0",
        ),
        figure(
            "Models without a price",
            "Models that answered in the time range and are not in the price table: their cost is in no sum.",
            now(or_zero(f"count({unpriced(*_MATCH, window=RANGE)})")),
            "none",
            bounds=Limits(1, 1),
            decimals=0,
            width=4,
            none="0",
        ),
        figure(
            "Prices of",
            "The day that the price table in force is of. It is a file of Prometheus rules, made by"
            " `claudescope dashboards build --prices FILE`.",
            now(f"max by ({PRICE_DATE}) ({PRICE})", legend(PRICE_DATE)),
            "none",
            width=4,
            none="No price table",
            name=True,
        ),
        figure(
            "Read from cache",
            "Share of input tokens that were read from the cache, over the time range.",
            now(share(total(increase(_READ)), total(increase(_INPUT)))),
            "percentunit",
            decimals=1,
            width=4,
            none="No tokens",
        ),
        figure(
            "Tokens",
            "Tokens in the time range, cached ones included.",
            now(or_zero(total(increase(_USED)))),
            "short",
            decimals=1,
            width=4,
            none="0",
        ),
        graph(
            "Cost by model",
            f"USD an hour by the model that answered. {limits}",
            [
                over_time(
                    f"3600 * ({cost(*_MATCH, by=(RESPONSE_MODEL,), window=RATE, rate=True)})", legend(RESPONSE_MODEL)
                )
            ],
            "currencyUSD",
            stacked=True,
            decimals=2,
            none=_NONE,
        ),
        graph(
            "Cost by class of token",
            f"USD an hour by what the tokens are priced as. {limits}",
            [over_time(f"3600 * ({cost(*_MATCH, by=(TOKEN_CLASS,), window=RATE, rate=True)})", legend(TOKEN_CLASS))],
            "currencyUSD",
            stacked=True,
            decimals=2,
            none=_NONE,
        ),
        figures_table(
            "Models",
            f"Each model that answered, over the time range; unknown: it is not in the price table. {limits}",
            {RESPONSE_MODEL: "Model"},
            [
                Column("Cost", cost(*_MATCH, by=(RESPONSE_MODEL,), window=RANGE), "currencyUSD", 2, none="unknown"),
                Column("Tokens", total(increase(_USED), RESPONSE_MODEL), "short", 1),
                Column(
                    "Read from cache",
                    share(total(increase(_READ), RESPONSE_MODEL), total(increase(_INPUT), RESPONSE_MODEL)),
                    "percentunit",
                    1,
                ),
            ],
            sort="Tokens",
            height=8,
            none=_NONE,
        ),
        bars(
            "Cost by label $label",
            "USD in the time range by the value of the business label that is chosen above (the 20 highest); one bar"
            f" without a name where none is chosen or an app has none. {limits}",
            now(f"topk(20, {cost(*_MATCH, by=(_LABEL,), window=RANGE)})", legend(_LABEL)),
            "currencyUSD",
            decimals=2,
            width=6,
            none=_NONE,
        ),
        bars(
            "Cost by service",
            f"USD in the time range by service (the 20 highest). {limits}",
            now(f"topk(20, {cost(*_MATCH, by=(SERVICE,), window=RANGE)})", legend(SERVICE)),
            "currencyUSD",
            decimals=2,
            width=6,
            none=_NONE,
        ),
    ]


def _tokens() -> list[AnyPanel]:
    return [
        graph(
            "Tokens by class",
            "Tokens a second: input that was not cached, read from and written to the cache, and output.",
            [over_time(total(per_second(_USED), TOKEN_CLASS), legend(TOKEN_CLASS))],
            "cps",
            stacked=True,
            none=_NONE,
        ),
        graph(
            "Read from cache, by model",
            "Share of a model's input tokens that were read from the cache.",
            [
                over_time(
                    share(total(per_second(_READ), RESPONSE_MODEL), total(per_second(_INPUT), RESPONSE_MODEL)),
                    legend(RESPONSE_MODEL),
                )
            ],
            "percentunit",
            decimals=1,
            top=1,
            none=_NONE,
        ),
    ]


def _rate_limits() -> list[AnyPanel]:
    told = (
        "Of the API's limits (requests, tokens, input and output tokens) the one of which most is used, from each"
        " response's headers."
    )
    none = "No response told a rate limit"
    return [
        graph(
            "Rate limit used, by model and limit",
            f"Mean share of the rate limit that is used. {told}",
            [over_time(mean(_LIMIT, *of_calls(), by=(MODEL, _LIMIT_KIND)), legend(MODEL, _LIMIT_KIND))],
            "percentunit",
            bounds=RATE_LIMIT_USED,
            decimals=1,
            width=8,
            none=none,
        ),
        graph(
            "Calls near a rate limit, by model",
            f"Share of calls after which more than {RATE_LIMIT_USED.watch:.0%} of a limit was used. {told}",
            [over_time(beyond(_LIMIT, RATE_LIMIT_USED.watch, *of_calls(), by=(MODEL,)), legend(MODEL))],
            "percentunit",
            decimals=1,
            width=8,
            none=none,
        ),
        graph(
            "Calls in flight, by service",
            "Calls whose response has not ended, as each process tells it when it sends its metrics: what was between"
            " is not seen.",
            [over_time(total(select(series(semconv.ACTIVE_CALLS), BY_SERVICE), SERVICE), legend(SERVICE))],
            "none",
            width=8,
            none="No app tells it",
        ),
    ]


def _times() -> list[AnyPanel]:
    panels: list[AnyPanel] = []
    for title, description, metric in (
        ("Call duration by model, p95", "95 % of calls are at most this long.", semconv.OPERATION_DURATION),
        (
            "Time to first content by model, p95",
            "Streamed calls: 95 % have their first content after at most this time.",
            semconv.FIRST_CHUNK,
        ),
        (
            "Time between chunks by model, p95",
            "Streamed calls: the mean time between chunks is at most this for 95 % of them.",
            semconv.CHUNK_GAP,
        ),
    ):
        query = quantile(0.95, series(metric), *of_calls(), by=(RESPONSE_MODEL,))
        panels.append(
            graph(
                title,
                description + " A mark is one call: a click on it opens its trace.",
                [over_time(query, legend(RESPONSE_MODEL), exemplar=True)],
                "s",
                width=8,
                none="No such call in this time",
            )
        )
    return panels
