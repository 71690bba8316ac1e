"""An explanation from a store on disk, whether a server has it or not."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path

from ...errors import UsageError
from ...slo.explain.explanation import Explanation
from ...slo.objective import Objective
from ..objectives.evidence import collect
from ..objectives.judge import UncountableError
from .schema import FILE_NAME, connect_reader

__all__ = ["explain_folder"]


def explain_folder(
    folder: Path, objective: Objective, at_ms: int | None = None, window_s: int | None = None, url: str = ""
) -> Explanation:
    """Why an objective burns, from the steps and calls in a data folder.

    The time that is explained ends at ``at_ms`` (now) and is ``window_s`` long (the shortest long window of the
    objective's tiers). Raises UsageError where there is no store, or the objective is about what no store has.
    """
    if not (folder / FILE_NAME).exists():
        raise UsageError(f"There is no store in {folder}.", "Name the folder of a server's data with --data.")
    end = int(time.time() * 1000) if at_ms is None else at_ms
    length = window_s or min((tier.long.seconds for tier in objective.tiers), default=3600)
    try:
        with contextlib.closing(connect_reader(folder)) as db:
            return collect(db, objective, end - length * 1000, end, url=url).explanation
    except UncountableError as error:
        raise UsageError(
            f"{objective.id} cannot be explained from a store: {error}.", "Explain it from a Prometheus."
        ) from None
    except sqlite3.Error as error:
        raise UsageError(
            f"The store in {folder} cannot be read: {error}.", "Look at the folder, or name another with --data."
        ) from None
