"""Ports for programs that take no port 0: of each worker's own, and none that the system gives to others meanwhile."""

from __future__ import annotations

import itertools
import os
import socket

_FIRST, _EACH = 12_000, 2_000
"""Below what Linux gives to port 0 and to outgoing connections (from 32,768)."""


def _candidates() -> itertools.cycle[int]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
    ports = range(_FIRST + worker * _EACH, _FIRST + (worker + 1) * _EACH)
    begin = os.getpid() % _EACH  # another run on this machine begins elsewhere
    return itertools.cycle([*ports[begin:], *ports[:begin]])


_CANDIDATES = _candidates()


def free_port() -> int:
    """A port on loopback that nobody listens on; not given again for a long time."""
    for _ in range(_EACH):
        port = next(_CANDIDATES)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no port is free")
