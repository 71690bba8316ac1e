"""Good files give exactly these objectives."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from claudescope.slo.objective import (
    BadAndTotal,
    Canary,
    Indicator,
    LoadBound,
    Notice,
    Objective,
    Origin,
    Ratio,
    Selection,
    Tier,
)
from claudescope.slo.spec.load import load, read
from claudescope.slo.tiers import DEFAULT_TIERS
from claudescope.slo.window import CalendarPeriod, Window

FOLDER = Path(__file__).parent / "good"
W = "[{{.window}}]"
BOT = Selection(service=("support-bot",))


def origin(name: str, line: int) -> Origin:
    path = FOLDER / f"{name}.yml"
    return Origin(str(path), line, hashlib.sha256(path.read_bytes()).hexdigest())


def tiers(*factors: float, asked: tuple[float | None, ...] = (None,) * 4) -> tuple[Tier, ...]:
    """The default ones with other factors."""
    return tuple(
        replace(tier, factor=factor, asked=was) for tier, factor, was in zip(DEFAULT_TIERS, factors, asked, strict=True)
    )


EXPECTED = [
    Objective(
        "checkout",
        "requests-availability",
        0.999,
        BadAndTotal(
            f'sum(rate(nginx_ingress_controller_requests{{exported_service="checkout",status=~"(5..|429)"}}{W}))',
            f'sum(rate(nginx_ingress_controller_requests{{exported_service="checkout"}}{W}))',
            "second",
        ),
        DEFAULT_TIERS,
        origin("sloth-availability", 8),
        description="Requests that were not answered with a server error.",
        labels={"owner": "team-payments", "tier": "1", "category": "availability"},
        alert="CheckoutAvailability",
        alert_labels={"routing_key": "payments"},
        alert_annotations={
            "runbook": "https://runbooks.example.com/checkout",
            "summary": "The error rate of {{$labels.sloth_service}} is too high",
        },
        page=Notice({"severity": "pageteam"}),
        ticket=Notice({"severity": "slack", "slack_channel": "#payments-alerts"}),
    ),
    Objective(
        "search",
        "latency-400ms",
        0.95,
        BadAndTotal(
            f'(\n  sum(rate(http_request_duration_seconds_count{{job="search", code!~"5.."}}{W}))\n  -\n'
            f'  sum(rate(http_request_duration_seconds_bucket{{job="search", code!~"5..", le="0.4"}}{W}))\n)',
            f'sum(rate(http_request_duration_seconds_count{{job="search", code!~"5.."}}{W}))',
            "second",
        ),
        DEFAULT_TIERS,
        origin("sloth-latency", 4),
        alert="SearchLatency",
        page=Notice(disabled=True),
        ticket=Notice({"severity": "warning"}),
    ),
    Objective(
        "gateway",
        "upstream-errors",
        0.9995,
        Ratio(
            f'sum(rate(envoy_cluster_upstream_rq_xx{{envoy_response_code_class="5"}}{W}))\n/\n'
            f"(sum(rate(envoy_cluster_upstream_rq_total{W})) > 0) OR on() vector(0)"
        ),
        DEFAULT_TIERS,
        origin("sloth-raw", 4),
        alert="GatewayUpstreamErrors",
    ),
    Objective(
        "jobs",
        "job-failures",
        0.99,
        BadAndTotal(
            f'sum(increase(job_runs_total{{result="failed"}}{W})) or vector(0)',
            f"sum(increase(job_runs_total{W}))",
            "window",
        ),
        DEFAULT_TIERS,
        origin("sloth-increase", 5),
        # text as it is written, whatever YAML would make of it
        labels={"component": "scheduler", "released": "2024-01-01", "canary": "no", "code": "007"},
        alert="JobFailures",
        page=Notice(disabled=True),
    ),
    Objective(
        "website",
        "probes",
        0.995,
        BadAndTotal(
            'sum(count_over_time((probe_success{job="blackbox"} == 0)[{{.window}}:30s]))',
            f'sum(count_over_time(probe_success{{job="blackbox"}}{W}))',
            "window",
        ),
        DEFAULT_TIERS,
        origin("sloth-probes", 4),
        alert="WebsiteDown",
    ),
    Objective(
        "api",
        "reads",
        0.999,
        BadAndTotal(
            f'sum(rate(api_requests_total{{verb="GET",code=~"5.."}}{W}))',
            f'sum(rate(api_requests_total{{verb="GET"}}{W}))',
        ),
        DEFAULT_TIERS,
        origin("sloth-anchors", 8),
        alert="ApiReads",
        alert_labels={"team": "platform"},
        page=Notice({"severity": "critical"}),
        ticket=Notice({"severity": "warning"}),
    ),
    Objective(
        "api",
        "writes",
        0.995,
        BadAndTotal(
            f'sum(rate(api_requests_total{{verb="GET",code="500"}}{W}))',
            f'sum(rate(api_requests_total{{verb="GET"}}{W}))',
        ),
        DEFAULT_TIERS,
        origin("sloth-anchors", 15),
        alert="ApiWrites",
        page=Notice({"severity": "critical"}),
    ),
    Objective(
        "one",
        "a",
        0.99,
        Ratio("one:errors:ratio_rate{{.window}}"),
        DEFAULT_TIERS,
        origin("sloth-two-documents", 5),
        alert="OneA",
    ),
    Objective(
        "two",
        "a",
        0.99,
        Ratio(f"avg_over_time(two_ratio{W})"),
        DEFAULT_TIERS,
        origin("sloth-two-documents", 14),
        alert="TwoA",
    ),
    Objective(
        "edge",
        "requests",
        0.999,
        BadAndTotal(
            f'sum(rate(edge_requests_total{{code=~"5.."}}{W})) by (region)',
            f"sum by (region) (rate(edge_requests_total{W}))",
        ),
        DEFAULT_TIERS,
        origin("sloth-grouped", 4),
        group_by=("region",),
        alert="EdgeRequests",
    ),
    Objective(
        "legacy",
        "recorded",
        0.99,
        Ratio("(sum(legacy:errors:rate{{.window}}))\n/\n(sum(legacy:requests:rate{{.window}}))"),
        DEFAULT_TIERS,
        origin("sloth-recorded", 4),
        alert="Legacy",
    ),
    Objective(
        "legacy",
        "weighted",
        0.99,
        Ratio(f"(sum(rate(legacy_errors_total{W})) * 60)\n/\n(sum(rate(legacy_requests_total{W})) * 60)"),
        DEFAULT_TIERS,
        origin("sloth-recorded", 11),
        alert="LegacyWeighted",
    ),
    Objective(
        "support-bot",
        "valid-steps",
        0.99,
        Indicator(
            "step_validity",
            Selection(
                service=("support-bot",),
                model=("claude-opus-4-1",),
                tool=("search", "fetch"),
                index=("0", "7", "16+"),
                labels=(("tier", ("gold",)),),
            ),
            unknown="bad",
        ),
        (
            replace(DEFAULT_TIERS[0], wait=Window(60)),
            replace(DEFAULT_TIERS[1], wait=Window(60)),
            *DEFAULT_TIERS[2:],
        ),
        origin("native-quality", 5),
        description="Steps of the bot pass their checks.",
        group_by=("gen_ai_request_model", "claudescope_label_tier"),
        alpha=0.001,
        min_events=3,
        keep_firing=Window(600),
        absent_after=None,
        labels={"team": "assist"},
        canary=Canary("service_version", "v2", "v1", Window(3600), 4.0),
    ),
    Objective(
        "support-bot",
        "confidence",
        0.9,
        Indicator("step_confidence", replace(BOT, kind=("thinking",)), 0.7),
        # for 31 days 31/30 of the default ones; 14.88 x .1 is over 1, so 90 % failures: .9 / .1
        tiers(9.0, 6.2, 3.1, 31 / 30, asked=(14.88, None, None, None)),
        origin("native-quality", 17),
        period=CalendarPeriod("month"),
        labels={"team": "assist"},
    ),
    Objective(
        "support-bot",
        "latency",
        0.99,
        Indicator("step_latency", bound=0.2, loads=(LoadBound(5000, 0.35),)),
        DEFAULT_TIERS,
        origin("native-quality", 21),
        group_by=("service_name",),
        labels={"team": "assist"},
    ),
    Objective(
        "support-bot",
        "errors",
        0.995,
        Indicator("errors", BOT),
        DEFAULT_TIERS,
        origin("native-quality", 27),
        labels={"team": "assist"},
    ),
    Objective(
        "support-bot",
        "first-content",
        0.95,
        Indicator("time_to_first_chunk", replace(BOT, model=("a", "b")), 2.56),
        # 7/30 of the default ones; below 1 the budget lasts
        tiers(3.36, 1.4, 1.0, 1.0, asked=(None, None, 0.7, 7 / 30)),
        origin("native-quality", 31),
        period=Window(7 * 86_400),
        labels={"team": "assist"},
    ),
    Objective(
        "support-bot",
        "tools",
        0.98,
        Indicator("tool_success", replace(BOT, tool=("search",))),
        (
            Tier("page-5m-1h", "page", Window(300), Window(3600), 10.0, Window(0)),
            Tier("slow", "ticket", Window(21_600), Window(259_200), 1.5, Window(300)),
        ),
        origin("native-quality", 35),
        alpha=0.0,
        labels={"team": "assist"},
    ),
    Objective(
        "support-bot",
        "saturation",
        0.99,
        Indicator("saturation", BOT, 0.8),
        tiers(*(tier.factor * 92 / 30 for tier in DEFAULT_TIERS)),
        origin("native-quality", 43),
        period=CalendarPeriod("quarter"),
        labels={"team": "assist"},
    ),
    Objective(
        "support-bot",
        "latency-of-search",
        0.99,
        Indicator("step_latency", replace(BOT, tool=("search",)), 1.2),
        DEFAULT_TIERS,
        origin("native-counter", 4),
    ),
    Objective(
        "support-bot",
        "low-target",
        0.6,
        Indicator("step_validity", BOT),
        tiers(2.25, 2.25, 2.25, 1.0, asked=(14.4, 6.0, 3.0, None)),  # 90 % failures: .9 / .4
        origin("native-counter", 7),
    ),
    Objective(
        "support-bot",
        "own-unit",
        0.99,
        BadAndTotal(f'sum(rate(a_total{{bad="1"}}{W})) * 60', f"sum(rate(a_total{W})) * 60"),
        DEFAULT_TIERS,
        origin("native-counter", 10),
        min_events=4,
    ),
    Objective(
        "bot",
        "answers",
        0.99,
        BadAndTotal(
            f'clamp_min((sum(rate(answers_total{W}))\n) - ((sum(rate(answers_total{{code!~"5.."}}{W}))\n)'
            f" or 0 * (sum(rate(answers_total{W}))\n)), 0)",
            f"sum(rate(answers_total{W}))",
        ),
        DEFAULT_TIERS,
        origin("openslo-good", 1),
        description="Answers without an error.",
        labels={"team": "assist", "app_kubernetes_io_name": "bot"},
    ),
    Objective(
        "bot",
        "calls-gold",
        0.995,
        BadAndTotal(f'sum(increase(calls_total{{code="500"}}{W}))', f"sum(increase(calls_total{W}))", "window"),
        tiers(13.44, 5.6, 2.8, 1.0, asked=(None, None, None, 28 / 30)),
        origin("openslo-reference", 10),
        period=Window(28 * 86_400),
    ),
    Objective(
        "bot",
        "calls-2",
        0.9,
        BadAndTotal(f'sum(increase(calls_total{{code="500"}}{W}))', f"sum(increase(calls_total{W}))", "window"),
        tiers(9.0, 5.6, 2.8, 1.0, asked=(13.44, None, None, 28 / 30)),
        origin("openslo-reference", 11),
        period=Window(28 * 86_400),
    ),
    Objective(
        "bot",
        "ratio",
        0.9,
        Ratio(f"1 - (sum(rate(good_total{W})) / sum(rate(all_total{W}))\n)"),
        tiers(9.0, 6.0, 3.0, 1.0, asked=(14.4, None, None, None)),
        origin("openslo-raw", 1),
    ),
]


@pytest.fixture(scope="module")
def found() -> dict[str, Objective]:
    return {objective.id: objective for objective in load([FOLDER])}


def rounded(objective: Objective) -> Objective:
    """With factors to nine digits, as they are kept."""
    return replace(
        objective,
        tiers=tuple(
            replace(tier, factor=round(tier.factor, 9), asked=None if tier.asked is None else round(tier.asked, 9))
            for tier in objective.tiers
        ),
    )


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda objective: objective.id)
def test_the_objective_is_exactly_this(expected, found):
    assert found[expected.id] == rounded(expected)


def test_there_are_no_others(found):
    assert sorted(found) == sorted(objective.id for objective in EXPECTED)


def said(name: str) -> dict[str, list[tuple[int, str, str]]]:
    reading = read([FOLDER / f"{name}.yml"])
    assert reading.problems == []
    return {key: [(w.line, w.what, w.fix) for w in warnings] for key, warnings in reading.warnings.items()}


def test_what_is_capped_is_said():
    few = "too few events"
    assert said("native-counter") == {
        "support-bot-latency-of-search": [
            (
                6,
                (
                    "1.2s is no bucket boundary of claudescope.step.duration: a counter is read instead, which the app"
                    " records with CLAUDESCOPE_STEP_BOUNDS=1.2s."
                ),
                "",
            )
        ],
        "support-bot-low-target": [
            (7, f"{name}: {asked} times the budget would be {share} % failures; capped to 2.25 times, 90 %.", "")
            for name, asked, share in (("page-fast", 14.4, 576), ("page-slow", 6, 240), ("ticket-fast", 3, 120))
        ]
        + [
            (
                7,
                f"{name} fires at the same share as page-fast: it only adds something where there are {few} in 1h.",
                "",
            )
            for name in ("page-slow", "ticket-fast")
        ],
    }


def test_each_objective_of_one_document_has_its_own_warnings():
    assert {key: [line for line, _, _ in warnings] for key, warnings in said("openslo-reference").items()} == {
        "bot-calls-gold": [10],
        "bot-calls-2": [11, 11],
    }


@pytest.mark.parametrize(
    ("name", "objective", "reason"),
    [
        ("sloth-recorded", "legacy-recorded", "{{.window}} is in no function's range"),
        ("sloth-recorded", "legacy-weighted", "it has a *"),
    ],
)
def test_a_unit_that_cannot_be_seen_is_said(name, objective, reason):
    ((_, what, fix),) = said(name)[objective]
    assert f"what it counts cannot be seen, since {reason}." in what
    assert fix == "Write `per: second` or `per: window` beside it."


def test_groups_of_queries_are_said():
    assert said("sloth-grouped") == {
        "edge-requests": [(4, "Each region has a budget of its own, as the queries are grouped by it.", "")]
    }


@pytest.mark.parametrize("name", [path.stem for path in FOLDER.iterdir()])
def test_only_these_files_have_warnings(name):
    with_warnings = {"native-counter", "native-quality", "sloth-recorded", "sloth-grouped", "openslo-reference"}
    assert bool(said(name)) == (name in with_warnings | {"openslo-raw"})
