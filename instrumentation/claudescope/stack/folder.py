"""A folder of a person's own with the files of the full stack in it, and a ``.env`` with secrets."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

from ..errors import UsageError
from ..version import __version__
from .dotenv import read_dotenv
from .explainer import ALERTMANAGER, PROFILE, PROFILES, TOKEN, TOKEN_FILE, profiles, routed
from .files import shipped_files
from .links import JAEGER_UI, with_grafana
from .variables import env_file, missing_secrets

__all__ = [
    "RECORD",
    "State",
    "WrittenFile",
    "write_environment",
    "write_explainer_token",
    "write_files",
    "write_ignore",
]

RECORD: Final = ".claudescope-stack.json"
"""Remembers what was written, so that a file that a person changed is told from one of an older version."""

_PUBLIC: Final = 0o644  # whatever the umask: the parts read them as another user
_SECRET: Final = 0o600
_USER: Final = 10001
"""Who the parts run as."""


State = Literal["new", "same", "updated", "kept"]


class WrittenFile(NamedTuple):
    """What became of one file: ``kept`` is one that was changed by hand; ours is beside it, as ``NAME.new``."""

    name: str
    state: State


def write_files(folder: Path, grafana: str, force: bool = False, *, explainer: bool = False) -> list[WrittenFile]:
    """Writes every shipped file into ``folder``, which is made where it is not there.

    ``grafana`` is where a browser has Grafana: Jaeger's page gets links to it. A file that is there and was changed
    since it was written is kept, unless ``force`` is True. With ``explainer``, Alertmanager's file has the way to it.
    Raises UsageError when something cannot be written.
    """
    known = _read_record(folder)
    written: dict[str, str] = {}
    outcomes = []
    for name, source in shipped_files().items():
        target = folder / name
        try:
            content = shipped = source.read_bytes()
            if name == JAEGER_UI:
                content = with_grafana(shipped.decode(), grafana).encode()
            elif name == ALERTMANAGER and explainer:
                content = routed(shipped)
            state, place = _place(target, content, {known.get(name), _digest(shipped)}, force)
            if place is not None:
                _make_folders(folder, place.parent)
                _write(place, content, _PUBLIC)
        except OSError as error:
            raise _unwritable(target, error) from None
        written[name] = known.get(name, "") if state == "kept" else _digest(content)
        outcomes.append(WrittenFile(name, state))
    if known or any(outcome.state != "same" for outcome in outcomes):  # the source tree itself needs no record
        record = json.dumps({"claudescope": __version__, "files": written}, indent=1)
        with _said(folder / RECORD):
            _write(folder / RECORD, f"{record}\n".encode(), _PUBLIC)
    return outcomes


def _place(target: Path, content: bytes, ours: Collection[str | None], force: bool) -> tuple[State, Path | None]:
    """What a file will be, and where ours is to be written, None for nowhere. ``ours`` are digests of what we wrote."""
    try:
        current = target.read_bytes()
    except FileNotFoundError:
        return "new", target
    if current == content:
        return "same", None
    if force or _digest(current) in ours:
        return "updated", target
    return "kept", target.with_name(f"{target.name}.new")


def write_environment(folder: Path, *, explainer: bool = False) -> bool:
    """Writes the folder's ``.env`` with new secrets; whether it did. With ``explainer``, its profile is on, too.

    One that is there is kept; what it lacks is added at its end. Raises UsageError when it cannot be read or written.
    """
    path = folder / ".env"
    values = read_dotenv(path, os.environ)
    added = missing_secrets(values)
    chosen = profiles(values)
    if explainer and PROFILE not in chosen:
        added[PROFILES] = ",".join([*chosen, PROFILE])
    with _said(path):
        if path.exists():
            if added:
                lines = "".join(f"{name}={value}\n" for name, value in added.items())
                _write(path, f"{path.read_text('utf-8').rstrip()}\n\n{lines}".encode(), path.stat().st_mode & 0o777)
            return False
        if not (folder / "pyproject.toml").exists():  # not a source tree: the demo's image is made from the release
            added["CS_DEMO_PACKAGE"] = f"claudescope=={__version__}"
        text = env_file(added)
        if PROFILES in added:
            text += f"\n# Profiles of docker compose that are on.\n{PROFILES}={added[PROFILES]}\n"
        _write(path, text.encode(), _SECRET)
    return True


def write_explainer_token(folder: Path) -> None:
    """Gives Alertmanager the explainer's token of ``.env``, in a file that its user can read. Raises UsageError."""
    path = folder / TOKEN_FILE
    token = read_dotenv(folder / ".env", os.environ)[TOKEN]
    mine = os.name == "posix" and os.geteuid() == 0
    with _said(path):
        _write(path, token.encode(), 0o400 if mine else _PUBLIC)
        if mine:
            os.chown(path, _USER, _USER)


def write_ignore(folder: Path) -> bool:
    """Keeps ``.env`` and the secrets out of git, where the folder has no ``.gitignore``; whether it does now."""
    path = folder / ".gitignore"
    with _said(path):
        if not path.exists():
            _write(path, b".env\n/secrets/*/*\n!/secrets/*/README.md\n", _PUBLIC)
        return any(
            line.strip().lstrip("/") in (".env", ".env*", "*.env") for line in path.read_text("utf-8").splitlines()
        )


def _read_record(folder: Path) -> dict[str, str]:
    try:
        files = json.loads((folder / RECORD).read_bytes())["files"]
        return {str(name): str(digest) for name, digest in files.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}  # lost or broken: then every file that differs counts as changed by hand


def _make_folders(top: Path, folder: Path) -> None:
    """Makes ``folder`` and what is missing above it; below ``top`` everyone may read them, whatever the umask."""
    top.mkdir(parents=True, exist_ok=True)
    for parent in reversed([folder, *folder.parents]):
        if top in parent.parents and not parent.exists():
            parent.mkdir()
            parent.chmod(0o755)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(path: Path, content: bytes, mode: int) -> None:
    """The whole file or nothing of it, never for a moment more open than ``mode``."""
    handle, temporary = tempfile.mkstemp(prefix=".claudescope-", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(content)
            os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be written: {error.strerror}.", "Name another folder or change its permissions.")


@contextlib.contextmanager
def _said(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _unwritable(path, error) from None
