"""The server as a process beside a command, and the ports that it can have."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ..errors import UsageError
from ..live.probe import probe
from ..settings import SETTINGS, Settings
from .companion import Companion

__all__ = [
    "ServerProcess",
    "answers",
    "base_url",
    "choose_ports",
    "data_folder",
    "folder_server",
    "is_free",
    "running_server",
]

_PASSED_ON = (
    *("token", "retain", "max_size", "jaeger", "prices"),
    *("slo", "slo_webhook", "slo_webhook_token", "slo_command"),
)
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def base_url(host: str, port: int) -> str:
    """Where a server that listens on ``host`` is reached from this machine."""
    host = _ANY.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now. Raises UsageError when the address itself cannot be used."""
    try:
        _bind(host, port).close()
    except OSError:
        return False
    return True


def running_server(settings: Settings) -> str | None:
    """The address of a claudescope server that is there already: at the settings' port, or with their data folder."""
    from ..live.store.folder import default_folder

    url = base_url(settings.host, settings.port)
    if settings.port and answers(url):
        return url
    with contextlib.suppress(UsageError):
        return folder_server(settings.data or default_folder())
    return None


def folder_server(folder: Path) -> str | None:
    """The address of the server that has a data folder: it says in the lock file where it listens."""
    with contextlib.suppress(OSError):
        places = re.findall(r"http://\S+", (folder / "lock").read_text("ascii", "replace"))
        return next((url for url in places if answers(url)), None)
    return None


def data_folder(url: str, token: str) -> Path | None:
    """The data folder of the server at an address; None where it does not say."""
    folder = (probe(url, 2.0, "/api/status", token) or {}).get("data")
    return Path(folder) if isinstance(folder, str) and folder else None


def answers(url: str) -> bool:
    """Whether a claudescope server is there."""
    return (probe(url, 1.0) or {}).get("service") == "claudescope"


def choose_ports(settings: Settings) -> tuple[int, int]:
    """The HTTP and gRPC ports to listen on: the settings' own where they are free, else any free one and 0 (none)."""
    port = settings.port
    if not port or not is_free(settings.host, port):
        with _bind(settings.host, 0) as bound:
            port = bound.getsockname()[1]
    grpc_port = settings.grpc_port
    return port, grpc_port if grpc_port and is_free(settings.host, grpc_port) else 0


def _bind(host: str, port: int) -> socket.socket:
    """A bound socket. Raises OSError when the port is taken or not allowed, UsageError for anything else."""
    bound = None
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind)
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        bound.bind(address)
    except OSError as error:
        if bound is not None:
            bound.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            raise
        raise UsageError(f"The address {host} cannot be listened on: {error.strerror}.", "Change --host.") from None
    return bound


def _written(value: object) -> str:
    """A setting as a variable has it."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value or "")


class ServerProcess(Companion):
    """A ``claudescope up`` of our own; what it says on standard error is seen."""

    def __init__(
        self, settings: Settings, ports: tuple[int, int], data: Path | None, environment: Mapping[str, str]
    ) -> None:
        port, grpc_port = ports
        flags = ["up", "--supervised", f"--host={settings.host}", f"--port={port}", f"--grpc-port={grpc_port}"]
        if data is not None:
            flags.append(f"--data={data}")
        # Other users can read the flags of a process, but not its environment.
        kept = {SETTINGS[key].variable: _written(getattr(settings, key)) for key in _PASSED_ON}
        super().__init__("claudescope", flags, {**environment, **kept}, subprocess.PIPE)

    def wait_ready(self) -> str:
        """The page's address, once the server answers. Raises UsageError when it ends instead."""
        assert self.process.stdout is not None
        url: str = self.process.stdout.readline().strip()
        if not url:
            self.process.wait()
            raise UsageError("The server did not start; what it said is above.", "Correct that, or use --no-server.")
        return url
