"""What is found while one document is read."""

from __future__ import annotations

from .document import Document, Location
from .problem import Problem

__all__ = ["Report", "spelled"]


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
        self._failed: set[Location] = set()

    @property
    def failed(self) -> bool:
        """Whether anything is an error so far."""
        return bool(self._failed)

    def error(self, location: Location, what: str, fix: str) -> None:
        """Something that must be changed."""
        self._failed.add(location)
        self.problems.append(Problem(self.path, self.document.line(location), what, fix))

    def error_at_key(self, location: Location, what: str, fix: str) -> None:
        """Something about the key itself."""
        self._failed.add(location)
        self.problems.append(Problem(self.path, self.document.key_line(location), what, fix))

    def warn(self, location: Location, what: str, fix: str = "") -> None:
        """Something that is done, and that its author may not expect."""
        self.problems.append(Problem(self.path, self.document.line(location), what, fix, "warning"))

    def failed_within(self, location: Location) -> bool:
        """Whether something at or below a location is an error."""
        return any(failed[: len(location)] == location for failed in self._failed)
