"""The explainer as a part of the stack that is on or off: by a profile of Compose, with Alertmanager's way to it.

Alertmanager's file has the way in lines with a mark: while the profile is off, Alertmanager must not try for ever to
reach somebody who is not there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["ALERTMANAGER", "PROFILE", "PROFILES", "TOKEN", "TOKEN_FILE", "profiles", "routed"]

PROFILE: Final = "explainer"
PROFILES: Final = "COMPOSE_PROFILES"
"""The variable of Compose that switches profiles on, separated by commas."""
TOKEN: Final = "CS_EXPLAINER_TOKEN"
TOKEN_FILE: Final = "secrets/alertmanager/explainer"
ALERTMANAGER: Final = "collector/alertmanager.yml"
_MARK: Final = re.compile(rb"^( *)#: ", re.MULTILINE)


def profiles(values: Mapping[str, str]) -> list[str]:
    """The profiles that are on."""
    return [name.strip() for name in values.get(PROFILES, "").split(",") if name.strip()]


def routed(alertmanager: bytes) -> bytes:
    """Alertmanager's file with the way to the explainer in force."""
    return _MARK.sub(rb"\1", alertmanager)
