"""The explainer's own table of settings: ``[explainer]`` of ``claudescope.toml``, or ``CLAUDESCOPE_EXPLAINER_*``.

A secret can also come from a file, which the variable with ``_FILE`` at its end names. Values are never logged.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from ..errors import UsageError
from ..setting_values import duration, number, path, text, url, whole
from ..settings import PREFIX, Setting, find_config

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["OPTIONS", "Option", "Options"]

T = TypeVar("T")
_TABLE: Final = "explainer"
_PREFIX: Final = f"{PREFIX}{_TABLE.upper()}_"
_FILE: Final = "_file"
_MAX_SECRET: Final = 65_536


@dataclass(frozen=True)
class Option(Setting[T]):
    """A setting of the explainer."""

    secret: bool = False

    @property
    def variable(self) -> str:
        """The environment variable."""
        return _PREFIX + self.key.upper()


def _address(value: object) -> str:
    found = url(value)
    if "@" in urlsplit(found).netloc:
        raise ValueError("an address without a name and a password: a token has a setting of its own")
    return found


def _paths(value: object) -> tuple[Path, ...]:
    items = value if isinstance(value, (list, tuple)) else str(value).split(",")
    return tuple(filter(None, (path(item) for item in items)))


def _repository(value: object) -> str:
    name = str(value).strip()
    owner, slash, repository = name.partition("/")
    if name and not (slash and owner and repository and set(name) <= _NAME):
        raise ValueError("a repository such as owner/name")
    return name


_NAME: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/")
_NO_PATHS: Final[tuple[Path, ...]] = ()


def _secret(key: str, sentence: str) -> Option[str]:
    return Option(key, "secret", "", text, sentence, secret=True)


OPTIONS: Final[dict[str, Option[Any]]] = {
    option.key: option
    for option in (
        Option("host", "text", "127.0.0.1", text, "Address that the explainer listens on."),
        Option("port", "int", 9096, whole(0, 65_535), "Its port. 0: any."),
        _secret("token", "Bearer token that Alertmanager shows, and the password of the pages. Needed."),
        Option("public", "url", "", _address, "Where a browser reaches the explainer, for links to its pages."),
        Option("data", "path", None, path, "Folder of the queue. Default: claudescope-explainer with other data."),
        Option("slo", "paths", _NO_PATHS, _paths, "Files of objectives, or folders of them, separated by commas."),
        Option("prometheus", "url", "http://127.0.0.1:9090", _address, "Address of Prometheus."),
        _secret("prometheus_token", "Bearer token for it, where it wants one."),
        Option("jaeger", "url", "", _address, "Address of Jaeger: for services, their calls, and example traces."),
        Option("jaeger_public", "url", "", _address, "Where a browser reaches Jaeger. Default: the same."),
        Option("grafana", "url", "", _address, "Address of Grafana, for annotations. Needs `claudescope[grafana]`."),
        _secret("grafana_token", "Token of a service account that may write annotations, or user:password."),
        Option("grafana_public", "url", "", _address, "Where a browser reaches Grafana. Default: the same."),
        Option("tickets", "path", None, path, "Folder into which each ticket is written as a JSON file."),
        Option("webhook", "url", "", _address, "Where each ticket is posted as JSON."),
        _secret("webhook_token", "Bearer token for it."),
        Option("jira", "url", "", _address, "Address of Jira, for an issue for each alert."),
        Option("jira_project", "text", "", text, "Key of its project."),
        Option("jira_type", "text", "Task", text, "Type of its issues."),
        Option("jira_user", "text", "", text, "User of the token, as Jira Cloud wants it; empty for a bearer token."),
        _secret("jira_token", "API token or personal access token."),
        Option("jira_done", "text", "", text, "Transition that closes an issue when the alert ends. Empty: a comment."),
        Option("github_repo", "text", "", _repository, "Repository (owner/name) for an issue for each alert."),
        Option("github", "url", "https://api.github.com", _address, "Address of GitHub's API."),
        _secret("github_token", "Token that may write its issues."),
        Option(
            "tickets_per_hour",
            "int",
            60,
            whole(1),
            "Issues that Jira and GitHub get in an hour, each. Further ones wait; an alert that ends first has none.",
        ),
        Option("windows", "int", 8, whole(1, 24), "Windows before the alert's own that it is compared with."),
        Option(
            "explain_within",
            "duration",
            600.0,
            duration,
            "After this time without an answer of Prometheus, the ticket goes out without an explanation.",
            "10m",
        ),
        Option(
            "give_up", "duration", 86_400.0, duration, "How long a delivery is tried before it is a dead letter.", "1d"
        ),
        Option("queue", "int", 20_000, whole(1), "Alerts that may wait; above it, Alertmanager is told to come again."),
        Option("keep", "duration", 30 * 86_400.0, duration, "How long explanations are kept.", "30d"),
        Option("timeout", "seconds", 10.0, number(0.1, 300), "How long one answer of another service may take."),
    )
}
"""Every setting by its key."""


class Options:
    """The settings in force, as attributes named by their keys. Immutable; its ``repr`` shows none of them."""

    host: str
    port: int
    token: str
    public: str
    data: Path | None
    slo: tuple[Path, ...]
    prometheus: str
    prometheus_token: str
    jaeger: str
    jaeger_public: str
    grafana: str
    grafana_token: str
    grafana_public: str
    tickets: Path | None
    webhook: str
    webhook_token: str
    jira: str
    jira_project: str
    jira_type: str
    jira_user: str
    jira_token: str
    jira_done: str
    github_repo: str
    github: str
    github_token: str
    tickets_per_hour: int
    windows: int
    explain_within: float
    give_up: float
    queue: int
    keep: float
    timeout: float

    def __init__(self, values: Mapping[str, object]) -> None:
        self.__dict__.update({key: option.default for key, option in OPTIONS.items()})
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("settings are immutable")

    @classmethod
    def load(
        cls,
        arguments: Mapping[str, object] | None = None,
        environ: Mapping[str, str] | None = None,
        config: Path | None = None,
    ) -> Options:
        """From flags (``arguments``; None counts as not given), variables, ``claudescope.toml``, defaults, in this
        order. Raises UsageError, naming the source, for an unknown name, a value that does not parse, a secret that
        comes from two places, and for settings that want another one.
        """
        env = os.environ if environ is None else environ
        values: dict[str, object] = {}
        config = config or find_config()
        if config is not None:
            for key, value in _table(config).items():
                _take(values, key, value, f"{config}: {_TABLE}.{key}")
        variables: dict[str, object] = {}
        for variable, value in env.items():
            if variable.startswith(_PREFIX):
                _take(variables, variable[len(_PREFIX) :].lower(), value, variable)
        values |= variables
        for key, argument in (arguments or {}).items():
            if argument is not None:
                _take(values, key, argument, f"--{key.replace('_', '-')}")
        options = cls(values)
        options._check()
        return options

    def _check(self) -> None:
        """Raises UsageError for what goes only together."""
        if not self.token:
            raise UsageError(
                "The explainer has no token.",
                f"Set {_PREFIX}TOKEN, or {_PREFIX}TOKEN_FILE to a file with it: what Alertmanager is to show.",
            )
        if not self.slo:
            raise UsageError("The explainer knows no objectives.", f"Name their files with --slo or {_PREFIX}SLO.")
        pairs = (
            ("grafana", "grafana_token"),
            ("jira", "jira_token"),
            ("jira", "jira_project"),
            ("github_repo", "github_token"),
        )
        for one, other in pairs:
            if getattr(self, one) and not getattr(self, other):
                raise UsageError(f"{OPTIONS[one].variable} is set.", f"Set {OPTIONS[other].variable}, too.")


def _table(config: Path) -> dict[str, object]:
    try:
        found = tomllib.loads(config.read_text("utf-8")).get(_TABLE, {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{config} cannot be read: {error}.", "Correct the file.") from None
    if not isinstance(found, dict):
        raise UsageError(f"{config}: {_TABLE} is no table.", f"Begin it with [{_TABLE}].")
    return found


def _take(values: dict[str, object], key: str, value: object, source: str) -> None:
    """Adds one setting, read from its file where ``key`` is that of a file."""
    of_file = key.removesuffix(_FILE)
    if key.endswith(_FILE) and of_file in OPTIONS and OPTIONS[of_file].secret:
        if not str(value).strip():
            return
        if values.get(of_file):
            raise UsageError(f"{source} is set, and {of_file} besides.", "Set only one of them.")
        values[of_file] = _content(Path(str(value)).expanduser(), source)
        return
    option = OPTIONS.get(key)
    if option is None:
        close = difflib.get_close_matches(key, OPTIONS, n=1, cutoff=0)[0]
        name = OPTIONS[close].variable if source.startswith(PREFIX) else close
        raise UsageError(f"{source} is not a setting of the explainer.", f"Did you mean {name}?")
    if option.secret and values.get(key) and str(value):
        raise UsageError(f"{source} is set, and a file for it besides.", "Set only one of them.")
    if value == "" and option.default not in ("", None):
        return  # as Compose passes on a variable that is not set
    try:
        values[key] = option.parse(value)
    except ValueError as error:
        raise UsageError(f"{source} is {value!r}.", f"It takes {error}.") from None


def _content(file: Path, source: str) -> str:
    try:
        with file.open("r", encoding="utf-8") as opened:
            content = opened.read(_MAX_SECRET).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"{source} names {file}, which cannot be read: {why}.", "Correct it.") from None
    if not content:
        raise UsageError(f"{source} names {file}, which is empty.", "Write the secret into it.")
    return content
