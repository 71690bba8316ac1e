"""Each objective becomes a group of recording rules and alerts; the same files always give the same text.

Without `-o` it prints them. With `-o FILE` all go into one file; with `-o FOLDER` each specification has a file of its
own there, slo-NAME.yml. `--check` writes nothing and says what is not current.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from ..errors import UsageError
from ..slo.objective import Objective
from ..slo.rules.compiler import compile as compiled
from ..slo.rules.dialect import DIALECTS
from ..slo.rules.links import LOCAL, Links
from ..slo.rules.rendering import FORMATS, resource_name, text_of

__all__ = ["EXAMPLE", "add_arguments", "add_links", "execute", "links_of", "read_objectives"]

EXAMPLE = "claudescope slo rules slos/*.yml -o rules/"
_URLS: Final = {"grafana": "CS_GRAFANA_URL", "jaeger": "CS_JAEGER_URL", "explainer": "CS_EXPLAINER_URL"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="Specifications of objectives.")
    parser.add_argument("-o", "--output", metavar="FILE|FOLDER", help="Where to. A folder is there, or ends with a /.")
    parser.add_argument("--prometheus", choices=list(DIALECTS), default="3", help="Its version. Default: 3.")
    forms = "; ".join(f"{form}: {what}" for form, what in FORMATS.items())
    parser.add_argument("--format", choices=list(FORMATS), default="prometheus", help=f"{forms}. Default: prometheus.")
    parser.add_argument("--name", help="Of the Kubernetes object or of Mimir's namespace. Default: the file's.")
    parser.add_argument("--namespace", default="", help="Of the Kubernetes object.")
    parser.add_argument("--recording-only", action="store_true", help="No alerts, only what is recorded.")
    add_links(parser)
    parser.add_argument("--check", action="store_true", help="Write nothing; say whether the output is current.")
    parser.add_argument("--fail", action="store_true", help="With --check: exit with 1 when something is not current.")


def add_links(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of the addresses that alerts link to."""
    for name, variable in _URLS.items():
        default = LOCAL._asdict()[name]
        parser.add_argument(
            f"--{name}-url",
            metavar="URL",
            default=os.environ.get(variable) or default,
            help=f"Where alerts link to. Default: {variable}, or {default}.",
        )


def links_of(arguments: argparse.Namespace) -> Links:
    """The addresses without a slash at the end."""
    return Links(*(getattr(arguments, f"{name}_url").rstrip("/") for name in _URLS))


def read_objectives(files: Sequence[Path]) -> list[Objective]:
    """The objectives of all files. Raises UsageError with every fault, and where there is no objective at all."""
    from ..slo.spec.load import load

    objectives = load(files)
    if not objectives:
        raise UsageError(f"There is no objective in {', '.join(map(str, files))}.", "Name a file with `slos:`.")
    return objectives


def execute(arguments: argparse.Namespace) -> int:
    """Writes, prints or compares."""
    if arguments.check and not arguments.output:
        raise UsageError("--check compares with what was written.", "Name that with -o.")
    objectives = read_objectives(arguments.files)
    dialect = DIALECTS[arguments.prometheus]
    links = links_of(arguments)
    texts: dict[Path | None, str] = {}
    for path, some in _outputs(arguments.output, objectives):
        name = arguments.name or (path.stem if path else "claudescope-slo")
        texts[path] = text_of(
            compiled(some, dialect, links),
            arguments.format,
            name=resource_name(name) if arguments.format == "kubernetes" else name,
            namespace=arguments.namespace,
            alerts=not arguments.recording_only,
            prometheus=dialect.version,
        )
    stale = 0
    for path, text in texts.items():
        if path is None:
            if isinstance(sys.stdout, io.TextIOWrapper):  # as a file of them has it, whatever the terminal's encoding
                sys.stdout.reconfigure(encoding="utf-8")
            sys.stdout.write(text)
            continue
        current = _holds(path, text)
        stale += not current
        if not current and not arguments.check:
            _write(path, text)
        print(f"{'current' if current else 'not current' if arguments.check else 'written'}  {path}")
    return int(bool(stale and arguments.check and arguments.fail))


def _outputs(output: str | None, objectives: list[Objective]) -> Iterable[tuple[Path | None, list[Objective]]]:
    if output is None or not (output.endswith("/") or Path(output).is_dir()):
        return [(None if output is None else Path(output), objectives)]
    by_source: dict[str, list[Objective]] = {}
    for objective in objectives:
        by_source.setdefault(objective.origin.path, []).append(objective)
    paths = {source: Path(output) / f"slo-{Path(source).stem}.yml" for source in by_source}
    if len(set(paths.values())) < len(paths):
        raise UsageError(f"Two of the files would become one in {output}.", "Give each a name of its own.")
    compiled(objectives)  # an objective that is in two files
    return [(paths[source], some) for source, some in by_source.items()]


def _holds(path: Path, text: str) -> bool:
    if path.exists() and not path.is_file():  # /dev/stdout, a pipe: it would be read without end, and replaced
        raise UsageError(f"{path} is no file.", "Name one; without -o the rules are printed.")
    try:
        return path.read_bytes() == text.encode("utf-8")
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}.", "Name another file.") from None


def _write(path: Path, text: str) -> None:
    """Whole or not at all: Prometheus may read at any moment."""
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, "utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UsageError(f"{path} cannot be written: {error}.", "Name another place.") from None
