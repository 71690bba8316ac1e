"""`info` reads the files, also while a server has them. `clear` deletes the store and the backups of older versions, or
with `--before` what is older; it asks first, and a server must not have the folder.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..live.probe import probe
from .flags import add_setting, load_settings
from .locks import one_at_a_time
from .moments import FORMS, read_moment, shown
from .progress import Progress
from .server import folder_server

if TYPE_CHECKING:
    from ..live.store.inventory import Inventory
    from ..settings import Settings

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope data info --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.add_argument("action", metavar="ACTION", choices=("info", "clear"), help="`info` or `clear`.")
    parser.add_argument("--json", action="store_true", help="Print what there is as JSON (info).")
    parser.add_argument("--before", metavar="TIME", help=f"Delete what ended before TIME (clear): {FORMS}.")
    parser.add_argument("--yes", action="store_true", help="Do not ask (clear).")
    add_setting(parser, "data", "FOLDER")
    add_setting(parser, "token", "TOKEN")


def execute(arguments: argparse.Namespace) -> int:
    """Prints or deletes; 0, or 2 when the answer was no. Raises UsageError when there is no store to be had."""
    from ..live.store.folder import default_folder
    from ..live.store.inventory import take_inventory

    info = arguments.action == "info"
    for flag, given in (("--before", arguments.before), ("--yes", arguments.yes)):
        if info and given:
            raise UsageError(f"{flag} is for `claudescope data clear`.", "Leave it out.")
    if not info and arguments.json:
        raise UsageError("--json is for `claudescope data info`.", "Leave it out.")
    before = read_moment("--before", arguments.before)
    settings = load_settings(arguments)
    folder = settings.data or default_folder()
    progress = Progress()
    inventory = take_inventory(folder, lambda: progress.tell("counting what the store holds"))
    progress.clear()
    if info:
        _show(_facts(folder, inventory, settings), arguments.json)
        return 0
    return _clear(folder, inventory, settings, before, arguments.yes)


# ---------------------------------------------------------------------------------------------------------------- info


def _facts(folder: Path, inventory: Inventory, settings: Settings) -> dict[str, Any]:
    url = folder_server(folder)
    status = probe(url, 5.0, "/api/status", settings.token) if url else None
    store = (status or {}).get("store", {})
    facts = asdict(inventory)
    return {
        "folder": str(folder),
        "server": url,
        "version": facts.pop("version"),
        "current": inventory.is_current,
        **facts,
        "retention": {
            "retain_s": store.get("retain_s", settings.retain),
            "max_bytes": store.get("max_bytes", settings.max_size),
            "from": "server" if "retain_s" in store else "settings",
        },
    }


def _show(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    retention = facts["retention"]
    rows = [
        ("folder", facts["folder"]),
        ("server", facts["server"] or "none has it"),
        ("store", f"version {facts['version']}, {_size(facts['bytes'])}"),
    ]
    if facts["backup_bytes"]:
        rows.append(("backups", _size(facts["backup_bytes"])))
    if facts["current"]:
        rows.append(("holds", _holds(facts)))
    else:
        rows.append(
            ("holds", "not read: another version of claudescope wrote it; `claudescope up` brings it up to date")
        )
    if facts["newest_ms"] is not None:
        rows += [("oldest", shown(facts["oldest_ms"])), ("newest", shown(facts["newest_ms"]))]
    rows += [
        (
            "roll-ups" if not number else "",
            f"{tier['seconds']:,} s: {tier['cells']:,} cells since {shown(tier['oldest_ms'])}",
        )
        for number, tier in enumerate(facts["tiers"])
    ]
    kept = f"spans for {retention['retain_s'] / 86_400:g} days, in at most {_size(retention['max_bytes'])}"
    rows.append(
        ("keeps", f"{kept} (says the server)" if retention["from"] == "server" else f"{kept} (by the settings)")
    )
    for name, text in rows:
        print(f"{name:<8}  {text}")


def _holds(facts: dict[str, Any]) -> str:
    return (
        f"{facts['runs']:,} runs, {facts['steps']:,} steps, {facts['calls']:,} calls, {facts['spans']:,} spans,"
        f" {facts['events']:,} log records"
    )


def _clear(folder: Path, inventory: Inventory, settings: Settings, before: int | None, sure: bool) -> int:
    from ..live.store.erasing import erase, erase_before
    from ..live.store.folder import DataFolder

    with one_at_a_time(settings), closing(DataFolder(folder)) as held:
        held.sign("work: claudescope data clear")
        holds = _holds(asdict(inventory)) if inventory.is_current else f"a store of version {inventory.version}"
        everything = f"all of it ({_size(inventory.bytes + inventory.backup_bytes)})"
        what = everything if before is None else f"what ended before {shown(before)}"
        if not sure and not _agrees(f"{folder} holds {holds}. Delete {what}?"):
            print("claudescope: nothing was deleted.", file=sys.stderr)
            return 2
        try:
            if before is None:
                erase(folder)
            else:
                progress = Progress()
                runs, steps = erase_before(folder, before, lambda: progress.tell(f"deleting {what}"))
                progress.clear()
                what = f"{runs:,} runs and {steps:,} steps, {what}"
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"The store in {folder} cannot be deleted: {error}.", "Look at the folder.") from None
        print(f"Deleted {what} in {folder}.")
    return 0


def _agrees(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("`claudescope data clear` asks first, and nobody is there to answer.", "Say --yes.")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _size(number: int) -> str:
    for unit, bytes_ in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if number >= bytes_:
            return f"{number / bytes_:.3g} {unit}"
    return f"{number} B"
