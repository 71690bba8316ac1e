"""Files to objectives: all documents of all files, and everything that is wrong with any of them."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..objective import Objective, Origin
from .document import Document, DocumentError, Mapping, read_documents
from .models import Slo, Spec
from .problem import Problem, SpecErrors
from .report import Report
from .resolve import resolve
from .shape import data_of, fit

__all__ = ["Reading", "load", "read"]


@dataclass(slots=True)
class Reading:
    """What files hold."""

    objectives: list[Objective] = field(default_factory=list)
    """In the order of the files."""
    problems: list[Problem] = field(default_factory=list)
    """Errors, in the order of the files and their lines; with one of these, some objectives are missing."""
    warnings: dict[str, list[Problem]] = field(default_factory=dict)
    """By the id of an objective: what is done that its author may not expect."""


def load(paths: Sequence[Path]) -> list[Objective]:
    """The objectives of some files; ``-`` is standard input, and a folder stands for its ``*.yml`` and ``*.yaml``.

    Raises SpecErrors, which holds everything that is wrong with any of the files.
    """
    reading = read(paths)
    if reading.problems:
        raise SpecErrors(reading.problems)
    return reading.objectives


def read(paths: Sequence[Path]) -> Reading:
    """The objectives of some files, and what is wrong with them. Raises nothing for what the files hold."""
    reading = Reading()
    for path in _files(paths, reading):
        data = _bytes(path, reading)
        if data is not None:
            _file("<stdin>" if str(path) == "-" else str(path), data, reading)
    _unique(reading)
    return reading


def _files(paths: Sequence[Path], reading: Reading) -> Iterator[Path]:
    seen: set[Path] = set()
    for path in paths:
        found = [path]
        if str(path) != "-" and path.is_dir():
            found = sorted(file for file in path.iterdir() if file.suffix in (".yml", ".yaml"))
            if not found:
                reading.problems.append(Problem(str(path), 1, "The folder has no *.yml.", "Name a file."))
        for file in found:
            if file not in seen:
                seen.add(file)
                yield file


def _bytes(path: Path, reading: Reading) -> bytes | None:
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        said = (error.strerror or "it cannot be read").lower()
        reading.problems.append(
            Problem(str(path), 1, f"The file cannot be read: {said}.", "Name a file that is there.")
        )
    except ValueError as error:  # a name that no file can have
        reading.problems.append(Problem(str(path), 1, f"The file cannot be read: {error}.", "Name another one."))
    return None


def _file(path: str, data: bytes, reading: Reading) -> None:
    digest = hashlib.sha256(data).hexdigest()
    found = False
    try:
        documents = []
        for document in read_documents(data):
            found = True
            documents.append(document)
    except DocumentError as error:
        reading.problems.append(Problem(path, error.line, error.what, error.fix))
        return
    if not found:
        reading.problems.append(
            Problem(path, 1, "The file holds nothing.", "Begin with `version: prometheus/v1` and `service: ...`.")
        )
    for document in documents:
        report = Report(path, document)
        _document(document, digest, report, reading)
        reading.problems += sorted(
            {problem: None for problem in report.problems if problem.level == "error"}, key=lambda problem: problem.line
        )


def _document(document: Document, digest: str, report: Report, reading: Reading) -> None:
    for line, key, first in document.repeated:
        report.problems.append(
            Problem(report.path, line, f"The key {key} is there twice, first in line {first}.", "Keep one of them.")
        )
    if not isinstance(document.root, Mapping):
        report.error((), "The document is no mapping.", "Begin with `version: prometheus/v1` and `service: ...`.")
        return
    _native(document, digest, report, reading)


def _native(document: Document, digest: str, report: Report, reading: Reading) -> None:
    data = {key: value for key, value in data_of(document.root).items() if not key.startswith("x-")}
    spec = fit(Spec, document, (), report, data)
    slos = data.get("slos")
    service = spec.service if spec else "service"
    labels = (spec.labels if spec else None) or {}
    for number, own in enumerate(slos if isinstance(slos, list) else ()):
        at = ("slos", number)
        slo = spec.slos[number] if spec else _alone(own, document, at, report)
        if slo is not None:
            _objective(slo, service, labels, at, Origin(report.path, document.line(at), digest), report, reading)


def _alone(data: Any, document: Document, at: tuple[str, int], report: Report) -> Slo | None:
    """An objective of a document in which something else is wrong; what is wrong with it is said already."""
    return None if report.failed_within(at) else fit(Slo, document, at, report, data)


def _objective(
    slo: Slo,
    service: str,
    labels: dict[str, str],
    at: tuple[str, int],
    origin: Origin,
    report: Report,
    reading: Reading,
) -> None:
    before = len(report.problems)
    objective = resolve(slo, service, labels, at, origin, report)
    if objective is not None:
        reading.objectives.append(objective)
        warnings = [problem for problem in report.problems[before:] if problem.level == "warning"]
        if warnings:
            reading.warnings.setdefault(objective.id, []).extend(warnings)


def _unique(reading: Reading) -> None:
    seen: dict[str, Origin] = {}
    for objective in reading.objectives:
        first = seen.setdefault(objective.id, objective.origin)
        if first is not objective.origin:
            reading.problems.append(
                Problem(
                    objective.origin.path,
                    objective.origin.line,
                    f"The objective {objective.id} is there twice, first at {first.path}:{first.line}.",
                    "Give one of them another name.",
                )
            )
