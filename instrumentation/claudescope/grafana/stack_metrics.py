"""The stack's own metrics that dashboards and alerts use, with the labels that they have.

The collector writes its counters with or without ``_total``, as its telemetry is set: both are accepted.
"""

from __future__ import annotations

from typing import Final

__all__ = ["COLLECTOR", "FAILED_ITEMS", "REFUSED_ITEMS", "SLO", "STACK", "WINDOWS", "collector"]

COLLECTOR: Final = "collector"
"""The job under which Prometheus scrapes the collector."""
FAILED_ITEMS: Final = "claudescope:collector_failed_items:sum"
"""Recorded by the shipped rules: what the collector could not queue or send, of all signals."""
REFUSED_ITEMS: Final = "claudescope:collector_refused_items:sum"
"""Recorded by the shipped rules: what the collector did not take, of all signals."""
SLO: Final = "claudescope_slo"
"""The label with an objective's id, on all that its rules record and on its alerts."""
WINDOWS: Final = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
"""The windows of the tiers that an objective has by default."""
_SCRAPED: Final = ("job", "instance", "__name__")
_RECEIVED: Final = ("receiver", "transport", *_SCRAPED)
_EXPORTED: Final = ("exporter", *_SCRAPED)
_ITEMS: Final = ("spans", "metric_points", "log_records")
_QUEUED: Final = ("exporter", "data_type", *_SCRAPED)
_OBJECTIVE: Final = (SLO, "claudescope_slo_name", "claudescope_slo_service", "service_name", "__name__")
"""Labels of all that the rules of an objective record; those of its groups come besides."""
_TIER: Final = ("burnrate_tier", "severity", "long", "short")

STACK: Final[dict[str, tuple[str, ...]]] = {
    "up": _SCRAPED,
    "ALERTS": ("alertname", "alertstate", *_TIER, *_OBJECTIVE, *_SCRAPED),
    "claudescope_slo_info": (*(f"claudescope_slo_{what}" for what in ("measure", "objective", "period")), *_OBJECTIVE),
    "slo:tier:burn_rate": (*_TIER, *_OBJECTIVE),
    **{f"slo:sli_error:ratio_rate{window}": _OBJECTIVE for window in WINDOWS},
    **dict.fromkeys(
        (
            "slo:objective:ratio",
            "slo:error_budget:ratio",
            "slo:current_burn_rate:ratio",
            "slo:period_burn_rate:ratio",
            "slo:period_error_budget_remaining:ratio",
            "slo:sli_bad:rate5m",
            "slo:sli_total:rate5m",
        ),
        _OBJECTIVE,
    ),
    FAILED_ITEMS: ("exporter", "__name__"),
    REFUSED_ITEMS: ("transport", "__name__"),
    "otelcol_process_cpu_seconds": _SCRAPED,
    "otelcol_process_memory_rss": _SCRAPED,
    **{f"otelcol_receiver_accepted_{what}": _RECEIVED for what in _ITEMS},
    **{f"otelcol_exporter_sent_{what}": _EXPORTED for what in _ITEMS},
    "otelcol_exporter_queue_size": _QUEUED,
    "otelcol_exporter_queue_capacity": _QUEUED,
    "otelcol_processor_tail_sampling_global_count_traces_sampled": ("decision", "sampled", *_SCRAPED),
    "otelcol_processor_tail_sampling_count_traces_sampled": ("policy", "decision", "sampled", *_SCRAPED),
    "otelcol_processor_tail_sampling_sampling_trace_dropped_too_early": _SCRAPED,
    "otelcol_processor_tail_sampling_sampling_traces_on_memory": _SCRAPED,
    "prometheus_tsdb_head_series": _SCRAPED,
    "prometheus_tsdb_out_of_order_samples_total": ("type", *_SCRAPED),
    "prometheus_tsdb_too_old_samples_total": ("type", *_SCRAPED),
    "prometheus_tsdb_out_of_bound_samples_total": ("type", *_SCRAPED),
    "prometheus_tsdb_exemplar_exemplars_in_storage": _SCRAPED,
    "prometheus_rule_evaluation_failures_total": ("rule_group", *_SCRAPED),
    "prometheus_notifications_dropped_total": ("alertmanager", *_SCRAPED),
    "alertmanager_notifications_failed_total": ("integration", "reason", *_SCRAPED),
}


def collector(name: str, *matchers: str) -> str:
    """Selector of one of the collector's counters, whichever way it is spelled."""
    given = (f'__name__=~"otelcol_{name}(_total)?"', f'job="{COLLECTOR}"', *matchers)
    return f"{{{', '.join(given)}}}"
