"""The template variables, and the matchers that put them into a query.

Every dashboard names them alike, so that a link from one to another keeps the choice.
"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders.dashboard import DatasourceVariable, QueryVariable, TextBoxVariable
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.dashboard import VariableHide, VariableOption, VariableRefresh, VariableSort

from .. import semconv
from .series import LABEL_PREFIX, SERVICE, label, series
from .stack_metrics import SLO

__all__ = [
    "BY_SERVICE",
    "CHOSEN_STEP",
    "JAEGER",
    "KIND",
    "LABEL",
    "MODEL",
    "PROMETHEUS",
    "STEP",
    "STEP_LABELS",
    "business_label",
    "chosen_step",
    "data_sources",
    "explainer",
    "kind",
    "model",
    "objective",
    "of_calls",
    "of_objectives",
    "of_steps",
    "service",
    "traced_service",
]

PROMETHEUS: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
JAEGER: Final = DataSourceRef(type_val="jaeger", uid="${traces}")

MODEL: Final = label(semconv.REQUEST_MODEL)
KIND: Final = label(semconv.STEP_KIND)
STEP: Final = label(semconv.STEP_INDEX)
STEP_LABELS: Final = (SERVICE, MODEL, KIND, STEP)
"""The labels that say which step a figure is about."""

BY_SERVICE: Final = f'{SERVICE}=~"$service"'
_BY_MODEL: Final = f'{MODEL}=~"$model"'
_BY_KIND: Final = f'{KIND}=~"$kind"'
LABEL: Final = f'{LABEL_PREFIX}${{label}}=~"$value"'
"""Matches the chosen value of the chosen business label, and everything where none is chosen."""
CHOSEN_STEP: Final = f'{STEP}=~"$step"'

_STEPS: Final = series(semconv.STEPS)
_EVERYTHING: Final = VariableOption(text="All", value="$__all")


def _query(name: str, title: str, query: str, description: str) -> QueryVariable:
    """Several values or all; all is any value, so also none."""
    return (
        QueryVariable(name)
        .label(title)
        .description(description)
        .datasource(PROMETHEUS)
        .query({"query": query, "refId": name})
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.NATURAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(_EVERYTHING)
    )


def data_sources() -> list[DatasourceVariable]:
    """Where metrics and traces come from; hidden, and by default those that the stack provisions."""
    return [
        DatasourceVariable(name)
        .label(title)
        .type(kind)
        .hide(VariableHide.HIDE_VARIABLE)
        .current(VariableOption(text=title, value=kind))
        for name, title, kind in (("datasource", "Prometheus", "prometheus"), ("traces", "Jaeger", "jaeger"))
    ]


def service() -> QueryVariable:
    """``$service``: the senders' service.name."""
    return _query("service", "Service", f"label_values({_STEPS}, {SERVICE})", "Apps by their service.name.")


def model() -> QueryVariable:
    """``$model``: the model that was asked for."""
    return _query(
        "model", "Model", f"label_values({_STEPS}{{{BY_SERVICE}}}, {MODEL})", "Models that these services ask for."
    )


def kind() -> QueryVariable:
    """``$kind``: the type of content block, or tool_run."""
    return _query(
        "kind",
        "Kind",
        f"label_values({_STEPS}{{{BY_SERVICE}}}, {KIND})",
        "Kinds of steps: thinking, text, tool_use, tool_run (a tool that the app ran), ...",
    )


def chosen_step() -> QueryVariable:
    """``$step``: the step number that the distribution is of."""
    return _query(
        "step",
        "Step number",
        f"label_values({_STEPS}{{{BY_SERVICE}}}, {STEP})",
        "Number of the step in its agent run, from 0; 16+ is all further ones.",
    )


def business_label() -> list[QueryVariable]:
    """``$label`` and ``$value``: a business label that metrics carry, and its values."""
    key = (
        _query("label", "Label", f"label_names({_STEPS})", "Business labels named in CLAUDESCOPE_METRIC_LABELS.")
        .regex(f"/^{LABEL_PREFIX}(.+)$/")
        .multi(False)
        .include_all(False)
        .all_value("")
        .current(VariableOption(text="", value=""))
    )
    values = _query(
        "value",
        "Value",
        f"label_values({_STEPS}{{{BY_SERVICE}}}, {LABEL_PREFIX}${{label}})",
        "Values of that label.",
    )
    return [key, values]


def traced_service() -> QueryVariable:
    """``$traced``: the one service whose traces are listed, since a search in Jaeger is of one service."""
    return (
        _query("traced", "Traces of", f"label_values({_STEPS}, {SERVICE})", "The service whose traces are listed.")
        .multi(False)
        .include_all(False)
        .all_value("")
        .current(VariableOption(text="", value=""))
    )


def objective() -> QueryVariable:
    """``$slo``: ids of objectives."""
    return _query(
        "slo",
        "Objective",
        f"label_values(claudescope_slo_info, {SLO})",
        "Objectives whose rules Prometheus has, as SERVICE-NAME.",
    )


def explainer() -> TextBoxVariable:
    """``$explainer``: where a browser reaches the explainer, for links to it."""
    return (
        TextBoxVariable("explainer")
        .label("Explainer")
        .description("Where a browser reaches claudescope explainer; links of objectives lead to it.")
        .default_value("http://localhost:9096")
        .current(VariableOption(text="http://localhost:9096", value="http://localhost:9096"))
    )


def of_objectives(*, by_service: bool = True) -> tuple[str, ...]:
    """Matchers of what the rules of objectives record. What is not told apart by service is of every service."""
    return (f'{SLO}=~"$slo"', f'{SERVICE}=~"$service|"') if by_service else (f'{SLO}=~"$slo"',)


def of_calls() -> tuple[str, ...]:
    """Matchers of the metrics of calls."""
    return (BY_SERVICE, _BY_MODEL)


def of_steps() -> tuple[str, ...]:
    """Matchers of the metrics of steps."""
    return (BY_SERVICE, _BY_MODEL, _BY_KIND)
