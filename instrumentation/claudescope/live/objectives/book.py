"""The conditions of all objectives as they are now, and who was told of them; kept in the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from ..records import label_json
from .alarm import Alarm
from .alerts import Alert
from .ledger import TABLES

__all__ = ["Book", "Entry", "Key", "Submit", "Told"]

Submit = Callable[[Callable[[sqlite3.Connection], None]], Awaitable[object]]
"""Has the writer do something in a transaction; returns after the commit, raises where that failed."""
FIRING: Final = "firing"
RESOLVED: Final = "resolved"


class Key(NamedTuple):
    """A condition: an objective's id, a tier's name (or absent, canary), and labels as JSON."""

    objective: str
    rule: str
    labels: str


class Told(NamedTuple):
    """What a channel was told last, and when in ms."""

    status: str
    at_ms: int


@dataclass(slots=True)
class Entry:
    """One condition with its alert and who knows of it."""

    alarm: Alarm = field(default_factory=Alarm)
    alert: Alert | None = None
    """What to say of it; there once it fired."""
    told: dict[str, Told] = field(default_factory=dict)
    """By channel."""

    @property
    def idle(self) -> bool:
        """Nothing to remember: it does not hold, and nobody was told of more than its end."""
        return self.alarm.state == "inactive" and all(told.status == RESOLVED for told in self.told.values())


class Book:
    """All entries. Used by the event loop only."""

    def __init__(self) -> None:
        self.entries: dict[Key, Entry] = {}
        self._dirty: set[Key] = set()

    def load(self, db: sqlite3.Connection) -> None:
        """Reads what was saved. Called before anything else."""
        for statement in TABLES:
            db.execute(statement)
        for objective, rule, labels, text in db.execute("SELECT objective, rule, labels, state FROM objective_alerts"):
            data = orjson.loads(text)
            alert = Alert(**data["alert"]) if data["alert"] else None
            told = {channel: Told(*one) for channel, one in data["told"].items()}
            self.entries[Key(objective, rule, labels)] = Entry(Alarm.load(data["alarm"]), alert, told)

    def entry(self, objective: str, rule: str, labels: Mapping[str, str]) -> tuple[Key, Entry]:
        """The entry of a condition, made where there is none."""
        key = Key(objective, rule, label_json(dict(labels)))
        return key, self.entries.setdefault(key, Entry())

    def of(self, objective: str) -> Iterator[tuple[Key, Entry]]:
        """The entries of an objective."""
        return ((key, entry) for key, entry in list(self.entries.items()) if key.objective == objective)

    def touch(self, key: Key) -> None:
        """An entry changed."""
        self._dirty.add(key)

    async def save(self, submit: Submit) -> None:
        """Writes what changed, and forgets entries that are idle. What could not be written is tried the next time."""
        for key, entry in list(self.entries.items()):
            if entry.idle:
                if entry.told or entry.alert is not None:
                    self._dirty.add(key)
                del self.entries[key]
        dirty, self._dirty = self._dirty, set()
        if not dirty:
            return
        rows = {key: _dump(self.entries[key]) if key in self.entries else None for key in dirty}

        def write(db: sqlite3.Connection) -> None:
            for key, text in rows.items():
                if text is None:
                    db.execute("DELETE FROM objective_alerts WHERE objective = ? AND rule = ? AND labels = ?", key)
                else:
                    db.execute("INSERT OR REPLACE INTO objective_alerts VALUES (?, ?, ?, ?)", (*key, text))

        try:
            await submit(write)
        except BaseException:
            self._dirty |= dirty
            raise


def _dump(entry: Entry) -> str:
    data: dict[str, Any] = {
        "alarm": entry.alarm.dump(),
        "alert": asdict(entry.alert) if entry.alert is not None else None,
        "told": {channel: list(told) for channel, told in entry.told.items()},
    }
    return orjson.dumps(data).decode()
