"""What is found while one document is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .document import Document, Location
from .problem import Problem

__all__ = ["MOST_ERRORS", "Report", "spelled"]

MOST_ERRORS: Final = 100
"""Of one document."""


def spelled(location: Location) -> str:
    """A location as people write it: ``slos[0].sli.events``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "The document"


class Report:
    """Collects problems by location; the document knows their lines."""

    def __init__(self, path: str, document: Document) -> None:
        self.path = path
        self.document = document
        self.problems: list[Problem] = []
        self.places: list[Location] = []
        """Where each problem is."""
        self._failed: set[Location] = set()
        self._errors = 0
        self._unsaid = 0

    @property
    def failed(self) -> bool:
        """Whether anything is an error so far."""
        return bool(self._failed)

    @property
    def full(self) -> bool:
        """Whether enough is wrong: nobody reads more at once, and to look for what was meant takes time."""
        return self._errors >= MOST_ERRORS

    def unsaid(self, location: Location) -> None:
        """An error that is counted only."""
        self._failed.add(location[:2])
        self._unsaid += 1

    def error(self, location: Location, what: str, fix: str) -> None:
        """Something that must be changed."""
        self._fail(location, self.document.line(location), what, fix)

    def error_at_key(self, location: Location, what: str, fix: str) -> None:
        """Something about the key itself."""
        self._fail(location, self.document.key_line(location), what, fix)

    def _fail(self, location: Location, line: int, what: str, fix: str) -> None:
        if self.full:
            self.unsaid(location)
            return
        self._errors += 1
        self._failed.add(location)
        self._add(location, Problem(self.path, line, what, fix))

    def warn(self, location: Location, what: str, fix: str = "") -> None:
        """Something that is done, and that its author may not expect."""
        self._add(location, Problem(self.path, self.document.line(location), what, fix, "warning"))

    def repeated(self, line: int, key: str, first: int) -> None:
        """A key that is there twice."""
        what = f"The key {key} is there twice, first in line {first}."
        if not self.full:
            self._errors += 1
            self._add((), Problem(self.path, line, what, "Keep one of them."))

    def errors(self) -> list[Problem]:
        """Each once, by line."""
        errors = dict.fromkeys(problem for problem in self.problems if problem.level == "error")
        found = sorted(errors, key=lambda problem: problem.line)
        if self._unsaid:
            what = f"Further errors: {self._unsaid}."
            found.append(Problem(self.path, found[-1].line, what, "Mend those above first."))
        return found

    def warnings(self, within: Location = (), without: Sequence[Location] = ()) -> list[Problem]:
        """Each once, of those at or below a location, but for those at or below some others."""
        return list(
            dict.fromkeys(
                problem
                for problem, place in zip(self.problems, self.places, strict=True)
                if problem.level == "warning"
                and place[: len(within)] == within
                and not any(place[: len(at)] == at for at in without)
            )
        )

    def failures(self, location: Location) -> list[Location]:
        """Where errors are, of those at or below a location."""
        return [failed for failed in self._failed if failed[: len(location)] == location]

    def take_errors(self, other: Report) -> None:
        """Adds the errors of another one that are not around, at or below one of these: those may only follow."""
        known = set(self._failed)
        for problem, place in zip(other.problems, other.places, strict=True):
            follows = any(place[: len(at)] == at[: len(place)] for at in known)
            if problem.level == "error" and not follows:
                self._fail(place, problem.line, problem.what, problem.fix)

    def _add(self, location: Location, problem: Problem) -> None:
        self.problems.append(problem)
        self.places.append(location)

    def failed_within(self, location: Location) -> bool:
        """Whether something at or below a location is an error."""
        return any(failed[: len(location)] == location for failed in self._failed)
