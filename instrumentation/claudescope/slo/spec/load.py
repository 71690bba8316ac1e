"""Files to objectives: all documents of all files, and everything that is wrong with any of them."""

from __future__ import annotations

import hashlib
import os
import sys
from collections import abc
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..objective import Objective, Origin
from .document import MOST_BYTES, Document, DocumentError, Location, Mapping, Sequence, read_documents
from .models import Slo, Spec
from .openslo import Indicator, is_openslo, objectives_of, sli_of
from .problem import Problem, SpecErrors
from .report import Report, spelled
from .resolve import resolve
from .shape import data_of, fit, without

__all__ = ["Reading", "load", "read"]

_MOST_OBJECTIVES: Final = 2000
_BEGIN: Final = "Begin with `version: prometheus/v1` and `service: ...`."


@dataclass(slots=True)
class Reading:
    """What files hold."""

    objectives: list[Objective] = field(default_factory=list)
    """In the order of the files."""
    problems: list[Problem] = field(default_factory=list)
    """Errors, in the order of the files and their lines; with one of these, some objectives are missing."""
    warnings: dict[str, list[Problem]] = field(default_factory=dict)
    """By the id of an objective: what is done that its author may not expect."""


def load(paths: abc.Sequence[Path]) -> list[Objective]:
    """The objectives of some files; ``-`` is standard input, and a folder stands for its ``*.yml`` and ``*.yaml``.

    Raises SpecErrors, which holds everything that is wrong with any of the files.
    """
    reading = read(paths)
    if reading.problems:
        raise SpecErrors(reading.problems)
    return reading.objectives


def read(paths: abc.Sequence[Path]) -> Reading:
    """The objectives of some files, and what is wrong with them. Raises nothing for what the files hold."""
    reading = Reading()
    files = list(_files(paths, reading))
    pages = [page for path in files for page in _pages(path, reading)]
    kinds = [_kind(page) for page in pages]
    slis: dict[str, Indicator] = {}
    for page, kind in zip(pages, kinds, strict=True):
        if kind == "SLI" and (named := sli_of(page.document, page.report)):
            _add_sli(named, slis, page)
    for page, kind in zip(pages, kinds, strict=True):
        if kind == "SLO":
            _openslo(page, slis, reading)
        elif kind == "native":
            _native(page, reading)
        reading.problems += page.report.errors()
    _unique(reading)
    order = {_name(path): number for number, path in enumerate(files)}
    reading.problems.sort(key=lambda problem: (order.get(problem.path, -1), problem.line))
    return reading


@dataclass(slots=True)
class _Page:
    """One document of a file."""

    document: Document
    report: Report
    sha256: str


def _files(paths: abc.Sequence[Path], reading: Reading) -> Iterator[Path]:
    seen: set[Path] = set()
    for path in paths:
        found = [path]
        if str(path) != "-" and os.path.isdir(path):  # a path too long to be one is none
            try:
                found = _within(path)
            except OSError as error:
                said = (error.strerror or "it cannot be read").lower()
                reading.problems.append(Problem(str(path), 1, f"The folder cannot be read: {said}.", "Name a file."))
                continue
            if not found:
                reading.problems.append(Problem(str(path), 1, "The folder has no *.yml.", "Name a file."))
        for file in found:
            if file not in seen:
                seen.add(file)
                yield file


def _within(folder: Path) -> list[Path]:
    """Those that the shell's *.yml finds: not an editor's lock, which is hidden."""
    files = (file for file in folder.iterdir() if file.suffix in (".yml", ".yaml"))
    return sorted(file for file in files if not file.name.startswith("."))


def _name(path: Path) -> str:
    return "<stdin>" if str(path) == "-" else str(path)


def _bytes(path: Path, reading: Reading) -> bytes | None:
    try:
        if str(path) == "-":
            return sys.stdin.buffer.read(MOST_BYTES + 1)
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        said = (error.strerror or "it cannot be read").lower()
        reading.problems.append(
            Problem(str(path), 1, f"The file cannot be read: {said}.", "Name a file that is there.")
        )
    except ValueError as error:  # a name that no file can have
        reading.problems.append(Problem(str(path), 1, f"The file cannot be read: {error}.", "Name another one."))
    return None


def _pages(path: Path, reading: Reading) -> list[_Page]:
    data = _bytes(path, reading)
    if data is None:
        return []
    name = _name(path)
    digest = hashlib.sha256(data).hexdigest()
    documents: list[Document] = []
    try:
        for document in read_documents(data):
            documents.append(document)
    except DocumentError as error:
        reading.problems.append(Problem(name, error.line, error.what, error.fix))
        return [_Page(document, Report(name, document), digest) for document in documents]
    if not documents:
        what, fix = "The file holds nothing.", _BEGIN
        reading.problems.append(Problem(name, 1, what, fix))
    return [_Page(document, Report(name, document), digest) for document in documents]


def _kind(page: _Page) -> str:
    """``native``, ``SLO``, ``SLI``, or "" for what the report refuses."""
    document, report = page.document, page.report
    for line, key, first in document.repeated:
        report.repeated(line, key, first)
    if not isinstance(document.root, Mapping):
        report.error((), "The document is no mapping.", _BEGIN)
        return ""
    kind = is_openslo(document, report)
    return "native" if kind is None else kind


def _add_sli(named: tuple[str, Indicator], slis: dict[str, Indicator], page: _Page) -> None:
    name, indicator = named
    if name in slis:
        page.report.error(("metadata", "name"), f"There are two SLIs {name!r}.", "Give one of them another name.")
    slis.setdefault(name, indicator)


def _openslo(page: _Page, slis: dict[str, Indicator], reading: Reading) -> None:
    found = objectives_of(page.document, slis, page.sha256, page.report)
    name = page.document.find(("spec", "indicatorRef"))
    referenced = slis[str(name)].warnings if str(name) in slis else ()
    for at, objective in found:
        others = [other for other, _ in found if other != at]
        _keep(objective, [*referenced, *page.report.warnings(without=others)], reading)


def _native(page: _Page, reading: Reading) -> None:
    document, report = page.document, page.report
    _respell(document, report)
    data = {key: value for key, value in data_of(document.root).items() if not key.startswith("x-")}
    if not Spec.model_fields.keys() & data.keys():
        report.error((), "The document is no specification.", _BEGIN)
        return
    slos = data.get("slos")
    if isinstance(slos, list) and len(slos) > _MOST_OBJECTIVES:
        report.error(
            ("slos",), f"slos has {len(slos)} objectives.", f"Write at most {_MOST_OBJECTIVES} into a document."
        )
        return
    spec = fit(Spec, document, (), report, data)
    service = spec.service if spec else "service"
    labels = (spec.labels if spec else None) or {}
    for number, own in enumerate(slos if isinstance(slos, list) else ()):
        at = ("slos", number)
        if report.failed_within(at):
            _rest(own, service, labels, at, page)
            continue
        slo = spec.slos[number] if spec else fit(Slo, document, at, report, own)
        if slo is not None:
            origin = Origin(report.path, document.line(at), page.sha256)
            objective = resolve(slo, service, labels, at, origin, report)
            _keep(objective, report.warnings(within=at), reading)


def _respell(document: Document, report: Report) -> None:
    """Reads two keys in the spelling of sloth's Kubernetes objects too: in files, sloth overlooks them so."""
    slos = document.find(("slos",))
    for number, _ in enumerate(slos.items if isinstance(slos, Sequence) else ()):
        at = ("slos", number, "alerting")
        alerting = document.find(at)
        for key, right in (("pageAlert", "page_alert"), ("ticketAlert", "ticket_alert")):
            if isinstance(alerting, Mapping) and key in alerting.entries and right not in alerting.entries:
                alerting.entries[right] = alerting.entries.pop(key)
                what = f"{spelled((*at, key))} is read as {right}; sloth overlooks that spelling in files."
                report.warn((*at, right), what, f"Write {right}.")


def _rest(data: Any, service: str, labels: dict[str, str], at: Location, page: _Page) -> None:
    """What else is wrong with an objective whose form is wrong: it is read once more without what does not fit."""
    report = page.report
    scratch = Report(report.path, page.document)
    slo = fit(Slo, page.document, at, scratch, without(data, [place[len(at) :] for place in report.failures(at)]))
    if slo is not None:
        resolve(slo, service, labels, at, Origin(report.path, page.document.line(at), page.sha256), scratch)
        report.take_errors(scratch)


def _keep(objective: Objective | None, warnings: list[Problem], reading: Reading) -> None:
    if objective is not None:
        reading.objectives.append(objective)
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
