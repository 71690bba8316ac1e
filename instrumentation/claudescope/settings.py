"""One table of settings: variable, type, default, sentence.

A value is taken from, in this order: a command's flag or a call's argument, the environment variable, the key of the
same name in ``claudescope.toml`` (first found from the working directory up to the repository's root, or the file that
``CLAUDESCOPE_CONFIG`` names), the default. An unknown key or variable is an error that names the nearest known one.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from .errors import UsageError
from .setting_values import (
    boolean,
    choice,
    command,
    duration,
    latencies,
    names,
    number,
    path,
    paths,
    shares,
    size,
    text,
    url,
    whole,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["SETTINGS", "Setting", "Settings", "find_config"]

T = TypeVar("T")
PREFIX: Final = "CLAUDESCOPE_"
_OTHERS: Final = "CLAUDESCOPE_EXPLAINER_"
"""Variables of a table of its own: ``explainer/options.py``."""


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One setting: its key (variable ``CLAUDESCOPE_KEY`` in capitals), type, default, parser and sentence."""

    key: str
    type: str
    default: T
    parse: Callable[[Any], T]
    sentence: str
    written: str = ""
    """The default as people write it, where that is another form."""

    @property
    def variable(self) -> str:
        """The environment variable."""
        return PREFIX + self.key.upper()


_NO_NAMES: Final[tuple[str, ...]] = ()
_NO_BOUNDS: Final[tuple[float, ...]] = ()
_NO_PATHS: Final[tuple[Path, ...]] = ()

SETTINGS: Final[dict[str, Setting[Any]]] = {
    setting.key: setting
    for setting in (
        Setting("disabled", "bool", False, boolean, "Patch nothing and emit nothing."),
        Setting(
            "export",
            "both | app",
            "",
            choice("both", "app", ""),
            "`both` sends the app's own spans to our endpoint too, besides where they went; `app` emits through the"
            " app's providers only. Default: `both` under `claudescope run`, else `app`.",
        ),
        Setting(
            "steps",
            "block | segment",
            "segment",
            choice("block", "segment"),
            "One step a content block, or long thinking and text blocks cut into sub-steps.",
        ),
        Setting(
            "content",
            "off | hash | full",
            "",
            choice("off", "hash", "full", ""),
            "What of prompts, outputs and tool arguments leaves the process. Default: `off`, or `full` where"
            " `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says so.",
        ),
        Setting("content_max", "int", 8192, whole(1), "Characters of each captured text; what is over is cut."),
        Setting(
            "evaluation_events",
            "invalid | all | off",
            "invalid",
            choice("invalid", "all", "off"),
            "Which verdicts become `gen_ai.evaluation.result` log events.",
        ),
        Setting(
            "metric_labels",
            "names",
            _NO_NAMES,
            names(5),
            "Business labels that become labels of the metric `claudescope.steps`: at most 5, 50 values each.",
        ),
        Setting(
            "step_bounds",
            "durations",
            _NO_BOUNDS,
            latencies(5),
            "Times such as `350ms,1.2s` at which steps are counted as over or not, in the metric"
            " `claudescope.step.over`: at most 5. For objectives whose bound is no bucket boundary of"
            " `claudescope.step.duration`.",
        ),
        Setting(
            "confidence_bounds",
            "numbers",
            _NO_BOUNDS,
            shares(5),
            "Confidences such as `0.6,0.75` at which steps are counted as below or not, in the metric"
            " `claudescope.step.below`: at most 5.",
        ),
        Setting(
            "keep_share",
            "float",
            1.0,
            number(0, 1),
            "Share of runs kept in full, by trace id. Runs with an invalid, slow, low-confidence or failing step are"
            " kept from that step on.",
        ),
        Setting("keep_slower", "seconds", 30.0, number(0), "A step at least this long marks its run as kept."),
        Setting("keep_below", "float", 0.7, number(0, 1), "A confidence below this marks its run as kept."),
        Setting("queue", "int", 10_000, whole(16), "Items that wait for the worker before assessment is dropped."),
        Setting(
            "export_retry", "seconds", 300.0, number(0), "How long one batch is tried again before it counts as lost."
        ),
        Setting(
            "export_buffer", "size", 64 * 2**20, size, "Encoded bytes that wait for an endpoint that does not answer."
        ),
        Setting("exit_wait", "seconds", 5.0, number(0, 60), "How long the exit of the app waits for the last batches."),
        Setting(
            "assess_budget", "seconds", 0.005, number(0), "CPU time of a check on one step, above which it has failed."
        ),
        Setting("data", "path", None, path, "Where the embedded server keeps its store."),
        Setting("host", "text", "127.0.0.1", text, "Address that the embedded server listens on."),
        Setting("port", "int", 4318, whole(0, 65_535), "Port of the embedded server: OTLP/HTTP, API, page. 0: any."),
        Setting("grpc_port", "int", 4317, whole(0, 65_535), "Port of the embedded server's OTLP/gRPC. 0: none."),
        Setting(
            "retain",
            "duration",
            7 * 86_400.0,
            duration,
            "How long the embedded server keeps spans, such as 12h or 30d; figures by time are kept for 35 days.",
            "7d",
        ),
        Setting(
            "max_size",
            "size",
            10**9,
            size,
            "How large the embedded server's store may grow; the oldest spans make room.",
            "1GB",
        ),
        Setting("jaeger", "url", "", url, "Address of a Jaeger that has the traces too; the page links to it."),
        Setting("prices", "path", None, path, "A file of the form of `claudescope/prices.json` that replaces it."),
        Setting("token", "text", "", text, "Bearer token of the embedded server; needed to listen beyond loopback."),
        Setting(
            "slo",
            "paths",
            _NO_PATHS,
            paths,
            "Files of objectives that the embedded server evaluates, separated by commas; a folder is its `*.yml`.",
        ),
        Setting(
            "slo_webhook",
            "url",
            "",
            url,
            "Where the embedded server posts alerts of objectives, in the form of Alertmanager's webhook.",
        ),
        Setting("slo_webhook_token", "text", "", text, "Bearer token that goes with each of these posts."),
        Setting(
            "slo_command",
            "command",
            "",
            command,
            "Command that gets alerts of objectives as JSON on its standard input. No shell reads it.",
        ),
    )
}


def find_config(start: Path | None = None) -> Path | None:
    """The ``claudescope.toml`` in force: ``CLAUDESCOPE_CONFIG``, else the first from ``start`` up to the repo's root.

    Raises UsageError when ``CLAUDESCOPE_CONFIG`` names a file that is not there.
    """
    named = os.environ.get("CLAUDESCOPE_CONFIG")
    if named:
        if not Path(named).is_file():
            raise UsageError(f"CLAUDESCOPE_CONFIG names {named}, which is not a file.", "Correct or unset it.")
        return Path(named)
    try:
        start = start or Path.cwd()
    except OSError:  # the working directory is gone
        return None
    for folder in (here := start.resolve(), *here.parents):
        if (candidate := folder / "claudescope.toml").is_file():
            return candidate
        if (folder / ".git").exists():
            break
    return None


def _nearest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0)
    return f"Did you mean {close[0]}?" if close else ""


class Settings:
    """The settings in force, as attributes named by their keys. Immutable."""

    disabled: bool
    export: str
    steps: str
    content: str
    content_max: int
    evaluation_events: str
    metric_labels: tuple[str, ...]
    step_bounds: tuple[float, ...]
    confidence_bounds: tuple[float, ...]
    keep_share: float
    keep_slower: float
    keep_below: float
    queue: int
    export_retry: float
    export_buffer: int
    exit_wait: float
    assess_budget: float
    data: Path | None
    host: str
    port: int
    grpc_port: int
    retain: float
    max_size: int
    jaeger: str
    prices: Path | None
    token: str
    slo: tuple[Path, ...]
    slo_webhook: str
    slo_webhook_token: str
    slo_command: str

    def __init__(self, values: Mapping[str, object]) -> None:
        self.__dict__.update({key: setting.default for key, setting in SETTINGS.items()})
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("settings are immutable")

    def replace(self, **values: object) -> Settings:
        """A copy with some settings changed."""
        return Settings({**self.__dict__, **values})

    @classmethod
    def load(
        cls,
        arguments: Mapping[str, object] | None = None,
        environ: Mapping[str, str] | None = None,
        config: Path | None = None,
    ) -> Settings:
        """Reads all sources. ``arguments`` wins; a None in it counts as not given.

        Raises UsageError, naming the source, for an unknown name or a value that does not parse.
        """
        env = os.environ if environ is None else environ
        config = config or find_config()
        values: dict[str, object] = {}
        if config is not None:
            try:
                table = tomllib.loads(config.read_text("utf-8"))
            except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
                raise UsageError(f"{config} cannot be read: {error}.", "Correct the file.") from None
            for key, value in table.items():
                if isinstance(value, dict):
                    continue  # tables belong to the rooms that read them, such as [rules] or [slo]
                values[key] = cls._parse(key, value, f"{config}: {key}", lambda setting: setting.key)
        for variable, value in env.items():
            if variable.startswith(_OTHERS):
                continue
            if variable.startswith(PREFIX) and variable not in ("CLAUDESCOPE_CONFIG", "CLAUDESCOPE_RUN"):
                key = variable[len(PREFIX) :].lower()
                values[key] = cls._parse(key, value, variable, _variable)
        for key, value in (arguments or {}).items():
            if value is not None:
                values[key] = cls._parse(key, value, f"--{key.replace('_', '-')}", lambda setting: setting.key)
        capture = env.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").strip().lower()
        if not values.get("content"):
            values["content"] = "off" if capture in ("", "no_content", "false") else "full"
        return cls(values)

    @staticmethod
    def _parse(key: str, value: object, source: str, spell: Callable[[Setting[Any]], str]) -> object:
        setting = SETTINGS.get(key)
        if setting is None:
            raise UsageError(
                f"{source} is not a setting of claudescope.",
                _nearest(
                    key if spell is not _variable else PREFIX + key.upper(), [spell(s) for s in SETTINGS.values()]
                ),
            )
        try:
            return setting.parse(value)
        except ValueError as error:
            raise UsageError(f"{source} is {value!r}.", f"It takes {error}.") from None


def _variable(setting: Setting[Any]) -> str:
    return setting.variable
