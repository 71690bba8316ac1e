"""Pipeline health: whether what the apps send arrives, and what is lost on the way."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models.dashboard import Dashboard

from .. import semconv
from .board import AnyPanel, board
from .panels import figure, graph
from .promql import RANGE, grown, increase, or_zero, or_zero_named, per_second, select, total
from .series import SERVICE, label, series
from .stack_metrics import COLLECTOR, FAILED_ITEMS, REFUSED_ITEMS, collector
from .targets import Target, legend, now, over_time
from .thresholds import DROPS, QUEUE_SHARE, Limits
from .variables import BY_SERVICE, service

__all__ = ["UID", "dashboard"]

UID: Final = "claudescope-pipeline"
_DROPPED: Final = select(series(semconv.DROPPED), BY_SERVICE)
_DROP_LABELS: Final = (SERVICE, label(semconv.DROPPED_KIND), label(semconv.DROPPED_REASON))
_JOBS: Final = 'job=~"collector|jaeger|prometheus|alertmanager"'
_ITEMS: Final = (("spans", "spans"), ("metric_points", "metric points"), ("log_records", "log records"))
_DECISIONS: Final = "processor_tail_sampling_global_count_traces_sampled"
_MEMORY: Final = f'{{__name__=~"otelcol_process_memory_rss(_bytes)?", job="{COLLECTOR}"}}'
_FULL: Final = " / ".join(
    f'max by (exporter) (otelcol_exporter_queue_{end}{{job="{COLLECTOR}"}})' for end in ("size", "capacity")
)
_SILENT: Final = "The collector does not answer"
_REFUSED_SAMPLES: Final = (
    ("out_of_order", "out of order"),
    ("too_old", "too old"),
    ("out_of_bound", "out of bounds"),
)


def dashboard() -> Dashboard:
    """The dashboard."""
    return board(
        UID,
        "Pipeline health",
        "Apps, collector, Jaeger, Prometheus, Alertmanager: what arrives, what waits, what is lost.",
        [service()],
        [
            ("Is anything lost?", _losses()),
            ("Apps", _apps()),
            ("Collector", _collector()),
            ("Prometheus and Alertmanager", _stores()),
        ],
    )


def _losses() -> list[AnyPanel]:
    return [
        figure(
            "Parts that answer",
            "Of collector, Jaeger, Prometheus and Alertmanager: how many Prometheus reaches. All four is well.",
            over_time(or_zero(f"sum(up{{{_JOBS}}})")),
            "none",
            bounds=Limits(4, 3, low=True),
            decimals=0,
            width=4,
            none="0",
        ),
        figure(
            "Dropped by apps",
            "Steps, spans, logs and assessments that claudescope itself could not keep, in the time range.",
            now(or_zero(total(increase(_DROPPED)))),
            "none",
            bounds=DROPS,
            decimals=0,
            width=4,
            none="0",
        ),
        figure(
            "Refused by the collector",
            "Items that the collector did not take, in the time range. Senders that try again lose nothing yet.",
            now(or_zero(total(grown(REFUSED_ITEMS, RANGE)))),
            "none",
            bounds=DROPS,
            decimals=0,
            width=4,
            none="0",
        ),
        figure(
            "Dropped by the collector",
            "Items that found the queue full or were refused for good by where they went, in the time range.",
            now(or_zero(total(grown(FAILED_ITEMS, RANGE)))),
            "none",
            bounds=DROPS,
            decimals=0,
            width=4,
            none="0",
        ),
        figure(
            "Fullest queue",
            "How full the fullest queue of the collector is. It fills while Jaeger or Prometheus is away.",
            over_time(f"max({_FULL})"),
            "percentunit",
            bounds=QUEUE_SHARE,
            decimals=1,
            width=4,
            none=_SILENT,
        ),
        figure(
            "Samples refused by Prometheus",
            "Out of order, too old or out of bounds, in the time range.",
            now(" + ".join(f"({or_zero(total(increase(_refused(name))))})" for name, _ in _REFUSED_SAMPLES)),
            "none",
            bounds=DROPS,
            decimals=0,
            width=4,
            none="0",
        ),
    ]


def _refused(reason: str) -> str:
    return f'prometheus_tsdb_{reason}_samples_total{{job="prometheus"}}'


def _apps() -> list[AnyPanel]:
    steps = select(series(semconv.STEPS), BY_SERVICE)
    return [
        graph(
            "Steps by service",
            "Steps a second that arrive in Prometheus. A service that ends here has stopped, or is cut off.",
            [over_time(total(per_second(steps), SERVICE), legend(SERVICE))],
            "cps",
        ),
        graph(
            "What apps dropped",
            "Items a minute that claudescope itself could not keep, in all and by service, kind and reason.",
            [
                over_time(or_zero(f"60 * {total(per_second(_DROPPED))}"), "all"),
                over_time(
                    or_zero_named(f"60 * {total(per_second(_DROPPED), *_DROP_LABELS)}", SERVICE, "none"),
                    legend(*_DROP_LABELS),
                ),
            ],
            "none",
        ),
    ]


def _rates(verb: str) -> list[Target]:
    return [over_time(or_zero(total(per_second(collector(f"{verb}_{what}")))), name) for what, name in _ITEMS]


def _collector() -> list[AnyPanel]:
    policies = collector("processor_tail_sampling_count_traces_sampled", 'sampled="true"')
    early = collector("processor_tail_sampling_sampling_trace_dropped_too_early")
    return [
        graph("Received", "Items a second that the collector took.", _rates("receiver_accepted"), "cps", width=8),
        graph("Sent", "Items a second that Jaeger and Prometheus took.", _rates("exporter_sent"), "cps", width=8),
        graph(
            "Queues",
            "How full each queue is. It fills while what it is for is away; a full one refuses what comes in.",
            [over_time(_FULL, legend("exporter"))],
            "percentunit",
            bounds=QUEUE_SHARE,
            decimals=1,
            top=1,
            width=8,
            none=_SILENT,
        ),
        graph(
            "Refused and failed",
            "Items within five minutes: refused at the door, and kept out of a full queue or refused for good by where"
            " they went.",
            [
                over_time(or_zero_named(total(grown(name, "5m"), key), key, "none"), f"{words} {legend(key)}")
                for name, key, words in ((REFUSED_ITEMS, "transport", "refused"), (FAILED_ITEMS, "exporter", "failed"))
            ],
            "none",
            width=8,
        ),
        graph(
            "Sampling decisions",
            "Traces a second that tail sampling kept and dropped. At 100 % nothing goes through it.",
            [
                over_time(or_zero(total(per_second(collector(_DECISIONS, matcher)))), name)
                for matcher, name in (('sampled="true"', "kept"), ('sampled="false"', "dropped"))
            ],
            "cps",
            width=8,
        ),
        graph(
            "Kept by policy",
            "Traces a second by the policies that wanted them kept, and traces that left before their decision.",
            [
                over_time(or_zero_named(total(per_second(policies), "policy"), "policy", "none"), legend("policy")),
                over_time(or_zero(total(per_second(early))), "left too early"),
            ],
            "cps",
            width=8,
        ),
        graph(
            "CPU",
            "Cores that the collector uses.",
            [over_time(total(per_second(collector("process_cpu_seconds"))), "collector")],
            "none",
            decimals=3,
            none=_SILENT,
        ),
        graph(
            "Memory",
            "Resident memory of the collector.",
            [over_time(f"max({_MEMORY})", "collector")],
            "bytes",
            none=_SILENT,
        ),
    ]


def _stores() -> list[AnyPanel]:
    return [
        graph(
            "Series in Prometheus",
            "Series that are in memory: labels with many values make this grow.",
            [over_time('max(prometheus_tsdb_head_series{job="prometheus"})', "series")],
            "short",
            decimals=0,
            width=8,
            none="Prometheus does not scrape itself",
        ),
        graph(
            "Samples that Prometheus refused",
            "Samples a second by reason: a clock is off, or two senders have one identity.",
            [over_time(or_zero(total(per_second(_refused(name)))), words) for name, words in _REFUSED_SAMPLES],
            "cps",
            width=8,
        ),
        graph(
            "Alerts on their way",
            "A minute: evaluations of rules that failed, notifications that Prometheus dropped, and that Alertmanager"
            " could not deliver.",
            [
                over_time(or_zero(f"60 * {total(per_second(name))}"), words)
                for name, words in (
                    ('prometheus_rule_evaluation_failures_total{job="prometheus"}', "rules failed"),
                    ('prometheus_notifications_dropped_total{job="prometheus"}', "dropped by Prometheus"),
                    ('alertmanager_notifications_failed_total{job="alertmanager"}', "not delivered"),
                )
            ],
            "none",
            width=8,
        ),
    ]
